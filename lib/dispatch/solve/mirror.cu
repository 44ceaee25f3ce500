// Copies what is below the diagonal of column-major matrices to its mirror image above it, by tiles in shared memory.
// Before this text stand `real` and PARTS, the type and number of an element's parts, TILE, and CONJ: whether the
// images are conjugated.
typedef long long i64;
struct __align__(sizeof(real) * PARTS) T { real v[PARTS]; };
// As mirror_task of half_product.c; strides are in elements.
struct Task {
  void *data;
  i64 n, ld, tiles, rank, extent[8], stride[8];
};

enum { STEP = 256 / TILE, TURNS = TILE / STEP };

extern "C" __global__ void __launch_bounds__(256) nvm_kernel(const __grid_constant__ Task j) {
  __shared__ T tile[TILE][TILE + 1];
  i64 each = j.tiles * (j.tiles + 1) / 2, b = blockIdx.x / each, t = blockIdx.x % each, at = 0;
  for (int d = (int)j.rank - 1; d >= 0; b /= j.extent[d--]) at += b % j.extent[d] * j.stride[d];
  // tile number t of the lower triangle, row by row
  i64 down = (i64)((sqrt(8.0 * (double)t + 1.0) - 1.0) * 0.5);
  while (down * (down + 1) / 2 > t) down--;
  while ((down + 1) * (down + 2) / 2 <= t) down++;
  i64 row = down * TILE, col = (t - down * (down + 1) / 2) * TILE;
  T *a = (T *)j.data + at;
  int lane = threadIdx.x % TILE;
#pragma unroll
  for (int k = 0; k < TURNS; k++) {
    int c = threadIdx.x / TILE + k * STEP;
    if (row + lane < j.n && col + c < j.n) tile[c][lane] = a[row + lane + (col + c) * j.ld];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < TURNS; k++) {
    int r = threadIdx.x / TILE + k * STEP;
    if (row + r >= j.n || col + lane >= j.n || (row == col && lane >= r)) continue;
    T x = tile[lane][r];
    if (CONJ) x.v[PARTS - 1] = -x.v[PARTS - 1];
    a[col + lane + (row + r) * j.ld] = x;
  }
}
