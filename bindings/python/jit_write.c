/* Arguments that a jitted function writes to: which of them are the same array or may overlap, and which are writable.
   Never decides what is written. */
#include <string.h>
#include "jit.h"

const Py_buffer *nvp_view_of(const nvp_call *c, int i) {
  int at = 0;
  if (!(c->owned[i] & BORROWED)) return NULL;
  while (i--) at += (c->owned[i] & BORROWED) != 0;
  return &c->view[at];
}
enum { APART, OVERLAPPING, SAME };
enum { TRIES = 100000 }; /* combinations of indices that are tried to show that two arrays do not overlap */
/* addresses: of the elements in memory, not their offsets in the array that the leaf is a view of. 0: not known */
static int find_place(nvp_place *p, const nvp_call *c, int i, int addresses) {
  const Py_buffer *v = nvp_view_of(c, i);
  return v ? nvp_place_of_buffer(p, v) : addresses ? nvp_place_of_value(p, c->in[i]) : nvp_place_of_view(p, c->in[i]);
}
static int places_meet(const nvp_call *c, int i, int k, int addresses) {
  nvp_place p, q;
  if (!find_place(&p, c, i, addresses) || !find_place(&q, c, k, addresses)) return OVERLAPPING;
  if (nvm_dtype_of(c->in[i]) == nvm_dtype_of(c->in[k]) && nvp_is_same_place(&p, &q)) return SAME;
  return nvp_overlap(&p, &q, TRIES) ? OVERLAPPING : APART;
}
/* Is a write to leaf i seen in leaf k? Nobody else can write to an nvm array's memory, and what others are shown of it
   is read-only, so only a writeable buffer is compared with arrays of another kind. */
static int writes_meet(const nvp_call *c, int i, int k) {
  const Py_buffer *v = nvp_view_of(c, i), *w = nvp_view_of(c, k);
  if ((c->owned[i] | c->owned[k]) & VALUE) return APART;
  if (v && w) return places_meet(c, i, k, 1);
  if (v) return v->readonly || nvm_is_pending(c->in[k]) || !places_meet(c, i, k, 1) ? APART : OVERLAPPING;
  if (w || (c->owned[i] | c->owned[k]) & FOREIGN) return APART;
  if (c->in[i] == c->in[k]) return SAME;
  return nvm_base(c->in[i]) == nvm_base(c->in[k]) ? places_meet(c, i, k, 0) : APART;
}
int nvp_same_as(const nvp_call *c, int i) {
  int k = 0;
  while (k < i && writes_meet(c, i, k) != SAME) k++;
  return k;
}

/* What a leaf is, for a message: "float64 (5,) with strides (8,)". */
static PyObject *describe_leaf(const nvp_call *c, int i) {
  nvm_array *a = c->in[i];
  nvp_place p;
  int known = find_place(&p, c, i, 0);
  PyObject *shape = nvp_ints(nvm_shape(a), nvm_rank(a)),
           *strides = known ? nvp_ints(p.strides, nvm_rank(a)) : PyUnicode_FromString("unknown"), *text = NULL;
  if (shape && strides)
    text = PyUnicode_FromFormat("%s %S with strides %S", nvm_dtype_name(nvm_dtype_of(a)), shape, strides);
  Py_XDECREF(shape), Py_XDECREF(strides);
  return text;
}
static int refuse_pair(const nvp_call *c, int i, int k, int ngiven) {
  PyObject *written = describe_leaf(c, i), *other = written ? describe_leaf(c, k) : NULL;
  if (other)
    PyErr_Format(
        PyExc_ValueError,
        "[jit] the function writes to array %d of its arguments, %S, of which array %d, %S%s, may show a part; "
        "pass what both show, once",
        i, written, k, other, k < ngiven ? "" : ", which it captures");
  Py_XDECREF(written), Py_XDECREF(other);
  return -1;
}
/* Is a write to leaf i seen in an array of nvm's that the function reads from outside? */
static int is_seen_in(const nvp_call *c, int i, nvm_array *outside) {
  const Py_buffer *v = nvp_view_of(c, i);
  nvp_place p, q;
  if (v ? v->readonly || nvm_is_pending(outside) : nvm_base(c->in[i]) != nvm_base(outside)) return 0;
  if (!find_place(&p, c, i, v != NULL) || !(v ? nvp_place_of_value(&q, outside) : nvp_place_of_view(&q, outside)))
    return !v;
  return nvp_overlap(&p, &q, TRIES) != 0;
}
int nvp_may_write(const nvp_call *c, int i, int ngiven, const nvm_traced *t) {
  const Py_buffer *v = nvp_view_of(c, i);
  if (c->owned[i] & FOREIGN || (v && v->readonly))
    return PyErr_Format(PyExc_ValueError, "[jit] the function writes to array %d of its arguments, which %s", i,
                        v ? "is read-only" : "is neither nvm's nor has a buffer"),
           -1;
  if (!v && nvp_check(c->st, nvm_check_writable(c->in[i]))) return -1;
  for (int k = 0; k < c->n; k++) {
    int meet = k == i ? APART : writes_meet(c, i, k);
    if (meet == OVERLAPPING || (meet == SAME && k >= ngiven)) return refuse_pair(c, i, k, ngiven);
  }
  nvm_array *outside;
  for (int k = 0; (outside = nvm_traced_captured(t, k)); k++)
    if (is_seen_in(c, i, outside))
      return PyErr_Format(PyExc_ValueError,
                          "[jit] the function writes to array %d of its arguments, which an array of %d dimensions "
                          "that it captures may show a part of; give it as an argument",
                          i, nvm_rank(outside)),
             -1;
  return 0;
}
