/* The discrete Fourier transform of n items as one fragment: the interpreter and both emitters run the same sequence of
   rounded operations, so that their results agree bit for bit. */
#ifndef NVM_KERNEL_DFT_H
#define NVM_KERNEL_DFT_H
#include "frag/frag.h"

enum { NVF_DFT_MAX = 64 };
/* X[k] = sum over t of x[t] e^(sign 2 pi i t k / n), times w^t where `twisted`. n: a power of two up to NVF_DFT_MAX;
   type f32 or f64. Parameters x0.re, x0.im, x1.re ... and then w.re, w.im; results X0.re, X0.im, X1.re ... Never rare.
   The fragment is added to `set` (nvf_kernel.frags) on the first request and found there later. Throws like
   nvg_fragset_parse. */
const nvg_frag *nvf_dft(nvb_arena *a, nvg_fragset *set, int n, int sign, int twisted, nvm_dtype type);
#endif
