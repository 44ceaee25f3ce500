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
/* a new symbol whose value is the number of parts of `each` that a product has, the last of which may be shorter */
nvf_prod nvf_parts(nvf_space *s, nvf_prod p, int64_t each);
nvf_prod nvf_int(nvf_space *s, int64_t k); /* a number that the kernel text may contain: steps, block sizes */
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

void nvf_ix_measure(nvf_space *s, nvf_ix a); /* computes the range of an expression from those of its atoms */
/* the range of floor(a / by), in which an end may be unbounded */
void nvf_ix_floor_range(const nvf_space *s, nvf_ix a, nvf_prod by, int64_t *lo, int64_t *hi);

/* Row-major: the linear index of coordinates, and the coordinates of a linear index. */
nvf_ix nvf_ix_linear(nvf_space *s, int n, const nvf_ix *e, const nvf_prod *extent);
void nvf_ix_unlinear(nvf_space *s, nvf_ix e, int n, const nvf_prod *extent, nvf_ix *out);

/* ---- facts.c: what a plan takes from the values of sizes, beyond what symbols prove. With other values of which the
   same facts hold, the plan is still right. */
typedef enum nvf_fact_kind {
  NVF_NOT_NEGATIVE, /* expression a >= 0 */
  NVF_BELOW,        /* expression a < product b */
  NVF_OUTSIDE,      /* expression a is negative, or not below product b */
  NVF_FLOOR_IS,     /* floor(expression a / product b) = k */
  NVF_EQUAL,        /* product a = product b */
  NVF_MULTIPLE,     /* product a is a multiple of k */
  NVF_AT_LEAST,     /* product a >= k */
  NVF_AT_MOST,      /* product a <= k */
  NVF_THESE_SIZES   /* no other sizes will do */
} nvf_fact_kind;
typedef struct nvf_fact { nvf_fact_kind kind; int a, b; int64_t k; } nvf_fact;
void nvf_note_facts(nvf_space *s); /* from this call on, facts are noted */
void nvf_rely(nvf_space *s, nvf_fact f);
/* Notes that an expression is not negative, that it is below n, or both. */
void nvf_rely_range(nvf_space *s, nvf_ix e, nvf_prod n, int not_negative, int below);
/* Whether facts were noted from the start, and all symbols but the first `given`, which the graph has, follow from
   these, so that other values can be given to them. */
int nvf_serves_others(const nvf_space *s, int given);
/* A copy in the arena, from which only copies with other values can be made; nothing can be added to either. */
nvf_space *nvf_space_keep(nvb_arena *a, const nvf_space *s);
/* The kept space with these values of its first n symbols; NULL if a fact does not hold. */
nvf_space *nvf_space_with(nvb_arena *a, const nvf_space *s, int n, const int64_t *value);
int nvf_symbols(const nvf_space *s, const int64_t **value); /* the number of its symbols, and their values */
/* a hash of symbols and of all that is made of them, without the values of symbols */
nvb_hash nvf_space_hash(const nvf_space *s);
#endif
