/* What every emulated call begins with: one lock, counted, may be told to fail; and what it refuses. */
#ifndef NVM_EMU_CALL_H
#define NVM_EMU_CALL_H
#include <pthread.h>
#include "dispatch/cuda/api.h"
#include "world.h"

#define DECLARE(name, args) int name args;
NVD_RUNTIME(DECLARE)
NVD_DRIVER(DECLARE)
#undef DECLARE

pthread_mutex_t *call_lock(void);
void call_unlock(pthread_mutex_t **held);
int call_begin(const char *name);   /* the error that this call returns; 0: none */
int call_note(int code);            /* for cudaGetLastError */
int current(void);                  /* the thread's device */
extern int context_of[MAX_DEVICES]; /* contexts are addresses of these */
int unsafe(void);                   /* an error if a capture forbids what may wait; it is invalid then */
int unsafe_on(stream *s);
int ready(stream *s); /* may work be put on s? */

#define SAFE(x) do { int e_ = x; if (e_) return call_note(e_); } while (0)
#define NEED(x, error) do { if (!(x)) return call_note(error); } while (0)
#define CALL \
  pthread_mutex_t *held __attribute__((cleanup(call_unlock), unused)) = call_lock(); \
  SAFE(call_begin(__func__))
#define READY(s) SAFE(ready(s))
#define STREAM(s, handle) stream *s = stream_find(handle, current()); NEED(s, INVALID_HANDLE)
#endif
