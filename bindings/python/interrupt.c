/* Ctrl-C during an evaluation. Python's own handler only notes the signal, and asking Python about it needs the GIL,
   which another thread may hold while it waits for this evaluation. So a handler in front of Python's notes the signal
   here, where it is read without the GIL. Never runs Python code before the evaluation has ended and released
   everything. */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "nvp.h"

enum { LONG = 16 }; /* after this many questions the handler may have been replaced since the last check */
static volatile sig_atomic_t pressed;
static struct sigaction behind;
/* Of a thread, in one place, since the address of each would be asked for on its own. */
static _Thread_local struct {
  int listens, questions;
  const atomic_int *cancelled;
  enum { UNKNOWN, OTHER, MAIN } which; /* Python's handlers run only in the main thread */
} own;

static void note_signal(int number, siginfo_t *info, void *context) {
  pressed = 1;
  if (behind.sa_flags & SA_SIGINFO) behind.sa_sigaction(number, info, context);
  else behind.sa_handler(number);
}
/* Installs the handler in front of the present handler of SIGINT, if there is one. */
static void install_handler(void) {
  struct sigaction now;
  if (sigaction(SIGINT, NULL, &now) || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == note_signal)) return;
  if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  behind = now;
  now.sa_flags |= SA_SIGINFO;
  now.sa_sigaction = note_signal;
  sigaction(SIGINT, &now, NULL);
}
static int was_interrupted(void *unused) {
  (void)unused;
  if (own.cancelled && atomic_load(own.cancelled)) return 1;
  if (!own.listens) return 0;
  if (++own.questions == LONG) install_handler(); /* signal.signal may have installed Python's handler again */
  return pressed;
}

static int is_main(void) {
  if (own.which == UNKNOWN) own.which = syscall(SYS_gettid) == getpid() ? MAIN : OTHER;
  return own.which == MAIN;
}
static void reset_in_child(void) { own.which = UNKNOWN; } /* the thread that forks is the child's main thread */

void nvp_listen_first(void) {
  static int watched;
  if (!watched++) pthread_atfork(NULL, NULL, reset_in_child);
  if (is_main()) install_handler();
  nvm_interrupt_set(was_interrupted, NULL);
}
void nvp_listen(int on) {
  own.listens = on && is_main();
  own.questions = 0;
}
void nvp_listen_to(const atomic_int *flag) { own.cancelled = flag; }
int nvp_again(int status) {
  if (status != NVM_ERR_INTERRUPTED) return 0;
  pressed = 0;
  return !PyErr_CheckSignals();
}
