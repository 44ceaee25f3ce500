/* The graph with reduction orders of what users write, against texts in golden/ (NVM_UPDATE=1 writes them anew), each
   parsed back; and the rewrites one by one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "nodes.h"

static const char *golden;
static void compare(nvb_arena *a, const nvg_graph *raw, const nvg_graph *g) {
  (void)raw;
  nvb_text t = { .arena = a }, again = { .arena = a };
  nvg_graph_print(&t, g);
  const nvg_graph *back = nvg_graph_parse(a, nvb_text_get(&t), golden);
  nvg_graph_print(&again, back);
  ck_assert_str_eq(nvb_text_get(&again), nvb_text_get(&t));
  nvb_hash h = nvg_graph_hash(g), k = nvg_graph_hash(back);
  ck_assert(nvb_hash_eq(h, k));
  char path[256], want[1 << 16];
  snprintf(path, sizeof path, "tests/graph/golden/%s.graph", golden);
  if (getenv("NVM_UPDATE")) {
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(nvb_text_get(&t), f);
    fclose(f);
  }
  FILE *f = fopen(path, "r");
  ck_assert_msg(f != NULL, "no %s", path);
  want[fread(want, 1, sizeof want - 1, f)] = 0;
  fclose(f);
  ck_assert_str_eq(nvb_text_get(&t), want);
}
static void is_golden(const char *name, nvg_node *n) {
  ck_assert_msg(n != NULL, "%s", nvb_message());
  golden = name;
  ck_assert_msg(stages(&n, 1, compare) == NVM_OK, "%s: %s", name, nvb_message());
  drop_nodes();
}

START_TEST(reductions_get_their_stamps) {
  nvg_node *x = leaf(NVM_F32, 2, 4, 1000);
  is_golden("softmax", op1("softmax", x));
  is_golden("sum_separated", op1a("sum", leaf(NVM_F32, 4, 8, 32, 7, 9), L("axis", 0, 2, 3)));
  is_golden("sum_column", op1a("sum", leaf(NVM_F64, 2, 100, 16), I("axis", 0)));
  is_golden("sum_narrow_column", op1a("sum", leaf(NVM_F64, 2, 100, 15), I("axis", 0)));
  is_golden("sum_over_extents_of_1", op1a("sum", leaf(NVM_F32, 3, 5, 1, 6), L("axis", 0, 2)));
  is_golden("sum_of_one", op1a("sum", leaf(NVM_F32, 2, 5, 1), I("axis", 1)));
  is_golden("sum_of_none", op1a("sum", leaf(NVM_F32, 2, 5, 0), I("axis", 1)));
  is_golden("sum_of_bool", op1("sum", leaf(NVM_BOOL, 1, 9)));
  is_golden("max_of_int8", op1("max", leaf(NVM_I8, 1, 9)));
  is_golden("argmax", op1a("argmax", leaf(NVM_F32, 2, 4, 100), I("axis", 1)));
  is_golden("cumulative_sum", op1("cumulative_sum", leaf(NVM_F32, 1, 99)));
}
END_TEST

START_TEST(variance_takes_one_pass_where_that_pays) {
  is_golden("var_rows", op1a("var", leaf(NVM_F32, 2, 4, 1000), I("axis", 1)));
  is_golden("var_long_rows", op1a("var", leaf(NVM_F32, 2, 2, 20000), I("axis", 1)));
  is_golden("var_columns", op1a("var", leaf(NVM_F32, 2, 6400, 32), I("axis", 0)));
  is_golden("var_two_levels", op1a("var", leaf(NVM_F32, 3, 32, 64, 100), L("axis", 0, 2), F("correction", 1)));
  is_golden("logsumexp_long", op1("logsumexp", leaf(NVM_F32, 1, 20001)));
}
END_TEST

START_TEST(sixteen_bits_round_at_the_marks) {
  nvg_node *h = leaf(NVM_F16, 1, 8), *w = leaf(NVM_BF16, 1, 8);
  is_golden("half_chain", op1("exp", op2("add", op2("multiply", h, h), real(1))));
  h = leaf(NVM_F16, 1, 8);
  is_golden("half_compare", op3("where", op2("less", op2("multiply", h, h), real(1)), op2("multiply", h, h), h));
  h = leaf(NVM_F16, 1, 8);
  is_golden("half_sum", op2("add", op1a("sum", op2("multiply", h, h), I("keepdims", 1)), h));
  h = leaf(NVM_F16, 1, 8);
  is_golden("half_cast", op1a("astype", op2("multiply", h, h), D("dtype", NVM_F32)));
  h = leaf(NVM_F16, 1, 8);
  w = leaf(NVM_BF16, 1, 8);
  is_golden("half_mixed", op2("add", op2("multiply", h, h), w));
  /* the user's float32 is read exactly by the conversion, so its tanh is no 16-bit value */
  is_golden("half_of_float", op1a("astype", op1("tanh", leaf(NVM_F32, 1, 8)), D("dtype", NVM_BF16)));
  is_golden("half_softmax", op1("softmax", op2("multiply", leaf(NVM_F16, 1, 8), real(2))));
}
END_TEST

/* How many products the graph as it was collected has, and the last one's operands, sums and precision; what it
   multiplies instead of integers of 8 bits. */
static int products, instead;
static nvm_dtype factor, sums;
static int64_t precision;
static void see_instead(nvb_arena *a, const nvg_graph *g) {
  uint8_t *which = nvb_get(a, (size_t)g->n + 1);
  for (int i = 0; i < g->n; i++) which[i] = (uint8_t)nvg_of_bytes(g, &g->v[i]);
  g = nvg_with_operands(a, g, which);
  nvg_graph_check(a, g);
  for (int i = 0; i < g->n; i++)
    if (g->v[i].kind == NVG_VCALL) instead = g->v[i].dtype;
}
static void count_products(nvb_arena *a, const nvg_graph *raw, const nvg_graph *g) {
  see_instead(a, g);
  products = 0;
  for (int i = 0; i < raw->n; i++) {
    const nvg_val *v = &raw->v[i];
    if (v->kind != NVG_VCALL) continue;
    products++, factor = raw->v[v->in[0]].dtype, sums = (nvm_dtype)v->attr[0], precision = v->attr[1];
    ck_assert_int_eq(v->dtype, sums);
    ck_assert_int_eq(raw->v[v->in[1]].dtype, factor);
  }
}
static void has_products(nvg_node *n, int count) {
  ck_assert_msg(n != NULL, "%s", nvb_message());
  ck_assert_msg(stages(&n, 1, count_products) == NVM_OK, "%s", nvb_message());
  ck_assert_int_eq(products, count);
  drop_nodes();
}

START_TEST(a_matrix_times_a_matrix_is_a_call) {
  static const nvm_dtype floats[] = { NVM_F16, NVM_BF16, NVM_F32, NVM_F64, NVM_C64, NVM_C128 };
  for (int i = 0; i < 6; i++) {
    has_products(op2("matmul", leaf(floats[i], 2, 2, 3), leaf(floats[i], 2, 3, 4)), 1);
    ck_assert_int_eq(factor, floats[i]);
    ck_assert_int_eq(sums, nvg_compute_of(floats[i]));
    ck_assert_int_eq(precision, NVM_PRECISION_IEEE);
  }
  has_products(op2("matmul", leaf(NVM_F16, 2, 2, 3), leaf(NVM_F32, 2, 3, 4)), 1);
  ck_assert_int_eq(factor, NVM_F32);
  has_products(op2a("matmul", leaf(NVM_BF16, 2, 2, 3), leaf(NVM_BF16, 2, 3, 4), D("dtype", NVM_F32)), 1);
  ck_assert_int_eq(factor, NVM_BF16);
  has_products(op2a("matmul", leaf(NVM_F16, 2, 2, 3), leaf(NVM_F16, 2, 3, 4), D("dtype", NVM_F64)), 1);
  ck_assert_int_eq(factor, NVM_F64);
  has_products(op2a("matmul", leaf(NVM_I8, 2, 2, 3), leaf(NVM_I8, 2, 3, 4), D("dtype", NVM_F32)), 1);
  ck_assert_int_eq(factor, NVM_F32);
  has_products(op2a("matmul", leaf(NVM_F32, 2, 2, 3), leaf(NVM_F32, 2, 3, 4), I("precision", NVM_PRECISION_TF32)), 1);
  ck_assert_int_eq(precision, NVM_PRECISION_TF32);
  has_products(op2a("matmul", leaf(NVM_F64, 2, 2, 3), leaf(NVM_F64, 2, 3, 4), I("precision", NVM_PRECISION_TF32)), 1);
  ck_assert_int_eq(precision, NVM_PRECISION_IEEE);
  /* rows, columns, integers and nothing are sums */
  has_products(op2("matmul", leaf(NVM_F32, 2, 1, 3), leaf(NVM_F32, 2, 3, 4)), 0);
  has_products(op2("matmul", leaf(NVM_F32, 2, 2, 3), leaf(NVM_F32, 2, 3, 1)), 0);
  has_products(op2("matmul", leaf(NVM_F32, 1, 3), leaf(NVM_F32, 2, 3, 4)), 0);
  has_products(op2("matmul", leaf(NVM_F32, 2, 2, 0), leaf(NVM_F32, 2, 0, 4)), 0);
  has_products(op2("matmul", leaf(NVM_I32, 2, 2, 3), leaf(NVM_I32, 2, 3, 4)), 0);
  /* but for narrow ones, which are exact in floats */
  has_products(op2("matmul", leaf(NVM_U8, 2, 9, 256), leaf(NVM_U8, 2, 256, 9)), 1);
  ck_assert_int_eq(factor, NVM_F32);
  has_products(op2a("matmul", leaf(NVM_U8, 2, 9, 257), leaf(NVM_U8, 2, 257, 9), D("dtype", NVM_I32)), 1);
  ck_assert_int_eq(factor, NVM_F64);
  has_products(op2("matmul", leaf(NVM_I16, 2, 9, 3), leaf(NVM_I8, 2, 3, 9)), 1);
  ck_assert_int_eq(factor, NVM_F64);
  has_products(op2("matmul", leaf(NVM_F32, 3, 9, 4, 4), leaf(NVM_F32, 3, 9, 4, 4)), 0); /* and so are tiny ones */
  /* int8 in 32 bits, while these are all that is wanted or hold the sum; floats in its place */
  static const struct {
    int k;
    nvm_dtype sum, factor, instead;
  } bytes[] = { { 1024, NVM_I8, NVM_I8, NVM_F32 },
                { 1025, NVM_I32, NVM_I8, NVM_F64 },
                { 131072, NVM_I32, NVM_I8, NVM_F64 },
                { 131071, NVM_I64, NVM_I8, NVM_F64 },
                { 131072, NVM_I64, NVM_F64, NVM_F64 } };
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
    has_products(
        op2a("matmul", leaf(NVM_I8, 2, 9, bytes[i].k), leaf(NVM_I8, 2, bytes[i].k, 9), D("dtype", bytes[i].sum)), 1);
    ck_assert_int_eq(factor, bytes[i].factor);
    ck_assert_int_eq(sums, factor == NVM_I8 ? NVM_I32 : NVM_F64);
    ck_assert_int_eq(instead, bytes[i].instead);
  }
  /* batches are views, and equal products are one */
  has_products(op2("matmul", leaf(NVM_F32, 4, 5, 1, 2, 3), leaf(NVM_F32, 3, 7, 3, 5)), 1);
  nvg_node *x = leaf(NVM_F32, 2, 8, 8), *w = leaf(NVM_F32, 2, 8, 8);
  has_products(op2("add", op2("matmul", x, w), op2("matmul", x, w)), 1);
  x = leaf(NVM_F32, 2, 8, 8), w = leaf(NVM_F32, 2, 8, 8);
  has_products(op2("add", op2("matmul", x, w), op2a("matmul", x, w, I("precision", 1))), 2);
}
END_TEST

START_TEST(products_round_what_they_read_and_make) {
  nvg_node *h = leaf(NVM_F16, 2, 4, 8), *w = leaf(NVM_F16, 2, 8, 20);
  is_golden("half_product", op2("add", op2("matmul", op2("multiply", h, h), w), real(1)));
  is_golden("batched_product",
            op2("matmul", op1("matrix_transpose", leaf(NVM_C64, 2, 3, 4)), leaf(NVM_C64, 3, 2, 3, 5)));
}
END_TEST

static int values;
static nvg_vkind last_kind;
static void count_values(nvb_arena *a, const nvg_graph *raw, const nvg_graph *g) {
  (void)a, (void)raw;
  values = g->n;
  last_kind = g->v[g->out[0]].kind;
}
/* How many values are left, and what kind makes the output. */
static void leaves(nvg_node *n, int count, nvg_vkind kind) {
  ck_assert_msg(n != NULL, "%s", nvb_message());
  ck_assert_msg(stages(&n, 1, count_values) == NVM_OK, "%s", nvb_message());
  ck_assert_int_eq(values, count);
  ck_assert_int_eq(last_kind, kind);
}

START_TEST(exact_algebra_and_no_other) {
  nvg_node *x = leaf(NVM_F32, 1, 8), *i = leaf(NVM_I32, 1, 8);
  leaves(op2("multiply", x, real(1)), 1, NVG_VLEAF);
  leaves(op2("add", x, real(-0.0)), 1, NVG_VLEAF);
  leaves(op2("add", x, real(0.0)), 3, NVG_VMAP); /* -0 + 0 is +0 */
  leaves(op2("subtract", x, real(0.0)), 1, NVG_VLEAF);
  leaves(op2("subtract", x, real(-0.0)), 3, NVG_VMAP);
  leaves(op2("subtract", real(0.0), x), 3, NVG_VMAP);
  leaves(op2("add", i, whole(0)), 1, NVG_VLEAF);
  leaves(op2("divide", x, real(1)), 1, NVG_VLEAF);
  leaves(op2("multiply", x, real(0)), 3, NVG_VMAP);
  leaves(op1("negative", op1("negative", x)), 1, NVG_VLEAF);
  /* equal values are one */
  leaves(op2("multiply", op2("multiply", x, real(2)), op2("multiply", x, real(2))), 4, NVG_VMAP);
  leaves(op3("where", op0("full", L("shape", 8), I("fill_value", 1), D("dtype", NVM_BOOL)), x, i), 2, NVG_VMAP);
  leaves(op2("multiply", op0("ones", L("shape", 8), D("dtype", NVM_F32)), x), 1, NVG_VLEAF);
  /* computed once, then spread */
  leaves(op2("add", scalar(NVM_F32), op0("zeros", L("shape", 8), D("dtype", NVM_F32))), 5, NVG_VEXPAND);
  leaves(op2("add", op0("full", L("shape", 8), F("fill_value", 2)), real(3)), 3, NVG_VEXPAND);
  drop_nodes();
}
END_TEST

START_TEST(a_scaled_sum_is_one_fma_where_the_product_is_exact) {
  nvg_node *x = leaf(NVM_F32, 1, 8), *y = leaf(NVM_F64, 1, 8), *z = leaf(NVM_C64, 1, 8), *i = leaf(NVM_I32, 1, 8);
  leaves(op2("add", op2("multiply", x, real(0.5)), real(0.5)), 3, NVG_VMAP);
  leaves(op2("add", real(-3), op2("multiply", real(-0.25), y)), 4, NVG_VMAP);
  leaves(op2("subtract", op2("multiply", x, real(2)), real(1)), 4, NVG_VMAP);
  leaves(op2("subtract", real(1), op2("multiply", x, real(2))), 4, NVG_VMAP);
  leaves(op2("add", op2("multiply", x, real(0.3)), real(0.5)), 5, NVG_VMAP);
  leaves(op2("add", op2("multiply", x, real(0.5)), real(0x1p-91)), 5, NVG_VMAP);
  leaves(op2("add", op2("multiply", x, real(0.5)), real(0x1p91)), 5, NVG_VMAP);
  leaves(op2("add", op2("multiply", x, x), real(0.5)), 4, NVG_VMAP);
  leaves(op2("add", op2("multiply", z, real(2)), real(1)), 5, NVG_VMAP);
  leaves(op2("add", op2("multiply", i, whole(2)), whole(1)), 5, NVG_VMAP);
  drop_nodes();
}
END_TEST

/* Over the exponents of c, x and d: the sum of the rounded product is the fma. */
START_TEST(that_fma_has_the_bits_of_the_product_and_the_sum) {
  static const float d[] = { 0x1p-90f, -0x1p-90f, 0x1.fffffep-90f, 0x1.8p-3f, -1, 3, 0x1.fffffep0f, 0x1p90f, -0x1p90f };
  for (int e = -149; e < 128; e++)
    for (uint32_t b = 0; b < 0x7f800000; b += 0x20001)
      for (size_t k = 0; k < sizeof d / sizeof *d; k++) {
        float x, c = ldexpf(k % 2 ? -1 : 1, e);
        memcpy(&x, &b, sizeof x);
        volatile float product = c * x;
        volatile float sum = product + d[k];
        ck_assert_msg(sum == fmaf(c, x, d[k]), "%a * %a + %a", c, x, d[k]);
      }
}
END_TEST

static uint64_t bits;
static void look_at_constant(nvb_arena *a, const nvg_graph *raw, const nvg_graph *g) {
  (void)a, (void)raw;
  const nvg_val *v = &g->v[g->out[0]];
  while (v->kind == NVG_VEXPAND || v->kind == NVG_VRESHAPE) v = &g->v[v->in[0]];
  ck_assert_int_eq(v->kind, NVG_VCONST);
  bits = (uint64_t)v->attr[0];
}
/* The constant that everything folds to. */
static void folds(nvg_node *n, uint64_t want) {
  ck_assert_msg(n != NULL, "%s", nvb_message());
  ck_assert_msg(stages(&n, 1, look_at_constant) == NVM_OK, "%s", nvb_message());
  ck_assert_msg(bits == want, "%llx, not %llx", (unsigned long long)bits, (unsigned long long)want);
}

START_TEST(numbers_become_what_they_meet) {
  nvg_node *half = op0("zeros", L("shape", 2), D("dtype", NVM_BF16));
  folds(op1("logical_not", real(0.25)), 0);
  folds(op1("any", real(-0.0)), 0);
  folds(op1("all", keep(nvg_weak('c', 0, 1, 0))), 1);
  folds(op2("logical_xor", real(__builtin_nan("")), whole(0)), 1);
  folds(op3("where", real(0.5), whole(3), whole(4)), 3);
  folds(op1a("sum", real(-2.75), D("dtype", NVM_I8)), 0xfe);
  /* rounded once: in float64 they would be half way between two bfloat16 */
  folds(op2("add", half, whole((1ll << 62) + (1ll << 54) + 1)), 0x5e81);
  folds(op2("add", half, whole(-(1ll << 62) - (1ll << 54) - 1)), 0xde81);
  folds(op2("add", half, whole((1ll << 62) + (1ll << 54))), 0x5e80);
  folds(op2("add", half, whole(INT64_MAX)), 0x5f00);
  drop_nodes();
}
END_TEST

START_TEST(powers_with_small_exponents) {
  nvg_node *x = leaf(NVM_F32, 1, 8), *i = leaf(NVM_I32, 1, 8);
  leaves(op2("pow", x, real(2)), 2, NVG_VMAP);
  leaves(op2("pow", x, whole(4)), 3, NVG_VMAP);
  leaves(op2("pow", x, real(1)), 1, NVG_VLEAF);
  leaves(op2("pow", x, real(0)), 3, NVG_VEXPAND);
  leaves(op2("pow", x, real(-1)), 2, NVG_VMAP);
  leaves(op2("pow", i, whole(3)), 3, NVG_VMAP);
  leaves(op2("pow", x, real(0.5)), 8, NVG_VMAP); /* sqrt, but for -0 and -inf */
  drop_nodes();
}
END_TEST

START_TEST(casts_compose_only_where_they_are_exact) {
  nvg_node *i = leaf(NVM_I32, 1, 8), *f = leaf(NVM_F32, 1, 8), *b = leaf(NVM_I8, 1, 8);
#define to(x, t) op1a("astype", x, D("dtype", t))
  leaves(to(to(i, NVM_F64), NVM_I32), 1, NVG_VLEAF);
  leaves(to(to(i, NVM_F32), NVM_I32), 3, NVG_VMAP); /* f32 does not hold every int32 */
  leaves(to(to(f, NVM_F64), NVM_F32), 1, NVG_VLEAF);
  leaves(to(to(f, NVM_F16), NVM_F32), 3, NVG_VMAP);
  leaves(to(to(i, NVM_F64), NVM_I8), 3, NVG_VMAP); /* a float saturates, an integer wraps */
  leaves(to(to(b, NVM_F32), NVM_I16), 2, NVG_VMAP);
  leaves(to(to(i, NVM_I64), NVM_I8), 2, NVG_VMAP);
  leaves(to(to(b, NVM_F32), NVM_BOOL), 2, NVG_VMAP);
  drop_nodes();
}
END_TEST

START_TEST(a_sign_is_read_off_the_relu_that_is_wanted_too) {
  nvg_node *h = op2("multiply", leaf(NVM_F32, 1, 8), leaf(NVM_F32, 1, 8));
  is_golden("sign_of_relu", op3("where", op2("greater", h, real(0)), op1("relu", h), real(2)));
  h = op2("multiply", leaf(NVM_BF16, 1, 8), leaf(NVM_BF16, 1, 8)); /* what is compared is rounded, of either */
  is_golden("half_sign_of_maximum",
            op3("where", op2("greater_equal", real(0), h), real(2), op2("maximum", h, real(0))));
  h = op2("multiply", leaf(NVM_F32, 1, 8), leaf(NVM_F32, 1, 8)); /* not what is at least 0 */
  is_golden("no_sign_of_relu", op3("where", op2("greater_equal", h, real(0)), op1("relu", h), real(2)));
}
END_TEST

START_TEST(views_of_views_are_one) {
  nvg_node *x = leaf(NVM_F32, 3, 4, 5, 6);
  leaves(op1a("reshape", op1a("reshape", x, L("shape", 120)), L("shape", 4, 5, 6)), 1, NVG_VLEAF);
  leaves(op1("matrix_transpose", op1("matrix_transpose", x)), 1, NVG_VLEAF);
  leaves(op1("flip", op1("flip", x)), 1, NVG_VLEAF);
  leaves(op1a("roll", op1a("roll", x, I("shift", 2), I("axis", 1)), I("shift", 3), I("axis", 1)), 1, NVG_VLEAF);
  leaves(op1a("permute_dims", leaf(NVM_F32, 3, 1, 5, 1), L("axes", 1, 0, 2)), 2, NVG_VRESHAPE);
  leaves(op1a("sum", leaf(NVM_F32, 2, 4, 0), I("axis", 0)), 3, NVG_VEXPAND);
  x = op2("multiply", leaf(NVM_F32, 2, 4, 5), leaf(NVM_F32, 2, 4, 5)); /* rounded once, read both ways */
  leaves(op2("matmul", to(op1("matrix_transpose", x), NVM_F16), to(x, NVM_F16)), 7, NVG_VMAP);
  drop_nodes();
}
END_TEST

START_TEST(reductions_of_a_constant_are_one) {
  nvg_node *x = op0("full", L("shape", 1ll << 45), F("fill_value", 0.25), D("dtype", NVM_F32));
  folds(op1("sum", x), 0x55000000); /* 2^43 */
  folds(op1("max", x), 0x3e800000);
  folds(op1("argmax", x), 0);
  folds(op1a("sum", op0("full", L("shape", 1000, 16), F("fill_value", 0.1), D("dtype", NVM_F32)), I("axis", 0)),
        0x42c7fff8); /* 99.99994 by the tree of columns */
  drop_nodes();
}
END_TEST

static nvg_node *window(nvg_node *x, int64_t start, int64_t count, int64_t step) {
  return op1a("slice", x, L("start", start), L("count", count), L("step", step));
}
static nvg_node *written(nvg_node *x, nvg_node *v, int64_t start, int64_t step) {
  return op2a("slice_update", x, v, L("start", start), L("count", v->aval->size), L("step", step));
}
static int values_of(nvg_node *n) {
  ck_assert_msg(n != NULL, "%s", nvb_message());
  ck_assert_msg(stages(&n, 1, count_values) == NVM_OK, "%s", nvb_message());
  return values;
}

START_TEST(a_window_shows_what_was_written_there) {
  nvg_node *x = leaf(NVM_F32, 1, 16), *v = leaf(NVM_F32, 1, 3), *one = leaf(NVM_F32, 1, 1), *y = written(x, v, 2, 1);
  leaves(window(y, 2, 3, 1), 1, NVG_VLEAF);
  leaves(window(y, 4, 3, -1), 2, NVG_VSLICE); /* the values turned round */
  leaves(window(y, 0, 2, 1), 2, NVG_VSLICE);  /* of what was there before */
  leaves(window(window(y, 1, 8, 2), 1, 1, 1), 2, NVG_VSLICE);
  ck_assert_int_gt(values_of(window(y, 1, 3, 1)), 3);
  ck_assert_int_gt(values_of(window(written(x, v, 2, 3), 2, 2, 3)), 4);
  leaves(window(written(x, v, 2, 3), 9, 5, 1), 2, NVG_VSLICE);
  leaves(window(written(written(x, v, 2, 1), one, 7, 1), 2, 3, 1), 1, NVG_VLEAF);
  nvg_node *z = op1a("pad", v, I("pad_width", 4));
  leaves(window(z, 4, 3, 1), 1, NVG_VLEAF);
  leaves(window(z, 7, 4, 1), 3, NVG_VEXPAND);
  nvg_node *grid = op2a("slice_update", leaf(NVM_F32, 2, 4, 5), leaf(NVM_F32, 2, 2, 2), L("start", 1, 2),
                        L("count", 2, 2), L("step", 1, 1));
  leaves(op1a("slice", grid, L("start", 1, 2), L("count", 2, 2), L("step", 1, 1)), 1, NVG_VLEAF);
  leaves(op1a("slice", grid, L("start", 0, 0), L("count", 4, 2), L("step", 1, 1)), 2, NVG_VSLICE);
  ck_assert_int_gt(values_of(op1a("slice", grid, L("start", 1, 1), L("count", 2, 2), L("step", 1, 1))), 3);
  drop_nodes();
}
END_TEST

START_TEST(the_last_of_several_writes_counts) {
  nvg_node *x = leaf(NVM_F32, 1, 16), *v = leaf(NVM_F32, 1, 3), *u = leaf(NVM_F32, 1, 3), *w = leaf(NVM_F32, 1, 1);
  int once = values_of(written(x, v, 2, 1)), both = values_of(written(written(x, w, 9, 1), v, 2, 1));
  ck_assert_int_eq(values_of(written(written(x, u, 2, 1), v, 2, 1)), once);
  ck_assert_int_eq(values_of(written(written(written(x, u, 2, 1), w, 9, 1), v, 2, 1)), both);
  nvg_node *y = x; /* x[i % 4] += 1, over and over, is a few sums and four writes */
  for (int i = 0; i < 200; i++) y = written(y, op2("add", window(y, i % 4, 1, 1), real(1)), i % 4, 1);
  ck_assert_int_lt(values_of(y), 200 + 100);
  drop_nodes();
}
END_TEST

/* ---- collect */
static int nout, nleaf, nraw;
static void count_collected(nvb_arena *a, const nvg_graph *raw, const nvg_graph *g) {
  (void)a, (void)g;
  nout = raw->nout, nleaf = raw->nleaf, nraw = raw->n;
}

static void count_computed(nvb_arena *a, const nvg_graph *raw, const nvg_graph *g) {
  count_collected(a, raw, g);
  nvg_computed(raw);
}

static nvg_node *with_value(int64_t n) {
  nvg_value *v = nvb_calloc(1, sizeof *v);
  v->stride[0] = 1;
  return keep(nvg_leaf_new(nvg_aval_get(NVM_F32, 1, &n), v));
}

START_TEST(dear_values_are_kept_where_they_are_wanted_again) {
  for (int i = 0; i < 3; i++) { /* the first that wants it again tells all graphs of that structure */
    nvg_node *x = with_value(1000), *s = op1("sum", x), *m = op2("multiply", x, real(2 + i));
    nvg_node *y = op2("add", m, s);
    ck_assert_int_eq(stages(&y, 1, count_computed), NVM_OK);
    ck_assert_int_eq(nout, 1 + (i > 0));
    ck_assert_int_eq(stages(&y, 1, count_computed), NVM_OK);
    ck_assert_int_eq(nout, 2); /* the sum, not the product */
  }
  nvg_node *p = leaf(NVM_F32, 1, 1000), *t = op2("add", p, op1("sum", p));
  ck_assert_int_eq(stages(&t, 1, count_collected), NVM_OK);
  ck_assert_int_eq(nout, 1); /* nothing has a value while tracing */
  drop_nodes();
}
END_TEST

START_TEST(products_are_kept_where_they_are_wanted_again) {
  nvg_node *x = with_value(8), *m = op1a("reshape", x, L("shape", 2, 4)),
           *p = op2("matmul", m, op1("matrix_transpose", m));
  nvg_node *y = op2("add", p, real(1));
  ck_assert_int_eq(stages(&y, 1, count_computed), NVM_OK);
  ck_assert_int_eq(nout, 1);
  ck_assert_int_eq(stages(&y, 1, count_computed), NVM_OK);
  ck_assert_int_eq(nout, 2);
  m = op1a("astype", m, D("dtype", NVM_F16)); /* its rounding is part of the value */
  p = op2("matmul", m, op1("matrix_transpose", m)), y = op2("add", p, real(1));
  ck_assert_int_eq(stages(&y, 1, count_computed), NVM_OK);
  ck_assert_int_eq(stages(&y, 1, count_computed), NVM_OK);
  ck_assert_int_eq(nout, 2);
  drop_nodes();
}
END_TEST

START_TEST(equal_nodes_are_one_and_leaves_differ) {
  nvg_node *x = leaf(NVM_F32, 1, 8), *y = leaf(NVM_F32, 1, 8);
  nvg_node *a = op2("add", op1("sin", x), op1("sin", x)), *b = op2("add", op1("sin", x), op1("sin", y));
  ck_assert_int_eq(stages(&a, 1, count_collected), NVM_OK);
  ck_assert_int_eq(nleaf, 1);
  ck_assert_int_eq(nraw, 3);
  ck_assert_int_eq(stages(&b, 1, count_collected), NVM_OK);
  ck_assert_int_eq(nleaf, 2);
  ck_assert_int_eq(nraw, 5);
  drop_nodes();
}
END_TEST

START_TEST(a_node_with_a_value_is_a_leaf) {
  nvg_node *x = leaf(NVM_F32, 1, 8), *y = op1("sin", x), *z = op1("cos", y);
  nvg_value *v = nvb_calloc(1, sizeof *v);
  v->stride[0] = 1;
  ck_assert_int_eq(nvg_node_set(y, v), 1);
  ck_assert_int_eq(nvg_node_set(y, nvb_calloc(1, sizeof *v)), 0);
  ck_assert_int_eq(stages(&z, 1, count_collected), NVM_OK);
  ck_assert_int_eq(nleaf, 1);
  ck_assert_int_eq(nraw, 2);
  drop_nodes();
}
END_TEST

SUITE("graph_simplify", reductions_get_their_stamps, variance_takes_one_pass_where_that_pays,
      sixteen_bits_round_at_the_marks, a_matrix_times_a_matrix_is_a_call, products_round_what_they_read_and_make,
      exact_algebra_and_no_other, a_scaled_sum_is_one_fma_where_the_product_is_exact,
      that_fma_has_the_bits_of_the_product_and_the_sum, numbers_become_what_they_meet, powers_with_small_exponents,
      casts_compose_only_where_they_are_exact, a_sign_is_read_off_the_relu_that_is_wanted_too, views_of_views_are_one,
      reductions_of_a_constant_are_one, a_window_shows_what_was_written_there, the_last_of_several_writes_counts,
      dear_values_are_kept_where_they_are_wanted_again, products_are_kept_where_they_are_wanted_again,
      equal_nodes_are_one_and_leaves_differ, a_node_with_a_value_is_a_leaf)
