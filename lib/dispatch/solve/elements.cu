// The arithmetic of a matrix's elements on a GPU, in front of the kernels of solvers. Before this text stand
// real                the type of an element's parts
// PARTS               their number: 2 of complex elements
typedef long long i64;
struct T { real v[PARTS]; };

static __device__ T number(real x) {
  T y;
  y.v[PARTS - 1] = 0;
  y.v[0] = x;
  return y;
}
static __device__ T times(T x, T y) {
  T z;
  z.v[0] = x.v[0] * y.v[0];
  if (PARTS == 2) {
    z.v[0] -= x.v[PARTS - 1] * y.v[PARTS - 1];
    z.v[PARTS - 1] = x.v[0] * y.v[PARTS - 1] + x.v[PARTS - 1] * y.v[0];
  }
  return z;
}
static __device__ T minus(T x, T y) {
  for (int p = 0; p < PARTS; p++) x.v[p] -= y.v[p];
  return x;
}
static __device__ real magnitude(real x) { return x < 0 ? -x : x; }
// By Smith's method, which does not overflow where the result does not.
static __device__ T reciprocal(T x) {
  if (PARTS == 1) return number(1 / x.v[0]);
  int real_first = magnitude(x.v[0]) >= magnitude(x.v[PARTS - 1]);
  real major = x.v[real_first ? 0 : PARTS - 1], minor = x.v[real_first ? PARTS - 1 : 0];
  real ratio = minor / major, under = 1 / (major + minor * ratio);
  T y;
  y.v[PARTS - 1] = -(real_first ? ratio * under : under);
  y.v[0] = real_first ? under : ratio * under;
  return y;
}
