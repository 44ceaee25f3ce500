/* Emits one statement inside its loops: memory, conditions, shared tiles, prefetches. reduce.c, scan.c and relayout.c
   emit operations along an axis or between layouts. Never opens the loops of a nest. */
#include <string.h>
#include "codegen/llvm/emit.h"
#include "frag/dtype.h"

static nvcl_access buffer_access(nvcl_em *e, const nvf_stmt *s, const nvf_layout *l, int item) {
  nvm_dtype t = e->k->param[s->buf].type;
  int n = nvcl_layout_lanes(e, l);
  nvcl_mask m = nvcl_cond(e, s->where, l, item);
  return (nvcl_access){ .base = e->param[s->buf],
                        .type = nvg_real_of(t),
                        .parts = nvg_class_of(t) == NVG_COMPLEX ? 2 : 1,
                        .at = nvcl_index(e, s->map, l, item),
                        .n = n,
                        .mask = m.all,
                        .some = m.one };
}

/* The prefetch of an access: its own address so many blocks, rows or bytes later. rows: by axis; NULL: none */
typedef struct later { int64_t blocks, bytes, *rows; } later;

static int lane_axis(const nvf_layout *l) { /* the axis of the lanes; -1: none */
  int axis = -1;
  for (int i = 0; i < l->n; i++)
    if (l->d[i].level == 'l' && l->d[i].extent > 1) axis = l->d[i].axis;
  return axis;
}

/* Prefetches an address. A prefetch never faults, but for a missing page the machine searches; so a masked one
   takes the buffer's address. Of the items that share a cache line, the first one prefetches it. */
static void emit_prefetch(nvcl_em *e, const nvf_stmt *s, const nvf_layout *l, int item, const later *when) {
  enum { LINE = 64 };
  e->ahead = when->blocks;
  e->shift = when->rows;
  nvcl_xv at = nvcl_index(e, s->map, l, item);
  e->ahead = 0;
  e->shift = NULL;
  int64_t size = nvg_size(e->k->param[s->buf].type), width = at.form == 1 ? size * nvcl_layout_lanes(e, l) : size;
  if (at.form == 2 || (at.form == 1 && nvc_axis_part(l, lane_axis(l), item) * size % LINE)) return;
  at.k += at.form == 1 ? at.pat[0] : 0;
  at.form = 0;
  val i = LLVMBuildMul(e->b, nvcl_index_value(e, &at, 1), nvcl_int(e, size), "");
  val p = LLVMBuildGEP2(e->b, e->i8, e->param[s->buf], &i, 1, ""), some = nvcl_cond(e, s->where, l, item).one;
  if (some) p = LLVMBuildSelect(e->b, some, p, e->param[s->buf], "");
  for (int64_t k = 0; k < width; k += LINE) {
    val line = nvcl_gep(e, p, k + when->bytes);
    nvcl_prefetch_line(e, line, s->op == NVF_STORE);
  }
}

static int has_streamed_store(nvcl_em *e) {
  for (int i = 0; i < e->nest->s.n; i++)
    if (e->nest->s.at[i]->op == NVF_STORE && nvc_hint(&e->r, e->nest->s.at[i], NVF_HINT_NT, 0)) return 1;
  return 0;
}

/* The prefetch distance of a loop that reads in order to reduce or to store past the caches: memory should never idle,
   and the hardware's prefetcher stops at the end of a page. One stream: three quarters of a page (2^24 elements with
   512-bit vectors, relative to C loops: 2.5 x + y 1.05 -> 0.95, 2 x + 3 y z - x y + z z 1.00 -> 0.90, sum((x - y)^2)
   1.09 -> 0.94; 1 and 4 KB gain half of that, 8 KB nothing); on AMD's cores with 512 bits a quarter (the second of
   these: 9.4 -> 7.6 ms, C 8.0). A few rows at a time: the next rows (mean and variance of columns: 1.57 -> 1.32 of a
   plain read), of narrow strips those that lie 4 KB ahead (strips of 64: 0.53 -> 0.73 of the rate of whole rows). With
   many rows the hardware alone does better. */
static void next_in_loop(nvcl_em *e, const nvf_stmt *s, const nvf_layout *l, later *when) {
  enum { AHEAD = 3072, AHEAD_ZEN = 1024, STRIPS = 4096, FEW = 8 };
  int zen = e->target->width == 64 && !strncmp(e->target->cpu, "znver", 5), lane = lane_axis(l), rows = 1;
  int64_t *to = NVB_NEWN(e->a, int64_t, e->k->naxis), width = nvg_size(e->k->param[s->buf].type);
  for (int i = 0; i < l->n; i++)
    if (l->d[i].level == 'i' && l->d[i].extent > 1 && l->d[i].axis != lane) {
      to[l->d[i].axis] = l->d[i].extent * l->d[i].stride;
      rows *= l->d[i].extent;
    }
  if (lane < 0 || rows > FEW) return;
  if (rows == 1) {
    when->bytes = zen ? AHEAD_ZEN : AHEAD;
    return;
  }
  width *= nvf_extent(l, lane) * rows;
  for (int i = 0; i < e->k->naxis; i++) to[i] *= width < STRIPS ? STRIPS / width : 1;
  when->rows = to;
}

/* Of the nests that execute the load, the one that computes most: there memory would idle. */
static const nvc_nest *longest_nest(const nvcl_em *e, const nvf_stmt *s) {
  const nvc_nest *best = e->r.nest_of[s->id];
  int most = 0;
  for (int i = 0; i < e->seq->n; i++) {
    const nvc_nest *r = e->seq->nest[i];
    int cost = 0, loads = 0;
    for (int j = 0; j < r->s.n; j++) {
      loads |= r->s.at[j] == s;
      if (r->s.at[j]->op == NVF_MAP) cost += r->s.at[j]->frag->cost;
    }
    if (loads && cost > most) {
      most = cost;
      best = r;
    }
  }
  return best;
}

/* Is a load the same for each block, beside another that is not? Then the blocks before have brought it into a
   cache. */
static int is_read_by_all_blocks(const nvcl_em *e, const nvf_stmt *s) {
  if (nvcl_moves_with_block(e, s->map)) return 0;
  for (int i = 0; i < e->nest->s.n; i++)
    if (e->nest->s.at[i]->op == NVF_LOAD && nvcl_moves_with_block(e, e->nest->s.at[i]->map)) return 1;
  return 0;
}

/* The prefetch of a load. Without a hint, one block ahead if several nests execute the load, because memory would idle
   while they compute (softmax 4096 x 4096: 15.0 -> 12.6 ms with non-temporal stores; in the nest of the exponentials
   instead of the maximum's, which takes less time than memory does, another tenth). */
static later ahead_of(nvcl_em *e, const nvf_stmt *s, const nvf_layout *l) {
  later when = { 0 };
  int again = e->r.tile[s->out[0]].repeated;
  if (nvcl_spreads_prefetches(e)) return when;
  if (longest_nest(e, s) != e->nest) return when;
  if (nvcl_moves_with_block(e, s->map)) when.blocks = nvc_hint(&e->r, s, NVF_HINT_PREFETCH, again);
  if (e->nest->nloop && !e->active && (e->red.n || has_streamed_store(e)) &&
      nvc_hint(&e->r, s, NVF_HINT_PREFETCH, -1) < 0 && !again && !is_read_by_all_blocks(e, s))
    next_in_loop(e, s, l, &when);
  return when;
}

void nvcl_emit_load(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  later when = ahead_of(e, s, l);
  for (int i = from; i < to; i++) {
    val out[2];
    nvcl_access x = buffer_access(e, s, l, i);
    if (when.blocks || when.bytes || when.rows) emit_prefetch(e, s, l, i, &when);
    nvcl_read(e, &x, s->has_other ? s->other : 0, out);
    for (int j = 0; j < s->nout; j++) nvcl_define(e, s->out[j], i, out[j]);
  }
}

void nvcl_emit_store(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  int stream = nvc_hint(&e->r, s, NVF_HINT_NT, 0) != 0, moves = nvcl_moves_with_block(e, s->map);
  later when = { .blocks = moves && !nvcl_spreads_prefetches(e) ? nvc_hint(&e->r, s, NVF_HINT_PREFETCH, 0) : 0 };
  for (int i = from; i < to; i++) {
    val in[2];
    nvcl_access x = buffer_access(e, s, l, i);
    if (when.blocks) emit_prefetch(e, s, l, i, &when);
    for (int j = 0; j < s->nin; j++) in[j] = nvcl_tile_at(e, s->in[j], l, i);
    nvcl_write(e, &x, in, l, stream);
  }
}

/* Lane by lane; the maximum is atomic because blocks run in parallel. */
void nvcl_emit_atomic_max(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  nvm_dtype t = e->k->param[s->buf].type;
  LLVMAtomicRMWBinOp op = nvg_class_of(t) == NVG_SIGNED ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
  for (int i = from; i < to; i++) {
    nvcl_access x = buffer_access(e, s, l, i);
    val at = nvcl_index_value(e, &x.at, x.n), v = nvcl_tile_at(e, s->in[0], l, i);
    for (int j = 0; j < x.n; j++) {
      val aj = x.n == 1 ? at : LLVMBuildExtractElement(e->b, at, nvcl_i32(e, j), "");
      val vj = x.n == 1 ? v : LLVMBuildExtractElement(e->b, v, nvcl_i32(e, j), "");
      val mj = x.mask ? LLVMBuildExtractElement(e->b, x.mask, nvcl_i32(e, j), "") : x.some;
      if (x.mask && x.some) mj = LLVMBuildAnd(e->b, mj, x.some, "");
      blk yes = nvcl_block(e, "atomic"), next = nvcl_block(e, "next");
      LLVMBuildCondBr(e->b, mj ? mj : LLVMConstInt(e->i1, 1, 0), yes, next);
      nvcl_at(e, yes);
      val p = LLVMBuildGEP2(e->b, nvcl_memtype(e, t), x.base, &aj, 1, "");
      LLVMBuildAtomicRMW(e->b, op, p, vj, LLVMAtomicOrderingMonotonic, 0);
      LLVMBuildBr(e->b, next);
      nvcl_at(e, next);
    }
  }
}

void nvcl_emit_check(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  int n = nvcl_layout_lanes(e, l);
  for (int i = from; i < to; i++) {
    val ok = nvcl_mask_value(e, nvcl_cond(e, s->where, l, i), n);
    if (!ok) continue;
    blk bad = nvcl_block(e, "bad"), next = nvcl_block(e, "next");
    LLVMBuildCondBr(e->b, LLVMBuildFreeze(e->b, nvcl_any(e, LLVMBuildNot(e->b, ok, "")), ""), bad, next);
    nvcl_at(e, bad);
    nvcl_store(e, nvcl_i32(e, s->id + 1), e->error, 4);
    LLVMBuildBr(e->b, e->failed);
    nvcl_at(e, next);
  }
}

void nvcl_emit_index(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  int n = nvcl_layout_lanes(e, l);
  for (int i = from; i < to; i++) {
    nvcl_xv x = nvcl_index(e, s->map, l, i);
    nvcl_define(e, s->out[0], i, nvcl_index_value(e, &x, n));
  }
}

void nvcl_emit_test(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  int n = nvcl_layout_lanes(e, l);
  for (int i = from; i < to; i++) {
    val m = nvcl_mask_value(e, nvcl_cond(e, s->where, l, i), n);
    nvcl_define(e, s->out[0], i, m ? m : LLVMConstAllOnes(nvcl_vec(e->i1, n)));
  }
}

void nvcl_emit_zeros(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  int n = nvcl_layout_lanes(e, nvc_layout_of(&e->r, s));
  for (int i = from; i < to; i++) nvcl_define(e, s->out[0], i, nvcl_zero(e, e->k->tile[s->out[0]].type, n));
}

/* ---- shared tiles: row-major arrays in scratch */
const nvf_expr *nvcl_shared_map(nvcl_em *e, int tile) {
  const nvcl_tile *t = &e->tile[tile];
  nvf_expr *sum = NVB_NEW(e->a, nvf_expr);
  for (int i = 0; i < t->norder; i++) { /* (a * extent + b) * extent + c */
    nvf_expr *x = NVB_NEWN(e->a, nvf_expr, 4);
    x[0] = (nvf_expr){ .kind = NVF_CONST, .value = t->extent[i] };
    x[1] = (nvf_expr){ .kind = NVF_MUL, .a = sum, .b = &x[0] };
    x[2] = (nvf_expr){ .kind = NVF_AXIS, .id = t->order[i] };
    x[3] = (nvf_expr){ .kind = NVF_ADD, .a = &x[1], .b = &x[2] };
    sum = &x[3];
  }
  return sum;
}

nvcl_access nvcl_shared(nvcl_em *e, int tile, const nvf_expr *map, const nvf_layout *l, int item) {
  return (nvcl_access){ .base = nvcl_gep(e, e->scratch, e->tile[tile].off),
                        .type = e->k->tile[tile].type,
                        .parts = 1,
                        .at = nvcl_index(e, map, l, item),
                        .n = nvcl_layout_lanes(e, l) };
}

void nvcl_emit_put(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  const nvf_expr *map = nvcl_shared_map(e, s->out[0]);
  for (int i = from; i < to; i++) {
    nvcl_access x = nvcl_shared(e, s->out[0], map, l, i);
    val v = nvcl_tile_at(e, s->in[0], l, i);
    nvcl_write(e, &x, &v, l, 0);
  }
}

void nvcl_emit_get(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  const nvf_expr *map = nvcl_shared_map(e, s->in[0]);
  for (int i = from; i < to; i++) {
    nvcl_access x = nvcl_shared(e, s->in[0], map, l, i);
    val v;
    nvcl_read(e, &x, 0, &v);
    nvcl_define(e, s->out[0], i, v);
  }
}

void nvcl_emit_reduce(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  if (e->search) return; /* the search replaces the nest's only reduction */
  for (int i = 0; i < e->red.n; i++)
    if (nvcl_reduce_of(e->red.at[i]) == s) nvcl_reduce_step(e, e->red.at[i], from, to);
}

int nvcl_by_items(const nvf_stmt *s) {
  return s->op == NVF_LOAD || s->op == NVF_STORE || s->op == NVF_REDUCE || (s->op == NVF_MAP && s->frag->rare < 0);
}

void nvcl_stmt_items(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  static void (*const emitters[NVF_NOPS])(nvcl_em *, const nvf_stmt *, int, int) = {
#define OPERATION(id, word, ...) [NVF_##id] = nvcl_emit_##word,
#include "kernel/statements.def"
  };
  if (emitters[s->op]) emitters[s->op](e, s, from, to); /* for and if are nests of their own */
}

void nvcl_stmt(nvcl_em *e, const nvf_stmt *s) { nvcl_stmt_items(e, s, 0, nvc_items(nvc_layout_of(&e->r, s))); }
