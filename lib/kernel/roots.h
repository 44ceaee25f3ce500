/* Roots of unity, for transforms and for the tables of them that a kernel text may declare. */
#ifndef NVM_KERNEL_ROOTS_H
#define NVM_KERNEL_ROOTS_H
#include "kernel/kernel.h"

/* e^(2 pi i q / n), q >= 0, each part correctly rounded to the real type of t (f32 or f64) */
void nvf_root(int64_t n, int64_t q, nvm_dtype t, double root[2]);
/* The bits of both parts of each element of a table, a parameter of kind NVF_ROOTS; in the arena */
uint64_t *nvf_roots_bits(nvb_arena *a, const nvf_param *p);
#endif
