/* Tuning: schedules are chosen by rules, or by measuring, which is remembered for each kind of device (tuning.md).
   What is chosen changes time, and how the sums of matrix products are rounded; nothing else. */
#ifndef NVM_TUNE_H
#define NVM_TUNE_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* How far it has come: step `step` of `steps` of one program, `part` of it (0 to 1). `what`: its operations. */
typedef struct nvm_tune_progress {
  int step, steps;
  const char *what;
  double part;
} nvm_tune_progress;
typedef struct nvm_tune_options {
  unsigned version;                                         /* NVM_TUNE_OPTIONS_VERSION */
  double seconds;                                           /* for all that is measured; 0: 60 */
  int cold;                                                 /* 1: caches are emptied before each sample */
  void (*progress)(void *user, const nvm_tune_progress *p); /* in the thread that evaluates; NULL: none.
                                 Must not call nvm, nor wait for a thread that does. */
  void *user;
} nvm_tune_options;
#define NVM_TUNE_OPTIONS_VERSION 1
#define NVM_TUNE_OPTIONS_INIT { NVM_TUNE_OPTIONS_VERSION, 0, 0, 0, 0 }
NVM_API int nvm_tune_options_init(nvm_tune_options *o, unsigned version);
/* Until nvm_tune_end what is evaluated, in any thread, is planned anew, and its steps that have no record are measured
   on the values at hand. Sessions nest; a thread ends its own. o NULL: defaults. */
NVM_API int nvm_tune_begin(const nvm_tune_options *o);
NVM_API int nvm_tune_end(void);

/* ---- records */
NVM_API int nvm_tune_list(char **text);   /* for people, a line or two each; nvm_free */
NVM_API int nvm_tune_export(char **json); /* nvm_free */
/* All of them or none, then NVM_ERR_VALUE. NVM_ERR_IO: the disk cache is there but did not take all of them, as when
   another process has it locked; this process has them. taken may be NULL. */
NVM_API int nvm_tune_import(int *taken, const char *json);
/* NVM_ERR_IO: the disk cache is locked, and they stay. dropped may be NULL. */
NVM_API int nvm_tune_clear(int *dropped);
/* Where they are kept, nvm_free: kept 1: the file; 0: why this process alone has them ("off", "refused: ..."). */
NVM_API int nvm_tune_where(char **text, int *kept);

typedef struct nvm_tune_counters {
  unsigned version;               /* NVM_TUNE_COUNTERS_VERSION */
  int64_t measured, timed, found; /* of this process: steps measured, candidates timed; steps whose record was found */
} nvm_tune_counters;
#define NVM_TUNE_COUNTERS_VERSION 1
NVM_API int nvm_tune_counters_get(nvm_tune_counters *out, unsigned version);

#ifdef __cplusplus
}
#endif
#endif
