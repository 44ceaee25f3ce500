/* Rewrites Fourier transforms for a device whose kernels have only some numbers of points. A length whose primes are
   small is computed in four steps: with n = n1 n2, transforms of n1 points along the columns of n1 rows, factors, and
   transforms of n2 points along the rows, whose results lie transposed. Any other is a convolution with a chirp
   (Bluestein), in float64. Real numbers are taken as complex ones. Transpositions, paddings and factors are index maps
   and elementwise operations, which the planner fuses with the transforms beside them. The planner decides which
   transforms are rewritten. */
#include <string.h>
#include "graph/lower.h"

typedef struct rewriter { nvg_lower *l; const nvg_dft_ways *w; } rewriter;

static int has(const rewriter *r, nvm_dtype t, int64_t n) { return r->w->has(r->w->kernels, t, n); }

/* ---- pieces */
static int64_t last_extent(const nvg_val *v) { return v->shape[v->rank - 1]; }

static int add_named(rewriter *r, const char *frag, nvm_dtype t, const int *in, int nin, const nvg_val *like) {
  r->l->op = NVG_OP_COMPLEX;
  return nvg_add_named(r->l, frag, t, in, nin, like);
}

static int add_multiply(rewriter *r, int x, int y) {
  const nvg_val v = *nvg_at(r->l, x);
  return add_named(r, nvg_parts(v.dtype) == 2 ? "c.multiply" : "multiply", v.dtype, (int[]){ x, y }, 2, &v);
}

static int add_transform(rewriter *r, int x, nvg_dft kind, int64_t n, const char *name) {
  const nvg_val v = *nvg_at(r->l, x);
  int64_t attr[2] = { kind, n };
  nvg_val c = { .kind = NVG_VROUTINE,
                .dtype = v.dtype,
                .rank = v.rank,
                .shape = v.shape,
                .nin = 1,
                .in = &x,
                .attr = attr,
                .nattr = 2 };
  r->l->op = NVG_OP_DFT;
  r->l->name = name;
  return nvg_add(r->l, &c);
}

static int swap_last(rewriter *r, int x) {
  int64_t axes[NVM_MAX_RANK];
  int rank = nvg_at(r->l, x)->rank;
  for (int d = 0; d < rank; d++) axes[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
  return nvg_add_permute(r->l, x, axes);
}

/* The first `count` elements of the last dimension, or that many from `start` backwards. */
static int take_last(rewriter *r, int x, int64_t start, int64_t step, int64_t count) {
  const nvg_val v = *nvg_at(r->l, x);
  int64_t attr[2 * NVM_MAX_RANK], shape[NVM_MAX_RANK];
  for (int d = 0; d < v.rank; d++) attr[2 * d] = 0, attr[2 * d + 1] = 1, shape[d] = v.shape[d];
  attr[2 * v.rank - 2] = start;
  attr[2 * v.rank - 1] = step;
  shape[v.rank - 1] = count;
  return nvg_add_slice(r->l, x, attr, shape);
}

static int add_int(rewriter *r, int64_t n) { return nvg_add_const(r->l, NVM_I64, (uint64_t)n, 0); }

/* scale exp(2 pi i at / n), as a value of dtype t in the shape of `like`; at: from 0 to n */
static int add_roots(rewriter *r, nvm_dtype t, double scale, int at, int64_t n, const nvg_val *like, const char *name) {
  int in[3] = { nvg_add_number(r->l, nvg_real_of(t), scale), at, add_int(r, n) };
  r->l->name = name;
  return add_named(r, "root_of_unity", t, in, 3, like);
}

static int add_difference(rewriter *r, int x, int y, const nvg_val *like) {
  return add_named(r, "subtract", NVM_I64, (int[]){ x, y }, 2, like);
}

/* ---- four steps */
static int is_smooth(int64_t n) {
  static const int prime[] = { 2, 3, 5, 7, 11, 13 };
  for (size_t i = 0; i < sizeof prime / sizeof *prime; i++)
    while (n % prime[i] == 0) n /= prime[i];
  return n == 1;
}

/* The number of rows: kernels have it and, if there is such a one, that of the columns too, with both about as long;
   else the greatest one. 0: there is none. */
static int64_t rows_of(const rewriter *r, nvm_dtype t, int64_t n) {
  enum { MOST = 1 << 15 };
  int64_t root = 1, greatest = 0;
  while (root < MOST && (root + 1) * (root + 1) <= n) root++;
  for (int64_t d = root; d > 1; d--)
    if (n % d == 0 && has(r, t, d) && has(r, t, n / d)) return d;
  for (int64_t d = 2; d <= MOST && d < n; d++)
    if (n % d == 0 && has(r, t, d)) greatest = d;
  return greatest;
}

static int transform_rows(rewriter *r, int x, nvg_dft kind, const char *name);

/* Splits the last dimension into rows and columns; of very many dimensions the others become one. */
static int split_last(rewriter *r, int x, int64_t rows) {
  const nvg_val v = *nvg_at(r->l, x);
  int64_t shape[NVM_MAX_RANK], n = last_extent(&v);
  int rank = v.rank < NVM_MAX_RANK ? v.rank + 1 : 3;
  for (int d = 0; d < rank - 2; d++) shape[d] = v.rank < NVM_MAX_RANK ? v.shape[d] : v.size / n;
  shape[rank - 2] = rows;
  shape[rank - 1] = n / rows;
  return nvg_add_reshape(r->l, x, rank, shape);
}

/* Element (j, k) of the results of columns j times exp(-+ 2 pi i j k / n) */
static int add_twiddles(rewriter *r, int x, nvg_dft kind, int64_t n) {
  const nvg_val v = *nvg_at(r->l, x);
  int j = nvg_add_iota(r->l, v.rank, v.shape, v.rank - 2), k = nvg_add_iota(r->l, v.rank, v.shape, v.rank - 1);
  r->l->name = "twiddle";
  int at = add_multiply(r, j, k);
  if (kind == NVG_DFT_FORWARD) at = add_difference(r, add_int(r, n), at, &v);
  return add_multiply(r, x, add_roots(r, v.dtype, 1, at, n, &v, "twiddle"));
}

static int four_steps(rewriter *r, int x, nvg_dft kind, int64_t rows, const char *name) {
  const nvg_val v = *nvg_at(r->l, x);
  x = swap_last(r, split_last(r, x, rows));
  x = add_twiddles(r, transform_rows(r, x, kind, name), kind, last_extent(&v));
  x = swap_last(r, transform_rows(r, swap_last(r, x), kind, name));
  return nvg_add_reshape(r->l, x, v.rank, v.shape);
}

/* ---- Bluestein: with 2 j k = j^2 + k^2 - (k - j)^2, element k is chirp(k) times the convolution of chirp(j) x(j) with
   the conjugate of the chirp, which transforms of a greater number of points compute. */
/* scale exp(-+ pi i at^2 / n), as c128; backwards: the upper sign's conjugate */
static int add_chirp(rewriter *r, double scale, int at, int64_t n, int backwards, const nvg_val *like) {
  int square = add_multiply(r, at, at), period = add_int(r, 2 * n);
  square = add_named(r, "remainder", NVM_I64, (int[]){ square, period }, 2, like);
  if (!backwards) square = add_difference(r, period, square, like);
  return add_roots(r, NVM_C128, scale, square, 2 * n, like, "chirp");
}

/* A number of points that holds the convolution: 4, 5, 6 or 7 times a power of two. */
static int64_t points_around(int64_t n) {
  int64_t power = 1;
  while (8 * power < 2 * n - 1) power *= 2;
  for (int64_t i = 4; i < 8; i++)
    if (i * power >= 2 * n - 1) return i * power;
  return 8 * power;
}

/* The transform of the conjugate chirp: element j of m is that of j or m - j, zero where both are n or more. */
static int add_filter(rewriter *r, int64_t n, int64_t m, int backwards, const char *name) {
  nvg_val like = { .rank = 1, .shape = &m };
  int j = nvg_add_iota(r->l, 1, &m, 0);
  int from_end = add_difference(r, add_int(r, m), j, &like);
  int at = add_named(r, "minimum", NVM_I64, (int[]){ j, from_end }, 2, &like);
  int is_inside = add_named(r, "less", NVM_BOOL, (int[]){ at, add_int(r, n) }, 2, &like);
  int in[3] = { is_inside, add_chirp(r, 1, at, n, !backwards, &like), nvg_add_number(r->l, NVM_C128, 0) };
  return transform_rows(r, add_named(r, "c.where", NVM_C128, in, 3, &like), NVG_DFT_FORWARD, name);
}

static int pad_last(rewriter *r, int x, int64_t n) {
  const nvg_val v = *nvg_at(r->l, x);
  int64_t shape[NVM_MAX_RANK], at[NVM_MAX_RANK] = { 0 };
  memcpy(shape, v.shape, sizeof *shape * (size_t)v.rank);
  shape[v.rank - 1] = n;
  int in[2] = { x, nvg_add_number(r->l, v.dtype, 0) };
  nvg_val c = {
    .kind = NVG_VPAD, .dtype = v.dtype, .rank = v.rank, .shape = shape, .nin = 2, .in = in, .attr = at, .nattr = v.rank
  };
  return nvg_add(r->l, &c);
}

static int add_as_rows(rewriter *r, int x, const nvg_val *like) {
  int64_t shape[NVM_MAX_RANK];
  for (int d = 0; d < like->rank; d++) shape[d] = d < like->rank - 1 ? 1 : last_extent(like);
  return nvg_add_expand(r->l, nvg_add_reshape(r->l, x, like->rank, shape), like->rank, like->shape);
}

static int convolve(rewriter *r, int x, nvg_dft kind, const char *name) {
  const nvg_val v = *nvg_at(r->l, x);
  int64_t n = last_extent(&v), m = points_around(n);
  int backwards = kind == NVG_DFT_INVERSE, filter = add_filter(r, n, m, backwards, name);
  r->l->name = "chirp";
  int j = nvg_add_iota(r->l, v.rank, v.shape, v.rank - 1);
  x = add_multiply(r, nvg_add_cast(r->l, x, NVM_C128), add_chirp(r, 1, j, n, backwards, &v));
  x = transform_rows(r, pad_last(r, x, m), NVG_DFT_FORWARD, name);
  const nvg_val padded = *nvg_at(r->l, x);
  x = transform_rows(r, add_multiply(r, x, add_as_rows(r, filter, &padded)), NVG_DFT_INVERSE, name);
  x = add_multiply(r, take_last(r, x, 0, 1, n), add_chirp(r, 1 / (double)m, j, n, backwards, &v));
  return nvg_add_cast(r->l, x, v.dtype);
}

/* ---- any transform of complex numbers along the last dimension */
static int transform_rows(rewriter *r, int x, nvg_dft kind, const char *name) {
  const nvg_val v = *nvg_at(r->l, x);
  int64_t n = last_extent(&v), rows = n == 1 || has(r, v.dtype, n) || !is_smooth(n) ? 0 : rows_of(r, v.dtype, n);
  if (n == 1) return x;
  if (has(r, v.dtype, n)) return add_transform(r, x, kind, n, name);
  return rows ? four_steps(r, x, kind, rows, name) : convolve(r, x, kind, name);
}

/* ---- dimensions in another order */
/* A permutation as a value of its own, also of a permuted value */
static int put_permute(rewriter *r, int x, const int64_t *axes) {
  const nvg_val v = *nvg_at(r->l, x);
  int64_t shape[NVM_MAX_RANK];
  for (int d = 0; d < v.rank; d++) shape[d] = v.shape[axes[d]];
  nvg_val c = { .kind = NVG_VPERMUTE,
                .dtype = v.dtype,
                .rank = v.rank,
                .shape = shape,
                .nin = 1,
                .in = &x,
                .attr = axes,
                .nattr = v.rank };
  return nvg_add(r->l, &c);
}

static int is_transform(const nvg_val *v) { return v->kind == NVG_VROUTINE && v->op == NVG_OP_DFT; }

/* The permutation of what transform x reads, through maps and transforms of one shape; NULL: it reads none. */
static const int64_t *order_read(const rewriter *r, int x) {
  const nvg_val *v = nvg_at(r->l, x);
  while (is_transform(v) || v->kind == NVG_VMAP) {
    const nvg_val *from = NULL;
    for (int j = 0; j < v->nin && !from; j++)
      if (nvg_at(r->l, v->in[j])->size == v->size) from = nvg_at(r->l, v->in[j]);
    if (!from) return NULL;
    v = from;
  }
  return v->kind == NVG_VPERMUTE ? v->attr : NULL;
}

/* If x is a permuted transform: by way of its result in the order of what it reads, a value that may be stored in its
   place: along the last dimension of that order memory is contiguous before both transforms. Else x. */
static int by_natural_order(rewriter *r, int x) {
  const nvg_val v = *nvg_at(r->l, x);
  int64_t back[NVM_MAX_RANK], axes[NVM_MAX_RANK];
  int permuted = v.kind == NVG_VPERMUTE && is_transform(nvg_at(r->l, *v.in));
  const int64_t *order = permuted ? order_read(r, *v.in) : NULL;
  if (!order) return x;
  memcpy(axes, order, sizeof *axes * (size_t)v.rank);
  for (int d = 0; d < v.rank; d++) back[axes[d]] = d;
  int natural = put_permute(r, *v.in, back);
  for (int d = 0; d < v.rank; d++) axes[d] = order[v.attr[d]];
  return put_permute(r, natural, axes);
}

/* ---- real numbers */
/* All n elements of a transform of real numbers, of its first n / 2 + 1. Imaginary parts that no real numbers have are
   left out. */
static int whole_of(rewriter *r, int x, int64_t n) {
  const nvg_val v = *nvg_at(r->l, x);
  nvm_dtype t = nvg_real_of(v.dtype);
  int k = nvg_add_iota(r->l, v.rank, v.shape, v.rank - 1), in[3];
  int to_middle = add_difference(r, add_int(r, n), add_multiply(r, k, add_int(r, 2)), &v);
  in[0] = add_named(r, "equal", NVM_BOOL, (int[]){ add_multiply(r, k, to_middle), add_int(r, 0) }, 2, &v);
  in[1] = nvg_add_number(r->l, t, 0);
  in[2] = add_named(r, "c.imag", t, &x, 1, &v);
  int pair[2] = { add_named(r, "c.real", t, &x, 1, &v), add_named(r, "where", t, in, 3, &v) };
  int64_t shape[NVM_MAX_RANK], axis = v.rank - 1, rest = n - last_extent(&v);
  int first = add_named(r, "make", v.dtype, pair, 2, &v);
  if (!rest) return first;
  int back = take_last(r, x, rest, -1, rest);
  int both[2] = { first, add_named(r, "c.conj", v.dtype, &back, 1, nvg_at(r->l, back)) };
  memcpy(shape, v.shape, sizeof *shape * (size_t)v.rank);
  shape[axis] = n;
  nvg_val c = { .kind = NVG_VCONCAT,
                .dtype = v.dtype,
                .rank = v.rank,
                .shape = shape,
                .nin = 2,
                .in = both,
                .attr = &axis,
                .nattr = 1 };
  return nvg_add(r->l, &c);
}

static int made(rewriter *r, const nvg_val *v, int x) {
  nvg_dft kind = (nvg_dft)v->attr[0];
  if (kind == NVG_DFT_REAL) {
    if (has(r, v->dtype, v->attr[1])) return nvg_make_add(&r->l->make, v);
    x = transform_rows(r, nvg_add_cast(r->l, x, v->dtype), NVG_DFT_FORWARD, v->name);
    return take_last(r, x, 0, 1, last_extent(v));
  }
  if (kind != NVG_DFT_TO_REAL) return transform_rows(r, x, kind, v->name);
  x = transform_rows(r, whole_of(r, by_natural_order(r, x), v->attr[1]), NVG_DFT_INVERSE, v->name);
  r->l->name = "real";
  return add_named(r, "c.real", v->dtype, &x, 1, v);
}

static int by_library(nvg_lower *l, const nvg_val *v, int *in, int copies) {
  nvg_val c = *v;
  int64_t attr[NVG_DFT_ATTRS] = { v->attr[0], v->attr[1], 1 };
  if (copies) in[0] = nvg_add_copy(l, in[0]);
  c.attr = attr;
  c.nattr = NVG_DFT_ATTRS;
  return nvg_make_add(&l->make, &c);
}

static int in_its_way(nvg_lower *l, int value, const nvg_val *v, int *in, const void *how) {
  rewriter r = { l, how };
  int way = r.w->way[value];
  if (way >= NVG_DFT_LIBRARY) return by_library(l, v, in, way == NVG_DFT_LIBRARY_COPY);
  if (way == NVG_DFT_MADE) return made(&r, v, in[0]);
  nvg_val c = *v;
  if (way == NVG_DFT_NATURAL) in[0] = by_natural_order(&r, in[0]);
  return nvg_make_add(&l->make, &c);
}

nvg_graph *nvg_with_transforms(nvb_arena *a, const nvg_graph *g, const nvg_dft_ways *w) {
  return nvg_made_anew(a, g, in_its_way, w);
}
