/* Prints and parses evaluation graphs as text, one value per line:
     leaf 0 f32[4, 3] strides(3, 1) align16
     %0 = leaf{0} : f32[4, 3]
     %1 = map exp(%0) : f32[4, 3]
     %2 = red add(%1){1, 1} order(1024, 128) init(0x80000000) : f32[4, 1]
     %3 = permute(%0){1, 0} : f32[3, 4]
     %4 = call gemm(%0, %3){11, 0} : f32[4, 4]
     out %2
   A trailing "@softmax" names the operation that the value comes from, if the fragment has another name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "graph/make.h"

enum { KINDS = NVG_VROUTINE + 1 };
static const char *const kinds[KINDS] = { "leaf", "const",   "iota",    "map",     "red",    "scan",
                                          "pick", "reshape", "permute", "slice",   "expand", "roll",
                                          "pad",  "concat",  "gather",  "scatter", "call",   "routine" };
static int has_frag(nvg_vkind k) { return k == NVG_VMAP || k == NVG_VRED || k == NVG_VSCAN; }
static int is_call(nvg_vkind k) { return k == NVG_VCALL || k == NVG_VROUTINE; }

/* ---- printing */
static void print_list(nvb_text *t, const char *open, int n, const int64_t *at, const char *close) {
  nvb_puts(t, open);
  for (int i = 0; i < n; i++) nvb_print(t, i ? ", %lld" : "%lld", (long long)at[i]);
  nvb_puts(t, close);
}

static void print_type(nvb_text *t, nvm_dtype d, int rank, const int64_t *shape) {
  nvb_puts(t, nvg_dtype_short(d));
  print_list(t, "[", rank, shape, "]");
}

static int count_parts(const nvg_graph *g, const nvg_val *v) {
  int n = 0;
  for (int i = 0; i < v->nin; i++) n += nvg_parts(g->v[v->in[i]].dtype);
  return n;
}

static void print_bits(nvb_text *t, const char *open, int n, const uint64_t *bits, const char *close) {
  nvb_puts(t, open);
  for (int i = 0; i < n; i++) nvb_print(t, i ? ", 0x%llx" : "0x%llx", (unsigned long long)bits[i]);
  nvb_puts(t, close);
}

static void print_val(nvb_text *t, const nvg_graph *g, int i) {
  const nvg_val *v = &g->v[i];
  const char *op = nvg_ops[v->op].name, *what = v->frag ? v->frag->name : has_frag(v->kind) ? op : "";
  if (is_call(v->kind)) what = op + 1;
  nvb_print(t, "%%%d = %s%s%s", i, kinds[v->kind], *what ? " " : "", what);
  for (int j = 0; j < v->nin; j++) nvb_print(t, "%s%%%d%s", j ? ", " : "(", v->in[j], j == v->nin - 1 ? ")" : "");
  int64_t leaf = v->leaf;
  if (v->kind == NVG_VLEAF) print_list(t, "{", 1, &leaf, "}");
  else if (v->kind == NVG_VCONST) print_bits(t, "{", v->nattr, (const uint64_t *)v->attr, "}");
  else if (v->nattr) print_list(t, "{", v->nattr, v->attr, "}");
  if (v->chunk) nvb_print(t, " order(%d, %d)", v->chunk, v->lanes);
  if (v->order_free) nvb_puts(t, " free");
  if (v->narrowed) nvb_print(t, " narrowed(%d)", v->narrowed);
  if (v->init) print_bits(t, " init(", count_parts(g, v), v->init, ")");
  nvb_puts(t, " : ");
  print_type(t, v->dtype, v->rank, v->shape);
  if (v->name && *v->name && strcmp(v->name, what) && strcmp(v->name, kinds[v->kind])) nvb_print(t, " @%s", v->name);
  nvb_puts(t, "\n");
}

void nvg_graph_print(nvb_text *t, const nvg_graph *g) {
  for (int i = 0; i < g->nleaf; i++) {
    const nvg_leaf *l = &g->leaf[i];
    nvb_print(t, "leaf %d ", i);
    print_type(t, l->dtype, l->rank, l->shape);
    print_list(t, " strides(", l->rank, l->stride, ")");
    nvb_print(t, "%s%s", l->align16 ? " align16" : "", l->donated ? " donated" : "");
    if (l->weak_const) nvb_print(t, " weak(%d)%s", l->weak_const, l->extreme ? " extreme" : "");
    nvb_puts(t, "\n");
  }
  for (int i = 0; i < g->n; i++) print_val(t, g, i);
  for (int i = 0; i < g->nout; i++) nvb_print(t, "%s%%%d", i ? ", " : "out ", g->out[i]);
  nvb_puts(t, "\n");
}

/* ---- parsing */
typedef struct reader { nvb_arena *a; const char *s, *where; int line; nvg_graph *g; NVB_VEC(nvg_val) v;
  NVB_VEC(nvg_leaf) leaf;
  NVB_VEC(int) out;
} reader;

static _Noreturn void fail_text(reader *r, const char *what) {
  size_t rest = strcspn(r->s, "\n");
  nvb_throw(r->a, NVM_ERR_VALUE, "%s:%d: expected %s before \"%.*s\"", r->where, r->line, what,
            rest < 24 ? (int)rest : 24, r->s);
}
static void skip_space(reader *r) {
  while (*r->s == ' ' || *r->s == '\t') r->s++;
}
static int take_word(reader *r, const char *word) {
  skip_space(r);
  size_t n = strlen(word);
  if (strncmp(r->s, word, n) || (isalnum((unsigned char)word[n - 1]) && isalnum((unsigned char)r->s[n]))) return 0;
  r->s += n;
  return 1;
}
static void expect_word(reader *r, const char *word) {
  if (!take_word(r, word)) fail_text(r, word);
}
static int64_t read_number(reader *r) {
  skip_space(r);
  char *end;
  int64_t n = r->s[0] == '0' && r->s[1] == 'x' ? (int64_t)strtoull(r->s, &end, 16) : strtoll(r->s, &end, 10);
  if (end == r->s) fail_text(r, "a number");
  r->s = end;
  return n;
}
static char *read_word(reader *r) {
  skip_space(r);
  const char *from = r->s;
  while (isalnum((unsigned char)*r->s) || *r->s == '_' || *r->s == '.') r->s++;
  if (from == r->s) fail_text(r, "a name");
  char *w = nvb_dup(r->a, from, (size_t)(r->s - from) + 1);
  w[r->s - from] = 0;
  return w;
}
static int64_t *read_list(reader *r, const char *close, int *n) {
  NVB_VEC(int64_t) v = { 0 };
  while (!take_word(r, close)) {
    if (v.n) expect_word(r, ",");
    NVB_PUSH(r->a, v, read_number(r));
  }
  *n = v.n;
  return v.at ? v.at : nvb_get(r->a, 8);
}
static nvm_dtype read_type(reader *r, int *rank, const int64_t **shape) {
  const char *name = read_word(r);
  int t = nvg_dtype_find(name);
  if (t < 0) fail_text(r, "a dtype");
  expect_word(r, "[");
  *shape = read_list(r, "]", rank);
  if (*rank > NVM_MAX_RANK) fail_text(r, "fewer dimensions");
  int64_t size = 16;
  for (int d = 0; d < *rank; d++)
    if ((*shape)[d] < 0 || __builtin_mul_overflow(size, (*shape)[d] ? (*shape)[d] : 1, &size))
      fail_text(r, "an array that can be");
  return (nvm_dtype)t;
}

static void parse_leaf(reader *r) {
  nvg_leaf l = { 0 };
  int n;
  if (read_number(r) != r->leaf.n) fail_text(r, "leaves in order");
  l.dtype = read_type(r, &l.rank, &l.shape);
  expect_word(r, "strides");
  expect_word(r, "(");
  l.stride = read_list(r, ")", &n);
  if (n != l.rank) fail_text(r, "a stride for each dimension");
  l.align16 = take_word(r, "align16");
  l.donated = take_word(r, "donated");
  if (take_word(r, "weak")) expect_word(r, "("), l.weak_const = (int)read_number(r), expect_word(r, ")");
  l.extreme = take_word(r, "extreme");
  NVB_PUSH(r->a, r->leaf, l);
}

static void find_frag(reader *r, nvg_val *v, const char *name) {
  nvm_dtype t[16];
  int n = 0;
  for (int side = 0; side < (v->kind == NVG_VMAP ? 1 : 2); side++)
    for (int i = 0; i < v->nin; i++)
      for (int k = 0; k < nvg_parts(r->v.at[v->in[i]].dtype); k++) {
        if (n == 16) fail_text(r, "fewer operands");
        t[n++] = nvg_real_of(r->v.at[v->in[i]].dtype);
      }
  int cast = v->kind == NVG_VMAP && v->nin == 1 && n == 1 && !strcmp(name, "cast");
  v->frag = cast ? nvg_frag_cast(t[0], v->dtype) : nvg_frag_find(name, t, n);
  v->op = cast ? NVG_OP_CAST : 0;
  if (!v->frag) nvb_throw(r->a, nvb_status(), "%s:%d: %s", r->where, r->line, nvb_message());
}

static void find_call(reader *r, nvg_val *v, const char *name) {
  int op = 0;
  while (op < NVG_NOPS &&
         (nvg_ops[op].kind != NVG_KCALL || nvg_ops[op].def.v != v->kind || strcmp(nvg_ops[op].name + 1, name)))
    op++;
  if (op == NVG_NOPS) nvb_throw(r->a, NVM_ERR_VALUE, "%s:%d: there is no call of %s", r->where, r->line, name);
  v->op = op;
}

static void parse_operands(reader *r, nvg_val *v) {
  NVB_VEC(int) in = { 0 };
  if (!take_word(r, "(")) return;
  do {
    expect_word(r, "%");
    int64_t x = read_number(r);
    if (x < 0 || x >= r->v.n) fail_text(r, "an earlier value");
    NVB_PUSH(r->a, in, (int)x);
  } while (take_word(r, ","));
  expect_word(r, ")");
  v->in = in.at;
  v->nin = in.n;
}

static void parse_val(reader *r) {
  nvg_val v = { 0 };
  int n;
  if (read_number(r) != r->v.n) fail_text(r, "values in order");
  expect_word(r, "=");
  const char *kind = read_word(r), *frag = NULL;
  int k = 0;
  while (k < KINDS && strcmp(kinds[k], kind)) k++;
  if (k == KINDS) fail_text(r, "a kind of value");
  v.kind = (nvg_vkind)k;
  if (has_frag(v.kind) || is_call(v.kind)) frag = read_word(r);
  parse_operands(r, &v);
  if (take_word(r, "{")) v.attr = read_list(r, "}", &v.nattr);
  if (v.kind == NVG_VLEAF) {
    if (v.nattr != 1 || v.attr[0] < 0 || v.attr[0] >= r->leaf.n) fail_text(r, "a leaf's number");
    v.leaf = (int)v.attr[0];
    v.nattr = 0;
  }
  if (take_word(r, "order")) {
    expect_word(r, "(");
    int64_t *s = read_list(r, ")", &n);
    if (n != 2) fail_text(r, "two numbers");
    v.chunk = (int)s[0], v.lanes = (int)s[1];
  }
  v.order_free = take_word(r, "free");
  if (take_word(r, "narrowed")) expect_word(r, "("), v.narrowed = (int)read_number(r), expect_word(r, ")");
  if (take_word(r, "init")) {
    expect_word(r, "(");
    v.init = (uint64_t *)read_list(r, ")", &n);
    nvg_graph g = { .v = r->v.at };
    if (n != count_parts(&g, &v)) fail_text(r, "an identity for each state");
  }
  expect_word(r, ":");
  v.dtype = read_type(r, &v.rank, &v.shape);
  v.size = nvg_size_of(v.rank, v.shape);
  if (is_call(v.kind)) find_call(r, &v, frag);
  else if (frag) find_frag(r, &v, frag);
  v.name = take_word(r, "@") ? read_word(r) : frag ? frag : kinds[k];
  NVB_PUSH(r->a, r->v, v);
}

nvg_graph *nvg_graph_parse(nvb_arena *a, const char *text, const char *where) {
  reader r = { .a = a, .s = text, .where = where, .line = 1 };
  for (; *r.s; r.line++) {
    if (take_word(&r, "leaf")) parse_leaf(&r);
    else if (take_word(&r, "%")) parse_val(&r);
    else if (take_word(&r, "out")) do {
        expect_word(&r, "%");
        int64_t x = read_number(&r);
        if (x < 0 || x >= r.v.n) fail_text(&r, "a value");
        NVB_PUSH(a, r.out, (int)x);
      } while (take_word(&r, ","));
    skip_space(&r);
    if (*r.s == '\n') r.s++;
    else if (*r.s) fail_text(&r, "the end of the line");
  }
  nvg_graph *g = NVB_NEW(a, nvg_graph);
  *g = (nvg_graph){ .arena = a,
                    .n = r.v.n,
                    .v = r.v.at,
                    .nleaf = r.leaf.n,
                    .leaf = r.leaf.at,
                    .leaf_node = NVB_NEWN(a, nvg_node *, r.leaf.n + 1),
                    .nout = r.out.n,
                    .out = r.out.at,
                    .out_node = NVB_NEWN(a, nvg_node *, r.out.n + 1) };
  nvg_graph_check(a, g);
  return g;
}
