/* Two threads use the library in every way that nvm.h allows, each through handles of its own: of nodes that both
   evaluate, of views of one base, of arrays that one made and the other lets go. Each array is one number repeated, so
   that every value can be checked. In ThreadSanitizer's build this looks for data races (scripts/test). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "nvm/nvm.h"
#include "nvm/device.h"
#include "nvm/tune.h"

enum { THREADS = 2, SLOTS = 6, N = 8, LENGTHS = 40 };
#if defined __SANITIZE_THREAD__
enum { ACTS = 1200 };
#else
enum { ACTS = 6000 };
#endif
typedef struct slot { nvm_array *a; float value; } slot; /* a: owned */
typedef struct handed { nvm_array *a; float value; } handed;
typedef struct all {
  nvm_ctx *ctx;
  nvm_fn *fn;
  nvm_traced *traced;
  nvm_array *base;                 /* ones; handles of it are shared, nobody writes through them */
  _Atomic(handed *) mail[THREADS]; /* what the other thread left there */
} all;
typedef struct worker {
  all *all;
  int id;
  uint32_t seed;
  nvm_ctx *ctx;     /* of the round */
  nvm_array *whole; /* this thread's handle of the base */
  slot slot[SLOTS];
  int mistaken; /* the round's scope has met a failure */
  int status;
} worker;

static uint32_t draw(worker *w, uint32_t below) {
  w->seed = w->seed * 1664525u + 1013904223u;
  return (w->seed >> 8) % below;
}
static slot *any(worker *w) { return &w->slot[draw(w, SLOTS)]; }
static int must(worker *w, int status) {
  if (status && !w->status) fprintf(stderr, "thread %d: %d %s\n", w->id, status, nvm_last_error()), w->status = status;
  return status;
}
/* Takes a reference to `a`, which may belong to a scope. */
static void put(worker *w, slot *s, nvm_array *a, float value) {
  must(w, a ? NVM_OK : nvm_last_status());
  nvm_array_ref(a);
  nvm_array_unref(s->a);
  *s = (slot){ a, value };
}

/* ---- what a thread may do */
static void build(worker *w) {
  slot *x = any(w), *y = any(w);
  if (x->value > 1000 || y->value > 1000) put(w, x, nvm_sub(x->a, nvm_float(x->value - 1)), 1);
  else put(w, y, nvm_add(nvm_mul(x->a, nvm_float(2)), nvm_float(3)), 2 * x->value + 3);
}
static void reduce(worker *w) {
  slot *x = any(w), *y = any(w);
  float n = (float)nvm_size(x->a);
  put(w, y,
      nvm_add(nvm_zeros(w->ctx, NVM_F32, 1, (int64_t[]){ 1 + draw(w, LENGTHS) }),
              nvm_div(nvm_sum(x->a, NULL, -1, 0), nvm_float(n))),
      x->value);
}
static void evaluate(worker *w) {
  nvm_array *both[2] = { any(w)->a, any(w)->a };
  must(w, nvm_eval(both, 2));
}
static void read(worker *w) {
  float out[LENGTHS];
  const slot *x = any(w);
  int64_t n = nvm_shape(x->a)[0];
  must(w, nvm_copy_to_host(x->a, out, sizeof *out * (size_t)n));
  for (int64_t i = 0; i < n; i++) must(w, out[i] == x->value ? NVM_OK : -1);
}
static void look(worker *w) {
  const void *data;
  int64_t stride;
  const slot *x = any(w);
  must(w, nvm_dtype_of(x->a) == NVM_F32 && nvm_rank(x->a) == 1 && nvm_device_of(x->a) == NVM_DEVICE_CPU ? NVM_OK : -2);
  if (nvm_is_pending(x->a) && draw(w, 2)) return;
  must(w, nvm_data(&data, &stride, x->a));
  must(w, *(const float *)data == x->value ? NVM_OK : -3);
}
static void view(worker *w) { /* of the base that both have, or of an array of its own */
  slot *x = any(w), *y = any(w);
  int shared = !draw(w, 3);
  nvm_array *from = shared ? w->whole : x->a;
  int64_t n = nvm_size(from), start = draw(w, (uint32_t)n);
  nvm_array *v = nvm_view(from, 1, &start, &(int64_t){ n - start }, &(int64_t){ 1 }, NULL);
  put(w, y, v, shared ? 1 : x->value);
  if (!shared && !draw(w, 2)) put(w, y, nvm_snapshot(y->a), y->value), nvm_array_unref(y->a); /* owned twice */
  else if (!shared) put(w, y, nvm_array_copy(v), y->value), nvm_array_unref(y->a);
  nvm_array_unref(v);
}
static void overwrite(worker *w) { /* a copy of its own: other handles of the value keep it */
  slot *x = any(w);
  nvm_array *copy = nvm_snapshot(x->a);
  nvm_array *part = nvm_view(copy, 1, (int64_t[]){ 0 }, nvm_shape(copy), (int64_t[]){ 1 }, NULL);
  must(w, nvm_assign(part, nvm_float(7)));
  put(w, x, copy, 7);
  nvm_array_unref(part), nvm_array_unref(copy);
}
static void call(worker *w) {
  slot *x = any(w), *y = any(w);
  nvm_array *out = NULL;
  if (w->ctx != w->all->ctx) return;
  must(w, nvm_fn_call(w->all->fn, &x->a, &out));
  put(w, y, out, x->value + 1);
  nvm_array_unref(out);
}
static void call_traced(worker *w) {
  nvm_array *out = NULL, *in = nvm_view(w->whole, 1, (int64_t[]){ 0 }, (int64_t[]){ N / 2 }, (int64_t[]){ 2 }, NULL);
  must(w, nvm_traced_call(w->all->traced, &in, &out));
  put(w, any(w), out, 2);
  nvm_array_unref(out), nvm_array_unref(in);
}
static void explain(worker *w) {
  char *text = NULL;
  slot *x = any(w);
  int kind = (int)draw(w, 3);
  must(w, kind == 0   ? nvm_explain(&text, &x->a, 1)
          : kind == 1 ? nvm_fn_explain(&text, w->all->fn, &x->a)
                      : nvm_traced_explain(&text, w->all->traced));
  nvm_free(text);
}
static void set(worker *w) {
  static const char *const way[][2] = { { "reproducible", "0" },   { "reproducible", "1" }, { "num_threads", "1" },
                                        { "num_threads", "2" },    { "mem_cache", "64M" },  { "mem_cache", "0" },
                                        { "mem_limit", "1G" },     { "mem_limit", "0" },    { "verbose", "0" },
                                        { "check", "graph,plan" }, { "check", "" },         { "tune", "off" },
                                        { "tune", "estimate" } };
  const char *const *s = way[draw(w, sizeof way / sizeof *way)];
  must(w, nvm_set(s[0], s[1]));
}
static void ask(worker *w) {
  const char *name, *value, *def, *doc;
  char *text = NULL;
  nvm_counters c;
  nvm_tune_counters t;
  for (int i = 0; nvm_setting(i, &name, &value, &def, &doc); i++) must(w, *name ? NVM_OK : -4);
  must(w, nvm_counters_get(&c, NVM_COUNTERS_VERSION));
  must(w, nvm_tune_counters_get(&t, NVM_TUNE_COUNTERS_VERSION));
  must(w, nvm_info(&text));
  nvm_free(text);
}
static void tune(worker *w) {
  nvm_tune_options o = NVM_TUNE_OPTIONS_INIT;
  o.seconds = 1e-3;
  must(w, nvm_tune_begin(&o));
  evaluate(w);
  must(w, nvm_tune_end());
}
static void nest(worker *w) { /* a scope in the scope, its arrays gone with it */
  nvm_scope *s = nvm_scope_open(w->ctx);
  slot *x = any(w);
  nvm_array *y = nvm_sum(nvm_exp(x->a), NULL, -1, 0);
  if (draw(w, 2)) must(w, nvm_eval(&y, 1));
  must(w, nvm_scope_close(s));
}
static void another_context(worker *w) {
  nvm_ctx *c;
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  float out[3];
  o.default_float = NVM_F32;
  o.device = NVM_DEVICE_CPU;
  must(w, nvm_ctx_new(&c, &o));
  nvm_scope *s = nvm_scope_open(c);
  must(w, nvm_copy_to_host(nvm_add(nvm_ones(c, NVM_F32, 1, (int64_t[]){ 3 }), nvm_float(1)), out, sizeof out));
  must(w, out[2] == 2 ? NVM_OK : -5);
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
static void put_somewhere(worker *w) {
  nvm_device before;
  must(w, nvm_thread_device_set(&before, NVM_DEVICE_CPU));
  build(w);
  must(w, nvm_thread_device_set(NULL, before));
}
static void give_up(worker *w) { /* memory of its own, or a handle of a value that others have too */
  slot *x = any(w);
  nvm_array *copy = draw(w, 2) ? nvm_array_copy(x->a) : nvm_snapshot(draw(w, 2) ? w->whole : x->a), *y;
  if (!copy || must(w, nvm_eval(&copy, 1))) return;
  y = nvm_add(nvm_mul(copy, nvm_float(0)), nvm_float(x->value));
  must(w, nvm_donate(copy));
  put(w, x, y, x->value);
  nvm_array_unref(copy);
}
static void mistake(worker *w) { /* messages are a thread's own */
  char want[32];
  nvm_scope *s = nvm_scope_open(w->ctx);
  int64_t n = 3 + draw(w, 5);
  nvm_add(nvm_zeros(w->ctx, NVM_F32, 1, &n), nvm_zeros(w->ctx, NVM_F32, 1, (int64_t[]){ n + 1 }));
  must(w, nvm_scope_close(s) == NVM_ERR_VALUE ? NVM_OK : -6);
  w->mistaken = 1;
  snprintf(want, sizeof want, "(%d,)", (int)n);
  must(w, strstr(nvm_last_error(), want) ? NVM_OK : -7);
}
static void hand_over(worker *w) { /* the other one uses it, and lets go */
  slot *x = any(w);
  handed *mine = malloc(sizeof *mine), *old;
  *mine = (handed){ nvm_snapshot(x->a), x->value };
  old = atomic_exchange(&w->all->mail[1 - w->id], mine);
  if (old) nvm_array_unref(old->a);
  free(old);
}
static void receive(worker *w) {
  handed *h = atomic_exchange(&w->all->mail[w->id], NULL);
  if (h) put(w, any(w), h->a, h->value), nvm_array_unref(h->a);
  free(h);
}
static void (*const acts[])(worker *w) = { build,         build,   build,   reduce,    evaluate, read,
                                           read,          look,    view,    overwrite, call,     call_traced,
                                           explain,       set,     ask,     tune,      nest,     another_context,
                                           put_somewhere, give_up, mistake, hand_over, receive };

/* ---- threads */
static int add_one(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  out[0] = nvm_add(in[0], nvm_float(1));
  return NVM_OK;
}
static nvm_traced *trace_double(nvm_ctx *c) {
  nvm_traced *t = NULL;
  nvm_scope *s = nvm_scope_open(c);
  ck_assert_int_eq(nvm_trace_begin(c), NVM_OK);
  nvm_array *x = nvm_placeholder(c, NVM_F32, 1, (int64_t[]){ N / 2 }), *y = nvm_mul(x, nvm_float(2));
  ck_assert_int_eq(nvm_traced_new(&t, c, &x, 1, &y, 1), NVM_OK);
  nvm_trace_end(c);
  nvm_array_unref(x);
  nvm_scope_close(s);
  return t;
}
static void *work(void *arg) {
  worker *w = arg;
  enum { ROUND = 20 };
  for (int i = 0; i < ACTS && !w->status; i += ROUND) {
    nvm_scope *s = nvm_scope_open(w->ctx);
    for (int k = 0; k < ROUND && !w->status; k++) acts[draw(w, sizeof acts / sizeof *acts)](w);
    int inside = nvm_scope_close(s);
    must(w, w->mistaken ? inside != NVM_ERR_VALUE : inside);
    w->mistaken = 0;
  }
  return NULL;
}
static void start(worker *w, all *h, int id, nvm_array *pending) {
  *w = (worker){ .all = h, .id = id, .ctx = h->ctx, .seed = 1234u + 77u * (uint32_t)id };
  w->whole = nvm_snapshot(h->base);
  for (int i = 0; i < SLOTS; i++) w->slot[i] = (slot){ nvm_snapshot(pending), 3 };
}
static void finish(worker *w) {
  for (int i = 0; i < SLOTS; i++) nvm_array_unref(w->slot[i].a);
  nvm_array_unref(w->whole);
}
START_TEST(threads_do_whatever_they_may) {
  nvm_set("cache_dir", "off");
  nvm_set("tier", _i ? "auto" : "0");
  all h = { 0 };
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  o.device = NVM_DEVICE_CPU;
  ck_assert_int_eq(nvm_ctx_new(&h.ctx, &o), NVM_OK);
  ck_assert_int_eq(nvm_fn_new(&h.fn, h.ctx, add_one, NULL, 1, 1), NVM_OK);
  h.traced = trace_double(h.ctx);
  nvm_scope *s = nvm_scope_open(h.ctx);
  h.base = nvm_ones(h.ctx, NVM_F32, 1, (int64_t[]){ N });
  nvm_array *pending = nvm_add(nvm_mul(h.base, nvm_float(1)), nvm_float(2)); /* both evaluate it */
  worker w[THREADS];
  pthread_t t[THREADS];
  for (int i = 0; i < THREADS; i++) start(&w[i], &h, i, pending);
  for (int i = 0; i < THREADS; i++) ck_assert_int_eq(pthread_create(&t[i], NULL, work, &w[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < THREADS; i++) ck_assert_int_eq(w[i].status, 0);
  for (int i = 0; i < THREADS; i++) finish(&w[i]);
  for (int i = 0; i < THREADS; i++)
    if (h.mail[i]) nvm_array_unref(h.mail[i]->a), free(h.mail[i]);
  nvm_scope_close(s);
  nvm_traced_free(h.traced), nvm_fn_free(h.fn);
  nvm_ctx_free(h.ctx);
}
END_TEST

SUITE("threads", LOOP(threads_do_whatever_they_may, 2))
