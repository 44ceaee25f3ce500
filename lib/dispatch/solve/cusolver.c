/* Runs routines of matrices on a GPU by cuSOLVER and cuBLAS, which are opened at first use. Decides what runs there,
   how the workspace is divided, and whether one call does all matrices of a batch. Results and the numbers of matrices
   that failed stay on the device. Never decides how a matrix is factorised (gpu_factor.c, gpu_spectral.c,
   gpu_small.c). */
#include "dispatch/solve/cusolver.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/library.h"
#include "base/settings.h"
#include "dispatch/solve/lapack.h"
#include "frag/dtype.h"
#include "graph/graph.h"

enum { LINE = 256, BATCHED = 256 /* rows of matrices that are done by one call */ };

/* ---- the libraries, and their handles for each device */
nvd_cusolver_api nvd_so;
static char line[64], why_not[512];
static int opened;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int find_solver(void *handle) {
  static const nvb_symbol symbol[] = {
#define TO(member) (void (**)(void))&nvd_so.member
#define ROW(name, args) { #name, TO(name), 0 },
    NVD_SOLVER(ROW)
#undef ROW
#define ONE(letter, member, name) { "cusolverDn" #letter #name, TO(of[NVD_CUSOLVER_##letter].member), 0 }
#define ROW(member, real, complex, args) \
  ONE(S, member, real), ONE(D, member, real), ONE(C, member, complex), ONE(Z, member, complex),
        NVD_SOLVER_TYPED(ROW)
#undef ONE
#undef ROW
  };
  return nvb_library_symbols(handle, "cuSOLVER", symbol, (int)(sizeof symbol / sizeof *symbol));
}

static int find_blas(void *handle) {
  static const nvb_symbol symbol[] = {
#define ROW(name, args) { #name, TO(name), 0 },
    NVD_BLAS(ROW)
#undef ROW
#define ONE(letter, member, name) { "cublas" #letter #name, TO(of[NVD_CUSOLVER_##letter].member), 0 }
#define ROW(member, name, args) ONE(S, member, name), ONE(D, member, name), ONE(C, member, name), ONE(Z, member, name),
        NVD_BLAS_TYPED(ROW)
#undef ONE
#undef ROW
#undef TO
  };
  return nvb_library_symbols(handle, "cuBLAS", symbol, (int)(sizeof symbol / sizeof *symbol));
}

static void open_once(void) {
  static const char *const blas[] = { "libcublas.so.13", "libcublas.so.12", NULL };
  static const char *const solver[] = { "libcusolver.so.12", "libcusolver.so.11", NULL };
  void *first = nvb_library_open(blas), *handle = first ? nvb_library_open(solver) : NULL;
  int version = 0;
  opened = handle ? find_blas(first) : nvb_status();
  opened = opened ? opened : find_solver(handle);
  if (opened) snprintf(why_not, sizeof why_not, "%s", nvb_message());
  else if (!nvd_so.cusolverGetVersion(&version))
    snprintf(line, sizeof line, "%d.%d.%d", version / 1000, version / 100 % 10, version % 100);
}

static int is_open(void) {
  pthread_once(&once, open_once);
  return opened ? nvb_fail(opened, "%s", why_not) : NVM_OK;
}

const char *nvd_cusolver_line(void) { return is_open() ? why_not : line; }

int nvd_cusolver_usable(void) {
  if (!nvb_has(NVB_SOLVERS, "cusolver")) return nvb_fail(NVM_ERR_UNSUPPORTED, "NVM_SOLVERS leaves cuSOLVER out"), 0;
  return !is_open();
}

int nvd_does_matrices(nvg_op op) { return op != NVG_OP_SPECTRAL && nvg_is_of_matrices(op) && nvd_cusolver_usable(); }

static int make_handles(nvd_solver_handles *h) {
  int error = h->solver ? 0 : nvd_so.cusolverDnCreate(&h->solver);
  error = error || h->params ? error : nvd_so.cusolverDnCreateParams(&h->params);
  error = error || h->syevj ? error : nvd_so.cusolverDnCreateSyevjInfo(&h->syevj);
  error = error || h->gesvdj ? error : nvd_so.cusolverDnCreateGesvdjInfo(&h->gesvdj);
  return error || h->blas ? error : nvd_so.cublasCreate_v2(&h->blas);
}

int nvd_solver_handles_get(nvd_solver_handles *out, nvd_device *d) {
  static nvb_lock lock = NVB_LOCK(CUSOLVER);
  static nvd_solver_handles handles[NVD_MAX_DEVICES];
  nvb_lock_take(&lock);
  int entered = nvd_enter(d), error = make_handles(&handles[nvd_device_ordinal(d)]);
  nvd_leave(entered);
  *out = handles[nvd_device_ordinal(d)];
  nvb_lock_give(&lock);
  return error ? nvb_fail(NVM_ERR_DEVICE, "[linalg] cuSOLVER does not start: status %d", error) : NVM_OK;
}

/* ---- calls */
void nvd_note_solver(nvd_solver_call *x, const char *what, int error) {
  if (error)
    x->status = nvb_fail(error == CU_SOLVER_NO_MEMORY ? NVM_ERR_MEMORY : NVM_ERR_DEVICE,
                         "[%s] %s of cuSOLVER: status %d", x->s->r.what, what, error);
}

void nvd_note_cuda(nvd_solver_call *x, int error) {
  if (error && !x->status) x->status = nvd_cuda_status(error, x->s->r.what);
}

void nvd_do_move(nvd_solver_call *x, const nvd_move *j) {
  if (!x->status) nvd_note_cuda(x, nvd_move_run(x->s->moves, j, x->stream));
}

void nvd_need(nvd_solver_call *x, nvd_area area, int64_t bytes) {
  x->s->area[area] = x->s->bytes;
  x->s->bytes += (bytes + LINE - 1) / LINE * LINE;
}

void nvd_need_work(nvd_solver_call *x, size_t device, size_t host) {
  if (device > x->s->work) x->s->work = device;
  if (host > x->s->host_bytes) x->s->host_bytes = host;
}

/* ---- moves */
int nvd_gpu_tail(const nvf_routine *r, int which) { return r->op == NVG_OP_SUBSTITUTED && !which ? 1 : 2; }

int nvd_gpu_is_packed(const nvf_operand *o) {
  int64_t n = 1;
  int packed = 1;
  for (int d = o->rank - 1; d >= 0; n *= o->shape[d--]) packed &= o->shape[d] == 1 || o->stride[d] == n;
  return packed;
}

/* A move of all matrices of an operand; of factors, of their rows. */
static nvd_move move_from(const nvd_solver_call *x, int which) {
  const nvf_operand *o = &x->s->r.in[which];
  int tail = nvd_gpu_tail(&x->s->r, which), last = o->rank - 1;
  nvd_move j = {
    .from = x->from[which], .rank = o->rank - tail, .count = x->s->count, .cols = o->shape[last], .rows = 1
  };
  j.from_col = o->stride[last];
  if (tail == 2) j.rows = o->shape[last - 1], j.from_row = o->stride[last - 1];
  memcpy(j.shape, o->shape, sizeof *j.shape * (size_t)j.rank);
  memcpy(j.stride, o->stride, sizeof *j.stride * (size_t)j.rank);
  return j;
}

void nvd_gpu_pack(nvd_solver_call *x, int which, void *to, int64_t apart) {
  nvd_move j = move_from(x, which);
  int64_t each = j.rows * j.cols;
  j.to = to, j.to_matrix = apart, j.to_row = j.cols, j.to_col = 1;
  j.what = j.from_col == 1 || j.from_row != 1 ? NVD_COPY : NVD_TURN;
  if (x->status || !each) return;
  if (nvd_gpu_is_packed(&x->s->r.in[which]) && (apart == each || j.count == 1))
    nvd_note_cuda(x,
                  nvd_cu.cudaMemcpyAsync(to, j.from, (size_t)(each * j.count * x->s->size), CUDA_ON_DEVICE, x->stream));
  else nvd_do_move(x, &j);
}

void nvd_gpu_pack_turned(nvd_solver_call *x, int which, void *to, int64_t apart) {
  nvd_move j = move_from(x, which);
  j.to = to, j.to_matrix = apart, j.to_row = 1, j.to_col = j.rows;
  j.what = NVD_TURN;
  nvd_do_move(x, &j);
}

void nvd_gpu_turn(nvd_solver_call *x, const nvd_turning *t) {
  nvd_do_move(x, &(nvd_move){ .what = NVD_TURN,
                              .to = t->to,
                              .from = t->from,
                              .to_matrix = t->to_apart,
                              .to_row = t->cols,
                              .to_col = 1,
                              .from_matrix = t->from_apart,
                              .from_row = 1,
                              .from_col = t->ld,
                              .rows = t->rows,
                              .cols = t->cols,
                              .count = x->s->count,
                              .how = t->how,
                              .conj = t->conj });
}

void nvd_gpu_identity(nvd_solver_call *x, void *to, int64_t apart, int64_t n) {
  nvd_do_move(x, &(nvd_move){ .what = NVD_COPY,
                              .to = to,
                              .to_matrix = apart,
                              .to_row = n,
                              .to_col = 1,
                              .rows = n,
                              .cols = n,
                              .count = x->s->count,
                              .how = NVD_IDENTITY });
}

void nvd_gpu_reals(nvd_solver_call *x, void *to, int64_t apart, int64_t n) {
  nvd_do_move(x, &(nvd_move){ .what = NVD_REALS,
                              .to = to,
                              .from = nvd_area_at(x, NVD_VALUE),
                              .to_matrix = apart,
                              .rows = n,
                              .count = x->s->count });
}

void nvd_gpu_addresses(nvd_solver_call *x, nvd_area to, const void *from, int64_t apart) {
  nvd_do_move(
      x,
      &(nvd_move){
          .what = NVD_ADDRESSES, .to = nvd_area_at(x, to), .from = from, .from_matrix = apart, .count = x->s->count });
}

void nvd_gpu_note(nvd_solver_call *x, int fault) {
  nvd_do_move(x, &(nvd_move){ .what = NVD_NOTE,
                              .to = nvd_area_at(x, NVD_FAILED),
                              .from = nvd_area_at(x, NVD_INFO),
                              .count = x->s->count,
                              .how = fault });
}

void nvd_gpu_note_zero(nvd_solver_call *x, const void *a, int64_t apart, int64_t step, int fault) {
  nvd_do_move(x, &(nvd_move){ .what = NVD_NOTE_ZERO,
                              .to = nvd_area_at(x, NVD_FAILED),
                              .from = a,
                              .from_matrix = apart,
                              .from_row = step,
                              .rows = x->s->n,
                              .count = x->s->count,
                              .how = fault });
}

/* ---- running */
static void finish_call(nvd_solver_call *x, const nvd_run_args *at, char *const *buffer) {
  const nvd_solver_solution *s = x->s;
  size_t bytes = (size_t)(s->count * s->each * nvg_size(s->r.result.type));
  if (!x->status)
    nvd_note_cuda(x,
                  nvd_cu.cudaMemcpyAsync(at->failed, nvd_area_at(x, NVD_FAILED), sizeof(int), CUDA_TO_HOST, x->stream));
  for (int i = 1; i < s->copies && !x->status && bytes; i++)
    nvd_note_cuda(x, nvd_cu.cudaMemcpyAsync(buffer[i], buffer[0], bytes, CUDA_ON_DEVICE, x->stream));
  /* the library may still copy from its workspace on the host, which the next run uses as well */
  if (!x->status && s->host_bytes && !x->captured) nvd_note_cuda(x, nvd_cu.cudaStreamSynchronize(x->stream));
}

/* The handles have memory of their own, so a call on another stream waits for what was called before. */
static int follow_last(nvd_device *d, void *stream) {
  static nvd_gpu_stream *last[NVD_MAX_DEVICES]; /* under the lock of the devices */
  nvd_gpu_stream **before = &last[nvd_device_ordinal(d)], *now = nvd_gpu_stream_of(d, stream);
  int error = *before && now && *before != now ? nvd_gpu_stream_wait(now, (nvd_use){ *before, (*before)->issued }) : 0;
  *before = now;
  return error;
}

static void take_stream(nvd_solver_call *x) {
  if (!x->captured) nvd_note_cuda(x, follow_last(x->s->device, x->stream));
  NVD_DO(x, "setStream", nvd_so.cusolverDnSetStream(x->s->h.solver, x->stream));
  NVD_DO(x, "setStream", nvd_so.cublasSetStream_v2(x->s->h.blas, x->stream));
}

static int run_solution(nvd_solution *base, const nvd_run_args *at) {
  nvd_solver_solution *s = (nvd_solver_solution *)base;
  char *const *from = (char *const *)(const void *)at->arg;
  nvd_solver_call x = {
    s, { from[0], from[s->r.nin - 1] }, from[s->r.nin], at->workspace, at->stream, at->captured, 0
  };
  if (!s->count) return NVM_OK;
  if (at->workspace_bytes < s->base.workspace)
    return nvb_fail(NVM_ERR_MEMORY, "[%s] needs %lld bytes of workspace", s->r.what, (long long)s->base.workspace);
  if (at->captured && s->how->waits)
    return nvb_fail(NVM_ERR_STATE,
                    "[%s] cuSOLVER waits for the GPU, which is not possible while its stream is captured", s->r.what);
  if (s->how != &nvd_gpu_small) take_stream(&x);
  if (!x.status) nvd_note_cuda(&x, nvd_cu.cudaMemsetAsync(nvd_area_at(&x, NVD_FAILED), 0, sizeof(int), at->stream));
  if (!x.status) s->how->run(&x);
  finish_call(&x, at, from + s->r.nin);
  return x.status;
}

static const nvd_solver cusolver = { .name = "cusolver", .device = NVB_CUDA, .run = run_solution };

/* ---- preparing */
static const nvd_solver_routine *routine_of(const nvd_solver_solution *s) {
  if (nvd_gpu_is_small(&s->r)) return &nvd_gpu_small;
  switch (s->r.op) {
  case NVG_OP_FACTORS: return &nvd_gpu_factors;
  case NVG_OP_SUBSTITUTED: return &nvd_gpu_substituted;
  case NVG_OP_SOLVED: return &nvd_gpu_solved;
  case NVG_OP_TRIANGULAR: return &nvd_gpu_triangular;
  case NVG_OP_CHOLESKY_FACTOR: return &nvd_gpu_cholesky;
  case NVG_OP_ORTHOGONAL: return &nvd_gpu_orthogonal;
  case NVG_OP_SINGULAR: return &nvd_gpu_singular;
  default: return &nvd_gpu_hermitian;
  }
}

static void find_extents(nvd_solver_solution *s) {
  const nvf_operand *x = &s->r.in[0], *last = &s->r.in[s->r.nin - 1], *y = &s->r.result;
  int factors = s->r.op == NVG_OP_SUBSTITUTED;
  s->m = s->n = factors ? y->shape[y->rank - 2] : x->shape[x->rank - 1];
  if (!factors) s->m = x->shape[x->rank - 2];
  s->k = s->r.nin > 1 ? last->shape[last->rank - 1] : s->n;
  s->each = 1;
  for (int d = x->rank - nvd_gpu_tail(&s->r, 0); d < y->rank; d++) s->each *= y->shape[d];
}

static void find_dtype(nvd_solver_solution *s, nvm_dtype type) {
  int wide = nvg_real_of(type) == NVM_F64, complex = nvg_parts(type) == 2;
  s->type = type;
  s->size = nvg_size(type);
  s->real = wide ? CU_R_64F : CU_R_32F;
  s->data = complex ? (wide ? CU_C_64F : CU_C_32F) : s->real;
  s->f = &nvd_so.of[2 * complex + wide];
}

static void find_workspace(nvb_arena *a, nvd_solver_solution *s) {
  nvd_solver_call x = { .s = s };
  int entered = nvd_enter(s->device);
  nvd_lock();
  if (s->count) s->how->size(&x);
  nvd_need(&x, NVD_INFO, s->count * (int64_t)sizeof(int));
  nvd_need(&x, NVD_FAILED, sizeof(int));
  nvd_need(&x, NVD_WORK, (int64_t)s->work);
  nvd_unlock();
  nvd_leave(entered);
  if (x.status) nvb_throw(a, x.status, "%s", nvb_message());
  s->base.workspace = s->bytes;
  s->host = s->host_bytes ? nvb_get(a, s->host_bytes) : NULL;
}

static void fault_of(nvd_solver_solution *s) {
  s->base.nbatch = s->r.in[0].rank - nvd_gpu_tail(&s->r, 0);
  s->base.batch = s->r.in[0].shape;
  s->base.what = s->r.what;
}

nvd_solution *nvd_matrices_on(nvb_arena *a, const nvf_step *step, nvd_device *d) {
  const nvf_routine *r = step->routine;
  nvd_solver_solution *s = NVB_NEW(a, nvd_solver_solution);
  *s = (nvd_solver_solution){
    .base = { .by = &cusolver }, .device = d, .count = step->blocks, .copies = step->k->nparam - r->nin
  };
  nvd_routine_copy(a, &s->r, r);
  find_dtype(s, r->in[0].type);
  find_extents(s);
  if (s->m > INT_MAX || s->n > INT_MAX || s->k > INT_MAX || s->count >= INT_MAX / NVD_MATRIX_FAULTS)
    nvb_throw(a, NVM_ERR_STATE, "[%s] cuSOLVER takes no extents of more than 31 bits, nor %lld matrices", r->what,
              (long long)s->count);
  s->batched = s->count > 1 && s->m <= BATCHED && s->n <= BATCHED;
  s->how = routine_of(s);
  int status = s->how == &nvd_gpu_small ? nvd_gpu_small_prepare(a, s) : nvd_solver_handles_get(&s->h, d);
  status = status || s->how == &nvd_gpu_small ? status : nvd_moves_get(a, &s->moves, d, s->type);
  if (!status && s->how == &nvd_gpu_substituted && nvd_gpu_substitutes(s)) status = nvd_gpu_substitute_prepare(a, s);
  if (status) nvb_throw(a, status, "%s", nvb_message());
  find_workspace(a, s);
  fault_of(s);
  return &s->base;
}
