/* The boundary of libnvm_llvm.so, the only module that links to LLVM: one table of functions, found by dlsym. It
   catches LLVM's fatal errors; after one it is marked dead, and kernels go to the interpreter. */
#ifndef NVM_CODEGEN_LLVM_MODULE_H
#define NVM_CODEGEN_LLVM_MODULE_H
#include "codegen/codegen.h"
#define NVC_LLVM_ABI 3
typedef struct nvc_llvm {
  int abi;
  const char *version;
  const char *file;            /* the library that LLVM is in; "" if that is not known */
  void (*host)(nvc_target *t); /* fills in this CPU with all its features */
  int (*compile)(nvc_object *out, const nvf_kernel *k, const nvf_schedule *s, const nvc_target *t,
                 int most); /* as nvc_compile; any thread */
  const int *dead;          /* not 0 after a fatal error: every call fails from then on */
} nvc_llvm;
typedef const nvc_llvm *(*nvc_llvm_open)(void); /* symbol "nvm_llvm_open" */
#endif
