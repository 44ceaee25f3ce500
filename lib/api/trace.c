/* The thread's trace: its placeholders, and the arrays from outside that it meets, which become hidden inputs held by
   handle. Never plans or runs anything. */
#include <string.h>
#include "api/api.h"
#include "base/mem.h"

typedef struct trace { uint64_t id; nva_captured *at; int n, cap; } trace;
static _Thread_local trace now;
static atomic_ullong traces;

atomic_int nva_open_traces;
uint64_t nva_thread_trace(void) { return now.id; }
nvg_node *nva_capture(nvm_array *a) {
  for (int i = 0; i < now.n; i++)
    if (now.at[i].array == a) return now.at[i].node;
  if (now.n == now.cap) {
    int cap = now.cap ? 2 * now.cap : 8;
    nva_captured *at = nvb_realloc(now.at, sizeof *at * (size_t)cap);
    if (!at) return nvb_fail_memory(), NULL;
    now.at = at;
    now.cap = cap;
  }
  nvg_node *n = nvg_leaf_new(nvg_aval_ref(a->node->aval), NULL);
  if (!n) return NULL;
  n->device = a->node->device;
  now.at[now.n++] = (nva_captured){ nvm_array_ref(a), n };
  return n;
}
int nvm_trace_begin(nvm_ctx *ctx) {
  if (!ctx) return nva_missing("trace_begin", "context");
  if (now.id)
    return nvb_fail(NVM_ERR_STATE, "[trace_begin] a trace is open in this thread already; call the function inline");
  now.id = atomic_fetch_add(&traces, 1) + 1;
  atomic_fetch_add(&nva_open_traces, 1);
  nvb_clear(); /* a NULL result at the end then has its reason inside the trace */
  return NVM_OK;
}
int nvm_trace_end(nvm_ctx *ctx) {
  if (!ctx) return nva_missing("trace_end", "context");
  atomic_fetch_sub(&nva_open_traces, now.id != 0);
  for (int i = 0; i < now.n; i++) nvm_array_unref(now.at[i].array), nvg_node_unref(now.at[i].node);
  nvb_free(now.at);
  now = (trace){ 0 };
  return NVM_OK;
}
nvm_array *nvm_placeholder(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape) {
  if (!ctx) return nva_missing("placeholder", "context"), NULL;
  return nva_array_new(ctx, nvg_leaf_new(nvg_aval_get(t, rank, shape), NULL));
}

/* The first 8 bytes of an argument that is a number; 0 for others. */
int64_t nva_number_bits(const nvm_array *a) {
  const nvg_node *n = a && a != &nva_none ? a->node : NULL;
  const nvg_value *v = n ? atomic_load(&n->value) : NULL;
  int64_t bits = 0;
  if (n && n->op == NVG_OP_CONST) return n->attr[0];
  if (v && !v->device) memcpy(&bits, v->data, (size_t)nvg_size(n->aval->dtype) < 8 ? 1 : 8);
  return bits;
}
nvm_array *nvm_placeholder_scalar(nvm_ctx *ctx, char kind, const nvm_array *with) {
  if (!ctx) return nva_missing("placeholder_scalar", "context"), NULL;
  if (nva_check_kind("placeholder_scalar", kind)) return NULL;
  return nva_array_new(ctx, nvg_weak_parameter(kind, nva_number_bits(with)));
}

/* Returns the trace's hidden inputs, which the caller owns from now on. */
nva_captured *nva_trace_inputs(int *n) {
  nva_captured *at = now.at;
  *n = now.n;
  now.at = NULL;
  now.n = now.cap = 0;
  return at;
}
