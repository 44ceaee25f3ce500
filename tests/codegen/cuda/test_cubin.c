/* Registers and spills are read from machine code: they are what ptxas says of the same compile, whether variables
   stand on the stack or not, and the same when NVRTC's cache is cold, warm and switched off. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "../../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "codegen/cuda/cuda.h"

static const struct {
  int number;
  const char *name;
} archs[] = { { 80, "sm_80" }, { 89, "sm_89" }, { 90, "sm_90a" }, { 100, "sm_100" }, { 120, "sm_120" } };
enum { ARCHS = sizeof archs / sizeof *archs };

#define KERNEL(bounds) \
  "extern \"C\" __global__ void __launch_bounds__(" bounds ") nvm_kernel(float *x, float *y, int n) {\n"
#define EACH_64 "\n#pragma unroll\nfor (int i = 0; i < 64; i++) "
#define MANY "float a[64];" EACH_64 "a[i] = x[threadIdx.x + i * 1024];"
#define MIX(more) \
  "\n#pragma unroll\nfor (int r = 0; r < 4; r++) {" EACH_64 "a[i] = a[i] * a[(i + 7) % 64] + y[i + n]" more ";}"
#define STORE EACH_64 "y[threadIdx.x + i * 1024] = a[i];\n}\n"
#define TABLE "float t[32];\n#pragma unroll\nfor (int i = 0; i < 32; i++) t[i] = x[threadIdx.x * 3 + i];"
#define RARE \
  "static __device__ __noinline__ void rare(float *a, float b) {\n" \
  "  for (int i = 0; i < 3; i++) a[i] = b * a[i] + i;\n}\n"

static const struct sample {
  const char *what, *source;
  int spills; /* it does */
} samples[] = {
  { "nothing", KERNEL("256") "y[threadIdx.x] = x[threadIdx.x] * n;\n}\n", 0 },
  { "spills", KERNEL("1024, 2") MANY MIX("") STORE, 1 },
  { "variables", KERNEL("256") TABLE "t[n & 31] = 1;\ny[threadIdx.x] = t[y[0] > 0 ? 3 : n + 3 & 31];\n}\n", 0 },
  { "variables and spills", KERNEL("1024, 2") TABLE MANY MIX("+ t[n + i * r & 31]") STORE, 1 },
  { "a call",
    RARE KERNEL("256") "float a[3] = {x[0], x[1], x[2]};\nif (n > 3) rare(a, x[3]);\n"
                       "y[0] = a[0] + a[2];\n}\n",
    0 },
  { "a call and spills",
    RARE KERNEL("1024, 2") MANY MIX("") "float b[3] = {x[0], x[1], x[2]};\n"
                                        "if (n > 3) rare(b, x[3]);\ny[0] = b[0] + b[2];" MIX("+ b[1]") STORE,
    1 },
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static int nvrtc(void) {
  if (nvc_nvrtc_available()) return 1;
  printf("skipped: %s\n", nvb_message());
  return 0;
}

/* ---- what ptxas says, of a compile of the test's own */
static struct {
  void *handle;
  int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(void *, int, const char *const *);
  int (*size[3])(void *, size_t *), (*get[3])(void *, char *);
} rt;

static void open_nvrtc(void) {
  static const char *const name[3] = { "ProgramLog", "PTX", "CUBIN" };
  char symbol[64];
  for (const char *so = "libnvrtc.so.13"; !rt.handle; so = "libnvrtc.so.12")
    ck_assert((rt.handle = dlopen(so, RTLD_NOW | RTLD_NOLOAD)) || so[strlen(so) - 1] == '3');
  *(void **)&rt.create = dlsym(rt.handle, "nvrtcCreateProgram");
  *(void **)&rt.compile = dlsym(rt.handle, "nvrtcCompileProgram");
  for (int i = 0; i < 3; i++) {
    snprintf(symbol, sizeof symbol, "nvrtcGet%sSize", name[i]);
    *(void **)&rt.size[i] = dlsym(rt.handle, symbol);
    snprintf(symbol, sizeof symbol, "nvrtcGet%s", name[i]);
    *(void **)&rt.get[i] = dlsym(rt.handle, symbol);
  }
}

static int number_before(const char *log, const char *words) {
  const char *at = strstr(log, words);
  ck_assert_msg(at != NULL, "no '%s' in the log:\n%s", words, log);
  while (at[-1] == ' ') at--;
  while (at[-1] >= '0' && at[-1] <= '9') at--;
  return atoi(at);
}

START_TEST(as_ptxas_says) {
  const struct sample *s = &samples[_i % SAMPLES];
  const char *arch = archs[_i / SAMPLES].name;
  if (!nvrtc() || !nvc_nvrtc_supports(archs[_i / SAMPLES].number)) return;
  open_nvrtc();
  char option[64], *text[3];
  size_t n[3];
  void *p;
  snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
  const char *const options[] = { option, "--ptxas-options=-v", "--fmad=false", "--std=c++17", "--no-cache" };
  ck_assert_int_eq(rt.create(&p, s->source, "sample", 0, NULL, NULL), 0);
  /* who does not know of a cache has none */
  ck_assert(!rt.compile(p, 5, options) || !rt.compile(p, 4, options));
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(rt.size[i](p, &n[i]), 0);
    text[i] = calloc(n[i] + 1, 1);
    ck_assert_int_eq(rt.get[i](p, text[i]), 0);
  }
  nvc_cubin c = { .bytes = text[2], .n = n[2] };
  ck_assert_msg(!nvc_cubin_read(&c, text[1]), "%s", nvb_message());
  int said = number_before(text[0], "bytes spill stores") + number_before(text[0], "bytes spill loads");
  ck_assert_msg(c.registers == number_before(text[0], "registers,") && c.spills == said && (said > 0) == s->spills,
                "%s for %s: %d registers and %d bytes of spills were read; ptxas says\n%s", s->what, arch, c.registers,
                c.spills, text[0]);
  for (int i = 0; i < 3; i++) free(text[i]);
}
END_TEST

/* ---- NVRTC's cache */
typedef struct seen { int status, registers, spills; } seen;
static void compile_in_child(seen *out, const struct sample *s) {
  pid_t child = fork();
  for (int i = 0; !child && i < ARCHS; i++) {
    nvc_cubin c;
    out[i].status = nvc_nvrtc_compile(&c, s->source, s->what, archs[i].number);
    out[i].registers = c.registers, out[i].spills = c.spills;
  }
  if (!child) _exit(0);
  int status;
  ck_assert(waitpid(child, &status, 0) == child && !status);
}

START_TEST(whatever_is_cached) {
  enum { COLD, WARM, OFF, STATES };
  const struct sample *s = &samples[_i];
  char dir[] = "/tmp/nvm-cubin-XXXXXX", command[64];
  size_t size = sizeof(seen[STATES][ARCHS]);
  seen(*found)[ARCHS] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert(found != MAP_FAILED && mkdtemp(dir));
  setenv("CUDA_CACHE_PATH", dir, 1);
  for (int state = COLD; state < STATES; state++) {
    setenv("CUDA_CACHE_DISABLE", state == OFF ? "1" : "0", 1);
    compile_in_child(found[state], s);
  }
  snprintf(command, sizeof command, "rm -r %s", dir);
  ck_assert_int_eq(system(command), 0);
  for (int state = COLD; state < STATES; state++)
    for (int i = 0; i < ARCHS && found[state][i].status != NVM_ERR_UNSUPPORTED; i++) {
      const seen *is = &found[state][i], *was = &found[COLD][i];
      ck_assert_msg(!memcmp(is, was, sizeof *is), "%s for %s: %d and %d registers, %d and %d bytes of spills", s->what,
                    archs[i].name, is->registers, was->registers, is->spills, was->spills);
      ck_assert(!is->status && is->registers > 0 && (is->spills > 0) == s->spills);
    }
}
END_TEST

START_TEST(what_is_no_machine_code) {
  nvc_cubin c, whole;
  char *text = strdup("\177ELF and little else, as far as anybody can see who looks at it closely enough");
  c = (nvc_cubin){ .bytes = text, .n = strlen(text) };
  ck_assert(nvc_cubin_read(&c, "") == NVM_ERR_INTERNAL && strstr(nvb_message(), "no ELF file"));
  free(text);
  if (!nvrtc()) return;
  ck_assert_msg(!nvc_nvrtc_compile(&whole, samples[1].source, "cut", 90), "%s", nvb_message());
  for (size_t n = 0; n < whole.n; n += 7) { /* of any length: nothing behind its end is read */
    c = (nvc_cubin){ .bytes = memcpy(malloc(n + 1), whole.bytes, n), .n = n };
    int status = nvc_cubin_read(&c, "");
    ck_assert(status == NVM_OK ? c.registers == whole.registers : status == NVM_ERR_INTERNAL);
    free(c.bytes);
  }
  nvb_free(whole.bytes);
}
END_TEST

SUITE("cubin", LOOP(as_ptxas_says, SAMPLES *ARCHS), LOOP(whatever_is_cached, 3), what_is_no_machine_code)
