/* Devices in Python: names, the device of the context and of the thread, streams, memory, and __cuda_array_interface__
   in both directions. Never defines nvm.device or its `with` statement: the package's Python half does. */
#include <string.h>
#include "nvp.h"

int nvp_device(nvp_state *st, PyObject *x, nvm_device *out) {
  *out = NVM_DEVICE_AUTO;
  if (x == Py_None) return 0;
  PyObject *name = PyObject_Str(x); /* str() of a torch.device has the same form */
  const char *s = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  int status = s ? nvp_check(st, nvm_device_find(out, s)) : -1;
  Py_XDECREF(name);
  return status;
}
PyObject *nvp_device_object(nvp_state *st, nvm_device d) {
  PyObject *f = nvp_hook(st, "device");
  return f ? PyObject_CallFunction(f, "i", (int)d) : NULL;
}
nvm_array *nvp_put(nvm_array *h, nvm_device d) {
  if (!h || d == NVM_DEVICE_AUTO) return h;
  nvm_array *r = nvm_array_to_device(h, d);
  nvm_array_unref(h);
  return r;
}
static nvp_state *state_of(PyObject *module) { return PyModule_GetState(module); }

/* ---- names and choices; the Python half of the package uses device numbers */
static PyObject *device_number(PyObject *m, PyObject *x) {
  nvm_device d;
  return nvp_device(state_of(m), x, &d) ? NULL : PyLong_FromLong(d);
}
static PyObject *device_count(PyObject *m, PyObject *unused) {
  (void)m, (void)unused;
  return PyLong_FromLong(nvm_device_count());
}
static PyObject *device_usable(PyObject *m, PyObject *number) {
  (void)m;
  long d = PyLong_AsLong(number);
  return PyErr_Occurred() ? NULL : PyBool_FromLong(!nvm_device_usable((nvm_device)d));
}
static PyObject *device_info(PyObject *m, PyObject *x) {
  nvp_state *st = state_of(m);
  nvm_device_info i;
  nvm_device d;
  if (nvp_device(st, x, &d)) return NULL;
  if (d == NVM_DEVICE_AUTO) d = nvm_ctx_device(st->ctx);
  if (nvp_check(st, nvm_device_info_get(&i, NVM_DEVICE_INFO_VERSION, d))) return NULL;
  return Py_BuildValue("{ss si sL ss}", "name", i.name, "units", i.units, "memory", (long long)i.memory, "line",
                       i.line);
}
static PyObject *default_device(PyObject *m, PyObject *unused) {
  (void)unused;
  return PyLong_FromLong(nvm_ctx_device(state_of(m)->ctx));
}
static PyObject *set_default_device(PyObject *m, PyObject *x) {
  nvp_state *st = state_of(m);
  nvm_device d;
  return nvp_device(st, x, &d) || nvp_check(st, nvm_ctx_device_set(st->ctx, d)) ? NULL : Py_NewRef(Py_None);
}
/* sets the thread's device and returns the one before */
static PyObject *thread_device(PyObject *m, PyObject *number) {
  nvp_state *st = state_of(m);
  nvm_device before;
  long d = PyLong_AsLong(number);
  if (PyErr_Occurred() || nvp_check(st, nvm_thread_device_set(&before, (nvm_device)d))) return NULL;
  return PyLong_FromLong(before);
}
static PyObject *default_dtype(PyObject *m, PyObject *unused) {
  (void)unused;
  nvp_state *st = state_of(m);
  return nvp_dtype_object(st, nvm_ctx_default_float(st->ctx));
}
static PyObject *set_default_dtype(PyObject *m, PyObject *x) {
  nvp_state *st = state_of(m);
  nvm_dtype t;
  return nvp_dtype_from(st, x, &t) || nvp_check(st, nvm_ctx_default_float_set(st->ctx, t)) ? NULL : Py_NewRef(Py_None);
}
static PyObject *library_dir(PyObject *m, PyObject *x) {
  (void)m;
  PyObject *bytes = NULL;
  if (!PyUnicode_FSConverter(x, &bytes)) return NULL;
  nvm_library_dir(PyBytes_AsString(bytes));
  Py_DECREF(bytes);
  return Py_NewRef(Py_None);
}

/* ---- streams and memory */
static PyObject *stream_get(PyObject *m, PyObject *device) {
  nvp_state *st = state_of(m);
  nvm_device d;
  void *s;
  return nvp_device(st, device, &d) || nvp_check(st, nvm_stream_get(&s, st->ctx, d)) ? NULL : PyLong_FromVoidPtr(s);
}
/* stream_device(handle): the number of the stream's device */
static PyObject *stream_device(PyObject *m, PyObject *handle) {
  nvp_state *st = state_of(m);
  nvm_device d;
  void *s = PyLong_AsVoidPtr(handle);
  return PyErr_Occurred() || nvp_check(st, nvm_stream_device(&d, st->ctx, s)) ? NULL : PyLong_FromLong(d);
}
static PyObject *stream_set(PyObject *m, PyObject *args) { /* stream_set(device, handle) */
  nvp_state *st = state_of(m);
  PyObject *device, *handle;
  nvm_device d;
  if (!PyArg_ParseTuple(args, "OO:stream_set", &device, &handle) || nvp_device(st, device, &d)) return NULL;
  void *s = PyLong_AsVoidPtr(handle);
  return PyErr_Occurred() || nvp_check(st, nvm_stream_set(st->ctx, d, s)) ? NULL : Py_NewRef(Py_None);
}
static PyObject *memory_info(PyObject *m, PyObject *args) {
  nvp_state *st = state_of(m);
  PyObject *device = Py_None;
  nvm_device d;
  nvm_device_memory i;
  if (!PyArg_ParseTuple(args, "|O:memory_info", &device) || nvp_device(st, device, &d)) return NULL;
  if (d == NVM_DEVICE_AUTO) d = nvm_ctx_device(st->ctx);
  if (nvp_check(st, nvm_device_memory_get(&i, NVM_DEVICE_MEMORY_VERSION, st->ctx, d))) return NULL;
  return Py_BuildValue("{sL sL sL sL sL}", "used", (long long)i.used, "peak", (long long)i.peak, "limit",
                       (long long)i.limit, "reserved", (long long)i.reserved, "total", (long long)i.total);
}
static PyObject *memory_limit(PyObject *m, PyObject *args) {
  nvp_state *st = state_of(m);
  PyObject *device = Py_None;
  nvm_device d;
  long long bytes;
  if (!PyArg_ParseTuple(args, "L|O:set_memory_limit", &bytes, &device) || nvp_device(st, device, &d)) return NULL;
  return nvp_check(st, nvm_device_memory_limit(st->ctx, d, bytes)) ? NULL : Py_NewRef(Py_None);
}
static PyObject *memory_trim(PyObject *m, PyObject *args) {
  nvp_state *st = state_of(m);
  PyObject *device = Py_None;
  nvm_device d;
  if (!PyArg_ParseTuple(args, "|O:trim_memory", &device) || nvp_device(st, device, &d)) return NULL;
  return nvp_check(st, nvm_device_memory_trim(st->ctx, d)) ? NULL : Py_NewRef(Py_None);
}

/* ---- __cuda_array_interface__ version 3, export */
static const char *typestr_of(nvm_dtype t) { /* NULL: the dtype has none (bfloat16) */
  static const char *const as[NVM_NDTYPES] = { [NVM_BOOL] = "|b1", [NVM_I8] = "|i1",   [NVM_I16] = "<i2",
                                               [NVM_I32] = "<i4",  [NVM_I64] = "<i8",  [NVM_U8] = "|u1",
                                               [NVM_U16] = "<u2",  [NVM_U32] = "<u4",  [NVM_U64] = "<u8",
                                               [NVM_F16] = "<f2",  [NVM_F32] = "<f4",  [NVM_F64] = "<f8",
                                               [NVM_C64] = "<c8",  [NVM_C128] = "<c16" };
  return as[t];
}
/* PyTorch does not look at "stream" and reads on its own, by default the legacy default stream: that one is ordered
   behind the elements too. */
#define LEGACY_STREAM ((void *)1)
/* Raises AttributeError if the array is not on a GPU, so that hasattr is right. */
PyObject *nvp_cuda_interface(PyObject *self, void *unused) {
  (void)unused;
  nvp_array *a = (nvp_array *)self;
  nvm_dtype t = nvm_dtype_of(a->h);
  int64_t strides[NVM_MAX_RANK + 1], packed = (int64_t)nvm_dtype_size(t);
  const void *data;
  void *stream;
  nvm_device d;
  if (nvp_tracing() || nvm_device_of(a->h) == NVM_DEVICE_CPU)
    return PyErr_SetString(PyExc_AttributeError, "__cuda_array_interface__: the array is not on a GPU"), NULL;
  if (!typestr_of(t))
    return PyErr_Format(PyExc_AttributeError, "__cuda_array_interface__ has no %s; use DLPack", nvm_dtype_name(t));
  if (nvm_is_pending(a->h) && nvp_eval(a->st, "__cuda_array_interface__", &a->h, 1)) return NULL;
  int copied;
  nvm_array *keep = nvp_forward(a->st, nvm_hold(a->h), &copied);
  if (!keep) return nvp_raise(a->st);
  if (nvp_check(a->st, nvm_device_data(&data, strides, &d, keep)) ||
      nvp_check(a->st, nvm_stream_get(&stream, a->st->ctx, d)) || nvp_check(a->st, nvm_device_ready(keep, stream)) ||
      nvp_check(a->st, nvm_device_ready(keep, LEGACY_STREAM)))
    return nvm_array_unref(keep), NULL;
  nvm_array_unref(a->shown);
  a->shown = keep;
  int n = nvm_rank(a->h), dense = 1;
  const int64_t *shape = nvm_shape(a->h);
  for (int i = n - 1; i >= 0; i--) {
    dense &= shape[i] == 1 || strides[i] == packed;
    packed *= shape[i];
  }
  PyObject *st = dense ? Py_NewRef(Py_None) : nvp_ints(strides, n), *sh = nvp_ints(shape, n), *r = NULL;
  PyObject *at = PyLong_FromVoidPtr(nvm_size(a->h) ? (void *)(uintptr_t)data : NULL), *on = PyLong_FromVoidPtr(stream);
  if (st && sh && at && on) /* consumers must not write to it, but PyTorch rejects memory that is marked read-only */
    r = Py_BuildValue("{sO ss s(OO) sO si sO}", "shape", sh, "typestr", typestr_of(t), "data", at, Py_False, "strides",
                      st, "version", 3, "stream", on);
  Py_XDECREF(st);
  Py_XDECREF(sh);
  Py_XDECREF(at);
  Py_XDECREF(on);
  return r;
}

/* ---- import */
static int refuse_interface(const char *why) {
  return PyErr_Format(PyExc_ValueError, "__cuda_array_interface__: %s", why), -1;
}
static int read_ints(PyObject *t, int64_t *out, int n) {
  if (!PyTuple_Check(t) || PyTuple_Size(t) != n) return refuse_interface("shape and strides are tuples of one length");
  for (int i = 0; i < n; i++) {
    out[i] = PyLong_AsLongLong(PyTuple_GetItem(t, i));
    if (PyErr_Occurred()) return -1;
  }
  return 0;
}
static int read_type(PyObject *x, nvm_dtype *t) {
  const char *s = x && PyUnicode_Check(x) ? PyUnicode_AsUTF8AndSize(x, NULL) : NULL;
  if (!s) return PyErr_Occurred() ? -1 : refuse_interface("the typestr is missing");
  for (int i = 0; i < NVM_NDTYPES; i++)
    if (typestr_of((nvm_dtype)i) && *s && strchr("<=|", *s) && !strcmp(typestr_of((nvm_dtype)i) + 1, s + 1))
      return *t = (nvm_dtype)i, 0;
  return PyErr_Format(PyExc_TypeError, "__cuda_array_interface__: nvm has no dtype for '%s'", s), -1;
}
typedef struct foreign {
  nvm_dtype t;
  int rank, strided;
  int64_t shape[NVM_MAX_RANK + 1], strides[NVM_MAX_RANK + 1];
  void *data, *stream;
} foreign;
static int read_interface(PyObject *dict, foreign *f) {
  PyObject *shape = PyDict_GetItemString(dict, "shape"), *data = PyDict_GetItemString(dict, "data");
  PyObject *strides = PyDict_GetItemString(dict, "strides"), *mask = PyDict_GetItemString(dict, "mask");
  PyObject *stream = PyDict_GetItemString(dict, "stream");
  if (mask && mask != Py_None) return refuse_interface("masked arrays are not taken");
  if (!shape || !PyTuple_Check(shape) || !data || !PyTuple_Check(data) || PyTuple_Size(data) != 2)
    return refuse_interface("shape or data is missing");
  if (PyTuple_Size(shape) > NVM_MAX_RANK) return refuse_interface("more than 32 dimensions");
  f->rank = (int)PyTuple_Size(shape);
  f->strided = strides && strides != Py_None;
  f->data = PyTuple_GetItem(data, 0) == Py_None ? NULL : PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
  f->stream = !stream || stream == Py_None ? NULL : PyLong_AsVoidPtr(stream);
  if (PyErr_Occurred() || read_type(PyDict_GetItemString(dict, "typestr"), &f->t)) return -1;
  if (stream && stream != Py_None && (intptr_t)f->stream <= 0)
    return refuse_interface("0 and negative numbers are no streams; 1 is the legacy default one, 2 the thread's");
  return read_ints(shape, f->shape, f->rank) || (f->strided && read_ints(strides, f->strides, f->rank)) ? -1 : 0;
}
PyObject *nvp_from_cuda(nvp_state *st, PyObject *given, nvp_copy copy) {
  PyObject *x = nvp_resolved(given, copy), *dict = x ? PyObject_GetAttr(x, st->s_cuda_interface) : NULL;
  foreign f = { 0 };
  int bad = !dict || (!PyDict_Check(dict) ? refuse_interface("it is no dict") : read_interface(dict, &f));
  Py_XDECREF(dict);
  if (bad) return Py_XDECREF(x), NULL;
  nvm_array *h = nvm_array_new_device(st->ctx, f.t, f.rank, f.shape, f.strided ? f.strides : NULL, NVM_DEVICE_AUTO,
                                      f.data, f.stream, nvp_release, x);
  return nvp_wrap(st, copy == NVP_COPY_NEVER ? h : nvp_copied(h));
}
nvm_array *nvp_copied(nvm_array *h) {
  nvm_array *r = h ? nvm_array_copy(h) : NULL;
  nvm_array_unref(h);
  return r;
}

PyMethodDef nvp_device_def[] = {
  { "device_number", device_number, METH_O, NULL },
  { "device_count", device_count, METH_NOARGS, NULL },
  { "device_usable", device_usable, METH_O, NULL },
  { "device_info", device_info, METH_O,
    "device_info($module, device, /)\n--\n\nA device in numbers: name, units (cores or multiprocessors), memory in "
    "bytes, and line, all in words; a dict."
    "\n\n>>> import nvm\n>>> nvm.device_info(\"cpu\")[\"units\"] >= 1\nTrue\n" },
  { "default_device", default_device, METH_NOARGS, NULL },
  { "set_default_device", set_default_device, METH_O,
    "set_default_device($module, device, /)\n--\n\nWhere arrays that were put on no device are computed from now on: "
    "'auto' (the first GPU that can be used), 'cpu', 'cuda', 'cuda:1'."
    "\n\n>>> import nvm\n>>> nvm.set_default_device(None)\n" },
  { "thread_device", thread_device, METH_O, NULL },
  { "default_dtype", default_dtype, METH_NOARGS,
    "default_dtype($module, /)\n--\n\nThe dtype of float data and of int / int: float64 or float32."
    "\n\n>>> import nvm\n>>> nvm.default_dtype()\nnvm.float64\n" },
  { "set_default_dtype", set_default_dtype, METH_O,
    "set_default_dtype($module, dtype, /)\n--\n\nMakes float64 or float32 the dtype of float data from now on."
    "\n\n>>> import nvm\n>>> nvm.set_default_dtype(\"float64\")\n" },
  { "library_dir", library_dir, METH_O, NULL },
  { "stream_get", stream_get, METH_O, NULL },
  { "stream_set", stream_set, METH_VARARGS, NULL },
  { "stream_device", stream_device, METH_O, NULL },
  { "memory_info", memory_info, METH_VARARGS,
    "memory_info($module, device=None, /)\n--\n\nBytes of a device's memory: used by arrays, at most (peak), the "
    "limit, reserved (also what is kept for reuse), total; a dict."
    "\n\n>>> import nvm\n>>> nvm.memory_info(\"cpu\")[\"used\"] >= 0\nTrue\n" },
  { "set_memory_limit", memory_limit, METH_VARARGS,
    "set_memory_limit($module, bytes, device=None, /)\n--\n\nThe most bytes of a device's memory that arrays may take; "
    "0: no limit. On the CPU that is the setting NVM_MEM_LIMIT."
    "\n\n>>> import nvm\n>>> nvm.set_memory_limit(0)\n" },
  { "trim_memory", memory_trim, METH_VARARGS,
    "trim_memory($module, device=None, /)\n--\n\nGives back memory of freed arrays that is kept for reuse."
    "\n\n>>> import nvm\n>>> nvm.trim_memory()\n" },
  { NULL, NULL, 0, NULL }
};
