/* The public constructors: every operation through one generic entry, and the prototypes of nvm/ops.h on top of it. Decides
   nothing: inference is graph's. */
#include <stdlib.h>
#include "base/mem.h"
#include "hallway.h"

/* ---- the generic entry */
enum { FEW = 16 };

static int gather(nvg_node **node, nvm_array *const *in, int nin) {
  for (int i = 0; i < nin; i++) {
    if (!in[i]) return 0; /* passes through; its message stands */
    node[i] = in[i] == &nvh_none ? NULL : nvh_node(in[i]);
    if (!node[i] && in[i] != &nvh_none) return 0;
  }
  return 1;
}
nvm_array *nvm_apply(nvm_ctx *ctx, int op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr) {
  if (op < 0 || op >= NVG_NOPS || nvg_ops[op].name[0] == '_')
    return nvb_fail(NVM_ERR_VALUE, "[apply] there is no operation %d", op), NULL;
  nvg_node *few[FEW], **node = nin <= FEW ? few : nvb_alloc(sizeof *node * (size_t)nin);
  if (!node) return nvb_fail_memory(), NULL;
  nvg_node *r = gather(node, in, nin) ? nvg_apply((nvg_op)op, node, nin, attr, nattr, ctx->default_float) : NULL;
  if (node != few) nvb_free(node);
  if (r && nvh_settle(r)) nvg_node_unref(r), r = NULL;
  return nvh_array_new(ctx, r);
}
int nvm_op_count(void) { return NVG_NOPS; }
int nvm_op_get(nvm_op_info *out, int op) {
  static const char *const kinds[] = { "map", "reduction", "scan", "view", "select", "gather", "creation", "composition", "library",
                                       "leaf", "node" };
  if (op < 0 || op >= NVG_NOPS) return nvb_fail(NVM_ERR_VALUE, "[op_get] there is no operation %d", op);
  const nvg_op_info *o = &nvg_ops[op];
  *out = (nvm_op_info){ .name = o->name, .kind = kinds[o->kind], .signature = o->sig, .doc = o->doc, .nin = o->nin };
  return NVM_OK;
}
int nvm_op_find(int *out, const char *name) {
  int op = name[0] == '_' ? -1 : nvg_op_find(name);
  if (op < 0) return nvb_fail(NVM_ERR_VALUE, "there is no operation '%s'", name);
  *out = op;
  return NVM_OK;
}
