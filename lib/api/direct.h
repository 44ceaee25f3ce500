/* Direct runs: a small graph that is new is computed value by value by the interpreter of fragments, without a plan.
   Private to direct.c, which decides, and to direct_run.c, direct_memory.c, direct_block.c and direct_reduce.c, which
   compute. */
#ifndef NVM_API_DIRECT_H
#define NVM_API_DIRECT_H
#include "api/api.h"
#include "frag/product.h"
#include "frag/sum.h"

/* The most states of a reduction; the most parts of a map's operands; elements of a block: larger values are large. */
enum { NVA_STATES = 4, NVA_PARTS = 16, NVA_BLOCK = 1024 };

/* Where the elements of a value are; strides in bytes. at: by state; all but reductions of several states have one. */
typedef struct nva_elements { char *at[NVA_STATES]; int64_t stride[NVM_MAX_RANK]; } nva_elements;

/* How a value of a graph with large values is computed. */
typedef struct nva_use {
  int readers;  /* operands and outputs that it is */
  int inside;   /* 1: a large map, computed with its only reader, block by block */
  int slots;    /* that its blocks, and those of the maps computed with it, may take at a time */
  int repeated; /* parts that all these blocks may have in common */
} nva_use;
void nva_direct_uses(nva_use *use, const nvg_graph *g);
enum { NVA_SLOT = NVA_BLOCK * 8, NVA_SLOTS = 64 }; /* bytes of a part of a block; the most of them at a time */
static inline int64_t nva_direct_block_bytes(const nva_use *u) { return (int64_t)(u->slots + u->repeated) * NVA_SLOT; }

/* Where the results of a value are, and until when. */
typedef struct nva_place {
  int64_t at, bytes; /* from the beginning of the results on */
  int last;          /* the value after whose run nothing reads them; the graph's number of values: outputs */
  int first, next;   /* the first value whose results nothing reads after this one's run; the next one like this */
} nva_place;
/* (direct_memory.c) Finds a place for the results of each value. Returns the bytes of all. */
int64_t nva_direct_place(const nvg_graph *g, nva_place *place, const nva_use *use);

typedef struct nva_direct_run {
  const nvg_graph *g;     /* simplified */
  nva_use *use;           /* by value; NULL: no value is large */
  const char **repeated;  /* two parts by value: what its readers' blocks have in common; NULL: nothing */
  nva_elements *elements; /* by value */
  char **out;             /* by value: the memory of the output that it is; NULL: it is none */
  nva_place *place;       /* by value; NULL: results follow each other */
  char *result;           /* where the next result goes */
  char *work;             /* memory that the current value uses while it is computed */
  char *slots;            /* of the current value's blocks */
  uint64_t free;          /* bit k: slot k is free */
} nva_direct_run;

/* What a direct run of one value takes, or one of a graph: the sums over its values, of `work` the maximum. */
typedef struct nva_direct_cost { double ns; int64_t result, work; int large; } nva_direct_cost;
/* use: of the value; NULL: the graph has no large values. Returns 0 if it cannot be run directly. */
int nva_direct_cost_of(nva_direct_cost *c, const nvg_graph *g, const nvg_val *v, const nva_use *use);

/* Computes every value of the graph. leaf: data of each leaf; out: memory of each output, packed. Returns a status;
   NVM_ERR_INDEX, without a message, if an index is out of range. */
int nva_direct_compute(const nvg_graph *g, const nva_direct_cost *cost, char *const *leaf, char *const *out);

void nva_direct_note(const nvg_graph *g, int64_t start); /* (direct_profile.c) adds a run to the active profiles */

/* (program_cache.c) Makes a program that computes the graph, which must live as long, by a direct run. */
int nva_program_direct(nva_program **out, const nva_views *v, const nvg_graph *g, const nva_direct_cost *cost);

/* ---- what the files that compute share */
char *nva_direct_result(nva_direct_run *r, int value, int64_t bytes); /* memory for the value's elements */
char *nva_direct_work(nva_direct_run *r, int64_t bytes);              /* memory until the value is computed */
/* Part `part` (1: imaginary) of a value as n packed elements: its own memory, or a copy. One element is repeated. */
char *nva_direct_packed(nva_direct_run *r, int value, int part, int64_t n);
/* Writes the parts of n complex numbers, packed elements of `size` bytes, to complex elements. */
void nva_direct_join(char *to, const char *re, const char *im, int size, int64_t n);
void nva_direct_reduce(nva_direct_run *r, int value);
int nva_direct_is_sum(const nvg_graph *g, const nvg_val *v); /* a reduction that sum.h can do, by parts */
/* What a large map, and a sum, is computed by; to: memory of its elements. */
void nva_direct_map(nva_direct_run *r, int value, char *to);
void nva_direct_sum(nva_direct_run *r, int value, char *to);
void nva_direct_set_packed(int64_t *stride, int rank, const int64_t *shape, int64_t size); /* strides in bytes */
int nva_direct_is_packed(const int64_t *stride, int rank, const int64_t *shape, int64_t size);
static inline int64_t nva_direct_align(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }
#endif
