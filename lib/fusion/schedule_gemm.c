/* The schedule of a kernel with a GEMM: the tile of the result, the tiles of both operands, and their layouts. Loads of
   operands are contiguous along memory; the put into shared memory brings them into the order that the contraction
   reads. Tensor cores have their own tiles (schedule_tensor_core.c). */
#include "fusion/schedule.h"

static int64_t axis_length(const nvf_fusion *k, int axis) { return axis < 0 ? 1 : k->axis.at[axis].n; }

int64_t nvf_gemm_tiles(const nvf_fusion *k, const nvf_gemm_tiling *t) {
  int64_t m = axis_length(k, k->dot->m), n = axis_length(k, k->dot->n),
          tiles = ((m + t->m - 1) / t->m) * ((n + t->n - 1) / t->n);
  for (int a = 0; a < k->axis.n; a++)
    if (a != k->dot->m && a != k->dot->n && a != k->dot->k && (k->expr.at[*k->dot->expr].axes >> a & 1))
      tiles *= k->axis.at[a].n;
  return tiles;
}

static nvm_dtype sum_of(const nvf_fusion *k) { return k->graph->node[k->expr.at[*k->dot->expr].node].dtype; }

/* the least power of two that is not less than n, in [least, most] */
static int64_t class_of(int64_t n, int64_t least, int64_t most) {
  int64_t p = least;
  while (p < n && p < most) p *= 2;
  return p;
}

/* Whether most of the elements that a region loads are contiguous along the axis. */
static int is_contiguous_along(const nvf_fusion *k, int region, int axis) {
  double yes = 0, all = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (v->kind != NVF_ILOAD || !(k->dot->regions[i] >> region & 1)) continue;
    double n = nvf_elements(k, v->axes);
    all += n;
    yes += axis >= 0 && nvf_is_one(k, v->at, axis) ? n : 0;
  }
  return 2 * yes > all;
}

/* ---- digits */
void nvf_set_placement(nvf_tiling *s, int axis, const nvf_digits *d) {
  if (axis < 0) return;
  s->at[axis].digits = s->at[axis].transposed = *d;
  s->order[s->norder++] = axis;
  for (int i = 0; i < d->n; i++) s->loops |= d->d[i].level == 'I' ? 1ull << axis : 0;
}

/* The shape of an operand's prologue; see schedule.h. */
nvf_tiling *nvf_operand_tiling(const nvf_fusion *k, const nvf_tiling *s, int outer, const nvf_digits *o, int inner,
                               const nvf_digits *i, int put_inner) {
  nvf_tiling *h = NVB_NEW(k->graph->arena, nvf_tiling);
  h->at = nvb_dup(k->graph->arena, s->at, sizeof *h->at * (size_t)(k->axis.n + 1));
  h->split_k = s->split_k;
  h->lane = inner;
  h->transposed = h->tma_store = -1;
  nvf_set_placement(h, outer, o);
  nvf_set_placement(h, inner, i);
  h->put[0] = put_inner == inner ? outer : inner;
  h->put[1] = put_inner;
  return h;
}

static nvf_tiling *shape_new(nvf_fusion *k, nvf_gemm_tiling t) {
  nvf_tiling *s = NVB_NEW(k->graph->arena, nvf_tiling);
  s->operand = nvg_real_of(sum_of(k));
  s->at = NVB_NEWN(k->graph->arena, nvf_placement, k->axis.n + 1);
  s->lane = k->dot->n >= 0 ? k->dot->n : k->dot->m;
  s->transposed = s->tma_store = -1;
  s->split_k = t.split_k;
  if (k->dot->m >= 0) /* an axis that a block reduces is a whole axis, not a grid axis */
    s->at[k->dot->m] = (nvf_placement){ .tile = t.m, .tiled = (int)(k->grid >> k->dot->m & 1), .beside = t.m };
  if (k->dot->n >= 0)
    s->at[k->dot->n] = (nvf_placement){ .tile = t.n, .tiled = (int)(k->grid >> k->dot->n & 1), .beside = t.n };
  s->at[k->dot->k] = (nvf_placement){ .tile = t.k, .walk = 1 };
  return s;
}

/* ---- split-K */
int64_t nvf_split_k_most(const nvf_fusion *k) {
  uint64_t others = k->reduced & ~(1ull << k->dot->k);
  return k->graph->caps->kind == NVB_CPU || others || k->check.n ? 1 : k->graph->caps->cluster;
}

double nvf_split_k_time(const nvf_fusion *k, int64_t elements) {
  enum { MEET = 1500, WAY = 50 }; /* ns; bytes per ns of a block */
  return MEET + 2.0 * nvg_size(sum_of(k)) * (double)(k->dot->count * elements) / WAY;
}

/* Adds a digit of up to n of what is left of an axis, lowest digit first; returns its extent. */
static int64_t take_digit(nvf_digits *d, char level, int64_t n, int at, int64_t *left) {
  int64_t got = n < *left ? n : *left;
  nvf_digit_add(d, level, got, at);
  *left /= got;
  return got;
}

/* After split-K has added up the sums, each block of the cluster has a part of the tile: lanes run along the contiguous
   axis of the result, warps and blocks along the other axis. */
void nvf_place_epilogue(const nvf_fusion *k, nvf_tiling *s, const nvf_gemm_tiling *t, int64_t warps) {
  int m = k->dot->m, n = k->dot->n, transposed = n < 0 || (m >= 0 && k->put.n && nvf_is_one(k, k->put.at[0].at, m));
  int axis[2] = { transposed ? m : n, transposed ? n : m };
  int64_t left[2] = { transposed ? t->m : t->n, axis[1] < 0 ? 1 : transposed ? t->n : t->m };
  int64_t each = left[0] * left[1] / (32 * warps * t->split_k), got;
  nvf_digits d[2] = { { 0 }, { 0 } };
  take_digit(&d[0], 'i', each < 1 ? 1 : each > 4 ? 4 : each, 0, &left[0]);
  got = take_digit(&d[0], 'l', 32, 1, &left[0]);
  take_digit(&d[1], 'l', 32 / got, (int)got, &left[1]);
  got = take_digit(&d[1], 'w', warps, 1, &left[1]);
  take_digit(&d[0], 'w', warps / got, (int)got, &left[0]);
  got = take_digit(&d[1], 'c', t->split_k, 1, &left[1]);
  take_digit(&d[0], 'c', t->split_k / got, (int)got, &left[0]);
  for (int i = 0; i < 2; i++) {
    nvf_digit_add(&d[i], 'i', left[i], 0);
    if (axis[i] >= 0) s->at[axis[i]].digits = d[i];
  }
  s->lane = axis[0];
}

/* ---- a CPU: accumulators of up to 4 rows by 4 vectors are registers, and the tile is a loop over these; operands are
   packed */
/* the real and imaginary parts of complex numbers lie in separate vectors */
static int64_t lanes_of(const nvb_caps *c, nvm_dtype sum) {
  int words = nvg_size(nvg_real_of(sum)) / 4;
  return c->width >= words ? c->width / words : 1;
}
static int64_t vectors_of(const nvb_caps *c, nvm_dtype sum, int products) { /* for 32 vector registers, or for 16 */
  int64_t n = c->width >= 16 ? 4 : 2, sums = products * nvg_parts(sum);
  return n > sums ? n / sums : 1;
}

/* rows whose accumulators are registers */
static int64_t rows_of(const nvf_fusion *k) { return class_of(axis_length(k, k->dot->m), 1, 4); }

/* The value of a knob as `least` times a power of two. */
static int64_t knob_class(const nvf_fusion *k, nvf_knob knob, int64_t least, int64_t otherwise) {
  return class_of(nvf_knob_value(k, knob, otherwise), least, 4096);
}

static nvf_gemm_tiling tile_cpu(const nvf_fusion *k) {
  int64_t lanes = lanes_of(k->graph->caps, sum_of(k)), vectors = vectors_of(k->graph->caps, sum_of(k), k->dot->count);
  return (
      nvf_gemm_tiling){ knob_class(k, NVF_KROWS, rows_of(k), class_of(axis_length(k, k->dot->m), 1, 64)),
                        knob_class(k, NVF_KCOLS, lanes, class_of(axis_length(k, k->dot->n), lanes, lanes * vectors)),
                        knob_class(k, NVF_KDEPTH, lanes, class_of(axis_length(k, k->dot->k), lanes, 64)),
                        1,
                        0,
                        0,
                        0 };
}

static nvf_tiling *tiling_cpu(nvf_fusion *k, nvf_gemm_tiling t) {
  nvf_tiling *s = shape_new(k, t);
  int m = k->dot->m, n = k->dot->n, kk = k->dot->k;
  int64_t lanes = lanes_of(k->graph->caps, sum_of(k)), vectors = vectors_of(k->graph->caps, sum_of(k), k->dot->count);
  nvf_digits sum[2] = { { 0 }, { 0 } };
  nvf_digit_add(&sum[0], 'i', rows_of(k), 0);
  nvf_digit_add(&sum[0], 'I', t.m / rows_of(k), 0);
  nvf_digit_add(&sum[1], 'l', lanes, 0);
  vectors = vectors * lanes < t.n ? vectors : t.n / lanes;
  nvf_digit_add(&sum[1], 'i', vectors, 0);
  nvf_digit_add(&sum[1], 'I', t.n / (lanes * vectors), 0);
  nvf_set_placement(s, m, &sum[0]);
  nvf_set_placement(s, n, &sum[1]);
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++) {
    int right = k->dot->right[z], other = nvf_side(k->dot, z);
    int64_t size = right ? t.n : t.m;
    int deep = is_contiguous_along(k, z, kk) || size % lanes; /* else the lanes run along m or n */
    nvf_digits d[2] = { { 0 }, { 0 } };
    nvf_digit_add(&d[0], 'I', deep ? size : t.k, 0);
    nvf_digit_add(&d[1], 'l', lanes, 0);
    int64_t beside = (deep ? t.k : size) / lanes, some = beside < 4 ? beside : 4;
    nvf_digit_add(&d[1], 'i', some, 0);
    nvf_digit_add(&d[1], 'I', beside / some, 0);
    s->prologue[z] =
        nvf_operand_tiling(k, s, deep ? other : kk, &d[0], deep ? kk : other, &d[1], !right && deep ? kk : other);
  }
  return s;
}

/* ---- a GPU: tensor cores (schedule_tensor_core.c), else 128 threads with 8 x 4 accumulators */
static nvf_gemm_tiling tile_gpu(const nvf_fusion *k) {
  enum { SHORTEST = 256, FULL = 4 }; /* SHORTEST: least k of a block; FULL: most blocks for each SM */
  nvf_gemm_tiling t = { 64, 64, 16, 1, 0, 0, 0 };
  if (nvf_tensor_tile(k, &t)) return t;
  int64_t most = nvf_split_k_most(k), tiles = nvf_gemm_tiles(k, &t), depth = axis_length(k, k->dot->k);
  while (2 * t.split_k <= most && 2 * t.split_k * SHORTEST <= depth &&
         2 * t.split_k * tiles <= FULL * k->graph->caps->cores)
    t.split_k *= 2;
  t.split_k = class_of(nvf_knob_value(k, NVF_KSPLIT_K, t.split_k), 1, most);
  return t;
}

static nvf_tiling *tiling_gpu(nvf_fusion *k, nvf_gemm_tiling t) {
  nvf_tiling *s = shape_new(k, t);
  if (nvf_tensor_tile(k, &t)) return nvf_tensor_tiling(k, s);
  int m = k->dot->m, n = k->dot->n, kk = k->dot->k;
  nvf_digits sum[2] = { { 0 }, { 0 } };
  nvf_digit_add(&sum[0], 'i', 4, 0);
  nvf_digit_add(&sum[0], 'l', 4, 8);
  nvf_digit_add(&sum[0], 'w', 4, 0);
  nvf_digit_add(&sum[1], 'i', 4, 0);
  nvf_digit_add(&sum[1], 'l', 8, 1);
  nvf_digit_add(&sum[1], 'i', 2, 0);
  nvf_set_placement(s, m, &sum[0]);
  nvf_set_placement(s, n, &sum[1]);
  if (t.split_k > 1) nvf_place_epilogue(k, s, &t, 4);
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++) {
    int other = nvf_side(k->dot, z), deep = is_contiguous_along(k, z, kk);
    nvf_digits d[2] = { { 0 }, { 0 } };
    nvf_digit_add(&d[0], 'l', deep ? 8 : 2, deep ? 4 : 16); /* 64 x 16, or 16 x 64: four elements in an access */
    nvf_digit_add(&d[0], 'w', 4, 0);
    nvf_digit_add(&d[0], 'i', 2, 0);
    nvf_digit_add(&d[1], 'i', 4, 0);
    nvf_digit_add(&d[1], 'l', deep ? 4 : 16, 1);
    s->prologue[z] = nvf_operand_tiling(k, s, deep ? other : kk, &d[0], deep ? kk : other, &d[1], other);
  }
  return s;
}

int nvf_gemm_spills(const nvf_fusion *k) {
  enum { SUMS = 32, MOST = 128 }; /* accumulators of a thread; their most 4-byte words */
  nvf_gemm_tiling t;
  return k->graph->caps->kind != NVB_CPU && k->dot->count > 1 && !nvf_tensor_tile(k, &t) &&
         k->dot->count * SUMS * nvg_size(sum_of(k)) / 4 > MOST;
}

int64_t nvf_gemm_columns(const nvb_caps *c, nvm_dtype sum) {
  return c->kind == NVB_CPU ? lanes_of(c, sum) * vectors_of(c, sum, 1) : 64;
}

int64_t nvf_gemm_rows(const nvb_caps *c, nvm_dtype operands) {
  return c->kind == NVB_CPU ? 0 : c->tensor > 1 && nvg_is_narrow(operands) ? 128 : 64;
}

int nvf_gemm_reduced_axis(const nvf_fusion *k) {
  const int side[2] = { k->dot->m, k->dot->n };
  for (int i = 0; i < 2; i++)
    if (side[i] >= 0 && (k->reduced >> side[i] & 1)) return side[i];
  return -1;
}

nvf_gemm_tiling nvf_gemm_tile(const nvf_fusion *k) {
  nvf_gemm_tiling t = k->graph->caps->kind == NVB_CPU ? tile_cpu(k) : tile_gpu(k);
  int reduced = nvf_gemm_reduced_axis(k);
  if (reduced >= 0) *(reduced == k->dot->n ? &t.n : &t.m) = axis_length(k, reduced);
  return t;
}

nvf_tiling *nvf_tiling_gemm(nvf_fusion *k) {
  nvf_gemm_tiling t = nvf_gemm_tile(k);
  return k->graph->caps->kind == NVB_CPU ? tiling_cpu(k, t) : tiling_gpu(k, t);
}
