/* Tuning: schedules are chosen by rules, or by measuring; measurements are kept as records for each kind of device
   (tuning.md). Tuning changes the run time and the rounding of the sums in matrix products, and nothing else. */
#ifndef NVM_TUNE_H
#define NVM_TUNE_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Progress within one program: the session is at step `step` (from 0) of `steps`, of which `part` (0 to 1) is done.
   `what` names the step's operations. */
typedef struct nvm_tune_progress {
  int step, steps;
  const char *what;
  double part;
} nvm_tune_progress;
typedef struct nvm_tune_options {
  unsigned version; /* NVM_TUNE_OPTIONS_VERSION */
  double seconds;   /* time budget of the session in seconds; 0: 60 */
  int cold;         /* 1: caches are flushed before each sample */
  /* called in the thread that evaluates; NULL: none. It must not call nvm, nor wait for a thread that does. */
  void (*progress)(void *user, const nvm_tune_progress *p);
  void *user;
} nvm_tune_options;
#define NVM_TUNE_OPTIONS_VERSION 1
#define NVM_TUNE_OPTIONS_INIT { NVM_TUNE_OPTIONS_VERSION, 0, 0, 0, 0 }
/* Fills in the defaults. version: NVM_TUNE_OPTIONS_VERSION, else NVM_ERR_VALUE. Returns a status. */
NVM_API int nvm_tune_options_init(nvm_tune_options *o, unsigned version);
/* Begins a session: until nvm_tune_end, every thread's evaluations are planned anew, and their steps without a record
   are measured on the actual values. Sessions nest, and the thread that began one ends it. o NULL: defaults. Both
   return a status. */
NVM_API int nvm_tune_begin(const nvm_tune_options *o);
NVM_API int nvm_tune_end(void);

/* ---- records. The functions return a status. */
NVM_API int nvm_tune_list(char **text);   /* text for people; the caller frees *text with nvm_free */
NVM_API int nvm_tune_export(char **json); /* the caller frees *json with nvm_free */
/* Adds the records of `json`: all of them, or none and NVM_ERR_VALUE. *taken, which may be NULL, becomes their number.
   NVM_ERR_IO: the disk cache did not store all of them (another process has it locked, for example), but this process
   uses them. */
NVM_API int nvm_tune_import(int *taken, const char *json);
/* Deletes all records; *dropped, which may be NULL, becomes their number. NVM_ERR_IO: the disk cache is locked, and the
   records stay. */
NVM_API int nvm_tune_clear(int *dropped);
/* Says where records are kept: *kept 1 and the path of the file, or *kept 0 and why only this process has them ("off",
   "refused: ..."). The caller frees *text with nvm_free. */
NVM_API int nvm_tune_where(char **text, int *kept);

typedef struct nvm_tune_counters {
  unsigned version; /* NVM_TUNE_COUNTERS_VERSION */
  /* counts of this process: steps measured; candidates timed; steps whose record was found */
  int64_t measured, timed, found;
} nvm_tune_counters;
#define NVM_TUNE_COUNTERS_VERSION 1
/* Reads the counters. version: NVM_TUNE_COUNTERS_VERSION, else NVM_ERR_VALUE. Returns a status. */
NVM_API int nvm_tune_counters_get(nvm_tune_counters *out, unsigned version);

#ifdef __cplusplus
}
#endif
#endif
