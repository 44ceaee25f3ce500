// The prelude of kernel sources (lib/codegen/cuda_prelude.cu) for g++: the same names, the same bits. What is
// approximate on a GPU is exact here.
#include "graph/frag_soft.h"
#define NV static inline __attribute__((always_inline, unused))
NV float nv_f32(unsigned x) { return f32_bits(x); }
NV unsigned nv_u32(float x) { return bits_f32(x); }
NV double nv_f64(unsigned long long x) { return f64_bits(x); }
NV unsigned long long nv_u64(double x) { return bits_f64(x); }
NV float nv_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
NV double nv_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
NV float nv_abs(float x) { return __builtin_fabsf(x); }
NV double nv_abs(double x) { return __builtin_fabs(x); }
NV int nv_neg(int x) { return (int)(0u - (unsigned)x); }
NV long long nv_neg(long long x) { return (long long)(0ull - (unsigned long long)x); }
NV float nv_sqrt(float x) { return __builtin_sqrtf(x); }
NV double nv_sqrt(double x) { return __builtin_sqrt(x); }
NV float nv_rint(float x) { return __builtin_rintf(x); }
NV double nv_rint(double x) { return __builtin_rint(x); }
NV float nv_floor(float x) { return __builtin_floorf(x); }
NV double nv_floor(double x) { return __builtin_floor(x); }
NV float nv_ceil(float x) { return __builtin_ceilf(x); }
NV double nv_ceil(double x) { return __builtin_ceil(x); }
NV float nv_trunc(float x) { return __builtin_truncf(x); }
NV double nv_trunc(double x) { return __builtin_trunc(x); }
NV int nv_mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
NV unsigned nv_mulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
NV long long nv_mulhi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
NV unsigned long long nv_mulhi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
NV int nv_clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
NV int nv_clz(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
NV unsigned short nv_half(float x) { return f16_of_f32(x); }
NV float nv_float(unsigned short h) { return f32_of_f16(h); }
NV unsigned short nv_bfloat(float x) {
  unsigned u = bits_f32(x);
  return x != x ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
NV float nv_max(float a, float b) {
  return a != a ? a : b != b ? b : a > b || (a == b && !(bits_f32(a) >> 31)) ? a : b;
}
NV float nv_min(float a, float b) { return a != a ? a : b != b ? b : a < b || (a == b && bits_f32(a) >> 31) ? a : b; }
NV float nv_rcp(float x) { return 1 / x; }
NV float nv_rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
NV float nv_ex2(float x) { return __builtin_exp2f(x); }
NV float nv_tanh(float x) { return __builtin_tanhf(x); }
NV float nv_divide(float a, float b) { return a / b; }
template <class P> NV P nv_load_stream(const P *p) { return *p; }
template <class P> NV void nv_store_stream(P *p, P x) { *p = x; }
NV void nv_prefetch(const void *) {}

// ---- tensor cores (lib/codegen/cuda_tensor.cu): lanes give each other their registers; sums are taken k ascending
NV unsigned emu_word(unsigned long long at) { unsigned x; __builtin_memcpy(&x, (const void *)at, 4); return x; }
NV void nv_rows4(unsigned (&r)[4], const char *p) {
  unsigned lane = emu_lane();
  for (unsigned j = 0; j < 4; j++)
    r[j] = emu_word(__shfl_sync(~0u, (unsigned long long)p, 8 * j + lane / 4) + lane % 4 * 4);
}
NV void nv_columns4(unsigned (&r)[4], const char *p) {
  unsigned lane = emu_lane();
  for (unsigned j = 0; j < 4; j++) {
    unsigned x = 0;
    for (unsigned h = 0; h < 2; h++) {
      unsigned short u;
      unsigned long long at = __shfl_sync(~0u, (unsigned long long)p, 8 * j + lane % 4 * 2 + h) + lane / 4 * 2;
      __builtin_memcpy(&u, (const void *)at, 2);
      x |= (unsigned)u << 16 * h;
    }
    r[j] = x;
  }
}
NV float emu_bf16(unsigned x) { return nv_f32(x << 16); }
NV float emu_f16(unsigned x) { return nv_float((unsigned short)x); }
NV float emu_tf32(unsigned x) { return nv_f32(x & ~0x1fffu); }
// fragments: lane 4 g + t holds of a the rows g and g + 8, of b the column g, at k = 2 t + {0, 1} and 8 on (tf32: t, 4 on)
template <int HALVES> NV void emu_mma(float *const *d, const unsigned (&a)[4], unsigned b0, unsigned b1, float (*of)(unsigned)) {
  unsigned lane = emu_lane(), g = lane / 4, t = lane % 4;
  const unsigned b[2] = {b0, b1};
  for (int k4 = 0; k4 < 2; k4++)
    for (unsigned s = 0; s < 4; s++) {
      unsigned up = __shfl_sync(~0u, a[2 * k4], 4 * g + s), low = __shfl_sync(~0u, a[2 * k4 + 1], 4 * g + s);
      unsigned left = __shfl_sync(~0u, b[k4], 8 * t + s), right = __shfl_sync(~0u, b[k4], 8 * t + 4 + s);
      for (int h = 0; h < HALVES; h++) {
        float rows[2] = {of(up >> 16 * h & (HALVES == 2 ? 0xffff : ~0u)), of(low >> 16 * h & (HALVES == 2 ? 0xffff : ~0u))};
        float columns[2] = {of(left >> 16 * h & (HALVES == 2 ? 0xffff : ~0u)), of(right >> 16 * h & (HALVES == 2 ? 0xffff : ~0u))};
        for (int i = 0; i < 4; i++) *d[i] = nv_fma(rows[i / 2], columns[i % 2], *d[i]);
      }
    }
}
#define EMU_MMA(name, halves, of) \
  NV void name(float &d0, float &d1, float &d2, float &d3, const unsigned (&a)[4], unsigned b0, unsigned b1) { \
    float *const d[4] = {&d0, &d1, &d2, &d3}; \
    emu_mma<halves>(d, a, b0, b1, of); \
  }
EMU_MMA(nv_mma_bf16, 2, emu_bf16)
EMU_MMA(nv_mma_f16, 2, emu_f16)
EMU_MMA(nv_mma_tf32, 1, emu_tf32)
NV unsigned nv_tf32(unsigned x) { return (x & 0x7f800000u) == 0x7f800000u ? x : x + 0x1000u; }
template <int N> NV void nv_async(char *to, const void *from, bool ok) {
  if (((unsigned long long)to | (unsigned long long)from) % N) __builtin_trap();
  if (ok) __builtin_memcpy(to, from, N);
  else __builtin_memset(to, 0, N);
}
NV void nv_async_commit() {}
template <int N> NV void nv_async_wait() {}
