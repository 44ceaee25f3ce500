/* How many kernels this process compiles at the moment, and since when it does. */
#ifndef NVD_COMPILING_H
#define NVD_COMPILING_H
#include <stdint.h>

void nvd_compiling_begin(void); /* a kernel's code is being compiled, until nvd_compiling_end */
void nvd_compiling_end(void);
int nvd_compiling(int64_t *ns); /* the number; *ns: for how long there has been one, without a pause */
#endif
