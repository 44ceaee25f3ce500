/* The values that knobs are tried with: tables, one row a knob, and the model that leaves out what cannot be good. */
#include "autotune/candidates.h"
#include <string.h>

/* A value is one of a list, or so many times the device's units. Rows of one pass are varied together. */
enum { VALUES = 6 };
static const struct row { nvb_devkind device; int pass, knob, by_units, n; int32_t value[VALUES]; } rows[] = {
  { NVB_CPU, 0, NVF_KBLOCK, 0, 5, { 256, 1024, 4096, 16384, 65536 } },
  { NVB_CPU, 0, NVF_KSTREAM, 0, 2, { 0, 1 } },
  { NVB_CPU, 1, NVF_KCHUNKS, 1, 5, { 1, 2, 4, 16, 64 } },
  { NVB_CPU, 1, NVF_KCHUNKS, 0, 1, { 1 } },
  { NVB_CUDA, 0, NVF_KWARPS, 0, 5, { 1, 2, 4, 8, 16 } },
  { NVB_CUDA, 0, NVF_KITEMS, 0, 4, { 1, 2, 4, 8 } },
  { NVB_CUDA, 1, NVF_KAHEAD, 1, 3, { 0, 1, 2 } },
};
enum { NROWS = sizeof rows / sizeof *rows };

int nvt_passes(nvb_devkind device) {
  int n = 0;
  for (int i = 0; i < NROWS; i++)
    if (rows[i].device == device && rows[i].pass >= n)
      n = rows[i].pass + 1;
  return n;
}

/* ns of a step whose blocks the units share evenly but for the last round, each piece costing a little. Only what differs between
   schedules of one step is in it. */
static double model(const nvf_step *s, const nvb_caps *c) {
  enum { PIECE = 200 };
  double work = (double)(s->bytes_read + s->bytes_written) / c->bandwidth + (double)s->flops / c->rate;
  double pieces = (double)((s->blocks + s->grain - 1) / (s->grain ? s->grain : 1)), units = c->units;
  if (c->kind != NVB_CPU)
    pieces = (double)s->blocks;
  double rounds = pieces <= units ? 1 : pieces / units; /* who is early takes more */
  return work * units * rounds / (pieces > 0 ? pieces : 1) + (c->kind == NVB_CPU ? PIECE * pieces / units : 0);
}

static int same_step(const nvf_step *s, nvb_hash h, const nvt_choice *at, const nvb_hash *hash, int n) {
  for (int i = 0; i < n; i++)
    if (nvb_hash_eq(h, hash[i]) && at[i].step->blocks == s->blocks && at[i].step->grain == s->grain)
      return 1;
  return 0;
}

/* A value of the knob: the i-th over all rows of the pass that name it; 0 past the end. */
static int value_of(nvb_devkind device, int pass, int knob, int i, const nvb_caps *caps, int32_t *out) {
  for (int r = 0; r < NROWS; r++) {
    if (rows[r].device != device || rows[r].pass != pass || rows[r].knob != knob)
      continue;
    if (i < rows[r].n) {
      *out = rows[r].value[i] * (rows[r].by_units ? caps->units : 1);
      return 1;
    }
    i -= rows[r].n;
  }
  return 0;
}

static int knobs_of(nvb_devkind device, int pass, int knob[NVF_NKNOBS]) {
  unsigned seen = 0;
  int n = 0;
  for (int r = 0; r < NROWS; r++)
    if (rows[r].device == device && rows[r].pass == pass && !(seen >> rows[r].knob & 1)) {
      seen |= 1u << rows[r].knob;
      knob[n++] = rows[r].knob;
    }
  return n;
}

typedef struct make { const nvf_plan *p; int step; const nvf_knobs *knobs; nvf_step *made; } make;
static void make_step(nvb_arena *a, void *arg) {
  make *m = arg;
  m->made = nvf_step_with(m->p, m->step, m->knobs);
  nvf_kernel_check(a, m->made->k, m->made->s);
}

static int add(nvb_arena *a, const nvf_plan *p, int step, const nvb_caps *caps, const nvf_knobs *k, nvt_choice *at, nvb_hash *hash,
               int n) {
  make m = { p, step, k, NULL };
  if (n == NVT_MOST || nvb_protect(a, make_step, &m)) /* not every schedule can be told everything */
    return n;
  hash[n] = nvf_kernel_hash(m.made->k, m.made->s);
  if (same_step(m.made, hash[n], at, hash, n))
    return n;
  nvb_text t = { .arena = a };
  nvf_knobs_print(&t, k);
  at[n] = (nvt_choice){ *k, nvb_text_get(&t), m.made, model(m.made, caps) };
  return n + 1;
}

int nvt_candidates(nvb_arena *a, const nvf_plan *p, int step, const nvb_caps *caps, int pass, const nvt_choice *from,
                   nvt_choice at[NVT_MOST]) {
  nvb_hash hash[NVT_MOST];
  int knob[NVF_NKNOBS], nknob = knobs_of(p->device, pass, knob), count[NVF_NKNOBS] = { 0 }, n = 1;
  int32_t value;
  at[0] = *from;
  at[0].model = model(from->step, caps);
  hash[0] = nvf_kernel_hash(from->step->k, from->step->s);
  for (int done = nknob == 0; !done;) { /* every combination, each knob also as the rules have it */
    nvf_knobs k = from->knobs;
    for (int i = 0; i < nknob; i++)
      if (count[i] && value_of(p->device, pass, knob[i], count[i] - 1, caps, &value))
        nvf_knob_set(&k, (nvf_knob)knob[i], value);
    if (memcmp(&k, &from->knobs, sizeof k))
      n = add(a, p, step, caps, &k, at, hash, n);
    int i = 0;
    while (i < nknob && (count[i]++, !value_of(p->device, pass, knob[i], count[i] - 1, caps, &value)))
      count[i++] = 0;
    done = i == nknob;
  }
  return n;
}
