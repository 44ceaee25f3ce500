/* The kernels of tests/codegen/test_order.c as CUDA C++, in the emulator. */
#define GATE_CUDA
#include "../test_order.c"
