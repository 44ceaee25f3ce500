/* Golden plans of matrix products, where there is no library of them. */
#include "golden.h"

enum { M = 4096, K = 1024 };
static N mm(N x, N y) { return b(NVG_OP_MATMUL, x, y); }
static N turn(N x) { return u(NVG_OP_MATRIX_TRANSPOSE, x); }
static N gelu(N x) { return u(NVG_OP_GELU_TANH, x); }
static N relu(N x) { return u(NVG_OP_RELU, x); }
#define H(...) leaf_of(NVM_BF16, SHAPE(__VA_ARGS__))
#define E(...) leaf_of(NVM_F8E4, SHAPE(__VA_ARGS__))
#define I8(...) leaf_of(NVM_I8, SHAPE(__VA_ARGS__))
#define F64(...) leaf_of(NVM_F64, SHAPE(__VA_ARGS__))
#define C64(...) leaf_of(NVM_C64, SHAPE(__VA_ARGS__))

/* One kernel: the tail is computed where the sums are. */
static void biased_gelu(void) { out(gelu(add(mm(X(M, K), X(K, M)), X(M)))); }
static void turned(void) { out(mm(X(M, K), turn(X(M, K)))); }
static void with_itself(void) {
  N x = X(M, K);
  out(mm(x, turn(x)));
} /* read once, as far as memory goes */
static void gradient(void) { out(mm(turn(X(M, K)), X(M, K))); }
static void batched(void) { out(mm(X(32, 512, 64), X(32, 64, 512))); }
static void weights(void) { out(add(mm(X(8, 512, K), X(K, K)), X(K))); }
static void heads(void) { out(permute(reshape(mm(X(8, 512, K), X(K, K)), 8, 512, 16, 64), 0, 2, 1, 3)); }
static void scores(void) { /* q k^T / 8 of heads that lie side by side */
  N q = permute(reshape(X(8, 512, K), 8, 512, 16, 64), 0, 2, 1, 3),
    k = permute(reshape(X(8, 512, K), 8, 512, 16, 64), 0, 2, 3, 1);
  out(dvd(mm(q, k), w(8)));
}
static void pairs(void) { out(mm(C64(K, K), C64(K, K))); }
static void doubles(void) { out(mm(F64(M, K), F64(K, M))); }
static void doubles_turned(void) { out(gelu(add(mm(F64(M, K), turn(F64(M, K))), F64(M)))); }
static void doubles_added(void) { out(add(mm(turn(F64(K, M)), F64(K, M)), F64(M, M))); }
static void alpha_beta(void) { out(add(mul(w(0.5), mm(X(M, K), X(K, K))), mul(w(2), X(M, K)))); }
static void with_aux(void) {
  N h = add(mm(X(M, K), X(K, M)), X(M));
  out(h);
  out(gelu(h));
}
static void residual(void) { out(add(relu(add(mm(X(M, K), X(K, K)), X(K))), X(M, K))); }
static void half(void) { out(gelu(add(mm(H(M, K), H(K, M)), H(M)))); }
static N wide(N x) { return apply(NVG_OP_ASTYPE, 1, &x, 1, &(nvg_attr){ .name = "dtype", .kind = 'd', .i = NVM_F32 }); }
static void eights(void) { out(relu(mul(mul(mm(wide(E(M, K)), turn(wide(E(M, K)))), X(1)), X(1)))); }
static void short_sums(void) {
  N x = H(4 * M, 128);
  out(gelu(add(mm(x, turn(H(4 * M, 128))), H(4 * M))));
}
static void eights_as_they_are(void) { out(mm(E(M, K), turn(E(M, K)))); }
/* A GPU reads the bytes (79.7 and 83.9 MB); a CPU makes them wider first. */
static void byte_weights(void) { out(gelu(add(mul(mm(H(M, K), turn(I8(M, K))), X(M)), X(M)))); }
static void few_rows_of_bytes(void) { out(mul(mm(H(16, M), I8(M, M)), X(M))); }
static void gated_bytes(void) {
  N x = H(M, K);
  out(mul(u(NVG_OP_SILU, mul(mm(x, I8(K, M)), X(M))), mul(mm(x, I8(K, M)), X(M))));
}
/* Bytes on both sides: the sum in 32 bits is made a float, scaled and rounded where it is. */
static N mm32(N x, N y) {
  N in[2] = { x, y };
  return apply(NVG_OP_MATMUL, 2, in, 1, &(nvg_attr){ .name = "dtype", .kind = 'd', .i = NVM_I32 });
}
static void bytes(void) { out(mm32(I8(M, K), turn(I8(M, K)))); }
static void scaled_bytes(void) { out(relu(mul(mul(wide(mm32(I8(M, K), turn(I8(M, K)))), X(M, 1)), X(M)))); }
static void bytes_across(void) { out(mm32(I8(M, K), I8(K, M))); } /* a GPU turns the right operand first */
/* one block of columns: nothing is computed twice */
static void scaled_left(void) { out(mm(mul(X(M, K), X(M, 1)), X(K, 64))); }

/* x is read once */
static void gated(void) {
  N x = X(M, K);
  out(mul(u(NVG_OP_SILU, mm(x, X(K, M))), mm(x, X(K, M))));
}
static void gated_half(void) {
  N x = H(M, K);
  out(mul(u(NVG_OP_SILU, mm(x, H(K, M))), mm(x, H(K, M))));
}
static void qkv(void) {
  N x = X(M, K);
  for (int i = 0; i < 3; i++) out(mm(x, X(K, K)));
}
/* of two inputs, one g */
static void both_gradients(void) {
  N g = H(M, K);
  out(mm(turn(H(M, K)), g));
  out(mm(turn(H(M, K)), g));
}

/* In pieces of bfloat16: a pass over each operand writes them all, one product is all of theirs. */
static N mm_as(N x, N y, nvm_precision p) {
  N in[2] = { x, y };
  return apply(NVG_OP_MATMUL, 2, in, 1, &(nvg_attr){ .name = "precision", .kind = 'i', .i = p });
}
static void pieces(void) { out(mm_as(X(M, K), X(K, M), NVM_PRECISION_BF16X3)); }
static void more_pieces(void) { out(gelu(add(mm_as(X(M, K), turn(X(M, K)), NVM_PRECISION_BF16X9), X(M)))); }
static void columns_in_pieces(void) { out(mm_as(turn(X(K, M)), X(K, M), NVM_PRECISION_BF16X9)); }
static void qkv_in_pieces(void) { /* those of x are made once */
  N x = X(M, K);
  for (int i = 0; i < 3; i++) out(mm_as(x, X(K, K), NVM_PRECISION_BF16X3));
}

/* Two: a product ends what came before it. */
static void chained(void) { out(mm(relu(mm(X(M, K), X(K, M))), X(M, K))); }
static void softmax_after(void) { /* a row is longer than a tile */
  N x = mm(X(M, K), X(K, M)), e = ex(sub(x, max_(x, 1, 1)));
  out(dvd(e, sum(e, 1, 1)));
}
static void softmax_of_halves(void) { /* the product is a rounding point: what is stored of it has 16 bits */
  N x = mm(H(M, K), H(K, M)), e = ex(sub(x, max_(x, 1, 1)));
  out(dvd(e, sum(e, 1, 1)));
}
/* 64 blocks would compute each element */
static void dear_head(void) { out(mm(u(NVG_OP_GELU_ERF, X(M, K)), X(K, M))); }
/* Rows of a product are reduced as far as a block has them (64 columns of f32), what is left is small. */
static void sums_after(void) { out(sum(mm(X(M, K), X(K, M)), 1, 0)); }
static void most_too(void) {
  N y = relu(mm(X(M, K), X(K, M)));
  out(y);
  out(max_(y, 1, 0));
}
/* In the widest tiles. */
static N square_of_halves(void) { return mm(H(M, M), H(M, M)); }
static void most_of_squares(void) { out(max_(square_of_halves(), 1, 0)); }
static void least_of_squares(void) { out(red(NVG_OP_ARGMIN, square_of_halves(), 1, 0)); }
static void sums_of_squares(void) { out(sum(relu(square_of_halves()), 1, 0)); }
static void most_of_halves(void) { out(max_(mm(H(65536, 64), H(64, 1024)), 1, 0)); } /* on tensor cores */
static void nearest(void) { /* of 1024 centres: their squares are a kernel too */
  N x = X(65536, 64), c = X(1024, 64);
  out(red(NVG_OP_ARGMIN, sub(sum(mul(c, c), 1, 0), mul(w(2), mm(x, turn(c)))), 1, 0));
}
static void normed(void) {
  N x = X(M, K), d = sub(x, mean_of(sum(x, 1, 1), K));
  out(mm(mul(dvd(d, sq(add(mean_of(sum(mul(d, d), 1, 1), K), w(1e-5)))), X(K)), X(K, M)));
}
/* Weights, and their bias: whole columns in strips leave units idle, so the sums are partials and a finish. */
static void backward(void) {
  N x = X(M, K), y = X(M, K);
  out(mm(turn(x), y));
  out(sum(y, 0, 0));
}
/* A copy costs less than warps lose. */
static void gradient_in_tf32(void) { out(mm_as(turn(X(M, K)), X(M, K), NVM_PRECISION_TF32)); }
/* What a layer's gradient is and the sums of its columns: a GPU's blocks add up their rows of them. */
static void bias_gradient(void) {
  N d = where(b(NVG_OP_GREATER, H(M, K), w(0)), mm(H(M, M), turn(H(K, M))), w(0));
  out(d);
  out(sum(d, 0, 0));
}
/* Two layers there and back: relu(h) alone is kept, for h > 0 is read off it, and it is stored once for both its
   readers. Five products; sums of the columns of two gradients: on a GPU in the tiles of these, what is left of both in
   one kernel; on a CPU a pass and a finish each. */
static void train(int k) {
  N x = H(M, k), w2 = H(k, k), t = H(M, k), h = add(mm(x, H(k, k)), H(k)), r = relu(h);
  N dy = mul(sub(add(mm(r, w2), H(k)), t), w(2. / M)), dh = where(b(NVG_OP_GREATER, h, w(0)), mm(dy, turn(w2)), w(0));
  out(mm(turn(x), dh)), out(sum(dh, 0, 0)), out(mm(turn(r), dy)), out(sum(dy, 0, 0));
}
static void training(void) { train(K); }
static void training_wide(void) { train(M); } /* tiles whose sums fill the registers */
static void two_layers(void) {
  N h = relu(mm(X(M, K), X(K, K)));
  out(mm(h, X(K, K)));
  out(h);
}
/* Three. */
/* float32 on a GPU: with 64 columns in one block the softmax is a head, and maxima and sums alone are stored. A CPU has
   one kernel, without scores in memory; so has a GPU for 16 bits. */
static void attention(void) {
  N q = X(16, 512, 64), k = X(16, 512, 64), v = X(16, 512, 64), s = mul(mm(q, turn(k)), w(0.125)),
    e = ex(sub(s, max_(s, 2, 1)));
  out(mm(dvd(e, sum(e, 2, 1)), v));
}
static void attention_of_halves(void) { /* 4096 queries and keys of 32 heads: four matrices of 33.6 MB */
  N q = H(2, 16, 4096, 128), k = H(2, 16, 4096, 128), v = H(2, 16, 4096, 128);
  out(mm(u(NVG_OP_SOFTMAX, mul(mm(q, turn(k)), w(0.088))), v));
}
static void attention_under_a_mask(void) { /* scores bounded by tanh, a mask for each head, heads in groups of 4 */
  N q = X(2, 2, 4, 1024, 64), k = X(2, 2, 1, 1024, 64), v = X(2, 2, 1, 1024, 64), m = X(2, 4, 1, 1024),
    s = add(mul(w(30), u(NVG_OP_TANH, mul(mm(q, turn(k)), w(0.125 / 30)))), m), e = ex(sub(s, max_(s, 4, 1)));
  out(dvd(mm(e, v), sum(e, 4, 1)));
}

/* Bytes: 4096 x 1024 f32 are 16.78 MB, the square of 4096 67.11 MB, that of 1024 4.194 MB. */
static const struct pattern patterns[] = {
  { "gelu(x @ w + b)", biased_gelu, { 1, 1 }, 100.68e6 },
  { "x @ w.T", turned, { 1, 1 }, 100.66e6 },
  { "x @ x.T", with_itself, { 1, 1 }, 83.89e6 },
  { "x.T @ y", gradient, { 1, 1 }, 37.75e6 },
  { "batched", batched, { 1, 1 }, 41.94e6 },
  { "weights for a batch", weights, { 1, 1 }, 37.75e6 },
  { "heads", heads, { 1, 1 }, 37.75e6 },
  { "scores", scores, { 1, 1 }, 167.8e6 },
  { "float64", doubles, { 1, 1 }, 201.3e6 },
  { "float64 with a tail", doubles_turned, { 1, 1 }, 201.4e6 },
  { "float64 and a matrix", doubles_added, { 1, 1 }, 335.5e6 },
  { "complex", pairs, { 1, 1 }, 25.17e6 },
  { "alpha, beta", alpha_beta, { 1, 1 }, 54.53e6 },
  { "aux", with_aux, { 1, 1 }, 167.8e6 },
  { "residual", residual, { 1, 1 }, 54.53e6 },
  { "bfloat16", half, { 1, 1 }, 50.34e6 },
  { "scaled left", scaled_left, { 1, 1 }, 18.1e6 },
  { "float8", eights, { 1, 3 }, 142.7e6 },
  { "float8 as they are", eights_as_they_are, { 1, 2 }, 58.8e6 },
  { "chained", chained, { 2, 2 }, 201.3e6 },
  { "softmax after", softmax_after, { 2, 2 }, 234.9e6 },
  { "softmax of bfloat16", softmax_of_halves, { 2, 2 }, 117.5e6 },
  { "dear head", dear_head, { 2, 2 }, 134.2e6 },
  { "gated", gated, { 1, 1 }, 117.4e6 },
  { "gated bfloat16", gated_half, { 1, 1 }, 58.72e6 },
  { "sums after", sums_after, { 2, 2 }, 35.67e6 },
  { "most too", most_too, { 2, 2 }, 102.8e6 },
  { "most of bfloat16", most_of_halves, { 2, 2 }, 17.04e6 },
  { "nearest", nearest, { 3, 3 }, 43.0e6 },
  { "normed", normed, { 2, 2 }, 134.2e6 },
  { "tf32 x.T @ y", gradient_in_tf32, { 2, 1 }, 71.31e6 },
  { "backward", backward, { 3, 3 }, 54.53e6 },
  { "two layers", two_layers, { 2, 2 }, 75.5e6 },
  { "q, k, v", qkv, { 1, 1 }, 79.69e6 },
  { "both gradients", both_gradients, { 1, 1 }, 29.36e6 },
  { "gradient of a bias", bias_gradient, { 2, 2 }, 67.1e6 },
  { "training", training, { 6, 9 }, 145e6 },
  { "attention", attention, { 3, 1 }, 58.85e6 },
  { "attention of bfloat16", attention_of_halves, { 1, 1 }, 134.2e6 },
  { "attention under a mask", attention_under_a_mask, { 3, 1 }, 279.1e6 },
  /* 4 bytes of each operand are read, 6 (12) written and read again; small passes share a launch */
  { "bf16x3", pieces, { 3, 1 }, 201.3e6 },
  { "bf16x3 q, k, v", qkv_in_pieces, { 2, 1 }, 167.8e6 },
  { "bf16x9 with a tail", more_pieces, { 3, 1 }, 302e6 },
  { "bf16x9 of columns", columns_in_pieces, { 3, 1 }, 302e6 },
  { "int8 weights", byte_weights, { 1, 2 }, 96.51e6 },
  { "gated int8 weights", gated_bytes, { 1, 2 }, 117.5e6 },
  { "int8 weights, few rows", few_rows_of_bytes, { 1, 1 }, 17.19e6 },
  { "int8", bytes, { 1, 2 }, 75.5e6 },
  { "scaled int8", scaled_bytes, { 1, 2 }, 75.6e6 },
  { "int8 across", bytes_across, { 2, 2 }, 84e6 },
  { "short sums", short_sums, { 1, 1 }, 545.3e6 },
  { "training, wide", training_wide, { 7, 9 }, 705.2e6 },
  { "most of squares", most_of_squares, { 2, 2 }, 67.64e6 },
  { "sums of squares", sums_of_squares, { 2, 2 }, 67.64e6 },
  { "least of squares", least_of_squares, { 2, 2 }, 68.19e6 },
};
GOLDEN_SUITE("products")
