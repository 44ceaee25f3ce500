/* DLPack, both ways, for CPU memory: versioned and legacy capsules. What goes out is read only, and says so where the
   capsule can; what comes in is borrowed until the last array over it dies. The structs are the published ABI (DLPack
   1.x). */
#include <stdlib.h>
#include <string.h>
#include "nvp.h"

typedef struct dl_device { int32_t type, id; } dl_device;
typedef struct dl_dtype { uint8_t code, bits; uint16_t lanes; } dl_dtype;
typedef struct dl_tensor {
  void *data; dl_device device; int32_t ndim; dl_dtype dtype; int64_t *shape, *strides; uint64_t byte_offset;
} dl_tensor;
typedef struct dl_legacy { dl_tensor t; void *ctx; void (*deleter)(struct dl_legacy *); } dl_legacy;
typedef struct dl_versioned {
  uint32_t major, minor; void *ctx; void (*deleter)(struct dl_versioned *); uint64_t flags; dl_tensor t;
} dl_versioned;
enum { DL_CPU = 1, DL_READ_ONLY = 1, DL_IS_COPIED = 2 };
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX, DL_BOOL };
static const char LEGACY[] = "dltensor", VERSIONED[] = "dltensor_versioned";
static const char USED_LEGACY[] = "used_dltensor", USED_VERSIONED[] = "used_dltensor_versioned";

static dl_dtype dtype_out(nvm_dtype t) {
  int code = t == NVM_BOOL ? DL_BOOL : t == NVM_BF16 ? DL_BFLOAT : nvp_kind(t) == 'i' ? DL_INT : nvp_kind(t) == 'u'
      ? DL_UINT
           : nvp_kind(t) == 'f' ? DL_FLOAT : DL_COMPLEX;
  return (dl_dtype){ (uint8_t)code, (uint8_t)(nvm_dtype_size(t) * 8), 1 };
}
static int dtype_in(dl_dtype d, nvm_dtype *out) {
  for (int t = 0; t < NVM_NDTYPES; t++) {
    dl_dtype e = dtype_out((nvm_dtype)t);
    if (e.code == d.code && e.bits == d.bits && d.lanes == 1) return *out = (nvm_dtype)t, 1;
  }
  return 0;
}

/* ---- out: one block that is both kinds of managed tensor */
typedef struct export {
  union { dl_versioned v; dl_legacy l; } m;
  nvm_array *keep;
  int64_t shape[NVM_MAX_RANK + 1], strides[NVM_MAX_RANK + 1];
} export;

static void export_free(export *e) { /* any thread; needs no interpreter */
  nvm_array_unref(e->keep);
  free(e);
}
static void delete_versioned(dl_versioned *m) { export_free((export *)m); }
static void delete_legacy(dl_legacy *m) { export_free((export *)m); }

static void capsule_free(PyObject *capsule) { /* nobody took it */
  if (PyCapsule_IsValid(capsule, VERSIONED)) {
    dl_versioned *m = PyCapsule_GetPointer(capsule, VERSIONED);
    if (m->deleter) m->deleter(m);
  } else if (PyCapsule_IsValid(capsule, LEGACY)) {
    dl_legacy *m = PyCapsule_GetPointer(capsule, LEGACY);
    if (m->deleter) m->deleter(m);
  }
}
/* The array whose memory is shown: a snapshot, or for copy=True a fresh packed copy. */
static nvm_array *shown(nvp_array *a, int copy) {
  const void *data;
  int64_t strides[NVM_MAX_RANK];
  if (nvp_read(a, &data, strides)) return NULL;
  nvm_array *h = copy ? nvm_array_new_host(a->st->ctx, nvm_dtype_of(a->h), nvm_rank(a->h), nvm_shape(a->h), strides,
      data, NULL, NULL)
                      : nvm_snapshot(a->h);
  if (!h) nvp_raise(a->st);
  return h;
}
static PyObject *export_new(nvp_array *a, int versioned, int copy) {
  const void *data;
  nvm_array *h = shown(a, copy);
  export *e = h ? calloc(1, sizeof *e) : NULL;
  if (!e) return nvm_array_unref(h), PyErr_Occurred() ? NULL : PyErr_NoMemory();
  e->keep = h;
  dl_tensor *t = versioned ? &e->m.v.t : &e->m.l.t;
  if (nvm_data(&data, e->strides, h)) return export_free(e), nvp_raise(a->st);
  int64_t size = (int64_t)nvm_dtype_size(nvm_dtype_of(h));
  for (int d = 0; d < nvm_rank(h); d++) {
    e->shape[d] = nvm_shape(h)[d];
    e->strides[d] /= size;
  }
  *t = (dl_tensor){ .data = nvm_size(h) ? (void *)(uintptr_t)data : NULL, .device = { DL_CPU, 0 }, .ndim = nvm_rank(h),
                    .dtype = dtype_out(nvm_dtype_of(h)), .shape = e->shape, .strides = e->strides };
  if (versioned) {
    e->m.v.major = 1;
    e->m.v.deleter = delete_versioned;
    e->m.v.flags = DL_READ_ONLY | (copy ? DL_IS_COPIED : 0);
  } else e->m.l.deleter = delete_legacy;
  PyObject *c = PyCapsule_New(e, versioned ? VERSIONED : LEGACY, capsule_free);
  if (!c) export_free(e);
  return c;
}
static int ask_device(PyObject *device) {
  int type, id;
  if (device == Py_None) return 0;
  if (!PyArg_ParseTuple(device, "ii", &type, &id)) return -1;
  if (type == DL_CPU && !id) return 0;
  return PyErr_SetString(PyExc_BufferError, "__dlpack__: this array can be exported to the CPU (1, 0) only"), -1;
}
PyObject *nvp_to_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  static const char *const known[] = { "stream", "max_version", "dl_device", "copy" };
  PyObject *v[4] = { Py_None, Py_None, Py_None, Py_None };
  if (n) return PyErr_SetString(PyExc_TypeError, "__dlpack__ takes keyword arguments only"), NULL;
  for (Py_ssize_t k = 0; names && k < PyTuple_Size(names); k++) {
    int i = 0;
    while (i < 4 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, k), known[i])) i++;
    if (i == 4) return PyErr_Format(PyExc_TypeError, "__dlpack__ has no argument %R", PyTuple_GetItem(names, k));
    v[i] = args[k];
  }
  int major = 0, minor = 0;
  if (v[0] != Py_None) return PyErr_SetString(PyExc_BufferError,
      "__dlpack__: the CPU has no streams; pass stream=None"), NULL;
  if (v[1] != Py_None && !PyArg_ParseTuple(v[1], "ii", &major, &minor)) return NULL;
  int copy = v[3] == Py_None ? 0 : PyObject_IsTrue(v[3]);
  if (copy < 0 || ask_device(v[2])) return NULL;
  return export_new((nvp_array *)self, major >= 1, copy);
}

/* ---- in */
void nvp_managed_delete(void *managed) { /* tagged: the lowest bit says versioned */
  uintptr_t p = (uintptr_t)managed;
  if (p & 1) {
    dl_versioned *m = (dl_versioned *)(p - 1);
    if (m->deleter) m->deleter(m);
  } else if (((dl_legacy *)p)->deleter) ((dl_legacy *)p)->deleter((dl_legacy *)p);
}
static PyObject *import(nvp_state *st, const dl_tensor *t, uintptr_t managed, int copy) {
  nvm_dtype dt;
  int64_t strides[NVM_MAX_RANK + 1], step;
  const char *wrong = t->device.type != DL_CPU ? "the tensor is not in CPU memory" : !dtype_in(t->dtype, &dt)
      ? "nvm has no such dtype"
                    : t->ndim < 0 || t->ndim > NVM_MAX_RANK ? "more than 32 dimensions" : NULL;
  if (wrong) {
    nvp_managed_delete((void *)managed);
    return PyErr_Format(PyExc_BufferError, "from_dlpack: %s (device %d, dtype code %d, %d bits)", wrong,
        (int)t->device.type,
                        t->dtype.code, t->dtype.bits);
  }
  step = (int64_t)nvm_dtype_size(dt);
  for (int d = t->ndim - 1; d >= 0; d--) {
    strides[d] = t->strides ? t->strides[d] * (int64_t)nvm_dtype_size(dt) : step;
    step *= t->shape[d];
  }
  const char *data = t->data ? (const char *)t->data + t->byte_offset : NULL;
  if (!data) data = (const char *)strides; /* empty */
  PyObject *r = nvp_wrap(st, nvm_array_new_host(st->ctx, dt, t->ndim, t->shape, strides, data, copy ? NULL
      : nvp_release_capsule,
                                                (void *)managed));
  if (copy) nvp_managed_delete((void *)managed);
  return r;
}
/* Takes the managed tensor out of the capsule, which is marked used. */
static PyObject *take(nvp_state *st, PyObject *capsule, nvp_copy copy) {
  if (PyCapsule_IsValid(capsule, VERSIONED)) {
    dl_versioned *m = PyCapsule_GetPointer(capsule, VERSIONED);
    uintptr_t tagged = (uintptr_t)m | 1;
    if (PyCapsule_SetName(capsule, USED_VERSIONED)) return NULL;
    if (m->major != 1) {
      uint32_t major = m->major;
      nvp_managed_delete((void *)tagged);
      return PyErr_Format(PyExc_BufferError, "from_dlpack: version %d of DLPack is not known", (int)major);
    }
    return import(st, &m->t, tagged, copy == NVP_COPY_ALWAYS && !(m->flags & DL_IS_COPIED));
  }
  if (!PyCapsule_IsValid(capsule, LEGACY)) return PyErr_SetString(PyExc_TypeError,
      "from_dlpack: not a DLPack capsule, or used already"), NULL;
  dl_legacy *m = PyCapsule_GetPointer(capsule, LEGACY);
  if (PyCapsule_SetName(capsule, USED_LEGACY)) return NULL;
  return import(st, &m->t, (uintptr_t)m, copy == NVP_COPY_ALWAYS);
}
/* x.__dlpack__ with what its producer understands: all keywords, or none. */
static PyObject *ask(nvp_state *st, PyObject *x, nvp_copy copy, int cpu) {
  PyObject *f = PyObject_GetAttr(x, st->s_dlpack), *none = PyTuple_New(0), *kw = NULL, *r = NULL;
  PyObject *want = copy == NVP_COPY_IF_NEEDED ? Py_None : copy == NVP_COPY_ALWAYS ? Py_True : Py_False;
  if (f && none && (kw = Py_BuildValue("{s(ii)sO}", "max_version", 1, 0, "copy", want))) {
    PyObject *device = cpu ? NULL : Py_BuildValue("(ii)", DL_CPU, 0);
    if (!device || !PyDict_SetItemString(kw, "dl_device", device)) r = PyObject_Call(f, none, kw);
    Py_XDECREF(device);
    if (!r && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      r = PyObject_Call(f, none, NULL);
    }
  }
  Py_XDECREF(f);
  Py_XDECREF(none);
  Py_XDECREF(kw);
  return r;
}
PyObject *nvp_from_dlpack(nvp_state *st, PyObject *x, nvp_copy copy) {
  if (Py_IS_TYPE(x, st->array)) return nvp_asarray(st, x, NVM_DTYPE_DEFAULT, copy);
  if (PyCapsule_CheckExact(x)) return take(st, x, copy);
  PyObject *device = PyObject_CallMethod(x, "__dlpack_device__", NULL);
  if (!device) return NULL;
  PyObject *kind = PyTuple_Check(device) && PyTuple_Size(device) == 2 ? PyTuple_GetItem(device, 0) : NULL;
  long type = kind ? PyLong_AsLong(kind) : -1;
  Py_DECREF(device);
  if (type == -1) return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_TypeError,
      "__dlpack_device__ gave no (type, id)"), NULL);
  if (type != DL_CPU && copy == NVP_COPY_NEVER)
    return PyErr_SetString(PyExc_ValueError, "from_dlpack: copy=False, but the array is not in CPU memory"), NULL;
  PyObject *capsule = ask(st, x, copy, type == DL_CPU), *r = capsule ? take(st, capsule, copy) : NULL;
  Py_XDECREF(capsule);
  return r;
}
