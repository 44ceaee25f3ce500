/* Whether two strided parts of one memory have a byte in common. */
#ifndef NVM_API_OVERLAP_H
#define NVM_API_OVERLAP_H
#include "api/part.h"

enum { NVA_UNDECIDED = -1, NVA_APART, NVA_OVERLAPPING };
/* `work` bounds the sums that are tried: 0 compares the first and last bytes only, a negative number is no bound. */
int nva_parts_overlap(const nva_part *p, const nva_part *q, int64_t work);
#endif
