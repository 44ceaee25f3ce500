// CUDA C++ as far as kernel sources use it outside of their prelude, for g++: qualifiers, coordinates, vector types,
// meetings of threads, atomics. Stands before every source; includes nothing.
#include "abi.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static            // blocks run one after the other; `extern __shared__` is rewritten
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline        // calls: half as much code to compile
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...) // read from the text
#define __cluster_dims__(...)  // so is this
#define __grid_constant__

extern "C" {
emu_world emu_state;
}
#define threadIdx emu_state.thread
#define blockIdx emu_state.block
#define blockDim emu_state.threads
#define gridDim emu_state.blocks
#define warpSize 32

#define EMU_VECTORS(T, name)                                                                                  \
  struct __align__(2 * sizeof(T)) name##2 { T x, y; };                                                        \
  struct name##3 { T x, y, z; };                                                                              \
  struct __align__(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; };                        \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                                  \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMU_VECTORS(signed char, char)
EMU_VECTORS(unsigned char, uchar)
EMU_VECTORS(short, short)
EMU_VECTORS(unsigned short, ushort)
EMU_VECTORS(int, int)
EMU_VECTORS(unsigned, uint)
EMU_VECTORS(long long, longlong)
EMU_VECTORS(unsigned long long, ulonglong)
EMU_VECTORS(float, float)
EMU_VECTORS(double, double)

// ---- meetings. The line is the caller's.
#define EMU_HERE int line = __builtin_LINE()
inline unsigned long long emu_meet(emu_kind kind, unsigned mask, unsigned long long v, unsigned from, int line) {
  unsigned long long r = emu_state.meet(kind, mask, v, from, line);
  asm volatile("" ::: "memory");
  return r;
}
inline unsigned emu_lane() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31; }
inline void __syncthreads(EMU_HERE) { emu_meet(EMU_BLOCK, ~0u, 0, 0, line); }
inline int __syncthreads_count(int p, EMU_HERE) { return (int)emu_meet(EMU_BLOCK, ~0u, p != 0, 0, line); }
inline int __syncthreads_or(int p, EMU_HERE) { return emu_meet(EMU_BLOCK, ~0u, p != 0, 0, line) != 0; }
inline int __syncthreads_and(int p, EMU_HERE) { return emu_meet(EMU_BLOCK, ~0u, p == 0, 0, line) == 0; }
inline void __syncwarp(unsigned mask = ~0u, EMU_HERE) { emu_meet(EMU_WARP, mask, 0, 0, line); }
inline unsigned __ballot_sync(unsigned mask, int p, EMU_HERE) {
  return (unsigned)emu_meet(EMU_BALLOT, mask, p != 0, 0, line);
}
inline int __any_sync(unsigned mask, int p, EMU_HERE) { return emu_meet(EMU_BALLOT, mask, p != 0, 0, line) != 0; }
inline int __all_sync(unsigned mask, int p, EMU_HERE) { return emu_meet(EMU_BALLOT, mask, p == 0, 0, line) == 0; }
template <class T> inline T emu_shuffle(unsigned mask, T v, unsigned from, int line) {
  static_assert(sizeof(T) <= 8, "a shuffle of up to 8 bytes");
  unsigned long long u = 0;
  __builtin_memcpy(&u, &v, sizeof v);
  u = emu_meet(EMU_SHUFFLE, mask, u, from, line);
  __builtin_memcpy(&v, &u, sizeof v);
  return v;
}
template <class T> inline T __shfl_sync(unsigned mask, T v, int from, int width = 32, EMU_HERE) {
  return emu_shuffle(mask, v, (emu_lane() & ~(width - 1)) | (from & (width - 1)), line);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32, EMU_HERE) {
  unsigned at = emu_lane(), to = at ^ (unsigned)by;
  return emu_shuffle(mask, v, to < (at | (unsigned)(width - 1)) + 1 ? to : at, line);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, EMU_HERE) {
  unsigned at = emu_lane();
  return emu_shuffle(mask, v, (at & (width - 1)) >= by ? at - by : at, line);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, EMU_HERE) {
  unsigned at = emu_lane();
  return emu_shuffle(mask, v, (at & (width - 1)) + by < (unsigned)width ? at + by : at, line);
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
inline float sqrtf(float x) { return __builtin_sqrtf(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
inline void __threadfence() {}
inline void __threadfence_block() {}
#define EMU_ATOMIC(name, result)                                              \
  template <class T> inline T name(T *p, T v) { T old = *p; *p = result; return old; }
EMU_ATOMIC(atomicMin, v < old ? v : old)
EMU_ATOMIC(atomicMax, v > old ? v : old)
EMU_ATOMIC(atomicAdd, old + v)
EMU_ATOMIC(atomicExch, v)
EMU_ATOMIC(atomicOr, old | v)
EMU_ATOMIC(atomicAnd, old &v)
template <class T> inline T atomicCAS(T *p, T want, T v) {
  T old = *p;
  if (old == want) *p = v;
  return old;
}

// ---- what the executor finds
template <int...> struct emu_list {};
template <class... A, int... I> inline void emu_spread(void (*f)(A...), void **p, emu_list<I...>) { f(*(A *)p[I]...); }
template <class... A> inline void emu_apply(void (*f)(A...), void **p) {
  emu_spread(f, p, emu_list<__integer_pack(sizeof...(A))...>());
}
template <class... A> constexpr int emu_count(void (*)(A...)) { return sizeof...(A); }
template <class F> struct emu_sizes;
template <class... A> struct emu_sizes<void(A...)> { static constexpr int size[] = { (int)sizeof(A)..., 0 }; };
#define EMU_KERNEL(f, bound, least, cluster, shared)                                                               \
  extern "C" {                                                                                                     \
  extern const emu_kernel emu_kernel_##f = {                                                                       \
    #f, [](void **p) { emu_apply(f, p); }, emu_count(f), emu_sizes<decltype(f)>::size, bound, least, cluster, shared, \
    &emu_state};                                                                                                   \
  }
