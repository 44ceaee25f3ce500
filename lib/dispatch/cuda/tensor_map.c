/* Encodes the tensor maps that launches pass to kernels with TMA, again whenever an address has changed, and computes
   the grid size of persistent kernels. Never decides boxes or swizzles: the emitter does. */
#include "dispatch/cuda/tensor_map.h"
#include "base/err.h"

enum { LINES_OF_L2 = 3 }; /* CU_TENSOR_MAP_L2_PROMOTION_L2_256B */

static int type_of(const nvc_cuda_map *m) { /* CUtensorMapDataType */
  if (m->tf32) return 11;
  switch (m->type) {
  case NVM_F16: return 6;
  case NVM_BF16: return 9;
  case NVM_F32: return 7;
  default: return nvg_size((nvm_dtype)m->type) == 2 ? 1 : nvg_size((nvm_dtype)m->type) == 4 ? 2 : 0;
  }
}

static int encode_map(nvd_map *to, const nvc_cuda_map *m, const uint64_t *arg, uint64_t address) {
  uint64_t extent[NVF_TMA_RANK], stride[NVF_TMA_RANK];
  uint32_t box[NVF_TMA_RANK], step[NVF_TMA_RANK];
  int64_t size = nvg_size((nvm_dtype)m->type);
  for (int i = 0; i < m->rank; i++) {
    int64_t n = nvc_poly_value(&m->extent[i], arg);
    extent[i] = (uint64_t)(n > 0 ? n : 1);
    stride[i] = (uint64_t)(nvc_poly_value(&m->stride[i], arg) * size);
    box[i] = (uint32_t)m->box[i];
    step[i] = 1;
  }
  void *first = (void *)(uintptr_t)(address + (uint64_t)(nvc_poly_value(&m->offset, arg) * size));
  return nvd_cu.cuTensorMapEncodeTiled(to->word, type_of(m), (uint32_t)m->rank, first, extent, stride + 1, box, step, 0,
                                       m->swizzle == 128  ? 3
                                       : m->swizzle == 64 ? 2
                                                          : m->swizzle == 32,
                                       LINES_OF_L2, 0);
}

int nvd_maps_count(const nvd_program *p) {
  int n = 0;
  for (int i = 0; i < p->nstep; i++) n += p->step[i].gpu ? p->step[i].gpu->nmap : 0;
  return n;
}

/* Fills in the maps of step i, which follow the maps of the steps before it. */
int nvd_maps_fill(nvd_replay *r, const nvd_program *p, int i, int *changed) {
  const nvd_step *s = &p->step[i];
  const uint64_t *arg = &r->arg[s->first];
  nvd_map *map = r->map;
  for (int k = 0; k < i; k++) map += p->step[k].gpu ? p->step[k].gpu->nmap : 0;
  for (int k = 0; k < s->gpu->nmap; k++) {
    const nvc_cuda_map *m = &s->gpu->map[k];
    if (map[k].address == arg[m->param]) continue;
    if (encode_map(&map[k], m, arg, arg[m->param]))
      return nvb_fail(NVM_ERR_INTERNAL, "[run] TMA does not take argument %d of %s", m->param, s->gpu->title);
    map[k].address = arg[m->param];
    *changed = 1;
  }
  return NVM_OK;
}

/* The number of CTAs to launch. Persistent CTAs process equal numbers of tiles, so no more are launched than that
   needs; with inter-CTA flags all resident CTAs are launched, since they divide all the work. */
unsigned nvd_blocks_launched(const nvd_device *d, const nvd_gpu_kernel *k, int64_t blocks) {
  int64_t resident = (int64_t)k->persistent * d->caps.cores;
  if (k->flags) return (unsigned)resident;
  if (!k->persistent || blocks <= resident) return (unsigned)(blocks * k->cluster);
  int64_t waves = (blocks + resident - 1) / resident;
  return (unsigned)((blocks + waves - 1) / waves);
}
