/* Emits contractions of shared tiles by a warp's tensor cores (mma.sync): 16 x 8 sums with k-steps of 16 operands of
   16 bits, 32 of 8 bits (floats or integers), 8 of 32 bits rounded to tf32, or 8 of f64. Decides how a sum's layout
   maps to such MMAs and in which order a warp issues them; never the order of addition within one, which is the
   hardware's. */
#include "codegen/cuda/tensor_core.h"
#include <string.h>
#include "frag/dtype.h"

static const nvf_digit *digit_at(const nvf_layout *l, int axis, int64_t stride) {
  for (int i = 0; i < l->n; i++)
    if (l->d[i].axis == axis && l->d[i].stride == stride && l->d[i].extent > 1) return &l->d[i];
  return NULL;
}

static int is_digit(const nvf_digit *d, char level, int extent, int pstride) {
  return d && d->level == level && d->extent == extent && (!pstride || d->pstride == pstride);
}

/* Are the digits of the axis from stride `above` on items and warps only? */
static int rest_fits(const nvf_layout *l, int axis, int64_t above) {
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    if (d->axis == axis && d->extent > 1 && d->stride >= above && d->level != 'i' && d->level != 'w') return 0;
  }
  return 1;
}

static int is_p(const nvf_layout *l, int axis) {
  const nvf_digit *two = digit_at(l, axis, 8);
  return is_digit(digit_at(l, axis, 1), 'l', 8, 4) && two && two->level == 'i' && two->extent % 2 == 0 &&
         rest_fits(l, axis, 8);
}
static int is_adjacent(const nvf_layout *l, int axis) {
  return is_digit(digit_at(l, axis, 1), 'i', 2, 0) && is_digit(digit_at(l, axis, 2), 'l', 8, 4) &&
         rest_fits(l, axis, 16);
}
static int is_rows(const nvf_layout *l, int axis) { return is_p(l, axis) || is_adjacent(l, axis); }
static int is_q(const nvf_layout *l, int axis) {
  return is_digit(digit_at(l, axis, 1), 'i', 2, 0) && is_digit(digit_at(l, axis, 2), 'l', 4, 1) &&
         rest_fits(l, axis, 8);
}

static int index_among(int *at, int *n, int v) {
  for (int i = 0; i < *n; i++)
    if (at[i] == v) return i;
  at[*n] = v;
  return (*n)++;
}

/* The blocks of 16 x 8 of a layout, which is one of sums of an MMA. */
static nvcu_accum blocks_of(nvcu_em *e, const nvf_layout *l, int p_axis, int q_axis) {
  int items = nvc_items(l);
  nvcu_accum s = { .l = l, .p = p_axis, .q = q_axis, .adjacent = is_adjacent(l, p_axis) };
  s.prow = NVB_NEWN(e->a, int, items);
  s.qcol = NVB_NEWN(e->a, int, items);
  s.item = NVB_NEWN(e->a, int, items);
  for (int i = 0; i < items; i++) {
    index_among(s.prow, &s.np, (int)nvc_axis_part(l, s.p, i) & ~15);
    index_among(s.qcol, &s.nq, (int)nvc_axis_part(l, s.q, i) & ~7);
  }
  for (int i = 0; i < items; i++) {
    int p = (int)nvc_axis_part(l, s.p, i), q = (int)nvc_axis_part(l, s.q, i);
    int at = index_among(s.prow, &s.np, p & ~15) * s.nq + index_among(s.qcol, &s.nq, q & ~7);
    s.item[4 * at + (p >> (s.adjacent ? 0 : 3) & 1) * 2 + (q & 1)] = i;
  }
  return s;
}

nvcu_accum nvcu_sum_of(nvcu_em *e, const nvf_stmt *contract) {
  const nvf_layout *l = &e->t->tile[contract->out[0]];
  int axes[NVF_MAX_DIGITS], n = 0, all = nvf_layout_axes(l, axes), transposed = 0;
  for (int i = 0; i < all; i++)
    if (nvf_extent(l, axes[i]) > 1 && !nvcu_apart(l, axes[i])) axes[n++] = axes[i];
  if (n == 2) transposed = is_rows(l, axes[1]) && is_q(l, axes[0]);
  if (n != 2 || !is_rows(l, axes[transposed]) || !is_q(l, axes[!transposed]))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the layout of %s is not that of the sums of an MMA",
              e->k->tile[contract->out[0]].name);
  return blocks_of(e, l, axes[transposed], axes[!transposed]);
}

/* ---- an operand that a warp has in registers: what another MMA summed has the places in which this one takes it */
static int same_digits(const nvf_layout *x, const nvf_layout *y, int axis) {
  int i = 0, j = 0;
  for (;; i++, j++) {
    while (i < x->n && (x->d[i].axis != axis || x->d[i].extent == 1)) i++;
    while (j < y->n && (y->d[j].axis != axis || y->d[j].extent == 1)) j++;
    if (i == x->n || j == y->n) return i == x->n && j == y->n;
    const nvf_digit *p = &x->d[i], *q = &y->d[j];
    if (p->extent != q->extent || p->level != q->level || p->stride != q->stride ||
        (p->level != 'i' && p->pstride != q->pstride))
      return 0;
  }
}

/* Whether the columns of the layout, along which it is contracted, are items and four lanes, in whole steps of 16. */
static int is_deep(const nvf_layout *l, int axis) {
  int ok = is_q(l, axis) && nvf_extent(l, axis) % 16 == 0;
  for (int i = 0; i < l->n; i++) ok &= l->d[i].level == 'i' || l->d[i].level == 'l' || l->d[i].axis != axis;
  return ok;
}

int nvcu_is_in_registers(nvcu_em *e, const nvf_stmt *put) {
  enum { MOST = 128 }; /* sums and elements of a thread: with 128 sums beside 64 elements there were spills */
  const nvc_tile_use *use = &e->r.tile[put->out[0]], *from = &e->r.tile[put->in[0]];
  const nvf_stmt *s = use->users.n == 1 ? e->r.stmt[use->users.at[0]] : NULL;
  const nvf_layout *l = &e->t->tile[put->in[0]];
  if (!s || s->op != NVF_CONTRACT || nvc_hint(&e->r, s, NVF_HINT_MMA, 0) != 1 || from->mutable || !from->def ||
      from->def->op != NVF_MAP || nvg_size(e->k->tile[put->out[0]].type) != 2 || e->r.nest_of[from->def->id]->nloop ||
      e->r.nest_of[s->id]->nloop)
    return 0;
  nvcu_accum sum = nvcu_sum_of(e, s);
  if (nvc_items(sum.l) + nvc_items(l) > MOST) return 0;
  int axes[NVF_MAX_DIGITS], other = nvf_layout_axes(l, axes) == 2;
  for (int i = 0; i < 2 && other; i++) other = axes[i] == sum.p || axes[i] == s->axis;
  return other && is_p(l, sum.p) && same_digits(l, sum.l, sum.p) && is_deep(l, s->axis);
}

/* The four registers of 16 rows (block i of them) and 16 elements of k, the step'th. */
static void registers_of(nvcu_em *e, int tile, const nvcu_accum *from, const char *name, int row, int step) {
  int i = 0, j = 0;
  while (from->prow[i] != row) i++;
  nvcu_line(e, "unsigned %s[4];", name);
  for (int half = 0; half < 2; half++) {
    for (j = 0; from->qcol[j] != 16 * step + 8 * half;) j++;
    for (int up = 0; up < 2; up++) {
      const int *c = &from->item[4 * (i * from->nq + j) + 2 * up];
      nvcu_line(e, "%s[%d] = %s | (unsigned)%s << 16;", name, 2 * half + up, nvcu_tile_item(e, tile, c[0]),
                nvcu_tile_item(e, tile, c[1]));
    }
  }
}

const char *nvcu_warp_part(nvcu_em *e, const nvf_layout *l, int axis) {
  nvf_layout warps = { 0 };
  for (int i = 0; i < l->n; i++)
    if (l->d[i].axis == axis && l->d[i].level == 'w' && l->d[i].extent > 1) warps.d[warps.n++] = l->d[i];
  nvcu_xv x = nvcu_coordinate(e, axis, &warps, 0);
  return nvcu_index_text(e, &x);
}

/* ---- operands of an MMA: four registers, for 8 x 8 quarters; MN-major operands of 32 bits are read as single words */
typedef struct side {
  nvcu_rows *r;
  int mn_major;          /* 1: k is the row axis of the shared tile */
  const char *at, *base; /* text: the current stage; the warp's first row or column */
  int single;            /* 1: MN-major elements of 32 bits, which are read one by one */
  int adjacent;          /* 1: MN-major bytes, and a lane's two rows are neighbours */
  int bytes;             /* 1: bytes that are upcast */
  nvm_dtype type;        /* the type that is multiplied: the tile's, or what its bytes are upcast to */
} side;

static side side_of(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, int axis) {
  for (int j = 1; j < 3; j++) {
    nvcu_rows *r = e->tile[s->in[j]].rows;
    if (!r || (r->row != axis && r->col != axis)) continue;
    int mn_major = r->row == s->axis, bytes = nvcu_is_upcast(e, s, r->type), adjacent = sum->adjacent && axis == sum->p;
    if (adjacent && !(mn_major && bytes))
      nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] only MN-major i8 operands can have two rows per lane");
    return (side){ r,
                   mn_major,
                   r->at,
                   nvcu_warp_part(e, sum->l, axis),
                   mn_major && r->size == 4,
                   adjacent,
                   bytes,
                   bytes ? nvcu_operand_type(e, s) : r->type };
  }
  nvb_throw(e->a, NVM_ERR_UNSUPPORTED,
            "[cuda] the operands of tensor cores must be shared tiles that `put` made for them");
}

nvm_dtype nvcu_operand_type(const nvcu_em *e, const nvf_stmt *s) {
  nvm_dtype t = e->k->tile[s->in[1]].type;
  return t == NVM_I8 ? e->k->tile[s->in[2]].type : t;
}

int nvcu_is_upcast(const nvcu_em *e, const nvf_stmt *s, nvm_dtype factor) {
  return s && factor == NVM_I8 && e->k->tile[s->out[0]].type != NVM_I32;
}

int nvcu_is_from_registers(const nvcu_em *e, const nvf_stmt *s, const nvcu_rows *r) {
  return nvcu_is_upcast(e, s, r->type) || (r->size == 4 && r->row == s->axis);
}

/* Offset within a stage of a lane's first operand for row (column) `first` and index k; h: which of the rows that it
   reads at once */
static const char *place_in(nvcu_em *e, const side *f, int first, const char *k, int h) {
  const char *line = nvcu_text(e, "%s + %d", f->base, first);
  if (f->single)
    return nvcu_rows_offset(e, f->r, nvcu_text(e, "%s + (lane & 3)", k), nvcu_text(e, "(%s + (lane >> 2)) * 4", line));
  if (f->adjacent) return nvcu_rows_offset(e, f->r, nvcu_text(e, "%s + (lane & 15)", k), line);
  const char *deep = nvcu_text(e, "%s + (lane & 3) * 2 + %d", k, h);
  line = nvcu_text(e, "%s + (lane >> 2)", line);
  return f->mn_major ? nvcu_rows_offset(e, f->r, deep, line) : nvcu_rows_offset(e, f->r, line, deep);
}

static int rows_at_once(const side *f) { return f->mn_major && !f->adjacent && !f->single ? 2 : 1; }

/* Reads bytes, two to a word: eight rows, or eight bytes of a row, further on, the swizzle is the same (swizzle.c). */
static void read_bytes(nvcu_em *e, const side *f, const char *name, const char *const *at, int order) {
  const char *from[2];
  nvcu_line(e, "unsigned %s[%d];", name, f->adjacent ? 2 : 4);
  if (f->adjacent) {
    nvcu_line(e, "nv_ldmatrix2_trans(%s, %s);", name, at[0]);
    return;
  }
  for (int h = 0; h < rows_at_once(f); h++)
    from[h] = nvcu_let(e, "unsigned char *", nvcu_text(e, "(const unsigned char *)%s", at[h]));
  int far = 8 * f->r->swizzle, up = f->mn_major ? 8 : far, deep = f->mn_major ? far : 8;
  for (int i = 0; i < 4; i++) {
    int on = (order ? i >> 1 : i & 1) * up + (order ? i & 1 : i >> 1) * deep;
    if (f->mn_major) nvcu_line(e, "%s[%d] = %s[%d] | %s[%d] << 16;", name, i, from[0], on, from[1], on);
    else nvcu_line(e, "%s[%d] = *(const unsigned short *)(%s + %d);", name, i, from[0], on);
  }
}

/* Text of two bytes that lie 16 bits apart; for bf16, the bits in between do not matter. */
static const char *bytes_apart(nvcu_em *e, const side *f, const char *bytes, int i) {
  if (!f->adjacent) return nvcu_text(e, f->mn_major ? "%s[%d]" : "nv_unpack_two(%s[%d])", bytes, i);
  if (i & 1) return nvcu_text(e, "nv_unpack_odd(%s[%d])", bytes, i / 2);
  return nvcu_text(e, f->type == NVM_BF16 ? "%s[%d]" : "nv_unpack_even(%s[%d])", bytes, i / 2);
}

static void widen_bytes(nvcu_em *e, const side *f, const char *name, const char *bytes) {
  for (int i = 0; i < 4; i++)
    nvcu_line(e, "%s[%d] = nv_s8_to_%s(%s);", name, i, nvcu_operand_name(e, f->type), bytes_apart(e, f, bytes, i));
}

void nvcu_begin_a_registers(nvcu_em *e, const nvf_stmt *s) {
  nvcu_accum sum = nvcu_sum_of(e, s);
  side p = side_of(e, s, &sum, sum.p);
  for (int h = 0; h < rows_at_once(&p); h++) {
    const char *own = p.r->lane[h] = nvcu_fresh(e, "own");
    nvcu_line(e, "int %s = %s;", own, place_in(e, &p, 0, "0", h));
    nvcu_line(e, "nv_keep(%s);", own);
  }
}

/* Reads words of 32 bits: eight columns or four rows further on, the swizzled offset differs by an exclusive or. */
static void read_words(nvcu_em *e, const side *f, const char *name, int first, int deep) {
  int swizzle = f->r->swizzle, byte = first * 4;
  nvcu_line(e, "unsigned %s[4];", name);
  for (int i = 0; i < 4; i++)
    nvcu_line(e, "%s[%d] = *(const unsigned *)(%s + (%s ^ %d) + %d);", name, i, f->r->stages, f->r->byte[0],
              byte % swizzle ^ (i & 1) * 32 ^ (i >> 1) * 64,
              (byte / swizzle * f->r->rows + deep + (i >> 1) * 4) * swizzle);
}

/* The swizzle is the same 16 rows, or 16 elements of k, further on. */
const char *nvcu_load_a_registers(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, int first, int deep) {
  side p = side_of(e, s, sum, sum->p);
  int swizzle = p.r->swizzle, row = p.mn_major ? deep : first, byte = p.mn_major ? first : deep;
  const char *name = nvcu_fresh(e, p.bytes ? "bytes" : "a"), *at[2];
  if (p.single) {
    read_words(e, &p, name, first, deep);
    return name;
  }
  for (int h = 0; h < rows_at_once(&p); h++)
    at[h] = nvcu_text(e, "(%s + (%s ^ %d) + %d)", p.r->stages, p.r->byte[h], byte % swizzle,
                      (byte / swizzle * p.r->rows + row) * swizzle);
  read_bytes(e, &p, name, at, 0);
  return name;
}

const char *nvcu_upcast(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, const char *bytes) {
  side p = side_of(e, s, sum, sum->p);
  const char *name = nvcu_fresh(e, "a");
  nvcu_line(e, "unsigned %s[4];", name);
  widen_bytes(e, &p, name, bytes);
  return name;
}

/* The same for f64, one value per register: four consecutive elements of k lie in neighbouring lanes. */
static void load_numbers(nvcu_em *e, const side *f, const char *name, int first, const char *k, int order) {
  nvcu_line(e, "double %s[4];", name);
  for (int i = 0; i < 4; i++) {
    int up = order ? i >> 1 : i & 1, deep = order ? i & 1 : i >> 1;
    const char *row = f->mn_major ? nvcu_text(e, "%s + %d + (lane & 3) * 2", k, deep)
                                  : nvcu_text(e, "%s + %d + nv_f64_row(lane >> 2)", f->base, first + 8 * up),
               *byte = f->mn_major ? nvcu_text(e, "(%s + %d + (lane >> 2)) * 8", f->base, first + 8 * up)
                                   : nvcu_text(e, "(%s + %d + (lane & 3)) * 8", k, 4 * deep);
    nvcu_line(e, "%s[%d] = *(const double *)(%s + nv_swizzled<%d, %d>(%s, %s));", name, i, f->at, f->r->rows,
              f->r->swizzle, row, byte);
  }
}

/* Emits the four registers of an operand. order 0, as for p: the two halves of the axis vary first; 1, as for q: the
   two halves of k vary first. */
static void load_fragment(nvcu_em *e, const side *f, const char *name, int first, const char *k, int order, int tf32) {
  const char *half = order ? "(lane >> 3 & 1)" : "(lane >> 4)", *eight = order ? "(lane >> 4)" : "(lane >> 3 & 1)";
  if (f->type == NVM_F64) {
    load_numbers(e, f, name, first, k, order);
    return;
  }
  nvcu_line(e, "unsigned %s[4];", name);
  if (f->bytes) {
    const char *two = nvcu_fresh(e, "bytes"), *at[2];
    for (int h = 0; h < rows_at_once(f); h++) at[h] = nvcu_text(e, "(%s + %s)", f->at, place_in(e, f, first, k, h));
    read_bytes(e, f, two, at, order);
    widen_bytes(e, f, name, two);
  } else if (f->single) {
    for (int i = 0; i < 4; i++) {
      int up = order ? i >> 1 : i & 1, deep = order ? i & 1 : i >> 1;
      const char *row = nvcu_text(e, "%s + %d + (lane & 3)", k, 4 * deep),
                 *byte = nvcu_text(e, "(%s + %d + (lane >> 2)) * 4", f->base, first + 8 * up);
      nvcu_line(e, "%s[%d] = *(const unsigned *)(%s + %s);", name, i, f->at, nvcu_rows_offset(e, f->r, row, byte));
    }
  } else if (f->mn_major) {
    const char *row = nvcu_text(e, "%s + (lane & 7) + %s * 8", k, half),
               *byte = nvcu_text(e, "(%s + %d + %s * 8) * 2", f->base, first, eight);
    nvcu_line(e, "nv_ldmatrix4_trans(%s, %s + %s);", name, f->at, nvcu_rows_offset(e, f->r, row, byte));
  } else {
    const char *row = nvcu_text(e, "%s + %d + (lane & 7) + %s * 8", f->base, first, eight),
               *byte = nvcu_text(e, "%s * %d + %s * 16", k, f->r->size, half);
    nvcu_line(e, "nv_ldmatrix4(%s, %s + %s);", name, f->at, nvcu_rows_offset(e, f->r, row, byte));
  }
  for (int i = 0; tf32 && i < 4; i++) nvcu_line(e, "%s[%d] = nv_tf32(%s[%d]);", name, i, name, i);
}

const char *nvcu_operand_name(nvcu_em *e, nvm_dtype t) {
  switch (t) {
  case NVM_F8E4: return "e4m3";
  case NVM_F8E5: return "e5m2";
  case NVM_BF16: return "bf16";
  case NVM_F16: return "f16";
  case NVM_F32: return "tf32";
  case NVM_I8: return "s8";
  case NVM_F64: return "f64";
  default: nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] tensor cores cannot multiply %s", nvg_dtype_short(t));
  }
}

static const char *name_instruction(nvcu_em *e, const side *p, const side *q) {
  const char *one = nvcu_operand_name(e, p->type);
  if (nvg_size(p->type) > 1) return nvcu_text(e, "nv_mma_%s", one);
  if ((p->type != NVM_I8 && e->target->arch < 89) || p->mn_major || q->mn_major)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED,
              "[cuda] tensor cores need K-major operands of 8 bits, and compute capability 8.9 for floats of 8 bits");
  if (p->type == NVM_I8) return "nv_mma_s8";
  return nvcu_text(e, "nv_mma_%s_%s", one, nvcu_operand_name(e, q->type));
}

/* The operand of p that is in registers; tile -1: it is in shared memory. */
typedef struct held { int tile, step; nvcu_accum of; } held;

static void emit_products(nvcu_em *e, const nvcu_accum *sum, const char *mma, const char *const *acc, const char *k,
                          const side *p, const side *q, const held *own) {
  int tf32 = p->type == NVM_F32 && !e->pipeline /* else TMA has rounded */, qstep = 0;
  const char **a = NVB_NEWN(e->a, const char *, sum->np);
  for (int i = 0; i < sum->np; i++) {
    a[i] = nvcu_fresh(e, "a");
    if (own->tile >= 0) registers_of(e, own->tile, &own->of, a[i], sum->prow[i], own->step);
    else load_fragment(e, p, a[i], sum->prow[i], k, 0, tf32);
  }
  for (int j = 0; j < sum->nq; j += qstep) { /* 16 columns in one access if they are contiguous */
    const char *b = nvcu_fresh(e, "b");
    qstep = j + 1 < sum->nq && sum->qcol[j + 1] == sum->qcol[j] + 8 ? 2 : 1;
    if (qstep == 1 && sum->qcol[j] & 8)
      nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the columns of a warp are not a multiple of 16");
    load_fragment(e, q, b, sum->qcol[j], k, 1, tf32);
    for (int h = 0; h < qstep; h++)
      for (int i = 0; i < sum->np; i++) {
        const int *c = &sum->item[4 * (i * sum->nq + j + h)];
        nvcu_line(e, "%s(%s, %s, %s, %s, %s, %s[%d], %s[%d]);", mma, acc[c[0]], acc[c[1]], acc[c[2]], acc[c[3]], a[i],
                  b, 2 * h, b, 2 * h + 1);
      }
  }
}

void nvcu_mma(nvcu_em *e, const nvf_stmt *s) {
  if (nvc_hint(&e->r, s, NVF_HINT_MMA, 0) == 2) {
    nvcu_group_mma(e, s);
    return;
  }
  for (int j = 1; j < 3; j++)
    if (e->tile[s->in[j]].smem) nvcu_may_read(e, e->tile[s->in[j]].smem);
  nvcu_accum sum = nvcu_sum_of(e, s);
  nvcu_warp_mma(e, s, &sum);
  for (int j = 1; j < 3; j++)
    if (e->tile[s->in[j]].smem) nvcu_read(e, e->tile[s->in[j]].smem);
}

/* The operand of the contraction that was put but is in registers. */
static held held_of(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum) {
  held own = { .tile = -1 };
  for (int j = 1; j < 3; j++) {
    const nvf_stmt *put = e->r.tile[s->in[j]].def;
    if (!put || put->op != NVF_PUT || !nvcu_is_in_registers(e, put)) continue;
    own.tile = put->in[0];
    own.of = blocks_of(e, &e->t->tile[own.tile], sum->p, s->axis);
  }
  return own;
}

/* All steps of k, by number, because registers have no index. */
static void emit_steps(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, const char *const *acc, held *own) {
  side q = side_of(e, s, sum, sum->q), p = { .type = q.type };
  int64_t n = nvf_extent(&e->t->tile[s->in[1]], s->axis);
  for (own->step = 0; own->step < n / 16; own->step++)
    emit_products(e, sum, name_instruction(e, &p, &q), acc, nvcu_text(e, "%d", 16 * own->step), &p, &q, own);
}

void nvcu_warp_mma(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum) {
  int items = nvc_items(sum->l), size = nvg_size(nvcu_operand_type(e, s)), deep = size > 4 ? 8 : 32 / size;
  int same = s->in[0] == s->out[0];
  const char **acc = NVB_NEWN(e->a, const char *, items), *type = nvcu_type(e->k->tile[s->out[0]].type);
  int64_t n = nvf_extent(&e->t->tile[s->in[1]], s->axis);
  if (n % deep)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a k-tile of %lld elements is not a multiple of the depth of an MMA",
              (long long)n);
  held own = held_of(e, s, sum);
  for (int i = 0; i < items; i++) {
    acc[i] = same ? nvcu_tile_item(e, s->in[0], i) : nvcu_fresh(e, "c");
    if (!same) nvcu_line(e, "%s %s = %s;", type, acc[i], nvcu_tile_at(e, s->in[0], sum->l, i));
  }
  if (own.tile >= 0) emit_steps(e, s, sum, acc, &own);
  else {
    side p = side_of(e, s, sum, sum->p), q = side_of(e, s, sum, sum->q);
    const char *k = nvcu_for(e, "0", nvcu_text(e, "%lld", (long long)n), nvcu_text(e, "%d", deep), (int)(n / deep));
    emit_products(e, sum, name_instruction(e, &p, &q), acc, k, &p, &q, &own);
    nvcu_close(e);
  }
  for (int i = 0; i < items && !same; i++) nvcu_define(e, s->out[0], i, acc[i]);
}
