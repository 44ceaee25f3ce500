/* Products run by OpenBLAS: every layout, type and tail that it takes against sums in long double; what it refuses,
   why, and who runs it then; choices; forks, threads, and memory that fails. Without the library: what is said. */
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "dispatch/solve/solve.h"
#include "gemms.h"

static int there(void) { return !strstr(nvd_openblas_line(), "not found"); }

static const nvm_dtype types[] = { NVM_F32, NVM_F64, NVM_C64, NVM_C128, NVM_F16, NVM_BF16 };
START_TEST(random_products) {
  nvb_pool_set_threads(2);
  for (int i = 0; i < 4 * SHARE_OF(175); i++) {
    product_case c = product_draw(types[i % 6], i % 5 ? 20 : 90);
    if (nvg_is_narrow(c.x[A].type)) {
      c.x[B].type = draw(4) ? c.x[A].type : NVM_BF16;
      c.x[D].type = c.in_place || draw(2) ? NVM_F32 : c.x[A].type;
      if (draw(2) && !c.in_place) c.x[C].type = c.x[A].type;
      if (draw(2)) c.x[BIAS].type = c.x[A].type;
    }
    if (nvg_parts(c.accumulate) == 1 && draw(2)) c.act = NVF_ACT_RELU;
    product_try(&c, NULL, "openblas", 1 + (i % 7 == 0));
  }
}
END_TEST

static product_case plain(nvm_dtype t, int64_t m, int64_t n, int64_t k) {
  product_case c = { .m = m, .n = n, .k = k, .alpha = 1, .accumulate = nvg_is_narrow(t) ? NVM_F32 : t };
  c.x[A] = c.x[B] = (matrix){ .there = 1, .type = t };
  c.x[D] = (matrix){ .there = 1, .type = c.accumulate };
  return c;
}

START_TEST(wide_ones) { /* more columns than a chunk of the pool, more of k than a panel */
  nvb_pool_set_threads(2);
  for (int i = 0; i < 6; i++) {
    product_case c = plain(types[i], 33, 700, 17);
    c.x[BIAS] = (matrix){ .there = 1, .type = c.accumulate };
    c.x[D].transposed = i % 2;
    c.bias_axis = 1;
    c.act = nvg_parts(c.accumulate) == 1 ? NVF_ACT_RELU : NVF_ACT_NONE;
    product_try(&c, NULL, "openblas", 1);
    c = plain(types[i], 9, 5, 2500);
    c.x[A].transposed = i % 2;
    product_try(&c, NULL, "openblas", 1);
  }
}
END_TEST

START_TEST(shared_ones) { /* in tiles of every remainder, and by batches */
  static const int64_t sizes[][3] = { { 110, 71, 97 }, { 3, 700, 250 }, { 1100, 2, 250 }, { 97, 96, 60 } };
  for (int i = 0; i < 24; i++) {
    const int64_t *s = sizes[i / 6 % 4];
    nvb_pool_set_threads(i % 2 ? 4 : 3);
    product_case c = plain(types[i % 6], s[0], s[1], s[2]);
    for (int x = A; x <= D; x++) c.x[x].transposed = (int)draw(2), c.x[x].pad = (int)draw(3), c.x[x].skip = draw(3);
    c.x[C].there = draw(2) != 0, c.x[C].type = c.accumulate, c.beta = 0.5;
    product_try(&c, NULL, "openblas", 1);
    c.m = c.n = c.k = 31;
    c.nbatch = 2;
    c.batch[0] = 3, c.batch[1] = 7;
    product_try(&c, NULL, "openblas", 1);
  }
}
END_TEST

START_TEST(nothing_to_do) { /* extents of 0 */
  for (int i = 0; i < 6; i++) {
    for (int which = 0; which < 4; which++) {
      product_case c = plain(types[i], which == 0 ? 0 : 5, which == 1 ? 0 : 4, which == 2 ? 0 : 6);
      c.nbatch = which == 3;
      product_try(&c, NULL, "openblas", 1);
      c.x[BIAS] = (matrix){ .there = 1, .type = c.accumulate };
      product_try(&c, NULL, "openblas", 1);
    }
  }
}
END_TEST

/* ---- refusals, choices */
static const char *way_of(const product_case *c) {
  static char text[512];
  nvb_arena *a = nvb_arena_new();
  product p;
  product_new(&p, a, c);
  snprintf(text, sizeof text, "%s", product_way(a, &p, NULL));
  product_free(&p);
  nvb_arena_free(a);
  return text;
}
static int prepare_status(const product_case *c) {
  nvb_arena *a = nvb_arena_new();
  product p;
  nvd_program *program = NULL;
  product_new(&p, a, c);
  nvd_terms terms = { .step = -1 };
  int status = nvd_prepare(&program, p.plan, NULL, NULL, &terms);
  ck_assert(status != NVM_ERR_UNSUPPORTED || terms.step == 0);
  nvd_program_free(program);
  product_free(&p);
  nvb_arena_free(a);
  return status;
}
START_TEST(refusals) {
  if (!there()) {
    product_case c = plain(NVM_F32, 3, 4, 5);
    ck_assert_ptr_nonnull(strstr(way_of(&c), "its own kernel: openblas: "));
    return;
  }
  product_case c = plain(NVM_F32, 3, 4, 5);
  c.act = NVF_ACT_GELU;
  ck_assert_str_eq(way_of(&c), "its own kernel: openblas: it has no GELU");
  ck_assert_int_eq(prepare_status(&c), NVM_ERR_UNSUPPORTED); /* the product alone would be taken: it is cut */
  ck_assert_str_eq(nvb_message(), "[matmul] openblas: it has no GELU");
  c = plain(NVM_F32, 3, 4, 5);
  c.x[AUX] = (matrix){ .there = 1, .type = NVM_F32 };
  c.act = NVF_ACT_RELU;
  ck_assert_ptr_nonnull(strstr(way_of(&c), "before the activation"));
  c = plain(NVM_F64, 3, 4, 5);
  c.x[D].type = NVM_F32;
  ck_assert_ptr_nonnull(strstr(way_of(&c), "another type"));
  c = plain(NVM_F32, 3, 4, 5);
  c.x[B].type = NVM_F64;
  ck_assert_ptr_nonnull(strstr(way_of(&c), "no product of these types"));
  c = plain(NVM_F32, 3, 4, 5);
  c.x[A].pad = -2; /* rows that overlap */
  ck_assert_ptr_nonnull(strstr(way_of(&c), "overlap"));
  c = plain(NVM_F32, 3, 4, 5);
  nvb_set("solvers", "kernel");
  ck_assert_str_eq(way_of(&c), "its own kernel: openblas: NVM_SOLVERS leaves it out");
  nvb_set("solvers", NULL);
  ck_assert_str_eq(way_of(&c), "openblas");
  c.own = 1;
  ck_assert_str_eq(way_of(&c), "its own kernel: openblas: its own kernel is expected to be faster");
  nvb_arena *a = nvb_arena_new();
  product p;
  c.act = NVF_ACT_GELU;
  product_new(&p, a, &c);
  /* nor is it cut for a library that would be slower */
  ck_assert_int_eq(nvd_solve_dry(p.plan, 0, NULL, NULL), NVM_OK);
  product_free(&p);
  c.act = NVF_ACT_NONE;
  nvd_solver_option all[8];
  product_new(&p, a, &c);
  ck_assert_int_gt(nvd_solver_options(all, 8, p.plan, 0, NULL), 1); /* a tuner tries it all the same */
  ck_assert_str_eq(all[0].choice.solver, "openblas");
  product_free(&p);
  nvb_arena_free(a);
}
END_TEST

START_TEST(choices) {
  nvb_pool_set_threads(4);
  nvb_arena *a = nvb_arena_new();
  product p;
  product_case c = plain(NVM_F32, 40, 30, 20);
  product_new(&p, a, &c);
  nvd_solver_option all[8];
  ck_assert_int_eq(nvd_solver_options(all, 8, p.plan, 0, NULL), 4); /* 4, 2, 1 threads, the kernel */
  ck_assert_str_eq(all[0].choice.solver, "openblas");
  ck_assert_str_eq(all[2].what, "OpenBLAS, 1 thread");
  ck_assert_str_eq(all[3].choice.solver, "kernel");
  ck_assert_int_eq(nvd_solver_options(all, 2, p.plan, 0, NULL), 2);
  nvd_solver_choice gone = { .solver = "nobody" };
  const nvd_solver_choice *const tried[] = { &all[0].choice, &all[1].choice, &gone, NULL };
  char *before[NMAT] = { 0 };
  before[D] = memcpy(malloc((size_t)p.elements[D] * 4), p.data[D], (size_t)p.elements[D] * 4);
  for (int i = 0; i < 4; i++) product_choose(&p, NULL, tried[i], before);
  free(before[D]);
  product_free(&p);
  nvb_arena_free(a);
}
END_TEST

/* ---- threads, processes, memory */
START_TEST(forked_children_go_on) {
  nvb_pool_set_threads(2);
  product_case c = plain(NVM_F32, 300, 300, 300);
  product_try(&c, NULL, "openblas", 1);
  for (int i = 0; i < 3; i++) {
    pid_t pid = fork();
    if (!pid) {
      alarm(60);
      product_try(&c, NULL, "openblas", 1);
      _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "the child ended with %x", (unsigned)status);
  }
}
END_TEST

static int threads_now(void) {
  int n = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *e; tasks && (e = readdir(tasks));) n += e->d_name[0] != '.';
  if (tasks) closedir(tasks);
  return n;
}
static void pause_a_while(void *arg, int64_t lo, int64_t hi, int worker) {
  (void)arg, (void)lo, (void)hi, (void)worker;
  usleep(100);
}
START_TEST(the_pool_has_all_threads) { /* the library starts none where it is asked for one */
  product_case c = plain(NVM_F32, 5, 5, 5);
  product_try(&c, NULL, "openblas", 1);
  nvb_pool_set_threads(7);
  nvb_pool_run(pause_a_while, NULL, 50, 1);
  int before = threads_now();
  ck_assert_int_ge(before, 7);
  c = plain(NVM_F32, 150, 150, 150);
  product_try(&c, NULL, "openblas", 1);
  if (strstr(nvd_openblas_line(), "pthreads")) ck_assert_int_eq(threads_now(), before);
}
END_TEST

static nvd_program *shared;
static product shared_product;
static void *share(void *arg) {
  product mine = shared_product;
  size_t bytes = (size_t)mine.elements[D] * 4;
  char *before[NMAT] = { 0 };
  mine.data[D] = memcpy(malloc(bytes), shared_product.data[D], bytes);
  before[D] = memcpy(malloc(bytes), shared_product.data[D], bytes);
  for (int i = 0; i < 10; i++) {
    memcpy(mine.data[D], before[D], bytes);
    *(int *)arg |= product_run(&mine, shared, NULL);
  }
  compare_product(&mine, before);
  free(mine.data[D]), free(before[D]);
  return NULL;
}
START_TEST(threads_share_a_program) {
  nvb_pool_set_threads(3);
  nvb_arena *a = nvb_arena_new();
  product_case c = plain(NVM_BF16, 60, 70, 80);
  product_new(&shared_product, a, &c);
  ck_assert_int_eq(nvd_prepare(&shared, shared_product.plan, NULL, NULL, NULL), NVM_OK);
  pthread_t t[4];
  int bad[4] = { 0 };
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, share, &bad[i]);
  for (int i = 0; i < 4; i++) {
    pthread_join(t[i], NULL);
    ck_assert_int_eq(bad[i], 0);
  }
  nvd_program_free(shared);
  product_free(&shared_product);
  nvb_arena_free(a);
}
END_TEST

START_TEST(every_allocation_may_fail) {
  product_case c = plain(NVM_F16, 30, 20, 10);
  c.x[D].type = NVM_F16;
  product_try(&c, NULL, "openblas", 1);
  nvd_mem_trim();
  int64_t before = nvb_live_blocks();
  int met = 0;
  nvb_arena *a = nvb_arena_new();
  product p;
  product_new(&p, a, &c);
  for (int k = 1; k < 40; k++) {
    nvd_program *program = NULL;
    nvb_fail_alloc(k, 0);
    int status = nvd_prepare(&program, p.plan, NULL, NULL, NULL);
    status = status ? status : product_run(&p, program, NULL);
    nvb_fail_alloc(0, 0);
    ck_assert_msg(!status || status == NVM_ERR_MEMORY, "request %d: %d %s", k, status, nvb_message());
    met += status != 0;
    nvd_program_free(program);
    nvd_mem_trim();
  }
  ck_assert_int_gt(met, 4);
  product_free(&p);
  nvb_arena_free(a);
  ck_assert_int_eq(nvb_live_blocks(), before);
}
END_TEST

int main(void) {
  if (there())
    return RUN_SUITE("solve", random_products, wide_ones, shared_ones, nothing_to_do, refusals, choices,
                     forked_children_go_on, the_pool_has_all_threads, threads_share_a_program,
                     every_allocation_may_fail);
  printf("skipped: OpenBLAS %s\n", nvd_openblas_line());
  return RUN_SUITE("solve", refusals) ? 1 : 77;
}
