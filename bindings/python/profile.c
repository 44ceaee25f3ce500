/* Profiles for nvm.profiler: a capsule holds one. What begins, ends or prints one waits without the GIL. */
#include "nvp.h"

static nvp_state *state_of(PyObject *module) { return PyModule_GetState(module); }
static nvm_profile *profile_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, NULL); }
static void free_profile(PyObject *capsule) { nvm_profile_free(profile_of(capsule)); }

/* profile_new(metrics, rated) */
static PyObject *profile_new(PyObject *m, PyObject *args) {
  nvm_profile_options o = NVM_PROFILE_OPTIONS_INIT;
  nvm_profile *p;
  if (!PyArg_ParseTuple(args, "ip:profile_new", &o.metrics, &o.rated)) return NULL;
  if (nvp_check(state_of(m), nvm_profile_new(&p, &o))) return NULL;
  PyObject *capsule = PyCapsule_New(p, NULL, free_profile);
  if (!capsule) nvm_profile_free(p);
  return capsule;
}
static PyObject *call(PyObject *m, PyObject *capsule, int (*change)(nvm_profile *p)) {
  nvm_profile *p = profile_of(capsule);
  int status;
  if (!p) return NULL;
  NVP_UNLOCKED(status, change(p));
  return nvp_check(state_of(m), status) ? NULL : Py_NewRef(Py_None);
}
static PyObject *profile_begin(PyObject *m, PyObject *capsule) { return call(m, capsule, nvm_profile_begin); }
static PyObject *profile_end(PyObject *m, PyObject *capsule) { return call(m, capsule, nvm_profile_end); }
/* profile_print(profile, format): by its number in nvm_profile_format */
static PyObject *profile_print(PyObject *m, PyObject *args) {
  PyObject *capsule;
  int format, status;
  char *text = NULL;
  if (!PyArg_ParseTuple(args, "Oi:profile_print", &capsule, &format)) return NULL;
  nvm_profile *p = profile_of(capsule);
  if (!p) return NULL;
  NVP_UNLOCKED(status, nvm_profile_print(&text, p, (nvm_profile_format)format));
  return nvp_text(state_of(m), status, text);
}
PyMethodDef nvp_profile_def[] = { { "profile_new", profile_new, METH_VARARGS, NULL },
                                  { "profile_begin", profile_begin, METH_O, NULL },
                                  { "profile_end", profile_end, METH_O, NULL },
                                  { "profile_print", profile_print, METH_VARARGS, NULL },
                                  { NULL, NULL, 0, NULL } };
