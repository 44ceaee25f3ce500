/* Ctrl-C while nvm evaluates. Python's handler notes the signal and runs Python code later, in the main thread, between
   bytecodes; to ask Python takes the interpreter's lock, which another thread may hold while it waits for this one's
   evaluation. So a handler in front of Python's notes the signal here, where it is read without the lock, and Python's
   code runs when the evaluation has ended and holds nothing any more. */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "nvp.h"

enum { LONG = 16 }; /* questions; who asks so many may have been looked away from since the last time */
static volatile sig_atomic_t pressed;
static struct sigaction behind;
static _Thread_local int listens, questions;

static void note(int number, siginfo_t *info, void *context) {
  pressed = 1;
  if (behind.sa_flags & SA_SIGINFO) behind.sa_sigaction(number, info, context);
  else behind.sa_handler(number);
}
/* Puts it in front of what handles SIGINT, if anything does. */
static void stand_in_front(void) {
  struct sigaction now;
  if (sigaction(SIGINT, NULL, &now) || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == note)) return;
  if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  behind = now;
  now.sa_flags |= SA_SIGINFO;
  now.sa_sigaction = note;
  sigaction(SIGINT, &now, NULL);
}
static int asked(void *unused) {
  (void)unused;
  if (!listens) return 0;
  if (++questions == LONG) stand_in_front(); /* signal.signal may have put Python's in front again */
  return pressed;
}

void nvp_listen_first(void) {
  if (syscall(SYS_gettid) == getpid()) stand_in_front();
  nvm_interrupt_set(asked, NULL);
}
void nvp_listen(int on) {
  listens = on && syscall(SYS_gettid) == getpid(); /* Python's handlers run in the main thread alone */
  questions = 0;
}
int nvp_again(int status) {
  if (status != NVM_ERR_INTERRUPTED) return 0;
  pressed = 0;
  return !PyErr_CheckSignals();
}
