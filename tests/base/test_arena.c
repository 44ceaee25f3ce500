/* Arenas, throwing, growing arrays, and what happens when memory runs out at each request in turn. */
#include <string.h>
#include "../suite.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

static void fill(nvb_arena *a, void *arg) {
  int n = *(int *)arg;
  char **p = NVB_NEWN(a, char *, n);
  for (int i = 0; i < n; i++) {
    size_t size = (size_t)i * 37 % 5000;
    p[i] = nvb_get(a, size);
    ck_assert_ptr_nonnull(p[i]); /* also for no bytes */
    ck_assert_uint_eq((uintptr_t)p[i] % 16, 0);
    for (size_t k = 0; k < size; k++) ck_assert_int_eq(p[i][k], 0);
    memset(p[i], i & 0x7f, size);
  }
  for (int i = 0; i < n; i++) /* no two overlap */
    for (size_t k = 0; k < (size_t)i * 37 % 5000; k++) ck_assert_int_eq(p[i][k], i & 0x7f);
}

START_TEST(memory_is_cleared_aligned_and_apart) {
  int64_t before = nvb_live_blocks();
  nvb_arena *a = nvb_arena_new();
  int n = 800;
  ck_assert_int_eq(nvb_protect(a, fill, &n), NVM_OK);
  ck_assert_int_gt(nvb_live_blocks(), before);
  nvb_arena_free(a);
  ck_assert_int_eq(nvb_live_blocks(), before);
  nvb_arena_free(NULL);
}
END_TEST

static void inner(nvb_arena *a, void *arg) { nvb_throw(a, NVM_ERR_TYPE, "[inner] %s", (const char *)arg); }
static int after_inner;
static void outer(nvb_arena *a, void *arg) {
  ck_assert_int_eq(nvb_protect(a, inner, arg), NVM_ERR_TYPE); /* the innermost catches */
  ck_assert_str_eq(nvb_message(), "[inner] why");
  after_inner = 1;
  nvb_throw(a, NVM_ERR_INDEX, "[outer] after %s", nvb_message()); /* the old message may be an argument */
}
START_TEST(throws_nest) {
  nvb_arena *a = nvb_arena_new();
  ck_assert_int_eq(nvb_protect(a, outer, (void *)"why"), NVM_ERR_INDEX);
  ck_assert_int_eq(after_inner, 1);
  ck_assert_str_eq(nvb_message(), "[outer] after [inner] why");
  ck_assert_int_eq(nvb_status(), NVM_ERR_INDEX);
  nvb_clear();
  ck_assert_str_eq(nvb_message(), "");
  int n = 3;
  ck_assert_int_eq(nvb_protect(a, fill, &n), NVM_OK); /* usable after a throw */
  nvb_arena_free(a);
}
END_TEST

/* An arena within another one: cleared many times it takes no more memory, what it allocates is apart and zeroed, what
   it throws unwinds to the other's nvb_protect, and it is freed with the other one. */
static void try_often(nvb_arena *a, void *arg) {
  int n = 300;
  size_t bytes = 0;
  char *kept = memset(nvb_get(a, 100), 7, 100);
  nvb_arena *within = nvb_arena_within(a), *more = nvb_arena_within(within);
  nvb_arena_clear(within); /* nothing was allocated yet */
  for (int i = 0; i < 50; i++) {
    fill(within, &n);
    fill(more, &n);
    if (i == 2) bytes = nvb_arena_bytes(a);
    ck_assert(i <= 2 || nvb_arena_bytes(a) <= bytes);
    nvb_arena_clear(within);
    nvb_arena_clear(more);
  }
  for (int i = 0; i < 100; i++) ck_assert_int_eq(kept[i], 7);
  *(int *)arg = 1;
  nvb_throw(more, NVM_ERR_INDEX, "[within] why");
}
START_TEST(arenas_lie_within_others) {
  int64_t before = nvb_live_blocks();
  nvb_arena *a = nvb_arena_new();
  int tried = 0;
  ck_assert_int_eq(nvb_protect(a, try_often, &tried), NVM_ERR_INDEX);
  ck_assert_int_eq(tried, 1);
  ck_assert_str_eq(nvb_message(), "[within] why");
  nvb_arena_free(a);
  ck_assert_int_eq(nvb_live_blocks(), before);
}
END_TEST

static void too_much(nvb_arena *a, void *arg) { nvb_get(a, *(size_t *)arg); }
START_TEST(impossible_sizes_throw) {
  const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 15, (size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX - 8, (size_t)1 << 62 };
  nvb_arena *a = nvb_arena_new();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t n = sizes[i];
    ck_assert_int_eq(nvb_protect(a, too_much, &n), NVM_ERR_MEMORY);
  }
  nvb_arena_free(a);
}
END_TEST

static void grow(nvb_arena *a, void *arg) {
  NVB_VEC(int) v = { 0 };
  for (int i = 0; i < 10000; i++) NVB_PUSH(a, v, i * 3);
  ck_assert_int_eq(v.n, 10000);
  for (int i = 0; i < v.n; i++) ck_assert_int_eq(v.at[i], i * 3);
  char *s = nvb_strdup(a, "text"), *d = nvb_dup(a, "ab\0c", 4);
  ck_assert_str_eq(s, "text");
  ck_assert_mem_eq(d, "ab\0c", 4);
  *(int *)arg = 1;
}
START_TEST(arrays_grow) {
  int done = 0;
  nvb_arena *a = nvb_arena_new();
  ck_assert_int_eq(nvb_protect(a, grow, &done), NVM_OK);
  ck_assert_int_eq(done, 1);
  nvb_arena_free(a);
}
END_TEST

START_TEST(every_allocation_may_fail) {
  int64_t before = nvb_live_blocks();
  int n = 0, status = NVM_ERR_MEMORY, done = 0;
  for (; status == NVM_ERR_MEMORY; n++) {
    ck_assert_int_lt(n, 100);
    nvb_fail_alloc(n + 1, n & 1);
    nvb_arena *a = nvb_arena_new();
    status = a ? nvb_protect(a, grow, &done) : nvb_fail_memory();
    nvb_fail_alloc(0, 0);
    if (status) ck_assert_int_eq(nvb_status(), NVM_ERR_MEMORY);
    nvb_arena_free(a);
    ck_assert_int_eq(nvb_live_blocks(), before);
  }
  ck_assert_int_eq(status, NVM_OK);
  ck_assert_int_gt(n, 4); /* the sweep has met the arena, its chunks and the array */
}
END_TEST

START_TEST(freed_chunks_are_had_again) {
  enum { SIZE = 256 << 10 };
  int64_t before = nvb_live_blocks();
  void *p = nvb_alloc_kept(SIZE), *q = nvb_alloc_kept(SIZE), *odd = nvb_alloc_kept(SIZE - 16), *first = p;
  ck_assert(p && q && odd && p != q);
  ck_assert_int_eq(nvb_live_blocks(), before + 3);
  nvb_free_kept(p, SIZE), nvb_free_kept(q, SIZE), nvb_free_kept(odd, SIZE - 16);
  nvb_free_kept(NULL, SIZE);
  ck_assert_int_eq(nvb_live_blocks(), before);
  nvb_fail_alloc(1, 0);
  ck_assert_ptr_null(nvb_alloc_kept(SIZE)); /* also what is there */
  nvb_fail_alloc(0, 0);
  p = nvb_alloc_kept(SIZE);
#ifndef __SANITIZE_ADDRESS__
  ck_assert(p == q || p == first); /* the first of a process are kept before others */
#endif
  nvb_free_kept(p, SIZE);
  ck_assert_int_eq(nvb_live_blocks(), before);
}
END_TEST

START_TEST(heap_counts_and_fails_on_request) {
  int64_t before = nvb_live_blocks();
  void *p = nvb_alloc(0), *q = nvb_calloc(3, 5), *r = nvb_alloc_aligned(256, 1000);
  ck_assert_ptr_nonnull(p);
  ck_assert_uint_eq((uintptr_t)r % 256, 0);
  ck_assert_int_eq(nvb_live_blocks(), before + 3);
  ck_assert_ptr_null(nvb_calloc(SIZE_MAX / 2, 3));
  nvb_fail_alloc(2, 0);
  p = nvb_realloc(p, 100);
  ck_assert_ptr_nonnull(p);
  ck_assert_ptr_null(nvb_realloc(p, 200)); /* the second; p stays */
  p = nvb_realloc(p, 300);
  ck_assert_ptr_nonnull(p);
  nvb_fail_alloc(1, 1);
  ck_assert_ptr_null(nvb_alloc(1));
  ck_assert_ptr_null(nvb_alloc(1));
  ck_assert_int_eq(nvb_alloc_fails(), 1);
  nvb_fail_alloc(0, 0);
  nvb_free(p), nvb_free(q), nvb_free(r), nvb_free(NULL);
  ck_assert_int_eq(nvb_live_blocks(), before);
}
END_TEST

/* ---- a stack of its own */
typedef struct dive { int depth; char *lowest; int64_t sum; } dive;
static int64_t go_down(nvb_arena *a, dive *d, int left) {
  volatile char frame[3000];
  memset((char *)frame, left & 0x7f, sizeof frame);
  d->lowest = (char *)frame;
  if (!left && d->depth % 2) nvb_throw(a, NVM_ERR_VALUE, "[dive] at %d", d->depth);
  int64_t below = left ? go_down(a, d, left - 1) : 0;
  return below + frame[left % (int)sizeof frame]; /* after it, so that no frame is another's */
}
static void dive_down(nvb_arena *a, void *arg) {
  dive *d = arg;
  d->sum = go_down(a, d, d->depth);
}
START_TEST(throws_leave_a_stack_of_its_own_as_it_was) {
  enum { DEPTH = 1000 };
  for (int i = 0; i < 40; i++) {
    nvb_arena *a = nvb_arena_new();
    dive d = { .depth = DEPTH + i % 2 };
    int64_t want = 0;
    for (int k = 0; k <= d.depth; k++) want += k & 0x7f;
    ck_assert_int_eq(nvb_protect_deep(a, 16 << 20, dive_down, &d), i % 2 ? NVM_ERR_VALUE : NVM_OK);
    ck_assert_int_eq(d.sum, i % 2 ? 0 : want);
    ck_assert_int_eq(nvb_protect(a, dive_down, &d), i % 2 ? NVM_ERR_VALUE : NVM_OK); /* on the thread's */
    nvb_arena_free(a);
  }
}
END_TEST

static void within(nvb_arena *a, void *arg) {
  dive inner = { .depth = 51 };
  ck_assert_int_eq(nvb_protect_deep(a, 1 << 20, dive_down, &inner), NVM_ERR_VALUE);
  dive_down(a, arg);
}
START_TEST(deep_stacks_nest) {
  for (int i = 0; i < 50; i++) {
    nvb_arena *a = nvb_arena_new();
    dive d = { .depth = 100 + i };
    ck_assert_int_eq(nvb_protect_deep(a, 1 << 20, within, &d), i % 2 ? NVM_ERR_VALUE : NVM_OK);
    nvb_arena_free(a);
  }
}
END_TEST

START_TEST(long_messages_are_cut) {
  char longer[3000];
  memset(longer, 'x', sizeof longer);
  longer[sizeof longer - 1] = 0;
  ck_assert_int_eq(nvb_fail(NVM_ERR_VALUE, "[op] %s", longer), NVM_ERR_VALUE);
  ck_assert_uint_eq(strlen(nvb_message()), 1023);
}
END_TEST

SUITE("arena", memory_is_cleared_aligned_and_apart, throws_nest, impossible_sizes_throw, arrays_grow,
      arenas_lie_within_others, every_allocation_may_fail, throws_leave_a_stack_of_its_own_as_it_was, deep_stacks_nest,
      freed_chunks_are_had_again, heap_counts_and_fails_on_request, long_messages_are_cut)
