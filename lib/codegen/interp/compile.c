/* Compiles a checked kernel to the interpreter's instructions. Tiles are packed arrays in scratch memory, which share
   memory where their lifetimes allow; every broadcast is a view. Only the extents of layouts matter. The interpreter is
   the reference for all bits, the first tier and the fallback; it never allocates while it runs, calls libm, or depends
   on lanes. */
#include <string.h>
#include "base/err.h"
#include "codegen/interp/interp.h"
#include "frag/dtype.h"
#include "kernel/dft.h"
#include "kernel/roots.h"

typedef struct life {
  int born, dies;
  int64_t bytes;
} life;
typedef struct maker {
  nvb_arena *a;
  nvc_interp *p;
  nvg_fragset *frags; /* fragments of transforms */
  uint8_t *changes;   /* by tile: 1: a loop carries it, so its elements are written again */
  life *life;         /* by slot */
  int now;            /* number of statements so far, ends of loops included */
  int64_t work;
} maker;

/* ---- shapes and operands */
static nvc_shape shape_of(const nvf_layout *l) {
  nvc_shape s = { .total = 1 };
  s.v.n = nvf_layout_axes(l, s.axis);
  for (int d = s.v.n - 1; d >= 0; d--) {
    s.v.ext[d] = nvf_extent(l, s.axis[d]);
    s.v.stride[d] = s.total;
    s.total *= s.v.ext[d];
  }
  return s;
}

static int place_of(const nvc_shape *s, int axis) {
  for (int d = 0; d < s->v.n; d++)
    if (s->axis[d] == axis) return d;
  return -1;
}

/* A tile as an operand over the elements of `over`: axes that it lacks have stride 0. */
static nvc_operand operand_over(const maker *m, const nvc_shape *over, int tile) {
  nvc_shape own = shape_of(&m->p->t->tile[tile]);
  nvc_operand o = { .from = NVC_TILE, .id = tile, .size = nvg_size(m->p->k->tile[tile].type), .v = over->v };
  for (int d = 0; d < over->v.n; d++) {
    int at = place_of(&own, over->axis[d]);
    o.v.stride[d] = at < 0 ? 0 : own.v.stride[at];
  }
  nvc_view_collapse(&o.v);
  o.whole = o.v.n == 1 && o.v.stride[0] == 1 && own.total == over->total;
  if (over->total == 1) o.whole = own.total == 1;
  return o;
}

static nvc_operand see_arg(const maker *m, const nvc_shape *over, const nvf_arg *a) {
  if (a->kind == NVF_ATILE) return operand_over(m, over, a->id);
  nvc_operand o = { .from = a->kind == NVF_AAXIS     ? NVC_COORD
                            : a->kind == NVF_ASCALAR ? NVC_SCALAR
                                                     : NVC_WORD,
                    .word = a->bits };
  o.id = a->kind == NVF_AAXIS ? place_of(over, a->id) : a->id;
  o.size = nvg_size(a->kind == NVF_AAXIS ? NVM_I64 : a->kind == NVF_ASCALAR ? m->p->k->param[a->id].type : a->type);
  o.v = (nvc_view){ 1, { over->total }, { 0 } };
  o.whole = over->total == 1 && o.from != NVC_COORD;
  return o;
}

/* ---- lifetimes of slots */
static void note_use(maker *m, int tile) {
  life *l = &m->life[m->p->slot[tile]];
  if (l->born < 0) l->born = m->now;
  l->dies = m->now;
}

static void touch_expr(maker *m, const nvf_expr *x) {
  if (!x) return;
  if (x->kind == NVF_TILE) note_use(m, x->id);
  touch_expr(m, x->a);
  touch_expr(m, x->b);
}

static void touch_all(maker *m, const nvf_stmt *s) {
  for (int i = 0; i < s->nin; i++) note_use(m, s->in[i]);
  for (int i = 0; i < s->nout; i++) note_use(m, s->out[i]);
  for (int i = 0; i < s->narg; i++)
    if (s->arg[i].kind == NVF_ATILE) note_use(m, s->arg[i].id);
  for (int i = 0; i < s->ncarry; i++) note_use(m, s->carry[i].outer);
  touch_expr(m, s->map);
  for (int i = 0; s->where && i < s->where->nrel; i++) {
    touch_expr(m, s->where->rel[i].a);
    touch_expr(m, s->where->rel[i].b);
  }
  for (int i = 0; s->where && i < s->where->ntile; i++) note_use(m, s->where->tile[i]);
}

/* A tile that was defined before the loop and is used in it lives until the loop's end. */
static void end_loop(maker *m, int start) {
  m->now++;
  for (int t = 0; t < m->p->k->ntile; t++)
    if (m->life[t].born >= 0 && m->life[t].born <= start && m->life[t].dies >= start) m->life[t].dies = m->now;
}

/* Places slots first-fit, among those that live at the same time. */
static void place_slots(maker *m) {
  nvc_interp *p = m->p;
  for (int t = 0; t < p->k->ntile; t++) {
    life *l = &m->life[t];
    int64_t at = p->work;
    for (int again = 1; again && l->born >= 0;) {
      again = 0;
      for (int u = 0; u < t; u++) {
        const life *o = &m->life[u];
        if (o->born < 0 || o->dies < l->born || l->dies < o->born) continue;
        if (at < p->offset[u] + o->bytes && p->offset[u] < at + l->bytes) {
          at = p->offset[u] + o->bytes;
          again = 1;
        }
      }
    }
    if (l->born < 0) continue;
    p->offset[t] = at;
    if (at + l->bytes > p->scratch) p->scratch = at + l->bytes;
  }
}

/* ---- instructions */
static nvc_list *make_list(maker *m, const nvf_block *b);

/* A copy in the same order shares the memory of its source, unless one of both is written again. */
static void share_tile(maker *m, const nvf_stmt *s, const nvc_shape *shape) {
  for (int i = 0; i < s->nout; i++)
    if (operand_over(m, shape, s->in[i]).whole && !m->changes[s->in[i]] && !m->changes[s->out[i]])
      m->p->slot[s->out[i]] = m->p->slot[s->in[i]];
}

static void add_refs(maker *m, nvc_ins *i, const nvf_expr *x) {
  if (!x) return;
  if (x->kind == NVF_TILE) i->op[i->nop++] = operand_over(m, &i->shape, x->id);
  add_refs(m, i, x->a);
  add_refs(m, i, x->b);
}

static int count_refs(const nvf_expr *x) { return x ? (x->kind == NVF_TILE) + count_refs(x->a) + count_refs(x->b) : 0; }

/* Collects the tiles in map and condition; returns the work memory that evaluating them takes. */
static int64_t prepare_index(maker *m, nvc_ins *i) {
  const nvf_stmt *s = i->s;
  const nvf_cond *w = s->where;
  int depth = s->map ? nvc_expr_depth(s->map) : 0, refs = count_refs(s->map) + (w ? w->ntile : 0);
  for (int q = 0; w && q < w->nrel; q++) {
    int a = nvc_expr_depth(w->rel[q].a), b = nvc_expr_depth(w->rel[q].b) + 1;
    depth = a > depth ? a : depth;
    depth = b > depth ? b : depth;
    refs += count_refs(w->rel[q].a) + count_refs(w->rel[q].b);
  }
  i->op = NVB_NEWN(m->a, nvc_operand, refs);
  add_refs(m, i, s->map);
  for (int q = 0; w && q < w->nrel; q++) {
    add_refs(m, i, w->rel[q].a);
    add_refs(m, i, w->rel[q].b);
  }
  for (int q = 0; w && q < w->ntile; q++) i->op[i->nop++] = operand_over(m, &i->shape, w->tile[q]);
  i->affine = (!s->map || nvc_affine(s->map)) && nvc_affine_cond(w) && s->op != NVF_ATOMIC_MAX;
  return (int64_t)(depth + 2) * NVC_BATCH * 8;
}

static void split_shape(nvc_ins *i) { /* splits the shape at the axis */
  int at = place_of(&i->shape, i->s->axis);
  i->len = i->shape.v.ext[at];
  i->inner = i->shape.v.stride[at];
  i->outer = i->shape.total / i->len / i->inner;
}

static int64_t make_map(maker *m, nvc_ins *i) {
  const nvf_stmt *s = i->s;
  int64_t work = 0;
  if (s->narg > NVC_OPERANDS || s->nout > NVC_OPERANDS)
    nvb_throw(m->a, NVM_ERR_UNSUPPORTED, "[interpreter] a map of more than %d operands or results", NVC_OPERANDS);
  i->frag = s->frag;
  i->nop = s->narg;
  i->op = NVB_NEWN(m->a, nvc_operand, s->narg);
  for (int j = 0; j < s->narg; j++) {
    i->op[j] = see_arg(m, &i->shape, &s->arg[j]);
    work += (int64_t)NVC_CHUNK * i->op[j].size;
  }
  return work;
}

static int64_t make_merge(maker *m, nvc_ins *i) {
  int64_t work = i->s->where ? prepare_index(m, i) : 0;
  i->frag = i->s->frag;
  split_shape(i);
  if (i->s->op == NVF_SCAN) return work + nvc_scan_work(m->p, i);
  nvf_red_order order = m->p->s->bind[i->s->red_order].order;
  i->chunk = order.c < i->len ? order.c : i->len;
  i->lanes = order.w < i->chunk ? order.w : i->chunk;
  return work + nvc_reduce_work(m->p, i);
}

static int64_t stride_along(const maker *m, int tile, int axis) {
  nvc_shape own = shape_of(&m->p->t->tile[tile]);
  return own.v.stride[place_of(&own, axis)];
}

static int64_t make_dft(maker *m, nvc_ins *i) {
  const nvf_stmt *s = i->s;
  nvf_layout rest = nvf_layout_without(m->p->t->stmt[s->id], s->axis);
  i->rest = shape_of(&rest);
  split_shape(i);
  i->nop = s->nin;
  i->op = NVB_NEWN(m->a, nvc_operand, s->nin);
  for (int j = 0; j < s->nin; j++) {
    i->op[j] = operand_over(m, &i->rest, s->in[j]);
    if (j < 2) i->along[j] = stride_along(m, s->in[j], s->axis);
  }
  i->frag = nvf_dft(m->a, m->frags, (int)i->len, s->sign, nvf_dft_powers(s->nin), m->p->k->tile[s->in[0]].type);
  return nvc_dft_work(m->p, i);
}

static int64_t make_contract(maker *m, nvc_ins *i) {
  const nvf_stmt *s = i->s;
  nvm_dtype t = m->p->k->tile[s->in[0]].type, three[3] = { t, t, t };
  int known = 1;
  i->nop = 2;
  i->op = NVB_NEWN(m->a, nvc_operand, 2);
  for (int j = 0; j < 2; j++) {
    i->op[j] = operand_over(m, &i->shape, s->in[j + 1]);
    i->along[j] = stride_along(m, s->in[j + 1], s->axis);
    nvm_dtype factor = m->p->k->tile[s->in[j + 1]].type;
    i->widen[j] = factor == t ? NULL : nvg_frag_cast(factor, t);
    known &= factor == t || i->widen[j];
  }
  i->len = nvf_extent(&m->p->t->tile[s->in[1]], s->axis);
  i->frag = nvg_frag_find(t == NVM_I32 ? "multiply_add" : "fma", three, 3);
  if (!i->frag || !known) nvb_throw(m->a, NVM_ERR_INTERNAL, "%s", nvb_strdup(m->a, nvb_message()));
  return nvc_contract_work(m->p, i);
}

static int64_t make_copy(maker *m, nvc_ins *i) {
  share_tile(m, i->s, &i->shape);
  i->nop = i->s->nin;
  i->op = NVB_NEWN(m->a, nvc_operand, i->nop);
  for (int j = 0; j < i->nop; j++) i->op[j] = operand_over(m, &i->shape, i->s->in[j]);
  return 0;
}

/* A carried tile shares memory with the tile outside, so entering and leaving the loop copies nothing. */
static void make_for(maker *m, nvc_ins *i) {
  int start = m->now;
  for (int j = 0; j < i->s->ncarry; j++) m->p->slot[i->s->carry[j].inner] = m->p->slot[i->s->carry[j].outer];
  touch_all(m, i->s);
  i->body = make_list(m, i->s->body);
  end_loop(m, start);
}

static void make_ins(maker *m, nvc_ins *i, const nvf_stmt *s) {
  int64_t work = 0;
  i->s = s;
  i->shape = shape_of(m->p->t->stmt[s->id]);
  m->now++;
  switch (s->op) {
  case NVF_MAP: work = make_map(m, i); break;
  case NVF_REDUCE:
  case NVF_SCAN: work = make_merge(m, i); break;
  case NVF_DFT: work = make_dft(m, i); break;
  case NVF_CONTRACT: work = make_contract(m, i); break;
  case NVF_RELAYOUT:
  case NVF_PUT:
  case NVF_GET: work = make_copy(m, i); break;
  case NVF_FOR: make_for(m, i); return;
  case NVF_IF:
    i->body = make_list(m, s->body);
    if (s->other_body) i->other = make_list(m, s->other_body);
    return;
  default: work = prepare_index(m, i);
  }
  touch_all(m, s);
  if (work > m->work) m->work = work;
}

static nvc_list *make_list(maker *m, const nvf_block *b) {
  nvc_list *l = NVB_NEW(m->a, nvc_list);
  l->n = b->n;
  l->at = NVB_NEWN(m->a, nvc_ins, b->n);
  for (int i = 0; i < b->n; i++) make_ins(m, &l->at[i], b->s[i]);
  return l;
}

/* The axis of a shape, -1 if it has one element, -2 if there are several axes. */
static int only_axis(const nvc_shape *s) {
  int axis = -1;
  for (int d = 0; d < s->v.n; d++)
    if (s->v.ext[d] > 1) axis = axis == -1 ? s->axis[d] : -2;
  return axis;
}

/* Are there only loads, maps and stores of one axis, at addresses that are linear in it? */
static int is_straight(const nvc_list *l) {
  int axis = -1;
  for (int i = 0; i < l->n; i++) {
    const nvc_ins *x = &l->at[i];
    int op = x->s->op, own = only_axis(&x->shape), moves = op == NVF_LOAD || op == NVF_STORE;
    if (own == -2 || (axis >= 0 && own >= 0 && own != axis) || (op != NVF_MAP && !(moves && x->affine))) return 0;
    axis = own >= 0 ? own : axis;
  }
  return axis >= 0;
}

static void find_changes(maker *m, const nvf_block *b) {
  for (int i = 0; i < b->n; i++) {
    const nvf_stmt *s = b->s[i];
    for (int j = 0; j < s->ncarry; j++) m->changes[s->carry[j].inner] = m->changes[s->carry[j].outer] = 1;
    if (s->body) find_changes(m, s->body);
    if (s->other_body) find_changes(m, s->other_body);
  }
}

static char *make_roots(nvb_arena *a, const nvf_param *p) {
  const uint64_t *bits = nvf_roots_bits(a, p);
  int size = nvg_size(nvg_real_of(p->type));
  char *to = NVB_NEWN(a, char, 2 * p->roots.length * size);
  for (int64_t i = 0; i < 2 * p->roots.length; i++) memcpy(to + i * size, &bits[i], (size_t)size); /* little endian */
  return to;
}

/* Scratch has loop variables, coordinates and block coordinates first, then tiles, then the work memory of one
   statement. */
nvc_interp *nvc_interp_new(nvb_arena *a, const nvf_kernel *k, const nvf_schedule *s) {
  nvc_interp *p = NVB_NEW(a, nvc_interp);
  maker m = { .a = a, .p = p, .frags = nvg_fragset_new(a), .now = 0 };
  *p = (nvc_interp){ .k = k, .s = s, .t = nvf_kernel_check(a, k, s) };
  p->table = NVB_NEWN(a, char *, k->nparam);
  for (int i = 0; i < k->nparam; i++)
    if (k->param[i].kind == NVF_ROOTS) p->table[i] = make_roots(a, &k->param[i]);
  p->part = NVB_NEWN(a, nvc_list, k->npart);
  p->slot = NVB_NEWN(a, int, k->ntile);
  p->offset = NVB_NEWN(a, int64_t, k->ntile);
  m.changes = NVB_NEWN(a, uint8_t, k->ntile);
  m.life = NVB_NEWN(a, life, k->ntile);
  int grid = 0;
  for (int i = 0; i < k->npart; i++) grid = k->part[i].ngrid > grid ? k->part[i].ngrid : grid;
  for (int t = 0; t < k->ntile; t++) {
    p->slot[t] = t;
    m.life[t] = (life){ -1, -1, nvc_align(shape_of(&p->t->tile[t]).total * nvg_size(k->tile[t].type)) };
  }
  for (int i = 0; i < k->npart; i++) find_changes(&m, &k->part[i].body);
  for (int i = 0; i < k->npart; i++) {
    p->part[i] = *make_list(&m, &k->part[i].body);
    p->part[i].straight = is_straight(&p->part[i]);
  }
  p->work = p->scratch = nvc_align(8 * (int64_t)(k->nvar + k->naxis + grid));
  place_slots(&m);
  p->work = p->scratch;
  p->scratch += nvc_align(m.work);
  return p;
}

int64_t nvc_interp_scratch(const nvc_interp *p) { return p->scratch; }

/* ---- running */
static int64_t blocks_of(const nvc_interp *p, const nvf_part *q, const uint64_t *args, int64_t *extent) {
  int64_t n = 1;
  for (int g = 0; g < q->ngrid; g++) {
    int64_t e = nvf_eval(p->k, p->s, q->grid[g].extent, args, NULL);
    extent[g] = e > 0 ? e : 0;
    n *= extent[g];
  }
  return n;
}

/* Elements of a tile that a block stores, at most: the last block along an axis may store fewer. */
static int64_t most_stored(const nvc_nest *r, const nvc_list *l) {
  int64_t most = 1;
  for (int i = 0; i < l->n; i++) {
    int64_t end = l->at[i].s->op == NVF_STORE ? nvc_end(r, &l->at[i]) : 0;
    most = end > most ? end : most;
  }
  return most;
}

int nvc_interp_run(const nvc_interp *p, const uint64_t *args, int64_t lo, int64_t hi, void *scratch) {
  int64_t unread;
  return nvc_interp_find(&unread, p, args, lo, hi, scratch);
}

int nvc_interp_find(int64_t *outside, const nvc_interp *p, const uint64_t *args, int64_t lo, int64_t hi,
                    void *scratch) {
  const nvf_kernel *k = p->k;
  nvc_nest r = { .p = p, .args = args, .scratch = scratch, .work = (char *)scratch + p->work };
  r.var = scratch;
  r.coord = r.var + k->nvar;
  r.grid = r.coord + k->naxis;
  int64_t first = 0;
  for (int i = 0; i < k->npart; i++) {
    const nvf_part *q = &k->part[i];
    int64_t extent[NVF_MAX_GRID], n = blocks_of(p, q, args, extent), end = first + n < hi ? first + n : hi;
    for (int64_t b = lo > first ? lo : first; b < end; b++) {
      int64_t left = b - first;
      for (int g = q->ngrid - 1; g >= 0; g--) {
        r.grid[g] = left % extent[g];
        left /= extent[g];
      }
      r.most = p->part[i].straight ? most_stored(&r, &p->part[i]) : INT64_MAX;
      int bad = nvc_nest_list(&r, &p->part[i]);
      if (bad) return *outside = r.outside, bad;
    }
    first += n;
  }
  return 0;
}
