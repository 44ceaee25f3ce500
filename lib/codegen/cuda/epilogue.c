/* Epilogue of a warp-specialised GEMM: each warp writes results to shared memory in subtiles of 16 rows of 128 bytes
   (of 64 bytes for 8-bit results; 64 rows of 32 bytes for MN-major ones of 16 bits), from where TMA stores them. A
   matrix that the epilogue reads is loaded by TMA into the same buffers while the mainloop runs; vectors are loaded
   into registers before it. Decides which loads and stores go this way, and which casts are done where neighbours are
   packed; never what is computed in between. */
#include "codegen/cuda/tensor_core.h"
#include "frag/dtype.h"

enum { SHARED_LIMIT = 226 << 10 }; /* bytes of shared memory of a CTA, less those for mbarriers */
enum { OUT_ROWS = 16, OUT_BUFFERS = 4, EARLY_REGISTERS = 40, OUT_COLUMNS = 64 /* 16-bit columns of a subtile */ };

/* Bytes of a row that are stored together: at most those of a slice. */
static int row_bytes(int size) { return size == 1 ? 64 : 128; }

/* ---- subtiles: 16 rows of 128 bytes of one warp */
static int subtiles_of(const nvcu_accum *s, int size) { return s->np * s->nq * 8 * size / row_bytes(size); }

static const nvf_stmt *contract_of(nvcu_em *e, const nvf_layout *l) { /* the contraction whose sum has the layout */
  for (int i = 0; i < e->k->nstmt; i++)
    if (e->r.stmt[i] && e->r.stmt[i]->op == NVF_CONTRACT && nvc_same_items(&e->t->tile[e->r.stmt[i]->out[0]], l))
      return e->r.stmt[i];
  return NULL;
}

/* Does the store (or load) go by TMA? Then also its view, and the layout of its tile. */
static int uses_tma(nvcu_em *e, const nvf_stmt *s, nvf_op op, nvcu_accum *sum, nvcu_view *v) {
  if (!e->pipeline || s->op != op || !nvc_hint(&e->r, s, NVF_HINT_TMA, 0) || s->nin + s->nout != 1) return 0;
  int size = nvg_size(e->k->param[s->buf].type);
  const nvf_stmt *c = contract_of(e, nvc_layout_of(&e->r, s));
  if (!c || size > 4 || (size == 1 && !nvg_is_f8(e->k->param[s->buf].type))) return 0;
  *sum = nvcu_sum_of(e, c);
  if (sum->nq * 8 * size % row_bytes(size)) return 0;
  if (!nvcu_view_of(e, s, sum->q, sum->p, v)) return 1;
  int transposed = size >= 2 && !nvcu_view_of(e, s, sum->p, sum->q, v);
  v->transposed = transposed;
  return transposed;
}

static void make_map(nvcu_em *e, nvcu_view *v) {
  int size = nvg_size((nvm_dtype)v->map.type);
  for (int i = 0; i < v->map.rank; i++) v->map.box[i] = 1;
  v->map.box[v->transposed] = row_bytes(size) / size;
  v->map.box[!v->transposed] = OUT_ROWS;
  v->map.swizzle = v->transposed ? OUT_ROWS * size : row_bytes(size);
  v->number = nvcu_map_new(e, &v->map);
}

/* Text of the coordinates of the warp's subtile that begins at the first-th block of 16 x 8 sums */
static const char *offset_of(nvcu_em *e, const nvcu_view *v, const nvcu_accum *sum, int first) {
  nvb_text t = { .arena = e->a };
  for (int i = 0; i < 2; i++) {
    int p = i != v->transposed, at = p ? sum->prow[first / sum->nq] : sum->qcol[first % sum->nq];
    nvb_print(&t, "%s%s + %s + %d", i ? ", " : "", nvcu_view_start(e, v, i),
              nvcu_warp_part(e, sum->l, p ? sum->p : sum->q), at);
  }
  for (int i = 2; i < v->map.rank; i++) nvb_print(&t, ", %s", nvcu_view_start(e, v, i));
  return t.s;
}

static const char *subtile_at(nvcu_em *e, const nvcu_pipeline *g, int subtile) {
  return nvcu_text(e, "%s + (warp * %d + %d) * %d", nvcu_smem_at(e, g->out, 0, "char"), g->buffers,
                   subtile % g->buffers, OUT_ROWS * 128);
}

/* A cast that only the store reads is done where two neighbours are packed: to 16 or 8 bits. */
static const nvf_stmt *cast_before(nvcu_em *e, const nvf_stmt *store) {
  const nvc_tile_use *u = &e->r.tile[store->in[0]];
  nvm_dtype t = e->k->param[store->buf].type;
  const nvf_stmt *m = u->def;
  if (!nvg_is_narrow(t) || !m || m->op != NVF_MAP || u->users.n != 1 || u->mutable || m->narg != 1 || m->nout != 1)
    return NULL;
  if (m->arg[0].kind != NVF_ATILE) return NULL;
  const nvg_frag *f = nvg_frag_cast(NVM_F32, t);
  int same = f && nvb_hash_eq(f->hash, m->frag->hash);
  return same && nvc_same_items(&e->t->tile[m->arg[0].id], &e->t->tile[store->in[0]]) ? m : NULL;
}

int nvcu_f32_before_cast(const nvcu_em *e, const nvf_stmt *s) {
  if (!e->pipeline || s->op != NVF_MAP || s->narg != 1 || s->nout != 1 || s->arg[0].kind != NVF_ATILE) return -1;
  const nvc_tile_use *u = &e->r.tile[s->arg[0].id];
  const nvf_stmt *m = u->def;
  nvm_dtype t = e->k->tile[s->arg[0].id].type;
  if (t != NVM_BF16 || u->users.n != 1 || u->mutable || !m || m->op != NVF_MAP || m->narg != 1 || m->nout != 1)
    return -1;
  const nvg_frag *to = nvg_frag_cast(NVM_F32, t), *back = nvg_frag_cast(t, NVM_F32);
  int casts = to && back && nvb_hash_eq(m->frag->hash, to->hash) && nvb_hash_eq(s->frag->hash, back->hash);
  return casts && m->arg[0].kind == NVF_ATILE && nvc_hint(&e->r, m, NVF_HINT_APPROX, 0) == 2 ? m->arg[0].id : -1;
}

/* The registers that the load of a vector takes; 0: s is none. */
static int vector_registers(nvcu_em *e, const nvf_stmt *s) {
  nvc_ints uses = { 0 };
  if (s->op != NVF_LOAD || contract_of(e, nvc_layout_of(&e->r, s))) return 0;
  nvc_uses(&e->r, s, &uses);
  int items = nvc_items(nvc_layout_of(&e->r, s)) * s->nout,
      pairs = nvg_size(e->k->tile[s->out[0]].type) == 2 && nvc_hint(&e->r, s, NVF_HINT_VEC, 1) > 1;
  return uses.n || nvc_has_loops(nvc_layout_of(&e->r, s)) ? 0 : pairs ? (items + 1) / 2 : items;
}

void nvcu_tma_epilogue_plan(nvcu_em *e, nvcu_pipeline *g) {
  nvcu_accum sum;
  nvcu_view v;
  int all = 0, first = e->k->nstmt; /* the first of the stores */
  for (int i = 0; i < e->k->nstmt; i++) {
    const nvf_stmt *s = e->r.stmt[i];
    if (s && nvcu_f32_before_cast(e, s) >= 0) e->done[e->r.tile[s->arg[0].id].def->id] = 1;
    if (!s || !uses_tma(e, s, NVF_STORE, &sum, &v)) continue;
    first = s->id < first ? s->id : first;
    all += subtiles_of(&sum, nvg_size(e->k->param[s->buf].type));
    const nvf_stmt *m = cast_before(e, s);
    if (m) e->done[m->id] = 1;
  }
  if (!all) return;
  e->shared = (e->shared + 1023) & ~(int64_t)1023;
  int64_t each = g->groups * NVCU_GROUP * OUT_ROWS * 128, left = SHARED_LIMIT - e->shared;
  for (g->buffers = OUT_BUFFERS; all % g->buffers || (g->buffers > 1 && g->buffers * each > left);) g->buffers--;
  g->out = nvcu_smem_new(e, each * g->buffers, 0);
  for (int i = 0; i < e->k->nstmt && all == g->buffers && !g->early; i++) {
    const nvf_stmt *s = e->r.stmt[i];
    if (s && s->id > g->loop->id && s->id < first && !e->done[s->id] && uses_tma(e, s, NVF_LOAD, &sum, &v) &&
        nvg_size(e->k->param[s->buf].type) == 2 && subtiles_of(&sum, 2) == all)
      g->early = s;
  }
  if (g->early) g->arrived = nvcu_smem_new(e, 8 * e->warps, 0);
}

/* ---- before the loop */
static const char *arrived_at(nvcu_em *e, const nvcu_pipeline *g, const char *warp) {
  return nvcu_text(e, "%s + 8 * %s", nvcu_smem_at(e, g->arrived, 0, "char"), warp);
}

void nvcu_tma_epilogue_set_up(nvcu_em *e, const nvcu_pipeline *g) {
  if (g->early) nvcu_line(e, "for (int i = 0; i < %d; i++) nv_mbarrier_init(%s, 1);", e->warps, arrived_at(e, g, "i"));
}

void nvcu_tma_epilogue_begin(nvcu_em *e, nvcu_pipeline *g, const nvc_seq *q) {
  for (int i = 0, left = EARLY_REGISTERS; i < q->n; i++)
    for (int j = 0; j < q->nest[i]->s.n && !q->nest[i]->nloop; j++) {
      const nvf_stmt *s = q->nest[i]->s.at[j];
      int n = s->id > g->loop->id && !e->done[s->id] ? vector_registers(e, s) : 0;
      if (!n || n > left) continue;
      left -= n;
      e->nest = q->nest[i];
      nvcu_load(e, s);
      e->done[s->id] = 1;
    }
}

void nvcu_tma_epilogue_fetch(nvcu_em *e, const nvcu_pipeline *g) {
  nvcu_accum sum;
  nvcu_view v;
  if (!g->early || !uses_tma(e, g->early, NVF_LOAD, &sum, &v)) return;
  make_map(e, &v);
  nvcu_open(e, "if (lane == 0)");
  nvcu_line(e, "nv_tma_store_wait<0>();");
  nvcu_line(e, "nv_mbarrier_expect(%s, %d);", arrived_at(e, g, "warp"), g->buffers * OUT_ROWS * 128);
  for (int c = 0; c < g->buffers; c++)
    nvcu_line(e, "nv_tma_load(%s, &map%d, %s, %s);", subtile_at(e, g, c), v.number, arrived_at(e, g, "warp"),
              offset_of(e, &v, &sum, 8 * c));
  nvcu_close(e);
}

/* The address that a lane passes to (ld|st)matrix.trans for two units of 8 columns, from the j-th on, of an MN-major
   subtile. */
static const char *mn_major_at(nvcu_em *e, const char *subtile, int j) {
  return nvcu_text(e, "%s + nv_swizzled<%d, %d>(%d + (lane >> 4) * 8 + (lane & 7), (lane >> 3 & 1) * 16)", subtile,
                   OUT_COLUMNS, 2 * OUT_ROWS, 8 * j);
}

/* The address of a lane's two neighbouring rows in column h of the j-th unit of 8 columns, of an MN-major subtile with
   `adjacent`. */
static const char *adjacent_at(nvcu_em *e, const char *subtile, int j, int h) {
  return nvcu_text(e, "%s + nv_swizzled<%d, %d>(%d + (lane & 3) * 2, (lane >> 2) * 4)", subtile, OUT_COLUMNS,
                   2 * OUT_ROWS, 8 * j + h);
}

/* The address that a lane passes to (ld|st)matrix for two units of 8 columns, from the j-th on, of a subtile with
   contiguous rows. */
static const char *n_major_at(nvcu_em *e, const nvcu_accum *sum, const char *subtile, int j) {
  return nvcu_text(e, "%s + nv_swizzled<%d, 128>(%s, %d + (lane >> 4) * 16)", subtile, OUT_ROWS,
                   sum->adjacent ? "(lane & 7) * 2 + (lane >> 3 & 1)" : "lane & 15", j * 16);
}

/* The first (h 0) or second (h 1) row of a lane in a subtile */
static const char *row_of(nvcu_em *e, const nvcu_accum *sum, int h) {
  return nvcu_text(e, sum->adjacent ? "(lane >> 2) * 2 + %d" : "(lane >> 2) + %d", sum->adjacent ? h : 8 * h);
}

static void load_adjacent(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, const char *from, int first) {
  for (int j = 0; j < 16; j++) {
    const int *item = &sum->item[4 * (first + j / 2) + j % 2];
    const char *x = nvcu_fresh(e, "x");
    nvcu_line(e, "const unsigned %s = *(const unsigned *)(%s);", x, adjacent_at(e, from, j / 2, j % 2));
    for (int i = 0; i < 2; i++)
      nvcu_define(e, s->out[0], item[2 * i], nvcu_text(e, "(unsigned short)(%s >> %d)", x, 16 * i));
  }
}

static void load_subtile16(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, const char *from, int first,
                           int transposed) {
  for (int j = 0; j < 8; j += 2) {
    const char *x = nvcu_fresh(e, "x"), *at = transposed ? mn_major_at(e, from, j) : n_major_at(e, sum, from, j);
    nvcu_line(e, "unsigned %s[4];", x);
    nvcu_line(e, "nv_ldmatrix4%s(%s, %s);", transposed ? "_trans" : "", x, at);
    for (int i = 0; i < 8; i++)
      nvcu_define(e, s->out[0], sum->item[4 * (first + j) + i],
                  nvcu_text(e, "(unsigned short)(%s[%d] >> %d)", x, i / 2, 16 * (i & 1)));
  }
}

int nvcu_tma_load(nvcu_em *e, const nvf_stmt *s) {
  nvcu_pipeline *g = e->pipeline;
  nvcu_accum sum;
  nvcu_view v;
  if (!g || g->early != s || !uses_tma(e, s, NVF_LOAD, &sum, &v)) return 0;
  if (!e->slice.each || e->slice.at == 0) nvcu_line(e, "nv_mbarrier_wait(%s, parity);", arrived_at(e, g, "warp"));
  for (int c = 0; c < g->buffers; c++) {
    if (!nvcu_now(e, sum.l, sum.item[32 * c])) continue;
    const char *from = nvcu_fresh(e, "in");
    nvcu_line(e, "const char *const %s = %s;", from, subtile_at(e, g, c));
    if (v.transposed && sum.adjacent) load_adjacent(e, s, &sum, from, 8 * c);
    else load_subtile16(e, s, &sum, from, 8 * c, v.transposed);
  }
  return 1;
}

/* ---- stores */
static const char *pack_pair(nvcu_em *e, const nvf_stmt *s, const nvf_stmt *cast, int a, int b) {
  int t = cast ? cast->arg[0].id : s->in[0];
  const char *x = nvcu_tile_item(e, t, a), *y = nvcu_tile_item(e, t, b);
  static const char *const pair[] = {
    [NVM_BF16] = "nv_bf16x2", [NVM_F16] = "nv_f16x2", [NVM_F8E4] = "nv_e4m3s", [NVM_F8E5] = "nv_e5m2s"
  };
  nvm_dtype to = e->k->param[s->buf].type;
  if (cast) return nvcu_text(e, "%s(%s, %s)", pair[to], x, y);
  return nvcu_text(e, "((unsigned)%s | (unsigned)%s << %d)", x, y, 8 * nvg_size(to));
}

static void store_subtile8(nvcu_em *e, const nvf_stmt *s, const nvf_stmt *cast, const nvcu_accum *sum, const char *to,
                           int first) {
  for (int j = 0; j < 8; j++)
    for (int h = 0; h < 2; h++) {
      const int *c = &sum->item[4 * (first + j) + 2 * h];
      const char *at =
          nvcu_text(e, "%s + nv_swizzled<%d, 64>(%s, %d + (lane & 3) * 2)", to, OUT_ROWS, row_of(e, sum, h), j * 8);
      nvcu_line(e, "*(unsigned short *)(%s) = (unsigned short)%s;", at, pack_pair(e, s, cast, c[0], c[1]));
    }
}

static void store_adjacent(nvcu_em *e, const nvf_stmt *s, const nvf_stmt *cast, const nvcu_accum *sum, const char *to,
                           int first) {
  for (int j = 0; j < 16; j++) {
    const int *c = &sum->item[4 * (first + j / 2) + j % 2];
    nvcu_line(e, "*(unsigned *)(%s) = %s;", adjacent_at(e, to, j / 2, j % 2), pack_pair(e, s, cast, c[0], c[2]));
  }
}

static void store_subtile16(nvcu_em *e, const nvf_stmt *s, const nvf_stmt *cast, const nvcu_accum *sum, const char *to,
                            int first, int transposed) {
  for (int j = 0; j < 8; j += 2) {
    const int *c = &sum->item[4 * (first + j)];
    const char *at = transposed ? mn_major_at(e, to, j) : n_major_at(e, sum, to, j);
    nvcu_line(e, "nv_stmatrix4%s(%s, %s, %s, %s, %s);", transposed ? "_trans" : "", at,
              pack_pair(e, s, cast, c[0], c[1]), pack_pair(e, s, cast, c[2], c[3]), pack_pair(e, s, cast, c[4], c[5]),
              pack_pair(e, s, cast, c[6], c[7]));
  }
}

/* An MN-major subtile: 16 rows by 32 columns of 32 bits */
static void store_subtile32_transposed(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, const char *to,
                                       int first) {
  const char *type = nvcu_type(e->k->param[s->buf].type);
  for (int i = 0; i < 16; i++)
    nvcu_line(e, "*(%s *)(%s + nv_swizzled<%d, %d>(%d + (lane & 3) * 2, (%s) * 4)) = %s;", type, to, OUT_COLUMNS / 2,
              4 * OUT_ROWS, 8 * (i / 4) + (i & 1), row_of(e, sum, i >> 1 & 1),
              nvcu_tile_item(e, s->in[0], sum->item[4 * first + i]));
}

static void store_subtile32(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, const char *to, int first) {
  const char *type = nvcu_type(e->k->param[s->buf].type);
  for (int j = 0; j < 4; j++)
    for (int h = 0; h < 2; h++) {
      const int *c = &sum->item[4 * (first + j) + 2 * h];
      nvcu_line(e, "*(nv_pack<%s, 2> *)(%s + nv_swizzled<%d, 128>(%s, %d + (lane & 3) * 8)) = {{%s, %s}};", type, to,
                OUT_ROWS, row_of(e, sum, h), j * 32, nvcu_tile_item(e, s->in[0], c[0]),
                nvcu_tile_item(e, s->in[0], c[1]));
    }
}

int nvcu_tma_store(nvcu_em *e, const nvf_stmt *s) {
  nvcu_accum sum;
  nvcu_view v;
  if (!uses_tma(e, s, NVF_STORE, &sum, &v)) return 0;
  nvcu_pipeline *g = e->pipeline;
  const nvf_stmt *cast = cast_before(e, s);
  /* with many k-tiles the L2 keeps the operands anyway, so nothing is gained */
  const char *once = nvc_hint(&e->r, s, NVF_HINT_NT, 0) && g->kept >= 0 ? "true" : "false";
  int size = nvg_size(e->k->param[s->buf].type), wide = row_bytes(size) / (8 * size);
  make_map(e, &v);
  for (int c = 0; c < subtiles_of(&sum, size); c++) {
    int first = c * wide;
    if (!nvcu_now(e, sum.l, sum.item[4 * first])) continue;
    const char *to = nvcu_fresh(e, "out");
    nvcu_line(e, "char *const %s = %s;", to, subtile_at(e, g, g->stored++));
    nvcu_line(e, "if (lane == 0) nv_tma_store_wait<%d>();", g->buffers - 1);
    nvcu_line(e, "__syncwarp();");
    if (size == 1) store_subtile8(e, s, cast, &sum, to, first);
    else if (size == 2 && v.transposed && sum.adjacent) store_adjacent(e, s, cast, &sum, to, first);
    else if (size == 2) store_subtile16(e, s, cast, &sum, to, first, v.transposed);
    else (v.transposed ? store_subtile32_transposed : store_subtile32)(e, s, &sum, to, first);
    nvcu_line(e, "nv_tma_store_fence();");
    nvcu_line(e, "__syncwarp();");
    nvcu_open(e, "if (lane == 0)");
    nvcu_line(e, "nv_tma_store<%s>(&map%d, %s, %s);", once, v.number, to, offset_of(e, &v, &sum, first));
    nvcu_line(e, "nv_tma_store_commit();");
    nvcu_close(e);
  }
  return 1;
}
