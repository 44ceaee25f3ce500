/* Builds nodes: elementwise operations with promotion and broadcasting, and the one-node helpers that all builders and
   expansions use. */
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "graph/infer.h"

/* ---- helpers with ownership: each takes the reference it is given and returns a new one, or NULL with a message */
static nvg_node *cast_node(nvg_node *a, nvm_dtype t, int flags) {
  nvg_node *n = a ? nvg_node_take(NVG_OP_CAST, nvg_aval_as(a->aval, t), &a, 1, NULL, 0) : NULL;
  if (n) n->flags = (uint8_t)flags;
  return n;
}

static nvg_node *reshape_node(nvg_node *a, int rank, const int64_t *shape) {
  if (!a || (a->aval->rank == rank && !memcmp(a->aval->shape, shape, sizeof *shape * (size_t)rank))) return a;
  return nvg_node_take(NVG_OP_RESHAPE, nvg_aval_get(a->aval->dtype, rank, shape), &a, 1, NULL, 0);
}

static nvg_node *expand_node(nvg_node *a, const nvg_aval *to) {
  if (!a || a->aval->shape == to->shape) return a;
  int64_t shape[NVM_MAX_RANK];
  int lead = to->rank - a->aval->rank;
  for (int d = 0; d < to->rank; d++) shape[d] = d < lead ? 1 : a->aval->shape[d - lead];
  a = reshape_node(a, to->rank, shape);
  if (!a || a->aval->shape == to->shape) return a;
  return nvg_node_take(NVG_OP_EXPAND, nvg_aval_as(to, a->aval->dtype), &a, 1, NULL, 0);
}

/* Converts an operand to dtype t and, unless it is 0-d, broadcasts it to the shape of `to`. Returns a new reference. */
static nvg_node *convert_operand(const char *who, nvg_node *a, nvm_dtype t, const nvg_aval *to) {
  int constant = a->weak && a->op == NVG_OP_CONST;
  if (a->weak && !constant && nvg_weak_fits(who, a, t)) return NULL;
  nvg_node *n = constant              ? nvg_const_as(who, a, t)
                : a->aval->dtype != t ? cast_node(nvg_node_ref(a), t, 1)
                                      : nvg_node_ref(a);
  return n && n->aval->rank ? expand_node(n, to) : n;
}

/* The aval whose shape all operands have that are not 0-d, borrowed; NULL: they have several. */
static const nvg_aval *common_shape(nvg_node *const *in, int n) {
  const nvg_aval *top = in[0]->aval;
  for (int i = 1; i < n; i++) {
    const nvg_aval *a = in[i]->aval;
    if (a->shape == top->shape || !a->rank) continue;
    if (top->rank) return NULL;
    top = a;
  }
  return top;
}
/* Returns a reference to an aval of the broadcast shape (its dtype does not matter); NULL with a message. */
static const nvg_aval *result_shape(const char *who, nvg_node *const *in, int n) {
  const nvg_aval *top = common_shape(in, n);
  if (top) return nvg_aval_ref(top);
  int64_t shape[NVM_MAX_RANK];
  int rank;
  return nvg_broadcast(who, in, n, &rank, shape) ? NULL : nvg_aval_get(NVM_BOOL, rank, shape);
}

static int pow_fault(nvg_node *exponent, nvm_dtype t) {
  if (nvg_class_of(t) != NVG_SIGNED || (!exponent->weak && exponent->op != NVG_OP_CONST)) return NVM_OK;
  int negative = exponent->weak ? !nvg_weak_side(exponent, t) && nvg_weak_negative(exponent)
                                : nvg_bits_int(exponent->aval->dtype, (uint64_t)exponent->attr[0]) < 0;
  if (!negative) return NVM_OK; /* an integer out of range of t is reported with the operand */
  return nvb_fail(NVM_ERR_VALUE, "[pow] integers to a negative integer power are not integers; cast to a float first");
}

/* If an integer is out of range of the dtype t of a comparison, the result is known: returns 0 or 1; -1 if it must be
   computed. */
static int decide_comparison(nvg_op op, nvg_node *const *in, nvm_dtype t) {
  int order = 0;
  for (int i = 0; i < 2; i++)
    if (in[i]->weak) order += (i ? -1 : 1) * nvg_weak_side(in[i], t);
  if (!order) return -1;
  switch (op) {
  case NVG_OP_LESS: case NVG_OP_LESS_EQUAL: return order < 0;
  case NVG_OP_GREATER: case NVG_OP_GREATER_EQUAL: return order > 0;
  default: return op == NVG_OP_NOT_EQUAL;
  }
}

static nvm_dtype result_dtype(nvg_op op, nvm_dtype t) {
  return op == NVG_OP_COMPLEX ? nvg_complex_of(t) : nvg_rule_out(nvg_ops[op].rule, t);
}
/* The result of a comparison of integers if one of them is out of range: 0 or 1; else -1. */
static int known_comparison(nvg_op op, nvg_node *const *in, int n, nvm_dtype t) {
  nvg_rule r = nvg_ops[op].rule;
  int whole = nvg_class_of(t) == NVG_SIGNED || nvg_class_of(t) == NVG_UNSIGNED;
  return whole && n == 2 && (r == NVG_REQ || r == NVG_RORDER) ? decide_comparison(op, in, t) : -1;
}
static nvg_node *map_over(nvg_op op, nvm_dtype t, nvg_node *const *in, int n, const nvg_aval *shape) {
  const nvg_op_info *o = &nvg_ops[op];
  int skip = o->rule == NVG_RWHERE;
  nvm_dtype out = result_dtype(op, t);
  unsigned c = 1u << nvg_class_of(t);
  if (o->def.same & c) return convert_operand(o->name, in[0], t, shape);
  if ((o->def.no | o->def.yes) & c) return expand_node(nvg_const(out, 0, 0, (o->def.yes & c) != 0), shape);
  int known = known_comparison(op, in, n, t);
  if (known >= 0) return expand_node(nvg_const(NVM_BOOL, 0, 0, known), shape);
  if ((op == NVG_OP_POW && pow_fault(in[n - 1], t)) || !nvg_map_defined(op, t)) return NULL;
  nvg_node *at[3] = { NULL };
  for (int i = 0; i < n; i++) {
    at[i] = convert_operand(o->name, in[i], i < skip ? NVM_BOOL : t, shape);
    if (at[i]) continue;
    while (i--) nvg_node_unref(at[i]);
    return NULL;
  }
  return nvg_node_take(op, nvg_aval_as(shape, out), at, n, NULL, 0);
}

/* Calls whose operands have one dtype and are taken as they are: the result's dtype follows from the operation and that
   dtype, and is looked up the next time. */
enum { OTHER = 1, PLAIN = 2 }; /* 0: nobody asked yet; PLAIN + the result's dtype */
static _Atomic uint8_t plain[NVG_NOPS][NVM_NDTYPES];
static uint8_t infer_plain(nvg_op op, nvg_node *const *in, int n, nvm_dtype default_float) {
  const nvg_op_info *o = &nvg_ops[op];
  nvm_dtype t = in[0]->aval->dtype;
  if (o->rule == NVG_RWHERE || op == NVG_OP_POW || op == NVG_OP_NEXTAFTER) return OTHER;
  if ((o->def.same | o->def.no | o->def.yes) & 1u << nvg_class_of(t)) return OTHER;
  int taken = nvg_rule_in(o->name, o->rule, in, n, default_float) == (int)t && nvg_map_defined(op, t);
  return taken ? (uint8_t)(PLAIN + (int)result_dtype(op, t)) : OTHER;
}
/* The aval of the result, a reference; NULL: operands differ, or are converted. */
static const nvg_aval *plain_result(nvg_op op, nvg_node *const *in, int n, nvm_dtype default_float) {
  const nvg_aval *a = in[0]->aval;
  for (int i = 0; i < n; i++)
    if (in[i]->aval != a || in[i]->weak) return NULL;
  uint8_t known = atomic_load_explicit(&plain[op][a->dtype], memory_order_relaxed);
  if (!known) {
    known = infer_plain(op, in, n, default_float);
    atomic_store_explicit(&plain[op][a->dtype], known, memory_order_relaxed);
  }
  return known == OTHER ? NULL : nvg_aval_as(a, (nvm_dtype)(known - PLAIN));
}

nvg_node *nvg_map(nvg_op op, nvg_node *const *in, int n, nvm_dtype default_float) {
  const nvg_op_info *o = &nvg_ops[op];
  const nvg_aval *as_they_are = plain_result(op, in, n, default_float);
  if (as_they_are) return nvg_node_new(op, as_they_are, in, n, NULL, 0);
  int skip = o->rule == NVG_RWHERE;
  int type = nvg_rule_in(o->name, o->rule, in + skip, n - skip, default_float);
  if (op == NVG_OP_NEXTAFTER && type >= 0 && nvg_is_narrow((nvm_dtype)type))
    return nvg_next_narrow(in, (nvm_dtype)type, default_float);
  const nvg_aval *shape = type < 0 ? NULL : result_shape(o->name, in, n);
  nvg_node *r = shape ? map_over(op, (nvm_dtype)type, in, n, shape) : NULL;
  nvg_aval_unref(shape);
  return r;
}

/* Calls whose answer follows from their dtypes alone, so that it is looked up the next time. An entry is written once;
   calls that meet another's are inferred each time. */
enum { KNOWN = 1 << 10, WRITING = 1 };
typedef struct known_call {
  _Atomic uint64_t key; /* 0: unused; WRITING: by a thread that found it unused */
  const nvg_frag *frag;
  nvm_dtype in, out;
} known_call;
static known_call known[KNOWN];
/* The key of a call; 0 if the answer follows from the value of a constant too. */
static uint64_t key_of_call(nvg_op op, nvg_node *const *in, int n, nvm_dtype default_float) {
  nvg_rule r = nvg_ops[op].rule;
  uint64_t key = (uint64_t)op << 1 | (default_float == NVM_F64), weak = 0;
  for (int i = 0; i < n; i++) {
    weak |= in[i]->weak;
    key = key << 8 | (uint64_t)in[i]->weak << 5 | (uint64_t)in[i]->aval->dtype;
  }
  return op == NVG_OP_POW || (weak && (r == NVG_REQ || r == NVG_RORDER)) ? 0 : key << 2; /* never WRITING */
}
static known_call *slot_of(uint64_t key) { return &known[(key * 0x9e3779b97f4a7c15ull) >> 54]; }
static void note_call(uint64_t key, const nvg_map_call *m) {
  known_call *k = slot_of(key);
  uint64_t none = 0;
  if (!key || !atomic_compare_exchange_strong(&k->key, &none, WRITING)) return;
  k->frag = m->frag, k->in = m->in, k->out = m->out;
  atomic_store_explicit(&k->key, key, memory_order_release);
}

static int infer_call(nvg_map_call *m, nvg_op op, nvg_node *const *in, int n, nvm_dtype default_float) {
  const nvg_op_info *o = &nvg_ops[op];
  int skip = o->rule == NVG_RWHERE;
  int type = nvg_rule_in(o->name, o->rule, in + skip, n - skip, default_float);
  if (type < 0) return 0;
  m->in = (nvm_dtype)type;
  m->out = result_dtype(op, m->in);
  if ((o->def.same | o->def.no | o->def.yes) & 1u << nvg_class_of(m->in)) return 0;
  m->squares = op == NVG_OP_POW && nvg_is_two(in[1]) && nvg_parts(m->in) == 1;
  if (op == NVG_OP_POW && in[1]->op == NVG_OP_CONST && !m->squares) return 0; /* other products */
  if (known_comparison(op, in, n, m->in) >= 0) return 0;
  return (m->frag = nvg_map_frag(m->squares ? NVG_OP_MULTIPLY : op, m->in)) != NULL;
}
int nvg_map_call_of(nvg_map_call *m, nvg_op op, nvg_node *const *in, int n, nvm_dtype default_float) {
  uint64_t key = key_of_call(op, in, n, default_float);
  const known_call *k = slot_of(key);
  if (!(m->like = common_shape(in, n))) return 0;
  if (key && atomic_load_explicit(&k->key, memory_order_acquire) == key) {
    m->frag = k->frag, m->in = k->in, m->out = k->out, m->squares = 0;
    return 1;
  }
  if (!infer_call(m, op, in, n, default_float)) return 0;
  note_call(key, m);
  return 1;
}

/* ---- helpers whose results the call owns */
static nvg_node *build_map(nvg_call *c, nvg_op op, nvg_node *const *in, int n) {
  for (int i = 0; i < n; i++)
    if (!in[i]) return NULL;
  return nvg_keep(c, nvg_map(op, in, n, c->default_float));
}
nvg_node *nvg_x1(nvg_call *c, nvg_op op, nvg_node *a) { return build_map(c, op, &a, 1); }
nvg_node *nvg_x2(nvg_call *c, nvg_op op, nvg_node *a, nvg_node *b) {
  nvg_node *in[2] = { a, b };
  return build_map(c, op, in, 2);
}
nvg_node *nvg_x3(nvg_call *c, nvg_op op, nvg_node *a, nvg_node *b, nvg_node *d) {
  nvg_node *in[3] = { a, b, d };
  return build_map(c, op, in, 3);
}

nvg_node *nvg_xcast(nvg_call *c, nvg_node *a, nvm_dtype t, int flags) {
  if (!a || (a->aval->dtype == t && !a->weak)) return a;
  if (a->weak && a->op == NVG_OP_CONST) return nvg_keep(c, nvg_const_as(nvg_ops[c->op].name, a, t));
  if (a->weak && nvg_weak_fits(nvg_ops[c->op].name, a, t)) return NULL;
  return nvg_keep(c, cast_node(nvg_node_ref(a), t, flags));
}
nvg_node *nvg_typed(nvg_call *c) {
  nvg_node *x = c->in[0];
  return x->weak ? nvg_xcast(c, x, nvg_dtype_in(x, c->default_float), 1) : x;
}
nvg_node *nvg_xfloat(nvg_call *c, double v) { return nvg_keep(c, nvg_weak('f', v, 0, 0)); }
nvg_node *nvg_xint(nvg_call *c, int64_t v) { return nvg_keep(c, nvg_weak('i', 0, 0, v)); }
nvg_node *nvg_xconst(nvg_call *c, nvm_dtype t, double re, int64_t i) { return nvg_keep(c, nvg_const(t, re, 0, i)); }

nvg_node *nvg_xiota(nvg_call *c, int rank, const int64_t *shape, int axis) {
  int64_t at = axis;
  return nvg_keep(c, nvg_node_take(NVG_OP_IOTA, nvg_aval_get(NVM_I64, rank, shape), NULL, 0, &at, 1));
}
nvg_node *nvg_xreshape(nvg_call *c, nvg_node *a, int rank, const int64_t *shape) {
  nvg_node *n = reshape_node(nvg_node_ref(a), rank, shape);
  return nvg_keep(c, n);
}
nvg_node *nvg_xexpand(nvg_call *c, nvg_node *a, int rank, const int64_t *shape) {
  const nvg_aval *to = a ? nvg_aval_get(a->aval->dtype, rank, shape) : NULL;
  nvg_node *r = to ? nvg_keep(c, expand_node(nvg_node_ref(a), to)) : NULL;
  nvg_aval_unref(to);
  return r;
}

nvg_node *nvg_xpermute(nvg_call *c, nvg_node *a, const int64_t *axes) {
  if (!a) return NULL;
  int64_t shape[NVM_MAX_RANK];
  int rank = a->aval->rank, moves = 0;
  for (int d = 0; d < rank; d++) shape[d] = a->aval->shape[axes[d]], moves |= axes[d] != d;
  if (!moves) return a;
  return nvg_keep(c, nvg_node_new(NVG_OP_PERMUTE_DIMS, nvg_aval_get(a->aval->dtype, rank, shape), &a, 1, axes, rank));
}

nvg_node *nvg_xtranspose(nvg_call *c, nvg_node *x) {
  int64_t axes[NVM_MAX_RANK];
  int r = x ? x->aval->rank : 0;
  for (int d = 0; d < r; d++) axes[d] = d < r - 2 ? d : 2 * r - 3 - d;
  return nvg_xpermute(c, x, axes);
}

nvg_node *nvg_xslice(nvg_call *c, nvg_node *a, const int64_t *start, const int64_t *count, const int64_t *step) {
  nvg_node *r = a ? nvg_slice(a, start, count, step, NULL) : NULL;
  if (r != a) return nvg_keep(c, r);
  nvg_node_unref(r);
  return a;
}

nvg_node *nvg_xrange(nvg_call *c, nvg_node *a, int axis, int64_t start, int64_t count, int64_t step) {
  if (!a) return NULL;
  int64_t s[NVM_MAX_RANK], n[NVM_MAX_RANK], t[NVM_MAX_RANK];
  for (int d = 0; d < a->aval->rank; d++) s[d] = 0, n[d] = a->aval->shape[d], t[d] = 1;
  s[axis] = start, n[axis] = count, t[axis] = step;
  return nvg_xslice(c, a, s, n, t);
}

/* Takes the diagonal as a slice of the flattened matrix, with a step of one row and one element. */
nvg_node *nvg_xdiagonal(nvg_call *c, nvg_node *x, int64_t k) {
  if (!x) return NULL;
  int64_t shape[NVM_MAX_RANK];
  int r = x->aval->rank;
  memcpy(shape, x->aval->shape, sizeof *shape * (size_t)r);
  int64_t rows = shape[r - 2], cols = shape[r - 1];
  int64_t n = k >= 0 ? (cols - k < rows ? cols - k : rows) : (rows + k < cols ? rows + k : cols);
  shape[r - 2] = rows * cols;
  x = nvg_xreshape(c, x, r - 1, shape);
  return nvg_xrange(c, x, r - 2, n > 0 ? (k >= 0 ? k : -k * cols) : 0, n > 0 ? n : 0, cols + 1);
}

nvg_node *nvg_xflip(nvg_call *c, nvg_node *x, uint32_t axes) {
  for (int d = 0; x && d < x->aval->rank; d++)
    if (axes >> d & 1) x = nvg_xrange(c, x, d, x->aval->shape[d] - 1, x->aval->shape[d], -1);
  return x;
}

nvg_node *nvg_xpad(nvg_call *c, nvg_node *a, nvg_node *fill, const int64_t *before, const int64_t *shape) {
  if (!a || !fill) return NULL;
  int rank = a->aval->rank;
  if (!memcmp(a->aval->shape, shape, sizeof *shape * (size_t)rank)) return a;
  nvg_node *in[2] = { a, nvg_xcast(c, fill, a->aval->dtype, 1) };
  return nvg_keep(c, nvg_node_new(NVG_OP_PADDED, nvg_aval_get(a->aval->dtype, rank, shape), in, 2, before, rank));
}

nvg_node *nvg_xjoin(nvg_call *c, nvg_node *const *in, int n, int axis) {
  if (!in[0] || n == 1) return in[0];
  int64_t shape[NVM_MAX_RANK], at = axis;
  int rank = in[0]->aval->rank;
  memcpy(shape, in[0]->aval->shape, sizeof *shape * (size_t)rank);
  for (int i = 1; i < n; i++)
    if (!in[i]) return NULL;
    else if (__builtin_add_overflow(shape[axis], in[i]->aval->shape[axis], &shape[axis]))
      return nvg_bad(c, NVM_ERR_VALUE, "the result has too many elements");
  return nvg_keep(c, nvg_node_new(NVG_OP_JOIN, nvg_aval_get(in[0]->aval->dtype, rank, shape), in, n, &at, 1));
}

nvg_node *nvg_xgather(nvg_call *c, nvg_node *a, nvg_node *index, int axis, int64_t of) {
  if (!a || !index) return NULL;
  nvg_node *in[2] = { a, index };
  int64_t at[3] = { axis, of, c->op };
  return nvg_keep(c, nvg_node_new(NVG_OP_GATHER, nvg_aval_as(index->aval, a->aval->dtype), in, 2, at, 3));
}

nvg_node *nvg_xscatter(nvg_call *c, nvg_node *index, int64_t size) {
  int64_t op = c->op;
  return !index ? NULL : nvg_keep(c, nvg_node_new(NVG_OP_SCATTER, nvg_aval_get(NVM_I64, 1, &size), &index, 1, &op, 1));
}

nvg_node *nvg_xdrop(nvg_call *c, nvg_node *a, uint32_t axes) {
  if (!a) return NULL;
  int64_t shape[NVM_MAX_RANK];
  int rank = 0;
  for (int d = 0; d < a->aval->rank; d++)
    if (!(axes >> d & 1)) shape[rank++] = a->aval->shape[d];
  return nvg_xreshape(c, a, rank, shape);
}

nvg_node *nvg_xreduce(nvg_call *c, nvg_op op, nvg_node *a, uint32_t axes, int keepdims) {
  if (!a) return NULL;
  int64_t shape[NVM_MAX_RANK], attr[NVM_MAX_RANK];
  int n = 0, rank = a->aval->rank;
  for (int d = 0; d < rank; d++) {
    shape[d] = axes >> d & 1 ? 1 : a->aval->shape[d];
    if (axes >> d & 1) attr[n++] = d;
  }
  nvm_dtype out = nvg_rule_out(nvg_ops[op].rule, a->aval->dtype);
  nvg_node *r = nvg_keep(c, nvg_node_new(op, nvg_aval_get(out, rank, shape), &a, 1, attr, n));
  return keepdims ? r : nvg_xdrop(c, r, axes);
}

int64_t nvg_count_over(const nvg_node *a, uint32_t axes) {
  int64_t n = 1;
  for (int d = 0; d < a->aval->rank; d++)
    if (axes >> d & 1) n *= a->aval->shape[d];
  return n;
}
