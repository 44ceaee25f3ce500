/* Graph text: what it says wrong is refused with its line, whatever the bytes; hashes tell graphs apart. */
#include "nodes.h"

static const char good[] =
    "leaf 0 f32[4, 3] strides(3, 1) align16\n"
    "leaf 1 c64[4] strides(1)\n"
    "%0 = leaf{0} : f32[4, 3]\n"
    "%1 = map exp(%0) : f32[4, 3]\n"
    "%2 = red add(%1){1, 1} order(1024, 128) init(0x80000000) : f32[4, 1] @sum\n"
    "%3 = slice(%1){3, -1, 0, 2} : f32[4, 2]\n"
    "%4 = leaf{1} : c64[4]\n"
    "%5 = iota{0} : i64[4, 3]\n"
    "%6 = red argmax(%0, %5){0, 1} order(64, 1) free init(0xff800000, 0x7fffffffffffffff) : f32[1, 3]\n"
    "%7 = pick(%6){1} : i64[1, 3]\n"
    "%8 = map cast(%0) : f16[4, 3]\n"
    "%9 = permute(%8){1, 0} : f16[3, 4]\n"
    "%10 = call gemm(%8, %9){11, 0} : f32[4, 4]\n"
    "%11 = permute(%10){1, 0} : f32[4, 4]\n"
    "%12 = const{0x0} : f32[]\n"
    "%13 = pad(%10, %12){1, 0} : f32[6, 5]\n"
    "out %2, %3, %4, %7, %10\n";

static const char *text;
static nvb_hash hash;
static void parse(nvb_arena *a, void *arg) {
  nvg_graph *g = nvg_graph_parse(a, text, "t");
  nvb_text out = { .arena = a };
  nvg_graph_print(&out, g);
  hash = nvg_graph_hash(g);
  if (arg) ck_assert_str_eq(nvb_text_get(&out), text);
}
static int parsed(const char *s, int exactly) {
  nvb_arena *a = nvb_arena_new();
  text = s;
  int status = nvb_protect(a, parse, exactly ? &text : NULL);
  nvb_arena_free(a);
  return status;
}

START_TEST(text_leads_back) { ck_assert_msg(parsed(good, 1) == NVM_OK, "%s", nvb_message()); }
END_TEST

static char *replaced(const char *from, const char *to) {
  static char out[4096];
  const char *at = strstr(good, from);
  ck_assert_ptr_nonnull(at);
  snprintf(out, sizeof out, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
  return out;
}

START_TEST(faults_are_named) {
  static const struct {
    const char *from, *to;
    int status;
    const char *message;
  } bad[] = {
    { "map exp(%0)", "map exp(%1)", NVM_ERR_VALUE, "t:4: expected an earlier value before \") : f32[4, 3]\"" },
    { "map exp(%0)", "nap exp(%0)", NVM_ERR_VALUE, "t:4: expected a kind of value before \" exp(%0) : f32[4, 3]\"" },
    { "leaf{1}", "leaf{4294967297}", NVM_ERR_VALUE, "t:7: expected a leaf's number before \" : c64[4]\"" },
    { "exp(%0) : f32[4, 3]", "exp(%0) : f32[4, 4]", NVM_ERR_INTERNAL,
      "graph: %1 (exp): operands have the result's shape or are 0-d" },
    { "exp(%0) : f32[4, 3]", "exp(%0) : f64[4, 3]", NVM_ERR_INTERNAL,
      "graph: %1 (exp): the fragment gives another dtype" },
    { "{1, 1} order", "{1, 2} order", NVM_ERR_INTERNAL, "graph: %2 (sum): the axes are out of range" },
    { "order(1024, 128)", "order(1000, 128)", NVM_ERR_INTERNAL, "graph: %2 (sum): the order is not two powers of two" },
    { "{3, -1, 0, 2}", "{3, -2, 0, 2}", NVM_ERR_INTERNAL, "graph: %3 (slice): the slice leaves its operand" },
    { "pick(%6){1}", "pick(%6){2}", NVM_ERR_INTERNAL, "graph: %7 (pick): no such state" },
    { "{1} : i64[1, 3]", "{1} : f32[1, 3]", NVM_ERR_INTERNAL,
      "graph: %7 (pick): the state has another shape or dtype" },
    { "%10){1, 0}", "%10){1, 1}", NVM_ERR_INTERNAL, "graph: %11 (permute): not a permutation" },
    { "const{0x0} : f32", "const{0x0} : i32", NVM_ERR_INTERNAL, "graph: %13 (pad): the operand does not fit" },
    { "{1, 1} order", "{1, 9223372036854775807} order", NVM_ERR_INTERNAL,
      "graph: %2 (sum): the axes are out of range" },
    { "leaf{1} : c64[4]", "leaf{1} : c64[5]", NVM_ERR_INTERNAL, "graph: %4 (leaf): the leaf is another" },
    { "init(0x80000000)", "init(0x80000000, 1)", NVM_ERR_VALUE,
      "t:5: expected an identity for each state before \" : f32[4, 1] @sum\"" },
    { "gemm(%8, %9)", "gemm(%8, %8)", NVM_ERR_INTERNAL, "graph: %10 (gemm): inner extents differ" },
    { "gemm(%8, %9)", "gemm(%9, %8)", NVM_ERR_INTERNAL,
      "graph: %10 (gemm): the shape does not follow from the operands'" },
    { "gemm(%8, %9)", "gemm(%0, %9)", NVM_ERR_INTERNAL,
      "graph: %10 (gemm): operands have one dtype, of floats or int8" },
    { "gemm(%8, %9)", "gemm(%8)", NVM_ERR_INTERNAL, "graph: %10 (gemm): operands are missing" },
    { "{11, 0}", "{9, 0}", NVM_ERR_INTERNAL, "graph: %10 (gemm): sums have another dtype" },
    { "{11, 0}", "{11, 4}", NVM_ERR_INTERNAL, "graph: %10 (gemm): no such precision" },
    { "call gemm", "call sum", NVM_ERR_VALUE, "t:13: there is no call of sum" },
    { "out %2", "out %14", NVM_ERR_VALUE, "t:17: expected a value before \", %3, %4, %7, %10\"" },
    { "f32[4, 3] strides", "f33[4, 3] strides", NVM_ERR_VALUE,
      "t:1: expected a dtype before \"[4, 3] strides(3, 1) ali\"" },
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ck_assert_int_eq(parsed(replaced(bad[i].from, bad[i].to), 0), bad[i].status);
    ck_assert_str_eq(nvb_message(), bad[i].message);
  }
}
END_TEST

START_TEST(any_bytes_are_refused_or_parsed) {
  uint64_t seed = 1;
  char s[sizeof good];
  int fine = 0;
  for (int round = 0; round < 20000; round++) {
    memcpy(s, good, sizeof s);
    for (int k = 0; k < 1 + round % 3; k++) {
      seed = seed * 6364136223846793005ull + 1442695040888963407ull;
      static const char glyphs[] = "0123456789%()[]{},:=-xfiu \nredmapslice";
      s[(seed >> 33) % (sizeof s - 1)] = glyphs[(seed >> 20) % (sizeof glyphs - 1)];
    }
    fine += parsed(s, 0) == NVM_OK;
  }
  ck_assert_int_gt(fine, 0);
  ck_assert_int_lt(fine, 20000);
}
END_TEST

START_TEST(hashes_tell_graphs_apart) {
  static const char *const change[][2] = { { "strides(3, 1)", "strides(1, 4)" },   { " align16", "" },
                                           { "{3, -1, 0, 2}", "{3, -1, 1, 1}" },   { "map exp", "map sin" },
                                           { "order(1024, 128)", "order(64, 1)" }, { "out %2, %3", "out %3, %2" },
                                           { "align16", "align16 donated" },       { "{11, 0}", "{11, 1}" } };
  nvb_hash seen[9];
  ck_assert_int_eq(parsed(good, 0), NVM_OK);
  seen[0] = hash;
  for (int i = 0; i < 8; i++) {
    ck_assert_msg(parsed(replaced(change[i][0], change[i][1]), 0) == NVM_OK, "%s", nvb_message());
    seen[i + 1] = hash;
    for (int j = 0; j <= i; j++) ck_assert_msg(!nvb_hash_eq(seen[j], hash), "%s", change[i][1]);
  }
}
END_TEST

SUITE("graph_text", text_leads_back, faults_are_named, any_bytes_are_refused_or_parsed, hashes_tell_graphs_apart)
