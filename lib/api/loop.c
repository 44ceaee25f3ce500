/* Makes loops: traces the functions of a loop inside the trace around it, checks what they return, and notes which
   outputs are carries that move or are written in place. Outside of a trace it opens one and runs it once. Never takes
   a step itself. */
#include "api/loop_body.h"
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/refs.h"
#include "graph/infer.h"
#include "nvm/loop.h"

struct nvm_loop {
  nvm_ctx *ctx;
  nva_loop *loop;
  const char *const *names;
  int nparam;
  nvm_array **param;       /* counted: the placeholders of the functions */
  nvm_array **given;       /* counted: what the present function gets; a snapshot of each, since it may write to it */
  int ngiven, first;       /* first: the number of the first of them among the parameters */
  int stage;               /* functions that have ended */
  int inner, outer;        /* the trace of the functions is open; one around it was opened with the loop */
  int nout[NVA_FUNCTIONS]; /* outputs of each function */
  nvg_node **outs[NVA_FUNCTIONS]; /* counted */
  nvm_traced *run;                /* the loop as a function, once the traces have ended */
};

static const char *const names[NVM_NLOOPS] = { "fori_loop", "while_loop", "cond", "scan" };
const char *nva_loop_name(const nva_loop *l) { return names[l->kind]; }
static const char *name_of(const nvm_loop *l) { return names[l->loop->kind]; }

/* ---- lifetime */
static void free_nodes(nvg_node **n, int count) {
  for (int i = 0; n && i < count; i++) nvg_node_unref(n[i]);
  nvb_free(n);
}
nva_loop *nva_loop_ref(nva_loop *l) {
  atomic_fetch_add(&l->refs, 1);
  return l;
}
static void free_source(nva_loop_source *s) {
  if (!s) return;
  free_nodes(s->param, s->nparam), free_nodes(s->cap, s->ncap);
  for (int f = 0; f < NVA_FUNCTIONS; f++) free_nodes(s->out[f], s->nout[f]);
  for (int i = 0; i < s->ninner; i++) nva_loop_unref(s->inner[i]);
  nvb_free(s->inner);
  nvb_free(s);
}
void nva_loop_unref(nva_loop *l) {
  if (!l || !nvb_let_go(&l->refs)) return;
  free_source(l->source);
  nvm_traced_free(l->body), nvm_traced_free(l->other);
  free_nodes(l->operand, nva_loop_operands(l));
  free_nodes(l->result, l->nresult);
  nvg_node_unref(l->index);
  nvb_free(l->move), nvb_free(l->made), nvb_free(l->store);
  nvb_free(l);
}
static void free_arrays(nvm_array **a, int count) {
  for (int i = 0; a && i < count; i++) nvm_array_unref(a[i]);
  nvb_free(a);
}
static void end_traces(nvm_loop *l) {
  if (l->inner) nva_trace_pop();
  if (l->outer) nvm_trace_end(l->ctx);
  l->inner = l->outer = 0;
}
void nvm_loop_free(nvm_loop *l) {
  if (!l) return;
  free_arrays(l->given, l->ngiven);
  free_arrays(l->param, l->nparam);
  for (int i = 0; i < NVA_FUNCTIONS; i++) free_nodes(l->outs[i], l->nout[i]);
  end_traces(l); /* after what is of these traces */
  nvm_traced_free(l->run);
  nva_loop_unref(l->loop);
  nva_ctx_unref(l->ctx);
  nvb_free(l);
}

/* ---- operands */
/* Converts a number to an array of its default dtype, or a node to this dtype. Takes n, NULL passes through. */
static nvg_node *typed(const char *who, nvm_ctx *ctx, nvg_node *n, nvm_dtype t) {
  if (!n || !n->weak) return n;
  nvg_class c = (nvg_class)nvg_weak_class(n);
  nvm_dtype own = c == NVG_FLOAT ? ctx->default_float : c == NVG_COMPLEX ? NVM_C128 : n->aval->dtype;
  if (c == NVG_COMPLEX && ctx->default_float == NVM_F32) own = NVM_C64;
  nvg_node *r = nvg_weak_fits(who, n, t < 0 ? own : t) ? NULL : n;
  nvg_attr to = { .name = "dtype", .kind = 'd', .i = t < 0 ? own : t };
  if (r) r = nvg_apply(NVG_OP_ASTYPE, &n, 1, &to, 1, ctx->default_float);
  nvg_node_unref(n);
  return r;
}
/* Appends the node of an operand, which other operands of the loop may have too. Returns a status. */
static int add_operand(nvm_loop *l, int *n, const char *what, nvm_array *a, int is_number) {
  if (!a) return nva_null(name_of(l), what);
  if (a == &nva_none) return nvb_fail(NVM_ERR_VALUE, "[%s] a %s is absent (nvm_none)", name_of(l), what);
  if (a->ctx != l->ctx) return nva_two_contexts(name_of(l));
  nvg_node *x = nvg_node_ref(nva_node(a));
  if (!is_number) x = typed(name_of(l), l->ctx, x, NVM_DTYPE_DEFAULT);
  if (!x) return nvb_status();
  l->loop->operand[(*n)++] = x;
  return NVM_OK;
}
static int check_scalar(const nvm_loop *l, const nvg_node *n, const char *what, int bound) {
  char shape[NVG_SHAPE_TEXT];
  nvg_class c = nvg_class_of(n->aval->dtype);
  int fits = bound ? c == NVG_SIGNED || c == NVG_UNSIGNED : c == NVG_BOOLEAN;
  if (n->weak && nvg_weak_kind(n) == 'h') fits = 0;
  if (!n->aval->rank && fits) return NVM_OK;
  return nvb_fail(NVM_ERR_TYPE, "[%s] the %s must be a 0-d %s, not %s %s", name_of(l), what, bound ? "integer" : "bool",
                  nvg_dtype_name(n->aval->dtype), nvg_shape_text(shape, n->aval->rank, n->aval->shape));
}
static int check_rows(nvm_loop *l, nvg_node *const *xs) {
  nva_loop *p = l->loop;
  for (int i = 0; i < p->nx; i++) {
    if (!xs[i]->aval->rank) return nvb_fail(NVM_ERR_VALUE, "[scan] x %d is 0-d and has no rows", i);
    if (p->length < 0) p->length = xs[i]->aval->shape[0];
    if (p->length != xs[i]->aval->shape[0])
      return nvb_fail(NVM_ERR_VALUE, "[scan] x %d has %lld rows, and the loop %lld steps", i,
                      (long long)xs[i]->aval->shape[0], (long long)p->length);
  }
  return NVM_OK;
}
static int add_operands(nvm_loop *l, const nvm_loop_options *o, nvm_array *const *init) {
  nva_loop *p = l->loop;
  int n = 0, status = NVM_OK;
  if (p->kind == NVM_FORI_LOOP) {
    status = add_operand(l, &n, "lower bound", o->lower, 1);
    status = status ? status : check_scalar(l, p->operand[0], "lower bound", 1);
    status = status ? status : add_operand(l, &n, "upper bound", o->upper, 1);
    status = status ? status : check_scalar(l, p->operand[1], "upper bound", 1);
  } else if (p->kind == NVM_COND) {
    status = add_operand(l, &n, "predicate", o->pred, 1);
    status = status ? status : check_scalar(l, p->operand[0], "predicate", 0);
  }
  for (int i = 0; i < p->ncarry && !status; i++) status = add_operand(l, &n, "carry", init[i], 0);
  for (int i = 0; i < p->nx && !status; i++) status = add_operand(l, &n, "x", o->xs[i], 0);
  return status || p->kind != NVM_SCAN ? status : check_rows(l, p->operand + p->ncarry);
}

/* ---- parameters of the functions */
/* The number that the index is traced as; later indices must have the same answers to what the trace asks. */
static int64_t first_index(const nva_loop *l) {
  const nvg_node *n = l->operand[0];
  return n->op == NVG_OP_CONST ? n->attr[0] : 0;
}
static nvm_array *parameter_of(nvm_loop *l, int i) {
  const nva_loop *p = l->loop;
  if (!i) {
    nvg_node *n = nvg_weak_parameter('i', p->kind == NVM_FORI_LOOP ? first_index(p) : 0);
    return nva_array_new(l->ctx, n);
  }
  const nvg_node *of = p->operand[p->nhead + i - 1];
  int row = i > p->ncarry;
  nvm_array *a = nvm_placeholder(l->ctx, of->aval->dtype, of->aval->rank - row, of->aval->shape + row);
  if (a) a->node->device = of->device;
  return a;
}
static int make_parameters(nvm_loop *l) {
  int n = 1 + l->loop->ncarry + l->loop->nx;
  l->param = nvb_calloc((size_t)n, sizeof *l->param);
  if (!l->param) return nvb_fail_memory();
  while (l->nparam < n) {
    nvm_array *a = parameter_of(l, l->nparam);
    if (!a) return nvb_status();
    l->param[l->nparam++] = a;
  }
  l->loop->index = nvg_node_ref(l->param[0]->node);
  return NVM_OK;
}

/* ---- opening */
static int check_options(const nvm_loop_options *o, int n, nvm_array *const *init) {
  if (o->version != NVM_LOOP_OPTIONS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[loop_open] version %u of the options; the library has %d", o->version,
                    NVM_LOOP_OPTIONS_VERSION);
  if ((unsigned)o->kind >= NVM_NLOOPS) return nvb_fail(NVM_ERR_VALUE, "[loop_open] %d is no kind of loop", o->kind);
  if (n < 0 || (n && !init)) return nvb_fail(NVM_ERR_VALUE, "[%s] %d carries, and no list of them", names[o->kind], n);
  if (o->kind == NVM_SCAN && (o->nx < 0 || (o->nx && !o->xs)))
    return nvb_fail(NVM_ERR_VALUE, "[scan] %d xs, and no list of them", o->nx);
  if (o->length < 0) return nvb_fail(NVM_ERR_VALUE, "[scan] the length is %lld", (long long)o->length);
  return NVM_OK;
}
static nva_loop *loop_new(const nvm_loop_options *o, int n) {
  nva_loop *p = nvb_calloc(1, sizeof *p);
  if (!p) return nvb_fail_memory(), NULL;
  p->refs = 1;
  p->kind = o->kind;
  p->nhead = o->kind == NVM_FORI_LOOP ? 2 : o->kind == NVM_COND;
  p->ncarry = n;
  p->nx = o->kind == NVM_SCAN ? o->nx : 0;
  p->length = o->length || !p->nx ? o->length : -1;
  p->reverse = o->reverse != 0;
  p->goes_on = -1;
  p->operand = nvb_calloc((size_t)nva_loop_operands(p) + 1, sizeof *p->operand);
  if (!p->operand) p->ncarry = p->nx = p->nhead = 0, nva_loop_unref(p), p = NULL, nvb_fail_memory();
  return p;
}
static int open_loop(nvm_loop *l, const nvm_loop_options *o, nvm_array *const *init) {
  int status = NVM_OK;
  if (!nva_tracing()) {
    if ((status = nvm_trace_begin(l->ctx))) return status;
    l->outer = 1;
  }
  if (!status) status = add_operands(l, o, init);
  if (!status) status = nva_trace_push(0);
  if (status) return status;
  l->inner = 1;
  return make_parameters(l);
}
int nvm_loop_options_init(nvm_loop_options *o, unsigned version) {
  if (!o) return nva_missing("loop_options_init", "pointer for the options");
  if (version != NVM_LOOP_OPTIONS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[loop_options_init] version %u; the library has %d", version,
                    NVM_LOOP_OPTIONS_VERSION);
  *o = (nvm_loop_options)NVM_LOOP_OPTIONS_INIT;
  return NVM_OK;
}
int nvm_loop_open(nvm_loop **out, nvm_ctx *ctx, const nvm_loop_options *o, nvm_array *const *init, int n) {
  static const nvm_loop_options none = NVM_LOOP_OPTIONS_INIT;
  if (!out) return nva_missing("loop_open", "pointer for the loop");
  *out = NULL;
  if (!ctx) return nva_missing("loop_open", "context");
  if (!o) o = &none;
  int status = check_options(o, n, init);
  if (status) return status;
  nvm_loop *l = nvb_calloc(1, sizeof *l);
  if (!l) return nvb_fail_memory();
  l->ctx = nva_ctx_ref(ctx);
  l->names = o->names;
  status = (l->loop = loop_new(o, n)) ? open_loop(l, o, init) : nvb_status();
  if (status) nvm_loop_free(l);
  else *out = l;
  return status;
}

/* ---- the functions */
static int functions_of(const nva_loop *l) { return l->kind == NVM_WHILE_LOOP ? 3 : l->kind == NVM_COND ? 2 : 1; }
static int is_test(const nvm_loop *l) { return l->loop->kind == NVM_WHILE_LOOP && l->stage != 1; }
static int check_open(const nvm_loop *l, const char *who) {
  if (!l->inner) return nvb_fail(NVM_ERR_STATE, "[%s] the functions of this %s have ended", who, name_of(l));
  return NVM_OK;
}
/* The array that the present function gets as its input i. */
static nvm_array *input_of(nvm_loop *l, int i) {
  if (l->stage < 2) return nvm_snapshot(l->param[l->first + i]);
  return nva_array_new(l->ctx, nvg_node_ref(l->outs[1][i])); /* a while_loop's test of what the body returned */
}
int nvm_loop_inputs(nvm_array *const **in, int *nin, nvm_loop *l) {
  if (!in || !nin || !l) return nva_missing("loop_inputs", l ? "pointer for the inputs" : "loop");
  int status = check_open(l, "loop_inputs");
  if (status) return status;
  free_arrays(l->given, l->ngiven);
  l->ngiven = 0;
  l->first = l->loop->kind != NVM_FORI_LOOP;
  int n = l->nparam - l->first;
  if (!(l->given = nvb_calloc((size_t)n + 1, sizeof *l->given))) return nvb_fail_memory();
  while (l->ngiven < n) {
    nvm_array *a = input_of(l, l->ngiven);
    if (!a) return nvb_status();
    l->given[l->ngiven++] = a;
  }
  *in = l->given;
  *nin = n;
  return NVM_OK;
}

/* Fails if the function wrote to an input that no output replaces. */
static int check_writes(const nvm_loop *l) {
  const nva_loop *p = l->loop;
  for (int i = 0; i < l->ngiven && l->stage < 2; i++) {
    int param = l->first + i, carry = p->kind != NVM_COND && !is_test(l) && param && param <= p->ncarry;
    if (carry || !param || nvm_is_same(l->given[i], l->param[param])) continue;
    return nvb_fail(NVM_ERR_STATE, "[%s] %s writes to its input %d, which stays as it was; write to a copy of it",
                    name_of(l),
                    is_test(l)            ? "the test"
                    : p->kind == NVM_COND ? "a branch"
                                          : "the body",
                    i);
  }
  return NVM_OK;
}
static int refuse_type(const nvm_loop *l, int i, const nvg_aval *is, const nvg_aval *want) {
  char shape[2][NVG_SHAPE_TEXT], number[32];
  snprintf(number, sizeof number, "%s %d", l->loop->kind == NVM_COND ? "output" : "carry", i);
  nvg_shape_text(shape[0], is->rank, is->shape);
  nvg_shape_text(shape[1], want->rank, want->shape);
  const char *name = l->names && l->loop->kind != NVM_COND ? l->names[i] : number;
  if (l->loop->kind == NVM_COND)
    return nvb_fail(NVM_ERR_TYPE, "[cond] %s is %s %s if the predicate is true, and %s %s if it is false", name,
                    nvg_dtype_name(want->dtype), shape[1], nvg_dtype_name(is->dtype), shape[0]);
  return nvb_fail(NVM_ERR_TYPE, "[%s] %s begins as %s %s, and the body returns %s %s for it", name_of(l), name,
                  nvg_dtype_name(want->dtype), shape[1], nvg_dtype_name(is->dtype), shape[0]);
}
/* What output i of the present function has to be; NULL: anything. */
static const nvg_aval *wanted(const nvm_loop *l, int i) {
  const nva_loop *p = l->loop;
  if (p->kind == NVM_COND) return l->stage ? l->outs[0][i]->aval : NULL;
  return i < p->ncarry ? p->operand[p->nhead + i]->aval : NULL;
}
/* Takes over an output as a node of the functions' trace. A number takes the dtype that is wanted. */
static int take_output(nvm_loop *l, nvm_array *a, int i) {
  if (!a) return nva_null(name_of(l), "output of a function");
  const nvg_aval *want = is_test(l) ? NULL : wanted(l, i);
  nvg_node *n = nvg_node_ref(nva_node(a));
  if (!n) return nvb_status();
  if (is_test(l) && check_scalar(l, n, "test", 0)) return nvg_node_unref(n), nvb_status();
  if (!(n = typed(name_of(l), l->ctx, n, want ? want->dtype : NVM_DTYPE_DEFAULT))) return nvb_status();
  l->outs[l->stage][l->nout[l->stage]++] = n;
  return !want || n->aval == want ? NVM_OK : refuse_type(l, i, n->aval, want);
}
static int check_count(const nvm_loop *l, int nout) {
  const nva_loop *p = l->loop;
  int want = is_test(l) ? 1 : p->kind == NVM_COND ? (l->stage ? l->nout[0] : nout) : p->ncarry;
  if (nout == want || (p->kind == NVM_SCAN && nout > want)) return NVM_OK;
  return nvb_fail(NVM_ERR_VALUE, "[%s] a function returns %d arrays, and %d are needed", name_of(l), nout, want);
}

/* ---- the end of the functions */
/* The parameters of the functions: those that they were given, arrays from outside, and numbers of the trace around
   them, which stand for themselves. */
typedef struct closure { nvg_node **node; nvm_array **array; int n, given; } closure; /* array: counted; NULL: none */
static void end_closure(closure *c) {
  for (int i = 0; i < c->n; i++) nvg_node_unref(c->node[i]), nvm_array_unref(c->array[i]);
  nvb_free(c->node), nvb_free(c->array);
}
static int add_parameter(closure *c, nvg_node *n, nvm_array *a) {
  for (int i = 0; i < c->n; i++)
    if (c->node[i] == n) return NVM_OK;
  nvg_node **node = nvb_realloc(c->node, sizeof *node * (size_t)(c->n + 1));
  if (node) c->node = node;
  nvm_array **array = node ? nvb_realloc(c->array, sizeof *array * (size_t)(c->n + 1)) : NULL;
  if (!array) return nvb_fail_memory();
  c->array = array;
  node[c->n] = nvg_node_ref(n);
  array[c->n++] = nvm_array_ref(a);
  return NVM_OK;
}
typedef struct gathering { nvm_loop *l; closure *c; } gathering;
/* Adds the numbers that the functions, and the loops in them, depend on and that are no constants. Throws. */
static void gather_numbers(nvb_arena *a, void *arg) {
  gathering *w = arg;
  NVB_VEC(nvg_node *) root = { 0 };
  int n;
  nva_loop *const *inner = nva_trace_loops(&n);
  for (int f = 0; f < NVA_FUNCTIONS; f++)
    for (int i = 0; i < w->l->nout[f]; i++) NVB_PUSH(a, root, w->l->outs[f][i]);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < nva_loop_operands(inner[k]); i++) NVB_PUSH(a, root, inner[k]->operand[i]);
  const nvg_graph *g = nvg_collect(a, root.at, root.n, NULL);
  for (int i = 0; i < g->nleaf; i++) {
    nvg_node *leaf = g->leaf_node[i];
    if (leaf->weak && leaf->op == NVG_OP_LEAF && !atomic_load(&leaf->value) && add_parameter(w->c, leaf, NULL))
      nvb_throw(a, NVM_ERR_MEMORY, "out of memory");
  }
}
static int find_closure(nvm_loop *l, closure *c) {
  int n, status = NVM_OK;
  for (int i = 0; i < l->nparam && !status; i++) status = add_parameter(c, l->param[i]->node, NULL);
  c->given = c->n;
  const nva_captured *cap = nva_trace_captured(&n);
  for (int i = 0; i < n && !status; i++) status = add_parameter(c, cap[i].node, cap[i].array);
  nvb_arena *a = status ? NULL : nvb_arena_new();
  if (!status) status = a ? nvb_protect(a, gather_numbers, &(gathering){ l, c }) : nvb_fail_memory();
  nvb_arena_free(a);
  return status;
}
static int make_function(nvm_loop *l, nvm_traced **t, const closure *c, nvg_node *const *outs, int nout) {
  int n;
  nva_loop *const *inner = nva_trace_loops(&n);
  return nva_traced_over(t, l->ctx, c->node, c->n, outs, nout, 0, inner, n);
}
static int make_branches(nvm_loop *l, const closure *c) {
  nva_loop *p = l->loop;
  int status = make_function(l, &p->body, c, l->outs[0], l->nout[0]);
  return status ? status : make_function(l, &p->other, c, l->outs[1], l->nout[1]);
}
static int make_body(nvm_loop *l, const closure *c) {
  nva_loop *p = l->loop;
  int which = p->kind == NVM_WHILE_LOOP;
  nva_body b = { .loop = p, .param = c->node };
  int status = nva_body_arrange(&b, l->outs[which], l->nout[which]);
  if (!status && which) {
    b.out[p->goes_on = b.nout++] = l->outs[2][0];
    status = make_function(l, &p->other, c, l->outs[0], 1);
  }
  if (!status) status = make_function(l, &p->body, c, b.out, b.nout);
  nvb_free(b.out);
  return status;
}

/* The functions as they were traced, for a function over a batch; their trace is open. A status. */
static int keep_source(nvm_loop *l, const closure *c) {
  int n;
  nva_loop *const *inner = nva_trace_loops(&n);
  nva_loop_source *s = l->loop->source = nvb_calloc(1, sizeof *s);
  if (!s || !(s->param = nvb_calloc((size_t)c->given + 1, sizeof *s->param)) ||
      !(s->cap = nvb_calloc((size_t)(c->n - c->given) + 1, sizeof *s->cap)) ||
      !(s->inner = nvb_calloc((size_t)n + 1, sizeof *s->inner)))
    return nvb_fail_memory();
  for (int i = 0; i < c->given; i++) s->param[s->nparam++] = nvg_node_ref(c->node[i]);
  for (int i = c->given; i < c->n; i++) s->cap[s->ncap++] = nvg_node_ref(c->node[i]);
  for (int i = 0; i < n; i++) s->inner[s->ninner++] = nva_loop_ref(inner[i]);
  for (int f = 0; f < NVA_FUNCTIONS; f++) {
    if (!(s->out[f] = nvb_calloc((size_t)l->nout[f] + 1, sizeof *s->out[f]))) return nvb_fail_memory();
    for (int i = 0; i < l->nout[f]; i++) s->out[f][s->nout[f]++] = nvg_node_ref(l->outs[f][i]);
  }
  return NVM_OK;
}

/* The operands for what the functions use from outside; the trace of the functions has ended. */
static int add_captured(nvm_loop *l, const closure *c) {
  nva_loop *p = l->loop;
  int at = nva_loop_operands(p);
  nvg_node **all = nvb_realloc(p->operand, sizeof *all * (size_t)(at + c->n - c->given + 1));
  if (!all) return nvb_fail_memory();
  p->operand = all;
  for (int i = c->given; i < c->n; i++) {
    nvg_node *x = c->array[i] ? nva_node(c->array[i]) : c->node[i];
    if (!x) return nvb_status();
    all[at + p->ncap++] = nvg_node_ref(x);
  }
  return NVM_OK;
}
/* What result i is: a carry, the rows of a y, or the output of a branch. A reference. */
static const nvg_aval *aval_of(const nvm_loop *l, int i) {
  const nva_loop *p = l->loop;
  if (p->kind == NVM_COND) return nvg_aval_ref(l->outs[0][i]->aval);
  if (i < p->ncarry) return nvg_aval_ref(p->operand[p->nhead + i]->aval);
  const nvg_aval *row = l->outs[0][i]->aval;
  int64_t shape[NVM_MAX_RANK] = { p->length };
  if (row->rank == NVM_MAX_RANK) return nvb_fail(NVM_ERR_VALUE, "[scan] a y has %d dimensions", row->rank), NULL;
  if (row->rank) memcpy(shape + 1, row->shape, sizeof *shape * (size_t)row->rank);
  return nvg_aval_get(row->dtype, row->rank + 1, shape);
}
static int make_results(nvm_loop *l) {
  nva_loop *p = l->loop;
  int which = p->kind == NVM_WHILE_LOOP, n = l->nout[which];
  int device = nvg_device_join(name_of(l), p->operand, nva_loop_operands(p));
  if (device < 0) return nvb_status();
  if (!(p->result = nvb_calloc((size_t)n + 1, sizeof *p->result))) return nvb_fail_memory();
  for (; p->nresult < n; p->nresult++) {
    nvg_node *r = nvg_leaf_new(aval_of(l, p->nresult), NULL);
    if (!r) return nvb_status();
    r->device = (uint8_t)device;
    p->result[p->nresult] = r;
  }
  p->ny = p->kind == NVM_SCAN ? n - p->ncarry : 0;
  return nva_trace_add_loop(p);
}
static int end_functions(nvm_loop *l) {
  closure c = { 0 };
  int status = find_closure(l, &c);
  if (!status) status = l->loop->kind == NVM_COND ? make_branches(l, &c) : make_body(l, &c);
  if (!status && nva_trace_is_mapped()) status = keep_source(l, &c);
  free_arrays(l->given, l->ngiven);
  free_arrays(l->param, l->nparam);
  l->given = l->param = NULL;
  l->ngiven = l->nparam = 0;
  nva_trace_pop();
  l->inner = 0;
  if (!status) status = add_captured(l, &c);
  if (!status) status = make_results(l);
  end_closure(&c);
  return status;
}
int nvm_loop_outputs(nvm_loop *l, nvm_array *const *outs, int nout) {
  if (!l || (nout && !outs)) return nva_missing("loop_outputs", l ? "list of outputs" : "loop");
  int status = check_open(l, "loop_outputs");
  if (!status && !l->given) status = nvb_fail(NVM_ERR_STATE, "[loop_outputs] loop_inputs comes first");
  if (!status) status = check_count(l, nout);
  if (!status) status = check_writes(l);
  if (!status && !(l->outs[l->stage] = nvb_calloc((size_t)nout + 1, sizeof *l->outs[0]))) status = nvb_fail_memory();
  for (int i = 0; i < nout && !status; i++) status = take_output(l, outs[i], i);
  if (!status && ++l->stage == functions_of(l->loop)) status = end_functions(l);
  if (status) l->stage = 0; /* it cannot be closed */
  return status;
}

/* ---- the end of the loop */
int nvm_loop_results(const nvm_loop *l) { return l ? l->loop->nresult : 0; }
/* The results as arrays of the trace around the loop. */
static int wrap_results(nvm_loop *l, nvm_array **out) {
  int n = l->loop->nresult, i = 0;
  for (; i < n; i++)
    if (!(out[i] = nva_array_new(l->ctx, nvg_node_ref(l->loop->result[i])))) break;
  if (i == n) return NVM_OK;
  while (i) nvm_array_unref(out[--i]), out[i] = NULL;
  return nvb_status();
}
/* Outside of another trace, the loop is a function without arguments, which is called once. */
static int run_once(nvm_loop *l, nvm_array **out) {
  int n = l->loop->nresult, status = NVM_OK;
  if (!l->run) {
    if (!(status = wrap_results(l, out))) status = nvm_traced_new(&l->run, l->ctx, NULL, 0, out, n);
    for (int i = 0; i < n && out[i]; i++) nvm_array_unref(out[i]), out[i] = NULL;
    end_traces(l);
  }
  return status ? status : nvm_traced_call(l->run, NULL, out);
}
int nvm_loop_close(nvm_loop *l, nvm_array **out) {
  if (!l || !out) return nva_missing("loop_close", l ? "pointer for the results" : "loop");
  for (int i = 0; i < l->loop->nresult; i++) out[i] = NULL;
  if (l->stage < functions_of(l->loop) || l->inner)
    return nvb_fail(NVM_ERR_STATE, "[loop_close] not all functions of the %s have outputs", name_of(l));
  if (!l->loop->nresult) return end_traces(l), NVM_OK;
  return l->outer || l->run ? run_once(l, out) : wrap_results(l, out);
}
