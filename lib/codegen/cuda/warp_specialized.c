/* Warp-specialised GEMM mainloop for compute capability 9.0: one producer thread of an extra warpgroup fills a
   multistage TMA pipeline; the consumer warpgroups issue WGMMA of 64 rows by up to 256 columns and run the epilogue.
   CTAs outside of clusters are persistent, so that the pipeline fills for the next tile during the epilogue. WGMMA
   keeps 14 bits of an FP8 sum, so the sums of each k-tile are added up in registers. This file decides mbarriers,
   registers of the roles and batches of WGMMAs; it never decides the tile's shape or how results are stored. */
#include "codegen/cuda/tensor_core.h"
#include <string.h>
#include "frag/dtype.h"

/* registers of a producer thread, of an SM; BEHIND: stages from which the next k-tile waits for this one's WGMMAs */
enum { GROUP = NVCU_GROUP, PRODUCER_REGISTERS = 40, REGISTERS = 65536, BEHIND = 6 };
/* columns of a WGMMA at most, in units of 8: in general; where its sums are added up afterwards */
enum { MOST_COLUMNS = 32, MOST_ADDED = 16 };
/* k-steps of a batch from registers; batches of WGMMAs in flight at most during an upcast */
enum { STEPS = 4, AHEAD = 3 };
enum { LATE = 4 }; /* k-tiles after which the previous tile's stores have left shared memory */
/* units of 8 columns up to which mma.sync is faster (a WGMMA from registers takes 75 cycles) */
enum { FEW_COLUMNS = 4 };

/* ---- what the loop copies */
static void add_tma_copy(nvcu_em *e, nvcu_pipeline *g, const nvf_stmt *put, const nvf_stmt *load) {
  nvcu_tma_copy *f = &g->tile[g->n];
  if (g->n == NVC_MAPS || !nvcu_copies(e, load, put))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] %s is not copied directly to shared memory",
              e->k->tile[put->in[0]].name);
  *f = (nvcu_tma_copy){ .load = load, .put = put };
  nvcu_rows *r = nvcu_rows_of(e, put);
  const char *why = nvcu_view_of(e, load, r->col, r->row, &f->view);
  if (why) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] TMA cannot load %s: %s", e->k->tile[put->in[0]].name, why);
  nvc_cuda_map *m = &f->view.map;
  for (int i = 0; i < m->rank; i++) m->box[i] = 1;
  m->box[0] = r->swizzle / r->size;
  m->box[1] = r->rows <= 256 ? r->rows : 256;
  m->swizzle = r->swizzle;
  m->tf32 = r->type == NVM_F32;
  if ((r->swizzle != 128 && !nvcu_is_upcast(e, nvcu_tensor_user(e, put->out[0]), r->type)) || r->rows % m->box[1])
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the operands of a WGMMA must have rows of 128 bytes");
  f->map = nvcu_map_new(e, m);
  f->boxes = (int)(r->bytes / (r->swizzle * m->box[1]));
  r->off = g->bytes;
  g->bytes += (int)r->bytes;
  g->n++;
  e->done[load->id] = e->done[put->id] = 1;
}

static const nvf_stmt *find_loop(nvcu_em *e, const nvc_seq *q, const nvc_nest **nest) {
  for (int i = 0; i < q->n; i++) {
    const nvf_stmt *s = q->nest[i]->solo ? q->nest[i]->s.at[0] : NULL;
    *nest = q->nest[i];
    if (s && s->op == NVF_FOR && nvc_hint(&e->r, s, NVF_HINT_WARP_SPECIALIZE, 0)) return s;
  }
  return NULL;
}

/* Finds the slices of the epilogue: 64 columns each, if the columns of the sum are one digit of items. */
static void find_parts(nvcu_em *e, nvcu_pipeline *g, const nvf_stmt *contract) {
  enum { EACH = 8 };
  nvcu_accum sum = nvcu_sum_of(e, contract);
  for (int i = 0; i < sum.l->n; i++) {
    const nvf_digit *d = &sum.l->d[i];
    if (d->axis != sum.q || d->stride != 8 || d->level != 'i' || d->extent != sum.nq || sum.nq % EACH) continue;
    g->part = (nvcu_slice){ .axis = sum.q, .each = EACH };
    g->parts = sum.nq / EACH;
  }
}

static void sum_of(nvcu_em *e, nvcu_pipeline *g, const nvf_stmt *s) {
  if (g->nsum == NVC_MAPS)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a loop has more than %d contractions", NVC_MAPS);
  for (int i = 0; i < g->nsum; i++) {
    const nvf_stmt *o = g->sum[i];
    if (o->out[0] == s->out[0] || !nvc_same_items(&e->t->tile[o->out[0]], &e->t->tile[s->out[0]]) ||
        o->axis != s->axis || nvg_size(nvcu_operand_type(e, o)) != nvg_size(nvcu_operand_type(e, s)))
      nvb_throw(e->a, NVM_ERR_UNSUPPORTED,
                "[cuda] a warp-specialised loop must contract one axis, into sums of one layout");
  }
  g->sum[g->nsum++] = s;
  find_parts(e, g, s);
}

static void see_body(nvcu_em *e, nvcu_pipeline *g, const nvc_seq *q) {
  for (int i = 0; i < q->n; i++)
    for (int j = 0; j < q->nest[i]->s.n; j++) {
      const nvf_stmt *s = q->nest[i]->s.at[j];
      if (s->op == NVF_PUT) add_tma_copy(e, g, s, e->r.tile[s->in[0]].def);
      else if (s->op == NVF_CONTRACT) sum_of(e, g, s);
      else if (s->op != NVF_LOAD)
        nvb_throw(e->a, NVM_ERR_UNSUPPORTED,
                  "[cuda] a warp-specialised loop may contain loads, puts and contractions only");
    }
}

/* ---- products of a warpgroup */
static const nvcu_rows *rows_with(nvcu_em *e, const nvf_stmt *s, int axis) {
  for (int j = 1; j < 3; j++) {
    const nvcu_rows *r = e->tile[s->in[j]].rows;
    if (r && (r->row == axis || r->col == axis)) return r;
  }
  nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the operands of a WGMMA must be shared tiles that `put` made for it");
}

/* WGMMA descriptor of an operand in the current stage: from row (column) `base + first` of its axis and from index
   `deep` of k on */
static const char *operand_at(nvcu_em *e, const nvcu_rows *r, int mn_major, const char *base, int first, int deep) {
  enum { UNIT = 16, ROW = 128 / UNIT };
  const nvcu_pipeline *g = e->pipeline;
  int whole = 128 / r->size, byte = deep * r->size, at = (int)r->off / UNIT; /* columns of a row of 128 bytes */
  const char *row = mn_major ? nvcu_text(e, "((%s) + %d) / %d * %d", base, first, whole, r->rows * ROW)
                             : nvcu_text(e, "(%s) * %d", base, ROW);
  at += mn_major ? deep * ROW : (first + byte / 128 * r->rows) * ROW + byte % 128 / UNIT;
  return nvcu_text(e, "nv_wgmma_descriptor(%s, %d, stage * %d + %s + %d)", nvcu_smem_at(e, g->tiles, 0, "char"),
                   mn_major ? r->rows * ROW : 1, g->bytes / UNIT, row, at);
}

/* The accumulators of one WGMMA: as numbers of asm operands (in), as asm constraints (regs), as parameters of the
   function (args). */
typedef struct listed { nvb_text in, regs, args; } listed;
static listed list_sums(nvcu_em *e, int n, int whole) {
  listed l = { { .arena = e->a }, { .arena = e->a }, { .arena = e->a } };
  for (int i = 0; i < n; i++) {
    nvb_print(&l.in, "%s%%%d", i ? ", " : "", i);
    nvb_print(&l.regs, "%s\"+%s\"(d%d)", i ? ", " : "", whole ? "r" : "f", i);
    nvb_print(&l.args, ", %s &d%d", whole ? "int" : "float", i);
  }
  return l;
}

/* Defines, once in the preamble, the function of a WGMMA with operand A in registers; returns its name. */
static const char *instruction_of(nvcu_em *e, nvm_dtype t, int n) {
  const char *one = nvcu_operand_name(e, t), *name = nvcu_text(e, "nv_wgmma_%s_of", one);
  int size = nvg_size(t), mn_major = size == 2;
  listed l = list_sums(e, 4 * n, 0);
  nvb_text f = { .arena = e->a };
  int at = 4 * n; /* number of the first asm operand after the accumulators */
  nvb_print(&f,
            "#ifdef __CUDACC__\ntemplate <int MN_MAJOR_B> static __device__ __forceinline__ void %s(const unsigned "
            "(&a)[4], unsigned long long b, int more%s) {\n  asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %%%d, "
            "0;\\nwgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {%s}, {%%%d, %%%d, %%%d, %%%d}, %%%d, p, 1, 1%s;"
            "\\n}\"\n    : %s : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), \"r\"(more)%s);\n}\n"
            "#endif\n",
            name, l.args.s, at + 5, 8 * n, 32 / size, one, one, l.in.s, at, at + 1, at + 2, at + 3, at + 4,
            mn_major ? nvcu_text(e, ", %%%d", at + 6) : "", l.regs.s, mn_major ? ", \"n\"(MN_MAJOR_B)" : "");
  if (!strstr(nvb_text_get(&e->preamble), f.s)) nvb_puts(&e->preamble, f.s);
  return name;
}

/* Defines, once in the preamble, the function of a WGMMA with both operands in shared memory; returns its name. */
static const char *define_wgmma(nvcu_em *e, nvm_dtype a, nvm_dtype b, int n) {
  const char *one = nvcu_operand_name(e, a), *other = nvcu_operand_name(e, b);
  const char *name = nvg_is_f8(a) ? nvcu_text(e, "nv_wgmma_%s_%s", one, other) : nvcu_text(e, "nv_wgmma_%s", one);
  int size = nvg_size(a), mn_major = size == 2, whole = a == NVM_I8; /* only operands of 16 bits can be MN-major */
  listed l = list_sums(e, 4 * n, whole);
  nvb_text f = { .arena = e->a };
  nvb_print(&f,
            "#ifdef __CUDACC__\ntemplate <int MN_MAJOR_A, int MN_MAJOR_B> static __device__ __forceinline__ void "
            "%s(unsigned long long a, "
            "unsigned long long b, int more%s) {\n  asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %%%d, 0;\\n"
            "wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s {%s}, %%%d, %%%d, p%s%s;\\n}\"\n    : %s : \"l\"(a), "
            "\"l\"(b), "
            "\"r\"(more)%s);\n}\n#endif\n",
            name, l.args.s, 4 * n + 2, 8 * n, 32 / size, whole ? "s32" : "f32", one, other, l.in.s, 4 * n, 4 * n + 1,
            whole ? "" : ", 1, 1", mn_major ? nvcu_text(e, ", %%%d, %%%d", 4 * n + 3, 4 * n + 4) : "", l.regs.s,
            mn_major ? ", \"n\"(MN_MAJOR_A), \"n\"(MN_MAJOR_B)" : "");
  if (!strstr(nvb_text_get(&e->preamble), f.s)) nvb_puts(&e->preamble, f.s);
  return name;
}

static void check_groups(nvcu_em *e, const nvcu_accum *sum) {
  int fits = 0;
  for (int i = 0; i < sum->l->n; i++) {
    const nvf_digit *d = &sum->l->d[i];
    if (d->level != 'w' || d->extent == 1) continue;
    fits |= d->axis == sum->p && d->stride == 16 && d->pstride == 1 && d->extent % GROUP == 0;
    if (d->pstride < GROUP && !(d->axis == sum->p && d->stride == 16)) fits = -1;
  }
  for (int i = 0; i < sum->np; i++)
    if (sum->prow[i] % 64) fits = -1;
  if (fits != 1) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the layout of the sums is not that of a WGMMA");
}

/* A contraction of the loop: its operands along the axes p and q of the sum, and the registers of its accumulators,
   [item]. */
typedef struct batch { const nvf_stmt *s; const nvcu_rows *p, *q; const char **acc; } batch;

static batch batch_of(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum) {
  int items = nvc_items(sum->l);
  if (s->in[0] != s->out[0] || !e->r.tile[s->in[0]].mutable)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a WGMMA must add to a tile that the loop carries");
  batch b = { s, rows_with(e, s, sum->p), rows_with(e, s, sum->q), NVB_NEWN(e->a, const char *, items) };
  if (nvcu_is_from_registers(e, s, b.q) || nvcu_is_from_registers(e, s, b.p) != e->pipeline->a_registers)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the WGMMAs of a loop must read the same operand from registers");
  if (b.q->size == 1 && (b.p->row == s->axis || b.q->row == s->axis))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the operands of 8 bits of a WGMMA must be K-major");
  for (int i = 0; i < items; i++) b.acc[i] = nvcu_tile_item(e, s->in[0], i);
  return b;
}

/* Do the columns of b follow those of a in shared memory, so that one WGMMA can compute both? */
static int goes_on(const nvcu_em *e, const nvcu_accum *sum, const batch *a, const batch *b) {
  /* one: the rows of 128 bytes are contiguous */
  int k = a->s->axis, one = a->q->row == k || a->q->bytes == a->q->rows * 128;
  int64_t all = 8 * sum->nq * a->q->size * nvf_extent(&e->t->tile[a->s->in[1]], k);
  return one && all == a->q->bytes && a->q->off + all == b->q->off && a->p == b->p && b->s->axis == k &&
         a->q->row == b->q->row && a->q->col == b->q->col && a->q->type == b->q->type;
}

/* What one WGMMA computes: the i-th 64 rows by n units of 8 columns from the j-th unit on, of contraction b and of the
   `more` contractions after it whose operands follow in memory. acc: the accumulators of all of them. */
typedef struct wgmma_part {
  const batch *b;
  int i, j, n, more;
  /* A registers of each k-step: as loaded, for two batches by turns; upcast */
  const char **acc, *bytes[2][STEPS], *left[STEPS];
} wgmma_part;

static wgmma_part piece_at(nvcu_em *e, const nvcu_accum *sum, const batch *b, int left, int i, int j) {
  int most = nvg_is_f8(b->q->type) ? MOST_ADDED : MOST_COLUMNS;
  wgmma_part x = { .b = b, .i = i, .j = j, .n = 1 };
  while (j + x.n < sum->nq && x.n < most && sum->qcol[j + x.n] == sum->qcol[j] + 8 * x.n) x.n++;
  while (x.n == sum->nq && x.more + 1 < left && (x.more + 2) * x.n <= most &&
         goes_on(e, sum, b + x.more, b + x.more + 1))
    x.more++;
  x.acc = NVB_NEWN(e->a, const char *, 4 * x.n * (x.more + 1));
  for (int c = 0, at = 0; c <= x.more; c++)
    for (int r = 0; r < 4 * x.n; r++) x.acc[at++] = b[c].acc[sum->item[4 * (i * sum->nq + j) + r]];
  return x;
}

static void emit_wgmma(nvcu_em *e, const nvcu_accum *sum, const wgmma_part *x, const char *left, int at, int more,
                       const char *const *acc) {
  const batch *b = x->b;
  nvb_text regs = { .arena = e->a };
  int pa = b->p->row == b->s->axis, qa = b->q->row == b->s->axis, n = x->n * (x->more + 1);
  for (int r = 0; r < 4 * n; r++) nvb_print(&regs, ", %s", acc[r]);
  const char *prow = nvcu_text(e, "(%s & ~63)", nvcu_warp_part(e, sum->l, sum->p)),
             *qcol = nvcu_warp_part(e, sum->l, sum->q);
  if (left) {
    nvcu_line(e, "%s<%d>(%s, %s, %d%s);", instruction_of(e, b->q->type, n), qa, left,
              operand_at(e, b->q, qa, qcol, sum->qcol[x->j], at), more, regs.s);
    return;
  }
  nvcu_line(e, "%s<%d, %d>(%s, %s, %d%s);", define_wgmma(e, b->p->type, b->q->type, n), pa, qa,
            operand_at(e, b->p, pa, prow, sum->prow[x->i], at), operand_at(e, b->q, qa, qcol, sum->qcol[x->j], at),
            more, regs.s);
}

/* FP8: the WGMMAs of the k-tile accumulate in separate registers, which are then added to the accumulators. */
static void emit_separate_sums(nvcu_em *e, const nvcu_accum *sum, const wgmma_part *x, int64_t k, int deep) {
  int n = 4 * x->n * (x->more + 1);
  const char **part = NVB_NEWN(e->a, const char *, n);
  nvcu_open(e, "%s", "");
  for (int r = 0; r < n; r++) nvcu_line(e, "float %s;", part[r] = nvcu_fresh(e, "part"));
  nvcu_line(e, "nv_wgmma_fence();");
  for (int at = 0; at < k; at += deep) emit_wgmma(e, sum, x, NULL, at, at > 0, part);
  nvcu_line(e, "nv_wgmma_commit();");
  nvcu_line(e, "nv_wgmma_wait<0>();");
  for (int r = 0; r < n; r++) nvcu_line(e, "%s += %s;", x->acc[r], part[r]);
  nvcu_close(e);
}

/* Does part i read the same A operand as the part before it? */
static int has_same_operand(const wgmma_part *x, int i) { return i && x[i].b == x[i - 1].b && x[i].i == x[i - 1].i; }

/* Loads the A registers of n parts for k-step s of a batch, from index k on; upcast_all converts them. */
static void read_all(nvcu_em *e, const nvcu_accum *sum, wgmma_part *x, int n, int k, int parity, int s) {
  for (int i = 0; i < n; i++)
    x[i].bytes[parity][s] = has_same_operand(x, i) ? x[i - 1].bytes[parity][s]
                                                   : nvcu_load_a_registers(e, x[i].b->s, sum, sum->prow[x[i].i], k);
}

static void upcast_all(nvcu_em *e, const nvcu_accum *sum, wgmma_part *x, int n, int parity, int s) {
  for (int i = 0; i < n; i++)
    x[i].left[s] = has_same_operand(x, i) ? x[i - 1].left[s] : nvcu_upcast(e, x[i].b->s, sum, x[i].bytes[parity][s]);
}

/* Operand A with an upcast: the bytes of a batch are loaded one batch ahead and upcast while earlier batches of WGMMAs
   are in flight, those of the previous k-tile among them; by the end of a k-tile, those of the previous one have
   completed. A k-tile has at least two batches. */
static void upcast_time(nvcu_em *e, const nvcu_accum *sum, wgmma_part *x, int n, int64_t k, int deep) {
  int steps = STEPS;
  while (steps > 1 && k % (2 * deep * steps)) steps /= 2;
  int each = deep * steps, most = k / each > AHEAD ? AHEAD : (int)(k / each) - 1;
  for (int s = 0; s < steps; s++) read_all(e, sum, x, n, s * deep, 0, s);
  for (int at = 0, parity = 0; at < k; at += each, parity ^= 1) {
    for (int s = 0; s < steps && at + each < k; s++) read_all(e, sum, x, n, at + each + s * deep, !parity, s);
    nvcu_line(e, "nv_wgmma_wait<%d>();", most);
    for (int s = 0; s < steps; s++) upcast_all(e, sum, x, n, parity, s);
    nvcu_line(e, "nv_wgmma_fence();");
    for (int s = 0; s < steps; s++)
      for (int i = 0; i < n; i++) emit_wgmma(e, sum, &x[i], x[i].left[s], at + s * deep, 1, x[i].acc);
    nvcu_line(e, "nv_wgmma_commit();");
  }
  if (!e->pipeline->behind) nvcu_line(e, "nv_wgmma_wait<0>();");
}

/* Operand A from registers without an upcast: a WGMMA reads its registers until it completes, so a batch is loaded into
   the registers of the batch before the previous one, which has completed. */
static void emit_from_registers(nvcu_em *e, const nvcu_accum *sum, wgmma_part *x, int n, int64_t k, int deep) {
  int steps = STEPS;
  while (steps > 1 && k % (2 * deep * steps)) steps /= 2;
  for (int at = 0, parity = 0; at < k; at += deep * steps, parity ^= 1) {
    for (int s = 0; s < steps; s++) read_all(e, sum, x, n, at + s * deep, parity, s);
    nvcu_line(e, "nv_wgmma_fence();");
    for (int s = 0; s < steps; s++)
      for (int i = 0; i < n; i++) emit_wgmma(e, sum, &x[i], x[i].bytes[parity][s], at + s * deep, 1, x[i].acc);
    nvcu_line(e, "nv_wgmma_commit();");
    nvcu_line(e, "nv_wgmma_wait<1>();");
  }
  if (!e->pipeline->behind) nvcu_line(e, "nv_wgmma_wait<0>();");
}

/* Both operands in shared memory and full accumulators: the WGMMAs of a k-tile are one batch. */
static void emit_batch(nvcu_em *e, const nvcu_accum *sum, wgmma_part *x, int n, int64_t k, int deep) {
  nvcu_line(e, "nv_wgmma_fence();");
  for (int at = 0; at < k; at += deep)
    for (int i = 0; i < n; i++) emit_wgmma(e, sum, &x[i], NULL, at, 1, x[i].acc);
  nvcu_line(e, "nv_wgmma_commit();");
  nvcu_line(e, "nv_wgmma_wait<%d>();", e->pipeline->behind);
}

/* Emits all contractions of the k-tile where the first one stands, so that a warpgroup waits for them together. */
void nvcu_group_mma(nvcu_em *e, const nvf_stmt *s) {
  nvcu_pipeline *g = e->pipeline;
  int64_t k = nvf_extent(&e->t->tile[s->in[1]], s->axis);
  int size = nvg_size(nvcu_operand_type(e, s)), deep = 32 / size;
  if (!g || k % deep) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a WGMMA must be in a warp-specialised loop");
  nvcu_accum sum = nvcu_sum_of(e, s);
  check_groups(e, &sum);
  batch *b = NVB_NEWN(e->a, batch, g->nsum);
  for (int c = 0; c < g->nsum; c++) {
    b[c] = batch_of(e, g->sum[c], &sum);
    e->done[g->sum[c]->id] = 1;
  }
  NVB_VEC(wgmma_part) all = { 0 };
  for (int c = 0, more = 0; c < g->nsum; c += more + 1)
    for (int i = 0; i < sum.np; i++)
      for (int j = 0; j < sum.nq; j += all.at[all.n - 1].n) {
        NVB_PUSH(e->a, all, piece_at(e, &sum, &b[c], g->nsum - c, i, j));
        more = all.at[all.n - 1].more;
      }
  if (g->few)
    for (int c = 0; c < g->nsum; c++) nvcu_warp_mma(e, g->sum[c], &sum);
  else if (g->a_registers)
    (nvcu_is_upcast(e, s, b->p->type) ? upcast_time : emit_from_registers)(e, &sum, all.at, all.n, k, deep);
  else if (!nvg_is_f8(nvcu_operand_type(e, s))) emit_batch(e, &sum, all.at, all.n, k, deep);
  else
    for (int x = 0; x < all.n; x++) emit_separate_sums(e, &sum, &all.at[x], k, deep);
}

/* ---- roles */
const char *nvcu_pipeline_barrier(nvcu_em *e, const nvcu_pipeline *g, int empty, const char *stage) {
  return nvcu_text(e, "%s + 8 * (%d + %s)", nvcu_smem_at(e, g->bars, 0, "char"), empty ? g->stages : 0, stage);
}

void nvcu_pipeline_release(nvcu_em *e, const nvcu_pipeline *g, const char *when, const char *stage) {
  if (g->a_registers) nvcu_line(e, "__syncwarp();");
  nvcu_line(e, "if (%s(threadIdx.x & %d) == 0) nv_mbarrier_arrive(%s);", when, g->a_registers ? 31 : 127,
            nvcu_pipeline_barrier(e, g, 1, stage));
}

void nvcu_pipeline_advance(nvcu_em *e, const nvcu_pipeline *g) {
  nvcu_line(e, "if (++stage == %d) stage = 0, phase ^= 1;", g->stages);
}

static void set_up(nvcu_em *e, const nvcu_pipeline *g) {
  nvcu_open(e, "if (threadIdx.x == 0)");
  nvcu_open(e, "for (int i = 0; i < %d; i++)", g->stages);
  nvcu_line(e, "nv_mbarrier_init(%s, 1);", nvcu_pipeline_barrier(e, g, 0, "i"));
  nvcu_line(e, "nv_mbarrier_init(%s, %d);", nvcu_pipeline_barrier(e, g, 1, "i"),
            g->groups * (g->a_registers ? GROUP : 1));
  nvcu_close(e);
  for (int i = 0; i < g->n; i++) nvcu_line(e, "nv_map_prefetch(&map%d);", g->tile[i].map);
  nvcu_tma_epilogue_set_up(e, g);
  nvcu_line(e, "nv_mbarrier_fence();");
  nvcu_close(e);
  nvcu_line(e, "nv_after_previous();");
  nvcu_stream_k_draw(e, g);
  nvcu_line(e, "__syncthreads();");
}

/* ---- keep_operand: a CTA computes the tiles of one column one after the other. If their number of k-tiles divides the
   number of stages, a stage holds the same k-tile of the column's operand for each tile, which is loaded once. */
static int goes_with(const nvf_expr *x, int grid) { /* does the address depend on this block coordinate? */
  if (x->kind >= NVF_ADD) return goes_with(x->a, grid) || goes_with(x->b, grid);
  return x->kind == NVF_GRID && x->id == grid;
}

static void find_kept(nvcu_em *e, nvcu_pipeline *g) {
  int row = e->part->ngrid - 2;
  g->kept = -1;
  if (!nvc_hint(&e->r, g->loop, NVF_HINT_KEEP_OPERAND, 0)) return;
  for (int i = 0; i < g->n && row >= 0; i++)
    if (!goes_with(g->tile[i].load->map, row)) g->kept = i;
  if (g->kept < 0 || e->cluster > 1 || nvcu_of_tiles(g->loop->lo) || nvcu_of_tiles(g->loop->hi) ||
      nvc_hint(&e->r, g->loop, NVF_HINT_STREAM_K, 0))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] keep_operand: no operand can be kept from one tile to the next");
}

static void begin_kept(nvcu_em *e, const nvcu_pipeline *g) {
  if (g->kept < 0) return;
  nvcu_line(e, "const bool stays = %d %% (%s) == 0;", g->stages, nvcu_pipeline_ktiles(e, g));
  nvcu_line(e, "int anew = 0;"); /* stages that still have to load the kept operand */
  for (int i = 0; i < e->part->ngrid; i++)
    if (i != e->part->ngrid - 2) nvcu_line(e, "ix was%d = -1;", i);
}

static void load_kept(nvcu_em *e, const nvcu_pipeline *g) {
  nvb_text same = { .arena = e->a }, now = { .arena = e->a };
  if (g->kept < 0) return;
  nvb_puts(&same, "stays");
  for (int i = 0; i < e->part->ngrid; i++)
    if (i != e->part->ngrid - 2) {
      nvb_print(&same, " && was%d == %s", i, e->grid[i]);
      nvb_print(&now, ", was%d = %s", i, e->grid[i]);
    }
  nvcu_line(e, "if (!(%s)) anew = %d%s;", same.s, g->stages, now.s);
}

/* Tiles per CTA, which it computes one after the other: all CTAs have the same number. It is rounded up if CTAs then
   begin where columns begin, which is worth a few idle CTAs (141 us instead of 147 with 128 of 132 CTAs). */
static const char *issue_kept(nvcu_em *e, const char *blocks) {
  const char *rows = nvcu_let(e, "ix", nvcu_uniform(e, e->part->grid[e->part->ngrid - 2].extent)),
             *even = nvcu_let(e, "ix", nvcu_text(e, "(%s + gridDim.x - 1) / gridDim.x", blocks)),
             *parts = nvcu_let(e, "ix", nvcu_text(e, "%s < %s ? %s / %s : 1", even, rows, rows, even)),
             *whole = nvcu_let(e, "ix", nvcu_text(e, "(%s + %s - 1) / %s", rows, parts, parts));
  return nvcu_let(e, "ix",
                  nvcu_text(e, "%s * %s == %s && %s - %s <= %s / 16 && %s >= %s ? %s : %s", whole, parts, rows, whole,
                            even, even, whole, even, whole, even));
}

/* The bytes that arrive in the current stage. Emits `all`: whether the kept operand is loaded, too. */
static const char *bytes_kept(nvcu_em *e, const nvcu_pipeline *g) {
  if (g->kept < 0) return nvcu_text(e, "%d", g->bytes);
  int own = (int)e->tile[g->tile[g->kept].put->out[0]].rows->bytes;
  nvcu_line(e, "const bool all = !stays || anew-- > 0;");
  return nvcu_text(e, "all ? %d : %d", g->bytes, g->bytes - own);
}

static void emit_fetch(nvcu_em *e, const nvcu_pipeline *g) {
  nvcu_line(e, "nv_mbarrier_wait(%s, phase);", nvcu_pipeline_barrier(e, g, 1, "stage"));
  nvcu_line(e, "nv_mbarrier_expect(%s, %s);", nvcu_pipeline_barrier(e, g, 0, "stage"), bytes_kept(e, g));
  for (int i = 0; i < g->n; i++) {
    const nvcu_tma_copy *f = &g->tile[i];
    const nvc_cuda_map *m = &f->view.map;
    const nvcu_rows *r = e->tile[f->put->out[0]].rows;
    const char *to = nvcu_fresh(e, "to"), *x = nvcu_let(e, "int", nvcu_view_start(e, &f->view, 0)),
               *y = nvcu_let(e, "int", nvcu_view_start(e, &f->view, 1));
    nvb_text rest = { .arena = e->a };
    for (int d = 2; d < m->rank; d++) nvb_print(&rest, ", %s", nvcu_view_start(e, &f->view, d));
    nvcu_line(e, "char *const %s = %s + stage * %d;", to, nvcu_smem_at(e, g->tiles, r->off, "char"), g->bytes);
    if (i == g->kept) nvcu_open(e, "if (all)");
    for (int b = 0, high = r->rows / m->box[1]; b < f->boxes; b++)
      nvcu_line(e, "nv_tma_load(%s + %d, &map%d, %s, %s + %d, %s + %d%s);", to, b * m->box[1] * r->swizzle, f->map,
                nvcu_pipeline_barrier(e, g, 0, "stage"), x, b / high * m->box[0], y, b % high * m->box[1],
                nvb_text_get(&rest));
    if (i == g->kept) nvcu_close(e);
  }
}

/* Opens the loop over the CTA's tiles (a CTA of a cluster has one); returns the current tile as text. */
static const char *open_tiles(nvcu_em *e, const char *blocks) {
  if (e->pipeline->kept >= 0) {
    const char *run = issue_kept(e, blocks), *end = nvcu_let(e, "ix", nvcu_text(e, "(block + 1) * %s", run));
    return nvcu_for(e, nvcu_text(e, "block * %s", run), nvcu_text(e, "(%s < %s ? %s : %s)", end, blocks, end, blocks),
                    "1", 1);
  }
  if (e->cluster == 1 && !e->pipeline->least) return nvcu_for(e, "block", blocks, "gridDim.x", 1);
  if (e->pipeline->least) return nvcu_stream_k_open(e);
  nvcu_open(e, "%s", "");
  return "block";
}

/* The k-tiles of the current tile */
typedef struct ktile_range { const char *lo, *hi; } ktile_range;
static ktile_range ktiles_of(nvcu_em *e, const nvcu_pipeline *g, const char *lo, const char *hi, const char *step) {
  if (!g->least) return (ktile_range){ lo, hi };
  return (
      ktile_range){ nvcu_let(e, "ix", nvcu_text(e, "%s + work.first * %s", lo, step)),
                    nvcu_let(e, "ix", nvcu_text(e, "work.last < ktiles ? %s + work.last * %s : %s", lo, step, hi)) };
}

static void emit_producer(nvcu_em *e, nvcu_pipeline *g, void (*coordinates)(nvcu_em *e, const char *block),
                          const char *blocks) {
  nvcu_open(e, "if (threadIdx.x == %d)", 32 * e->warps);
  nvcu_line(e, "int stage = 0, phase = 1;");
  begin_kept(e, g);
  coordinates(e, open_tiles(e, blocks));
  load_kept(e, g);
  const nvf_stmt *s = g->loop;
  const char *lo = nvcu_uniform(e, s->lo), *hi = nvcu_uniform(e, s->hi),
             *step = s->step ? nvcu_uniform(e, s->step) : "1";
  ktile_range k = ktiles_of(e, g, lo, hi, step);
  e->var[s->var] = nvcu_for(e, k.lo, k.hi, step, 1);
  emit_fetch(e, g);
  nvcu_pipeline_advance(e, g);
  nvcu_close(e);
  nvcu_stream_k_fetch(e, g);
  nvcu_close(e);
  nvcu_close(e);
}

static void emit_consumer(nvcu_em *e, nvcu_pipeline *g, const nvc_seq *q,
                          void (*coordinates)(nvcu_em *e, const char *block), const char *blocks) {
  nvcu_line(e, g->early ? "int stage = 0, phase = 0, parity = 0;" : "int stage = 0, phase = 0;");
  const char *b = open_tiles(e, blocks);
  int more = e->cluster == 1; /* persistent: every warp continues with the next tile */
  if (more) nvcu_loop_opened(e, 1);
  coordinates(e, b);
  nvcu_homes(e);
  e->nested += more;
  nvcu_tma_epilogue_begin(e, g, q);
  nvcu_seq(e, q);
  if (g->early) nvcu_line(e, "parity ^= 1;");
  e->nested -= more;
  nvcu_cluster_end(e);
  nvcu_close(e);
  if (g->out)
    nvcu_line(e, "if (lane == 0) nv_tma_store_wait<0>();"); /* a CTA exits after TMA has read its shared memory */
}

int nvcu_epilogue_parts(const nvcu_em *e, nvcu_slice *s) {
  if (!e->pipeline || e->cluster > 1) return 0; /* in a cluster, epilogue and sums differ in layout */
  if (e->pipeline->parts > 1) *s = e->pipeline->part;
  return e->pipeline->parts;
}

/* Emits the addresses at which warps read the current stage. */
static void at_stage(nvcu_em *e, const nvcu_pipeline *g) {
  for (int i = 0; i < g->n && g->a_registers; i++) {
    nvcu_rows *r = e->tile[g->tile[i].put->out[0]].rows;
    const char *off = nvcu_text(e, "stage * %d + %d", g->bytes, (int)r->off);
    r->stages = nvcu_smem_at(e, g->tiles, 0, "char");
    if (g->few) r->at = nvcu_let(e, "char *", nvcu_text(e, "%s + %s", r->stages, off));
    for (int h = 0; h < 2 && r->lane[h]; h++) r->byte[h] = nvcu_let(e, "int", nvcu_text(e, "%s + %s", off, r->lane[h]));
  }
}

int nvcu_warp_specialized_loop(nvcu_em *e, nvc_nest *r, const char *lo, const char *hi, const char *step) {
  nvcu_pipeline *g = e->pipeline;
  const nvf_stmt *s = r->s.at[0];
  if (!g || g->loop != s) return 0;
  for (int c = 0; c < g->nsum && g->behind; c++)
    for (int i = 0; i < nvc_items(&e->t->tile[g->sum[c]->in[0]]); i++)
      nvcu_line(e, "nv_keep(%s);", nvcu_tile_item(e, g->sum[c]->in[0], i));
  for (int c = 0; c < g->nsum && g->a_registers && !g->few; c++) nvcu_begin_a_registers(e, g->sum[c]);
  if (g->behind) nvcu_line(e, "int free = -1;"); /* the previous k-tile's stage, which WGMMAs may still read */
  ktile_range all = ktiles_of(e, g, lo, hi, step);
  const char *asked = all.lo; /* the k-tile in which the epilogue's matrix is requested */
  if (g->early) {
    const char *late = nvcu_let(e, "ix", nvcu_text(e, "%s + %d * %s", all.lo, LATE, step));
    asked = nvcu_let(e, "ix", nvcu_text(e, "%s < %s ? %s : %s", late, all.hi, late, all.lo));
  }
  const char *k = e->var[s->var] = nvcu_for(e, all.lo, all.hi, step, 1);
  nvcu_line(e, "nv_mbarrier_wait(%s, phase);", nvcu_pipeline_barrier(e, g, 0, "stage"));
  at_stage(e, g);
  nvcu_seq(e, r->body);
  nvcu_pipeline_release(e, g, g->behind ? "free >= 0 && " : "", g->behind ? "free" : "stage");
  if (g->behind) nvcu_line(e, "free = stage;");
  nvcu_pipeline_advance(e, g);
  if (g->early) { /* the previous tile's stores have left shared memory by now */
    nvcu_open(e, "if (%s%s == %s)", g->least ? "work.finishes() && " : "", k, asked);
    nvcu_tma_epilogue_fetch(e, g);
    nvcu_close(e);
  }
  nvcu_close(e);
  if (g->behind) {
    nvcu_line(e, "nv_wgmma_wait<0>();");
    nvcu_pipeline_release(e, g, "free >= 0 && ", "free");
  }
  if (g->early) {
    nvcu_open(e, "if (!(%s < %s))", all.lo, all.hi);
    nvcu_tma_epilogue_fetch(e, g);
    nvcu_close(e);
  }
  nvcu_stream_k_join(e, g);
  return 1;
}

int nvcu_warp_specialized(nvcu_em *e, const nvc_seq *q, void (*coordinates)(nvcu_em *e, const char *block),
                          const char *blocks) {
  const nvc_nest *nest;
  const nvf_stmt *s = find_loop(e, q, &nest);
  if (!s) return 0;
  if (e->target->arch / 10 != 9)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] warp specialisation needs compute capability 9.0");
  if (e->k->npart != 1 || e->warps % GROUP)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a warp-specialised kernel must have one part, of whole warpgroups");
  nvcu_pipeline *g = NVB_NEW(e->a, nvcu_pipeline);
  *g = (nvcu_pipeline){ .loop = s, .stages = (int)nvc_hint(&e->r, s, NVF_HINT_STAGES, 2), .groups = e->warps / GROUP };
  see_body(e, g, nest->body);
  find_kept(e, g);
  int added = nvg_is_f8(nvcu_operand_type(e, g->sum[0])); /* each k-tile waits for its WGMMAs */
  for (int i = 0; i < g->n; i++)
    g->a_registers |= nvcu_is_from_registers(e, g->sum[0], e->tile[g->tile[i].put->out[0]].rows);
  g->few = g->a_registers && nvcu_sum_of(e, g->sum[0]).nq <= FEW_COLUMNS;
  g->behind = g->a_registers ? g->stages > 2 && !g->few : g->stages >= BEHIND && g->nsum == 1 && !added;
  g->tiles = nvcu_rows_smem(e, (int64_t)g->bytes * g->stages);
  e->pipeline = g;
  nvcu_tma_epilogue_plan(e, g);
  g->bars = nvcu_smem_new(e, 16 * g->stages, 0);
  nvcu_stream_k_plan(e, g, s);
  set_up(e, g);
  nvcu_stream_k_begin(e, g, blocks);
  int threads = 32 * (e->warps + GROUP), all = REGISTERS / (threads * nvcu_least_blocks(e)) / 8 * 8;
  int more = (all * (g->groups + 1) - PRODUCER_REGISTERS) / g->groups / 8 * 8, change = g->groups > 1;
  nvcu_open(e, "if (warp >= %d)", e->warps);
  if (change) nvcu_line(e, "nv_setmaxnreg_dec<%d>();", PRODUCER_REGISTERS);
  emit_producer(e, g, coordinates, blocks);
  nvcu_close(e);
  nvcu_open(e, "else");
  if (change) nvcu_line(e, "nv_setmaxnreg_inc<%d>();", more < 240 ? more : 240);
  emit_consumer(e, g, q, coordinates, blocks);
  nvcu_close(e);
  return 1;
}
