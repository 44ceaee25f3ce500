/* The knobs of a schedule as text, which is the form that tuning records store. It never decides a value. */
#include <stdlib.h>
#include <string.h>
#include "fusion/plan.h"

static const char *const names[] = {
#define KNOB(id, name, what) name,
#include "fusion/knobs.def"
#undef KNOB
};

void nvf_knobs_print(nvb_text *t, const nvf_knobs *k) {
  const char *before = "";
  for (int i = 0; i < NVF_NKNOBS; i++)
    if (k->set >> i & 1) {
      nvb_print(t, "%s%s=%d", before, names[i], (int)k->value[i]);
      before = " ";
    }
}

int nvf_knobs_read(nvf_knobs *out, const char *s) {
  *out = (nvf_knobs){ 0 };
  while (*s) {
    size_t n = strcspn(s, "=");
    int i = 0;
    while (i < NVF_NKNOBS && (strlen(names[i]) != n || strncmp(names[i], s, n))) i++;
    if (i == NVF_NKNOBS || s[n] != '=' || s[n + 1] < '0' || s[n + 1] > '9') return 0;
    char *end;
    long value = strtol(s + n + 1, &end, 10);
    if (value > 1 << 30 || (out->set >> i & 1) || (*end && *end != ' ')) return 0;
    nvf_knob_set(out, (nvf_knob)i, value);
    s = *end ? end + 1 : end;
  }
  return 1;
}
