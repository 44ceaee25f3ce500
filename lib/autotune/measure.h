/* Finds the fastest of several candidates: the tuner's logic over anything that can be timed. It knows no step, no
   device, and no clock but the bench's, so that tests can supply their own bench. */
#ifndef NVM_AUTOTUNE_MEASURE_H
#define NVM_AUTOTUNE_MEASURE_H
#include <stdint.h>

typedef enum nvt_fate {
  NVT_WAITING, /* not tried yet */
  NVT_RUNNING, /* verified, and timed while it may still win */
  NVT_PRUNED,  /* left out by the model, or because nothing can be timed */
  NVT_LATE,    /* left out because time ran out */
  NVT_FAILED,  /* could not be prepared, or failed in a run */
  NVT_WRONG,   /* its results differ from the reference */
  NVT_HUNG,    /* did not end; its device is lost */
  NVT_SLOW     /* clearly slower than the best; not timed further */
} nvt_fate;
const char *nvt_fate_name(nvt_fate f);

enum { NVT_SAMPLES = 16 };
typedef struct nvt_candidate {
  double model; /* the model's estimate in ns; 0: none */
  nvt_fate fate;
  int n;                                     /* number of samples */
  double sample[NVT_SAMPLES], median, least; /* ns; samples are sorted */
} nvt_candidate;

/* What times candidates, which are numbers; candidate 0 is the rules' choice and the reference for all others. */
typedef struct nvt_bench {
  void *self;
  double (*now)(void *self); /* ns of a clock with any origin */
  /* these candidates come next: prepares several in parallel; NULL: not supported */
  void (*soon)(void *self, const int *which, int n);
  int wide; /* the most candidates in one call of `soon` */
  /* prepares and runs candidate i and compares it with candidate 0: NVT_RUNNING, FAILED, WRONG or HUNG */
  nvt_fate (*ready)(void *self, int i);
  nvt_fate (*sure)(void *self, int i); /* for a winner: completes the comparison of `ready`; the same fates */
  nvt_fate (*time)(void *self, int i, double *ns); /* takes one sample: NVT_RUNNING, FAILED or HUNG */
  void (*progress)(void *self, double part);       /* reports the part that is done, 0 to 1; NULL: not wanted */
} nvt_bench;

typedef struct nvt_rules {
  /* ns of the bench's clock, and as many again for `soon`. The first call of `soon` and the first sample of the
     reference are always made. */
  double budget;
  int rounds;    /* samples of each candidate that may still win, at most NVT_SAMPLES */
  double prune;  /* candidates whose estimate exceeds this factor times the least one are left out; 0: none is */
  double gain;   /* a winner needs at most (1 - gain) of the reference's time; else the reference wins */
  uint64_t seed; /* seed of the random order in each round */
} nvt_rules;

/* Returns the number of the winner; -1 if not even the reference could be timed. */
int nvt_measure(const nvt_bench *b, const nvt_rules *r, nvt_candidate *c, int n);
/* Was the last nvt_measure complete? 0 if time ran out before all promising candidates were prepared and timed as often
   as the rules want, or if one hung: another search could find another winner. */
int nvt_complete(const nvt_rules *r, const nvt_candidate *c, int n);
#endif
