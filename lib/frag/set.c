/* Sets of definitions: the index by name, parsed headers, overload resolution, and the fragments compiled so far by
   name and types. It never parses a body. */
#include "frag/set.h"
#include <stdio.h>
#include <string.h>

/* ---- type classes */
enum { C_BOOL = 1, C_SINT = 2, C_UINT = 4, C_REAL = 8, C_HALF = 16 };
typedef struct type_class { const char *name; int mask, weight; } type_class;
static const type_class classes[] = { { "any", C_BOOL | C_SINT | C_UINT | C_REAL, 0 },
                                      { "num", C_SINT | C_UINT | C_REAL, 1 },
                                      { "int", C_SINT | C_UINT, 2 },
                                      { "bool", C_BOOL, 3 },
                                      { "sint", C_SINT, 3 },
                                      { "uint", C_UINT, 3 },
                                      { "real", C_REAL, 3 },
                                      { "half", C_HALF, 3 } };
enum { NCLASSES = sizeof classes / sizeof *classes, EXACT = 4 };

static int class_bit(int t) {
  if (t < 0 || nvg_class_of((nvm_dtype)t) == NVG_COMPLEX) return 0;
  if (nvg_is_narrow((nvm_dtype)t)) return C_HALF;
  switch (nvg_class_of((nvm_dtype)t)) {
  case NVG_BOOLEAN: return C_BOOL;
  case NVG_SIGNED: return C_SINT;
  case NVG_UNSIGNED: return C_UINT;
  default: return C_REAL;
  }
}

int nvg_type_word(slice s) {
  char name[8];
  if (s.n > 4 || !strchr("biuf", s.p[0])) return -1;
  memcpy(name, s.p, (size_t)s.n);
  name[s.n] = 0;
  for (int t = 0; t < NVM_NDTYPES; t++)
    if (nvg_parts((nvm_dtype)t) == 1 && !strcmp(name, nvg_dtype_short((nvm_dtype)t))) return t;
  return -1;
}

/* Applies signed<type> or unsigned<type>: the integer type of the same size. */
static int with_sign(int fn, int t) {
  if (!fn || t < 0) return t;
  int size = nvg_size((nvm_dtype)t);
  return (fn == 'u' ? NVM_U8 : NVM_I8) + (size == 8 ? 3 : size >> 1);
}

/* ---- headers of definitions */
int nvg_type_variable(const def *d, slice s) {
  for (int i = 0; i < d->ngen; i++)
    if (d->gen[i].type < 0 && same(d->gen[i].name, s)) return i;
  return -1;
}

/* Parses type = dtype | variable | signed<type> | unsigned<type> at the current token; returns 0 if there is none. */
int nvg_type_try(lexer *l, const def *d, type_expr *out) {
  if (l->kind != T_NAME) return 0;
  slice s = l->word;
  if (is(s, "signed") || is(s, "unsigned")) {
    int fn = s.p[0];
    nvg_lex_next(l);
    nvg_lex_expect(l, '<');
    if (!nvg_type_try(l, d, out)) nvg_lex_fail(l, "a type is missing");
    nvg_lex_expect(l, '>');
    out->fn = (int8_t)fn;
    return 1;
  }
  int t = nvg_type_word(s), var = d ? nvg_type_variable(d, s) : -1;
  if (t < 0 && var < 0) return 0;
  *out = (type_expr){ .type = (int8_t)t, .var = (int8_t)var };
  nvg_lex_next(l);
  return 1;
}

type_expr nvg_type_need(lexer *l, const def *d) {
  type_expr t = { 0 };
  if (!nvg_type_try(l, d, &t)) nvg_lex_fail(l, "a type is missing");
  return t;
}

int nvg_type_of(const type_expr *t, const int *bound) {
  return with_sign(t->fn, t->var >= 0 ? bound[t->var] : t->type);
}

static void parse_generics(nvb_arena *a, lexer *l, def *d) {
  generic gen[NVG_MAX_GENERIC];
  if (!nvg_lex_take(l, '<')) return;
  do {
    if (d->ngen == NVG_MAX_GENERIC) nvg_lex_fail(l, "too many generic types");
    generic g = { .name = nvg_lex_name(l), .type = -1 };
    if (nvg_lex_take(l, ':')) {
      slice c = nvg_lex_name(l);
      for (g.cls = 0; g.cls < NCLASSES && !is(c, classes[g.cls].name); g.cls++) {}
      if (g.cls == NCLASSES) nvg_lex_fail(l, "unknown class (bool, int, sint, uint, real, half, num, any)");
    } else if ((g.type = nvg_type_word(g.name)) < 0) nvg_lex_fail(l, "a class is missing, as in <T: real>");
    gen[d->ngen++] = g;
  } while (nvg_lex_take(l, ','));
  nvg_lex_expect(l, '>');
  d->gen = nvb_dup(a, gen, sizeof *gen * (size_t)d->ngen);
}

static void parse_header(nvg_fragset *s, def *d) {
  lexer l = nvg_lex_open(s->arena, s->unit.at[d->unit].text, s->unit.at[d->unit].name, d->at);
  NVB_VEC(slice) names = { 0 };
  NVB_VEC(type_expr) types = { 0 }, results = { 0 };
  d->ngen = 0;
  nvg_lex_name(&l);
  parse_generics(s->arena, &l, d);
  nvg_lex_expect(&l, '(');
  while (l.kind != ')') {
    NVB_PUSH(s->arena, names, nvg_lex_name(&l));
    nvg_lex_expect(&l, ':');
    NVB_PUSH(s->arena, types, nvg_type_need(&l, d));
    if (!nvg_lex_take(&l, ',')) break;
  }
  nvg_lex_expect(&l, ')');
  if (nvg_lex_take(&l, TWO('-', '>'))) {
    int many = nvg_lex_take(&l, '(');
    do NVB_PUSH(s->arena, results, nvg_type_need(&l, d));
    while (many && nvg_lex_take(&l, ','));
    if (many) nvg_lex_expect(&l, ')');
  }
  if (l.kind != '{') nvg_lex_fail(&l, "'{' is missing");
  d->body = (int)(l.tok - l.text);
  d->pname = names.at, d->param = types.at, d->nparam = types.n;
  d->result = results.at, d->nresult = results.n;
  d->parsed = 1;
}

/* ---- overload resolution. Binds the generic type of one operand; returns a weight that is higher for a more specific
   parameter, or -1 if the definition does not accept the type. */
static int bind_type(int *bound, const def *d, const type_expr *t, int type) {
  if (t->var < 0) return with_sign(t->fn, t->type) == type ? EXACT : -1;
  const generic *g = &d->gen[t->var];
  if (t->fn || bound[t->var] >= 0) return with_sign(t->fn, bound[t->var]) == type ? classes[g->cls].weight : -1;
  if (!(class_bit(type) & classes[g->cls].mask)) return -1;
  bound[t->var] = type;
  return classes[g->cls].weight;
}

static int matches_call(const def *d, const nvg_frag_query *q, int *bound, int *param) {
  int weight = 0, w;
  if (d->nparam != q->nparam || q->ntarg > d->ngen) return -1;
  for (int i = 0; i < d->ngen; i++) {
    const generic *g = &d->gen[i];
    bound[i] = g->type;
    if (i >= q->ntarg) continue; /* the other types follow from the operands */
    if (g->type >= 0 ? g->type != q->targ[i] : !(class_bit(q->targ[i]) & classes[g->cls].mask)) return -1;
    weight += g->type >= 0 ? EXACT : classes[g->cls].weight;
    bound[i] = q->targ[i];
  }
  for (int i = 0; i < q->nparam; i++) {
    if (q->param[i] < 0) continue;
    if ((w = bind_type(bound, d, &d->param[i], q->param[i])) < 0) return -1;
    weight += w;
  }
  for (int i = 0; i < q->nparam; i++) { /* untyped literals take the parameter's type */
    int t = param[i] = nvg_type_of(&d->param[i], bound), bit = class_bit(t);
    if (t < 0 || (q->param[i] < 0 && !(bit & (q->param[i] == NVG_WEAK_FLOAT ? C_REAL : C_REAL | C_SINT | C_UINT))))
      return -1;
  }
  for (int i = 0; i < d->ngen; i++)
    if (bound[i] < 0) return -1;
  return weight;
}

/* ---- names. The lexer stays at the name of a definition. */
static slice name_here(const lexer *l) {
  if (l->kind != T_NAME) nvg_lex_fail(l, "a name is missing");
  return l->word;
}
static void add_frag(nvg_fragset *s, const lexer *l, int unit) {
  def d = { .unit = unit, .at = (int)(l->tok - l->text) };
  slice name = name_here(l);
  int fresh, *first = nvb_map_put(s->names, name.p, (size_t)name.n, &fresh);
  d.next = *first - 1;
  NVB_PUSH(s->arena, s->def, d);
  *first = s->def.n;
}
static int bucket_of(const char *name, int n) {
  unsigned h = 0;
  for (int i = 0; i < n; i++) h = (h * 31 + (unsigned char)name[i]) % NVG_BUCKETS;
  return (int)h;
}
/* Returns the last definition of the name + 1; 0: there is none. */
static int find_name(nvg_fragset *s, const char *name, int n) {
  int b = bucket_of(name, n), start = nvg_frag_buckets[b];
  while (s->indexed && start + s->known[b] < nvg_frag_buckets[b + 1]) {
    nvg_frag_place p = nvg_frag_places[start + s->known[b]];
    lexer l = nvg_lex_open(s->arena, s->unit.at[p.text].text, s->unit.at[p.text].name, p.at);
    add_frag(s, &l, p.text);
    s->known[b]++;
  }
  const int *last = nvb_map_find(s->names, name, (size_t)n);
  return last ? *last : 0;
}

/* Returns the most specific definition that accepts the call, with its types bound and q's literals typed; NULL if
   there is none. */
static const def *resolve_call(nvg_fragset *s, nvg_frag_query *q, int *bound) {
  int best = -1, found = -1, param[NVG_MAX_LIST], trial[NVG_MAX_GENERIC];
  if (q->nparam > NVG_MAX_LIST) return NULL;
  for (int k = find_name(s, q->name, q->len) - 1; k >= 0; k = s->def.at[k].next) {
    if (!s->def.at[k].parsed) parse_header(s, &s->def.at[k]);
    int w = matches_call(&s->def.at[k], q, trial, param);
    if (w <= best) continue;
    best = w, found = k;
    memcpy(bound, trial, sizeof trial);
  }
  if (found < 0) return NULL;
  matches_call(&s->def.at[found], q, trial, param);
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

/* ---- sets */
/* The key of a call: name<targs>(params), with one letter per type. */
static int query_key(char *out, const nvg_frag_query *q) {
  int n = q->len;
  memcpy(out, q->name, (size_t)n);
  out[n++] = '<';
  for (int i = 0; i < q->ntarg; i++) out[n++] = (char)('A' + q->targ[i]);
  out[n++] = '(';
  for (int i = 0; i < q->nparam; i++) out[n++] = (char)('A' + q->param[i]);
  return n;
}

int nvg_fragset_defines(nvg_fragset *s, nvg_frag_query *q) {
  int bound[NVG_MAX_GENERIC];
  return resolve_call(s, q, bound) != NULL;
}

const nvg_frag *nvg_fragset_query(nvg_fragset *s, nvg_frag_query *q) {
  int untyped = 0, bound[NVG_MAX_GENERIC], fresh;
  const def *d = NULL;
  char small[256], *key = small;
  int length = q->len + q->ntarg + q->nparam + 2;
  if (length > (int)sizeof small) key = nvb_get(s->arena, (size_t)length);
  for (int i = 0; i < q->nparam; i++) untyped |= q->param[i] < 0;
  if (untyped && !(d = resolve_call(s, q, bound))) return NULL;
  int n = query_key(key, q);
  const int *done = nvb_map_find(s->done, key, (size_t)n);
  if (done) return s->made.at[*done - 1];
  if (!d && !(d = resolve_call(s, q, bound))) return NULL;
  if (s->calls == NVG_MAX_CALLS) {
    lexer l = nvg_lex_open(s->arena, s->unit.at[d->unit].text, s->unit.at[d->unit].name, d->at);
    nvg_lex_fail(&l, "%.*s calls itself", q->len, q->name);
  }
  char *name = nvb_get(s->arena, (size_t)q->len + 1);
  memcpy(name, q->name, (size_t)q->len);
  s->calls++;
  const nvg_frag *f = nvg_frag_compile(s, d, bound, q->param, name);
  s->calls--;
  NVB_PUSH(s->arena, s->made, f);
  *nvb_map_put(s->done, key, (size_t)n, &fresh) = s->made.n;
  return f;
}

const nvg_frag *nvg_fragset_call(nvg_fragset *s, nvg_frag_query *q, int *status) {
  const nvg_frag *f = nvg_fragset_query(s, q);
  *status = NVM_OK;
  return f || s->is_library ? f : nvg_library_query(q, status);
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

/* ---- texts */
static void add_table(nvg_fragset *s, const lexer *l) {
  table_def t = { .name = name_here(l), .unit = s->unit.n - 1, .at = (int)(l->tok - l->text) };
  NVB_PUSH(s->arena, s->table, t);
}
/* Indexes the top level: frag and table. Blocks of other languages (kernel, schedule) are skipped. */
void nvg_fragset_add(nvg_fragset *s, const char *text, const char *where) {
  nvg_text u = { where, text, NULL };
  lexer l = nvg_lex_open(s->arena, text, where, 0);
  NVB_PUSH(s->arena, s->unit, u);
  while (l.kind != T_END) {
    if (nvg_lex_take_word(&l, "frag")) add_frag(s, &l, s->unit.n - 1);
    else if (nvg_lex_take_word(&l, "table")) add_table(s, &l);
    else if (!nvg_lex_take_word(&l, "kernel") && !nvg_lex_take_word(&l, "schedule"))
      nvg_lex_fail(&l, "frag or table is missing");
    nvg_lex_skip_to_body(&l);
    nvg_lex_skip(&l);
  }
}
void nvg_fragset_add_library(nvg_fragset *s) {
  for (const nvg_text *t = nvg_frag_texts; t->name; t++) {
    NVB_PUSH(s->arena, s->unit, *t);
    for (const int *at = t->tables; *at; at++) {
      lexer l = nvg_lex_open(s->arena, t->text, t->name, *at);
      add_table(s, &l);
    }
  }
  s->indexed = 1;
}

void nvg_fragset_parse(nvg_fragset *s, const char *text, const char *where) {
  int first = s->def.n;
  nvg_fragset_add(s, nvb_strdup(s->arena, text), nvb_strdup(s->arena, where));
  for (int k = first; k < s->def.n; k++) parse_header(s, &s->def.at[k]);
  /* definitions that are not generic are compiled now, so that their errors are reported */
  for (int k = first; k < s->def.n; k++) {
    const def *d = &s->def.at[k];
    int generic_too = 0, *param = NVB_NEWN(s->arena, int, d->nparam + 1), targ[NVG_MAX_GENERIC];
    for (int i = 0; i < d->ngen; i++) generic_too |= (targ[i] = d->gen[i].type) < 0;
    for (int i = 0; i < d->nparam; i++)
      generic_too |= d->param[i].var >= 0, param[i] = with_sign(d->param[i].fn, d->param[i].type);
    if (generic_too) continue;
    lexer l = nvg_lex_open(s->arena, s->unit.at[d->unit].text, where, d->at);
    slice name = nvg_lex_name(&l);
    nvg_frag_query q = {
      .name = name.p, .len = name.n, .targ = targ, .ntarg = d->ngen, .param = param, .nparam = d->nparam
    };
    nvg_fragset_query(s, &q);
  }
}

int nvg_fragset_instance(nvg_fragset *s, int k, int type, nvg_frag_query *q) {
  if (k >= s->def.n) return 0;
  def *d = &s->def.at[k];
  if (!d->parsed) parse_header(s, d);
  lexer l = nvg_lex_open(s->arena, s->unit.at[d->unit].text, s->unit.at[d->unit].name, d->at);
  int *bound = NVB_NEWN(s->arena, int, d->ngen + 1), *param = NVB_NEWN(s->arena, int, d->nparam + 1), ok = 1;
  for (int i = 0; i < d->ngen; i++) {
    bound[i] = d->gen[i].type >= 0 ? d->gen[i].type : type;
    ok &= d->gen[i].type >= 0 || (class_bit(type) & classes[d->gen[i].cls].mask);
  }
  for (int i = 0; i < d->nparam; i++) param[i] = nvg_type_of(&d->param[i], bound);
  slice name = nvg_lex_name(&l);
  *q = (nvg_frag_query){
    .name = name.p, .len = name.n, .targ = bound, .ntarg = d->ngen, .param = param, .nparam = d->nparam
  };
  return ok ? 1 : -1;
}

const nvg_frag *nvg_fragset_find(nvg_fragset *s, const char *name, const nvm_dtype *param, int nparam) {
  int *types = NVB_NEWN(s->arena, int, nparam + 1), status;
  for (int i = 0; i < nparam; i++) types[i] = param[i];
  nvg_frag_query q = { .name = name, .len = (int)strlen(name), .param = types, .nparam = nparam };
  const nvg_frag *f = nvg_fragset_call(s, &q, &status);
  if (!f && !status) nvg_query_fail(&q);
  return f;
}
