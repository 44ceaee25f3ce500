/* Fourier transforms of rows in memory. A plan has the passes and twiddle factors of one length and dtype; plans are
   shared, and those used last are kept. The bits of a transform depend on its length, kind and dtype alone. Private to
   dispatch. */
#ifndef NVM_DISPATCH_FFT_H
#define NVM_DISPATCH_FFT_H
#include "dispatch/lru.h"
#include "graph/graph.h"

/* A pass of the Stockham algorithm over n = radix m s elements: for all p < m and q < s, the transform of the elements
   x[q + s (p + m k)], k < radix, times the twiddle factors w^(p k) becomes y[q + s (radix p + k)]. Factors are real and
   imaginary part side by side. */
typedef struct nvd_pass {
  int radix;
  int64_t m, s;
  const void *twiddle; /* [p][k - 1] */
  /* the same where s is less than NVD_SPREAD: for each k > 0 the real parts by p s + q, then the imaginary ones */
  const void *spread;
  const void *root; /* an odd radix: exp(-2 pi i j / radix) for all j */
} nvd_pass;
/* UNROLLED: the greatest odd radix with code of its own; PRIME: the greatest of all */
enum { NVD_SPREAD = 16, NVD_PASSES = 32, NVD_UNROLLED = 13, NVD_PRIME = 61 };

/* A complex transform of n points, whose primes are at most NVD_UNROLLED, or NVD_PRIME if n is small. */
typedef struct nvd_passes { int64_t n; int npass; nvd_pass pass[NVD_PASSES]; } nvd_passes;

typedef struct nvd_fft {
  nvd_lru_item item; /* first member */
  nvg_dft kind;      /* NVG_DFT_FORWARD stands for both complex ones */
  int64_t n, points; /* points: of the complex transform inside, n / 2 for a real one of even n */
  int wide;          /* rows are of doubles */
  nvd_passes direct; /* of `points`, or of the convolution */
  /* Bluestein's algorithm, where no passes are of `points`: exp(-i pi j^2 / points), and the transform of its conjugate
     divided by its length; as planes, real parts first */
  const void *chirp, *filter;
  /* planes of exp(-2 pi i k / n), k <= n / 4, by which a real transform of even n is made of a complex one */
  const void *split;
} nvd_fft;

/* Returns a counted reference to the plan of n points for rows of f64 (wide) or f32; NULL if there is no memory. */
const nvd_fft *nvd_fft_get(nvg_dft kind, int64_t n, int wide);
void nvd_fft_release(const nvd_fft *f); /* NULL is fine */

/* A group of rows, `stride` elements apart inside, that are transformed at once. */
typedef struct nvd_fft_rows {
  nvg_dft kind;
  int64_t stride; /* of the operand, in elements; results are packed */
  int lanes;      /* of nvd_fft_lanes */
  int count;      /* number of rows, at most so many */
  const char **from;
  char **to;        /* may be the operand's, if its elements have the size of the result's */
  int threads;      /* that share one row, if nvd_fft_is_shared; else 1 */
  const char *next; /* the row that is read after these; NULL: there is none */
} nvd_fft_rows;
enum { NVD_FFT_LANES = 16 };
/* Rows of a group, if there are so many in all: 1, or as many as a vector has lanes. */
int nvd_fft_lanes(const nvd_fft *f, int64_t rows);
/* Whether it pays that threads share the passes of one row. */
int nvd_fft_is_shared(const nvd_fft *f, int lanes);
int64_t nvd_fft_workspace(const nvd_fft *f, int lanes); /* bytes of scratch for a group, 64-byte aligned */
void nvd_fft_run(const nvd_fft *f, const nvd_fft_rows *r, void *scratch);
#endif
