/* Emits scans in the order of docs/how-it-works/numerics.md: runs of 16 elements in sequence, blocks of 64 runs by the
   bits of the run's number, blocks from left to right; the value is (carry + e) + p. Sums and products of integers,
   which have the same bits in any order, go one element after the other. The code works from scratch to scratch in
   small loops, on one element of all lanes at a time; if lanes are along the scanned axis, on one element. Never
   decides the order of merges. */
#include "codegen/llvm/emit.h"
#include "frag/dtype.h"

typedef struct scan {
  nvcl_em *e;
  const nvf_stmt *s;
  const nvg_frag *merge;
  const nvf_layout *l;
  nvf_layout walk;               /* l with all digits except lanes as loops, and without lanes if the axis has lanes */
  int n, lanes;                  /* number of states; elements at a time */
  int64_t len, run, runs, block; /* elements of the axis; elements of a run; runs; runs of a block */
  int64_t *total, *before;       /* by state: offset in scratch of an array by run */
  val *carry;                    /* by state: stack slot */
} scan;

static nvm_dtype type_of(const scan *c, int i) { return c->e->k->tile[c->s->in[i]].type; }

static val load_state(const scan *c, int i, val p) {
  nvm_dtype t = type_of(c, i);
  return nvcl_from_memory(c->e, nvcl_load(c->e, nvcl_vec(nvcl_memtype(c->e, t), c->lanes), p, (unsigned)nvg_size(t)), t,
                          c->lanes);
}
static void store_state(const scan *c, int i, val p, val v) {
  nvm_dtype t = type_of(c, i);
  nvcl_store(c->e, nvcl_to_memory(c->e, v, t, c->lanes), p, (unsigned)nvg_size(t));
}

static val by_run(const scan *c, const int64_t *off, int i, val at) {
  at = LLVMBuildNSWMul(c->e->b, at, nvcl_int(c->e, c->lanes), "");
  return LLVMBuildInBoundsGEP2(c->e->b, nvcl_memtype(c->e, type_of(c, i)), nvcl_gep(c->e, c->e->scratch, off[i]), &at,
                               1, "");
}

static val add_index(const scan *c, val a, val b) { return LLVMBuildNSWAdd(c->e->b, a, b, ""); }
static val scale_index(const scan *c, val a, int64_t k) { return LLVMBuildNSWMul(c->e->b, a, nvcl_int(c->e, k), ""); }

/* The value of a digit: of a kept axis, its loop's; of the scanned axis, a part of the current index. */
static val digit_at(const scan *c, const nvf_digit *d) {
  nvcl_em *e = c->e;
  val at = d->axis == c->s->axis ? e->fixed[d->axis] : NULL;
  if (!at) return nvcl_loop_value(e, d, 1);
  at = nvcl_floor_div(e, at, nvcl_int(e, d->stride));
  return LLVMBuildAnd(e->b, at, nvcl_int(e, d->extent - 1), ""); /* the extent of the axis is a power of two */
}

/* The elements of scratch between two values of each digit of a tile. */
static void steps_of(const scan *c, int tile, int64_t *by) {
  const nvf_layout *l = &c->e->t->tile[tile];
  int lanes = nvcl_layout_lanes(c->e, l);
  int64_t item = lanes, loop = (int64_t)lanes * nvc_items(l);
  for (int k = l->n; k-- > 0;) {
    const nvf_digit *d = &l->d[k];
    by[k] = d->level == 'l' ? d->pstride : d->level == 'i' ? item : loop;
    if (d->level == 'i') item *= d->extent;
    if (d->level == 'I') loop *= d->extent;
  }
}

/* The elements of scratch between two neighbours along the scanned axis; 0 if they are not the same everywhere. */
static int64_t step_of(const scan *c, int tile) {
  const nvf_layout *l = &c->e->t->tile[tile];
  int64_t step = 0, by[NVF_MAX_DIGITS];
  steps_of(c, tile, by);
  for (int k = 0; k < l->n; k++) {
    const nvf_digit *d = &l->d[k];
    if (d->axis != c->s->axis || d->extent == 1) continue;
    if (by[k] % d->stride || (step && by[k] / d->stride != step)) return 0;
    step = by[k] / d->stride;
  }
  return step;
}

/* Address of the current element of state i in a tile (of lane 0: lanes of kept axes are contiguous) */
static val element_address(const scan *c, int tile, int i) {
  nvcl_em *e = c->e;
  const nvf_layout *l = &e->t->tile[tile];
  val along = e->fixed[c->s->axis], at = nvcl_int(e, 0);
  int64_t step = along ? step_of(c, tile) : 0, by[NVF_MAX_DIGITS];
  steps_of(c, tile, by);
  if (step) at = scale_index(c, along, step);
  for (int k = l->n; k-- > 0;) {
    const nvf_digit *d = &l->d[k];
    if (d->extent == 1 || (d->level == 'l' && c->lanes > 1) || (step && d->axis == c->s->axis)) continue;
    at = add_index(c, at, scale_index(c, digit_at(c, d), by[k]));
  }
  val p = nvcl_gep(e, e->scratch, e->tile[tile].off);
  return LLVMBuildInBoundsGEP2(e->b, nvcl_memtype(e, type_of(c, i)), p, &at, 1, "");
}

/* Stores v. If lanes are visited one by one, the lanes that the layout does not use get copies. */
static void store_element(const scan *c, int tile, int i, val v) {
  const nvf_layout *l = &c->e->t->tile[tile];
  int size = nvg_size(type_of(c, i)), lanes = c->lanes > 1 ? 1 : nvcl_layout_lanes(c->e, l), used = 0;
  val p = element_address(c, tile, i);
  for (int k = 0; k < l->n; k++)
    if (l->d[k].level == 'l') used |= l->d[k].pstride * (l->d[k].extent - 1);
  for (int k = 0; k < lanes; k++)
    if (!(k & used)) store_state(c, i, nvcl_gep(c->e, p, (int64_t)k * size), v);
}

static void load_operand(const scan *c, val at, val *out) {
  c->e->fixed[c->s->axis] = at;
  val when = nvcl_mask_value(c->e, nvcl_cond(c->e, c->s->where, &c->walk, 0), c->lanes);
  for (int i = 0; i < c->n; i++) {
    out[i] = load_state(c, i, element_address(c, c->s->in[i], i));
    if (when)
      out[i] = LLVMBuildSelect(c->e->b, when, out[i], nvcl_bits(c->e, type_of(c, i), c->s->init[i], c->lanes), "");
  }
}

static void merge_states(const scan *c, val *a, const val *b) { nvcl_merge(c->e, c->merge, a, b, c->n, c->lanes); }

static void open_loop(const scan *c, nvcl_for *f, val lo, val hi, int64_t step) {
  nvcl_for_begin(c->e, f, lo, hi, nvcl_int(c->e, step), "scan");
}

/* Whether the merge is short enough to be repeated for all elements of a run. */
static int is_short(const nvg_frag *f) {
  enum { SHORT = 8 };
  return f->nresult == 1 && f->ninst <= SHORT;
}

/* Computes p of every element, and the totals of the runs: several runs at a time, whose sums do not wait for each
   other, in registers (10^6 float64, AVX2: 6.0 -> 2.6 ms). */
static void scan_runs_together(const scan *c) {
  enum { TOGETHER = 4 };
  int many = c->lanes == 1 && c->runs % TOGETHER == 0 ? TOGETHER : 1;
  nvcl_for q;
  val acc[TOGETHER], x;
  open_loop(c, &q, nvcl_int(c->e, 0), nvcl_int(c->e, c->runs), many);
  for (int64_t t = 0; t < c->run; t++)
    for (int r = 0; r < many; r++) {
      load_operand(c, add_index(c, scale_index(c, q.i, c->run), nvcl_int(c->e, r * c->run + t)), &x);
      if (t) merge_states(c, &acc[r], &x);
      else acc[r] = x;
      store_element(c, c->s->out[0], 0, acc[r]);
    }
  for (int r = 0; r < many; r++)
    store_state(c, 0, by_run(c, c->total, 0, add_index(c, q.i, nvcl_int(c->e, r))), acc[r]);
  nvcl_for_end(c->e, &q);
}
static void scan_runs(const scan *c) {
  nvcl_for q, t;
  val acc[NVC_ARGS], x[NVC_ARGS];
  if (is_short(c->merge)) {
    scan_runs_together(c);
    return;
  }
  open_loop(c, &q, nvcl_int(c->e, 0), nvcl_int(c->e, c->runs), 1);
  load_operand(c, scale_index(c, q.i, c->run), acc);
  for (int i = 0; i < c->n; i++) {
    store_element(c, c->s->out[i], i, acc[i]);
    store_state(c, i, by_run(c, c->total, i, q.i), acc[i]);
  }
  open_loop(c, &t, nvcl_int(c->e, 1), nvcl_int(c->e, c->run), 1);
  load_operand(c, add_index(c, scale_index(c, q.i, c->run), t.i), x);
  for (int i = 0; i < c->n; i++) acc[i] = load_state(c, i, by_run(c, c->total, i, q.i));
  merge_states(c, acc, x);
  for (int i = 0; i < c->n; i++) {
    store_element(c, c->s->out[i], i, acc[i]);
    store_state(c, i, by_run(c, c->total, i, q.i), acc[i]);
  }
  nvcl_for_end(c->e, &t);
  nvcl_for_end(c->e, &q);
}

static void merge_into(const scan *c, const int64_t *left, val at_left, const int64_t *right, val at_right,
                       const int64_t *to, val at) {
  val a[NVC_ARGS], b[NVC_ARGS];
  for (int i = 0; i < c->n; i++) {
    a[i] = load_state(c, i, by_run(c, left, i, at_left));
    b[i] = load_state(c, i, by_run(c, right, i, at_right));
  }
  merge_states(c, a, b);
  for (int i = 0; i < c->n; i++) store_state(c, i, by_run(c, to, i, at), a[i]);
}

/* Computes e of the runs of the block at `first`: groups of `size` runs add the total of the group to their left. */
static void exclusive_of_runs(const scan *c, val first) {
  for (int64_t size = 1; size < c->block; size *= 2) {
    nvcl_for g, n;
    open_loop(c, &g, nvcl_int(c->e, 0), nvcl_int(c->e, c->block), 2 * size);
    val left = add_index(c, first, g.i), at = add_index(c, left, nvcl_int(c->e, size));
    for (int i = 0; i < c->n; i++)
      store_state(c, i, by_run(c, c->before, i, at), load_state(c, i, by_run(c, c->total, i, left)));
    open_loop(c, &n, nvcl_int(c->e, 1), nvcl_int(c->e, size), 1);
    merge_into(c, c->total, left, c->before, add_index(c, at, n.i), c->before, add_index(c, at, n.i));
    nvcl_for_end(c->e, &n);
    merge_into(c, c->total, left, c->total, at, c->total, left);
    nvcl_for_end(c->e, &g);
  }
}

/* Computes carry + e for the runs of the block, then the next carry. */
static void carry_over(const scan *c, val first) {
  nvcl_for n;
  val a[NVC_ARGS], b[NVC_ARGS];
  open_loop(c, &n, nvcl_int(c->e, 1), nvcl_int(c->e, c->block), 1);
  val at = add_index(c, first, n.i);
  for (int i = 0; i < c->n; i++) {
    a[i] = load_state(c, i, c->carry[i]);
    b[i] = load_state(c, i, by_run(c, c->before, i, at));
  }
  merge_states(c, a, b);
  for (int i = 0; i < c->n; i++) store_state(c, i, by_run(c, c->before, i, at), a[i]);
  nvcl_for_end(c->e, &n);
  for (int i = 0; i < c->n; i++) {
    a[i] = load_state(c, i, c->carry[i]);
    b[i] = load_state(c, i, by_run(c, c->total, i, first));
    store_state(c, i, by_run(c, c->before, i, first), a[i]);
  }
  merge_states(c, a, b);
  for (int i = 0; i < c->n; i++) store_state(c, i, c->carry[i], a[i]);
}

static void carry_blocks(const scan *c, int has) {
  nvcl_for b;
  exclusive_of_runs(c, nvcl_int(c->e, 0)); /* the first block has no carry unless one is given */
  if (has) carry_over(c, nvcl_int(c->e, 0));
  else
    for (int i = 0; i < c->n; i++)
      store_state(c, i, c->carry[i], load_state(c, i, by_run(c, c->total, i, nvcl_int(c->e, 0))));
  open_loop(c, &b, nvcl_int(c->e, c->block), nvcl_int(c->e, c->runs), c->block);
  exclusive_of_runs(c, b.i);
  carry_over(c, b.i);
  nvcl_for_end(c->e, &b);
}

/* The elements of a run that one vector holds: where they lie side by side; 1: elsewhere. */
static int side_by_side(const scan *c) {
  int tile = c->s->out[0], width = c->e->target->width / nvg_size(type_of(c, 0));
  return c->lanes == 1 && c->n == 1 && step_of(c, tile) == 1 && c->run % width == 0 ? width : 1;
}

/* Adds the carries of runs to vectors of their elements. */
static void apply_to_vectors(const scan *c, int has, int width) {
  nvcl_em *e = c->e;
  nvm_dtype t = type_of(c, 0);
  nvcl_for q;
  open_loop(c, &q, nvcl_int(e, has ? 0 : 1), nvcl_int(e, c->runs), 1);
  val carry = nvcl_splat(e, load_state(c, 0, by_run(c, c->before, 0, q.i)), width);
  for (int64_t k = 0; k < c->run; k += width) {
    val a = carry, b;
    e->fixed[c->s->axis] = add_index(c, scale_index(c, q.i, c->run), nvcl_int(e, k));
    val p = element_address(c, c->s->out[0], 0);
    b = nvcl_from_memory(e, nvcl_load(e, nvcl_vec(nvcl_memtype(e, t), width), p, (unsigned)nvg_size(t)), t, width);
    nvcl_merge(e, c->merge, &a, &b, 1, width);
    nvcl_store(e, nvcl_to_memory(e, a, t, width), p, (unsigned)nvg_size(t));
  }
  nvcl_for_end(e, &q);
}

static void apply_carries(const scan *c, int has) {
  int width = is_short(c->merge) ? side_by_side(c) : 1;
  if (width > 1) {
    apply_to_vectors(c, has, width);
    return;
  }
  nvcl_for q, t;
  val a[NVC_ARGS], b[NVC_ARGS];
  open_loop(c, &q, nvcl_int(c->e, has ? 0 : 1), nvcl_int(c->e, c->runs), 1);
  open_loop(c, &t, nvcl_int(c->e, 0), nvcl_int(c->e, c->run), 1);
  c->e->fixed[c->s->axis] = add_index(c, scale_index(c, q.i, c->run), t.i);
  for (int i = 0; i < c->n; i++) {
    a[i] = load_state(c, i, by_run(c, c->before, i, q.i));
    b[i] = load_state(c, i, element_address(c, c->s->out[i], i));
  }
  merge_states(c, a, b);
  for (int i = 0; i < c->n; i++) store_element(c, c->s->out[i], i, a[i]);
  nvcl_for_end(c->e, &t);
  nvcl_for_end(c->e, &q);
}

/* Is the merge one operation on integers, which has the same bits in any order? */
static int is_free(const nvg_frag *f) {
  const nvg_inst *x = &f->inst[f->result[0]];
  int one = f->nresult == 1 && f->nparam == 2 &&
            (x->prim == NVG_ADD || x->prim == NVG_MUL || x->prim == NVG_AND || x->prim == NVG_OR || x->prim == NVG_XOR);
  if (!one || nvg_class_of((nvm_dtype)x->type) >= NVG_FLOAT) return 0;
  return f->inst[x->a].prim == NVG_PARAM && f->inst[x->b].prim == NVG_PARAM && x->a != x->b;
}

static uint64_t identity_of(const nvg_frag *f) {
  int prim = f->inst[f->result[0]].prim;
  return prim == NVG_MUL ? 1 : prim == NVG_AND ? ~0ull : 0;
}

/* Scans one element after the other, with the runs unrolled: the value to the left stays in a register. */
static void in_sequence(const scan *c, int has) {
  nvcl_for q;
  val acc[NVC_ARGS], x[NVC_ARGS];
  if (!has) store_state(c, 0, c->carry[0], nvcl_bits(c->e, type_of(c, 0), identity_of(c->merge), c->lanes));
  open_loop(c, &q, nvcl_int(c->e, 0), nvcl_int(c->e, c->runs), 1);
  for (int64_t t = 0; t < c->run; t++) {
    load_operand(c, add_index(c, scale_index(c, q.i, c->run), nvcl_int(c->e, t)), x);
    acc[0] = load_state(c, 0, c->carry[0]);
    merge_states(c, acc, x);
    store_element(c, c->s->out[0], 0, acc[0]);
    store_state(c, 0, c->carry[0], acc[0]);
  }
  nvcl_for_end(c->e, &q);
}

static void one_line(scan *c) {
  nvcl_em *e = c->e;
  int has = c->s->nin > c->n;
  e->fixed[c->s->axis] = NULL;
  for (int i = 0; i < c->n && has; i++)
    store_state(c, i, c->carry[i], load_state(c, i, element_address(c, c->s->in[c->n + i], i)));
  if (is_free(c->merge)) {
    in_sequence(c, has);
  } else {
    scan_runs(c);
    carry_blocks(c, has);
    apply_carries(c, has);
  }
  e->fixed[c->s->axis] = NULL;
  for (int i = 0; i < c->n && has; i++) store_element(c, c->s->out[c->n + i], i, load_state(c, i, c->carry[i]));
}

/* Decides the loops: lanes of other axes stay lanes; if the scanned axis has lanes, all lanes are visited one by
   one. */
static void plan_walk(scan *c) {
  int along = 0;
  for (int i = 0; i < c->l->n; i++)
    along |= c->l->d[i].level == 'l' && c->l->d[i].extent > 1 && c->l->d[i].axis == c->s->axis;
  for (int i = 0; i < c->l->n; i++) {
    nvf_digit d = c->l->d[i];
    if (d.axis == c->s->axis) continue;
    if (d.level != 'l' || along) d.level = 'I';
    c->walk.d[c->walk.n++] = d;
  }
  c->lanes = along ? 1 : nvcl_layout_lanes(c->e, c->l);
}

static void take_scratch(scan *c) {
  nvcl_em *e = c->e;
  c->run = c->len < NVF_SCAN_RUN ? c->len : NVF_SCAN_RUN;
  c->runs = c->len / c->run;
  c->block = c->runs < NVF_SCAN_RUNS ? c->runs : NVF_SCAN_RUNS;
  c->total = NVB_NEWN(e->a, int64_t, c->n);
  c->before = NVB_NEWN(e->a, int64_t, c->n);
  c->carry = NVB_NEWN(e->a, val, c->n);
  for (int i = 0; i < c->n; i++) {
    nvm_dtype t = type_of(c, i);
    c->total[i] = nvcl_scratch(e, c->runs * c->lanes * nvg_size(t));
    c->before[i] = nvcl_scratch(e, c->runs * c->lanes * nvg_size(t));
    c->carry[i] = nvcl_slot(e, nvcl_vec(nvcl_memtype(e, t), c->lanes), "carry");
    LLVMSetAlignment(c->carry[i], 64);
  }
}

void nvcl_emit_scan(nvcl_em *e, const nvf_stmt *s, int first, int end) {
  (void)first, (void)end;
  scan c = { .e = e, .s = s, .merge = nvcl_frag_full(s->frag), .l = &e->t->tile[s->in[0]], .n = s->frag->nresult };
  nvcl_for f[NVF_MAX_DIGITS];
  int open = 0, loops = e->nloop;
  c.len = nvf_extent(c.l, s->axis);
  if (c.len & (c.len - 1))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] the extent of a scan is %lld, which is no power of two",
              (long long)c.len);
  int tiles = s->where ? s->where->ntile : 0;
  for (int i = 0; s->where && i < s->where->nrel; i++)
    tiles += nvc_has(s->where->rel[i].a, NVF_TILE) || nvc_has(s->where->rel[i].b, NVF_TILE);
  if (tiles) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] the condition of a scan contains a tile");
  plan_walk(&c);
  take_scratch(&c);
  for (int i = 0; i < c.walk.n; i++) {
    const nvf_digit *d = &c.walk.d[i];
    if (d->level != 'I' || d->extent == 1) continue;
    nvcl_for_begin(e, &f[open], nvcl_int(e, 0), nvcl_int(e, d->extent), nvcl_int(e, 1), "line");
    e->loop[e->nloop++] = (nvcl_loop){ d->axis, d->extent, d->stride, 1, f[open++].i };
  }
  one_line(&c);
  e->nloop = loops;
  while (open-- > 0) nvcl_for_end(e, &f[open]);
  e->fixed[s->axis] = NULL;
}
