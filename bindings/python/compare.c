/* x == y and its kind. What is no array and no number, as None, a text or an object, equals no element, as in NumPy. */
#include "nvp.h"

/* An array of false, or of true, of x's shape, where it lies. */
static PyObject *answer_for_each(nvp_array *x, int answer) {
  nvm_attr attr[2] = { { .name = "fill_value", .kind = 'f', .f = answer },
                       { .name = "dtype", .kind = 'd', .i = NVM_BOOL } };
  return nvp_apply(x->st, NVP_FULL_LIKE, &x->h, 1, attr, 2);
}
static int is_text(PyObject *y) { return PyUnicode_Check(y) || PyBytes_Check(y); }
/* What y itself says about y op x, if its type compares itself with others: a new reference, perhaps NotImplemented. */
static PyObject *ask_other(PyObject *y, PyObject *x, int op) {
  richcmpfunc compare = (richcmpfunc)PyType_GetSlot(Py_TYPE(y), Py_tp_richcompare);
  return compare ? compare(y, x, op) : Py_NewRef(Py_NotImplemented);
}
PyObject *nvp_compare(PyObject *x, PyObject *y, int op) {
  static const nvp_fixed which[] = { [Py_LT] = NVP_LT, [Py_LE] = NVP_LE, [Py_EQ] = NVP_EQ,
                                     [Py_NE] = NVP_NE, [Py_GT] = NVP_GT, [Py_GE] = NVP_GE };
  nvp_state *st = ((nvp_array *)x)->st;
  PyObject *r = y == Py_None || is_text(y) ? Py_NewRef(Py_NotImplemented) : nvp_binary(x, y, which[op]);
  if (r != Py_NotImplemented || (op != Py_EQ && op != Py_NE) || nvp_defers_to(st, y)) return r;
  Py_DECREF(r);
  r = ask_other(y, x, op);
  if (r != Py_NotImplemented) return r;
  Py_DECREF(r);
  return answer_for_each((nvp_array *)x, op == Py_NE);
}
