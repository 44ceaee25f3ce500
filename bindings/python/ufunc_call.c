/* Calls of ufuncs with out=, where=, dtype= and casting=, and their methods outer, reduce and accumulate, on nvm's
   arrays: the common cases of what _ufunc.py and _ufunc_methods.py do for all, made of the same operations. */
#include <string.h>
#include "ufunc.h"

/* ---- what a call asks for beside its operands */
typedef struct request {
  nvp_array *out;                      /* borrowed; NULL: none */
  PyObject *where;                     /* borrowed; a mask, an array of bool; NULL: none */
  PyObject *axis, *keepdims, *initial; /* borrowed; NULL: not given */
  nvm_dtype dtype;                     /* NVM_DTYPE_DEFAULT: not given */
  int unsafe;                          /* the rule for casts is "unsafe", not "same_kind" */
} request;

/* 1: read, 0: it is left to the Python half. */
static int read_out(nvp_state *st, request *q, PyObject *x) {
  if (PyTuple_Check(x)) {
    if (PyTuple_Size(x) != 1) return 0;
    x = PyTuple_GetItem(x, 0);
  }
  if (x == Py_None) return 1;
  if (!Py_IS_TYPE(x, st->array)) return 0;
  q->out = (nvp_array *)x;
  return 1;
}
static int read_where(nvp_state *st, request *q, PyObject *x) {
  if (x == Py_True) return 1;
  if (!Py_IS_TYPE(x, st->array) || nvm_dtype_of(((nvp_array *)x)->h) != NVM_BOOL) return 0;
  q->where = x;
  return 1;
}
static int read_dtype(nvp_state *st, request *q, PyObject *x) {
  if (!nvp_dtype_from(st, x, &q->dtype)) return 1;
  PyErr_Clear();
  return 0;
}
static int read_casting(request *q, PyObject *x) {
  if (!PyUnicode_Check(x)) return 0;
  q->unsafe = !PyUnicode_CompareWithASCIIString(x, "unsafe");
  return q->unsafe || !PyUnicode_CompareWithASCIIString(x, "same_kind");
}
static int is_order(PyObject *x) {
  return PyUnicode_Check(x) && PyUnicode_GetLength(x) == 1 && strchr("KCFA", (int)PyUnicode_ReadChar(x, 0));
}
/* method: it is a reduction or a scan, which takes axis, keepdims and initial too, and no rule for casts. */
static int read_named(nvp_state *st, request *q, PyObject *name, PyObject *x, int method) {
  const char *s = PyUnicode_AsUTF8AndSize(name, NULL);
  if (!s) return PyErr_Clear(), 0;
  if (!strcmp(s, "out")) return read_out(st, q, x);
  if (!strcmp(s, "where")) return read_where(st, q, x);
  if (!strcmp(s, "dtype")) return read_dtype(st, q, x);
  if (!method)
    return !strcmp(s, "casting") ? read_casting(q, x) : !strcmp(s, "order") ? is_order(x) : !strcmp(s, "subok");
  if (!strcmp(s, "axis")) return q->axis = x, 1;
  if (!strcmp(s, "keepdims")) return q->keepdims = x, 1;
  if (!strcmp(s, "initial")) return q->initial = x == Py_None ? NULL : x, 1;
  return 0;
}
static int read_request(nvp_state *st, request *q, PyObject *names, PyObject *const *values, int method) {
  *q = (request){ .dtype = NVM_DTYPE_DEFAULT };
  Py_ssize_t n = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < n; i++)
    if (!read_named(st, q, PyTuple_GetItem(names, i), values[i], method)) return 0;
  return 1;
}

/* ---- dtypes */
/* May a value be cast under the rule same_kind? A kind goes to itself and to those on its right. */
static int can_cast(nvm_dtype from, nvm_dtype to) {
  static const char order[] = "buifc";
  char a = nvp_kind(from), b = nvp_kind(to);
  return strchr(order, a) <= strchr(order, b) && !(a == 'i' && b == 'u');
}
static nvm_dtype dtype_of(PyObject *x) { return nvm_dtype_of(((nvp_array *)x)->h); }
static PyObject *cast_to(nvp_state *st, PyObject *x, nvm_dtype t) {
  if (dtype_of(x) == t) return Py_NewRef(x);
  nvm_attr attr = { .name = "dtype", .kind = 'd', .i = t };
  return nvp_apply(st, NVP_ASTYPE, &((nvp_array *)x)->h, 1, &attr, 1);
}
/* An operand in the dtype of the call: a new reference, or NULL. */
static PyObject *cast_operand(nvp_state *st, const request *q, PyObject *x) {
  if (q->dtype == NVM_DTYPE_DEFAULT) return Py_NewRef(x);
  if (nvp_is_scalar(x)) return nvp_asarray(st, x, q->dtype, NVP_COPY_IF_NEEDED);
  if (!Py_IS_TYPE(x, st->array) || (!q->unsafe && !can_cast(dtype_of(x), q->dtype))) return NULL;
  return cast_to(st, x, q->dtype);
}

/* ---- results. Each takes r. */
/* r where the mask is true, else what out has, or 0. */
static PyObject *select_result(nvp_state *st, const request *q, PyObject *r) {
  if (!q->where) return r;
  PyObject *zero = dtype_of(r) == NVM_BOOL ? Py_NewRef(Py_False) : PyLong_FromLong(0);
  nvm_array *weak = q->out || !zero ? NULL : nvp_scalar(st, zero, PyBool_Check(zero) ? 'b' : 'i');
  nvm_array *in[3] = { ((nvp_array *)q->where)->h, ((nvp_array *)r)->h, q->out ? q->out->h : weak };
  PyObject *chosen = in[2] ? nvp_apply(st, NVP_WHERE, in, 3, NULL, 0) : NULL;
  nvm_array_unref(weak);
  Py_XDECREF(zero);
  Py_DECREF(r);
  return chosen;
}
/* Does an array of this shape broadcast to the other? */
static int fits(const nvm_array *r, const nvm_array *out) {
  int behind = nvm_rank(out) - nvm_rank(r);
  for (int d = 0; d < nvm_rank(r); d++)
    if (behind < 0 || (nvm_shape(r)[d] != 1 && nvm_shape(r)[d] != nvm_shape(out)[behind + d])) return 0;
  return behind >= 0;
}
static PyObject *store_result(const request *q, PyObject *r) {
  if (!q->out || !r) return r;
  int can = q->unsafe || can_cast(dtype_of(r), nvm_dtype_of(q->out->h));
  int failed = !can || !fits(((nvp_array *)r)->h, q->out->h) || nvp_setitem((PyObject *)q->out, Py_Ellipsis, r);
  Py_DECREF(r);
  return failed ? NULL : Py_NewRef((PyObject *)q->out);
}
/* r, if it is an array of nvm, in the dtype that was asked for. */
static PyObject *check_result(nvp_state *st, const request *q, PyObject *r) {
  if (!r) return PyErr_Clear(), NULL; /* the Python half raises it again, or another one */
  if (Py_IS_TYPE(r, st->array) && (q->dtype == NVM_DTYPE_DEFAULT || dtype_of(r) == q->dtype)) return r;
  Py_DECREF(r);
  return NULL;
}

/* ---- the calls */
static PyObject *call_as_asked(nvp_state *st, const ufunc *u, const request *q, PyObject *const *args) {
  PyObject *v[NVP_MOST] = { NULL }, *r = NULL;
  Py_ssize_t n = 0;
  while (n < u->nin && (v[n] = cast_operand(st, q, args[n]))) n++;
  if (n == u->nin) r = nvp_ufunc_operands(u, v);
  while (n) Py_DECREF(v[--n]);
  r = check_result(st, q, r);
  return r ? store_result(q, select_result(st, q, r)) : NULL;
}
PyObject *nvp_ufunc_call(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  request q;
  int more = n == u->nin + 1; /* an array for the result, by position */
  if (u->nin > NVP_MOST || (n != u->nin && !more) || !read_request(st, &q, names, args + n, 0)) return NULL;
  if (more && (q.out || !read_out(st, &q, args[u->nin]))) return NULL;
  return call_as_asked(st, u, &q, args);
}
/* x with `more` dimensions of extent 1 behind its own. */
static PyObject *extend(nvp_state *st, PyObject *x, int more) {
  nvm_array *h = ((nvp_array *)x)->h;
  int64_t shape[NVM_MAX_RANK];
  int rank = nvm_rank(h);
  if (rank + more > NVM_MAX_RANK) return NULL;
  for (int d = 0; d < rank + more; d++) shape[d] = d < rank ? nvm_shape(h)[d] : 1;
  nvm_attr attr = { .name = "shape", .kind = 'I', .is = shape, .n = rank + more };
  return nvp_apply(st, NVP_RESHAPE, &h, 1, &attr, 1);
}
PyObject *nvp_ufunc_outer(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  request q;
  if (n != 2 || u->nin != 2 || !u->in_table || !read_request(st, &q, names, args + n, 0)) return NULL;
  PyObject *a = nvp_asarray(st, args[0], NVM_DTYPE_DEFAULT, NVP_COPY_IF_NEEDED), *r = NULL;
  PyObject *b = a ? nvp_asarray(st, args[1], NVM_DTYPE_DEFAULT, NVP_COPY_IF_NEEDED) : NULL;
  PyObject *column = b ? extend(st, a, nvm_rank(((nvp_array *)b)->h)) : NULL;
  if (column) r = call_as_asked(st, u, &q, (PyObject *[]){ column, b });
  else PyErr_Clear();
  Py_XDECREF(a);
  Py_XDECREF(b);
  Py_XDECREF(column);
  return r;
}
/* Calls a function of the library's table with x, the axis (0 where none was given) and what else is not NULL. */
static PyObject *call_along(nvp_state *st, const request *q, PyObject *f, PyObject *x, PyObject *dtype) {
  PyObject *zero = q->axis ? NULL : PyLong_FromLong(0), *v[6] = { x, q->axis ? q->axis : zero };
  PyObject *const more[][2] = {
    { st->s_keepdims, q->keepdims }, { st->s_dtype, dtype }, { st->s_initial, q->initial }, { st->s_where, q->where }
  };
  PyObject *names[5] = { st->s_axis }, *keywords = NULL, *r = NULL;
  Py_ssize_t n = 1;
  for (int i = 0; i < 4; i++)
    if (more[i][1]) names[n] = more[i][0], v[++n] = more[i][1];
  if (v[1] && (keywords = PyTuple_New(n))) {
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SetItem(keywords, i, Py_NewRef(names[i]));
    r = nvp_call_table(f, v, 1, keywords);
  }
  Py_XDECREF(keywords);
  Py_XDECREF(zero);
  return r;
}
/* A reduction or a scan by f, in the dtype that was asked for: x is cast to it, and f, which sums, keeps it. */
static PyObject *fold(nvp_state *st, const ufunc *u, const request *q, PyObject *f, PyObject *x) {
  int typed = q->dtype != NVM_DTYPE_DEFAULT;
  PyObject *dtype = typed && u->scan ? nvp_dtype_object(st, q->dtype) : NULL;
  PyObject *in = typed ? cast_to(st, x, q->dtype) : Py_NewRef(x), *r = in ? call_along(st, q, f, in, dtype) : NULL;
  Py_XDECREF(in);
  Py_XDECREF(dtype);
  return check_result(st, q, r);
}
/* The axis by position, then the request. */
static int read_fold(nvp_state *st, request *q, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  if (n < 1 || n > 2 || !Py_IS_TYPE(args[0], st->array) || !read_request(st, q, names, args + n, 1)) return 0;
  if (n == 2 && q->axis) return 0;
  q->axis = n == 2 ? args[1] : q->axis;
  /* with an out and no dtype the dtypes of both decide */
  return !q->out || q->dtype != NVM_DTYPE_DEFAULT || nvm_dtype_of(q->out->h) == dtype_of(args[0]);
}
PyObject *nvp_ufunc_reduce(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  request q;
  if (!u->reduce || !read_fold(st, &q, args, n, names)) return NULL;
  nvm_dtype t = dtype_of(args[0]);
  if (q.out && q.dtype == NVM_DTYPE_DEFAULT && u->scan) q.dtype = t;
  /* the Python half makes a value of the array's kind of the initial one */
  if (q.initial && (t == NVM_BOOL || PyFloat_Check(q.initial)) && !(u->scan && nvp_kind(t) == 'f')) return NULL;
  PyObject *r = fold(st, u, &q, u->reduce, args[0]);
  return r ? store_result(&q, r) : NULL;
}
PyObject *nvp_ufunc_accumulate(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  request q;
  if (!u->scan || !read_fold(st, &q, args, n, names) || q.where || q.keepdims || q.initial || q.axis == Py_None)
    return NULL;
  if (q.out && q.dtype == NVM_DTYPE_DEFAULT) q.dtype = dtype_of(args[0]);
  PyObject *r = fold(st, u, &q, u->scan, args[0]);
  return r ? store_result(&q, r) : NULL;
}
