/* Splits reductions and scans. A long reduction with too few results becomes partials (aligned subtrees of its
   reduction order) and a finish of order (1, 1); a reduction whose source is also read by chunks of a reduction order
   is split at these chunks, so that one kernel can do both; a few long lines are scanned in segments. None of this
   changes a bit, except that a reduction over the tiles of a GEMM gets an order of its own. It decides the lengths of
   parts; the search decides whether partials pay. */
#include "fusion/two_pass.h"
#include <string.h>

enum {
  LONGEST = 1 << 24, /* a longer run does not fit into a tile, so it is always split, and so are its partials */
  PART = 1 << 18,    /* most elements of a partial */
  ENOUGH = 1 << 15,  /* elements of a partial on a GPU, unless there are too many partials */
  BLOCKS = 16        /* blocks of strips of columns on a GPU, for each SM */
};

static int is_spectral(const nvf_graph_builder *w, int value) {
  const nvg_val *v = &w->graph->g->v[value];
  int found = v->kind == NVG_VROUTINE && v->op == NVG_OP_DFT && w->graph->caps->kind == NVB_CPU;
  if (v->kind != NVG_VMAP && v->kind != NVG_VRESHAPE) return found;
  for (int i = 0; i < v->nin; i++) found |= w->spectral[v->in[i]];
  return found;
}

nvf_graph_builder *nvf_graph_builder_new(nvf_graph *graph, int split) {
  const nvg_graph *g = graph->g;
  nvf_graph_builder *w = NVB_NEW(graph->arena, nvf_graph_builder);
  *w = (nvf_graph_builder){ .graph = graph,
                            .a = graph->arena,
                            .split = split,
                            .node = NVB_NEWN(graph->arena, int, g->n + 1),
                            .state = NVB_NEWN(graph->arena, int *, g->n + 1),
                            .largest = NVB_NEWN(graph->arena, int64_t, g->n + 1),
                            .spectral = nvb_get(graph->arena, (size_t)g->n + 1),
                            .parts = nvb_map_new(graph->arena) };
  for (int i = 0; i < g->n; i++) {
    w->spectral[i] = (uint8_t)is_spectral(w, i);
    w->largest[i] = g->v[i].kind == NVG_VLEAF ? g->v[i].size : 1;
    for (int j = 0; j < g->v[i].nin; j++)
      w->largest[i] = w->largest[g->v[i].in[j]] > w->largest[i] ? w->largest[g->v[i].in[j]] : w->largest[i];
  }
  return w;
}

int nvf_graph_add(nvf_graph_builder *w, nvf_node n) {
  n.size = 1;
  for (int d = 0; d < n.rank; d++) n.size *= nvf_value(w->graph->space, n.dim[d]);
  n.parts = nvg_class_of(n.dtype) == NVG_COMPLEX ? 2 : 1;
  NVB_PUSH(w->a, w->made, n);
  return w->made.n - 1;
}

int64_t nvf_count(const nvg_val *v, int from, int to) {
  int64_t n = 1;
  for (int d = from; d < to; d++) n *= v->shape[d];
  return n;
}

static nvf_node node_made(const nvf_graph_builder *w, int i) { return w->made.at[i]; }
static int *copy_ints(nvf_graph_builder *w, int n, const int *from) {
  return nvb_dup(w->a, from, (size_t)n * sizeof *from);
}
static const int64_t *make_attrs(nvf_graph_builder *w, int64_t a, int64_t b) {
  return nvb_dup(w->a, (int64_t[2]){ a, b }, 2 * sizeof a);
}

/* The dimensions of x with `drop` of them, from `at` on, replaced by n others. */
static const nvf_prod *with_dims(nvf_graph_builder *w, const nvf_node *x, int at, int drop, int n, const nvf_prod *p) {
  nvf_prod *d = NVB_NEWN(w->a, nvf_prod, x->rank + n + 1);
  memcpy(d, x->dim, (size_t)at * sizeof *d);
  memcpy(d + at, p, (size_t)n * sizeof *d);
  memcpy(d + at + n, x->dim + at + drop, (size_t)(x->rank - at - drop) * sizeof *d);
  return d;
}

static int add_reshape(nvf_graph_builder *w, int from, int rank, const nvf_prod *dim) {
  const nvf_node x = node_made(w, from);
  if (x.rank == rank && !memcmp(x.dim, dim, (size_t)rank * sizeof *dim)) return from;
  nvf_node r = { .kind = NVG_VRESHAPE,
                 .dtype = x.dtype,
                 .rank = rank,
                 .dim = dim,
                 .nin = 1,
                 .in = copy_ints(w, 1, &from),
                 .name = x.name,
                 .value = x.value };
  return nvf_graph_add(w, r);
}

/* ---- one reduction; its results keep the reduced dimensions as 1 */
static void add_results(nvf_graph_builder *w, int red, const int *in, int *out) {
  const nvf_node r = node_made(w, red);
  for (int i = 0; i < r.nin; i++) {
    nvf_node pick = { .kind = NVG_VPICK,
                      .dtype = node_made(w, in[i]).dtype,
                      .rank = r.rank,
                      .dim = r.dim,
                      .nin = 1,
                      .in = copy_ints(w, 1, &red),
                      .attr = make_attrs(w, i, 0),
                      .name = r.name,
                      .value = r.value };
    out[i] = r.nin == 1 ? red : nvf_graph_add(w, pick);
  }
}

static void add_reduction(nvf_graph_builder *w, nvf_node n, const int *in, int at, int run, nvf_red_order st,
                          int *out) {
  const nvf_node x = node_made(w, in[0]);
  nvf_prod ones[NVM_MAX_RANK + 4] = { 0 };
  if (!memcmp(x.dim + at, ones, (size_t)run * sizeof *ones)) { /* one element is its own result */
    memmove(out, in, (size_t)n.nin * sizeof *out);
    return;
  }
  n.in = copy_ints(w, n.nin, in);
  n.rank = x.rank;
  n.dim = with_dims(w, &x, at, run, run, ones);
  n.attr = make_attrs(w, at, run);
  n.chunk = st.c;
  n.lanes = st.w;
  add_results(w, nvf_graph_add(w, n), in, out);
}

/* ---- long runs */
static int64_t parts_of(int64_t n, int64_t block) { return (n + block - 1) / block; }

/* Elements of a reduction. len: of the reduced run; inner: of the dimensions after it; kept: of all results; weight:
   leaf elements for each element of the operand; largest: of the largest leaf. */
typedef struct extent { int64_t len, inner, kept, weight, largest; } extent;

static int64_t results_beside(const extent *e) { /* results in the lanes of a block */
  return e->inner < 2 ? 1 : e->inner < 64 ? 64 : e->inner < 1024 ? e->inner : 1024;
}

/* Elements of a partial for strips of columns on a GPU: many blocks, so that the SMs end together, but with at least
   ROWS rows in each if that leaves two for each SM; and so few partials that they are negligible beside the input. */
static int64_t of_strips(const nvb_caps *c, const extent *e, int64_t chunk, int64_t strips) {
  enum { ROWS = 1024, SHARE = 64 };
  int64_t b = chunk;
  for (; b < e->len; b *= 2) {
    int64_t n = parts_of(e->len, b), coarser = parts_of(e->len, 2 * b) * strips;
    int many = n > 1024 || n * strips > BLOCKS * c->cores || (n * e->kept * SHARE > e->largest && coarser >= c->cores);
    if (!many && (b * e->weight >= ROWS || coarser < 2 * c->cores)) break;
  }
  return b;
}

/* Do the lanes of a block run along the results of several columns? Those of few columns run down each. */
static int is_wide(const nvb_caps *c, const extent *e) {
  return e->inner >= 16 || (c->kind == NVB_CPU && e->inner > NVF_FEW_COLUMNS);
}
/* Does a reduction of so many rows of 2 to 15 columns need more than the L2 cache? Of a few, each is read by itself,
   and the rows should stay there from one to the next; of more, each eighth row has accumulators of its own. */
static int is_too_long(const nvb_caps *c, const extent *e, int64_t rows) {
  int64_t row = e->inner > NVF_FEW_COLUMNS ? 2 : e->inner; /* elements of 8 bytes */
  return c->kind == NVB_CPU && e->inner > 1 && e->inner < 16 && rows * row * 8 > c->onchip;
}
/* Elements of a partial on a CPU: 32 K elements, or of 512 rows; smaller ones only to keep every core busy. */
static int64_t part_on_cpu(const extent *e, int64_t chunk, int64_t want, int wide) {
  int64_t most = wide ? 64 : 256, b = wide ? 512 : 32768;
  while (b > chunk && b > 2 &&
         (b * e->weight > (wide ? 512 : 65536) || (parts_of(e->len, b) < want && (wide || b * e->weight > 8192))))
    b /= 2;
  b = b < chunk ? chunk : b;
  while (parts_of(e->len, b) > most && 2 * b * results_beside(e) <= NVF_TILE_SURE) b *= 2;
  return b;
}
static int64_t reduce_part(const nvb_caps *c, const extent *e, int64_t chunk, int side) {
  int64_t tile = nvf_lane_tile(c), b = chunk;
  int wide = is_wide(c, e), strips = c->kind != NVB_CPU && wide && !side;
  int apart = is_too_long(c, e, e->len);
  int64_t blocks = wide ? e->kept / e->inner * ((e->inner + tile - 1) / tile) : e->kept;
  blocks = blocks < 1 ? 1 : blocks;
  if (e->len * e->kept * e->weight < 65536 || (blocks >= (strips ? BLOCKS : 1) * c->cores && !side && !apart)) return 0;
  if (c->kind == NVB_CPU) {
    b = part_on_cpu(e, chunk, side ? 4 * c->cores : (c->cores + blocks - 1) / blocks, wide);
    while (b > chunk && is_too_long(c, e, b)) b /= 2;
  } else if (strips) {
    b = of_strips(c, e, chunk, blocks);
  } else {
    /* many partials, so that the SMs end together: measured, 2^28 elements take 0.950 of a copy's time in 1,024
       partials, 0.943 in 4,096; on another GPU 0.913 in 4,096, 0.910 in 8,192 */
    int64_t want = side ? 2 * c->cores : 4 * c->cores / blocks;
    while ((b < ENOUGH && b * 2 * (want < 1 ? 1 : want) <= e->len) || parts_of(e->len, b) > 8192) b *= 2;
  }
  b = b < PART ? b : PART;
  return b > 1 && b < e->len ? b : 0;
}

/* The number of partials of a run, as a symbol: one for all runs of the same length and block. */
static nvf_prod count_of_parts(nvf_graph_builder *w, nvf_prod len, int64_t block) {
  nvf_prod key[2] = { len, (nvf_prod)block };
  int fresh, *parts = nvb_map_put(w->parts, key, sizeof key, &fresh);
  if (fresh) *parts = nvf_parts(w->graph->space, len, block);
  return *parts;
}

/* Elements of a partial of spectra: as few rows as half of a core's L2 cache holds, of numbers and their transforms, so
   that a strip of rows makes one (strips.c). */
static int64_t part_of_spectra(const nvb_caps *c, const extent *e, int64_t chunk) {
  enum { BYTES = 16, MOST = 1024 }; /* of an element; partials */
  int64_t b = chunk;
  while (parts_of(e->len, b) > MOST || 2 * b * e->inner * BYTES <= c->onchip / 2) b *= 2;
  return b < e->len && b * results_beside(e) <= NVF_TILE_SURE ? b : 0;
}

typedef struct manner { int whole, side; int64_t largest; int spectral; } manner;
static void long_reduce(nvf_graph_builder *w, nvf_node n, const int *in, int at, int run, nvf_red_order st,
                        const manner *m, int *out);

static void add_split(nvf_graph_builder *w, nvf_node n, const int *in, int at, int run, nvf_red_order st, int64_t block,
                      int spectral, int *out) {
  nvf_space *s = w->graph->space;
  const nvf_node x = node_made(w, in[0]);
  nvf_prod len = 0, dims[NVM_MAX_RANK + 4] = { 0 };
  int mid[64];
  for (int d = at; d < at + run; d++) len = nvf_mul(s, len, x.dim[d]);
  dims[0] = count_of_parts(w, len, block);
  nvf_node p = n, f = n;
  f.tiled = 0;
  p.in = copy_ints(w, n.nin, in);
  p.block = block;
  p.must = p.apart = spectral && n.nin == 1;
  p.rank = x.rank + 1;
  p.dim = with_dims(w, &x, at, run, run + 1, dims);
  p.attr = make_attrs(w, at, run);
  p.chunk = st.c;
  p.lanes = st.w;
  add_results(w, nvf_graph_add(w, p), in, mid);
  f.finish = 1;
  if (nvf_value(s, dims[0]) > LONGEST)
    long_reduce(w, f, mid, at, 1, (nvf_red_order){ 1, 1 }, &(manner){ .largest = nvf_value(s, dims[0]) }, out);
  else add_reduction(w, f, mid, at, 1, (nvf_red_order){ 1, 1 }, out);
  dims[0] = 0;
  const nvf_prod *dim = with_dims(w, &x, at, run, run, dims);
  for (int i = 0; i < n.nin; i++) out[i] = add_reshape(w, out[i], x.rank, dim);
}

static void long_reduce(nvf_graph_builder *w, nvf_node n, const int *in, int at, int run, nvf_red_order st,
                        const manner *m, int *out) {
  const nvf_node x = node_made(w, in[0]);
  extent e = { 1, 1, 1, 1, m->largest };
  for (int d = 0; d < x.rank; d++) {
    int64_t k = nvf_value(w->graph->space, x.dim[d]);
    e.len *= d >= at && d < at + run ? k : 1;
    e.inner *= d >= at + run ? k : 1;
    e.kept *= d >= at && d < at + run ? 1 : k;
  }
  e.weight = e.inner >= 16 && x.size && m->largest > x.size ? m->largest / x.size : 1;
  int endless = e.len > LONGEST || (e.inner > 1 && e.len * results_beside(&e) > NVF_TILE_SURE);
  int side = m->side || endless || (w->graph->caps->kind == NVB_CPU && e.weight >= 16);
  int64_t block = (m->whole || w->split == NVF_ONE_PASS) && !endless ? 0 : reduce_part(w->graph->caps, &e, st.c, side);
  if (m->spectral && n.nin == 1 && !m->whole && w->split != NVF_ONE_PASS && e.inner > 1)
    block = part_of_spectra(w->graph->caps, &e, st.c);
  if (block) add_split(w, n, in, at, run, st, block, m->spectral, out);
  else add_reduction(w, n, in, at, run, st, out);
}

/* ---- splits at the borders of the reduction order */
static int is_power2(int64_t n) { return n > 0 && !(n & (n - 1)); }

/* The product of a value's dimensions between two boundaries, before which the leading extents multiply to `lo` and
   `hi`; -1 if there are no such boundaries. */
static nvf_prod product_between(nvf_graph_builder *w, int value, int64_t lo, int64_t hi) {
  const nvg_val *v = &w->graph->g->v[value];
  int64_t n = 1;
  nvf_prod p = 0;
  int open = n == lo, closed = n == hi;
  for (int d = 0; d < v->rank && !closed; d++) {
    if (open) p = nvf_mul(w->graph->space, p, w->graph->sizes->dim[value][d]);
    n *= v->shape[d];
    open |= n == lo;
    closed = open && n == hi;
  }
  return open && closed ? p : -1;
}

/* Splits a sum whose operand is also read by chunks of the reduction order into three reductions: the sequence of a
   lane, the lanes of a chunk, and the chunks. Returns 0 if nothing reads the operand like that. */
static int by_chunks(nvf_graph_builder *w, const nvg_val *v, nvf_node n, const manner *m, int *out) {
  const nvg_graph *g = w->graph->g;
  const nvg_val *x = &g->v[v->in[0]];
  int at = (int)v->attr[0], run = (int)v->attr[1];
  int64_t len = nvf_count(x, at, at + run), before = nvf_count(x, 0, at), c = v->chunk, l = v->lanes;
  if (v->nin != 1 || !x->size || c <= l || len % c || len < 2 * c) return 0;
  for (int i = 0; i < g->n; i++) {
    if (g->v[i].kind != NVG_VRESHAPE || g->v[i].in[0] != v->in[0]) continue;
    nvf_prod dim[3] = { product_between(w, i, before, before * len / c),
                        product_between(w, i, before * len / c, before * len / l),
                        product_between(w, i, before * len / l, before * len) };
    const nvf_node from = node_made(w, n.in[0]);
    if (dim[0] < 0 || dim[1] < 0 || dim[2] < 0 || from.rank + 3 - run > NVM_MAX_RANK) continue;
    nvf_rely(w->graph->space, (nvf_fact){ .kind = NVF_THESE_SIZES });
    int y = add_reshape(w, n.in[0], from.rank + 3 - run, with_dims(w, &from, at, run, 3, dim));
    add_reduction(w, n, &y, at + 1, 1, (nvf_red_order){ (int)(c / l), 1 }, out);
    if (l > 1) add_reduction(w, n, out, at + 2, 1, (nvf_red_order){ 1, 1 }, out);
    long_reduce(w, n, out, at, 1, (nvf_red_order){ 1, 1 }, m, out);
    return 1;
  }
  return 0;
}

/* Splits a tree over an axis into which two dimensions were merged, the inner one a power of two, into one over each:
   first the inner one. */
static int by_lanes(nvf_graph_builder *w, const nvg_val *v, nvf_node n, const manner *m, int *out) {
  const nvg_graph *g = w->graph->g;
  const nvg_val *x = &g->v[v->in[0]];
  int at = (int)v->attr[0], run = (int)v->attr[1];
  int64_t len = nvf_count(x, at, at + run), before = nvf_count(x, 0, at);
  if (!x->size || run != 1 || v->chunk != 1 || v->lanes != 1) return 0;
  for (int i = 0; i < v->nin; i++) {
    const nvg_val *r = &g->v[v->in[i]], *y = r->kind == NVG_VRESHAPE ? &g->v[r->in[0]] : NULL;
    int64_t k = 1, last = 1;
    for (int d = 0; y && d < y->rank && k < before * len; d++) /* ends at the last dimension inside the run */
      k *= last = y->shape[d];
    if (!y || k != before * len || !is_power2(last) || last == 1 || last >= len) continue;
    nvf_prod dim[2] = { product_between(w, r->in[0], before, before * len / last),
                        product_between(w, r->in[0], before * len / last, before * len) };
    if (dim[0] < 0 || dim[1] < 0) continue;
    nvf_rely(w->graph->space, (nvf_fact){ .kind = NVF_THESE_SIZES });
    int in[64];
    for (int j = 0; j < n.nin; j++) {
      const nvf_node from = node_made(w, n.in[j]);
      in[j] = add_reshape(w, n.in[j], from.rank + 1, with_dims(w, &from, at, 1, 2, dim));
    }
    add_reduction(w, n, in, at + 1, 1, (nvf_red_order){ 1, 1 }, in);
    long_reduce(w, n, in, at, 1, (nvf_red_order){ 1, 1 }, m, out);
    return 1;
  }
  return 0;
}

/* Splits a reduction in any order over several axes into one over each, so that its rows can share a kernel with
   others. */
static void by_axes(nvf_graph_builder *w, const nvg_val *v, nvf_node n, int *out) {
  out[0] = n.in[0];
  for (int d = (int)(v->attr[0] + v->attr[1]) - 1; d >= v->attr[0]; d--)
    if (node_made(w, out[0]).dim[d])
      long_reduce(w, n, out, d, 1, (nvf_red_order){ v->chunk, v->lanes }, &(manner){ .whole = 1, .largest = 1 }, out);
}

/* Splits a reduction that is fused to a GEMM into partials of its tiles, with an order of its own, in the shape of the
   GEMM. */
static void by_tiles(nvf_graph_builder *w, const nvg_val *v, nvf_node n, const nvf_along *along, int *out) {
  int *in = copy_ints(w, v->nin, n.in), tile = (int)along->tile;
  for (int i = 0; i < v->nin; i++)
    in[i] = add_reshape(w, in[i], w->graph->g->v[along->dot].rank, w->graph->sizes->dim[along->dot]);
  n.tiled = 1;
  add_split(w, n, in, along->axis, 1, (nvf_red_order){ tile, tile }, tile, 0, out);
}

void nvf_add_reduction(nvf_graph_builder *w, const nvg_val *v, nvf_node n, int whole, int side,
                       const nvf_along *along) {
  const nvg_val *x = &w->graph->g->v[v->in[0]];
  int64_t len = nvf_count(x, (int)v->attr[0], (int)(v->attr[0] + v->attr[1]));
  int *out = NVB_NEWN(w->a, int, v->nin + 1);
  manner m = { whole, side, 1, w->spectral[v->in[0]] };
  for (int i = 0; i < v->nin; i++) m.largest = w->largest[v->in[i]] > m.largest ? w->largest[v->in[i]] : m.largest;
  if (v->nin > NVF_STATES)
    nvb_throw(w->a, NVM_ERR_UNSUPPORTED, "[fuse] a reduction of more than %d states", NVF_STATES);
  memcpy(out, n.in, (size_t)v->nin * sizeof *out);
  if (len == 1)
    ; /* the operands are the result */
  else if (along->tile) by_tiles(w, v, n, along, out);
  else if (w->split == NVF_FINE && v->order_free && v->nin == 1 && x->size) by_axes(w, v, n, out);
  else if (w->split == NVF_ONE_PASS || (!by_chunks(w, v, n, &m, out) && !by_lanes(w, v, n, &m, out)))
    long_reduce(w, n, n.in, (int)v->attr[0], (int)v->attr[1], (nvf_red_order){ v->chunk, v->lanes }, &m, out);
  for (int i = 0; i < v->nin; i++) out[i] = add_reshape(w, out[i], v->rank, n.dim);
  w->state[n.value] = out;
  w->node[n.value] = v->nin == 1 ? out[0] : -1;
}

/* ---- scans */
enum { SCAN_BLOCK = NVF_SCAN_RUN * NVF_SCAN_RUNS, SEGMENT = 16 * SCAN_BLOCK };

/* Whether a scan is split into segments of SEGMENT elements. Measured on 2^26 f32, with segments and without: one line
   1.04 and 20.1 ms; 64 lines 0.38 and 0.34. */
static int in_segments(const nvf_graph_builder *w, const nvg_val *v) {
  const nvb_caps *c = w->graph->caps;
  const nvg_val *x = &w->graph->g->v[v->in[0]];
  int64_t len = v->shape[v->attr[0]], lines = len ? v->size / len : 0;
  int pairs = nvg_class_of(x->dtype) == NVG_COMPLEX; /* a masked load has one value for both parts */
  return c->kind != NVB_CPU && w->split != NVF_ONE_PASS && v->nin == 1 && len >= 4 * SEGMENT && 3 * lines < c->cores &&
         !(pairs && v->init[0] != v->init[1]);
}

int nvf_add_scan(nvf_graph_builder *w, const nvg_val *v, nvf_node n) {
  if (!in_segments(w, v)) return nvf_graph_add(w, n);
  int at = (int)v->attr[0], total[2];
  const nvf_node x = node_made(w, n.in[0]);
  nvf_prod blocked[2] = { count_of_parts(w, x.dim[at], SCAN_BLOCK), 0 };
  nvf_node t = n, c = n;
  t.kind = NVG_VRED;
  t.block = SCAN_BLOCK;
  t.rank = x.rank + 1;
  t.dim = with_dims(w, &x, at, 1, 2, blocked);
  t.attr = make_attrs(w, at, 1);
  t.chunk = NVF_SCAN_RUN;
  t.lanes = 1;
  add_results(w, nvf_graph_add(w, t), n.in, total);
  c.dim = with_dims(w, &x, at, 1, 1, blocked);
  c.in = copy_ints(w, 1, &(int){ add_reshape(w, total[0], x.rank, c.dim) });
  c.chain = 1;
  n.in = copy_ints(w, 2, (int[2]){ n.in[0], nvf_graph_add(w, c) });
  n.nin = 2;
  n.block = SEGMENT;
  return nvf_graph_add(w, n);
}
