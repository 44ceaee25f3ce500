/* What the back ends' groups of maps with a slow path have in common. */
#include "codegen/map_group.h"

const nvf_stmt *nvc_group_maker(const nvc_map_group *g, int tile, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < g->map.at[i]->nout; j++)
      if (g->map.at[i]->out[j] == tile) return g->map.at[i];
  return NULL;
}

int nvc_group_is_used(const nvc_nests *r, const nvc_map_group *g, const nvf_stmt *s, const uint8_t *done) {
  nvc_ints uses = { 0 };
  nvc_uses(r, s, &uses);
  for (int i = 0; i < uses.n; i++) {
    const nvf_stmt *m = r->tile[uses.at[i]].def;
    if (nvc_group_maker(g, uses.at[i], g->map.n)) return 1;
    if (done && m && m->op == NVF_MAP && done[m->id] && nvc_group_is_used(r, g, m, done)) return 1;
  }
  return 0;
}

int nvc_assigns_mutable(const nvc_nests *r, const nvf_stmt *s) {
  for (int i = 0; i < s->nout; i++)
    if (r->tile[s->out[i]].mutable) return 1;
  return 0;
}

int nvc_group_find(const nvc_group_values *v, nvf_akind kind, int id) {
  int i = v->n;
  while (i-- > 0 && (v->at[i].kind != kind || v->at[i].id != id)) {}
  return i;
}

static int is_used_outside(const nvc_nests *r, const nvc_map_group *g, int tile) {
  const nvc_tile_use *u = &r->tile[tile];
  if (u->mutable || u->kept) return 1;
  for (int i = 0; i < u->users.n; i++) {
    int inside = 0;
    for (int k = 0; k < g->map.n; k++) inside |= g->map.at[k]->id == u->users.at[i];
    if (!inside) return 1;
  }
  return 0;
}

static nvm_dtype type_of(const nvf_kernel *k, const nvf_arg *a) {
  return a->kind == NVF_ATILE ? k->tile[a->id].type : a->kind == NVF_ASCALAR ? k->param[a->id].type : NVM_I64;
}

void nvc_group_find_values(const nvc_nests *r, nvc_map_group *g) {
  for (int i = 0; i < g->map.n; i++) {
    const nvf_stmt *s = g->map.at[i];
    for (int k = 0; k < s->narg; k++) {
      const nvf_arg *a = &s->arg[k];
      if (a->kind == NVF_ACONST || nvc_group_find(&g->in, a->kind, a->id) >= 0) continue;
      if (a->kind == NVF_ATILE && nvc_group_maker(g, a->id, i)) continue;
      NVB_PUSH(r->a, g->in, ((nvc_group_value){ a->kind, a->id, type_of(r->k, a), 0 }));
    }
    for (int o = 0; o < s->nout; o++)
      if (is_used_outside(r, g, s->out[o]))
        NVB_PUSH(r->a, g->out, ((nvc_group_value){ NVF_ATILE, s->out[o], r->k->tile[s->out[o]].type, 0 }));
  }
}
