// Small matrices of a batch: each belongs to LANES lanes of a warp, and each lane keeps one of its rows in registers
// (of ORTHOGONAL, SINGULAR and HERMITIAN one of its columns; of SINGULAR rows where the matrix is wide). Before this
// text stand elements.cu and
//   CHOLESKY, SOLVE, INVERSE, FACTORS, ORTHOGONAL, SINGULAR or HERMITIAN
//   M, N                rows and columns of a matrix; of SINGULAR the larger and the smaller one of the two, of
//                       ORTHOGONAL the columns that lanes keep, those of the matrix or of Q
//   LANES               the least power of two that is not below N (and 2)
//   WARPS               of a block
//   SIDES               right-hand sides that are in registers at a time
//   PLAIN, TURNED       of FACTORS: the numbers of LU of the matrix and of the transposed one
//   ACROSS, QS, RS      of ORTHOGONAL: columns of the matrix; columns of Q, 0 if R alone is wanted; rows of R
//   VECTORS             of HERMITIAN: whether eigenvectors are wanted
//   EPSILON, BIG        the unit of the last place of 1, and a number whose square is far from overflow
// As small_task of gpu_small.c. Strides are in elements.
struct Task {
  void *to;
  const void *a, *b;
  int *failed;
  i64 count, sides, fault, flag, rank, a_row, a_col, b_row, b_col;
  i64 shape[32], a_stride[32], b_stride[32];
};
#define ALL 0xffffffffu
enum { GROUPS = 32 / LANES, PITCH = N + 1 - N % 2 }; // GROUPS: matrices of a warp; an odd pitch keeps banks apart

static __device__ T conj(T x) {
  if (PARTS == 2) x.v[PARTS - 1] = -x.v[PARTS - 1];
  return x;
}
static __device__ T scaled(T x, real by) {
  for (int p = 0; p < PARTS; p++) x.v[p] *= by;
  return x;
}
static __device__ T plus(T x, T y) {
  for (int p = 0; p < PARTS; p++) x.v[p] += y.v[p];
  return x;
}
// |re| + |im|, which is what LAPACK chooses pivots by; infinity for NaN, so that it stays visible.
static __device__ real size_of(T x) {
  real size = magnitude(x.v[0]);
  if (PARTS == 2) size += magnitude(x.v[PARTS - 1]);
  return size == size ? size : (real)1 / (real)0;
}
static __device__ real absolute(T x) {
  real major = magnitude(x.v[0]), minor = magnitude(x.v[PARTS - 1]);
  if (PARTS == 1) return major;
  if (minor > major) {
    real swap = major;
    major = minor, minor = swap;
  }
  real ratio = major > 0 ? minor / major : 0;
  return major * ROOT(1 + ratio * ratio);
}
static __device__ T from_lane(T x, int lane) {
  for (int p = 0; p < PARTS; p++) x.v[p] = __shfl_sync(ALL, x.v[p], lane, LANES);
  return x;
}

// ---- the warp's part of memory
struct Warp { i64 first; int lane, group, row; T *tile; }; // first: its first matrix
static __device__ i64 place(const Task &j, i64 b, const i64 *stride) {
  i64 at = 0;
  for (int d = (int)j.rank - 1; d > 0; b /= j.shape[d--]) at += b % j.shape[d] * stride[d];
  return j.rank ? at + b * stride[0] : 0;
}
// Copies columns from..from + cols of the matrices to the tile, or of their transposes; neighbouring lanes take
// neighbouring elements.
static __device__ void load(const Warp &w, const Task &j, const T *a, const i64 *stride, i64 row, i64 col, int rows,
                            int cols) {
  i64 base = w.first + w.group < j.count ? place(j, w.first + w.group, stride) : 0;
  for (int at = 0; at < GROUPS * rows * cols; at += 32) {
    int e = at + w.lane, g = e / (rows * cols) % GROUPS, r = e / cols % rows, c = e % cols;
    i64 from = __shfl_sync(ALL, base, g * LANES);
    if (e >= GROUPS * rows * cols || w.first + g >= j.count) continue;
    w.tile[(g * M + r) * PITCH + c] = a[from + r * row + c * col];
  }
  __syncwarp();
}
// Writes columns 0..cols of the tile to columns from.. of packed N x wide results.
static __device__ void store(const Warp &w, const Task &j, i64 from, int cols, i64 wide) {
  __syncwarp();
  for (int e = w.lane; e < GROUPS * N * cols; e += 32) {
    int g = e / (N * cols), r = e / cols % N, c = e % cols;
    if (w.first + g < j.count) ((T *)j.to)[((w.first + g) * N + r) * wide + from + c] = w.tile[(g * M + r) * PITCH + c];
  }
  __syncwarp();
}
// Writes rows x cols of the tile to results of `each` elements, `from` elements behind their beginning.
static __device__ void store_part(const Warp &w, const Task &j, i64 each, i64 from, int rows, int cols) {
  __syncwarp();
  for (int e = w.lane; e < GROUPS * rows * cols; e += 32) {
    int g = e / (rows * cols), r = e / cols % rows, c = e % cols;
    if (w.first + g < j.count)
      ((T *)j.to)[(w.first + g) * each + from + r * cols + c] = w.tile[(g * M + r) * PITCH + c];
  }
  __syncwarp();
}
static __device__ void note(const Warp &w, const Task &j, int failed) {
  i64 b = w.first + w.group, most = 2147483647, code = b * 8 + j.fault;
  if (failed && b < j.count) atomicMax(j.failed, (int)(code < most ? most - code : 1));
}

#if defined ORTHOGONAL || defined SINGULAR || defined HERMITIAN
// A power of two that brings the squares of a group's elements into range; undefined: whether one of them is NaN.
static __device__ real scale_of(const T *a, int *undefined) {
  real most = 0;
  int none = 0;
#pragma unroll
  for (int r = 0; r < M; r++)
    for (int p = 0; p < PARTS; p++) {
      real x = magnitude(a[r].v[p]);
      none |= x != x;
      if (x > most) most = x;
    }
#pragma unroll
  for (int by = LANES / 2; by; by /= 2) {
    real other = __shfl_xor_sync(ALL, most, by, LANES);
    none |= __shfl_xor_sync(ALL, none, by, LANES);
    if (other > most) most = other;
  }
  *undefined = none;
  return most > BIG ? 1 / BIG / BIG : most < 1 / BIG ? BIG * BIG : 1;
}
#endif

#ifdef CHOLESKY
// flag: the upper factor, of the upper triangle: the adjoint of the lower one of its adjoint.
static __device__ void run(const Warp &w, const Task &j) {
  int i = w.row, failed = 0;
  T a[N], *tile = w.tile + w.group * M * PITCH;
  load(w, j, (const T *)j.a, j.a_stride, j.flag ? j.a_col : j.a_row, j.flag ? j.a_row : j.a_col, N, N);
#pragma unroll
  for (int c = 0; c < N; c++) a[c] = i < N ? tile[i * PITCH + c] : number(0);
  if (j.flag)
#pragma unroll
    for (int c = 0; c < N; c++) a[c] = conj(a[c]);
#pragma unroll
  for (int p = 0; p < N; p++) {
    real square = __shfl_sync(ALL, a[p].v[0], p, LANES), root = ROOT(square);
    failed |= square <= 0;
    a[p] = i == p ? number(root) : scaled(a[p], 1 / root);
#pragma unroll
    for (int q = p + 1; q < N; q++) a[q] = minus(a[q], times(a[p], conj(from_lane(a[p], q))));
  }
  note(w, j, failed);
  __syncwarp();
#pragma unroll
  for (int c = 0; c < N; c++)
    if (i < N) tile[j.flag ? c * PITCH + i : i * PITCH + c] = c > i ? number(0) : j.flag ? conj(a[c]) : a[c];
  store(w, j, 0, N, N);
}
#endif

#if defined SOLVE || defined INVERSE || defined FACTORS
enum { WORDS = (N + 3) / 4 };
// The lanes of pivots, a byte each.
static __device__ int pivot_of(const unsigned *pivot, int p) { return pivot[p / 4] >> p % 4 * 8 & 255; }

// The lane with the greatest of the sizes in a group, the first of equal ones.
static __device__ int find_pivot(real *most, int i) {
  int at = i;
#pragma unroll
  for (int by = LANES / 2; by; by /= 2) {
    real other = __shfl_xor_sync(ALL, *most, by, LANES);
    int where = __shfl_xor_sync(ALL, at, by, LANES);
    if (other > *most || (other == *most && where < at)) *most = other, at = where;
  }
  return at;
}
#endif

#ifdef INVERSE
// By Gauss and Jordan, in place, with partial pivoting by rows that stay in their lanes: column p gives way to that of
// the unit matrix which belongs to the pivot's row. So row `step` of the inverse is in this lane, and its column
// pivot_of(p) in a[p].
static __device__ void run(const Warp &w, const Task &j) {
  int i = w.row, step = N, singular = 0;
  unsigned pivot[WORDS];
  T a[N], *tile = w.tile + w.group * M * PITCH;
  load(w, j, (const T *)j.a, j.a_stride, j.a_row, j.a_col, N, N);
#pragma unroll
  for (int c = 0; c < N; c++) a[c] = i < N ? tile[i * PITCH + c] : number(0);
#pragma unroll
  for (int k = 0; k < WORDS; k++) pivot[k] = 0;
#pragma unroll
  for (int p = 0; p < N; p++) {
    real most = i < N && step == N ? size_of(a[p]) : -1;
    int at = find_pivot(&most, i);
    singular |= most == 0;
    pivot[p / 4] |= (unsigned)at << p % 4 * 8;
    T over = reciprocal(from_lane(a[p], at)), by = times(a[p], over);
    if (i == at) step = p, by = scaled(over, -1);
#pragma unroll
    for (int q = 0; q < N; q++) {
      if (q == p) continue;
      T u = from_lane(a[q], at);
      a[q] = minus(i == at ? number(0) : a[q], times(by, u));
    }
    a[p] = scaled(by, -1);
  }
  note(w, j, singular);
  __syncwarp();
#pragma unroll
  for (int c = 0; c < N; c++)
    if (i < N) tile[step * PITCH + pivot_of(pivot, c)] = a[c];
  store(w, j, 0, N, N);
}
#endif

#if defined SOLVE || defined FACTORS
struct Factors {
  T a[N], over;          // the lane's row of L and U; the reciprocal of its pivot
  unsigned pivot[WORDS];
  int step;              // in which the lane's row was the pivot; N: the lane has none
};

// LU by rows that stay in their lanes; a column without a pivot is left as it is. Returns whether the matrix is
// singular.
static __device__ int factorise(Factors &f, int i) {
  int singular = 0;
  f.step = N;
#pragma unroll
  for (int k = 0; k < WORDS; k++) f.pivot[k] = 0;
#pragma unroll
  for (int p = 0; p < N; p++) {
    real most = i < N && f.step == N ? size_of(f.a[p]) : -1;
    int at = find_pivot(&most, i);
    singular |= most == 0;
    f.pivot[p / 4] |= (unsigned)at << p % 4 * 8;
    T over = from_lane(f.a[p], at);
    over = reciprocal(most == 0 ? number(1) : over);
    if (i == at) f.step = p, f.over = over;
    int below = f.step == N;
    if (below) f.a[p] = times(f.a[p], over);
#pragma unroll
    for (int q = p + 1; q < N; q++) {
      T u = from_lane(f.a[q], at);
      if (below) f.a[q] = minus(f.a[q], times(f.a[p], u));
    }
  }
  return singular;
}
#endif

#ifdef FACTORS
// What stands behind the factors: the row with which row p was exchanged in step p, which factors they are, the sign of
// the permutation, and, if flag says so, the rows in their order. at: where the lane's row is after the exchanges.
static __device__ void store_tail(const Warp &w, const Task &j, const Factors &f, T *to) {
  int i = w.row, at = i, mine = 0, odd = 0;
#pragma unroll
  for (int p = 0; p < N; p++) {
    int pivot = pivot_of(f.pivot, p), q = __shfl_sync(ALL, at, pivot, LANES);
    if (i == p) mine = q;
    at = i == pivot ? p : at == p ? q : at;
    odd ^= q != p;
  }
  if (w.first + w.group >= j.count) return;
  if (i < N) to[i] = number(mine);
  if (i < N && j.flag) to[N + 2 + at] = number(i);
  if (!i) to[N] = number(j.flag ? PLAIN : TURNED), to[N + 1] = number(odd ? -1 : 1);
}

// flag: LU of the matrix, else of the transposed one, whose factors are stored transposed.
static __device__ void run(const Warp &w, const Task &j) {
  int i = w.row;
  i64 each = N * N + N + 2 + (j.flag ? N : 0);
  T *tile = w.tile + w.group * M * PITCH;
  Factors f;
  load(w, j, (const T *)j.a, j.a_stride, j.flag ? j.a_row : j.a_col, j.flag ? j.a_col : j.a_row, N, N);
#pragma unroll
  for (int c = 0; c < N; c++) f.a[c] = i < N ? tile[i * PITCH + c] : number(0);
  factorise(f, i);
  __syncwarp();
#pragma unroll
  for (int c = 0; c < N; c++)
    if (i < N) tile[j.flag ? f.step * PITCH + c : c * PITCH + f.step] = f.a[c];
  store_part(w, j, each, 0, N, N);
  store_tail(w, j, f, (T *)j.to + (w.first + w.group) * each + N * N);
}
#endif

#ifdef SOLVE
// Solves for SIDES right-hand sides: those of the lane's row become those of row i of the solution.
static __device__ void substitute(const Factors &f, int i, T *b) {
  T x[SIDES];
#pragma unroll
  for (int p = 0; p < N; p++)
#pragma unroll
    for (int s = 0; s < SIDES; s++) {
      T y = from_lane(b[s], pivot_of(f.pivot, p));
      if (f.step > p) b[s] = minus(b[s], times(f.a[p], y));
    }
#pragma unroll
  for (int p = N - 1; p >= 0; p--)
#pragma unroll
    for (int s = 0; s < SIDES; s++) {
      T y = from_lane(times(b[s], f.over), pivot_of(f.pivot, p));
      if (f.step < p) b[s] = minus(b[s], times(f.a[p], y));
      if (i == p) x[s] = y;
    }
#pragma unroll
  for (int s = 0; s < SIDES; s++) b[s] = x[s];
}

static __device__ void run(const Warp &w, const Task &j) {
  int i = w.row;
  T *row = w.tile + (w.group * M + i) * PITCH;
  Factors f;
  load(w, j, (const T *)j.a, j.a_stride, j.a_row, j.a_col, N, N);
#pragma unroll
  for (int c = 0; c < N; c++) f.a[c] = i < N ? row[c] : number(0);
  f.over = number(0);
  note(w, j, factorise(f, i));
  for (i64 from = 0; from < j.sides; from += N) {
    int cols = j.sides - from < N ? (int)(j.sides - from) : N;
    __syncwarp();
    load(w, j, (const T *)j.b + from * j.b_col, j.b_stride, j.b_row, j.b_col, N, cols);
    for (int c = 0; c < cols; c += SIDES) {
      T b[SIDES];
#pragma unroll
      for (int s = 0; s < SIDES; s++)
        b[s] = i >= N || c + s >= cols ? number(0) : row[c + s];
      substitute(f, i, b);
#pragma unroll
      for (int s = 0; s < SIDES; s++)
        if (i < N && c + s < cols) row[c + s] = b[s];
    }
    store(w, j, from, cols, j.sides);
  }
}
#endif

#ifdef ORTHOGONAL
enum { RANK = M < ACROSS ? M : ACROSS };
// Householder's reflections I - tau v v^H, as LAPACK has them: v[p] is 1, what is below it replaces column p.
// Finds that of column p, in its lane; returns tau, which in other lanes means nothing.
static __device__ T reflect(T *a, int p, int mine) {
  real below = 0;
#pragma unroll
  for (int r = 0; r < M; r++)
    for (int k = 0; k < PARTS && r > p; k++) below += a[r].v[k] * a[r].v[k];
  T head = a[p];
  real imaginary = PARTS == 2 ? head.v[PARTS - 1] : 0;
  real length = ROOT(head.v[0] * head.v[0] + imaginary * imaginary + below), beta = head.v[0] < 0 ? length : -length;
  int none = below == 0 && imaginary == 0;
  T tau = scaled(minus(number(beta), head), none ? 0 : 1 / beta);
  T over = none ? number(0) : reciprocal(minus(head, number(beta)));
#pragma unroll
  for (int r = 0; r < M; r++)
    if (mine && r > p) a[r] = times(a[r], over);
  if (mine && !none) a[p] = number(beta);
  return tau;
}

// Applies the reflection of column p of a to the lane's column x, if `applies`.
static __device__ void apply(T *x, const T *a, int p, T tau, int applies) {
  T sum = x[p];
#pragma unroll
  for (int r = 0; r < M; r++)
    if (r > p) sum = plus(sum, times(conj(from_lane(a[r], p)), x[r]));
  sum = times(tau, sum);
  if (applies) x[p] = minus(x[p], sum);
#pragma unroll
  for (int r = 0; r < M; r++) {
    if (r <= p) continue;
    T v = from_lane(a[r], p);
    if (applies) x[r] = minus(x[r], times(v, sum));
  }
}

static __device__ void run(const Warp &w, const Task &j) {
  int i = w.row, undefined;
  i64 each = M * QS + RS * ACROSS;
  T a[M], tau = number(0), *tile = w.tile + w.group * M * PITCH;
  load(w, j, (const T *)j.a, j.a_stride, j.a_row, j.a_col, M, ACROSS);
#pragma unroll
  for (int r = 0; r < M; r++) a[r] = i < ACROSS && w.first + w.group < j.count ? tile[r * PITCH + i] : number(0);
  real scale = scale_of(a, &undefined);
#pragma unroll
  for (int r = 0; r < M; r++) a[r] = scaled(a[r], scale);
#pragma unroll
  for (int p = 0; p < RANK; p++) {
    T found = reflect(a, p, i == p);
    if (i == p) tau = found;
    apply(a, a, p, conj(from_lane(found, p)), i > p);
  }
  __syncwarp();
#pragma unroll
  for (int r = 0; r < RS; r++)
    if (i < ACROSS) tile[r * PITCH + i] = r <= i ? scaled(a[r], 1 / scale) : number(0);
  store_part(w, j, each, M * QS, RS, ACROSS);
#if QS
  T q[M];
#pragma unroll
  for (int r = 0; r < M; r++) q[r] = number(r == i);
#pragma unroll
  for (int p = RANK - 1; p >= 0; p--) apply(q, a, p, from_lane(tau, p), 1);
#pragma unroll
  for (int r = 0; r < M; r++)
    if (i < QS) tile[r * PITCH + i] = q[r];
  store_part(w, j, each, 0, M, QS);
#endif
}
#endif

#if defined SINGULAR || defined HERMITIAN
// One-sided Jacobi's method (Hestenes 1958; Brent and Luk 1985): pairs of columns are rotated until all are orthogonal;
// their lengths are the singular values.
enum { PLAYERS = N + N % 2, SWEEPS = 30 };
// Whom column i meets in a round of the tournament, in which each meets each once: i + partner = round mod PLAYERS - 1,
// and the one who would meet itself meets the last.
static __device__ int partner_of(int i, int round) {
  if (i >= PLAYERS) return i;
  if (i == PLAYERS - 1) return round * (PLAYERS / 2) % (PLAYERS - 1);
  int other = (round - i + PLAYERS - 1) % (PLAYERS - 1);
  return other == i ? PLAYERS - 1 : other;
}

static __device__ real square_of(const T *a) {
  real sum = 0;
#pragma unroll
  for (int r = 0; r < M; r++)
    for (int p = 0; p < PARTS; p++) sum += a[r].v[p] * a[r].v[p];
  return sum;
}

// The Frobenius norm of a group's matrix.
static __device__ real whole_length(const T *a) {
  real sum = square_of(a);
#pragma unroll
  for (int by = LANES / 2; by; by /= 2) sum += __shfl_xor_sync(ALL, sum, by, LANES);
  return ROOT(sum);
}

// Rotates the lane's column and its partner's, in both lanes. Returns whether they were not orthogonal. A column that
// is not longer than `noise` counts as orthogonal to all: it is what rounding left of one that depends on others.
static __device__ int rotate(T *a, int i, int partner, real noise) {
  T other[M], product = number(0);
#pragma unroll
  for (int r = 0; r < M; r++) {
    other[r] = from_lane(a[r], partner);
    product = plus(product, times(conj(a[r]), other[r]));
  }
  real mine = square_of(a), its = __shfl_sync(ALL, mine, partner, LANES), length = absolute(product);
  real my_length = ROOT(mine), its_length = ROOT(its);
  int turns = length > EPSILON * ROOT((real)M) * my_length * its_length && my_length > noise && its_length > noise;
  real zeta = (its - mine) / (2 * length), t = 1 / (magnitude(zeta) + ROOT(1 + zeta * zeta));
  if (zeta < 0) t = -t;
  real cosine = 1 / ROOT(1 + t * t), sine = t * cosine;
  T phase = scaled(conj(product), 1 / length); // makes the product of the two real
  int first = i < partner ? i : partner;       // both take what this lane found
  turns = __shfl_sync(ALL, turns, first, LANES);
  cosine = __shfl_sync(ALL, cosine, first, LANES);
  sine = __shfl_sync(ALL, sine, first, LANES);
  phase = from_lane(phase, first);
  if (!turns || i == partner) return 0;
  T by_mine = i < partner ? number(cosine) : scaled(phase, cosine);
  T by_other = i < partner ? scaled(phase, -sine) : number(sine);
#pragma unroll
  for (int r = 0; r < M; r++) a[r] = plus(times(by_mine, a[r]), times(by_other, other[r]));
  return 1;
}

// Rotates all columns until they are orthogonal. Returns 1 if they are not after all sweeps.
static __device__ int orthogonalise(T *a, int i, real noise) {
  int again = 1, failed = 0;
  for (int sweep = 0; again && sweep < SWEEPS; sweep++) {
    int turned = 0;
    for (int round = 0; round < PLAYERS - 1; round++) turned |= rotate(a, i, partner_of(i, round), noise);
    again = __any_sync(ALL, turned);
    if (sweep == SWEEPS - 1) failed = turned;
  }
  return failed;
}
#endif

#ifdef HERMITIAN
// The matrix is shifted until it is definite: then the columns that one-sided rotations leave are eigenvectors times
// eigenvalues. flag: the upper triangle is read.
static __device__ void run(const Warp &w, const Task &j) {
  int i = w.row, failed, rank = 0, there = i < N && w.first + w.group < j.count;
  T a[M], *tile = w.tile + w.group * M * PITCH;
  load(w, j, (const T *)j.a, j.a_stride, j.a_row, j.a_col, M, N);
#pragma unroll
  for (int r = 0; r < M; r++) {
    int known = j.flag ? r <= i : r >= i;
    a[r] = !there ? number(0) : known ? tile[r * PITCH + i] : conj(tile[i * PITCH + r]);
    if (r == i) a[r] = number(a[r].v[0]);
  }
  real scale = scale_of(a, &failed);
#pragma unroll
  for (int r = 0; r < M; r++) a[r] = scaled(a[r], scale);
  real size = whole_length(a), shift = size > 0 ? (real)1.5 * size : 1;
  failed |= !(size < (real)1 / (real)0);
#pragma unroll
  for (int r = 0; r < M; r++)
    if (r == i) a[r].v[0] += shift;
  failed |= orthogonalise(a, i, 0);
  note(w, j, failed);
  real length = ROOT(square_of(a)), value = (length - shift) / scale;
  real key = value == value ? value : (real)1 / (real)0;
#pragma unroll
  for (int k = 0; k < N; k++) {
    real other = __shfl_sync(ALL, key, k, LANES);
    rank += other < key || (other == key && k < i);
  }
  if (!VECTORS) {
    if (there) ((real *)j.to)[(w.first + w.group) * N + rank] = value;
    return;
  }
  __syncwarp();
  if (there) ((T *)j.to)[(w.first + w.group) * (N + N * N) + rank] = number(value);
#pragma unroll
  for (int r = 0; r < M; r++)
    if (there) tile[r * PITCH + rank] = scaled(a[r], 1 / length);
  store_part(w, j, N + N * N, N, N, N);
}
#endif

#ifdef SINGULAR
// flag: the matrix is wide, so its rows take the place of columns.
static __device__ void run(const Warp &w, const Task &j) {
  int i = w.row, failed, rank = 0;
  T a[M];
  if (j.flag) load(w, j, (const T *)j.a, j.a_stride, j.a_col, j.a_row, M, N);
  else load(w, j, (const T *)j.a, j.a_stride, j.a_row, j.a_col, M, N);
#pragma unroll
  for (int r = 0; r < M; r++)
    a[r] = i < N && w.first + w.group < j.count ? w.tile[(w.group * M + r) * PITCH + i] : number(0);
  real scale = scale_of(a, &failed);
#pragma unroll
  for (int r = 0; r < M; r++) a[r] = scaled(a[r], scale);
  real noise = EPSILON * M * whole_length(a);
  failed |= orthogonalise(a, i, noise);
  note(w, j, failed);
  real length = ROOT(square_of(a)) / scale;
  real key = length == length ? length : (real)1 / (real)0;
#pragma unroll
  for (int k = 0; k < N; k++) {
    real other = __shfl_sync(ALL, key, k, LANES);
    rank += other > key || (other == key && k < i);
  }
  if (i < N && w.first + w.group < j.count) ((real *)j.to)[(w.first + w.group) * N + rank] = length;
}
#endif

// What the kernel does; its head, with the bound of its threads, stands behind this text.
static __device__ void run_warp(const Task &j) {
  __shared__ T tiles[WARPS][GROUPS * M * PITCH];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Warp w = { ((i64)blockIdx.x * WARPS + warp) * GROUPS, lane, lane / LANES, lane % LANES, tiles[warp] };
  if (w.first < j.count) run(w, j);
}
