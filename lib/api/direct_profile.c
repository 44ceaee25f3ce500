/* A direct run in a profile: one call of a kernel that has the graph's operations. */
#include <stdio.h>
#include <string.h>
#include "api/direct.h"
#include "base/clock.h"
#include "dispatch/profile.h"

/* Appends the operations of the graph, each once, as far as they fit. */
static void name_operations(char *text, size_t size, const nvg_graph *g) {
  size_t n = 0;
  *text = 0;
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    const char *name = v->name ? v->name : nvg_ops[v->op].name;
    int seen = v->kind == NVG_VLEAF || *name == '_';
    for (int k = 0; k < i && !seen; k++) seen = g->v[k].op == v->op && g->v[k].kind != NVG_VLEAF;
    if (seen || n + strlen(name) + 3 > size) continue;
    n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", name);
  }
}

void nva_direct_note(const nvg_graph *g, int64_t start) {
  int64_t ns = nvb_clock_ns() - start;
  char what[160];
  nvd_work w = { .dev = 1, .by = "direct", .hero = "direct", .what = what };
  name_operations(what, sizeof what, g);
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    if (v->kind == NVG_VLEAF) w.bytes += v->size * nvg_size(v->dtype);
    int64_t times = v->kind == NVG_VMAP ? v->size : v->kind == NVG_VRED ? g->v[v->in[0]].size : 0;
    if (times) w.operations += times * (v->frag->cost > 1 ? v->frag->cost : 1);
    if (v->kind == NVG_VCALL) w.operations += 2 * v->size * g->v[v->in[0]].shape[v->rank - 1];
    if (nvg_real_of(v->dtype) == NVM_F64) w.unit = NVD_UNIT_F64;
  }
  for (int i = 0; i < g->nout; i++) w.bytes += g->v[g->out[i]].size * nvg_size(g->v[g->out[i]].dtype);
  nvd_profile_note(&w, start, ns, 0);
}
