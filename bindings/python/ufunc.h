/* The type that nvm's ufuncs derive from. Private to ufunc*.c. */
#ifndef NVP_UFUNC_H
#define NVP_UFUNC_H
#include "nvp.h"

typedef struct ufunc {
  PyObject_HEAD nvp_state *st; /* the state lives as long as the type */
  PyObject *function;          /* counted; takes the operands by position */
  Py_ssize_t nin, nout;
  int in_table;    /* function is one of the library's table, called without a detour */
  int elementwise; /* it has no dimensions of its own, as a matrix product has */
  /* counted; of the library's table, NULL: there is none: the reduction and the scan by this function, and what it is
     of one array of floats */
  PyObject *reduce, *scan, *floats;
} ufunc;
enum { NVP_MOST = 4, NVP_RESULTS = 2 }; /* operands and results of a call that is made in C */

/* Calls the function; a new reference. */
PyObject *nvp_ufunc_operands(const ufunc *u, PyObject *const *args);

/* ---- ufunc_call.c: what takes more than operands, for arrays of nvm alone. A new reference, or NULL: with an
   exception the call failed, without one nothing was done, and the Python half does it, or says what is wrong. The
   arguments are n by position, and one for each of `names`, which may be NULL. */
PyObject *nvp_ufunc_call(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *nvp_ufunc_outer(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *nvp_ufunc_reduce(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *nvp_ufunc_accumulate(nvp_state *st, const ufunc *u, PyObject *const *args, Py_ssize_t n, PyObject *names);
#endif
