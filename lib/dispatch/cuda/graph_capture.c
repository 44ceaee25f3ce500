/* Records runs of programs with library steps as CUDA graphs: when a run has the same arguments on the same stream for
   the third time, its launches are captured, and from then on one graph launch replays them without the libraries' host
   work. Decides which arguments are worth recording; never records a program with checks. */
#include <string.h>
#include "base/err.h"
#include "dispatch/cuda/program.h"

enum { RECORD_AT = 3 };

static void drop_record(nvd_record *k) {
  if (k->exec) nvd_cu.cuGraphExecDestroy(k->exec);
  if (k->graph) nvd_cu.cuGraphDestroy(k->graph);
  *k = (nvd_record){ .calls = 0 };
}

void nvd_records_free(nvd_replay *r) {
  for (int i = 0; i < NVD_RECORDS; i++) drop_record(&r->record[i]);
}

/* Finds the record of the run's arguments; if there is none, the least recently used one is replaced. */
static nvd_record *record_of(const nvd_gpu_run *x) {
  nvd_replay *r = x->r;
  const nvd_program *p = x->p;
  void *memory[2] = { x->workspace ? x->workspace->b.data : NULL, x->stream };
  nvb_hash key = nvb_hash_bytes(r->arg, sizeof *r->arg * (size_t)nvd_args(p));
  key = nvb_hash_mix(key, memory, sizeof memory);
  if (x->workspace) /* the library chose its algorithm for this size */
    key = nvb_hash_mix(key, &x->workspace->b.bytes, sizeof x->workspace->b.bytes);
  nvd_record *oldest = r->record;
  for (nvd_record *k = r->record; k < r->record + NVD_RECORDS; k++) {
    if (k->calls && nvb_hash_eq(k->key, key)) return k;
    if (k->used < oldest->used) oldest = k;
  }
  if (oldest->exec) {
    int entered = nvd_enter(p->device);
    drop_record(oldest);
    nvd_leave(entered);
  }
  *oldest = (nvd_record){ .key = key };
  return oldest;
}

static int capture_record(nvd_gpu_run *x, nvd_record *k, int (*launch)(nvd_gpu_run *x)) {
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

void *nvd_record_get(nvd_gpu_run *x, int (*launch)(nvd_gpu_run *x)) {
  nvd_replay *r = x->r;
  if (r->unrecordable) return NULL;
  nvd_record *k = record_of(x);
  k->used = ++r->clock;
  if (k->calls >= RECORD_AT || ++k->calls != RECORD_AT) return k->exec;
  nvb_failure before;
  nvb_failure_keep(&before);
  int entered = nvd_enter(x->p->device), error = capture_record(x, k, launch);
  if (error || x->status) { /* this is no failure: the program runs without a record */
    nvd_cu.cudaGetLastError();
    nvd_records_free(r);
    r->unrecordable = 1;
    x->status = 0;
    nvb_failure_put_back(&before);
  }
  nvd_leave(entered);
  return k->exec;
}
