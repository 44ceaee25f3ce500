/* Chooses the instruction set in which small systems are solved and factorized. No set contracts products and sums, so
   all give the same bits. */
#include "dispatch/solve/lanes.h"
#include <string.h>
#include "frag/dtype.h"
#include "graph/graph.h"
#if defined __x86_64__
#include <immintrin.h>
#endif

#define T float
#define I int32_t
#define PARTS 1
#define NAME(f) f##_f32
#define TARGET
#define BYTES 16
#include "dispatch/solve/lanes.inc"
#define T float
#define I int32_t
#define PARTS 2
#define NAME(f) f##_c64
#define TARGET
#define BYTES 16
#include "dispatch/solve/lanes.inc"
#define T double
#define I int64_t
#define PARTS 1
#define NAME(f) f##_f64
#define TARGET
#define BYTES 16
#include "dispatch/solve/lanes.inc"
#define T double
#define I int64_t
#define PARTS 2
#define NAME(f) f##_c128
#define TARGET
#define BYTES 16
#include "dispatch/solve/lanes.inc"

#if defined __x86_64__
/* Four (two) columns from `at` on of each lane's row: 16 bytes of lanes l and l + 4 (l + 2) side by side, turned. */
#define AVX2 __attribute__((target("avx2")))
AVX2 static inline __m256 pair_f32(const char *const *from, int l, int64_t at) {
  const float *a = (const float *)(const void *)from[l], *b = (const float *)(const void *)from[l + 4];
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a + at)), _mm_loadu_ps(b + at), 1);
}
AVX2 static inline void fetch4_f32(__m256 *to, const char *const *from, int64_t at) {
  __m256 a = pair_f32(from, 0, at), b = pair_f32(from, 1, at), c = pair_f32(from, 2, at), d = pair_f32(from, 3, at);
  __m256d p = _mm256_castps_pd(_mm256_unpacklo_ps(a, b)), q = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
  __m256d r = _mm256_castps_pd(_mm256_unpackhi_ps(a, b)), s = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
  to[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(p, q)), to[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(p, q));
  to[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(r, s)), to[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(r, s));
}
AVX2 static inline __m256d pair_f64(const char *const *from, int l, int64_t at) {
  const double *a = (const double *)(const void *)from[l], *b = (const double *)(const void *)from[l + 2];
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(a + at)), _mm_loadu_pd(b + at), 1);
}
AVX2 static inline void fetch2_f64(__m256d *to, const char *const *from, int64_t at) {
  __m256d a = pair_f64(from, 0, at), b = pair_f64(from, 1, at);
  to[0] = _mm256_unpacklo_pd(a, b), to[1] = _mm256_unpackhi_pd(a, b);
}
#define T float
#define I int32_t
#define PARTS 1
#define NAME(f) f##_f32_avx2
#define BLEND(a, b, m) _mm256_blendv_ps((__m256)(b), (__m256)(a), (__m256)(m))
#define FETCH(to, from, at) fetch4_f32((__m256 *)(to), from, at)
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#include "dispatch/solve/lanes.inc"
#define T float
#define I int32_t
#define PARTS 2
#define NAME(f) f##_c64_avx2
#define BLEND(a, b, m) _mm256_blendv_ps((__m256)(b), (__m256)(a), (__m256)(m))
#define FETCH(to, from, at) fetch4_f32((__m256 *)(to), from, at)
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#include "dispatch/solve/lanes.inc"
#define T double
#define I int64_t
#define PARTS 1
#define NAME(f) f##_f64_avx2
#define BLEND(a, b, m) _mm256_blendv_pd((__m256d)(b), (__m256d)(a), (__m256d)(m))
#define FETCH(to, from, at) fetch2_f64((__m256d *)(to), from, at)
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#include "dispatch/solve/lanes.inc"
#define T double
#define I int64_t
#define PARTS 2
#define NAME(f) f##_c128_avx2
#define BLEND(a, b, m) _mm256_blendv_pd((__m256d)(b), (__m256d)(a), (__m256d)(m))
#define FETCH(to, from, at) fetch2_f64((__m256d *)(to), from, at)
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#include "dispatch/solve/lanes.inc"
#define T float
#define I int32_t
#define PARTS 1
#define NAME(f) f##_f32_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,prefer-vector-width=512")))
#define BYTES 64
#include "dispatch/solve/lanes.inc"
#define T float
#define I int32_t
#define PARTS 2
#define NAME(f) f##_c64_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,prefer-vector-width=512")))
#define BYTES 64
#include "dispatch/solve/lanes.inc"
#define T double
#define I int64_t
#define PARTS 1
#define NAME(f) f##_f64_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,prefer-vector-width=512")))
#define BYTES 64
#include "dispatch/solve/lanes.inc"
#define T double
#define I int64_t
#define PARTS 2
#define NAME(f) f##_c128_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,prefer-vector-width=512")))
#define BYTES 64
#include "dispatch/solve/lanes.inc"
static int bytes_of_vector(void) {
  return __builtin_cpu_supports("avx512dq") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
}
#define VERSION(f) (bytes_of_vector() == 64 ? f##_avx512(x) : bytes_of_vector() == 32 ? f##_avx2(x) : f(x))
#else
static int bytes_of_vector(void) { return 16; }
#define VERSION(f) f(x)
#endif

int nvd_lanes_width(nvm_dtype t) {
  nvm_dtype real = nvg_real_of(t);
  return real == NVM_F32 || real == NVM_F64 ? bytes_of_vector() / nvg_size(real) : 0;
}
int64_t nvd_lanes_scratch(nvm_dtype t, int64_t n, int64_t k) {
  return n * (n + k + 1) * bytes_of_vector() * nvg_parts(t);
}

#define OF_DTYPE(f) \
  (x->type == NVM_F32   ? VERSION(f##_f32) \
   : x->type == NVM_F64 ? VERSION(f##_f64) \
   : x->type == NVM_C64 ? VERSION(f##_c64) \
                        : VERSION(f##_c128))
uint32_t nvd_lanes_solve(const nvd_lanes *x) { return OF_DTYPE(solve); }
uint32_t nvd_lanes_factor(const nvd_lanes *x) { return OF_DTYPE(factor); }
uint32_t nvd_lanes_cholesky(const nvd_lanes *x) { return OF_DTYPE(cholesky); }
