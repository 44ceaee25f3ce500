/* The random texts of tests/codegen/test_fuzz.c as CUDA C++, in the emulator. */
#define GATE_CUDA
#include "../test_fuzz.c"
