/* Definitions of fragments: what a set knows of its texts before anything is compiled. Shared by set.c, which
   finds the definition that takes a call, and parse.c, which compiles it. */
#ifndef NVM_FRAG_SET_H
#define NVM_FRAG_SET_H
#include "frag/lex.h"

enum { NVG_MAX_CALLS = 48, NVG_MAX_LIST = 256, NVG_MAX_GENERIC = 16 };

typedef struct type_expr {
  int8_t fn;
  int8_t var;
  int8_t type;
} type_expr; /* fn: 0, 's'igned, 'u'nsigned of the rest */
typedef struct generic {
  slice name;
  int cls;
  int type;
} generic;                    /* a variable of a class, or (type >= 0) one type */
typedef struct def {
  int unit, at, next, parsed; /* at: the name; next: the definition of the name before, or -1 */
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
  nvb_map *names, *done; /* name -> last definition + 1; name<types>(types) -> made + 1 */
  int calls, is_library;
};

/* type = dtype | variable of d | signed<type> | unsigned<type>. try: 0 if the token is none. */
int nvg_type_try(lexer *l, const def *d, type_expr *out);
type_expr nvg_type_need(lexer *l, const def *d);
int nvg_type_of(const type_expr *t, const int *bound);
int nvg_type_word(slice s);                   /* a dtype but complex; -1 */
int nvg_type_variable(const def *d, slice s); /* its number; -1 */
/* A call from a body: the set, then the library; NULL if there is none, with q's literals untouched. */
const nvg_frag *nvg_fragset_call(nvg_fragset *s, nvg_frag_query *q, int *status);
/* parse.c: the definition for bound generic types and concrete parameters. */
nvg_frag *nvg_frag_compile(nvg_fragset *s, const def *d, const int *bound, const int *param, const char *name);
#endif
