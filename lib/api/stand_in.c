/* Stand-ins: a new program of a GPU, whose kernels have to be compiled, runs as a plan of one kernel for each value
   until they are. Such kernels are few, since their schedules hold for most sizes, so the disk cache soon has them all.
   Decides which programs get a stand-in; never how one is run. */
#include "api/eval.h"
#include "base/settings.h"

/* Matrix products have other bits in each kernel and library; transforms are computed by the library in both plans. */
static int is_eligible(const nvg_graph *g) {
  for (int i = 0; i < g->n; i++)
    if (g->v[i].kind == NVG_VCALL) return 0;
  return 1;
}

/* The values that a plan without fusion makes. */
static int count_made(const nvg_graph *g) {
  int n = 0;
  for (int i = 0; i < g->n; i++) {
    nvg_vkind k = g->v[i].kind;
    n += k != NVG_VLEAF && k != NVG_VCONST && k != NVG_VPICK && !(k >= NVG_VRESHAPE && k <= NVG_VEXPAND);
  }
  return n;
}

int nva_stands_alone(const nva_job *j, const nvg_graph *g) {
  return j->dev > 1 && nva_direct_forced() && nva_direct_allowed() && is_eligible(g);
}

int nva_may_stand_in(const nva_job *j, const nvg_graph *g, nvd_device *d) {
  return d && !j->text && nva_direct_allowed() && !nva_direct_forced() && j->plan->nstep < count_made(g) &&
         is_eligible(g) && nvd_may_time(d);
}

static double time_of(const nvf_plan *p) {
  double ns = 0;
  for (int i = 0; i < p->nstep; i++) ns += p->step[i].time;
  return ns;
}

/* A stand-in's memory and time are bounded: they grow with the arrays, while the time of compiling does not. */
static int is_worthwhile(const nvf_plan *p, const nvf_plan *fused) {
  enum { BYTES = 256 << 20, NS = 20000000 };
  return p->nstep > fused->nstep && p->temp_bytes <= BYTES && time_of(p) - time_of(fused) <= NS;
}

typedef struct request { nva_stand_in *s; nvd_program *run; nva_program *made; } request;

static void make_program(nvb_arena *a, void *arg) {
  request *r = arg;
  nva_stand_in *s = r->s;
  nvf_options o = { .general = 1, .capabilities = s->capabilities };
  nvf_plan *fused = s->j->plan, *p = nvf_fuse(a, s->g, s->caps, &o);
  if (!is_worthwhile(p, fused)) return;
  s->plan = p;
  int status = nvd_prepare(&r->run, p, s->device, NULL, &(nvd_terms){ .any = 1, .stored = 1 });
  if (!status) {
    nva_views_donors(s->views, p);
    status = nva_program_make(&r->made, s->views, r->run, s->device, 0, NULL);
    r->run = NULL;
  }
  if (status) nvb_throw(a, status, "%s", nvb_message());
  nvb_log(3, "%s: runs as %d kernels until the code of %d is there", s->j->stages.name, p->nstep, fused->nstep);
}

int nva_stand_in_new(nva_program **out, nvb_arena *a, nva_stand_in *s) {
  request r = { s, NULL, NULL };
  nvb_failure before;
  nvb_failure_keep(&before);
  int status = nvb_protect(a, make_program, &r);
  nvd_program_free(r.run);
  *out = r.made;
  if (!status || status == NVM_ERR_INTERRUPTED) return status;
  nvb_log(3, "nothing stands in for %s: %s", s->j->stages.name, nvb_message());
  nvb_failure_put_back(&before);
  return NVM_OK;
}

void nva_stand_in_compile(const nva_stand_in *s) {
  nvd_program *run = NULL;
  nvb_failure before;
  if (!s->plan) return;
  nvb_failure_keep(&before);
  if (nvd_prepare(&run, s->plan, s->device, NULL, &(nvd_terms){ .any = 1, .later = 1 })) nvb_failure_put_back(&before);
  else nvd_compile(run);
  nvd_program_free(run);
}
