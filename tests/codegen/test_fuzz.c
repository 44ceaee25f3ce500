/* Random kernel texts: what a seed gives is interpreted and compiled under several schedules, all with the same bits
   (gate.h). A text that fails is shrunk, line by line, and printed with its seed. Without arguments the seeds from 1
   on; "test_codegen_fuzz FIRST COUNT" takes others. The checker decides which texts and schedules may be: what is
   made here is only likely to be accepted. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include "../suite.h"
_Noreturn static __attribute__((format(printf, 1, 2))) void fault(const char *fmt, ...);
#undef ck_assert_msg
#define ck_assert_msg(holds, ...) ((holds) ? (void)0 : fault(__VA_ARGS__))
#include "gate.h"

enum { LINES = 96, LINE = 280, TILES = 64, AXIS_R = 1, AXIS_J = 2, BOTH = 3, BLOCKS = 3, BATCH = 10 };
enum { IN = 4096, OUT = 1 << 16 }; /* elements of the buffers */
enum { OVER = 1024 };              /* of a block, in the one that has two names */
#ifdef GATE_CUDA
enum { BATCHES = 2 }; /* g++ compiles each schedule of their texts */
#else
enum { BATCHES = SHARE_OF(8) };
#endif

/* ---- numbers */
static uint64_t state;
static int below(int n) { /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return (int)((z ^ z >> 31) % (uint64_t)n);
}
static int chance(int percent) { return below(100) < percent; }
#define PICK(list) ((list)[below((int)(sizeof(list) / sizeof *(list)))])

/* ---- a text while it is made. Tiles lie in layout L, in M (the digits of L, axes in the other order) or in Q. */
typedef struct tile {
  char name[8], type; /* f d i b: f32 f64 i32 bool */
  int axes, layout, hidden, carried;
} tile;
typedef struct text { int n; char line[LINES][LINE]; } text;
typedef struct maker {
  text t;
  int ntile, names, depth, used, part; /* used: elements of the outputs */
  tile tile[TILES];
  int r, j, c, w; /* extents; the reduction order */
  char var[2];    /* of the loops that are open */
  int64_t n, rows;
} maker;

static __attribute__((format(printf, 2, 3))) void line(maker *m, const char *fmt, ...) {
  va_list ap;
  if (m->t.n == LINES) return;
  va_start(ap, fmt);
  int at = snprintf(m->t.line[m->t.n], LINE, "%*s", 4 + 2 * m->depth, "");
  vsnprintf(m->t.line[m->t.n++] + at, (size_t)(LINE - at), fmt, ap);
  va_end(ap);
}

/* Text that lives until some twenty others are made. */
static __attribute__((format(printf, 1, 2))) const char *say(const char *fmt, ...) {
  static char workspace[32][LINE];
  static int next;
  char *s = workspace[next++ % 32];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(s, LINE, fmt, ap);
  va_end(ap);
  return s;
}

static const char *layout(int l, int axes) {
  char name = "LMQ"[l];
  return axes == BOTH ? say("%c", name)
         : axes       ? say("only(%c, %c)", name, axes == AXIS_R ? 'r' : 'j')
                      : say("only(%c)", name);
}
static int fits(const tile *t, int axes, int l) { return !(t->axes & ~axes) && (t->layout == 2) == (l == 2); }

/* A tile that has a value here, of one of the types, the later ones rather; NULL: none was met. */
static const tile *any(const maker *m, const char *types) {
  for (int tries = 0; tries < 24 && m->ntile; tries++) {
    int i = below(m->ntile), k = below(m->ntile);
    const tile *t = &m->tile[i > k ? i : k];
    if (!t->hidden && strchr(types, t->type)) return t;
  }
  return NULL;
}
/* One that fits into a layout; `same`: that has it. */
static const tile *some(const maker *m, char type, int axes, int l, int same) {
  for (int tries = 0; tries < 8; tries++) {
    const tile *t = any(m, (const char[]){ type, 0 });
    if (t && (same ? t->axes == axes && t->layout == l : fits(t, axes, l))) return t;
  }
  return NULL;
}

/* Results of the statement in the making: new tiles, which become visible behind it, and one that a loop carries. */
static tile waiting[4];
static int nwaiting;
static const tile *taken;
/* A name for a result: a new one, or that of a tile that the loop carries. */
static const char *result(maker *m, char type, int axes, int l) {
  if (m->depth && chance(50))
    for (int i = m->ntile; i-- > 0;) {
      tile *t = &m->tile[i];
      if (!t->carried || t->hidden || t == taken || t->type != type || t->axes != axes || t->layout != l) continue;
      if (chance(60)) return (taken = t)->name;
    }
  tile *t = &waiting[nwaiting++];
  *t = (tile){ .type = type, .axes = axes, .layout = l };
  snprintf(t->name, sizeof t->name, "T%d", m->names++);
  return t->name;
}
static void done(maker *m) {
  for (int i = 0; i < nwaiting && m->ntile < TILES; i++) m->tile[m->ntile++] = waiting[i];
  nwaiting = 0;
  taken = NULL;
}

static const char *relation(maker *m, int axes, int l) {
  static const char *const of[4][5] = { { "b < rows", "n > 2", "b != 1", "b*20 < n", "b <= rows" },
                                        { "b*R + r < rows", "r < 2", "r != b", "b*R + r < rows", "r*3 + b < rows" },
                                        { "j < n", "j + b*7 < n", "(j // 4) % 2 == 0", "n - j > 1", "j >= b" },
                                        { "r + j < n", "j*2 + r != 5", "j < n - r*3", "r <= j", "b*R + r < rows" } };
  const tile *t = chance(20) ? some(m, "ib"[below(2)], axes, l, 0) : NULL;
  if (t) return t->type == 'b' ? say("%s", t->name) : say("%s < 40", t->name);
  int a = chance(60) ? axes : axes == BOTH ? 1 + below(2) : axes & below(4);
  return PICK(of[a]);
}
/* ", where = ..." over axes, or nothing */
static const char *where(maker *m, int axes, int l, int percent) {
  if (!chance(percent)) return "";
  const char *one = relation(m, axes, l);
  return chance(60) ? say(", where = %s", one) : say(", where = %s & %s", one, relation(m, axes, l));
}

/* An address below IN */
static const char *address(maker *m, int axes, int l) {
  static const int by_r[] = { 1, 64, 16, 100, 0 }, by_j[] = { 1, 1, 1, 2, 3, 8, 0 }, by_b[] = { 0, 64, 512, 300 };
  const char *s = say("b*%d", PICK(by_b));
  const tile *t = chance(12) ? some(m, 'i', axes, l, 0) : NULL;
  if (axes & AXIS_R) s = say("%s + r*%d", s, PICK(by_r));
  if (axes & AXIS_J) s = chance(15) ? say("%s + 63 - j", s) : say("%s + j*%d", s, PICK(by_j));
  if (m->depth && chance(50)) s = say("%s + %c*16", s, m->var[below(m->depth)]);
  if (t) s = say("(%s + %s*5) %% 4096", s, t->name);
  else if (chance(10)) s = say("(%s*7 + n) %% 4096", s);
  else if (chance(5)) s = say("(%s) // 3", s);
  return s;
}

static int some_axes(void) { return chance(65) ? BOTH : below(4); }
static int some_layout(void) { return chance(60) ? 0 : 1 + below(2); }

/* ---- statements: each says whether it could be made */
static int make_load(maker *m) {
  int axes = some_axes(), l = some_layout();
  const char *at = address(m, axes, l), *w = where(m, axes, l, 60), *in = layout(l, axes);
  static const char *const fill[] = { "", ", other = 1", ", other = -0.0", ", other = inf", "" };
  const char *other = *w ? PICK(fill) : "";
  if (chance(70)) line(m, "%s = load(x, %s, %s%s%s)", result(m, 'f', axes, l), at, in, w, other);
  else if (chance(40)) line(m, "%s = load(k, %s, %s%s)", result(m, 'i', axes, l), at, in, w);
  else if (chance(50)) {
    const char *a = result(m, 'f', axes, l), *b = result(m, 'f', axes, l);
    line(m, "%s, %s = load(c, %s, %s%s%s)", a, b, at, in, w, other);
  } else {
    int half = m->names++;
    line(m, "H%d = load(h, %s, %s%s%s)", half, at, in, w, other);
    line(m, "%s = map(f32, H%d)", result(m, 'f', axes, l), half);
  }
  return 1;
}

static const char *operand(maker *m, char type, int axes, int l) {
  const tile *t = chance(12) ? NULL : some(m, type, axes, l, 0);
  if (t) return t->name;
  return type == 'b'   ? "bool(true)"
         : type == 'i' ? say("i32(%d)", below(9))
                       : say("%s(%d.5)", type == 'd' ? "f64" : "f32", below(3));
}

static int make_map(maker *m) {
  static const char *const one[] = { "exp", "negative", "abs", "sin", "sqrt", "tanh", "log", "floor" };
  static const char *const two[] = { "add", "multiply", "maximum", "subtract", "minimum", "divide" };
  static const char *const of_int[] = { "add", "multiply", "maximum", "subtract", "mix" };
  const tile *t = any(m, "fffffdi");
  if (!t) return 0;
  int axes = t->axes | (chance(25) ? below(4) : 0), l = t->layout == 2 ? 2 : chance(80) ? t->layout : below(2);
  const char *in = layout(l, axes), *a = t->name;
  char y = t->type;
  const char *b = operand(m, y, axes, l), *c = operand(m, y, axes, l);
  switch (below(y == 'i' ? 5 : 12)) {
  case 0: { /* other types */
    static const char *const to[] = { "fi", "fd", "if", "df", "fb", "ib" };
    static const char *const frag[] = { "small", "f64", "f32", "f32", "above", "odd" };
    int k = below(6);
    if (to[k][0] != y) k = y == 'f' ? 1 : y == 'i' ? 2 : 3;
    line(m, "%s = map(%s, %s, layout = %s)", result(m, to[k][1], axes, l), frag[k], a, in);
    break;
  }
  case 1: {
    const char *p = operand(m, 'b', axes, l);
    line(m, "%s = map(pick, %s, %s, %s, layout = %s)", result(m, y, axes, l), p, a, b, in);
    break;
  }
  case 2:
    if (y == 'f' && axes) {
      line(m, "%s = map(near, %s, %c, layout = %s)", result(m, y, axes, l), a, axes & AXIS_J ? 'j' : 'r', in);
      break;
    } /* fall through */
  case 3:
  case 4:
  case 5: {
    const char *f = y == 'i' ? PICK(of_int) : PICK(two);
    line(m, "%s = map(%s, %s, %s, layout = %s)", result(m, y, axes, l), f, a, b, in);
    break;
  }
  case 6:
  case 7: line(m, "%s = map(fma, %s, %s, %s, layout = %s)", result(m, y, axes, l), a, b, c, in); break;
  case 8: {
    const char *p = result(m, y, axes, l), *q = result(m, y, axes, l);
    line(m, "%s, %s = map(turn, %s, %s, layout = %s)", p, q, a, b, in);
    break;
  }
  default: line(m, "%s = map(%s, %s, layout = %s)", result(m, y, axes, l), PICK(one), a, in);
  }
  return 1;
}

static int make_reduce(maker *m) {
  const tile *t = any(m, "ffffdi"), *u = NULL;
  if (!t || !t->axes) return 0;
  int axis = t->axes == BOTH ? 1 + (below(3) > 0) : t->axes, rest = t->axes & ~axis;
  char a = axis == AXIS_R ? 'r' : 'j';
  const char *w = where(m, t->axes, t->layout, 55);
  static const char *const merge[][3] = { { "add", "-0.0", "0" },
                                          { "maximum", "-inf", "-2147483648" },
                                          { "minimum", "inf", "2147483647" } };
  int k = below(3);
  if (t->type != 'i' && chance(20)) u = some(m, t->type, t->axes, t->layout, 1);
  if (u) {
    const char *p = result(m, t->type, rest, t->layout), *q = result(m, t->type, rest, t->layout);
    line(m, "%s, %s = reduce(both, (%s, %s), %c, S%s, init = (-0.0, -inf))", p, q, t->name, u->name, a, w);
  } else
    line(m, "%s = reduce(%s, %s, %c, S%s, init = (%s))", result(m, t->type, rest, t->layout), merge[k][0], t->name, a,
         w, merge[k][1 + (t->type == 'i')]);
  return 1;
}

static int make_scan(maker *m) {
  const tile *t = any(m, "fffdi");
  if (!t || !t->axes) return 0;
  int axis = t->axes == BOTH ? 1 + below(2) : t->axes, rest = t->axes & ~axis, e = axis == AXIS_R ? m->r : m->j;
  if (e & (e - 1)) return 0;
  const char *w = where(m, t->axes, t->layout, 25);
  const char *init = !*w ? "" : t->type == 'i' ? ", init = (0)" : ", init = (-0.0)";
  const tile *carry = chance(40) ? some(m, t->type, rest, t->layout, 1) : NULL;
  const char *y = result(m, t->type, t->axes, t->layout), *c = carry ? result(m, t->type, rest, t->layout) : "";
  line(m, "%s%s%s = scan(add, %s, %c%s%s%s%s)", y, carry ? ", " : "", c, t->name, axis == AXIS_R ? 'r' : 'j', w, init,
       carry ? ", carry = " : "", carry ? carry->name : "");
  return 1;
}

static int make_relayout(maker *m) {
  const tile *t = any(m, "fffdib"), *u = NULL;
  if (!t) return 0;
  int l = chance(70) ? 2 * (t->layout != 2) : below(3);
  if (chance(30)) u = some(m, t->type, t->axes, t->layout, 1);
  const char *in = layout(l, t->axes), *y = result(m, t->type, t->axes, l);
  if (u) line(m, "%s, %s = relayout(%s, %s, %s)", y, result(m, t->type, t->axes, l), t->name, u->name, in);
  else if (t->axes && t->type != 'b' && chance(30)) {
    int put = m->names++;
    static const char *const order[4][2] = { { "", "" }, { "r", "r" }, { "j", "j" }, { "r, j", "j, r" } };
    line(m, "P%d = put(%s, [%s])", put, t->name, PICK(order[t->axes]));
    line(m, "%s = get(P%d, %s)", y, put, in);
  } else line(m, "%s = relayout(%s, %s)", y, t->name, in);
  return 1;
}

static int make_other(maker *m) {
  int axes = some_axes(), l = some_layout();
  const char *in = layout(l, axes);
  if (chance(40)) line(m, "%s = zeros(f32, %s)", result(m, 'f', axes, l), in);
  else if (chance(70)) line(m, "%s = test(%s, %s)", result(m, 'b', axes, l), relation(m, axes, l), in);
  else {
    int index = m->names++;
    line(m, "N%d = index(%s, %s)", index, address(m, axes, l), in);
    line(m, "%s = map(i32, N%d)", result(m, 'i', axes, l), index);
  }
  return 1;
}

/* To a place of its own: no two stores, rounds, blocks and elements have one. */
static int make_store(maker *m) {
  const tile *t = any(m, "fffffi"), *u = NULL;
  int rounds = 1, size = BLOCKS;
  const char *at = "b";
  if (!t) return 0;
  if (t->type == 'f' && chance(20)) u = some(m, 'f', t->axes, t->layout, 1);
  for (int i = 0; i < m->depth; i++, rounds *= 3) at = say("(%s)*3 + %c", at, m->var[i]);
  int order = below(2);
  for (int i = 0; i < 2; i++) {
    int axis = i == order ? AXIS_R : AXIS_J, e = axis == AXIS_R ? m->r : m->j;
    if (!(t->axes & axis)) continue;
    size *= e;
    at = say("(%s)*%d + %c", at, e, axis == AXIS_R ? 'r' : 'j');
  }
  size *= rounds;
  if (m->used + size > OUT) return 0;
  const char *w = where(m, t->axes, t->layout, 50);
  if (u) line(m, "store(z, %d + %s, %s, %s%s)", m->used, at, t->name, u->name, w);
  else line(m, "store(%c, %d + %s, %s%s)", t->type == 'f' ? 'o' : 'q', m->used, at, t->name, w);
  m->used += size;
  return 1;
}

/* Out of the buffer with two names, or into it: at one place of the block or another, forwards or backwards. On a GPU
   no thread waits for what another one stores. */
static int make_over(maker *m) {
#ifdef GATE_CUDA
  return make_store(m);
#endif
  const tile *t = chance(50) ? NULL : any(m, "f");
  int axes = t ? t->axes : some_axes(), l = t ? t->layout : some_layout();
  const char *at = say("b*%d + %d", OVER, below(3) * 100);
  if (axes & AXIS_R) at = chance(70) ? say("%s + r*%d", at, m->j) : say("%s + (%d - r)*%d", at, m->r - 1, m->j);
  if (axes & AXIS_J) at = chance(70) ? say("%s + j", at) : say("%s + %d - j", at, m->j - 1);
  if (m->depth && chance(20)) at = say("%s + %c*16", at, m->var[below(m->depth)]);
  const char *w = where(m, axes, l, 30);
  if (t) line(m, "store(v, %s, %s%s)", at, t->name, w);
  else line(m, "%s = load(u, %s, %s%s)", result(m, 'f', axes, l), at, layout(l, axes), w);
  return 1;
}

static void make_block(maker *m, int n);

static void make_for(maker *m) {
  static const char *const range[] = { "0, 2, 1", "0, 3, 1", "0, b, 1", "1, 3, 1", "0, n // 20, 1", "0, 3, 2" };
  int n = chance(15) ? 0 : 1 + below(3), from = m->ntile, outer[3], count = 0;
  char var = m->var[m->depth] = "tu"[m->depth];
  char carry[LINE] = "";
  for (int i = 0; i < n; i++) {
    const tile *t = any(m, "fffidb");
    if (!t || t - m->tile >= from || m->ntile == TILES) continue;
    tile *in = &m->tile[m->ntile++];
    *in = *t;
    snprintf(in->name, sizeof in->name, "C%d", m->names++);
    in->carried = 1;
    snprintf(carry + strlen(carry), sizeof carry - strlen(carry), "%s%s = %s", count ? ", " : "", in->name, t->name);
    m->tile[outer[count++] = (int)(t - m->tile)].hidden = 1;
  }
  line(m, "for %c in range(%s)%s%s%s {", var, PICK(range), count ? " carry (" : "", carry, count ? ")" : "");
  m->depth++;
  make_block(m, 2 + below(6));
  m->depth--;
  line(m, "}");
  m->ntile = from;
  for (int i = 0; i < count; i++) m->tile[outer[i]].hidden = 0;
}

static void make_if(maker *m) {
  int from = m->ntile;
  line(m, "if %s {", PICK(((const char *[]){ "b < rows", "n > 20", "b != 1", "b*20 < n" })));
  make_block(m, 1 + below(3));
  m->ntile = from;
  line(m, "}");
}

static void make_block(maker *m, int n) {
  for (int tries = 0; n > 0 && tries < 60 && m->t.n < LINES - 24 && m->ntile < TILES - 8; tries++) {
    int c = below(100);
    if (c >= 90 && c < 96 && m->depth < 2 && m->t.n < LINES - 40) make_for(m), n--;
    else if (c >= 96) make_if(m), n--;
    else
      n -= (c < 12   ? make_load
            : c < 48 ? make_map
            : c < 64 ? make_reduce
            : c < 71 ? make_scan
            : c < 80 ? make_relayout
            : c < 83 ? make_other
            : c < 87 ? make_over
                     : make_store)(m);
    done(m);
  }
}

/* ---- schedules */
typedef struct digits { int n, extent[12]; char text[LINE]; } digits;

/* The digits of an extent, lowest first; none crosses a border of the order, an odd factor is in the highest. */
static digits split(const maker *m, int extent) {
  digits d = { 0 };
  for (int64_t s = 1; s < extent; s *= d.extent[d.n++]) {
    int64_t rest = extent / s, border = s < m->w ? m->w : s < m->c ? m->c : extent, e = 1 << (1 + below(3));
    while (e > 1 && (rest % e || s * e > border)) e /= 2;
    d.extent[d.n] = (int)(e > 1 ? e : rest);
  }
  if (!d.n) d.extent[d.n++] = 1;
  return d;
}

/* Places for the digits of both axes; lanes and warps are numbered in a random order. */
static void places(digits d[2], int lanes, int warps) {
  char level[2][12];
  int by[2][12], order[24], n = 0, lane = 1, warp = 1, items = 1;
  for (int a = 0; a < 2; a++)
    for (int i = 0; i < d[a].n; i++) order[n++] = a * 12 + i;
  for (int i = n; i-- > 1;) {
    int k = below(i + 1), v = order[i];
    order[i] = order[k];
    order[k] = v;
  }
  for (int i = 0; i < n; i++) {
    int a = order[i] / 12, k = order[i] % 12, e = d[a].extent[k], even = !(e & (e - 1));
    char *p = &level[a][k];
    if (e > 1 && even && lane * e <= lanes && chance(60)) *p = 'l', by[a][k] = lane, lane *= e;
    else if (e > 1 && warp * e <= warps && chance(60)) *p = 'w', by[a][k] = warp, warp *= e;
    else *p = items * e <= 64 && chance(60) ? 'i' : 'I', items *= *p == 'i' ? e : 1;
  }
  for (int a = 0; a < 2; a++) {
    char *s = d[a].text;
    s += sprintf(s, "%c:", "rj"[a]);
    for (int k = d[a].n; k-- > 0;) {
      s += sprintf(s, " %c%d", level[a][k], d[a].extent[k]);
      if (strchr("lw", level[a][k])) s += sprintf(s, "@%d", by[a][k]);
    }
  }
}

static const char *schedule(const maker *m, const char *name, int lanes, int warps) {
  digits d[2][2] = { { split(m, m->r), split(m, m->j) }, { split(m, m->r), split(m, m->j) } };
  for (int i = 0; i < 2; i++) places(d[i], lanes, warps);
  int l = below(2), q = below(2);
  const char *a = d[0][l].text, *b = d[0][!l].text;
  return say("schedule %s { L = \"%s; %s\"; M = \"%s; %s\"; Q = \"%s; %s\"; R = %d; S = order(%d, %d) }", name, a, b, b,
             a, d[1][q].text, d[1][!q].text, m->r, m->c, m->w);
}

static void join(const text *t, char *to) {
  *to = 0;
  for (int i = 0; i < t->n; i++) to += sprintf(to, "%s\n", t->line[i]);
}

static void check(nvb_arena *a, void *arg) {
  nvf_kernel *k = nvf_kernel_parse(a, arg, "a random text");
  if (!k->nsched) nvb_throw(a, NVM_ERR_VALUE, "no schedule");
  for (int i = 0; i < k->nsched; i++) nvf_kernel_check(a, k, k->sched[i]);
}

static int valid(const text *t) {
  static char all[LINES * LINE];
  join(t, all);
  nvb_arena *a = nvb_arena_new();
  int status = nvb_protect(a, check, all);
  nvb_arena_free(a);
  return status == NVM_OK;
}

static const char *const head[] = {
  "frag pick<T: num>(p: bool, a: T, b: T) -> T { return select(p, a, b) }",
  "frag turn<T: real>(a: T, b: T) -> (T, T) { return b * 0.5, a }",
  "frag both<T: real>(a: T, b: T, c: T, d: T) -> (T, T) { return a + c, maximum(b, d) }",
  "frag small(x: f32) -> i32 { return i32(select(fabs(x) < 100, x, 0)) }",
  "frag above(x: f32) -> bool { return x > 0.25 }",
  "frag odd(x: i32) -> bool { return (x & 1) == 1 }",
  "frag mix(a: i32, b: i32) -> i32 { return (a ^ (b << 3)) + 7 }",
  "frag near(x: f32, i: i64) -> f32 { return x * 0.5 + f32(i) }",
  "kernel f(x: f32[], k: i32[], c: c64[], h: f16[], o: mut f32[], q: mut i32[], z: mut c64[], v: mut f32[], "
  "u: f32[], n: size, rows: size) {",
  "  grid (b = 3) {"
};

/* Appends the schedules that the checker takes, each the first of some tries; their number. */
static int schedules(maker *m) {
  static const struct kind {
    const char *name;
    int lanes, warps;
  } of[] = { { "cpu1", 1, 1 },  { "cpu2", 4, 1 },  { "cpu3", 8, 1 },
             { "cpu4", 16, 1 }, { "gpu1", 32, 1 }, { "gpu2", 32, 4 } };
  int before = m->t.n;
  for (const struct kind *k = of; k < of + sizeof of / sizeof *of; k++)
    for (int tries = 0; tries < 50; tries++) {
      text one = m->t;
      one.n = before;
      strcpy(one.line[one.n++], schedule(m, k->name, k->lanes, k->warps));
      if (!valid(&one)) continue;
      strcpy(m->t.line[m->t.n++], one.line[before]);
      break;
    }
  return m->t.n - before;
}

/* 0: no schedules were found under which the checker takes the text */
static int make(maker *m, uint64_t seed) {
  static const int rs[] = { 1, 2, 4, 8, 4, 8, 3, 6 }, js[] = { 4, 8, 16, 32, 64, 32, 64, 12, 48 };
  static const int stamps[][2] = { { 1024, 128 }, { 64, 1 }, { 16, 4 }, { 8, 8 },
                                   { 32, 8 },     { 4, 4 },  { 2, 1 },  { 16, 16 } };
  state = seed * 1000003;
  *m = (maker){ .r = PICK(rs), .j = PICK(js), .n = below(66), .rows = below(26) };
  if (chance(30)) m->n = 64, m->rows = 24;
  int s = below(8);
  m->c = stamps[s][0], m->w = stamps[s][1], nwaiting = 0, taken = NULL;
  for (size_t i = 0; i < sizeof head / sizeof *head; i++) strcpy(m->t.line[m->t.n++], head[i]);
  make_load(m), done(m), make_load(m), done(m);
  make_block(m, 4 + below(10));
  for (int i = 0; i < 4; i++) make_store(m);
  strcpy(m->t.line[m->t.n++], "  }");
  strcpy(m->t.line[m->t.n++], "}");
  return schedules(m) > 1;
}

/* ---- running */
static sigjmp_buf back;
static char why[600];
static int refusals;

static void fault(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(why, sizeof why, fmt, ap);
  va_end(ap);
  siglongjmp(back, 1);
}
static void crashed(int n) { fault("signal %d", n); }

static int fails(const text *t, const maker *m) {
#ifdef GATE_CUDA
  gate_quiet = 1;
#endif
  static char all[LINES * LINE];
  static float x[IN], c[2 * IN];
  static int32_t k[IN], q[OUT];
  static uint16_t h[IN];
  static float o[OUT], z[2 * OUT], v[BLOCKS * OVER];
  gate_seed = 7;
  for (int i = 0; i < IN; i++) {
    x[i] = i % 29 == 7 ? (i % 2 ? 200.0f : -150.0f) : (float)(gate_uniform() * 6 - 3);
    c[2 * i] = (float)i / 64, c[2 * i + 1] = (float)(gate_uniform() - 0.5);
    k[i] = i * 7919 % 61 - 5;
    h[i] = (uint16_t)(0x3000 + i % 0x1100 + (i % 3 ? 0 : 0x8000));
  }
  for (int i = 0; i < BLOCKS * OVER; i++) v[i] = (float)(i % 101) / 8;
  for (int i = 0; i < OUT; i++) o[i] = z[i] = z[OUT + i] = 5, q[i] = 5;
  join(t, all);
  gate g = { .file = "a random text", .prefix = "cpu", .text = all, .refusals = &refusals };
  gate_in(&g, NVM_F32, x, IN);
  gate_in(&g, NVM_I32, k, IN);
  gate_in(&g, NVM_C64, c, IN);
  gate_in(&g, NVM_F16, h, IN);
  gate_out(&g, NVM_F32, o, m->used);
  gate_out(&g, NVM_I32, q, m->used);
  gate_out(&g, NVM_C64, z, m->used);
  gate_out(&g, NVM_F32, v, BLOCKS * OVER);
  gate_over(&g, 7);
  gate_size(&g, m->n);
  gate_size(&g, m->rows);
  if (sigsetjmp(back, 1)) return 1;
  gate_run(&g);
  return 0;
}

/* Line `at` left out, with what it encloses; 0: there is nothing to leave out */
static int without(text *to, const text *from, int at) {
  const char *s = from->line[at] + strspn(from->line[at], " ");
  int end = at + 1;
  if (*s == '}' || strncmp(s, "kernel", 6) == 0 || strncmp(s, "grid", 4) == 0) return 0;
  if (s[0] && s[strlen(s) - 1] == '{')
    while (strspn(from->line[end++], " ") != (size_t)(s - from->line[at])) {}
  *to = *from;
  memmove(to->line[at], to->line[end], sizeof to->line[0] * (size_t)(to->n - end));
  to->n -= end - at;
  return 1;
}

static void shrink(text *t, const maker *m) {
  static text less;
  for (int again = 1; again;) {
    again = 0;
    for (int i = t->n; i-- > 0;)
      if (i < t->n && without(&less, t, i) && valid(&less) && fails(&less, m)) *t = less, again = 1;
  }
}

/* ---- */
static int first = 1, count = BATCHES * BATCH; /* seeds */

START_TEST(texts) {
  static maker m;
  static char all[LINES * LINE];
  static const int crash[] = { SIGSEGV, SIGFPE, SIGABRT, SIGILL, SIGBUS };
  int from = first + _i * BATCH, to = from + BATCH < first + count ? from + BATCH : first + count, runs = 0;
  for (size_t i = 0; i < sizeof crash / sizeof *crash; i++) signal(crash[i], crashed);
  for (int seed = from; seed < to; seed++) {
    if (!make(&m, (uint64_t)seed)) continue;
    runs++;
    if (!fails(&m.t, &m)) continue;
    shrink(&m.t, &m);
    fails(&m.t, &m);
    join(&m.t, all);
    ck_abort_msg("seed %d, n = %lld, rows = %lld: %s\n%s", seed, (long long)m.n, (long long)m.rows, why, all);
  }
  if (to - from < BATCH) return; /* what follows holds of many: one text may be refused under each of its schedules */
  if (2 * runs < BATCH) ck_abort_msg("the checker took %d texts of %d", runs, BATCH);
  if (refusals > runs) ck_abort_msg("%d schedules of %d texts were refused", refusals, runs);
}
END_TEST

int main(int argc, char **argv) {
#ifdef GATE_CUDA
  if (!gate_emulator()) return 77;
#endif
  if (argc > 1) first = atoi(argv[1]);
  if (argc > 2) count = atoi(argv[2]);
  return RUN_SUITE("random texts", LOOP(texts, (count + BATCH - 1) / BATCH));
}
