/* Tuning sessions and records for nvm.auto_tune and `python -m nvm tune`. The thread that measures stores its progress
   where Python reads it; it never takes the GIL, since it may hold locks that a thread with the GIL waits for. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "nvp.h"

static nvp_state *state_of(PyObject *module) { return PyModule_GetState(module); }

typedef struct latest {
  pthread_mutex_t lock;
  long long n; /* number of reports so far */
  int step, steps;
  double part;
  char what[120];
} latest;

static void report_progress(void *user, const nvm_tune_progress *p) {
  latest *l = user;
  pthread_mutex_lock(&l->lock);
  l->n++;
  l->step = p->step;
  l->steps = p->steps;
  l->part = p->part;
  strncpy(l->what, p->what, sizeof l->what - 1);
  pthread_mutex_unlock(&l->lock);
}
static void free_session(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, NULL)); }

/* tune_begin(seconds, cold): returns the capsule that tune_progress reads; it must be kept until tune_end has returned
   */
static PyObject *tune_begin(PyObject *m, PyObject *args) {
  nvm_tune_options o = NVM_TUNE_OPTIONS_INIT;
  if (!PyArg_ParseTuple(args, "dp:tune_begin", &o.seconds, &o.cold)) return NULL;
  latest *l = calloc(1, sizeof *l);
  PyObject *capsule = l ? PyCapsule_New(l, NULL, free_session) : PyErr_NoMemory();
  if (!capsule) return free(l), NULL;
  pthread_mutex_init(&l->lock, NULL);
  o.progress = report_progress;
  o.user = l;
  if (nvp_check(state_of(m), nvm_tune_begin(&o))) Py_CLEAR(capsule);
  return capsule;
}
/* Returns (reports so far, step, steps, what, part). */
static PyObject *tune_progress(PyObject *m, PyObject *capsule) {
  (void)m;
  latest *l = PyCapsule_GetPointer(capsule, NULL), now;
  if (!l) return NULL;
  pthread_mutex_lock(&l->lock);
  now = *l;
  pthread_mutex_unlock(&l->lock);
  return Py_BuildValue("(Liisd)", now.n, now.step, now.steps, now.what, now.part);
}
static PyObject *tune_end(PyObject *m, PyObject *unused) {
  (void)unused;
  int status;
  Py_BEGIN_ALLOW_THREADS /* another thread may be measuring and reporting progress */
      status = nvm_tune_end();
  Py_END_ALLOW_THREADS return nvp_check(state_of(m), status) ? NULL : Py_NewRef(Py_None);
}
static PyObject *text_from(PyObject *m, int (*get)(char **text)) {
  char *text = NULL;
  int status = get(&text);
  return nvp_text(state_of(m), status, text);
}
static PyObject *tune_list(PyObject *m, PyObject *unused) {
  (void)unused;
  return text_from(m, nvm_tune_list);
}
static PyObject *tune_export(PyObject *m, PyObject *unused) {
  (void)unused;
  return text_from(m, nvm_tune_export);
}
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
/* Returns (1, the file that stores the records), or (0, why only this process has them). */
static PyObject *tune_where(PyObject *m, PyObject *unused) {
  (void)unused;
  char *text;
  int kept;
  if (nvp_check(state_of(m), nvm_tune_where(&text, &kept))) return NULL;
  PyObject *r = Py_BuildValue("(iN)", kept, PyUnicode_DecodeFSDefault(text));
  nvm_free(text);
  return r;
}
static PyObject *tune_counters(PyObject *m, PyObject *unused) {
  (void)unused;
  nvm_tune_counters c;
  if (nvp_check(state_of(m), nvm_tune_counters_get(&c, NVM_TUNE_COUNTERS_VERSION))) return NULL;
  return Py_BuildValue("{sL sL sL}", "measured", (long long)c.measured, "timed", (long long)c.timed, "found",
                       (long long)c.found);
}
PyMethodDef nvp_tune_def[] = {
  { "tune_begin", tune_begin, METH_VARARGS, NULL },      { "tune_end", tune_end, METH_NOARGS, NULL },
  { "tune_progress", tune_progress, METH_O, NULL },      { "tune_list", tune_list, METH_NOARGS, NULL },
  { "tune_export", tune_export, METH_NOARGS, NULL },     { "tune_import", tune_import, METH_VARARGS, NULL },
  { "tune_clear", tune_clear, METH_NOARGS, NULL },       { "tune_where", tune_where, METH_NOARGS, NULL },
  { "tune_counters", tune_counters, METH_NOARGS, NULL }, { NULL, NULL, 0, NULL }
};
