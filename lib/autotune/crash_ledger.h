/* Candidates on trial, a row of kind "trial" in the store for each. A process notes what it is about to run for the
   first time and takes that back after, so that others know what hung, and what processes end in. */
#ifndef NVM_AUTOTUNE_CRASH_LEDGER_H
#define NVM_AUTOTUNE_CRASH_LEDGER_H
#include "base/hash.h"

/* So many processes ended while they had it on trial: one may have been killed for another reason. */
enum { NVT_DEATHS = 2 };
/* 1: noted, where the store lets that happen; others may have it on trial too. 0: it is not to be tried, for it hung,
   or NVT_DEATHS processes ended in it. */
int nvt_ledger_begin(nvb_hash key, const char *choice);
/* This process came through it, so that earlier ones ended for other reasons; or it hung, which holds for everyone
   until records are cleared. */
void nvt_ledger_end(nvb_hash key, const char *choice, int hung);
#endif
