/* Calls of ufuncs with out=, where=, dtype= and casting=, and their methods outer, reduce and accumulate, on nvm's
   arrays: the common cases of what _ufunc.py and _ufunc_methods.py do for all, made of the same operations. */
#include <string.h>
#include "ufunc.h"

/* ---- what a call asks for beside its operands */
typedef struct request {
  nvp_array *out[NVP_RESULTS];         /* borrowed; NULL: none */
  PyObject *where;                     /* borrowed; a mask, an array of bool; NULL: none */
  PyObject *axis, *keepdims, *initial; /* borrowed; NULL: not given */
  nvm_dtype dtype;                     /* NVM_DTYPE_DEFAULT: not given */
  int unsafe;                          /* the rule for casts is "unsafe", not "same_kind" */
} request;

/* 1: read, 0: it is left to the Python half. */
static int read_one_out(nvp_state *st, nvp_array **out, PyObject *x) {
  if (x == Py_None) return 1;
  if (*out || !Py_IS_TYPE(x, st->array)) return 0;
  *out = (nvp_array *)x;
  return 1;
}
static int read_out(nvp_state *st, request *q, PyObject *x, Py_ssize_t nout) {
  if (!PyTuple_Check(x)) return (nout == 1 || x == Py_None) && read_one_out(st, q->out, x);
  int read = PyTuple_Size(x) == nout && nout <= NVP_RESULTS;
  for (Py_ssize_t i = 0; read && i < nout; i++) read = read_one_out(st, &q->out[i], PyTuple_GetItem(x, i));
  return read;
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
static int read_named(nvp_state *st, request *q, PyObject *name, PyObject *x, Py_ssize_t nout, int method) {
  const char *s = PyUnicode_AsUTF8AndSize(name, NULL);
  if (!s) return PyErr_Clear(), 0;
  if (!strcmp(s, "out")) return read_out(st, q, x, nout);
  if (!strcmp(s, "where")) return read_where(st, q, x);
  if (!strcmp(s, "dtype")) return read_dtype(st, q, x);
  if (!method)
    return !strcmp(s, "casting") ? read_casting(q, x) : !strcmp(s, "order") ? is_order(x) : !strcmp(s, "subok");
  if (!strcmp(s, "axis")) return q->axis = x, 1;
  if (!strcmp(s, "keepdims")) return q->keepdims = x, 1;
  if (!strcmp(s, "initial")) return q->initial = x == Py_None ? NULL : x, 1;
  return 0;
}
static int read_request(nvp_state *st, request *q, PyObject *names, PyObject *const *values, Py_ssize_t nout,
                        int method) {
  *q = (request){ .dtype = NVM_DTYPE_DEFAULT };
  Py_ssize_t n = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < n; i++)
    if (!read_named(st, q, PyTuple_GetItem(names, i), values[i], nout, method)) return 0;
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
static PyObject *select_result(nvp_state *st, const request *q, PyObject *r, const nvp_array *out) {
  if (!q->where || !r) return r;
  PyObject *zero = dtype_of(r) == NVM_BOOL ? Py_NewRef(Py_False) : PyLong_FromLong(0);
  nvm_array *weak = out || !zero ? NULL : nvp_scalar(st, zero, PyBool_Check(zero) ? 'b' : 'i');
  nvm_array *in[3] = { ((nvp_array *)q->where)->h, ((nvp_array *)r)->h, out ? out->h : weak };
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
static int can_store(const request *q, PyObject *r, const nvp_array *out) {
  return (q->unsafe || can_cast(dtype_of(r), nvm_dtype_of(out->h))) && fits(((nvp_array *)r)->h, out->h);
}
static PyObject *store_result(const request *q, PyObject *r, nvp_array *out) {
  if (!out || !r) return r;
  int failed = !can_store(q, r, out) || nvp_setitem((PyObject *)out, Py_Ellipsis, r);
  Py_DECREF(r);
  return failed ? NULL : Py_NewRef((PyObject *)out);
}
/* What failed is done again by the Python half, which raises the error or another one; an interrupt stays. */
static PyObject *leave(void) {
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
  return NULL;
}
/* r, if it is an array of nvm, in the dtype that was asked for. */
static PyObject *check_result(nvp_state *st, const request *q, PyObject *r) {
  if (!r) return leave();
  if (Py_IS_TYPE(r, st->array) && (q->dtype == NVM_DTYPE_DEFAULT || dtype_of(r) == q->dtype)) return r;
  Py_DECREF(r);
  return NULL;
}

/* ---- the calls */
/* Several results, a tuple; takes r. */
static PyObject *deliver_all(nvp_state *st, const ufunc *u, const request *q, PyObject *r) {
  if (!r) return leave();
  PyObject *one[NVP_RESULTS] = { NULL }, *all = NULL;
  int fine = PyTuple_Check(r) && PyTuple_Size(r) == u->nout && q->dtype == NVM_DTYPE_DEFAULT;
  for (Py_ssize_t i = 0; fine && i < u->nout; i++) { /* nothing is stored before all can be */
    one[i] = select_result(st, q, check_result(st, q, Py_NewRef(PyTuple_GetItem(r, i))), q->out[i]);
    fine = one[i] && (!q->out[i] || can_store(q, one[i], q->out[i]));
  }
  for (Py_ssize_t i = 0; fine && i < u->nout; i++) fine = !!(one[i] = store_result(q, one[i], q->out[i]));
  if (fine && (all = PyTuple_New(u->nout)))
    for (Py_ssize_t i = 0; i < u->nout; i++) PyTuple_SetItem(all, i, Py_NewRef(one[i]));
  for (Py_ssize_t i = 0; i < u->nout; i++) Py_XDECREF(one[i]);
  Py_DECREF(r);
  return all ? all : leave();
}
static PyObject *call_as_asked(nvp_state *st, const ufunc *u, const request *q, PyObject *const *args) {
  PyObject *v[NVP_MOST] = { NULL }, *r = NULL;
  Py_ssize_t n = 0;
  while (n < u->nin && (v[n] = cast_operand(st, q, args[n]))) n++;
  if (n == u->nin) r = nvp_ufunc_operands(u, v);
  while (n) Py_DECREF(v[--n]);
  if (u->nout > 1) return deliver_all(st, u, q, r);
  r = select_result(st, q, check_result(st, q, r), *q->out);
  r = store_result(q, r, *q->out);
  return r ? r : leave();
}
PyObject *nvp_ufunc_call(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  request q;
  Py_ssize_t more = n - u->nin; /* arrays for the results, by position */
  if (u->nin > NVP_MOST || u->nout > NVP_RESULTS || more < 0 || more > u->nout) return NULL;
  if (!read_request(st, &q, names, args + n, u->nout, 0)) return NULL;
  if (more && (q.out[0] || q.out[u->nout - 1])) return NULL;
  for (Py_ssize_t i = 0; i < more; i++)
    if (!read_one_out(st, &q.out[i], args[u->nin + i])) return NULL;
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
  if (n != 2 || u->nin != 2 || u->nout != 1 || !u->elementwise || !read_request(st, &q, names, args + n, 1, 0))
    return NULL;
  PyObject *a = nvp_asarray(st, args[0], NVM_DTYPE_DEFAULT, NVP_COPY_IF_NEEDED), *r = NULL;
  PyObject *b = a ? nvp_asarray(st, args[1], NVM_DTYPE_DEFAULT, NVP_COPY_IF_NEEDED) : NULL;
  PyObject *column = b ? extend(st, a, nvm_rank(((nvp_array *)b)->h)) : NULL;
  if (column) r = call_as_asked(st, u, &q, (PyObject *[]){ column, b });
  else leave();
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
  if (n < 1 || n > 2 || !Py_IS_TYPE(args[0], st->array) || !read_request(st, q, names, args + n, 1, 1)) return 0;
  if (n == 2 && q->axis) return 0;
  q->axis = n == 2 ? args[1] : q->axis;
  return 1;
}
/* With an out and no dtype the dtypes of both decide: has the out that of x? */
static int is_out_of(const request *q, PyObject *x) {
  return !*q->out || q->dtype != NVM_DTYPE_DEFAULT || nvm_dtype_of((*q->out)->h) == dtype_of(x);
}
PyObject *nvp_ufunc_reduce(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  request q;
  if (!u->reduce || !read_fold(st, &q, args, n, names) || (u->scan && !is_out_of(&q, args[0]))) return NULL;
  nvm_dtype t = dtype_of(args[0]);
  if (*q.out && q.dtype == NVM_DTYPE_DEFAULT && u->scan) q.dtype = t;
  /* the Python half makes a value of the array's kind of the initial one */
  if (q.initial && (t == NVM_BOOL || (PyFloat_Check(q.initial) && nvp_kind(t) != 'f'))) return NULL;
  PyObject *r = fold(st, u, &q, u->reduce, args[0]);
  /* what picks an element, or tests them, picks the same one in the dtype where x and the out meet */
  if (r && *q.out && !u->scan && dtype_of(r) != nvm_dtype_of((*q.out)->h)) return Py_DECREF(r), NULL;
  r = store_result(&q, r, *q.out);
  return r ? r : leave();
}
PyObject *nvp_ufunc_accumulate(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  request q;
  if (!u->scan || !read_fold(st, &q, args, n, names) || !is_out_of(&q, args[0])) return NULL;
  if (q.where || q.keepdims || q.initial || q.axis == Py_None) return NULL;
  if (*q.out && q.dtype == NVM_DTYPE_DEFAULT) q.dtype = dtype_of(args[0]);
  PyObject *r = store_result(&q, fold(st, u, &q, u->scan, args[0]), *q.out);
  return r ? r : leave();
}
