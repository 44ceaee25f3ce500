/* The type nvm.Array: operators, attributes, and the protocols that need values. Decides when Python forces an
   evaluation. Never computes anything itself: every computation is an operation of the library's table. */
#include <string.h>
#include <math.h>
#include "nvp.h"

static void array_dealloc(PyObject *self) {
  nvp_array *a = (nvp_array *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (a->weakrefs) PyObject_ClearWeakRefs(self);
  nvm_array_unref(a->h);
  nvm_array_unref(a->shown);
  PyObject_Free(self);
  Py_DECREF(type);
  nvp_drain();
}
int nvp_is_array(PyObject *x) { return PyType_GetSlot(Py_TYPE(x), Py_tp_dealloc) == (void *)array_dealloc; }

PyObject *nvp_wrap(nvp_state *st, nvm_array *h) {
  if (!h) return nvp_raise(st), nvp_name_caller(st, NULL);
  nvp_array *a = PyObject_New(nvp_array, st->array);
  if (!a) return nvm_array_unref(h), NULL;
  a->h = h;
  a->shown = NULL;
  a->st = st;
  a->weakrefs = NULL;
  return (PyObject *)a;
}
PyObject *nvp_apply(nvp_state *st, nvp_fixed f, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr) {
  if (st->fixed[f] < 0)
    return PyErr_SetString(PyExc_NotImplementedError, "this build of nvm lacks the operation"), NULL;
  nvm_array *r;
  NVP_MADE(r, nvm_apply_view(st->ctx, st->fixed[f], in, nin, attr, nattr));
  return nvp_wrap(st, r);
}

/* ---- values */
/* Returns a handle that keeps the array's present value: other threads may write to the array while the GIL is
   released. */
static nvm_array *hold_handle(nvp_array *a) {
  nvm_array *h = nvm_hold(a->h);
  if (!h) nvp_raise(a->st);
  return h;
}
/* Makes the error of a read, that an array depends on a parameter of the open trace, name the reader and the array. */
static void name_traced(nvp_state *st, const char *who, nvm_array *const *a, int n) {
  int i = 0;
  if (!nvp_tracing() || nvm_last_status() != NVM_ERR_STATE) return;
  while (i < n - 1 && !nvm_is_pending(a[i])) i++;
  PyErr_Clear();
  PyObject *hook = nvp_hook(st, "traced_value_message"), *shape = nvp_ints(nvm_shape(a[i]), nvm_rank(a[i])),
           *text = NULL;
  const char *dtype = nvm_dtype_name(nvm_dtype_of(a[i]));
  if (hook && shape && (text = PyObject_CallFunction(hook, "sOs", dtype, shape, who)))
    PyErr_SetObject(PyExc_RuntimeError, text);
  Py_XDECREF(shape), Py_XDECREF(text);
}
int nvp_eval(nvp_state *st, const char *who, nvm_array *const *a, int n) {
  int status = -1, held = 0;
  if (nvp_tracing()) nvp_captures_read();
  else if (n == 1 && !nvm_is_pending(a[0])) return nvp_check(st, nvm_eval(a, 1));
  nvm_array *one, **h = n <= 1 ? &one : PyMem_Malloc(sizeof *h * (size_t)n);
  if (!h) return PyErr_NoMemory(), -1;
  nvp_visit v = nvp_doctor_begin_read(st, who, a, n);
  while (held < n && (h[held] = nvm_hold(a[held]))) held++;
  if (held == n) { NVP_UNLOCKED(status, nvm_eval(h, n)); }
  if ((status = nvp_ran(st, status)) && held == n) name_traced(st, who, h, n);
  nvp_doctor_end(st, &v);
  while (held) nvm_array_unref(h[--held]);
  if (h != &one) PyMem_Free(h);
  nvp_drain();
  return status;
}
/* Releases the GIL for a read that has to compute or to wait for a GPU. */
#define READING(h, st, who, call) do { \
    int status; \
    nvp_visit v = nvp_doctor_begin_read(st, who, &h, 1); \
    if (!nvm_is_pending(h) && nvm_device_of(h) == NVM_DEVICE_CPU) status = call; \
    else NVP_UNLOCKED(status, call); \
    if (nvp_ran(st, status)) name_traced(st, who, &h, 1), nvm_array_unref(h), h = NULL; \
    nvp_doctor_end(st, &v); \
    nvp_drain(); \
  } while (0)
nvm_array *nvp_read(nvp_array *a, const char *who, const void **data, int64_t *strides) {
  if (nvp_tracing()) nvp_captures_read();
  nvm_array *h = hold_handle(a);
  if (h) READING(h, a->st, who, nvm_data(data, strides, h));
  return h;
}
int nvp_copy_out(nvp_array *a, const char *who, void *to, size_t bytes) {
  if (nvp_tracing()) nvp_captures_read();
  nvm_array *h = hold_handle(a);
  if (h) READING(h, a->st, who, nvm_copy_to_host(h, to, bytes));
  nvm_array_unref(h);
  return h ? 0 : -1;
}
static double f16_value(uint16_t h) { /* the conversion is exact */
  int e = h >> 10 & 31, m = h & 1023;
  union {
    uint64_t u;
    double d;
  } inf = { 0x7ff0000000000000u | (uint64_t)m << 42 };
  double v = e == 31 ? inf.d : e ? (1024 + m) * 1.0 : m;
  for (int k = e == 31 ? 0 : (e ? e : 1) - 25; k; k += k < 0 ? 1 : -1) v = k < 0 ? v / 2 : v * 2;
  return h >> 15 ? -v : v;
}
static double bf16_value(uint16_t h) {
  union {
    uint32_t u;
    float f;
  } v = { (uint32_t)h << 16 };
  return v.f;
}
static double e4m3_value(uint8_t b) { /* this format has no infinities and one NaN per sign */
  int e = b >> 3 & 15, m = b & 7;
  double v = (b & 127) == 127 ? NAN : e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
  return b >> 7 ? -v : v;
}
#define AS(type) (*(const type *)p)
static PyObject *element_object(nvm_dtype t, const void *p) {
  switch (t) {
  case NVM_BOOL: return PyBool_FromLong(AS(uint8_t));
  case NVM_I8: return PyLong_FromLong(AS(int8_t));
  case NVM_I16: return PyLong_FromLong(AS(int16_t));
  case NVM_I32: return PyLong_FromLong(AS(int32_t));
  case NVM_I64: return PyLong_FromLongLong(AS(int64_t));
  case NVM_U8: return PyLong_FromLong(AS(uint8_t));
  case NVM_U16: return PyLong_FromLong(AS(uint16_t));
  case NVM_U32: return PyLong_FromUnsignedLong(AS(uint32_t));
  case NVM_U64: return PyLong_FromUnsignedLongLong(AS(uint64_t));
  case NVM_F16: return PyFloat_FromDouble(f16_value(AS(uint16_t)));
  case NVM_BF16: return PyFloat_FromDouble(bf16_value(AS(uint16_t)));
  case NVM_F8E4: return PyFloat_FromDouble(e4m3_value(AS(uint8_t)));
  case NVM_F8E5: return PyFloat_FromDouble(f16_value((uint16_t)(AS(uint8_t) << 8))); /* as the upper byte of float16 */
  case NVM_F32: return PyFloat_FromDouble(AS(float));
  case NVM_F64: return PyFloat_FromDouble(AS(double));
  case NVM_C64: return PyComplex_FromDoubles(AS(float), ((const float *)p)[1]);
  case NVM_C128: return PyComplex_FromDoubles(AS(double), ((const double *)p)[1]);
  default: return PyErr_SetString(PyExc_SystemError, "unknown dtype"), NULL;
  }
}
/* The only element as a Python number. In a trace the error says what to write instead. */
static PyObject *only_element(nvp_array *a, const char *who) {
  const void *p;
  int64_t strides[NVM_MAX_RANK];
  char bytes[16];
  if (!nvp_tracing() && !nvm_is_pending(a->h) && nvm_device_of(a->h) == NVM_DEVICE_CPU) {
    nvm_dtype t = nvm_dtype_of(a->h);
    int status = nvm_copy_to_host(a->h, bytes, nvm_dtype_size(t));
    return nvp_check(a->st, status) ? NULL : element_object(t, bytes);
  }
  nvm_array *keep = nvp_read(a, who, &p, strides);
  PyObject *r = keep ? element_object(nvm_dtype_of(keep), p) : NULL;
  nvm_array_unref(keep);
  return r;
}
static int require_one_element(nvp_array *a, const char *what) {
  if (nvm_size(a->h) == 1) return 0;
  PyObject *shape = nvp_ints(nvm_shape(a->h), nvm_rank(a->h));
  if (shape)
    PyErr_Format(PyExc_ValueError,
                 "[bool] the %s of an array with %lld elements, of shape %S, is ambiguous; use any() or all(), and "
                 "(0 < x) & (x < 3) for 0 < x < 3",
                 what, (long long)nvm_size(a->h), shape);
  Py_XDECREF(shape);
  return -1;
}
static int array_bool(PyObject *self) {
  PyObject *v = require_one_element((nvp_array *)self, "truth value") ? NULL : only_element((nvp_array *)self, "bool");
  int r = v ? PyObject_IsTrue(v) : -1;
  Py_XDECREF(v);
  return r;
}
static PyObject *scalar(PyObject *self, const char *who) {
  nvp_array *a = (nvp_array *)self;
  if (nvm_rank(a->h))
    return PyErr_Format(PyExc_TypeError,
                        "%s() needs a 0-dimensional array, this one has %d dimensions; item() takes "
                        "one element",
                        who, nvm_rank(a->h));
  return only_element(a, who);
}
static PyObject *array_int(PyObject *self) {
  PyObject *v = scalar(self, "int"), *r = v ? PyNumber_Long(v) : NULL;
  Py_XDECREF(v);
  return r;
}
static PyObject *array_float(PyObject *self) {
  PyObject *v = scalar(self, "float");
  double d = v ? PyFloat_AsDouble(v) : -1;
  Py_XDECREF(v);
  return d == -1 && PyErr_Occurred() ? NULL : PyFloat_FromDouble(d);
}
static PyObject *array_index(PyObject *self) {
  nvm_dtype t = nvm_dtype_of(((nvp_array *)self)->h);
  if (nvp_kind(t) != 'i' && nvp_kind(t) != 'u')
    return PyErr_Format(PyExc_TypeError, "an array of %s cannot be an index", nvm_dtype_name(t));
  return scalar(self, "index");
}
static PyObject *array_complex(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *v = scalar(self, "complex");
  if (!v || PyComplex_Check(v)) return v;
  double re = PyFloat_AsDouble(v);
  Py_DECREF(v);
  return PyErr_Occurred() ? NULL : PyComplex_FromDoubles(re, 0);
}

static Py_hash_t array_hash(PyObject *self) {
  (void)self;
  PyErr_SetString(PyExc_TypeError,
                  "unhashable type: 'nvm.Array', since its elements can be written to, and == compares "
                  "them; as a key take id(x), or x.item() or x.tobytes()");
  return -1;
}

/* ---- operators */
/* A type with a higher __array_priority__ handles operators with nvm arrays itself, and so does one that takes part in
   NumPy's ufuncs, unless it shows its memory: the arrays of other libraries do, and what wraps arrays does not. */
int nvp_defers_to(nvp_state *st, PyObject *x) {
  if (nvp_is_scalar(x) || PyList_Check(x) || PyTuple_Check(x) || nvp_has_buffer(st, x)) return 0;
  PyObject *p = PyObject_GetAttr((PyObject *)Py_TYPE(x), st->s_priority);
  double v = p && PyFloat_Check(p) ? PyFloat_AsDouble(p) : p && PyLong_Check(p) ? PyLong_AsDouble(p) : 0;
  Py_XDECREF(p);
  PyErr_Clear();
  if (v > 1000) return 1;
  PyObject *type = (PyObject *)Py_TYPE(x);
  return PyObject_HasAttr(type, st->s_array_ufunc) && !PyObject_HasAttr(type, st->s_dlpack);
}
PyObject *nvp_binary(PyObject *x, PyObject *y, nvp_fixed f) {
  nvp_state *st = nvp_is_array(x) ? ((nvp_array *)x)->st : ((nvp_array *)y)->st;
  PyObject *v[2] = { x, y };
  nvm_array *in[2] = { NULL, NULL };
  int owned[2] = { 0, 0 }, got = 1;
  for (int i = 0; i < 2; i++)
    if (Py_IS_TYPE(v[i], st->array)) in[i] = ((nvp_array *)v[i])->h;
  for (int i = 0; i < 2 && got > 0; i++)
    if (!in[i]) got = nvp_defers_to(st, v[i]) ? 0 : nvp_operand(st, v[i], &in[i], &owned[i]);
  PyObject *r = got > 0 ? nvp_apply(st, f, in, 2, NULL, 0) : got ? NULL : Py_NewRef(Py_NotImplemented);
  for (int i = 0; i < 2; i++)
    if (owned[i] && in[i]) nvm_array_unref(in[i]);
  return r;
}
static PyObject *apply_unary(PyObject *x, nvp_fixed f) {
  nvp_array *a = (nvp_array *)x;
  return nvp_apply(a->st, f, &a->h, 1, NULL, 0);
}
static void refuse_inplace(nvp_array *a, nvm_array *b, nvp_fixed f, int kinds) {
  nvm_op_info info = { .name = "in place" };
  nvm_op_get(&info, a->st->fixed[f]);
  PyObject *to = nvp_ints(nvm_shape(a->h), nvm_rank(a->h)), *from = nvp_ints(nvm_shape(b), nvm_rank(b));
  if (to && from && kinds)
    PyErr_Format(PyExc_TypeError,
                 "[%s] an in-place operation cannot store %s in an array of %s; x = x + y makes a new array, and "
                 "x.astype(dtype) one that can hold it",
                 info.name, nvm_dtype_name(nvm_dtype_of(b)), nvm_dtype_name(nvm_dtype_of(a->h)));
  else if (to && from)
    PyErr_Format(
        PyExc_ValueError,
        "[%s] an in-place operation cannot change the shape of its array: %S into %S; x = x + y makes a new one",
        info.name, from, to);
  Py_XDECREF(to);
  Py_XDECREF(from);
}
/* x op= y writes to the array x, so that other names and views of it see the new value; shape and dtype stay. */
static PyObject *apply_inplace(PyObject *x, PyObject *y, nvp_fixed f) {
  PyObject *r = nvp_binary(x, y, f);
  if (!r || r == Py_NotImplemented) return r;
  nvp_array *a = (nvp_array *)x, *b = (nvp_array *)r;
  nvm_dtype to = nvm_dtype_of(a->h), from = nvm_dtype_of(b->h);
  static const char order[] = "buifc"; /* a kind may be stored in itself and in those to its right */
  const char *kt = strchr(order, nvp_kind(to)), *kf = strchr(order, nvp_kind(from));
  int ok = nvm_rank(a->h) == nvm_rank(b->h) &&
           (!nvm_rank(a->h) || !memcmp(nvm_shape(a->h), nvm_shape(b->h), sizeof(int64_t) * (size_t)nvm_rank(a->h)));
  if (kf > kt || !ok) refuse_inplace(a, b->h, f, kf > kt);
  else nvp_check(a->st, nvm_assign(a->h, b->h));
  Py_DECREF(r);
  return PyErr_Occurred() ? NULL : Py_NewRef(x);
}
#define BINARY(name, id) \
  static PyObject *array_##name(PyObject *x, PyObject *y) { return nvp_binary(x, y, NVP_##id); } \
  static PyObject *array_i##name(PyObject *x, PyObject *y) { return apply_inplace(x, y, NVP_##id); }
/* clang-format off */
BINARY(add, ADD) BINARY(sub, SUB) BINARY(mul, MUL) BINARY(div, DIV) BINARY(floordiv, FLOORDIV) BINARY(mod, MOD)
BINARY(matmul, MATMUL) BINARY(and, AND) BINARY(or, OR) BINARY(xor, XOR) BINARY(lshift, LSHIFT) BINARY(rshift, RSHIFT)
    /* clang-format on */
    static PyObject *array_pow(PyObject *x, PyObject *y, PyObject *m) {
  return m == Py_None ? nvp_binary(x, y, NVP_POW) : Py_NewRef(Py_NotImplemented);
}
static PyObject *array_ipow(PyObject *x, PyObject *y, PyObject *m) {
  return m == Py_None ? apply_inplace(x, y, NVP_POW) : Py_NewRef(Py_NotImplemented);
}
static PyObject *array_divmod(PyObject *x, PyObject *y) {
  PyObject *q = nvp_binary(x, y, NVP_FLOORDIV);
  if (!q || q == Py_NotImplemented) return q;
  PyObject *r = nvp_binary(x, y, NVP_MOD), *both = r ? PyTuple_Pack(2, q, r) : NULL;
  Py_DECREF(q);
  Py_XDECREF(r);
  return both;
}
static PyObject *array_neg(PyObject *x) { return apply_unary(x, NVP_NEG); }
static PyObject *array_pos(PyObject *x) { return apply_unary(x, NVP_POS); }
static PyObject *array_abs(PyObject *x) { return apply_unary(x, NVP_ABS); }
static PyObject *array_invert(PyObject *x) { return apply_unary(x, NVP_INVERT); }

/* ---- shape */
PyObject *nvp_ints(const int64_t *v, int n) {
  PyObject *t = PyTuple_New(n);
  for (int i = 0; t && i < n; i++) {
    PyObject *x = PyLong_FromLongLong(v[i]);
    if (!x || PyTuple_SetItem(t, i, x)) Py_CLEAR(t);
  }
  return t;
}
static Py_ssize_t array_len(PyObject *self) {
  nvp_array *a = (nvp_array *)self;
  if (nvm_rank(a->h)) return nvm_shape(a->h)[0];
  return PyErr_SetString(PyExc_TypeError, "len() of a 0-dimensional array"), -1;
}
static PyObject *array_row(PyObject *self, Py_ssize_t i) {
  PyObject *key = PyLong_FromSsize_t(i), *r = key ? nvp_getitem(self, key) : NULL;
  Py_XDECREF(key);
  return r;
}
/* v in x: one evaluation for any rank */
static int array_contains(PyObject *self, PyObject *v) {
  PyObject *same = PyObject_RichCompare(self, v, Py_EQ), *any = NULL;
  if (same && nvp_is_array(same))
    any = nvp_apply(((nvp_array *)self)->st, NVP_ANY, &((nvp_array *)same)->h, 1, NULL, 0);
  else any = Py_XNewRef(same); /* None or a string compares with nothing */
  int r = any ? PyObject_IsTrue(any) : -1;
  Py_XDECREF(same);
  Py_XDECREF(any);
  return r;
}
static PyObject *permute_axes(nvp_array *a, const int64_t *axes) {
  nvm_attr at = { .name = "axes", .kind = 'I', .is = axes, .n = nvm_rank(a->h) };
  return nvp_apply(a->st, NVP_PERMUTE, &a->h, 1, &at, 1);
}
static PyObject *reverse_axes(nvp_array *a) {
  int64_t axes[NVM_MAX_RANK];
  for (int i = 0, n = nvm_rank(a->h); i < n; i++) axes[i] = n - 1 - i;
  return permute_axes(a, axes);
}
static PyObject *get_T(PyObject *self, void *u) {
  (void)u;
  return reverse_axes((nvp_array *)self);
}
static PyObject *get_mT(PyObject *self, void *u) {
  (void)u;
  nvp_array *a = (nvp_array *)self;
  int n = nvm_rank(a->h);
  int64_t axes[NVM_MAX_RANK];
  if (n < 2) return PyErr_SetString(PyExc_ValueError, "mT needs at least 2 dimensions"), NULL;
  for (int i = 0; i < n; i++) axes[i] = i < n - 2 ? i : 2 * n - 3 - i;
  return permute_axes(a, axes);
}
static PyObject *get_ndim(PyObject *self, void *u) {
  (void)u;
  return PyLong_FromLong(nvm_rank(((nvp_array *)self)->h));
}
static PyObject *get_shape(PyObject *self, void *u) {
  (void)u;
  nvm_array *h = ((nvp_array *)self)->h;
  return nvp_ints(nvm_shape(h), nvm_rank(h));
}
static PyObject *get_size(PyObject *self, void *u) {
  (void)u;
  return PyLong_FromLongLong(nvm_size(((nvp_array *)self)->h));
}
static PyObject *get_dtype(PyObject *self, void *u) {
  (void)u;
  nvp_array *a = (nvp_array *)self;
  return nvp_dtype_object(a->st, nvm_dtype_of(a->h));
}
static PyObject *get_numpy_dtype(PyObject *self, void *u) { /* np.dtype and np.result_type read this attribute */
  PyObject *t = get_dtype(self, u), *r = t ? PyObject_GetAttrString(t, "__numpy_dtype__") : NULL;
  Py_XDECREF(t);
  return r;
}
static PyObject *get_itemsize(PyObject *self, void *u) {
  (void)u;
  return PyLong_FromSize_t(nvm_dtype_size(nvm_dtype_of(((nvp_array *)self)->h)));
}
static PyObject *get_nbytes(PyObject *self, void *u) {
  (void)u;
  nvm_array *h = ((nvp_array *)self)->h;
  return PyLong_FromLongLong(nvm_size(h) * (int64_t)nvm_dtype_size(nvm_dtype_of(h)));
}
static PyObject *get_device(PyObject *self, void *u) {
  (void)u;
  nvp_array *a = (nvp_array *)self;
  return nvp_device_object(a->st, nvm_device_of(a->h));
}
static PyObject *get_part(PyObject *self, void *name) { /* .real and .imag, of bool as NumPy's: itself, and false */
  nvp_array *a = (nvp_array *)self;
  int truth = nvm_dtype_of(a->h) == NVM_BOOL, real = !strcmp(name, "real");
  if (truth && real) return Py_NewRef(self);
  PyObject *f = PyDict_GetItemString(a->st->functions, truth ? "zeros_like" : name);
  if (!f) return PyErr_SetString(PyExc_AttributeError, name), NULL;
  return PyObject_CallFunctionObjArgs(f, self, NULL);
}
/* ---- methods that are not operations */
static PyObject *call_hook(PyObject *self, const char *name) {
  PyObject *f = nvp_hook(((nvp_array *)self)->st, name);
  return f ? PyObject_CallFunctionObjArgs(f, self, NULL) : NULL;
}
static PyObject *array_repr(PyObject *self) { return call_hook(self, "repr"); }
static PyObject *array_str(PyObject *self) { return call_hook(self, "str"); }
static PyObject *array_iter(PyObject *self) { return call_hook(self, "iter"); }
static PyObject *array_reversed(PyObject *self, PyObject *unused) {
  (void)unused;
  return call_hook(self, "reversed");
}
static PyObject *array_eval(PyObject *self, PyObject *unused) {
  (void)unused;
  nvp_array *a = (nvp_array *)self;
  return nvp_eval(a->st, "eval", &a->h, 1) ? NULL : Py_NewRef(self);
}
static PyObject *array_snapshot(PyObject *self, PyObject *unused) {
  (void)unused;
  nvp_array *a = (nvp_array *)self;
  return nvp_wrap(a->st, nvm_snapshot(a->h));
}
static PyObject *array_copy(PyObject *self, PyObject *args, PyObject *kw) {
  if (PyTuple_Size(args) || kw) return nvp_numpy_method(((nvp_array *)self)->st, "copy", self, args, kw);
  return array_snapshot(self, NULL);
}
/* Builds nested lists. edge > 0: longer dimensions show only their first and last `edge` items, with Ellipsis
   between. */
typedef struct nest { nvm_dtype t; int64_t edge; } nest;
static PyObject *nest_lists(const nest *n, int rank, const int64_t *shape, const int64_t *strides, const char *p) {
  if (!rank) return element_object(n->t, p);
  int64_t cut = n->edge && shape[0] > 2 * n->edge ? n->edge : shape[0], len = cut < shape[0] ? 2 * cut + 1 : cut;
  PyObject *list = PyList_New(len);
  for (int64_t i = 0; list && i < len; i++) {
    int64_t at = i <= cut ? i : shape[0] - (len - i);
    PyObject *v = cut < shape[0] && i == cut ? Py_NewRef(Py_Ellipsis)
                                             : nest_lists(n, rank - 1, shape + 1, strides + 1, p + at * strides[0]);
    if (!v || PyList_SetItem(list, i, v)) Py_CLEAR(list);
  }
  return list;
}
static PyObject *element_lists(nvp_array *a, const char *who, int64_t edge) {
  const void *p;
  int64_t strides[NVM_MAX_RANK + 1];
  nvm_array *keep = nvp_read(a, who, &p, strides);
  nest n = { nvm_dtype_of(keep), edge };
  PyObject *r = keep ? nest_lists(&n, nvm_rank(keep), nvm_shape(keep), strides, p) : NULL;
  nvm_array_unref(keep);
  return r;
}
static PyObject *array_tolist(PyObject *self, PyObject *unused) {
  (void)unused;
  return element_lists((nvp_array *)self, "tolist", 0);
}
static PyObject *array_edges(PyObject *self, PyObject *n) {
  long long edge = PyLong_AsLongLong(n);
  return PyErr_Occurred() ? NULL : element_lists((nvp_array *)self, "print", edge);
}
static PyObject *array_tobytes(PyObject *self, PyObject *args, PyObject *kw) {
  if (PyTuple_Size(args) || kw) return nvp_numpy_method(((nvp_array *)self)->st, "tobytes", self, args, kw);
  nvp_array *a = (nvp_array *)self;
  size_t n = (size_t)nvm_size(a->h) * nvm_dtype_size(nvm_dtype_of(a->h));
  PyObject *b = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
  if (b && nvp_copy_out(a, "tobytes", PyBytes_AsString(b), n)) Py_CLEAR(b);
  return b;
}
static PyObject *array_item(PyObject *self, PyObject *args) {
  nvp_array *a = (nvp_array *)self;
  Py_ssize_t n = PyTuple_Size(args);
  if (!n) {
    if (nvm_size(a->h) == 1) return only_element(a, "item");
    return PyErr_Format(PyExc_ValueError,
                        "item() takes the only element of an array; this one has %lld; give its "
                        "indices",
                        (long long)nvm_size(a->h));
  }
  PyObject *flat = n == 1 && nvm_rank(a->h) != 1 ? PyObject_CallMethod(self, "reshape", "i", -1) : Py_NewRef(self);
  PyObject *e = flat ? PyObject_GetItem(flat, args) : NULL, *r = NULL;
  if (e && nvp_is_array(e) && !nvm_rank(((nvp_array *)e)->h)) r = only_element((nvp_array *)e, "item");
  else if (e) PyErr_SetString(PyExc_ValueError, "item() needs an index for each dimension");
  Py_XDECREF(flat);
  Py_XDECREF(e);
  return r;
}
static PyObject *flatten_array(PyObject *self, int copy) {
  nvp_array *a = (nvp_array *)self;
  static const int64_t all[1] = { -1 };
  nvm_attr at[2] = { { .name = "shape", .kind = 'I', .is = all, .n = 1 }, { .name = "copy", .kind = 'b', .i = 1 } };
  return nvp_apply(a->st, NVP_RESHAPE, &a->h, 1, at, 1 + copy);
}
static PyObject *array_flatten(PyObject *self, PyObject *args, PyObject *kw) {
  if (PyTuple_Size(args) || kw) return nvp_numpy_method(((nvp_array *)self)->st, "flatten", self, args, kw);
  return flatten_array(self, 1);
}
static PyObject *array_ravel(PyObject *self, PyObject *args, PyObject *kw) {
  if (PyTuple_Size(args) || kw) return nvp_numpy_method(((nvp_array *)self)->st, "ravel", self, args, kw);
  return flatten_array(self, !nvm_is_packed(((nvp_array *)self)->h));
}
static PyObject *array_transpose(PyObject *self, PyObject *args) {
  nvp_array *a = (nvp_array *)self;
  PyObject *first = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : Py_None;
  if (first == Py_None) return reverse_axes(a);
  PyObject *f = PyDict_GetItemString(a->st->functions, "permute_dims");
  return f ? PyObject_CallFunctionObjArgs(f, self, PyTuple_Check(first) || PyList_Check(first) ? first : args, NULL)
           : NULL;
}
static PyObject *array_conj(PyObject *self, PyObject *unused) { /* like NumPy's method, returns a real array itself */
  (void)unused;
  nvp_array *a = (nvp_array *)self;
  PyObject *f = PyDict_GetItemString(a->st->functions, "conj");
  if (nvp_kind(nvm_dtype_of(a->h)) != 'c') return Py_NewRef(self);
  return f ? PyObject_CallFunctionObjArgs(f, self, NULL) : NULL;
}
static PyObject *array_namespace(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = { "api_version", NULL };
  PyObject *version = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|$O:__array_namespace__", names, &version)) return NULL;
  PyObject *f = nvp_hook(((nvp_array *)self)->st, "namespace");
  return f ? PyObject_CallFunctionObjArgs(f, version, NULL) : NULL;
}
static PyObject *array_array(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = { "dtype", "copy", NULL };
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|OO:__array__", names, &dtype, &copy)) return NULL;
  PyObject *f = nvp_hook(((nvp_array *)self)->st, "array");
  return f ? PyObject_CallFunctionObjArgs(f, self, dtype, copy, NULL) : NULL;
}
static PyObject *array_to_device(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = { "", "stream", NULL };
  nvp_array *a = (nvp_array *)self;
  PyObject *device, *stream = Py_None;
  nvm_device d;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$O:to_device", names, &device, &stream) ||
      nvp_device(a->st, device, &d))
    return NULL;
  if (stream == Py_None) {
    nvp_visit v = nvp_doctor_begin(a->st, "to_device", &a->h, 1);
    nvm_array *r = nvm_array_to_device(a->h, d);
    nvp_doctor_end(a->st, &v);
    int here = r && nvm_is_same(r, a->h);
    return here ? (nvm_array_unref(r), Py_NewRef(self)) : nvp_wrap(a->st, r);
  }
  nvm_device on = d > NVM_DEVICE_CPU ? d : nvm_device_of(a->h);
  void *before, *s = PyLong_AsVoidPtr(stream);
  if (PyErr_Occurred() || nvp_check(a->st, nvm_stream_get(&before, a->st->ctx, on)) ||
      nvp_check(a->st, nvm_stream_set(a->st->ctx, on, s)))
    return NULL;
  nvm_array *r = nvm_array_to_device(a->h, d);
  PyObject *x = nvp_wrap(a->st, r && !nvm_eval(&r, 1) ? r : (nvm_array_unref(r), NULL));
  if (nvp_check(a->st, nvm_stream_set(a->st->ctx, on, before))) Py_CLEAR(x);
  return x;
}
static PyObject *array_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  return call_hook(self, "reduce");
}

/* ---- the type */
static PyMethodDef methods[] = {
  { "eval", array_eval, METH_NOARGS, "eval($self, /)\n--\n\nComputes the value now; returns the array itself." },
  { "ready", nvp_ready, METH_NOARGS,
    "ready($self, /)\n--\n\nTrue if the value has been computed and is in memory, so that a read waits for no "
    "computation; starts and waits for nothing." },
  { "copy", (PyCFunction)(void (*)(void))array_copy, METH_VARARGS | METH_KEYWORDS,
    "copy($self, order='C')\n--\n\nAn array of its own, which later writes to this one do "
    "not change." },
  { "__copy__", array_snapshot, METH_NOARGS, NULL },
  { "__deepcopy__", array_snapshot, METH_O, NULL },
  { "tolist", array_tolist, METH_NOARGS, "tolist($self, /)\n--\n\nThe elements as nested lists of Python numbers." },
  { "tobytes", (PyCFunction)(void (*)(void))array_tobytes, METH_VARARGS | METH_KEYWORDS,
    "tobytes($self, order='C')\n--\n\nThe elements in row-major order as bytes." },
  { "_edges", array_edges, METH_O, NULL },
  { "item", array_item, METH_VARARGS, "item($self, /, *index)\n--\n\nOne element as a Python number." },
  { "flatten", (PyCFunction)(void (*)(void))array_flatten, METH_VARARGS | METH_KEYWORDS,
    "flatten($self, order='C')\n--\n\nThe elements in row-major order as one "
    "dimension, copied." },
  { "ravel", (PyCFunction)(void (*)(void))array_ravel, METH_VARARGS | METH_KEYWORDS,
    "ravel($self, order='C')\n--\n\nThe elements in row-major order as one dimension: a "
    "view where they lie so, else a copy." },
  { "conj", array_conj, METH_NOARGS, "conj($self, /)\n--\n\nComplex conjugate; of real numbers the array itself." },
  { "conjugate", array_conj, METH_NOARGS, "conjugate($self, /)\n--\n\nAs conj." },
  { "transpose", array_transpose, METH_VARARGS,
    "transpose($self, /, *axes)\n--\n\nThe dimensions in another order; "
    "without axes, reversed." },
  { "to_device", (PyCFunction)(void (*)(void))array_to_device, METH_VARARGS | METH_KEYWORDS,
    "to_device($self, device, /, *, stream=None)\n--\n\nThe array, put on a device; a copy to or from a GPU goes to "
    "that stream." },
  { "__complex__", array_complex, METH_NOARGS, NULL },
  { "__reversed__", array_reversed, METH_NOARGS, "__reversed__($self, /)\n--\n\nThe rows, the last one first." },
  { "__array__", (PyCFunction)(void (*)(void))array_array, METH_VARARGS | METH_KEYWORDS,
    "__array__($self, /, dtype=None, copy=None)\n--\n\nA NumPy array over the same memory, read only; of an array on "
    "a GPU, over a copy." },
  { "__array_ufunc__", (PyCFunction)(void (*)(void))nvp_array_ufunc, METH_FASTCALL | METH_KEYWORDS,
    "__array_ufunc__($self, ufunc, method, /, *operands, **given)\n--\n\nnvm's function for a ufunc of NumPy." },
  { "__array_function__", (PyCFunction)(void (*)(void))nvp_array_function, METH_FASTCALL,
    "__array_function__($self, function, types, args, kwargs, /)\n--\n\nnvm's function for a function of NumPy." },
  { "__array_namespace__", (PyCFunction)(void (*)(void))array_namespace, METH_VARARGS | METH_KEYWORDS,
    "__array_namespace__($self, /, *, api_version=None)\n--\n\nThe package nvm." },
  { "__dlpack__", (PyCFunction)(void (*)(void))nvp_to_dlpack, METH_FASTCALL | METH_KEYWORDS,
    "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nA DLPack capsule over "
    "the array's memory, read only." },
  { "__dlpack_device__", nvp_dlpack_device, METH_NOARGS,
    "__dlpack_device__($self, /)\n--\n\n(1, 0): the CPU; (2, n): the GPU cuda:n." },
  { "__reduce__", array_reduce, METH_NOARGS, NULL },
  { NULL, NULL, 0, NULL }
};
static PyGetSetDef getset[] = {
  { "T", get_T, NULL, "the dimensions in reverse", NULL },
  { "mT", get_mT, NULL, "the last two dimensions exchanged", NULL },
  { "ndim", get_ndim, NULL, "number of dimensions", NULL },
  { "shape", get_shape, nvp_set_never, "extents, a tuple", "x = x.reshape(shape)" },
  { "size", get_size, nvp_set_never, "number of elements", "x = numpy.resize(x, shape)" },
  { "dtype", get_dtype, nvp_set_never, "nvm dtype of the elements", "x = x.view(dtype), or x.astype(dtype)" },
  { "__numpy_dtype__", get_numpy_dtype, NULL, "NumPy's dtype of the elements", NULL },
  { "itemsize", get_itemsize, NULL, "bytes of an element", NULL },
  { "nbytes", get_nbytes, NULL, "bytes of all elements", NULL },
  { "device", get_device, NULL, "where the array lies, or would be computed", NULL },
  { "__cuda_array_interface__", nvp_cuda_interface, NULL, "of an array on a GPU: its memory, not to be written", NULL },
  { "real", get_part, NULL, "real part", "real" },
  { "imag", get_part, NULL, "imaginary part", "imag" },
  { NULL, NULL, NULL, NULL, NULL }
};
static PyMemberDef members[] = { { "__weaklistoffset__", T_PYSSIZET, offsetof(nvp_array, weakrefs), READONLY, NULL },
                                 { NULL, 0, 0, 0, NULL } };
static char text[] = "A lazy array: made by nvm's functions, computed when its value is asked for. It has the "
                     "attributes, operators and\nmethods of NumPy's ndarray.\n\n"
                     ">>> import nvm\n>>> x = nvm.asarray([[1.0, 2.0], [3.0, 4.0]])\n"
                     ">>> x.shape, x.dtype, x.T.ravel().tolist()\n"
                     "((2, 2), nvm.float64, [1.0, 3.0, 2.0, 4.0])\n";
static PyType_Slot slots[] = { { Py_tp_dealloc, array_dealloc },
                               { Py_tp_repr, array_repr },
                               { Py_tp_str, array_str },
                               { Py_tp_iter, array_iter },
                               { Py_tp_hash, array_hash },
                               { Py_tp_richcompare, nvp_compare },
                               { Py_tp_methods, methods },
                               { Py_tp_getset, getset },
                               { Py_tp_members, members },
                               { Py_mp_length, array_len },
                               { Py_mp_subscript, nvp_getitem },
                               { Py_sq_length, array_len },
                               { Py_sq_item, array_row }, /* others take what has it for no number */
                               { Py_sq_contains, array_contains },
                               { Py_mp_ass_subscript, nvp_setitem },
                               { Py_bf_getbuffer, nvp_getbuffer },
                               { Py_bf_releasebuffer, nvp_releasebuffer },
                               { Py_nb_add, array_add },
                               { Py_nb_subtract, array_sub },
                               { Py_nb_multiply, array_mul },
                               { Py_nb_true_divide, array_div },
                               { Py_nb_floor_divide, array_floordiv },
                               { Py_nb_remainder, array_mod },
                               { Py_nb_power, array_pow },
                               { Py_nb_matrix_multiply, array_matmul },
                               { Py_nb_and, array_and },
                               { Py_nb_or, array_or },
                               { Py_nb_xor, array_xor },
                               { Py_nb_lshift, array_lshift },
                               { Py_nb_rshift, array_rshift },
                               { Py_nb_divmod, array_divmod },
                               { Py_nb_negative, array_neg },
                               { Py_nb_positive, array_pos },
                               { Py_nb_absolute, array_abs },
                               { Py_nb_invert, array_invert },
                               { Py_nb_inplace_add, array_iadd },
                               { Py_nb_inplace_subtract, array_isub },
                               { Py_nb_inplace_multiply, array_imul },
                               { Py_nb_inplace_true_divide, array_idiv },
                               { Py_nb_inplace_floor_divide, array_ifloordiv },
                               { Py_nb_inplace_remainder, array_imod },
                               { Py_nb_inplace_power, array_ipow },
                               { Py_nb_inplace_matrix_multiply, array_imatmul },
                               { Py_nb_inplace_and, array_iand },
                               { Py_nb_inplace_or, array_ior },
                               { Py_nb_inplace_xor, array_ixor },
                               { Py_nb_inplace_lshift, array_ilshift },
                               { Py_nb_inplace_rshift, array_irshift },
                               { Py_nb_bool, array_bool },
                               { Py_nb_int, array_int },
                               { Py_nb_float, array_float },
                               { Py_nb_index, array_index },
                               { Py_tp_doc, text },
                               { 0, NULL } };
PyType_Spec nvp_array_spec = { .name = "nvm.Array",
                               .basicsize = sizeof(nvp_array),
                               .slots = slots,
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION };

/* Sets what others compare with their own on the type, to learn whose operators come first. */
int nvp_finish_array(nvp_state *st) {
  PyObject *type = (PyObject *)st->array, *priority = PyFloat_FromDouble(1000);
  int status = priority ? PyObject_SetAttrString(type, "__array_priority__", priority) : -1;
  Py_XDECREF(priority);
  return status;
}
