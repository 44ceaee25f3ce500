/* Text that grows in an arena: what printers write to. */
#ifndef NVM_BASE_TEXT_H
#define NVM_BASE_TEXT_H
#include "base/arena.h"

typedef struct nvb_text {
  nvb_arena *arena;
  char *s;       /* always ends in 0 once something was written; NULL before */
  size_t n, cap; /* bytes without the 0; bytes allocated */
} nvb_text;

void nvb_print(nvb_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void nvb_puts(nvb_text *t, const char *s);
void nvb_putf(nvb_text *t, double x);  /* shortest decimal that reads back to the same double; inf, -inf, nan */
const char *nvb_text_get(nvb_text *t); /* "" if nothing was written */
/* strtod and strtof of what is written so: with a point, whatever the program's locale. */
double nvb_read_double(const char *s, char **end);
float nvb_read_float(const char *s, char **end);
#endif
