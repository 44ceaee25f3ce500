/* Launches of kernels that use TMA: program.c's alone. */
#ifndef NVM_DISPATCH_CUDA_TENSOR_MAP_H
#define NVM_DISPATCH_CUDA_TENSOR_MAP_H
#include "dispatch/cuda/program.h"

/* A CUtensorMap, and the address of the argument that it was made for. */
struct nvd_map {
  _Alignas(64) uint64_t word[16];
  uint64_t address;
};
int nvd_maps_count(const nvd_program *p);
/* Those of step i, whose arguments are in place; *changed is set if one is another than at the last launch. A status.
 */
int nvd_maps_fill(nvd_replay *r, const nvd_program *p, int i, int *changed);
unsigned nvd_blocks_launched(const nvd_device *d, const nvd_gpu_kernel *k, int64_t blocks);
#endif
