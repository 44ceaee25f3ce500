/* The public constructors: one generic entry for every operation, and the functions of nvm/ops.h on top of it. Never
   infers dtypes or shapes: the graph layer does. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/api.h"
#include "base/mem.h"
#include "nvm/linalg.h"

/* ---- the generic entry */
enum { FEW = 16 };

static int gather_nodes(nvm_ctx *ctx, nvg_op op, nvg_node **node, nvm_array *const *in, int nin) {
  for (int i = 0; i < nin; i++) {
    /* a NULL from a failed call passes through, with that failure's message */
    if (!in[i]) return nva_null(nvg_ops[op].name, "operand"), 0;
    if (in[i]->ctx != ctx && in[i] != &nva_none) return nva_two_contexts(nvg_ops[op].name), 0;
    node[i] = in[i] == &nva_none ? NULL : nva_node(in[i]);
    if (!node[i] && in[i] != &nva_none) return 0;
  }
  return 1;
}
/* Puts a node without a device on the thread's device; takes n. */
static nvg_node *put_on_thread_device(nvg_node *n, int dev) {
  nvg_node *r = n->weak ? nvg_node_ref(n) : nvg_put(n, dev);
  nvg_node_unref(n);
  return r;
}
static nvm_array *apply_op(nvm_ctx *ctx, nvg_op op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr);

/* Some operations run on the CPU alone, and linear algebra where cuSOLVER is missing: arrays on a GPU are copied to the
   host, and the result back to the GPU; arrays without a device stay on the CPU. In a trace the function follows its
   arguments' device. */
enum { HOST_OPERANDS = 3 };
static int is_of_host(nvg_op op, nvm_device gpu) {
  int host = nvg_ops[op].def.host && !nva_tracing();
  return host && !(nvg_ops[op].def.host == NVG_WITHOUT_SOLVER && gpu > NVM_DEVICE_CPU && nvd_cusolver_usable());
}
/* The GPU on which an operand of such an operation is; NVM_DEVICE_CPU if none is, or the GPU does it. */
static nvm_device find_gpu(nvg_op op, nvm_array *const *in, int nin) {
  for (int i = 0; i < nin && nin <= HOST_OPERANDS && nvg_ops[op].def.host; i++) {
    nvm_device d = in[i] && in[i] != &nva_none ? nvm_device_of(in[i]) : NVM_DEVICE_CPU;
    if (d > NVM_DEVICE_CPU) return is_of_host(op, d) ? d : NVM_DEVICE_CPU;
  }
  return NVM_DEVICE_CPU;
}
static nvm_array *apply_on_host(nvm_ctx *ctx, nvg_op op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr,
                                nvm_device there) {
  nvm_array *here[HOST_OPERANDS] = { NULL }, *made = NULL;
  int n = 0;
  while (n < nin && (here[n] = in[n] && in[n] != &nva_none ? nvm_array_to_device(in[n], NVM_DEVICE_CPU) : in[n])) n++;
  if (n == nin) made = apply_op(ctx, op, here, nin, attr, nattr);
  nvm_array *back = made ? nvm_array_to_device(made, there) : NULL;
  for (int i = 0; i < n; i++)
    if (here[i] != in[i]) nvm_array_unref(here[i]);
  nvm_array_unref(made);
  return back;
}

int nva_check_call(const char *who, nvm_ctx *ctx, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr) {
  if (!ctx) return nva_missing(who, "context");
  if (nin < 0) return nvb_fail(NVM_ERR_VALUE, "[%s] the number of operands is %d; it must be 0 or more", who, nin);
  if (nattr < 0 || nattr > 64)
    return nvb_fail(NVM_ERR_VALUE, "[%s] the number of attributes is %d; it must be from 0 to 64", who, nattr);
  if (nin && !in) return nva_missing(who, "list of operands");
  if (nattr && !attr) return nva_missing(who, "list of attributes");
  for (int i = 0; i < nattr; i++) {
    int list = attr[i].kind == 'I' || attr[i].kind == 's';
    if (!attr[i].name) return nva_missing(who, "name of an attribute");
    if (list && attr[i].n < 0) return nvb_fail(NVM_ERR_VALUE, "[%s] %s of %d entries", who, attr[i].name, attr[i].n);
    if (list && attr[i].n && !attr[i].is) return nva_missing(who, attr[i].name);
  }
  return NVM_OK;
}
static nvg_node *put_without_device(nvg_op op, nvg_node *n) {
  nvm_device there = nva_default_device();
  if (is_of_host(op, there)) there = NVM_DEVICE_CPU;
  else if (!there) return n;
  return put_on_thread_device(n, there);
}
static nvm_array *apply_op(nvm_ctx *ctx, nvg_op op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr) {
  if (nva_check_call(nvg_ops[op].name, ctx, in, nin, attr, nattr)) return NULL;
  nvm_device gpu = find_gpu(op, in, nin);
  if (gpu > NVM_DEVICE_CPU) return apply_on_host(ctx, op, in, nin, attr, nattr, gpu);
  nvg_node *few[FEW], **node = nin <= FEW ? few : nvb_alloc(sizeof *node * (size_t)nin);
  if (!node) return nvb_fail_memory(), NULL;
  int ready = gather_nodes(ctx, op, node, in, nin);
  nvm_array *number;
  if (ready && !nattr && nva_compute_at_once(&number, ctx, op, node, nin)) return number;
  nvg_node *r = ready ? nvg_apply(op, node, nin, attr, nattr, ctx->default_float) : NULL;
  if (node != few) nvb_free(node);
  if (r && !r->device && (nvg_ops[op].def.host || nva_default_device())) r = put_without_device(op, r);
  if (r && nva_eval_if_deep(ctx, r)) nvg_node_unref(r), r = NULL;
  return nva_array_new(ctx, r);
}
static int can_be_called(int op) {
  return op >= 0 && op < NVG_NOPS && (nvg_ops[op].name[0] != '_' || nvg_ops[op].kind == NVG_KGATHER);
}
nvm_array *nvm_apply(nvm_ctx *ctx, int op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr) {
  if (!can_be_called(op)) return nvb_fail(NVM_ERR_VALUE, "[apply] there is no operation %d", op), NULL;
  return apply_op(ctx, (nvg_op)op, in, nin, attr, nattr);
}
int nvm_op_count(void) { return NVG_NOPS; }
/* What an operation does, and on a second line the dtypes of its rule, made when it is first asked for; NULL: out of
   memory. */
static const char *doc_of(int op) {
  static const char *const dtypes[] = {
#define RULE(id, takes, up, out, doc) [NVG_R##id] = doc,
#include "graph/rules.def"
#undef RULE
  };
  static _Atomic(char *) docs[NVG_NOPS];
  const nvg_op_info *o = &nvg_ops[op];
  if (o->rule == NVG_RNONE) return o->doc;
  char *made = docs[op], *none = NULL;
  if (made) return made;
  size_t n = strlen(o->doc) + strlen(dtypes[o->rule]) + 16;
  if (!(made = malloc(n))) return NULL;
  snprintf(made, n, "%s\nDtypes: %s.", o->doc, dtypes[o->rule]);
  if (atomic_compare_exchange_strong(&docs[op], &none, made)) return made;
  free(made);
  return none;
}
int nvm_op_get(nvm_op_info *out, int op) {
  static const char *const kinds[] = { "map",      "reduction",   "scan",    "view", "select", "gather",
                                       "creation", "composition", "library", "leaf", "node" };
  if (!out) return nva_missing("op_get", "pointer for the answer");
  if (op < 0 || op >= NVG_NOPS) return nvb_fail(NVM_ERR_VALUE, "[op_get] there is no operation %d", op);
  const nvg_op_info *o = &nvg_ops[op];
  const char *doc = doc_of(op);
  if (!doc) return nvb_fail(NVM_ERR_MEMORY, "[op_get] out of memory");
  *out = (nvm_op_info){ .name = o->name, .kind = kinds[o->kind], .signature = o->sig, .doc = doc, .nin = o->nin };
  return NVM_OK;
}
int nvm_op_find(int *out, const char *name) {
  if (!out || !name) return nva_missing("op_find", name ? "pointer for the number" : "name");
  int op = nvg_op_find(name);
  if (!can_be_called(op)) return nvb_fail(NVM_ERR_VALUE, "there is no operation '%s'", name);
  *out = op;
  return NVM_OK;
}

/* ---- nvm/ops.h: the innermost scope owns the results. The functions of MAP, RED and SCAN rows come from the table: a
   row without its prototype does not compile (-Werror=missing-prototypes). */
static nvm_array *make_op(nvg_op op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr) {
  nvm_ctx *c = nva_scope_ctx();
  return c ? nva_scope_keep(apply_op(c, op, in, nin, attr, nattr)) : NULL;
}
#define MAKE(op, in, ...) \
  make_op(NVG_OP_##op, in, (int)(sizeof(in) / sizeof *(in)), (nvm_attr[]){ __VA_ARGS__ }, \
       (int)(sizeof((nvm_attr[]){ __VA_ARGS__ }) / sizeof(nvm_attr)))
#define IN(...) ((nvm_array *[]){ __VA_ARGS__ })

static nvm_attr int_attr(const char *name, int64_t v) { return (nvm_attr){ .name = name, .kind = 'i', .i = v }; }
static nvm_attr bool_attr(const char *name, int v) { return (nvm_attr){ .name = name, .kind = 'b', .i = v != 0 }; }
static nvm_attr a_float(const char *name, double v) { return (nvm_attr){ .name = name, .kind = 'f', .f = v }; }
static nvm_attr a_dtype(nvm_dtype t) {
  return (nvm_attr){ .name = "dtype", .kind = t == NVM_DTYPE_DEFAULT ? 'n' : 'd', .i = t };
}
static nvm_attr some_ints(const char *name, const int64_t *v, int n) {
  return (nvm_attr){ .name = name, .kind = 'I', .is = v, .n = n };
}
typedef struct axes { int64_t at[NVM_MAX_RANK + 1]; } axes;
/* axis NULL: absent, that is all axes. An impossible number of axes is passed on, so that the operation rejects it. */
static nvm_attr axes_attr(axes *keep, const int *axis, int n) {
  if (!axis) return (nvm_attr){ .name = "axis", .kind = 'n' };
  *keep = (axes){ { 0 } };
  if (n < 0 || n > NVM_MAX_RANK) return some_ints("axis", keep->at, NVM_MAX_RANK + 1);
  for (int i = 0; i < n; i++) keep->at[i] = axis[i];
  return n == 1 ? int_attr("axis", keep->at[0]) : some_ints("axis", keep->at, n);
}

#define MAP_1(id, c) nvm_array *nvm_##c(nvm_array *x) { return make_op(NVG_OP_##id, &x, 1, NULL, 0); }
#define MAP_2(id, c) \
  nvm_array *nvm_##c(nvm_array *x1, nvm_array *x2) { return make_op(NVG_OP_##id, IN(x1, x2), 2, NULL, 0); }
#define MAP_3(id, c) \
  nvm_array *nvm_##c(nvm_array *x1, nvm_array *x2, nvm_array *x3) { \
    return make_op(NVG_OP_##id, IN(x1, x2, x3), 3, NULL, 0); \
  }
#define BY_MAP(id, c, nin) MAP_##nin(id, c)
#define BY_RED(id, c, nin) \
  nvm_array *nvm_##c(nvm_array *x, const int *axis, int n, int keepdims) { \
    axes keep; \
    return MAKE(id, IN(x), axes_attr(&keep, axis, n), bool_attr("keepdims", keepdims)); \
  }
#define BY_SCAN(id, c, nin) nvm_array *nvm_##c(nvm_array *x, int axis) \
  { return MAKE(id, IN(x), int_attr("axis", axis)); }
#define BY_LEAF(id, c, nin)
#define BY_NODE(id, c, nin)
#define BY_CALL(id, c, nin)
#define BY_VIEW(id, c, nin)
#define BY_SEL(id, c, nin)
#define BY_GATHER(id, c, nin)
#define BY_GEN(id, c, nin)
#define BY_FUN(id, c, nin)
#define OP(kind, id, c, name, nin, rule, def, sig, doc) BY_##kind(id, c, nin)
#include "graph/ops.def"
#undef OP

/* ---- compositions with options */
BY_RED(COUNT_NONZERO, count_nonzero, 1)
BY_RED(MEAN, mean, 1)
BY_RED(LOGSUMEXP, logsumexp, 1)
BY_SCAN(SOFTMAX, softmax, 1)
BY_SCAN(LOG_SOFTMAX, log_softmax, 1)
MAP_3(CLIP, clip)
nvm_array *nvm_isclose(nvm_array *x1, nvm_array *x2, double rtol, double atol, int equal_nan) {
  return MAKE(ISCLOSE, IN(x1, x2), a_float("rtol", rtol), a_float("atol", atol), bool_attr("equal_nan", equal_nan));
}
nvm_array *nvm_astype(nvm_array *x, nvm_dtype dtype) { return MAKE(ASTYPE, IN(x), a_dtype(dtype)); }
static nvm_array *make_statistic(nvg_op op, nvm_array *x, const int *axis, int n, double correction, int keepdims) {
  axes keep;
  nvm_attr at[] = { axes_attr(&keep, axis, n), a_float("correction", correction), bool_attr("keepdims", keepdims) };
  return make_op(op, &x, 1, at, 3);
}
nvm_array *nvm_var(nvm_array *x, const int *axis, int n, double correction, int keepdims) {
  return make_statistic(NVG_OP_VAR, x, axis, n, correction, keepdims);
}
nvm_array *nvm_std(nvm_array *x, const int *axis, int n, double correction, int keepdims) {
  return make_statistic(NVG_OP_STD, x, axis, n, correction, keepdims);
}
nvm_array *nvm_vector_norm(nvm_array *x, double ord, const int *axis, int n, int keepdims) {
  axes keep;
  return MAKE(VECTOR_NORM, IN(x), a_float("ord", ord), axes_attr(&keep, axis, n), bool_attr("keepdims", keepdims));
}

/* ---- sorting */
nvm_array *nvm_sort(nvm_array *x, int axis, int descending) {
  return MAKE(SORT, IN(x), int_attr("axis", axis), bool_attr("descending", descending));
}
nvm_array *nvm_argsort(nvm_array *x, int axis, int descending) {
  return MAKE(ARGSORT, IN(x), int_attr("axis", axis), bool_attr("descending", descending));
}
nvm_array *nvm_flatnonzero(nvm_array *x, int64_t size) { return MAKE(FLATNONZERO, IN(x), int_attr("size", size)); }
nvm_array *nvm_searchsorted(nvm_array *x1, nvm_array *x2, int right) {
  return MAKE(SEARCHSORTED, IN(x1, x2), bool_attr("right", right));
}

/* ---- Fourier transforms */
static nvm_attr norm_attr(nvm_norm norm) {
  static const int64_t names[][8] = { { 'b', 'a', 'c', 'k', 'w', 'a', 'r', 'd' },
                                      { 'o', 'r', 't', 'h', 'o' },
                                      { 'f', 'o', 'r', 'w', 'a', 'r', 'd' } };
  static const int length[] = { 8, 5, 7 };
  int known = (int)norm >= 0 && norm <= NVM_NORM_FORWARD; /* any other one is passed on, to be rejected */
  return (nvm_attr){ .name = "norm", .kind = 's', .is = names[known ? norm : 0], .n = known ? length[norm] : 0 };
}
static nvm_attr points_attr(int64_t n) { return (nvm_attr){ .name = "n", .kind = n == -1 ? 'n' : 'i', .i = n }; }
static nvm_array *transform_axes(nvg_op op, nvm_array *x, const int64_t *s, const int *axis, int n, nvm_norm norm) {
  axes keep;
  nvm_attr at[] = { axes_attr(&keep, axis, n), some_ints("s", s, s ? n : 0), norm_attr(norm) };
  at[0].name = "axes";
  if (!s) at[1].kind = 'n';
  return make_op(op, &x, 1, at, 3);
}
#define TRANSFORM(id, c) \
  nvm_array *nvm_##c(nvm_array *x, int64_t n, int axis, nvm_norm norm) { \
    return MAKE(id, IN(x), points_attr(n), int_attr("axis", axis), norm_attr(norm)); \
  }
#define TRANSFORMS(id, c) \
  nvm_array *nvm_##c(nvm_array *x, const int64_t *s, const int *axis, int n, nvm_norm norm) { \
    return transform_axes(NVG_OP_##id, x, s, axis, n, norm); \
  }
#define SHIFT(id, c) \
  nvm_array *nvm_##c(nvm_array *x, const int *axis, int n) { \
    axes keep; \
    nvm_attr at = axes_attr(&keep, axis, n); \
    at.name = "axes"; \
    return make_op(NVG_OP_##id, &x, 1, &at, 1); \
  }
TRANSFORM(FFT, fft)
TRANSFORM(IFFT, ifft)
TRANSFORM(RFFT, rfft)
TRANSFORM(IRFFT, irfft)
TRANSFORM(HFFT, hfft)
TRANSFORM(IHFFT, ihfft)
TRANSFORMS(FFTN, fftn)
TRANSFORMS(IFFTN, ifftn)
TRANSFORMS(RFFTN, rfftn)
TRANSFORMS(IRFFTN, irfftn)
TRANSFORMS(FFT2, fft2)
TRANSFORMS(IFFT2, ifft2)
TRANSFORMS(RFFT2, rfft2)
TRANSFORMS(IRFFT2, irfft2)
SHIFT(FFTSHIFT, fftshift)
SHIFT(IFFTSHIFT, ifftshift)

/* ---- products */
int nvm_precision_find(nvm_precision *out, const char *name) {
  static const struct {
    const char *name;
    nvm_precision p;
  } known[] = { { "ieee", NVM_PRECISION_IEEE },
                { "highest", NVM_PRECISION_IEEE },
                { "tf32", NVM_PRECISION_TF32 },
                { "bf16x3", NVM_PRECISION_BF16X3 },
                { "bf16x9", NVM_PRECISION_BF16X9 } };
  if (!out || !name) return nva_missing("precision_find", name ? "pointer for the precision" : "name");
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].name, name)) return *out = known[i].p, NVM_OK;
  return nvb_fail(NVM_ERR_VALUE, "there is no precision '%s'; there are ieee (or highest), tf32, bf16x3, bf16x9", name);
}
/* Makes a product, with its options as two more attributes. */
static nvm_array *make_product(nvg_op op, nvm_array *const *in, int nin, nvm_attr first, const nvm_matmul_options *o) {
  /* dtype 0 is bool, which no product has: it means absent */
  nvm_attr at[3] = { first, a_dtype(o && o->dtype ? o->dtype : NVM_DTYPE_DEFAULT),
                     int_attr("precision", o ? (int64_t)o->precision : 0) };
  if (o && o->version != NVM_MATMUL_OPTIONS_VERSION) {
    nvb_fail(NVM_ERR_VALUE, "[%s] options version %u is unknown; this library has %d", nvg_ops[op].name, o->version,
             NVM_MATMUL_OPTIONS_VERSION);
    return nva_scope_keep(NULL);
  }
  return make_op(op, in, nin, at, 3);
}
MAP_2(MATMUL, matmul)
nvm_array *nvm_matmul_opt(nvm_array *x1, nvm_array *x2, const nvm_matmul_options *o) {
  return make_product(NVG_OP_MATMUL, IN(x1, x2), 2, (nvm_attr){ .name = "", .kind = 'n' }, o);
}
nvm_array *nvm_scaled_matmul(nvm_array *a, nvm_array *b, nvm_array *scale_a, nvm_array *scale_b, nvm_dtype dtype) {
  return MAKE(SCALED_MATMUL, IN(a, b, scale_a, scale_b), a_dtype(dtype));
}
nvm_array *nvm_tensordot(nvm_array *x1, nvm_array *x2, const int *axes1, const int *axes2, int n,
                         const nvm_matmul_options *o) {
  int64_t at[2 * NVM_MAX_RANK];
  if (!axes1 || !axes2) return make_product(NVG_OP_TENSORDOT, IN(x1, x2), 2, int_attr("axes", n), o);
  if (n < 0 || n > NVM_MAX_RANK) {
    nvb_fail(NVM_ERR_VALUE, "[tensordot] %d axes; an array has at most %d", n, NVM_MAX_RANK);
    return nva_scope_keep(NULL);
  }
  for (int i = 0; i < n; i++) at[i] = axes1[i], at[n + i] = axes2[i];
  return make_product(NVG_OP_TENSORDOT, IN(x1, x2), 2, some_ints("axes", at, 2 * n), o);
}
/* Makes a string attribute. Returns its characters, which the caller frees; NULL if memory runs out. */
static int64_t *a_text(nvm_attr *at, const char *name, const char *s) {
  int n = (int)strlen(s);
  int64_t *text = nvb_alloc(sizeof *text * (size_t)(n + 1));
  for (int i = 0; text && i < n; i++) text[i] = s[i];
  *at = (nvm_attr){ .name = name, .kind = 's', .is = text, .n = n };
  return text ? text : (nvb_fail_memory(), NULL);
}
nvm_array *nvm_einsum(const char *subscripts, nvm_array *const *operands, int n, const nvm_matmul_options *o) {
  nvm_attr at;
  int64_t *text = a_text(&at, "subscripts", subscripts ? subscripts : "");
  nvm_array *r = text ? make_product(NVG_OP_EINSUM, operands, n, at, o) : nva_scope_keep(NULL);
  nvb_free(text);
  return r;
}
int nvm_einsum_path(int (*pairs)[2], double *operations, const char *subscripts, nvm_array *const *operands, int n,
                    nvm_order order) {
  nvm_attr at;
  if (!pairs || !operations) return nva_missing("einsum_path", pairs ? "pointer for a number" : "pointer for pairs");
  if (n > 0 && !operands) return nva_missing("einsum_path", "list of operands");
  int64_t *text = a_text(&at, "subscripts", subscripts ? subscripts : "");
  nvg_node **node = nvb_alloc(sizeof *node * (size_t)(n > 0 ? n : 1));
  int status = NVM_OK;
  for (int i = 0; i < n && !status; i++)
    if (!operands[i]) status = nva_null("einsum_path", "operand");
  if (!text || !node) status = nvb_fail_memory();
  if (!status && !gather_nodes(n > 0 ? operands[0]->ctx : NULL, NVG_OP_EINSUM, node, operands, n))
    status = nvb_status();
  if (!status) status = nvg_einsum_path(pairs, operations, node, n, at, order);
  nvb_free(text);
  nvb_free(node);
  return status;
}
nvm_array *nvm_vecdot(nvm_array *x1, nvm_array *x2, int axis) {
  return MAKE(VECDOT, IN(x1, x2), int_attr("axis", axis));
}

/* ---- views and rearrangements */
nvm_array *nvm_reshape(nvm_array *x, int rank, const int64_t *shape) {
  return MAKE(RESHAPE, IN(x), some_ints("shape", shape, rank));
}
nvm_array *nvm_permute_dims(nvm_array *x, const int *axis) {
  int64_t at[NVM_MAX_RANK];
  int n = nvm_rank(x);
  for (int i = 0; i < n && axis; i++) at[i] = axis[i];
  return MAKE(PERMUTE_DIMS, IN(x), some_ints("axes", axis ? at : NULL, n));
}
MAP_1(MATRIX_TRANSPOSE, matrix_transpose)
nvm_array *nvm_moveaxis(nvm_array *x, int source, int destination) {
  return MAKE(MOVEAXIS, IN(x), int_attr("source", source), int_attr("destination", destination));
}
BY_SCAN(EXPAND_DIMS, expand_dims, 1)
BY_SCAN(SQUEEZE, squeeze, 1)
nvm_array *nvm_broadcast_to(nvm_array *x, int rank, const int64_t *shape) {
  return MAKE(BROADCAST_TO, IN(x), some_ints("shape", shape, rank));
}
static const int64_t *unit_steps(void) {
  static const int64_t one[NVM_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                             1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
  return one;
}
nvm_array *nvm_slice(nvm_array *x, const int64_t *start, const int64_t *count, const int64_t *step) {
  int n = nvm_rank(x);
  return MAKE(SLICE, IN(x), some_ints("start", start, n), some_ints("count", count, n),
              some_ints("step", step ? step : unit_steps(), n));
}
nvm_array *nvm_slice_update(nvm_array *x, nvm_array *values, const int64_t *start, const int64_t *count,
                            const int64_t *step) {
  int n = nvm_rank(x);
  return MAKE(SLICE_UPDATE, IN(x, values), some_ints("start", start, n), some_ints("count", count, n),
              some_ints("step", step ? step : unit_steps(), n));
}
nvm_array *nvm_flip(nvm_array *x, const int *axis, int n) {
  axes keep;
  return MAKE(FLIP, IN(x), axes_attr(&keep, axis, n));
}
nvm_array *nvm_roll(nvm_array *x, int64_t shift, int axis) {
  return MAKE(ROLL, IN(x), int_attr("shift", shift), int_attr("axis", axis));
}
nvm_array *nvm_diagonal(nvm_array *x, int64_t offset) { return MAKE(DIAGONAL, IN(x), int_attr("offset", offset)); }
nvm_array *nvm_tile(nvm_array *x, int n, const int64_t *repetitions) {
  return MAKE(TILE, IN(x), some_ints("repetitions", repetitions, n));
}
nvm_array *nvm_repeat(nvm_array *x, int64_t repeats, int axis) {
  return MAKE(REPEAT, IN(x), int_attr("repeats", repeats), int_attr("axis", axis));
}
static nvm_array *join_arrays(nvg_op op, nvm_array *const *arrays, int n, int axis) {
  nvm_attr at = int_attr("axis", axis);
  return make_op(op, arrays, n, &at, 1);
}
nvm_array *nvm_concat(nvm_array *const *arrays, int n, int axis) { return join_arrays(NVG_OP_CONCAT, arrays, n, axis); }
nvm_array *nvm_stack(nvm_array *const *arrays, int n, int axis) { return join_arrays(NVG_OP_STACK, arrays, n, axis); }
nvm_array *nvm_pad(nvm_array *x, const int64_t *before, const int64_t *after, double value) {
  int64_t width[2 * NVM_MAX_RANK];
  int n = nvm_rank(x);
  int given = before && after;
  for (int d = 0; d < n && given; d++) width[2 * d] = before[d], width[2 * d + 1] = after[d];
  return MAKE(PAD, IN(x), some_ints("pad_width", given ? width : NULL, 2 * n), a_float("constant_values", value));
}
nvm_array *nvm_tril(nvm_array *x, int64_t k) { return MAKE(TRIL, IN(x), int_attr("k", k)); }
nvm_array *nvm_triu(nvm_array *x, int64_t k) { return MAKE(TRIU, IN(x), int_attr("k", k)); }
nvm_array *nvm_take(nvm_array *x, nvm_array *indices, int axis) {
  return MAKE(TAKE, IN(x, indices), int_attr("axis", axis));
}
nvm_array *nvm_take_along_axis(nvm_array *x, nvm_array *indices, int axis) {
  return MAKE(TAKE_ALONG_AXIS, IN(x, indices), int_attr("axis", axis));
}
nvm_array *nvm_last_index(nvm_array *indices, int64_t size) {
  return MAKE(LAST_INDEX, IN(indices), int_attr("size", size));
}

/* ---- creation */
static nvm_array *create_array(nvm_ctx *ctx, nvg_op op, const nvm_attr *attr, int n) {
  return nva_scope_keep(apply_op(ctx, op, NULL, 0, attr, n));
}
nvm_array *nvm_full(nvm_ctx *ctx, nvm_dtype dtype, int rank, const int64_t *shape, double value) {
  return create_array(ctx, NVG_OP_FULL,
                      (nvm_attr[]){ some_ints("shape", shape, rank), a_float("fill_value", value), a_dtype(dtype) }, 3);
}
nvm_array *nvm_zeros(nvm_ctx *ctx, nvm_dtype dtype, int rank, const int64_t *shape) {
  return create_array(ctx, NVG_OP_ZEROS, (nvm_attr[]){ some_ints("shape", shape, rank), a_dtype(dtype) }, 2);
}
nvm_array *nvm_ones(nvm_ctx *ctx, nvm_dtype dtype, int rank, const int64_t *shape) {
  return create_array(ctx, NVG_OP_ONES, (nvm_attr[]){ some_ints("shape", shape, rank), a_dtype(dtype) }, 2);
}
nvm_array *nvm_full_like(nvm_array *x, double value) { return MAKE(FULL_LIKE, IN(x), a_float("fill_value", value)); }
MAP_1(ZEROS_LIKE, zeros_like)
MAP_1(ONES_LIKE, ones_like)
nvm_array *nvm_eye(nvm_ctx *ctx, nvm_dtype dtype, int64_t rows, int64_t cols, int64_t k) {
  return create_array(
      ctx, NVG_OP_EYE,
      (nvm_attr[]){ int_attr("n_rows", rows), int_attr("n_cols", cols), int_attr("k", k), a_dtype(dtype) }, 4);
}
nvm_array *nvm_arange(nvm_ctx *ctx, nvm_dtype dtype, double start, double stop, double step) {
  return create_array(
      ctx, NVG_OP_ARANGE,
      (nvm_attr[]){ a_float("start", start), a_float("stop", stop), a_float("step", step), a_dtype(dtype) }, 4);
}
static nvm_array *make_frequencies(nvm_ctx *ctx, nvg_op op, nvm_dtype dtype, int64_t n, double d) {
  return create_array(ctx, op, (nvm_attr[]){ int_attr("n", n), a_float("d", d), a_dtype(dtype) }, 3);
}
nvm_array *nvm_fftfreq(nvm_ctx *ctx, nvm_dtype dtype, int64_t n, double d) {
  return make_frequencies(ctx, NVG_OP_FFTFREQ, dtype, n, d);
}
nvm_array *nvm_rfftfreq(nvm_ctx *ctx, nvm_dtype dtype, int64_t n, double d) {
  return make_frequencies(ctx, NVG_OP_RFFTFREQ, dtype, n, d);
}
nvm_array *nvm_linspace(nvm_ctx *ctx, nvm_dtype dtype, double start, double stop, int64_t num, int endpoint) {
  return create_array(ctx, NVG_OP_LINSPACE,
                      (nvm_attr[]){ a_float("start", start), a_float("stop", stop), int_attr("num", num),
                                    bool_attr("endpoint", endpoint), a_dtype(dtype) },
                      5);
}

/* ---- nvm/linalg.h */
#define BY_MATRIX(id, c) \
  nvm_array *nvm_##c(nvm_array *x) { return make_op(NVG_OP_##id, &x, 1, NULL, 0); }
BY_MATRIX(INV, inv)
BY_MATRIX(DET, det)
BY_MATRIX(LU, lu)
BY_MATRIX(SVDVALS, svdvals)
BY_MATRIX(EIG, eig)
BY_MATRIX(EIGVALS, eigvals)
nvm_array *nvm_solve(nvm_array *a, nvm_array *b) { return make_op(NVG_OP_SOLVE, IN(a, b), 2, NULL, 0); }
nvm_array *nvm_solve_triangular(nvm_array *a, nvm_array *b, int trans, int lower, int unit_diagonal) {
  return MAKE(SOLVE_TRIANGULAR, IN(a, b), int_attr("trans", trans), bool_attr("lower", lower),
              bool_attr("unit_diagonal", unit_diagonal));
}
nvm_array *nvm_lu_solve(nvm_array *lu, nvm_array *piv, nvm_array *b) {
  return make_op(NVG_OP_LU_SOLVE, IN(lu, piv, b), 3, NULL, 0);
}
nvm_array *nvm_cholesky(nvm_array *x, int upper) { return MAKE(CHOLESKY, IN(x), bool_attr("upper", upper)); }
static nvm_attr parts_attr(int all) { return int_attr("parts", all ? NVG_COMPLETE : NVG_REDUCED); }
nvm_array *nvm_qr(nvm_array *x, int complete) { return MAKE(QR, IN(x), parts_attr(complete)); }
nvm_array *nvm_svd(nvm_array *x, int full) { return MAKE(SVD, IN(x), parts_attr(full)); }
nvm_array *nvm_eigh(nvm_array *x, int upper) { return MAKE(EIGH, IN(x), bool_attr("upper", upper)); }
nvm_array *nvm_eigvalsh(nvm_array *x, int upper) { return MAKE(EIGVALSH, IN(x), bool_attr("upper", upper)); }
nvm_array *nvm_part(nvm_array *x, int64_t start, int64_t rows, int64_t cols, int real) {
  return MAKE(PART, IN(x), int_attr("start", start), int_attr("rows", rows), int_attr("cols", cols),
              bool_attr("real", real));
}
