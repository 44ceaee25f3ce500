/* Emits loop nests around statements, with loops cut as loop_split.c decides: without masks while every relation holds
   for whole vectors, then with masks, and not at all where no effect is left. Also reads and writes the values of
   tiles. Never decides what a statement becomes. */
#include "codegen/llvm/emit.h"
#include "frag/dtype.h"

/* ---- tiles */
/* Address of a tile's item in scratch, at the open loops */
static val tile_address(nvcl_em *e, int tile, int item) {
  const nvcl_tile *t = &e->tile[tile];
  const nvf_layout *l = &e->t->tile[tile];
  int64_t bytes = (int64_t)t->lanes * nvg_size(e->k->tile[tile].type);
  val at = NULL;
  for (int i = 0; i < l->n; i++) {
    if (l->d[i].level != 'I' || l->d[i].extent == 1) continue;
    val v = nvcl_loop_value(e, &l->d[i], 1);
    if (!v) nvb_throw(e->a, NVM_ERR_INTERNAL, "[llvm] tile %s is used outside of its loops", e->k->tile[tile].name);
    at = at ? LLVMBuildNSWAdd(e->b, LLVMBuildNSWMul(e->b, at, nvcl_int(e, l->d[i].extent), ""), v, "") : v;
  }
  val p = e->scratch;
  if (at) {
    at = LLVMBuildNSWMul(e->b, at, nvcl_int(e, t->nitem * bytes), "");
    p = LLVMBuildInBoundsGEP2(e->b, e->i8, p, &at, 1, "");
  }
  return nvcl_gep(e, p, t->off + item * bytes);
}

static unsigned slot_align(nvcl_em *e, int tile) {
  int64_t bytes = (int64_t)e->tile[tile].lanes * nvg_size(e->k->tile[tile].type);
  return bytes >= 64 ? 64 : (unsigned)(bytes & -bytes);
}

val nvcl_tile_item(nvcl_em *e, int tile, int item) {
  const nvcl_tile *t = &e->tile[tile];
  nvm_dtype type = e->k->tile[tile].type;
  if (t->home == NVC_VAR) return nvcl_load(e, nvcl_vec(nvcl_type(e, type), t->lanes), t->v[item], 16);
  if (t->home == NVC_SSA || (!e->r.tile[tile].mutable && t->nest == e->nest->id && t->v[item])) return t->v[item];
  val v = nvcl_load(e, nvcl_vec(nvcl_memtype(e, type), t->lanes), tile_address(e, tile, item), slot_align(e, tile));
  return nvcl_from_memory(e, v, type, t->lanes);
}

val nvcl_tile_at(nvcl_em *e, int tile, const nvf_layout *l, int item) {
  val v = nvcl_tile_item(e, tile, nvc_match_item(&e->t->tile[tile], l, item));
  if (!v) nvb_throw(e->a, NVM_ERR_INTERNAL, "[llvm] tile %s has no value", e->k->tile[tile].name);
  return l ? nvcl_splat(e, v, nvcl_layout_lanes(e, l)) : v;
}

void nvcl_define(nvcl_em *e, int tile, int item, val v) {
  nvcl_tile *t = &e->tile[tile];
  nvm_dtype type = e->k->tile[tile].type;
  v = nvcl_splat(e, v, t->lanes);
  if (t->home == NVC_VAR) {
    if (!t->v[item]) {
      t->v[item] = nvcl_slot(e, nvcl_vec(nvcl_type(e, type), t->lanes), e->k->tile[tile].name);
      LLVMSetAlignment(t->v[item], 64);
    }
    nvcl_store(e, v, t->v[item], 16);
    return;
  }
  if (t->home == NVC_MEM)
    nvcl_store(e, nvcl_to_memory(e, v, type, t->lanes), tile_address(e, tile, item), slot_align(e, tile));
  t->v[item] = v;
}

/* ---- nests */
static void emit_level(nvcl_em *e, nvc_nest *r, int p);

/* Emits a loop whose variable counts in the digit's stride, as addresses need it. */
static void one_loop(nvcl_em *e, nvc_nest *r, int p, val lo, val hi) {
  const nvf_digit *d = &r->loop[p];
  val by = nvcl_int(e, d->stride);
  nvcl_for f;
  lo = LLVMBuildNSWMul(e->b, lo, by, "");
  hi = LLVMBuildNSWMul(e->b, hi, by, "");
  nvcl_for_begin(e, &f, lo, hi, by, e->k->axis[d->axis]);
  e->loop[e->nloop++] = (nvcl_loop){ d->axis, d->extent, d->stride, d->stride, f.i };
  emit_level(e, r, p + 1);
  if (e->search) nvcl_search_step(e, e->search);
  e->nloop--;
  nvcl_for_end(e, &f);
}

/* Is the body emitted item by item, instead of statement by statement? It is if little is computed: then the streams of
   memory advance side by side (a sum over two inputs is a tenth faster than with eight lines of one and eight of the
   other). */
static int item_by_item(nvcl_em *e, const nvc_nest *r) {
  enum { LITTLE = 24 };
  const nvf_layout *l = nvc_layout_of(&e->r, r->s.at[0]);
  int cost = 0;
  for (int i = 0; i < r->s.n; i++) {
    const nvf_stmt *s = r->s.at[i];
    if (!nvcl_by_items(s) || !nvc_same_items(nvc_layout_of(&e->r, s), l)) return 0;
    if (s->op == NVF_MAP) cost += s->frag->cost;
  }
  return cost <= LITTLE;
}

/* Do values of the nest end in a reduction of its own? Then nothing is lost with an item that no lane of it needs. */
static int is_reduced_alone(nvcl_em *e, const nvc_nest *r) {
  for (int i = 0; i < r->s.n; i++)
    for (int o = 0; o < r->s.at[i]->nout && r->s.at[i]->op != NVF_REDUCE; o++) {
      const nvc_tile_use *t = &e->r.tile[r->s.at[i]->out[o]];
      if (t->kept || t->mutable) return 0;
    }
  return e->red.n > 0;
}

static void emit_item(nvcl_em *e, const nvc_nest *r, int item) {
  for (int i = 0; i < r->s.n; i++)
    if (nvcl_side(e, r->s.at[i]) != NVC_SKIPPED) nvcl_stmt_items(e, r->s.at[i], item, item + 1);
}

/* Emits an item at the end of a row, where relations of the loop may fail: without masks if they hold in all lanes,
   and not at all if they fail in all. With masks, it would take as long as several others. */
static void emit_last_item(nvcl_em *e, const nvc_nest *r, int item) {
  const nvf_layout *l = nvc_layout_of(&e->r, r->s.at[0]);
  uint64_t known = e->known;
  val every = nvcl_lanes_hold(e, e->active, l, item, 1);
  val some = every ? nvcl_lanes_hold(e, e->active, l, item, 0) : NULL;
  if (!some) {
    emit_item(e, r, item);
    return;
  }
  blk whole = nvcl_block(e, "whole"), part = nvcl_block(e, "part"), masked = nvcl_block(e, "masked"),
      next = nvcl_block(e, "next");
  LLVMBuildCondBr(e->b, every, whole, part);
  nvcl_at(e, whole);
  e->known = known | e->active;
  emit_item(e, r, item);
  e->known = known;
  LLVMBuildBr(e->b, next);
  nvcl_at(e, part);
  LLVMBuildCondBr(e->b, some, masked, next);
  nvcl_at(e, masked);
  emit_item(e, r, item);
  LLVMBuildBr(e->b, next);
  nvcl_at(e, next);
}

static void emit_body(nvcl_em *e, nvc_nest *r) {
  nvcl_prefetch_part(e, r);
  int items = r->s.n && !e->search && item_by_item(e, r) ? nvc_items(nvc_layout_of(&e->r, r->s.at[0])) : 0;
  int ends = items > 1 && e->active && !e->compact && is_reduced_alone(e, r);
  for (int k = 0; k < items; k++) (ends ? emit_last_item : emit_item)(e, r, k);
  if (items) return;
  for (int i = 0; i < r->s.n; i++) {
    if (nvcl_side(e, r->s.at[i]) == NVC_SKIPPED) continue;
    nvcl_group_touch(e, r->s.at[i]);
    nvcl_stmt(e, r->s.at[i]);
  }
  nvcl_group_close(e);
}

/* Emits iterations [lo, hi), with masks unless none of them needs one. */
static void emit_masked(nvcl_em *e, nvc_nest *r, int p, const nvcl_cut *c, val lo, val hi) {
  uint64_t known = e->known, active = e->active;
  if (c->exact) e->known = known | c->set;
  else e->active = active | (c->set & r->carries);
  one_loop(e, r, p, lo, hi);
  e->known = known;
  e->active = active;
}

/* Emits iterations [0, full) without masks, the others with them. */
static void cut_in_two(nvcl_em *e, nvc_nest *r, int p, const nvcl_cut *c) {
  uint64_t known = e->known;
  int split = !c->exact && !e->compact && !nvcl_is_expensive(e, r);
  if (split) {
    e->known = known | c->set;
    one_loop(e, r, p, nvcl_int(e, 0), c->full);
    e->known = known;
  }
  emit_masked(e, r, p, c, split ? c->full : nvcl_int(e, 0), c->any);
}

/* Emits iterations [lo, hi), which one version serves: the first that does; else the whole body. */
static void one_version(nvcl_em *e, nvc_nest *r, int p, val lo, val hi) {
  nvcl_split *s = e->split;
  uint64_t known = e->known, active = e->active;
  blk next = nvcl_block(e, "share.done");
  for (int v = 0; v < s->n; v++) {
    blk yes = nvcl_block(e, "version"), no = nvcl_block(e, "other");
    LLVMBuildCondBr(e->b, nvcl_serves(e, v, lo, hi), yes, no);
    nvcl_at(e, yes);
    e->version = s->at[v];
    e->known = known | e->version->known;
    one_loop(e, r, p, lo, hi);
    e->known = known;
    e->version = NULL;
    LLVMBuildBr(e->b, next);
    nvcl_at(e, no);
  }
  e->active = active | (s->lines & r->carries & ~known);
  one_loop(e, r, p, lo, hi);
  e->active = active;
  LLVMBuildBr(e->b, next);
  nvcl_at(e, next);
}

static void shared_out(nvcl_em *e, nvc_nest *r, int p, val any) {
  nvcl_split_at(e, r);
  val zero = nvcl_int(e, 0);
  blk from = nvcl_here(e), share = nvcl_block(e, "share"), done = nvcl_block(e, "shared.out");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, any, zero, ""), share, done);
  nvcl_at(e, share);
  val lo = LLVMBuildPhi(e->b, e->i64, "lo"), hi = nvcl_same_until(e, lo, any);
  one_version(e, r, p, lo, hi);
  LLVMAddIncoming(lo, (val[]){ zero, hi }, (blk[]){ from, nvcl_here(e) }, 2);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, hi, any, ""), share, done);
  nvcl_at(e, done);
}

/* Emits a search if the nest has one, in which all iterations look for the best element. */
static void emit_search(nvcl_em *e, nvc_nest *r, int p, const nvcl_cut *c) {
  nvcl_search *s = nvcl_search_new(e, r);
  if (!s) {
    cut_in_two(e, r, p, c);
    return;
  }
  nvcl_search_begin(e, s);
  e->search = s;
  cut_in_two(e, r, p, c);
  e->search = NULL;
  nvcl_search_end(e, s);
}

static void emit_level(nvcl_em *e, nvc_nest *r, int p) {
  for (int i = 0; i < e->red.n; i++) nvcl_reduce_before(e, e->red.at[i], p);
  if (p == r->nloop) {
    emit_body(e, r);
  } else {
    nvcl_cut c = nvcl_cut_loop(e, r, p);
    for (int i = 0; i < e->red.n; i++) nvcl_reduce_limit(e, e->red.at[i], p, c.any);
    if (e->split && p == r->nloop - 1) shared_out(e, r, p, c.any);
    else if (p == r->nloop - 1) emit_search(e, r, p, &c);
    else cut_in_two(e, r, p, &c);
  }
  for (int i = 0; i < e->red.n; i++) nvcl_reduce_after(e, e->red.at[i], p);
}

static void copy_tile(nvcl_em *e, int to, int from) {
  const nvf_layout *l = &e->t->tile[to];
  nvf_digit loop[NVC_NEST_LOOPS];
  nvcl_for f[NVC_NEST_LOOPS];
  int n = 0, open = e->nloop;
  for (int i = 0; i < l->n; i++)
    if (l->d[i].level == 'I' && l->d[i].extent > 1) loop[n++] = l->d[i];
  for (int i = 0; i < n; i++) {
    nvcl_for_begin(e, &f[i], nvcl_int(e, 0), nvcl_int(e, loop[i].extent), nvcl_int(e, 1), "copy");
    e->loop[e->nloop++] = (nvcl_loop){ loop[i].axis, loop[i].extent, loop[i].stride, 1, f[i].i };
  }
  for (int i = 0; i < e->tile[to].nitem; i++) nvcl_define(e, to, i, nvcl_tile_item(e, from, i));
  while (n-- > 0) nvcl_for_end(e, &f[n]);
  e->nloop = open;
}

static void emit_for(nvcl_em *e, nvc_nest *r) {
  const nvf_stmt *s = r->s.at[0];
  for (int i = 0; i < s->ncarry; i++) copy_tile(e, s->carry[i].inner, s->carry[i].outer);
  val lo = nvcl_uniform(e, s->lo), hi = nvcl_uniform(e, s->hi),
      step = s->step ? nvcl_uniform(e, s->step) : nvcl_int(e, 1);
  nvcl_for f;
  nvcl_for_begin(e, &f, lo, hi, step, e->k->var[s->var]);
  e->var[s->var] = f.i;
  nvcl_emit_seq(e, r->body);
  nvcl_for_end(e, &f);
  e->nest = r;
  for (int i = 0; i < s->ncarry; i++) copy_tile(e, s->carry[i].outer, s->carry[i].inner);
}

static void emit_if(nvcl_em *e, nvc_nest *r) {
  nvcl_mask m = nvcl_cond(e, r->s.at[0]->where, NULL, 0);
  val c = m.one ? m.one : LLVMConstInt(e->i1, 1, 0);
  blk yes = nvcl_block(e, "then"), no = nvcl_block(e, "else"), next = nvcl_block(e, "next");
  LLVMBuildCondBr(e->b, c, yes, no);
  nvcl_at(e, yes);
  if (r->body) nvcl_emit_seq(e, r->body);
  LLVMBuildBr(e->b, next);
  nvcl_at(e, no);
  if (r->other) nvcl_emit_seq(e, r->other);
  LLVMBuildBr(e->b, next);
  nvcl_at(e, next);
}

void nvcl_emit_seq(nvcl_em *e, const nvc_seq *q) {
  for (int i = 0; i < q->n; i++) {
    nvc_nest *r = q->nest[i];
    e->seq = q;
    e->nest = r;
    e->red.n = 0;
    if (r->solo) {
      (r->s.at[0]->op == NVF_FOR ? emit_for : emit_if)(e, r);
      continue;
    }
    for (int j = 0; j < r->s.n; j++)
      if (r->s.at[j]->op == NVF_REDUCE) {
        nvcl_red *red = nvcl_reduce_new(e, r->s.at[j], r);
        NVB_PUSH(e->a, e->red, red);
      }
    e->split = nvcl_split_new(e, r);
    emit_level(e, r, 0);
    e->split = NULL;
  }
}
