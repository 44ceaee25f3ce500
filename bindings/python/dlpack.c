/* DLPack in both directions for the CPU and NVIDIA GPUs: versioned and legacy capsules, streams, and the C exchange
   API. Exports are read-only and marked so where the capsule can; imports borrow the memory until the last array over
   it is freed. The structs are the published ABI (DLPack 1.x). */
#include <stdlib.h>
#include <string.h>
#include "nvp.h"

typedef struct dl_device { int32_t type, id; } dl_device;
typedef struct dl_dtype { uint8_t code, bits; uint16_t lanes; } dl_dtype;
typedef struct dl_tensor {
  void *data;
  dl_device device;
  int32_t ndim;
  dl_dtype dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor;
typedef struct dl_legacy { dl_tensor t; void *ctx; void (*deleter)(struct dl_legacy *); } dl_legacy;
typedef struct dl_versioned {
  uint32_t major, minor;
  void *ctx;
  void (*deleter)(struct dl_versioned *);
  uint64_t flags;
  dl_tensor t;
} dl_versioned;
/* The table that types expose as __dlpack_c_exchange_api__; each function returns 0, or -1 with an exception. */
typedef struct dl_exchange {
  uint32_t major, minor;
  struct dl_exchange *older;
  int (*allocate)(dl_tensor *like, dl_versioned **out, void *ctx,
                  void (*fail)(void *ctx, const char *kind, const char *message));
  int (*from_object)(void *object, dl_versioned **out);
  int (*to_object)(dl_versioned *tensor, void **object);
  int (*look)(void *object, dl_tensor *out);
  int (*stream)(int32_t type, int32_t id, void **out);
} dl_exchange;
enum { DL_CPU = 1, DL_CUDA = 2, DL_PINNED = 3, DL_MANAGED = 13, DL_READ_ONLY = 1, DL_IS_COPIED = 2 };
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX, DL_BOOL, DL_F8_E4M3FN = 10, DL_F8_E5M2 = 12 };
static const char LEGACY[] = "dltensor", VERSIONED[] = "dltensor_versioned", EXCHANGE[] = "dlpack_exchange_api";
static const char USED_LEGACY[] = "used_dltensor", USED_VERSIONED[] = "used_dltensor_versioned";

static dl_dtype dtype_out(nvm_dtype t) {
  int code = t == NVM_BOOL        ? DL_BOOL
             : t == NVM_BF16      ? DL_BFLOAT
             : t == NVM_F8E4      ? DL_F8_E4M3FN
             : t == NVM_F8E5      ? DL_F8_E5M2
             : nvp_kind(t) == 'i' ? DL_INT
             : nvp_kind(t) == 'u' ? DL_UINT
             : nvp_kind(t) == 'f' ? DL_FLOAT
                                  : DL_COMPLEX;
  return (dl_dtype){ (uint8_t)code, (uint8_t)(nvm_dtype_size(t) * 8), 1 };
}
static int dtype_in(dl_dtype d, nvm_dtype *out) {
  for (int t = 0; t < NVM_NDTYPES; t++) {
    dl_dtype e = dtype_out((nvm_dtype)t);
    if (e.code == d.code && e.bits == d.bits && d.lanes == 1) return *out = (nvm_dtype)t, 1;
  }
  return 0;
}
static dl_device device_out(nvm_device d) {
  return d > NVM_DEVICE_CPU ? (dl_device){ DL_CUDA, d - NVM_DEVICE_CUDA } : (dl_device){ DL_CPU, 0 };
}
static nvm_device device_in(dl_device d) { /* AUTO: not a device of nvm */
  if (d.type == DL_CPU || d.type == DL_PINNED) return NVM_DEVICE_CPU;
  int gpu = (d.type == DL_CUDA || d.type == DL_MANAGED) && d.id >= 0 && d.id <= INT32_MAX - NVM_DEVICE_CUDA;
  return gpu ? NVM_DEVICE_CUDA + d.id : NVM_DEVICE_AUTO;
}

/* ---- export: one block that holds either kind of managed tensor */
typedef struct export {
  union {
    dl_versioned v;
    dl_legacy l;
  } m;
  nvm_array *keep;
  int64_t shape[NVM_MAX_RANK + 1], strides[NVM_MAX_RANK + 1];
} export;

static void export_free(export *e) { /* called in any thread, without the GIL */
  nvm_array_unref(e->keep);
  free(e);
}
static void delete_versioned(dl_versioned *m) { export_free((export *)m); }
static void delete_legacy(dl_legacy *m) { export_free((export *)m); }

static void capsule_free(PyObject *capsule) { /* no consumer has taken the tensor */
  if (PyCapsule_IsValid(capsule, VERSIONED)) {
    dl_versioned *m = PyCapsule_GetPointer(capsule, VERSIONED);
    if (m->deleter) m->deleter(m);
  } else if (PyCapsule_IsValid(capsule, LEGACY)) {
    dl_legacy *m = PyCapsule_GetPointer(capsule, LEGACY);
    if (m->deleter) m->deleter(m);
  }
}
/* Exports the memory of h, which has a value; takes h. NULL with an exception. */
static export *export_new(nvp_state *st, nvm_array *h, int versioned, int copied) {
  const void *data;
  nvm_device d;
  export *e = h ? calloc(1, sizeof *e) : NULL;
  if (!e) return nvm_array_unref(h), h ? PyErr_NoMemory() : nvp_raise(st), NULL;
  e->keep = h;
  if (nvm_device_data(&data, e->strides, &d, h)) return export_free(e), nvp_raise(st), NULL;
  int64_t size = (int64_t)nvm_dtype_size(nvm_dtype_of(h));
  for (int i = 0; i < nvm_rank(h); i++) {
    e->shape[i] = nvm_shape(h)[i];
    e->strides[i] /= size;
  }
  *(versioned ? &e->m.v.t : &e->m.l.t) = (dl_tensor){ .data = nvm_size(h) ? (void *)(uintptr_t)data : NULL,
                                                      .device = device_out(d),
                                                      .ndim = nvm_rank(h),
                                                      .dtype = dtype_out(nvm_dtype_of(h)),
                                                      .shape = e->shape,
                                                      .strides = e->strides };
  if (versioned) {
    e->m.v.major = 1;
    e->m.v.deleter = delete_versioned;
    e->m.v.flags = copied ? DL_IS_COPIED : DL_READ_ONLY;
  } else e->m.l.deleter = delete_legacy;
  return e;
}
static int has_negative_stride(nvm_array *h) { /* has it a negative stride? -1: it has no value */
  const void *data;
  int64_t strides[NVM_MAX_RANK + 1];
  nvm_device d;
  if (nvm_device_data(&data, strides, &d, h)) return -1;
  for (int i = 0; i < nvm_rank(h); i++)
    if (strides[i] < 0 && nvm_shape(h)[i] > 1) return 1;
  return 0;
}
/* Packs an array on a GPU by a kernel: it pads one more row, so that the result cannot be a view of the array. */
static nvm_array *pack_there(nvp_state *st, nvm_array *h) {
  int64_t width[2 * NVM_MAX_RANK] = { 0, 1 }, start[NVM_MAX_RANK] = { 0 }, step[NVM_MAX_RANK];
  for (int i = 0; i < nvm_rank(h); i++) step[i] = 1;
  nvm_attr at = { .name = "pad_width", .kind = 'I', .is = width, .n = 2 * nvm_rank(h) };
  nvm_array *longer = nvm_apply(st->ctx, st->fixed[NVP_PAD], &h, 1, &at, 1);
  nvm_array *rows =
      longer && !nvm_eval(&longer, 1) ? nvm_view(longer, nvm_rank(h), start, nvm_shape(h), step, NULL) : NULL;
  nvm_array *r = rows && !nvm_eval(&rows, 1) ? nvm_hold(rows) : NULL;
  nvm_array_unref(rows);
  nvm_array_unref(longer);
  return r;
}
nvm_array *nvp_forward(nvp_state *st, nvm_array *h, int *copied) {
  int back = h ? has_negative_stride(h) : 0;
  if (!back) return h;
  nvm_array *r = back < 0 ? NULL : nvm_device_of(h) == NVM_DEVICE_CPU ? nvm_array_copy(h) : pack_there(st, h);
  nvm_array_unref(h);
  *copied = 1;
  return r;
}
/* The array to export, with its value: the array itself, a copy, or a copy on another device (AUTO: its own). PyTorch
   and JAX do not accept negative strides, so those are exported only if the consumer refuses a copy. */
static nvm_array *shown_array(nvp_array *a, nvm_device want, nvp_copy copy, int *copied) {
  if (nvm_is_pending(a->h) && nvp_eval(a->st, "__dlpack__", &a->h, 1)) return NULL;
  int moves = want != NVM_DEVICE_AUTO && want != nvm_device_of(a->h);
  if (moves && copy == NVP_COPY_NEVER)
    return PyErr_SetString(PyExc_BufferError, "__dlpack__: copy=False, but the array is on another device"), NULL;
  *copied = moves || copy == NVP_COPY_ALWAYS;
  nvm_array *h = moves ? nvm_array_to_device(a->h, want) : *copied ? nvm_array_copy(a->h) : nvm_hold(a->h);
  if (copy != NVP_COPY_NEVER) h = nvp_forward(a->st, h, copied);
  if (!h) PyErr_Format(PyExc_BufferError, "__dlpack__: %s", nvm_last_error());
  return h;
}
/* Orders the consumer's stream behind the computation of h; `stream` is the consumer's argument. */
static int order_stream(nvp_state *st, nvm_array *h, PyObject *stream) {
  if (nvm_device_of(h) == NVM_DEVICE_CPU) {
    if (stream != Py_None) PyErr_SetString(PyExc_BufferError, "__dlpack__: the CPU has no streams; pass stream=None");
    return stream != Py_None ? -1 : 0;
  }
  long long s = stream == Py_None ? 1 : PyLong_AsLongLong(stream); /* None means the legacy default stream */
  if (PyErr_Occurred()) return -1;
  if (!s || s < -1)
    return PyErr_Format(PyExc_ValueError,
                        "__dlpack__: %lld is no stream of CUDA; 1 is the legacy default one, 2 the "
                        "thread's, -1 asks for no order",
                        s),
           -1;
  return s == -1 ? 0 : nvp_check(st, nvm_device_ready(h, (void *)(intptr_t)s));
}
static int is_pair(PyObject *x, const char *name) {
  if (PyTuple_Check(x) && PyTuple_Size(x) == 2) return 1;
  return PyErr_Format(PyExc_TypeError, "__dlpack__: %s is a tuple of two integers, not %R", name, x), 0;
}
static int read_device(PyObject *x, nvm_device *out) {
  dl_device d;
  *out = NVM_DEVICE_AUTO;
  if (x == Py_None) return 0;
  if (!is_pair(x, "dl_device") || !PyArg_ParseTuple(x, "ii", &d.type, &d.id)) return -1;
  if ((*out = device_in(d)) != NVM_DEVICE_AUTO) return 0;
  return PyErr_Format(PyExc_BufferError, "__dlpack__: nvm knows no device (%d, %d)", (int)d.type, (int)d.id), -1;
}
PyObject *nvp_to_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  static const char *const known[] = { "stream", "max_version", "dl_device", "copy" };
  PyObject *v[4] = { Py_None, Py_None, Py_None, Py_None };
  nvp_array *a = (nvp_array *)self;
  if (n) return PyErr_SetString(PyExc_TypeError, "__dlpack__ takes keyword arguments only"), NULL;
  for (Py_ssize_t k = 0; names && k < PyTuple_Size(names); k++) {
    int i = 0;
    while (i < 4 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, k), known[i])) i++;
    if (i == 4) return PyErr_Format(PyExc_TypeError, "__dlpack__ has no argument %R", PyTuple_GetItem(names, k));
    v[i] = args[k];
  }
  int major = 0, minor = 0, copied;
  nvm_device want;
  nvp_copy copy;
  if (v[1] != Py_None && (!is_pair(v[1], "max_version") || !PyArg_ParseTuple(v[1], "ii", &major, &minor))) return NULL;
  if (nvp_copy_of(v[3], &copy) || read_device(v[2], &want)) return NULL;
  nvm_array *h = shown_array(a, want, copy, &copied);
  if (!h) return NULL;
  if (order_stream(a->st, h, v[0])) return nvm_array_unref(h), NULL;
  export *e = export_new(a->st, h, major >= 1, copied);
  PyObject *c = e ? PyCapsule_New(e, major >= 1 ? VERSIONED : LEGACY, capsule_free) : NULL;
  if (e && !c) export_free(e);
  return c;
}
PyObject *nvp_dlpack_device(PyObject *self, PyObject *unused) {
  (void)unused;
  dl_device d = device_out(nvm_device_of(((nvp_array *)self)->h));
  return Py_BuildValue("(ii)", (int)d.type, (int)d.id);
}

/* ---- import */
void nvp_managed_delete(void *managed) { /* the lowest bit of the address says versioned */
  uintptr_t p = (uintptr_t)managed;
  if (p & 1) {
    dl_versioned *m = (dl_versioned *)(p - 1);
    if (m->deleter) m->deleter(m);
  } else if (((dl_legacy *)p)->deleter) ((dl_legacy *)p)->deleter((dl_legacy *)p);
}
/* Makes an array over the tensor, or over a copy; stream: the stream of its last writer. NULL with an exception. */
static nvm_array *import_tensor(nvp_state *st, const dl_tensor *t, uintptr_t managed, int copy, void *stream) {
  nvm_dtype dt;
  nvm_device on = device_in(t->device);
  int64_t strides[NVM_MAX_RANK + 1], step;
  const char *wrong = on == NVM_DEVICE_AUTO      ? "the tensor is neither in CPU memory nor in that of an NVIDIA GPU"
                      : !dtype_in(t->dtype, &dt) ? "nvm has no such dtype"
                      : t->ndim < 0 || t->ndim > NVM_MAX_RANK ? "more than 32 dimensions"
                                                              : NULL;
  if (wrong) {
    int type = t->device.type, code = t->dtype.code, bits = t->dtype.bits;
    nvp_managed_delete((void *)managed); /* frees t too */
    return PyErr_Format(PyExc_BufferError, "from_dlpack: %s (device %d, dtype code %d, %d bits)", wrong, type, code,
                        bits),
           NULL;
  }
  step = (int64_t)nvm_dtype_size(dt);
  int overflows = 0; /* a shape with too many elements is rejected where the array is made */
  for (int d = t->ndim - 1; d >= 0; d--) {
    strides[d] = step;
    if (t->strides) overflows |= __builtin_mul_overflow(t->strides[d], (int64_t)nvm_dtype_size(dt), &strides[d]);
    if (__builtin_mul_overflow(step, t->shape[d], &step)) step = 0;
  }
  if (overflows) {
    nvp_managed_delete((void *)managed);
    return PyErr_SetString(PyExc_BufferError, "from_dlpack: the strides exceed the address space"), NULL;
  }
  const char *data = t->data ? (const char *)t->data + t->byte_offset : NULL;
  nvm_array *h;
  if (on == NVM_DEVICE_CPU) {
    int empty = 0;
    for (int d = 0; d < t->ndim; d++) empty |= t->shape[d] == 0;
    if (!data && !empty) {
      nvp_managed_delete((void *)managed);
      return PyErr_SetString(PyExc_BufferError, "[from_dlpack] the capsule has elements and no data"), NULL;
    }
    if (!data) data = (const char *)strides;
    h = nvm_array_new_host(st->ctx, dt, t->ndim, t->shape, strides, data, copy ? NULL : nvp_release_capsule,
                           (void *)managed);
    if (copy) nvp_managed_delete((void *)managed);
  } else {
    h = nvm_array_new_device(st->ctx, dt, t->ndim, t->shape, strides, on, data, stream, nvp_release_capsule,
                             (void *)managed);
    if (copy) h = nvp_copied(h);
  }
  if (!h) nvp_raise(st);
  return h;
}
/* Takes the managed tensor from the capsule, which is marked used. */
static nvm_array *take_capsule(nvp_state *st, PyObject *capsule, nvp_copy copy, void *stream) {
  if (PyCapsule_IsValid(capsule, VERSIONED)) {
    dl_versioned *m = PyCapsule_GetPointer(capsule, VERSIONED);
    uintptr_t tagged = (uintptr_t)m | 1;
    if (PyCapsule_SetName(capsule, USED_VERSIONED)) return NULL;
    if (m->major != 1) {
      uint32_t major = m->major;
      nvp_managed_delete((void *)tagged);
      return PyErr_Format(PyExc_BufferError, "from_dlpack: version %d of DLPack is not known", (int)major), NULL;
    }
    return import_tensor(st, &m->t, tagged, copy == NVP_COPY_ALWAYS && !(m->flags & DL_IS_COPIED), stream);
  }
  if (!PyCapsule_IsValid(capsule, LEGACY))
    return PyErr_SetString(PyExc_TypeError, "from_dlpack: not a DLPack capsule, or used already"), NULL;
  dl_legacy *m = PyCapsule_GetPointer(capsule, LEGACY);
  if (PyCapsule_SetName(capsule, USED_LEGACY)) return NULL;
  return import_tensor(st, &m->t, (uintptr_t)m, copy == NVP_COPY_ALWAYS, stream);
}
/* Calls x.__dlpack__ with the arguments that its producer supports: all keywords, all but a copy, which is made here
   then, or only the stream. */
static PyObject *ask_producer(nvp_state *st, PyObject *x, nvp_copy copy, PyObject *stream) {
  PyObject *f = PyObject_GetAttr(x, st->s_dlpack), *none = PyTuple_New(0), *kw = NULL, *r = NULL;
  PyObject *want = copy == NVP_COPY_IF_NEEDED ? Py_None : copy == NVP_COPY_ALWAYS ? Py_True : Py_False;
  if (f && none && (kw = Py_BuildValue("{s(ii)sO}", "max_version", 1, 0, "copy", want))) {
    if (stream == Py_None || !PyDict_SetItemString(kw, "stream", stream)) r = PyObject_Call(f, none, kw);
    if (!r && copy == NVP_COPY_ALWAYS && PyErr_ExceptionMatches(PyExc_BufferError)) {
      PyErr_Clear();
      if (!PyDict_SetItemString(kw, "copy", Py_None)) r = PyObject_Call(f, none, kw);
    }
    if (!r && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      Py_DECREF(kw);
      kw = stream == Py_None ? PyDict_New() : Py_BuildValue("{sO}", "stream", stream);
      if (kw) r = PyObject_Call(f, none, kw);
    }
  }
  Py_XDECREF(f);
  Py_XDECREF(none);
  Py_XDECREF(kw);
  return r;
}
static int find_device(PyObject *x, dl_device *out) {
  if (!PyObject_HasAttrString(x, "__dlpack_device__"))
    return PyErr_Format(PyExc_TypeError,
                        "[from_dlpack] an object of %R has no __dlpack__ and __dlpack_device__; nvm.asarray takes "
                        "numbers, lists and buffers",
                        (PyObject *)Py_TYPE(x)),
           -1;
  PyObject *device = PyObject_CallMethod(x, "__dlpack_device__", NULL);
  if (!device) return -1;
  int pair = PyTuple_Check(device) && PyTuple_Size(device) == 2;
  long type = pair ? PyLong_AsLong(PyTuple_GetItem(device, 0)) : 0, id = 0;
  if (pair && !PyErr_Occurred()) id = PyLong_AsLong(PyTuple_GetItem(device, 1));
  Py_DECREF(device);
  if (!pair) PyErr_SetString(PyExc_TypeError, "__dlpack_device__ gave no (type, id)");
  else if (!PyErr_Occurred() && (type != (int32_t)type || id != (int32_t)id))
    PyErr_Format(PyExc_BufferError, "from_dlpack: the array is on a device that nvm does not know: (%ld, %ld)", type,
                 id);
  *out = (dl_device){ (int32_t)type, (int32_t)id };
  return PyErr_Occurred() ? -1 : 0;
}
/* The producer's exchange table; NULL without an exception if its type has none. */
static const dl_exchange *find_exchange(nvp_state *st, PyObject *x) {
  PyObject *c = PyObject_GetAttr((PyObject *)Py_TYPE(x), st->s_exchange);
  const dl_exchange *e = c && PyCapsule_IsValid(c, EXCHANGE) ? PyCapsule_GetPointer(c, EXCHANGE) : NULL;
  Py_XDECREF(c);
  PyErr_Clear();
  while (e && e->major > 1) e = e->older;
  return e && e->major == 1 && e->from_object && e->stream ? e : NULL;
}
static nvm_array *import_by_exchange(nvp_state *st, PyObject *x, const dl_exchange *by, nvp_copy copy) {
  dl_versioned *m = NULL;
  void *stream = NULL;
  if (by->from_object(x, &m)) return NULL;
  /* work on the producer's current stream is ordered before ours, and no thread waits */
  if (m->t.device.type == DL_CUDA) {
    if (by->stream(DL_CUDA, m->t.device.id, &stream)) return nvp_managed_delete((void *)((uintptr_t)m | 1)), NULL;
    if (!stream) stream = (void *)1;
  }
  return import_tensor(st, &m->t, (uintptr_t)m | 1, copy == NVP_COPY_ALWAYS, stream);
}
static nvm_array *import_by_capsule(nvp_state *st, PyObject *x, nvp_copy copy) {
  dl_device d;
  void *stream = NULL;
  if (find_device(x, &d)) return NULL;
  nvm_device on = device_in(d);
  if (on == NVM_DEVICE_AUTO)
    return PyErr_Format(PyExc_BufferError, "from_dlpack: the array is on a device that nvm does not know: (%d, %d)",
                        (int)d.type, (int)d.id),
           NULL;
  if (on > NVM_DEVICE_CPU && nvp_check(st, nvm_stream_get(&stream, st->ctx, on))) return NULL;
  PyObject *s = stream ? PyLong_FromVoidPtr(stream) : Py_NewRef(Py_None),
           *capsule = s ? ask_producer(st, x, copy, s) : NULL;
  nvm_array *h = capsule ? take_capsule(st, capsule, copy, stream) : NULL;
  Py_XDECREF(s);
  Py_XDECREF(capsule);
  return h;
}
/* Calls x.name(): 1 true, 0 false or no such method on the type, -1 an exception. */
static int has_true_flag(PyObject *x, const char *name) {
  if (!PyObject_HasAttrString((PyObject *)Py_TYPE(x), name)) return 0;
  PyObject *r = PyObject_CallMethod(x, name, NULL);
  int yes = r ? PyObject_IsTrue(r) : -1;
  Py_XDECREF(r);
  return yes;
}
PyObject *nvp_resolved(PyObject *x, nvp_copy copy) {
  static const char *const bits[2][2] = { { "is_conj", "resolve_conj" }, { "is_neg", "resolve_neg" } };
  PyObject *r = Py_NewRef(x);
  for (int i = 0; i < 2 && r; i++) {
    int set = has_true_flag(r, bits[i][0]);
    PyObject *next = set ? NULL : Py_NewRef(r);
    if (set > 0 && copy == NVP_COPY_NEVER)
      PyErr_Format(PyExc_BufferError,
                   "copy=False, but the tensor has its %s bit set, which memory does not show; "
                   "%s() makes a tensor without it",
                   i ? "negative" : "conjugate", bits[i][1]);
    else if (set > 0) next = PyObject_CallMethod(r, bits[i][1], NULL);
    Py_DECREF(r);
    r = next;
  }
  return r;
}
static nvm_array *import_producer(nvp_state *st, PyObject *x, nvp_copy copy) {
  PyObject *plain = nvp_resolved(x, copy);
  const dl_exchange *by = plain ? find_exchange(st, plain) : NULL;
  nvm_array *h = !plain ? NULL : by ? import_by_exchange(st, plain, by, copy) : import_by_capsule(st, plain, copy);
  Py_XDECREF(plain);
  return h;
}
PyObject *nvp_from_dlpack(nvp_state *st, PyObject *x, nvp_copy copy, nvm_device d) {
  nvm_array *h;
  if (Py_IS_TYPE(x, st->array)) {
    PyObject *r = nvp_asarray(st, x, NVM_DTYPE_DEFAULT, copy);
    if (!r || d == NVM_DEVICE_AUTO) return r;
    h = nvm_array_ref(((nvp_array *)r)->h);
    Py_DECREF(r);
  } else if (PyCapsule_CheckExact(x)) h = take_capsule(st, x, copy, NULL);
  else h = import_producer(st, x, copy);
  if (!h) return NULL;
  if (copy == NVP_COPY_NEVER && d != NVM_DEVICE_AUTO && nvm_device_of(h) != d) {
    nvm_array_unref(h);
    return PyErr_SetString(PyExc_ValueError, "from_dlpack: copy=False, but the array is on another device"), NULL;
  }
  return nvp_wrap(st, nvp_put(h, d));
}

/* ---- the C exchange API of nvm's own type. It belongs to the process and uses the module that was imported last. */
static nvp_state *exchanging;

static int give_tensor(void *object, dl_versioned **out) {
  int copied;
  nvm_array *h = nvp_is_array(object) ? shown_array(object, NVM_DEVICE_AUTO, NVP_COPY_IF_NEEDED, &copied) : NULL;
  if (!h && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "this is no nvm array");
  export *e = h ? export_new(((nvp_array *)object)->st, h, 1, 0) : NULL;
  *out = e ? &e->m.v : NULL;
  return e ? 0 : -1;
}
static int receive_tensor(dl_versioned *m, void **object) {
  nvp_state *st = exchanging;
  void *stream = NULL;
  nvm_device d = device_in(m->t.device);
  /* treats the tensor as written on the current stream */
  if (d > NVM_DEVICE_CPU && nvp_check(st, nvm_stream_get(&stream, st->ctx, d))) return -1;
  nvm_array *h = import_tensor(st, &m->t, (uintptr_t)m | 1, 0, stream);
  return h && (*object = nvp_wrap(st, h)) ? 0 : -1;
}
typedef void failing(void *ctx, const char *kind, const char *message);
static int allocate_tensor(dl_tensor *like, dl_versioned **out, void *ctx, failing *fail) {
  nvm_dtype t;
  nvm_device d = device_in(like->device), before;
  int zeros;
  export *e = NULL;
  *out = NULL;
  if (d == NVM_DEVICE_AUTO || !dtype_in(like->dtype, &t))
    return fail(ctx, "TypeError", "nvm has no such dtype or device"), -1;
  PyGILState_STATE lock = PyGILState_Ensure();
  nvm_attr at[2] = { { .name = "shape", .kind = 'I', .is = like->shape, .n = like->ndim },
                     { .name = "dtype", .kind = 'd', .i = t } };
  nvm_array *h = NULL;
  if (!nvm_op_find(&zeros, "zeros") && !nvm_thread_device_set(&before, d)) {
    h = nvm_apply(exchanging->ctx, zeros, NULL, 0, at, 2);
    nvm_thread_device_set(NULL, before);
  }
  if (h && nvm_eval(&h, 1)) nvm_array_unref(h), h = NULL;
  if (h) e = export_new(exchanging, h, 1, 1);
  PyErr_Clear();
  PyGILState_Release(lock);
  if (!e) return fail(ctx, "MemoryError", nvm_last_error()), -1;
  e->m.v.flags = 0;
  *out = &e->m.v;
  return 0;
}
static int stream_working(int32_t type, int32_t id, void **out) {
  nvm_device d = device_in((dl_device){ type, id });
  *out = NULL;
  return d > NVM_DEVICE_CPU ? nvp_check(exchanging, nvm_stream_get(out, exchanging->ctx, d)) : 0;
}
static dl_exchange table = { .major = 1,
                             .minor = 3,
                             .allocate = allocate_tensor,
                             .from_object = give_tensor,
                             .to_object = receive_tensor,
                             .stream = stream_working };

int nvp_add_exchange(nvp_state *st) {
  exchanging = st;
  PyObject *c = PyCapsule_New(&table, EXCHANGE, NULL);
  int status = c ? PyObject_SetAttr((PyObject *)st->array, st->s_exchange, c) : -1;
  Py_XDECREF(c);
  return status;
}
