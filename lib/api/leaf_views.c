/* Outputs of a graph that are views of a leaf get an offset and strides instead of a kernel. Never copies elements. */
#include <string.h>
#include "api/api.h"

nvg_graph *nva_split_views(nvb_arena *a, nva_views *w, const nvg_graph *g, int nviews) {
  nvg_graph *r = nvb_dup(a, g, sizeof *g);
  w->nleaf = g->nleaf;
  w->nout = g->nout;
  w->out = NVB_NEWN(a, nva_output, g->nout + 1);
  r->out = NVB_NEWN(a, int, g->nout + 1);
  r->leaf = nvb_dup(a, g->leaf, sizeof *g->leaf * (size_t)g->nleaf);
  r->nout = 0;
  int *space = NVB_NEWN(a, int, g->n + 1);
  for (int i = 0; i < g->nout; i++) {
    const nvg_val *v = &g->v[g->out[i]];
    nva_output *o = &w->out[i];
    int64_t offset, stride[NVM_MAX_RANK];
    o->aval = (nvg_aval){ v->dtype, v->rank, v->size, v->shape };
    o->stride = NVB_NEWN(a, int64_t, v->rank + 1);
    o->donor = -1;
    o->leaf = v->size && i < nviews ? nvg_leaf_strides(&offset, stride, g, g->out[i], space) : -1;
    if (o->leaf >= 0) {
      r->leaf[o->leaf].donated = 0; /* the leaf stays readable as this output */
      o->offset = offset;
      memcpy(o->stride, stride, sizeof(int64_t) * (size_t)v->rank);
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
