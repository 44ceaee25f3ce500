/* The autotuner's search space: tables of values for each knob, and a cost model that prunes candidates which cannot
   win. Never measures anything. */
#include "autotune/candidates.h"
#include <stdio.h>
#include <string.h>
#include "base/err.h"

/* A knob's values are a list of numbers, which `by_cores` multiplies by the device's cores. The rows of one pass are
   varied together; the first pass of a GEMM step chooses who runs it. */
enum { VALUES = 6 };
static const struct row {
  nvb_devkind device;
  int gemm, pass, knob, by_cores, n;
  int32_t value[VALUES];
} rows[] = {
  { NVB_CPU, 0, 0, NVF_KBLOCK, 0, 5, { 256, 1024, 4096, 16384, 65536 } },
  { NVB_CPU, 0, 0, NVF_KSTREAM, 0, 2, { 0, 1 } },
  { NVB_CPU, 0, 1, NVF_KCHUNKS, 1, 5, { 1, 2, 4, 16, 64 } },
  { NVB_CPU, 0, 1, NVF_KCHUNKS, 0, 1, { 1 } },
  { NVB_CPU, 1, 1, NVF_KROWS, 0, 3, { 16, 64, 128 } },
  { NVB_CPU, 1, 1, NVF_KCOLS, 0, 3, { 32, 64, 256 } },
  { NVB_CPU, 1, 2, NVF_KDEPTH, 0, 3, { 32, 128, 256 } },
  { NVB_CUDA, 0, 0, NVF_KWARPS, 0, 5, { 1, 2, 4, 8, 16 } },
  { NVB_CUDA, 0, 0, NVF_KITEMS, 0, 4, { 1, 2, 4, 8 } },
  { NVB_CUDA, 0, 1, NVF_KPREFETCH, 1, 3, { 0, 1, 2 } },
  { NVB_CUDA, 1, 1, NVF_KROWS, 0, 5, { 16, 32, 64, 128, 256 } },
  { NVB_CUDA, 1, 1, NVF_KCOLS, 0, 4, { 64, 128, 192, 256 } },
  { NVB_CUDA, 1, 1, NVF_KSTREAM_K, 0, 2, { 0, 16 } },
  { NVB_CUDA, 1, 2, NVF_KSPLIT_K, 0, 5, { 1, 2, 4, 8, 16 } },
  { NVB_CUDA, 1, 2, NVF_KCTAS_PER_SM, 0, 2, { 1, 2 } },
  { NVB_CUDA, 1, 2, NVF_KDEPTH, 0, 2, { 64, 256 } },
};
enum { NROWS = sizeof rows / sizeof *rows };

static int is_row(int r, nvb_devkind device, const nvf_step *s, int pass) {
  return rows[r].device == device && rows[r].gemm == (s->gemm != NULL) && rows[r].pass == pass;
}

static int32_t value_in(const struct row *r, int i, const nvb_caps *caps) {
  return r->value[i] * (r->by_cores ? caps->cores : 1);
}

static int has_value(nvb_devkind device, const nvf_step *s, const nvb_caps *caps, int knob, int32_t value) {
  for (int r = 0; r < NROWS; r++)
    for (int i = 0; i < rows[r].n; i++)
      if (is_row(r, device, s, rows[r].pass) && rows[r].knob == knob && value_in(&rows[r], i, caps) == value) return 1;
  return 0;
}

int nvt_config_fits(const nvf_plan *p, int step, const nvb_caps *caps, const nvf_knobs *knobs,
                    const nvd_solver_choice *call) {
  const nvf_step *s = &p->step[step];
  if (s->gemm ? knobs->set && strcmp(call->solver, "kernel") : *call->solver) return 0;
  for (int k = 0; k < NVF_NKNOBS; k++)
    if (knobs->set >> k & 1 && !has_value(p->device, s, caps, k, knobs->value[k])) return 0;
  return 1;
}

int nvt_passes(nvb_devkind device, const nvf_step *s) {
  int n = 0;
  for (int r = 0; r < NROWS; r++)
    if (is_row(r, device, s, rows[r].pass) && rows[r].pass >= n) n = rows[r].pass + 1;
  return n;
}

/* ---- configs as text */
void nvt_config_print(nvb_text *t, const nvf_knobs *knobs, const nvd_solver_choice *call) {
  size_t n = sizeof call->config, from = t->n;
  if (*call->solver) nvb_print(t, "solver=%s", call->solver);
  while (n && !call->config[n - 1]) n--;
  if (n) nvb_puts(t, " config=");
  for (size_t i = 0; i < n; i++) nvb_print(t, "%02x", call->config[i]);
  if (t->n > from && knobs->set) nvb_puts(t, " ");
  nvf_knobs_print(t, knobs);
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

int nvt_config_read(nvf_knobs *knobs, nvd_solver_choice *call, const char *s) {
  *call = (nvd_solver_choice){ .solver = "" };
  if (!strncmp(s, "solver=", 7)) {
    size_t n = strspn(s += 7, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (!n || n >= sizeof call->solver || (s[n] && s[n] != ' ')) return 0;
    memcpy(call->solver, s, n);
    s += n + (s[n] == ' ');
    if (!strncmp(s, "config=", 7)) {
      s += 7;
      for (n = 0; hex_digit(*s) >= 0; s += 2)
        if (hex_digit(s[1]) < 0 || n == sizeof call->config) return 0;
        else call->config[n++] = (unsigned char)(16 * hex_digit(s[0]) + hex_digit(s[1]));
      if (!n || (*s && *s++ != ' ')) return 0;
    }
  }
  return nvf_knobs_read(knobs, s);
}

/* ---- the model */
/* The expected ns of a step whose blocks are divided evenly among the cores but for the last wave; on a CPU each task
   adds a little. It contains only what differs between schedules of one step, and returns 0 (no estimate) for a
   GEMM. */
static double model_time(const nvf_step *s, const nvb_caps *c) {
  enum { PIECE = 200 };
  double work = (double)(s->bytes_read + s->bytes_written) / c->bandwidth + (double)s->flops / c->rate;
  double terms = (double)((s->blocks + s->grain - 1) / (s->grain ? s->grain : 1)), units = c->cores;
  if (s->gemm) return 0;
  if (c->kind != NVB_CPU) terms = (double)s->blocks;
  double waves = terms <= units ? 1 : terms / units; /* a core that is done early takes more */
  return work * units * waves / (terms > 0 ? terms : 1) + (c->kind == NVB_CPU ? PIECE * terms / units : 0);
}

/* ---- candidates */
typedef struct list {
  nvb_arena *a;
  const nvf_plan *p;
  int step, n;
  const nvb_caps *caps;
  nvt_config *at;
  nvb_hash hash[NVT_MOST];
} list;

typedef struct make { list *l; const nvf_knobs *knobs; nvf_step *made; } make;
static void make_step(nvb_arena *a, void *arg) {
  make *m = arg;
  m->made = nvf_step_with(m->l->p, m->l->step, m->knobs);
  nvf_kernel_check(a, m->made->k, m->made->s);
}

static int is_known(const list *l, const nvf_step *s, nvb_hash h, const nvd_solver_choice *call) {
  for (int i = 0; i < l->n; i++)
    if (nvb_hash_eq(h, l->hash[i]) && l->at[i].step->blocks == s->blocks && l->at[i].step->grain == s->grain &&
        !memcmp(&l->at[i].call, call, sizeof *call))
      return 1;
  return 0;
}

static void push_config(list *l, const nvf_knobs *k, const nvd_solver_choice *call, nvf_step *s, const char *words) {
  nvb_hash h = nvf_kernel_hash(s->k, s->s);
  if (l->n == NVT_MOST || is_known(l, s, h, call)) return;
  nvb_text t = { .arena = l->a };
  nvt_config_print(&t, k, call);
  l->hash[l->n] = h;
  l->at[l->n++] = (nvt_config){ *k, *call, nvb_text_get(&t), words, s, model_time(s, l->caps) };
}

/* Adds the step with these knobs; knobs that its schedule cannot follow are skipped. */
static void push_with_knob(list *l, const nvf_knobs *k, const nvd_solver_choice *call) {
  make m = { l, k, NULL };
  if (nvb_protect(l->a, make_step, &m)) nvb_clear();
  else push_config(l, k, call, m.made, "");
}

static void push_solvers(list *l, struct nvd_device *d) {
  nvd_solver_option *c = NVB_NEWN(l->a, nvd_solver_option, NVT_MOST);
  int n = nvd_solver_options(c, NVT_MOST - 1, l->p, l->step, d);
  for (int i = 0; i < n; i++)
    push_config(l, &(nvf_knobs){ 0 }, &c[i].choice, &l->p->step[l->step], nvb_strdup(l->a, c[i].what));
}

/* Sets *out to the i-th value of the knob, counted over all rows of the pass that name it. Returns 0 past the end. */
static int value_of(const list *l, const nvf_step *s, int pass, int knob, int i, int32_t *out) {
  for (int r = 0; r < NROWS; r++) {
    if (!is_row(r, l->p->device, s, pass) || rows[r].knob != knob) continue;
    if (i < rows[r].n) {
      *out = value_in(&rows[r], i, l->caps);
      return 1;
    }
    i -= rows[r].n;
  }
  return 0;
}

static int knobs_of(nvb_devkind device, const nvf_step *s, int pass, int knob[NVF_NKNOBS]) {
  unsigned seen = 0;
  int n = 0;
  for (int r = 0; r < NROWS; r++)
    if (is_row(r, device, s, pass) && !(seen >> rows[r].knob & 1)) {
      seen |= 1u << rows[r].knob;
      knob[n++] = rows[r].knob;
    }
  return n;
}

/* Adds every combination of the pass's values; each knob also keeps its value in `from`. */
static void push_knobs(list *l, int pass, const nvt_config *from) {
  const nvf_step *s = from->step;
  int knob[NVF_NKNOBS], n = knobs_of(l->p->device, s, pass, knob), count[NVF_NKNOBS] = { 0 };
  nvd_solver_choice call = { .solver = "" };
  nvf_knobs start = from->knobs;
  int32_t value;
  if (s->gemm) memcpy(call.solver, "kernel", 7);
  for (int done = n == 0; !done;) {
    nvf_knobs k = start;
    for (int i = 0; i < n; i++)
      if (count[i] && value_of(l, s, pass, knob[i], count[i] - 1, &value)) nvf_knob_set(&k, (nvf_knob)knob[i], value);
    if (memcmp(&k, &start, sizeof k)) push_with_knob(l, &k, &call);
    int i = 0;
    while (i < n && (count[i]++, !value_of(l, s, pass, knob[i], count[i] - 1, &value))) count[i++] = 0;
    done = i == n;
  }
}

int nvt_candidates(nvb_arena *a, const nvf_plan *p, int step, const nvb_caps *caps, struct nvd_device *device, int pass,
                   const nvt_config *from, nvt_config at[NVT_MOST]) {
  list *l = NVB_NEW(a, list);
  *l = (list){ .a = a, .p = p, .step = step, .caps = caps, .at = at };
  push_config(l, &from->knobs, &from->call, from->step, from->description);
  if (from->step->gemm && !pass && !*from->call.solver) push_solvers(l, device);
  else push_knobs(l, pass, from);
  return l->n;
}
