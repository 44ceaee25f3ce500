/* Converts contiguous rows between float32 and float16 or bfloat16, with AVX-512 or AVX2 code chosen when the program
   runs. Never starts threads. */
#include "dispatch/half_rows.h"
#include <string.h>
#include "frag/soft.h"

NVG_SOFT uint16_t bf16_of_f32(float x) {
  uint32_t u = bits_f32(x), nan = (u & 0x7fffffff) > 0x7f800000u;
  return (uint16_t)((nan ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1)) >> 16);
}
NVG_SOFT float f32_of_bf16(uint16_t x) { return f32_bits((uint32_t)x << 16); }

typedef struct row { void *to; const void *from; nvm_dtype type; int64_t n; } row;
#define CONVERT(name, to_type, from_type, f16, bf16) \
  NVG_SOFT void name(const row *r) { \
    to_type *to = r->to; \
    const from_type *from = r->from; \
    if (r->type == NVM_F16) \
      for (int64_t i = 0; i < r->n; i++) \
        to[i] = f16(from[i]); \
    else \
      for (int64_t i = 0; i < r->n; i++) \
        to[i] = bf16(from[i]); \
  }
CONVERT(widen, float, uint16_t, f32_of_f16, f32_of_bf16)
CONVERT(narrow, uint16_t, float, f16_of_f32, bf16_of_f32)

#if defined __x86_64__
#define WIDTHS(fn) \
  __attribute__((target("arch=x86-64-v4"))) static void fn##_v4(const row *r) { fn(r); } \
  __attribute__((target("arch=x86-64-v3"))) static void fn##_v3(const row *r) { fn(r); } \
  static void fn##_any(const row *r) { \
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && \
        __builtin_cpu_supports("avx512dq")) \
      fn##_v4(r); \
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) \
      fn##_v3(r); \
    else \
      fn(r); \
  }
#else
#define WIDTHS(fn) static void fn##_any(const row *r) { fn(r); }
#endif
WIDTHS(widen)
WIDTHS(narrow)

void nvd_widen(float *to, const void *from, nvm_dtype type, int64_t n) {
  if (type == NVM_F32) memcpy(to, from, sizeof *to * (size_t)n);
  else widen_any(&(row){ to, from, type, n });
}

void nvd_narrow(void *to, const float *from, nvm_dtype type, int64_t n) {
  if (type == NVM_F32) memcpy(to, from, sizeof *from * (size_t)n);
  else narrow_any(&(row){ to, from, type, n });
}
