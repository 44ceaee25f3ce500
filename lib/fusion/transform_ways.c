/* Decides who computes each Fourier transform of a graph on a GPU, before anything is fused: kernels with that number
   of points, the library, or kernels of shorter ones (graph/dft_ways.c). A kernel reads and writes memory once together
   with what is around it, so the library is taken for lengths that no kernel has, and where it is faster although
   nothing is around it. The choice follows from the graph, never from what the search fuses, so that the bits of a
   transform do not either. */
#include "fusion/planner.h"
#include "frag/dtype.h"

static int is_transform(const nvg_val *v) { return v->kind == NVG_VROUTINE && v->op == NVG_OP_DFT; }

static int has_points(const void *caps, nvm_dtype t, int64_t points) { return nvf_blocks_transform(points, t, caps); }

int nvf_rows_of(const nvf_operand *x, int64_t *count, int64_t *apart) {
  int last = x->rank - 1, found = 0;
  *count = 1;
  *apart = x->shape[last] * x->stride[last];
  for (int d = last - 1; d >= 0; d--) {
    if (x->shape[d] == 1) continue;
    if (found++ && x->stride[d] != *apart * *count) return 0;
    if (found == 1) *apart = x->stride[d];
    *count *= x->shape[d];
  }
  return x->stride[last] > 0 && *apart > 0;
}

/* Whether the library reads the operand as it is in memory: packed, or a leaf with rows at one distance; rows that it
   may overwrite have no element in common. */
static int is_readable(const nvg_graph *g, const nvg_val *x, int overwritten) {
  int64_t count, apart;
  if (x->kind != NVG_VLEAF) return 1;
  const nvg_leaf *l = &g->leaf[x->leaf];
  if (!l->align16 || !nvf_rows_of(&(nvf_operand){ x->dtype, x->rank, x->shape, l->stride }, &count, &apart)) return 0;
  int64_t n = x->shape[x->rank - 1], step = l->stride[x->rank - 1];
  return !overwritten || count == 1 || apart > (n - 1) * step || step > (count - 1) * apart;
}

/* Whether the library is faster where nothing is fused: measured on an H200 with complex64, kernels take a fifth longer
   where the lanes of a warp do not run along a multiple of four elements (1000 points), and so they do for many real
   numbers, of which they transform all points (over a copy, library and kernel: 1024 points 1.02 and 1.05, 2048 1.03
   and 1.16, 4096 1.03 and 1.29). */
static int is_slower_alone(const nvg_val *v, const nvb_caps *caps) {
  enum { LANES = 4, MANY = 2048 };
  nvf_passes p = nvf_passes_of(v, caps);
  return p.n > 1 && (p.radix[0] % LANES || (v->attr[0] == NVG_DFT_REAL && v->attr[1] >= MANY));
}

static nvg_dft_way way_of(const nvg_graph *g, int i, nvf_machine m, const uint8_t *used) {
  const nvg_val *v = &g->v[i], *x = &g->v[v->in[0]];
  int whole = v->attr[0] == NVG_DFT_TO_REAL, own = has_points(m.caps, nvg_complex_of(v->dtype), v->attr[1]);
  int alone = x->kind == NVG_VLEAF && !used[i] && !whole;
  int faster = m.capabilities & NVF_DFT_ALWAYS || (alone && is_slower_alone(v, m.caps));
  if (m.capabilities & NVF_CAN_DFT && (!own || faster))
    return is_readable(g, x, whole) ? NVG_DFT_LIBRARY : NVG_DFT_LIBRARY_COPY;
  if (!own || whole) return NVG_DFT_MADE;
  return x->kind == NVG_VPERMUTE && is_transform(&g->v[*x->in]) ? NVG_DFT_NATURAL : NVG_DFT_AS_IT_IS;
}

/* By value: whether some other value reads it */
static const uint8_t *find_used(nvb_arena *a, const nvg_graph *g) {
  uint8_t *used = nvb_get(a, (size_t)g->n + 1);
  for (int i = 0; i < g->n; i++)
    for (int j = 0; j < g->v[i].nin; j++) used[g->v[i].in[j]] = 1;
  return used;
}

const nvg_graph *nvf_choose_transforms(nvb_arena *a, const nvg_graph *g, nvf_machine m) {
  if (m.caps->kind == NVB_CPU) return g;
  uint8_t *way = nvb_get(a, (size_t)g->n + 1);
  const uint8_t *used = find_used(a, g);
  int found = 0;
  for (int i = 0; i < g->n; i++)
    if (is_transform(&g->v[i])) found |= way[i] = (uint8_t)way_of(g, i, m, used);
  return found ? nvg_with_transforms(a, g, &(nvg_dft_ways){ way, has_points, m.caps }) : g;
}

static void print_way(nvb_text *t, const nvg_val *v, nvg_dft_way way, nvf_machine m) {
  int own = has_points(m.caps, nvg_complex_of(v->dtype), v->attr[1]), last = v->rank - 1;
  nvb_print(t, "  %s of %lld points, %lld rows: ", v->name, (long long)v->attr[1],
            (long long)(v->size / v->shape[last]));
  if (way >= NVG_DFT_LIBRARY)
    nvb_print(t, "cuFFT, %s%s\n",
              !own                              ? "no kernel has its length"
              : m.capabilities & NVF_DFT_ALWAYS ? "as it was chosen"
                                                : "which is faster than a kernel that nothing fuses with",
              way == NVG_DFT_LIBRARY_COPY ? "; it reads a copy, since the rows do not lie at one distance" : "");
  else if (way < NVG_DFT_MADE) nvb_puts(t, "a kernel\n");
  else if (own) nvb_puts(t, "a kernel, as a transform of complex numbers\n");
  else nvb_puts(t, "kernels of shorter transforms, since no kernel has its length and cuFFT is not used\n");
}

void nvf_transforms_print(nvb_text *t, const nvf_plan *p) {
  const nvf_graph *graph = p->partition ? p->partition->graph : NULL;
  if (!graph || p->device == NVB_CPU) return;
  nvf_machine m = { graph->caps, graph->capabilities, graph->general };
  const uint8_t *used = find_used(p->arena, p->given);
  for (int i = 0; i < p->given->n; i++)
    if (is_transform(&p->given->v[i])) print_way(t, &p->given->v[i], way_of(p->given, i, m, used), m);
}
