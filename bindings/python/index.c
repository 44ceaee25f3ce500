/* Indexing: a[key] and a[key] = value. Keys of integers, slices, Ellipsis and None are basic: the result is a view that
   writes go through, or for integers alone a copy of the element. Index arrays, lists and boolean masks go to the
   Python half of the package. Decides which keys are basic; never gathers elements itself. */
#include <stdlib.h>
#include <string.h>
#include "nvp.h"

typedef struct basic {
  const char *who; /* "getitem" or "setitem", for messages */
  int rank;        /* rank of the indexed array */
  int64_t start[NVM_MAX_RANK], count[NVM_MAX_RANK], step[NVM_MAX_RANK];
  int drop[NVM_MAX_RANK];
  int nshape, fresh; /* shape of the result with the dimensions of None; fresh: number of None */
  int element;       /* the key is one integer for each dimension */
  int64_t shape[2 * NVM_MAX_RANK];
} basic;

/* 1: basic, 0: an index array, list or mask, -1: an exception */
static int is_basic(PyObject *k) {
  if (PyLong_Check(k)) return !PyBool_Check(k);
  if (PySlice_Check(k) || k == Py_None || k == Py_Ellipsis) return 1;
  if (PyList_Check(k) || PyBool_Check(k)) return 0;
  if (nvp_is_array(k)) {
    char kind = nvp_kind(nvm_dtype_of(((nvp_array *)k)->h));
    return !nvm_rank(((nvp_array *)k)->h) && (kind == 'i' || kind == 'u') && !nvp_tracing();
  }
  if (!PyIndex_Check(k)) return 0;
  PyObject *i = PyNumber_Index(k); /* NumPy's integers have an index, its longer arrays do not */
  if (!i && !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
  if (!i) PyErr_Clear();
  Py_XDECREF(i);
  return i != NULL;
}
static int too_many(nvp_array *a, int n) {
  return PyErr_Format(PyExc_IndexError, "too many indices: the array has %d dimensions, %d were indexed",
                      nvm_rank(a->h), n),
         -1;
}
static int one_dimension(basic *b, nvp_array *a, int d, PyObject *k) {
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
static void whole(basic *b, nvp_array *a, int d) {
  b->count[d] = b->shape[b->nshape++] = nvm_shape(a->h)[d];
  b->start[d] = 0;
  b->step[d] = 1;
  b->drop[d] = 0;
}
static int parse(basic *b, nvp_array *a, PyObject *const *k, int n) {
  int used = 0, ellipsis = 0, d = 0;
  for (int i = 0; i < n; i++) used += k[i] != Py_None && k[i] != Py_Ellipsis, ellipsis += k[i] == Py_Ellipsis;
  b->rank = nvm_rank(a->h);
  b->nshape = b->fresh = 0;
  b->element = used == n && used == b->rank;
  if (used > b->rank) return too_many(a, used);
  if (ellipsis > 1) return PyErr_SetString(PyExc_IndexError, "an index can have one ellipsis (...) only"), -1;
  for (int i = 0; i < n; i++) {
    if (k[i] == Py_Ellipsis) {
      for (int m = b->rank - used; m; m--) whole(b, a, d++);
    } else if (k[i] == Py_None) {
      if (++b->fresh > NVM_MAX_RANK) return PyErr_SetString(PyExc_IndexError, "more than 32 dimensions"), -1;
      b->shape[b->nshape++] = 1;
    } else if (one_dimension(b, a, d++, k[i])) return -1;
  }
  while (d < b->rank) whole(b, a, d++);
  return 0;
}
/* 1: *b is filled in, 0: not a basic key, -1: an exception */
static int parse_key(basic *b, nvp_array *a, PyObject *key) {
  PyObject *k[3 * NVM_MAX_RANK];
  int tuple = PyTuple_Check(key);
  Py_ssize_t n = tuple ? PyTuple_Size(key) : 1;
  if (n > 3 * NVM_MAX_RANK) return too_many(a, (int)n);
  for (Py_ssize_t i = 0; i < n; i++) {
    k[i] = tuple ? PyTuple_GetItem(key, i) : key;
    int simple = is_basic(k[i]);
    if (simple <= 0) return simple;
  }
  return parse(b, a, k, (int)n) ? -1 : 1;
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
  LISTENING(nvm_is_pending(a->h), status, (r = nvm_element(a->h, b->start)) ? NVM_OK : nvm_last_status());
  return r;
}
PyObject *nvp_getitem(PyObject *self, PyObject *key) {
  nvp_array *a = (nvp_array *)self;
  basic b = { .who = "getitem" };
  int got = parse_key(&b, a, key);
  if (got < 0) return NULL;
  if (!got) {
    PyObject *f = nvp_hook(a->st, "getitem");
    return f ? PyObject_CallFunctionObjArgs(f, self, key, NULL) : NULL;
  }
  return nvp_wrap(a->st, b.element ? element_of(a, &b) : view_of(a, &b));
}

/* ---- assignment */
static int covers(const basic *b, nvp_array *a) { /* does the key select the whole array unchanged? */
  if (b->fresh) return 0;
  for (int d = 0; d < b->rank; d++)
    if (b->drop[d] || b->step[d] != 1 || b->count[d] != nvm_shape(a->h)[d]) return 0;
  return 1;
}
/* Drops leading dimensions of extent 1 from `value` down to the target's rank. */
static PyObject *fit(nvp_state *st, nvm_array *value, int rank) {
  int n = nvm_rank(value);
  const int64_t *s = nvm_shape(value);
  while (n > rank && *s == 1) s++, n--;
  if (n == nvm_rank(value)) return nvp_wrap(st, nvm_array_ref(value));
  nvm_attr at = { .name = "shape", .kind = 'I', .is = s, .n = n };
  return nvp_apply(st, NVP_RESHAPE, &value, 1, &at, 1);
}
static int store(nvp_array *a, const basic *b, nvm_array *value) {
  if (covers(b, a)) return nvm_assign(a->h, value);
  if (!b->fresh) return nvm_assign_view(a->h, b->rank, b->start, b->count, b->step, b->drop, value);
  nvm_array *target = view_of(a, b);
  int status = target ? nvm_assign(target, value) : nvm_last_status();
  nvm_array_unref(target);
  return status;
}
static int assign(nvp_array *a, const basic *b, PyObject *value) {
  nvp_state *st = a->st;
  nvm_array *v;
  int owned, got = nvp_operand_for(st, value, nvm_dtype_of(a->h), &v, &owned), status = -1;
  if (got <= 0) return got ? -1 : (PyErr_Format(PyExc_TypeError, "%R cannot be stored in an array", value), -1);
  PyObject *fitted = NULL;
  if (nvp_kind(nvm_dtype_of(v)) == 'c' && nvp_kind(nvm_dtype_of(a->h)) != 'c')
    PyErr_Format(PyExc_TypeError, "complex values cannot be stored in an array of %s",
                 nvm_dtype_name(nvm_dtype_of(a->h)));
  else if ((fitted = fit(st, v, b->nshape))) {
    nvm_array *from = ((nvp_array *)fitted)->h;
    LISTENING(nvm_is_pending(from) || nvm_is_pending(a->h), status, store(a, b, from));
    status = nvp_check(st, status);
  }
  Py_XDECREF(fitted);
  if (owned) nvm_array_unref(v);
  nvp_drain();
  return status;
}
int nvp_setitem(PyObject *self, PyObject *key, PyObject *value) {
  nvp_array *a = (nvp_array *)self;
  basic b = { .who = "setitem" };
  if (!value) return PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted"), -1;
  if (nvp_check(a->st, nvm_check_writable(a->h))) return -1;
  int got = parse_key(&b, a, key);
  if (got) return got < 0 ? -1 : assign(a, &b, value);
  PyObject *f = nvp_hook(a->st, "setitem"), *r = f ? PyObject_CallFunctionObjArgs(f, self, key, value, NULL) : NULL;
  Py_XDECREF(r);
  return r ? 0 : -1;
}

/* assign_at(x, positions, value). False: nothing was stored, and the write has to be made as an expression. */
PyObject *nvp_assign_at(PyObject *module, PyObject *args) {
  nvp_state *st = PyModule_GetState(module);
  nvp_array *x, *at, *value;
  int done, status;
  if (!PyArg_ParseTuple(args, "O!O!O!", st->array, &x, st->array, &at, st->array, &value)) return NULL;
  LISTENING(1, status, nvm_assign_at(&done, x->h, at->h, value->h));
  int bad = nvp_check(st, status);
  nvp_drain();
  return bad ? NULL : PyBool_FromLong(done);
}

/* ---- positions of a mask, which need its values */
typedef struct mask {
  const char *data; /* one byte for each element, 0 or 1 */
  int rank;
  const int64_t *shape;
  /* rows: number of rows along the last dimension; row: elements in each */
  int64_t strides[NVM_MAX_RANK + 1], rows, row;
} mask;
/* Returns the address of row r and fills in its coordinates. */
static const char *row_of(const mask *m, int64_t r, int64_t *at) {
  const char *p = m->data;
  for (int d = m->rank - 2; d >= 0; r /= m->shape[d--]) {
    at[d] = r % m->shape[d];
    p += at[d] * m->strides[d];
  }
  return p;
}
static int64_t count_in(const char *p, int64_t n, int64_t stride) {
  int64_t count = 0;
  if (stride == 1)
    for (int64_t i = 0; i < n; i++) count += p[i];
  else
    for (int64_t i = 0; i < n; i++) count += p[i * stride];
  return count;
}
/* Lists the indices of the ones among n bytes; out has space for one more. Eight zero bytes are skipped at a time. */
static void places_in(int64_t *out, const char *p, int64_t n, int64_t stride) {
  int64_t k = 0, i = 0;
  for (; stride == 1 && i + 8 <= n; i += 8) {
    uint64_t eight;
    memcpy(&eight, p + i, 8);
    if (!eight) continue;
    for (int j = 0; j < 8; j++) {
      out[k] = i + j;
      k += p[i + j];
    }
  }
  for (; i < n; i++) {
    out[k] = i;
    k += p[i * stride];
  }
}
/* The positions along dimension d of all `count` ones, as an array that owns its memory. */
static PyObject *positions_along(nvp_state *st, const mask *m, int d, int64_t count) {
  int64_t *pos = malloc(((size_t)count + 1) * sizeof *pos), at[NVM_MAX_RANK + 1], k = 0;
  if (!pos) return PyErr_Format(PyExc_MemoryError, "[nonzero] out of memory: %lld positions", (long long)count);
  for (int64_t r = 0; r < m->rows && k < count; r++) {
    const char *p = row_of(m, r, at);
    int64_t here = count_in(p, m->row, m->strides[m->rank - 1]);
    if (d == m->rank - 1) places_in(pos + k, p, m->row, m->strides[d]);
    else
      for (int64_t i = 0; i < here; i++) pos[k + i] = at[d];
    k += here;
  }
  return nvp_wrap(st, nvm_array_new_host(st->ctx, NVM_I64, 1, &count, NULL, pos, free, pos));
}
/* nonzero(mask): a tuple of int64 positions, one array for each dimension, in row-major order */
PyObject *nvp_nonzero(PyObject *module, PyObject *x) {
  (void)module;
  if (!nvp_is_array(x) || nvm_dtype_of(((nvp_array *)x)->h) != NVM_BOOL)
    return PyErr_SetString(PyExc_TypeError, "a bool array is needed"), NULL;
  nvp_array *a = (nvp_array *)x;
  const void *data;
  mask m = { .rank = nvm_rank(a->h), .shape = nvm_shape(a->h) };
  int64_t at[NVM_MAX_RANK + 1], count = 0;
  nvm_array *keep = nvp_read(a, &data, m.strides);
  if (!keep) return NULL;
  m.data = data;
  m.row = m.rank ? m.shape[m.rank - 1] : 0;
  m.rows = m.row ? nvm_size(a->h) / m.row : 0;
  for (int64_t r = 0; r < m.rows; r++) count += count_in(row_of(&m, r, at), m.row, m.strides[m.rank - 1]);
  PyObject *r = PyTuple_New(m.rank);
  for (int d = 0; r && d < m.rank; d++) {
    PyObject *v = positions_along(a->st, &m, d, count);
    if (!v || PyTuple_SetItem(r, d, v)) Py_CLEAR(r);
  }
  nvm_array_unref(keep);
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
  enum { MANY = 65536 };
  nvp_array *x;
  Py_ssize_t n;
  int evaluate;
  if (!PyArg_ParseTuple(args, "O!np", ((nvp_state *)PyModule_GetState(module))->array, &x, &n, &evaluate)) return NULL;
  int known = nvm_device_of(x->h) == NVM_DEVICE_CPU && (!nvm_is_pending(x->h) || (evaluate && !nvp_tracing()));
  if (!known || (!evaluate && nvm_size(x->h) > MANY)) Py_RETURN_NONE;
  const void *data;
  int64_t strides[NVM_MAX_RANK + 1], bad;
  nvm_array *keep = nvp_read(x, &data, strides);
  if (!keep) return NULL;
  int found = find_outside(x->h, data, strides, n, &bad);
  nvm_array_unref(keep);
  if (found) return PyLong_FromLongLong(bad);
  Py_RETURN_NONE;
}
