/* The schedule of attention: the tile of queries and of keys, and the layouts of the five kinds of tiles. Rows of
   scores and of results have one layout, so that the maxima of the one scale the other. */
#include "fusion/schedule.h"

/* Keys of a tile, which decide the bits; queries of a CPU's block. */
enum { KEYS = 64, QUERIES = 64 };

static int64_t extent(const nvf_fusion *k, int axis) { return k->axis.at[axis].n; }
static int64_t multiple(int64_t n, int64_t of) { return (n + of - 1) / of * of; }

/* The axis, of the two, along which what the region loads is contiguous. */
static int contiguous_axis(const nvf_fusion *k, int region, int axis, int other) {
  double along[2] = { 0, 0 };
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (v->kind != NVF_ILOAD || !(k->attention->regions[i] >> region & 1)) continue;
    along[0] += nvf_is_one(k, v->at, axis) ? nvf_elements(k, v->axes) : 0;
    along[1] += nvf_is_one(k, v->at, other) ? nvf_elements(k, v->axes) : 0;
  }
  return along[1] > along[0] ? other : axis;
}

static void place(nvf_tiling *s, int axis, int64_t tile, int tiled, int walk) {
  s->at[axis] = (nvf_placement){ .tile = tile, .tiled = tiled, .walk = walk };
}

/* The layouts of a region of a kernel: of its outer and its inner axis; put_inner: the fastest axis of its shared
   tile. */
static nvf_tiling *region_of(const nvf_fusion *k, const nvf_tiling *s, int outer, const nvf_digits *o, int inner,
                             const nvf_digits *i, int put_inner) {
  nvf_tiling *h = nvf_operand_tiling(k, s, outer, o, inner, i, put_inner);
  h->width = s->width;
  h->operand = s->operand;
  h->mma = s->mma;
  return h;
}

static nvf_tiling *tiling_new(nvf_fusion *k, int64_t rows, int64_t depth, int64_t columns) {
  const nvf_attention *t = k->attention;
  nvf_tiling *s = NVB_NEW(k->graph->arena, nvf_tiling);
  s->at = NVB_NEWN(k->graph->arena, nvf_placement, k->axis.n + 1);
  s->lane = t->n;
  s->transposed = s->tma_store = -1;
  s->split_k = 1;
  place(s, t->m, rows, 1, 0);
  place(s, t->k, KEYS, 0, 1);
  place(s, t->depth, depth, 0, 0);
  place(s, t->n, columns, 0, 0);
  return s;
}

/* ---- a CPU: accumulators of a few rows by a few vectors are registers */
static nvf_digits vector_digits(int64_t tile, int64_t lanes, int64_t vectors) {
  nvf_digits d = { 0 };
  while (tile % (lanes * vectors)) vectors /= 2;
  nvf_digit_add(&d, 'l', lanes, 0);
  nvf_digit_add(&d, 'i', vectors, 0);
  nvf_digit_add(&d, 'I', tile / (lanes * vectors), 0);
  return d;
}

/* An operand: vectors run along memory. side: its axis that stays, axis: that which is contracted, left: it is the left
   operand of its product. */
static void operand_cpu(const nvf_fusion *k, nvf_tiling *s, int region, int side, int axis, int left) {
  enum { VECTORS = 4 };
  int inner = contiguous_axis(k, region, axis, side), outer = inner == axis ? side : axis;
  nvf_digits d = { 0 }, v = vector_digits(s->at[inner].tile, k->graph->caps->width, VECTORS);
  nvf_digit_add(&d, 'I', s->at[outer].tile, 0);
  s->prologue[region] = region_of(k, s, outer, &d, inner, &v, left && inner == axis ? axis : side);
}

/* Whatever the width of vectors, 16 keys are lanes of the reduction order, so that it changes no bit. */
static nvf_tiling *tiling_cpu(nvf_fusion *k) {
  enum { BESIDE = 16 };
  const nvf_attention *t = k->attention;
  int64_t lanes = k->graph->caps->width, vectors = lanes < BESIDE ? BESIDE / lanes : 4, each = lanes < 8 ? 2 : 4;
  nvf_tiling *s = tiling_new(k, least(QUERIES, multiple(extent(k, t->m), each)), multiple(extent(k, t->depth), lanes),
                             multiple(extent(k, t->n), lanes));
  nvf_digits rows = { 0 }, keys = vector_digits(KEYS, lanes, vectors),
             columns = vector_digits(s->at[t->n].tile, lanes, vectors);
  nvf_digit_add(&rows, 'i', each, 0);
  nvf_digit_add(&rows, 'I', s->at[t->m].tile / each, 0);
  s->at[t->k].beside = BESIDE;
  s->width = (int)lanes;
  s->operand = NVM_F32;
  operand_cpu(k, s, NVF_QUERIES, t->m, t->depth, 1);
  operand_cpu(k, s, NVF_KEYS, t->k, t->depth, 0);
  operand_cpu(k, s, NVF_VALUES, t->n, t->k, 0);
  s->prologue[NVF_ATTENDED] = region_of(k, s, t->m, &rows, t->k, &keys, t->k);
  nvf_set_placement(s, t->m, &rows);
  nvf_set_placement(s, t->n, &columns);
  return s;
}

/* ---- a GPU: each warp has 16 or 32 rows of scores and of results in the layout of an MMA */
enum { WARPS = 4, ROW = 16, BYTES = 16, WIDE = 128, HALF = 64, STAGES = 2 };

/* Elements of a row in shared memory: a power of two up to 128 bytes, or a multiple of 128. */
static int64_t padded(int64_t n) { return n <= 64 ? power2(n < ROW ? ROW : n) : multiple(n, 64); }
static int64_t wide_of(const nvf_fusion *k) {
  return most(padded(extent(k, k->attention->depth)), padded(extent(k, k->attention->n)));
}

/* Bytes of shared memory of a block: queries, tiles of keys and of values that wait, and exponentials, of 16 bits. */
static int64_t shared_bytes(int64_t queries, int64_t depth, int64_t columns) {
  return 2 * (queries * (depth + KEYS) + STAGES * KEYS * (depth + columns));
}

int64_t nvf_attention_head(const nvb_caps *c, int64_t most) {
  while (c->kind != NVB_CPU && shared_bytes(WARPS * ROW, most, most) > c->onchip) most -= HALF;
  return most;
}

/* Whether scores have masks, biases or other functions of positions, which take registers. */
static int has_masks(const nvf_fusion *k) {
  int found = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    found |= (k->attention->regions[i] >> NVF_ATTENDED & 1) && v->axes &&
             (v->kind == NVF_ILOAD || v->kind == NVF_IINDEX || v->kind == NVF_ITEST);
  }
  return found;
}

/* Of 32 rows a warp reads keys and values half as often (64 x 4096 x 4096 x 128 of bf16 on an H200: 1,902 us, of 16
   rows 2,284), but there are half as many blocks, and a thread needs twice the registers. */
static int64_t queries_gpu(const nvf_fusion *k) {
  int64_t two = 2 * WARPS * ROW, blocks = (extent(k, k->attention->m) + two - 1) / two;
  for (int a = 0; a < k->axis.n; a++) blocks *= k->grid >> a & 1 && a != k->attention->m ? extent(k, a) : 1;
  int64_t bytes = shared_bytes(two, padded(extent(k, k->attention->depth)), padded(extent(k, k->attention->n)));
  int fits = wide_of(k) <= (has_masks(k) ? WIDE / 2 : WIDE) && bytes <= k->graph->caps->onchip;
  return fits && blocks >= k->graph->caps->cores ? two : two / 2;
}

static void operand_gpu(const nvf_fusion *k, nvf_tiling *s, int region, int side, int axis) {
  int inner = contiguous_axis(k, region, axis, side), outer = inner == axis ? side : axis;
  int64_t wide = s->at[inner].tile, high = s->at[outer].tile, each = BYTES / nvg_size(s->operand);
  int64_t beside = wide / each, lanes = beside & -beside;
  nvf_digits row = { 0 }, col = { 0 };
  lanes = least(lanes, 32);
  int64_t down = least(32 / lanes, high), deep = least(high / down, WARPS);
  nvf_digit_add(&col, 'i', each, 0);
  nvf_digit_add(&col, 'l', lanes, 1);
  nvf_digit_add(&col, 'i', beside / lanes, 0);
  nvf_digit_add(&row, 'l', down, (int)lanes);
  nvf_digit_add(&row, 'w', deep, 1);
  nvf_digit_add(&row, 'i', high / down / deep, 0);
  s->prologue[region] = region_of(k, s, outer, &row, inner, &col, inner);
}

static nvf_digits columns_of_mma(int64_t n) {
  nvf_digits d = { 0 };
  nvf_digit_add(&d, 'i', 2, 0);
  nvf_digit_add(&d, 'l', 4, 1);
  nvf_digit_add(&d, 'i', n / 8, 0);
  return d;
}

static nvf_tiling *tiling_gpu(nvf_fusion *k) {
  enum { BESIDE = 8 /* neighbours of a thread, and its four threads */ };
  const nvf_attention *t = k->attention;
  int64_t queries = nvf_attention_queries(k);
  nvf_tiling *s = tiling_new(k, queries, padded(extent(k, t->depth)), padded(extent(k, t->n)));
  nvf_digits rows = { 0 }, keys = columns_of_mma(KEYS), columns = columns_of_mma(s->at[t->n].tile);
  nvf_digit_add(&rows, 'l', 8, 4);
  nvf_digit_add(&rows, 'i', 2, 0);
  nvf_digit_add(&rows, 'w', WARPS, 1);
  nvf_digit_add(&rows, 'i', queries / (WARPS * ROW), 0);
  s->at[t->k].beside = BESIDE;
  s->operand = k->graph->node[k->expr.at[t->of[NVF_QUERIES]].node].dtype;
  s->mma = 1;
  s->stages = STAGES;
  s->blocks = queries * wide_of(k) <= HALF * WIDE ? 2 : 1;
  operand_gpu(k, s, NVF_QUERIES, t->m, t->depth);
  operand_gpu(k, s, NVF_KEYS, t->k, t->depth);
  operand_gpu(k, s, NVF_VALUES, t->n, t->k);
  s->prologue[NVF_ATTENDED] = region_of(k, s, t->m, &rows, t->k, &keys, t->k);
  nvf_set_placement(s, t->m, &rows);
  nvf_set_placement(s, t->n, &columns);
  return s;
}

int64_t nvf_attention_queries(const nvf_fusion *k) {
  return k->graph->caps->kind == NVB_CPU ? QUERIES : queries_gpu(k);
}

nvf_tiling *nvf_tiling_attention(nvf_fusion *k) {
  return k->graph->caps->kind == NVB_CPU ? tiling_cpu(k) : tiling_gpu(k);
}
