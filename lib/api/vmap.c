/* nvm_vmap: traces a function of one element of a batch, and makes its graph that of all elements (lib/graph/batch.c).
   Never evaluates anything. */
#include "nvm/vmap.h"
#include <string.h>
#include "api/mapping.h"
#include "base/mem.h"
#include "graph/infer.h"

/* What the function made, while it is made that of all elements. */
typedef struct ending {
  nva_mapping m;
  nva_captured *cap; /* arrays from outside, and what stands for them; both counted */
  nvg_node **made;   /* counted: the outputs */
  nva_loop **loop;   /* counted */
  nva_mapped_draw *draw;
  int ncap, nout, nloop, ndraw;
  int loops, draws; /* those that have been mapped */
} ending;
struct nvm_vmap_trace {
  nvm_ctx *ctx;
  int n, nparam, ngiven;
  uint64_t trace; /* of the function, while it is open; 0: it has ended */
  int64_t size;   /* of the batch; -1: no input is mapped yet */
  nvg_node **in;  /* counted: the inputs, with the batch in front where they are mapped */
  uint8_t *mapped;
  nvm_array **param; /* counted: a placeholder of each input */
  nvm_array **given; /* counted: what the function gets; a snapshot of each, since it may write to it */
  ending end;
};

/* Is the function's trace open, and the innermost one of this thread? */
static int is_open(const nvm_vmap_trace *v) { return v->trace && v->trace == nva_thread_trace(); }
static void end_trace(nvm_vmap_trace *v) {
  if (is_open(v)) nva_trace_pop();
  v->trace = 0;
}
static void end_ending(ending *e) {
  nva_mapping_end(&e->m);
  for (int i = 0; i < e->ncap; i++) nvm_array_unref(e->cap[i].array), nvg_node_unref(e->cap[i].node);
  for (int i = 0; i < e->nout; i++) nvg_node_unref(e->made[i]);
  for (int i = 0; i < e->nloop; i++) nva_loop_unref(e->loop[i]);
  nva_mapped_draws_free(e->draw, e->ndraw);
  nvb_free(e->cap), nvb_free(e->made), nvb_free(e->loop);
  *e = (ending){ 0 };
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
  end_ending(&v->end);
  for (int i = 0; v->in && i < v->n; i++) nvg_node_unref(v->in[i]);
  nvb_free(v->in), nvb_free(v->mapped);
  nva_ctx_unref(v->ctx);
  nvb_free(v);
}

/* ---- inputs */
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
  v->in[i] = nva_move_axis(v->ctx, n, at, 0);
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
  if (!status) status = nva_trace_push(1);
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
static int check_writes(const nvm_vmap_trace *v) {
  for (int i = 0; i < v->ngiven; i++)
    if (!nvm_is_same(v->given[i], v->param[i]))
      return nvb_fail(NVM_ERR_STATE,
                      "[vmap] the function writes to its input %d, which stays as it was; "
                      "write to a copy of it",
                      i);
  return NVM_OK;
}
/* An output as a node; numbers become arrays of their default dtype. */
static int take_output(ending *e, nvm_ctx *ctx, nvm_array *a) {
  if (!a) return nva_null("vmap", "output of the function");
  nvg_node *n = nvg_node_ref(nva_node(a));
  if (n && n->weak) {
    nvg_attr to = { .name = "dtype", .kind = 'd', .i = nvg_dtype_in(n, ctx->default_float) };
    nvg_node *r = nvg_apply(NVG_OP_ASTYPE, &n, 1, &to, 1, ctx->default_float);
    nvg_node_unref(n);
    n = r;
  }
  if (!n) return nvb_status();
  e->made[e->nout++] = n;
  return NVM_OK;
}
static int take_loops(ending *e) {
  int n;
  nva_loop *const *loop = nva_trace_loops(&n);
  if (!(e->loop = nvb_calloc((size_t)n + 1, sizeof *e->loop))) return nvb_fail_memory();
  for (; e->nloop < n; e->nloop++) e->loop[e->nloop] = nva_loop_ref(loop[e->nloop]);
  e->draw = nva_trace_mapped_draws(&e->ndraw);
  return NVM_OK;
}
/* Takes what the trace holds, of which inputs stand for what was given. */
static int take_trace(nvm_vmap_trace *v, nvm_array *const *outs, int nout) {
  ending *e = &v->end;
  int status = check_writes(v);
  e->m = (nva_mapping){ .ctx = v->ctx, .size = v->size };
  if (!status && !(e->made = nvb_calloc((size_t)nout + 1, sizeof *e->made))) status = nvb_fail_memory();
  for (int i = 0; i < nout && !status; i++) status = take_output(e, v->ctx, outs[i]);
  for (int i = 0; i < v->n && !status; i++) status = nva_mapping_add(&e->m, v->param[i]->node, v->in[i], v->mapped[i]);
  if (!status) status = take_loops(e);
  e->cap = nva_trace_inputs(&e->ncap);
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
  if (!(n = nva_spread(&v->end.m, n, batched))) return NULL;
  if (find_axis(&at, "output", i, axis, n->aval->rank)) return nvg_node_unref(n), NULL;
  return nva_array_new(v->ctx, nva_move_axis(v->ctx, n, 0, at));
}
/* Maps the loops and draws that are left, in the order in which the function made them. */
static int map_loops(ending *e) {
  int status = NVM_OK;
  while (!status && (e->draws < e->ndraw || e->loops < e->nloop)) {
    int draws = e->draws < e->ndraw && e->draw[e->draws].nloop <= e->loops;
    if (draws && !(status = nva_map_draw(&e->m, &e->draw[e->draws]))) e->draws++;
    if (!draws && !(status = nva_map_loop(&e->m, e->loop[e->loops]))) e->loops++;
  }
  return status;
}
static int map_captured(ending *e) {
  int status = NVM_OK;
  for (int i = 0; i < e->ncap && !status; i++)
    status = nva_mapping_add(&e->m, e->cap[i].node, nva_node(e->cap[i].array), 0);
  return status;
}
/* The function's trace has ended. */
static int make_outputs(nvm_array **out, const nvm_vmap_trace *v, const int *axes) {
  const ending *e = &v->end;
  nvg_node **made = nvb_calloc((size_t)e->nout + 1, sizeof *made);
  uint8_t *batched = nvb_calloc((size_t)e->nout + 1, 1);
  int status = made && batched ? nva_map_nodes(made, batched, e->made, e->nout, &e->m) : nvb_fail_memory(), n = 0;
  for (; !status && n < e->nout; n++) {
    out[n] = give_output(v, made[n], batched[n], n, axes ? axes[n] : 0);
    made[n] = NULL;
    if (!out[n]) status = nvb_status();
  }
  for (int i = 0; made && i < e->nout; i++) nvg_node_unref(made[i]);
  for (int i = 0; status && i < e->nout; i++) nvm_array_unref(out[i]), out[i] = NULL;
  nvb_free(made), nvb_free(batched);
  return status;
}
int nvm_vmap_close(nvm_array **out, nvm_vmap_trace *v, nvm_array *const *outs, const int *out_axes, int nout) {
  if (!v || (nout > 0 && (!out || !outs)))
    return nva_missing("vmap_close", !v ? "trace" : out ? "list of outputs" : "pointer for the results");
  for (int i = 0; i < nout; i++) out[i] = NULL;
  int again = !v->trace && v->end.m.ctx, status = NVM_OK;
  if (!again && !is_open(v))
    return nvb_fail(NVM_ERR_STATE, v->trace
                                       ? "[vmap_close] another trace is open inside the function's, or in its place"
                                       : "[vmap_close] the function has ended");
  if (!again) {
    status = take_trace(v, outs, nout < 0 ? 0 : nout);
    end_trace(v);
    if (!status) status = map_captured(&v->end);
  }
  if (!status) status = map_loops(&v->end);
  if (!status) status = make_outputs(out, v, out_axes);
  if (status != NVM_ERR_INTERRUPTED) end_ending(&v->end);
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
