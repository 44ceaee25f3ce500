/* The table of cuBLASLt functions and constants that the solver uses, for versions 12 and 13, without NVIDIA's headers.
   All functions return a cuBLAS status, 0 for success. Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_CUBLASLT_API_H
#define NVM_DISPATCH_SOLVE_CUBLASLT_API_H
#include <stddef.h>
#include <stdint.h>

typedef struct nvd_lt_algo { uint64_t word[8]; } nvd_lt_algo; /* valid for one version of the library */
typedef struct nvd_lt_result {
  nvd_lt_algo algo;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
} nvd_lt_result;

#define NVD_LT(X) \
  X(cublasLtCreate, (void **handle)) \
  X(cublasLtMatmulDescCreate, (void **desc, int compute, int scale)) \
  X(cublasLtMatmulDescDestroy, (void *desc)) \
  X(cublasLtMatmulDescSetAttribute, (void *desc, int attribute, const void *value, size_t n)) \
  X(cublasLtMatrixLayoutCreate, (void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld)) \
  X(cublasLtMatrixLayoutDestroy, (void *layout)) \
  X(cublasLtMatrixLayoutSetAttribute, (void *layout, int attribute, const void *value, size_t n)) \
  X(cublasLtMatmulPreferenceCreate, (void **preference)) \
  X(cublasLtMatmulPreferenceDestroy, (void *preference)) \
  X(cublasLtMatmulPreferenceSetAttribute, (void *preference, int attribute, const void *value, size_t n)) \
  X(cublasLtMatmulAlgoGetHeuristic, (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, \
                                     int asked, nvd_lt_result *out, int *n)) \
  X(cublasLtMatmulAlgoCheck, (void *handle, void *desc, void *a, void *b, void *c, void *d, const nvd_lt_algo *algo, \
                              nvd_lt_result *out)) \
  X(cublasLtMatmulAlgoConfigGetAttribute, (const nvd_lt_algo *algo, int attribute, void *value, size_t n, \
                                           size_t *had)) \
  X(cublasLtMatrixTransformDescCreate, (void **desc, int scale)) \
  X(cublasLtMatrixTransformDescDestroy, (void *desc)) \
  X(cublasLtMatrixTransformDescSetAttribute, (void *desc, int attribute, const void *value, size_t n)) \
  X(cublasLtMatrixTransform, (void *handle, void *desc, const void *alpha, const void *a, void *a_layout, \
                              const void *beta, const void *b, void *b_layout, void *c, void *c_layout, void *stream)) \
  X(cublasLtMatmul, (void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b, \
                     void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout, \
                     const nvd_lt_algo *algo, void *workspace, size_t bytes, void *stream))

enum { /* cuBLASLt's constants */
       LT_R_32F = 0,
       LT_R_64F = 1,
       LT_R_16F = 2,
       LT_R_8I = 3,
       LT_C_32F = 4,
       LT_C_64F = 5,
       LT_R_32I = 10,
       LT_R_16BF = 14,
       LT_R_8F_E4M3 = 28,
       LT_R_8F_E5M2 = 29,
       LT_COMPUTE_32F = 68,
       LT_COMPUTE_64F = 70,
       LT_COMPUTE_32I = 72,
       LT_COMPUTE_TF32 = 77,
       LT_COMPUTE_BF16X9 = 78, /* from 12.9 on, for compute capability 10.x */
       LT_DESC_TRANSA = 3,
       LT_DESC_TRANSB = 4,
       LT_DESC_EPILOGUE = 7,
       LT_DESC_BIAS = 8,
       LT_DESC_BIAS_STRIDE = 10,
       LT_DESC_AUX = 11,
       LT_DESC_AUX_LD = 12,
       LT_DESC_AUX_STRIDE = 13,
       LT_DESC_SCALE_A = 17,
       LT_DESC_SCALE_B = 18,
       LT_DESC_BIAS_TYPE = 26,
       LT_DESC_SCALE_MODE_A = 31,
       LT_DESC_SCALE_MODE_B = 32, /* from 12.9 on */
       LT_SCALE_ONE = 0,
       LT_SCALE_OUTER = 3,
       LT_SCALE_VEC128 = 4,
       LT_SCALE_BLOCK128 = 5,
       LT_TRANSFORM_TRANSA = 2,
       LT_LAYOUT_BATCHES = 5,
       LT_LAYOUT_STRIDE = 6,
       LT_PREF_WORKSPACE = 1,
       LT_PREF_REDUCTION = 3,
       LT_PREF_ALIGN_A = 5,
       LT_REDUCE_COMPUTE_TYPE = 2,
       LT_REDUCE_ANY = 7,
       LT_EPILOGUE_NONE = 1,
       LT_EPILOGUE_RELU = 2,
       LT_EPILOGUE_BIAS = 4,
       LT_EPILOGUE_GELU = 32,
       LT_EPILOGUE_AUX = 128,
       LT_CONFIG_TILE = 1,
       LT_CONFIG_SPLIT = 2,
       LT_CONFIG_STAGES = 6,
       LT_OUT_OF_MEMORY = 3
};
#endif
