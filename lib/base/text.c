/* Implements growing text in an arena, and decides how floating-point numbers are printed and read everywhere. When
   memory runs out, it throws to the arena's nvb_protect. */
#include "base/text.h"
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"

static char *reserve_bytes(nvb_text *t, size_t more) { /* makes space for `more` bytes and a 0 */
  if (t->cap - t->n <= more) {
    size_t cap = (t->n + more + 1) * 2;
    char *s = nvb_get(t->arena, cap < 256 ? 256 : cap);
    if (t->n) memcpy(s, t->s, t->n);
    t->s = s;
    t->cap = cap < 256 ? 256 : cap;
  }
  return t->s + t->n;
}

void nvb_print(nvb_text *t, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  char *s = reserve_bytes(t, 64);
  size_t have = t->cap - t->n;
  int n = vsnprintf(s, have, fmt, ap);
  va_end(ap);
  if (n >= 0 && (size_t)n >= have) {
    char *cut = reserve_bytes(t, (size_t)n);
    vsnprintf(cut, (size_t)n + 1, fmt, again);
  }
  va_end(again);
  if (n < 0) nvb_throw(t->arena, NVM_ERR_INTERNAL, "[text] format failed");
  t->n += (size_t)n;
}

void nvb_puts(nvb_text *t, const char *s) {
  size_t n = strlen(s);
  memcpy(reserve_bytes(t, n), s, n + 1);
  t->n += n;
}

/* ---- numbers, in the C locale whatever the program's locale is */
static locale_t plain; /* 0: newlocale failed */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double nvb_read_double(const char *s, char **end) {
  pthread_once(&once, make_plain);
  return plain ? strtod_l(s, end, plain) : strtod(s, end);
}

float nvb_read_float(const char *s, char **end) {
  pthread_once(&once, make_plain);
  return plain ? strtof_l(s, end, plain) : strtof(s, end);
}

void nvb_put_double(nvb_text *t, double x) {
  char s[40];
  if (isnan(x) || isinf(x)) {
    nvb_puts(t, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    return;
  }
  pthread_once(&once, make_plain);
  locale_t before = plain ? uselocale(plain) : (locale_t)0;
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(s, sizeof s, "%.*g", digits, x);
    if (strtod(s, NULL) == x) break;
  }
  if (before) uselocale(before);
  nvb_puts(t, s);
  if (!strpbrk(s, ".e")) nvb_puts(t, ".0");
}

const char *nvb_text_get(nvb_text *t) { return t->s ? t->s : ""; }
