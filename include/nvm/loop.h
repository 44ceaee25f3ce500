/* Loops and choices whose bodies are functions: a body is traced once and planned once, whatever the number of steps.
   They run when they are called; inside a trace they become a part of it. Carries are arrays that each step replaces;
   they keep their dtypes and shapes. What a body uses besides its inputs, arrays and numbers from outside, is read when
   the loop begins, and a body may not write to it (NVM_ERR_STATE). Numbers (nvm_float) among carries and operands
   become arrays of their default dtype. */
#ifndef NVM_LOOP_H
#define NVM_LOOP_H
#include "nvm/nvm.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The functions below write owned arrays to `out`, evaluated ones outside of a trace, all NULL on failure. Their status
   is that of a body, NVM_ERR_TYPE if a body returns a carry of another dtype or shape, or that of the evaluation, whose
   message says in which step it failed. Bodies are called as functions to be traced are (nvm_trace_fn), in a scope of
   their own, once or more. */

/* For i = lower ... upper - 1: carries = body(i, carries). Writes the n owned carries, of the dtypes and shapes of
   `init`, and returns a status. lower and upper: 0-d integers. i is a number for the body, as nvm_int makes it, and can
   index arrays. If lower or upper is computed on a GPU, the loop waits for it. */
NVM_API int nvm_fori_loop(nvm_array **out, nvm_ctx *ctx, nvm_array *lower, nvm_array *upper, nvm_trace_fn body,
                          void *user, nvm_array *const *init, int n);
/* While test(carries), a 0-d bool: carries = body(carries). Writes the n owned carries, of the dtypes and shapes of
   `init`, and returns a status. On a GPU each step waits for the test. */
NVM_API int nvm_while_loop(nvm_array **out, nvm_ctx *ctx, nvm_trace_fn test, nvm_trace_fn body, void *user,
                           nvm_array *const *init, int n);
/* yes(in) or no(in), as pred, a 0-d bool, says; only one of them runs, and both return nout arrays of the same dtypes
   and shapes. Writes these, owned by the caller, and returns a status. On a GPU this waits for pred. */
NVM_API int nvm_cond(nvm_array **out, int nout, nvm_ctx *ctx, nvm_array *pred, nvm_trace_fn yes, nvm_trace_fn no,
                     void *user, nvm_array *const *in, int n);
typedef struct nvm_scan_options {
  unsigned version; /* NVM_SCAN_OPTIONS_VERSION */
  int64_t length;   /* number of steps, which xs must have too; 0: that of xs, none without xs */
  int reverse;      /* 1: from the last row to the first */
} nvm_scan_options;
#define NVM_SCAN_OPTIONS_VERSION 1
#define NVM_SCAN_OPTIONS_INIT { NVM_SCAN_OPTIONS_VERSION, 0, 0 }
/* Fills in the defaults. version: NVM_SCAN_OPTIONS_VERSION, else NVM_ERR_VALUE. Returns a status. */
NVM_API int nvm_scan_options_init(nvm_scan_options *o, unsigned version);
/* For each row of the nx arrays xs along their first axis: carries, ny values = body(carries, rows). Writes owned
   arrays, the n carries after the last step, of the dtypes and shapes of `init`, then the ny values, of any dtypes and
   shapes, of all steps stacked along a new first axis, and returns a status. o NULL: defaults. */
NVM_API int nvm_scan(nvm_array **out, nvm_ctx *ctx, nvm_trace_fn body, void *user, nvm_array *const *init, int n,
                     nvm_array *const *xs, int nx, int ny, const nvm_scan_options *o);

/* ---- loops by hand, on which the functions above and bindings are built: open, then for each function of the loop its
   inputs and its outputs, then close and free */
typedef enum nvm_loop_kind { NVM_FORI_LOOP, NVM_WHILE_LOOP, NVM_COND, NVM_SCAN, NVM_NLOOPS } nvm_loop_kind;
typedef struct nvm_loop_options {
  unsigned version; /* NVM_LOOP_OPTIONS_VERSION */
  nvm_loop_kind kind;
  nvm_array *lower, *upper; /* of a fori_loop */
  nvm_array *pred;          /* of a cond */
  nvm_array *const *xs;     /* of a scan, with nx, and length and reverse as in nvm_scan_options */
  int nx;
  int64_t length;
  int reverse;
  const char *const *names; /* of the carries, for messages, valid until the loop is freed; NULL: they are numbered */
} nvm_loop_options;
#define NVM_LOOP_OPTIONS_VERSION 1
#define NVM_LOOP_OPTIONS_INIT { NVM_LOOP_OPTIONS_VERSION, NVM_FORI_LOOP, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Fills in the defaults. version: NVM_LOOP_OPTIONS_VERSION, else NVM_ERR_VALUE. Returns a status. */
NVM_API int nvm_loop_options_init(nvm_loop_options *o, unsigned version);
typedef struct nvm_loop nvm_loop;
/* Opens a loop with n carries (a cond: operands) of any dtypes and shapes, and the trace of its functions, which is the
   thread's until nvm_loop_close or nvm_loop_free. The caller frees *out by nvm_loop_free. Returns a status. */
NVM_API int nvm_loop_open(nvm_loop **out, nvm_ctx *ctx, const nvm_loop_options *o, nvm_array *const *init, int n);
/* Gets the inputs of the loop's next function, borrowed until its outputs are given: of a fori_loop and a scan those of
   the body; of a while_loop of the test, the body, and the test again, of the body's outputs; of a cond of the branch
   for true, then of the one for false. They have the dtypes and shapes of the carries, and of the rows of xs. Returns a
   status. */
NVM_API int nvm_loop_inputs(nvm_array *const **in, int *nin, nvm_loop *l);
/* Ends this function. Its outputs are borrowed: the next carries, of the same dtypes and shapes, and the values of a
   scan's step; the 0-d bool of a test; what a branch returns. Returns a status. */
NVM_API int nvm_loop_outputs(nvm_loop *l, nvm_array *const *outs, int nout);
/* The number of arrays that nvm_loop_close writes: carries and the values of a scan, or the outputs of a branch; 0
   before the functions have ended, and for NULL. */
NVM_API int nvm_loop_results(const nvm_loop *l);
/* Runs the loop, or inside another trace makes it a part of that. Writes owned arrays of the dtypes and shapes that its
   functions gave them to `out`, and returns a status. It may be called again after NVM_ERR_INTERRUPTED. */
NVM_API int nvm_loop_close(nvm_loop *l, nvm_array **out);
NVM_API void nvm_loop_free(nvm_loop *l); /* ends its trace if it is open; l may be NULL */

#ifdef __cplusplus
}
#endif
#endif
