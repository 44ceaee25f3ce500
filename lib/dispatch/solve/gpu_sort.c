/* Sorts rows on a GPU by the project's own kernels, stably, with NaN last: rows that a block holds in one launch
   (sort_rows.cu), longer ones and whole arrays by a radix sort in passes over memory (sort_passes.cu). Decides which of
   them, and how rows are divided among warps and blocks; the result's bits depend on the operand alone. */
#include "dispatch/solve/gpu_sort.h"
#include <limits.h>
#include <string.h>
#include "base/err.h"
#include "base/text.h"
#include "dispatch/solve/own_kernel.h"
#include "frag/dtype.h"

extern const char nvd_rows_text[], nvd_sort_keys_text[], nvd_sort_rows_text[], nvd_sort_passes_text[];
enum {
  LANES = 32,
  DIGITS = 256,
  SHORT = 32,         /* elements of a row that are counted without a radix sort */
  BLOCK = 8,          /* warps of a block of short rows */
  MOST_WARPS = 16,    /* of a tile */
  FEW_TILES = 512,    /* of all rows: with fewer large tiles, small ones are used */
  RESIDENT = 1024,    /* threads of an SM that have to find registers: half of all */
  COUNTERS = 1024,    /* blocks that count digits */
  COUNT_SHARED = 4096 /* unsigned counters of a block */
};
static const int64_t NARROW = 1 << 30; /* counts that fit into 32 bits beside two flags */

/* ---- forms */
static int most_items(nvm_dtype t) { return nvg_size(t) == 8 ? 8 : 16; }

int64_t nvd_sort_most(nvm_dtype t) { return LANES * MOST_WARPS * most_items(t); }

static int64_t tile_of(const nvd_sort_form *f) { return LANES * f->warps * f->items; }

nvd_sort_form nvd_sort_form_of(nvm_dtype t, int order, int descending, int64_t rows, int64_t n) {
  nvd_sort_form f = { .type = t, .descending = descending, .order = order, .warps = 1, .items = 2 };
  if (n <= nvd_sort_most(t)) {
    while (f.items < most_items(t) && LANES * f.items < n) f.items *= 2;
    while (tile_of(&f) < n) f.warps *= 2;
    return f;
  }
  f.passes = 1;
  f.wide = n >= NARROW;
  f.warps = MOST_WARPS;
  f.items = most_items(t);
  if (rows * ((n - 1) / tile_of(&f) + 1) < FEW_TILES) f.warps /= 2, f.items /= 2;
  return f;
}

/* Tiles of a block. */
static int64_t groups_of(const nvd_sort_form *f) { return f->warps < BLOCK ? BLOCK / f->warps : 1; }

/* The greatest magnitude of a float dtype that is not NaN, as bits; 0 of other dtypes. */
static const char *most_of(nvm_dtype t) {
  switch (t) {
  case NVM_F8E4: return "0x7e";
  case NVM_F8E5: return "0x7c";
  case NVM_F16: return "0x7c00";
  case NVM_BF16: return "0x7f80";
  case NVM_F32: return "0x7f800000u";
  case NVM_F64: return "0x7ff0000000000000ull";
  default: return "0";
  }
}

static int is_signed(nvm_dtype t) { return t == NVM_I8 || t == NVM_I16 || t == NVM_I32 || t == NVM_I64; }

const char *nvd_sort_source(nvb_arena *a, const nvd_sort_form *f) {
  static const char *const unsigned_of[] = {
    [1] = "unsigned char", [2] = "unsigned short", [4] = "unsigned", [8] = "unsigned long long"
  };
  nvb_text t = { .arena = a };
  int threads = (int)groups_of(f) * f->warps * LANES, size = nvg_size(f->type), parts = COUNT_SHARED / (size * DIGITS);
  nvb_print(&t, "typedef %s U;\ntypedef %s Key;\n#define SIGNED %d\n#define MOST %s\n#define TURN %d\n",
            unsigned_of[size], unsigned_of[size < 4 ? 4 : size], is_signed(f->type), most_of(f->type), f->descending);
  nvb_print(&t, "#define ORDER %d\n#define WARPS %d\n#define ITEMS %d\n%s%s", f->order, f->warps, f->items,
            nvd_rows_text, nvd_sort_keys_text);
  if (f->passes)
    nvb_print(&t, "typedef %s Count;\n#define PARTS %d\n%s", unsigned_of[f->wide ? 8 : 4], parts < 8 ? parts : 8,
              nvd_sort_passes_text);
  else nvb_print(&t, "#define GROUPS %d\n%s", (int)groups_of(f), nvd_sort_rows_text);
  nvb_print(&t,
            "extern \"C\" __global__ void __launch_bounds__(%d, %d) nvm_kernel(const __grid_constant__ Task j) {\n"
            "  run_block(j);\n}\n",
            threads, RESIDENT / threads);
  return nvb_text_get(&t);
}

/* ---- one step, prepared */
/* Areas of the workspace: tickets, counts of digits and what tiles say, twice, which follow each other; elements and
   positions between two passes. */
typedef enum area { TICKETS, COUNTS, SAID, SAID_NEXT, ELEMENTS, ELEMENTS_NEXT, PLACES, PLACES_NEXT, AREAS } area;

typedef struct solution {
  nvd_solution base;
  nvd_sort_form f;
  const char *what; /* the operation that the user called */
  void *kernel;
  int64_t rows, n, tiles, size; /* tiles: of a row; size: of an element of the result */
  int64_t at[AREAS];
  int copies; /* buffers that receive the result */
  nvd_rows from;
} solution;

/* As Task of sort_rows.cu. */
typedef struct rows_task {
  const void *from;
  void *to;
  int64_t rows, n, lanes;
  nvd_rows at;
} rows_task;

/* As Task of sort_passes.cu. */
enum { COUNT, SUM, PASS };
typedef struct passes_task {
  int64_t what, pass, last, rows, n, tiles, blocks;
  const void *from;
  void *to;
  const void *from_order;
  void *to_order, *ticket, *counts, *said, *clear;
  nvd_rows at;
} passes_task;

/* ---- running */
static int launch(const solution *s, const void *task, int64_t blocks, int64_t warps, void *stream) {
  void *param[1] = { (void *)(uintptr_t)task };
  nvd_launch at = { .grid = { (unsigned)blocks, 1, 1 },
                    .block = { (unsigned)(warps * LANES), 1, 1 },
                    .stream = stream };
  return nvd_cu.cuLaunchKernelEx(&at, s->kernel, param, NULL);
}

/* Lanes of a row that is not sorted by radix. */
static int64_t lanes_of(int64_t n) {
  int64_t lanes = 1;
  while (lanes < n) lanes *= 2;
  return n <= SHORT ? lanes : 0;
}

/* Rows that a block sorts at a time. */
static int64_t rows_of_block(const solution *s) {
  int64_t groups = groups_of(&s->f), lanes = lanes_of(s->n);
  return lanes ? LANES / lanes * groups * s->f.warps : groups;
}

static int sort_rows(const solution *s, const void *from, void *to, void *stream) {
  rows_task j = { .from = from, .to = to, .rows = s->rows, .n = s->n, .lanes = lanes_of(s->n), .at = s->from };
  return launch(s, &j, (s->rows - 1) / rows_of_block(s) + 1, groups_of(&s->f) * s->f.warps, stream);
}

/* Blocks that count the digits of a row. */
static int64_t counters_of(const solution *s) {
  int64_t most = COUNTERS / s->rows + 1;
  return s->tiles < most ? s->tiles : most;
}

/* Elements, and positions, go back and forth between two places; the last pass writes the result. */
static int run_pass(const solution *s, passes_task j, int64_t pass, char *workspace, void *result, void *stream) {
  const int64_t *at = s->at;
  int odd = (nvg_size(s->f.type) - 1 - pass) & 1;
  j.what = PASS, j.pass = pass, j.last = pass + 1 == nvg_size(s->f.type);
  void *elements[2] = { s->f.order ? workspace + at[ELEMENTS_NEXT] : result, workspace + at[ELEMENTS] };
  if (pass) j.from = elements[!odd];
  j.to = j.last ? result : elements[odd];
  j.from_order = workspace + at[odd ? PLACES_NEXT : PLACES];
  j.to_order = workspace + at[odd ? PLACES : PLACES_NEXT];
  j.said = workspace + at[pass & 1 ? SAID_NEXT : SAID];
  j.clear = workspace + at[pass & 1 ? SAID : SAID_NEXT];
  return launch(s, &j, s->rows * s->tiles, s->f.warps, stream);
}

static int sort_in_passes(const solution *s, const void *from, void *to, char *workspace, void *stream) {
  int64_t passes = nvg_size(s->f.type);
  passes_task j = { .what = COUNT,
                    .rows = s->rows,
                    .n = s->n,
                    .tiles = s->tiles,
                    .blocks = counters_of(s),
                    .from = from,
                    .ticket = workspace + s->at[TICKETS],
                    .counts = workspace + s->at[COUNTS],
                    .at = s->from };
  int error = nvd_cu.cudaMemsetAsync(workspace, 0, (size_t)s->at[ELEMENTS], stream);
  error = error ? error : launch(s, &j, s->rows * j.blocks, s->f.warps, stream);
  j.what = SUM;
  error = error ? error : launch(s, &j, s->rows * passes, s->f.warps, stream);
  for (int64_t pass = 0; pass < passes && !error; pass++) error = run_pass(s, j, pass, workspace, to, stream);
  return error;
}

static int run_solution(nvd_solution *base, const nvd_run_args *at) {
  const solution *s = (const solution *)base;
  char *const *buffer = (char *const *)(const void *)at->arg; /* the operand, then every buffer of the result */
  size_t bytes = (size_t)(s->rows * s->n * s->size);
  if (!bytes) return NVM_OK;
  if (at->workspace_bytes < base->workspace)
    return nvb_fail(NVM_ERR_MEMORY, "[%s] needs %lld bytes of workspace; there are %lld", s->what,
                    (long long)base->workspace, (long long)at->workspace_bytes);
  int error = s->f.passes ? sort_in_passes(s, buffer[0], buffer[1], at->workspace, at->stream)
                          : sort_rows(s, buffer[0], buffer[1], at->stream);
  for (int i = 1; i < s->copies && !error; i++)
    error = nvd_cu.cudaMemcpyAsync(buffer[1 + i], buffer[1], bytes, CUDA_ON_DEVICE, at->stream);
  return error ? nvd_cuda_status(error, s->what) : NVM_OK;
}

static const nvd_solver sorts = { .name = "sort", .device = NVB_CUDA, .run = run_solution };

/* ---- preparing */
static void need(solution *s, area which, int64_t bytes) {
  enum { LINE = 256 };
  s->at[which] = s->base.workspace;
  s->base.workspace += (bytes + LINE - 1) / LINE * LINE;
}

static void find_workspace(solution *s) {
  int64_t passes = nvg_size(s->f.type), count = s->f.wide ? 8 : 4, all = s->rows * s->n;
  int64_t said = s->rows * s->tiles * DIGITS * count;
  need(s, TICKETS, passes * (int64_t)sizeof(unsigned));
  need(s, COUNTS, s->rows * passes * DIGITS * count);
  need(s, SAID, said);
  need(s, SAID_NEXT, passes > 1 ? said : 0);
  need(s, ELEMENTS, passes > 1 ? all * passes : 0);
  need(s, ELEMENTS_NEXT, passes > 1 && s->f.order ? all * passes : 0);
  need(s, PLACES, passes > 1 && s->f.order ? all * (int64_t)sizeof(unsigned) : 0);
  need(s, PLACES_NEXT, passes > 1 && s->f.order ? all * (int64_t)sizeof(unsigned) : 0);
}

static int64_t most_blocks(const solution *s) {
  if (!s->f.passes) return s->rows / rows_of_block(s) + 1;
  int64_t each = s->tiles > nvg_size(s->f.type) ? s->tiles : nvg_size(s->f.type);
  return s->rows * (each > counters_of(s) ? each : counters_of(s));
}

nvd_solution *nvd_sort_on(nvb_arena *a, const nvf_step *step, nvd_device *d) {
  const nvf_routine *r = step->routine;
  solution *s = NVB_NEW(a, solution);
  int order = r->op == NVG_OP_ORDER;
  *s = (solution){ .base = { .by = &sorts },
                   .what = nvb_strdup(a, r->what),
                   .rows = step->blocks,
                   .n = r->in[0].shape[r->in[0].rank - 1],
                   .size = nvg_size(r->result.type),
                   .copies = step->k->nparam - 1 };
  s->f = nvd_sort_form_of(r->in[0].type, order, r->attr[0] != 0, s->rows, s->n);
  if (!s->rows || !s->n) return &s->base;
  s->tiles = (s->n - 1) / tile_of(&s->f) + 1;
  if (most_blocks(s) > INT_MAX || (order && s->n > (int64_t)UINT_MAX))
    nvb_throw(a, NVM_ERR_STATE, "[%s] a GPU does not sort %lld rows of %lld elements", r->what, (long long)s->rows,
              (long long)s->n);
  nvd_rows_of(&s->from, &r->in[0]);
  if (s->f.passes) find_workspace(s);
  int status = nvd_own_kernel_get(&s->kernel, d, nvd_sort_source(a, &s->f), "sort");
  if (status) nvb_throw(a, status, "%s", nvb_message());
  return &s->base;
}
