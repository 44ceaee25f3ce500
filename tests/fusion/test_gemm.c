/* Matrix products in plans: any tail and head, every dtype and layout, against the evaluator, interpreted, read back
   and compiled; and what is said of a step as a BLAS call. */
#include "oracle.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }
enum { MOST = 4 };

/* ---- graphs */
static int m_cast(maker *m, int x, nvm_dtype to) {
  const nvg_val v = m->v.at[x];
  return m_add(
      m,
      (nvg_val){ .kind = NVG_VMAP, .op = NVG_OP_CAST, .dtype = to, .frag = nvg_frag_cast(v.dtype, to), .name = "cast" },
      v.rank, v.shape, 1, &x, 0, NULL);
}
static int m_scalar(maker *m, float x) { /* a Python scalar, given with each call; its value is its leaf's */
  (void)x;
  int s = m_leaf(m, NVM_F32, 0, NULL, NULL);
  m->leaf.at[m->leaf.n - 1].weak_const = 1 + NVG_FLOAT;
  return s;
}
static int leaf(maker *m, nvm_dtype t, int64_t p, int64_t q) { return m_leaf(m, t, 2, DIMS(p, q), NULL); }
static int f32(maker *m, int64_t p, int64_t q) { return leaf(m, NVM_F32, p, q); }

/* n: m, n, k */
static void plain(maker *m, const int64_t *n) { m_out(m, m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1]))); }
static void left_turned(maker *m, const int64_t *n) {
  m_out(m, m_product(m, m_turn(m, f32(m, n[2], n[0])), f32(m, n[2], n[1])));
}
static void right_turned(maker *m, const int64_t *n) {
  m_out(m, m_product(m, f32(m, n[0], n[2]), m_turn(m, f32(m, n[1], n[2]))));
}
static void both_turned(maker *m, const int64_t *n) {
  m_out(m, m_product(m, m_turn(m, f32(m, n[2], n[0])), m_turn(m, f32(m, n[1], n[2]))));
}
static void result_turned(maker *m, const int64_t *n) {
  m_out(m, m_turn(m, m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1]))));
}
static void doubles(maker *m, const int64_t *n) {
  m_out(m, m_product(m, leaf(m, NVM_F64, n[0], n[2]), leaf(m, NVM_F64, n[2], n[1])));
}
static void pairs(maker *m, const int64_t *n) {
  m_out(m, m_product(m, leaf(m, NVM_C64, n[0], n[2]), leaf(m, NVM_C64, n[2], n[1])));
}
static void wide_pairs(maker *m, const int64_t *n) {
  int d = m_product(m, leaf(m, NVM_C128, n[0], n[2]), m_turn(m, leaf(m, NVM_C128, n[1], n[2])));
  m_out(m, m_map(m, "c.add", 2, (int[2]){ d, leaf(m, NVM_C128, n[0], n[1]) }));
}
static int biased(maker *m, const int64_t *n) {
  return m_2(m, "add", m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1])), m_leaf(m, NVM_F32, 1, DIMS(n[1]), NULL));
}
static void gelu(maker *m, const int64_t *n) { m_out(m, m_1(m, "gelu_tanh", biased(m, n))); }
/* 0.5 h (1 + tanh(c (h + 0.044715 h h h))), or as h sigmoid(2 c (...)) */
static void written(maker *m, const int64_t *n, float c, int sigmoid) {
  int h = biased(m, n), cube = m_2(m, "multiply", h, m_2(m, "multiply", h, h));
  int u = m_2(m, "add", h, m_2(m, "multiply", m_const(m, 0.044715f), cube));
  u = m_2(m, "multiply", u, m_const(m, sigmoid ? 2 * c : c));
  int g = sigmoid ? m_1(m, "sigmoid", u) : m_2(m, "add", m_const(m, 1), m_1(m, "tanh", u));
  m_out(m, m_2(m, "multiply", sigmoid ? h : m_2(m, "multiply", h, m_const(m, 0.5f)), g));
}
static void written_gelu(maker *m, const int64_t *n) { written(m, n, 0.7978845608f, 0); }
static void written_sigmoid(maker *m, const int64_t *n) { written(m, n, 0.7978845608f, 1); }
static void almost_gelu(maker *m, const int64_t *n) { written(m, n, 0.7969f, 0); }
static void relu_of_rows(maker *m, const int64_t *n) {
  int d = m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1]));
  m_out(m, m_1(m, "relu", m_2(m, "add", d, f32(m, n[0], 1))));
}
static void aux(maker *m, const int64_t *n) {
  int h = biased(m, n);
  m_out(m, m_1(m, "gelu_tanh", h));
  m_out(m, h);
}
static void scaled(maker *m, const int64_t *n) { /* alpha a b + beta c */
  int d = m_2(m, "multiply", m_const(m, 0.5f), m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1])));
  m_out(m, m_2(m, "add", d, m_2(m, "multiply", m_scalar(m, 2), f32(m, n[0], n[1]))));
}
/* Signs and differences; numbers that are given, rounded to 16 bits on the way; what is no alpha. */
static int product(maker *m, const int64_t *n) { return m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1])); }
static void less(maker *m, const int64_t *n) { m_out(m, m_2(m, "subtract", product(m, n), f32(m, n[0], n[1]))); }
static void moved(maker *m, const int64_t *n) { /* c - 0.25 a b */
  int d = m_2(m, "multiply", product(m, n), m_const(m, 0.25f));
  m_out(m, m_2(m, "subtract", f32(m, n[0], n[1]), d));
}
static void negated(maker *m, const int64_t *n) { /* -(s a b - 2 (-c)) */
  int c = m_2(m, "multiply", m_const(m, 2), m_1(m, "negative", f32(m, n[0], n[1])));
  m_out(m, m_1(m, "negative", m_2(m, "subtract", m_2(m, "multiply", m_scalar(m, 2), product(m, n)), c)));
}
static void given_halves(maker *m, const int64_t *n) {
  int d = m_cast(m, m_product(m, leaf(m, NVM_BF16, n[0], n[2]), leaf(m, NVM_BF16, n[2], n[1])), NVM_BF16);
  int s = m_leaf(m, NVM_F64, 0, NULL, NULL), c = m_cast(m, leaf(m, NVM_BF16, n[0], n[1]), NVM_F32);
  m->leaf.at[m->leaf.n - 2].weak_const = 1 + NVG_FLOAT;
  s = m_cast(m, m_cast(m, s, NVM_BF16), NVM_F32);
  d = m_2(m, "subtract", c, m_2(m, "multiply", s, m_cast(m, d, NVM_F32)));
  m_out(m, m_cast(m, m_1(m, "relu", d), NVM_BF16));
}
static void less_bias(maker *m, const int64_t *n) {
  m_out(m, m_2(m, "subtract", product(m, n), m_leaf(m, NVM_F32, 1, DIMS(n[1]), NULL)));
}
static void fourth(maker *m, const int64_t *n) { m_out(m, m_2(m, "divide", product(m, n), m_const(m, 4))); }
static void huge(maker *m, const int64_t *n) { m_out(m, m_2(m, "divide", product(m, n), m_const(m, 1e-40f))); }
static void tiny(maker *m, const int64_t *n) { m_out(m, m_2(m, "divide", product(m, n), m_const(m, 0x1p127f))); }
static void nothing(maker *m, const int64_t *n) { m_out(m, m_2(m, "multiply", m_const(m, 0), product(m, n))); }
static void least(maker *m, const int64_t *n) { m_out(m, m_2(m, "multiply", m_const(m, 1e-40f), product(m, n))); }
static void infinite(maker *m, const int64_t *n) { m_out(m, m_2(m, "multiply", m_const(m, INFINITY), product(m, n))); }
static void make_extreme(maker *m) { /* the numbers that are given */
  for (int i = 0; i < m->leaf.n; i++) m->leaf.at[i].extreme = m->leaf.at[i].weak_const != 0;
}
static void extreme(maker *m, const int64_t *n) {
  m_out(m, m_2(m, "multiply", m_scalar(m, 2), product(m, n)));
  make_extreme(m);
}
static void extreme_beta(maker *m, const int64_t *n) {
  scaled(m, n);
  make_extreme(m);
}
static void by_array(maker *m, const int64_t *n) {
  m_out(m, m_2(m, "multiply", m_leaf(m, NVM_F32, 0, NULL, NULL), product(m, n)));
}
static void residual(maker *m, const int64_t *n) {
  m_out(m, m_2(m, "add", m_1(m, "relu", biased(m, n)), f32(m, n[0], n[1])));
}
/* rows, columns, matrices, a condition, several results, another dtype */
static void wild(maker *m, const int64_t *n) {
  int d = m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1])), r = f32(m, n[0], 1),
      c = m_leaf(m, NVM_F32, 1, DIMS(n[1]), NULL);
  int e = m_2(m, "multiply", m_1(m, "exp", m_2(m, "multiply", d, m_const(m, 0.01f))), m_2(m, "add", r, c));
  m_out(m, e);
  m_out(m, m_cast(m, m_2(m, "maximum", d, f32(m, n[0], n[1])), NVM_F64));
  m_out(m, m_turn(m, m_2(m, "subtract", d, c)));
}
static void batched(maker *m, const int64_t *n) {
  int d =
      m_product(m, m_leaf(m, NVM_F32, 3, DIMS(3, n[0], n[2]), NULL), m_leaf(m, NVM_F32, 3, DIMS(3, n[2], n[1]), NULL));
  m_out(m, m_2(m, "add", d, m_leaf(m, NVM_F32, 3, DIMS(3, 1, n[1]), NULL)));
}
static void spread_weights(maker *m, const int64_t *n) { /* x[b, s, k] @ w[k, n]: one product of b * s rows */
  int w = m_expand(m, f32(m, n[2], n[1]), 3, DIMS(3, n[2], n[1]));
  m_out(m, m_product(m, m_leaf(m, NVM_F32, 3, DIMS(3, n[0], n[2]), NULL), w));
}
static void heads(maker *m, const int64_t *n) { /* (b, s, h d) to (b, h, s, d) on the way out */
  int d = m_product(m, m_leaf(m, NVM_F32, 3, DIMS(2, n[0], n[2]), NULL),
                    m_expand(m, f32(m, n[2], 2 * n[1]), 3, DIMS(2, n[2], 2 * n[1])));
  int r = m_reshape(m, m_2(m, "add", d, m_leaf(m, NVM_F32, 1, DIMS(2 * n[1]), NULL)), 4, DIMS(2, n[0], 2, n[1]));
  m_out(m, m_view(m, NVG_VPERMUTE, r, 4, DIMS(2, 2, n[0], n[1]), 4, DIMS(0, 2, 1, 3)));
}
/* (b, s, 3, k) with one of the three, (b, s, n) out into (b, n, s) */
static void one_head(maker *m, const int64_t *n) {
  int x = m_view(m, NVG_VSLICE, m_leaf(m, NVM_F32, 4, DIMS(2, n[0], 3, n[2]), NULL), 4, DIMS(2, n[0], 1, n[2]), 8,
                 DIMS(0, 1, 0, 1, 1, 1, 0, 1));
  int d =
      m_product(m, m_reshape(m, x, 3, DIMS(2, n[0], n[2])), m_expand(m, f32(m, n[2], n[1]), 3, DIMS(2, n[2], n[1])));
  m_out(m, m_turn(m, d));
}
static void halves(maker *m, const int64_t *n) { /* bfloat16 in and out, rounded before the tail */
  int d = m_cast(m, m_product(m, leaf(m, NVM_BF16, n[0], n[2]), leaf(m, NVM_BF16, n[2], n[1])), NVM_BF16);
  m_out(m, m_cast(m, m_1(m, "relu", m_cast(m, d, NVM_F32)), NVM_BF16));
}
static void half_gelu(maker *m, const int64_t *n) {
  int d = m_cast(m, m_product(m, leaf(m, NVM_BF16, n[0], n[2]), leaf(m, NVM_BF16, n[2], n[1])), NVM_BF16);
  int b = m_cast(m, m_leaf(m, NVM_BF16, 1, DIMS(n[1]), NULL), NVM_F32);
  m_out(m, m_cast(m, m_1(m, "gelu_tanh", m_2(m, "add", m_cast(m, d, NVM_F32), b)), NVM_BF16));
}
static void as_simplified(maker *m, int from) { /* values from there on only reach 16 bits; leaves are aligned */
  for (int i = from; i < m->v.n; i++) m->v.at[i].narrowed = 2;
  for (int i = 0; i < m->leaf.n; i++) m->leaf.at[i].align16 = 1;
}
static void half_aux(maker *m, const int64_t *n, const char *act) {
  int d = m_cast(m, m_product(m, leaf(m, NVM_BF16, n[0], n[2]), leaf(m, NVM_BF16, n[2], n[1])), NVM_BF16);
  int h = m_2(m, "add", m_cast(m, d, NVM_F32), m_cast(m, m_leaf(m, NVM_BF16, 1, DIMS(n[1]), NULL), NVM_F32));
  m_out(m, m_cast(m, h, NVM_BF16));
  m_out(m, m_cast(m, m_1(m, act, h), NVM_BF16));
  as_simplified(m, h);
}
/* Floats of 8 bits, converted as the graph does it, along k and across; scales in memory. */
static int eight(maker *m, nvm_dtype t, int64_t p, int64_t q, int transposed) {
  int x = leaf(m, t, p, q);
  m->leaf.at[m->leaf.n - 1].align16 = 1;
  return m_cast(m, transposed ? m_turn(m, x) : x, NVM_F16);
}
static int eight_product(maker *m, const int64_t *n) {
  return m_product(m, eight(m, NVM_F8E4, n[0], n[2], 0), eight(m, NVM_F8E5, n[1], n[2], 1));
}
static int by_scale(maker *m, int x) { return m_2(m, "multiply", x, m_leaf(m, NVM_F32, 1, DIMS(1), NULL)); }
static void eights(maker *m, const int64_t *n) {
  int b = m_cast(m, m_leaf(m, NVM_BF16, 1, DIMS(n[1]), NULL), NVM_F32);
  m_out(m, m_cast(m, m_1(m, "relu", m_2(m, "add", by_scale(m, by_scale(m, eight_product(m, n))), b)), NVM_BF16));
}
static void eight_result(maker *m, const int64_t *n) {
  int s = m_2(m, "multiply", m_leaf(m, NVM_F32, 1, DIMS(1), NULL), m_leaf(m, NVM_F32, 1, DIMS(1), NULL));
  int d = m_2(m, "multiply", m_2(m, "multiply", s, m_const(m, 2)), eight_product(m, n));
  m_out(m, m_cast(m, by_scale(m, m_1(m, "relu", d)), NVM_F8E5));
}
static void eights_across(maker *m, const int64_t *n) {
  m_out(m, m_product(m, eight(m, NVM_F8E4, n[0], n[2], 0), eight(m, NVM_F8E4, n[2], n[1], 0)));
}
static void rounded_eights(maker *m, const int64_t *n) { /* what a product reads, and what it makes, has 8 bits */
  int x = m_cast(m, m_cast(m, m_2(m, "multiply", f32(m, n[0], n[2]), f32(m, 1, n[2])), NVM_F8E4), NVM_F16);
  int d = m_product(m, x, eight(m, NVM_F8E4, n[1], n[2], 1));
  m_out(m, m_2(m, "add", m_cast(m, m_cast(m, d, NVM_F8E5), NVM_F32), m_const(m, 1)));
}
static void three_scales(maker *m, const int64_t *n) {
  m_out(m, by_scale(m, by_scale(m, by_scale(m, eight_product(m, n)))));
}
/* A scale of blocks as long as its operand is along d. */
static int by_128(maker *m, int s, int d, int64_t to) {
  const int64_t *n = m->v.at[s].shape, p = n[0], q = n[1];
  if (n[d] == to || n[d] == 1) return s;
  s = m_reshape(m, s, 3, d ? DIMS(p, q, 1) : DIMS(p, 1, q));
  s = m_expand(m, s, 3, d ? DIMS(p, q, 128) : DIMS(p, 128, q));
  s = m_reshape(m, s, 2, d ? DIMS(p, q * 128) : DIMS(p * 128, q));
  return to % 128 ? m_view(m, NVG_VSLICE, s, 2, d ? DIMS(p, to) : DIMS(to, q), 4, DIMS(0, 1, 0, 1)) : s;
}
/* p rows (columns) of 8 bits along k, times a scale of so many by blocks of 128, as float32. */
static int in_blocks(maker *m, int64_t p, int64_t k, int64_t scales, int transposed) {
  int x = leaf(m, NVM_F8E4, p, k);
  m->leaf.at[m->leaf.n - 1].align16 = 1;
  x = m_cast(m, transposed ? m_turn(m, x) : x, NVM_F32);
  int s = f32(m, scales, (k + 127) / 128);
  s = transposed ? m_turn(m, s) : s;
  return m_2(m, "multiply", x, by_128(m, by_128(m, s, transposed, p), !transposed, k));
}
static void blocks_by(maker *m, int x, int y) {
  int d = m_product(m, x, y);
  ((int64_t *)(uintptr_t)m->v.at[d].attr)[1] = NVM_PRECISION_TF32;
  m_out(m, m_cast(m, m_2(m, "multiply", d, m_const(m, 2)), NVM_BF16));
}
static void blocked_eights(maker *m, const int64_t *n) {
  blocks_by(m, in_blocks(m, n[0], n[2], n[0], 0), in_blocks(m, n[1], n[2], (n[1] + 127) / 128, 1));
}
static void eights_by_pieces(maker *m, const int64_t *n) {
  blocks_by(m, in_blocks(m, n[0], n[2], n[0], 0), in_blocks(m, n[1], n[2], n[1], 1));
}
static void eights_by_blocks(maker *m, const int64_t *n) {
  blocks_by(m, in_blocks(m, n[0], n[2], (n[0] + 127) / 128, 0), in_blocks(m, n[1], n[2], (n[1] + 127) / 128, 1));
}
static void half_blocked_eights(maker *m, const int64_t *n) {
  int y = m_cast(m, m_turn(m, leaf(m, NVM_F8E4, n[1], n[2])), NVM_F32);
  blocks_by(m, in_blocks(m, n[0], n[2], n[0], 0), y);
}
static void quantised(maker *m, const int64_t *n) { /* by the greatest of each 128, which its scale is made of */
  int64_t l = n[2] / 128;
  int x = m_reshape(m, f32(m, n[0], n[2]), 3, DIMS(n[0], l, 128));
  int s = m_2(m, "multiply", m_red(m, "maximum", m_1(m, "abs", x), 2, 1), m_const(m, 1.0f / 448));
  int q = m_2(m, "divide", x, m_expand(m, s, 3, DIMS(n[0], l, 128)));
  q = m_cast(m, m_cast(m, m_reshape(m, q, 2, DIMS(n[0], n[2])), NVM_F8E4), NVM_F32);
  q = m_2(m, "multiply", q, by_128(m, m_reshape(m, s, 2, DIMS(n[0], l)), 1, n[2]));
  blocks_by(m, q, in_blocks(m, n[1], n[2], (n[1] + 127) / 128, 1));
}
static void scaled_weights(maker *m, const int64_t *n) { /* of int8, before they are multiplied */
  int w = m_2(m, "multiply", m_cast(m, leaf(m, NVM_I8, n[1], n[2]), NVM_F32), f32(m, n[1], 1));
  int p = m_product(m, leaf(m, NVM_BF16, n[0], n[2]), m_turn(m, m_cast(m, w, NVM_BF16)));
  m_out(m, m_cast(m, p, NVM_BF16));
}
/* Integers of 8 bits on both sides */
static int bytes(maker *m, int64_t p, int64_t q, int transposed) {
  int x = leaf(m, NVM_I8, p, q);
  m->leaf.at[m->leaf.n - 1].align16 = 1;
  return transposed ? m_turn(m, x) : x;
}
static void whole(maker *m, const int64_t *n) {
  m_out(m, m_product(m, bytes(m, n[0], n[2], 0), bytes(m, n[1], n[2], 1)));
}
static void whole_across(maker *m, const int64_t *n) {
  m_out(m, m_product(m, bytes(m, n[0], n[2], 0), bytes(m, n[2], n[1], 0)));
}
static void whole_scaled(maker *m, const int64_t *n) { /* and what is multiplied is made on the way */
  int x = m_cast(m, m_2(m, "multiply", f32(m, n[0], n[2]), f32(m, n[0], 1)), NVM_I8);
  int d = m_2(m, "add", m_product(m, x, bytes(m, n[1], n[2], 1)), m_leaf(m, NVM_I32, 1, DIMS(n[1]), NULL));
  m_out(m, m_2(m, "multiply", m_cast(m, d, NVM_F32), f32(m, n[0], 1)));
}
static void whole_two(maker *m, const int64_t *n) {
  int x = bytes(m, n[0], n[2], 0), d = m_product(m, x, bytes(m, n[1], n[2], 1));
  m_out(m, m_cast(m, m_2(m, "add", d, m_product(m, x, bytes(m, n[1], n[2], 1))), NVM_I8));
}
static void whole_weights(maker *m, const int64_t *n) { /* that are MN-major, of a batch */
  int w = m_expand(m, bytes(m, n[2], n[1], 0), 3, DIMS(3, n[2], n[1]));
  m_out(m, m_product(m, m_leaf(m, NVM_I8, 3, DIMS(3, n[0], n[2]), NULL), w));
}
static void eights_of_rows(maker *m, const int64_t *n) { /* a scale of each row and column */
  int d = m_2(m, "multiply", eight_product(m, n), f32(m, n[0], 1));
  m_out(m, m_cast(m, m_2(m, "multiply", d, m_leaf(m, NVM_F32, 1, DIMS(n[1]), NULL)), NVM_BF16));
}
static void head(maker *m, const int64_t *n) { /* log of no element is not 0 */
  int x = m_1(m, "log", m_1(m, "abs", f32(m, n[0], n[2]))), s = f32(m, n[0], 1);
  int y = m_2(m, "add", f32(m, n[2], n[1]), m_const(m, 1));
  m_out(m, m_product(m, m_2(m, "multiply", m_1(m, "floor", x), s), y));
}
static void with_views(maker *m, const int64_t *n) { /* a slice with steps, a roll, a broadcast row as operands */
  int x = m_view(m, NVG_VSLICE, f32(m, 2 * n[0], n[2] + 3), 2, DIMS(n[0], n[2]), 4, DIMS(0, 2, 3, 1));
  int y = m_view(m, NVG_VROLL, f32(m, n[2], n[1]), 2, DIMS(n[2], n[1]), 2, DIMS(0, 1));
  m_out(m, m_product(m, x, y));
  m_out(m, m_product(m, m_expand(m, f32(m, 1, n[2]), 2, DIMS(n[0], n[2])), f32(m, n[2], n[1])));
}
static void with_itself(maker *m, const int64_t *n) {
  int x = f32(m, n[0], n[2]);
  m_out(m, m_product(m, x, m_turn(m, x)));
}
static void chain(maker *m, const int64_t *n) {
  int h = m_1(m, "relu", m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1])));
  m_out(m, m_product(m, h, f32(m, n[1], n[0])));
}
static void soft(maker *m, const int64_t *n) {
  int e = m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1]));
  m_out(m, m_2(m, "subtract", e, m_red(m, "maximum", e, 1, 1)));
}
static void sum_of(maker *m, const int64_t *n) { /* a reduction in the head is another kernel */
  int x = f32(m, n[0], n[2]), r = m_red(m, "maximum", x, 1, 1);
  m_out(m, m_product(m, m_2(m, "subtract", x, r), f32(m, n[2], n[1])));
}

static void most_of_rows(maker *m, const int64_t *n) { m_out(m, m_red(m, "maximum", biased(m, n), 1, 1)); }
static void sums_of_rows(maker *m, const int64_t *n) { /* small integers: any order */
  int d = m_2(m, "subtract", m_product(m, f32(m, n[0], n[2]), m_turn(m, f32(m, n[1], n[2]))), f32(m, n[0], 1));
  m_out(m, m_2(m, "multiply", m_red(m, "add", d, 1, 1), m_const(m, 0.5f)));
  m_out(m, d);
}
/* Products with an operand in common are one loop. */
static int gate(maker *m, int x, int y) { return m_2(m, "multiply", m_1(m, "silu", x), y); }
static void gated(maker *m, const int64_t *n) {
  int x = f32(m, n[0], n[2]);
  m_out(m, gate(m, m_product(m, x, f32(m, n[2], n[1])), m_product(m, x, m_turn(m, f32(m, n[1], n[2])))));
}
static void gated_halves(maker *m, const int64_t *n) {
  int x = leaf(m, NVM_BF16, n[0], n[2]), d[2];
  for (int i = 0; i < 2; i++)
    d[i] = m_cast(m, m_cast(m, m_product(m, x, leaf(m, NVM_BF16, n[2], n[1])), NVM_BF16), NVM_F32);
  int from = m->v.n, y = gate(m, d[0], d[1]);
  as_simplified(m, from);
  m_out(m, m_cast(m, y, NVM_BF16));
}
static void three(maker *m, const int64_t *n) {
  int x = m_1(m, "relu", f32(m, n[0], n[2]));
  for (int i = 0; i < 3; i++)
    m_out(m, m_2(m, "add", m_product(m, x, f32(m, n[2], n[1])), m_leaf(m, NVM_F32, 1, DIMS(n[1]), NULL)));
}
static void four(maker *m, const int64_t *n) { /* registers hold three */
  int x = f32(m, n[0], n[2]), d = m_product(m, x, f32(m, n[2], n[1]));
  for (int i = 0; i < 3; i++) d = m_2(m, "maximum", d, m_product(m, x, f32(m, n[2], n[1])));
  m_out(m, d);
}
static void common_right(maker *m, const int64_t *n) {
  int y = f32(m, n[2], n[1]), d = m_product(m, f32(m, n[0], n[2]), y), e = m_product(m, f32(m, n[0], n[2]), y);
  m_out(m, m_2(m, "subtract", d, e));
  m_out(m, m_turn(m, e));
}
static void common_halves(maker *m, const int64_t *n) {
  int y = leaf(m, NVM_F16, n[2], n[1]), d = m_product(m, leaf(m, NVM_F16, n[0], n[2]), y);
  m_out(m, m_2(m, "maximum", d, m_product(m, leaf(m, NVM_F16, n[0], n[2]), y)));
}
static void two_pairs(maker *m, const int64_t *n) {
  int x = leaf(m, NVM_C64, n[0], n[2]), d = m_product(m, x, leaf(m, NVM_C64, n[2], n[1]));
  m_out(m, m_map(m, "c.subtract", 2, (int[2]){ d, m_product(m, x, m_turn(m, leaf(m, NVM_C64, n[1], n[2]))) }));
}
static void two_wide_pairs(maker *m, const int64_t *n) { /* too many for a thread of a GPU */
  int x = leaf(m, NVM_C128, n[0], n[2]), d = m_product(m, x, leaf(m, NVM_C128, n[2], n[1]));
  m_out(m, m_map(m, "c.add", 2, (int[2]){ d, m_product(m, x, leaf(m, NVM_C128, n[2], n[1])) }));
}
static void two_batches(maker *m, const int64_t *n) { /* weights of each, and one for all */
  int x = m_leaf(m, NVM_F32, 3, DIMS(3, n[0], n[2]), NULL),
      d = m_product(m, x, m_leaf(m, NVM_F32, 3, DIMS(3, n[2], n[1]), NULL));
  m_out(m, m_2(m, "add", d, m_product(m, x, m_expand(m, f32(m, n[2], n[1]), 3, DIMS(3, n[2], n[1])))));
}
static void most_of_two(maker *m, const int64_t *n) {
  int x = f32(m, n[0], n[2]), d = m_product(m, x, f32(m, n[2], n[1]));
  m_out(m, m_red(m, "maximum", m_2(m, "subtract", d, m_product(m, x, f32(m, n[2], n[1]))), 1, 1));
}
static void strangers(maker *m, const int64_t *n) { /* nothing in common */
  int d = m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1]));
  m_out(m, m_2(m, "add", d, m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1]))));
}
static void of_each_other(maker *m, const int64_t *n) { /* x and (x w) are left operands of one w */
  int x = f32(m, n[0], n[2]), w = f32(m, n[2], n[2]), d = m_product(m, x, w);
  m_out(m, d);
  m_out(m, m_product(m, m_1(m, "relu", d), w));
}
static void batched_rows(maker *m, const int64_t *n) {
  int d =
      m_product(m, m_leaf(m, NVM_F32, 3, DIMS(3, n[0], n[2]), NULL), m_leaf(m, NVM_F32, 3, DIMS(3, n[2], n[1]), NULL));
  m_out(m, m_red(m, "maximum", d, 2, 1));
  m_out(m, m_red(m, "add", m_1(m, "abs", d), 2, 1));
}

/* Sums of columns, as of the gradient of a bias: where(h > 0, y w^T, 0), stored and summed; small integers: any
   order. */
static void columns(maker *m, const int64_t *n, nvm_dtype t, int transposed) {
  int y = transposed ? m_turn(m, leaf(m, t, n[2], n[0])) : leaf(m, t, n[0], n[2]);
  int h = m_cast(m, leaf(m, t, n[0], n[1]), NVM_F32);
  int d = m_cast(m, m_product(m, y, m_turn(m, leaf(m, t, n[1], n[2]))), t), zero = m_const(m, 0);
  int g = m_map(m, "where", 3, (int[3]){ m_2(m, "greater", h, zero), m_cast(m, d, NVM_F32), zero });
  m_out(m, m_cast(m, g, t));
  m_out(m, m_red(m, "add", g, 0, 1));
  as_simplified(m, m->v.n);
}
/* The same of (2, n0 / 2, k) by (k, n1), one product of n0 rows, whose tail has two dimensions of rows. */
static void columns_of_flat(maker *m, const int64_t *n, nvm_dtype t, int transposed) {
  int64_t half = n[0] / 2;
  (void)transposed;
  int x = m_reshape(m, m_leaf(m, t, 3, DIMS(2, half, n[2]), NULL), 2, DIMS(n[0], n[2]));
  int d = m_cast(m, m_product(m, x, leaf(m, t, n[2], n[1])), t), zero = m_const(m, 0);
  int h = m_cast(m, m_leaf(m, t, 3, DIMS(2, half, n[1]), NULL), NVM_F32);
  d = m_cast(m, m_reshape(m, d, 3, DIMS(2, half, n[1])), NVM_F32);
  int g = m_map(m, "where", 3, (int[3]){ m_2(m, "greater", h, zero), d, zero });
  m_out(m, m_cast(m, g, t));
  m_out(m, m_red(m, "add", g, 0, 2));
  as_simplified(m, m->v.n);
}
static void rows_of_flat(maker *m, const int64_t *n, nvm_dtype t, int transposed) {
  (void)transposed;
  int x = m_reshape(m, m_leaf(m, t, 3, DIMS(2, n[0] / 2, n[2]), NULL), 2, DIMS(n[0], n[2]));
  int d = m_reshape(m, m_product(m, x, leaf(m, t, n[2], n[1])), 3, DIMS(2, n[0] / 2, n[1]));
  m_out(m, m_red(m, "maximum", m_2(m, "add", d, m_leaf(m, NVM_F32, 1, DIMS(n[1]), NULL)), 2, 1));
  as_simplified(m, m->v.n);
}
static void columns_of_batches(maker *m, const int64_t *n, nvm_dtype t, int transposed) {
  (void)transposed;
  int d = m_product(m, m_leaf(m, t, 3, DIMS(2, n[0], n[2]), NULL), m_leaf(m, t, 3, DIMS(2, n[2], n[1]), NULL));
  m_out(m, m_red(m, "maximum", d, 1, 1));
  as_simplified(m, m->v.n);
}

typedef struct program { const char *name; void (*make)(maker *, const int64_t *); int steps; } program;
static const program programs[] = {
  { "plain", plain, 1 },
  { "left turned", left_turned, 1 },
  { "right turned", right_turned, 1 },
  { "both turned", both_turned, 1 },
  { "result turned", result_turned, 1 },
  { "doubles", doubles, 1 },
  { "pairs", pairs, 1 },
  { "wide pairs", wide_pairs, 1 },
  { "gelu", gelu, 1 },
  { "written gelu", written_gelu, 1 },
  { "written sigmoid", written_sigmoid, 1 },
  { "almost gelu", almost_gelu, 1 },
  { "relu of rows", relu_of_rows, 1 },
  { "aux", aux, 1 },
  { "scaled", scaled, 1 },
  { "residual", residual, 1 },
  { "wild", wild, 1 },
  { "less", less, 1 },
  { "moved", moved, 1 },
  { "negated", negated, 1 },
  { "given halves", given_halves, 1 },
  { "less bias", less_bias, 1 },
  { "fourth", fourth, 1 },
  { "huge", huge, 1 },
  { "tiny", tiny, 1 },
  { "nothing", nothing, 1 },
  { "least", least, 1 },
  { "infinite", infinite, 1 },
  { "extreme", extreme, 1 },
  { "extreme beta", extreme_beta, 1 },
  { "by array", by_array, 1 },
  { "batched", batched, 1 },
  { "spread weights", spread_weights, 1 },
  { "heads", heads, 1 },
  { "one head", one_head, 1 },
  { "halves", halves, 1 },
  { "half gelu", half_gelu, 1 },
  { "head", head, MOST },
  { "eights", eights, 3 },
  { "eight result", eight_result, 3 },
  { "eights across", eights_across, MOST },
  { "rounded eights", rounded_eights, MOST },
  { "three scales", three_scales, 3 },
  { "blocked eights", blocked_eights, MOST },
  { "eights by pieces", eights_by_pieces, MOST },
  { "eights by blocks", eights_by_blocks, MOST },
  { "half blocked eights", half_blocked_eights, MOST },
  { "eights of rows", eights_of_rows, 3 },
  { "whole", whole, 3 },
  { "whole across", whole_across, 3 },
  { "whole, scaled", whole_scaled, 3 },
  { "two of whole", whole_two, MOST },
  { "whole weights", whole_weights, 3 },
  { "with views", with_views, MOST },
  { "with itself", with_itself, 1 },
  { "chain", chain, 2 },
  { "soft", soft, 2 },
  { "sum of", sum_of, 3 },
  { "most of rows", most_of_rows, 2 },
  { "sums of rows", sums_of_rows, 2 },
  { "batched rows", batched_rows, 2 },
  { "gated", gated, 1 },
  { "gated halves", gated_halves, 1 },
  { "three", three, MOST },
  { "four", four, 2 },
  { "common right", common_right, 1 },
  { "common halves", common_halves, 1 },
  { "two pairs", two_pairs, 1 },
  { "two wide pairs", two_wide_pairs, 2 },
  { "two batches", two_batches, 1 },
  { "most of two", most_of_two, 2 },
  { "strangers", strangers, 2 },
  { "of each other", of_each_other, 2 },
};
static const int64_t sizes[][3] = { { 2, 2, 2 },    { 1, 1, 9 },     { 1, 40, 3 },     { 5, 33, 7 },
                                    { 64, 64, 64 }, { 70, 20, 130 }, { 129, 140, 65 }, { 3, 200, 300 } };
enum { PROGRAMS = sizeof programs / sizeof *programs, SIZES = sizeof sizes / sizeof *sizes };
enum { LARGEST = 6 }; /* takes longer than all others, so each third program has it */

/* Small integers: every order of a sum gives the same bits. */
static char **integers(maker *m, const nvg_graph *g) {
  char **data = NVB_NEWN(m->a, char *, g->nleaf + 1);
  srand(7);
  for (int i = 0; i < g->nleaf; i++) {
    const nvg_leaf *l = &g->leaf[i];
    nvm_dtype t = nvg_real_of(l->dtype);
    int64_t n = nvg_size(l->dtype) / nvg_size(t);
    for (int d = 0; d < l->rank; d++) n *= l->shape[d];
    data[i] = nvb_get(m->a, (size_t)(n * nvg_size(t)) + 64);
    for (int64_t j = 0; j < n; j++) {
      int64_t x = rand() % 9 - 4;
      uint64_t bits = nvg_class_of(t) < NVG_FLOAT ? (uint64_t)x : nvg_float_bits(t, (double)x);
      memcpy(data[i] + j * nvg_size(t), &bits, (size_t)nvg_size(t));
    }
  }
  return data;
}

typedef struct trial { const program *p; const int64_t *size; } trial;
static void try_one(nvb_arena *a, void *arg) {
  static const struct {
    const char *machine;
    int width;
  } on[] = { { "cpu16", 16 }, { "cpu16", 8 }, { "cpu16", 4 }, { "h200", 32 } };
  const trial *t = arg;
  maker m = { .a = a };
  if (t->p->make == chain && t->size[1] == 1) /* the second is over one element: a map */
    return;
  t->p->make(&m, t->size);
  nvg_graph *g = m_graph(&m);
  char **data = integers(&m, g);
  value *want = evaluate(&m, g, data);
  /* each program is compiled for each width, of one size */
  int turn = (int)(t->p - programs + (t->size - sizes[0]) / 3);
  for (int i = 0; i < 5; i++) { /* the last: one kernel a value */
    nvb_caps caps = *nvb_caps_find(on[i % 4].machine);
    caps.width = on[i % 4].width;
    nvf_plan *p = nvf_fuse(a, g, &caps, &(nvf_options){ .fuse = i < 4 });
    nvf_plan_check(a, p);
    nvb_text text = { .arena = a };
    nvf_plan_explain(&text, p);
    ck_assert_msg(i == 4 || p->nstep <= t->p->steps, "%s: %d steps, at most %d\n%s", t->p->name, p->nstep, t->p->steps,
                  nvb_text_get(&text));
    int compiled = i == turn % 3 && t->size[0] > 4 && t->size[0] < 100 && nvc_llvm_available();
    for (int w = INTERPRETED; w <= (compiled ? COMPILED : READ_BACK); w++) {
      char **out = run_plan_by(&m, p, data, (way)w);
      for (int o = 0; o < g->nout; o++)
        ck_assert_msg(differ(g, o, want, out[o]) == 0,
                      "%s of %d, %d, %d on %s (%d), way %d: output %d differs in %d elements", t->p->name,
                      (int)t->size[0], (int)t->size[1], (int)t->size[2], on[i % 4].machine, on[i % 4].width, w, o,
                      (int)differ(g, o, want, out[o]));
    }
  }
}

START_TEST(right_with_any_tail) {
  for (int i = _i % ONE_IN; i < SIZES; i += ONE_IN) {
    if (i == LARGEST && _i % 3) continue;
    nvb_arena *a = nvb_arena_new();
    trial t = { &programs[_i], sizes[i] };
    int rc = nvb_protect(a, try_one, &t);
    ck_assert_msg(rc == NVM_OK, "%s of %d, %d, %d: %s", programs[_i].name, (int)sizes[i][0], (int)sizes[i][1],
                  (int)sizes[i][2], nvb_message());
    nvb_arena_free(a);
  }
}
END_TEST

/* ---- the words */
static const struct {
  const char *program, *words;
} said[] = {
  { "plain", "70 x 20 x 130 of f32: d = a b" },
  { "left turned", "d = a^T b" },
  { "right turned", "d = a b^T" },
  { "both turned", "d = a^T b^T" },
  { "result turned", "d^T = a b" },
  { "doubles", "of f64: d = a b" },
  { "pairs", "of c64: d = a b" },
  { "wide pairs", "of c128: d = a b^T + c" },
  { "gelu", "d = gelu(a b + bias)" },
  { "written gelu", "d = gelu(a b + bias)" },
  { "written sigmoid", "d = gelu(a b + bias)" },
  { "almost gelu", "multiply of the sum" },
  { "relu of rows", "d = relu(a b + bias of rows)" },
  { "aux", "d = gelu(aux = a b + bias)" },
  { "scaled", "d = 0.5 a b + beta c" },
  { "less", "d = a b - c" },
  { "moved", "d = -0.25 a b + c" },
  { "negated", "d = -alpha a b - 2 c" },
  { "given halves", "of bf16: d = relu(-alpha a b + c)" },
  { "less bias", "a second or scaled bias" },
  { "fourth", "d = 0.25 a b" },
  { "huge", "divide of the sum" },
  { "tiny", "divide of the sum" },
  { "nothing", "multiply of the sum" },
  { "least", "multiply of the sum" },
  { "infinite", "multiply of the sum" },
  { "extreme", "a scale of the sum that may become 0 or infinite" },
  { "extreme beta", "multiply is added" },
  { "by array", "a scale of the sum that is an array, not a number" },
  { "halves", "of bf16: d = relu(a b)" },
  { "half gelu", "of bf16: d = gelu(a b + bias)" },
  { "with itself", "70 x 70 x 130 of f32: d = a b^T" },
  { "batched", "3 x 70 x 20 x 130 of f32: c of another dtype or shape" },
  { "spread weights", "210 x 20 x 130 of f32: d = a b" },
  { "residual", "relu of the sum" },
  { "wild", "more than two results" },
  { "heads", "an index map of the result" },
  { "one head", "2 x 70 x 20 x 130 of f32: d^T = a b" },
  { "head", "multiply of the left operand" },
  { "with views", "a prologue of the right operand" },
  { "with views", "an index map of the left operand" },
  { "gated", "two products with an operand in common" },
  { "four", "three products with an operand in common" },
  { "eights", "70 x 20 x 130 of f8e4 and f8e5: d = relu(scale_a scale_b a b^T + bias)" },
  { "eight result", "of f8e4: relu of the sum" },
  { "eights across", "of f8e4: d = a b" },
  { "rounded eights", "of f8e4: cast of the left operand" },
  { "three scales", "multiply of the sum" },
  { "blocked eights", "of f8e4: d = 2 (scale_a of 1 x 128) (scale_b of 128 x 128) a b^T" },
  { "eights by pieces", "of f8e4: d = 2 (scale_a of 1 x 128) (scale_b of 128 x 1) a b^T" },
  { "eights by blocks", "of f8e4: d = 2 (scale_a of 128 x 128) (scale_b of 128 x 128) a b^T" },
  { "half blocked eights", "of f32: a scale of one operand's blocks alone" },
  { "eights of rows", "of f8e4 and f8e5: d = (scale_a of rows) (scale_b of columns) a b^T" },
};
static int is_of_eights(const char *program) { return strstr(program, "eight") || strstr(program, "scales"); }

static double element(const nvf_matrix *x, char *const *buf, int64_t at) {
  uint64_t bits = 0;
  int size = nvg_size(x->type);
  memcpy(&bits, buf[x->param] + (x->offset + at) * size, (size_t)size);
  return nvg_bits_float(x->type, bits);
}

/* Of a row of a (a column of b) and a place in what is summed. */
static double scale_at(const nvf_gemm *p, int which, int64_t outer, int64_t k, char *const *buf) {
  const nvf_matrix *s = &p->scale[which];
  nvf_scale_mode by = p->by[which];
  outer = by == NVF_SCALE_TENSOR ? 0 : outer / (by == NVF_SCALE_BLOCK ? NVF_BLOCK : 1);
  k = by < NVF_SCALE_VECTOR ? 0 : k / NVF_BLOCK;
  return s->param < 0 ? 1 : element(s, buf, which ? k * s->row + outer * s->col : outer * s->row + k * s->col);
}

static double number(const nvf_scale *s, const nvf_kernel *k, char *const *buf) {
  nvf_matrix at = { .param = s->param, .type = s->param < 0 ? s->as : k->param[s->param].type };
  return s->value * (s->param < 0 ? 1 : nvg_bits_float(s->as, nvg_float_bits(s->as, element(&at, buf, 0))));
}

/* What the words say, of a real product without GELU, against what the kernel stored. */
static void follow(const nvf_gemm *p, const nvf_kernel *k, char *const *buf, const char *name) {
  int64_t batches = 1;
  double alpha = number(&p->alpha, k, buf), beta = number(&p->beta, k, buf);
  for (int d = 0; d < p->nbatch; d++) batches *= p->batch[d];
  for (int64_t i = 0; i < batches * p->m * p->n; i++) {
    int64_t r = i / p->n % p->m, c = i % p->n, at[5] = { 0 }, left = i / (p->m * p->n);
    const nvf_matrix *x[5] = { &p->a, &p->b, &p->c, &p->bias, &p->d };
    for (int d = p->nbatch - 1; d >= 0; left /= p->batch[d--])
      for (int j = 0; j < 5; j++) at[j] += left % p->batch[d] * x[j]->batch[d];
    double sum = 0;
    for (int64_t l = 0; l < p->k; l++)
      sum += element(x[0], buf, at[0] + r * p->a.row + l * p->a.col) * scale_at(p, NVF_SCALE_A, r, l, buf) *
             element(x[1], buf, at[1] + l * p->b.row + c * p->b.col) * scale_at(p, NVF_SCALE_B, c, l, buf);
    sum *= alpha;
    for (int j = 2; j < 4; j++)
      sum += x[j]->param < 0 ? 0 : (j == 2 ? beta : 1) * element(x[j], buf, at[j] + r * x[j]->row + c * x[j]->col);
    sum = p->act == NVF_ACT_RELU && sum < 0 ? 0 : sum;
    if (nvg_is_narrow(p->d.type)) sum = nvg_bits_float(p->d.type, nvg_float_bits(p->d.type, sum));
    ck_assert_msg(sum == element(&p->d, buf, at[4] + r * p->d.row + c * p->d.col), "%s: element %d, %d is %g in words",
                  name, (int)r, (int)c, sum);
  }
}

static void say_one(nvb_arena *a, void *arg) {
  const program *p = arg;
  maker m = { .a = a };
  p->make(&m, (int64_t[3]){ 70, 20, 130 });
  nvg_graph *g = m_graph(&m);
  nvf_plan *f = nvf_fuse(a, g, nvb_caps_find(is_of_eights(p->name) ? "h200" : "cpu16"), &(nvf_options){ .fuse = 1 });
  char **data = integers(&m, g), **out = run_plan(&m, f, data);
  nvb_text all = { .arena = a };
  for (int i = 0; i < f->nstep; i++) {
    const nvf_step *s = &f->step[i];
    char *buf[64];
    int temps = 0;
    if (!s->gemm) continue;
    nvf_gemm_print(&all, s->gemm);
    nvb_puts(&all, "\n");
    for (int j = 0; j < s->k->nparam; j++) {
      const nvf_buf *b = s->bind[j].kind == NVF_BUFFER ? &f->buf[s->bind[j].buf] : NULL;
      buf[j] = !b ? NULL : b->kind == NVF_BLEAF ? data[b->id] : b->kind == NVF_BOUT ? out[b->id] : NULL;
      temps |= b && b->kind == NVF_BTEMP;
    }
    if (!s->gemm->unsupported && !temps && s->gemm->act != NVF_ACT_GELU && nvg_parts(s->gemm->operands) == 1)
      follow(s->gemm, s->k, buf, p->name);
  }
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    ck_assert_msg(strcmp(said[i].program, p->name) || strstr(nvb_text_get(&all), said[i].words),
                  "%s: not \"%s\" but\n%s", p->name, said[i].words, nvb_text_get(&all));
}

START_TEST(the_words_say_the_same) { in_arena(say_one, &programs[_i], programs[_i].name); }
END_TEST

/* ---- what libraries offer, and vetoes */
typedef struct offer { const char *machine; void (*make)(maker *, const int64_t *); int64_t size[3];
  int offers, steps;
} offer;
enum {
  BLAS = NVF_CAN_GEMM | NVF_CAN_BIAS | NVF_CAN_RELU,
  LT = BLAS | NVF_CAN_F16 | NVF_CAN_GELU | NVF_CAN_AUX,
  LT8 = LT | NVF_CAN_F8,
  LTS = LT8 | NVF_CAN_TF32 | NVF_CAN_SCALES
};
static const offer offers[] = {
  { "cpu16", gelu, { 2048, 2048, 2048 }, 0, 1 },
  { "cpu16", gelu, { 2048, 2048, 2048 }, BLAS, 2 }, /* no GELU there: a pass of its own is less than the rate lost */
  { "cpu16", gelu, { 2048, 2048, 8 }, BLAS, 1 },    /* hardly a product */
  { "cpu16", relu_of_rows, { 2048, 2048, 2048 }, BLAS, 1 },
  { "cpu16", residual, { 2048, 2048, 2048 }, BLAS, 2 },
  { "cpu16", head, { 2048, 2048, 2048 }, BLAS, 2 }, /* both operands first, as parts of one grid */
  { "h200", half_gelu, { 4096, 4096, 4096 }, LT, 1 },
  { "h200", gelu, { 4096, 4096, 4096 }, LT, 2 }, /* GELU of 16-bit results alone */
  { "h200", aux, { 4096, 4096, 4096 }, LT, 2 },
  { "h200", residual, { 4096, 4096, 4096 }, LT, 2 },
  { "h200", chain, { 4096, 4096, 4096 }, LT, 2 },
  { "h200", spread_weights, { 4096, 4096, 4096 }, LT, 1 },
  { "h200", gated_halves, { 4096, 11008, 4096 }, LT, 1 }, /* the tail costs more than the library gains */
  { "h200", gated_halves, { 64, 64, 8192 }, LT, 1 },      /* split-K of long sums */
  { "h200", gated_halves, { 64, 64, 131072 }, LT, 3 },    /* libraries have more blocks for them */
  { "h200", eights, { 4096, 4096, 4096 }, LT8, 1 },
  { "h200", eights, { 4096, 4096, 4096 }, LT, 1 }, /* the kernel does */
  { "h200", eight_result, { 4096, 4096, 4096 }, LT8, 1 },
  { "h200", eights_across, { 4096, 4096, 4096 }, LT8, 3 }, /* both as f16 first, for the library */
  { "a100", eights, { 4096, 4096, 4096 }, LT8, 4 },        /* which cannot express the scales then */
  { "h200", blocked_eights, { 4096, 4096, 4096 }, LTS, 1 },
  { "h200", eights_by_pieces, { 4096, 4096, 4096 }, LTS, 1 },
  { "h200", eights_by_blocks, { 4096, 4096, 4096 }, LTS, 2 }, /* which takes none: those of rows first */
  { "b200", blocked_eights, { 4096, 4096, 4096 }, LTS, 4 },   /* nor any there: as tf32 */
  { "h200", quantised, { 4096, 4096, 4096 }, LTS, 2 },
  { "h200", quantised, { 64, 8192, 8192 }, LTS, 2 },
  { "h200", eights_of_rows, { 4096, 4096, 4096 }, LTS, 1 },
  { "h200", scaled_weights, { 16, 8192, 8192 }, LTS, 2 }, /* each round of the loop would wait for what it scales */
  { "h200", scaled_weights, { 16, 1024, 256 }, LTS, 1 },  /* there are few */
  { "cpu16", gated, { 2048, 2048, 2048 }, BLAS, 3 },
  { "cpu16", gated, { 2048, 2048, 8 }, BLAS, 1 },
};
static void offered(nvb_arena *a, void *arg) {
  const offer *o = arg;
  maker m = { .a = a };
  o->make(&m, o->size);
  nvf_plan *p =
      nvf_fuse(a, m_graph(&m), nvb_caps_find(o->machine), &(nvf_options){ .fuse = 1, .capabilities = o->offers });
  nvb_text t = { .arena = a };
  nvf_plan_check(a, p);
  nvf_plan_explain(&t, p);
  ck_assert_msg(p->nstep == o->steps, "%d steps, not %d:\n%s", p->nstep, o->steps, nvb_text_get(&t));
  for (int i = 0; i < p->nstep && o->offers && o->steps > 1; i++) /* what was cut off left a library's product */
    ck_assert_msg(!p->step[i].gemm || !p->step[i].gemm->unsupported, "%s", nvb_text_get(&t));
}
START_TEST(tails_are_cut_for_libraries) { in_arena(offered, &offers[_i], NULL); }
END_TEST

/* What goes in is made first. No library rounds to 8 bits: the kernel does, and what follows. */
static void rounded(nvb_arena *a, void *arg) {
  (void)arg;
  maker m = { .a = a };
  rounded_eights(&m, (int64_t[3]){ 4096, 4096, 4096 });
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("h200"), &(nvf_options){ .fuse = 1, .capabilities = LT8 });
  ck_assert_int_eq(p->nstep, 2);
  ck_assert_ptr_null(p->step[0].gemm);
  ck_assert_ptr_nonnull(p->step[1].gemm);
  ck_assert(p->step[1].gemm->own && p->step[1].gemm->unsupported && nvg_is_f8(p->step[1].gemm->operands));
}
START_TEST(rounded_to_8_bits) { in_arena(rounded, NULL, NULL); }
END_TEST

static void vetoed(nvb_arena *a, void *arg) {
  (void)arg;
  maker m = { .a = a };
  gelu(&m, (int64_t[3]){ 70, 20, 130 });
  nvg_graph *g = m_graph(&m);
  char **data = integers(&m, g);
  value *want = evaluate(&m, g, data);
  nvf_veto v[] = { { 0, "no words" }, { 0, "nor these" } };
  for (int n = 1; n <= 2; n++) { /* the product alone, again even where that is refused too */
    nvf_plan *p = nvf_fuse(a, g, nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1, .nveto = n, .veto = v });
    ck_assert_int_eq(p->nstep, 2);
    ck_assert_ptr_nonnull(p->step[0].gemm);
    ck_assert_ptr_null(p->step[0].gemm->unsupported);
    ck_assert_ptr_null(p->step[1].gemm);
    ck_assert_int_eq(differ(g, 0, want, run_plan(&m, p, data)[0]), 0);
  }
}
START_TEST(a_veto_leaves_the_product_alone) { in_arena(vetoed, NULL, NULL); }
END_TEST

/* An activation and what goes into it, of 4096 x 4096 x 4096: one kernel. cuBLASLt is slower at it than at the product
   alone, and keeps a mask for ReLU; where its products are much faster it is asked all the same. */
static const struct pair_of {
  const char *machine, *act;
  int own;
} pairs_of[] = {
  { "h200", "gelu_tanh", 1 },
  { "h200", "relu", 1 },
  { "b200", "gelu_tanh", 0 },
  { "a100", "gelu_tanh", 0 },
};
static void store_both(nvb_arena *a, void *arg) {
  const struct pair_of *x = arg;
  maker m = { .a = a };
  half_aux(&m, (int64_t[3]){ 4096, 4096, 4096 }, x->act);
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find(x->machine), &(nvf_options){ .fuse = 1, .capabilities = LT });
  ck_assert_int_eq(p->nstep, 1);
  ck_assert_int_eq(p->step[0].gemm->own, x->own);
}
START_TEST(two_results_go_where_they_are_faster) { in_arena(store_both, &pairs_of[_i], NULL); }
END_TEST

/* On a GPU the blocks that make a product reduce their rows of it too; `tile` is of the rows. */
static const struct column {
  const char *machine;
  void (*make)(maker *, const int64_t *, nvm_dtype, int);
  int64_t size[3];
  nvm_dtype type;
  int transposed;
  const char *tile;
} column[] = {
  { "h200", columns, { 2056, 264, 8 }, NVM_BF16, 0, "warp_specialize" },
  { "h200", columns, { 2056, 264, 8 }, NVM_F16, 1, "warp_specialize" },
  { "a100", columns, { 2056, 264, 8 }, NVM_BF16, 0, "mma = 1" },
  { "h200", columns, { 2056, 264, 8 }, NVM_F32, 0, "j: w4 l4 i4; k: i2 l8 i4" },
  { "h200", columns_of_batches, { 1100, 72, 16 }, NVM_F16, 0, "warp_specialize" },
  { "h200", columns_of_flat, { 2056, 264, 8 }, NVM_BF16, 0, "warp_specialize" },
  { "h200", columns_of_flat, { 2056, 264, 8 }, NVM_F32, 0, "j: w4 l4 i4; k: i2 l8 i4" },
  { "h200", rows_of_flat, { 600, 520, 8 }, NVM_BF16, 0, NULL },
  { "cpu16", columns, { 300, 64, 8 }, NVM_F32, 0, NULL },
};
static void sum_columns(nvb_arena *a, void *arg) {
  const struct column *c = arg;
  maker m = { .a = a };
  c->make(&m, c->size, c->type, c->transposed);
  nvg_graph *g = m_graph(&m);
  char **data = integers(&m, g);
  value *want = evaluate(&m, g, data);
  nvf_plan *p = nvf_fuse(a, g, nvb_caps_find(c->machine), &(nvf_options){ .fuse = 1 });
  nvb_text t = { .arena = a };
  nvf_plan_check(a, p);
  nvf_plan_explain(&t, p);
  nvf_schedule_print(&t, p->step[0].k, p->step[0].s, nvf_schedule_of(p->device));
  ck_assert_msg(p->nstep == 2, "%d steps:\n%s", p->nstep, nvb_text_get(&t));
  const char *said = nvb_text_get(&t);
  ck_assert_msg(!c->tile || (strstr(said, "of its columns") && strstr(said, c->tile)), "%s", said);
  for (int w = INTERPRETED; w <= READ_BACK; w++) {
    char **out = run_plan_by(&m, p, data, (way)w);
    for (int o = 0; o < g->nout; o++) ck_assert_int_eq(differ(g, o, want, out[o]), 0);
  }
}
START_TEST(columns_are_summed_where_they_are_made) { in_arena(sum_columns, &column[_i], NULL); }
END_TEST

/* Sums of a CPU's registers: all lanes are of one part of a complex number, and there are no more rows than the product
   has. */
static const struct layout {
  nvm_dtype type;
  int64_t m;
  const char *tile;
} layouts[] = {
  { NVM_F32, 512, "i: I16 i4; j: i4 l16" }, { NVM_F64, 512, "i: I16 i4; j: i4 l8" },
  { NVM_C64, 512, "i: I16 i4; j: i2 l16" }, { NVM_C128, 512, "i: I16 i4; j: i2 l8" },
  { NVM_F32, 3, "i: i4; j: i4 l16" },       { NVM_F32, 2, "i: i2; j: i4 l16" },
  { NVM_C64, 2, "i: i2; j: i2 l16" },
};
static void laid_out(nvb_arena *a, void *arg) {
  const struct layout *l = arg;
  maker m = { .a = a };
  m_out(&m, m_product(&m, leaf(&m, l->type, l->m, 300), leaf(&m, l->type, 300, 200)));
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  nvb_text t = { .arena = a };
  nvf_schedule_print(&t, p->step[0].k, p->step[0].s, "cpu");
  ck_assert_msg(strstr(nvb_text_get(&t), l->tile) != NULL, "no %s in\n%s", l->tile, nvb_text_get(&t));
}
START_TEST(tiles_are_whole_vectors) { in_arena(laid_out, &layouts[_i], NULL); }
END_TEST

/* Who is expected to be faster, as it was measured: m, n, k, batches and threads of a CPU. */
static const struct pick {
  nvm_dtype type;
  int64_t n[4];
  int cores, own;
} picks[] = {
  { NVM_F32, { 512, 512, 512, 1 }, 1, 0 },  { NVM_F32, { 2048, 2048, 2048, 1 }, 16, 0 },
  { NVM_F64, { 512, 512, 512, 1 }, 1, 0 },  { NVM_F32, { 2, 4096, 4096, 1 }, 1, 1 },
  { NVM_F32, { 16, 4096, 4096, 1 }, 1, 1 }, { NVM_F32, { 4, 512, 512, 1 }, 1, 1 }, /* copied by the library */
  { NVM_F32, { 2, 512, 512, 1 }, 1, 0 },    { NVM_F32, { 4, 64, 64, 1 }, 1, 0 },
  { NVM_F32, { 64, 64, 64, 1 }, 2, 0 },                                               /* read where they lie */
  { NVM_F32, { 64, 64, 64, 100 }, 1, 0 },   { NVM_F32, { 64, 64, 64, 1000 }, 16, 1 }, /* one thread's */
  { NVM_C64, { 16, 512, 512, 1 }, 1, 1 },   { NVM_C64, { 512, 512, 512, 1 }, 1, 0 },
  { NVM_BF16, { 4, 512, 512, 1 }, 1, 0 },
};
/* By AVX2, for which the library has no kernels of small matrices. */
static const struct pick avx2_picks[] = {
  { NVM_F64, { 8, 8, 8, 1000 }, 1, 1 },
  { NVM_F32, { 8, 8, 8, 1000 }, 1, 1 },
  { NVM_F64, { 32, 32, 32, 300 }, 1, 0 },
};
static void pick_on(nvb_arena *a, const struct pick *x, nvb_caps c) {
  const int64_t *n = x->n;
  double part = x->cores / (double)c.cores;
  for (int i = 0; i < NVB_GEMMS; i++) c.gemm[i].library *= part, c.gemm[i].generated *= part;
  c.cores = x->cores, c.bandwidth = part < 0.25 ? c.core_bandwidth * x->cores : c.bandwidth, c.l2_bandwidth *= part,
  c.rate *= part;
  for (int tail = 0; tail < 2; tail++) { /* what a library cannot express and is not cut off is the kernel's */
    maker m = { .a = a };
    int p = m_product(&m, m_leaf(&m, x->type, 3, DIMS(n[3], n[0], n[2]), NULL),
                      m_leaf(&m, x->type, 3, DIMS(n[3], n[2], n[1]), NULL));
    m_out(&m, tail && x->type == NVM_F32 ? m_1(&m, "gelu_tanh", p) : p);
    nvg_graph *g = m_graph(&m);
    for (int capabilities = 0; capabilities < 2; capabilities++) {
      nvf_options o = { .fuse = 1, .capabilities = capabilities ? NVF_CAN_GEMM | NVF_CAN_F16 : 0 };
      const nvf_gemm *gemm = nvf_fuse(a, g, &c, &o)->step[0].gemm;
      ck_assert_int_eq(gemm->own, capabilities && (x->own || gemm->act));
    }
  }
}
static void picked(nvb_arena *a, void *arg) { pick_on(a, arg, *nvb_caps_find("cpu16")); }
static void picked_by_avx2(nvb_arena *a, void *arg) {
  nvb_caps c = *nvb_caps_find("cpu16");
  c.width = 8;
  for (int i = 0; i < NVB_GEMMS; i++) c.gemm[i].library /= 2, c.gemm[i].generated /= 2;
  pick_on(a, arg, c);
}
START_TEST(libraries_are_taken_where_they_are_faster) { in_arena(picked, &picks[_i], NULL); }
END_TEST
START_TEST(libraries_are_taken_where_they_are_faster_by_avx2) { in_arena(picked_by_avx2, &avx2_picks[_i], NULL); }
END_TEST

/* The same on a GPU, whose library has words for these tails: bias and an activation. */
static const struct tail {
  const char *act;
  int64_t n[3];
  int own;
} tails[] = {
  { "relu", { 16384, 8192, 256 }, 1 },
  { "relu", { 4096, 4096, 4096 }, 1 },
  { "relu", { 2048, 2048, 2048 }, 1 },
  { "gelu_tanh", { 4096, 4096, 4096 }, 1 },
  { "gelu_tanh", { 2048, 2048, 2048 }, 1 },
  { "gelu_tanh", { 8192, 8192, 1024 }, 0 }, /* many results to few multiplications */
  { "gelu_tanh", { 16384, 8192, 256 }, 0 },
  { "gelu_tanh", { 16384, 16384, 128 }, 0 },
};
static void finished(nvb_arena *a, void *arg) {
  const struct tail *x = arg;
  const int64_t *n = x->n;
  const nvf_options o = { .fuse = 1, .capabilities = LT };
  maker m = { .a = a };
  int d = m_cast(&m, m_product(&m, leaf(&m, NVM_BF16, n[0], n[2]), leaf(&m, NVM_BF16, n[2], n[1])), NVM_BF16);
  int b = m_cast(&m, m_leaf(&m, NVM_BF16, 1, DIMS(n[1]), NULL), NVM_F32);
  m_out(&m, m_cast(&m, m_1(&m, x->act, m_2(&m, "add", m_cast(&m, d, NVM_F32), b)), NVM_BF16));
  as_simplified(&m, 0);
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("h200"), &o);
  ck_assert_int_eq(p->nstep, 1);
  ck_assert_msg(p->step[0].gemm->own == x->own, "%s, %d x %d x %d: own %d", x->act, (int)n[0], (int)n[1], (int)n[2],
                p->step[0].gemm->own);
}
START_TEST(tails_go_where_they_are_faster) { in_arena(finished, &tails[_i], NULL); }
END_TEST

SUITE("product", EACH(right_with_any_tail, programs), EACH(the_words_say_the_same, programs),
      EACH(tails_are_cut_for_libraries, offers), EACH(two_results_go_where_they_are_faster, pairs_of),
      EACH(columns_are_summed_where_they_are_made, column), rounded_to_8_bits, a_veto_leaves_the_product_alone,
      EACH(tiles_are_whole_vectors, layouts), EACH(libraries_are_taken_where_they_are_faster, picks),
      EACH(libraries_are_taken_where_they_are_faster_by_avx2, avx2_picks), EACH(tails_go_where_they_are_faster, tails))
