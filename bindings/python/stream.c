/* Streams and events of a GPU for nvm.Stream and nvm.Event: addresses as Python ints, with the device first. */
#include "nvp.h"

static nvp_state *state_of(PyObject *module) { return PyModule_GetState(module); }

/* Reads (device, address, address); absent addresses are NULL. 0 or -1. */
typedef struct place { nvp_state *st; nvm_device d; void *a, *b; } place;
static int read_place(PyObject *m, PyObject *args, place *p) {
  PyObject *device, *a = NULL, *b = NULL;
  *p = (place){ .st = state_of(m) };
  if (!PyArg_ParseTuple(args, "O|OO", &device, &a, &b) || nvp_device(p->st, device, &p->d)) return -1;
  p->a = a ? PyLong_AsVoidPtr(a) : NULL;
  p->b = b ? PyLong_AsVoidPtr(b) : NULL;
  return PyErr_Occurred() ? -1 : 0;
}
static PyObject *none(const place *p, int status) { return nvp_check(p->st, status) ? NULL : Py_NewRef(Py_None); }

static PyObject *stream_new(PyObject *m, PyObject *args) { /* (device) */
  place p;
  void *stream;
  return read_place(m, args, &p) || nvp_check(p.st, nvm_stream_new(&stream, p.st->ctx, p.d))
             ? NULL
             : PyLong_FromVoidPtr(stream);
}
static PyObject *stream_free(PyObject *m, PyObject *args) { /* (device, stream) */
  place p;
  return read_place(m, args, &p) ? NULL : none(&p, nvm_stream_free(p.st->ctx, p.d, p.a));
}
static PyObject *stream_wait(PyObject *m, PyObject *args) { /* (device, stream, event) */
  place p;
  return read_place(m, args, &p) ? NULL : none(&p, nvm_stream_wait(p.st->ctx, p.d, p.a, p.b));
}
static PyObject *stream_sync(PyObject *m, PyObject *args) { /* (device, stream) */
  place p;
  int status;
  if (read_place(m, args, &p)) return NULL;
  NVP_UNLOCKED(status, nvm_stream_sync(p.st->ctx, p.d, p.a));
  return none(&p, status);
}
static PyObject *event_new(PyObject *m, PyObject *args) { /* (device) */
  place p;
  void *event;
  return read_place(m, args, &p) || nvp_check(p.st, nvm_event_new(&event, p.st->ctx, p.d)) ? NULL
                                                                                           : PyLong_FromVoidPtr(event);
}
static PyObject *event_free(PyObject *m, PyObject *args) { /* (device, event) */
  place p;
  return read_place(m, args, &p) ? NULL : none(&p, nvm_event_free(p.st->ctx, p.d, p.a));
}
static PyObject *event_record(PyObject *m, PyObject *args) { /* (device, event, stream) */
  place p;
  return read_place(m, args, &p) ? NULL : none(&p, nvm_event_record(p.st->ctx, p.d, p.a, p.b));
}
static PyObject *event_done(PyObject *m, PyObject *args) { /* (device, event) */
  place p;
  int done;
  return read_place(m, args, &p) || nvp_check(p.st, nvm_event_done(&done, p.st->ctx, p.d, p.a)) ? NULL
                                                                                                : PyBool_FromLong(done);
}
static PyObject *event_sync(PyObject *m, PyObject *args) { /* (device, event) */
  place p;
  int status;
  if (read_place(m, args, &p)) return NULL;
  NVP_UNLOCKED(status, nvm_event_sync(p.st->ctx, p.d, p.a));
  return none(&p, status);
}
static PyObject *event_elapsed(PyObject *m, PyObject *args) { /* (device, from, to) */
  place p;
  double ms;
  int status;
  if (read_place(m, args, &p)) return NULL;
  NVP_UNLOCKED(status, nvm_event_elapsed(&ms, p.st->ctx, p.d, p.a, p.b));
  return nvp_check(p.st, status) ? NULL : PyFloat_FromDouble(ms);
}
PyMethodDef nvp_stream_def[] = { { "stream_new", stream_new, METH_VARARGS, NULL },
                                 { "stream_free", stream_free, METH_VARARGS, NULL },
                                 { "stream_wait", stream_wait, METH_VARARGS, NULL },
                                 { "stream_sync", stream_sync, METH_VARARGS, NULL },
                                 { "event_new", event_new, METH_VARARGS, NULL },
                                 { "event_free", event_free, METH_VARARGS, NULL },
                                 { "event_record", event_record, METH_VARARGS, NULL },
                                 { "event_done", event_done, METH_VARARGS, NULL },
                                 { "event_sync", event_sync, METH_VARARGS, NULL },
                                 { "event_elapsed", event_elapsed, METH_VARARGS, NULL },
                                 { NULL, NULL, 0, NULL } };
