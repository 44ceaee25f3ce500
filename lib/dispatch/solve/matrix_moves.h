/* What happens to matrices in the memory of a GPU between the calls of cuSOLVER: one kernel for each dtype, whose
   source is matrix_moves.cu. Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_MATRIX_MOVES_H
#define NVM_DISPATCH_SOLVE_MATRIX_MOVES_H
#include "dispatch/cuda/device_impl.h"

enum {                /* in the order of matrix_moves.cu */
       NVD_COPY,      /* along the rows of the result */
       NVD_TURN,      /* the same by tiles, for a transposition */
       NVD_UNIT,      /* L and U of L D U from a column-major lower Cholesky factor, by tiles */
       NVD_SQUARE,    /* D of it: the diagonal */
       NVD_TAIL,      /* what FACTORS has behind the factors */
       NVD_PIVOTS,    /* the pivots of FACTORS as integers */
       NVD_NOTE,      /* notes the first matrix whose info is not 0 */
       NVD_NOTE_ZERO, /* notes the first matrix with a zero on the diagonal */
       NVD_REALS,     /* real numbers as elements */
       NVD_ADDRESSES  /* the addresses of the matrices of a batch */
};
enum { NVD_ALL, NVD_LOWER, NVD_UPPER, NVD_IDENTITY }; /* what of a matrix is copied; elsewhere are zeros */

/* rank 0: the matrices of the source are from_matrix elements apart; else their place is that of `rank` dimensions. */
typedef struct nvd_move {
  int64_t what;
  void *to;
  const void *from;
  int64_t to_matrix, to_row, to_col, from_matrix, from_row, from_col, rows, cols, count;
  int64_t how;  /* what is copied; TAIL: nvg_factorization; NOTE: nvd_matrix_fault */
  int64_t conj; /* conjugated; TAIL, PIVOTS: the integers have 64 bits */
  int64_t rank; /* TAIL: the order of the rows is asked for */
  int64_t shape[NVM_MAX_RANK], stride[NVM_MAX_RANK];
} nvd_move;

/* Obtains the kernel of a dtype. Returns a status; without the device's lock. a: for the source. */
int nvd_moves_get(nvb_arena *a, void **function, nvd_device *d, nvm_dtype type);
int nvd_move_run(void *function, const nvd_move *j, void *stream); /* a CUDA error code */
#endif
