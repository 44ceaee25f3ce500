/* Before a part is emitted: builds its loop nests (codegen/loop_nests.c), and gives each tile a home: values, a stack
   slot per item, or scratch. Emits no statement. */
#include "codegen/llvm/emit.h"
#include "frag/dtype.h"

int64_t nvcl_scratch(nvcl_em *e, int64_t bytes) {
  int64_t at = e->scratch_bytes;
  e->scratch_bytes += (bytes + 63) & ~(int64_t)63;
  return at;
}

static void give_scratch(nvcl_em *e, int tile) {
  nvcl_tile *t = &e->tile[tile];
  const nvf_layout *l = &e->t->tile[tile];
  int64_t n = (int64_t)t->nitem * t->lanes * nvg_size(e->k->tile[tile].type);
  for (int i = 0; i < l->n; i++)
    if (l->d[i].level == 'I') n *= l->d[i].extent;
  t->home = NVC_MEM;
  t->off = nvcl_scratch(e, n);
}

static void share_storage(nvcl_em *e, int tile, const nvf_stmt *put) {
  nvcl_tile *t = &e->tile[tile];
  const nvf_layout *l = &e->t->tile[put->in[0]];
  int64_t n = nvg_size(e->k->tile[tile].type);
  t->home = NVC_MEM;
  t->norder = put->norder;
  t->order = put->order;
  t->extent = NVB_NEWN(e->a, int64_t, put->norder);
  for (int i = 0; i < put->norder; i++) n *= t->extent[i] = nvf_extent(l, put->order[i]);
  t->off = nvcl_scratch(e, n);
}

/* Must the tile be in scratch? It must for scans, and for relayouts that registers cannot do. */
int nvcl_in_memory(void *emitter, int tile) {
  nvcl_em *e = emitter;
  const nvc_tile_use *t = &e->r.tile[tile];
  for (int i = 0; i < t->users.n; i++) {
    const nvf_stmt *u = e->r.stmt[t->users.at[i]];
    if (u->op == NVF_SCAN) return 1;
    if (u->op == NVF_RELAYOUT && !nvf_layout_eq(&e->t->tile[u->in[0]], &e->t->tile[u->out[0]]) &&
        (nvc_has_loops(&e->t->tile[u->in[0]]) || nvc_has_loops(&e->t->tile[u->out[0]]) || !nvcl_in_registers(e, u)))
      return 1;
  }
  return t->scanned;
}

static void give_home(nvcl_em *e, int tile) {
  nvcl_tile *t = &e->tile[tile];
  const nvc_tile_use *u = &e->r.tile[tile];
  const nvf_layout *l = &e->t->tile[tile];
  if (u->def->op == NVF_PUT) {
    share_storage(e, tile, u->def);
    return;
  }
  t->nest = e->r.nest_of[u->def->id]->id;
  t->nitem = nvc_items(l);
  t->lanes = nvcl_layout_lanes(e, l);
  t->v = NVB_NEWN(e->a, val, t->nitem);
  if (u->kept || (u->mutable && (nvc_has_loops(l) || nvcl_in_memory(e, tile)))) give_scratch(e, tile);
  else if (u->mutable) t->home = NVC_VAR;
}

nvc_seq *nvcl_plan_part(nvcl_em *e, const nvf_part *p) {
  e->known = e->active = 0;
  nvc_seq *q = nvc_nests_of_part(&e->r, p);
  for (int t = 0; t < e->k->ntile; t++) {
    const nvf_stmt *d = e->r.tile[t].def;
    if (d && e->r.nest_of[d->id] && !e->tile[t].v && !e->tile[t].norder) give_home(e, t);
  }
  return q;
}
