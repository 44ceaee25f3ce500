/* nvm_vmap: traces a function of one element of a batch, and makes its graph that of all elements (lib/graph/batch.c).
   Never evaluates anything. */
#include "nvm/vmap.h"
#include <string.h>
#include "api/loop.h"
#include "base/mem.h"
#include "graph/batch.h"
#include "graph/infer.h"

struct nvm_vmap_trace {
  nvm_ctx *ctx;
  int n, nparam, ngiven;
  uint64_t trace; /* of the function, while it is open; 0: it has ended */
  int64_t size;   /* of the batch; -1: no input is mapped yet */
  nvg_node **in;  /* counted: the inputs, with the batch in front where they are mapped */
  uint8_t *mapped;
  nvm_array **param; /* counted: a placeholder of each input */
  nvm_array **given; /* counted: what the function gets; a snapshot of each, since it may write to it */
};

/* Is the function's trace open, and the innermost one of this thread? */
static int is_open(const nvm_vmap_trace *v) { return v->trace && v->trace == nva_thread_trace(); }
static void end_trace(nvm_vmap_trace *v) {
  if (is_open(v)) nva_trace_pop();
  v->trace = 0;
}
static void free_arrays(nvm_array **a, int n) {
  for (int i = 0; a && i < n; i++) nvm_array_unref(a[i]);
  nvb_free(a);
}
void nvm_vmap_free(nvm_vmap_trace *v) {
  if (!v) return;
  free_arrays(v->given, v->ngiven);
  free_arrays(v->param, v->nparam);
  end_trace(v); /* after what is of this trace */
  for (int i = 0; v->in && i < v->n; i++) nvg_node_unref(v->in[i]);
  nvb_free(v->in), nvb_free(v->mapped);
  nva_ctx_unref(v->ctx);
  nvb_free(v);
}

/* ---- inputs */
/* n with its dimension `from` moved to `to`. Takes n; NULL passes through. */
static nvg_node *move_axis(nvm_ctx *ctx, nvg_node *n, int from, int to) {
  int64_t axes[NVM_MAX_RANK], at = 0;
  if (!n || from == to) return n;
  int rank = n->aval->rank;
  for (int d = 0; d < rank; d++) {
    if (at == from) at++;
    axes[d] = d == to ? from : at++;
  }
  nvg_attr order = { .name = "axes", .kind = 'I', .is = axes, .n = rank };
  nvg_node *r = nvg_apply(NVG_OP_PERMUTE_DIMS, &n, 1, &order, 1, ctx->default_float);
  nvg_node_unref(n);
  return r;
}
/* The axis of a batch in an array of this rank, in *at. A status. */
static int find_axis(int *at, const char *what, int i, int axis, int rank) {
  *at = axis < 0 ? axis + rank : axis;
  if (*at >= 0 && *at < rank) return NVM_OK;
  return nvb_fail(NVM_ERR_INDEX, "[vmap] axis %d of %s %d is out of range for rank %d", axis, what, i, rank);
}
static int add_input(nvm_vmap_trace *v, int i, nvm_array *a, int axis) {
  if (!a) return nva_null("vmap", "input");
  if (a == &nva_none) return nvb_fail(NVM_ERR_VALUE, "[vmap] input %d is absent (nvm_none)", i);
  if (a->ctx != v->ctx) return nva_two_contexts("vmap");
  nvg_node *n = nvg_node_ref(nva_node(a));
  v->in[i] = n;
  if (!n) return nvb_status();
  if (axis == NVM_UNMAPPED) return NVM_OK;
  int at, status = find_axis(&at, "input", i, axis, n->aval->rank);
  if (status) return status;
  int64_t extent = n->aval->shape[at];
  if (v->size >= 0 && v->size != extent)
    return nvb_fail(NVM_ERR_VALUE, "[vmap] input %d has %lld elements along axis %d, and those before it %lld", i,
                    (long long)extent, axis, (long long)v->size);
  v->size = extent;
  v->mapped[i] = 1;
  v->in[i] = move_axis(v->ctx, n, at, 0);
  return v->in[i] ? NVM_OK : nvb_status();
}
static int add_inputs(nvm_vmap_trace *v, nvm_array *const *in, const int *axes, int n) {
  v->in = nvb_calloc((size_t)n + 1, sizeof *v->in);
  v->mapped = nvb_calloc((size_t)n + 1, sizeof *v->mapped);
  if (!v->in || !v->mapped) return nvb_fail_memory();
  v->n = n;
  for (int i = 0; i < n; i++) {
    int status = add_input(v, i, in[i], axes ? axes[i] : 0);
    if (status) return status;
  }
  return v->size >= 0 ? NVM_OK : nvb_fail(NVM_ERR_VALUE, "[vmap] no input is mapped: one needs an axis");
}
static int make_parameters(nvm_vmap_trace *v) {
  v->param = nvb_calloc((size_t)v->n + 1, sizeof *v->param);
  v->given = nvb_calloc((size_t)v->n + 1, sizeof *v->given);
  if (!v->param || !v->given) return nvb_fail_memory();
  for (int i = 0; i < v->n; i++) {
    const nvg_node *of = v->in[i];
    int row = v->mapped[i];
    nvm_array *a = of->weak ? nva_array_new(v->ctx, nvg_node_ref(v->in[i]))
                            : nvm_placeholder(v->ctx, of->aval->dtype, of->aval->rank - row, of->aval->shape + row);
    if (!a) return nvb_status();
    if (!of->weak) a->node->device = of->device;
    v->param[v->nparam++] = a;
    if (!(v->given[v->ngiven] = nvm_snapshot(a))) return nvb_status();
    v->ngiven++;
  }
  return NVM_OK;
}
static int open_trace(nvm_vmap_trace *v, nvm_array *const *in, const int *axes, int n) {
  int status = add_inputs(v, in, axes, n);
  if (!status) status = nva_trace_push();
  if (status) return status;
  v->trace = nva_thread_trace();
  return make_parameters(v);
}
int nvm_vmap_open(nvm_vmap_trace **out, nvm_ctx *ctx, nvm_array *const *in, const int *in_axes, int n) {
  if (!out) return nva_missing("vmap_open", "pointer for the trace");
  *out = NULL;
  if (!ctx) return nva_missing("vmap_open", "context");
  if (n < 0 || (n && !in)) return nvb_fail(NVM_ERR_VALUE, "[vmap] %d inputs, and no list of them", n);
  nvm_vmap_trace *v = nvb_calloc(1, sizeof *v);
  if (!v) return nvb_fail_memory();
  v->ctx = nva_ctx_ref(ctx);
  v->size = -1;
  int status = open_trace(v, in, in_axes, n);
  if (status) nvm_vmap_free(v);
  else *out = v;
  return status;
}
int nvm_vmap_inputs(nvm_array *const **in, int *nin, nvm_vmap_trace *v) {
  if (!in || !nin || !v) return nva_missing("vmap_inputs", v ? "pointer for the inputs" : "trace");
  if (!v->trace) return nvb_fail(NVM_ERR_STATE, "[vmap_inputs] the function has ended");
  *in = v->given;
  *nin = v->ngiven;
  return NVM_OK;
}

/* ---- outputs */
/* What nodes of the function's trace stand for outside of it: placeholders of the inputs, and arrays from outside. */
typedef struct standing {
  nvg_stand *stand;
  nvm_array **array; /* counted: of those from outside */
  nvg_node **made;   /* counted: what the function made */
  int n, nout;
} standing;
static void end_standing(standing *s) {
  for (int i = 0; i < s->n; i++) {
    if (s->array[i]) nvg_node_unref((nvg_node *)s->stand[i].placeholder);
    nvm_array_unref(s->array[i]);
  }
  for (int i = 0; i < s->nout; i++) nvg_node_unref(s->made[i]);
  nvb_free(s->stand), nvb_free(s->array), nvb_free(s->made);
}
static int check_trace(const nvm_vmap_trace *v) {
  int nloop;
  nva_trace_loops(&nloop);
  if (nloop) return nvb_fail(NVM_ERR_UNSUPPORTED, "[vmap] the function contains a loop, which cannot be mapped");
  for (int i = 0; i < v->ngiven; i++)
    if (!nvm_is_same(v->given[i], v->param[i]))
      return nvb_fail(NVM_ERR_STATE,
                      "[vmap] the function writes to its input %d, which stays as it was; "
                      "write to a copy of it",
                      i);
  return NVM_OK;
}
/* An output as a node; numbers become arrays of their default dtype. */
static int take_output(standing *s, nvm_ctx *ctx, nvm_array *a) {
  if (!a) return nva_null("vmap", "output of the function");
  nvg_node *n = nvg_node_ref(nva_node(a));
  if (n && n->weak) {
    nvg_attr to = { .name = "dtype", .kind = 'd', .i = nvg_dtype_in(n, ctx->default_float) };
    nvg_node *r = nvg_apply(NVG_OP_ASTYPE, &n, 1, &to, 1, ctx->default_float);
    nvg_node_unref(n);
    n = r;
  }
  if (!n) return nvb_status();
  s->made[s->nout++] = n;
  return NVM_OK;
}
static int take_trace(standing *s, const nvm_vmap_trace *v, nvm_array *const *outs, int nout) {
  int ncap, status = check_trace(v);
  if (!(s->made = nvb_calloc((size_t)nout + 1, sizeof *s->made))) return nvb_fail_memory();
  for (int i = 0; i < nout && !status; i++) status = take_output(s, v->ctx, outs[i]);
  const nva_captured *at = nva_trace_captured(&ncap);
  s->stand = nvb_calloc((size_t)(v->n + ncap) + 1, sizeof *s->stand);
  s->array = nvb_calloc((size_t)(v->n + ncap) + 1, sizeof *s->array);
  if (!s->stand || !s->array) return nvb_fail_memory();
  for (int i = 0; i < v->n; i++) s->stand[s->n++] = (nvg_stand){ v->param[i]->node, v->in[i], v->mapped[i] };
  for (int i = 0; i < ncap; i++) {
    s->array[s->n] = nvm_array_ref(at[i].array);
    s->stand[s->n++].placeholder = nvg_node_ref(at[i].node);
  }
  return status;
}
/* Puts the batch of a result along its axis, as a new array. NULL with a message. Takes n. */
static nvm_array *give_output(const nvm_vmap_trace *v, nvg_node *n, int batched, int i, int axis) {
  int at = 0;
  if (axis == NVM_UNMAPPED) {
    if (!batched) return nva_array_new(v->ctx, n);
    nvg_node_unref(n);
    return nvb_fail(NVM_ERR_VALUE, "[vmap] output %d differs between the elements, and has no axis for them", i), NULL;
  }
  if (!batched && n->aval->rank < NVM_MAX_RANK) {
    int64_t shape[NVM_MAX_RANK] = { v->size };
    if (n->aval->rank) memcpy(shape + 1, n->aval->shape, sizeof *shape * (size_t)n->aval->rank);
    nvg_attr to = { .name = "shape", .kind = 'I', .is = shape, .n = n->aval->rank + 1 };
    nvg_node *r = nvg_apply(NVG_OP_BROADCAST_TO, &n, 1, &to, 1, v->ctx->default_float);
    nvg_node_unref(n);
    if (!(n = r)) return NULL;
  }
  if (find_axis(&at, "output", i, axis, n->aval->rank)) return nvg_node_unref(n), NULL;
  return nva_array_new(v->ctx, move_axis(v->ctx, n, 0, at));
}
/* The function's trace has ended. */
static int make_outputs(nvm_array **out, const nvm_vmap_trace *v, standing *s, const int *axes) {
  for (int i = v->n; i < s->n; i++)
    if (!(s->stand[i].by = nva_node(s->array[i]))) return nvb_status();
  nvg_node **made = nvb_calloc((size_t)s->nout + 1, sizeof *made);
  uint8_t *batched = nvb_calloc((size_t)s->nout + 1, 1);
  nvg_batch b = { s->stand, s->n, v->size, v->ctx->default_float };
  int status = made && batched ? nvg_batch_nodes(made, batched, s->made, s->nout, &b) : nvb_fail_memory(), n = 0;
  for (; !status && n < s->nout; n++) {
    out[n] = give_output(v, made[n], batched[n], n, axes ? axes[n] : 0);
    made[n] = NULL;
    if (!out[n]) status = nvb_status();
  }
  for (int i = 0; made && i < s->nout; i++) nvg_node_unref(made[i]);
  for (int i = 0; status && i < s->nout; i++) nvm_array_unref(out[i]), out[i] = NULL;
  nvb_free(made), nvb_free(batched);
  return status;
}
int nvm_vmap_close(nvm_array **out, nvm_vmap_trace *v, nvm_array *const *outs, const int *out_axes, int nout) {
  if (!v || (nout > 0 && (!out || !outs)))
    return nva_missing("vmap_close", !v ? "trace" : out ? "list of outputs" : "pointer for the results");
  for (int i = 0; i < nout; i++) out[i] = NULL;
  if (!is_open(v))
    return nvb_fail(NVM_ERR_STATE, v->trace
                                       ? "[vmap_close] another trace is open inside the function's, or in its place"
                                       : "[vmap_close] the function has ended");
  standing s = { 0 };
  int status = take_trace(&s, v, outs, nout < 0 ? 0 : nout);
  end_trace(v);
  if (!status) status = make_outputs(out, v, &s, out_axes);
  end_standing(&s);
  return status;
}

/* ---- by a callback */
static int call_function(nvm_array **out, const int *out_axes, int nout, nvm_vmap_trace *v, nvm_trace_fn fn,
                         void *user) {
  nvm_array **made = nvb_calloc((size_t)nout + 1, sizeof *made);
  nvm_scope *s = made ? nvm_scope_open(v->ctx) : NULL;
  int status = s ? fn(user, v->ctx, v->given, v->ngiven, made, nout) : made ? nvb_status() : nvb_fail_memory();
  if (!status) status = nvm_vmap_close(out, v, made, out_axes, nout);
  int inside = s ? nvm_scope_close(s) : NVM_OK;
  nvb_free(made);
  return status ? status : inside;
}
int nvm_vmap(nvm_array **out, const int *out_axes, int nout, nvm_ctx *ctx, nvm_trace_fn fn, void *user,
             nvm_array *const *in, const int *in_axes, int n) {
  nvm_vmap_trace *v;
  if (nout < 1 || !out) return nva_missing("vmap", "pointer for the results");
  for (int i = 0; i < nout; i++) out[i] = NULL;
  if (!ctx || !fn) return nva_missing("vmap", ctx ? "function" : "context");
  int status = nvm_vmap_open(&v, ctx, in, in_axes, n);
  if (status) return status;
  status = call_function(out, out_axes, nout, v, fn, user);
  nvm_vmap_free(v);
  return status;
}
