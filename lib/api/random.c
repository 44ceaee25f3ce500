/* Generators of random numbers: a key and a counter on the host, of which each draw takes a range. In a trace a draw
   notes how many counters a call takes, and the generator's state becomes hidden inputs. Never computes a number. */
#include <string.h>
#include "api/api.h"
#include "base/lock.h"
#include "base/mem.h"

struct nvm_generator {
  atomic_int refs;
  nvm_ctx *ctx;  /* counted */
  nvb_lock lock; /* of the state */
  nvm_generator_state state;
};

/* A bijection of 64 bits in which every bit of x changes about half of the result's (the finalizer of SplitMix64). */
static uint64_t mix_bits(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

/* ---- generators */
static int make_generator(nvm_generator **out, nvm_ctx *ctx, nvm_generator_state s) {
  nvm_generator *g = *out = nvb_calloc(1, sizeof *g);
  if (!g) return nvb_fail_memory();
  atomic_init(&g->refs, 1);
  g->ctx = nva_ctx_ref(ctx);
  g->state = s;
  return NVM_OK;
}
static nvm_generator *generator_ref(nvm_generator *g) {
  atomic_fetch_add(&g->refs, 1);
  return g;
}
void nvm_generator_free(nvm_generator *g) {
  if (!g || atomic_fetch_sub(&g->refs, 1) != 1) return;
  nva_ctx_unref(g->ctx);
  nvb_free(g);
}
int nvm_generator_new(nvm_generator **out, nvm_ctx *ctx, uint64_t seed) {
  if (!out || !ctx) return nva_missing("generator_new", out ? "context" : "pointer for the generator");
  return make_generator(out, ctx, (nvm_generator_state){ .key = mix_bits(seed) });
}

/* Takes `n` counters: the state before. */
static nvm_generator_state take_counters(nvm_generator *g, uint64_t n) {
  nvb_lock_take(&g->lock);
  nvm_generator_state s = g->state;
  g->state.counter += n;
  nvb_lock_give(&g->lock);
  return s;
}
int nvm_generator_state_get(nvm_generator_state *out, nvm_generator *g) {
  if (!out || !g) return nva_missing("generator_state_get", out ? "generator" : "pointer for the state");
  *out = take_counters(g, 0);
  return NVM_OK;
}
int nvm_generator_state_set(nvm_generator *g, const nvm_generator_state *s) {
  if (!g || !s) return nva_missing("generator_state_set", g ? "state" : "generator");
  nvb_lock_take(&g->lock);
  g->state = *s;
  nvb_lock_give(&g->lock);
  return NVM_OK;
}
int nvm_generator_spawn(nvm_generator **out, nvm_generator *g) {
  if (!out || !g) return nva_missing("generator_spawn", out ? "generator" : "pointer for the generator");
  nvb_lock_take(&g->lock);
  nvm_generator_state s = g->state;
  g->state.spawned++;
  nvb_lock_give(&g->lock);
  /* two rounds, so that the children of related keys are not related */
  return make_generator(out, g->ctx, (nvm_generator_state){ .key = mix_bits(mix_bits(s.key ^ ~s.stream) + s.spawned) });
}
int nvm_generator_jump(nvm_generator **out, nvm_generator *g, uint64_t by) {
  if (!out || !g) return nva_missing("generator_jump", out ? "generator" : "pointer for the generator");
  nvm_generator_state s = take_counters(g, 0);
  return make_generator(out, g->ctx, (nvm_generator_state){ .key = s.key, .stream = s.stream + by });
}

/* ---- what a trace draws */
static void state_words(int64_t out[NVG_STATE], const nvm_generator_state *s) {
  out[NVG_STATE_KEY] = (int64_t)s->key;
  out[NVG_STATE_COUNTER] = (int64_t)s->counter;
  out[NVG_STATE_STREAM] = (int64_t)s->stream;
}
void nva_drawn_take(const nva_drawn *d, int n, int64_t *words) {
  for (int i = 0; i < n; i++) {
    nvm_generator_state s = take_counters(d[i].of, d[i].counters);
    state_words(words + NVG_STATE * i, &s);
  }
}
void nva_drawn_free(nva_drawn *d, int n) {
  for (int i = 0; i < n; i++) {
    nvm_generator_free(d[i].of);
    for (int k = 0; k < NVG_STATE; k++) nvg_node_unref(d[i].state[k]);
  }
  nvb_free(d);
}
/* Numbers that each call of the traced function replaces. */
static int make_inputs(nva_drawn *d, nvm_generator *g) {
  *d = (nva_drawn){ .of = generator_ref(g) };
  int status = NVM_OK;
  for (int k = 0; k < NVG_STATE; k++)
    if (!(d->state[k] = nvg_weak_parameter('i', 0))) status = nvb_status();
  if (!status) return NVM_OK;
  for (int k = 0; k < NVG_STATE; k++) nvg_node_unref(d->state[k]);
  nvm_generator_free(g);
  return status;
}
/* The state at a draw of the trace: that of the call, some counters on. */
static int state_in_trace(nvg_node **state, nvm_generator *g, uint64_t counters) {
  nva_drawn *d = nva_trace_drawn(g, make_inputs);
  if (!d) return nvb_status();
  for (int k = 0; k < NVG_STATE; k++)
    state[k] = k == NVG_STATE_COUNTER ? nvg_counter_after(d->state[k], d->counters) : nvg_node_ref(d->state[k]);
  d->counters += counters;
  return state[NVG_STATE_COUNTER] ? NVM_OK : nvb_status();
}

/* ---- draws */
/* A number in host memory, which a kernel takes as an argument: draws that differ in numbers alone share a program. */
static nvg_node *number_node(int64_t bits) {
  nvg_node *n = nvg_weak_parameter('i', bits);
  nvg_value *v = n ? nva_value_packed(n->aval) : NULL;
  if (!v) return nvg_node_unref(n), NULL;
  memcpy(v->data, &bits, sizeof bits);
  nvg_node_set(n, v);
  return n;
}
static int state_now(nvg_node **state, nvm_generator *g, uint64_t counters) {
  nvm_generator_state s = take_counters(g, counters);
  int64_t word[NVG_STATE];
  int status = NVM_OK;
  state_words(word, &s);
  for (int k = 0; k < NVG_STATE; k++)
    if (!(state[k] = number_node(word[k]))) status = nvb_status();
  return status;
}

/* The dtypes that a parameter may have: unsigned ones of 64 bits, or all real ones. */
static int check_parameter(nvm_generator *g, nvm_draw what, const nvm_array *x, int rank, const int64_t *shape) {
  const nvg_aval *a = x && x != &nva_none ? x->node->aval : NULL;
  int fits = a && (what == NVM_DRAW_BELOW ? a->dtype == NVM_U64 : nvg_class_of(a->dtype) <= NVG_FLOAT);
  if (a && x->ctx != g->ctx) return nva_two_contexts("generator_draw");
  if (!fits)
    return nvb_fail(NVM_ERR_TYPE, "[random] a %s, not %s",
                    what == NVM_DRAW_BELOW ? "bound is uint64" : "parameter is of real numbers",
                    a ? nvg_dtype_name(a->dtype) : "absent");
  int same = !a->rank || a->rank == rank;
  for (int d = 0; a->rank && same && d < rank; d++) same = a->shape[d] == shape[d];
  return same ? NVM_OK : nvb_fail(NVM_ERR_VALUE, "[random] a parameter is one number, or has the draw's shape");
}
static int check_parameters(nvm_generator *g, nvm_draw what, nvm_array *const *x, int rank, const int64_t *shape) {
  int n = nvg_draw_parameters(what), status = NVM_OK;
  if (!n != !x)
    return nvb_fail(NVM_ERR_VALUE, "[random] %s", x ? "this draw has no parameters" : "the draw's parameters are NULL");
  for (int i = 0; i < n && !status; i++) status = check_parameter(g, what, x[i], rank, shape);
  return status;
}
static int is_among(nvm_dtype t, nvm_dtype a, nvm_dtype b) { return t == a || t == b; }
static int check_draw(nvm_generator *g, nvm_draw what, nvm_dtype *t) {
  if (!g) return nva_missing("generator_draw", "generator");
  if ((unsigned)what >= NVM_NDRAWS) return nvb_fail(NVM_ERR_VALUE, "[random] there is no draw %d", (int)what);
  int bits = what == NVM_DRAW_BITS || what == NVM_DRAW_BELOW, counts = what >= NVM_DRAW_POISSON;
  if (*t == NVM_DTYPE_DEFAULT) *t = bits ? NVM_U64 : counts ? NVM_I64 : g->ctx->default_float;
  int fits = bits     ? is_among(*t, NVM_U64, what == NVM_DRAW_BITS ? NVM_U32 : NVM_U64)
             : counts ? *t == NVM_I64
                      : is_among(*t, NVM_F32, NVM_F64);
  if (fits) return NVM_OK;
  return nvb_fail(NVM_ERR_TYPE, "[random] draws %s, not %s",
                  bits     ? "uint32 and uint64"
                  : counts ? "int64"
                           : "float32 and float64",
                  nvg_dtype_name(*t));
}
void nva_mapped_draws_free(nva_mapped_draw *d, int n) {
  for (int i = 0; i < n; i++) {
    nvm_generator_free(d[i].of);
    for (int k = 0; k < NVG_DRAW_PARAMETERS; k++) nvg_node_unref(d[i].parameter[k]);
    nvg_node_unref(d[i].result);
  }
  nvb_free(d);
}
/* A function over a batch gets a placeholder, for which all elements draw when it has ended. */
static nvg_node *draw_later(nvm_generator *g, nvm_draw what, nvg_node *const *parameter, const nvg_aval *shape) {
  nvg_node *r = nvg_leaf_new(nvg_aval_ref(shape), NULL);
  nva_mapped_draw *d = r ? nva_trace_add_draw() : NULL;
  if (!d) return nvg_node_unref(r), NULL;
  d->of = generator_ref(g);
  d->what = what;
  d->result = nvg_node_ref(r);
  for (int i = 0; i < nvg_draw_parameters(what); i++) d->parameter[i] = nvg_node_ref(parameter[i]);
  r->device = (uint8_t)nva_default_device();
  return r;
}
static nvg_node *draw_node(nvm_generator *g, nvm_draw what, nvm_dtype t, nvm_array *const *given,
                           const nvg_aval *shape) {
  nvg_node *state[NVG_STATE] = { NULL }, *parameter[NVG_DRAW_PARAMETERS];
  if (nva_tracing() && nva_trace_can_draw()) return NULL;
  for (int i = 0; i < nvg_draw_parameters(what); i++)
    if (!(parameter[i] = nva_node(given[i]))) return NULL;
  if (nva_tracing() && nva_trace_maps()) return draw_later(g, what, parameter, shape);
  uint64_t counters = nvg_draw_counters(what, t, shape->size);
  int status = nva_tracing() ? state_in_trace(state, g, counters) : state_now(state, g, counters);
  nvg_node *r = status ? NULL : nvg_draw(what, t, state, parameter, shape);
  for (int k = 0; k < NVG_STATE; k++) nvg_node_unref(state[k]);
  if (!r || !nva_default_device()) return r;
  nvg_node *put = nvg_put(r, nva_default_device());
  nvg_node_unref(r);
  return put;
}
nvm_array *nvm_generator_draw(nvm_generator *g, nvm_draw what, nvm_dtype t, nvm_array *const *parameters, int rank,
                              const int64_t *shape) {
  if (check_draw(g, what, &t)) return NULL;
  const nvg_aval *av = nvg_aval_get(t, rank, shape);
  int status = av ? check_parameters(g, what, parameters, rank, shape) : nvb_status();
  nvm_array *a = status ? NULL : nva_array_new(g->ctx, draw_node(g, what, t, parameters, av));
  nvg_aval_unref(av);
  return a;
}
nvm_array *nvm_random(nvm_generator *g, nvm_dtype t, int rank, const int64_t *shape) {
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_UNIFORM, t, NULL, rank, shape));
}
nvm_array *nvm_standard_normal(nvm_generator *g, nvm_dtype t, int rank, const int64_t *shape) {
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_NORMAL, t, NULL, rank, shape));
}
nvm_array *nvm_standard_exponential(nvm_generator *g, nvm_dtype t, int rank, const int64_t *shape) {
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_EXPONENTIAL, t, NULL, rank, shape));
}
nvm_array *nvm_random_below(nvm_generator *g, nvm_array *below, int rank, const int64_t *shape) {
  if (!below) return nva_null("random_below", "bound"), NULL;
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_BELOW, NVM_U64, &below, rank, shape));
}
nvm_array *nvm_standard_gamma(nvm_generator *g, nvm_array *k, nvm_dtype t, int rank, const int64_t *shape) {
  if (!k) return nva_null("standard_gamma", "shape of the distribution"), NULL;
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_GAMMA, t, &k, rank, shape));
}
nvm_array *nvm_beta(nvm_generator *g, nvm_array *a, nvm_array *b, nvm_dtype t, int rank, const int64_t *shape) {
  if (!a || !b) return nva_null("beta", a ? "b" : "a"), NULL;
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_BETA, t, (nvm_array *[]){ a, b }, rank, shape));
}
nvm_array *nvm_vonmises(nvm_generator *g, nvm_array *kappa, nvm_dtype t, int rank, const int64_t *shape) {
  if (!kappa) return nva_null("vonmises", "concentration"), NULL;
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_VONMISES, t, &kappa, rank, shape));
}
nvm_array *nvm_poisson(nvm_generator *g, nvm_array *mean, int rank, const int64_t *shape) {
  if (!mean) return nva_null("poisson", "mean"), NULL;
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_POISSON, NVM_I64, &mean, rank, shape));
}
nvm_array *nvm_binomial(nvm_generator *g, nvm_array *n, nvm_array *p, int rank, const int64_t *shape) {
  if (!n || !p) return nva_null("binomial", n ? "p" : "n"), NULL;
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_BINOMIAL, NVM_I64, (nvm_array *[]){ n, p }, rank, shape));
}
nvm_array *nvm_zipf(nvm_generator *g, nvm_array *a, int rank, const int64_t *shape) {
  if (!a) return nva_null("zipf", "a"), NULL;
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_ZIPF, NVM_I64, &a, rank, shape));
}
nvm_array *nvm_hypergeometric(nvm_generator *g, nvm_array *good, nvm_array *bad, nvm_array *sample, int rank,
                              const int64_t *shape) {
  if (!good || !bad || !sample) return nva_null("hypergeometric", !good ? "good" : !bad ? "bad" : "sample"), NULL;
  nvm_array *of[] = { good, bad, sample };
  return nva_scope_keep(nvm_generator_draw(g, NVM_DRAW_HYPERGEOMETRIC, NVM_I64, of, rank, shape));
}
