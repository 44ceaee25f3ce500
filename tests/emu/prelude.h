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
