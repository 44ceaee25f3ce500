/* libcuda.so.1: the driver's calls are found in libcudart.so.13, which this one needs. */
#include "emu.h"
extern int64_t (*const nvm_emu_driver)(const char *name);
int64_t (*const nvm_emu_driver)(const char *name) = emu_calls;
