/* Traced functions: a graph with parameters, traced once and run many times. Tracing builds the lazy graph over
   placeholders. A traced graph keeps one program, a variant, for each exact signature of its leaves (strides,
   alignment, facts); a call binds pointers and runs it. Never decides how a graph is planned. */
#include <string.h>
#include "api/loop.h"
#include "api/stores.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "graph/infer.h"

/* ---- traced graphs */
enum { KEPT = 64 }; /* the most variants of a graph; the least recently used are evicted */
typedef struct variant { /* a program for one exact signature of the leaves */
  struct variant *_Atomic next;
  struct variant *retired;
  atomic_llong used; /* number of evaluations at its last run */
  nva_program *program;
  uint64_t settings;
  int dev;
  int64_t sig[]; /* for each leaf its strides, then its facts */
} variant;
enum { OWNER = 1 << 30 };
struct nvm_traced {
  atomic_int held; /* reference count: OWNER for the owner, 1 for each call in progress */
  nvm_ctx *ctx;
  int nparam, nout, nleaf, nsig, nweak;
  int calls;        /* it has GEMMs: planning depends on the values of scalars that scale them */
  int put;          /* the device that the trace put its results on; 0: that of the arguments, else the context's */
  uint8_t *donates; /* for each parameter: calls donate it; NULL: none */
  nvg_node **param, **out; /* counted */
  nva_captured *cap;
  int ncap;
  nva_drawn *drawn; /* generators that it draws from, whose state is given to each call */
  int ndrawn;
  nva_stores *stores; /* what calls store in their arguments; NULL: nothing */
  int nviews;         /* outputs that may be views of a leaf; those after them have memory of their own */
  nva_chain *chain;   /* it has loops, and runs as a chain; NULL: by programs of its graph */
  nvb_arena *arena;   /* holds the graph */
  nvg_graph *graph;   /* the graph as of the end of the trace, whose inner nodes may get values later */
  nvg_node **leaf;    /* counted; the graph's leaves, in order */
  /* for each leaf: its input (input_node), or -1 for its own value; then the unused parameters */
  int *source;
  int nidle;              /* number of unused parameters */
  int nasked;             /* number of integer parameters whose values the trace depended on */
  variant *_Atomic first; /* read without the lock, changed under it */
  int nvariant;
  variant *retired; /* evicted variants that a call may still be reading */
  nvb_lock lock;
};

static void collect_graph(nvb_arena *a, void *arg) {
  nvm_traced *t = arg;
  t->graph = nvg_collect(a, t->out, t->nout, NULL);
  t->graph->nout = t->nout; /* no one outside reads the inner values of a traced function */
}
static void copy_graph(nvb_arena *a, void *arg) {
  nvg_graph **g = ((void **)arg)[0];
  const nvm_traced *t = ((void **)arg)[1];
  *g = nvb_dup(a, t->graph, sizeof **g);
  (*g)->arena = a;
  (*g)->leaf = nvb_dup(a, t->graph->leaf, sizeof *t->graph->leaf * (size_t)t->nleaf);
}
/* Copies the traced graph, so that the layout of its leaves can be filled in. */
static int graph_of(nvm_traced *t, nvb_arena *a, nvg_graph **g) {
  void *arg[2] = { g, t };
  return nvb_protect(a, copy_graph, arg);
}
/* Inputs: the parameters, the captures, the state of the generators. */
static int count_inputs(const nvm_traced *t) { return t->nparam + t->ncap + NVG_STATE * t->ndrawn; }
static nvg_node *input_node(const nvm_traced *t, int i) {
  int cap = i - t->nparam, state = cap - t->ncap;
  return cap < 0 ? t->param[i] : state < 0 ? t->cap[cap].node : t->drawn[state / NVG_STATE].state[state % NVG_STATE];
}
static int source_of(const nvm_traced *t, const nvg_node *leaf) {
  int i = count_inputs(t);
  while (i-- > 0 && input_node(t, i) != leaf) {}
  return i;
}
static int add_leaf(nvm_traced *t, nvg_node *n) {
  t->source[t->nleaf] = source_of(t, n);
  t->leaf[t->nleaf++] = nvg_node_ref(n);
  t->nsig += n->aval->rank + 1;
  t->nweak += n->weak != 0;
  if (t->source[t->nleaf - 1] >= 0 || atomic_load(&n->value)) return NVM_OK;
  return nvb_fail(NVM_ERR_STATE, "[jit] the function returned an array that depends on another trace's argument");
}
/* The leaves of the graph; of a chain all parameters and captures that it reads. */
static int find_leaves(nvm_traced *t, const uint8_t *used) {
  const nvg_graph *g = t->graph;
  int status = NVM_OK, n = t->chain ? count_inputs(t) : g->nleaf;
  for (int i = 0; !t->chain && i < g->n; i++) t->calls |= g->v[i].kind == NVG_VCALL;
  t->leaf = nvb_calloc((size_t)n + 1, sizeof *t->leaf);
  t->source = nvb_calloc((size_t)(n + t->nparam) + 1, sizeof *t->source);
  if (!t->leaf || !t->source) return nvb_fail_memory();
  for (int i = 0; i < n && !status; i++)
    if (!t->chain) status = add_leaf(t, g->leaf_node[i]);
    else if (used[i]) status = add_leaf(t, input_node(t, i));
  for (int p = 0, i; p < t->nparam && !status; p++) {
    for (i = 0; i < t->nleaf && t->source[i] != p;) i++;
    if (i == t->nleaf) t->source[t->nleaf + t->nidle++] = p;
  }
  return status;
}
/* Makes the chain of a function that uses some of these loops. used: receives which inputs it reads. */
static int find_chain(nvm_traced *t, nva_loop *const *loop, int n, uint8_t *used) {
  int all = count_inputs(t);
  nvg_node **in = nvb_calloc((size_t)all + 1, sizeof *in);
  if (!in) return nvb_fail_memory();
  for (int i = 0; i < all; i++) in[i] = input_node(t, i);
  int status = nva_chain_new(&t->chain, t->ctx, in, all, t->out, t->nout, t->nviews, loop, n, used);
  nvb_free(in);
  return status;
}
/* Reads the graph or the chain of the outputs. Returns a status. */
static int finish_trace(nvm_traced *t, nva_loop *const *loop, int n) {
  uint8_t *used = n ? nvb_calloc((size_t)count_inputs(t) + 1, 1) : NULL;
  int status = !n ? NVM_OK : used ? find_chain(t, loop, n, used) : nvb_fail_memory();
  if (!status && !t->chain) {
    t->arena = nvb_arena_new();
    status = t->arena ? nvb_protect(t->arena, collect_graph, t) : nvb_fail_memory();
  }
  for (int i = 0; i < t->nparam; i++) t->nasked += t->param[i] && nvg_weak_asked(t->param[i]);
  if (!status) status = find_leaves(t, used);
  nvb_free(used);
  return status;
}
static nvg_node **nodes_of(const char *what, nvm_array *const *at, int n) {
  if (n < 0 || (n && !at)) return nvb_fail(NVM_ERR_VALUE, "[jit] %d %ss, and no list of them", n, what), NULL;
  nvg_node **r = nvb_calloc((size_t)n + 1, sizeof *r);
  if (!r) return nvb_fail_memory(), NULL;
  for (int i = 0; i < n; i++) {
    nvg_node *x = at[i] ? nva_node(at[i]) : NULL;
    if (!x) {
      if (!at[i]) nvb_fail(NVM_ERR_VALUE, "[jit] %s %d is NULL", what, i);
      while (i--) nvg_node_unref(r[i]);
      return nvb_free(r), NULL;
    }
    r[i] = nvg_node_ref(x);
  }
  return r;
}
static nvm_traced *traced_alloc(nvm_ctx *ctx) {
  nvm_traced *t = nvb_calloc(1, sizeof *t);
  if (!t) return nvb_fail_memory(), NULL;
  t->held = OWNER;
  t->lock = (nvb_lock)NVB_LOCK(VARIANTS);
  t->ctx = nva_ctx_ref(ctx);
  return t;
}
static nvg_node **refs_of(nvg_node *const *at, int n) {
  nvg_node **r = nvb_calloc((size_t)n + 1, sizeof *r);
  if (!r) nvb_fail_memory();
  for (int i = 0; r && i < n; i++) r[i] = nvg_node_ref(at[i]);
  return r;
}
static void drop_nodes(nvg_node **at, int n) {
  for (int i = 0; at && i < n; i++) nvg_node_unref(at[i]);
  nvb_free(at);
}
/* Replaces the outputs by what is to be computed for them and for what the parameters have become. A status. */
static int add_stores(nvm_traced *t, const int *written, nvm_array *const *become, int nwritten,
                      nvm_array *const *with) {
  for (int k = 0; k < nwritten; k++)
    if (written[k] < 0 || written[k] >= t->nparam)
      return nvb_fail(NVM_ERR_VALUE, "[traced_new] the function has %d parameters, no %d", t->nparam, written[k]);
  nvg_node **whole = nodes_of("written parameter", become, nwritten), **node = NULL, **all = NULL;
  int n = 0, gpu = nva_stores_on_gpu(t->ctx, written, nwritten, with);
  int status = whole ? nva_stores_new(&t->stores, gpu, t->param, written, whole, nwritten, t->out, t->nout, &node, &n)
                     : nvb_status();
  if (!status && !(all = refs_of(node, n))) status = nvb_status();
  if (!status) {
    drop_nodes(t->out, t->nout);
    t->out = all, t->nout = n;
    t->nviews = nva_stores_parts(t->stores) ? 0 : n;
  }
  nvb_free(node);
  drop_nodes(whole, nwritten);
  return status;
}
int nvm_traced_new(nvm_traced **out, nvm_ctx *ctx, nvm_array *const *params, int nparam, nvm_array *const *outs,
                   int nout) {
  return nvm_traced_new_writing(out, ctx, params, nparam, outs, nout, NULL, NULL, 0, NULL);
}
int nvm_traced_new_writing(nvm_traced **out, nvm_ctx *ctx, nvm_array *const *params, int nparam, nvm_array *const *outs,
                           int nout, const int *written, nvm_array *const *become, int nwritten,
                           nvm_array *const *with) {
  if (!out || !ctx) return nva_missing("traced_new", out ? "context" : "pointer for the function");
  *out = NULL;
  if (nwritten && (!written || !become)) return nva_missing("traced_new", "list of written parameters");
  nvm_traced *t = traced_alloc(ctx);
  if (!t) return nvb_status();
  if ((t->param = nodes_of("parameter", params, nparam))) t->nparam = nparam;
  if (t->param && (t->out = nodes_of("output", outs, nout))) t->nout = t->nviews = nout;
  int n, status = t->out ? NVM_OK : nvb_status();
  if (!status && nwritten) status = add_stores(t, written, become, nwritten, with);
  for (int i = 0; i < t->nout && !status; i++) /* an integer that fits no dtype cannot become an array */
    if (t->out[i]->weak && nvg_weak_kind(t->out[i]) == 'h') status = nvg_weak_fits("jit", t->out[i], NVM_I64);
  t->cap = nva_trace_inputs(&t->ncap);
  t->drawn = nva_trace_draws(&t->ndrawn);
  if (!status && (t->put = nvg_device_join("jit", t->out, t->nout)) < 0) status = nvb_status();
  nva_loop *const *loop = nva_trace_loops(&n);
  if (!status) status = finish_trace(t, loop, n);
  if (status) nvm_traced_free(t);
  else *out = t;
  return status;
}
int nva_traced_over(nvm_traced **out, nvm_ctx *ctx, nvg_node *const *param, int nparam, nvg_node *const *outs, int nout,
                    int nviews, nva_loop *const *loop, int n) {
  nvm_traced *t = *out = traced_alloc(ctx);
  if (!t) return nvb_status();
  if ((t->param = refs_of(param, nparam))) t->nparam = nparam;
  if (t->param && (t->out = refs_of(outs, nout))) t->nout = nout, t->nviews = nviews;
  int status = t->out ? finish_trace(t, loop, n) : nvb_status();
  if (status) nvm_traced_free(t), *out = NULL;
  return status;
}
static void variant_free(variant *v) {
  nva_program_unref(v->program);
  nvb_free(v);
}
static void free_retired(nvm_traced *t) {
  for (variant *v = t->retired, *next; v; v = next) next = v->retired, variant_free(v);
  t->retired = NULL;
}
static void release_held(nvm_traced *t, int held) {
  if (atomic_fetch_sub(&t->held, held) != held) return;
  for (variant *v = t->first, *next; v; v = next) next = v->next, variant_free(v);
  free_retired(t);
  for (int i = 0; i < t->nleaf; i++) nvg_node_unref(t->leaf[i]);
  for (int i = 0; i < t->nparam; i++) nvg_node_unref(t->param[i]);
  for (int i = 0; i < t->nout; i++) nvg_node_unref(t->out[i]);
  for (int i = 0; i < t->ncap; i++) nvm_array_unref(t->cap[i].array), nvg_node_unref(t->cap[i].node);
  nva_drawn_free(t->drawn, t->ndrawn);
  nva_chain_free(t->chain);
  nva_stores_free(t->stores);
  nvb_arena_free(t->arena);
  nvb_free(t->donates), nvb_free(t->leaf), nvb_free(t->source), nvb_free(t->param), nvb_free(t->out), nvb_free(t->cap);
  nva_ctx_unref(t->ctx);
  nvb_free(t);
}
nvm_traced *nva_traced_ref(nvm_traced *t) {
  atomic_fetch_add(&t->held, 1);
  return t;
}
void nva_traced_unref(nvm_traced *t) { release_held(t, 1); }
void nvm_traced_free(nvm_traced *t) {
  if (t) release_held(t, OWNER);
}

int nvm_traced_donate(nvm_traced *t, int param) {
  if (!t) return nva_missing("traced_donate", "function");
  if (param < 0 || param >= t->nparam)
    return nvb_fail(NVM_ERR_VALUE, "[traced_donate] the function has %d parameters, no %d", t->nparam, param);
  if (!t->donates && !(t->donates = nvb_calloc((size_t)t->nparam, 1))) return nvb_fail_memory();
  t->donates[param] = 1;
  return NVM_OK;
}

static int takes_numbers(const nvm_traced *t, nvm_array *const *in) {
  for (int i = 0; i < t->nparam && t->nasked; i++)
    if (in[i] && nvg_weak_asked(t->param[i]) && !nvg_weak_takes(t->param[i], nva_number_bits(in[i]))) return 0;
  return 1;
}
int nvm_traced_accepts(const nvm_traced *t, nvm_array *const *in) {
  return !t || !in || (takes_numbers(t, in) && (!t->stores || nva_stores_suit(t->stores, t->ctx, in)));
}

nvm_array *nvm_traced_captured(const nvm_traced *t, int i) {
  return t && i >= 0 && i < t->ncap ? t->cap[i].array : NULL;
}

/* ---- calling */
/* The facts of leaf i that planning depends on, beside its strides: bit 0 alignment to 16 bytes, bit 1 donated, bit 2
   extreme. given: bit i says that leaf i may be written to (leaves below 64). */
static int64_t facts_of(const nvm_traced *t, const nvg_value *v, uint64_t given, int i) {
  int extreme = t->calls && t->leaf[i]->weak && nvg_is_extreme(t->leaf[i]->aval->dtype, v->data);
  return ((uintptr_t)v->data % 16 == 0) | (int64_t)(i < 64 ? given >> i & 1 : 0) << 1 | extreme << 2;
}

static int is_matching(const variant *v, const nvm_traced *t, int dev, nvg_value *const *leaf, uint64_t given) {
  const int64_t *s = v->sig;
  if (v->dev != dev || v->settings != nvb_settings_version() || nva_program_outdated(v->program)) return 0;
  for (int i = 0; i < t->nleaf; i++) {
    int rank = t->leaf[i]->aval->rank;
    for (int d = 0; d < rank; d++)
      if (*s++ != leaf[i]->stride[d]) return 0;
    if (*s++ != facts_of(t, leaf[i], given, i)) return 0;
  }
  return 1;
}
static void set_strides(nvg_graph *g, const int64_t *sig) {
  for (int i = 0; i < g->nleaf; i++) {
    g->leaf[i].stride = sig;
    sig += g->leaf[i].rank;
    g->leaf[i].align16 = *sig & 1;
    g->leaf[i].donated = *sig >> 1 & 1;
    g->leaf[i].extreme = *sig++ >> 2 & 1;
  }
}
/* Plans the traced graph for leaves laid out like these values. Returns a status. */
static int variant_new(nvm_traced *t, int dev, nvg_value *const *leaf, uint64_t given, variant **out) {
  variant *v = nvb_calloc(1, sizeof *v + sizeof(int64_t) * (size_t)t->nsig);
  nvb_arena *a = nvb_arena_new();
  nvg_graph *g = NULL;
  int status = v && a ? graph_of(t, a, &g) : nvb_fail_memory();
  int64_t *s = v ? v->sig : NULL;
  for (int i = 0; !status && i < g->nleaf; i++) {
    memcpy(s, leaf[i]->stride, sizeof(int64_t) * (size_t)g->leaf[i].rank);
    s += g->leaf[i].rank;
    *s++ = facts_of(t, leaf[i], given, i);
  }
  if (!status) {
    set_strides(g, v->sig);
    v->settings = nvb_settings_version();
    v->dev = dev;
    nvb_failure before; /* a plan may succeed after vetoes, whose messages must not remain */
    nvb_failure_keep(&before);
    nvb_arena_ask(a);
    status = nva_program_for(&v->program, a, g, dev, leaf, t->nviews);
    if (!status) nvb_failure_put_back(&before);
  }
  nvb_arena_free(a);
  if (status && v) nva_program_unref(v->program), nvb_free(v);
  else *out = v;
  return status;
}
/* Evicts the least recently used variant, under the lock; it is freed when no other call can be reading it. */
static void retire_oldest(nvm_traced *t) {
  variant *_Atomic *oldest = &t->first;
  for (variant *_Atomic *at = &t->first; *at; at = &(*at)->next)
    if ((*at)->used < (*oldest)->used) oldest = at;
  variant *v = *oldest;
  *oldest = v->next;
  v->retired = t->retired;
  t->retired = v;
  t->nvariant--;
  if ((t->held & (OWNER - 1)) == 1) free_retired(t);
}
static variant *variant_find(nvm_traced *t, int dev, nvg_value *const *leaf, uint64_t given, int *status) {
  *status = NVM_OK;
  for (variant *v = t->first; v; v = v->next)
    if (is_matching(v, t, dev, leaf, given)) return v;
  variant *made = NULL;
  if ((*status = nvb_lock_wait(&t->lock))) return NULL;
  for (variant *v = t->first; v && !made; v = v->next)
    if (is_matching(v, t, dev, leaf, given)) made = v;
  if (!made && !(*status = variant_new(t, dev, leaf, given, &made))) {
    if (t->nvariant == KEPT) retire_oldest(t);
    made->next = t->first;
    t->first = made;
    t->nvariant++;
  }
  nvb_lock_give(&t->lock);
  return made;
}
/* One call: the values of its leaves on the device that runs it, and of its results. */
typedef struct call {
  nvm_traced *t;
  nvg_value **leaf, **out, **moved; /* moved: values that are freed after the call */
  /* counted; the nodes of captured arrays during the call, since other threads may write to these arrays */
  nvg_node **held;
  int nheld;
  nvg_value *spare; /* memory for values of weak scalars, whose bits are in their nodes or in `drawn` */
  int64_t *drawn;   /* the state of the generators that the function draws from */
  int put;          /* the device that its arguments or the trace were put on; 0: none */
  int prepares;     /* it is planned and compiled, and not run */
} call;

/* Gets the node of argument i and checks that the function was traced for its dtype and shape. Returns a status. */
static int accept_argument(call *c, nvg_node **node, nvm_array *a, const nvg_node *want, int i) {
  if (!a) return nva_null("call", "argument");
  if (a == &nva_none) return nvb_fail(NVM_ERR_VALUE, "[call] argument %d is absent (nvm_none)", i);
  if (a->ctx != c->t->ctx) return nva_two_contexts("call");
  nvg_node *n = *node = i < c->t->nparam ? nva_node(a) : nva_node_ref(a);
  if (!n) return nvb_status();
  if (i >= c->t->nparam) c->held[c->nheld++] = n;
  if (n->aval != want->aval) {
    char shape[2][NVG_SHAPE_TEXT];
    return nvb_fail(NVM_ERR_VALUE, "[call] argument %d is %s %s, the function was traced for %s %s", i,
                    nvg_dtype_name(n->aval->dtype), nvg_shape_text(shape[0], n->aval->rank, n->aval->shape),
                    nvg_dtype_name(want->aval->dtype), nvg_shape_text(shape[1], want->aval->rank, want->aval->shape));
  }
  return NVM_OK;
}
static int value_for(call *c, nvg_value **v, nvm_array *a, const nvg_node *want, int i) {
  nvg_node *n;
  int status = accept_argument(c, &n, a, want, i);
  if (status) return status;
  if (want->weak && n->weak && n->op == NVG_OP_CONST) {
    *c->spare = (nvg_value){ .data = (char *)n->attr };
    *v = c->spare++;
    return NVM_OK;
  }
  if (n->device && n->device != c->put) {
    char here[16], there[16];
    if (c->put)
      return nvb_fail(NVM_ERR_VALUE, "[call] argument %d was put on %s, others on %s; move one with to_device", i,
                      nvg_device_name(here, n->device), nvg_device_name(there, c->put));
    c->put = n->device;
  }
  if (!atomic_load(&n->value)) status = nva_eval(a->ctx, &n, 1);
  *v = atomic_load(&n->value);
  return status ? status : nva_check_borrowed(*v, n->aval);
}
static int bind_arguments(call *c, nvm_array *const *in) {
  nvm_traced *t = c->t;
  int status = NVM_OK;
  for (int i = 0; i < t->nleaf && !status; i++) {
    int s = t->source[i], state = s - t->nparam - t->ncap;
    if (s < 0) c->leaf[i] = atomic_load(&t->leaf[i]->value);
    else if (state >= 0) *(c->leaf[i] = c->spare++) = (nvg_value){ .data = (char *)&c->drawn[state] };
    else status = value_for(c, &c->leaf[i], s < t->nparam ? in[s] : t->cap[s - t->nparam].array, t->leaf[i], s);
  }
  for (int i = 0; i < t->nidle && !status; i++) {
    int s = t->source[t->nleaf + i];
    nvg_node *unread;
    status = accept_argument(c, &unread, in[s], t->param[s], s);
  }
  return status;
}
static int transfer_inputs(call *c, int dev) {
  int status = NVM_OK;
  for (int i = 0; i < c->t->nleaf && !status; i++) {
    const nvg_node *leaf = c->t->leaf[i];
    int where = leaf->weak ? NVM_DEVICE_CPU : dev;
    if (c->leaf[i]->device + 1 != where) status = nva_transfer(&c->leaf[i], leaf->aval, where, &c->moved[i]);
  }
  return status;
}
/* The leaves, as bits, that are donated arguments whose memory nothing else holds. */
static uint64_t find_donated(const call *c, nvm_array *const *in) {
  const nvm_traced *t = c->t;
  uint64_t bits = 0;
  for (int i = 0; i < t->nleaf && i < 64 && t->donates; i++) {
    int s = t->source[i];
    if (s < 0 || s >= t->nparam || !t->donates[s] || t->leaf[i]->weak || !nva_is_alone(c->leaf[i])) continue;
    int alone = (uint32_t)atomic_load(&in[s]->node->refs) == 1 && !in[s]->base;
    for (int k = 0; k < t->nleaf; k++) alone &= k == i || c->leaf[k] != c->leaf[i];
    bits |= (uint64_t)alone << i;
  }
  return bits;
}
static int count_outputs(const nvm_traced *t) { return t->stores ? nva_stores_outputs(t->stores) : t->nout; }
static void drop_results(const nvm_traced *t, nvm_array **out) {
  for (int i = 0; i < count_outputs(t); i++) nvm_array_unref(out[i]), out[i] = NULL;
}
static int wrap_results(call *c, nvm_array **out) {
  const nvm_traced *t = c->t;
  int status = NVM_OK;
  for (int o = 0; o < count_outputs(t) && t->stores; o++) out[o] = NULL;
  for (int i = 0, o = 0; i < t->nout; i++, o++) {
    o = t->stores ? nva_stores_next(t->stores, o) : i;
    nvg_node *n = status ? (nvg_value_free(c->out[i]), NULL) : nvg_leaf_new(nvg_aval_ref(t->out[i]->aval), c->out[i]);
    if (n) n->device = (uint8_t)c->put;
    out[o] = n ? nva_array_new(t->ctx, n) : NULL;
    if (!out[o] && !status) status = nvb_status() ? nvb_status() : NVM_ERR_MEMORY;
  }
  if (status) drop_results(t, out);
  return status;
}
static int run_chain(const nvm_traced *t, int dev, nvg_value *const *leaf, nvg_value **out) {
  nvg_value **param = nvb_calloc((size_t)count_inputs(t) + 1, sizeof *param);
  if (!param) return nvb_fail_memory();
  for (int i = 0; i < t->nleaf; i++) param[t->source[i]] = leaf[i];
  int status = nva_chain_run(t->chain, dev, param, out);
  nvb_free(param);
  return status;
}
/* Runs the function for these values of its leaves. Returns a status. */
static int run_values(nvm_traced *t, int dev, nvg_value *const *leaf, uint64_t given, nvg_value **out) {
  int status;
  if (t->chain) return run_chain(t, dev, leaf, out);
  variant *v = variant_find(t, dev, leaf, given, &status);
  if (status || (status = nvb_interrupted())) return status;
  atomic_store_explicit(&v->used, nva_evaluations(), memory_order_relaxed);
  return nva_program_run(v->program, leaf, out);
}
/* Makes the program and waits for its code. */
static int prepare_values(nvm_traced *t, int dev, nvg_value *const *leaf, uint64_t given) {
  int status;
  if (!variant_find(t, dev, leaf, given, &status)) return status;
  nvd_warm_wait();
  return nvb_interrupted();
}
static int run_call(call *c, nvm_array *const *in, nvm_array **out) {
  int status = bind_arguments(c, in);
  if (status) return status;
  if (!c->put) c->put = nva_default_device();
  int dev = c->put ? c->put : nva_ctx_device(c->t->ctx);
  if ((status = transfer_inputs(c, dev))) return status;
  if (c->prepares) return c->t->nout ? prepare_values(c->t, dev, c->leaf, find_donated(c, in)) : NVM_OK;
  if (c->t->nout) status = run_values(c->t, dev, c->leaf, find_donated(c, in), c->out);
  int refused = status == NVM_ERR_MEMORY || status == NVM_ERR_UNSUPPORTED; /* then no memory was written */
  for (int i = 0; i < c->t->nparam && c->t->donates && !refused; i++)
    if (c->t->donates[i] && !in[i]->node->weak && !(in[i]->node->flags & NVG_INVALIDATED)) nva_invalidate(in[i]);
  return status ? status : wrap_results(c, out);
}
static void put_back(void *p, const void *own) { /* frees p, unless it is the caller's own array */
  if (p != own) nvb_free(p);
}
/* Runs a call that already holds a reference to t; prepares: it is only planned and compiled, and out is NULL. */
static int call_held(nvm_traced *t, nvm_array *const *in, nvm_array **out, int prepares) {
  enum { FEW = 32, WEAK = 4, HELD = 8, WORDS = 2 * NVG_STATE };
  nvg_value *few[FEW], **at = few, scalars[WEAK], *spare = scalars;
  nvg_node *some[HELD], **held = some;
  int64_t words[WORDS], *drawn = words;
  int n = 2 * t->nleaf + t->nout;
  if (n > FEW) at = nvb_alloc(sizeof *at * (size_t)n);
  if (t->nweak > WEAK) spare = nvb_alloc(sizeof *spare * (size_t)t->nweak);
  if (t->ncap > HELD) held = nvb_alloc(sizeof *held * (size_t)t->ncap);
  if (NVG_STATE * t->ndrawn > WORDS) drawn = nvb_alloc(sizeof *drawn * NVG_STATE * (size_t)t->ndrawn);
  if (!at || !spare || !held || !drawn) {
    put_back(at, few), put_back(spare, scalars), put_back(held, some), put_back(drawn, words);
    return nvb_fail_memory();
  }
  call c = { .t = t,
             .moved = at,
             .leaf = at + t->nleaf,
             .out = at + 2 * t->nleaf,
             .spare = spare,
             .held = held,
             .drawn = drawn,
             .put = t->put,
             .prepares = prepares };
  if (prepares) memset(drawn, 0, sizeof *drawn * NVG_STATE * (size_t)t->ndrawn);
  else nva_drawn_take(t->drawn, t->ndrawn, drawn);
  for (int i = 0; i < t->nleaf; i++) c.moved[i] = NULL;
  unsigned fp = nvb_fp_enter();
  nvb_interrupt_enter();
  int status = run_call(&c, in, out);
  if (!status && (status = nvb_lock_order_kept()) && !prepares) drop_results(t, out);
  nvb_interrupt_leave();
  nvb_fp_leave(fp);
  for (int i = 0; i < t->nleaf; i++)
    if (c.moved[i]) nvg_value_free(c.moved[i]);
  while (c.nheld) nvg_node_unref(c.held[--c.nheld]);
  put_back(at, few), put_back(spare, scalars), put_back(held, some), put_back(drawn, words);
  return status;
}
/* Checks that the lists of a call with `nin` arguments and `nout` results are present. Returns a status. */
int nva_check_lists(const char *who, const void *f, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  if (!f) return nva_missing(who, "function");
  if (!in && nin) return nva_missing(who, "list of arguments");
  return out || !nout ? NVM_OK : nva_missing(who, "pointer for results");
}
int nvm_traced_call(nvm_traced *t, nvm_array *const *in, nvm_array **out) {
  int fault = nva_check_lists("traced_call", t, in, t ? t->nparam : 0, out, nvm_traced_outputs(t));
  if (fault) return fault;
  if (!takes_numbers(t, in))
    return nvb_fail(NVM_ERR_VALUE, "[call] an integer argument is not among those that the function was traced for");
  atomic_fetch_add(&t->held, 1);
  int status = call_held(t, in, out, 0);
  release_held(t, 1);
  return status;
}
int nvm_traced_compile(nvm_traced *t, nvm_array *const *in) {
  int fault = nva_check_lists("traced_compile", t, in, t ? t->nparam : 0, NULL, 0);
  if (fault) return fault;
  if (t->chain)
    return nvb_fail(NVM_ERR_UNSUPPORTED,
                    "[traced_compile] the function has loops, whose parts are compiled when they first run");
  atomic_fetch_add(&t->held, 1);
  int status = call_held(t, in, NULL, 1);
  release_held(t, 1);
  return status;
}
int nvm_traced_outputs(const nvm_traced *t) { return t ? count_outputs(t) : 0; }
int nva_traced_writes(const nvm_traced *t, int param) { return t->stores && nva_stores_write(t->stores, param); }
int nvm_traced_store(nvm_traced *t, nvm_array *const *in, const unsigned char *lent, nvm_array **out) {
  int fault = nva_check_lists("traced_store", t, in, t ? t->nparam : 0, out, nvm_traced_outputs(t));
  return fault || !t->stores ? fault : nva_stores_run(t->stores, in, lent, out);
}
/* Returns a reference to the program that ran last and copies its signature to sig; NULL if none has run. */
static nva_program *last_run_of(nvm_traced *t, int64_t *sig) {
  variant *last = NULL;
  nvb_lock_take(&t->lock);
  for (variant *v = t->first; v; v = v->next)
    if (!last || v->used > last->used) last = v;
  nva_program *p = last ? nva_program_ref(last->program) : NULL;
  if (last) memcpy(sig, last->sig, sizeof *sig * (size_t)t->nsig);
  nvb_lock_give(&t->lock);
  return p;
}
int nva_traced_describe(char **text, nvm_traced *t, int dev, const char *stage) {
  if (t->chain) return nva_chain_describe(text, t->chain, dev, stage);
  nvb_arena *a = nvb_arena_new();
  nvg_graph *g = NULL;
  int64_t *sig = nvb_calloc((size_t)t->nsig + 1, sizeof *sig);
  int status = a && sig ? graph_of(t, a, &g) : nvb_fail_memory();
  if (!status) {
    nva_program *last = last_run_of(t, sig);
    if (last) set_strides(g, sig);
    status = nva_explain_graph(text, a, g, dev, last, t->nviews, stage);
  }
  nvb_arena_free(a);
  nvb_free(sig);
  return status;
}
int nvm_traced_explain(char **text, nvm_traced *t) {
  if (!text || !t) return nva_missing("traced_explain", t ? "pointer for the text" : "function");
  *text = NULL;
  int status = nva_traced_describe(text, t, t->put ? t->put : nva_ctx_device(t->ctx), NULL);
  if (!status && t->stores) status = nva_stores_describe(text, t->stores);
  if (status) nvb_free(*text), *text = NULL;
  return status;
}
int nvm_traced_text(char **text, nvm_traced *t, const char *stage) {
  if (!text || !t || !stage)
    return nva_missing("traced_text", !t ? "function" : !stage ? "stage" : "pointer for the text");
  *text = NULL;
  if (!nva_is_stage(stage))
    return nvb_fail(NVM_ERR_VALUE, "[traced_text] there is no stage '%s'; stages are collect, graph, plan, kernel",
                    stage);
  int status = nva_traced_describe(text, t, t->put ? t->put : nva_ctx_device(t->ctx), stage);
  if (status) nvb_free(*text), *text = NULL;
  return status;
}

/* ---- calling on values, as chains and loops do */
int nva_traced_leaves(const nvm_traced *t) { return t->nleaf; }
int nva_traced_source(const nvm_traced *t, int leaf) { return t->source[leaf]; }
int nva_traced_outputs(const nvm_traced *t) { return t->nout; }
const nvg_aval *nva_traced_output(const nvm_traced *t, int i) { return t->out[i]->aval; }
int nva_traced_has_loops(const nvm_traced *t) { return t->chain != NULL; }
int nva_traced_bind(nvm_traced *t, int dev, nvg_value *const *param, nvg_value **leaf, nvg_value **moved) {
  int status = NVM_OK;
  for (int i = 0; i < t->nleaf; i++) {
    const nvg_node *n = t->leaf[i];
    int where = n->weak ? NVM_DEVICE_CPU : dev;
    moved[i] = NULL;
    leaf[i] = t->source[i] >= 0 ? param[t->source[i]] : atomic_load(&n->value);
    if (t->source[i] < 0 && !status && leaf[i]->device + 1 != where)
      status = nva_transfer(&leaf[i], n->aval, where, &moved[i]);
  }
  return status;
}
nva_program *nva_traced_program(nvm_traced *t, int dev, nvg_value *const *leaf, uint64_t given) {
  int status;
  atomic_fetch_add(&t->held, 1); /* so that the variant stays while its program gets a reference */
  variant *v = variant_find(t, dev, leaf, given, &status);
  nva_program *p = v ? nva_program_ref(v->program) : NULL;
  if (v) atomic_store_explicit(&v->used, nva_evaluations(), memory_order_relaxed);
  release_held(t, 1);
  return p;
}
int nva_traced_run(nvm_traced *t, int dev, nvg_value *const *param, nvg_value **out) {
  enum { FEW = 16 };
  nvg_value *few[2 * FEW], **leaf = t->nleaf > FEW ? nvb_alloc(2 * sizeof *leaf * (size_t)t->nleaf) : few;
  if (!leaf) return nvb_fail_memory();
  nvg_value **moved = leaf + t->nleaf;
  atomic_fetch_add(&t->held, 1);
  int status = nva_traced_bind(t, dev, param, leaf, moved);
  if (!status) status = run_values(t, dev, leaf, 0, out);
  for (int i = 0; i < t->nout && status; i++) out[i] = NULL;
  release_held(t, 1);
  for (int i = 0; i < t->nleaf; i++) nvg_value_free(moved[i]);
  if (leaf != few) nvb_free(leaf);
  return status;
}
