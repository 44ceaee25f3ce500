/* Instances of fft_code.inc for each dtype and instruction set; decides which one this processor runs. */
#include "dispatch/fft_code.h"

#define UNROLL _Pragma("GCC unroll 16")

#define T float
#define WIDTH 16
#define NAME(x) x##_32_base
#define FN
#include "dispatch/fft_code.inc"
#define T double
#define WIDTH 16
#define NAME(x) x##_64_base
#define FN
#include "dispatch/fft_code.inc"
#if defined __x86_64__
#define T float
#define WIDTH 32
#define NAME(x) x##_32_avx2
#define FN __attribute__((target("avx2")))
#include "dispatch/fft_code.inc"
#define T double
#define WIDTH 32
#define NAME(x) x##_64_avx2
#define FN __attribute__((target("avx2")))
#include "dispatch/fft_code.inc"
#define T float
#define WIDTH 64
#define NAME(x) x##_32_avx512
#define FN __attribute__((target("avx512f")))
#include "dispatch/fft_code.inc"
#define T double
#define WIDTH 64
#define NAME(x) x##_64_avx512
#define FN __attribute__((target("avx512f")))
#include "dispatch/fft_code.inc"
#endif

const nvd_fft_code *nvd_fft_code_of(int wide) {
#if defined __x86_64__
  if (__builtin_cpu_supports("avx512f")) return wide ? &code_64_avx512 : &code_32_avx512;
  if (__builtin_cpu_supports("avx2")) return wide ? &code_64_avx2 : &code_32_avx2;
#endif
  return wide ? &code_64_base : &code_32_base;
}

const nvd_fft_code *nvd_fft_code_of_few(void) { return &code_64_base; }

nvd_planes nvd_fft_transform(const nvd_fft_code *code, const nvd_passes *p, nvd_planes x, nvd_planes y, int64_t lanes) {
  for (int i = 0; i < p->npass; i++) {
    nvd_planes from = x;
    code->pass(&p->pass[i], from, y, lanes);
    x = y, y = from;
  }
  return x;
}

nvd_planes nvd_fft_inverse(const nvd_fft_code *code, const nvd_passes *p, nvd_planes x, nvd_planes y, int64_t lanes) {
  nvd_planes swapped = { x.im, x.re }, spare = { y.im, y.re };
  nvd_planes r = nvd_fft_transform(code, p, swapped, spare, lanes);
  return (nvd_planes){ r.im, r.re };
}
