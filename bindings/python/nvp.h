/* What the files of the Python extension share. It stands on include/nvm alone and on CPython's limited API 3.11:
   heap types, multi-phase initialisation, every Python object in the module's state. */
#ifndef NVP_H
#define NVP_H
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <structmember.h>
#include "nvm/nvm.h"

typedef enum nvp_fixed { /* the operations that Python's syntax needs, found by name in the library's table */
#define FIXED(id, name) NVP_##id,
#include "fixed.def"
#undef FIXED
                     NVP_NFIXED
} nvp_fixed;

enum { NVP_NUMBERS = 64 };
typedef struct nvp_number { uint64_t bits; char kind; nvm_array *h; } nvp_number;

typedef struct nvp_state {
  nvm_ctx *ctx;
  nvp_number numbers[NVP_NUMBERS]; /* weak scalars that were made lately, by kind and bits */
  PyTypeObject *array, *dtype, *op, *method, *jit;
  PyObject *error;               /* nvm.Error */
  PyObject *dtypes[NVM_NDTYPES]; /* nvm.float32 ... */
  PyObject *functions;           /* dict: name -> function, the whole op table */
  PyObject *hooks;               /* dict: name -> the Python function that does the long version of something */
  PyObject *s_array_interface, *s_dlpack, *s_array, *s_priority, *s_name, *s_dunder_name, *s_cuda_interface,
      *s_exchange;       /* names of attributes */
  int fixed[NVP_NFIXED]; /* op numbers; -1: this library has no such operation */
} nvp_state;

typedef struct nvp_array {
  PyObject_HEAD nvm_array *h; /* owned */
  nvm_array *shown;           /* owned; what was last shown by address alone, which later writes leave alone; NULL */
  nvp_state *st;              /* lives as long as the type */
  PyObject *weakrefs;
} nvp_array;

typedef struct nvp_dtype { PyObject_HEAD nvm_dtype t; nvp_state *st; } nvp_dtype;

/* module.c */
PyObject *nvp_raise(nvp_state *st);       /* sets the exception of the thread's last nvm failure; NULL */
int nvp_check(nvp_state *st, int status); /* 0, or -1 with the exception set */
/* The same of what evaluates. Where kernels should have been compiled and nothing can, it warns, once in a process. */
int nvp_ran(nvp_state *st, int status);
PyObject *nvp_text(nvp_state *st, int status, char *text); /* what a call of the library wrote; takes it */
PyObject *nvp_hook(nvp_state *st, const char *name);       /* borrowed; NULL with an exception */
/* Release callback of memory that a Python object owns: a queue takes the reference, since the thread may not be one
   that can touch Python. */
void nvp_release(void *owner);
void nvp_release_capsule(void *managed); /* the same for a DLPack managed tensor */
void nvp_drain(void);                    /* frees what the queue holds; needs the interpreter's lock */

/* interrupt.c: Ctrl-C. What may take long is called without the interpreter's lock by this, again if the signal's
   handler raises nothing. */
#define NVP_UNLOCKED(status, call) do { \
    Py_BEGIN_ALLOW_THREADS \
    nvp_listen(1); \
    (status) = (call); \
    nvp_listen(0); \
    Py_END_ALLOW_THREADS \
  } while (nvp_again(status))
void nvp_listen_first(void); /* when the module is imported */
void nvp_listen(int on);     /* may this thread's evaluation be interrupted? */
int nvp_again(int status);   /* 0 with KeyboardInterrupt raised, or where it was not interrupted */

/* array.c */
extern PyType_Spec nvp_array_spec;
int nvp_is_array(PyObject *x);                           /* without the state */
PyObject *nvp_wrap(nvp_state *st, nvm_array *h);         /* takes h; NULL raises */
int nvp_eval(nvp_state *st, nvm_array *const *a, int n); /* without the interpreter's lock; 0 or -1 */
/* Evaluates, and shows the elements in host memory; what owns them, to be unrefed, whatever other threads write to a
   meanwhile */
nvm_array *nvp_read(nvp_array *a, const void **data, int64_t *strides);
int nvp_copy_out(nvp_array *a, void *to, size_t bytes); /* the same, packed into memory of the caller's; 0 or -1 */
PyObject *nvp_apply(nvp_state *st, nvp_fixed f, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr);
PyObject *nvp_ints(const int64_t *v, int n); /* a tuple */
int nvp_finish_array(nvp_state *st);

/* functions.c */
extern PyType_Spec nvp_op_spec, nvp_method_spec;
PyObject *nvp_einsum_path(PyObject *module, PyObject *args); /* (subscripts, order, operands) */
int nvp_add_functions(PyObject *module, nvp_state *st);
int nvp_add_methods(nvp_state *st); /* to the type Array */

/* convert.c: what an operand may be. 1 and a handle (*owned: the caller unrefs it), 0 not an array of any sort, -1
   raised */
int nvp_operand(nvp_state *st, PyObject *x, nvm_array **out, int *owned);
/* What is to be stored in an array of dtype t: Python numbers must fit it. */
int nvp_operand_for(nvp_state *st, PyObject *x, nvm_dtype t, nvm_array **out, int *owned);
int nvp_is_scalar(PyObject *x); /* 'b' 'i' 'f' 'c' of a Python number (not NumPy's), else 0 */
nvm_array *nvp_scalar(nvp_state *st, PyObject *x, char kind); /* weak; a reference; NULL raised */
/* The kind of a Python integer, as nvm_apply_scalar has them, and what it takes of one */
char nvp_integer(PyObject *x, int64_t *i, double *nearest);
void nvp_forget_numbers(nvp_state *st);
typedef enum nvp_copy { NVP_COPY_NEVER, NVP_COPY_ALWAYS, NVP_COPY_IF_NEEDED } nvp_copy;
int nvp_copy_of(PyObject *x, nvp_copy *out); /* an argument `copy`: None, or what is true or false; 0 or -1 */
PyObject *nvp_asarray(nvp_state *st, PyObject *x, nvm_dtype t, nvp_copy copy);
/* An array of what has a buffer, DLPack, __array__ or the like; NULL raised, or None if x is nothing of the kind */
PyObject *nvp_from_object(nvp_state *st, PyObject *x, nvp_copy copy);
int nvp_has_buffer(PyObject *x); /* bytes-like things excluded */
/* A handle over x's buffer for the length of a call; then unref it and release *view. 1, 0 (nothing held: no such
   dtype), -1 */
int nvp_borrow(nvp_state *st, PyObject *x, nvm_array **out, Py_buffer *view);
/* The same over a GPU's memory, which it keeps: 0 x is nothing of the kind */
int nvp_borrow_device(nvp_state *st, PyObject *x, nvm_array **out);
extern PyMethodDef nvp_asarray_def[];

/* device.c */
int nvp_device(nvp_state *st, PyObject *x, nvm_device *out); /* None: AUTO; 0 or -1 */
PyObject *nvp_device_object(nvp_state *st, nvm_device d);    /* nvm.device */
nvm_array *nvp_put(nvm_array *h, nvm_device d); /* h there, as it is for AUTO; takes h, NULL passes through */
nvm_array *nvp_copied(nvm_array *h);            /* a copy of what was borrowed; takes h, NULL passes through */
PyObject *nvp_cuda_interface(PyObject *self, void *unused);
PyObject *nvp_from_cuda(nvp_state *st, PyObject *x, nvp_copy copy); /* x has __cuda_array_interface__ */
extern PyMethodDef nvp_device_def[];

/* dtype.c */
extern PyType_Spec nvp_dtype_spec;
int nvp_add_dtypes(PyObject *module, nvp_state *st);
/* A dtype of nvm or NumPy, a name, bool, int, float, complex; None: NVM_DTYPE_DEFAULT. 0 or -1 */
int nvp_dtype_from(nvp_state *st, PyObject *x, nvm_dtype *out);
PyObject *nvp_dtype_object(nvp_state *st, nvm_dtype t);      /* new reference */
const char *nvp_format(nvm_dtype t);                         /* buffer protocol; NULL: it has no code */
int nvp_dtype_of_format(const char *format, nvm_dtype *out); /* 1 found, 0 not, -1 wrong byte order */
char nvp_kind(nvm_dtype t);                                  /* 'b' 'i' 'u' 'f' 'c' */

/* dlpack.c */
PyObject *nvp_to_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *nvp_dlpack_device(PyObject *self, PyObject *unused);
/* h, which has its value, or where it has a negative stride a packed copy (*copied: 1); takes h, NULL passes through */
nvm_array *nvp_forward(nvp_state *st, nvm_array *h, int *copied);
/* d: put there, AUTO: where it is */
PyObject *nvp_from_dlpack(nvp_state *st, PyObject *x, nvp_copy copy, nvm_device d);
/* x, or where PyTorch's conjugate or negative bit of it is set, what resolves it: no protocol tells of these. A new
   reference; NULL raised, also where copy says never. */
PyObject *nvp_resolved(PyObject *x, nvp_copy copy);
int nvp_on_gpu(PyObject *x); /* x has __dlpack__: does it lie on a GPU? -1 raised */
void nvp_managed_delete(void *managed);
int nvp_add_exchange(nvp_state *st); /* the C exchange API, to the type Array */

/* index.c */
PyObject *nvp_getitem(PyObject *self, PyObject *key);
int nvp_setitem(PyObject *self, PyObject *key, PyObject *value);
PyObject *nvp_assign_at(PyObject *module, PyObject *args); /* (x, positions, value) */
PyObject *nvp_nonzero(PyObject *module, PyObject *mask);
PyObject *nvp_index_outside(PyObject *module, PyObject *args); /* (indices, extent, evaluate) */

/* tune.c */
extern PyMethodDef nvp_tune_def[];

/* jit.c */
extern PyType_Spec nvp_jit_spec;
int nvp_tracing(void); /* the thread is inside a trace */

/* capture.c */
typedef struct nvp_capture {
  PyObject *x;      /* counted: an array of others that the traced function met */
  nvm_array *array; /* counted: the parameter that stands for it */
  int read;         /* its value was looked at while the function was traced */
} nvp_capture;
PyObject *nvp_captured(nvp_state *st, PyObject *x, nvp_copy copy); /* nvp_from_object's answer inside a trace */
void nvp_captures_read(void); /* a value is looked at: whatever was met so far may be in it */
/* What the trace that ends met, for nvp_captures_free; but for what nobody else holds, which is constant */
nvp_capture *nvp_captures_take(int *n);
void nvp_captures_free(nvp_capture *at, int n);

/* statics.c */
int nvp_same_static(PyObject *a, PyObject *b); /* 1, 0, or -1 raised */
#endif
