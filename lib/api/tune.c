/* The public functions of include/nvm/tune.h: tuning sessions and records. Never measures anything itself. */
#include <limits.h>
#include <string.h>
#include <time.h>
#include "api/api.h"
#include "autotune/record.h"
#include "autotune/tune.h"
#include "base/mem.h"
#include "base/settings.h"
#include "base/store.h"

int nvm_tune_options_init(nvm_tune_options *o, unsigned version) {
  if (!o) return nva_missing("tune_options_init", "pointer for options");
  if (version != NVM_TUNE_OPTIONS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[tune_options_init] version %u is unknown; this library has %d", version,
                    NVM_TUNE_OPTIONS_VERSION);
  *o = (nvm_tune_options)NVM_TUNE_OPTIONS_INIT;
  return NVM_OK;
}

int nvm_tune_begin(const nvm_tune_options *o) {
  nvm_tune_options usual = NVM_TUNE_OPTIONS_INIT;
  o = o ? o : &usual;
  if (o->version != NVM_TUNE_OPTIONS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[tune_begin] version %u of the options is unknown; this library has %d", o->version,
                    NVM_TUNE_OPTIONS_VERSION);
  if (!(o->seconds >= 0))
    return nvb_fail(NVM_ERR_VALUE, "[tune_begin] the budget is %g seconds; it must be 0 (60 s) or more", o->seconds);
  return nvt_begin(&(nvt_session){ 1e9 * (o->seconds > 0 ? o->seconds : 60), o->cold, o->progress, o->user });
}
int nvm_tune_end(void) { return nvt_end(); }

/* ---- records */
static void list_record(nvb_text *t, const nvt_record *r) {
  char day[32];
  time_t date = (time_t)r->date;
  struct tm tm;
  strftime(day, sizeof day, "%Y-%m-%d", gmtime_r(&date, &tm));
  nvb_print(t, "%s\n  %s%s%s: %.4g us, %s %.4g; %d timed%s, %s\n", r->what, r->size, *r->size ? ": " : "",
            *r->description ? r->description
            : *r->config    ? r->config
                            : "by the rules",
            r->ns * 1e-3, *r->config ? "by the rules" : "the same", r->model_ns * 1e-3, r->tried,
            r->complete ? "" : " so far", day);
}
typedef struct listing { int json; char *text; } listing;
static void write_all(nvb_arena *a, void *arg) {
  listing *q = arg;
  nvb_text t = { .arena = a };
  nvt_record *r;
  const char *device = NULL;
  int n = nvt_record_all(a, &r);
  if (q->json) nvb_puts(&t, "[");
  for (int i = 0; i < n; i++) {
    if (q->json) {
      nvb_puts(&t, i ? ",\n " : "\n ");
      nvt_record_print(&t, &r[i]);
      continue;
    }
    if (!device || strcmp(device, r[i].device)) nvb_print(&t, "on %s\n", device = r[i].device);
    list_record(&t, &r[i]);
  }
  if (q->json) nvb_puts(&t, n ? "\n]\n" : "]\n");
  if (!(q->text = nvb_alloc(t.n + 1))) nvb_throw(a, NVM_ERR_MEMORY, "out of memory");
  memcpy(q->text, nvb_text_get(&t), t.n + 1);
}
static int all_as(char **text, int json) {
  listing q = { .json = json };
  if (!text) return nva_missing(json ? "tune_export" : "tune_list", "pointer for the text");
  nvb_arena *a = nvb_arena_new();
  int status = a ? nvb_protect(a, write_all, &q) : nvb_fail_memory();
  nvb_arena_free(a);
  *text = q.text;
  return status;
}
int nvm_tune_list(char **text) { return all_as(text, 0); }
int nvm_tune_export(char **json) { return all_as(json, 1); }

int nvm_tune_import(int *taken, const char *json) {
  int n = json ? nvt_record_import(json, strlen(json)) : -1;
  if (taken) *taken = n < 0 ? 0 : n;
  if (!json) return nva_missing("tune_import", "text");
  nvb_settings_touch(); /* earlier programs are planned again, by the new records */
  return n < 0 ? nvb_status() : NVM_OK;
}
int nvm_tune_clear(int *dropped) {
  int n = nvt_record_clear();
  if (dropped) *dropped = n < 0 ? 0 : n;
  if (n < 0) return nvb_status();
  nvb_settings_touch();
  return NVM_OK;
}
int nvm_tune_where(char **text, int *kept) {
  char where[PATH_MAX];
  if (!text || !kept) return nva_missing("tune_where", text ? "pointer for the answer" : "pointer for the text");
  *kept = nvb_store_where(where, sizeof where);
  *text = nvb_alloc(strlen(where) + 1);
  return *text ? strcpy(*text, where), NVM_OK : nvb_fail_memory();
}
int nvm_tune_counters_get(nvm_tune_counters *out, unsigned version) {
  if (!out) return nva_missing("tune_counters_get", "pointer for counters");
  if (version != NVM_TUNE_COUNTERS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[tune_counters_get] version %u is unknown; this library has %d", version,
                    NVM_TUNE_COUNTERS_VERSION);
  nvt_counts c = nvt_counted();
  *out = (nvm_tune_counters){ version, c.measured, c.timed, c.found };
  return NVM_OK;
}
