/* The C API's linear algebra: every function, by what its result has to satisfy. */
#include <math.h>
#include <string.h>
#include "../suite.h"
#include "nvm/linalg.h"
#include "nvm/nvm.h"

static nvm_ctx *ctx;
static nvm_scope *scope;
static void open_all(void) {
  ck_assert_int_eq(nvm_ctx_new(&ctx, NULL), NVM_OK);
  scope = nvm_scope_open(ctx);
}
static void close_all(void) {
  nvm_scope_close(scope);
  nvm_ctx_free(ctx);
}

enum { N = 3 };
static const double definite[N * N] = { 4, 1, 0, 1, 5, 2, 0, 2, 6 }, general[N * N] = { 0, 2, 1, 3, 1, 0, 1, 1, 4 };
static const double right[N] = { 1, -2, 3 };
static nvm_array *matrix(const double *x) { return nvm_from_host(ctx, NVM_F64, 2, (int64_t[]){ N, N }, x); }
static nvm_array *vector(const double *x) { return nvm_from_host(ctx, NVM_F64, 1, (int64_t[]){ N }, x); }
static nvm_array *turned(nvm_array *x) { return nvm_matrix_transpose(x); }
static nvm_array *times(nvm_array *a, nvm_array *b) { return nvm_matmul(a, b); }

static void near(nvm_array *got, nvm_array *want) {
  double a[N * N] = { 0 }, b[N * N] = { 0 };
  ck_assert_msg(got && want && nvm_size(got) == nvm_size(want), "%s", nvm_last_error());
  size_t bytes = sizeof *a * (size_t)nvm_size(got);
  ck_assert_msg(nvm_copy_to_host(got, a, bytes) == NVM_OK, "%s", nvm_last_error());
  ck_assert_int_eq(nvm_copy_to_host(want, b, bytes), NVM_OK);
  for (int i = 0; i < nvm_size(got); i++) ck_assert_double_le(fabs(a[i] - b[i]), 1e-13);
}

START_TEST(solutions) {
  nvm_array *a = matrix(general), *b = vector(right);
  near(times(a, nvm_solve(a, b)), b);
  near(times(nvm_inv(a), times(a, b)), b);
  near(nvm_det(a), nvm_from_host(ctx, NVM_F64, 0, NULL, &(double){ -22 }));
  nvm_array *low = nvm_tril(matrix(definite), 0);
  near(times(low, nvm_solve_triangular(matrix(definite), b, 0, 1, 0)), b);
  near(times(turned(low), nvm_solve_triangular(matrix(definite), b, 1, 1, 0)), b);
}
END_TEST

START_TEST(factorizations) {
  nvm_array *a = matrix(general), *d = matrix(definite), *l = nvm_cholesky(d, 0), *b = vector(right);
  near(times(l, turned(l)), d);
  nvm_array *lu = nvm_lu(a), *piv = nvm_astype(nvm_part(lu, N * N, N, -1, 1), NVM_I32);
  near(times(a, nvm_lu_solve(nvm_part(lu, 0, N, N, 0), piv, b)), b);
  nvm_array *qr = nvm_qr(a, 0), *q = nvm_part(qr, 0, N, N, 0);
  near(times(q, nvm_part(qr, N * N, N, N, 0)), a);
  nvm_array *svd = nvm_svd(a, 1), *s = nvm_part(svd, N * N, N, -1, 1);
  near(times(nvm_mul(nvm_part(svd, 0, N, N, 0), s), nvm_part(svd, N * N + N, N, N, 0)), a);
  near(nvm_svdvals(a), s);
}
END_TEST

START_TEST(eigenvalues) {
  nvm_array *d = matrix(definite), *h = nvm_eigh(d, 0), *w = nvm_part(h, 0, N, -1, 1), *v = nvm_part(h, N, N, N, 0);
  near(times(d, v), nvm_mul(v, w));
  near(nvm_eigvalsh(d, 1), w);
  nvm_array *g = nvm_eig(d), *gw = nvm_part(g, 0, N, -1, 0), *gv = nvm_part(g, N, N, N, 0);
  near(nvm_real(times(nvm_astype(d, NVM_C128), gv)), nvm_real(nvm_mul(gv, gw)));
  near(nvm_sort(nvm_real(nvm_eigvals(d)), 0, 0), w);
}
END_TEST

START_TEST(failures) {
  double x[N];
  nvm_array *zero = matrix((double[N *N]){ 0 });
  ck_assert_int_eq(nvm_copy_to_host(nvm_solve(zero, vector(right)), x, sizeof x), NVM_ERR_LINALG);
  ck_assert_str_eq(nvm_last_error(), "[linalg.solve] the matrix is singular");
  ck_assert_ptr_null(nvm_inv(vector(right)));
  ck_assert_int_eq(nvm_last_status(), NVM_ERR_VALUE);
  ck_assert_ptr_null(nvm_part(nvm_lu(zero), 10, N, N, 0));
  ck_assert_int_eq(nvm_last_status(), NVM_ERR_VALUE);
}
END_TEST

SUITE_WITH("linalg", open_all, close_all, solutions, factorizations, eigenvalues, failures)
