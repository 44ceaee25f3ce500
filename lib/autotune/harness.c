/* The harness: the bench of measure.c for steps of a plan. A step becomes a program of its own, whose inputs are the
   values that earlier steps make and whose outputs are scratch. Rejects candidates whose results differ from those of
   the plan's own step. Never decides which candidate is best. */
#include "autotune/harness.h"
#include <math.h>
#include <string.h>
#include "autotune/compare.h"
#include "autotune/crash_ledger.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "dispatch/cuda/device.h"

/* AIM: the least ns of one sample. POISON: the byte that outputs are filled with before a run; read as a position (of a
   scatter, which reads its output) it is negative, so none. */
enum { AIM = 200000, MOST_RUNS = 64, POISON = 0xa5, FLUSH_MOST = 128 << 20 };
/* Of results larger than STRETCHES * STRETCH bytes on a device, only this many stretches are compared before a
   candidate is timed, and the whole result of the winner. */
enum { STRETCHES = 256, STRETCH = 64 << 10 };
/* A sample on a device counts as hung after HANG ns plus SLOWER times what the plan's own step takes. The device is
   then lost, so the limit must not be reached by a slow candidate on a slow device. */
static const double HANG = 20e9, SLOWER = 100;

/* An output: candidate 0 writes it to a buffer of the plan, the others to scratch. */
typedef struct result { int buf; int64_t bytes; nvm_dtype type; nvd_buf *scratch; } result;

struct nvt_harness {
  nvb_arena *a;
  const nvf_plan *p;
  const nvg_graph *g;              /* the plan's graph with one more leaf for each of the plan's buffers */
  const nvd_solver_choice *choice; /* for each step the choice made before; NULL: the rules' choice */
  struct nvd_device *device;
  const nvd_operand *leaf;
  int nleaf, reached; /* reached: the steps before this one have run */
  nvd_buf **made;     /* for each buffer of p that is no leaf: its memory while a step needs it */
  int *last;          /* for each buffer: the last step that uses it */
  nvd_buf *flush;     /* buffer that is written to empty the caches; NULL: the caches stay warm */
  int hung;
  /* ---- what is measured: the step that was reached, or (whole) the plan */
  int whole;
  nvb_hash key;
  const nvt_variant *variant;
  nvd_program **program;
  int nout;
  result *out;
  double tolerance;
  /* in: by leaf, then by buffer; ref, other: outputs of the plan's own step and of other candidates */
  nvd_operand *in, *ref, *other;
  char **in_at, **ref_at, **other_at; /* the same addresses for the CPU */
  char *host[2];                      /* host copies of a device's output: expected, actual */
  int held;                           /* 2 * the number of the output in host[0], plus 1 if it is whole; -1: none */
  int runs;                           /* runs in one sample */
  double own;                         /* ns of one run of the plan's own step; 0: unknown */
  void (*progress)(void *user, double part);
  void *user;
};

static double clock_now(void *unused) {
  (void)unused;
  return (double)nvb_clock_ns();
}

static nvd_buf *get_buffer(const nvt_harness *l, int64_t bytes) {
  return l->device ? nvd_buf_new_on(l->device, (size_t)bytes) : nvd_buf_new((size_t)bytes);
}

static const nvg_graph *with_leaves(nvb_arena *a, const nvg_graph *g, int more) {
  nvg_graph *r = nvb_dup(a, g, sizeof *g);
  r->leaf = NVB_NEWN(a, nvg_leaf, g->nleaf + more);
  memcpy(r->leaf, g->leaf, (size_t)g->nleaf * sizeof *g->leaf);
  for (int i = 0; i < more; i++) r->leaf[g->nleaf + i] = (nvg_leaf){ .dtype = NVM_U8, .align16 = 1 };
  r->nleaf += more;
  return r;
}

nvt_harness *nvt_harness_new(nvb_arena *a, const nvf_plan *p, const nvd_solver_choice *choice, const nvb_caps *caps,
                             struct nvd_device *device, const nvd_operand *leaf, int cold) {
  nvt_harness *l = NVB_NEW(a, nvt_harness);
  int n = p->nbuf + 1, all = p->g->nleaf + n;
  *l = (nvt_harness){ .a = a,
                      .p = p,
                      .g = with_leaves(a, p->g, n),
                      .choice = choice,
                      .device = device,
                      .leaf = leaf,
                      .nleaf = p->g->nleaf,
                      .made = NVB_NEWN(a, nvd_buf *, n),
                      .last = NVB_NEWN(a, int, n),
                      .out = NVB_NEWN(a, result, n),
                      .in = NVB_NEWN(a, nvd_operand, all),
                      .ref = NVB_NEWN(a, nvd_operand, n),
                      .other = NVB_NEWN(a, nvd_operand, n),
                      .in_at = NVB_NEWN(a, char *, all),
                      .ref_at = NVB_NEWN(a, char *, n),
                      .other_at = NVB_NEWN(a, char *, n) };
  for (int i = 0; i < p->nstep; i++)
    for (int j = 0; j < p->step[i].k->nparam; j++)
      if (p->step[i].bind[j].kind == NVF_BUFFER) l->last[p->step[i].bind[j].buf] = i;
  for (int i = 0; i < l->nleaf; i++) {
    l->in[i] = leaf[i];
    l->in_at[i] = leaf[i].data;
  }
  int64_t bytes = 2 * caps->l2 < FLUSH_MOST ? 2 * caps->l2 : FLUSH_MOST;
  if (cold && !(l->flush = get_buffer(l, bytes))) nvb_throw(a, NVM_ERR_MEMORY, "%s", nvb_message());
  return l;
}

void nvt_harness_free(nvt_harness *l) {
  for (int i = 0; l && i < l->p->nbuf; i++) nvd_buf_unref(l->made[i]);
  if (l) nvd_buf_unref(l->flush);
}

/* ---- a step as a plan of its own */
static int is_written_by(const nvf_step *s, int buf) {
  for (int i = 0; i < s->k->nparam; i++)
    if (s->bind[i].kind == NVF_BUFFER && s->bind[i].buf == buf && s->k->param[i].written) return 1;
  return 0;
}

/* A copy of the plan that never writes to the memory of leaves: no donors. */
nvf_plan *nvt_harness_all(nvt_harness *l, const nvf_plan *p) {
  nvf_plan *q = nvb_dup(l->a, p, sizeof *p);
  q->buf = nvb_dup(l->a, p->buf, (size_t)p->nbuf * sizeof *p->buf);
  for (int b = 0; b < p->nbuf; b++) q->buf[b].donor = -1;
  return q;
}

/* Makes a plan of n forms of a step. The buffers that it writes become outputs, in the order of l->out; those that
   earlier steps made become further leaves. */
static nvf_plan *plan_alone(nvt_harness *l, nvf_step *step, int n) {
  nvf_plan *q = nvt_harness_all(l, l->p);
  q->g = l->g;
  q->nstep = n;
  q->step = step;
  q->temp_bytes = q->nstrips = 0;
  for (int b = 0; b < q->nbuf; b++)
    if (q->buf[b].kind != NVF_BLEAF) {
      q->buf[b].kind = NVF_BLEAF;
      q->buf[b].id = l->nleaf + b;
    }
  for (int i = 0; i < l->nout; i++) {
    q->buf[l->out[i].buf].kind = NVF_BOUT;
    q->buf[l->out[i].buf].id = i;
  }
  return q;
}
nvf_plan *nvt_harness_step(nvt_harness *l, nvf_step *step) { return plan_alone(l, step, 1); }

static nvm_dtype type_of(const nvf_step *s, int buf) {
  for (int i = 0; i < s->k->nparam; i++)
    if (s->bind[i].kind == NVF_BUFFER && s->bind[i].buf == buf) return s->k->param[i].type;
  return NVM_U8;
}

/* Allocates memory for buffer b, which becomes output number i. Returns a status. */
static int add_result(nvt_harness *l, int i, int b, nvm_dtype type) {
  if (!l->made[b] && !(l->made[b] = get_buffer(l, l->p->buf[b].bytes))) return nvb_status();
  l->out[i] = (result){ b, l->p->buf[b].bytes, type, NULL };
  l->ref[i] = (nvd_operand){ l->device ? l->made[b] : NULL, l->made[b]->data };
  l->ref_at[i] = l->made[b]->data;
  return NVM_OK;
}

/* Sets up the inputs of step i and memory for its outputs. Returns a status. */
static int set_up(nvt_harness *l, int i) {
  const nvf_step *s = &l->p->step[i];
  int status = NVM_OK;
  l->nout = 0;
  l->tolerance = nvt_tolerance(s);
  for (int b = 0; b < l->p->nbuf && !status; b++) {
    if (is_written_by(s, b)) status = add_result(l, l->nout++, b, type_of(s, b));
    l->in_at[l->nleaf + b] = l->made[b] ? l->made[b]->data : NULL;
    l->in[l->nleaf + b] = (nvd_operand){ l->device ? l->made[b] : NULL, l->in_at[l->nleaf + b] };
  }
  return status;
}

int nvt_harness_whole(nvt_harness *l) {
  enum { THROUGH = 4 }; /* later operations may enlarge the error of a product or a transform */
  const nvg_graph *g = l->p->g;
  int status = NVM_OK;
  l->whole = 1;
  l->nout = g->nout;
  l->tolerance = l->device ? THROUGH * nvt_tolerance_of_transforms(l->p->given) : 0;
  for (int i = 0; i < l->p->nstep; i++) l->tolerance = fmax(l->tolerance, THROUGH * nvt_tolerance(&l->p->step[i]));
  for (int b = 0; b < l->p->nbuf && !status; b++)
    if (l->p->buf[b].kind == NVF_BOUT) status = add_result(l, l->p->buf[b].id, b, g->v[g->out[l->p->buf[b].id]].dtype);
  return status;
}

/* Runs the program `runs` times, into the plan's own buffers or into scratch. *ns: the time of all runs. Returns a
   status. */
static int run_program(nvt_harness *l, nvd_program *p, int scratch, int runs, double *ns) {
  double limit = scratch ? HANG + SLOWER * l->own * runs : INFINITY;
  if (l->device) return nvd_time_on(ns, p, l->in, scratch ? l->other : l->ref, runs, l->flush, limit, &l->hung);
  int status = NVM_OK;
  *ns = 0;
  for (int i = 0; i < runs && !status; i++) {
    if (l->flush) memset(l->flush->data, i, l->flush->bytes);
    int64_t start = nvb_clock_ns();
    status = nvd_run(p, l->in_at, scratch ? l->other_at : l->ref_at);
    *ns += (double)(nvb_clock_ns() - start);
  }
  return status;
}

int nvt_harness_reach(nvt_harness *l, int i) {
  int status = l->hung ? NVM_ERR_DEVICE : NVM_OK;
  nvd_terms taken = { .any = 1 }; /* accepts any kernel: rejections are the planner's concern */
  double ns;
  for (; l->reached < i && !status; l->reached++) {
    nvd_program *p = NULL;
    status = set_up(l, l->reached);
    nvf_plan *q = nvt_harness_step(l, &l->p->step[l->reached]);
    status = status ? status : nvd_prepare(&p, q, l->device, l->choice ? &l->choice[l->reached] : NULL, &taken);
    status = status ? status : run_program(l, p, 0, 1, &ns);
    nvd_program_free(p);
    for (int b = 0; b < l->p->nbuf; b++)
      if (l->made[b] && l->last[b] <= l->reached) {
        nvd_buf_unref(l->made[b]);
        l->made[b] = NULL;
      }
  }
  return status ? status : set_up(l, i);
}

/* ---- the bench */
static int poison_buffer(nvt_harness *l, nvd_buf *b) {
  enum { FIRST = 1 << 20 };
  size_t done = b->bytes < FIRST ? b->bytes : FIRST;
  if (!l->device) return memset(b->data, POISON, b->bytes), NVM_OK;
  memset(l->host[1], POISON, done);
  int status = nvd_upload(b, 0, l->host[1], done);
  for (; done < b->bytes && !status; done *= 2)
    status = nvd_copy_on(b, done, b, 0, b->bytes - done < done ? b->bytes - done : done);
  return status;
}

static int is_large(const nvt_harness *l, int i) { return l->device && l->out[i].bytes > STRETCHES * STRETCH; }

/* Downloads a result: the whole, or evenly spaced stretches of it from its first to its last byte. Returns a status. */
static int fetch_inputs(char *to, nvd_buf *from, int64_t bytes, int whole) {
  if (whole) return nvd_download(to, from, 0, (size_t)bytes);
  int status = NVM_OK;
  for (int64_t i = 0, last = STRETCHES - 1, most = bytes - STRETCH; i <= last && !status; i++)
    status = nvd_download(to + i * STRETCH, from, (size_t)(i < last ? most / last * i / 16 * 16 : most), STRETCH);
  return status;
}

/* Does the scratch hold what the plan's own step made? `all` compares whole results, else stretches of large ones.
   *status is set if it could not be read. */
static int has_same_results(nvt_harness *l, int all, int *status) {
  for (int i = 0; i < l->nout; i++) {
    nvd_buf *want = l->made[l->out[i].buf], *got = l->out[i].scratch;
    const char *x = want->data, *y = got->data;
    int whole = all || !is_large(l, i), held = 2 * i + whole;
    int64_t bytes = whole ? l->out[i].bytes : STRETCHES * STRETCH;
    if (l->device) {
      *status = l->held == held ? NVM_OK : fetch_inputs(l->host[0], want, l->out[i].bytes, whole);
      l->held = *status ? -1 : held;
      *status = *status ? *status : fetch_inputs(l->host[1], got, l->out[i].bytes, whole);
      x = l->host[0];
      y = l->host[1];
    }
    if (*status || !nvt_close(x, y, bytes, l->out[i].type, l->tolerance)) return 0;
  }
  return 1;
}

/* Runs candidate i once into poisoned memory. Returns whether the results are right; `all` as in same. */
static int run_right(nvt_harness *l, int i, int all, int *status) {
  double ns;
  for (int k = 0; k < l->nout && !*status; k++)
    *status = poison_buffer(l, i ? l->out[k].scratch : l->made[l->out[k].buf]);
  *status = *status ? *status : run_program(l, l->program[i], i > 0, 1, &ns);
  return *status || !i || has_same_results(l, all, status);
}

/* Prepares candidate i, runs it once and compares it; then runs it as often as a device needs before it replays it as a
   graph. */
static nvt_fate try_out(nvt_harness *l, int i) {
  double ns = 0;
  nvd_terms timed = { .optimized = 1 };
  int status = nvd_prepare(&l->program[i], l->variant[i].plan, l->device, l->variant[i].call, &timed);
  int right = run_right(l, i, 0, &status), more = l->device ? 3 : 1;
  if (!status && right) status = run_program(l, l->program[i], i > 0, more, &ns);
  if (!status && !i) {
    l->own = ns / more;
    l->runs = l->own < AIM ? (int)(AIM / (l->own + 1)) + 1 : 1;
  }
  l->runs = l->runs < MOST_RUNS ? l->runs : MOST_RUNS;
  return l->hung ? NVT_HUNG : status ? NVT_FAILED : right ? NVT_RUNNING : NVT_WRONG;
}

static nvt_fate prepare_variant(void *self, int i) {
  nvt_harness *l = self;
  const char *choice = l->variant[i].config;
  if (i && !nvt_ledger_begin(l->key, choice)) {
    nvb_log(1, "tuning: %s is not tried: it hung before, or took processes with it", choice);
    return NVT_FAILED;
  }
  nvt_fate f = try_out(l, i);
  if (i) nvt_ledger_end(l->key, choice, f == NVT_HUNG);
  if (f != NVT_RUNNING)
    nvb_log(f == NVT_FAILED ? 2 : 1, "tuning: %s %s: %s", *choice ? choice : "the rules' own", nvt_fate_name(f),
            f == NVT_FAILED ? nvb_message() : "");
  nvb_clear();
  return f;
}

/* The fate of a candidate that passed try_out, after another run. */
static nvt_fate fate_of(nvt_harness *l, int i, int status, int right) {
  if (l->hung) nvt_ledger_end(l->key, l->variant[i].config, 1);
  if (status) nvb_clear();
  return l->hung ? NVT_HUNG : status ? NVT_FAILED : right ? NVT_RUNNING : NVT_WRONG;
}

static nvt_fate check_whole(void *self, int i) {
  nvt_harness *l = self;
  int status = NVM_OK, large = 0;
  for (int k = 0; k < l->nout; k++) large |= is_large(l, k);
  int right = !large || run_right(l, i, 1, &status);
  return fate_of(l, i, status, right);
}

static nvt_fate sample_variant(void *self, int i, double *ns) {
  nvt_harness *l = self;
  int status = run_program(l, l->program[i], i > 0, l->runs, ns);
  *ns /= l->runs;
  return fate_of(l, i, status, 1);
}

static void tell_progress(void *self, double part) {
  nvt_harness *l = self;
  if (l->progress) l->progress(l->user, part);
}

/* Allocates scratch for the candidates' outputs, and for a device host memory for the largest one. Returns a status. */
static int get_scratch(nvt_harness *l) {
  int64_t most = 0;
  l->held = -1;
  for (int i = 0; i < l->nout; i++) {
    result *o = &l->out[i];
    most = o->bytes > most ? o->bytes : most;
    if (!(o->scratch = get_buffer(l, o->bytes))) return nvb_status();
    l->other[i] = (nvd_operand){ l->device ? o->scratch : NULL, o->scratch->data };
    l->other_at[i] = o->scratch->data;
  }
  for (int i = 0; i < 2 && l->device; i++)
    if (!(l->host[i] = nvb_alloc((size_t)most + 64))) /* 64 more bytes, since device buffers are rounded up */
      return nvb_fail_memory();
  return NVM_OK;
}

/* Compiles several candidates in parallel, by preparing a plan whose steps are forms of one step; the kernel cache then
   has their code. */
static void compile_soon(void *self, const int *which, int n) {
  nvt_harness *l = self;
  nvf_step *all = NVB_NEWN(l->a, nvf_step, n);
  nvd_solver_choice *call = NVB_NEWN(l->a, nvd_solver_choice, n);
  nvd_program *p = NULL;
  for (int i = 0; i < n; i++) all[i] = *l->variant[which[i]].plan->step, call[i] = *l->variant[which[i]].call;
  if (nvd_prepare(&p, plan_alone(l, all, n), l->device, call, &(nvd_terms){ .optimized = 1 })) nvb_clear();
  nvd_program_free(p);
}

int nvt_harness_choose(nvt_harness *l, nvb_hash key, const nvt_variant *t, nvt_candidate *c, int n, const nvt_rules *r,
                       void (*progress)(void *user, double part), void *user) {
  enum { AT_ONCE = 8 };
  int threads = nvb_pool_threads(), wide = threads < AT_ONCE ? threads : AT_ONCE;
  nvt_bench b = { l,
                  clock_now,
                  l->device && !l->whole ? compile_soon : NULL,
                  wide,
                  prepare_variant,
                  check_whole,
                  sample_variant,
                  tell_progress };
  int best = -1;
  l->key = key;
  l->variant = t;
  l->progress = progress;
  l->user = user;
  l->program = NVB_NEWN(l->a, nvd_program *, n);
  if (!l->hung && !get_scratch(l)) best = nvt_measure(&b, r, c, n);
  for (int i = 0; i < n; i++) nvd_program_free(l->program[i]);
  for (int i = 0; i < l->nout; i++) {
    nvd_buf_unref(l->out[i].scratch);
    l->out[i].scratch = NULL;
  }
  for (int i = 0; i < 2; i++) {
    nvb_free(l->host[i]);
    l->host[i] = NULL;
  }
  return best;
}
