/* The kernels that sort and search on a GPU, compiled for every size of element: little is spilled, and shared memory
   suffices.
   What they compute: tests/gpu/test_sorting.py. */
#include "../../arena.h"
#include "../../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "codegen/cuda/cuda.h"
#include "dispatch/solve/gpu_search.h"
#include "dispatch/solve/gpu_sort.h"
#include "frag/dtype.h"

static const nvm_dtype types[] = { NVM_BOOL, NVM_F8E4, NVM_BF16, NVM_F32, NVM_I64, NVM_F64 };
/* elements of a row: one by one, by a warp, by a block, in passes of small and of large tiles, with wide counts */
static const int64_t lengths[] = { 5, 400, 3000, 8192, 20000, 1 << 23, INT64_C(1) << 31 };
static const int archs[] = { 80, 90, 120 };
enum { NTYPES = sizeof types / sizeof *types, NLENGTHS = sizeof lengths / sizeof *lengths };

/* Of 16 positions for each lane some words are spilled: on an H200 that takes 4.2 ms for 10^8 floats in passes, more
   registers and half the warps 5.5. */
START_TEST(little_is_spilled) {
  if (!nvc_nvrtc_available()) return;
  nvb_arena *a = nvb_arena_new();
  for (int i = 0; i < NLENGTHS; i++) {
    int order = (i + _i) & 1, arch = archs[(i + _i) % 3];
    nvd_sort_form f = nvd_sort_form_of(types[_i], order, i & 1, 1, lengths[i]);
    nvc_cubin c = { 0 };
    int status = nvc_nvrtc_compile(&c, nvd_sort_source(a, &f), "sort", arch);
    ck_assert_msg(!status, "%s", nvb_message());
    ck_assert_msg(c.spills <= (order && f.items == 16 ? 192 : 0) && c.registers * f.warps * 32 <= 65536,
                  "%s, %lld elements, positions %d, sm_%d: %d registers, %d bytes spilled", nvg_dtype_name(f.type),
                  (long long)lengths[i], order, arch, c.registers, c.spills);
    nvb_free(c.bytes);
  }
  nvb_arena_free(a);
}
END_TEST

/* A tile holds the row, or the row is longer than the longest that a block sorts. */
START_TEST(tiles_hold_their_rows) {
  for (int64_t n = 1; n <= nvd_sort_most(types[_i]); n += 1 + n / 7) {
    nvd_sort_form f = nvd_sort_form_of(types[_i], 0, 0, 100, n);
    ck_assert(!f.passes && 32 * f.warps * f.items >= n && f.warps <= 16);
  }
  ck_assert(nvd_sort_form_of(types[_i], 0, 0, 1, nvd_sort_most(types[_i]) + 1).passes);
  ck_assert(nvd_sort_form_of(types[_i], 0, 0, 1, INT64_C(1) << 30).wide);
}
END_TEST

static void search_fits(nvb_arena *a, nvg_op op, nvm_dtype type, int right, int arch) {
  nvc_cubin c = { 0 };
  int status = nvc_nvrtc_compile(&c, nvd_search_source(a, op, type, right), "search", arch);
  ck_assert_msg(!status, "%s", nvb_message());
  ck_assert_msg(!c.spills && c.registers <= 64, "%s, sm_%d: %d registers, %d bytes spilled", nvg_dtype_name(type), arch,
                c.registers, c.spills);
  nvb_free(c.bytes);
}

START_TEST(searches_spill_nothing) {
  if (!nvc_nvrtc_available()) return;
  nvb_arena *a = nvb_arena_new();
  search_fits(a, NVG_OP_SEARCHED, types[_i] == NVM_F8E4 || types[_i] == NVM_BF16 ? NVM_U64 : types[_i], _i & 1,
              archs[_i % 3]);
  if (_i < 3) search_fits(a, NVG_OP_POSITIONS, NVM_BOOL, 0, archs[_i]);
  nvb_arena_free(a);
}
END_TEST

SUITE("sorts and searches on a GPU", EACH(searches_spill_nothing, types), EACH(little_is_spilled, types),
      EACH(tiles_hold_their_rows, types))
