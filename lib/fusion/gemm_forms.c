/* Converts operands of GEMMs (graph/gemm_operands.c): int8 GEMMs that neither tensor cores nor a library multiply as
   they are get transposed copies of operands or become GEMMs of floats, and tf32 GEMMs get one operand copied where
   that is faster. It looks at each GEMM as a kernel of its own, by layouts and extents alone; it never looks at what
   could be fused with it. */
#include <string.h>
#include "frag/dtype.h"
#include "fusion/planner.h"

/* The fusion of one GEMM whose operands are stored; NULL: there is none. */
static nvf_fusion *gemm_alone(nvf_graph *graph, int product) {
  uint64_t *stored = NVB_NEWN(graph->arena, uint64_t, graph->n / 64 + 1);
  const char *why;
  for (int i = 0; i < product; i++)
    if (!nvf_is_view(graph->node[i].kind)) nvf_put_bit(stored, i);
  nvf_fusion *k = nvf_fusion_new(graph, nvb_dup(graph->arena, &product, sizeof product), 1, stored, &why);
  return k && k->dot ? k : NULL;
}

static int is_multiplied(const nvf_fusion *k) {
  return k && (nvf_tensor_reach(k) > 0 || nvf_gemm_supported(nvf_gemm_of(k, NULL, NULL), k->graph->capabilities));
}

static int transposed_operands(const nvf_fusion *k) {
  int how = 0;
  for (int side = 0; side < 2 && k; side++)
    how |= nvf_tensor_is_mn_major(k, k->dot->region[0][side]) ? side ? NVG_TRANSPOSE_RIGHT : NVG_TRANSPOSE_LEFT : 0;
  return how;
}

/* Marks the int8 GEMMs that the device does not multiply. With `turn` their MN-major operands are to be copied, else
   they become GEMMs of floats. Returns their number. */
static int decide_i8(nvb_arena *a, const nvg_graph *g, nvf_machine m, uint8_t *how, int turn) {
  nvf_graph *graph = nvf_graph_of(a, g, nvf_sizes_of(a, g), m, NVF_ONE_PASS, NULL);
  int found = 0;
  for (int i = 0; i < graph->n; i++) {
    const nvf_node *n = &graph->node[i];
    nvf_fusion *k = n->kind == NVG_VCALL && nvg_of_bytes(g, &g->v[n->value]) ? gemm_alone(graph, i) : NULL;
    if (n->kind != NVG_VCALL || !nvg_of_bytes(g, &g->v[n->value]) || is_multiplied(k)) continue;
    int way = turn ? transposed_operands(k) : NVG_AS_FLOATS;
    how[n->value] = (uint8_t)(way ? way : NVG_AS_FLOATS);
    found++;
  }
  return found;
}

static const nvg_graph *convert_i8(nvb_arena *a, const nvg_graph *g, nvf_machine m, int fuse) {
  uint8_t *how = nvb_get(a, (size_t)g->n + 1);
  int found = 0;
  for (int i = 0; i < g->n; i++) found += how[i] = (uint8_t)nvg_of_bytes(g, &g->v[i]) * NVG_AS_FLOATS;
  if (!found) return g;
  if (!fuse || !m.caps->tensor) return nvg_with_operands(a, g, how);
  for (int turn = 1; turn >= 0; turn--) {
    how = nvb_get(a, (size_t)g->n + 1);
    g = decide_i8(a, g, m, how, turn) ? nvg_with_operands(a, g, how) : g;
  }
  return g;
}

/* ---- tf32 */
static int is_tf32(const nvg_graph *g, const nvg_val *v) {
  return v->kind == NVG_VCALL && g->v[v->in[0]].dtype == NVM_F32 && v->attr[1] == NVM_PRECISION_TF32;
}

/* ns to copy an operand; 0 if it is computed anyway, and so can be stored transposed */
static double copy_time(const nvb_caps *c, const nvg_graph *g, int i) {
  const nvg_val *x = nvf_behind_views(g, i);
  return x->kind == NVG_VLEAF ? 2 * (double)x->size * nvg_size(NVM_F32) / c->bandwidth + c->launch : 0;
}

/* ns of the tf32 GEMMs of a graph, each as a kernel of its own. If both operands of one are MN-major, `how` gets the
   one to copy, and *copies the ns of the copy. */
static double time_of(nvb_arena *a, const nvg_graph *g, nvf_machine m, uint8_t *how, double *copies) {
  nvf_graph *graph = nvf_graph_of(a, g, nvf_sizes_of(a, g), m, NVF_ONE_PASS, NULL);
  double time = 0;
  for (int i = 0; i < graph->n; i++) {
    const nvg_val *v = graph->node[i].kind == NVG_VCALL ? &g->v[graph->node[i].value] : NULL;
    nvf_fusion *k = v && is_tf32(g, v) ? gemm_alone(graph, i) : NULL;
    time += k ? k->time : 0;
    if (!k || transposed_operands(k) != (NVG_TRANSPOSE_LEFT | NVG_TRANSPOSE_RIGHT)) continue;
    double left = copy_time(m.caps, g, v->in[0]), right = copy_time(m.caps, g, v->in[1]);
    how[graph->node[i].value] = left < right ? NVG_TRANSPOSE_LEFT : NVG_TRANSPOSE_RIGHT;
    *copies += left < right ? left : right;
  }
  return time;
}

/* Copies one of two MN-major tf32 operands if that is faster. WGMMA takes one MN-major operand of 32 bits (from
   registers); MMA by warps takes both, at less than half the rate, and the library is slower as well (4096 x 4096 x
   4096, us: 326 to 334 by WGMMA, 944 by warps, 522 by the library; a copy takes 34). */
static const nvg_graph *read_tf32(nvb_arena *a, const nvg_graph *g, nvf_machine m) {
  double copies = 0, nothing = 0;
  int found = 0;
  for (int i = 0; i < g->n && m.caps->tensor > 1; i++) found += is_tf32(g, &g->v[i]);
  if (!found) return g;
  uint8_t *how = nvb_get(a, (size_t)g->n + 1);
  double before = time_of(a, g, m, how, &copies);
  if (!memchr(how, NVG_TRANSPOSE_LEFT, (size_t)g->n) && !memchr(how, NVG_TRANSPOSE_RIGHT, (size_t)g->n)) return g;
  const nvg_graph *converted = nvg_with_operands(a, g, how);
  double after = copies + time_of(a, converted, m, nvb_get(a, (size_t)converted->n + 1), &nothing);
  return after < before ? converted : g;
}

const nvg_graph *nvf_convert_operands(nvb_arena *a, const nvg_graph *g, nvf_machine m, int fuse) {
  g = convert_i8(a, g, m, fuse);
  return fuse ? read_tf32(a, g, m) : g;
}
