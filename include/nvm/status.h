/* Status codes of nvm. Every call that is not an operation returns one; 0 is success. */
#ifndef NVM_STATUS_H
#define NVM_STATUS_H
#ifdef __cplusplus
extern "C" {
#endif

typedef enum nvm_status {
  NVM_OK = 0,
  NVM_ERR_VALUE = 1,       /* a shape, axis, size or argument that cannot be */
  NVM_ERR_TYPE = 2,        /* a dtype that the operation does not take */
  NVM_ERR_INDEX = 3,       /* an index out of range */
  NVM_ERR_MEMORY = 4,      /* out of memory (host or device); nothing was changed */
  NVM_ERR_STATE = 5,       /* misuse: no open scope, a donated or closed thing, a value asked of a placeholder */
  NVM_ERR_UNSUPPORTED = 6, /* this build or machine cannot do it; the message says what is missing */
  NVM_ERR_DEVICE = 7,      /* a device failed */
  NVM_ERR_IO = 8,          /* a file or the cache could not be read or written */
  NVM_ERR_INTERNAL = 9,    /* a fault of nvm itself; please report it */
  NVM_ERR_OVERFLOW = 10,   /* an integer that the dtype which it takes does not hold */
  NVM_ERR_INTERRUPTED = 11 /* who was asked (nvm_interrupt_set) wanted the evaluation to end */
} nvm_status;

#ifdef __cplusplus
}
#endif
#endif
