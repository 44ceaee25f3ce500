/* Implements nvg_apply: one call of an operation from its operands and named attributes. It finds the builder, reads
   attributes and names the operation in every message; it never decides what an operation is made of. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "graph/infer.h"

typedef nvg_node *maker(nvg_call *c);
#define MAKER_MAP(id) NULL
#define MAKER_LEAF(id) NULL
#define MAKER_NODE(id) NULL
#define MAKER_CALL(id) NULL
#define MAKER_RED(id) nvg_make_reduction
#define MAKER_SCAN(id) nvg_make_scan
#define MAKER_VIEW(id) nvg_make_##id
#define MAKER_SEL(id) nvg_make_##id
#define MAKER_GATHER(id) nvg_make_##id
#define MAKER_GEN(id) nvg_make_##id
#define MAKER_FUN(id) nvg_make_##id
static maker *const makers[NVG_NOPS] = {
#define OP(kind, id, c, name, nin, rule, def, sig, doc) [NVG_OP_##id] = MAKER_##kind(id),
#include "graph/ops.def"
#undef OP
};

/* The name in messages: that of an operation for bindings without its underscore. */
static const char *shown(nvg_op op) { return nvg_ops[op].name + (nvg_ops[op].name[0] == '_'); }

nvg_node *nvg_bad(nvg_call *c, int status, const char *fmt, ...) {
  char text[900];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  nvb_fail(status, "[%s] %s", shown(c->op), text);
  return NULL;
}

nvg_node *nvg_no_elements(nvg_call *c, const nvg_node *x) {
  char shape[NVG_SHAPE_TEXT];
  return nvg_bad(c, NVM_ERR_VALUE, "a reduction over no elements of %s %s has no value", nvg_dtype_name(x->aval->dtype),
                 nvg_shape_text(shape, x->aval->rank, x->aval->shape));
}

/* ---- attributes */
const nvg_attr *nvg_attr_get(nvg_call *c, const char *name) {
  for (int i = 0; i < c->nattr; i++)
    if (!strcmp(c->attr[i].name, name)) {
      c->used |= 1ull << i;
      return c->attr[i].kind == 'n' ? NULL : &c->attr[i];
    }
  return NULL;
}
int nvg_attr_none(const nvg_call *c, const char *name) {
  int none = 0;
  for (int i = 0; i < c->nattr; i++) none |= !strcmp(c->attr[i].name, name) && c->attr[i].kind == 'n';
  return none;
}

static int fail_misfit(nvg_call *c, const char *name, const char *want) {
  nvg_bad(c, NVM_ERR_TYPE, "%s must be %s", name, want);
  return NVM_ERR_TYPE;
}

int nvg_attr_int(nvg_call *c, const char *name, int64_t def, int64_t *out) {
  const nvg_attr *a = nvg_attr_get(c, name);
  *out = a ? a->i : def;
  return !a || a->kind == 'i' || a->kind == 'b' ? NVM_OK : fail_misfit(c, name, "an integer");
}

int nvg_attr_float(nvg_call *c, const char *name, double def, double *out) {
  const nvg_attr *a = nvg_attr_get(c, name);
  *out = !a ? def : a->kind == 'f' ? a->f : (double)a->i;
  return !a || strchr("ibf", a->kind) ? NVM_OK : fail_misfit(c, name, "a real number");
}

int nvg_attr_dtype(nvg_call *c, const char *name, int def, int *out) {
  const nvg_attr *a = nvg_attr_get(c, name);
  if (a && a->kind != 'd') return fail_misfit(c, name, "a dtype");
  *out = !a || a->i == NVM_DTYPE_DEFAULT ? def : (int)a->i;
  return !a || a->i == NVM_DTYPE_DEFAULT || (a->i >= 0 && a->i < NVM_NDTYPES) ? NVM_OK
                                                                              : fail_misfit(c, name, "a dtype");
}

int nvg_attr_ints(nvg_call *c, const char *name, int max, int64_t *out, int *n) {
  const nvg_attr *a = nvg_attr_get(c, name);
  *n = -1;
  if (!a) return NVM_OK;
  if (a->kind == 'i') return out[0] = a->i, *n = 1, NVM_OK;
  if (a->kind != 'I') return fail_misfit(c, name, "an integer or a list of integers");
  if (a->n > max) {
    nvg_bad(c, NVM_ERR_VALUE, "%s has %d entries; at most %d are possible", name, a->n, max);
    return NVM_ERR_VALUE;
  }
  for (int i = 0; i < a->n; i++) out[i] = a->is[i];
  *n = a->n;
  return NVM_OK;
}

int nvg_attr_text(nvg_call *c, const char *name, int max, char *out) {
  const nvg_attr *a = nvg_attr_get(c, name);
  int n = 0;
  if (!a || a->kind != 's') return fail_misfit(c, name, "a text");
  for (int i = 0; i < a->n; i++) {
    if (a->is[i] == ' ') continue;
    if (n + 1 >= max || a->is[i] < 33 || a->is[i] > 126) {
      nvg_bad(c, NVM_ERR_VALUE, n + 1 >= max ? "%s is too long" : "%s has characters that mean nothing here", name);
      return NVM_ERR_VALUE;
    }
    out[n++] = (char)a->is[i];
  }
  out[n] = 0;
  return NVM_OK;
}

int nvg_axis(nvg_call *c, int64_t axis, int rank, int *d) {
  if (axis >= rank || axis < -rank) {
    nvg_bad(c, NVM_ERR_INDEX, "axis %lld is out of range for %d dimensions", (long long)axis, rank);
    return NVM_ERR_INDEX;
  }
  *d = (int)(axis < 0 ? axis + rank : axis);
  return NVM_OK;
}

int nvg_attr_axes(nvg_call *c, const char *name, int rank, uint32_t *mask) {
  int64_t axes[NVM_MAX_RANK];
  int n, status = nvg_attr_ints(c, name, NVM_MAX_RANK, axes, &n);
  if (status) return status;
  *mask = n < 0 ? (uint32_t)((1ull << rank) - 1) : 0;
  for (int i = 0, d; i < n; i++) {
    if ((status = nvg_axis(c, axes[i], rank, &d))) return status;
    if (*mask >> d & 1) {
      nvg_bad(c, NVM_ERR_VALUE, "axis %lld is given twice", (long long)axes[i]);
      return NVM_ERR_VALUE;
    }
    *mask |= 1u << d;
  }
  return NVM_OK;
}

int nvg_attr_axis(nvg_call *c, const char *name, int rank, int64_t def, int *axis) {
  int64_t v;
  int status = nvg_attr_int(c, name, def, &v);
  return status ? status : nvg_axis(c, v, rank, axis);
}

/* ---- devices */
const char *nvg_device_name(char out[16], int device) {
  snprintf(out, 16, device > 1 ? "cuda:%d" : "cpu", device - 2);
  return out;
}

static int two_devices(const char *who, const nvg_node *a, const nvg_node *b) {
  char da[16], db[16], sa[NVG_SHAPE_TEXT], sb[NVG_SHAPE_TEXT];
  nvb_fail(NVM_ERR_VALUE, "[%s] operands were put on two devices: %s %s on %s and %s %s on %s; move one with to_device",
           who, nvg_dtype_name(a->aval->dtype), nvg_shape_text(sa, a->aval->rank, a->aval->shape),
           nvg_device_name(da, a->device), nvg_dtype_name(b->aval->dtype),
           nvg_shape_text(sb, b->aval->rank, b->aval->shape), nvg_device_name(db, b->device));
  return -1;
}

int nvg_device_join(const char *who, nvg_node *const *in, int n) {
  const nvg_node *first = NULL;
  for (int i = 0; i < n; i++) {
    if (!in[i] || !in[i]->device) continue;
    if (!first) first = in[i];
    else if (first->device != in[i]->device) return two_devices(who, first, in[i]);
  }
  return first ? first->device : 0;
}

/* Puts a result on its operands' device. A result that is one of the operands keeps its own device. */
static nvg_node *put_on_device(nvg_node *r, int device, nvg_node *const *in, int nin) {
  if (!r || r->device == device) return r;
  for (int i = 0; i < nin; i++)
    if (r == in[i]) return r;
  r->device = (uint8_t)device;
  return r;
}

/* ---- the call */
/* Returns 1 if operand i may be absent, that is, if the signature gives it a default. No operand of a list may be. */
static int is_optional(const nvg_op_info *o, int i) {
  if (o->nin < 0) return 0;
  const char *s = o->sig + 1;
  for (; i && *s; s++) i -= *s == ',' && s[-1] != '/';
  if (!strncmp(s, " /,", 3)) s += 3;
  return s[strcspn(s, "=,)")] == '=';
}

int nvg_check_operands(nvg_op op, nvg_node *const *in, int nin) {
  const nvg_op_info *o = &nvg_ops[op];
  if (o->kind == NVG_KLEAF || o->kind == NVG_KNODE || o->kind == NVG_KCALL)
    return nvb_fail(NVM_ERR_VALUE, "[%s] is not an operation that can be called", o->name);
  if (o->nin >= 0 && nin != o->nin)
    return nvb_fail(NVM_ERR_VALUE, "[%s] takes %d operands, not %d: %s", shown(op), o->nin, nin, o->sig);
  for (int i = 0; i < nin; i++)
    if (!in[i] && !is_optional(o, i)) return nvb_fail(NVM_ERR_VALUE, "[%s] operand %d is absent", shown(op), i + 1);
  return NVM_OK;
}

static int check_unused(nvg_call *c) {
  for (int i = 0; i < c->nattr; i++)
    if (!(c->used >> i & 1) && c->attr[i].kind != 'n') {
      nvg_bad(c, NVM_ERR_VALUE, "has no attribute %s: %s", c->attr[i].name, nvg_ops[c->op].sig);
      return NVM_ERR_VALUE;
    }
  return NVM_OK;
}

/* Replaces the op's name in a message of an inner operation by that of the operation the user called. */
static nvg_node *rename_fault(nvg_op op, nvg_node *r) {
  if (r || nvb_status() == NVM_ERR_MEMORY) return r;
  char text[1024];
  const char *m = nvb_message(), *end = m[0] == '[' ? strstr(m, "] ") : NULL;
  snprintf(text, sizeof text, "%s", end ? end + 2 : m);
  nvb_fail(nvb_status(), "[%s] %s", shown(op), text);
  return NULL;
}

nvg_node *nvg_apply(nvg_op op, nvg_node *const *in, int nin, const nvg_attr *attr, int nattr, nvm_dtype default_float) {
  const nvg_op_info *o = &nvg_ops[op];
  if (nvg_check_operands(op, in, nin)) return NULL;
  int device = nvg_device_join(shown(op), in, nin);
  if (device < 0) return NULL;
  if (o->kind == NVG_KMAP && !nattr)
    return put_on_device(rename_fault(op, nvg_map(op, in, nin, default_float)), device, in, nin);
  nvg_call c = { .op = op,
                 .in = in,
                 .nin = nin,
                 .attr = attr,
                 .nattr = nattr > 64 ? 64 : nattr,
                 .used = 0,
                 .default_float = default_float,
                 .nown = 0,
                 .cap = 24 };
  c.own = c.inl;
  nvg_node *r = makers[op] ? makers[op](&c) : nvg_keep(&c, nvg_map(op, in, nin, default_float));
  if (r && check_unused(&c)) r = NULL;
  nvg_node_ref(r);
  nvg_call_end(&c);
  return put_on_device(rename_fault(op, r), device, in, nin);
}
