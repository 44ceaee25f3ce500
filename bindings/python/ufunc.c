/* NumPy's universal functions: the type that nvm's ufuncs derive from, and Array.__array_ufunc__, by which NumPy's own
   ufuncs and operators reach them. Calls with operands alone are made here; out=, where=, dtype= and the methods
   (reduce, at ...) are the business of the derived class, which is written in Python. */
#include "ufunc.h"

/* That of the type, or of the one that it derives from, in Python. */
static nvp_state *state_of(PyTypeObject *type) {
  nvp_state *st = NULL;
  for (; type && !(st = PyType_GetModuleState(type)); type = PyType_GetSlot(type, Py_tp_base)) PyErr_Clear();
  return st;
}
static PyObject *ufunc_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  (void)kw;
  PyObject *function;
  Py_ssize_t nin, nout;
  int elementwise;
  if (!PyArg_ParseTuple(args, "Onnp:Ufunc", &function, &nin, &nout, &elementwise)) return NULL;
  allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  ufunc *u = (ufunc *)alloc(type, 0);
  if (!u) return NULL;
  u->st = state_of(type);
  u->function = Py_NewRef(function);
  u->nin = nin;
  u->nout = nout;
  u->elementwise = elementwise;
  u->in_table = nvp_is_table_function(function);
  return (PyObject *)u;
}
static void ufunc_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_CLEAR(((ufunc *)self)->function);
  Py_CLEAR(((ufunc *)self)->reduce);
  Py_CLEAR(((ufunc *)self)->scan);
  Py_CLEAR(((ufunc *)self)->floats);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}
PyObject *nvp_ufunc_operands(const ufunc *u, PyObject *const *args) {
  if (u->floats && Py_IS_TYPE(*args, u->st->array) && nvp_kind(nvm_dtype_of(((nvp_array *)*args)->h)) == 'f')
    return nvp_call_table(u->floats, args, 1, NULL);
  if (u->in_table) return nvp_call_table(u->function, args, u->nin, NULL);
  PyObject *t = PyTuple_New(u->nin), *r = NULL;
  for (Py_ssize_t i = 0; t && i < u->nin; i++) PyTuple_SetItem(t, i, Py_NewRef(args[i]));
  if (t) r = PyObject_Call(u->function, t, NULL);
  Py_XDECREF(t);
  return r;
}
/* The call in C where it can be made there: NULL without an exception where it cannot. */
static PyObject *call_with_names(PyObject *self, PyObject *args, PyObject *kw) {
  enum { NAMES = 6 };
  PyObject *v[NVP_MOST + NVP_RESULTS + NAMES], *names, *key, *value, *r;
  Py_ssize_t n = PyTuple_Size(args), nkw = PyDict_Size(kw), pos = 0;
  if (n > NVP_MOST + NVP_RESULTS || nkw > NAMES) return NULL;
  if (!(names = PyTuple_New(nkw))) return NULL;
  for (Py_ssize_t i = 0; i < n; i++) v[i] = PyTuple_GetItem(args, i);
  for (Py_ssize_t i = 0; i < nkw && PyDict_Next(kw, &pos, &key, &value); i++) {
    PyTuple_SetItem(names, i, Py_NewRef(key));
    v[n + i] = value;
  }
  r = nvp_ufunc_call(((ufunc *)self)->st, (ufunc *)self, v, n, names);
  Py_DECREF(names);
  return r;
}
static PyObject *ufunc_call(PyObject *self, PyObject *args, PyObject *kw) {
  const ufunc *u = (ufunc *)self;
  PyObject *v[NVP_MOST], *r = NULL;
  if (PyTuple_Size(args) == u->nin && u->nin <= NVP_MOST && (!kw || !PyDict_Size(kw))) {
    for (Py_ssize_t i = 0; i < u->nin; i++) v[i] = PyTuple_GetItem(args, i);
    return nvp_ufunc_operands(u, v);
  }
  if (kw && ((r = call_with_names(self, args, kw)) || PyErr_Occurred())) return r;
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
static PyObject *get_nout(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromSsize_t(((ufunc *)self)->nout);
}
static PyObject **function_at(PyObject *self, void *offset) { return (PyObject **)((char *)self + (size_t)offset); }
static PyObject *get_from_table(PyObject *self, void *offset) {
  PyObject *f = *function_at(self, offset);
  return Py_NewRef(f ? f : Py_None);
}
static int set_from_table(PyObject *self, PyObject *f, void *offset) {
  if (!f || !nvp_is_table_function(f)) return PyErr_SetString(PyExc_TypeError, "a function of the library"), -1;
  PyObject **at = function_at(self, offset), *before = *at;
  *at = Py_NewRef(f);
  Py_XDECREF(before);
  return 0;
}
#define FROM_TABLE(name, field, doc) \
  { name, get_from_table, set_from_table, doc, (void *)offsetof(ufunc, field) }
static PyGetSetDef getset[] = { { "function", get_function, NULL, "the function of the operands alone", NULL },
                                { "nin", get_nin, NULL, "number of operands", NULL },
                                { "nout", get_nout, NULL, "number of results", NULL },
                                FROM_TABLE("reduction", reduce, "the library's reduction, or None"),
                                FROM_TABLE("scan", scan, "the library's scan, or None"),
                                FROM_TABLE("of_floats", floats,
                                           "the library's function of an array of floats, or None"),
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
/* nvm's ufunc for NumPy's: a new reference; NULL with a TypeError where there is none. The Python half knows, and is
   asked once for each ufunc. */
static PyObject *find_ufunc(nvp_state *st, PyObject *theirs) {
  PyObject *ours = Py_XNewRef(PyDict_GetItemWithError(st->ufuncs, theirs)), *hook;
  if (ours || PyErr_Occurred() || !(hook = nvp_hook(st, "find_ufunc"))) return ours;
  ours = PyObject_CallFunctionObjArgs(hook, theirs, NULL);
  if (ours && PyDict_SetItem(st->ufuncs, theirs, ours)) Py_CLEAR(ours);
  return ours;
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
/* The method by that name where it is made in C; NULL without an exception: it is left to the Python half. */
static PyObject *call_in_c(nvp_state *st, const ufunc *u, PyObject *method, PyObject *const *args, Py_ssize_t n,
                           PyObject *names) {
  static const struct {
    const char *name;
    PyObject *(*call)(nvp_state *, const ufunc *, PyObject *const *, Py_ssize_t, PyObject *);
  } made[] = { { "__call__", nvp_ufunc_call },
               { "reduce", nvp_ufunc_reduce },
               { "outer", nvp_ufunc_outer },
               { "accumulate", nvp_ufunc_accumulate } };
  for (size_t i = 0; PyUnicode_Check(method) && i < sizeof made / sizeof *made; i++)
    if (!PyUnicode_CompareWithASCIIString(method, made[i].name))
      return !i && !names && n == u->nin ? nvp_ufunc_operands(u, args) : made[i].call(st, u, args, n, names);
  return NULL;
}
/* __array_ufunc__(ufunc, method, *operands, **given). An operand that handles ufuncs itself is left to do so. */
PyObject *nvp_array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  nvp_state *st = ((nvp_array *)self)->st;
  if (n < 3) return PyErr_SetString(PyExc_TypeError, "__array_ufunc__ takes a ufunc, a method and operands"), NULL;
  for (Py_ssize_t i = 2; i < n; i++)
    if (!Py_IS_TYPE(args[i], st->array) && nvp_defers_to(st, args[i])) return Py_NewRef(Py_NotImplemented);
  PyObject *ours = find_ufunc(st, args[0]);
  if (!ours) return NULL;
  PyObject *r = call_in_c(st, (ufunc *)ours, args[1], args + 2, n - 2, names);
  if (!r && !PyErr_Occurred()) r = call_method(ours, args, n, names);
  Py_DECREF(ours);
  return r;
}
