/* Device facts as data: counts are queried, rates come from a table. Planning reads these and never measures. */
#ifndef NVM_BASE_CAPS_H
#define NVM_BASE_CAPS_H
#include <stdint.h>

typedef enum nvb_devkind { NVB_CPU, NVB_CUDA } nvb_devkind;
/* Matrix products by class of operand: real and complex float32, float32 of fewer bits where the user allows it,
   float64, 16 bits, floats of 8 bits, integers of 8 bits. */
typedef enum nvb_gemm_class {
  NVB_GEMM_F32,
  NVB_GEMM_TF32,
  NVB_GEMM_F64,
  NVB_GEMM_F16,
  NVB_GEMM_F8,
  NVB_GEMM_I8,
  NVB_GEMMS
} nvb_gemm_class;
/* Whether cuBLASLt multiplies float32 as bfloat16 terms on a compute capability, times ten. */
#define nvb_splits_f32(arch) ((arch) >= 100 && (arch) < 110)
/* Whether it takes scales of rows, columns and blocks of floats of 8 bits. */
#define nvb_scales_f8(arch) ((arch) == 90)
typedef struct nvb_gemm_rate { double library, generated; } nvb_gemm_rate; /* operations per ns, 0: none */
typedef struct nvb_caps {
  nvb_devkind kind;
  char name[64];
  int cores;             /* SMs, or CPU tasks that can run at once (threads) */
  int width;             /* f32 lanes of a vector, or of a warp */
  int threads;           /* threads a core needs to be busy; the vector width on a CPU */
  int64_t onchip;        /* bytes that a block may keep: shared memory, or L2 per core */
  int cluster;           /* blocks whose shared memory is one another's, at most; 1: there are no clusters */
  int64_t l2;            /* bytes of the last shared cache */
  double bandwidth;      /* bytes per ns over all cores */
  double core_bandwidth; /* bytes per ns that one core reaches alone */
  double l2_bandwidth;   /* bytes per ns */
  double rate;           /* simple f32 operations per ns over all cores */
  nvb_gemm_rate gemm[NVB_GEMMS];
  int tensor;      /* tensor cores that generated kernels use: 0 none, 1 of warps, 2 of warpgroups too */
  int splits;      /* the library takes float32 apart itself: nvb_splits_f32 */
  int scales;      /* the library takes scales of parts of operands of 8 bits: nvb_scales_f8 */
  int f8;          /* floats of 8 bits: 0 not theirs, 1 instructions of warps make them f16, 2 as they are */
  double launch;   /* ns per kernel */
  int max_buffers; /* of one kernel */
} nvb_caps;

/* This machine, with the pool's thread count. */
nvb_caps nvb_caps_cpu(void);
/* A row of the table: "h200", "cpu16", ...; NULL if unknown. */
const nvb_caps *nvb_caps_find(const char *name);
/* A GPU with the name that its driver gives it, compute capability times ten and that many cores: rates of the
   family that it belongs to, or of the nearest one. */
nvb_caps nvb_caps_gpu(const char *device, int arch, int cores);
#endif
