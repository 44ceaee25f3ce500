/* Reads the registers and spills of a kernel from its cubin, because a log has them only if ptxas ran, and NVRTC has a
   cache of its own. A cubin is an ELF file: .nv.info has the registers, spills are counted among the instructions. Only
   reads bytes; never compiles or loads code. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "codegen/cuda/cuda.h"

/* An instruction has 16 bytes since compute capability 7.0: bits 0 to 11 are the opcode, 24 to 31 the address register,
   40 to 63 the address offset, 73 to 75 the width. R1 is the stack pointer. */
enum { INSTRUCTION = 16, STORE_LOCAL = 0x387, LOAD_LOCAL = 0x983, STACK_POINTER = 1 };
/* .nv.info has records of a format, an attribute and 16 bits, which are the value or the number of bytes that
   follow. */
enum { BYTES_FOLLOW = 4, REGISTER_COUNT = 0x2f };

typedef struct bytes { const unsigned char *at; size_t n; } bytes;

static bytes part_of(bytes b, uint64_t from, uint64_t n) { /* empty if b does not have all of it */
  return from <= b.n && n <= b.n - from ? (bytes){ b.at + from, (size_t)n } : (bytes){ 0 };
}
static int take_bytes(void *out, bytes b, uint64_t from, size_t n) {
  bytes p = part_of(b, from, n);
  if (p.n) memcpy(out, p.at, n);
  return p.n == n;
}

static int read_registers(bytes info) { /* the largest number of any function */
  struct {
    uint8_t format, attribute;
    uint16_t n;
  } r;
  struct { uint32_t symbol, registers; } v;
  int most = 0;
  for (uint64_t at = 0; take_bytes(&r, info, at, sizeof r); at += sizeof r + (r.format == BYTES_FOLLOW ? r.n : 0))
    if (r.format == BYTES_FOLLOW && r.attribute == REGISTER_COUNT && take_bytes(&v, info, at + sizeof r, sizeof v) &&
        (int)v.registers > most)
      most = (int)v.registers;
  return most;
}

/* Bytes of stores and loads above the variables: the stack has the variables first, then the spilled registers. */
static int read_spills(bytes code, int variables) {
  static const int width[8] = { 1, 1, 2, 2, 4, 8, 16, 0 };
  uint64_t word[2];
  int all = 0;
  for (uint64_t at = 0; take_bytes(word, code, at, INSTRUCTION); at += INSTRUCTION) {
    int what = word[0] & 0xfff, base = word[0] >> 24 & 0xff, distance = (int)(word[0] >> 40);
    if ((what == STORE_LOCAL || what == LOAD_LOCAL) && base == STACK_POINTER && distance >= variables)
      all += width[word[1] >> 9 & 7];
  }
  return all;
}

/* Bytes of the variables that PTX declares in local memory (".local .align 16 .b8 __local_depot0[48];"), of all
   functions: functions called by a kernel share its stack. */
static int count_variables(const char *ptx) {
  static const char word[] = ".local .align ";
  int all = 0;
  for (const char *at = ptx; (at = strstr(at, word)); at++) {
    int align = atoi(at + sizeof word - 1);
    at += strcspn(at, "[;");
    if (*at == '[' && align > 0) all = (all + align - 1) / align * align + atoi(at + 1);
  }
  return all;
}

static int is_named(bytes names, const Elf64_Shdr *s, const char *prefix) {
  bytes name = part_of(names, s->sh_name, strlen(prefix));
  return name.n && !memcmp(name.at, prefix, name.n);
}

int nvc_cubin_read(nvc_cubin *c, const char *ptx) {
  bytes all = { c->bytes, c->n };
  Elf64_Ehdr h;
  Elf64_Shdr s;
  if (!take_bytes(&h, all, 0, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_machine != EM_CUDA ||
      !take_bytes(&s, all, h.e_shoff + h.e_shstrndx * sizeof s, sizeof s))
    return nvb_fail(NVM_ERR_INTERNAL, "[nvrtc] the machine code is no ELF file for a GPU");
  bytes names = part_of(all, s.sh_offset, s.sh_size);
  int variables = count_variables(ptx);
  c->registers = c->spills = 0;
  for (int i = 0; i < h.e_shnum && take_bytes(&s, all, h.e_shoff + (uint64_t)i * sizeof s, sizeof s); i++) {
    bytes b = s.sh_type == SHT_NOBITS ? (bytes){ 0 } : part_of(all, s.sh_offset, s.sh_size);
    if (is_named(names, &s, ".nv.info")) c->registers += read_registers(b);
    if (is_named(names, &s, ".text.")) c->spills += read_spills(b, variables);
  }
  return c->registers ? NVM_OK
                      : nvb_fail(NVM_ERR_INTERNAL, "[nvrtc] the machine code does not say how many registers it needs");
}
