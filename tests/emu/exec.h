/* Runs kernels on the CPU: the threads of a block as fibers, blocks one after the other. */
#ifndef NVM_EMU_EXEC_H
#define NVM_EMU_EXEC_H
#include <stddef.h>
#include <stdint.h>
#include "abi.h"

typedef struct emu_module emu_module;
/* What the emulator's nvrtcGetCUBIN gave: the bytes know their length. NULL with emu_error(). */
emu_module *emu_module_load(const void *bytes);
void emu_module_unload(emu_module *m);
const emu_kernel *emu_module_kernel(emu_module *m, const char *name); /* NULL: absent */

/* Errors are CUDA's numbers. Every one is also told to stderr, and emu_error() keeps the sentence. */
enum { EMU_ILLEGAL_ADDRESS = 700, EMU_ILLEGAL_INSTRUCTION = 715, EMU_MISALIGNED = 716, EMU_LAUNCH_FAILURE = 719 };
/* follow: called when a thread waits for the kernels before this one; or NULL */
int emu_execute(const emu_kernel *k, emu_dim blocks, emu_dim threads, size_t shared, void **params,
                void (*follow)(void));
const char *emu_error(void);
/* The order of blocks, warps and lanes; 0: ascending. From NVM_EMU_SEED, else 1. */
void emu_seed(uint64_t seed);
#endif
