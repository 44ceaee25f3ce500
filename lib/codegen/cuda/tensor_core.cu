// Tensor cores and asynchronous copies, after the prelude in those sources that use them; the emulator of the tests
// has its own.
// loads four or two matrices of 8 rows of 16 bytes; every lane passes the address of one row
NV void nv_ldmatrix4(unsigned (&r)[4], const char *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(nv_smem_u32(p)) : "memory");
}
NV void nv_ldmatrix4_trans(unsigned (&r)[4], const char *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(nv_smem_u32(p)) : "memory");
}
NV void nv_ldmatrix2_trans(unsigned (&r)[2], const char *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(nv_smem_u32(p)) : "memory");
}
// d += a b: 16 x 8 sums of 16 products (f32 operands, rounded to tf32: of 8; of 8 bits: of 32)
#define NV_MMA_PAIR(name, shape, left, right) \
  NV void name(float &d0, float &d1, float &d2, float &d3, const unsigned (&a)[4], unsigned b0, unsigned b1) { \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." left "." right ".f32 " \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)); \
  }
#define NV_MMA(name, shape, type) NV_MMA_PAIR(name, shape, type, type)
NV_MMA(nv_mma_bf16, "m16n8k16", "bf16")
NV_MMA(nv_mma_f16, "m16n8k16", "f16")
NV_MMA(nv_mma_tf32, "m16n8k8", "tf32")
// integers of 8 bits: 16 x 8 sums of 32 products
NV void nv_mma_s8(int &d0, int &d1, int &d2, int &d3, const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(d0), "+r"(d1), "+r"(d2), "+r"(d3)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// 16 x 8 sums of f64 over 8 products
NV void nv_mma_f64(double &d0, double &d1, double &d2, double &d3, const double (&a)[4], double b0, double b1) {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+d"(d0), "+d"(d1), "+d"(d2), "+d"(d3)
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else
#define NV_MMA_QUARTER(c0, c1, x, y) \
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" \
               : "+d"(c0), "+d"(c1) : "d"(x), "d"(y))
  NV_MMA_QUARTER(d0, d1, a[0], b0);
  NV_MMA_QUARTER(d2, d3, a[1], b0);
  NV_MMA_QUARTER(d0, d1, a[2], b1);
  NV_MMA_QUARTER(d2, d3, a[3], b1);
#endif
}
// where a row of f64 lies among its eight: four that follow each other are two apart
NV int nv_f64_row(int row) { return (row & ~7) | (row << 1 & 6) | (row >> 2 & 1); }
// Where the instruction keeps 14 bits of its sums, they begin at 0; elsewhere it converts to f16.
#if defined __CUDA_ARCH__ && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200)
#define NV_MMA_F8(name, left, right) \
  NV_MMA_PAIR(name##_part, "m16n8k32", left, right) \
  NV void name(float &d0, float &d1, float &d2, float &d3, const unsigned (&a)[4], unsigned b0, unsigned b1) { \
    float e0 = 0, e1 = 0, e2 = 0, e3 = 0; \
    name##_part(e0, e1, e2, e3, a, b0, b1); \
    d0 += e0, d1 += e1, d2 += e2, d3 += e3; \
  }
#else
#define NV_MMA_F8(name, left, right) NV_MMA_PAIR(name, "m16n8k32", left, right)
#endif
NV_MMA_F8(nv_mma_e4m3_e4m3, "e4m3", "e4m3")
NV_MMA_F8(nv_mma_e4m3_e5m2, "e4m3", "e5m2")
NV_MMA_F8(nv_mma_e5m2_e4m3, "e5m2", "e4m3")
NV_MMA_F8(nv_mma_e5m2_e5m2, "e5m2", "e5m2")
// to the nearest; of two on 9.0 to the even one, as TMA does, elsewhere to the one further from 0
NV unsigned nv_tf32(unsigned x) {
  unsigned y;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ == 900
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
#else
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
#endif
  return y;
}
// Integers of 8 bits as wider floats: two bytes 16 bits apart, whose numbers are put into the fraction of one that is
// greater by a power of two
NV unsigned nv_unpack_two(unsigned two) { return __byte_perm(two, 0, 0x4140); }
NV unsigned nv_unpack_even(unsigned four) { return __byte_perm(four, 0, 0x4240); }
NV unsigned nv_unpack_odd(unsigned four) { return __byte_perm(four, 0, 0x4341); }
NV unsigned nv_s8_to_bf16(unsigned two) { // 128 and the low bits, less 128 or 256; each "and, or" is one instruction
  unsigned x, y, z;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(x) : "r"(two), "r"(0x7f007fu), "r"(0x43004300u));
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(y) : "r"(two), "r"(0x800080u), "r"(0xc300c300u));
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(z) : "r"(x), "r"(0x3f803f80u), "r"(y));
  return z;
}
NV unsigned nv_s8_to_f16(unsigned two) { // 1152 more, less that
  unsigned x, y;
  asm("lop3.b32 %0, %1, %2, %3, 0xbe;" : "=r"(x) : "r"(two), "r"(0x800080u), "r"(0x64006400u));
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(0x64806480u));
  return y;
}
// copies N bytes to shared memory, or zeros if not ok; copies begun before a commit are complete once at most N later
// groups are not
template <int N> NV void nv_cp_async(char *to, const void *from, bool ok) {
  if constexpr (N == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 : : "r"(nv_smem_u32(to)), "l"(from), "r"(ok ? N : 0) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 : : "r"(nv_smem_u32(to)), "l"(from), "n"(N), "r"(ok ? N : 0) : "memory");
}
NV void nv_cp_async_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int N> NV void nv_cp_async_wait() { asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory"); }
// a tensor map: what TMA knows of a buffer
struct __align__(64) nv_map { unsigned long long word[16]; };
NV void nv_map_prefetch(const nv_map *m) { asm volatile("prefetch.tensormap [%0];" : : "l"(m) : "memory"); }
template <int THREADS> NV void nv_sync_consumers() { asm volatile("bar.sync 1, %0;" : : "n"(THREADS) : "memory"); }
template <int N> NV void nv_setmaxnreg_dec() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(N)); }
template <int N> NV void nv_setmaxnreg_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(N)); }
// copies a box of a buffer to shared memory, and back; coordinates innermost first
NV void nv_tma_load(char *to, const nv_map *m, char *bar, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [%2];"
               : : "r"(nv_smem_u32(to)), "l"(m), "r"(nv_smem_u32(bar)), "r"(x), "r"(y) : "memory");
}
NV void nv_tma_load(char *to, const nv_map *m, char *bar, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5}], [%2];"
               : : "r"(nv_smem_u32(to)), "l"(m), "r"(nv_smem_u32(bar)), "r"(x), "r"(y), "r"(z) : "memory");
}
NV void nv_tma_load(char *to, const nv_map *m, char *bar, int x, int y, int z, int w) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6}], [%2];"
               : : "r"(nv_smem_u32(to)), "l"(m), "r"(nv_smem_u32(bar)), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
// ONCE: the box is not read again soon
NV unsigned long long nv_evict_first() {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
template <bool ONCE> NV void nv_tma_store(const nv_map *m, const char *from, int x, int y) {
  if constexpr (ONCE)
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%2, %3}], [%1], %4;"
                 : : "l"(m), "r"(nv_smem_u32(from)), "r"(x), "r"(y), "l"(nv_evict_first()) : "memory");
  else
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                 : : "l"(m), "r"(nv_smem_u32(from)), "r"(x), "r"(y) : "memory");
}
template <bool ONCE> NV void nv_tma_store(const nv_map *m, const char *from, int x, int y, int z) {
  if constexpr (ONCE)
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group.L2::cache_hint "
                 "[%0, {%2, %3, %4}], [%1], %5;"
                 : : "l"(m), "r"(nv_smem_u32(from)), "r"(x), "r"(y), "r"(z), "l"(nv_evict_first()) : "memory");
  else
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];"
                 : : "l"(m), "r"(nv_smem_u32(from)), "r"(x), "r"(y), "r"(z) : "memory");
}
template <bool ONCE> NV void nv_tma_store(const nv_map *m, const char *from, int x, int y, int z, int w) {
  if constexpr (ONCE)
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group.L2::cache_hint "
                 "[%0, {%2, %3, %4, %5}], [%1], %6;"
                 : : "l"(m), "r"(nv_smem_u32(from)), "r"(x), "r"(y), "r"(z), "r"(w), "l"(nv_evict_first()) : "memory");
  else
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                 : : "l"(m), "r"(nv_smem_u32(from)), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
NV void nv_tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
template <int N> NV void nv_tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(N) : "memory");
}
NV void nv_tma_store_fence() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
// stores four 8 x 8 quarters of 16-bit elements from the registers of an MMA; every lane passes the address of one row
NV void nv_stmatrix4(char *p, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               : : "r"(nv_smem_u32(p)), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
NV void nv_stmatrix4_trans(char *p, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
               : : "r"(nv_smem_u32(p)), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
NV unsigned nv_bf16x2(float a, float b) {
  unsigned y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(b), "f"(a));
  return y;
}
NV unsigned nv_f16x2(float a, float b) {
  unsigned y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(b), "f"(a));
  return y;
}
// a sum that starts as a constant: ptxas would set it between products that are in flight, and wait for each
NV void nv_keep(float &x) { asm volatile("mov.f32 %0, %0;" : "+f"(x)); }
NV void nv_keep(int &x) { asm volatile("mov.b32 %0, %0;" : "+r"(x)); } // it would be computed anew in every iteration
// the descriptor of a WGMMA operand in rows of 128 bytes, `units` of 16 bytes after p; step: 1, or for an MN-major
// operand the units from 64 columns to the next 64
NV unsigned long long nv_wgmma_descriptor(const char *p, unsigned step, unsigned units) {
  // the bits above these are the number of a CTA of the cluster
  const unsigned at = ((nv_smem_u32(p) & 0x3ffff) >> 4 | step << 16) + units;
  return at | 64ull << 32 | 1ull << 62;
}
NV void nv_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
NV void nv_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
template <int N> NV void nv_wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(N) : "memory"); }
// Between CTAs: a number from 0 to n - 1 that no other CTA of the launch draws; a flag that counts the warps whose
// stores are complete, and a wait for n of them, which clears it; partial sums of a thread for the same thread of
// another CTA
NV unsigned nv_draw_number(unsigned *p, unsigned n) { return atomicInc(p, n - 1); }
NV void nv_set_flag(unsigned *p) {
  asm volatile("fence.proxy.async.global;" : : : "memory"); // it is copied by what does not go through registers
  __syncwarp();
  if ((threadIdx.x & 31) == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(p) : "memory");
}
NV void nv_wait_flag(unsigned *p, unsigned n) {
  unsigned x;
  do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  while (x != n);
  *p = 0;
  asm volatile("fence.proxy.async.global;" : : : "memory");
}
NV void nv_bulk_load(char *to, const char *from, int bytes, char *bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               : : "r"(nv_smem_u32(to)), "l"(from), "r"(bytes), "r"(nv_smem_u32(bar)) : "memory");
}
NV void nv_store_partials(char *to, float a, float b, float c, float d) {
  asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};" : : "l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
NV void nv_add_partials(const char *from, float &a, float &b, float &c, float &d) {
  const float4 x = *(const float4 *)from;
  a += x.x, b += x.y, c += x.z, d += x.w;
}
// end of prelude
