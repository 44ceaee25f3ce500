/* Records runs of programs with library steps as CUDA graphs: when a run has the same arguments on the same stream for
   the third time, its launches are captured, and from then on one graph launch replays them without the libraries' host
   work. Decides which arguments are worth a graph; never captures a program with checks. */
#include <string.h>
#include "base/err.h"
#include "dispatch/cuda/program.h"

enum { RECORD_AT = 3 };

static void drop_run_graph(nvd_run_graph *k) {
  if (k->exec) nvd_cu.cuGraphExecDestroy(k->exec);
  if (k->graph) nvd_cu.cuGraphDestroy(k->graph);
  *k = (nvd_run_graph){ .calls = 0 };
}

void nvd_run_graphs_free(nvd_replay *r) {
  for (int i = 0; i < NVD_RUN_GRAPHS; i++) drop_run_graph(&r->run_graph[i]);
}

/* Finds the graph of the run's arguments; if there is none, the least recently used one is replaced. */
static nvd_run_graph *run_graph_of(const nvd_gpu_run *x) {
  nvd_replay *r = x->r;
  const nvd_program *p = x->p;
  void *memory[2] = { x->workspace ? x->workspace->b.data : NULL, x->stream };
  nvb_hash key = nvb_hash_bytes(r->arg, sizeof *r->arg * (size_t)nvd_args(p));
  key = nvb_hash_mix(key, memory, sizeof memory);
  if (x->workspace) /* the library chose its algorithm for this size */
    key = nvb_hash_mix(key, &x->workspace->b.bytes, sizeof x->workspace->b.bytes);
  nvd_run_graph *oldest = r->run_graph;
  for (nvd_run_graph *k = r->run_graph; k < r->run_graph + NVD_RUN_GRAPHS; k++) {
    if (k->calls && nvb_hash_eq(k->key, key)) return k;
    if (k->used < oldest->used) oldest = k;
  }
  if (oldest->exec) {
    int entered = nvd_enter(p->device);
    drop_run_graph(oldest);
    nvd_leave(entered);
  }
  *oldest = (nvd_run_graph){ .key = key };
  return oldest;
}

static int capture_run(nvd_gpu_run *x, nvd_run_graph *k, int (*launch)(nvd_gpu_run *x)) {
  static void *stream[NVD_MAX_DEVICES]; /* under the lock, like everything here */
  void **s = &stream[x->p->device->ordinal], *theirs = x->stream;
  int error = *s ? 0 : nvd_cu.cudaStreamCreateWithFlags(s, CUDA_STREAM_NON_BLOCKING);
  error = error ? error : nvd_cu.cudaStreamBeginCapture(*s, CUDA_CAPTURE_RELAXED);
  if (error) return error;
  x->stream = *s;
  int launched = launch(x), ended = nvd_cu.cudaStreamEndCapture(*s, &k->graph);
  x->stream = theirs;
  error = launched || x->status ? launched : ended;
  return error || x->status ? error : nvd_cu.cuGraphInstantiateWithFlags(&k->exec, k->graph, 0);
}

void *nvd_run_graph_get(nvd_gpu_run *x, int (*launch)(nvd_gpu_run *x)) {
  nvd_replay *r = x->r;
  if (r->uncapturable) return NULL;
  nvd_run_graph *k = run_graph_of(x);
  k->used = ++r->clock;
  if (k->calls >= RECORD_AT || ++k->calls != RECORD_AT) return k->exec;
  nvb_failure before;
  nvb_failure_keep(&before);
  int entered = nvd_enter(x->p->device), error = capture_run(x, k, launch);
  if (error || x->status) { /* this is no failure: the program runs without a graph */
    nvd_cu.cudaGetLastError();
    nvd_run_graphs_free(r);
    r->uncapturable = 1;
    x->status = 0;
    nvb_failure_put_back(&before);
  }
  nvd_leave(entered);
  return k->exec;
}
