/* Chooses the instruction set in which small systems are solved. No set contracts products and sums, so all give the
   same bits. */
#include "dispatch/solve/lanes.h"
#include "frag/dtype.h"

#define T float
#define I int32_t
#define NAME(f) f##_f32
#define TARGET
#define BYTES 16
#include "dispatch/solve/lanes.inc"
#define T double
#define I int64_t
#define NAME(f) f##_f64
#define TARGET
#define BYTES 16
#include "dispatch/solve/lanes.inc"

#if defined __x86_64__
#define T float
#define I int32_t
#define NAME(f) f##_f32_avx2
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#include "dispatch/solve/lanes.inc"
#define T double
#define I int64_t
#define NAME(f) f##_f64_avx2
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#include "dispatch/solve/lanes.inc"
#define T float
#define I int32_t
#define NAME(f) f##_f32_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,prefer-vector-width=512")))
#define BYTES 64
#include "dispatch/solve/lanes.inc"
#define T double
#define I int64_t
#define NAME(f) f##_f64_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,prefer-vector-width=512")))
#define BYTES 64
#include "dispatch/solve/lanes.inc"
static int bytes_of_vector(void) {
  return __builtin_cpu_supports("avx512dq") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
}
#define VERSION(f) (bytes_of_vector() == 64 ? f##_avx512(x) : bytes_of_vector() == 32 ? f##_avx2(x) : f(x))
#else
static int bytes_of_vector(void) { return 16; }
#define VERSION(f) f(x)
#endif

int nvd_lanes_width(nvm_dtype t) { return t == NVM_F32 || t == NVM_F64 ? bytes_of_vector() / nvg_size(t) : 0; }
int64_t nvd_lanes_scratch(int64_t n, int64_t k) { return n * (n + k) * bytes_of_vector(); }

uint32_t nvd_lanes_solve(const nvd_lanes *x) { return x->type == NVM_F32 ? VERSION(solve_f32) : VERSION(solve_f64); }
