/* What a traced function writes to its parameters. A parameter of which little is written is stored in parts: the
   function computes what it wrote there, and after it has run, when no kernel reads the old elements any more, a call
   stores that in its argument as a write without a trace would. Any other gets its new value as a whole. Never decides
   who may see a write (write.c). */
#include "api/stores.h"
#include <string.h>
#include "api/loop.h"
#include "base/mem.h"
#include "graph/infer.h"

enum { SHARE = 4 }; /* a parameter is stored in parts if they have at most 1 / SHARE of its elements */

/* One write. value and at[].of are numbers of what a call stores, behind its results. */
typedef struct store {
  int param, value; /* value -1: a number */
  int whole;        /* the parameter becomes the value */
  nva_part to;
  const nvg_aval *part; /* counted: the dtype and shape of the part */
  uint64_t bits[2];
  int n, before;
  struct { int of, axis, message_axis; } at[NVA_INDICES];
} store;
struct nva_stores {
  int nout, nhidden; /* results; arrays behind them that a call stores */
  int *same;         /* for each result: the parameter that it is a written one of, -1: it is computed */
  int n, parts;      /* parts: some parameter is stored in parts */
  int gpu, differs;  /* made for arguments on GPUs; for others it would be another */
  store *at;
};

void nva_stores_free(nva_stores *s) {
  if (!s) return;
  for (int i = 0; i < s->n; i++) nvg_aval_unref(s->at[i].part);
  nvb_free(s->same), nvb_free(s->at);
  nvb_free(s);
}
int nva_stores_outputs(const nva_stores *s) { return s->nout + s->nhidden; }
int nva_stores_parts(const nva_stores *s) { return s->parts; }
int nva_stores_write(const nva_stores *s, int param) {
  int i = 0;
  while (i < s->n && s->at[i].param != param) i++;
  return i < s->n;
}
int nva_stores_describe(char **text, const nva_stores *s) {
  int parts = 0, of = 0;
  for (int i = 0; i < s->n; i++) {
    parts += !s->at[i].whole;
    of += !s->at[i].whole && (!i || s->at[i - 1].param != s->at[i].param);
  }
  if (!parts) return NVM_OK;
  return nva_append(text, "then %d part%s of %d argument%s stored, in place where nothing else holds %s\n", parts,
                    parts == 1 ? "" : "s", of, of == 1 ? parts == 1 ? " is" : " are" : "s are",
                    of == 1 ? "it" : "them");
}
int nva_stores_next(const nva_stores *s, int at) {
  while (at < s->nout && s->same[at] >= 0) at++;
  return at;
}

/* ---- listing */
typedef struct listing { nva_stores *s; nvg_node **node; int nnode; } listing;
static int add_hidden(listing *l, nvg_node *n) { /* returns its number */
  l->node[l->nnode++] = n;
  return l->s->nhidden++;
}
/* The writes between a parameter and what it has become, the last first; -1: other operations made it. written: grows
   by the elements of parts; those that index arrays select are stored faster than an array is made anew, however many
   they are. */
static int count_puts(const nvg_node *n, const nvg_node *param, int64_t *written) {
  int count = 0;
  for (const nva_put *p; n != param; n = p->base, count++) {
    if (!(p = nva_trace_put(n))) return -1;
    int listed = 0;
    for (int i = 0; i < p->n; i++) listed |= p->at[i].at->aval->rank;
    *written += listed ? 0 : p->n ? p->value->aval->size : p->to.size;
  }
  return count;
}
/* Can it be stored in parts? */
static int is_in_parts(const nvg_node *n, const nvg_node *param, int *count) {
  int64_t written = 0;
  *count = count_puts(n, param, &written);
  return *count >= 0 && written <= param->aval->size / SHARE;
}
static int is_on_gpu(nvm_array *a) {
  const nvg_node *n = (a->base ? a->base : a)->node;
  const nvg_value *v = atomic_load(&n->value);
  return !n->weak && (nva_device_of(a->ctx, n) != NVM_DEVICE_CPU || (v && v->device));
}
static int runs_on_gpu(nvm_ctx *ctx) {
  int dev = nva_default_device();
  return (dev ? dev : nva_ctx_device(ctx)) != NVM_DEVICE_CPU;
}
int nva_stores_on_gpu(nvm_ctx *ctx, const int *written, int nwritten, nvm_array *const *in) {
  int gpu = runs_on_gpu(ctx);
  for (int k = 0; k < nwritten && in && !gpu; k++) gpu = in[written[k]] && is_on_gpu(in[written[k]]);
  return gpu;
}
int nva_stores_suit(const nva_stores *s, nvm_ctx *ctx, nvm_array *const *in) {
  int gpu = s->differs && runs_on_gpu(ctx);
  for (int i = 0; i < s->n && s->differs && !gpu; i++) gpu = in[s->at[i].param] && is_on_gpu(in[s->at[i].param]);
  return !s->differs || gpu == s->gpu;
}
/* The value before it was broadcast, if it has one element. */
static nvg_node *unspread(nvg_node *n) {
  while ((n->op == NVG_OP_EXPAND || n->op == NVG_OP_RESHAPE) && n->in[0]->aval->size == 1) n = n->in[0];
  return n;
}
static int add_part(listing *l, store *s, const nva_put *p) {
  nvg_node *value = p->n ? p->value : unspread(p->value);
  s->value = value->op == NVG_OP_CONST ? -1 : add_hidden(l, value);
  if (s->value < 0) memcpy(s->bits, value->attr, sizeof *value->attr * (size_t)value->nattr);
  s->to = p->to;
  s->n = p->n, s->before = p->before;
  for (int i = 0; i < p->n; i++) {
    s->at[i].of = add_hidden(l, p->at[i].at);
    s->at[i].axis = p->at[i].axis, s->at[i].message_axis = p->at[i].message_axis;
  }
  s->part = nvg_aval_get(value->aval->dtype, p->to.rank, p->to.shape);
  return s->part ? NVM_OK : nvb_status();
}
/* Adds the stores of one parameter, in the order of the writes. A status. */
static int add_stores(listing *l, int param, const nvg_node *n, int count) {
  int at = l->s->n + count, status = NVM_OK;
  l->s->n = at;
  l->s->parts |= count != 0;
  for (const nva_put *p; count-- && !status; n = p->base) {
    p = nva_trace_put(n);
    l->s->at[--at].param = param;
    status = add_part(l, &l->s->at[at], p);
  }
  return status;
}
static void add_whole(listing *l, int param, nvg_node *n) {
  l->s->at[l->s->n++] = (store){ .param = param, .whole = 1, .value = add_hidden(l, n) };
}
/* Adds what is computed for the results. */
static void add_results(listing *l, const int *written, nvg_node *const *become, const int *count, int nwritten,
                        nvg_node *const *result) {
  for (int o = 0; o < l->s->nout; o++) {
    int k = 0;
    while (k < nwritten && (become[k] != result[o] || count[k] < 0)) k++;
    l->s->same[o] = k < nwritten ? written[k] : -1;
    if (k == nwritten) l->node[l->nnode++] = result[o];
  }
}
int nva_stores_new(nva_stores **out, int gpu, nvg_node *const *param, const int *written, nvg_node *const *become,
                   int nwritten, nvg_node *const *result, int nout, nvg_node ***node, int *nnode) {
  int puts = nwritten, status = NVM_OK, *count = nvb_calloc((size_t)nwritten + 1, sizeof *count);
  nva_stores *s = *out = nvb_calloc(1, sizeof *s);
  for (int k = 0; s && count && k < nwritten; k++) {
    int parts = is_in_parts(become[k], param[written[k]], &count[k]);
    s->differs |= parts;
    if (!parts || gpu) count[k] = -1;
    puts += count[k] < 0 ? 0 : count[k];
  }
  listing l = { .s = s, .node = nvb_calloc((size_t)(nout + (1 + NVA_INDICES) * puts) + 1, sizeof *l.node) };
  if (s) s->same = nvb_calloc((size_t)nout + 1, sizeof *s->same), s->at = nvb_calloc((size_t)puts + 1, sizeof *s->at);
  if (!s || !s->same || !s->at || !l.node || !count) return nvb_free(count), nvb_free(l.node), nvb_fail_memory();
  s->nout = nout, s->gpu = gpu;
  add_results(&l, written, become, count, nwritten, result);
  for (int k = 0; k < nwritten && !status; k++)
    if (count[k] < 0) add_whole(&l, written[k], become[k]);
    else status = add_stores(&l, written[k], become[k], count[k]);
  nvb_free(count);
  *node = l.node, *nnode = l.nnode;
  return status;
}

/* ---- storing */
/* Opens the indices of a store, which are checked. Close them in any case. A status. */
static int open_indices(nva_index *x, const store *w, const nvm_ctx *ctx, nvm_array *const *hidden) {
  nvm_index at[NVA_INDICES];
  int status;
  for (int i = 0; i < w->n; i++) at[i] = (nvm_index){ hidden[w->at[i].of], 0, w->at[i].axis, w->at[i].message_axis };
  if (nva_index_open(x, "setitem", ctx, w->part, w->n, at, w->before, 1, &status)) return NVM_OK;
  return status ? status : nvb_fail(NVM_ERR_STATE, "[setitem] the indices of a store have no values");
}
/* Replaces an array on a GPU by a copy in host memory. A status. */
static int bring_home(nvm_array **a) {
  const nvg_node *n = (*a)->node;
  const nvg_value *v = atomic_load(&n->value);
  nvm_array *home = v->device ? nva_leaf_over((*a)->ctx, n->aval, nva_value_copy(v, n->aval, NVM_DEVICE_CPU), 0) : *a;
  if (!home) return nvb_status();
  if (home != *a) nvm_array_unref(*a), *a = home;
  return NVM_OK;
}
static int bring_parts_home(const store *w, nvm_array **hidden) {
  int status = w->whole || w->value < 0 ? NVM_OK : bring_home(&hidden[w->value]);
  for (int i = 0; i < w->n && !status; i++) status = bring_home(&hidden[w->at[i].of]);
  return status;
}
static int check_stores(const nva_stores *s, const nvm_ctx *ctx, nvm_array **hidden) {
  int status = NVM_OK;
  for (int i = 0; i < s->nhidden && !status; i++) status = nvm_check_indices(hidden[i]);
  for (int i = 0; i < s->n && !status; i++) status = bring_parts_home(&s->at[i], hidden);
  for (int i = 0; i < s->n && !status; i++) {
    nva_index x;
    if (!s->at[i].n) continue;
    status = open_indices(&x, &s->at[i], ctx, hidden);
    nva_index_close(&x);
  }
  return status;
}
/* Makes one store: lent, in the memory that a borrows. *done 0: it cannot be made there. A status. */
static int store_one(int *done, const store *w, nvm_array *a, int lent, nvm_array *const *hidden) {
  nva_index x;
  int status = w->n ? open_indices(&x, w, a->ctx, hidden) : NVM_OK;
  nva_stored what = { .to = &w->to,
                      .at = w->n ? &x : NULL,
                      .value = w->value < 0 ? NULL : hidden[w->value],
                      .bits = w->bits,
                      .dtype = w->part->dtype };
  *done = 0;
  if (!status && lent) *done = nva_store_lent(atomic_load(&a->node->value), a->node->aval, &what);
  else if (!status) status = nva_store_part(done, a, &what);
  if (w->n) nva_index_close(&x);
  return status;
}
/* Stores a whole value. A status. */
static int store_whole(nvm_array *a, int lent, nvm_array *value) {
  if (!lent) return nvm_assign(a, value);
  nva_part all, from;
  const nvg_aval *av = a->node->aval;
  const nvg_value *to = atomic_load(&a->node->value),
                  *v = nva_value_kept(atomic_load(&value->node->value), av, NVM_DEVICE_CPU);
  if (!v) return nvb_status();
  nva_part_set(&all, av, 0, to->stride), nva_part_set(&from, av, 0, v->stride);
  nva_move_strided(to->data, all.stride, v->data, from.stride, all.rank, all.shape, all.each);
  return NVM_OK;
}
/* A copy of a's elements in row-major order, in host memory. */
static nvm_array *packed_copy(nvm_array *a) {
  nvg_node *n = nva_node(a);
  if (!n || (!atomic_load(&n->value) && nva_eval(a->ctx, &n, 1))) return NULL;
  return nva_leaf_over(a->ctx, n->aval, nva_value_copy(atomic_load(&n->value), n->aval, NVM_DEVICE_CPU), 0);
}
/* Makes the stores from number i on of one parameter in a copy, which the argument then becomes. A status. */
static int store_in_copy(const nva_stores *s, int i, nvm_array *a, int lent, nvm_array *const *hidden) {
  nvm_array *copy = packed_copy(a);
  int status = copy ? NVM_OK : nvb_status(), done = 1, param = s->at[i].param;
  for (; i < s->n && s->at[i].param == param && !status; i++) status = store_one(&done, &s->at[i], copy, 0, hidden);
  if (!status) status = store_whole(a, lent, copy);
  nvm_array_unref(copy);
  return status;
}
/* Makes the stores of the parameter that number *i is the first of, and moves on to the next one. A status. */
static int store_parameter(const nva_stores *s, int *i, nvm_array *a, int lent, nvm_array *const *hidden) {
  const store *w = &s->at[*i];
  int status = NVM_OK, done = 1, first = *i, param = w->param;
  if (w->whole) return ++*i, store_whole(a, lent, hidden[w->value]);
  for (; *i < s->n && s->at[*i].param == param && !status && done; *i += done)
    status = store_one(&done, &s->at[*i], a, lent, hidden);
  if (status || done) return status;
  status = store_in_copy(s, *i, a, lent, hidden);
  for (*i = first; *i < s->n && s->at[*i].param == param;) ++*i;
  return status;
}
/* A result that is an argument as the call has left it. NULL with a message. */
static nvm_array *share_argument(nvm_array *a, int lent) {
  if (!lent) return nvm_snapshot(a);
  const nvg_node *n = a->node;
  return nva_leaf_over(a->ctx, n->aval, nva_value_copy(atomic_load(&n->value), n->aval, NVM_DEVICE_CPU), n->device);
}
int nva_stores_run(const nva_stores *s, nvm_array *const *in, const uint8_t *lent, nvm_array **out) {
  for (int i = 0; i < s->n; i++)
    if (!in[s->at[i].param]) return nva_null("traced_store", "argument that is written");
  int status = s->n ? check_stores(s, in[s->at[0].param]->ctx, out + s->nout) : NVM_OK;
  for (int i = 0; i < s->n && !status;) {
    int param = s->at[i].param;
    status = store_parameter(s, &i, in[param], lent && lent[param], out + s->nout);
  }
  for (int o = 0; o < s->nout && !status; o++)
    if (s->same[o] >= 0 && !(out[o] = share_argument(in[s->same[o]], lent && lent[s->same[o]]))) status = nvb_status();
  return status;
}
