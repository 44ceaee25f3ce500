/* Loops by hand for the Python half (_loops.py), which knows the nesting of carries: here they are flat lists of
   arrays. While the functions of a loop are traced, this thread counts as tracing. */
#include <string.h>
#include "nvm/loop.h"
#include "nvp.h"

static _Thread_local int bodies;
int nvp_in_body(void) { return bodies > 0; }
void nvp_enter_body(int by) { bodies += by; }

typedef struct loop {
  nvp_state *st;
  nvm_loop *l;
  int traces;      /* its functions are being traced */
  PyObject *names; /* counted; holds the texts */
  const char **name;
} loop;
static const char *const title = "nvm.loop";

static void end_tracing(loop *p) {
  nvp_enter_body(-p->traces);
  p->traces = 0;
}
static void loop_free(loop *p) {
  end_tracing(p);
  nvm_loop_free(p->l);
  p->l = NULL;
}
static void destroy(PyObject *capsule) {
  loop *p = PyCapsule_GetPointer(capsule, title);
  if (!p) return;
  loop_free(p);
  Py_XDECREF(p->names);
  PyMem_Free(p->name);
  PyMem_Free(p);
}
static loop *loop_of(PyObject *capsule) {
  loop *p = PyCapsule_GetPointer(capsule, title);
  if (p && !p->l) PyErr_SetString(PyExc_RuntimeError, "the loop has ended");
  return p && p->l ? p : NULL;
}

/* ---- lists of operands */
typedef struct operands { nvm_array **at; int *owned, n; } operands;
static void release_operands(operands *o) {
  for (int i = 0; i < o->n; i++)
    if (o->owned[i]) nvm_array_unref(o->at[i]);
  PyMem_Free(o->at), PyMem_Free(o->owned);
}
static int read_operand(nvp_state *st, operands *o, PyObject *x) {
  int got = nvp_operand(st, x, &o->at[o->n], &o->owned[o->n]);
  if (!got) PyErr_Format(PyExc_TypeError, "%R is no array and no number", x);
  o->n += got > 0;
  return got > 0 ? 0 : -1;
}
/* Reads a tuple of arrays and numbers; None is an empty one. */
static int read_operands(nvp_state *st, operands *o, PyObject *x) {
  Py_ssize_t n = x == Py_None ? 0 : PyTuple_Size(x);
  *o = (operands){ PyMem_Calloc((size_t)n + 1, sizeof *o->at), PyMem_Calloc((size_t)n + 1, sizeof *o->owned), 0 };
  int bad = n < 0 || !o->at || !o->owned;
  if (bad && !PyErr_Occurred()) PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < n && !bad; i++) bad = read_operand(st, o, PyTuple_GetItem(x, i));
  if (bad) release_operands(o);
  return bad ? -1 : 0;
}

/* ---- opening */
static int read_names(loop *p, PyObject *names) {
  Py_ssize_t n = PyTuple_Size(names);
  p->names = Py_NewRef(names);
  if (!(p->name = PyMem_Calloc((size_t)n + 1, sizeof *p->name))) return PyErr_NoMemory(), -1;
  for (Py_ssize_t i = 0; i < n; i++)
    if (!(p->name[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL))) return -1;
  return 0;
}
static int open_loop(loop *p, nvm_loop_options *o, const operands *heads, const operands *init, const operands *xs) {
  if (o->kind == NVM_COND) o->pred = heads->at[0];
  if (o->kind == NVM_FORI_LOOP) o->lower = heads->at[0], o->upper = heads->at[1];
  o->xs = xs->at;
  o->nx = xs->n;
  if (nvp_check(p->st, nvm_loop_open(&p->l, p->st->ctx, o, init->at, init->n))) return -1;
  nvp_enter_body(p->traces = 1);
  return 0;
}
/* loop_open(kind, heads, init, names, xs, length, reverse) */
static PyObject *mod_open(PyObject *m, PyObject *args) {
  int kind, reverse, bad;
  long long length;
  PyObject *heads, *init, *names, *xs;
  if (!PyArg_ParseTuple(args, "iO!O!O!O!Lp", &kind, &PyTuple_Type, &heads, &PyTuple_Type, &init, &PyTuple_Type, &names,
                        &PyTuple_Type, &xs, &length, &reverse))
    return NULL;
  loop *p = PyMem_Calloc(1, sizeof *p);
  if (!p) return PyErr_NoMemory();
  p->st = PyModule_GetState(m);
  PyObject *capsule = PyCapsule_New(p, title, destroy);
  if (!capsule) return PyMem_Free(p), NULL;
  operands h = { 0 }, c = { 0 }, x = { 0 };
  if (!(bad = read_names(p, names)) && !(bad = read_operands(p->st, &h, heads))) {
    if (!(bad = read_operands(p->st, &c, init))) {
      if (!(bad = read_operands(p->st, &x, xs))) {
        nvm_loop_options o = { .version = NVM_LOOP_OPTIONS_VERSION,
                               .kind = (nvm_loop_kind)kind,
                               .length = length,
                               .reverse = reverse,
                               .names = p->name };
        bad = open_loop(p, &o, &h, &c, &x);
        release_operands(&x);
      }
      release_operands(&c);
    }
    release_operands(&h);
  }
  if (bad) Py_CLEAR(capsule);
  return capsule;
}

/* ---- the functions */
static PyObject *mod_inputs(PyObject *m, PyObject *capsule) {
  (void)m;
  loop *p = loop_of(capsule);
  nvm_array *const *in;
  int n;
  if (!p || nvp_check(p->st, nvm_loop_inputs(&in, &n, p->l))) return NULL;
  PyObject *r = PyTuple_New(n);
  for (int i = 0; r && i < n; i++) {
    PyObject *x = nvp_wrap(p->st, nvm_array_ref(in[i]));
    if (!x || PyTuple_SetItem(r, i, x)) Py_CLEAR(r);
  }
  return r;
}
static PyObject *mod_outputs(PyObject *m, PyObject *args) {
  (void)m;
  PyObject *capsule, *outs;
  int last;
  if (!PyArg_ParseTuple(args, "OO!p", &capsule, &PyTuple_Type, &outs, &last)) return NULL;
  loop *p = loop_of(capsule);
  operands o;
  if (!p || read_operands(p->st, &o, outs)) return NULL;
  int bad = nvp_check(p->st, nvm_loop_outputs(p->l, o.at, o.n));
  release_operands(&o);
  if (last || bad) end_tracing(p);
  return bad ? NULL : Py_NewRef(Py_None);
}
static PyObject *mod_close(PyObject *m, PyObject *capsule) {
  (void)m;
  loop *p = loop_of(capsule);
  int n = p ? nvm_loop_results(p->l) : 0, status;
  nvm_array **out = p ? PyMem_Calloc((size_t)n + 1, sizeof *out) : NULL;
  if (!out) return p ? PyErr_NoMemory() : NULL;
  NVP_UNLOCKED(status, nvm_loop_close(p->l, out));
  PyObject *r = nvp_ran(p->st, status) ? NULL : PyTuple_New(n);
  for (int i = 0; i < n; i++) {
    PyObject *x = r ? nvp_wrap(p->st, out[i]) : (nvm_array_unref(out[i]), NULL);
    if (r && (!x || PyTuple_SetItem(r, i, x))) Py_CLEAR(r);
  }
  PyMem_Free(out);
  nvp_drain();
  return r;
}
static PyObject *mod_free(PyObject *m, PyObject *capsule) {
  (void)m;
  loop *p = PyCapsule_GetPointer(capsule, title);
  if (!p) return NULL;
  loop_free(p);
  nvp_drain();
  return Py_NewRef(Py_None);
}
PyMethodDef nvp_loop_def[] = { { "loop_open", mod_open, METH_VARARGS, NULL },
                               { "loop_inputs", mod_inputs, METH_O, NULL },
                               { "loop_outputs", mod_outputs, METH_VARARGS, NULL },
                               { "loop_close", mod_close, METH_O, NULL },
                               { "loop_free", mod_free, METH_O, NULL },
                               { NULL, NULL, 0, NULL } };
