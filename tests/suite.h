/* One main for every C suite: SUITE("arena", test_a, test_b) runs Check's tests and returns non-zero on a failure. */
#ifndef NVM_TESTS_SUITE_H
#define NVM_TESTS_SUITE_H
#include <check.h>

static inline int run_suite(const char *name, const TTest *const *tests, int n) {
  Suite *s = suite_create(name);
  TCase *c = tcase_create(name);
  for (int i = 0; i < n; i++)
    tcase_add_test(c, tests[i]);
  tcase_set_timeout(c, 120);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
#define SUITE(name, ...) \
  int main(void) { \
    const TTest *const tests_[] = { __VA_ARGS__ }; \
    return run_suite(name, tests_, (int)(sizeof tests_ / sizeof *tests_)); \
  }
#endif
