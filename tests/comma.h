/* Locales that write and compare otherwise, made for the test where they are not installed. */
#ifndef NVM_TESTS_COMMA_H
#define NVM_TESTS_COMMA_H
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets the locale of that name, "de_AT"; 0: there are no means to make it. */
static inline int use_locale(const char *name) {
  char dir[] = "/tmp/nvm-locale-XXXXXX", full[32], line[200];
  snprintf(full, sizeof full, "%s.UTF-8", name);
  int made = setlocale(LC_ALL, full) != NULL;
  if (!made && mkdtemp(dir)) {
    snprintf(line, sizeof line, "localedef -i %s -f UTF-8 %s/%s 2>/dev/null", name, dir, full);
    made = !system(line) && !setenv("LOCPATH", dir, 1) && setlocale(LC_ALL, full);
    snprintf(line, sizeof line, "rm -r %s", dir);
    made = !system(line) && made;
  }
  if (!made) fprintf(stderr, "skipped: no locale %s\n", name);
  return made;
}
static inline int comma_locale(void) { /* whose numbers have a comma */
  return use_locale("de_AT") && !strcmp(localeconv()->decimal_point, ",");
}
#endif
