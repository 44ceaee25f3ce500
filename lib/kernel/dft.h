/* The discrete Fourier transform of n items as one fragment: the interpreter and both emitters run the same sequence of
   rounded operations, so that their results agree bit for bit. */
#ifndef NVM_KERNEL_DFT_H
#define NVM_KERNEL_DFT_H
#include "frag/frag.h"

/* Items at most; the largest prime factor; powers of a twist at most; parameters of the fragment at most */
enum { NVF_DFT_MAX = 64, NVF_DFT_PRIME = 13, NVF_DFT_TWISTS = 6, NVF_DFT_PARAMS = 2 * (NVF_DFT_MAX + NVF_DFT_TWISTS) };
int nvf_dft_has(int64_t n); /* whether there is a transform of n items */
/* NVF_DFT_REAL, in place of a number of twists: the items are real numbers, one operand of a statement. */
enum { NVF_DFT_REAL = -1 };
static inline int nvf_dft_powers(int operands) { return operands == 1 ? NVF_DFT_REAL : operands / 2 - 1; }
/* X[k] = sum over t of x[t] e^(sign 2 pi i t k / n), times w^t if there are twists: w, w^2, w^4 ... below w^n, of which
   the first is needed. type f32 or f64. Parameters x0.re, x0.im, x1.re ... (of real numbers x0, x1 ...) and then those
   of the twists; results X0.re, X0.im, X1.re ... Never rare. The fragment is added to `set` (nvf_kernel.frags) on the
   first request and found there later. Throws like nvg_fragset_parse. */
const nvg_frag *nvf_dft(nvb_arena *a, nvg_fragset *set, int n, int sign, int powers, nvm_dtype type);
#endif
