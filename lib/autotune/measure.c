/* Measures candidates in rounds of one sample each, in a random order each time, so that a disturbance hits all alike.
   Candidates that are clearly slower drop out; the median decides, if the fastest samples agree. Never lets a candidate
   win whose results were not verified. */
#include "autotune/measure.h"
#include <string.h>
#include "base/interrupt.h"

enum { FEWEST = 3 }; /* the fewest samples of a winner */

const char *nvt_fate_name(nvt_fate f) {
  static const char *const name[] = { [NVT_WAITING] = "not tried", [NVT_RUNNING] = "timed",
                                      [NVT_PRUNED] = "left out",   [NVT_FAILED] = "failed",
                                      [NVT_WRONG] = "wrong",       [NVT_HUNG] = "hung",
                                      [NVT_SLOW] = "slow",         [NVT_LATE] = "left out for want of time" };
  return name[f];
}

typedef struct state {
  const nvt_bench *b;
  const nvt_rules *r;
  nvt_candidate *c;
  int n, broken;        /* broken: a candidate hung, so that no other can be timed */
  double start, making; /* making: ns spent in `soon`, which do not count against the budget */
  uint64_t random;
} state;

/* Is this part of the budget used up, or is an interrupt pending? */
static int has_spent(const state *s, double part) {
  return nvb_interrupt_pending() || s->b->now(s->b->self) - s->start > s->r->budget * part;
}
static int is_over(const state *s) { return has_spent(s, 1); }

static void tell_progress(const state *s, double part) {
  if (s->b->progress) s->b->progress(s->b->self, part);
}

static uint64_t next_random(state *s) { /* xorshift64 */
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  return s->random ^= s->random << 17;
}

static void shuffle_order(state *s, int *order, int n) {
  for (int i = n - 1; i > 0; i--) {
    int j = (int)(next_random(s) % (uint64_t)(i + 1)), k = order[i];
    order[i] = order[j];
    order[j] = k;
  }
}

/* ---- which candidates are tried, those with the best estimate first */
static void prune_candidates(state *s) {
  double least = 0;
  for (int i = 0; i < s->n; i++)
    if (s->c[i].model > 0 && (least <= 0 || s->c[i].model < least)) least = s->c[i].model;
  for (int i = 1; i < s->n && s->r->prune > 0; i++)
    if (s->c[i].model > s->r->prune * least) s->c[i].fate = NVT_PRUNED;
}

static int next_waiting(const state *s) {
  int best = -1;
  for (int i = 0; i < s->n; i++)
    if (s->c[i].fate == NVT_WAITING && (!i || best < 0 || (best > 0 && s->c[i].model < s->c[best].model))) best = i;
  return best;
}

/* Passes the next candidates to `soon` and returns their number. The time of `soon` has a budget of its own. */
static int announce_next(state *s) {
  int which[s->b->wide], n = 0;
  double start = s->b->now(s->b->self);
  for (int i; n < s->b->wide && (i = next_waiting(s)) >= 0; n++) {
    which[n] = i;
    s->c[i].fate = NVT_RUNNING;
  }
  for (int k = 0; k < n; k++) s->c[which[k]].fate = NVT_WAITING;
  s->b->soon(s->b->self, which, n);
  double spent = s->b->now(s->b->self) - start;
  s->making += spent;
  s->start += spent;
  return n;
}

static int half_over(const state *s) { return has_spent(s, 0.5); }

/* Prepares and verifies the candidates, in at most half of the budget. */
static void make_ready(state *s) {
  int done = 0, made = 0;
  for (int i; (i = next_waiting(s)) >= 0; done++, made -= made > 0) {
    if (s->b->soon && !made && !s->broken && (!done || s->making < s->r->budget)) made = announce_next(s);
    int lost = s->broken || (i && s->c[0].fate != NVT_RUNNING), unmade = s->b->soon && !made;
    int late = i && (unmade || half_over(s));
    s->c[i].fate = lost ? NVT_PRUNED : late ? NVT_LATE : s->b->ready(s->b->self, i);
    s->broken |= s->c[i].fate == NVT_HUNG;
    tell_progress(s, 0.5 * (done + 1) / s->n);
  }
}

/* ---- rounds */
static void add_sample(nvt_candidate *c, double ns) {
  int at = c->n++;
  while (at && c->sample[at - 1] > ns) c->sample[at] = c->sample[at - 1], at--;
  c->sample[at] = ns;
  c->least = c->sample[0];
  c->median = (c->sample[(c->n - 1) / 2] + c->sample[c->n / 2]) / 2;
}

static double best_median(const state *s) {
  double best = 0;
  for (int i = 0; i < s->n; i++)
    if (s->c[i].fate == NVT_RUNNING && s->c[i].n && (best <= 0 || s->c[i].median < best)) best = s->c[i].median;
  return best;
}

/* Drops candidates whose best sample is slower than the best median by a factor that shrinks with each round. Returns
   how many are left. */
static int drop_slow(state *s, int round) {
  static const double most[] = { 2.0, 1.5, 1.2, 1.1, 1.05 };
  double limit = best_median(s) * most[round < 4 ? round : 4];
  int left = 0;
  for (int i = 0; i < s->n; i++)
    if (s->c[i].fate == NVT_RUNNING) {
      if (s->c[i].least > limit) s->c[i].fate = NVT_SLOW;
      left += s->c[i].fate == NVT_RUNNING;
    }
  return left;
}

/* Takes one sample of each candidate. Returns 0 if time is up or nothing more can be timed. */
static int one_round(state *s, int round) {
  int order[s->n], n = 0, whole = 1;
  for (int i = 0; i < s->n; i++)
    if (s->c[i].fate == NVT_RUNNING) order[n++] = i;
  shuffle_order(s, order, n);
  for (int k = 0; k < n; k++) {
    nvt_candidate *c = &s->c[order[k]];
    double ns = 0;
    if (is_over(s) && (round || order[k])) {
      whole = 0;
      continue;
    }
    nvt_fate f = s->b->time(s->b->self, order[k], &ns);
    if (f == NVT_RUNNING) add_sample(c, ns);
    else c->fate = f;
    if ((s->broken |= f == NVT_HUNG)) return 0;
  }
  return whole;
}

static int find_winner(const state *s) {
  const nvt_candidate *c = s->c;
  int best = 0;
  for (int i = 1; i < s->n; i++)
    if (c[i].fate == NVT_RUNNING && c[i].n >= FEWEST && c[i].median < c[best].median) best = i;
  /* median and best sample must both gain: on a busy machine few samples are undisturbed */
  double most = 1 - s->r->gain;
  return best && c[best].median <= most * c[0].median && c[best].least <= most * c[0].least ? best : 0;
}

static int samples_of(const nvt_rules *r) { return r->rounds < NVT_SAMPLES ? r->rounds : NVT_SAMPLES; }

int nvt_measure(const nvt_bench *b, const nvt_rules *r, nvt_candidate *c, int n) {
  state s = { .b = b, .r = r, .c = c, .n = n, .start = b->now(b->self), .random = r->seed | 1 };
  int rounds = samples_of(r), left = 2;
  for (int i = 0; i < n; i++) c[i] = (nvt_candidate){ .model = c[i].model };
  prune_candidates(&s);
  make_ready(&s);
  for (int i = 0; i < rounds && !s.broken && (left > 1 || i < FEWEST); i++) {
    int whole = one_round(&s, i);
    left = drop_slow(&s, i);
    tell_progress(&s, 0.5 + 0.5 * (i + 1) / rounds);
    if (!whole) break;
  }
  int best = c[0].n && !s.broken ? find_winner(&s) : 0;
  for (nvt_fate f; best && (f = b->sure(b->self, best)) != NVT_RUNNING; best = f == NVT_HUNG ? 0 : find_winner(&s))
    c[best].fate = f;
  tell_progress(&s, 1);
  return c[0].n ? best : -1;
}

int nvt_complete(const nvt_rules *r, const nvt_candidate *c, int n) {
  int left = 0, fewest = NVT_SAMPLES;
  for (int i = 0; i < n; i++) {
    if (c[i].fate == NVT_LATE || c[i].fate == NVT_HUNG) return 0;
    left += c[i].fate == NVT_RUNNING;
    if (c[i].fate == NVT_RUNNING && c[i].n < fewest) fewest = c[i].n;
  }
  return fewest >= (left > 1 ? samples_of(r) : FEWEST);
}
