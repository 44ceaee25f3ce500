/* Routines that find positions in rows on the CPU: of ones (POSITIONS), and by binary search (SEARCHED). Decides how
   rows are divided among the pool's threads. */
#include "dispatch/search.h"
#include <string.h>
#include "base/pool.h"
#include "dispatch/solve/solve.h"
#include "frag/dtype.h"
#include "graph/graph.h"

/* ---- ones */
int64_t nvd_count_ones(const char *p, int64_t n, int64_t stride) {
  const uint64_t ones = 0x0101010101010101;
  int64_t count = 0, i = 0;
  for (; stride == 1 && i + 8 <= n; i += 8) {
    uint64_t eight;
    memcpy(&eight, p + i, 8);
    count += (int64_t)((eight * ones) >> 56);
  }
  for (; i < n; i++) count += p[i * stride];
  return count;
}

/* Eight bytes that are equal are skipped, or listed, at a time. */
int64_t nvd_list_ones(int64_t *out, int64_t room, int64_t first, const char *p, int64_t n, int64_t stride) {
  const uint64_t ones = 0x0101010101010101;
  int64_t k = 0, i = 0;
  for (; stride == 1 && i + 8 <= n && k + 8 <= room; i += 8) {
    uint64_t eight;
    memcpy(&eight, p + i, 8);
    if (!eight) continue;
    for (int j = 0; j < 8; j++) {
      out[k] = first + i + j;
      k += eight == ones ? 1 : p[i + j];
    }
  }
  for (; i < n && k < room; i++)
    if (p[i * stride]) out[k++] = first + i;
  return k;
}

/* ---- binary search. Several elements at a time, since each one's steps wait for memory. */
enum { SEVERAL = 16 };
#define LESS_INT(a, x) ((a) < (x))
#define UP_TO_INT(a, x) ((a) <= (x))
#define LESS_FLOAT(a, x) (((a) < (x)) | (((x) != (x)) & ((a) == (a))))
#define UP_TO_FLOAT(a, x) (((a) <= (x)) | ((x) != (x)))

#define SOME(T, name, before) \
  static void name(const T *row, int64_t n, int64_t step, const T *x, int64_t *at) { \
    for (int k = 0; k < SEVERAL; k++) at[k] = 0; \
    for (int64_t left = n, half; left > 1; left -= half) { \
      half = left / 2; \
      for (int k = 0; k < SEVERAL; k++) at[k] += half & -(int64_t)before(row[(at[k] + half - 1) * step], x[k]); \
    } \
    for (int k = 0; k < SEVERAL; k++) at[k] += before(row[at[k] * step], x[k]); \
  }
#define SEARCH(T, suffix, kind) \
  SOME(T, less_##suffix, LESS_##kind) \
  SOME(T, up_to_##suffix, UP_TO_##kind) \
  static void search_##suffix(const nvd_row *row, const nvd_row *x, int right, int64_t *out) { \
    const T *from = (const T *)(const void *)x->data; \
    T some[SEVERAL]; \
    int64_t at[SEVERAL]; \
    for (int64_t i = 0; i < x->n; i += SEVERAL) { \
      int64_t left = x->n - i < SEVERAL ? x->n - i : SEVERAL; \
      for (int64_t k = 0; k < SEVERAL; k++) some[k] = from[(i + (k < left ? k : 0)) * x->stride]; \
      (right ? up_to_##suffix : less_##suffix)((const T *)(const void *)row->data, row->n, row->stride, some, at); \
      memcpy(out + i, at, (size_t)left * sizeof *at); \
    } \
  }
SEARCH(int8_t, i8, INT)
SEARCH(int16_t, i16, INT)
SEARCH(int32_t, i32, INT)
SEARCH(int64_t, i64, INT)
SEARCH(uint8_t, u8, INT)
SEARCH(uint16_t, u16, INT)
SEARCH(uint32_t, u32, INT)
SEARCH(uint64_t, u64, INT)
SEARCH(float, f32, FLOAT)
SEARCH(double, f64, FLOAT)
#undef SEARCH
#undef SOME

void nvd_search_row(const nvd_row *row, const nvd_row *x, int right, int64_t *out) {
  switch (row->type) {
  case NVM_I8: search_i8(row, x, right, out); break;
  case NVM_I16: search_i16(row, x, right, out); break;
  case NVM_I32: search_i32(row, x, right, out); break;
  case NVM_I64: search_i64(row, x, right, out); break;
  case NVM_U16: search_u16(row, x, right, out); break;
  case NVM_U32: search_u32(row, x, right, out); break;
  case NVM_U64: search_u64(row, x, right, out); break;
  case NVM_F32: search_f32(row, x, right, out); break;
  case NVM_F64: search_f64(row, x, right, out); break;
  default: search_u8(row, x, right, out);
  }
}

/* ---- the routines */
enum { PIECE = 1 << 16 }; /* elements of a row that a thread takes at a time */

typedef struct solution {
  nvd_solution base;
  nvf_routine r;
  int64_t rows, n, each, pieces; /* n, each: elements of a row and of a row of the result; pieces: of each row */
  int copies;                    /* buffers that receive the same result */
} solution;

typedef struct search_job {
  const solution *s;
  const char *from[2];
  int64_t *to;
  int64_t *count; /* for each row, how many ones lie before each piece, and in the whole row */
} search_job;

static nvd_row row_at(const search_job *j, int which, int64_t row) {
  const nvf_operand *x = &j->s->r.in[which];
  const char *data = nvd_piece_at(x, 1, j->from[which], row);
  return (nvd_row){ x->type, data, x->shape[x->rank - 1], x->stride[x->rank - 1], 0 };
}

static int64_t *count_at(const search_job *j, int64_t i) { return j->count + i + i / j->s->pieces; }

/* Piece i, of all rows: cuts x down to it. Returns the first element of the piece. */
static int64_t cut(const search_job *j, nvd_row *x, int64_t i) {
  int64_t lo = i % j->s->pieces * PIECE;
  x->data += lo * x->stride * nvg_size(x->type);
  x->n = x->n - lo < PIECE ? x->n - lo : PIECE;
  return lo;
}

static void search_pieces(void *arg, int64_t lo, int64_t hi, int worker) {
  const search_job *j = arg;
  (void)worker;
  for (int64_t i = lo; i < hi; i++) {
    int64_t number = i / j->s->pieces;
    nvd_row row = row_at(j, 0, number), x = row_at(j, 1, number);
    int64_t first = cut(j, &x, i);
    nvd_search_row(&row, &x, j->s->r.attr[0] != 0, j->to + number * j->s->each + first);
  }
}

static void count_pieces(void *arg, int64_t lo, int64_t hi, int worker) {
  const search_job *j = arg;
  (void)worker;
  for (int64_t i = lo; i < hi; i++) {
    nvd_row x = row_at(j, 0, i / j->s->pieces);
    cut(j, &x, i);
    *count_at(j, i) = nvd_count_ones(x.data, x.n, x.stride);
  }
}

static void list_pieces(void *arg, int64_t lo, int64_t hi, int worker) {
  const search_job *j = arg;
  const solution *s = j->s;
  (void)worker;
  for (int64_t i = lo; i < hi; i++) {
    int64_t number = i / s->pieces, begin = count_at(j, i)[0], own = count_at(j, i)[1] - begin, room = s->each - begin;
    if (room <= 0) continue;
    nvd_row x = row_at(j, 0, number);
    int64_t first = cut(j, &x, i);
    nvd_list_ones(j->to + number * s->each + begin, own < room ? own : room, first, x.data, x.n, x.stride);
  }
}

/* Turns the counts of pieces into those of what lies before them, and fills the rest of each row of the result. */
static void sum_counts(const search_job *j) {
  const solution *s = j->s;
  for (int64_t row = 0; row < s->rows; row++) {
    int64_t before = 0, *count = count_at(j, row * s->pieces);
    for (int64_t i = 0; i < s->pieces; i++) {
      int64_t own = count[i];
      count[i] = before;
      before += own;
    }
    count[s->pieces] = before;
    for (int64_t i = before; i < s->each; i++) j->to[row * s->each + i] = s->n;
  }
}

static void run_pieces(const search_job *j, int threads, void (*what)(void *, int64_t, int64_t, int)) {
  int64_t n = j->s->rows * j->s->pieces, each = 1;
  while (each * (j->s->n < PIECE ? j->s->n : PIECE) < PIECE / 4 && each < n) each *= 2; /* worth waking a thread for */
  if (threads > 1) nvb_pool_run_with(threads, what, (void *)(uintptr_t)j, n, each);
  else what((void *)(uintptr_t)j, 0, n, 0);
}

static int run_search(nvd_solution *base, const nvd_run_args *at) {
  const solution *s = (const solution *)base;
  char *const *from = (char *const *)(const void *)at->arg; /* the operands, then every buffer of the result */
  char *const *buffer = from + s->r.nin;
  search_job j = { s, { from[0], from[s->r.nin - 1] }, (int64_t *)(void *)buffer[0], at->workspace };
  if (s->r.op == NVG_OP_SEARCHED) {
    run_pieces(&j, at->threads, search_pieces);
  } else {
    run_pieces(&j, at->threads, count_pieces);
    sum_counts(&j);
    run_pieces(&j, at->threads, list_pieces);
  }
  for (int i = 1; i < s->copies; i++) memcpy(buffer[i], buffer[0], (size_t)(s->rows * s->each) * sizeof(int64_t));
  return NVM_OK;
}

static const nvd_solver searches = { .name = "search", .device = NVB_CPU, .run = run_search };

nvd_solution *nvd_search(nvb_arena *a, const nvf_step *step) {
  const nvf_routine *r = step->routine;
  solution *s = NVB_NEW(a, solution);
  const nvf_operand *cut_up = &r->in[r->nin - 1]; /* what is divided into pieces */
  *s = (solution){ .base = { .by = &searches },
                   .rows = step->blocks,
                   .n = r->in[0].shape[r->in[0].rank - 1],
                   .each = r->result.shape[r->result.rank - 1],
                   .copies = step->k->nparam - r->nin };
  s->pieces = (cut_up->shape[cut_up->rank - 1] - 1) / PIECE + 1;
  nvd_routine_copy(a, &s->r, r);
  if (r->op == NVG_OP_POSITIONS) s->base.workspace = s->rows * (s->pieces + 1) * (int64_t)sizeof(int64_t);
  return &s->base;
}
