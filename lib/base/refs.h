/* Counts of owners. */
#ifndef NVM_BASE_REFS_H
#define NVM_BASE_REFS_H
#include <stdatomic.h>

/* 1 if that was the last one. An only owner lets go without an atomic operation: nobody can join it meanwhile. */
static inline int nvb_let_go(atomic_int *refs) {
  return atomic_load_explicit(refs, memory_order_acquire) == 1 ||
         atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}
#endif
