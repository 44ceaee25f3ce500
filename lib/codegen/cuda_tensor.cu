// Tensor cores and asynchronous copies, behind the prelude of those sources that use them; replaced by a test build too.
NV unsigned nv_at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
// four, two matrices of 8 rows of 16 bytes; every lane gives the address of one row
NV void nv_rows4(unsigned (&r)[4], const char *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(nv_at(p)) : "memory");
}
NV void nv_columns4(unsigned (&r)[4], const char *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(nv_at(p)) : "memory");
}
// d += a b: 16 x 8 sums of 16 products (f32 factors, rounded to tf32: of 8)
#define NV_MMA(name, shape, type) \
  NV void name(float &d0, float &d1, float &d2, float &d3, const unsigned (&a)[4], unsigned b0, unsigned b1) { \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)); \
  }
NV_MMA(nv_mma_bf16, "m16n8k16", "bf16")
NV_MMA(nv_mma_f16, "m16n8k16", "f16")
NV_MMA(nv_mma_tf32, "m16n8k8", "tf32")
NV unsigned nv_tf32(unsigned x) { unsigned y; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x))); return y; }
// N bytes into shared memory, or zeros; what was begun before a commit is there once no more than so many are waited for
template <int N> NV void nv_async(char *to, const void *from, bool ok) {
  if constexpr (N == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(nv_at(to)), "l"(from), "r"(ok ? N : 0) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" : : "r"(nv_at(to)), "l"(from), "n"(N), "r"(ok ? N : 0) : "memory");
}
NV void nv_async_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int N> NV void nv_async_wait() { asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory"); }
// end of prelude
