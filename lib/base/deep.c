/* Calls on a stack of their own. The pages are the system's, taken as the stack grows, with one below that stops it. The thread
   stays the same, and with it all that is the thread's. */
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/err.h"

typedef struct call {
  ucontext_t here, there;
  nvb_arena *a;
  void (*fn)(nvb_arena *a, void *arg);
  void *arg;
  int status;
} call;

static void enter(unsigned high, unsigned low) { /* what makecontext passes on are integers */
  call *c = (call *)(uintptr_t)((uint64_t)high << 32 | low);
  c->status = nvb_protect(c->a, c->fn, c->arg);
}

int nvb_protect_deep(nvb_arena *a, size_t stack, void (*fn)(nvb_arena *a, void *arg), void *arg) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (stack / page + 2) * page;
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED)
    return nvb_fail_memory();
  call c = { .a = a, .fn = fn, .arg = arg, .status = NVM_ERR_INTERNAL };
  uint64_t at = (uint64_t)(uintptr_t)&c;
  if (!mprotect(memory, page, PROT_NONE) && !getcontext(&c.there)) {
    c.there.uc_stack.ss_sp = memory;
    c.there.uc_stack.ss_size = bytes;
    c.there.uc_link = &c.here;
    makecontext(&c.there, (void (*)(void))enter, 2, (unsigned)(at >> 32), (unsigned)at);
    if (swapcontext(&c.here, &c.there))
      c.status = nvb_fail_memory();
  } else
    c.status = nvb_fail_memory();
  munmap(memory, bytes);
  return c.status;
}
