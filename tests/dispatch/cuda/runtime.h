/* CUDA's calls that a user makes beside ours, and how the suites of devices say that a call succeeds. */
#ifndef NVM_TESTS_CUDA_H
#define NVM_TESTS_CUDA_H
#include "base/err.h"

#define OK(x) ck_assert_msg((x) == NVM_OK, "%s: %s", #x, nvb_message())
#define CUDA(x) ck_assert_int_eq(x, 0)
int cudaStreamCreateWithFlags(void **stream, unsigned flags);
int cudaStreamDestroy(void *stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphExecDestroy(void *exec);
int cudaGraphDestroy(void *graph);
int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaMalloc(void **data, size_t bytes);
int cudaFree(void *data);
#endif
