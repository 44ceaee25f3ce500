/* Converts Python objects to arrays: numbers (weak as operands, typed in asarray), nested lists, and objects with a
   buffer, DLPack or __array__. Decides what is copied and what is borrowed: unless copy=False asks for it, memory is
   borrowed only if nobody can write to it any more. */
#include <math.h>
#include <string.h>
#include "nvp.h"

/* ---- Python numbers */
int nvp_is_scalar(PyObject *x) {
  if (PyFloat_CheckExact(x)) return 'f';
  if (x == Py_True || x == Py_False) return 'b';
  if (PyLong_Check(x)) return 'i';
  if (PyComplex_CheckExact(x)) return 'c';
  if (PyObject_CheckBuffer(x)) return 0; /* np.float64 is a subclass of float, but has a dtype */
  return PyFloat_Check(x) ? 'f' : PyComplex_Check(x) ? 'c' : 0;
}
/* Makes or reuses a weak scalar: in a loop, x * 2.0 makes its 2.0 once. Weak scalars belong to no device, so traces may
   share them. */
static nvm_array *make_number(nvp_state *st, char kind, int64_t i, double d) {
  uint64_t bits = (uint64_t)i;
  if (kind == 'f' || kind == 'h') memcpy(&bits, &d, sizeof bits);
  nvp_number *n = &st->numbers[(bits * 0x9e3779b97f4a7c15u ^ (uint64_t)kind << 58) >> 58];
  if (!n->h || n->bits != bits || n->kind != kind) {
    nvm_array *h = nvm_apply_scalar(st->ctx, kind, i, d, 0);
    if (!h) return nvp_raise(st), NULL;
    nvm_array_unref(n->h);
    *n = (nvp_number){ bits, kind, h };
  }
  return nvm_array_ref(n->h);
}
void nvp_forget_numbers(nvp_state *st) {
  for (int i = 0; i < NVP_NUMBERS; i++) {
    nvm_array_unref(st->numbers[i].h);
    st->numbers[i].h = NULL;
  }
}
nvm_array *nvp_scalar(nvp_state *st, PyObject *x, char kind) {
  if (kind == 'f') return make_number(st, 'f', 0, PyFloat_AsDouble(x));
  if (kind == 'b') return make_number(st, 'b', x == Py_True, 0);
  if (kind == 'c') {
    nvm_array *h = nvm_apply_scalar(st->ctx, 'c', 0, PyComplex_RealAsDouble(x), PyComplex_ImagAsDouble(x));
    if (!h) nvp_raise(st);
    return h;
  }
  int64_t i;
  double d;
  kind = nvp_integer(x, &i, &d);
  return make_number(st, kind, i, d);
}
char nvp_integer(PyObject *x, int64_t *i, double *nearest) {
  int over = 0;
  *nearest = 0;
  *i = PyLong_AsLongLongAndOverflow(x, &over);
  if (!over) return 'i';
  *i = over > 0 ? (int64_t)PyLong_AsUnsignedLongLong(x) : -1;
  if (over > 0 && !PyErr_Occurred()) return 'u';
  PyErr_Clear();
  *i = 0;
  *nearest = PyLong_AsDouble(x);
  if (*nearest == -1 && PyErr_Occurred()) *nearest = over * HUGE_VAL;
  PyErr_Clear();
  return 'h';
}

/* ---- writing one element into memory; floats of at most 16 bits are written as f64 and cast by the library, which
   rounds once */
static nvm_dtype storage_dtype(nvm_dtype t) { return nvp_kind(t) == 'f' && nvm_dtype_size(t) < 4 ? NVM_F64 : t; }

static int write_int(char *p, nvm_dtype t, PyObject *x) {
  if (PyComplex_Check(x))
    return PyErr_Format(PyExc_TypeError, "a complex number does not fit %s", nvm_dtype_name(t)), -1;
  PyObject *n = PyFloat_Check(x) ? PyNumber_Long(x) : PyNumber_Index(x); /* floats are truncated, as in NumPy */
  if (!n) return -1;
  int bits = (int)nvm_dtype_size(t) * 8, over = 0, fits;
  long long i = PyLong_AsLongLongAndOverflow(n, &over);
  unsigned long long u = (unsigned long long)i;
  if (nvp_kind(t) == 'u') {
    if (over > 0) {
      u = PyLong_AsUnsignedLongLong(n);
      over = PyErr_Occurred() != NULL;
      PyErr_Clear();
    } else if (i < 0) over = 1;
    fits = !over && (bits == 64 || !(u >> bits));
  } else fits = !over && (bits == 64 || (i >= -(1LL << (bits - 1)) && i < (1LL << (bits - 1))));
  if (!fits) PyErr_Format(PyExc_OverflowError, "the integer %R does not fit %s", n, nvm_dtype_name(t));
  Py_DECREF(n);
  memcpy(p, &u, nvm_dtype_size(t)); /* little endian */
  return fits ? 0 : -1;
}
static int write_element(char *p, nvm_dtype t, PyObject *x) {
  if (t == NVM_BOOL) {
    int v = PyObject_IsTrue(x);
    *p = (char)(v > 0);
    return v < 0 ? -1 : 0;
  }
  if (nvp_kind(t) != 'f' && nvp_kind(t) != 'c') return write_int(p, t, x);
  double v[2] = { 0, 0 };
  if (PyComplex_Check(x)) {
    if (nvp_kind(t) == 'f')
      return PyErr_Format(PyExc_TypeError, "a complex number does not fit %s", nvm_dtype_name(t)), -1;
    v[0] = PyComplex_RealAsDouble(x);
    v[1] = PyComplex_ImagAsDouble(x);
  } else v[0] = PyFloat_AsDouble(x);
  if (v[0] == -1 && PyErr_Occurred()) return -1;
  float f[2] = { (float)v[0], (float)v[1] };
  int single = t == NVM_F32 || t == NVM_C64;
  memcpy(p, single ? (void *)f : (void *)v, nvm_dtype_size(t));
  return 0;
}
static PyObject *cast_array(nvp_state *st, nvm_array *h, nvm_dtype t) { /* takes h */
  if (!h) return nvp_raise(st);
  /* in a trace even an equal dtype is cast, which makes a weak number typed */
  int same = nvm_dtype_of(h) == t && !nvp_tracing();
  if (t == NVM_DTYPE_DEFAULT || same) return nvp_wrap(st, h);
  nvm_attr a = { .name = "dtype", .kind = 'd', .i = t };
  PyObject *r = nvp_apply(st, NVP_ASTYPE, &h, 1, &a, 1);
  nvm_array_unref(h);
  return r;
}

/* ---- nested lists */
typedef struct nest {
  nvp_state *st;
  int rank, arrays; /* arrays: an item other than a Python number was found */
  int64_t shape[NVM_MAX_RANK];
  int kinds; /* the highest kind found: 1 bool, 2 int, 3 float, 4 complex; 2: also an integer that needs uint64 */
  int big;
} nest;

static int is_list(PyObject *x) { return PyList_Check(x) || PyTuple_Check(x); }
static PyObject *list_at(PyObject *x, Py_ssize_t i) { /* borrowed */
  return PyList_Check(x) ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i);
}
static int64_t list_len(PyObject *x) { return PyList_Check(x) ? PyList_Size(x) : PyTuple_Size(x); }

static int refuse_ragged(void) {
  return PyErr_SetString(PyExc_ValueError,
                         "[asarray] the nested sequences do not have the same lengths; an array has one length "
                         "along each dimension: fill the short ones up, or keep a list of arrays"),
         -1;
}
static void meet_kind(nest *n, PyObject *x, char kind) {
  int rank = kind == 'b' ? 1 : kind == 'i' ? 2 : kind == 'f' ? 3 : 4, over = 0;
  if (rank > n->kinds) n->kinds = rank;
  if (kind == 'i' && !n->big) n->big = (PyLong_AsLongLongAndOverflow(x, &over), over > 0);
}
/* Checks that lengths agree with n->shape, and collects the kinds of the leaves. */
static int survey_nest(nest *n, PyObject *x, int depth) {
  if (!is_list(x)) {
    char kind = (char)nvp_is_scalar(x);
    if (!kind) return n->arrays = 1, 0;
    if (depth != n->rank) return refuse_ragged();
    return meet_kind(n, x, kind), 0;
  }
  if (depth == n->rank || list_len(x) != n->shape[depth]) return n->arrays ? 0 : refuse_ragged();
  for (Py_ssize_t i = 0; i < list_len(x) && !n->arrays; i++)
    if (survey_nest(n, list_at(x, i), depth + 1)) return -1;
  return 0;
}
/* Writes as many elements as were surveyed: converting an element may run Python code that changes the lists. */
static int fill_elements(const nest *n, PyObject *x, int depth, nvm_dtype t, char **to) {
  if (is_list(x) != (depth < n->rank)) return refuse_ragged();
  if (depth == n->rank) {
    int status = write_element(*to, t, x);
    *to += nvm_dtype_size(t);
    return status;
  }
  for (Py_ssize_t i = 0; i < n->shape[depth]; i++) {
    if (list_len(x) != n->shape[depth]) return refuse_ragged();
    PyObject *item = Py_NewRef(list_at(x, i));
    int bad = fill_elements(n, item, depth + 1, t, to);
    Py_DECREF(item);
    if (bad) return -1;
  }
  return 0;
}
/* The dtype for the kinds of Python numbers that were found. */
static nvm_dtype natural_dtype(const nest *n) {
  nvm_dtype f = nvm_ctx_default_float(n->st->ctx);
  return n->kinds == 1   ? NVM_BOOL
         : n->kinds == 2 ? n->big ? NVM_U64 : NVM_I64
         : n->kinds < 4  ? f
         : f == NVM_F32  ? NVM_C64
                         : NVM_C128;
}
/* Converts a list with arrays among its items: each item becomes an array, and they are stacked. */
static PyObject *stack_items(nvp_state *st, PyObject *x, nvm_dtype t) {
  if (Py_EnterRecursiveCall(" in asarray")) return NULL;
  PyObject *items = PySequence_Tuple(x), *r = NULL; /* a copy, since converting an item may change the list */
  Py_ssize_t n = items ? PyTuple_Size(items) : 0, made = 0;
  nvm_array **in = PyMem_Calloc((size_t)n + 1, sizeof *in);
  if (!in) PyErr_NoMemory();
  for (; in && items && made < n; made++) {
    PyObject *item = nvp_asarray(st, PyTuple_GetItem(items, made), NVM_DTYPE_DEFAULT, NVP_COPY_IF_NEEDED);
    if (!item) break;
    in[made] = nvm_array_ref(((nvp_array *)item)->h);
    Py_DECREF(item);
  }
  Py_LeaveRecursiveCall();
  nvm_attr axis = { .name = "axis", .kind = 'i' };
  if (in && items && made == n) r = nvp_apply(st, NVP_STACK, in, (int)n, &axis, 1);
  while (made) nvm_array_unref(in[--made]);
  PyMem_Free(in);
  Py_XDECREF(items);
  if (!r || t == NVM_DTYPE_DEFAULT) return r;
  PyObject *c = cast_array(st, nvm_array_ref(((nvp_array *)r)->h), t);
  Py_DECREF(r);
  return c;
}
static PyObject *convert_list(nvp_state *st, PyObject *x, nvm_dtype t) {
  nest n = { .st = st };
  int64_t size = 1;
  for (PyObject *at = x; is_list(at); at = list_at(at, 0)) {
    if (n.rank == NVM_MAX_RANK)
      return PyErr_SetString(PyExc_ValueError, "[asarray] the data has more than 32 dimensions"), NULL;
    size *= n.shape[n.rank++] = list_len(at);
    if (!list_len(at)) break;
  }
  if (survey_nest(&n, x, 0)) return NULL;
  if (n.arrays) return stack_items(st, x, t);
  nvm_dtype as = storage_dtype(t == NVM_DTYPE_DEFAULT ? natural_dtype(&n) : t);
  char *data = PyMem_Malloc((size_t)size * nvm_dtype_size(as) + 1), *to = data;
  if (!data) return PyErr_NoMemory();
  nvm_array *h = NULL;
  int bad = fill_elements(&n, x, 0, as, &to);
  if (!bad) h = nvm_array_new_host(st->ctx, as, n.rank, n.shape, NULL, data, NULL, NULL);
  PyMem_Free(data);
  return bad ? NULL : cast_array(st, h, t);
}
static PyObject *convert_number(nvp_state *st, PyObject *x, char kind, nvm_dtype t) {
  nest n = { .st = st };
  meet_kind(&n, x, kind);
  nvm_dtype as = storage_dtype(t == NVM_DTYPE_DEFAULT ? natural_dtype(&n) : t);
  char data[16];
  return write_element(data, as, x)
             ? NULL
             : cast_array(st, nvm_array_new_host(st->ctx, as, 0, NULL, NULL, data, NULL, NULL), t);
}

/* ---- buffers and other memory */
static int has_attr(PyObject *x, PyObject *name) { /* looks on the type, where protocols are defined */
  return PyObject_HasAttr((PyObject *)Py_TYPE(x), name);
}
/* CuPy's arrays have a buffer that raises TypeError, since a GPU's memory is not the host's. */
static int is_elsewhere(nvp_state *st, PyObject *x) { return !nvp_is_array(x) && has_attr(x, st->s_cuda_interface); }
int nvp_has_buffer(nvp_state *st, PyObject *x) {
  return PyObject_CheckBuffer(x) && !PyBytes_Check(x) && !PyByteArray_Check(x) && !is_elsewhere(st, x);
}

/* Can nobody write to the memory, because a bytes object owns it? A read-only array proves nothing: its owner may make
   it writable again, and an earlier view may be writable. */
static int is_immutable(PyObject *x) {
  PyObject *at = Py_NewRef(x);
  while (at && !PyBytes_Check(at)) {
    PyObject *next = PyObject_GetAttrString(at, PyMemoryView_Check(at) ? "obj" : "base");
    PyErr_Clear();
    Py_DECREF(at);
    at = next;
  }
  Py_XDECREF(at);
  return at != NULL;
}
static int view_dims(const Py_buffer *v, int64_t *shape, int64_t *strides) {
  if (v->ndim > NVM_MAX_RANK)
    return PyErr_SetString(PyExc_ValueError, "[asarray] the data has more than 32 dimensions"), -1;
  int64_t packed = v->itemsize;
  for (int d = v->ndim - 1; d >= 0; d--) {
    shape[d] = v->shape[d];
    strides[d] = v->strides ? v->strides[d] : packed; /* ctypes gives no strides */
    packed *= shape[d];
  }
  return 0;
}
/* Are these the bytes of a scalar that is no number, as NumPy's dates are? */
static int is_opaque(PyObject *x, const Py_buffer *view) {
  if (view->ndim != 1 || view->itemsize != 1 || PyMemoryView_Check(x)) return 0;
  PyObject *ndim = PyObject_GetAttrString(x, "ndim");
  int zero = ndim && PyLong_Check(ndim) && !PyLong_AsLong(ndim);
  Py_XDECREF(ndim);
  PyErr_Clear();
  return zero;
}
/* Gets x's buffer. Returns 1 with *view held and *t set, 0 if nvm has no such dtype, as for text, -1 on an error. */
static int open_buffer(PyObject *x, Py_buffer *view, nvm_dtype *t) {
  if (PyBytes_Check(x)) return 0;
  if (PyObject_GetBuffer(x, view, PyBUF_FULL_RO)) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
    return PyErr_Clear(), 0;
  }
  if (!view->suboffsets && nvp_dtype_of_format(view->format, t) > 0 && (size_t)view->itemsize == nvm_dtype_size(*t) &&
      !is_opaque(x, view))
    return 1;
  PyBuffer_Release(view);
  return 0;
}
static PyObject *convert_view(nvp_state *st, PyObject *x, const Py_buffer *v, nvm_dtype t, nvp_copy copy) {
  int64_t shape[NVM_MAX_RANK + 1], strides[NVM_MAX_RANK + 1];
  if (view_dims(v, shape, strides)) return NULL;
  int aligned = (uintptr_t)v->buf % (nvm_dtype_size(t) > 8 ? 8 : nvm_dtype_size(t)) == 0;
  for (int d = 0; d < v->ndim; d++) aligned &= strides[d] % (int64_t)nvm_dtype_size(t) == 0;
  if (copy == NVP_COPY_NEVER && !aligned)
    return PyErr_SetString(PyExc_ValueError, "[asarray] copy=False, but the elements do not lie on their natural "
                                             "boundaries"),
           NULL;
  if (copy == NVP_COPY_ALWAYS || (copy == NVP_COPY_IF_NEEDED && !(v->readonly && is_immutable(x))))
    return nvp_wrap(st, nvm_array_new_host(st->ctx, t, v->ndim, shape, strides, v->buf, NULL, NULL));
  PyObject *owner = PyMemoryView_FromObject(x);
  return owner ? nvp_wrap(st, nvm_array_new_host(st->ctx, t, v->ndim, shape, strides, v->buf, nvp_release, owner))
               : NULL;
}
static void release_nothing(void *owner) { (void)owner; }
int nvp_borrow(nvp_state *st, PyObject *x, nvm_array **out, Py_buffer *view) {
  nvm_dtype t;
  int64_t shape[NVM_MAX_RANK + 1], strides[NVM_MAX_RANK + 1];
  int got = open_buffer(x, view, &t);
  if (got <= 0) return got;
  *out = view_dims(view, shape, strides)
             ? NULL
             : nvm_array_new_host(st->ctx, t, view->ndim, shape, strides, view->buf, release_nothing, NULL);
  if (*out) return 1;
  PyBuffer_Release(view);
  return nvp_raise(st), -1;
}
int nvp_borrow_foreign(nvp_state *st, PyObject *x, nvm_array **out) {
  PyObject *r = NULL;
  int dlpack = has_attr(x, st->s_dlpack), elsewhere = is_elsewhere(st, x);
  if (!elsewhere && (!dlpack || PyObject_CheckBuffer(x))) return 0;
  r = dlpack ? nvp_from_dlpack(st, x, NVP_COPY_IF_NEEDED, NVM_DEVICE_AUTO) : nvp_from_cuda(st, x, NVP_COPY_NEVER);
  if (!r) return -1;
  *out = nvm_array_ref(((nvp_array *)r)->h);
  Py_DECREF(r);
  return 1;
}
/* Converts byte-swapped and bfloat16 arrays, and objects with only __array__ or __array_interface__: a Python hook
   turns them into a buffer and the dtype of its bits (None: the buffer's own). */
static PyObject *convert_foreign(nvp_state *st, PyObject *given, nvp_copy copy) {
  PyObject *x = nvp_resolved(given, copy), *f = x ? nvp_hook(st, "foreign") : NULL;
  PyObject *pair = f ? PyObject_CallFunctionObjArgs(f, x, copy == NVP_COPY_NEVER ? Py_False : Py_None, NULL) : NULL;
  if (!pair) return Py_XDECREF(x), NULL;
  PyObject *data = PyTuple_GetItem(pair, 0), *dtype = PyTuple_GetItem(pair, 1), *r = NULL;
  Py_buffer view;
  nvm_dtype found, want;
  int got = data && dtype && !nvp_dtype_from(st, dtype, &want) ? open_buffer(data, &view, &found) : -1;
  if (got == 0) PyErr_Format(PyExc_TypeError, "[asarray] nvm has no dtype for the elements of %R", x);
  if (got == 1) {
    r = convert_view(st, data, &view, want == NVM_DTYPE_DEFAULT ? found : want, copy);
    PyBuffer_Release(&view);
  }
  Py_DECREF(pair);
  Py_DECREF(x);
  return r;
}

/* ---- asarray */
PyObject *nvp_from_object(nvp_state *st, PyObject *x, nvp_copy copy) {
  Py_buffer view;
  nvm_dtype t;
  if (PyObject_CheckBuffer(x) && !is_elsewhere(st, x)) {
    int got = open_buffer(x, &view, &t);
    if (got < 0) return NULL;
    if (!got) return convert_foreign(st, x, copy);
    PyObject *r = convert_view(st, x, &view, t, copy);
    PyBuffer_Release(&view);
    return r;
  }
  if (has_attr(x, st->s_dlpack))
    return nvp_from_dlpack(st, x, copy == NVP_COPY_IF_NEEDED ? NVP_COPY_ALWAYS : copy, NVM_DEVICE_AUTO);
  if (has_attr(x, st->s_cuda_interface)) return nvp_from_cuda(st, x, copy);
  if (has_attr(x, st->s_array) || has_attr(x, st->s_array_interface)) return convert_foreign(st, x, copy);
  return Py_NewRef(Py_None);
}
static PyObject *convert_object(nvp_state *st, PyObject *x, nvp_copy copy) {
  return nvp_jitting() ? nvp_captured(st, x, copy) : nvp_from_object(st, x, copy);
}
static PyObject *convert_array(nvp_state *st, nvp_array *a, nvm_dtype t, nvp_copy copy) {
  int same = t == nvm_dtype_of(a->h);
  if (t != NVM_DTYPE_DEFAULT && (!same || nvp_tracing())) {
    if (copy == NVP_COPY_NEVER && !same)
      return PyErr_Format(PyExc_ValueError, "[asarray] copy=False, but %s has to be converted to %s",
                          nvm_dtype_name(nvm_dtype_of(a->h)), nvm_dtype_name(t));
    return cast_array(st, nvm_array_ref(a->h), t);
  }
  return copy == NVP_COPY_ALWAYS ? nvp_wrap(st, nvm_snapshot(a->h)) : Py_NewRef((PyObject *)a);
}
PyObject *nvp_asarray(nvp_state *st, PyObject *x, nvm_dtype t, nvp_copy copy) {
  if (Py_IS_TYPE(x, st->array)) return convert_array(st, (nvp_array *)x, t, copy);
  char kind = (char)nvp_is_scalar(x);
  if (kind || is_list(x)) {
    if (copy == NVP_COPY_NEVER)
      return PyErr_SetString(PyExc_ValueError, "[asarray] copy=False, but lists and numbers are copied"), NULL;
    return kind ? convert_number(st, x, kind, t) : convert_list(st, x, t);
  }
  if (Py_IS_TYPE(x, &PyRange_Type)) {
    PyObject *list = PySequence_List(x), *made = list ? nvp_asarray(st, list, t, copy) : NULL;
    Py_XDECREF(list);
    return made;
  }
  PyObject *r = convert_object(st, x, copy);
  if (r == Py_None) {
    Py_DECREF(r);
    PyErr_Format(PyExc_TypeError,
                 "[asarray] cannot convert %R to an array; pass an array, a number or a list of numbers",
                 (PyObject *)Py_TYPE(x));
    return NULL;
  }
  if (!r || t == NVM_DTYPE_DEFAULT) return r;
  PyObject *c = convert_array(st, (nvp_array *)r, t, copy == NVP_COPY_NEVER ? copy : NVP_COPY_IF_NEEDED);
  Py_DECREF(r);
  return c;
}
int nvp_copy_of(PyObject *x, nvp_copy *out) {
  if (PyUnicode_Check(x))
    return PyErr_Format(PyExc_ValueError, "copy is True, False or None (if one is needed), not %R", x), -1;
  int always = x == Py_None ? 0 : PyObject_IsTrue(x);
  *out = x == Py_None ? NVP_COPY_IF_NEEDED : always ? NVP_COPY_ALWAYS : NVP_COPY_NEVER;
  return always < 0 ? -1 : 0;
}
static PyObject *asarray(PyObject *m, PyObject *args, PyObject *kw) {
  static char *names[] = { "", "dtype", "device", "copy", NULL };
  nvp_state *st = PyModule_GetState(m);
  PyObject *x, *dtype = Py_None, *device = Py_None, *may = Py_None;
  nvm_dtype t;
  nvm_device d;
  nvp_copy copy;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O$OO:asarray", names, &x, &dtype, &device, &may) ||
      nvp_device(st, device, &d) || nvp_dtype_from(st, dtype, &t) || nvp_copy_of(may, &copy))
    return NULL;
  PyObject *r = nvp_asarray(st, x, t, copy);
  if (!r) return nvp_name_caller(st, NULL);
  if (d == NVM_DEVICE_AUTO) return r;
  nvm_array *h = ((nvp_array *)r)->h;
  PyObject *there = NULL;
  if (copy == NVP_COPY_NEVER && nvm_device_of(h) != d)
    PyErr_SetString(PyExc_ValueError, "[asarray] copy=False, but the data has to go to another device");
  else {
    nvp_visit v = nvp_doctor_begin(st, "asarray", &h, nvm_device_of(h) != d);
    there = nvp_wrap(st, nvp_put(nvm_array_ref(h), d));
    nvp_doctor_end(st, &v);
  }
  Py_DECREF(r);
  return there;
}
PyMethodDef nvp_asarray_def[] = {
  { "asarray", (PyCFunction)(void (*)(void))asarray, METH_VARARGS | METH_KEYWORDS,
    "asarray($module, obj, /, dtype=None, *, device=None, copy=None)\n--\n\n"
    "An array of the data of obj: an array, a number, nested lists, or anything with a buffer, DLPack or __array__.\n"
    "copy=False borrows the memory, which must not change while the array lives; None copies what somebody could "
    "write to."
    "\n\n>>> import nvm\n>>> nvm.asarray([1, 2.5])\narray([1. , 2.5])\n" },
  { NULL, NULL, 0, NULL }
};

/* ---- operands */
int nvp_operand(nvp_state *st, PyObject *x, nvm_array **out, int *owned) {
  if (Py_IS_TYPE(x, st->array)) return *out = ((nvp_array *)x)->h, *owned = 0, 1;
  *owned = 1;
  char kind = (char)nvp_is_scalar(x);
  if (kind) return (*out = nvp_scalar(st, x, kind)) ? 1 : -1;
  PyObject *a = is_list(x) ? convert_list(st, x, NVM_DTYPE_DEFAULT) : convert_object(st, x, NVP_COPY_IF_NEEDED);
  if (!a) return -1;
  int known = a != Py_None;
  if (known) *out = nvm_array_ref(((nvp_array *)a)->h);
  Py_DECREF(a);
  return known;
}
static int is_big(PyObject *x) { /* is it an int that does not fit into int64? */
  int over = 0;
  if (PyLong_Check(x)) PyLong_AsLongLongAndOverflow(x, &over);
  return over;
}
int nvp_operand_for(nvp_state *st, PyObject *x, nvm_dtype t, nvm_array **out, int *owned) {
  char kind = (char)nvp_is_scalar(x), scratch[16];
  if (kind && write_element(scratch, storage_dtype(t), x)) return -1;
  if (!is_list(x) && !is_big(x)) return nvp_operand(st, x, out, owned);
  PyObject *a = kind ? convert_number(st, x, kind, t) : convert_list(st, x, t);
  if (!a) return -1;
  *out = nvm_array_ref(((nvp_array *)a)->h);
  *owned = 1;
  Py_DECREF(a);
  return 1;
}
