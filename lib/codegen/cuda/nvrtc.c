/* Compiles CUDA C++ to cubins through NVRTC, which is found and opened at the first use. Decides the options of every
   compilation and the message of a failure; never writes source or loads code. Programs of NVRTC share no state, so
   threads may compile at once. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/err.h"
#include "base/library.h"
#include "base/mem.h"
#include "base/settings.h"
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/emitter.h"

enum {
  FORMAT = 6, /* is increased when the same options mean something else, or when the stored form changes */
  ARCHS = 64,
  LOG_SHOWN = 480, /* characters of the log in a message */
  AROUND = 2,      /* lines of source before and after the error in a message */
  COLUMNS = 100
};

/* The options keep the promises of docs/how-it-works/numerics.md, section 2. The last one, which some NVRTC of CUDA 12
   do not know, leaves out built-in declarations that the sources do not use: textures, calls of the runtime. */
static const char *const options[] = {
  "--std=c++17", "-default-device", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--minimal",
};
enum { NOPTIONS = sizeof options / sizeof *options };

typedef struct program program; /* nvrtcProgram is a pointer to it */
static struct nvrtc {
  int (*version)(int *, int *);
  int (*count_archs)(int *);
  int (*archs)(int *);
  int (*create)(program **, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(program *, int, const char *const *);
  int (*destroy)(program **);
  int (*code_size)(program *, size_t *);
  int (*code)(program *, char *);
  int (*ptx_size)(program *, size_t *);
  int (*ptx)(program *, char *);
  int (*log_size)(program *, size_t *);
  int (*log)(program *, char *);
  const char *(*error)(int);
} rt;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static char why_not[512], version[32];
static int narch, known_arch[ARCHS];
static struct {
  int major, minor;
  int64_t bytes;
} build; /* bytes: size of the library, by which patch releases are told apart */
static int64_t compiled;

static int options_known(void) { return build.major < 13 ? NOPTIONS - 1 : NOPTIONS; }

/* ---- the library */
static int find_symbols(void *handle) {
#define ROW(name, field)                                                                                               \
  { name, (void (**)(void))(void *)&rt.field, 0 }
  const nvb_symbol symbols[] = {
    ROW("nvrtcVersion", version),
    ROW("nvrtcGetNumSupportedArchs", count_archs),
    ROW("nvrtcGetSupportedArchs", archs),
    ROW("nvrtcCreateProgram", create),
    ROW("nvrtcCompileProgram", compile),
    ROW("nvrtcDestroyProgram", destroy),
    ROW("nvrtcGetCUBINSize", code_size),
    ROW("nvrtcGetCUBIN", code),
    ROW("nvrtcGetPTXSize", ptx_size),
    ROW("nvrtcGetPTX", ptx),
    ROW("nvrtcGetProgramLogSize", log_size),
    ROW("nvrtcGetProgramLog", log),
    ROW("nvrtcGetErrorString", error),
  };
#undef ROW
  return nvb_library_symbols(handle, "NVRTC", symbols, sizeof symbols / sizeof *symbols);
}

static void find_build(void) {
  Dl_info info;
  struct stat st;
  void *at;
  memcpy(&at, &rt.version, sizeof at);
  rt.version(&build.major, &build.minor);
  if (dladdr(at, &info) && info.dli_fname && !stat(info.dli_fname, &st)) build.bytes = (int64_t)st.st_size;
  snprintf(version, sizeof version, "%d.%d", build.major, build.minor);
  char builtins[64]; /* NVRTC opens them by name; the wheel of PyPI has no run path to its own folder */
  snprintf(builtins, sizeof builtins, "libnvrtc-builtins.so.%s", version);
  nvb_library_beside(at, builtins);
  if (rt.count_archs(&narch) || narch < 0 || narch > ARCHS || rt.archs(known_arch)) narch = 0;
}

static void open_library(void) {
  static const char *const soname[] = { "libnvrtc.so.13", "libnvrtc.so.12", NULL };
  void *handle = nvb_library_open(soname);
  if (!handle || find_symbols(handle)) snprintf(why_not, sizeof why_not, "%s", nvb_message());
  else find_build();
}

static int make_ready(void) {
  pthread_once(&opened, open_library);
  return *version != 0;
}

int nvc_nvrtc_available(void) {
  if (!make_ready()) nvb_fail(NVM_ERR_UNSUPPORTED, "%s", why_not);
  return make_ready();
}

const char *nvc_nvrtc_version(void) { return make_ready() ? version : why_not; }
int64_t nvc_cuda_compiled(void) { return __atomic_load_n(&compiled, __ATOMIC_RELAXED); }

/* The architecture to compile for: the device's own, or the newest with its major number that this NVRTC knows (code
   for 12.0 runs on 12.1). Code for 9.0 may use all features of 9.0 (sm_90a). */
static int best_arch(int arch) { /* 0: none */
  int best = 0;
  for (int i = 0; i < narch; i++)
    if (known_arch[i] <= arch && known_arch[i] / 10 == arch / 10 && known_arch[i] > best) best = known_arch[i];
  return best;
}
static void name_arch(char *out, size_t n, int arch) {
  int best = best_arch(arch);
  best = best ? best : arch;
  snprintf(out, n, "sm_%d%s", best, best == 90 ? "a" : "");
}

int nvc_nvrtc_supports(int arch) {
  if (!nvc_nvrtc_available()) return 0;
  if (!narch || best_arch(arch)) return 1;
  nvb_fail(NVM_ERR_UNSUPPORTED, "[nvrtc] NVRTC %s does not know compute capability %d.%d", version, arch / 10,
           arch % 10);
  return 0;
}

nvb_hash nvc_cubin_key(nvb_hash kernel, const nvc_cuda_target *t) {
  char name[32];
  int64_t tail[7] = { FORMAT, NVC_CUDA_EMITTER, t->arch, t->wide };
  if (make_ready()) memcpy(&tail[4], (int64_t[]){ build.major, build.minor, build.bytes }, 3 * sizeof *tail);
  name_arch(name, sizeof name, t->arch);
  nvb_hash h = nvb_hash_mix(kernel, name, strlen(name));
  for (int i = 0; i < options_known(); i++) h = nvb_hash_mix(h, options[i], strlen(options[i]));
  return nvb_hash_mix(h, tail, sizeof tail);
}

/* ---- what a failure says */
static size_t put_lines(char *to, size_t n, const char *source, int first, int last) {
  size_t used = 0;
  int number = 1;
  for (const char *line = source; line && number <= last && used < n; number++) {
    const char *end = strchr(line, '\n');
    int length = end ? (int)(end - line) : (int)strlen(line);
    if (number >= first)
      used += (size_t)snprintf(to + used, n - used, "\n%5d  %.*s", number, length < COLUMNS ? length : COLUMNS, line);
    line = end ? end + 1 : NULL;
  }
  return used;
}

/* Fails with NVRTC's first errors ("name(12): error: ...") and the source around the first one. */
static int fail_compile(int code, const char *name, const char *arch, const char *log, const char *source) {
  char lines[(2 * AROUND + 1) * (COLUMNS + 8) + 1] = "";
  const char *at = log ? strstr(log, "): error") : NULL;
  int number = 0;
  if (at) {
    while (at > log && at[-1] >= '0' && at[-1] <= '9') at--;
    number = atoi(at);
    while (at > log && at[-1] != '\n') at--;
    put_lines(lines, sizeof lines, source, number - AROUND, number + AROUND);
  }
  nvb_log(1, "[nvrtc] %s for %s: %s\n%s", name, arch, rt.error(code), log ? log : "");
  return nvb_fail(NVM_ERR_INTERNAL, "[nvrtc] %s for %s: %s\n%.*s%s", name, arch, rt.error(code), LOG_SHOWN,
                  at    ? at
                  : log ? log
                        : "",
                  lines);
}

/* ---- compiling */
/* A text from NVRTC, which the caller frees; NULL with a message. */
static char *take_text(program *p, const char *what, int (*size)(program *, size_t *), int (*get)(program *, char *),
                       size_t *n) {
  int code = size(p, n);
  char *got = code ? NULL : nvb_calloc(*n + 1, 1);
  if (!code && !got) return nvb_fail_memory(), NULL;
  if (!code && !(code = get(p, got))) return got;
  nvb_free(got);
  return nvb_fail(NVM_ERR_INTERNAL, "[nvrtc] no %s: %s", what, rt.error(code)), NULL;
}

static int take_code(nvc_cubin *out, program *p) {
  size_t n;
  char *ptx = take_text(p, "PTX", rt.ptx_size, rt.ptx, &n);
  out->bytes = ptx ? take_text(p, "machine code", rt.code_size, rt.code, &out->n) : NULL;
  int status = out->bytes ? nvc_cubin_read(out, ptx) : nvb_status();
  nvb_free(ptx);
  if (status) nvb_free(out->bytes), out->bytes = NULL;
  return status;
}

/* Returns a status. Flags: the architecture, the options, then `more` if it is not NULL. */
static int compile_source(nvc_cubin *out, const char *source, const char *name, const char *target, const char *more) {
  char flag[64];
  const char *flags[NOPTIONS + 2] = { flag };
  int n = options_known() + 1;
  program *p = NULL;
  size_t nlog;
  *out = (nvc_cubin){ 0 };
  snprintf(flag, sizeof flag, "--gpu-architecture=%s", target);
  memcpy(flags + 1, options, sizeof options);
  if (more) flags[n++] = more;
  int code = rt.create(&p, source, name, 0, NULL, NULL);
  if (code) return fail_compile(code, name, target, NULL, source);
  code = rt.compile(p, n, flags);
  char *log = code ? take_text(p, "log", rt.log_size, rt.log, &nlog) : NULL;
  int status = code ? fail_compile(code, name, target, log, source) : take_code(out, p);
  if (!status)
    nvb_log(2, "[nvrtc] %s for %s: %zu bytes, %d registers, %d bytes of spills", name, target, out->n, out->registers,
            out->spills);
  nvb_free(log);
  rt.destroy(&p);
  return status;
}

/* CTAs of so many threads that are resident on an SM, as far as registers limit it */
static int resident_ctas(int threads, int registers) {
  enum { REGISTERS = 65536, GRAIN = 8 };
  return threads > 0 && registers > 0 ? REGISTERS / (threads * ((registers + GRAIN - 1) / GRAIN * GRAIN)) : 0;
}

/* The threads of a CTA if the source's launch bounds give no CTAs per SM; else 0. */
static int unbounded_threads(const char *source) {
  static const char word[] = "__launch_bounds__(";
  const char *bounds = strstr(source, word);
  return bounds && strcspn(bounds, ",") > strcspn(bounds, ")") ? atoi(bounds + sizeof word - 1) : 0;
}

/* Compiles again with more registers if ptxas spilled around calls in order to fit one more CTA on an SM. (On an H200
   an FFT took 1.75 times as long as a copy with spills, 1.25 with more registers and fewer CTAs.) A few words that are
   spilled around the call of a slow path are not worth a quarter of the CTAs. */
static void compile_without_spills(nvc_cubin *out, const char *source, const char *name, const char *target) {
  enum { FEW = 16 }; /* bytes of spill stores and loads */
  int threads = unbounded_threads(source), most = out->spills > FEW ? 0 : resident_ctas(threads, out->registers),
      least = most - (most - 1) / 4;
  nvc_cubin again, less = *out;
  if (!threads || resident_ctas(threads, out->registers + 1) < least) return;
  if (compile_source(&again, source, name, target, "--ptxas-options=--minnctapersm=1")) {
    nvb_clear();
    return;
  }
  if (again.spills < out->spills && resident_ctas(threads, again.registers) >= least) *out = again, again = less;
  nvb_free(again.bytes);
}

static int compile_for(nvc_cubin *out, const char *source, const char *name, int arch, int quick) {
  char target[32];
  *out = (nvc_cubin){ 0 };
  if (!nvc_nvrtc_available()) return NVM_ERR_UNSUPPORTED;
  name_arch(target, sizeof target, arch);
  int status = compile_source(out, source, name, target, quick && build.major >= 13 ? "--Ofast-compile=mid" : NULL);
  if (!status && !quick && out->spills) compile_without_spills(out, source, name, target);
  if (!status) __atomic_add_fetch(&compiled, 1, __ATOMIC_RELAXED);
  return status;
}

int nvc_nvrtc_compile(nvc_cubin *out, const char *source, const char *name, int arch) {
  return compile_for(out, source, name, arch, 0);
}

int nvc_nvrtc_compile_quick(nvc_cubin *out, const char *source, const char *name, int arch) {
  return compile_for(out, source, name, arch, 1);
}
