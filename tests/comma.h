/* A locale whose numbers have a comma, made for the test where none is installed. 0: there are no means to make one. */
#ifndef NVM_TESTS_COMMA_H
#define NVM_TESTS_COMMA_H
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int comma_locale(void) {
  char dir[] = "/tmp/nvm-locale-XXXXXX", line[200];
  int made = setlocale(LC_ALL, "de_AT.UTF-8") != NULL;
  if (!made && mkdtemp(dir)) {
    snprintf(line, sizeof line, "localedef -i de_AT -f UTF-8 %s/de_AT.UTF-8 2>/dev/null", dir);
    made = !system(line) && !setenv("LOCPATH", dir, 1) && setlocale(LC_ALL, "de_AT.UTF-8");
    snprintf(line, sizeof line, "rm -r %s", dir);
    made = !system(line) && made;
  }
  if (!made) fprintf(stderr, "skipped: no locale with a decimal comma\n");
  return made && !strcmp(localeconv()->decimal_point, ",");
}
#endif
