/* Multiplies small matrices without a library: a tile of rows and columns is kept in registers while k runs. The loops
   are compiled for three levels of x86-64; the results do not depend on the level. Where there are FMA instructions,
   a * b + c is one of them: this is what the compiler is asked for, since it does not vectorise __builtin_fma here. */
#if defined __clang__
#pragma clang fp contract(on)
#elif defined __GNUC__
#pragma GCC optimize("O3", "fp-contract=fast") /* O3 unrolls the loops, whatever the build's optimisation level */
#endif
#include "frag/product.h"
#include "frag/impl.h"
#include "frag/soft.h"

enum { ROWS = 4, VECTORS = 2 }; /* of a tile: 8 sums in registers, of which AVX2 has 16 */

#define soft_fma_f32 soft_fmaf
#define soft_fma_f64 soft_fma
#define T float
#define NAME(x) x##_f32
#include "frag/product.inc"
#define T double
#define NAME(x) x##_f64
#include "frag/product.inc"

typedef void product_fn(const nvg_product *p);
NVG_SOFT void multiply(const nvg_product *p, int fused) {
  if (p->type == NVM_F64) multiply_f64(p, fused);
  else multiply_f32(p, fused);
}
#if defined __x86_64__
__attribute__((target("arch=x86-64-v4"))) static void multiply_v4(const nvg_product *p) { multiply(p, 1); }
__attribute__((target("arch=x86-64-v3"))) static void multiply_v3(const nvg_product *p) { multiply(p, 1); }
#endif
#if defined __FP_FAST_FMA && defined __FP_FAST_FMAF
static void multiply_plain(const nvg_product *p) { multiply(p, 1); }
#else
static void multiply_plain(const nvg_product *p) { multiply(p, 0); }
#endif

void nvg_product_run(const nvg_product *p) {
  static product_fn *const variants[] = {
    multiply_plain,
#if defined __x86_64__
    multiply_v3,
    multiply_v4,
#endif
  };
  variants[nvg_step_level() - 1](p);
}

int nvg_product_can(nvm_dtype type) { return type == NVM_F32 || type == NVM_F64; }
