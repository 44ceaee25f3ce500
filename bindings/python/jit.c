/* nvm.jit: traces a function once for each signature of its arguments, then replays it. A signature is a list of words:
   the nesting of tuples, lists and dicts, dtype and shape of each array, the kind of each Python number, and static
   arguments, which compare by type and value. The same words rebuild the arguments around placeholders, and the results
   around arrays. A call with a known signature never runs the function itself. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "jit.h"

enum { IS_ARRAY, IS_SCALAR, IS_NONE, IS_STATIC, IS_TUPLE, IS_LIST, IS_DICT, IS_NAMED };
/* the kind is the low byte of a word; its operands are in the upper bytes */
enum { KEEP = 512, BUCKETS = 64 };

static _Thread_local int tracing;
int nvp_jitting(void) { return tracing; }
int nvp_tracing(void) { return tracing || nvp_in_body(); }

/* ---- words and the objects that they refer to */
typedef nvp_tree tree;
static void tree_init(tree *t) {
  t->w = t->wi, t->o = t->oi;
  t->n = t->no = 0;
  t->cap = WORDS, t->capo = OBJECTS;
}
static void tree_free(tree *t) {
  while (t->no) Py_DECREF(t->o[--t->no]);
  if (t->w != t->wi) PyMem_Free(t->w);
  if (t->o != t->oi) PyMem_Free(t->o);
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
static int put_word(tree *t, uint64_t w) {
  if (t->n == t->cap) {
    void *p = grow_vector(t->w, t->wi, sizeof *t->w, t->n, &t->cap);
    if (!p) return -1;
    t->w = p;
  }
  t->w[t->n++] = w;
  return 0;
}
static int put_object(tree *t, PyObject *x) {
  if (t->no == t->capo) {
    void *p = grow_vector(t->o, t->oi, sizeof *t->o, t->no, &t->capo);
    if (!p) return -1;
    t->o = p;
  }
  t->o[t->no++] = Py_NewRef(x);
  return 0;
}
static uint64_t hash_words(const tree *t) {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < t->n; i++) h = (h ^ t->w[i]) * 0xff51afd7ed558ccdu, h ^= h >> 32;
  return h;
}

/* ---- static values */
static int flatten_static(tree *t, PyObject *x) {
  Py_hash_t h = PyObject_Hash(x);
  if (h == -1) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "[jit] a static argument must be hashable, and %R is not", (PyObject *)Py_TYPE(x));
    return -1;
  }
  if (PyFloat_CheckExact(x)) h = 0; /* floats compare by their bits; the hash of a NaN is its address */
  double d = PyFloat_CheckExact(x) ? PyFloat_AsDouble(x) : 0;
  uint64_t bits;
  memcpy(&bits, &d, sizeof bits);
  return put_word(t, IS_STATIC) || put_word(t, (uint64_t)h ^ bits) || put_object(t, x) ? -1 : 0;
}

/* ---- a call: its signature and its arrays */
typedef nvp_call call;
static void call_init(call *c, nvp_state *st, int out) {
  c->st = st;
  tree_init(&c->key);
  c->in = c->ini, c->owned = c->ownedi;
  c->n = c->nview = c->capview = 0;
  c->cap = LEAVES;
  c->view = NULL;
  c->name = NULL;
  c->gives = 0;
  c->out = out;
}
static void call_free(call *c) {
  for (int i = 0; i < c->n; i++)
    if (c->owned[i] & OWNED) nvm_array_unref(c->in[i]);
  for (int i = 0; i < c->nview; i++) PyBuffer_Release(&c->view[i]);
  PyMem_Free(c->view);
  if (c->in != c->ini) PyMem_Free(c->in);
  if (c->owned != c->ownedi) PyMem_Free(c->owned);
  tree_free(&c->key);
}
static int put_leaf(call *c, nvm_array *a, int owned) { /* takes `a` if owned, even on failure */
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
static int put_array(call *c, nvm_array *a, int owned) {
  int rank = nvm_rank(a);
  const int64_t *shape = nvm_shape(a);
  if (put_leaf(c, a, owned)) return -1;
  if (c->out) return put_word(&c->key, IS_ARRAY);
  if (put_word(&c->key, IS_ARRAY | (uint64_t)nvm_dtype_of(a) << 8 | (uint64_t)rank << 32)) return -1;
  for (int d = 0; d < rank; d++)
    if (put_word(&c->key, (uint64_t)shape[d])) return -1;
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
  return put_leaf(c, a, OWNED | VALUE) || put_word(&c->key, IS_SCALAR | (uint64_t)kind << 8) ? -1 : 0;
}
/* Adds a foreign array: borrowed for the call if it has a buffer, else converted. 1: added, 0: it is no array, -1: an
   exception. */
static int put_foreign(call *c, PyObject *x) {
  nvm_array *a = NULL;
  int owned = 1, got = 0, how = FOREIGN;
  if (PyUnicode_Check(x) || PyBytes_Check(x) || PyByteArray_Check(x) || PyType_Check(x)) return 0;
  if (nvp_has_buffer(x) && !c->out) {
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
  return got <= 0 ? got : put_array(c, a, owned | how) ? -1 : 1;
}

static int flatten_value(call *c, PyObject *x);
static int flatten_items(call *c, PyObject *x, int tag) {
  int tuple = tag != IS_LIST;
  Py_ssize_t n = tuple ? PyTuple_Size(x) : PyList_Size(x);
  if (put_word(&c->key, (uint64_t)tag | (uint64_t)n << 32)) return -1;
  if (tag == IS_NAMED && put_object(&c->key, (PyObject *)Py_TYPE(x))) return -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *item = Py_XNewRef(tuple ? PyTuple_GetItem(x, i) : PyList_GetItem(x, i));
    int bad = !item || flatten_value(c, item);
    Py_XDECREF(item);
    if (bad) return -1;
  }
  return 0;
}
static int flatten_pair(call *c, PyObject *key, PyObject *value, PyObject *names) {
  int fixed = names ? PySequence_Contains(names, key) : 0;
  if (names) c->name = key;
  Py_hash_t h = PyObject_Hash(key);
  if (fixed < 0 || h == -1 || put_word(&c->key, (uint64_t)h) || put_object(&c->key, key)) return -1;
  return fixed ? flatten_static(&c->key, value) : flatten_value(c, value);
}
/* names: the static keywords, for the keywords of the call */
static int flatten_dict(call *c, PyObject *x, PyObject *names) {
  PyObject *key, *value;
  Py_ssize_t pos = 0, n = PyDict_Size(x), left = n;
  if (put_word(&c->key, IS_DICT | (uint64_t)n << 32)) return -1;
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
static int refuse_argument(call *c, PyObject *x) {
  PyObject *type = (PyObject *)Py_TYPE(x);
  if (c->name)
    return PyErr_Format(PyExc_TypeError,
                        "[jit] argument '%S' holds %R, which is no array or number; name it in "
                        "static_argnames=(...) "
                        "if it is a constant of the function",
                        c->name, type),
           -1;
  return PyErr_Format(PyExc_TypeError,
                      "[jit] argument %d holds %R, which is no array or number; name it in "
                      "static_argnums=(%d,) "
                      "if it is a constant of the function",
                      c->at, type, c->at),
         -1;
}
static int is_named(PyObject *x) { return !PyTuple_CheckExact(x) && PyObject_HasAttrString(x, "_fields"); }
static int flatten_value(call *c, PyObject *x) {
  if (Py_IS_TYPE(x, c->st->array)) return put_array(c, nvm_array_ref(((nvp_array *)x)->h), 1);
  char kind = (char)nvp_is_scalar(x);
  if (kind) return c->out ? flatten_static(&c->key, x) : put_scalar(c, x, kind);
  if (x == Py_None) return put_word(&c->key, IS_NONE);
  if (Py_EnterRecursiveCall(" in the arguments of a jitted function")) return -1;
  int status;
  if (PyTuple_Check(x)) status = flatten_items(c, x, is_named(x) ? IS_NAMED : IS_TUPLE);
  else if (PyList_Check(x)) status = flatten_items(c, x, IS_LIST);
  else if (PyDict_Check(x)) status = flatten_dict(c, x, NULL);
  else {
    status = put_foreign(c, x);
    if (!status)
      status = c->out ? (put_word(&c->key, IS_STATIC) || put_word(&c->key, 0) || put_object(&c->key, x) ? -1 : 1)
                      : refuse_argument(c, x);
    status = status < 0 ? -1 : 0;
  }
  Py_LeaveRecursiveCall();
  return status;
}

/* ---- building values from words */
typedef struct builder {
  const tree *t;
  int at, ao;
  nvp_state *st;
  nvm_array **a;          /* inputs: receives the placeholders; results: the arrays to take */
  nvm_array *const *with; /* inputs: the arguments of the traced call */
  int n, out, ngiven;     /* ngiven: inputs without captures */
  PyObject **made;        /* inputs: the object that the function gets for each; owned */
  const int *same;        /* inputs: for each the first one that is the same array */
} builder;
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
static PyObject *build_value(builder *b);
static PyObject *build_items(builder *b, uint64_t w) {
  Py_ssize_t n = (Py_ssize_t)(w >> 32);
  PyObject *type = (w & 255) == IS_NAMED ? b->t->o[b->ao++] : NULL;
  int list = (w & 255) == IS_LIST;
  PyObject *r = list ? PyList_New(n) : PyTuple_New(n);
  for (Py_ssize_t i = 0; r && i < n; i++) {
    PyObject *x = build_value(b);
    if (!x || (list ? PyList_SetItem(r, i, x) : PyTuple_SetItem(r, i, x))) Py_CLEAR(r);
  }
  if (!r || !type) return r;
  PyObject *named = PyObject_CallObject(type, r);
  Py_DECREF(r);
  return named;
}
static PyObject *build_dict(builder *b, uint64_t w) {
  PyObject *r = PyDict_New();
  for (uint64_t i = 0; r && i < w >> 32; i++) {
    PyObject *key = b->t->o[b->ao++];
    b->at++; /* skips the hash */
    PyObject *x = build_value(b);
    if (!x || PyDict_SetItem(r, key, x)) Py_CLEAR(r);
    Py_XDECREF(x);
  }
  return r;
}
static PyObject *build_value(builder *b) {
  uint64_t w = b->t->w[b->at++];
  switch (w & 255) {
  case IS_ARRAY: case IS_SCALAR: return build_leaf(b, w);
  case IS_NONE: return Py_NewRef(Py_None);
  case IS_STATIC: return b->at++, Py_NewRef(b->t->o[b->ao++]);
  case IS_DICT: return build_dict(b, w);
  default: return build_items(b, w);
  }
}

/* ---- traced functions, by signature */
typedef struct entry {
  struct entry *next;
  uint64_t hash, used;
  int refs, nout, kept, quick; /* kept: it is in the table; quick: a call took less than QUICK */
  int nwrite, *write; /* inputs that the function writes to; their new values are outputs after the nout results */
  nvm_traced *t;      /* NULL if there is no output */
  tree key, out;
  int nkey, nobj; /* words and objects of the key that belong to the arguments; those of captured arrays follow */
  nvp_capture *cap;
  int ncap;
} entry;
typedef struct jit {
  PyObject_HEAD nvp_state *st;
  PyObject *fn, *names, *dict, *weakrefs; /* names: a tuple of the static keywords */
  uint64_t statics, gives;                /* bit i: positional argument i is static; it is donated */
  int writes; /* a trace has written to arguments: the key then says which arguments are the same array */
  entry *bucket[BUCKETS];
  int count;
  uint64_t tick;
} jit;

static void entry_drop(entry *e) {
  if (--e->refs) return;
  nvm_traced_free(e->t);
  tree_free(&e->key);
  tree_free(&e->out);
  nvp_captures_free(e->cap, e->ncap);
  PyMem_Free(e->write);
  PyMem_Free(e);
}
/* Moves a tree, whose inline parts are in `from`. */
static void tree_move(tree *to, tree *from) {
  *to = *from;
  if (from->w == from->wi) to->w = to->wi;
  if (from->o == from->oi) to->o = to->oi;
  tree_init(from);
}
/* Compares words from w to n and objects from o to no. */
static int same_key(const tree *a, const tree *b, int w, int o, int n, int no) {
  if (b->n != n || b->no != no || memcmp(a->w + w, b->w + w, sizeof *a->w * (size_t)(n - w))) return 0;
  int same = 1;
  for (int i = o; i < no && same > 0; i++) same = nvp_same_static(a->o[i], b->o[i]);
  return same;
}
static int append_contents(call *c) { /* appends the contents of the last array to the key */
  nvm_array *a = c->in[c->n - 1];
  size_t bytes = (size_t)nvm_size(a) * nvm_dtype_size(nvm_dtype_of(a));
  PyObject *b = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
  int bad = !b || nvp_check(c->st, nvm_copy_to_host(a, PyBytes_AsString(b), bytes)) || put_object(&c->key, b);
  Py_XDECREF(b);
  return bad ? -1 : 0;
}
/* Appends the captured arrays, as they are at this call, after the arguments. */
static int flatten_captures(call *c, const nvp_capture *at, int n) {
  for (int i = 0; i < n; i++) {
    int got = put_foreign(c, at[i].x);
    if (!got) PyErr_Format(PyExc_TypeError, "[jit] %R, which the function captures, is no array any more", at[i].x);
    if (got <= 0 || (at[i].read && append_contents(c))) return -1;
  }
  return 0;
}
static void truncate_call(call *c, int n, int nview, int words,
                          int objects) { /* shortens a call to what it held before */
  while (c->n > n)
    if (c->owned[--c->n] & OWNED) nvm_array_unref(c->in[c->n]);
  while (c->nview > nview) PyBuffer_Release(&c->view[--c->nview]);
  while (c->key.no > objects) Py_DECREF(c->key.o[--c->key.no]);
  c->key.n = words;
}
/* 1: the call matches e, and e's captures have been appended to its arguments. */
static int same_call(entry *e, call *c) {
  int n = c->n, nview = c->nview, same = same_key(&e->key, &c->key, 0, 0, e->nkey, e->nobj);
  if (same > 0 && e->t && !nvm_traced_accepts(e->t, c->in)) same = 0;
  if (same <= 0 || !e->ncap) return same;
  same = flatten_captures(c, e->cap, e->ncap) ? -1 : same_key(&e->key, &c->key, e->nkey, e->nobj, e->key.n, e->key.no);
  if (same <= 0) truncate_call(c, n, nview, e->nkey, e->nobj);
  return same;
}
/* Finds the entry of a call. NULL: there is none, or an exception. */
static entry *find_entry(jit *j, call *c, uint64_t h) {
  for (entry *e = j->bucket[h % BUCKETS], *next; e; e = next) {
    next = e->next;
    if (e->hash != h) continue;
    e->refs++; /* a static's __eq__ may run Python code, which may remove any entry */
    int same = same_call(e, c), kept = e->kept;
    next = e->next;
    entry_drop(e);
    if (!kept) next = j->bucket[h % BUCKETS]; /* starts again at the head of the list */
    if (same < 0) return NULL;
    if (same && kept) return e->used = ++j->tick, e;
  }
  return NULL;
}
/* Removes the entry that *at points to from the table. */
static void drop_entry(jit *j, entry **at) {
  entry *e = *at;
  *at = e->next;
  e->kept = 0;
  j->count--;
  entry_drop(e); /* last, since it may run Python code */
}
static void forget_oldest(jit *j) {
  entry **oldest = NULL;
  for (int i = 0; i < BUCKETS; i++)
    for (entry **e = &j->bucket[i]; *e; e = &(*e)->next)
      if (!oldest || (*e)->used < (*oldest)->used) oldest = e;
  if (oldest) drop_entry(j, oldest);
}
static void keep_entry(jit *j, entry *e) {
  while (j->count >= KEEP) forget_oldest(j);
  e->kept = 1;
  e->used = ++j->tick;
  e->next = j->bucket[e->hash % BUCKETS];
  j->bucket[e->hash % BUCKETS] = e;
  j->count++;
}
static void jit_forget(jit *j) {
  for (int i = 0; i < BUCKETS; i++)
    while (j->bucket[i]) drop_entry(j, &j->bucket[i]);
}

static int has_same(const call *c) {
  int i = 0;
  while (i < c->n && nvp_same_as(c, i) == i) i++;
  return i < c->n;
}
static int flatten_same(call *c) { /* adds pairs of equal arrays to the key */
  for (int i = 0; i < c->n; i++) {
    int k = nvp_same_as(c, i);
    if (k < i && put_word(&c->key, (uint64_t)i << 32 | (uint64_t)k)) return -1;
  }
  return 0;
}

/* ---- tracing */
/* Runs the function on placeholders and flattens its result into *out. */
static int run_trace(jit *j, builder *b, call *out) {
  PyObject *args = build_value(b), *kw = args ? build_value(b) : NULL, *r = kw ? PyObject_Call(j->fn, args, kw) : NULL;
  int status = r && !flatten_value(out, r) ? 0 : -1;
  Py_XDECREF(args);
  Py_XDECREF(kw);
  Py_XDECREF(r);
  return status;
}
static nvm_array *placeholder_of(const builder *b, int i) { return ((nvp_array *)b->made[i])->h; }
/* Lists the inputs that the trace wrote to, without donated arguments, which the call gives up, and numbers, which the
   function owns. */
static int find_writes(entry *e, const call *c, const builder *b) {
  if (!(e->write = PyMem_Calloc((size_t)c->n + 1, sizeof *e->write))) return PyErr_NoMemory(), -1;
  for (int i = 0; i < b->ngiven; i++)
    if (!(c->owned[i] & (VALUE | DONATED)) && b->same[i] == i && !nvm_is_same(placeholder_of(b, i), b->a[i]))
      e->write[e->nwrite++] = i;
  return 0;
}
/* Makes the traced function; its outputs are the results and the new values of written inputs. */
static int entry_trace(entry *e, call *c, const builder *b, nvm_array *const *param, call *out) {
  e->nout = out->n;
  if (find_writes(e, c, b)) return -1;
  for (int k = 0; k < e->nwrite; k++)
    if (put_leaf(out, nvm_array_ref(placeholder_of(b, e->write[k])), OWNED)) return -1;
  if (out->n && nvp_check(c->st, nvm_traced_new(&e->t, c->st->ctx, param, c->n, out->in, out->n))) return -1;
  for (int i = 0; i < c->n && e->t; i++)
    if (c->owned[i] & DONATED && nvp_check(c->st, nvm_traced_donate(e->t, i))) return -1;
  return 0;
}
static entry *entry_new(call *c, uint64_t h, const builder *b, nvm_array *const *param, call *out) {
  entry *e = PyMem_Calloc(1, sizeof *e);
  if (!e) return PyErr_NoMemory(), NULL;
  e->refs = 1;
  e->hash = h;
  tree_init(&e->key), tree_init(&e->out);
  if (entry_trace(e, c, b, param, out)) return entry_drop(e), NULL;
  tree_move(&e->key, &c->key);
  tree_move(&e->out, &out->key);
  return e;
}
/* Makes the entry, with the parameters of captures after those of the arguments; takes `at`. */
static entry *entry_with(call *c, uint64_t h, const builder *b, call *out, nvp_capture *at, int n) {
  int given = c->n, nkey = c->key.n, nobj = c->key.no;
  nvm_array **all = PyMem_Malloc(sizeof *all * (size_t)(given + n + 1));
  entry *e = NULL;
  for (int i = 0; all && i < given + n; i++) all[i] = i < given ? b->a[i] : at[i - given].array;
  if (!all) PyErr_NoMemory();
  else if (!flatten_captures(c, at, n)) e = entry_new(c, h, b, all, out);
  PyMem_Free(all);
  if (!e) return nvp_captures_free(at, n), NULL;
  e->nkey = nkey, e->nobj = nobj;
  e->cap = at, e->ncap = n;
  return e;
}
static entry *trace_variant(jit *j, call *c, uint64_t h, builder *b) {
  entry *e = NULL;
  call out;
  int given = c->n, ncap, failed;
  call_init(&out, j->st, 1);
  if (!nvp_check(j->st, nvm_trace_begin(j->st->ctx))) {
    tracing = 1; /* building arguments and releasing results may run Python code too */
    failed = run_trace(j, b, &out);
    nvp_capture *at = nvp_captures_take(&ncap);
    tracing = 0; /* captures are read like arguments */
    if (failed) nvp_captures_free(at, ncap);
    else e = entry_with(c, h, b, &out, at, ncap);
    tracing = 1;
    call_free(&out); /* before the trace ends, since these arrays belong to it */
    for (int i = 0; i < given; i++) Py_CLEAR(b->made[i]);
    nvm_trace_end(j->st->ctx);
    tracing = 0;
  }
  return e;
}
static entry *trace_call(jit *j, call *c, uint64_t h) {
  size_t n = (size_t)c->n + 1;
  int *same = PyMem_Calloc(n, sizeof *same);
  builder b = { .t = &c->key,
                .st = j->st,
                .a = PyMem_Calloc(n, sizeof *b.a),
                .made = PyMem_Calloc(n, sizeof *b.made),
                .same = same,
                .with = c->in,
                .ngiven = c->n };
  entry *e = NULL;
  if (!same || !b.a || !b.made) PyErr_NoMemory();
  else {
    for (int i = 0; i < c->n; i++) same[i] = j->writes ? nvp_same_as(c, i) : i;
    e = trace_variant(j, c, h, &b);
  }
  for (int i = 0; b.a && i < b.ngiven; i++) nvm_array_unref(b.a[i]);
  PyMem_Free(b.a), PyMem_Free(b.made), PyMem_Free(same);
  nvp_drain();
  if (e) keep_entry(j, e);
  return e;
}

/* ---- calling */
static int flatten_call(jit *j, call *c, PyObject *args, PyObject *kw) {
  Py_ssize_t n = PyTuple_Size(args);
  /* the device and the default float decide what array-making functions return */
  uint64_t made = (uint64_t)nvm_thread_device() << 16 | (uint64_t)nvm_ctx_default_float(c->st->ctx) << 8;
  if (put_word(&c->key, IS_TUPLE | made | (uint64_t)n << 32)) return -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *x = PyTuple_GetItem(args, i);
    c->at = (int)i;
    c->gives = i < 64 && j->gives >> i & 1;
    int fixed = i < 64 && j->statics >> i & 1, bad;
    if (fixed) bad = flatten_static(&c->key, x);
    else if (Py_IS_TYPE(x, c->st->array)) bad = put_array(c, ((nvp_array *)x)->h, 0);
    /* the tuple keeps it alive during the call */
    else bad = flatten_value(c, x);
    if (bad) return -1;
  }
  c->gives = 0;
  if (!kw) return put_word(&c->key, IS_DICT);
  return flatten_dict(c, kw, j->names);
}
/* A call of a few microseconds keeps the GIL, whose release costs 0.1 us. Sizes are part of the signature, so an entry
   that was quick stays quick. */
enum { QUICK = 20000 }; /* ns */
static int64_t clock_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static int launch_timed(entry *e, call *c, nvm_array **out, int *quick) {
  int64_t start = clock_now();
  int status = nvm_traced_call(e->t, c->in, out);
  *quick = clock_now() - start < QUICK;
  return status;
}
static int launch_entry(entry *e, call *c, nvm_array **out) {
  int status, quick, wait = !e->quick;
  for (int i = 0; i < c->n; i++) wait |= nvm_is_pending(c->in[i]);
  if (!wait) return nvm_traced_call(e->t, c->in, out);
  /* other threads may write to the inputs meanwhile; donated ones belong to the call */
  for (int i = 0; i < c->n; i++) {
    nvm_array *held = c->owned[i] & DONATED ? NULL : nvm_hold(c->in[i]);
    if (!held && !(c->owned[i] & DONATED)) return nvm_last_status();
    if (!held) continue;
    if (c->owned[i] & OWNED) nvm_array_unref(c->in[i]);
    c->in[i] = held;
    c->owned[i] |= OWNED;
  }
  NVP_UNLOCKED(status, launch_timed(e, c, out, &quick));
  e->quick |= quick;
  return status;
}
static int check_indices(nvp_state *st, nvm_array *h) {
  int status;
  NVP_UNLOCKED(status, nvm_check_indices(h));
  return nvp_check(st, status);
}
/* Runs the function and stores the new values of the inputs that it writes to; stores nothing if an index was out of
   range. */
static int run_writing(entry *e, call *c, nvm_array **out) {
  nvm_array **target = PyMem_Calloc((size_t)e->nwrite + 1, sizeof *target);
  int n = 0, bad = !target;
  if (bad) PyErr_NoMemory();
  for (; !bad && n < e->nwrite; n++) {
    if ((bad = nvp_may_write(c, e->write[n], c->n - e->ncap, e->t))) break;
    target[n] = nvm_array_ref(c->in[e->write[n]]); /* launch replaces c->in by a handle for the present value */
  }
  bad = bad || nvp_ran(c->st, launch_entry(e, c, out));
  for (int k = 0; !bad && k < n; k++) bad = check_indices(c->st, out[e->nout + k]);
  for (int k = 0; !bad && k < n; k++) {
    const Py_buffer *v = nvp_view_of(c, e->write[k]);
    bad = v ? nvp_write_buffer(c->st, v, out[e->nout + k]) : nvp_check(c->st, nvm_assign(target[k], out[e->nout + k]));
  }
  while (n) nvm_array_unref(target[--n]);
  PyMem_Free(target);
  return bad ? -1 : 0;
}
static PyObject *run_entry(jit *j, entry *e, call *c) {
  nvm_array *few[LEAVES] = { NULL }, **out = few;
  PyObject *r = NULL;
  int n = e->nout + e->nwrite;
  if (n > LEAVES && !(out = PyMem_Calloc((size_t)n, sizeof *out))) return PyErr_NoMemory();
  e->refs++; /* another thread may remove it from the table */
  if (!e->t || !(e->nwrite ? run_writing(e, c, out) : nvp_ran(j->st, launch_entry(e, c, out)))) {
    builder b = { .t = &e->out, .st = j->st, .a = out, .out = 1 };
    r = build_value(&b);
  }
  for (int i = 0; i < n; i++) nvm_array_unref(out[i]);
  if (out != few) PyMem_Free(out);
  entry_drop(e);
  return r;
}
/* Finds or traces the entry for these arguments. If the function turns out to write to arguments two of which are the
   same array, it is traced again with a key that says so. */
static entry *look_up_entry(jit *j, call *c, PyObject *args, PyObject *kw) {
  int known = j->writes;
  if (flatten_call(j, c, args, kw) || (known && flatten_same(c))) return NULL;
  uint64_t h = hash_words(&c->key);
  entry *e = find_entry(j, c, h);
  if (!e && !PyErr_Occurred()) e = trace_call(j, c, h);
  if (!e || !e->nwrite) return e;
  j->writes = 1;
  if (known || !has_same(c)) return e;
  call_free(c);
  call_init(c, j->st, 0);
  return look_up_entry(j, c, args, kw);
}
static PyObject *jit_call(PyObject *self, PyObject *args, PyObject *kw) {
  jit *j = (jit *)self;
  if (nvp_tracing()) return PyObject_Call(j->fn, args, kw); /* inside another trace the call is inlined */
  call c;
  call_init(&c, j->st, 0);
  entry *e = look_up_entry(j, &c, args, kw);
  PyObject *r = e ? run_entry(j, e, &c) : NULL;
  call_free(&c);
  return r;
}
static PyObject *jit_explain(PyObject *self, PyObject *args, PyObject *kw) {
  jit *j = (jit *)self;
  if (nvp_tracing()) return PyErr_SetString(PyExc_RuntimeError, "[jit] explain inside a traced function"), NULL;
  call c;
  PyObject *r = NULL;
  call_init(&c, j->st, 0);
  entry *e = look_up_entry(j, &c, args, kw);
  if (e && !e->t) r = PyUnicode_FromString("no result of this function is an array: nothing runs\n");
  else if (e) {
    int status;
    char *text = NULL;
    e->refs++; /* another thread may remove it from the table */
    NVP_UNLOCKED(status, nvm_traced_explain(&text, e->t));
    r = nvp_text(j->st, status, text);
    entry_drop(e);
  }
  call_free(&c);
  return r;
}
static PyObject *jit_cache_size(PyObject *self, PyObject *unused) {
  (void)unused;
  return PyLong_FromLong(((jit *)self)->count);
}
static PyObject *jit_clear_cache(PyObject *self, PyObject *unused) {
  (void)unused;
  jit_forget((jit *)self);
  return Py_NewRef(Py_None);
}

/* ---- the type */
static int read_positions(PyObject *nums, const char *what, uint64_t *bits) {
  *bits = 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(nums); i++) {
    long n = PyLong_AsLong(PyTuple_GetItem(nums, i));
    if (PyErr_Occurred()) return -1;
    if (n < 0 || n > 63) return PyErr_Format(PyExc_ValueError, "[jit] %s must lie between 0 and 63", what), -1;
    *bits |= (uint64_t)1 << n;
  }
  return 0;
}
static PyObject *jit_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  PyObject *fn, *nums, *names, *given;
  uint64_t statics, gives;
  if (kw && PyDict_Size(kw)) return PyErr_SetString(PyExc_TypeError, "use nvm.jit"), NULL;
  if (!PyArg_ParseTuple(args, "OO!O!O!:Jitted", &fn, &PyTuple_Type, &nums, &PyTuple_Type, &names, &PyTuple_Type,
                        &given))
    return NULL;
  if (!PyCallable_Check(fn)) return PyErr_Format(PyExc_TypeError, "[jit] %R cannot be called", fn);
  if (read_positions(nums, "static_argnums", &statics) || read_positions(given, "donate_argnums", &gives)) return NULL;
  if (statics & gives) return PyErr_SetString(PyExc_ValueError, "[jit] a static argument cannot be donated"), NULL;
  allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  jit *j = (jit *)alloc(type, 0);
  if (!j) return NULL;
  j->st = PyType_GetModuleState(type);
  j->fn = Py_NewRef(fn);
  j->names = Py_NewRef(names);
  j->statics = statics;
  j->gives = gives;
  return (PyObject *)j;
}
static int jit_traverse(PyObject *self, visitproc visit, void *arg) {
  jit *j = (jit *)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(j->fn);
  Py_VISIT(j->names);
  Py_VISIT(j->dict);
  for (int i = 0; i < BUCKETS; i++)
    for (entry *e = j->bucket[i]; e; e = e->next) {
      for (int k = 0; k < e->key.no; k++) Py_VISIT(e->key.o[k]);
      for (int k = 0; k < e->out.no; k++) Py_VISIT(e->out.o[k]);
      for (int k = 0; k < e->ncap; k++) Py_VISIT(e->cap[k].x);
    }
  return 0;
}
static int jit_clear(PyObject *self) {
  jit *j = (jit *)self;
  jit_forget(j);
  Py_CLEAR(j->fn);
  Py_CLEAR(j->names);
  Py_CLEAR(j->dict);
  return 0;
}
static void jit_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (((jit *)self)->weakrefs) PyObject_ClearWeakRefs(self);
  jit_clear(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
  nvp_drain();
}
static PyObject *jit_repr(PyObject *self) { return PyUnicode_FromFormat("<nvm.jit of %R>", ((jit *)self)->fn); }
/* binds the function as a method of a class */
static PyObject *jit_get(PyObject *self, PyObject *obj, PyObject *type) {
  (void)type;
  if (!obj || obj == Py_None) return Py_NewRef(self);
  PyObject *f = nvp_hook(((jit *)self)->st, "bound_method");
  return f ? PyObject_CallFunctionObjArgs(f, self, obj, NULL) : NULL;
}
static PyMethodDef methods[] = {
  { "explain", (PyCFunction)(void (*)(void))jit_explain, METH_VARARGS | METH_KEYWORDS,
    "explain($self, /, *args, **kwargs)\n--\n\nThe plan for these arguments, as text; nothing is run." },
  { "cache_size", jit_cache_size, METH_NOARGS,
    "cache_size($self, /)\n--\n\nHow many signatures have been traced and "
    "kept." },
  { "clear_cache", jit_clear_cache, METH_NOARGS, "clear_cache($self, /)\n--\n\nForgets every traced signature." },
  { NULL, NULL, 0, NULL }
};
static PyMemberDef members[] = { { "__dictoffset__", T_PYSSIZET, offsetof(jit, dict), READONLY, NULL },
                                 { "__weaklistoffset__", T_PYSSIZET, offsetof(jit, weakrefs), READONLY, NULL },
                                 { NULL, 0, 0, 0, NULL } };
static PyGetSetDef getset[] = { { "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL },
                                { NULL, NULL, NULL, NULL, NULL } };
static PyType_Slot slots[] = { { Py_tp_new, jit_new },
                               { Py_tp_dealloc, jit_dealloc },
                               { Py_tp_traverse, jit_traverse },
                               { Py_tp_clear, jit_clear },
                               { Py_tp_call, jit_call },
                               { Py_tp_repr, jit_repr },
                               { Py_tp_descr_get, jit_get },
                               { Py_tp_methods, methods },
                               { Py_tp_members, members },
                               { Py_tp_getset, getset },
                               { Py_tp_doc, "A function made by nvm.jit." },
                               { 0, NULL } };
PyType_Spec nvp_jit_spec = { .name = "nvm.Jitted",
                             .basicsize = sizeof(jit),
                             .slots = slots,
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE };
