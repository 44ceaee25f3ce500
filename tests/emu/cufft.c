/* libcufft: transforms as lib/dispatch asks for them, queued like kernels and computed in double. Refuses what the
   library refuses and a caller could get wrong: plans without a workspace or with one of another device, addresses that
   are not aligned to a complex number, memory that is not there. Like the library it destroys the operand of a
   transform to real numbers, and uses its workspace. */
#include "dispatch/solve/cufft_api.h"
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "call.h"

#define DECLARE_CUFFT(name, args) int name args;
NVD_CUFFT(DECLARE_CUFFT)

typedef double _Complex number;
typedef struct plan {
  int used, made, automatic, type, device;
  long long n, stride, apart, result_stride, result_apart, rows;
  size_t workspace;
  void *stream, *area;
} plan;
enum { MOST = 4096 };
static plan plans[MOST];

static plan *plan_of(int handle) { return handle > 0 && handle < MOST && plans[handle].used ? &plans[handle] : NULL; }

int cufftGetVersion(int *version) { return *version = 12000, OK; }
int cufftCreate(int *handle) {
  CALL;
  int i = 1;
  while (i < MOST && plans[i].used) i++;
  if (i == MOST) return CUFFT_ALLOC_FAILED;
  plans[i] = (plan){ .used = 1, .automatic = 1, .device = current() };
  return *handle = i, OK;
}
int cufftDestroy(int handle) {
  CALL;
  plan *p = plan_of(handle);
  if (!p) return CUFFT_INVALID_PLAN;
  return p->used = 0, OK;
}
int cufftSetAutoAllocation(int handle, int on) {
  CALL;
  plan *p = plan_of(handle);
  if (!p || p->made) return CUFFT_INVALID_PLAN;
  return p->automatic = on, OK;
}

static int is_wide(int type) { return type >= CUFFT_Z2Z; }
static int from_real(int type) { return type == CUFFT_R2C || type == CUFFT_D2Z; }
static int to_real(int type) { return type == CUFFT_C2R || type == CUFFT_Z2D; }
static int complex_bytes(const plan *p) { return is_wide(p->type) ? 16 : 8; }

int cufftMakePlanMany64(int handle, int rank, long long *n, long long *inembed, long long istride, long long idist,
                        long long *onembed, long long ostride, long long odist, int type, long long batch,
                        size_t *workspace) {
  CALL;
  plan *p = plan_of(handle);
  if (!p || p->made || p->device != current()) return CUFFT_INVALID_PLAN;
  if (rank != 1 || !inembed || !onembed) return CUFFT_NOT_SUPPORTED;
  if (*n < 1 || batch < 1) return CUFFT_INVALID_SIZE;
  if (istride < 1 || idist < 1 || ostride < 1 || odist < 1) return CUFFT_INVALID_VALUE;
  if (p->automatic) return CUFFT_ALLOC_FAILED; /* memory of its own, which this emulator does not give it */
  *p = (plan){ 1, 1, 0, type, p->device, *n, istride, idist, ostride, odist, batch, 0, NULL, NULL };
  p->workspace = (size_t)(*n * complex_bytes(p));
  return *workspace = p->workspace, OK;
}
int cufftSetStream(int handle, void *stream) {
  CALL;
  plan *p = plan_of(handle);
  return p ? (p->stream = stream, OK) : CUFFT_INVALID_PLAN;
}
int cufftSetWorkArea(int handle, void *area) {
  CALL;
  plan *p = plan_of(handle);
  return p ? (p->area = area, OK) : CUFFT_INVALID_PLAN;
}

/* ---- doing it */
typedef struct job { plan p; char *from, *to; int sign; } job;

static number root(long long k, long long n, int sign) {
  double angle = 2 * M_PI * (double)(k % n) / (double)n;
  return cos(angle) + sign * sin(angle) * (number)I;
}

/* Transforms n numbers, `step` apart, into y: by the smallest prime of n, with w[k step] = exp(sign 2 pi i k / n). */
static void transform(const number *x, number *y, long long n, long long step, const number *w, number *scratch) {
  long long p = 2;
  while (p < n && n % p && p * p <= n) p++;
  if (n % p) p = n;
  long long m = n / p;
  for (long long q = 0; q < p && m > 1; q++) transform(x + q * step, y + q * m, m, step * p, w, scratch);
  for (long long q = 0; q < p && m == 1; q++) y[q] = x[q * step];
  for (long long k = 0; k < m && n > 1; k++) {
    for (long long q = 0; q < p; q++) scratch[q] = y[q * m + k];
    for (long long j = 0; j < p; j++) {
      number sum = 0;
      for (long long q = 0; q < p; q++) sum += scratch[q] * w[q * (k + j * m) % n * step];
      y[j * m + k] = sum;
    }
  }
}

static number read_at(const job *j, long long i) {
  const void *at = j->from + i * (from_real(j->p.type) ? complex_bytes(&j->p) / 2 : complex_bytes(&j->p));
  const float *f = at;
  const double *d = at;
  int real = from_real(j->p.type);
  if (is_wide(j->p.type)) return d[0] + (real ? 0 : d[1]) * (number)I;
  return (double)f[0] + (real ? 0 : (double)f[1]) * (number)I;
}
static void write_at(const job *j, long long i, number v) {
  int real = to_real(j->p.type), size = real ? complex_bytes(&j->p) / 2 : complex_bytes(&j->p);
  double d[2] = { creal(v), cimag(v) };
  float f[2] = { (float)d[0], (float)d[1] };
  memcpy(j->to + i * size, is_wide(j->p.type) ? (void *)d : (void *)f, (size_t)size);
}

static void read_row(const job *j, long long row, number *x) {
  long long n = j->p.n, half = n / 2 + 1, given = to_real(j->p.type) ? half : n;
  for (long long i = 0; i < given; i++) x[i] = read_at(j, row * j->p.apart + i * j->p.stride);
  if (given == n && !to_real(j->p.type)) return;
  x[0] = creal(x[0]);
  if (n % 2 == 0) x[n / 2] = creal(x[n / 2]);
  for (long long i = half; i < n; i++) x[i] = conj(x[n - i]);
}

static long long operands(const plan *p) { return to_real(p->type) ? p->n / 2 + 1 : p->n; }
static long long results(const plan *p) { return from_real(p->type) ? p->n / 2 + 1 : p->n; }

static int run(const void *data) {
  const job *j = data;
  long long n = j->p.n;
  number *x = calloc((size_t)(4 * n), sizeof *x), *y = x + n, *w = y + n, *scratch = w + n;
  for (long long k = 0; k < n; k++) w[k] = root(k, n, j->sign);
  for (long long row = 0; row < j->p.rows; row++) {
    read_row(j, row, x);
    transform(x, y, n, 1, w, scratch);
    for (long long i = 0; i < results(&j->p); i++) write_at(j, row * j->p.result_apart + i * j->p.result_stride, y[i]);
    for (long long i = 0; i < operands(&j->p) && to_real(j->p.type); i++)
      memset(j->from + (row * j->p.apart + i * j->p.stride) * complex_bytes(&j->p), 0xff, (size_t)complex_bytes(&j->p));
  }
  if (j->p.workspace) memset(j->p.area, 0xff, j->p.workspace);
  free(x);
  return OK;
}

static int is_there(const plan *p, const void *at, long long apart, long long stride, long long n, int size) {
  return memory_device(at, (size_t)(((p->rows - 1) * apart + (n - 1) * stride + 1) * size)) == p->device;
}

static int enqueue_plan(int handle, int type, void *from, void *to, int sign) {
  plan *p = plan_of(handle);
  if (!p || !p->made || p->type != type) return CUFFT_INVALID_PLAN;
  stream *s = stream_find(p->stream, current());
  if (!s || s->device != p->device) return CUFFT_INVALID_VALUE;
  READY(s);
  int in = from_real(type) ? complex_bytes(p) / 2 : complex_bytes(p),
      out = to_real(type) ? complex_bytes(p) / 2 : complex_bytes(p);
  if (((uintptr_t)from | (uintptr_t)to) % (uintptr_t)complex_bytes(p)) return CUFFT_INVALID_VALUE;
  if (p->workspace && memory_device(p->area, p->workspace) != p->device) return CUFFT_NO_WORKSPACE;
  if (!is_there(p, from, p->apart, p->stride, operands(p), in) ||
      !is_there(p, to, p->result_apart, p->result_stride, results(p), out))
    return CUFFT_EXEC_FAILED;
  job *j = calloc(1, sizeof *j);
  *j = (job){ *p, from, to, sign };
  return enqueue(
      s, (op){ .kind = HOST, .call = run, .device = s->device, .staged = j, .n = sizeof *j, .from = (char *)j });
}

#define EXECUTE(name, type, args, sign) \
  int name args { \
    CALL; \
    return enqueue_plan(plan, type, in, out, sign); \
  }
EXECUTE(cufftExecC2C, CUFFT_C2C, (int plan, void *in, void *out, int direction), direction)
EXECUTE(cufftExecZ2Z, CUFFT_Z2Z, (int plan, void *in, void *out, int direction), direction)
EXECUTE(cufftExecR2C, CUFFT_R2C, (int plan, void *in, void *out), CUFFT_FORWARD)
EXECUTE(cufftExecD2Z, CUFFT_D2Z, (int plan, void *in, void *out), CUFFT_FORWARD)
EXECUTE(cufftExecC2R, CUFFT_C2R, (int plan, void *in, void *out), CUFFT_INVERSE)
EXECUTE(cufftExecZ2D, CUFFT_Z2D, (int plan, void *in, void *out), CUFFT_INVERSE)
