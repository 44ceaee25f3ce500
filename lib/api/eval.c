/* The pipeline of an evaluation: collect, transfer, simplify, fuse, tune, prepare, run, attach. Each stage makes a new
   object from the one before; between stages it can be dumped (NVM_DUMP), checked (NVM_CHECK) and timed
   (NVM_VERBOSE=3). Never decides how a stage does its work. */
#include <string.h>
#include "api/eval.h"
#include "autotune/tune.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"

/* Ends a stage: logs its time (NVM_VERBOSE=3), dumps its text (NVM_DUMP) and checks its object (NVM_CHECK). */
#define STAGE(name, print, check, x) \
  do { \
    if (nva_stage_end(&j->stages, name)) { \
      nvb_text t_ = { .arena = a }; \
      print(&t_, x); \
      nva_stage_note(&j->stages, name, nvb_text_get(&t_)); \
    } \
    if (nvb_has(NVB_CHECK, strcmp(name, "tune") ? name : "plan")) check(a, x); \
  } while (0)

#define TIMED(name) if (nva_stage_end(&j->stages, name)) nva_stage_note(&j->stages, name, NULL)

static int fuse_on(void) { return strcmp(nvb_str(NVB_FUSE), "off") != 0; }

/* The collected graph has no check: the rules of graphs hold after simplify. */
static void check_nothing(nvb_arena *a, const nvg_graph *g) { (void)a, (void)g; }

/* The leaves' values as operands of a program; NULL if they are not known. */
static const nvd_operand *leaf_operands(nvb_arena *a, const nva_job *j) {
  nvd_operand *o = j->known ? NVB_NEWN(a, nvd_operand, j->g->nleaf + 1) : NULL;
  for (int i = 0; o && i < j->g->nleaf; i++)
    o[i] = (nvd_operand){ j->known[i]->device ? j->known[i]->buffer : NULL, j->known[i]->data };
  return o;
}

/* Has it GEMMs or, on a GPU, transforms? Libraries are opened only then. */
static int has_calls(const nvg_graph *g, int gpu) {
  int i = 0;
  while (i < g->n && g->v[i].kind != NVG_VCALL && !(gpu && g->v[i].op == NVG_OP_DFT)) i++;
  return i < g->n;
}

/* One attempt to plan the simplified graph, with the vetoes of the attempts before. */
typedef struct attempt {
  nva_job *j;
  const nvg_graph *g;
  const nvb_caps *caps;
  nvd_device *device;
  nvf_options o;
  nva_views *views;
  nvd_terms terms; /* terms.step: the step of the rules' plan that a failure is about; -1: none */
  nvd_program *run;
  nva_program *stand_in; /* runs until the code of `run` is there; NULL: it is */
} attempt;

/* Logs the sizes of a plan, to which the times of the stages are compared. */
static void tell_sizes(nvb_arena *a, const nva_job *j) {
  int largest = 0;
  int64_t moved = 0;
  for (int i = 0; i < j->plan->nstep; i++) {
    const nvf_step *s = &j->plan->step[i];
    largest = s->k->nstmt > largest ? s->k->nstmt : largest;
    moved += s->bytes_read + s->bytes_written;
  }
  nvb_log(3, "%s: %d nodes, %d kernels, at most %d statements, %lld bytes moved, %lld KB for planning", j->stages.name,
          j->g->n, j->plan->nstep, largest, (long long)moved, (long long)(nvb_arena_bytes(a) / 1000));
}

static int prepare_run(attempt *t) { return nvd_prepare(&t->run, t->j->plan, t->device, t->j->choice, &t->terms); }

/* Makes the plan's program. If its code has to be compiled, a stand-in whose code is there runs meanwhile. */
static int prepare_plan(nvb_arena *a, attempt *t) {
  if (!nva_may_stand_in(t->j, t->g, t->device)) return prepare_run(t);
  t->terms.stored = 1, t->terms.missing = 0;
  int status = prepare_run(t);
  t->terms.stored = 0;
  if (!t->terms.missing) return status;
  nvb_clear();
  nva_stand_in s = {
    .j = t->j, .g = t->g, .caps = t->caps, .device = t->device, .views = t->views, .capabilities = t->o.capabilities
  };
  if ((status = nva_stand_in_new(&t->stand_in, a, &s))) return status;
  t->terms.later = t->stand_in != NULL;
  status = prepare_run(t);
  t->terms.later = 0;
  if (!status && !t->stand_in) nva_stand_in_compile(&s);
  if (!status) return NVM_OK;
  nva_program_unref(t->stand_in);
  t->stand_in = NULL;
  return status;
}

/* Runs the stages fuse, tune and prepare. Throws. */
static void try_plan(nvb_arena *a, void *arg) {
  attempt *t = arg;
  nva_job *j = t->j;
  t->terms.step = -1;
  j->plan = nvf_fuse(a, t->g, t->caps, &t->o);
  STAGE("plan", nvf_plan_print, nvf_plan_check, j->plan);
  const struct nvf_partition *rules = j->plan->partition; /* vetoes are about this plan; a rival has other steps */
  const nvd_operand *at = leaf_operands(a, j);
  j->plan = nvt_tune(a, j->plan, &t->o, t->caps, t->device, at, &j->choice);
  STAGE("tune", nvf_plan_print, nvf_plan_check, j->plan);
  t->terms.any = t->o.nveto == NVF_VETOES; /* no more vetoes are possible */
  int status = j->text || !t->g->nout ? nvd_prepare_dry(j->plan, t->device, j->choice, &t->terms) : prepare_plan(a, t);
  TIMED("prepare");
  if (nvb_int(NVB_VERBOSE) >= 3) tell_sizes(a, j);
  if (j->plan->partition != rules) t->terms.step = -1;
  if (status) nvb_throw(a, status, "%s", nvb_message());
}

/* Does a failure mean that a kernel cannot be made? Whether the checker, an emitter, a compiler or a solver says so,
   another plan may avoid it. */
static int is_rejection(int status) {
  return status == NVM_ERR_UNSUPPORTED || status == NVM_ERR_VALUE || status == NVM_ERR_TYPE ||
         status == NVM_ERR_INTERNAL;
}

static atomic_llong planned;
int64_t nva_planned(void) { return planned; }

/* Settings that ask for a plan of each graph are followed. */
static int may_bind(const nva_job *j) {
  return !j->text && !j->program && fuse_on() && !nvt_is_measuring() && !*nvb_str(NVB_DUMP) &&
         !nvb_has(NVB_CHECK, "plan") && !nvb_has(NVB_CHECK, "bits");
}

int nva_job_bind(nvb_arena *a, nva_job *j, const nva_views *v, const nvg_graph *g, nvf_signature *s,
                 const nvb_caps *caps) {
  if (!may_bind(j) || !nvf_signature_of(s, a, g, caps)) return 0;
  s->key = nva_generic_key(s->key);
  nva_program *of = nva_program_find(s->key);
  int status = of ? nva_program_bind(&j->program, a, of, v, g, s) : NVM_OK;
  nva_program_unref(of);
  if (status) nvb_throw(a, status, "%s", nvb_message());
  if (j->program) nvb_log(3, "bound: a program was planned for other sizes of their classes");
  return 1;
}

/* Keeps the generic form of the job's program. Without memory for it other sizes are planned. */
static void keep_form(const nva_job *j, const nvg_graph *g, const nvf_signature *s) {
  nva_program *form;
  if (nva_program_generalise(&form, j->program, j->plan, s)) nvb_clear();
  if (form) nva_program_keep(s->key, form), nva_direct_note_form(g);
  nva_program_unref(form);
}

/* ---- plans in the disk cache */
/* To plan so many values takes ten times as long as to look for a plan and to keep it. */
enum { KEPT_FROM = 256 };
static int may_keep(const nva_job *j, const attempt *t) { return !t->device && t->g->n >= KEPT_FROM && may_bind(j); }

/* Makes the program of the plan that the disk cache has for the graph; returns 0 if it has none that can be
   prepared. */
static int prepare_kept(nvb_arena *a, attempt *t) {
  nva_job *j = t->j;
  if (!(j->plan = nvf_plan_find(a, j->key, t->g, t->caps))) return 0;
  TIMED("plan");
  if (prepare_run(t)) return nvb_clear(), 0;
  TIMED("prepare");
  if (nvb_int(NVB_VERBOSE) >= 3) tell_sizes(a, j);
  nvb_log(3, "kept: the disk cache had the plan");
  return 1;
}

/* Plans the graph, again with a veto while a step is rejected. Returns a status. */
static int plan_anew(nvb_arena *a, attempt *t, nvf_veto *veto) {
  int status;
  while (is_rejection(status = nvb_protect(a, try_plan, t)) && t->o.nveto < NVF_VETOES) {
    nvb_log(1, "step %d is refused: %s", t->terms.step + 1, nvb_message());
    veto[t->o.nveto++] = (nvf_veto){ t->terms.step, nvb_strdup(a, nvb_message()) };
  }
  return status;
}

/* Makes the program of a collected graph. Throws. */
static void plan_job(nvb_arena *a, void *arg) {
  nva_job *j = arg;
  nvd_device *device = j->dev > 1 ? nva_gpu("eval", j->dev) : NULL;
  if (j->dev > 1 && !device) nvb_throw(a, nvb_status(), "%s", nvb_message());
  nvb_caps cpu = nvb_caps_cpu();
  const nvb_caps *caps = device ? nvd_device_caps(device) : nvb_dup(a, &cpu, sizeof cpu);
  nva_stages_start(&j->stages);
  STAGE("collect", nvg_graph_print, check_nothing, j->g);
  nvg_graph *s = nvg_simplify(a, j->g);
  STAGE("graph", nvg_graph_print, nvg_graph_check, s);
  nva_views views;
  s = nva_split_views(a, &views, s, s->nout - j->ncopied); /* outputs that are only views of a leaf need no kernel */
  nvf_signature signature;
  int serves = nva_job_bind(a, j, &views, s, &signature, caps);
  TIMED("bind");
  if (serves && j->program) return;
  nvf_veto *veto = NVB_NEWN(a, nvf_veto, NVA_ATTEMPTS);
  attempt t = { .j = j, .g = s, .caps = caps, .device = device, .views = &views };
  int singly = nva_stands_alone(j, s);
  t.o = (nvf_options){ .fuse = fuse_on() && !singly,
                       .general = singly,
                       .nveto = nva_program_vetoes(veto, j->program),
                       .veto = veto,
                       .capabilities = has_calls(s, device != NULL) ? nvd_capabilities(caps->kind) : 0,
                       .step = &t.terms.step };
  int keeps = may_keep(j, &t), kept = keeps && prepare_kept(a, &t), status = kept ? NVM_OK : plan_anew(a, &t, veto);
  /* an interrupt may have cut tuning short */
  if (!status && !j->text && (status = nvb_interrupted())) nvd_program_free(t.run), nva_program_unref(t.stand_in);
  if (!status && !j->text) {
    nva_views_donors(&views, j->plan);
    status = nva_program_make(&j->program, &views, t.run, device, t.o.nveto, veto);
    nva_program_bridge(status ? NULL : j->program, t.stand_in);
    planned += !status && !kept;
    if (!status && serves && !kept) keep_form(j, s, &signature);
    if (!status && keeps && !kept) nvf_plan_keep(j->plan, j->key, caps);
  }
  if (status) nvb_throw(a, status, "%s", nvb_message());
}

/* Runs a stage on a stack whose size grows with the graph, since stages recurse along it and tracing can make long
   graphs. */
int nva_job_protect(nvb_arena *a, const nva_job *j, void (*stage)(nvb_arena *a, void *arg), void *arg) {
  enum { SHORT = 256, EACH = 16 << 10 };
  return j->g->n <= SHORT ? nvb_protect(a, stage, arg)
                          : nvb_protect_deep(a, (size_t)(j->g->n + SHORT) * EACH, stage, arg);
}
int nva_job_plan(nvb_arena *a, nva_job *j) { return nva_job_protect(a, j, plan_job, j); }

static int is_pending(const nvg_node *n) { return !atomic_load(&n->value); }

/* Collects the roots that run on the job's device into a graph, none if a claim is missing. Throws. */
static void collect_job(nvb_arena *a, void *arg) {
  nva_job *j = arg;
  nvg_node **root = NVB_NEWN(a, nvg_node *, j->nroot);
  int n = 0;
  for (int i = 0; i < j->nroot; i++)
    if (nva_device_of(j->ctx, j->roots[i]) == j->dev && (j->text || is_pending(j->roots[i]))) root[n++] = j->roots[i];
  j->g = nvg_collect(a, root, n, &j->claims);
  for (int i = 0; j->g && i < j->g->nleaf && !j->text; i++)
    if (j->g->leaf_node[i]->flags & NVG_INVALIDATED)
      nvb_throw(
          a, NVM_ERR_STATE,
          "[donate] this depends on an array that was donated to an evaluation which failed; make the array anew");
    else if (is_pending(j->g->leaf_node[i]))
      nvb_throw(a, NVM_ERR_STATE,
                "[eval] this asks for a value that depends on an argument of a function being traced, which "
                "has none yet; use where() instead of if, or make the argument static");
}

/* No lock is held while a graph is planned, compiled and run. Evaluations meet in nodes alone: each claims those of its
   graph, all or none. One that has had to wait collects again in turn with others that have, so that two cannot take
   claims from each other forever. */
int nva_job_claim(nvb_arena *a, nva_job *j) {
  static nvb_lock turn = NVB_LOCK(EVALUATION);
  for (int again = 0;; again = 1) {
    int status = again ? nvb_lock_wait(&turn) : NVM_OK;
    if (status) return status;
    j->claims = (nvg_claims){ .arena = a, .cut = j->cut };
    status = nvb_protect(a, collect_job, j);
    if (again) nvb_lock_give(&turn);
    if (status || j->g) return status;
    if ((status = nvg_claims_wait(&j->claims))) return status;
  }
}

/* Transfers the leaves' values to the device that runs the graph, and notes their layout in the graph. Throws. */
static void transfer_leaves(nvb_arena *a, void *arg) {
  nva_job *j = arg;
  nvg_graph *g = j->g;
  int calls = has_calls(g, 0);
  for (int i = 0; i < g->nleaf; i++) {
    j->leaf[i] = atomic_load(&g->leaf_node[i]->value);
    const nvg_aval *av = g->leaf_node[i]->aval;
    int dev = g->leaf[i].weak_const ? 1 : j->dev, status = nva_check_borrowed(j->leaf[i], av);
    if (!status && j->leaf[i]->device + 1 != dev) status = nva_transfer(&j->leaf[i], av, dev, &j->moved[i]);
    if (status) nvb_throw(a, status, "%s", nvb_message());
    g->leaf[i].stride = j->leaf[i]->stride;
    g->leaf[i].align16 = (uintptr_t)j->leaf[i]->data % 16 == 0;
    g->leaf[i].extreme = calls && g->leaf[i].weak_const && nvg_is_extreme(av->dtype, j->leaf[i]->data);
    g->leaf[i].donated &= nva_is_alone(j->leaf[i]);
  }
}

static int run_job(nva_job *j) {
  int nout = j->g->nout;
  nvg_value **out = nvb_alloc(sizeof *out * (size_t)(nout + 1));
  if (!out) return nvb_fail_memory();
  int asked = nvb_interrupted(), status = asked ? asked : nva_program_run(j->program, j->leaf, out);
  if (!status) nvg_computed(j->g);
  for (int i = 0; i < nout && !status; i++) nvg_node_set(j->g->out_node[i], out[i]);
  /* the failed run may have written to donated memory */
  int wrote = status && !asked && status != NVM_ERR_MEMORY && status != NVM_ERR_UNSUPPORTED;
  for (int i = 0; i < j->g->nleaf && wrote; i++)
    if (j->g->leaf[i].donated) j->g->leaf_node[i]->flags |= NVG_INVALIDATED;
  nvb_free(out);
  return status;
}

/* Runs the program that is known for the graph; a new graph directly if that is expected to be cheaper, else by a
   program that is bound or planned. */
static int run_or_plan(nvb_arena *a, nva_job *j) {
  nvb_hash key = j->key = nva_program_key(j->g, j->dev);
  if ((j->program = nva_program_find(key))) return run_job(j);
  int status = nva_job_direct(a, j, key);
  if (status) return status;
  if (nva_program_is_bound(j->program)) {
    nva_program_keep(key, j->program);
    return run_job(j);
  }
  if (j->program) {
    /* a plan needs less memory, and its checks tell which index was out of range */
    status = run_job(j);
    if (status != NVM_ERR_INDEX && status != NVM_ERR_MEMORY) return status;
    nva_program_unref(j->program);
    j->program = NULL;
  }
  if ((status = nva_job_plan(a, j))) return status;
  nva_program_keep(key, j->program);
  return run_job(j);
}

static int compute_job(nvb_arena *a, nva_job *j) {
  int n = j->g->nleaf, status;
  if (!(j->leaf = nvb_calloc(2 * (size_t)n + 1, sizeof *j->leaf))) return nvb_fail_memory();
  j->moved = j->leaf + n;
  if (!(status = nvb_protect(a, transfer_leaves, j))) {
    j->known = j->leaf;
    status = run_or_plan(a, j);
    nva_program_unref(j->program);
  }
  for (int i = 0; i < n; i++) nvg_value_free(j->moved[i]);
  nvb_free(j->leaf);
  return status;
}

static int evaluate_job(nvb_arena *a, nva_job *j) {
  int status = nva_job_claim(a, j);
  if (!status && j->g->nout) status = compute_job(a, j); /* no outputs: others have computed them meanwhile */
  nvg_claims_drop(&j->claims);
  return status;
}

/* cut: see nvg_claims */
static int evaluate(nvm_ctx *c, nvg_node *const *roots, int n, int cut) {
  int i = 0, status = NVM_OK;
  while (i < n && !is_pending(roots[i])) i++;
  if (i == n) return NVM_OK;
  nvb_failure before;
  nvb_failure_keep(&before);
  unsigned fp = nvb_fp_enter();
  nvb_interrupt_enter();
  double spent = 0;
  if (nva_run_small(c, roots + i, n - i, &spent)) i = n;
  for (; i < n && !status; i++) {
    if (!is_pending(roots[i])) continue;
    /* one job for all roots on this device */
    nva_job j = {
      .ctx = c, .roots = roots + i, .nroot = n - i, .dev = nva_device_of(c, roots[i]), .cut = cut, .spent = spent
    };
    nvb_arena *a = nvb_arena_new();
    if (a) nvb_arena_ask(a);
    status = a ? evaluate_job(a, &j) : nvb_fail_memory();
    nvb_arena_free(a);
  }
  if (!status) status = nvb_lock_order_kept();
  nvb_interrupt_leave();
  nvb_fp_leave(fp);
  if (!status) nvb_failure_put_back(&before);
  return status;
}

int nva_eval(nvm_ctx *c, nvg_node *const *roots, int n) { return evaluate(c, roots, n, 0); }

/* For traced functions: finds or makes a program for a graph whose leaves are placeholders, for values laid out like
   these. Returns a status. */
int nva_program_for(nva_program **out, nvb_arena *a, nvg_graph *g, int dev, nvg_value *const *leaf, int nviews) {
  nva_job j = { .g = g, .dev = dev, .known = leaf, .ncopied = g->nout - nviews };
  nvb_hash key = nva_program_key(g, dev);
  key = j.key = nvb_hash_mix(key, &j.ncopied, sizeof j.ncopied);
  if ((*out = nva_program_find(key))) return NVM_OK;
  int status = nva_job_plan(a, &j);
  if (!status) nva_program_keep(key, j.program);
  *out = j.program;
  return status;
}

enum { DEPTH = 512 };
int nva_eval_if_deep(nvm_ctx *c, nvg_node *n) {
  int64_t limit = nvb_int(NVB_MEM_LIMIT);
  int large = limit > 0 && nvg_pending_bytes() > limit / 4;
  if ((n->depth < DEPTH && !large) || nva_tracing() || atomic_load(&n->value)) return NVM_OK;
  return evaluate(c, &n, 1, n->depth < DEPTH ? 0 : n->depth);
}
