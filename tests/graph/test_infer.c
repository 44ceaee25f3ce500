/* Shapes, dtypes and messages of every kind of operation; and each row of the table, over all dtypes. */
#include "graph/infer.h"
#include "nodes.h"

START_TEST(elementwise_shapes_and_dtypes) {
  nvg_node *x = leaf(NVM_F32, 2, 3, 4), *y = leaf(NVM_I32, 1, 4), *z = leaf(NVM_F16, 3, 2, 1, 1);
  is_aval(op2("add", x, y), NVM_F64, "3,4");
  is_aval(op2("add", x, real(2)), NVM_F32, "3,4");
  is_aval(op2("multiply", z, real(2)), NVM_F16, "2,1,1");
  is_aval(op2("add", z, leaf(NVM_BF16, 1, 1)), NVM_F32, "2,1,1");
  is_aval(op2("subtract", z, x), NVM_F32, "2,3,4");
  is_aval(op2("divide", y, y), NVM_F64, "4");
  is_aval(op2("less", x, whole(1)), NVM_BOOL, "3,4");
  is_aval(op1("exp", y), NVM_F64, "4");
  is_aval(op1("abs", leaf(NVM_C64, 1, 5)), NVM_F32, "5");
  is_aval(op1("logical_not", x), NVM_BOOL, "3,4");
  is_aval(op3("where", leaf(NVM_BOOL, 2, 3, 1), x, whole(0)), NVM_F32, "3,4");
  is_aval(op2("add", real(1), whole(2)), NVM_F64, "");
  is_aval(op2("logical_or", x, real(2.5)), NVM_BOOL, "3,4");
  is_aval(op3("where", real(0), x, y), NVM_F64, "3,4");
  is_aval(op1("any", keep(nvg_weak('c', 0, 1, 0))), NVM_BOOL, "");
  is_aval(op1a("sum", real(2.5), D("dtype", NVM_I8)), NVM_I8, "");
  is_aval(op2("maximum", leaf(NVM_BOOL, 1, 3), leaf(NVM_BOOL, 1, 3)), NVM_BOOL, "3");
  is_aval(op2("add", leaf(NVM_F32, 2, 0, 1), leaf(NVM_F32, 1, 5)), NVM_F32, "0,5");
  ck_assert_ptr_eq(op1("floor", y), y);
  drop_nodes();
}
END_TEST

START_TEST(a_row_is_defined_where_it_has_a_fragment) {
  for (int op = 0; op < NVG_NOPS; op++)
    for (int t = 0; t < NVM_NDTYPES && nvg_ops[op].kind == NVG_KMAP; t++)
      ck_assert_msg(nvg_map_defined((nvg_op)op, (nvm_dtype)t) == (nvg_map_frag((nvg_op)op, (nvm_dtype)t) != NULL),
                    "%s of %s", nvg_ops[op].name, nvg_dtype_name((nvm_dtype)t));
  nvb_clear();
}
END_TEST

START_TEST(elementwise_faults) {
  nvg_node *x = leaf(NVM_F32, 2, 3, 4), *i = leaf(NVM_I8, 1, 4), *b = leaf(NVM_BOOL, 1, 4);
  is_fault(op2("add", x, leaf(NVM_F32, 1, 5)), NVM_ERR_VALUE, "[add] shapes do not broadcast: (3, 4) and (5,)");
  is_fault(op3("where", b, x, leaf(NVM_F32, 1, 3)), NVM_ERR_VALUE,
           "[where] shapes do not broadcast: (4,), (3, 4) and (3,)");
  is_fault(op2("subtract", b, b), NVM_ERR_TYPE, "[subtract] does not take bool; it takes: numbers, promoted");
  is_fault(op2("bitwise_and", x, i), NVM_ERR_TYPE,
           "[bitwise_and] does not take float32; it takes: bool or integers, promoted");
  is_fault(op1("negative", b), NVM_ERR_TYPE, "[negative] does not take bool; it takes: numbers, promoted");
  is_fault(op2("add", i, whole(300)), NVM_ERR_OVERFLOW, "[add] the integer 300 is out of range of int8");
  is_fault(op2("pow", i, whole(-1)), NVM_ERR_VALUE,
           "[pow] integers to a negative integer power are not integers; cast to a float first");
  is_fault(op2("less", leaf(NVM_C64, 1, 2), real(0)), NVM_ERR_TYPE,
           "[less] does not take complex64; it takes: real dtypes or bool, promoted, give bool");
  is_fault(op1("add", x), NVM_ERR_VALUE, "[add] takes 2 operands, not 1: (x1, x2, /)");
  is_fault(op2("add", x, NULL), NVM_ERR_VALUE, "[add] operand 2 is absent");
  is_fault(opn("concat", 3, x, x, NULL), NVM_ERR_VALUE, "[concat] operand 3 is absent");
  is_fault(opn("stack", 3, x, NULL, x), NVM_ERR_VALUE, "[stack] operand 2 is absent");
  is_fault(opn("einsum", 4, b, b, b, NULL), NVM_ERR_VALUE, "[einsum] operand 4 is absent");
  int pairs[2][2];
  double operations;
  nvg_attr subscripts = { .name = "subscripts", .kind = 's', .is = (int64_t[]){ 'i', ',', 'i' }, .n = 3 };
  ck_assert_int_eq(nvg_einsum_path(pairs, &operations, (nvg_node *[]){ i, NULL }, 2, subscripts, NVM_ORDER_AUTO),
                   NVM_ERR_VALUE);
  ck_assert_str_eq(nvb_message(), "[einsum] operand 2 is absent");
  ck_assert_int_eq(nvg_einsum_path(pairs, &operations, (nvg_node *[]){ i, i }, 2, subscripts, (nvm_order)17),
                   NVM_ERR_VALUE);
  ck_assert_str_eq(nvb_message(), "[einsum] there is no way 17 to optimize");
  is_fault(op1a("exp", x, I("base", 2)), NVM_ERR_VALUE, "[exp] has no attribute base: (x, /)");
  is_fault(call("_cast", &x, 1, NULL, 0), NVM_ERR_VALUE, "[_cast] is not an operation that can be called");
  is_aval(op2("less", i, whole(300)), NVM_BOOL, "4"); /* what int8 cannot hold can still be compared */
  is_aval(op2("equal", leaf(NVM_U64, 1, 4), whole(-1)), NVM_BOOL, "4");
  nvg_node *most = keep(nvg_weak('u', 0, 0, -1)), *huge = keep(nvg_weak('h', 0x1p64, 0, 0));
  nvg_node *beyond = keep(nvg_weak('h', -__builtin_inf(), 0, 0));
  is_aval(op2("add", leaf(NVM_U64, 1, 4), most), NVM_U64, "4");
  is_aval(op3("where", b, leaf(NVM_F32, 1, 4), huge), NVM_F32, "4");
  is_aval(op3("clip", x, NULL, most), NVM_F32, "3,4");
  is_aval(op2("divide", i, huge), NVM_F64, "4");
  is_aval(op2("less", i, beyond), NVM_BOOL, "4");
  is_fault(op2("add", i, most), NVM_ERR_OVERFLOW, "[add] the integer 18446744073709551615 is out of range of int8");
  is_fault(op2("add", b, huge), NVM_ERR_OVERFLOW, "[add] the integer 18446744073709551616 is out of range of int64");
  is_fault(op2("bitwise_or", i, huge), NVM_ERR_OVERFLOW,
           "[bitwise_or] the integer 18446744073709551616 is out of range of int8");
  is_fault(op2("less", x, beyond), NVM_ERR_OVERFLOW, "[less] the integer (below -1.8e308) is out of range of float32");
  is_fault(op2("add", i, beyond), NVM_ERR_OVERFLOW, "[add] the integer (below -1.8e308) is out of range of int8");
  is_fault(op1a("astype", whole(300), D("dtype", NVM_I8)), NVM_ERR_OVERFLOW,
           "[astype] the integer 300 is out of range of int8");
  drop_nodes();
}
END_TEST

START_TEST(reductions) {
  nvg_node *x = leaf(NVM_F32, 3, 2, 3, 4), *none = leaf(NVM_F32, 2, 3, 0);
  is_aval(op1("sum", x), NVM_F32, "");
  is_aval(op1a("sum", x, L("axis", 0, 2)), NVM_F32, "3");
  is_aval(op1a("sum", x, I("axis", -1), I("keepdims", 1)), NVM_F32, "2,3,1");
  is_aval(op1a("sum", x, D("dtype", NVM_F64)), NVM_F64, "");
  is_aval(op1("sum", leaf(NVM_BOOL, 1, 3)), NVM_I64, "");
  is_aval(op1("sum", leaf(NVM_U8, 1, 3)), NVM_U64, "");
  is_aval(op1("prod", leaf(NVM_I16, 1, 3)), NVM_I64, "");
  is_aval(op1("mean", leaf(NVM_I16, 1, 3)), NVM_F64, "");
  is_aval(op1("mean", leaf(NVM_C64, 1, 3)), NVM_C64, "");
  is_aval(op1a("var", leaf(NVM_F16, 2, 30, 40), I("axis", 0)), NVM_F16, "40");
  is_aval(op1("argmax", x), NVM_I64, "");
  is_aval(op1a("argmin", x, I("axis", 1), I("keepdims", 1)), NVM_I64, "2,1,4");
  is_aval(op1a("softmax", x, I("axis", 0)), NVM_F32, "2,3,4");
  is_aval(op1a("logsumexp", leaf(NVM_F64, 2, 40, 20000), I("axis", 1)), NVM_F64, "40");
  is_aval(op1a("cumulative_sum", x, I("axis", 1), I("include_initial", 1)), NVM_F32, "2,4,4");
  is_aval(op1a("vector_norm", leaf(NVM_C128, 2, 3, 4), F("ord", 3), I("axis", 0)), NVM_F64, "4");
  is_aval(op1("any", none), NVM_BOOL, "");
  is_aval(op1a("max", none, I("axis", 0)), NVM_F32, "0");
  is_fault(op1a("max", none, I("axis", 1)), NVM_ERR_VALUE,
           "[max] a reduction over no elements of float32 (3, 0) has no value");
  is_fault(op1a("sum", x, I("axis", 3)), NVM_ERR_INDEX, "[sum] axis 3 is out of range for 3 dimensions");
  is_fault(op1a("sum", x, L("axis", 0, -3)), NVM_ERR_VALUE, "[sum] axis -3 is given twice");
  is_fault(op1a("argmax", x, L("axis", 0, 1)), NVM_ERR_TYPE, "[argmax] axis must be an integer");
  is_fault(op1("cumulative_sum", x), NVM_ERR_VALUE, "[cumulative_sum] an array of 3 dimensions needs an axis");
  is_fault(op1a("sum", leaf(NVM_C64, 1, 2), D("dtype", NVM_F32)), NVM_ERR_TYPE,
           "[sum] complex numbers do not convert to float32; take real(x) or abs(x)");
  is_fault(op1a("prod", x, D("dtype", NVM_BOOL)), NVM_ERR_TYPE,
           "[prod] there are no sums and products in bool; any and all are what they would be");
  is_fault(op1a("cumulative_sum", leaf(NVM_BOOL, 1, 4), D("dtype", NVM_BOOL)), NVM_ERR_TYPE,
           "[cumulative_sum] there are no sums and products in bool; any and all are what they would be");
  drop_nodes();
}
END_TEST

START_TEST(views) {
  nvg_node *x = leaf(NVM_F32, 3, 2, 3, 4);
  is_aval(op1a("reshape", x, L("shape", 4, -1)), NVM_F32, "4,6");
  is_aval(op1a("permute_dims", x, L("axes", 2, 0, -2)), NVM_F32, "4,2,3");
  is_aval(op1("matrix_transpose", x), NVM_F32, "2,4,3");
  is_aval(op1a("moveaxis", x, I("source", 0), I("destination", -1)), NVM_F32, "3,4,2");
  is_aval(op1a("expand_dims", x, L("axis", 0, -1)), NVM_F32, "1,2,3,4,1");
  is_aval(op1a("squeeze", leaf(NVM_F32, 3, 1, 3, 1), L("axis", 0, 2)), NVM_F32, "3");
  is_aval(op1a("broadcast_to", leaf(NVM_F32, 1, 3), L("shape", 2, 3)), NVM_F32, "2,3");
  is_aval(op1a("slice", x, L("start", 1, 2, 3), L("count", 1, 3, 2), L("step", 1, -1, -3)), NVM_F32, "1,3,2");
  is_aval(op1a("roll", x, I("shift", 5)), NVM_F32, "2,3,4");
  is_aval(op1a("diagonal", x, I("offset", 2)), NVM_F32, "2,2");
  is_aval(op1a("diagonal", x, I("offset", -1)), NVM_F32, "2,2");
  is_aval(op1a("tile", leaf(NVM_F32, 2, 2, 3), L("repetitions", 2, 1, 2)), NVM_F32, "2,2,6");
  is_aval(op1a("repeat", leaf(NVM_F32, 2, 2, 3), I("repeats", 3), I("axis", 1)), NVM_F32, "2,9");
  is_aval(op1a("repeat", leaf(NVM_F32, 2, 2, 3), I("repeats", 2)), NVM_F32, "12");
  is_aval(op1a("pad", leaf(NVM_F32, 2, 2, 3), L("pad_width", 1, 2, 0, 1)), NVM_F32, "5,4");
  is_aval(opn("concat", 2, leaf(NVM_F32, 2, 2, 3), leaf(NVM_I32, 2, 5, 3)), NVM_F64, "7,3");
  is_aval(opn("stack", 3, leaf(NVM_F32, 1, 2), leaf(NVM_F32, 1, 2), leaf(NVM_F32, 1, 2)), NVM_F32, "3,2");
  is_aval(op2a("take", x, leaf(NVM_I32, 2, 5, 6), I("axis", 1)), NVM_F32, "2,5,6,4");
  is_aval(op2a("take_along_axis", x, leaf(NVM_I64, 3, 2, 3, 9), I("axis", 2)), NVM_F32, "2,3,9");
  is_aval(op2a("slice_update", x, real(1), L("start", 0, 2, 0), L("count", 2, 2, 2), L("step", 1, -1, 2)), NVM_F32,
          "2,3,4");
  is_fault(op1a("reshape", x, L("shape", 5, -1)), NVM_ERR_VALUE, "[reshape] cannot reshape (2, 3, 4) into (5, -1)");
  is_fault(op1a("permute_dims", x, L("axes", 0, 1)), NVM_ERR_VALUE,
           "[permute_dims] axes must name each of the 3 dimensions once");
  is_fault(op1a("squeeze", x, I("axis", 0)), NVM_ERR_VALUE, "[squeeze] dimension 0 has extent 2, not 1");
  is_fault(op1a("broadcast_to", x, L("shape", 2, 2, 4)), NVM_ERR_VALUE,
           "[broadcast_to] (2, 3, 4) does not broadcast to (2, 2, 4)");
  is_fault(op1a("slice", x, L("start", 0, 0, 2), L("count", 1, 1, 3), L("step", 1, 1, 1)), NVM_ERR_INDEX,
           "[slice] 3 elements from 2 at step 1 leave dimension 2 of extent 4");
  nvg_node *flat = leaf(NVM_F32, 1, 9);
  is_aval(op2a("slice_update", flat, leaf(NVM_F32, 1, 1), L("start", 2), L("count", 5)), NVM_F32, "9");
  is_aval(op2a("slice_update", leaf(NVM_BOOL, 1, 9), leaf(NVM_C64, 1, 5), L("start", 2), L("count", 5)), NVM_BOOL, "9");
  is_fault(op2a("slice_update", flat, leaf(NVM_F32, 1, 2), L("start", 2), L("count", 5)), NVM_ERR_VALUE,
           "[slice_update] values of shape (2,) do not broadcast to a slice of shape (5,)");
  is_fault(op2a("slice_update", flat, leaf(NVM_F32, 2, 1, 5), L("start", 2), L("count", 5)), NVM_ERR_VALUE,
           "[slice_update] values of shape (1, 5) do not broadcast to a slice of shape (5,)");
  is_fault(op2a("slice_update", flat, real(1), L("start", 2), L("count", 5), L("step", 0)), NVM_ERR_VALUE,
           "[slice_update] the step of dimension 0 is 0");
  is_fault(opn("concat", 2, leaf(NVM_F32, 2, 2, 3), leaf(NVM_F32, 2, 2, 4)), NVM_ERR_VALUE,
           "[concat] shapes (2, 3) and (2, 4) differ outside axis 0");
  nvg_node *many[64], *huge = op1a("broadcast_to", scalar(NVM_F32), L("shape", 1ll << 58));
  for (int i = 0; i < 64; i++) many[i] = huge; /* 2^64 elements, which would be none */
  is_fault(call("concat", many, 64, NULL, 0), NVM_ERR_VALUE, "[concat] the result has too many elements");
  is_fault(op2a("take", x, leaf(NVM_F32, 1, 2), I("axis", 0)), NVM_ERR_TYPE,
           "[take] indices must be integers, not float32");
  drop_nodes();
}
END_TEST

START_TEST(creation_and_products) {
  is_aval(op0("zeros", L("shape", 2, 3)), NVM_F64, "2,3");
  is_aval(op0("full", L("shape", 2), I("fill_value", 7)), NVM_I64, "2");
  is_aval(op0("full", L("shape", 2), F("fill_value", 7), D("dtype", NVM_I8)), NVM_I8, "2");
  is_aval(op0("eye", I("n_rows", 3), D("dtype", NVM_F32)), NVM_F32, "3,3");
  is_aval(op0("arange", I("start", 5)), NVM_I64, "5");
  is_aval(op0("arange", I("start", 10), I("stop", 0), I("step", -3)), NVM_I64, "4");
  is_aval(op0("arange", F("start", 0), F("stop", 1), F("step", 0.3)), NVM_F64, "4");
  is_aval(op0("arange", I("start", 3), I("stop", 3)), NVM_I64, "0");
  is_aval(op0("linspace", I("start", 0), I("stop", 1), I("num", 11)), NVM_F64, "11");
  is_aval(op2("matmul", leaf(NVM_F32, 2, 3, 4), leaf(NVM_F32, 2, 4, 50)), NVM_F32, "3,50");
  is_aval(op2("matmul", leaf(NVM_F32, 1, 4), leaf(NVM_F32, 3, 7, 4, 5)), NVM_F32, "7,5");
  is_aval(op2("matmul", leaf(NVM_I32, 1, 4), leaf(NVM_I32, 1, 4)), NVM_I32, "");
  is_aval(op2("matmul", leaf(NVM_F16, 3, 6, 3, 4), leaf(NVM_F16, 1, 4)), NVM_F16, "6,3");
  is_fault(op2("matmul", leaf(NVM_F32, 2, 3, 4), leaf(NVM_F32, 2, 5, 6)), NVM_ERR_VALUE,
           "[matmul] inner dimensions differ: (3, 4) @ (5, 6)");
  is_aval(op2a("vecdot", leaf(NVM_C64, 2, 3, 4), leaf(NVM_C64, 1, 4), I("axis", -1)), NVM_C64, "3");
  is_fault(op2("matmul", leaf(NVM_F32, 3, 2, 3, 4), leaf(NVM_F32, 3, 3, 4, 5)), NVM_ERR_VALUE,
           "[matmul] batches do not broadcast: (2, 3, 4) @ (3, 4, 5)");
  is_fault(op2("matmul", leaf(NVM_F32, 2, 3, 4), scalar(NVM_F64)), NVM_ERR_VALUE,
           "[matmul] operands need at least one dimension: float32 (3, 4) @ float64 ()");
  is_fault(op2a("matmul", leaf(NVM_F32, 2, 3, 4), leaf(NVM_F32, 2, 4, 3), I("precision", 9)), NVM_ERR_VALUE,
           "[matmul] there is no precision 9");
  is_aval(op2a("matmul", leaf(NVM_BF16, 4, 7, 1, 3, 4), leaf(NVM_BF16, 3, 5, 4, 6), D("dtype", NVM_F32)), NVM_F32,
          "7,5,3,6");
  nvg_node *eight = leaf(NVM_F8E4, 2, 300, 200), *turned = leaf(NVM_F8E5, 2, 200, 40), *one = scalar(NVM_F32);
  is_aval(opn("scaled_matmul", 4, eight, turned, leaf(NVM_F32, 2, 3, 2), leaf(NVM_F32, 2, 2, 40)), NVM_F32, "300,40");
  is_aval(opn("scaled_matmul", 4, eight, turned, leaf(NVM_F32, 2, 300, 1), one), NVM_F32, "300,40");
  is_fault(opn("scaled_matmul", 4, eight, turned, leaf(NVM_F32, 2, 2, 300), one), NVM_ERR_VALUE,
           "[scaled_matmul] scale_a of (2, 300) does not fit a of (300, 200): it is one number, or has 300, 3 or 1 "
           "rows and 2 or 1 columns");
  is_fault(opn("scaled_matmul", 4, leaf(NVM_F16, 2, 300, 200), turned, one, one), NVM_ERR_TYPE,
           "[scaled_matmul] a is of float16, not of a float of 8 bits");
  is_aval(op2a("tensordot", leaf(NVM_F32, 3, 2, 3, 4), leaf(NVM_F32, 3, 4, 3, 5), L("axes", 1, 2, 1, 0)), NVM_F32,
          "2,5");
  is_aval(op2a("tensordot", leaf(NVM_F32, 3, 2, 3, 4), leaf(NVM_F32, 3, 3, 4, 5), I("axes", 2)), NVM_F32, "2,5");
  is_fault(op2a("tensordot", leaf(NVM_F32, 2, 2, 3), leaf(NVM_F32, 2, 2, 3), L("axes", 0, 1, 0)), NVM_ERR_VALUE,
           "[tensordot] axes must name as many dimensions of x1 as of x2");
  is_fault(op2("einsum", leaf(NVM_F32, 2, 2, 3), leaf(NVM_F32, 2, 2, 3)), NVM_ERR_TYPE,
           "[einsum] subscripts must be a text");
  is_fault(op0("full", L("shape", -1), I("fill_value", 0)), NVM_ERR_VALUE, "[full] negative extent in shape (-1,)");
  is_fault(op0("arange", I("start", 0), I("stop", 4), I("step", 0)), NVM_ERR_VALUE, "[arange] step is zero");
  is_fault(op0("zeros", L("shape", 1ll << 40, 1ll << 40)), NVM_ERR_VALUE,
           "[zeros] shape (1099511627776, 1099511627776) has too many elements");
  drop_nodes();
}
END_TEST

/* Attributes that let each operation run on a (3, 3) array. */
static int attrs_of(const char *name, nvg_attr *at) {
  static const int64_t text[] = { 'i', 'j', ',', 'j', 'k', '-', '>' };
  static const int64_t two[] = { 0, 1 }, one[] = { 1, 1 }, none[] = { 0, 0 }, shape[] = { 3, 3 };
  static const struct {
    const char *op, *attr;
    char kind;
    int64_t i;
    const int64_t *is;
    int n;
  } need[] = {
    { "astype", "dtype", 'd', NVM_F32, NULL, 0 },
    { "reshape", "shape", 'I', 0, shape, 2 },
    { "permute_dims", "axes", 'I', 0, two, 2 },
    { "moveaxis", "source", 'i', 0, NULL, 0 },
    { "moveaxis", "destination", 'i', 1, NULL, 0 },
    { "broadcast_to", "shape", 'I', 0, shape, 2 },
    { "slice", "start", 'I', 0, none, 2 },
    { "slice", "count", 'I', 0, one, 2 },
    { "slice", "step", 'I', 0, one, 2 },
    { "slice_update", "start", 'I', 0, none, 2 },
    { "slice_update", "count", 'I', 0, shape, 2 },
    { "slice_update", "step", 'I', 0, one, 2 },
    { "_flatnonzero", "size", 'i', 3, NULL, 0 },
    { "last_index", "size", 'i', 3, NULL, 0 },
    { "roll", "shift", 'i', 1, NULL, 0 },
    { "tile", "repetitions", 'i', 2, NULL, 0 },
    { "repeat", "repeats", 'i', 2, NULL, 0 },
    { "pad", "pad_width", 'i', 1, NULL, 0 },
    { "full", "shape", 'I', 0, shape, 2 },
    { "zeros", "shape", 'I', 0, shape, 2 },
    { "ones", "shape", 'I', 0, shape, 2 },
    { "eye", "n_rows", 'i', 3, NULL, 0 },
    { "arange", "start", 'i', 3, NULL, 0 },
    { "einsum", "subscripts", 's', 0, text, 7 },
    { "linspace", "num", 'i', 5, NULL, 0 },
    { "fft.fftfreq", "n", 'i', 5, NULL, 0 },
    { "fft.rfftfreq", "n", 'i', 5, NULL, 0 },
    { "linalg.part", "start", 'i', 0, NULL, 0 },
    { "linalg.part", "rows", 'i', 1, NULL, 0 },
    { "cumulative_sum", "axis", 'i', 1, NULL, 0 },
    { "cumulative_prod", "axis", 'i', 1, NULL, 0 },
  };
  int n = 0;
  for (size_t i = 0; i < sizeof need / sizeof *need; i++)
    if (!strcmp(need[i].op, name))
      at[n++] = (nvg_attr){ need[i].attr, need[i].kind, need[i].i, 0, need[i].is, need[i].n };
  return n;
}

enum { MOST_OPERANDS = 4 };
static int callable(const nvg_op_info *o) {
  return o->kind != NVG_KLEAF && o->kind != NVG_KNODE && o->kind != NVG_KCALL;
}
static void named(const nvg_op_info *o) { /* the message says more than the operation */
  const char *shown = o->name + (o->name[0] == '_');
  size_t n = strlen(shown) + 3;
  ck_assert_msg(strlen(nvb_message()) > n && !memcmp(nvb_message() + 1, shown, n - 3), "%s: %s", o->name,
                nvb_message());
}

/* Operands of that dtype, but for indices, pivots and scales. */
static void operands_of(const nvg_op_info *o, nvm_dtype t, nvg_node **in) {
  in[0] = leaf(t, 2, 3, 3), in[1] = leaf(o->kind == NVG_KGATHER ? NVM_I64 : t, 2, 3, 3);
  for (int i = 2; i < MOST_OPERANDS; i++) in[i] = o->nin > 3 ? leaf(NVM_F32, 2, 3, 1) : leaf(t, 2, 3, 3);
  if (o->nin > 3) in[3] = leaf(NVM_F32, 2, 1, 3);
  if (!strcmp(o->name, "_searchsorted")) in[0] = leaf(t, 1, 3), in[1] = leaf(t, 2, 3, 3);
  if (!strcmp(o->name, "linalg.lu_solve")) in[1] = leaf(NVM_I64, 1, 3);
  if (!strcmp(o->name, "linalg.slogdet")) in[0] = leaf(t, 2, 2, 14); /* the factors of 3 x 3 */
}

/* Each callable row, each dtype: a legal graph, or a message that names the operation. Every row takes some dtype. */
START_TEST(every_row_builds_or_explains) {
  for (int op = 0; op < NVG_NOPS; op++) {
    const nvg_op_info *o = &nvg_ops[op];
    if (!callable(o)) continue;
    int worked = 0;
    for (nvm_dtype t = 0; t < NVM_NDTYPES; t++) {
      nvg_attr at[4];
      int nat = attrs_of(o->name, at), nin = o->nin < 0 ? 2 : o->nin;
      if (!strcmp(o->name, "squeeze")) {
        nvg_node *x = leaf(t, 2, 1, 3);
        worked += op1a("squeeze", x, I("axis", 0)) != NULL;
        continue;
      }
      nvg_node *in[MOST_OPERANDS];
      operands_of(o, t, in);
      nvg_node *r = keep(nvg_apply((nvg_op)op, in, nin, at, nat, NVM_F64));
      if (!r) {
        named(o);
        ck_assert_msg(nvb_status() == NVM_ERR_TYPE, "%s", nvb_message());
        continue;
      }
      worked++;
      ck_assert_msg(stages(&r, 1, NULL) == NVM_OK, "%s of %s: %s", o->name, nvg_dtype_name(t), nvb_message());
      drop_nodes();
    }
    ck_assert_msg(worked > 0, "%s takes no dtype: %s", o->name, nvb_message());
    drop_nodes();
  }
}
END_TEST

/* Each allocation of each of them fails: memory is what is named, and nothing is left. */
static void lack_memory(nvg_op op, nvm_dtype t) {
  const nvg_op_info *o = &nvg_ops[op];
  nvg_attr at[4];
  nvg_node *in[MOST_OPERANDS];
  operands_of(o, t, in);
  int nat = attrs_of(o->name, at), nin = o->nin < 0 ? 2 : o->nin;
  nvg_node *r = nvg_apply(op, in, nin, at, nat, NVM_F64); /* shapes and fragments are there for good */
  int fails = r != NULL;
  nvg_node_unref(r);
  int64_t before = nvb_live_blocks();
  for (int n = 1; fails; n++) {
    nvb_fail_alloc(n, n % 2);
    r = nvg_apply(op, in, nin, at, nat, NVM_F64);
    nvb_fail_alloc(0, 0);
    fails = !r;
    ck_assert_msg(r || nvb_status() == NVM_ERR_MEMORY, "%s of %s: %s", o->name, nvg_dtype_name(t), nvb_message());
    nvg_node_unref(r);
    ck_assert_msg(nvb_live_blocks() == before, "%s of %s leaves something", o->name, nvg_dtype_name(t));
  }
  drop_nodes();
}
START_TEST(every_row_may_lack_memory) {
  for (int op = 0; op < NVG_NOPS; op++)
    for (nvm_dtype t = 0; t < NVM_NDTYPES && callable(&nvg_ops[op]); t++) lack_memory((nvg_op)op, t);
}
END_TEST

/* ---- what nobody means: any operands, any attributes */
static uint64_t seed = 1;
static int below(int n) {
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((seed >> 33) % (uint64_t)n);
}
static int64_t wild(void) {
  static const int64_t far[] = { INT64_MAX, INT64_MIN, 1ll << 40, -(1ll << 40), 1ll << 58, 31, 32, 33, 64 };
  return below(4) ? below(9) - 4 : far[below(9)];
}
static nvg_node *any_operand(int rank, const int64_t *extent) {
  int64_t shape[4];
  nvm_dtype t = below(3) ? below(2) ? NVM_F32 : NVM_I64 : (nvm_dtype)below(NVM_NDTYPES);
  for (int d = 0; d < rank; d++) shape[d] = below(5) ? extent[d] : below(4);
  switch (below(16)) {
  case 0: return real(below(2) ? 2.5 : -0.0);
  case 1: return whole(wild());
  case 2: return keep(nvg_weak('c', 1, 2, 0));
  case 3: return below(4) ? keep(nvg_const(t, 1.5, 0, 3)) : NULL;
  default: return keep(nvg_leaf_new(nvg_aval_get(t, rank, shape), NULL));
  }
}
/* The attributes that the signature names, most of them of a kind that they may have; list: space for 40 each. */
static int any_attributes(const nvg_op_info *o, int rank, nvg_attr *at, char (*name)[32], int64_t (*list)[40]) {
  int n = 0, skip = o->nin < 0 ? 1 : o->nin;
  for (const char *s = o->sig + 1; *s && *s != ')'; s += *s == ',') {
    s += *s == ' ';
    size_t length = strcspn(s, "=,)");
    int sign = *s == '/' || *s == '*';
    memcpy(name[n], s, length);
    name[n][length] = 0;
    s += strcspn(s, ",)");
    if (sign || skip-- > 0 || !below(6)) continue;
    nvg_attr *a = &at[n];
    *a = (nvg_attr){ .name = name[n], .kind = "iiiIIIIIbfdcns"[below(14)], .i = wild(), .f = below(2) ? 2.5 : -1 };
    if (!strcmp(a->name, "dtype") && below(8)) a->kind = 'd', a->i = below(NVM_NDTYPES);
    if (!strcmp(a->name, "subscripts")) a->kind = 's';
    a->n = below(8) ? rank : below(40);
    for (int k = 0; k < a->n; k++)
      list[n][k] = a->kind == 's' ? "ijkij,,->.ii"[below(12)] : below(2) ? below(3) : wild();
    a->is = list[n++];
  }
  return n;
}

START_TEST(any_call_is_legal_or_explained) {
  seed = (uint64_t)_i + 1;
  for (int round = 0; round < 20000; round++) {
    int op = below(NVG_NOPS), rank = below(5), nin = nvg_ops[op].nin < 0 ? below(5) : nvg_ops[op].nin;
    if (!callable(&nvg_ops[op])) continue;
    int64_t extent[4] = { below(4), below(4), below(4), below(4) }, list[8][40];
    char name[8][32];
    nvg_attr at[8];
    nvg_node *in[4];
    for (int i = 0; i < nin; i++) in[i] = any_operand(below(4) ? rank : below(5), extent);
    int nat = any_attributes(&nvg_ops[op], rank, at, name, list);
    nvb_clear();
    nvg_node *r = keep(nvg_apply((nvg_op)op, in, nin, at, nat, NVM_F64));
    if (!r) named(&nvg_ops[op]);
    else ck_assert_msg(stages(&r, 1, NULL) == NVM_OK, "%s: %s", nvg_ops[op].name, nvb_message());
    drop_nodes();
  }
}
END_TEST

SUITE("graph_infer", elementwise_shapes_and_dtypes, a_row_is_defined_where_it_has_a_fragment, elementwise_faults,
      reductions, views, creation_and_products, every_row_builds_or_explains, every_row_may_lack_memory,
      LOOP(any_call_is_legal_or_explained, 4))
