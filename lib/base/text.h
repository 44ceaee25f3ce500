/* Text that grows in an arena; printers write to it. */
#ifndef NVM_BASE_TEXT_H
#define NVM_BASE_TEXT_H
#include "base/arena.h"

typedef struct nvb_text {
  nvb_arena *arena;
  char *s;       /* ends in 0 once something was written; NULL before */
  size_t n, cap; /* bytes without the 0; bytes allocated */
} nvb_text;

void nvb_print(nvb_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void nvb_puts(nvb_text *t, const char *s);
/* prints the shortest decimal that reads back as the same double; inf, -inf, nan */
void nvb_put_double(nvb_text *t, double x);
const char *nvb_text_get(nvb_text *t); /* "" if nothing was written */
/* Do what strtod and strtof do in the C locale, with a decimal point, whatever the program's locale is. */
double nvb_read_double(const char *s, char **end);
float nvb_read_float(const char *s, char **end);
#endif
