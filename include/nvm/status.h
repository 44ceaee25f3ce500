/* Status codes. Every function that is not an operation returns one; 0 is success. */
#ifndef NVM_STATUS_H
#define NVM_STATUS_H
#ifdef __cplusplus
extern "C" {
#endif

typedef enum nvm_status {
  NVM_OK = 0,
  NVM_ERR_VALUE = 1,  /* an invalid shape, axis, size or argument */
  NVM_ERR_TYPE = 2,   /* a dtype that the operation does not support */
  NVM_ERR_INDEX = 3,  /* an index out of range */
  NVM_ERR_MEMORY = 4, /* out of memory on the host or a device; nothing was changed */
  /* wrong state: no open scope, a donated array, a closed object, the value of a placeholder */
  NVM_ERR_STATE = 5,
  NVM_ERR_UNSUPPORTED = 6,  /* this build or machine cannot do it; the message says what is missing */
  NVM_ERR_DEVICE = 7,       /* a device failed (a kernel fault, a CUDA error) */
  NVM_ERR_IO = 8,           /* a file or the cache could not be read or written */
  NVM_ERR_INTERNAL = 9,     /* a bug in nvm; please report it */
  NVM_ERR_OVERFLOW = 10,    /* an integer is out of range of the dtype that it converts to */
  NVM_ERR_INTERRUPTED = 11, /* the callback of nvm_interrupt_set ended the evaluation */
  NVM_ERR_LINALG = 12       /* a matrix is singular or not definite, or an algorithm did not converge */
} nvm_status;

#ifdef __cplusplus
}
#endif
#endif
