/* From a stamped graph to steps: the planner on one page. Each line of nvf_fuse is a whole thought; the words are those
   of docs/architecture.md. */
#include "fusion/planner.h"
#include <string.h>

/* ---- labels that are read off a finished kernel */
static int strides(const nvf_cand *k, nvf_ix at, int axis) { /* by a size */
  nvf_prod by;
  int64_t c;
  return nvf_ix_coef(k->net->space, at, axis, &by, &c) == 2 && by;
}

static int crosses(const nvf_cand *k, int lane) { /* some memory is walked across its lines */
  int found = 0;
  for (int i = 0; i < k->inst.n && lane >= 0 && !found; i++)
    found = k->inst.at[i].kind == NVF_ILOAD && strides(k, k->inst.at[i].at, lane);
  for (int i = 0; i < k->put.n && lane >= 0 && !found; i++)
    found = strides(k, k->put.at[i].at, lane);
  return found;
}

static const char *hero_of(const nvf_cand *k, const nvf_shape *s) {
  int maps = 0, rows = 0, columns = 0, outside = 0, merges = 0;
  if (k->dot)
    return "product";
  for (int i = 0; i < k->inst.n; i++) {
    const nvf_inst *v = &k->inst.at[i];
    maps += v->kind == NVF_IMAP || v->kind == NVF_ISELECT;
    if (v->kind == NVF_ISCAN)
      return "scan";
    if (!nvf_is_red(v))
      continue;
    if (k->net->node[v->node].finish) {
      merges++;
      continue;
    }
    if (nvf_returns(k, i))
      return "normalisation";
    rows += v->axis == s->lane;
    columns += v->axis != s->lane;
  }
  for (int i = 0; i < k->put.n; i++)
    outside |= k->put.at[i].axes != 0 && !k->net->node[k->put.at[i].node].block;
  if ((rows || merges) && !outside)
    return "full-reduce";
  return rows                  ? "row-reduce"
         : columns             ? "column-reduce"
         : crosses(k, s->lane) ? "transpose"
         : maps                ? "map"
         : merges              ? "column-reduce"
                               : "copy";
}

static const char *what_of(const nvf_cand *k) {
  nvb_text t = { .arena = k->net->arena };
  int n = 0;
  for (int i = 0; i < k->inst.n; i++) {
    const nvf_inst *v = &k->inst.at[i];
    const nvf_node *x = &k->net->node[v->node];
    if ((v->kind != NVF_IMAP && v->kind != NVF_IDOT && !nvf_is_red(v)) || !x->name)
      continue;
    if (n++ < 12)
      nvb_print(&t, "%s%s%s", n > 1 ? ", " : "", x->name,
                x->block && x->kind == NVG_VRED ? " (partials)"
                : x->chain                      ? " (carries)"
                : x->finish                     ? " (finish)"
                                                : "");
  }
  if (n > 12)
    nvb_print(&t, " and %d more", n - 12);
  return n ? nvb_text_get(&t) : "copy";
}

static int64_t least_bytes(const nvf_net *net) {
  int64_t sum = 0;
  for (int i = 0; i < net->n; i++)
    sum += net->node[i].kind == NVG_VLEAF ? net->node[i].size * nvg_size(net->node[i].dtype) : 0;
  for (int o = 0; o < net->g->nout; o++)
    sum += net->node[net->out[o]].size * nvg_size(net->node[net->out[o]].dtype);
  return sum;
}

/* ---- the choice, the cheapest way to split long reductions */
/* Partials that ended in one kernel with their finish: taken apart for nothing. */
static int for_nothing(const nvf_choice *c, uint8_t *whole) {
  int n = 0;
  for (int i = 0; i < c->net->n; i++) {
    int stored = !c->net->node[i].block;
    for (int k = 0; k < c->n && !stored; k++)
      for (int j = 0; j < c->k[k]->put.n && !stored; j++) {
        const nvf_node *r = &c->net->node[c->k[k]->put.at[j].node];
        stored = c->k[k]->put.at[j].node == i || (r->kind == NVG_VPICK && r->in[0] == i);
      }
    if (!stored)
      n += !whole[c->net->node[i].value], whole[c->net->node[i].value] = 1;
  }
  return n;
}

static nvf_choice *split_as(nvb_arena *a, const nvg_graph *g, nvf_sizes *z, nvf_machine m, int split,
                            const nvf_refusals *no) {
  enum { LARGE = 100000 }; /* a graph that took a search so much is not searched again */
  uint8_t *whole = nvb_get(a, (size_t)g->n + 1);
  nvf_choice *best = nvf_search(nvf_net_of(a, g, z, m, split, whole), 1, no), *c = best;
  for (int round = 0; round < 3 && c->net->built < LARGE && for_nothing(c, whole); round++) {
    c = nvf_search(nvf_net_of(a, g, z, m, split, whole), 1, no);
    best = c->time <= best->time ? c : best;
  }
  return best;
}

/* Whether what was cut along a product's tiles is made there: anywhere else it would be added up in the wrong order. */
static int in_tiles(const nvf_choice *c) {
  for (int k = 0; k < c->n; k++)
    for (int i = 0; i < c->k[k]->inst.n && !c->k[k]->dot; i++)
      if (nvf_is_red(&c->k[k]->inst.at[i]) && c->net->node[c->k[k]->inst.at[i].node].tiled)
        return 0;
  return 1;
}

static nvf_choice *choose(nvb_arena *a, const nvg_graph *g, nvf_machine m, const nvf_refusals *no) {
  nvf_sizes *z = nvf_sizes_of(a, g);
  nvf_choice *best = split_as(a, g, z, m, NVF_SPLIT, no);
  for (int split = NVF_TILED; split <= NVF_WIDE; split++)
    if (nvf_net_tiled(best->net, split)) {
      nvf_choice *tiled = split_as(a, g, z, m, split, no);
      best = tiled->time < best->time && in_tiles(tiled) ? tiled : best;
    }
  if (!nvf_net_crossing(best->net))
    return best;
  nvf_choice *fine = split_as(a, g, z, m, NVF_FINE, no);
  return fine->time < best->time ? fine : best;
}

/* The kernels of a vetoed step, so that the next search goes on without them. */
static void refuse(nvf_refusals *no, const nvf_choice *c, const nvf_veto *v) {
  const nvf_net *net = c->net;
  nvb_text why = { .arena = net->arena };
  nvb_print(&why, "refused: %s", v->why);
  for (int i = 0; i < c->n; i++) {
    if (c->step[i] != v->step)
      continue;
    nvf_refusal *r = &no->at[no->n++];
    *r = (nvf_refusal){ .why = nvb_text_get(&why), .made = NVB_NEWN(net->arena, int, c->k[i]->nroot + 1),
                        .read = NVB_NEWN(net->arena, int, c->k[i]->nread + 1) };
    for (int j = 0; j < c->k[i]->nroot; j++)
      r->made[r->nmade++] = nvf_mark_of(&net->node[c->k[i]->root[j]]);
    for (int j = 0; j < c->k[i]->nread; j++)
      if (net->node[c->k[i]->read[j]].kind != NVG_VLEAF)
        r->read[r->nread++] = nvf_mark_of(&net->node[c->k[i]->read[j]]);
  }
}

/* The graph as it is, then with products in pieces; what was refused of each. */
typedef struct readings { int n; const nvg_graph *g[NVF_READINGS]; nvf_refusals no[NVF_READINGS]; } readings;
static nvf_choice *choose_reading(nvb_arena *a, readings *r, nvf_machine m, nvf_reading asked) {
  nvf_choice *whole = choose(a, r->g[0], m, &r->no[0]), *pieces = NULL;
  for (int i = 1; i < r->n; i++) {
    nvf_choice *c = choose(a, r->g[i], m, &r->no[i]);
    pieces = pieces && pieces->time <= c->time ? pieces : c;
  }
  int cheaper = pieces && pieces->time < whole->time;
  nvf_choice *best = pieces && (asked ? asked == NVF_IN_PIECES : cheaper) ? pieces : whole;
  best->pieces = nvf_pieces_print(a, whole, pieces, best == pieces);
  return best;
}

/* Vetoes name steps of the plans before: each is made again, with what was refused until then. */
static nvf_choice *without(nvb_arena *a, const nvg_graph *given, const nvb_caps *caps, const nvf_options *o) {
  const nvf_machine m = { caps, o->offers };
  const nvg_graph *g = nvf_read_operands(a, given, m, o->fuse && o->nveto < NVF_VETOES);
  if (o->fuse && caps->kind == NVB_CPU) /* who has the routine; a GPU's comparisons are fast enough */
    g = nvg_in_bins(a, g);
  readings r = { 0 };
  for (int i = 0; i < NVF_READINGS; i++)
    r.no[i].at = NVB_NEWN(a, nvf_refusal, o->nveto * NVF_MAX_PARTS + 1);
  if (!o->fuse || o->nveto >= NVF_VETOES)
    return nvf_search(nvf_net_of(a, g, nvf_sizes_of(a, g), m, NVF_WHOLE, NULL), 0, &r.no[0]);
  r.n = nvf_readings(a, g, caps, r.g);
  nvf_choice *c = choose_reading(a, &r, m, o->reading);
  for (int i = 0, at; i < o->nveto; i++) {
    for (at = 0; r.g[at] != c->net->g;)
      at++;
    refuse(&r.no[at], c, &o->veto[i]);
    c = choose_reading(a, &r, m, o->reading);
  }
  return c;
}

/* Step i from the kernels that share it; the label is that of the dearest. */
static void make_step(const nvf_plan *p, int i, const nvf_knobs *knobs, nvf_step *s) {
  const nvf_choice *c = p->choice;
  nvf_shape *shape[NVF_MAX_PARTS];
  nvb_text what = { .arena = p->arena };
  char name[32];
  int first = 0, n = 0;
  double most = -1;
  while (c->step[first] != i)
    first++;
  if (c->k[first]->routine) {
    nvf_emit_routine(p, s, c->k[first], p->buf_of);
    return;
  }
  for (nvf_cand *k; first + n < c->n && c->step[first + n] == i; n++) {
    k = c->k[first + n];
    k->knobs = knobs;
    shape[n] = nvf_shape_of(k);
    s->time += n ? k->time - k->net->caps->launch : k->time;
    if (k->time > most) {
      most = k->time;
      s->hero = hero_of(k, shape[n]);
    }
    nvb_print(&what, "%s%s", n ? " | " : "", what_of(k));
  }
  s->what = nvb_text_get(&what);
  strcpy(name, s->hero);
  for (char *at = name; *at; at++)
    *at = *at == '-' ? '_' : *at;
  nvf_emit(p, s, n, c->k + first, shape, p->buf_of, name);
}

nvf_step *nvf_step_with(const nvf_plan *p, int i, const nvf_knobs *knobs) {
  nvf_step *s = NVB_NEW(p->arena, nvf_step);
  make_step(p, i, nvb_dup(p->arena, knobs, sizeof *knobs), s);
  return s;
}

nvf_plan *nvf_fuse(nvb_arena *a, const nvg_graph *g, const nvb_caps *caps, const nvf_options *o) {
  nvf_plan *p = NVB_NEW(a, nvf_plan);
  nvf_choice *c = without(a, g, caps, o);
  int *buf_of = NVB_NEWN(a, int, c->net->n + 1), *twin = NVB_NEWN(a, int, c->net->n + g->nout + 1);
  *p = (nvf_plan){ .arena = a, .g = c->net->g, .given = g, .device = caps->kind, .ncut = c->ncut, .cut = c->cut,
                   .nveto = o->nveto, .veto = o->veto, .work = c->net->built + c->net->looked,
                   .bytes_min = least_bytes(c->net), .choice = c, .buf_of = buf_of, .twin = twin,
                   .pieces = c->pieces };
  nvf_memory(p, c, buf_of, twin);
  p->step = NVB_NEWN(a, nvf_step, c->nstep + 1);
  for (int k = 0; k < c->n; k++)
    nvf_collapse(c->k[k]);
  int any, *now = o->step ? o->step : &any;
  for (; p->nstep < c->nstep; p->nstep++) {
    *now = p->nstep;
    make_step(p, p->nstep, NULL, &p->step[p->nstep]);
  }
  *now = -1;
  return p;
}
