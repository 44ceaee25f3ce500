/* The disk cache: one SQLite file per user with rows of (kind, key, blob), whose content hash is verified at every
   read. Any problem with the file (absent, damaged, locked, full, owned by others) reads as a miss and never as a
   wrong result. */
#ifndef NVM_BASE_STORE_H
#define NVM_BASE_STORE_H
#include "base/hash.h"

/* On a hit returns 1 and *blob, which the caller frees with nvb_free; else returns 0. kind is a short word: "code",
   "host", "cubin", "plan", "tune", "trial", "ceiling". */
int nvb_store_get(const char *kind, nvb_hash key, void **blob, size_t *bytes);
int nvb_store_put(const char *kind, nvb_hash key, const void *blob, size_t bytes); /* 1: stored; 0: not */
void nvb_store_drop(const char *kind, nvb_hash key);
/* Reads a row and writes it again in one transaction. `change` gets the blob (NULL if there is none), writes at most
   NVB_STORE_SMALL bytes to `out` and returns how many; 0 deletes the row. It may be called twice and must not call
   the store. Returns 1 if the change was made, else 0. */
enum { NVB_STORE_SMALL = 2048 };
typedef size_t nvb_store_changer(void *arg, const char *blob, size_t bytes, char *out);
int nvb_store_change(const char *kind, nvb_hash key, nvb_store_changer *change, void *arg);
/* Copies all blobs of a kind, the most recently used first, without verifying their hashes: the caller must read a
   row by its key before it trusts one. *at is one allocation that the caller frees with nvb_free. Returns their
   number; 0 with *at NULL if there are none; -1 with *at NULL if another process has locked the store. */
typedef struct nvb_blob { const void *p; size_t bytes; } nvb_blob;
int nvb_store_all(const char *kind, nvb_blob **at);
/* deletes all rows of a kind; returns how many, or -1 if the store could not be changed */
int nvb_store_clear(const char *kind);
/* Returns 1 and the path, or 0 and the reason why there is no store: "off", "refused: ..." */
int nvb_store_where(char *text, size_t size);
void nvb_store_close(void); /* closes the file; the next call opens it again */
#endif
