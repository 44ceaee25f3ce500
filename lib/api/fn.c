/* Functions in C: a callback that is traced for each list of dtypes and shapes. What it writes to its arguments is
   stored in those of each call. Never plans or runs a traced function itself. */
#include "api/loop.h"
#include "api/overlap.h"
#include "base/lock.h"
#include "base/mem.h"
#include "graph/infer.h"

enum {
  KEPT = 64,   /* the most graphs of a function; the least recently used are evicted */
  TRIES = 1024 /* combinations of indices that are tried to show that two arguments do not overlap */
};
typedef struct sig { struct sig *next; nvm_traced *t; struct { const nvg_aval *aval; int weak; } in[]; } sig;
struct nvm_fn {
  nvm_ctx *ctx;
  nvm_trace_fn trace;
  void *user;
  int nin, nout;
  sig *first; /* at most KEPT, the most recently used first */
  nvb_lock lock;
};
int nvm_fn_new(nvm_fn **out, nvm_ctx *ctx, nvm_trace_fn trace, void *user, int nin, int nout) {
  if (!out) return nva_missing("fn_new", "pointer for the function");
  *out = NULL;
  if (!ctx || !trace || nin < 0 || nout < 1)
    return nvb_fail(NVM_ERR_VALUE, "[fn_new] a context, a trace function and at least one output are needed");
  nvm_fn *f = nvb_calloc(1, sizeof *f);
  if (!f) return nvb_fail_memory();
  *f = (nvm_fn){
    .ctx = nva_ctx_ref(ctx), .trace = trace, .user = user, .nin = nin, .nout = nout, .lock = NVB_LOCK(FUNCTION)
  };
  *out = f;
  return NVM_OK;
}
static void sig_free(sig *s, int nin) {
  nvm_traced_free(s->t);
  for (int i = 0; i < nin; i++) nvg_aval_unref(s->in[i].aval);
  nvb_free(s);
}
int nvm_fn_free(nvm_fn *f) {
  if (!f) return NVM_OK;
  for (sig *s = f->first, *next; s; s = next) next = s->next, sig_free(s, f->nin);
  nva_ctx_unref(f->ctx);
  nvb_free(f);
  return NVM_OK;
}

/* ---- tracing */
/* given: what the callback gets; of parameters a snapshot of each, since it may write to it. res: its results.
   in: the arguments of the call. */
typedef struct tracing { nvm_fn *f; nvm_array **param, **given, **res, *const *in; } tracing;
static int call_trace(const tracing *w) {
  nvm_fn *f = w->f;
  int status = f->trace(f->user, f->ctx, w->given, f->nin, w->res, f->nout);
  for (int i = 0; i < f->nout && !status; i++)
    if (!w->res[i] && !(status = nvb_status()))
      status = nvb_fail(NVM_ERR_VALUE, "[fn_call] the trace left output %d NULL", i);
  return status;
}
/* Makes the call a part of the trace that is open. A status. */
static int run_inline(nvm_fn *f, nvm_array *const *in, nvm_array **res) {
  nvm_scope *s = nvm_scope_open(f->ctx);
  if (!s) return nvb_status();
  int status = call_trace(&(tracing){ .f = f, .given = (nvm_array **)(uintptr_t)in, .res = res });
  for (int i = 0; i < f->nout && !status; i++) nvm_array_ref(res[i]);
  int inside = nvm_scope_close(s);
  for (int i = 0; i < f->nout && (status || inside); i++) {
    if (!status) nvm_array_unref(res[i]);
    res[i] = NULL;
  }
  return status ? status : inside;
}
/* Makes the traced function of the results and of what the callback has made of its arguments. A status. */
static int make_traced(nvm_traced **t, const tracing *w) {
  int n = 0, *written = nvb_calloc((size_t)w->f->nin + 1, sizeof *written);
  nvm_array **become = nvb_calloc((size_t)w->f->nin + 1, sizeof *become);
  int status = written && become ? NVM_OK : nvb_fail_memory();
  for (int i = 0; i < w->f->nin && !status; i++)
    if (!w->param[i]->node->weak && !nvm_is_same(w->given[i], w->param[i])) written[n] = i, become[n++] = w->given[i];
  if (!status)
    status = nvm_traced_new_writing(t, w->f->ctx, w->param, w->f->nin, w->res, w->f->nout, written, become, n, w->in);
  nvb_free(written), nvb_free(become);
  return status;
}
static int run_trace(nvm_traced **t, const tracing *w) {
  nvm_scope *s = nvm_scope_open(w->f->ctx);
  if (!s) return nvb_status();
  int status = call_trace(w);
  if (!status) status = make_traced(t, w);
  int inside = nvm_scope_close(s);
  return status ? status : inside;
}
static nvm_array *placeholder_for(nvm_fn *f, nvm_array *in) {
  const nvg_aval *av = in->node->aval;
  return in->node->weak ? nvm_placeholder_scalar(f->ctx, nvg_weak_kind(in->node), in)
                        : nvm_placeholder(f->ctx, av->dtype, av->rank, av->shape);
}
static int trace_new(nvm_fn *f, nvm_array *const *in, nvm_traced **t) {
  nvm_array **at = nvb_calloc((size_t)(2 * f->nin + f->nout), sizeof *at);
  if (!at) return nvb_fail_memory();
  int status = nvm_trace_begin(f->ctx);
  if (status) return nvb_free(at), status;
  tracing w = { f, at, at + f->nin, at + 2 * f->nin, in };
  for (int i = 0; i < f->nin && !status; i++) {
    w.param[i] = placeholder_for(f, in[i]);
    w.given[i] = w.param[i] ? nvm_snapshot(w.param[i]) : NULL;
    if (!w.given[i]) status = nvb_status();
  }
  if (!status) status = run_trace(t, &w);
  for (int i = 0; i < 2 * f->nin; i++) nvm_array_unref(at[i]);
  nvm_trace_end(f->ctx);
  nvb_free(at);
  return status;
}
static int is_traced_for(const nvm_fn *f, const sig *s, nvm_array *const *in) {
  for (int i = 0; i < f->nin; i++)
    if (s->in[i].aval != in[i]->node->aval || s->in[i].weak != in[i]->node->weak) return 0;
  return nvm_traced_accepts(s->t, in);
}
static int sig_new(sig **out, nvm_fn *f, nvm_array *const *in) {
  sig *s = *out = nvb_calloc(1, sizeof *s + sizeof s->in[0] * (size_t)f->nin);
  if (!s) return nvb_fail_memory();
  for (int i = 0; i < f->nin; i++) s->in[i].aval = nvg_aval_ref(in[i]->node->aval), s->in[i].weak = in[i]->node->weak;
  int status = trace_new(f, in, &s->t);
  if (status) sig_free(s, f->nin);
  return status;
}
/* Finds or traces the graph for these arguments and takes a reference, under the lock. Returns a status. */
static int traced_for(nvm_fn *f, nvm_array *const *in, nvm_traced **t) {
  for (int i = 0; i < f->nin; i++)
    if (in[i] && in[i] != &nva_none && !nva_node(in[i])) return nvb_status();
    else if (!in[i] || in[i] == &nva_none)
      return in[i] ? nvb_fail(NVM_ERR_VALUE, "[fn_call] argument %d is absent (nvm_none)", i)
                   : nva_null("fn_call", "argument");
  sig **at = &f->first, *s;
  int known = 0;
  for (int n = 1; (s = *at) && !(known = is_traced_for(f, s, in)) && n < KEPT; n++) at = &s->next;
  if (known) {
    *at = s->next;
  } else {
    sig *made, *last = s; /* the least recently used one, if there are KEPT of them */
    int status = sig_new(&made, f, in);
    if (status) return status;
    if (last) *at = last->next, sig_free(last, f->nin);
    s = made;
  }
  s->next = f->first;
  f->first = s;
  return *t = nva_traced_ref(s->t), NVM_OK;
}
/* The same, taking the lock. */
static int find_traced(nvm_fn *f, nvm_array *const *in, nvm_traced **t) {
  nvb_lock_take(&f->lock);
  int status = traced_for(f, in, t);
  nvb_lock_give(&f->lock);
  return status;
}
/* ---- calling */
static int may_meet(nvm_array *a, nvm_array *b) { /* may a write to a be seen in b? */
  nva_part p, q;
  if (nvm_base(a) != nvm_base(b)) return 0;
  return !nva_part_of(&p, a) || !nva_part_of(&q, b) || nva_parts_overlap(&p, &q, TRIES) != NVA_APART;
}
/* Checks that the arguments which calls write to can be written, and that nothing else that is read shows a part of
   one. A status. */
static int check_written(const nvm_fn *f, const nvm_traced *t, nvm_array *const *in) {
  int status = NVM_OK;
  for (int i = 0; i < f->nin && !status; i++) {
    if (!nva_traced_writes(t, i)) continue;
    nvm_array *outside;
    status = nvm_check_writable(in[i]);
    for (int k = 0; k < f->nin && !status; k++)
      if (k != i && may_meet(in[i], in[k]))
        status = nvb_fail(NVM_ERR_VALUE,
                          "[fn_call] the function writes to argument %d, of which argument %d may show a part; pass "
                          "what both show, once",
                          i, k);
    for (int k = 0; !status && (outside = nvm_traced_captured(t, k)); k++)
      if (may_meet(in[i], outside))
        status = nvb_fail(NVM_ERR_VALUE,
                          "[fn_call] the function writes to argument %d, of which an array that it captures may show "
                          "a part; give it as an argument",
                          i);
  }
  return status;
}
/* Calls t and stores what it writes. A status; a failure leaves NULL in `out`. */
static int run_traced(const nvm_fn *f, nvm_traced *t, nvm_array *const *in, nvm_array **out) {
  enum { FEW = 16 };
  nvm_array *few[FEW], **all = out;
  int n = nvm_traced_outputs(t), status = check_written(f, t, in);
  if (n > f->nout) all = n > FEW ? nvb_calloc((size_t)n, sizeof *all) : few;
  if (!status && !all) status = nvb_fail_memory();
  if (!status) status = nvm_traced_call(t, in, all);
  if (status) return all != out && all != few ? (nvb_free(all), status) : status;
  status = nvm_traced_store(t, in, NULL, all);
  for (int i = 0; i < n; i++)
    if (status || i >= f->nout) nvm_array_unref(all[i]), all[i] = NULL;
  for (int i = 0; i < f->nout; i++) out[i] = all[i];
  if (all != out && all != few) nvb_free(all);
  return status;
}
int nvm_fn_call(nvm_fn *f, nvm_array *const *in, nvm_array **out) {
  int fault = nva_check_lists("fn_call", f, in, f ? f->nin : 0, out, f ? f->nout : 0);
  if (fault) return fault;
  for (int i = 0; i < f->nout; i++) out[i] = NULL;
  if (nva_tracing()) return run_inline(f, in, out);
  nvm_traced *t;
  int status = find_traced(f, in, &t);
  if (status) return status;
  status = run_traced(f, t, in, out);
  nva_traced_unref(t);
  return status;
}
int nvm_fn_explain(char **text, nvm_fn *f, nvm_array *const *in) {
  nvm_traced *t;
  int fault = nva_check_lists("fn_explain", f, in, f ? f->nin : 0, NULL, 0);
  if (fault || !text) return fault ? fault : nva_missing("fn_explain", "pointer for the text");
  *text = NULL;
  if (nva_thread_trace())
    return nvb_fail(NVM_ERR_STATE, "[fn_explain] a function is being traced; explain it afterwards");
  int status = find_traced(f, in, &t);
  if (status) return status;
  status = nvm_traced_explain(text, t);
  nva_traced_unref(t);
  return status;
}
