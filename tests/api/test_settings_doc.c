/* docs/guide/debugging.md holds a line for every setting, as the table says it. Run from the top of the source. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "nvm/nvm.h"

int main(void) {
  static char doc[1 << 16], line[1024];
  FILE *f = fopen("docs/guide/debugging.md", "r");
  if (!f) return perror("docs/guide/debugging.md"), 1;
  doc[fread(doc, 1, sizeof doc - 1, f)] = 0;
  fclose(f);
  const char *name, *value, *def, *what;
  int bad = 0, n = 0;
  for (; nvm_setting(n, &name, &value, &def, &what); n++) {
    snprintf(line, sizeof line, "| `%s` | %s%s%s | %s |\n", name, *def ? "`" : "", def, *def ? "`" : "", what);
    if (!strstr(doc, line)) bad++, printf("missing or different: %s", line);
  }
  return bad || !n;
}
