/* Operations. Those of linear algebra are as all others (nvm/ops.h): each returns a new lazy array that belongs to the
   innermost open scope, or NULL with a message; NULL operands pass through. nvm/nvm.h does not include this header.

   Matrices are the last two dimensions of an array; those before them are batches, which broadcast. Square matrices
   have n rows, others m rows and n columns, and k is the lesser of them. Results are float32, float64, complex64 or
   complex128, as the operands are; integers and bool become the context's default float.

   A result of several parts is one row for each matrix, in which the parts lie one behind the other, row-major;
   nvm_part reads one. The factorization is computed once, however many of its parts are read.

   Errors of the call: NVM_ERR_VALUE for shapes, NVM_ERR_TYPE for other dtypes. Errors where the value is needed:
   NVM_ERR_LINALG for a matrix that is singular, or not definite, and for an algorithm that does not converge; the
   message names the call and the matrix of the batch. NVM_ERR_UNSUPPORTED: LAPACK is missing. */
#ifndef NVM_LINALG_H
#define NVM_LINALG_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- solutions */
NVM_API nvm_array *nvm_solve(nvm_array *a, nvm_array *b); /* x of a x = b; b: a matrix, or one vector */
/* The same of which one triangle of a is read. trans: 1 of a^T x = b, 2 of a^H x = b; unit_diagonal: it is all ones. */
NVM_API nvm_array *nvm_solve_triangular(nvm_array *a, nvm_array *b, int trans, int lower, int unit_diagonal);
NVM_API nvm_array *nvm_lu_solve(nvm_array *lu, nvm_array *piv, nvm_array *b); /* by parts of nvm_lu; piv: integers */
NVM_API nvm_array *nvm_inv(nvm_array *x);
NVM_API nvm_array *nvm_det(nvm_array *x);

/* ---- factorizations */
/* L of a Hermitian positive definite x = L L^H, of which one triangle is read; upper: U of U^H U. */
NVM_API nvm_array *nvm_cholesky(nvm_array *x, int upper);
/* Parts: L (without its diagonal of ones) and U as one m x n matrix, the k rows with which rows 0, 1 ... were
   exchanged, 2 numbers for internal use, the m rows in their order. */
NVM_API nvm_array *nvm_lu(nvm_array *x);
/* Parts: Q (m x k) and R (k x n); complete: Q (m x m) and R (m x n). */
NVM_API nvm_array *nvm_qr(nvm_array *x, int complete);
/* Parts: U (m x k), k singular values, the greatest first, and V^H (k x n); full: U is m x m and V^H n x n. */
NVM_API nvm_array *nvm_svd(nvm_array *x, int full);
NVM_API nvm_array *nvm_svdvals(nvm_array *x); /* the singular values alone, real */
/* Parts: n eigenvalues, the smallest first, and eigenvectors (n x n, columns) of a Hermitian matrix, of which one
   triangle is read. */
NVM_API nvm_array *nvm_eigh(nvm_array *x, int upper);
NVM_API nvm_array *nvm_eigvalsh(nvm_array *x, int upper); /* the eigenvalues alone, real */
NVM_API nvm_array *nvm_eig(nvm_array *x);                 /* parts: n complex eigenvalues, eigenvectors (n x n) */
NVM_API nvm_array *nvm_eigvals(nvm_array *x);
/* The part of rows x cols numbers, or (cols -1) the vector of rows numbers, from number `start` on; real: their real
   parts alone. */
NVM_API nvm_array *nvm_part(nvm_array *x, int64_t start, int64_t rows, int64_t cols, int real);

#ifdef __cplusplus
}
#endif
#endif
