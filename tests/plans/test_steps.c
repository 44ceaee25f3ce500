/* Loops whose steps are planned together: however many there are, a step is not expected to take longer than one that
   is planned alone, but for what passes between steps. */
#include "base/settings.h"
#include "lazy.h"

typedef struct state { N at[6]; } state;

static N mm(N x, N y) { return b(NVG_OP_MATMUL, x, y); }
static N dot(N x, N y) { return sum(mul(x, y), 0, 0); }

/* the array with other values from `start` on */
static N written_at(N x, N values, int rank, const int64_t *start, const int64_t *count) {
  static const int64_t one[] = { 1, 1 };
  nvg_attr at[3] = { { .name = "start", .kind = 'I', .is = start, .n = rank },
                     { .name = "count", .kind = 'I', .is = count, .n = rank },
                     { .name = "step", .kind = 'I', .is = one, .n = rank } };
  return apply(NVG_OP_SLICE_UPDATE, 2, (N[]){ x, values }, 3, at);
}
#define written(x, v, at, n) written_at(x, v, sizeof(at) / 8, at, n)

enum { SIDE = 200, IN = SIDE - 2 };
static N part(N u, int64_t i, int64_t j) { return slice(u, i, IN, 1, j, IN, 1); }
static N laplacian(N u) {
  return sub(add(add(part(u, 2, 1), part(u, 0, 1)), add(part(u, 1, 2), part(u, 1, 0))), mul(w(4), part(u, 1, 1)));
}

static void begin_heat(state *s) { s->at[0] = X(SIDE, SIDE); }
static void heat_in_place(state *s, int i) {
  (void)i;
  N u = s->at[0];
  int64_t at[] = { 1, 1 }, n[] = { IN, IN };
  s->at[0] = written(u, add(part(u, 1, 1), mul(w(0.1), laplacian(u))), at, n);
}
static void heat_padded(state *s, int i) {
  (void)i;
  s->at[0] = add(s->at[0], pad(mul(w(0.1), laplacian(s->at[0])), 1));
}
static void heat_rolled(state *s, int i) {
  (void)i;
  N u = s->at[0];
  N around = add(add(roll(u, 1, 0), roll(u, -1, 0)), add(roll(u, 1, 1), roll(u, -1, 1)));
  s->at[0] = add(u, mul(w(0.1), sub(around, mul(w(4), u))));
}

static void begin_wave(state *s) { s->at[0] = X(100000), s->at[1] = X(100000); }
static void wave(state *s, int i) { /* two arrays that take turns */
  (void)i;
  N u = s->at[0], v = s->at[1];
  int64_t at[] = { 1 }, n[] = { 99998 };
  N now = slice(v, 1, 99998, 1), around = add(slice(v, 2, 99998, 1), slice(v, 0, 99998, 1));
  s->at[0] = v;
  s->at[1] = written(v, sub(add(now, mul(w(0.25), sub(around, mul(w(2), now)))), slice(u, 1, 99998, 1)), at, n);
}

static void begin_power(state *s) { s->at[0] = X(300), s->at[1] = X(300, 300); }
static void power(state *s, int i) {
  (void)i;
  N y = mm(s->at[1], s->at[0]);
  s->at[0] = dvd(y, sq(dot(y, y)));
}
static void page_rank(state *s, int i) {
  (void)i;
  s->at[0] = add(mul(w(0.85), mm(s->at[1], s->at[0])), w(0.15 / 300));
}

static void begin_adam(state *s) {
  for (int i = 0; i < 3; i++) s->at[i] = X(20);
  s->at[3] = X(1000, 20), s->at[4] = X(1000), s->at[5] = X(20, 1000);
}
static void adam(state *s, int i) {
  N g = dvd(mm(s->at[5], sub(mm(s->at[3], s->at[0]), s->at[4])), w(1000));
  double one = 1 - 1 / (i + 2.0), two = 1 - 1 / (i + 20.0);
  s->at[1] = add(mul(w(0.9), s->at[1]), mul(w(0.1), g));
  s->at[2] = add(mul(w(0.999), s->at[2]), mul(w(0.001), mul(g, g)));
  s->at[0] = sub(s->at[0], mul(w(0.01), dvd(dvd(s->at[1], w(one)), add(sq(dvd(s->at[2], w(two))), w(1e-8)))));
}

static void begin_rows(state *s) { s->at[0] = X(1000, 100), s->at[1] = X(100); }
static void rows(state *s, int i) {
  int64_t at[] = { i, 0 }, n[] = { 1, 100 };
  s->at[0] = written(s->at[0], reshape(sn(mul(s->at[1], w(i))), 1, 100), at, n);
}

enum { BODIES = 200 };
static void begin_bodies(state *s) { s->at[0] = X(BODIES, 3), s->at[1] = X(BODIES, 3); }
static void bodies(state *s, int i) {
  (void)i;
  N p = s->at[0], d = sub(reshape(p, 1, BODIES, 3), reshape(p, BODIES, 1, 3));
  N cube = b(NVG_OP_POW, add(sum(mul(d, d), 2, 0), w(0.01)), w(1.5));
  s->at[1] = add(s->at[1], mul(w(0.01), sum(dvd(d, reshape(cube, BODIES, BODIES, 1)), 1, 0)));
  s->at[0] = add(p, mul(w(0.01), s->at[1]));
}

static const struct loop {
  const char *name;
  void (*begin)(state *s);
  void (*step)(state *s, int i);
  int nstate;
} loops[] = {
  { "heat, in place", begin_heat, heat_in_place, 1 },
  { "heat, padded", begin_heat, heat_padded, 1 },
  { "heat, rolled", begin_heat, heat_rolled, 1 },
  { "wave, in place", begin_wave, wave, 2 },
  { "power iteration", begin_power, power, 1 },
  { "page rank", begin_power, page_rank, 1 },
  { "Adam", begin_adam, adam, 3 },
  { "rows", begin_rows, rows, 1 },
  { "n-body", begin_bodies, bodies, 2 },
};

typedef struct measured { const struct loop *loop; int steps, machine; double moved, work, price; } measured;
/* Machines of the table, and as this library describes a CPU of so many threads, with the caches of the table. */
static const struct {
  const char *row;
  int threads;
} machines[] = { { "cpu16", 0 }, { "h200", 0 }, { "h100", 0 }, { "cpu16", 2 }, { "cpu16", 16 } };
enum { MACHINES = sizeof machines / sizeof *machines };
static const nvb_caps *caps_of(int machine) {
  static nvb_caps here;
  char threads[12];
  const nvb_caps *row = nvb_caps_find(machines[machine].row);
  if (!machines[machine].threads) return row;
  snprintf(threads, sizeof threads, "%d", machines[machine].threads);
  ck_assert(!nvb_set("num_threads", threads) && !nvb_set("isa", "256"));
  here = nvb_caps_cpu();
  here.onchip = row->onchip, here.l2 = row->l2;
  return &here;
}

static void measure(nvb_arena *a, void *arg) {
  const nvb_caps *caps = caps_of(((measured *)arg)->machine);
  measured *m = arg;
  state s = { 0 };
  m->loop->begin(&s);
  for (int i = 0; i < m->steps; i++) m->loop->step(&s, i);
  for (int i = 0; i < m->loop->nstate; i++) out(s.at[i]);
  nvg_graph *g = graph_of(a);
  double t = now_us();
  nvf_plan *p = nvf_fuse(a, g, caps, &(nvf_options){ .fuse = 1 });
  t = now_us() - t;
  nvf_plan_check(a, p);
  for (int i = 0; i < p->nstep; i++) m->moved += (double)(p->step[i].bytes_read + p->step[i].bytes_written);
  for (int i = 0; i < p->nstep; i++) m->price += p->step[i].time / m->steps;
  m->moved /= m->steps;
  m->work = (double)p->work / g->n;
  if (getenv("VERBOSE"))
    printf("%-20s %-6s %4d steps: of each %9.0f bytes, %5.1f kernels, %6.1f us; work %6.1f and %7.1f us a value\n",
           m->loop->name, caps->name, m->steps, m->moved, (double)p->nstep / m->steps, m->price / 1e3, m->work,
           t / g->n);
}

/* A step of n-body that is planned alone is two kernels, which fill 16 threads. Among others it is one kernel of fewer
   blocks, or both kernels of the next step compute its positions again. */
static double most_of(const struct loop *loop, int machine) {
  return loop->begin == begin_bodies && machines[machine].threads == 16 ? 1.6 : 1.25;
}
START_TEST(more_steps_make_none_slower) {
  static const int counts[] = { 1, 2, 5, 10, 20, 100 };
  for (int machine = 0; machine < MACHINES; machine++) {
    measured first = { 0 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
      measured m = { .loop = &loops[_i], .steps = counts[i], .machine = machine };
      in_program(measure, &m, m.loop->name);
      first = i ? first : m;
      ck_assert_msg(m.price <= most_of(m.loop, machine) * first.price,
                    "%s on %s, %d steps: each takes %.1f us, one alone %.1f", m.loop->name, caps_of(machine)->name,
                    counts[i], m.price / 1e3, first.price / 1e3);
      ck_assert_msg(m.moved <= 2 * first.moved, "%s on %s, %d steps: each moves %.0f bytes, one alone %.0f",
                    m.loop->name, caps_of(machine)->name, counts[i], m.moved, first.moved);
    }
  }
}
END_TEST

/* Planning a value takes so much work, in expressions built and groups looked at, however large the graph is. */
enum { WORK = 200 };
START_TEST(work_is_linear) {
  for (int steps = 100; steps <= 900; steps *= 3) {
    measured m = { .loop = &loops[_i], .steps = steps };
    in_program(measure, &m, m.loop->name);
    ck_assert_msg(m.work <= WORK, "%s, %d steps: work %.1f a value", m.loop->name, steps, m.work);
  }
}
END_TEST

/* However large a graph is, the text of a CPU's kernel has so many simple operations, its parts together, and so many
   reductions, which bounds its compilation. */
static void long_chain(void) {
  N x = X(1000);
  for (int i = 0; i < 2000; i++) x = add(mul(sn(x), w(1.01)), w(0.5));
  out(x);
}
static void sums_of_sums(void) {
  N x = X(1000);
  for (int i = 0; i < 200; i++) x = sub(x, mul(w(1e-6), dot(x, x)));
  out(x);
}
static void orthogonal(void) { /* modified Gram-Schmidt: each column is made orthogonal to the ones before */
  N q[30];
  for (int j = 0; j < 30; j++) q[j] = X(200);
  for (int k = 0; k < 30; k++) {
    q[k] = dvd(q[k], sq(dot(q[k], q[k])));
    for (int j = k + 1; j < 30; j++) q[j] = sub(q[j], mul(dot(q[k], q[j]), q[k]));
    out(q[k]);
  }
}
static void sums_apart(void) {
  for (int i = 0; i < 60; i++) out(sum(X(1000 + 10 * i), 0, 0));
}
static void (*const crowded[])(void) = { long_chain, sums_of_sums, orthogonal, sums_apart };

static void measure_largest(nvb_arena *a, void *arg) {
  (*(void (*const *)(void))arg)();
  nvf_plan *p = nvf_fuse(a, graph_of(a), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  for (int i = 0; i < p->nstep; i++) {
    int operations = 0, reductions = 0;
    for (int j = 0; j < p->step[i].k->nstmt; j++) {
      const nvf_stmt *s = p->step[i].k->stmt[j];
      operations += s->op == NVF_MAP || s->op == NVF_REDUCE ? s->frag->cost : 1;
      reductions += s->op == NVF_REDUCE;
    }
    ck_assert_int_le(operations, 500);
    ck_assert_int_le(reductions, 24);
  }
}
START_TEST(kernels_are_bounded) { in_program(measure_largest, &crowded[_i], NULL); }
END_TEST

/* Small parts of an array that are written one after the other are stored over what was there before: all of them move
   little more than the array. */
static void write_columns(nvb_arena *a, void *arg) {
  (void)arg;
  N x = X(1000, 1000);
  for (int64_t k = 0; k < 300; k++) {
    int64_t at[] = { 0, k }, n[] = { 1000, 1 };
    x = written(x, add(mul(slice(x, 0, 1000, 1, k, 1, 1), w(2)), w(1)), at, n);
  }
  out(x);
  nvf_plan *p = nvf_fuse(a, graph_of(a), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  nvf_plan_check(a, p);
  int64_t moved = 0;
  for (int i = 0; i < p->nstep; i++) moved += p->step[i].bytes_read + p->step[i].bytes_written;
  ck_assert_int_le(moved, 5 * 1000 * 1000 * 4);
}
START_TEST(parts_are_stored_over_what_was_there) { in_program(write_columns, NULL, "columns"); }
END_TEST

/* The steps of a loop end in few kernel texts, however many steps there are, so that few kernels are compiled. */
static void begin_lorenz(state *s) {
  for (int i = 0; i < 3; i++) s->at[i] = X(1);
}
static void lorenz(state *s, int i) {
  (void)i;
  N x = s->at[0], y = s->at[1], z = s->at[2];
  s->at[0] = add(x, mul(w(0.05), sub(y, x)));
  s->at[1] = add(y, mul(w(0.005), sub(mul(x, sub(w(28), z)), y)));
  s->at[2] = add(z, mul(w(0.005), sub(mul(x, y), mul(w(2.5), z))));
}
static const struct loop repeated[] = { { "Lorenz", begin_lorenz, lorenz, 3 },
                                        { "heat, in place", begin_heat, heat_in_place, 1 },
                                        { "wave, in place", begin_wave, wave, 2 } };

static void count_texts(nvb_arena *a, void *arg) {
  const struct loop *loop = arg;
  state s = { 0 };
  loop->begin(&s);
  for (int i = 0; i < 300; i++) loop->step(&s, i);
  for (int i = 0; i < loop->nstate; i++) out(s.at[i]);
  nvf_plan *p = nvf_fuse(a, graph_of(a), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  nvb_map *texts = nvb_map_new(a);
  int n = 0;
  for (int i = 0; i < p->nstep; i++) {
    int fresh;
    nvb_text t = { .arena = a };
    nvf_kernel_print(&t, p->step[i].k);
    nvf_schedule_print(&t, p->step[i].k, p->step[i].s, "cpu");
    const char *text = nvb_text_get(&t);
    nvb_map_put(texts, text, strlen(text), &fresh);
    n += fresh;
  }
  if (getenv("VERBOSE")) printf("%-20s %d texts of %d kernels\n", loop->name, n, p->nstep);
  ck_assert_msg(n <= 24, "%s: %d texts of %d kernels", loop->name, n, p->nstep);
}
START_TEST(steps_share_kernels) { in_program(count_texts, (void *)&repeated[_i], repeated[_i].name); }
END_TEST

SUITE("steps", EACH(more_steps_make_none_slower, loops), EACH(work_is_linear, loops),
      EACH(kernels_are_bounded, crowded), EACH(steps_share_kernels, repeated), parts_are_stored_over_what_was_there)
