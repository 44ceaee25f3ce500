/* A function of single elements over a batch of them: it is traced once, for one element, and its graph is made one of
   all elements at once. No element is computed alone: a product with a matrix that all share becomes one product. */
#ifndef NVM_VMAP_H
#define NVM_VMAP_H
#include "nvm/nvm.h"
#ifdef __cplusplus
extern "C" {
#endif

/* In place of an axis: the array has no batch; each element gets it whole, or it is the same for all. */
enum { NVM_UNMAPPED = -1000 };

/* out[i] = what fn computes of each element, stacked along out_axes[i]. in: n arrays of any dtypes and shapes, of which
   each element gets its part along in_axes[i] (negative: from the end; NVM_UNMAPPED: the whole array); all mapped ones
   have the same extent there, the size of the batch. NULL for in_axes or out_axes means 0 for all. fn is called once,
   in a scope of its own, as functions to be traced are (nvm_trace_fn): its inputs have no values, and it may not write
   to them. A loop of nvm/loop.h takes its steps for all elements together, as many as the element that needs the most;
   those that are done keep their values, and read and write nothing by index. Outside of a trace it runs when fn has
   ended. A cond whose predicate differs computes both branches. A draw of random numbers gets the batch in front, so
   that each element has numbers of its own. Writes nout owned arrays, which are pending, all NULL on failure, and
   returns a status: that of fn; NVM_ERR_VALUE for extents that differ, for no mapped input, and for an output that
   depends on the batch and is NVM_UNMAPPED; NVM_ERR_INDEX for an axis out of range; NVM_ERR_UNSUPPORTED if the function
   of a loop draws, and for a fori_loop whose lower bound differs and whose index is used with a narrow dtype. */
NVM_API int nvm_vmap(nvm_array **out, const int *out_axes, int nout, nvm_ctx *ctx, nvm_trace_fn fn, void *user,
                     nvm_array *const *in, const int *in_axes, int n);

/* ---- by hand, for bindings: open, the inputs, close, free */
typedef struct nvm_vmap_trace nvm_vmap_trace;
/* Opens the trace of the function for n arrays of any dtypes and shapes, as nvm_vmap takes them; it is the thread's
   until nvm_vmap_close or nvm_vmap_free. The caller frees *out by nvm_vmap_free. Returns a status. */
NVM_API int nvm_vmap_open(nvm_vmap_trace **out, nvm_ctx *ctx, nvm_array *const *in, const int *in_axes, int n);
/* Gets the inputs of the function, borrowed until it is closed: arrays of the dtypes of those given, and of the shapes
   of one element. Returns a status. */
NVM_API int nvm_vmap_inputs(nvm_array *const **in, int *nin, nvm_vmap_trace *v);
/* Ends the trace; outs are what the function made, arrays of any dtypes and shapes. Writes nout owned arrays of the
   same dtypes, whose shapes have the batch as well, as nvm_vmap does, and returns a status. It may be called again
   after NVM_ERR_INTERRUPTED. */
NVM_API int nvm_vmap_close(nvm_array **out, nvm_vmap_trace *v, nvm_array *const *outs, const int *out_axes, int nout);
NVM_API void nvm_vmap_free(nvm_vmap_trace *v); /* ends the trace if it is open; v may be NULL */

#ifdef __cplusplus
}
#endif
#endif
