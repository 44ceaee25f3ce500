/* Error reporting: one status and one message per thread, set once, where the fault is detected. Nothing here prints
   or exits. */
#ifndef NVM_BASE_ERR_H
#define NVM_BASE_ERR_H
#include <stdarg.h>
#include "nvm/status.h"

/* Sets the calling thread's message (truncated at 1,023 bytes) and returns `status`. The message starts with the
   operation in brackets: "[matmul] inner dimensions differ: (3, 4) @ (5, 6)". */
int nvb_fail(int status, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));
int nvb_vfail(int status, const char *fmt, va_list ap) __attribute__((cold, format(printf, 2, 0)));
__attribute__((cold)) int nvb_fail_memory(void); /* NVM_ERR_MEMORY with its fixed message; allocates nothing */
int nvb_status(void);          /* status of the thread's last failure, NVM_OK if none since nvb_clear */
const char *nvb_message(void); /* its message; "" if none; valid until the thread's next failure */
void nvb_clear(void);
/* For code whose failures are handled inside the library: nvb_failure_keep saves the thread's last failure before,
   and nvb_failure_put_back restores it afterwards, so that the caller never sees a failure that was handled. */
typedef struct nvb_failure { int status; char message[1024]; } nvb_failure;
void nvb_failure_keep(nvb_failure *f);
void nvb_failure_put_back(const nvb_failure *f);
#endif
