/* What nvm.doctor watches: evaluations that a read or nvm.eval asks for, copies between devices, and traces of jitted
   functions. Never decides what is worth telling: the package's Python half does, which is called before and after. */
#include <time.h>
#include "nvp.h"

static _Thread_local int inside; /* what the doctor itself evaluates is not told */

static long long clock_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static long long bytes_copied(void) {
  nvm_counters c;
  return nvm_counters_get(&c, NVM_COUNTERS_VERSION) ? 0 : (long long)c.bytes_copied;
}
static int has_to_wait(nvm_array *const *a, int n) {
  int waits = 0;
  for (int i = 0; i < n; i++) waits |= nvm_is_pending(a[i]) || nvm_device_of(a[i]) != NVM_DEVICE_CPU;
  return waits;
}
static PyObject *list_arrays(nvp_state *st, nvm_array *const *a, int n) {
  PyObject *list = PyList_New(n);
  for (int i = 0; list && i < n; i++) {
    PyObject *x = nvp_wrap(st, nvm_array_ref(a[i]));
    if (!x || PyList_SetItem(list, i, x)) Py_CLEAR(list);
  }
  return list;
}
static void drop_error(nvp_state *st) { /* a fault of the doctor is no fault of the program */
  if (PyErr_Occurred()) PyErr_WriteUnraisable(st->doctor);
}
nvp_visit nvp_doctor_begin(nvp_state *st, const char *who, nvm_array *const *a, int n) {
  nvp_visit v = { 0 };
  if (!st->doctor || !n || inside || nvp_tracing() || PyErr_Occurred()) return v;
  inside = 1;
  PyObject *arrays = list_arrays(st, a, n);
  if (arrays) v.note = PyObject_CallFunction(st->doctor, "sO", who, arrays);
  Py_XDECREF(arrays);
  drop_error(st);
  inside = 0;
  v.copied = bytes_copied();
  v.began = clock_now();
  return v;
}
nvp_visit nvp_doctor_begin_read(nvp_state *st, const char *who, nvm_array *const *a, int n) {
  return st->doctor && has_to_wait(a, n) ? nvp_doctor_begin(st, who, a, n) : (nvp_visit){ 0 };
}
void nvp_doctor_end(nvp_state *st, nvp_visit *v) {
  if (!v->note) return;
  long long took = clock_now() - v->began, copied = bytes_copied() - v->copied;
  PyObject *type, *value, *trace; /* of an evaluation that failed */
  PyErr_Fetch(&type, &value, &trace);
  inside = 1;
  PyObject *r = PyObject_CallFunction(v->note, "LL", took, copied);
  Py_XDECREF(r);
  Py_CLEAR(v->note);
  drop_error(st);
  inside = 0;
  PyErr_Restore(type, value, trace);
}
void nvp_doctor_traced(nvp_state *st, PyObject *fn, nvm_traced *t) {
  char *text = NULL;
  if (!st->doctor || inside) return;
  inside = 1;
  if (!t || nvm_traced_explain(&text, t)) text = NULL;
  PyObject *r = PyObject_CallFunction(st->doctor, "sOz", "jit", fn, text);
  nvm_free(text);
  Py_XDECREF(r);
  drop_error(st);
  inside = 0;
}

/* doctor_set(f): f or None takes the place of what was called before. f(who, arrays) -> a function of (nanoseconds,
   bytes copied between devices); f("jit", function, explanation or None) after a trace. */
static PyObject *doctor_set(PyObject *m, PyObject *f) {
  nvp_state *st = PyModule_GetState(m);
  PyObject *before = st->doctor;
  st->doctor = f == Py_None ? NULL : Py_NewRef(f);
  Py_XDECREF(before);
  return Py_NewRef(Py_None);
}
PyMethodDef nvp_doctor_def[] = { { "doctor_set", doctor_set, METH_O, NULL }, { NULL, NULL, 0, NULL } };
