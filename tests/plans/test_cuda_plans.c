/* The kernels of the golden plans for a GPU, as CUDA: all are spelled, each compiles for an architecture in turn, as it
   is planned for a device of that one, none spills; and as baseline code, where that goes. The programs are those of
   another suite. */
#include "golden.h"
#undef GOLDEN_SUITE
#define GOLDEN_SUITE(name)
#ifndef PATTERNS
#define PATTERNS "test_patterns.c"
#endif
#include PATTERNS
#include <pthread.h>
#include <stdatomic.h>
#include "../cuda_text.h"
#include "base/mem.h"
#include "codegen/cuda/cuda.h"

enum { WORKERS = 4, MOST = 512, COUNT = sizeof patterns / sizeof *patterns, NARCH = 5 };
static const struct {
  int number;
  const char *device;
  int64_t shared;
} archs[NARCH] = { { 80, "a100", 163 << 10 },
                   { 90, "h200", 227 << 10 },
                   { 100, "b200", 227 << 10 },
                   { 120, "rtx5090", 99 << 10 },
                   { 89, "rtx4090", 99 << 10 } };

typedef struct work {
  const char *pattern;
  char *source;
  int step, arch, baseline, status, spills;
  char why[400];
} work;
static work todo[MOST];
static int ntodo, nrefused; /* refused: baseline code of what multiplies no tiles */
static atomic_int next;

static nvc_cuda_kernel spelled;
static const nvf_step *step;
static nvc_cuda_target target;
static void spell_step(nvb_arena *a, void *arg) {
  const char *pattern = arg;
  nvc_cuda_emit(a, &spelled, step->k, step->s, &target);
  ck_assert_msg(spelled.threads >= 32 && spelled.threads <= 1024, "%s: %d threads", pattern, spelled.threads);
  ck_waits_first(spelled.source);
}

static void compile_later(const char *pattern, int at) {
  ck_assert_int_lt(ntodo, MOST);
  todo[ntodo++] = (work){
    .pattern = pattern, .step = at, .arch = target.arch, .baseline = target.baseline, .source = strdup(spelled.source)
  };
}

static void spell_one(nvb_arena *a, void *arg) {
  const struct pattern *p = arg;
  p->write();
  int arch = (int)(p - patterns) % NARCH;
  nvf_plan *f = nvf_fuse(a, graph_of(a), nvb_caps_find(archs[arch].device), &(nvf_options){ .fuse = 1 });
  for (int i = 0; i < f->nstep; i++) {
    step = &f->step[i];
    target = (nvc_cuda_target){ .arch = archs[arch].number };
    spell_step(a, (char *)p->name);
    ck_assert_msg(spelled.shared <= archs[arch].shared, "%s, step %d: %lld bytes of shared memory", p->name, i,
                  (long long)spelled.shared);
    compile_later(p->name, i);
    int threads = spelled.threads, cluster = spelled.cluster;
    target.baseline = 1;
    int product = step->gemm != NULL;
    if (nvb_protect(a, spell_step, (char *)p->name) || spelled.threads != threads || spelled.cluster != cluster)
      nrefused += !product;
    else compile_later(p->name, i);
  }
}

static void *compile_all(void *arg) {
  for (int i; (i = atomic_fetch_add(&next, 1)) < ntodo;) {
    nvc_cubin c = { 0 };
    todo[i].status = (todo[i].baseline ? nvc_nvrtc_compile_quick : nvc_nvrtc_compile)(&c, todo[i].source,
                                                                                      todo[i].pattern, todo[i].arch);
    snprintf(todo[i].why, sizeof todo[i].why, "%s", todo[i].status ? nvb_message() : "");
    todo[i].spills = c.spills;
    nvb_free(c.bytes);
  }
  return arg;
}

START_TEST(no_kernel_spills) {
  pthread_t thread[WORKERS];
  for (int i = 0; i < COUNT; i++) in_program(spell_one, &patterns[i], patterns[i].name);
  ck_assert_int_ge(ntodo, COUNT);
  ck_assert_int_lt(2 * nrefused, ntodo);
  if (!nvc_nvrtc_available()) {
    printf("kernels are spelled and not compiled: %s\n", nvb_message());
    return;
  }
  for (int i = 0; i < WORKERS; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, compile_all, NULL), 0);
  for (int i = 0; i < WORKERS; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < ntodo; i++) {
    ck_assert_msg(!todo[i].status, "%s, step %d, sm_%d: %s", todo[i].pattern, todo[i].step, todo[i].arch, todo[i].why);
    ck_assert_msg(!todo[i].spills, "%s, step %d, sm_%d: %d bytes of spills", todo[i].pattern, todo[i].step,
                  todo[i].arch, todo[i].spills);
    free(todo[i].source);
  }
}
END_TEST

SUITE("cuda plans", no_kernel_spills)
