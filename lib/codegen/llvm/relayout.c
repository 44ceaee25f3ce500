/* Moves between layouts and along item axes: relayout (exchanges of lane and item bits in registers, else through
   scratch), the transform of item axes, contraction of shared tiles. Decides which shuffles a relayout needs; never
   which layouts are used. */
#include "codegen/llvm/emit.h"
#include "frag/dtype.h"
#include "kernel/dft.h"

/* ---- relayout. A bit of an axis index is identified by axis and weight; each of the two layouts gives it a level. */
typedef struct bit {
  int axis;
  int64_t weight;
  char level;
  int at;
} bit; /* at: l: weight of the lane bit; i: step of the item */
typedef struct bits {
  int n;
  bit b[64];
} bits;

static int collect_bits(const nvf_layout *l, bits *out) { /* 0 if some extent is no power of two */
  out->n = 0;
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    int step = nvc_item_step(l, i);
    if (d->extent & (d->extent - 1)) return 0;
    for (int w = 1; w < d->extent && out->n < 64; w *= 2)
      out->b[out->n++] = (bit){ d->axis, d->stride * w, d->level, d->level == 'l' ? d->pstride * w : step * w };
  }
  return out->n < 64;
}

static int find_bit(const bits *s, bit b, const char *levels) {
  for (int i = 0; i < s->n; i++)
    for (const char *p = levels; *p; p++)
      if (s->b[i].axis == b.axis && s->b[i].weight == b.weight && s->b[i].level == *p) return i;
  return -1;
}

static bits bits_at(const bits *s, char level) {
  bits r = { 0 };
  for (int i = 0; i < s->n; i++)
    if (s->b[i].level == level) r.b[r.n++] = s->b[i];
  return r;
}

typedef struct exchange {
  bits from, to, lane, vec;
} exchange; /* lane: the index bit that each lane bit has now; vec: the index bit of each vector bit */

/* Can the relayout be done in registers? It can if both layouts use all lanes, and the source's lane bits are lanes or
   items of the result. */
static int plan_exchange(nvcl_em *e, const nvf_layout *a, const nvf_layout *b, exchange *x) {
  if (!collect_bits(a, &x->from) || !collect_bits(b, &x->to)) return 0;
  bits la = bits_at(&x->from, 'l'), lb = bits_at(&x->to, 'l');
  if (1 << la.n != e->lanes || 1 << lb.n != e->lanes) return 0;
  x->lane = la;
  for (int i = 0; i < la.n; i++) x->lane.b[__builtin_ctz((unsigned)la.b[i].at)] = la.b[i];
  x->vec.n = 0;
  for (int i = 0; i < la.n; i++)
    if (find_bit(&x->to, la.b[i], "il") < 0) return 0;
  for (int i = 0; i < x->to.n; i++)
    if (x->to.b[i].level != 'I' && find_bit(&la, x->to.b[i], "l") < 0) x->vec.b[x->vec.n++] = x->to.b[i];
  return x->vec.n < 16;
}

/* An element's position in its tile's scratch (or among its items): its digits as an expression over the axes */
static const nvf_expr *position_of(nvcl_em *e, const nvf_layout *l, int lanes) {
  nvf_expr *sum = NVB_NEW(e->a, nvf_expr);
  int64_t item = lanes, loop = (int64_t)lanes * nvc_items(l);
  for (int i = l->n; i-- > 0;) {
    const nvf_digit *d = &l->d[i];
    int64_t by = d->level == 'l' ? d->pstride : d->level == 'i' ? item : loop;
    if (d->level == 'i') item *= d->extent;
    if (d->level == 'I') loop *= d->extent;
    if (d->extent == 1) continue;
    nvf_expr *x = NVB_NEWN(e->a, nvf_expr, 8);
    x[0] = (nvf_expr){ .kind = NVF_AXIS, .id = d->axis };
    x[1] = (nvf_expr){ .kind = NVF_CONST, .value = d->stride };
    x[2] = (nvf_expr){ .kind = NVF_DIV, .a = &x[0], .b = &x[1] };
    x[3] = (nvf_expr){ .kind = NVF_CONST, .value = d->extent };
    x[4] = (nvf_expr){ .kind = NVF_MOD, .a = &x[2], .b = &x[3] };
    x[5] = (nvf_expr){ .kind = NVF_CONST, .value = by };
    x[6] = (nvf_expr){ .kind = NVF_MUL, .a = &x[4], .b = &x[5] };
    x[7] = (nvf_expr){ .kind = NVF_ADD, .a = sum, .b = &x[6] };
    sum = &x[7];
  }
  return sum;
}

static val source_vector(nvcl_em *e, int tile, const nvf_expr *map, const exchange *x, int c, const nvf_layout *to) {
  int64_t *shift = NVB_NEWN(e->a, int64_t, e->k->naxis);
  nvf_layout loops = { 0 };
  for (int i = 0; i < to->n; i++)
    if (to->d[i].level == 'I') loops.d[loops.n++] = to->d[i];
  for (int i = 0; i < x->vec.n; i++)
    if (c >> i & 1) shift[x->vec.b[i].axis] += x->vec.b[i].weight;
  e->shift = shift;
  nvcl_xv at = nvcl_index(e, map, &loops, 0);
  e->shift = NULL;
  if (e->tile[tile].home != NVC_MEM) return nvcl_tile_item(e, tile, (int)(at.k / e->lanes));
  val i = nvcl_index_value(e, &at, 1), p = nvcl_gep(e, e->scratch, e->tile[tile].off);
  nvm_dtype t = e->k->tile[tile].type;
  typ mem = nvcl_memtype(e, t);
  p = LLVMBuildInBoundsGEP2(e->b, mem, p, &i, 1, "");
  return nvcl_from_memory(e, nvcl_load(e, nvcl_vec(mem, e->lanes), p, (unsigned)nvg_size(t)), t, e->lanes);
}

/* Swaps lane bit p and vector bit v in all vectors. */
static void trade_bit(nvcl_em *e, val *vec, int nvec, int p, int v) {
  int lo[NVC_LANES], hi[NVC_LANES], n = e->lanes;
  for (int l = 0; l < n; l++) {
    lo[l] = l >> p & 1 ? n + (l ^ 1 << p) : l;
    hi[l] = l >> p & 1 ? n + l : l | 1 << p;
  }
  for (int c = 0; c < nvec; c++) {
    if (c >> v & 1) continue;
    val a = vec[c], b = vec[c | 1 << v];
    vec[c] = nvcl_shuffle(e, a, b, lo, n);
    vec[c | 1 << v] = nvcl_shuffle(e, a, b, hi, n);
  }
}

static void trade_lanes(nvcl_em *e, val *vec, int nvec, int p, int q) {
  int at[NVC_LANES];
  for (int l = 0; l < e->lanes; l++) {
    int a = l >> p & 1, b = l >> q & 1;
    at[l] = (l & ~(1 << p | 1 << q)) | a << q | b << p;
  }
  for (int c = 0; c < nvec; c++) vec[c] = nvcl_shuffle(e, vec[c], NULL, at, e->lanes);
}

static void exchange_bits(nvcl_em *e, exchange *x, val *vec) {
  bits want = bits_at(&x->to, 'l');
  int nvec = 1 << x->vec.n;
  for (int i = 0; i < want.n; i++) {
    int p = __builtin_ctz((unsigned)want.b[i].at), v = -1, q = -1;
    for (int j = 0; j < x->vec.n; j++)
      if (x->vec.b[j].axis == want.b[i].axis && x->vec.b[j].weight == want.b[i].weight) v = j;
    for (int j = 0; j < x->lane.n; j++)
      if (x->lane.b[j].axis == want.b[i].axis && x->lane.b[j].weight == want.b[i].weight) q = j;
    if (q == p) continue;
    bit t = x->lane.b[p];
    if (v >= 0) {
      trade_bit(e, vec, nvec, p, v);
      x->lane.b[p] = x->vec.b[v];
      x->vec.b[v] = t;
    } else {
      trade_lanes(e, vec, nvec, p, q);
      x->lane.b[p] = x->lane.b[q];
      x->lane.b[q] = t;
    }
  }
}

static void in_registers(nvcl_em *e, int in, int out, exchange x, const nvf_expr *map, const nvf_layout *to) {
  int nvec = 1 << x.vec.n;
  val *vec = NVB_NEWN(e->a, val, nvec);
  for (int c = 0; c < nvec; c++) vec[c] = source_vector(e, in, map, &x, c, to);
  exchange_bits(e, &x, vec);
  for (int c = 0; c < nvec; c++) {
    int item = 0;
    for (int i = 0; i < x.vec.n; i++) {
      int k = find_bit(&x.to, x.vec.b[i], "i");
      if (c >> i & 1) item += x.to.b[k].at;
    }
    nvcl_define(e, out, item, vec[c]);
  }
}

int nvcl_in_registers(nvcl_em *e, const nvf_stmt *s) {
  exchange x;
  return plan_exchange(e, &e->t->tile[s->in[0]], &e->t->tile[s->out[0]], &x);
}

void nvcl_emit_relayout(nvcl_em *e, const nvf_stmt *s, int first, int end) {
  (void)first, (void)end;
  const nvf_layout *from = &e->t->tile[s->in[0]], *to = &e->t->tile[s->out[0]];
  int equal = nvf_layout_eq(from, to);
  exchange x;
  for (int k = 0; k < s->nin; k++) {
    const nvf_expr *map = position_of(e, from, nvcl_layout_lanes(e, from));
    if (!equal && plan_exchange(e, from, to, &x)) {
      in_registers(e, s->in[k], s->out[k], x, map, to);
      continue;
    }
    for (int i = 0; i < nvc_items(to); i++) {
      val v;
      nvcl_access a;
      if (equal) v = nvcl_tile_at(e, s->in[k], to, i);
      else {
        a = nvcl_shared(e, s->in[k], map, to, i);
        nvcl_read(e, &a, 0, &v);
      }
      nvcl_define(e, s->out[k], i, v);
    }
  }
}

/* ---- the transform of an item axis */
void nvcl_emit_dft(nvcl_em *e, const nvf_stmt *s, int first, int end) {
  (void)first, (void)end;
  const nvf_layout *l = &e->t->tile[s->out[0]];
  nvf_layout rest = nvf_layout_without(l, s->axis);
  int n = (int)nvf_extent(l, s->axis), lanes = nvcl_layout_lanes(e, l), parts = s->nin > 1 ? 2 : 1;
  if (!e->frags) e->frags = nvg_fragset_new(e->a);
  const nvg_frag *f = nvf_dft(e->a, e->frags, n, s->sign, nvf_dft_powers(s->nin), e->k->tile[s->in[0]].type);
  for (int r = 0; r < nvc_items(&rest); r++) {
    val arg[NVF_DFT_PARAMS], out[2 * NVF_DFT_MAX];
    int item[NVF_DFT_MAX] = { 0 };
    for (int i = 0; i < nvc_items(l); i++)
      if (nvc_match_item(&rest, l, i) == r) item[nvc_axis_part(l, s->axis, i)] = i;
    for (int q = 0; q < n; q++)
      for (int j = 0; j < parts; j++) arg[parts * q + j] = nvcl_tile_at(e, s->in[j], l, item[q]);
    for (int j = parts; j < s->nin; j++) arg[parts * (n - 1) + j] = nvcl_tile_at(e, s->in[j], l, item[0]);
    nvcl_frag(e, nvcl_frag_full(f), arg, out, lanes);
    for (int q = 0; q < n; q++)
      for (int j = 0; j < 2; j++) nvcl_define(e, s->out[j], item[q], out[2 * q + j]);
  }
}

/* ---- contraction: out = acc + sum over the axis, ascending, of A * B, as outer products of broadcasts and vectors in
   registers */
void nvcl_emit_contract(nvcl_em *e, const nvf_stmt *s, int first, int end) {
  (void)first, (void)end;
  const nvf_layout *l = &e->t->tile[s->out[0]];
  int n = nvcl_layout_lanes(e, l), items = nvc_items(l), k = 0;
  nvm_dtype t = e->k->tile[s->out[0]].type;
  typ vt = nvcl_vec(nvcl_type(e, t), n);
  val *acc = NVB_NEWN(e->a, val, items);
  const nvcl_tile *a = &e->tile[s->in[1]];
  while (a->order[k] != s->axis) k++;
  for (int i = 0; i < items; i++) {
    acc[i] = nvcl_slot(e, vt, "sum");
    LLVMSetAlignment(acc[i], 64);
    nvcl_store(e, nvcl_tile_at(e, s->in[0], l, i), acc[i], 16);
  }
  const nvf_expr *map[2] = { nvcl_shared_map(e, s->in[1]), nvcl_shared_map(e, s->in[2]) };
  const nvg_frag *widen[2];
  for (int j = 0; j < 2; j++) {
    nvm_dtype factor = e->k->tile[s->in[1 + j]].type;
    widen[j] = factor == t ? NULL : nvg_frag_cast(factor, t);
  }
  nvcl_for f;
  nvcl_for_begin(e, &f, nvcl_int(e, 0), nvcl_int(e, a->extent[k]), nvcl_int(e, 1), "k");
  e->fixed[s->axis] = f.i;
  for (int i = 0; i < items; i++) {
    val v[3];
    for (int j = 0; j < 2; j++) {
      nvcl_access x = nvcl_shared(e, s->in[1 + j], map[j], l, i);
      nvcl_read(e, &x, 0, &v[j]);
      if (widen[j]) nvcl_frag(e, nvcl_frag_full(widen[j]), &v[j], &v[j], n);
    }
    v[2] = nvcl_load(e, vt, acc[i], 16);
    val sum = t == NVM_I32 ? LLVMBuildAdd(e->b, LLVMBuildMul(e->b, v[0], v[1], ""), v[2], "")
                           : nvcl_call(e, "llvm.fma", &vt, 1, v, 3);
    nvcl_store(e, sum, acc[i], 16);
  }
  e->fixed[s->axis] = NULL;
  nvcl_for_end(e, &f);
  for (int i = 0; i < items; i++) nvcl_define(e, s->out[0], i, nvcl_load(e, vt, acc[i], 16));
}
