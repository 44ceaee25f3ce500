/* Definitions of fragments: what a set knows of its texts before it compiles them. set.c finds the definition for a
   call, and parse.c compiles it. */
#ifndef NVM_FRAG_SET_H
#define NVM_FRAG_SET_H
#include "frag/lex.h"

enum { NVG_MAX_CALLS = 48, NVG_MAX_LIST = 256, NVG_MAX_GENERIC = 16 };

typedef struct type_expr {
  int8_t fn;
  int8_t var;
  int8_t type;
} type_expr; /* fn: 0, 's'igned or 'u'nsigned; var: a type variable of the definition, else -1; type: an nvm_dtype */
typedef struct generic {
  slice name;
  int cls;
  int type;
} generic;                    /* a type variable of a class, or (type >= 0) a fixed type */
typedef struct def {
  int unit, at, next, parsed; /* at: offset of the name; next: the previous definition of the same name, or -1 */
  int ngen, nparam, nresult, body;
  generic *gen;
  slice *pname;
  type_expr *param, *result;
} def;
typedef struct table_def { slice name; int unit, at, parsed; nvg_table t; } table_def;

struct nvg_fragset {
  nvb_arena *arena;
  NVB_VEC(nvg_text) unit;
  NVB_VEC(def) def;
  NVB_VEC(table_def) table;
  NVB_VEC(const nvg_frag *) made;
  nvb_map *names, *done; /* names: name -> last definition + 1; done: name<types>(types) -> index in `made` + 1 */
  int calls, is_library, indexed; /* indexed: the library's index leads to its functions */
  uint8_t known[NVG_BUCKETS];     /* how many functions of each bucket have been added */
};

/* Parse a type: dtype | variable of d | signed<type> | unsigned<type>. nvg_type_try returns 0 if the token is no
   type. */
int nvg_type_try(lexer *l, const def *d, type_expr *out);
type_expr nvg_type_need(lexer *l, const def *d);
int nvg_type_of(const type_expr *t, const int *bound);
int nvg_type_word(slice s);                   /* a dtype that is not complex; -1 if it is none */
int nvg_type_variable(const def *d, slice s); /* its index, or -1 */
/* Resolves a call from a body: searches the set, then the library; returns NULL if there is none, and leaves q's
   literals unchanged then. */
const nvg_frag *nvg_fragset_call(nvg_fragset *s, nvg_frag_query *q, int *status);
/* Compiles a definition for bound generic types and concrete parameters (parse.c). */
nvg_frag *nvg_frag_compile(nvg_fragset *s, const def *d, const int *bound, const int *param, const char *name);
#endif
