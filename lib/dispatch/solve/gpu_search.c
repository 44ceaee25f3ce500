/* Finds positions in rows on a GPU by the project's own kernels: of ones (positions.cu), and by binary search
   (search.cu). Decides how many blocks do so. */
#include "dispatch/solve/gpu_search.h"
#include <limits.h>
#include "base/err.h"
#include "base/text.h"
#include "dispatch/solve/own_kernel.h"

extern const char nvd_rows_text[], nvd_positions_text[], nvd_search_text[];
enum { THREADS = 256, TILE = 32 * THREADS, FILL_BLOCKS = 1024, LINE = 256 };

/* The C type of a dtype that is searched. */
static const char *type_of(nvm_dtype t) {
  switch (t) {
  case NVM_I8: return "signed char";
  case NVM_I16: return "short";
  case NVM_I32: return "int";
  case NVM_I64: return "long long";
  case NVM_U16: return "unsigned short";
  case NVM_U32: return "unsigned";
  case NVM_U64: return "unsigned long long";
  case NVM_F32: return "float";
  case NVM_F64: return "double";
  default: return "unsigned char";
  }
}

const char *nvd_search_source(nvb_arena *a, nvg_op op, nvm_dtype type, int right) {
  nvb_text t = { .arena = a };
  if (op == NVG_OP_POSITIONS) nvb_print(&t, "%s%s", nvd_rows_text, nvd_positions_text);
  else nvb_print(&t, "typedef %s T;\n#define RIGHT %d\n%s%s", type_of(type), right, nvd_rows_text, nvd_search_text);
  nvb_print(&t,
            "extern \"C\" __global__ void __launch_bounds__(%d) nvm_kernel(const __grid_constant__ Task j) {\n"
            "  run_block(j);\n}\n",
            THREADS);
  return nvb_text_get(&t);
}

typedef struct solution {
  nvd_solution base;
  nvg_op op;
  const char *what; /* the operation that the user called */
  void *kernel;
  int64_t rows, n, each, tiles; /* as in the kernels */
  int copies;                   /* buffers that receive the result */
  nvd_rows at, of;
} solution;

/* As Task of search.cu. */
typedef struct search_task {
  const void *row, *x;
  void *to;
  int64_t rows, n, each;
  nvd_rows at, of;
} search_task;

/* As Task of positions.cu. */
enum { LIST, FILL };
typedef struct positions_task {
  int64_t what, rows, n, each, tiles;
  const void *from;
  void *to, *ticket, *said;
  nvd_rows at;
} positions_task;

static int launch(const solution *s, const void *task, int64_t blocks, void *stream) {
  void *param[1] = { (void *)(uintptr_t)task };
  nvd_launch at = { .grid = { (unsigned)blocks, 1, 1 }, .block = { THREADS, 1, 1 }, .stream = stream };
  return nvd_cu.cuLaunchKernelEx(&at, s->kernel, param, NULL);
}

static int64_t blocks_of(int64_t n) { return (n - 1) / THREADS + 1; }

static int search(const solution *s, char *const *buffer, void *stream) {
  search_task j = { buffer[0], buffer[1], buffer[2], s->rows, s->n, s->each, s->at, s->of };
  return launch(s, &j, blocks_of(s->rows * s->each), stream);
}

static int list_positions(const solution *s, char *const *buffer, char *workspace, void *stream) {
  positions_task j = {
    LIST, s->rows, s->n, s->each, s->tiles, buffer[0], buffer[1], workspace, workspace + LINE, s->at
  };
  if (s->tiles == 1) return launch(s, &j, s->rows, stream);
  int64_t fill = blocks_of(s->each);
  int error = nvd_cu.cudaMemsetAsync(workspace, 0, (size_t)s->base.workspace, stream);
  error = error ? error : launch(s, &j, s->rows * s->tiles, stream);
  j.what = FILL;
  return error ? error : launch(s, &j, s->rows * (fill < FILL_BLOCKS ? fill : FILL_BLOCKS), stream);
}

static int run_solution(nvd_solution *base, const nvd_run_args *at) {
  const solution *s = (const solution *)base;
  char *const *buffer = (char *const *)(const void *)at->arg; /* the operands, then every buffer of the result */
  int nin = s->op == NVG_OP_SEARCHED ? 2 : 1;
  if (at->workspace_bytes < base->workspace)
    return nvb_fail(NVM_ERR_MEMORY, "[%s] needs %lld bytes of workspace; there are %lld", s->what,
                    (long long)base->workspace, (long long)at->workspace_bytes);
  int error = nin > 1 ? search(s, buffer, at->stream) : list_positions(s, buffer, at->workspace, at->stream);
  for (int i = 1; i < s->copies && !error; i++)
    error = nvd_cu.cudaMemcpyAsync(buffer[nin + i], buffer[nin], (size_t)(s->rows * s->each) * sizeof(int64_t),
                                   CUDA_ON_DEVICE, at->stream);
  return error ? nvd_cuda_status(error, s->what) : NVM_OK;
}

static const nvd_solver searches = { .name = "search", .device = NVB_CUDA, .run = run_solution };

nvd_solution *nvd_search_on(nvb_arena *a, const nvf_step *step, nvd_device *d) {
  const nvf_routine *r = step->routine;
  const nvf_operand *last = &r->in[r->nin - 1];
  solution *s = NVB_NEW(a, solution);
  *s = (solution){ .base = { .by = &searches },
                   .op = r->op,
                   .what = nvb_strdup(a, r->what),
                   .rows = step->blocks,
                   .n = r->in[0].shape[r->in[0].rank - 1],
                   .each = r->result.shape[r->result.rank - 1],
                   .copies = step->k->nparam - r->nin };
  s->tiles = (s->n - 1) / TILE + 1;
  int64_t threads = s->rows * (r->op == NVG_OP_POSITIONS ? s->tiles * THREADS : s->each);
  if (threads / THREADS > INT_MAX || s->rows > INT_MAX / FILL_BLOCKS)
    nvb_throw(a, NVM_ERR_STATE, "[%s] a GPU does not search %lld rows of %lld elements", r->what, (long long)s->rows,
              (long long)s->n);
  nvd_rows_of(&s->at, &r->in[0]);
  nvd_rows_of(&s->of, last);
  if (r->op == NVG_OP_POSITIONS && s->tiles > 1)
    s->base.workspace = LINE + s->rows * s->tiles * (int64_t)sizeof(uint64_t);
  const char *source = nvd_search_source(a, r->op, r->in[0].type, r->op == NVG_OP_SEARCHED && r->attr[0]);
  int status = nvd_own_kernel_get(&s->kernel, d, source, "search");
  if (status) nvb_throw(a, status, "%s", nvb_message());
  return &s->base;
}
