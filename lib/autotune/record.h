/* What measuring found, kept for later processes: one record per step's key, a row of kind "tune" in the store that
   holds the record as JSON. What is damaged or of another version is a miss. */
#ifndef NVM_AUTOTUNE_RECORD_H
#define NVM_AUTOTUNE_RECORD_H
#include "base/hash.h"
#include "base/text.h"

enum { NVT_VERSION = 3 }; /* of the records and of what the choices mean: part of every key */
typedef struct nvt_record {
  nvb_hash key;
  char device[128];     /* what it was measured on, in words */
  char what[160];       /* the step, in words */
  char size[96];        /* its size classes */
  char config[224];     /* "block=4096 chunks=8"; "" is what the rules say */
  char description[64]; /* the choice for people, where it has words of its own; else "" */
  double ns, model_ns;  /* medians: of the choice, of what the rules say */
  int tried;            /* candidates that were timed */
  int complete;         /* 1; 0: a session's budget ended the search, and one that has some goes on with it */
  int64_t date;         /* seconds since 1970 */
} nvt_record;

int nvt_record_find(nvt_record *out, nvb_hash key); /* in memory, else in the store; 0: there is none */
/* In both, but for an incomplete one where another process has found more. 0: the store has not taken it. */
int nvt_record_keep(const nvt_record *r);
void nvt_record_again(void); /* keys that had none, or an incomplete one, are looked for in the store again */

/* Those of the store, and those that memory alone has; their number. Throws NVM_ERR_IO where the store cannot be
   asked. */
int nvt_record_all(nvb_arena *a, nvt_record **out);
void nvt_record_print(nvb_text *t, const nvt_record *r); /* JSON, one line */
/* One object, or an array of them; 1 and *at behind it, or 0 where it is no record (of this version). */
int nvt_record_read(nvt_record *out, const char **at, const char *end);
/* How many were taken. -1 with a message: no such text, and nothing was; or there is a store, and it took not all of
   them. */
int nvt_record_import(const char *json, size_t n);
/* How many there were, marks of trials going with them; -1 with a message: the store did not let that happen, and they
   stay. */
int nvt_record_clear(void);
int64_t nvt_records_found(void); /* look-ups that found one, in this process */
#endif
