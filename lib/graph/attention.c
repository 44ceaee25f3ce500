/* Recognises attention: the product of a softmax along the rows of scores, which are functions of another product, with
   a matrix of values. However it was written (the sums divide before the second product or behind it), it becomes one
   call, so that a kernel may compute the rows piece by piece, with a running maximum and a running sum, and never has
   the scores in memory. It decides what is attention, never whether a kernel should compute it (lib/fusion does). */
#include <float.h>
#include <string.h>
#include "graph/attention.h"
#include "graph/lower.h"

/* The values of one attention. scores: the argument of the softmax; first: the product that they are functions of;
   second: the product with the values; root: what the call takes the place of. */
typedef struct attention { int scores, first, second, root; } attention;
typedef struct finder {
  const nvg_graph *g;
  nvg_attention_limits most;
  int *of;    /* by value: 1 + the attention whose root it is; 0: none */
  int *first; /* by value, of the attention that is looked at: the product that it is a function of */
  uint8_t *rounded;
  NVB_VEC(attention) all;
} finder;

static const nvg_val *value_of(const finder *f, int i) { return &f->g->v[i]; }
static int64_t last_of(const nvg_val *v) { return v->rank ? v->shape[v->rank - 1] : 0; }

static int is_map(const finder *f, int i, const char *frag) {
  return value_of(f, i)->kind == NVG_VMAP && !strcmp(value_of(f, i)->frag->name, frag);
}

static int is_float_cast(const finder *f, int i) {
  const nvg_val *v = value_of(f, i);
  return is_map(f, i, "cast") && nvg_class_of(v->dtype) == NVG_FLOAT &&
         nvg_class_of(value_of(f, v->in[0])->dtype) == NVG_FLOAT;
}

/* The value behind casts between floats, and reshapes that keep the rows. */
static int behind(const finder *f, int i) {
  for (;; i = value_of(f, i)->in[0]) {
    const nvg_val *v = value_of(f, i);
    int keeps = v->kind == NVG_VRESHAPE && last_of(v) == last_of(value_of(f, v->in[0]));
    if (!keeps && !is_float_cast(f, i)) return i;
  }
}

static int is_number(const finder *f, int i, double x) {
  const nvg_val *v = value_of(f, i);
  return v->kind == NVG_VCONST && v->dtype == NVM_F32 && nvg_bits_float(NVM_F32, (uint64_t)v->attr[0]) == x;
}

/* If each row of i holds one number, what a reduction makes of a row of some value, returns that value, else -1. A
   maximum may be bounded, and a sum may have 0 added to it, by which -0 becomes 0. */
static int find_reduced(const finder *f, int i, const char *merge) {
  for (int rows = 0;; i = value_of(f, i)->in[0]) {
    const nvg_val *v = value_of(f, i), *x = v->nin ? value_of(f, v->in[0]) : NULL;
    if (v->kind == NVG_VRED)
      return rows && v->nin == 1 && v->attr[0] == v->rank - 1 && v->attr[1] == 1 && !strcmp(v->frag->name, merge)
                 ? v->in[0]
                 : -1;
    int bounds = (is_map(f, i, "minimum") && is_number(f, v->in[1], FLT_MAX)) ||
                 (is_map(f, i, "add") && is_number(f, v->in[1], 0));
    if (v->kind == NVG_VEXPAND && !rows && v->rank == x->rank && last_of(x) == 1 &&
        !memcmp(v->shape, x->shape, (size_t)(v->rank - 1) * sizeof *v->shape))
      rows = 1;
    else if (!is_float_cast(f, i) && !bounds && !(v->kind == NVG_VRESHAPE && (rows || last_of(v) == last_of(x))))
      return -1;
  }
}

/* Whether i is exp(scores - their maxima); sets the scores. */
static int is_exponential(const finder *f, int i, int *scores) {
  int d = is_map(f, i, "exp") ? value_of(f, i)->in[0] : -1;
  if (d < 0 || !is_map(f, d, "subtract")) return 0;
  *scores = value_of(f, d)->in[0];
  int of = find_reduced(f, value_of(f, d)->in[1], "maximum");
  return of >= 0 && behind(f, of) == behind(f, *scores);
}

static int is_product(const finder *f, int i) {
  const nvg_val *v = value_of(f, i);
  return v->kind == NVG_VCALL && v->op == NVG_OP_GEMM && v->dtype == NVM_F32;
}

/* The product of which the scores are a function, element by element; negative: none, or several. */
static int find_first(const finder *f, int scores, int64_t size, int64_t columns) {
  enum { NONE = -1, SEVERAL = -2 };
  for (int i = 0; i <= scores; i++) {
    const nvg_val *v = value_of(f, i);
    int found = NONE, each = v->kind == NVG_VMAP || v->kind == NVG_VRESHAPE, of_scores = v->size == size;
    of_scores &= last_of(v) == columns;
    for (int j = 0; j < v->nin && each && of_scores; j++) {
      int x = f->first[v->in[j]];
      found = found == NONE || found == x ? x : x == NONE ? found : SEVERAL;
    }
    f->first[i] = of_scores && is_product(f, i) ? i : found;
  }
  return f->first[scores];
}

static int is_supported(const finder *f, const attention *a) {
  const nvg_val *p = value_of(f, a->first), *o = value_of(f, a->second), *q = value_of(f, p->in[0]);
  int narrow = nvg_is_narrow(q->dtype) && !nvg_is_f8(q->dtype);
  return q->dtype == value_of(f, o->in[1])->dtype && (narrow || (q->dtype == NVM_F32 && f->most.singles)) &&
         nvg_same_shape(p, value_of(f, o->in[0])) && last_of(q) <= f->most.head && last_of(o) <= f->most.head &&
         o->size;
}

/* Whether nothing else reads what lies between the first product and the root. */
static int is_closed(const finder *f, const attention *a) {
  const nvg_graph *g = f->g;
  uint8_t *in = nvb_get(g->arena, (size_t)g->n + 1), *made = nvb_get(g->arena, (size_t)g->n + 1);
  made[a->first] = 1;
  for (int i = a->first + 1; i <= a->root; i++)
    for (int j = 0; j < g->v[i].nin; j++) made[i] |= made[g->v[i].in[j]];
  in[a->root] = 1;
  for (int i = a->root; i > a->first; i--)
    for (int j = 0; j < g->v[i].nin && in[i]; j++) in[g->v[i].in[j]] |= made[g->v[i].in[j]];
  for (int i = 0; i < g->n; i++)
    for (int j = 0; j < g->v[i].nin && !in[i]; j++)
      if (g->v[i].in[j] != a->root && in[g->v[i].in[j]]) return 0;
  for (int i = 0; i < g->nout; i++)
    if (g->out[i] != a->root && in[g->out[i]]) return 0;
  return 1;
}

/* Matches a quotient of exponentials, or a quotient of their product, by their sums. */
static int is_divided(const finder *f, int quotient, int *of, int *sums) {
  if (!is_map(f, quotient, "divide")) return 0;
  *of = behind(f, value_of(f, quotient)->in[0]);
  *sums = find_reduced(f, value_of(f, quotient)->in[1], "add");
  return *sums >= 0;
}

static int is_attention(const finder *f, int root, attention *a) {
  int what, sums, early = is_product(f, root), e;
  *a = (attention){ .root = root, .second = root };
  if (early) {
    if (!is_divided(f, behind(f, value_of(f, root)->in[0]), &e, &sums)) return 0;
  } else {
    if (!is_divided(f, root, &what, &sums) || !is_product(f, what) ||
        last_of(value_of(f, root)) != last_of(value_of(f, what)))
      return 0;
    a->second = what;
    e = behind(f, value_of(f, what)->in[0]);
  }
  if (behind(f, sums) != e || !is_exponential(f, e, &a->scores)) return 0;
  const nvg_val *p = value_of(f, value_of(f, a->second)->in[0]);
  a->first = find_first(f, a->scores, p->size, last_of(p));
  return a->first >= 0 && is_supported(f, a) && is_closed(f, a);
}

/* Marks the roundings of the first product to 16 bits that its readers widen again. */
static void find_roundings(finder *f, const attention *a) {
  const nvg_graph *g = f->g;
  for (int i = a->first + 1; i < a->root; i++) {
    int widened = is_float_cast(f, i) && g->v[i].in[0] == a->first;
    for (int u = i + 1; u < a->root && widened; u++)
      for (int j = 0; j < g->v[u].nin; j++)
        widened &= g->v[u].in[j] != i || (is_float_cast(f, u) && g->v[u].dtype == NVM_F32);
    f->rounded[i] = widened;
  }
}

static int call_attention(nvg_lower *l, const attention *a, const nvg_val *root) {
  const nvg_val *second = &l->g->v[a->second], *p = &l->g->v[second->in[0]];
  int in[2] = { nvg_add_reshape(l, nvg_add_cast(l, l->rep[a->scores], NVM_F32), p->rank, p->shape),
                l->rep[second->in[1]] };
  const int64_t attr[NVG_ATTENTION_ATTRS] = { second->attr[0], second->attr[1], NVG_ATTENTION };
  l->op = NVG_OP_GEMM;
  nvg_val c = { .kind = NVG_VCALL,
                .dtype = second->dtype,
                .rank = second->rank,
                .shape = second->shape,
                .nin = 2,
                .in = in,
                .attr = attr,
                .nattr = NVG_ATTENTION_ATTRS,
                .name = "attention" };
  int out = nvg_add(l, &c);
  l->op = root->op;
  return nvg_add_reshape(l, nvg_add_cast(l, out, root->dtype), root->rank, root->shape);
}

static int maybe_call(nvg_lower *l, int value, const nvg_val *v, int *in, const void *how) {
  const finder *f = how;
  if (f->of[value]) return call_attention(l, &f->all.at[f->of[value] - 1], v);
  if (f->rounded[value] || (v->nin == 1 && f->rounded[l->g->v[value].in[0]])) return in[0];
  return nvg_make_add(&l->make, v);
}

const nvg_graph *nvg_with_attention(nvb_arena *a, const nvg_graph *g, nvg_attention_limits most) {
  finder f = { .g = g,
               .most = most,
               .of = NVB_NEWN(a, int, g->n + 1),
               .first = NVB_NEWN(a, int, g->n + 1),
               .rounded = nvb_get(a, (size_t)g->n + 1) };
  attention found;
  for (int i = 0; i < g->n; i++) {
    if (!is_attention(&f, i, &found)) continue;
    NVB_PUSH(a, f.all, found);
    f.of[i] = f.all.n;
    find_roundings(&f, &found);
  }
  return f.all.n ? nvg_made_anew(a, g, maybe_call, &f) : g;
}
