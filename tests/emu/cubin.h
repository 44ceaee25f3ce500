/* The "cubin" of the emulated NVRTC: an ELF file for a GPU that says what registers it needs and holds instructions
   that spill, as a real one does, with the shared object that runs here as a section of its own. nvrtc.c writes it,
   exec.c reads it. */
#ifndef NVM_EMU_CUBIN_H
#define NVM_EMU_CUBIN_H
#include <elf.h>
#include <stdint.h>

enum { CUBIN_NAMES = 1, CUBIN_INFO, CUBIN_TEXT, CUBIN_HOST, CUBIN_SECTIONS };
typedef struct emu_cubin { /* then the instructions, then the shared object */
  Elf64_Ehdr h;
  Elf64_Shdr section[CUBIN_SECTIONS];
  char names[48];
  struct {
    uint8_t format, attribute;
    uint16_t n;
    uint32_t symbol, value;
  } registers;
} emu_cubin;
#endif
