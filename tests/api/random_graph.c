/* Random graphs. Every step picks an operation of the table and operands among what exists; what the library refuses (a
   dtype, a shape) is tried again with something else. No copysign or signbit: the sign of a NaN is unspecified. At
   least a fifth of the steps are casts. Leaves have odd shapes, zero and negative strides, special values. Matrix
   products are of small whole numbers, so that no order of their sums changes a bit; matrices that are solved with are
   small and definite. Draws have keys of their own, and any numbers as parameters. One graph in WIDE reduces a large
   value over several axes. */
#include "random_graph.h"
#include "nvm/random.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next(rg *g) { /* splitmix64 */
  uint64_t z = g->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static int below(rg *g, int n) { return (int)(next(g) % (uint64_t)n); }
static void say(rg *g, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(g->text + g->len, sizeof g->text - g->len, fmt, ap);
  va_end(ap);
  g->len += n > 0 ? (size_t)n : 0;
  if (g->len >= sizeof g->text) g->len = sizeof g->text - 1;
}
static void say_shape(rg *g, const nvm_array *a) {
  say(g, " : %s[", nvm_dtype_name(nvm_dtype_of(a)));
  for (int d = 0; d < nvm_rank(a); d++) say(g, d ? ",%lld" : "%lld", (long long)nvm_shape(a)[d]);
  say(g, "]\n");
}

/* ---- leaves */
static const nvm_dtype dtypes[] = { NVM_F32, NVM_F32,  NVM_F32, NVM_F64,  NVM_F64,  NVM_F16, NVM_BF16,
                                    NVM_I32, NVM_I64,  NVM_U8,  NVM_I8,   NVM_I16,  NVM_U32, NVM_U16,
                                    NVM_U64, NVM_BOOL, NVM_C64, NVM_C128, NVM_F8E4, NVM_F8E5 };
enum { NDTYPES = sizeof dtypes / sizeof *dtypes };
static nvm_dtype dtype(rg *g) {
  nvm_dtype t = dtypes[below(g, NDTYPES)];
  return g->halves || (t != NVM_F16 && t != NVM_BF16 && t < NVM_F8E4) ? t : NVM_F32;
}

static double number(rg *g) {
  static const double special[] = { 0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 1e-40, -1e-310, 1e30, 65504, 3.5, 0.5 };
  if (below(g, 16) == 0) return special[below(g, sizeof special / sizeof *special)];
  return (double)(int64_t)(next(g) >> 11) / (double)(1ll << 50) - 4 + (below(g, 4) == 0 ? below(g, 100) : 0);
}
static uint16_t half_bits(float x) { /* truncation is fine for test data */
  uint32_t u;
  memcpy(&u, &x, 4);
  int e = (int)(u >> 23 & 255) - 112;
  if (e <= 0) return (uint16_t)(u >> 16 & 0x8000);
  if (e >= 31) return (uint16_t)((u >> 16 & 0x8000) | 0x7c00 | (isnan(x) ? 1 : 0));
  return (uint16_t)((u >> 16 & 0x8000) | (unsigned)e << 10 | (u >> 13 & 0x3ff));
}
static void put(rg *g, nvm_dtype t, char *p) {
  double x = number(g);
  float f = (float)x;
  uint32_t u;
  uint16_t h;
  uint64_t r = next(g);
  int64_t small = (int64_t)(r % 200) - 50;
  memcpy(&u, &f, 4);
  switch (t) {
  case NVM_BOOL: *p = (char)(r & 1); break;
  case NVM_F32: memcpy(p, &f, 4); break;
  case NVM_F64: memcpy(p, &x, 8); break;
  case NVM_F16: h = half_bits(f), memcpy(p, &h, 2); break;
  case NVM_BF16: h = (uint16_t)(u >> 16), memcpy(p, &h, 2); break;
  case NVM_C64: memcpy(p, &f, 4), f = (float)number(g), memcpy(p + 4, &f, 4); break;
  case NVM_C128: memcpy(p, &x, 8), x = number(g), memcpy(p + 8, &x, 8); break;
  case NVM_F8E4: case NVM_F8E5: *p = (char)r; break;
  default: memcpy(p, r % 8 ? (void *)&small : (void *)&r, nvm_dtype_size(t)); /* little endian */
  }
}
static const int64_t sizes[] = { 1, 2, 3, 5, 7, 16, 17, 33, 64, 100, 129, 1 };
static nvm_array *leaf_of(rg *g, nvm_dtype t, int rank, const int64_t *shape) {
  enum { OWN = 509 }; /* elements; then they come again */
  int64_t strides[4], size = (int64_t)nvm_dtype_size(t), n = 1;
  for (int d = rank - 1; d >= 0; d--) strides[d] = n * size, n *= shape[d];
  char *data = malloc((size_t)(n * size) + 16);
  for (int64_t i = 0; i < n && i < OWN; i++) put(g, t, data + i * size);
  for (int64_t i = OWN * size; i < n * size; i++) data[i] = data[i - OWN * size];
  nvm_array *a = nvm_array_new_host(g->ctx, t, rank, shape, strides, data, NULL, NULL);
  free(data);
  return a;
}
static nvm_array *leaf(rg *g, const int64_t *dims) {
  nvm_dtype t = dtype(g);
  int rank = below(g, 4);
  int64_t shape[4];
  for (int d = 0; d < rank; d++) shape[d] = below(g, 3) ? dims[below(g, 3)] : sizes[below(g, 12)];
  if (below(g, 60) == 0 && rank) shape[below(g, rank)] = 0;
  if (below(g, 12) == 0) rank = 1, shape[0] = 1000 + below(g, 30000);
  return leaf_of(g, t, rank, shape);
}

/* ---- operations, by the shape of their call */
typedef enum form { UNARY, BINARY, TERNARY, CAST, REDUCE, AXIS1, RESHAPE, PERMUTE, SLICE, FLIP, ROLL, BROADCAST,
  CONCAT,
  PAD,
  SOFTMAX,
  SORT,
  TRANSFORM,
  SCALAR,
  TAKE,
  ONES,
  LAST,
  PRODUCT,
  MASKED,
  DRAW,
  SOLVE
} form;
static const struct {
  form form;
  const char *name;
} ops[] = {
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { CAST, "astype" },
  { UNARY, "negative" },
  { UNARY, "abs" },
  { UNARY, "square" },
  { UNARY, "sqrt" },
  { UNARY, "exp" },
  { UNARY, "log" },
  { UNARY, "sin" },
  { UNARY, "cos" },
  { UNARY, "tanh" },
  { UNARY, "floor" },
  { UNARY, "sign" },
  { UNARY, "reciprocal" },
  { UNARY, "sigmoid" },
  { UNARY, "erf" },
  { UNARY, "isnan" },
  { UNARY, "logical_not" },
  { UNARY, "round" },
  { UNARY, "conj" },
  { BINARY, "add" },
  { BINARY, "add" },
  { BINARY, "subtract" },
  { BINARY, "multiply" },
  { BINARY, "multiply" },
  { BINARY, "divide" },
  { BINARY, "maximum" },
  { BINARY, "minimum" },
  { BINARY, "less" },
  { BINARY, "equal" },
  { BINARY, "remainder" },
  { BINARY, "floor_divide" },
  { BINARY, "bitwise_and" },
  { BINARY, "logical_or" },
  { BINARY, "atan2" },
  { TERNARY, "where" },
  { TERNARY, "where" },
  { SCALAR, "add" },
  { SCALAR, "multiply" },
  { SCALAR, "pow" },
  { REDUCE, "sum" },
  { REDUCE, "sum" },
  { REDUCE, "mean" },
  { REDUCE, "max" },
  { REDUCE, "min" },
  { REDUCE, "prod" },
  { REDUCE, "var" },
  { MASKED, "sum" },
  { MASKED, "prod" },
  { MASKED, "max" },
  { MASKED, "min" },
  { REDUCE, "any" },
  { REDUCE, "logsumexp" },
  { AXIS1, "argmax" },
  { AXIS1, "argmin" },
  { AXIS1, "cumulative_sum" },
  { SORT, "sort" },
  { SORT, "argsort" },
  { ONES, "_flatnonzero" },
  { TRANSFORM, "fft.fft" },
  { TRANSFORM, "fft.ifft" },
  { TRANSFORM, "fft.rfft" },
  { TRANSFORM, "fft.irfft" },
  { SOFTMAX, "softmax" },
  { SOFTMAX, "log_softmax" },
  { RESHAPE, "reshape" },
  { PERMUTE, "permute_dims" },
  { SLICE, "slice" },
  { SLICE, "slice" },
  { FLIP, "flip" },
  { ROLL, "roll" },
  { BROADCAST, "broadcast_to" },
  { CONCAT, "concat" },
  { PAD, "pad" },
  { TAKE, "take" },
  { LAST, "last_index" },
  { PRODUCT, "matmul" },
  { PRODUCT, "matmul" },
  { PRODUCT, "matmul" },
  { DRAW, "a draw" },
  { DRAW, "a draw" },
  { SOLVE, "linalg.solve" },
  { SOLVE, "linalg.inv" },
  { SOLVE, "linalg.cholesky" },
};
enum { NOPS = sizeof ops / sizeof *ops, WIDE = 200 };

static nvm_attr ints(const char *name, const int64_t *v, int n) {
  return (nvm_attr){ .name = name, .kind = 'I', .is = v, .n = n };
}
static nvm_attr one(const char *name, char kind, int64_t v) { return (nvm_attr){ .name = name, .kind = kind, .i = v }; }

static nvm_array *apply(rg *g, int op, nvm_array *const *in, int nin, const nvm_attr *at, int nat) {
  return nvm_apply(g->ctx, op, in, nin, at, nat);
}
static nvm_array *take_some(rg *g, int op, nvm_array *x) {
  int64_t at[8], n = 1 + below(g, 8);
  int axis = below(g, nvm_rank(x));
  if (!nvm_shape(x)[axis]) return NULL;
  for (int i = 0; i < n; i++) at[i] = (int64_t)(next(g) % (uint64_t)nvm_shape(x)[axis]);
  nvm_array *idx = nvm_array_new_host(g->ctx, NVM_I64, 1, &n, NULL, at, NULL, NULL), *in[2] = { x, idx };
  nvm_attr a = one("axis", 'i', axis);
  nvm_array *r = apply(g, op, in, 2, &a, 1);
  nvm_array_unref(idx);
  return r;
}
/* ---- products */
static nvm_array *by_name(rg *g, const char *name, nvm_array *const *in, int nin, const nvm_attr *at, int nat) {
  int op;
  return nvm_op_find(&op, name) ? NULL : apply(g, op, in, nin, at, nat);
}
/* A reduction as where= and initial= spell it: what the mask leaves out is the identity, and a first value joins. */
static nvm_array *masked(rg *g, const char *name, nvm_array *x) {
  static const struct {
    const char *name, *merge;
    int identity;
  } reds[] = { { "sum", "add", 0 }, { "prod", "multiply", 1 }, { "max", "maximum", -100 }, { "min", "minimum", 100 } };
  int i = 0;
  while (strcmp(reds[i].name, name)) i++;
  nvm_array *number[3] = { nvm_apply_scalar(g->ctx, 'i', below(g, 3), 0, 0),
                           nvm_apply_scalar(g->ctx, 'i', reds[i].identity, 0, 0),
                           nvm_apply_scalar(g->ctx, 'i', 1 + below(g, 3), 0, 0) };
  nvm_array *chosen[3] = { by_name(g, "greater", (nvm_array *[]){ x, number[0] }, 2, NULL, 0), x, number[1] };
  nvm_array *left = chosen[0] ? by_name(g, "where", chosen, 3, NULL, 0) : NULL;
  nvm_array *two[2] = { NULL, number[2] }, *r = NULL;
  nvm_attr axis = one("axis", nvm_rank(x) ? 'i' : 'n', nvm_rank(x) ? below(g, nvm_rank(x)) : 0);
  if (left) two[0] = by_name(g, name, &left, 1, &axis, 1);
  if (two[0]) r = by_name(g, reds[i].merge, two, 2, NULL, 0);
  for (int k = 0; k < 3; k++) nvm_array_unref(number[k]);
  nvm_array_unref(chosen[0]), nvm_array_unref(left), nvm_array_unref(two[0]);
  return r;
}
/* Where each of a few numbers occurs last: x as integers, modulo their count. */
static nvm_array *last_of_some(rg *g, int op, nvm_array *x) {
  int64_t size = 1 + below(g, 2 * RG_MOST);
  nvm_attr to = one("dtype", 'd', NVM_I64), n = one("size", 'i', size);
  nvm_array *in[2] = { by_name(g, "astype", &x, 1, &to, 1), nvm_apply_scalar(g->ctx, 'i', size, 0, 0) };
  nvm_array *index = in[0] ? by_name(g, "remainder", in, 2, NULL, 0) : NULL,
            *r = index ? apply(g, op, &index, 1, &n, 1) : NULL;
  nvm_array_unref(index);
  nvm_array_unref(in[0]);
  nvm_array_unref(in[1]);
  return r;
}
/* Whole numbers from -8 to 8, and NaN where x has it. */
static nvm_array *whole(rg *g, nvm_array *x) {
  nvm_dtype t = nvm_dtype_of(x);
  nvm_array *low = nvm_apply_scalar(g->ctx, 'i', t >= NVM_U8 && t <= NVM_U64 ? 0 : -8, 0, 0);
  nvm_array *high = nvm_apply_scalar(g->ctx, 'i', 8, 0, 0), *all[3] = { x, low, high };
  nvm_array *cut = by_name(g, "clip", all, 3, NULL, 0), *r = cut ? by_name(g, "round", &cut, 1, NULL, 0) : NULL;
  nvm_array_unref(cut), nvm_array_unref(low), nvm_array_unref(high);
  return r;
}
/* The other side, for inner extent k: a leaf of the same dtype or a float's, perhaps lying transposed, perhaps with a
   batch. */
static nvm_array *matrix(rg *g, nvm_dtype t, int64_t k, int64_t batch) {
  int64_t n = sizes[below(g, 12)], shape[3] = { batch, k, n };
  int transposed = below(g, 3) == 0, deep = batch > 1 && below(g, 2), rank = 2 + deep;
  if (transposed) shape[1] = n, shape[2] = k;
  nvm_dtype as = below(g, 4) ? t : dtype(g);
  float data[64];
  int64_t most = 64, count = shape[1] * shape[2] * (deep ? batch : 1);
  for (int i = 0; i < 64; i++) data[i] = (float)(below(g, 9) - (as >= NVM_U8 && as <= NVM_U64 ? 0 : 4));
  nvm_array *few = nvm_array_new_host(g->ctx, NVM_F32, 1, &most, NULL, data, NULL, NULL),
            *r[4] = { few, NULL, NULL, NULL };
  nvm_attr to = one("dtype", 'd', as), times = one("repetitions", 'i', count / 64 + 1),
           axes = ints("shape", shape + 1 - deep, rank);
  int64_t from = 0;
  nvm_attr cut[2] = { ints("start", &from, 1), ints("count", &count, 1) };
  r[1] = by_name(g, "tile", &few, 1, &times, 1);
  if (r[1]) r[2] = by_name(g, "slice", &r[1], 1, cut, 2);
  if (r[2]) r[3] = by_name(g, "reshape", &r[2], 1, &axes, 1);
  nvm_array *typed = r[3] ? by_name(g, "astype", &r[3], 1, &to, 1) : NULL, *m = NULL;
  if (typed && transposed) m = by_name(g, "matrix_transpose", &typed, 1, NULL, 0);
  for (int i = 0; i < 4; i++) nvm_array_unref(r[i]);
  if (!transposed) return typed;
  nvm_array_unref(typed);
  return m;
}
/* x times some matrix, or times itself transposed; + 0, for a library may make -0 of nothing but zeros. */
static nvm_array *product(rg *g, int op, nvm_array *x) {
  int rank = nvm_rank(x);
  int64_t k = rank ? nvm_shape(x)[rank - 1] : 0;
  if (!rank || nvm_size(x) > 8000) return NULL;
  nvm_array *in[2] = { whole(g, x), NULL }, *r = NULL;
  if (!in[0]) return NULL;
  int own = rank >= 2 && nvm_shape(x)[rank - 2] <= 64 && below(g, 4) == 0;
  in[1] = own ? by_name(g, "matrix_transpose", in, 1, NULL, 0)
              : matrix(g, nvm_dtype_of(x), k, rank > 2 ? nvm_shape(x)[rank - 3] : 1);
  if (in[1] && below(g, 4) == 0 && nvm_rank(in[1]) >= 2 && rank >= 2 && !own) { /* the other way round: (b' a')' */
    nvm_array *a = by_name(g, "matrix_transpose", &in[0], 1, NULL, 0),
              *b = by_name(g, "matrix_transpose", &in[1], 1, NULL, 0);
    nvm_array_unref(in[0]), nvm_array_unref(in[1]);
    in[0] = b, in[1] = a;
  }
  nvm_attr how[2] = { one("precision", 'i', below(g, NVM_NPRECISIONS)),
                      one("dtype", below(g, 4) ? 'n' : 'd', NVM_F32) };
  nvm_array *zero = nvm_apply_scalar(g->ctx, 'i', 0, 0, 0), *sum[2] = { NULL, zero };
  if (in[0] && in[1]) sum[0] = apply(g, op, in, 2, how, 2);
  if (sum[0] && nvm_size(sum[0]) * (k ? k : 1) < 400000) r = by_name(g, "add", sum, 2, NULL, 0);
  nvm_array_unref(in[0]), nvm_array_unref(in[1]), nvm_array_unref(zero), nvm_array_unref(sum[0]);
  return r;
}
/* ---- draws and solutions */
/* A draw of any kind in the shape of x, whose parameters are x itself and a small number. */
static nvm_array *drawn(rg *g, nvm_array *x) {
  nvm_generator *from = NULL;
  nvm_draw what = (nvm_draw)below(g, NVM_NDRAWS);
  nvm_array *few = nvm_apply_scalar(g->ctx, 'i', 1 + below(g, 40), 0, 0),
            *half = nvm_apply_scalar(g->ctx, 'f', 0, 0.5, 0);
  int counted = what == NVM_DRAW_BINOMIAL || what == NVM_DRAW_HYPERGEOMETRIC;
  nvm_array *of[3] = { counted ? few : x, counted ? x : half, few }, *r = NULL;
  nvm_dtype t = below(g, 2) || what >= NVM_DRAW_POISSON ? NVM_DTYPE_DEFAULT : NVM_F32;
  int given = what == NVM_DRAW_BELOW || what >= NVM_DRAW_GAMMA;
  if (!nvm_generator_new(&from, g->ctx, next(g)))
    r = nvm_generator_draw(from, what, t, given ? of : NULL, nvm_rank(x), nvm_shape(x));
  nvm_generator_free(from);
  nvm_array_unref(few), nvm_array_unref(half);
  return r;
}
/* An operation of definite matrices, which the graph makes: half of them a batch. A device's library has other bits. */
static nvm_array *solved(rg *g, int op) {
  enum { MOST = 9, BATCH = 3 };
  double data[BATCH * MOST * MOST];
  nvm_dtype t = below(g, 2) ? NVM_F32 : NVM_F64;
  int64_t n = 1 + below(g, MOST), shape[3] = { BATCH, n, n };
  int batch = below(g, 2), k = 0;
  if (!g->halves) return NULL;
  for (int b = 0; b < BATCH; b++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) data[k++] = i == j ? 9 + b : (i + 1) * (j + 1) % 7 / 7.0;
  nvm_array *host = nvm_array_new_host(g->ctx, NVM_F64, 2 + batch, shape + 1 - batch, NULL, data, NULL, NULL);
  nvm_array *scale = nvm_apply_scalar(g->ctx, 'i', 1 + below(g, 3), 0, 0), *r = NULL;
  nvm_op_info info = { .nin = 0 };
  nvm_attr to = one("dtype", 'd', t);
  nvm_array *typed = by_name(g, "astype", &host, 1, &to, 1), *in[2] = { NULL, NULL };
  if (typed) in[0] = by_name(g, "multiply", (nvm_array *[]){ typed, scale }, 2, NULL, 0);
  if (in[0]) in[1] = by_name(g, "cos", in, 1, NULL, 0);
  if (in[1] && !nvm_op_get(&info, op)) r = apply(g, op, in, info.nin, NULL, 0);
  nvm_array_unref(host), nvm_array_unref(scale), nvm_array_unref(typed), nvm_array_unref(in[0]), nvm_array_unref(in[1]);
  return r;
}
/* Reshapes of real use: flattened, one dimension split or two joined. */
static int new_shape(rg *g, const nvm_array *x, int64_t *shape) {
  int rank = nvm_rank(x), n = 0, how = below(g, 3), d0 = rank ? below(g, rank) : 0;
  if (how == 0 || !rank) return shape[0] = nvm_size(x), 1;
  for (int d = 0; d < rank; d++) {
    int64_t e = nvm_shape(x)[d];
    int64_t f = e % 4 == 0 && e ? 4 : e % 3 == 0 && e ? 3 : e % 5 == 0 && e ? 5 : 1;
    if (d == d0 && how == 1) shape[n++] = f, shape[n++] = e / f;
    else if (d == d0 && d + 1 < rank) shape[n++] = e * nvm_shape(x)[d + 1], d++;
    else shape[n++] = e;
  }
  return n;
}
static nvm_array *view(rg *g, form f, int op, nvm_array *x) {
  int rank = nvm_rank(x);
  const int64_t *shape = nvm_shape(x);
  int64_t v[3][8] = { { 0 } };
  nvm_attr at[3];
  if (f == RESHAPE) at[0] = ints("shape", v[0], new_shape(g, x, v[0]));
  if (f == PERMUTE) {
    for (int d = 0; d < rank; d++) v[0][d] = d;
    for (int d = rank - 1; d > 0; d--) {
      int o = below(g, d + 1);
      int64_t s = v[0][d];
      v[0][d] = v[0][o], v[0][o] = s;
    }
    at[0] = ints("axes", v[0], rank);
  }
  if (f == BROADCAST) {
    int more = rank < 4 ? below(g, 2) : 0;
    if (more) v[0][0] = 1 + below(g, 4);
    for (int d = 0; d < rank; d++) v[0][more + d] = shape[d] == 1 && below(g, 2) ? 5 : shape[d];
    at[0] = ints("shape", v[0], rank + more);
  }
  if (f == FLIP) at[0] = one("axis", 'i', rank ? below(g, rank) : 0);
  if (f == PAD) {
    for (int d = 0; d < 2 * rank && d < 8; d++) v[0][d] = below(g, 3);
    at[0] = ints("pad_width", v[0], 2 * rank);
  }
  if (f == ROLL) at[0] = one("shift", 'i', below(g, 9) - 4), at[1] = one("axis", 'i', rank ? below(g, rank) : 0);
  if (f == SLICE) {
    for (int d = 0; d < rank; d++) {
      int64_t step = 1 + below(g, 3), from = shape[d] ? below(g, (int)shape[d]) : 0;
      int back = below(g, 3) == 0;
      v[2][d] = back ? -step : step;
      v[0][d] = below(g, 2) ? from : back && shape[d] ? shape[d] - 1 : 0;
      v[1][d] = !shape[d] ? 0 : back ? v[0][d] / step + 1 : (shape[d] - v[0][d] + step - 1) / step;
    }
    at[0] = ints("start", v[0], rank), at[1] = ints("count", v[1], rank), at[2] = ints("step", v[2], rank);
  }
  return apply(g, op, &x, 1, at, f == SLICE ? 3 : f == ROLL ? 2 : 1);
}
static nvm_array *pick(rg *g) { /* recent values more often */
  int i = below(g, g->n), j = below(g, g->n);
  return g->at[i > j ? i : j];
}
static nvm_array *try_one(rg *g, int which) {
  int op = -1;
  form f = ops[which].form;
  if (f != DRAW && nvm_op_find(&op, ops[which].name)) return NULL;
  nvm_array *x = pick(g), *y = pick(g), *in[3] = { x, y, pick(g) };
  nvm_attr at[2];
  int rank = nvm_rank(x);
  switch (f) {
  case UNARY: return apply(g, op, in, 1, NULL, 0);
  case BINARY: return apply(g, op, in, 2, NULL, 0);
  case TERNARY: return apply(g, op, in, 3, NULL, 0);
  case CAST: at[0] = one("dtype", 'd', dtype(g)); return apply(g, op, in, 1, at, 1);
  case SCALAR: {
    static const double s[] = { 2, 0.5, -1, 3, 2.5, 0 };
    in[1] = nvm_apply_scalar(g->ctx, below(g, 2) ? 'f' : 'i', 1 + below(g, 3), s[below(g, 6)], 0);
    nvm_array *r = apply(g, op, in, 2, NULL, 0);
    nvm_array_unref(in[1]);
    return r;
  }
  case REDUCE: {
    int64_t axes[2] = { rank ? below(g, rank) : 0, 0 };
    int n = rank > 1 && below(g, 3) == 0 ? 2 : 1;
    axes[1] = (axes[0] + 1) % (rank ? rank : 1);
    at[0] = rank && below(g, 4) ? ints("axis", axes, n) : one("axis", 'n', 0);
    at[1] = one("keepdims", 'b', below(g, 2));
    return apply(g, op, in, 1, at, 2);
  }
  case AXIS1: case SOFTMAX: case SORT: case TRANSFORM:
    /* a device sorts and transforms nothing */
    if (!rank || ((f == SORT || f == TRANSFORM) && !g->halves)) return NULL;
    at[0] = one("axis", 'i', below(g, rank));
    at[1] = one("n", below(g, 3) ? 'n' : 'i', 1 + below(g, 40));
    return apply(g, op, in, 1, at, f == TRANSFORM ? 2 : 1);
  case ONES: at[0] = one("size", 'i', below(g, 40)); return g->halves ? apply(g, op, in, 1, at, 1) : NULL;
  case CONCAT: at[0] = one("axis", 'i', rank ? below(g, rank) : 0); return apply(g, op, in, 2, at, 1);
  case PRODUCT: return product(g, op, x);
  case DRAW: return drawn(g, x);
  case SOLVE: return solved(g, op);
  case TAKE: return rank ? take_some(g, op, x) : NULL;
  case LAST: return last_of_some(g, op, x);
  case MASKED: return masked(g, ops[which].name, x);
  default: return view(g, f, op, x);
  }
}

static int add(rg *g, const char *name, nvm_array *r) { /* NULL: nothing */
  if (!r) return 0;
  g->at[g->n] = r;
  say(g, "%%%d = %s", g->n, name);
  say_shape(g, r);
  g->n++;
  return 1;
}

/* ---- graphs of all operations */
static int build_narrow(rg *g) { /* returns how many leaves there are */
  int64_t dims[3] = { sizes[below(g, 12)], sizes[below(g, 12)], sizes[below(g, 12)] };
  int leaves = 1 + below(g, 4), steps = 4 + below(g, 17);
  while (g->n < leaves) add(g, "leaf", leaf(g, dims));
  for (int tries = 0; g->n < leaves + steps && g->n < RG_MOST && tries < 400; tries++) {
    int which = below(g, NOPS);
    nvm_array *r = try_one(g, which);
    if (r && nvm_size(r) > 200000) nvm_array_unref(r), r = NULL;
    add(g, ops[which].name, r);
  }
  return leaves;
}

/* ---- reductions of one value over different axes, of what they leave, and of the value beside that */
static nvm_array *reduced(rg *g, nvm_array *x, const char **name) {
  static const char *const reds[] = { "sum", "max", "min", "mean", "var", "argmin", "argmax", "prod", "any" };
  *name = reds[below(g, 9)];
  if (below(g, 5) == 0) return masked(g, *name = "sum", x);
  int rank = nvm_rank(x), n = rank > 1 && (*name)[0] != 'a' && below(g, 3) == 0 ? 2 : 1;
  int64_t first = below(g, rank + 1 - n), axes[2] = { first, first + 1 };
  nvm_attr at[2] = { (*name)[0] == 'a' && (*name)[1] == 'r' ? one("axis", 'i', first) : ints("axis", axes, n),
                     one("keepdims", 'b', 1) };
  return by_name(g, *name, &x, 1, at, 2);
}
static int build_wide(rg *g) { /* returns how many leaves there are */
  static const int64_t extents[] = { 3, 16, 17, 64, 100, 129, 257, 1000, 4096, 20000 };
  static const char *const both[] = { "subtract", "multiply", "add", "maximum" }, *const one_of[] = { "square", "abs" };
  static const nvm_dtype types[] = { NVM_F32, NVM_F32, NVM_F64, NVM_I32 };
  int64_t most = below(g, 4) ? 1 << 17 : 1 << 20, shape[2][3], all;
  do {
    all = 1;
    for (int d = 0; d < 3; d++) shape[0][d] = shape[1][d] = extents[below(g, 10)], all *= shape[0][d];
  } while (all > most || all < most / 4);
  int alone = below(g, 3);
  shape[0][alone] = shape[1][(alone + 1 + below(g, 2)) % 3] = 1;
  nvm_dtype t = types[below(g, 4)];
  for (int i = 0; i < 2; i++) add(g, "leaf", leaf_of(g, t, 3, shape[i]));
  const char *name = both[below(g, 4)];
  add(g, name, by_name(g, name, g->at, 2, NULL, 0));
  if (below(g, 2)) add(g, "square or abs", by_name(g, one_of[below(g, 2)], &g->at[2], 1, NULL, 0));
  for (int tries = 0, value = g->n - 1; g->n < 12 && tries < 60; tries++) {
    nvm_array *x = g->at[below(g, 3) ? value : 2 + below(g, g->n - 2)], *two[2] = { g->at[value], g->at[g->n - 1] };
    if (below(g, 4) == 0 && add(g, "beside", by_name(g, both[below(g, 4)], two, 2, NULL, 0)))
      value = nvm_size(g->at[g->n - 1]) == nvm_size(two[0]) ? g->n - 1 : value;
    else if (nvm_rank(x) && nvm_size(x) > 1) {
      nvm_array *r = reduced(g, x, &name);
      add(g, name, r);
    }
  }
  return 2;
}

void rg_build(rg *g, nvm_ctx *ctx, uint64_t seed, int halves, nvm_array **outs) {
  memset(g, 0, sizeof *g);
  g->ctx = ctx;
  g->halves = halves;
  g->state = seed * 0x2545f4914f6cdd1du + 88172645463325252u;
  int leaves = seed % WIDE == WIDE / 2 ? build_wide(g) : build_narrow(g);
  for (int i = 0; i < RG_OUT; i++)
    outs[i] = g->at[i ? leaves + below(g, g->n - leaves + (g->n == leaves)) - (g->n == leaves) : g->n - 1];
}
void rg_free(rg *g) {
  while (g->n) nvm_array_unref(g->at[--g->n]);
}

static int nan_at(nvm_dtype t, const char *p) {
  float f;
  double d;
  uint16_t h;
  memcpy(&h, p, 2);
  if (t == NVM_F16) return (h & 0x7fff) > 0x7c00;
  if (t == NVM_BF16) return (h & 0x7fff) > 0x7f80;
  if (t == NVM_F8E4 || t == NVM_F8E5) return (*p & 0x7f) > (t == NVM_F8E4 ? 0x7e : 0x7c);
  if (t == NVM_F32) return memcpy(&f, p, 4), isnan(f);
  if (t == NVM_F64) return memcpy(&d, p, 8), isnan(d);
  return 0;
}
int64_t rg_differs(nvm_dtype t, const void *a, const void *b, int64_t n) {
  nvm_dtype part = t == NVM_C64 ? NVM_F32 : t == NVM_C128 ? NVM_F64 : t;
  size_t size = nvm_dtype_size(part);
  const char *p = a, *q = b;
  n *= part == t ? 1 : 2;
  for (int64_t i = 0; i < n; i++, p += size, q += size)
    if (memcmp(p, q, size) && !(nan_at(part, p) && nan_at(part, q))) return 1 + i;
  return 0;
}
