/* Reference counts. */
#ifndef NVM_BASE_REFS_H
#define NVM_BASE_REFS_H
#include <stdatomic.h>

/* Drops a reference; returns 1 if it was the last one. The only owner needs no atomic write: nobody else can take a
   reference meanwhile. */
static inline int nvb_let_go(atomic_int *refs) {
  return atomic_load_explicit(refs, memory_order_acquire) == 1 ||
         atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}
#endif
