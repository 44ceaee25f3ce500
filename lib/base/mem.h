/* All heap memory of the library is allocated through these functions, so that tests can count blocks and let the
   n-th request fail. */
#ifndef NVM_BASE_MEM_H
#define NVM_BASE_MEM_H
#include <stddef.h>
#include <stdint.h>

void *nvb_alloc(size_t bytes);                /* NULL when out of memory; 16-byte aligned; not cleared */
void *nvb_calloc(size_t count, size_t bytes); /* cleared; NULL on overflow of count * bytes too */
void *nvb_realloc(void *p, size_t bytes);     /* NULL leaves p as it was */
void nvb_free(void *p);                       /* NULL is fine */
/* Do the same, but for each power of two from 128 KB to 1 MB the block that was freed last is kept for the next
   request of that size. If the block were returned to the system, its pages would have to be zeroed again. */
void *nvb_alloc_kept(size_t bytes);
void nvb_free_kept(void *p, size_t bytes);           /* `bytes` as requested */
void *nvb_alloc_aligned(size_t align, size_t bytes); /* align: a power of two >= 16; freed by nvb_free */

/* Live blocks of all threads: allocations minus frees since the first call of this function. */
int64_t nvb_live_blocks(void);
/* Lets the n-th request from now fail (1: the next one); with `sticky` all later ones fail too. n = 0 ends it. */
void nvb_fail_alloc(int64_t n, int sticky);
int nvb_alloc_fails(void); /* counts a request that is served elsewhere (mmap); returns 1 if it must fail */
#endif
