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

/* The strides of an operand, in elements. */
static const int64_t *strides_of(nvb_arena *a, const nvg_graph *g, const nvf_node *x, const int64_t *shape) {
  int64_t *stride = NVB_NEWN(a, int64_t, x->rank + 1);
  nvg_packed(stride, x->rank, shape);
  for (int d = 0; d < x->rank && x->kind == NVG_VLEAF; d++) stride[d] = g->leaf[x->leaf].stride[d];
  return stride;
}

void nvf_emit_routine(const nvf_plan *p, nvf_step *s, const nvf_fusion *k, const int *buf_of) {
  nvb_arena *a = p->arena;
  int root = k->root[0];
  const nvf_node *n = &k->graph->node[root];
  const nvg_val *v = &k->graph->g->v[n->value];
  const int64_t *shape = k->graph->g->v[v->in[0]].shape;
  nvf_routine *r = NVB_NEW(a, nvf_routine);
  *r = (nvf_routine){ .op = (nvg_op)v->op,
                      .descending = v->op != NVG_OP_BINS && v->op != NVG_OP_DFT && v->attr[0],
                      .dft = v->op == NVG_OP_DFT ? (nvg_dft)v->attr[0] : NVG_NDFT,
                      .points = v->op == NVG_OP_DFT ? v->attr[1] : 0,
                      .nin = n->nin,
                      .result = n->dtype,
                      .rank = v->rank,
                      .shape = shape,
                      .each = v->shape[v->rank - 1] };
  s->hero = "routine";
  s->what = n->name;
  s->k = nvf_kernel_new(a, "routine");
  s->s = nvf_schedule_new(s->k);
  s->routine = r;
  s->bytes_read = k->bytes_read;
  s->bytes_written = k->bytes_written;
  s->flops = k->flops;
  s->time = k->time;
  s->blocks = s->grain = n->size / v->shape[v->rank - 1];
  for (int i = 0; i < n->nin; i++) {
    const nvf_node *x = &k->graph->node[n->in[i]];
    r->operand[i] = x->dtype;
    r->stride[i] = strides_of(a, k->graph->g, x, shape);
    bind_buffer(a, s, buf_of[n->in[i]], x->dtype, 0);
  }
  for (int b = buf_of[root]; b >= 0; b = p->twin[b]) bind_buffer(a, s, b, n->dtype, 1);
}
