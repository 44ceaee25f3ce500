/* The parser of kernel text: recursive descent over the grammar of kernel-text.md, which calls the builder (build.c).
   It decides what each name stands for and the dtype of every tile; layouts and all other meaning are left to the
   checker (check.c). */
#include <string.h>
#include "base/err.h"
#include "kernel/lex.h"
#include "kernel/kernel.h"
#include "frag/dtype.h"

enum {
  MAX_DEPTH = 64,
  MAX_LIST = 160,
  MAX_TERMS = 4096
  /* limits: depth of nested expressions and blocks; tiles of a list; terms of a condition, or of the rest of a
   statement */
};

typedef enum seen { S_PARAM, S_GRID, S_VAR, S_TILE, S_CARRIED } seen; /* CARRIED: a tile that may be assigned again */
typedef struct name_entry {
  const char *name;
  seen kind;
  int id, outer; /* outer: the value of parser.scoped before this entry was declared */
} name_entry;
typedef struct parser {
  nvf_lex l;
  nvf_kernel *k;
  NVB_VEC(name_entry) scope;
  nvb_map *scoped;          /* name -> 1 + the last entry of scope with this name; 0: none */
  NVB_VEC(name_entry) axes; /* axes by the names in the text, which the builder may change */
  int depth, terms;
} parser;

typedef struct tiles { int n, id[MAX_LIST]; } tiles;

static void enter_scope(parser *p) {
  if (++p->depth > MAX_DEPTH) nvf_lex_fail(&p->l, "nested too deeply");
}

static void declare_name(parser *p, const char *name, seen kind, int id) {
  int *last = nvb_map_put(p->scoped, name, strlen(name), NULL);
  NVB_PUSH(p->l.arena, p->scope, ((name_entry){ name, kind, id, *last }));
  *last = p->scope.n;
}

static void leave_scope(parser *p,
                        int outside) { /* removes the entries declared since the scope had `outside` entries */
  while (p->scope.n > outside) {
    const name_entry *e = &p->scope.at[--p->scope.n];
    *nvb_map_find(p->scoped, e->name, strlen(e->name)) = e->outer;
  }
}

static const name_entry *look_up_name(parser *p, const char *name) {
  const int *last = nvb_map_find(p->scoped, name, strlen(name));
  return last && *last ? &p->scope.at[*last - 1] : NULL;
}

static int is_upper(const char *name) { return name[0] >= 'A' && name[0] <= 'Z'; }
static int is_tile(const name_entry *e) { return e && (e->kind == S_TILE || e->kind == S_CARRIED); }

static int axis_named(parser *p, const char *name) {
  for (int i = 0; i < p->axes.n; i++)
    if (strcmp(p->axes.at[i].name, name) == 0) return p->axes.at[i].id;
  NVB_PUSH(p->l.arena, p->axes, ((name_entry){ name, S_VAR, nvf_add_axis(p->k, name), 0 }));
  return p->axes.at[p->axes.n - 1].id;
}

static int take_axis(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "an axis");
  if (look_up_name(p, name) || is_upper(name)) nvf_lex_fail_at(&p->l, at, "'%s' is no axis", name);
  return axis_named(p, name);
}

static int take_tile(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a tile");
  const name_entry *e = look_up_name(p, name);
  if (!is_tile(e)) nvf_lex_fail_at(&p->l, at, "there is no tile '%s' here", name);
  return e->id;
}

static int take_buffer(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a buffer");
  const name_entry *e = look_up_name(p, name);
  if (!e || e->kind != S_PARAM || p->k->param[e->id].kind != NVF_BUFFER)
    nvf_lex_fail_at(&p->l, at, "there is no buffer '%s'", name);
  return e->id;
}

/* ---- index expressions */
static const nvf_expr *parse_expression(parser *p);

static const nvf_expr *name_value(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a name");
  const name_entry *e = look_up_name(p, name);
  if (!e && is_upper(name)) return nvf_x(p->k, NVF_NAME, nvf_add_name(p->k, name), 0);
  if (!e) return nvf_x(p->k, NVF_AXIS, axis_named(p, name), 0);
  switch (e->kind) {
  case S_GRID: return nvf_x(p->k, NVF_GRID, e->id, 0);
  case S_VAR: return nvf_x(p->k, NVF_VAR, e->id, 0);
  case S_PARAM:
    if (p->k->param[e->id].kind != NVF_SIZE) nvf_lex_fail_at(&p->l, at, "'%s' is no size", name);
    return nvf_x(p->k, NVF_PARAM, e->id, 0);
  default: return nvf_x(p->k, NVF_TILE, e->id, 0);
  }
}

static const nvf_expr *parse_factor(parser *p) {
  const nvf_expr *x;
  enter_scope(p);
  if (++p->terms > MAX_TERMS) nvf_lex_fail(&p->l, "the expression is too long");
  if (nvf_lex_accept(&p->l, "-")) x = nvf_x2(p->k, NVF_SUB, nvf_x(p->k, NVF_CONST, 0, 0), parse_factor(p));
  else if (nvf_lex_accept(&p->l, "(")) {
    x = parse_expression(p);
    nvf_lex_expect(&p->l, ")");
  } else x = p->l.kind == NVF_T_NUMBER ? nvf_x(p->k, NVF_CONST, 0, nvf_lex_int(&p->l)) : name_value(p);
  p->depth--;
  return x;
}

static const nvf_expr *parse_term(parser *p) {
  const nvf_expr *x = parse_factor(p);
  for (;;) {
    nvf_xkind kind = nvf_lex_is(&p->l, "*")    ? NVF_MUL
                     : nvf_lex_is(&p->l, "//") ? NVF_DIV
                     : nvf_lex_is(&p->l, "%")  ? NVF_MOD
                                               : NVF_CONST;
    if (kind == NVF_CONST) return x;
    nvf_lex_next(&p->l);
    x = nvf_x2(p->k, kind, x, parse_factor(p));
  }
}

static const nvf_expr *parse_expression(parser *p) {
  const nvf_expr *x = parse_term(p);
  for (;;) {
    nvf_xkind kind = nvf_lex_is(&p->l, "+") ? NVF_ADD : nvf_lex_is(&p->l, "-") ? NVF_SUB : NVF_CONST;
    if (kind == NVF_CONST) return x;
    nvf_lex_next(&p->l);
    x = nvf_x2(p->k, kind, x, parse_term(p));
  }
}

static int parse_comparison(parser *p, nvf_cmp *c) {
  static const char *const text[] = { [NVF_LT] = "<",  [NVF_LE] = "<=", [NVF_EQ] = "==",
                                      [NVF_NE] = "!=", [NVF_GE] = ">=", [NVF_GT] = ">" };
  for (int i = NVF_LT; i <= NVF_GT; i++)
    if (nvf_lex_accept(&p->l, text[i])) {
      *c = (nvf_cmp)i;
      return 1;
    }
  return 0;
}

static const nvf_cond *parse_condition(parser *p) {
  const nvf_cond *c = NULL;
  do {
    const char *at = p->l.s;
    p->terms = 0;
    const nvf_expr *a = parse_expression(p);
    nvf_cmp cmp;
    if (parse_comparison(p, &cmp)) c = nvf_and_rel(p->k, c, cmp, a, parse_expression(p));
    else if (a->kind == NVF_TILE && p->k->tile[a->id].type == NVM_BOOL) c = nvf_and_tile(p->k, c, a->id);
    else nvf_lex_fail_at(&p->l, at, "a comparison or a bool tile must stand here");
  } while (nvf_lex_accept(&p->l, "&"));
  return c;
}

/* ---- lists and named operands */
static void parse_layout(parser *p, nvf_stmt *s) {
  int only = nvf_lex_accept(&p->l, "only");
  if (only) nvf_lex_expect(&p->l, "(");
  s->layout = nvf_add_name(p->k, nvf_lex_name(&p->l, "the name of a layout"));
  if (!only) return;
  tiles axes = { 0 };
  while (nvf_lex_accept(&p->l, ",")) {
    if (axes.n == NVF_MAX_DIGITS) nvf_lex_fail(&p->l, "too many axes");
    axes.id[axes.n++] = take_axis(p);
  }
  nvf_lex_expect(&p->l, ")");
  s->nonly = axes.n;
  s->only = nvb_dup(p->l.arena, axes.id, sizeof(int) * (size_t)axes.n);
}

static void push_tile(parser *p, tiles *t, int id) {
  if (t->n == MAX_LIST) nvf_lex_fail(&p->l, "more than %d tiles", MAX_LIST);
  t->id[t->n++] = id;
}

static tiles parse_tiles(parser *p) { /* X or (X, ...) */
  tiles t = { 0 };
  if (!nvf_lex_accept(&p->l, "(")) {
    push_tile(p, &t, take_tile(p));
    return t;
  }
  do push_tile(p, &t, take_tile(p));
  while (nvf_lex_accept(&p->l, ","));
  nvf_lex_expect(&p->l, ")");
  return t;
}

static void refuse_twice(parser *p, const char *at, int twice) {
  if (twice) nvf_lex_fail_at(&p->l, at, "given twice");
}

/* Whether `, name =` of an optional operand follows; the caller reads the value. */
static int take_keyword(parser *p, const char *name) {
  nvf_lex save = p->l;
  if (nvf_lex_accept(&p->l, ",") && nvf_lex_accept(&p->l, name) && nvf_lex_accept(&p->l, "=")) return 1;
  p->l = save;
  return 0;
}

static void parse_keywords(parser *p, nvf_stmt *s, int others, int states, const int *state, tiles *carry) {
  for (;;) {
    const char *at = p->l.p;
    if (take_keyword(p, "where")) {
      refuse_twice(p, at, s->where != NULL);
      s->where = parse_condition(p);
    } else if (others && take_keyword(p, "other")) {
      refuse_twice(p, at, s->has_other);
      s->other = nvf_lex_const(&p->l, nvg_real_of(p->k->param[s->buf].type));
      s->has_other = 1;
    } else if (states && take_keyword(p, "init")) {
      refuse_twice(p, at, s->init != NULL);
      s->init = NVB_NEWN(p->l.arena, uint64_t, states);
      nvf_lex_expect(&p->l, "(");
      for (int i = 0; i < states; i++) {
        if (i) nvf_lex_expect(&p->l, ",");
        s->init[i] = nvf_lex_const(&p->l, p->k->tile[state[i]].type);
      }
      nvf_lex_expect(&p->l, ")");
    } else if (carry && take_keyword(p, "carry")) {
      refuse_twice(p, at, carry->n != 0);
      *carry = parse_tiles(p);
    } else break;
  }
  nvf_lex_expect(&p->l, ")");
}

/* ---- the calls: each reads what follows its '(' and leaves the dtypes of its results in `made` */
typedef struct made {
  int n;
  nvm_dtype type[2 * MAX_LIST];
} made;

static void give_type(made *m, nvm_dtype t) { m->type[m->n++] = t; }
static void give_tiles(parser *p, made *m, const tiles *t) {
  for (int i = 0; i < t->n; i++) give_type(m, p->k->tile[t->id[i]].type);
}
static void use_tiles(parser *p, nvf_stmt *s, const tiles *t) { nvf_set(p->k, s, 0, NULL, t->n, t->id); }

static int is_pair(nvm_dtype t) { return nvg_class_of(t) == NVG_COMPLEX; }

static void call_load(parser *p, nvf_stmt *s, made *m) {
  s->buf = take_buffer(p);
  nvf_lex_expect(&p->l, ",");
  s->map = parse_expression(p);
  nvf_lex_expect(&p->l, ",");
  parse_layout(p, s);
  parse_keywords(p, s, 1, 0, NULL, NULL);
  nvm_dtype t = p->k->param[s->buf].type;
  for (int i = 0; i <= is_pair(t); i++) give_type(m, nvg_real_of(t));
}

static void call_write(parser *p, nvf_stmt *s, int pairs) { /* pairs: a complex buffer takes two tiles */
  tiles in = { 0 };
  s->buf = take_buffer(p);
  nvf_lex_expect(&p->l, ",");
  s->map = parse_expression(p);
  for (int i = 0; i <= (pairs && is_pair(p->k->param[s->buf].type)); i++) {
    nvf_lex_expect(&p->l, ",");
    push_tile(p, &in, take_tile(p));
  }
  use_tiles(p, s, &in);
  parse_keywords(p, s, 0, 0, NULL, NULL);
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
  const name_entry *e = look_up_name(p, word);
  if (is_tile(e)) return (nvf_arg){ NVF_ATILE, e->id, 0, p->k->tile[e->id].type };
  if (e && e->kind == S_PARAM && p->k->param[e->id].kind != NVF_BUFFER)
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
  if (is_upper(word)) nvf_lex_fail_at(&p->l, at, "there is no tile '%s' here", word);
  return (nvf_arg){ NVF_AAXIS, axis_named(p, word), 0, NVM_I64 };
}

/* Returns f, or throws why it was not found, at the position of its name; errors that are not the text's are passed
   on. */
static const nvg_frag *check_found(parser *p, const char *at, const nvg_frag *f) {
  if (f) return f;
  if (nvb_status() != NVM_ERR_TYPE) nvb_throw(p->l.arena, nvb_status(), "%s", nvb_strdup(p->l.arena, nvb_message()));
  nvf_lex_fail_at(&p->l, at, "%s", nvb_message());
}

static const nvg_frag *map_frag(parser *p, const char *at, const char *name, const nvf_arg *arg, int n) {
  nvm_dtype type[MAX_LIST];
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
    if (take_keyword(p, "layout")) {
      parse_layout(p, s);
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
    if (arg.n > MAX_LIST) nvf_lex_fail(&p->l, "more than %d operands", MAX_LIST);
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
  nvm_dtype type[2 * MAX_LIST];
  nvf_lex_expect(&p->l, ",");
  tiles in = parse_tiles(p), carry = { 0 };
  for (int i = 0; i < 2 * in.n; i++) type[i] = p->k->tile[in.id[i % in.n]].type;
  s->frag = nvg_fragset_find(p->k->frags, name, type, 2 * in.n);
  check_found(p, at, s->frag);
  nvf_lex_expect(&p->l, ",");
  s->axis = take_axis(p);
  if (s->op == NVF_REDUCE) {
    nvf_lex_expect(&p->l, ",");
    s->red_order = nvf_add_name(p->k, nvf_lex_name(&p->l, "the name of an order"));
  }
  parse_keywords(p, s, 0, in.n, in.id, s->op == NVF_SCAN ? &carry : NULL);
  give_tiles(p, m, &in);
  give_tiles(p, m, &carry);
  if (in.n + carry.n > MAX_LIST) nvf_lex_fail_at(&p->l, at, "too many tiles");
  for (int i = 0; i < carry.n; i++) in.id[in.n++] = carry.id[i];
  use_tiles(p, s, &in);
}

static void call_reduce(parser *p, nvf_stmt *s, made *m) { call_merge(p, s, m); }
static void call_scan(parser *p, nvf_stmt *s, made *m) { call_merge(p, s, m); }

static tiles take_leading_tiles(parser *p, int n) { /* n tiles, each followed by a comma */
  tiles t = { 0 };
  for (int i = 0; i < n; i++) {
    push_tile(p, &t, take_tile(p));
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
  const name_entry *e = look_up_name(p, nvf_lex_name(&p->l, "a tile or a layout"));
  p->l = save;
  return is_tile(e);
}

static void call_relayout(parser *p, nvf_stmt *s, made *m) {
  tiles in = { 0 };
  for (; at_tile(p); nvf_lex_expect(&p->l, ",")) push_tile(p, &in, take_tile(p));
  parse_layout(p, s);
  as_many(p, s, &in, m);
}

static void call_dft(parser *p, nvf_stmt *s, made *m) {
  tiles in = take_leading_tiles(p, 2);
  s->axis = take_axis(p);
  nvf_lex_expect(&p->l, ",");
  s->sign = nvf_lex_accept(&p->l, "-") ? -1 : 1;
  const char *at = p->l.s;
  if (nvf_lex_int(&p->l) != 1) nvf_lex_fail_at(&p->l, at, "the sign is 1 or -1");
  for (int i = 0; i < 2; i++) give_type(m, p->k->tile[in.id[i]].type);
  if (!nvf_lex_is(&p->l, ")"))
    for (int i = 0; i < 2; i++) {
      nvf_lex_expect(&p->l, ",");
      push_tile(p, &in, take_tile(p));
    }
  nvf_lex_expect(&p->l, ")");
  use_tiles(p, s, &in);
}

static void call_put(parser *p, nvf_stmt *s, made *m) {
  tiles in = take_leading_tiles(p, 1), axes = { 0 };
  nvf_lex_expect(&p->l, "[");
  do push_tile(p, &axes, take_axis(p));
  while (nvf_lex_accept(&p->l, ","));
  nvf_lex_expect(&p->l, "]");
  s->norder = axes.n;
  s->order = nvb_dup(p->l.arena, axes.id, sizeof(int) * (size_t)axes.n);
  as_many(p, s, &in, m);
}

static void call_get(parser *p, nvf_stmt *s, made *m) {
  tiles in = take_leading_tiles(p, 1);
  parse_layout(p, s);
  as_many(p, s, &in, m);
}

static void call_contract(parser *p, nvf_stmt *s, made *m) {
  tiles in = take_leading_tiles(p, 3);
  s->axis = take_axis(p);
  nvf_lex_expect(&p->l, ")");
  use_tiles(p, s, &in);
  give_type(m, p->k->tile[in.id[0]].type);
}

/* ends a call that makes one tile of a layout */
static void make_tile(parser *p, nvf_stmt *s, made *m, nvm_dtype t) {
  nvf_lex_expect(&p->l, ",");
  parse_layout(p, s);
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
  s->map = parse_expression(p);
  make_tile(p, s, m, NVM_I64);
}

static void call_test(parser *p, nvf_stmt *s, made *m) {
  s->where = parse_condition(p);
  make_tile(p, s, m, NVM_BOOL);
}

static void call_check(parser *p, nvf_stmt *s, made *m) {
  (void)m;
  s->where = parse_condition(p);
  if (nvf_lex_accept(&p->l, ",")) parse_layout(p, s);
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
  const name_entry *e = look_up_name(p, name);
  if (e && e->kind != S_CARRIED) nvf_lex_fail_at(&p->l, at, "'%s' is assigned already", name);
  if (e) {
    if (p->k->tile[e->id].type != type) nvf_lex_fail_at(&p->l, at, "'%s' would change its dtype", name);
    return e->id;
  }
  int id = nvf_add_tile(p->k, type, name);
  declare_name(p, name, S_TILE, id);
  return id;
}

static void parse_call(parser *p, nvf_block *b) {
  struct { const char *at, *name; } left[MAX_LIST];
  int nleft = 0;
  const char *at = p->l.s, *word = nvf_lex_name(&p->l, "a statement");
  if (!nvf_lex_is(&p->l, "(")) {
    for (;; at = p->l.s, word = nvf_lex_name(&p->l, "a tile")) {
      if (nleft == MAX_LIST) nvf_lex_fail(&p->l, "more than %d tiles", MAX_LIST);
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
  int out[MAX_LIST];
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
  s->lo = parse_expression(p);
  nvf_lex_expect(&p->l, ",");
  s->hi = parse_expression(p);
  nvf_lex_expect(&p->l, ",");
  s->step = parse_expression(p);
  nvf_lex_expect(&p->l, ")");
  s->var = nvf_add_var(p->k, name);
  s->body = nvf_new_block(p->k);
  int outside = p->scope.n;
  if (nvf_lex_accept(&p->l, "carry")) {
    nvf_lex_expect(&p->l, "(");
    do {
      const char *inner = nvf_lex_name(&p->l, "a carried tile");
      nvf_lex_expect(&p->l, "=");
      int outer = take_tile(p);
      struct nvf_carry c = { nvf_add_tile(p->k, p->k->tile[outer].type, inner), outer };
      NVB_PUSH(p->l.arena, carry, c);
      declare_name(p, inner, S_CARRIED, c.inner);
    } while (nvf_lex_accept(&p->l, ","));
    nvf_lex_expect(&p->l, ")");
  }
  declare_name(p, name, S_VAR, s->var);
  s->ncarry = carry.n;
  s->carry = carry.at;
  parse_block(p, s->body);
  leave_scope(p, outside);
}

static void parse_branch(parser *p, nvf_block *b) {
  nvf_stmt *s = nvf_add_stmt(p->k, b, NVF_IF);
  int outside = p->scope.n;
  s->where = parse_condition(p);
  s->body = nvf_new_block(p->k);
  parse_block(p, s->body);
  leave_scope(p, outside);
  if (!nvf_lex_accept(&p->l, "else")) return;
  s->other_body = nvf_new_block(p->k);
  parse_block(p, s->other_body);
  leave_scope(p, outside);
}

static void parse_block(parser *p, nvf_block *b) {
  enter_scope(p);
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

static void parse_param(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a parameter");
  if (look_up_name(p, name)) nvf_lex_fail_at(&p->l, at, "'%s' is a parameter already", name);
  nvf_lex_expect(&p->l, ":");
  if (nvf_lex_accept(&p->l, "size")) {
    int size = nvf_add_param(p->k, NVF_SIZE, NVM_I64, name);
    parse_bounds(p, &p->k->param[size]);
    declare_name(p, name, S_PARAM, size);
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
  declare_name(p, name, S_PARAM, id);
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
    if (look_up_name(p, name)) nvf_lex_fail_at(&p->l, at, "'%s' stands for something else", name);
    nvf_lex_expect(&p->l, "=");
    nvf_add_grid(p->k, part, name, parse_expression(p));
    NVB_PUSH(p->l.arena, names, name);
  }
  for (int i = 0; i < names.n; i++) declare_name(p, names.at[i], S_GRID, i);
  parse_block(p, &part->body);
  leave_scope(p, outside);
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
      leave_scope(&p, is_kernel ? 0 : p.scope.n);
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
