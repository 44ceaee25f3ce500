/* Emits reductions under a reduction order. Sequence digits accumulate in stack slots that become registers, or in
   scratch if loops over kept axes are inside; then the register tree merges by the bits of the index, lowest first,
   then looped chunks merge in an array, neighbours first. Where lanes of the reduction order are loops, all
   accumulators are in one array, which the tree walks bit by bit. Decides where values are, never the order in which
   they merge. */
#include "codegen/llvm/emit.h"
#include "codegen/reduction.h"
#include "frag/dtype.h"

struct nvcl_red {
  nvc_reduction of;
  const nvg_frag *merge;
  int n;                        /* lanes of an accumulator */
  int inside;                   /* 1: loops over kept axes lie inside the accumulation */
  int filled;                   /* 1: all chunks were set to the identity before the first loop over chunks */
  val *slot;                    /* [state][item of acc] */
  int64_t *acc_off, *chunk_off; /* by state: offset in scratch */
  const nvcl_ordered *ordered;  /* NULL: elements merge in any order */
};

const nvf_stmt *nvcl_reduce_of(const nvcl_red *r) { return r->of.s; }

static nvm_dtype state_type(nvcl_em *e, const nvcl_red *r, int i) { return e->k->tile[r->of.s->out[i]].type; }

static int64_t state_bytes(nvcl_em *e, const nvcl_red *r, int i, int lanes) {
  return (int64_t)lanes * nvg_size(state_type(e, r, i));
}

nvcl_red *nvcl_reduce_new(nvcl_em *e, const nvf_stmt *s, const nvc_nest *nest) {
  nvcl_red *r = NVB_NEW(e->a, nvcl_red);
  *r = (nvcl_red){ .of = nvc_reduction_of(&e->r, s, nest), .merge = nvcl_frag_full(s->frag) };
  r->n = nvcl_layout_lanes(e, r->of.x);
  r->inside = r->of.spread || nvc_slots(&r->of, r->of.start) > 1;
  r->ordered = r->inside ? NULL : nvcl_ordered_new(e, &r->of);
  int nacc = r->of.nacc;
  r->slot = NVB_NEWN(e->a, val, r->of.nstate * nacc);
  r->acc_off = NVB_NEWN(e->a, int64_t, r->of.nstate);
  r->chunk_off = NVB_NEWN(e->a, int64_t, r->of.nstate);
  for (int i = 0; i < r->of.nstate; i++) {
    for (int k = 0; k < nacc && !r->inside; k++) {
      r->slot[i * nacc + k] = nvcl_slot(e, nvcl_vec(nvcl_type(e, state_type(e, r, i)), r->n), "acc");
      LLVMSetAlignment(r->slot[i * nacc + k], 64);
    }
    if (r->inside) r->acc_off[i] = nvcl_scratch(e, nvc_slots(&r->of, r->of.start) * nacc * state_bytes(e, r, i, r->n));
    if (r->of.chunks > 1)
      r->chunk_off[i] = nvcl_scratch(e, r->of.chunks * nvc_slots(&r->of, r->of.first) * r->of.ny *
                                            state_bytes(e, r, i, e->tile[s->out[0]].lanes));
  }
  return r;
}

void nvcl_merge(nvcl_em *e, const nvg_frag *f, val *a, const val *b, int nstate, int n) {
  val arg[NVC_ARGS] = { 0 }, out[NVC_ARGS];
  for (int i = 0; i < nstate; i++) {
    arg[i] = a[i];
    arg[nstate + i] = b[i];
  }
  nvcl_frag(e, f, arg, out, n);
  for (int i = 0; i < nstate; i++) a[i] = out[i];
}

/* ---- arrays in scratch: [lead][kept loops from level `from`][items] */
static val array_address(nvcl_em *e, const nvcl_red *r, int64_t off, val lead, int from, int items, int item,
                         int64_t bytes) {
  val at = lead;
  for (int i = from; i < r->of.nest->nloop; i++) {
    if (!nvc_is_dimension(&r->of, &r->of.nest->loop[i])) continue;
    val v = nvcl_loop_value(e, &r->of.nest->loop[i], 1);
    at = at ? LLVMBuildNSWAdd(e->b, LLVMBuildNSWMul(e->b, at, nvcl_int(e, r->of.nest->loop[i].extent), ""), v, "") : v;
  }
  val p = e->scratch;
  if (at) {
    at = LLVMBuildNSWMul(e->b, at, nvcl_int(e, items * bytes), "");
    p = LLVMBuildInBoundsGEP2(e->b, e->i8, p, &at, 1, "");
  }
  return nvcl_gep(e, p, off + item * bytes);
}

static val load_state(nvcl_em *e, const nvcl_red *r, int i, val p, int n) {
  nvm_dtype t = state_type(e, r, i);
  return nvcl_from_memory(e, nvcl_load(e, nvcl_vec(nvcl_memtype(e, t), n), p, (unsigned)nvg_size(t)), t, n);
}

static void store_state(nvcl_em *e, const nvcl_red *r, int i, val p, int n, val v) {
  nvm_dtype t = state_type(e, r, i);
  nvcl_store(e, nvcl_to_memory(e, nvcl_splat(e, v, n), t, n), p, (unsigned)nvg_size(t));
}

static val acc_address(nvcl_em *e, const nvcl_red *r, int i, int item) {
  return array_address(e, r, r->acc_off[i], NULL, r->of.start, r->of.nacc, item, state_bytes(e, r, i, r->n));
}

static val get_acc(nvcl_em *e, const nvcl_red *r, int i, int item) {
  if (r->inside) return load_state(e, r, i, acc_address(e, r, i, item), r->n);
  return nvcl_load(e, nvcl_vec(nvcl_type(e, state_type(e, r, i)), r->n), r->slot[i * r->of.nacc + item], 16);
}

static void set_acc(nvcl_em *e, const nvcl_red *r, int i, int item, val v) {
  if (r->inside) store_state(e, r, i, acc_address(e, r, i, item), r->n, v);
  else nvcl_store(e, v, r->slot[i * r->of.nacc + item], 16);
}

/* Opens the loops over an array of accumulators again, from level `from` on, as far as their elements are used. Digits
   of the axis below bit b are 0; `pair`, the loop that holds bit b, visits the lower index of each pair. */
typedef struct nest {
  nvcl_for f[NVC_NEST_LOOPS];
  int n, open;
} nest;
static void nest_open_bit(nvcl_em *e, nest *t, const nvcl_red *r, int from, int64_t b, const nvf_digit *pair) {
  t->n = 0;
  t->open = e->nloop;
  for (int i = from; i < r->of.nest->nloop; i++) {
    const nvf_digit *d = &r->of.nest->loop[i];
    int64_t m = d == pair ? b / d->stride : 0;
    val v = nvcl_int(e, 0);
    if (!nvc_is_dimension(&r->of, d)) continue;
    if (d->axis != r->of.s->axis || b < d->stride * d->extent) {
      val hi =
          d->axis == r->of.s->axis ? nvcl_int(e, d->extent - m) : nvcl_kept_iterations(e, r->of.nest, i, r->of.s->axis);
      nvcl_for_begin(e, &t->f[t->n], v, hi, nvcl_int(e, m ? 2 * m : 1), "kept");
      v = t->f[t->n++].i;
    }
    e->loop[e->nloop++] = (nvcl_loop){ d->axis, d->extent, d->stride, 1, v };
  }
}
static void nest_open(nvcl_em *e, nest *t, const nvcl_red *r, int from) { nest_open_bit(e, t, r, from, 0, NULL); }
static void nest_close(nvcl_em *e, nest *t) {
  while (t->n-- > 0) nvcl_for_end(e, &t->f[t->n]);
  e->nloop = t->open;
}

static val identity_of(nvcl_em *e, const nvcl_red *r, int i, int n) {
  return nvcl_bits(e, state_type(e, r, i), r->of.s->init[i], n);
}

/* The positions of the first elements of an accumulator's lanes: an element that equals the identity is at one of these
   then, and lanes without elements have positions behind all others. */
static val first_positions(nvcl_em *e, const nvcl_red *r, int k) {
  int item = 0;
  while (nvc_match_item(&r->of.acc, r->of.x, item) != k) item++;
  nvcl_xv x = nvcl_index(e, r->ordered->position, r->of.x, item);
  val v = nvcl_index_value(e, &x, r->n);
  return LLVMBuildTrunc(e->b, v, nvcl_vec(nvcl_type(e, state_type(e, r, 1)), r->n), "");
}

void nvcl_reduce_before(nvcl_em *e, nvcl_red *r, int level) {
  nest t;
  if (level != r->of.start) return;
  nest_open(e, &t, r, r->of.start);
  for (int i = 0; i < r->of.nstate; i++)
    for (int k = 0; k < r->of.nacc; k++)
      set_acc(e, r, i, k, i && r->ordered ? first_positions(e, r, k) : identity_of(e, r, i, r->n));
  nest_close(e, &t);
}

static val chunk_address(nvcl_em *e, const nvcl_red *r, int i, val chunk, int item) {
  int lanes = e->tile[r->of.s->out[0]].lanes;
  return array_address(e, r, r->chunk_off[i], chunk, r->of.first + 1, r->of.ny, item, state_bytes(e, r, i, lanes));
}

/* Sets all chunks to the identity if the loops may not execute all of them. */
void nvcl_reduce_limit(nvcl_em *e, nvcl_red *r, int level, val visited) {
  if (r->of.chunks == 1 || level < r->of.first || nvc_role_of(&r->of, &r->of.nest->loop[level]) != NVC_CHUNK ||
      LLVMIsAConstantInt(visited))
    return;
  if (level != r->of.first && r->filled) return;
  if (level != r->of.first)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] the chunks of a masked axis are not an outer loop");
  r->filled = 1;
  nest t;
  nvcl_for f;
  nvcl_for_begin(e, &f, nvcl_int(e, 0), nvcl_int(e, r->of.chunks), nvcl_int(e, 1), "chunk");
  nest_open(e, &t, r, r->of.first);
  for (int i = 0; i < r->of.nstate; i++)
    for (int k = 0; k < r->of.ny; k++) {
      int lanes = e->tile[r->of.s->out[0]].lanes;
      store_state(e, r, i, chunk_address(e, r, i, f.i, k), lanes, identity_of(e, r, i, lanes));
    }
  nest_close(e, &t);
  nvcl_for_end(e, &f);
}

const nvc_reduction *nvcl_reduction(const nvcl_red *r) { return &r->of; }

/* The identity in lanes that the mask leaves out. All bits set are or'ed in: the code generator of LLVM 19 does not end
   with a select of true beside comparisons of numbers that were rounded to half precision and back. The freeze keeps
   what a load left undefined there from passing through the or. */
static val or_identity(nvcl_em *e, val mask, val x, val identity) {
  int is_bool = LLVMTypeOf(x) == LLVMTypeOf(mask);
  if (is_bool && identity == LLVMConstAllOnes(LLVMTypeOf(x)))
    return LLVMBuildOr(e->b, LLVMBuildFreeze(e->b, x, ""), LLVMBuildNot(e->b, mask, ""), "");
  return LLVMBuildSelect(e->b, mask, x, identity, "");
}
val nvcl_reduce_operand(nvcl_em *e, const nvcl_red *r, int i, int item) {
  val mask = nvcl_mask_value(e, nvcl_cond(e, r->of.s->where, r->of.x, item), r->n);
  val x = nvcl_tile_at(e, r->of.s->in[i], r->of.x, item);
  return mask ? or_identity(e, mask, x, identity_of(e, r, i, r->n)) : x;
}

void nvcl_reduce_give(nvcl_em *e, nvcl_red *r, int i, val v) {
  for (int k = 0; k < r->of.nacc; k++) set_acc(e, r, i, k, v);
}

/* Merges an item into accumulator k, whose elements come before it. A masked element is the identity, which is never
   taken. */
static void ordered_step(nvcl_em *e, const nvcl_red *r, int k, int item) {
  val best = get_acc(e, r, 0, k), x = nvcl_reduce_operand(e, r, 0, item);
  val at = nvcl_tile_at(e, r->of.s->in[1], r->of.x, item), keeps = nvcl_ordered_keeps(e, r->ordered, best, x, r->n);
  set_acc(e, r, 0, k, LLVMBuildSelect(e->b, keeps, best, x, ""));
  set_acc(e, r, 1, k, LLVMBuildSelect(e->b, keeps, get_acc(e, r, 1, k), at, ""));
}

void nvcl_reduce_step(nvcl_em *e, nvcl_red *r, int from, int to) {
  for (int item = from; item < to; item++) {
    int k = nvc_match_item(&r->of.acc, r->of.x, item);
    if (r->ordered) {
      ordered_step(e, r, k, item);
      continue;
    }
    val a[NVC_ARGS], x[NVC_ARGS];
    for (int i = 0; i < r->of.nstate; i++) {
      x[i] = nvcl_reduce_operand(e, r, i, item);
      a[i] = get_acc(e, r, i, k);
    }
    nvcl_merge(e, r->merge, a, x, r->of.nstate, r->n);
    for (int i = 0; i < r->of.nstate; i++) set_acc(e, r, i, k, a[i]);
  }
}

/* ---- the register tree */
static int lanes_are_low(nvcl_em *e, const nvcl_red *r) {
  int64_t lanes = 1, low = 1;
  for (int i = 0; i < r->of.x->n; i++)
    if (r->of.x->d[i].level == 'l' && r->of.x->d[i].extent > 1) {
      if (r->of.x->d[i].axis != r->of.s->axis || r->of.x->d[i].stride != r->of.x->d[i].pstride) return 0;
      lanes *= r->of.x->d[i].extent;
    }
  for (int i = 0; i < r->of.acc.n; i++)
    if (r->of.acc.d[i].axis == r->of.s->axis && r->of.acc.d[i].level == 'i' && r->of.acc.d[i].extent > 1)
      low &= r->of.acc.d[i].stride >= lanes;
  return lanes == e->lanes && lanes > 1 && low;
}

/* Merges the accumulators of one result item as one row of count * n elements: neighbours merge until one is left. The
   even and the odd elements of two vectors are collected, so that all lanes work; they are collected inside of segments
   (16 bytes, a vector of the machine, or all lanes), the smallest that hold both of a pair, since shuffles across them
   cost more. So elements leave the order of the index. place[b]: the bit of the lane number that is bit b of the
   index. */
typedef struct halving {
  int n, place[8]; /* n: lanes of a vector */
  int even[NVC_LANES], odd[NVC_LANES];
} halving;

static halving begin_halving(int n) {
  halving h = { .n = n };
  for (int b = 0; 1 << b < n; b++) h.place[b] = b;
  return h;
}

/* The lanes of a segment for pairs at this distance. */
static int segment_lanes(nvcl_em *e, const nvcl_red *r, int n, int distance) {
  int size = 1, lanes = n;
  for (int i = 0; i < r->of.nstate; i++)
    if (nvg_size(state_type(e, r, i)) > size) size = nvg_size(state_type(e, r, i));
  if (distance < e->target->width / size) lanes = e->target->width / size;
  if (distance < 16 / size) lanes = 16 / size;
  return lanes < n ? lanes : n;
}

/* Lists the lanes that merge for the lowest bit of the index, and removes that bit. */
static void halve_alone(halving *h) {
  int d = 1 << h->place[0];
  h->n /= 2;
  for (int i = 0; i < h->n; i++) {
    h->even[i] = i / d * 2 * d + i % d;
    h->odd[i] = h->even[i] + d;
  }
  for (int b = 0; 1 << b < h->n; b++) h->place[b] = h->place[b + 1] - (1 << h->place[b + 1] > d);
}

/* The same for two vectors: the first half of each segment comes from the first one, and the number of the vector
   becomes the highest bit of the index. */
static void halve_pair(halving *h, int segment) {
  int d = 1 << h->place[0], half = segment / 2, b = 0;
  for (int i = 0; i < h->n; i++) {
    int k = i % half;
    h->even[i] = i % segment / half * h->n + i / segment * segment + k / d * 2 * d + k % d;
    h->odd[i] = h->even[i] + d;
  }
  for (; 2 << b < h->n; b++)
    h->place[b] = h->place[b + 1] - (1 << h->place[b + 1] > d && 1 << h->place[b + 1] < segment);
  h->place[b] = __builtin_ctz((unsigned)half);
}

static void halve_row(nvcl_em *e, const nvcl_red *r, val *v, int count, int n) {
  int nstate = r->of.nstate;
  halving h = begin_halving(n);
  while (count > 1 || h.n > 1) {
    int pair = count > 1;
    if (h.n == 1) { /* scalars */
      for (int p = 0; p < count / 2; p++) {
        for (int i = 0; i < nstate; i++) v[p * nstate + i] = v[2 * p * nstate + i];
        nvcl_merge(e, r->merge, &v[p * nstate], &v[(2 * p + 1) * nstate], nstate, 1);
      }
      count /= 2;
      continue;
    }
    if (pair) halve_pair(&h, segment_lanes(e, r, h.n, 1 << h.place[0]));
    else halve_alone(&h);
    for (int p = 0; p < (pair ? count / 2 : 1); p++) {
      val a[NVC_ARGS], b[NVC_ARGS];
      for (int i = 0; i < nstate; i++) {
        val lo = v[(pair ? 2 * p : 0) * nstate + i], hi = pair ? v[(2 * p + 1) * nstate + i] : NULL;
        a[i] = nvcl_shuffle(e, lo, hi, h.even, h.n);
        b[i] = nvcl_shuffle(e, lo, hi, h.odd, h.n);
      }
      nvcl_merge(e, r->merge, a, b, nstate, h.n);
      for (int i = 0; i < nstate; i++) v[p * nstate + i] = a[i];
    }
    if (pair) count /= 2;
  }
}

/* Merges the items or lanes of the digit that holds bit b; v: [item of acc][state]. */
static void merge_bit(nvcl_em *e, const nvcl_red *r, val *v, int64_t b) {
  int nacc = r->of.nacc;
  for (int i = 0; i < r->of.acc.n; i++) {
    const nvf_digit *d = &r->of.acc.d[i];
    if (d->axis != r->of.s->axis || b < d->stride || b >= d->stride * d->extent) continue;
    int m = (int)(b / d->stride), step = nvc_item_step(&r->of.acc, i), lane[NVC_LANES];
    for (int k = 0; k < nacc && d->level == 'i'; k++)
      if (!(nvc_digit_value(&r->of.acc, i, k) & (2 * m - 1)) && nvc_digit_value(&r->of.acc, i, k) + m < d->extent)
        nvcl_merge(e, r->merge, &v[k * r->of.nstate], &v[(k + m * step) * r->of.nstate], r->of.nstate, r->n);
    for (int k = 0; k < nacc && d->level == 'l'; k++) {
      val other[NVC_ARGS];
      for (int j = 0; j < r->n; j++) lane[j] = j ^ (m * d->pstride);
      for (int s = 0; s < r->of.nstate; s++) other[s] = nvcl_shuffle(e, v[k * r->of.nstate + s], NULL, lane, r->n);
      nvcl_merge(e, r->merge, &v[k * r->of.nstate], other, r->of.nstate, r->n);
    }
  }
}

static void to_result(nvcl_em *e, const nvcl_red *r, val *out) {
  for (int i = 0; i < r->of.ny * r->of.nstate; i++)
    if (e->tile[r->of.s->out[0]].lanes == 1 && LLVMGetTypeKind(LLVMTypeOf(out[i])) == LLVMVectorTypeKind)
      out[i] = LLVMBuildExtractElement(e->b, out[i], nvcl_i32(e, 0), "");
}

/* Merges all accumulators; out: [item of y][state]. */
static void register_tree(nvcl_em *e, const nvcl_red *r, val *out) {
  int nacc = r->of.nacc, per = nacc / r->of.ny;
  val *v = NVB_NEWN(e->a, val, nacc * r->of.nstate);
  int *first = NVB_NEWN(e->a, int, r->of.ny), low = !(per & (per - 1)) && (lanes_are_low(e, r) || r->n == 1);
  for (int k = 0; k < nacc; k++) {
    int y = nvc_match_item(r->of.y, &r->of.acc, k), at = low ? y * per + first[y]++ : k;
    for (int i = 0; i < r->of.nstate; i++) v[at * r->of.nstate + i] = get_acc(e, r, i, k);
  }
  if (low)
    for (int y = 0; y < r->of.ny; y++) halve_row(e, r, &v[y * per * r->of.nstate], per, r->n);
  else
    for (int64_t b = 1; b < r->of.extent; b *= 2) merge_bit(e, r, v, b);
  for (int k = nacc; k-- > 0;) { /* the lowest item of each result has it */
    int y = nvc_match_item(r->of.y, &r->of.acc, k);
    for (int i = 0; i < r->of.nstate; i++) out[y * r->of.nstate + i] = v[(low ? y * per : k) * r->of.nstate + i];
  }
  to_result(e, r, out);
}

/* ---- lanes of the reduction order that are loops: the tree merges over the array */
static void load_accs(nvcl_em *e, const nvcl_red *r, val *v) {
  for (int k = 0; k < r->of.nacc; k++)
    for (int i = 0; i < r->of.nstate; i++) v[k * r->of.nstate + i] = get_acc(e, r, i, k);
}

static void store_accs(nvcl_em *e, const nvcl_red *r, const val *v) {
  for (int k = 0; k < r->of.nacc; k++)
    for (int i = 0; i < r->of.nstate; i++) set_acc(e, r, i, k, v[k * r->of.nstate + i]);
}

static void merge_loop_bit(nvcl_em *e, const nvcl_red *r, const nvf_digit *d, int64_t b) {
  int nacc = r->of.nacc, at = 0;
  val *lo = NVB_NEWN(e->a, val, nacc * r->of.nstate), *hi = NVB_NEWN(e->a, val, nacc * r->of.nstate);
  nest t;
  nest_open_bit(e, &t, r, r->of.first, b, d);
  while (e->loop[at].axis != d->axis || e->loop[at].stride != d->stride) at++;
  val v = e->loop[at].v;
  load_accs(e, r, lo);
  e->loop[at].v = LLVMBuildNSWAdd(e->b, v, nvcl_int(e, b / d->stride), "");
  load_accs(e, r, hi);
  e->loop[at].v = v;
  for (int k = 0; k < nacc; k++)
    nvcl_merge(e, r->merge, &lo[k * r->of.nstate], &hi[k * r->of.nstate], r->of.nstate, r->n);
  store_accs(e, r, lo);
  nest_close(e, &t);
}

static void spread_tree(nvcl_em *e, const nvcl_red *r) {
  val *v = NVB_NEWN(e->a, val, r->of.nacc * r->of.nstate), *out = NVB_NEWN(e->a, val, r->of.ny * r->of.nstate);
  nest t;
  for (int64_t b = 1; b < r->of.extent; b *= 2) {
    const nvf_digit *d = nvc_loop_with(&r->of, b);
    if (b >= r->of.w && b < r->of.c) continue;
    if (d) {
      merge_loop_bit(e, r, d, b);
      continue;
    }
    nest_open_bit(e, &t, r, r->of.first, b, NULL);
    load_accs(e, r, v);
    merge_bit(e, r, v, b);
    store_accs(e, r, v);
    nest_close(e, &t);
  }
  nest_open_bit(e, &t, r, r->of.first, r->of.extent, NULL);
  for (int k = r->of.nacc; k-- > 0;)
    for (int i = 0; i < r->of.nstate; i++)
      out[nvc_match_item(r->of.y, &r->of.acc, k) * r->of.nstate + i] = get_acc(e, r, i, k);
  to_result(e, r, out);
  for (int k = 0; k < r->of.ny; k++)
    for (int i = 0; i < r->of.nstate; i++) nvcl_define(e, r->of.s->out[i], k, out[k * r->of.nstate + i]);
  nest_close(e, &t);
}

/* ---- looped chunks */
static val chunk_number(nvcl_em *e, const nvcl_red *r) {
  val at = NULL;
  for (int i = 0; i < r->of.nest->nloop; i++) {
    const nvf_digit *d = &r->of.nest->loop[i];
    if (nvc_role_of(&r->of, d) != NVC_CHUNK) continue;
    val v = nvcl_loop_value(e, d, 1);
    at = at ? LLVMBuildNSWAdd(e->b, LLVMBuildNSWMul(e->b, at, nvcl_int(e, d->extent), ""), v, "") : v;
  }
  return at;
}

static void merge_chunks(nvcl_em *e, const nvcl_red *r, val to, val from) {
  int lanes = e->tile[r->of.s->out[0]].lanes;
  for (int k = 0; k < r->of.ny; k++) {
    val a[NVC_ARGS], b[NVC_ARGS];
    for (int i = 0; i < r->of.nstate; i++) {
      a[i] = load_state(e, r, i, chunk_address(e, r, i, to, k), lanes);
      b[i] = load_state(e, r, i, chunk_address(e, r, i, from, k), lanes);
    }
    nvcl_merge(e, r->merge, a, b, r->of.nstate, lanes);
    for (int i = 0; i < r->of.nstate; i++) store_state(e, r, i, chunk_address(e, r, i, to, k), lanes, a[i]);
  }
}

static void chunk_tree(nvcl_em *e, nvcl_red *r) {
  int lanes = e->tile[r->of.s->out[0]].lanes;
  nest t;
  nest_open(e, &t, r, r->of.first);
  for (int h = 1; h < r->of.chunks; h *= 2) {
    nvcl_for f;
    nvcl_for_begin(e, &f, nvcl_int(e, 0), nvcl_int(e, r->of.chunks - h), nvcl_int(e, 2 * h), "tree");
    merge_chunks(e, r, f.i, LLVMBuildNSWAdd(e->b, f.i, nvcl_int(e, h), ""));
    nvcl_for_end(e, &f);
  }
  for (int k = 0; k < r->of.ny; k++)
    for (int i = 0; i < r->of.nstate; i++)
      nvcl_define(e, r->of.s->out[i], k, load_state(e, r, i, chunk_address(e, r, i, nvcl_int(e, 0), k), lanes));
  nest_close(e, &t);
}

void nvcl_reduce_after(nvcl_em *e, nvcl_red *r, int level) {
  if (r->of.spread) {
    if (level == r->of.first) spread_tree(e, r);
    return;
  }
  if (level == r->of.start) {
    int lanes = e->tile[r->of.s->out[0]].lanes;
    val *out = NVB_NEWN(e->a, val, r->of.ny * r->of.nstate), chunk = r->of.chunks > 1 ? chunk_number(e, r) : NULL;
    nest t;
    nest_open(e, &t, r, r->of.start);
    register_tree(e, r, out);
    for (int k = 0; k < r->of.ny; k++)
      for (int i = 0; i < r->of.nstate; i++) {
        if (chunk) store_state(e, r, i, chunk_address(e, r, i, chunk, k), lanes, out[k * r->of.nstate + i]);
        else nvcl_define(e, r->of.s->out[i], k, out[k * r->of.nstate + i]);
      }
    nest_close(e, &t);
  }
  if (level == r->of.first && r->of.chunks > 1) chunk_tree(e, r);
}
