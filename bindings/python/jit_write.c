/* Arguments that a jitted function writes to: which of them are the same array or may overlap, which are writable, and
   how a buffer is written. Never decides what is written. */
#include <string.h>
#include "jit.h"

const Py_buffer *nvp_view_of(const nvp_call *c, int i) {
  int at = 0;
  if (!(c->owned[i] & BORROWED)) return NULL;
  while (i--) at += (c->owned[i] & BORROWED) != 0;
  return &c->view[at];
}
/* The addresses of its first and its last element in memory. */
static void span_of_buffer(const Py_buffer *v, const char **first, const char **last) {
  *first = *last = v->buf;
  for (int d = 0; d < v->ndim; d++)
    *(v->strides[d] < 0 ? first : last) += v->len ? v->strides[d] * (v->shape[d] - 1) : 0;
}
enum { APART, OVERLAPPING, SAME };
static int buffers_meet(const Py_buffer *v, const Py_buffer *w) {
  size_t n = sizeof *v->shape * (size_t)v->ndim;
  const char *v0, *v1, *w0, *w1;
  if (v->buf == w->buf && v->ndim == w->ndim && !memcmp(v->shape, w->shape, n) && !memcmp(v->strides, w->strides, n))
    return SAME;
  span_of_buffer(v, &v0, &v1);
  span_of_buffer(w, &w0, &w1);
  return v->len && w->len && v0 < w1 + w->itemsize && w0 < v1 + v->itemsize ? OVERLAPPING : APART;
}
static int writes_meet(const nvp_call *c, int i, int k) {
  const Py_buffer *v = nvp_view_of(c, i), *w = nvp_view_of(c, k);
  if ((c->owned[i] | c->owned[k]) & (VALUE | FOREIGN) || !v != !w) return APART;
  if (v) return buffers_meet(v, w);
  return c->in[i] == c->in[k] ? SAME : nvm_base(c->in[i]) == nvm_base(c->in[k]) ? OVERLAPPING : APART;
}
int nvp_same_as(const nvp_call *c, int i) {
  int k = 0;
  while (k < i && writes_meet(c, i, k) != SAME) k++;
  return k;
}
int nvp_may_write(const nvp_call *c, int i, int ngiven) {
  const Py_buffer *v = nvp_view_of(c, i);
  if (c->owned[i] & FOREIGN || (v && v->readonly))
    return PyErr_Format(PyExc_ValueError, "[jit] the function writes to array %d of its arguments, which %s", i,
                        v ? "is read-only" : "is neither nvm's nor has a buffer"),
           -1;
  if (!v && nvp_check(c->st, nvm_check_writable(c->in[i]))) return -1;
  for (int k = 0; k < c->n; k++)
    if (k != i && (k < ngiven ? writes_meet(c, i, k) == OVERLAPPING : writes_meet(c, i, k) != APART))
      return PyErr_Format(PyExc_ValueError,
                          "[jit] the function writes to array %d of its arguments, of which array %d "
                          "(those that are captured come last) may show a part; pass what both show, once",
                          i, k),
             -1;
  return 0;
}
int nvp_write_buffer(nvp_state *st, const Py_buffer *v, nvm_array *h) {
  void *packed = PyMem_Malloc((size_t)v->len + 1);
  if (!packed) return PyErr_NoMemory(), -1;
  int bad =
      nvp_check(st, nvm_copy_to_host(h, packed, (size_t)v->len)) || PyBuffer_FromContiguous(v, packed, v->len, 'C');
  PyMem_Free(packed);
  return bad ? -1 : 0;
}
