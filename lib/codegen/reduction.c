/* Analyses a reduction for all emitters of reductions: which digits and loops play which role under the reduction
   order. Emits nothing. */
#include "codegen/reduction.h"

nvc_role nvc_role_of(const nvc_reduction *r, const nvf_digit *d) {
  if (d->axis != r->s->axis) return NVC_KEPT;
  return d->stride >= r->c ? NVC_CHUNK : d->stride >= r->w ? NVC_SEQUENCE : NVC_LANE;
}

int nvc_is_dimension(const nvc_reduction *r, const nvf_digit *loop) {
  nvc_role role = nvc_role_of(r, loop);
  return role == NVC_KEPT || (r->spread && role != NVC_SEQUENCE);
}

int64_t nvc_slots(const nvc_reduction *r, int from) {
  int64_t n = 1;
  for (int i = from; i < r->nest->nloop; i++)
    if (nvc_is_dimension(r, &r->nest->loop[i])) n *= r->nest->loop[i].extent;
  return n;
}

const nvf_digit *nvc_loop_with(const nvc_reduction *r, int64_t bit) {
  for (int i = r->first; i < r->nest->nloop; i++) {
    const nvf_digit *d = &r->nest->loop[i];
    if (d->axis == r->s->axis && nvc_is_dimension(r, d) && bit >= d->stride && bit < d->stride * d->extent) return d;
  }
  return NULL;
}

static void find_levels(nvc_reduction *r) {
  r->first = r->start = r->nest->nloop;
  r->chunks = 1;
  for (int i = r->nest->nloop; i-- > 0;) {
    const nvf_digit *d = &r->nest->loop[i];
    nvc_role role = nvc_role_of(r, d);
    r->spread |= role == NVC_LANE;
    if (role == NVC_SEQUENCE) r->start = i;
    if (role == NVC_CHUNK) r->chunks *= d->extent;
    if (role != NVC_KEPT) r->first = i;
  }
  if (!r->spread) return;
  r->start = r->first;
  r->chunks = 1;
}

nvc_reduction nvc_reduction_of(const nvc_nests *runs, const nvf_stmt *s, const nvc_nest *nest) {
  nvf_red_order st = runs->s->bind[s->red_order].order;
  nvc_reduction r = {
    .s = s, .nest = nest, .x = &runs->t->tile[s->in[0]], .y = &runs->t->tile[s->out[0]], .nstate = s->nout
  };
  r.extent = nvf_extent(r.x, s->axis);
  r.c = st.c < r.extent ? st.c : r.extent;
  r.w = st.w < r.c ? st.w : r.c;
  for (int i = 0; i < r.x->n; i++)
    if (nvc_role_of(&r, &r.x->d[i]) != NVC_SEQUENCE || r.x->d[i].extent == 1) r.acc.d[r.acc.n++] = r.x->d[i];
  r.nacc = nvc_items(&r.acc);
  r.ny = nvc_items(r.y);
  find_levels(&r);
  return r;
}
