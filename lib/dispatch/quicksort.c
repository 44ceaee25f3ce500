/* Quicksort by AVX2. A step compares a vector with the pivot, permutes what is not greater to its front, and stores it
   twice: where the lower part grows upward, in place, and where the upper part grows downward, in the spare memory. A
   sorting network puts parts of at most eight vectors in order. Never allocates. */
#include "dispatch/quicksort.h"
#if defined __x86_64__
#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline
#define FOR(v, n) _Pragma("GCC unroll 8") for (int v = 0; v < (n); v++)

/* Byte i of row m: the 32-bit element that belongs at i where those whose bit of m is set go behind the others. */
#define AT(m, i) \
  ((uint64_t)(i) << 8 * ((m) >> (i) & 1 ? 8 - __builtin_popcount((m) >> (i)) \
                                        : (i) - __builtin_popcount((m) & ((1 << (i)) - 1))))
#define ROW(m) AT(m, 0) | AT(m, 1) | AT(m, 2) | AT(m, 3) | AT(m, 4) | AT(m, 5) | AT(m, 6) | AT(m, 7)
#define ROWS_4(m) ROW(m), ROW(m + 1), ROW(m + 2), ROW(m + 3)
#define ROWS_16(m) ROWS_4(m), ROWS_4(m + 4), ROWS_4(m + 8), ROWS_4(m + 12)
#define ROWS_64(m) ROWS_16(m), ROWS_16(m + 16), ROWS_16(m + 32), ROWS_16(m + 48)
static const uint64_t partitions[256] = { ROWS_64(0), ROWS_64(64), ROWS_64(128), ROWS_64(192) };

AVX2_INLINE __m256i order_by_mask(__m256i x, int mask) {
  __m128i order = _mm_loadl_epi64((const __m128i *)(const void *)&partitions[mask]);
  return _mm256_permutevar8x32_epi32(x, _mm256_cvtepu8_epi32(order));
}
AVX2_INLINE int mask_of(__m256i greater) { return _mm256_movemask_ps(_mm256_castsi256_ps(greater)); }

/* What the two widths do by different instructions. swap: lane i gets what lane i ^ d has; mix: b's lanes whose bit d
   is set, a's where it is not. d: 1, 2 or 4. */
AVX2_INLINE __m256i swap_32(__m256i x, int d) {
  return d == 1   ? _mm256_shuffle_epi32(x, 0xb1)
         : d == 2 ? _mm256_shuffle_epi32(x, 0x4e)
                  : _mm256_permute4x64_epi64(x, 0x4e);
}
AVX2_INLINE __m256i mix_32(__m256i a, __m256i b, int d) {
  return d == 1   ? _mm256_blend_epi32(a, b, 0xaa)
         : d == 2 ? _mm256_blend_epi32(a, b, 0xcc)
                  : _mm256_blend_epi32(a, b, 0xf0);
}
AVX2_INLINE __m256i greater_32(__m256i a, __m256i b) { return _mm256_cmpgt_epi32(a, b); }
AVX2_INLINE void exchange_32(__m256i *a, __m256i *b) {
  __m256i x = *a, y = *b;
  *a = _mm256_min_epi32(x, y);
  *b = _mm256_max_epi32(x, y);
}
AVX2_INLINE __m256i spread_32(int32_t x) { return _mm256_set1_epi32(x); }
AVX2_INLINE __m256i count_32(void) { return _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0); }
AVX2_INLINE __m256i load_32(const int32_t *a, __m256i mask) { return _mm256_maskload_epi32(a, mask); }

AVX2_INLINE __m256i swap_64(__m256i x, int d) { return swap_32(x, 2 * d); }
AVX2_INLINE __m256i mix_64(__m256i a, __m256i b, int d) { return mix_32(a, b, 2 * d); }
AVX2_INLINE __m256i greater_64(__m256i a, __m256i b) { return _mm256_cmpgt_epi64(a, b); }
AVX2_INLINE void exchange_64(__m256i *a, __m256i *b) {
  __m256i x = *a, y = *b, greater = _mm256_cmpgt_epi64(x, y);
  *a = _mm256_blendv_epi8(x, y, greater);
  *b = _mm256_blendv_epi8(y, x, greater);
}
AVX2_INLINE __m256i spread_64(int64_t x) { return _mm256_set1_epi64x(x); }
AVX2_INLINE __m256i count_64(void) { return _mm256_set_epi64x(3, 2, 1, 0); }
AVX2_INLINE __m256i load_64(const int64_t *a, __m256i mask) {
  return _mm256_maskload_epi64((const long long *)a, mask);
}

#define T int32_t
#define LEAST INT32_MIN
#define MOST INT32_MAX
#define NAME(x) x##_32
#include "dispatch/quicksort.inc"
#define T int64_t
#define LEAST INT64_MIN
#define MOST INT64_MAX
#define NAME(x) x##_64
#include "dispatch/quicksort.inc"

/* Twice the depth of halves, and some more. */
static int depth_of(int64_t n) { return 2 * (64 - __builtin_clzll((uint64_t)n | 1)) + 4; }

int nvd_can_quicksort(void) { return __builtin_cpu_supports("avx2"); }
void nvd_quicksort_32(int32_t *a, int32_t *spare, int64_t n) { sort_32(a, spare, a, n, depth_of(n)); }
void nvd_quicksort_64(int64_t *a, int64_t *spare, int64_t n) { sort_64(a, spare, a, n, depth_of(n)); }
#else
#include <stdlib.h>
int nvd_can_quicksort(void) { return 0; }
void nvd_quicksort_32(int32_t *a, int32_t *spare, int64_t n) { (void)a, (void)spare, (void)n, abort(); }
void nvd_quicksort_64(int64_t *a, int64_t *spare, int64_t n) { (void)a, (void)spare, (void)n, abort(); }
#endif
