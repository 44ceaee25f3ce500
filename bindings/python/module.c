/* The module nvm._nvm: its state, exceptions, settings and counters, and the queue of Python objects to be released by
   threads that do not hold the GIL. The only operations that it names are those of Python's syntax. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "nvp.h"

/* ---- the library's failures as exceptions */
/* Raises an exception that Python code defines: NumPy's LinAlgError where NumPy is imported, else nvm's, and the error
   of an axis, which NumPy has as a ValueError too. */
static PyObject *raise_defined(nvp_state *st, const char *name) {
  PyObject *hook = nvp_hook(st, name), *type = hook ? PyObject_CallNoArgs(hook) : NULL;
  if (!type) return NULL;
  PyErr_SetString(type, nvm_last_error());
  Py_DECREF(type);
  return NULL;
}
PyObject *nvp_raise(nvp_state *st) {
  PyObject *type = st->error;
  int matrices = nvm_last_status() == NVM_ERR_VALUE && strstr(nvm_last_error(), "matrices, not an array of shape");
  if ((matrices || nvm_last_status() == NVM_ERR_LINALG) && !PyErr_Occurred()) return raise_defined(st, "linalg_error");
  if (nvm_last_status() == NVM_ERR_INDEX && strstr(nvm_last_error(), "] axis ") && !PyErr_Occurred())
    return raise_defined(st, "axis_error");
  switch ((nvm_status)nvm_last_status()) {
  case NVM_ERR_VALUE: type = PyExc_ValueError; break;
  case NVM_ERR_TYPE: type = PyExc_TypeError; break;
  case NVM_ERR_INDEX: type = PyExc_IndexError; break;
  case NVM_ERR_MEMORY: type = PyExc_MemoryError; break;
  case NVM_ERR_STATE: type = PyExc_RuntimeError; break;
  case NVM_ERR_OVERFLOW: type = PyExc_OverflowError; break;
  case NVM_ERR_UNSUPPORTED: type = PyExc_NotImplementedError; break;
  case NVM_ERR_INTERRUPTED: type = PyExc_KeyboardInterrupt; break;
  default: break;
  }
  if (PyErr_Occurred()) return NULL;
  const char *text = nvm_last_error(), *end = strncmp(text, "[assign", 7) ? NULL : strchr(text, ']');
  if (end) PyErr_Format(type, "[setitem%s", end); /* Python's name for it */
  else PyErr_SetString(type, text);
  return NULL;
}
PyObject *nvp_name_caller(nvp_state *st, const char *who) {
  PyObject *hook = PyDict_GetItemString(st->hooks, "name_caller"), *type, *value, *trace;
  if (!hook || !PyErr_Occurred()) return NULL;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *named = PyObject_CallFunction(hook, "Oz", value, who);
  if (!named) PyErr_Clear();
  Py_XDECREF(named);
  PyErr_Restore(type, value, trace);
  return NULL;
}
int nvp_check(nvp_state *st, int status) { return status ? nvp_raise(st), -1 : 0; }

static int warn_without_llvm(nvp_state *st) {
  static atomic_int warned;
  PyObject *f = atomic_exchange(&warned, 1) || !nvm_llvm_usable() ? NULL : nvp_hook(st, "without_llvm");
  PyObject *r = f ? PyObject_CallFunction(f, "s", nvm_last_error()) : NULL;
  Py_XDECREF(r);
  return f && !r ? -1 : 0;
}
int nvp_ran(nvp_state *st, int status) {
  return status ? nvp_check(st, status) : nvm_llvm_missed() ? warn_without_llvm(st) : 0;
}

PyObject *nvp_hook(nvp_state *st, const char *name) {
  PyObject *f = PyDict_GetItemString(st->hooks, name), *load = f ? NULL : PyDict_GetItemString(st->hooks, "import"), *r;
  if (load) { /* the file that has it is imported when it is called first */
    if (!(r = PyObject_CallFunction(load, "s", name))) return NULL;
    Py_DECREF(r);
    f = PyDict_GetItemString(st->hooks, name);
  }
  if (!f) PyErr_Format(PyExc_RuntimeError, "nvm._nvm was imported without the package nvm: '%s' is missing", name);
  return f;
}

PyObject *nvp_text(nvp_state *st, int status, char *text) {
  PyObject *r = nvp_check(st, status) ? NULL : PyUnicode_FromString(text);
  nvm_free(text);
  return r;
}

/* ---- the queue: any thread pushes; a thread that holds the GIL drains it */
typedef struct owed { struct owed *next; void *what; int managed; } owed;
static _Atomic(owed *) queue;

void nvp_drain(void) {
  if (!atomic_load_explicit(&queue, memory_order_relaxed)) return;
  for (owed *o = atomic_exchange(&queue, NULL), *next; o; o = next) {
    next = o->next;
    if (o->managed) nvp_managed_delete(o->what);
    else Py_DECREF((PyObject *)o->what);
    free(o);
  }
}
static int drain_later(void *unused) {
  (void)unused;
  nvp_drain();
  return 0;
}
static void owe_release(void *what, int managed) {
  owed *o = Py_IsInitialized() ? malloc(sizeof *o) : NULL;
  if (!o) return; /* after the interpreter's end, or without memory, the object is leaked */
  o->what = what;
  o->managed = managed;
  owed *next = atomic_load(&queue); /* not read from o: once o is in the queue, another thread may free it */
  do o->next = next;
  while (!atomic_compare_exchange_weak(&queue, &next, o));
  if (!next) Py_AddPendingCall(drain_later, NULL); /* failing is harmless: later calls of nvm drain the queue too */
}
void nvp_release(void *owner) { owe_release(owner, 0); }
void nvp_release_capsule(void *managed) { owe_release(managed, 1); }

/* ---- functions of the module */
static nvp_state *state_of(PyObject *module) { return PyModule_GetState(module); }

int nvp_gather(nvp_gathered *g, PyObject *x) {
  if (Py_IS_TYPE(x, g->st->array)) {
    if (g->n == g->cap) {
      g->cap = g->cap ? 2 * g->cap : 16;
      nvm_array **a = PyMem_Realloc(g->a, sizeof *a * (size_t)g->cap);
      if (!a) return PyErr_NoMemory(), -1;
      g->a = a;
    }
    g->a[g->n++] = nvm_array_ref(((nvp_array *)x)->h);
    return 0;
  }
  PyObject *items = PyDict_Check(x)                       ? PyDict_Values(x)
                    : PyTuple_Check(x) || PyList_Check(x) ? PySequence_Tuple(x)
                                                          : NULL;
  if (!items) return PyErr_Occurred() ? -1 : 0;
  if (Py_EnterRecursiveCall(" in the arrays given to nvm")) return Py_DECREF(items), -1;
  int status = 0;
  Py_ssize_t n = PySequence_Size(items);
  for (Py_ssize_t i = 0; i < n && !status; i++) {
    PyObject *item = PySequence_GetItem(items, i);
    status = item ? nvp_gather(g, item) : -1;
    Py_XDECREF(item);
  }
  Py_LeaveRecursiveCall();
  Py_DECREF(items);
  return status;
}
void nvp_gather_free(nvp_gathered *g) {
  while (g->n) nvm_array_unref(g->a[--g->n]);
  PyMem_Free(g->a);
  nvp_drain();
}
static PyObject *mod_eval(PyObject *m, PyObject *args) {
  nvp_gathered g = { .st = state_of(m) };
  int status = nvp_gather(&g, args);
  if (!status && g.n) status = nvp_eval(g.st, "eval", g.a, (int)g.n);
  nvp_gather_free(&g);
  return status ? NULL : Py_NewRef(Py_None);
}
static PyObject *mod_donate(PyObject *m, PyObject *args) {
  nvp_gathered g = { .st = state_of(m) };
  int status = nvp_gather(&g, args);
  if (!status && g.n) status = nvp_eval(g.st, "donate", g.a, (int)g.n);
  for (Py_ssize_t i = 0; i < g.n && !status; i++) status = nvp_check(g.st, nvm_donate(g.a[i]));
  nvp_gather_free(&g);
  return status ? NULL : Py_NewRef(Py_None);
}
static PyObject *mod_explain_arrays(PyObject *m, PyObject *args) {
  nvp_gathered g = { .st = state_of(m) };
  char *text = NULL;
  PyObject *r = NULL;
  int status = nvp_gather(&g, args);
  if (!status && !g.n)
    status = (PyErr_SetString(PyExc_TypeError, "explain needs a function or at least one array"), -1);
  for (Py_ssize_t i = 0; i < g.n && !status; i++) { /* other threads may write to the arrays */
    nvm_array *held = nvm_hold(g.a[i]);
    if (!held) status = nvp_check(g.st, nvm_last_status());
    else nvm_array_unref(g.a[i]), g.a[i] = held;
  }
  if (!status) {
    NVP_UNLOCKED(status, nvm_explain(&text, g.a, (int)g.n));
    r = nvp_text(g.st, status, text);
  }
  nvp_gather_free(&g);
  return r;
}
static PyObject *mod_synchronize(PyObject *m, PyObject *unused) {
  (void)unused;
  nvp_state *st = state_of(m);
  int status;
  NVP_UNLOCKED(status, nvm_synchronize(st->ctx));
  nvp_drain();
  return nvp_check(st, status) ? NULL : Py_NewRef(Py_None);
}
static PyObject *mod_set(PyObject *m, PyObject *args) {
  const char *name;
  PyObject *value;
  if (!PyArg_ParseTuple(args, "sO:set", &name, &value)) return NULL;
  PyObject *text = value == Py_True    ? PyUnicode_FromString("1")
                   : value == Py_False ? PyUnicode_FromString("0")
                   : value == Py_None  ? Py_NewRef(Py_None)
                                       : PyObject_Str(value);
  const char *s = text && value != Py_None ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  int status = s || value == Py_None ? nvp_check(state_of(m), nvm_set(name, s)) : -1;
  Py_XDECREF(text);
  PyObject *hook = status ? NULL : nvp_hook(state_of(m), "was_set");
  return hook ? PyObject_CallFunction(hook, "s", name) : NULL;
}
static PyObject *mod_settings(PyObject *m, PyObject *unused) {
  (void)m, (void)unused;
  PyObject *d = PyDict_New();
  const char *name, *value, *def, *doc;
  for (int i = 0; d && nvm_setting(i, &name, &value, &def, &doc); i++) {
    PyObject *row = Py_BuildValue("(sss)", value, def, doc);
    if (!row || PyDict_SetItemString(d, name, row)) Py_CLEAR(d);
    Py_XDECREF(row);
  }
  return d;
}
static PyObject *mod_settings_invalid(PyObject *m, PyObject *unused) {
  (void)unused;
  char *text = NULL;
  int status = nvm_settings_invalid(&text);
  return nvp_text(state_of(m), status, text);
}
static PyObject *mod_counters(PyObject *m, PyObject *unused) {
  (void)unused;
  nvm_counters c;
  if (nvp_check(state_of(m), nvm_counters_get(&c, NVM_COUNTERS_VERSION))) return NULL;
  return Py_BuildValue("{sL sL sL sL sL sL sL sL}", "kernels_compiled", (long long)c.kernels_compiled, "kernels_loaded",
                       (long long)c.kernels_loaded, "programs_planned", (long long)c.programs_planned, "evaluations",
                       (long long)c.evaluations, "kernels_run", (long long)c.kernels_run, "bytes_used",
                       (long long)c.bytes_used, "bytes_peak", (long long)c.bytes_peak, "bytes_copied",
                       (long long)c.bytes_copied);
}
/* compiling() -> (the number of kernels that are being compiled, for how many seconds) */
static PyObject *mod_compiling(PyObject *m, PyObject *unused) {
  (void)m, (void)unused;
  double seconds;
  int n = nvm_compiling(&seconds);
  return Py_BuildValue("(id)", n, seconds);
}
static PyObject *mod_reset_peak(PyObject *m, PyObject *unused) {
  (void)unused;
  return nvp_check(state_of(m), nvm_counters_reset_peak()) ? NULL : Py_NewRef(Py_None);
}
static PyObject *mod_info(PyObject *m, PyObject *unused) {
  (void)unused;
  char *text = NULL;
  int status = nvm_info(&text);
  return nvp_text(state_of(m), status, text);
}
static PyObject *mod_tracing(PyObject *m, PyObject *unused) {
  (void)m, (void)unused;
  return PyBool_FromLong(nvp_tracing());
}
static PyObject *mod_dtype(PyObject *m, PyObject *x) {
  nvp_state *st = state_of(m);
  nvm_dtype t;
  return nvp_dtype_from(st, x, &t) ? NULL : nvp_dtype_object(st, t);
}
/* The library's table of operations: {name: (kind, operands, signature, doc)} */
static PyObject *mod_table(PyObject *m, PyObject *unused) {
  (void)unused;
  nvp_state *st = state_of(m);
  PyObject *d = PyDict_New();
  for (int i = 0; d && i < nvm_op_count(); i++) {
    nvm_op_info o;
    PyObject *row =
        nvp_check(st, nvm_op_get(&o, i)) ? NULL : Py_BuildValue("(siss)", o.kind, o.nin, o.signature, o.doc);
    if (!row || PyDict_SetItemString(d, o.name, row)) Py_CLEAR(d);
    Py_XDECREF(row);
  }
  return d;
}
static PyObject *mod_has_buffer(PyObject *m, PyObject *x) { return PyBool_FromLong(nvp_has_buffer(state_of(m), x)); }
/* from_bytes(data, dtype, shape): rebuilds a pickled array */
static PyObject *mod_from_bytes(PyObject *m, PyObject *args) {
  nvp_state *st = state_of(m);
  PyObject *data, *dtype, *shape;
  int64_t n[NVM_MAX_RANK], size;
  nvm_dtype t;
  if (!PyArg_ParseTuple(args, "O!OO!:from_bytes", &PyBytes_Type, &data, &dtype, &PyTuple_Type, &shape) ||
      nvp_dtype_from(st, dtype, &t))
    return NULL;
  int rank = (int)PyTuple_Size(shape);
  if (t == NVM_DTYPE_DEFAULT || rank > NVM_MAX_RANK)
    return PyErr_SetString(PyExc_ValueError, "from_bytes: dtype or shape"), NULL;
  size = (int64_t)nvm_dtype_size(t);
  for (int d = 0; d < rank; d++) {
    n[d] = PyLong_AsLongLong(PyTuple_GetItem(shape, d));
    if (PyErr_Occurred()) return NULL;
    if (n[d] < 0 || __builtin_mul_overflow(size, n[d], &size))
      return PyErr_SetString(PyExc_ValueError, "from_bytes: shape"), NULL;
  }
  if (size != PyBytes_Size(data))
    return PyErr_SetString(PyExc_ValueError, "from_bytes: the shape does not fit the bytes"), NULL;
  return nvp_wrap(st, nvm_array_new_host(st->ctx, t, rank, n, NULL, PyBytes_AsString(data), NULL, NULL));
}
static PyObject *mod_from_dlpack(PyObject *m, PyObject *args, PyObject *kw) {
  static char *names[] = { "", "device", "copy", NULL };
  PyObject *x, *device = Py_None, *may = Py_None;
  nvm_device d;
  nvp_copy copy;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$OO:from_dlpack", names, &x, &device, &may) ||
      nvp_device(state_of(m), device, &d) || nvp_copy_of(may, &copy))
    return NULL;
  if (!nvp_jitting() || PyCapsule_CheckExact(x) || nvp_is_array(x)) return nvp_from_dlpack(state_of(m), x, copy, d);
  PyObject *r = nvp_captured(state_of(m), x, copy), *there = r;
  if (r && nvp_is_array(r) && d != NVM_DEVICE_AUTO) {
    there = nvp_wrap(state_of(m), nvp_put(nvm_array_ref(((nvp_array *)r)->h), d));
    Py_DECREF(r);
  }
  return there;
}
static PyMethodDef methods[] = {
  { "eval", mod_eval, METH_VARARGS,
    "eval($module, /, *arrays)\n--\n\nEvaluates arrays (tuples, lists and dicts of "
    "them too) together; shared work is done once."
    "\n\n>>> import nvm\n>>> x = nvm.ones(2) + 1\n>>> nvm.eval(x)\n>>> x.ready()\nTrue\n" },
  { "donate", mod_donate, METH_VARARGS,
    "donate($module, /, *arrays)\n--\n\nGives arrays up: what was computed from "
    "them may take their memory; reading them is an error from here on."
    "\n\n>>> import nvm\n>>> x = nvm.ones(2)\n>>> y = x + 1\n>>> nvm.donate(x)\n>>> y\narray([2., 2.])\n" },
  { "explain_arrays", mod_explain_arrays, METH_VARARGS, NULL },
  { "synchronize", mod_synchronize, METH_NOARGS,
    "synchronize($module, /)\n--\n\nWaits until everything that was "
    "launched has finished."
    "\n\n>>> import nvm\n>>> nvm.synchronize()\n" },
  { "set", mod_set, METH_VARARGS,
    "set($module, name, value, /)\n--\n\nSets a setting: nvm.set('fuse', 'off'). "
    "nvm.settings() lists them."
    "\n\n>>> import nvm\n>>> nvm.set(\"fuse\", \"on\")\n" },
  { "settings_table", mod_settings, METH_NOARGS, NULL },
  { "settings_invalid", mod_settings_invalid, METH_NOARGS, NULL },
  { "counters", mod_counters, METH_NOARGS,
    "counters($module, /)\n--\n\nWhat the library has done in this process: a "
    "dict of numbers."
    "\n\n>>> import nvm\n>>> nvm.counters()[\"kernels_run\"] >= 0\nTrue\n" },
  { "compiling", mod_compiling, METH_NOARGS, NULL },
  { "reset_peak", mod_reset_peak, METH_NOARGS,
    "reset_peak($module, /)\n--\n\nLets counters()['bytes_peak'] start "
    "again at what is in use."
    "\n\n>>> import nvm\n>>> nvm.reset_peak()\n" },
  { "info", mod_info, METH_NOARGS,
    "info($module, /)\n--\n\nVersion, compiler, threads, vector width and cache, a "
    "line each."
    "\n\n>>> import nvm\n>>> print(nvm.info()[:3])\nnvm\n" },
  { "tracing", mod_tracing, METH_NOARGS,
    "tracing($module, /)\n--\n\nTrue inside a function that nvm.jit, vmap or a loop is tracing." },
  { "dtype", mod_dtype, METH_O,
    "dtype($module, x, /)\n--\n\nThe nvm dtype that x (a dtype of nvm or NumPy, a name, "
    "bool, int, float, complex) means."
    "\n\n>>> import nvm\n>>> nvm.dtype(\"float32\")\nnvm.float32\n" },
  { "op_table", mod_table, METH_NOARGS, NULL },
  { "has_buffer", mod_has_buffer, METH_O, NULL },
  { "from_bytes", mod_from_bytes, METH_VARARGS, NULL },
  { "einsum_path", nvp_einsum_path, METH_VARARGS, NULL },
  { "positions", nvp_nonzero, METH_O, NULL },
  { "show", nvp_show, METH_O, NULL },
  { "is_writable", nvp_is_writable, METH_O, NULL },
  { "index_outside", nvp_index_outside, METH_VARARGS, NULL },
  { "from_dlpack", (PyCFunction)(void (*)(void))mod_from_dlpack, METH_VARARGS | METH_KEYWORDS,
    "from_dlpack($module, x, /, *, device=None, copy=None)\n--\n\nAn array over the memory of x, which must not "
    "change while the array lives; copy=True copies."
    "\n\n>>> import nvm\n>>> nvm.from_dlpack(nvm.asarray([1, 2]))\narray([1, 2])\n" },
  { NULL, NULL, 0, NULL }
};

/* ---- making and freeing the state */
static int add_type(PyObject *m, PyTypeObject **slot, PyType_Spec *spec, const char *public_name) {
  *slot = (PyTypeObject *)PyType_FromModuleAndSpec(m, spec, NULL);
  return *slot && (!public_name || !PyModule_AddObjectRef(m, public_name, (PyObject *)*slot)) ? 0 : -1;
}
static int intern_names(nvp_state *st) {
  struct {
    PyObject **at;
    const char *text;
  } names[] = {
    { &st->s_array_interface, "__array_interface__" },
    { &st->s_dlpack, "__dlpack__" },
    { &st->s_array, "__array__" },
    { &st->s_priority, "__array_priority__" },
    { &st->s_name, "name" },
    { &st->s_dunder_name, "__name__" },
    { &st->s_cuda_interface, "__cuda_array_interface__" },
    { &st->s_exchange, "__dlpack_c_exchange_api__" },
    { &st->s_dataclass, "__dataclass_fields__" },
    { &st->s_array_ufunc, "__array_ufunc__" },
    { &st->s_axis, "axis" },
    { &st->s_keepdims, "keepdims" },
    { &st->s_dtype, "dtype" },
    { &st->s_initial, "initial" },
    { &st->s_where, "where" },
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!(*names[i].at = PyUnicode_InternFromString(names[i].text))) return -1;
  return 0;
}
static void find_fixed(nvp_state *st) {
  static const char *const names[] = {
#define FIXED(id, name) name,
#include "fixed.def"
#undef FIXED
  };
  for (int i = 0; i < NVP_NFIXED; i++)
    if (nvm_op_find(&st->fixed[i], names[i])) st->fixed[i] = -1;
}
/* Modules that something refers to at the end are never freed, and their contexts are not either. */
static void end_process(void) {
  nvm_ctx *last;
  if (!nvm_ctx_new(&last, NULL)) nvm_ctx_free(last);
}
static int module_exec(PyObject *m) {
  nvp_state *st = state_of(m);
  find_fixed(st);
  if (!(st->functions = PyDict_New()) || !(st->hooks = PyDict_New()) || !(st->ufuncs = PyDict_New()) ||
      !(st->routes = PyDict_New()) || !(st->known_dtypes = PyDict_New()) || intern_names(st))
    return -1;
  if (!(st->error = PyErr_NewExceptionWithDoc("nvm.Error",
                                              "A device, the disk cache or nvm itself failed: a RuntimeError. Wrong "
                                              "arguments raise ValueError, TypeError\nor IndexError.\n\n"
                                              ">>> import nvm\n>>> issubclass(nvm.Error, RuntimeError)\nTrue\n",
                                              PyExc_RuntimeError, NULL)))
    return -1;
  if (nvp_check(st, nvm_ctx_new(&st->ctx, NULL))) return -1;
  Py_AtExit(end_process);
  nvp_listen_first();
  return add_type(m, &st->dtype, &nvp_dtype_spec, "DType") || add_type(m, &st->array, &nvp_array_spec, "Array") ||
                 add_type(m, &st->op, &nvp_op_spec, NULL) || add_type(m, &st->method, &nvp_method_spec, NULL) ||
                 add_type(m, &st->jit, &nvp_jit_spec, "Jitted") || add_type(m, &st->ufunc, &nvp_ufunc_spec, "Ufunc") ||
                 add_type(m, &st->route, &nvp_route_spec, "Route") || nvp_add_dtypes(m, st) ||
                 nvp_add_functions(m, st) || nvp_add_methods(st) || nvp_finish_array(st) || nvp_add_exchange(st) ||
                 PyModule_AddFunctions(m, nvp_asarray_def) || PyModule_AddFunctions(m, nvp_device_def) ||
                 PyModule_AddFunctions(m, nvp_tune_def) || PyModule_AddFunctions(m, nvp_profile_def) ||
                 PyModule_AddFunctions(m, nvp_evaluation_def) || PyModule_AddFunctions(m, nvp_stream_def) ||
                 PyModule_AddFunctions(m, nvp_loop_def) || PyModule_AddFunctions(m, nvp_vmap_def) ||
                 PyModule_AddFunctions(m, nvp_random_def) || PyModule_AddFunctions(m, nvp_overlap_def) ||
                 PyModule_AddFunctions(m, nvp_doctor_def) || PyModule_AddObjectRef(m, "Error", st->error) ||
                 PyModule_AddObjectRef(m, "functions", st->functions) || PyModule_AddObjectRef(m, "hooks", st->hooks) ||
                 PyModule_AddStringConstant(m, "__version__", nvm_version())
             ? -1
             : 0;
}
#define OBJECTS(X) X(error) X(functions) X(hooks) X(s_array_interface) X(s_dlpack) X(s_array) X(s_priority) X(s_name) \
  X(s_dunder_name) X(s_cuda_interface) X(s_exchange) X(s_dataclass) X(s_array_ufunc) X(s_axis) X(s_keepdims) \
  X(s_dtype) X(s_initial) X(s_where) X(ufuncs) X(routes) X(known_dtypes) \
  X(ufunc) X(doctor) X(array) X(dtype) X(op) X(method) X(jit) X(route)
static int module_traverse(PyObject *m, visitproc visit, void *arg) {
  nvp_state *st = state_of(m);
#define X(name) Py_VISIT(st->name);
  OBJECTS(X)
#undef X
  for (int t = 0; t < NVM_NDTYPES; t++) Py_VISIT(st->dtypes[t]);
  return 0;
}
static int module_clear(PyObject *m) {
  nvp_state *st = state_of(m);
  Py_CLEAR(st->functions);
  Py_CLEAR(st->hooks);
  Py_CLEAR(st->ufuncs);
  Py_CLEAR(st->routes);
  Py_CLEAR(st->known_dtypes);
  Py_CLEAR(st->doctor);
  return 0;
}
static void module_free(void *m) {
  nvp_state *st = state_of(m);
#define X(name) Py_CLEAR(st->name);
  OBJECTS(X)
#undef X
  for (int t = 0; t < NVM_NDTYPES; t++) Py_CLEAR(st->dtypes[t]);
  nvp_forget_numbers(st);
  nvm_ctx_free(st->ctx);
  st->ctx = NULL;
  nvp_drain();
}
static PyModuleDef_Slot slots[] = { { Py_mod_exec, (void *)module_exec }, { 0, NULL } };
static PyModuleDef definition = {
  .m_base = PyModuleDef_HEAD_INIT,
  .m_name = "nvm._nvm",
  .m_doc = "The C half of nvm.",
  .m_size = sizeof(nvp_state),
  .m_methods = methods,
  .m_slots = slots,
  .m_traverse = module_traverse,
  .m_clear = module_clear,
  .m_free = module_free,
};
PyMODINIT_FUNC PyInit__nvm(void) { return PyModuleDef_Init(&definition); }
