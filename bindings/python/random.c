/* Generators of random numbers for nvm.random: capsules over the library's, whose interface is nvm/random.py. */
#include "nvm/random.h"
#include "nvp.h"

static nvp_state *state_of(PyObject *module) { return PyModule_GetState(module); }

static void free_generator(PyObject *capsule) { nvm_generator_free(PyCapsule_GetPointer(capsule, NULL)); }
static PyObject *wrap_generator(PyObject *m, int status, nvm_generator *g) {
  if (nvp_check(state_of(m), status)) return NULL;
  PyObject *capsule = PyCapsule_New(g, NULL, free_generator);
  if (!capsule) nvm_generator_free(g);
  return capsule;
}
static nvm_generator *generator_in(PyObject *capsule) { return PyCapsule_GetPointer(capsule, NULL); }

/* generator_new(seed): a 64-bit seed */
static PyObject *generator_new(PyObject *m, PyObject *seed) {
  uint64_t s = PyLong_AsUnsignedLongLong(seed);
  if (PyErr_Occurred()) return NULL;
  nvm_generator *g = NULL;
  int status = nvm_generator_new(&g, state_of(m)->ctx, s);
  return wrap_generator(m, status, g);
}
static PyObject *generator_spawn(PyObject *m, PyObject *of) {
  nvm_generator *g = generator_in(of), *child = NULL;
  if (!g) return NULL;
  int status = nvm_generator_spawn(&child, g);
  return wrap_generator(m, status, child);
}
/* generator_jump(generator, by) */
static PyObject *generator_jump(PyObject *m, PyObject *args) {
  PyObject *of;
  unsigned long long by;
  if (!PyArg_ParseTuple(args, "OK:jumped", &of, &by)) return NULL;
  nvm_generator *g = generator_in(of), *there = NULL;
  if (!g) return NULL;
  int status = nvm_generator_jump(&there, g, by);
  return wrap_generator(m, status, there);
}
/* generator_state(generator): (key, counter, stream, spawned) */
static PyObject *generator_state(PyObject *m, PyObject *of) {
  nvm_generator *g = generator_in(of);
  nvm_generator_state s;
  if (!g || nvp_check(state_of(m), nvm_generator_state_get(&s, g))) return NULL;
  return Py_BuildValue("KKKK", (unsigned long long)s.key, (unsigned long long)s.counter, (unsigned long long)s.stream,
                       (unsigned long long)s.spawned);
}
/* generator_set_state(generator, (key, counter, stream, spawned)) */
static PyObject *generator_set_state(PyObject *m, PyObject *args) {
  PyObject *of;
  unsigned long long key, counter, stream, spawned;
  if (!PyArg_ParseTuple(args, "O(KKKK)", &of, &key, &counter, &stream, &spawned)) return NULL;
  nvm_generator *g = generator_in(of);
  nvm_generator_state s = { key, counter, stream, spawned };
  return !g || nvp_check(state_of(m), nvm_generator_state_set(g, &s)) ? NULL : Py_NewRef(Py_None);
}

/* The shape that `size` means: None, an integer, or a sequence of them. The rank, -1 with an exception. */
static int shape_from(PyObject *size, int64_t *shape) {
  if (size == Py_None) return 0;
  if (PyIndex_Check(size)) {
    shape[0] = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    return PyErr_Occurred() ? -1 : 1;
  }
  PyObject *items = PySequence_Tuple(size);
  if (!items) return -1;
  Py_ssize_t n = PyTuple_Size(items);
  if (n > NVM_MAX_RANK) PyErr_Format(PyExc_ValueError, "[random] size has more than %d dimensions", NVM_MAX_RANK);
  for (Py_ssize_t d = 0; d < n && !PyErr_Occurred(); d++)
    shape[d] = PyNumber_AsSsize_t(PyTuple_GetItem(items, d), PyExc_OverflowError);
  Py_DECREF(items);
  return PyErr_Occurred() ? -1 : (int)n;
}
/* generator_draw(generator, what, dtype, size, parameters ...) */
static PyObject *generator_draw(PyObject *m, PyObject *args) {
  PyObject *of, *dtype, *size, *given[3] = { NULL };
  nvm_array *parameter[3] = { NULL };
  int what;
  int64_t shape[NVM_MAX_RANK];
  nvm_dtype t;
  if (!PyArg_ParseTuple(args, "OiOO|OOO", &of, &what, &dtype, &size, &given[0], &given[1], &given[2]) ||
      nvp_dtype_from(state_of(m), dtype, &t))
    return NULL;
  nvm_generator *g = generator_in(of);
  int rank = g ? shape_from(size, shape) : -1;
  for (int i = 0; i < 3 && given[i]; i++) {
    if (!nvp_is_array(given[i])) return PyErr_Format(PyExc_TypeError, "[random] a parameter is no nvm.Array");
    parameter[i] = ((nvp_array *)given[i])->h;
  }
  nvm_array *const *of_draw = given[0] ? parameter : NULL;
  return rank < 0 ? NULL : nvp_wrap(state_of(m), nvm_generator_draw(g, (nvm_draw)what, t, of_draw, rank, shape));
}
PyMethodDef nvp_random_def[] = { { "generator_new", generator_new, METH_O, NULL },
                                 { "generator_spawn", generator_spawn, METH_O, NULL },
                                 { "generator_jump", generator_jump, METH_VARARGS, NULL },
                                 { "generator_state", generator_state, METH_O, NULL },
                                 { "generator_set_state", generator_set_state, METH_VARARGS, NULL },
                                 { "generator_draw", generator_draw, METH_VARARGS, NULL },
                                 { NULL, NULL, 0, NULL } };
