// The prelude of kernel sources (lib/codegen/cuda/prelude.cu) for g++: the same names, the same bits. What is
// approximate on a GPU is exact here, but for subnormal numbers.
// No kernel calls it: were it not inline, g++ would write its code for each of them.
static inline double soft_fma(double, double, double);
#include "frag/soft.h"
#define NV static inline __attribute__((unused))
NV float nv_f32(unsigned x) { return f32_bits(x); }
NV unsigned nv_u32(float x) { return bits_f32(x); }
NV double nv_f64(unsigned long long x) { return f64_bits(x); }
NV unsigned long long nv_u64(double x) { return bits_f64(x); }
NV float nv_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
NV double nv_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
NV int nv_fma(int a, int b, int c) { return (int)((unsigned)a * (unsigned)b + (unsigned)c); }
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
NV unsigned long long nv_mul_wide(unsigned a, unsigned b) { return (unsigned long long)a * b; }
NV int nv_clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
NV int nv_clz(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
NV unsigned nv_pick(unsigned a, unsigned b, unsigned m) { return (a & m) | (b & ~m); }
NV unsigned short nv_half(float x) { return f16_of_f32(x); }
NV float nv_float(unsigned short h) { return f32_of_f16(h); }
NV unsigned short nv_bfloat(float x) {
  unsigned u = bits_f32(x);
  return x != x ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
NV unsigned emu_eight(float x, int mant, int bias, unsigned most) { // nearest, even; beyond the greatest that one
  unsigned u = bits_f32(x), sign = u >> 24 & 0x80, lost = 23 - mant;
  int e = (int)(u >> 23 & 0xff) - 127 + bias;
  if (x != x) return 0x7f;
  unsigned long long m = (u & 0x7fffffu) | (unsigned long long)((u >> 23 & 0xff) != 0) << 23;
  if (e < 1) lost += 1 - e > 30 ? 30 : 1 - e; // subnormal
  unsigned long long q = m >> lost, rest = m & ((1ull << lost) - 1), half = 1ull << (lost - 1);
  q += rest > half || (rest == half && (q & 1));
  if (e > 1) q += (unsigned long long)(e - 1) << mant; // the leading bit is one more
  return sign | (q > most ? most : (unsigned)q);
}
NV unsigned char nv_e4m3(float x) { return (unsigned char)emu_eight(x, 3, 7, 0x7e); }
NV unsigned char nv_e5m2(float x) { return (unsigned char)emu_eight(x, 2, 15, 0x7b); }
NV unsigned short nv_e4m3s(float a, float b) { return (unsigned short)(nv_e4m3(a) | nv_e4m3(b) << 8); }
NV unsigned short nv_e5m2s(float a, float b) { return (unsigned short)(nv_e5m2(a) | nv_e5m2(b) << 8); }
NV unsigned short nv_half_e5m2(unsigned char x) { return (unsigned short)(x << 8); }
NV unsigned short nv_half_e4m3(unsigned char x) {
  float y = 256 * nv_float((unsigned short)((x & 0x7f) << 7)); // the exponents' biases are 8 apart
  return (unsigned short)((x & 0x7f) == 0x7f ? 0x7fff : nv_half(y) | (x & 0x80) << 8);
}
NV float nv_max(float a, float b) {
  return a != a ? a : b != b ? b : a > b || (a == b && !(bits_f32(a) >> 31)) ? a : b;
}
NV float nv_min(float a, float b) { return a != a ? a : b != b ? b : a < b || (a == b && bits_f32(a) >> 31) ? a : b; }
NV float emu_flush(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }
NV float nv_rcp(float x) { return emu_flush(1 / emu_flush(x)); }
NV float nv_rsqrt(float x) { return 1 / __builtin_sqrtf(emu_flush(x)); }
NV double nv_rsqrt(double x) { return 1 / __builtin_sqrt(x); }
NV float nv_ex2(float x) { return __builtin_exp2f(x); }
NV float nv_tanh(float x) { return __builtin_tanhf(x); }
NV float nv_divide(float a, float b) { return a / b; }
template <class P> NV P nv_load_stream(const P *p) { return *p; }
template <class P> NV void nv_store_stream(P *p, P x) { *p = x; }
NV float nv_undefined() { return __builtin_nanf("0x12345"); }
NV void nv_after_previous() { emu_state.follow(); }
NV void nv_prefetch(const void *) {}
NV void nv_prefetch_bulk(const void *, unsigned bytes) {
  if (!bytes || bytes % 16) __builtin_trap();
}
NV void nv_cluster_begin() {}
NV void nv_cluster_arrive() {} // all are there when all wait
NV void nv_cluster_wait(int line = __builtin_LINE()) { emu_meet(EMU_CLUSTER, ~0u, 0, 0, line); }
NV char *nv_own_shared(char *shared) { return shared + (unsigned long long)emu_state.rank * emu_state.apart; }
template <class T> NV T *nv_peer_shared(T *p, int rank, EMU_HERE) {
  emu_state.reach(rank, line);
  return (T *)((char *)p + ((long long)rank - (long long)emu_state.rank) * (long long)emu_state.apart);
}

// Barriers in shared memory. A thread that waits for another warp gives the others their turn.
NV unsigned nv_smem_u32(const void *p) { return (unsigned)(unsigned long long)p; }
struct emu_bar {
  unsigned char phase, count, pending, none;
  int bytes;
};
NV void emu_turn(EMU_HERE) { emu_meet(EMU_TURN, ~0u, 0, 0, line); }
NV void emu_bar_step(emu_bar *b) {
  if (b->pending || b->bytes) return;
  b->phase ^= 1;
  b->pending = b->count;
}
NV void nv_mbarrier_init(char *bar, int n) { *(emu_bar *)bar = { 0, (unsigned char)n, (unsigned char)n, 0, 0 }; }
NV void nv_mbarrier_fence() {}
NV void nv_mbarrier_arrive(char *bar) {
  emu_bar *b = (emu_bar *)bar;
  b->pending--;
  emu_bar_step(b);
}
NV void nv_mbarrier_expect(char *bar, int bytes) {
  ((emu_bar *)bar)->bytes += bytes;
  nv_mbarrier_arrive(bar);
}
NV void nv_mbarrier_wait(char *bar, int phase) {
  while (((volatile emu_bar *)bar)->phase == phase) emu_turn();
}
template <class T> NV void nv_dsmem_store(T *to, T x, char *bar, int rank, EMU_HERE) {
  emu_bar *b = (emu_bar *)nv_peer_shared(bar, rank, line);
  *nv_peer_shared(to, rank, line) = x;
  b->bytes -= (int)sizeof(T);
  emu_bar_step(b);
}

// ---- tensor cores (lib/codegen/cuda/tensor_core.cu): lanes give each other their registers; sums are taken k
// ascending
NV unsigned emu_word(unsigned long long at) {
  unsigned x;
  __builtin_memcpy(&x, (const void *)at, 4);
  return x;
}
NV void nv_ldmatrix4(unsigned (&r)[4], const char *p) {
  unsigned lane = emu_lane();
  for (unsigned j = 0; j < 4; j++)
    r[j] = emu_word(__shfl_sync(~0u, (unsigned long long)p, 8 * j + lane / 4) + lane % 4 * 4);
}
NV void nv_ldmatrix4_trans(unsigned (&r)[4], const char *p) {
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
NV void nv_ldmatrix2_trans(unsigned (&r)[2], const char *p) {
  unsigned all[4];
  nv_ldmatrix4_trans(all, (const char *)__shfl_sync(~0u, (unsigned long long)p, emu_lane() % 16));
  r[0] = all[0], r[1] = all[1];
}
NV float emu_bf16(unsigned x) { return nv_f32(x << 16); }
NV float emu_f16(unsigned x) { return nv_float((unsigned short)x); }
NV float emu_tf32(unsigned x) { return nv_f32(x & ~0x1fffu); }
NV float emu_e5m2(unsigned x) { return nv_float(nv_half_e5m2((unsigned char)x)); }
NV float emu_e4m3(unsigned x) { return nv_float(nv_half_e4m3((unsigned char)x)); }
NV int emu_byte(unsigned x) { return (signed char)x; }
// what tensor cores multiply: X(name, how many a word holds, how those of the left and the right operand are read, what
// they are added up in)
#define EMU_FACTORS(X) \
  X(bf16, 2, emu_bf16, emu_bf16, float) \
  X(f16, 2, emu_f16, emu_f16, float) \
  X(tf32, 1, emu_tf32, emu_tf32, float) \
  X(e4m3_e4m3, 4, emu_e4m3, emu_e4m3, float) \
  X(e4m3_e5m2, 4, emu_e4m3, emu_e5m2, float) \
  X(e5m2_e4m3, 4, emu_e5m2, emu_e4m3, float) \
  X(e5m2_e5m2, 4, emu_e5m2, emu_e5m2, float) \
  X(s8, 4, emu_byte, emu_byte, int)
// fragments: lane 4 g + t holds of a the rows g and g + 8, of b the column g, at k = N t on and 4 N further on, N to a
// register
template <int N, class T>
NV void emu_mma(T *const *d, const unsigned (&a)[4], unsigned b0, unsigned b1, T (*of_a)(unsigned),
                T (*of_b)(unsigned)) {
  unsigned lane = emu_lane(), g = lane / 4, t = lane % 4, all = N == 1 ? ~0u : (1u << 32 / N % 32) - 1;
  const unsigned b[2] = { b0, b1 };
  for (int k4 = 0; k4 < 2; k4++)
    for (unsigned s = 0; s < 4; s++) {
      unsigned up = __shfl_sync(~0u, a[2 * k4], 4 * g + s), low = __shfl_sync(~0u, a[2 * k4 + 1], 4 * g + s);
      unsigned left = __shfl_sync(~0u, b[k4], 8 * t + s), right = __shfl_sync(~0u, b[k4], 8 * t + 4 + s);
      for (int h = 0; h < N; h++) {
        int by = 32 / N * h;
        T rows[2] = { of_a(up >> by & all), of_a(low >> by & all) };
        T columns[2] = { of_b(left >> by & all), of_b(right >> by & all) };
        for (int i = 0; i < 4; i++) *d[i] = nv_fma(rows[i / 2], columns[i % 2], *d[i]);
      }
    }
}
#define EMU_MMA(name, n, of_a, of_b, T) \
  NV void nv_mma_##name(T &d0, T &d1, T &d2, T &d3, const unsigned (&a)[4], unsigned b0, unsigned b1) { \
    T *const d[4] = {&d0, &d1, &d2, &d3}; \
    emu_mma<n>(d, a, b0, b1, of_a, of_b); \
  }
EMU_FACTORS(EMU_MMA)
NV void nv_mma_f64(double &d0, double &d1, double &d2, double &d3, const double (&a)[4], double b0, double b1) {
  double *const d[4] = { &d0, &d1, &d2, &d3 };
  const double b[2] = { b0, b1 };
  unsigned lane = emu_lane(), g = lane / 4, t = lane % 4;
  for (int k4 = 0; k4 < 2; k4++)
    for (unsigned s = 0; s < 4; s++) {
      double rows[2] = { __shfl_sync(~0u, a[2 * k4], 4 * g + s), __shfl_sync(~0u, a[2 * k4 + 1], 4 * g + s) };
      double columns[2] = { __shfl_sync(~0u, b[k4], 8 * t + s), __shfl_sync(~0u, b[k4], 8 * t + 4 + s) };
      for (int i = 0; i < 4; i++) *d[i] = nv_fma(rows[i / 2], columns[i % 2], *d[i]);
    }
}
NV int nv_f64_row(int row) { return (row & ~7) | (row << 1 & 6) | (row >> 2 & 1); }
NV unsigned nv_unpack_two(unsigned two) { return (two & 0xff) | (two & 0xff00) << 8; }
NV unsigned nv_unpack_even(unsigned four) { return four & 0xff00ff; }
NV unsigned nv_unpack_odd(unsigned four) { return four >> 8 & 0xff00ff; }
NV unsigned nv_s8_to_bf16(unsigned two) {
  return nv_bfloat((signed char)two) | (unsigned)nv_bfloat((signed char)(two >> 16)) << 16;
}
NV unsigned nv_s8_to_f16(unsigned two) {
  return nv_half((signed char)two) | (unsigned)nv_half((signed char)(two >> 16)) << 16;
}
NV unsigned nv_tf32(unsigned x) {
  return (x & 0x7f800000u) == 0x7f800000u ? x : (x + 0xfffu + (x >> 13 & 1)) & ~0x1fffu;
}
template <int N> NV void nv_cp_async(char *to, const void *from, bool ok) {
  if (((unsigned long long)to | (unsigned long long)from) % N) __builtin_trap();
  if (ok) __builtin_memcpy(to, from, N);
  else __builtin_memset(to, 0, N);
}
NV void nv_cp_async_commit() {}
template <int N> NV void nv_cp_async_wait() {}

// ---- warpgroups and TMA
struct alignas(64) nv_map { unsigned long long word[16]; };
NV void nv_map_prefetch(const nv_map *) {}
// all of so many threads from `first` on
template <int THREADS> NV void emu_gather(int which) {
  static volatile int here[64], round[64];
  int now = round[which];
  if (++here[which] == THREADS) here[which] = 0, round[which]++;
  else
    while (round[which] == now) emu_turn();
}
template <int THREADS> NV void nv_sync_consumers() { emu_gather<THREADS>(0); }
// A block's registers are divided again: who wants more waits until others have given as many back.
NV void emu_registers(int more) {
  volatile int &spare = emu_state.spare[emu_state.rank], &said = emu_state.said[emu_state.rank];
  while (spare < more) emu_turn();
  spare -= more;
  if (++said == (int)blockDim.x) spare = said = 0;
}
template <int N> NV void nv_setmaxnreg_dec() { emu_registers(N - emu_state.registers); }
template <int N> NV void nv_setmaxnreg_inc() { emu_registers(N - emu_state.registers); }
NV unsigned long long emu_turned(unsigned long long at, int span) { return at ^ (at >> 7 & (span / 16 - 1)) << 4; }
template <bool OUT> NV long long emu_box(char *shared, const nv_map *map, const long long (&at)[5]) {
  const emu_map *m = (const emu_map *)map;
  long long n[5], bytes = 0, i[5];
  for (int d = 0; d < 5; d++) n[d] = d < m->rank ? m->box[d] : 1;
  if ((unsigned long long)shared % 128) __builtin_trap();
  for (i[4] = 0; i[4] < n[4]; i[4]++)
    for (i[3] = 0; i[3] < n[3]; i[3]++)
      for (i[2] = 0; i[2] < n[2]; i[2]++)
        for (i[1] = 0; i[1] < n[1]; i[1]++)
          for (i[0] = 0; i[0] < n[0]; i[0]++, bytes += m->size) {
            char *p = (char *)m->address, *q = (char *)emu_turned((unsigned long long)shared + bytes, m->span);
            bool inside = true;
            for (int d = 0; d < m->rank; d++) {
              long long x = at[d] + i[d];
              inside &= x >= 0 && x < m->extent[d];
              p += x * m->stride[d];
            }
            if (OUT) {
              if (inside) __builtin_memcpy(p, q, m->size);
            } else if (inside) __builtin_memcpy(q, p, m->size);
            else __builtin_memset(q, 0, m->size);
            if (!OUT && m->tf32) *(unsigned *)q = nv_tf32(*(unsigned *)q);
          }
  return bytes;
}
NV void nv_tma_load(char *to, const nv_map *m, char *bar, int x, int y, int z = 0, int w = 0) {
  emu_bar *b = (emu_bar *)bar;
  b->bytes -= (int)emu_box<false>(to, m, { x, y, z, w, 0 });
  emu_bar_step(b);
}
template <bool ONCE> NV void nv_tma_store(const nv_map *m, const char *from, int x, int y, int z = 0, int w = 0) {
  emu_box<true>((char *)from, m, { x, y, z, w, 0 });
}
NV void nv_tma_store_commit() {}
template <int N> NV void nv_tma_store_wait() {}
NV void nv_tma_store_fence() {}
NV void nv_stmatrix4(char *p, unsigned a, unsigned b, unsigned c, unsigned d) {
  const unsigned v[4] = { a, b, c, d };
  unsigned lane = emu_lane();
  for (unsigned j = 0; j < 4; j++)
    __builtin_memcpy((char *)__shfl_sync(~0u, (unsigned long long)p, 8 * j + lane / 4) + lane % 4 * 4, &v[j], 4);
}
NV void nv_stmatrix4_trans(char *p, unsigned a, unsigned b, unsigned c, unsigned d) {
  const unsigned v[4] = { a, b, c, d };
  unsigned lane = emu_lane();
  for (unsigned j = 0; j < 4; j++)
    for (unsigned h = 0; h < 2; h++) {
      unsigned short u = (unsigned short)(v[j] >> 16 * h);
      __builtin_memcpy((char *)__shfl_sync(~0u, (unsigned long long)p, 8 * j + lane % 4 * 2 + h) + lane / 4 * 2, &u, 2);
    }
}
NV unsigned nv_bf16x2(float a, float b) { return nv_bfloat(a) | (unsigned)nv_bfloat(b) << 16; }
NV unsigned nv_f16x2(float a, float b) { return nv_half(a) | (unsigned)nv_half(b) << 16; }
// an address of 48 bits, above it what lies between columns that are no neighbours
NV unsigned long long nv_wgmma_descriptor(const char *p, unsigned step, unsigned units) {
  return (unsigned long long)(p + 16 * units) | (unsigned long long)step << 48;
}
template <class T>
NV T emu_factor(unsigned long long f, bool across, int size, long long row, long long k, T (*of)(unsigned)) {
  unsigned long long at = (f & (1ull << 48) - 1), gap = f >> 48 << 4;
  unsigned x = 0;
  at += across ? row * size / 128 * gap + k * 128 + row * size % 128 : row * 128 + k * size;
  __builtin_memcpy(&x, (const void *)emu_turned(at, 128), size);
  return of(x);
}
// the thread's own sums of 64 x N, straight from shared memory
template <int DEEP, class T, class... D>
NV void emu_group(unsigned long long a, unsigned long long b, bool ta, bool tb, int more, T (*of_a)(unsigned),
                  T (*of_b)(unsigned), D &...sums) {
  T *const d[] = { &sums... };
  unsigned lane = emu_lane(), warp = threadIdx.x / 32 % 4;
  for (unsigned i = 0; i < sizeof...(D); i++) {
    unsigned row = 16 * warp + lane / 4 + i / 2 % 2 * 8, col = i / 4 * 8 + lane % 4 * 2 + i % 2;
    T sum = more ? *d[i] : 0;
    for (int k = 0; k < DEEP; k++)
      sum = nv_fma(emu_factor(a, ta, 32 / DEEP, row, k, of_a), emu_factor(b, tb, 32 / DEEP, col, k, of_b), sum);
    *d[i] = sum;
  }
}
#define EMU_GROUP(name, n, of_a, of_b, T) \
  template <int A, int B, class... D> \
  NV void nv_wgmma_##name(unsigned long long a, unsigned long long b, int more, D &...d) { \
    emu_group<8 * n>(a, b, A, B, more, of_a, of_b, d...); \
  }
EMU_FACTORS(EMU_GROUP)
// the left factor from registers, as of emu_mma
template <class... D>
NV void emu_group_of(const unsigned (&a)[4], unsigned long long b, bool tb, int more, float (*of)(unsigned),
                     D &...sums) {
  float *const d[] = { &sums... };
  float left[2][16];
  unsigned lane = emu_lane();
  for (int k = 0; k < 16; k++)
    for (int up = 0; up < 2; up++)
      left[up][k] = of(__shfl_sync(~0u, a[k / 8 * 2 + up], lane / 4 * 4 + k / 2 % 4) >> k % 2 * 16 & 0xffff);
  for (unsigned i = 0; i < sizeof...(D); i++) {
    float sum = more ? *d[i] : 0;
    for (int k = 0; k < 16; k++)
      sum = nv_fma(left[i / 2 % 2][k], emu_factor(b, tb, 2, i / 4 * 8 + lane % 4 * 2 + i % 2, k, of), sum);
    *d[i] = sum;
  }
}
template <int B, class... D> NV void nv_wgmma_tf32_of(const unsigned (&a)[4], unsigned long long b, int more, D &...d) {
  float *const sum[] = { &d... };
  float left[2][8];
  unsigned lane = emu_lane();
  for (int k = 0; k < 8; k++)
    for (int up = 0; up < 2; up++) left[up][k] = emu_tf32(__shfl_sync(~0u, a[k / 4 * 2 + up], lane / 4 * 4 + k % 4));
  for (unsigned i = 0; i < sizeof...(D); i++) {
    float s = more ? *sum[i] : 0;
    for (int k = 0; k < 8; k++)
      s = nv_fma(left[i / 2 % 2][k], emu_factor(b, false, 4, i / 4 * 8 + lane % 4 * 2 + i % 2, k, emu_tf32), s);
    *sum[i] = s;
  }
}
#define EMU_GROUP_OF(name) \
  template <int B, class... D> \
  NV void nv_wgmma_##name##_of(const unsigned (&a)[4], unsigned long long b, int more, D &...d) { \
    emu_group_of(a, b, B, more, emu_##name, d...); \
  }
EMU_GROUP_OF(bf16)
EMU_GROUP_OF(f16)
NV unsigned nv_draw_number(unsigned *p, unsigned n) {
  unsigned x = *p;
  *p = x + 1 < n ? x + 1 : 0;
  return x;
}
NV void nv_set_flag(unsigned *p) {
  __syncwarp();
  if (emu_lane() == 0) ++*p;
}
NV void nv_wait_flag(unsigned *p, unsigned n) {
  while (*(volatile unsigned *)p != n) emu_turn();
  *p = 0;
}
NV void nv_bulk_load(char *to, const char *from, int bytes, char *bar) {
  emu_bar *b = (emu_bar *)bar;
  __builtin_memcpy(to, from, bytes);
  b->bytes -= bytes;
  emu_bar_step(b);
}
NV void nv_store_partials(char *to, float a, float b, float c, float d) {
  float *p = (float *)to;
  p[0] = a, p[1] = b, p[2] = c, p[3] = d;
}
NV void nv_add_partials(const char *from, float &a, float &b, float &c, float &d) {
  const float *p = (const float *)from;
  a += p[0], b += p[1], c += p[2], d += p[3];
}
NV void nv_keep(float &) {}
NV void nv_keep(int &) {}
NV void nv_wgmma_fence() {}
NV void nv_wgmma_commit() {}
template <int N> NV void nv_wgmma_wait() { emu_gather<128>(1 + threadIdx.x / 128); }
