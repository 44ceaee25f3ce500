/* Decides who runs a GEMM step: the chosen solver, else the first one that supports it, else the step's generated
   kernel. Vetoes a step if a library supports its GEMM only without the epilogue, so that the planner splits it. Never
   decides how anything is computed. */
#include "dispatch/solve/solve.h"
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/settings.h"
#include "dispatch/solve/half_product.h"

static const nvd_solver *const solvers[] = { &nvd_openblas, &nvd_cublaslt };
enum { NSOLVERS = sizeof solvers / sizeof *solvers };
static const char own_kernel[] = "kernel";

static const char *why_rejected(const nvd_solver *s, const nvd_task *t, const char *not_a_gemm) {
  if (!nvb_has(NVB_SOLVERS, s->name)) return "NVM_SOLVERS leaves it out";
  return not_a_gemm ? not_a_gemm : s->rejects(t);
}

/* The same if the solver was not chosen: also rejects steps whose generated kernel was expected to be faster. */
static const char *why_not_chosen(const nvd_solver *s, const nvd_task *t, const char *not_a_gemm) {
  const char *why = why_rejected(s, t, not_a_gemm);
  return why || !t->step->gemm->own ? why : "its own kernel is expected to be faster";
}

/* Does the scale multiply the whole sum, rather than blocks of an operand? */
static int scales_sum(const nvf_gemm *p, int i) { return p->scale[i].param >= 0 && p->by[i] <= NVF_SCALE_ROW; }

/* The GEMM descriptor without its epilogue. */
static nvf_gemm without_epilogue(const nvf_gemm *p) {
  nvf_gemm b = *p;
  b.c.param = b.bias.param = b.aux.param = -1;
  for (int i = 0; i < NVF_SCALES; i++)
    if (scales_sum(p, i)) {
      b.scale[i].param = -1;
      b.by[i] = NVF_SCALE_TENSOR;
    }
  b.alpha = (nvf_scale){ .param = -1, .value = 1 };
  b.beta = (nvf_scale){ .param = -1 };
  b.act = NVF_ACT_NONE;
  b.d.type = p->accumulate;
  return b;
}

static int has_no_epilogue(const nvf_gemm *p) {
  for (int i = 0; i < NVF_SCALES; i++)
    if (scales_sum(p, i)) return 0;
  return p->c.param < 0 && p->bias.param < 0 && p->aux.param < 0 && p->alpha.param < 0 && p->alpha.value == 1 &&
         p->act == NVF_ACT_NONE && p->d.type == p->accumulate;
}

static int supports_without_epilogue(const nvd_solver *s, const nvd_task *t) {
  nvf_gemm gemm = without_epilogue(t->step->gemm);
  nvd_task alone = *t;
  return !nvd_gemm_of(&alone.g, t->step->k, &gemm) && !why_rejected(s, &alone, NULL);
}

static const char *task_of(nvd_task *t, const nvf_plan *p, int i, struct nvd_device *d) {
  *t = (nvd_task){ .plan = p, .step = &p->step[i], .device = d };
  return nvd_gemm_of(&t->g, t->step->k, t->step->gemm);
}

static nvd_solution *try_solver(nvb_arena *a, const nvd_solver *s, const nvd_task *t, const nvd_solver_choice *c,
                                const char **why) {
  nvd_solution *made = *why ? NULL : s->prepare(a, t, c, why);
  if (made && !made->by) made->by = s;
  return made;
}

/* Returns NVM_ERR_UNSUPPORTED with a message if the planner counted on a library which rejects the step but would
   support its GEMM without the epilogue. */
static int find_veto(const nvd_task *t, const char *not_a_gemm) {
  const nvf_gemm *p = t->step->gemm;
  for (int j = 0; j < NSOLVERS && !not_a_gemm && !p->own && !has_no_epilogue(p); j++)
    if (solvers[j]->device == t->plan->device && supports_without_epilogue(solvers[j], t)) {
      const char *why = why_rejected(solvers[j], t, NULL);
      why = why ? why : "it knows no algorithm for this";
      return nvb_fail(NVM_ERR_UNSUPPORTED, "[matmul] %s: %s", solvers[j]->name, why);
    }
  return NVM_OK;
}

int nvd_solve_dry(const nvf_plan *p, int i, struct nvd_device *d, const nvd_solver_choice *choice) {
  nvd_task t;
  if (!p->step[i].gemm || (choice && !strcmp(choice->solver, own_kernel))) return NVM_OK;
  const char *not_a_gemm = task_of(&t, p, i, d);
  for (int j = 0; j < NSOLVERS; j++)
    if (solvers[j]->device == p->device && !why_not_chosen(solvers[j], &t, not_a_gemm)) return NVM_OK;
  return find_veto(&t, not_a_gemm);
}

nvd_solution *nvd_solve(nvb_arena *a, const nvf_plan *p, int i, struct nvd_device *d, const nvd_solver_choice *choice) {
  nvd_task t;
  if (p->step[i].routine && d && p->step[i].routine->op == NVG_OP_DFT) return nvd_cufft(a, p, i, d);
  if (p->step[i].routine) return nvd_routine(a, &p->step[i], d);
  if (!p->step[i].gemm) return NULL;
  const char *not_a_gemm = task_of(&t, p, i, d);
  const nvd_solver_choice any = { .solver = "" };
  choice = choice ? choice : &any;
  if (!strcmp(choice->solver, own_kernel)) return NULL;
  for (int pass = !*choice->solver; pass < 2; pass++) /* the chosen solver first, then any */
    for (int j = 0; j < NSOLVERS; j++) {
      const nvd_solver *s = solvers[j];
      if (s->device != p->device || (!pass && strcmp(s->name, choice->solver))) continue;
      const char *why = pass ? why_not_chosen(s, &t, not_a_gemm) : why_rejected(s, &t, not_a_gemm);
      nvd_solution *made = try_solver(a, s, &t, pass ? &any : choice, &why);
      if (made) return made;
      nvb_log(1, "step %d of %d, %s: %s rejects it: %s", i + 1, p->nstep, p->step[i].what, s->name, why);
    }
  if (find_veto(&t, not_a_gemm)) nvb_throw(a, NVM_ERR_UNSUPPORTED, "%s", nvb_message());
  return NULL;
}

void nvd_solution_free(nvd_solution *s) {
  if (s && s->by && s->by->free) s->by->free(s);
}

int nvd_capabilities(nvb_devkind device) {
  int capabilities = 0;
  for (int i = 0; i < NSOLVERS; i++)
    capabilities |=
        solvers[i]->device == device && nvb_has(NVB_SOLVERS, solvers[i]->name) ? solvers[i]->capabilities() : 0;
  int may_transform = device == NVB_CUDA && nvb_has(NVB_SOLVERS, "cufft") && nvd_cufft_usable();
  return capabilities | (may_transform ? NVF_CAN_DFT : 0);
}

/* ---- options, and choices made before */
int nvd_solver_options(nvd_solver_option *out, int most, const nvf_plan *p, int i, struct nvd_device *d) {
  nvd_task t;
  int n = 0;
  const char *not_a_gemm = p->step[i].gemm ? task_of(&t, p, i, d) : "";
  for (int j = 0; j < NSOLVERS && !not_a_gemm; j++)
    if (solvers[j]->device == p->device && !why_rejected(solvers[j], &t, NULL)) {
      int from = n;
      n += solvers[j]->options(out + n, most - n, &t);
      for (; from < n; from++) snprintf(out[from].choice.solver, sizeof out->choice.solver, "%s", solvers[j]->name);
    }
  if (n < most) out[n++] = (nvd_solver_option){ .choice.solver = "kernel", .what = "its own kernel" };
  return n;
}

int nvd_solver_follows(const nvf_plan *p, int i, struct nvd_device *d, const nvd_solver_choice *choice) {
  nvd_task t;
  if (!p->step[i].gemm) return 0;
  const char *not_a_gemm = task_of(&t, p, i, d);
  int follows = !strcmp(choice->solver, own_kernel);
  for (int j = 0; j < NSOLVERS && !follows; j++)
    follows = solvers[j]->device == p->device && !strcmp(solvers[j]->name, choice->solver) &&
              !why_rejected(solvers[j], &t, not_a_gemm);
  return follows;
}

static const char *part_of(int half) { return half ? ", half of it, which is mirrored" : ""; }

void nvd_explain(nvb_text *t, const nvf_plan *p, struct nvd_device *d, const nvd_solver_choice *choice) {
  for (int i = 0; i < p->nstep; i++) {
    if (d && p->step[i].routine && nvd_does_matrices(p->step[i].routine->op))
      nvb_print(t, "  %d runs by %s\n", i + 1, nvd_gpu_is_small(p->step[i].routine) ? "its own kernel" : "cusolver");
    if (d && p->step[i].routine && (nvg_sorts(p->step[i].routine->op) || nvg_searches(p->step[i].routine->op)))
      nvb_print(t, "  %d runs by its own kernel\n", i + 1);
    if (!p->step[i].gemm) continue;
    if (choice && *choice[i].solver) {
      int own = !strcmp(choice[i].solver, own_kernel);
      nvb_print(t, "  %d runs by %s%s, as it was chosen\n", i + 1, own ? "its own kernel" : choice[i].solver,
                own ? nvf_step_k_partition(&p->step[i]) : part_of(nvd_half_levels(&choice[i])));
      continue;
    }
    nvd_task task;
    const char *not_a_gemm = task_of(&task, p, i, d);
    nvb_print(t, "  %d runs by ", i + 1);
    int j = 0;
    for (; j < NSOLVERS; j++)
      if (solvers[j]->device == p->device && !why_not_chosen(solvers[j], &task, not_a_gemm)) break;
    nvb_print(t, "%s%s\n", j < NSOLVERS ? solvers[j]->name : "its own kernel",
              j < NSOLVERS ? part_of(p->step[i].gemm->half) : nvf_step_k_partition(&p->step[i]));
    for (int k = 0; k < j; k++)
      if (solvers[k]->device == p->device)
        nvb_print(t, "    not by %s: %s\n", solvers[k]->name, why_not_chosen(solvers[k], &task, not_a_gemm));
  }
}
