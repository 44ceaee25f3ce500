/* Converts contiguous rows between float32 and float16 or bfloat16, rounding to nearest even. Private to dispatch. */
#ifndef NVM_DISPATCH_HALF_ROWS_H
#define NVM_DISPATCH_HALF_ROWS_H
#include <stdint.h>
#include "nvm/types.h"

/* type: NVM_F16, NVM_BF16, or NVM_F32, which is copied. n: elements. */
void nvd_widen(float *to, const void *from, nvm_dtype type, int64_t n);
void nvd_narrow(void *to, const float *from, nvm_dtype type, int64_t n);
#endif
