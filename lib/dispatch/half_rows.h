/* Rows of f16 and bf16 to f32 and back, rounded to nearest even. */
#ifndef NVM_DISPATCH_HALF_ROWS_H
#define NVM_DISPATCH_HALF_ROWS_H
#include <stdint.h>
#include "nvm/types.h"

/* F16, BF16, or F32, which is copied. */
void nvd_widen(float *to, const void *from, nvm_dtype type, int64_t n);
void nvd_narrow(void *to, const float *from, nvm_dtype type, int64_t n);
#endif
