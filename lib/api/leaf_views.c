/* Finds the outputs of a graph that are views of a leaf: they get an offset and strides instead of a kernel. Never
   copies elements. */
#include <string.h>
#include "api/api.h"

typedef struct span { int64_t offset, stride[NVM_MAX_RANK]; } span;

/* Applies view `v` to *s, the layout of its operand `from`. Returns 0 if no strides describe the result. */
static int apply_view(span *s, const nvg_val *from, const nvg_val *v) {
  span old = *s;
  if (v->kind == NVG_VRESHAPE)
    return nvg_reshape_strides(s->stride, v->rank, v->shape, old.stride, from->rank, from->shape);
  for (int d = 0; d < v->rank; d++) {
    if (v->kind == NVG_VPERMUTE) s->stride[d] = old.stride[v->attr[d]];
    else if (v->kind == NVG_VSLICE) {
      s->offset += v->attr[2 * d] * old.stride[d];
      s->stride[d] = old.stride[d] * v->attr[2 * d + 1];
    } else if (from->shape[d] == 1 && v->shape[d] != 1) s->stride[d] = 0;
  }
  return 1;
}
static int is_strided(nvg_vkind k) {
  return k == NVG_VPERMUTE || k == NVG_VSLICE || k == NVG_VEXPAND || k == NVG_VRESHAPE;
}
/* Computes the layout of value `x` in a leaf and returns the leaf; -1 if it is no view of one. way: space for every
   value. */
static int span_of(const nvg_graph *g, int x, span *s, int *way) {
  int n = 0;
  for (; is_strided(g->v[x].kind); x = g->v[x].in[0]) way[n++] = x;
  const nvg_val *from = &g->v[x];
  if (from->kind != NVG_VLEAF) return -1;
  s->offset = 0;
  for (int d = 0; d < from->rank; d++) s->stride[d] = g->leaf[from->leaf].stride[d];
  for (int leaf = from->leaf;; from = &g->v[way[n]]) {
    if (!n--) return leaf;
    if (!apply_view(s, from, &g->v[way[n]])) return -1;
  }
}
nvg_graph *nva_split_views(nvb_arena *a, nva_views *w, const nvg_graph *g, int nviews) {
  nvg_graph *r = nvb_dup(a, g, sizeof *g);
  w->nleaf = g->nleaf;
  w->nout = g->nout;
  w->out = NVB_NEWN(a, nva_output, g->nout + 1);
  r->out = NVB_NEWN(a, int, g->nout + 1);
  r->leaf = nvb_dup(a, g->leaf, sizeof *g->leaf * (size_t)g->nleaf);
  r->nout = 0;
  int *way = NVB_NEWN(a, int, g->n + 1);
  for (int i = 0; i < g->nout; i++) {
    const nvg_val *v = &g->v[g->out[i]];
    nva_output *o = &w->out[i];
    span s;
    o->aval = (nvg_aval){ v->dtype, v->rank, v->size, v->shape };
    o->stride = NVB_NEWN(a, int64_t, v->rank + 1);
    o->donor = -1;
    o->leaf = v->size && i < nviews ? span_of(g, g->out[i], &s, way) : -1;
    if (o->leaf >= 0) {
      r->leaf[o->leaf].donated = 0; /* the leaf stays readable as this output */
      o->offset = s.offset;
      memcpy(o->stride, s.stride, sizeof(int64_t) * (size_t)v->rank);
      continue;
    }
    nvg_packed(o->stride, v->rank, v->shape);
    if (v->size) r->out[r->nout++] = g->out[i];
  }
  return r;
}

void nva_views_donors(nva_views *v, const nvf_plan *p) {
  for (int i = 0; i < v->nout; i++) v->out[i].donor = -1;
  for (int b = 0; b < p->nbuf; b++) {
    if (p->buf[b].kind != NVF_BOUT || p->buf[b].donor < 0) continue;
    int k = p->buf[b].id, i = 0; /* the plan numbers only the outputs that it computes */
    while (v->out[i].leaf >= 0 || !v->out[i].aval.size || k--) i++;
    v->out[i].donor = p->buf[b].donor;
  }
}
