/* The tuner's logic on a made-up clock: what is tried, in which order, who leaves when, who may win. */
#include <string.h>
#include "../suite.h"
#include "autotune/measure.h"

enum { MOST = 12, TOGETHER = 3 };
typedef struct fake {
  double clock;
  double takes[MOST];               /* ns of a run; < 0: it never ends */
  double makes[MOST];               /* ns to compile and verify */
  double together;                  /* ns to compile a group of them; 0: each is compiled for itself */
  double noise;                     /* every n-th sample takes so many times as long */
  nvt_fate ready[MOST], sure[MOST]; /* 0: RUNNING */
  int fails_at[MOST];               /* the sample that fails; 0: none */
  int slow_until[MOST];             /* so many samples take 4 % more */
  int runs[MOST], readied[MOST], order[MOST * NVT_SAMPLES], norder, samples, told;
  int group[MOST], ngroup; /* what was compiled together, a bit each */
  double part;
} fake;

static double fake_now(void *self) { return ((fake *)self)->clock; }
static void fake_soon(void *self, const int *which, int n) {
  fake *f = self;
  ck_assert(n > 0 && n <= TOGETHER);
  f->clock += f->together;
  for (int i = 0; i < n; i++) f->group[f->ngroup] |= 1 << which[i];
  f->ngroup++;
}
static nvt_fate fake_ready(void *self, int i) {
  fake *f = self;
  f->clock += f->makes[i] + 10;
  f->readied[i]++;
  if (f->takes[i] < 0) return NVT_HUNG;
  return f->ready[i] ? f->ready[i] : NVT_RUNNING;
}
static nvt_fate fake_sure(void *self, int i) {
  fake *f = self;
  return f->sure[i] ? f->sure[i] : NVT_RUNNING;
}
static nvt_fate fake_time(void *self, int i, double *ns) {
  fake *f = self;
  *ns = f->takes[i] * (f->noise > 0 && ++f->samples % 5 == 0 ? f->noise : 1);
  *ns *= f->runs[i] < f->slow_until[i] ? 1.04 : 1;
  f->clock += *ns;
  f->order[f->norder++] = i;
  return ++f->runs[i] == f->fails_at[i] ? NVT_FAILED : NVT_RUNNING;
}
static void fake_told(void *self, double part) {
  fake *f = self;
  ck_assert(part >= f->part && part <= 1);
  f->part = part;
  f->told++;
}
static const nvt_rules usual = { .budget = 1e9, .rounds = 9, .prune = 3, .gain = 0.02, .seed = 7 };

static int measure_by(fake *f, const nvt_rules *r, nvt_candidate *c, int n) {
  nvt_bench b = {
    f, fake_now, f->together > 0 ? fake_soon : NULL, TOGETHER, fake_ready, fake_sure, fake_time, fake_told
  };
  return nvt_measure(&b, r, c, n);
}
static int measure(fake *f, nvt_candidate *c, int n) { return measure_by(f, &usual, c, n); }
static int is_complete(fake *f, double budget, int n) {
  nvt_rules r = usual;
  nvt_candidate c[MOST] = { { .n = 0 } };
  r.budget = budget;
  measure_by(f, &r, c, n);
  return nvt_complete(&r, c, n);
}

START_TEST(test_fastest_wins) {
  fake f = { .takes = { 100, 90, 60, 200, 61 } };
  nvt_candidate c[5] = { 0 };
  ck_assert_int_eq(measure(&f, c, 5), 2);
  ck_assert_int_eq(f.runs[2], usual.rounds);
  ck_assert_int_eq(f.runs[3], 1); /* 200 > 2 * 60: gone after the first round */
  ck_assert_int_eq(c[3].fate, NVT_SLOW);
  ck_assert_int_lt(f.runs[0], 4);
  ck_assert_int_eq(f.runs[4], usual.rounds); /* too near to be given up */
  ck_assert(c[2].median == 60);
  ck_assert(f.told > 0 && f.part == 1);
}
END_TEST

START_TEST(test_reference_wins_by_little) { /* 1 % is noise */
  fake f = { .takes = { 100, 99, 101 } };
  nvt_candidate c[3] = { 0 };
  ck_assert_int_eq(measure(&f, c, 3), 0);
}
END_TEST

START_TEST(test_one_sample_never_wins) { /* the only one left is sampled until it may win */
  fake f = { .takes = { 1000, 10 } };
  nvt_candidate c[2] = { 0 };
  ck_assert_int_eq(measure(&f, c, 2), 1);
  ck_assert_int_ge(c[1].n, 3);
  ck_assert_int_eq(c[0].n, 1);
}
END_TEST

START_TEST(test_noise) { /* medians do not see one sample in five that takes eight times as long */
  fake f = { .takes = { 100, 95, 80, 97, 99, 96, 98 }, .noise = 8 };
  nvt_candidate c[7] = { 0 };
  ck_assert_int_eq(measure(&f, c, 7), 2);
}
END_TEST

START_TEST(test_fastest_samples_agree) { /* a better median by luck alone is none: both are as fast undisturbed */
  fake f = { .takes = { 100, 100 }, .slow_until = { 6, 4 } };
  nvt_candidate c[2] = { 0 };
  ck_assert_int_eq(measure(&f, c, 2), 0);
  ck_assert(c[1].median < c[0].median && c[1].least == c[0].least);
}
END_TEST

START_TEST(test_order) { /* rounds differ in their order; the same seed gives the same orders, another one others */
  fake f = { .takes = { 100, 100, 100, 100, 100, 100 } }, g = f, h = f;
  nvt_candidate c[6] = { 0 };
  nvt_rules other = usual;
  other.seed = 8;
  measure(&f, c, 6);
  measure(&g, c, 6);
  measure_by(&h, &other, c, 6);
  ck_assert_int_eq(f.norder, 6 * usual.rounds);
  ck_assert(!memcmp(f.order, g.order, sizeof f.order));
  ck_assert(memcmp(f.order, h.order, sizeof f.order));
  ck_assert(memcmp(f.order, f.order + 6, 6 * sizeof *f.order));
  for (int r = 0; r < usual.rounds; r++) { /* each once in each round: nobody is timed twice in a row in one */
    int seen = 0;
    for (int i = 0; i < 6; i++) seen |= 1 << f.order[6 * r + i];
    ck_assert_int_eq(seen, 63);
  }
}
END_TEST

START_TEST(test_pruned_by_model) {
  fake f = { .takes = { 100, 50, 10, 20 } };
  nvt_candidate c[4] = { { .model = 100 }, { .model = 120 }, { .model = 900 }, { .model = 90 } };
  ck_assert_int_eq(measure(&f, c, 4), 3);
  ck_assert_int_eq(f.readied[2] + f.runs[2], 0);
  ck_assert_int_eq(c[2].fate, NVT_PRUNED);
  nvt_candidate d[2] = { { .model = 1000 }, { .model = 1 } }; /* the reference is never left out */
  fake g = { .takes = { 5, 10 } };
  ck_assert_int_eq(measure(&g, d, 2), 0);
  ck_assert_int_gt(g.runs[0], 0);
}
END_TEST

START_TEST(test_wrong_never_wins) {
  fake f = { .takes = { 100, 1, 2, 90 }, .ready = { 0, NVT_WRONG, NVT_FAILED } };
  nvt_candidate c[4] = { 0 };
  ck_assert_int_eq(measure(&f, c, 4), 3);
  ck_assert_int_eq(f.runs[1] + f.runs[2], 0);
  ck_assert_int_eq(c[1].fate, NVT_WRONG);
}
END_TEST

START_TEST(test_winners_are_made_sure_of) { /* what is found wrong in the end leaves it to the next */
  fake f = { .takes = { 100, 10, 10.1, 10.2 }, .sure = { 0, NVT_WRONG, NVT_FAILED } }, g = f;
  nvt_candidate c[4] = { 0 };
  ck_assert_int_eq(measure(&f, c, 4), 3);
  ck_assert(c[1].fate == NVT_WRONG && c[2].fate == NVT_FAILED);
  g.sure[3] = NVT_HUNG;
  ck_assert_int_eq(measure(&g, c, 4), 0);
}
END_TEST

START_TEST(test_failing_later_loses) {
  fake f = { .takes = { 100, 10 }, .fails_at = { 0, 2 } };
  nvt_candidate c[2] = { 0 };
  ck_assert_int_eq(measure(&f, c, 2), 0);
  ck_assert_int_eq(c[1].fate, NVT_FAILED);
}
END_TEST

START_TEST(test_hanging) { /* nothing after it can be timed: the reference stays, if it was timed at all */
  fake f = { .takes = { 100, 50, -1, 40 } };
  nvt_candidate c[4] = { { .model = 4 }, { .model = 2 }, { .model = 3 }, { .model = 5 } };
  ck_assert_int_eq(measure(&f, c, 4), -1);
  ck_assert_int_eq(c[2].fate, NVT_HUNG);
  ck_assert_int_eq(f.readied[3], 0);
  ck_assert_int_eq(f.norder, 0);
}
END_TEST

START_TEST(test_no_reference) {
  fake f = { .takes = { 100, 50 }, .ready = { NVT_FAILED } };
  nvt_candidate c[2] = { 0 };
  ck_assert_int_eq(measure(&f, c, 2), -1);
  ck_assert_int_eq(f.readied[1], 0);
}
END_TEST

START_TEST(test_budget) {
  nvt_rules r = usual;
  r.budget = 1000;
  fake f = { .takes = { 100, 90, 80, 70 }, .makes = { 100, 300, 300, 300 } }; /* compiling eats it up */
  nvt_candidate c[4] = { { .model = 1 }, { .model = 1.1 }, { .model = 1.2 }, { .model = 1.3 } };
  int best = measure_by(&f, &r, c, 4);
  ck_assert_int_eq(c[3].fate, NVT_LATE); /* half of it was spent by then */
  ck_assert_int_eq(c[1].fate, NVT_RUNNING);
  ck_assert(f.clock <= 1000 + 300 + 100);
  ck_assert_int_eq(best, 0); /* too few samples of the others */
  r.budget = 0;
  fake g = { .takes = { 100, 90 } };
  ck_assert_int_eq(measure_by(&g, &r, c, 2), 0);
  ck_assert_int_eq(g.runs[0], 1); /* the reference has a time in any case */
  ck_assert_int_eq(g.readied[1], 0);
  for (r.seed = 1; r.seed < 9; r.seed++) { /* and when time is over before its turn in the first round */
    fake h = { .takes = { 100, 90, 90 }, .makes = { 100, 2000 } };
    nvt_candidate d[3] = { { .model = 1 }, { .model = 1.1 }, { .model = 1.2 } };
    r.budget = 1000;
    ck_assert_int_eq(measure_by(&h, &r, d, 3), 0);
    ck_assert_int_eq(h.runs[0], 1);
  }
}
END_TEST

START_TEST(test_complete) { /* whoever loses loses for ever, but for want of time */
  fake alone = { .takes = { 100 } }, all = { .takes = { 100, 90, 300, 99 } };
  fake bad = { .takes = { 100, 90, 80, 70 }, .ready = { 0, NVT_WRONG, NVT_FAILED }, .sure = { 0, 0, 0, NVT_WRONG } };
  fake fails = { .takes = { 100, 90 }, .fails_at = { 0, 4 } }, hangs = { .takes = { 100, 90, -1 } };
  ck_assert(is_complete(&alone, 1e9, 1) && is_complete(&all, 1e9, 4) && is_complete(&bad, 1e9, 4));
  ck_assert(is_complete(&fails, 1e9, 2));
  ck_assert(!is_complete(&hangs, 1e9, 3));
  nvt_candidate pruned[2] = { { .model = 1 }, { .model = 9 } };
  fake f = { .takes = { 100, 10 } };
  ck_assert_int_eq(measure(&f, pruned, 2), 0);
  ck_assert(nvt_complete(&usual, pruned, 2));
  for (double budget = 0; budget < 3000; budget += 50) { /* of 9 samples of each, 4 x 10 to make them */
    fake near = { .takes = { 100, 100, 100 }, .makes = { 0, 0, 500 } };
    int complete = is_complete(&near, budget, 3);
    ck_assert_int_eq(complete, near.runs[0] == 9 && near.runs[1] == 9 && near.runs[2] == 9);
    ck_assert_int_eq(complete, budget > 530 + 26 * 100);
  }
  for (double budget = 100; budget < 1200; budget += 50) { /* one sample says enough of the other, not of the winner */
    fake clear = { .takes = { 1000, 10 } };
    ck_assert_int_eq(is_complete(&clear, budget, 2), clear.runs[1] >= 3);
  }
}
END_TEST

START_TEST(test_compiled_together) { /* the model's favourites first, what it leaves out never, and no more than fit */
  const nvt_candidate models[6] = { { .model = 3 }, { .model = 4 }, { .model = 90 },
                                    { .model = 2 }, { .model = 5 }, { .model = 4.5 } };
  for (int few = 0; few < 2; few++) {
    fake f = { .takes = { 100, 90, 80, 70, 60, 50 }, .together = 1000 };
    nvt_candidate c[6];
    nvt_rules r = usual;
    memcpy(c, models, sizeof c);
    r.budget = few ? 900 : usual.budget;
    int best = measure_by(&f, &r, c, 6);
    ck_assert_int_eq(f.ngroup, 2 - few);
    ck_assert_int_eq(f.group[0], 1 << 0 | 1 << 3 | 1 << 1);
    ck_assert_int_eq(f.group[1], few ? 0 : 1 << 5 | 1 << 4);
    ck_assert_int_eq(c[5].fate == NVT_LATE && c[4].fate == NVT_LATE, few);
    ck_assert_int_eq(c[2].fate, NVT_PRUNED);
    ck_assert_int_eq(best, few ? 3 : 5);
    ck_assert(!few || f.clock <= 1000 + 900 + 100);
  }
}
END_TEST

SUITE("measure", test_fastest_wins, test_reference_wins_by_little, test_one_sample_never_wins, test_noise,
      test_fastest_samples_agree, test_order, test_pruned_by_model, test_wrong_never_wins,
      test_winners_are_made_sure_of, test_failing_later_loses, test_hanging, test_no_reference, test_budget,
      test_compiled_together, test_complete)
