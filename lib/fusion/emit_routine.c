/* Emits the step of a routine: the description of what to do, and a kernel without statements whose parameters are
   bound like those of any kernel. It never decides how the routine does it. */
#include "fusion/planner.h"
#include <stdio.h>

static void bind_buffer(nvb_arena *a, nvf_step *s, int buf, nvm_dtype type, int written) {
  char name[16];
  snprintf(name, sizeof name, "x%d", s->k->nparam);
  int at = nvf_add_param(s->k, NVF_BUFFER, type, name);
  nvf_bind *bind = NVB_NEWN(a, nvf_bind, at + 1);
  for (int i = 0; i < at; i++) bind[i] = s->bind[i];
  bind[at] = (nvf_bind){ .kind = NVF_BUFFER, .buf = buf };
  s->bind = bind;
  s->k->param[at].written = written;
}

static nvf_operand operand_of(nvb_arena *a, const nvg_graph *g, const nvf_node *x) {
  int64_t *stride = NVB_NEWN(a, int64_t, x->rank + 1);
  const int64_t *shape = g->v[x->value].shape;
  nvg_packed(stride, x->rank, shape);
  for (int d = 0; d < x->rank && x->kind == NVG_VLEAF; d++) stride[d] = g->leaf[x->leaf].stride[d];
  return (nvf_operand){ x->dtype, x->rank, shape, stride };
}

/* How many pieces are independent of each other: rows, or matrices. */
static int64_t count_pieces(const nvf_routine *r) {
  const nvf_operand *x = &r->in[0];
  int last = r->op == NVG_OP_SUBSTITUTED || !nvg_is_of_matrices(r->op) ? 1 : 2;
  int64_t n = 1;
  for (int d = 0; d < x->rank - last; d++) n *= x->shape[d];
  return n;
}

void nvf_emit_routine(const nvf_plan *p, nvf_step *s, const nvf_fusion *k, const int *buf_of) {
  nvb_arena *a = p->arena;
  int root = k->root[0];
  const nvf_node *n = &k->graph->node[root];
  const nvg_val *v = &k->graph->g->v[n->value];
  nvf_routine *r = NVB_NEW(a, nvf_routine);
  *r = (nvf_routine){ .op = (nvg_op)v->op,
                      .what = v->name,
                      .nin = n->nin,
                      .nattr = v->nattr,
                      .attr = v->attr,
                      .result = { n->dtype, v->rank, v->shape, NULL } };
  s->hero = "routine";
  s->what = n->name;
  s->k = nvf_kernel_new(a, "routine");
  s->s = nvf_schedule_new(s->k);
  s->routine = r;
  s->bytes_read = k->bytes_read;
  s->bytes_written = k->bytes_written;
  s->flops = k->flops;
  s->time = k->time;
  for (int i = 0; i < n->nin; i++) {
    const nvf_node *x = &k->graph->node[n->in[i]];
    r->in[i] = operand_of(a, k->graph->g, x);
    bind_buffer(a, s, buf_of[n->in[i]], x->dtype, 0);
  }
  s->blocks = s->grain = count_pieces(r);
  for (int b = buf_of[root]; b >= 0; b = p->twin[b]) bind_buffer(a, s, b, n->dtype, 1);
}
