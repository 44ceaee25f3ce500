/* Pytrees: what a jitted function takes and returns as nestings of arrays. A signature is a list of words: the nesting
   of tuples, lists, dicts, dataclasses and registered classes (_tree.py), dtype and shape of each array, the kind of
   each Python number, and static values, which compare by type and value. The same words rebuild the arguments around
   placeholders, and the results around arrays. */
#include <string.h>
#include "jit.h"

/* ---- words and the objects that they refer to */
typedef nvp_tree tree;
void nvp_tree_init(tree *t) {
  t->w = t->wi, t->o = t->oi;
  t->n = t->no = 0;
  t->cap = WORDS, t->capo = OBJECTS;
}
void nvp_tree_free(tree *t) {
  while (t->no) Py_DECREF(t->o[--t->no]);
  if (t->w != t->wi) PyMem_Free(t->w);
  if (t->o != t->oi) PyMem_Free(t->o);
}
/* Moves a tree, whose inline parts are in `from`. */
void nvp_tree_move(tree *to, tree *from) {
  *to = *from;
  if (from->w == from->wi) to->w = to->wi;
  if (from->o == from->oi) to->o = to->oi;
  nvp_tree_init(from);
}
/* Doubles a block of items, which starts inside its owner and moves to the heap. */
static void *grow_vector(void *at, void *inside, size_t item, int used, int *cap) {
  void *p = PyMem_Malloc(item * (size_t)*cap * 2);
  if (!p) return PyErr_NoMemory();
  memcpy(p, at, item * (size_t)used);
  if (at != inside) PyMem_Free(at);
  *cap *= 2;
  return p;
}
int nvp_put_word(tree *t, uint64_t w) {
  if (t->n == t->cap) {
    void *p = grow_vector(t->w, t->wi, sizeof *t->w, t->n, &t->cap);
    if (!p) return -1;
    t->w = p;
  }
  t->w[t->n++] = w;
  return 0;
}
int nvp_put_object(tree *t, PyObject *x) {
  if (t->no == t->capo) {
    void *p = grow_vector(t->o, t->oi, sizeof *t->o, t->no, &t->capo);
    if (!p) return -1;
    t->o = p;
  }
  t->o[t->no++] = Py_NewRef(x);
  return 0;
}
uint64_t nvp_hash_words(const tree *t) {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < t->n; i++) h = (h ^ t->w[i]) * 0xff51afd7ed558ccdu, h ^= h >> 32;
  return h;
}

/* ---- static values */
int nvp_flatten_static(tree *t, PyObject *x) {
  Py_hash_t h = PyObject_Hash(x);
  if (h == -1) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(
          PyExc_TypeError,
          "[jit] a static argument must be hashable, and %R is not; a list can be a tuple, and an array is an argument "
          "that is not static",
          (PyObject *)Py_TYPE(x));
    return -1;
  }
  if (PyFloat_CheckExact(x)) h = 0; /* floats compare by their bits; the hash of a NaN is its address */
  double d = PyFloat_CheckExact(x) ? PyFloat_AsDouble(x) : 0;
  uint64_t bits;
  memcpy(&bits, &d, sizeof bits);
  return nvp_put_word(t, IS_STATIC) || nvp_put_word(t, (uint64_t)h ^ bits) || nvp_put_object(t, x) ? -1 : 0;
}

/* ---- a call: its signature and its arrays */
typedef nvp_call call;
void nvp_call_init(call *c, nvp_state *st, int out) {
  c->st = st;
  nvp_tree_init(&c->key);
  c->in = c->ini, c->owned = c->ownedi;
  c->n = c->nview = c->capview = 0;
  c->cap = LEAVES;
  c->view = NULL;
  c->name = NULL;
  c->gives = 0;
  c->out = out;
}
void nvp_call_free(call *c) {
  for (int i = 0; i < c->n; i++)
    if (c->owned[i] & OWNED) nvm_array_unref(c->in[i]);
  for (int i = 0; i < c->nview; i++) PyBuffer_Release(&c->view[i]);
  PyMem_Free(c->view);
  if (c->in != c->ini) PyMem_Free(c->in);
  if (c->owned != c->ownedi) PyMem_Free(c->owned);
  nvp_tree_free(&c->key);
}
int nvp_put_leaf(call *c, nvm_array *a, int owned) { /* takes `a` if owned, even on failure */
  if (c->n == c->cap) {
    int cap = c->cap;
    void *in = grow_vector(c->in, c->ini, sizeof *c->in, c->n, &cap),
         *own = in ? grow_vector(c->owned, c->ownedi, 1, c->n, &c->cap) : NULL;
    if (in) c->in = in;
    if (own) c->owned = own;
    else {
      if (owned & OWNED) nvm_array_unref(a);
      return -1;
    }
  }
  c->in[c->n] = a;
  c->owned[c->n++] = (unsigned char)(owned | (c->gives ? DONATED : 0));
  return 0;
}
int nvp_put_array(call *c, nvm_array *a, int owned) {
  int rank = nvm_rank(a);
  const int64_t *shape = nvm_shape(a);
  if (nvp_put_leaf(c, a, owned)) return -1;
  if (c->out) return nvp_put_word(&c->key, IS_ARRAY);
  if (nvp_put_word(&c->key, IS_ARRAY | (uint64_t)nvm_dtype_of(a) << 8 | (uint64_t)rank << 32)) return -1;
  for (int d = 0; d < rank; d++)
    if (nvp_put_word(&c->key, (uint64_t)shape[d])) return -1;
  return 0;
}
static int put_scalar(call *c, PyObject *x, char kind) {
  union {
    int64_t i;
    double d[2];
    uint8_t b;
  } v = { 0 };
  if (kind == 'b') v.b = x == Py_True;
  else if (kind == 'i') {
    double nearest;
    if ((kind = nvp_integer(x, &v.i, &nearest)) == 'h') v.d[0] = nearest;
  } else if (kind == 'f') v.d[0] = PyFloat_AsDouble(x);
  else if (kind == 'c') v.d[0] = PyComplex_RealAsDouble(x), v.d[1] = PyComplex_ImagAsDouble(x);
  nvm_dtype t = kind == 'b'   ? NVM_BOOL
                : kind == 'i' ? NVM_I64
                : kind == 'u' ? NVM_U64
                : kind == 'c' ? NVM_C128
                              : NVM_F64;
  nvm_array *a = nvm_array_new_host(c->st->ctx, t, 0, NULL, NULL, &v, NULL, NULL);
  if (!a) return nvp_raise(c->st), -1;
  return nvp_put_leaf(c, a, OWNED | VALUE) || nvp_put_word(&c->key, IS_SCALAR | (uint64_t)kind << 8) ? -1 : 0;
}
/* Adds a foreign array: borrowed for the call if it has a buffer, else converted. 1: added, 0: it is no array, -1: an
   exception. */
int nvp_put_foreign(call *c, PyObject *x) {
  nvm_array *a = NULL;
  int owned = 1, got = 0, how = FOREIGN;
  if (PyUnicode_Check(x) || PyBytes_Check(x) || PyByteArray_Check(x) || PyType_Check(x)) return 0;
  if (nvp_has_buffer(c->st, x) && !c->out) {
    if (c->nview == c->capview) {
      int cap = c->capview ? 2 * c->capview : 8;
      Py_buffer *v = PyMem_Realloc(c->view, sizeof *v * (size_t)cap);
      if (!v) return PyErr_NoMemory(), -1;
      c->view = v;
      c->capview = cap;
    }
    if ((got = nvp_borrow(c->st, x, &a, &c->view[c->nview])) > 0) {
      c->nview++;
      how = BORROWED | (PyType_GetSlot(Py_TYPE(x), Py_mp_ass_subscript) ? 0 : VALUE); /* NumPy scalars are values */
    }
  }
  if (!got && !c->out && (got = nvp_borrow_foreign(c->st, x, &a)) < 0) return -1;
  if (!got) got = nvp_operand(c->st, x, &a, &owned);
  return got <= 0 ? got : nvp_put_array(c, a, owned | how) ? -1 : 1;
}

static int flatten_items(call *c, PyObject *x, int tag) {
  int tuple = tag != IS_LIST;
  Py_ssize_t n = tuple ? PyTuple_Size(x) : PyList_Size(x);
  if (nvp_put_word(&c->key, (uint64_t)tag | (uint64_t)n << 32)) return -1;
  if (tag == IS_NAMED && nvp_put_object(&c->key, (PyObject *)Py_TYPE(x))) return -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *item = Py_XNewRef(tuple ? PyTuple_GetItem(x, i) : PyList_GetItem(x, i));
    int bad = !item || nvp_flatten_value(c, item);
    Py_XDECREF(item);
    if (bad) return -1;
  }
  return 0;
}
static int flatten_pair(call *c, PyObject *key, PyObject *value, PyObject *names) {
  int fixed = names ? PySequence_Contains(names, key) : 0;
  if (names) c->name = key;
  Py_hash_t h = PyObject_Hash(key);
  if (fixed < 0 || h == -1 || nvp_put_word(&c->key, (uint64_t)h) || nvp_put_object(&c->key, key)) return -1;
  return fixed ? nvp_flatten_static(&c->key, value) : nvp_flatten_value(c, value);
}
/* names: the static keywords, for the keywords of the call */
int nvp_flatten_dict(call *c, PyObject *x, PyObject *names) {
  PyObject *key, *value;
  Py_ssize_t pos = 0, n = PyDict_Size(x), left = n;
  if (nvp_put_word(&c->key, IS_DICT | (uint64_t)n << 32)) return -1;
  for (; PyDict_Next(x, &pos, &key, &value) && left; left--) {
    Py_INCREF(key); /* hashing, converting and comparing run Python code, which may remove the pair from the dict */
    Py_INCREF(value);
    int bad = flatten_pair(c, key, value, names);
    Py_DECREF(key);
    Py_DECREF(value);
    if (bad) return -1;
    if (PyDict_Size(x) != n) break;
  }
  if (left) PyErr_SetString(PyExc_RuntimeError, "[jit] a dict changed while it was read as an argument");
  return left ? -1 : 0;
}
/* Static data beside the children of a node; of a result it may be anything. */
static int flatten_data(call *c, PyObject *x) {
  if (!c->out) return nvp_flatten_static(&c->key, x);
  return nvp_put_word(&c->key, IS_STATIC) || nvp_put_word(&c->key, 0) || nvp_put_object(&c->key, x) ? -1 : 0;
}
/* Is x an instance of a registered class, or of a dataclass? -1: an exception. */
static int is_node(call *c, PyObject *x) {
  PyObject *type = (PyObject *)Py_TYPE(x), *nodes = nvp_hook(c->st, "tree_nodes");
  int known = nodes ? PyDict_Contains(nodes, type) : -1;
  return known ? known : PyObject_HasAttr(type, c->st->s_dataclass);
}
static int flatten_children(call *c, PyObject *x, PyObject *data, PyObject *children) {
  Py_ssize_t n = PyTuple_Size(children);
  if (nvp_put_word(&c->key, IS_NODE | (uint64_t)n << 32) || nvp_put_object(&c->key, (PyObject *)Py_TYPE(x)) ||
      flatten_data(c, data))
    return -1;
  for (Py_ssize_t i = 0; i < n; i++)
    if (nvp_flatten_value(c, PyTuple_GetItem(children, i))) return -1;
  return 0;
}
static int flatten_node(call *c, PyObject *x) {
  PyObject *f = nvp_hook(c->st, "tree_open"), *parts = f ? PyObject_CallFunctionObjArgs(f, x, NULL) : NULL;
  PyObject *data = parts ? PyTuple_GetItem(parts, 0) : NULL, *children = data ? PyTuple_GetItem(parts, 1) : NULL;
  int bad = !children || flatten_children(c, x, data, children);
  Py_XDECREF(parts);
  return bad ? -1 : 0;
}
static int refuse_argument(call *c, PyObject *x) {
  PyObject *type = (PyObject *)Py_TYPE(x);
  if (c->name)
    return PyErr_Format(
               PyExc_TypeError,
               "[jit] argument '%S' holds %R, which is no array or number; name it in "
               "static_argnames=(...) "
               "if it is a constant of the function; nvm.register_pytree, or a dataclass, lets nvm look into it",
               c->name, type),
           -1;
  return PyErr_Format(PyExc_TypeError,
                      "[jit] argument %d holds %R, which is no array or number; name it in "
                      "static_argnums=(%d,) "
                      "if it is a constant of the function; nvm.register_pytree, or a dataclass, lets nvm look into it",
                      c->at, type, c->at),
         -1;
}
static int is_named(PyObject *x) { return !PyTuple_CheckExact(x) && PyObject_HasAttrString(x, "_fields"); }
int nvp_flatten_value(call *c, PyObject *x) {
  if (Py_IS_TYPE(x, c->st->array)) return nvp_put_array(c, nvm_array_ref(((nvp_array *)x)->h), 1);
  char kind = (char)nvp_is_scalar(x);
  if (kind) return c->out ? nvp_flatten_static(&c->key, x) : put_scalar(c, x, kind);
  if (x == Py_None) return nvp_put_word(&c->key, IS_NONE);
  if (Py_EnterRecursiveCall(" in the arguments of a jitted function")) return -1;
  int plain = PyTuple_CheckExact(x) || PyList_CheckExact(x) || PyDict_CheckExact(x) || nvp_has_buffer(c->st, x);
  int node = plain ? 0 : is_node(c, x), status;
  if (node) status = node < 0 ? -1 : flatten_node(c, x);
  else if (PyTuple_Check(x)) status = flatten_items(c, x, is_named(x) ? IS_NAMED : IS_TUPLE);
  else if (PyList_Check(x)) status = flatten_items(c, x, IS_LIST);
  else if (PyDict_Check(x)) status = nvp_flatten_dict(c, x, NULL);
  else {
    status = nvp_put_foreign(c, x);
    if (!status) status = c->out ? flatten_data(c, x) : refuse_argument(c, x);
    status = status < 0 ? -1 : 0;
  }
  Py_LeaveRecursiveCall();
  return status;
}

/* ---- building values from words */
typedef nvp_builder builder;
static PyObject *build_leaf(builder *b, uint64_t w) {
  if (b->out) {
    nvm_array *h = b->a[b->n];
    b->a[b->n++] = NULL;
    return nvp_wrap(b->st, h);
  }
  int rank = (int)(w >> 32);
  nvm_array *p = (w & 255) == IS_SCALAR
                     ? nvm_placeholder_scalar(b->st->ctx, (char)(w >> 8), b->with[b->n])
                     : nvm_placeholder(b->st->ctx, (nvm_dtype)(w >> 8 & 255), rank, (const int64_t *)b->t->w + b->at);
  if (!p) return nvp_raise(b->st);
  if ((w & 255) == IS_ARRAY) b->at += rank;
  int i = b->n++, same = b->same[i];
  b->a[i] = p;
  /* the function gets a snapshot, since it may write to it; the parameter stays */
  b->made[i] = same < i ? Py_NewRef(b->made[same]) : nvp_wrap(b->st, nvm_snapshot(p));
  return Py_XNewRef(b->made[i]);
}
static PyObject *build_items(builder *b, uint64_t w) {
  Py_ssize_t n = (Py_ssize_t)(w >> 32);
  PyObject *type = (w & 255) == IS_NAMED ? b->t->o[b->ao++] : NULL;
  int list = (w & 255) == IS_LIST;
  PyObject *r = list ? PyList_New(n) : PyTuple_New(n);
  for (Py_ssize_t i = 0; r && i < n; i++) {
    PyObject *x = nvp_build_value(b);
    if (!x || (list ? PyList_SetItem(r, i, x) : PyTuple_SetItem(r, i, x))) Py_CLEAR(r);
  }
  if (!r || !type) return r;
  PyObject *named = PyObject_CallObject(type, r);
  Py_DECREF(r);
  return named;
}
static PyObject *build_node(builder *b, uint64_t w) {
  PyObject *type = b->t->o[b->ao++], *f = nvp_hook(b->st, "tree_close"), *data = f ? nvp_build_value(b) : NULL,
           *children = data ? build_items(b, IS_TUPLE | w >> 32 << 32) : NULL,
           *r = children ? PyObject_CallFunctionObjArgs(f, type, data, children, NULL) : NULL;
  Py_XDECREF(data), Py_XDECREF(children);
  return r;
}
static PyObject *build_dict(builder *b, uint64_t w) {
  PyObject *r = PyDict_New();
  for (uint64_t i = 0; r && i < w >> 32; i++) {
    PyObject *key = b->t->o[b->ao++];
    b->at++; /* skips the hash */
    PyObject *x = nvp_build_value(b);
    if (!x || PyDict_SetItem(r, key, x)) Py_CLEAR(r);
    Py_XDECREF(x);
  }
  return r;
}
PyObject *nvp_build_value(builder *b) {
  uint64_t w = b->t->w[b->at++];
  switch (w & 255) {
  case IS_ARRAY: case IS_SCALAR: return build_leaf(b, w);
  case IS_NONE: return Py_NewRef(Py_None);
  case IS_STATIC: return b->at++, Py_NewRef(b->t->o[b->ao++]);
  case IS_DICT: return build_dict(b, w);
  case IS_NODE: return build_node(b, w);
  default: return build_items(b, w);
  }
}
