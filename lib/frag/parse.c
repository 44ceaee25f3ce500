/* Compiles the body of a definition for concrete types, directly from the text in one pass; a definition with a `rare`
   flag is compiled twice, as fast and as full form. Grammar: fragments.md. It never selects between definitions. */
#include "frag/set.h"
#include <string.h>

enum { MAX_NEST = 256, FEW = 6 };

/* ---- compiling one body */
typedef struct value {
  int inst, weak, neg, hex, nmulti;
  uint64_t mag;
  slice text;
  int *multi;
  /* weak: 0 for a typed value, 'i' or 'f' for an untyped literal; inst: its instruction; mag, neg, hex, text: the
   literal; multi: the results of a call that has several */
} value;
typedef struct name_value {
  slice name;
  value v;
} name_value;
typedef struct compiler {
  lexer l;
  nvg_fragset *s;
  const def *d;
  const int *bound;
  nvg_build *b;
  NVB_VEC(name_value) env;
  int loop_env; /* names below this index belong to outside the innermost loop */
  int full, rare, rare_ok, nest;
  int *result, nresult;
} compiler;

static value parse_expression(compiler *c, int level);

static value typed_value(int inst) { return (value){ .inst = inst }; }
static int type_at(compiler *c, int inst) { return nvg_build_type(c->b, inst); }

/* Emits an untyped literal as a constant of type t. */
static int emit_literal(compiler *c, const value *v, int t) {
  uint64_t bits;
  nvg_class cls = nvg_class_of((nvm_dtype)t);
  if (nvg_is_narrow((nvm_dtype)t) || cls == NVG_BOOLEAN)
    nvg_lex_fail(&c->l, "a number cannot be of type %s here", nvg_dtype_short((nvm_dtype)t));
  if (cls == NVG_FLOAT)
    bits = v->weak == 'i' ? nvg_lex_float_of_int(t, v->mag, v->neg) : nvg_lex_float(t, v->text, v->neg);
  else if (v->weak != 'i' || !nvg_lex_whole(&bits, (nvm_dtype)t, v->mag, v->neg, v->hex))
    nvg_lex_fail(&c->l, "the literal does not fit %s", nvg_dtype_short((nvm_dtype)t));
  return nvg_emit_const(c->b, (nvm_dtype)t, bits);
}

static int emit_single(compiler *c, const value *v, int t) {
  if (v->nmulti) nvg_lex_fail(&c->l, "one value is wanted, the call gives %d", v->nmulti);
  if (!v->weak) return v->inst;
  if (t < 0) nvg_lex_fail(&c->l, "the literal needs a type, as in f32(1)");
  return emit_literal(c, v, t);
}

static value emit_prim(compiler *c, nvg_prim p, const value *v) {
  int t[3] = { -1, -1, -1 }, op[3] = { -1, -1, -1 };
  const nvg_prim_info *info = &nvg_prims[p];
  for (int i = 0; i < info->n; i++) {
    int like = -1;
    for (int j = 0; j < info->n; j++)
      if (info->in[i] == info->in[j] && !v[j].weak && !v[j].nmulti) like = type_at(c, v[j].inst);
    op[i] = emit_single(c, &v[i], like);
    t[i] = type_at(c, op[i]);
  }
  int type = nvg_prim_type(p, t, -1);
  if (type < 0) {
    const char *name[3];
    for (int i = 0; i < 3; i++) name[i] = i < info->n ? nvg_dtype_short((nvm_dtype)t[i]) : "";
    nvg_lex_fail(&c->l, "%s does not take (%s%s%s%s%s)", info->text, name[0], info->n > 1 ? ", " : "", name[1],
                 info->n > 2 ? ", " : "", name[2]);
  }
  return typed_value(nvg_emit(c->b, p, (nvm_dtype)type, op[0], op[1], op[2]));
}

/* Arithmetic between two untyped integers stays untyped. */
static value weak_binary(compiler *c, nvg_prim p, const value *x, const value *y) {
  __extension__ typedef __int128 wide;
  wide a = x->neg ? -(wide)x->mag : (wide)x->mag, b = y->neg ? -(wide)y->mag : (wide)y->mag, r = 0;
  int ok = x->weak == 'i' && y->weak == 'i';
  switch (p) {
  case NVG_ADD: r = a + b; break;
  case NVG_SUB: r = a - b; break;
  case NVG_MUL: ok &= x->mag < 1ull << 62 && y->mag < 1ull << 62; r = ok ? a * b : 0; break;
  case NVG_SHL: ok &= !y->neg && y->mag < 64 && x->mag < 1ull << 62; r = ok ? a * ((wide)1 << y->mag) : 0; break;
  default: ok = 0;
  }
  wide m = r < 0 ? -r : r;
  if (!ok || m >> 64) nvg_lex_fail(&c->l, "the literals need a type, as in f32(1)");
  return (value){ .weak = 'i', .mag = (uint64_t)m, .neg = r < 0, .hex = x->hex && y->hex };
}

static value emit_binary(compiler *c, nvg_prim p, value x, value y) {
  value v[2] = { x, y };
  return x.weak && y.weak ? weak_binary(c, p, &x, &y) : emit_prim(c, p, v);
}

/* ---- primaries */
static value emit_convert(compiler *c, int t, value v) {
  if (v.weak) return typed_value(emit_literal(c, &v, t));
  int from = type_at(c, emit_single(c, &v, -1));
  if (from == t) return v;
  if (nvg_prim_type(NVG_CVT, &from, t) < 0)
    nvg_lex_fail(&c->l, "%s does not convert to %s", nvg_dtype_short((nvm_dtype)from), nvg_dtype_short((nvm_dtype)t));
  return typed_value(nvg_emit(c->b, NVG_CVT, (nvm_dtype)t, v.inst, -1, -1));
}

static value parse_reinterpret(compiler *c) {
  nvg_lex_expect(&c->l, '<');
  type_expr te = nvg_type_need(&c->l, c->d);
  nvg_lex_expect(&c->l, '>');
  nvg_lex_expect(&c->l, '(');
  value v = parse_expression(c, 0);
  nvg_lex_expect(&c->l, ')');
  int op = emit_single(c, &v, -1), from = type_at(c, op), t = nvg_type_of(&te, c->bound);
  if (from == t) return typed_value(op);
  if (nvg_prim_type(NVG_BITS, &from, t) < 0)
    nvg_lex_fail(&c->l, "the bits of %s are not those of %s", nvg_dtype_short((nvm_dtype)from),
                 nvg_dtype_short((nvm_dtype)t));
  return typed_value(nvg_emit(c->b, NVG_BITS, (nvm_dtype)t, op, -1, -1));
}

/* width(T), lowest(T), highest(T) */
static value parse_limit(compiler *c, slice word) {
  nvg_lex_expect(&c->l, '(');
  type_expr te = nvg_type_need(&c->l, c->d);
  nvg_lex_expect(&c->l, ')');
  int t = nvg_type_of(&te, c->bound), high = is(word, "highest");
  nvg_class cls = nvg_class_of((nvm_dtype)t);
  uint64_t mask = nvg_mask((nvm_dtype)t), bits;
  if (is(word, "width")) return (value){ .weak = 'i', .mag = (uint64_t)nvg_size((nvm_dtype)t) * 8 };
  if (cls == NVG_FLOAT) bits = nvg_lex_float(t, (slice){ "inf", 3 }, !high);
  else if (cls == NVG_SIGNED) bits = high ? mask >> 1 : (mask >> 1) + 1;
  else bits = high ? mask : 0;
  return typed_value(nvg_emit_const(c->b, (nvm_dtype)t, bits));
}

static value parse_element(compiler *c, slice name) {
  table_def *t = NULL;
  for (int k = 0; k < c->s->table.n; k++)
    if (c->s->table.at[k].unit == c->d->unit && c->s->table.at[k].at < c->d->at && same(c->s->table.at[k].name, name))
      t = &c->s->table.at[k];
  if (!t) nvg_lex_fail(&c->l, "no table %.*s above", name.n, name.p);
  if (!t->parsed) t->t = nvg_lex_table(c->s->arena, c->l.text, c->l.where, t->at), t->parsed = 1;
  nvg_lex_expect(&c->l, '[');
  value v = parse_expression(c, 0);
  nvg_lex_expect(&c->l, ']');
  int op = emit_single(c, &v, NVM_I32), type = type_at(c, op);
  if (nvg_prim_type(NVG_TABLE, &type, t->t.type) < 0) nvg_lex_fail(&c->l, "a table's index is an integer");
  return typed_value(nvg_emit_table(c->b, &t->t, op));
}

static int loops_in(const nvg_frag *f) { /* depth of the deepest nest */
  int depth = 0, most = 0;
  for (int i = 0; i < f->ninst; i++) {
    depth += (f->inst[i].prim == NVG_LOOP) - (f->inst[i].prim == NVG_END);
    if (depth > most) most = depth;
  }
  return most;
}

static value call_frag(compiler *c, slice name, const int *targ, int ntarg, value *v, int n) {
  int *param = NVB_NEWN(c->s->arena, int, n + 1);
  for (int i = 0; i < n; i++) {
    if (v[i].nmulti) emit_single(c, &v[i], -1);
    param[i] = v[i].weak ? (v[i].weak == 'i' ? NVG_WEAK_INT : NVG_WEAK_FLOAT) : type_at(c, v[i].inst);
  }
  nvg_frag_query q = { .name = name.p, .len = name.n, .targ = targ, .ntarg = ntarg, .param = param, .nparam = n };
  int status;
  const nvg_frag *f = nvg_fragset_call(c->s, &q, &status);
  if (!f && !status) nvg_query_fail(&q);
  if (!f && status == NVM_ERR_MEMORY) nvb_throw(c->s->arena, status, "%s", nvb_strdup(c->s->arena, nvb_message()));
  if (!f) nvg_lex_fail(&c->l, "%s", nvb_message());
  for (int i = 0; i < n; i++) param[i] = emit_single(c, &v[i], param[i]);
  /* a `rare` flag cannot leave a loop, so a call inside a loop uses the full form */
  if ((c->full || nvg_build_depth(c->b)) && f->full) f = f->full;
  if (nvg_build_depth(c->b) + loops_in(f) > NVG_MAX_LOOPS) nvg_lex_fail(&c->l, "loops are nested too deeply");
  int *res = NVB_NEWN(c->s->arena, int, f->nresult), rare = nvg_inline(c->b, f, param, res);
  if (rare >= 0) c->rare = c->rare < 0 ? rare : nvg_emit(c->b, NVG_OR, NVM_BOOL, c->rare, rare, -1);
  if (f->nresult == 1) return typed_value(res[0]);
  return (value){ .inst = -1, .multi = res, .nmulti = f->nresult };
}

/* Returns 1 if the primitive accepts these operands; a literal is accepted if another operand of the same letter has a
   type. */
static int prim_takes(compiler *c, nvg_prim p, const value *v) {
  const nvg_prim_info *info = &nvg_prims[p];
  int t[3] = { -1, -1, -1 };
  for (int i = 0; i < info->n; i++)
    for (int j = 0; j < info->n; j++) {
      if (v[i].nmulti) return 0;
      if (!v[i].weak) t[i] = type_at(c, v[i].inst);
      else if (info->in[i] == info->in[j] && !v[j].weak && !v[j].nmulti) t[i] = type_at(c, v[j].inst);
    }
  return nvg_prim_type(p, t, -1) >= 0;
}

static value parse_call(compiler *c, slice name) {
  int targ[NVG_MAX_GENERIC], ntarg = 0, n = 0, capacity = FEW;
  value few[FEW], *v = few; /* calls nest, so only a few operands are kept on the stack */
  if (nvg_lex_take(&c->l, '<')) {
    do {
      type_expr te = nvg_type_need(&c->l, c->d);
      if (ntarg == NVG_MAX_GENERIC) nvg_lex_fail(&c->l, "too many types");
      targ[ntarg++] = nvg_type_of(&te, c->bound);
    } while (nvg_lex_take(&c->l, ','));
    nvg_lex_expect(&c->l, '>');
  }
  nvg_lex_expect(&c->l, '(');
  while (c->l.kind != ')') {
    if (n == capacity) {
      value *more = NVB_NEWN(c->s->arena, value, capacity * 4);
      v = memcpy(more, v, sizeof *v * (size_t)n);
      capacity *= 4;
    }
    v[n++] = parse_expression(c, 0);
    if (!nvg_lex_take(&c->l, ',')) break;
  }
  nvg_lex_expect(&c->l, ')');
  int p = ntarg ? -1 : nvg_prim_find(name.p, name.n);
  if (p >= 0 && n == nvg_prims[p].n && prim_takes(c, (nvg_prim)p, v)) return emit_prim(c, (nvg_prim)p, v);
  return call_frag(c, name, targ, ntarg, v, n);
}

static value parse_word(compiler *c) {
  type_expr te;
  if (nvg_type_try(&c->l, c->d, &te)) {
    nvg_lex_expect(&c->l, '(');
    value v = parse_expression(c, 0);
    nvg_lex_expect(&c->l, ')');
    return emit_convert(c, nvg_type_of(&te, c->bound), v);
  }
  slice name = nvg_lex_name(&c->l);
  if (is(name, "true") || is(name, "false")) return typed_value(nvg_emit_const(c->b, NVM_BOOL, name.n == 4));
  if (is(name, "inf") || is(name, "nan")) return (value){ .inst = -1, .weak = 'f', .text = name };
  if (is(name, "bits")) return parse_reinterpret(c);
  if (is(name, "width") || is(name, "lowest") || is(name, "highest")) return parse_limit(c, name);
  if (c->l.kind == '[') return parse_element(c, name);
  for (int k = c->env.n - 1; k >= 0; k--)
    if (c->l.kind != '(' && same(c->env.at[k].name, name)) return c->env.at[k].v;
  if (c->l.kind == '(' || c->l.kind == '<') return parse_call(c, name);
  nvg_lex_fail(&c->l, "%.*s has no value here", name.n, name.p);
}

static value parse_operand(compiler *c);
static value parse_unary(compiler *c) {
  if (++c->nest > MAX_NEST) nvg_lex_fail(&c->l, "expressions are nested too deeply");
  value v = parse_operand(c);
  c->nest--;
  return v;
}

static value parse_operand(compiler *c) {
  lexer *l = &c->l;
  if (nvg_lex_take(l, '-')) {
    value v = parse_unary(c);
    if (!v.weak) return emit_prim(c, NVG_NEG, &v);
    v.neg = !v.neg;
    return v;
  }
  if (nvg_lex_take(l, '~') || (l->kind == '!' && nvg_lex_take(l, '!'))) {
    int logical = l->text[l->before] == '!';
    value v = parse_unary(c);
    if (logical && (v.weak || v.nmulti || type_at(c, v.inst) != NVM_BOOL)) nvg_lex_fail(l, "! takes a bool");
    return emit_prim(c, NVG_NOT, &v);
  }
  if (nvg_lex_take(l, '(')) {
    value v = parse_expression(c, 0);
    nvg_lex_expect(l, ')');
    return v;
  }
  if (l->kind == T_NUMBER) {
    value v = { .inst = -1, .weak = l->is_int ? 'i' : 'f', .mag = l->mag, .hex = l->hex, .text = l->word };
    nvg_lex_next(l);
    return v;
  }
  if (l->kind != T_NAME) nvg_lex_fail(l, "an expression is missing");
  return parse_word(c);
}

static const struct {
  int tok;
  uint8_t prim, level;
} operators[] = { { TWO('|', '|'), NVG_OR, 1 },
                  { TWO('&', '&'), NVG_AND, 2 },
                  { TWO('=', '='), NVG_EQ, 3 },
                  { TWO('!', '='), NVG_NE, 3 },
                  { '<', NVG_LT, 3 },
                  { TWO('<', '='), NVG_LE, 3 },
                  { '>', NVG_GT, 3 },
                  { TWO('>', '='), NVG_GE, 3 },
                  { '|', NVG_OR, 4 },
                  { '^', NVG_XOR, 5 },
                  { '&', NVG_AND, 6 },
                  { TWO('<', '<'), NVG_SHL, 7 },
                  { TWO('>', '>'), NVG_SHR, 7 },
                  { '+', NVG_ADD, 8 },
                  { '-', NVG_SUB, 8 },
                  { '*', NVG_MUL, 9 },
                  { '/', NVG_DIV, 9 } };

/* Parses binary operators by precedence, left to right. Comparisons do not chain. The logical operators take bools and
   evaluate both sides. */
static value parse_expression(compiler *c, int level) {
  value x = parse_unary(c);
  for (int compared = 0;;) {
    unsigned k = 0;
    while (k < sizeof operators / sizeof *operators && operators[k].tok != c->l.kind) k++;
    if (k == sizeof operators / sizeof *operators || operators[k].level <= level) return x;
    if (operators[k].level == 3 && compared++) nvg_lex_fail(&c->l, "comparisons do not chain: use && and parentheses");
    nvg_lex_next(&c->l);
    value y = parse_expression(c, operators[k].level);
    if (operators[k].level <= 2)
      for (int i = 0; i < 2; i++) {
        const value *v = i ? &y : &x;
        if (v->weak || v->nmulti || type_at(c, v->inst) != NVM_BOOL) nvg_lex_fail(&c->l, "&& and || take bools");
      }
    x = emit_binary(c, (nvg_prim)operators[k].prim, x, y);
  }
}

/* Parses expression {, expression}; a single call with several results is expanded into them. */
static int parse_list(compiler *c, value *v) {
  int n = 0;
  do {
    if (n == NVG_MAX_LIST) nvg_lex_fail(&c->l, "too many values");
    v[n++] = parse_expression(c, 0);
  } while (nvg_lex_take(&c->l, ','));
  if (n > 1 || !v[0].nmulti) return n;
  value all = v[0];
  if (all.nmulti > NVG_MAX_LIST) nvg_lex_fail(&c->l, "too many values");
  for (n = 0; n < all.nmulti; n++) v[n] = typed_value(all.multi[n]);
  return n;
}

/* ---- statements */
static void assign_name(compiler *c, slice name, value v) {
  if (v.nmulti) emit_single(c, &v, -1);
  for (int k = c->env.n - 1; k >= 0; k--) {
    if (!same(c->env.at[k].name, name)) continue;
    if (k < c->loop_env) nvg_lex_fail(&c->l, "%.*s is changed in a loop that does not carry it", name.n, name.p);
    c->env.at[k].v = v;
    return;
  }
  name_value nv = { name, v };
  NVB_PUSH(c->s->arena, c->env, nv);
}

static void refuse_reserved(compiler *c, slice s) {
  static const char *const words[] = { "return", "rare",  "for",    "in",      "carry",  "until",   "fast",
                                       "full",   "frag",  "table",  "true",    "false",  "inf",     "nan",
                                       "bits",   "width", "lowest", "highest", "signed", "unsigned" };
  for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
    if (is(s, words[i])) nvg_lex_fail(&c->l, "%s is a word of the language", words[i]);
  if (nvg_type_word(s) >= 0 || nvg_type_variable(c->d, s) >= 0) nvg_lex_fail(&c->l, "%.*s is a type", s.n, s.p);
}

static void parse_assignment(compiler *c) {
  slice name[NVG_MAX_LIST];
  value v[NVG_MAX_LIST];
  int n = 0;
  do {
    if (n == NVG_MAX_LIST) nvg_lex_fail(&c->l, "too many names");
    name[n++] = nvg_lex_name(&c->l);
    refuse_reserved(c, name[n - 1]);
  } while (nvg_lex_take(&c->l, ','));
  nvg_lex_expect(&c->l, '=');
  int got = parse_list(c, v);
  if (got != n) nvg_lex_fail(&c->l, "%d names for %d values", n, got);
  for (int i = 0; i < n; i++) assign_name(c, name[i], v[i]);
}

static void parse_block(compiler *c, int top);

static uint64_t parse_count(compiler *c) {
  value n = parse_expression(c, 0);
  if (n.weak != 'i' || n.neg || !n.mag || n.mag > 1 << 20)
    nvg_lex_fail(&c->l, "the number of iterations is a constant from 1 to 2^20");
  return n.mag;
}

/* Parses: until NAME. Where that carried bool is true, all carried names keep their values. The PHI, or -1. */
static int parse_until(compiler *c, int loop, const slice *name, const int *phi, int n) {
  if (!nvg_lex_take_word(&c->l, "until")) return -1;
  slice over = nvg_lex_name(&c->l);
  int k = 0;
  while (k < n && !same(name[k], over)) k++;
  if (k == n || type_at(c, phi[k]) != NVM_BOOL) nvg_lex_fail(&c->l, "a loop ends by a bool that it carries");
  nvg_loop_until(c->b, loop, phi[k]);
  return phi[k];
}

/* Parses: for k in COUNT carry (a = first, ...) [until a] { body }. After the loop the carried names have their last
   values. */
static void parse_loop(compiler *c) {
  slice name[NVG_MAX_LIST];
  int phi[NVG_MAX_LIST], n = 0, env, outer = c->loop_env;
  value first[NVG_MAX_LIST];
  slice k = nvg_lex_name(&c->l);
  refuse_reserved(c, k);
  nvg_lex_word(&c->l, "in");
  uint64_t times = parse_count(c);
  if (nvg_build_depth(c->b) == NVG_MAX_LOOPS) nvg_lex_fail(&c->l, "loops are nested too deeply");
  nvg_lex_word(&c->l, "carry");
  nvg_lex_expect(&c->l, '(');
  do {
    if (n == NVG_MAX_LIST) nvg_lex_fail(&c->l, "too many carried names");
    refuse_reserved(c, name[n] = nvg_lex_name(&c->l));
    nvg_lex_expect(&c->l, '=');
    first[n] = parse_expression(c, 0);
    first[n] = typed_value(emit_single(c, &first[n], -1));
    n++;
  } while (nvg_lex_take(&c->l, ','));
  nvg_lex_expect(&c->l, ')');
  c->loop_env = env = c->env.n;
  int loop = nvg_emit_loop(c->b, times);
  name_value kv = { k, typed_value(loop) };
  for (int i = 0; i < n; i++) {
    name_value nv = { name[i], typed_value(phi[i] = nvg_emit_phi(c->b, first[i].inst)) };
    NVB_PUSH(c->s->arena, c->env, nv);
  }
  NVB_PUSH(c->s->arena, c->env, kv);
  int until = parse_until(c, loop, name, phi, n);
  nvg_lex_expect(&c->l, '{');
  parse_block(c, 0);
  for (int i = 0; i < n; i++) {
    value v = c->env.at[env + i].v;
    int t = type_at(c, phi[i]), next = emit_single(c, &v, t);
    if (type_at(c, next) != t) nvg_lex_fail(&c->l, "%.*s changes its type in the loop", name[i].n, name[i].p);
    if (until >= 0) next = nvg_emit(c->b, NVG_SEL, (nvm_dtype)t, until, phi[i], next);
    nvg_phi_next(c->b, phi[i], next);
  }
  nvg_emit_end(c->b);
  c->env.n = env;
  c->loop_env = outer;
  for (int i = 0; i < n; i++) assign_name(c, name[i], typed_value(phi[i]));
}

static void parse_rare(compiler *c) {
  if (!c->rare_ok || nvg_build_depth(c->b)) nvg_lex_fail(&c->l, "rare belongs into a fast block, outside loops");
  value v = parse_expression(c, 0);
  int r = emit_single(c, &v, NVM_BOOL);
  if (type_at(c, r) != NVM_BOOL) nvg_lex_fail(&c->l, "rare takes a bool");
  c->rare = c->rare < 0 ? r : nvg_emit(c->b, NVG_OR, NVM_BOOL, c->rare, r, -1);
}

static void parse_return(compiler *c) {
  value v[NVG_MAX_LIST];
  int n = parse_list(c, v);
  if (c->d->nresult && n != c->d->nresult)
    nvg_lex_fail(&c->l, "%d results are declared, %d returned", c->d->nresult, n);
  c->result = NVB_NEWN(c->s->arena, int, n);
  c->nresult = n;
  for (int i = 0; i < n; i++) {
    int t = i < c->d->nresult ? nvg_type_of(&c->d->result[i], c->bound) : -1;
    c->result[i] = emit_single(c, &v[i], t);
    int got = type_at(c, c->result[i]);
    if (t >= 0 && got != t)
      nvg_lex_fail(&c->l, "result %d is %s, declared %s", i + 1, nvg_dtype_short((nvm_dtype)got),
                   nvg_dtype_short((nvm_dtype)t));
  }
}

/* Parses: fast { ... } full { ... }. One block is compiled, the other is skipped. */
static void parse_forms(compiler *c) {
  nvg_lex_expect(&c->l, '{');
  c->rare_ok = 1;
  if (c->full) nvg_lex_skip(&c->l);
  else parse_block(c, 1);
  c->rare_ok = 0;
  nvg_lex_word(&c->l, "full");
  nvg_lex_expect(&c->l, '{');
  if (!c->full) nvg_lex_skip(&c->l);
  else parse_block(c, 1);
}

/* Parses statements up to and including the closing brace. top: the block is a whole form, which ends in return. */
static void parse_block(compiler *c, int top) {
  while (c->l.kind != '}') {
    if (nvg_lex_take(&c->l, ';')) continue;
    if (c->l.kind != T_NAME) nvg_lex_fail(&c->l, "a statement is missing");
    if (c->result) nvg_lex_fail(&c->l, "nothing follows return");
    if (is(c->l.word, "return") && !top) nvg_lex_fail(&c->l, "return stands at the end of the fragment");
    if (nvg_lex_take_word(&c->l, "return")) parse_return(c);
    else if (nvg_lex_take_word(&c->l, "rare")) parse_rare(c);
    else if (nvg_lex_take_word(&c->l, "for")) parse_loop(c);
    else if (top && !c->rare_ok && nvg_lex_take_word(&c->l, "fast")) parse_forms(c);
    else parse_assignment(c);
  }
  if (top && !c->result) nvg_lex_fail(&c->l, "return is missing");
  nvg_lex_next(&c->l);
}

static nvg_frag *compile_form(nvg_fragset *s, const def *d, const int *bound, const int *param, const char *name,
                              const nvg_frag **full) {
  compiler c = { .s = s, .d = d, .bound = bound, .full = full == NULL, .rare = -1, .b = nvg_build_new(s->arena) };
  c.l = nvg_lex_open(s->arena, s->unit.at[d->unit].text, s->unit.at[d->unit].name, d->body);
  for (int i = 0; i < d->nparam; i++) {
    name_value nv = { d->pname[i], typed_value(nvg_emit_param(c.b, (nvm_dtype)param[i])) };
    NVB_PUSH(s->arena, c.env, nv);
  }
  nvg_lex_expect(&c.l, '{');
  parse_block(&c, 1);
  nvm_dtype t = NVM_BOOL;
  if (c.rare >= 0 && c.rare == nvg_emit_const(c.b, t, 0)) c.rare = -1;
  if (c.rare >= 0) *full = compile_form(s, d, bound, param, name, NULL);
  return nvg_build_finish(c.b, name, c.result, c.nresult, c.rare, c.rare >= 0 ? *full : NULL);
}

nvg_frag *nvg_frag_compile(nvg_fragset *s, const def *d, const int *bound, const int *param, const char *name) {
  const nvg_frag *full = NULL;
  return compile_form(s, d, bound, param, name, &full);
}
