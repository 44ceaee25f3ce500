/* Golden plans, a second set: 32 patterns of everyday programs, each with kernels and bytes of the best plan by hand
   and the reason beside them. A plan may have no more kernels and 1.05 times the bytes. */
#include "golden.h"

enum { R = 32768, C = 1000, H = 2160, W = 3840, D = 4096, HALF = 1 << 23, QUARTER = 1 << 22 };
static const int64_t n24 = 1 << 24;

#define pow_(x, y) b(NVG_OP_POW, x, y)
#define square(x) u(NVG_OP_SQUARE, x)
static N wi(int64_t i) { return keep(nvg_weak('i', 0, 0, i)); }
static N clip(N x, N lo, N hi) { return apply(NVG_OP_CLIP, 3, (N[]){ x, lo, hi }, 0, NULL); }
static N mean_all(N x, int64_t n) { return mean_of(sum(x, -1, 0), n); }
static N tile(N x, int64_t times) {
  return apply(NVG_OP_TILE, 1, &x, 1, &(nvg_attr){ .name = "repetitions", .kind = 'I', .is = &times, .n = 1 });
}
static N repeat(N x, int64_t times) {
  nvg_attr a[2] = { { .name = "repeats", .kind = 'i', .i = times }, { .name = "axis", .kind = 'i', .i = 0 } };
  return apply(NVG_OP_REPEAT, 1, &x, 2, a);
}
static N softmax_of(N x, int axis) {
  N e = ex(sub(x, max_(x, axis, 1)));
  return dvd(e, sum(e, axis, 1));
}
static N lse_of(N x) {
  N m = max_(x, 1, 1);
  return add(m, lg(sum(ex(sub(x, m)), 1, 1)));
}
static N huber(N d) {
  N a = ab(d);
  return where(lt(a, w(1)), mul(w(0.5), mul(d, d)), sub(a, w(0.5)));
}

/* ---- rows */
static void residual_rmsnorm(void) {
  N y = add(X(R, C), X(R, C));
  out(y);
  out(mul(dvd(y, sq(add(mean_of(sum(mul(y, y), 1, 1), C), w(1e-5)))), X(C)));
}
static void groupnorm(void) {
  N x = reshape(X(128, 64, 32, 32), 128, 8, 8192), d = sub(x, mean_of(sum(x, 2, 1), 8192));
  N q = dvd(d, sq(add(mean_of(sum(mul(d, d), 2, 1), 8192), w(1e-5))));
  out(add(mul(reshape(q, 128, 64, 32, 32), reshape(X(64), 64, 1, 1)), reshape(X(64), 64, 1, 1)));
}
static void weight_norm(void) {
  N v = X(D, 1024);
  out(mul(reshape(X(D), D, 1), dvd(v, sq(sum(mul(v, v), 1, 1)))));
}
static void huber_of_differences(void) {
  N x = X(R, C);
  out(sum(huber(sub(slice(x, 0, R, 1, 1, C - 1, 1), slice(x, 0, R, 1, 0, C - 1, 1))), 1, 0));
}
static void standard_error(void) { out(dvd(red(NVG_OP_STD, X(R, C), 1, 0), sq(w(C)))); }
static void lse_difference(void) {
  N x = lse_of(X(R, C));
  out(sub(x, lse_of(X(R, C))));
}
static void masked_softmax(void) {
  N m = X(64, 1, 512);
  out(softmax_of(add(X(64, 512, 512), m), 2));
}
static void tempered_softmax(void) {
  N p = softmax_of(dvd(X(R, C), reshape(X(R), R, 1)), 1);
  out(p);
  out(max_(p, 1, 0));
}
static void winsorised_mean(void) {
  N x = X(R, C), m = red(NVG_OP_MEAN, x, 1, 1), s = mul(w(2), red(NVG_OP_STD, x, 1, 1));
  out(mean_of(sum(clip(x, sub(m, s), add(m, s)), 1, 0), C));
}
static void batched_dot(void) { out(sum(mul(X(64, 512, 128), X(64, 512, 128)), 2, 0)); }
static void outer_sum_max(void) { out(max_(add(reshape(X(8192), 8192, 1), X(8192)), 1, 0)); }
static void pairwise_l1(void) {
  N x = X(2048, 16);
  out(sum(ab(sub(reshape(x, 2048, 1, 16), X(2048, 16))), 2, 0));
}

/* ---- down to one number */
static void focal_loss(void) {
  N p = X(n24), q = where(lt(w(0.5), X(n24)), p, sub(w(1), p));
  out(mean_all(ng(mul(square(sub(w(1), q)), lg(q))), n24));
}
static void huber_mean(void) {
  N x = X(n24);
  out(mean_all(huber(sub(x, X(n24))), n24));
}
static void softplus_mean(void) {
  N x = X(n24);
  out(mean_all(add(u(NVG_OP_LOG1P, ex(ng(ab(x)))), mx(x, w(0))), n24));
}
static void smoothed_cross_entropy(void) {
  N x = X(R, C), t = leaf_of(NVM_I64, SHAPE(R)), p = sub(x, lse_of(x));
  N hit = sum(where(eq(arange(C), reshape(t, R, 1)), p, w(0)), 1, 0);
  out(mean_all(ng(add(mul(w(0.9), hit), mul(w(0.1), mean_of(sum(p, 1, 0), C)))), R));
}
static void hinge_loss(void) {
  N s = sum(mul(X(R, C), X(C)), 1, 0);
  out(mean_all(mx(w(0), sub(w(1), mul(X(R), s))), R));
}
static void differences(void) {
  N x = X(n24), d = sub(slice(x, 1, n24 - 1, 1), slice(x, 0, n24 - 1, 1));
  out(d);
  out(max_(ab(d), 0, 0));
}

/* ---- maps, generators, other places */
static void cosine_schedule(void) {
  out(mul(w(0.5 * 3e-4), add(w(1), u(NVG_OP_COS, mul(arange(n24), w(3.14159265358979 / (1 << 24)))))));
}
static void rotary(void) {
  N x = X(8, 16, 2048, 128), c = X(2048, 64), s = X(2048, 64);
  N p = slice(x, 0, 8, 1, 0, 16, 1, 0, 2048, 1, 0, 64, 1), q = slice(x, 0, 8, 1, 0, 16, 1, 0, 2048, 1, 64, 64, 1);
  out(concat(sub(mul(p, c), mul(q, s)), add(mul(p, s), mul(q, c)), 3));
}
static void chessboard(void) {
  out(where(eq(b(NVG_OP_BITWISE_AND, add(reshape(arange(D), D, 1), arange(D)), wi(1)), wi(0)), w(1), w(0)));
}
static void three_of_a_chain(void) {
  N x = X(n24), p = ex(x), q = sq(add(p, w(1)));
  out(p);
  out(q);
  out(mul(q, x));
}
static void reversed_concat(void) {
  N x = X(HALF), all = concat(x, X(QUARTER), 0);
  out(mul(slice(all, HALF + QUARTER - 1, HALF + QUARTER, -1), w(2)));
}
static void tile_and_repeat(void) {
  N x = tile(X(D), D), y = repeat(X(D), D);
  out(add(add(x, y), X(n24)));
}
static void triangular_mask(void) { out(mul(X(D, D), where(lt(reshape(arange(D), D, 1), arange(D)), w(0), w(1)))); }
static void logit_roundtrip(void) {
  N p = X(R, C);
  out(u(NVG_OP_SIGMOID, add(lg(dvd(p, sub(w(1), p))), X(C))));
}

/* ---- images */
static void gradient_magnitude(void) {
  N x = X(H, W);
#define V(i, j) slice(x, i, H - 2, 1, j, W - 2, 1)
  N dx = sub(V(1, 2), V(1, 0)), dy = sub(V(2, 1), V(0, 1));
#undef V
  out(sq(add(mul(dx, dx), mul(dy, dy))));
}
static void alpha_blend(void) {
  N a = X(H, W, 1), x = mul(a, X(H, W, 3));
  out(add(x, mul(sub(w(1), a), X(H, W, 3))));
}
static void gamma_and_saturation(void) {
  N g = pow_(X(H, W, 3), w(1 / 2.2)), l = sum(mul(g, X(3)), 2, 1);
  out(clip(add(l, mul(w(1.3), sub(g, l))), w(0), w(1)));
}
static void box_downsample(void) {
  int64_t ax[2] = { 1, 3 };
  out(reds(NVG_OP_MEAN, reshape(X(H, W), H / 4, 4, W / 4, 4), 0, 2, ax));
}
static void luma(void) { out(sum(mul(X(H, W, 3), X(3)), 2, 0)); }

/* ---- rows and columns of one array */
static void double_centring(void) {
  N x = X(D, D), r = mean_of(sum(x, 1, 1), D), c = mean_of(sum(x, 0, 1), D);
  out(add(sub(sub(x, r), c), mean_of(sum(r, 0, 1), D)));
}

#define B(n) (4.0 * (n)) /* f32 elements */
static const struct pattern patterns[] = {
  /* a block has whole rows: y stays in registers between its store and the scaling; two arrays in, two out */
  { "residual and RMSNorm", residual_rmsnorm, { 1, 1 }, B(4.0 * R * C + C) },
  /* a group is 8192 adjacent elements (32 KB, on chip), and there are 1024: once in, once out; channel j / 1024 */
  { "group norm", groupnorm, { 1, 1 }, B(2.0 * 128 * 65536 + 128) },
  /* a row of 1024 in registers, its gain one scalar load */
  { "weight normalisation", weight_norm, { 1, 1 }, B(2.0 * D * 1024 + D) },
  /* both views read the same lines, so x counts once; a sum a row */
  { "Huber of differences", huber_of_differences, { 1, 1 }, B((double)R * C + R) },
  /* moments of a row in registers; the root of C is a constant of the epilogue */
  { "standard error", standard_error, { 1, 1 }, B((double)R * C + R) },
  /* same row of both arrays in one block: four reductions, one number out */
  { "logsumexp difference", lse_difference, { 1, 1 }, B(2.0 * R * C + R) },
  /* the mask of a batch (2 KB) is read by 512 rows, from cache: once */
  { "softmax, additive mask", masked_softmax, { 1, 1 }, B(2.0 * 64 * 512 * 512 + 64 * 512) },
  /* the confidence is a third reduction of the row that is there */
  { "tempered softmax", tempered_softmax, { 1, 1 }, B(2.0 * R * C + 2 * R) },
  /* mean and deviation, then the clipped sum, of a row in registers: read once */
  { "winsorised mean", winsorised_mean, { 1, 1 }, B((double)R * C + R) },
  /* 32768 rows of 128, several a block */
  { "batched dot", batched_dot, { 1, 1 }, B(2.0 * 64 * 512 * 128 + 64 * 512) },
  /* 8192 rows of a sum that never exists: the second operand (32 KB) stays in cache */
  { "outer sum, then max", outer_sum_max, { 1, 1 }, B(3.0 * 8192) },
  /* tiles of both sides on chip, 16 in registers; the product space is written once */
  { "pairwise L1", pairwise_l1, { 1, 1 }, B(2.0 * 2048 * 16 + 2048.0 * 2048) },
  /* 2^24 elements to one: blocks leave partials, a second launch finishes; the loss itself is never stored */
  { "focal loss", focal_loss, { 2, 2 }, B(2.0 * (1 << 24)) },
  { "Huber mean", huber_mean, { 2, 2 }, B(2.0 * (1 << 24)) },
  { "softplus mean", softplus_mean, { 2, 2 }, B(1.0 * (1 << 24)) },
  /* rows: maximum, sum, hit and sum of p in registers, a loss a row; then their mean. Targets are 8 bytes */
  { "smoothed cross entropy", smoothed_cross_entropy, { 2, 2 }, B((double)R * C + 2 * R) },
  /* rows: a dot product and one hinge; then the mean of 32768 */
  { "hinge loss", hinge_loss, { 2, 2 }, B((double)R * C + C + R) },
  /* the maximum has the space of what is stored: its partials beside the store, then a finish */
  { "differences, largest", differences, { 2, 2 }, B(2.0 * (1 << 24)) },
  /* a map of the coordinate: nothing is read */
  { "cosine schedule", cosine_schedule, { 1, 1 }, B(1.0 * (1 << 24)) },
  /* both halves of x are wanted twice, at the same places: once in; tables of 512 KB serve 128 heads from L2 */
  { "rotary embedding", rotary, { 1, 1 }, B(2.0 * 8 * 16 * 2048 * 128 + 2.0 * 2048 * 64) },
  { "chessboard", chessboard, { 1, 1 }, B((double)D * D) },               /* coordinates only */
  { "three of a chain", three_of_a_chain, { 1, 1 }, B(4.0 * (1 << 24)) }, /* one space: one load, three stores */
  /* an index map in front of a select: each element of each part is read once, backwards */
  { "reversed concat", reversed_concat, { 1, 1 }, B(2.0 * (HALF + QUARTER)) },
  /* i % 4096 and i / 4096: 16 KB each, from cache */
  { "tile and repeat", tile_and_repeat, { 1, 1 }, B(2.0 * (1 << 24) + 2 * D) },
  /* x * 0 is NaN where x is, so all of x is read; the mask is made from coordinates */
  { "triangular mask", triangular_mask, { 1, 1 }, B(2.0 * D * D) },
  { "logit and sigmoid", logit_roundtrip, { 1, 1 }, B(2.0 * R * C + C) }, /* elementwise, a broadcast row */
  /* four shifted views of one buffer (the corners are not needed): once in, the interior out */
  { "gradient magnitude", gradient_magnitude, { 1, 1 }, B((double)H * W + (H - 2.0) * (W - 2)) },
  { "alpha blending", alpha_blend, { 1, 1 }, B(10.0 * H * W) }, /* 1 + 3 + 3 in, 3 out; alpha is i / 3 */
  /* a pixel is a row of 3, many a block: in once, out once */
  { "gamma and saturation", gamma_and_saturation, { 1, 1 }, B(6.0 * H * W) },
  /* 540 x 960 results, 4 x 4 inputs each, both sums in registers */
  { "box downsample", box_downsample, { 1, 1 }, B((double)H * W + H * W / 16.0) },
  { "luma", luma, { 1, 1 }, B(4.0 * H * W) }, /* a row of 3 in, one out */
  /* x (64 MB) fits no cache: whole rows of it give row means and column partials; the second launch has strips of
     columns, each of which finishes its own columns once, and the mean of 4096 row means (16 KB) */
  { "double centring", double_centring, { 2, 2 }, B(3.0 * D * D) },
};
GOLDEN_SUITE("more patterns")
