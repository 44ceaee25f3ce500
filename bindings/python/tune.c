/* nvm.auto_tune and what `python -m nvm tune` stands on: sessions, whose progress is told to a Python function, and records. */
#include "nvp.h"

static nvp_state *state_of(PyObject *module) { return PyModule_GetState(module); }

/* Called in a thread that evaluates, without the interpreter's lock. What the function raises cannot stop the evaluation. */
static void told(void *fn, const nvm_tune_progress *p) {
  PyGILState_STATE held = PyGILState_Ensure();
  PyObject *r = PyObject_CallFunction(fn, "iisd", p->step, p->steps, p->what, p->part);
  if (!r) PyErr_WriteUnraisable(fn);
  Py_XDECREF(r);
  PyGILState_Release(held);
}

/* tune_begin(seconds, cold, progress): progress None, or a function that the caller keeps until tune_end */
static PyObject *tune_begin(PyObject *m, PyObject *args) {
  nvm_tune_options o = NVM_TUNE_OPTIONS_INIT;
  PyObject *fn;
  if (!PyArg_ParseTuple(args, "dpO:tune_begin", &o.seconds, &o.cold, &fn)) return NULL;
  if (fn != Py_None) o.progress = told, o.user = fn;
  return nvp_check(state_of(m), nvm_tune_begin(&o)) ? NULL : Py_NewRef(Py_None);
}
static PyObject *tune_end(PyObject *m, PyObject *unused) {
  (void)unused;
  int status;
  Py_BEGIN_ALLOW_THREADS /* another thread may be measuring, and tell of it */
  status = nvm_tune_end();
  Py_END_ALLOW_THREADS
  return nvp_check(state_of(m), status) ? NULL : Py_NewRef(Py_None);
}
static PyObject *text_by(PyObject *m, int (*get)(char **text)) {
  char *text = NULL;
  if (nvp_check(state_of(m), get(&text))) return NULL;
  PyObject *r = PyUnicode_FromString(text);
  nvm_free(text);
  return r;
}
static PyObject *tune_list(PyObject *m, PyObject *unused) { (void)unused; return text_by(m, nvm_tune_list); }
static PyObject *tune_export(PyObject *m, PyObject *unused) { (void)unused; return text_by(m, nvm_tune_export); }
static PyObject *tune_import(PyObject *m, PyObject *args) {
  const char *json;
  int taken;
  if (!PyArg_ParseTuple(args, "s:tune_import", &json)) return NULL;
  return nvp_check(state_of(m), nvm_tune_import(&taken, json)) ? NULL : PyLong_FromLong(taken);
}
static PyObject *tune_clear(PyObject *m, PyObject *unused) {
  (void)unused;
  int dropped;
  return nvp_check(state_of(m), nvm_tune_clear(&dropped)) ? NULL : PyLong_FromLong(dropped);
}
static PyObject *tune_counters(PyObject *m, PyObject *unused) {
  (void)unused;
  nvm_tune_counters c;
  if (nvp_check(state_of(m), nvm_tune_counters_get(&c, NVM_TUNE_COUNTERS_VERSION))) return NULL;
  return Py_BuildValue("{sL sL sL}", "measured", (long long)c.measured, "timed", (long long)c.timed, "found",
                       (long long)c.found);
}
PyMethodDef nvp_tune_def[] = {
  { "tune_begin", tune_begin, METH_VARARGS, NULL }, { "tune_end", tune_end, METH_NOARGS, NULL },
  { "tune_list", tune_list, METH_NOARGS, NULL }, { "tune_export", tune_export, METH_NOARGS, NULL },
  { "tune_import", tune_import, METH_VARARGS, NULL }, { "tune_clear", tune_clear, METH_NOARGS, NULL },
  { "tune_counters", tune_counters, METH_NOARGS, NULL }, { NULL, NULL, 0, NULL }
};
