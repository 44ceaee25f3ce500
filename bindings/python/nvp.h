/* The structures and functions that the files of the Python extension share. The extension uses only include/nvm and
   CPython's limited API 3.11: heap types, multi-phase initialisation, and all Python objects in the module's state. */
#ifndef NVP_H
#define NVP_H
#define PY_SSIZE_T_CLEAN
#include <pyconfig.h>
#if !defined(Py_LIMITED_API) && !defined(Py_GIL_DISABLED) /* a free-threaded CPython before 3.15 has no limited API */
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stdatomic.h>
#include <structmember.h>
#include "nvm/nvm.h"

typedef enum nvp_fixed { /* operations that Python's syntax needs, looked up by name in the library's table */
#define FIXED(id, name) NVP_##id,
#include "fixed.def"
#undef FIXED
                     NVP_NFIXED
} nvp_fixed;

enum { NVP_NUMBERS = 64 };
typedef struct nvp_number { uint64_t bits; char kind; nvm_array *h; } nvp_number;

typedef struct nvp_state {
  nvm_ctx *ctx;
  nvp_number numbers[NVP_NUMBERS]; /* a cache of recent weak scalars, by kind and bits */
  PyTypeObject *array, *dtype, *op, *method, *jit, *ufunc, *route;
  PyObject *error;               /* nvm.Error */
  PyObject *dtypes[NVM_NDTYPES]; /* nvm.float32 ... */
  PyObject *functions;           /* dict: name -> function, for all operations */
  PyObject *hooks;               /* dict: name -> a Python function of the package */
  PyObject *ufuncs;              /* dict: NumPy's ufunc -> nvm's */
  PyObject *routes;              /* dict: NumPy's function -> the Route to nvm's */
  PyObject *known_dtypes;        /* dict: NumPy's dtypes and types of numbers -> nvm's dtype */
  PyObject *doctor;              /* what nvm.doctor calls, or NULL */
  PyObject *s_array_interface, *s_dlpack, *s_array, *s_priority, *s_name, *s_dunder_name, *s_cuda_interface,
      *s_exchange, *s_dataclass, *s_array_ufunc, *s_axis, *s_keepdims, *s_dtype, *s_initial,
      *s_where;          /* interned attribute names */
  int fixed[NVP_NFIXED]; /* operation numbers; -1: the library has no such operation */
} nvp_state;

typedef struct nvp_array {
  PyObject_HEAD nvm_array *h; /* owned */
  /* owned; the value that was last exported by address only, which later writes must not change; or NULL */
  nvm_array *shown;
  nvp_state *st; /* the state lives as long as the type */
  PyObject *weakrefs;
} nvp_array;

typedef struct nvp_dtype { PyObject_HEAD nvm_dtype t; nvp_state *st; } nvp_dtype;

/* ---- module.c */
PyObject *nvp_raise(nvp_state *st); /* raises the thread's last nvm failure; returns NULL */
/* Makes the message of the exception, if there is one, name the function of nvm.numpy that the program called, where
   that is made of operations with other names, or `who`, an operation; returns NULL. */
PyObject *nvp_name_caller(nvp_state *st, const char *who);
int nvp_check(nvp_state *st, int status); /* 0, or -1 with an exception */
/* The same after an evaluation. Warns once in a process if kernels should have been compiled but LLVM is missing. */
int nvp_ran(nvp_state *st, int status);
PyObject *nvp_text(nvp_state *st, int status, char *text); /* a text from a call of the library as a str; takes it */
PyObject *nvp_hook(nvp_state *st, const char *name);       /* borrowed; NULL with an exception */
/* The release callback of memory that a Python object owns: puts the reference into a queue, since the thread may not
   hold the GIL. */
void nvp_release(void *owner);
void nvp_release_capsule(void *managed); /* the same for a DLPack managed tensor */
void nvp_drain(void);                    /* releases what is in the queue; needs the GIL */

/* ---- describe.c: what help() shows of an operation, behind its name and signature, in the form that inspect reads;
   malloc'ed. */
char *nvp_describe(const char *name, const nvm_op_info *info, const char *signature);

/* ---- interrupt.c: Ctrl-C. Makes a long call without the GIL, and again if an interrupt ended it and the signal's
   handler raised nothing. */
#define NVP_UNLOCKED(status, call) do { \
    Py_BEGIN_ALLOW_THREADS \
    nvp_listen(1); \
    (status) = (call); \
    nvp_listen(0); \
    Py_END_ALLOW_THREADS \
  } while (nvp_again(status))
/* Makes an array with the GIL. Where the graph would become too deep it is evaluated, and Ctrl-C ends that too. */
#define NVP_MADE(array, call) do { \
    nvp_listen(1); \
    (array) = (call); \
    nvp_listen(0); \
  } while (!(array) && nvp_again(nvm_last_status()))
void nvp_listen_first(void);                /* called when the module is imported */
void nvp_listen(int on);                    /* sets whether this thread's evaluations can be interrupted */
void nvp_listen_to(const atomic_int *flag); /* this thread's evaluations end where *flag is set; NULL: they do not */
int nvp_again(int status);                  /* 1: call again; 0: not interrupted, or an exception was raised */

/* ---- array.c */
extern PyType_Spec nvp_array_spec;
int nvp_is_array(PyObject *x);                   /* works without the module's state */
PyObject *nvp_wrap(nvp_state *st, nvm_array *h); /* takes h; NULL raises the last failure */
/* Evaluates without the GIL; 0 or -1. who: the function or the conversion that asks, for nvm.doctor. */
int nvp_eval(nvp_state *st, const char *who, nvm_array *const *a, int n);
/* Evaluates a and gives the address and strides of its elements in host memory. Returns a handle that owns them, which
   the caller unrefs; other threads may write to a meanwhile. */
nvm_array *nvp_read(nvp_array *a, const char *who, const void **data, int64_t *strides);
/* copies the elements, packed, to the caller's memory; 0 or -1 */
int nvp_copy_out(nvp_array *a, const char *who, void *to, size_t bytes);
PyObject *nvp_apply(nvp_state *st, nvp_fixed f, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr);
PyObject *nvp_ints(const int64_t *v, int n); /* a tuple of ints */
int nvp_defers_to(nvp_state *st,
                  PyObject *x); /* does x, which is no array of nvm, handle operators with them itself? */
int nvp_finish_array(nvp_state *st);
/* An operator: x or y is an array of nvm. NotImplemented: the other one is no array, or handles operators itself. */
PyObject *nvp_binary(PyObject *x, PyObject *y, nvp_fixed f);

/* ---- compare.c */
PyObject *nvp_compare(PyObject *x, PyObject *y, int op); /* x is an array of nvm */

/* ---- buffer.c */
int nvp_getbuffer(PyObject *self, Py_buffer *view, int flags);
void nvp_releasebuffer(PyObject *self, Py_buffer *view);
PyObject *nvp_show(PyObject *module, PyObject *x); /* a memoryview of an array; of one on a GPU, of a copy */

/* ---- functions.c */
extern PyType_Spec nvp_op_spec, nvp_method_spec;
PyObject *nvp_einsum_path(PyObject *module, PyObject *args); /* (subscripts, order, operands) */
int nvp_add_functions(PyObject *module, nvp_state *st);
int nvp_is_table_function(PyObject *f);
/* f is one; names: a tuple of keywords, whose values follow the n arguments, or NULL */
PyObject *nvp_call_table(PyObject *f, PyObject *const *args, Py_ssize_t n, PyObject *names);
int nvp_add_methods(nvp_state *st); /* adds methods to the type Array */
/* Calls the hook numpy_method(name, self, *args, **kw), for arguments that only NumPy's method of that name has; self
   NULL: it is the first one of args. */
PyObject *nvp_numpy_method(nvp_state *st, const char *name, PyObject *self, PyObject *args, PyObject *kw);

/* ---- ufunc.c */
extern PyType_Spec nvp_ufunc_spec;
PyObject *nvp_array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);

/* ---- function_call.c */
extern PyType_Spec nvp_route_spec;
PyObject *nvp_array_function(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* ---- convert.c: converts an operand. 1 and a handle (*owned: the caller unrefs it), 0: it is no array of any kind,
   -1: an exception. */
int nvp_operand(nvp_state *st, PyObject *x, nvm_array **out, int *owned);
/* The same for a value to be stored in an array of dtype t, which Python numbers must fit. */
int nvp_operand_for(nvp_state *st, PyObject *x, nvm_dtype t, nvm_array **out, int *owned);
int nvp_is_scalar(PyObject *x); /* the kind 'b' 'i' 'f' 'c' of a Python number (not NumPy's), else 0 */
nvm_array *nvp_scalar(nvp_state *st, PyObject *x, char kind); /* a weak scalar; a reference; NULL with an exception */
/* The kind of a Python integer for nvm_apply_scalar, and the arguments that it takes for it. */
char nvp_integer(PyObject *x, int64_t *i, double *nearest);
void nvp_forget_numbers(nvp_state *st);
typedef enum nvp_copy { NVP_COPY_NEVER, NVP_COPY_ALWAYS, NVP_COPY_IF_NEEDED } nvp_copy;
int nvp_copy_of(PyObject *x, nvp_copy *out); /* reads an argument `copy`: None, true or false; 0 or -1 */
PyObject *nvp_asarray(nvp_state *st, PyObject *x, nvm_dtype t, nvp_copy copy);
/* Makes an array of an object with a buffer, DLPack, __array__ or the like. NULL with an exception; None if x has none
   of these. */
PyObject *nvp_from_object(nvp_state *st, PyObject *x, nvp_copy copy);
/* Has x a buffer that can be read? bytes and bytearray do not count, nor do arrays of others that lie on a GPU. */
int nvp_has_buffer(nvp_state *st, PyObject *x);
/* Makes a handle over x's buffer for one call; the caller then unrefs it and releases *view. 1: made, 0: no such dtype,
   nothing is held, -1: an exception. */
int nvp_borrow(nvp_state *st, PyObject *x, nvm_array **out, Py_buffer *view);
/* The same over memory that x shows by DLPack or CUDA's interface; the handle keeps it alive. 0: it shows none. */
int nvp_borrow_foreign(nvp_state *st, PyObject *x, nvm_array **out);
extern PyMethodDef nvp_asarray_def[];

/* ---- device.c */
int nvp_device(nvp_state *st, PyObject *x, nvm_device *out); /* None means AUTO; 0 or -1 */
PyObject *nvp_device_object(nvp_state *st, nvm_device d);    /* an nvm.device */
/* moves h to d, or leaves it for AUTO; takes h, NULL passes through */
nvm_array *nvp_put(nvm_array *h, nvm_device d);
nvm_array *nvp_copied(nvm_array *h); /* copies a borrowed array; takes h, NULL passes through */
PyObject *nvp_cuda_interface(PyObject *self, void *unused);
PyObject *nvp_from_cuda(nvp_state *st, PyObject *x, nvp_copy copy); /* x has __cuda_array_interface__ */
extern PyMethodDef nvp_device_def[];

/* ---- dtype.c */
extern PyType_Spec nvp_dtype_spec;
int nvp_add_dtypes(PyObject *module, nvp_state *st);
/* Reads a dtype of nvm or NumPy, a name, or bool, int, float, complex; None means NVM_DTYPE_DEFAULT. 0 or -1. */
int nvp_dtype_from(nvp_state *st, PyObject *x, nvm_dtype *out);
PyObject *nvp_dtype_object(nvp_state *st, nvm_dtype t);      /* a new reference */
const char *nvp_format(nvm_dtype t);                         /* its code in the buffer protocol; NULL: none */
int nvp_dtype_of_format(const char *format, nvm_dtype *out); /* 1 found, 0 not found, -1 wrong byte order */
char nvp_kind(nvm_dtype t);                                  /* 'b' 'i' 'u' 'f' 'c' */

/* ---- dlpack.c */
PyObject *nvp_to_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *nvp_dlpack_device(PyObject *self, PyObject *unused);
/* Returns h, which has a value, or a packed copy if it has a negative stride (*copied becomes 1); takes h, NULL passes
   through. */
nvm_array *nvp_forward(nvp_state *st, nvm_array *h, int *copied);
/* d: the device to move it to; AUTO: stays where it is. */
PyObject *nvp_from_dlpack(nvp_state *st, PyObject *x, nvp_copy copy, nvm_device d);
/* Returns x, or a resolved copy if PyTorch's conjugate or negative bit is set, which no protocol transmits. A new
   reference; NULL with an exception, also if copy is NEVER and a copy is needed. */
PyObject *nvp_resolved(PyObject *x, nvp_copy copy);
void nvp_managed_delete(void *managed);
int nvp_add_exchange(nvp_state *st); /* adds the C exchange API to the type Array */

/* ---- index.c */
PyObject *nvp_getitem(PyObject *self, PyObject *key);
int nvp_setitem(PyObject *self, PyObject *key, PyObject *value);
/* The setter of attributes that an array keeps for its life; instead: what to write. */
int nvp_set_never(PyObject *self, PyObject *value, void *instead);
PyObject *nvp_nonzero(PyObject *module, PyObject *mask);
PyObject *nvp_is_writable(PyObject *module, PyObject *array);  /* may its elements be set? */
PyObject *nvp_index_outside(PyObject *module, PyObject *args); /* (indices, extent, evaluate) */

/* ---- doctor.c: tells nvm.doctor, if it is on, what is about to be evaluated or copied, and what it took. Neither
   raises. */
typedef struct nvp_visit { PyObject *note; long long began, copied; } nvp_visit; /* owned by the pair of calls */
nvp_visit nvp_doctor_begin(nvp_state *st, const char *who, nvm_array *const *a, int n);
nvp_visit nvp_doctor_begin_read(nvp_state *st, const char *who, nvm_array *const *a, int n); /* if it has to wait */
void nvp_doctor_end(nvp_state *st, nvp_visit *v);
void nvp_doctor_traced(nvp_state *st, PyObject *fn,
                       nvm_traced *t); /* t was traced from fn; NULL: it returns no array */
extern PyMethodDef nvp_doctor_def[];

/* ---- tune.c */
extern PyMethodDef nvp_tune_def[];

/* ---- evaluation.c */
extern PyMethodDef nvp_evaluation_def[];
PyObject *nvp_ready(PyObject *self, PyObject *unused); /* Array.ready */
/* Collects the arrays among the arguments, which may be nested in tuples, lists and dicts: references. 0 or -1; the
   caller frees them in any case. */
typedef struct nvp_gathered { nvp_state *st; nvm_array **a; Py_ssize_t n, cap; } nvp_gathered;
int nvp_gather(nvp_gathered *g, PyObject *x);
void nvp_gather_free(nvp_gathered *g);

/* ---- stream.c */
extern PyMethodDef nvp_stream_def[];

/* ---- profile.c */
extern PyMethodDef nvp_profile_def[];

/* ---- random.c */
extern PyMethodDef nvp_random_def[];

/* ---- jit.c */
extern PyType_Spec nvp_jit_spec;
int nvp_jitting(void); /* is the thread inside the trace of a jitted function? */
int nvp_tracing(void); /* the same, or inside one of a loop or of vmap */

/* ---- loop.c */
int nvp_in_body(void);       /* is the thread inside the trace of a function of a loop or of vmap? */
void nvp_enter_body(int by); /* 1: it enters such a trace, -1: it leaves one, 0: nothing changes */
extern PyMethodDef nvp_loop_def[];

/* ---- vmap.c */
extern PyMethodDef nvp_vmap_def[];

/* ---- capture.c */
typedef struct nvp_capture {
  PyObject *x;      /* counted; a foreign array that the traced function used */
  nvm_array *array; /* counted; the hidden parameter that stands for it */
  int read;         /* the trace looked at its value */
} nvp_capture;
PyObject *nvp_captured(nvp_state *st, PyObject *x, nvp_copy copy); /* replaces nvp_from_object inside a trace */
void nvp_captures_read(void); /* the trace looks at a value, which any capture so far may be part of */
/* Takes the captures of a trace that ends, to be freed by nvp_captures_free. Objects that nobody else holds are
   constants and left out. */
nvp_capture *nvp_captures_take(int *n);
void nvp_captures_free(nvp_capture *at, int n);

/* ---- overlap.c: where the elements of an array lie. 0: strides do not describe it. */
typedef struct nvp_place { nvm_strided m; int64_t shape[NVM_MAX_RANK], strides[NVM_MAX_RANK]; } nvp_place;
int nvp_place_of_view(nvp_place *p, nvm_array *a);         /* in the array that a is a view of */
int nvp_place_of_value(nvp_place *p, nvm_array *a);        /* in memory, by addresses; evaluates a */
int nvp_place_of_buffer(nvp_place *p, const Py_buffer *v); /* the same */
int nvp_is_same_place(const nvp_place *p, const nvp_place *q);
int nvp_overlap(const nvp_place *p, const nvp_place *q, int64_t work); /* 1, 0, or -1 if it is not decided */
extern PyMethodDef nvp_overlap_def[];

/* ---- statics.c */
int nvp_same_static(PyObject *a, PyObject *b); /* 1 equal, 0 not, -1 exception */
#endif
