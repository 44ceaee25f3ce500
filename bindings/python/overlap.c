/* Where the elements of arrays lie, of nvm and of others, and whether two arrays have some in common: for
   nvm.shares_memory, and for arguments that a jitted function writes to. Never touches elements. */
#include <string.h>
#include "nvp.h"

/* ---- places */
static void place_set(nvp_place *p, int64_t at, size_t each, int rank, const int64_t *shape) {
  if (shape) memcpy(p->shape, shape, sizeof *shape * (size_t)rank);
  p->m = (nvm_strided){ .at = at, .each = each, .rank = rank, .shape = p->shape, .strides = p->strides };
}
int nvp_place_of_view(nvp_place *p, nvm_array *a) {
  int64_t offset;
  if (nvm_view_layout(&offset, p->strides, a)) return 0;
  place_set(p, offset, nvm_dtype_size(nvm_dtype_of(a)), nvm_rank(a), nvm_shape(a));
  return 1;
}
int nvp_place_of_value(nvp_place *p, nvm_array *a) {
  const void *data;
  nvm_device d;
  if (nvm_device_data(&data, p->strides, &d, a)) return 0;
  place_set(p, (int64_t)(uintptr_t)data, nvm_dtype_size(nvm_dtype_of(a)), nvm_rank(a), nvm_shape(a));
  return 1;
}
int nvp_place_of_buffer(nvp_place *p, const Py_buffer *v) {
  if (v->ndim > NVM_MAX_RANK) return 0;
  int64_t packed = v->itemsize;
  for (int d = v->ndim - 1; d >= 0; d--) {
    p->shape[d] = v->shape[d];
    p->strides[d] = v->strides ? v->strides[d] : packed;
    packed *= v->shape[d];
  }
  place_set(p, (int64_t)(uintptr_t)v->buf, (size_t)v->itemsize, v->ndim, NULL);
  return 1;
}
int nvp_is_same_place(const nvp_place *p, const nvp_place *q) {
  int same = p->m.at == q->m.at && p->m.each == q->m.each && p->m.rank == q->m.rank;
  for (int d = 0; same && d < p->m.rank; d++)
    same = p->shape[d] == q->shape[d] && (p->shape[d] < 2 || p->strides[d] == q->strides[d]);
  return same;
}
int nvp_overlap(const nvp_place *p, const nvp_place *q, int64_t work) {
  int found = -1;
  return nvm_overlap(&found, &p->m, &q->m, work) ? -1 : found;
}

/* ---- nvm.shares_memory */
/* Where an object's elements lie in memory. *keep and *view hold it. 1; 0: it has no memory of its own; -1: an
   exception. */
static int find_place(nvp_state *st, PyObject *x, nvp_place *p, PyObject **keep, Py_buffer *view) {
  if (!nvp_is_array(x) && (nvp_has_buffer(st, x) || PyBytes_Check(x) || PyByteArray_Check(x))) {
    if (PyObject_GetBuffer(x, view, PyBUF_FULL_RO)) return -1;
    if (nvp_place_of_buffer(p, view)) return 1;
    return PyErr_SetString(PyExc_ValueError, "[shares_memory] an array has more than 32 dimensions"), -1;
  }
  if (!nvp_is_array(x) && !PyObject_HasAttr((PyObject *)Py_TYPE(x), st->s_dlpack))
    return PyErr_Format(PyExc_TypeError, "[shares_memory] %R has no memory that is known", (PyObject *)Py_TYPE(x)), -1;
  if (!(*keep = nvp_is_array(x) ? Py_NewRef(x) : nvp_from_dlpack(st, x, NVP_COPY_IF_NEEDED, NVM_DEVICE_AUTO)))
    return -1;
  nvm_array *a = ((nvp_array *)*keep)->h;
  return nvm_is_pending(a) ? 0 : nvp_place_of_value(p, a) ? 1 : (nvp_raise(st), -1);
}
static int compare_objects(nvp_state *st, PyObject *x, PyObject *y, int64_t work) { /* -2: an exception */
  PyObject *keep[2] = { NULL, NULL }, *of[2] = { x, y };
  Py_buffer view[2] = { { .obj = NULL }, { .obj = NULL } };
  nvp_place p[2];
  int there = 1, found = 0;
  for (int k = 0; k < 2 && there >= 0; k++) { /* the second is looked at where the first has no memory yet */
    int has = find_place(st, of[k], &p[k], &keep[k], &view[k]);
    there = has < 0 ? -1 : there && has;
  }
  if (there > 0) found = nvp_overlap(&p[0], &p[1], work);
  for (int k = 0; k < 2; k++) {
    Py_XDECREF(keep[k]);
    if (view[k].obj) PyBuffer_Release(&view[k]);
  }
  return there < 0 ? -2 : found;
}
static int compare_views(nvm_array *a, nvm_array *b, int64_t work) {
  nvp_place p, q;
  if (nvm_base(a) != nvm_base(b)) return 0;
  return nvp_place_of_view(&p, a) && nvp_place_of_view(&q, b) ? nvp_overlap(&p, &q, work) : -1;
}
static int share(PyObject *m, PyObject *args, PyObject *kw, int64_t work) { /* -1: not decided; -2: an exception */
  static char *names[] = { "", "", "max_work", NULL };
  PyObject *x, *y, *most = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O:shares_memory", names, &x, &y, &most)) return -2;
  if (most) work = most == Py_None ? -1 : PyLong_AsLongLong(most);
  if (PyErr_Occurred()) return -2;
  if (nvp_is_array(x) && nvp_is_array(y)) return compare_views(((nvp_array *)x)->h, ((nvp_array *)y)->h, work);
  return compare_objects(PyModule_GetState(m), x, y, work);
}
static PyObject *shares_memory(PyObject *m, PyObject *args, PyObject *kw) {
  int found = share(m, args, kw, -1);
  if (found == -1)
    PyErr_SetString(PyExc_RuntimeError, "[shares_memory] it takes more than max_work to find out; may_share_memory "
                                        "says that they may");
  return found < 0 ? NULL : PyBool_FromLong(found);
}
static PyObject *may_share_memory(PyObject *m, PyObject *args, PyObject *kw) {
  int found = share(m, args, kw, 0);
  return found == -2 ? NULL : PyBool_FromLong(found != 0);
}
PyMethodDef nvp_overlap_def[] = {
  { "shares_memory", (PyCFunction)(void (*)(void))shares_memory, METH_VARARGS | METH_KEYWORDS,
    "shares_memory($module, x1, x2, /, max_work=None)\n--\n\n"
    "Whether two arrays have an element in common: two views of one nvm array, or arrays of others in one memory.\n"
    "max_work bounds how many combinations of indices are tried; RuntimeError if that does not decide it."
    "\n\n>>> import nvm\n>>> x = nvm.arange(6)\n>>> nvm.shares_memory(x[:2], x[4:])\nFalse\n" },
  { "may_share_memory", (PyCFunction)(void (*)(void))may_share_memory, METH_VARARGS | METH_KEYWORDS,
    "may_share_memory($module, x1, x2, /, max_work=0)\n--\n\n"
    "False only if two arrays have no element in common. max_work=0 compares their first and last bytes alone; with\n"
    "more of it fewer pairs that are apart are True."
    "\n\n>>> import nvm\n>>> x = nvm.arange(6)\n>>> nvm.may_share_memory(x[:2], x[1:])\nTrue\n" },
  { NULL, NULL, 0, NULL }
};
