/* Solves with the LU factors of one large matrix on a GPU by blocks: cuBLAS multiplies with the inverses of the
   blocks on the diagonals of L and U, and takes each solution out of the rows that are left. The inverses grow by
   products from those of small tiles. What the inverse of an ill-conditioned block leaves, a second product with it
   takes away. */
#include "dispatch/solve/cusolver.h"
#include "base/text.h"
#include "frag/dtype.h"

extern const char nvd_elements_text[], nvd_triangles_text[];
enum { BLOCK = 512, TILE = 32, MOST = 20480 /* rows, whose order fits into POOL of triangles.cu */, THREADS = 256 };
enum { BLOCKS, ORDER, ROWS };

/* As Task of triangles.cu. */
typedef struct triangle_task {
  int64_t what;
  void *to, *plain;
  const void *from;
  int *order;
  const int64_t *pivot;
  int64_t n, ld, block, blocks, k, back;
} triangle_task;

/* One matrix with its right-hand sides, `columns` of n rows. */
typedef struct system {
  nvd_solver_call *x;
  const char *a;
  char *b;
  const int64_t *pivot;
  int64_t n, columns, blocks;
  int trans;
} system;

int nvd_gpu_substitutes(const nvd_solver_solution *s) { return !s->batched && s->n > BLOCK && s->n <= MOST; }

static int64_t blocks_of(const nvd_solver_solution *s) { return (s->n + BLOCK - 1) / BLOCK; }
static int64_t apart(void) { return (int64_t)BLOCK * (BLOCK + 1); } /* of two blocks, in elements */

int nvd_gpu_substitute_prepare(nvb_arena *a, nvd_solver_solution *s) {
  nvb_text t = { .arena = a };
  nvb_print(&t, "typedef %s real;\n#define PARTS %d\n%s%s", nvg_real_of(s->type) == NVM_F32 ? "float" : "double",
            nvg_parts(s->type), nvd_elements_text, nvd_triangles_text);
  return nvd_own_kernel_get(&s->triangles, s->device, nvb_text_get(&t), "triangles");
}

void nvd_gpu_substitute_size(nvd_solver_call *x, int64_t columns) {
  nvd_solver_solution *s = x->s;
  int64_t blocks = blocks_of(s), half = (int64_t)BLOCK * BLOCK / 4 * 2 * blocks, side = BLOCK * columns;
  nvd_need(x, NVD_INVERSE, 2 * blocks * apart() * s->size);
  nvd_need(x, NVD_PLAIN, 2 * blocks * apart() * s->size);
  nvd_need(x, NVD_PRODUCT, (half > side ? half : side) * s->size);
  nvd_need(x, NVD_ORDER, s->n * (int64_t)sizeof(int));
  nvd_need(x, NVD_ROWS, s->n * columns * s->size);
}

static void launch(nvd_solver_call *x, const triangle_task *j, int64_t blocks) {
  triangle_task copy = *j;
  void *param[1] = { &copy };
  nvd_launch at = { .grid = { (unsigned)blocks, 1, 1 }, .block = { THREADS, 1, 1 }, .stream = x->stream };
  if (!x->status) nvd_note_cuda(x, nvd_cu.cuLaunchKernelEx(&at, x->s->triangles, param, NULL));
}

/* ---- products: c = sign op(a) op(b) + old c, of column-major matrices and batches of them */
typedef struct factor { const void *at; int64_t ld, apart; int trans; } factor;

static void multiply(nvd_solver_call *x, int64_t m, int64_t n, int64_t k, int sign, factor a, factor b, int old,
                     void *c, int64_t ld, int64_t c_apart, int64_t count) {
  static const double wide[3][2] = { { -1, 0 }, { 0, 0 }, { 1, 0 } };
  static const float narrow[3][2] = { { -1, 0 }, { 0, 0 }, { 1, 0 } };
  const nvd_solver_solution *s = x->s;
  int is_wide = s->real == CU_R_64F;
  if (!m || !n) return;
  NVD_DO(x, "gemm",
         s->f->gemm(s->h.blas, a.trans ? CU_TRANS : CU_NO_TRANS, b.trans ? CU_TRANS : CU_NO_TRANS, (int)m, (int)n,
                    (int)k, is_wide ? (const void *)wide[sign + 1] : narrow[sign + 1], a.at, (int)a.ld, a.apart, b.at,
                    (int)b.ld, b.apart, is_wide ? (const void *)wide[old + 1] : narrow[old + 1], c, (int)ld, c_apart,
                    (int)count));
}

static char *element_at(const system *y, const void *from, int64_t i) {
  return (char *)(uintptr_t)from + i * y->x->s->size;
}

/* ---- inverses of the blocks of both factors: of two inverses along the diagonal, with B below the first one,
   [A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1 C^-1] */
static void invert_blocks(const system *y) {
  nvd_solver_call *x = y->x;
  char *to = nvd_area_at(x, NVD_INVERSE), *product = nvd_area_at(x, NVD_PRODUCT);
  int64_t tiles = BLOCK / TILE;
  launch(x,
         &(triangle_task){ .what = BLOCKS,
                           .to = to,
                           .plain = nvd_area_at(x, NVD_PLAIN),
                           .from = y->a,
                           .n = y->n,
                           .ld = y->n,
                           .block = BLOCK,
                           .blocks = y->blocks },
         2 * y->blocks * tiles * tiles);
  for (int64_t side = TILE; side < BLOCK; side *= 2) {
    int64_t step = 2 * side * (BLOCK + 1), pairs = 2 * y->blocks * BLOCK / (2 * side);
    factor first = { to, BLOCK, step, 0 }, second = { element_at(y, to, side * (BLOCK + 1)), BLOCK, step, 0 };
    factor below = { element_at(y, to, side), BLOCK, step, 0 }, between = { product, side, side * side, 0 };
    multiply(x, side, side, side, 1, below, first, 0, product, side, side * side, pairs);
    multiply(x, side, side, side, -1, second, between, 0, element_at(y, to, side), BLOCK, step, pairs);
  }
}

/* ---- substitution */
/* Solves with block i of a factor, or with it transposed; the solution takes the place of the right-hand side. */
static void solve_block(const system *y, int of_u, int trans, int64_t i) {
  nvd_solver_call *x = y->x;
  int64_t row = i * BLOCK, rows = y->n - row < BLOCK ? y->n - row : BLOCK, at = (of_u * y->blocks + i) * apart();
  char *b = element_at(y, y->b, row), *product = nvd_area_at(x, NVD_PRODUCT);
  factor inverse = { element_at(y, nvd_area_at(x, NVD_INVERSE), at), BLOCK, 0, trans };
  factor plain = { element_at(y, nvd_area_at(x, NVD_PLAIN), at), BLOCK, 0, trans };
  factor side = { b, y->n, 0, 0 }, found = { product, BLOCK, 0, 0 };
  multiply(x, rows, y->columns, rows, 1, inverse, side, 0, product, BLOCK, 0, 1);
  multiply(x, rows, y->columns, rows, -1, plain, found, 1, b, y->n, 0, 1); /* what is left */
  multiply(x, rows, y->columns, rows, 1, inverse, side, 1, product, BLOCK, 0, 1);
  nvd_do_move(x, &(nvd_move){ .what = NVD_COPY,
                              .to = b,
                              .from = product,
                              .to_row = y->n,
                              .to_col = 1,
                              .from_row = BLOCK,
                              .from_col = 1,
                              .rows = y->columns,
                              .cols = rows,
                              .count = 1 });
}

static void sweep(const system *y, int forward) {
  int of_u = forward == y->trans;
  for (int64_t t = 0; t < y->blocks; t++) {
    int64_t i = forward ? t : y->blocks - 1 - t, row = i * BLOCK, next = row + BLOCK < y->n ? row + BLOCK : y->n;
    int64_t from = forward ? next : 0, left = forward ? y->n - next : row;
    solve_block(y, of_u, !forward, i);
    factor beside = { element_at(y, y->a, y->trans ? row + from * y->n : from + row * y->n), y->n, 0, y->trans };
    factor found = { element_at(y, y->b, row), y->n, 0, 0 };
    multiply(y->x, left, y->columns, next - row, -1, beside, found, 1, element_at(y, y->b, from), y->n, 0, 1);
  }
}

/* Exchanges the rows of the right-hand sides as the pivots say, or (back) the other way round. */
static void exchange_rows(const system *y, int back) {
  nvd_solver_call *x = y->x;
  int64_t n = y->n * y->columns;
  void *copy = nvd_area_at(x, NVD_ROWS);
  if (!x->status)
    nvd_note_cuda(x, nvd_cu.cudaMemcpyAsync(copy, y->b, (size_t)(n * x->s->size), CUDA_ON_DEVICE, x->stream));
  launch(x,
         &(triangle_task){ .what = ROWS,
                           .to = y->b,
                           .from = copy,
                           .order = nvd_area_at(x, NVD_ORDER),
                           .n = y->n,
                           .k = y->columns,
                           .back = back },
         (n + THREADS - 1) / THREADS);
}

void nvd_gpu_substitute(nvd_solver_call *x, int trans, const void *a, void *b, int64_t columns, const int64_t *pivot) {
  system y = { .x = x, .a = a, .b = b, .pivot = pivot, .n = x->s->n, .columns = columns, .trans = trans };
  y.blocks = blocks_of(x->s);
  launch(x, &(triangle_task){ .what = ORDER, .order = nvd_area_at(x, NVD_ORDER), .pivot = pivot, .n = y.n }, 1);
  invert_blocks(&y);
  if (!trans) exchange_rows(&y, 0);
  sweep(&y, 1);
  sweep(&y, 0);
  if (trans) exchange_rows(&y, 1);
}
