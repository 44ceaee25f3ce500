/* Programs of a device from inside: what running (program.c), recording (graph_capture.c) and watching
   (instrument.c) share. */
#ifndef NVM_DISPATCH_CUDA_PROGRAM_H
#define NVM_DISPATCH_CUDA_PROGRAM_H
#include "dispatch/cuda/code.h"
#include "dispatch/program.h"

enum { NVD_REPLAYS = 4, NVD_RECORDS = 4 };
enum { NVD_CHECKS, NVD_SCRATCH, NVD_FLAGS, NVD_OWN_ARGS }; /* of a step */

/* The arguments of the last run on a stream, and the graphs that hold them. The slots of the program's arguments come
   first, then those of each step: where its checks write, its scratch memory, and where its blocks post. */
typedef struct nvd_map nvd_map;
typedef struct nvd_record {     /* a whole run with certain arguments */
  nvb_hash key;
  int calls;          /* with them; 0: nothing is here */
  uint64_t used;      /* the replay's clock then */
  void *graph, *exec; /* NULL: not recorded */
} nvd_record;
typedef struct nvd_replay {
  nvd_gpu_stream *q;
  int calls; /* so far; -1: no graphs can be had */
  int built;
  int provisional;                                /* code of some step is compact, and optimised code is to come */
  struct nvd_graph { void *graph, *exec; } *part; /* of each run of kernels in the program, once they are built */
  void **node;
  char *changed; /* of each step: its arguments are others than those in its node */
  nvd_record record[NVD_RECORDS];
  uint64_t clock;
  int unrecordable;
  nvd_node_params *launch; /* of each step; its params point into arg */
  uint64_t *arg;
  struct nvd_map *map; /* of all steps, one after the other (tensor_map.h) */
} nvd_replay;

static inline int nvd_args(const nvd_program *p) { return p->narg + NVD_OWN_ARGS * p->nstep; }

typedef struct nvd_gpu_program {
  int npart; /* maximal runs of kernels, and of one library's step each */
  struct part { int first, end; } *part;
  int nleaf, nout; /* buffers that runs use, each once */
  struct used { int id, writes; } *leaf, *out;
  int *check;                /* of each step: its number among the checked ones, -1 if it has none */
  nvd_checks *checks;        /* NULL: none */
  int64_t memory;            /* bytes of temporaries and scratch */
  int64_t scratch;           /* where that begins */
  int flags;                 /* blocks of some step post */
  int64_t workspace;         /* bytes that libraries are to have beside it */
  const nvd_step *too_large; /* its blocks are more than a launch has; NULL: there is none such */
  int overlaps;              /* steps are kernels, and so long that launches one by one are hidden behind them */
  int records;               /* some step is a library's, and no argument is another at each run */
  nvd_fault **from;          /* room for the faults of a run's inputs */
  nvd_replay *plain, *kept[NVD_REPLAYS]; /* plain: where no other has a place */
  char label[NVD_LABEL];
} nvd_gpu_program;

/* One run. Under the lock. */
typedef struct nvd_gpu_run {
  nvd_program *p;
  const nvd_operand *leaf, *out;
  nvd_gpu_stream *q;
  nvd_replay *r;
  nvd_devbuf *memory;    /* temporaries and scratch; NULL: none are needed */
  nvd_devbuf *flags;     /* NULL: no step needs them */
  nvd_devbuf *workspace; /* NULL: none is needed, or none can be had */
  nvd_fault *fault;      /* of what comes out; NULL: nothing can go wrong */
  void *stream;          /* where it is launched: q's, or one that records */
  int captured;          /* into a graph of the caller's */
  int status;            /* of what is no failure of CUDA */
} nvd_gpu_run;

enum { NVD_SMALL_WORKSPACE = 64 << 10, NVD_POST_BYTES = 64 << 10 };
/* What is asked for when so much cannot be had. */
static inline int64_t nvd_less_workspace(int64_t bytes) { return bytes > NVD_SMALL_WORKSPACE ? bytes / 4 : 0; }
/* Under the lock: the faults of a run's inputs become its own, 0 when out of memory; it is launched, an error code of
   CUDA; and what came out has its fault from then on. */
int nvd_gpu_find_fault(nvd_gpu_run *x, nvd_use use);
int nvd_gpu_start(nvd_gpu_run *x);
void nvd_gpu_hand_on(nvd_gpu_run *x);
/* caller_capture.c: a run on a stream that the caller captures, a status; and what such runs used is let go of when
   their graphs are gone. */
int nvd_run_captured(nvd_gpu_run *x);
void nvd_reap_captured(void);

/* Step i, whose arguments are in place: an error code of CUDA, or x->status. */
int nvd_gpu_launch(nvd_gpu_run *x, int i);
/* The recording of a run, whose arguments are all in place, as an executable graph; NULL: `launch` launches it. */
void *nvd_record_get(nvd_gpu_run *x, int (*launch)(nvd_gpu_run *x));
void nvd_records_free(nvd_replay *r); /* within nvd_enter */
/* Launches step i, whose arguments are in place, and waits: reported and compared with the interpreter, as the
   settings ask. An error code of CUDA; or x->status is set. */
int nvd_gpu_step_instrumented(nvd_gpu_run *x, int i);
#endif
