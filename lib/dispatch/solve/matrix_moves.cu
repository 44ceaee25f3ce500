// What happens to matrices between the calls of cuSOLVER. T: an element of PARTS numbers of type `real`.
typedef long long i64;
struct T { real v[PARTS]; };
enum { COPY, TURN, UNIT, SQUARE, TAIL, PIVOTS, NOTE, NOTE_ZERO, REALS, ADDRESSES };
enum { ALL, LOWER, UPPER, IDENTITY };
// As nvd_move of matrix_moves.h. Strides are in elements.
struct Move {
  i64 what;
  void *to;
  const void *from;
  i64 to_matrix, to_row, to_col, from_matrix, from_row, from_col, rows, cols, count, how, conj, rank;
  i64 shape[32], stride[32];
};

static __device__ i64 source_of(const Move &j, i64 b) {
  if (!j.rank) return b * j.from_matrix;
  i64 at = 0;
  for (int d = (int)j.rank - 1; d >= 0; b /= j.shape[d--]) at += b % j.shape[d] * j.stride[d];
  return at;
}
static __device__ T number(real x) {
  T y;
  y.v[PARTS - 1] = 0;
  y.v[0] = x;
  return y;
}
static __device__ T element(const Move &j, const T *from, i64 row, i64 col) {
  if (j.how == IDENTITY) return number(row == col);
  if ((j.how == LOWER && col > row) || (j.how == UPPER && col < row)) return number(0);
  T x = from[row * j.from_row + col * j.from_col];
  if (j.conj && PARTS == 2) x.v[PARTS - 1] = -x.v[PARTS - 1];
  return x;
}

// Element by element, in the order of the rows of the result.
static __device__ void copy(const Move &j, i64 first, i64 step) {
  i64 each = j.rows * j.cols;
  for (i64 i = first; i < each * j.count; i += step) {
    i64 b = i / each, row = i % each / j.cols, col = i % j.cols;
    T x = element(j, (const T *)j.from + (j.from ? source_of(j, b) : 0), row, col);
    ((T *)j.to)[b * j.to_matrix + row * j.to_row + col * j.to_col] = x;
  }
}

// By tiles in shared memory, so that lanes lie along contiguous elements on both sides.
static __device__ void turn(const Move &j) {
  __shared__ T tile[32][33];
  i64 down = (j.rows + 31) / 32, across = (j.cols + 31) / 32;
  int lane = threadIdx.x & 31, first = threadIdx.x >> 5, step = blockDim.x >> 5;
  for (i64 t = blockIdx.x; t < down * across * j.count; t += gridDim.x) {
    i64 b = t / (down * across), row = t % (down * across) / across * 32, col = t % across * 32;
    const T *from = (const T *)j.from + source_of(j, b);
    for (int k = first; k < 32; k += step) {
      int r = j.from_col == 1 ? k : lane, c = j.from_col == 1 ? lane : k;
      if (row + r < j.rows && col + c < j.cols) tile[r][c] = element(j, from, row + r, col + c);
    }
    __syncthreads();
    for (int k = first; k < 32; k += step) {
      int r = j.to_col == 1 ? k : lane, c = j.to_col == 1 ? lane : k;
      if (row + r >= j.rows || col + c >= j.cols) continue;
      ((T *)j.to)[b * j.to_matrix + (row + r) * j.to_row + (col + c) * j.to_col] = tile[r][c];
    }
    __syncthreads();
  }
}

// A column-major factor with C C^H in its lower triangle becomes L below the diagonal, what is there over the diagonal
// of its column, and U above it, the adjoint of what is there times that diagonal.
static __device__ void unit(const Move &j) {
  __shared__ T tile[32][33];
  i64 n = j.rows, side = (n + 31) / 32;
  int lane = threadIdx.x & 31, first = threadIdx.x >> 5, step = blockDim.x >> 5;
  for (i64 t = blockIdx.x; t < side * side * j.count; t += gridDim.x) {
    i64 row = t % (side * side) / side * 32, col = t % side * 32;
    T *a = (T *)j.to + t / (side * side) * j.to_matrix;
    if (row < col) continue;
    for (int c = first; c < 32; c += step) {
      if (row + lane >= n || row + lane <= col + c) continue;
      T x = a[row + lane + (col + c) * n];
      tile[c][lane] = x;
      for (int p = 0; p < PARTS; p++) x.v[p] /= a[(col + c) * (n + 1)].v[0];
      a[row + lane + (col + c) * n] = x;
    }
    __syncthreads();
    for (int r = first; r < 32; r += step) {
      if (row + r >= n || row + r <= col + lane) continue;
      T x = tile[lane][r];
      for (int p = 0; p < PARTS; p++) x.v[p] *= p ? -a[(col + lane) * (n + 1)].v[0] : a[(col + lane) * (n + 1)].v[0];
      a[col + lane + (row + r) * n] = x;
    }
    __syncthreads();
  }
}

static __device__ void square(const Move &j, i64 first, i64 step) {
  i64 n = j.rows;
  for (i64 i = first; i < n * j.count; i += step) {
    T *a = (T *)j.to + i / n * j.to_matrix + i % n * (n + 1);
    *a = number(a->v[0] * a->v[0]);
  }
}

static __device__ i64 pivot_of(const Move &j, i64 b, i64 i, i64 k) {
  return !j.from ? i : (j.conj ? ((const i64 *)j.from)[b * k + i] : ((const int *)j.from)[b * k + i]) - 1;
}

// What stands behind factors; conj: pivots have 64 bits; how: which factors; rank: the order of the rows too.
static __device__ void tail(const Move &j) {
  i64 k = j.rows < j.cols ? j.rows : j.cols;
  for (i64 b = blockIdx.x; b < j.count; b += gridDim.x) {
    T *to = (T *)j.to + b * j.to_matrix + j.rows * j.cols, *order = to + k + 2;
    int odd = 0;
    for (i64 base = 0; base < k; base += blockDim.x) {
      i64 i = base + threadIdx.x, p = i < k ? pivot_of(j, b, i, k) : i;
      if (i < k) to[i] = number((real)p);
      odd += __syncthreads_count(p != i);
    }
    if (threadIdx.x) continue;
    to[k] = number((real)j.how);
    to[k + 1] = number((real)(odd & 1 ? -1 : 1));
    for (i64 i = 0; j.rank && i < j.rows; i++) order[i] = number((real)i);
    for (i64 i = 0; j.rank && i < k; i++) {
      i64 p = pivot_of(j, b, i, k);
      T x = order[i];
      order[i] = order[p];
      order[p] = x;
    }
  }
}

// The pivots of factors as integers counted from 1; rows that do not exist are not exchanged.
static __device__ void pivots(const Move &j, i64 first, i64 step) {
  i64 n = j.rows;
  for (i64 i = first; i < n * j.count; i += step) {
    real x = ((const T *)j.from)[i / n * j.from_matrix + n * n + i % n].v[0];
    i64 p = x >= 0 && x < (real)n ? (i64)x : i % n;
    if (j.conj) ((i64 *)j.to)[i] = p + 1;
    else ((int *)j.to)[i] = (int)p + 1;
  }
}

static __device__ void note_fault(const Move &j, i64 matrix) {
  i64 most = 2147483647, code = matrix * 8 + j.how;
  atomicMax((int *)j.to, (int)(code < most ? most - code : 1));
}

static __device__ void note(const Move &j, i64 first, i64 step) {
  for (i64 i = first; i < j.count; i += step)
    if (((const int *)j.from)[i]) note_fault(j, i);
}

static __device__ void note_zero(const Move &j, i64 first, i64 step) {
  i64 n = j.rows;
  for (i64 i = first; i < n * j.count; i += step) {
    T x = ((const T *)j.from)[source_of(j, i / n) + i % n * (j.from_row + j.from_col)];
    if (x.v[0] == 0 && x.v[PARTS - 1] == 0) note_fault(j, i / n);
  }
}

static __device__ void reals(const Move &j, i64 first, i64 step) {
  for (i64 i = first; i < j.rows * j.count; i += step)
    ((T *)j.to)[i / j.rows * j.to_matrix + i % j.rows] = number(((const real *)j.from)[i]);
}

static __device__ void addresses(const Move &j, i64 first, i64 step) {
  for (i64 i = first; i < j.count; i += step) ((const T **)j.to)[i] = (const T *)j.from + i * j.from_matrix;
}

extern "C" __global__ void __launch_bounds__(256) nvm_kernel(const __grid_constant__ Move j) {
  i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
  switch (j.what) {
  case COPY: copy(j, first, step); break;
  case TURN: turn(j); break;
  case UNIT: unit(j); break;
  case SQUARE: square(j, first, step); break;
  case TAIL: tail(j); break;
  case PIVOTS: pivots(j, first, step); break;
  case NOTE: note(j, first, step); break;
  case NOTE_ZERO: note_zero(j, first, step); break;
  case REALS: reals(j, first, step); break;
  default: addresses(j, first, step);
  }
}
