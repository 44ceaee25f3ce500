/* Kernel text both ways, what the checker refuses and why, and that no text crashes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../arena.h"
#include "../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "kernel/kernel.h"

static char *read_text(const char *dir, const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *s = calloc(1, 1 << 18);
  size_t n = fread(s, 1, (1 << 18) - 1, f);
  s[n] = 0;
  fclose(f);
  return s;
}

enum { MAX_TEXTS = 64 };
static char *texts[MAX_TEXTS], *names[MAX_TEXTS];
static int ntexts;

static void read_all(void) {
  const char *dir = "tests/kernel/texts";
  DIR *d = opendir(dir);
  if (!d) d = opendir(dir = "../tests/kernel/texts");
  if (!d) d = opendir(dir = "../../tests/kernel/texts");
  ck_assert_msg(d != NULL, "run this in the root of the source");
  for (struct dirent *e; (e = readdir(d)) && ntexts < MAX_TEXTS;)
    if (strstr(e->d_name, ".kir")) {
      names[ntexts] = strdup(e->d_name);
      texts[ntexts++] = read_text(dir, e->d_name);
    }
  closedir(d);
  ck_assert_int_ge(ntexts, 9);
}

/* ---- print and parse */
static char *print_all(nvb_arena *a, nvf_kernel *k) {
  nvb_text t = { .arena = a };
  nvf_kernel_print(&t, k);
  for (int i = 0; i < k->nsched; i++) nvf_schedule_print(&t, k, k->sched[i], k->sched_name[i]);
  return t.s;
}

static void round_trip(nvb_arena *a, void *text) {
  nvf_kernel *k = nvf_kernel_parse(a, text, "text");
  char *once = print_all(a, k);
  nvf_kernel *k2 = nvf_kernel_parse(a, once, "printed");
  char *twice = print_all(a, k2);
  ck_assert_str_eq(once, twice);
  ck_assert_int_eq(k->nsched, k2->nsched);
  for (int i = 0; i < k->nsched; i++) {
    ck_assert(nvb_hash_eq(nvf_kernel_hash(k, k->sched[i]), nvf_kernel_hash(k2, k2->sched[i])));
    for (int j = 0; j < i; j++)
      ck_assert(!nvb_hash_eq(nvf_kernel_hash(k, k->sched[i]), nvf_kernel_hash(k, k->sched[j])));
    nvf_kernel_check(a, k, k->sched[i]);
    nvf_kernel_check(a, k2, k2->sched[i]);
  }
}

/* Bounds of a size are part of the text, and so of what distinguishes two kernels. */
static void bounds(nvb_arena *a, void *arg) {
  static char *const text[] = { "kernel k(n: size) {\n  grid (b = n) {\n  }\n}\n",
                                "kernel k(n: size(25, 32)) {\n  grid (b = n) {\n  }\n}\n",
                                "kernel k(n: size(25, 31)) {\n  grid (b = n) {\n  }\n}\n" };
  nvb_hash hash[3];
  (void)arg;
  for (int i = 0; i < 3; i++) {
    nvf_kernel *k = nvf_kernel_parse(a, text[i], "text");
    ck_assert_str_eq(print_all(a, k), text[i]);
    hash[i] = nvf_kernel_hash(k, nvf_schedule_new(k));
    for (int j = 0; j < i; j++) ck_assert(!nvb_hash_eq(hash[i], hash[j]));
  }
}
START_TEST(bounds_of_sizes) {
  nvb_arena *a = nvb_arena_new();
  ck_assert_msg(nvb_protect(a, bounds, NULL) == NVM_OK, "%s", nvb_message());
  nvb_arena_free(a);
}
END_TEST

START_TEST(texts_round_trip) {
  read_all();
  for (int i = 0; i < ntexts; i++) {
    nvb_arena *a = nvb_arena_new();
    ck_assert_msg(nvb_protect(a, round_trip, texts[i]) == NVM_OK, "%s: %s", names[i], nvb_message());
    nvb_arena_free(a);
  }
}
END_TEST

/* ---- refusals: a body (or a whole text) and a piece of the message */
static const char head[] = "frag two(a: f32, b: f32) -> (f32, f32) { return a, b }\n"
                           "frag left(a: f32, b: f32) -> f32 { return a + b * 0.5 }\n"
                           "kernel k(x: f32[], y: mut f32[], i: i64[], z: mut c64[], w: mut i64[], n: size, s: f32) {\n"
                           "grid () { all = index(r + j + t + k, A) }\n grid (b = n) {\n";
static const char tail[] = "\n} }\nschedule c { A = \"r: i1; j: i1; t: i1; k: i1\"; L = \"j: i4 l16\"; M = \"r: i2; "
                           "j: i4 l16\"; N = \"j: l16 i4\"; F = \"t: i8; j: l16\"; H = \"t: I2 i4; j: l16\"\n"
                           "  O = \"j: i3\"; P = \"j: i2 i3\"; G = \"j: l3 i4\"; B = 64; D = 0; S = order(1024, 16); "
                           "Z = order(64, 1); U = order(32, 2); V = \"j: l4 i16\"; W = \"j: l8 l8@4\"; "
                           "K = \"k: i4\"; Y = \"j: i2 I2 l16\"; R = order(64, 16); E = \"j: i4 l16; r: i2\" }";
static const struct {
  const char *body, *says;
} wrong[] = {
  { "X = load(x, j, L) Y = load(x, j, N) Z = map(add, X, Y)", "needs a relayout" },
  { "X = load(x, j, L) Y = load(x, r*64 + j, M) m = reduce(maximum, Y, j, S, init = (-inf)) X2 = map(add, X, m)",
    "needs a relayout" },
  { "X = load(x, r*64 + j, M) Y = load(x, r*64 + j, E) U, T = relayout(X, Y, M)", "one layout" },
  { "X = load(x, r*64 + j, M) Y = load(x, r*64 + j, E) store(z, r*64 + j, X, Y)", "needs a relayout" },
  { "X = load(x, q, L)", "no axis q" },
  { "X = load(x, j, L) store(y, b, X)", "would be stored to one place" },
  { "X = load(x, j, L) store(y, r*64 + j, X)", "no axis r" },
  { "X = load(x, j, L) store(x, j, X)", "not marked mut" },
  { "X = load(i, j, L) store(y, j, X)", "is i64, the buffer f32" },
  { "X = load(x, j, P) m = reduce(add, X, j, S, init = (-0.0))", "powers of two" },
  { "X = load(x, j, G) m = reduce(add, X, j, S, init = (-0.0))", "none of lanes" },
  { "X = load(x, j, L) m = reduce(add, X, j, Z, init = (-0.0))", "it must be items or a loop" },
  { "X = load(x, j, V) m = reduce(add, X, j, U, init = (-0.0))", "crosses a border" },
  { "X = load(x, j, N) m = reduce(add, X, j, U, init = (-0.0))", "crosses a border" },
  { "X = load(x, j, Y) m = reduce(add, X, j, R, init = (-0.0))", "must lie above items" },
  { "X = load(x, j, L) m = reduce(left, X, j, S, init = (0))", "not commutative" },
  { "X = load(x, j, L) m = reduce(add, X, j, S, init = (0.0))", "not the identity" },
  { "X = load(x, j, L) m = reduce(maximum, X, j, S, init = (-3.0e38))", "not the identity" },
  { "X = load(x, j, L) m = reduce(add, X, j, S, where = j < n)", "needs init" },
  { "X = load(x, j, L) m = reduce(add, X, j, S)", "a reduction needs init" },
  { "X = load(x, j, L) m = reduce(add, X, j, Q, init = (-0.0))", "gives no order 'Q'" },
  { "X = load(x, j, Q)", "gives no layout 'Q'" },
  { "X = load(x, j*Q, L)", "gives no constant 'Q'" },
  { "X = load(x, j, only(L, r))", "has no axis r" },
  { "X = load(x, j, W)", "share lanes" },
  { "X = load(x, j, L) X = load(x, j, L)", "assigned already" },
  { "X = load(x, j, L) Y = map(add, X, Z)", "there is no tile 'Z'" },
  { "X = load(x, j, L) Y = map(add, X, y)", "cannot be an operand" },
  { "X = load(x, j, L) Y = map(add, X, 1.5, X)", "add" },
  { "X = load(x, j, L) Y = map(two, X, X)", "makes 2 tiles, not 1" },
  { "X, Y = load(x, j, L)", "makes 1 tile, not 2" },
  { "X = load(z, j, L)", "makes 2 tiles, not 1" },
  { "X = load(x, j, L) store(z, j, X)", "',' is missing" },
  { "Y = map(add, 1.5, 2.5, layout = L)", "needs a dtype" },
  { "Y = map(add, f32(1.5), f32(2.5))", "needs a layout" },
  { "X = load(x, j, L) P = put(X, [j]) Y = map(exp, P)", "get it first" },
  { "X = load(x, j, L) Y = get(X, N)", "put it first" },
  { "X = load(x, j, L) P = put(X, [r])", "no axis r" },
  { "X = load(x, j, L) Y = relayout(X, M)", "extent" },
  { "X = load(x, t*16 + j, H) Y = load(x, t*16 + j, H) a, c = dft(X, Y, t, 1)", "must be all items" },
  { "X = load(x, t*16 + j, F) Y = load(x, t*16 + j, F) a, c = dft(X, Y, t, 2)", "sign is 1 or -1" },
  { "X = index(t, F) Y = map(f32, X) a, c = dft(Y, Y, t, 1, Y, Y)", "needs a relayout" },
  { "X = index(t, F) Y = map(f32, X) a, c = dft(Y, Y, t, 1, Y)", "two for each power of a twist" },
  { "X = index(t, F) Y = map(f32, X) a, c = dft(Y, t, 1, Y, Y)", "')' is missing" },
  { "X = zeros(f32, F) Y = zeros(f32, M) a, c = dft(X, X, t, 1, Y, Y, Y, Y, Y, Y, Y, Y)", "has no such twist" },
  { "X = load(x, j, L) Y = load(x, k, K) a = zeros(f32, L) c = contract(a, X, Y, k)", "put it first" },
  { "a = zeros(f32, L) for t in range(0, n, 1) carry (c = a) { c = load(x, j, N) }", "must keep its layout" },
  { "a = zeros(f32, L) for t in range(0, n, 1) carry (c = a) { d = map(add, a, c) }", "has no value here" },
  { "a = zeros(f32, L) for t in range(0, n, 1) carry (c = a, d = c) { d = map(add, d, d) }", "has no value here" },
  { "for t in range(0, n, 1) { a = zeros(f32, L) } store(y, j, a)", "there is no tile 'a' here" },
  { "for t in range(0, n, 0) { }", "must be positive" },
  { "for t in range(0, j, 1) { }", "the same in the whole block" },
  { "if j < n { }", "the same in the whole block" },
  { "X = load(x, j // 0, L)", "divisor must be positive" },
  { "X = load(x, j % D, L)", "divisor must be positive" },
  { "for t in range(0, n, D) { }", "must be positive" },
  { "for t in range(0, n, 0 - B) { }", "must be positive" },
  { "for t in range(0, n, B - B) { }", "must be positive" },
  { "for t in range(0, 8, n) { }", "text or the schedule gives" },
  { "for t in range(0, 8, 1 + b) { }", "text or the schedule gives" },
  { "for t in range(0, n, Q) { }", "gives no constant 'Q'" },
  { "X = load(x, j // (D - B), L)", "divisor must be positive" },
  { "X = load(x, s, L)", "is no size" },
  { "X = load(x, j, L) store(y, X, X)", "is no integer" },
  { "X = load(x, j, L, where = X)", "a bool tile" },
  { "X = load(x, j, L) atomic_max(y, j, X)", "for integers" },
  { "X = load(x, j, L) Y = scan(add, X, j) store(y, j, Y) Z = scan(add, X, j, carry = X)", "makes 2 tiles" },
  { "X = load(x, j, V) P = load(x, j, N) Y = scan(add, P, j) Z = scan(add, X, j, where = j < n)", "needs init" },
  { "X = nothing(x)", "no operation 'nothing'" },
  { "X = load(x, 99999999999999999999, L)", "too large" },
  { "X = load(x, j, L, other = 1, other = 2)", "given twice" },
  { "X = load(i, j, L, other = 1.5)", "not an integer" },
  { "X = load(i, j, L, other = 9223372036854775808)", "does not fit" },
  { "X = load(x, j, L", "is missing" },
  { "\"", "not closed" },
};

static void check_text(nvb_arena *a, void *text) {
  nvf_kernel *k = nvf_kernel_parse(a, text, "text");
  for (int i = 0; i < k->nsched; i++) nvf_kernel_check(a, k, k->sched[i]);
}

static void refuse(const char *text, const char *says) {
  nvb_arena *a = nvb_arena_new();
  int status = nvb_protect(a, check_text, (void *)(uintptr_t)text);
  ck_assert_msg(status != NVM_OK, "accepted, should say '%s': %s", says, text);
  ck_assert_msg(strstr(nvb_message(), says) != NULL, "'%s' does not say '%s': %s", nvb_message(), says, text);
  nvb_arena_free(a);
}

START_TEST(refusals) {
  char text[8192];
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    snprintf(text, sizeof text, "%s%s%s", head, wrong[i].body, tail);
    refuse(text, wrong[i].says);
  }
  refuse("", "no kernel");
  refuse("kernel a() { } schedule s { }", "no grid");
  refuse("kernel a(x: f32) { grid () { } } kernel b() { }", "one kernel");
  refuse("schedule s { } kernel b() { }", "behind its kernel");
  refuse("kernel a(x: f32, x: f32) { }", "is a parameter already");
  refuse("kernel a(n: size(4, 3)) { }", "no size is within");
  refuse("kernel a(n: size(0, 0)) { }", "no size is within");
  refuse("kernel a(w: roots(f32, 8, 1, 8)) { }", "roots of unity are complex");
  refuse("kernel a(w: roots(c64, 8, 2, 8)) { }", "the sign is 1 or -1");
  refuse("kernel a(w: roots(c64, 8, -1, 9)) { }", "a table has 1 to");
  refuse("kernel a(w: roots(c64, 8, -1, 0)) { }", "a table has 1 to");
  refuse("kernel a(w: roots(c64, 8, 1, 8)) { grid () { A = index(i, L) B = map(add, w, w) } }", "cannot be an operand");
  refuse("kernel a(w: roots(c64, 8, 1, 8)) { grid () { A, B = load(w, i, L) store(w, i, A, B) } }\n"
         "schedule s { L = \"i: l8\" }",
         "is not marked mut");
  refuse("kernel a() { grid () { } } schedule s { S = order(16, 32) }", "powers of two");
  refuse("kernel a() { grid () { } } schedule s { L = \"j: i4\" }", "no such axis");
  refuse("kernel a() { grid () { } } schedule s { hint 3 nt = 1 }", "no statement 3");
  refuse("kernel a() { grid () { A = index(i + j + k, L) } } schedule s { L = \"i: l1000000; j: l1000000; k: l2\" }",
         "too many elements");
}
END_TEST

/* ---- a kernel by which the rows of hints.def and statements.def are tried */
static const char hinted[] = "kernel a(x: f32[], y: mut f32[], o: mut i64[]) { grid () {\n"
                             "A = load(x, m*16 + k, L)\nB = load(x, n*16 + k, N)\nP = put(A, [m, k])\n"
                             "Q = put(B, [n, k])\nZ = zeros(f32, M)\n"
                             "for t in range(0, 1, 1) carry (c = Z) { c = contract(c, P, Q, k) }\nE = map(exp, Z)\n"
                             "store(y, m*16 + n, E)\nG = get(P, L)\nI = index(m, L)\nT = test(m < 2, L)\ncheck(T)\n"
                             "if 0 < 1 { }\natomic_max(o, 0, I) } }\n"
                             "schedule s { L = \"m: i4; k: l16\"; N = \"n: i16; k: l16\"; M = \"m: i4; n: l16\"; %s }";

static nvf_kernel *hinted_kernel(nvb_arena *a) {
  char text[1024];
  snprintf(text, sizeof text, hinted, "");
  return nvf_kernel_parse(a, text, "text");
}

static int may_have(const nvf_stmt *s, const nvf_hint_row *h) {
  return h->of & NVF_FIRST ? s->id == 0 : h->of >> s->op & 1;
}

static int try_hint(nvb_arena *a, int stmt, const char *word, long long value) {
  char text[1024], hint[128];
  snprintf(hint, sizeof hint, "hint %d %s = %s%lld", stmt, word, value < 0 ? "-" : "", value < 0 ? -value : value);
  snprintf(text, sizeof text, hinted, hint);
  return nvb_protect(a, check_text, text);
}

static void says(const char *a, const char *b, const char *c) {
  const char *all[] = { a, b, c };
  for (int i = 0; i < 3; i++)
    ck_assert_msg(strstr(nvb_message(), all[i]) != NULL, "'%s' does not say '%s'", nvb_message(), all[i]);
}

static void hold_hint(nvb_arena *a, const nvf_stmt *s, nvf_hint hint) {
  const nvf_hint_row *h = nvf_hint_get(hint);
  char at[32], values[32];
  snprintf(at, sizeof at, "statement %d (%s)", s->id, nvf_op_name(s->op));
  int status = try_hint(a, s->id, h->word, h->least);
  if (!may_have(s, h)) {
    ck_assert_int_eq(status, NVM_ERR_VALUE);
    says(at, h->word, "this statement may have ");
    return;
  }
  ck_assert_msg(!status && !try_hint(a, s->id, h->word, h->most), "%s: %s", h->word, nvb_message());
  for (int64_t wrong = h->least - 1; wrong <= h->most + 1; wrong += h->most - h->least + 2) {
    ck_assert_int_eq(try_hint(a, s->id, h->word, wrong), NVM_ERR_VALUE);
    snprintf(values, sizeof values, ", not %lld", (long long)wrong);
    says(at, h->word, values);
  }
  if (h->powers) ck_assert_int_eq(try_hint(a, s->id, h->word, 3), NVM_ERR_VALUE);
}

/* Each word with a letter missing, changed or doubled: the message names the word. */
static void misspell(nvb_arena *a, const nvf_stmt *s, const char *word) {
  char wrong[64], near[80];
  snprintf(near, sizeof near, "nearest is '%s'", word);
  for (int i = 0; word[i]; i++) {
    const char *instead[] = { "", "q", (char[]){ word[i], word[i], 0 } };
    for (int way = strlen(word) > 2 ? 0 : 2; way < 3; way++) { /* one letter of two says nothing */
      snprintf(wrong, sizeof wrong, "%.*s%s%s", i, word, instead[way], word + i + 1);
      ck_assert_int_eq(try_hint(a, s->id, wrong, 1), NVM_ERR_VALUE);
      says("text:16:", near, nvf_op_name(s->op));
    }
  }
}

START_TEST(hints_belong_to_statements) {
  nvb_arena *a = nvb_arena_new();
  nvf_kernel *k = hinted_kernel(a);
  for (int h = 0; h < NVF_NHINTS; h++) {
    int held = 0;
    for (int i = 0; i < k->nstmt; i++) {
      hold_hint(a, k->stmt[i], (nvf_hint)h);
      if (!may_have(k->stmt[i], nvf_hint_get((nvf_hint)h))) continue;
      if (!held++) misspell(a, k->stmt[i], nvf_hint_get((nvf_hint)h)->word);
    }
    ck_assert_msg(held, "no statement of the test's kernel may have %s", nvf_hint_get((nvf_hint)h)->word);
  }
  ck_assert_int_eq(try_hint(a, 0, "vec = 2; hint 0 vec", 4), NVM_ERR_VALUE);
  says("statement 0 (load)", "vec", "given twice");
  ck_assert_int_eq(try_hint(a, 8, "xyz", 4), NVM_ERR_VALUE);
  says("statement 8 (store)", "no hint 'xyz'", "");
  ck_assert(strstr(nvb_message(), "nearest") == NULL);
  nvb_arena_free(a);
}
END_TEST

static void check_hinted(nvb_arena *a, void *k) { nvf_kernel_check(a, k, ((nvf_kernel *)k)->sched[0]); }

/* One operand or result more than a row of statements.def has letters */
static void add_tile(nvb_arena *a, int stmt, int result) {
  char says[64];
  nvf_kernel *k = hinted_kernel(a);
  nvf_stmt *s = k->stmt[stmt];
  const nvf_op_row *row = nvf_op_get(s->op);
  if (strchr(result ? row->results : row->operands, '+')) return;
  int *n = result ? &s->nout : &s->nin, **tiles = result ? &s->out : &s->in, *more = NVB_NEWN(a, int, *n + 1);
  for (int i = 0; i < *n; i++) more[i] = (*tiles)[i];
  *tiles = more;
  ++*n;
  snprintf(says, sizeof says, "(%s): %d operands and %d results", row->word, s->nin, s->nout);
  ck_assert_msg(nvb_protect(a, check_hinted, k) == NVM_ERR_VALUE && strstr(nvb_message(), says),
                "'%s' does not say '%s'", nvb_message(), says);
}

START_TEST(statements_take_the_tiles_of_their_rows) {
  nvb_arena *a = nvb_arena_new();
  for (int i = 0, n = hinted_kernel(a)->nstmt; i < n; i++) {
    add_tile(a, i, 0);
    add_tile(a, i, 1);
  }
  nvb_arena_free(a);
}
END_TEST

START_TEST(messages_have_places) {
  nvb_arena *a = nvb_arena_new();
  ck_assert(nvb_protect(a, check_text,
                        (void *)(uintptr_t)"kernel a(x: f32[]) {\n  grid () {\n    X = lod(x, j, L)\n  }\n}") ==
            NVM_ERR_VALUE);
  ck_assert_msg(strncmp(nvb_message(), "text:3:9: ", 10) == 0, "%s", nvb_message());
  nvb_arena_free(a);
}
END_TEST

/* ---- building by hand */
static void build(nvb_arena *a, void *arg) {
  (void)arg;
  nvf_kernel *k = nvf_kernel_new(a, "copy");
  int n = nvf_add_param(k, NVF_SIZE, NVM_I64, "n"), x = nvf_add_param(k, NVF_BUFFER, NVM_F64, "x"),
      y = nvf_add_param(k, NVF_BUFFER, NVM_F64, "x");
  int j = nvf_add_axis(k, "J"), L = nvf_add_name(k, "L"), B = nvf_add_name(k, "B");
  ck_assert_str_eq(k->axis[j], "j");
  ck_assert_str_eq(k->param[y].name, "x_1");
  ck_assert_int_eq(nvf_add_name(k, "L"), L);
  k->param[y].written = 1;
  nvf_part *p = nvf_add_part(k);
  const nvf_expr *size = nvf_x(k, NVF_PARAM, n, 0), *block = nvf_x(k, NVF_NAME, B, 0), *one = nvf_x(k, NVF_CONST, 0, 1);
  int g = nvf_add_grid(k, p, "b", nvf_x2(k, NVF_DIV, nvf_x2(k, NVF_SUB, nvf_x2(k, NVF_ADD, size, block), one), block));
  const nvf_expr *at =
      nvf_x2(k, NVF_ADD, nvf_x2(k, NVF_MUL, nvf_x(k, NVF_GRID, g, 0), block), nvf_x(k, NVF_AXIS, j, 0));
  nvf_stmt *s = nvf_add_stmt(k, &p->body, NVF_LOAD);
  int t = nvf_add_tile(k, NVM_F64, "x");
  nvf_set(k, s, 1, &t, 0, NULL);
  s->buf = x;
  s->map = at;
  s->layout = L;
  s->where = nvf_and_rel(k, NULL, NVF_LT, at, size);
  nvf_stmt *o = nvf_add_stmt(k, &p->body, NVF_STORE);
  nvf_set(k, o, 0, NULL, 1, &t);
  o->buf = y;
  o->map = at;
  o->where = s->where;
  nvf_schedule *c = nvf_schedule_new(k);
  nvf_bind_name(k, c, B)->kind = NVF_BINT;
  nvf_bind_name(k, c, B)->value = 64;
  nvf_bind_name(k, c, L)->kind = NVF_BLAYOUT;
  nvf_layout_parse(k, &nvf_bind_name(k, c, L)->layout, "j: i4 l16");
  nvf_add_hint(k, c, 1, NVF_HINT_NT, 1);
  nvf_typed *typed = nvf_kernel_check(a, k, c);
  ck_assert_int_eq(nvf_extent(&typed->tile[t], j), 64);
  uint64_t args[3] = { 129 };
  ck_assert_int_eq(nvf_blocks(k, c, args), 3);
  nvb_text text = { .arena = a };
  nvf_kernel_print(&text, k);
  nvf_schedule_print(&text, k, c, "c");
  nvf_kernel *k2 = nvf_kernel_parse(a, text.s, "printed");
  nvf_schedule *c2 = nvf_schedule_find(k2, "c");
  ck_assert(nvb_hash_eq(nvf_kernel_hash(k, c), nvf_kernel_hash(k2, c2)));
  ck_assert(nvf_schedule_find(k2, "d") == NULL);
}

START_TEST(building) { in_arena(build, NULL, NULL); }
END_TEST

static void fold(nvb_arena *a, void *arg) {
  (void)arg;
  nvf_kernel *k = nvf_kernel_new(a, "fold");
  const nvf_expr *m7 = nvf_x(k, NVF_CONST, 0, -7), *two = nvf_x(k, NVF_CONST, 0, 2), *zero = nvf_x(k, NVF_CONST, 0, 0);
  const nvf_expr *x = nvf_x(k, NVF_AXIS, nvf_add_axis(k, "j"), 0);
  ck_assert_int_eq(nvf_x2(k, NVF_DIV, m7, two)->value, -4);
  ck_assert_int_eq(nvf_x2(k, NVF_MOD, m7, two)->value, 1);
  ck_assert_ptr_eq(nvf_x2(k, NVF_ADD, x, zero), x);
  ck_assert_int_eq(nvf_x2(k, NVF_MUL, x, zero)->value, 0);
  ck_assert_int_eq(nvf_x2(k, NVF_DIV, two, zero)->kind, NVF_DIV);
}

START_TEST(folding) { in_arena(fold, NULL, NULL); }
END_TEST

/* ---- layouts */
static void layouts(nvb_arena *a, void *arg) {
  (void)arg;
  nvf_kernel *k = nvf_kernel_new(a, "l");
  int r = nvf_add_axis(k, "r"), j = nvf_add_axis(k, "j");
  nvf_layout l, m;
  nvf_layout_parse(k, &l, "r: l2; j: I8 l4 i2 l4");
  ck_assert_int_eq(nvf_extent(&l, j), 256);
  ck_assert_int_eq(nvf_extent(&l, 7), 1);
  ck_assert_int_eq(l.d[0].pstride, 16);
  ck_assert_int_eq(l.d[2].pstride, 4);
  ck_assert_int_eq(l.d[2].stride, 8);
  m = nvf_layout_only(&l, &r, 1);
  ck_assert(nvf_layout_within(&m, &l) && !nvf_layout_within(&l, &m) && !nvf_layout_eq(&l, &m));
  m = nvf_layout_without(&l, r);
  ck_assert_int_eq(m.n, 4);
  nvb_text t = { .arena = a };
  nvf_layout_print(&t, k, &l);
  ck_assert_str_eq(t.s, "r: l2; j: I8 l4 i2 l4");
  nvf_layout_parse(k, &l, "r: l2@1; j: l4@2");
  t = (nvb_text){ .arena = a };
  nvf_layout_print(&t, k, &l);
  ck_assert_str_eq(t.s, "r: l2@1; j: l4@2");
  int axes[24];
  ck_assert_int_eq(nvf_layout_axes(&l, axes), 2);
  ck_assert_int_eq(axes[1], j);
}

START_TEST(layout_text) { in_arena(layouts, NULL, NULL); }
END_TEST

/* ---- no text crashes: random edits parse, or say where they are wrong; what parses prints and parses again */
static void parse_and_print(nvb_arena *a, void *text) {
  nvf_kernel *k = nvf_kernel_parse(a, text, "text");
  char *once = print_all(a, k);
  nvf_kernel *k2 = nvf_kernel_parse(a, once, "printed");
  ck_assert_str_eq(once, print_all(a, k2));
}

static uint32_t seed = 7;
static uint32_t next(uint32_t n) {
  seed = seed * 1664525 + 1013904223;
  return (seed >> 8) % n;
}

START_TEST(edits) {
  static const char spice[] = "(){}[]<>,;:=+-*/%&!\"@#.0123456789abijlwLRSX_ \n";
  read_all();
  int parsed = 0, checked = 0;
  for (int round = 0; round < 3000; round++) {
    const char *from = texts[round % ntexts];
    size_t n = strlen(from);
    char *s = calloc(1, n + 64);
    memcpy(s, from, n);
    for (uint32_t edits = 1 + next(3); edits; edits--) {
      size_t at = next((uint32_t)n);
      uint32_t len = 1 + next(12);
      switch (next(4)) {
      case 0: s[at] = spice[next(sizeof spice - 1)]; break;
      case 1: s[at] = (char)(1 + next(255)); break;
      case 2: if (at + len < n) { memmove(s + at, s + at + len, n - at - len + 1); n -= len; } break;
      default: if (at + 2 * len < n) memmove(s + at, s + at + len, len);
      }
    }
    nvb_arena *a = nvb_arena_new();
    int status = nvb_protect(a, parse_and_print, s);
    ck_assert_msg(status == NVM_OK || status == NVM_ERR_VALUE || status == NVM_ERR_TYPE, "%d: %s\n%s", status,
                  nvb_message(), s);
    if (status == NVM_OK) {
      parsed++;
      status = nvb_protect(a, check_text, s);
      ck_assert_msg(status == NVM_OK || status == NVM_ERR_VALUE, "%d: %s\n%s", status, nvb_message(), s);
      checked += status == NVM_OK;
    }
    nvb_arena_free(a);
    free(s);
  }
  ck_assert_int_gt(parsed, 100);
  ck_assert_int_gt(checked, 50);
}
END_TEST

START_TEST(deep_nesting_is_refused) {
  char *s = calloc(1, 400000);
  strcpy(s, "kernel a(x: f32[]) { grid () { X = load(x, ");
  memset(s + strlen(s), '(', 100000);
  refuse(s, "nested too deeply");
  memset(s, 0, 400000);
  strcpy(s, "kernel a(x: f32[]) { grid () { X = load(x, j");
  for (char *p = s + strlen(s), *end = p + 100000; p < end; p += 2) memcpy(p, "+j", 2);
  refuse(s, "too long");
  free(s);
}
END_TEST

/* The n-th request for memory fails, for every n: a status, never a crash or a wrong kernel. */
START_TEST(lack_of_memory) {
  read_all();
  int failed = 0;
  for (int i = 0; i < ntexts; i++)
    for (int n = 1, done = 0; !done; n++) {
      nvb_arena *a = nvb_arena_new();
      ck_assert(a != NULL);
      nvb_fail_alloc(n, 0);
      int status = nvb_protect(a, round_trip, texts[i]);
      nvb_fail_alloc(0, 0);
      ck_assert_msg(status == NVM_OK || status == NVM_ERR_MEMORY, "%s, request %d: %d %s", names[i], n, status,
                    nvb_message());
      failed += status != NVM_OK;
      done = status == NVM_OK;
      nvb_arena_free(a);
    }
  ck_assert_int_gt(failed, 10);
}
END_TEST

/* A name is found as soon among many as among few. */
static double seconds_for(nvb_arena *a, int n) {
  nvb_text t = { .arena = a };
  nvb_puts(&t, "kernel k(x: f32[], n: size) { grid (b = n // T) {\n t0 = load(x, b*T + i, L)\n");
  for (int i = 1; i < n; i++) nvb_print(&t, " t%d = map(add, t%d, t0)\n", i, i - 1);
  nvb_puts(&t, "} }");
  clock_t start = clock();
  ck_assert_int_eq(nvf_kernel_parse(a, nvb_text_get(&t), "text")->ntile, n);
  return (double)(clock() - start) / CLOCKS_PER_SEC;
}

static void long_texts(nvb_arena *a, void *arg) {
  (void)arg;
  double few = seconds_for(a, 4000), many = seconds_for(a, 32000);
  ck_assert_msg(many < 30 * few, "4,000 statements %g s, 32,000 %g s", few, many);
}
START_TEST(long_texts_are_read_in_proportion) { in_arena(long_texts, NULL, NULL); }
END_TEST

SUITE("kernel", lack_of_memory, texts_round_trip, bounds_of_sizes, refusals, messages_have_places, building, folding,
      layout_text, edits, hints_belong_to_statements, statements_take_the_tiles_of_their_rows, deep_nesting_is_refused,
      long_texts_are_read_in_proportion)
