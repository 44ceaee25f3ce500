/* What a test may ask of the emulator beside CUDA's calls: dlsym in libcudart.so.13, or ctypes. Environment:
     NVM_EMU_DEVICES   GPUs (1)                       NVM_EMU_SEED   order of blocks, lanes, streams (1; 0: ascending)
     NVM_EMU_MEMORY    bytes of each (2 GiB)          NVM_EMU_EAGER  1: work runs when it is asked for
     NVM_EMU_OPEN      1: the host may touch device memory, which is a crash otherwise
     NVM_EMU_FAIL      name:after:error[,...]         NVM_EMU_SPILLS bytes of spills that every kernel claims
     NVM_EMU_CACHE     folder of compiled sources (beside the library)
     NVM_EMU_CROWDED   bytes of spills where so many blocks are to fit into a unit
     NVM_EMU_COMPILE_MS  ms that NVRTC takes at least
     NVM_EMU_SMS       multiprocessors of each (132)
     NVM_EMU_ARCH      compute capability of each, times ten: 75,90 (90) */
#ifndef NVM_EMU_H
#define NVM_EMU_H
#include <stdint.h>

/* The call of this name ("*": any) after `after` more of them returns `error` and does nothing. An error from 700 to
   719 stays, as CUDA's do: every later call returns it. */
void emu_fail(const char *name, int after, int error);
/* The next kernel that is run fails with this error, which is seen later. */
void emu_fail_kernel(int after, int error);
void emu_hang(int on); /* no event is over as long as it is on */
void emu_reset(void);  /* forgets failures, asked for or sticky */
/* So many calls so far; "*": of all; "overlaps": launches of kernels that may start before those before them end */
int64_t emu_calls(const char *name);
int64_t emu_pending(void);     /* operations that were asked for and have not run */
int64_t emu_used(int device);  /* bytes that are allocated */
void emu_limit(int64_t bytes); /* memory of each device from now on; 0: as at the start */
void emu_eager(int eager);
#endif
