/* Ceilings: what a device can do at best, in the units in which plans count. Private to the profile's files. */
#ifndef NVM_API_CEILING_H
#define NVM_API_CEILING_H
#include "dispatch/profile.h"

enum { NVA_BANDWIDTH = -1 }; /* else the ceiling of an NVD_UNIT */
typedef struct nva_ceiling { double rate; int measured; } nva_ceiling; /* bytes or operations per ns */
/* dev: 1 the CPU, 2 + ordinal a GPU. rated: the planner's rate is asked for. One that cannot be measured, as while a
   function is traced, is the planner's. A status, which is only ever an interrupt. */
int nva_ceiling_get(nva_ceiling *out, int dev, int unit, int rated);
void nva_ceiling_seen(int dev, int unit, double rate); /* kernels reached this rate: the ceiling is no lower */
#endif
