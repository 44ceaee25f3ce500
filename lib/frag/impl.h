/* Inside of the fragment files: the rules of primitives, the builder that makes every fragment, and one step of the
   interpreter (which is also what folds constants). Nothing outside lib/frag includes this. */
#ifndef NVM_FRAG_IMPL_H
#define NVM_FRAG_IMPL_H
#include "base/err.h"
#include "frag/dtype.h"
#include "frag/frag.h"

/* ---- rules (frag.c) */
/* Type of the result for operand types t[0..n), or -1 if the primitive does not take them. `want` is the type asked of
   CVT, BITS, CONST, PARAM and TABLE. */
int nvg_prim_type(nvg_prim p, const int *t, int want);
int nvg_prim_find(const char *name, int len); /* primitives called by name in text; -1 if there is none */
uint64_t nvg_mask(nvm_dtype t);               /* ones in the bits of a value */
int nvg_bits_nan(int type, uint64_t bits);    /* are they an f32 or f64 that is NaN? */
/* Work memory of the interpreter: gives each value a place by its last use. Returns bytes per element. */
int nvg_frag_slots(nvb_arena *a, nvg_frag *f);

/* ---- the builder (build.c). Equal instructions are merged, constants folded; all of it throws. */
typedef struct nvg_build nvg_build;
nvg_build *nvg_build_new(nvb_arena *a);
int nvg_emit(nvg_build *b, nvg_prim p, nvm_dtype type, int x, int y, int z);
int nvg_emit_const(nvg_build *b, nvm_dtype type, uint64_t bits);
int nvg_emit_param(nvg_build *b, nvm_dtype type);
int nvg_emit_table(nvg_build *b, const nvg_table *t, int index);
nvm_dtype nvg_build_type(const nvg_build *b, int i);
/* A loop: open, the PHIs with their first values, the body, their next values, close. The PHIs stay valid after it. */
int nvg_emit_loop(nvg_build *b, uint64_t rounds);
int nvg_emit_phi(nvg_build *b, int first);
void nvg_phi_next(nvg_build *b, int phi, int next);
void nvg_emit_end(nvg_build *b);
int nvg_build_depth(const nvg_build *b); /* open loops */
/* Copies f in; results[f->nresult]; returns its rare value or -1. */
int nvg_inline(nvg_build *b, const nvg_frag *f, const int *arg, int *result);
/* Dead code goes, constants move behind the parameters in the order of their first use. rare: -1 if there is none. */
nvg_frag *nvg_build_finish(nvg_build *b, const char *name, const int *result, int nresult, int rare,
                           const nvg_frag *full);

/* ---- the interpreter's step (interp.c): n elements, whole groups, of one instruction. `from`: type of the
   operand that decides (the second of SEL, else the first). x, y, z and out do not overlap. */
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
enum { NVG_MAX_LOOPS = 16 }; /* nesting */
/* Variants of the loops by CPU, of the same bits: how many this CPU runs; the best to use from now on (0: all). */
int nvg_step_variants(void);
int nvg_step_limit(int variant);

/* ---- definitions (parse.c) and the library (library.c) */
typedef struct nvg_frag_query { /* what a call asks for */
  const char *name;
  int len;
  const int *targ;
  int ntarg; /* types in <>; ntarg 0: none given */
  int *param;
  int nparam; /* nvm_dtype; NVG_WEAK_*: an untyped literal, replaced by the type that it takes */
} nvg_frag_query;
enum { NVG_WEAK_INT = -1, NVG_WEAK_FLOAT = -2 };
void nvg_fragset_add(nvg_fragset *s, const char *text,
                     const char *where); /* indexes the text, compiles nothing; text stays */
const nvg_frag *nvg_fragset_query(nvg_fragset *s,
                                  nvg_frag_query *q); /* this set alone; NULL without a message if absent */
const nvg_frag *nvg_library_query(nvg_frag_query *q, int *status); /* the library; *status: a text fault or memory */
nvg_fragset *nvg_library_set(nvb_arena *a);                        /* a set that does not look in the library */
/* What asks for definition k with all its generic types bound to `type`: 0 past the last one, -1 if it does not take
   that. */
int nvg_fragset_instance(nvg_fragset *s, int k, int type, nvg_frag_query *q);
void nvg_fragset_forget_calls(nvg_fragset *s); /* after a throw out of a compilation */
int nvg_query_fail(const nvg_frag_query *q);   /* "no fragment exp(i32)"; NVM_ERR_TYPE */

/* The library's texts, made by scripts/embed.py: name and text, ended by a NULL name. */
typedef struct nvg_text { const char *name, *text; } nvg_text;
extern const nvg_text nvg_frag_texts[];
#endif
