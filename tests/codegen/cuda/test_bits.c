/* Kernels of every kind as CUDA C++, run by the emulator: the interpreter's bits. The texts, their inputs and what is
   computed beside them are those of tests/codegen/test_gate.c and tests/codegen/test_texts.c. */
#define GATE_CUDA
#include "../gate.h"
#undef SUITE
#define SUITE(name, ...) static int PART(void) { return RUN_SUITE("cuda " name, __VA_ARGS__); }
#define PART part_gate
#include "../test_gate.c"
#undef PART
#define PART part_texts
#include "../test_texts.c"

int main(void) {
  if (!gate_emulator()) return 77;
  int failed = part_gate();
  return failed | part_texts();
}
