/* Fourier transforms by cuFFT, which is loaded with dlopen at first use. Plans are shared by all programs and kept in a
   cache; the workspace is the program's. It never decides which transforms cuFFT computes (fusion/transform_ways.c
   does), and never changes an operand. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/library.h"
#include "base/mem.h"
#include "dispatch/cuda/device_impl.h"
#include "dispatch/lru.h"
#include "dispatch/solve/cufft_api.h"
#include "dispatch/solve/solve.h"
#include "frag/dtype.h"

/* ---- the library */
static struct {
#define MEMBER(name, args) int (*name) args;
  NVD_CUFFT(MEMBER)
#undef MEMBER
} fft;
static char line[64], why_not[512];
static int opened;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_once(void) {
  static const char *const soname[] = { "libcufft.so.12", "libcufft.so.11", NULL };
  static const nvb_symbol symbol[] = {
#define ROW(name, args) { #name, (void (**)(void))&fft.name, 0 },
    NVD_CUFFT(ROW)
#undef ROW
  };
  void *handle = nvb_library_open(soname);
  int version = 0, n = (int)(sizeof symbol / sizeof *symbol);
  opened = handle ? nvb_library_symbols(handle, "cuFFT", symbol, n) : nvb_status();
  if (!opened && fft.cufftGetVersion(&version)) opened = nvb_fail(NVM_ERR_UNSUPPORTED, "[cufft] it has no version");
  if (opened) snprintf(why_not, sizeof why_not, "%s", nvb_message());
  else snprintf(line, sizeof line, "%d.%d.%d", version / 1000, version / 100 % 10, version % 100);
}

int nvd_cufft_usable(void) {
  pthread_once(&once, open_once);
  return !opened;
}

const char *nvd_cufft_line(void) { return nvd_cufft_usable() ? line : why_not; }

static const char *name_of(int error) {
  static const char *const name[] = {
    [CUFFT_INVALID_PLAN] = "CUFFT_INVALID_PLAN",       [CUFFT_ALLOC_FAILED] = "CUFFT_ALLOC_FAILED",
    [CUFFT_INVALID_TYPE] = "CUFFT_INVALID_TYPE",       [CUFFT_INVALID_VALUE] = "CUFFT_INVALID_VALUE",
    [CUFFT_INTERNAL_ERROR] = "CUFFT_INTERNAL_ERROR",   [CUFFT_EXEC_FAILED] = "CUFFT_EXEC_FAILED",
    [CUFFT_SETUP_FAILED] = "CUFFT_SETUP_FAILED",       [CUFFT_INVALID_SIZE] = "CUFFT_INVALID_SIZE",
    [CUFFT_INVALID_DEVICE] = "CUFFT_INVALID_DEVICE",   [CUFFT_NO_WORKSPACE] = "CUFFT_NO_WORKSPACE",
    [CUFFT_NOT_IMPLEMENTED] = "CUFFT_NOT_IMPLEMENTED", [CUFFT_NOT_SUPPORTED] = "CUFFT_NOT_SUPPORTED"
  };
  int known = error > 0 && error < (int)(sizeof name / sizeof *name) && name[error];
  return known ? name[error] : "an unknown result";
}

/* ---- plans */
/* What a plan is made for: rows of `stride` between elements and `apart` between rows; results are packed. */
typedef struct shape { int64_t n, rows, stride, apart, result_apart; int type, device; } shape;
typedef struct plan {
  nvd_lru_item item; /* first member */
  nvd_device *device;
  int handle;
  int64_t workspace;
} plan;

static void destroy_plan(nvd_lru_item *item) {
  plan *p = (plan *)item;
  if (!nvd_cuda_forked) { /* else it belongs to the parent process */
    int entered = nvd_enter(p->device);
    fft.cufftDestroy(p->handle);
    nvd_leave(entered);
  }
  nvb_free(p);
}
enum { KEEP = 16 }; /* plans that no program has; those of long lengths have tables in the device's memory */
static nvd_lru cache = NVD_LRU(CUFFT, KEEP, INT64_MAX, destroy_plan);
NVB_HOLD_AT_FORK(cache.lock);

/* Makes the plan p, without a workspace. Returns a cuFFT result. */
static int make_plan(plan *p, const shape *s) {
  long long n = s->n;
  size_t workspace = 0;
  int entered = nvd_enter(p->device), error = fft.cufftCreate(&p->handle);
  if (!error) {
    error = fft.cufftSetAutoAllocation(p->handle, 0);
    if (!error)
      error = fft.cufftMakePlanMany64(p->handle, 1, &n, &n, s->stride, s->apart, &n, 1, s->result_apart, s->type,
                                      s->rows, &workspace);
    if (error) fft.cufftDestroy(p->handle);
  }
  nvd_leave(entered);
  p->workspace = (int64_t)workspace;
  return error;
}

/* Returns a counted reference to a plan of this shape; NULL with a cuFFT result in *error, 0 if memory ran out. */
static plan *find_plan(const shape *s, nvd_device *d, int *error) {
  nvb_hash key = nvb_hash_bytes(s, sizeof *s);
  nvd_lru_item *item = nvd_lru_get(&cache, key);
  *error = 0;
  if (item) return (plan *)item;
  plan *p = nvb_calloc(1, sizeof *p);
  if (!p) return NULL;
  p->item.key = key;
  p->device = d;
  if (!(*error = make_plan(p, s))) return (plan *)nvd_lru_insert(&cache, &p->item);
  nvb_free(p);
  return NULL;
}

/* ---- steps */
enum { ALIGN = 256 };
typedef struct solution {
  nvd_solution base;
  const char *what; /* the operation that the user called */
  nvg_dft kind;
  nvm_dtype type; /* of the operand */
  int64_t n;
  plan *p; /* NULL: there is nothing to transform */
  int64_t
      copied; /* bytes of the operand, if cuFFT would overwrite what is still needed; they lie before its workspace */
  int64_t result; /* bytes */
  int copies;     /* buffers that receive the result */
} solution;

static int type_of(nvg_dft kind, nvm_dtype operand) {
  static const int type[][2] = { [NVG_DFT_FORWARD] = { CUFFT_C2C, CUFFT_Z2Z },
                                 [NVG_DFT_INVERSE] = { CUFFT_C2C, CUFFT_Z2Z },
                                 [NVG_DFT_REAL] = { CUFFT_R2C, CUFFT_D2Z },
                                 [NVG_DFT_TO_REAL] = { CUFFT_C2R, CUFFT_Z2D } };
  return type[kind][nvg_real_of(operand) == NVM_F64];
}

static int execute(const solution *s, void *from, void *to) { /* a cuFFT result */
  int direction = s->kind == NVG_DFT_INVERSE ? CUFFT_INVERSE : CUFFT_FORWARD, plan = s->p->handle;
  switch (type_of(s->kind, s->type)) {
  case CUFFT_C2C: return fft.cufftExecC2C(plan, from, to, direction);
  case CUFFT_Z2Z: return fft.cufftExecZ2Z(plan, from, to, direction);
  case CUFFT_R2C: return fft.cufftExecR2C(plan, from, to);
  case CUFFT_D2Z: return fft.cufftExecD2Z(plan, from, to);
  case CUFFT_C2R: return fft.cufftExecC2R(plan, from, to);
  default: return fft.cufftExecZ2D(plan, from, to);
  }
}

static int fail_step(const solution *s, int error) {
  return nvb_fail(NVM_ERR_DEVICE, "[%s] cuFFT fails to transform %lld points of %s: %s (%d)", s->what, (long long)s->n,
                  nvg_dtype_name(s->type), name_of(error), error);
}

static int copy_to(void *to, const void *from, int64_t bytes, void *stream) {
  int error = nvd_cu.cudaMemcpyAsync(to, from, (size_t)bytes, CUDA_ON_DEVICE, stream);
  return error ? nvd_cuda_status(error, "fft") : NVM_OK;
}

static int run_solution(nvd_solution *base, const nvd_run_args *at) {
  const solution *s = (const solution *)base;
  void *const *buffer = (void *const *)(const void *)at->arg; /* the operand, then every buffer of the result */
  char *workspace = at->workspace;
  void *from = s->copied ? workspace : buffer[0];
  if (!s->p) return NVM_OK;
  if (at->workspace_bytes < base->workspace)
    return nvb_fail(NVM_ERR_MEMORY, "[%s] cuFFT needs %lld bytes of workspace for %lld points of %s; there are %lld",
                    s->what, (long long)base->workspace, (long long)s->n, nvg_dtype_name(s->type),
                    (long long)at->workspace_bytes);
  int status = s->copied ? copy_to(from, buffer[0], s->copied, at->stream) : NVM_OK;
  if (status) return status;
  int error = fft.cufftSetStream(s->p->handle, at->stream);
  error = error ? error : fft.cufftSetWorkArea(s->p->handle, workspace + (s->copied + ALIGN - 1) / ALIGN * ALIGN);
  error = error ? error : execute(s, from, buffer[1]);
  if (error) return fail_step(s, error);
  for (int i = 1; i < s->copies && !status; i++) status = copy_to(buffer[1 + i], buffer[1], s->result, at->stream);
  return status;
}

static void free_solution(nvd_solution *base) { nvd_lru_release(&cache, (nvd_lru_item *)((solution *)base)->p); }

static void *keep_plan(nvd_solution *base) {
  plan *p = ((solution *)base)->p;
  return p ? nvd_lru_get(&cache, p->item.key) : NULL;
}
static void drop_plan(void *kept) { nvd_lru_release(&cache, kept); }

static const nvd_solver cufft = {
  .name = "cufft", .device = NVB_CUDA, .run = run_solution, .free = free_solution, .keep = keep_plan, .drop = drop_plan
};

/* Bytes from the first to the last element of the operand of a transform to real numbers, unless this step is the last
   that reads it. */
static int64_t bytes_to_copy(const nvf_plan *p, int i, const nvf_operand *x, const shape *s) {
  const nvf_step *step = &p->step[i];
  const nvf_buf *buf = &p->buf[step->bind[0].buf];
  if (step->routine->attr[0] != NVG_DFT_TO_REAL || (buf->kind == NVF_BTEMP && buf->last == i)) return 0;
  return ((s->rows - 1) * s->apart + (x->shape[x->rank - 1] - 1) * s->stride + 1) * nvg_size(x->type);
}

static shape shape_of(const nvf_routine *r, nvd_device *d) {
  const nvf_operand *x = &r->in[0];
  shape s = { .n = r->attr[1],
              .stride = x->stride[x->rank - 1],
              .result_apart = r->result.shape[r->result.rank - 1],
              .type = type_of((nvg_dft)r->attr[0], x->type),
              .device = nvd_device_ordinal(d) };
  nvf_rows_of(x, &s.rows, &s.apart);
  return s;
}

nvd_solution *nvd_cufft(nvb_arena *a, const nvf_plan *p, int i, nvd_device *d) {
  const nvf_step *step = &p->step[i];
  const nvf_routine *r = step->routine;
  shape at = shape_of(r, d);
  solution *s = NVB_NEW(a, solution);
  int error = 0;
  *s = (solution){ .base = { .by = &cufft },
                   .what = nvb_strdup(a, r->what),
                   .kind = (nvg_dft)r->attr[0],
                   .type = r->in[0].type,
                   .n = at.n,
                   .result = at.rows * at.result_apart * nvg_size(r->result.type),
                   .copied = at.rows ? bytes_to_copy(p, i, &r->in[0], &at) : 0,
                   .copies = step->k->nparam - 1 };
  if (!at.rows) return &s->base;
  s->p = find_plan(&at, d, &error);
  if (error)
    nvb_throw(a, NVM_ERR_UNSUPPORTED, "[%s] cuFFT makes no plan of %lld points of %s: %s (%d)", s->what,
              (long long)s->n, nvg_dtype_name(s->type), name_of(error), error);
  if (!s->p) nvb_throw(a, NVM_ERR_MEMORY, "[%s] out of memory", s->what);
  s->base.workspace = (s->copied + ALIGN - 1) / ALIGN * ALIGN + s->p->workspace;
  return &s->base;
}
