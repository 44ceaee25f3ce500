/* Products of integers of 8 bits: which of a graph's a device multiplies as they are, by its tensor cores or a library,
   if need be with operands that were copied to lie along what is summed; the others are products of floats
   (graph/bytes.c). By layouts and extents alone, of each as a kernel of its own: nothing else comes near it. */
#include "fusion/planner.h"
#include "graph/dtype.h"

/* As a kernel of its own, with all that comes before it stored; NULL: there is none. */
static nvf_cand *alone(nvf_net *net, int product) {
  uint64_t *stored = NVB_NEWN(net->arena, uint64_t, net->n / 64 + 1);
  const char *why;
  for (int i = 0; i < product; i++)
    if (!nvf_is_view(net->node[i].kind))
      nvf_put_bit(stored, i);
  nvf_cand *k = nvf_cand_new(net, nvb_dup(net->arena, &product, sizeof product), 1, stored, &why);
  return k && k->dot ? k : NULL;
}

static int is_multiplied(const nvf_cand *k) {
  return k && (nvf_tensor_reach(k) > 0 || nvf_product_offered(nvf_product_of(k, NULL, NULL), k->net->offers));
}

static int turns(const nvf_cand *k) {
  int how = 0;
  for (int side = 0; side < 2 && k; side++)
    how |= nvf_tensor_across(k, k->dot->zone[0][side]) ? side ? NVG_TURN_RIGHT : NVG_TURN_LEFT : 0;
  return how;
}

/* The products that are not multiplied are turned, or are floats if they were. Returns how many there are. */
static int decide(nvb_arena *a, const nvg_graph *g, nvf_machine m, uint8_t *how, int turn) {
  nvf_net *net = nvf_net_of(a, g, nvf_sizes_of(a, g), m, NVF_WHOLE, NULL);
  int found = 0;
  for (int i = 0; i < net->n; i++) {
    const nvf_node *n = &net->node[i];
    nvf_cand *k = n->kind == NVG_VCALL && nvg_of_bytes(g, &g->v[n->value]) ? alone(net, i) : NULL;
    if (n->kind != NVG_VCALL || !nvg_of_bytes(g, &g->v[n->value]) || is_multiplied(k))
      continue;
    int way = turn ? turns(k) : NVG_AS_FLOATS;
    how[n->value] = (uint8_t)(way ? way : NVG_AS_FLOATS);
    found++;
  }
  return found;
}

const nvg_graph *nvf_read_bytes(nvb_arena *a, const nvg_graph *g, nvf_machine m, int fuse) {
  uint8_t *how = nvb_get(a, (size_t)g->n + 1);
  int found = 0;
  for (int i = 0; i < g->n; i++)
    found += how[i] = (uint8_t)nvg_of_bytes(g, &g->v[i]) * NVG_AS_FLOATS;
  if (!found)
    return g;
  if (!fuse || !m.caps->tensor)
    return nvg_bytes_as(a, g, how);
  for (int turn = 1; turn >= 0; turn--) {
    how = nvb_get(a, (size_t)g->n + 1);
    g = decide(a, g, m, how, turn) ? nvg_bytes_as(a, g, how) : g;
  }
  return g;
}
