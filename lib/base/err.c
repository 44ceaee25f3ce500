/* Stores the last failure of each thread, in fixed storage, so that running out of memory can be reported too. */
#include "base/err.h"
#include <stdio.h>
#include <string.h>

static _Thread_local nvb_failure last;

int nvb_vfail(int status, const char *fmt, va_list ap) {
  char text[sizeof last.message]; /* the arguments may point into the old message */
  if (vsnprintf(text, sizeof text, fmt, ap) < 0) text[0] = 0;
  strcpy(last.message, text);
  return last.status = status;
}

int nvb_fail(int status, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  nvb_vfail(status, fmt, ap);
  va_end(ap);
  return status;
}

int nvb_fail_memory(void) {
  strcpy(last.message, "[memory] out of memory");
  return last.status = NVM_ERR_MEMORY;
}

int nvb_status(void) { return last.status; }
const char *nvb_message(void) { return last.message; }

void nvb_clear(void) {
  last.status = NVM_OK;
  last.message[0] = 0;
}

void nvb_failure_keep(nvb_failure *f) {
  if ((f->status = last.status)) strcpy(f->message, last.message);
}

void nvb_failure_put_back(const nvb_failure *f) {
  last.status = f->status;
  strcpy(last.message, f->status ? f->message : "");
}
