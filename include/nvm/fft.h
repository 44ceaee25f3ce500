/* Operations: Fourier transforms. As those of nvm/ops.h they return a new lazy array that belongs to the innermost open
   scope, or NULL with a message; NULL operands pass through.

   X[k] = sum over j of x[j] exp(-2 pi i j k / n), and with the other sign for inverse transforms, for any n from 1 to
   2^31 - 1. Results are complex64 or float32 for operands of float16, bfloat16, float32 and complex64, else complex128
   or float64; integers and bool become the context's default float first. `norm` says which direction is divided.
   The relative error in the L2 norm is at most 5e-8 log2(n) in float32, 1e-15 log2(n) in float64.

   n, s: the number of points along an axis, to which it is cropped or padded with zeros at its end; -1: its extent, or
   2 (m - 1) for the m elements of an operand that nvm_irfft or nvm_hfft transforms. s NULL: all of them -1.
   axes NULL: all axes, or the last naxes if s is given, or the last two for the functions that end in 2; naxes counts
   the entries of axes and of s.

   Errors: NVM_ERR_VALUE for a number of points that is not positive or too great, an axis given twice, or no such norm;
   NVM_ERR_INDEX for an axis out of range; NVM_ERR_TYPE for a complex operand where real numbers are transformed. */
#ifndef NVM_FFT_H
#define NVM_FFT_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* which direction is divided by the number of points: the inverse, both by its square root, or the other one */
typedef enum nvm_norm { NVM_NORM_BACKWARD, NVM_NORM_ORTHO, NVM_NORM_FORWARD } nvm_norm;

/* ---- along one axis */
NVM_API nvm_array *nvm_fft(nvm_array *x, int64_t n, int axis, nvm_norm norm);
NVM_API nvm_array *nvm_ifft(nvm_array *x, int64_t n, int axis, nvm_norm norm); /* the inverse */
/* of real numbers: elements 0 ... n / 2, of which the others are conjugates */
NVM_API nvm_array *nvm_rfft(nvm_array *x, int64_t n, int axis, nvm_norm norm);
/* the inverse of nvm_rfft: n real numbers. The imaginary parts of element 0 and (n even) of element n / 2 are not
   read. */
NVM_API nvm_array *nvm_irfft(nvm_array *x, int64_t n, int axis, nvm_norm norm);
/* the transform of a signal whose element n - j is the conjugate of element j: n real numbers of elements
   0 ... n / 2 */
NVM_API nvm_array *nvm_hfft(nvm_array *x, int64_t n, int axis, nvm_norm norm);
NVM_API nvm_array *nvm_ihfft(nvm_array *x, int64_t n, int axis, nvm_norm norm); /* the inverse of nvm_hfft */

/* ---- along several axes. Of real numbers, and to them, the last one is halved as by nvm_rfft. */
NVM_API nvm_array *nvm_fftn(nvm_array *x, const int64_t *s, const int *axes, int naxes, nvm_norm norm);
NVM_API nvm_array *nvm_ifftn(nvm_array *x, const int64_t *s, const int *axes, int naxes, nvm_norm norm);
NVM_API nvm_array *nvm_rfftn(nvm_array *x, const int64_t *s, const int *axes, int naxes, nvm_norm norm);
NVM_API nvm_array *nvm_irfftn(nvm_array *x, const int64_t *s, const int *axes, int naxes, nvm_norm norm);
NVM_API nvm_array *nvm_fft2(nvm_array *x, const int64_t *s, const int *axes, int naxes, nvm_norm norm);
NVM_API nvm_array *nvm_ifft2(nvm_array *x, const int64_t *s, const int *axes, int naxes, nvm_norm norm);
NVM_API nvm_array *nvm_rfft2(nvm_array *x, const int64_t *s, const int *axes, int naxes, nvm_norm norm);
NVM_API nvm_array *nvm_irfft2(nvm_array *x, const int64_t *s, const int *axes, int naxes, nvm_norm norm);

/* ---- helpers. Any dtype; axes NULL: all of them. */
NVM_API nvm_array *nvm_fftshift(nvm_array *x, const int *axes, int naxes); /* frequency 0 moves to the middle */
NVM_API nvm_array *nvm_ifftshift(nvm_array *x, const int *axes, int naxes);
/* the frequencies of the n elements of nvm_fft, and of the n / 2 + 1 of nvm_rfft, for samples at a distance d, as
   floats of `dtype` (NVM_DTYPE_DEFAULT: the context's default float); the innermost scope owns them */
NVM_API nvm_array *nvm_fftfreq(nvm_ctx *ctx, nvm_dtype dtype, int64_t n, double d);
NVM_API nvm_array *nvm_rfftfreq(nvm_ctx *ctx, nvm_dtype dtype, int64_t n, double d);

#ifdef __cplusplus
}
#endif
#endif
