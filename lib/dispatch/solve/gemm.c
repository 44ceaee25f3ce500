/* Turns a step's GEMM descriptor into the form of BLAS: column-major, with leading dimensions, and with few batch
   dimensions. Decides when to transpose the whole product (C^T = B^T A^T) so that the result's columns are contiguous;
   never what a library supports. */
#include <limits.h>
#include <string.h>
#include "dispatch/solve/solve.h"
#include "frag/dtype.h"

static nvd_matrix matrix_of(const nvf_matrix *x, int transposed) {
  nvd_matrix r = { .param = x->param,
                   .type = x->type,
                   .offset = x->offset,
                   .row = transposed ? x->col : x->row,
                   .col = transposed ? x->row : x->col };
  memcpy(r.batch, x->batch, sizeof r.batch);
  return r;
}

/* Finds the leading dimension and whether the matrix is transposed in memory; ld is 0 if there is none that fits BLAS's
   32-bit integers. */
static void find_ld(nvd_matrix *x, int64_t rows, int64_t cols) {
  if (!rows || !cols) {
    x->ld = rows ? rows : 1;
    return;
  }
  int plain = (x->row == 1 || rows == 1) && (x->col >= rows || cols == 1);
  int transposed = (x->col == 1 || cols == 1) && (x->row >= cols || rows == 1);
  x->trans = !plain && transposed;
  x->ld = plain ? (cols == 1 ? rows : x->col) : transposed ? (rows == 1 ? cols : x->row) : 0;
  if (x->ld > INT_MAX) x->ld = 0;
}

static void transpose_to(nvd_gemm *g, const nvf_gemm *p, int transposed) {
  g->m = transposed ? p->n : p->m;
  g->n = transposed ? p->m : p->n;
  g->k = p->k;
  g->a = matrix_of(transposed ? &p->b : &p->a, transposed);
  g->b = matrix_of(transposed ? &p->a : &p->b, transposed);
  g->c = matrix_of(&p->c, transposed);
  g->d = matrix_of(&p->d, transposed);
  g->aux = matrix_of(&p->aux, transposed);
  g->bias = matrix_of(&p->bias, transposed);
  for (int i = 0; i < NVF_SCALES; i++) {
    g->scale[i] = matrix_of(&p->scale[transposed ? NVF_SCALES - 1 - i : i], transposed);
    g->by[i] = p->by[transposed ? NVF_SCALES - 1 - i : i];
  }
  find_ld(&g->a, g->m, g->k);
  find_ld(&g->b, g->k, g->n);
  find_ld(&g->c, g->m, g->n);
  find_ld(&g->d, g->m, g->n);
  find_ld(&g->aux, g->m, g->n);
}

static void join_batches(nvd_gemm *g, const nvf_gemm *p) {
  nvd_matrix *const all[] = { &g->a, &g->b, &g->c, &g->d, &g->aux, &g->bias };
  enum { N = sizeof all / sizeof *all };
  g->nbatch = 0;
  g->batches = 1;
  for (int i = 0; i < p->nbatch; i++) {
    int64_t e = p->batch[i];
    g->batches *= e;
    if (e == 1) continue;
    int last = g->nbatch - 1, joins = last >= 0;
    for (int j = 0; j < N && joins; j++) joins = all[j]->param < 0 || all[j]->batch[last] == e * all[j]->batch[i];
    last += !joins;
    g->extent[last] = joins ? g->extent[last] * e : e;
    g->nbatch = last + 1;
    for (int j = 0; j < N; j++) all[j]->batch[last] = all[j]->batch[i];
  }
}

static nvm_dtype scale_type(const nvf_kernel *k, nvf_scale s) { return s.param < 0 ? NVM_F64 : k->param[s.param].type; }

const char *nvd_gemm_of(nvd_gemm *g, const nvf_kernel *k, const nvf_gemm *p) {
  *g = (nvd_gemm){ .alpha = p->alpha,
                   .beta = p->beta,
                   .alpha_type = scale_type(k, p->alpha),
                   .beta_type = scale_type(k, p->beta),
                   .accumulate = p->accumulate,
                   .precision = p->precision,
                   .act = p->act };
  if (p->unsupported) return p->unsupported;
  transpose_to(g, p, 0);
  int row = p->m == 1 && nvg_is_f8(p->a.type); /* one row: either form fits, and FP8 operands must be K-major */
  if (g->d.trans || !g->d.ld || row) transpose_to(g, p, 1);
  join_batches(g, p);
  if (g->m > INT_MAX || g->n > INT_MAX || g->k > INT_MAX) return "an extent has more than 31 bits";
  if (!g->d.ld || g->d.trans) return "the result's rows and columns are both apart";
  if (!g->a.ld || !g->b.ld) return "an operand's rows and columns are both apart, or overlap";
  if (nvg_parts(g->alpha_type) > 1 || nvg_parts(g->beta_type) > 1) return "an operand is complex";
  return NULL;
}

double nvd_scale_now(nvf_scale s, nvm_dtype type, const uint64_t *arg) {
  if (s.param < 0) return s.value;
  uint64_t bits = s.memory ? 0 : arg[s.param];
  if (s.memory) memcpy(&bits, (const void *)(uintptr_t)arg[s.param], (size_t)nvg_size(type));
  double x = nvg_class_of(type) == NVG_FLOAT ? nvg_bits_float(type, bits) : (double)nvg_bits_int(type, bits);
  return s.value * nvg_bits_float(s.as, nvg_float_bits(s.as, x));
}

char *nvd_matrix_at(const nvd_gemm *g, const nvd_matrix *x, int64_t i, const uint64_t *arg) {
  if (x->param < 0) return NULL;
  int64_t at = x->offset;
  for (int d = g->nbatch - 1; d >= 0; i /= g->extent[d--]) at += i % g->extent[d] * x->batch[d];
  return (char *)(uintptr_t)arg[x->param] + at * nvg_size(x->type);
}
