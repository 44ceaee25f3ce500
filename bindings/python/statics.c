/* Compares static arguments of jitted functions: they are equal if type and value are, so that 1, 1.0 and True differ,
   also within tuples and frozensets. Floats and NumPy scalars compare by their bits, objects of other types by their
   __eq__. */
#include <string.h>
#include "nvp.h"

static int is_same_float(double a, double b) { return !memcmp(&a, &b, sizeof a); }
/* Compares sets: each element must have an equal partner of the same type, which {1} == {1.0} does not check. */
static int is_same_set(PyObject *a, PyObject *b) {
  PyObject *as = PySequence_Tuple(a), *bs = as ? PySequence_Tuple(b) : NULL, *partners = bs ? PyDict_New() : NULL;
  Py_ssize_t n = partners ? PyTuple_Size(as) : 0;
  int same = !partners ? -1 : n == PyTuple_Size(bs);
  for (Py_ssize_t i = 0; i < n && same > 0; i++) {
    PyObject *x = PyTuple_GetItem(bs, i);
    if (PyDict_SetItem(partners, x, x)) same = -1;
  }
  for (Py_ssize_t i = 0; i < n && same > 0; i++) {
    PyObject *x = PyTuple_GetItem(as, i), *y = PyDict_GetItemWithError(partners, x);
    same = y ? nvp_same_static(x, y) : PyErr_Occurred() ? -1 : 0;
  }
  Py_XDECREF(as);
  Py_XDECREF(bs);
  Py_XDECREF(partners);
  return same;
}
/* Compares NumPy scalars by dtype and bytes; 2: a is none. */
static int is_same_numpy(PyObject *a, PyObject *b) {
  PyObject *da = PyObject_GetAttrString(a, "dtype"), *db = da ? PyObject_GetAttrString(b, "dtype") : NULL;
  int same = db ? PyObject_RichCompareBool(da, db, Py_EQ) : PyErr_ExceptionMatches(PyExc_AttributeError) ? 2 : -1;
  if (same == 2) PyErr_Clear();
  Py_XDECREF(da);
  Py_XDECREF(db);
  Py_buffer va, vb;
  if (same != 1) return same;
  if (PyObject_GetBuffer(a, &va, PyBUF_SIMPLE)) return PyErr_Clear(), 2;
  if (PyObject_GetBuffer(b, &vb, PyBUF_SIMPLE)) same = (PyErr_Clear(), 2);
  else {
    same = va.len == vb.len && !memcmp(va.buf, vb.buf, (size_t)va.len);
    PyBuffer_Release(&vb);
  }
  PyBuffer_Release(&va);
  return same;
}
int nvp_same_static(PyObject *a, PyObject *b) {
  if (a == b) return 1;
  if (Py_TYPE(a) != Py_TYPE(b)) return 0;
  if (PyFloat_CheckExact(a)) return is_same_float(PyFloat_AsDouble(a), PyFloat_AsDouble(b));
  if (PyComplex_CheckExact(a))
    return is_same_float(PyComplex_RealAsDouble(a), PyComplex_RealAsDouble(b)) &&
           is_same_float(PyComplex_ImagAsDouble(a), PyComplex_ImagAsDouble(b));
  if (PyTuple_Check(a)) {
    Py_ssize_t n = PyTuple_Size(a);
    int same = n == PyTuple_Size(b);
    for (Py_ssize_t i = 0; i < n && same > 0; i++) same = nvp_same_static(PyTuple_GetItem(a, i), PyTuple_GetItem(b, i));
    if (same <= 0 || PyTuple_CheckExact(a)) return same;
  }
  if (PyFrozenSet_CheckExact(a)) return is_same_set(a, b);
  int same = PyObject_CheckBuffer(a) ? is_same_numpy(a, b) : 2;
  return same < 2 ? same : PyObject_RichCompareBool(a, b, Py_EQ);
}
