/* The GPU part of a program, which launching (program.c), graphs of whole runs (graph_capture.c), runs inside a
   caller's capture (caller_capture.c) and instrumented runs (instrument.c) share. Private to dispatch. */
#ifndef NVM_DISPATCH_CUDA_PROGRAM_H
#define NVM_DISPATCH_CUDA_PROGRAM_H
#include "dispatch/cuda/code.h"
#include "dispatch/program.h"

enum { NVD_REPLAYS = 4, NVD_RUN_GRAPHS = 4 };
/* arguments that each step has beside its kernel's parameters */
enum { NVD_CHECKS, NVD_SCRATCH, NVD_FLAGS, NVD_OWN_ARGS };

/* A replay: the arguments of the last run on a stream, and the CUDA graphs that hold them. The program's arguments come
   first in `arg`, then for each step the addresses of its fault slot, its scratch memory and its inter-CTA flags. */
typedef struct nvd_map nvd_map;
typedef struct nvd_run_graph { /* a CUDA graph of a whole run with certain arguments */
  nvb_hash key;
  int calls;          /* calls with these arguments; 0: there is none */
  uint64_t used;      /* the replay's clock at the last call */
  void *graph, *exec; /* NULL: not captured yet */
} nvd_run_graph;
typedef struct nvd_replay {
  nvd_gpu_stream *q;
  int calls; /* calls so far; -1: graphs cannot be built */
  int built;
  int provisional; /* some step has baseline code, and its optimised code is being compiled */
  struct nvd_graph { void *graph, *exec; } *part; /* the graph of each part of the program, once they are built */
  void **node;
  char *changed; /* for each step: its arguments differ from those in its graph node */
  nvd_run_graph run_graph[NVD_RUN_GRAPHS];
  uint64_t clock;
  int uncapturable;
  nvd_node_params *launch; /* the launch of each step; its params point into arg */
  uint64_t *arg;
  struct nvd_map *map; /* tensor maps of all steps, in order (tensor_map.h) */
} nvd_replay;

static inline int nvd_args(const nvd_program *p) { return p->narg + NVD_OWN_ARGS * p->nstep; }

typedef struct nvd_gpu_program {
  int npart; /* parts: each a maximal run of kernels, or one library step */
  struct part { int first, end; } *part;
  int nleaf, nout; /* leaves and outputs whose buffers a run uses, each once */
  struct used { int id, writes; } *leaf, *out;
  int *check;                /* for each step: its number among the checked steps, -1 if it has no checks */
  nvd_checks *checks;        /* NULL: none */
  int64_t memory;            /* bytes of temporaries and scratch */
  int64_t scratch;           /* offset of the scratch in it */
  int flags;                 /* some step uses inter-CTA flags */
  int64_t workspace;         /* bytes of workspace that the libraries want, apart from memory */
  const nvd_step *too_large; /* a step with more blocks than a launch can have; NULL: none */
  int overlaps;              /* all steps are kernels, and long enough to hide single launches */
  int captures;              /* some step is a library's, and no step has checks, whose slots change with each run */
  nvd_fault **from;          /* array for the faults of a run's inputs */
  nvd_replay *plain, *kept[NVD_REPLAYS]; /* kept: one for each stream; plain: for runs without one */
  char label[NVD_LABEL];
} nvd_gpu_program;

/* One run; used under the lock. */
typedef struct nvd_gpu_run {
  nvd_program *p;
  const nvd_operand *leaf, *out;
  nvd_gpu_stream *q;
  nvd_replay *r;
  nvd_devbuf *memory;    /* temporaries and scratch; NULL: not needed */
  nvd_devbuf *flags;     /* inter-CTA flags; NULL: not needed */
  nvd_devbuf *workspace; /* of libraries; NULL: not needed, or no memory for it */
  nvd_fault *fault;      /* of the outputs; NULL: nothing can go wrong */
  void *stream;          /* the stream that it is launched on: q's, or one that is being captured */
  int captured;          /* the caller is capturing the stream */
  int profiled;          /* each step is timed by events */
  int status;            /* of failures that are not CUDA's */
} nvd_gpu_run;

enum { NVD_SMALL_WORKSPACE = 64 << 10, NVD_POST_BYTES = 64 << 10 };
/* The next smaller workspace to try when `bytes` are not available; 0: none. */
static inline int64_t nvd_less_workspace(int64_t bytes) { return bytes > NVD_SMALL_WORKSPACE ? bytes / 4 : 0; }
/* All three under the lock. nvd_gpu_find_fault makes the run's fault from those of its inputs; 0 if memory runs out.
   nvd_gpu_start launches the run; a CUDA error code. nvd_gpu_hand_on gives the fault to the outputs. */
int nvd_gpu_find_fault(nvd_gpu_run *x, nvd_use use);
int nvd_gpu_start(nvd_gpu_run *x);
void nvd_gpu_hand_on(nvd_gpu_run *x);
/* caller_capture.c: runs x on a stream that the caller is capturing (a status), and releases what such runs used after
   their graphs are gone. */
int nvd_run_captured(nvd_gpu_run *x);
void nvd_reap_captured(void);

/* Launches step i, whose arguments are filled in. Returns a CUDA error code, or sets x->status. */
int nvd_gpu_launch(nvd_gpu_run *x, int i);
/* Returns an executable graph of the run, whose arguments are filled in; NULL: the caller has to launch it. A
   graph is captured by capturing `launch`. */
void *nvd_run_graph_get(nvd_gpu_run *x, int (*launch)(nvd_gpu_run *x));
void nvd_run_graphs_free(nvd_replay *r); /* call it between nvd_enter and nvd_leave */
/* Launches step i, whose arguments are filled in, and waits; reports it and compares it with the interpreter, as the
   settings ask. Returns a CUDA error code, or sets x->status. */
int nvd_gpu_step_instrumented(nvd_gpu_run *x, int i);
#endif
