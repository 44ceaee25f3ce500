/* Gives the core native code for this CPU: finds libnvm_llvm.so beside libnvm.so at the first use and forwards calls.
   Decides the target (NVM_ISA) and the key of compiled code; knows nothing of LLVM. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/module.h"

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static const nvc_llvm *llvm; /* set once by `opened` */
static char why_not[256];
static int64_t compiled;

struct nvc_code {
  void *handle;
  nvc_entry entry;
};

/* ---- the module */
static void beside_us(char *path, size_t n) {
  Dl_info info;
  const char *slash =
      dladdr((void *)(uintptr_t)nvc_llvm_available, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
  snprintf(path, n, "%.*slibnvm_llvm.so", slash ? (int)(slash - info.dli_fname) + 1 : 0, slash ? info.dli_fname : "");
}

static void open_module(void) {
  char path[1024];
  beside_us(path, sizeof path);
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = lib ? dlsym(lib, "nvm_llvm_open") : NULL;
  nvc_llvm_open open = NULL;
  if (!symbol) {
    const char *e = dlerror();
    snprintf(why_not, sizeof why_not, "%s", e ? e : "not found");
    return;
  }
  memcpy(&open, &symbol, sizeof open);
  const nvc_llvm *table = open();
  if (!table || table->abi != NVC_LLVM_ABI) snprintf(why_not, sizeof why_not, "libnvm_llvm.so is of another version");
  else llvm = table;
}

static const nvc_llvm *llvm_module(void) {
  pthread_once(&opened, open_module);
  return llvm;
}

const char *nvc_llvm_version(void) { return llvm_module() ? llvm->version : why_not; }

int nvc_llvm_available(void) {
  if (!llvm_module()) return nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] %s", why_not), 0;
  if (__atomic_load_n(llvm->dead, __ATOMIC_ACQUIRE))
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] switched off after a fatal error"), 0;
  const char *f = nvc_target_host()->features;
  if (!strstr(f, "+fma") || !strstr(f, "+avx2") || !strstr(f, "+f16c"))
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] this CPU lacks AVX2, FMA or F16C: the interpreter runs everything"), 0;
  return 1;
}

/* ---- targets, one per value of NVM_ISA */
static nvc_target target[4];
static pthread_once_t targets = PTHREAD_ONCE_INIT;

static void without_avx512(char *f) {
  static const char *const words[] = { "+avx512", "+evex512", "+avx10" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    for (char *p = strstr(f, words[i]); p; p = strstr(p + 1, words[i])) *p = '-';
}

static void find_targets(void) {
  nvc_target *native = &target[0];
  if (llvm_module()) llvm->host(native);
  else native->width = __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
  for (int i = 1; i < 4; i++) {
    target[i] = *native;
    int width = 8 << i;
    if (width < 64) without_avx512(target[i].features);
    if (width < target[i].width) target[i].width = width;
  }
}

const nvc_target *nvc_target_host(void) {
  const char *isa = nvb_str(NVB_ISA);
  pthread_once(&targets, find_targets);
  return &target[strcmp(isa, "128") == 0 ? 1 : strcmp(isa, "256") == 0 ? 2 : strcmp(isa, "512") == 0 ? 3 : 0];
}

/* ---- code */
int nvc_compile(nvc_object *out, const nvf_kernel *k, const nvf_schedule *s, const nvc_target *t) {
  *out = (nvc_object){ 0 };
  if (!nvc_llvm_available()) return NVM_ERR_UNSUPPORTED;
  int status = llvm->compile(out, k, s, t);
  if (!status) __atomic_add_fetch(&compiled, 1, __ATOMIC_RELAXED);
  return status;
}

nvb_hash nvc_code_key(const nvf_kernel *k, const nvf_schedule *s, const nvc_target *t) {
  int64_t tail[2] = { NVC_EMITTER, t->width };
  nvb_hash h = nvf_kernel_hash(k, s);
  const char *version = nvc_llvm_version();
  h = nvb_hash_mix(h, t->cpu, strlen(t->cpu));
  h = nvb_hash_mix(h, t->features, strlen(t->features));
  h = nvb_hash_mix(h, version, strlen(version));
  return nvb_hash_mix(h, tail, sizeof tail);
}

int nvc_load(nvc_code **out, const nvc_object *o) {
  *out = NULL;
  if (!nvc_llvm_available()) return NVM_ERR_UNSUPPORTED;
  nvc_code *c = nvb_calloc(1, sizeof *c);
  if (!c) return nvb_fail_memory();
  int status = llvm->load(&c->handle, &c->entry, o);
  if (status) nvb_free(c);
  else *out = c;
  return status;
}

nvc_entry nvc_code_entry(const nvc_code *c) { return c->entry; }

void nvc_code_free(nvc_code *c) {
  if (!c) return;
  llvm->unload(c->handle);
  nvb_free(c);
}

int64_t nvc_compiled(void) { return __atomic_load_n(&compiled, __ATOMIC_RELAXED); }
