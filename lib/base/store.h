/* The disk cache: one SQLite file per user, rows of (kind, key, blob) whose content hash is checked at every read.
   Whatever is wrong with it (absent, damaged, locked, full, foreign-owned) reads as a miss and never as a wrong
   result. */
#ifndef NVM_BASE_STORE_H
#define NVM_BASE_STORE_H
#include "base/hash.h"

/* 1 and *blob (nvb_free it) on a hit, else 0. kind is a short word: "code", "cubin", "tune", "trial". */
int nvb_store_get(const char *kind, nvb_hash key, void **blob, size_t *bytes);
int nvb_store_put(const char *kind, nvb_hash key, const void *blob, size_t bytes); /* 1: it is there; 0: it is not */
void nvb_store_drop(const char *kind, nvb_hash key);
/* Reads a row and writes it again with nobody in between. `change` is given its blob, NULL where there is none, and
   writes at most NVB_STORE_SMALL bytes to `out`; how many, or 0: the row goes. It may be called twice, and must not
   come back here. 1: done; 0: it could not be. */
enum { NVB_STORE_SMALL = 2048 };
typedef size_t nvb_store_changer(void *arg, const char *blob, size_t bytes, char *out);
int nvb_store_change(const char *kind, nvb_hash key, nvb_store_changer *change, void *arg);
/* Copies of the blobs of a kind, the one used last first, as they lie there: who reads them asks again by key before
   believing them. *at is one allocation (nvb_free it); their number, 0 with *at NULL if there is nothing, -1 with
   *at NULL where a store cannot be asked: someone has it locked. */
typedef struct nvb_blob { const void *p; size_t bytes; } nvb_blob;
int nvb_store_all(const char *kind, nvb_blob **at);
int nvb_store_clear(const char *kind); /* drops them; how many, -1 where a store did not let that happen */
/* 1 and the path; 0 and why there is none: "off", "refused: ..." */
int nvb_store_where(char *text, size_t size);
void nvb_store_close(void); /* for tests and fork; opens again by itself */
#endif
