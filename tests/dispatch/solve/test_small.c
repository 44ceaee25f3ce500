/* The kernel for small matrices on a GPU, compiled for what its registers can hold: nothing is spilled. What it
   computes: tests/gpu/test_linalg.py. */
#include "../../arena.h"
#include "../../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "codegen/cuda/cuda.h"
#include "dispatch/solve/cusolver.h"
#include "frag/dtype.h"
#include "graph/graph.h"

static const nvm_dtype types[] = { NVM_F32, NVM_F64, NVM_C64, NVM_C128 };
static const nvg_op ops[] = { NVG_OP_CHOLESKY_FACTOR, NVG_OP_SOLVED,    NVG_OP_SINGULAR,
                              NVG_OP_ORTHOGONAL,      NVG_OP_HERMITIAN, NVG_OP_FACTORS };
enum { NOPS = sizeof ops / sizeof *ops };

static void check_kernel(nvb_arena *a, nvg_op op, nvm_dtype type, int n, int sides, int arch) {
  nvd_solver_solution s = { .type = type, .size = nvg_size(type), .m = n, .n = n, .k = sides };
  nvc_cubin c = { 0 };
  s.r.op = op;
  s.r.nin = op == NVG_OP_SOLVED && sides > 1 ? 2 : 1;
  int64_t how = op == NVG_OP_SINGULAR ? NVG_VALUES : op == NVG_OP_FACTORS ? NVG_UNKNOWN : NVG_REDUCED;
  s.r.attr = (int64_t[]){ how, 0 };
  int status = nvc_nvrtc_compile(&c, nvd_gpu_small_source(a, &s), "small matrices", arch);
  ck_assert_msg(!status, "%s", nvb_message());
  ck_assert_msg(!c.spills, "operation %d, dtype %d, %d rows, %d sides, sm_%d: %d registers, %d bytes spilled", op, type,
                n, sides, arch, c.registers, c.spills);
  nvb_free(c.bytes);
}

/* The largest matrices of f32, and of other dtypes 16 rows, since compiling takes long. */
START_TEST(nothing_is_spilled) {
  nvm_dtype type = types[_i % 4];
  if (!nvc_nvrtc_available()) return;
  nvb_arena *a = nvb_arena_new();
  check_kernel(a, ops[_i / 4], type, type == NVM_F32 ? 32 : 16, _i % 2 ? 1 : 4, 90);
  check_kernel(a, ops[_i / 4], type, 7, 4, _i % 2 ? 80 : 120);
  nvb_arena_free(a);
}
END_TEST

SUITE("small matrices", LOOP(nothing_is_spilled, 4 * NOPS))
