/* The library's table of operations as Python functions and methods: one function object for each row, made when the
   module is imported. A row's signature says which arguments are operands (the first ones) and which are attributes. No
   operation is known by name here, except in the tables of NumPy's method names, of NumPy's parameter names and of
   masked reductions, and where(condition). */
#include <stdlib.h>
#include <string.h>
#include "nvp.h"

enum { PARAMS = 12, INTS = 2048, ANY = PARAMS };
typedef struct param {
  PyObject *name;   /* interned; owned */
  const char *text; /* the name in UTF-8, as the library spells it */
  /* conversion of an attribute: 'b' bool, 'f' float, 'd' dtype, 'p' precision, 0 by its value. Two are not passed to
     the library: 'D' the device of the call, and 'M' a mask or initial value of a reduction, which is composed in
     Python. */
  char hint;
  char required;
} param;
typedef struct op {
  PyObject_HEAD nvp_state *st;
  int number, nin, nparam; /* nin -1: the first parameter is a list of arrays */
  int alone;               /* with its first operand alone it is another function */
  param p[PARAMS];
  char *doc; /* name(signature)\n--\n\ndoc, the form that inspect reads */
  PyMethodDef def;
} op;
/* self NULL: an unbound method in the type; row: its number among the methods */
typedef struct method { PyObject_HEAD op *op; PyObject *self; size_t row; } method;

/* ---- attributes */
static int flatten_ints(PyObject *v, int64_t *ints, int *n, int max) {
  if (!PyTuple_Check(v) && !PyList_Check(v)) {
    if (*n == max) return PyErr_SetString(PyExc_ValueError, "too many integers in one argument"), -1;
    PyObject *i = PyNumber_Index(v);
    if (!i) return -1;
    ints[(*n)++] = PyLong_AsLongLong(i);
    Py_DECREF(i);
    return PyErr_Occurred() ? -1 : 0;
  }
  if (Py_EnterRecursiveCall(" in the integers given to nvm")) return -1;
  PyObject *fast = PySequence_Tuple(v);
  int status = fast ? 0 : -1;
  for (Py_ssize_t k = 0; !status && k < PyTuple_Size(fast); k++)
    status = flatten_ints(PyTuple_GetItem(fast, k), ints, n, max);
  Py_XDECREF(fast);
  Py_LeaveRecursiveCall();
  return status;
}
static int attr_complex(nvm_attr *a, PyObject *v) {
  double im = PyComplex_ImagAsDouble(v);
  a->kind = 'c';
  a->f = PyComplex_RealAsDouble(v);
  memcpy(&a->i, &im, sizeof im);
  return 0;
}
static int attr_number(nvm_attr *a, PyObject *v) {
  if (PyComplex_Check(v)) return attr_complex(a, v);
  if (PyBool_Check(v)) return a->kind = 'b', a->i = v == Py_True, 0;
  if (PyIndex_Check(v)) {
    PyObject *i = PyNumber_Index(v);
    if (i) {
      a->kind = 'i';
      a->i = PyLong_AsLongLong(i);
      a->f = (double)a->i;
      Py_DECREF(i);
      return PyErr_Occurred() ? -1 : 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
      return -1; /* a float array has __index__ too, and it raises TypeError */
    PyErr_Clear();
  }
  a->kind = 'f';
  a->f = PyFloat_AsDouble(v);
  return a->f == -1 && PyErr_Occurred() ? -1 : 0;
}
static int attr_dtype(nvp_state *st, nvm_attr *a, PyObject *v) {
  nvm_dtype t;
  if (nvp_dtype_from(st, v, &t)) return -1;
  a->kind = t == NVM_DTYPE_DEFAULT ? 'n' : 'd';
  a->i = t;
  return 0;
}
static int attr_precision(nvp_state *st, nvm_attr *a, PyObject *v) {
  nvm_precision p;
  const char *name = PyUnicode_AsUTF8AndSize(v, NULL);
  if (!name || nvp_check(st, nvm_precision_find(&p, name))) return -1;
  a->kind = 'i';
  a->i = p;
  return 0;
}
static int attr_text(nvm_attr *a, PyObject *v, int64_t *ints, int max) {
  Py_ssize_t n = PyUnicode_GetLength(v);
  if (n > max) return PyErr_SetString(PyExc_ValueError, "a text is too long"), -1;
  a->kind = 's';
  a->is = ints;
  a->n = (int)n;
  for (Py_ssize_t i = 0; i < n; i++) ints[i] = PyUnicode_ReadChar(v, i);
  return 0;
}
/* Converts v to an attribute. ints: space for `max` integers, filled from ints[0] on; a->n says how many. */
static int attr_of(nvp_state *st, nvm_attr *a, char hint, PyObject *v, int64_t *ints, int max) {
  if (hint == 'd') return attr_dtype(st, a, v);
  if (v == Py_None) return a->kind = 'n', 0;
  if (hint == 'p' && PyUnicode_Check(v)) return attr_precision(st, a, v);
  if (hint == 'o' && PyLong_Check(v)) /* a diagonal beyond every matrix, however large the integer */
    return a->kind = 'i', a->i = PyNumber_AsSsize_t(v, NULL), 0;
  if (PyUnicode_Check(v)) return attr_text(a, v, ints, max);
  if (hint == 'b') {
    int yes = PyObject_IsTrue(v);
    return a->kind = 'b', a->i = yes, yes < 0 ? -1 : 0;
  }
  if (PySequence_Check(v) && !nvp_is_array(v)) { /* includes NumPy arrays that are not 0-dimensional */
    PyObject *items = PySequence_Tuple(v);
    if (!items && !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    if (!items) PyErr_Clear();
    a->kind = 'I';
    a->is = ints;
    int status = items ? flatten_ints(items, ints, &a->n, max) : 0;
    Py_XDECREF(items);
    if (items) return status;
  }
  int own = nvp_is_array(v) && nvp_kind(nvm_dtype_of(((nvp_array *)v)->h)) != 'c';
  if (nvp_has_buffer(st, v) && !own) { /* NumPy scalars and 0-dimensional complex arrays */
    PyObject *number = PyObject_CallMethod(v, "item", NULL);
    int status = number ? attr_number(a, number) : -1;
    Py_XDECREF(number);
    if (status) return -1;
  } else if (attr_number(a, v)) return -1;
  if (hint == 'f' && a->kind == 'c')
    return PyErr_Format(PyExc_TypeError, "'%s' is a real number, not %R", a->name, v), -1;
  if (hint == 'f') a->f = a->kind == 'f' ? a->f : (double)a->i, a->kind = 'f';
  return 0;
}

/* ---- calling */
static int argument_error(const op *o, const char *what, PyObject *name) {
  nvm_op_info info;
  if (!nvm_op_get(&info, o->number)) PyErr_Format(PyExc_TypeError, "%s%s: %s%S", info.name, info.signature, what, name);
  return -1;
}
/* The index of a parameter; o->nparam if there is none of that name. ddof is NumPy's name for correction. */
static int place_of(const op *o, PyObject *name) {
  int i = 0;
  while (i < o->nparam && o->p[i].name != name) i++;
  if (i < o->nparam || !PyUnicode_Check(name)) return i;
  /* compares the text, if the string is not the interned one */
  for (i = 0; i < o->nparam && PyUnicode_Compare(o->p[i].name, name); i++) {}
  if (i == o->nparam && !PyUnicode_CompareWithASCIIString(name, "ddof"))
    for (i = 0; i < o->nparam && strcmp(o->p[i].text, "correction"); i++) {}
  return i;
}
/* Binds arguments to parameters. v[i]: the borrowed argument of parameter i; NULL: not given. */
static int bind_arguments(const op *o, PyObject **v, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  if (n > o->nparam) {
    PyObject *count = PyLong_FromSsize_t(n);
    if (count) argument_error(o, "too many arguments: ", count);
    Py_XDECREF(count);
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) v[i] = args[i];
  Py_ssize_t nnames = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t k = 0; k < nnames; k++) {
    PyObject *name = PyTuple_GetItem(names, k);
    int i = place_of(o, name);
    if (i == o->nparam && args[n + k] == Py_None && !PyUnicode_CompareWithASCIIString(name, "out"))
      continue; /* functions over several libraries pass on NumPy's parameter */
    if (i == o->nparam) return argument_error(o, "no argument ", name);
    if (v[i]) return argument_error(o, "given twice: ", name);
    v[i] = args[n + k];
  }
  for (int i = 0; i < o->nparam; i++)
    if (!v[i] && o->p[i].required) return argument_error(o, "missing argument ", o->p[i].name);
  return 0;
}
static int read_operands(const op *o, PyObject *const *v, nvm_array **in, uint64_t *owned) {
  for (int i = 0; i < o->nin; i++) {
    int own = 0, got = 1;
    if (!v[i] || (v[i] == Py_None && !o->p[i].required)) in[i] = nvm_none();
    else got = nvp_operand(o->st, v[i], &in[i], &own);
    if (got < 0) return -1;
    if (!got) {
      PyErr_Format(PyExc_TypeError, "%.100s: '%U' is %R, not an array", o->def.ml_name, o->p[i].name,
                   (PyObject *)Py_TYPE(v[i]));
      return -1;
    }
    if (own) *owned |= (uint64_t)1 << i;
  }
  return 0;
}
static int read_attributes(const op *o, PyObject *const *v, nvm_attr *at, int *nat, int64_t *ints, nvm_device *d) {
  int used = 0;
  for (int i = o->nin < 0 ? 1 : o->nin; i < o->nparam; i++) {
    if (!v[i]) continue;
    if (o->p[i].hint == 'D') {
      if (nvp_device(o->st, v[i], d)) return -1;
      continue;
    }
    if (o->p[i].hint == 'M') continue;
    nvm_attr *a = &at[(*nat)++];
    *a = (nvm_attr){ .name = o->p[i].text };
    if (attr_of(o->st, a, o->p[i].hint, v[i], ints + used, INTS - used)) return -1;
    used += a->n;
  }
  return 0;
}
/* Applies an operation on a device: as the thread's device if the operands have none, else the result is moved
   there. */
static nvm_array *apply_op(const op *o, nvm_array *const *in, int nin, const nvm_attr *at, int nat, nvm_device d) {
  nvm_array *r;
  nvm_device before;
  if (d == NVM_DEVICE_AUTO) {
    NVP_MADE(r, nvm_apply_view(o->st->ctx, o->number, in, nin, at, nat));
    return r;
  }
  if (nvm_thread_device_set(&before, d)) return NULL;
  NVP_MADE(r, nvm_apply(o->st->ctx, o->number, in, nin, at, nat));
  nvm_thread_device_set(NULL, before);
  return nvp_put(r, d);
}
/* Calls an operation whose operands are a list of arrays. */
static PyObject *call_list(const op *o, PyObject *list, const nvm_attr *at, int nat) {
  PyObject *items = PySequence_Tuple(list);
  if (!items) return NULL;
  Py_ssize_t n = PyTuple_Size(items), made = 0;
  nvm_array **in = PyMem_Calloc((size_t)n + 1, sizeof *in);
  int own, got = 1;
  for (; in && made < n; made++) {
    if ((got = nvp_operand(o->st, PyTuple_GetItem(items, made), &in[made], &own)) <= 0) break;
    if (!own) nvm_array_ref(in[made]);
  }
  PyObject *r = NULL;
  if (!in) PyErr_NoMemory();
  else if (!got) PyErr_Format(PyExc_TypeError, "%.100s: item %zd is not an array", o->def.ml_name, made);
  else if (got > 0) r = nvp_wrap(o->st, apply_op(o, in, (int)n, at, nat, NVM_DEVICE_AUTO));
  while (in && made) nvm_array_unref(in[--made]);
  PyMem_Free(in);
  Py_DECREF(items);
  return r;
}
/* einsum_path(subscripts, order, operands) -> (the positions of each product's operands, the number of operations) */
PyObject *nvp_einsum_path(PyObject *m, PyObject *args) {
  nvp_state *st = PyModule_GetState(m);
  const char *subscripts;
  int order;
  PyObject *operands;
  if (!PyArg_ParseTuple(args, "siO!", &subscripts, &order, &PyTuple_Type, &operands)) return NULL;
  int n = (int)PyTuple_Size(operands);
  nvm_array **in = PyMem_Calloc((size_t)n + 1, sizeof *in);
  int (*pair)[2] = PyMem_Calloc((size_t)n + 1, sizeof *pair);
  double work;
  PyObject *path = in && pair ? PyList_New(0) : PyErr_NoMemory();
  for (int i = 0; path && i < n; i++) {
    PyObject *x = PyTuple_GetItem(operands, i);
    if (nvp_is_array(x)) {
      in[i] = ((nvp_array *)x)->h;
      continue;
    }
    PyErr_Format(PyExc_TypeError, "einsum_path: operand %d is not an array", i);
    Py_CLEAR(path);
  }
  if (path && nvp_check(st, nvm_einsum_path(pair, &work, subscripts, in, n, (nvm_order)order))) Py_CLEAR(path);
  for (int i = 0; path && i + 1 < n; i++) {
    PyObject *step = Py_BuildValue("(ii)", pair[i][0], pair[i][1]);
    if (!step || PyList_Append(path, step)) Py_CLEAR(path);
    Py_XDECREF(step);
  }
  PyMem_Free(in);
  PyMem_Free(pair);
  return path ? Py_BuildValue("(Nd)", path, work) : NULL;
}
/* Is it a reduction with a mask or an initial value? where=True and None mean neither, as in NumPy. */
static int is_masked(const op *o, PyObject *const *v) {
  int masked = 0;
  for (int i = o->nparam; i-- > 0 && o->p[i].hint == 'M';) masked |= v[i] && v[i] != Py_None && v[i] != Py_True;
  return masked;
}
static PyObject *call_masked(const op *o, PyObject *const *v) { /* calls the hook masked(name, x, **given) */
  PyObject *hook = nvp_hook(o->st, "masked"), *given = hook ? PyDict_New() : NULL;
  PyObject *args = given ? Py_BuildValue("(sO)", o->def.ml_name, v[0]) : NULL, *r = NULL;
  int status = args ? 0 : -1;
  for (int i = 1; i < o->nparam && !status; i++)
    if (v[i]) status = PyDict_SetItem(given, o->p[i].name, v[i]);
  if (!status) r = PyObject_Call(hook, args, given);
  Py_XDECREF(args);
  Py_XDECREF(given);
  return r;
}
static PyObject *call_op(const op *o, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  PyObject *v[PARAMS] = { 0 };
  nvm_array *in[PARAMS];
  nvm_attr at[PARAMS];
  int64_t ints[INTS];
  uint64_t owned = 0;
  int nat = 0;
  nvm_device d = NVM_DEVICE_AUTO;
  if (bind_arguments(o, v, args, n, names)) return NULL;
  if (is_masked(o, v)) return call_masked(o, v);
  if (read_attributes(o, v, at, &nat, ints, &d)) return NULL;
  if (o->nin < 0) return call_list(o, v[0], at, nat);
  PyObject *r = read_operands(o, v, in, &owned) ? NULL : nvp_wrap(o->st, apply_op(o, in, o->nin, at, nat, d));
  for (int i = 0; owned; i++, owned >>= 1)
    if (owned & 1) nvm_array_unref(in[i]);
  return r;
}
/* NumPy gives where(condition) another meaning. */
static PyObject *call_alone(const op *o, PyObject *x) {
  PyObject *hook = nvp_hook(o->st, "alone");
  return hook ? PyObject_CallFunction(hook, "sO", o->def.ml_name, x) : NULL;
}
static PyObject *call_function(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  const op *o = (op *)self;
  PyObject *r = o->alone && n == 1 && !names ? call_alone(o, *args) : call_op(o, args, n, names);
  return r ? r : nvp_name_caller(o->st, o->def.ml_name);
}

int nvp_is_table_function(PyObject *f) {
  return PyCFunction_Check(f) && PyCFunction_GetFunction(f) == (PyCFunction)(void (*)(void))call_function;
}
PyObject *nvp_call_table(PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  return call_function(PyCFunction_GetSelf(f), args, n, names);
}

/* ---- reading a signature: (x, /, *, axis=None, keepdims=False) */
static char find_hint(const char *name, const char *value) {
  if (!strcmp(name, "dtype")) return 'd';
  if (!strcmp(name, "device")) return 'D';
  if (!strcmp(name, "precision")) return 'p';
  if (!strcmp(name, "k") || !strcmp(name, "offset")) return 'o';
  if (!strcmp(name, "initial") || !strcmp(name, "where")) return 'M';
  if (!strncmp(value, "True", 4) || !strncmp(value, "False", 5)) return 'b';
  if (strpbrk(value, ".e") && strchr("0123456789-", *value) && *value) return 'f';
  return 0;
}
static int read_param(op *o, char *item) { /* item: "axis=None" without blanks; it is cut up in place */
  while (*item == ' ') item++;
  if (!*item || !strcmp(item, "/") || !strcmp(item, "*")) return 0;
  char *value = strchr(item, '=');
  if (value) *value++ = 0;
  if (o->nparam == PARAMS) return PyErr_Format(PyExc_SystemError, "operation with more than %d parameters", PARAMS), -1;
  param *p = &o->p[o->nparam++];
  if (!(p->name = PyUnicode_InternFromString(item))) return -1;
  p->text = PyUnicode_AsUTF8AndSize(p->name, NULL);
  p->required = !value;
  p->hint = find_hint(item, value ? value : "");
  return p->text ? 0 : -1;
}
static int read_signature(op *o, const char *signature) {
  char buf[512], *at = buf, *comma;
  size_t n = strlen(signature);
  if (n < 2 || n >= sizeof buf) return PyErr_SetString(PyExc_SystemError, "a signature is too long"), -1;
  memcpy(buf, signature + 1, n - 2);
  buf[n - 2] = 0;
  while ((comma = strchr(at, ','))) {
    *comma = 0;
    if (read_param(o, at)) return -1;
    at = comma + 1;
  }
  return read_param(o, at);
}
/* Reductions that are composed in Python if a mask (where) or an initial value is given, with NumPy's parameter
   names. */
static const struct {
  const char *op, *more;
} masked[] = {
  { "all", "where=None" },
  { "any", "where=None" },
  { "max", "initial=None, where=None" },
  { "mean", "where=None" },
  { "min", "initial=None, where=None" },
  { "prod", "initial=None, where=None" },
  { "std", "where=None" },
  { "sum", "initial=None, where=None" },
  { "var", "where=None" },
};
/* The parameters that a function has beside those of its row. Functions that create arrays take a device, as the array
   API standard says; it becomes the thread's device for the call. */
static const char *more_text(const nvm_op_info *info) {
  for (size_t i = 0; i < sizeof masked / sizeof *masked; i++)
    if (!strcmp(info->name, masked[i].op)) return masked[i].more;
  return !strcmp(info->kind, "creation") || strstr(info->signature, "dtype,") ? "device=None" : NULL;
}
static void signature_of(char *out, size_t size, const nvm_op_info *info) {
  const char *s = info->signature, *more = more_text(info);
  int n = (int)strlen(s) - 1;
  PyOS_snprintf(out, size, "%.*s%s%s)", n, s, !more ? "" : strchr(s, '*') ? ", " : ", *, ", more ? more : "");
}
/* The name of a function without that of its module: fft of fft.fft. */
static const char *plain_name(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot ? dot + 1 : name;
}
static op *op_new(nvp_state *st, const nvm_op_info *info, int number) {
  op *o = PyObject_New(op, st->op);
  if (!o) return NULL;
  memset((char *)o + sizeof(PyObject), 0, sizeof *o - sizeof(PyObject));
  o->st = st;
  o->number = number;
  o->nin = info->nin;
  o->alone = !strcmp(info->name, "where");
  char signature[512];
  signature_of(signature, sizeof signature, info);
  const char *name = plain_name(info->name);
  if (!(o->doc = nvp_describe(name, info, signature))) return Py_DECREF((PyObject *)o), PyErr_NoMemory(), NULL;
  o->def = (PyMethodDef){ name, (PyCFunction)(void (*)(void))call_function, METH_FASTCALL | METH_KEYWORDS, o->doc };
  if (read_signature(o, signature)) return Py_DECREF((PyObject *)o), NULL;
  return o;
}
static void op_dealloc(PyObject *self) {
  op *o = (op *)self;
  PyTypeObject *type = Py_TYPE(self);
  for (int i = 0; i < o->nparam; i++) Py_XDECREF(o->p[i].name);
  free(o->doc);
  PyObject_Free(self);
  Py_DECREF(type);
}
static PyObject *op_repr(PyObject *self) {
  return PyUnicode_FromFormat("<operation %s of nvm>", ((op *)self)->def.ml_name);
}
/* A function is pickled as an attribute of this object, which then stands for the module that has it. */
static PyObject *op_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  const op *o = (op *)self;
  nvm_op_info info;
  if (nvp_check(o->st, nvm_op_get(&info, o->number))) return NULL;
  PyObject *module = nvp_hook(o->st, "module");
  return module ? Py_BuildValue("O(s#)", module, info.name, (Py_ssize_t)(o->def.ml_name - info.name)) : NULL;
}
static PyMethodDef op_methods[] = { { "__reduce__", op_reduce, METH_NOARGS, NULL }, { NULL, NULL, 0, NULL } };
static PyType_Slot op_slots[] = {
  { Py_tp_dealloc, op_dealloc }, { Py_tp_repr, op_repr }, { Py_tp_methods, op_methods }, { 0, NULL }
};
PyType_Spec nvp_op_spec = { .name = "nvm._nvm.Operation",
                            .basicsize = sizeof(op),
                            .slots = op_slots,
                            .flags =
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE };

/* The name of the module of a function: nvm.fft of fft.fft. */
static PyObject *home_of(const nvm_op_info *info) {
  const char *dot = strrchr(info->name, '.');
  return dot ? PyUnicode_FromFormat("nvm.%.*s", (int)(dot - info->name), info->name) : PyUnicode_FromString("nvm");
}

int nvp_add_functions(PyObject *m, nvp_state *st) {
  int status = 0;
  for (int i = 0; !status && i < nvm_op_count(); i++) {
    nvm_op_info info;
    if (nvp_check(st, nvm_op_get(&info, i))) status = -1;
    int number;
    if (status || nvm_op_find(&number, info.name)) continue;
    op *o = op_new(st, &info, i);
    PyObject *home = o ? home_of(&info) : NULL, *f = home ? PyCFunction_NewEx(&o->def, (PyObject *)o, home) : NULL;
    status =
        f ? PyDict_SetItemString(st->functions, info.name, f) || PyModule_AddObjectRef(m, info.name, f) ? -1 : 0 : -1;
    Py_XDECREF(f);
    Py_XDECREF(home);
    Py_XDECREF((PyObject *)o);
  }
  return status;
}

/* ---- methods: operations whose first operand is the array, under NumPy's method names. With parameters that NumPy's
   method has alone, or more by position than both have in the same order, nvm.numpy's function is called. */
static const struct {
  const char *name, *op;
  int same;     /* parameters behind the array that NumPy's method has in the same order */
  int flattens; /* without an axis NumPy's method flattens the array, and the operation does not */
} methods[] = {
  { "all", "all", 1, 0 },
  { "any", "any", 1, 0 },
  { "argmax", "argmax", 1, 0 },
  { "argmin", "argmin", 1, 0 },
  { "argsort", "argsort", 1, 0 },
  { "astype", "astype", 1, 0 },
  { "clip", "clip", 2, 0 },
  { "cumprod", "cumulative_prod", 2, 1 },
  { "cumsum", "cumulative_sum", 2, 1 },
  { "diagonal", "diagonal", 1, 0 },
  { "max", "max", 1, 0 },
  { "mean", "mean", 1, 0 },
  { "min", "min", 1, 0 },
  { "prod", "prod", 2, 0 },
  { "reshape", "reshape", ANY, 0 },
  { "squeeze", "squeeze", 1, 0 },
  { "std", "std", 1, 0 },
  { "sum", "sum", 2, 0 },
  { "take", "take", 2, 0 },
  { "var", "var", 1, 0 },
};
PyObject *nvp_numpy_method(nvp_state *st, const char *name, PyObject *self, PyObject *args, PyObject *kw) {
  PyObject *hook = nvp_hook(st, "numpy_method"), *all = NULL, *r = NULL;
  PyObject *first = hook ? Py_BuildValue(self ? "(sO)" : "(s)", name, self) : NULL;
  if (first && (all = PySequence_Concat(first, args))) r = PyObject_Call(hook, all, kw);
  Py_XDECREF(first);
  Py_XDECREF(all);
  return r;
}
static method *method_new(nvp_state *st, op *o, PyObject *self, size_t row) {
  method *b = PyObject_New(method, st->method);
  if (!b) return NULL;
  b->op = (op *)Py_NewRef((PyObject *)o);
  b->self = Py_XNewRef(self);
  b->row = row;
  return b;
}
static PyObject *method_get(PyObject *self, PyObject *obj, PyObject *type) {
  (void)type;
  method *b = (method *)self;
  return !obj || obj == Py_None ? Py_NewRef(self) : (PyObject *)method_new(b->op->st, b->op, obj, b->row);
}
/* Do several integers stand for one tuple in this call, as in x.reshape(2, 3)? */
static int is_gather(const op *o, PyObject *const *v, Py_ssize_t n) {
  if (n < 3 || o->nin != 1 || o->nparam < 2 || !o->p[1].required) return 0;
  for (Py_ssize_t i = 1; i < n; i++)
    if (!PyIndex_Check(v[i])) return 0;
  return 1;
}
/* Is it a call that only NumPy's method has? */
static int is_of_numpy(const method *b, PyObject *args, PyObject *kw) {
  PyObject *key, *value;
  Py_ssize_t pos = 0, given = PyTuple_Size(args);
  /* behind them nvm's methods have keepdims and numbers, NumPy's a dtype, an order or out */
  Py_ssize_t next = methods[b->row].same + !b->self;
  if (given > next && (given + !!b->self > b->op->nparam || !PyLong_Check(PyTuple_GetItem(args, next)))) return 1;
  if (methods[b->row].flattens && given == !b->self && !(kw && PyDict_GetItemString(kw, "axis"))) return 1;
  while (kw && PyDict_Next(kw, &pos, &key, &value)) /* NumPy's functions pass on dtype=None and out=None */
    if (value != Py_None && place_of(b->op, key) == b->op->nparam) return 1;
  return 0;
}
static PyObject *method_call(PyObject *self, PyObject *args, PyObject *kw) {
  method *b = (method *)self;
  PyObject *v[PARAMS + PARAMS], *names = NULL, *axes = NULL, *key, *value, *r = NULL;
  Py_ssize_t n = 0, given = PyTuple_Size(args), pos = 0, nkw = kw ? PyDict_Size(kw) : 0;
  if (b->self) v[n++] = b->self;
  if (!b->self && (!given || !Py_IS_TYPE(PyTuple_GetItem(args, 0), b->op->st->array)))
    return PyErr_Format(PyExc_TypeError, "the method %s needs an nvm array", b->op->def.ml_name);
  if (given + 1 > PARAMS || nkw > PARAMS - 1) return PyErr_SetString(PyExc_TypeError, "too many arguments"), NULL;
  if ((kw || given > 1 || methods[b->row].flattens) && is_of_numpy(b, args, kw))
    return nvp_numpy_method(b->op->st, methods[b->row].name, b->self, args, kw);
  for (Py_ssize_t i = 0; i < given; i++) v[n++] = PyTuple_GetItem(args, i);
  if (is_gather(b->op, v, n)) {
    if (!(axes = PyTuple_GetSlice(args, b->self ? 0 : 1, given))) return NULL;
    v[1] = axes;
    n = 2;
  }
  PyObject *named = PyList_New(0);
  while (named && kw && PyDict_Next(kw, &pos, &key, &value)) {
    if (value == Py_None && place_of(b->op, key) == b->op->nparam) continue;
    v[n + PyList_Size(named)] = value;
    if (PyList_Append(named, key)) Py_CLEAR(named);
  }
  if (named && (names = PyList_AsTuple(named))) r = call_op(b->op, v, n, names);
  Py_XDECREF(named);
  Py_XDECREF(names);
  Py_XDECREF(axes);
  return r;
}
static void method_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_DECREF((PyObject *)((method *)self)->op);
  Py_XDECREF(((method *)self)->self);
  PyObject_Free(self);
  Py_DECREF(type);
}
static PyObject *get_doc(PyObject *self, void *u) {
  (void)u;
  const char *doc = strstr(((method *)self)->op->doc, "\n--\n\n");
  return PyUnicode_FromString(doc ? doc + 5 : "");
}
static PyObject *get_name(PyObject *self, void *u) {
  (void)u;
  return PyUnicode_FromString(((method *)self)->op->def.ml_name);
}
/* inspect reads this; a bound method has no first parameter */
static PyObject *get_signature(PyObject *self, void *u) {
  (void)u;
  const op *o = ((method *)self)->op;
  const char *from = o->doc + strlen(o->def.ml_name), *end = strstr(from, "\n--\n\n");
  PyObject *whole = PyUnicode_FromStringAndSize(from, end - from);
  PyObject *hook = whole ? nvp_hook(o->st, "method_signature") : NULL;
  PyObject *r =
      hook ? PyObject_CallFunctionObjArgs(hook, whole, ((method *)self)->self ? Py_True : Py_False, NULL) : NULL;
  Py_XDECREF(whole);
  return r;
}
static PyObject *get_self(PyObject *self, void *u) {
  (void)u;
  PyObject *s = ((method *)self)->self;
  return Py_NewRef(s ? s : Py_None);
}
static PyGetSetDef method_getset[] = { { "__doc__", get_doc, NULL, NULL, NULL },
                                       { "__name__", get_name, NULL, NULL, NULL },
                                       { "__text_signature__", get_signature, NULL, NULL, NULL },
                                       { "__self__", get_self, NULL, NULL, NULL },
                                       { NULL, NULL, NULL, NULL, NULL } };
static PyType_Slot method_slots[] = { { Py_tp_dealloc, method_dealloc },
                                      { Py_tp_call, method_call },
                                      { Py_tp_descr_get, method_get },
                                      { Py_tp_getset, method_getset },
                                      { 0, NULL } };
PyType_Spec nvp_method_spec = { .name = "nvm._nvm.Method",
                                .basicsize = sizeof(method),
                                .slots = method_slots,
                                .flags =
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE };

int nvp_add_methods(nvp_state *st) {
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    PyObject *f = PyDict_GetItemString(st->functions, methods[i].op);
    if (!f) continue; /* a method exists only if its operation does */
    PyObject *b = (PyObject *)method_new(st, (op *)PyCFunction_GetSelf(f), NULL, i);
    int status = b ? PyObject_SetAttrString((PyObject *)st->array, methods[i].name, b) : -1;
    Py_XDECREF(b);
    if (status) return -1;
  }
  return 0;
}
