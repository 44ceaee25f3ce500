/* Late errors of values on a device: only kernels see an index that is out of range. A run with checks has one int for
   each checked step, in mapped host memory that the kernels write to directly, so that a download which waited anyway
   finds out at no cost. A value inherits the faults of its inputs. Decides how long faults are remembered; never
   waits. */
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "dispatch/cuda/device_impl.h"
#include "dispatch/solve/solve.h"

/* BLOCK: bytes of slots that are allocated together; LONG: depth of a chain of faults at which it is shortened */
enum { BLOCK = 16 << 10, LONG = 64 };

struct nvd_fault {
  int refs, depth, nfrom;
  nvd_use use;
  nvd_checks *checks;
  int **slot; /* checks->nslot slots */
  struct nvd_fault **from;
  /* in the stack of a walk, or in the list of unreferenced faults that kernels may still write to */
  struct nvd_fault *next;
  uint64_t seen, cut; /* the last walk that visited it; the last one that shortened it */
};

static struct {
  int **at;
  int n, capacity;
} unused; /* free slots */
static nvd_fault *gone_first, *gone_last;
static uint64_t walks;

void nvd_checks_unref(nvd_checks *c) {
  if (c && atomic_fetch_sub(&c->refs, 1) == 1) nvb_free(c);
}

/* ---- slots */
static int more_slots(nvd_device *d) {
  int n = BLOCK / (int)sizeof(int), **at = nvb_realloc(unused.at, sizeof *at * (size_t)(unused.capacity + n));
  void *block = NULL;
  if (!at) return 0;
  unused.at = at;
  int entered = nvd_enter(d), error = nvd_cu.cudaHostAlloc(&block, BLOCK, CUDA_HOST_PORTABLE_MAPPED);
  nvd_leave(entered);
  if (error) {
    nvd_cu.cudaGetLastError();
    return 0;
  }
  unused.capacity += n; /* space for every slot that exists */
  for (int i = 0; i < n; i++) unused.at[unused.n++] = (int *)block + i;
  return 1;
}

static void destroy_fault(nvd_fault *f) {
  for (int i = 0; f->checks && i < f->checks->nslot && f->slot[i]; i++) unused.at[unused.n++] = f->slot[i];
  nvd_checks_unref(f->checks);
  nvb_free(f);
}

static void free_unused(void) {
  while (gone_first && nvd_use_done(gone_first->use)) {
    nvd_fault *f = gone_first;
    if (!(gone_first = f->next)) gone_last = NULL;
    destroy_fault(f);
  }
}

/* ---- references */
nvd_fault *nvd_fault_ref(nvd_fault *f) {
  if (f) f->refs++;
  return f;
}

void nvd_fault_unref(nvd_fault *f) {
  nvd_fault *stack = NULL;
  for (; f; f = stack, stack = stack ? stack->next : NULL) {
    if (--f->refs) continue;
    for (int i = 0; i < f->nfrom; i++) /* inputs without other references go with it */
      if (f->from[i]->refs == 1) {
        f->from[i]->next = stack;
        stack = f->from[i];
      } else {
        f->from[i]->refs--;
      }
    f->next = NULL;
    *(gone_last ? &gone_last->next : &gone_first) = f;
    gone_last = f;
  }
}

/* ---- looking for failures */
static const char *own_failure(const nvd_fault *f, int *status) {
  static char text[640]; /* valid under the lock */
  for (int i = 0; f->checks && i < f->checks->n; i++) {
    int failed = *(volatile int *)f->slot[f->checks->at[i].slot], want = f->checks->at[i].failed;
    int nbatch = f->checks->at[i].nbatch;
    if (!failed || (failed != want && want)) continue;
    *status = nbatch < 0 ? NVM_ERR_INDEX : NVM_ERR_LINALG;
    if (nbatch < 0) return f->checks->at[i].text;
    nvd_matrix_failure(text, sizeof text, f->checks->at[i].text, nbatch, f->checks->at[i].batch,
                       NVD_FAILED_FROM - failed);
    return text;
  }
  return NULL;
}

static void forget_from(nvd_fault *f) {
  for (int i = 0; i < f->nfrom; i++) nvd_fault_unref(f->from[i]);
  f->nfrom = 0;
}

static void push_fault(nvd_fault **stack, nvd_fault *f, uint64_t walk) {
  if (f->seen == walk) return;
  f->seen = walk;
  f->next = *stack;
  *stack = f;
}

const char *nvd_fault_found(nvd_fault *f, int *status) {
  static char message[640];
  const char *found = NULL;
  nvd_fault *stack = NULL;
  int depth = 0;
  for (push_fault(&stack, f, ++walks); stack;) {
    nvd_fault *x = stack;
    stack = x->next;
    int kind;
    const char *text = own_failure(x, &kind);
    if (text && (!found || x->depth < depth)) {
      snprintf(message, sizeof message, "%s", text);
      found = message;
      *status = kind;
      depth = x->depth;
    }
    for (int i = 0; i < x->nfrom; i++) push_fault(&stack, x->from[i], walks);
  }
  if (!found) forget_from(f);
  return found;
}

/* Drops inputs that are complete and without failures. What a complete run depends on is complete too. */
static void drop_complete(nvd_fault *f) {
  enum { MOST = 4 * LONG };
  nvd_fault *todo[MOST];
  int n = 0;
  uint64_t walk = ++walks;
  todo[n++] = f;
  while (n) {
    nvd_fault *x = todo[--n];
    for (int i = 0; i < x->nfrom; i++) {
      nvd_fault *from = x->from[i];
      if (nvd_use_done(from->use)) {
        int status;
        if (!nvd_fault_found(from, &status) && !from->nfrom) {
          nvd_fault_unref(from);
          x->from[i--] = x->from[--x->nfrom];
        }
      } else if (from->cut != walk && n < MOST) {
        from->cut = walk;
        todo[n++] = from;
      }
    }
  }
}

int nvd_fault_new(nvd_fault **out, nvd_checks *checks, nvd_use use, nvd_fault *const *from, int nfrom) {
  int nslot = checks ? checks->nslot : 0, n = 0;
  *out = NULL;
  for (int i = 0; i < nfrom; i++) n += from[i] != NULL;
  if (!nslot && !n) return 1;
  free_unused();
  while (unused.n < nslot)
    if (!more_slots(use.q->device)) return 0;
  nvd_fault *f = nvb_calloc(1, sizeof *f + sizeof(void *) * (size_t)(nslot + n));
  if (!f) return 0;
  f->refs = 1;
  f->use = use;
  f->slot = (int **)(void *)(f + 1);
  f->from = (nvd_fault **)(void *)(f->slot + nslot);
  if (checks) {
    f->checks = checks;
    atomic_fetch_add(&checks->refs, 1);
  }
  for (int i = 0; i < nslot; i++) {
    f->slot[i] = unused.at[--unused.n];
    *f->slot[i] = 0;
  }
  walks++;
  for (int i = 0; i < nfrom; i++)
    if (from[i] && from[i]->seen != walks) { /* each input once */
      from[i]->seen = walks;
      f->from[f->nfrom++] = nvd_fault_ref(from[i]);
      if (f->depth <= from[i]->depth) f->depth = from[i]->depth + 1;
    }
  if (f->depth && f->depth % LONG == 0) drop_complete(f);
  *out = f;
  return 1;
}

int *nvd_fault_slot(nvd_fault *f, int i) { return f->slot[i]; }
