/* What the files of the API layer share: handles, contexts, evaluation. No other layer includes this. */
#ifndef NVM_API_API_H
#define NVM_API_API_H
#include "base/err.h"
#include "dispatch/cuda/device.h"
#include "nvm/nvm.h"

/* A handle. `node` is what it stands for now; a view (base != NULL) derives it when it is first used and when its base
   stands for another node. */
struct nvm_array {
  atomic_int refs;
  nvm_ctx *ctx;              /* counted */
  nvg_node *node;            /* counted */
  nvm_array *base;           /* counted; the handle that this one is a view of, which is none itself; or NULL */
  nvg_lens *lens;            /* of a view: what it shows of the base */
  nvm_array *views;          /* the first that views this one; a list in no order, under the lock of handles */
  nvm_array *before, *after; /* of a view: its neighbours in the base's list */
  atomic_ullong version;     /* from 1 on; grows with each write */
  atomic_ullong seen;        /* view: the base's version that `node` was derived from; 0: `node` is the lens's top */
  uint8_t touched;           /* writes to parts of it, and elements read, since it is pending */
  uint8_t fixed;             /* NVA_FIXED: read-only; NVA_OUTSIDE: shows, in a trace, an array from outside of it */
  uint64_t trace;            /* the trace that made it; 0: made outside */
};
enum { NVA_OPEN = 1, NVA_FIXED, NVA_OUTSIDE };
struct nvm_ctx {
  atomic_int refs;
  atomic_int scopes; /* that are open, in any thread */
  nvm_dtype default_float;
  atomic_int device; /* where what was put nowhere runs: 1 the CPU, 2 + ordinal; 0: not decided yet */
};

/* context.c */
nvm_ctx *nva_ctx_ref(nvm_ctx *c);
void nva_ctx_unref(nvm_ctx *c);
nvm_ctx *nva_scope_ctx(void);            /* of the thread's innermost scope; NULL with a message if none is open */
nvm_array *nva_scope_keep(nvm_array *a); /* the innermost scope takes the reference; NULL passes through */
/* The status of a call that was given a NULL array: that of the scope's first failure, whose message becomes the
   thread's again. */
int nva_null(const char *who, const char *what);
int nva_missing(const char *who, const char *what); /* the status of one that was given NULL for anything else */
int nva_two_contexts(const char *who);              /* the failure of what meets arrays of two */

/* array.c */
nvm_array *nva_array_new(nvm_ctx *c, nvg_node *n); /* takes n, NULL passes through; an owned reference */
/* Borrowed, up to date; in a trace a foreign array becomes a hidden input. NULL with a message. */
nvg_node *nva_node(nvm_array *a);
/* The same, counted, outside of a trace; other threads may write to the array meanwhile. */
nvg_node *nva_node_ref(nvm_array *a);
extern nvm_array nva_none;                     /* what nvm_none returns */
void nva_stand_for(nvm_array *a, nvg_node *n); /* it was written: n, which is taken, is what it stands for; no view */
void nva_link_view(nvm_array *a, nvm_array *base); /* a is a view of base from here on */
void nva_forget(nvm_array *a);          /* a view, which only this thread uses, lets go of what it stood for */
int nva_check_kept(const nvm_array *a); /* the status of an array that was donated, or shows one */
/* What handles stand for, the lists of views, and the memory that is stored to in place, change between these. */
void nva_handles_take(void);
void nva_handles_give(void);
void nva_invalidate(nvm_array *a); /* its value is another's from here on; reading it is an error */

/* strided.c: strides in bytes */
void nva_move_strided(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides, int rank,
                      const int64_t *shape, size_t each); /* from may repeat elements; the two do not overlap */
/* Packs; strides NULL: packed already. */
void nva_copy_strided(void *to, const void *from, const nvg_aval *av, const int64_t *strides);

/* ops.c: what can be seen of a call's lists before anything reads them; a status */
int nva_check_call(const char *who, nvm_ctx *ctx, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr);

/* device.c: places are those of nvg_node.device, 1 the CPU, 2 + ordinal a GPU */
int nva_decide(nvm_ctx *c);
static inline int nva_ctx_device(nvm_ctx *c) { /* where what was put nowhere runs; decided at the first call */
  int dev = atomic_load_explicit(&c->device, memory_order_relaxed);
  return dev ? dev : nva_decide(c);
}
static inline int nva_device_of(nvm_ctx *c, const nvg_node *n) { return n->device ? n->device : nva_ctx_device(c); }
nvd_device *nva_gpu(int dev);      /* NULL with a message */
extern atomic_int nva_ever_within; /* some thread has put something; nobody pays for the look before that */
int nva_thread_device(void);
static inline int nva_within(void) { /* the place where this thread puts what would follow, 0: none */
  return atomic_load_explicit(&nva_ever_within, memory_order_relaxed) ? nva_thread_device() : 0;
}

/* source.c: an array over a value, which is taken; NULL passes through */
nvm_array *nva_leaf_over(nvm_ctx *ctx, const nvg_aval *av, nvg_value *v, int dev);

/* value.c */
/* Takes b, NULL passes through; stride in elements. */
nvg_value *nva_value_new(nvd_buf *b, char *data, int rank, const int64_t *stride);
nvg_value *nva_value_copy(const nvg_value *v, const nvg_aval *av, int dev);
/* strided_copy.c: to host memory, and to another device; NULL with a message */
nvg_value *nva_download(const nvg_value *v, const nvg_aval *av);
nvg_value *nva_copy_across(const nvg_value *v, const nvg_aval *av, nvd_device *d);
nvg_value *nva_value_alias(nvg_value *v, int rank);                   /* another value over the same memory */
nvg_value *nva_value_kept(nvg_value *v, const nvg_aval *av, int dev); /* v there; v keeps and owns a copy */
int nva_is_borrowed(const nvg_value *v); /* its memory is somebody else's, who may write there later */
int nva_is_alone(const nvg_value *v);    /* nothing else holds its memory */
/* It lies in host memory, in row-major order, and nobody asks what lent memory holds. */
int nva_is_plain(const nvg_value *v, const nvg_aval *av);
/* notes what borrowed memory holds, if NVM_CHECK asks for it */
void nva_note_borrowed(nvg_value *v, const nvg_aval *av);
int nva_borrowed_unchanged(const nvg_value *v, const nvg_aval *av);
static inline int nva_check_borrowed(const nvg_value *v, const nvg_aval *av) { /* a status: it still holds that */
  return v->sum ? nva_borrowed_unchanged(v, av) : NVM_OK;
}
/* *v becomes the value there: a kept copy, or of borrowed memory one in *temporary, to be freed after the run. A
   status. */
int nva_transfer(nvg_value **v, const nvg_aval *av, int dev, nvg_value **temporary);
int nva_copy_out(void *to, const nvg_value *v, const nvg_aval *av); /* packed, to host memory; a status */

/* stage.c: what is told about the stages of one program */
typedef struct nva_stages { char name[24]; const char *text; int64_t since, took; } nva_stages;
void nva_stages_start(nva_stages *s);
int nva_stage_end(nva_stages *s, const char *stage); /* 1: its text is wanted */
/* "(unchanged)" where the text is that of the last. */
void nva_stage_note(nva_stages *s, const char *stage, const char *text);

/* eval.c, explain.c */
int nva_eval(nvm_ctx *c, nvg_node *const *roots, int n); /* gives every root its value; a status */
int nva_explain(char **text, nvm_ctx *c, nvg_node *const *roots, int n);
int nva_settle(nvm_ctx *c, nvg_node *n); /* evaluates it if its pending graph is too deep, or pins too much */

/* program_cache.c: what runs, and what it is remembered by */
typedef struct nva_output {
  nvg_aval aval;   /* its shape lies where the outputs do */
  int leaf;        /* >= 0: this leaf through offset and stride, nothing is run; -1: the program's next */
  int donor;       /* >= 0: it takes this leaf's memory */
  int64_t offset;  /* elements */
  int64_t *stride; /* elements */
} nva_output;
typedef struct nva_views { int nleaf, nout; nva_output *out; } nva_views;
typedef struct nva_program nva_program;
/* The same graph without the outputs that are views of a leaf (or empty); *v describes all outputs. */
nvg_graph *nva_split_views(nvb_arena *a, nva_views *v, const nvg_graph *g);
void nva_views_donors(nva_views *v, const nvf_plan *p); /* the outputs that the plan puts into a leaf's memory */
enum { NVA_ATTEMPTS = NVF_VETOES + 1 };                 /* fuse, prepare, veto: at most so often */
/* takes run, also when it fails; copies the vetoes that the plan was made with */
int nva_program_make(nva_program **out, const nva_views *v, nvd_program *run, nvd_device *d, int nveto,
                     const nvf_veto *veto);
/* How many there are; they live as long as the program, which may be NULL. */
int nva_program_vetoes(nvf_veto *out, const nva_program *p);
nva_program *nva_program_ref(nva_program *p);
int nva_program_outdated(nva_program *p); /* another plan may do better by now */
/* (eval.c) Plans and prepares a graph of placeholders. */
int nva_program_for(nva_program **out, nvb_arena *a, nvg_graph *g, int dev, nvg_value *const *leaf);
/* (explain.c) program: NULL, or the one that runs it, which is taken: its vetoes are part of the plan */
int nva_explain_graph(char **text, nvb_arena *a, nvg_graph *g, int dev, nva_program *program);
nvb_hash nva_program_key(const nvg_graph *g, int dev); /* exact signature: graph, place, settings */
nva_program *nva_program_find(nvb_hash key);           /* a reference; NULL if unknown or outdated */
void nva_program_keep(nvb_hash key, nva_program *p);   /* remembers it (least recently used go, see program_cache.c) */
void nva_program_unref(nva_program *p);
/* Runs on leaf values that lie where it runs (weak scalars: in host memory); out[i] becomes the new value of output i.
   A status; a failure leaves nothing behind. */
int nva_program_run(nva_program *p, nvg_value *const *leaf, nvg_value **out);
int64_t nva_planned(void);
int64_t nva_evaluations(void);

/* trace.c */
extern atomic_int nva_open_traces; /* of all threads */
uint64_t nva_thread_trace(void);
static inline uint64_t nva_tracing(void) { /* the thread's trace, 0 if none */
  return atomic_load_explicit(&nva_open_traces, memory_order_relaxed) ? nva_thread_trace() : 0;
}
nvg_node *nva_capture(nvm_array *a);         /* the trace's hidden input that stands for a foreign array; borrowed */
typedef struct nva_captured { nvm_array *array; nvg_node *node; } nva_captured;
nva_captured *nva_trace_inputs(int *n);      /* all of them; nvb_free */
int64_t nva_number_bits(const nvm_array *a); /* the first 8 bytes of the number that an argument is; 0 of none */
#endif
