/* The public functions of include/nvm/profile.h. What is timed, and how, is dispatch/profile.c's; what it means is
   profile_report.c's. */
#include <string.h>
#include "api/api.h"
#include "api/profile_report.h"
#include "base/mem.h"

struct nvm_profile {
  nvd_profile p;
  int metrics, rated;
};
enum { ALL = NVM_PROFILE_MEMORY | NVM_PROFILE_COMPUTE | NVM_PROFILE_TIMELINE };

int nvm_profile_options_init(nvm_profile_options *o, unsigned version) {
  if (!o) return nva_missing("profile_options_init", "pointer for options");
  if (version != NVM_PROFILE_OPTIONS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[profile_options_init] version %u is unknown; this library has %d", version,
                    NVM_PROFILE_OPTIONS_VERSION);
  *o = (nvm_profile_options)NVM_PROFILE_OPTIONS_INIT;
  return NVM_OK;
}

int nvm_profile_new(nvm_profile **out, const nvm_profile_options *o) {
  nvm_profile_options usual = NVM_PROFILE_OPTIONS_INIT;
  if (!out) return nva_missing("profile_new", "pointer for the profile");
  *out = NULL;
  o = o ? o : &usual;
  if (o->version != NVM_PROFILE_OPTIONS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[profile_new] version %u of the options is unknown; this library has %d",
                    o->version, NVM_PROFILE_OPTIONS_VERSION);
  if (o->metrics & ~ALL)
    return nvb_fail(NVM_ERR_VALUE, "[profile_new] the metrics %d have bits that are no nvm_profile_metric", o->metrics);
  if (!(*out = nvb_calloc(1, sizeof **out))) return nvb_fail_memory();
  (*out)->metrics = o->metrics ? o->metrics : ALL;
  (*out)->rated = o->rated != 0;
  (*out)->p.timeline = ((*out)->metrics & NVM_PROFILE_TIMELINE) != 0;
  return NVM_OK;
}
int nvm_profile_begin(nvm_profile *p) { return p ? nvd_profile_begin(&p->p) : nva_missing("profile_begin", "profile"); }
int nvm_profile_end(nvm_profile *p) { return p ? nvd_profile_end(&p->p) : nva_missing("profile_end", "profile"); }
void nvm_profile_free(nvm_profile *p) {
  if (p) nvd_profile_drop(&p->p);
  nvb_free(p);
}

/* ---- reports. Rows are copied, so that others may run kernels meanwhile. */
static void copy_rows(nvb_arena *a, void *arg) {
  nvd_profile *p = arg;
  p->row = nvb_dup(a, p->row, sizeof *p->row * (size_t)p->nrow);
  p->span = nvb_dup(a, p->span, sizeof *p->span * (size_t)p->nspan);
  for (int i = 0; i < p->nrow; i++) {
    nvd_work *w = &p->row[i].work;
    w->by = nvb_strdup(a, w->by);
    w->hero = nvb_strdup(a, w->hero);
    w->what = nvb_strdup(a, w->what);
  }
}
static int copy_profile(nvb_arena *a, nvd_profile *to, int64_t *ns, nvm_profile *p) {
  int status = nvd_profile_settle();
  if (status) return status;
  nvd_profile_lock();
  *to = p->p;
  *ns = nvd_profile_ns(&p->p);
  status = nvb_protect(a, copy_rows, to);
  nvd_profile_unlock();
  return status;
}
typedef struct report_request { nvm_profile *p; int format; nvm_profile_totals *totals; char **text; } report_request;
static void report_profile(nvb_arena *a, void *arg) {
  report_request *q = arg;
  nvd_profile copy;
  nva_report r;
  int64_t ns = 0;
  int status = copy_profile(a, &copy, &ns, q->p);
  status = status ? status : nva_report_make(&r, a, &copy, ns, q->p->metrics, q->p->rated);
  if (status) nvb_throw(a, status, "%s", nvb_message());
  if (q->totals) *q->totals = r.totals;
  if (!q->text) return;
  nvb_text t = { .arena = a };
  nva_report_print(&t, &r, (nvm_profile_format)q->format);
  if (!(*q->text = nvb_alloc(t.n + 1))) nvb_throw(a, NVM_ERR_MEMORY, "out of memory");
  memcpy(*q->text, nvb_text_get(&t), t.n + 1);
}
static int answer(report_request q) {
  nvb_arena *a = nvb_arena_new();
  int status = a ? nvb_protect(a, report_profile, &q) : nvb_fail_memory();
  nvb_arena_free(a);
  return status;
}
int nvm_profile_totals_get(nvm_profile_totals *out, unsigned version, nvm_profile *p) {
  if (!out || !p) return nva_missing("profile_totals_get", out ? "profile" : "pointer for the totals");
  if (version != NVM_PROFILE_TOTALS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[profile_totals_get] version %u is unknown; this library has %d", version,
                    NVM_PROFILE_TOTALS_VERSION);
  return answer((report_request){ .p = p, .totals = out });
}
int nvm_profile_print(char **text, nvm_profile *p, nvm_profile_format format) {
  if (!text) return nva_missing("profile_print", "pointer for the text");
  *text = NULL;
  if (!p) return nva_missing("profile_print", "profile");
  if ((int)format < 0 || format >= NVM_PROFILE_FORMATS)
    return nvb_fail(NVM_ERR_VALUE, "[profile_print] there is no format of number %d", (int)format);
  if (format == NVM_PROFILE_TRACE && !p->p.timeline)
    return nvb_fail(NVM_ERR_STATE, "[profile_print] the timeline is not among the profile's metrics");
  return answer((report_request){ .p = p, .format = format, .text = text });
}
