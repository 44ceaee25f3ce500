/* Indexing: a[key] and a[key] = value. Keys of integers, slices, Ellipsis and None are basic: the result is a view that
   writes go through, or for integers alone a copy of the element. Index arrays, lists and boolean masks are given to
   the library where all values are in host memory; what it does not do at once, and every error, is left to the Python
   half of the package. Decides which keys are basic; never gathers elements itself. */
#include <string.h>
#include "nvp.h"

enum { MANY = 65536 }; /* elements of an index array or mask that are not looked at lightly */

typedef struct basic {
  const char *who;     /* "getitem" or "setitem", for messages */
  int rank;            /* rank of the indexed array */
  int64_t start[NVM_MAX_RANK], count[NVM_MAX_RANK], step[NVM_MAX_RANK];
  int drop[NVM_MAX_RANK];
  int nshape, fresh; /* shape of the result with the dimensions of None; fresh: number of None */
  int element;       /* the key is one integer for each dimension */
  int64_t shape[2 * NVM_MAX_RANK];
} basic;

/* Is it another library's array, of any number of dimensions, rather than a number? Elements of arrays can be set. */
static int is_foreign_array(PyObject *k) { return PyType_GetSlot(Py_TYPE(k), Py_mp_ass_subscript) != NULL; }
/* 1: basic, 0: an index array, list or mask, -1: an exception */
static int is_basic(PyObject *k) {
  if (PyLong_Check(k)) return !PyBool_Check(k);
  if (PySlice_Check(k) || k == Py_None || k == Py_Ellipsis) return 1;
  if (PyList_Check(k) || PyBool_Check(k)) return 0;
  if (nvp_is_array(k)) {
    char kind = nvp_kind(nvm_dtype_of(((nvp_array *)k)->h));
    return !nvm_rank(((nvp_array *)k)->h) && (kind == 'i' || kind == 'u') && !nvp_tracing();
  }
  if (!PyIndex_Check(k) || is_foreign_array(k)) return 0;
  PyObject *i = PyNumber_Index(k); /* NumPy's integers have an index, its longer arrays do not */
  if (!i && !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
  if (!i) PyErr_Clear();
  Py_XDECREF(i);
  return i != NULL;
}
static int refuse_too_many(const basic *b, nvp_array *a, int n) {
  return PyErr_Format(PyExc_IndexError, "[%s] too many indices: the array has %d dimensions, %d were indexed", b->who,
                      nvm_rank(a->h), n),
         -1;
}
static int read_dimension(basic *b, nvp_array *a, int d, PyObject *k) {
  int64_t n = nvm_shape(a->h)[d];
  if (PySlice_Check(k)) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(k, &start, &stop, &step)) return -1;
    b->count[d] = PySlice_AdjustIndices((Py_ssize_t)n, &start, &stop, step);
    b->start[d] = b->count[d] ? start : 0;
    b->step[d] = b->count[d] > 1 ? step : 1;
    b->shape[b->nshape++] = b->count[d];
    b->drop[d] = b->element = 0;
    return 0;
  }
  Py_ssize_t i = PyNumber_AsSsize_t(k, PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) return -1;
  if (i < -n || i >= n)
    return PyErr_Format(PyExc_IndexError, "[%s] index %zd is out of range for axis %d of extent %lld", b->who, i, d,
                        (long long)n),
           -1;
  b->start[d] = i < 0 ? i + n : i;
  b->count[d] = b->step[d] = 1;
  b->drop[d] = 1;
  return 0;
}
static void take_whole(basic *b, nvp_array *a, int d) {
  b->count[d] = b->shape[b->nshape++] = nvm_shape(a->h)[d];
  b->start[d] = 0;
  b->step[d] = 1;
  b->drop[d] = 0;
}
static int parse_basic(basic *b, nvp_array *a, PyObject *const *k, int n) {
  int used = 0, ellipsis = 0, d = 0;
  for (int i = 0; i < n; i++) used += k[i] != Py_None && k[i] != Py_Ellipsis, ellipsis += k[i] == Py_Ellipsis;
  b->rank = nvm_rank(a->h);
  b->nshape = b->fresh = 0;
  b->element = used == n && used == b->rank;
  if (used > b->rank) return refuse_too_many(b, a, used);
  if (ellipsis > 1) return PyErr_Format(PyExc_IndexError, "[%s] an index can have one ellipsis (...) only", b->who), -1;
  for (int i = 0; i < n; i++) {
    if (k[i] == Py_Ellipsis) {
      for (int m = b->rank - used; m; m--) take_whole(b, a, d++);
    } else if (k[i] == Py_None) {
      if (++b->fresh > NVM_MAX_RANK)
        return PyErr_Format(PyExc_IndexError, "[%s] the result has more than 32 dimensions", b->who), -1;
      b->shape[b->nshape++] = 1;
    } else if (read_dimension(b, a, d++, k[i])) return -1;
  }
  while (d < b->rank) take_whole(b, a, d++);
  return 0;
}
/* 1: *b is filled in, 0: not a basic key, -1: an exception */
static int parse_key(basic *b, nvp_array *a, PyObject *key) {
  PyObject *k[3 * NVM_MAX_RANK];
  int tuple = PyTuple_Check(key);
  Py_ssize_t n = tuple ? PyTuple_Size(key) : 1;
  if (n > 3 * NVM_MAX_RANK) return refuse_too_many(b, a, (int)n);
  for (Py_ssize_t i = 0; i < n; i++) {
    k[i] = tuple ? PyTuple_GetItem(key, i) : key;
    int simple = is_basic(k[i]);
    if (simple <= 0) return simple;
  }
  return parse_basic(b, a, k, (int)n) ? -1 : 1;
}
static int covers_array(const basic *b, nvp_array *a) { /* does the key select the whole array unchanged? */
  if (b->fresh) return 0;
  for (int d = 0; d < b->rank; d++)
    if (b->drop[d] || b->step[d] != 1 || b->count[d] != nvm_shape(a->h)[d]) return 0;
  return 1;
}
static nvm_array *view_of(nvp_array *a, const basic *b) {
  nvm_array *v = nvm_view(a->h, b->rank, b->start, b->count, b->step, b->drop);
  if (!v || !b->fresh) return v;
  nvm_array *r = nvm_view_as(v, b->nshape, b->shape);
  nvm_array_unref(v);
  return r;
}
/* Runs a call that may have to compute a pending array, during which Ctrl-C is noticed. The GIL is kept, since other
   threads may write to the array too. */
#define LISTENING(pending, status, call) do { \
    int listens = (pending); \
    if (listens) nvp_listen(1); \
    (status) = (call); \
    if (listens) nvp_listen(0); \
  } while (nvp_again(status))

static nvm_array *element_of(nvp_array *a, const basic *b) {
  nvm_array *r;
  int status;
  nvp_visit v = nvp_doctor_begin_read(a->st, "getitem", &a->h, 1);
  LISTENING(nvm_is_pending(a->h), status, (r = nvm_element(a->h, b->start)) ? NVM_OK : nvm_last_status());
  nvp_doctor_end(a->st, &v);
  return r;
}

/* ---- keys with index arrays */
/* A view by the slices and None of a key, and the indices along its other dimensions. */
typedef struct arrays {
  basic b;
  int n, dims, rank, before; /* dims: number of indexed dimensions; rank: of the index arrays together */
  int lazy;                  /* one of them is a mask without a value */
  nvm_index at[NVM_MAX_RANK];
  int nheld;
  PyObject *held[NVM_MAX_RANK]; /* counted; what the indices are in */
} arrays;

/* Converts an item of a key to an array of integers, or to a mask with dimensions. A new reference; NULL: it is
   neither, or an exception that is raised again by the Python half. */
static PyObject *index_array(nvp_state *st, PyObject *k) {
  if (PyBool_Check(k) || !(nvp_is_array(k) || PyList_Check(k) || nvp_has_buffer(st, k))) return NULL;
  PyObject *x = nvp_asarray(st, k, NVM_DTYPE_DEFAULT, NVP_COPY_IF_NEEDED);
  if (!x) return PyErr_Clear(), NULL;
  nvm_array *h = ((nvp_array *)x)->h;
  char kind = nvp_kind(nvm_dtype_of(h));
  int fits = kind == 'i' || kind == 'u' || (kind == 'b' && nvm_rank(h) && !nvp_tracing());
  return fits && (nvp_tracing() || nvm_device_of(h) == NVM_DEVICE_CPU) ? x : (Py_DECREF(x), NULL);
}
static int dimensions_of(nvm_array *h) { return nvm_dtype_of(h) == NVM_BOOL ? nvm_rank(h) : 1; }
/* Adds an array, or an integer, as the next index of dimension d. Returns the number of dimensions that it indexes. */
static int add_index(arrays *v, nvp_array *a, int d, PyObject *k) {
  nvm_array *h = nvp_is_array(k) ? ((nvp_array *)k)->h : NULL;
  int dims = h ? dimensions_of(h) : 1, rank = !h ? 0 : nvm_dtype_of(h) == NVM_BOOL ? 1 : nvm_rank(h);
  nvm_index *at = &v->at[v->n++];
  *at = (nvm_index){ .at = h, .axis = v->b.nshape, .message_axis = d };
  if (!h) at->number = PyNumber_AsSsize_t(k, NULL); /* integers that are out of range stay so */
  v->rank = rank > v->rank ? rank : v->rank;
  v->lazy |= h && nvm_dtype_of(h) == NVM_BOOL && nvm_is_pending(h);
  for (int i = 0; i < dims; i++) take_whole(&v->b, a, d + i);
  v->dims += dims;
  return dims;
}
/* Splits a key, whose arrays are converted, into a view and indices. Returns 0 if the Python half must raise an
   error. */
static int split_key(arrays *v, nvp_array *a, PyObject *const *k, int n) {
  int used = 0, ellipsis = 0, d = 0, last = -1, apart = 0, rank = nvm_rank(a->h);
  for (int i = 0; i < n; i++) {
    ellipsis += k[i] == Py_Ellipsis;
    used += nvp_is_array(k[i]) ? dimensions_of(((nvp_array *)k[i])->h) : k[i] != Py_None && k[i] != Py_Ellipsis;
  }
  if (used > rank || ellipsis > 1) return 0;
  v->b.rank = rank;
  for (int i = 0; i < n; i++) {
    if (k[i] == Py_Ellipsis) {
      for (int m = rank - used; m; m--) take_whole(&v->b, a, d++);
    } else if (k[i] == Py_None) {
      if (++v->b.fresh > NVM_MAX_RANK) return 0;
      v->b.shape[v->b.nshape++] = 1;
    } else if (PySlice_Check(k[i])) {
      if (read_dimension(&v->b, a, d++, k[i])) return PyErr_Clear(), 0;
    } else {
      apart |= v->n && i != last + 1;
      if (!v->n) v->before = v->b.nshape;
      last = i;
      d += add_index(v, a, d, k[i]);
    }
  }
  while (d < rank) take_whole(&v->b, a, d++);
  if (apart) v->before = 0;
  return v->b.nshape <= NVM_MAX_RANK;
}
/* Reads a key with index arrays. Returns 0 if it is left to the Python half. */
static int open_arrays(arrays *v, nvp_array *a, PyObject *key, int writes) {
  PyObject *k[3 * NVM_MAX_RANK];
  int tuple = PyTuple_Check(key), ok = nvp_tracing() ? writes : nvm_device_of(a->h) == NVM_DEVICE_CPU;
  Py_ssize_t n = tuple ? PyTuple_Size(key) : 1;
  v->b.fresh = v->b.nshape = v->n = v->dims = v->rank = v->before = v->lazy = v->nheld = 0;
  ok = ok && n <= 3 * NVM_MAX_RANK;
  for (Py_ssize_t i = 0; i < n && ok; i++) {
    k[i] = tuple ? PyTuple_GetItem(key, i) : key;
    if (PySlice_Check(k[i]) || k[i] == Py_None || k[i] == Py_Ellipsis || (PyLong_Check(k[i]) && !PyBool_Check(k[i])))
      continue;
    ok = v->nheld < NVM_MAX_RANK && (k[i] = index_array(a->st, k[i])) != NULL;
    if (ok) v->held[v->nheld++] = k[i];
  }
  return ok && split_key(v, a, k, (int)n);
}
static void close_arrays(arrays *v) {
  while (v->nheld) Py_DECREF(v->held[--v->nheld]);
}
static nvm_array *indexed_view(nvp_array *a, const arrays *v) {
  return covers_array(&v->b, a) ? nvm_array_ref(a->h) : view_of(a, &v->b);
}
/* Failures that the Python half reports, with what it knows. */
static int is_reported(int status) {
  return status == NVM_ERR_INDEX || status == NVM_ERR_VALUE || status == NVM_ERR_TYPE || status == NVM_ERR_OVERFLOW;
}
/* The elements of a key with index arrays. NULL: an exception, or it is left to the Python half. */
static PyObject *get_arrays(nvp_array *a, PyObject *key) {
  arrays v;
  nvm_array *from = open_arrays(&v, a, key, 0) ? indexed_view(a, &v) : NULL, *r = NULL;
  int status = NVM_OK, pending = v.lazy || nvm_is_pending(a->h);
  if (from) LISTENING(pending, status, nvm_get_at(&r, from, v.n, v.at, v.before));
  if (status && !is_reported(status)) nvp_check(a->st, status);
  close_arrays(&v);
  nvm_array_unref(from);
  return r ? nvp_wrap(a->st, r) : NULL;
}
PyObject *nvp_getitem(PyObject *self, PyObject *key) {
  nvp_array *a = (nvp_array *)self;
  basic b;
  b.who = "getitem";
  int got = parse_key(&b, a, key);
  if (got < 0) return NULL;
  if (got) return nvp_wrap(a->st, b.element ? element_of(a, &b) : view_of(a, &b));
  PyObject *r = get_arrays(a, key), *f;
  if (r || PyErr_Occurred()) return r;
  return (f = nvp_hook(a->st, "getitem")) ? PyObject_CallFunctionObjArgs(f, self, key, NULL) : NULL;
}

/* ---- assignment */
/* Drops leading dimensions of extent 1 from `value` down to the target's rank. A new reference; NULL with a message. */
static nvm_array *fit_value(nvp_state *st, nvm_array *value, int rank) {
  int n = nvm_rank(value);
  const int64_t *s = nvm_shape(value);
  while (n > rank && *s == 1) s++, n--;
  if (n == nvm_rank(value)) return nvm_array_ref(value);
  nvm_attr at = { .name = "shape", .kind = 'I', .is = s, .n = n };
  return nvm_apply(st->ctx, st->fixed[NVP_RESHAPE], &value, 1, &at, 1);
}
static nvm_array *refuse_value(PyObject *value, nvm_dtype t) {
  PyErr_Format(PyExc_TypeError, "[setitem] %R cannot be stored in an array of %s", value, nvm_dtype_name(t));
  return NULL;
}
/* The value as an array whose dimensions fit in `rank`. A new reference; NULL: an exception. */
static nvm_array *value_for(nvp_array *a, PyObject *value, int rank) {
  nvp_state *st = a->st;
  nvm_dtype t = nvm_dtype_of(a->h);
  nvm_array *v, *fitted = NULL;
  int owned, got = nvp_operand_for(st, value, t, &v, &owned);
  if (got <= 0) return got ? NULL : refuse_value(value, t);
  if (nvp_kind(nvm_dtype_of(v)) == 'c' && nvp_kind(t) != 'c')
    PyErr_Format(PyExc_TypeError, "[setitem] complex values cannot be stored in an array of %s; take real(x) or abs(x)",
                 nvm_dtype_name(t));
  else if (!(fitted = fit_value(st, v, rank))) nvp_raise(st);
  if (owned) nvm_array_unref(v);
  return fitted;
}
static int store_value(nvp_array *a, const basic *b, nvm_array *value) {
  if (covers_array(b, a)) return nvm_assign(a->h, value);
  if (!b->fresh) return nvm_assign_view(a->h, b->rank, b->start, b->count, b->step, b->drop, value);
  nvm_array *target = view_of(a, b);
  int status = target ? nvm_assign(target, value) : nvm_last_status();
  nvm_array_unref(target);
  return status;
}
/* 0, or -1 with an error where the value does not broadcast to what the key selects. */
static int check_shape(const basic *b, nvm_array *v) {
  int n = nvm_rank(v), fits = n <= b->nshape;
  const int64_t *s = nvm_shape(v);
  for (int d = 0; fits && d < n; d++) fits = s[d] == 1 || s[d] == b->shape[b->nshape - n + d];
  if (fits) return 0;
  PyObject *from = nvp_ints(s, n), *to = nvp_ints(b->shape, b->nshape);
  if (from && to) PyErr_Format(PyExc_ValueError, "[setitem] a value of shape %S does not broadcast to %S", from, to);
  Py_XDECREF(from);
  Py_XDECREF(to);
  return -1;
}
static int assign_value(nvp_array *a, const basic *b, PyObject *value) {
  nvm_array *v = value_for(a, value, b->nshape);
  int status;
  if (v && check_shape(b, v)) nvm_array_unref(v), v = NULL;
  if (!v) return -1;
  LISTENING(nvm_is_pending(v) || nvm_is_pending(a->h), status, store_value(a, b, v));
  status = nvp_check(a->st, status);
  nvm_array_unref(v);
  nvp_drain();
  return status;
}
/* Is a write of one number by this mask better made as an expression, which is computed with what reads it? */
static int is_select(const arrays *v, nvp_array *a, nvm_array *value) {
  int mask = v->n == 1 && nvm_dtype_of(v->at[0].at) == NVM_BOOL && !nvm_rank(value);
  return mask && (nvm_size(v->at[0].at) >= MANY || (v->lazy && nvm_is_pending(a->h)));
}
/* Stores through index arrays. 1: done, 0: it is left to the Python half, -1: an exception. */
static int set_arrays(nvp_array *a, PyObject *key, PyObject *value) {
  arrays v;
  int done = 0, status = NVM_OK;
  nvm_array *x = NULL, *to = NULL;
  if (open_arrays(&v, a, key, 1) && !(x = value_for(a, value, v.b.nshape - v.dims + v.rank))) PyErr_Clear();
  if (x && !is_select(&v, a, x)) to = indexed_view(a, &v);
  if (to) LISTENING(1, status, nvm_assign_at(&done, to, v.n, v.at, v.before, x));
  close_arrays(&v);
  nvm_array_unref(to), nvm_array_unref(x);
  nvp_drain();
  return status && !is_reported(status) ? nvp_check(a->st, status) : done;
}
int nvp_setitem(PyObject *self, PyObject *key, PyObject *value) {
  nvp_array *a = (nvp_array *)self;
  basic b;
  b.who = "setitem";
  if (!value) return PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted"), -1;
  if (nvp_check(a->st, nvm_check_writable(a->h))) return -1;
  int got = parse_key(&b, a, key);
  if (got) return got < 0 ? -1 : assign_value(a, &b, value);
  if ((got = set_arrays(a, key, value))) return got < 0 ? -1 : 0;
  PyObject *f = nvp_hook(a->st, "setitem"), *r = f ? PyObject_CallFunctionObjArgs(f, self, key, value, NULL) : NULL;
  Py_XDECREF(r);
  return r ? 0 : -1;
}

/* nonzero(mask): a tuple of int64 positions, one array for each dimension, in row-major order */
PyObject *nvp_nonzero(PyObject *module, PyObject *x) {
  (void)module;
  if (!nvp_is_array(x)) return PyErr_SetString(PyExc_TypeError, "a bool array is needed"), NULL;
  nvp_array *a = (nvp_array *)x;
  nvm_array *at[NVM_MAX_RANK];
  if (nvp_eval(a->st, "nonzero", &a->h, 1) || nvp_check(a->st, nvm_nonzero(at, a->h))) return NULL;
  PyObject *r = PyTuple_New(nvm_rank(a->h));
  for (int d = 0; d < nvm_rank(a->h); d++) {
    PyObject *v = r ? nvp_wrap(a->st, at[d]) : (nvm_array_unref(at[d]), NULL);
    if (r && (!v || PyTuple_SetItem(r, d, v))) Py_CLEAR(r);
  }
  return r;
}

/* ---- index arrays whose values are known */
/* an index of any integer dtype; values above int64 become INT64_MAX */
static int64_t index_at(const char *p, nvm_dtype t) {
  int64_t v = 0;
  size_t size = nvm_dtype_size(t);
  int unused = 64 - 8 * (int)size;
  memcpy(&v, p, size); /* little endian */
  if (nvp_kind(t) == 'i') return (int64_t)((uint64_t)v << unused) >> unused;
  return v < 0 ? INT64_MAX : v;
}
/* Returns 1 if an index is outside [-n, n); *bad is the first one in row-major order. Strides are in bytes. */
static int find_outside(const nvm_array *x, const char *p, const int64_t *strides, int64_t n, int64_t *bad) {
  int64_t at[NVM_MAX_RANK + 1] = { 0 };
  int rank = nvm_rank(x);
  for (int64_t left = nvm_size(x); left > 0; left--) {
    *bad = index_at(p, nvm_dtype_of(x));
    if (*bad < -n || *bad >= n) return 1;
    for (int d = rank - 1; d >= 0; d--) {
      p += strides[d];
      if (++at[d] < nvm_shape(x)[d]) break;
      p -= strides[d] * nvm_shape(x)[d];
      at[d] = 0;
    }
  }
  return 0;
}
/* index_outside(indices, n, evaluate): the first index outside [-n, n), or None if there is none or it is not known
   without waiting. Pending indices (with evaluate only those in a trace), indices on a GPU, and without evaluate more
   than MANY indices are not looked at here, but checked where they are used. */
PyObject *nvp_index_outside(PyObject *module, PyObject *args) {
  nvp_array *x;
  Py_ssize_t n;
  int evaluate;
  if (!PyArg_ParseTuple(args, "O!np", ((nvp_state *)PyModule_GetState(module))->array, &x, &n, &evaluate)) return NULL;
  int known = nvm_device_of(x->h) == NVM_DEVICE_CPU && (!nvm_is_pending(x->h) || (evaluate && !nvp_tracing()));
  if (!known || (!evaluate && nvm_size(x->h) > MANY)) Py_RETURN_NONE;
  const void *data;
  int64_t strides[NVM_MAX_RANK + 1], bad;
  nvm_array *keep = nvp_read(x, "index", &data, strides);
  if (!keep) return NULL;
  int found = find_outside(x->h, data, strides, n, &bad);
  nvm_array_unref(keep);
  if (found) return PyLong_FromLongLong(bad);
  Py_RETURN_NONE;
}
PyObject *nvp_is_writable(PyObject *m, PyObject *x) {
  (void)m;
  if (!nvp_is_array(x)) return PyErr_SetString(PyExc_TypeError, "is_writable takes an array of nvm"), NULL;
  return PyBool_FromLong(!nvm_check_writable(((nvp_array *)x)->h));
}
int nvp_set_never(PyObject *self, PyObject *value, void *instead) {
  (void)self, (void)value;
  PyErr_Format(PyExc_AttributeError, "an array keeps its shape and dtype, since it is a value in a graph; write %s",
               (const char *)instead);
  return -1;
}
