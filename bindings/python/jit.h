/* A call of a jitted function: its signature and its arrays, which jit_tree.c reads from arguments and jit_write.c
   examines. Private to jit*.c. */
#ifndef NVP_JIT_H
#define NVP_JIT_H
#include "nvp.h"

/* The kind is the low byte of a word; its operands are in the upper bytes. */
enum { IS_ARRAY, IS_SCALAR, IS_NONE, IS_STATIC, IS_TUPLE, IS_LIST, IS_DICT, IS_NAMED, IS_NODE };
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

/* Builds values from words. */
typedef struct nvp_builder {
  const nvp_tree *t;
  int at, ao;
  nvp_state *st;
  nvm_array **a;          /* inputs: receives the placeholders; results: the arrays to take */
  nvm_array *const *with; /* inputs: the arguments of the traced call */
  int n, out, ngiven;     /* ngiven: inputs without captures */
  PyObject **made;        /* inputs: the object that the function gets for each; owned */
  const int *same;        /* inputs: for each the first one that is the same array */
} nvp_builder;

/* ---- jit_tree.c. Functions that return int return 0, or -1 with an exception. */
void nvp_tree_init(nvp_tree *t);
void nvp_tree_free(nvp_tree *t);
void nvp_tree_move(nvp_tree *to, nvp_tree *from); /* the inline parts of `from` move, too; it is empty then */
int nvp_put_word(nvp_tree *t, uint64_t w);
int nvp_put_object(nvp_tree *t, PyObject *x);
uint64_t nvp_hash_words(const nvp_tree *t);
int nvp_flatten_static(nvp_tree *t, PyObject *x); /* TypeError if x is not hashable */
void nvp_call_init(nvp_call *c, nvp_state *st, int out);
void nvp_call_free(nvp_call *c);
int nvp_put_leaf(nvp_call *c, nvm_array *a, int owned); /* takes `a` if owned, even on failure */
int nvp_put_array(nvp_call *c, nvm_array *a, int owned);
/* Adds a foreign array: borrowed for the call if it has a buffer, else converted. 1: added, 0: it is no array, -1: an
   exception. */
int nvp_put_foreign(nvp_call *c, PyObject *x);
int nvp_flatten_value(nvp_call *c, PyObject *x);
/* names: the static keywords if x is the keywords of a call, else NULL */
int nvp_flatten_dict(nvp_call *c, PyObject *x, PyObject *names);
PyObject *nvp_build_value(nvp_builder *b); /* the next value; NULL with an exception */

/* ---- jit_write.c */
const Py_buffer *nvp_view_of(const nvp_call *c, int i); /* the buffer under a leaf; NULL: none */
int nvp_same_as(const nvp_call *c, int i);              /* the first leaf that is the same array */
/* May the function t write to leaf i? -1 with an exception if it is read-only, or another leaf or an array that t reads
   from outside may overlap it. ngiven: number of leaves of arguments, which come before captures. */
int nvp_may_write(const nvp_call *c, int i, int ngiven, const nvm_traced *t);
#endif
