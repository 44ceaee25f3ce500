/* Checks the rules of the planner's language (graph.h, nvg_vkind), value by value, and reports the first violation. */
#include "graph/attention.h"
#include "graph/make.h"
#include "base/err.h"

typedef struct checker { nvb_arena *a; const nvg_graph *g; int i; } checker;

static void require(const checker *c, int holds, const char *rule) {
  if (!holds)
    nvb_throw(c->a, NVM_ERR_INTERNAL, "graph: %%%d (%s): %s", c->i, c->g->v[c->i].name ? c->g->v[c->i].name : "?",
              rule);
}
static const nvg_val *operand_of(const checker *c, int k) { return &c->g->v[c->g->v[c->i].in[k]]; }

static void check_map(const checker *c, const nvg_val *v) {
  int parts = 0;
  require(c, v->frag != NULL, "a map needs a fragment");
  for (int k = 0; k < v->nin; k++) {
    const nvg_val *x = operand_of(c, k);
    require(c, nvg_same_shape(x, v) || !x->rank, "operands have the result's shape or are 0-d");
    for (int p = 0; p < nvg_parts(x->dtype); p++, parts++)
      require(c, parts < v->frag->nparam && v->frag->inst[parts].type == (uint8_t)nvg_real_of(x->dtype),
              "a parameter has another dtype");
  }
  require(c, parts == v->frag->nparam, "the fragment takes another number of parameters");
  require(c, v->frag->nresult == nvg_parts(v->dtype), "the fragment has another number of results");
  for (int k = 0; k < v->frag->nresult; k++)
    require(c, v->frag->inst[v->frag->result[k]].type == (uint8_t)nvg_real_of(v->dtype),
            "the fragment gives another dtype");
}

static void check_reduction(const checker *c, const nvg_val *v) {
  const nvg_val *x = operand_of(c, 0);
  int parts = 0, scan = v->kind == NVG_VSCAN;
  require(c, v->frag && v->init, "a reduction needs a merge and identities");
  require(c, v->nattr == (scan ? 1 : 2), "the axes are missing");
  int64_t from = v->attr[0], len = scan ? 1 : v->attr[1];
  require(c, from >= 0 && from < x->rank && len > 0 && len <= x->rank - from && x->rank == v->rank,
          "the axes are out of range");
  for (int d = 0; d < v->rank; d++)
    require(c, v->shape[d] == (!scan && d >= from && d < from + len ? 1 : x->shape[d]),
            "the shape does not follow from the operand's");
  for (int k = 0; k < v->nin; k++) {
    require(c, nvg_same_shape(operand_of(c, k), x), "states have one shape");
    parts += nvg_parts(operand_of(c, k)->dtype);
  }
  require(c, v->frag->nparam == 2 * parts && v->frag->nresult == parts, "the merge does not take two states");
  int c_ = v->chunk, w = v->lanes;
  require(c, scan || (c_ > 0 && w > 0 && !(c_ & (c_ - 1)) && !(w & (w - 1)) && w <= c_),
          "the order is not two powers of two");
}

static void check_view(const checker *c, const nvg_val *v) {
  const nvg_val *x = operand_of(c, 0);
  int same_rank = x->rank == v->rank;
  uint32_t seen = 0;
  if (v->kind == NVG_VRESHAPE) require(c, x->size == v->size, "sizes differ");
  else require(c, same_rank, "ranks differ");
  for (int d = 0; d < v->rank && v->kind != NVG_VRESHAPE; d++) {
    const int64_t *a = v->attr;
    switch (v->kind) {
    case NVG_VPERMUTE:
      require(
          c, v->nattr == v->rank && a[d] >= 0 && a[d] < v->rank && !(seen >> a[d] & 1) && v->shape[d] == x->shape[a[d]],
          "not a permutation");
      seen |= 1u << a[d];
      break;
    case NVG_VEXPAND:
      require(c, v->shape[d] == x->shape[d] || x->shape[d] == 1, "only extents of 1 are repeated");
      break;
    case NVG_VSLICE: {
      require(c, v->nattr == 2 * v->rank, "a slice needs start and step of each dimension");
      int64_t last;
      int wild =
          __builtin_mul_overflow(v->shape[d] - 1, a[2 * d + 1], &last) || __builtin_add_overflow(last, a[2 * d], &last);
      require(c, !v->shape[d] || !wild, "the slice leaves its operand");
      require(c, !v->shape[d] || (a[2 * d] >= 0 && a[2 * d] < x->shape[d] && last >= 0 && last < x->shape[d]),
              "the slice leaves its operand");
      break;
    }
    case NVG_VROLL:
      require(
          c, v->nattr == 2 && a[0] >= 0 && a[0] < v->rank && a[1] >= 0 && a[1] < x->shape[a[0]] && nvg_same_shape(v, x),
          "the amount is out of range");
      break;
    case NVG_VPAD:
      require(c,
              v->nin == 2 && (!operand_of(c, 1)->rank || nvg_same_shape(v, operand_of(c, 1))) &&
                  operand_of(c, 1)->dtype == v->dtype && v->nattr == v->rank && a[d] >= 0 &&
                  x->shape[d] <= v->shape[d] && a[d] <= v->shape[d] - x->shape[d],
              "the operand does not fit");
      break;
    default: break;
    }
  }
  require(c, v->dtype == x->dtype, "a view keeps the dtype");
}

static void check_pick(const checker *c, const nvg_val *v) {
  const nvg_val *r = operand_of(c, 0);
  require(c, r->kind == NVG_VRED && v->nattr == 1 && v->attr[0] >= 0 && v->attr[0] < r->nin, "no such state");
  require(c, nvg_same_shape(v, r) && v->dtype == c->g->v[r->in[v->attr[0]]].dtype,
          "the state has another shape or dtype");
}

static void check_concat(const checker *c, const nvg_val *v) {
  int64_t sum = 0;
  require(c, v->nattr == 1 && v->nin > 0 && v->attr[0] >= 0 && v->attr[0] < v->rank, "the axis is out of range");
  for (int k = 0; k < v->nin; k++) {
    const nvg_val *x = operand_of(c, k);
    require(c, x->dtype == v->dtype && x->rank == v->rank, "operands have one dtype and rank");
    for (int d = 0; d < v->rank; d++) require(c, d == v->attr[0] || x->shape[d] == v->shape[d], "extents differ");
    require(c, !__builtin_add_overflow(sum, x->shape[v->attr[0]], &sum), "the extents do not add up");
  }
  require(c, sum == v->shape[v->attr[0]], "the extents do not add up");
}

static void check_scatter(const checker *c, const nvg_val *v) {
  const nvg_val *i = operand_of(c, 0);
  require(c, v->nin == 1 && i->rank == 1 && v->rank == 1 && i->dtype == NVM_I64 && v->dtype == NVM_I64,
          "positions and results are int64 along one axis");
}

static void check_gather(const checker *c, const nvg_val *v) {
  require(c, v->nin == 2 && v->nattr == 2 && v->attr[0] >= 0 && v->attr[0] < v->rank, "the axis is out of range");
  const nvg_val *x = operand_of(c, 0), *i = operand_of(c, 1);
  require(c, x->rank == v->rank && x->dtype == v->dtype, "the operand has another rank or dtype");
  require(c, i->dtype == NVM_I64 && nvg_same_shape(i, v), "positions are int64 of the result's shape");
  for (int d = 0; d < v->rank; d++) require(c, d == v->attr[0] || x->shape[d] == v->shape[d], "extents differ");
}

static void check_gemm(const checker *c, const nvg_val *v) {
  const nvg_val *a = operand_of(c, 0), *b = operand_of(c, 1);
  int r = v->rank, attends = nvg_is_attention(v);
  require(c, v->op == NVG_OP_GEMM && v->nin == 2 && (v->nattr == 2 || (attends && v->attr[2] == NVG_ATTENTION)),
          "no such call");
  require(c, r >= 2 && a->rank == r && b->rank == r, "ranks differ, or there are no matrices");
  for (int d = 0; d < r - 2; d++)
    require(c, a->shape[d] == v->shape[d] && b->shape[d] == v->shape[d], "batches differ");
  require(c, a->shape[r - 1] == b->shape[r - 2], "inner extents differ");
  require(c, a->shape[r - 2] == v->shape[r - 2] && b->shape[r - 1] == v->shape[r - 1],
          "the shape does not follow from the operands'");
  int bytes = a->dtype == NVM_I8;
  require(c, (attends || a->dtype == b->dtype) && (bytes || nvg_class_of(b->dtype) >= NVG_FLOAT),
          "operands have one dtype, of floats or int8");
  require(c, !attends || a->dtype == NVM_F32, "scores of attention are f32");
  require(c, v->attr[0] == (int64_t)v->dtype && v->dtype == (bytes ? NVM_I32 : nvg_compute_of(a->dtype)),
          "sums have another dtype");
  require(c, v->attr[1] >= 0 && v->attr[1] < NVM_NPRECISIONS, "no such precision");
}

static void check_bins(const checker *c, const nvg_val *v) {
  const nvg_val *x = operand_of(c, 0);
  require(c, v->nin <= 2 && v->nattr == 1 && v->rank > 0 && x->rank == v->rank && v->shape[v->rank - 1] == v->attr[0],
          "bins are the last dimension");
  for (int d = 0; d < v->rank - 1; d++) require(c, x->shape[d] == v->shape[d], "each row has bins");
  require(c, nvg_class_of(x->dtype) < NVG_FLOAT, "integers are counted");
  if (v->nin == 1) require(c, v->dtype == NVM_I64, "counts are int64");
  else
    require(c, nvg_same_shape(operand_of(c, 1), x) && operand_of(c, 1)->dtype == v->dtype, "each element has a weight");
}

static void check_search(const checker *c, const nvg_val *v) {
  const nvg_val *x = operand_of(c, 0), *y = operand_of(c, v->nin - 1);
  int ones = v->op == NVG_OP_POSITIONS;
  require(c, v->nin == 2 - ones && v->nattr == 1 - ones && v->rank > 0 && x->rank == v->rank && v->dtype == NVM_I64,
          "int64 positions in rows");
  for (int d = 0; d < v->rank - 1; d++) require(c, x->shape[d] == v->shape[d], "each row has positions");
  require(c, x->dtype == y->dtype && (ones ? x->dtype == NVM_BOOL : nvg_parts(x->dtype) == 1), "no such row");
  require(c, ones || (nvg_same_shape(v, y) && !nvg_is_narrow(x->dtype)), "each element has a position");
}

static void check_dft(const checker *c, const nvg_val *v) {
  const nvg_val *x = operand_of(c, 0);
  require(c, v->nin == 1 && v->nattr >= 2 && v->nattr <= NVG_DFT_ATTRS && v->rank > 0 && x->rank == v->rank,
          "rows are transformed");
  require(c, v->attr[0] >= 0 && v->attr[0] < NVG_NDFT && v->attr[1] > 0, "no such transform");
  int64_t n = v->attr[1], half = n / 2 + 1;
  int from_real = v->attr[0] == NVG_DFT_REAL, to_real = v->attr[0] == NVG_DFT_TO_REAL;
  require(c, v->shape[v->rank - 1] == (from_real ? half : n) && x->shape[v->rank - 1] == (to_real ? half : n),
          "a transform has n points");
  for (int d = 0; d < v->rank - 1; d++) require(c, x->shape[d] == v->shape[d], "each row has a transform");
  nvm_dtype real = nvg_real_of(v->dtype), whole = nvg_complex_of(real);
  require(c, !nvg_is_narrow(real) && v->dtype == (to_real ? real : whole) && x->dtype == (from_real ? real : whole),
          "transforms are of f32 or f64, real or complex");
}

static void check_routine(const checker *c, const nvg_val *v) {
  const nvg_val *x = operand_of(c, 0);
  if (nvg_is_of_matrices(v->op)) {
    require(c, nvg_class_of(x->dtype) >= NVG_FLOAT && !nvg_is_narrow(x->dtype), "matrices have 32 bits or more");
    for (int k = 1; k < v->nin; k++) require(c, operand_of(c, k)->dtype == x->dtype, "matrices have one dtype");
    require(c, v->nattr == 2 && v->nin <= 2, "no such routine of matrices");
    return;
  }
  if (v->op == NVG_OP_BINS || v->op == NVG_OP_DFT) {
    v->op == NVG_OP_BINS ? check_bins(c, v) : check_dft(c, v);
    return;
  }
  if (nvg_searches(v->op)) {
    check_search(c, v);
    return;
  }
  require(c, (v->op == NVG_OP_ORDER || v->op == NVG_OP_SORTED) && v->nin == 1 && v->nattr == 1, "no such routine");
  require(c, v->rank > 0 && nvg_same_shape(v, x), "rows and their order have one shape");
  require(c, nvg_parts(x->dtype) == 1 && v->dtype == (v->op == NVG_OP_ORDER ? NVM_I64 : x->dtype),
          "real numbers are ordered; positions are int64");
}

static void check_value(const checker *c, const nvg_val *v) {
  require(c, (unsigned)v->dtype < NVM_NDTYPES && v->rank >= 0 && v->rank <= NVM_MAX_RANK, "no such dtype or rank");
  require(c, v->size == nvg_size_of(v->rank, v->shape), "the size is wrong");
  for (int k = 0; k < v->nin; k++) require(c, v->in[k] >= 0 && v->in[k] < c->i, "operands come first");
  static const int least[] = { [NVG_VMAP] = 1,     [NVG_VRED] = 1,     [NVG_VSCAN] = 1,   [NVG_VPICK] = 1,
                               [NVG_VRESHAPE] = 1, [NVG_VPERMUTE] = 1, [NVG_VSLICE] = 1,  [NVG_VEXPAND] = 1,
                               [NVG_VROLL] = 1,    [NVG_VPAD] = 2,     [NVG_VCONCAT] = 1, [NVG_VGATHER] = 2,
                               [NVG_VSCATTER] = 1, [NVG_VCALL] = 2,    [NVG_VROUTINE] = 1 };
  require(c, v->nin >= least[v->kind], "operands are missing");
  switch (v->kind) {
  case NVG_VLEAF: {
    require(c, v->leaf >= 0 && v->leaf < c->g->nleaf, "no such leaf");
    const nvg_leaf *l = &c->g->leaf[v->leaf];
    nvg_val as = { .rank = l->rank, .shape = l->shape };
    require(c, l->dtype == v->dtype && nvg_same_shape(&as, v), "the leaf is another");
    break;
  }
  case NVG_VCONST: require(c, !v->rank && v->nattr == nvg_parts(v->dtype), "a constant is 0-d and has its bits"); break;
  case NVG_VIOTA:
    require(c, v->dtype == NVM_I64 && v->nattr == 1 && v->attr[0] >= 0 && v->attr[0] < v->rank,
            "coordinates are int64 of an axis");
    break;
  case NVG_VMAP: check_map(c, v); break;
  case NVG_VRED: case NVG_VSCAN: check_reduction(c, v); break;
  case NVG_VPICK: check_pick(c, v); break;
  case NVG_VCONCAT: check_concat(c, v); break;
  case NVG_VGATHER: check_gather(c, v); break;
  case NVG_VSCATTER: check_scatter(c, v); break;
  case NVG_VCALL: check_gemm(c, v); break;
  case NVG_VROUTINE: check_routine(c, v); break;
  default: check_view(c, v);
  }
}

void nvg_graph_check(nvb_arena *a, const nvg_graph *g) {
  checker c = { a, g, 0 };
  for (; c.i < g->n; c.i++) check_value(&c, &g->v[c.i]);
  for (int i = 0; i < g->nout; i++)
    if (g->out[i] < 0 || g->out[i] >= g->n) nvb_throw(a, NVM_ERR_INTERNAL, "graph: output %d is no value", i);
}
