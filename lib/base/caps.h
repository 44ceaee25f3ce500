/* Describes a device to the planner as plain data: counts are queried, rates come from a table. Planning reads these
   numbers and never measures. */
#ifndef NVM_BASE_CAPS_H
#define NVM_BASE_CAPS_H
#include <stdint.h>

typedef enum nvb_devkind { NVB_CPU, NVB_CUDA } nvb_devkind;
/* GEMM rates by operand class: real and complex float32, float32 with reduced precision where the user allows it,
   float64, 16-bit floats, 8-bit floats, int8. */
typedef enum nvb_gemm_class {
  NVB_GEMM_F32,
  NVB_GEMM_TF32,
  NVB_GEMM_F64,
  NVB_GEMM_F16,
  NVB_GEMM_F8,
  NVB_GEMM_I8,
  NVB_GEMMS
} nvb_gemm_class;
/* Whether cuBLASLt itself splits float32 operands into bfloat16 terms. `arch` is the compute capability times ten. */
#define nvb_splits_f32(arch) ((arch) >= 100 && (arch) < 110)
/* Whether cuBLASLt accepts scales per row, column or block for 8-bit floats. */
#define nvb_scales_f8(arch) ((arch) == 90)
typedef struct nvb_gemm_rate { double library, generated; } nvb_gemm_rate; /* operations per ns; 0: not supported */
typedef struct nvb_caps {
  nvb_devkind kind;
  char name[64];
  int cores;             /* SMs, or CPU tasks that can run at once (threads) */
  int width;             /* f32 lanes of a CPU vector; lanes of a warp */
  int threads;           /* GPU: threads that keep an SM busy; CPU: the vector width */
  int64_t onchip;        /* bytes a block can keep on chip: shared memory of an SM, or L2 per CPU core */
  int cluster;           /* largest number of blocks in a cluster; 1: no clusters */
  int64_t l2;            /* bytes of the last shared cache */
  double bandwidth;      /* bytes per ns over all cores */
  double core_bandwidth; /* bytes per ns that one core reaches alone */
  double l2_bandwidth;   /* bytes per ns from the last shared cache */
  double rate;           /* simple f32 operations per ns over all cores */
  nvb_gemm_rate gemm[NVB_GEMMS];
  int tensor;      /* tensor cores in generated kernels: 0 none, 1 warp-level MMA, 2 warpgroup MMA (WGMMA) too */
  int splits;      /* the GEMM library splits float32 into bfloat16 terms itself (nvb_splits_f32) */
  int scales;      /* the GEMM library accepts scales per row, column or block of 8-bit operands (nvb_scales_f8) */
  int f8;          /* 8-bit floats in MMA: 0 unsupported, 1 upcast to f16 for warp-level MMA, 2 multiplied natively */
  double launch;   /* ns to launch one kernel */
  int max_buffers; /* most buffers that one kernel may use */
} nvb_caps;

/* Describes the CPU of this machine, with the thread count of the pool. */
nvb_caps nvb_caps_cpu(void);
/* Returns a row of the table by name ("h200", "cpu16", ...); NULL if there is none. */
const nvb_caps *nvb_caps_find(const char *name);
/* Describes a GPU from its driver name, its compute capability times ten and its number of SMs (0: unknown). The
   rates are those of its family, or of the family with the nearest compute capability, scaled by the SMs. */
nvb_caps nvb_caps_gpu(const char *device, int arch, int cores);
#endif
