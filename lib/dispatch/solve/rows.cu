// Where rows lie in memory: in front of the kernels that sort and search them.
typedef long long i64;
typedef unsigned long long u64;
#define ALL 0xffffffffu
enum { LANES = 32 };

// As nvd_rows of own_kernel.h.
struct Rows { i64 rank, step, shape[32], stride[32]; };
static __device__ i64 place_of(const Rows &r, i64 row) {
  i64 at = 0;
  for (int d = (int)r.rank - 1; d > 0; row /= r.shape[d--]) at += row % r.shape[d] * r.stride[d];
  return r.rank ? at + row * r.stride[0] : 0;
}
