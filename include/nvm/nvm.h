/* nvm: array mathematics that stays a lazy expression until a value is needed, then runs as few fused kernels as
   possible.

   Operations (nvm/ops.h) return the new array: NULL on an error (nvm_last_error says why), and NULL operands pass
   through. Everything else returns a status, 0 on success, with the out-parameter first; given a NULL array it returns
   the status of the first failure. NULL for any other pointer, out-parameters too, is NVM_ERR_VALUE with a message
   and changes nothing, unless the declaration says what it means; strides, axes, options, release, owner, user and
   stream may be NULL everywhere. Fields of options that are 0, but for the version, are the defaults. Inputs are
   borrowed. Arrays made by operations belong to the thread's innermost open
   scope: when that is closed, a handle that nvm_array_ref did not keep is freed, as is one whose last reference
   nvm_array_unref gave back. Nothing can tell such a pointer from one that is in use: to use it, or to give it back
   again, is as with free(), and as each handle is an allocation of its own, AddressSanitizer and valgrind find it.
   One handle may be used by one thread at a time; different handles by any threads. To write through a view is
   to use its base as well; to read one is not. */
#ifndef NVM_H
#define NVM_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

#define NVM_VERSION "0.1.0"
NVM_API const char *nvm_version(void);
/* Message of the thread's last failure; "" if none; valid until the next. A call that succeeds tells of nothing that
   was mended inside it; opening an outermost scope or a trace clears it. */
NVM_API const char *nvm_last_error(void);
NVM_API int nvm_last_status(void);

/* ---- contexts */
typedef struct nvm_ctx_options {
  unsigned version;        /* NVM_CTX_OPTIONS_VERSION */
  nvm_dtype default_float; /* float32 or float64 (the default, 0 too): dtype of float data and of int / int */
  /* since version 2: where what was put nowhere runs. AUTO (the default): the first GPU that can be used, asked for at
     the first evaluation; an ordinal that is not there is an error of nvm_ctx_new. */
  nvm_device device;
} nvm_ctx_options;
#define NVM_CTX_OPTIONS_VERSION 2
#define NVM_CTX_OPTIONS_INIT { NVM_CTX_OPTIONS_VERSION, NVM_F64, NVM_DEVICE_AUTO }
NVM_API int nvm_ctx_options_init(nvm_ctx_options *o, unsigned version); /* the fields of that version */
NVM_API int nvm_ctx_new(nvm_ctx **out, const nvm_ctx_options *o);       /* *out: for nvm_ctx_free. o NULL: defaults */
NVM_API nvm_dtype nvm_ctx_default_float(const nvm_ctx *ctx);            /* of NULL: NVM_DTYPE_DEFAULT */
/* NVM_F32 or NVM_F64, for what is made from now on; else NVM_ERR_TYPE */
NVM_API int nvm_ctx_default_float_set(nvm_ctx *ctx, nvm_dtype t);
/* Arrays kept by nvm_array_ref stay valid until they are released. NVM_ERR_STATE while a scope of it is open, in any
   thread; NULL is fine. */
NVM_API int nvm_ctx_free(nvm_ctx *ctx);

/* ---- scopes: a stack per thread, closed in order */
NVM_API nvm_scope *nvm_scope_open(nvm_ctx *ctx); /* NULL with a message */
/* Releases its arrays; the status of its first failure. NVM_ERR_STATE if it is not the innermost one. */
NVM_API int nvm_scope_close(nvm_scope *s);
NVM_API nvm_array *nvm_array_ref(nvm_array *a); /* keeps it beyond its scope; returns a */
NVM_API void nvm_array_unref(nvm_array *a);     /* NULL is fine */

/* ---- arrays from data. shape: rank sizes; strides: in bytes, NULL for row-major. */
/* copies */
NVM_API nvm_array *nvm_from_host(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const void *data);
/* Borrows `data` until release(owner) is called: when nothing needs it any more, or at once if no array could be made.
   The data must not change meanwhile. release may run in any thread that evaluates or drops arrays, and must not call
   nvm. */
NVM_API nvm_array *nvm_from_host_borrow(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape,
                                        const int64_t *strides, const void *data, void (*release)(void *owner),
                                        void *owner);
NVM_API nvm_array *nvm_float(double x); /* weak scalars: take the dtype of what they meet, as Python's do */
NVM_API nvm_array *nvm_int(int64_t x);
NVM_API nvm_array *nvm_bool(int x);
NVM_API nvm_array *nvm_complex(double re, double im);
NVM_API nvm_array *nvm_none(void); /* an absent operand: a clip bound, a bias */

/* ---- looking at arrays (nothing is evaluated by these). Of NULL: NVM_DTYPE_DEFAULT, no dimensions, no elements. */
NVM_API nvm_dtype nvm_dtype_of(const nvm_array *a);
NVM_API int nvm_rank(const nvm_array *a);
NVM_API const int64_t *nvm_shape(const nvm_array *a);         /* rank sizes; valid as long as the array */
NVM_API int64_t nvm_size(const nvm_array *a);                 /* elements */
NVM_API int nvm_is_pending(const nvm_array *a);               /* 1: has no value yet */
NVM_API const char *nvm_dtype_name(nvm_dtype t);              /* "float32"; "none" of what is no dtype */
NVM_API int nvm_dtype_find(nvm_dtype *out, const char *name); /* "float32" or "f32"; else NVM_ERR_TYPE */
NVM_API size_t nvm_dtype_size(nvm_dtype t);                   /* bytes of an element; 0 of what is no dtype */

/* ---- values */
NVM_API int nvm_eval(nvm_array *const *arrays, int n); /* together: shared work is done once */
/* evaluates; packed, row-major; bytes must match */
NVM_API int nvm_copy_to_host(nvm_array *a, void *out, size_t bytes);
/* Evaluates: NVM_ERR_INDEX if an index that the elements depend on is out of range. On a GPU that is known when the
   index has been looked at: this waits for it, and if there are no such indices for nothing. */
NVM_API int nvm_check_indices(nvm_array *a);
/* Evaluates and shows the elements in host memory: address of the first and strides in bytes (rank of them, filled in),
   valid until the array, or what it is a view of, is written or let go. Read only. Of an array on a GPU: a copy
   (nvm_device_data shows where it lies). */
NVM_API int nvm_data(const void **data, int64_t *strides, nvm_array *a);
/* waits until all that was launched on GPUs has finished; raises what failed there. ctx NULL is fine. */
NVM_API int nvm_synchronize(nvm_ctx *ctx);
/* The plan of evaluating these now, as text: kernels, bytes against the minimum, flops, why each edge was not fused.
   Of arrays on several devices, a plan for each. *text is freed with nvm_free. Evaluates nothing. */
NVM_API int nvm_explain(char **text, nvm_array *const *arrays, int n);
NVM_API void nvm_free(void *p);
/* Who plans, compiles or runs asks now and then, in the thread that evaluates: other than 0 ends the evaluation with
   NVM_ERR_INTERRUPTED. Nothing is half done: its arrays are pending as before and can be evaluated again; what was
   donated is lost only if steps had begun to run that may write to it. asked must be quick and must not call nvm. Of
   the process, to be set while nothing is evaluated; NULL: nobody is asked. Waiting for a GPU, in reads and
   nvm_synchronize too, and for another thread's evaluation is interrupted likewise; what runs on a GPU goes on, and the
   destination of a copy may have been written in part. Not interrupted: one compilation, a step of one block or of a
   library. */
NVM_API void nvm_interrupt_set(int (*asked)(void *user), void *user);

/* ---- any operation by number: what bindings use. Attributes (nvm_attr) are named as in the operation's signature. */
/* signature: Python-like, "(x, /, *, axis=None, keepdims=False)"; nin: operands, -1: a list of them. Texts are the
   library's. What starts with _ cannot be called, but for _getitem and _setitem: take, whose errors tell of x[...]. */
typedef struct nvm_op_info { const char *name, *kind, *signature, *doc; int nin; } nvm_op_info;
NVM_API int nvm_op_count(void);                   /* operations are numbered from 0 */
NVM_API int nvm_op_get(nvm_op_info *out, int op); /* NVM_ERR_VALUE if there is none, as the next */
NVM_API int nvm_op_find(int *out, const char *name);
/* An owned reference (nvm_array_unref), needs no open scope; NULL operands pass through. nvm_none() operands where
   optional. */
NVM_API nvm_array *nvm_apply(nvm_ctx *ctx, int op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr);
/* The same, but what NumPy makes a view of its operand is one: reshape where strides describe the result (row-major
   where the operand is no view), permute_dims, matrix_transpose, moveaxis, expand_dims, squeeze, slice, flip, real,
   imag, and astype where it neither copies nor casts; broadcast_to and diagonal, which cannot be written. What is
   written to either is seen in both, as with nvm_view. */
NVM_API nvm_array *nvm_apply_view(nvm_ctx *ctx, int op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr);
NVM_API nvm_array *nvm_base(nvm_array *a); /* borrowed: what it is a view of; what is no view itself */
/* 1: it is no view, or one whose elements lie in what it shows in row-major order without gaps */
NVM_API int nvm_is_packed(const nvm_array *a);
/* Operands of bindings, owned references that need no scope */
/* kind: 'b' and 'i' (of i), 'f' (re), 'c'; 'u' an integer from 2^63 on, of which i has uint64's bits; 'h' one that
   neither int64 nor uint64 holds, re being the nearest double, or an infinity. An integer that the dtype which it takes
   does not hold is NVM_ERR_OVERFLOW; in a comparison it lies beyond all others. */
NVM_API nvm_array *nvm_apply_scalar(nvm_ctx *ctx, char kind, int64_t i, double re, double im);
/* release NULL: copies */
NVM_API nvm_array *nvm_array_new_host(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const int64_t *strides,
                                      const void *data, void (*release)(void *owner), void *owner);

/* Owned: what `a` stands for now, under a handle of its own that later writes to `a` do not change. Copies no data. */
NVM_API nvm_array *nvm_snapshot(nvm_array *a);
/* The same for who reads values while other threads may write to `a`: inside a trace too it is no input of the
   trace. */
NVM_API nvm_array *nvm_hold(nvm_array *a);

NVM_API int nvm_is_same(nvm_array *a, nvm_array *b); /* 1: both stand for the same lazy expression or value */

/* Evaluates, and gives the array up: reading it is an error, and what was built from it may take its memory when it is
   evaluated, if nothing else that is still pending and held (by a scope too) needs it. */
NVM_API int nvm_donate(nvm_array *a);

/* ---- item assignment: basic indexing that writes through */
/* Owned: count[d] elements of each of a's `rank` dimensions, from start[d] on at step[d] (not 0), all of them
   inside, else NVM_ERR_INDEX. drop[d] other than 0: count[d] is 1, and the dimension is none of the view's; drop NULL:
   all stay. What is written to either is seen in both. */
NVM_API nvm_array *nvm_view(nvm_array *a, int rank, const int64_t *start, const int64_t *count, const int64_t *step,
                            const int *drop);
/* Owned: the same elements in row-major order, in another shape; what is written is seen likewise. */
NVM_API nvm_array *nvm_view_as(nvm_array *a, int rank, const int64_t *shape);
NVM_API int nvm_assign(nvm_array *a, nvm_array *value); /* a[...] = value, cast and broadcast to a */
/* The same to what nvm_view would give of `a`, without making it. */
NVM_API int nvm_assign_view(nvm_array *a, int rank, const int64_t *start, const int64_t *count, const int64_t *step,
                            const int *drop, nvm_array *value);
/* The same to a's elements at these positions in row-major order (int64, one dimension, negative ones from the end, out
   of range NVM_ERR_INDEX), to which `value` is broadcast; the last of several for one element stays. *done 0: nothing
   was stored, since it takes an expression: in a trace, on a GPU. */
NVM_API int nvm_assign_at(int *done, nvm_array *a, nvm_array *at, nvm_array *value);
/* Owned: the element at index[d], not negative, of each of a's dimensions, which later writes do not change. */
NVM_API nvm_array *nvm_element(nvm_array *a, const int64_t *index);
NVM_API int nvm_check_writable(const nvm_array *a); /* the status with which nvm_assign would refuse it */

/* ---- functions: traced once for each signature, then called at launch cost. A function keeps the graphs of the 64
   signatures (dtypes and shapes) used last, a graph the programs of the 64 ways in which its arguments lay last. */
/* inside a scope; a status; out borrowed */
typedef int (*nvm_trace_fn)(void *user, nvm_ctx *ctx, nvm_array *const *in, int nin, nvm_array **out, int nout);
/* *out: for nvm_fn_free. `user` is handed to `trace`, whenever that is called; nout is 1 or more. */
NVM_API int nvm_fn_new(nvm_fn **out, nvm_ctx *ctx, nvm_trace_fn trace, void *user, int nin, int nout);
NVM_API int nvm_fn_free(nvm_fn *f); /* NULL is fine */
/* in: nin arrays; out: nout owned references with values, all NULL if it fails. Inside of a trace it becomes part of
   that, and they are pending. */
NVM_API int nvm_fn_call(nvm_fn *f, nvm_array *const *in, nvm_array **out);
NVM_API int nvm_fn_explain(char **text, nvm_fn *f, nvm_array *const *in); /* as nvm_explain, of that call */
/* Tracing by hand, what nvm_fn_call and bindings stand on: placeholders in, outputs out. Between begin and end reading
   a value that depends on a placeholder is an error. */
NVM_API nvm_array *nvm_placeholder(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape); /* owned */
/* owned; a weak scalar, kind as above: calls pass nvm_apply_scalar's, or an array of no dimensions in host memory ('i'
   int64, 'u' uint64, 'f' and 'h' float64). with: the argument that it is traced with, NULL: 0; of an integer a trace
   may ask whether a dtype holds it. */
NVM_API nvm_array *nvm_placeholder_scalar(nvm_ctx *ctx, char kind, const nvm_array *with);
typedef struct nvm_traced nvm_traced;       /* a graph with parameters, and its programs by exact signature */
NVM_API int nvm_trace_begin(nvm_ctx *ctx); /* one at a time in a thread, else NVM_ERR_STATE */
NVM_API int nvm_trace_end(nvm_ctx *ctx);
/* *out: the graph of `outs` over these placeholders, for nvm_traced_free; made before the trace ends */
NVM_API int nvm_traced_new(nvm_traced **out, nvm_ctx *ctx, nvm_array *const *params, int nparam, nvm_array *const *outs,
                           int nout);
/* Each call gives that argument up, as nvm_donate does; to be said before the first call. */
NVM_API int nvm_traced_donate(nvm_traced *t, int param);
/* 1: whatever the trace asked of its integers, these arguments' have the same answers; 1 of NULL */
NVM_API int nvm_traced_accepts(const nvm_traced *t, nvm_array *const *in);
/* in[i]: arrays of the placeholders' dtype and shape, which it takes, evaluated if pending. out: owned references with
   values. */
NVM_API int nvm_traced_call(nvm_traced *t, nvm_array *const *in, nvm_array **out);
/* As nvm_explain, for arguments as they lay in the last call */
NVM_API int nvm_traced_explain(char **text, nvm_traced *t);
NVM_API void nvm_traced_free(nvm_traced *t); /* NULL is fine; calls that run keep it until they end */

/* ---- settings and counters */
/* "fuse", "off"; names as NVM_... with the prefix or without, in any case; value NULL: the default. What the setting
   does not take: NVM_ERR_VALUE. */
NVM_API int nvm_set(const char *name, const char *value);
/* Row i of the settings: 1, and 0 past the end. *value is valid until it is set. What is not wanted may be NULL. */
NVM_API int nvm_setting(int i, const char **name, const char **value, const char **def, const char **doc);
typedef struct nvm_counters {
  unsigned version; /* NVM_COUNTERS_VERSION */
  /* of this process since it began: kernels compiled, kernels from the disk cache, programs planned, evaluations and
     kernels run; bytes of arrays and temporaries in host memory, now and at most */
  int64_t kernels_compiled, kernels_loaded, programs_planned, evaluations, kernels_run, bytes_used, bytes_peak;
} nvm_counters;
#define NVM_COUNTERS_VERSION 1
NVM_API int nvm_counters_get(nvm_counters *out, unsigned version);
NVM_API int nvm_counters_reset_peak(void); /* bytes_peak := bytes_used */
NVM_API int nvm_info(char **text);         /* what was found on this machine, a line each; nvm_free */
/* A status: why kernels are not compiled for the CPU (LLVM is not there, the CPU lacks AVX2 or FMA). The interpreter
   runs them then: the same bits, some five times the time. Loads LLVM to find out. */
NVM_API int nvm_llvm_usable(void);
/* 1: this process runs a kernel in the interpreter for that reason which would have been compiled. Quick, loads
   nothing. */
NVM_API int nvm_llvm_missed(void);

#ifdef __cplusplus
}
#endif
#include "nvm/device.h"
#include "nvm/ops.h"
#include "nvm/tune.h"
#endif
