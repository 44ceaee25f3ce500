/* Index algebra over sizes that have a name and a value. A product is an integer times symbols; an expression is a sum
   of integer * product * (1 | axis | tile | floor(expression / product)). Both are interned: equal ones have equal
   numbers. A rewrite rests on proved equalities, divisibility and intervals, never on two unrelated sizes having the
   same value. */
#ifndef NVM_FUSION_INDEX_H
#define NVM_FUSION_INDEX_H
#include "base/hash.h"
#include "base/int.h"

typedef int nvf_prod;  /* number of a product; number 0 is the product 1 */
typedef int nvf_ix;    /* number of an expression; number 0 is the expression 0 */
typedef enum nvf_atomkind { NVF_AT_ONE, NVF_AT_AXIS, NVF_AT_TILE, NVF_AT_FLOOR } nvf_atomkind;

/* c * by * atom; `by` has the integer factor 1 */
typedef struct nvf_term { int atom; nvf_prod by; int64_t c; } nvf_term;
typedef struct nvf_atom {
  nvf_atomkind kind;
  int id;         /* AXIS: its number in the kernel (below 64); TILE: the caller's id */
  nvf_prod by;    /* AXIS, TILE: extent; FLOOR: divisor */
  nvf_ix of;      /* FLOOR: numerator */
  uint64_t axes;  /* bit set of the axes that it depends on */
  int64_t lo, hi; /* interval of its values, both ends included */
} nvf_atom;
typedef struct nvf_space nvf_space;

nvf_space *nvf_space_new(nvb_arena *a);

/* ---- sizes */
nvf_prod nvf_symbol(nvf_space *s, int64_t value); /* a new symbol, such as a dimension, stride or offset of a leaf */
nvf_prod nvf_int(nvf_space *s, int64_t k);        /* a number that the kernel text may contain: steps, block sizes */
nvf_prod nvf_mul(nvf_space *s, nvf_prod a, nvf_prod b);
nvf_prod nvf_quot(nvf_space *s, nvf_prod a, nvf_prod b); /* a / b if b divides a symbolically, else -1 */
int64_t nvf_value(const nvf_space *s, nvf_prod p);
int nvf_degree(const nvf_space *s, nvf_prod p);     /* number of its symbols */
int64_t nvf_factor(const nvf_space *s, nvf_prod p); /* its integer factor */
/* records that the graph proves a = b; both must have the same value */
void nvf_same(nvf_space *s, nvf_prod a, nvf_prod b);
nvf_prod nvf_proved(nvf_space *s, nvf_prod p); /* p with all proved equalities substituted */

/* ---- expressions */
nvf_ix nvf_ix_int(nvf_space *s, int64_t c);
nvf_ix nvf_ix_size(nvf_space *s, nvf_prod p);
nvf_ix nvf_ix_axis(nvf_space *s, int number, nvf_prod extent);
/* an integer tile, whose values are unknown */
nvf_ix nvf_ix_tile(nvf_space *s, int id, nvf_prod extent, uint64_t axes);
nvf_ix nvf_ix_add(nvf_space *s, nvf_ix a, nvf_ix b);
nvf_ix nvf_ix_sub(nvf_space *s, nvf_ix a, nvf_ix b);
nvf_ix nvf_ix_mul(nvf_space *s, nvf_ix a, nvf_prod by, int64_t c); /* a * by * c */
nvf_ix nvf_ix_div(nvf_space *s, nvf_ix a, nvf_prod by);            /* floored; by > 0 */
nvf_ix nvf_ix_mod(nvf_space *s, nvf_ix a, nvf_prod by);
nvf_ix nvf_ix_moving(nvf_space *s, nvf_ix a); /* the expression without the terms that depend on no axis and no tile */
/* Every axis n with to[n] >= 0 is replaced by that expression. */
nvf_ix nvf_ix_subst(nvf_space *s, nvf_ix a, const nvf_ix *to);

const nvf_term *nvf_ix_terms(const nvf_space *s, nvf_ix a, int *n);
const nvf_atom *nvf_ix_atom(const nvf_space *s, int atom);
uint64_t nvf_ix_axes(const nvf_space *s, nvf_ix a); /* bit set of the axes that it depends on */
void nvf_ix_range(const nvf_space *s, nvf_ix a, int64_t *lo, int64_t *hi);
int nvf_ix_floors(const nvf_space *s, nvf_ix a);      /* number of floor atoms, nested ones included */
int nvf_ix_single_axis(const nvf_space *s, nvf_ix a); /* the axis that the expression is; -1: it is not one */
/* The coefficient of an axis in the sum itself (not inside floors): returns 0 if it is absent, 1 if it is the number 1,
   else 2. */
int nvf_ix_coef(const nvf_space *s, nvf_ix a, int axis, nvf_prod *by, int64_t *c);

/* Row-major: the linear index of coordinates, and the coordinates of a linear index. */
nvf_ix nvf_ix_linear(nvf_space *s, int n, const nvf_ix *e, const nvf_prod *extent);
void nvf_ix_unlinear(nvf_space *s, nvf_ix e, int n, const nvf_prod *extent, nvf_ix *out);
#endif
