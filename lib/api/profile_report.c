/* Judges the rows of a profile against the ceilings of their devices, and prints them as text, JSON, a page or a trace.
   Decides what is said of a kernel that is far from its ceilings; never measures a kernel. */
#include "api/profile_report.h"
#include <stdlib.h>
#include <string.h>
#include "api/api.h"

/* ---- advice. A kernel is near a ceiling from NEAR of it on. */
static const double NEAR = 0.6;

static int holds(const char *text, const char *word) { return strstr(text, word) != NULL; }

static const char *advice_for(nvb_arena *a, const nva_report_row *r, const nvb_caps *c) {
  const nvd_work *w = &r->row->work;
  double each = (double)r->row->ns / (double)r->row->calls, launches = 4;
  nvb_text t = { .arena = a };
  if (r->memory >= NEAR || r->compute >= NEAR || (r->memory < 0 && r->compute < 0)) return "";
  if (!strcmp(w->by, "interpreter"))
    return "the interpreter ran it, as it does the first calls: NVM_TIER=1 compiles at the first";
  if (!strcmp(w->by, "direct"))
    return "it ran value by value, as small new graphs do: nvm.jit, or more elements, give it a plan";
  if (each < launches * c->launch)
    nvb_print(&t,
              "a call takes %.3g us, and to launch it %.2g us of them: give a call more elements, or evaluate more "
              "operations together",
              each / 1e3, c->launch / 1e3);
  else if (w->blocks && w->blocks < c->cores)
    nvb_print(&t, "its %lld block%s keep%s %lld of %d %s busy: larger arrays, or a batch, fill the device",
              (long long)w->blocks, w->blocks == 1 ? "" : "s", w->blocks == 1 ? "s" : "", (long long)w->blocks,
              c->cores, c->kind == NVB_CPU ? "cores" : "SMs");
  else if (each > 3 * (double)r->row->best)
    nvb_print(&t,
              "the mean call takes %.1f times as long as the fastest: the first calls, or others who share the "
              "machine, slow it down",
              each / (double)r->row->best);
  else if (!strcmp(w->hero, "transpose"))
    return "it reads along one axis and writes along another: keep arrays in the order in which they are used";
  else if (holds(w->what, "take") || holds(w->what, "gather") || holds(w->what, "scatter"))
    return "its addresses come from data: sorted indices share cache lines";
  else if (!strcmp(w->hero, "gemm") || !strcmp(w->hero, "routine"))
    return "a library or a routine runs it: larger or batched problems come nearer to the ceiling";
  else return "neither ceiling is near: nvm.auto_tune() measures other schedules";
  return nvb_text_get(&t);
}

/* ---- rows and sums */
static int by_time(const void *x, const void *y) {
  const nva_report_row *a = x, *b = y;
  return a->row->ns < b->row->ns ? 1 : a->row->ns > b->row->ns ? -1 : a->row > b->row ? 1 : -1;
}
static double share_of(double work, const nvd_profile_row *r, nva_ceiling c) {
  return r->ns > 0 ? work / (double)r->ns / c.rate : 0;
}
static nvb_caps caps_of(const nvd_work *w) {
  nvd_device *d = w->dev > 1 ? nva_gpu("profile", w->dev) : NULL;
  return d ? *nvd_device_caps(d) : nvb_caps_cpu();
}
static int judge_row(nva_report_row *out, nvb_arena *a, const nvd_profile_row *r, int metrics, int rated) {
  const nvd_work *w = &r->work;
  *out = (nva_report_row){ .row = r, .memory = -1, .compute = -1 };
  int status = metrics & NVM_PROFILE_MEMORY ? nva_ceiling_get(&out->bandwidth, w->dev, NVA_BANDWIDTH, rated) : NVM_OK;
  if (!status && metrics & NVM_PROFILE_COMPUTE) status = nva_ceiling_get(&out->arithmetic, w->dev, w->unit, rated);
  if (status) return status;
  nvb_caps c = caps_of(w);
  if (metrics & NVM_PROFILE_MEMORY) out->memory = share_of((double)w->bytes, r, out->bandwidth);
  if (metrics & NVM_PROFILE_COMPUTE) out->compute = share_of((double)w->operations, r, out->arithmetic);
  out->advice = advice_for(a, out, &c);
  return NVM_OK;
}
/* No cache explains a kernel that is above the ceiling of arithmetic: others slowed the measurement down. */
static int raise_ceilings(const nvd_profile *p, int rated) {
  nva_ceiling c;
  int status = NVM_OK;
  for (int i = 0; i < p->nrow && !status; i++) {
    const nvd_profile_row *r = &p->row[i];
    status = nva_ceiling_get(&c, r->work.dev, r->work.unit, rated);
    double share = status ? 0 : share_of((double)r->work.operations, r, c);
    if (share > 1 && c.measured) nva_ceiling_seen(r->work.dev, r->work.unit, share * c.rate);
  }
  return status;
}
static double at_most_one(double x) { return x < 1 ? x : 1; }
static double mean_share(const nva_report *r, int compute) {
  double sum = 0, time = 0;
  for (int i = 0; i < r->n; i++) {
    double ns = (double)r->at[i].row->ns;
    sum += ns * at_most_one(compute ? r->at[i].compute : r->at[i].memory);
    time += ns;
  }
  return time > 0 ? sum / time : 0;
}
int nva_report_make(nva_report *out, nvb_arena *a, const nvd_profile *p, int64_t ns, int metrics, int rated) {
  nva_report r = { .metrics = metrics, .n = p->nrow, .nspan = p->nspan, .span = p->span, .rows = p->row };
  r.dropped = p->dropped;
  r.totals = (nvm_profile_totals){ .version = NVM_PROFILE_TOTALS_VERSION, .seconds = (double)ns * 1e-9 };
  r.at = NVB_NEWN(a, nva_report_row, p->nrow + 1);
  int status = metrics & NVM_PROFILE_COMPUTE ? raise_ceilings(p, rated) : NVM_OK;
  for (int i = 0; i < r.n && !status; i++) {
    status = judge_row(&r.at[i], a, &p->row[i], metrics, rated);
    r.totals.calls += p->row[i].calls;
    r.totals.kernels += (double)p->row[i].ns * 1e-9;
  }
  if (status) return status;
  qsort(r.at, (size_t)r.n, sizeof *r.at, by_time);
  r.totals.memory_efficiency = metrics & NVM_PROFILE_MEMORY ? mean_share(&r, 0) : -1;
  r.totals.compute_efficiency = metrics & NVM_PROFILE_COMPUTE ? mean_share(&r, 1) : -1;
  *out = r;
  return NVM_OK;
}

/* ---- numbers for people */
static const char *unit_name(int unit) {
  static const char *const gemm[NVB_GEMMS] = { "float32", "tf32", "float64", "16-bit", "8-bit", "int8" };
  return unit == NVA_BANDWIDTH  ? "memory"
         : unit == NVD_UNIT_F32 ? "float32 arithmetic"
         : unit == NVD_UNIT_F64 ? "float64 arithmetic"
                                : gemm[unit - NVD_UNIT_GEMM];
}
static void print_scaled(nvb_text *t, double x, const char *const unit[5]) {
  int u = 0;
  for (; x >= 1000 && u < 4; u++) x /= 1000;
  nvb_print(t, "%.3g %s", x, unit[u]);
}
static void print_bytes(nvb_text *t, double x) {
  static const char *const unit[] = { "B", "KB", "MB", "GB", "TB" };
  print_scaled(t, x, unit);
}
static void print_time(nvb_text *t, double ns) {
  static const char *const unit[] = { "ns", "us", "ms", "s", "ks" };
  print_scaled(t, ns, unit);
}
static void print_share(nvb_text *t, double x) {
  if (x < 0) nvb_puts(t, "-");
  else nvb_print(t, "%.0f %%", 100 * x);
}

/* The ceilings that rows were judged against, each once: calls `each` for them. */
typedef void ceiling_printer(nvb_text *t, const char *device, int unit, nva_ceiling c, int first);
static int is_listed(const nva_report *r, int n, int dev, int unit) {
  for (int i = 0; i < n; i++)
    if (r->at[i].row->work.dev == dev && (unit == NVA_BANDWIDTH || r->at[i].row->work.unit == unit)) return 1;
  return 0;
}
static void each_ceiling(nvb_text *t, const nva_report *r, ceiling_printer *each) {
  char name[16];
  int n = 0;
  for (int i = 0; i < r->n; i++) {
    const nvd_work *w = &r->at[i].row->work;
    const char *device = nvg_device_name(name, w->dev);
    if (r->metrics & NVM_PROFILE_MEMORY && !is_listed(r, i, w->dev, NVA_BANDWIDTH))
      each(t, device, NVA_BANDWIDTH, r->at[i].bandwidth, !n++);
    if (r->metrics & NVM_PROFILE_COMPUTE && !is_listed(r, i, w->dev, w->unit))
      each(t, device, w->unit, r->at[i].arithmetic, !n++);
  }
}
static void print_ceiling(nvb_text *t, const char *device, int unit, nva_ceiling c, int first) {
  nvb_print(t, "%s%s %s%s %.4g %s%s", first ? "ceilings: " : "; ", device, unit_name(unit),
            unit >= NVD_UNIT_GEMM ? " products" : "", c.rate, unit == NVA_BANDWIDTH ? "GB/s" : "G operations/s",
            c.measured ? "" : " (not measured)");
}

/* ---- text */
static void print_summary(nvb_text *t, const nva_report *r) {
  const nvm_profile_totals *s = &r->totals;
  print_time(t, 1e9 * s->seconds);
  nvb_puts(t, ", ");
  print_time(t, 1e9 * s->kernels);
  nvb_print(t, " of them in %lld call%s of %d kernel%s", (long long)s->calls, s->calls == 1 ? "" : "s", r->n,
            r->n == 1 ? "" : "s");
  if (s->memory_efficiency >= 0) nvb_print(t, "; memory efficiency %.1f %%", 100 * s->memory_efficiency);
  if (s->compute_efficiency >= 0) nvb_print(t, "; compute efficiency %.1f %%", 100 * s->compute_efficiency);
  if (r->dropped) nvb_print(t, "; %lld calls are missing, since memory ran out", (long long)r->dropped);
}
static void print_cell(nvb_text *t, int width, void (*print)(nvb_text *t, double x), double x) {
  nvb_text cell = { .arena = t->arena };
  print(&cell, x);
  nvb_print(t, "%*s", width, nvb_text_get(&cell));
}
static void print_rate(nvb_text *t, double x) { nvb_print(t, "%.3g", x); }
static void print_line(nvb_text *t, const nva_report_row *r) {
  const nvd_profile_row *w = r->row;
  char name[16];
  nvb_print(t, "%7lld", (long long)w->calls);
  print_cell(t, 10, print_time, (double)w->ns);
  print_cell(t, 10, print_time, (double)w->ns / (double)w->calls);
  print_cell(t, 10, print_bytes, (double)w->work.bytes / (double)w->calls);
  print_cell(t, 8, print_rate, (double)w->work.bytes / (double)(w->ns ? w->ns : 1));
  print_cell(t, 8, print_share, r->memory);
  print_cell(t, 8, print_share, r->compute);
  nvb_print(t, "  %s, %s on %s: %s\n", w->work.hero, w->work.by, nvg_device_name(name, w->work.dev), w->work.what);
  if (*r->advice) nvb_print(t, "%63s%s\n", "", r->advice);
}
static void print_text(nvb_text *t, const nva_report *r) {
  print_summary(t, r);
  nvb_puts(t, "\n");
  each_ceiling(t, r, print_ceiling);
  nvb_print(t, "\n%7s%10s%10s%10s%8s%8s%8s  %s\n", "calls", "time", "each", "bytes", "GB/s", "memory", "compute",
            "kernel");
  for (int i = 0; i < r->n; i++) print_line(t, &r->at[i]);
}

/* ---- JSON */
static void put_json(nvb_text *t, const char *s) {
  nvb_puts(t, "\"");
  for (; *s; s++)
    if ((unsigned char)*s < ' ') nvb_print(t, "\\u%04x", *s);
    else nvb_print(t, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  nvb_puts(t, "\"");
}
static void put_text(nvb_text *t, const char *name, const char *s) {
  nvb_print(t, ", \"%s\": ", name);
  put_json(t, s);
}
static void put_number(nvb_text *t, const char *name, double x) {
  nvb_print(t, ", \"%s\": ", name);
  nvb_put_double(t, x);
}
static void put_count(nvb_text *t, const char *name, int64_t n) { nvb_print(t, ", \"%s\": %lld", name, (long long)n); }
static void put_share(nvb_text *t, const char *name, double x) {
  if (x < 0) nvb_print(t, ", \"%s\": null", name);
  else put_number(t, name, x);
}
static void put_ceiling(nvb_text *t, const char *device, int unit, nva_ceiling c, int first) {
  nvb_puts(t, first ? "{\"device\": " : ", {\"device\": ");
  put_json(t, device);
  put_text(t, "of", unit == NVA_BANDWIDTH ? "memory" : unit >= NVD_UNIT_GEMM ? "products" : "arithmetic");
  put_text(t, "type", unit_name(unit));
  put_number(t, "per_second", 1e9 * c.rate);
  nvb_print(t, ", \"measured\": %s}", c.measured ? "true" : "false");
}
static void put_row(nvb_text *t, const nva_report_row *r, int first) {
  const nvd_profile_row *w = r->row;
  char name[16];
  nvb_puts(t, first ? "\n  {\"device\": " : ",\n  {\"device\": ");
  put_json(t, nvg_device_name(name, w->work.dev));
  put_text(t, "kind", w->work.hero);
  put_text(t, "by", w->work.by);
  put_text(t, "what", w->work.what);
  put_count(t, "calls", w->calls);
  put_number(t, "seconds", 1e-9 * (double)w->ns);
  put_number(t, "fastest", 1e-9 * (double)w->best);
  put_count(t, "bytes", w->work.bytes);
  put_count(t, "operations", w->work.operations);
  put_share(t, "memory", r->memory);
  put_share(t, "compute", r->compute);
  put_text(t, "advice", r->advice);
  nvb_puts(t, "}");
}
static void print_json(nvb_text *t, const nva_report *r) {
  nvb_print(t, "{\"calls\": %lld", (long long)r->totals.calls);
  put_number(t, "seconds", r->totals.seconds);
  put_number(t, "kernel_seconds", r->totals.kernels);
  put_share(t, "memory_efficiency", r->totals.memory_efficiency);
  put_share(t, "compute_efficiency", r->totals.compute_efficiency);
  put_count(t, "missing", r->dropped);
  nvb_puts(t, ",\n \"ceilings\": [");
  each_ceiling(t, r, put_ceiling);
  nvb_puts(t, "],\n \"kernels\": [");
  for (int i = 0; i < r->n; i++) put_row(t, &r->at[i], !i);
  nvb_puts(t, "]}\n");
}

/* ---- a page */
static void put_html(nvb_text *t, const char *s) {
  for (; *s; s++)
    if (*s == '<' || *s == '&') nvb_puts(t, *s == '<' ? "&lt;" : "&amp;");
    else nvb_print(t, "%c", *s);
}
static void put_cell(nvb_text *t, void (*print)(nvb_text *t, double x), double x) {
  nvb_puts(t, "<td>");
  print(t, x);
}
static void put_bar(nvb_text *t, double x) {
  nvb_print(t, "<td class=bar style='--share:%.1f%%'>", x < 0 ? 0 : 100 * at_most_one(x));
  print_share(t, x);
}
static void put_html_row(nvb_text *t, const nva_report_row *r) {
  const nvd_profile_row *w = r->row;
  char name[16];
  nvb_print(t, "<tr><td>%lld", (long long)w->calls);
  put_cell(t, print_time, (double)w->ns);
  put_cell(t, print_time, (double)w->ns / (double)w->calls);
  put_cell(t, print_bytes, (double)w->work.bytes / (double)w->calls);
  put_cell(t, print_rate, (double)w->work.bytes / (double)(w->ns ? w->ns : 1));
  put_bar(t, r->memory);
  put_bar(t, r->compute);
  nvb_puts(t, "<td class=kernel><b>");
  put_html(t, w->work.hero);
  nvb_print(t, "</b>, %s on %s: ", w->work.by, nvg_device_name(name, w->work.dev));
  put_html(t, w->work.what);
  nvb_puts(t, *r->advice ? "<div class=advice>" : "");
  put_html(t, r->advice);
  nvb_puts(t, *r->advice ? "</div>\n" : "\n");
}
static void print_html(nvb_text *t, const nva_report *r) {
  nvb_puts(t, "<!doctype html>\n<html lang=en><meta charset=utf-8><title>nvm profile</title>\n<style>\n"
              "body{font:14px/1.5 system-ui,sans-serif;margin:2em;max-width:80em;color:#1a1a1a;background:#fff}\n"
              "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
              "th,td{padding:.3em .7em;text-align:right;vertical-align:top;border-bottom:1px solid #ddd}\n"
              ".kernel{text-align:left}.advice{color:#8a5a00}\n"
              ".bar{background:linear-gradient(to right,#bcd9f5 var(--share),transparent var(--share))}\n"
              "</style>\n<h1>nvm profile</h1>\n<p>");
  print_summary(t, r);
  nvb_puts(t, "</p>\n<p>");
  each_ceiling(t, r, print_ceiling);
  nvb_puts(t, "</p>\n<table><tr><th>calls<th>time<th>each<th>bytes<th>GB/s<th>memory<th>compute"
              "<th class=kernel>kernel\n");
  for (int i = 0; i < r->n; i++) put_html_row(t, &r->at[i]);
  nvb_puts(t, "</table>\n</html>\n");
}

/* ---- a trace: a process for each device, a thread for each thread or stream. Times are from the first call on. */
static void put_process(nvb_text *t, const nva_report *r, int i) {
  char name[16];
  int dev = r->rows[i].work.dev;
  for (int k = 0; k < i; k++)
    if (r->rows[k].work.dev == dev) return;
  nvb_print(t, "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"args\": {\"name\": \"%s\"}},\n", dev,
            nvg_device_name(name, dev));
}
static void put_span(nvb_text *t, const nvd_span *s, const nvd_profile_row *r, int64_t origin) {
  nvb_puts(t, "{\"name\": ");
  put_json(t, r->work.hero);
  put_text(t, "cat", r->work.by);
  nvb_print(t, ", \"ph\": \"X\", \"ts\": %.3f, \"dur\": %.3f, \"pid\": %d, \"tid\": %d, \"args\": {\"what\": ",
            (double)(s->start - origin) * 1e-3, (double)s->ns * 1e-3, r->work.dev, s->thread);
  put_json(t, r->work.what);
  nvb_puts(t, "}}");
}
static void print_trace(nvb_text *t, const nva_report *r) {
  int64_t origin = r->nspan ? r->span[0].start : 0;
  for (int i = 0; i < r->nspan; i++) origin = r->span[i].start < origin ? r->span[i].start : origin;
  nvb_puts(t, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n");
  for (int i = 0; i < r->n; i++) put_process(t, r, i);
  for (int i = 0; i < r->nspan; i++) {
    put_span(t, &r->span[i], &r->rows[r->span[i].row], origin);
    nvb_puts(t, i + 1 < r->nspan ? ",\n" : "\n");
  }
  nvb_puts(t, "]}\n");
}

void nva_report_print(nvb_text *t, const nva_report *r, nvm_profile_format f) {
  static void (*const print[NVM_PROFILE_FORMATS])(nvb_text *t,
                                                  const nva_report *r) = { [NVM_PROFILE_TEXT] = print_text,
                                                                           [NVM_PROFILE_JSON] = print_json,
                                                                           [NVM_PROFILE_HTML] = print_html,
                                                                           [NVM_PROFILE_TRACE] = print_trace };
  print[f](t, r);
}
