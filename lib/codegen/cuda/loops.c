/* Emits loop nests around statements, and keeps the values of tiles. A loop ends where no effect is left; relations
   that hold in all its iterations are not tested inside. Decides the variables of a tile and the bounds of loops, never
   what a statement computes. */
#include <string.h>
#include "codegen/cuda/tensor_core.h"
#include "frag/dtype.h"

/* ---- tiles */
const char *nvcu_loop_value(const nvcu_em *e, const nvf_digit *d) {
  for (int i = e->nloop; i-- > 0;)
    if (e->loop[i].axis == d->axis && e->loop[i].stride == d->stride && e->loop[i].extent == d->extent)
      return e->loop[i].v;
  return NULL;
}

static const char *array_name(nvcu_em *e, int tile) { return nvcu_text(e, "%s_all", e->k->tile[tile].name); }

static const char *element_text(nvcu_em *e, int tile, int item) {
  const nvf_layout *l = &e->t->tile[tile];
  const char *at = NULL;
  for (int i = 0; i < l->n; i++) {
    if (!nvc_looped(&l->d[i])) continue;
    const char *v = nvcu_loop_value(e, &l->d[i]);
    if (!v) nvb_throw(e->a, NVM_ERR_INTERNAL, "[cuda] tile %s is used outside of its loops", e->k->tile[tile].name);
    at = at ? nvcu_text(e, "(%s * %d + %s)", at, l->d[i].extent, v) : v;
  }
  return nvcu_text(e, "%s[%s * %d + %d]", array_name(e, tile), at ? at : "0", e->tile[tile].nitem, item);
}

const char *nvcu_tile_item(nvcu_em *e, int tile, int item) {
  const nvcu_tile *t = &e->tile[tile];
  int here = t->home == NVCU_REG || (!e->r.tile[tile].mutable && t->nest == e->nest->id);
  if (here && t->v[item]) return t->v[item];
  if (t->home == NVCU_ARRAY) return element_text(e, tile, item);
  nvb_throw(e->a, NVM_ERR_INTERNAL, "[cuda] tile %s has no value", e->k->tile[tile].name);
}

const char *nvcu_tile_at(nvcu_em *e, int tile, const nvf_layout *l, int item) {
  return nvcu_tile_item(e, tile, nvc_match_item(&e->t->tile[tile], l, item));
}

const char *nvcu_tile_now(nvcu_em *e, int tile, const nvf_layout *l, int item) {
  const char *v = nvcu_tile_at(e, tile, l, item), *name;
  if (!e->r.tile[tile].mutable) return v;
  nvcu_line(e, "const %s %s = %s;", nvcu_type(e->k->tile[tile].type), name = nvcu_fresh(e, "q"), v);
  return name;
}

static const char *item_name(nvcu_em *e, int tile, int item) {
  return nvcu_text(e, "%s_%d", e->k->tile[tile].name, item);
}

void nvcu_define(nvcu_em *e, int tile, int item, const char *text) {
  nvcu_tile *t = &e->tile[tile];
  const char *type = nvcu_type(e->k->tile[tile].type);
  if (e->r.tile[tile].mutable) {
    const char *to = t->home == NVCU_ARRAY ? element_text(e, tile, item) : t->v[item];
    if (!to) nvcu_line(e, "%s %s = %s;", type, t->v[item] = item_name(e, tile, item), text);
    else if (strcmp(to, text)) nvcu_line(e, "%s = %s;", to, text);
    return;
  }
  nvcu_line(e, "const %s %s = %s;", type, item_name(e, tile, item), text);
  nvcu_bind(e, tile, item, item_name(e, tile, item));
}

void nvcu_bind(nvcu_em *e, int tile, int item, const char *name) {
  nvcu_tile *t = &e->tile[tile];
  if (e->r.tile[tile].mutable) return;
  if (t->home == NVCU_ARRAY) nvcu_line(e, "%s = %s;", element_text(e, tile, item), name);
  t->v[item] = name;
  t->nest = e->nest->id;
}

/* Decides the homes of the part's tiles, and declares arrays. */
void nvcu_homes(nvcu_em *e) {
  for (int i = 0; i < e->k->ntile; i++) {
    nvcu_tile *t = &e->tile[i];
    const nvc_tile_use *u = &e->r.tile[i];
    const nvf_layout *l = &e->t->tile[i];
    if (!u->def || !e->r.nest_of[u->def->id] || t->nitem || u->def->op == NVF_PUT) continue;
    t->nitem = nvc_items(l);
    t->v = NVB_NEWN(e->a, const char *, t->nitem);
    int n = t->nitem;
    for (int d = 0; d < l->n; d++)
      if (nvc_looped(&l->d[d])) n *= l->d[d].extent;
    if (!nvc_has_loops(l) || !(u->kept || u->mutable || u->scanned)) continue;
    t->home = NVCU_ARRAY;
    nvcu_line(e, "%s %s[%d];", nvcu_type(e->k->tile[i].type), array_name(e, i), n);
  }
}

/* ---- relations at the open loops: x = sign * (a - b), without items, lanes and warps */
static nvcu_xv at_open_loops(nvcu_em *e, int q) {
  nvf_layout l = { .n = e->nest->nloop };
  const struct nvf_rel *r = e->r.rel[q];
  int sign, plus;
  for (int i = 0; i < l.n; i++) l.d[i] = e->nest->loop[i];
  nvc_normal(r, &sign, &plus);
  nvf_expr minus = { .kind = NVF_SUB, .a = sign < 0 ? r->b : r->a, .b = sign < 0 ? r->a : r->b };
  return nvcu_index(e, &minus, &l, 0);
}

const char *nvcu_all_hold(nvcu_em *e, uint64_t set, const nvf_layout *l) {
  const char *all = NULL;
  for (int q = 0; q < e->r.nrel; q++) {
    nvc_line line;
    if (!(set >> q & 1) || e->known >> q & 1) continue;
    if (!nvc_linear(&e->r, e->nest, q, e->nest->nloop, l, &line)) return "";
    nvcu_xv x = at_open_loops(e, q);
    if (!x.base && x.k + line.hi >= 0) return "false";
    if (x.base) all = nvcu_and(e, all, nvcu_text(e, "(%s < %lld)", x.base, -(long long)(x.k + line.hi)));
  }
  return all;
}

/* Text of the number of iterations of loop `level`; relations that hold in all of them are added to `known`. */
static const char *iterations_text(nvcu_em *e, nvc_nest *r, int level) {
  int extent = r->loop[level].extent;
  const char *most = nvcu_text(e, "%d", extent);
  uint64_t holds = 0;
  for (int q = 0; q < e->r.nrel; q++) {
    nvc_line line;
    const nvf_layout *l = e->known >> q & 1 || !(r->carries >> q & 1) ? NULL : nvc_widest_with(&e->r, r, q);
    if (!l || !nvc_linear(&e->r, r, q, level, l, &line) || line.step <= 0) continue;
    nvcu_xv x = at_open_loops(e, q);
    x.k += line.lo;
    most = nvcu_let(e, "ix",
                    nvcu_text(e, "nv_rounds<ix>(%s, %lld, %s)", nvcu_index_text(e, &x), (long long)line.step, most));
    if (line.deepest && line.lo == line.hi) holds |= 1ull << q;
  }
  e->known |= holds;
  return most;
}

/* ---- statements */
void nvcu_emit_zeros(nvcu_em *e, const nvf_stmt *s) {
  const char *zero = nvcu_const(e, e->k->tile[s->out[0]].type, 0);
  for (int i = 0, n = nvc_items(nvc_layout_of(&e->r, s)); i < n; i++) nvcu_define(e, s->out[0], i, zero);
}

void nvcu_emit_index(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  for (int i = 0; i < nvc_items(l); i++) {
    if (!nvcu_now(e, l, i)) continue;
    e->long_index = nvc_has(s->map, NVF_MUL);
    nvcu_xv x = nvcu_index(e, s->map, l, i);
    nvcu_define(e, s->out[0], i, nvcu_index_text(e, &x));
    e->long_index = 0;
  }
}

void nvcu_emit_test(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  for (int i = 0; i < nvc_items(l); i++) {
    if (!nvcu_now(e, l, i)) continue;
    const char *c = nvcu_cond(e, s->where, l, i);
    nvcu_define(e, s->out[0], i, c ? c : "true");
  }
}

/* A thread goes on when its check fails: others wait for its values at barriers. */
void nvcu_emit_check(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  const char *all = NULL;
  if (e->pipeline) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a warp-specialised kernel cannot contain checks");
  e->checks = 1;
  for (int i = 0; i < nvc_items(l); i++) all = nvcu_and(e, all, nvcu_cond(e, s->where, l, i));
  if (!all) return;
  nvcu_open(e, "if (!(%s))", all);
  nvcu_line(e, "nv_fail(failed, %d);", s->id + 1);
  nvcu_line(e, "sound = false;");
  nvcu_close(e);
}

void nvcu_emit_reduce(nvcu_em *e, const nvf_stmt *s) {
  for (int i = 0; i < e->red.n; i++)
    if (nvcu_reduce_of(e->red.at[i]) == s) nvcu_reduce_step(e, e->red.at[i]);
}

/* Is the digit's axis one of which each CTA puts and contracts only its own index? */
static int keeps_apart(const nvcu_em *e, const nvf_stmt *s, const nvf_layout *l, const nvf_digit *d) {
  const nvf_layout own = nvf_layout_only(l, &d->axis, 1);
  int all = (s->op == NVF_PUT || s->op == NVF_CONTRACT) && nvcu_apart(l, d->axis);
  for (int j = 1; s->op == NVF_CONTRACT && j < 3; j++) {
    const nvf_layout x = nvf_layout_only(&e->t->tile[s->in[j]], &d->axis, 1);
    all &= nvf_layout_eq(&x, &own);
  }
  return all;
}

/* Throws if a statement other than a reduction or relayout would move values between the CTAs of a cluster. */
static void stays_in_block(nvcu_em *e, const nvf_stmt *s, const nvf_layout *l) {
  for (int i = 0; nvf_stmt_is(s, NVF_EXCHANGES) && s->op != NVF_RELAYOUT && i < l->n; i++)
    if (l->d[i].level == 'c' && l->d[i].extent > 1 && !keeps_apart(e, s, l, &l->d[i]))
      nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] statement %d moves values between the blocks of a cluster", s->id);
}

static void emit_statement(nvcu_em *e, const nvf_stmt *s) {
  static void (*const emitters[NVF_NOPS])(nvcu_em *, const nvf_stmt *) = {
#define OPERATION(id, word, ...) [NVF_##id] = nvcu_emit_##word,
#include "kernel/statements.def"
  };
  stays_in_block(e, s, nvc_layout_of(&e->r, s));
  if (!e->done[s->id] && emitters[s->op]) emitters[s->op](e, s); /* for and if are nests of their own */
}

/* ---- nests */
static void emit_body(nvcu_em *e, nvc_nest *r) {
  for (int i = 0; i < r->s.n; i++) {
    nvcu_group_touch(e, r->s.at[i]);
    emit_statement(e, r->s.at[i]);
  }
  nvcu_group_close(e);
}

static int is_unrolled(const nvcu_em *e, const nvc_nest *r) {
  for (int i = 0; i < r->s.n; i++) {
    int64_t n = nvc_hint(&e->r, r->s.at[i], NVF_HINT_UNROLL, 0);
    if (n > 0) return (int)n;
  }
  return 1;
}

static void emit_level(nvcu_em *e, nvc_nest *r, int p) {
  for (int i = 0; i < e->red.n; i++) nvcu_reduce_before(e, e->red.at[i], p);
  if (p == r->nloop) emit_body(e, r);
  else {
    uint64_t known = e->known;
    const char *most = iterations_text(e, r, p);
    for (int i = 0; i < e->red.n; i++) nvcu_reduce_limit(e, e->red.at[i], p, most);
    const char *v = nvcu_for(e, "0", most, "1", p + 1 == r->nloop ? is_unrolled(e, r) : 1);
    e->loop[e->nloop++] = (nvcu_loop){ r->loop[p].axis, r->loop[p].extent, r->loop[p].stride, v };
    emit_level(e, r, p + 1);
    e->nloop--;
    nvcu_close(e);
    e->known = known;
  }
  for (int i = 0; i < e->red.n; i++) nvcu_reduce_after(e, e->red.at[i], p);
}

/* ---- an epilogue in slices: a slice is loaded, computed and stored before the next one, except that loads go one
   slice ahead; so that few values take registers beside the sums */
int nvcu_now(const nvcu_em *e, const nvf_layout *l, int item) {
  if (!e->slice.each) return 1;
  for (int i = 0; i < l->n; i++)
    if (l->d[i].axis == e->slice.axis && l->d[i].stride == 8 && l->d[i].level == 'i' && l->d[i].extent > 1)
      return nvc_digit_value(l, i, item) / e->slice.each == e->slice.at;
  return e->slice.at == 0; /* a value without columns is computed once, with the first slice */
}

static int loads_first(const nvcu_em *e, const nvf_stmt *s) {
  nvc_ints uses = { 0 };
  if (s->op == NVF_LOAD) nvc_uses(&e->r, s, &uses);
  return s->op == NVF_LOAD && !uses.n;
}

static int in_parts(const nvcu_em *e, const nvc_nest *r, int axis) {
  for (int i = 0; i < r->s.n; i++) {
    nvf_op op = r->s.at[i]->op;
    if (op != NVF_LOAD && op != NVF_MAP && op != NVF_STORE && op != NVF_INDEX && op != NVF_TEST && op != NVF_REDUCE)
      return 0;
  }
  for (int i = 0; i < e->red.n; i++)
    if (!nvcu_reduce_in_parts(e->red.at[i], axis)) return 0;
  return r->nloop == 0;
}

static void emit_slice(nvcu_em *e, nvc_nest *r, nvcu_slice slice, int loads) {
  e->slice = slice;
  for (int i = 0; i < r->s.n; i++) {
    if (loads_first(e, r->s.at[i]) != loads) continue;
    nvcu_group_touch(e, r->s.at[i]);
    emit_statement(e, r->s.at[i]);
  }
  nvcu_group_close(e);
  e->slice.each = 0;
}

static void body_in_parts(nvcu_em *e, nvc_nest *r, nvcu_slice slice, int parts) {
  for (int j = 0; j < e->red.n; j++) nvcu_reduce_before(e, e->red.at[j], 0);
  for (int i = -1; i < parts; i++) {
    slice.at = i + 1;
    if (i + 1 < parts) emit_slice(e, r, slice, 1);
    slice.at = i;
    if (i >= 0) emit_slice(e, r, slice, 0);
    for (int j = 0; j < e->red.n && i >= 0; j++) nvcu_reduce_part(e, e->red.at[j]);
  }
  for (int j = 0; j < e->red.n; j++) nvcu_reduce_after(e, e->red.at[j], 0);
}

static void copy_tile(nvcu_em *e, int to, int from) {
  const nvf_layout *l = &e->t->tile[to];
  int n = 0, open = e->nloop;
  for (int i = 0; i < l->n; i++) {
    if (!nvc_looped(&l->d[i])) continue;
    const char *v = nvcu_for(e, "0", nvcu_text(e, "%d", l->d[i].extent), "1", 1);
    e->loop[e->nloop++] = (nvcu_loop){ l->d[i].axis, l->d[i].extent, l->d[i].stride, v };
    n++;
  }
  for (int i = 0; i < e->tile[to].nitem; i++) nvcu_define(e, to, i, nvcu_tile_item(e, from, i));
  while (n-- > 0) nvcu_close(e);
  e->nloop = open;
}

static void emit_for(nvcu_em *e, nvc_nest *r) {
  const nvf_stmt *s = r->s.at[0];
  for (int i = 0; i < s->ncarry; i++) copy_tile(e, s->carry[i].inner, s->carry[i].outer);
  const char *lo = nvcu_uniform(e, s->lo), *hi = nvcu_uniform(e, s->hi),
             *step = s->step ? nvcu_uniform(e, s->step) : "1";
  int64_t unroll = nvc_hint(&e->r, s, NVF_HINT_UNROLL, 1);
  uint64_t known = e->known;
  e->nested++;
  if (!nvcu_warp_specialized_loop(e, r, lo, hi, step) && !nvcu_staged_loop(e, r, lo, hi, step)) {
    e->var[s->var] = nvcu_for(e, lo, hi, step, (int)unroll);
    nvcu_loop_opened(e, 1);
    nvcu_seq(e, r->body);
    nvcu_close(e);
  }
  e->nested--;
  e->known = known;
  e->nest = r;
  for (int i = 0; i < s->ncarry; i++) copy_tile(e, s->carry[i].outer, s->carry[i].inner);
}

static void emit_if(nvcu_em *e, nvc_nest *r) {
  const char *c = nvcu_cond(e, r->s.at[0]->where, NULL, 0);
  nvcu_open(e, "if (%s)", c ? c : "true");
  e->nested++;
  if (r->body) nvcu_seq(e, r->body);
  nvcu_close(e);
  if (r->other) {
    nvcu_open(e, "else");
    nvcu_seq(e, r->other);
    nvcu_close(e);
  }
  e->nested--;
}

/* Bits of the warp number that the layout uses. */
static int warp_bits(const nvf_layout *l) {
  int bits = 0;
  for (int i = 0; l && i < l->n; i++)
    for (int m = 1; l->d[i].level == 'w' && m < l->d[i].extent; m *= 2) bits |= m * l->d[i].pstride;
  return bits;
}

/* Bits of the warp number that the nests from the i-th on use; warps that differ in other bits alone hold copies there.
   All bits if warps exchange values again. */
static int warps_from(const nvcu_em *e, const nvc_seq *q, int i) {
  int bits = 0;
  for (; i < q->n; i++) {
    const nvc_nest *r = q->nest[i];
    if (r->solo) return ~0;
    for (int j = 0; j < r->s.n; j++) {
      const nvf_stmt *s = r->s.at[j];
      if (nvf_stmt_is(s, NVF_EXCHANGES) || (s->op == NVF_REDUCE && warp_bits(&e->t->tile[s->in[0]]))) return ~0;
      bits |= warp_bits(nvc_layout_of(&e->r, s));
    }
  }
  return bits;
}

static int has_blocks(const nvf_layout *l, int axis) { /* axis -1: any */
  for (int i = 0; i < l->n; i++)
    if (l->d[i].level == 'c' && l->d[i].extent > 1 && (axis < 0 || l->d[i].axis == axis)) return 1;
  return 0;
}

/* Does a nest from the i-th on read values of other CTAs of a cluster? */
static int blocks_from(const nvcu_em *e, const nvc_seq *q, int i) {
  for (; i < q->n; i++) {
    const nvc_nest *r = q->nest[i];
    if (r->solo) return 1;
    for (int j = 0; j < r->s.n; j++) {
      const nvf_stmt *s = r->s.at[j];
      if (s->op == NVF_REDUCE && has_blocks(&e->t->tile[s->in[0]], s->axis)) return 1;
      if (s->op == NVF_RELAYOUT && has_blocks(&e->t->tile[s->in[0]], -1)) return 1;
    }
  }
  return 0;
}

void nvcu_seq(nvcu_em *e, const nvc_seq *q) {
  for (int i = 0; i < q->n; i++) {
    nvc_nest *r = q->nest[i];
    e->nest = r;
    e->red.n = 0;
    e->warps_later = e->nested ? ~0 : warps_from(e, q, i + 1);
    e->blocks_later = e->nested || blocks_from(e, q, i + 1);
    if (r->solo) {
      (r->s.at[0]->op == NVF_FOR ? emit_for : emit_if)(e, r);
      continue;
    }
    for (int j = 0; j < r->s.n; j++)
      if (r->s.at[j]->op == NVF_REDUCE) {
        nvcu_red *red = nvcu_reduce_new(e, r->s.at[j], r);
        NVB_PUSH(e->a, e->red, red);
      }
    nvcu_slice slice;
    int parts = nvcu_epilogue_parts(e, &slice);
    if (parts > 1 && in_parts(e, r, slice.axis)) body_in_parts(e, r, slice, parts);
    else emit_level(e, r, 0);
  }
}
