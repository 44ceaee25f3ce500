/* The OpenBLAS solver; the library is loaded with dlopen at first use. Decides how a GEMM with an epilogue becomes
   calls of ?gemm: the result starts as beta * c + bias and ReLU clips it in place; 16-bit operands are upcast by panels
   of k. The library's own threads wait for each other by spinning, so the pool's threads call it for single tiles or
   batches instead, except in a build with OpenMP, which cannot be called from several threads. Runs one product at a
   time. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/library.h"
#include "base/lock.h"
#include "base/pool.h"
#include "dispatch/half_rows.h"
#include "dispatch/solve/lapack.h"
#include "frag/dtype.h"

enum {
  BY_COLUMNS = 102,
  PLAIN = 111,
  TURNED = 112,
  LOWER = 122, /* constants of CBLAS */
  PTHREADS = 1,
  OPENMP = 2, /* kinds of threading */
  PANEL = 1024,
  CHUNK = 1 << 14,
  WIDENED = 512
};

/* ---- the library */
#define GEMM(T, S) int order, int ta, int tb, int m, int n, int k, S alpha, const T *a, int lda, const T *b, int ldb, \
                   S beta, T *c, int ldc
#define SYRK(T, S) int order, int uplo, int t, int n, int k, S alpha, const T *a, int lda, S beta, T *c, int ldc
static struct {
  void (*sgemm)(GEMM(float, float));
  void (*dgemm)(GEMM(double, double));
  void (*cgemm)(GEMM(void, const void *));
  void (*zgemm)(GEMM(void, const void *));
  void (*ssyrk)(SYRK(float, float));
  void (*dsyrk)(SYRK(double, double));
  void (*csyrk)(SYRK(void, const void *));
  void (*zsyrk)(SYRK(void, const void *));
  void (*set_threads)(int n);
  int (*get_threads)(void);
  int (*parallel)(void);
  const char *(*config)(void);
  const char *(*core)(void);
} blas;
static const char without_blas[] = "matrix products run in kernels of their own, several times slower";
static char line[256], why_not[384];
static void *library;
static int opened, ready, forked; /* the status of opening; 1 once it has succeeded; 1 in a child forked after it */
static int callers = 1;           /* threads that may call the library at the same time: each uses one of its buffers */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvb_lock lock = NVB_LOCK(OPENBLAS);

static void note_fork(void) { forked |= ready; }
NVB_HOLD_AT_FORK(lock);
NVB_AT_FORK(.in_child = note_fork);

/* The build that PyPI has (scipy-openblas32) puts a prefix before its names, so that they meet no others. */
static int find_symbols(const char *what, const nvb_symbol *s, int n) {
  void (*found)(void);
  nvb_library_symbols(library, what, &(nvb_symbol){ "scipy_cblas_sgemm", &found, 1 }, 1);
  return nvb_library_prefixed(library, found ? "scipy_" : "", what, s, n);
}

static int open_library(void) {
  static const nvb_symbol symbol[] = {
#define ROW(member, name) { name, (void (**)(void))&blas.member, 0 }
    ROW(sgemm, "cblas_sgemm"),
    ROW(dgemm, "cblas_dgemm"),
    ROW(cgemm, "cblas_cgemm"),
    ROW(zgemm, "cblas_zgemm"),
    ROW(ssyrk, "cblas_ssyrk"),
    ROW(dsyrk, "cblas_dsyrk"),
    ROW(csyrk, "cblas_csyrk"),
    ROW(zsyrk, "cblas_zsyrk"),
    ROW(set_threads, "openblas_set_num_threads"),
    ROW(get_threads, "openblas_get_num_threads"),
    ROW(parallel, "openblas_get_parallel"),
    ROW(config, "openblas_get_config"),
    ROW(core, "openblas_get_corename"),
#undef ROW
  };
  library = nvb_library_open_other((const char *const[]){ "libscipy_openblas.so", "libopenblas.so.0", NULL });
  return library ? find_symbols("OpenBLAS", symbol, (int)(sizeof symbol / sizeof *symbol)) : nvb_status();
}

static void open_once(void) {
  static const char *const threading[] = { "no threads", "pthreads", "OpenMP" };
  unsigned fp = nvb_fp_enter(); /* the library's threads inherit the floating-point environment */
  opened = open_library();
  nvb_fp_leave(fp);
  if (!opened && !nvb_fork_seen()) opened = nvb_fail_memory();
  ready = !opened;
  if (opened) {
    snprintf(line, sizeof line, "not found (`pip install scipy-openblas32`, or Debian's libopenblas0-pthread): %s",
             without_blas);
    snprintf(why_not, sizeof why_not, "%s", nvb_message());
    return;
  }
  int version[3] = { 0 }, kind = blas.parallel();
  sscanf(blas.config(), "OpenBLAS %d.%d.%d", &version[0], &version[1], &version[2]);
  const char *most = strstr(blas.config(), "MAX_THREADS=");
  if (kind == PTHREADS && most) sscanf(most, "MAX_THREADS=%d", &callers);
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

int nvd_openblas_symbols(const char *what, const nvb_symbol *s, int n) {
  return is_open() ? find_symbols(what, s, n) : nvb_fail(opened, "%s", why_not);
}

int nvd_openblas_callers(int threads) { return blas.parallel() == OPENMP ? 1 : threads < callers ? threads : callers; }

int nvd_openblas_begin(int own) {
  nvb_lock_take(&lock);
  if (blas.parallel() == OPENMP && forked) own = 1;
  int before = blas.get_threads();
  if (before != own) blas.set_threads(own);
  return before;
}

void nvd_openblas_end(int before) { /* the setting belongs to the whole process */
  if (blas.get_threads() != before) blas.set_threads(before);
  nvb_lock_give(&lock);
}

/* ---- what it supports */
static int has_gemm(nvm_dtype t) { return t == NVM_F32 || t == NVM_F64 || t == NVM_C64 || t == NVM_C128; }

static int is_16(nvm_dtype t) { return nvg_is_narrow(t) && nvg_size(t) == 2; }
static int may_be_added(nvm_dtype t, nvm_dtype sum) { return t == sum || (is_16(t) && sum == NVM_F32); }

static const char *reject_task(const nvd_task *t) {
  const nvd_gemm *g = &t->g;
  int halves = is_16(g->a.type) && is_16(g->b.type) && g->accumulate == NVM_F32;
  if (!is_open()) return why_not;
  if (!halves && (g->a.type != g->accumulate || g->b.type != g->accumulate || !has_gemm(g->accumulate)))
    return "it has no product of these types";
  if (g->d.type != g->accumulate && !(halves && is_16(g->d.type))) return "the result has another type than the sums";
  if ((g->c.param >= 0 && !may_be_added(g->c.type, g->accumulate)) ||
      (g->bias.param >= 0 && !may_be_added(g->bias.type, g->accumulate)))
    return "what is added has another type than the sums";
  if (g->aux.param >= 0) return "the value before the activation is asked for too";
  if (g->act == NVF_ACT_GELU) return "it has no GELU";
  if (g->act != NVF_ACT_NONE && nvg_parts(g->accumulate) > 1) return "the activation is of a complex value";
  return NULL;
}

/* Elements of one row of a panel. */
static int64_t panel_row(const nvd_gemm *g) { return (g->k < PANEL ? g->k : PANEL) + 16; }

/* Bytes of the sums that are computed apart from the result; the workspace holds these, and the panels behind them. */
static int64_t bytes_of_sums(const nvd_gemm *g) {
  return g->d.type == g->accumulate ? 0 : (g->m * g->n * nvg_size(g->accumulate) + 63) / 64 * 64;
}
static int64_t workspace_bytes(const nvd_gemm *g) {
  return bytes_of_sums(g) + (g->a.type == g->accumulate ? 0 : (g->m + g->n) * panel_row(g) * (int64_t)sizeof(float));
}

typedef struct solution {
  nvd_solution base;
  int threads; /* 0: all threads of the pool */
} solution;

static nvd_solution *prepare_solution(nvb_arena *a, const nvd_task *t, const nvd_solver_choice *choice,
                                      const char **why) {
  solution *s = NVB_NEW(a, solution);
  int32_t threads;
  memcpy(&threads, choice->config, sizeof threads);
  s->base.g = t->g;
  s->base.workspace = workspace_bytes(&t->g);
  s->threads = threads > 0 ? threads : 0;
  (void)why;
  return &s->base;
}

static int list_options(nvd_solver_option *out, int most, const nvd_task *t) {
  int n = 0;
  (void)t;
  for (int32_t threads = nvb_pool_threads(); threads && n < most; threads /= 2) {
    nvd_solver_option *c = &out[n++];
    *c = (nvd_solver_option){ .workspace = 0 };
    if (n > 1) memcpy(c->choice.config, &threads, sizeof threads);
    snprintf(c->what, sizeof c->what, "OpenBLAS, %d thread%s", (int)threads, threads > 1 ? "s" : "");
  }
  return n;
}

/* ---- passes over the columns of d, before and after the product, run by the pool */
typedef struct pass {
  const nvd_gemm *g;
  char *d;
  const char *c, *bias; /* NULL: none */
  double beta;
} pass;

/* d = beta * c + bias for one column; P: components of an element; strides in elements. With complex elements beta is
   complex too, with imaginary part 0 (which tiles infinities into NaN), unless it is 1 or -1. */
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

/* The same if c or bias has 16-bit elements. */
static void upcast_column(float *to, const nvd_matrix *x, const char *from,
                          int64_t n) { /* upcasts n rows of a column */
  int64_t size = nvg_size(x->type);
  for (int64_t i = 0; i < n && x->row != 1; i++) nvd_widen(to + i, from + i * x->row * size, x->type, 1);
  if (x->row == 1) nvd_widen(to, from, x->type, n);
}
static void start_f16(const pass *x, int64_t j) {
  const nvd_matrix *c = &x->g->c, *bias = &x->g->bias;
  const char *from = x->c ? x->c + j * c->col * nvg_size(c->type) : NULL;
  const char *add = x->bias ? x->bias + j * bias->col * nvg_size(bias->type) : NULL;
  float *d = (float *)(void *)x->d + j * x->g->d.ld, beta = (float)x->beta, some[WIDENED];
  for (int64_t i = 0, n; i < x->g->m; i += n, d += n) {
    n = x->g->m - i < WIDENED ? x->g->m - i : WIDENED;
    if (from) upcast_column(d, c, from + i * c->row * nvg_size(c->type), n);
    if (add) upcast_column(some, bias, add + i * bias->row * nvg_size(bias->type), n);
    for (int64_t k = 0; k < n; k++) d[k] = (from ? beta * d[k] : 0) + (add ? some[k] : 0);
  }
}

/* ReLU in place: NaN stays, -0 becomes 0. */
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
  for (int64_t j = lo; j < hi; j++) switch (x->g->accumulate) {
    case NVM_F32: (halves ? start_f16 : start_float1)(x, j); break;
    case NVM_C64: start_float2(x, j); break;
    case NVM_F64: start_double1(x, j); break;
    default: start_double2(x, j);
    }
}

static void clip_columns(void *arg, int64_t lo, int64_t hi, int worker) {
  const pass *x = arg;
  (void)worker;
  for (int64_t j = lo; j < hi; j++) (x->g->accumulate == NVM_F32 ? clip_float : clip_double)(x, j);
}

static int64_t column_grain(int64_t m) { return m < CHUNK ? CHUNK / (m + 1) + 1 : 1; }

/* ---- the product */
typedef struct part { /* d = alpha op(a) op(b) + beta d, as one call or as tiles */
  nvm_dtype type;
  int ta, tb, threads;                        /* threads: number that share the tiles */
  int symmetric;                              /* b is a transposed: tiles below the diagonal are mirrored above it */
  int64_t m, n, k, lda, ldb, ldd, rows, cols; /* rows, cols: extents of a tile */
  double alpha, beta;
  const char *a, *b;
  char *d;
} part;

static void call_gemm(const part *x) {
  int m = (int)x->m, n = (int)x->n, k = (int)x->k, lda = (int)x->lda, ldb = (int)x->ldb, ldd = (int)x->ldd;
  int ta = x->ta ? TURNED : PLAIN, tb = x->tb ? TURNED : PLAIN;
  const void *a = x->a, *b = x->b;
  void *d = x->d;
  float alpha[] = { (float)x->alpha, 0 }, beta[] = { (float)x->beta, 0 };
  switch (x->type) {
  case NVM_F32: blas.sgemm(BY_COLUMNS, ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, d, ldd); break;
  case NVM_F64: blas.dgemm(BY_COLUMNS, ta, tb, m, n, k, x->alpha, a, lda, b, ldb, x->beta, d, ldd); break;
  case NVM_C64: blas.cgemm(BY_COLUMNS, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, d, ldd); break;
  default:
    blas.zgemm(BY_COLUMNS, ta, tb, m, n, k, (double[]){ x->alpha, 0 }, a, lda, b, ldb, (double[]){ x->beta, 0 }, d,
               ldd);
  }
}

/* A tile on the diagonal of a product with the transpose of the same matrix: what is on and below the diagonal. */
static void call_syrk(const part *x) {
  int n = (int)x->n, k = (int)x->k, lda = (int)x->lda, ldd = (int)x->ldd, t = x->ta ? TURNED : PLAIN;
  const void *a = x->a;
  void *d = x->d;
  float alpha[] = { (float)x->alpha, 0 }, beta[] = { (float)x->beta, 0 };
  switch (x->type) {
  case NVM_F32: blas.ssyrk(BY_COLUMNS, LOWER, t, n, k, *alpha, a, lda, *beta, d, ldd); break;
  case NVM_F64: blas.dsyrk(BY_COLUMNS, LOWER, t, n, k, x->alpha, a, lda, x->beta, d, ldd); break;
  case NVM_C64: blas.csyrk(BY_COLUMNS, LOWER, t, n, k, alpha, a, lda, beta, d, ldd); break;
  default:
    blas.zsyrk(BY_COLUMNS, LOWER, t, n, k, (double[]){ x->alpha, 0 }, a, lda, (double[]){ x->beta, 0 }, d, ldd);
  }
}

static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Copies what is below the diagonal of d, and in the tile at (i, j), to its mirror image. */
typedef struct pair { uint64_t re, im; } pair;
#define MIRROR(T) \
  static void mirror_##T(const part *x, T *d, int64_t i, int64_t j) { \
    enum { SIDE = 16 }; \
    for (int64_t c0 = j; c0 < j + x->n; c0 += SIDE) \
      for (int64_t r0 = i; r0 < i + x->m; r0 += SIDE) \
        for (int64_t c = c0; c < c0 + SIDE && c < j + x->n; c++) \
          for (int64_t r = r0 > c ? r0 : c + 1; r < r0 + SIDE && r < i + x->m; r++) \
            d[c + r * x->ldd] = d[r + c * x->ldd]; \
  }
MIRROR(uint32_t)
MIRROR(uint64_t)
MIRROR(pair)

static void mirror_tile(const part *x, char *d, int64_t i, int64_t j) {
  switch (nvg_size(x->type)) {
  case 4: mirror_uint32_t(x, (uint32_t *)(void *)d, i, j); break;
  case 8: mirror_uint64_t(x, (uint64_t *)(void *)d, i, j); break;
  default: mirror_pair(x, (pair *)(void *)d, i, j);
  }
}

static void call_tiles(void *arg, int64_t lo, int64_t hi, int worker) {
  const part *all = arg;
  int64_t down = div_up(all->m, all->rows), size = nvg_size(all->type);
  (void)worker;
  for (int64_t t = lo; t < hi; t++) {
    part x = *all;
    int64_t i = t % down * x.rows, j = t / down * x.cols;
    if (x.symmetric && i < j) continue;
    x.m = x.m - i < x.rows ? x.m - i : x.rows;
    x.n = x.n - j < x.cols ? x.n - j : x.cols;
    x.a += (x.ta ? i * x.lda : i) * size;
    x.b += (x.tb ? j : j * x.ldb) * size;
    x.d += (i + j * x.ldd) * size;
    (x.symmetric && i == j ? call_syrk : call_gemm)(&x);
    if (x.symmetric) mirror_tile(&x, all->d, i, j);
  }
}

/* The number of real multiplications. */
static double work_of(nvm_dtype t, int64_t m, int64_t n, int64_t k) {
  return (double)m * (double)n * (double)k * (nvg_parts(t) > 1 ? 4 : 1);
}

/* The number of threads that this much work is worth waking. */
static int threads_for(double work, int threads) {
  enum { LEAST = 1 << 17 }; /* multiplications; 2 to 5 us of a core */
  return work < 2.0 * LEAST ? 1 : work < (double)threads * LEAST ? (int)(work / LEAST) : threads;
}

/* The extent of a tile if [0, n) is divided into `parts`: a multiple of the register block of the library's kernels. */
static int64_t tile_length(int64_t n, int64_t parts) {
  enum { REGISTERS = 48 };
  int64_t length = div_up(div_up(n, parts), REGISTERS) * REGISTERS;
  return length < n ? length : n;
}

/* Chooses the grid of `tiles` tiles whose largest tile takes the least time; each tile packs its own operands. */
static void choose_tiles(part *x, int64_t tiles) {
  enum { PACK = 8 }; /* multiplications in the time that packing one element takes */
  double least = INFINITY;
  for (int64_t down = 1; down <= tiles; down++) {
    int64_t rows = tile_length(x->m, down), cols = tile_length(x->n, tiles / down);
    double time = (double)rows * (double)cols + PACK * (double)(rows + cols);
    if (tiles % down || time >= least) continue;
    least = time;
    x->rows = rows;
    x->cols = cols;
  }
}

/* The number of tiles along each side of a product whose upper half is not computed: one for one thread, since the
   library's own blocks lose least (AVX2, one thread, 1000 x 1000, time by that of the whole product: float32 0.58, in 5
   by 5 tiles 0.60; float64 0.63, 0.61); else about four for each thread on and below the diagonal. */
static int64_t symmetric_tiles(int64_t m, int threads) {
  enum { SIDE = 96, EACH = 4 };
  int64_t n = 1;
  while (threads > 1 && n * (n + 1) / 2 < (int64_t)EACH * threads && m / (n + 1) >= SIDE) n++;
  return n;
}

/* Is it a product with the transpose of the same matrix, large enough to compute only half of it? */
static int is_symmetric(const part *x) {
  enum { LEAST = 384 };
  return x->a == x->b && x->m == x->n && x->lda == x->ldb && x->ta != x->tb && x->beta == 0 && x->m >= LEAST &&
         x->k > 1;
}

/* Multiplies with one tile for each thread, or several if they are still large, so that a thread that is held up gets
   fewer. */
static void multiply_tiles(part x) {
  enum { LARGE = 1 << 25, MOST = 4 };
  double work = work_of(x.type, x.m, x.n, x.k), tiles = work / LARGE / x.threads;
  int threads = threads_for(work, x.threads);
  if (x.symmetric) x.rows = x.cols = tile_length(x.m, symmetric_tiles(x.m, threads));
  else choose_tiles(&x, threads * (tiles < 1 ? 1 : tiles < MOST ? (int64_t)tiles : MOST));
  nvb_pool_run_with(threads, call_tiles, &x, div_up(x.m, x.rows) * div_up(x.n, x.cols), 1);
}

/* Upcasts part of a matrix to contiguous f32 columns: `len` elements of each column in memory; or (back) converts f32
   columns to 16 bits. */
typedef struct move { char *half; float *full; nvm_dtype type; int64_t ld, len, full_ld; int back; } move;
static void move_columns(void *arg, int64_t lo, int64_t hi, int worker) {
  const move *x = arg;
  (void)worker;
  for (int64_t j = lo; j < hi; j++) {
    char *half = x->half + j * x->ld * nvg_size(x->type);
    if (x->back) nvd_narrow(half, x->full + j * x->full_ld, x->type, x->len);
    else nvd_widen(x->full + j * x->full_ld, half, x->type, x->len);
  }
}

/* Upcasts the panel k0 <= k < k0 + kp of an operand; k runs over its columns (k_is_column) or its rows, and `other` is
   its other extent. */
static void upcast_panel(float *to, const nvd_matrix *x, char *at, int k_is_column, int64_t other, int64_t k0,
                         int64_t kp, int threads) {
  int along = x->trans == k_is_column; /* k is contiguous in memory */
  move w = { .half = at + k0 * (along ? 1 : x->ld) * nvg_size(x->type),
             .full = to,
             .type = x->type,
             .ld = x->ld,
             .len = along ? kp : other };
  w.full_ld = w.len;
  nvb_pool_run_with(threads, move_columns, &w, along ? other : kp, column_grain(w.len));
}

/* Multiplies 16-bit operands by panels of k, which are upcast into wa. */
static void multiply_halves(const nvd_gemm *g, part x, float *wa, int threads) {
  float *wb = wa + g->m * panel_row(g);
  char *a = (char *)(uintptr_t)x.a, *b = (char *)(uintptr_t)x.b;
  x.a = (const char *)wa;
  x.b = (const char *)wb;
  for (int64_t k0 = 0; k0 < g->k || k0 == 0; k0 += PANEL) {
    int64_t kp = g->k - k0 < PANEL ? g->k - k0 : PANEL, tall = kp ? kp : 1;
    upcast_panel(wa, &g->a, a, 1, g->m, k0, kp, threads);
    upcast_panel(wb, &g->b, b, 0, g->n, k0, kp, threads);
    x.k = kp;
    x.lda = x.ta ? tall : g->m;
    x.ldb = x.tb ? g->n : tall;
    multiply_tiles(x);
    x.beta = 1;
  }
}

/* ---- running */
typedef struct batch_job {
  const nvd_gemm *g;
  const nvd_run_args *at;
  double alpha, beta;
  int threads, callers; /* threads of the pool for passes; for calls of the library */
} batch_job;

static void run_one(const batch_job *r, int64_t i) {
  const nvd_gemm *g = r->g;
  const uint64_t *arg = r->at->arg;
  char *workspace = r->at->workspace, *d = nvd_matrix_at(g, &g->d, i, arg);
  pass x = {
    .g = g, .d = d, .c = nvd_matrix_at(g, &g->c, i, arg), .bias = nvd_matrix_at(g, &g->bias, i, arg), .beta = r->beta
  };
  int in_place = x.c == d && !x.bias && g->c.row == g->d.row && g->c.col == g->d.col && g->c.type == g->accumulate;
  int starts = (x.c || x.bias) && !in_place, apart = bytes_of_sums(g) > 0;
  nvd_gemm wide = *g;
  if (apart) { /* the sums are packed in the workspace */
    wide.d.ld = g->m;
    x.d = workspace;
    x.g = &wide;
  }
  if (starts) nvb_pool_run_with(r->threads, start_columns, &x, g->n, column_grain(g->m));
  part p = { .type = g->accumulate,
             .ta = g->a.trans,
             .tb = g->b.trans,
             .threads = r->callers,
             .m = g->m,
             .n = g->n,
             .k = g->k,
             .lda = g->a.ld,
             .ldb = g->b.ld,
             .ldd = wide.d.ld,
             .alpha = r->alpha,
             .beta = starts ? 1
                     : x.c  ? r->beta
                            : 0,
             .a = nvd_matrix_at(g, &g->a, i, arg),
             .b = nvd_matrix_at(g, &g->b, i, arg),
             .d = x.d };
  p.symmetric = g->a.type == g->accumulate && is_symmetric(&p);
  if (g->a.type != g->accumulate) multiply_halves(g, p, (float *)(void *)(workspace + bytes_of_sums(g)), r->threads);
  else multiply_tiles(p);
  if (g->act == NVF_ACT_RELU) nvb_pool_run_with(r->threads, clip_columns, &x, g->n, column_grain(g->m));
  if (apart) {
    move back = { d, (float *)(void *)workspace, g->d.type, g->d.ld, g->m, g->m, 1 };
    nvb_pool_run_with(r->threads, move_columns, &back, g->n, column_grain(g->m));
  }
}

static void run_batches(void *arg, int64_t lo, int64_t hi, int worker) {
  (void)worker;
  for (int64_t i = lo; i < hi; i++) run_one(arg, i);
}

/* Runs all batches. With many small ones, each is run by one thread: the pool's calls inside it then run in that thread
   alone. */
static void run_all(batch_job *r) {
  enum { TURNS = 4 };
  const nvd_gemm *g = r->g;
  int threads = threads_for((double)g->batches * work_of(g->accumulate, g->m, g->n, g->k), r->callers);
  int64_t each = div_up(g->batches, (int64_t)threads * TURNS);
  if (g->batches < threads || workspace_bytes(g)) run_batches(r, 0, g->batches, 0);
  else nvb_pool_run_with(threads, run_batches, r, g->batches, each);
}

static int run_solution(nvd_solution *base, const nvd_run_args *at) {
  const nvd_gemm *g = &base->g;
  const solution *s = (const solution *)base;
  int threads = s->threads && s->threads < at->threads ? s->threads : at->threads;
  int own = blas.parallel() == OPENMP ? threads_for(work_of(g->accumulate, g->m, g->n, g->k), threads) : 1;
  batch_job r = { .g = g,
                  .at = at,
                  .alpha = nvd_scale_now(g->alpha, g->alpha_type, at->arg),
                  .beta = nvd_scale_now(g->beta, g->beta_type, at->arg),
                  .threads = threads,
                  .callers = threads < callers ? threads : callers };
  if (!g->m || !g->n) return NVM_OK;
  int before = nvd_openblas_begin(own);
  run_all(&r);
  nvd_openblas_end(before);
  return NVM_OK;
}

static int find_capabilities(void) { /* where TF32 is allowed, the product is IEEE float32 */
  return is_open() ? NVF_CAN_GEMM | NVF_CAN_F16 | NVF_CAN_TF32 | NVF_CAN_BIAS | NVF_CAN_RELU : 0;
}

const nvd_solver nvd_openblas = { .name = "openblas",
                                  .device = NVB_CPU,
                                  .capabilities = find_capabilities,
                                  .rejects = reject_task,
                                  .options = list_options,
                                  .prepare = prepare_solution,
                                  .run = run_solution,
                                  .free = NULL };
