/* The rows and spans of active profiles, and the timed runs of a CPU's programs. Kernels of GPUs come from
   cuda/profile.c when their events are complete. Never decides what a step is worth. */
#include "dispatch/profile.h"
#include <string.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "base/mem.h"
#include "dispatch/cuda/profile.h"
#include "dispatch/program.h"
#include "dispatch/strips.h"
#include "frag/dtype.h"

atomic_int nvd_profiles;
static nvb_lock lock = NVB_LOCK(PROFILES);
static nvd_profile *active; /* all but a thread's own */
static _Thread_local nvd_profile *own;

void nvd_profile_lock(void) { nvb_lock_take(&lock); }
void nvd_profile_unlock(void) { nvb_lock_give(&lock); }

int nvd_unit_of(const nvf_step *s) {
  if (s->gemm) return NVD_UNIT_GEMM + nvf_gemm_class(s->gemm);
  for (int i = 0; i < s->k->nparam; i++)
    if (s->k->param[i].kind == NVF_BUFFER && nvg_real_of(s->k->param[i].type) == NVM_F64) return NVD_UNIT_F64;
  return NVD_UNIT_F32;
}

/* ---- begin and end */
int64_t nvd_profile_ns(nvd_profile *p) { return p->elapsed + (p->depth ? nvb_clock_ns() - p->began : 0); }

int nvd_profile_settle(void) { return nvd_is_profiling() ? nvd_gpu_profile_settle() : NVM_OK; }

int nvd_profile_begin(nvd_profile *p) {
  int status = nvd_profile_settle();
  if (status) return status;
  nvb_lock_take(&lock);
  if (!p->depth++) {
    p->began = nvb_clock_ns();
    if (p->own) own = p;
    else p->next = active, active = p;
    atomic_fetch_add(&nvd_profiles, 1);
  }
  nvb_lock_give(&lock);
  return NVM_OK;
}

static void take_out(nvd_profile *p) {
  nvd_profile **at = &active;
  if (p->own) own = NULL;
  while (*at && *at != p) at = &(*at)->next;
  if (*at) *at = p->next;
  atomic_fetch_sub(&nvd_profiles, 1);
}

int nvd_profile_end(nvd_profile *p) {
  int status = nvd_profile_settle(), open;
  int64_t now = nvb_clock_ns(); /* the kernels of GPUs have ended */
  nvb_lock_take(&lock);
  if ((open = p->depth) && !--p->depth) {
    p->elapsed += now - p->began;
    take_out(p);
  }
  nvb_lock_give(&lock);
  return open ? status : nvb_fail(NVM_ERR_STATE, "[profile_end] the profile was not begun, or has ended already");
}

void nvd_profile_drop(nvd_profile *p) {
  nvb_lock_take(&lock);
  if (p->depth) take_out(p);
  nvb_lock_give(&lock);
  for (int i = 0; i < p->nrow; i++) nvb_free(p->row[i].text);
  nvb_free(p->row);
  nvb_free(p->span);
}

/* ---- rows */
static nvb_hash key_of(const nvd_work *w) {
  int number[2] = { w->dev, w->unit };
  nvb_hash h = nvb_hash_bytes(number, sizeof number);
  h = nvb_hash_mix(h, w->by, strlen(w->by) + 1);
  h = nvb_hash_mix(h, w->hero, strlen(w->hero) + 1);
  return nvb_hash_mix(h, w->what, strlen(w->what) + 1);
}

/* Makes room for one more element of `size` bytes. 0: memory ran out. */
static int has_room(void *array, int n, int *cap, size_t size) {
  void *old, *at;
  if (n < *cap) return 1;
  int more = *cap ? 2 * *cap : 16;
  memcpy(&old, array, sizeof old);
  if (!(at = nvb_realloc(old, size * (size_t)more))) return 0;
  memcpy(array, &at, sizeof at);
  *cap = more;
  return 1;
}

static char *copy_text(char **to, const char *s) {
  char *at = *to;
  *to += strlen(s) + 1;
  return strcpy(at, s);
}

static int new_row(nvd_profile *p, const nvd_work *w, nvb_hash key) {
  char *text = nvb_alloc(strlen(w->by) + strlen(w->hero) + strlen(w->what) + 3), *to = text;
  if (!text || !has_room(&p->row, p->nrow, &p->row_cap, sizeof *p->row)) return nvb_free(text), -1;
  nvd_profile_row *r = &p->row[p->nrow];
  *r = (nvd_profile_row){ .key = key, .text = text, .work = { .dev = w->dev, .unit = w->unit } };
  r->work.by = copy_text(&to, w->by);
  r->work.hero = copy_text(&to, w->hero);
  r->work.what = copy_text(&to, w->what);
  return p->nrow++;
}

static int row_of(nvd_profile *p, const nvd_work *w, nvb_hash key) {
  int i = 0;
  while (i < p->nrow && !nvb_hash_eq(p->row[i].key, key)) i++;
  return i < p->nrow ? i : new_row(p, w, key);
}

static void add_run(nvd_profile *p, const nvd_work *w, nvb_hash key, nvd_span s) {
  if ((s.row = row_of(p, w, key)) < 0) {
    p->dropped++;
    return;
  }
  nvd_profile_row *r = &p->row[s.row];
  r->best = r->calls && r->best < s.ns ? r->best : s.ns;
  r->calls++;
  r->ns += s.ns;
  r->work.bytes += w->bytes;
  r->work.operations += w->operations;
  r->work.blocks = w->blocks > r->work.blocks ? w->blocks : r->work.blocks;
  if (p->timeline && p->nspan < NVD_SPANS && has_room(&p->span, p->nspan, &p->span_cap, sizeof *p->span))
    p->span[p->nspan++] = s;
}

/* A number of the calling thread, by which a timeline tells threads apart. */
static int thread_number(void) {
  static atomic_int threads;
  static _Thread_local int mine;
  return mine ? mine : (mine = atomic_fetch_add(&threads, 1) + 1);
}

void nvd_profile_note(const nvd_work *w, int64_t start, int64_t ns, int thread) {
  nvb_hash key = key_of(w);
  nvd_span s = { .thread = thread ? thread : thread_number(), .start = start, .ns = ns };
  nvb_lock_take(&lock);
  if (own) add_run(own, w, key, s);
  for (nvd_profile *p = own ? NULL : active; p; p = p->next) add_run(p, w, key, s);
  nvb_lock_give(&lock);
}

/* ---- runs of programs on a CPU */
void nvd_profile_step(const nvd_program *p, const nvd_context *c, int i, int64_t start) {
  const nvd_step *run = &p->step[i], *s = p->nstrips && p->strips[i] ? nvd_strips_as_step(p->strips[i]) : run;
  nvd_work w = { .dev = 1,
                 .unit = s->unit,
                 .by = run->solution ? run->solution->by->name
                       : c->entry[i] ? "native"
                                     : "interpreter",
                 .hero = s->hero,
                 .what = s->what,
                 .bytes = s->bytes,
                 .operations = s->operations,
                 .blocks = s->solution ? 0 : s->blocks };
  nvd_profile_note(&w, start, nvb_clock_ns() - start, 0);
}

int nvd_run_profiled(const nvd_program *p, const nvd_context *c) {
  int status = NVM_OK;
  for (int i = 0; i < p->nstep && !status; i++) {
    if (nvb_interrupted()) return NVM_ERR_INTERRUPTED;
    int64_t start = nvb_clock_ns();
    if (p->nstrips && p->strips[i] && nvd_strips_last(p->strips[i]) != i) continue;
    status = nvd_step_in_turn(p, c, i);
    nvd_profile_step(p, c, i, start);
  }
  return status;
}
