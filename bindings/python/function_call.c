/* NumPy's functions, called with an nvm array: Array.__array_function__. A route leads from a function of NumPy to
   nvm.numpy's of the same name, and has the forms of its call that are one operation of the library's table; those are
   made here, without a frame of Python. Which forms there are says _protocol.py. */
#include <string.h>
#include "nvp.h"

enum { MOST = 6 };
typedef struct parameter {
  PyObject *theirs; /* owned; NumPy's name; NULL: it is not given by the caller but has the value `fixed` */
  PyObject *ours;   /* owned; the name in the table; NULL: by position */
  PyObject *fixed;  /* owned */
  char kind;        /* what a value must be; see suits */
  char by_position; /* may the caller give it by position? */
} parameter;
typedef struct form {
  PyObject *function; /* owned; one of the library's table */
  char kinds[8];      /* of the dtypes that its operands may have; 'f' of 4 bytes and more, 'h' of fewer */
  int least, most;    /* dimensions that they may have */
  int n;
  parameter p[MOST];
} form;
typedef struct route { PyObject_HEAD PyObject *target; int n; form *forms; } route;

/* ---- making a route: Route(target, ((function, kinds, least, most, ((theirs, ours, fixed, kind), ...)), ...)) */
static int read_parameter(parameter *p, PyObject *row) {
  const char *kind;
  PyObject *theirs, *ours, *fixed;
  if (!PyArg_ParseTuple(row, "OOOs:Route", &theirs, &ours, &fixed, &kind)) return -1;
  p->theirs = theirs == Py_None ? NULL : Py_NewRef(theirs);
  p->ours = ours == Py_None ? NULL : Py_NewRef(ours);
  p->fixed = Py_NewRef(fixed);
  p->by_position = !strchr("bdnm", *kind);
  p->kind = *kind;
  return 0;
}
static int read_form(form *f, PyObject *row) {
  const char *kinds;
  PyObject *function, *parameters;
  if (!PyArg_ParseTuple(row, "OsiiO!:Route", &function, &kinds, &f->least, &f->most, &PyTuple_Type, &parameters))
    return -1;
  if (!nvp_is_table_function(function) || strlen(kinds) >= sizeof f->kinds || PyTuple_Size(parameters) > MOST)
    return PyErr_SetString(PyExc_ValueError, "Route: a form of a call"), -1;
  f->function = Py_NewRef(function);
  strcpy(f->kinds, kinds);
  for (; f->n < PyTuple_Size(parameters); f->n++)
    if (read_parameter(&f->p[f->n], PyTuple_GetItem(parameters, f->n))) return -1;
  return 0;
}
static PyObject *route_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  (void)kw;
  PyObject *target, *forms;
  if (!PyArg_ParseTuple(args, "OO!:Route", &target, &PyTuple_Type, &forms)) return NULL;
  route *r = (route *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!r) return NULL;
  r->target = Py_NewRef(target);
  Py_ssize_t n = PyTuple_Size(forms);
  if (n && !(r->forms = PyMem_Calloc((size_t)n, sizeof *r->forms))) return Py_DECREF((PyObject *)r), PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < n; i++) {
    r->n++;
    if (read_form(&r->forms[i], PyTuple_GetItem(forms, i))) return Py_DECREF((PyObject *)r), NULL;
  }
  return (PyObject *)r;
}
static void route_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  route *r = (route *)self;
  for (int i = 0; i < r->n; i++) {
    form *f = &r->forms[i];
    Py_XDECREF(f->function);
    for (int k = 0; k < f->n; k++) {
      Py_XDECREF(f->p[k].theirs);
      Py_XDECREF(f->p[k].ours);
      Py_XDECREF(f->p[k].fixed);
    }
  }
  PyMem_Free(r->forms);
  Py_XDECREF(r->target);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}
static PyType_Slot slots[] = { { Py_tp_new, route_new }, { Py_tp_dealloc, route_dealloc }, { 0, NULL } };
PyType_Spec nvp_route_spec = {
  .name = "nvm._nvm.Route", .basicsize = sizeof(route), .slots = slots, .flags = Py_TPFLAGS_DEFAULT
};

/* ---- does a call have a form? */
static nvm_array *handle(PyObject *x) { return ((nvp_array *)x)->h; }
static int suits_operand(nvp_state *st, const form *f, PyObject *x) {
  if (!Py_IS_TYPE(x, st->array)) return 0;
  nvm_dtype t = nvm_dtype_of(handle(x));
  char kind = nvp_kind(t);
  if (kind == 'f' && nvm_dtype_size(t) < 4) kind = 'h';
  int rank = nvm_rank(handle(x));
  return strchr(f->kinds, kind) && rank >= f->least && rank <= f->most;
}
static int are_integers(PyObject *x) {
  if (!PyTuple_CheckExact(x)) return PyLong_CheckExact(x);
  for (Py_ssize_t i = PyTuple_Size(x); i-- > 0;)
    if (!PyLong_CheckExact(PyTuple_GetItem(x, i))) return 0;
  return 1;
}
static int are_operands(nvp_state *st, const form *f, PyObject *x) {
  if (!PyTuple_CheckExact(x) && !PyList_CheckExact(x)) return 0;
  Py_ssize_t n = PyTuple_CheckExact(x) ? PyTuple_Size(x) : PyList_Size(x);
  for (Py_ssize_t i = 0; i < n; i++)
    if (!suits_operand(st, f, PyTuple_CheckExact(x) ? PyTuple_GetItem(x, i) : PyList_GetItem(x, i))) return 0;
  return n > 0;
}
static int is_row(nvp_state *st, PyObject *x) { /* of integers */
  return Py_IS_TYPE(x, st->array) && nvm_rank(handle(x)) == 1 && strchr("iu", nvp_kind(nvm_dtype_of(handle(x))));
}
static int is_dtype_of(nvp_state *st, PyObject *dtype, PyObject *x) {
  nvm_dtype t;
  if (dtype != Py_None && !nvp_dtype_from(st, dtype, &t))
    return Py_IS_TYPE(x, st->array) && nvm_dtype_of(handle(x)) == t;
  PyErr_Clear();
  return dtype == Py_None;
}
/* first: the value of the first parameter */
static int suits(nvp_state *st, const form *f, char kind, PyObject *x, PyObject *first) {
  switch (kind) {
  case 'A': return suits_operand(st, f, x);
  case 'J': return is_row(st, x);
  case 'm':
  case 'M': return Py_IS_TYPE(x, st->array) && nvm_dtype_of(handle(x)) == NVM_BOOL;
  case 'V': return Py_IS_TYPE(x, st->array) || nvp_is_scalar(x);
  case 'n':
  case 'N': return PyLong_CheckExact(x) || PyFloat_CheckExact(x);
  case 'I': return PyLong_CheckExact(x);
  case 'X': return x == Py_None || PyLong_CheckExact(x);
  case 'S': return are_integers(x);
  case 'T': return x == Py_None || are_integers(x);
  case 'b': return PyBool_Check(x);
  case 'd': return is_dtype_of(st, x, first);
  case 'L': return are_operands(st, f, x);
  default: return 0;
  }
}
/* The arguments of a call in this form: v has those by position, then those by name, whose names follow in `names`
   (borrowed, as all are). 0: the call has another form. */
typedef struct call { PyObject *v[MOST], *names[MOST]; Py_ssize_t n, named; } call;
static int bind(nvp_state *st, const form *f, PyObject *args, PyObject *kw, call *c) {
  Py_ssize_t n = PyTuple_Size(args), given = 0, left = kw && PyDict_Check(kw) ? PyDict_Size(kw) : 0;
  *c = (call){ .n = 0 };
  for (int i = 0; i < f->n; i++) {
    const parameter *p = &f->p[i];
    PyObject *x = p->theirs ? NULL : p->fixed;
    if (!x && p->by_position && given < n) x = PyTuple_GetItem(args, given++);
    else if (!x && left && (x = PyDict_GetItemWithError(kw, p->theirs))) left--;
    if (!x && !p->ours) return 0; /* operands are not left out */
    if (!x) continue;
    if (p->theirs && !suits(st, f, p->kind, x, c->n ? c->v[0] : x)) return 0;
    if (p->ours) c->names[c->named++] = p->ours;
    c->v[c->n++] = x;
  }
  return given == n && !left;
}
static PyObject *call_form(const form *f, const call *c) {
  PyObject *names = c->named ? PyTuple_New(c->named) : NULL, *r = NULL;
  for (Py_ssize_t i = 0; names && i < c->named; i++) PyTuple_SetItem(names, i, Py_NewRef(c->names[i]));
  if (names || !c->named) r = nvp_call_table(f->function, c->v, c->n - c->named, names);
  Py_XDECREF(names);
  return r;
}

/* ---- what NumPy calls */
/* What wraps arrays calls the functions itself; other libraries' arrays show their memory. */
static int are_known(nvp_state *st, PyObject *types) {
  PyObject *all = PySequence_Tuple(types);
  int known = all ? 1 : -1;
  for (Py_ssize_t i = 0; known > 0 && i < PyTuple_Size(all); i++) {
    PyObject *t = PyTuple_GetItem(all, i);
    if (t == (PyObject *)st->array) continue;
    known = PyObject_IsSubclass(t, (PyObject *)st->array);
    if (!known) known = PyObject_HasAttr(t, st->s_dlpack);
  }
  Py_XDECREF(all);
  return known;
}
/* The route from NumPy's function, which the Python half is asked for once: a new reference. */
static PyObject *find_route(nvp_state *st, PyObject *theirs) {
  PyObject *r = Py_XNewRef(PyDict_GetItemWithError(st->routes, theirs)), *hook;
  if (r || PyErr_Occurred() || !(hook = nvp_hook(st, "find_route"))) return r;
  r = PyObject_CallFunctionObjArgs(hook, theirs, NULL);
  if (r && !Py_IS_TYPE(r, st->route)) {
    PyErr_SetString(PyExc_TypeError, "find_route gives a Route");
    Py_CLEAR(r);
  }
  if (r && PyDict_SetItem(st->routes, theirs, r)) Py_CLEAR(r);
  return r;
}
/* __array_function__(function, types, args, kwargs). A form of the table that fails is left to nvm.numpy's function,
   whose errors are NumPy's. */
PyObject *nvp_array_function(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  nvp_state *st = ((nvp_array *)self)->st;
  call c;
  if (n != 4 || !PyTuple_Check(args[2]))
    return PyErr_SetString(PyExc_TypeError, "__array_function__ takes a function, types, arguments and keywords"), NULL;
  int known = are_known(st, args[1]);
  if (known <= 0) return known ? NULL : Py_NewRef(Py_NotImplemented);
  PyObject *found = find_route(st, args[0]), *r = NULL;
  const route *way = (const route *)found;
  for (int i = 0; way && !r && !PyErr_Occurred() && i < way->n; i++)
    if (bind(st, &way->forms[i], args[2], args[3], &c) && !(r = call_form(&way->forms[i], &c)) &&
        PyErr_ExceptionMatches(PyExc_Exception))
      PyErr_Clear();
  if (way && !r && !PyErr_Occurred()) r = PyObject_Call(way->target, args[2], PyDict_Check(args[3]) ? args[3] : NULL);
  Py_XDECREF(found);
  return r;
}
