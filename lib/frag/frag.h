/* Fragments: the single definition of every elementwise function, as pure SSA on scalars over the primitives of
   prims.def. The interpreter's loops, LLVM's vector code and CUDA code are all derived from them. A fragment never
   accesses memory, knows no lane and never calls libm. */
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
  uint8_t prim; /* nvg_prim */
  /* nvm_dtype of the value: bool, integers, f32, f64. Floats of 16 and 8 bits occur only as parameters, results, CONST,
     and operands or results of BITS and (f16 only) CVT. */
  uint8_t type;
  uint16_t tab; /* TABLE: index of the table */
  /* operands: earlier instructions (the b of a PHI, and the a of a LOOP, may be later); -1 if unused */
  int32_t a, b, c;
  uint64_t imm; /* CONST: the bits, zero-extended; LOOP: the trip count; PARAM: its number */
} nvg_inst;

typedef struct nvg_table { int n; nvm_dtype type; const uint64_t *bits; } nvg_table;

enum { NVG_EXPENSIVE_MERGE = 24 }; /* from this cost on, a merge is worth a barrier or more warps */
typedef struct nvg_frag {
  const char *name;                /* the name that text calls, for example "exp" */
  int nparam, nresult, ninst, ntable;
  const nvg_inst *inst; /* the nparam PARAMs come first */
  const int *result;    /* the instruction of each result */
  const nvg_table *table;
  int rare; /* a bool instruction: true where the results are invalid; -1: they are always valid */
  /* with rare >= 0: the full form, which is valid everywhere and has no flag of its own. Both forms give the same bits
     where `rare` is false. */
  const struct nvg_frag *full;
  const int *slot;
  /* interpreter: the slot of each value in work memory, and the size of that memory, in bytes per element */
  int work;
  int cost;      /* cost of the fast form in simple operations, for the planner and the emitters */
  nvb_hash hash; /* hash of the instructions and of the full form: equal hashes mean equal functions */
} nvg_frag;

/* ---- the library (lib/frag/functions/ *.frag): its text is compiled in, parsed at first use and kept for the process.
   Thread-safe. Finds or instantiates `name` for these operand dtypes; a complex operand is passed as two parts of type
   f32 or f64. Definitions are generic over dtype classes, and the most specific one wins. Returns NULL with a message
   (NVM_ERR_TYPE) if there is none. */
const nvg_frag *nvg_frag_find(const char *name, const nvm_dtype *param, int nparam);
/* Is there a definition that nvg_frag_find would compile, which takes 10 us to 3 ms? 0 with its message. */
int nvg_frag_defined(const char *name, const nvm_dtype *param, int nparam);
/* Finds the conversion between two real dtypes by the rules of numerics.md sections 2 and 5 (saturating, rounding
   once). */
const nvg_frag *nvg_frag_cast(nvm_dtype from, nvm_dtype to);

/* ---- text; the grammar is in fragments.md. A set parses every `frag` of a text into its arena; later fragments of the
   set, and kernel text that is parsed with it, can call them. */
typedef struct nvg_fragset nvg_fragset;
nvg_fragset *nvg_fragset_new(nvb_arena *a); /* its fragments may call the library's */
/* Errors in the text throw NVM_ERR_VALUE with where:line:col; after a throw the set must not be used. */
void nvg_fragset_parse(nvg_fragset *s, const char *text, const char *where);
const nvg_frag *nvg_fragset_find(nvg_fragset *s, const char *name, const nvm_dtype *param, int nparam);
void nvg_frag_print(nvb_text *t, const nvg_frag *f);  /* the printed text parses to the same hash */
void nvg_frag_check(nvb_arena *a, const nvg_frag *f); /* throws NVM_ERR_INTERNAL at the first rule that is violated */

/* If the first parameter numbers the elements, how many in a row share most of the work: 2^s where f shifts it right by
   s; else 1. */
int nvg_frag_shared(const nvg_frag *f);

/* What happens if this parameter is a NaN made by arithmetic, of either sign, whatever the other parameters are: */
/* unknown; `rare` is true; the only result is NaN */
enum { NVG_NAN_UNSEEN, NVG_NAN_SLOW_PATH, NVG_NAN_KEPT };
int nvg_frag_of_nan(nvb_arena *a, const nvg_frag *f, int param);

/* ---- the interpreter: applies f to n elements. in[i] and out[i] point to n packed elements of the parameter's or
   result's dtype (bool: one byte). full: run the full form, as the test oracle does. Work memory is on the stack: up to
   96 KB, or 64 times f->work if that is more. */
void nvg_frag_run(const nvg_frag *f, const void *const *in, void *const *out, int64_t n, int full);
/* The same bits as the full form, faster: the fast form, and the full one where that is not valid. */
void nvg_frag_apply(const nvg_frag *f, const void *const *in, void *const *out, int64_t n);
/* writes the fast form's `rare` of each element, for tests */
void nvg_frag_flags(const nvg_frag *f, const void *const *in, uint8_t *rare, int64_t n);
#endif
