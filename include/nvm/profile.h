/* Profiles: which kernels ran, for how long, and how far from what the machine can do (profiling.md). A profile sees
   the kernels of all threads between its begin and end; while none is active, nothing is measured. Kernels of the CPU
   are timed by the monotonic clock, those of a GPU by CUDA events, one after the other. Bytes and operations are those
   that the plan counts (nvm_explain). */
#ifndef NVM_PROFILE_H
#define NVM_PROFILE_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct nvm_profile nvm_profile;
/* What a profile is asked for, beside the calls and the time of each kernel: bits of nvm_profile_options.metrics. */
typedef enum nvm_profile_metric {
  NVM_PROFILE_MEMORY = 1,  /* bytes moved, and the share of the memory's bandwidth */
  NVM_PROFILE_COMPUTE = 2, /* operations, and the share of the arithmetic's rate */
  NVM_PROFILE_TIMELINE = 4 /* when each call began, of the first 2^20: what NVM_PROFILE_TRACE prints */
} nvm_profile_metric;
typedef struct nvm_profile_options {
  unsigned version; /* NVM_PROFILE_OPTIONS_VERSION */
  int metrics;      /* 0: all */
  /* 1: ceilings are the rates by which the planner knows the device; 0: they are measured, once for each device, at
     the first report, in some tenths of a second, and kept in the disk cache */
  int rated;
} nvm_profile_options;
#define NVM_PROFILE_OPTIONS_VERSION 1
#define NVM_PROFILE_OPTIONS_INIT { NVM_PROFILE_OPTIONS_VERSION, 0, 0 }
/* Fills in the defaults. version: NVM_PROFILE_OPTIONS_VERSION, else NVM_ERR_VALUE. Returns a status. */
NVM_API int nvm_profile_options_init(nvm_profile_options *o, unsigned version);
/* Makes a profile, which nvm_profile_free frees; o NULL: defaults. Returns a status. */
NVM_API int nvm_profile_new(nvm_profile **out, const nvm_profile_options *o);
/* Begin and end the stretch that is profiled; a profile sums up all its stretches. Pairs nest, of one profile and of
   several, each of which sees all kernels; any thread may call either. Both wait for the kernels of GPUs that are being
   timed. NVM_ERR_STATE: more ends than begins. A status. */
NVM_API int nvm_profile_begin(nvm_profile *p);
NVM_API int nvm_profile_end(nvm_profile *p);
NVM_API void nvm_profile_free(nvm_profile *p); /* p may be NULL, or not have ended */

typedef struct nvm_profile_totals {
  unsigned version;                            /* NVM_PROFILE_TOTALS_VERSION */
  int64_t calls;                               /* of kernels */
  double seconds;                              /* between begin and end */
  double kernels;                              /* seconds within kernels, of all threads and devices */
  /* From 0 to 1: the share of its ceiling that each kernel reached, weighted by its time; -1: not among the metrics. A
     kernel that finds its data in caches can be faster than memory, and counts as 1. */
  double memory_efficiency, compute_efficiency;
} nvm_profile_totals;
#define NVM_PROFILE_TOTALS_VERSION 1
/* Sums up what the profile has seen so far. version: NVM_PROFILE_TOTALS_VERSION, else NVM_ERR_VALUE. A status. */
NVM_API int nvm_profile_totals_get(nvm_profile_totals *out, unsigned version, nvm_profile *p);

typedef enum nvm_profile_format {
  NVM_PROFILE_TEXT,  /* a table for people, with a line of advice for each kernel that is far from its ceilings */
  NVM_PROFILE_JSON,  /* the same as one object */
  NVM_PROFILE_HTML,  /* the same as a page without references to others */
  NVM_PROFILE_TRACE, /* the timeline, for chrome://tracing and ui.perfetto.dev; needs NVM_PROFILE_TIMELINE */
  NVM_PROFILE_FORMATS
} nvm_profile_format;
/* Prints what the profile has seen so far. The caller frees *text with nvm_free. A status. */
NVM_API int nvm_profile_print(char **text, nvm_profile *p, nvm_profile_format format);

#ifdef __cplusplus
}
#endif
#endif
