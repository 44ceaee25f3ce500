/* Whether what a thread evaluates is to end early, as somebody outside says who is asked: at allocations of planning,
   between steps and blocks of a run, in waits. Nobody else is asked than from the thread that evaluates. */
#ifndef NVM_BASE_INTERRUPT_H
#define NVM_BASE_INTERRUPT_H

/* Of the process; NULL: nobody is asked. asked may be called from any thread that evaluates. */
void nvb_interrupt_set(int (*asked)(void *user), void *user);
/* Evaluations nest; outside of them nobody is asked. */
void nvb_interrupt_enter(void);
void nvb_interrupt_leave(void);
/* NVM_OK, or NVM_ERR_INTERRUPTED with its message: from the first yes on until the outermost evaluation has ended, so
   that what takes it for another failure comes upon it again. */
int nvb_interrupted(void);
/* Between these it is NVM_OK: what is measured or remembered meanwhile must be whole. */
void nvb_interrupt_hold(void);
void nvb_interrupt_let(void);
/* Will it be interrupted when that is let? What may end early by itself does then. Sets no failure. */
int nvb_interrupt_comes(void);
/* May this thread be interrupted in what it is about to wait for? */
int nvb_interrupt_asks(void);
#endif
