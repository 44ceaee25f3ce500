/* Generic plans: what binding a plan to other sizes needs of it. Binding searches nothing and prints nothing: sizes,
   buffers and the grid are evaluated from symbols, estimates grow with the bytes of the buffers. It decides nothing
   that changes a bit: the kernels are those of the plan. */
#include "fusion/planner.h"

struct nvf_generic {
  nvf_plan plan;
  nvf_space *space;
};

#define COPY(a, from, n) nvb_dup(a, from, sizeof *(from) * (size_t)(n))

/* The kernel without its text: its parameters, and how many parts its grid has. */
static nvf_kernel *parameters_of(nvb_arena *a, const nvf_kernel *k) {
  nvf_kernel *c = NVB_NEW(a, nvf_kernel);
  c->nparam = k->nparam;
  c->npart = k->npart;
  c->param = COPY(a, k->param, k->nparam);
  for (int i = 0; i < c->nparam; i++) c->param[i].name = "";
  return c;
}

static void keep_step(nvb_arena *a, nvf_step *s) {
  s->k = parameters_of(a, s->k);
  s->s = NULL;
  s->bind = COPY(a, s->bind, s->k->nparam);
  s->grid = COPY(a, s->grid, s->ngrid);
  nvf_checked *c = COPY(a, s->checked, s->nchecked);
  for (int i = 0; i < s->nchecked; i++) c[i].op = nvb_strdup(a, c[i].op);
  s->checked = c;
  s->hero = nvb_strdup(a, s->hero ? s->hero : "");
  s->what = nvb_strdup(a, s->what ? s->what : "");
  s->chosen = NULL;
}

nvf_generic *nvf_generic_of(nvb_arena *a, const nvf_plan *p, const nvf_signature *s) {
  const nvf_space *space = p->partition->graph->space;
  if (p->g != p->given || !nvf_serves_others(space, s->n)) return NULL;
  for (int i = 0; i < p->nstep; i++)
    if (p->step[i].gemm || p->step[i].routine) return NULL;
  nvf_generic *g = NVB_NEW(a, nvf_generic);
  g->space = nvf_space_keep(a, space);
  g->plan = (nvf_plan){ .device = p->device,
                        .nstep = p->nstep,
                        .step = COPY(a, p->step, p->nstep),
                        .nbuf = p->nbuf,
                        .buf = COPY(a, p->buf, p->nbuf) };
  for (int i = 0; i < p->nstep; i++) keep_step(a, &g->plan.step[i]);
  return g;
}

const nvf_plan *nvf_generic_plan(const nvf_generic *g) { return &g->plan; }

/* ---- binding */
static int64_t blocks_of(const nvf_step *s, const nvf_space *space) {
  int64_t sum = 0;
  for (int p = 0, i = 0; p < s->k->npart; p++) {
    int64_t n = 1;
    for (; i < s->ngrid && s->grid[i].part == p; i++)
      n *= (nvf_value(space, s->grid[i].extent) + s->grid[i].tile - 1) / s->grid[i].tile;
    sum += n;
  }
  return sum;
}

static uint64_t constant_of(const nvg_graph *g, const nvf_bind *b) {
  return (uint64_t)g->v[b->constant - 1].attr[b->part];
}

/* How many times the bytes of a step's buffers have become. */
static double growth_of(const nvf_plan *p, const nvf_plan *from, const nvf_step *s) {
  double now = 0, before = 0;
  for (int i = 0; i < s->k->nparam; i++)
    if (s->bind[i].kind == NVF_BUFFER)
      now += (double)p->buf[s->bind[i].buf].bytes, before += (double)from->buf[s->bind[i].buf].bytes;
  return before > 0 ? now / before : 1;
}

static void bind_step(const nvf_plan *p, const nvf_generic *of, const nvf_space *space, const nvb_caps *caps,
                      nvf_step *s) {
  double by = growth_of(p, &of->plan, s);
  s->bind = COPY(p->arena, s->bind, s->k->nparam);
  for (int i = 0; i < s->k->nparam; i++) {
    nvf_bind *b = &s->bind[i];
    if (b->kind == NVF_SIZE) b->bits = (uint64_t)nvf_value(space, b->size);
    if (b->kind == NVF_SCALAR && b->constant) b->bits = constant_of(p->g, b);
  }
  nvf_checked *c = COPY(p->arena, s->checked, s->nchecked);
  for (int i = 0; i < s->nchecked; i++) c[i].extent = nvf_value(space, c[i].size);
  s->checked = c;
  s->bytes_read = (int64_t)((double)s->bytes_read * by);
  s->bytes_written = (int64_t)((double)s->bytes_written * by);
  s->flops = (int64_t)((double)s->flops * by);
  s->time *= by;
  s->blocks = blocks_of(s, space);
  s->grain = nvf_grain(s, caps);
}

nvf_plan *nvf_plan_bind(nvb_arena *a, const nvf_generic *of, const nvg_graph *g, const nvf_signature *s,
                        const nvb_caps *caps) {
  const nvf_space *space = nvf_space_with(a, of->space, s->n, s->size);
  if (!space) return NULL;
  nvf_plan *p = COPY(a, &of->plan, 1);
  p->arena = a;
  p->g = p->given = g;
  p->buf = COPY(a, p->buf, p->nbuf);
  p->step = COPY(a, p->step, p->nstep);
  for (int i = 0; i < p->nbuf; i++) p->buf[i].bytes = nvf_value(space, p->buf[i].size);
  nvf_place_temporaries(p);
  for (int i = 0; i < p->nstep; i++) bind_step(p, of, space, caps, &p->step[i]);
  return p;
}
