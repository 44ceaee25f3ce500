/* Statements act in the order of the text, whatever emitters put off or do together: carried tiles that change behind
   their use, results that nothing masks, memory that is read behind a store, fills of wide pairs. */
#include "gate.h"
#include "base/settings.h"

enum { N = 200 };

static void run(gate *g, const char *name, const char *text) {
  g->file = name;
  g->prefix = "cpu";
  g->text = text;
  gate_run(g);
}

#define WIDTHS(rest)                                                                                                   \
  "schedule cpu16 { L = \"j: I2 i2 l16\"; B = 64; S = order(1024, 64) " rest "}\n"                                     \
  "schedule cpu8 { L = \"j: i8 l8\"; B = 64; S = order(1024, 64) " rest "}\n"                                          \
  "schedule cpu1 { L = \"j: i64\"; B = 64; S = order(1024, 64) " rest "}\n"                                            \
  "schedule gpu1 { L = \"j: i2 l32\"; B = 64; S = order(1024, 64) " rest "}\n"                                         \
  "schedule gpu2 { L = \"j: w2 I2 l16\"; B = 64; S = order(1024, 64) " rest "}\n"

/* A slow path is told of an operand that was assigned again by then. */
START_TEST(slow_paths) {
  static const char *const next[] = { "map(multiply, a, 0.5)", "load(y, b*B + j, L, where = b*B + j < n)",
                                      "zeros(f32, L)",         "map(exp, s)",
                                      "map(multiply, a, E)",   "map(add, E, E)" };
  float x[N], y[N], o[N];
  for (int i = 0; i < N; i++) {
    x[i] = i % 7 == 3 ? 1000 : i % 11 == 5 ? -104 : i % 13 == 6 ? NAN : (float)(i - 100) / 16;
    y[i] = i % 5 ? -1 : -300;
  }
  for (size_t k = 0; k < sizeof next / sizeof *next; k++) {
    char text[2000];
    snprintf(text, sizeof text,
             "kernel t(x: f32[], y: f32[], o: mut f32[], n: size) {\n  grid (b = (n + B - 1) // B) {\n"
             "    a0 = load(x, b*B + j, L, where = b*B + j < n)\n    s0 = zeros(f32, L)\n"
             "    for t in range(0, 3, 1) carry (a = a0, s = s0) {\n      E = map(exp, a)\n      a = %s\n"
             "      s = map(add, s, E)\n    }\n    store(o, b*B + j, s0, where = b*B + j < n)\n  }\n}\n" WIDTHS(""),
             next[k]);
    gate g = { 0 };
    gate_in(&g, NVM_F32, x, N);
    gate_in(&g, NVM_F32, y, N);
    gate_out(&g, NVM_F32, o, N);
    gate_size(&g, N);
    run(&g, next[k], text);
  }
}
END_TEST

/* The elements of a reduction or scan change before its results are made. */
START_TEST(late_results) {
  static const char text[] =
      "frag turn(a: f32, c: f32) -> (f32, f32) { return c, a }\n"
      "kernel t(x: f32[], o: mut f32[], n: size) {\n  grid (b = (n + B - 1) // B) {\n"
      "    a0 = load(x, b*B + j, L, where = b*B + j < n)\n    c0 = load(x, n - 1 - b*B - j, L, where = b*B + j < n)\n"
      "    s0 = zeros(f32, only(L))\n    for t in range(0, 3, 1) carry (a = a0, c = c0, s = s0) {\n"
      "      m = reduce(add, a, j, S, init = (-0.0))\n      a = map(multiply, a, 0.5)\n"
      "      k = reduce(add, a, j, S, where = b*B + j < n, init = (-0.0))\n      a = map(add, a, 1)\n"
      "      q = reduce(add, a, j, S, where = b*B + j < n, init = (-0.0))\n      a, c = map(turn, a, c)\n"
      "      p = map(multiply, m, k)\n      s = map(fma, s, p, q)\n    }\n"
      "    store(o, b*B + j, a0, where = b*B + j < n)\n    store(o, n + b, s0)\n  }\n}\n" WIDTHS("");
  float x[N], o[N + 4] = { 0 };
  for (int i = 0; i < N; i++) x[i] = (float)(i % 17) - 8;
  gate g = { 0 };
  gate_in(&g, NVM_F32, x, N);
  gate_out(&g, NVM_F32, o, N + 4);
  gate_size(&g, N);
  run(&g, "late results", text);
}
END_TEST

/* Addresses out of a tile that changes between them, and behind the loop that changes it. */
START_TEST(pointers) {
  static const char text[] =
      "frag next(i: i32) -> i32 { return 199 - i }\n"
      "kernel t(x: f32[], i: i32[], o: mut f32[], n: size) {\n  grid (b = (n + B - 1) // B) {\n"
      "    i0 = load(i, b*B + j, L, where = b*B + j < n)\n    s0 = load(x, 3*i0, L, where = b*B + j < n)\n"
      "    for t in range(0, 3, 1) carry (k = i0, s = s0) {\n"
      "      U = load(x, 3*k, L, where = b*B + j < n & 3*k < 3*n)\n      k = map(next, k)\n"
      "      V = load(x, 3*k, L, where = b*B + j < n & 3*k < 3*n)\n"
      "      s = map(fma, s, U, V)\n    }\n"
      "    W = load(x, 3*i0, L, where = b*B + j < n)\n    Y = map(add, s0, W)\n"
      "    store(o, b*B + j, Y, where = b*B + j < n)\n  }\n}\n" WIDTHS("");
  float x[3 * N], o[N];
  int32_t i[N];
  for (int k = 0; k < 3 * N; k++) x[k] = (float)(k % 23) / 16;
  for (int k = 0; k < N; k++) i[k] = (k * 37 + 5) % N;
  gate g = { 0 };
  gate_in(&g, NVM_F32, x, 3 * N);
  gate_in(&g, NVM_I32, i, N);
  gate_out(&g, NVM_F32, o, N);
  gate_size(&g, N);
  run(&g, "pointers", text);
}
END_TEST

/* A row whose every element is masked has the identity, and a store that does not mask it writes that. */
START_TEST(empty_rows) {
  static const char text[] = "kernel t(x: f32[], o: mut f32[], n: size, rows: size) {\n  grid (b = 2) {\n"
                             "    X = load(x, (b*8 + r)*n + j, L, where = j < n & b*8 + r < rows)\n"
                             "    m = reduce(minimum, X, j, S, where = j < n & b*8 + r < rows, init = (inf))\n"
                             "    store(o, b*8 + r, m)\n  }\n}\n"
                             "schedule cpu16 { L = \"r: I8; j: I4 l16\"; S = order(1024, 16) }\n"
                             "schedule cpu8 { L = \"r: I4 i2; j: i2 I4 l8\"; S = order(32, 8) }\n"
                             "schedule cpu4 { L = \"j: I4 i4; r: I2 l4\"; S = order(16, 4) }\n"
                             "schedule cpu1 { L = \"j: i4 i4; r: i8\"; S = order(16, 4) }\n"
                             "schedule gpu1 { L = \"r: I8; j: I2 l32\"; S = order(1024, 32) }\n"
                             "schedule gpu2 { L = \"r: I2 w4; j: i2 l32\"; S = order(1024, 32) }\n"
                             "schedule gpu3 { L = \"j: I4 i4; r: I2 l4\"; S = order(16, 4) }\n";
  float x[16 * 13], o[16];
  for (int rows = 0; rows <= 13; rows += rows == 5 ? 8 : 5)
    for (int n = 0; n <= 16; n += 13) {
      for (int i = 0; i < 16 * 13; i++) x[i] = (float)(i * 7 % 31);
      gate g = { 0 };
      gate_in(&g, NVM_F32, x, 16 * 13);
      gate_out(&g, NVM_F32, o, 16);
      gate_size(&g, n);
      gate_size(&g, rows);
      run(&g, "empty rows", text);
      for (int r = 0; r < 16; r++) ck_assert(r < rows && n ? o[r] < 31 : isinf(o[r]));
    }
}
END_TEST

/* What a block has stored it may load. */
START_TEST(through_memory) {
  static const char text[] =
      "kernel t(x: i32[], y: mut i32[], o: mut i32[]) {\n  grid (b = 1) {\n    X = load(x, j, L)\n"
      "    store(y, j, X)\n    Y = load(y, (j + 5) % 64, L)\n    store(o, j, Y)\n    Z = load(o, 63 - j, L)\n"
      "    V = map(multiply, Z, 3)\n    store(y, j, V)\n  }\n}\n"
      "schedule cpu16 { L = \"j: I2 i2 l16\" }\nschedule cpu8 { L = \"j: i8 l8\" }\n"
      "schedule cpu4 { L = \"j: I16 l4\" }\n"
      "schedule cpu1 { L = \"j: i64\" }\n";
  int32_t x[64], y[64], o[64];
  gate g = { 0 };
  for (int i = 0; i < 64; i++) x[i] = 1000 + i, y[i] = o[i] = -1;
  gate_in(&g, NVM_I32, x, 64);
  gate_out(&g, NVM_I32, y, 64);
  gate_out(&g, NVM_I32, o, 64);
  run(&g, "through memory", text);
}
END_TEST

/* A body over a buffer y that has two names, x for what is loaded. */
static void run_over(const char *name, const char *body) {
  char text[2000];
  float y[256], o[256] = { 0 };
  snprintf(text, sizeof text,
           "kernel t(y: mut f32[], x: f32[], o: mut unique f32[]) {\n  grid (b = 2) {\n%s  }\n}\n"
           "schedule cpu16 { L = \"j: I4 i2 l16\" }\nschedule cpu8 { L = \"j: i16 l8\" }\n"
           "schedule cpu1 { L = \"j: I128\" }\nschedule gpu1 { L = \"j: I4 l32\" }\n",
           body);
  for (int i = 0; i < 256; i++) y[i] = (float)i;
  gate g = { 0 };
  gate_out(&g, NVM_F32, y, 256);
  gate_over(&g, 0);
  gate_out(&g, NVM_F32, o, 256);
  run(&g, name, text);
}

/* What is loaded before a loop is what was there then, whatever the loop's iterations store behind its use. */
START_TEST(loads_before_loops) {
  run_over("loads before a loop", "    X = load(x, b*128 + j, L)\n    for t in range(0, 3, 1) {\n"
                                  "      Y = map(add, X, X)\n      store(y, b*128 + j, Y)\n    }\n");
  run_over("loads before two loops", "    for u in range(0, 2, 1) {\n      X = load(x, b*128 + j, L)\n"
                                     "      for t in range(0, 2, 1) {\n        Y = map(add, X, 1)\n"
                                     "        store(o, b*128 + j, X)\n        if t == 0 {\n"
                                     "          store(y, b*128 + j, Y)\n        }\n      }\n    }\n");
}
END_TEST

/* A store leaves alone what was loaded before it, and changes what is loaded behind it, in all elements. */
START_TEST(stores_under_another_name) {
  run_over("turned in place", "    X = load(x, b*128 + 127 - j, L)\n    Y = map(add, X, 1)\n"
                              "    store(y, b*128 + j, Y)\n");
  run_over("turned behind a store", "    X = load(x, b*128 + j, L)\n    Y = map(add, X, 1)\n"
                                    "    store(y, b*128 + j, Y)\n    Z = load(x, b*128 + 127 - j, L)\n"
                                    "    store(o, b*128 + j, Z)\n");
}
END_TEST

/* Every body behind the same head, with the schedules. */
static void run_bodies(const char *head, const char *const *body, size_t nbody, const char *schedules, float *x) {
  float o[512] = { 0 };
  for (size_t k = 0; k < nbody; k++) {
    char text[2000];
    snprintf(text, sizeof text, "%s%s  }\n}\n%s", head, body[k], schedules);
    gate g = { 0 };
    gate_in(&g, NVM_F32, x, 512);
    gate_out(&g, NVM_F32, o, 512);
    run(&g, body[k], text);
  }
}

/* Layouts with the same digits, but their items in another order. */
START_TEST(orders) {
  static const char head[] = "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 4) {\n"
                             "    X = load(x, b*128 + r*16 + j, L)\n";
  static const char *const body[] = {
    "    E = map(exp, X, layout = M)\n    F = map(add, E, X, layout = L)\n    G = map(multiply, E, F, layout = M)\n"
    "    store(o, b*128 + r*16 + j, G)\n",
    "    Y = map(add, X, X, layout = M)\n    Z = map(multiply, Y, X, layout = L)\n"
    "    store(o, b*128 + r*16 + j, Z)\n",
    "    s0 = zeros(f32, L)\n    for t in range(0, 3, 1) carry (s = s0) {\n      E = map(exp, X, layout = M)\n"
    "      F = map(add, s, E, layout = M)\n      s = map(add, F, X, layout = L)\n    }\n"
    "    store(o, b*128 + r*16 + j, s0)\n"
  };
  float x[512];
  for (int i = 0; i < 512; i++) x[i] = i % 7 == 3 ? 1000 : i % 13 == 6 ? -104 : (float)(i % 128 - 64) / 16;
  run_bodies(head, body, sizeof body / sizeof *body,
             "schedule cpu1 { L = \"r: i8; j: i16\"; M = \"j: i16; r: i8\" }\n"
             "schedule cpu2 { L = \"r: I2 i4; j: i16\"; M = \"j: i16; r: I2 i4\" }\n"
             "schedule cpu4 { L = \"r: i2 l4; j: i16\"; M = \"j: i16; r: i2 l4\" }\n"
             "schedule cpu8 { L = \"r: I4 i2; j: i2 l8\"; M = \"j: i2 l8; r: I4 i2\" }\n"
             "schedule gpu1 { L = \"r: l4 i2; j: i16\"; M = \"j: i16; r: l4 i2\" }\n"
             "schedule gpu2 { L = \"r: I4 i2; j: l4 i4\"; M = \"j: l4 i4; r: I4 i2\" }\n",
             x);
}
END_TEST

/* What a scan has made in loops of its own is carried, or goes on to another layout. */
START_TEST(behind_scans) {
  static const char head[] = "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 4) {\n"
                             "    X = load(x, b*128 + r*16 + j, L)\n    T = scan(add, X, j)\n";
  static const char *const body[] = {
    "    for t in range(0, 3, 1) carry (c = T) {\n      c = map(multiply, c, X)\n    }\n"
    "    store(o, b*128 + r*16 + j, T)\n",
    "    U = relayout(T, M)\n    V = map(negative, U)\n    store(o, b*128 + r*16 + j, V)\n"
  };
  float x[512];
  for (int i = 0; i < 512; i++) x[i] = (float)(i % 37 - 18) / 16;
  run_bodies(head, body, sizeof body / sizeof *body,
             "schedule cpu1 { L = \"r: i8; j: i16\"; M = \"r: i4 I2; j: I16\" }\n"
             "schedule cpu4 { L = \"r: I8; j: l4 i4\"; M = \"r: i2 l4; j: i16\" }\n"
             "schedule cpu8 { L = \"r: l8; j: i16\"; M = \"r: i8; j: i2 l8\" }\n"
             "schedule gpu1 { L = \"r: I8; j: l4 i4\"; M = \"r: i2 l4; j: l8 i2\" }\n"
             "schedule gpu2 { L = \"r: w4 l2; j: I2 i8\"; M = \"r: l8; j: i16\" }\n",
             x);
}
END_TEST

/* Out of nin floats, or pairs, between -2 and 2 the text makes nout floats. */
static void run_refusing(int *refusals, const char *name, const char *text, nvm_dtype in, int nin, int nout) {
  float x[1024], o[2560] = { 0 };
  for (int i = 0; i < nvg_parts(in) * nin; i++) x[i] = (float)(i % 37 - 18) / 16;
  gate g = { .refusals = refusals };
  gate_in(&g, in, x, nin);
  gate_out(&g, NVM_F32, o, nout);
  run(&g, name, text);
}
static void run_floats(const char *name, const char *text, nvm_dtype in, int nin, int nout) {
  run_refusing(NULL, name, text, in, nin, nout);
}

/* A carried tile that begins as something else becomes what a scan has made. */
START_TEST(scans_that_are_carried) {
  static const char text[] =
      "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 4) {\n    X = load(x, b*128 + r*16 + j, L)\n"
      "    Y = map(floor, X)\n    Z = map(negative, X)\n    for t in range(0, 2, 1) carry (c = Y) {\n"
      "      S = scan(add, X, j)\n"
      "      for u in range(0, 2, 1) {\n        c = scan(add, Z, j)\n"
      "        store(o, ((b*2 + t)*2 + u)*128 + r*16 + j, S)\n"
      "      }\n    }\n    store(o, 2048 + b*128 + r*16 + j, Y)\n  }\n}\n"
      "schedule cpu1 { L = \"r: i8; j: i16\" }\nschedule cpu4 { L = \"r: i2 l4; j: i16\" }\n"
      "schedule cpu8 { L = \"r: I8; j: l8 i2\" }\nschedule gpu1 { L = \"r: l8; j: l4 i4\" }\n";
  run_floats("scans that are carried", text, NVM_F32, 512, 2560);
}
END_TEST

/* A load that makes a carried tile too is not done again behind the next one that makes it. */
START_TEST(carried_halves) {
  static const char text[] =
      "kernel t(x: c64[], o: mut f32[]) {\n  grid (b = 2) {\n    c0 = zeros(f32, L)\n"
      "    for t in range(0, 2, 1) carry (c = c0) {\n      X, c = load(x, b*128 + j, L)\n"
      "      Y, c = load(x, b*128 + 127 - j, L)\n      z = zeros(f32, only(L))\n      W = map(add, X, z)\n"
      "      store(o, (b*2 + t)*128 + j, W)\n    }\n    store(o, 512 + b*128 + j, c0)\n  }\n}\n"
      "schedule cpu16 { L = \"j: I4 i2 l16\" }\nschedule cpu8 { L = \"j: I16 l8\" }\n"
      "schedule cpu1 { L = \"j: I128\" }\nschedule gpu1 { L = \"j: I4 l32\" }\n";
  run_floats("carried halves", text, NVM_C64, 256, 768);
}
END_TEST

/* Items that go on over a pad: where an access of several would begin in the middle of one, none is as wide. */
START_TEST(items_over_pads) {
  static const char text[] =
      "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 2) {\n    X = load(x, b*128 + r*16 + j, L)\n"
      "    S = scan(add, X, j)\n    store(o, b*128 + r*16 + j, S)\n  }\n}\n"
      "schedule cpu1 { L = \"r: i8; j: i16\" }\n"
      "schedule gpu1 { L = \"j: l2@4 l4@8 I2; r: l4@1 i2\" }\n";
  run_floats("items over pads", text, NVM_F32, 256, 256);
}
END_TEST

/* Lanes that a scanned tile does not use hold copies of it, and of what it carries. */
START_TEST(copies_of_scans) {
  static const char text[] =
      "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 2) {\n    X = load(x, b*64 + j*2, only(L, j))\n"
      "    c0 = load(x, b*64, only(L))\n    S, c1 = scan(add, X, j, carry = c0)\n    T = scan(add, X, j)\n"
      "    Y = load(x, b*64 + r*16 + j, L)\n    d0 = load(x, b*64 + r, only(L, r))\n"
      "    U, d1 = scan(add, Y, j, carry = d0)\n    V = map(fma, S, d1, U)\n    W = map(fma, T, c1, V)\n"
      "    store(o, b*64 + r*16 + j, W)\n  }\n}\n"
      "schedule cpu1 { L = \"r: i4; j: i16\" }\nschedule cpu8 { L = \"r: l4@2; j: I2 i2 l2@1 I2\" }\n"
      "schedule cpu16 { L = \"r: l2@4 i2; j: l4@1 l2@8 I2\" }\n"
      "schedule gpu1 { L = \"r: l4@1; j: l2@4 i2 l2@16 i2\" }\n";
  run_floats("copies of scans", text, NVM_F32, 256, 128);
}
END_TEST

/* What one later run may do again and another may not is kept, and made once. */
START_TEST(kept_for_all) {
  static const char text[] =
      "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 2) {\n    X = load(x, b*64 + r*16 + j, L, where = r <= j)\n"
      "    Y = map(log, X, layout = L)\n    if b < 2 {\n      Z = map(fma, X, X, Y)\n    }\n"
      "    store(o, b*64 + r*16 + j, Y, where = j < 14 - r)\n  }\n}\n"
      "schedule cpu1 { L = \"r: I4; j: I16\" }\nschedule cpu8 { L = \"r: I4; j: I2 l8\" }\n"
      "schedule gpu1 { L = \"j: w4@1 I4; r: I4\" }\nschedule gpu2 { L = \"j: w2@1 I8; r: I4\" }\n"
      "schedule gpu3 { L = \"r: I4; j: I4 l4@1\" }\n";
  run_floats("kept for all", text, NVM_F32, 128, 128);
}
END_TEST

/* Warps of a reduced axis in an odd number, beside those of another axis or copies that these hold; and with others of
   their own that have merged before. */
#define ODD_WARPS \
  "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 1) {\n    X = load(x, j, only(L, j))\n" \
  "    s = reduce(add, X, j, S, init = (-0.0))\n    Y = load(x, r*384 + j, L)\n" \
  "    q = reduce(add, Y, j, S, init = (-0.0))\n    Z = map(fma, Y, s, q)\n    store(o, r*384 + j, Z)\n  }\n}\n"
START_TEST(odd_warps) {
  static const char text[] = ODD_WARPS "schedule cpu16 { L = \"r: I2; j: I3 i8 l16\"; S = order(128, 128) }\n"
                                       "schedule cpu1 { L = \"r: i2; j: I3 I128\"; S = order(128, 128) }\n"
                                       "schedule gpu1 { L = \"r: w2@3; j: w3@1 l32 i4\"; S = order(128, 128) }\n"
                                       "schedule gpu2 { L = \"r: w2@6; j: w3@2 w2@1 l32 i2\"; S = order(128, 128) }\n"
                                       "schedule gpu3 { L = \"r: w2@1; j: w3@2 l32 i4\"; S = order(128, 128) }\n";
  static const char merged[] = ODD_WARPS "schedule cpu16 { L = \"r: I2; j: I3 i2 i4 l16\"; S = order(128, 64) }\n"
                                         "schedule gpu1 { L = \"r: I2; j: w3@2 i2 w2@1 l32\"; S = order(128, 64) }\n"
                                         "schedule gpu2 { L = \"r: w2@6; j: w3@2 i2 w2@1 l32\"; S = order(128, 64) }\n"
                                         "schedule gpu3 { L = \"r: w2@1; j: w3@4 i2 w2@2 l32\"; S = order(128, 64) }\n"
                                         "schedule gpu4 { L = \"r: w2@2; j: w3@4 i2 w2@1 l32\"; S = order(128, 64) }\n";
  static const char lanes[] = /* which differ: each has a slot */
      "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 1) {\n    X = load(x, r*6 + j, L)\n"
      "    s = reduce(add, X, j, S, init = (-0.0))\n    store(o, r, s)\n  }\n}\n"
      "schedule cpu16 { L = \"r: I4 l16; j: I3 I2\"; S = order(2, 1) }\n"
      "schedule gpu1 { L = \"r: w2@3 l32; j: w3@1 i2\"; S = order(2, 1) }\n"
      "schedule gpu2 { L = \"r: w2@1 l32; j: w3@2 i2\"; S = order(2, 1) }\n";
  run_floats("odd warps, lanes beside", lanes, NVM_F32, 384, 64);
  run_floats("odd warps", text, NVM_F32, 768, 768);
  run_floats("odd warps, others merged", merged, NVM_F32, 768, 768);
}
END_TEST

/* Rows that the blocks of a cluster divide, of which the last iteration has a part, half the blocks or none: partial
   results that the blocks send each other, also in several iterations, and states of one byte that they fetch; buffers
   of cross-warp reductions side by side, two partial results a lane. */
START_TEST(clusters) {
  static const char text[] =
      "frag first(a: f32, i: i64, c: f32, k: i64) -> (f32, i64) {\n"
      "  before = (a < c) | ((a == c) & (i < k))\n  return select(before, a, c), select(before, i, k)\n}\n"
      "kernel t(x: f32[], o: mut f32[], n: size) {\n  grid (b = 2) {\n"
      "    X = load(x, b*n + r*n + j, L, where = j < n)\n    J = map(i64, j, layout = L)\n"
      "    m, at = reduce(first, (X, J), j, S, where = j < n, init = (inf, 9223372036854775807))\n"
      "    D = map(subtract, X, m)\n    P = map(f64, D)\n    s = reduce(add, P, j, S, where = j < n, init = (-0.0))\n"
      "    B = map(bool, D)\n    any = reduce(logical_or, B, j, S, where = j < n, init = (0))\n"
      "    T = map(f32, s)\n    U = map(f32, any)\n    V = map(f32, at)\n"
      "    Y = map(fma, D, U, T)\n    Z = map(add, Y, V)\n"
      "    store(o, b*2000 + r*1000 + j, Z, where = j < n)\n  }\n}\n"
      "schedule cpu16 { L = \"r: I2; j: I16 i4 l16\"; S = order(64, 16) }\n"
      "schedule cpu1 { L = \"r: I2; j: I16 I4 I16\"; S = order(64, 16) }\n"
      "schedule gpu1 { L = \"r: w2; j: c3 w5 i4 l16\"; S = order(64, 16) }\n"
      "schedule gpu2 { L = \"r: w2; j: I3 c2 w3 i4 l16\"; S = order(64, 16) }\n"
      "schedule gpu3 { L = \"r: i2; j: w5 c4 i4 w2 l8\"; S = order(64, 16) }\n"
      "schedule gpu4 { L = \"r: w2; j: I5 c3 I4 l16\"; S = order(64, 16) }\n"
      "schedule gpu5 { L = \"r: i2; j: I2 w2 c4 i4 l16\"; S = order(64, 16) }\n"
      "schedule gpu6 { L = \"r: w2; j: c5 w3 i4 w4 l4\"; S = order(64, 16) }\n"
      "schedule gpu7 { L = \"r: i2; j: I3 c5 i4 w4 l4\"; S = order(64, 16) }\n";
  static const char both[] = /* the second axis has fewer blocks than the cluster: the last do its work once more */
      "kernel t(x: f32[], o: mut f32[], n: size) {\n  grid (b = 2) {\n"
      "    X = load(x, b*n + r*n + j, L, where = j < n)\n"
      "    s = reduce(add, X, j, S, where = j < n, init = (-0.0))\n    store(o, b*1000 + r, s)\n"
      "    Y = load(x, b*n + q*n + k, M, where = k < n)\n"
      "    m = reduce(maximum, Y, k, S, where = k < n, init = (-inf))\n"
      "    t = reduce(add, Y, k, S, where = k < n, init = (-0.0))\n    D = map(fma, Y, m, t)\n"
      "    store(o, 2000 + b*2000 + q*n + k, D, where = k < n)\n  }\n}\n"
      "schedule cpu16 { L = \"r: I2; j: I16 i4 l16\"; M = \"q: I2; k: I16 i4 l16\"; S = order(64, 16) }\n"
      "schedule gpu1 { L = \"r: w2; j: c5 w4 i4 l16\"; M = \"q: w2; k: c2 w8 i4 l16\"; S = order(64, 16) }\n"
      "schedule gpu2 { L = \"r: w2; j: c7 w4 i4 l16\"; M = \"q: c2@3; k: c3@1 w8 i4 l16\"; S = order(64, 16) }\n"
      "schedule gpu3 { L = \"r: i2; j: c8 w2 i4 l16\"; M = \"q: i2; k: c3 w8 i4 l16\"; S = order(64, 16) }\n";
  static const int length[] = { 960, 897, 130, 64, 1 };
  float x[3000], o[6000];
  for (int i = 0; i < 3000; i++) x[i] = (float)(i * 37 % 1009) / 16;
  for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
    gate g = { 0 };
    gate_in(&g, NVM_F32, x, 3 * length[i]);
    gate_out(&g, NVM_F32, o, 4000);
    gate_size(&g, length[i]);
    run(&g, "clusters", text);
    gate h = { 0 };
    gate_in(&h, NVM_F32, x, 3 * length[i]);
    gate_out(&h, NVM_F32, o, 6000);
    gate_size(&h, length[i]);
    run(&h, "clusters of two sizes", both);
  }
}
END_TEST

/* What the emitter for GPUs refuses, as it would make something else of it: a scan across warps whose number has no
   bits, for others are odd; boards of a cluster that the next round writes to while other blocks read. */
START_TEST(refused) {
#ifdef GATE_CUDA
  enum { EACH = 1 };
#else
  enum { EACH };
#endif
  static const char *const text[] = {
    "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 1) {\n    X = load(x, r*64 + j, L)\n    S = scan(add, X, j)\n"
    "    store(o, r*64 + j, S)\n  }\n}\nschedule cpu1 { L = \"r: I3; j: i64\" }\n"
    "schedule gpu1 { L = \"r: w3@1; j: w2@3 l2 i16\" }\n",
    "kernel t(x: f32[], o: mut f32[]) {\n  grid (b = 1) {\n    X = load(x, r*256 + j, L)\n"
    "    q = reduce(add, X, j, S, init = (-0.0))\n    Y = map(add, X, q)\n    store(o, r*256 + j, Y)\n  }\n}\n"
    "schedule cpu1 { L = \"r: I2; j: I2 i8 I16\"; S = order(128, 128) }\n"
    "schedule gpu1 { L = \"r: I2; j: c2 l32 i4\"; S = order(128, 128) }\n"
  };
  for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
    int n = 0;
    run_refusing(&n, "refused", text[i], NVM_F32, i ? 512 : 192, i ? 512 : 192);
    ck_assert_int_eq(n, EACH);
  }
}
END_TEST

/* Pairs in more lanes than a vector of the widest kind has; where masks are words, more than bits of one. */
START_TEST(wide_pairs) {
  static const char text[] =
      "kernel t(x: c64[], o: mut f32[], n: size) {\n  grid (b = 1) {\n"
      "    re, im = load(x, j, L, where = j < n, other = 7)\n    store(o, 2*j, re)\n    store(o, 2*j + 1, im)\n  }\n}\n"
      "schedule cpu64 { L = \"j: i2 l64\" }\nschedule cpu32 { L = \"j: I4 l32\" }\nschedule cpu1 { L = \"j: I128\" }\n";
  static const char *const isa[] = { "native", "128" };
  for (size_t w = 0; w < sizeof isa / sizeof *isa; w++) {
    float x[2 * 128], o[2 * 128];
    gate g = { 0 };
    for (int i = 0; i < 256; i++) x[i] = (float)i;
    gate_in(&g, NVM_C64, x, 128);
    gate_out(&g, NVM_F32, o, 256);
    gate_size(&g, 99);
    ck_assert_int_eq(nvb_set("isa", isa[w]), NVM_OK);
    run(&g, "wide pairs", text);
  }
  nvb_set("isa", NULL);
}
END_TEST

#ifdef GATE_CUDA
int main(void) {
  (void)through_memory, (void)stores_under_another_name; /* no thread of a GPU waits for what another one stores */
  (void)wide_pairs;
  return gate_emulator() ? RUN_SUITE("cuda order", slow_paths, late_results, pointers, empty_rows, loads_before_loops,
                                     orders, behind_scans, scans_that_are_carried, carried_halves, items_over_pads,
                                     copies_of_scans, kept_for_all, odd_warps, clusters, refused)
                         : 77;
}
#else
SUITE("order", slow_paths, late_results, pointers, empty_rows, through_memory, loads_before_loops,
      stores_under_another_name, orders, behind_scans, scans_that_are_carried, carried_halves, items_over_pads,
      copies_of_scans, kept_for_all, odd_warps, clusters, refused, wide_pairs)
#endif
