/* The cost model of a fusion: it decides which axes become grid axes and which stay inside a block, and estimates the
   time in ns from bytes, operations and the part of the machine that the grid fills. cost_gemm.c prices kernels with a
   GEMM. It never decides tiles or layouts (schedule*.c do). */
#include <math.h>
#include <string.h>
#include "frag/dtype.h"
#include "fusion/planner.h"

typedef struct pricing {
  const nvf_fusion *k;
  const nvb_caps *caps;
  int nred, red[64]; /* expressions that are reductions or scans */
  int *depth;        /* by expression: most reductions of this kernel on a path to it */
  uint64_t *needed;  /* by expression: bit set of the depths at which it is used */
  uint64_t loop;     /* axes that a block may walk one coordinate at a time */
  int lane;
  /* CPU, by expression: the time of one operation relative to that of a lane of a full f32 vector */
  float *waste;
} pricing;

double nvf_elements(const nvf_fusion *k, uint64_t axes) {
  double n = 1;
  for (; axes; axes &= axes - 1) n *= (double)k->axis.at[__builtin_ctzll(axes)].n;
  return n;
}

static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }

int64_t nvf_lane_tile(const nvb_caps *caps) { return caps->kind == NVB_CPU ? 1024 : 4 * caps->width; }

/* ---- the axis along which memory is contiguous */
static void score_address(const nvf_fusion *k, nvf_ix at, double n, double *sc) {
  int terms;
  const nvf_term *t = nvf_ix_terms(k->graph->space, at, &terms);
  for (int i = 0; i < terms; i++) {
    const nvf_atom *a = nvf_ix_atom(k->graph->space, t[i].atom);
    if (a->kind == NVF_AT_AXIS && t[i].by == 0 && (t[i].c == 1 || t[i].c == -1)) sc[a->id] += n;
  }
}

/* returns the number of expressions of this kind */
static int score_kind(const nvf_fusion *k, nvf_ikind kind, double *sc) {
  int n = 0;
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == kind) n++, score_address(k, k->expr.at[i].at, nvf_elements(k, k->expr.at[i].axes), sc);
  return n;
}

int nvf_lane_axis(const nvf_fusion *k) {
  double sc[64] = { 0 };
  int best = -1;
  if (!score_kind(k, NVF_ILOAD, sc)) /* a kernel without loads follows its coordinates */
    score_kind(k, NVF_IINDEX, sc);
  for (int i = 0; i < k->put.n; i++)
    score_address(k, k->put.at[i].at, (double)k->graph->node[k->put.at[i].node].size, sc);
  for (int a = 0; a < k->axis.n; a++)
    if (sc[a] > 0 && (best < 0 || sc[a] > sc[best])) best = a;
  return best;
}

/* ---- depths, and the axes that a block may walk */
static void find_depths(pricing *p) {
  const nvf_fusion *k = p->k;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    for (int j = 0; j < v->narg; j++)
      if (p->depth[v->arg[j]] > p->depth[i]) p->depth[i] = p->depth[v->arg[j]];
    if (nvf_is_red(v)) {
      p->depth[i] += p->depth[i] < 62;
      p->red[p->nred++] = i;
    }
  }
  for (int i = k->expr.n - 1; i >= 0; i--) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (!p->needed[i]) p->needed[i] = 1ull << p->depth[i];
    uint64_t me = nvf_is_red(v) ? 1ull << (p->depth[i] - 1) : p->needed[i];
    for (int j = 0; j < v->narg; j++)
      if (!nvf_is_red(&k->expr.at[v->arg[j]])) p->needed[v->arg[j]] |= me;
  }
}

/* Axes that are kept by every reduction whose own axis appears again in an expression that uses its result. A block
   that walks them keeps only a row on chip. */
static uint64_t axes_walked_twice(const pricing *p) {
  const nvf_fusion *k = p->k;
  uint64_t *below = NVB_NEWN(k->graph->arena, uint64_t, k->expr.n + 1), again = 0, out = ~0ull;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    for (int j = 0; j < v->narg; j++) {
      below[i] |= below[v->arg[j]];
      for (int r = 0; r < p->nred; r++)
        if (p->red[r] == v->arg[j]) below[i] |= 1ull << r;
    }
    uint64_t axes = v->axes | (nvf_is_red(v) ? 1ull << v->axis : 0);
    for (int r = 0; r < p->nred; r++)
      if ((below[i] >> r & 1) && (axes >> k->expr.at[p->red[r]].axis & 1)) again |= 1ull << r;
  }
  for (int r = 0; r < p->nred; r++)
    if (again >> r & 1) out &= k->expr.at[p->red[r]].axes;
  return again ? out : 0;
}

/* ---- bytes: overlapping views of one buffer count once */
typedef struct stride { int64_t k, n; } stride;
static int can_be_zero(int64_t d, const stride *t, int n) {
  if (d == 0 || n == 0) return d == 0;
  int64_t q = d / t->k - (d % t->k && d < 0);
  for (int64_t i = q; i <= q + 1; i++)
    if (-t->n < i && i < t->n && can_be_zero(d - i * t->k, t + 1, n - 1)) return 1;
  return 0;
}

/* Splits an address into its constant part and strides with extents, longest first; `rest` identifies the terms that
   are not constant. */
static int split_strides(const nvf_fusion *k, nvf_ix at, int64_t *offset, nvf_ix *rest, stride *t) {
  nvf_space *s = k->graph->space;
  int n, m = 0;
  const nvf_term *term = nvf_ix_terms(s, at, &n);
  *offset = 0;
  *rest = nvf_ix_moving(s, at);
  for (int i = 0; i < n; i++) {
    int64_t c = term[i].c * nvf_value(s, term[i].by);
    const nvf_atom *a = nvf_ix_atom(s, term[i].atom);
    if (a->kind == NVF_AT_ONE) {
      *offset += c;
      continue;
    }
    stride x = { c < 0 ? -c : c, a->kind == NVF_AT_AXIS ? a->hi + 1 : (int64_t)1 << 30 };
    int j = m++;
    for (; j > 0 && t[j - 1].k < x.k; j--) t[j] = t[j - 1];
    t[j] = x;
  }
  return m;
}

typedef struct view { nvf_ix rest; int64_t offset; double n; } view;
static double elements_read(const pricing *p, int node, const int *load, int n) {
  view *seen = NVB_NEWN(p->k->graph->arena, view, n);
  int m = 0;
  double sum = 0, size = (double)p->k->graph->node[node].size;
  for (int i = 0; i < n; i++) {
    int terms;
    nvf_ix_terms(p->k->graph->space, p->k->expr.at[load[i]].at, &terms);
    stride *t = NVB_NEWN(p->k->graph->arena, stride, terms + 1);
    view v = { .n = least(size, nvf_elements(p->k, p->k->expr.at[load[i]].axes)) };
    int nt = split_strides(p->k, p->k->expr.at[load[i]].at, &v.offset, &v.rest, t), j = 0;
    while (j < m && seen[j].rest == v.rest && !can_be_zero(v.offset - seen[j].offset, t, nt)) j++;
    if (j == m) seen[m++] = v;
    else seen[j].n = most(seen[j].n, v.n);
  }
  for (int i = 0; i < m; i++) sum += seen[i].n;
  return least(sum, size);
}

/* ---- the price for one set of reductions that every block repeats */
typedef struct price { double time, blocks; uint64_t grid; double rd, wr, fl; } price;

static uint64_t grid_of(const pricing *p, uint64_t repeated) {
  const nvf_fusion *k = p->k;
  uint64_t g = nvf_all_axes(k) & ~k->reduced;
  for (int r = 0; r < p->nred; r++)
    if (!(repeated >> r & 1)) g &= k->expr.at[p->red[r]].axes;
  /* an output is written once, so axes that it lacks are not grid axes, unless it is small */
  for (int i = 0; i < k->put.n; i++)
    if (k->graph->node[k->put.at[i].node].size > NVF_SMALL) g &= k->put.at[i].axes;
  return g;
}

/* Loads of one node over the same axes; views over different axes are taken not to overlap. phases: the depths at which
   they are used; foot: their bytes in one block. */
typedef struct group { int node; uint64_t axes, phases; double foot; } group;

static int groups_of(const pricing *p, uint64_t stay, double coal, int *of, group *g) {
  const nvf_fusion *k = p->k;
  int n = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (v->kind != NVF_ILOAD) continue;
    int j = 0;
    while (j < n && (g[j].node != v->node || g[j].axes != v->axes)) j++;
    n += j == n;
    of[i] = j;
    g[j].node = v->node;
    g[j].axes = v->axes;
    g[j].phases |= p->needed[i];
    g[j].foot = nvg_size(k->graph->node[v->node].dtype) * nvf_elements(k, v->axes & stay) *
                (p->lane >= 0 && (v->axes >> p->lane & 1) ? coal : 1);
  }
  return n;
}

/* Whether the data that several phases use does not fit on chip, so that each phase reads it again. */
static int is_spilled(const pricing *p, uint64_t stay, const group *g, int n) {
  /* bytes of a row in the registers of eight blocks; a cluster may have more (schedule_gpu.c) */
  enum { CLUSTER = 8 * 32768 };
  double sum = 0;
  for (int j = 0; j < n; j++) sum += g[j].phases & (g[j].phases - 1) ? g[j].foot : 0;
  int rows = p->lane >= 0 && (stay >> p->lane & 1) && p->caps->cluster > 1;
  return sum > most((double)p->caps->onchip, rows ? CLUSTER : 0);
}

/* ---- vectors of a CPU */
/* A copy of the kernel with this grid; if its lane axis is short, with the axes collapsed as its schedule would do
   it. */
static nvf_fusion with_grid(const pricing *p, uint64_t grid) {
  nvb_arena *a = p->k->graph->arena;
  nvf_fusion c = *p->k;
  c.grid = grid;
  if (p->lane >= 0 && c.axis.at[p->lane].n >= 2 * p->caps->width) return c;
#define COPY(list) c.list.at = nvb_dup(a, c.list.at, (size_t)c.list.n * sizeof *c.list.at)
  COPY(axis), COPY(expr), COPY(guard), COPY(put), COPY(valid);
#undef COPY
  nvf_collapse(&c);
  return c;
}

/* An expression without a lane axis is scalar code, and a short lane axis leaves lanes empty. Accumulators in memory
   are loaded and stored with each operation, from a cache that is not the nearest (mean and deviation of the luminance
   of 1411 x 1411 pixels alone 3.4 ms, beside tone mapping 33). */
static void find_waste(const pricing *p, uint64_t grid) {
  enum { IN_MEMORY = 16 };
  nvf_fusion c = with_grid(p, grid);
  double width = p->caps->width;
  uint64_t lanes = nvf_lanes_cpu(&c);
  for (int i = 0; i < c.expr.n; i++) {
    const nvf_iexpr *v = &c.expr.at[i];
    uint64_t along = (v->axes | (nvf_is_red(v) ? 1ull << v->axis : 0)) & lanes;
    double n = along ? (double)c.axis.at[__builtin_ctzll(along)].n : 1;
    int wide = v->kind == NVF_IINDEX || nvg_size(nvg_real_of(c.graph->node[v->node].dtype)) > 4;
    p->waste[i] = (float)(along && n ? (1 + wide) * ceil(n / width) * width / n : width);
    if (v->kind == NVF_IRED && nvf_sums_in_memory(&c, v->axis)) p->waste[i] *= IN_MEMORY;
  }
}

/* Grid axes along which each coordinate is a block of its own. */
static uint64_t axes_of_blocks(const pricing *p, uint64_t grid) {
  nvf_fusion c = *p->k;
  uint64_t axes = c.grid = grid;
  for (int a = 0; a < c.axis.n; a++) axes &= nvf_is_kept_whole(&c, a, p->lane) ? ~(1ull << a) : ~0ull;
  return axes;
}

/* The operations of values that lack grid axes, which a GPU's kernel of transforms computes for each of them. Its
   arithmetic leaves little time, so these are not hidden behind memory. */
static double operations_again(const pricing *p, uint64_t grid) {
  const nvf_fusion *k = p->k;
  double sum = 0;
  for (int i = 0; i < k->expr.n && k->transforms && p->caps->kind != NVB_CPU; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (v->kind != NVF_IMAP || !(grid & ~v->axes)) continue;
    const nvf_node *n = &k->graph->node[v->node];
    int wide = nvg_size(nvg_real_of(n->dtype)) > 4;
    sum += (1 + wide) * most(1, n->frag->cost) * nvf_elements(k, v->axes | grid);
  }
  return sum;
}

static double operations_time(const pricing *p, const price *c, int spill) {
  const nvf_fusion *k = p->k;
  double sum = 0;
  uint64_t apart = p->waste ? axes_of_blocks(p, c->grid) : 0;
  if (p->waste) find_waste(p, c->grid);
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if ((v->kind == NVF_ILOAD && !p->waste) || v->kind == NVF_ICONST || v->kind == NVF_IPICK)
      continue; /* a GPU overlaps loads with arithmetic */
    const nvg_frag *f = v->kind == NVF_IMAP || nvf_is_red(v) ? k->graph->node[v->node].frag : NULL;
    double per = v->kind == NVF_IDFT ? 3 * log2((double)k->transforms->points) : f && f->cost > 1 ? f->cost : 1;
    if (p->waste) /* a value that lacks grid axes is recomputed in every block along them */
      per *= p->waste[i] * most(1, least(nvf_elements(k, apart & ~v->axes), c->blocks));
    sum += per * nvf_elements(k, v->axes | (nvf_is_red(v) ? 1ull << v->axis : 0)) *
           (spill ? __builtin_popcountll(p->needed[i]) : 1);
  }
  return sum;
}

double nvf_bytes_stored(const nvf_fusion *k) {
  double sum = 0;
  for (int i = 0; i < k->put.n; i++) {
    const nvf_node *n = &k->graph->node[k->put.at[i].node];
    int again = i && k->put.at[i].node == k->put.at[i - 1].node; /* another part of the same node */
    double size = k->over ? nvf_elements(k, k->put.at[i].axes) : (double)n->size;
    sum += again ? 0 : nvg_size(n->dtype) * size;
  }
  return sum;
}

static void count_traffic(const pricing *p, price *c, uint64_t tile, double coal, int bound, double *l2) {
  const nvf_fusion *k = p->k;
  nvb_arena *a = k->graph->arena;
  int *of = NVB_NEWN(a, int, k->expr.n + 1), *load = NVB_NEWN(a, int, k->expr.n + 1);
  group *g = NVB_NEWN(a, group, k->expr.n + 1);
  uint64_t stay = tile & ~p->loop;
  int ngroup = groups_of(p, stay, coal, of, g), spill = is_spilled(p, stay, g, ngroup);
  for (int j = 0; j < ngroup; j++) {
    int n = 0, times = spill ? __builtin_popcountll(g[j].phases) : 1;
    double w = nvg_size(k->graph->node[g[j].node].dtype), size = (double)k->graph->node[g[j].node].size;
    for (int i = 0; i < k->expr.n; i++)
      if (k->expr.at[i].kind == NVF_ILOAD && of[i] == j) {
        /* shifted reads of one tile mostly hit a nearer cache */
        *l2 += w * least(size, nvf_elements(k, g[j].axes)) * (n == 0 || bound ? times : 0.125);
        load[n++] = i;
      }
    c->rd += w * times * elements_read(p, g[j].node, load, n);
  }
  c->fl = operations_time(p, c, spill);
  c->wr += nvf_bytes_stored(k);
}

/* The accumulators of a result of a reduction on a CPU whose vectors do not run along its axis: one for each lane of
   the reduction order, in each chunk. */
static double accumulators(const pricing *p, const nvf_iexpr *v) {
  const nvf_node *n = &p->k->graph->node[v->node];
  if (p->caps->kind != NVB_CPU || v->kind != NVF_IRED || v->axis == p->lane || n->lanes < 2) return 1;
  double length = (double)p->k->axis.at[v->axis].n;
  return least(length, n->lanes * most(1, length / n->chunk));
}
/* Bytes to write and read again results of reductions that a block cannot keep on chip between phases. */
static double spill_bytes(const pricing *p, uint64_t tile, double coal) {
  const nvf_fusion *k = p->k;
  double kept = 0, all = 0;
  for (int r = 0; r < p->nred; r++) {
    const nvf_iexpr *v = &k->expr.at[p->red[r]];
    double w = nvg_size(k->graph->node[v->node].dtype) * accumulators(p, v);
    kept += w * nvf_elements(k, v->axes & tile) * (p->lane >= 0 && (v->axes & ~tile) >> p->lane & 1 ? coal : 1);
    all += w * nvf_elements(k, v->axes);
  }
  return kept > (double)p->caps->onchip ? 2 * all : 0;
}

/* Elements of the lane axis in a block that reduces another axis. A CPU takes fewer, down to 64, rather than leave
   cores idle; a GPU takes the width of its accesses if the reduction is short, else nvf_lane_tile. */
static double strip_length(const nvb_caps *m, double along, double others, double reduced) {
  double t = (double)nvf_lane_tile(m);
  if (m->kind == NVB_CUDA && reduced <= 2048) t = m->width;
  while (m->kind == NVB_CPU && t > 64 && others * along < m->cores * t) t /= 4;
  return least(along, t);
}

/* The lane axis for this grid: on a CPU the lanes may run along another axis than the contiguous one, if this is short
   or bound by a reduction order. */
static int lane_of(const pricing *p, uint64_t grid) {
  nvf_fusion c = *p->k;
  c.grid = grid;
  uint64_t lanes = p->caps->kind == NVB_CPU ? nvf_lanes_cpu(&c) : 0;
  int contiguous = p->lane >= 0 && (lanes >> p->lane & 1);
  return contiguous || !(lanes & grid) ? p->lane : __builtin_ctzll(lanes & grid);
}

/* How often a CPU reads the operand of a reduction of few columns: lanes run down each column by itself, and between
   two columns the block's rows leave the L2 cache if they are many. */
static double times_read(const pricing *p, uint64_t grid, double rows) {
  if (p->caps->kind != NVB_CPU || p->lane < 0 || !(grid >> p->lane & 1)) return 1;
  nvf_fusion c = *p->k;
  c.grid = grid;
  double columns = (double)c.axis.at[p->lane].n;
  int along = nvf_lanes_cpu(&c) >> p->lane & 1;
  return along || columns > NVF_FEW_COLUMNS || rows * columns * 8 <= (double)p->caps->onchip ? 1 : columns;
}

static price price_of(const pricing *found, uint64_t repeated) {
  const nvf_fusion *k = found->k;
  const nvb_caps *m = found->caps;
  price c = { .grid = grid_of(found, repeated) };
  pricing here = *found, *p = &here;
  here.lane = lane_of(found, c.grid);
  uint64_t all = nvf_all_axes(k), tile = all & ~c.grid, free = 0;
  for (int r = 0; r < p->nred; r++) free += repeated >> r & 1;
  int bound = p->nred > (int)free, cpu = m->kind == NVB_CPU;
  double along = p->lane >= 0 && (c.grid >> p->lane & 1) ? (double)k->axis.at[p->lane].n : 1;
  double te = nvf_elements(k, tile), l2 = 0, redo = 0, segments = 1;
  double coal = along < 16 && !cpu ? 1
                : bound            ? strip_length(m, along, nvf_elements(k, c.grid) / along, te)
                : !cpu             ? 1
                : p->nred          ? least(along, 16384)
                                   : 4096;
  c.blocks = most(1, nvf_elements(k, c.grid) / coal);
  for (int r = 0; r < p->nred; r++) {
    const nvf_iexpr *v = &k->expr.at[p->red[r]];
    if (v->kind == NVF_ISCAN && k->graph->node[v->node].block)
      segments = most(segments, (double)k->axis.at[v->axis].n / (double)k->graph->node[v->node].block);
  }
  c.blocks *= segments;
  count_traffic(p, &c, tile, coal, bound, &l2);
  if (bound) c.rd *= times_read(p, c.grid, te);
  for (int r = 0; r < p->nred; r++) {
    if (!(repeated >> r & 1)) continue;
    const nvf_iexpr *v = &k->expr.at[p->red[r]];
    double miss = nvf_elements(k, c.grid & ~v->axes), have = nvf_elements(k, c.grid & v->axes);
    if (p->lane >= 0 && (c.grid & v->axes) >> p->lane & 1) have = most(1, have / coal);
    double times = cpu ? least(miss, c.blocks) : least(miss, most(1, 8 * m->cores / have));
    redo += (double)k->axis.at[v->axis].n * nvf_elements(k, v->axes) * times;
  }
  double filled = cpu ? least(1, c.blocks / m->cores)
                      : least(1, c.blocks * least(most(te * coal, 1), m->threads) / ((double)m->cores * m->threads));
  /* If contiguous runs are shorter than a row, a core has fewer cache lines in flight. Measured on rows of 4,096 f32:
     runs of 64, 256 and 1,024 reach 0.53, 0.66 and 0.87 of the rate of whole rows, and runs of 64 reach 0.73 with
     rows prefetched. So latency limits the single core, and many cores still reach the full bandwidth. */
  double unit = m->core_bandwidth * (bound && along > coal ? coal / (coal + 48) : 1);
  double bw = cpu ? least(m->bandwidth, least(m->cores, c.blocks) * unit) : m->bandwidth * filled;
  double busy = most((c.rd + c.wr + (cpu ? spill_bytes(p, tile, coal) : 0)) / bw,
                     most(c.fl / (m->rate * filled), l2 / (m->l2_bandwidth * filled)));
  if (nvf_elements(k, all) == 0) busy = 0;
  c.time = m->launch + busy + 4 * redo / m->l2_bandwidth + operations_again(p, c.grid) / m->rate;
  return c;
}

/* The operations of a routine for each element of its operand: one that orders rows compares it with some log2(n)
   others, one that transforms it does about as many operations by vectors, one that fills bins or lists ones touches it
   once, one of matrices multiplies it with a row. One that searches a row compares each element of its result so. */
static int64_t routine_depth(const nvf_fusion *k, const nvf_node *n, const nvf_node *x) {
  int op = k->graph->g->v[n->value].op, of_matrices = nvg_is_of_matrices(op);
  const nvf_node *of = op == NVG_OP_SEARCHED ? x : n;
  int64_t row = of->size ? nvf_value(k->graph->space, of->dim[of->rank - 1]) : 1, depth = 1;
  if (op == NVG_OP_SUBSTITUTED) return row;
  if (op == NVG_OP_BINS || op == NVG_OP_POSITIONS) return 1;
  if (of_matrices) return x->size ? nvf_value(k->graph->space, x->dim[x->rank - 1]) : 1;
  while (row >> depth) depth++;
  return depth;
}

static int is_vectorised(int op) { return op == NVG_OP_DFT || nvg_is_of_matrices(op); }

/* The price of a sort on a GPU: a pass over the elements for each of their bytes. Rows that a block holds take as many
   passes, but not over memory. */
static double time_of_sort(const nvf_fusion *k) {
  const double reached = 0.5; /* part of the bandwidth */
  const nvf_node *x = &k->graph->node[k->graph->node[k->root[0]].in[0]];
  const nvb_caps *m = k->graph->caps;
  return (m->launch + (double)(k->bytes_read + k->bytes_written) / (reached * m->bandwidth)) * nvg_size(x->dtype);
}

/* The price of a routine. On a GPU a factorization reaches about a quarter of its rate, and the library passes over
   memory once for short transforms, else two or three times. Others run on the host, so their operands and result cross
   the link. */
static double time_of_routine(const nvf_fusion *k, int op, int64_t depth) {
  const double comparison = 2, butterfly = 0.3, reached = 0.25; /* ns; ns; part of the rate */
  enum { LINK = 20 /* bytes a ns */, EACH = 13 /* doublings of the length in a pass */ };
  const nvb_caps *m = k->graph->caps;
  double bytes = (double)(k->bytes_read + k->bytes_written);
  if (m->kind != NVB_CPU && nvg_is_of_matrices(op)) return m->launch + (double)k->flops / (reached * m->rate);
  if (m->kind != NVB_CPU && nvg_sorts(op)) return time_of_sort(k);
  if (m->kind != NVB_CPU && nvg_searches(op)) return m->launch + bytes * (double)depth / m->l2_bandwidth;
  if (m->kind != NVB_CPU && op == NVG_OP_DFT) return (m->launch + bytes / m->bandwidth) * (double)(1 + depth / EACH);
  return m->launch + (double)k->flops * (is_vectorised(op) ? butterfly : comparison) +
         (m->kind == NVB_CPU ? 0 : bytes / LINK);
}

static void assess_routine(nvf_fusion *k) {
  const nvf_node *n = &k->graph->node[k->root[0]], *x = &k->graph->node[n->in[0]];
  int64_t depth = routine_depth(k, n, x);
  for (int i = 0; i < n->nin; i++)
    k->bytes_read += k->graph->node[n->in[i]].size * nvg_size(k->graph->node[n->in[i]].dtype);
  k->bytes_written = n->size * nvg_size(n->dtype);
  k->flops = (k->graph->g->v[n->value].op == NVG_OP_SEARCHED ? n->size : x->size) * depth;
  k->blocks = 1;
  k->time = time_of_routine(k, k->graph->g->v[n->value].op, depth);
}

void nvf_assess(nvf_fusion *k) {
  if (k->routine) {
    assess_routine(k);
    return;
  }
  if (k->dot || k->attention) {
    (k->dot ? nvf_assess_gemm : nvf_assess_attention)(k);
    return;
  }
  nvb_arena *a = k->graph->arena;
  pricing p = { .k = k,
                .caps = k->graph->caps,
                .depth = NVB_NEWN(a, int, k->expr.n + 1),
                .needed = NVB_NEWN(a, uint64_t, k->expr.n + 1) };
  p.waste = p.caps->kind == NVB_CPU && !k->transforms ? NVB_NEWN(a, float, k->expr.n + 1) : NULL;
  uint64_t cheap = 0, single = 0; /* reductions that every block may repeat; those of them with a single result */
  find_depths(&p);
  p.loop = axes_walked_twice(&p);
  p.lane = nvf_lane_axis(k);
  for (int r = 0; r < p.nred; r++) {
    const nvf_iexpr *v = &k->expr.at[p.red[r]];
    if (v->kind == NVF_IRED &&
        (k->graph->node[v->node].finish || (double)k->axis.at[v->axis].n * nvf_elements(k, v->axes) <= NVF_SMALL))
      cheap |= 1ull << r, single |= (uint64_t)!v->axes << r;
  }
  price best = price_of(&p, 0);
  uint64_t repeated[2] = { cheap, single == cheap ? 0 : single };
  for (int i = 0; i < 2; i++) {
    price c = repeated[i] ? price_of(&p, repeated[i]) : best;
    best = c.time < best.time ? c : best;
  }
  k->time = best.time;
  k->grid = best.grid;
  k->blocks = best.blocks;
  k->bytes_read = (int64_t)best.rd;
  k->bytes_written = (int64_t)best.wr;
  k->flops = (int64_t)best.fl;
}
