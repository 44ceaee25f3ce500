/* Decides whether an evaluation ends early: a callback of the process is polled at allocations of planning, between
   steps and blocks of a run, and during waits. It is only ever called from the thread that evaluates. */
#ifndef NVM_BASE_INTERRUPT_H
#define NVM_BASE_INTERRUPT_H

/* Sets the callback of the process; NULL removes it. `fn` may be called from any thread that evaluates. */
void nvb_interrupt_set(int (*fn)(void *user), void *user);
/* Bracket an evaluation; brackets nest. Outside of them the callback is not polled. */
void nvb_interrupt_enter(void);
void nvb_interrupt_leave(void);
/* Polls: returns NVM_OK, or NVM_ERR_INTERRUPTED with its message. After the callback has asked to stop, every call
   fails until the outermost evaluation ends, so that code which handles other failures cannot swallow the interrupt. */
int nvb_interrupted(void);
/* Between these two calls interrupts are masked: nvb_interrupted returns NVM_OK. They guard work that must be
   completed, such as a measurement or an entry of a cache. */
void nvb_interrupt_mask(void);
void nvb_interrupt_unmask(void);
/* Whether nvb_interrupted would fail if interrupts were not masked; work that may stop early by itself polls this. Sets
   no failure. */
int nvb_interrupt_pending(void);
/* Whether this thread may be interrupted while it waits. */
int nvb_interrupt_enabled(void);
#endif
