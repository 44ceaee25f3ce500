/* Multiplies small matrices without a library: a tile of rows and columns is kept in registers while k runs. The loops
   are made for two levels of x86-64, whose results are equal: sums of fused multiply-adds in sequence. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* unrolls the loops, whatever the build's optimisation level */
#endif
#include "frag/product.h"
#include "frag/impl.h"
#include "frag/soft.h"
#if defined __x86_64__
#include <immintrin.h>
#endif

enum { ROWS = 4, VECTORS = 2 }; /* of a tile: 8 sums in registers, of which AVX2 has 16 */
enum { ROWS_OF_COLUMN = 8 };

/* ---- any processor */
#define INLINE NVG_SOFT
#if defined __FP_FAST_FMA && defined __FP_FAST_FMAF
#define FMA_F64 __builtin_fma
#define FMA_F32 __builtin_fmaf
#else
#define FMA_F64 soft_fma
#define FMA_F32 soft_fmaf
#endif
#define ADD_EACH(sum, a, b) \
  for (size_t e = 0; e < sizeof(sum) / sizeof *(b); e++) (sum)[e] = FMA(a, (b)[e], (sum)[e])
#define T float
#define NAME(x) x##_f32
#define FMA FMA_F32
#define ADD_PRODUCT ADD_EACH
#include "frag/product.inc"
#define T double
#define NAME(x) x##_f64
#define FMA FMA_F64
#define ADD_PRODUCT ADD_EACH
#include "frag/product.inc"
#undef INLINE

static void multiply_plain(const nvg_product *p) {
  if (p->type == NVM_F64) multiply_f64(p);
  else multiply_f32(p);
}

/* ---- x86-64-v3, which has instructions for it: the compiler makes them of __builtin_fma, but not of a vector's */
#if defined __x86_64__
#define V3 __attribute__((target("arch=x86-64-v3")))
#define INLINE V3 NVG_SOFT
#define T float
#define NAME(x) x##_f32_v3
#define FMA __builtin_fmaf
#define ADD_PRODUCT(sum, a, b) \
  sum = (vector_f32_v3)_mm256_fmadd_ps(_mm256_set1_ps(a), _mm256_loadu_ps(b), (__m256)(sum))
#include "frag/product.inc"
#define T double
#define NAME(x) x##_f64_v3
#define FMA __builtin_fma
#define ADD_PRODUCT(sum, a, b) \
  sum = (vector_f64_v3)_mm256_fmadd_pd(_mm256_set1_pd(a), _mm256_loadu_pd(b), (__m256d)(sum))
#include "frag/product.inc"

V3 static void multiply_v3(const nvg_product *p) {
  if (p->type == NVM_F64) multiply_f64_v3(p);
  else multiply_f32_v3(p);
}
#endif

void nvg_product_run(const nvg_product *p) {
#if defined __x86_64__
  if (nvg_step_level() > 1) {
    multiply_v3(p);
    return;
  }
#endif
  multiply_plain(p);
}

int nvg_product_can(nvm_dtype type) { return type == NVM_F32 || type == NVM_F64; }
