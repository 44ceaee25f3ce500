/* NumPy's universal functions: the type that nvm's ufuncs derive from, and Array.__array_ufunc__, by which NumPy's own
   ufuncs and operators reach them. Calls with operands alone are made here; out=, where=, dtype= and the methods
   (reduce, at ...) are the business of the derived class, which is written in Python. */
#include "nvp.h"

typedef struct ufunc {
  PyObject_HEAD PyObject *function; /* counted; takes the operands by position */
  Py_ssize_t nin;
  int in_table;     /* function is one of the library's table, called without a detour */
  PyObject *reduce; /* counted; the library's reduction by this function; NULL: there is none */
} ufunc;

static PyObject *ufunc_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  (void)kw;
  PyObject *function;
  Py_ssize_t nin;
  if (!PyArg_ParseTuple(args, "On:Ufunc", &function, &nin)) return NULL;
  allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  ufunc *u = (ufunc *)alloc(type, 0);
  if (!u) return NULL;
  u->function = Py_NewRef(function);
  u->nin = nin;
  u->in_table = nvp_is_table_function(function);
  return (PyObject *)u;
}
static void ufunc_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_CLEAR(((ufunc *)self)->function);
  Py_CLEAR(((ufunc *)self)->reduce);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}
static PyObject *call_with_operands(const ufunc *u, PyObject *const *args) {
  if (u->in_table) return nvp_call_table(u->function, args, u->nin, NULL);
  PyObject *t = PyTuple_New(u->nin), *r = NULL;
  for (Py_ssize_t i = 0; t && i < u->nin; i++) PyTuple_SetItem(t, i, Py_NewRef(args[i]));
  if (t) r = PyObject_Call(u->function, t, NULL);
  Py_XDECREF(t);
  return r;
}
enum { MOST = 4 };
static PyObject *ufunc_call(PyObject *self, PyObject *args, PyObject *kw) {
  const ufunc *u = (ufunc *)self;
  PyObject *v[MOST], *r = NULL;
  if (PyTuple_Size(args) == u->nin && u->nin <= MOST && (!kw || !PyDict_Size(kw))) {
    for (Py_ssize_t i = 0; i < u->nin; i++) v[i] = PyTuple_GetItem(args, i);
    return call_with_operands(u, v);
  }
  PyObject *general = PyObject_GetAttrString(self, "call");
  if (general) r = PyObject_Call(general, args, kw);
  Py_XDECREF(general);
  return r;
}
static PyObject *get_function(PyObject *self, void *unused) {
  (void)unused;
  return Py_NewRef(((ufunc *)self)->function);
}
static PyObject *get_nin(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromSsize_t(((ufunc *)self)->nin);
}
static PyObject *get_reduction(PyObject *self, void *unused) {
  (void)unused;
  PyObject *f = ((ufunc *)self)->reduce;
  return Py_NewRef(f ? f : Py_None);
}
static int set_reduction(PyObject *self, PyObject *f, void *unused) {
  (void)unused;
  if (!f || !nvp_is_table_function(f)) return PyErr_SetString(PyExc_TypeError, "a reduction of the library"), -1;
  PyObject *before = ((ufunc *)self)->reduce;
  ((ufunc *)self)->reduce = Py_NewRef(f);
  Py_XDECREF(before);
  return 0;
}
static PyGetSetDef getset[] = { { "function", get_function, NULL, "the function of the operands alone", NULL },
                                { "nin", get_nin, NULL, "number of operands", NULL },
                                { "reduction", get_reduction, set_reduction, "the library's reduction, or None", NULL },
                                { NULL, NULL, NULL, NULL, NULL } };
static PyType_Slot slots[] = { { Py_tp_new, ufunc_new },
                               { Py_tp_dealloc, ufunc_dealloc },
                               { Py_tp_call, ufunc_call },
                               { Py_tp_getset, getset },
                               { 0, NULL } };
PyType_Spec nvp_ufunc_spec = { .name = "nvm._nvm.Ufunc",
                               .basicsize = sizeof(ufunc),
                               .slots = slots,
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE };

/* ---- what NumPy calls */
/* nvm's ufunc for NumPy's: borrowed; NULL with a TypeError where there is none. The Python half knows, and is asked
   once for each ufunc. */
static PyObject *find_ufunc(nvp_state *st, PyObject *theirs) {
  PyObject *ours = PyDict_GetItemWithError(st->ufuncs, theirs), *hook;
  if (ours || PyErr_Occurred() || !(hook = nvp_hook(st, "find_ufunc"))) return ours;
  ours = PyObject_CallFunctionObjArgs(hook, theirs, NULL);
  int kept = ours ? PyDict_SetItem(st->ufuncs, theirs, ours) : -1;
  Py_XDECREF(ours);
  return kept ? NULL : ours;
}
static PyObject *call_method(PyObject *ours, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  Py_ssize_t nkw = names ? PyTuple_Size(names) : 0;
  PyObject *method = PyObject_GetAttr(ours, args[1]), *t = method ? PyTuple_New(n - 2) : NULL, *r = NULL;
  PyObject *kw = t ? PyDict_New() : NULL;
  int status = kw ? 0 : -1;
  for (Py_ssize_t i = 2; t && i < n; i++) PyTuple_SetItem(t, i - 2, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; i < nkw && !status; i++) status = PyDict_SetItem(kw, PyTuple_GetItem(names, i), args[n + i]);
  if (!status) r = PyObject_Call(method, t, kw);
  Py_XDECREF(method);
  Py_XDECREF(t);
  Py_XDECREF(kw);
  return r;
}
/* reduce(x, axis=0, keepdims=False) of an array by one of the library's reductions. NULL without an exception: the
   Python half does it, or says what is wrong. */
static PyObject *reduce_at_once(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  Py_ssize_t nkw = names ? PyTuple_Size(names) : 0;
  if (!u->reduce || n < 1 || n > 2 || !Py_IS_TYPE(args[0], st->array)) return NULL;
  PyObject *v[3] = { args[0], NULL, NULL };
  if (n == 2) v[1] = args[1];
  for (Py_ssize_t i = 0; i < nkw; i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    int axis = !PyUnicode_CompareWithASCIIString(name, "axis");
    if ((!axis && PyUnicode_CompareWithASCIIString(name, "keepdims")) || v[axis ? 1 : 2]) return NULL;
    v[axis ? 1 : 2] = args[n + i];
  }
  PyObject *zero = v[1] ? NULL : PyLong_FromLong(0), *keywords = NULL, *r = NULL;
  v[1] = v[1] ? v[1] : zero;
  if (v[1]) keywords = v[2] ? PyTuple_Pack(2, st->s_axis, st->s_keepdims) : PyTuple_Pack(1, st->s_axis);
  if (keywords) r = nvp_call_table(u->reduce, v, 1, keywords);
  Py_XDECREF(zero);
  Py_XDECREF(keywords);
  if (!r) PyErr_Clear();
  return r;
}
/* __array_ufunc__(ufunc, method, *operands, **given). An operand that handles ufuncs itself is left to do so. */
PyObject *nvp_array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  nvp_state *st = ((nvp_array *)self)->st;
  if (n < 3) return PyErr_SetString(PyExc_TypeError, "__array_ufunc__ takes a ufunc, a method and operands"), NULL;
  for (Py_ssize_t i = 2; i < n; i++)
    if (!Py_IS_TYPE(args[i], st->array) && nvp_defers_to(st, args[i])) return Py_NewRef(Py_NotImplemented);
  PyObject *ours = find_ufunc(st, args[0]);
  if (!ours) return NULL;
  int plain = !names && PyUnicode_Check(args[1]) && !PyUnicode_CompareWithASCIIString(args[1], "__call__") &&
              n - 2 == ((ufunc *)ours)->nin;
  if (plain) return call_with_operands((ufunc *)ours, args + 2);
  int reduces = PyUnicode_Check(args[1]) && !PyUnicode_CompareWithASCIIString(args[1], "reduce");
  PyObject *r = reduces ? reduce_at_once(st, (ufunc *)ours, args + 2, n - 2, names) : NULL;
  return r ? r : call_method(ours, args, n, names);
}
