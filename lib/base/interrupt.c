/* Implements interrupts: the process has one callback, and each thread remembers whether the callback has asked it
   to stop. */
#include "base/interrupt.h"
#include <stdatomic.h>
#include <stddef.h>
#include "base/err.h"

typedef int interrupt_fn(void *user);
static _Atomic(interrupt_fn *) callback;
static _Atomic(void *) callback_arg;

static _Thread_local struct { int depth, masked, interrupted; } thread_state;

void nvb_interrupt_set(int (*fn)(void *user), void *user) {
  atomic_store(&callback, NULL);
  atomic_store(&callback_arg, user);
  atomic_store(&callback, fn);
}

void nvb_interrupt_enter(void) {
  if (!thread_state.depth++) thread_state.interrupted = 0;
}
void nvb_interrupt_leave(void) { thread_state.depth--; }
void nvb_interrupt_mask(void) { thread_state.masked++; }
void nvb_interrupt_unmask(void) { thread_state.masked--; }

static interrupt_fn *active_callback(void) {
  return thread_state.depth ? atomic_load_explicit(&callback, memory_order_acquire) : NULL;
}

int nvb_interrupt_enabled(void) { return !thread_state.masked && active_callback(); }

int nvb_interrupt_pending(void) {
  interrupt_fn *f = active_callback();
  if (f && !thread_state.interrupted)
    thread_state.interrupted = f(atomic_load_explicit(&callback_arg, memory_order_relaxed)) != 0;
  return f && thread_state.interrupted;
}

int nvb_interrupted(void) {
  return !thread_state.masked && nvb_interrupt_pending() ? nvb_fail(NVM_ERR_INTERRUPTED, "[eval] interrupted") : NVM_OK;
}
