/* The heap of the library: malloc with a count of live blocks and fault injection, both idle until a test asks for
   them. It decides nothing about sizes or reuse (arenas and the buffers of lib/dispatch do) and never sets a
   message: a failure is a NULL. */
#include "base/mem.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__ /* AddressSanitizer can only detect a use after free if freed blocks are not kept */
enum { KEEPS = 0 };
#else
enum { KEEPS = 1 };
#endif
enum { KEPT_FROM = 128 << 10, KEPT = 4 };

static _Atomic int watched;        /* a test asked for the count of live blocks or for failures */
static _Atomic int64_t live;       /* live blocks since then */
static _Atomic int64_t fail_at;    /* requests until one fails; 0: none will */
static _Atomic(void *) kept[KEPT]; /* blocks kept for reuse; they do not count as live */
static _Atomic int fail_sticky;    /* 1: every request after the failing one fails too; 2: that request has failed */

static int is_watched(void) { return atomic_load_explicit(&watched, memory_order_relaxed); }

int nvb_alloc_fails(void) {
  if (!is_watched()) return 0;
  int64_t n = atomic_load_explicit(&fail_at, memory_order_relaxed);
  int sticky = atomic_load_explicit(&fail_sticky, memory_order_relaxed);
  if (!n && !sticky) return 0;
  if (sticky == 2) return 1;
  while (n > 0 && !atomic_compare_exchange_weak(&fail_at, &n, n - 1));
  if (n != 1) return 0;
  if (atomic_load(&fail_sticky)) atomic_store(&fail_sticky, 2);
  return 1;
}

void nvb_fail_alloc(int64_t n, int sticky) {
  atomic_store(&watched, 1);
  atomic_store(&fail_sticky, n > 0 && sticky ? 1 : 0);
  atomic_store(&fail_at, n > 0 ? n : 0);
}

int64_t nvb_live_blocks(void) {
  atomic_store(&watched, 1);
  return atomic_load(&live);
}

static void count_allocation(int n) {
  if (is_watched()) atomic_fetch_add_explicit(&live, n, memory_order_relaxed);
}

static void *count_if_made(void *p) {
  if (p) count_allocation(1);
  return p;
}

void *nvb_alloc(size_t bytes) { return nvb_alloc_fails() ? NULL : count_if_made(malloc(bytes ? bytes : 1)); }

void *nvb_calloc(size_t count, size_t bytes) {
  return nvb_alloc_fails() ? NULL : count_if_made(calloc(count ? count : 1, bytes ? bytes : 1));
}

void *nvb_alloc_aligned(size_t align, size_t bytes) {
  size_t whole = (bytes + align - 1) & ~(align - 1);
  if (whole < bytes || nvb_alloc_fails()) return NULL;
  return count_if_made(aligned_alloc(align, whole ? whole : align));
}

void *nvb_realloc(void *p, size_t bytes) {
  if (!p) return nvb_alloc(bytes);
  return nvb_alloc_fails() ? NULL : realloc(p, bytes ? bytes : 1);
}

void nvb_free(void *p) {
  if (!p) return;
  count_allocation(-1);
  free(p);
}

/* ---- kept blocks. The first of each size lie in one huge page, which the system hands out in the time of some forty
   small ones: a thread that plans touches more. They are never released. */
enum { HUGE_PAGE = 2 << 20 };
static char *_Atomic first_blocks; /* the first of the page; the smallest block comes last */

static int is_first_block(const void *p) {
  const char *first = atomic_load_explicit(&first_blocks, memory_order_relaxed);
  return first && (const char *)p >= first && (const char *)p < first + HUGE_PAGE;
}
static void make_first_blocks(void) {
  static atomic_int asked;
  if (atomic_load_explicit(&asked, memory_order_relaxed) || atomic_exchange(&asked, 1)) return;
  char *at = aligned_alloc(HUGE_PAGE, HUGE_PAGE);
  if (!at) return;
#ifdef MADV_HUGEPAGE
  madvise(at, HUGE_PAGE, MADV_HUGEPAGE);
#endif
  atomic_store(&first_blocks, at);
  for (int i = KEPT - 1; i >= 0; at += (size_t)KEPT_FROM << i--) free(atomic_exchange(&kept[i], at));
}
static _Atomic(void *) *slot_of(size_t bytes) {
  for (int i = 0; i < KEPT && KEEPS; i++)
    if (bytes == (size_t)KEPT_FROM << i) return &kept[i];
  return NULL;
}

void *nvb_alloc_kept(size_t bytes) {
  _Atomic(void *) *slot = slot_of(bytes);
  if (nvb_alloc_fails()) return NULL;
  if (slot) make_first_blocks();
  void *p = slot ? atomic_exchange(slot, NULL) : NULL;
  return count_if_made(p ? p : malloc(bytes));
}

void nvb_free_kept(void *p, size_t bytes) {
  _Atomic(void *) *slot = slot_of(bytes);
  if (!slot || !p) {
    nvb_free(p);
    return;
  }
  count_allocation(-1);
  void *before = atomic_exchange(slot, p);
  if (is_first_block(before)) before = atomic_exchange(slot, before);
  free(before);
}
