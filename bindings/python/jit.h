/* nvm.jit: a call of a jitted function, its signature and its arrays, as jit.c reads them and jit_write.c looks at
   them. */
#ifndef NVP_JIT_H
#define NVP_JIT_H
#include "nvp.h"

enum { WORDS = 96, OBJECTS = 16, LEAVES = 32 };
/* Words and the objects they refer to */
typedef struct nvp_tree {
  uint64_t *w, wi[WORDS];
  PyObject **o, *oi[OBJECTS]; /* counted */
  int n, cap, no, capo;
} nvp_tree;

/* Of a leaf. BORROWED: over the next of the buffers; VALUE: a number, which nobody can write to; FOREIGN: converted
   from what is no array of nvm's and has no buffer. */
enum { OWNED = 1, DONATED = 2, BORROWED = 4, VALUE = 8, FOREIGN = 16 };
typedef struct nvp_call {
  nvp_state *st;
  nvp_tree key;
  nvm_array **in, *ini[LEAVES];         /* borrowed, or owned where the bit is set */
  unsigned char *owned, ownedi[LEAVES]; /* OWNED ... */
  int n, cap;
  Py_buffer *view; /* buffers borrowed for the call */
  int nview, capview;
  int at;         /* position of the argument that is being read, for messages */
  PyObject *name; /* or its keyword */
  int gives;      /* the argument that is being read is donated */
  int out;        /* reading results: what is no array is a constant */
} nvp_call;

/* jit_write.c */
const Py_buffer *nvp_view_of(const nvp_call *c, int i); /* the buffer that a leaf stands over, NULL if none */
int nvp_same_as(const nvp_call *c, int i);              /* the first leaf that is the same array */
/* 0, or -1 raised: leaf i cannot be written, or another one may show a part of it; ngiven: leaves of arguments, before
   those that are captured */
int nvp_may_write(const nvp_call *c, int i, int ngiven);
int nvp_write_buffer(nvp_state *st, const Py_buffer *v, nvm_array *h); /* h's elements, to the buffer; 0 or -1 */
#endif
