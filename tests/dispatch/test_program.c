/* Programs: plans made by hand from kernel text, run in each tier, by several threads, after a fork, without
   memory, and from the disk cache. Values are compared bit for bit with plain C. */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../folder.h"
#include "../suite.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "base/store.h"
#include "dispatch/program.h"

enum { BLOCK = 1024 };
static const char scale_text[] = "kernel scale(x: f32[], y: mut f32[], a: f32, n: size) {\n"
                                 "  grid (b = (n + 1023) // 1024) {\n"
                                 "    X = load(x, b*1024 + j, L, where = b*1024 + j < n)\n"
                                 "    Y = map(multiply, X, a)\n"
                                 "    store(y, b*1024 + j, Y, where = b*1024 + j < n)\n"
                                 "  }\n"
                                 "}\n"
                                 "schedule cpu { L = \"j: I64 l16\" }\n";
static const char add_text[] = "kernel sum2(x: f32[], t: f32[], y: mut f32[], n: size) {\n"
                               "  grid (b = (n + 1023) // 1024) {\n"
                               "    X = load(x, b*1024 + j, L, where = b*1024 + j < n)\n"
                               "    T = load(t, b*1024 + j, L, where = b*1024 + j < n)\n"
                               "    Y = map(add, X, T)\n"
                               "    store(y, b*1024 + j, Y, where = b*1024 + j < n)\n"
                               "  }\n"
                               "}\n"
                               "schedule cpu { L = \"j: I64 l16\" }\n";
static const char pick_text[] = "kernel pick(x: f32[], at: i64[], y: mut f32[], m: size, n: size) {\n"
                                "  grid (b = (n + 1023) // 1024) {\n"
                                "    I = load(at, b*1024 + j, L, where = b*1024 + j < n)\n"
                                "    check(I >= 0 & I < m, L)\n"
                                "    X = load(x, I, L, where = b*1024 + j < n)\n"
                                "    store(y, b*1024 + j, X, where = b*1024 + j < n)\n"
                                "  }\n"
                                "}\n"
                                "schedule cpu { L = \"j: I64 l16\" }\n";

/* ---- plans by hand */
static nvf_step step_of(nvb_arena *a, const char *text, const char *hero, int64_t n, const nvf_bind *bind) {
  nvf_step s = { .hero = hero,
                 .what = "made by hand",
                 .blocks = (n + BLOCK - 1) / BLOCK,
                 .grain = 4,
                 .bytes_read = 4 * n,
                 .bytes_written = 4 * n,
                 .time = (double)n };
  s.k = nvf_kernel_parse(a, text, "test");
  s.s = nvf_schedule_find(s.k, "cpu");
  s.bind = nvb_dup(a, bind, sizeof *bind * (size_t)s.k->nparam);
  return s;
}
static uint64_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
static nvf_plan *plan_new(nvb_arena *a, int nstep, int nbuf) {
  nvf_plan *p = NVB_NEW(a, nvf_plan);
  p->arena = a;
  p->nstep = nstep;
  p->step = NVB_NEWN(a, nvf_step, nstep);
  p->nbuf = nbuf;
  p->buf = NVB_NEWN(a, nvf_buf, nbuf);
  return p;
}

typedef struct request { int64_t n, m; float a; nvf_plan *plan; } request;

/* y = x + a * x in two steps, the product in a temporary 64 bytes into the block */
static void two_steps(nvb_arena *a, void *arg) {
  request *r = arg;
  nvf_plan *p = r->plan = plan_new(a, 2, 3);
  p->buf[0] = (nvf_buf){ .kind = NVF_BLEAF, .bytes = 4 * r->n, .donor = -1 };
  p->buf[1] = (nvf_buf){ .kind = NVF_BTEMP, .bytes = 4 * r->n, .offset = 64, .last = 1, .donor = -1 };
  p->buf[2] = (nvf_buf){ .kind = NVF_BOUT, .bytes = 4 * r->n, .donor = -1 };
  p->temp_bytes = 64 + 4 * r->n;
  uint64_t n = (uint64_t)r->n;
  p->step[0] = step_of(a, scale_text, "map", r->n,
                       (nvf_bind[]){ { .kind = NVF_BUFFER },
                                     { .kind = NVF_BUFFER, .buf = 1 },
                                     { .kind = NVF_SCALAR, .bits = bits_of(r->a) },
                                     { .kind = NVF_SIZE, .bits = n } });
  p->step[1] = step_of(a, add_text, "map", r->n,
                       (nvf_bind[]){ { .kind = NVF_BUFFER },
                                     { .kind = NVF_BUFFER, .buf = 1 },
                                     { .kind = NVF_BUFFER, .buf = 2 },
                                     { .kind = NVF_SIZE, .bits = n } });
}
/* y = a * x[1:] by an offset of the binding */
static void one_step(nvb_arena *a, void *arg) {
  request *r = arg;
  nvf_plan *p = r->plan = plan_new(a, 1, 2);
  p->buf[0] = (nvf_buf){ .kind = NVF_BLEAF, .bytes = 4 * r->n + 4, .donor = -1 };
  p->buf[1] = (nvf_buf){ .kind = NVF_BOUT, .bytes = 4 * r->n, .donor = -1 };
  p->step[0] = step_of(a, scale_text, "map", r->n,
                       (nvf_bind[]){ { .kind = NVF_BUFFER, .offset = 4 },
                                     { .kind = NVF_BUFFER, .buf = 1 },
                                     { .kind = NVF_SCALAR, .bits = bits_of(r->a) },
                                     { .kind = NVF_SIZE, .bits = (uint64_t)r->n } });
}
/* The same, negated so often that it is more code than is optimised at once; a run takes m ns, says the plan. */
static void one_large_step(nvb_arena *a, void *arg) {
  enum { TIMES = 600 };
  nvb_text t = { .arena = a };
  const char *at = strstr(scale_text, "    store"), *end = strstr(at, "Y");
  nvb_print(&t, "%.*s    Z0 = map(negative, Y)\n", (int)(at - scale_text), scale_text);
  for (int i = 1; i < TIMES; i++) nvb_print(&t, "    Z%d = map(negative, Z%d)\n", i, i - 1);
  nvb_print(&t, "%.*sZ%d%s", (int)(end - at), at, TIMES - 1, end + 1);
  one_step(a, arg);
  const request *r = arg;
  nvf_step *s = &r->plan->step[0];
  *s = step_of(a, nvb_text_get(&t), "map", r->n, s->bind);
  s->time = (double)r->m;
}
static void gather(nvb_arena *a, void *arg) {
  request *r = arg;
  nvf_plan *p = r->plan = plan_new(a, 1, 3);
  p->buf[0] = (nvf_buf){ .kind = NVF_BLEAF, .id = 0, .donor = -1 };
  p->buf[1] = (nvf_buf){ .kind = NVF_BLEAF, .id = 1, .donor = -1 };
  p->buf[2] = (nvf_buf){ .kind = NVF_BOUT, .donor = -1 };
  p->step[0] = step_of(a, pick_text, "gather", r->n,
                       (nvf_bind[]){ { .kind = NVF_BUFFER },
                                     { .kind = NVF_BUFFER, .buf = 1 },
                                     { .kind = NVF_BUFFER, .buf = 2 },
                                     { .kind = NVF_SIZE, .bits = (uint64_t)r->m },
                                     { .kind = NVF_SIZE, .bits = (uint64_t)r->n } });
}

/* A program whose plan is gone. */
static int prepared(nvd_program **out, void (*make)(nvb_arena *, void *), int64_t n, int64_t m, float a) {
  *out = NULL;
  nvb_arena *arena = nvb_arena_new();
  if (!arena) return nvb_fail_memory();
  request r = { n, m, a, NULL };
  int status = nvb_protect(arena, make, &r);
  if (!status) status = nvd_prepare(out, r.plan, NULL, NULL, NULL);
  nvb_arena_free(arena);
  return status;
}
static nvd_program *program(void (*make)(nvb_arena *, void *), int64_t n, int64_t m, float a) {
  nvd_program *p;
  int status = prepared(&p, make, n, m, a);
  ck_assert_msg(status == NVM_OK, "%d %s", status, nvb_message());
  return p;
}
static float *data(int64_t n) {
  float *x = malloc(sizeof *x * (size_t)(n + 1));
  for (int64_t i = 0; i <= n; i++) x[i] = (float)(i % 1013) * 0.37f - 100;
  return x;
}
static int right(const float *x, const float *y, int64_t n, float a) {
  for (int64_t i = 0; i < n; i++) {
    volatile float t = a * x[i];
    if (y[i] != x[i] + t) return 0;
  }
  return 1;
}
static void run_two_steps(int64_t n) {
  nvd_program *p = program(two_steps, n, 0, 1.7f);
  float *x = data(n), *y = calloc((size_t)n, sizeof *y);
  for (int i = 0; i < 12; i++) {
    memset(y, 0, sizeof *y * (size_t)n);
    ck_assert_int_eq(nvd_run(p, (char *[]){ (char *)x }, (char *[]){ (char *)y }), NVM_OK);
    ck_assert_msg(right(x, y, n, 1.7f), "%lld elements, run %d", (long long)n, i);
  }
  nvd_program_free(p);
  free(x), free(y);
}

START_TEST(two_steps_in_every_tier) {
  static const char *const tiers[] = { "0", "1", "auto" };
  static const int64_t sizes[] = { 1, 5, 1000, 1024, 4097, 30000, 300000 };
  for (int t = 0; t < 3; t++)
    for (int threads = 1; threads <= 4; threads += 3) {
      nvb_set("tier", tiers[t]), nvb_pool_set_threads(threads);
      for (int i = 0; i < 7; i++) run_two_steps(sizes[i]);
    }
}
END_TEST

START_TEST(offsets_and_scalars) {
  nvd_program *p = program(one_step, 999, 0, -3.0f);
  float *x = data(1000), y[1000] = { 0 };
  int64_t before = nvd_kernels_run();
  ck_assert_int_eq(nvd_run(p, (char *[]){ (char *)x }, (char *[]){ (char *)y }), NVM_OK);
  ck_assert_int_eq(nvd_kernels_run(), before + 1);
  for (int i = 0; i < 999; i++) ck_assert(y[i] == -3.0f * x[i + 1]);
  ck_assert(y[999] == 0);
  nvd_program_free(p);
  free(x);
}
END_TEST

/* Native code that takes no longer than waking the pool runs in the caller alone. ThreadSanitizer starts a thread
   of its own with the first one. */
#ifdef __SANITIZE_THREAD__
enum { OF_A_TOOL = 1 };
#else
enum { OF_A_TOOL = 0 };
#endif
static int threads_now(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/task");
  while (d && readdir(d)) n++;
  ck_assert(d && !closedir(d));
  return n;
}
START_TEST(little_work_wakes_nobody) {
  if (!nvc_llvm_available()) return;
  nvb_set("tier", "1"), nvb_pool_set_threads(4);
  int alone = threads_now();
  run_two_steps(7 * BLOCK);
  ck_assert_int_eq(threads_now(), alone);
  run_two_steps(300 * BLOCK);
  int started = threads_now() - alone;
  ck_assert_msg(started >= 3 && started <= 3 + OF_A_TOOL, "%d threads were started", started);
}
END_TEST

/* ---- tiers: what is compiled when. Other texts than above, so that their kernels are new. */
static void scale_run(nvd_program *p, int64_t n) {
  float *x = data(n), *y = calloc((size_t)n, sizeof *y);
  ck_assert_int_eq(nvd_run(p, (char *[]){ (char *)x }, (char *[]){ (char *)y }), NVM_OK);
  for (int64_t i = 0; i < n; i++) ck_assert(y[i] == 2.0f * x[i + 1]);
  free(x), free(y);
}
static int64_t compiled_by_now(void) { return nvd_warm_wait(), nvc_compiled(); }
START_TEST(small_programs_compile_at_the_ninth_call) {
  nvb_set("cache_dir", "off");
  nvd_program *p = program(one_step, 100, 0, 2.0f);
  for (int i = 0; i < 8; i++) scale_run(p, 100);
  ck_assert_int_eq(nvc_compiled(), 0);
  scale_run(p, 100);
  int64_t once = nvc_llvm_available() ? 1 : 0;
  ck_assert_int_eq(compiled_by_now(), once);
  nvd_program *q = program(one_step, 3000, 0, 2.0f); /* other sizes, the same kernel */
  scale_run(q, 3000);
  scale_run(p, 100);
  ck_assert_int_eq(compiled_by_now(), once);
  nvd_program_free(p), nvd_program_free(q);
  p = program(one_step, 50, 0, 2.0f); /* it outlives its programs */
  scale_run(p, 50);
  ck_assert_int_eq(compiled_by_now(), once);
  nvd_program_free(p);
}
END_TEST

/* A call that is worth compiling for does not wait where interpreting it takes no longer than that. */
START_TEST(the_interpreter_runs_while_code_is_compiled) {
  nvb_set("cache_dir", "off");
  nvd_program *p = program(one_step, 20000, 0, 2.0f); /* 40,000 elements read and written */
  scale_run(p, 20000);
  ck_assert_int_eq(nvc_compiled(), 0);
  scale_run(p, 20000); /* would cross 64 K */
  const nvd_kernel *k = p->step[0].kernel;
  ck_assert(atomic_load(&k->queued) || atomic_load(&k->entry) || !nvc_llvm_available());
  for (int i = 0; i < 100; i++) scale_run(p, 20000); /* in the middle of which the code arrives */
  ck_assert_int_eq(compiled_by_now(), nvc_llvm_available() ? 1 : 0);
  ck_assert(!atomic_load(&k->queued) && !atomic_load(&k->entry) == !nvc_llvm_available());
  scale_run(p, 20000);
  nvd_program_free(p);
}
END_TEST

START_TEST(large_programs_compile_before_they_run) {
  nvb_set("cache_dir", "off");
  nvd_program *p = program(one_step, 1 << 20, 0, 2.0f);
  scale_run(p, 1 << 20);
  ck_assert_int_eq(nvc_compiled(), nvc_llvm_available() ? 1 : 0);
  nvd_program_free(p);
}
END_TEST

/* A kernel may wait for its code while the process forks: the child, which has no thread that compiles it, compiles it
   all the same. */
START_TEST(a_child_compiles_what_was_queued) {
  nvb_set("cache_dir", "off");
  nvd_program *p = program(one_step, 30000, 0, 2.0f);
  for (int i = 0; i < 2; i++) scale_run(p, 30000);
  pid_t child = fork();
  if (!child) {
    for (int i = 0; i < 2; i++) scale_run(p, 30000);
    nvd_warm_wait();
    _exit(nvc_llvm_available() && !atomic_load(&p->step[0].kernel->entry));
  }
  int status;
  ck_assert(child > 0 && waitpid(child, &status, 0) == child);
  ck_assert_int_eq(status, 0);
  nvd_program_free(p);
}
END_TEST

START_TEST(tiers_can_be_forced) {
  nvb_set("cache_dir", "off");
  nvb_set("tier", "0");
  nvd_program *p = program(one_step, 100000, 0, 2.0f);
  for (int i = 0; i < 10; i++) scale_run(p, 100000);
  ck_assert_int_eq(nvc_compiled(), 0);
  nvd_program_free(p);
  nvb_set("tier", "1");
  p = program(one_step, 10, 0, 2.0f);
  ck_assert_int_eq(nvc_compiled(), nvc_llvm_available() ? 1 : 0);
  nvd_program_free(p);
}
END_TEST

START_TEST(code_comes_from_the_disk) {
  char dir[] = "/tmp/nvm-program-XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(dir));
  nvb_set("cache_dir", dir), nvb_set("tier", "1");
  nvd_program *p = program(one_step, 10, 0, 2.0f);
  int64_t once = nvc_llvm_available() ? 1 : 0;
  ck_assert_int_eq(nvc_compiled(), once);
  ck_assert_int_eq(nvd_kernels_loaded(), 0);
  nvd_program_free(p);
  nvd_code_trim();
  p = program(one_step, 10, 0, 2.0f);
  ck_assert_int_eq(nvc_compiled(), once);
  ck_assert_int_eq(nvd_kernels_loaded(), once);
  scale_run(p, 10);
  nvd_program_free(p);
  sweep_folder(dir);
}
END_TEST

START_TEST(stored_code_runs_from_the_second_call_on) {
  char dir[] = "/tmp/nvm-sought-XXXXXX";
  if (!nvc_llvm_available()) return;
  ck_assert_ptr_nonnull(mkdtemp(dir));
  nvb_set("cache_dir", dir), nvb_set("tier", "1");
  nvd_program_free(program(one_step, 100, 0, 2.0f));
  nvd_code_trim();
  nvb_set("tier", "auto");
  nvd_program *p = program(one_step, 100, 0, 2.0f);
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(nvd_kernels_loaded(), i > 1);
    scale_run(p, 100);
  }
  ck_assert_int_eq(nvc_compiled(), 1);
  nvd_program_free(p);
  sweep_folder(dir);
}
END_TEST

/* A large kernel has baseline code until its calls have taken longer than it takes to optimise it. */
static nvd_kernel *large_kernel(nvd_program *p, int64_t compiled) {
  nvd_kernel *k = p->step[0].kernel;
  for (int i = 0; i < 4 && !atomic_load(&k->entry); i++) scale_run(p, 30000), nvd_warm_wait();
  ck_assert_int_eq(nvc_compiled(), compiled);
  return k;
}
START_TEST(a_large_kernel_has_baseline_code_first) {
  char dir[] = "/tmp/nvm-large-XXXXXX";
  if (!nvc_llvm_available()) return;
  ck_assert_ptr_nonnull(mkdtemp(dir));
  nvb_set("cache_dir", dir);
  nvd_program *p = program(one_large_step, 30000, 10, 2.0f);
  const nvd_kernel *k = large_kernel(p, 1);
  nvc_entry first = atomic_load(&k->entry);
  ck_assert(first && atomic_load(&k->baseline) > 1000);
  nvd_program_free(p), nvd_code_trim();
  p = program(one_large_step, 30000, 10, 2.0f);
  k = large_kernel(p, 1); /* its code is in the store, but no call has been counted */
  ck_assert_int_eq(nvd_kernels_loaded(), 1);
  ck_assert(atomic_load(&k->baseline) > 1000);
  nvd_kernel_baseline_end(p->step[0].kernel, nvb_clock_ns() - 1000000000);
  scale_run(p, 30000), nvd_warm_wait();
  ck_assert_int_eq(nvc_compiled(), 2);
  ck_assert(atomic_load(&k->entry) && !atomic_load(&k->baseline));
  nvd_program_free(p), nvd_code_trim();
  p = program(one_large_step, 30000, 0, 2.0f); /* the store has the better code */
  ck_assert(!atomic_load(&large_kernel(p, 2)->baseline));
  ck_assert_int_eq(nvd_kernels_loaded(), 2);
  nvd_program_free(p);
  sweep_folder(dir);
}
END_TEST
/* What a plan expects counts for nothing: baseline code may be much slower than that. */
START_TEST(calls_of_baseline_code_count_by_the_clock) {
  enum { MOST = 100000 };
  if (!nvc_llvm_available()) return;
  nvb_set("cache_dir", "off");
  nvd_program *p = program(one_large_step, 30000, 0, 2.0f);
  const nvd_kernel *k = large_kernel(p, 1);
  int n = 0;
  while (n++ < MOST && !atomic_load(&k->queued) && atomic_load(&k->baseline)) scale_run(p, 30000);
  nvd_warm_wait();
  ck_assert(n > 1 && !atomic_load(&k->baseline));
  nvd_program_free(p);
}
END_TEST
START_TEST(baseline_code_is_for_no_caller_that_wants_the_best) {
  nvb_set("cache_dir", "off");
  nvd_program *p = program(one_large_step, 30000, 0, 2.0f);
  int64_t once = nvc_llvm_available() ? 1 : 0;
  ck_assert_int_eq(!atomic_load(&large_kernel(p, once)->baseline), !once);
  nvb_set("tier", "1");
  nvd_program *q = program(one_large_step, 30000, 0, 2.0f);
  ck_assert(!atomic_load(&large_kernel(q, 2 * once)->baseline));
  scale_run(p, 30000);
  nvd_program_free(p), nvd_program_free(q);
}
END_TEST

/* While other kernels are compiled, whose locks a test may hold as long as it likes, calls run in the interpreter. */
START_TEST(calls_do_not_wait_for_other_kernels) {
  char dir[] = "/tmp/nvm-busy-XXXXXX";
  if (!nvc_llvm_available()) return;
  ck_assert_ptr_nonnull(mkdtemp(dir));
  nvb_set("cache_dir", dir), nvb_set("tier", "1");
  nvd_program_free(program(one_step, 100, 0, 2.0f));
  nvd_code_trim();
  nvb_set("tier", "auto");
  nvd_program *p = program(one_step, 100, 0, 2.0f);
  nvb_lock *first = nvb_fork_held(NVB_LOCK_NATIVE);
  for (nvb_lock *l = first; l && l->rank == NVB_LOCK_NATIVE; l = l->next) pthread_mutex_lock(&l->mutex);
  for (int i = 0; i < 3; i++) scale_run(p, 100);
  ck_assert_int_eq(nvd_kernels_loaded(), 0);
  for (nvb_lock *l = first; l && l->rank == NVB_LOCK_NATIVE; l = l->next) pthread_mutex_unlock(&l->mutex);
  scale_run(p, 100);
  ck_assert_int_eq(nvd_kernels_loaded(), 1); /* it is sought when there is nothing to wait for */
  nvd_program_free(p);
  sweep_folder(dir);
}
END_TEST

/* ---- under observation */
typedef struct forged { nvb_hash key; nvc_object object; int status; } forged;
static void forge(nvb_arena *a, void *arg) { /* the code of x + a, to be found as that of x * a */
  forged *f = arg;
  char text[sizeof scale_text + 16];
  const char *at = strstr(scale_text, "multiply");
  snprintf(text, sizeof text, "%.*sadd%s", (int)(at - scale_text), scale_text, at + strlen("multiply"));
  nvf_kernel *right = nvf_kernel_parse(a, scale_text, "right"), *wrong = nvf_kernel_parse(a, text, "wrong");
  f->key = nvc_code_key(right, nvf_schedule_find(right, "cpu"), nvc_target_host());
  f->status = nvc_compile(&f->object, wrong, nvf_schedule_find(wrong, "cpu"), nvc_target_host(), 0);
}
START_TEST(wrong_code_is_found_out) {
  char dir[] = "/tmp/nvm-forged-XXXXXX";
  if (!nvc_llvm_available()) return;
  ck_assert_ptr_nonnull(mkdtemp(dir));
  nvb_set("cache_dir", dir), nvb_set("tier", "1"), nvb_set("check", "bits");
  nvb_arena *a = nvb_arena_new();
  forged f = { 0 };
  ck_assert_int_eq(nvb_protect(a, forge, &f), NVM_OK);
  ck_assert_int_eq(f.status, NVM_OK);
  nvb_arena_free(a);
  int64_t head[2] = { f.object.scratch, f.object.baseline };
  char *row = malloc(sizeof head + f.object.n);
  memcpy(row, head, sizeof head);
  memcpy(row + sizeof head, f.object.bytes, f.object.n);
  nvb_store_put("code", f.key, row, sizeof head + f.object.n);
  nvd_program *p = program(one_step, 100, 0, 2.0f);
  float *x = data(100), y[100];
  ck_assert_int_eq(nvd_run(p, (char *[]){ (char *)x }, (char *[]){ (char *)y }), NVM_ERR_INTERNAL);
  ck_assert_msg(strstr(nvb_message(), "[bits]") && strstr(nvb_message(), "element 0"), "%s", nvb_message());
  nvd_program_free(p);
  free(x), free(row), nvb_free(f.object.bytes);
  sweep_folder(dir);
}
END_TEST

START_TEST(code_that_does_not_load_is_made_again) {
  char dir[] = "/tmp/nvm-broken-XXXXXX", row[64] = { 0 };
  if (!nvc_llvm_available()) return;
  ck_assert_ptr_nonnull(mkdtemp(dir));
  nvb_set("cache_dir", dir), nvb_set("tier", "1");
  nvb_arena *a = nvb_arena_new();
  forged f = { 0 };
  ck_assert_int_eq(nvb_protect(a, forge, &f), NVM_OK);
  nvb_arena_free(a), nvb_free(f.object.bytes);
  strcpy(row + 2 * sizeof f.object.scratch, "no object");
  nvb_store_put("code", f.key, row, sizeof row);
  int64_t compiled = nvc_compiled();
  nvb_fail(NVM_ERR_VALUE, "an earlier failure");
  nvd_program *p = program(one_step, 100, 0, 2.0f);
  scale_run(p, 100);
  ck_assert_int_eq(nvc_compiled(), compiled + 1);
  ck_assert_int_eq(nvd_kernels_loaded(), 0);
  ck_assert_str_eq(nvb_message(), "an earlier failure"); /* the caller has nothing to hear of it */
  nvd_program_free(p);
  sweep_folder(dir);
}
END_TEST

START_TEST(right_code_passes) {
  char dir[] = "/tmp/nvm-runs-XXXXXX", file[64];
  ck_assert_ptr_nonnull(mkdtemp(dir));
  nvb_set("cache_dir", "off"), nvb_set("tier", "1"), nvb_set("check", "bits");
  nvb_set("dump", "run"), nvb_set("dump_dir", dir);
  run_two_steps(30000);
  for (int i = 2; i >= 1; i--) snprintf(file, sizeof file, "%s/step%d.run", dir, i), unlink(file);
  nvb_set("tier", "0");
  run_two_steps(300);
  ck_assert(run_line(dir, 2));
  const char *line = run_line(dir, 1);
  ck_assert_msg(!strncmp(line, "1/2 map, interpreted: 1 blocks by 4", 35), "%s", line);
  sweep_folder(dir);
}
END_TEST

/* ---- failures */
/* What asks for a plan without running it hears the same. */
static void refuse(nvb_arena *a, void *arg) {
  request *r = arg;
  two_steps(a, r);
  r->plan->step[1].s->bind[0].layout.d[0].extent = 1 << 30;
  for (int dry = 0; dry < 2; dry++) {
    nvd_terms terms = { .step = -1 };
    nvd_program *p = NULL;
    int status = dry ? nvd_prepare_dry(r->plan, NULL, NULL, &terms) : nvd_prepare(&p, r->plan, NULL, NULL, &terms);
    ck_assert_msg(status == NVM_ERR_VALUE && terms.step == 1 && strstr(nvb_message(), "elements"),
                  "%d: status %d, step %d: %s", dry, status, terms.step, nvb_message());
    ck_assert_ptr_null(p);
  }
}
START_TEST(a_kernel_that_cannot_be_is_refused_before_it_runs) {
  nvb_arena *a = nvb_arena_new();
  ck_assert_int_eq(nvb_protect(a, refuse, &(request){ .n = 3000, .a = 2 }), NVM_OK);
  nvb_arena_free(a);
}
END_TEST

START_TEST(index_out_of_range_is_an_error) {
  static const char *const tiers[] = { "0", "1" };
  enum { N = 10000, M = 77 };
  float *x = data(M), *y = calloc(N, sizeof *y);
  int64_t *at = calloc(N, sizeof *at);
  for (int t = 0; t < 2; t++) {
    nvb_set("tier", tiers[t]);
    nvd_program *p = program(gather, N, M, 0);
    char *leaf[] = { (char *)x, (char *)at }, *out[] = { (char *)y };
    for (int i = 0; i < N; i++) at[i] = i % M;
    ck_assert_int_eq(nvd_run(p, leaf, out), NVM_OK);
    for (int i = 0; i < N; i++) ck_assert(y[i] == x[i % M]);
    at[N - 3] = M;
    ck_assert_int_eq(nvd_run(p, leaf, out), NVM_ERR_INDEX);
    ck_assert_msg(!strcmp(nvb_message(), "[gather] an index is out of range: made by hand"), "%s", nvb_message());
    at[N - 3] = -1;
    ck_assert_int_eq(nvd_run(p, leaf, out), NVM_ERR_INDEX);
    at[N - 3] = 0;
    ck_assert_int_eq(nvd_run(p, leaf, out), NVM_OK); /* a failed run leaves nothing behind */
    nvd_program_free(p);
  }
  free(x), free(y), free(at);
}
END_TEST

static int whole_life(float *x, float *y, int64_t n) {
  nvd_program *p;
  int status = prepared(&p, two_steps, n, 0, 1.7f);
  if (!status) status = nvd_run(p, (char *[]){ (char *)x }, (char *[]){ (char *)y });
  nvd_program_free(p);
  return status;
}
/* From the n-th request on, or only the n-th, memory fails: a status or the right answer, and nothing lost either
   way. */
static void sweep_failures(int64_t n, int sticky, int limit) {
  float *x = data(n), *y = calloc((size_t)n, sizeof *y);
  ck_assert_int_eq(whole_life(x, y, n), NVM_OK); /* what is made once for the process */
  nvd_code_trim(), nvd_mem_trim();
  int64_t before = nvb_live_blocks();
  int met = 0, status;
  for (int k = 1; k < limit; k++) {
    memset(y, 0, sizeof *y * (size_t)n);
    nvb_fail_alloc(k, sticky);
    status = whole_life(x, y, n);
    nvb_fail_alloc(0, 0);
    if (status) ck_assert_msg(status == NVM_ERR_MEMORY, "request %d: %d %s", k, status, nvb_message());
    else ck_assert(right(x, y, n, 1.7f));
    met += status != 0;
    nvd_code_trim(), nvd_mem_trim();
    ck_assert_msg(nvb_live_blocks() == before, "request %d leaks %lld", k, (long long)(nvb_live_blocks() - before));
  }
  ck_assert_int_gt(met, 10);
  free(x), free(y);
}
START_TEST(every_allocation_may_fail_interpreted) {
  nvb_set("tier", "0"), nvb_set("cache_dir", "off"), nvb_pool_set_threads(2);
  sweep_failures(300, 0, 80);
  sweep_failures(300, 1, 80);
  sweep_failures(1 << 20, 1, 80); /* temporaries from the buffers */
}
END_TEST
START_TEST(every_allocation_may_fail_native) {
  nvb_set("tier", "1"), nvb_set("cache_dir", "off");
  sweep_failures(300, 0, 60);
  sweep_failures(300, 1, 60);
}
END_TEST

/* ---- threads and processes */
static nvd_program *shared;
static void *runner(void *arg) {
  int64_t n = 20000;
  float *x = data(n), *y = calloc((size_t)n, sizeof *y);
  for (int i = 0; i < 40; i++) {
    memset(y, 0, sizeof *y * (size_t)n);
    if (nvd_run(shared, (char *[]){ (char *)x }, (char *[]){ (char *)y }) || !right(x, y, n, 0.3f)) *(int *)arg = 1;
  }
  free(x), free(y);
  return NULL;
}
START_TEST(threads_share_a_program) {
  nvb_pool_set_threads(3);
  shared = program(two_steps, 20000, 0, 0.3f); /* compiled on the way */
  pthread_t t[6];
  int bad[6] = { 0 };
  for (int i = 0; i < 6; i++) pthread_create(&t[i], NULL, runner, &bad[i]);
  for (int i = 0; i < 6; i++) {
    pthread_join(t[i], NULL);
    ck_assert_int_eq(bad[i], 0);
  }
  nvd_program_free(shared);
}
END_TEST

START_TEST(fork_then_run) {
  nvb_pool_set_threads(3);
  run_two_steps(30000);
  for (int i = 0; i < 10; i++) {
    pid_t pid = fork();
    if (!pid) {
      alarm(60);
      float *x = data(30000), *y = calloc(30000, sizeof *y);
      _exit(whole_life(x, y, 30000) || !right(x, y, 30000, 1.7f));
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "the child ended with %x", (unsigned)status);
  }
}
END_TEST

START_TEST(many_programs_leave_nothing) {
  nvb_set("tier", "0");
  run_two_steps(2000);
  nvd_code_trim(), nvd_mem_trim();
  int64_t before = nvb_live_blocks();
  for (int i = 0; i < 200; i++) run_two_steps(100 + i);
  nvd_warm_wait(), nvd_code_trim(), nvd_mem_trim();
  ck_assert_int_eq(nvb_live_blocks(), before);
}
END_TEST

SUITE("program", two_steps_in_every_tier, offsets_and_scalars, little_work_wakes_nobody,
      small_programs_compile_at_the_ninth_call, the_interpreter_runs_while_code_is_compiled,
      large_programs_compile_before_they_run, a_child_compiles_what_was_queued, tiers_can_be_forced,
      code_comes_from_the_disk, stored_code_runs_from_the_second_call_on, calls_do_not_wait_for_other_kernels,
      a_large_kernel_has_baseline_code_first, calls_of_baseline_code_count_by_the_clock,
      baseline_code_is_for_no_caller_that_wants_the_best, wrong_code_is_found_out,
      code_that_does_not_load_is_made_again, right_code_passes, a_kernel_that_cannot_be_is_refused_before_it_runs,
      index_out_of_range_is_an_error, every_allocation_may_fail_interpreted, every_allocation_may_fail_native,
      threads_share_a_program, fork_then_run, many_programs_leave_nothing)
