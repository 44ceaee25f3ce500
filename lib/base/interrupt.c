/* Implements interrupts: the process has one callback, and each thread remembers whether the callback has asked it
   to stop. */
#include "base/interrupt.h"
#include <stdatomic.h>
#include <stddef.h>
#include "base/err.h"

typedef int asking(void *user);
static _Atomic(asking *) whom;
static _Atomic(void *) with;

static _Thread_local struct { int depth, held, interrupted; } here;

void nvb_interrupt_set(int (*asked)(void *user), void *user) {
  atomic_store(&whom, NULL);
  atomic_store(&with, user);
  atomic_store(&whom, asked);
}

void nvb_interrupt_enter(void) {
  if (!here.depth++) here.interrupted = 0;
}
void nvb_interrupt_leave(void) { here.depth--; }
void nvb_interrupt_hold(void) { here.held++; }
void nvb_interrupt_let(void) { here.held--; }

static asking *who_is_asked(void) { return here.depth ? atomic_load_explicit(&whom, memory_order_acquire) : NULL; }

int nvb_interrupt_asks(void) { return !here.held && who_is_asked(); }

int nvb_interrupt_comes(void) {
  asking *ask = who_is_asked();
  if (ask && !here.interrupted) here.interrupted = ask(atomic_load_explicit(&with, memory_order_relaxed)) != 0;
  return ask && here.interrupted;
}

int nvb_interrupted(void) {
  return !here.held && nvb_interrupt_comes() ? nvb_fail(NVM_ERR_INTERRUPTED, "[eval] interrupted") : NVM_OK;
}
