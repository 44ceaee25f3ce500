/* Random graphs: node by node in the interpreter = fused, on 1, 2 and 7 threads, with flush-to-zero set by the caller, and through
   native code, bit for bit; with a device (cuda:0), fused and node by node there, without f16 and bf16.
     test_random [--device NAME] [--seconds S] [--jobs J] [count [first seed [all]]]; all: every mode for every graph
   J threads share a device; modes are settings of the process, so a batch of graphs goes through one mode after the other.
   NVM_RANDOM_COUNT sets the count, NVM_RANDOM_MOST after how many differences it stops. A failure prints its seed and graph. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined __SSE__
#include <xmmintrin.h>
#endif
#include "random_graph.h"

enum { MOST_JOBS = 256, EACH = 64, STALL_S = 60 }; /* graphs of a batch for each thread; longest without an end of one */
typedef struct mode { const char *name, *fuse, *tier, *threads; int flush, every; } mode;
static const mode on_cpu[] = {
  { "node by node", "off", "0", "1", 0, 1 },        /* the reference */
  { "fused", "on", "0", "1", 0, 1 },
  { "fused, 2 threads", "on", "0", "2", 0, 1 },
  { "fused, 7 threads, flush-to-zero in the caller", "on", "0", "7", 1, 1 },
  { "fused, native", "on", "1", "1", 0, 10 },
  { "fused, native, 7 threads", "on", "1", "7", 1, 50 },
  { "node by node, native", "off", "1", "2", 0, 50 },
}, on_device[] = {
  { "fused, on the device", "on", "auto", "1", 0, 1 },
  { "node by node, on the device", "off", "auto", "1", 0, 4 },
};
static const struct modes { const mode *m; int n; } modes[] = {
  { on_cpu + 1, sizeof on_cpu / sizeof *on_cpu - 1 }, { on_device, sizeof on_device / sizeof *on_device } };

typedef struct result { nvm_dtype t; int64_t n; void *data; } result;
typedef struct item { uint64_t seed; int bad; result want[RG_OUT]; } item;
typedef struct batch {            /* graphs that go through one mode at a time */
  nvm_ctx *ctx;                   /* of this mode */
  const mode *m;
  int halves, all, n;
  item *at;
  atomic_int next;
} batch;

static int values(const batch *b, uint64_t seed, result *r, rg *g) {
  nvm_array *outs[RG_OUT];
  rg_build(g, b->ctx, seed, b->halves, outs);
#if defined __SSE__
  unsigned csr = _mm_getcsr();
  if (b->m->flush) _mm_setcsr(csr | 0x8040);
#endif
  int status = nvm_eval(outs, RG_OUT);
  for (int i = 0; i < RG_OUT && !status; i++) {
    r[i].t = nvm_dtype_of(outs[i]);
    r[i].n = nvm_size(outs[i]);
    size_t bytes = (size_t)r[i].n * nvm_dtype_size(r[i].t);
    r[i].data = malloc(bytes + 1);
    status = nvm_copy_to_host(outs[i], r[i].data, bytes);
  }
#if defined __SSE__
  _mm_setcsr(csr);
#endif
  rg_free(g);
  return status;
}
static void drop(result *r) {
  for (int i = 0; i < RG_OUT; i++) free(r[i].data), r[i].data = NULL;
}

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;
static atomic_long bad, most = 5;
static void tell(const char *mode_name, const item *x, const char *what, const rg *g) {
  printf("seed %llu: %s: %s\n%s", (unsigned long long)x->seed, mode_name, what, g->text);
}
static void tell_part(const result *want, const result *got, int64_t at) { /* as far as its bits go into 8 bytes */
  size_t size = nvm_dtype_size(want->t) / (want->t == NVM_C64 || want->t == NVM_C128 ? 2 : 1);
  uint64_t w = 0, g = 0;
  memcpy(&w, (char *)want->data + (size_t)at * size, size);
  memcpy(&g, (char *)got->data + (size_t)at * size, size);
  printf("part %lld of %lld: %#llx, wanted %#llx (%s)\n", (long long)at, (long long)want->n, (unsigned long long)g,
         (unsigned long long)w, nvm_dtype_name(want->t));
}
static void compare(const batch *b, item *x, const result *got, const rg *g) {
  for (int i = 0; i < RG_OUT && !x->bad; i++) {
    const result *want = &x->want[i];
    int other = want->t != got[i].t || want->n != got[i].n;
    int64_t at = other ? 0 : rg_differs(want->t, want->data, got[i].data, want->n);
    if (!other && !at) continue;
    char what[32];
    snprintf(what, sizeof what, "output %d differs", i);
    pthread_mutex_lock(&printing);
    tell(b->m->name, x, what, g);
    if (at) tell_part(want, &got[i], at - 1);
    pthread_mutex_unlock(&printing);
    x->bad = 1, bad++;
  }
}
static void one(const batch *b, item *x, rg *g) {
  int reference = b->m == on_cpu;
  if (x->bad || (!b->all && x->seed % (uint64_t)b->m->every)) return;
  result got[RG_OUT] = { { 0 } };
  if (values(b, x->seed, reference ? x->want : got, g)) {
    pthread_mutex_lock(&printing);
    tell(b->m->name, x, nvm_last_error(), g);
    pthread_mutex_unlock(&printing);
    x->bad = 1, bad++;
  } else if (!reference) compare(b, x, got, g);
  drop(got);
}
/* ---- threads, and one that looks whether they get on */
static _Atomic uint64_t at_work[MOST_JOBS], ended; /* seeds; 0: none */
static atomic_int places;
static const char *_Atomic now_in;
static void *watch(void *arg) {
  (void)arg;
  for (uint64_t last = 0, still = 0; still < STALL_S; sleep(1), still = last == ended ? still + 1 : 0) last = ended;
  printf("no graph ended for %d s; %s, at work on", STALL_S, now_in);
  for (int i = 0; i < MOST_JOBS; i++)
    if (at_work[i]) printf(" %llu", (unsigned long long)at_work[i]);
  puts("");
  fflush(stdout);
  _exit(1);
}
static void *some(void *arg) {
  batch *b = arg;
  rg *g = malloc(sizeof *g);
  int place = atomic_fetch_add(&places, 1) % MOST_JOBS;
  for (int i; g && bad < most && (i = atomic_fetch_add(&b->next, 1)) < b->n; ended++) {
    at_work[place] = b->at[i].seed;
    one(b, &b->at[i], g);
  }
  at_work[place] = 0;
  free(g);
  return NULL;
}
static int in_mode(batch *b, nvm_ctx *ctx, const mode *m, int jobs) {
  pthread_t helper[MOST_JOBS];
  int started = 0;
  b->ctx = ctx, b->m = m, b->next = 0;
  now_in = m->name;
  places = 0;
  if (nvm_set("FUSE", m->fuse) || nvm_set("TIER", m->tier) || nvm_set("NUM_THREADS", m->threads)) return 1;
  while (started + 1 < jobs && !pthread_create(&helper[started], NULL, some, b)) started++;
  some(b);
  while (started) pthread_join(helper[--started], NULL);
  return 0;
}
/* The modes of `device`, or those of the CPU if it is NULL, against the reference. */
static int check(batch *b, nvm_ctx *cpu, nvm_ctx *device, int jobs) {
  const struct modes *other = &modes[device != NULL];
  int failed = in_mode(b, cpu, on_cpu, jobs);
  for (const mode *m = other->m; m < other->m + other->n && !failed; m++) failed = in_mode(b, device ? device : cpu, m, jobs);
  for (int i = 0; i < b->n; i++) drop(b->at[i].want);
  return failed;
}

static long from_env(const char *name, long otherwise) {
  const char *s = getenv(name);
  return s ? atol(s) : otherwise;
}
static nvm_ctx *context(const char *device) {
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  nvm_ctx *c = NULL;
  if (nvm_device_find(&o.device, device) || nvm_ctx_new(&c, &o)) printf("%s: %s\n", device, nvm_last_error());
  return c;
}
static double clock_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
  const char *place = NULL;
  double seconds = 1e9;
  int jobs = 1;
  while (argc > 2 && !strncmp(argv[1], "--", 2)) {
    if (!strcmp(argv[1], "--device")) place = argv[2];
    if (!strcmp(argv[1], "--seconds")) seconds = atof(argv[2]);
    if (!strcmp(argv[1], "--jobs")) jobs = atoi(argv[2]) < MOST_JOBS ? atoi(argv[2]) : MOST_JOBS;
    argc -= 2, argv += 2;
  }
  long first = argc > 2 ? atol(argv[2]) : 1, done = 0;
  long count = argc > 1 ? atol(argv[1]) : from_env("NVM_RANDOM_COUNT", 2000);
  most = from_env("NVM_RANDOM_MOST", 5);
  int room = jobs > 1 ? EACH * jobs : 1;
  nvm_ctx *cpu = context("cpu"), *device = place ? context(place) : NULL;
  batch b = { .halves = !place, .all = argc > 3, .at = calloc((size_t)room, sizeof *b.at) };
  pthread_t watcher;
  if (!cpu || (place && !device) || !b.at) return 1;
  if (place && !pthread_create(&watcher, NULL, watch, NULL)) pthread_detach(watcher);
  for (double start = clock_s(); done < count && bad < most && clock_s() - start < seconds; done += b.n) {
    b.n = count - done < room ? (int)(count - done) : room;
    for (int i = 0; i < b.n; i++) b.at[i] = (item){ .seed = (uint64_t)(first + done + i) };
    if (check(&b, cpu, device, jobs)) return 1;
    if (jobs > 1) printf("%ld graphs, %.1f s\n", done + b.n, clock_s() - start), fflush(stdout);
  }
  printf("%ld graphs, %ld with differences\n", done, (long)bad);
  free(b.at);
  if (device) nvm_ctx_free(device);
  nvm_ctx_free(cpu);
  return bad != 0;
}
