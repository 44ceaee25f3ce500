/* The parser of kernel text: recursive descent over the grammar of kernel-text.md, which calls the builder (build.c).
   It reads statements, kernels and schedules, and decides the dtype of every tile; operands are parse_operands.c's, and
   layouts and all other meaning are left to the checker (check.c). */
#include <string.h>
#include "base/err.h"
#include "kernel/parse.h"
#include "frag/dtype.h"

typedef nvf_parser parser;
typedef nvf_tiles tiles;

/* ---- the calls: each reads what follows its '(' and leaves the dtypes of its results in `made` */
typedef struct made {
  int n;
  nvm_dtype type[2 * NVF_MAX_LIST];
} made;

static void give_type(made *m, nvm_dtype t) { m->type[m->n++] = t; }
static void give_tiles(parser *p, made *m, const tiles *t) {
  for (int i = 0; i < t->n; i++) give_type(m, p->k->tile[t->id[i]].type);
}
static void use_tiles(parser *p, nvf_stmt *s, const tiles *t) { nvf_set(p->k, s, 0, NULL, t->n, t->id); }

static int is_pair(nvm_dtype t) { return nvg_class_of(t) == NVG_COMPLEX; }

static void call_load(parser *p, nvf_stmt *s, made *m) {
  s->buf = nvf_take_buffer(p);
  nvf_lex_expect(&p->l, ",");
  s->map = nvf_parse_expression(p);
  nvf_lex_expect(&p->l, ",");
  nvf_parse_layout(p, s);
  nvf_parse_keywords(p, s, 1, 0, NULL, NULL);
  nvm_dtype t = p->k->param[s->buf].type;
  for (int i = 0; i <= is_pair(t); i++) give_type(m, nvg_real_of(t));
}

static void call_write(parser *p, nvf_stmt *s, int pairs) { /* pairs: a complex buffer takes two tiles */
  tiles in = { 0 };
  s->buf = nvf_take_buffer(p);
  nvf_lex_expect(&p->l, ",");
  s->map = nvf_parse_expression(p);
  for (int i = 0; i <= (pairs && is_pair(p->k->param[s->buf].type)); i++) {
    nvf_lex_expect(&p->l, ",");
    nvf_push_tile(p, &in, nvf_take_tile(p));
  }
  use_tiles(p, s, &in);
  nvf_parse_keywords(p, s, 0, 0, NULL, NULL);
}

static void call_store(parser *p, nvf_stmt *s, made *m) {
  (void)m;
  call_write(p, s, 1);
}

static void call_atomic_max(parser *p, nvf_stmt *s, made *m) {
  (void)m;
  call_write(p, s, 0);
}

/* An operand of map. A bare number (*is_bare) is read again later, with the dtype of the first tile. */
static nvf_arg parse_operand(parser *p, int *is_bare) {
  const char *at = p->l.s;
  nvf_lex start = p->l;
  nvf_arg a = { .kind = NVF_ACONST };
  *is_bare = p->l.kind == NVF_T_NUMBER || nvf_lex_is(&p->l, "-");
  if (*is_bare) {
    nvf_lex_const(&p->l, NVM_F64);
    return a;
  }
  if (nvf_lex_accept(&p->l, "bits")) {
    nvf_lex_expect(&p->l, "<");
    a.type = (nvm_dtype)nvf_lex_type(&p->l);
    if (is_pair(a.type)) nvf_lex_fail_at(&p->l, at, "a constant is real");
    p->l = start;
    a.bits = nvf_lex_const(&p->l, a.type);
    return a;
  }
  const char *word = nvf_lex_name(&p->l, "an operand");
  const nvf_name_entry *e = nvf_look_up_name(p, word);
  if (nvf_is_tile_entry(e)) return (nvf_arg){ NVF_ATILE, e->id, 0, p->k->tile[e->id].type };
  if (e && e->kind == NVF_SEEN_PARAM && p->k->param[e->id].kind != NVF_BUFFER && p->k->param[e->id].kind != NVF_ROOTS)
    return (nvf_arg){ NVF_ASCALAR, e->id, 0, p->k->param[e->id].type };
  if (e) nvf_lex_fail_at(&p->l, at, "'%s' cannot be an operand of map", word);
  if (nvf_lex_accept(&p->l, "(")) {
    int t = nvg_dtype_find(word);
    if (t < 0 || is_pair((nvm_dtype)t)) nvf_lex_fail_at(&p->l, at, "'%s' is no real dtype", word);
    a.type = (nvm_dtype)t;
    a.bits = nvf_lex_const(&p->l, a.type);
    nvf_lex_expect(&p->l, ")");
    return a;
  }
  if (nvf_is_schedule_name(word)) nvf_lex_fail_at(&p->l, at, "there is no tile '%s' here", word);
  return (nvf_arg){ NVF_AAXIS, nvf_axis_named(p, word), 0, NVM_I64 };
}

/* Returns f, or throws why it was not found, at the position of its name; errors that are not the text's are passed
   on. */
static const nvg_frag *check_found(parser *p, const char *at, const nvg_frag *f) {
  if (f) return f;
  if (nvb_status() != NVM_ERR_TYPE) nvb_throw(p->l.arena, nvb_status(), "%s", nvb_strdup(p->l.arena, nvb_message()));
  nvf_lex_fail_at(&p->l, at, "%s", nvb_message());
}

static const nvg_frag *map_frag(parser *p, const char *at, const char *name, const nvf_arg *arg, int n) {
  nvm_dtype type[NVF_MAX_LIST];
  for (int i = 0; i < n; i++) type[i] = arg[i].type;
  int to = nvg_dtype_find(name);
  if (to >= 0 && (is_pair((nvm_dtype)to) || n != 1))
    nvf_lex_fail_at(&p->l, at, "a conversion takes one operand to a real dtype");
  const nvg_frag *f = to >= 0 ? nvg_frag_cast(type[0], (nvm_dtype)to) : nvg_fragset_find(p->k->frags, name, type, n);
  return check_found(p, at, f);
}

static void call_map(parser *p, nvf_stmt *s, made *m) {
  NVB_VEC(nvf_arg) arg = { 0 };
  struct {
    nvf_lex at;
    int arg;
  } bare[8];
  int nbare = 0, first = -1, is_bare;
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a fragment");
  while (!nvf_lex_is(&p->l, ")")) {
    if (nvf_take_keyword(p, "layout")) {
      nvf_parse_layout(p, s);
      break;
    }
    nvf_lex_expect(&p->l, ",");
    nvf_lex start = p->l;
    nvf_arg a = parse_operand(p, &is_bare);
    if (is_bare && nbare == 8) nvf_lex_fail(&p->l, "too many numbers without a dtype");
    if (is_bare) {
      bare[nbare].at = start;
      bare[nbare++].arg = arg.n;
    }
    if (a.kind == NVF_ATILE && first < 0) first = a.id;
    NVB_PUSH(p->l.arena, arg, a);
    if (arg.n > NVF_MAX_LIST) nvf_lex_fail(&p->l, "more than %d operands", NVF_MAX_LIST);
  }
  nvf_lex_expect(&p->l, ")");
  for (int i = 0; i < nbare; i++) {
    nvf_arg *a = &arg.at[bare[i].arg];
    if (first < 0) nvf_lex_fail_at(&p->l, bare[i].at.s, "the number needs a dtype, as in f32(1)");
    a->type = p->k->tile[first].type;
    a->bits = nvf_lex_const(&bare[i].at, a->type);
  }
  s->frag = map_frag(p, at, name, arg.at, arg.n);
  s->narg = arg.n;
  s->arg = arg.at;
  for (int i = 0; i < s->frag->nresult; i++) give_type(m, (nvm_dtype)s->frag->inst[s->frag->result[i]].type);
}

static void call_merge(parser *p, nvf_stmt *s, made *m) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a fragment");
  nvm_dtype type[2 * NVF_MAX_LIST];
  nvf_lex_expect(&p->l, ",");
  tiles in = nvf_parse_tiles(p), carry = { 0 };
  for (int i = 0; i < 2 * in.n; i++) type[i] = p->k->tile[in.id[i % in.n]].type;
  s->frag = nvg_fragset_find(p->k->frags, name, type, 2 * in.n);
  check_found(p, at, s->frag);
  nvf_lex_expect(&p->l, ",");
  s->axis = nvf_take_axis(p);
  if (s->op == NVF_REDUCE) {
    nvf_lex_expect(&p->l, ",");
    s->red_order = nvf_add_name(p->k, nvf_lex_name(&p->l, "the name of an order"));
  }
  nvf_parse_keywords(p, s, 0, in.n, in.id, s->op == NVF_SCAN ? &carry : NULL);
  give_tiles(p, m, &in);
  give_tiles(p, m, &carry);
  if (in.n + carry.n > NVF_MAX_LIST) nvf_lex_fail_at(&p->l, at, "too many tiles");
  for (int i = 0; i < carry.n; i++) in.id[in.n++] = carry.id[i];
  use_tiles(p, s, &in);
}

static void call_reduce(parser *p, nvf_stmt *s, made *m) { call_merge(p, s, m); }
static void call_scan(parser *p, nvf_stmt *s, made *m) { call_merge(p, s, m); }

static tiles take_leading_tiles(parser *p, int n) { /* n tiles, each followed by a comma */
  tiles t = { 0 };
  for (int i = 0; i < n; i++) {
    nvf_push_tile(p, &t, nvf_take_tile(p));
    nvf_lex_expect(&p->l, ",");
  }
  return t;
}

/* ends a call that makes a result for each operand */
static void as_many(parser *p, nvf_stmt *s, const tiles *in, made *m) {
  nvf_lex_expect(&p->l, ")");
  use_tiles(p, s, in);
  give_tiles(p, m, in);
}

static int at_tile(parser *p) {
  nvf_lex save = p->l;
  const nvf_name_entry *e = nvf_look_up_name(p, nvf_lex_name(&p->l, "a tile or a layout"));
  p->l = save;
  return nvf_is_tile_entry(e);
}

static void call_relayout(parser *p, nvf_stmt *s, made *m) {
  tiles in = { 0 };
  for (; at_tile(p); nvf_lex_expect(&p->l, ",")) nvf_push_tile(p, &in, nvf_take_tile(p));
  nvf_parse_layout(p, s);
  as_many(p, s, &in, m);
}

static void call_dft(parser *p, nvf_stmt *s, made *m) {
  tiles in = take_leading_tiles(p, 1);
  int real = !at_tile(p);
  if (!real) nvf_push_tile(p, &in, nvf_take_tile(p));
  if (!real) nvf_lex_expect(&p->l, ",");
  s->axis = nvf_take_axis(p);
  nvf_lex_expect(&p->l, ",");
  s->sign = nvf_lex_accept(&p->l, "-") ? -1 : 1;
  const char *at = p->l.s;
  if (nvf_lex_int(&p->l) != 1) nvf_lex_fail_at(&p->l, at, "the sign is 1 or -1");
  for (int i = 0; i < 2; i++) give_type(m, p->k->tile[*in.id].type);
  while (!real && !nvf_lex_is(&p->l, ")")) {
    nvf_lex_expect(&p->l, ",");
    nvf_push_tile(p, &in, nvf_take_tile(p));
  }
  nvf_lex_expect(&p->l, ")");
  use_tiles(p, s, &in);
}

static void call_put(parser *p, nvf_stmt *s, made *m) {
  tiles in = take_leading_tiles(p, 1), axes = { 0 };
  nvf_lex_expect(&p->l, "[");
  do nvf_push_tile(p, &axes, nvf_take_axis(p));
  while (nvf_lex_accept(&p->l, ","));
  nvf_lex_expect(&p->l, "]");
  s->norder = axes.n;
  s->order = nvb_dup(p->l.arena, axes.id, sizeof(int) * (size_t)axes.n);
  as_many(p, s, &in, m);
}

static void call_get(parser *p, nvf_stmt *s, made *m) {
  tiles in = take_leading_tiles(p, 1);
  nvf_parse_layout(p, s);
  as_many(p, s, &in, m);
}

static void call_contract(parser *p, nvf_stmt *s, made *m) {
  tiles in = take_leading_tiles(p, 3);
  s->axis = nvf_take_axis(p);
  nvf_lex_expect(&p->l, ")");
  use_tiles(p, s, &in);
  give_type(m, p->k->tile[in.id[0]].type);
}

/* ends a call that makes one tile of a layout */
static void make_tile(parser *p, nvf_stmt *s, made *m, nvm_dtype t) {
  nvf_lex_expect(&p->l, ",");
  nvf_parse_layout(p, s);
  nvf_lex_expect(&p->l, ")");
  give_type(m, t);
}

static void call_zeros(parser *p, nvf_stmt *s, made *m) {
  const char *at = p->l.s;
  nvm_dtype t = (nvm_dtype)nvf_lex_type(&p->l);
  if (is_pair(t)) nvf_lex_fail_at(&p->l, at, "a tile is real");
  make_tile(p, s, m, t);
}

static void call_index(parser *p, nvf_stmt *s, made *m) {
  s->map = nvf_parse_expression(p);
  make_tile(p, s, m, NVM_I64);
}

static void call_test(parser *p, nvf_stmt *s, made *m) {
  s->where = nvf_parse_condition(p);
  make_tile(p, s, m, NVM_BOOL);
}

static void call_check(parser *p, nvf_stmt *s, made *m) {
  (void)m;
  s->where = nvf_parse_condition(p);
  if (nvf_lex_accept(&p->l, ",")) nvf_parse_layout(p, s);
  nvf_lex_expect(&p->l, ")");
}

static const struct parse_call {
  const char *name;
  nvf_op op;
  void (*read)(parser *, nvf_stmt *, made *);
} calls[] = {
#define OPERATION(id, word, ...) { #word, NVF_##id, call_##word },
#include "kernel/statements.def"
};

/* ---- statements */
static void parse_block(parser *p, nvf_block *b);

/* A name on the left: a new tile, or a carried one that is assigned again. */
static int assign_tile(parser *p, const char *at, const char *name, nvm_dtype type) {
  const nvf_name_entry *e = nvf_look_up_name(p, name);
  if (e && e->kind != NVF_SEEN_CARRIED) nvf_lex_fail_at(&p->l, at, "'%s' is assigned already", name);
  if (e) {
    if (p->k->tile[e->id].type != type) nvf_lex_fail_at(&p->l, at, "'%s' would change its dtype", name);
    return e->id;
  }
  int id = nvf_add_tile(p->k, type, name);
  nvf_declare_name(p, name, NVF_SEEN_TILE, id);
  return id;
}

static void parse_call(parser *p, nvf_block *b) {
  struct { const char *at, *name; } left[NVF_MAX_LIST];
  int nleft = 0;
  const char *at = p->l.s, *word = nvf_lex_name(&p->l, "a statement");
  if (!nvf_lex_is(&p->l, "(")) {
    for (;; at = p->l.s, word = nvf_lex_name(&p->l, "a tile")) {
      if (nleft == NVF_MAX_LIST) nvf_lex_fail(&p->l, "more than %d tiles", NVF_MAX_LIST);
      left[nleft].at = at;
      left[nleft++].name = word;
      if (!nvf_lex_accept(&p->l, ",")) break;
    }
    nvf_lex_expect(&p->l, "=");
    at = p->l.s;
    word = nvf_lex_name(&p->l, "an operation");
  }
  const struct parse_call *c = NULL;
  for (size_t i = 0; i < sizeof calls / sizeof *calls && !c; i++)
    if (strcmp(calls[i].name, word) == 0) c = &calls[i];
  if (!c) nvf_lex_fail_at(&p->l, at, "there is no operation '%s'", word);
  made m = { 0 };
  int out[NVF_MAX_LIST];
  nvf_lex_expect(&p->l, "(");
  nvf_stmt *s = nvf_add_stmt(p->k, b, c->op);
  c->read(p, s, &m);
  if (m.n != nleft) nvf_lex_fail_at(&p->l, at, "%s makes %d tile%s, not %d", word, m.n, m.n == 1 ? "" : "s", nleft);
  for (int i = 0; i < nleft; i++) {
    out[i] = assign_tile(p, left[i].at, left[i].name, m.type[i]);
    p->k->tile[out[i]].shared = nvf_op_get(c->op)->results[0] == 's';
  }
  nvf_set(p->k, s, nleft, out, s->nin, s->in);
}

static void parse_loop(parser *p, nvf_block *b) {
  nvf_stmt *s = nvf_add_stmt(p->k, b, NVF_FOR);
  NVB_VEC(struct nvf_carry) carry = { 0 };
  const char *name = nvf_lex_name(&p->l, "a loop variable");
  nvf_lex_expect(&p->l, "in");
  nvf_lex_expect(&p->l, "range");
  nvf_lex_expect(&p->l, "(");
  s->lo = nvf_parse_expression(p);
  nvf_lex_expect(&p->l, ",");
  s->hi = nvf_parse_expression(p);
  nvf_lex_expect(&p->l, ",");
  s->step = nvf_parse_expression(p);
  nvf_lex_expect(&p->l, ")");
  s->var = nvf_add_var(p->k, name);
  s->body = nvf_new_block(p->k);
  int outside = p->scope.n;
  if (nvf_lex_accept(&p->l, "carry")) {
    nvf_lex_expect(&p->l, "(");
    do {
      const char *inner = nvf_lex_name(&p->l, "a carried tile");
      nvf_lex_expect(&p->l, "=");
      int outer = nvf_take_tile(p);
      struct nvf_carry c = { nvf_add_tile(p->k, p->k->tile[outer].type, inner), outer };
      NVB_PUSH(p->l.arena, carry, c);
      nvf_declare_name(p, inner, NVF_SEEN_CARRIED, c.inner);
    } while (nvf_lex_accept(&p->l, ","));
    nvf_lex_expect(&p->l, ")");
  }
  nvf_declare_name(p, name, NVF_SEEN_VAR, s->var);
  s->ncarry = carry.n;
  s->carry = carry.at;
  parse_block(p, s->body);
  nvf_leave_scope(p, outside);
}

static void parse_branch(parser *p, nvf_block *b) {
  nvf_stmt *s = nvf_add_stmt(p->k, b, NVF_IF);
  int outside = p->scope.n;
  s->where = nvf_parse_condition(p);
  s->body = nvf_new_block(p->k);
  parse_block(p, s->body);
  nvf_leave_scope(p, outside);
  if (!nvf_lex_accept(&p->l, "else")) return;
  s->other_body = nvf_new_block(p->k);
  parse_block(p, s->other_body);
  nvf_leave_scope(p, outside);
}

static void parse_block(parser *p, nvf_block *b) {
  nvf_enter_scope(p);
  nvf_lex_expect(&p->l, "{");
  while (!nvf_lex_accept(&p->l, "}")) {
    if (nvf_lex_accept(&p->l, ";")) continue;
    p->terms = 0;
    if (nvf_lex_accept(&p->l, "for")) parse_loop(p, b);
    else if (nvf_lex_accept(&p->l, "if")) parse_branch(p, b);
    else parse_call(p, b);
  }
  p->depth--;
}

/* ---- the kernel */
static void parse_bounds(parser *p, nvf_param *q) {
  const char *at = p->l.s;
  if (!nvf_lex_accept(&p->l, "(")) return;
  q->least = nvf_lex_int(&p->l);
  nvf_lex_expect(&p->l, ",");
  q->most = nvf_lex_int(&p->l);
  nvf_lex_expect(&p->l, ")");
  if (q->most < 1 || q->least > q->most) nvf_lex_fail_at(&p->l, at, "no size is within these bounds");
}

/* (type, n, sign, length) */
static void parse_roots(parser *p, const char *name) {
  nvf_lex_expect(&p->l, "(");
  const char *at = p->l.s;
  nvm_dtype t = (nvm_dtype)nvf_lex_type(&p->l);
  struct nvf_roots r = { 0 };
  nvf_lex_expect(&p->l, ",");
  r.n = nvf_lex_int(&p->l);
  nvf_lex_expect(&p->l, ",");
  r.sign = nvf_lex_accept(&p->l, "-") ? -1 : 1;
  int64_t one = nvf_lex_int(&p->l);
  nvf_lex_expect(&p->l, ",");
  r.length = nvf_lex_int(&p->l);
  nvf_lex_expect(&p->l, ")");
  if (!is_pair(t)) nvf_lex_fail_at(&p->l, at, "roots of unity are complex");
  if (one != 1) nvf_lex_fail_at(&p->l, at, "the sign is 1 or -1");
  if (r.length < 1 || r.length > NVF_ROOTS_MOST || r.n < r.length || r.n > INT32_MAX)
    nvf_lex_fail_at(&p->l, at, "a table has 1 to %d elements, at most n", NVF_ROOTS_MOST);
  int id = nvf_add_param(p->k, NVF_ROOTS, t, name);
  p->k->param[id].roots = r;
  nvf_declare_name(p, name, NVF_SEEN_PARAM, id);
}

static void parse_param(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a parameter");
  if (nvf_look_up_name(p, name)) nvf_lex_fail_at(&p->l, at, "'%s' is a parameter already", name);
  nvf_lex_expect(&p->l, ":");
  if (nvf_lex_accept(&p->l, "size")) {
    int size = nvf_add_param(p->k, NVF_SIZE, NVM_I64, name);
    parse_bounds(p, &p->k->param[size]);
    nvf_declare_name(p, name, NVF_SEEN_PARAM, size);
    return;
  }
  if (nvf_lex_accept(&p->l, "roots")) {
    parse_roots(p, name);
    return;
  }
  int written = nvf_lex_accept(&p->l, "mut"), unique = nvf_lex_accept(&p->l, "unique");
  at = p->l.s;
  nvm_dtype t = (nvm_dtype)nvf_lex_type(&p->l);
  int buffer = nvf_lex_accept(&p->l, "[");
  if (buffer) nvf_lex_expect(&p->l, "]");
  else if (written || unique || is_pair(t))
    nvf_lex_fail_at(&p->l, at, "'[]' is missing: a scalar is real and read only");
  int id = nvf_add_param(p->k, buffer ? NVF_BUFFER : NVF_SCALAR, t, name);
  p->k->param[id].written = written;
  p->k->param[id].unique = unique;
  nvf_declare_name(p, name, NVF_SEEN_PARAM, id);
}

static void parse_part(parser *p) {
  nvf_lex_expect(&p->l, "grid");
  nvf_lex_expect(&p->l, "(");
  nvf_part *part = nvf_add_part(p->k);
  int outside = p->scope.n;
  NVB_VEC(const char *) names = { 0 };
  for (int first = 1; !nvf_lex_accept(&p->l, ")"); first = 0) {
    if (!first) nvf_lex_expect(&p->l, ",");
    const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a grid axis");
    if (nvf_look_up_name(p, name)) nvf_lex_fail_at(&p->l, at, "'%s' stands for something else", name);
    nvf_lex_expect(&p->l, "=");
    nvf_add_grid(p->k, part, name, nvf_parse_expression(p));
    NVB_PUSH(p->l.arena, names, name);
  }
  for (int i = 0; i < names.n; i++) nvf_declare_name(p, names.at[i], NVF_SEEN_GRID, i);
  parse_block(p, &part->body);
  nvf_leave_scope(p, outside);
}

static void parse_kernel(parser *p) {
  nvf_lex_expect(&p->l, "kernel");
  p->k->title = nvf_lex_name(&p->l, "the name of the kernel");
  nvf_lex_expect(&p->l, "(");
  for (int first = 1; !nvf_lex_accept(&p->l, ")"); first = 0) {
    if (!first) nvf_lex_expect(&p->l, ",");
    parse_param(p);
  }
  nvf_lex_expect(&p->l, "{");
  while (!nvf_lex_accept(&p->l, "}")) parse_part(p);
}

/* ---- the whole text */
static void parse_schedule(parser *p) {
  nvf_kernel *k = p->k;
  nvf_lex_expect(&p->l, "schedule");
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "the name of the schedule");
  if (nvf_schedule_find(k, name)) nvf_lex_fail_at(&p->l, at, "there are two schedules '%s'", name);
  nvf_schedule *s = nvf_schedule_new(k);
  nvf_lex_expect(&p->l, "{");
  nvf_schedule_read(&p->l, k, s);
  nvf_lex_expect(&p->l, "}");
  const char **names = NVB_NEWN(k->arena, const char *, k->nsched + 1);
  nvf_schedule **all = NVB_NEWN(k->arena, nvf_schedule *, k->nsched + 1);
  if (k->nsched) memcpy(names, k->sched_name, sizeof *names * (size_t)k->nsched);
  if (k->nsched) memcpy(all, k->sched, sizeof *all * (size_t)k->nsched);
  names[k->nsched] = name;
  all[k->nsched++] = s;
  k->sched_name = names;
  k->sched = all;
}

static int at_ours(parser *p) { return nvf_lex_is(&p->l, "kernel") || nvf_lex_is(&p->l, "schedule"); }

nvf_kernel *nvf_kernel_parse(nvb_arena *a, const char *text, const char *where) {
  parser p = { .k = nvf_kernel_new(a, ""), .scoped = nvb_map_new(a) };
  nvf_lex_open(&p.l, a, text, where);
  nvg_fragset_parse(p.k->frags, nvf_lex_fragments(&p.l), where);
  int kernels = 0;
  for (nvf_lex_open(&p.l, a, text, where); p.l.kind != NVF_T_END;) {
    if (at_ours(&p)) {
      int is_kernel = nvf_lex_is(&p.l, "kernel");
      if (is_kernel && kernels++) nvf_lex_fail(&p.l, "a text holds one kernel");
      if (!is_kernel && !kernels) nvf_lex_fail(&p.l, "a schedule stands behind its kernel");
      (is_kernel ? parse_kernel : parse_schedule)(&p);
      nvf_leave_scope(&p, is_kernel ? 0 : p.scope.n);
      continue;
    }
    while (p.l.kind != NVF_T_END && !nvf_lex_is(&p.l, "{")) nvf_lex_next(&p.l);
    for (int depth = 0; p.l.kind != NVF_T_END;) {
      depth += nvf_lex_is(&p.l, "{") - nvf_lex_is(&p.l, "}");
      nvf_lex_next(&p.l);
      if (depth == 0) break;
    }
  }
  if (!kernels) nvf_lex_fail(&p.l, "there is no kernel in the text");
  return p.k;
}
