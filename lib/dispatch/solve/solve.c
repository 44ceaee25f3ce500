/* Who runs a step that holds a product: the first solver that takes it, or the step's own kernel. Decides when a step
   is sent back to be cut, so that a library gets its product; never how anything is computed. */
#include "dispatch/solve/solve.h"
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/settings.h"

static const nvd_solver *const solvers[] = { &nvd_openblas, &nvd_cublaslt };
enum { NSOLVERS = sizeof solvers / sizeof *solvers };
static const char own_kernel[] = "kernel";

static const char *refusal(const nvd_solver *s, const nvd_task *t, const char *wordless) {
  if (!nvb_has(NVB_SOLVERS, s->name))
    return "NVM_SOLVERS leaves it out";
  return wordless ? wordless : s->takes(t);
}

/* The same of libraries that nobody asked for. */
static const char *unasked(const nvd_solver *s, const nvd_task *t, const char *wordless) {
  const char *why = refusal(s, t, wordless);
  return why || !t->step->product->own ? why : "its own kernel is expected to be faster";
}

/* Of the sum, not of blocks of an operand. */
static int scales_sum(const nvf_product *p, int i) { return p->scale[i].param >= 0 && p->by[i] <= NVF_BY_ROW; }

/* The words of the product alone. */
static nvf_product bare(const nvf_product *p) {
  nvf_product b = *p;
  b.c.param = b.bias.param = b.aux.param = -1;
  for (int i = 0; i < NVF_SCALES; i++)
    if (scales_sum(p, i)) {
      b.scale[i].param = -1;
      b.by[i] = NVF_BY_ONE;
    }
  b.alpha = (nvf_scale){ .param = -1, .value = 1 };
  b.beta = (nvf_scale){ .param = -1 };
  b.act = NVF_ACT_NONE;
  b.d.type = p->accumulate;
  return b;
}

static int is_bare(const nvf_product *p) {
  for (int i = 0; i < NVF_SCALES; i++)
    if (scales_sum(p, i))
      return 0;
  return p->c.param < 0 && p->bias.param < 0 && p->aux.param < 0 && p->alpha.param < 0 && p->alpha.value == 1 &&
         p->act == NVF_ACT_NONE && p->d.type == p->accumulate;
}

static int takes_it_bare(const nvd_solver *s, const nvd_task *t) {
  nvf_product words = bare(t->step->product);
  nvd_task alone = *t;
  return !nvd_gemm_of(&alone.g, t->step->k, &words) && !refusal(s, &alone, NULL);
}

static const char *task_of(nvd_task *t, const nvf_plan *p, int i, struct nvd_device *d) {
  *t = (nvd_task){ .plan = p, .step = &p->step[i], .device = d };
  return nvd_gemm_of(&t->g, t->step->k, t->step->product);
}

static nvd_solution *try(nvb_arena *a, const nvd_solver *s, const nvd_task *t, const nvd_choice *c, const char **why) {
  nvd_solution *made = *why ? NULL : s->prepare(a, t, c, why);
  if (made)
    made->by = s;
  return made;
}

/* A status: NVM_ERR_UNSUPPORTED with a message if a library that the planner counted on refuses the step and would take
   its product alone. */
static int veto(const nvd_task *t, const char *wordless) {
  const nvf_product *p = t->step->product;
  for (int j = 0; j < NSOLVERS && !wordless && !p->own && !is_bare(p); j++)
    if (solvers[j]->device == t->plan->device && takes_it_bare(solvers[j], t)) {
      const char *why = refusal(solvers[j], t, NULL);
      why = why ? why : "it knows no algorithm for this";
      return nvb_fail(NVM_ERR_UNSUPPORTED, "[matmul] %s: %s", solvers[j]->name, why);
    }
  return NVM_OK;
}

int nvd_solve_dry(const nvf_plan *p, int i, struct nvd_device *d, const nvd_choice *choice) {
  nvd_task t;
  if (!p->step[i].product || (choice && !strcmp(choice->solver, own_kernel)))
    return NVM_OK;
  const char *wordless = task_of(&t, p, i, d);
  for (int j = 0; j < NSOLVERS; j++)
    if (solvers[j]->device == p->device && !unasked(solvers[j], &t, wordless))
      return NVM_OK;
  return veto(&t, wordless);
}

nvd_solution *nvd_solve(nvb_arena *a, const nvf_plan *p, int i, struct nvd_device *d, const nvd_choice *choice) {
  nvd_task t;
  if (p->step[i].routine)
    return nvd_routine(a, &p->step[i], d);
  if (!p->step[i].product)
    return NULL;
  const char *wordless = task_of(&t, p, i, d);
  const nvd_choice any = { .solver = "" };
  choice = choice ? choice : &any;
  if (!strcmp(choice->solver, own_kernel))
    return NULL;
  for (int pass = !*choice->solver; pass < 2; pass++) /* the chosen one, then anyone */
    for (int j = 0; j < NSOLVERS; j++) {
      const nvd_solver *s = solvers[j];
      if (s->device != p->device || (!pass && strcmp(s->name, choice->solver)))
        continue;
      const char *why = pass ? unasked(s, &t, wordless) : refusal(s, &t, wordless);
      nvd_solution *made = try(a, s, &t, pass ? &any : choice, &why);
      if (made)
        return made;
      nvb_log(1, "step %d of %d, %s: %s refuses: %s", i + 1, p->nstep, p->step[i].what, s->name, why);
    }
  if (veto(&t, wordless))
    nvb_throw(a, NVM_ERR_UNSUPPORTED, "%s", nvb_message());
  return NULL;
}

void nvd_solution_free(nvd_solution *s) {
  if (s && s->by && s->by->free)
    s->by->free(s);
}

int nvd_offers(nvb_devkind device) {
  int offers = 0;
  for (int i = 0; i < NSOLVERS; i++)
    offers |= solvers[i]->device == device && nvb_has(NVB_SOLVERS, solvers[i]->name) ? solvers[i]->offers() : 0;
  return offers;
}

/* ---- what there is to choose from, and what was chosen */
int nvd_solver_candidates(nvd_candidate *out, int most, const nvf_plan *p, int i, struct nvd_device *d) {
  nvd_task t;
  int n = 0;
  const char *wordless = p->step[i].product ? task_of(&t, p, i, d) : "";
  for (int j = 0; j < NSOLVERS && !wordless; j++)
    if (solvers[j]->device == p->device && !refusal(solvers[j], &t, NULL)) {
      int from = n;
      n += solvers[j]->candidates(out + n, most - n, &t);
      for (; from < n; from++)
        snprintf(out[from].choice.solver, sizeof out->choice.solver, "%s", solvers[j]->name);
    }
  if (n < most)
    out[n++] = (nvd_candidate){ .choice.solver = "kernel", .what = "its own kernel" };
  return n;
}

int nvd_solver_follows(const nvf_plan *p, int i, struct nvd_device *d, const nvd_choice *choice) {
  nvd_task t;
  if (!p->step[i].product)
    return 0;
  const char *wordless = task_of(&t, p, i, d);
  int follows = !strcmp(choice->solver, own_kernel);
  for (int j = 0; j < NSOLVERS && !follows; j++)
    follows = solvers[j]->device == p->device && !strcmp(solvers[j]->name, choice->solver) &&
              !refusal(solvers[j], &t, wordless);
  return follows;
}

void nvd_explain(nvb_text *t, const nvf_plan *p, struct nvd_device *d, const nvd_choice *choice) {
  for (int i = 0; i < p->nstep; i++) {
    if (!p->step[i].product)
      continue;
    if (choice && *choice[i].solver) {
      int own = !strcmp(choice[i].solver, own_kernel);
      nvb_print(t, "  %d runs by %s%s, as it was chosen\n", i + 1, own ? "its own kernel" : choice[i].solver,
                own ? nvf_step_shares(&p->step[i]) : "");
      continue;
    }
    nvd_task task;
    const char *wordless = task_of(&task, p, i, d);
    nvb_print(t, "  %d runs by ", i + 1);
    int j = 0;
    for (; j < NSOLVERS; j++)
      if (solvers[j]->device == p->device && !unasked(solvers[j], &task, wordless))
        break;
    nvb_print(t, "%s%s\n", j < NSOLVERS ? solvers[j]->name : "its own kernel",
              j < NSOLVERS ? "" : nvf_step_shares(&p->step[i]));
    for (int k = 0; k < j; k++)
      if (solvers[k]->device == p->device)
        nvb_print(t, "    not by %s: %s\n", solvers[k]->name, unasked(solvers[k], &task, wordless));
  }
}
