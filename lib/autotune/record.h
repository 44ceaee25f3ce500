/* Tuning records: what measuring found, kept for later processes. There is one record for each key of a step, a row of
   kind "tune" in the store that holds it as JSON. A row that is damaged or of another version counts as missing. */
#ifndef NVM_AUTOTUNE_RECORD_H
#define NVM_AUTOTUNE_RECORD_H
#include "base/hash.h"
#include "base/text.h"

enum { NVT_VERSION = 3 }; /* version of the records and of the meaning of configs; part of every key */
typedef struct nvt_record {
  nvb_hash key;
  char device[128];     /* the device that it was measured on, readable */
  char what[160];       /* the step, readable */
  char size[96];        /* its size classes */
  char config[224];     /* the best config: "block=4096 chunks=8"; "": the rules' choice */
  char description[64]; /* the solver's description of the config; "": none */
  double ns, model_ns;  /* medians of the config and of the rules' choice */
  int tried;            /* number of candidates that were timed */
  int complete;         /* 0: the search ended early; a session with budget left continues it */
  int64_t date;         /* seconds since 1970 */
} nvt_record;

int nvt_record_find(nvt_record *out, nvb_hash key); /* looks in memory, then in the store; 0: there is none */
/* Stores a record in memory and on disk, unless it is incomplete and the store has a better one. 0: the store did not
   accept it. */
int nvt_record_keep(const nvt_record *r);
void nvt_record_again(void); /* from now on, keys without a complete record are looked up in the store again */

/* Lists the records of the store and those only in memory, and returns their number. Throws NVM_ERR_IO if the store
   cannot be read. */
int nvt_record_all(nvb_arena *a, nvt_record **out);
void nvt_record_print(nvb_text *t, const nvt_record *r); /* as one line of JSON */
/* Reads one JSON object. Returns 1 and sets *at behind it; 0 if it is no record of this version. */
int nvt_record_read(nvt_record *out, const char **at, const char *end);
/* Stores the records of a JSON text and returns their number. -1 with a message: the text is not valid, and none was
   stored; or the store did not accept all of them. */
int nvt_record_import(const char *json, size_t n);
/* Removes all records and the crash ledger and returns the number of records. -1 with a message: the store could not be
   written, and all records stay. */
int nvt_record_clear(void);
int64_t nvt_records_found(void); /* lookups of this process that found a record */
#endif
