/* nvm: array mathematics as lazy expressions. Nothing is computed until a value is needed; then the expression runs as
   few fused kernels as possible.

   Errors: operations (nvm/ops.h) return a new array, or NULL with a message (nvm_last_error); if an operand is NULL,
   they return NULL and keep the first message. Every other function returns a status, 0 on success, and takes its
   out-parameter first; for a NULL array it returns the status of the first failure. Any other NULL pointer,
   out-parameters included, is NVM_ERR_VALUE and changes nothing, unless the declaration gives it a meaning; strides,
   axes, options, release, owner, user and stream may always be NULL. Option fields that are 0 mean the default, except
   for the version.

   Ownership: inputs are borrowed. An array that an operation returns belongs to the thread's innermost open scope,
   which frees it when it is closed, unless nvm_array_ref keeps it. After the scope is closed, or after the last
   reference is given back by nvm_array_unref, the handle is freed and, as with free(), must not be used; each handle is
   a separate allocation, so AddressSanitizer and valgrind find such uses.

   Threads: one handle may be used by one thread at a time, different handles by any threads. Writing through a view
   uses its base too; reading a view does not. */
#ifndef NVM_H
#define NVM_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

#define NVM_VERSION "0.1.0"
/* Returns NVM_VERSION of the library; static storage. */
NVM_API const char *nvm_version(void);
/* Returns the message of the thread's last failure, "" if there was none; valid until the next failure. A successful
   call does not report failures that were handled inside it. Opening an outermost scope or a trace clears the
   message. */
NVM_API const char *nvm_last_error(void);
/* Returns the status of the thread's last failure; NVM_OK if there was none. */
NVM_API int nvm_last_status(void);

/* ---- contexts */
typedef struct nvm_ctx_options {
  unsigned version;        /* NVM_CTX_OPTIONS_VERSION */
  nvm_dtype default_float; /* NVM_F32 or NVM_F64 (the default, 0 too): the dtype of float data and of int / int */
  /* since version 2: the device of arrays that were put on no device. AUTO (the default): the first usable GPU, chosen
     at the first evaluation. If the ordinal does not exist, nvm_ctx_new fails. */
  nvm_device device;
} nvm_ctx_options;
#define NVM_CTX_OPTIONS_VERSION 2
#define NVM_CTX_OPTIONS_INIT { NVM_CTX_OPTIONS_VERSION, NVM_F64, NVM_DEVICE_AUTO }
/* Fills in the defaults of that version: NVM_CTX_OPTIONS_VERSION or an earlier one, else NVM_ERR_VALUE. */
NVM_API int nvm_ctx_options_init(nvm_ctx_options *o, unsigned version);
/* Makes a context, which nvm_ctx_free frees; o NULL: defaults. NVM_ERR_TYPE, or the status of the device, if an option
   cannot be had. */
NVM_API int nvm_ctx_new(nvm_ctx **out, const nvm_ctx_options *o);
NVM_API nvm_dtype nvm_ctx_default_float(const nvm_ctx *ctx); /* NVM_DTYPE_DEFAULT for NULL */
/* Sets the default float of arrays made from now on: NVM_F32 or NVM_F64, else NVM_ERR_TYPE. */
NVM_API int nvm_ctx_default_float_set(nvm_ctx *ctx, nvm_dtype t);
/* Frees a context. Arrays that nvm_array_ref keeps stay valid until they are released. Returns NVM_ERR_STATE while any
   thread has a scope of the context open. ctx may be NULL. Waits for the first background compilation of the process:
   a process that uses a GPU frees its contexts before it ends. */
NVM_API int nvm_ctx_free(nvm_ctx *ctx);

/* ---- scopes. Each thread has a stack of them and closes them in order. */
/* Opens a scope, which this thread frees by nvm_scope_close; NULL with a message on failure. */
NVM_API nvm_scope *nvm_scope_open(nvm_ctx *ctx);
/* Closes a scope and releases its arrays; returns the status of the first failure in it, or NVM_ERR_STATE if it is not
   the innermost scope. */
NVM_API int nvm_scope_close(nvm_scope *s);
/* References count handles of arrays, whatever their shape and dtype. */
NVM_API nvm_array *nvm_array_ref(nvm_array *a); /* adds a reference, which outlives the scope; returns a */
NVM_API void nvm_array_unref(nvm_array *a);     /* gives back a reference; a may be NULL */

/* ---- arrays from data. t: the dtype of the elements; shape: rank extents; strides: in bytes, NULL for row-major. The
   arrays belong to the open scope. */
/* copies `data`, which is packed and row-major */
NVM_API nvm_array *nvm_from_host(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const void *data);
/* Makes an array that borrows `data` until it calls release(owner), which happens when nothing needs the data any more,
   or at once if the array cannot be made. The data must not change meanwhile. release may be called from any thread
   that evaluates or drops arrays, and must not call nvm. */
NVM_API nvm_array *nvm_from_host_borrow(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape,
                                        const int64_t *strides, const void *data, void (*release)(void *owner),
                                        void *owner);
/* weak scalars: they take the dtype of the other operand, as Python numbers do */
NVM_API nvm_array *nvm_float(double x);
NVM_API nvm_array *nvm_int(int64_t x);
NVM_API nvm_array *nvm_bool(int x);
NVM_API nvm_array *nvm_complex(double re, double im);
NVM_API nvm_array *nvm_none(void); /* stands for an absent operand: a bound of clip, a bias */

/* ---- looking at arrays. These functions evaluate nothing. For NULL: NVM_DTYPE_DEFAULT, no dimensions, no elements. */
NVM_API nvm_dtype nvm_dtype_of(const nvm_array *a);           /* its dtype */
NVM_API int nvm_rank(const nvm_array *a);                     /* number of dimensions */
NVM_API const int64_t *nvm_shape(const nvm_array *a);         /* rank extents; valid as long as the array */
NVM_API int64_t nvm_size(const nvm_array *a);                 /* number of elements */
NVM_API int nvm_is_pending(const nvm_array *a);               /* 1: not evaluated yet; numbers never are */
NVM_API const char *nvm_dtype_name(nvm_dtype t);              /* "float32"; "none" for an invalid dtype */
NVM_API int nvm_dtype_find(nvm_dtype *out, const char *name); /* "float32" or "f32"; else NVM_ERR_TYPE */
NVM_API size_t nvm_dtype_size(nvm_dtype t);                   /* bytes of an element; 0 for an invalid dtype */

/* ---- values */
/* Evaluates n arrays, of any shapes and dtypes, together: shared work is done once. Returns a status. */
NVM_API int nvm_eval(nvm_array *const *arrays, int n);
/* Evaluates and copies the elements, of the array's dtype, to `out`, packed and row-major; bytes must be their exact
   size. */
NVM_API int nvm_copy_to_host(nvm_array *a, void *out, size_t bytes);
/* Evaluates an array of any shape and dtype, and returns NVM_ERR_INDEX if an index that the elements depend on was out
   of range. On a GPU this waits until the kernels have checked the indices, even if there are none. */
NVM_API int nvm_check_indices(nvm_array *a);
/* Evaluates and returns the elements, of the array's dtype, in host memory: the address of the first one and the
   strides in bytes (rank of them are written). The memory belongs to the array, must not be written to, and is valid
   until the array, or the base of a view, is written or released. For an array on a GPU it is a copy (nvm_device_data
   returns the device's memory). */
NVM_API int nvm_data(const void **data, int64_t *strides, nvm_array *a);
/* Evaluates n arrays, of any shapes and dtypes, together, and waits until their elements are in memory, on a GPU too.
   Returns a status, also of an index that was out of range. */
NVM_API int nvm_wait(nvm_array *const *arrays, int n);
/* *ready becomes 1 if a, of any shape and dtype, has its value and its elements are in memory, so that a read waits for
   no computation. It starts and waits for nothing. A status. */
NVM_API int nvm_is_ready(int *ready, nvm_array *a);
/* Waits until all work launched on GPUs has finished, and returns the status of what failed there. ctx may be NULL. */
NVM_API int nvm_synchronize(nvm_ctx *ctx);
/* Describes the plan by which these arrays, of any shapes and dtypes, would be evaluated now: kernels, bytes against
   the minimum, flops, and why each edge was not fused; if the arrays are on several devices, one plan for each. It
   evaluates nothing. The caller frees *text with nvm_free. */
NVM_API int nvm_explain(char **text, nvm_array *const *arrays, int n);
/* Frees a text that the library returned; NULL is fine. */
NVM_API void nvm_free(void *p);
/* Sets a callback of the process that planning, compiling and running poll in the thread that evaluates; NULL removes
   it. If it returns nonzero, the evaluation ends with NVM_ERR_INTERRUPTED. The arrays then stay pending and can be
   evaluated again; donated memory is lost only if steps that may write to it had begun. Waits for a GPU (in reads and
   nvm_synchronize too) and for the evaluation of another thread are interrupted as well: work on the GPU continues, and
   the destination of a copy may be partly written. A single compilation, a step with one block and a step of a library
   are not interrupted. The callback must be fast and must not call nvm. Set it while nothing is evaluated. */
NVM_API void nvm_interrupt_set(int (*asked)(void *user), void *user);

/* ---- any operation by number. Bindings use these functions. Attributes (nvm_attr) have the names in the operation's
   signature. */
/* signature: as in Python, "(x, /, *, axis=None, keepdims=False)"; nin: number of operands, -1: one list of them; doc:
   what it does, and on a second line the dtypes that it takes. The library owns the texts. Operations whose name starts
   with _ cannot be called, except _getitem and _setitem: they are take with error messages that speak of x[...]. */
typedef struct nvm_op_info { const char *name, *kind, *signature, *doc; int nin; } nvm_op_info;
NVM_API int nvm_op_count(void);                   /* operations are numbered from 0 */
NVM_API int nvm_op_get(nvm_op_info *out, int op); /* NVM_ERR_VALUE if there is no such operation */
/* Finds an operation by name; NVM_ERR_VALUE if there is none. */
NVM_API int nvm_op_find(int *out, const char *name);
/* Applies an operation, which takes and returns the shapes and dtypes of its function in ops.h. The result is an owned
   reference (nvm_array_unref) and needs no open scope; NULL operands pass through; pass nvm_none() for an absent
   optional operand. */
NVM_API nvm_array *nvm_apply(nvm_ctx *ctx, int op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr);
/* As nvm_apply, an owned reference, but results that NumPy makes views are views of the operand, so that writes to
   either are seen in both, as with nvm_view: permute_dims, matrix_transpose, moveaxis, expand_dims, squeeze, slice,
   flip, real, imag; reshape where strides can describe the result (for an operand that is no view: row-major); astype
   where it neither copies nor casts; broadcast_to and diagonal, which cannot be written to. */
NVM_API nvm_array *nvm_apply_view(nvm_ctx *ctx, int op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr);
/* returns the array that `a` is a view of, with its own shape and dtype, or `a` itself if it is no view; borrowed */
NVM_API nvm_array *nvm_base(nvm_array *a);
/* Sets the offset of the first element of `a` and its strides (rank of them), both in bytes, in the array that it is a
   view of, with the elements of that in row-major order. NVM_ERR_UNSUPPORTED: no strides describe the view. */
NVM_API int nvm_view_layout(int64_t *offset, int64_t *strides, const nvm_array *a);
/* 1: `a` is no view, or its elements are contiguous and row-major in its base */
NVM_API int nvm_is_packed(const nvm_array *a);
/* Elements in memory. at: the address of the first, or its offset in what both are parts of; each: bytes of one;
   strides in bytes. */
typedef struct nvm_strided {
  int64_t at;
  size_t each;
  int rank;
  const int64_t *shape, *strides;
} nvm_strided;
/* *out: 1 if the two have a byte in common, 0 if not, -1 if that takes more work to find out. work: how many
   combinations of indices may be tried; 0 compares the first and last bytes alone, a negative number is no bound. */
NVM_API int nvm_overlap(int *out, const nvm_strided *a, const nvm_strided *b, int64_t work);
/* Makes a weak scalar as an operand for bindings: an owned reference that needs no scope. kind: 'b' and 'i' (value in
   i); 'f' (in re); 'c' (re, im); 'u' an integer >= 2^63 whose uint64 bits are in i; 'h' an integer that neither int64
   nor uint64 holds, with the nearest double or an infinity in re. An integer that is out of range of the dtype it
   converts to is NVM_ERR_OVERFLOW; a comparison treats it as larger, or if negative smaller, than every value of that
   dtype. */
NVM_API nvm_array *nvm_apply_scalar(nvm_ctx *ctx, char kind, int64_t i, double re, double im);
/* As nvm_from_host_borrow, with dtype, shape and strides in bytes, but returns an owned reference that needs no scope;
   with release NULL it copies the data. */
NVM_API nvm_array *nvm_array_new_host(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const int64_t *strides,
                                      const void *data, void (*release)(void *owner), void *owner);

/* Returns a new handle, owned by the caller, for the current expression or value of `a`, whatever its shape and dtype:
   later writes to `a` do not change it. Copies no data. */
NVM_API nvm_array *nvm_snapshot(nvm_array *a);
/* As nvm_snapshot, of any shape and dtype and owned by the caller too, for a thread that reads values while other
   threads may write to `a`; inside a trace the result does not become an input of the trace. */
NVM_API nvm_array *nvm_hold(nvm_array *a);

/* 1: both have the same lazy expression or value, and so one shape and dtype */
NVM_API int nvm_is_same(nvm_array *a, nvm_array *b);

/* Evaluates and donates an array of any shape and dtype: reading it afterwards is an error, and an expression that was
   built from it may reuse its memory when it is evaluated, if no other pending array that is still referenced (a scope
   counts too) needs it. Returns a status. */
NVM_API int nvm_donate(nvm_array *a);

/* ---- item assignment. Views by basic indexing, and writes through them to the base. */
/* Returns a view of a's dtype, owned by the caller: count[d] elements of each of a's `rank` dimensions, starting at
   start[d] with step step[d] (not 0), all inside the array, else NVM_ERR_INDEX. If drop[d] is nonzero, count[d] must be
   1 and the view lacks that dimension; drop NULL keeps all. Writes to either array are seen in both. */
NVM_API nvm_array *nvm_view(nvm_array *a, int rank, const int64_t *start, const int64_t *count, const int64_t *step,
                            const int *drop);
/* Returns a view of a's dtype, owned by the caller, of the same elements in row-major order with another shape. Writes
   are seen in both. */
NVM_API nvm_array *nvm_view_as(nvm_array *a, int rank, const int64_t *shape);
NVM_API int nvm_assign(nvm_array *a, nvm_array *value); /* a[...] = value, cast to a's dtype and broadcast; a status */
/* Assigns to the view that nvm_view would return, without making it: `value` is cast to a's dtype and broadcast to the
   view's shape. */
NVM_API int nvm_assign_view(nvm_array *a, int rank, const int64_t *start, const int64_t *count, const int64_t *step,
                            const int *drop, nvm_array *value);
/* Index arrays, as NumPy has them. One nvm_index is the indices along dimension `axis`: an array of integers (negative
   ones count from the end), which are broadcast together with those of other dimensions, or `number` if `at` is NULL;
   or a mask (bool) of the dimensions from `axis` on. In a list of them axes increase. Messages name the dimension
   `message_axis`: that of the array before a view of it was taken. */
typedef struct nvm_index { nvm_array *at; int64_t number; int axis, message_axis; } nvm_index;
/* Reads the elements that n indices select, together with all of the dimensions that are not indexed: in the result,
   `before` of these come before the dimensions of the index arrays. *out becomes an array of its own, of a's dtype and
   owned by the caller, or NULL: nothing was read, and the caller must build an expression instead (in a trace, on a
   GPU, of indices without a value, of 16,384 elements or more unless a mask is among the indices). NVM_ERR_INDEX if an
   index is out of range. */
NVM_API int nvm_get_at(nvm_array **out, nvm_array *a, int n, const nvm_index *at, int before);
/* Assigns to these elements `value`, which is cast to a's dtype and broadcast to them. If one is selected several
   times, the last value wins. *done 0: nothing was stored, and the caller must build an expression instead (on a GPU,
   and in a trace if a mask or an array of uint64 is among the indices). NVM_ERR_INDEX if an index is out of range. */
NVM_API int nvm_assign_at(int *done, nvm_array *a, int n, const nvm_index *at, int before, nvm_array *value);
/* Evaluates a mask and writes the positions of its ones to `out`, in row-major order: an owned array of int64 for each
   of its dimensions. Returns a status. */
NVM_API int nvm_nonzero(nvm_array **out, nvm_array *mask);
/* Returns the element at index[d] (not negative) of each of a's dimensions, with a's dtype and owned by the caller;
   later writes do not change it. */
NVM_API nvm_array *nvm_element(nvm_array *a, const int64_t *index);
NVM_API int nvm_check_writable(const nvm_array *a); /* the status with which nvm_assign would fail, else NVM_OK */

/* ---- functions. A function is traced once for each signature (dtypes and shapes), then called at launch cost. It
   keeps the graphs of the 64 most recently used signatures, and each graph the programs of the 64 most recent memory
   layouts of its arguments. */
/* The function to trace, called inside a scope. It writes borrowed arrays to `out` and returns a status. */
typedef int (*nvm_trace_fn)(void *user, nvm_ctx *ctx, nvm_array *const *in, int nin, nvm_array **out, int nout);
/* Makes a function; *out is freed by nvm_fn_free. `user` is passed to `trace` at every call; nout >= 1, else
   NVM_ERR_VALUE. */
NVM_API int nvm_fn_new(nvm_fn **out, nvm_ctx *ctx, nvm_trace_fn trace, void *user, int nin, int nout);
NVM_API int nvm_fn_free(nvm_fn *f); /* always NVM_OK; f may be NULL */
/* Calls f with nin arrays and writes nout owned, evaluated arrays to `out`, all NULL on failure. What `trace` wrote to
   its arguments is then in these arrays; NVM_ERR_VALUE if another argument, or an array that f captures, may show a
   part of one. Inside a trace, the call becomes a part of that trace and the results are pending. Returns the status of
   `trace` or of the evaluation. */
NVM_API int nvm_fn_call(nvm_fn *f, nvm_array *const *in, nvm_array **out);
/* As nvm_explain, for this call; NVM_ERR_STATE inside a trace. The caller frees *text with nvm_free. */
NVM_API int nvm_fn_explain(char **text, nvm_fn *f, nvm_array *const *in);
/* Tracing by hand, on which nvm_fn_call and bindings are built: placeholders go in, outputs come out. Between begin and
   end, reading a value that depends on a placeholder is an error. */
NVM_API nvm_array *nvm_placeholder(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape); /* owned */
/* A placeholder for a weak scalar, owned by the caller; kind as for nvm_apply_scalar. Calls pass a result of
   nvm_apply_scalar, or a 0-d array in host memory ('i' int64, 'u' uint64, 'f' and 'h' float64). with: the argument of
   this trace, NULL: 0; the trace may test whether a dtype holds that integer. */
NVM_API nvm_array *nvm_placeholder_scalar(nvm_ctx *ctx, char kind, const nvm_array *with);
typedef struct nvm_traced nvm_traced;       /* a graph with parameters, and its programs by exact signature */
NVM_API int nvm_trace_begin(nvm_ctx *ctx); /* each thread has at most one trace, else NVM_ERR_STATE */
NVM_API int nvm_trace_end(nvm_ctx *ctx);
/* Makes an array that was made in the body of a loop (nvm/loop.h) belong to the thread's outermost trace instead, so
   that bodies take it for one from outside. Returns a status. */
NVM_API int nvm_trace_adopt(nvm_array *a);
/* Makes *out, the graph of `outs` over these placeholders; it is freed by nvm_traced_free. Call this before the trace
   ends. Returns a status. */
NVM_API int nvm_traced_new(nvm_traced **out, nvm_ctx *ctx, nvm_array *const *params, int nparam, nvm_array *const *outs,
                           int nout);
/* The same for a function that has written to nwritten of its placeholders: become[k] is what number written[k] has
   become. Behind the nout results a call returns arrays that nvm_traced_store stores. with: the nparam arguments of
   this trace, borrowed; NULL: all are in host memory. Where one that is written is on a GPU, calls make it anew there,
   else they may store in parts of it. *out is freed by nvm_traced_free. Returns a status. */
NVM_API int nvm_traced_new_writing(nvm_traced **out, nvm_ctx *ctx, nvm_array *const *params, int nparam,
                                   nvm_array *const *outs, int nout, const int *written, nvm_array *const *become,
                                   int nwritten, nvm_array *const *with);
/* The number of arrays that a call returns, which `out` has room for; NULL: 0. */
NVM_API int nvm_traced_outputs(const nvm_traced *t);
/* Stores what a call has returned in `out` in its arguments: in place where nothing else can see the elements. A result
   that is a written argument is NULL until then, and owned by the caller as the others are. in: NULL where an argument
   is not written. lent[i] (NULL: none): store in the memory that in[i] borrows, which is the caller's to write to.
   Returns a status; NVM_ERR_INDEX before anything is stored. */
NVM_API int nvm_traced_store(nvm_traced *t, nvm_array *const *in, const unsigned char *lent, nvm_array **out);
/* Makes every call donate this argument, as nvm_donate does. Call this before the first call of t. Returns a status. */
NVM_API int nvm_traced_donate(nvm_traced *t, int param);
/* 1: the tests that the trace made on its integer arguments have the same results for these arguments, and what it
   writes to lies where it did in the trace, on a GPU or in host memory; 1 for NULL */
NVM_API int nvm_traced_accepts(const nvm_traced *t, nvm_array *const *in);
/* The i-th array from outside of the trace that calls of t read, borrowed; NULL behind the last one, or t is NULL */
NVM_API nvm_array *nvm_traced_captured(const nvm_traced *t, int i);
/* Calls t. in[i] has the placeholder's dtype and shape, is borrowed, and is evaluated if it is pending. Writes owned,
   evaluated arrays to `out`. Returns a status. */
NVM_API int nvm_traced_call(nvm_traced *t, nvm_array *const *in, nvm_array **out);
/* As nvm_explain, for arguments with the memory layout of the last call. The caller frees *text with nvm_free. Returns
   a status. */
NVM_API int nvm_traced_explain(char **text, nvm_traced *t);
/* The text of a stage of planning, for arguments with the memory layout of the last call, as NVM_DUMP prints it:
   "collect" (the traced graph), "graph" (the same, simplified), "plan", "kernel" (each kernel with its schedule); of a
   function with loops, that of each part. Another stage is NVM_ERR_VALUE. It evaluates nothing. The caller frees *text
   with nvm_free. Returns a status. */
NVM_API int nvm_traced_text(char **text, nvm_traced *t, const char *stage);
/* Plans t for these arguments, borrowed, with the placeholders' dtypes and shapes, and compiles its kernels, as a call
   would do first; waits for those of the CPU. Evaluates arguments that are pending, and nothing else; gives up nothing.
   NVM_ERR_UNSUPPORTED for a function with loops, whose parts are planned when they run. Returns a status. */
NVM_API int nvm_traced_compile(nvm_traced *t, nvm_array *const *in);
NVM_API void nvm_traced_free(nvm_traced *t); /* t may be NULL; running calls keep it until they end */

/* ---- settings and counters */
/* Sets a setting, as in nvm_set("fuse", "off"). The name has the prefix NVM_ or not, in any case; value NULL: the
   default. An invalid value is NVM_ERR_VALUE. */
NVM_API int nvm_set(const char *name, const char *value);
/* Reads row i of the settings: returns 1, or 0 past the end. *value is valid until the setting changes. Each
   out-parameter may be NULL. */
NVM_API int nvm_setting(int i, const char **name, const char **value, const char **def, const char **doc);
/* Lists the settings whose value in the environment is invalid and therefore ignored, a line each that says what they
   take. The caller frees *text with nvm_free. Returns a status. */
NVM_API int nvm_settings_invalid(char **text);
typedef struct nvm_counters {
  unsigned version; /* NVM_COUNTERS_VERSION */
  /* of this process: kernels compiled, kernels loaded from the disk cache, programs planned, evaluations and kernels
     run; bytes of arrays and temporaries in host memory, now and at most; bytes copied between the host's memory and
     a GPU's, or between two GPUs */
  int64_t kernels_compiled, kernels_loaded, programs_planned, evaluations, kernels_run, bytes_used, bytes_peak,
      bytes_copied;
} nvm_counters;
#define NVM_COUNTERS_VERSION 1
/* Reads the counters. version: NVM_COUNTERS_VERSION, else NVM_ERR_VALUE. Returns a status. */
NVM_API int nvm_counters_get(nvm_counters *out, unsigned version);
NVM_API int nvm_counters_reset_peak(void); /* bytes_peak := bytes_used */
NVM_API int nvm_info(char **text); /* describes this machine, one line per fact; the caller frees *text by nvm_free */
/* Returns NVM_OK if kernels are compiled for the CPU, else a status whose message says why not (LLVM is missing, the
   CPU lacks AVX2 or FMA); the interpreter then runs them, with the same bits and some five times the time. Loads
   LLVM. */
NVM_API int nvm_llvm_usable(void);
/* 1: for that reason this process runs a kernel in the interpreter that would have been compiled. Fast; loads
   nothing. */
NVM_API int nvm_llvm_missed(void);
/* The number of kernels that this process compiles at the moment, for the CPU and for GPUs; 0: none. *seconds (NULL:
   not wanted): for how long there has been one, without a pause; 0 if there is none. Fast; any thread may ask. */
NVM_API int nvm_compiling(double *seconds);

#ifdef __cplusplus
}
#endif
#include "nvm/device.h"
#include "nvm/fft.h"
#include "nvm/ops.h"
#include "nvm/profile.h"
#include "nvm/tune.h"
#endif
