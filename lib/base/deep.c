/* Implements nvb_protect_deep: it calls a function on a separate stack. The system maps the pages of that stack when
   they are first touched, and a guard page below stops an overflow. The thread stays the same, so thread-local data
   does too. AddressSanitizer and ThreadSanitizer are notified of both switches. */
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/err.h"
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#else
#define __tsan_get_current_fiber() NULL
#define __tsan_create_fiber(flags) NULL
#define __tsan_switch_to_fiber(fiber, flags) ((void)(fiber))
#define __tsan_destroy_fiber(fiber) ((void)(fiber))
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#define __sanitizer_finish_switch_fiber(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#endif

typedef struct call {
  ucontext_t here, there;
  const void *bottom; /* bottom of the caller's stack, for AddressSanitizer only */
  size_t size;
  void *home; /* ThreadSanitizer's handle of the caller's stack */
  nvb_arena *a;
  void (*fn)(nvb_arena *a, void *arg);
  void *arg;
  int status;
} call;

/* makecontext passes only integers, so the pointer arrives in two halves */
static void enter_stack(unsigned high, unsigned low) {
  call *c = (call *)(uintptr_t)((uint64_t)high << 32 | low);
  __sanitizer_finish_switch_fiber(NULL, &c->bottom, &c->size);
  c->status = nvb_protect(c->a, c->fn, c->arg);
  __sanitizer_start_switch_fiber(NULL, c->bottom, c->size);
  __tsan_switch_to_fiber(c->home, 0);
}

static int call_there(call *c, char *memory, size_t bytes) {
  if (getcontext(&c->there)) return nvb_fail_memory();
  uint64_t at = (uint64_t)(uintptr_t)c;
  void *frames = NULL;
  c->there.uc_stack.ss_sp = memory;
  c->there.uc_stack.ss_size = bytes;
  c->there.uc_link = &c->here;
  makecontext(&c->there, (void (*)(void))enter_stack, 2, (unsigned)(at >> 32), (unsigned)at);
  void *fiber = __tsan_create_fiber(0);
  c->home = __tsan_get_current_fiber();
  __sanitizer_start_switch_fiber(&frames, memory, bytes);
  __tsan_switch_to_fiber(fiber, 0);
  int failed = swapcontext(&c->here, &c->there);
  __sanitizer_finish_switch_fiber(frames, NULL, NULL);
  __tsan_destroy_fiber(fiber);
  return failed ? nvb_fail_memory() : c->status;
}

int nvb_protect_deep(nvb_arena *a, size_t stack, void (*fn)(nvb_arena *a, void *arg), void *arg) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (stack / page + 2) * page;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) return nvb_fail_memory();
  call c = { .a = a, .fn = fn, .arg = arg };
  int status = mprotect(memory, page, PROT_NONE) ? nvb_fail_memory() : call_there(&c, memory + page, bytes - page);
  munmap(memory, bytes);
  return status;
}
