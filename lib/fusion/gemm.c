/* Matches a kernel with a GEMM to a GEMM descriptor (nvf_gemm of plan.h): d = act(alpha * a b + beta * c + bias), or
   records why no descriptor expresses it. A rounding to 16 bits between the sum and d is not recorded: it belongs to
   every GEMM (numerics.md, section 4). It never decides which library runs the GEMM (lib/dispatch does). */
#include <float.h>
#include <math.h>
#include <string.h>
#include "frag/dtype.h"
#include "fusion/planner.h"

typedef struct matcher {
  const nvf_fusion *k;
  const nvf_step *step; /* NULL: the descriptor needs no parameter numbers */
  const int *buf_of;
  nvf_gemm *p;
  uint8_t *summed; /* by expression: 1: it depends on the sum */
} matcher;

static const nvf_iexpr *expr_of(const matcher *w, int i) { return &w->k->expr.at[i]; }
static const nvf_node *node_of(const matcher *w, int i) { return &w->k->graph->node[w->k->expr.at[i].node]; }

/* Records the reason unless there is one already; name: of an operation, or NULL. Returns 0. */
static int reject_match(matcher *w, const char *why, const char *name) {
  nvb_text t = { .arena = w->k->graph->arena };
  if (w->p->unsupported) return 0;
  nvb_print(&t, "%s%s%s", name ? name : "", name ? " " : "", why);
  w->p->unsupported = nvb_text_get(&t);
  return 0;
}

/* ---- parameters of the finished kernel */
static int param_of(const matcher *w, int node) {
  for (int i = 0; w->step && i < w->step->k->nparam; i++)
    if (w->step->k->param[i].kind == NVF_BUFFER && w->step->bind[i].buf == w->buf_of[node]) return i;
  return 0;
}

static int scalar_of(const matcher *w, int leaf, int node) {
  for (int i = 0; w->step && i < w->step->k->nparam; i++)
    if (w->step->k->param[i].kind == NVF_SCALAR && w->step->bind[i].leaf == 1 + leaf) return i;
  return param_of(w, node);
}

/* ---- expressions */
static int is_map(const matcher *w, int i, const char *name) {
  const char *f = expr_of(w, i)->kind == NVF_IMAP ? node_of(w, i)->frag->name : "";
  return !strcmp(f, name) || (!strncmp(f, "c.", 2) && !strcmp(f + 2, name));
}

static int is_float_cast(const matcher *w, int i) {
  return is_map(w, i, "cast") && nvg_class_of(node_of(w, i)->dtype) >= NVG_FLOAT &&
         nvg_class_of(node_of(w, expr_of(w, i)->arg[0])->dtype) >= NVG_FLOAT;
}
/* Whether a float cast may be dropped from the descriptor: it loses nothing, or it rounds a function of the sum to the
   dtype of the result. A cast to an 8-bit float may not. */
static int may_leave_out(const matcher *w, int i) {
  nvm_dtype to = node_of(w, i)->dtype;
  return is_float_cast(w, i) && !nvg_is_f8(to) &&
         (nvg_embeds(node_of(w, expr_of(w, i)->arg[0])->dtype, to) || (w->summed[i] && to == w->p->d.type));
}
static int strip_casts(const matcher *w, int i) {
  while (expr_of(w, i)->kind == NVF_ISAME || may_leave_out(w, i)) i = expr_of(w, i)->arg[0];
  return i;
}

/* ---- numbers that are the same for all elements */
static int match_constant(const matcher *w, int i, double *out) {
  const nvf_node *n = node_of(w, i);
  int is = expr_of(w, i)->kind == NVF_ICONST && n->kind == NVG_VCONST && nvg_class_of(n->dtype) >= NVG_FLOAT;
  if (!is || (n->parts > 1 && n->attr[1])) return 0;
  *out = nvg_bits_float(nvg_real_of(n->dtype), (uint64_t)n->attr[0]);
  return 1;
}

static int is_given(const matcher *w, const nvf_node *n) { /* whether each call passes it anew */
  nvg_class class = nvg_class_of(n->dtype);
  return n->kind == NVG_VLEAF && !n->rank && (class == NVG_FLOAT || class == NVG_SIGNED) &&
         w->k->graph->g->leaf[n->leaf].weak_const;
}

/* Matches a Python scalar that is rounded to one dtype before it is used, if no float dtype rounds its value to 0 or
   infinity. */
static int match_given(const matcher *w, int i, nvf_scale *out) {
  nvm_dtype as = node_of(w, i)->dtype;
  for (; is_map(w, i, "cast") || expr_of(w, i)->kind == NVF_ISAME; i = expr_of(w, i)->arg[0]) {
    nvm_dtype to = node_of(w, i)->dtype;
    if (!nvg_embeds(to, as)) return 0;
    as = to;
  }
  const nvf_node *n = node_of(w, i);
  if (expr_of(w, i)->kind != NVF_ILOAD || !is_given(w, n) || w->k->graph->g->leaf[n->leaf].extreme ||
      nvg_class_of(as) != NVG_FLOAT || nvg_is_f8(as))
    return 0;
  int param = scalar_of(w, n->leaf, expr_of(w, i)->node);
  int memory = w->step && w->step->k->param[param].kind == NVF_BUFFER;
  return *out = (nvf_scale){ param, 1, as, memory }, 1;
}

/* Whether a number is normal in the accumulator's dtype. BLAS treats a factor of 0 as absent, but 0 times NaN is NaN;
   and an infinite factor may multiply partial sums whose values the whole sum never has. */
static int is_normal(const matcher *w, double c) {
  int wide = nvg_real_of(w->p->accumulate) == NVM_F64;
  return fabs(c) >= (wide ? DBL_MIN : (double)FLT_MIN) && fabs(c) <= (wide ? DBL_MAX : (double)FLT_MAX);
}

/* Matches a number times something. A factor of 1 or -1 of complex numbers does not match: BLAS takes it as a sign
   alone. */
static int is_times(const matcher *w, int i, nvf_scale *number, int *what) {
  const nvf_iexpr *v = expr_of(w, i);
  double c;
  for (int side = 0; side < 2 && is_map(w, i, "multiply") && v->narg == 2; side++) {
    *what = v->arg[1 - side];
    if (match_constant(w, v->arg[side], &c) && is_normal(w, c) && (fabs(c) != 1 || node_of(w, i)->parts == 1))
      return *number = (nvf_scale){ .param = -1, .value = c }, 1;
    if (match_given(w, v->arg[side], number)) return 1;
  }
  return 0;
}

/* Matches a quotient by a constant, as a product with its reciprocal. */
static int is_part(const matcher *w, int i, nvf_scale *number, int *what) {
  const nvf_iexpr *v = expr_of(w, i);
  double c;
  if (!is_map(w, i, "divide") || !match_constant(w, v->arg[1], &c) || !is_normal(w, c) || !is_normal(w, 1 / c))
    return 0;
  return *number = (nvf_scale){ .param = -1, .value = 1 / c }, *what = v->arg[0], 1;
}

/* of real numbers only: -1 times a complex number may differ from its negative */
static int is_minus(const matcher *w, int i, int *what) {
  return is_map(w, i, "negative") && node_of(w, i)->parts == 1 ? *what = expr_of(w, i)->arg[0], 1 : 0;
}

/* ---- addresses */
/* Splits an address into offset and strides over two axes and the batch; returns 0 if it has any other term. */
static int match_strides(const matcher *w, nvf_ix at, int row, int col, nvf_matrix *out) {
  const nvf_fusion *k = w->k;
  nvf_space *s = k->graph->space;
  int n;
  const nvf_term *t = nvf_ix_terms(s, at, &n);
  for (int i = 0; i < n; i++) {
    const nvf_atom *a = nvf_ix_atom(s, t[i].atom);
    int64_t c = t[i].c * nvf_value(s, t[i].by);
    int b = 0;
    if (a->kind == NVF_AT_ONE) out->offset += c;
    else if (a->kind != NVF_AT_AXIS) return 0;
    else if (a->id == row) out->row += c;
    else if (a->id == col) out->col += c;
    else {
      for (int x = 0; x < a->id; x++) b += k->axis.at[x].extent && x != k->dot->m && x != k->dot->n && x != k->dot->k;
      if (b >= NVF_BATCHES || a->id == k->dot->m || a->id == k->dot->n || a->id == k->dot->k) return 0;
      out->batch[b] += c;
    }
  }
  return 1;
}

/* Whether rows or columns are contiguous and do not overlap. */
static int is_matrix(const matcher *w, const nvf_matrix *x, int row, int col) {
  int64_t rows = row < 0 ? 1 : w->k->axis.at[row].n, cols = col < 0 ? 1 : w->k->axis.at[col].n;
  for (int b = 0; b < NVF_BATCHES; b++)
    if (x->batch[b] < 0) return 0;
  return (x->col == 1 && x->row >= cols) || (x->row == 1 && x->col >= rows);
}

/* The strides of a scale along the outer axis of its operand, by element or by block, and along blocks of k;
   NVF_SCALE_TENSOR if the address has any other term. */
static nvf_scale_mode block_strides(const matcher *w, nvf_ix at, int outer, int64_t step[2], int64_t *offset) {
  nvf_space *s = w->k->graph->space;
  nvf_scale_mode by = NVF_SCALE_BLOCK;
  int n;
  const nvf_term *t = nvf_ix_terms(s, at, &n);
  for (int i = 0; i < n; i++) {
    const nvf_atom *a = nvf_ix_atom(s, t[i].atom);
    int64_t c = t[i].c * nvf_value(s, t[i].by);
    int blocks = a->kind == NVF_AT_FLOOR && nvf_value(s, a->by) == NVF_BLOCK;
    int axis = blocks ? nvf_ix_single_axis(s, a->of) : a->kind == NVF_AT_AXIS ? a->id : -1;
    if (a->kind == NVF_AT_ONE) *offset += c;
    else if (axis < 0 || (axis != outer && (axis != w->k->dot->k || !blocks))) return NVF_SCALE_TENSOR;
    else step[axis != outer] += c;
    if (axis >= 0 && axis == outer) by = blocks ? NVF_SCALE_BLOCK : NVF_SCALE_VECTOR;
  }
  int all = (step[0] || outer < 0 || w->k->axis.at[outer].n <= NVF_BLOCK) &&
            (step[1] || w->k->axis.at[w->k->dot->k].n <= NVF_BLOCK);
  return all ? by : NVF_SCALE_TENSOR;
}

static int block_scale(matcher *w, int i, int which) {
  const nvf_iexpr *v = expr_of(w, i);
  int64_t step[2] = { 0, 0 };
  nvf_matrix x = { .param = param_of(w, v->node), .type = NVM_F32 };
  int outer = which == NVF_SCALE_A ? w->k->dot->m : w->k->dot->n;
  if (v->kind != NVF_ILOAD || v->guard || node_of(w, i)->dtype != NVM_F32) return 0;
  w->p->by[which] = block_strides(w, v->at, outer, step, &x.offset);
  x.row = step[which != NVF_SCALE_A];
  x.col = step[which == NVF_SCALE_A];
  w->p->scale[which] = x;
  return w->p->by[which] != NVF_SCALE_TENSOR;
}

/* The 8-bit float that a scale of its blocks multiplies, if the GEMM's precision allows fewer bits than float32; else
   the operand itself. */
static int match_unscaled(matcher *w, int i, int which) {
  const nvf_iexpr *v = expr_of(w, i);
  int may = w->p->precision == NVM_PRECISION_TF32 && is_map(w, i, "multiply") && v->narg == 2;
  for (int side = 0; side < 2 && may; side++) {
    int x = strip_casts(w, v->arg[side]);
    if (nvg_is_f8(node_of(w, x)->dtype) && block_scale(w, strip_casts(w, v->arg[1 - side]), which)) return x;
  }
  return i;
}

static int match_operand(matcher *w, int i, int row, int col, const char *which, nvf_matrix *out) {
  const nvf_iexpr *v = expr_of(w, i);
  if (v->kind != NVF_ILOAD || v->guard)
    return reject_match(w, which, v->kind == NVF_IMAP ? node_of(w, i)->name : "a prologue");
  *out = (nvf_matrix){ .param = param_of(w, v->node), .type = node_of(w, i)->dtype };
  if (!match_strides(w, v->at, row, col, out) || !is_matrix(w, out, row, col))
    return reject_match(w, which, "an index map");
  return 1;
}

/* Is the right operand the left one transposed? */
static int is_transposed(const matcher *w, int left, int right) {
  const nvf_matrix *a = &w->p->a, *b = &w->p->b;
  int same = expr_of(w, left)->node == expr_of(w, right)->node && w->p->m == w->p->n && a->offset == b->offset &&
             a->row == b->col && a->col == b->row;
  for (int i = 0; i < NVF_BATCHES; i++) same &= a->batch[i] == b->batch[i];
  return same;
}

static int match_operands(matcher *w, const int *arg) {
  const nvf_dot *dot = w->k->dot;
  int a = match_unscaled(w, arg[0], NVF_SCALE_A), b = match_unscaled(w, arg[1], NVF_SCALE_B);
  if ((a == arg[0]) != (b == arg[1])) /* a library scales both operands by blocks, or neither */
    return reject_match(w, "of one operand's blocks alone", "a scale");
  if (!match_operand(w, a, dot->m, dot->k, "of the left operand", &w->p->a) ||
      !match_operand(w, b, dot->k, dot->n, "of the right operand", &w->p->b))
    return 0;
  w->p->operands = a == arg[0] ? w->p->operands : w->p->a.type;
  w->p->symmetric = is_transposed(w, a, b);
  return 1;
}

/* ---- the epilogue */
static uint64_t axis_bit(int axis) { return axis < 0 ? 0 : 1ull << axis; }

/* Moves a number and the signs of a term into beta. Returns the rest of the term. */
static int without_beta(const matcher *w, int i, nvf_scale *beta) {
  nvf_scale number = *beta;
  for (int what;; i = strip_casts(w, what)) {
    if (is_minus(w, i, &what)) beta->value = -beta->value;
    else if (beta->param < 0 && fabs(beta->value) == 1 && is_times(w, i, &number, &what))
      number.value *= beta->value, *beta = number;
    else return i;
  }
}

/* Matches a term that is added or subtracted (sign -1): a bias along one axis, or c. */
static int match_term(matcher *w, int i, nvm_dtype type, double sign) {
  const nvf_dot *dot = w->k->dot;
  nvf_scale beta = { .param = -1, .value = sign };
  int load = without_beta(w, strip_casts(w, i), &beta);
  const nvf_iexpr *v = expr_of(w, load);
  nvf_matrix x = { .param = v->kind == NVF_ILOAD ? param_of(w, v->node) : -1, .type = node_of(w, load)->dtype };
  uint64_t m = axis_bit(dot->m), n = axis_bit(dot->n);
  if (v->kind != NVF_ILOAD || v->guard || !match_strides(w, v->at, dot->m, dot->n, &x))
    return reject_match(w, "is added", v->kind == NVF_IMAP ? node_of(w, load)->name : "what is not in memory");
  if (v->axes == m || v->axes == n) {
    /* libraries take a 16-bit bias here */
    if (nvg_is_f8(w->p->operands) && x.type != (type == NVM_F32 ? NVM_BF16 : type))
      return reject_match(w, "a bias of another dtype", NULL);
    if (w->p->bias.param >= 0 || beta.param >= 0 || beta.value != 1)
      return reject_match(w, "a second or scaled bias", NULL);
    w->p->bias = x;
    return 1;
  }
  if (!is_matrix(w, &x, dot->m, dot->n) || x.type != type) return reject_match(w, "c of another dtype or shape", NULL);
  if (w->p->c.param >= 0) return reject_match(w, "a second c", NULL);
  w->p->c = x;
  w->p->beta = beta;
  return 1;
}

static int act_of(const matcher *w, int i, int *of) {
  const nvf_iexpr *v = expr_of(w, i);
  int written = nvf_gelu_of(w->k, i, nvg_is_narrow(w->p->d.type));
  *of = written >= 0 ? written : v->narg ? v->arg[0] : -1;
  return is_map(w, i, "relu") ? NVF_ACT_RELU : is_map(w, i, "gelu_tanh") || written >= 0 ? NVF_ACT_GELU : NVF_ACT_NONE;
}

/* Matches a scale of an 8-bit float GEMM in memory: one number, or one for each row or column. */
static int match_scale(const matcher *w, int i) {
  const nvf_iexpr *v = expr_of(w, i = strip_casts(w, i));
  const nvf_node *n = node_of(w, i);
  const nvf_dot *dot = w->k->dot;
  nvf_matrix x = { .param = param_of(w, v->node), .type = n->dtype }, *s = w->p->scale;
  int rows = v->axes && v->axes == axis_bit(dot->m), columns = v->axes && v->axes == axis_bit(dot->n);
  int to = columns || (!rows && s[NVF_SCALE_A].param >= 0) ? NVF_SCALE_B : NVF_SCALE_A;
  if (!nvg_is_f8(w->p->operands) || v->kind != NVF_ILOAD || v->guard || n->dtype != NVM_F32 || is_given(w, n) ||
      (v->axes && !rows && !columns) || s[to].param >= 0 || !match_strides(w, v->at, dot->m, dot->n, &x))
    return 0;
  s[to] = x;
  w->p->by[to] = rows || columns ? NVF_SCALE_ROW : NVF_SCALE_TENSOR;
  return 1;
}

/* Sets alpha to a number, keeping its sign so far. It takes only one number: the product of two might round differently
   or overflow. */
static int alpha_is(matcher *w, nvf_scale number) {
  double sign = w->p->alpha.value;
  if (w->p->alpha.param >= 0 || fabs(sign) != 1) return 0;
  w->p->alpha = number;
  w->p->alpha.value *= sign;
  return 1;
}

/* Matches a product of scales of the sum, of which one may be a number. */
static int match_factor(matcher *w, int i) {
  const nvf_iexpr *v = expr_of(w, i);
  double c;
  if (match_constant(w, i, &c)) return is_normal(w, c) && alpha_is(w, (nvf_scale){ .param = -1, .value = c });
  if (is_map(w, i, "multiply") && v->narg == 2) return match_factor(w, v->arg[0]) && match_factor(w, v->arg[1]);
  return match_scale(w, i);
}

/* Matches the outermost factor of the sum and returns what it multiplies; -1: there is none. */
static int match_outermost(matcher *w, int i) {
  const nvf_iexpr *v = expr_of(w, i);
  nvf_scale number = { .param = -1, .value = -1 };
  int what, by = is_map(w, i, "multiply") && v->narg == 2 && w->summed[v->arg[0]] != w->summed[v->arg[1]];
  if (is_minus(w, i, &what) || is_times(w, i, &number, &what) || is_part(w, i, &number, &what))
    return alpha_is(w, number) ? what : -1;
  by = by && nvg_is_f8(w->p->operands) && match_factor(w, v->arg[w->summed[v->arg[0]]]);
  return by ? v->arg[w->summed[v->arg[1]]] : -1;
}

/* Records why no library takes a factor of the sum. Returns 0. */
static int not_an_operand(matcher *w, int i) {
  const nvf_iexpr *v = expr_of(w, i);
  nvf_scale number;
  if (is_map(w, i, "divide") && match_given(w, v->arg[1], &number))
    return reject_match(w, "a quotient by a scalar that is given anew", NULL);
  for (int side = 0; side < 2 && v->narg == 2 && !nvg_is_f8(w->p->operands); side++) {
    const nvf_node *n = node_of(w, strip_casts(w, v->arg[side]));
    if (is_map(w, i, "multiply") && n->kind == NVG_VLEAF && !n->rank)
      return reject_match(w,
                          is_given(w, n) ? "a scale of the sum that may become 0 or infinite"
                                         : "a scale of the sum that is an array, not a number",
                          NULL);
  }
  return reject_match(w, "of the sum", node_of(w, i)->name);
}

/* Whether only factors lie between the expression and the sum; they become alpha and scales. */
static int is_scaled_sum(matcher *w, int i) {
  for (int next; expr_of(w, i)->kind != NVF_IDOT && (next = match_outermost(w, i)) >= 0;) i = strip_casts(w, next);
  return expr_of(w, i)->kind == NVF_IDOT ? 1 : not_an_operand(w, i);
}

/* Matches the terms and signs of the stored value and returns the scaled sum, whose sign alpha then has; -1: the
   descriptor cannot express it. */
static int without_terms(matcher *w, int i, nvm_dtype type) {
  double sign = 1;
  for (;;) {
    const nvf_iexpr *v = expr_of(w, i);
    int minus = is_map(w, i, "subtract") && node_of(w, i)->parts == 1, what;
    if ((is_map(w, i, "add") || minus) && v->narg == 2) {
      int side = w->summed[v->arg[1]];
      if (side && w->summed[v->arg[0]]) return reject_match(w, "of the sum and itself", node_of(w, i)->name), -1;
      if (!match_term(w, v->arg[!side], type, minus && !side ? -sign : sign)) return -1;
      sign = minus && side ? -sign : sign;
      i = strip_casts(w, v->arg[side]);
    } else if (is_minus(w, i, &what)) {
      sign = -sign;
      i = strip_casts(w, what);
    } else {
      w->p->alpha.value = sign;
      return i;
    }
  }
}

/* Matches the epilogue of result d; other: the second expression that is stored, or -1. */
static int match_epilogue(matcher *w, const nvf_put *d, int other) {
  nvf_matrix *to = &w->p->d;
  *to = (nvf_matrix){ .param = param_of(w, d->node), .type = w->k->graph->node[d->node].dtype };
  int i = strip_casts(w, is_float_cast(w, d->expr) ? expr_of(w, d->expr)->arg[0] : d->expr), of, found = other < 0;
  if (nvg_class_of(to->type) < NVG_FLOAT && (w->p->operands != NVM_I8 || expr_of(w, i)->kind != NVF_IDOT))
    return reject_match(w, "a result that is no float", NULL);
  if (!match_strides(w, d->at, w->k->dot->m, w->k->dot->n, to) || !is_matrix(w, to, w->k->dot->m, w->k->dot->n))
    return reject_match(w, "the result", "an index map of");
  w->p->act = (nvf_act)act_of(w, i, &of);
  if (w->p->act) {
    i = strip_casts(w, of);
    found |= strip_casts(w, other < 0 ? i : other) == i;
  }
  if (!found) return reject_match(w, "two results", NULL);
  i = without_terms(w, i, to->type);
  return i >= 0 && is_scaled_sum(w, i);
}

static int match_results(matcher *w) {
  const nvf_fusion *k = w->k;
  const nvf_gemm start = *w->p;
  int columns = nvf_gemm_reduced_axis(k) == k->dot->m;
  for (int d = 0; d < k->put.n; d++) {
    const nvf_iexpr *v = expr_of(w, k->put.at[d].expr);
    if (v->kind == NVF_IPICK || nvf_is_red(v))
      return reject_match(w, columns ? "of its columns" : "of its rows", k->graph->node[k->put.at[d].node].name);
  }
  if (k->put.n > 2) return reject_match(w, "more than two results", NULL);
  for (int d = 0; d < k->put.n; d++) {
    const nvf_put *other = k->put.n > 1 ? &k->put.at[1 - d] : NULL;
    *w->p = start;
    if (!match_epilogue(w, &k->put.at[d], other ? other->expr : -1)) continue;
    if (other) {
      w->p->aux = (nvf_matrix){ .param = param_of(w, other->node), .type = k->graph->node[other->node].dtype };
      if (!match_strides(w, other->at, k->dot->m, k->dot->n, &w->p->aux) ||
          !is_matrix(w, &w->p->aux, k->dot->m, k->dot->n))
        return reject_match(w, "the second result", "an index map of");
    }
    return 1;
  }
  return 0;
}

static int stored_twice(const nvf_fusion *k) {
  for (int i = 0; i < k->put.n; i++) {
    int n = 0;
    for (int o = 0; o < k->graph->g->nout; o++) n += k->graph->out[o] == k->put.at[i].node;
    if (n > 1) return 1;
  }
  return 0;
}

nvf_gemm *nvf_gemm_of(const nvf_fusion *k, const nvf_step *step, const int *buf_of) {
  nvb_arena *a = k->graph->arena;
  const nvf_iexpr *dot = &k->expr.at[*k->dot->expr];
  const nvf_node *n = &k->graph->node[dot->node];
  const int axis[3] = { k->dot->m, k->dot->n, k->dot->k }, inner = nvf_gemm_reduced_axis(k),
            reduced = inner - (inner >= 0);
  int left = k->dot->f8 ? k->expr.at[dot->arg[0]].node : n->in[0];
  int64_t size[3];
  matcher w = {
    .k = k, .step = step, .buf_of = buf_of, .p = NVB_NEW(a, nvf_gemm), .summed = nvb_get(a, (size_t)k->expr.n + 1)
  };
  for (int i = 0; i < 3; i++) size[i] = axis[i] < 0 ? 1 : k->axis.at[axis[i]].n;
  for (int i = 0; i < 2; i++)
    size[i] = axis[i] == inner && inner >= 0 ? nvf_value(k->graph->space, n->dim[n->rank - 2 + i]) : size[i];
  *w.p = (nvf_gemm){ .m = size[0],
                     .n = size[1],
                     .k = size[2],
                     .operands = k->graph->node[left].dtype,
                     .accumulate = n->dtype,
                     .precision = (int)n->attr[1],
                     .a.param = -1,
                     .b.param = -1,
                     .c.param = -1,
                     .d.param = -1,
                     .aux.param = -1,
                     .bias.param = -1,
                     .scale = { { .param = -1 }, { .param = -1 } },
                     .alpha = { .param = -1, .value = 1 },
                     .beta = { .param = -1 } };
  for (int x = 0; x < k->axis.n; x++) {
    if (!k->axis.at[x].extent || x == axis[0] || x == axis[1] || x == axis[2] || x == reduced) continue;
    if (w.p->nbatch < NVF_BATCHES) w.p->batch[w.p->nbatch++] = k->axis.at[x].n;
    else reject_match(&w, "too many dimensions of the batch", NULL);
  }
  for (int i = *k->dot->expr; i < k->expr.n; i++) {
    w.summed[i] = i == *k->dot->expr;
    for (int j = 0; j < k->expr.at[i].narg; j++) w.summed[i] |= w.summed[k->expr.at[i].arg[j]];
  }
  if (k->dot->count > 1)
    reject_match(&w, "products with an operand in common, in one loop", k->dot->count > 2 ? "three" : "two");
  if (stored_twice(k)) reject_match(&w, "a result that is stored twice", NULL);
  if (!w.p->unsupported && match_operands(&w, dot->arg)) match_results(&w);
  return w.p;
}

/* What libraries require of 8-bit float operands: both are K-major, all rows are multiples of 16 bytes, and not both
   are e5m2. */
static int scale_is_one(const nvf_gemm *p) {
  int64_t all = p->k | (p->d.col == 1 ? p->n : p->m) | p->a.row | p->b.col;
  for (int i = 0; i < p->nbatch; i++) all |= p->a.batch[i] | p->b.batch[i];
  return p->a.col == 1 && p->b.row == 1 && all % 16 == 0 && (p->a.type == NVM_F8E4 || p->b.type == NVM_F8E4);
}

/* What libraries require of int8 operands: both are K-major, and all rows are multiples of 4. */
static int in_fours(const nvf_gemm *p) {
  int64_t all = p->k | (p->d.col == 1 ? p->n | p->d.row : p->m | p->d.col) | p->a.row | p->b.col;
  for (int i = 0; i < p->nbatch; i++) all |= p->a.batch[i] | p->b.batch[i];
  return p->a.col == 1 && p->b.row == 1 && all % 4 == 0;
}

/* What libraries require of scales of more than one number: both operands have them, there is no batch and no c, and
   rows that have scales by vectors are multiples of 4. */
static int in_pairs(const nvf_gemm *p) {
  enum { UNIT = 4 };
  nvf_scale_mode a = p->by[NVF_SCALE_A], b = p->by[NVF_SCALE_B];
  if (!a && !b) return 1;
  int blocks = a >= NVF_SCALE_VECTOR && b >= NVF_SCALE_VECTOR && (a != b || a == NVF_SCALE_VECTOR);
  if ((a == NVF_SCALE_VECTOR && p->m % UNIT) || (b == NVF_SCALE_VECTOR && p->n % UNIT)) return 0;
  return !p->nbatch && p->c.param < 0 && p->alpha.param < 0 && p->alpha.value != 0 &&
         (blocks || (a == NVF_SCALE_ROW && a == b));
}

/* Whether these capabilities suffice for the GEMM; a solver can still refuse it. */
int nvf_gemm_supported(const nvf_gemm *p, int capabilities) {
  int narrow = nvg_is_narrow(p->a.type), eight = nvg_is_f8(p->a.type), needs = NVF_CAN_GEMM;
  int bytes = p->operands == NVM_I8;
  int other = (narrow || bytes) && (p->d.type == p->accumulate || (eight && nvg_is_narrow(p->d.type)));
  if (p->a.type != p->b.type && !(eight && nvg_is_f8(p->b.type))) return 0;
  /* cuBLASLt 13.1.0 chooses algorithms for these that it refuses to run at some addresses */
  if (nvg_is_f8(p->d.type)) return 0;
  needs |= eight ? NVF_CAN_F8 : bytes ? NVF_CAN_I8 : narrow ? NVF_CAN_F16 : 0;
  needs |= p->precision == NVM_PRECISION_TF32 ? NVF_CAN_TF32 : 0;
  needs |= p->by[NVF_SCALE_A] || p->by[NVF_SCALE_B] ? NVF_CAN_SCALES : 0;
  needs |= p->bias.param >= 0 ? NVF_CAN_BIAS : 0;
  needs |= p->act == NVF_ACT_RELU ? NVF_CAN_RELU : p->act == NVF_ACT_GELU ? NVF_CAN_GELU : 0;
  needs |= p->aux.param >= 0 ? NVF_CAN_AUX : 0;
  if (p->act == NVF_ACT_GELU && !nvg_is_narrow(p->d.type) && !nvf_is_coarse(p->precision))
    return 0; /* the libraries' GELU is less accurate than the dtype */
  if ((eight && (!scale_is_one(p) || !in_pairs(p))) || (bytes && !in_fours(p))) return 0;
  return !p->unsupported && (needs & ~capabilities) == 0 && (p->d.type == p->a.type || other) &&
         (p->aux.param < 0 || (p->act == NVF_ACT_GELU && !eight));
}
