/* The instances of fft_code.inc for float, one for each instruction set; decides which one this processor runs. */
#include "dispatch/fft_code.h"

#define UNROLL _Pragma("GCC unroll 16")

#define T float
#define WIDTH 16
#define NAME(x) x##_base
#define FN
#include "dispatch/fft_code.inc"
#if defined __x86_64__
#define T float
#define WIDTH 32
#define NAME(x) x##_avx2
#define FN __attribute__((target("avx2")))
#include "dispatch/fft_code.inc"
#define T float
#define WIDTH 64
#define NAME(x) x##_avx512
#define FN __attribute__((target("avx512f")))
#include "dispatch/fft_code.inc"
#endif

const nvd_fft_code *nvd_fft_code_f32(void) {
#if defined __x86_64__
  if (__builtin_cpu_supports("avx512f")) return &code_avx512;
  if (__builtin_cpu_supports("avx2")) return &code_avx2;
#endif
  return &code_base;
}
