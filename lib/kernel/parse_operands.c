/* Reads what the statements of kernel text are made of: names in their scopes, index expressions, conditions, layouts,
   lists of tiles and named operands. It decides what each name stands for. */
#include <string.h>
#include "kernel/parse.h"
#include "frag/dtype.h"

typedef nvf_parser parser;
typedef nvf_tiles tiles;

/* ---- names */
void nvf_enter_scope(parser *p) {
  if (++p->depth > NVF_MAX_DEPTH) nvf_lex_fail(&p->l, "nested too deeply");
}

void nvf_declare_name(parser *p, const char *name, nvf_seen kind, int id) {
  int *last = nvb_map_put(p->scoped, name, strlen(name), NULL);
  NVB_PUSH(p->l.arena, p->scope, ((nvf_name_entry){ name, kind, id, *last }));
  *last = p->scope.n;
}

void nvf_leave_scope(parser *p, int outside) {
  while (p->scope.n > outside) {
    const nvf_name_entry *e = &p->scope.at[--p->scope.n];
    *nvb_map_find(p->scoped, e->name, strlen(e->name)) = e->outer;
  }
}

const nvf_name_entry *nvf_look_up_name(parser *p, const char *name) {
  const int *last = nvb_map_find(p->scoped, name, strlen(name));
  return last && *last ? &p->scope.at[*last - 1] : NULL;
}

int nvf_axis_named(parser *p, const char *name) {
  for (int i = 0; i < p->axes.n; i++)
    if (strcmp(p->axes.at[i].name, name) == 0) return p->axes.at[i].id;
  NVB_PUSH(p->l.arena, p->axes, ((nvf_name_entry){ name, NVF_SEEN_VAR, nvf_add_axis(p->k, name), 0 }));
  return p->axes.at[p->axes.n - 1].id;
}

int nvf_take_axis(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "an axis");
  if (nvf_look_up_name(p, name) || nvf_is_schedule_name(name)) nvf_lex_fail_at(&p->l, at, "'%s' is no axis", name);
  return nvf_axis_named(p, name);
}

int nvf_take_tile(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a tile");
  const nvf_name_entry *e = nvf_look_up_name(p, name);
  if (!nvf_is_tile_entry(e)) nvf_lex_fail_at(&p->l, at, "there is no tile '%s' here", name);
  return e->id;
}

int nvf_take_buffer(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a buffer");
  const nvf_name_entry *e = nvf_look_up_name(p, name);
  if (!e || e->kind != NVF_SEEN_PARAM ||
      (p->k->param[e->id].kind != NVF_BUFFER && p->k->param[e->id].kind != NVF_ROOTS))
    nvf_lex_fail_at(&p->l, at, "there is no buffer '%s'", name);
  return e->id;
}

/* ---- index expressions */
static const nvf_expr *name_value(parser *p) {
  const char *at = p->l.s, *name = nvf_lex_name(&p->l, "a name");
  const nvf_name_entry *e = nvf_look_up_name(p, name);
  if (!e && nvf_is_schedule_name(name)) return nvf_x(p->k, NVF_NAME, nvf_add_name(p->k, name), 0);
  if (!e) return nvf_x(p->k, NVF_AXIS, nvf_axis_named(p, name), 0);
  switch (e->kind) {
  case NVF_SEEN_GRID: return nvf_x(p->k, NVF_GRID, e->id, 0);
  case NVF_SEEN_VAR: return nvf_x(p->k, NVF_VAR, e->id, 0);
  case NVF_SEEN_PARAM:
    if (p->k->param[e->id].kind != NVF_SIZE) nvf_lex_fail_at(&p->l, at, "'%s' is no size", name);
    return nvf_x(p->k, NVF_PARAM, e->id, 0);
  default: return nvf_x(p->k, NVF_TILE, e->id, 0);
  }
}

static const nvf_expr *parse_factor(parser *p) {
  const nvf_expr *x;
  nvf_enter_scope(p);
  if (++p->terms > NVF_MAX_TERMS) nvf_lex_fail(&p->l, "the expression is too long");
  if (nvf_lex_accept(&p->l, "-")) x = nvf_x2(p->k, NVF_SUB, nvf_x(p->k, NVF_CONST, 0, 0), parse_factor(p));
  else if (nvf_lex_accept(&p->l, "(")) {
    x = nvf_parse_expression(p);
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

const nvf_expr *nvf_parse_expression(parser *p) {
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

const nvf_cond *nvf_parse_condition(parser *p) {
  const nvf_cond *c = NULL;
  do {
    const char *at = p->l.s;
    p->terms = 0;
    const nvf_expr *a = nvf_parse_expression(p);
    nvf_cmp cmp;
    if (parse_comparison(p, &cmp)) c = nvf_and_rel(p->k, c, cmp, a, nvf_parse_expression(p));
    else if (a->kind == NVF_TILE && p->k->tile[a->id].type == NVM_BOOL) c = nvf_and_tile(p->k, c, a->id);
    else nvf_lex_fail_at(&p->l, at, "a comparison or a bool tile must stand here");
  } while (nvf_lex_accept(&p->l, "&"));
  return c;
}

/* ---- lists and named operands */
void nvf_parse_layout(parser *p, nvf_stmt *s) {
  int only = nvf_lex_accept(&p->l, "only");
  if (only) nvf_lex_expect(&p->l, "(");
  s->layout = nvf_add_name(p->k, nvf_lex_name(&p->l, "the name of a layout"));
  if (!only) return;
  tiles axes = { 0 };
  while (nvf_lex_accept(&p->l, ",")) {
    if (axes.n == NVF_MAX_DIGITS) nvf_lex_fail(&p->l, "too many axes");
    axes.id[axes.n++] = nvf_take_axis(p);
  }
  nvf_lex_expect(&p->l, ")");
  s->nonly = axes.n;
  s->only = nvb_dup(p->l.arena, axes.id, sizeof(int) * (size_t)axes.n);
}

void nvf_push_tile(parser *p, tiles *t, int id) {
  if (t->n == NVF_MAX_LIST) nvf_lex_fail(&p->l, "more than %d tiles", NVF_MAX_LIST);
  t->id[t->n++] = id;
}

tiles nvf_parse_tiles(parser *p) {
  tiles t = { 0 };
  if (!nvf_lex_accept(&p->l, "(")) {
    nvf_push_tile(p, &t, nvf_take_tile(p));
    return t;
  }
  do nvf_push_tile(p, &t, nvf_take_tile(p));
  while (nvf_lex_accept(&p->l, ","));
  nvf_lex_expect(&p->l, ")");
  return t;
}

static void refuse_twice(parser *p, const char *at, int twice) {
  if (twice) nvf_lex_fail_at(&p->l, at, "given twice");
}

int nvf_take_keyword(parser *p, const char *name) {
  nvf_lex save = p->l;
  if (nvf_lex_accept(&p->l, ",") && nvf_lex_accept(&p->l, name) && nvf_lex_accept(&p->l, "=")) return 1;
  p->l = save;
  return 0;
}

void nvf_parse_keywords(parser *p, nvf_stmt *s, int others, int states, const int *state, tiles *carry) {
  for (;;) {
    const char *at = p->l.p;
    if (nvf_take_keyword(p, "where")) {
      refuse_twice(p, at, s->where != NULL);
      s->where = nvf_parse_condition(p);
    } else if (others && nvf_take_keyword(p, "other")) {
      refuse_twice(p, at, s->has_other);
      s->other = nvf_lex_const(&p->l, nvg_real_of(p->k->param[s->buf].type));
      s->has_other = 1;
    } else if (states && nvf_take_keyword(p, "init")) {
      refuse_twice(p, at, s->init != NULL);
      s->init = NVB_NEWN(p->l.arena, uint64_t, states);
      nvf_lex_expect(&p->l, "(");
      for (int i = 0; i < states; i++) {
        if (i) nvf_lex_expect(&p->l, ",");
        s->init[i] = nvf_lex_const(&p->l, p->k->tile[state[i]].type);
      }
      nvf_lex_expect(&p->l, ")");
    } else if (carry && nvf_take_keyword(p, "carry")) {
      refuse_twice(p, at, carry->n != 0);
      *carry = nvf_parse_tiles(p);
    } else break;
  }
  nvf_lex_expect(&p->l, ")");
}
