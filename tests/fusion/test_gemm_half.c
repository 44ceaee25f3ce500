/* Which products with a transpose are computed by half: those of one matrix, to which nothing is added that need not be
   symmetric, where half the work is less time; an epilogue is cut off for it where that pays. */
#include "oracle.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

/* ---- products of an n x k matrix */
static int leaf(maker *m, int64_t p, int64_t q) { return m_leaf(m, NVM_F32, 2, DIMS(p, q), NULL); }
static int of_rows(maker *m, const int64_t *n) {
  int x = leaf(m, n[0], n[1]);
  return m_product(m, x, m_turn(m, x));
}
static void rows(maker *m, const int64_t *n) { m_out(m, of_rows(m, n)); }
static void columns(maker *m, const int64_t *n) {
  int x = leaf(m, n[1], n[0]);
  m_out(m, m_product(m, m_turn(m, x), x));
}
static void batch(maker *m, const int64_t *n) {
  int x = m_leaf(m, NVM_F32, 3, DIMS(3, n[0], n[1]), NULL);
  m_out(m, m_product(m, x, m_turn(m, x)));
}
static void two_matrices(maker *m, const int64_t *n) {
  m_out(m, m_product(m, leaf(m, n[0], n[1]), m_turn(m, leaf(m, n[0], n[1]))));
}
static void itself(maker *m, const int64_t *n) {
  int x = leaf(m, n[0], n[0]);
  m_out(m, m_product(m, x, x));
}
static void scaled(maker *m, const int64_t *n) { m_out(m, m_2(m, "multiply", of_rows(m, n), m_const(m, 0.5f))); }
static void added(maker *m, const int64_t *n) { m_out(m, m_2(m, "add", of_rows(m, n), leaf(m, n[0], n[0]))); }
static void biased(maker *m, const int64_t *n) {
  m_out(m, m_2(m, "add", of_rows(m, n), m_leaf(m, NVM_F32, 1, DIMS(n[0]), NULL)));
}

enum { CAN = NVF_CAN_GEMM | NVF_CAN_BIAS | NVF_CAN_RELU, HALF = CAN | NVF_CAN_HALF };
static const struct one {
  void (*make)(maker *m, const int64_t *n);
  int64_t n[2];
  int capabilities, half, steps;
} each[] = {
  { rows, { 8192, 8192 }, HALF, 1, 1 },         { rows, { 8192, 8192 }, CAN, 0, 1 }, /* a library that cannot */
  { columns, { 8192, 8192 }, HALF, 1, 1 },      { columns, { 5000, 300 }, HALF, 1, 1 },
  { batch, { 4096, 4096 }, HALF, 1, 1 },        { scaled, { 5001, 5000 }, HALF, 1, 1 },
  { rows, { 512, 8192 }, HALF, 0, 1 }, /* fewer tiles than SMs */
  { rows, { 8192, 16 }, HALF, 0, 1 },  /* the mirror moves more than the multiplications take */
  { two_matrices, { 8192, 8192 }, HALF, 0, 1 }, { itself, { 8192, 8192 }, HALF, 0, 1 },
  { added, { 8192, 8192 }, HALF, 1, 2 }, /* in a kernel of its own */
  { biased, { 8192, 8192 }, HALF, 1, 2 },       { added, { 1024, 1024 }, HALF, 0, 1 },
};
static void plan_one(nvb_arena *a, void *arg) {
  const struct one *c = arg;
  maker m = { .a = a };
  c->make(&m, c->n);
  nvf_options o = { .fuse = 1, .capabilities = c->capabilities };
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("h200"), &o);
  nvf_plan_check(a, p);
  nvb_text t = { .arena = a };
  nvf_plan_explain(&t, p);
  const nvf_gemm *g = p->step[0].gemm;
  ck_assert_msg(g && (g->half > 0) == c->half && p->nstep == c->steps, "half %d:\n%s", g ? g->half : -1,
                nvb_text_get(&t));
  ck_assert(!g->half || (g->symmetric && !g->own && nvf_half_may(g)));
}
START_TEST(taken_where_it_is_faster) { in_arena(plan_one, &each[_i], NULL); }
END_TEST

SUITE("gemm_half", EACH(taken_where_it_is_faster, each))
