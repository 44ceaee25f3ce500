/* The rare path of a part whose threads have nothing in common: no reduction, no shared memory, every store behind
   every load. Maps run in their fast forms, their flags meet in one variable, and before anything is stored one branch
   leaves to a function out of line that does the thread's whole tile again in the full forms, its items as loops. So
   the hot code is straight, nothing waits in registers for the branch, and the long forms stand once in a kernel. */
#include "codegen/cuda_emit.h"

static int part_fits(const nvcu_em *e, const nvc_run *r) {
  int rare = 0, stored = 0;
  for (int i = 0; i < r->s.n; i++) {
    const nvf_stmt *s = r->s.at[i];
    for (int o = 0; o < s->nout; o++)
      if (e->r.tile[s->out[o]].mutable) return 0;
    switch (s->op) {
    case NVF_MAP: rare |= nvcu_frag_rare(s->frag, (int)nvc_hint(&e->r, s, "approx", 0)); break;
    case NVF_STORE: stored = 1; break;
    case NVF_LOAD:
      if (stored) return 0;
      break;
    case NVF_ZEROS:
    case NVF_INDEX:
    case NVF_TEST:
    case NVF_CHECK: break;
    default: return 0;
    }
  }
  return rare;
}

int nvcu_can_redo(const nvcu_em *e, const nvc_seq *q) {
  return !e->full && q->n == 1 && !q->run[0]->solo && !q->run[0]->nloop && part_fits(e, q->run[0]);
}

/* The same layouts with every item a loop */
static void roll(nvf_layout *l) {
  for (int i = 0; i < l->n; i++)
    if (l->d[i].place == 'i') l->d[i].place = 'I';
}

static const nvf_typed *rolled(const nvcu_em *e) {
  nvf_typed *t = nvb_dup(e->a, e->t, sizeof *t);
  t->tile = nvb_dup(e->a, e->t->tile, sizeof *t->tile * (size_t)e->k->ntile);
  t->stmt = nvb_dup(e->a, e->t->stmt, sizeof *t->stmt * (size_t)e->k->nstmt);
  for (int i = 0; i < e->k->ntile; i++) roll(&t->tile[i]);
  for (int i = 0; i < e->k->nstmt; i++)
    if (t->stmt[i]) roll(t->stmt[i] = nvb_dup(e->a, t->stmt[i], sizeof **t->stmt));
  return t;
}

static const char *function(nvcu_em *e) {
  nvcu_em *c = nvb_dup(e->a, e, sizeof *c);
  nvb_text sign = {.arena = e->a};
  const char *name = nvcu_fresh(c, "redo");
  c->full = 1;
  c->out = (nvb_text){.arena = e->a};
  c->t = rolled(e);
  nvc_runs_init(&c->r, e->a, e->k, e->s, c->t);
  c->r.map_cost = e->r.map_cost;
  c->tile = NVB_NEWN(e->a, nvcu_tile, e->k->ntile + 1);
  c->let.n = c->let.cap = 0;
  c->depth = 1;
  nvcu_part(c, e->part, "block");
  nvb_print(&sign, "static __device__ __noinline__ void %s(", name);
  nvcu_parameters(c, &sign, 0);
  e->head = c->head;
  e->serial = c->serial;
  e->fn = c->fn;
  nvb_print(&e->head, "%s%sconst ix block) {\n  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;\n%s}\n",
            sign.s, e->k->nparam || e->checks ? ", " : "", nvb_text_get(&c->out));
  return name;
}

void nvcu_redo(nvcu_em *e) {
  nvb_text call = {.arena = e->a};
  nvb_print(&call, "%s(", function(e));
  for (int i = 0; i < e->k->nparam; i++) nvb_print(&call, "p_%s, ", e->k->param[i].name);
  nvcu_open(e, "if (%s)", e->flag);
  nvcu_line(e, "%s%s%s);", call.s, e->checks ? "failed, " : "", e->block);
  nvcu_line(e, "return;");
  nvcu_close(e);
}
