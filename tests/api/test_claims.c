/* Evaluations side by side: who waits for whom, what a waiter finds, and what becomes of shared nodes. An evaluation is
   stopped where it asks whether it is interrupted, once it has claimed its nodes. Last, random programs of threads
   that share pending nodes. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../suite.h"
#include "api/api.h"

/* ---- one evaluation in a thread of its own */
typedef struct task {
  nvm_array *of;
  int stops, ends;  /* waits for `go` once it computes `of`; is interrupted afterwards */
  int ends_waiting; /* is interrupted while it waits for another */
  int stopped, status;
  atomic_int polls;
  sem_t inside, go;
  pthread_t thread;
} task;
static _Thread_local task *mine;

static int computes(const nvm_array *a) { return (int)(atomic_load(&a->node->claim) >> 30 & 1); }
static int poll(void *user) {
  (void)user;
  task *t = mine;
  if (!t) return 0;
  t->polls++;
  if (t->ends_waiting) return t->polls > 2;
  if (!t->stops || (!t->stopped && !computes(t->of))) return 0;
  if (!t->stopped++) {
    struct timespec most;
    clock_gettime(CLOCK_REALTIME, &most);
    most.tv_sec += 60;
    sem_post(&t->inside);
    if (sem_timedwait(&t->go, &most)) return 1; /* nobody let it go on: the test fails */
  }
  return t->ends;
}
static void *evaluate(void *arg) {
  task *t = mine = arg;
  t->status = nvm_eval(&t->of, 1);
  return NULL;
}
static void start(task *t) {
  sem_init(&t->inside, 0, 0);
  sem_init(&t->go, 0, 0);
  ck_assert_int_eq(pthread_create(&t->thread, NULL, evaluate, t), 0);
  if (t->stops) sem_wait(&t->inside);
}
static int end(task *t) {
  sem_post(&t->go);
  pthread_join(t->thread, NULL);
  return t->status;
}
static void await_polls(task *t, int n) {
  while (atomic_load(&t->polls) < n) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

enum { N = 5 };
static nvm_ctx *ctx;
static nvm_scope *scope;
static void open_context(void) {
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  o.device = NVM_DEVICE_CPU;
  nvm_set("cache_dir", "off");
  nvm_set("check", "locks");
  nvm_set("tier", "0");
  ck_assert_int_eq(nvm_ctx_new(&ctx, &o), NVM_OK);
  scope = nvm_scope_open(ctx);
  nvm_interrupt_set(poll, NULL);
}
static void close_context(void) {
  nvm_interrupt_set(NULL, NULL);
  nvm_scope_close(scope);
  nvm_ctx_free(ctx);
}
static nvm_array *number(float x) { /* an array with a value */
  float data[N];
  for (int i = 0; i < N; i++) data[i] = x;
  return nvm_from_host(ctx, NVM_F32, 1, (int64_t[]){ N }, data);
}
static void expect(nvm_array *a, float value) {
  float data[N];
  ck_assert_int_eq(nvm_copy_to_host(a, data, sizeof data), NVM_OK);
  for (int i = 0; i < N; i++) ck_assert_float_eq(data[i], value);
}
static int64_t runs(void) {
  nvm_counters c;
  ck_assert_int_eq(nvm_counters_get(&c, NVM_COUNTERS_VERSION), NVM_OK);
  return c.evaluations;
}

START_TEST(graphs_of_their_own_do_not_wait) {
  task slow = { .of = nvm_add(number(1), nvm_float(1)), .stops = 1 };
  nvm_array *other = nvm_mul(number(3), nvm_float(2));
  start(&slow);
  expect(other, 6); /* while the first is in the middle */
  ck_assert_int_eq(end(&slow), NVM_OK);
  expect(slow.of, 2);
}
END_TEST
START_TEST(a_shared_operand_makes_nobody_wait) {
  nvm_array *x = nvm_add(number(1), nvm_float(1));
  task slow = { .of = nvm_mul(x, nvm_float(5)), .stops = 1 };
  nvm_array *other = nvm_sub(x, nvm_float(7));
  start(&slow);
  expect(other, -5);
  expect(x, 2); /* even when it gets a value of its own */
  expect(nvm_mul(x, x), 4);
  ck_assert_int_eq(end(&slow), NVM_OK);
  expect(slow.of, 10);
}
END_TEST
START_TEST(who_wants_the_same_value_finds_it) {
  nvm_array *x = nvm_add(number(1), nvm_float(1)), *y = nvm_snapshot(x);
  task slow = { .of = x, .stops = 1 }, waits = { .of = _i ? nvm_mul(x, nvm_float(3)) : y };
  int64_t before = runs();
  start(&slow);
  start(&waits);
  await_polls(&waits, 3);
  ck_assert(nvm_is_pending(x));
  ck_assert_int_eq(end(&slow), NVM_OK);
  ck_assert_int_eq(end(&waits), NVM_OK);
  ck_assert_int_eq(runs(), before + 1 + _i); /* of the same node one evaluation */
  expect(waits.of, _i ? 6 : 2);
  nvm_array_unref(y);
}
END_TEST
START_TEST(after_a_failure_the_waiter_tries_for_itself) {
  nvm_array *x = nvm_add(number(1), nvm_float(1));
  task slow = { .of = x, .stops = 1, .ends = 1 }, waits = { .of = nvm_mul(x, nvm_float(3)) };
  start(&slow);
  start(&waits);
  await_polls(&waits, 3);
  ck_assert_int_eq(end(&slow), NVM_ERR_INTERRUPTED);
  ck_assert_int_eq(end(&waits), NVM_OK);
  expect(waits.of, 6);
  expect(x, 2);
}
END_TEST
START_TEST(a_waiter_can_be_interrupted) {
  nvm_array *x = nvm_add(number(1), nvm_float(1));
  task slow = { .of = x, .stops = 1 }, waits = { .of = nvm_mul(x, nvm_float(3)), .ends_waiting = 1 };
  start(&slow);
  start(&waits);
  ck_assert_int_eq(end(&waits), NVM_ERR_INTERRUPTED); /* while the first goes on */
  ck_assert(nvm_is_pending(x));
  ck_assert_int_eq(end(&slow), NVM_OK);
  expect(x, 2);
  expect(waits.of, 6); /* it holds no claim */
}
END_TEST
START_TEST(a_child_forgets_the_claims_of_others) {
  nvm_array *x = nvm_add(number(1), nvm_float(1));
  task slow = { .of = nvm_mul(x, nvm_float(5)), .stops = 1 };
  start(&slow);
  pid_t child = fork();
  if (!child) {
    alarm(60);
    nvm_array *both[] = { slow.of, x };
    float data[N] = { 0 };
    int bad = nvm_eval(both, 2) || nvm_copy_to_host(slow.of, data, sizeof data);
    _exit(bad || data[0] != 10);
  }
  int status = -1;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(end(&slow), NVM_OK);
  expect(slow.of, 10);
}
END_TEST
START_TEST(explaining_waits_too) {
  nvm_array *x = nvm_add(number(1), nvm_float(1));
  task slow = { .of = nvm_mul(x, x), .stops = 1 };
  char *text = NULL;
  start(&slow);
  ck_assert_int_eq(nvm_explain(&text, &x, 1), NVM_OK); /* reads a node that the other reads */
  nvm_free(text);
  ck_assert_int_eq(end(&slow), NVM_OK);
  ck_assert_int_eq(nvm_explain(&text, &slow.of, 1), NVM_OK);
  nvm_free(text);
  expect(x, 2); /* it left no claim */
}
END_TEST
START_TEST(a_write_leaves_what_another_evaluates) {
  nvm_array *a = number(1);
  task slow = { .of = nvm_add(a, nvm_float(1)), .stops = 1 };
  start(&slow);
  ck_assert_int_eq(nvm_assign_view(a, 1, (int64_t[]){ 0 }, (int64_t[]){ N }, (int64_t[]){ 1 }, NULL, nvm_float(9)),
                   NVM_OK);
  expect(a, 9);
  ck_assert_int_eq(end(&slow), NVM_OK);
  expect(slow.of, 2);
}
END_TEST
START_TEST(donated_memory_stays_while_another_reads_it) {
  nvm_array *a = number(4), *copy = nvm_array_copy(a);
  ck_assert_int_eq(nvm_eval(&copy, 1), NVM_OK);
  task slow = { .of = nvm_add(copy, nvm_float(1)), .stops = 1 };
  nvm_array *other = nvm_mul(copy, nvm_float(10));
  ck_assert_int_eq(nvm_donate(copy), NVM_OK);
  start(&slow);
  expect(other, 40);
  ck_assert_int_eq(end(&slow), NVM_OK);
  expect(slow.of, 5);
}
END_TEST
START_TEST(what_was_shared_is_let_go) {
  nvm_counters before, after;
  nvm_counters_get(&before, NVM_COUNTERS_VERSION);
  nvm_scope *inner = nvm_scope_open(ctx);
  nvm_array *x = nvm_add(number(1), nvm_float(1)), *y = nvm_mul(x, nvm_float(5));
  task slow = { .of = y, .stops = 1 };
  start(&slow);
  expect(x, 2); /* x drops its operands only when y is there */
  ck_assert_int_eq(end(&slow), NVM_OK);
  nvm_scope_close(inner);
  nvm_counters_get(&after, NVM_COUNTERS_VERSION);
  ck_assert_int_eq(before.bytes_used, after.bytes_used);
}
END_TEST

/* ---- random programs: a graph of pending nodes with known values, which threads evaluate, read, extend and drop */
enum { THREADS = 3, NODES = 24, ACTS = 12 };
typedef struct actor { nvm_array *node[NODES]; float value[NODES]; uint32_t seed; int bad; pthread_t thread; } actor;
static uint32_t draw(uint32_t *seed, uint32_t below) {
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % below;
}
static void build(nvm_array **node, float *value, int i, uint32_t *seed) {
  int a = (int)draw(seed, (uint32_t)i), b = (int)draw(seed, (uint32_t)i), how = (int)draw(seed, 4);
  if (value[a] > 1e4f || value[b] > 1e4f || value[a] < -1e4f || value[b] < -1e4f) how = 3;
  if (how == 0) node[i] = nvm_add(node[a], node[b]), value[i] = value[a] + value[b];
  if (how == 1) node[i] = nvm_sub(node[a], node[b]), value[i] = value[a] - value[b];
  if (how == 2) node[i] = nvm_maximum(node[a], node[b]), value[i] = value[a] > value[b] ? value[a] : value[b];
  if (how == 3) node[i] = nvm_neg(nvm_sum(nvm_mul(node[a], nvm_float(0)), NULL, -1, 1)), value[i] = 0;
  if (how == 3) node[i] = nvm_add(node[i], nvm_float(2)), value[i] = 2;
}
static int is_wrong(nvm_array *a, float value) {
  float data[N] = { 0 };
  int bad = nvm_copy_to_host(a, data, sizeof(float) * (size_t)nvm_size(a)) != NVM_OK;
  for (int64_t i = 0; i < nvm_size(a); i++) bad |= data[i] != value;
  return bad;
}
static void *act(void *arg) {
  actor *w = arg;
  nvm_scope *s = nvm_scope_open(ctx);
  for (int k = 0; k < ACTS && !w->bad; k++) {
    uint32_t i = draw(&w->seed, NODES), j = draw(&w->seed, NODES), how = draw(&w->seed, 5);
    if (how == 0) w->bad |= nvm_eval((nvm_array *[]){ w->node[i], w->node[j], w->node[i] }, 3) != NVM_OK;
    if (how == 1) w->bad |= is_wrong(w->node[i], w->value[i]);
    if (how == 2) w->bad |= is_wrong(nvm_add(w->node[i], w->node[j]), w->value[i] + w->value[j]);
    if (how == 3) { /* this thread has no further use of it */
      nvm_array *new = nvm_array_ref(nvm_sub(w->node[j], nvm_float(1)));
      nvm_array_unref(w->node[i]);
      w->node[i] = new;
      w->value[i] = w->value[j] - 1;
    }
    if (how == 4) {
      nvm_array *copy = nvm_array_copy(w->node[i]), *sum;
      w->bad |= nvm_eval(&copy, 1) != NVM_OK;
      sum = nvm_add(copy, w->node[j]);
      w->bad |= nvm_donate(copy) != NVM_OK || is_wrong(sum, w->value[i] + w->value[j]);
      nvm_array_unref(copy);
    }
  }
  for (int i = 0; i < NODES; i++) nvm_array_unref(w->node[i]);
  w->bad |= nvm_scope_close(s) != NVM_OK;
  return NULL;
}
static void random_program(uint32_t seed) {
  actor w[THREADS];
  nvm_array *node[NODES];
  float value[NODES];
  uint32_t of = seed;
  nvm_scope *s = nvm_scope_open(ctx);
  for (int i = 0; i < 3; i++) node[i] = number(value[i] = (float)draw(&of, 9));
  for (int i = 3; i < NODES; i++) build(node, value, i, &of);
  for (int t = 0; t < THREADS; t++) {
    w[t] = (actor){ .seed = seed * 31u + (uint32_t)t };
    memcpy(w[t].value, value, sizeof value);
    for (int i = 0; i < NODES; i++) w[t].node[i] = nvm_snapshot(node[i]);
  }
  nvm_scope_close(s);
  for (int t = 0; t < THREADS; t++) ck_assert_int_eq(pthread_create(&w[t].thread, NULL, act, &w[t]), 0);
  for (int t = 0; t < THREADS; t++) pthread_join(w[t].thread, NULL);
  for (int t = 0; t < THREADS; t++) ck_assert_msg(!w[t].bad, "program %u, thread %d: %s", seed, t, nvm_last_error());
}
START_TEST(random_programs) {
  const char *set = getenv("NVM_RANDOM_PROGRAMS");
  int n = (set ? atoi(set) : SHARE_OF(300)) / 2;
  nvm_counters before, after;
  nvm_set("tier", _i ? "auto" : "0");
  nvm_counters_get(&before, NVM_COUNTERS_VERSION);
  for (int i = 0; i < n; i++) random_program((uint32_t)(2 * i + _i));
  nvm_counters_get(&after, NVM_COUNTERS_VERSION);
  ck_assert_int_eq(before.bytes_used, after.bytes_used);
}
END_TEST

SUITE_WITH("claims", open_context, close_context, graphs_of_their_own_do_not_wait, a_shared_operand_makes_nobody_wait,
           LOOP(who_wants_the_same_value_finds_it, 2), after_a_failure_the_waiter_tries_for_itself,
           a_waiter_can_be_interrupted, a_child_forgets_the_claims_of_others, explaining_waits_too,
           a_write_leaves_what_another_evaluates, donated_memory_stays_while_another_reads_it,
           what_was_shared_is_let_go, LOOP(random_programs, 2))
