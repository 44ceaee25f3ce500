/* Finds LAPACK in OpenBLAS, and moves elements for the files that call it. */
#include "dispatch/solve/lapack.h"
#include <pthread.h>
#include <string.h>
#include "base/err.h"
#include "base/settings.h"
#include "frag/dtype.h"

enum { S, D, C, Z, TYPES };
static nvd_lapack lapack[TYPES];
static char why_not[512];
static int opened;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int find_symbols(void) {
  static const nvb_symbol symbol[] = {
#define ROW(t, member, name) { #name "_", (void (**)(void))&lapack[t].member, 0 }
#define ALL(name) ROW(S, name, s##name), ROW(D, name, d##name), ROW(C, name, c##name), ROW(Z, name, z##name)
    ALL(getrf),
    ALL(getri),
    ALL(potrf),
    ALL(potri),
    ALL(trtri),
    ALL(trsm),
    ALL(trsv),
    ALL(gelqf),
    ROW(S, orglq, sorglq),
    ROW(D, orglq, dorglq),
    ROW(C, orglq, cunglq),
    ROW(Z, orglq, zunglq),
    ROW(S, gesdd, sgesdd),
    ROW(D, gesdd, dgesdd),
    ROW(C, c_gesdd, cgesdd),
    ROW(Z, c_gesdd, zgesdd),
    ROW(S, syevd, ssyevd),
    ROW(D, syevd, dsyevd),
    ROW(C, heevd, cheevd),
    ROW(Z, heevd, zheevd),
    ROW(S, geev, sgeev),
    ROW(D, geev, dgeev),
    ROW(C, c_geev, cgeev),
    ROW(Z, c_geev, zgeev),
#undef ALL
#undef ROW
  };
  return nvd_openblas_symbols("LAPACK of OpenBLAS", symbol, (int)(sizeof symbol / sizeof *symbol));
}

static void open_once(void) {
  opened = find_symbols();
  if (opened) { strncpy(why_not, nvb_message(), sizeof why_not - 1); }
}

const nvd_lapack *nvd_lapack_of(nvm_dtype t) {
  pthread_once(&once, open_once);
  if (opened) return nvb_fail(opened, "%s", why_not), NULL;
  if (!nvb_has(NVB_SOLVERS, "openblas")) return nvb_fail(NVM_ERR_UNSUPPORTED, "NVM_SOLVERS leaves OpenBLAS out"), NULL;
  return &lapack[t == NVM_F32 ? S : t == NVM_F64 ? D : t == NVM_C64 ? C : Z];
}

/* ---- elements */
typedef struct pair { uint64_t re, im; } pair;
typedef struct source { const char *at; int64_t row, col, rows, cols; } source; /* strides in elements */

/* Copies by blocks, so that neither side's lines are fetched again and again. */
#define COPY(T) \
  static void copy_##T(T *to, const source *x, int turned) { \
    enum { SIDE = 16 }; \
    const T *from = (const T *)(const void *)x->at; \
    int64_t down = turned ? 1 : x->cols, across = turned ? x->rows : 1; \
    for (int64_t i0 = 0; i0 < x->rows; i0 += SIDE) \
      for (int64_t j0 = 0; j0 < x->cols; j0 += SIDE) \
        for (int64_t i = i0; i < i0 + SIDE && i < x->rows; i++) \
          for (int64_t j = j0; j < j0 + SIDE && j < x->cols; j++) \
            to[i * down + j * across] = from[i * x->row + j * x->col]; \
  }
COPY(uint32_t)
COPY(uint64_t)
COPY(pair)

static void copy_matrix(char *to, const source *x, int size, int turned) {
  int rows_packed = x->col == 1 && !turned, all_packed = rows_packed && x->row == x->cols;
  int64_t runs = all_packed ? 1 : x->rows, run = all_packed ? x->rows * x->cols : x->cols;
  if (rows_packed)
    for (int64_t i = 0; i < runs; i++) memcpy(to + i * run * size, x->at + i * x->row * size, (size_t)(run * size));
  else if (size == 4) copy_uint32_t((uint32_t *)(void *)to, x, turned);
  else if (size == 8) copy_uint64_t((uint64_t *)(void *)to, x, turned);
  else copy_pair((pair *)(void *)to, x, turned);
}

static source source_of(const nvd_matrix_task *x, int which) {
  const nvf_operand *o = &x->r->in[which];
  return (source){ x->in[which], o->stride[o->rank - 2], o->stride[o->rank - 1], o->shape[o->rank - 2],
                   o->shape[o->rank - 1] };
}

void nvd_matrix_pack(const nvd_matrix_task *x, int which, char *to) {
  source s = source_of(x, which);
  copy_matrix(to, &s, x->size, 0);
}

void nvd_matrix_pack_turned(const nvd_matrix_task *x, int which, char *to) {
  source s = source_of(x, which);
  copy_matrix(to, &s, x->size, 1);
}

void nvd_matrix_turn(char *to, const char *from, int64_t rows, int64_t cols, int size) {
  copy_matrix(to, &(source){ from, cols, 1, rows, cols }, size, 1);
}

void nvd_conjugate(char *at, int64_t n, nvm_dtype t) {
  if (t == NVM_C64)
    for (int64_t i = 0; i < n; i++) ((float *)(void *)at)[2 * i + 1] *= -1;
  if (t == NVM_C128)
    for (int64_t i = 0; i < n; i++) ((double *)(void *)at)[2 * i + 1] *= -1;
}

static int is_double(nvm_dtype t) { return nvg_real_of(t) == NVM_F64; }

double nvd_number(const char *from, int64_t i, nvm_dtype t) {
  i *= nvg_parts(t);
  return is_double(t) ? ((const double *)(const void *)from)[i] : (double)((const float *)(const void *)from)[i];
}

void nvd_put_number(char *to, int64_t i, nvm_dtype t, double v) {
  double d[2] = { v, 0 };
  float f[2] = { (float)v, 0 };
  int size = nvg_size(t);
  memcpy(to + i * size, is_double(t) ? (const void *)d : f, (size_t)size);
}

int nvd_is_zero(const char *from, int64_t i, nvm_dtype t) {
  int complex = nvg_parts(t) == 2;
  nvm_dtype part = nvg_real_of(t);
  i *= 1 + complex;
  return nvd_number(from, i, part) == 0 && (!complex || nvd_number(from, i + 1, part) == 0);
}

void nvd_put_reals(char *to, const char *from, int64_t n, nvm_dtype t) {
  if (nvg_parts(t) == 1) memcpy(to, from, (size_t)(n * nvg_size(t)));
  else
    for (int64_t i = 0; i < n; i++) nvd_put_number(to, i, t, nvd_number(from, i, nvg_real_of(t)));
}
