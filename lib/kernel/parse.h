/* What the files of the parser share: its state, and what statements are made of. Only parse*.c include this header. */
#ifndef NVM_KERNEL_PARSE_H
#define NVM_KERNEL_PARSE_H
#include "kernel/kernel.h"
#include "kernel/lex.h"

/* limits: depth of nested expressions and blocks; tiles of a list; terms of a condition, or of the rest of a
   statement */
enum { NVF_MAX_DEPTH = 64, NVF_MAX_LIST = 160, NVF_MAX_TERMS = 4096 };

/* what a name stands for; CARRIED: a tile that may be assigned again */
typedef enum nvf_seen { NVF_SEEN_PARAM, NVF_SEEN_GRID, NVF_SEEN_VAR, NVF_SEEN_TILE, NVF_SEEN_CARRIED } nvf_seen;
typedef struct nvf_name_entry {
  const char *name;
  nvf_seen kind;
  int id, outer; /* outer: the value of nvf_parser.scoped before this entry was declared */
} nvf_name_entry;
typedef struct nvf_parser {
  nvf_lex l;
  nvf_kernel *k;
  NVB_VEC(nvf_name_entry) scope;
  nvb_map *scoped;              /* name -> 1 + the last entry of scope with this name; 0: none */
  NVB_VEC(nvf_name_entry) axes; /* axes by the names in the text, which the builder may change */
  int depth, terms;
} nvf_parser;

typedef struct nvf_tiles { int n, id[NVF_MAX_LIST]; } nvf_tiles;

/* ---- parse_operands.c: functions that read the next operand, or fail with what is missing at its position */
void nvf_enter_scope(nvf_parser *p); /* of an expression or a block; the caller decrements p->depth in the end */
void nvf_declare_name(nvf_parser *p, const char *name, nvf_seen kind, int id);
void nvf_leave_scope(nvf_parser *p, int outside); /* drops the names declared since there were `outside` of them */
const nvf_name_entry *nvf_look_up_name(nvf_parser *p, const char *name); /* NULL: the name is not declared here */
static inline int nvf_is_tile_entry(const nvf_name_entry *e) {
  return e && (e->kind == NVF_SEEN_TILE || e->kind == NVF_SEEN_CARRIED);
}
/* names of layouts and constants, which a schedule binds, begin with a capital letter, as those of tiles do */
static inline int nvf_is_schedule_name(const char *name) { return name[0] >= 'A' && name[0] <= 'Z'; }
int nvf_axis_named(nvf_parser *p, const char *name); /* adds the axis if there is none of this name */
int nvf_take_axis(nvf_parser *p);
int nvf_take_tile(nvf_parser *p);
int nvf_take_buffer(nvf_parser *p);
const nvf_expr *nvf_parse_expression(nvf_parser *p);
const nvf_cond *nvf_parse_condition(nvf_parser *p);
void nvf_parse_layout(nvf_parser *p, nvf_stmt *s); /* L, or only(L, axes) */
void nvf_push_tile(nvf_parser *p, nvf_tiles *t, int id);
nvf_tiles nvf_parse_tiles(nvf_parser *p);              /* X or (X, ...) */
int nvf_take_keyword(nvf_parser *p, const char *name); /* 1: `, name =` follows and is skipped */
/* `where`, and as far as they are allowed: `other`; `init`, of so many states; `carry`; then the ')' of the call */
void nvf_parse_keywords(nvf_parser *p, nvf_stmt *s, int others, int states, const int *state, nvf_tiles *carry);
#endif
