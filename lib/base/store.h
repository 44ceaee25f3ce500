/* The disk cache: one SQLite file per user, rows of (kind, key, blob) whose content hash is checked at every read.
   Whatever is wrong with it (absent, damaged, locked, full, foreign-owned) reads as a miss and never as a wrong
   result. */
#ifndef NVB_STORE_H
#define NVB_STORE_H
#include "base/hash.h"

/* 1 and *blob (nvb_free it) on a hit, else 0. kind is a short word: "code", "tune". */
int nvb_store_get(const char *kind, nvb_hash key, void **blob, size_t *bytes);
void nvb_store_put(const char *kind, nvb_hash key, const void *blob, size_t bytes);
const char *nvb_store_where(void);     /* path, or why there is none: "off", "refused: ..." */
void nvb_store_close(void);            /* for tests and fork; opens again by itself */
#endif
