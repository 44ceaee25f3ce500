/* Reductions under a stamp. Sequence digits accumulate (in stack slots that become registers, or in scratch where kept
   loops lie inside), then the register tree by the bits of the index, lowest first, then chunk results from looped
   chunks in an array, near first. Where lanes of the stamp are loops, all accumulators lie in one array and the tree
   walks it bit by bit. Masked elements are the identity. Decides places, never the order: the stamp does. */
#include "codegen/llvm_emit.h"
#include "graph/dtype.h"

struct nvcl_red {
  const nvf_stmt *s;
  const nvc_run *r;
  const nvf_layout *x, *y; /* operand, result */
  nvf_layout acc;          /* operand without the sequence digits */
  const nvg_frag *merge;
  int nstate, n, ny; /* states; lanes of the accumulators; register items of the result */
  int64_t c, w, extent;
  int first, start; /* level of the outermost loop of the axis; level before which accumulators are cleared */
  int looped_chunks, nchunk, inside; /* inside: kept loops lie inside the accumulation */
  int filled;                        /* all chunks held the identity before the first loop of chunks */
  int spread;                        /* lanes of the stamp are loops: the array has all loops but those in sequence */
  val *slot;                         /* [state][item of acc] */
  int64_t *acc_off, *chunk_off;      /* scratch, per state */
};

const nvf_stmt *nvcl_reduce_of(const nvcl_red *r) { return r->s; }

enum { CHUNK, SEQUENCE, LANE, KEPT };
static int part_of(const nvcl_red *r, const nvf_digit *d) {
  if (d->axis != r->s->axis) return KEPT;
  return d->stride >= r->c ? CHUNK : d->stride >= r->w ? SEQUENCE : LANE;
}

/* Do arrays of accumulators and of chunk results have this loop as a dimension? */
static int counts(const nvcl_red *r, const nvf_digit *d) {
  int p = part_of(r, d);
  return p == KEPT || (r->spread && p != SEQUENCE);
}

static int64_t rounds(const nvcl_red *r, int from) {
  int64_t n = 1;
  for (int i = from; i < r->r->nloop; i++)
    if (counts(r, &r->r->loop[i])) n *= r->r->loop[i].extent;
  return n;
}

static nvm_dtype state_type(nvcl_em *e, const nvcl_red *r, int i) { return e->k->tile[r->s->out[i]].type; }

static void find_levels(nvcl_red *r) {
  const nvc_run *run = r->r;
  r->first = r->start = run->nloop;
  r->nchunk = 1;
  for (int i = run->nloop; i-- > 0;) {
    int p = part_of(r, &run->loop[i]);
    if (p == SEQUENCE) r->start = i;
    if (p == CHUNK) {
      r->looped_chunks = 1;
      r->nchunk *= run->loop[i].extent;
    }
    r->spread |= p == LANE;
    if (p != KEPT) r->first = i;
  }
  if (r->spread) {
    r->start = r->first;
    r->looped_chunks = 0;
  }
  r->inside = r->spread || rounds(r, r->start) > 1;
}

static int64_t state_bytes(nvcl_em *e, const nvcl_red *r, int i, int lanes) {
  return (int64_t)lanes * nvg_size(state_type(e, r, i));
}

nvcl_red *nvcl_reduce_new(nvcl_em *e, const nvf_stmt *s, const nvc_run *run) {
  nvcl_red *r = NVB_NEW(e->a, nvcl_red);
  *r = (nvcl_red){.s = s, .r = run, .x = &e->t->tile[s->in[0]], .y = &e->t->tile[s->out[0]], .nstate = s->nout};
  nvf_stamp st = e->s->bind[s->stamp].stamp;
  r->extent = nvf_extent(r->x, s->axis);
  r->c = st.c < r->extent ? st.c : r->extent;
  r->w = st.w < r->c ? st.w : r->c;
  r->merge = nvcl_frag_full(s->frag);
  r->n = nvcl_layout_lanes(e, r->x);
  r->ny = nvc_items(r->y);
  for (int i = 0; i < r->x->n; i++)
    if (part_of(r, &r->x->d[i]) != SEQUENCE || r->x->d[i].extent == 1) r->acc.d[r->acc.n++] = r->x->d[i];
  find_levels(r);
  int nacc = nvc_items(&r->acc);
  r->slot = NVB_NEWN(e->a, val, r->nstate * nacc);
  r->acc_off = NVB_NEWN(e->a, int64_t, r->nstate);
  r->chunk_off = NVB_NEWN(e->a, int64_t, r->nstate);
  for (int i = 0; i < r->nstate; i++) {
    for (int k = 0; k < nacc && !r->inside; k++) {
      r->slot[i * nacc + k] = nvcl_slot(e, nvcl_vec(nvcl_type(e, state_type(e, r, i)), r->n), "acc");
      LLVMSetAlignment(r->slot[i * nacc + k], 64);
    }
    if (r->inside) r->acc_off[i] = nvcl_scratch(e, rounds(r, r->start) * nacc * state_bytes(e, r, i, r->n));
    if (r->looped_chunks)
      r->chunk_off[i] = nvcl_scratch(e, r->nchunk * rounds(r, r->first) * r->ny *
                                            state_bytes(e, r, i, e->tile[s->out[0]].lanes));
  }
  return r;
}

void nvcl_merge(nvcl_em *e, const nvg_frag *f, val *a, const val *b, int nstate, int n) {
  val arg[NVC_ARGS] = {0}, out[NVC_ARGS];
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
  for (int i = from; i < r->r->nloop; i++) {
    if (!counts(r, &r->r->loop[i])) continue;
    val v = nvcl_loop_value(e, &r->r->loop[i], 1);
    at = at ? LLVMBuildNSWAdd(e->b, LLVMBuildNSWMul(e->b, at, nvcl_int(e, r->r->loop[i].extent), ""), v, "") : v;
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
  return array_address(e, r, r->acc_off[i], NULL, r->start, nvc_items(&r->acc), item, state_bytes(e, r, i, r->n));
}

static val get_acc(nvcl_em *e, const nvcl_red *r, int i, int item) {
  if (r->inside) return load_state(e, r, i, acc_address(e, r, i, item), r->n);
  return nvcl_load(e, nvcl_vec(nvcl_type(e, state_type(e, r, i)), r->n), r->slot[i * nvc_items(&r->acc) + item], 16);
}

static void set_acc(nvcl_em *e, const nvcl_red *r, int i, int item, val v) {
  if (r->inside) store_state(e, r, i, acc_address(e, r, i, item), r->n, v);
  else nvcl_store(e, v, r->slot[i * nvc_items(&r->acc) + item], 16);
}

/* The loops of the arrays from level `from` on, opened again around something that happens after them. */
typedef struct nest {
  nvcl_for f[NVC_RUN_LOOPS];
  int n, open;
} nest;
static void nest_open(nvcl_em *e, nest *t, const nvcl_red *r, int from) {
  t->n = 0;
  t->open = e->nloop;
  for (int i = from; i < r->r->nloop; i++) {
    const nvf_digit *d = &r->r->loop[i];
    if (!counts(r, d)) continue;
    nvcl_for_begin(e, &t->f[t->n], nvcl_int(e, 0), nvcl_int(e, d->extent), nvcl_int(e, 1), "kept");
    e->loop[e->nloop++] = (nvcl_loop){d->axis, d->extent, d->stride, 1, t->f[t->n++].i};
  }
}
static void nest_close(nvcl_em *e, nest *t) {
  while (t->n-- > 0) nvcl_for_end(e, &t->f[t->n]);
  e->nloop = t->open;
}

static val identity(nvcl_em *e, const nvcl_red *r, int i, int n) {
  return nvcl_bits(e, state_type(e, r, i), r->s->init[i], n);
}

void nvcl_reduce_before(nvcl_em *e, nvcl_red *r, int level) {
  nest t;
  if (level != r->start) return;
  nest_open(e, &t, r, r->start);
  for (int i = 0; i < r->nstate; i++)
    for (int k = 0; k < nvc_items(&r->acc); k++) set_acc(e, r, i, k, identity(e, r, i, r->n));
  nest_close(e, &t);
}

static val chunk_address(nvcl_em *e, const nvcl_red *r, int i, val chunk, int item) {
  int lanes = e->tile[r->s->out[0]].lanes;
  return array_address(e, r, r->chunk_off[i], chunk, r->first + 1, r->ny, item, state_bytes(e, r, i, lanes));
}

/* Chunks that the loops will not reach hold the identity. */
void nvcl_reduce_limit(nvcl_em *e, nvcl_red *r, int level, val visited) {
  if (!r->looped_chunks || level < r->first || part_of(r, &r->r->loop[level]) != CHUNK || LLVMIsAConstantInt(visited))
    return;
  if (level != r->first && r->filled) return;
  if (level != r->first) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] a masked axis whose chunks are no outer loop");
  r->filled = 1;
  nest t;
  nvcl_for f;
  nvcl_for_begin(e, &f, nvcl_int(e, 0), nvcl_int(e, r->nchunk), nvcl_int(e, 1), "chunk");
  nest_open(e, &t, r, r->first);
  for (int i = 0; i < r->nstate; i++)
    for (int k = 0; k < r->ny; k++) {
      int lanes = e->tile[r->s->out[0]].lanes;
      store_state(e, r, i, chunk_address(e, r, i, f.i, k), lanes, identity(e, r, i, lanes));
    }
  nest_close(e, &t);
  nvcl_for_end(e, &f);
}

void nvcl_reduce_step(nvcl_em *e, nvcl_red *r, int from, int to) {
  for (int item = from; item < to; item++) {
    int k = nvc_match_item(&r->acc, r->x, item);
    val mask = nvcl_mask_value(e, nvcl_cond(e, r->s->where, r->x, item), r->n), a[NVC_ARGS], x[NVC_ARGS];
    for (int i = 0; i < r->nstate; i++) {
      x[i] = nvcl_tile_at(e, r->s->in[i], r->x, item);
      if (mask) x[i] = LLVMBuildSelect(e->b, mask, x[i], identity(e, r, i, r->n), "");
      a[i] = get_acc(e, r, i, k);
    }
    nvcl_merge(e, r->merge, a, x, r->nstate, r->n);
    for (int i = 0; i < r->nstate; i++) set_acc(e, r, i, k, a[i]);
  }
}

/* ---- the register tree */
static int lanes_are_low(nvcl_em *e, const nvcl_red *r) {
  int64_t lanes = 1, low = 1;
  for (int i = 0; i < r->x->n; i++)
    if (r->x->d[i].place == 'l' && r->x->d[i].extent > 1) {
      if (r->x->d[i].axis != r->s->axis || r->x->d[i].stride != r->x->d[i].pstride) return 0;
      lanes *= r->x->d[i].extent;
    }
  for (int i = 0; i < r->acc.n; i++)
    if (r->acc.d[i].axis == r->s->axis && r->acc.d[i].place == 'i' && r->acc.d[i].extent > 1)
      low &= r->acc.d[i].stride >= lanes;
  return lanes == e->lanes && lanes > 1 && low;
}

/* One result item: its accumulators in the order of the index, as one long row of count * n elements. Neighbours merge
   until one is left; even and odd elements of two vectors are picked together, so that all lanes work. */
static void halve(nvcl_em *e, const nvcl_red *r, val *v, int count, int n) {
  int even[NVC_LANES], odd[NVC_LANES];
  while (count > 1 || n > 1) {
    int pair = count > 1, out = pair ? n : n / 2;
    if (n == 1) { /* scalars */
      for (int p = 0; p < count / 2; p++) {
        for (int i = 0; i < r->nstate; i++) v[p * r->nstate + i] = v[2 * p * r->nstate + i];
        nvcl_merge(e, r->merge, &v[p * r->nstate], &v[(2 * p + 1) * r->nstate], r->nstate, 1);
      }
      count /= 2;
      continue;
    }
    for (int i = 0; i < out; i++) {
      even[i] = 2 * i;
      odd[i] = 2 * i + 1;
    }
    for (int p = 0; p < (pair ? count / 2 : 1); p++) {
      val a[NVC_ARGS], b[NVC_ARGS];
      for (int i = 0; i < r->nstate; i++) {
        val lo = v[(pair ? 2 * p : 0) * r->nstate + i], hi = pair ? v[(2 * p + 1) * r->nstate + i] : NULL;
        a[i] = nvcl_shuffle(e, lo, hi, even, out);
        b[i] = nvcl_shuffle(e, lo, hi, odd, out);
      }
      nvcl_merge(e, r->merge, a, b, r->nstate, out);
      for (int i = 0; i < r->nstate; i++) v[p * r->nstate + i] = a[i];
    }
    if (pair) count /= 2;
    else n /= 2;
  }
}

/* v[item of acc][state]: the digit that holds bit b merges items or lanes. */
static void merge_bit(nvcl_em *e, const nvcl_red *r, val *v, int64_t b) {
  int nacc = nvc_items(&r->acc);
  for (int i = 0; i < r->acc.n; i++) {
    const nvf_digit *d = &r->acc.d[i];
    if (d->axis != r->s->axis || b < d->stride || b >= d->stride * d->extent) continue;
    int m = (int)(b / d->stride), step = nvc_item_step(&r->acc, i), lane[NVC_LANES];
    for (int k = 0; k < nacc && d->place == 'i'; k++)
      if (!(nvc_digit_value(&r->acc, i, k) & (2 * m - 1)) && nvc_digit_value(&r->acc, i, k) + m < d->extent)
        nvcl_merge(e, r->merge, &v[k * r->nstate], &v[(k + m * step) * r->nstate], r->nstate, r->n);
    for (int k = 0; k < nacc && d->place == 'l'; k++) {
      val other[NVC_ARGS];
      for (int j = 0; j < r->n; j++) lane[j] = j ^ (m * d->pstride);
      for (int s = 0; s < r->nstate; s++) other[s] = nvcl_shuffle(e, v[k * r->nstate + s], NULL, lane, r->n);
      nvcl_merge(e, r->merge, &v[k * r->nstate], other, r->nstate, r->n);
    }
  }
}

static void to_result(nvcl_em *e, const nvcl_red *r, val *out) {
  for (int i = 0; i < r->ny * r->nstate; i++)
    if (e->tile[r->s->out[0]].lanes == 1 && LLVMGetTypeKind(LLVMTypeOf(out[i])) == LLVMVectorTypeKind)
      out[i] = LLVMBuildExtractElement(e->b, out[i], nvcl_i32(e, 0), "");
}

/* out[item of y][state] */
static void register_tree(nvcl_em *e, const nvcl_red *r, val *out) {
  int nacc = nvc_items(&r->acc), per = nacc / r->ny;
  val *v = NVB_NEWN(e->a, val, nacc * r->nstate);
  int *first = NVB_NEWN(e->a, int, r->ny), low = !(per & (per - 1)) && (lanes_are_low(e, r) || r->n == 1);
  for (int k = 0; k < nacc; k++) {
    int y = nvc_match_item(r->y, &r->acc, k), at = low ? y * per + first[y]++ : k;
    for (int i = 0; i < r->nstate; i++) v[at * r->nstate + i] = get_acc(e, r, i, k);
  }
  if (low)
    for (int y = 0; y < r->ny; y++) halve(e, r, &v[y * per * r->nstate], per, r->n);
  else
    for (int64_t b = 1; b < r->extent; b *= 2) merge_bit(e, r, v, b);
  for (int k = nacc; k-- > 0;) { /* the lowest item of each result holds it */
    int y = nvc_match_item(r->y, &r->acc, k);
    for (int i = 0; i < r->nstate; i++) out[y * r->nstate + i] = v[(low ? y * per : k) * r->nstate + i];
  }
  to_result(e, r, out);
}

/* ---- lanes of the stamp that are loops: the whole tree over the array */
/* Opens the array's loops for bit b. Digits of the axis that are merged already stand at 0; `pair`, the loop whose bit
   is merged, visits the lower one of each two. */
static void nest_open_bit(nvcl_em *e, nest *t, const nvcl_red *r, int64_t b, const nvf_digit *pair) {
  t->n = 0;
  t->open = e->nloop;
  for (int i = r->first; i < r->r->nloop; i++) {
    const nvf_digit *d = &r->r->loop[i];
    int64_t m = d == pair ? b / d->stride : 0;
    val v = nvcl_int(e, 0);
    if (!counts(r, d)) continue;
    if (d->axis != r->s->axis || b < d->stride * d->extent) {
      nvcl_for_begin(e, &t->f[t->n], v, nvcl_int(e, d->extent - m), nvcl_int(e, m ? 2 * m : 1), "tree");
      v = t->f[t->n++].i;
    }
    e->loop[e->nloop++] = (nvcl_loop){d->axis, d->extent, d->stride, 1, v};
  }
}

static void load_accs(nvcl_em *e, const nvcl_red *r, val *v) {
  for (int k = 0; k < nvc_items(&r->acc); k++)
    for (int i = 0; i < r->nstate; i++) v[k * r->nstate + i] = get_acc(e, r, i, k);
}

static void store_accs(nvcl_em *e, const nvcl_red *r, const val *v) {
  for (int k = 0; k < nvc_items(&r->acc); k++)
    for (int i = 0; i < r->nstate; i++) set_acc(e, r, i, k, v[k * r->nstate + i]);
}

static const nvf_digit *loop_with_bit(const nvcl_red *r, int64_t b) {
  for (int i = r->first; i < r->r->nloop; i++) {
    const nvf_digit *d = &r->r->loop[i];
    if (d->axis == r->s->axis && b >= d->stride && b < d->stride * d->extent) return d;
  }
  return NULL;
}

static void merge_loop_bit(nvcl_em *e, const nvcl_red *r, const nvf_digit *d, int64_t b) {
  int nacc = nvc_items(&r->acc), at = 0;
  val *lo = NVB_NEWN(e->a, val, nacc * r->nstate), *hi = NVB_NEWN(e->a, val, nacc * r->nstate);
  nest t;
  nest_open_bit(e, &t, r, b, d);
  while (e->loop[at].axis != d->axis || e->loop[at].stride != d->stride) at++;
  val v = e->loop[at].v;
  load_accs(e, r, lo);
  e->loop[at].v = LLVMBuildNSWAdd(e->b, v, nvcl_int(e, b / d->stride), "");
  load_accs(e, r, hi);
  e->loop[at].v = v;
  for (int k = 0; k < nacc; k++) nvcl_merge(e, r->merge, &lo[k * r->nstate], &hi[k * r->nstate], r->nstate, r->n);
  store_accs(e, r, lo);
  nest_close(e, &t);
}

static void spread_tree(nvcl_em *e, const nvcl_red *r) {
  val *v = NVB_NEWN(e->a, val, nvc_items(&r->acc) * r->nstate), *out = NVB_NEWN(e->a, val, r->ny * r->nstate);
  nest t;
  for (int64_t b = 1; b < r->extent; b *= 2) {
    const nvf_digit *d = loop_with_bit(r, b);
    if (b >= r->w && b < r->c) continue;
    if (d) {
      merge_loop_bit(e, r, d, b);
      continue;
    }
    nest_open_bit(e, &t, r, b, NULL);
    load_accs(e, r, v);
    merge_bit(e, r, v, b);
    store_accs(e, r, v);
    nest_close(e, &t);
  }
  nest_open_bit(e, &t, r, r->extent, NULL);
  for (int k = nvc_items(&r->acc); k-- > 0;)
    for (int i = 0; i < r->nstate; i++) out[nvc_match_item(r->y, &r->acc, k) * r->nstate + i] = get_acc(e, r, i, k);
  to_result(e, r, out);
  for (int k = 0; k < r->ny; k++)
    for (int i = 0; i < r->nstate; i++) nvcl_define(e, r->s->out[i], k, out[k * r->nstate + i]);
  nest_close(e, &t);
}

/* ---- looped chunks */
static val chunk_number(nvcl_em *e, const nvcl_red *r) {
  val at = NULL;
  for (int i = 0; i < r->r->nloop; i++) {
    const nvf_digit *d = &r->r->loop[i];
    if (part_of(r, d) != CHUNK) continue;
    val v = nvcl_loop_value(e, d, 1);
    at = at ? LLVMBuildNSWAdd(e->b, LLVMBuildNSWMul(e->b, at, nvcl_int(e, d->extent), ""), v, "") : v;
  }
  return at;
}

static void merge_chunks(nvcl_em *e, const nvcl_red *r, val to, val from) {
  int lanes = e->tile[r->s->out[0]].lanes;
  for (int k = 0; k < r->ny; k++) {
    val a[NVC_ARGS], b[NVC_ARGS];
    for (int i = 0; i < r->nstate; i++) {
      a[i] = load_state(e, r, i, chunk_address(e, r, i, to, k), lanes);
      b[i] = load_state(e, r, i, chunk_address(e, r, i, from, k), lanes);
    }
    nvcl_merge(e, r->merge, a, b, r->nstate, lanes);
    for (int i = 0; i < r->nstate; i++) store_state(e, r, i, chunk_address(e, r, i, to, k), lanes, a[i]);
  }
}

static void chunk_tree(nvcl_em *e, nvcl_red *r) {
  int lanes = e->tile[r->s->out[0]].lanes;
  nest t;
  nest_open(e, &t, r, r->first);
  for (int h = 1; h < r->nchunk; h *= 2) {
    nvcl_for f;
    nvcl_for_begin(e, &f, nvcl_int(e, 0), nvcl_int(e, r->nchunk - h), nvcl_int(e, 2 * h), "tree");
    merge_chunks(e, r, f.i, LLVMBuildNSWAdd(e->b, f.i, nvcl_int(e, h), ""));
    nvcl_for_end(e, &f);
  }
  for (int k = 0; k < r->ny; k++)
    for (int i = 0; i < r->nstate; i++)
      nvcl_define(e, r->s->out[i], k, load_state(e, r, i, chunk_address(e, r, i, nvcl_int(e, 0), k), lanes));
  nest_close(e, &t);
}

void nvcl_reduce_after(nvcl_em *e, nvcl_red *r, int level) {
  if (r->spread) {
    if (level == r->first) spread_tree(e, r);
    return;
  }
  if (level == r->start) {
    int lanes = e->tile[r->s->out[0]].lanes;
    val *out = NVB_NEWN(e->a, val, r->ny * r->nstate), chunk = r->looped_chunks ? chunk_number(e, r) : NULL;
    nest t;
    nest_open(e, &t, r, r->start);
    register_tree(e, r, out);
    for (int k = 0; k < r->ny; k++)
      for (int i = 0; i < r->nstate; i++) {
        if (chunk) store_state(e, r, i, chunk_address(e, r, i, chunk, k), lanes, out[k * r->nstate + i]);
        else nvcl_define(e, r->s->out[i], k, out[k * r->nstate + i]);
      }
    nest_close(e, &t);
  }
  if (level == r->first && r->looped_chunks) chunk_tree(e, r);
}
