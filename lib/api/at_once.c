/* Computes an elementwise operation of numbers when it is called, if they have values in host memory: its result is an
   array with a value, and nothing is pending. The bits are those of an evaluation, since both run the same fragments.
   Decides which calls are computed so; never what an operation computes. */
#include <string.h>
#include "api/eval.h"
#include "base/pool.h"
#include "base/settings.h"
#include "graph/infer.h"

enum { OPERANDS = 3, PART = 16 };

/* The two parts of an operand (a real number has one): where they are, or would be after a conversion. */
typedef struct number { const char *part[2]; char own[2][PART]; } number;

/* Has the node a value that can be read here, or is it a constant? Floats of 16 bits and less are computed together
   with what follows, which rounds them less often. */
static int is_ready(const nvg_node *n, int *typed) {
  *typed |= !n->weak;
  if (n->device > NVM_DEVICE_CPU || nvg_is_narrow(n->aval->dtype) || n->aval->rank) return 0;
  if (n->op == NVG_OP_CONST) return 1;
  const nvg_value *v = atomic_load_explicit(&n->value, memory_order_acquire);
  return v && !n->weak && !v->device && !v->sum;
}
static int are_ready(nvm_ctx *ctx, nvg_node *const *in, int nin, int *dev) {
  int typed = 0;
  *dev = 0;
  for (int i = 0; i < nin; i++) {
    if (!in[i] || !is_ready(in[i], &typed)) return 0;
    *dev |= in[i]->device;
  }
  return typed && (*dev || nva_ctx_device(ctx) == NVM_DEVICE_CPU);
}

/* Converts one part. Returns 0 if no fragment does it. */
static int convert_part(number *x, int part, nvm_dtype from, nvm_dtype to) {
  if (from == to) return 1;
  const nvg_frag *f = nvg_cast_frag(from, to);
  const void *in = x->part[part];
  void *out = x->own[part];
  if (f) nvg_frag_apply(f, &in, &out, 1);
  x->part[part] = out;
  return f != NULL;
}
/* Is the complex number other than 0? As bool. */
static int convert_pair(number *x, nvm_dtype from) {
  static const char zero[PART];
  const nvg_frag *f = nvg_map_frag(NVG_OP_NOT_EQUAL, from);
  const void *in[4] = { x->part[0], x->part[1], zero, zero };
  void *out = x->own[0];
  if (f) nvg_frag_apply(f, in, &out, 1);
  x->part[0] = out;
  return f != NULL;
}
/* Reads an operand as a number of dtype t, to which it converts. Returns 0 if it has no such value. */
static int read_number(number *x, const char *who, nvg_node *n, nvm_dtype t) {
  static const char zero[PART];
  nvm_dtype from = n->aval->dtype, real;
  if (n->weak) {
    uint64_t bits[2];
    if (nvg_weak_bits(bits, who, n, t)) return 0;
    for (int i = 0; i < 2; i++) x->part[i] = memcpy(x->own[i], &bits[i], sizeof bits[i]);
    return 1;
  }
  int constant = n->op == NVG_OP_CONST, parts;
  const char *data = constant ? (const char *)n->attr : atomic_load_explicit(&n->value, memory_order_acquire)->data;
  x->part[0] = data;
  if ((parts = nvg_parts(from)) == 1 && from == t) return 1;
  real = nvg_real_of(from);
  x->part[1] = parts == 1 ? zero : data + (constant ? (int)sizeof *n->attr : nvg_size(real));
  if (parts > nvg_parts(t)) return convert_pair(x, from);
  return convert_part(x, 0, real, nvg_real_of(t)) && (parts == 1 || convert_part(x, 1, real, nvg_real_of(t)));
}
static int read_numbers(number *x, const nvg_map_call *m, nvg_op op, nvg_node *const *in, int nin) {
  const nvg_op_info *o = &nvg_ops[op];
  for (int i = 0; i < (m->squares ? 1 : nin); i++)
    if (!read_number(&x[i], o->name, in[i], o->rule == NVG_RWHERE && !i ? NVM_BOOL : m->in)) return 0;
  if (m->squares) memcpy(x[1].part, x[0].part, sizeof x->part);
  return 1;
}
static void run_call(char *to, const nvg_map_call *m, const number *x, nvg_op op, int nin) {
  const void *in[2 * OPERANDS];
  int n = 0, parts = nvg_parts(m->in);
  void *out[2] = { to, nvg_parts(m->out) == 2 ? to + nvg_size(m->out) / 2 : NULL };
  for (int i = 0; i < nin; i++) {
    in[n++] = x[i].part[0];
    if (parts == 2 && !(nvg_ops[op].rule == NVG_RWHERE && !i)) in[n++] = x[i].part[1];
  }
  unsigned fp = nvb_fp_enter();
  nvg_frag_apply(m->frag, in, out, 1);
  nvb_fp_leave(fp);
}

/* ---- sums, differences, products and quotients of float64, of which programs of numbers are made: their dtype and
   fragment need no look at a table. A NaN's bits are the fragment's. */
static int is_arithmetic(nvg_op op) {
  return op == NVG_OP_ADD || op == NVG_OP_SUBTRACT || op == NVG_OP_MULTIPLY || op == NVG_OP_DIVIDE;
}
/* Reads what float64 arithmetic takes without rounding: a float64 or a Python number. */
static int read_double(double *x, const nvg_node *n) {
  enum { EXACT = 53 };
  const int64_t most = INT64_C(1) << EXACT;
  nvm_dtype t = n->aval->dtype;
  if (n->op != NVG_OP_CONST) {
    if (t == NVM_F64) memcpy(x, atomic_load_explicit(&n->value, memory_order_acquire)->data, sizeof *x);
    return t == NVM_F64;
  }
  if (t == NVM_F64) memcpy(x, n->attr, sizeof *x);
  else if (n->weak && t == NVM_I64 && n->attr[0] >= -most && n->attr[0] <= most) *x = (double)n->attr[0];
  else return 0;
  return 1;
}
static double combine(nvg_op op, double x, double y) {
  return op == NVG_OP_ADD ? x + y : op == NVG_OP_SUBTRACT ? x - y : op == NVG_OP_MULTIPLY ? x * y : x / y;
}
/* in: ready operands, one of which is no Python number. NULL: the general way; no message is set then. */
static nvg_value *compute_arithmetic(const nvg_aval **av, nvg_op op, nvg_node *const *in) {
  double x[2], result;
  if (!is_arithmetic(op) || !read_double(&x[0], in[0]) || !read_double(&x[1], in[1])) return NULL;
  unsigned fp = nvb_fp_enter();
  volatile double a = x[0], b = x[1], r = combine(op, a, b); /* volatile: not before or after this mode */
  nvb_fp_leave(fp);
  *av = in[in[0]->weak != 0]->aval;
  result = r;
  nvg_value *v = result == result ? nva_value_packed(*av) : NULL;
  if (v) memcpy(v->data, &result, sizeof result);
  return v;
}

int nva_compute_at_once(nvm_array **out, nvm_ctx *ctx, nvg_op op, nvg_node *const *in, int nin) {
  number x[OPERANDS];
  nvg_map_call m;
  int dev;
  if (nvg_ops[op].kind != NVG_KMAP || nin != nvg_ops[op].nin || !are_ready(ctx, in, nin, &dev)) return 0;
  if (nva_tracing() || nva_default_device() || !nva_direct_allowed()) return 0;
  const nvg_aval *like;
  nvg_value *fast = compute_arithmetic(&like, op, in);
  if (fast) {
    nvb_log(3, "computed at once: %s of numbers", nvg_ops[op].name);
    *out = nva_leaf_over(ctx, like, fast, dev);
    return 1;
  }
  if (!nvg_map_call_of(&m, op, in, nin, ctx->default_float) || !read_numbers(x, &m, op, in, nin)) return 0;
  const nvg_aval *av = nvg_aval_as(m.like, m.out);
  nvg_value *v = nva_value_packed(av);
  if (v) run_call(v->data, &m, x, op, nin);
  nvb_log(3, "computed at once: %s of numbers", nvg_ops[op].name);
  *out = nva_leaf_over(ctx, av, v, dev);
  nvg_aval_unref(av);
  return 1;
}
