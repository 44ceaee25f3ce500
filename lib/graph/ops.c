/* Instantiates the table of operations from ops.def. It decides nothing. */
#include <string.h>
#include "graph/graph.h"

enum { b = 1 << NVG_BOOLEAN, i = 1 << NVG_SIGNED, u = 1 << NVG_UNSIGNED, f = 1 << NVG_FLOAT, c = 1 << NVG_COMPLEX };
#define DEF(...) { __VA_ARGS__ }
#define OP(kind, id, cname, name, nin, rule, def, sig, doc) \
  [NVG_OP_##id] = { NVG_K##kind, #id, #cname, name, nin, NVG_R##rule, def, sig, doc },
const nvg_op_info nvg_ops[NVG_NOPS] = {
#include "graph/ops.def"
};
#undef OP

int nvg_op_find(const char *name) {
  for (int op = 0; op < NVG_NOPS; op++)
    if (!strcmp(nvg_ops[op].name, name)) return op;
  return -1;
}

nvg_vkind nvg_op_vkind(nvg_op op) {
  switch (nvg_ops[op].kind) {
  case NVG_KMAP: return NVG_VMAP;
  case NVG_KRED: return NVG_VRED;
  case NVG_KSCAN: return NVG_VSCAN;
  default: return nvg_ops[op].def.v;
  }
}
