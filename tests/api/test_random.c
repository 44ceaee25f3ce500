/* Random graphs: node by node in the interpreter = fused, on 1, 2 and 7 threads, with flush-to-zero set by the caller,
   directly, and through native code, bit for bit; with a device (cuda:0), fused and node by node there, without f16 and
   bf16.
     test_random [--device NAME] [--seconds S] [--jobs J] [count [first seed [all]]]; all: every mode for every graph
   J processes share the seeds and a device: in one process evaluations take turns. One that crashes or stalls is a
   failure of its graph, and another goes on. NVM_RANDOM_COUNT sets the count, NVM_RANDOM_MOST after how many failures
   it stops. A failure prints its seed and graph; the last line says how many there were. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#if defined __SSE__
#include <xmmintrin.h>
#endif
#include "random_graph.h"

enum { MOST_JOBS = 256, STALL_S = 60, TELL_S = 5 }; /* longest time at one graph, and without a line about all */
typedef struct mode { const char *name, *fuse, *tier, *threads; int flush, every; } mode;
static const mode on_cpu[] = {
  { "node by node", "off", "0", "1", 0, 1 },        /* the reference */
  { "fused", "on", "0", "1", 0, 1 },
  { "fused, 2 threads", "on", "0", "2", 0, 1 },
  { "fused, 7 threads, flush-to-zero in the caller", "on", "0", "7", 1, 1 },
  { "direct", "on", "direct", "1", 0, 1 },
  { "fused, native", "on", "1", "1", 0, 10 },
  { "fused, native, 7 threads", "on", "1", "7", 1, 50 },
  { "node by node, native", "off", "1", "2", 0, 100 },
}, on_device[] = {
  { "fused, on the device", "on", "auto", "1", 0, 1 },
  { "node by node, on the device", "off", "auto", "1", 0, 4 },
  { "by stand-ins, on the device", "on", "direct", "1", 0, 2 },
};
static const struct modes {
  const mode *m;
  int n;
} modes[] = { { on_cpu + 1, sizeof on_cpu / sizeof *on_cpu - 1 }, { on_device, sizeof on_device / sizeof *on_device } };

typedef struct result { nvm_dtype t; int64_t n; void *data; } result;
typedef struct graph { uint64_t seed; int halves, all; rg *g; } graph;

static int values(const graph *x, nvm_ctx *ctx, const mode *m, result *r) {
  nvm_array *outs[RG_OUT];
  rg *g = x->g;
  if (nvm_set("FUSE", m->fuse) || nvm_set("TIER", m->tier) || nvm_set("NUM_THREADS", m->threads))
    return nvm_last_status();
  rg_build(g, ctx, x->seed, x->halves, outs);
#if defined __SSE__
  unsigned csr = _mm_getcsr();
  if (m->flush) _mm_setcsr(csr | 0x8040);
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

/* ---- one graph through the modes */
static void tell(const graph *x, const mode *m, const char *what) {
  printf("seed %llu: %s: %s\n%s", (unsigned long long)x->seed, m->name, what, x->g->text);
}
static void tell_part(const result *want, const result *got, int64_t at) { /* as far as its bits go into 8 bytes */
  size_t size = nvm_dtype_size(want->t) / (want->t == NVM_C64 || want->t == NVM_C128 ? 2 : 1);
  uint64_t w = 0, g = 0;
  memcpy(&w, (char *)want->data + (size_t)at * size, size);
  memcpy(&g, (char *)got->data + (size_t)at * size, size);
  printf("part %lld of %lld: %#llx, wanted %#llx (%s)\n", (long long)at, (long long)want->n, (unsigned long long)g,
         (unsigned long long)w, nvm_dtype_name(want->t));
}
static int compare(const graph *x, const mode *m, const result *wanted, const result *got) { /* 1: they differ */
  for (int i = 0; i < RG_OUT; i++) {
    const result *want = &wanted[i];
    int other = want->t != got[i].t || want->n != got[i].n;
    int64_t at = other ? 0 : rg_differs(want->t, want->data, got[i].data, want->n);
    if (!other && !at) continue;
    char what[32];
    snprintf(what, sizeof what, "output %d differs", i);
    tell(x, m, what);
    if (at) tell_part(want, &got[i], at - 1);
    return 1;
  }
  return 0;
}
/* 1: a mode fails, or differs from the reference. device NULL: the modes of the CPU. */
static int check(const graph *x, nvm_ctx *cpu, nvm_ctx *device) {
  const struct modes *other = &modes[device != NULL];
  result want[RG_OUT] = { { 0 } };
  int bad = values(x, cpu, on_cpu, want) != NVM_OK;
  if (bad) tell(x, on_cpu, nvm_last_error());
  for (const mode *m = other->m; m < other->m + other->n && !bad; m++) {
    result got[RG_OUT] = { { 0 } };
    if (!x->all && x->seed % (uint64_t)m->every) continue;
    bad = values(x, device ? device : cpu, m, got) != NVM_OK;
    if (bad) tell(x, m, nvm_last_error());
    else bad = compare(x, m, want, got);
    drop(got);
  }
  drop(want);
  return bad;
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

/* ---- jobs: processes that take the next seed, and one that looks whether they get on */
typedef struct work {             /* shared by all of them */
  const char *place; /* NULL: the modes of the CPU */
  long first, count, most;
  int all, jobs;
  double from, until;
  atomic_long next, done, bad;
  _Atomic uint64_t at_work[MOST_JOBS]; /* seeds; 0: none */
} work;
enum { AGAIN = 2 }; /* status of a job that shall be followed by another */

static void tell_progress(work *w) {
  printf("%ld graphs, %ld failed, %.0f s\n", (long)w->done, (long)w->bad, clock_s() - w->from);
  fflush(stdout);
}
static void ended(work *w, int bad) {
  w->bad += bad;
  w->done++;
}

/* A status of the process. A job among several ends with a graph that fails: it may have lost its device. */
static int take_turns(work *w, int job) {
  nvm_ctx *cpu = context("cpu"), *device = w->place ? context(w->place) : NULL;
  graph x = { .halves = !w->place, .all = w->all, .g = malloc(sizeof *x.g) };
  int status = !cpu || (w->place && !device) || !x.g;
  for (long i; !status && w->bad < w->most && clock_s() < w->until && (i = atomic_fetch_add(&w->next, 1)) < w->count;) {
    w->at_work[job] = x.seed = (uint64_t)(w->first + i);
    int bad = check(&x, cpu, device);
    fflush(stdout);
    ended(w, bad);
    w->at_work[job] = 0;
    if (bad && w->jobs > 1) status = AGAIN;
  }
  free(x.g);
  if (device) nvm_ctx_free(device);
  if (cpu) nvm_ctx_free(cpu);
  return status;
}

typedef struct job {
  pid_t pid;
  uint64_t seed; /* since when it has been at work on that one */
  double since;
} job;
static job start(work *w, int j) {
  fflush(stdout);
  job r = { .pid = fork(), .since = clock_s() };
  if (r.pid) return r;
  int status = take_turns(w, j);
  fflush(stdout);
  _exit(status);
}
/* Looks at a job: 1 if it goes on, perhaps as another process. *failed: a process did, without a graph. */
static int look(work *w, job *x, int j, int *failed) {
  int status = 0;
  if (x->seed != w->at_work[j]) x->seed = w->at_work[j], x->since = clock_s();
  int stalled = clock_s() - x->since > STALL_S;
  if (stalled) kill(x->pid, SIGKILL);
  if (waitpid(x->pid, &status, stalled ? 0 : WNOHANG) != x->pid) return 1;
  uint64_t seed = atomic_exchange(&w->at_work[j], 0);
  int again = WIFEXITED(status) && WEXITSTATUS(status) == AGAIN;
  if (!again && status) {
    printf("seed %llu: its process ended, status %#x%s\n", (unsigned long long)seed, (unsigned)status,
           stalled ? ", no end for a minute" : "");
    if (seed) ended(w, 1), again = 1;
    else *failed = 1;
  }
  if (again && w->bad < w->most) *x = start(w, j);
  else x->pid = 0;
  return x->pid != 0;
}
/* Forks before anything of nvm or CUDA has begun. 1: a process failed. */
static int share(work *w) {
  job jobs[MOST_JOBS];
  int left = w->jobs, failed = 0;
  double told = clock_s();
  for (int j = 0; j < w->jobs; j++) jobs[j] = start(w, j);
  for (; left; usleep(50000)) {
    for (int j = 0; j < w->jobs; j++)
      if (jobs[j].pid && !look(w, &jobs[j], j, &failed)) left--;
    if (clock_s() - told > TELL_S) tell_progress(w), told = clock_s();
  }
  return failed;
}

int main(int argc, char **argv) {
  work *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (w == MAP_FAILED) return 1;
  setvbuf(stdout, NULL, _IOFBF, 1 << 16); /* what a process tells of a graph comes in one piece */
  w->from = clock_s();
  w->until = 1e18;
  w->jobs = 1;
  while (argc > 2 && !strncmp(argv[1], "--", 2)) {
    if (!strcmp(argv[1], "--device")) w->place = argv[2];
    if (!strcmp(argv[1], "--seconds")) w->until = w->from + atof(argv[2]);
    if (!strcmp(argv[1], "--jobs")) w->jobs = atoi(argv[2]) < MOST_JOBS ? atoi(argv[2]) : MOST_JOBS;
    argc -= 2, argv += 2;
  }
  w->count = argc > 1 ? atol(argv[1]) : from_env("NVM_RANDOM_COUNT", 2000);
  w->first = argc > 2 ? atol(argv[2]) : 1;
  w->all = argc > 3;
  w->most = from_env("NVM_RANDOM_MOST", 5);
  int failed = w->jobs > 1 ? share(w) : take_turns(w, 0);
  tell_progress(w);
  return failed || w->bad != 0;
}
