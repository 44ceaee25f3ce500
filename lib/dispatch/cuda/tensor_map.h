/* Tensor maps and grid sizes for launches in cuda/program.c. Private to it. */
#ifndef NVM_DISPATCH_CUDA_TENSOR_MAP_H
#define NVM_DISPATCH_CUDA_TENSOR_MAP_H
#include "dispatch/cuda/program.h"

/* A CUtensorMap, and the argument address that it was encoded for. */
struct nvd_map {
  _Alignas(64) uint64_t word[16];
  uint64_t address;
};
int nvd_maps_count(const nvd_program *p);
/* Encodes the maps of step i, whose arguments are filled in; sets *changed if one differs from the last launch. Returns
   a status. */
int nvd_maps_fill(nvd_replay *r, const nvd_program *p, int i, int *changed);
unsigned nvd_blocks_launched(const nvd_device *d, const nvd_gpu_kernel *k, int64_t blocks);
#endif
