/* Reports the stages of eval.c: times (NVM_VERBOSE=3) and dumps (NVM_DUMP). Never changes what a stage makes. */
#include <stdio.h>
#include <string.h>
#include "api/api.h"
#include "base/clock.h"
#include "base/settings.h"

void nva_stages_start(nva_stages *s) {
  static atomic_int count;
  int number = atomic_fetch_add(&count, 1) + 1;
  if (nvb_int(NVB_VERBOSE) || *nvb_str(NVB_DUMP)) snprintf(s->name, sizeof s->name, "program-%d", number);
  s->text = NULL;
  s->since = nvb_clock_ns();
}
int nva_stage_end(nva_stages *s, const char *stage) {
  s->took = nvb_clock_ns() - s->since;
  return nvb_has(NVB_DUMP, stage) || nvb_int(NVB_VERBOSE) >= 3;
}
void nva_stage_note(nva_stages *s, const char *stage, const char *text) {
  int same = text && s->text && !strcmp(text, s->text);
  nvb_log(3, "%s: %s %.3f ms%s", s->name, stage, (double)s->took / 1e6, same ? " (unchanged)" : "");
  if (text) nvb_dump(stage, s->name, s->text = text);
  s->since = nvb_clock_ns();
}
