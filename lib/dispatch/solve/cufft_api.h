/* The table of cuFFT functions and constants that transforms use, for versions 11 and 12, without NVIDIA's headers. A
   plan is an int; all functions return a cuFFT result, 0 for success. Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_CUFFT_API_H
#define NVM_DISPATCH_SOLVE_CUFFT_API_H
#include <stddef.h>

#define NVD_CUFFT(X) \
  X(cufftGetVersion, (int *version)) \
  X(cufftCreate, (int *plan)) \
  X(cufftDestroy, (int plan)) \
  X(cufftSetAutoAllocation, (int plan, int on)) \
  X(cufftMakePlanMany64, (int plan, int rank, long long *n, long long *inembed, long long istride, long long idist, \
                          long long *onembed, long long ostride, long long odist, int type, long long batch, \
                          size_t *workspace)) \
  X(cufftSetStream, (int plan, void *stream)) \
  X(cufftSetWorkArea, (int plan, void *workspace)) \
  X(cufftExecC2C, (int plan, void *in, void *out, int direction)) \
  X(cufftExecZ2Z, (int plan, void *in, void *out, int direction)) \
  X(cufftExecR2C, (int plan, void *in, void *out)) \
  X(cufftExecD2Z, (int plan, void *in, void *out)) \
  X(cufftExecC2R, (int plan, void *in, void *out)) \
  X(cufftExecZ2D, (int plan, void *in, void *out))

enum { /* cuFFT's constants */
       CUFFT_C2C = 0x29,
       CUFFT_R2C = 0x2a,
       CUFFT_C2R = 0x2c,
       CUFFT_Z2Z = 0x69,
       CUFFT_D2Z = 0x6a,
       CUFFT_Z2D = 0x6c,
       CUFFT_FORWARD = -1,
       CUFFT_INVERSE = 1,
       CUFFT_INVALID_PLAN = 1,
       CUFFT_ALLOC_FAILED = 2,
       CUFFT_INVALID_TYPE = 3,
       CUFFT_INVALID_VALUE = 4,
       CUFFT_INTERNAL_ERROR = 5,
       CUFFT_EXEC_FAILED = 6,
       CUFFT_SETUP_FAILED = 7,
       CUFFT_INVALID_SIZE = 8,
       CUFFT_INVALID_DEVICE = 11,
       CUFFT_NO_WORKSPACE = 13,
       CUFFT_NOT_IMPLEMENTED = 14,
       CUFFT_NOT_SUPPORTED = 16
};
#endif
