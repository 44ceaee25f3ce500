/* The thread's trace: its placeholders, the arrays from outside that it meets, which become hidden inputs held by
   handle, the generators that it draws from, and its loops, whose bodies are traced inside it. Never plans or runs
   anything. */
#include <string.h>
#include "api/loop.h"
#include "base/mem.h"

typedef struct trace {
  uint64_t id;
  nva_captured *at; /* arrays from outside */
  int n, cap;
  nva_loop **loop;
  int nloop, loopcap;
  nva_put *put;
  int nput, putcap, found; /* found: where the next search for a put begins */
  nva_drawn *drawn;
  int ndrawn, drawncap;
  nva_mapped_draw *draw;
  int ndraw, drawcap;
  int maps;             /* it is that of a function over a batch */
  struct trace *around; /* a body is traced inside another trace */
} trace;
static _Thread_local trace now;
static atomic_ullong traces;

atomic_int nva_open_traces;
uint64_t nva_thread_trace(void) { return now.id; }
/* Room for one item more in a list. NULL with a message: out of memory, and the list is as it was. */
static void *room_in(void *list, int n, int *cap, size_t each) {
  if (n < *cap) return list;
  void *at = nvb_realloc(list, each * (size_t)(*cap ? 2 * *cap : 8));
  if (!at) return nvb_fail_memory(), NULL;
  *cap = *cap ? 2 * *cap : 8;
  return at;
}
nvg_node *nva_capture(nvm_array *a) {
  for (int i = 0; i < now.n; i++)
    if (now.at[i].array == a) return now.at[i].node;
  nva_captured *at = room_in(now.at, now.n, &now.cap, sizeof *at);
  if (!at) return NULL;
  now.at = at;
  nvg_node *n = nvg_leaf_new(nvg_aval_ref(a->node->aval), NULL);
  if (!n) return NULL;
  n->device = a->node->device;
  now.at[now.n++] = (nva_captured){ nvm_array_ref(a), n };
  return n;
}
static void free_put(const nva_put *p) {
  nvg_node_unref(p->whole), nvg_node_unref(p->base), nvg_node_unref(p->value);
  for (int i = 0; i < p->n; i++) nvg_node_unref(p->at[i].at);
}
/* Drops all that the trace holds, and returns to the one around it. */
static void end_trace(void) {
  trace ended = now;
  if (ended.around) {
    now = *ended.around;
    nvb_free(ended.around);
  } else {
    now = (trace){ 0 };
  }
  atomic_fetch_sub(&nva_open_traces, ended.id != 0);
  for (int i = 0; i < ended.n; i++) nvm_array_unref(ended.at[i].array), nvg_node_unref(ended.at[i].node);
  for (int i = 0; i < ended.nloop; i++) nva_loop_unref(ended.loop[i]);
  for (int i = 0; i < ended.nput; i++) free_put(&ended.put[i]);
  nva_drawn_free(ended.drawn, ended.ndrawn);
  nva_mapped_draws_free(ended.draw, ended.ndraw);
  nvb_free(ended.at), nvb_free(ended.loop), nvb_free(ended.put);
}
static void begin_trace(trace *around) {
  now = (trace){ .id = atomic_fetch_add(&traces, 1) + 1, .around = around };
  atomic_fetch_add(&nva_open_traces, 1);
}
int nvm_trace_begin(nvm_ctx *ctx) {
  if (!ctx) return nva_missing("trace_begin", "context");
  if (now.id)
    return nvb_fail(NVM_ERR_STATE, "[trace_begin] a trace is open in this thread already; call the function inline");
  begin_trace(NULL);
  nvb_clear(); /* a NULL result at the end then has its reason inside the trace */
  return NVM_OK;
}
int nvm_trace_end(nvm_ctx *ctx) {
  if (!ctx) return nva_missing("trace_end", "context");
  while (now.around) end_trace();
  end_trace();
  return NVM_OK;
}

/* ---- traces of bodies */
int nva_trace_push(int maps) {
  trace *around = nvb_alloc(sizeof *around);
  if (!around) return nvb_fail_memory();
  *around = now;
  begin_trace(around);
  now.maps = maps;
  return NVM_OK;
}
int nva_trace_maps(void) { return now.maps; }
int nva_trace_is_mapped(void) {
  int maps = 0;
  for (const trace *t = &now; t; t = t->around) maps |= t->maps;
  return maps;
}
void nva_trace_pop(void) { end_trace(); }
int nvm_trace_adopt(nvm_array *a) {
  if (!a) return nva_null("trace_adopt", "array");
  const trace *t = &now;
  while (t->around) t = t->around;
  if (a != &nva_none) a->trace = t->id;
  return NVM_OK;
}
const nva_captured *nva_trace_captured(int *n) { return *n = now.n, now.at; }
int nva_trace_add_loop(nva_loop *l) {
  nva_loop **at = room_in(now.loop, now.nloop, &now.loopcap, sizeof *at);
  if (!at) return nvb_status();
  now.loop = at;
  now.loop[now.nloop++] = nva_loop_ref(l);
  return NVM_OK;
}
nva_loop *const *nva_trace_loops(int *n) { return *n = now.nloop, now.loop; }
int nva_trace_add_put(const nva_put *p) {
  nva_put *at = room_in(now.put, now.nput, &now.putcap, sizeof *at);
  if (!at) return nvb_status();
  now.put = at;
  now.put[now.nput++] = *p;
  nvg_node_ref(p->whole), nvg_node_ref(p->base), nvg_node_ref(p->value);
  for (int i = 0; i < p->n; i++) nvg_node_ref(p->at[i].at);
  return NVM_OK;
}
const nva_put *nva_trace_put(const nvg_node *n) {
  /* who asks goes from a write to the one before it, so the search begins there */
  int i = now.found < now.nput ? now.found : now.nput - 1;
  for (int k = 0; k < now.nput; k++, i = i ? i - 1 : now.nput - 1)
    if (now.put[i].whole == n) return now.found = i ? i - 1 : i, &now.put[i];
  return NULL;
}
int nva_trace_can_draw(void) {
  const trace *t = &now;
  while (t->maps) t = t->around;
  if (!t->around) return NVM_OK;
  return nvb_fail(NVM_ERR_UNSUPPORTED,
                  "[random] the function of a loop cannot draw, since its steps would draw the same; "
                  "draw for all steps in front of it, and give each its part");
}
nva_drawn *nva_trace_drawn(nvm_generator *g, int (*make)(nva_drawn *d, nvm_generator *g)) {
  for (int i = 0; i < now.ndrawn; i++)
    if (now.drawn[i].of == g) return &now.drawn[i];
  nva_drawn *at = room_in(now.drawn, now.ndrawn, &now.drawncap, sizeof *at);
  if (!at) return NULL;
  now.drawn = at;
  return make(&at[now.ndrawn], g) ? NULL : &now.drawn[now.ndrawn++];
}
nva_mapped_draw *nva_trace_add_draw(void) {
  nva_mapped_draw *at = room_in(now.draw, now.ndraw, &now.drawcap, sizeof *at);
  if (!at) return NULL;
  now.draw = at;
  now.draw[now.ndraw] = (nva_mapped_draw){ .nloop = now.nloop };
  return &now.draw[now.ndraw++];
}
nva_mapped_draw *nva_trace_mapped_draws(int *n) {
  nva_mapped_draw *at = now.draw;
  *n = now.ndraw;
  now.draw = NULL;
  now.ndraw = now.drawcap = 0;
  return at;
}
nva_drawn *nva_trace_draws(int *n) {
  nva_drawn *at = now.drawn;
  *n = now.ndrawn;
  now.drawn = NULL;
  now.ndrawn = now.drawncap = 0;
  return at;
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
