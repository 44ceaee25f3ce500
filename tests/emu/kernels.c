/* Code, launches, graphs and captures of the emulated CUDA: the second half of runtime.c. */
#include "call.h"
#include <stdlib.h>
#include <string.h>

/* ---- code. What was loaded stays in memory: work that still waits may need it. */
typedef struct module { emu_module *m; int device; function *f; } module;

int cuModuleLoadData(void **out, const void *image) {
  CALL;
  emu_module *m = emu_module_load(image);
  NEED(m, INVALID_IMAGE);
  module *made = calloc(1, sizeof *made);
  *made = (module){ m, current(), NULL };
  *out = made;
  return OK;
}
int cuModuleUnload(void *handle) {
  CALL;
  module *m = handle;
  SAFE(unsafe());
  SAFE(run_all(m->device));
  for (function *f = m->f; f; f = f->next) f->gone = 1;
  return OK;
}
int cuModuleGetFunction(void **out, void *handle, const char *name) {
  CALL;
  module *m = handle;
  const emu_kernel *k = emu_module_kernel(m->m, name);
  NEED(k, NOT_FOUND);
  function *f = m->f;
  while (f && f->k != k) f = f->next;
  if (!f) {
    f = calloc(1, sizeof *f);
    *f = (function){ k, m->device, 48 << 10, 0, 0, m->f };
    m->f = f;
  }
  *out = f;
  return OK;
}
int cuFuncGetAttribute(int *value, int attribute, void *handle) {
  CALL;
  const function *f = handle;
  const char *spills = getenv("NVM_EMU_SPILLS");
  switch (attribute) {
  case 0: *value = f->k->max_threads ? f->k->max_threads : 1024; return OK;
  case CUDA_FUNC_LOCAL_BYTES: *value = spills ? atoi(spills) : 0; return OK;
  case CUDA_FUNC_REGISTERS: *value = 40; return OK;
  case CUDA_FUNC_SHARED_MOST: *value = f->shared_most; return OK;
  }
  return call_note(INVALID_VALUE);
}
int cuFuncSetAttribute(void *handle, int attribute, int value) {
  CALL;
  NEED(attribute == CUDA_FUNC_SHARED_MOST || attribute == 9 || attribute == CUDA_FUNC_LARGE_CLUSTER, INVALID_VALUE);
  NEED(value >= -1 && value <= 232448, INVALID_VALUE);
  if (attribute == CUDA_FUNC_SHARED_MOST) ((function *)handle)->shared_most = value;
  if (attribute == CUDA_FUNC_LARGE_CLUSTER) ((function *)handle)->large_cluster = value;
  return OK;
}

/* ---- what TMA knows of a buffer: prelude.h reads it */
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *extent,
                           const uint64_t *stride, const uint32_t *box, const uint32_t *step, int interleave,
                           int swizzle, int promotion, int fill) {
  CALL;
  static const int size[] = { 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4 };
  emu_map m = { .address = address, .rank = (int)rank, .span = swizzle ? 16 << swizzle : 16 };
  NEED(type >= 0 && type < 12 && rank >= 1 && rank <= 5 && !interleave && !fill && promotion >= 0 && promotion <= 3,
       INVALID_VALUE);
  NEED((uintptr_t)map % 64 == 0 && (uintptr_t)address % 16 == 0 && swizzle >= 0 && swizzle <= 3, INVALID_VALUE);
  m.size = size[type];
  m.tf32 = type == 11;
  NEED(box[0] * (unsigned)m.size % 16 == 0 && (!swizzle || box[0] * (unsigned)m.size <= (unsigned)m.span),
       INVALID_VALUE);
  for (uint32_t i = 0; i < rank; i++) {
    NEED(extent[i] && extent[i] <= 1ull << 32 && box[i] && box[i] <= 256 && step[i] == 1, INVALID_VALUE);
    NEED(!i || (stride[i - 1] % 16 == 0 && stride[i - 1] < 1ull << 40), INVALID_VALUE);
    m.extent[i] = (long long)extent[i];
    m.stride[i] = i ? (long long)stride[i - 1] : m.size;
    m.box[i] = (int)box[i];
  }
  memcpy(map, &m, sizeof m);
  return OK;
}

/* ---- launches */
int cuLaunchKernelEx(const nvd_launch *l, void *f, void **param, void **extra) {
  CALL;
  STREAM(s, l->stream);
  op o = { .kind = LAUNCH };
  int overlaps = 0;
  NEED(!extra, INVALID_VALUE);
  for (unsigned i = 0; i < l->nattribute; i++) {
    NEED(l->attribute[i].id == CUDA_LAUNCH_OVERLAPS && !l->attribute[i].pad, INVALID_VALUE);
    overlaps |= l->attribute[i].value.number != 0;
  }
  NEED(!overlaps || !s->capture, INVALID_VALUE); /* graphs have no such edges here */
  READY(s);
  NEED(!f || ((function *)f)->device == s->device, INVALID_HANDLE);
  SAFE(launch_make(&o.l, f, l->grid, l->block, l->shared, param));
  if ((o.l.overlaps = overlaps)) SAFE(call_begin("overlaps"));
  return call_note(enqueue(s, o));
}

/* ---- graphs */
static int kernel_op(op *o, const nvd_node_params *p) {
  *o = (op){ .kind = LAUNCH };
  return p->extra ? INVALID_VALUE : launch_make(&o->l, p->function, p->grid, p->block, p->shared, p->param);
}
int cuGraphCreate(void **out, unsigned flags) {
  CALL;
  NEED(!flags, INVALID_VALUE);
  *out = graph_new(current());
  return OK;
}
int cuGraphAddKernelNode(void **out, void *handle, void *const *after, size_t nafter, const nvd_node_params *p) {
  CALL;
  graph *g = handle;
  op o;
  set behind = { 0 };
  for (size_t i = 0; i < nafter; i++) {
    node *n = after[i];
    NEED(n && n->g == g, INVALID_VALUE);
    behind = set_join(behind, (set){ &n->index, 1 });
  }
  SAFE(kernel_op(&o, p));
  *out = graph_add(g, o, behind);
  free(behind.at);
  return OK;
}
int cuGraphInstantiateWithFlags(void **out, void *handle, unsigned long long flags) {
  (void)flags;
  CALL;
  *out = graph_copy(handle);
  return OK;
}
int cudaGraphInstantiate(void **out, void *handle, unsigned long long flags) {
  return cuGraphInstantiateWithFlags(out, handle, flags);
}
int cuGraphExecKernelNodeSetParams(void *exec, void *at, const nvd_node_params *p) {
  CALL;
  graph *g = exec;
  node *n = at; /* of the graph that exec was made from */
  op o;
  NEED(n->index < g->n && g->node[n->index]->o.kind == LAUNCH, INVALID_VALUE);
  SAFE(kernel_op(&o, p));
  NEED(o.l.f->device == g->node[n->index]->o.l.f->device, INVALID_VALUE);
  op_free(&g->node[n->index]->o);
  g->node[n->index]->o = o;
  return OK;
}
int cuGraphLaunch(void *exec, void *handle) {
  CALL;
  STREAM(s, handle);
  READY(s);
  return call_note(enqueue(s, (op){ .kind = GRAPH, .g = graph_copy(exec) }));
}
int cudaGraphLaunch(void *exec, void *handle) { return cuGraphLaunch(exec, handle); }
int cuGraphExecDestroy(void *exec) {
  CALL;
  graph_free(exec);
  return OK;
}
int cudaGraphExecDestroy(void *exec) { return cuGraphExecDestroy(exec); }
int cuGraphDestroy(void *handle) {
  CALL;
  graph_free(handle);
  return OK;
}
int cudaGraphDestroy(void *handle) { return cuGraphDestroy(handle); }

int cuUserObjectCreate(void **out, void *owned, void (*destroy)(void *owned), unsigned refs, unsigned flags) {
  CALL;
  NEED(refs == 1 && flags == CUDA_OBJECT_NO_SYNC, INVALID_VALUE);
  object *o = calloc(1, sizeof *o);
  *o = (object){ destroy, owned, 1 };
  *out = o;
  return OK;
}
int cuGraphRetainUserObject(void *handle, void *owner, unsigned count, unsigned flags) {
  CALL;
  graph *g = handle;
  object *o = owner;
  NEED(count == 1 && flags <= CUDA_OBJECT_MOVE, INVALID_VALUE);
  g->object = realloc(g->object, (size_t)(g->nobject + 1) * sizeof *g->object);
  g->object[g->nobject++] = o;
  o->refs += flags != CUDA_OBJECT_MOVE;
  return OK;
}

/* ---- captures: what may not be called while one goes on ends it */
static _Thread_local int capture_mode;
int unsafe(void) {
  if (capture_mode == 2) return OK;
  for (stream *s = streams; s; s = s->next)
    if (s->capture && s->mode == 0) return s->invalid = 1, CAPTURE_UNSUPPORTED;
  return OK;
}
int unsafe_on(stream *s) {
  if (s->capture) return s->invalid = 1, CAPTURE_UNSUPPORTED;
  return unsafe();
}
/* May work be put on s? */
int ready(stream *s) {
  if (s->capture && s->invalid) return CAPTURE_INVALIDATED;
  for (stream *q = streams; q && s->blocking == 2; q = q->next)
    if (q->capture && q->blocking == 1 && q->device == s->device) return q->invalid = 1, CAPTURE_IMPLICIT;
  return OK;
}
int cuStreamIsCapturing(void *handle, int *status) {
  CALL;
  STREAM(s, handle);
  int e = s->capture ? OK : ready(s);
  *status = !s->capture ? 0 : s->invalid ? 2 : 1;
  return call_note(e);
}
int cudaStreamIsCapturing(void *handle, int *status) { return cuStreamIsCapturing(handle, status); }
int cudaThreadExchangeStreamCaptureMode(int *mode) {
  CALL;
  int old = capture_mode;
  capture_mode = *mode;
  *mode = old;
  return OK;
}
int cuStreamGetCaptureInfo(void *handle, int *status, uint64_t *id, void **graph, void *no1, void *no2, void *no3) {
  (void)no1;
  (void)no2;
  (void)no3;
  CALL;
  STREAM(s, handle);
  *status = !s->capture ? 0 : s->invalid ? 2 : 1;
  if (s->capture && id) *id = s->capture->id;
  if (s->capture && graph) *graph = s->capture;
  return OK;
}
int cudaStreamBeginCapture(void *handle, int mode) {
  CALL;
  STREAM(s, handle);
  NEED(!s->capture && (uintptr_t)handle > 1, CAPTURE_UNSUPPORTED);
  s->capture = graph_new(s->device);
  s->origin = 1;
  s->mode = mode;
  s->invalid = 0;
  return OK;
}
int cudaStreamEndCapture(void *handle, void **out) {
  CALL;
  STREAM(s, handle);
  NEED(s->capture && s->origin, CAPTURE_UNMATCHED);
  graph *g = s->capture;
  char *seen = calloc((size_t)g->n + 1, 1);
  for (int i = 0; i < s->front.n; i++) seen[s->front.at[i]] = 1;
  for (int i = g->n; i-- > 0;)
    for (int d = 0; seen[i] && d < g->node[i]->ndep; d++) seen[g->node[i]->dep[d]] = 1;
  int error = OK;
  for (stream *q = streams; q; q = q->next) {
    if (q->capture != g) continue;
    for (int i = 0; i < q->front.n; i++)
      if (!seen[q->front.at[i]]) error = CAPTURE_UNJOINED;
    if (q->invalid) error = CAPTURE_INVALIDATED;
    free(q->front.at);
    q->front = (set){ 0 };
    q->capture = NULL;
    q->origin = q->invalid = 0;
  }
  free(seen);
  *out = error ? NULL : g;
  if (error) graph_free(g);
  return call_note(error);
}
