/* The values that the search may store instead of recomputing them in every reader. These
   are outputs, reductions, values that can only be read from memory, operands of GEMMs, and expensive maps whose
   readers end in different sinks, read them at shifts, or repeat them beside transforms. Whether one of them is stored
   is never decided here: search.c decides it by price. */
#include <string.h>
#include "frag/dtype.h"
#include "fusion/planner.h"

enum { EXPENSIVE = 6 }; /* operations from which on it is expensive to recompute an element */
typedef struct chooser {
  nvf_graph *graph;
  nvb_arena *a;
  int *sink; /* by node: the sink that it reaches; n + i: those of sets[i]; -1: none */
  nvb_map *set_of;
  NVB_VEC(const uint64_t *) sets;
  uint8_t *feeds;  /* by node: bits DIRECT, THROUGH: a GEMM reads it */
  uint8_t *scales; /* by node: 1: a scale that a library has to find in memory */
  /* by node: 1: an upcast of 8-bit floats, perhaps scaled, that all its GEMMs read as 8-bit floats */
  uint8_t *f8;
} chooser;
enum { DIRECT = 1, THROUGH = 2 }; /* of feeds: a GEMM reads the node itself, or through views */
enum { IS = 1, IS_NOT = 2 };      /* of f8, for each GEMM */

static const nvf_node *node_of(const chooser *s, int i) { return &s->graph->node[i]; }
static int set_words(const chooser *s) { return s->graph->n / 64 + 1; }

/* ---- sinks: the reductions and stored values that a value reaches */
static int is_sink(const nvf_node *n) { return n->kind == NVG_VRED || n->out || n->must; }

static void put_sinks(const chooser *s, uint64_t *set, int sink) {
  if (sink >= 0 && sink < s->graph->n) nvf_put_bit(set, sink);
  for (int w = 0; sink >= s->graph->n && w < set_words(s); w++) set[w] |= s->sets.at[sink - s->graph->n][w];
}

static int union_of(chooser *s, int x, int y) {
  uint64_t *set = NVB_NEWN(s->a, uint64_t, set_words(s));
  int fresh;
  put_sinks(s, set, x);
  put_sinks(s, set, y);
  int *at = nvb_map_put(s->set_of, set, (size_t)set_words(s) * sizeof *set, &fresh);
  if (fresh) {
    *at = s->graph->n + s->sets.n;
    NVB_PUSH(s->a, s->sets, set);
  }
  return *at;
}

static void find_sinks(chooser *s) {
  s->sink = NVB_NEWN(s->a, int, s->graph->n + 1);
  for (int i = s->graph->n - 1; i >= 0; i--) {
    const nvf_node *x = node_of(s, i);
    s->sink[i] = is_sink(x) ? i : -1;
    for (int j = 0; j < x->nuser && !is_sink(x); j++) {
      int more = s->sink[x->user[j]];
      if (more >= 0 && more != s->sink[i]) s->sink[i] = s->sink[i] < 0 ? more : union_of(s, s->sink[i], more);
    }
  }
}

/* ---- expensive maps with several sinks, or read at shifts */
/* Operations of an element from leaves and reductions on, counted up to EXPENSIVE. */
static int work_of(chooser *s, int node) {
  nvf_walk *w = &s->graph->walk;
  int sum = 0;
  nvf_walk_start(w);
  nvf_walk_to(w, node);
  for (int i; sum < EXPENSIVE && (i = nvf_walk_next(w)) >= 0;) {
    const nvf_node *x = node_of(s, i);
    if (x->kind == NVG_VRED || x->kind == NVG_VSCAN || x->kind == NVG_VCALL || x->kind == NVG_VROUTINE) continue;
    sum += x->kind == NVG_VMAP ? (x->frag->cost > 1 ? x->frag->cost : 1) : nvf_is_made(x) || x->kind == NVG_VROLL;
    for (int j = 0; j < x->nin; j++) nvf_walk_to(w, x->in[j]);
  }
  return sum;
}

static int is_disputed(chooser *s, int node) {
  nvf_walk *w = &s->graph->walk;
  int shifts = 0;
  nvf_walk_start(w);
  nvf_walk_to(w, node);
  for (int i; (i = nvf_walk_next(w)) >= 0;)
    for (int j = 0; j < node_of(s, i)->nuser; j++) {
      int to = node_of(s, i)->user[j];
      const nvf_node *u = node_of(s, to);
      if (nvf_walk_met(w, to)) continue;
      shifts += u->kind == NVG_VROLL ? 2 : u->kind == NVG_VSLICE; /* a roll reads at two shifts */
      if (nvf_is_view(u->kind)) nvf_walk_to(w, to);
      else if (s->sink[node] >= s->graph->n && s->sink[to] != s->sink[node]) return 1;
      else nvf_walk_pass(w, to);
    }
  return shifts > 1;
}

/* ---- operands of GEMMs */
/* Whether the node upcasts 8-bit floats on a device that multiplies 8-bit floats. */
static int is_upcast(const chooser *s, const nvf_node *n) {
  int cast = s->graph->caps->f8 && n->kind == NVG_VMAP && !strcmp(n->frag->name, "cast");
  return cast && nvg_is_f8(node_of(s, n->in[0])->dtype);
}

static int behind_views(const chooser *s, int i) {
  while (nvf_is_view(node_of(s, i)->kind)) i = node_of(s, i)->in[0];
  return i;
}

/* Whether the node multiplies such an upcast by something, perhaps a scale that a library applies. */
static int is_scaled(const chooser *s, const nvf_node *n) {
  return n->kind == NVG_VMAP && n->nin == 2 && !strcmp(n->frag->name, "multiply") &&
         (is_upcast(s, node_of(s, behind_views(s, n->in[0]))) || is_upcast(s, node_of(s, behind_views(s, n->in[1]))));
}
static int was_f8(const chooser *s, const nvf_node *n) { return is_upcast(s, n) || is_scaled(s, n); }

static void find_feeds(chooser *s) {
  s->feeds = nvb_get(s->a, (size_t)s->graph->n + 1);
  for (int i = s->graph->n - 1; i >= 0 && s->graph->ngemm; i--)
    for (int j = 0; j < node_of(s, i)->nuser; j++) {
      int to = node_of(s, i)->user[j];
      const nvf_node *u = node_of(s, to);
      int passes = nvf_is_view(u->kind) || was_f8(s, u);
      s->feeds[i] |= u->kind == NVG_VCALL ? DIRECT : passes && s->feeds[to] ? THROUGH : 0;
    }
}

/* The operand of a scaled upcast that is the upcast. */
static int upcast_side(const chooser *s, const nvf_node *x) {
  return !is_upcast(s, node_of(s, behind_views(s, x->in[0])));
}

/* The scale of a scaled upcast, before it is expanded to the operand's size. */
static int scale_of(const chooser *s, const nvf_node *x) {
  int i = x->in[!upcast_side(s, x)];
  while (nvf_is_view(node_of(s, i)->kind) && node_of(s, i)->size >= x->size) i = node_of(s, i)->in[0];
  return i;
}
/* Whether the GEMM multiplies 8-bit floats as a kernel of its own, if everything but the upcasts is stored. */
static int multiplies_f8(const chooser *s, int product, const int *in) {
  uint64_t *stored = NVB_NEWN(s->a, uint64_t, set_words(s));
  const char *why;
  for (int i = 0; i < product; i++)
    if (!nvf_is_view(node_of(s, i)->kind) && !was_f8(s, node_of(s, i))) nvf_put_bit(stored, i);
  for (int i = 0; i < 2; i++)
    if (is_scaled(s, node_of(s, in[i]))) nvf_put_bit(stored, scale_of(s, node_of(s, in[i])));
  const nvf_fusion *k = nvf_fusion_new(s->graph, nvb_dup(s->a, &product, sizeof product), 1, stored, &why);
  if (!k || !k->dot || k->dot->f8) return k && k->dot && nvg_is_f8(nvf_tensor_operand(k));
  const nvf_gemm *said = nvf_gemm_of(k, NULL, NULL);
  return said->by[NVF_SCALE_A] >= NVF_SCALE_VECTOR && nvf_gemm_supported(said, s->graph->capabilities);
}

/* Marks the scale of a scaled operand as a value to store if it repeats elements, since libraries do not support all
   repetitions. Its upcast is not worth its memory, whatever multiplies it. */
static void find_scale(chooser *s, const nvf_node *x) {
  int scale = scale_of(s, x);
  s->scales[scale] = node_of(s, scale)->size > node_of(s, behind_views(s, scale))->size;
  s->f8[behind_views(s, x->in[upcast_side(s, x)])] |= IS;
}

/* Finds the upcasts that are not worth their memory: all GEMMs that read them multiply 8-bit floats. */
static void find_f8(chooser *s) {
  s->f8 = nvb_get(s->a, (size_t)s->graph->n + 1);
  s->scales = nvb_get(s->a, (size_t)s->graph->n + 1);
  for (int p = 0; p < s->graph->n && s->graph->ngemm && s->graph->caps->f8; p++) {
    const nvf_node *n = node_of(s, p);
    if (n->kind != NVG_VCALL || !n->size) continue;
    int in[2] = { behind_views(s, n->in[0]), behind_views(s, n->in[1]) }, wide = 0;
    for (int i = 0; i < 2; i++) wide += was_f8(s, node_of(s, in[i]));
    int found = wide == 2 && multiplies_f8(s, p, in) ? IS : IS_NOT;
    for (int i = 0; i < 2; i++) {
      s->f8[in[i]] |= found;
      if (is_scaled(s, node_of(s, in[i]))) find_scale(s, node_of(s, in[i]));
    }
  }
  for (int i = 0; i < s->graph->n; i++) s->f8[i] = s->f8[i] == IS;
}

/* Whether the node may be a prologue of a GEMM or be stored for it: a library reads only matrices. A view that is no
   matrix may also be stored. */
static int feeds_gemm(const chooser *s, int i) {
  const nvf_node *n = node_of(s, i);
  int part = n->kind == NVG_VSLICE || n->kind == NVG_VRESHAPE || n->kind == NVG_VROLL;
  return nvf_is_made(n) ? s->feeds[i] : part && s->graph->capabilities && (s->feeds[i] & DIRECT);
}

/* ---- the choice */
/* Whether only the rounding of a GEMM to 16 bits is read: then the rounding may be stored instead. */
static int is_rounded(const chooser *s, int i) {
  const nvf_node *n = node_of(s, i), *u = n->nuser == 1 ? node_of(s, n->user[0]) : n;
  return n->kind == NVG_VCALL && u->kind == NVG_VMAP && u->nin == 1 && nvg_is_narrow(u->dtype);
}

/* Whether the node makes real numbers of a transform's complex ones and a reduction reads them, on a GPU: they are half
   the bytes, so they may be stored in place of the transform, which no kernel shares with the reduction. */
static int is_spectrum(const chooser *s, int i) {
  const nvf_node *n = node_of(s, i);
  if (s->graph->caps->kind == NVB_CPU || n->kind != NVG_VMAP || n->parts != 1 || s->sink[i] < 0) return 0;
  if (s->sink[i] < s->graph->n && node_of(s, s->sink[i])->kind != NVG_VRED) return 0;
  for (int j = 0; j < n->nin; j++) {
    const nvf_node *x = node_of(s, n->in[j]);
    while (x->parts == 2 && x->kind == NVG_VMAP) x = node_of(s, *x->in);
    if (x->parts == 2 && x->passes) return 1;
  }
  return 0;
}

/* Whether the node is expensive and a greater one repeats it, as rows repeat a window, in a graph with transforms on a
   GPU, whose threads would compute it again for each of their points. */
static int is_window(chooser *s, int i) {
  const nvf_node *n = node_of(s, i);
  if (s->graph->caps->kind == NVB_CPU || !s->graph->ntransform || !nvf_is_made(n) || n->size < 2) return 0;
  nvf_walk *w = &s->graph->walk;
  int repeated = 0;
  nvf_walk_start(w);
  nvf_walk_to(w, i);
  for (int v; !repeated && (v = nvf_walk_next(w)) >= 0;)
    for (int j = 0; j < node_of(s, v)->nuser; j++) {
      const nvf_node *u = node_of(s, node_of(s, v)->user[j]);
      repeated |= u->size >= 2 * n->size;
      if (nvf_is_view(u->kind)) nvf_walk_to(w, node_of(s, v)->user[j]);
    }
  return repeated && work_of(s, i) >= EXPENSIVE;
}

static int is_worth_storing(chooser *s, int i) {
  const nvf_node *n = node_of(s, i);
  if (n->out) return 1;
  if (n->inner) return 0;
  if (s->f8[i] || !n->nuser || is_rounded(s, i)) return 0;
  if (n->must || s->scales[i] || feeds_gemm(s, i) || (n->nin == 1 && is_rounded(s, n->in[0]))) return 1;
  if (n->kind == NVG_VRED) return n->nin == 1;
  if (n->kind == NVG_VPICK || is_spectrum(s, i) || is_window(s, i)) return 1;
  if (nvf_is_write(s->graph, n) && (n->nuser > 1 || nvf_may_overwrite(s->graph, n) >= 0)) return 1;
  return nvf_is_made(n) && work_of(s, i) >= EXPENSIVE && is_disputed(s, i);
}

/* Whether the value is stored in plans of one kernel for each value: all but views. */
static int is_value(const nvf_node *n) {
  if (!n->nuser && !n->out) return 0;
  return n->out || n->must || nvf_is_made(n) || (n->kind == NVG_VRED && n->nin == 1) || n->kind == NVG_VPICK;
}

uint8_t *nvf_may_be_stored(nvf_graph *graph, int fuse) {
  chooser s = { .graph = graph, .a = graph->arena, .set_of = nvb_map_new(graph->arena) };
  uint8_t *is = nvb_get(graph->arena, (size_t)graph->n + 1);
  find_sinks(&s);
  find_feeds(&s);
  find_f8(&s);
  for (int i = 0; i < graph->n; i++) is[i] = (uint8_t)(fuse ? is_worth_storing(&s, i) : is_value(&graph->node[i]));
  return is;
}

/* Finds the value to store when no kernel can compute root: the one that halves the work best. The work below a value
   counts in equal parts for each of its readers. Views are stored only if nothing else can be. */
int nvf_materialize_between(nvf_graph *graph, const uint64_t *stored, int root) {
  int best = -1, low = root, *readers = NVB_NEWN(graph->arena, int, root + 1);
  double *below = NVB_NEWN(graph->arena, double, root + 1), most = 0;
  nvf_walk *w = &graph->walk;
  nvf_walk_start(w);
  nvf_walk_to(w, root);
  for (int i; (i = nvf_walk_next(w)) >= 0;) {
    const nvf_node *x = &graph->node[i];
    low = i < low ? i : low;
    for (int j = 0; j < x->nin; j++)
      if (!nvf_has(stored, x->in[j])) {
        readers[x->in[j]]++;
        nvf_walk_to(w, x->in[j]);
      }
  }
  for (int i = low; i <= root; i++) {
    const nvf_node *x = &graph->node[i];
    for (int j = 0; j < x->nin && (readers[i] || i == root); j++)
      below[i] += readers[x->in[j]] ? (below[x->in[j]] + 1) / readers[x->in[j]] : 0;
  }
  for (int views = 0; views < 2 && best < 0; views++)
    for (int i = low; i < root; i++) {
      const nvf_node *x = &graph->node[i];
      double part = below[i] < below[root] - below[i] ? below[i] : below[root] - below[i];
      if (readers[i] && !x->inner && (views ? nvf_is_view(x->kind) : nvf_is_made(x)) && part >= most)
        best = i, most = part;
    }
  return best;
}
