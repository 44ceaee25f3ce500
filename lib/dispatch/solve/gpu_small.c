/* Small matrices on a GPU by the project's own kernel, whose source is small_matrices.cu: Cholesky factors, LU,
   solutions and inverses, Q and R, singular values, eigenvalues and eigenvectors of Hermitian matrices. Decides
   which matrices are small, and what the kernel is compiled for. */
#include <string.h>
#include "base/err.h"
#include "base/text.h"
#include "codegen/cuda/cuda.h"
#include "dispatch/solve/cusolver.h"
#include "dispatch/solve/lapack.h"
#include "frag/dtype.h"
#include "graph/graph.h"

extern const char nvd_elements_text[], nvd_small_matrices_text[];
enum {
  SMALL = 32,         /* rows and columns: the lanes of a warp */
  IN_REGISTERS = 256, /* bytes of a row or column that a lane keeps */
  SIDES = 4,          /* right-hand sides that a lane keeps */
  WARPS = 4,          /* of a block, if its shared memory suffices */
  SHARED = 48 << 10   /* bytes of a block's static shared memory */
};

/* As Task of small_matrices.cu. */
typedef struct small_task {
  void *to;
  const void *a, *b;
  int *failed;
  int64_t count, sides, fault, flag, rank, a_row, a_col, b_row, b_col;
  int64_t shape[NVM_MAX_RANK], a_stride[NVM_MAX_RANK], b_stride[NVM_MAX_RANK];
} small_task;

/* How the kernel lies on a warp: `rows` x `cols` as M and N of small_matrices.cu. */
typedef struct layout { int64_t rows, cols, lanes, matrices, warps; } layout;

/* Columns of Q, and rows of R. */
static void find_parts(const nvd_solver_solution *s, int64_t *q, int64_t *r) {
  int64_t k = s->m < s->n ? s->m : s->n, all = s->r.attr[0] == NVG_COMPLETE ? s->m : k;
  *q = s->r.attr[0] == NVG_VALUES ? 0 : all;
  *r = all;
}

static layout layout_of(const nvd_solver_solution *s) {
  int wide = s->n > s->m, orthogonal = s->r.op == NVG_OP_ORTHOGONAL;
  layout l = { wide ? s->n : s->m, wide ? s->m : s->n, 2, 0, WARPS };
  if (orthogonal) {
    int64_t q, r;
    find_parts(s, &q, &r);
    l.rows = s->m;
    l.cols = q > s->n ? q : s->n;
  }
  while (l.lanes < l.cols) l.lanes *= 2;
  l.matrices = 32 / l.lanes;
  int64_t tile = l.matrices * l.rows * (l.cols + 1 - l.cols % 2) * s->size;
  while (l.warps > 1 && l.warps * tile > SHARED) l.warps /= 2;
  return l;
}

int nvd_gpu_is_small(const nvf_routine *r) {
  const nvf_operand *x = &r->in[0], *y = &r->in[r->nin - 1];
  int known = r->op == NVG_OP_CHOLESKY_FACTOR || r->op == NVG_OP_SOLVED || r->op == NVG_OP_ORTHOGONAL ||
              r->op == NVG_OP_FACTORS || r->op == NVG_OP_HERMITIAN ||
              (r->op == NVG_OP_SINGULAR && r->attr[0] == NVG_VALUES);
  if (!known) return 0;
  int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1], most = m > n ? m : n;
  if (r->op == NVG_OP_FACTORS && m != n) return 0;
  return m && n && y->shape[y->rank - 1] && most <= SMALL && most * nvg_size(x->type) <= IN_REGISTERS;
}

static const char *kind_of(const nvf_routine *r) {
  switch (r->op) {
  case NVG_OP_CHOLESKY_FACTOR: return "CHOLESKY";
  case NVG_OP_SOLVED: return r->nin > 1 ? "SOLVE" : "INVERSE";
  case NVG_OP_FACTORS: return "FACTORS";
  case NVG_OP_ORTHOGONAL: return "ORTHOGONAL";
  case NVG_OP_HERMITIAN: return "HERMITIAN";
  default: return "SINGULAR";
  }
}

/* What kinds of matrices need beside the rest. */
static void print_parts(nvb_text *t, const nvd_solver_solution *s) {
  int64_t q, r;
  if (s->r.op == NVG_OP_HERMITIAN) nvb_print(t, "#define VECTORS %d\n", s->r.attr[0] != NVG_VALUES);
  if (s->r.op == NVG_OP_FACTORS) nvb_print(t, "#define PLAIN %d\n#define TURNED %d\n", NVG_LU_PLAIN, NVG_LU_TURNED);
  if (s->r.op != NVG_OP_ORTHOGONAL) return;
  find_parts(s, &q, &r);
  nvb_print(t, "#define ACROSS %d\n#define QS %d\n#define RS %d\n", (int)s->n, (int)q, (int)r);
}

const char *nvd_gpu_small_source(nvb_arena *a, const nvd_solver_solution *s) {
  nvb_text t = { .arena = a };
  int wide = nvg_real_of(s->type) == NVM_F64;
  layout l = layout_of(s);
  nvb_print(&t, "typedef %s real;\n#define PARTS %d\n#define ROOT %s\n", wide ? "double" : "float", nvg_parts(s->type),
            wide ? "sqrt" : "sqrtf");
  nvb_print(&t, "#define EPSILON %s\n#define BIG %s\n", wide ? "0x1p-52" : "0x1p-23f", wide ? "0x1p300" : "0x1p40f");
  print_parts(&t, s);
  nvb_print(&t, "#define %s\n#define M %d\n#define N %d\n#define LANES %d\n#define WARPS %d\n#define SIDES %d\n%s%s",
            kind_of(&s->r), (int)l.rows, (int)l.cols, (int)l.lanes, (int)l.warps, (int)(s->k < SIDES ? s->k : SIDES),
            nvd_elements_text, nvd_small_matrices_text);
  nvb_print(&t,
            "extern \"C\" __global__ void __launch_bounds__(%d) nvm_kernel(const __grid_constant__ Task j) {\n"
            "  run_warp(j);\n}\n",
            (int)(32 * l.warps));
  return nvb_text_get(&t);
}

int nvd_gpu_small_prepare(nvb_arena *a, nvd_solver_solution *s) {
  return nvd_own_kernel_get(&s->small, s->device, nvd_gpu_small_source(a, s), "small matrices");
}

/* ---- running */
static nvd_matrix_fault fault_of(nvg_op op) {
  return op == NVG_OP_CHOLESKY_FACTOR ? NVD_MATRIX_INDEFINITE
         : op == NVG_OP_SOLVED        ? NVD_MATRIX_SINGULAR
                                      : NVD_MATRIX_DIVERGES;
}

static void place_operand(const nvf_operand *o, int64_t *stride, int64_t *row, int64_t *col) {
  memcpy(stride, o->stride, sizeof *stride * (size_t)(o->rank - 2));
  *row = o->stride[o->rank - 2];
  *col = o->stride[o->rank - 1];
}

static int flag_of(const nvd_solver_solution *s) { /* as each kind of small_matrices.cu says */
  if (s->r.op == NVG_OP_FACTORS) return s->r.attr[0] == NVG_PLAIN;
  return s->r.op == NVG_OP_SINGULAR ? s->n > s->m : s->r.attr[s->r.op == NVG_OP_HERMITIAN] != 0;
}

static void size_small(nvd_solver_call *x) { (void)x; }

static void run_small(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  const nvf_operand *o = &s->r.in[0];
  layout l = layout_of(s);
  small_task j = { .to = x->to,
                   .a = x->from[0],
                   .b = s->r.nin > 1 ? x->from[1] : NULL,
                   .failed = nvd_area_at(x, NVD_FAILED),
                   .count = s->count,
                   .sides = s->k,
                   .fault = fault_of(s->r.op),
                   .flag = flag_of(s),
                   .rank = o->rank - 2 };
  memcpy(j.shape, o->shape, sizeof *j.shape * (size_t)j.rank);
  place_operand(o, j.a_stride, &j.a_row, &j.a_col);
  place_operand(&s->r.in[s->r.nin - 1], j.b_stride, &j.b_row, &j.b_col);
  int64_t block = l.warps * l.matrices;
  void *param[1] = { &j };
  nvd_launch at = { .grid = { (unsigned)((s->count + block - 1) / block), 1, 1 },
                    .block = { (unsigned)(32 * l.warps), 1, 1 },
                    .stream = x->stream };
  if (!x->status) nvd_note_cuda(x, nvd_cu.cuLaunchKernelEx(&at, s->small, param, NULL));
}

const nvd_solver_routine nvd_gpu_small = { size_small, run_small, 0 };
