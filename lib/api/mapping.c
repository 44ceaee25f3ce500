/* Loops and draws of a function over a batch. A carry has the batch in front if it depends on the batch, which is found
   by tracing the body until no further carry does. Where the elements take different numbers of steps, or different
   branches, all are computed, and those that are done keep their values: their positions in arrays are not read (the
   mask). Never takes a step itself. */
#include "api/mapping.h"
#include <string.h>
#include "base/mem.h"
#include "graph/infer.h"

/* ---- what stands for what */
int nva_mapping_add(nva_mapping *m, const nvg_node *placeholder, nvg_node *by, int batched) {
  if (!by) return nvb_status();
  if (m->n == m->cap) {
    nvg_stand *at = nvb_realloc(m->stand, sizeof *at * (size_t)(2 * m->cap + 8));
    if (!at) return nvb_fail_memory();
    m->stand = at;
    m->cap = 2 * m->cap + 8;
  }
  m->stand[m->n++] = (nvg_stand){ nvg_node_ref((nvg_node *)placeholder), nvg_node_ref(by), batched };
  return NVM_OK;
}
void nva_mapping_end(nva_mapping *m) {
  for (int i = 0; i < m->n; i++) nvg_node_unref((nvg_node *)m->stand[i].placeholder), nvg_node_unref(m->stand[i].by);
  nvb_free(m->stand);
  nvg_node_unref(m->mask);
  *m = (nva_mapping){ 0 };
}
int nva_map_nodes(nvg_node **out, uint8_t *batched, nvg_node *const *of, int n, const nva_mapping *m) {
  nvg_batch b = { m->stand, m->n, m->size, m->ctx->default_float, m->mask };
  return nvg_batch_nodes(out, batched, of, n, &b);
}
nvg_node *nva_move_axis(nvm_ctx *ctx, nvg_node *n, int from, int to) {
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
nvg_node *nva_spread(const nva_mapping *m, nvg_node *n, int batched) {
  int64_t shape[NVM_MAX_RANK + 1] = { m->size };
  if (!n || batched) return n;
  int rank = n->aval->rank;
  if (rank) memcpy(shape + 1, n->aval->shape, sizeof *shape * (size_t)rank);
  nvg_attr to = { .name = "shape", .kind = 'I', .is = shape, .n = rank + 1 };
  nvg_node *r = NULL;
  if (rank < NVM_MAX_RANK) r = nvg_apply(NVG_OP_BROADCAST_TO, &n, 1, &to, 1, m->ctx->default_float);
  else nvb_fail(NVM_ERR_VALUE, "[vmap] an array of %d dimensions has none left for the batch", rank);
  nvg_node_unref(n);
  return r;
}

/* ---- lists of mapped nodes */
typedef struct values { nvg_node **at; uint8_t *batched; int n; } values; /* at: counted, or NULL */
static int values_new(values *v, int n) {
  *v = (values){ nvb_calloc((size_t)n + 1, sizeof *v->at), nvb_calloc((size_t)n + 1, 1), n };
  return v->at && v->batched ? NVM_OK : nvb_fail_memory();
}
static void values_free(values *v) {
  for (int i = 0; v->at && i < v->n; i++) nvg_node_unref(v->at[i]);
  nvb_free(v->at), nvb_free(v->batched);
  *v = (values){ 0 };
}
static int map_values(values *v, const nva_mapping *m, nvg_node *const *of, int n) {
  int status = values_new(v, n);
  return status ? status : nva_map_nodes(v->at, v->batched, of, n, m);
}
static void free_arrays(nvm_array **a, int n) {
  for (int i = 0; a && i < n; i++) nvm_array_unref(a[i]);
  nvb_free(a);
}

/* ---- a loop on its way */
typedef struct mapped {
  nva_mapping *m;
  const nva_loop *of;
  const nva_loop_source *src;
  nvg_call call;     /* owns nodes that are made */
  values operand;    /* what its operands have become */
  nvm_array **array; /* counted: these as arrays, which the functions capture */
  nvm_array *mask;   /* counted: the mask as an array; NULL: none */
  uint8_t *flag;     /* for each carry, or result of a cond, whether it has the batch */
  int differ;        /* elements take different numbers of steps, or branches */
  nvm_loop *loop;    /* its traces are open */
} mapped;
static int first_capture(const mapped *w) { return w->of->nhead + w->of->ncarry + w->of->nx; }
static nvg_node *carry_node(const mapped *w, int k) { return w->operand.at[w->of->nhead + k]; }
static int carry_batched(const mapped *w, int k) { return w->operand.batched[w->of->nhead + k]; }

static int begin_loop(mapped *w, nva_mapping *m, const nva_loop *l) {
  int n = nva_loop_operands(l), nflag = l->nresult > l->ncarry ? l->nresult : l->ncarry;
  *w = (mapped){ .m = m, .of = l, .src = l->source };
  w->call = (nvg_call){ .op = NVG_OP_WHERE, .default_float = m->ctx->default_float };
  w->call.own = w->call.inl, w->call.cap = sizeof w->call.inl / sizeof *w->call.inl;
  if (!l->source) return nvb_fail(NVM_ERR_INTERNAL, "[vmap] the functions of a %s are lost", nva_loop_name(l));
  int status = map_values(&w->operand, m, l->operand, n);
  if (status) return status;
  if (!(w->array = nvb_calloc((size_t)n + 1, sizeof *w->array)) || !(w->flag = nvb_calloc((size_t)nflag + 1, 1)))
    return nvb_fail_memory();
  for (int i = 0; i < n; i++)
    if (!(w->array[i] = nva_array_new(m->ctx, nvg_node_ref(w->operand.at[i])))) return nvb_status();
  if (m->mask && !(w->mask = nva_array_new(m->ctx, nvg_node_ref(m->mask)))) return nvb_status();
  return NVM_OK;
}
static void end_loop(mapped *w) {
  nvm_loop_free(w->loop);
  nvg_call_end(&w->call);
  free_arrays(w->array, w->array ? nva_loop_operands(w->of) : 0);
  nvm_array_unref(w->mask);
  values_free(&w->operand);
  nvb_free(w->flag);
}
typedef struct needs { const nva_loop_source *src; int f; uint8_t *loop; } needs; /* loop: which loops f needs */
static void mark_loops(nvb_arena *a, const needs *w, nvg_node *const *root, int n) {
  const nvg_graph *g = nvg_collect(a, root, n, NULL);
  for (int i = 0; i < g->nleaf; i++)
    for (int k = 0; k < w->src->ninner; k++)
      for (int r = 0; r < w->src->inner[k]->nresult; r++) w->loop[k] |= w->src->inner[k]->result[r] == g->leaf_node[i];
}
static void find_needs(nvb_arena *a, void *arg) {
  const needs *w = arg;
  mark_loops(a, w, w->src->out[w->f], w->src->nout[w->f]);
  for (int k = w->src->ninner; k-- > 0;)
    if (w->loop[k]) mark_loops(a, w, w->src->inner[k]->operand, nva_loop_operands(w->src->inner[k]));
}
/* Maps the loops that function f needs. */
static int map_inner(nva_mapping *in, const mapped *w, int f) {
  const nva_loop_source *s = w->src;
  if (!s->ninner) return NVM_OK;
  needs need = { s, f, nvb_calloc((size_t)s->ninner, 1) };
  nvb_arena *a = need.loop ? nvb_arena_new() : NULL;
  int status = a ? nvb_protect(a, find_needs, &need) : nvb_fail_memory();
  for (int k = 0; k < s->ninner && !status; k++)
    if (need.loop[k]) status = nva_map_loop(in, s->inner[k]);
  nvb_arena_free(a);
  nvb_free(need.loop);
  return status;
}
/* Function f with these parameters (NULL: one that it has not), in the trace that is open. mask: NULL for that of the
   loop. A status; the caller ends `in`. */
static int enter(nva_mapping *in, mapped *w, int f, const values *p, nvg_node *mask) {
  const nva_loop_source *s = w->src;
  int status = NVM_OK;
  *in = (nva_mapping){ .ctx = w->m->ctx, .size = w->m->size };
  for (int k = 0; k < s->nparam && !status; k++)
    if (p->at[k]) status = nva_mapping_add(in, s->param[k], p->at[k], p->batched[k]);
  for (int k = 0, i = first_capture(w); k < s->ncap && !status; k++, i++)
    status = nva_mapping_add(in, s->cap[k], nva_node(w->array[i]), w->operand.batched[i]);
  if (!mask && w->mask && !status && !(mask = nva_node(w->mask))) status = nvb_status();
  in->mask = mask ? nvg_node_ref(mask) : NULL;
  return status ? status : map_inner(in, w, f);
}

/* ---- what depends on the batch */
/* A placeholder like n, without its first dimension if `row`, and with the batch in front of it if `wide`. */
static nvg_node *placeholder_of(const mapped *w, const nvg_node *n, int batched, int row, int wide) {
  int64_t shape[NVM_MAX_RANK + 1] = { w->m->size };
  int skip = (batched != 0) + row, rank = n->aval->rank - skip;
  if (rank > 0) memcpy(shape + 1, n->aval->shape + skip, sizeof *shape * (size_t)rank);
  nvg_node *r = nvg_leaf_new(nvg_aval_get(n->aval->dtype, rank + wide, shape + !wide), NULL);
  if (r) r->device = n->device;
  return r;
}
static int trial_parameters(values *p, const mapped *w) {
  const nva_loop *l = w->of;
  int status = values_new(p, w->src->nparam);
  if (status) return status;
  p->at[0] = nvg_weak_parameter('i', 0);
  for (int i = 1; i < p->n; i++) {
    int at = l->nhead + i - 1, row = i > l->ncarry, is = w->operand.batched[at];
    p->batched[i] = (uint8_t)(row || l->kind == NVM_COND ? is : w->flag[i - 1]);
    p->at[i] = placeholder_of(w, w->operand.at[at], is, row, p->batched[i]);
  }
  for (int i = 0; i < p->n; i++)
    if (!p->at[i]) return nvb_status();
  return NVM_OK;
}
/* Which outputs of function f depend on the batch, if the carries do that have a flag. A trace of it is dropped. */
static int try_function(values *out, mapped *w, int f) {
  nva_mapping in = { 0 };
  values p = { 0 };
  int status = nva_trace_push(0);
  if (status) return status;
  status = trial_parameters(&p, w);
  if (!status) status = enter(&in, w, f, &p, NULL);
  if (!status) status = map_values(out, &in, w->src->out[f], w->src->nout[f]);
  nva_mapping_end(&in);
  values_free(&p);
  nva_trace_pop();
  return status;
}
static int is_passed(const mapped *w, int f, int k) { return w->src->out[f][k] == w->src->param[1 + k]; }
static int find_flags(mapped *w) {
  const nva_loop *l = w->of;
  int body = l->kind == NVM_WHILE_LOOP, status = NVM_OK, changed = 1;
  for (int k = 0; k < l->ncarry; k++) w->flag[k] = (uint8_t)carry_batched(w, k);
  while (changed && !status) {
    values out = { 0 };
    changed = 0;
    if (body && !(status = try_function(&out, w, 0))) w->differ = out.batched[0];
    values_free(&out);
    if (!status) status = try_function(&out, w, body);
    for (int k = 0; k < l->ncarry && !status; k++) {
      int is = w->flag[k] || out.batched[k] || (w->differ && !is_passed(w, body, k));
      changed |= is != w->flag[k];
      w->flag[k] = (uint8_t)is;
    }
    values_free(&out);
  }
  return status;
}
static int find_branch_flags(mapped *w) {
  int status = NVM_OK;
  for (int f = 0; f < 2 && !status; f++) {
    values out = { 0 };
    status = try_function(&out, w, f);
    for (int i = 0; i < out.n && !status; i++) w->flag[i] |= out.batched[i];
    values_free(&out);
  }
  return status;
}

/* ---- opening and closing the new loop */
static int set_operand(mapped *w, int i, nvg_node *n) { /* takes n */
  nvm_array *a = nva_array_new(w->m->ctx, n);
  if (!a) return nvb_status();
  nvm_array_unref(w->array[i]);
  w->array[i] = a;
  return NVM_OK;
}
/* Carries with a flag get the batch, and what rows are taken of has it behind its rows. */
static int place_batch(mapped *w) {
  const nva_loop *l = w->of;
  int status = NVM_OK;
  for (int k = 0; k < l->ncarry && !status && l->kind != NVM_COND; k++)
    if (w->flag[k] && !carry_batched(w, k))
      status = set_operand(w, l->nhead + k, nva_spread(w->m, nvg_node_ref(carry_node(w, k)), 0));
  for (int i = l->nhead + l->ncarry; i < first_capture(w) && !status; i++)
    if (w->operand.batched[i])
      status = set_operand(w, i, nva_move_axis(w->m->ctx, nvg_node_ref(w->operand.at[i]), 0, 1));
  return status;
}
static int open_loop(mapped *w) {
  const nva_loop *l = w->of;
  int status = place_batch(w);
  nvm_loop_options o = { .version = NVM_LOOP_OPTIONS_VERSION, .kind = l->kind, .length = l->length };
  o.reverse = l->reverse;
  o.xs = w->array + l->nhead + l->ncarry, o.nx = l->nx;
  if (l->kind == NVM_FORI_LOOP) o.lower = w->array[0], o.upper = w->array[1];
  if (l->kind == NVM_COND) o.pred = w->array[0];
  return status ? status : nvm_loop_open(&w->loop, w->m->ctx, &o, w->array + l->nhead, l->ncarry);
}
/* The parameters that the present function of the new loop has. */
static int parameters_of(values *p, mapped *w) {
  const nva_loop *l = w->of;
  nvm_array *const *in;
  int n, status = nvm_loop_inputs(&in, &n, w->loop);
  if (!status) status = values_new(p, w->src->nparam);
  int first = l->kind != NVM_FORI_LOOP;
  for (int i = 0; i < n && !status; i++) {
    nvg_node *x = nva_node(in[i]);
    int k = first + i - 1;
    if (!x) return nvb_status();
    p->at[k + 1] = nvg_node_ref(x);
    int carries = k < l->ncarry && l->kind != NVM_COND;
    if (k >= 0) p->batched[k + 1] = carries ? w->flag[k] : w->operand.batched[l->nhead + k];
  }
  return status;
}
/* Gives the new loop the outputs of its present function; those of a carry, or result, with a flag get the batch. */
static int give_outputs(mapped *w, values *v, int nflag) {
  nvm_array **a = nvb_calloc((size_t)v->n + 1, sizeof *a);
  int status = a ? NVM_OK : nvb_fail_memory();
  for (int i = 0; i < v->n && !status; i++) {
    if (i < nflag && w->flag[i]) {
      v->at[i] = nva_spread(w->m, v->at[i], v->batched[i]);
      v->batched[i] = 1;
    }
    if (!v->at[i] || !(a[i] = nva_array_new(w->m->ctx, nvg_node_ref(v->at[i])))) status = nvb_status();
  }
  if (!status) status = nvm_loop_outputs(w->loop, a, v->n);
  free_arrays(a, a ? v->n : 0);
  return status;
}
/* Ends the new loop, whose results stand for those of the old one. ys: NULL, or which of the results behind the carries
   have the batch, behind their rows. */
static int close_loop(mapped *w, const uint8_t *ys) {
  const nva_loop *l = w->of;
  nvm_array **out = nvb_calloc((size_t)l->nresult + 1, sizeof *out);
  int status = out ? nvm_loop_close(w->loop, out) : nvb_fail_memory();
  for (int i = 0; i < l->nresult && !status; i++) {
    nvg_node *n = nva_node(out[i]);
    int is_y = ys && i >= l->ncarry, batched = is_y ? ys[i] : w->flag[i];
    n = n && is_y && batched ? nva_move_axis(w->m->ctx, nvg_node_ref(n), 1, 0) : nvg_node_ref(n);
    status = nva_mapping_add(w->m, l->result[i], n, batched);
    nvg_node_unref(n);
  }
  free_arrays(out, out ? l->nresult : 0);
  return status;
}

/* ---- masks */
static nvg_node *both(mapped *w, nvg_node *a, nvg_node *b) { return nvg_x2(&w->call, NVG_OP_LOGICAL_AND, a, b); }
static nvg_node *any_of(mapped *w, nvg_node *a) { return nvg_xreduce(&w->call, NVG_OP_ANY, a, 1, 0); }
/* `is`, a bool of each element, where the loop is computed at all. NULL with a message. */
static nvg_node *under_mask(mapped *w, nvg_node *is) {
  nvg_node *mask = w->mask ? nva_node(w->mask) : NULL;
  return w->mask ? mask ? both(w, is, mask) : NULL : is;
}
/* yes of the elements where `is`, else no; with the batch. NULL with a message. */
static nvg_node *select(mapped *w, nvg_node *is, nvg_node *yes, nvg_node *no) {
  int64_t shape[NVM_MAX_RANK + 1] = { w->m->size };
  int rank = yes->aval->rank > no->aval->rank ? yes->aval->rank : no->aval->rank;
  for (int d = 1; d < rank; d++) shape[d] = 1;
  return nvg_x3(&w->call, NVG_OP_WHERE, nvg_xreshape(&w->call, is, rank, shape), yes, no);
}
/* Replaces the outputs by what carries become if only the elements take the step where `is`. */
static int keep_done(mapped *w, values *out, const values *param, nvg_node *is) {
  for (int k = 0; k < w->of->ncarry; k++) {
    if (!w->flag[k] || out->at[k] == param->at[1 + k]) continue;
    if (!(out->at[k] = nva_spread(w->m, out->at[k], out->batched[k]))) return nvb_status();
    nvg_node *r = select(w, is, out->at[k], param->at[1 + k]);
    if (!r) return nvb_status();
    nvg_node_unref(out->at[k]);
    out->at[k] = nvg_node_ref(r);
    out->batched[k] = 1;
  }
  return NVM_OK;
}

/* ---- fori_loop and scan */
/* Bounds that differ between elements: the steps of the longest. From a lower bound that differs, all begin at 0. */
static int common_bounds(mapped *w) {
  nvg_call *c = &w->call;
  nvg_node *low = w->operand.at[0], *high = nvg_xcast(c, w->operand.at[1], NVM_I64, 1);
  if (w->operand.batched[0]) {
    if (nvg_weak_asked(w->of->index))
      return nvb_fail(NVM_ERR_UNSUPPORTED,
                      "[vmap] the lower bound of a fori_loop differs between the elements, and its index is used with "
                      "a dtype that does not hold all integers; add it to an array of int64 first");
    nvg_node *first = nvg_xcast(c, low, NVM_I64, 1);
    high = nvg_x2(c, NVG_OP_SUBTRACT, high, first);
    low = nvg_xconst(c, NVM_I64, 0, 0);
  }
  int empty = !w->m->size;
  if (high && high->aval->rank) high = empty ? low : nvg_xreduce(c, NVG_OP_MAX, high, 1, 0);
  if (!low || !high) return nvb_status();
  int status = w->operand.batched[0] ? set_operand(w, 0, nvg_node_ref(low)) : NVM_OK;
  return status ? status : set_operand(w, 1, nvg_node_ref(high));
}
/* Sets the index of each element, and which of them take this step. */
static int index_of_elements(nvg_node **active, mapped *w, values *p, nvm_array *const *bound) {
  nvg_call *c = &w->call;
  nvg_node *i = p->at[0], *low = nva_node(bound[0]), *high = nva_node(bound[1]);
  if (!low || !high) return nvb_status();
  if (w->operand.batched[0]) {
    i = nvg_x2(c, NVG_OP_ADD, nvg_xcast(c, low, NVM_I64, 1), i);
    if (!i) return nvb_status();
    nvg_node_unref(p->at[0]);
    p->at[0] = nvg_node_ref(i);
    p->batched[0] = 1;
  }
  nvg_node *is = nvg_x2(c, NVG_OP_LESS, i, nvg_xcast(c, high, NVM_I64, 1));
  *active = is ? under_mask(w, is) : NULL;
  return *active ? NVM_OK : nvb_status();
}
static int make_steps(mapped *w, values *out, nvm_array *const *bound) {
  nva_mapping in = { 0 };
  values p = { 0 };
  nvg_node *active = NULL;
  int status = parameters_of(&p, w);
  if (!status && w->of->kind == NVM_FORI_LOOP) nvg_weak_narrow(p.at[0], w->of->index);
  if (!status && w->differ) status = index_of_elements(&active, w, &p, bound);
  if (!status) status = enter(&in, w, 0, &p, active);
  if (!status) status = map_values(out, &in, w->src->out[0], w->src->nout[0]);
  if (!status && w->differ) status = keep_done(w, out, &p, active);
  if (!status) status = give_outputs(w, out, w->of->ncarry);
  nva_mapping_end(&in);
  values_free(&p);
  return status;
}
static int map_steps(mapped *w) {
  values out = { 0 };
  int fori = w->of->kind == NVM_FORI_LOOP;
  nvm_array *bound[2] = { fori ? nvm_array_ref(w->array[0]) : NULL, fori ? nvm_array_ref(w->array[1]) : NULL };
  w->differ = fori && (w->operand.batched[0] || w->operand.batched[1]);
  int status = find_flags(w);
  if (!status && w->differ) status = common_bounds(w);
  if (!status) status = open_loop(w);
  if (!status) status = make_steps(w, &out, bound);
  if (!status) status = close_loop(w, out.batched);
  values_free(&out);
  nvm_array_unref(bound[0]), nvm_array_unref(bound[1]);
  return status;
}

/* ---- while_loop */
/* Does the loop go on, of these carries? element: NULL, or receives it for each element. A status. */
static int test_carries(values *out, nvg_node **element, mapped *w, const values *p) {
  nva_mapping in = { 0 };
  int status = enter(&in, w, 0, p, NULL);
  if (!status) status = map_values(out, &in, w->src->out[0], 1);
  nva_mapping_end(&in);
  if (status) return status;
  nvg_node *is = out->at[0], *mask = w->mask ? nva_node(w->mask) : NULL;
  if (w->mask && !mask) return nvb_status();
  if (mask) is = both(w, is, out->batched[0] ? mask : any_of(w, mask));
  if (element) *element = is;
  if (out->batched[0]) is = any_of(w, is);
  if (!is) return nvb_status();
  nvg_keep(&w->call, out->at[0]); /* element may be that node */
  out->at[0] = nvg_node_ref(is);
  out->batched[0] = 0;
  return NVM_OK;
}
static int make_test(mapped *w, const values *p) {
  values out = { 0 };
  int status = test_carries(&out, NULL, w, p);
  if (!status) status = give_outputs(w, &out, 0);
  values_free(&out);
  return status;
}
static int make_while_body(mapped *w, const values *p) {
  nva_mapping in = { 0 };
  values out = { 0 }, test = { 0 };
  nvg_node *active = NULL;
  int status = w->differ ? test_carries(&test, &active, w, p) : NVM_OK;
  if (!status) status = enter(&in, w, 1, p, active);
  if (!status) status = map_values(&out, &in, w->src->out[1], w->src->nout[1]);
  if (!status && w->differ) status = keep_done(w, &out, p, active);
  if (!status) status = give_outputs(w, &out, w->of->ncarry);
  nva_mapping_end(&in);
  values_free(&out), values_free(&test);
  return status;
}
static int map_while(mapped *w) {
  int status = find_flags(w);
  if (!status) status = open_loop(w);
  for (int stage = 0; stage < 3 && !status; stage++) {
    values p = { 0 };
    status = parameters_of(&p, w);
    if (!status) status = stage == 1 ? make_while_body(w, &p) : make_test(w, &p);
    values_free(&p);
  }
  return status ? status : close_loop(w, NULL);
}

/* ---- cond */
static int make_branch(mapped *w, int f) {
  nva_mapping in = { 0 };
  values p = { 0 }, out = { 0 };
  int status = parameters_of(&p, w);
  if (!status) status = enter(&in, w, f, &p, NULL);
  if (!status) status = map_values(&out, &in, w->src->out[f], w->src->nout[f]);
  if (!status) status = give_outputs(w, &out, out.n);
  nva_mapping_end(&in);
  values_free(&p), values_free(&out);
  return status;
}
static int map_choice(mapped *w) {
  int status = find_branch_flags(w);
  if (!status) status = open_loop(w);
  for (int f = 0; f < 2 && !status; f++) status = make_branch(w, f);
  return status ? status : close_loop(w, NULL);
}
/* The outputs of one branch, in the trace around it, for the elements where `is`. */
static int inline_branch(values *out, mapped *w, int f, nvg_node *is) {
  nva_mapping in = { 0 };
  values p = { 0 };
  int status = values_new(&p, w->src->nparam);
  for (int i = 1; i < p.n && !status; i++) {
    p.at[i] = nvg_node_ref(w->operand.at[i]);
    p.batched[i] = w->operand.batched[i];
  }
  nvg_node *active = status ? NULL : under_mask(w, is);
  if (!status) status = active ? enter(&in, w, f, &p, active) : nvb_status();
  if (!status) status = map_values(out, &in, w->src->out[f], w->src->nout[f]);
  nva_mapping_end(&in);
  values_free(&p);
  return status;
}
/* Elements take different branches: both are computed. */
static int map_selection(mapped *w) {
  values yes = { 0 }, no = { 0 };
  nvg_node *is = w->operand.at[0];
  int status = inline_branch(&yes, w, 0, is);
  if (!status) status = inline_branch(&no, w, 1, nvg_x1(&w->call, NVG_OP_LOGICAL_NOT, is));
  for (int i = 0; i < w->of->nresult && !status; i++) {
    yes.at[i] = nva_spread(w->m, yes.at[i], yes.batched[i]);
    no.at[i] = nva_spread(w->m, no.at[i], no.batched[i]);
    nvg_node *r = yes.at[i] && no.at[i] ? select(w, is, yes.at[i], no.at[i]) : NULL;
    status = nva_mapping_add(w->m, w->of->result[i], r, 1);
  }
  values_free(&yes), values_free(&no);
  return status;
}

int nva_map_loop(nva_mapping *m, const nva_loop *l) {
  mapped w;
  int status = begin_loop(&w, m, l);
  if (status) return end_loop(&w), status;
  switch (l->kind) {
  case NVM_FORI_LOOP:
  case NVM_SCAN: status = map_steps(&w); break;
  case NVM_WHILE_LOOP: status = map_while(&w); break;
  case NVM_COND: status = w.operand.batched[0] ? map_selection(&w) : map_choice(&w); break;
  case NVM_NLOOPS: break;
  }
  end_loop(&w);
  return status;
}

/* ---- draws */
/* A parameter of a draw as an array: one number, or of the shape of all elements' draw. */
static nvm_array *parameter_of(const nva_mapping *m, nvg_node *n, int batched, const nvg_aval *of) {
  if (!batched && !n->aval->rank) return nva_array_new(m->ctx, nvg_node_ref(n));
  nvg_call c = { .op = NVG_OP_WHERE, .default_float = m->ctx->default_float };
  c.own = c.inl, c.cap = sizeof c.inl / sizeof *c.inl;
  int64_t shape[NVM_MAX_RANK + 1] = { m->size }, ones[NVM_MAX_RANK + 1] = { m->size };
  for (int d = 0; d < of->rank; d++) {
    shape[1 + d] = of->shape[d];
    ones[1 + d] = n->aval->rank > batched ? of->shape[d] : 1;
  }
  nvg_node *r = batched ? nvg_xreshape(&c, n, of->rank + 1, ones) : n;
  r = nvg_xexpand(&c, r, of->rank + 1, shape);
  nvm_array *a = r ? nva_array_new(m->ctx, nvg_node_ref(r)) : NULL;
  nvg_call_end(&c);
  return a;
}
int nva_map_draw(nva_mapping *m, const nva_mapped_draw *d) {
  const nvg_aval *of = d->result->aval;
  int n = nvg_draw_parameters(d->what), rank = of->rank;
  int64_t shape[NVM_MAX_RANK + 1] = { m->size };
  nvm_array *in[NVG_DRAW_PARAMETERS] = { NULL }, *a = NULL;
  values v = { 0 };
  if (rank == NVM_MAX_RANK)
    return nvb_fail(NVM_ERR_VALUE, "[vmap] a draw of %d dimensions has none left for the batch", rank);
  if (rank) memcpy(shape + 1, of->shape, sizeof *shape * (size_t)rank);
  int status = map_values(&v, m, d->parameter, n);
  for (int i = 0; i < n && !status; i++)
    if (!(in[i] = parameter_of(m, v.at[i], v.batched[i], of))) status = nvb_status();
  if (!status && !(a = nvm_generator_draw(d->of, d->what, of->dtype, n ? in : NULL, rank + 1, shape)))
    status = nvb_status();
  if (!status) status = nva_mapping_add(m, d->result, nva_node(a), 1);
  for (int i = 0; i < n; i++) nvm_array_unref(in[i]);
  nvm_array_unref(a);
  values_free(&v);
  return status;
}
