/* Explains what would run: prints the plan of roots or of a traced graph, made as an evaluation makes it. Never runs
   anything. */
#include <string.h>
#include "api/eval.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "base/pool.h"

static const char *const stages[] = { "collect", "graph", "plan", "kernel" };
int nva_is_stage(const char *name) {
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
    if (!strcmp(name, stages[i])) return 1;
  return 0;
}
static void print_kernel(nvb_text *t, const nvf_step *s, const nva_job *j) {
  if (s->text) nvb_puts(t, s->text);
  else nvf_kernel_print(t, s->k), nvf_schedule_print(t, s->k, s->s, j->dev > 1 ? "gpu" : "cpu");
}
/* Prints what the job has after a stage, as NVM_DUMP does. */
static void print_stage(nvb_text *t, const nva_job *j) {
  if (!strcmp(j->stage, "collect")) nvg_graph_print(t, j->g);
  else if (!strcmp(j->stage, "graph")) nvg_graph_print(t, j->plan->given);
  else if (!strcmp(j->stage, "plan")) nvf_plan_print(t, j->plan);
  else
    for (int i = 0; i < j->plan->nstep; i++) {
      if (i) nvb_puts(t, "\n");
      print_kernel(t, &j->plan->step[i], j);
    }
}
static void append_text(nvb_arena *a, nva_job *j, const char *s) {
  size_t before = *j->text ? strlen(*j->text) : 0, n = strlen(s) + 1;
  char *all = nvb_realloc(*j->text, before + n);
  if (!all) nvb_throw(a, NVM_ERR_MEMORY, "out of memory");
  memcpy(all + before, s, n);
  *j->text = all;
}
static void print_explanation(nvb_arena *a, void *arg) {
  nva_job *j = arg;
  double small = j->roots ? nva_small_ns(j->ctx, j->roots, j->nroot, &j->spent) : -1;
  int status = j->g ? NVM_OK : nva_job_claim(a, j);
  nvb_hash key = status ? (nvb_hash){ 0, 0 } : nva_program_key(j->g, j->dev);
  if (!status && !j->program) j->program = nva_program_find(key);
  if (!status) status = nva_job_plan(a, j);
  if (status) nvb_throw(a, status, "%s", nvb_message());
  nvb_text t = { .arena = a };
  char name[16];
  if (j->stage) {
    print_stage(&t, j);
    append_text(a, j, nvb_text_get(&t));
    return;
  }
  if (j->named) nvb_print(&t, "on %s:\n", nvg_device_name(name, j->dev));
  nvf_plan_explain(&t, j->plan);
  nvd_explain(&t, j->plan, j->dev > 1 ? nva_gpu("explain", j->dev) : NULL, j->choice);
  if (nva_program_is_bound(j->program))
    nvb_puts(&t, "bound: it runs the kernels of a program that was planned for other sizes of the same class\n");
  if (small >= 0) nvb_print(&t, "small: it is computed at once, in about %.1f us, and never planned\n", small / 1e3);
  else if (j->roots && !j->program) nva_direct_explain(a, &t, j, key);
  if (j->program && nva_program_stands_in(j->program))
    nvb_print(&t, "new: it runs as one kernel for each value until the code of this plan is compiled\n");
  append_text(a, j, nvb_text_get(&t));
}
static int explain_job(nvb_arena *a, nva_job *j) {
  nvb_failure before;
  nvb_failure_keep(&before);
  unsigned fp = nvb_fp_enter();
  nvb_interrupt_enter();
  nvb_arena_ask(a);
  int status = nvb_interrupted();
  status = status ? status : nvb_protect(a, print_explanation, j);
  nvg_claims_drop(&j->claims);
  nvb_interrupt_leave();
  nva_program_unref(j->program);
  nvb_fp_leave(fp);
  if (!status) nvb_failure_put_back(&before);
  return status;
}
int nva_explain_graph(char **text, nvb_arena *a, nvg_graph *g, int dev, nva_program *program, int nviews,
                      const char *stage) {
  nva_job j = { .text = text, .g = g, .dev = dev, .program = program, .ncopied = g->nout - nviews, .stage = stage };
  return explain_job(a, &j);
}
int nva_explain(char **text, nvm_ctx *c, nvg_node *const *roots, int n) {
  nvb_arena *a = nvb_arena_new();
  if (!a) return nvb_fail_memory();
  nva_job j = { .ctx = c, .roots = roots, .nroot = n, .text = text };
  for (int i = 1; i < n; i++) j.named |= nva_device_of(c, roots[i]) != nva_device_of(c, roots[0]);
  int i = 0, first, status = NVM_OK;
  do { /* one plan for each device */
    j.dev = n ? nva_device_of(c, roots[i]) : 1;
    for (first = 0; first < i && nva_device_of(c, roots[first]) != j.dev;) first++;
    nva_job one = j;
    if (first == i) status = explain_job(a, &one);
  } while (!status && ++i < n);
  if (status) nvb_free(*text), *text = NULL;
  nvb_arena_free(a);
  return status;
}
