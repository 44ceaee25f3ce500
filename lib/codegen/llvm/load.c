/* Loads the object code of a kernel, an ELF file for x86-64, into memory of its own, writable until it is complete and
   executable from then on. LLVM is not asked, so code from the disk cache runs in a process that never opens LLVM.
   Kernels call nothing outside their object. What the file says is checked before it is followed. */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/err.h"
#include "base/mem.h"
#include "codegen/codegen.h"

struct nvc_code {
  char *at;
  size_t bytes;
  nvc_entry entry;
};

/* ---- the file */
enum { MOST = 64 }; /* sections */
typedef struct object_file {
  const char *bytes;
  size_t n;
  int nsection;
  Elf64_Shdr section[MOST];
  size_t place[MOST]; /* of each section that is loaded, in the code's memory */
  size_t total;
  const Elf64_Shdr *symbols, *names;
} object_file;

static int fail_load(const char *why) { return nvb_fail(NVM_ERR_INTERNAL, "[llvm] loading: %s", why); }

static int is_loaded(const Elf64_Shdr *s) { return (s->sh_flags & SHF_ALLOC) && s->sh_size; }
static int is_within(const object_file *f, const Elf64_Shdr *s) {
  return s->sh_type == SHT_NOBITS || (s->sh_offset <= f->n && s->sh_size <= f->n - s->sh_offset);
}

static int read_header(object_file *f) {
  Elf64_Ehdr h;
  if (f->n < sizeof h || memcmp(f->bytes, ELFMAG, SELFMAG)) return fail_load("it is no object file");
  memcpy(&h, f->bytes, sizeof h);
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_type != ET_REL || h.e_machine != EM_X86_64 ||
      h.e_shentsize != sizeof(Elf64_Shdr))
    return fail_load("it is an object file of another kind");
  if (h.e_shnum > MOST || h.e_shoff > f->n || h.e_shnum * sizeof(Elf64_Shdr) > f->n - h.e_shoff)
    return fail_load("its sections are not within it");
  f->nsection = h.e_shnum;
  memcpy(f->section, f->bytes + h.e_shoff, h.e_shnum * sizeof(Elf64_Shdr));
  return NVM_OK;
}

/* Gives each section that is loaded its place, and finds the symbols. */
static int lay_out_sections(object_file *f) {
  enum { LINE = 64, LARGE = 1 << 30 };
  for (int i = 0; i < f->nsection; i++) {
    const Elf64_Shdr *s = &f->section[i];
    if (!is_within(f, s)) return fail_load("a section is not within it");
    if (s->sh_type == SHT_SYMTAB && s->sh_link < (unsigned)f->nsection) {
      f->symbols = s;
      f->names = &f->section[s->sh_link];
    }
    if (!is_loaded(s)) continue;
    if (s->sh_addralign > LINE || (s->sh_flags & SHF_TLS) || s->sh_size > LARGE - f->total)
      return fail_load("a section is of an unknown kind");
    f->place[i] = f->total;
    f->total += (s->sh_size + LINE - 1) & ~(size_t)(LINE - 1);
  }
  return f->symbols && f->names->sh_type == SHT_STRTAB ? NVM_OK : fail_load("it has no symbols");
}

/* The place of a symbol, -1 if it is not in a section that is loaded. */
static int64_t place_of(const object_file *f, const Elf64_Sym *y) {
  int i = y->st_shndx;
  int known = i > 0 && i < f->nsection && is_loaded(&f->section[i]) && y->st_value <= f->section[i].sh_size;
  return known ? (int64_t)(f->place[i] + y->st_value) : -1;
}
static int get_symbol(Elf64_Sym *y, const object_file *f, size_t i) {
  if (i >= f->symbols->sh_size / sizeof *y) return 0;
  memcpy(y, f->bytes + f->symbols->sh_offset + i * sizeof *y, sizeof *y);
  return 1;
}

/* ---- the code */
static int relocate(const object_file *f, char *at, const Elf64_Rela *r, int section) {
  Elf64_Sym y;
  int type = (int)ELF64_R_TYPE(r->r_info), wide = type == R_X86_64_64;
  if (type != R_X86_64_PC32 && type != R_X86_64_PLT32 && !wide) return fail_load("a relocation of an unknown type");
  size_t width = wide ? 8 : 4, size = f->section[section].sh_size;
  if (size < width || r->r_offset > size - width) return fail_load("a relocation outside of its section");
  int64_t to = get_symbol(&y, f, ELF64_R_SYM(r->r_info)) ? place_of(f, &y) : -1;
  if (to < 0) return fail_load("it needs a symbol that it does not have");
  size_t where = f->place[section] + r->r_offset;
  uint64_t sum = (uint64_t)to + (uint64_t)r->r_addend; /* a damaged addend wraps */
  uint64_t value = wide ? sum + (uintptr_t)at : sum - where;
  memcpy(at + where, &value, width); /* the low bytes come first */
  return NVM_OK;
}
static int relocate_section(const object_file *f, char *at, const Elf64_Shdr *s) {
  if (s->sh_type == SHT_REL) return fail_load("relocations without addends");
  if (s->sh_type != SHT_RELA || s->sh_info >= (unsigned)f->nsection || !is_loaded(&f->section[s->sh_info]))
    return NVM_OK;
  int status = NVM_OK;
  for (size_t k = 0; k < s->sh_size / sizeof(Elf64_Rela) && !status; k++) {
    Elf64_Rela r;
    memcpy(&r, f->bytes + s->sh_offset + k * sizeof r, sizeof r);
    status = relocate(f, at, &r, (int)s->sh_info);
  }
  return status;
}
static int fill_code(const object_file *f, char *at) {
  int status = NVM_OK;
  for (int i = 0; i < f->nsection; i++)
    if (is_loaded(&f->section[i]) && f->section[i].sh_type != SHT_NOBITS)
      memcpy(at + f->place[i], f->bytes + f->section[i].sh_offset, f->section[i].sh_size);
  for (int i = 0; i < f->nsection && !status; i++) status = relocate_section(f, at, &f->section[i]);
  return status;
}
static int find_entry(const object_file *f, nvc_code *c) {
  static const char name[] = "nvm_kernel";
  Elf64_Sym y;
  for (size_t i = 0; get_symbol(&y, f, i); i++) {
    if (y.st_name > f->names->sh_size || f->names->sh_size - y.st_name < sizeof name) continue;
    if (memcmp(f->bytes + f->names->sh_offset + y.st_name, name, sizeof name)) continue;
    int64_t place = place_of(f, &y);
    if (place < 0) continue;
    const char *entry = c->at + place;
    memcpy(&c->entry, &entry, sizeof entry);
    return NVM_OK;
  }
  return fail_load("it has no kernel");
}

static int load_into(nvc_code *c, const object_file *f) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  c->bytes = (f->total + page - 1) & ~(page - 1);
  if (!c->bytes) return fail_load("it has no code");
  if (nvb_alloc_fails()) return nvb_fail_memory();
  c->at = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (c->at == MAP_FAILED) return c->at = NULL, nvb_fail_memory();
  int status = fill_code(f, c->at);
  if (!status) status = find_entry(f, c);
  if (!status && mprotect(c->at, c->bytes, PROT_READ | PROT_EXEC))
    status = nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] this system lets no process execute code that it has written");
  return status;
}

int nvc_load(nvc_code **out, const nvc_object *o) {
  object_file f = { .bytes = o->bytes, .n = o->n };
  *out = NULL;
  int status = read_header(&f);
  if (!status) status = lay_out_sections(&f);
  if (status) return status;
  nvc_code *c = nvb_calloc(1, sizeof *c);
  if (!c) return nvb_fail_memory();
  if ((status = load_into(c, &f))) nvc_code_free(c);
  else *out = c;
  return status;
}

nvc_entry nvc_code_entry(const nvc_code *c) { return c->entry; }

void nvc_code_free(nvc_code *c) {
  if (!c) return;
  if (c->at) munmap(c->at, c->bytes);
  nvb_free(c);
}
