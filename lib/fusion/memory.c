/* Assigns the buffers of a plan: leaves, outputs, and one block of temporaries that share bytes where their lifetimes
   allow it. An output takes the memory of a donated leaf only if this memory is aligned like the output's own and no
   element of the leaf is read after the write, or at an index other than the one written. */
#include "fusion/planner.h"
#include <limits.h>
#include <string.h>

enum { ALIGN = 64 };

/* By node: the step that makes it and the last one that reads it; over: the node in whose memory it is stored; under:
   the one that is stored in its memory. -1: none. */
typedef struct lifetimes { int *first, *last, *over, *under; } lifetimes;
static lifetimes find_lifetimes(const nvf_partition *c) {
  nvb_arena *a = c->graph->arena;
  int n = c->graph->n;
  lifetimes t = { NVB_NEWN(a, int, n + 1), NVB_NEWN(a, int, n + 1), NVB_NEWN(a, int, n + 1), NVB_NEWN(a, int, n + 1) };
  for (int i = 0; i < n; i++) t.first[i] = t.last[i] = t.over[i] = t.under[i] = -1;
  for (int i = 0; i < c->n; i++) {
    const nvf_fusion *k = c->k[i];
    for (int j = 0; j < k->put.n; j++) t.first[k->put.at[j].node] = t.last[k->put.at[j].node] = c->step[i];
    for (int j = 0; j < k->nread; j++) t.last[k->read[j]] = c->step[i];
    if (k->over) t.over[k->root[0]] = k->over - 1, t.under[k->over - 1] = k->root[0];
  }
  return t;
}

static int64_t end_of(const nvf_buf *b) { return b->offset + (b->bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* The temporaries that are placed and may be alive when a later one is, by ascending offset. */
typedef struct placed { int n; nvf_buf **at; } placed;

/* Forgets those that are dead before step `first`, which no later temporary begins before. */
static void drop_dead(placed *p, int first) {
  int n = 0;
  for (int i = 0; i < p->n; i++)
    if (p->at[i]->last >= first) p->at[n++] = p->at[i];
  p->n = n;
}

/* Places a temporary at the lowest offset that is free of others with an overlapping lifetime. */
static void place_lowest(placed *p, nvf_buf *b) {
  int64_t at = 0;
  int to = 0;
  for (int i = 0; i < p->n && p->at[i]->offset < at + b->bytes; i++) {
    const nvf_buf *o = p->at[i];
    if (o->last >= b->first && b->last >= o->first && end_of(o) > at) at = end_of(o);
  }
  b->offset = at;
  while (to < p->n && p->at[to]->offset <= at) to++;
  memmove(p->at + to + 1, p->at + to, (size_t)(p->n++ - to) * sizeof *p->at);
  p->at[to] = b;
}

/* Places those that are local to strips, or the others, behind `base`. Returns where they end. */
static int64_t place_some(nvf_plan *p, int local, int64_t base) {
  placed alive = { 0, NVB_NEWN(p->arena, nvf_buf *, p->nbuf + 1) };
  int *first = NVB_NEWN(p->arena, int, p->nbuf + 1); /* by buffer: the first step of it and the temporaries after it */
  int64_t end = 0;
  first[p->nbuf] = INT_MAX;
  for (int i = p->nbuf - 1; i >= 0; i--) {
    const nvf_buf *b = &p->buf[i];
    first[i] = b->kind == NVF_BTEMP && b->first < first[i + 1] ? b->first : first[i + 1];
  }
  for (int i = 0; i < p->nbuf; i++) {
    nvf_buf *b = &p->buf[i];
    if (b->kind != NVF_BTEMP || b->local != local) continue;
    drop_dead(&alive, first[i]);
    place_lowest(&alive, b);
    end = end_of(b) > end ? end_of(b) : end;
  }
  for (int i = 0; i < p->nbuf; i++)
    if (p->buf[i].kind == NVF_BTEMP && p->buf[i].local == local) p->buf[i].offset += base;
  return base + end;
}

void nvf_place_temporaries(nvf_plan *p) {
  for (int i = 0; i < p->nbuf; i++) p->buf[i].offset = -1;
  p->kept_bytes = place_some(p, 0, 0);
  p->temp_bytes = place_some(p, 1, p->kept_bytes);
}

/* Whether every load of the leaf in this kernel is unguarded and at the address of the store. */
static int reads_there(const nvf_fusion *k, int leaf, nvf_ix at) {
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == NVF_ILOAD && k->expr.at[i].node == leaf &&
        (k->expr.at[i].at != at || k->expr.at[i].guard))
      return 0;
  return 1;
}

/* Whether this step may store the node over the leaf: only the kernel that makes the node reads the leaf, and each load
   is at the address of every store. */
static int in_place(const nvf_partition *c, int step, int leaf, int node) {
  int ok = 1;
  for (int i = 0; i < c->n; i++) {
    int makes = 0;
    if (c->step[i] != step) continue;
    for (int j = 0; j < c->k[i]->put.n; j++) {
      makes |= c->k[i]->put.at[j].node == node;
      ok &= !nvf_reads(c->k[i], leaf) || reads_there(c->k[i], leaf, c->k[i]->put.at[j].at);
    }
    ok &= makes || !nvf_reads(c->k[i], leaf);
  }
  return ok;
}

static int is_packed(const nvg_leaf *l) {
  int64_t s = 1;
  for (int d = l->rank - 1; d >= 0; d--) {
    if (l->shape[d] != 1 && l->stride[d] != s) return 0;
    s *= l->shape[d];
  }
  return 1;
}

/* The bytes of a value, by symbols. */
static nvf_prod bytes_of(const nvf_graph *graph, const nvf_node *n) {
  nvf_prod p = nvf_int(graph->space, nvg_size(n->dtype));
  for (int d = 0; d < n->rank; d++) p = nvf_mul(graph->space, p, n->dim[d]);
  return p;
}

static void donate_buffer(nvf_plan *p, const nvf_partition *c, const lifetimes *t, nvf_buf *out, uint8_t *gone) {
  const nvf_graph *graph = c->graph;
  int node = graph->out[out->id], copies = 0;
  for (int o = 0; o < p->g->nout; o++) copies += graph->out[o] == node;
  while (t->over[node] >= 0) node = t->over[node]; /* the first that is stored in its memory */
  int first = t->first[node];
  for (int i = 0; i < graph->n && first >= 0 && copies == 1 && out->donor < 0; i++) {
    const nvf_node *l = &graph->node[i];
    const nvg_leaf *leaf = l->kind == NVG_VLEAF ? &p->g->leaf[l->leaf] : NULL;
    if (!leaf || !leaf->donated || !leaf->align16 || gone[l->leaf] || !is_packed(leaf) ||
        l->size * nvg_size(l->dtype) != out->bytes || i == node)
      continue;
    int to = t->last[i];
    if (to > first || (to == first && !in_place(c, first, i, node)) ||
        (to == first && nvg_size(l->dtype) != nvg_size(graph->node[node].dtype)))
      continue;
    nvf_rely(graph->space, (nvf_fact){ NVF_EQUAL, bytes_of(graph, l), out->size, 0 });
    out->donor = l->leaf;
    gone[l->leaf] = 1;
  }
}

void nvf_memory(nvf_plan *p, nvf_partition *c, int *buf_of, int *twin) {
  const nvf_graph *graph = c->graph;
  const nvg_graph *g = p->g;
  lifetimes t = find_lifetimes(c);
  p->buf = NVB_NEWN(p->arena, nvf_buf, graph->n + g->nout + 1);
  for (int i = 0; i < graph->n; i++) {
    const nvf_node *n = &graph->node[i];
    nvf_buf b = { .kind = NVF_BLEAF, .id = n->leaf, .bytes = n->size * nvg_size(n->dtype), .donor = -1 };
    b.size = bytes_of(graph, n);
    b.first = t.first[i], b.last = t.last[i];
    buf_of[i] = twin[p->nbuf] = -1;
    if (n->kind != NVG_VLEAF && (b.first < 0 || n->out || t.under[i] >= 0)) continue;
    for (int x = i; t.over[x] >= 0;) b.first = t.first[x = t.over[x]];
    b.kind = n->kind == NVG_VLEAF ? NVF_BLEAF : NVF_BTEMP;
    if (n->kind == NVG_VSCATTER) { /* a scatter enters into the buffer of its zeros */
      buf_of[i] = buf_of[n->in[1]];
      p->buf[buf_of[i]].last = b.last;
      continue;
    }
    buf_of[i] = p->nbuf;
    p->buf[p->nbuf++] = b;
  }
  for (int o = 0; o < g->nout; o++) {
    const nvf_node *n = &graph->node[graph->out[o]];
    p->buf[p->nbuf++] = (nvf_buf){ .kind = NVF_BOUT, .id = o, .bytes = n->size * nvg_size(n->dtype), .donor = -1 };
    p->buf[p->nbuf - 1].size = bytes_of(graph, n);
  }
  for (int o = g->nout, b = p->nbuf - 1; o-- > 0; b--) { /* chains the outputs of a node, after the leaf's own buffer */
    int x = graph->out[o], *head = graph->node[x].kind == NVG_VLEAF ? &twin[buf_of[x]] : &buf_of[x];
    twin[b] = *head;
    *head = b;
  }
  for (int i = graph->n - 1; i >= 0; i--)
    if (t.under[i] >= 0) buf_of[i] = buf_of[t.under[i]];
  nvf_place_temporaries(p);
  uint8_t *gone = nvb_get(p->arena, (size_t)g->nleaf + 1);
  for (int i = 0; i < p->nbuf; i++)
    if (p->buf[i].kind == NVF_BOUT) donate_buffer(p, c, &t, &p->buf[i], gone);
}
