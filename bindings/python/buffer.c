/* The buffer protocol of arrays: exports are read-only and keep the value alive, even if the array is written to later.
   Decides which requests of a consumer can be met; evaluates, and copies elements for nvp_show alone: what lies on a
   GPU is refused, so that NumPy goes on to __array__, which knows whether a copy is allowed. */
#include "nvp.h"

typedef struct exported { nvm_array *keep; Py_ssize_t shape[NVM_MAX_RANK], strides[NVM_MAX_RANK]; } exported;

static _Thread_local int copies; /* the thread is in nvp_show */
PyObject *nvp_show(PyObject *module, PyObject *x) {
  (void)module;
  copies = 1;
  PyObject *view = PyMemoryView_FromObject(x);
  copies = 0;
  return view;
}
static int is_elsewhere(nvp_array *a) {
  nvm_device d = nvm_device_of(a->h);
  if (copies || d == NVM_DEVICE_CPU) return 0;
  PyObject *device = nvp_device_object(a->st, d);
  if (device)
    PyErr_Format(PyExc_BufferError,
                 "the array lies on %S, which has no memory for this protocol; numpy.asarray(x), x.to_device('cpu') "
                 "and x.tobytes() copy it to the CPU",
                 device);
  Py_XDECREF(device);
  return 1;
}
int nvp_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  nvp_array *a = (nvp_array *)self;
  nvm_dtype t = nvm_dtype_of(a->h);
  const void *data;
  int64_t strides[NVM_MAX_RANK];
  view->obj = NULL;
  if (flags & PyBUF_WRITABLE)
    return PyErr_SetString(PyExc_BufferError, "nvm arrays are read-only for others: write with a[...] = value, or give "
                                              "numpy.array(a), a copy that can be written to"),
           -1;
  if (!nvp_format(t))
    return PyErr_Format(PyExc_BufferError, "%s has no buffer format; use astype or DLPack", nvm_dtype_name(t)), -1;
  if (is_elsewhere(a)) return -1;
  exported *e = PyMem_Calloc(1, sizeof *e);
  if (!e) return PyErr_NoMemory(), -1;
  if (!(e->keep = nvp_read(a, "numpy.asarray", &data, strides))) return PyMem_Free(e), -1;
  int n = nvm_rank(e->keep), packed = 1;
  Py_ssize_t size = (Py_ssize_t)nvm_dtype_size(t), len = size;
  for (int d = n - 1; d >= 0; d--) {
    e->shape[d] = (Py_ssize_t)nvm_shape(e->keep)[d];
    e->strides[d] = (Py_ssize_t)strides[d];
    packed &= e->shape[d] < 2 || e->strides[d] == len;
    len *= e->shape[d];
  }
  int strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && n > 1 && len) packed = 0;
  int contiguous = !strided || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
                   (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS ||
                   (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
  if (contiguous && !packed && len) {
    nvm_array_unref(e->keep);
    PyMem_Free(e);
    return PyErr_SetString(PyExc_BufferError, "the array's memory is not contiguous"), -1;
  }
  *view = (Py_buffer){ .buf = data ? (void *)(uintptr_t)data : e,
                       .obj = Py_NewRef(self),
                       .len = len,
                       .itemsize = size,
                       .readonly = 1,
                       .ndim = (flags & PyBUF_ND) ? n : 1,
                       .internal = e };
  view->format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)nvp_format(t) : NULL;
  view->shape = (flags & PyBUF_ND) ? e->shape : NULL;
  view->strides = strided ? e->strides : NULL;
  return 0;
}
void nvp_releasebuffer(PyObject *self, Py_buffer *view) {
  (void)self;
  exported *e = view->internal;
  nvm_array_unref(e->keep);
  PyMem_Free(e);
}
