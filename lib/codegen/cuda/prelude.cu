// prelude
// Everything that is not plain C++. The emulator of the tests has functions of the same names and results.
#pragma nv_diag_suppress 177 // what a kernel does not use
#define NV static __device__ __forceinline__
NV float nv_f32(unsigned x) { return __uint_as_float(x); }
NV unsigned nv_u32(float x) { return __float_as_uint(x); }
NV double nv_f64(unsigned long long x) { return __longlong_as_double((long long)x); }
NV unsigned long long nv_u64(double x) { return (unsigned long long)__double_as_longlong(x); }
NV float nv_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
NV double nv_fma(double a, double b, double c) { return __fma_rn(a, b, c); }
NV int nv_fma(int a, int b, int c) { return (int)((unsigned)a * (unsigned)b + (unsigned)c); }
NV float nv_abs(float x) { return fabsf(x); }
NV double nv_abs(double x) { return fabs(x); }
// the compiler takes select(x < 0, 0 - x, x) for an absolute value that is never negative, and then 2^31 for -2^31
NV int nv_neg(int x) { int y; asm("neg.s32 %0, %1;" : "=r"(y) : "r"(x)); return y; }
NV long long nv_neg(long long x) { long long y; asm("neg.s64 %0, %1;" : "=l"(y) : "l"(x)); return y; }
NV float nv_sqrt(float x) { return __fsqrt_rn(x); }
NV double nv_sqrt(double x) { return __dsqrt_rn(x); }
NV float nv_rint(float x) { return rintf(x); }
NV double nv_rint(double x) { return rint(x); }
NV float nv_floor(float x) { return floorf(x); }
NV double nv_floor(double x) { return floor(x); }
NV float nv_ceil(float x) { return ceilf(x); }
NV double nv_ceil(double x) { return ceil(x); }
NV float nv_trunc(float x) { return truncf(x); }
NV double nv_trunc(double x) { return trunc(x); }
NV int nv_mulhi(int a, int b) { return __mulhi(a, b); }
NV unsigned nv_mulhi(unsigned a, unsigned b) { return __umulhi(a, b); }
NV long long nv_mulhi(long long a, long long b) { return __mul64hi(a, b); }
NV unsigned long long nv_mulhi(unsigned long long a, unsigned long long b) { return __umul64hi(a, b); }
NV unsigned long long nv_mul_wide(unsigned a, unsigned b) {
  unsigned long long y;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(y) : "r"(a), "r"(b));
  return y;
}
NV int nv_clz(unsigned x) { return __clz((int)x); }
NV int nv_clz(unsigned long long x) { return __clzll((long long)x); }
// a & m | b & ~m
NV unsigned nv_pick(unsigned a, unsigned b, unsigned m) {
  unsigned y;
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(y) : "r"(m), "r"(a), "r"(b));
  return y;
}
NV unsigned short nv_half(float x) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
NV float nv_float(unsigned short h) { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); return x; }
NV unsigned short nv_bfloat(float x) { unsigned short h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
// floats of 8 bits, two at a time, and one; not before compute capability 8.9
NV unsigned short nv_e4m3s(float a, float b) {
  unsigned short y;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(b), "f"(a));
  return y;
}
NV unsigned short nv_e5m2s(float a, float b) {
  unsigned short y;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(b), "f"(a));
  return y;
}
NV unsigned char nv_e4m3(float x) { return (unsigned char)nv_e4m3s(x, 0.0f); }
NV unsigned char nv_e5m2(float x) { return (unsigned char)nv_e5m2s(x, 0.0f); }
NV unsigned short nv_half_e4m3(unsigned char x) {
  unsigned y;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"((unsigned short)x));
  return (unsigned short)y;
}
NV unsigned short nv_half_e5m2(unsigned char x) { return (unsigned short)(x << 8); }
NV float nv_max(float a, float b) { float y; asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
NV float nv_min(float a, float b) { float y; asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
// approximate, subnormal results are 0: relative error of about 2^-23, 2^-22, 2^-22, 2^-11, 2^-22
NV float nv_rcp(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
NV float nv_rsqrt(float x) { float y; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
NV double nv_rsqrt(double x) { double y; asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x)); return y; }
NV float nv_ex2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
NV float nv_tanh(float x) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// b is brought to where its reciprocal is a normal number: where b is one of a row, all but two products happen once
NV float nv_divide(float a, float b) {
  const float k = fabsf(b) > 0x1p+64f ? 0x1p-64f : fabsf(b) < 0x1p-64f ? 0x1p+64f : 1.0f;
  return a * k * nv_rcp(b * k);
}
// streaming access: values of 1 to 16 bytes that nothing reads again soon
template <class P> NV P nv_load_stream(const P *p) {
  if constexpr (sizeof(P) == 16) { uint4 q = __ldcs((const uint4 *)p); return *(P *)&q; }
  else if constexpr (sizeof(P) == 8) { uint2 q = __ldcs((const uint2 *)p); return *(P *)&q; }
  else if constexpr (sizeof(P) == 4) { unsigned q = __ldcs((const unsigned *)p); return *(P *)&q; }
  else return *p;
}
template <class P> NV void nv_store_stream(P *p, P x) {
  if constexpr (sizeof(P) == 16) __stcs((uint4 *)p, *(uint4 *)&x);
  else if constexpr (sizeof(P) == 8) __stcs((uint2 *)p, *(uint2 *)&x);
  else if constexpr (sizeof(P) == 4) __stcs((unsigned *)p, *(unsigned *)&x);
  else *p = x;
}
// an undefined value
NV float nv_undefined() { float x; asm("" : "=f"(x)); return x; }
// clusters: a barrier of all threads of all CTAs; the shared memory of this CTA; the same address in another CTA
NV void nv_cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" : : : "memory"); }
// after nv_mbarrier_fence, which orders all that matters here: later loads do not wait for a fence of all memory
NV void nv_cluster_begin() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory"); }
NV void nv_cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" : : : "memory"); }
NV char *nv_own_shared(char *shared) { return shared; }
template <class T> NV T *nv_peer_shared(T *p, int rank) {
  T *q;
  asm("mapa.u64 %0, %1, %2;" : "=l"(q) : "l"(p), "r"(rank));
  return q;
}
// Waits for the previous kernel of a programmatic dependent launch; its stores are visible afterwards. It does
// nothing in another launch. To let the next kernel be launched while this one still computes
// (griddepcontrol.launch_dependents) was slower in most kernels that were measured: docs/notes/gpu-kernels.md.
NV void nv_after_previous() {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}
NV unsigned nv_smem_u32(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
// mbarriers: a phase ends after n arrivals and the expected bytes. Phases are 0, 1, 0 ...
NV void nv_mbarrier_init(char *bar, int n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(nv_smem_u32(bar)), "r"(n) : "memory");
}
NV void nv_mbarrier_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" : : : "memory");
}
NV void nv_mbarrier_expect(char *bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               : : "r"(nv_smem_u32(bar)), "r"(bytes) : "memory");
}
NV void nv_mbarrier_arrive(char *bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(nv_smem_u32(bar)) : "memory");
}
NV void nv_mbarrier_wait(char *bar, int phase) {
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
               "@p bra done;\nbra again;\ndone:\n}"
               : : "r"(nv_smem_u32(bar)), "r"(phase) : "memory");
}
// stores x in the shared memory of the cluster's CTA `rank`, and counts it at that CTA's mbarrier; nobody waits here
template <class T> NV void nv_dsmem_store(T *to, T x, char *bar, int rank) {
  unsigned at, there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(nv_smem_u32(to)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(nv_smem_u32(bar)), "r"(rank));
  if constexpr (sizeof(T) == 8)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];"
                 : : "r"(at), "l"(*(unsigned long long *)&x), "r"(there) : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                 : : "r"(at), "r"(*(unsigned *)&x), "r"(there) : "memory");
}
// One thread prefetches so many bytes, a multiple of 16, from the 16 bytes on in which p lies (sm_90 and above).
NV void nv_prefetch_bulk(const void *p, unsigned bytes) {
  const unsigned long long at = (unsigned long long)p & ~15ull;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(at), "r"(bytes) : "memory");
}
NV void nv_prefetch(const void *p) { asm volatile("prefetch.global.L2 [%0];" : : "l"(p)); }
// end of prelude
