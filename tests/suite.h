/* One main for every C suite: SUITE("arena", test_a, LOOP(test_b, 8)) runs Check's tests and returns non-zero on a
   failure. SUITE_WITH does so around every test with a fixture; RUN_SUITE is for a main that says more. */
#ifndef NVM_TESTS_SUITE_H
#define NVM_TESTS_SUITE_H
#include <check.h>

/* What holds is not told to the process that waits: tests ask millions of times, and each would be a write. */
#define _mark_point(file, line) ((void)0)

/* Of random trials a sanitizer's build, in which each takes several times as long, makes one in so many. No table is a
   multiple of it long: who goes through a product of tables in such steps meets each value with each other one. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { ONE_IN = 13 };
#else
enum { ONE_IN = 1 };
#endif
#define SHARE_OF(n) (((n) + ONE_IN - 1) / ONE_IN) /* at least one */

/* In a list of tests: how the one behind it runs. */
typedef struct suite_mark { TTest none; int times, signal; } suite_mark;
#define LOOP(test, n) &(const suite_mark){ .times = (int)(n) }.none, test /* for every _i below n */
#define EACH(test, table) LOOP(test, sizeof(table) / sizeof *(table))
#define RAISES(test, number) &(const suite_mark){ .times = 1, .signal = number }.none, test

static inline int run_suite(const char *name, SFun setup, SFun teardown, const TTest *const *tests) {
  Suite *s = suite_create(name);
  TCase *c = tcase_create(name);
  const suite_mark once = { .times = 1 }, *how = &once;
  for (; *tests; tests++)
    if ((*tests)->fn) tcase_add_loop_test_raise_signal(c, *tests, how->signal, 0, how->times), how = &once;
    else how = (const suite_mark *)*tests;
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 240);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
#define RUN_SUITE_WITH(name, setup, teardown, ...) \
  run_suite(name, setup, teardown, (const TTest *const[]){ __VA_ARGS__, NULL })
#define RUN_SUITE(name, ...) RUN_SUITE_WITH(name, NULL, NULL, __VA_ARGS__)
#define SUITE_WITH(...) int main(void) { return RUN_SUITE_WITH(__VA_ARGS__); }
#define SUITE(...) int main(void) { return RUN_SUITE(__VA_ARGS__); }
#endif
