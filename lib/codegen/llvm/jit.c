/* The boundary of libnvm_llvm.so: target machine, passes and object code. Decides the passes; never emits IR, and never
   loads code (load.c). LLVM's fatal errors unwind to the call that was running; afterwards the module is dead, and
   LLVM's memory is leaked. */
#include <dlfcn.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/err.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/settings.h"
#include "codegen/llvm/emit.h"
#include "codegen/llvm/module.h"

/* Fragments are already merged and folded, so these few passes give the speed of default<O3> in an eighth of its
   time. Baseline code gets those without which it would not fit in memory. */
static const char passes[] = "function(mem2reg,early-cse,loop-mssa(licm))",
                  few_passes[] = "function(mem2reg,early-cse)";

/* ---- fatal errors */
static nvb_lock lock = NVB_LOCK(LLVM_ERRORS);
NVB_HOLD_AT_FORK(lock);
static int inside, dead;
static _Thread_local jmp_buf *way_out;
static _Thread_local char reason[512];

static void note_fatal(const char *why) {
  if (!way_out) return; /* not from a call of ours: LLVM continues as it would */
  snprintf(reason, sizeof reason, "%s", why);
  longjmp(*way_out, 1);
}

static void enter_llvm(jmp_buf *at) {
  nvb_lock_take(&lock);
  if (inside++ == 0) LLVMInstallFatalErrorHandler(note_fatal);
  nvb_lock_give(&lock);
  way_out = at;
}

static void leave_llvm(void) {
  way_out = NULL;
  nvb_lock_take(&lock);
  if (--inside == 0) LLVMResetFatalErrorHandler();
  nvb_lock_give(&lock);
}

static int note_death(void) {
  leave_llvm();
  __atomic_store_n(&dead, 1, __ATOMIC_RELEASE);
  return nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] fatal error: %s", reason);
}

/* Runs work(arg) with LLVM's fatal errors caught. */
static int run_caught(int (*work)(void *), void *arg) {
  jmp_buf at;
  if (__atomic_load_n(&dead, __ATOMIC_ACQUIRE))
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] switched off after a fatal error");
  enter_llvm(&at);
  if (setjmp(at)) return note_death();
  int status = work(arg);
  leave_llvm();
  return status;
}

static int fail_with(LLVMErrorRef err, const char *what) {
  if (!err) return NVM_OK;
  char *m = LLVMGetErrorMessage(err);
  int status = nvb_fail(NVM_ERR_INTERNAL, "[llvm] %s: %s", what, m);
  LLVMDisposeErrorMessage(m);
  return status;
}

static int fail_text(char *m, const char *what) {
  int status = nvb_fail(NVM_ERR_INTERNAL, "[llvm] %s: %s", what, m ? m : "?");
  if (m) LLVMDisposeMessage(m);
  return status;
}

/* ---- the machine */
static void init_llvm(void) {
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
}

static void init_once(void) {
  static pthread_once_t done = PTHREAD_ONCE_INIT;
  pthread_once(&done, init_llvm);
}

static void describe_host(nvc_target *t) {
  char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
  snprintf(t->cpu, sizeof t->cpu, "%s", cpu);
  snprintf(t->features, sizeof t->features, "%s", features);
  if (strlen(features) >= sizeof t->features) *strrchr(t->features, ',') = 0; /* cuts at a whole feature */
  t->width = strstr(t->features, "+avx512f") ? 64 : strstr(t->features, "+avx2") ? 32 : 16;
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
}

static LLVMTargetMachineRef machine_of(const nvc_target *t, LLVMCodeGenOptLevel level) {
  char *triple = LLVMGetDefaultTargetTriple(), *err = NULL;
  LLVMTargetRef target;
  LLVMTargetMachineRef tm = NULL;
  init_once();
  if (LLVMGetTargetFromTriple(triple, &target, &err)) fail_text(err, triple);
  else tm = LLVMCreateTargetMachine(target, triple, t->cpu, t->features, level, LLVMRelocPIC, LLVMCodeModelSmall);
  if (!tm && !err) nvb_fail(NVM_ERR_UNSUPPORTED, "[llvm] no target machine for %s", t->cpu);
  LLVMDisposeMessage(triple);
  return tm;
}

/* ---- compiling */
typedef struct llvm_job {
  nvc_object *out;
  const nvf_kernel *k;
  const nvf_schedule *s;
  const nvc_target *t;
  int most;
  LLVMContextRef c;
  LLVMModuleRef m;
  LLVMBuilderRef b;
  LLVMTargetMachineRef tm;
} llvm_job;

static void emit_module(nvb_arena *a, void *arg) {
  llvm_job *j = arg;
  j->out->scratch = nvcl_emit_kernel(a, j->c, j->m, j->b, j->k, j->s, j->t, j->out->baseline);
}

static void dump_ir(llvm_job *j) {
  if (!nvb_has(NVB_DUMP, "llvm")) return;
  char *text = LLVMPrintModuleToString(j->m);
  nvb_dump("llvm", j->k->title, text);
  LLVMDisposeMessage(text);
}

static void dump_asm(llvm_job *j) {
  LLVMMemoryBufferRef text;
  char *err = NULL;
  if (!nvb_has(NVB_DUMP, "asm")) return;
  if (LLVMTargetMachineEmitToMemoryBuffer(j->tm, j->m, LLVMAssemblyFile, &err, &text)) {
    LLVMDisposeMessage(err);
    return;
  }
  nvb_dump("asm", j->k->title, LLVMGetBufferStart(text));
  LLVMDisposeMemoryBuffer(text);
}

static int optimise_module(llvm_job *j) {
  char *err = NULL;
  if (LLVMVerifyModule(j->m, LLVMReturnStatusAction, &err)) return fail_text(err, "the module does not verify");
  LLVMDisposeMessage(err);
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  LLVMErrorRef bad = LLVMRunPasses(j->m, j->out->baseline ? few_passes : passes, j->tm, o);
  LLVMDisposePassBuilderOptions(o);
  return fail_with(bad, "passes");
}

static int assemble_object(llvm_job *j) {
  LLVMMemoryBufferRef object;
  char *err = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(j->tm, j->m, LLVMObjectFile, &err, &object))
    return fail_text(err, "object code");
  j->out->n = LLVMGetBufferSize(object);
  j->out->bytes = nvb_alloc(j->out->n);
  if (j->out->bytes) memcpy(j->out->bytes, LLVMGetBufferStart(object), j->out->n);
  LLVMDisposeMemoryBuffer(object);
  return j->out->bytes ? NVM_OK : nvb_fail_memory();
}

static int count_instructions(LLVMModuleRef m) {
  int n = 0;
  for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) n++;
  return n;
}

static double thread_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Makes the target machine and a module with the kernel in it. */
static int emit_kernel(llvm_job *j) {
  nvb_arena *a = nvb_arena_new();
  if (!a) return nvb_fail_memory();
  j->tm = machine_of(j->t, j->out->baseline ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault);
  j->m = LLVMModuleCreateWithNameInContext("nvm", j->c);
  int status = NVM_ERR_UNSUPPORTED;
  if (j->tm) {
    char *triple = LLVMGetTargetMachineTriple(j->tm);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(j->tm);
    LLVMSetTarget(j->m, triple);
    LLVMSetModuleDataLayout(j->m, layout);
    LLVMDisposeTargetData(layout);
    LLVMDisposeMessage(triple);
    status = nvb_protect(a, emit_module, j);
    j->out->instructions = count_instructions(j->m);
  }
  nvb_arena_free(a);
  return status;
}

static void free_module(llvm_job *j) {
  LLVMDisposeModule(j->m);
  if (j->tm) LLVMDisposeTargetMachine(j->tm);
}

static int build_object(llvm_job *j) {
  double start = thread_ms();
  int status = emit_kernel(j);
  if (!status && j->most && j->out->instructions > j->most) {
    free_module(j);
    j->out->baseline = j->out->instructions;
    status = emit_kernel(j);
  }
  double emitted = thread_ms(), optimised = emitted;
  if (!status) {
    status = optimise_module(j);
    optimised = thread_ms();
  }
  if (!status) {
    dump_ir(j);
    dump_asm(j);
    status = assemble_object(j);
  }
  nvb_log(2, "[llvm] %s: IR %.2f ms, passes %.2f ms, code %.2f ms, %zu bytes of %d instructions%s", j->k->title,
          emitted - start, optimised - emitted, thread_ms() - optimised, j->out->n, j->out->instructions,
          j->out->baseline ? ", baseline" : "");
  free_module(j);
  return status;
}

static int compile_job(void *arg) {
  llvm_job *j = arg;
  j->c = LLVMContextCreate();
  j->b = LLVMCreateBuilderInContext(j->c);
  int status = build_object(j);
  LLVMDisposeBuilder(j->b);
  LLVMContextDispose(j->c);
  return status;
}

static int compile_kernel(nvc_object *out, const nvf_kernel *k, const nvf_schedule *s, const nvc_target *t, int most) {
  llvm_job j = { .out = out, .k = k, .s = s, .t = t, .most = most };
  *out = (nvc_object){ 0 };
  return run_caught(compile_job, &j);
}

__attribute__((visibility("default"))) const nvc_llvm *nvm_llvm_open(void);
const nvc_llvm *nvm_llvm_open(void) {
  static char version[32];
  static nvc_llvm table = { NVC_LLVM_ABI, version, "", describe_host, compile_kernel, &dead };
  unsigned major, minor, patch;
  Dl_info info;
  LLVMGetVersion(&major, &minor, &patch);
  snprintf(version, sizeof version, "%u.%u.%u", major, minor, patch);
  if (major != LLVM_VERSION_MAJOR) return NULL; /* the emitter was tested with one major version */
  if (dladdr((void *)(uintptr_t)LLVMGetVersion, &info) && info.dli_fname) table.file = info.dli_fname;
  init_once();
  return &table;
}
