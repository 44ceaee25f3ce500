/* Memory of the emulated GPUs: one reserved range of addresses a device. An allocation has pages of its own that end
   where its bytes end (rounded up to 256); the page behind is never there. */
#include "world.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ALIGN = 256, POISON = 0xff };
#define RESERVED ((size_t)1 << 40) /* addresses are cheap */

typedef struct span { struct span *next; char *page, *data; size_t pages, bytes; int device, open; pool *p; } span;
static span *spans[MAX_DEVICES]; /* in the order of addresses */
static char *base[MAX_DEVICES];
static size_t used[MAX_DEVICES], limit, total;
static int open_count[MAX_DEVICES], is_open[MAX_DEVICES];

int64_t memory_total(void) {
  if (!total) {
    const char *s = getenv("NVM_EMU_MEMORY");
    total = limit = s && *s ? strtoull(s, NULL, 10) : (size_t)2 << 30;
  }
  return (int64_t)limit;
}
void memory_limit(int64_t bytes) {
  memory_total();
  limit = bytes > 0 ? (size_t)bytes : total;
}
int64_t memory_used(int device) { return (int64_t)used[device]; }

static int always_open(void) {
  static int known = -1;
  if (known < 0) known = getenv("NVM_EMU_OPEN") && atoi(getenv("NVM_EMU_OPEN"));
  return known;
}
static void set_access(span *s, int open) {
  s->open = open || always_open();
  mprotect(s->page, (s->pages - 1) * PAGE, s->open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
static void let_in(int device, int open) { /* what is opened opens at its first access */
  is_open[device] = open;
  for (span *s = spans[device]; s && !open && !always_open(); s = s->next)
    if (s->open) set_access(s, 0);
}
void memory_open(int device, int open) {
  open_count[device] += open ? 1 : -1;
  if (!open) return;
  memory_close();
  let_in(device, 1);
}
void memory_close(void) {
  for (int d = 0; d < MAX_DEVICES; d++)
    if (!open_count[d]) let_in(d, 0);
}

static span *find(const void *at, span ***link) {
  for (int d = 0; d < MAX_DEVICES; d++)
    for (span **l = &spans[d]; *l; l = &(*l)->next)
      if ((const char *)at >= (*l)->data && (const char *)at < (*l)->page + (*l)->pages * PAGE) {
        if (link) *link = l;
        return *l;
      }
  return NULL;
}
int memory_admit(const void *at) {
  for (int d = 0; d < MAX_DEVICES; d++)
    for (span *s = spans[d]; s && is_open[d]; s = s->next)
      if ((const char *)at >= s->page && (const char *)at < s->page + (s->pages - 1) * PAGE && !s->open)
        return set_access(s, 1), 1;
  return 0;
}
int memory_device(const void *at, size_t bytes) {
  span *s = find(at, NULL);
  return s && (size_t)((const char *)at - s->data) + bytes <= s->bytes ? s->device : -1;
}
pool *memory_pool(const void *at) {
  span *s = find(at, NULL);
  return s ? s->p : NULL;
}

int memory_new(void **out, int device, size_t bytes, pool *p) {
  *out = NULL;
  if (!bytes) return INVALID_VALUE;
  if (bytes > (size_t)memory_total() || used[device] + bytes > limit || (p && p->most && p->used + bytes > p->most))
    return NO_MEMORY;
  if (!base[device]) {
    char *at = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return NO_MEMORY;
    madvise(at, RESERVED, MADV_HUGEPAGE); /* opened and closed for every kernel, in a moment where pages are few */
    base[device] = at;
  }
  size_t aligned = (bytes + ALIGN - 1) / ALIGN * ALIGN, pages = (aligned + PAGE - 1) / PAGE + 1;
  char *at = base[device];
  span **link = &spans[device];
  for (; *link && (size_t)((*link)->page - at) < pages * PAGE; link = &(*link)->next)
    at = (*link)->page + (*link)->pages * PAGE;
  if (at + pages * PAGE > base[device] + RESERVED) return NO_MEMORY;
  span *s = malloc(sizeof *s);
  if (!s) return NO_MEMORY;
  *s = (span){ *link, at, at + (pages - 1) * PAGE - aligned, pages, bytes, device, 0, p };
  *link = s;
  set_access(s, 1);
  memset(at, POISON, (pages - 1) * PAGE);
  if (!is_open[device]) set_access(s, 0);
  used[device] += bytes;
  if (p) p->used += bytes;
  *out = s->data;
  return OK;
}

/* Bytes beside the allocation that share its pages must be as they were. */
static int untouched(span *s) {
  set_access(s, 1);
  for (char *c = s->page; c < s->data; c++)
    if ((unsigned char)*c != POISON) return 0;
  for (char *c = s->data + s->bytes; c < s->page + (s->pages - 1) * PAGE; c++)
    if ((unsigned char)*c != POISON) return 0;
  return 1;
}
int memory_free(void *at) {
  span **link, *s = find(at, &link);
  if (!s || s->data != at) return INVALID_VALUE;
  int clean = untouched(s);
  *link = s->next;
  madvise(s->page, s->pages * PAGE, MADV_DONTNEED);
  mprotect(s->page, s->pages * PAGE, PROT_NONE);
  used[s->device] -= s->bytes;
  if (s->p) s->p->used -= s->bytes;
  free(s);
  return clean ? OK : EMU_ILLEGAL_ADDRESS;
}

/* ---- page-locked memory of the host */
typedef struct lock { struct lock *next; char *at; size_t bytes; } lock;
static lock *locks;
int pinned_new(void **out, size_t bytes) {
  lock *l = malloc(sizeof *l);
  if (!l || posix_memalign(out, PAGE, bytes + 1)) return free(l), NO_MEMORY;
  *l = (lock){ locks, *out, bytes };
  locks = l;
  return OK;
}
int pinned(const void *at) {
  for (lock *l = locks; l; l = l->next)
    if ((const char *)at >= l->at && (const char *)at < l->at + l->bytes) return 1;
  return 0;
}
int pinned_free(void *at) {
  for (lock **l = &locks; *l; l = &(*l)->next)
    if ((*l)->at == at) {
      lock *gone = *l;
      *l = gone->next;
      free(gone->at);
      free(gone);
      return OK;
    }
  return INVALID_VALUE;
}
