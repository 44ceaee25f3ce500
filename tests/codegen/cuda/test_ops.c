/* Primitives, library functions, addresses and conditions as CUDA C++, in the emulator: the kernels of
   tests/codegen/llvm/test_ops.c. */
#define GATE_CUDA
#include "../gate.h"
#undef SUITE
#define SUITE(...)
#include "../llvm/test_ops.c"

int main(void) {
  if (!gate_emulator()) return 77;
  (void)available;
  (void)refusals;
  (void)errors;
  (void)damaged_objects;
  return RUN_SUITE("cuda ops", real_primitives, int_primitives, bits_tables_loops, casts, library_f32, library_f64,
                   quotients, library_int, addresses, conditions, one_place_for_all_lanes, checks,
                   padding_is_left_alone, scans);
}
