/* The planner from the top: nvf_fuse turns a graph with reduction orders into a plan. This file chooses between
   alternative forms of the graph and ways to split its reductions by the price that the search returns. */
#include "fusion/planner.h"
#include <string.h>

/* ---- labels of a finished kernel, for people */
/* whether the address has a stride along the axis that is a size */
static int has_size_stride(const nvf_fusion *k, nvf_ix at, int axis) {
  nvf_prod by;
  int64_t c;
  return nvf_ix_coef(k->graph->space, at, axis, &by, &c) == 2 && by;
}

static int has_transposed_access(const nvf_fusion *k, int lane) { /* whether some access is transposed */
  int found = 0;
  for (int i = 0; i < k->expr.n && lane >= 0 && !found; i++)
    found = k->expr.at[i].kind == NVF_ILOAD && has_size_stride(k, k->expr.at[i].at, lane);
  for (int i = 0; i < k->put.n && lane >= 0 && !found; i++) found = has_size_stride(k, k->put.at[i].at, lane);
  return found;
}

static const char *hero_of(const nvf_fusion *k, const nvf_tiling *s) {
  int maps = 0, rows = 0, columns = 0, outside = 0, merges = 0;
  if (k->dot) return "gemm";
  if (k->attention) return "attention";
  if (k->transforms) return "transform";
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    maps += v->kind == NVF_IMAP || v->kind == NVF_ISELECT;
    if (v->kind == NVF_ISCAN) return "scan";
    if (!nvf_is_red(v)) continue;
    if (k->graph->node[v->node].finish) {
      merges++;
      continue;
    }
    if (nvf_returns(k, i)) return "normalisation";
    rows += v->axis == s->lane;
    columns += v->axis != s->lane;
  }
  for (int i = 0; i < k->put.n; i++) outside |= k->put.at[i].axes != 0 && !k->graph->node[k->put.at[i].node].block;
  if ((rows || merges) && !outside) return "full-reduce";
  return rows                                ? "row-reduce"
         : columns                           ? "column-reduce"
         : has_transposed_access(k, s->lane) ? "transpose"
         : maps                              ? "map"
         : merges                            ? "column-reduce"
         : k->nread                          ? "copy"
                                             : "fill";
}

static const char *what_of(const nvf_fusion *k) {
  nvb_text t = { .arena = k->graph->arena };
  int n = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    const nvf_node *x = &k->graph->node[v->node];
    if ((v->kind != NVF_IMAP && v->kind != NVF_IDOT && v->kind != NVF_IDFT && !nvf_is_red(v)) || !x->name) continue;
    if (n++ < 12)
      nvb_print(&t, "%s%s%s", n > 1 ? ", " : "", x->name,
                x->block && x->kind == NVG_VRED ? " (partials)"
                : x->chain                      ? " (carries)"
                : x->finish                     ? " (finish)"
                                                : "");
  }
  if (n > 12) nvb_print(&t, " and %d more", n - 12);
  if (k->transforms) {
    nvb_puts(&t, "; each transform in passes of ");
    nvf_passes_print(&t, &k->transforms->passes);
  }
  return n ? nvb_text_get(&t) : k->nread ? "copy" : "constant";
}

static int64_t least_bytes(const nvf_graph *graph) {
  int64_t sum = 0;
  for (int i = 0; i < graph->n; i++)
    sum += graph->node[i].kind == NVG_VLEAF ? graph->node[i].size * nvg_size(graph->node[i].dtype) : 0;
  for (int o = 0; o < graph->g->nout; o++)
    sum += graph->node[graph->out[o]].size * nvg_size(graph->node[graph->out[o]].dtype);
  return sum;
}

/* ---- the cheapest way to split long reductions */
/* Marks reductions whose partials ended in one kernel with their finish, so that the split was useless; returns their
   number. */
static int for_nothing(const nvf_partition *c, uint8_t *whole) {
  int n = 0;
  for (int i = 0; i < c->graph->n; i++) {
    int stored = !c->graph->node[i].block || c->graph->node[i].apart;
    for (int k = 0; k < c->n && !stored; k++)
      for (int j = 0; j < c->k[k]->put.n && !stored; j++) {
        const nvf_node *r = &c->graph->node[c->k[k]->put.at[j].node];
        stored = c->k[k]->put.at[j].node == i || (r->kind == NVG_VPICK && r->in[0] == i);
      }
    if (!stored) n += !whole[c->graph->node[i].value], whole[c->graph->node[i].value] = 1;
  }
  return n;
}

static nvf_partition *choose_passes(nvb_arena *a, const nvg_graph *g, nvf_sizes *z, nvf_machine m, int split,
                                    const nvf_rejections *no) {
  enum { LARGE = 100000 }; /* a graph whose search took more effort is not searched again */
  uint8_t *whole = nvb_get(a, (size_t)g->n + 1);
  nvf_partition *best = nvf_search(nvf_graph_of(a, g, z, m, split, whole), 1, no), *c = best;
  for (int round = 0; round < 3 && c->graph->built < LARGE && for_nothing(c, whole); round++) {
    c = nvf_search(nvf_graph_of(a, g, z, m, split, whole), 1, no);
    best = c->time <= best->time ? c : best;
  }
  return best;
}

/* Whether every partial over a GEMM's tiles is computed in that GEMM's kernel: any other kernel would add in the wrong
   order. */
static int in_tiles(const nvf_partition *c) {
  for (int k = 0; k < c->n; k++)
    for (int i = 0; i < c->k[k]->expr.n && !c->k[k]->dot; i++)
      if (nvf_is_red(&c->k[k]->expr.at[i]) && c->graph->node[c->k[k]->expr.at[i].node].tiled) return 0;
  return 1;
}

static nvf_partition *choose_partition(nvb_arena *a, const nvg_graph *g, nvf_machine m, const nvf_rejections *no) {
  nvf_sizes *z = nvf_sizes_of(a, g);
  if (nvf_may_serve_others(g, m.caps)) nvf_note_facts(z->space);
  nvf_partition *best = choose_passes(a, g, z, m, NVF_TWO_PASS, no);
  for (int split = NVF_TILED; split <= NVF_WIDE; split++)
    if (nvf_graph_reduces_tiles(best->graph, split)) {
      nvf_partition *tiled = choose_passes(a, g, z, m, split, no);
      best = tiled->time < best->time && in_tiles(tiled) ? tiled : best;
    }
  if (!nvf_graph_crosses_axes(best->graph)) return best;
  nvf_partition *fine = choose_passes(a, g, z, m, NVF_FINE, no);
  return fine->time < best->time ? fine : best;
}

/* Records the kernels of a vetoed step as rejections, so that the next search does without them. */
static void record_rejection(nvf_rejections *no, const nvf_partition *c, const nvf_veto *v) {
  const nvf_graph *graph = c->graph;
  nvb_text why = { .arena = graph->arena };
  nvb_print(&why, "refused: %s", v->why);
  for (int i = 0; i < c->n; i++) {
    if (c->step[i] != v->step) continue;
    nvf_rejection *r = &no->at[no->n++];
    *r = (nvf_rejection){ .why = nvb_text_get(&why),
                          .made = NVB_NEWN(graph->arena, int, c->k[i]->nroot + 1),
                          .read = NVB_NEWN(graph->arena, int, c->k[i]->nread + 1) };
    for (int j = 0; j < c->k[i]->nroot; j++) r->made[r->nmade++] = nvf_mark_of(&graph->node[c->k[i]->root[j]]);
    for (int j = 0; j < c->k[i]->nread; j++)
      if (graph->node[c->k[i]->read[j]].kind != NVG_VLEAF)
        r->read[r->nread++] = nvf_mark_of(&graph->node[c->k[i]->read[j]]);
  }
}

/* The alternative forms: the graph as it is, then with GEMMs split into bf16, and the rejections of each; the graph
   with attention, or NULL. */
typedef struct alternatives {
  int n;
  const nvg_graph *g[NVF_ALTERNATIVES], *attention;
  nvf_rejections no[NVF_ALTERNATIVES];
} alternatives;
static nvf_partition *choose_alternative(nvb_arena *a, alternatives *r, nvf_machine m, nvf_bf16_split asked) {
  nvf_partition *whole = choose_partition(a, r->g[0], m, &r->no[0]), *split = NULL;
  for (int i = 1; i < r->n; i++) {
    nvf_partition *c = choose_partition(a, r->g[i], m, &r->no[i]);
    split = split && split->time <= c->time ? split : c;
  }
  int cheaper = split && split->time < whole->time;
  nvf_partition *best = split && (asked ? asked == NVF_BF16_ALWAYS : cheaper) ? split : whole;
  best->bf16_note = nvf_bf16_split_print(a, whole, split, best == split);
  static const nvf_rejections none;
  nvf_partition *one = r->attention ? choose_partition(a, r->attention, m, &none) : NULL;
  return one && one->time < best->time ? one : best;
}

static int is_transform_of_library(const nvf_partition *c, int step) {
  for (int i = 0; i < c->n; i++)
    if (c->step[i] == step && c->k[i]->routine)
      return c->graph->g->v[c->graph->node[c->k[i]->root[0]].value].op == NVG_OP_DFT;
  return 0;
}

/* A veto names a step of the plan made with the vetoes before it, so these plans are made again one after the other. */
static nvf_partition *partition_without(nvb_arena *a, const nvg_graph *given, const nvb_caps *caps,
                                        const nvf_options *o) {
  int apart = o->nveto >= NVF_VETOES, capabilities = apart ? o->capabilities & ~NVF_CAN_DFT : o->capabilities;
  const nvf_machine m = { caps, capabilities, o->general };
  const nvg_graph *g = nvf_choose_transforms(a, nvf_convert_operands(a, given, m, o->fuse && !apart), m);
  if (o->fuse && caps->kind == NVB_CPU) /* only the CPU has the routine of bins; comparisons on a GPU are fast enough */
    g = nvg_in_bins(a, g);
  alternatives r = { 0 };
  for (int i = 0; i < NVF_ALTERNATIVES; i++) r.no[i].at = NVB_NEWN(a, nvf_rejection, o->nveto * NVF_MAX_PARTS + 1);
  if (!o->fuse || apart)
    return nvf_search(nvf_graph_of(a, g, nvf_sizes_of(a, g), m, o->general ? NVF_TWO_PASS : NVF_ONE_PASS, NULL), 0,
                      &r.no[0]);
  r.n = nvf_alternatives(a, g, caps, r.g);
  r.attention = nvf_find_attention(a, g, m);
  r.attention = r.attention == g ? NULL : r.attention;
  nvf_partition *c = choose_alternative(a, &r, m, o->bf16_split);
  for (int i = 0, at; i < o->nveto; i++) {
    if (is_transform_of_library(c, o->veto[i].step)) { /* it failed, so kernels compute all transforms */
      nvf_options less = *o;
      less.capabilities &= ~NVF_CAN_DFT, less.veto += i + 1, less.nveto -= i + 1;
      return partition_without(a, given, caps, &less);
    }
    if (c->graph->g == r.attention) r.attention = NULL; /* whatever was refused, the other forms do without it */
    else {
      for (at = 0; r.g[at] != c->graph->g;) at++;
      record_rejection(&r.no[at], c, &o->veto[i]);
    }
    c = choose_alternative(a, &r, m, o->bf16_split);
  }
  return c;
}

/* Makes step i from the kernels that share it; its label is that of the most expensive one. */
static void make_step(const nvf_plan *p, int i, const nvf_knobs *knobs, nvf_step *s) {
  const nvf_partition *c = p->partition;
  nvf_tiling *tiling[NVF_MAX_PARTS];
  nvb_text what = { .arena = p->arena };
  char name[32];
  int first = 0, n = 0;
  double most = -1;
  while (c->step[first] != i) first++;
  if (c->k[first]->routine) {
    nvf_emit_routine(p, s, c->k[first], p->buf_of);
    return;
  }
  for (nvf_fusion *k; first + n < c->n && c->step[first + n] == i; n++) {
    k = c->k[first + n];
    k->knobs = knobs;
    tiling[n] = nvf_tiling_of(k);
    s->time += n ? k->time - k->graph->caps->launch : k->time;
    if (k->time > most) {
      most = k->time;
      s->hero = hero_of(k, tiling[n]);
    }
    nvb_print(&what, "%s%s", n ? " | " : "", what_of(k));
  }
  s->what = nvb_text_get(&what);
  strcpy(name, s->hero);
  for (char *at = name; *at; at++) *at = *at == '-' ? '_' : *at;
  nvf_emit(p, s, n, c->k + first, tiling, p->buf_of, name);
}

nvf_step *nvf_step_with(const nvf_plan *p, int i, const nvf_knobs *knobs) {
  nvf_step *s = NVB_NEW(p->arena, nvf_step);
  make_step(p, i, nvb_dup(p->arena, knobs, sizeof *knobs), s);
  return s;
}

nvf_plan *nvf_fuse(nvb_arena *a, const nvg_graph *g, const nvb_caps *caps, const nvf_options *o) {
  nvf_plan *p = NVB_NEW(a, nvf_plan);
  nvf_partition *c = partition_without(a, g, caps, o);
  int *buf_of = NVB_NEWN(a, int, c->graph->n + 1), *twin = NVB_NEWN(a, int, c->graph->n + g->nout + 1);
  *p = (nvf_plan){ .arena = a,
                   .g = c->graph->g,
                   .given = g,
                   .device = caps->kind,
                   .ncut = c->ncut,
                   .cut = c->cut,
                   .nveto = o->nveto,
                   .veto = o->veto,
                   .work = c->graph->built + c->graph->looked,
                   .bytes_min = least_bytes(c->graph),
                   .partition = c,
                   .buf_of = buf_of,
                   .twin = twin,
                   .bf16_note = c->bf16_note };
  nvf_memory(p, c, buf_of, twin);
  p->step = NVB_NEWN(a, nvf_step, c->nstep + 1);
  for (int k = 0; k < c->n; k++) nvf_collapse(c->k[k]);
  int any, *now = o->step ? o->step : &any;
  for (; p->nstep < c->nstep; p->nstep++) {
    *now = p->nstep;
    make_step(p, p->nstep, NULL, &p->step[p->nstep]);
  }
  *now = -1;
  if (o->fuse && !o->general && caps->kind == NVB_CPU) nvf_find_strips(p, caps);
  return p;
}
