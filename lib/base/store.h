/* The disk cache: one SQLite file per user, rows of (kind, key, blob) whose content hash is checked at every read.
   Whatever is wrong with it (absent, damaged, locked, full, foreign-owned) reads as a miss and never as a wrong
   result. */
#ifndef NVB_STORE_H
#define NVB_STORE_H
#include "base/hash.h"

/* 1 and *blob (nvb_free it) on a hit, else 0. kind is a short word: "code", "cubin", "tune", "trial". */
int nvb_store_get(const char *kind, nvb_hash key, void **blob, size_t *bytes);
void nvb_store_put(const char *kind, nvb_hash key, const void *blob, size_t bytes);
void nvb_store_drop(const char *kind, nvb_hash key);
/* Copies of the blobs of a kind, the one used last first, as they lie there: who reads them asks again by key before
   believing them. *at is one allocation (nvb_free it); their number, 0 with *at NULL if there is nothing. */
typedef struct nvb_blob { const void *p; size_t bytes; } nvb_blob;
int nvb_store_all(const char *kind, nvb_blob **at);
int nvb_store_clear(const char *kind); /* drops them; how many, -1 where that could not be done */
void nvb_store_where(char *text, size_t size); /* path, or why there is none: "off", "refused: ..." */
void nvb_store_close(void);            /* for tests and fork; opens again by itself */
#endif
