/* Groups of maps with a common slow path: consecutive maps over the same items, whose fast forms flag what they cannot
   do, and which are redone together in their full forms. Knows which maps belong together and what goes in and comes
   out; emits nothing. */
#ifndef NVM_CODEGEN_MAP_GROUP_H
#define NVM_CODEGEN_MAP_GROUP_H
#include "codegen/loop_nests.h"

/* An operand that no map of the group makes, or a tile that is used outside of it. off: where the back end keeps it for
   the slow path. */
typedef struct nvc_group_value { nvf_akind kind; int id; nvm_dtype type; int64_t off; } nvc_group_value;
typedef NVB_VEC(nvc_group_value) nvc_group_values;
typedef struct nvc_map_group {
  nvc_stmts map;            /* in text order */
  nvc_group_values in, out; /* in: each once, without constants */
} nvc_map_group;

/* The map among the first n that makes the tile; NULL: none does. */
const nvf_stmt *nvc_group_maker(const nvc_map_group *g, int tile, int n);
/* Does s use a result of the group? done: by statement id: 1: users of this map compute its result; NULL: none do. */
int nvc_group_is_used(const nvc_nests *r, const nvc_map_group *g, const nvf_stmt *s, const uint8_t *done);
int nvc_assigns_mutable(const nvc_nests *r, const nvf_stmt *s);   /* does s assign to a mutable tile? */
void nvc_group_find_values(const nvc_nests *r, nvc_map_group *g); /* fills in and out */
/* The number of the last such value; -1: there is none. */
int nvc_group_find(const nvc_group_values *v, nvf_akind kind, int id);
#endif
