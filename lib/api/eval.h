/* What evaluating and explaining share: the roots that run at one place, on their way through the pipeline. */
#ifndef NVM_API_EVAL_H
#define NVM_API_EVAL_H
#include "api/api.h"
#include "autotune/tune.h"
#include "base/lock.h"

typedef struct nva_job {
  nvm_ctx *ctx;
  nvg_node *const *roots;
  int nroot, place;                /* place: those of the roots that run there are collected */
  nvg_graph *g;                    /* what was collected */
  nvg_value **leaf, **moved;       /* its leaves' values where it runs, and those among them that end with the run */
  nvg_value *const *known;         /* those values while it is planned; NULL: there are none yet */
  nvf_plan *plan;                  /* of the last fuse, as it was tuned */
  const nvd_solver_choice *choice; /* of its steps that hold products */
  nva_program *program;            /* explain: the one that runs this, NULL: there is none yet */
  char **text;                     /* explain: what the text is added to; nothing is run */
  int named;                       /* explain: the text says where */
  nva_stages stages;
} nva_job;

extern nvb_lock nva_eval_lock;                 /* one evaluation at a time */
void nva_job_collect(nvb_arena *a, void *job); /* throws; those roots that run at the job's place become its graph */
int nva_job_plan(nvb_arena *a, nva_job *j);    /* a status; its program, and the plan that it was made of */
#endif
