/* What the LLVM emitter may emit, against the interpreter: every primitive and library function over edge values of
   every dtype, every way an address or a condition can depend on the lane. Each kernel runs with 16, 8, 4 lanes and
   one. */
#include "../gate.h"
#include "../../arena.h"
#include "base/text.h"

enum { N = 301 };
static const nvm_dtype reals[] = { NVM_F32, NVM_F64 },
                       ints[] = { NVM_I8, NVM_I16, NVM_I32, NVM_I64, NVM_U8, NVM_U16, NVM_U32, NVM_U64 };
static const char schedules[] =
    "schedule cpu16 { L = \"j: I2 l16\"; B = 32 }\nschedule cpu8 { L = \"j: I2 i2 l8\"; B = 32 }\n"
    "schedule cpu4 { L = \"j: i8 l4\"; B = 32 }\nschedule cpu1 { L = \"j: I8 i2\"; B = 16 }\n";

/* Interpreted and compiled under every schedule of the text: the same bits. */
static void same(gate *g, const char *text) {
  nvb_arena *a = nvb_arena_new();
  gate_job j = { .g = g, .text = (char *)(uintptr_t)text };
  g->file = "text";
  g->prefix = "cpu";
  for (int i = 0; i < g->narg; i++)
    if (g->arg[i].out) j.initial[i] = g->arg[i].data;
  ck_assert_msg(nvb_protect(a, gate_work, &j) == NVM_OK, "%s\n%s", nvb_message(), text);
  ck_assert_int_eq(j.runs, gate_runs(&j));
  for (int i = 0; i < g->narg; i++) free(j.first[i]);
  nvb_arena_free(a);
}

/* ---- values: the edges of a dtype, then random bits and small numbers */
static uint64_t edge(nvm_dtype t, int i) {
  static const double real[] = { 0.0,   -0.0,     1,         -1,  0.5,        -0.5,           1.5,
                                 2.5,   3,        -7,        100, 1e-40,      -1e-40,         1e30,
                                 -1e30, INFINITY, -INFINITY, NAN, 0x1p23,     0x1.000002p23,  1e-310,
                                 88.7,  -87.4,    -104,      1e5, 3.14159265, 0x1.fffffep127, 709.5,
                                 -745 };
  int n = sizeof real / sizeof *real;
  if (t == NVM_F32 || t == NVM_F64) {
    double d = i < n   ? real[i]
               : i % 3 ? (gate_uniform() - 0.5) * 20
                       : ldexp(gate_uniform() - 0.5, (int)(gate_uniform() * 240) - 120);
    float f = (float)d;
    uint64_t u = 0;
    memcpy(&u, t == NVM_F32 ? (void *)&f : (void *)&d, (size_t)nvg_size(t));
    return u;
  }
  uint64_t r = (uint64_t)(gate_uniform() * 16777216) * 0x9e3779b97f4a7c15ull, top = 1ull << (8 * nvg_size(t) - 1);
  if (t == NVM_BOOL) return r >> 60 & 1;
  switch (i) {
  case 0:
  case 1:
  case 2:
  case 3: return (uint64_t)(i - 1);
  case 4: return top;
  case 5: return top - 1;
  case 6: return top + 1;
  default: return i % 2 ? r : r >> 58;
  }
}

static void *values(nvm_dtype t, int shift) {
  char *p = calloc(N + 64, (size_t)nvg_size(t));
  for (int i = 0; i < N; i++) {
    uint64_t u = edge(t, (i + shift * (1 + i / 32)) % N);
    memcpy(p + i * nvg_size(t), &u, (size_t)nvg_size(t));
  }
  return p;
}

typedef struct writer {
  nvb_arena *a;
  nvb_text frags, body, params;
  gate g;
  int next;
  void *own[GATE_ARGS];
} writer;

static void begin(writer *w) {
  *w = (writer){ .a = nvb_arena_new() };
  w->frags.arena = w->body.arena = w->params.arena = w->a;
}
static void input(writer *w, nvm_dtype t, const char *name, int shift) {
  w->own[w->g.narg] = values(t, shift);
  gate_in(&w->g, t, w->own[w->g.narg], N);
  nvb_print(&w->params, "%s: %s[], ", name, nvg_dtype_short(t));
  nvb_print(&w->body, "    X%s = load(%s, b*B + j, L, where = b*B + j < n)\n", name, name);
}
/* Results of one type lie in one buffer, `count` of them. */
static void output(writer *w, nvm_dtype t, int count) {
  w->own[w->g.narg] = calloc((size_t)(N * count), (size_t)nvg_size(t));
  gate_out(&w->g, t, w->own[w->g.narg], N * count);
  nvb_print(&w->params, "o_%s: mut %s[], ", nvg_dtype_short(t), nvg_dtype_short(t));
}
static void result(writer *w, nvm_dtype t, int which, const char *tile) {
  nvb_print(&w->body, "    store(o_%s, %d*n + b*B + j, %s, where = b*B + j < n)\n", nvg_dtype_short(t), which, tile);
}
static void end(writer *w) {
  nvb_text t = { .arena = w->a };
  nvb_print(&t, "%s\nkernel t(%sn: size) {\n  grid (b = (n + B - 1) // B) {\n%s  }\n}\n%s", nvb_text_get(&w->frags),
            w->params.s, w->body.s, schedules);
  gate_size(&w->g, N);
  same(&w->g, t.s);
  for (int i = 0; i < GATE_ARGS; i++) free(w->own[i]);
  nvb_arena_free(w->a);
}

/* ---- primitives */
static void expressions(nvm_dtype t, nvm_dtype r, const char *const *list, int n) {
  writer w;
  begin(&w);
  input(&w, t, "x", 0);
  input(&w, t, "y", 7);
  input(&w, t, "z", 3);
  output(&w, r, n);
  for (int i = 0; i < n; i++) {
    const char *s = nvg_dtype_short(t);
    char tile[16];
    snprintf(tile, sizeof tile, "R%d", i);
    nvb_print(&w.frags, "frag f%d(x: %s, y: %s, z: %s) -> %s { return %s }\n", i, s, s, s, nvg_dtype_short(r), list[i]);
    nvb_print(&w.body, "    %s = map(f%d, Xx, Xy, Xz)\n", tile, i);
    result(&w, r, i, tile);
  }
  end(&w);
}
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

START_TEST(real_primitives) {
  static const char *const same_type[] = { "x + y",
                                           "x - y",
                                           "x * y",
                                           "x / y",
                                           "-x",
                                           "fabs(x)",
                                           "fma(x, y, z)",
                                           "sqrt(x)",
                                           "rint(x)",
                                           "floor(x)",
                                           "ceil(x)",
                                           "trunc(x)",
                                           "select(x < y, z, x)",
                                           "-(x * y) + z",
                                           "fma(-x, y, -z)" };
  static const char *const truth[] = {
    "x == y", "x != y", "x < y", "x <= y", "x > y", "x >= y", "!(x < y) & (y == z)"
  };
  for (int i = 0; i < COUNT(reals); i++) {
    expressions(reals[i], reals[i], same_type, COUNT(same_type));
    expressions(reals[i], NVM_BOOL, truth, COUNT(truth));
  }
}
END_TEST

START_TEST(int_primitives) {
  static const char *const same_type[] = { "x + y",
                                           "x - y",
                                           "x * y",
                                           "-x",
                                           "x & y",
                                           "x | y",
                                           "x ^ y",
                                           "~x",
                                           "clz(x)",
                                           "x / select((y == 0) | (y == ~(x ^ x)), 3, y)",
                                           "rem(x, select((y == 0) | (y == ~(x ^ x)), 3, y))",
                                           "x << (y & (clz(x ^ x) - 1))",
                                           "x >> (y & (clz(x ^ x) - 1))",
                                           "select(x < y, z, x)" };
  static const char *const truth[] = { "x == y", "x != y", "x < y", "x <= y", "x > y", "x >= y" }, *const high[] = {
    "mulhi(x, y)", "mulhi(z, y)"
  };
  for (int i = 0; i < COUNT(ints); i++) {
    expressions(ints[i], ints[i], same_type, COUNT(same_type));
    expressions(ints[i], NVM_BOOL, truth, COUNT(truth));
    if (nvg_size(ints[i]) >= 4) expressions(ints[i], ints[i], high, COUNT(high));
  }
}
END_TEST

START_TEST(bits_tables_loops) {
  writer w;
  begin(&w);
  input(&w, NVM_F32, "x", 0);
  input(&w, NVM_U8, "k", 1);
  output(&w, NVM_F32, 2);
  output(&w, NVM_I32, 2);
  nvb_puts(
      &w.frags,
      "table steps: f32 = {1.5, -2, 3, 0x1p-140, 7, 11, 13, 17}\ntable words: i64 = {1, -1, 0x7fffffffffffffff, 5}\n"
      "frag pick(k: u8) -> f32 { return steps[k & 7] }\nfrag word(k: u8) -> i32 { return i32(words[k & 3] >> 7) }\n"
      "frag spell(x: f32) -> i32 { return bits<i32>(x) ^ bits<i32>(x * 2) }\n"
      "frag twist(x: f32, k: u8) -> f32 {\n  for q in 5 carry (a = x, b = f32(k)) { c = fma(a, 0.5, b); b = a - "
      "f32(q); a = c }\n"
      "  for q in 3 carry (d = a) { d = d * b }\n  return d + b }\n");
  nvb_puts(&w.body,
           "    P = map(pick, Xk)\n    W = map(word, Xk)\n    S = map(spell, Xx)\n    T = map(twist, Xx, Xk)\n");
  result(&w, NVM_F32, 0, "P");
  result(&w, NVM_F32, 1, "T");
  result(&w, NVM_I32, 0, "W");
  result(&w, NVM_I32, 1, "S");
  end(&w);
}
END_TEST

START_TEST(casts) {
  static const nvm_dtype all[] = { NVM_BOOL, NVM_I8,  NVM_I16, NVM_I32,  NVM_I64, NVM_U8, NVM_U16,
                                   NVM_U32,  NVM_U64, NVM_F16, NVM_BF16, NVM_F32, NVM_F64 };
  for (int f = 0; f < COUNT(all); f++) {
    writer w;
    begin(&w);
    input(&w, all[f], "x", 0);
    for (int t = 0; t < COUNT(all); t++) {
      char tile[16];
      output(&w, all[t], 1);
      snprintf(tile, sizeof tile, "R%d", t);
      nvb_print(&w.body, "    %s = map(%s, Xx)\n", tile, nvg_dtype_short(all[t]));
      result(&w, all[t], 0, tile);
    }
    end(&w);
  }
}
END_TEST

/* ---- the library, fast forms and slow paths */
static void functions(const char *const *names, int n, nvm_dtype t, int nparam) {
  writer w;
  int made = 0;
  nvm_dtype r = t, types[3] = { t, t, t };
  begin(&w);
  input(&w, t, "x", 0);
  input(&w, t, "y", 7);
  output(&w, r, n);
  for (int i = 0; i < n; i++) {
    const nvg_frag *f = nvg_frag_find(names[i], types, nparam);
    char tile[16];
    if (!f || f->nresult != 1 || f->inst[f->result[0]].type != t) continue;
    snprintf(tile, sizeof tile, "R%d", i);
    nvb_print(&w.body, "    %s = map(%s, Xx%s)\n", tile, names[i], nparam == 2 ? ", Xy" : "");
    result(&w, r, made++, tile);
  }
  nvb_clear();
  ck_assert_msg(made > 0, "no %s", names[0]);
  end(&w);
}

static const char *const one[][6] = { { "sin", "cos", "tan" },
                                      { "exp", "exp2", "expm1" },
                                      { "log", "log2", "log10", "log1p" },
                                      { "sinh", "cosh", "tanh" },
                                      { "asin", "acos", "atan" },
                                      { "asinh", "acosh", "atanh" },
                                      { "sqrt", "reciprocal", "square", "negative", "abs", "sign" },
                                      { "floor", "ceil", "trunc", "round" } };
static const char *const two[][6] = { { "add", "subtract", "multiply", "divide" },
                                      { "minimum", "maximum", "copysign" },
                                      { "floor_divide", "remainder" },
                                      { "atan2", "hypot" },
                                      { "pow", "logaddexp" } };
static void library(nvm_dtype t) {
  for (int i = 0; i < COUNT(one); i++) {
    int n = 0;
    while (n < 6 && one[i][n]) n++;
    functions(one[i], n, t, 1);
  }
  for (int i = 0; i < COUNT(two); i++) {
    int n = 0;
    while (n < 6 && two[i][n]) n++;
    functions(two[i], n, t, 2);
  }
}
START_TEST(library_f32) { library(NVM_F32); }
END_TEST
START_TEST(library_f64) { library(NVM_F64); }
END_TEST

/* Quotients and roots that short sequences of a GPU cannot do, before what keeps, flags or loses a NaN. */
START_TEST(quotients) {
  writer w;
  begin(&w);
  input(&w, NVM_F32, "x", 0);
  input(&w, NVM_F32, "y", 7);
  output(&w, NVM_F32, 8);
  nvb_puts(&w.frags, "frag over(x: f32, y: f32) -> f32 { return select(x / y > 1, f32(2), 3) }\n"
                     "frag above(x: f32) -> f32 { return select(x > 1, f32(2), 3) }\n"
                     "frag below(x: f32) -> f32 { return select(x == x, f32(bits<i32>(x) >> 31), 5) }\n");
  nvb_puts(&w.body, "    Q = map(divide, Xx, Xy)\n    R0 = map(over, Xx, Xy)\n    R1 = map(above, Q)\n"
                    "    R2 = map(log, Q)\n    A = map(abs, Q)\n    S = map(sqrt, A)\n    R3 = map(above, S)\n");
  nvb_puts(&w.body, "    P = map(sqrt, Xx)\n    R4 = map(divide, Xy, P)\n    E = map(erf, Q)\n"
                    "    R5 = map(above, E)\n    M = map(minimum, R4, Xx)\n    R6 = map(exp, M)\n"
                    "    T = map(add, P, Xy)\n    R7 = map(below, T)\n");
  for (int i = 0; i < 8; i++) result(&w, NVM_F32, i, (char[]){ 'R', (char)('0' + i), 0 });
  end(&w);
}
END_TEST

START_TEST(library_int) {
  static const char *const names[] = { "add",          "subtract",    "multiply",           "minimum",
                                       "maximum",      "bitwise_and", "bitwise_left_shift", "bitwise_right_shift",
                                       "floor_divide", "remainder" };
  for (int i = 0; i < COUNT(ints); i++) functions(names, COUNT(names), ints[i], 2);
}
END_TEST

/* ---- addresses */
static void address(nvm_dtype t, const char *map, const char *where, int pairs) {
  nvb_arena *a = nvb_arena_new();
  nvb_text s = { .arena = a };
  gate g = { 0 };
  int size = nvg_size(t);
  char *x = calloc(4096, (size_t)size), *o = calloc(3 * 96, (size_t)size), *p = calloc(4096, (size_t)size);
  for (int i = 0; i < 4096 * size; i++) x[i] = (char)(t == NVM_BOOL ? i * 7 / 3 & 1 : i * 37 + i / 256);
  nvb_print(&s, "kernel t(x: %s[], o: mut %s[], p: mut %s[], n: size, s: size) {\n  grid (b = 3) {\n",
            nvg_dtype_short(t), nvg_dtype_short(t), nvg_dtype_short(t));
  const char *tiles = pairs ? "X, Y" : "X";
  nvb_print(&s, "    %s = load(x, %s, L%s%s)\n    store(o, b*96 + j, %s)\n", tiles, map, *where ? ", where = " : "",
            where, tiles);
  nvb_print(&s, "    store(p, b*1000 + 2*(%s) + b, %s%s%s)\n  }\n}\n",
            strchr(map, 'j') && !strpbrk(map, "/%") ? map : "j", tiles, *where ? ", where = " : "", where);
  nvb_puts(&s, "schedule cpu16 { L = \"j: I3 i2 l16\" }\nschedule cpu8 { L = \"j: I3 I4 l8\" }\nschedule cpu4 { L = "
               "\"j: i6 I4 l4\" }\n"
               "schedule cpu1 { L = \"j: I48 i2\" }\nschedule cpuswap { L = \"j: I6 l4@4 l4@1\" }\nschedule cpurow { L "
               "= \"j: l4@4 I6 l4@1\" }\n");
  gate_in(&g, t, x, 4096);
  gate_out(&g, t, o, 3 * 96);
  gate_out(&g, t, p, 4096);
  gate_size(&g, 77);
  gate_size(&g, 5);
  same(&g, s.s);
  free(x);
  free(o);
  free(p);
  nvb_arena_free(a);
}

enum { STEP = ONE_IN > 1 ? 5 : 1 };
START_TEST(addresses) {
  static const char *const map[] = { "j",
                                     "b*96 + j",
                                     "95 - j",
                                     "n + 18 - j",
                                     "2*j + 1",
                                     "3*j",
                                     "5*j + b",
                                     "s*j",
                                     "n - s*j + 400",
                                     "j // 4",
                                     "j % 8",
                                     "j // 3 + b",
                                     "(7*j + b) % n",
                                     "(j + 3) // 16",
                                     "2*(j // 4) + j % 4",
                                     "(j*s) // 7",
                                     "(j - 50 + n) % 13",
                                     "7",
                                     "b" };
  for (int i = 0; i < COUNT(map); i++) address(NVM_F32, map[i], "", 0);
  for (int i = 0; i < COUNT(map); i += 2 * STEP) address(NVM_C64, map[i], "", 1);
  for (int i = 0; i < COUNT(map); i += 4 * STEP) {
    address(NVM_F64, map[i], "", 0);
    address(NVM_BOOL, map[i], "", 0);
    address(NVM_U8, map[i], "", 0);
    address(NVM_F16, map[i], "", 0);
    address(NVM_C128, map[i], "", 1);
  }
}
END_TEST

START_TEST(conditions) {
  static const char *const where[] = { "j < n",          "j <= n",     "j > 3",       "j >= s",
                                       "j == 17",        "j != 17",    "2*j + 3 < n", "n - j > s & j >= 2",
                                       "j // 8 < s",     "j % 3 == 1", "b < 2",       "b*96 + j < 3*n",
                                       "j < n & b == 1", "n > 76",     "s > 5",       "j*s < n",
                                       "n - s*j >= 0" };
  static const char *const map[] = { "j", "n + 18 - j", "3*j", "j // 4" };
  for (int i = 0; i < COUNT(where); i += STEP) {
    address(NVM_F32, map[i % 2], where[i], 0);
    if (i % 3 == 0) address(NVM_F32, map[2 + i % 2], where[i], 0);
    if (i % 3 == 1) address(NVM_C64, map[i % 2], where[i], 1);
    if (i % 4 == 2) address(NVM_BOOL, map[i % 2], where[i], 0);
    if (i % 4 == 1) address(NVM_I16, map[i % 2], where[i], 0);
    if (i % 4 == 3) address(NVM_F64, map[i % 4], where[i], 0);
  }
}
END_TEST

/* Lanes whose addresses are one constant: counted once. */
START_TEST(one_place_for_all_lanes) {
  static const char text[] =
      "kernel t(x: i32[], o: mut i32[]) {\n  grid (b = 1) {\n    X = load(x, j, L)\n"
      "    store(o, j // 16, X, where = j % 16 == 3)\n  }\n}\nschedule cpu16 { L = \"j: i4 l16\" }\n"
      "schedule cpu8 { L = \"j: i8 l8\" }\nschedule cpu1 { L = \"j: I64\" }\n";
  int32_t x[64], o[64];
  gate g = { 0 };
  for (int i = 0; i < 64; i++) x[i] = 1000 + i, o[i] = -1;
  gate_in(&g, NVM_I32, x, 64);
  gate_out(&g, NVM_I32, o, 64);
  same(&g, text);
}
END_TEST

/* A check without a layout goes over the tiles of its relations. */
START_TEST(checks) {
  static const char text[] =
      "kernel t(x: i64[], o: mut i64[], n: size) {\n  grid (b = 1) {\n    X = load(x, j, L)\n"
      "    check(X >= 0)\n    check(2*X < n)\n    store(o, j, X)\n  }\n}\nschedule cpu8 { L = \"j: i8 l8\" }\n"
      "schedule cpu1 { L = \"j: I64\" }\n";
  int64_t x[64], o[64] = { 0 };
  gate g = { 0 };
  for (int i = 0; i < 64; i++) x[i] = 63 - i;
  gate_in(&g, NVM_I64, x, 64);
  gate_out(&g, NVM_I64, o, 64);
  gate_size(&g, 127);
  same(&g, text);
}
END_TEST

/* ---- padding: tiles of 1024 by 256, values of 20 by 70. Loops of statements without a condition, and those of arrays
   of accumulators, stop where no later statement looks. */
START_TEST(padding_is_left_alone) {
  static const char text[] =
      "kernel t(x: f32[], y: mut f32[], z: mut f32[], m: size, n: size) {\n  grid () {\n"
      "    X = load(x, i*n + j, L, where = i < m & j < n)\n"
      "    s = reduce(add, X, j, S, where = j < n, init = (-0.0))\n    E = map(subtract, X, s, layout = L)\n"
      "    E2 = map(multiply, E, E, layout = L)\n"
      "    r = reduce(add, E2, j, S, where = j < n, init = (-0.0))\n"
      "    q = reduce(add, E2, i, C, where = i < m, init = (-0.0))\n"
      "    store(y, i, r, where = i < m)\n    store(z, j, q, where = j < n)\n  }\n}\n"
      "schedule cpu16 { L = \"i: I16 I64; j: I2 i8 l16\"; S = order(1024, 128); C = order(64, 1) }\n"
      "schedule cpu8 { L = \"i: I16 I64; j: I2 I16 l8\"; S = order(1024, 128); C = order(64, 1) }\n"
      "schedule cpu4 { L = \"i: I4 I256; j: I2 I32 l4\"; S = order(1024, 128); C = order(256, 1) }\n"
      "schedule cpu1 { L = \"i: I16 I64; j: I2 I128\"; S = order(1024, 128); C = order(64, 1) }\n";
  enum { ROWS = 20, WIDE = 70 };
  float *x = gate_floats(ROWS * WIDE, -1, 1), y[ROWS] = { 0 }, z[WIDE] = { 0 };
  gate g = { .most_scratch = 1 << 14 };
  gate_in(&g, NVM_F32, x, ROWS * WIDE);
  gate_out(&g, NVM_F32, y, ROWS);
  gate_out(&g, NVM_F32, z, WIDE);
  gate_size(&g, ROWS);
  gate_size(&g, WIDE);
  same(&g, text);
  free(x);
}
END_TEST

/* ---- scans: lanes beside the axis, along it, and both kinds of loops */
START_TEST(scans) {
  static const char text[] =
      "kernel t(x: f32[], y: mut f32[], rows: size, n: size) {\n"
      "  grid (b = (rows + T - 1) // T) {\n"
      "    X = load(x, (b*T + i)*n + j, L, where = b*T + i < rows & j < n)\n"
      "    Y = scan(add, X, j, where = j < n, init = (-0.0))\n"
      "    store(y, (b*T + i)*n + j, Y, where = b*T + i < rows & j < n)\n  }\n}\n"
      "schedule cpu16 { L = \"j: I128 i16; i: I4 l16\"; T = 64 }\n"
      "schedule cpu8 { L = \"i: I2 i2 l8; j: i2 I64 i16\"; T = 32 }\n"
      "schedule cpu4 { L = \"i: I3; j: I32 l4 i16\"; T = 3 }\nschedule cpu1 { L = \"i: i2; j: I2048\"; T = 2 }\n";
  int rows = 70, n = 1500;
  float *x = gate_floats(rows * n, -1, 1), *y = calloc((size_t)(rows * n), 4);
  gate g = { 0 };
  gate_in(&g, NVM_F32, x, rows * n);
  gate_out(&g, NVM_F32, y, rows * n);
  gate_size(&g, rows);
  gate_size(&g, n);
  same(&g, text);
  free(x);
  free(y);
}
END_TEST

/* ---- the border */
START_TEST(available) { /* where the build made the module, these gates are no empty ones */
  if (getenv("NVM_EXPECT_LLVM")) ck_assert_msg(nvc_llvm_available(), "%s", nvb_message());
}
END_TEST

/* What the emitter does not spell is left to the interpreter: a status, no code. */
static void refused(nvb_arena *a, void *text) {
  nvf_kernel *k = nvf_kernel_parse(a, text, "text");
  nvc_object o = { 0 };
  nvc_interp_new(a, k, k->sched[0]);
  ck_assert_int_eq(nvc_compile(&o, k, k->sched[0], nvc_target_host(), 0), NVM_ERR_UNSUPPORTED);
}

static void refuse(const char *text) { in_arena(refused, text, NULL); }

START_TEST(refusals) {
  if (!nvc_llvm_available()) return;
  nvb_arena *a = nvb_arena_new();
  nvb_text t = { .arena = a };
  refuse("kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 1) {\n    X = load(x, j, L)\n    store(o, j, X)\n  }\n}\n"
         "schedule c { L = \"j: w2 l16\" }\n");
  nvb_puts(&t, "frag f(p: f32");
  for (int i = 1; i < 70; i++) nvb_print(&t, ", p%d: f32", i);
  nvb_puts(&t, ") -> f32 { return p + p69 }\nkernel t(x: f32[], o: mut f32[]) {\n  grid (b = 1) {\n"
               "    X = load(x, j, L)\n    Y = map(f");
  for (int i = 0; i < 70; i++) nvb_puts(&t, ", X");
  nvb_puts(&t, ")\n    store(o, j, Y)\n  }\n}\nschedule c { L = \"j: i2 l16\" }\n");
  refuse(nvb_text_get(&t));
  nvb_arena_free(a);
}
END_TEST

START_TEST(errors) {
  if (!nvc_llvm_available()) return;
  nvc_object bad = { .bytes = "no object at all", .n = 16 };
  nvc_code *c = NULL;
  ck_assert(nvc_load(&c, &bad) != NVM_OK && c == NULL);
  ck_assert(strlen(nvb_message()) > 0);
  ck_assert(nvc_llvm_available()); /* that was no fatal error */
}
END_TEST

/* ---- loading: a damaged object gives a status or code, and nothing outside of it is read or written */
static int load_is_safe(const char *bytes, size_t n) { /* returns 1 if it was loaded */
  nvc_code *c = NULL;
  char *alone = malloc(n + 1); /* so that a sanitizer sees what is read beyond its end */
  memcpy(alone, bytes, n);
  int status = nvc_load(&c, &(nvc_object){ .bytes = alone, .n = n });
  ck_assert(!status == (c != NULL));
  ck_assert(status || nvc_code_entry(c) != NULL);
  nvc_code_free(c);
  free(alone);
  return !status;
}
static void load_damaged(nvb_arena *a, void *text) {
  nvf_kernel *k = nvf_kernel_parse(a, text, "text");
  nvc_object o = { 0 };
  int loaded = 0;
  ck_assert_msg(nvc_compile(&o, k, k->sched[0], nvc_target_host(), 0) == NVM_OK, "%s", nvb_message());
  ck_assert(load_is_safe(o.bytes, o.n));
  for (size_t n = 0; n < o.n; n++) loaded += load_is_safe(o.bytes, n);
  ck_assert_int_lt(loaded, 64); /* the sections' headers are the end of the file */
  char *damaged = malloc(o.n);
  for (int i = 0; i < 20000; i++) {
    memcpy(damaged, o.bytes, o.n);
    for (int n = 1 + i % 3; n; n--) {
      size_t at = (size_t)(gate_uniform() * 0.999999 * (double)o.n);
      damaged[at] = (char)(i % 2 ? gate_uniform() * 255 : damaged[at] ^ 1 << i / 2 % 8);
    }
    load_is_safe(damaged, o.n);
  }
  free(damaged);
  nvb_free(o.bytes);
}
START_TEST(damaged_objects) {
  if (nvc_llvm_available())
    in_arena(load_damaged,
             "kernel t(x: f32[], o: mut f32[], n: size) {\n  grid (b = (n + T - 1) // T) {\n"
             "    X = load(x, b*T + j, L, where = b*T + j < n)\n    Y = map(sin, X)\n"
             "    store(o, b*T + j, Y, where = b*T + j < n)\n  }\n}\nschedule c { L = \"j: i2 l8\"; T = 16 }\n",
             NULL);
}
END_TEST

SUITE("llvm", real_primitives, int_primitives, bits_tables_loops, casts, library_f32, library_f64, quotients,
      library_int, addresses, conditions, one_place_for_all_lanes, checks, padding_is_left_alone, scans, available,
      refusals, errors, damaged_objects)
