/* Which of several ways is fastest: the tuner's logic, over anything that can be timed. Knows no step, no device and no
   clock but the bench's, so that tests make their own. */
#ifndef NVM_AUTOTUNE_MEASURE_H
#define NVM_AUTOTUNE_MEASURE_H
#include <stdint.h>

typedef enum nvt_fate {
  NVT_WAITING, /* not looked at yet */
  NVT_RUNNING, /* right, and timed as long as it may still win */
  NVT_PRUNED,  /* left out: by the model, or since nothing can be timed */
  NVT_LATE,    /* left out for want of time */
  NVT_FAILED,  /* could not be made, or failed */
  NVT_WRONG,   /* other results than the reference */
  NVT_HUNG,    /* did not end; what it ran on is of no use any more */
  NVT_SLOW     /* clearly slower than the best, timed no further */
} nvt_fate;
const char *nvt_fate_name(nvt_fate f);

enum { NVT_SAMPLES = 16 };
typedef struct nvt_candidate {
  double model; /* ns, what the model says; 0: nothing */
  nvt_fate fate;
  int n;                                     /* samples */
  double sample[NVT_SAMPLES], median, least; /* ns */
} nvt_candidate;

/* Candidates are numbers; 0 is the model's own choice and the reference of all others. */
typedef struct nvt_bench {
  void *self;
  double (*now)(void *self);                         /* ns since some moment */
  void (*soon)(void *self, const int *which, int n); /* these are made next: work on several at once; NULL: none is */
  int wide;                                          /* at most so many */
  nvt_fate (*ready)(void *self, int i); /* makes it, runs it, compares it with 0: NVT_RUNNING, FAILED, WRONG or HUNG */
  nvt_fate (*sure)(void *self, int i);  /* of a winner: what `ready` left out of the comparison; the same fates */
  nvt_fate (*time)(void *self, int i, double *ns); /* one sample: NVT_RUNNING, FAILED or HUNG */
  void (*progress)(void *self, double part);       /* how much is done, 0 to 1; NULL: nobody asks */
} nvt_bench;

typedef struct nvt_rules {
  double budget; /* ns of the bench's clock, and as many for `soon`, whose first call is always done, as is
                              the first round of the reference */
  int rounds;    /* samples of each that may still win, at most NVT_SAMPLES */
  double prune;  /* those that the model gives more than so many times the least are left out; 0: none is */
  double gain;   /* a winner takes at most (1 - gain) of the reference's time, or the reference wins */
  uint64_t seed; /* of the order in each round */
} nvt_rules;

/* The number of the winner; -1 if not even the reference could be timed. */
int nvt_measure(const nvt_bench *b, const nvt_rules *r, nvt_candidate *c, int n);
/* After it: 0 if time was up before all that may be good were made and timed as often as the rules want, or something
   hung: another time another one may win. */
int nvt_complete(const nvt_rules *r, const nvt_candidate *c, int n);
#endif
