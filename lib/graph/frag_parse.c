/* Text to fragments. A set indexes its definitions by name and compiles one when a call asks for it with concrete types,
   straight from the text in one pass, twice where it has a rare flag (fast and full form). Grammar: docs/fragments.md. */
#include "graph/frag_impl.h"
#include "graph/frag_lex.h"
#include <stdio.h>
#include <string.h>

enum { MAX_CALLS = 48, MAX_LIST = 256, MAX_NEST = 256, FEW = 6 };

typedef struct type_expr { int8_t fn; int8_t var; int8_t type; } type_expr; /* fn: 0, 's'igned, 'u'nsigned of the rest */
typedef struct generic { slice name; int cls; int type; } generic;          /* a variable of a class, or (type >= 0) one type */
typedef struct def {
  int unit, at, next, parsed; /* at: the name; next: the definition of the name before, or -1 */
  int ngen, nparam, nresult, body, line_known;
  generic *gen;
  slice *pname;
  type_expr *param, *result;
} def;
typedef struct table_def { slice name; int unit, at, parsed; nvg_table t; } table_def;

struct nvg_fragset {
  nvb_arena *arena;
  NVB_VEC(nvg_text) unit;
  NVB_VEC(def) def;
  NVB_VEC(table_def) table;
  NVB_VEC(const nvg_frag *) made;
  nvb_map *names, *done; /* name -> last definition + 1; name<types>(types) -> made + 1 */
  int calls, is_library;
};

/* ---- type classes */
enum { C_BOOL = 1, C_SINT = 2, C_UINT = 4, C_REAL = 8, C_HALF = 16 };
static const struct { const char *name; int mask, weight; } classes[] = {
  {"any", C_BOOL | C_SINT | C_UINT | C_REAL, 0}, {"num", C_SINT | C_UINT | C_REAL, 1}, {"int", C_SINT | C_UINT, 2},
  {"bool", C_BOOL, 3}, {"sint", C_SINT, 3}, {"uint", C_UINT, 3}, {"real", C_REAL, 3}, {"half", C_HALF, 3}};
enum { NCLASSES = sizeof classes / sizeof *classes, EXACT = 4 };

static int class_bit(int t) {
  if (t < 0 || t >= NVM_C64) return 0;
  if (nvg_is_half((nvm_dtype)t)) return C_HALF;
  switch (nvg_class_of((nvm_dtype)t)) {
    case NVG_BOOLEAN: return C_BOOL;
    case NVG_SIGNED: return C_SINT;
    case NVG_UNSIGNED: return C_UINT;
    default: return C_REAL;
  }
}

static int type_word(slice s) {
  char name[16];
  if (s.n >= (int)sizeof name) return -1;
  memcpy(name, s.p, (size_t)s.n);
  name[s.n] = 0;
  for (int t = 0; t < NVM_C64; t++)
    if (!strcmp(name, nvg_dtype_short((nvm_dtype)t))) return t;
  return -1;
}

static int resign(int fn, int t) {
  if (!fn || t < 0) return t;
  if (t >= NVM_I8 && t <= NVM_I64) return fn == 'u' ? t + (NVM_U8 - NVM_I8) : t;
  if (t >= NVM_U8 && t <= NVM_U64) return fn == 's' ? t - (NVM_U8 - NVM_I8) : t;
  if (fn == 'u') return nvg_size((nvm_dtype)t) == 8 ? NVM_U64 : nvg_size((nvm_dtype)t) == 4 ? NVM_U32 : nvg_size((nvm_dtype)t) == 2 ? NVM_U16 : NVM_U8;
  return nvg_size((nvm_dtype)t) == 8 ? NVM_I64 : nvg_size((nvm_dtype)t) == 4 ? NVM_I32 : nvg_size((nvm_dtype)t) == 2 ? NVM_I16 : NVM_I8;
}

/* ---- headers of definitions */
static int find_generic(const def *d, slice s) {
  for (int i = 0; i < d->ngen; i++)
    if (d->gen[i].type < 0 && same(d->gen[i].name, s)) return i;
  return -1;
}

/* type = dtype | variable | signed<type> | unsigned<type>; the word is the current token */
static int try_type(lexer *l, const def *d, type_expr *out) {
  if (l->kind != T_NAME) return 0;
  slice s = l->word;
  if (is(s, "signed") || is(s, "unsigned")) {
    int fn = s.p[0];
    lex_next(l);
    lex_expect(l, '<');
    if (!try_type(l, d, out)) lex_fail(l, "a type is missing");
    lex_expect(l, '>');
    out->fn = (int8_t)fn;
    return 1;
  }
  int t = type_word(s), var = d ? find_generic(d, s) : -1;
  if (t < 0 && var < 0) return 0;
  *out = (type_expr){.type = (int8_t)t, .var = (int8_t)var};
  lex_next(l);
  return 1;
}

static type_expr need_type(lexer *l, const def *d) {
  type_expr t = {0};
  if (!try_type(l, d, &t)) lex_fail(l, "a type is missing");
  return t;
}

static int type_of(const type_expr *t, const int *bound) { return resign(t->fn, t->var >= 0 ? bound[t->var] : t->type); }

static void parse_generics(nvb_arena *a, lexer *l, def *d) {
  generic gen[16];
  if (!lex_take(l, '<')) return;
  do {
    if (d->ngen == 16) lex_fail(l, "too many generic types");
    generic g = {.name = lex_name(l), .type = -1};
    if (lex_take(l, ':')) {
      slice c = lex_name(l);
      for (g.cls = 0; g.cls < NCLASSES && !is(c, classes[g.cls].name); g.cls++) {}
      if (g.cls == NCLASSES) lex_fail(l, "unknown class (bool, int, sint, uint, real, half, num, any)");
    } else if ((g.type = type_word(g.name)) < 0) lex_fail(l, "a class is missing, as in <T: real>");
    gen[d->ngen++] = g;
  } while (lex_take(l, ','));
  lex_expect(l, '>');
  d->gen = nvb_dup(a, gen, sizeof *gen * (size_t)d->ngen);
}

static void parse_header(nvg_fragset *s, def *d) {
  lexer l = lex_open(s->arena, s->unit.at[d->unit].text, s->unit.at[d->unit].name, d->at);
  NVB_VEC(slice) names = {0};
  NVB_VEC(type_expr) types = {0}, results = {0};
  d->ngen = 0;
  lex_name(&l);
  parse_generics(s->arena, &l, d);
  lex_expect(&l, '(');
  while (l.kind != ')') {
    NVB_PUSH(s->arena, names, lex_name(&l));
    lex_expect(&l, ':');
    NVB_PUSH(s->arena, types, need_type(&l, d));
    if (!lex_take(&l, ',')) break;
  }
  lex_expect(&l, ')');
  if (lex_take(&l, TWO('-', '>'))) {
    int many = lex_take(&l, '(');
    do NVB_PUSH(s->arena, results, need_type(&l, d));
    while (many && lex_take(&l, ','));
    if (many) lex_expect(&l, ')');
  }
  if (l.kind != '{') lex_fail(&l, "'{' is missing");
  d->body = (int)(l.tok - l.text);
  d->pname = names.at, d->param = types.at, d->nparam = types.n;
  d->result = results.at, d->nresult = results.n;
  d->parsed = 1;
}

/* ---- overloads. Binds the generic types; the weight says how specific the definition is; -1: it does not take the call. */
static int bind(int *bound, const def *d, const type_expr *t, int type) {
  if (t->var < 0) return resign(t->fn, t->type) == type ? EXACT : -1;
  const generic *g = &d->gen[t->var];
  if (t->fn || bound[t->var] >= 0) return resign(t->fn, bound[t->var]) == type ? classes[g->cls].weight : -1;
  if (!(class_bit(type) & classes[g->cls].mask)) return -1;
  bound[t->var] = type;
  return classes[g->cls].weight;
}

static int matches(const def *d, const nvg_frag_query *q, int *bound, int *param) {
  int weight = 0, w;
  if (d->nparam != q->nparam || q->ntarg > d->ngen) return -1;
  for (int i = 0; i < d->ngen; i++) {
    const generic *g = &d->gen[i];
    bound[i] = g->type;
    if (i >= q->ntarg) continue; /* the rest follow from the operands */
    if (g->type >= 0 ? g->type != q->targ[i] : !(class_bit(q->targ[i]) & classes[g->cls].mask)) return -1;
    weight += g->type >= 0 ? EXACT : classes[g->cls].weight;
    bound[i] = q->targ[i];
  }
  for (int i = 0; i < q->nparam; i++) {
    if (q->param[i] < 0) continue;
    if ((w = bind(bound, d, &d->param[i], q->param[i])) < 0) return -1;
    weight += w;
  }
  for (int i = 0; i < q->nparam; i++) { /* untyped literals take what is left */
    int t = param[i] = type_of(&d->param[i], bound), bit = class_bit(t);
    if (t < 0 || bit == C_HALF) { if (q->param[i] < 0 || t < 0) return -1; }
    if (q->param[i] < 0 && !(bit & (q->param[i] == NVG_WEAK_FLOAT ? C_REAL : C_REAL | C_SINT | C_UINT))) return -1;
  }
  for (int i = 0; i < d->ngen; i++)
    if (bound[i] < 0) return -1;
  return weight;
}

/* The most specific definition that takes the call, its types bound and q's literals typed; NULL if there is none. */
static const def *resolve(nvg_fragset *s, nvg_frag_query *q, int *bound) {
  const int *first = nvb_map_find(s->names, q->name, (size_t)q->len);
  int best = -1, found = -1, param[MAX_LIST], trial[16];
  if (q->nparam > MAX_LIST) return NULL;
  for (int k = first ? *first - 1 : -1; k >= 0; k = s->def.at[k].next) {
    if (!s->def.at[k].parsed) parse_header(s, &s->def.at[k]);
    int w = matches(&s->def.at[k], q, trial, param);
    if (w <= best) continue;
    best = w, found = k;
    memcpy(bound, trial, sizeof trial);
  }
  if (found < 0) return NULL;
  matches(&s->def.at[found], q, trial, param);
  memcpy(q->param, param, sizeof *param * (size_t)q->nparam);
  return &s->def.at[found];
}

int nvg_query_fail(const nvg_frag_query *q) {
  char types[256] = "";
  size_t n = 0;
  for (int i = 0; i < q->nparam && n < sizeof types - 16; i++) {
    const char *t = q->param[i] >= 0 ? nvg_dtype_short((nvm_dtype)q->param[i]) : "literal";
    n += (size_t)snprintf(types + n, sizeof types - n, "%s%s", i ? ", " : "", t);
  }
  return nvb_fail(NVM_ERR_TYPE, "[%.*s] no definition takes (%s)", q->len, q->name, types);
}

/* ---- compiling one body */
typedef struct value { int inst, weak, neg, hex, nmulti; uint64_t mag; slice text; int *multi; } value; /* weak: 0, 'i', 'f' */
typedef struct name_value { slice name; value v; } name_value;
typedef struct compiler {
  lexer l;
  nvg_fragset *s;
  const def *d;
  const int *bound;
  nvg_build *b;
  NVB_VEC(name_value) env;
  int loop_env;           /* names below are outside the innermost loop */
  int full, rare, rare_ok, nest;
  int *result, nresult;
} compiler;

static value expression(compiler *c, int level);
static const nvg_frag *query(nvg_fragset *s, nvg_frag_query *q, compiler *c);

static value typed(int inst) { return (value){.inst = inst}; }
static int type_at(compiler *c, int inst) { return nvg_build_type(c->b, inst); }

/* The constant that an untyped literal is as type t. */
static int literal(compiler *c, const value *v, int t) {
  uint64_t bits = 0, mask = nvg_mask((nvm_dtype)t);
  nvg_class cls = nvg_class_of((nvm_dtype)t);
  if (nvg_is_half((nvm_dtype)t) || cls == NVG_BOOLEAN) lex_fail(&c->l, "a number cannot be of type %s here", nvg_dtype_short((nvm_dtype)t));
  if (cls == NVG_FLOAT) bits = v->weak == 'i' ? lex_float_of_int(t, v->mag, v->neg) : lex_float(t, v->text, v->neg);
  else {
    uint64_t most = cls == NVG_UNSIGNED || v->hex ? mask : (mask >> 1) + (uint64_t)v->neg;
    if (v->weak != 'i' || v->mag > most || (v->neg && cls == NVG_UNSIGNED && v->mag))
      lex_fail(&c->l, "the literal does not fit %s", nvg_dtype_short((nvm_dtype)t));
    bits = (v->neg ? 0 - v->mag : v->mag) & mask;
  }
  return nvg_emit_const(c->b, (nvm_dtype)t, bits);
}

static int single(compiler *c, const value *v, int t) {
  if (v->nmulti) lex_fail(&c->l, "one value is wanted, the call gives %d", v->nmulti);
  if (!v->weak) return v->inst;
  if (t < 0) lex_fail(&c->l, "the literal needs a type, as in f32(1)");
  return literal(c, v, t);
}

static value apply(compiler *c, nvg_prim p, const value *v) {
  int t[3] = {-1, -1, -1}, op[3] = {-1, -1, -1};
  const nvg_prim_info *info = &nvg_prims[p];
  for (int i = 0; i < info->n; i++) {
    int like = -1;
    for (int j = 0; j < info->n; j++)
      if (info->in[i] == info->in[j] && !v[j].weak && !v[j].nmulti) like = type_at(c, v[j].inst);
    op[i] = single(c, &v[i], like);
    t[i] = type_at(c, op[i]);
  }
  int type = nvg_prim_type(p, t, -1);
  if (type < 0) {
    const char *name[3];
    for (int i = 0; i < 3; i++) name[i] = i < info->n ? nvg_dtype_short((nvm_dtype)t[i]) : "";
    lex_fail(&c->l, "%s does not take (%s%s%s%s%s)", info->text, name[0], info->n > 1 ? ", " : "", name[1], info->n > 2 ? ", " : "", name[2]);
  }
  return typed(nvg_emit(c->b, p, (nvm_dtype)type, op[0], op[1], op[2]));
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
  if (!ok || m >> 64) lex_fail(&c->l, "the literals need a type, as in f32(1)");
  return (value){.weak = 'i', .mag = (uint64_t)m, .neg = r < 0, .hex = x->hex && y->hex};
}

static value binary(compiler *c, nvg_prim p, value x, value y) {
  value v[2] = {x, y};
  return x.weak && y.weak ? weak_binary(c, p, &x, &y) : apply(c, p, v);
}

/* ---- primaries */
static value convert(compiler *c, int t, value v) {
  if (v.weak) return typed(literal(c, &v, t));
  int from = type_at(c, single(c, &v, -1));
  if (from == t) return v;
  if (nvg_prim_type(NVG_CVT, &from, t) < 0)
    lex_fail(&c->l, "%s does not convert to %s", nvg_dtype_short((nvm_dtype)from), nvg_dtype_short((nvm_dtype)t));
  return typed(nvg_emit(c->b, NVG_CVT, (nvm_dtype)t, v.inst, -1, -1));
}

static value reinterpret(compiler *c) {
  lex_expect(&c->l, '<');
  type_expr te = need_type(&c->l, c->d);
  lex_expect(&c->l, '>');
  lex_expect(&c->l, '(');
  value v = expression(c, 0);
  lex_expect(&c->l, ')');
  int op = single(c, &v, -1), from = type_at(c, op), t = type_of(&te, c->bound);
  if (from == t) return typed(op);
  if (nvg_prim_type(NVG_BITS, &from, t) < 0)
    lex_fail(&c->l, "the bits of %s are not those of %s", nvg_dtype_short((nvm_dtype)from), nvg_dtype_short((nvm_dtype)t));
  return typed(nvg_emit(c->b, NVG_BITS, (nvm_dtype)t, op, -1, -1));
}

/* width(T), lowest(T), highest(T) */
static value limit(compiler *c, slice word) {
  lex_expect(&c->l, '(');
  type_expr te = need_type(&c->l, c->d);
  lex_expect(&c->l, ')');
  int t = type_of(&te, c->bound), high = is(word, "highest");
  nvg_class cls = nvg_class_of((nvm_dtype)t);
  uint64_t mask = nvg_mask((nvm_dtype)t), bits;
  if (is(word, "width")) return (value){.weak = 'i', .mag = (uint64_t)nvg_size((nvm_dtype)t) * 8};
  if (cls == NVG_FLOAT) bits = lex_float(t, (slice){"inf", 3}, !high);
  else if (cls == NVG_SIGNED) bits = high ? mask >> 1 : (mask >> 1) + 1;
  else bits = high ? mask : 0;
  return typed(nvg_emit_const(c->b, (nvm_dtype)t, bits));
}

static value element(compiler *c, slice name) {
  table_def *t = NULL;
  for (int k = 0; k < c->s->table.n; k++)
    if (c->s->table.at[k].unit == c->d->unit && c->s->table.at[k].at < c->d->at && same(c->s->table.at[k].name, name)) t = &c->s->table.at[k];
  if (!t) lex_fail(&c->l, "no table %.*s above", name.n, name.p);
  if (!t->parsed) t->t = lex_table(c->s->arena, c->l.text, c->l.where, t->at), t->parsed = 1;
  lex_expect(&c->l, '[');
  value v = expression(c, 0);
  lex_expect(&c->l, ']');
  int op = single(c, &v, NVM_I32), type = type_at(c, op);
  if (nvg_prim_type(NVG_TABLE, &type, t->t.type) < 0) lex_fail(&c->l, "a table's index is an integer");
  return typed(nvg_emit_table(c->b, &t->t, op));
}

static value call_frag(compiler *c, slice name, const int *targ, int ntarg, value *v, int n) {
  int *param = NVB_NEWN(c->s->arena, int, n + 1);
  for (int i = 0; i < n; i++) {
    if (v[i].nmulti) single(c, &v[i], -1);
    param[i] = v[i].weak ? (v[i].weak == 'i' ? NVG_WEAK_INT : NVG_WEAK_FLOAT) : type_at(c, v[i].inst);
  }
  nvg_frag_query q = {.name = name.p, .len = name.n, .targ = targ, .ntarg = ntarg, .param = param, .nparam = n};
  const nvg_frag *f = query(c->s, &q, c);
  if (!f) {
    nvg_query_fail(&q);
    lex_fail(&c->l, "%s", nvb_message());
  }
  for (int i = 0; i < n; i++) param[i] = single(c, &v[i], param[i]);
  if ((c->full || nvg_build_depth(c->b)) && f->full) f = f->full; /* a flag cannot leave a loop */
  int *res = NVB_NEWN(c->s->arena, int, f->nresult), rare = nvg_inline(c->b, f, param, res);
  if (rare >= 0) c->rare = c->rare < 0 ? rare : nvg_emit(c->b, NVG_OR, NVM_BOOL, c->rare, rare, -1);
  if (f->nresult == 1) return typed(res[0]);
  return (value){.inst = -1, .multi = res, .nmulti = f->nresult};
}

/* Does the primitive take these? Literals fit wherever another operand of their letter has a type. */
static int prim_takes(compiler *c, nvg_prim p, const value *v) {
  const nvg_prim_info *info = &nvg_prims[p];
  int t[3] = {-1, -1, -1};
  for (int i = 0; i < info->n; i++)
    for (int j = 0; j < info->n; j++) {
      if (v[i].nmulti) return 0;
      if (!v[i].weak) t[i] = type_at(c, v[i].inst);
      else if (info->in[i] == info->in[j] && !v[j].weak && !v[j].nmulti) t[i] = type_at(c, v[j].inst);
    }
  return nvg_prim_type(p, t, -1) >= 0;
}

static value call(compiler *c, slice name) {
  int targ[16], ntarg = 0, n = 0, room = FEW;
  value few[FEW], *v = few; /* calls nest: the stack holds few */
  if (lex_take(&c->l, '<')) {
    do {
      type_expr te = need_type(&c->l, c->d);
      if (ntarg == 16) lex_fail(&c->l, "too many types");
      targ[ntarg++] = type_of(&te, c->bound);
    } while (lex_take(&c->l, ','));
    lex_expect(&c->l, '>');
  }
  lex_expect(&c->l, '(');
  while (c->l.kind != ')') {
    if (n == room) {
      value *more = NVB_NEWN(c->s->arena, value, room * 4);
      v = memcpy(more, v, sizeof *v * (size_t)n);
      room *= 4;
    }
    v[n++] = expression(c, 0);
    if (!lex_take(&c->l, ',')) break;
  }
  lex_expect(&c->l, ')');
  int p = ntarg ? -1 : nvg_prim_find(name.p, name.n);
  if (p >= 0 && n == nvg_prims[p].n && prim_takes(c, (nvg_prim)p, v)) return apply(c, (nvg_prim)p, v);
  return call_frag(c, name, targ, ntarg, v, n);
}

static value word(compiler *c) {
  type_expr te;
  if (try_type(&c->l, c->d, &te)) {
    lex_expect(&c->l, '(');
    value v = expression(c, 0);
    lex_expect(&c->l, ')');
    return convert(c, type_of(&te, c->bound), v);
  }
  slice name = lex_name(&c->l);
  if (is(name, "true") || is(name, "false")) return typed(nvg_emit_const(c->b, NVM_BOOL, name.n == 4));
  if (is(name, "inf") || is(name, "nan")) return (value){.inst = -1, .weak = 'f', .text = name};
  if (is(name, "bits")) return reinterpret(c);
  if (is(name, "width") || is(name, "lowest") || is(name, "highest")) return limit(c, name);
  if (c->l.kind == '[') return element(c, name);
  for (int k = c->env.n - 1; k >= 0; k--)
    if (c->l.kind != '(' && same(c->env.at[k].name, name)) return c->env.at[k].v;
  if (c->l.kind == '(' || c->l.kind == '<') return call(c, name);
  lex_fail(&c->l, "%.*s has no value here", name.n, name.p);
}

static value operand(compiler *c);
static value unary(compiler *c) {
  if (++c->nest > MAX_NEST) lex_fail(&c->l, "expressions are nested too deeply");
  value v = operand(c);
  c->nest--;
  return v;
}

static value operand(compiler *c) {
  lexer *l = &c->l;
  if (lex_take(l, '-')) {
    value v = unary(c);
    if (!v.weak) return apply(c, NVG_NEG, &v);
    v.neg = !v.neg;
    return v;
  }
  if (lex_take(l, '~') || (l->kind == '!' && lex_take(l, '!'))) {
    int logical = l->text[l->before] == '!';
    value v = unary(c);
    if (logical && (v.weak || v.nmulti || type_at(c, v.inst) != NVM_BOOL)) lex_fail(l, "! takes a bool");
    return apply(c, NVG_NOT, &v);
  }
  if (lex_take(l, '(')) {
    value v = expression(c, 0);
    lex_expect(l, ')');
    return v;
  }
  if (l->kind == T_NUMBER) {
    value v = {.inst = -1, .weak = l->is_int ? 'i' : 'f', .mag = l->mag, .hex = l->hex, .text = l->word};
    lex_next(l);
    return v;
  }
  if (l->kind != T_NAME) lex_fail(l, "an expression is missing");
  return word(c);
}

static const struct { int tok; uint8_t prim, level; } operators[] = {
  {TWO('|', '|'), NVG_OR, 1}, {TWO('&', '&'), NVG_AND, 2}, {TWO('=', '='), NVG_EQ, 3}, {TWO('!', '='), NVG_NE, 3},
  {'<', NVG_LT, 3}, {TWO('<', '='), NVG_LE, 3}, {'>', NVG_GT, 3}, {TWO('>', '='), NVG_GE, 3}, {'|', NVG_OR, 4},
  {'^', NVG_XOR, 5}, {'&', NVG_AND, 6}, {TWO('<', '<'), NVG_SHL, 7}, {TWO('>', '>'), NVG_SHR, 7}, {'+', NVG_ADD, 8},
  {'-', NVG_SUB, 8}, {'*', NVG_MUL, 9}, {'/', NVG_DIV, 9}};

/* Left to right by level; comparisons do not chain; && and || take bools and evaluate both sides. */
static value expression(compiler *c, int level) {
  value x = unary(c);
  for (int compared = 0;;) {
    unsigned k = 0;
    while (k < sizeof operators / sizeof *operators && operators[k].tok != c->l.kind) k++;
    if (k == sizeof operators / sizeof *operators || operators[k].level <= level) return x;
    if (operators[k].level == 3 && compared++) lex_fail(&c->l, "comparisons do not chain: use && and parentheses");
    lex_next(&c->l);
    value y = expression(c, operators[k].level);
    if (operators[k].level <= 2)
      for (int i = 0; i < 2; i++) {
        const value *v = i ? &y : &x;
        if (v->weak || v->nmulti || type_at(c, v->inst) != NVM_BOOL) lex_fail(&c->l, "&& and || take bools");
      }
    x = binary(c, (nvg_prim)operators[k].prim, x, y);
  }
}

/* expression {, expression}; a call with several results is spread where it stands alone */
static int list(compiler *c, value *v) {
  int n = 0;
  do {
    if (n == MAX_LIST) lex_fail(&c->l, "too many values");
    v[n++] = expression(c, 0);
  } while (lex_take(&c->l, ','));
  if (n > 1 || !v[0].nmulti) return n;
  value all = v[0];
  if (all.nmulti > MAX_LIST) lex_fail(&c->l, "too many values");
  for (n = 0; n < all.nmulti; n++) v[n] = typed(all.multi[n]);
  return n;
}

/* ---- statements */
static void assign(compiler *c, slice name, value v) {
  if (v.nmulti) single(c, &v, -1);
  for (int k = c->env.n - 1; k >= 0; k--) {
    if (!same(c->env.at[k].name, name)) continue;
    if (k < c->loop_env) lex_fail(&c->l, "%.*s is changed in a loop that does not carry it", name.n, name.p);
    c->env.at[k].v = v;
    return;
  }
  name_value nv = {name, v};
  NVB_PUSH(c->s->arena, c->env, nv);
}

static void reserved(compiler *c, slice s) {
  static const char *const words[] = {"return", "rare", "for", "in", "carry", "fast", "full", "frag", "table", "true", "false",
                                      "inf", "nan", "bits", "width", "lowest", "highest", "signed", "unsigned"};
  for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
    if (is(s, words[i])) lex_fail(&c->l, "%s is a word of the language", words[i]);
  if (type_word(s) >= 0 || find_generic(c->d, s) >= 0) lex_fail(&c->l, "%.*s is a type", s.n, s.p);
}

static void assignment(compiler *c) {
  slice name[MAX_LIST];
  value v[MAX_LIST];
  int n = 0;
  do {
    if (n == MAX_LIST) lex_fail(&c->l, "too many names");
    name[n++] = lex_name(&c->l);
    reserved(c, name[n - 1]);
  } while (lex_take(&c->l, ','));
  lex_expect(&c->l, '=');
  int got = list(c, v);
  if (got != n) lex_fail(&c->l, "%d names for %d values", n, got);
  for (int i = 0; i < n; i++) assign(c, name[i], v[i]);
}

static void block(compiler *c, int top);

/* for k in rounds carry (a = first, ...) { body }: after it the carried names have their last values */
static void loop(compiler *c) {
  slice name[MAX_LIST];
  int phi[MAX_LIST], n = 0, env, outer = c->loop_env;
  value first[MAX_LIST];
  slice k = lex_name(&c->l);
  reserved(c, k);
  lex_word(&c->l, "in");
  value rounds = expression(c, 0);
  if (rounds.weak != 'i' || rounds.neg || !rounds.mag || rounds.mag > 1 << 20) lex_fail(&c->l, "the rounds are a whole number from 1 to 2^20");
  if (nvg_build_depth(c->b) == NVG_MAX_LOOPS) lex_fail(&c->l, "loops are nested too deeply");
  lex_word(&c->l, "carry");
  lex_expect(&c->l, '(');
  do {
    if (n == MAX_LIST) lex_fail(&c->l, "too many carried names");
    reserved(c, name[n] = lex_name(&c->l));
    lex_expect(&c->l, '=');
    first[n] = expression(c, 0);
    first[n] = typed(single(c, &first[n], -1));
    n++;
  } while (lex_take(&c->l, ','));
  lex_expect(&c->l, ')');
  c->loop_env = env = c->env.n;
  name_value kv = {k, typed(nvg_emit_loop(c->b, rounds.mag))};
  for (int i = 0; i < n; i++) {
    name_value nv = {name[i], typed(phi[i] = nvg_emit_phi(c->b, first[i].inst))};
    NVB_PUSH(c->s->arena, c->env, nv);
  }
  NVB_PUSH(c->s->arena, c->env, kv);
  lex_expect(&c->l, '{');
  block(c, 0);
  for (int i = 0; i < n; i++) {
    value v = c->env.at[env + i].v;
    int t = type_at(c, phi[i]), next = single(c, &v, t);
    if (type_at(c, next) != t) lex_fail(&c->l, "%.*s changes its type in the loop", name[i].n, name[i].p);
    nvg_phi_next(c->b, phi[i], next);
  }
  nvg_emit_end(c->b);
  c->env.n = env;
  c->loop_env = outer;
  for (int i = 0; i < n; i++) assign(c, name[i], typed(phi[i]));
}

static void flag(compiler *c) {
  if (!c->rare_ok || nvg_build_depth(c->b)) lex_fail(&c->l, "rare belongs into a fast block, outside loops");
  value v = expression(c, 0);
  int r = single(c, &v, NVM_BOOL);
  if (type_at(c, r) != NVM_BOOL) lex_fail(&c->l, "rare takes a bool");
  c->rare = c->rare < 0 ? r : nvg_emit(c->b, NVG_OR, NVM_BOOL, c->rare, r, -1);
}

static void give(compiler *c) {
  value v[MAX_LIST];
  int n = list(c, v);
  if (c->d->nresult && n != c->d->nresult) lex_fail(&c->l, "%d results are declared, %d returned", c->d->nresult, n);
  c->result = NVB_NEWN(c->s->arena, int, n);
  c->nresult = n;
  for (int i = 0; i < n; i++) {
    int t = i < c->d->nresult ? type_of(&c->d->result[i], c->bound) : -1;
    c->result[i] = single(c, &v[i], t);
    int got = type_at(c, c->result[i]);
    if (t >= 0 && got != t) lex_fail(&c->l, "result %d is %s, declared %s", i + 1, nvg_dtype_short((nvm_dtype)got), nvg_dtype_short((nvm_dtype)t));
  }
}

/* fast { ... } full { ... }: one of them is compiled, the other skipped */
static void forms(compiler *c) {
  lex_expect(&c->l, '{');
  c->rare_ok = 1;
  if (c->full) lex_skip(&c->l);
  else block(c, 1);
  c->rare_ok = 0;
  lex_word(&c->l, "full");
  lex_expect(&c->l, '{');
  if (!c->full) lex_skip(&c->l);
  else block(c, 1);
}

/* Statements up to the closing brace, which is taken. top: the block of a form, which ends in return. */
static void block(compiler *c, int top) {
  while (c->l.kind != '}') {
    if (lex_take(&c->l, ';')) continue;
    if (c->l.kind != T_NAME) lex_fail(&c->l, "a statement is missing");
    if (c->result) lex_fail(&c->l, "nothing follows return");
    if (is(c->l.word, "return") && !top) lex_fail(&c->l, "return stands at the end of the fragment");
    if (lex_take_word(&c->l, "return")) give(c);
    else if (lex_take_word(&c->l, "rare")) flag(c);
    else if (lex_take_word(&c->l, "for")) loop(c);
    else if (top && !c->rare_ok && lex_take_word(&c->l, "fast")) forms(c);
    else assignment(c);
  }
  if (top && !c->result) lex_fail(&c->l, "return is missing");
  lex_next(&c->l);
}

static nvg_frag *compile_form(nvg_fragset *s, const def *d, const int *bound, const int *param, const char *name, const nvg_frag **full) {
  compiler c = {.s = s, .d = d, .bound = bound, .full = full == NULL, .rare = -1, .b = nvg_build_new(s->arena)};
  c.l = lex_open(s->arena, s->unit.at[d->unit].text, s->unit.at[d->unit].name, d->body);
  for (int i = 0; i < d->nparam; i++) {
    name_value nv = {d->pname[i], typed(nvg_emit_param(c.b, (nvm_dtype)param[i]))};
    NVB_PUSH(s->arena, c.env, nv);
  }
  lex_expect(&c.l, '{');
  block(&c, 1);
  nvm_dtype t = NVM_BOOL;
  if (c.rare >= 0 && c.rare == nvg_emit_const(c.b, t, 0)) c.rare = -1;
  if (c.rare >= 0) *full = compile_form(s, d, bound, param, name, NULL);
  return nvg_build_finish(c.b, name, c.result, c.nresult, c.rare, c.rare >= 0 ? *full : NULL);
}

/* ---- sets */
static int put_type(char *out, int t) { out[0] = (char)('A' + t); return 1; }

/* name<targs>(params), one letter per type */
static int query_key(char *out, const nvg_frag_query *q) {
  int n = q->len;
  memcpy(out, q->name, (size_t)n);
  out[n++] = '<';
  for (int i = 0; i < q->ntarg; i++) n += put_type(out + n, q->targ[i]);
  out[n++] = '(';
  for (int i = 0; i < q->nparam; i++) n += put_type(out + n, q->param[i]);
  return n;
}

const nvg_frag *nvg_fragset_query(nvg_fragset *s, nvg_frag_query *q) {
  int untyped = 0, bound[16], fresh;
  const def *d = NULL;
  char small[256], *key = small;
  if (q->len + q->ntarg + q->nparam + 2 > (int)sizeof small) key = nvb_get(s->arena, (size_t)(q->len + q->ntarg + q->nparam + 2));
  for (int i = 0; i < q->nparam; i++) untyped |= q->param[i] < 0;
  if (untyped && !(d = resolve(s, q, bound))) return NULL;
  int n = query_key(key, q);
  const int *done = nvb_map_find(s->done, key, (size_t)n);
  if (done) return s->made.at[*done - 1];
  if (!d && !(d = resolve(s, q, bound))) return NULL;
  if (s->calls == MAX_CALLS) {
    lexer l = lex_open(s->arena, s->unit.at[d->unit].text, s->unit.at[d->unit].name, d->at);
    lex_fail(&l, "%.*s calls itself", q->len, q->name);
  }
  char *name = nvb_get(s->arena, (size_t)q->len + 1);
  memcpy(name, q->name, (size_t)q->len);
  const nvg_frag *full = NULL;
  s->calls++;
  const nvg_frag *f = compile_form(s, d, bound, q->param, name, &full);
  s->calls--;
  NVB_PUSH(s->arena, s->made, f);
  *nvb_map_put(s->done, key, (size_t)n, &fresh) = s->made.n;
  return f;
}

/* A call in the body of c: this set, then the library. */
static const nvg_frag *query(nvg_fragset *s, nvg_frag_query *q, compiler *c) {
  int status = NVM_OK;
  const nvg_frag *f = nvg_fragset_query(s, q);
  if (f || s->is_library) return f;
  f = nvg_library_query(q, &status);
  if (status) lex_fail(&c->l, "%s", nvb_message());
  return f;
}

static nvg_fragset *set_new(nvb_arena *a, int is_library) {
  nvg_fragset *s = NVB_NEW(a, nvg_fragset);
  s->arena = a;
  s->is_library = is_library;
  s->names = nvb_map_new(a);
  s->done = nvb_map_new(a);
  return s;
}

nvg_fragset *nvg_fragset_new(nvb_arena *a) { return set_new(a, 0); }
nvg_fragset *nvg_library_set(nvb_arena *a) { return set_new(a, 1); }
void nvg_fragset_forget_calls(nvg_fragset *s) { s->calls = 0; }

/* Top level: frag, table, and what another language owns (kernel, schedule), which is skipped with its braces. */
void nvg_fragset_add(nvg_fragset *s, const char *text, const char *where) {
  nvg_text u = {where, text};
  lexer l = lex_open(s->arena, text, where, 0);
  NVB_PUSH(s->arena, s->unit, u);
  while (l.kind != T_END) {
    if (lex_take_word(&l, "frag")) {
      def d = {.unit = s->unit.n - 1, .at = (int)(l.tok - l.text)};
      slice name = lex_name(&l);
      int fresh, *first = nvb_map_put(s->names, name.p, (size_t)name.n, &fresh);
      d.next = *first - 1;
      NVB_PUSH(s->arena, s->def, d);
      *first = s->def.n;
    } else if (lex_take_word(&l, "table")) {
      table_def t = {.unit = s->unit.n - 1, .at = (int)(l.tok - l.text)}; /* the position before the name is taken */
      t.name = lex_name(&l);
      NVB_PUSH(s->arena, s->table, t);
    } else if (!lex_take_word(&l, "kernel") && !lex_take_word(&l, "schedule")) lex_fail(&l, "frag or table is missing");
    lex_skip_to_body(&l);
    lex_skip(&l);
  }
}

void nvg_fragset_parse(nvg_fragset *s, const char *text, const char *where) {
  int first = s->def.n;
  nvg_fragset_add(s, nvb_strdup(s->arena, text), nvb_strdup(s->arena, where));
  for (int k = first; k < s->def.n; k++) parse_header(s, &s->def.at[k]);
  for (int k = first; k < s->def.n; k++) { /* what is not generic is compiled now, so that its faults show */
    const def *d = &s->def.at[k];
    int generic_too = 0, *param = NVB_NEWN(s->arena, int, d->nparam + 1), targ[16];
    for (int i = 0; i < d->ngen; i++) generic_too |= (targ[i] = d->gen[i].type) < 0;
    for (int i = 0; i < d->nparam; i++) generic_too |= d->param[i].var >= 0, param[i] = resign(d->param[i].fn, d->param[i].type);
    if (generic_too) continue;
    lexer l = lex_open(s->arena, s->unit.at[d->unit].text, where, d->at);
    slice name = lex_name(&l);
    nvg_frag_query q = {.name = name.p, .len = name.n, .targ = targ, .param = param, .nparam = d->nparam};
    nvg_fragset_query(s, &q);
  }
}

int nvg_fragset_instance(nvg_fragset *s, int k, int type, nvg_frag_query *q) {
  if (k >= s->def.n) return 0;
  def *d = &s->def.at[k];
  if (!d->parsed) parse_header(s, d);
  lexer l = lex_open(s->arena, s->unit.at[d->unit].text, s->unit.at[d->unit].name, d->at);
  int *bound = NVB_NEWN(s->arena, int, d->ngen + 1), *param = NVB_NEWN(s->arena, int, d->nparam + 1), ok = 1;
  for (int i = 0; i < d->ngen; i++) {
    bound[i] = d->gen[i].type >= 0 ? d->gen[i].type : type;
    ok &= d->gen[i].type >= 0 || (class_bit(type) & classes[d->gen[i].cls].mask);
  }
  for (int i = 0; i < d->nparam; i++) param[i] = type_of(&d->param[i], bound);
  slice name = lex_name(&l);
  *q = (nvg_frag_query){.name = name.p, .len = name.n, .targ = bound, .ntarg = d->ngen, .param = param, .nparam = d->nparam};
  return ok ? 1 : -1;
}

const nvg_frag *nvg_fragset_find(nvg_fragset *s, const char *name, const nvm_dtype *param, int nparam) {
  int *types = NVB_NEWN(s->arena, int, nparam + 1), status = NVM_OK;
  for (int i = 0; i < nparam; i++) types[i] = param[i];
  nvg_frag_query q = {.name = name, .len = (int)strlen(name), .param = types, .nparam = nparam};
  const nvg_frag *f = nvg_fragset_query(s, &q);
  if (!f) f = nvg_library_query(&q, &status);
  if (!f && !status) nvg_query_fail(&q);
  return f;
}
