/* The schedule of GEMMs on the tensor cores of a GPU: it chooses the tile of the result and its number of warps from a
   table and a model of how evenly the tiles fill the SMs, and the form (MMA by warps, or WGMMA by warpgroups fed by
   TMA) that the operands allow. Several GEMMs of one kernel divide a tile of the table among them. */
#include "fusion/schedule.h"

enum {
  WARPS = 1,
  GROUPS = 2,
  ROW = 128 /* bytes of a row in shared memory */,
  FEW = 32,
  SUMS = 128 /* 4-byte accumulators of a thread */,
  RASTER = 16 /* rows of tiles that are rastered together */,
  TALL = 128,
  LEAST = 32 /* bytes of a row */
};

/* The tiles to choose from. form: warps or warpgroups; m, n: elements of the result; depth: bytes along k; wm, wn:
   warps along m and n; blocks: CTAs of an SM. transposed: the MMA computes the transposed tile, so its rows are columns
   of the result. reach: fraction of the generated rate that a full device has with these tiles. bytes: if not 0, the
   tile is for operands from registers (int8 beside 16 bits, or tf32), and the number is the limit of split-K (4096 x
   4096 of int8 took 19 us in tiles of 64 x 128 by four blocks, 13 in those of 64 x 64 by two). */
static const struct config {
  int form, m, n, depth, wm, wn, stages, blocks, transposed;
  double reach;
  int bytes;
} configs[] = {
  { GROUPS, 128, 256, ROW, 8, 1, 3, 1, 0, 1.00, 0 },    { GROUPS, 128, 192, ROW, 8, 1, 4, 1, 0, 0.96, 0 },
  { GROUPS, 128, 128, ROW, 8, 1, 5, 1, 0, 0.90, 0 },    { GROUPS, 128, 64, ROW, 8, 1, 7, 1, 0, 0.62, 0 },
  { GROUPS, 64, 64, ROW, 4, 1, 8, 1, 0, 0.40, 0 },      { GROUPS, 64, 64, ROW, 1, 4, 8, 1, 1, 0.39, 0 },
  { GROUPS, 32, 64, ROW, 1, 4, 10, 1, 1, 0.22, 0 },     { GROUPS, 16, 64, ROW, 1, 4, 12, 1, 1, 0.12, 0 },
  { GROUPS, 256, 128, ROW, 1, 8, 4, 1, 1, 0.97, 16 },   { GROUPS, 128, 128, ROW, 1, 8, 5, 1, 1, 0.88, 16 },
  { GROUPS, 64, 128, 2 * ROW, 1, 8, 4, 1, 1, 0.56, 2 }, { GROUPS, 64, 64, 4 * ROW, 1, 4, 4, 1, 1, 0.42, 16 },
  { GROUPS, 32, 128, 4 * ROW, 1, 8, 3, 1, 1, 0.31, 2 }, { GROUPS, 32, 64, 4 * ROW, 1, 4, 5, 1, 1, 0.24, 16 },
  { GROUPS, 16, 64, 4 * ROW, 1, 4, 5, 1, 1, 0.16, 16 }, { WARPS, 128, 128, ROW, 2, 2, 3, 2, 0, 0.50, 0 },
  { WARPS, 64, 64, ROW, 2, 2, 4, 2, 0, 0.32, 0 },       { WARPS, 32, 64, ROW, 2, 2, 4, 4, 0, 0.20, 0 },
  { WARPS, 16, 64, ROW, 1, 4, 4, 4, 0, 0.11, 0 },       { WARPS, 128, 128, ROW / 2, 2, 4, 3, 1, 0, 0.22, 0 },
  { WARPS, 64, 64, ROW / 2, 2, 2, 3, 2, 0, 0.15, 0 },   { WARPS, 16, 64, ROW / 2, 1, 4, 3, 4, 0, 0.08, 0 },
};
enum { CONFIGS = sizeof configs / sizeof *configs };
/* The tiles of f64, which only warps multiply. As on devices without warpgroups, the reach is relative to the best tile
   of warps (estimated from the traffic of shared memory and L2, not measured). */
static const struct config doubles[] = {
  { WARPS, 128, 128, ROW, 2, 4, 4, 1, 0, 0.50, 0 }, { WARPS, 128, 64, ROW, 4, 2, 4, 1, 0, 0.49, 0 },
  { WARPS, 64, 64, ROW, 2, 2, 4, 2, 0, 0.44, 0 },   { WARPS, 32, 64, ROW, 2, 2, 4, 4, 0, 0.32, 0 },
  { WARPS, 16, 64, ROW, 1, 4, 4, 4, 0, 0.18, 0 },
};
enum { DOUBLES = sizeof doubles / sizeof *doubles };
typedef struct table { const struct config *first, *end; } table;
static table table_for(nvm_dtype factor) {
  return factor == NVM_F64 ? (table){ doubles, doubles + DOUBLES } : (table){ configs, configs + CONFIGS };
}

static const nvf_iexpr *operand_of(const nvf_fusion *k, int region) { return &k->expr.at[k->dot->of[region]]; }
static nvm_dtype loaded_as(const nvf_fusion *k, int region) {
  return k->graph->node[operand_of(k, region)->node].dtype;
}

static nvm_dtype sum_of(const nvf_fusion *k) { return k->graph->node[k->expr.at[*k->dot->expr].node].dtype; }
/* Whether the GEMM multiplies int8 by int8 with int32 sums. */
static int has_int_sums(const nvf_fusion *k) { return sum_of(k) == NVM_I32; }
/* Whether the operand is int8 and the other one has 16 bits. */
static int is_bytes(const nvf_fusion *k, int region) { return !has_int_sums(k) && loaded_as(k, region) == NVM_I8; }

/* The axis along which an operand is contiguous, and the elements of one vector access along it. Only loads that have
   both axes of the operand count. */
static int inner_axis(const nvf_fusion *k, int region, int64_t *vector) {
  const int axis[2] = { k->dot->k, nvf_side(k->dot, region) };
  uint64_t both = 1ull << axis[0] | (axis[1] < 0 ? 0 : 1ull << axis[1]);
  int best = 0;
  *vector = 0;
  for (int i = 0; i < 2 && axis[i] >= 0; i++)
    for (int j = 0; j < k->expr.n; j++) {
      const nvf_iexpr *v = &k->expr.at[j];
      if (v->kind != NVF_ILOAD || !(k->dot->regions[j] >> region & 1) || (v->axes & both) != both) continue;
      int64_t n = nvf_vector_of(k, v->at, v->node, axis[i], 16 / nvg_size(k->graph->node[v->node].dtype));
      if (n > *vector) *vector = n, best = i;
    }
  *vector = *vector > 0 ? *vector : 1;
  return axis[best];
}

int nvf_tensor_is_mn_major(const nvf_fusion *k, int region) {
  int64_t vector;
  return inner_axis(k, region, &vector) != k->dot->k;
}

/* The dtype that tensor cores multiply. 8-bit floats keep theirs if all operands are K-major, since no instruction
   takes MN-major bytes; else they become f16, which holds all their values. An int8 operand becomes the dtype of the
   other operand. */
nvm_dtype nvf_tensor_operand(const nvf_fusion *k) {
  nvm_dtype t = loaded_as(k, is_bytes(k, NVF_EPILOGUE + 1) ? NVF_EPILOGUE + 2 : NVF_EPILOGUE + 1);
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion && k->dot->f8; z++)
    if (nvf_tensor_is_mn_major(k, z)) return NVM_F16;
  return t;
}
static int size_of(const nvf_fusion *k) { return nvg_size(nvf_tensor_operand(k)); }
/* bytes of an element in shared memory */
static int size_in(const nvf_fusion *k, int region) { return is_bytes(k, region) ? 1 : size_of(k); }

static int may_multiply(nvm_dtype a, int64_t precision) {
  return nvg_is_narrow(a) || a == NVM_I8 || a == NVM_F64 || (a == NVM_F32 && precision == NVM_PRECISION_TF32);
}

/* Whether tensor cores can multiply the operands of the GEMM. */
static int can_multiply(const nvf_fusion *k) {
  const nvf_node *n = &k->graph->node[k->expr.at[*k->dot->expr].node];
  nvm_dtype a = nvf_tensor_operand(k);
  if (!k->graph->caps->tensor || k->dot->m < 0 || k->dot->n < 0 || n->parts > 1 ||
      (n->dtype != NVM_F32 && n->dtype != NVM_F64 && !has_int_sums(k)))
    return 0;
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion && has_int_sums(k); z++)
    if (nvf_tensor_is_mn_major(k, z)) return 0;
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion && !k->dot->f8; z++)
    if (loaded_as(k, z) != a && !is_bytes(k, z)) return 0;
  return may_multiply(a, n->attr[1]);
}

/* Whether TMA can load all operands: without a prologue, in rows of 16 bytes, with edges that the kernel text names
   (where a block reduces an axis, the padding of the split is the edge). */
static int can_use_tma(const nvf_fusion *k) {
  int size = size_of(k), reduced = nvf_gemm_reduced_axis(k), mn_major = 0;
  const int side[3] = { k->dot->m, k->dot->n, k->dot->k };
  for (int i = 0; i < 3; i++)
    if (nvf_is_exact(k, side[i]) && side[i] != reduced) return 0;
  if (k->graph->caps->tensor < GROUPS || size > 4 || k->valid.n > (reduced >= 0) || k->check.n) return 0;
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++) {
    const nvf_iexpr *v = operand_of(k, z);
    int64_t vector;
    int along = inner_axis(k, z, &vector), batches = 0, each = size_in(k, z);
    if (v->kind != NVF_ILOAD || v->guard || nvf_ix_floors(k->graph->space, v->at) || vector * each != 16 ||
        nvg_size(loaded_as(k, z)) != each)
      return 0;
    mn_major |= size == 4 && along != k->dot->k ? 1 << k->dot->right[z] : 0;
    if (mn_major == 3) /* both operands are MN-major, but registers can hold only one */
      return 0;
    for (int a = 0; a < k->axis.n; a++)
      batches += a != k->dot->m && a != k->dot->n && a != k->dot->k && a != reduced - 1 && (v->axes >> a & 1);
    if (batches > NVF_TMA_RANK - 2) return 0;
  }
  return 1;
}

/* Whether WGMMA takes the operand from registers (RS): int8, which is upcast there, and 32-bit operands that are
   MN-major. */
static int is_from_registers(const nvf_fusion *k, int region) {
  return is_bytes(k, region) || (size_of(k) == 4 && nvf_tensor_is_mn_major(k, region));
}

static int has_operand(const nvf_fusion *k, int (*is)(const nvf_fusion *k, int zone)) {
  int any = 0;
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++) any |= is(k, z);
  return any;
}

/* Whether a config suits the operands: an operand from registers has to be on the side that the warps of a group
   divide. */
static int suits_operands(const nvf_fusion *k, const struct config *c) {
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion && c->form == GROUPS && has_operand(k, is_from_registers); z++)
    if (is_from_registers(k, z) != (k->dot->right[z] == c->transposed)) return 0;
  return !c->bytes || has_operand(k, is_bytes) || (c->depth == ROW && has_operand(k, is_from_registers));
}

/* Whether the two rows of each sixteen that a lane holds are neighbours, since MN-major bytes are loaded in pairs. */
static int is_adjacent(const nvf_fusion *k, const struct config *c) {
  int64_t vector;
  int adjacent = 0;
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++)
    if (is_bytes(k, z) && inner_axis(k, z, &vector) == k->dot->k) return 0;
    else adjacent |= is_bytes(k, z);
  return adjacent && c->form == GROUPS;
}

static int reads_a_matrix(const nvf_fusion *k) { /* the epilogue reads a value that has both m and n */
  uint64_t both = 1ull << k->dot->m | 1ull << k->dot->n;
  int yes = 0;
  for (int i = 0; i < k->expr.n; i++)
    yes |=
        k->expr.at[i].kind == NVF_ILOAD && k->dot->regions[i] >> NVF_EPILOGUE & 1 && (both & ~k->expr.at[i].axes) == 0;
  return yes;
}

/* Whether the epilogue of an f64 GEMM needs as many registers as the accumulators: it reads a matrix or computes an
   expensive function. */
static int is_wide(const nvf_fusion *k) {
  enum { LITTLE = 4 }; /* operations */
  int expensive = 0;
  for (int i = 0; i < k->expr.n; i++)
    expensive |= k->expr.at[i].kind == NVF_IMAP && k->dot->regions[i] >> NVF_EPILOGUE & 1 &&
                 k->graph->node[k->expr.at[i].node].frag->cost > LITTLE;
  return sum_of(k) == NVM_F64 && (expensive || reads_a_matrix(k));
}

/* Accumulators may take one of so many parts of a thread's registers. */
static int parts_of(const nvf_fusion *k, int crowded) { return (crowded ? 2 : 1) * (is_wide(k) ? 2 : 1); }

/* Whether warps upcast 8-bit floats to f16, which takes twice the instructions, and registers. */
static int is_upcast(const nvf_fusion *k, const struct config *c) {
  return c->form == WARPS && k->graph->caps->f8 == 1 && nvg_is_f8(nvf_tensor_operand(k));
}

/* A config divided among the GEMMs of the kernel. If their common operand supplies the rows that a warp multiplies,
   each GEMM gets a part of the columns, so that registers and shared memory are those of one GEMM; else there are more
   accumulators and fewer stages. stages 0: the config does not fit. persistent: CTAs of an SM. */
typedef struct tiling { const struct config *c; int64_t m, n, split_k; int stream_k, stages, persistent; } tiling;

static int64_t rows_of(const nvf_fusion *k, const tiling *t, int region) { return k->dot->right[region] ? t->n : t->m; }

static int64_t stage_bytes(const nvf_fusion *k, const tiling *t) {
  int64_t bytes = 0;
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++)
    bytes += rows_of(k, t, z) * t->c->depth / size_of(k) * size_in(k, z);
  return bytes;
}

static tiling tiling_of(const nvf_fusion *k, const struct config *c, int64_t split_k, int stream_k, int ctas) {
  enum { APART = 8 << 10 }; /* bytes of shared memory for a reduction in a tile of f64 */
  /* FEWEST: stages; SMALL: accumulators of a tile that 16 blocks exchange (those of 128 x 128 took 9 us longer than the
     transfer) */
  enum { FEWEST = 3, SMALL = 4096 };
  const nvf_dot *dot = k->dot;
  tiling t = { c, c->m, c->n, split_k, stream_k, c->stages, ctas > c->blocks ? ctas : c->blocks };
  int64_t *wide = c->transposed ? &t.m : &t.n, least = 16 * (c->transposed ? c->wm : c->wn), bytes = 0;
  int several = 0; /* number of operands that supply the warps' rows */
  for (int z = NVF_EPILOGUE + 1; z < dot->nregion; z++) several += dot->right[z] == c->transposed;
  if (several == 1 && *wide % (dot->count * least) == 0) *wide /= dot->count;
  bytes = stage_bytes(k, &t);
  int64_t size = nvg_size(sum_of(k)), sums = split_k > 1 ? dot->count * t.m * t.n * size * 9 / 8 : 0;
  int64_t all = k->graph->caps->onchip / t.persistent - (size == 8 && nvf_gemm_reduced_axis(k) >= 0 ? APART : 0);
  int64_t words = dot->count * t.m * t.n * size / 4;
  while (t.stages && bytes * t.stages > (int64_t)(c->m + c->n) * c->depth * c->stages) t.stages--;
  while (t.stages && bytes * t.stages + sums > all) t.stages--;
  if (words > SUMS * 32 * c->wm * c->wn / parts_of(k, t.persistent > c->blocks || is_upcast(k, c)) ||
      t.stages < (split_k > 1 || ctas > 1 ? FEWEST
                  : c->stages > 1         ? 2
                                          : 1) ||
      (split_k > 8 && dot->count * t.m * t.n > SMALL) || (c->bytes && split_k > c->bytes))
    t.stages = 0;
  return t;
}

/* Blocks that the device runs at once. A cluster lies in a group of SMs whose size it need not divide: an H200 runs 132
   single blocks or blocks of pairs, 120 in clusters of 4 and of 8, 112 in those of 16. */
static int64_t ctas_of_device(const nvf_fusion *k, const tiling *t) {
  int64_t units = (int64_t)k->graph->caps->cores * t->persistent;
  return t->split_k > 8 ? units * 28 / 33 : t->split_k > 2 ? units * 10 / 11 : units;
}

static int64_t blocks_of(const nvf_fusion *k, const tiling *t) {
  return nvf_gemm_tiles(k, &(nvf_gemm_tiling){ .m = t->m, .n = t->n }) * t->split_k;
}

/* Whether split-K of a config of warps is useless: there are more blocks than SMs. */
static int is_crowd(const nvf_fusion *k, const tiling *t) {
  return t->split_k > 1 && t->c->form == WARPS && blocks_of(k, t) > k->graph->caps->cores;
}

/* The reach of the tile that the generated rate was measured with. */
static double best_reach(const nvf_fusion *k) {
  return k->graph->caps->tensor == GROUPS && sum_of(k) != NVM_F64 ? 1 : 0.5;
}

/* The fraction of the generated rate that a tiling reaches. The operand bytes that an SM loads limit a small tile;
   GEMMs with a common operand load it once. */
static double reach_of(const nvf_fusion *k, const tiling *t) {
  const struct config *c = t->c;
  double sums = (double)(k->dot->count * t->m * t->n) / (double)(c->m * c->n);
  double rows = 0;
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++) rows += (double)rows_of(k, t, z) / (double)(c->m + c->n);
  double transposed =
      size_of(k) == 4 && c->form == GROUPS && !c->transposed && has_operand(k, is_from_registers) ? 0.98 : 1;
  return c->reach / best_reach(k) * sums / rows * transposed * (is_upcast(k, c) ? 0.5 : 1);
}

/* The tiles of the last, partial wave (*tiles), and the number of stream-K shares into which their k-tiles are divided
   (codegen/cuda/stream_k.c); 0: no stream-K. There is none for more than MOST_SHARES shares of a tile, several GEMMs,
   or 8-bit operands. */
static int64_t stream_k_ktiles(const nvf_fusion *k, const tiling *t, int64_t *tiles) {
  enum { MOST_SHARES = 16 };
  int64_t resident = ctas_of_device(k, t), deep = t->c->depth / size_of(k), all = k->axis.at[k->dot->k].n;
  *tiles = blocks_of(k, t) % resident;
  if (!t->stream_k || k->dot->count > 1 || size_of(k) == 1 || is_bytes(k, NVF_EPILOGUE + 1) ||
      is_bytes(k, NVF_EPILOGUE + 2))
    return 0;
  int64_t most = (*tiles * ((all + deep - 1) / deep) + t->stream_k - 1) / t->stream_k,
          n = most < resident ? most : resident;
  return n > *tiles && n <= MOST_SHARES * *tiles ? n : 0;
}

/* ns to join the stream-K shares of a tile: each stores its sums, and one of them adds them up one after the other; if
   shares do not end with their tiles, some are late (128 x 256 of bf16: 8 shares instead of 11 took 4 us less, 4
   instead of 5 or fewer 2). */
static double join_time_of(const nvf_fusion *k, const tiling *t) {
  enum { POST = 4000, GIVE = 32, AWAIT = 100, TAKE = 64, LATE = 3000 }; /* GIVE, TAKE: bytes per ns */
  int64_t rest, shares = stream_k_ktiles(k, t, &rest);
  double bytes = (double)(k->dot->count * t->m * t->n * 4);
  if (!shares) return 0;
  double all = (double)((shares + rest - 1) / rest) * (AWAIT + bytes / TAKE) + LATE * (shares % rest > 0);
  return POST + bytes / GIVE + all;
}

/* ns of a tiling: the waves of blocks on an SM or the time of memory for the operands, whichever is longer, plus the
   joins of split-K or stream-K. */
static double time_of(const nvf_fusion *k, const tiling *t) {
  /* per cent that split-K and stream-K must gain; per cent that shares lose because they do not share operand loads */
  enum { GAIN = 10, MORE = 4, APART = 10 };
  const nvb_caps *caps = k->graph->caps;
  nvm_dtype factor = nvf_tensor_operand(k);
  nvb_gemm_class class = factor == NVM_I8        ? NVB_GEMM_I8
                         : nvg_is_f8(factor)     ? NVB_GEMM_F8
                         : nvg_is_narrow(factor) ? NVB_GEMM_F16
                         : factor == NVM_F64     ? NVB_GEMM_F64
                                                 : NVB_GEMM_TF32;
  int64_t deep = t->c->depth / size_of(k), all = k->axis.at[k->dot->k].n, sums = k->dot->count * t->m * t->n;
  int64_t each = (all + deep * t->split_k - 1) / (deep * t->split_k) * deep, resident = ctas_of_device(k, t);
  int64_t blocks = blocks_of(k, t), rest, shares = stream_k_ktiles(k, t, &rest);
  double last = shares ? (double)(rest * (100 + APART)) / (double)(shares * 100) : rest > 0;
  double waves = (double)(blocks / resident) + last;
  double bytes = 0, rate = caps->gemm[class].generated * reach_of(k, t) / caps->cores;
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++)
    bytes += nvf_elements(k, operand_of(k, z)->axes) * size_in(k, z);
  double work = waves * t->persistent * 2 * (double)(sums * each) / rate;
  work = (work > bytes / caps->bandwidth ? work : bytes / caps->bandwidth) + work / 16;
  if (shares) return (work + join_time_of(k, t)) * (100 + MORE) / 100;
  return t->split_k > 1 ? (work + waves * nvf_split_k_time(k, t->m * t->n)) * (100 + GAIN) / 100 : work;
}

/* Whether rows in shared memory suit the form: warpgroups need 128 bytes, except of int8 from registers; warps take 32
   bytes or more. Operands not aligned to 4 bytes are copied element by element, of which a thread may have few. */
static int rows_fit(const nvf_fusion *k, const tiling *t) {
  const struct config *c = t->c;
  int size = size_of(k), each = 0;
  int64_t elements = 0;
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++) {
    int64_t vector, side = rows_of(k, t, z);
    int deep = inner_axis(k, z, &vector) == k->dot->k, least = c->form == GROUPS && !is_bytes(k, z) ? ROW : LEAST;
    if (!deep && side * size_in(k, z) % least) return 0;
    each |= vector * size_in(k, z) < 4;
    elements += side * c->depth / size;
  }
  if (each && elements > FEW * 32 * c->wm * c->wn) return 0;
  return t->stages && stage_bytes(k, t) * t->stages * t->persistent <= k->graph->caps->onchip;
}

/* The next value of split_k (blocks of a cluster) or stream_k (least k-tiles of a share). */
static void next_split(const struct config *c, int64_t *split_k, int64_t *stream_k) {
  enum { LEAST_SHARE = 8, MOST_SHARE = 32 };
  if (*split_k > 1 || *stream_k == MOST_SHARE || c->form != GROUPS) *split_k *= 2, *stream_k = 0;
  else *stream_k = *stream_k ? 2 * *stream_k : LEAST_SHARE;
}

/* CTAs of an SM unless the tuner sets them: 2 for results of few rows whose last wave would leave one CTA on most SMs,
   which cannot saturate memory (bf16, 16 x 11008 x 4096: 27.0 us instead of 29.2, 48 x 14336 x 4096: 33 instead of 45;
   with one wave, or two almost full ones, two CTAs cost up to 5 %). */
static int ctas_per_sm(const nvf_fusion *k, const struct config *c, int64_t split_k, int stream_k) {
  tiling one = tiling_of(k, c, split_k, stream_k, 1), two = tiling_of(k, c, split_k, stream_k, 2);
  int64_t rest = blocks_of(k, &one) - ctas_of_device(k, &one);
  int few = c->form == GROUPS && c->transposed && !c->bytes && split_k == 1;
  return few && two.stages && rest > 0 && 4 * rest <= 3 * ctas_of_device(k, &one) ? 2 : 1;
}

/* Chooses the tiling with the least time; c NULL: tensor cores cannot multiply it. Knobs of the tuner take precedence
   where a config has their values. */
static tiling choose_tiling(const nvf_fusion *k) {
  tiling best = { NULL };
  int64_t rows = nvf_knob_value(k, NVF_KROWS, 0), cols = nvf_knob_value(k, NVF_KCOLS, 0),
          split_k = nvf_knob_value(k, NVF_KSPLIT_K, 0), deep = nvf_knob_value(k, NVF_KDEPTH, 0);
  int form = !can_multiply(k) ? 0 : can_use_tma(k) ? GROUPS : WARPS, most_set = 0;
  double least = 0;
  int reduced = nvf_gemm_reduced_axis(k), ctas = (int)nvf_knob_value(k, NVF_KCTAS_PER_SM, 0);
  int64_t stream_k = nvf_knob_value(k, NVF_KSTREAM_K, -1), rest;
  int64_t most = form ? nvf_split_k_most(k) : 0, bytes = form ? k->axis.at[k->dot->k].n * size_of(k) : 0;
  const table all = table_for(sum_of(k));
  for (const struct config *c = all.first; form && c < all.end; c++)
    for (int64_t s = 1, r = 0; c->form <= form && s <= most && (s < 2 || 4 * s * c->depth <= bytes);
         next_split(c, &s, &r)) {
      tiling at = tiling_of(k, c, s, (int)r, ctas ? ctas : ctas_per_sm(k, c, s, (int)r));
      int nset = 8 * ((rows || cols) && (!rows || rows == at.m) && (!cols || cols == at.n)) + 4 * (split_k == s) +
                 2 * (stream_k == r) + (deep * size_of(k) == c->depth);
      int whole = reduced < 0 || (!c->transposed && k->axis.at[reduced].n == (reduced == k->dot->n ? at.n : at.m));
      if (reduced >= 0 && reduced == k->dot->m && c->form == WARPS && at.m > 64)
        continue; /* a warp has no registers for more rows */
      if (r && !stream_k_ktiles(k, &at, &rest)) continue;
      if (nset < most_set || is_crowd(k, &at) || !whole || !suits_operands(k, c) || !rows_fit(k, &at)) continue;
      double t = time_of(k, &at);
      if (best.c && nset == most_set && t >= least) continue;
      best = at;
      most_set = nset;
      least = t;
    }
  return best;
}

int64_t nvf_tensor_columns(const nvb_caps *caps, nvm_dtype operands, int64_t precision) {
  int64_t most = 0;
  const table all = table_for(operands);
  for (const struct config *c = all.first; c < all.end && may_multiply(operands, precision); c++)
    if (c->form <= caps->tensor && !c->transposed && c->n > most) most = c->n;
  return most;
}

double nvf_tensor_reach(const nvf_fusion *k) {
  const tiling t = choose_tiling(k);
  return t.c ? reach_of(k, &t) : 0;
}

/* Whether results are stored through shared memory; else one more stage fits, and hides more of the epilogue. */
static int stores_a_matrix(const nvf_fusion *k) {
  uint64_t both = 1ull << k->dot->m | 1ull << k->dot->n;
  for (int i = 0; i < k->put.n; i++)
    if ((both & ~k->put.at[i].axes) == 0) return 1;
  return 0;
}

static int stages_of(const nvf_fusion *k, const tiling *t) {
  int words = size_of(k) == 4 && has_operand(k, is_from_registers); /* each warp frees a stage one k-tile late */
  int more = t->c->form == GROUPS && t->c->stages > 1 && (words || !stores_a_matrix(k));
  return t->stages + (more && stage_bytes(k, t) * (t->stages + 1) <= k->graph->caps->onchip / t->persistent);
}

/* With few k-tiles: stages of a pipeline that keeps the right operand while a block computes the tiles of a column one
   after the other; 0: each tile loads it. (16384 x 16384 x 128 of bf16: 136 us instead of 172, but with a matrix added
   414 instead of 306.) */
static int stages_kept(const nvf_fusion *k, const tiling *t) {
  enum { RUN = 8 }; /* least tiles of a block */
  int64_t deep = t->c->depth / size_of(k), ktiles = (k->axis.at[k->dot->k].n + deep - 1) / deep;
  int64_t rows = (k->axis.at[k->dot->m].n + t->m - 1) / t->m, fit = k->graph->caps->onchip / stage_bytes(k, t);
  int whole = t->c->form == GROUPS && !t->c->transposed && t->split_k == 1 && !t->stream_k && t->persistent == 1;
  if (!whole || k->dot->count > 1 || reads_a_matrix(k) || ktiles < 1 || ktiles > NVF_SHORT || ktiles > fit ||
      rows < RUN || blocks_of(k, t) < RUN * ctas_of_device(k, t))
    return 0;
  return (int)(fit / ktiles * ktiles);
}

int nvf_tensor_tile(const nvf_fusion *k, nvf_gemm_tiling *t) {
  tiling at = choose_tiling(k);
  if (at.c)
    *t = (nvf_gemm_tiling){
      at.m, at.n, at.c->depth / size_of(k), at.split_k, at.stream_k, stages_kept(k, &at), join_time_of(k, &at)
    };
  return at.c != NULL;
}

/* The shape of an operand's prologue: rows in shared memory run along the contiguous axis. */
static void tile_prologue(const nvf_fusion *k, nvf_tiling *s, int region, const nvf_gemm_tiling *t, int warps) {
  int64_t v, lanes = 32, other = k->dot->right[region] ? t->n : t->m;
  int in = inner_axis(k, region, &v), out = in == k->dot->k ? nvf_side(k->dot, region) : k->dot->k;
  int64_t wide = in == k->dot->k ? t->k : other, high = in == k->dot->k ? other : t->k;
  nvf_digits row = { 0 }, col = { 0 };
  int64_t beside = wide / v < lanes ? wide / v : lanes, down = lanes / beside < high ? lanes / beside : high;
  int64_t deep = high / down < warps ? high / down : warps;
  nvf_digit_add(&col, 'i', v, 0);
  nvf_digit_add(&col, 'l', beside, 1);
  nvf_digit_add(&col, 'i', wide / v / beside, 0);
  nvf_digit_add(&row, 'l', down, (int)beside);
  nvf_digit_add(&row, 'w', deep, 1);
  nvf_digit_add(&row, 'i', high / down / deep, 0);
  s->prologue[region] = nvf_operand_tiling(k, s, out, &row, in, &col, in);
}

nvf_tiling *nvf_tensor_tiling(const nvf_fusion *k, nvf_tiling *s) {
  const tiling at = choose_tiling(k);
  const struct config *c = at.c;
  nvf_gemm_tiling t = { 0 };
  nvf_digits p = { 0 }, q = { 0 };
  nvf_tensor_tile(k, &t);
  int adjacent = is_adjacent(k, c);
  int64_t np = c->transposed ? at.n : at.m, nq = c->transposed ? at.m : at.n, wp = c->transposed ? c->wn : c->wm,
          wq = c->transposed ? c->wm : c->wn;
  if (adjacent) nvf_digit_add(&p, 'i', 2, 0);
  nvf_digit_add(&p, 'l', 8, 4);
  if (!adjacent) nvf_digit_add(&p, 'i', c->form == GROUPS ? 2 : np / 8 / wp, 0);
  nvf_digit_add(&p, 'w', wp, 1);
  nvf_digit_add(&p, 'i', c->form == GROUPS ? np / 16 / wp : 1, 0);
  nvf_digit_add(&q, 'i', 2, 0);
  nvf_digit_add(&q, 'l', 4, 1);
  nvf_digit_add(&q, 'i', nq / 8 / wq, 0);
  nvf_digit_add(&q, 'w', wq, (int)wp);
  nvf_set_placement(s, k->dot->m, c->transposed ? &q : &p);
  nvf_set_placement(s, k->dot->n, c->transposed ? &p : &q);
  if (at.split_k > 1) nvf_place_epilogue(k, s, &t, c->wm * c->wn);
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++) tile_prologue(k, s, z, &t, c->wm * c->wn);
  s->operand = nvf_tensor_operand(k);
  s->mma = c->form;
  s->keep_operand = t.stages > 0;
  s->stages = s->keep_operand ? t.stages : stages_of(k, &at);
  s->stream_k = at.stream_k;
  s->warp_specialize = c->form == GROUPS;
  s->blocks = c->form == WARPS || at.persistent > 1 ? at.persistent : 0;
  /* without rastering every row of tiles reads all of the right operands again; an int8 operand has half the bytes */
  if (k->axis.at[k->dot->m].n > t.m || nvf_gemm_reduced_axis(k) == k->dot->m)
    s->raster = (t.m > TALL ? RASTER / 2 : RASTER) / (has_operand(k, is_bytes) ? 2 : 1);
  if (s->keep_operand) /* a column of tiles as a whole */
    for (s->raster = 1; s->raster * t.m < k->axis.at[k->dot->m].n;) s->raster *= 2;
  s->tma_store = s->warp_specialize && at.split_k == 1
                     ? (c->transposed && !has_operand(k, is_from_registers) ? k->dot->m : k->dot->n)
                     : -1;
  return s;
}
