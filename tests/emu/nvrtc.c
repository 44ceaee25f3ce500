/* A stand-in for NVRTC: kernel sources through g++ into a shared object, which is the "cubin". A source's prelude is
   replaced by prelude.h, which g++ has read once for all; results are kept in a folder by the hash of all that goes
   in. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "abi.h"
#include "cubin.h"

enum { SUCCESS, OUT_OF_MEMORY, CREATION_FAILURE, INVALID_INPUT, INVALID_PROGRAM, INVALID_OPTION, COMPILATION };
typedef struct program { char *source, *name, *log, *bytes; size_t n; } *program;
typedef struct text { char *s; size_t n, cap; } text;

static void add(text *t, const char *s, size_t n) {
  if (t->n + n + 1 > t->cap) t->s = realloc(t->s, t->cap = 2 * (t->n + n) + 1024);
  memcpy(t->s + t->n, s, n);
  t->s[t->n += n] = 0;
}
static void adds(text *t, const char *s) { add(t, s, strlen(s)); }
#define addf(t, ...) do { char b_[512]; snprintf(b_, sizeof b_, __VA_ARGS__); adds(t, b_); } while (0)

static char *slurp(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  text t = { 0 };
  char part[8192];
  add(&t, "", 0);
  for (size_t k; (k = fread(part, 1, sizeof part, f)) > 0;) add(&t, part, k);
  fclose(f);
  if (n) *n = t.n;
  return t.s;
}

/* ---- the C++ source */
static int is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* `extern __shared__ T name[]` becomes a declaration; the array itself is defined at the end. Its name, or "". */
static void declare_shared(text *out, const char *s, char *name, size_t cap) {
  static const char what[] = "extern __shared__";
  *name = 0;
  for (const char *p; (p = strstr(s, what)); s = p + sizeof what - 1) {
    add(out, s, (size_t)(p - s));
    adds(out, "extern");
    const char *b = strchr(p, '[');
    if (!b) continue;
    while (b > p && b[-1] == ' ') b--;
    const char *e = b;
    while (is_word(b[-1])) b--;
    snprintf(name, cap, "%.*s", (int)(e - b), b);
  }
  adds(out, s);
}

/* The number in an attribute `what(n, ...)` between s and the name of a kernel, and in *second (may be NULL) the next
   one, if there is one; *open goes on to the brace behind it. */
static int attribute(const char *s, const char *what, const char **open, int *second) {
  const char *at = strstr(s, what), *close = at && at < *open ? strchr(*open, ')') : NULL;
  int n = close ? atoi(*open + 1) : 0;
  const char *comma = close ? memchr(*open, ',', (size_t)(close - *open)) : NULL;
  if (comma && second) *second = atoi(comma + 1);
  if (close) *open = strchr(close, '(');
  return n;
}

/* One EMU_KERNEL for each `__global__ void [__launch_bounds__(n, m)] [__cluster_dims__(n, ...)] name(`. */
static void describe_kernels(text *out, const char *s, const char *shared) {
  static const char what[] = "__global__";
  while ((s = strstr(s, what))) {
    s += sizeof what - 1;
    const char *open = strchr(s, '(');
    int least = 1, threads = open ? attribute(s, "__launch_bounds__", &open, &least) : 0;
    int cluster = open ? attribute(s, "__cluster_dims__", &open, NULL) : 0;
    if (!open) return;
    const char *e = open;
    while (e > s && e[-1] == ' ') e--;
    const char *b = e;
    while (is_word(b[-1])) b--;
    addf(out, "EMU_KERNEL(%.*s, %d, %d, %d, %s)\n", (int)(e - b), b, threads, least, cluster ? cluster : 1,
         *shared ? "emu_shared" : "0");
  }
}

static int count_lines(const char *s, const char *end) {
  int n = 1;
  for (; s < end; s++) n += *s == '\n';
  return n;
}

static void compose(text *out, const char *source, const char *name) {
  static const char begin[] = "// prelude\n", end[] = "// end of prelude\n";
  const char *p = strstr(source, begin), *rest = p ? strstr(p, end) : NULL;
  char shared[128];
  if (rest) {
    for (const char *more = rest; more; more = strstr(rest, end)) rest = more + sizeof end - 1;
    addf(out, "#line 1 \"%s\"\n", name);
    add(out, source, (size_t)(p - source));
  } else rest = source;
  addf(out, "#line %d \"%s\"\n", count_lines(source, rest), name);
  declare_shared(out, rest, shared, sizeof shared);
  adds(out, "\n#line 1 \"emulator\"\n");
  if (*shared)
    addf(out, "asm(\".comm %s, %d, 1024\");\nextern \"C\" { extern char emu_shared[] asm(\"%s\"); }\n", shared,
         (int)EMU_SHARED_ALL, shared);
  describe_kernels(out, rest, shared);
}

/* ---- the compiler */
static const char *folder(void) { /* of this library */
  static char dir[1024];
  Dl_info info;
  if (!*dir && dladdr((void *)(uintptr_t)folder, &info)) {
    snprintf(dir, sizeof dir, "%s", info.dli_fname);
    char *slash = strrchr(dir, '/');
    if (slash) *slash = 0;
    else strcpy(dir, ".");
  }
  return dir;
}

static uint64_t hash(uint64_t h, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
  return h ^ h >> 29;
}

static int run(char **argv, const char *output) {
  extern char **environ;
  posix_spawn_file_actions_t fa;
  posix_spawn_file_actions_init(&fa);
  posix_spawn_file_actions_addopen(&fa, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&fa, 1, 2);
  pid_t pid;
  int status = -1;
  if (posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ) == 0)
    while (waitpid(pid, &status, 0) < 0) {}
  posix_spawn_file_actions_destroy(&fa);
  return status;
}

static char *const flags[] = { "g++",
                               "-std=gnu++17",
                               "-march=native",
                               "-ffp-contract=off",
                               "-fwrapv",
                               "-fno-strict-aliasing",
                               "-fno-math-errno",
                               "-fPIC",
                               "-shared",
                               "-nostdlib", // the process has libraries; to look through them took a third of the time
                               "-g1",
                               "-w",
                               "-fno-diagnostics-show-caret",
                               "-fno-exceptions",
                               "-fno-gnu-unique",
                               "-fsanitize=alignment,bounds",
                               "-fsanitize-undefined-trap-on-error",
                               "-I" EMU_DIR,
                               "-I" EMU_DIR "/../../lib" };
enum { NFLAGS = sizeof flags / sizeof *flags };

/* "name:12:5: error: ..." as NVRTC says it: "name(12): error: ..." */
static char *as_nvrtc(char *log) {
  text t = { 0 };
  add(&t, "", 0);
  for (char *line = log; *line;) {
    size_t n = strcspn(line, "\n");
    int number, column, at = 0;
    char *colon = memchr(line, ':', n);
    if (colon && sscanf(colon, ":%d:%d: %n", &number, &column, &at) == 2 && at) {
      add(&t, line, (size_t)(colon - line));
      addf(&t, "(%d): ", number);
      add(&t, colon + at, n - (size_t)(colon - line) - (size_t)at);
    } else add(&t, line, n);
    adds(&t, "\n");
    line += n + (line[n] == '\n');
  }
  free(log);
  return t.s;
}

/* g++ with the flags, an optimization and more arguments, up to NULL; what it says goes into the log. */
enum { MORE = 6 };
static int run_with(const char *level, const char *const *more, const char *log) {
  char *argv[NFLAGS + 1 + MORE + 1] = { 0 };
  memcpy(argv, flags, sizeof flags);
  argv[NFLAGS] = (char *)(uintptr_t)level;
  for (int i = 0; i < MORE && more[i]; i++) argv[NFLAGS + 1 + i] = (char *)(uintptr_t)more[i];
  return run(argv, log);
}

typedef struct key { uint64_t h[2]; } key;
static void key_add(key *k, const char *s, size_t n) {
  for (int i = 0; i < 2; i++) k->h[i] = hash(k->h[i], s, n);
}
static key key_of_setup(const char *level) { /* all but the source */
  static const char *const headers[] = { EMU_DIR "/abi.h", EMU_DIR "/device.h", EMU_DIR "/prelude.h",
                                         EMU_DIR "/../../lib/frag/soft.h" };
  key k = { { 0xcbf29ce484222325u, 0x84222325cbf29ceu } };
  for (size_t f = 0; f < NFLAGS; f++) key_add(&k, flags[f], strlen(flags[f]));
  key_add(&k, level, strlen(level));
  for (size_t f = 0; f < sizeof headers / sizeof *headers; f++) {
    size_t n = 0;
    char *s = slurp(headers[f], &n);
    key_add(&k, s ? s : "", n);
    free(s);
  }
  return k;
}

enum { PATH = 1200, OWN = PATH + 64 }; /* OWN: with a few words behind a path */
static void name_file(char *out, const key *k) {
  snprintf(out, PATH, "%s/cache", getenv("NVM_EMU_CACHE") ? getenv("NVM_EMU_CACHE") : folder());
  mkdir(out, 0700);
  size_t at = strlen(out);
  snprintf(out + at, PATH - at, "/%016llx%016llx", (unsigned long long)k->h[0], (unsigned long long)k->h[1]);
}
static void name_own(char *out, const char *name) { /* threads and processes may compile the same at once */
  static int compiles;
  snprintf(out, OWN, "%s.%d.%d", name, (int)getpid(), __atomic_fetch_add(&compiles, 1, __ATOMIC_RELAXED));
}
static int spit(const char *path, const char *s, size_t n) {
  FILE *f = fopen(path, "wb");
  return f && (fwrite(s, 1, n, f) == n) & !fclose(f);
}

/* The header that goes before every source, with what g++ made of it beside (a header that it cannot make it of is
   read as it is). Half of the time of a small kernel was its parsing. */
static void precompile(char *header, const key *setup, const char *level) {
  static const char text[] = "#include \"device.h\"\n#include \"prelude.h\"\n";
  char name[PATH], own[OWN], made[OWN + 4], to[OWN], log[OWN + 4];
  name_file(name, setup);
  snprintf(header, OWN, "%s.h", name);
  snprintf(to, sizeof to, "%s.h.gch", name);
  if (access(to, R_OK) == 0) return;
  name_own(own, name);
  snprintf(made, sizeof made, "%s.gch", own);
  snprintf(log, sizeof log, "%s.log", own);
  if (spit(own, text, sizeof text - 1)) rename(own, header);
  const char *const more[] = { "-x", "c++-header", header, "-o", made, NULL };
  if (run_with(level, more, log) == 0) rename(made, to);
  unlink(log);
}

static int compile(program p) {
  int long_runs = strstr(p->source, "nv_mma_") || strstr(p->source, "nv_wgmma_");
  const char *level = long_runs ? "-O1" : "-O0"; /* most sources run for less long than they compile */
  text cpp = { 0 };
  compose(&cpp, p->source, p->name);
  key setup = key_of_setup(level), k = setup;
  key_add(&k, cpp.s, cpp.n);
  char name[PATH], own[OWN], header[OWN], in[OWN + 4], so[OWN], out[OWN + 4], log[OWN + 4];
  name_file(name, &k);
  snprintf(so, sizeof so, "%s.so", name);
  if (!(p->bytes = slurp(so, &p->n))) {
    precompile(header, &setup, level);
    name_own(own, name);
    snprintf(in, sizeof in, "%s.cc", own);
    snprintf(out, sizeof out, "%s.so", own);
    snprintf(log, sizeof log, "%s.log", own);
    const char *const more[] = { "-include", header, "-o", out, in, NULL };
    int status = spit(in, cpp.s, cpp.n) ? run_with(level, more, log) : -1;
    if (status == 0 && (p->bytes = slurp(out, &p->n))) rename(out, so);
    else {
      free(p->log);
      p->log = slurp(log, NULL);
      p->log = p->log ? as_nvrtc(p->log) : strdup("g++ cannot be run");
    }
    unlink(log);
    if (status == 0) unlink(in);
  }
  free(cpp.s);
  return p->bytes ? SUCCESS : COMPILATION;
}

/* ---- what a cubin is made of */
/* So many bytes are stored to the stack and loaded again, one by one. */
static void add_spills(text *out, int bytes) {
  uint64_t store[2] = { 0x387 | 1 << 24, 0 }, load[2] = { 0x983 | 1 << 24, 0 };
  for (int i = 0; i < bytes; i++) {
    add(out, (char *)store, sizeof store);
    add(out, (char *)load, sizeof load);
  }
}
static void wrap(program p, int spills) {
  static const char names[] = "\0.shstrtab\0.nv.info\0.text.nvm_kernel\0.host";
  enum { AT_INFO = 11, AT_TEXT = 20, AT_HOST = 37 };
  size_t code = (size_t)spills * 32;
  emu_cubin c = { .h = { .e_type = ET_EXEC,
                         .e_machine = EM_CUDA,
                         .e_version = EV_CURRENT,
                         .e_shoff = offsetof(emu_cubin, section),
                         .e_ehsize = sizeof(Elf64_Ehdr),
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = CUBIN_SECTIONS,
                         .e_shstrndx = CUBIN_NAMES },
                  .registers = { 4, 0x2f, 8, 0, 40 } };
  memcpy(c.h.e_ident, (char[]){ ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, 7);
  memcpy(c.names, names, sizeof names);
  c.section[CUBIN_NAMES] = (Elf64_Shdr){
    .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = offsetof(emu_cubin, names), .sh_size = sizeof names
  };
  c.section[CUBIN_INFO] = (Elf64_Shdr){ .sh_name = AT_INFO,
                                        .sh_type = SHT_LOPROC,
                                        .sh_offset = offsetof(emu_cubin, registers),
                                        .sh_size = sizeof c.registers };
  c.section[CUBIN_TEXT] =
      (Elf64_Shdr){ .sh_name = AT_TEXT, .sh_type = SHT_PROGBITS, .sh_offset = sizeof c, .sh_size = code };
  c.section[CUBIN_HOST] =
      (Elf64_Shdr){ .sh_name = AT_HOST, .sh_type = SHT_PROGBITS, .sh_offset = sizeof c + code, .sh_size = p->n };
  text all = { 0 };
  add(&all, (char *)&c, sizeof c);
  add_spills(&all, spills);
  add(&all, p->bytes, p->n);
  free(p->bytes);
  p->bytes = all.s;
  p->n = all.n;
}

/* ---- NVRTC's functions */
int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return SUCCESS;
}
const char *nvrtcGetErrorString(int code) {
  static const char *const name[] = { "NVRTC_SUCCESS",
                                      "NVRTC_ERROR_OUT_OF_MEMORY",
                                      "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "NVRTC_ERROR_INVALID_INPUT",
                                      "NVRTC_ERROR_INVALID_PROGRAM",
                                      "NVRTC_ERROR_INVALID_OPTION",
                                      "NVRTC_ERROR_COMPILATION" };
  return code >= 0 && code <= COMPILATION ? name[code] : "NVRTC_ERROR unknown";
}
int nvrtcGetNumSupportedArchs(int *n) {
  *n = 4;
  return SUCCESS;
}
int nvrtcGetSupportedArchs(int *archs) {
  memcpy(archs, (int[]){ 80, 90, 100, 120 }, 4 * sizeof *archs);
  return SUCCESS;
}

int nvrtcCreateProgram(program *out, const char *source, const char *name, int nheaders, const char *const *headers,
                       const char *const *names) {
  (void)headers;
  (void)names;
  if (!out || !source || nheaders) return INVALID_INPUT; /* kernel sources are header-free */
  program p = calloc(1, sizeof *p);
  p->source = strdup(source);
  p->name = strdup(name ? name : "default_program");
  p->log = strdup("");
  *out = p;
  return SUCCESS;
}
int nvrtcDestroyProgram(program *p) {
  if (!p || !*p) return INVALID_PROGRAM;
  free((*p)->source);
  free((*p)->name);
  free((*p)->log);
  free((*p)->bytes);
  free(*p);
  *p = NULL;
  return SUCCESS;
}

/* Real names only: a misspelled option must not be found on a GPU machine. */
static int known(const char *o) {
  static const char *const start[] = { "--gpu-architecture=sm_",
                                       "-arch=sm_",
                                       "--fmad=",
                                       "-fmad=",
                                       "--ftz=",
                                       "-ftz=",
                                       "--prec-div=",
                                       "-prec-div=",
                                       "--prec-sqrt=",
                                       "-prec-sqrt=",
                                       "--std=c++",
                                       "-std=c++",
                                       "--minimal",
                                       "-minimal",
                                       "--ptxas-options=",
                                       "-Xptxas",
                                       "-Ofast-compile=",
                                       "--Ofast-compile=",
                                       "--split-compile=",
                                       "--maxrregcount=",
                                       "-maxrregcount=",
                                       "-restrict",
                                       "--restrict",
                                       "-default-device",
                                       "--default-device",
                                       "-lineinfo",
                                       "--generate-line-info",
                                       "-no-cache",
                                       "--no-cache",
                                       "--device-int128",
                                       "-device-int128",
                                       "--diag-suppress=",
                                       "-w",
                                       "-fno-diagnostics-show-caret",
                                       "--disable-warnings",
                                       "-v" };
  for (size_t i = 0; i < sizeof start / sizeof *start; i++)
    if (!strncmp(o, start[i], strlen(start[i]))) return 1;
  return 0;
}
/* NVRTC makes its tables when it compiles for the first time, and the process destroys them at its end, before what
   was registered earlier is called. */
static _Atomic int compiling;
static void destroy_tables(void) {
  if (compiling) abort();
}
static void make_tables(void) { atexit(destroy_tables); }

/* The log of what compiles is empty, as NVRTC's is where the code comes from its cache. */
int nvrtcCompileProgram(program p, int n, const char *const *option) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_tables);
  for (int i = 0; i < n; i++)
    if (!known(option[i])) return INVALID_OPTION;
  const char *takes = getenv("NVM_EMU_COMPILE_MS");
  compiling++;
  if (takes) usleep((useconds_t)atoi(takes) * 1000);
  int code = compile(p);
  compiling--;
  const char *bounds = strstr(p->source, "__launch_bounds__("), *spills = getenv("NVM_EMU_SPILLS");
  if (getenv("NVM_EMU_CROWDED") && bounds && bounds[strcspn(bounds, ",)")] == ',') spills = getenv("NVM_EMU_CROWDED");
  if (code == SUCCESS) wrap(p, spills ? atoi(spills) : 0);
  return code;
}
int nvrtcGetPTXSize(program p, size_t *n) {
  *n = 1;
  return p->bytes ? SUCCESS : INVALID_PROGRAM;
}
int nvrtcGetPTX(program p, char *out) {
  *out = 0;
  return p->bytes ? SUCCESS : INVALID_PROGRAM;
}
int nvrtcGetCUBINSize(program p, size_t *n) {
  *n = p->n;
  return p->bytes ? SUCCESS : INVALID_PROGRAM;
}
int nvrtcGetCUBIN(program p, char *out) {
  if (!p->bytes) return INVALID_PROGRAM;
  memcpy(out, p->bytes, p->n);
  return SUCCESS;
}
int nvrtcGetProgramLogSize(program p, size_t *n) {
  *n = strlen(p->log) + 1;
  return SUCCESS;
}
int nvrtcGetProgramLog(program p, char *out) {
  strcpy(out, p->log);
  return SUCCESS;
}
