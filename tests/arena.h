/* For suites whose tests build in an arena. */
#ifndef NVM_TESTS_ARENA_H
#define NVM_TESTS_ARENA_H
#include <check.h>
#include "base/arena.h"
#include "base/err.h"

/* Calls fn(a, arg) with an arena of its own; a status that it throws fails the test `name` (NULL: it has no name). */
static inline void in_arena(void (*fn)(nvb_arena *a, void *arg), const void *arg, const char *name) {
  nvb_arena *a = nvb_arena_new();
  int rc = nvb_protect(a, fn, (void *)arg);
  ck_assert_msg(rc == NVM_OK, "%s%s%s", name ? name : "", name ? ": " : "", nvb_message());
  nvb_arena_free(a);
}
#endif
