/* Fragments: the one definition of every elementwise function. Pure SSA on scalars over prims.def; from this text come
   the interpreter's loops, LLVM vectors and CUDA. What a fragment never does: touch memory, know a lane, call libm. */
#ifndef NVM_FRAG_FRAG_H
#define NVM_FRAG_FRAG_H
#include "base/hash.h"
#include "base/text.h"
#include "nvm/types.h"

typedef enum nvg_prim {
#define PRIM(id, text, n, in, out, doc) NVG_##id,
#include "frag/prims.def"
#undef PRIM
  NVG_NPRIMS
} nvg_prim;
typedef struct nvg_prim_info { const char *id, *text, *in, *out, *doc; int n; } nvg_prim_info;
extern const nvg_prim_info nvg_prims[NVG_NPRIMS];

typedef struct nvg_inst {
  uint8_t prim;    /* nvg_prim */
  uint8_t type;    /* nvm_dtype of the value: bool, integers, f32, f64; floats of 16 and 8 bits as parameters, as
                       results, at CONST, and what BITS and CVT (f16 alone) take and give */
  uint16_t tab;    /* TABLE: which table */
  int32_t a, b, c; /* operands: earlier instructions (a PHI's b may be later); -1 if unused */
  uint64_t imm;    /* CONST: the bits, zero extended; LOOP: rounds; PARAM: its number */
} nvg_inst;

typedef struct nvg_table { int n; nvm_dtype type; const uint64_t *bits; } nvg_table;

enum { NVG_EXPENSIVE_MERGE = 24 }; /* cost of a merge from which on it is worth a barrier, or more warps */
typedef struct nvg_frag {
  const char *name;                /* as called in text, for example "exp"; with its types in nvg_frag_print */
  int nparam, nresult, ninst, ntable;
  const nvg_inst *inst; /* the nparam PARAMs come first */
  const int *result;    /* instruction of each result */
  const nvg_table *table;
  int rare;                    /* instruction of type bool: true where the results are not valid; -1: they always are */
  const struct nvg_frag *full; /* with rare >= 0: the same function valid everywhere, without a flag of its own.
                                  Where `rare` is false both give the same bits. */
  const int *slot;
  int work;      /* interpreter: place of each value in work memory and its size, in bytes per element */
  int cost;      /* simple operations of the fast form, for planner and emitter */
  nvb_hash hash; /* of the instructions and the full form: equal hash, equal function */
} nvg_frag;

/* ---- the library (lib/frag/functions/ *.frag): compiled in as text, parsed at first use, kept for the process.
   Thread-safe. Finds or instantiates `name` for operand types; complex operands are given as their two parts of type
   f32 / f64. Definitions are generic by class; the most specific wins. NULL with a message (NVM_ERR_TYPE) if there is
   none. */
const nvg_frag *nvg_frag_find(const char *name, const nvm_dtype *param, int nparam);
/* Conversion of one dtype to another as numerics.md sections 2 and 5 say (saturating, rounding once). Real types. */
const nvg_frag *nvg_frag_cast(nvm_dtype from, nvm_dtype to);

/* ---- text: grammar in fragments.md
   Parses every `frag` of `text` into the arena, callable by later ones and by kernel text parsed with the same set. */
typedef struct nvg_fragset nvg_fragset;
nvg_fragset *nvg_fragset_new(nvb_arena *a); /* sees the library */
/* Faults of the text throw NVM_ERR_VALUE with where:line:col; a set that threw is of no further use. */
void nvg_fragset_parse(nvg_fragset *s, const char *text, const char *where);
const nvg_frag *nvg_fragset_find(nvg_fragset *s, const char *name, const nvm_dtype *param, int nparam);
void nvg_frag_print(nvb_text *t, const nvg_frag *f);  /* parses back to the same hash */
void nvg_frag_check(nvb_arena *a, const nvg_frag *f); /* throws NVM_ERR_INTERNAL at the first broken rule */

/* What a NaN (that arithmetic made, of either sign) as this parameter leads to, whatever the others are. */
/* it may pass unseen; `rare` is true; the only result is NaN */
enum { NVG_NAN_UNSEEN, NVG_NAN_SLOW_PATH, NVG_NAN_KEPT };
int nvg_frag_of_nan(nvb_arena *a, const nvg_frag *f, int param);

/* ---- the interpreter: applies f to n elements. in[i] and out[i] point to n packed elements of the parameter's or
   result's dtype (bool: one byte). full: use the full form (the oracle does). Work memory is on the stack: 96 KB, or
   64 times f->work where that is more. */
void nvg_frag_run(const nvg_frag *f, const void *const *in, void *const *out, int64_t n, int full);
/* rare[i] of the fast form, for tests */
void nvg_frag_flags(const nvg_frag *f, const void *const *in, uint8_t *rare, int64_t n);
#endif
