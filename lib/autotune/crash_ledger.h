/* The crash ledger: one row of kind "trial" in the store for each candidate under measurement. A process adds a mark
   before it runs a candidate for the first time and removes it afterwards, so that other processes know which
   candidates hung or ended a process. */
#ifndef NVM_AUTOTUNE_CRASH_LEDGER_H
#define NVM_AUTOTUNE_CRASH_LEDGER_H
#include "base/hash.h"

/* A candidate is not tried any more after this many processes ended while measuring it; a single one may have been
   killed for another reason. */
enum { NVT_DEATHS = 2 };
/* Returns 1 and adds a mark, if the store can be written; other processes may be measuring the candidate too. Returns 0
   if it must not be tried, because it hung or NVT_DEATHS processes ended in it. */
int nvt_ledger_begin(nvb_hash key, const char *choice);
/* Removes the mark and the count of ended processes, since this process survived; or notes that it hung, which is valid
   for all processes until the records are cleared. */
void nvt_ledger_end(nvb_hash key, const char *choice, int hung);
#endif
