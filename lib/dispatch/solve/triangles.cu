// What substitution by blocks needs beside products: the blocks on the diagonals of L and U, with inverses of their
// parts on the diagonal, and rows in the order of pivots. Behind elements.cu.
enum { BLOCKS, ORDER, ROWS, TILE = 32, POOL = 40960 }; // POOL: bytes of shared memory
// As triangle_task of gpu_substitute.c. Matrices are column-major.
struct Task {
  i64 what;
  T *to, *plain;
  const T *from;
  int *order;
  const i64 *pivot;
  i64 n, ld, block, blocks, k, back;
};

// Element (row, col) of a lower triangular block of L, or of U transposed; behind the end of the matrix those of the
// unit matrix.
static __device__ T element(const Task &j, int of_u, i64 block, i64 row, i64 col) {
  i64 r = block * j.block + row, c = block * j.block + col;
  if (row < col) return number(0);
  if (r >= j.n || (!of_u && row == col)) return number(row == col);
  return of_u ? j.from[c + r * j.ld] : j.from[r + c * j.ld];
}

// Block number b of `blocks` of L, then those of U transposed, whose columns are `block` elements apart, and the blocks
// block * (block + 1): in `plain` as they are, in `to` with tiles on the diagonal inverted.
static __device__ void blocks(const Task &j, char *pool) {
  T(*a)[TILE + 1] = (T(*)[TILE + 1])pool, (*inverse)[TILE + 1] = a + TILE;
  int side = (int)(j.block / TILE), lane = threadIdx.x % TILE, first = threadIdx.x / TILE, step = blockDim.x / TILE;
  i64 tile = blockIdx.x % (side * side), b = blockIdx.x / (side * side);
  i64 row = tile % side * TILE, col = tile / side * TILE, at = b * j.block * (j.block + 1) + row + col * j.block;
  for (int c = first; c < TILE; c += step) {
    a[c][lane] = element(j, b >= j.blocks, b % j.blocks, row + lane, col + c);
    j.plain[at + lane + c * j.block] = j.to[at + lane + c * j.block] = a[c][lane];
  }
  __syncthreads();
  if (row != col || first) return;
  for (int r = 0; r < TILE; r++) { // column `lane` of the inverse
    T sum = number(r == lane);
    for (int c = 0; c < r; c++) sum = minus(sum, times(a[c][r], inverse[c][lane]));
    inverse[r][lane] = lane > r ? number(0) : times(sum, reciprocal(a[r][r]));
  }
  __syncwarp();
  for (int c = 0; c < TILE; c++) j.to[at + lane + c * j.block] = inverse[lane][c];
}

// The order of rows after the exchanges of pivots that are counted from 1; what is no exchange is passed quickly.
static __device__ void order(const Task &j, char *pool) {
  unsigned short *rows = (unsigned short *)pool;
  for (i64 i = threadIdx.x; i < j.n; i += blockDim.x) rows[i] = (unsigned short)i;
  __syncthreads();
  for (i64 base = 0; base < j.n; base += blockDim.x) {
    i64 i = base + threadIdx.x;
    if (!__syncthreads_or(i < j.n && j.pivot[i] != i + 1)) continue;
    for (i = base; !threadIdx.x && i < j.n && i < base + blockDim.x; i++) {
      i64 p = j.pivot[i] - 1;
      unsigned short row = rows[i];
      rows[i] = rows[p];
      rows[p] = row;
    }
    __syncthreads();
  }
  for (i64 i = threadIdx.x; i < j.n; i += blockDim.x) j.order[i] = rows[i];
}

extern "C" __global__ void __launch_bounds__(256) nvm_kernel(const __grid_constant__ Task j) {
  __shared__ __align__(16) char pool[POOL];
  if (j.what == BLOCKS) blocks(j, pool);
  else if (j.what == ORDER) order(j, pool);
  else
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < j.n * j.k; i += (i64)gridDim.x * blockDim.x) {
      i64 row = i % j.n, other = j.order[row], column = i - row;
      if (j.back) j.to[column + other] = j.from[i];
      else j.to[i] = j.from[column + other];
    }
}
