/* Loops of traced functions. A loop is made while a function is traced (loop.c): its bodies are traced functions of
   their own, and its results are placeholders of the function around it. That function is then a chain (chain.c):
   programs without loops, and between them the loops, which take their steps by programs of their bodies
   (loop_run.c). So the planner sees no loop, and a body is planned once. Private to these files, trace.c,
   function.c, stores.c and fn.c. */
#ifndef NVM_API_LOOP_H
#define NVM_API_LOOP_H
#include "api/put.h"
#include "nvm/loop.h"

enum { NVA_FUNCTIONS = 3 }; /* the most functions of a loop: test, body, and test after it */

/* An index into a carry whose element or row a step stores: `scale` * the loop's index + `offset`, or, if made >= 0,
   that output of the body. */
typedef struct nva_at { int made; int64_t scale, offset; } nva_at;
/* A store of one step: output `value` of the body becomes carry[at[0], ..., at[n - 1]]. */
typedef struct nva_store { int carry, value, n; nva_at at[NVA_INDICES]; } nva_store;

typedef struct nva_loop nva_loop;
/* The functions of a loop as they were traced, which a function over a batch keeps. All nodes are counted. */
typedef struct nva_loop_source {
  int nparam, ncap, ninner;
  /* the index, the carries, a row of each x (of a cond: the index, which it has not, and its operands) */
  nvg_node **param;
  nvg_node **cap;          /* what stands for each capture */
  int nout[NVA_FUNCTIONS]; /* outputs of each function */
  nvg_node **out[NVA_FUNCTIONS];
  nva_loop **inner; /* counted: the loops that the functions make, in order */
} nva_loop_source;

struct nva_loop {
  atomic_int refs;
  nvm_loop_kind kind;
  int ncarry, nx, ny, ncap; /* ncarry: of a cond its operands; ncap: hidden operands */
  int nhead;                /* operands before the carries: the bounds of a fori_loop, the predicate of a cond */
  int nresult;              /* carries, then ys; of a cond the results of its branches */
  nvg_node **operand;       /* counted nodes of the function around it: heads, carries, xs, captures */
  nvg_node **result;        /* counted placeholders of that function */
  /* Parameters of each: the index, the carries, a row of each x, the captures. body: also the branch of a true cond.
     other: the first test of a while_loop, the branch of a false cond. */
  nvm_traced *body, *other;
  nvg_node *index; /* counted; the parameter that stands for the index */
  int *move;       /* for each carry: the carry whose memory becomes it, -1: an output of the body */
  int *made;       /* for each result: the output of the body that is its value (of a y: its row), -1: it is moved */
  int goes_on;     /* while_loop: the output of the body that says whether another step follows */
  int nstore;
  nva_store *store; /* in the order of the writes */
  int64_t length;   /* scan */
  int reverse;
  nva_loop_source *source; /* owned; NULL: no function over a batch makes it */
};
const char *nva_loop_name(const nva_loop *l);
static inline int nva_loop_operands(const nva_loop *l) { return l->nhead + l->ncarry + l->nx + l->ncap; }
nva_loop *nva_loop_ref(nva_loop *l);
void nva_loop_unref(nva_loop *l); /* NULL is fine */

/* ---- trace.c: traces inside a trace, for bodies */
int nva_trace_push(int maps);                   /* maps: for a function over a batch. A status */
int nva_trace_is_mapped(void);                  /* Is this trace, or one around it, that of a function over a batch? */
void nva_trace_pop(void);                       /* drops what the inner trace holds */
int nva_trace_add_loop(nva_loop *l);            /* takes a reference on success; a status */
nva_loop *const *nva_trace_loops(int *n);       /* the loops of this trace, in the order in which they were made */
const nva_captured *nva_trace_captured(int *n); /* borrowed, until the next capture */

/* ---- function.c: traced functions as chains and loops use them */
/* Makes a traced function of nodes; its outputs from number `nviews` on are in memory of their own, packed. It calls
   those of the n loops that its outputs need. */
int nva_traced_over(nvm_traced **out, nvm_ctx *ctx, nvg_node *const *param, int nparam, nvg_node *const *outs, int nout,
                    int nviews, nva_loop *const *loop, int n);
int nva_traced_leaves(const nvm_traced *t);
int nva_traced_source(const nvm_traced *t, int leaf); /* its parameter; -1: it has a value of its own */
int nva_traced_outputs(const nvm_traced *t);
const nvg_aval *nva_traced_output(const nvm_traced *t, int i); /* borrowed */
int nva_traced_has_loops(const nvm_traced *t);
/* Fills in the values of the leaves, nva_traced_leaves(t) of them, of a function without captures. param: values on the
   device, or NULL where no leaf is that parameter. moved: values to be freed after the run, or NULL. A status. */
int nva_traced_bind(nvm_traced *t, int dev, nvg_value *const *param, nvg_value **leaf, nvg_value **moved);
/* A reference to the program of a function without loops, for leaves laid out like these. given: as bits, leaves that
   may be written to. NULL with a message. */
nva_program *nva_traced_program(nvm_traced *t, int dev, nvg_value *const *leaf, uint64_t given);
/* Returns a status; a failure leaves NULL in out. */
int nva_traced_run(nvm_traced *t, int dev, nvg_value *const *param, nvg_value **out);
/* Appends the explanation of its plan, or of the stage of nvm_traced_text; a status. */
int nva_traced_describe(char **text, nvm_traced *t, int dev, const char *stage);

/* ---- function.c: what functions in C (fn.c) need of it */
nvm_traced *nva_traced_ref(nvm_traced *t); /* holds t during a call */
void nva_traced_unref(nvm_traced *t);
int nva_traced_writes(const nvm_traced *t, int param); /* do calls write to that argument? */
/* Checks that the lists of a call with `nin` arguments and `nout` results are present. A status. */
int nva_check_lists(const char *who, const void *f, nvm_array *const *in, int nin, nvm_array **out, int nout);

/* ---- chain.c */
typedef struct nva_chain nva_chain;
/* Makes the chain of a function that uses some of these loops; NULL in *out: it uses none. used: receives for each
   parameter whether it is read. Returns a status. */
int nva_chain_new(nva_chain **out, nvm_ctx *ctx, nvg_node *const *param, int nparam, nvg_node *const *outs, int nout,
                  int nviews, nva_loop *const *loop, int n, uint8_t *used);
void nva_chain_free(nva_chain *c); /* NULL is fine */
/* param: values on the device, NULL where a parameter is not read. Returns a status; a failure leaves no values. */
int nva_chain_run(nva_chain *c, int dev, nvg_value *const *param, nvg_value **out);
int nva_chain_describe(char **text, nva_chain *c, int dev, const char *stage);

/* ---- loop_run.c */
/* Runs a loop. operand: values on the device (numbers: in host memory; NULL: a constant, in its node); those of the
   carries of a loop are packed, and the loop takes their memory. out: the results. A status. */
int nva_loop_run(nva_loop *l, int dev, nvg_value *const *operand, nvg_value **out);
/* appends a line to a text that nvm_free frees; a status */
int nva_append(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
