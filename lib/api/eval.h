/* The job that evaluating and explaining share: the roots that run on one device, on their way through the pipeline.
   Private to eval.c and explain.c. */
#ifndef NVM_API_EVAL_H
#define NVM_API_EVAL_H
#include "api/api.h"
#include "autotune/tune.h"

typedef struct nva_job {
  nvm_ctx *ctx;
  nvg_node *const *roots;
  int nroot, dev;                  /* dev: the device whose roots are collected */
  int cut;                         /* see nvg_claims */
  nvg_graph *g;                    /* the collected graph */
  nvb_hash key;                    /* of its program */
  double spent;                    /* ns that have been spent on computing the graph at once */
  int ncopied;                     /* number of its last outputs that are no views of leaves, but copies */
  nvg_claims claims;               /* on its nodes */
  nvg_value **leaf, **moved;       /* values of the leaves on that device; those that are freed after the run */
  nvg_value *const *known;         /* the leaves' values while planning; NULL: unknown */
  nvf_plan *plan;                  /* the last plan, after tuning */
  const nvd_solver_choice *choice; /* who runs each GEMM step */
  nva_program *program;            /* explain: the program that runs this; NULL: none yet */
  char **text;                     /* explain: the text to append to; nothing is run */
  int named;                       /* explain: the text names the device */
  const char *stage;               /* explain: the stage that is printed instead; or NULL */
  nva_stages stages;
} nva_job;

/* Collects the job's roots into its graph and claims their nodes, which the caller drops in any case; waits for other
   evaluations that compute one of them. A status. */
int nva_job_claim(nvb_arena *a, nva_job *j);
int nva_job_plan(nvb_arena *a, nva_job *j); /* makes the job's plan and program; a status */
/* Runs a stage under nvb_protect, on a stack that is large enough for the job's graph. */
int nva_job_protect(nvb_arena *a, const nva_job *j, void (*stage)(nvb_arena *a, void *arg), void *arg);
/* Makes the job's program from the generic form of one that was planned for other sizes, if there is one that serves
   these, and sets the key under which forms are kept. g: the job's graph as it is planned. Returns 0 if no plan of it
   may serve other sizes. Throws. */
int nva_job_bind(nvb_arena *a, nva_job *j, const nva_views *v, const nvg_graph *g, nvf_signature *s,
                 const nvb_caps *caps);
/* (direct.c) Makes the job's program a direct run if that is expected to pay, or binds it, else leaves it NULL. Returns
   a status. */
int nva_job_direct(nvb_arena *a, nva_job *j, nvb_hash key);
int nva_direct_forced(void);                   /* NVM_TIER=direct */
void nva_direct_note_form(const nvg_graph *g); /* a generic form is kept for a graph of these operations */
int nva_direct_allowed(void);                  /* no setting asks for a plan, or for one tier of its kernels */
/* Computes the roots at once, if what they need is small and a program would take longer, or has not paid yet. Returns
   1 if they have their values; 0, without a failure, if the pipeline is to evaluate them. spent_on: ns that were spent
   on such runs of this graph in place of a plan. */
int nva_run_small(nvm_ctx *c, nvg_node *const *roots, int n, double *spent_on);
/* What that takes where it is done each time; -1: it is not. */
double nva_small_ns(nvm_ctx *c, nvg_node *const *roots, int n, double *spent_on);
/* Prints whether the next evaluation is a direct run, and until when. Throws. */
void nva_direct_explain(nvb_arena *a, nvb_text *t, const nva_job *j, nvb_hash key);
/* ---- stand_in.c. g: the simplified graph */
/* Does every value get a kernel of its own, as NVM_TIER=direct asks on a GPU? */
int nva_stands_alone(const nva_job *j, const nvg_graph *g);
/* May the job's plan be prepared without its code, so that a stand-in runs it at first? */
int nva_may_stand_in(const nva_job *j, const nvg_graph *g, nvd_device *d);
/* Makes the program that stands in for one of the job's plan, whose code is missing. NULL: it would not pay, cannot be
   made, or its own code is missing too. A status, which is only ever an interrupt. */
typedef struct nva_stand_in {
  const nva_job *j;
  const nvg_graph *g;
  const nvb_caps *caps;
  nvd_device *device;
  nva_views *views;
  int capabilities; /* nvf_options.capabilities of the job's plan */
  nvf_plan *plan;   /* the stand-in's; NULL: it would not pay */
} nva_stand_in;
int nva_stand_in_new(nva_program **out, nvb_arena *a, nva_stand_in *s);
void nva_stand_in_compile(const nva_stand_in *s); /* compiles in the background what s->plan misses, for other graphs */
#endif
