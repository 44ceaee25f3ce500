/* The autotuning stage between fuse and prepare: looks up each step that is worth tuning by its key, measures it if the
   mode says so, and makes it again with the best config. A config changes the time of a step, and for a GEMM also how
   sums are rounded. */
#include "autotune/tune.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "autotune/candidates.h"
#include "autotune/harness.h"
#include "autotune/record.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/settings.h"
#include "codegen/cuda/cuda.h"
#include "dispatch/cuda/device.h"

static const double STEP_BUDGET = 4e9; /* ns for tuning one step */

static _Atomic int64_t measured, timed;
nvt_counts nvt_counted(void) {
  return (nvt_counts){ atomic_load(&measured), atomic_load(&timed), nvt_records_found() };
}

/* ---- sessions and modes */
typedef struct session { struct session *outer; pthread_t thread; nvt_session s; } session;
static session *top;
static nvb_lock lock = NVB_LOCK(SESSIONS);
static nvb_lock at_work = NVB_LOCK(MEASURING);
static atomic_int nopen;

/* Drops the sessions of threads that do not exist in a forked child. */
static void reset_in_child(void) {
  for (session **at = &top; *at;)
    if (pthread_equal((*at)->thread, pthread_self())) at = &(*at)->outer;
    else {
      session *lost = *at;
      *at = lost->outer;
      nvb_free(lost);
      atomic_fetch_sub(&nopen, 1);
    }
}
NVB_HOLD_AT_FORK(lock);
NVB_AT_FORK(.in_child = reset_in_child);

int nvt_begin(const nvt_session *s) {
  session *mine = nvb_alloc(sizeof *mine);
  if (!mine) return nvb_fail_memory();
  mine->s = *s;
  mine->thread = pthread_self();
  nvb_lock_take(&lock);
  mine->outer = top;
  top = mine;
  atomic_fetch_add(&nopen, 1);
  nvb_lock_give(&lock);
  nvt_record_again();
  nvb_settings_touch(); /* earlier programs are planned again, and measured */
  return NVM_OK;
}

int nvt_end(void) {
  session *mine, **at = &top;
  nvb_lock_take(&at_work); /* a thread that measures may be reporting progress to it */
  nvb_lock_take(&lock);
  while (*at && !pthread_equal((*at)->thread, pthread_self())) at = &(*at)->outer;
  if ((mine = *at)) {
    *at = mine->outer;
    atomic_fetch_sub(&nopen, 1);
  }
  nvb_lock_give(&lock);
  nvb_lock_give(&at_work);
  if (!mine) return nvb_fail(NVM_ERR_STATE, "[tune_end] this thread has no tuning session open");
  nvb_free(mine);
  return NVM_OK;
}

/* The newest session; without one, the setting's defaults. */
static nvt_session session_now(void) {
  nvt_session s = { .budget = INFINITY };
  nvb_lock_take(&lock);
  if (top) s = top->s;
  nvb_lock_give(&lock);
  return s;
}

static void spend_time(int64_t since) {
  double ns = (double)(nvb_clock_ns() - since);
  nvb_lock_take(&lock);
  for (session *s = top; s; s = s->outer) s->s.budget -= ns;
  nvb_lock_give(&lock);
}

typedef enum mode { OFF, LOOK, MEASURE } mode;
static mode mode_now(const nvf_plan *p) {
  const char *tune = nvb_str(NVB_TUNE);
  int interpreted = p->device == NVB_CPU && (!strcmp(nvb_str(NVB_TIER), "0") || !strcmp(nvb_str(NVB_FUSE), "off"));
  if (!strcmp(tune, "off") || nvb_int(NVB_REPRODUCIBLE) || interpreted) return OFF;
  if (!strcmp(tune, "frozen")) return LOOK;
  return nvt_is_measuring() ? MEASURE : LOOK;
}

int nvt_is_measuring(void) { return atomic_load(&nopen) || !strcmp(nvb_str(NVB_TUNE), "measure"); }

/* ---- keys */
int nvt_is_worth_tuning(const nvf_step *s) {
  return !s->routine && !s->in_strips && s->bytes_read + s->bytes_written >= NVF_TUNED_FROM;
}

/* Has it transforms that kernels or a library may compute? */
static int has_transforms(const nvf_plan *p) {
  for (int i = 0; i < p->given->n && p->device != NVB_CPU; i++)
    if (p->given->v[i].op == NVG_OP_DFT) return 1;
  return 0;
}

const char *nvt_device_in_words(nvb_arena *a, const nvb_caps *caps, nvd_device *d, int product) {
  nvb_text t = { .arena = a };
  if (d)
    nvb_print(&t, "%s, %d SMs; NVRTC %s", nvd_device_line(nvd_device_ordinal(d)), caps->cores, nvc_nvrtc_version());
  else nvb_print(&t, "%s %s; LLVM %s", nvc_target_host()->cpu, caps->name, nvc_llvm_version());
  if (product) nvb_print(&t, d ? "; cuBLASLt %s" : "; %s", d ? nvd_cublaslt_line() : nvd_openblas_line());
  return nvb_text_get(&t);
}

static int is_transform(const nvf_step *s) { return s->routine && s->routine->op == NVG_OP_DFT; }

static nvb_hash mix_transform(nvb_hash h, const nvf_routine *r) {
  size_t rank = (size_t)r->result.rank * sizeof *r->result.shape;
  h = nvb_hash_mix(h, r->attr, (size_t)r->nattr * sizeof *r->attr);
  h = nvb_hash_mix(h, r->in[0].shape, rank);
  h = nvb_hash_mix(h, r->in[0].stride, rank);
  h = nvb_hash_mix(h, &r->in[0].type, sizeof r->in[0].type);
  return nvb_hash_mix(h, nvd_cufft_line(), strlen(nvd_cufft_line()));
}

/* The key of a step: the text of the kernel and schedule that the rules make, its size classes (for a GEMM its exact
   sizes), the device, and the version. Strides and alignment are in it through the schedule, which depends on them. */
static nvb_hash key_of(nvb_arena *a, const nvf_plan *p, const nvf_step *s, const char *device, nvb_text *size) {
  nvb_text t = { .arena = a };
  nvf_kernel_print(&t, s->k);
  nvf_schedule_print(&t, s->k, s->s, nvf_schedule_of(p->device));
  for (int i = 0; i < s->k->nparam; i++)
    if (s->k->param[i].kind == NVF_SIZE) {
      int c = nvf_size_class((int64_t)s->bind[i].bits);
      nvb_print(size, "%s%s=", size->n ? " " : "", s->k->param[i].name);
      if (s->gemm || !c) nvb_print(size, "%lld", (long long)s->bind[i].bits);
      else nvb_print(size, c > 64 ? "-2^%d" : "2^%d", (c - 1) % 64);
    }
  nvb_hash h = nvb_hash_bytes(nvb_text_get(&t), t.n);
  h = nvb_hash_mix(h, nvb_text_get(size), size->n);
  h = nvb_hash_mix(h, device, strlen(device));
  if (is_transform(s) && p->device != NVB_CPU) h = mix_transform(h, s->routine);
  return nvb_hash_mix(h, &(int){ NVT_VERSION }, sizeof(int));
}

/* ---- one step */
typedef struct tuner {
  nvf_plan *p, *out; /* out: the plan with the choices made so far */
  const nvb_caps *caps;
  nvd_device *device;
  const nvd_operand *leaf;
  mode mode;
  const char *where[2];      /* the device, readable: for kernels; for GEMM steps, with the library */
  nvd_solver_choice *choice; /* for each step; at first the rules' choice */
  int own;                   /* GEMM steps run as generated kernels, whatever libraries there are */
  nvb_hash *key;
  nvb_text *size;
  int *wanted; /* steps to measure */
  int *known;  /* for each step: candidates that its incomplete record has timed; 0: no record */
  int nwanted;
  nvt_harness *harness;
  nvt_session session;
  int at;                /* index into wanted, for progress reports */
  double done, fraction; /* of the step, for progress: before this pass; of this pass */
} tuner;

static const char *described_by(nvb_arena *a, const nvt_record *r, const char *from) {
  nvb_text t = { .arena = a };
  char day[32];
  time_t date = (time_t)r->date;
  struct tm tm;
  strftime(day, sizeof day, "%Y-%m-%d", gmtime_r(&date, &tm));
  nvb_print(&t, "%s, %s %s: %.4g us",
            *r->description ? r->description
            : *r->config    ? r->config
                            : "by the rules",
            from, day, r->ns * 1e-3);
  if (*r->config) nvb_print(&t, " (by the rules %.4g)", r->model_ns * 1e-3);
  if (!r->complete) nvb_puts(&t, ", the best so far");
  return nvb_text_get(&t);
}

typedef struct remake { tuner *u; int i; nvf_knobs knobs; nvd_solver_choice call; nvf_step *made; } remake;
static void make_again(nvb_arena *a, void *arg) {
  remake *m = arg;
  m->made = nvf_step_with(m->u->p, m->i, &m->knobs);
  nvf_kernel_check(a, m->made->k, m->made->s);
}

/* Makes step i as the record says; it stays as it is if that is not possible or the solver does not support it. Returns
   0 if the record's config means nothing here. */
static int follow_record(nvb_arena *a, tuner *u, int i, const nvt_record *r, const char *from) {
  remake m = { .u = u, .i = i };
  if (!nvt_config_read(&m.knobs, &m.call, r->config) || !nvt_config_fits(u->p, i, u->caps, &m.knobs, &m.call)) return 0;
  if (*m.call.solver && !nvd_solver_follows(u->p, i, u->device, &m.call)) return 1;
  if (!m.knobs.set) m.made = nvb_dup(a, &u->p->step[i], sizeof *m.made);
  else if (nvb_protect(a, make_again, &m)) {
    nvb_clear();
    return 1;
  }
  m.made->chosen = described_by(a, r, from);
  u->out->step[i] = *m.made;
  u->choice[i] = m.call;
  return 1;
}

static void tell_progress(void *arg, double part) {
  tuner *u = arg;
  const nvf_step *s = &u->p->step[u->wanted[u->at]];
  if (u->session.progress)
    u->session.progress(u->session.user,
                        &(nvm_tune_progress){ u->at, u->nwanted, s->what, u->done + part * u->fraction });
}

/* The rules of a measurement; samples on a device scatter less, so a smaller gain counts. */
static nvt_rules rules_of(const tuner *u, double budget, double prune, nvb_hash key) {
  return (nvt_rules){ budget, 9, prune, u->device ? 0.01 : 0.02, key.lo };
}

/* Times candidates of a step. Returns the number of the fastest, -1 if none could be timed; *complete becomes 0 if time
   ran out. */
static int race_configs(tuner *u, int i, const nvt_config *at, int n, nvt_candidate *c, double budget, int *complete) {
  nvt_variant trial[NVT_MOST];
  for (int k = 0; k < n; k++) {
    trial[k] = (nvt_variant){ nvt_harness_step(u->harness, at[k].step), &at[k].call, at[k].text };
    c[k].model = at[k].model;
  }
  nvt_rules r = rules_of(u, budget, 3, u->key[i]);
  int won = nvt_harness_choose(u->harness, u->key[i], trial, c, n, &r, tell_progress, u);
  *complete &= nvt_complete(&r, c, n);
  return won;
}

static nvd_solver_choice by_rules(const tuner *u, int i) {
  nvd_solver_choice c = { .solver = "" };
  if (u->own && u->p->step[i].gemm) memcpy(c.solver, "kernel", 7);
  return c;
}

static nvt_config own_choice(nvb_arena *a, const tuner *u, int i) {
  nvb_text t = { .arena = a };
  nvt_config own = { .description = "", .step = &u->p->step[i], .call = by_rules(u, i) };
  nvt_config_print(&t, &own.knobs, &own.call);
  own.text = nvb_text_get(&t);
  return own;
}

/* A search is complete if it ran to its end, or had the full budget of a step, timed something beside the rules'
   choice, and was not interrupted. */
static int is_over(double budget, int complete, int others) {
  return complete || (budget >= STEP_BUDGET && others > 0 && !nvb_interrupt_pending());
}

/* Searches pass by pass from the best config so far, and times it at the end against the rules' choice. Returns 0 if
   nothing could be timed. */
static int find_best(nvb_arena *a, tuner *u, int i, nvt_record *r, double all) {
  nvt_config own = own_choice(a, u, i), best = own, *at = NVB_NEWN(a, nvt_config, NVT_MOST);
  nvt_candidate *c = NVB_NEWN(a, nvt_candidate, NVT_MOST);
  int passes = nvt_passes(u->p->device, own.step), won = -1;
  int64_t start = nvb_clock_ns();
  r->complete = 1;
  u->fraction = 1.0 / (passes + 1);
  for (int pass = 0; pass <= passes; pass++) {
    double left = all - (double)(nvb_clock_ns() - start);
    int n = 2;
    u->done = pass * u->fraction;
    at[0] = own;
    at[1] = best;
    if (pass < passes) n = nvt_candidates(a, u->p, i, u->caps, u->device, pass, &best, at);
    int alone = n == 1 || (pass == passes && !strcmp(best.text, own.text)), late = pass && left <= 0;
    r->complete &= alone || !late;
    if ((pass && alone) || late) continue;
    if ((won = race_configs(u, i, at, n, c, left / (passes + 1 - pass), &r->complete)) < 0) return 0;
    best = at[won];
    for (int k = 0; k < n && pass < passes; k++) r->tried += c[k].n > 0 && (k || !pass);
    if (!strcmp(at[0].text, own.text)) r->model_ns = c[0].median;
    r->ns = c[won].median;
  }
  u->done = 0;
  u->fraction = 1;
  tell_progress(u, 1);
  r->complete = is_over(all, r->complete, r->tried - 1);
  snprintf(r->config, sizeof r->config, "%s", best.text);
  snprintf(r->description, sizeof r->description, "%s", best.description);
  return 1;
}

/* Measures one step and stores the record. An incomplete search is stored only if it timed more candidates than the
   record before, and not only the rules' choice. */
static void measure_step(nvb_arena *a, tuner *u, int i) {
  const nvf_step *s = &u->p->step[i];
  nvt_record r = { .key = u->key[i], .date = (int64_t)time(NULL) };
  double all = u->session.budget < STEP_BUDGET ? u->session.budget : STEP_BUDGET;
  int64_t start = nvb_clock_ns();
  int ok = all > 0 && !nvt_harness_reach(u->harness, i) && find_best(a, u, i, &r, all);
  spend_time(start);
  nvb_clear();
  if (!ok || (!r.complete && (r.tried < 2 || r.tried <= u->known[i]))) return;
  snprintf(r.device, sizeof r.device, "%s", u->where[s->gemm != NULL]);
  snprintf(r.what, sizeof r.what, "%s: %s", s->hero, s->what);
  snprintf(r.size, sizeof r.size, "%s", nvb_text_get(&u->size[i]));
  nvt_record_keep(&r);
  atomic_fetch_add(&measured, 1);
  atomic_fetch_add(&timed, r.tried);
  nvb_log(2, "tuning: %s: %s, %.4g us, by the rules %.4g, %d timed", r.what, *r.config ? r.config : "by the rules",
          r.ns * 1e-3, r.model_ns * 1e-3, r.tried);
  follow_record(a, u, i, &r, "measured");
}

static void measure_all(nvb_arena *a, void *arg) {
  tuner *u = arg;
  u->harness = nvt_harness_new(a, u->p, u->choice, u->caps, u->device, u->leaf, session_now().cold);
  for (u->at = 0; u->at < u->nwanted && !nvb_interrupt_pending(); u->at++) {
    u->session = session_now();
    measure_step(a, u, u->wanted[u->at]);
  }
}

/* ---- all steps of a plan */
static int has_gemm(const nvf_plan *p) {
  for (int i = 0; i < p->nstep; i++)
    if (p->step[i].gemm) return 1;
  return 0;
}

static void look_up(nvb_arena *a, tuner *u) {
  const nvf_plan *p = u->p;
  int all = has_gemm(p) || has_transforms(p); /* the key of such a plan consists of the keys of its steps */
  for (int i = 0; i < p->nstep; i++) {
    nvt_record r;
    int product = p->step[i].gemm != NULL;
    u->choice[i] = by_rules(u, i);
    if (!all && !nvt_is_worth_tuning(&p->step[i])) continue;
    if (!u->where[product]) u->where[product] = nvt_device_in_words(a, u->caps, u->device, product);
    u->size[i] = (nvb_text){ .arena = a };
    u->key[i] = key_of(a, p, &p->step[i], u->where[product], &u->size[i]);
    u->key[i] = u->own ? nvb_hash_mix(u->key[i], "own", 3) : u->key[i];
    if (!nvt_is_worth_tuning(&p->step[i])) continue;
    int found = nvt_record_find(&r, u->key[i]) && follow_record(a, u, i, &r, "a record of");
    u->known[i] = found ? r.tried : 0;
    if (u->mode == MEASURE && !(found && r.complete)) u->wanted[u->nwanted++] = i;
  }
}

static void start_tuning(nvb_arena *a, void *arg) {
  tuner *u = arg;
  int n = u->p->nstep + 1;
  nvf_plan *out = nvb_dup(a, u->p, sizeof *u->p);
  out->step = nvb_dup(a, u->p->step, (size_t)u->p->nstep * sizeof *u->p->step);
  u->key = NVB_NEWN(a, nvb_hash, n);
  u->size = NVB_NEWN(a, nvb_text, n);
  u->wanted = NVB_NEWN(a, int, n);
  u->known = NVB_NEWN(a, int, n);
  u->choice = NVB_NEWN(a, nvd_solver_choice, n);
  u->out = out;
  look_up(a, u);
}

static void tune_steps(nvb_arena *a, tuner *u) {
  if (nvb_protect(a, start_tuning, u)) nvb_clear();
  else if (u->nwanted && nvb_protect(a, measure_all, u)) nvb_clear();
  nvt_harness_free(u->harness);
  u->harness = NULL;
}

/* ---- rivals of a plan with GEMMs: the plan made as if there were no libraries, whose kernels may fuse more of the
   following steps; and the plan with float32 GEMMs split into bf16 if they are not, or the reverse. Of a plan with
   transforms on a GPU: all of them by kernels if the library computes some, else all by the library. */
typedef enum way { SPLIT, GIVEN, OWN, KERNELS, LIBRARY } way;
static const struct {
  const char *choice, *words;
} ways[] = {
  [SPLIT] = { "gemm=bf16_split", "matrix products split into bf16" },
  [GIVEN] = { "products=given", "products of f32 as they are" },
  [OWN] = { "products=own", "products by kernels of their own" },
  [KERNELS] = { "transforms=kernels", "transforms by kernels" },
  [LIBRARY] = { "transforms=library", "transforms by the library" },
};
typedef struct rivals { tuner *u, *v; const nvf_options *o; way way; nvf_plan *other; nvt_record r; int won; } rivals;

static int bf16_plan(const nvf_plan *p) { return p->g != p->given; }

static void fuse_other(nvb_arena *a, void *arg) {
  rivals *x = arg;
  nvf_options o = *x->o;
  int split = x->way >= OWN ? bf16_plan(x->u->p) : x->way == SPLIT;
  if (x->way == OWN) o.capabilities = 0;
  if (x->way == KERNELS) o.capabilities &= ~NVF_CAN_DFT;
  if (x->way == LIBRARY) o.capabilities |= NVF_DFT_ALWAYS;
  o.bf16_split = split ? NVF_BF16_ALWAYS : NVF_BF16_NEVER;
  x->other = nvf_fuse(a, x->u->p->given, x->u->caps, &o);
}

static int by_library(const nvf_plan *p) { /* the number of transforms that the library computes */
  int n = 0;
  for (int i = 0; i < p->nstep; i++) n += is_transform(&p->step[i]);
  return n;
}

/* Is it worth measuring: has it fewer kernels, the other form of float32 GEMMs, or transforms by others? */
static int is_rival(const rivals *x) {
  const nvf_plan *p = x->u->p, *q = x->other;
  if (x->way >= KERNELS) return by_library(p) != by_library(q);
  return x->way == OWN ? q->nstep < p->nstep : bf16_plan(q) != bf16_plan(p);
}

static void race_whole(nvb_arena *a, void *arg) {
  rivals *x = arg;
  tuner *u = x->u;
  nvt_candidate c[2] = { { .n = 0 } };
  u->session = session_now();
  u->harness = nvt_harness_new(a, u->out, u->choice, u->caps, u->device, u->leaf, u->session.cold);
  nvt_variant t[2] = { { nvt_harness_all(u->harness, u->out), u->choice, "" },
                       { nvt_harness_all(u->harness, x->v->out), x->v->choice, ways[x->way].choice } };
  double budget = u->session.budget < STEP_BUDGET ? u->session.budget : STEP_BUDGET;
  int64_t start = nvb_clock_ns();
  nvt_rules r = rules_of(u, budget, 0, x->r.key);
  x->won = -1;
  if (budget > 0 && !nvt_harness_whole(u->harness))
    x->won = nvt_harness_choose(u->harness, x->r.key, t, c, 2, &r, NULL, NULL);
  spend_time(start);
  if (!is_over(budget, nvt_complete(&r, c, 2), c[1].n)) /* time ran out */
    x->won = -1;
  x->r.tried = c[1].n > 0;
  x->r.model_ns = c[0].median;
  x->r.ns = x->won > 0 ? c[1].median : c[0].median;
}

static void measure_whole(nvb_arena *a, rivals *x) {
  nvt_record *r = &x->r;
  r->complete = 1;
  int status = nvb_protect(a, race_whole, x);
  nvt_harness_free(x->u->harness);
  x->u->harness = NULL;
  nvb_clear();
  if (status || x->won < 0) return;
  r->date = (int64_t)time(NULL);
  snprintf(r->device, sizeof r->device, "%s", x->u->where[x->way < KERNELS]);
  snprintf(r->what, sizeof r->what, "plan: %d steps, %d with %s", x->u->p->nstep, x->other->nstep, ways[x->way].words);
  snprintf(r->config, sizeof r->config, "%s", x->won ? ways[x->way].choice : "");
  snprintf(r->description, sizeof r->description, "%s", x->won ? ways[x->way].words : "");
  nvt_record_keep(r);
}

/* Replaces the plan by its rival if a record or a measurement says that the rival is faster. */
static void race_forms(nvb_arena *a, tuner *u, const nvf_options *o, way way) {
  tuner v = { .caps = u->caps, .device = u->device, .leaf = u->leaf, .mode = u->mode, .own = way == OWN };
  rivals x = { .u = u, .v = &v, .o = o, .way = way };
  nvb_hash key = nvb_hash_bytes(ways[way].choice, strlen(ways[way].choice) + 1);
  for (int i = 0; i < u->p->nstep; i++) key = nvb_hash_mix(key, &u->key[i], sizeof u->key[i]);
  int known = nvt_record_find(&x.r, key);
  if ((known && strcmp(x.r.config, ways[way].choice)) || (!known && u->mode != MEASURE)) return;
  if (nvb_protect(a, fuse_other, &x)) {
    nvb_clear();
    return;
  }
  if (!is_rival(&x)) return;
  v.p = v.out = x.other;
  tune_steps(a, &v);
  if (!known) {
    x.r = (nvt_record){ .key = key };
    measure_whole(a, &x);
  }
  if (strcmp(x.r.config, ways[way].choice) || !v.choice) return;
  v.out->chosen = described_by(a, &x.r, known ? "a record of" : "measured");
  *u = v;
}

/* A plan that follows a veto has no rivals. */
static void compare_rivals(nvb_arena *a, tuner *u, const nvf_options *o) {
  if (!o->fuse || o->nveto || !u->choice) return;
  if (has_transforms(u->p) && o->capabilities & NVF_CAN_DFT) race_forms(a, u, o, by_library(u->p) ? KERNELS : LIBRARY);
  if (!has_gemm(u->p)) return;
  if (u->p->bf16_note) race_forms(a, u, o, bf16_plan(u->p) ? GIVEN : SPLIT);
  if (o->capabilities) race_forms(a, u, o, OWN);
}

/* ---- the stage */
typedef struct stage { tuner *u; const nvf_options *o; } stage;
static void tune_plan(nvb_arena *a, void *arg) {
  stage *s = arg;
  s->u->caps = nvb_dup(a, s->u->caps, sizeof *s->u->caps); /* a rival's plan points to it */
  tune_steps(a, s->u);
  compare_rivals(a, s->u, s->o);
}

nvf_plan *nvt_tune(nvb_arena *a, nvf_plan *p, const nvf_options *o, const nvb_caps *caps, nvd_device *device,
                   const nvd_operand *leaf, const nvd_solver_choice **choice) {
  nvb_caps here = *caps;
  tuner u = { .p = p, .out = p, .caps = &here, .device = device, .leaf = leaf, .mode = mode_now(p) };
  int any = 0, measures = u.mode == MEASURE && leaf && session_now().budget > 0 && (!device || nvd_may_time(device));
  for (int i = 0; i < p->nstep; i++) any |= nvt_is_worth_tuning(&p->step[i]);
  for (int i = 0; i < p->nstep && device; i++) any |= is_transform(&p->step[i]);
  *choice = NULL;
  if (u.mode == OFF || !any) return p;
  nvb_interrupt_mask(); /* an interrupt must not end a measurement or an update of the crash ledger halfway */
  if (measures) nvb_lock_take(&at_work);
  else u.mode = LOOK;
  int status = nvb_protect(a, tune_plan, &(stage){ &u, o });
  if (measures) nvb_lock_give(&at_work);
  nvb_interrupt_unmask();
  if (status) { /* out of memory: the rules' plan remains */
    nvb_clear();
    return p;
  }
  *choice = u.choice;
  return u.out;
}
