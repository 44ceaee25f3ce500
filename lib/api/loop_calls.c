/* Loops whose functions are callbacks: each function of a loop by hand (loop.c) is called in a scope of its own. */
#include "api/loop.h"
#include "base/mem.h"

typedef struct calls {
  const char *name;
  nvm_ctx *ctx;
  nvm_trace_fn fn[3];
  int nout[3], n;
  void *user;
} calls;

/* Calls one function, whose outputs are noted before its scope is closed. */
static int call_function(nvm_loop *l, const calls *c, int k) {
  nvm_array *const *in;
  int nin, status = nvm_loop_inputs(&in, &nin, l);
  nvm_array **out = status ? NULL : nvb_calloc((size_t)c->nout[k] + 1, sizeof *out);
  if (!out) return status ? status : nvb_fail_memory();
  nvm_scope *s = nvm_scope_open(c->ctx);
  status = s ? c->fn[k](c->user, c->ctx, in, nin, out, c->nout[k]) : nvb_status();
  for (int i = 0; i < c->nout[k] && !status; i++)
    if (!out[i] && !(status = nvb_status()))
      status = nvb_fail(NVM_ERR_VALUE, "[%s] a function left output %d NULL", c->name, i);
  if (!status) status = nvm_loop_outputs(l, out, c->nout[k]);
  int inside = s ? nvm_scope_close(s) : NVM_OK;
  nvb_free(out);
  return status ? status : inside;
}
static int call_all(nvm_array **out, int nout, const calls *c, const nvm_loop_options *o, nvm_array *const *in, int n) {
  nvm_loop *l;
  if (!out && nout > 0) return nva_missing(c->name, "pointer for results");
  for (int i = 0; i < nout; i++) out[i] = NULL;
  if (!c->ctx) return nva_missing(c->name, "context");
  for (int k = 0; k < c->n; k++)
    if (!c->fn[k]) return nva_missing(c->name, "function");
  int status = nvm_loop_open(&l, c->ctx, o, in, n);
  if (status) return status;
  for (int k = 0; k < c->n && !status; k++) status = call_function(l, c, k);
  if (!status && nout) status = nvm_loop_close(l, out);
  nvm_loop_free(l);
  return status;
}
int nvm_fori_loop(nvm_array **out, nvm_ctx *ctx, nvm_array *lower, nvm_array *upper, nvm_trace_fn body, void *user,
                  nvm_array *const *init, int n) {
  nvm_loop_options o = NVM_LOOP_OPTIONS_INIT;
  o.lower = lower, o.upper = upper;
  calls c = { .name = "fori_loop", .ctx = ctx, .fn = { body }, .nout = { n }, .n = 1, .user = user };
  return call_all(out, n, &c, &o, init, n);
}
int nvm_while_loop(nvm_array **out, nvm_ctx *ctx, nvm_trace_fn test, nvm_trace_fn body, void *user,
                   nvm_array *const *init, int n) {
  nvm_loop_options o = NVM_LOOP_OPTIONS_INIT;
  o.kind = NVM_WHILE_LOOP;
  calls c = { .name = "while_loop", .ctx = ctx, .fn = { test, body, test }, .nout = { 1, n, 1 }, .n = 3, .user = user };
  return call_all(out, n, &c, &o, init, n);
}
int nvm_cond(nvm_array **out, int nout, nvm_ctx *ctx, nvm_array *pred, nvm_trace_fn yes, nvm_trace_fn no, void *user,
             nvm_array *const *in, int n) {
  nvm_loop_options o = NVM_LOOP_OPTIONS_INIT;
  o.kind = NVM_COND;
  o.pred = pred;
  calls c = { .name = "cond", .ctx = ctx, .fn = { yes, no }, .nout = { nout, nout }, .n = 2, .user = user };
  if (nout < 0) return nvb_fail(NVM_ERR_VALUE, "[cond] %d outputs", nout);
  return call_all(out, nout, &c, &o, in, n);
}
int nvm_scan_options_init(nvm_scan_options *o, unsigned version) {
  if (!o) return nva_missing("scan_options_init", "pointer for the options");
  if (version != NVM_SCAN_OPTIONS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[scan_options_init] version %u; the library has %d", version,
                    NVM_SCAN_OPTIONS_VERSION);
  *o = (nvm_scan_options)NVM_SCAN_OPTIONS_INIT;
  return NVM_OK;
}
int nvm_scan(nvm_array **out, nvm_ctx *ctx, nvm_trace_fn body, void *user, nvm_array *const *init, int n,
             nvm_array *const *xs, int nx, int ny, const nvm_scan_options *with) {
  nvm_loop_options o = NVM_LOOP_OPTIONS_INIT;
  if (with && with->version != NVM_SCAN_OPTIONS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[scan] version %u of the options; the library has %d", with->version,
                    NVM_SCAN_OPTIONS_VERSION);
  o.kind = NVM_SCAN;
  o.xs = xs, o.nx = nx;
  if (with) o.length = with->length, o.reverse = with->reverse;
  if (n < 0 || ny < 0) return nvb_fail(NVM_ERR_VALUE, "[scan] %d carries and %d values of a step", n, ny);
  calls c = { .name = "scan", .ctx = ctx, .fn = { body }, .nout = { n + ny }, .n = 1, .user = user };
  return call_all(out, n + ny, &c, &o, init, n);
}
