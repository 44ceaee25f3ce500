/* Derives tensor maps for TMA: extents and strides of a buffer, and the start of a CTA's box, from the address and the
   conditions of a load or a store. Addresses are decomposed into polynomials over sizes, block coordinates, loop
   variables and axes. Decides only whether an access can be a box, and says why if it cannot; never the box's size. */
#include "codegen/cuda/tensor_core.h"
#include <string.h>
#include "frag/dtype.h"

enum { FACTORS = 4, TERMS = 24 };
typedef struct factor { nvf_xkind kind; int id; } factor;
typedef struct term { int64_t c; int n; factor f[FACTORS]; } term;   /* f is sorted */
typedef struct poly { int n, bad; term t[TERMS]; } poly;

static int is_before(factor a, factor b) { return a.kind != b.kind ? a.kind < b.kind : a.id < b.id; }
static int same_factors(const term *a, const term *b) {
  int same = a->n == b->n;
  for (int i = 0; i < a->n && same; i++) same = a->f[i].kind == b->f[i].kind && a->f[i].id == b->f[i].id;
  return same;
}

static void add_term(poly *p, term t) {
  for (int i = 0; i < p->n; i++)
    if (same_factors(&p->t[i], &t)) {
      p->t[i].c += t.c;
      if (!p->t[i].c) p->t[i] = p->t[--p->n];
      return;
    }
  if (!t.c) return;
  if (p->n == TERMS) p->bad = 1;
  else p->t[p->n++] = t;
}

static poly add_polys(poly a, const poly *b, int64_t sign) {
  a.bad |= b->bad;
  for (int i = 0; i < b->n; i++) {
    term t = b->t[i];
    t.c *= sign;
    add_term(&a, t);
  }
  return a;
}

static poly multiply_polys(const poly *a, const poly *b) {
  poly r = { .bad = a->bad | b->bad };
  for (int i = 0; i < a->n; i++)
    for (int j = 0; j < b->n; j++) {
      term t = a->t[i];
      t.c *= b->t[j].c;
      for (int k = 0; k < b->t[j].n; k++) {
        int at = t.n;
        if (t.n == FACTORS) return (poly){ .bad = 1 };
        for (; at > 0 && is_before(b->t[j].f[k], t.f[at - 1]); at--) t.f[at] = t.f[at - 1];
        t.f[at] = b->t[j].f[k];
        t.n++;
      }
      add_term(&r, t);
    }
  return r;
}

static poly constant_poly(int64_t c) {
  poly p = { 0 };
  add_term(&p, (term){ .c = c });
  return p;
}

static poly poly_of(const nvcu_em *e, const nvf_expr *x) {
  switch (x->kind) {
  case NVF_CONST: return constant_poly(x->value);
  case NVF_NAME: return constant_poly(nvc_name_value(&e->r, x->id));
  case NVF_PARAM:
  case NVF_GRID:
  case NVF_AXIS:
  case NVF_VAR: return (poly){ .n = 1, .t = { { .c = 1, .n = 1, .f = { { x->kind, x->id } } } } };
  case NVF_ADD:
  case NVF_SUB:
  case NVF_MUL: {
    poly a = poly_of(e, x->a), b = poly_of(e, x->b);
    return x->kind == NVF_MUL ? multiply_polys(&a, &b) : add_polys(a, &b, x->kind == NVF_ADD ? 1 : -1);
  }
  default: return (poly){ .bad = 1 };
  }
}

/* Removes from p the terms with the factor, and returns them without it. */
static poly take_factor(poly *p, factor f) {
  poly r = { .bad = p->bad };
  for (int i = 0; i < p->n;) {
    term t = p->t[i];
    int at = 0;
    while (at < t.n && (t.f[at].kind != f.kind || t.f[at].id != f.id)) at++;
    if (at == t.n) {
      i++;
      continue;
    }
    memmove(&t.f[at], &t.f[at + 1], sizeof *t.f * (size_t)(t.n - at - 1));
    t.n--;
    add_term(&r, t);
    p->t[i] = p->t[--p->n];
  }
  return r;
}

static int of_sizes(const poly *p) {
  int only = !p->bad;
  for (int i = 0; i < p->n; i++)
    for (int k = 0; k < p->t[i].n; k++) only &= p->t[i].f[k].kind == NVF_PARAM;
  return only;
}
static int is_one(const poly *p) { return !p->bad && p->n == 1 && p->t[0].c == 1 && !p->t[0].n; }

static int keep_poly(nvc_poly *to, const poly *p) {
  if (!of_sizes(p) || p->n > NVC_POLY_TERMS) return 0;
  *to = (nvc_poly){ .n = p->n };
  for (int i = 0; i < p->n; i++) {
    to->t[i].c = p->t[i].c;
    to->t[i].n = p->t[i].n;
    for (int k = 0; k < p->t[i].n; k++) to->t[i].param[k] = p->t[i].f[k].id;
  }
  return 1;
}

/* Finds a condition start + axis < extent, and returns its number + 1; 0: there is none. */
static int find_bound(const nvcu_em *e, const nvf_cond *c, int axis, poly *start, poly *extent) {
  for (int i = 0; c && i < c->nrel; i++) {
    if (c->rel[i].cmp != NVF_LT) continue;
    *start = poly_of(e, c->rel[i].a);
    *extent = poly_of(e, c->rel[i].b);
    poly coefficient = take_factor(start, (factor){ NVF_AXIS, axis });
    if (is_one(&coefficient) && of_sizes(extent) && !start->bad) return i + 1;
  }
  return 0;
}

/* Text of the index of an axis of which each CTA of a cluster has one index */
static const char *block_of(nvcu_em *e, const nvf_layout *l, int axis) {
  nvcu_xv x = nvcu_coordinate(e, axis, l, 0);
  return nvcu_index_text(e, &x);
}

static const char *text_of(nvcu_em *e, const poly *p, const nvf_layout *l) {
  nvb_text t = { .arena = e->a };
  for (int i = 0; i < p->n; i++) {
    nvb_print(&t, "%s%lld", i ? " + " : "", (long long)p->t[i].c);
    for (int k = 0; k < p->t[i].n; k++) {
      const factor *f = &p->t[i].f[k];
      nvb_print(&t, " * %s",
                f->kind == NVF_PARAM  ? nvcu_text(e, "p_%s", e->k->param[f->id].name)
                : f->kind == NVF_GRID ? e->grid[f->id]
                : f->kind == NVF_AXIS ? block_of(e, l, f->id)
                                      : e->var[f->id]);
    }
  }
  return t.n ? nvcu_text(e, "(int)(%s)", t.s) : "0";
}

/* Batches: block coordinates by which the address moves with strides that depend on sizes alone. */
static const char *batches_of(nvcu_em *e, nvcu_view *v, poly *rest) {
  nvc_cuda_map *m = &v->map;
  for (int g = 0; g < e->part->ngrid; g++) {
    poly stride = take_factor(rest, (factor){ NVF_GRID, g }), extent = poly_of(e, e->part->grid[g].extent);
    if (!stride.n) continue;
    if (m->rank == NVF_TMA_RANK) return "it has too many batch axes";
    if (!keep_poly(&m->stride[m->rank], &stride) || !keep_poly(&m->extent[m->rank], &extent))
      return "its batches are not even";
    v->grid[m->rank++] = g;
  }
  return keep_poly(&m->offset, rest) ? NULL : "its address is not that of a matrix";
}

const char *nvcu_view_of(nvcu_em *e, const nvf_stmt *s, int inner, int outer, nvcu_view *v) {
  const int axis[2] = { inner, outer };
  poly rest = poly_of(e, s->map), step[2];
  *v = (nvcu_view){ .l = nvc_layout_of(&e->r, s),
                    .map = { .param = s->buf, .type = e->k->param[s->buf].type, .rank = 2 } };
  nvc_cuda_map *m = &v->map;
  if (!s->where || s->where->ntile || s->where->nrel != 2) return "its conditions are not those of a row and a column";
  int said = 0;
  for (int i = 0; i < 2; i++) step[i] = take_factor(&rest, (factor){ NVF_AXIS, axis[i] });
  if (!is_one(&step[0]) || !of_sizes(&step[1])) return "its elements do not lie side by side";
  for (int i = 0; i < 2; i++) {
    poly start, extent;
    int which = find_bound(e, s->where, axis[i], &start, &extent);
    if (!which || which == said) return "its conditions are not those of a row and a column";
    said = which;
    for (int t = 0; t < start.n; t++)
      for (int f = 0; f < start.t[t].n; f++)
        if (start.t[t].f[f].kind == NVF_AXIS && !nvcu_apart(v->l, start.t[t].f[f].id))
          return "its box is not the same in the whole block";
    poly moved = multiply_polys(&start, &step[i]);
    rest = add_polys(rest, &moved, -1);
    if (!keep_poly(&m->extent[i], &extent) || !keep_poly(&m->stride[i], &step[i]))
      return "its sizes are not those of a matrix";
    v->start[i] = nvb_dup(e->a, &start, sizeof start);
  }
  return batches_of(e, v, &rest);
}

const char *nvcu_view_start(nvcu_em *e, const nvcu_view *v, int i) {
  return i < 2 ? text_of(e, v->start[i], v->l) : nvcu_text(e, "(int)%s", e->grid[v->grid[i]]);
}

/* The number of a map; equal maps share one. */
int nvcu_map_new(nvcu_em *e, const nvc_cuda_map *m) {
  for (int i = 0; i < e->nmap; i++)
    if (!memcmp(&e->map[i], m, sizeof *m)) return i;
  if (e->nmap == NVC_MAPS) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] TMA copies more than %d buffers", NVC_MAPS);
  e->map[e->nmap] = *m;
  return e->nmap++;
}
