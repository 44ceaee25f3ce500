/* Decides where in its memory a direct run keeps the results of its values: a place is taken again once nothing reads
   it any more, so that a long graph touches few pages. Never computes anything. */
#include "api/direct.h"

enum { GAPS = 32, TWICE = 2 };

/* Memory that is free again, in no order, and where the rest begins. What finds no room in `gap` is not taken again. */
typedef struct space { struct { int64_t at, bytes; } gap[GAPS]; int n; int64_t end; } space;

static int64_t take_space(space *s, int64_t bytes) {
  int best = -1;
  for (int i = 0; i < s->n; i++)
    if (s->gap[i].bytes >= bytes && (best < 0 || s->gap[i].bytes < s->gap[best].bytes)) best = i;
  if (best < 0) {
    s->end += bytes;
    return s->end - bytes;
  }
  int64_t at = s->gap[best].at;
  if (s->gap[best].bytes >= TWICE * bytes) s->gap[best].at += bytes, s->gap[best].bytes -= bytes;
  else s->gap[best] = s->gap[--s->n];
  return at;
}
static void give_space(space *s, int64_t at, int64_t bytes) {
  if (bytes && s->n < GAPS) s->gap[s->n].at = at, s->gap[s->n++].bytes = bytes;
}

/* May the value's readers read the memory of its operands? */
static int shows_operands(const nvg_val *v, const nva_use *use) {
  return use->inside || v->kind == NVG_VPICK || v->kind == NVG_VPERMUTE || v->kind == NVG_VSLICE ||
         v->kind == NVG_VEXPAND || v->kind == NVG_VRESHAPE;
}
/* Sets of each value the one after whose run nothing reads its memory; g->n: outputs. */
static void find_last_readers(const nvg_graph *g, nva_place *p, const nva_use *use) {
  for (int i = 0; i < g->n; i++) p[i] = (nva_place){ .last = i, .next = -1, .first = -1 };
  for (int i = 0; i < g->nout; i++) p[g->out[i]].last = g->n;
  for (int i = g->n - 1; i >= 0; i--) {
    int last = shows_operands(&g->v[i], &use[i]) ? p[i].last : i;
    for (int k = 0; k < g->v[i].nin; k++) {
      nva_place *x = &p[g->v[i].in[k]];
      x->last = x->last > last ? x->last : last;
    }
  }
}
int64_t nva_direct_place(const nvg_graph *g, nva_place *p, const nva_use *use) {
  space s = { .n = 0 };
  find_last_readers(g, p, use);
  for (int i = 0; i < g->n; i++) {
    nva_direct_cost c;
    nva_direct_cost_of(&c, g, &g->v[i], &use[i]);
    p[i].bytes = nva_direct_align(c.result);
    p[i].at = take_space(&s, p[i].bytes);
    if (p[i].last < g->n) {
      p[i].next = p[p[i].last].first;
      p[p[i].last].first = i;
    }
    for (int k = p[i].first; k >= 0; k = p[k].next) give_space(&s, p[k].at, p[k].bytes);
  }
  return s.end;
}
