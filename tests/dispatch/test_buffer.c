/* Array memory: alignment, reuse, the two limits, counters, foreign memory, failing requests, threads. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/dispatch.h"

enum { MIB = 1 << 20 };

START_TEST(alignment_and_size) {
  for (size_t n = 0; n < 20u * MIB; n = n * 3 / 2 + 1) {
    nvd_buf *b = nvd_buf_new(n);
    ck_assert_ptr_nonnull(b);
    ck_assert_uint_eq(b->bytes, n);
    ck_assert_uint_ge(b->cap, n);
    ck_assert_uint_le(b->cap, n + n / 4 + 2u * MIB);
    if (n < MIB) ck_assert_uint_le(b->cap, n + n / 8 + 64);
    ck_assert_uint_eq((uintptr_t)b->data % 64, 0);
    if (n >= 4u * MIB) ck_assert_uint_eq((uintptr_t)b->data % (2u * MIB), 0);
    memset(b->data, 1, n);
    nvd_buf_unref(b);
  }
  nvd_mem_trim();
}
END_TEST

START_TEST(freed_memory_is_used_again) {
  nvd_buf *b = nvd_buf_new(1000), *c;
  char *at = b->data;
  nvd_buf_unref(b);
  c = nvd_buf_new(1010); /* the same class */
  ck_assert_ptr_eq(c->data, at);
  b = nvd_buf_new(1000);
  ck_assert_ptr_ne(b->data, at);
  nvd_buf_unref(b);
  nvd_buf_unref(c);
  b = nvd_buf_new(5u * MIB);
  at = b->data;
  nvd_buf_unref(b);
  b = nvd_buf_new(6u * MIB);
  ck_assert_ptr_eq(b->data, at);
  nvd_buf_unref(b);
}
END_TEST

START_TEST(freed_memory_serves_what_is_somewhat_smaller) {
  nvd_mem_trim();
  int64_t used = nvd_mem_used();
  nvd_buf *b = nvd_buf_new(1000000), *c;
  char *at = b->data;
  nvd_buf_unref(b);
  c = nvd_buf_new(500000); /* half of it would be wasted */
  ck_assert_ptr_ne(c->data, at);
  b = nvd_buf_new(750000);
  ck_assert_ptr_eq(b->data, at);
  ck_assert_int_ge(nvd_mem_used() - used, 1500000); /* what is taken is counted */
  nvd_buf_unref(b);
  nvd_buf_unref(c);
  ck_assert_int_eq(nvd_mem_used(), used);
  nvb_set("mem_limit", "850K");
  b = nvd_buf_new(750000); /* the block of 1000000 would exceed the limit */
  ck_assert_msg(b && b->cap < 850000, "%s", nvb_message());
  nvd_buf_unref(b);
  nvb_set("mem_limit", "0");
  nvd_mem_trim();
}
END_TEST

START_TEST(counters) {
  nvd_mem_trim();
  int64_t used = nvd_mem_used();
  nvd_mem_reset_peak();
  ck_assert_int_eq(nvd_mem_peak(), used);
  nvd_buf *b = nvd_buf_new(100000), *c = nvd_buf_new(50000);
  int64_t both = nvd_mem_used() - used;
  ck_assert_int_ge(both, 150000);
  ck_assert_int_eq(nvd_mem_peak(), used + both);
  nvd_buf_unref(nvd_buf_ref(b));
  ck_assert_int_eq(nvd_mem_used(), used + both);
  nvd_buf_unref(b);
  nvd_buf_unref(c);
  nvd_buf_unref(NULL);
  ck_assert_int_eq(nvd_mem_used(), used);
  ck_assert_int_eq(nvd_mem_peak(), used + both);
  nvd_mem_reset_peak();
  ck_assert_int_eq(nvd_mem_peak(), used);
}
END_TEST

/* Whether they have memory of their own or lie side by side: small blocks never overlap, and what is trimmed is there
   again. */
START_TEST(small_blocks_lie_apart) {
  enum { N = 300 };
  nvd_buf *b[N];
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < N; i++) {
      ck_assert_ptr_nonnull(b[i] = nvd_buf_new((size_t)(i * 700 + round)));
      ck_assert_uint_eq((uintptr_t)b[i]->data % 64, 0);
      memset(b[i]->data, i, b[i]->cap);
    }
    for (int i = N - 1; i > round; i -= 2) {
      nvd_buf_unref(b[i]);
      nvd_mem_trim();
      b[i] = nvd_buf_new((size_t)(i * 900));
      memset(b[i]->data, i, b[i]->cap);
    }
    for (int i = 0; i < N; i++) {
      for (size_t k = 0; k < b[i]->cap; k++) ck_assert_int_eq((uint8_t)b[i]->data[k], (uint8_t)i);
      nvd_buf_unref(b[i]);
    }
    nvd_mem_trim();
  }
}
END_TEST

START_TEST(cache_is_bounded) {
  nvd_mem_trim();
  nvb_set("mem_cache", "0"); /* the words of settings are kept for the process */
  nvb_set("mem_cache", "1M");
  int64_t blocks = nvb_live_blocks();
  nvd_buf *b[64];
  for (int i = 0; i < 64; i++) b[i] = nvd_buf_new(64 << 10);
  for (int i = 0; i < 64; i++) nvd_buf_unref(b[i]);
  ck_assert_int_le(nvb_live_blocks(), blocks + 16); /* 16 of 64 KiB, the ones freed last */
  ck_assert_int_le(nvd_mem_kept(), MIB);
  char *last = b[63]->data;
  nvd_buf *again = nvd_buf_new(64 << 10);
  ck_assert_ptr_eq(again->data, last);
  nvd_buf_unref(again);
  nvb_set("mem_cache", "0");
  nvd_buf_unref(nvd_buf_new(10));
  ck_assert_int_eq(nvb_live_blocks(), blocks);
}
END_TEST

START_TEST(limit_is_kept) {
  nvd_mem_trim();
  nvb_set("mem_limit", "10M");
  nvd_buf *b = nvd_buf_new(6u * MIB);
  ck_assert_ptr_nonnull(b);
  ck_assert_ptr_null(nvd_buf_new(6u * MIB));
  ck_assert_int_eq(nvb_status(), NVM_ERR_MEMORY);
  ck_assert_ptr_nonnull(strstr(nvb_message(), "NVM_MEM_LIMIT"));
  nvd_buf_unref(b);
  nvd_buf *c = nvd_buf_new(8u * MIB); /* what is cached has to go */
  ck_assert_ptr_nonnull(c);
  nvd_buf_unref(c);
  ck_assert_ptr_null(nvd_buf_new((size_t)1 << 62));
  ck_assert_ptr_null(nvd_buf_new(SIZE_MAX));
  nvb_set("mem_limit", "0");
  ck_assert_ptr_null(nvd_buf_new((size_t)1 << 52)); /* more than an address space */
  ck_assert_int_eq(nvb_status(), NVM_ERR_MEMORY);
}
END_TEST

static int released;
static void release(void *owner) { released += *(int *)owner; }
START_TEST(foreign_memory) {
  int owner = 7;
  float x[4];
  int64_t used = nvd_mem_used(), blocks = nvb_live_blocks();
  nvd_buf *b = nvd_buf_wrap(x, sizeof x, release, &owner);
  ck_assert_ptr_eq(b->data, x);
  ck_assert_uint_eq(b->bytes, sizeof x);
  nvd_buf_ref(b);
  nvd_buf_unref(b);
  ck_assert_int_eq(released, 0);
  ck_assert_int_eq(nvd_mem_used(), used);
  nvd_buf_unref(b);
  ck_assert_int_eq(released, 7);
  nvd_buf_unref(nvd_buf_wrap(x, sizeof x, NULL, NULL));
  ck_assert_int_eq(nvb_live_blocks(), blocks);
}
END_TEST

START_TEST(every_request_may_fail) {
  static const size_t sizes[] = { 100, 100000, 5u * MIB };
  nvd_mem_trim();
  int64_t blocks = nvb_live_blocks(), used = nvd_mem_used();
  for (int i = 0; i < 3; i++)
    for (int n = 1;; n++) {
      ck_assert_int_lt(n, 10);
      nvb_fail_alloc(n, 1);
      nvd_buf *b = nvd_buf_new(sizes[i]);
      nvb_fail_alloc(0, 0);
      nvd_buf_unref(b);
      nvd_mem_trim();
      ck_assert_int_eq(nvb_live_blocks(), blocks);
      ck_assert_int_eq(nvd_mem_used(), used);
      if (b) {
        ck_assert_int_eq(n, sizes[i] > 4u * MIB ? 3 : 2); /* a mapping counts as a request */
        break;
      }
      ck_assert_int_eq(nvb_status(), NVM_ERR_MEMORY);
    }
  nvd_buf_unref(nvd_buf_new(100)); /* now cached */
  nvb_fail_alloc(1, 0);
  nvd_buf *b = nvd_buf_new(5u * MIB); /* fails once; goes on with the cache emptied */
  nvb_fail_alloc(0, 0);
  ck_assert_ptr_nonnull(b);
  nvd_buf_unref(b);
}
END_TEST

static void *churn(void *arg) {
  uint64_t seed = (uintptr_t)arg;
  nvd_buf *held[16] = { 0 };
  for (int i = 0; i < 20000; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    int k = (int)(seed >> 60);
    if (held[k] && *(uint64_t *)held[k]->data != (uintptr_t)held[k]) return (void *)1; /* someone else wrote there */
    nvd_buf_unref(held[k]);
    held[k] = nvd_buf_new(8 + (seed >> 33) % 30000);
    if (held[k]) *(uint64_t *)held[k]->data = (uintptr_t)held[k];
  }
  for (int k = 0; k < 16; k++) nvd_buf_unref(held[k]);
  return NULL;
}
START_TEST(threads_share_it) {
  nvb_set("mem_cache", "256K");
  int64_t used = nvd_mem_used();
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, churn, (void *)(uintptr_t)(i + 1));
  pid_t pid = fork(); /* in the middle of it */
  if (!pid) {
    alarm(20);
    nvd_buf *b = nvd_buf_new(100);
    nvd_buf_unref(b);
    _exit(b ? 0 : 1);
  }
  int status;
  waitpid(pid, &status, 0);
  ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
  for (int i = 0; i < 4; i++) {
    void *bad;
    pthread_join(t[i], &bad);
    ck_assert_ptr_null(bad);
  }
  ck_assert_int_eq(nvd_mem_used(), used);
}
END_TEST

SUITE("buffer", alignment_and_size, freed_memory_is_used_again, freed_memory_serves_what_is_somewhat_smaller, counters,
      small_blocks_lie_apart, cache_is_bounded, limit_is_kept, foreign_memory, every_request_may_fail, threads_share_it)
