/* OpenBLAS, opened while the program runs. Decides how a product with a tail becomes calls of ?gemm: the result
   starts as beta * c + bias, which costs what clearing it would, and is clipped where it lies; 16-bit operands are
   widened by panels of k. It is called from one thread at a time, with the pool's number of threads. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/library.h"
#include "base/pool.h"
#include "dispatch/halves.h"
#include "dispatch/solve.h"
#include "graph/dtype.h"

enum { BY_COLUMNS = 102, PLAIN = 111, TURNED = 112, OPENMP = 2, PANEL = 1024, CHUNK = 1 << 14, WIDENED = 512 };

/* ---- the library */
#define GEMM(T, S) int order, int ta, int tb, int m, int n, int k, S alpha, const T *a, int lda, const T *b, int ldb, \
                   S beta, T *c, int ldc
static struct {
  void (*sgemm)(GEMM(float, float));
  void (*dgemm)(GEMM(double, double));
  void (*cgemm)(GEMM(void, const void *));
  void (*zgemm)(GEMM(void, const void *));
  void (*set_threads)(int n);
  int (*get_threads)(void);
  int (*parallel)(void);
  const char *(*config)(void);
  const char *(*core)(void);
} blas;
static const char lost[] = "matrix products run in kernels of their own, several times slower";
static char line[256], why_not[384];
static int opened, forked;                     /* status of opening; this process is a child */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void hold(void) { pthread_mutex_lock(&lock); }
static void let_go(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) {
  forked = 1;
  let_go();
}

static int open_library(void) {
  static const nvb_symbol symbol[] = {
#define ROW(member, name) { name, (void (**)(void))&blas.member, 0 }
    ROW(sgemm, "cblas_sgemm"), ROW(dgemm, "cblas_dgemm"), ROW(cgemm, "cblas_cgemm"), ROW(zgemm, "cblas_zgemm"),
    ROW(set_threads, "openblas_set_num_threads"), ROW(get_threads, "openblas_get_num_threads"),
    ROW(parallel, "openblas_get_parallel"), ROW(config, "openblas_get_config"), ROW(core, "openblas_get_corename"),
#undef ROW
  };
  void *handle = nvb_library_open_system("libopenblas.so.0");
  return handle ? nvb_library_symbols(handle, "OpenBLAS", symbol, (int)(sizeof symbol / sizeof *symbol)) : nvb_status();
}

static void open_once(void) {
  static const char *const threading[] = { "no threads", "pthreads", "OpenMP" };
  unsigned fp = nvb_fp_enter();                /* its threads inherit the floating-point environment */
  opened = open_library();
  nvb_fp_leave(fp);
  if (!opened && pthread_atfork(hold, let_go, in_child))
    opened = nvb_fail_memory();
  if (opened) {
    snprintf(line, sizeof line, "not found (libopenblas.so.0, Debian's libopenblas0-pthread): %s", lost);
    snprintf(why_not, sizeof why_not, "%s", nvb_message());
    return;
  }
  int version[3] = { 0 }, kind = blas.parallel();
  sscanf(blas.config(), "OpenBLAS %d.%d.%d", &version[0], &version[1], &version[2]);
  snprintf(line, sizeof line, "%d.%d.%d for %s, %s", version[0], version[1], version[2], blas.core(),
           kind >= 0 && kind <= OPENMP ? threading[kind] : "unknown threads");
}

static int is_open(void) {
  pthread_once(&once, open_once);
  return !opened;
}

const char *nvd_openblas_line(void) {
  is_open();
  return line;
}

/* ---- what it takes */
static int has_gemm(nvm_dtype t) { return t == NVM_F32 || t == NVM_F64 || t == NVM_C64 || t == NVM_C128; }

static int is_16(nvm_dtype t) { return nvg_is_narrow(t) && nvg_size(t) == 2; }
static int may_be_added(nvm_dtype t, nvm_dtype sum) { return t == sum || (is_16(t) && sum == NVM_F32); }

static const char *takes(const nvd_task *t) {
  const nvd_gemm *g = &t->g;
  int halves = is_16(g->a.type) && is_16(g->b.type) && g->accumulate == NVM_F32;
  if (!is_open())
    return why_not;
  if (!halves && (g->a.type != g->accumulate || g->b.type != g->accumulate || !has_gemm(g->accumulate)))
    return "it has no product of these types";
  if (g->d.type != g->accumulate && !(halves && is_16(g->d.type)))
    return "the result has another type than the sums";
  if ((g->c.param >= 0 && !may_be_added(g->c.type, g->accumulate)) ||
      (g->bias.param >= 0 && !may_be_added(g->bias.type, g->accumulate)))
    return "what is added has another type than the sums";
  if (g->aux.param >= 0)
    return "the value before the activation is asked for too";
  if (g->act == NVF_ACT_GELU)
    return "it has no GELU";
  if (g->act != NVF_ACT_NONE && nvg_parts(g->accumulate) > 1)
    return "the activation is of a complex value";
  return NULL;
}

/* Elements of a row of a panel */
static int64_t panel(const nvd_gemm *g) { return (g->k < PANEL ? g->k : PANEL) + 16; }

/* Bytes of sums that lie elsewhere than where they are stored; of these and of the panels behind them. */
static int64_t bytes_of_sums(const nvd_gemm *g) {
  return g->d.type == g->accumulate ? 0 : (g->m * g->n * nvg_size(g->accumulate) + 63) / 64 * 64;
}
static int64_t workspace(const nvd_gemm *g) {
  return bytes_of_sums(g) + (g->a.type == g->accumulate ? 0 : (g->m + g->n) * panel(g) * (int64_t)sizeof(float));
}

typedef struct solution {
  nvd_solution base;
  int threads;                                 /* 0: as many as the pool has */
} solution;

static nvd_solution *prepare(nvb_arena *a, const nvd_task *t, const nvd_choice *choice, const char **why) {
  solution *s = NVB_NEW(a, solution);
  int32_t threads;
  memcpy(&threads, choice->config, sizeof threads);
  s->base.g = t->g;
  s->base.workspace = workspace(&t->g);
  s->threads = threads > 0 ? threads : 0;
  (void)why;
  return &s->base;
}

static int candidates(nvd_candidate *out, int most, const nvd_task *t) {
  int n = 0;
  (void)t;
  for (int32_t threads = nvb_pool_threads(); threads && n < most; threads /= 2) {
    nvd_candidate *c = &out[n++];
    *c = (nvd_candidate){ .workspace = 0 };
    if (n > 1)
      memcpy(c->choice.config, &threads, sizeof threads);
    snprintf(c->what, sizeof c->what, "OpenBLAS, %d thread%s", (int)threads, threads > 1 ? "s" : "");
  }
  return n;
}

/* ---- what the result starts as, and what is done with it: columns of d, by the pool */
typedef struct pass {
  const nvd_gemm *g;
  char *d;
  const char *c, *bias;                        /* NULL: none */
  double beta;
} pass;

/* d = beta * c + bias of one column; P parts of an element; strides in elements. Beside pairs beta is one too, with an
   imaginary part of 0 (which infinities do not survive), unless it is a sign. */
#define START(T, P) \
  static void start_##T##P(const pass *x, int64_t j) { \
    const nvd_matrix *c = &x->g->c, *bias = &x->g->bias; \
    T *d = (T *)(void *)x->d + j * x->g->d.ld * P, beta = (T)x->beta; \
    const T *from = x->c ? (const T *)(const void *)x->c + j * c->col * P : NULL; \
    const T *add = x->bias ? (const T *)(const void *)x->bias + j * bias->col * P : NULL; \
    for (int64_t i = 0; i < x->g->m; i++) \
      for (int p = 0; p < P; p++) { \
        T v = from ? beta * from[i * c->row * P + p] : 0; \
        if (P == 2 && from && beta != 1 && beta != -1) \
          v += 0 * from[i * c->row * P + 1 - p]; \
        d[i * P + p] = add ? v + add[i * bias->row * P + p] : v; \
      } \
  }
START(float, 1)
START(float, 2)
START(double, 1)
START(double, 2)

/* The same where 16-bit numbers are added. */
static void take(float *to, const nvd_matrix *x, const char *from, int64_t n) { /* n rows of a column */
  int64_t size = nvg_size(x->type);
  for (int64_t i = 0; i < n && x->row != 1; i++)
    nvd_widen(to + i, from + i * x->row * size, x->type, 1);
  if (x->row == 1)
    nvd_widen(to, from, x->type, n);
}
static void start_halves(const pass *x, int64_t j) {
  const nvd_matrix *c = &x->g->c, *bias = &x->g->bias;
  const char *from = x->c ? x->c + j * c->col * nvg_size(c->type) : NULL;
  const char *add = x->bias ? x->bias + j * bias->col * nvg_size(bias->type) : NULL;
  float *d = (float *)(void *)x->d + j * x->g->d.ld, beta = (float)x->beta, some[WIDENED];
  for (int64_t i = 0, n; i < x->g->m; i += n, d += n) {
    n = x->g->m - i < WIDENED ? x->g->m - i : WIDENED;
    if (from)
      take(d, c, from + i * c->row * nvg_size(c->type), n);
    if (add)
      take(some, bias, add + i * bias->row * nvg_size(bias->type), n);
    for (int64_t k = 0; k < n; k++)
      d[k] = (from ? beta * d[k] : 0) + (add ? some[k] : 0);
  }
}

/* NaN stays, -0 becomes 0. */
#define CLIP(T) \
  static void clip_##T(const pass *x, int64_t j) { \
    T *d = (T *)(void *)x->d + j * x->g->d.ld; \
    for (int64_t i = 0; i < x->g->m; i++) \
      d[i] = d[i] <= 0 ? 0 : d[i]; \
  }
CLIP(float)
CLIP(double)

static void start_columns(void *arg, int64_t lo, int64_t hi, int worker) {
  const pass *x = arg;
  int halves = (x->c && nvg_is_narrow(x->g->c.type)) || (x->bias && nvg_is_narrow(x->g->bias.type));
  (void)worker;
  for (int64_t j = lo; j < hi; j++)
    switch (x->g->accumulate) {
    case NVM_F32: (halves ? start_halves : start_float1)(x, j); break;
    case NVM_C64: start_float2(x, j); break;
    case NVM_F64: start_double1(x, j); break;
    default: start_double2(x, j);
    }
}

static void clip_columns(void *arg, int64_t lo, int64_t hi, int worker) {
  const pass *x = arg;
  (void)worker;
  for (int64_t j = lo; j < hi; j++)
    (x->g->accumulate == NVM_F32 ? clip_float : clip_double)(x, j);
}

static int64_t grain(int64_t m) { return m < CHUNK ? CHUNK / (m + 1) + 1 : 1; }

/* ---- the product */
static void call(const nvd_gemm *g, double alpha, const void *a, int ta, int64_t lda, const void *b, int tb,
                 int64_t ldb, double beta, void *d, int64_t ldd, int64_t k) {
  int m = (int)g->m, n = (int)g->n;
  ta = ta ? TURNED : PLAIN;
  tb = tb ? TURNED : PLAIN;
  switch (g->accumulate) {
  case NVM_F32:
    blas.sgemm(BY_COLUMNS, ta, tb, m, n, (int)k, (float)alpha, a, (int)lda, b, (int)ldb, (float)beta, d, (int)ldd);
    break;
  case NVM_F64:
    blas.dgemm(BY_COLUMNS, ta, tb, m, n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta, d, (int)ldd);
    break;
  case NVM_C64:
    blas.cgemm(BY_COLUMNS, ta, tb, m, n, (int)k, (float[]){ (float)alpha, 0 }, a, (int)lda, b, (int)ldb,
               (float[]){ (float)beta, 0 }, d, (int)ldd);
    break;
  default:
    blas.zgemm(BY_COLUMNS, ta, tb, m, n, (int)k, (double[]){ alpha, 0 }, a, (int)lda, b, (int)ldb,
               (double[]){ beta, 0 }, d, (int)ldd);
  }
}

/* Part of a matrix, `len` elements of each of its columns in memory from element `from` on, as f32 behind each other;
   or the other way. */
typedef struct move { char *half; float *full; nvm_dtype type; int64_t ld, len, full_ld; int back; } move;
static void move_columns(void *arg, int64_t lo, int64_t hi, int worker) {
  const move *x = arg;
  (void)worker;
  for (int64_t j = lo; j < hi; j++) {
    char *half = x->half + j * x->ld * nvg_size(x->type);
    if (x->back)
      nvd_narrow(half, x->full + j * x->full_ld, x->type, x->len);
    else
      nvd_widen(x->full + j * x->full_ld, half, x->type, x->len);
  }
}

/* The panel k0 <= k < k0 + kp of an operand whose k is its columns (of `other` rows), or its rows, as it lies in
   memory. */
static void widen_panel(float *to, const nvd_matrix *x, char *at, int k_is_column, int64_t other, int64_t k0,
                        int64_t kp, int threads) {
  int along = x->trans == k_is_column;         /* k runs along the columns in memory */
  move w = { .half = at + k0 * (along ? 1 : x->ld) * nvg_size(x->type), .full = to, .type = x->type, .ld = x->ld,
             .len = along ? kp : other };
  w.full_ld = w.len;
  nvb_pool_run_with(threads, move_columns, &w, along ? other : kp, grain(w.len));
}

/* d += alpha a b of 16-bit operands, over panels of k, which are made wider in wa. */
static void product_of_halves(const nvd_gemm *g, double alpha, char *a, char *b, double beta, float *d, int64_t ldd,
                              float *wa, int threads) {
  float *wb = wa + g->m * panel(g);
  for (int64_t k0 = 0; k0 < g->k || k0 == 0; k0 += PANEL) {
    int64_t kp = g->k - k0 < PANEL ? g->k - k0 : PANEL;
    widen_panel(wa, &g->a, a, 1, g->m, k0, kp, threads);
    widen_panel(wb, &g->b, b, 0, g->n, k0, kp, threads);
    int64_t tall = kp ? kp : 1;
    call(g, alpha, wa, g->a.trans, g->a.trans ? tall : g->m, wb, g->b.trans, g->b.trans ? g->n : tall, k0 ? 1 : beta, d,
         ldd, kp);
  }
}

/* ---- running */
static void run_one(const nvd_gemm *g, int64_t i, const nvd_place *at, double alpha, double beta, int threads) {
  const uint64_t *arg = at->arg;
  char *a = nvd_matrix_at(g, &g->a, i, arg), *b = nvd_matrix_at(g, &g->b, i, arg), *d = nvd_matrix_at(g, &g->d, i, arg);
  pass x = { .g = g, .d = d, .c = nvd_matrix_at(g, &g->c, i, arg),
             .bias = nvd_matrix_at(g, &g->bias, i, arg), .beta = beta };
  int in_place = x.c == d && !x.bias && g->c.row == g->d.row && g->c.col == g->d.col && g->c.type == g->accumulate;
  int starts = (x.c || x.bias) && !in_place, halves = g->a.type != g->accumulate, apart = bytes_of_sums(g) > 0;
  nvd_gemm wide = *g;
  if (apart) {                                 /* the sums lie behind each other */
    wide.d.ld = g->m;
    x.d = at->workspace;
    x.g = &wide;
  }
  if (starts)
    nvb_pool_run_with(threads, start_columns, &x, g->n, grain(g->m));
  double keep = starts ? 1 : x.c ? beta : 0;
  if (halves)
    product_of_halves(g, alpha, a, b, keep, (float *)(void *)x.d, wide.d.ld,
                      (float *)(void *)((char *)at->workspace + bytes_of_sums(g)), threads);
  else
    call(g, alpha, a, g->a.trans, g->a.ld, b, g->b.trans, g->b.ld, keep, x.d, wide.d.ld, g->k);
  if (g->act == NVF_ACT_RELU)
    nvb_pool_run_with(threads, clip_columns, &x, g->n, grain(g->m));
  if (apart) {
    move back = { d, (float *)at->workspace, g->d.type, g->d.ld, g->m, g->m, 1 };
    nvb_pool_run_with(threads, move_columns, &back, g->n, grain(g->m));
  }
}

static int run(nvd_solution *base, const nvd_place *at) {
  const nvd_gemm *g = &base->g;
  const solution *s = (const solution *)base;
  double alpha = nvd_scale_now(g->alpha, g->alpha_type, at->arg), beta = nvd_scale_now(g->beta, g->beta_type, at->arg);
  int threads = s->threads && s->threads < at->threads ? s->threads : at->threads;
  if (!g->m || !g->n)
    return NVM_OK;
  pthread_mutex_lock(&lock);
  int before = blas.get_threads(), most = forked && blas.parallel() == OPENMP ? 1 : threads;
  if (before != most)
    blas.set_threads(most);
  if (most > 1)
    nvb_pool_rest();
  for (int64_t i = 0; i < g->batches; i++)
    run_one(g, i, at, alpha, beta, threads);
  if (before != most)                          /* others in the process call it too */
    blas.set_threads(before);
  pthread_mutex_unlock(&lock);
  return NVM_OK;
}

static int offers(void) { /* IEEE products where less is allowed */
  return is_open() ? NVF_OFFERS_PRODUCT | NVF_OFFERS_HALVES | NVF_OFFERS_TF32 | NVF_OFFERS_BIAS | NVF_OFFERS_RELU : 0;
}

const nvd_solver nvd_openblas = { "openblas", NVB_CPU, offers, takes, candidates, prepare, run, NULL };
