/* The product of a matrix with its transpose by half: a library multiplies blocks on the diagonal and below it, in a
   few calls (nvf_half_calls), and the project's own kernel copies the triangle to its mirror image. So the result is
   exactly symmetric. Never decides whether that is faster (fusion/gemm_half.c). */
#include "dispatch/solve/half_product.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/text.h"
#include "dispatch/solve/own_kernel.h"
#include "frag/dtype.h"

extern const char nvd_mirror_text[];
enum { THREADS = 256 };

typedef struct solution {
  nvd_solution base;
  int calls;
  nvd_solution *call[NVF_HALF_CALLS];
  nvd_device *device;
  void *mirror;
} solution;

/* As Task of mirror.cu. */
typedef struct mirror_task {
  void *data;
  int64_t n, ld, tiles, rank, extent[NVF_BATCHES], stride[NVF_BATCHES];
} mirror_task;

static int64_t tile_of(nvm_dtype t) { return nvg_size(t) == 2 ? 64 : 32; }

static const char *source_of(nvb_arena *a, nvm_dtype t) {
  nvb_text text = { .arena = a };
  nvm_dtype real = nvg_real_of(t);
  nvb_print(&text, "typedef %s real;\n#define PARTS %d\n#define TILE %d\n#define CONJ 0\n%s",
            nvg_is_narrow(t)  ? "unsigned short"
            : real == NVM_F32 ? "float"
                              : "double",
            nvg_parts(t), (int)tile_of(t), nvd_mirror_text);
  return nvb_text_get(&text);
}

/* ---- running */
static int run_mirror(const solution *s, const nvd_run_args *args) {
  const nvd_gemm *g = &s->base.g;
  int64_t side = tile_of(g->d.type), tiles = (g->m + side - 1) / side;
  mirror_task j = {
    .data = nvd_matrix_at(g, &g->d, 0, args->arg), .n = g->m, .ld = g->d.ld, .tiles = tiles, .rank = g->nbatch
  };
  memcpy(j.extent, g->extent, sizeof j.extent);
  memcpy(j.stride, g->d.batch, sizeof j.stride);
  void *param[1] = { &j };
  nvd_launch at = { .grid = { (unsigned)(tiles * (tiles + 1) / 2 * g->batches), 1, 1 },
                    .block = { THREADS, 1, 1 },
                    .stream = args->stream };
  int error = nvd_cu.cuLaunchKernelEx(&at, s->mirror, param, NULL);
  return error ? nvd_cuda_status(error, "matmul") : NVM_OK;
}

static int run_solution(nvd_solution *base, const nvd_run_args *args) {
  const solution *s = (const solution *)base;
  int status = NVM_OK;
  for (int i = 0; i < s->calls && !status; i++) status = s->call[i]->by->run(s->call[i], args);
  return status ? status : run_mirror(s, args);
}

static void destroy_solution(nvd_solution *base) {
  solution *s = (solution *)base;
  for (int i = 0; i < s->calls; i++) nvd_solution_free(s->call[i]);
}

/* ---- preparing */
static void add_batch(nvd_matrix *x, int at, int64_t offset, int64_t step) {
  x->offset += offset;
  x->batch[at] = step;
}

/* The blocks of one call as a product of their own. */
static nvd_task task_of(const nvd_task *t, const nvf_half_call *c) {
  nvd_task sub = *t;
  nvd_gemm *g = &sub.g;
  int at = g->nbatch;
  g->m = c->rows;
  g->n = c->cols;
  add_batch(&g->a, at, c->row * g->a.row, c->step * g->a.row);
  add_batch(&g->b, at, c->col * g->b.col, c->step * g->b.col);
  add_batch(&g->d, at, c->row + c->col * g->d.ld, c->step * (1 + g->d.ld));
  if (c->count == 1) return sub;
  g->extent[g->nbatch++] = c->count;
  g->batches *= c->count;
  return sub;
}

nvd_solution *nvd_half_product(nvb_arena *a, const nvd_task *t, int levels, const nvd_solver *gemm, const char **why) {
  static const nvd_solver half = { .name = "syrk", .device = NVB_CUDA, .run = run_solution, .free = destroy_solution };
  static const nvd_solver_choice any = { .solver = "" };
  nvf_half_call call[NVF_HALF_CALLS];
  int64_t side = tile_of(t->g.d.type), tiles = (t->g.m + side - 1) / side;
  if (!nvf_half_may(t->step->gemm)) return *why = "half of it is no result", NULL;
  if (tiles * (tiles + 1) / 2 > INT_MAX / t->g.batches) return *why = "its batches have too many tiles", NULL;
  solution *s = NVB_NEW(a, solution);
  *s = (solution){ .base = { .by = &half, .g = t->g }, .device = t->device };
  int n = nvf_half_calls(call, t->g.m, levels, nvf_half_unit(t->step->gemm));
  if (!n) return *why = "its blocks would be too small", NULL;
  if (nvd_own_kernel_get(&s->mirror, t->device, source_of(a, t->g.d.type), "mirror")) return *why = nvb_message(), NULL;
  for (int i = 0; i < n; i++) {
    nvd_task sub = task_of(t, &call[i]);
    const char *no = gemm->rejects(&sub);
    nvd_solution *made = no ? NULL : gemm->prepare(a, &sub, &any, &no);
    if (!made) {
      destroy_solution(&s->base);
      return *why = no, NULL;
    }
    made->by = gemm;
    s->call[s->calls++] = made;
    if (made->workspace > s->base.workspace) s->base.workspace = made->workspace;
  }
  return &s->base;
}

/* ---- options: a configuration is this word and the number of levels */
static const char word[] = "by half";

int nvd_half_levels(const nvd_solver_choice *choice) {
  int levels = memcmp(choice->config, word, sizeof word) ? 0 : choice->config[sizeof word];
  return levels <= NVF_HALF_LEVELS ? levels : 0;
}

int nvd_half_options(nvd_solver_option *out, int most, const nvd_task *t, int64_t workspace) {
  enum { LEAST = 64 }; /* extent of a block */
  int n = 0, first = t->step->gemm->half;
  for (int i = 0; i < NVF_HALF_LEVELS && n < most && nvf_half_may(t->step->gemm); i++) {
    int levels = !first || i >= first ? i + 1 : i ? i : first;
    nvf_half_call call[NVF_HALF_CALLS];
    if (t->g.m >> levels < LEAST || !nvf_half_calls(call, t->g.m, levels, nvf_half_unit(t->step->gemm))) continue;
    nvd_solver_option *o = &out[n++];
    *o = (nvd_solver_option){ .workspace = workspace };
    memcpy(o->choice.config, word, sizeof word);
    o->choice.config[sizeof word] = (unsigned char)levels;
    snprintf(o->what, sizeof o->what, "cuBLASLt, half of it in %d levels", levels);
  }
  return n;
}
