/* Golden plans: 60 patterns whose best kernel counts and bytes were derived by hand, for a GPU and for a CPU. A plan
   may have no more kernels and 1.05 times the bytes. */
#include "golden.h"

enum { R = 32768, C = 1000 };
static const int64_t n24 = 1 << 24;

static N softmax_of(N x, int axis) {
  N e = ex(sub(x, max_(x, axis, 1)));
  return dvd(e, sum(e, axis, 1));
}
static N var_of(N x, int axis, int64_t n, int kd) {
  N d = sub(x, mean_of(sum(x, axis, 1), n));
  return mean_of(sum(mul(d, d), axis, kd), n);
}
static void p1(void) { out(softmax_of(X(R, C), 1)); }
static void p2(void) {
  N x = X(R, C), m = max_(x, 1, 1);
  out(sub(sub(x, m), lg(sum(ex(sub(x, m)), 1, 1))));
}
static void p3(void) {
  N x = X(R, C), d = sub(x, mean_of(sum(x, 1, 1), C));
  out(add(mul(dvd(d, sq(add(mean_of(sum(mul(d, d), 1, 1), C), w(1e-5)))), X(C)), X(C)));
}
static void p4(void) {
  N x = X(R, C);
  out(mul(dvd(x, sq(add(mean_of(sum(mul(x, x), 1, 1), C), w(1e-5)))), X(C)));
}
static void p5(void) {
  N x = X(32, 64, 56, 56), g = X(64), c = X(64);
  int64_t ax[3] = { 0, 2, 3 }, n = 32 * 56 * 56;
  N d = sub(x, mean_of(reds(NVG_OP_SUM, x, 1, 3, ax), n)), v = mean_of(reds(NVG_OP_SUM, mul(d, d), 1, 3, ax), n);
  out(add(mul(dvd(d, sq(add(v, w(1e-5)))), reshape(g, 64, 1, 1)), reshape(c, 64, 1, 1)));
}
static void p6(void) {
  N x = X(32, 64, 56, 56), m = reshape(X(64), 64, 1, 1), v = reshape(X(64), 64, 1, 1);
  out(add(mul(dvd(sub(x, m), sq(add(v, w(1e-5)))), reshape(X(64), 64, 1, 1)), reshape(X(64), 64, 1, 1)));
}
static void p7(void) {
  N x = X(32, 64, 56, 56);
  int64_t ax[2] = { 2, 3 };
  N d = sub(x, mean_of(reds(NVG_OP_SUM, x, 1, 2, ax), 3136));
  out(dvd(d, sq(add(mean_of(reds(NVG_OP_SUM, mul(d, d), 1, 2, ax), 3136), w(1e-5)))));
}
static void p8(void) { out(var_of(X(n24), 0, n24, 0)); }
static void p9(void) {
  N x = X(n24), m = mean_of(sum(x, 0, 0), n24);
  out(sub(mean_of(sum(mul(x, x), 0, 0), n24), mul(m, m)));
}
static void p10(void) {
  N x = X(65536, 1024);
  out(red(NVG_OP_MEAN, x, 0, 0));
  out(red(NVG_OP_VAR, x, 0, 0));
}
static void p11(void) {
  N x = X(n24), lo = min_(x, 0, 0);
  out(dvd(sub(x, lo), sub(max_(x, 0, 0), lo)));
}
static void p12(void) {
  N x = X(R, C), y = X(R, C);
  out(dvd(sum(mul(x, y), 1, 0), sq(mul(sum(mul(x, x), 1, 0), sum(mul(y, y), 1, 0)))));
}
static void p13(void) {
  N d = sub(reshape(X(2048, 32), 2048, 1, 32), X(2048, 32));
  out(sum(mul(d, d), 2, 0));
}
static void p14(void) { out(u(NVG_OP_GELU_ERF, add(X(R, C), X(C)))); }
static void p15(void) {
  N s = X(n24), k = X(n24), t = X(n24), v = mul(w(0.3), sq(t)), d = dvd(add(lg(dvd(s, k)), mul(w(0.06), t)), v);
  N c = sub(mul(s, u(NVG_OP_ERF, d)), mul(mul(k, ex(mul(w(-0.02), t))), u(NVG_OP_ERF, sub(d, v))));
  out(c);
  out(add(sub(c, s), mul(k, ex(mul(w(-0.02), t)))));
}
static void p16(void) {
  N x = X(8192, 8192);
  out(sum(x, 0, 0));
  out(sum(x, 1, 0));
  out(max_(x, -1, 0));
}
static void p17(void) { out(sum(max_(X(512, 128, 256), 2, 0), 1, 0)); }
static void p18(void) { out(max_(sum(X(R, C), 1, 0), 0, 0)); }
static void p19(void) {
  N x = X(4096, 4096);
  out(add(x, permute(x, 1, 0)));
}
static void p20(void) {
  N x = X(65536, 1024);
  out(dvd(sub(x, red(NVG_OP_MEAN, x, 0, 1)), red(NVG_OP_STD, x, 0, 1)));
}
static N shifted(N x, int64_t i, int64_t n) { return slice(x, i, n, 1); }
static void p21(void) {
  N x = X(n24);
  out(add(add(mul(w(0.3), shifted(x, 0, n24 - 2)), mul(w(0.4), shifted(x, 1, n24 - 2))),
          mul(w(0.5), shifted(x, 2, n24 - 2))));
}
static void p22(void) {
  N x = X(2160, 3840), q = pad(x, 1);
  N s = add(slice(q, 2, 2160, 1, 1, 3840, 1), slice(q, 0, 2160, 1, 1, 3840, 1));
  s = add(add(s, slice(q, 1, 2160, 1, 2, 3840, 1)), slice(q, 1, 2160, 1, 0, 3840, 1));
  out(sub(s, mul(w(4), x)));
}
static void p23(void) {
  N x = X(2160, 3840);
  out(sub(add(add(add(roll(x, 1, 0), roll(x, -1, 0)), roll(x, 1, 1)), roll(x, -1, 1)), mul(w(4), x)));
}
static void p24(void) {
  N zr = X(n24), zi = X(n24), cr = X(n24), ci = X(n24);
  for (int i = 0; i < 6; i++) {
    N r2 = mul(zr, zr), i2 = mul(zi, zi), in = lt(add(r2, i2), w(4)), r = add(sub(r2, i2), cr),
      m = add(mul(w(2), mul(zr, zi)), ci);
    zr = where(in, r, zr);
    zi = where(in, m, zi);
  }
  out(zr);
  out(zi);
}
static void p25(void) {
  N x = X(R, C), m = X(R, C);
  out(dvd(sum(where(lt(w(0.5), m), x, w(0)), 1, 0), sum(m, 1, 0)));
}
static void p26(void) {
  N t = leaf_of(NVM_I64, SHAPE(R));
  out(u(NVG_OP_NEGATIVE, where(eq(arange(C), reshape(t, R, 1)), w(1), w(0))));
}
static void p27(void) { out(concat(ex(X(1 << 23)), sq(X(1 << 22)), 0)); }
static void p28(void) { out(ng(reshape(permute(reshape(concat(X(n24), X(n24), 0), 2, n24), 1, 0), 2 * n24))); }
static void p29(void) {
  N x = X(2160, 3840);
#define Q(i, j) slice(x, i, 1080, 2, j, 1920, 2)
  out(mx(mx(Q(0, 0), Q(1, 0)), mx(Q(0, 1), Q(1, 1))));
#undef Q
}
static void p30(void) {
  N x = X(n24), s = shifted(x, 0, n24 - 4);
  for (int i = 1; i < 5; i++) s = add(s, shifted(x, i, n24 - 4));
  out(dvd(s, w(5)));
}
static void p31(void) { out(mul(reshape(X(4096), 4096, 1), X(4096))); }
static void p32(void) { out(mul(reshape(softmax_of(X(8192), 0), 8192, 1), softmax_of(X(8192), 0))); }
static void p33(void) { out(sum(mul(X(256, 256, 256), reshape(X(256, 256), 256, 1, 256)), 2, 0)); }
static void p34(void) {
  N p = X(n24), g = X(n24), m = X(n24), v = X(n24);
  m = add(mul(w(0.9), m), mul(w(0.1), g));
  v = add(mul(w(0.99), v), mul(w(0.01), mul(g, g)));
  out(sub(p, dvd(mul(w(1e-3), m), add(sq(v), w(1e-8)))));
  out(m);
  out(v);
}
static void p35(void) {
  N x = X(R, C), m = max_(x, 1, 1);
  out(add(m, lg(sum(ex(sub(x, m)), 1, 1))));
}
static void p36(void) {
  N p = softmax_of(X(R, C), 1);
  out(ng(sum(mul(p, lg(p)), 1, 0)));
}
static void p37(void) {
  N hit = eq(red(NVG_OP_ARGMAX, X(R, C), 1, 0), leaf_of(NVM_I64, SHAPE(R)));
  out(mean_of(sum(where(hit, w(1), w(0)), 0, 0), R));
}
static void p38(void) {
  N g = X(n24);
  out(mul(g, b(NVG_OP_MINIMUM, w(1), dvd(w(2), sq(sum(mul(g, g), 0, 0))))));
}
static void p39(void) {
  N g[3] = { X(n24), X(1 << 22), X(4096) };
  N s = add(add(sum(mul(g[0], g[0]), 0, 0), sum(mul(g[1], g[1]), 0, 0)), sum(mul(g[2], g[2]), 0, 0));
  for (int i = 0; i < 3; i++) out(mul(g[i], b(NVG_OP_MINIMUM, w(1), dvd(w(2), sq(s)))));
}
static void p40(void) {
  out(ex(X(1 << 20)));
  out(sq(X(77777)));
}
static void p41(void) {
  N x = X(n24);
  for (int i = 0; i < 20; i++) x = add(mul(x, w(1.5)), w(i));
  out(x);
}
static void p42(void) {
  N q = add(mul(w(2), X(R, C)), w(1));
  out(sub(q, mean_of(sum(q, 1, 1), C)));
}
static void p43(void) {
  N q = X(n24);
  for (int i = 0; i < 8; i++) q = mul(sn(q), ex(q));
  out(dvd(q, sum(q, 0, 0)));
}
static void p44(void) {
  N e = ex(X(n24));
  out(add(e, w(1)));
  out(mul(e, w(2)));
  out(dvd(e, w(3)));
  out(sq(e));
  out(ng(e));
}
static void p45(void) {
  N x = leaf_of(NVM_F32, 0, NULL), y = leaf_of(NVM_F32, 0, NULL);
  out(sq(add(mul(x, x), mul(y, y))));
}
static void p46(void) { out(sum(add(mul(X(R, 1, C), X(1, 1, C)), X(R, 1, 1)), 1, 0)); }
static void p47(void) { out(sum(ex(X(0, 5)), 0, 0)); }
static void p48(void) {
  N x = X(n24);
  out(add(x, slice(x, n24 - 1, n24, -1)));
}
static void p49(void) {
  out(softmax_of(where(lt(reshape(arange(512), 512, 1), arange(512)), w(-1e9), X(64, 512, 512)), 2));
}
static void p50(void) {
  N x = X(16384, 4096), h = slice(x, 0, 16384, 1, 2048, 2048, 1);
  out(mul(slice(x, 0, 16384, 1, 0, 2048, 1), dvd(h, add(w(1), ex(ng(h))))));
}
static void p51(void) {
  N x = X(8192, 4096), y = dvd(x, sum(x, 1, 1));
  out(dvd(y, sum(y, 0, 1)));
}
static void p52(void) {
  N v = leaf_of(NVM_I64, SHAPE(1 << 20));
  out(sum(where(eq(reshape(v, 1 << 20, 1), arange(64)), w(1), w(0)), 0, 0));
}
static void p53(void) {
  N x = X(n24), k = X(7), s = NULL;
  for (int i = 0; i < 7; i++) {
    N t = mul(slice(k, i, 1, 1), shifted(x, i, n24 - 6));
    s = s ? add(s, t) : t;
  }
  out(s);
}
static void p54(void) {
  N x = pad(X(2160, 3840), 2), s = NULL, t = NULL;
  for (int i = 0; i < 5; i++) {
    N y = mul(w(0.1 + i), slice(x, 0, 2164, 1, i, 3840, 1));
    s = s ? add(s, y) : y;
  }
  for (int i = 0; i < 5; i++) {
    N y = mul(w(0.1 + i), slice(s, i, 2160, 1, 0, 3840, 1));
    t = t ? add(t, y) : y;
  }
  out(t);
}
static void p55(void) {
  out(reshape(broadcast(reshape(X(1080, 1920), 1080, 1, 1920, 1), 1080, 2, 1920, 2), 2160, 3840));
}
static void p56(void) { out(add(mul(permute(reshape(X(32, 512, 1024), 32, 512, 16, 64), 0, 2, 1, 3), X(64)), X(64))); }
static void p57(void) {
  N p = softmax_of(X(R, C), 1), d = sub(p, mean_of(sum(p, 1, 1), C));
  out(dvd(d, max_(ab(d), 1, 1)));
}
static void p58(void) { out(softmax_of(X(8, 1 << 21), 1)); }
static void p59(void) {
  N y = X(R, C), g = X(R, C);
  out(mul(y, sub(g, sum(mul(g, y), 1, 1))));
}
static void p60(void) {
  N x = X(1 << 22, 3);
  out(softmax_of(x, 1));
}

#define MB(n, c) ((double)(n) * (c) * 4)
static const struct pattern patterns[] = {
  { "softmax", p1, { 1, 1 }, MB(2, R *C) },
  { "log-softmax", p2, { 1, 1 }, MB(2, R *C) },
  { "layernorm", p3, { 1, 1 }, MB(2, R *C) },
  { "rmsnorm", p4, { 1, 1 }, MB(2, R *C) },
  { "batch norm, training", p5, { 3, 1 }, 102.8e6 },
  { "batch norm, inference", p6, { 1, 1 }, 51.38e6 },
  { "instance norm", p7, { 1, 1 }, 51.38e6 },
  { "variance", p8, { 3, 3 }, 134.2e6 },
  { "one-pass moments", p9, { 2, 2 }, 67.11e6 },
  { "mean and var of columns", p10, { 2, 1 }, 268.4e6 },
  { "min-max scaling", p11, { 2, 2 }, 201.3e6 },
  { "cosine similarity", p12, { 1, 1 }, 262.3e6 },
  { "pairwise distances", p13, { 1, 1 }, 17.3e6 },
  { "bias and gelu", p14, { 1, 1 }, 262.1e6 },
  { "Black-Scholes", p15, { 1, 1 }, 335.5e6 },
  { "mixed reductions", p16, { 2, 2 }, 268.5e6 },
  { "reduction of a reduction", p17, { 1, 1 }, 67.11e6 },
  { "max of row sums", p18, { 2, 2 }, 131.1e6 },
  { "x + x.T", p19, { 1, 1 }, 134.2e6 },
  { "columns standardised", p20, { 2, 1 }, 805.3e6 },
  { "3-point stencil", p21, { 1, 1 }, 134.2e6 },
  { "Laplacian by pad", p22, { 1, 1 }, 66.36e6 },
  { "Laplacian by roll", p23, { 1, 1 }, 66.36e6 },
  { "Mandelbrot", p24, { 1, 1 }, 402.7e6 },
  { "masked mean", p25, { 1, 1 }, 262.3e6 },
  { "one-hot", p26, { 1, 1 }, 131.3e6 },
  { "concat of two chains", p27, { 1, 1 }, 100.7e6 },
  { "interleave", p28, { 1, 1 }, 268.4e6 },
  { "pooling by slices", p29, { 1, 1 }, 41.47e6 },
  { "moving average", p30, { 1, 1 }, 134.2e6 },
  { "outer product", p31, { 1, 1 }, 67.14e6 },
  { "outer of softmaxes", p32, { 2, 2 }, 268.6e6 },
  { "batched matvec", p33, { 1, 1 }, 67.63e6 },
  { "Adam", p34, { 1, 1 }, 469.8e6 },
  { "logsumexp", p35, { 1, 1 }, 131.2e6 },
  { "entropy of softmax", p36, { 1, 1 }, 131.2e6 },
  { "top-1 accuracy", p37, { 2, 2 }, 131.3e6 },
  { "clip by norm", p38, { 2, 2 }, 201.3e6 },
  { "clip by global norm", p39, { 2, 2 }, 251.7e6 },
  { "two chains", p40, { 1, 2 }, 9.011e6 },
  { "chain of 40", p41, { 1, 1 }, 134.2e6 },
  { "cheap diamond", p42, { 1, 1 }, 262.1e6 },
  { "expensive diamond", p43, { 2, 2 }, 268.4e6 },
  { "five consumers", p44, { 1, 1 }, 402.7e6 },
  { "0-d", p45, { 1, 1 }, 12 },
  { "extents of 1", p46, { 1, 1 }, 262.3e6 },
  { "empty", p47, { 1, 1 }, 20 },
  { "flip", p48, { 1, 1 }, 134.2e6 },
  { "causal softmax", p49, { 1, 1 }, 134.2e6 },
  { "SwiGLU", p50, { 1, 1 }, 402.7e6 },
  { "Sinkhorn step", p51, { 3, 2 }, 402.8e6 },
  { "histogram by iota", p52, { 2, 2 }, 8.389e6 },
  { "correlation", p53, { 1, 1 }, 134.2e6 },
  { "separable blur", p54, { 1, 1 }, 66.36e6 },
  { "upsample", p55, { 1, 1 }, 41.47e6 },
  { "split heads", p56, { 1, 1 }, 134.2e6 },
  { "two diamonds", p57, { 1, 1 }, 262.1e6 },
  { "softmax of long rows", p58, { 3, 3 }, 268.4e6 },
  { "softmax backward", p59, { 1, 1 }, 393.2e6 },
  { "rows of 3", p60, { 1, 1 }, 100.7e6 },
};
GOLDEN_SUITE("patterns")
