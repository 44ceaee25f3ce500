/* Runs kernel texts of tests/kernel/texts: every schedule of a text through the interpreter and, where LLVM is there,
   compiled; all must give the same bits. Then the first result is compared with what the test computed in double
   precision. With GATE_CUDA (gate_cuda.h) the other way is CUDA C++ in the emulator of tests/emu. */
#ifndef GATE_H
#define GATE_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "codegen/codegen.h"
#include "frag/dtype.h"

enum { GATE_ARGS = 16 };
/* n elements; data NULL: a value; out: 1 compared between runs, 2 left alone; over: 1 + the argument whose memory it
   is */
typedef struct gate_arg { nvm_dtype type; void *data; int64_t n; int out; uint64_t bits; int over; } gate_arg;
typedef struct gate {
  const char *file, *prefix; /* schedules whose names begin so */
  const char *text;          /* NULL: what is in the file */
  int narg;
  gate_arg arg[GATE_ARGS];
  int want;             /* what every run returns */
  int aligned;          /* rows begin at multiples of 16 bytes: schedules that say so may run */
  int interpreted;      /* leave compiled code out: "the emitter does not have it" is no fault of this text */
  int *refusals;        /* counts the schedules that an emitter does not have; NULL: it has all */
  int64_t most_scratch; /* bytes that compiled code may write to its scratch; 0: any number */
} gate;

static inline void gate_in(gate *g, nvm_dtype t, void *data, int64_t n) {
  g->arg[g->narg++] = (gate_arg){ .type = t, .data = data, .n = n };
}
static inline void gate_out(gate *g, nvm_dtype t, void *data, int64_t n) {
  g->arg[g->narg++] = (gate_arg){ .type = t, .data = data, .n = n, .out = 1 };
}
/* The memory of an argument that comes before */
static inline void gate_over(gate *g, int arg) { g->arg[g->narg++] = (gate_arg){ .over = arg + 1 }; }
static inline void gate_size(gate *g, int64_t v) {
  g->arg[g->narg++] = (gate_arg){ .type = NVM_I64, .bits = (uint64_t)v };
}
static inline void gate_f32(gate *g, float v) {
  union {
    float f;
    uint32_t u;
  } x = { v };
  g->arg[g->narg++] = (gate_arg){ .type = NVM_F32, .bits = x.u };
}

static inline char *gate_text(const char *name) {
  static const char *const dirs[] = { "tests/kernel/texts", "../tests/kernel/texts", "../../tests/kernel/texts",
                                      "../main/tests/kernel/texts" };
  char path[1024];
  FILE *f = NULL;
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs && !f; i++) {
    snprintf(path, sizeof path, "%s/%s", dirs[i], name);
    f = fopen(path, "rb");
  }
  if (!f) { /* beside this source */
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof path, "%.*s/../kernel/texts/%s", slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".",
             name);
    f = fopen(path, "rb");
  }
  ck_assert_msg(f != NULL, "no kernel text %s", name);
  char *s = calloc(1, 1 << 20);
  size_t n = fread(s, 1, (1 << 20) - 1, f);
  fclose(f);
  s[n] = 0;
  return s;
}

static inline int gate_is_nan(nvm_dtype t, const char *x) {
  uint64_t bits = 0;
  memcpy(&bits, x, (size_t)nvg_size(t));
  double v = nvg_class_of(t) == NVG_FLOAT ? nvg_bits_float(t, bits) : 0;
  return v != v;
}
static inline int gate_same(nvm_dtype t, const void *a, const void *b) { /* or both NaN, each part of a pair */
  nvm_dtype r = nvg_real_of(t);
  int size = nvg_size(r);
  for (int i = 0; i < nvg_size(t) / size; i++) {
    const char *x = (const char *)a + i * size, *y = (const char *)b + i * size;
    if (memcmp(x, y, (size_t)size) != 0 && !(gate_is_nan(r, x) && gate_is_nan(r, y))) return 0;
  }
  return 1;
}

typedef struct gate_job { const gate *g; nvf_kernel *k; char *text; int runs;
  char *first[GATE_ARGS], *initial[GATE_ARGS];
} gate_job;

/* A way of running: all blocks of a kernel; returns what the kernel does. */
typedef struct gate_way {
  const char *name;
  int64_t scratch;
  int (*run)(const struct gate_way *w, const uint64_t *args, int64_t blocks, char *scratch);
  nvc_interp *interp;
  nvc_entry entry;
  void *other;
} gate_way;

static inline int gate_on_cpu(const gate_way *w, const uint64_t *args, int64_t blocks, char *scratch) {
  int got = 0;
  for (int64_t lo = 0; lo < blocks && !got; lo += 3) { /* in chunks, as the pool does */
    int64_t hi = lo + 3 < blocks ? lo + 3 : blocks;
    got = w->interp ? nvc_interp_run(w->interp, args, lo, hi, scratch) : w->entry(args, lo, hi, scratch);
  }
  return got;
}

/* Every output starts as the caller left it (so that updates in place can be tested) and lies between guards. */
static inline void gate_call(gate_job *j, nvf_schedule *s, const char *name, const gate_way *way) {
  const gate *g = j->g;
  enum { GUARD = 256 };
  uint64_t args[GATE_ARGS];
  char *copy[GATE_ARGS] = { 0 };
  for (int i = 0; i < g->narg; i++) {
    const gate_arg *a = &g->arg[i];
    size_t bytes = (size_t)a->n * (size_t)nvg_size(a->type);
    args[i] = a->over ? args[a->over - 1] : a->bits;
    if (!a->data) continue;
    copy[i] = malloc(bytes + 2 * GUARD);
    memset(copy[i], 0x5b, bytes + 2 * GUARD);
    memcpy(copy[i] + GUARD, a->out ? j->initial[i] : a->data, bytes);
    args[i] = (uint64_t)(uintptr_t)(copy[i] + GUARD);
  }
  int64_t blocks = nvf_blocks(j->k, s, args);
  char *workspace = aligned_alloc(64, (size_t)(way->scratch + GUARD + 63) / 64 * 64);
  memset(workspace, 0x5b, (size_t)way->scratch + GUARD);
  int got = way->run(way, args, blocks, workspace);
  for (int i = 0; i < GUARD; i++)
    ck_assert_msg(workspace[way->scratch + i] == 0x5b, "%s: schedule %s wrote behind its scratch", g->file, name);
  int64_t touched = 0;
  for (int64_t i = 0; i < way->scratch && way->entry && g->most_scratch; i++) touched += workspace[i] != 0x5b;
  ck_assert_msg(touched <= g->most_scratch, "%s: schedule %s wrote %lld bytes of scratch, at most %lld", g->file, name,
                (long long)touched, (long long)g->most_scratch);
  ck_assert_msg(got == g->want, "%s: schedule %s, %s, returned %d", g->file, name, way->name, got);
  for (int i = 0; i < g->narg; i++) {
    const gate_arg *a = &g->arg[i];
    if (!copy[i]) continue;
    size_t size = (size_t)nvg_size(a->type), bytes = (size_t)a->n * size;
    for (int k = 0; k < GUARD; k++)
      ck_assert_msg(copy[i][k] == 0x5b && copy[i][GUARD + (int64_t)bytes + k] == 0x5b,
                    "%s: schedule %s wrote beside argument %d", g->file, name, i);
    if (a->out && j->runs == 0) {
      j->first[i] = malloc(bytes + 1);
      memcpy(j->first[i], copy[i] + GUARD, bytes);
    } else if (a->out == 1) {
      for (int64_t e = 0; e < a->n; e++)
        ck_assert_msg(gate_same(a->type, j->first[i] + e * (int64_t)size, copy[i] + GUARD + e * (int64_t)size),
                      "%s: schedule %s, %s: element %lld of argument %d differs", g->file, name, way->name,
                      (long long)e, i);
    } else if (!a->out)
      ck_assert_msg(memcmp(copy[i] + GUARD, a->data, bytes) == 0, "%s: schedule %s wrote to argument %d", g->file, name,
                    i);
    free(copy[i]);
  }
  j->runs++;
  free(workspace);
}

static inline void gate_interpret(nvb_arena *a, gate_job *j, nvf_schedule *s, const char *name) {
  gate_way way = { "interpreted", 0, gate_on_cpu, nvc_interp_new(a, j->k, s), NULL, NULL };
  way.scratch = nvc_interp_scratch(way.interp);
  gate_call(j, s, name, &way);
}

static inline int gate_refused(const gate *g, int status) {
  if (!g->refusals || status != NVM_ERR_UNSUPPORTED || strstr(nvb_message(), "fatal")) return 0;
  return ++*g->refusals;
}

static inline void gate_compile(gate_job *j, nvf_schedule *s, const char *name, int most) {
  nvc_object o;
  nvc_code *code;
  int status = nvc_compile(&o, j->k, s, nvc_target_host(), most);
  if (gate_refused(j->g, status)) return;
  ck_assert_msg(status == NVM_OK, "%s: %s: %s", j->g->file, name, nvb_message());
  ck_assert_msg(nvc_load(&code, &o) == NVM_OK, "%s: %s: %s", j->g->file, name, nvb_message());
  ck_assert_int_eq(o.baseline != 0, most != 0);
  gate_way way = { most ? "baseline code" : "compiled", o.scratch, gate_on_cpu, NULL, nvc_code_entry(code), NULL };
  gate_call(j, s, name, &way);
  nvc_code_free(code);
  nvb_free(o.bytes);
}

/* Schedules for GPUs are gpu1, gpu2 ..., or gpuP1 ... where a test asks for another prefix P than "cpu"; those with
   hints about alignment gpuv1, gpuPv1 ... */
static inline int gate_for_gpu(const gate *g, const char *name) {
  const char *p = strcmp(g->prefix, "cpu") == 0 ? "" : g->prefix;
  if (strncmp(name, "gpu", 3) != 0 || strncmp(name + 3, p, strlen(p)) != 0) return 0;
  name += 3 + strlen(p);
  name += *name == 'v' && g->aligned;
  return *name >= '0' && *name <= '9';
}

#ifdef GATE_CUDA
#include "gate_cuda.h"
#else
/* Optimised and baseline code; of the two a sanitizer's build, which sees nothing of what LLVM makes, takes baseline
   code, since most of the time goes into LLVM's passes. */
enum { GATE_CODES = ONE_IN > 1 ? 1 : 2 };
static inline int gate_runs(const gate_job *j) { return j->k->nsched * (nvc_llvm_available() ? 1 + GATE_CODES : 1); }

static inline void gate_work(nvb_arena *a, void *arg) {
  gate_job *j = arg;
  j->k = nvf_kernel_parse(a, j->text, j->g->file);
  for (int i = 0; i < j->k->nsched; i++) {
    const char *name = j->k->sched_name[i];
    int for_gpu = gate_for_gpu(j->g, name);
    if (!for_gpu && strncmp(name, j->g->prefix, strlen(j->g->prefix)) != 0) continue;
    gate_interpret(a, j, j->k->sched[i], name);
#ifndef GATE_INTERPRETED
    for (int most = 2 - GATE_CODES; most < 2 && !for_gpu && !j->g->interpreted && nvc_llvm_available(); most++)
      gate_compile(j, j->k->sched[i], name, most);
#endif
  }
}
#endif

/* Leaves the first run's outputs in the arguments. */
static inline void gate_run(const gate *g) {
  nvb_arena *a = nvb_arena_new();
  gate_job j = { .g = g, .text = g->text ? strdup(g->text) : gate_text(g->file) };
  for (int i = 0; i < g->narg; i++)
    if (g->arg[i].out) {
      size_t bytes = (size_t)g->arg[i].n * (size_t)nvg_size(g->arg[i].type);
      j.initial[i] = malloc(bytes + 1);
      memcpy(j.initial[i], g->arg[i].data, bytes);
    }
  int status = nvb_protect(a, gate_work, &j);
  ck_assert_msg(status == NVM_OK, "%s", nvb_message());
  ck_assert_msg(j.runs > 0, "%s has no schedule %s", g->file, g->prefix);
  for (int i = 0; i < g->narg; i++) {
    if (!g->arg[i].out) continue;
    memcpy(g->arg[i].data, j.first[i], (size_t)g->arg[i].n * (size_t)nvg_size(g->arg[i].type));
    free(j.first[i]);
    free(j.initial[i]);
  }
  nvb_arena_free(a);
  free(j.text);
}

/* ---- numbers */
static uint32_t gate_seed = 1;
static inline double gate_uniform(void) {
  gate_seed = gate_seed * 1664525 + 1013904223;
  return (gate_seed >> 8) / 16777216.0;
}
static inline float *gate_floats(int64_t n, double lo, double hi) {
  float *x = malloc(sizeof *x * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) x[i] = (float)(lo + (hi - lo) * gate_uniform());
  return x;
}
/* |got - want| <= tol (1 + |want|) */
static inline void gate_close(const char *what, int64_t i, double got, double want, double tol) {
  ck_assert_msg(fabs(got - want) <= tol * (1 + fabs(want)), "%s[%lld] is %.9g, should be %.9g", what, (long long)i, got,
                want);
}
#endif
