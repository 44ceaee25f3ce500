/* Evaluations that a thread other than the caller's makes, for nvm.async_eval and `await`: a capsule holds the arrays
   as they are, the streams of the caller, and the flag that cancels it. Never makes a thread: the package's Python half
   does. */
#include <stdlib.h>
#include "nvp.h"

static nvp_state *state_of(PyObject *module) { return PyModule_GetState(module); }

typedef struct placed { nvm_device d; void *stream; } placed; /* the caller's stream on a device */
typedef struct evaluation {
  atomic_int cancelled;
  int n, nplaced;
  nvm_array **held;
  placed *at;
} evaluation;

static void free_evaluation(PyObject *capsule) {
  evaluation *e = PyCapsule_GetPointer(capsule, NULL);
  while (e->n) nvm_array_unref(e->held[--e->n]);
  free(e->held);
  free(e->at);
  free(e);
  nvp_drain();
}

/* Notes the caller's stream on the device of an array, if it is a GPU that is not noted yet. A status. */
static int note_stream(nvp_state *st, evaluation *e, nvm_device d) {
  for (int i = 0; i < e->nplaced; i++)
    if (e->at[i].d == d) return NVM_OK;
  if (d == NVM_DEVICE_CPU) return NVM_OK;
  e->at[e->nplaced].d = d;
  return nvm_stream_get(&e->at[e->nplaced++].stream, st->ctx, d);
}
static int hold_all(nvp_state *st, evaluation *e, const nvp_gathered *g) {
  e->held = malloc(sizeof *e->held * (size_t)(g->n + 1));
  e->at = malloc(sizeof *e->at * (size_t)(g->n + 1));
  if (!e->held || !e->at) return PyErr_NoMemory(), -1;
  for (; e->n < g->n; e->n++) {
    if (!(e->held[e->n] = nvm_hold(g->a[e->n]))) return nvp_check(st, nvm_last_status());
    if (note_stream(st, e, nvm_device_of(e->held[e->n]))) return e->n++, nvp_check(st, nvm_last_status());
  }
  return 0;
}
/* The per-thread default stream is another one in another thread: what goes there is launched by this one. */
static int launch_here(nvp_state *st, evaluation *e) {
  int status = NVM_OK, here = 0;
  for (int i = 0; i < e->nplaced; i++) here |= e->at[i].stream == (void *)2;
  if (!here) return 0;
  e->nplaced = 0;
  NVP_UNLOCKED(status, nvm_eval(e->held, e->n));
  return nvp_ran(st, status);
}
/* evaluation_new(arrays): a capsule */
static PyObject *evaluation_new(PyObject *m, PyObject *arrays) {
  nvp_gathered g = { .st = state_of(m) };
  evaluation *e = calloc(1, sizeof *e);
  PyObject *capsule = e ? PyCapsule_New(e, NULL, free_evaluation) : PyErr_NoMemory();
  if (!capsule) return free(e), NULL;
  if (nvp_gather(&g, arrays) || hold_all(g.st, e, &g) || launch_here(g.st, e)) Py_CLEAR(capsule);
  nvp_gather_free(&g);
  return capsule;
}

/* Waits, in the streams of the caller of evaluation_new, where work of this thread never went before. */
static int wait_in_streams(nvp_state *st, evaluation *e) {
  int status = NVM_OK, set = 0;
  for (; set < e->nplaced && !status; set++) status = nvm_stream_set(st->ctx, e->at[set].d, e->at[set].stream);
  nvp_listen_to(&e->cancelled);
  if (!status) status = nvm_wait(e->held, e->n);
  nvp_listen_to(NULL);
  while (set) nvm_stream_set(st->ctx, e->at[--set].d, NULL);
  return status;
}
/* evaluation_run(evaluation): evaluates, and waits until the elements are in memory. KeyboardInterrupt: it was
   cancelled. */
static PyObject *evaluation_run(PyObject *m, PyObject *capsule) {
  nvp_state *st = state_of(m);
  evaluation *e = PyCapsule_GetPointer(capsule, NULL);
  int status;
  if (!e) return NULL;
  Py_BEGIN_ALLOW_THREADS status = wait_in_streams(st, e);
  Py_END_ALLOW_THREADS return nvp_ran(st, status) ? NULL : Py_NewRef(Py_None);
}
static PyObject *evaluation_cancel(PyObject *m, PyObject *capsule) {
  (void)m;
  evaluation *e = PyCapsule_GetPointer(capsule, NULL);
  if (!e) return NULL;
  atomic_store(&e->cancelled, 1);
  return Py_NewRef(Py_None);
}

PyObject *nvp_ready(PyObject *self, PyObject *unused) {
  (void)unused;
  nvp_array *a = (nvp_array *)self;
  int ready = 0;
  return nvp_check(a->st, nvm_is_ready(&ready, a->h)) ? NULL : PyBool_FromLong(ready);
}

PyMethodDef nvp_evaluation_def[] = { { "evaluation_new", evaluation_new, METH_O, NULL },
                                     { "evaluation_run", evaluation_run, METH_O, NULL },
                                     { "evaluation_cancel", evaluation_cancel, METH_O, NULL },
                                     { NULL, NULL, 0, NULL } };
