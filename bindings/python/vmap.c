/* nvm.vmap for its Python half (_vmap.py), which knows the nesting of arguments and results: here they are flat tuples
   of arrays. While the function is traced, this thread counts as tracing. */
#include "nvm/vmap.h"
#include "nvp.h"

typedef struct mapping {
  nvp_state *st;
  nvm_vmap_trace *v;
  int traces; /* its function is being traced */
} mapping;
static const char *const title = "nvm.vmap";

static void end_mapping(mapping *p) {
  nvp_enter_body(-p->traces);
  p->traces = 0;
  nvm_vmap_free(p->v);
  p->v = NULL;
}
static void destroy(PyObject *capsule) {
  mapping *p = PyCapsule_GetPointer(capsule, title);
  if (!p) return;
  end_mapping(p);
  PyMem_Free(p);
}
/* Reads a tuple of axes, of which None is NVM_UNMAPPED; the caller frees them by PyMem_Free. NULL with an exception. */
static int *read_axes(PyObject *axes) {
  Py_ssize_t n = PyTuple_Size(axes);
  int *at = PyMem_Calloc((size_t)n + 1, sizeof *at);
  if (!at) return (int *)PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *axis = PyTuple_GetItem(axes, i);
    long d = axis == Py_None ? 0 : PyLong_AsLong(axis);
    if (!PyErr_Occurred() && (d < -NVM_MAX_RANK || d >= NVM_MAX_RANK))
      PyErr_Format(PyExc_IndexError, "[vmap] axis %ld is out of range: an array has at most %d dimensions", d,
                   NVM_MAX_RANK);
    if (PyErr_Occurred()) return PyMem_Free(at), NULL;
    at[i] = axis == Py_None ? NVM_UNMAPPED : (int)d;
  }
  return at;
}
static PyObject *wrap_all(nvp_state *st, nvm_array **a, int n) { /* takes the arrays */
  PyObject *r = PyTuple_New(n);
  for (int i = 0; i < n; i++) {
    PyObject *x = r ? nvp_wrap(st, a[i]) : (nvm_array_unref(a[i]), NULL);
    if (r && (!x || PyTuple_SetItem(r, i, x))) Py_CLEAR(r);
  }
  return r;
}

/* vmap_open(arrays, axes): a capsule */
static PyObject *mod_open(PyObject *m, PyObject *args) {
  PyObject *arrays, *axes;
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &arrays, &PyTuple_Type, &axes)) return NULL;
  mapping *p = PyMem_Calloc(1, sizeof *p);
  if (!p) return PyErr_NoMemory();
  p->st = PyModule_GetState(m);
  PyObject *capsule = PyCapsule_New(p, title, destroy);
  if (!capsule) return PyMem_Free(p), NULL;
  nvp_gathered g = { .st = p->st };
  int *at = read_axes(axes);
  if (!at || nvp_gather(&g, arrays) || nvp_check(p->st, nvm_vmap_open(&p->v, p->st->ctx, g.a, at, (int)g.n)))
    Py_CLEAR(capsule);
  else nvp_enter_body(p->traces = 1);
  nvp_gather_free(&g);
  PyMem_Free(at);
  return capsule;
}
/* vmap_inputs(capsule): a tuple of arrays */
static PyObject *mod_inputs(PyObject *m, PyObject *capsule) {
  (void)m;
  mapping *p = PyCapsule_GetPointer(capsule, title);
  nvm_array *const *in;
  int n;
  if (!p || nvp_check(p->st, nvm_vmap_inputs(&in, &n, p->v))) return NULL;
  nvm_array **held = PyMem_Calloc((size_t)n + 1, sizeof *held);
  if (!held) return PyErr_NoMemory();
  for (int i = 0; i < n; i++) held[i] = nvm_array_ref(in[i]);
  PyObject *r = wrap_all(p->st, held, n);
  PyMem_Free(held);
  return r;
}
/* vmap_close(capsule, arrays, axes): a tuple of arrays */
static PyObject *mod_close(PyObject *m, PyObject *args) {
  PyObject *capsule, *arrays, *axes, *r = NULL;
  (void)m;
  if (!PyArg_ParseTuple(args, "OO!O!", &capsule, &PyTuple_Type, &arrays, &PyTuple_Type, &axes)) return NULL;
  mapping *p = PyCapsule_GetPointer(capsule, title);
  if (!p) return NULL;
  nvp_gathered g = { .st = p->st };
  int *at = read_axes(axes), bad = !at || nvp_gather(&g, arrays);
  nvm_array **out = bad ? NULL : PyMem_Calloc((size_t)g.n + 1, sizeof *out);
  if (!bad && !out) PyErr_NoMemory();
  int status = NVM_OK;
  if (out) NVP_UNLOCKED(status, nvm_vmap_close(out, p->v, g.a, at, (int)g.n));
  if (out && !nvp_ran(p->st, status)) r = wrap_all(p->st, out, (int)g.n);
  end_mapping(p);
  nvp_gather_free(&g);
  PyMem_Free(at), PyMem_Free(out);
  return r;
}
static PyObject *mod_free(PyObject *m, PyObject *capsule) {
  (void)m;
  mapping *p = PyCapsule_GetPointer(capsule, title);
  if (!p) return NULL;
  end_mapping(p);
  nvp_drain();
  return Py_NewRef(Py_None);
}
PyMethodDef nvp_vmap_def[] = { { "vmap_open", mod_open, METH_VARARGS, NULL },
                               { "vmap_inputs", mod_inputs, METH_O, NULL },
                               { "vmap_close", mod_close, METH_VARARGS, NULL },
                               { "vmap_free", mod_free, METH_O, NULL },
                               { NULL, NULL, 0, NULL } };
