/* Gives the core native code for this CPU: finds libnvm_llvm.so beside libnvm.so when it is first needed and forwards
   calls. Decides the target (NVM_ISA) and the key of compiled code; knows nothing of LLVM. What LLVM says about the CPU
   and itself is kept in the disk cache, so that a process whose code is there never opens it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#if defined __x86_64__
#include <cpuid.h>
#endif
#include "base/background.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "base/store.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/module.h"

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static const nvc_llvm *llvm; /* set once by `opened` */
static char why_not[256];
static int64_t compiled;

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
  if (lib) nvb_crews_end_first();
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

/* ---- the host: what LLVM says of this CPU and of itself */
/* A file as it was; another file, or a later version of it, differs. */
typedef struct file_id { int64_t device, inode, size, seconds, nanoseconds; } file_id;
typedef struct host { nvc_target target; char version[256], file[1024]; file_id id; } host;
static host here; /* set once by `looked_up`, or else by `asked` */
static pthread_once_t looked_up = PTHREAD_ONCE_INIT, asked = PTHREAD_ONCE_INIT;
static nvb_hash key_here; /* of its row */
static int keyed;         /* 0: it can have none */
static _Atomic int known; /* `here` is set */

static int identify_file(file_id *id, const char *path) {
  struct stat s;
  if (stat(path, &s)) return 0;
  *id = (file_id){ (int64_t)s.st_dev, (int64_t)s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec };
  return 1;
}

/* Adds what tells CPUs apart that LLVM tells apart: the answers of CPUID without those that differ between cores, and
   the registers that the system saves. Returns 0 if there is no CPUID. */
static int identify_cpu(nvb_hash *key) {
#if defined __x86_64__
  static const struct {
    unsigned leaf, at, mask;
  } ask[] = { /* mask: which of EAX, EBX, ECX, EDX are facts */
              { 0, 0, 15 },    { 1, 0, 13 },    { 7, 0, 15 },    { 7, 1, 15 },          { 0xd, 1, 1 },
              { 0x14, 0, 15 }, { 0x19, 0, 15 }, { 0x24, 0, 15 }, { 0x80000001, 0, 15 }, { 0x80000008, 0, 2 }
  };
  unsigned r[4] = { 0 }, saved = 0;
  for (size_t i = 0; i < sizeof ask / sizeof *ask; i++) {
    if (!__get_cpuid_count(ask[i].leaf, ask[i].at, &r[0], &r[1], &r[2], &r[3])) memset(r, 0, sizeof r);
    if (ask[i].leaf == 1 && r[2] & bit_OSXSAVE) __asm__("xgetbv" : "=a"(saved) : "c"(0) : "edx");
    for (int k = 0; k < 4; k++) r[k] = ask[i].mask >> k & 1 ? r[k] : 0;
    *key = nvb_hash_mix(*key, r, sizeof r);
  }
  *key = nvb_hash_mix(*key, &saved, sizeof saved);
  return 1;
#else
  (void)key;
  return 0;
#endif
}

/* The key of the host's row: our module, where the loader looks for what it needs, and the CPU. */
static int host_key(nvb_hash *key) {
  struct {
    file_id id;
    int64_t abi, size;
  } of = { .abi = NVC_LLVM_ABI, .size = sizeof(host) };
  char path[1024];
  const char *folders = nvb_env("LD_LIBRARY_PATH");
  beside_us(path, sizeof path);
  if (!identify_file(&of.id, path)) return 0;
  *key = nvb_hash_bytes(&of, sizeof of);
  if (folders) *key = nvb_hash_mix(*key, folders, strlen(folders));
  return identify_cpu(key);
}

/* Reads the host from the disk cache, unless the library that LLVM was in has changed since. */
static int read_host(nvb_hash key) {
  void *row;
  size_t n;
  file_id id;
  if (!nvb_store_get("host", key, &row, &n)) return 0;
  int whole = n == sizeof here;
  if (whole) memcpy(&here, row, n);
  nvb_free(row);
  return whole && identify_file(&id, here.file) && !memcmp(&id, &here.id, sizeof id);
}

static void look_up_host(void) {
  keyed = host_key(&key_here);
  if (keyed && read_host(key_here)) atomic_store(&known, 1);
}
static void describe_host(void) {
  memset(&here, 0, sizeof here);
  if (llvm_module()) {
    llvm->host(&here.target);
    snprintf(here.version, sizeof here.version, "%s", llvm->version);
    snprintf(here.file, sizeof here.file, "%s", llvm->file);
    if (keyed && identify_file(&here.id, here.file)) nvb_store_put("host", key_here, &here, sizeof here);
  } else {
    snprintf(here.version, sizeof here.version, "%s", why_not);
    here.target.width = __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
  }
  atomic_store(&known, 1);
}

static const host *host_here(void) {
  pthread_once(&looked_up, look_up_host);
  if (!atomic_load(&known)) pthread_once(&asked, describe_host);
  return &here;
}

int nvc_llvm_present(void) {
  char path[1024];
  file_id id;
  beside_us(path, sizeof path);
  return identify_file(&id, path);
}

const char *nvc_llvm_version(void) { return host_here()->version; }

static int is_able(const nvc_target *t) {
  const char *f = t->features;
  return (strstr(f, "+fma") && strstr(f, "+avx2") && strstr(f, "+f16c")) ||
         (nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] this CPU lacks AVX2, FMA or F16C: the interpreter runs everything"), 0);
}
int nvc_llvm_available(void) {
  if (!llvm_module()) return nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] %s", why_not), 0;
  if (__atomic_load_n(llvm->dead, __ATOMIC_ACQUIRE))
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] switched off after a fatal error"), 0;
  return is_able(nvc_target_host());
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
  *native = host_here()->target;
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

const nvc_target *nvc_target_known(void) {
  pthread_once(&looked_up, look_up_host);
  return atomic_load(&known) ? nvc_target_host() : NULL;
}

/* ---- code */
int nvc_compile(nvc_object *out, const nvf_kernel *k, const nvf_schedule *s, const nvc_target *t, int most) {
  *out = (nvc_object){ 0 };
  if (!nvc_llvm_available()) return NVM_ERR_UNSUPPORTED;
  int status = llvm->compile(out, k, s, t, most);
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

int64_t nvc_compiled(void) { return __atomic_load_n(&compiled, __ATOMIC_RELAXED); }
