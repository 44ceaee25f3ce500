/* A call of a jitted function: its signature and its arrays, which jit.c fills in and jit_write.c examines. Private to
   these two files. */
#ifndef NVP_JIT_H
#define NVP_JIT_H
#include "nvp.h"

enum { WORDS = 96, OBJECTS = 16, LEAVES = 32 };
/* The words of a signature, and the objects that they refer to. */
typedef struct nvp_tree {
  uint64_t *w, wi[WORDS];
  PyObject **o, *oi[OBJECTS]; /* counted */
  int n, cap, no, capo;
} nvp_tree;

/* Flags of a leaf. BORROWED: an array over the next of the buffers; VALUE: a number, which nobody can write to;
   FOREIGN: converted from an object that is no nvm array and has no buffer. */
enum { OWNED = 1, DONATED = 2, BORROWED = 4, VALUE = 8, FOREIGN = 16 };
typedef struct nvp_call {
  nvp_state *st;
  nvp_tree key;
  nvm_array **in, *ini[LEAVES];         /* borrowed, or owned if OWNED is set */
  unsigned char *owned, ownedi[LEAVES]; /* flags of each leaf */
  int n, cap;
  Py_buffer *view; /* buffers borrowed for the call */
  int nview, capview;
  int at;         /* position of the argument being read, for messages */
  PyObject *name; /* its keyword, or NULL */
  int gives;      /* the argument being read is donated */
  int out;        /* results are being read: objects that are no arrays are constants */
} nvp_call;

/* ---- jit_write.c */
const Py_buffer *nvp_view_of(const nvp_call *c, int i); /* the buffer under a leaf; NULL: none */
int nvp_same_as(const nvp_call *c, int i);              /* the first leaf that is the same array */
/* May the function t write to leaf i? -1 with an exception if it is read-only, or another leaf or an array that t reads
   from outside may overlap it. ngiven: number of leaves of arguments, which come before captures. */
int nvp_may_write(const nvp_call *c, int i, int ngiven, const nvm_traced *t);
/* copies h's elements to the buffer; 0 or -1 */
int nvp_write_buffer(nvp_state *st, const Py_buffer *v, nvm_array *h);
#endif
