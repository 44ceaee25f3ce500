/* Captures: foreign arrays (of NumPy, PyTorch ...) that a jitted function uses from its closure or globals become
   hidden parameters, which every call reads again. During the trace they have values; if the trace looked at one, calls
   compare the contents. Decides which objects cannot change and so become constants. */
#include "nvp.h"

static _Thread_local nvp_capture *list;
static _Thread_local int count, cap;

static PyObject *find_capture(nvp_state *st, PyObject *x) {
  for (int i = 0; i < count; i++)
    if (list[i].x == x) return nvp_wrap(st, nvm_snapshot(list[i].array));
  return NULL;
}
/* NumPy scalars and memory of bytes: hashable objects do not change. */
static int is_value(nvp_state *st, PyObject *x) {
  if (!nvp_has_buffer(st, x)) return 0;
  int value = PyObject_Hash(x) != -1;
  PyErr_Clear();
  return value;
}
static int add_capture(PyObject *x, nvm_array *a) {
  if (count == cap) {
    nvp_capture *more = PyMem_Realloc(list, sizeof *list * (size_t)(cap + 8));
    if (!more) return PyErr_NoMemory(), -1;
    list = more;
    cap += 8;
  }
  list[count++] = (nvp_capture){ Py_NewRef(x), nvm_array_ref(a), 0 };
  return 0;
}
PyObject *nvp_captured(nvp_state *st, PyObject *x, nvp_copy copy) {
  PyObject *r = find_capture(st, x);
  if (r || PyErr_Occurred()) return r;
  r = nvp_from_object(st, x, copy == NVP_COPY_NEVER ? copy : NVP_COPY_ALWAYS);
  if (!r || !nvp_is_array(r) || is_value(st, x)) return r;
  if (add_capture(x, ((nvp_array *)r)->h) || nvp_check(st, nvm_trace_adopt(((nvp_array *)r)->h))) Py_CLEAR(r);
  if (!r) return NULL;
  Py_DECREF(r);
  return find_capture(st, x); /* the function gets a snapshot, since it may write to it; the parameter stays */
}
void nvp_captures_read(void) {
  for (int i = 0; i < count; i++) list[i].read = 1;
}
static int is_only_ours(PyObject *x) { /* nobody else holds the object or its memory, so nobody can write to it */
  if (Py_REFCNT(x) != 1) return 0;
  PyObject *base = PyObject_GetAttrString(x, "base");
  int own = base == Py_None;
  Py_XDECREF(base);
  PyErr_Clear();
  return own;
}
static void drop_capture(nvp_capture *at) {
  Py_DECREF(at->x);
  nvm_array_unref(at->array);
}
nvp_capture *nvp_captures_take(int *n) {
  nvp_capture *taken = list;
  *n = 0;
  for (int i = 0; i < count; i++)
    if (is_only_ours(list[i].x)) drop_capture(&list[i]);
    else taken[(*n)++] = list[i];
  list = NULL;
  count = cap = 0;
  return taken;
}
void nvp_captures_free(nvp_capture *at, int n) {
  for (int i = 0; i < n; i++) drop_capture(&at[i]);
  PyMem_Free(at);
}
