/* Infers the dtype and shape of an operation: the rules of rules.def, NumPy's promotion and broadcasting, and the
   fragment of a MAP row. It makes no node. */
#include "graph/infer.h"
#include <stdio.h>
#include <string.h>
#include "base/err.h"

enum { UP_P, UP_F, UP_B, UP_N, OUT_T, OUT_B, OUT_R, OUT_I };
typedef struct rule { const char *takes, *doc; uint8_t up, out; } rule;
static const rule rules[NVG_NRULES] = {
#define RULE(id, takes, up, out, doc) [NVG_R##id] = { takes, doc, UP_##up, OUT_##out },
#include "graph/rules.def"
#undef RULE
};

static int takes_class(const rule *r, const nvg_node *x) {
  return strchr(r->takes, "biifc"[nvg_weak_class(x)]) != NULL;
}

nvm_dtype nvg_dtype_in(nvg_node *n, nvm_dtype default_float) { return nvg_common(&n, 1, default_float); }

nvm_dtype nvg_common(nvg_node *const *in, int n, nvm_dtype default_float) {
  int typed = -1, weak = -1;
  for (int i = 0; i < n; i++) {
    if (!in[i]) continue;
    if (in[i]->weak) weak = in[i]->weak - 1 > weak ? in[i]->weak - 1 : weak;
    else typed = typed < 0 ? (int)in[i]->aval->dtype : (int)nvg_promote((nvm_dtype)typed, in[i]->aval->dtype);
  }
  if (typed < 0) typed = NVM_BOOL;
  return weak < 0 ? (nvm_dtype)typed : nvg_promote_weak((nvm_dtype)typed, (nvg_class)weak, default_float);
}

int nvg_converts(nvg_call *c, nvm_dtype from, nvm_dtype to) {
  if (nvg_parts(from) == 1 || nvg_parts(to) == 2 || to == NVM_BOOL) return NVM_OK;
  nvg_bad(c, NVM_ERR_TYPE, "complex numbers do not convert to %s; take real(x) or abs(x)", nvg_dtype_name(to));
  return NVM_ERR_TYPE;
}

int nvg_rule_in(const char *who, nvg_rule id, nvg_node *const *in, int n, nvm_dtype default_float) {
  const rule *r = &rules[id];
  for (int i = 0; i < n; i++)
    if ((!i || in[i]->aval->dtype != in[i - 1]->aval->dtype || in[i]->weak != in[i - 1]->weak) &&
        !takes_class(r, in[i])) {
      nvb_fail(NVM_ERR_TYPE, "[%s] does not take %s; it takes: %s", who, nvg_dtype_name(in[i]->aval->dtype), r->doc);
      return -1;
    }
  nvm_dtype t = nvg_common(in, n, default_float);
  nvg_class c = nvg_class_of(t);
  if (r->up == UP_B) return NVM_BOOL;
  if (r->up == UP_F && c < NVG_FLOAT) return default_float;
  return c == NVG_BOOLEAN && (id == NVG_RORDER || id == NVG_RARG) ? NVM_U8 : t;
}

nvm_dtype nvg_rule_out(nvg_rule r, nvm_dtype in) {
  switch (rules[r].out) {
  case OUT_B: return NVM_BOOL;
  case OUT_R: return nvg_real_of(in);
  case OUT_I: return NVM_I64;
  default: return in;
  }
}

const char *nvg_shape_text(char *out, int rank, const int64_t *shape) {
  size_t n = (size_t)snprintf(out, NVG_SHAPE_TEXT, "(");
  for (int d = 0; d < rank && n < NVG_SHAPE_TEXT; d++)
    n += (size_t)snprintf(out + n, NVG_SHAPE_TEXT - n, d ? ", %lld" : "%lld", (long long)shape[d]);
  if (n < NVG_SHAPE_TEXT) snprintf(out + n, NVG_SHAPE_TEXT - n, rank == 1 ? ",)" : ")");
  return out;
}

static int broadcast_fault(const char *who, nvg_node *const *in, int n) {
  char text[3][NVG_SHAPE_TEXT];
  int k = 0;
  for (int i = 0; i < n && k < 3; i++)
    if (in[i]->aval->rank) nvg_shape_text(text[k++], in[i]->aval->rank, in[i]->aval->shape);
  if (k < 3) return nvb_fail(NVM_ERR_VALUE, "[%s] shapes do not broadcast: %s and %s", who, text[0], text[1]);
  return nvb_fail(NVM_ERR_VALUE, "[%s] shapes do not broadcast: %s, %s and %s", who, text[0], text[1], text[2]);
}

int nvg_broadcast(const char *who, nvg_node *const *in, int n, int *rank, int64_t *shape) {
  int r = 0;
  for (int i = 0; i < n; i++) r = in[i]->aval->rank > r ? in[i]->aval->rank : r;
  for (int d = 0; d < r; d++) shape[d] = 1;
  for (int i = 0; i < n; i++) {
    const nvg_aval *a = in[i]->aval;
    for (int d = 0; d < a->rank; d++) {
      int64_t *to = &shape[r - a->rank + d];
      if (a->shape[d] == 1 || *to == a->shape[d]) continue;
      if (*to != 1) return broadcast_fault(who, in, n);
      *to = a->shape[d];
    }
  }
  *rank = r;
  return NVM_OK;
}

int nvg_broadcasts(const nvg_aval *a, int rank, const int64_t *shape) {
  int fits = a->rank <= rank;
  for (int d = 0; fits && d < a->rank; d++) fits = a->shape[d] == 1 || a->shape[d] == shape[rank - a->rank + d];
  return fits;
}

/* ---- fragments of MAP rows and of casts */
static _Atomic(const nvg_frag *) found[NVG_NOPS][NVM_NDTYPES];

/* The function of a MAP row for operands of this dtype, by name and operand types. */
typedef struct map_function { char name[64]; nvm_dtype type[2 * NVG_MAP_OPERANDS]; int n; } map_function;
static void set_function(map_function *m, nvg_op op, nvm_dtype in) {
  const nvg_op_info *o = &nvg_ops[op];
  nvm_dtype part = nvg_compute_of(nvg_real_of(in));
  int parts = nvg_parts(in);
  m->n = 0;
  for (int i = 0; i < o->nin; i++) {
    int flag = o->rule == NVG_RWHERE && i == 0;
    for (int k = 0; k < (flag ? 1 : parts); k++) m->type[m->n++] = flag ? NVM_BOOL : i < o->def.ints ? NVM_I64 : part;
  }
  const char *base = in == NVM_BOOL && o->def.boolean ? o->def.boolean : o->def.frag;
  snprintf(m->name, sizeof m->name, "%s%s", parts == 2 ? "c." : "", base);
}
static int fail_undefined(nvg_op op, nvm_dtype in) {
  if (nvb_status() == NVM_ERR_MEMORY) return NVM_ERR_MEMORY;
  return nvb_fail(NVM_ERR_TYPE, "[%s] is not defined for %s", nvg_ops[op].name, nvg_dtype_name(in));
}
const nvg_frag *nvg_map_frag(nvg_op op, nvm_dtype in) {
  const nvg_frag *f = atomic_load_explicit(&found[op][in], memory_order_acquire);
  if (f) return f;
  map_function m;
  set_function(&m, op, in);
  if (!(f = nvg_frag_find(m.name, m.type, m.n))) return fail_undefined(op, in), NULL;
  atomic_store_explicit(&found[op][in], f, memory_order_release);
  return f;
}
int nvg_map_defined(nvg_op op, nvm_dtype in) {
  static _Atomic uint8_t defined[NVG_NOPS][NVM_NDTYPES];
  if (atomic_load_explicit(&defined[op][in], memory_order_relaxed)) return 1;
  map_function m;
  set_function(&m, op, in);
  if (!nvg_frag_defined(m.name, m.type, m.n)) return fail_undefined(op, in), 0;
  atomic_store_explicit(&defined[op][in], 1, memory_order_relaxed);
  return 1;
}

static _Atomic(const nvg_frag *) casts[NVM_NDTYPES][NVM_NDTYPES];
const nvg_frag *nvg_cast_frag(nvm_dtype from, nvm_dtype to) {
  const nvg_frag *f = atomic_load_explicit(&casts[from][to], memory_order_acquire);
  if (!f && (f = nvg_frag_cast(from, to))) atomic_store_explicit(&casts[from][to], f, memory_order_release);
  return f;
}

int nvg_is_two(const nvg_node *n) {
  nvm_dtype t = n->aval->dtype;
  if (n->op != NVG_OP_CONST || nvg_parts(t) == 2) return 0;
  return nvg_class_of(t) < NVG_FLOAT ? n->attr[0] == 2 : nvg_bits_float(t, (uint64_t)n->attr[0]) == 2;
}
