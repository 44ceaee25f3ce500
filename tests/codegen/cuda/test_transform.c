/* The transforms of tests/codegen/test_transform.c as CUDA C++, in the emulator. */
#define GATE_CUDA
#include "../test_transform.c"
