/* What a profile says: its rows beside the ceilings of their devices, and how that is printed. */
#ifndef NVM_API_PROFILE_REPORT_H
#define NVM_API_PROFILE_REPORT_H
#include "api/ceiling.h"
#include "base/text.h"
#include "nvm/profile.h"

typedef struct nva_report_row {
  const nvd_profile_row *row;
  nva_ceiling bandwidth, arithmetic;
  double memory, compute; /* shares of the ceilings, which caches may exceed; -1: not asked for */
  const char *advice;     /* ""; or why it is far from both ceilings, and what to do */
} nva_report_row;
typedef struct nva_report {
  nvm_profile_totals totals;
  int metrics, n, nspan;
  int64_t dropped;
  nva_report_row *at;   /* the longest time first */
  const nvd_span *span; /* by the order of `rows` */
  const nvd_profile_row *rows;
} nva_report;
/* Reads a profile, whose rows stay as they are; rows are judged against ceilings that are measured here if they have
   to be. A status; it throws when memory runs out. */
int nva_report_make(nva_report *out, nvb_arena *a, const nvd_profile *p, int64_t ns, int metrics, int rated);
void nva_report_print(nvb_text *t, const nva_report *r, nvm_profile_format f);
#endif
