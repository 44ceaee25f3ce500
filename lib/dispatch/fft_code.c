/* Transforms by the instances of fft_code.inc: runs all their passes, and inverse ones by exchanging the planes.
   Decides into which parts threads divide what they do for one transform. */
#include "base/pool.h"
#include "dispatch/fft_code.h"

const nvd_fft_code *nvd_fft_code_of(int wide) { return wide ? nvd_fft_code_f64() : nvd_fft_code_f32(); }

/* ---- what a team does */
typedef struct task {
  const nvd_fft_team *team;
  void (*run)(const struct task *k, nvd_part part);
  nvd_planes x, y;
  const nvd_pass *pass;
  const void *factors;
  const char *const *from;
  char *const *to;
  int64_t n;
  int real, backwards;
} task;

static int64_t parts_of(const nvd_fft_team *t) {
  enum { EACH = 4 }; /* parts for each thread, since some start late */
  return t->threads > 1 ? EACH * t->threads : 1;
}

static void run_parts(void *arg, int64_t lo, int64_t hi, int worker) {
  const task *k = arg;
  (void)worker;
  for (int64_t i = lo; i < hi; i++) k->run(k, (nvd_part){ i, parts_of(k->team) });
}

static void run_task(const task *k) {
  int64_t parts = parts_of(k->team);
  if (parts > 1) nvb_pool_run_with(k->team->threads, run_parts, (void *)(uintptr_t)k, parts, 1);
  else k->run(k, (nvd_part){ 0, 1 });
}

static void run_pass(const task *k, nvd_part part) { k->team->code->pass(k->pass, k->x, k->y, k->team->lanes, part); }
static void run_scale(const task *k, nvd_part part) {
  k->team->code->scale(k->x, k->factors, k->n, k->team->lanes, part);
}
static void run_split(const task *k, nvd_part part) {
  k->team->code->split(k->x, k->y, k->factors, k->n, k->team->lanes, part);
}
static void run_join(const task *k, nvd_part part) {
  k->team->code->join(k->x, k->y, k->factors, k->n, k->team->lanes, part);
}
static void run_read(const task *k, nvd_part part) {
  const nvd_fft_code *c = k->team->code;
  (k->real ? c->read_real : c->read)(k->x, k->from, k->n, k->team->lanes, part);
}
static void run_write(const task *k, nvd_part part) {
  const nvd_fft_code *c = k->team->code;
  (k->real ? c->write_real : c->write)(k->x, k->to, k->n, k->team->lanes, part);
}

static void run_first(const task *k, nvd_part part) { k->team->code->first(k->pass, *k->from, k->y, part); }
static void run_last(const task *k, nvd_part part) { k->team->code->last(k->pass, k->x, *k->to, k->backwards, part); }
static void run_split_row(const task *k, nvd_part part) {
  k->team->code->split_row(k->x, *k->to, k->factors, k->n, part);
}
static void run_join_row(const task *k, nvd_part part) {
  k->team->code->join_row(*k->from, k->y, k->factors, k->n, part);
}

void nvd_fft_scale(const nvd_fft_team *t, nvd_planes x, const void *f, int64_t n) {
  run_task(&(task){ .team = t, .run = run_scale, .x = x, .factors = f, .n = n });
}
void nvd_fft_split(const nvd_fft_team *t, nvd_planes z, nvd_planes x, const void *factors, int64_t n) {
  run_task(&(task){ .team = t, .run = run_split, .x = z, .y = x, .factors = factors, .n = n });
}
void nvd_fft_join(const nvd_fft_team *t, nvd_planes x, nvd_planes z, const void *factors, int64_t n) {
  run_task(&(task){ .team = t, .run = run_join, .x = x, .y = z, .factors = factors, .n = n });
}
void nvd_fft_read(const nvd_fft_team *t, nvd_planes x, const char *const *from, int64_t n, int real) {
  run_task(&(task){ .team = t, .run = run_read, .x = x, .from = from, .n = n, .real = real });
}
void nvd_fft_write(const nvd_fft_team *t, nvd_planes x, char *const *to, int64_t n, int real) {
  run_task(&(task){ .team = t, .run = run_write, .x = x, .to = to, .n = n, .real = real });
}

void nvd_fft_first(const nvd_fft_team *t, const nvd_pass *p, const char *from, nvd_planes y) {
  run_task(&(task){ .team = t, .run = run_first, .y = y, .pass = p, .from = &from });
}
void nvd_fft_last(const nvd_fft_team *t, const nvd_pass *p, nvd_planes x, char *to, int backwards) {
  run_task(&(task){ .team = t, .run = run_last, .x = x, .pass = p, .to = &to, .backwards = backwards });
}
void nvd_fft_split_row(const nvd_fft_team *t, nvd_planes z, char *to, const void *factors, int64_t n) {
  run_task(&(task){ .team = t, .run = run_split_row, .x = z, .to = &to, .factors = factors, .n = n });
}
void nvd_fft_join_row(const nvd_fft_team *t, const char *from, nvd_planes z, const void *factors, int64_t n) {
  run_task(&(task){ .team = t, .run = run_join_row, .y = z, .from = &from, .factors = factors, .n = n });
}

/* ---- transforms */
nvd_planes nvd_fft_some(const nvd_fft_team *t, const nvd_passes *p, int lo, int hi, nvd_planes x, nvd_planes y) {
  for (int i = lo; i < hi; i++) {
    nvd_planes from = x;
    run_task(&(task){ .team = t, .run = run_pass, .x = from, .y = y, .pass = &p->pass[i] });
    x = y, y = from;
  }
  return x;
}

nvd_planes nvd_fft_transform(const nvd_fft_team *t, const nvd_passes *p, nvd_planes x, nvd_planes y) {
  return nvd_fft_some(t, p, 0, p->npass, x, y);
}

nvd_planes nvd_fft_inverse(const nvd_fft_team *t, const nvd_passes *p, nvd_planes x, nvd_planes y) {
  nvd_planes swapped = { x.im, x.re }, spare = { y.im, y.re };
  nvd_planes r = nvd_fft_transform(t, p, swapped, spare);
  return (nvd_planes){ r.im, r.re };
}
