/* nvm.jit: traces a function once for each signature of its arguments (jit_tree.c), then replays it. A call with a
   known signature never runs the function itself. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "jit.h"

enum { KEEP = 512, BUCKETS = 64 };

static _Thread_local int tracing;
int nvp_jitting(void) { return tracing; }
int nvp_tracing(void) { return tracing || nvp_in_body(); }

typedef nvp_tree tree;
typedef nvp_call call;
typedef nvp_builder builder;

/* ---- traced functions, by signature */
typedef struct entry {
  struct entry *next;
  uint64_t hash, used;
  int refs, nout, kept, quick; /* nout: arrays that a call returns; kept: it is in the table; quick: a call took less
                                  than QUICK */
  int nwrite, *write;          /* inputs that the function writes to */
  nvm_traced *t;               /* NULL if there is no output */
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
  nvp_tree_free(&e->key);
  nvp_tree_free(&e->out);
  nvp_captures_free(e->cap, e->ncap);
  PyMem_Free(e->write);
  PyMem_Free(e);
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
  int bad = !b || nvp_check(c->st, nvm_copy_to_host(a, PyBytes_AsString(b), bytes)) || nvp_put_object(&c->key, b);
  Py_XDECREF(b);
  return bad ? -1 : 0;
}
/* Appends the captured arrays, as they are at this call, after the arguments. */
static int flatten_captures(call *c, const nvp_capture *at, int n) {
  for (int i = 0; i < n; i++) {
    int got = nvp_put_foreign(c, at[i].x);
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
  if (same <= 0) return same;
  if (e->ncap)
    same =
        flatten_captures(c, e->cap, e->ncap) ? -1 : same_key(&e->key, &c->key, e->nkey, e->nobj, e->key.n, e->key.no);
  if (same > 0 && e->t && !nvm_traced_accepts(e->t, c->in)) same = 0;
  if (same <= 0 && e->ncap) truncate_call(c, n, nview, e->nkey, e->nobj);
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
    if (k < i && nvp_put_word(&c->key, (uint64_t)i << 32 | (uint64_t)k)) return -1;
  }
  return 0;
}

/* ---- tracing */
/* Runs the function on placeholders and flattens its result into *out. */
static int run_trace(jit *j, builder *b, call *out) {
  PyObject *args = nvp_build_value(b), *kw = args ? nvp_build_value(b) : NULL,
           *r = kw ? PyObject_Call(j->fn, args, kw) : NULL;
  int status = r && !nvp_flatten_value(out, r) ? 0 : -1;
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
static int make_traced(entry *e, const call *c, const builder *b, nvm_array *const *param, const call *out) {
  nvm_array **become = PyMem_Calloc((size_t)e->nwrite + 1, sizeof *become);
  if (!become) return PyErr_NoMemory(), -1;
  for (int k = 0; k < e->nwrite; k++) become[k] = placeholder_of(b, e->write[k]);
  int status =
      nvm_traced_new_writing(&e->t, c->st->ctx, param, c->n, out->in, out->n, e->write, become, e->nwrite, c->in);
  PyMem_Free(become);
  return nvp_check(c->st, status);
}
/* Makes the traced function of the results and of what it makes of written inputs. */
static int entry_trace(entry *e, call *c, const builder *b, nvm_array *const *param, call *out) {
  if (find_writes(e, c, b)) return -1;
  if ((out->n || e->nwrite) && make_traced(e, c, b, param, out)) return -1;
  e->nout = nvm_traced_outputs(e->t);
  for (int i = 0; i < c->n && e->t; i++)
    if (c->owned[i] & DONATED && nvp_check(c->st, nvm_traced_donate(e->t, i))) return -1;
  return 0;
}
static entry *entry_new(call *c, uint64_t h, const builder *b, nvm_array *const *param, call *out) {
  entry *e = PyMem_Calloc(1, sizeof *e);
  if (!e) return PyErr_NoMemory(), NULL;
  e->refs = 1;
  e->hash = h;
  nvp_tree_init(&e->key), nvp_tree_init(&e->out);
  if (entry_trace(e, c, b, param, out)) return entry_drop(e), NULL;
  nvp_tree_move(&e->key, &c->key);
  nvp_tree_move(&e->out, &out->key);
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
  nvp_call_init(&out, j->st, 1);
  if (!nvp_check(j->st, nvm_trace_begin(j->st->ctx))) {
    tracing = 1; /* building arguments and releasing results may run Python code too */
    failed = run_trace(j, b, &out);
    nvp_capture *at = nvp_captures_take(&ncap);
    tracing = 0; /* captures are read like arguments */
    if (failed) nvp_captures_free(at, ncap);
    else e = entry_with(c, h, b, &out, at, ncap);
    tracing = 1;
    nvp_call_free(&out); /* before the trace ends, since these arrays belong to it */
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
  if (e) nvp_doctor_traced(j->st, j->fn, e->t), keep_entry(j, e);
  return e;
}

/* ---- calling */
static int flatten_call(jit *j, call *c, PyObject *args, PyObject *kw) {
  Py_ssize_t n = PyTuple_Size(args);
  /* the device and the default float decide what array-making functions return */
  uint64_t made = (uint64_t)nvm_thread_device() << 16 | (uint64_t)nvm_ctx_default_float(c->st->ctx) << 8;
  if (nvp_put_word(&c->key, IS_TUPLE | made | (uint64_t)n << 32)) return -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *x = PyTuple_GetItem(args, i);
    c->at = (int)i;
    c->gives = i < 64 && j->gives >> i & 1;
    int fixed = i < 64 && j->statics >> i & 1, bad;
    if (fixed) bad = nvp_flatten_static(&c->key, x);
    else if (Py_IS_TYPE(x, c->st->array)) bad = nvp_put_array(c, ((nvp_array *)x)->h, 0);
    /* the tuple keeps it alive during the call */
    else bad = nvp_flatten_value(c, x);
    if (bad) return -1;
  }
  c->gives = 0;
  if (!kw) return nvp_put_word(&c->key, IS_DICT);
  return nvp_flatten_dict(c, kw, j->names);
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
/* Makes input i the array that is written again; a handle for its value would count as somebody who sees the write. */
static void return_target(call *c, int i, nvm_array **target) {
  if (c->owned[i] & OWNED) nvm_array_unref(c->in[i]);
  c->in[i] = target[i];
  c->owned[i] |= OWNED;
  target[i] = NULL;
}
/* Runs the function and stores what it writes to inputs. */
static int run_writing(entry *e, call *c, nvm_array **out) {
  size_t n = (size_t)c->n + 1;
  nvm_array **target = PyMem_Calloc(n, sizeof *target);
  unsigned char *lent = PyMem_Calloc(n, 1);
  int status = NVM_OK, bad = !target || !lent;
  if (bad) PyErr_NoMemory();
  for (int k = 0; k < e->nwrite && !bad; k++) {
    int i = e->write[k];
    if ((bad = nvp_may_write(c, i, c->n - e->ncap, e->t))) break;
    target[i] = nvm_array_ref(c->in[i]); /* launch replaces c->in by a handle for the present value */
    lent[i] = nvp_view_of(c, i) != NULL;
  }
  bad = bad || nvp_ran(c->st, launch_entry(e, c, out));
  for (int k = 0; k < e->nwrite && !bad; k++) return_target(c, e->write[k], target);
  if (!bad) status = nvm_traced_store(e->t, c->in, lent, out);
  for (int i = 0; target && i < c->n; i++) nvm_array_unref(target[i]);
  PyMem_Free(target), PyMem_Free(lent);
  return bad || nvp_check(c->st, status) ? -1 : 0;
}
static PyObject *run_entry(jit *j, entry *e, call *c) {
  nvm_array *few[LEAVES] = { NULL }, **out = few;
  PyObject *r = NULL;
  int n = e->nout;
  if (n > LEAVES && !(out = PyMem_Calloc((size_t)n, sizeof *out))) return PyErr_NoMemory();
  e->refs++; /* another thread may remove it from the table */
  if (!e->t || !(e->nwrite ? run_writing(e, c, out) : nvp_ran(j->st, launch_entry(e, c, out)))) {
    builder b = { .t = &e->out, .st = j->st, .a = out, .out = 1 };
    r = nvp_build_value(&b);
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
  uint64_t h = nvp_hash_words(&c->key);
  entry *e = find_entry(j, c, h);
  if (!e && !PyErr_Occurred()) e = trace_call(j, c, h);
  if (!e || !e->nwrite) return e;
  j->writes = 1;
  if (known || !has_same(c)) return e;
  nvp_call_free(c);
  nvp_call_init(c, j->st, 0);
  return look_up_entry(j, c, args, kw);
}
static PyObject *jit_call(PyObject *self, PyObject *args, PyObject *kw) {
  jit *j = (jit *)self;
  if (nvp_tracing()) return PyObject_Call(j->fn, args, kw); /* inside another trace the call is inlined */
  call c;
  nvp_call_init(&c, j->st, 0);
  entry *e = look_up_entry(j, &c, args, kw);
  PyObject *r = e ? run_entry(j, e, &c) : NULL;
  nvp_call_free(&c);
  return r;
}
static PyObject *as_plan(nvp_state *st, PyObject *text) { /* takes the text, which may be NULL */
  PyObject *f = text ? nvp_hook(st, "plan") : NULL, *r = f ? PyObject_CallFunctionObjArgs(f, text, NULL) : NULL;
  Py_XDECREF(text);
  return r;
}
static PyObject *jit_explain(PyObject *self, PyObject *args, PyObject *kw) {
  jit *j = (jit *)self;
  if (nvp_tracing()) return PyErr_SetString(PyExc_RuntimeError, "[jit] explain inside a traced function"), NULL;
  call c;
  PyObject *r = NULL;
  nvp_call_init(&c, j->st, 0);
  entry *e = look_up_entry(j, &c, args, kw);
  if (e && !e->t) r = as_plan(j->st, PyUnicode_FromString("no result of this function is an array: nothing runs\n"));
  else if (e) {
    int status;
    char *text = NULL;
    e->refs++; /* another thread may remove it from the table */
    NVP_UNLOCKED(status, nvm_traced_explain(&text, e->t));
    r = as_plan(j->st, nvp_text(j->st, status, text));
    entry_drop(e);
  }
  nvp_call_free(&c);
  return r;
}
/* _text(stage, args, kwargs): the text of a stage of planning for these arguments */
static PyObject *jit_text(PyObject *self, PyObject *given) {
  jit *j = (jit *)self;
  const char *stage;
  PyObject *args, *kw, *r = NULL;
  call c;
  if (!PyArg_ParseTuple(given, "sO!O!:_text", &stage, &PyTuple_Type, &args, &PyDict_Type, &kw)) return NULL;
  nvp_call_init(&c, j->st, 0);
  entry *e = look_up_entry(j, &c, args, kw);
  if (e && !e->t) r = PyUnicode_FromString("");
  else if (e) {
    int status;
    char *text = NULL;
    e->refs++;
    NVP_UNLOCKED(status, nvm_traced_text(&text, e->t, stage));
    r = nvp_text(j->st, status, text);
    entry_drop(e);
  }
  nvp_call_free(&c);
  return r;
}
/* _compile(args, kwargs): plans and compiles for these arguments; returns the hash of their signature */
static PyObject *jit_compile(PyObject *self, PyObject *given) {
  jit *j = (jit *)self;
  PyObject *args, *kw, *r = NULL;
  call c;
  if (!PyArg_ParseTuple(given, "O!O!:_compile", &PyTuple_Type, &args, &PyDict_Type, &kw)) return NULL;
  nvp_call_init(&c, j->st, 0);
  entry *e = look_up_entry(j, &c, args, kw);
  if (e) {
    int status = NVM_OK;
    e->refs++;
    if (e->t) NVP_UNLOCKED(status, nvm_traced_compile(e->t, c.in));
    r = nvp_ran(j->st, status) ? NULL : PyLong_FromUnsignedLongLong(e->hash);
    entry_drop(e);
  }
  nvp_call_free(&c);
  return r;
}
/* _signature(args, kwargs): the hash of the signature of these arguments; nothing is traced */
static PyObject *jit_signature(PyObject *self, PyObject *given) {
  jit *j = (jit *)self;
  PyObject *args, *kw, *r = NULL;
  call c;
  if (!PyArg_ParseTuple(given, "O!O!:_signature", &PyTuple_Type, &args, &PyDict_Type, &kw)) return NULL;
  nvp_call_init(&c, j->st, 0);
  if (!flatten_call(j, &c, args, kw) && (!j->writes || !flatten_same(&c)))
    r = PyLong_FromUnsignedLongLong(nvp_hash_words(&c.key));
  nvp_call_free(&c);
  return r;
}
static PyObject *jit_lower(PyObject *self, PyObject *args, PyObject *kw) {
  jit *j = (jit *)self;
  if (nvp_tracing()) return PyErr_SetString(PyExc_RuntimeError, "[jit] lower inside a traced function"), NULL;
  call c;
  nvp_call_init(&c, j->st, 0);
  entry *e = look_up_entry(j, &c, args, kw);
  nvp_call_free(&c);
  PyObject *hook = e ? nvp_hook(j->st, "lowered") : NULL, *names = kw ? Py_NewRef(kw) : PyDict_New();
  PyObject *r = hook && names ? PyObject_CallFunctionObjArgs(hook, self, args, names, NULL) : NULL;
  Py_XDECREF(names);
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
  { "lower", (PyCFunction)(void (*)(void))jit_lower, METH_VARARGS | METH_KEYWORDS,
    "lower($self, /, *args, **kwargs)\n--\n\nThe function as it is traced for these arguments, an nvm.Lowered: its "
    "texts, its plan, and compilation ahead of a call; nothing is run." },
  { "_text", jit_text, METH_VARARGS, NULL },
  { "_compile", jit_compile, METH_VARARGS, NULL },
  { "_signature", jit_signature, METH_VARARGS, NULL },
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
                               { Py_tp_doc,
                                 "A function made by nvm.jit: it is traced once for each signature of its arguments, "
                                 "and has the methods explain\nand lower.\n\n"
                                 ">>> import nvm\n>>> f = nvm.jit(lambda x: 2 * x + 1)\n"
                                 ">>> isinstance(f, nvm.Jitted), f(nvm.arange(3))\n"
                                 "(True, array([1, 3, 5]))\n" },
                               { 0, NULL } };
PyType_Spec nvp_jit_spec = { .name = "nvm.Jitted",
                             .basicsize = sizeof(jit),
                             .slots = slots,
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE };
