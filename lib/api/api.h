/* The structures and functions that the files of the API layer share: handles, contexts, values, evaluation, programs
   and traces. No other layer includes this header. */
#ifndef NVM_API_API_H
#define NVM_API_API_H
#include "base/err.h"
#include "dispatch/cuda/device.h"
#include "nvm/nvm.h"
#include "nvm/random.h"

/* A handle: an array as the user holds it. `node` is the node that it stands for. A view (base != NULL) derives its
   node when it is first used and after its base has changed. */
struct nvm_array {
  atomic_int refs;
  nvm_ctx *ctx;              /* counted */
  nvg_node *node;            /* counted */
  nvm_array *base;           /* counted; a view's base, which is no view itself; or NULL */
  nvg_lens *lens;            /* for a view: what it shows of the base */
  nvm_array *views;          /* the first view of this array, in an unordered list under the lock of handles */
  nvm_array *before, *after; /* for a view: its neighbours in the base's list */
  atomic_ullong version;     /* starts at 1 and grows with each write */
  /* for a view: the base's version that `node` was derived from; 0: `node` is the top of the lens */
  atomic_ullong seen;
  uint8_t touched; /* number of partial writes and element reads since it became pending */
  uint8_t fixed;   /* NVA_FIXED: read-only; NVA_OUTSIDE: made in a trace to show an array from outside it */
  uint64_t trace;  /* the trace that it was made in; 0: none */
};
enum { NVA_OPEN = 1, NVA_FIXED, NVA_OUTSIDE };
struct nvm_ctx {
  atomic_int refs;
  atomic_int scopes; /* number of open scopes in all threads */
  nvm_dtype default_float;
  /* the default device of arrays that were not put anywhere: 1 the CPU, 2 + ordinal a GPU; 0: not decided yet */
  atomic_int device;
};

/* ---- context.c, scope.c */
nvm_ctx *nva_ctx_ref(nvm_ctx *c);
void nva_ctx_unref(nvm_ctx *c);
nvm_ctx *nva_scope_ctx(void); /* the context of the thread's innermost scope; NULL with a message if none is open */
nvm_array *nva_scope_keep(nvm_array *a); /* gives the reference to the innermost scope; NULL passes through */
/* The status of a call with a NULL array: that of the scope's first failure, whose message becomes the thread's message
   again. */
int nva_null(const char *who, const char *what);
int nva_missing(const char *who, const char *what); /* the status of a call with another NULL argument */
int nva_two_contexts(const char *who);              /* the failure of a call with arrays of two contexts */

/* ---- array.c */
nvm_array *nva_array_new(nvm_ctx *c, nvg_node *n); /* makes a handle; takes n; NULL passes through */
/* The node that an array stands for, borrowed and up to date. In a trace an array from outside becomes a hidden input.
   NULL with a message. */
nvg_node *nva_node(nvm_array *a);
/* The same as a counted reference and without capturing; safe if other threads write to the array meanwhile. */
nvg_node *nva_node_ref(nvm_array *a);
extern nvm_array nva_none;                     /* the array that nvm_none returns */
void nva_stand_for(nvm_array *a, nvg_node *n); /* after a write: a, which is no view, stands for n, which is taken */
void nva_link_view(nvm_array *a, nvm_array *base); /* makes a a view of base */
void nva_forget(nvm_array *a);                     /* a view that only this thread uses releases its node */
int nva_check_kept(const nvm_array *a);            /* fails if the array was donated, or is a view of one that was */
/* The lock of handles. It protects the nodes that handles stand for, the lists of views, and memory that is written in
   place. */
void nva_handles_take(void);
void nva_handles_give(void);
void nva_invalidate(nvm_array *a); /* the array gives up its value: reading it fails from now on */

/* ---- write.c */
int nva_is_on_host(const nvm_array *base); /* are parts of it read and written in host memory, when the call is made? */
/* Has the base a value, now that a part of it is accessed? Evaluates it if that is cheap or if it has been accessed
   often. An error is in *status. */
int nva_has_value(nvm_array *base, int *status);

/* ---- mask.c: the row-major positions of a mask's ones, a list of int64 that the caller unrefs; strides in elements. A
   status. */
int nva_mask_list(nvd_buf **out, int64_t *ones, const char *data, const nvg_aval *av, const int64_t *stride);

/* ---- strided.c: strides are in bytes */
void nva_move_strided(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides, int rank,
                      const int64_t *shape, size_t each); /* `from` may repeat elements; the two must not overlap */
/* Copies to packed row-major order. strides NULL: the source is packed. */
void nva_copy_strided(void *to, const void *from, const nvg_aval *av, const int64_t *strides);

/* ---- ops.c: checks the lists of a call before anything reads them; a status */
int nva_check_call(const char *who, nvm_ctx *ctx, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr);

/* ---- at_once.c: computes an elementwise operation of numbers that have values in host memory. Returns 0 if the
   operation is to be built as nodes; else *out is its array, or NULL with a message. */
int nva_compute_at_once(nvm_array **out, nvm_ctx *ctx, nvg_op op, nvg_node *const *in, int nin);

/* ---- device.c: device numbers are those of nvg_node.device: 1 the CPU, 2 + ordinal a GPU */
int nva_decide(nvm_ctx *c);
static inline int nva_ctx_device(nvm_ctx *c) { /* the default device of a context, decided at the first call */
  int dev = atomic_load_explicit(&c->device, memory_order_relaxed);
  return dev ? dev : nva_decide(c);
}
static inline int nva_device_of(nvm_ctx *c, const nvg_node *n) { return n->device ? n->device : nva_ctx_device(c); }
nvd_device *nva_gpu(const char *who, int dev); /* the GPU; NULL with a message */
/* some thread has set a device; until then the thread-local variable is not read */
extern atomic_int nva_ever_within;
int nva_thread_device(void);
static inline int nva_default_device(void) { /* the device that this thread has set for new arrays; 0: none */
  return atomic_load_explicit(&nva_ever_within, memory_order_relaxed) ? nva_thread_device() : 0;
}

/* ---- source.c: makes an array over a value, which is taken; NULL passes through */
nvm_array *nva_leaf_over(nvm_ctx *ctx, const nvg_aval *av, nvg_value *v, int dev);
int nva_check_kind(const char *who, char kind); /* of a weak scalar; a status */

/* ---- value.c */
/* Makes a value over a buffer, which is taken; NULL passes through. Strides are in elements. */
nvg_value *nva_value_new(nvd_buf *b, char *data, int rank, const int64_t *stride);
nvg_value *nva_value_packed(const nvg_aval *av); /* packed host memory that is not written yet */
nvg_value *nva_value_copy(const nvg_value *v, const nvg_aval *av, int dev);
/* strided_copy.c: copies to host memory, and to another device; NULL with a message */
nvg_value *nva_download(const nvg_value *v, const nvg_aval *av);
nvg_value *nva_copy_across(const nvg_value *v, const nvg_aval *av, nvd_device *d);
nvg_value *nva_value_alias(nvg_value *v, int rank); /* makes another value over the same memory */
/* v on this device: itself or a replica, which v owns */
nvg_value *nva_value_kept(nvg_value *v, const nvg_aval *av, int dev);
int nva_is_borrowed(const nvg_value *v); /* is its memory the caller's, who may write to it later? */
int nva_is_alone(const nvg_value *v);    /* does nothing else hold its memory? */
/* Is it in the library's host memory, in row-major order, and not under NVM_CHECK=borrow? */
int nva_is_plain(const nvg_value *v, const nvg_aval *av);
/* computes the checksum of borrowed memory, if NVM_CHECK asks for it */
void nva_note_borrowed(nvg_value *v, const nvg_aval *av);
int nva_borrowed_unchanged(const nvg_value *v, const nvg_aval *av);
/* fails if borrowed memory has changed */
static inline int nva_check_borrowed(const nvg_value *v, const nvg_aval *av) {
  return v->sum ? nva_borrowed_unchanged(v, av) : NVM_OK;
}
/* Replaces *v by its value on device `dev`: a replica that is kept, or for borrowed memory a copy in *temporary, which
   the caller frees after the run. Returns a status. */
int nva_transfer(nvg_value **v, const nvg_aval *av, int dev, nvg_value **temporary);
int nva_copy_out(void *to, const nvg_value *v, const nvg_aval *av); /* copies to packed host memory; a status */

/* ---- stage.c: times and dumps of the stages of one program */
typedef struct nva_stages { char name[24]; const char *text; int64_t since, took; } nva_stages;
void nva_stages_start(nva_stages *s);
int nva_stage_end(nva_stages *s, const char *stage); /* 1: the stage's text is wanted */
/* Logs and dumps a stage; adds "(unchanged)" if its text equals that of the stage before. */
void nva_stage_note(nva_stages *s, const char *stage, const char *text);

/* ---- eval.c, explain.c */
int nva_eval(nvm_ctx *c, nvg_node *const *roots, int n); /* computes the value of every root; a status */
int nva_explain(char **text, nvm_ctx *c, nvg_node *const *roots, int n);
int nva_eval_if_deep(nvm_ctx *c,
                     nvg_node *n); /* evaluates n if its pending graph is too deep or holds too much memory */

/* ---- program_cache.c: programs and the cache of them */
typedef struct nva_output {
  nvg_aval aval; /* its shape is in the memory of the outputs */
  /* >= 0: a view of this leaf by offset and stride, which nothing computes; -1: the program's next output */
  int leaf;
  int donor;       /* >= 0: the output takes over this leaf's memory */
  int64_t offset;  /* elements */
  int64_t *stride; /* elements */
} nva_output;
typedef struct nva_views { int nleaf, nout; nva_output *out; } nva_views;
typedef struct nva_program nva_program;
/* (leaf_views.c) Returns the graph without the outputs that are empty or, among the first nviews of them, views of a
   leaf; *v describes all outputs. */
nvg_graph *nva_split_views(nvb_arena *a, nva_views *v, const nvg_graph *g, int nviews);
/* notes the outputs that the plan stores in a leaf's memory */
void nva_views_donors(nva_views *v, const nvf_plan *p);
enum { NVA_ATTEMPTS = NVF_VETOES + 1 }; /* the most attempts to fuse and prepare, each after a veto */
/* takes `run`, even on failure; copies the vetoes that the plan was made with */
int nva_program_make(nva_program **out, const nva_views *v, nvd_program *run, nvd_device *d, int nveto,
                     const nvf_veto *veto);
/* stand_in (taken; NULL: none) runs until p's own code is there; p NULL: it is released */
void nva_program_bridge(nva_program *p, nva_program *stand_in);
/* Copies the vetoes of p (may be NULL) and returns their number; their texts live as long as p. */
int nva_program_vetoes(nvf_veto *out, const nva_program *p);
nva_program *nva_program_ref(nva_program *p);
/* The generic form of a program and the plan that it was made from: no program to run, but one to bind to other sizes.
   *out is NULL if it serves no others. Returns a status. */
int nva_program_generalise(nva_program **out, nva_program *p, const nvf_plan *plan, const nvf_signature *s);
/* Binds a generic form to the sizes of a graph with the same signature's key; *out stays as it is if it does not serve
   them. Throws, or returns a status. */
int nva_program_bind(nva_program **out, nvb_arena *a, const nva_program *of, const nva_views *v, const nvg_graph *g,
                     const nvf_signature *s);
int nva_program_is_bound(const nva_program *p);  /* NULL: it is not */
int nva_program_stands_in(const nva_program *p); /* 1 while the stand-in runs */
int nva_program_outdated(nva_program *p);        /* may another plan be faster by now? */
/* (eval.c) Finds, or plans and prepares, a graph of placeholders, for leaves laid out like these values. Its outputs
   from number nviews on are no views. */
int nva_program_for(nva_program **out, nvb_arena *a, nvg_graph *g, int dev, nvg_value *const *leaf, int nviews);
/* (explain.c) program: the one that runs the graph, which is taken and whose vetoes the plan uses; or NULL. stage: that
   of nvm_traced_text, or NULL for an explanation. */
int nva_is_stage(const char *name); /* (explain.c) does nvm_traced_text know it? */
int nva_explain_graph(char **text, nvb_arena *a, nvg_graph *g, int dev, nva_program *program, int nviews,
                      const char *stage);
nvb_hash nva_program_key(const nvg_graph *g, int dev); /* the exact signature: graph, device, settings */
nvb_hash nva_generic_key(nvb_hash signature);          /* of a generic form, which is for the CPU */
nva_program *nva_program_find(nvb_hash key);           /* a counted reference; NULL if unknown or outdated */
void nva_program_keep(nvb_hash key, nva_program *p);   /* adds it to the cache, which evicts the least recently used */
void nva_program_unref(nva_program *p);
/* Runs a program on leaf values that are on its device (weak scalars: in host memory); out[i] becomes the new value of
   output i. Returns a status; a failure leaves no values. */
int nva_program_run(nva_program *p, nvg_value *const *leaf, nvg_value **out);
/* The program that would run now: p or its stand-in; borrowed. */
nva_program *nva_program_now(nva_program *p);
/* Runs such a program in memory that the caller has, if it computes all of its outputs: operands of the leaves, and of
   the outputs that are not empty. */
int nva_program_run_in(nva_program *p, const nvd_operand *leaf, const nvd_operand *out);
/* The leaf whose memory output i takes over, which is not empty and counts those that are; -1: none. */
int nva_program_donor(const nva_program *p, int i);
int64_t nva_planned(void);
int64_t nva_evaluations(void);
void nva_count_evaluation(void);

/* ---- trace.c */
extern atomic_int nva_open_traces; /* open traces of all threads */
uint64_t nva_thread_trace(void);
static inline uint64_t nva_tracing(void) { /* the number of the thread's open trace; 0: none */
  return atomic_load_explicit(&nva_open_traces, memory_order_relaxed) ? nva_thread_trace() : 0;
}
nvg_node *nva_capture(nvm_array *a);         /* the trace's hidden input for an array from outside; borrowed */
typedef struct nva_captured { nvm_array *array; nvg_node *node; } nva_captured;
nva_captured *nva_trace_inputs(int *n);      /* takes all hidden inputs; free the list with nvb_free */
int64_t nva_number_bits(const nvm_array *a); /* the first 8 bytes of an argument that is a number; 0 for others */
/* A generator that a trace draws from: hidden inputs of its state, and how many counters a call takes. */
typedef struct nva_drawn { nvm_generator *of; nvg_node *state[NVG_STATE]; uint64_t counters; } nva_drawn;
/* A status: an error in the body of a loop. */
int nva_trace_can_draw(void);
/* The trace's, made at the first draw; borrowed. NULL with a message. */
nva_drawn *nva_trace_drawn(nvm_generator *g, int (*make)(nva_drawn *d, nvm_generator *g));
nva_drawn *nva_trace_draws(int *n); /* takes all of them */
int nva_trace_maps(void);           /* Is the trace that of a function over a batch? */
/* A draw of such a function, which is drawn for all elements when the function has ended. All nodes are counted. */
typedef struct nva_mapped_draw {
  nvm_generator *of; /* counted */
  nvm_draw what;
  nvg_node *parameter[NVG_DRAW_PARAMETERS];
  nvg_node *result; /* a placeholder, of the shape of one element's draw */
  int nloop;        /* the loops that the function had made before it */
} nva_mapped_draw;
nva_mapped_draw *nva_trace_add_draw(void);             /* an empty one, borrowed until the next; NULL with a message */
nva_mapped_draw *nva_trace_mapped_draws(int *n);       /* takes all of them */
void nva_mapped_draws_free(nva_mapped_draw *d, int n); /* the list too */

/* ---- random.c */
void nva_drawn_take(const nva_drawn *d, int n, int64_t *words); /* the state of each, and its counters */
void nva_drawn_free(nva_drawn *d, int n);
#endif
