/* All heap memory of the library goes through here, so that tests can count it and let the n-th request fail. */
#ifndef NVM_BASE_MEM_H
#define NVM_BASE_MEM_H
#include <stddef.h>
#include <stdint.h>

void *nvb_alloc(size_t bytes);                /* NULL when out of memory; 16-byte aligned; not cleared */
void *nvb_calloc(size_t count, size_t bytes); /* cleared; NULL on overflow of count * bytes too */
void *nvb_realloc(void *p, size_t bytes);     /* NULL leaves p as it was */
void nvb_free(void *p);                       /* NULL is fine */
/* The same; of each power of two from 128 KB to 1 MB the block freed last is kept for the next one who asks, since
   pages that went back to the system would have to be cleared again. */
void *nvb_alloc_kept(size_t bytes);
void nvb_free_kept(void *p, size_t bytes);           /* as many as were asked for */
void *nvb_alloc_aligned(size_t align, size_t bytes); /* a power of two >= 16; freed by nvb_free */

/* Blocks allocated, less those freed, by all threads since the first time that anybody asked. */
int64_t nvb_live_blocks(void);
/* From now on the n-th request (1 = the next) fails; with `sticky` all later ones too. n = 0 ends it. */
void nvb_fail_alloc(int64_t n, int sticky);
int nvb_alloc_fails(void); /* counts a request that is served elsewhere (mmap); 1 if it has to fail */
#endif
