/* Internal interface of the fragment files: typing rules of primitives, the builder of all fragments, and one step of
   the interpreter, with which the builder folds constants. Nothing outside lib/frag includes this file. */
#ifndef NVM_FRAG_IMPL_H
#define NVM_FRAG_IMPL_H
#include "base/err.h"
#include "frag/dtype.h"
#include "frag/frag.h"

/* ---- rules (frag.c) */
/* Returns the result's type for operand types t[0..n), or -1 if the primitive does not accept them. `want` is the
   requested type for CVT, BITS, CONST, PARAM and TABLE. */
int nvg_prim_type(nvg_prim p, const int *t, int want);
int nvg_prim_find(const char *name, int len); /* finds a primitive that text calls by name; -1 if there is none */
uint64_t nvg_mask(nvm_dtype t);               /* a mask of the bits that a value occupies */
int nvg_bits_nan(int type, uint64_t bits);    /* 1 if they are an f32 or f64 NaN */
/* Assigns each value a slot in the interpreter's work memory by its lifetime; returns the bytes per element. */
int nvg_frag_slots(nvb_arena *a, nvg_frag *f);

/* ---- the builder (build.c): merges equal instructions and folds constants; every function may throw */
typedef struct nvg_build nvg_build;
nvg_build *nvg_build_new(nvb_arena *a);
int nvg_emit(nvg_build *b, nvg_prim p, nvm_dtype type, int x, int y, int z);
int nvg_emit_const(nvg_build *b, nvm_dtype type, uint64_t bits);
int nvg_emit_param(nvg_build *b, nvm_dtype type);
int nvg_emit_table(nvg_build *b, const nvg_table *t, int index);
nvm_dtype nvg_build_type(const nvg_build *b, int i);
/* The calls for a loop: open it, add the PHIs with their initial values, add the body, set the PHIs' next values, close
   it. The PHIs stay visible after the loop. nvg_loop_until names the PHI that ends it; the next values that
   nvg_phi_next sets must keep all PHIs where that one is true. */
int nvg_emit_loop(nvg_build *b, uint64_t iterations);
int nvg_emit_phi(nvg_build *b, int first);
void nvg_phi_next(nvg_build *b, int phi, int next);
void nvg_loop_until(nvg_build *b, int loop, int phi);
void nvg_emit_end(nvg_build *b);
int nvg_build_depth(const nvg_build *b); /* open loops */
/* Inlines f: writes its f->nresult results to `result`; returns the instruction of its `rare` flag, or -1. */
int nvg_inline(nvg_build *b, const nvg_frag *f, const int *arg, int *result);
/* Finishes the fragment: removes dead code and moves constants behind the parameters, in the order of their first use.
   rare: -1 if there is no flag. */
nvg_frag *nvg_build_finish(nvg_build *b, const char *name, const int *result, int nresult, int rare,
                           const nvg_frag *full);

/* ---- the interpreter's step (interp.c): runs one instruction over n elements, a multiple of NVG_GROUP. `from`: type
   of the operand that selects the code (for SEL the second, else the first). x, y, z must not overlap out. */
enum { NVG_GROUP = 64 };
typedef struct nvg_step_args {
  nvg_prim prim;
  nvm_dtype type, from;
  int n;
  void *out;
  const void *x, *y, *z;
  uint64_t imm;
  const nvg_table *table;
} nvg_step_args;
void nvg_step(const nvg_step_args *s);
enum { NVG_MAX_LOOPS = 16 }; /* deepest nesting */
/* The loops are compiled for several CPU levels, with the same bits: nvg_step_variants returns how many this CPU can
   run, nvg_step_limit sets the highest to use from now on (0: all). */
int nvg_step_variants(void);
int nvg_step_level(void); /* which of them runs: 1 is the first */
int nvg_step_limit(int variant);

/* ---- definitions (parse.c) and the library (library.c) */
typedef struct nvg_frag_query { /* a call: name, types and operands */
  const char *name;
  int len;
  const int *targ;
  int ntarg; /* types in <>; ntarg 0: none were given */
  int *param;
  int nparam; /* nvm_dtype, or NVG_WEAK_* for an untyped literal, which the lookup replaces by its type */
} nvg_frag_query;
enum { NVG_WEAK_INT = -1, NVG_WEAK_FLOAT = -2 };
void nvg_fragset_add(nvg_fragset *s, const char *text,
                     const char *where); /* indexes the text without compiling it; the text must outlive the set */
const nvg_frag *nvg_fragset_query(nvg_fragset *s,
                                  nvg_frag_query *q); /* searches this set only; NULL without a message if absent */
int nvg_fragset_defines(nvg_fragset *s, nvg_frag_query *q); /* whether that would find one; nothing is compiled */
/* searches the library; *status: an error in its text, or of memory */
const nvg_frag *nvg_library_query(nvg_frag_query *q, int *status);
nvg_fragset *nvg_library_set(nvb_arena *a); /* a set that does not search the library */
/* Makes in q the call of definition k with all its generic types bound to `type`. Returns 1; 0 past the last
   definition; -1 if the definition does not accept that type. */
int nvg_fragset_instance(nvg_fragset *s, int k, int type, nvg_frag_query *q);
void nvg_fragset_forget_calls(nvg_fragset *s); /* resets the depth of calls after a compilation threw */
int nvg_query_fail(const nvg_frag_query *q);   /* sets the message that no definition takes these types; NVM_ERR_TYPE */

/* The library's texts, generated by scripts/embed.py; a NULL name ends the list. tables: the offset of the name of each
   table, then 0. The functions are indexed by their names' bucket b: those from nvg_frag_buckets[b] on. */
typedef struct nvg_text { const char *name, *text; const int *tables; } nvg_text;
typedef struct nvg_frag_place { int text, at; } nvg_frag_place; /* at: offset of the name */
enum { NVG_BUCKETS = 256 };
extern const nvg_text nvg_frag_texts[];
extern const uint16_t nvg_frag_buckets[NVG_BUCKETS + 1];
extern const nvg_frag_place nvg_frag_places[];
/* Adds all of them to a new set. A function is read when one of its bucket is asked for: a new process asks for few. */
void nvg_fragset_add_library(nvg_fragset *s);
#endif
