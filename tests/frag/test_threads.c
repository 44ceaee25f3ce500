/* The library of fragments is shared by threads. */
#include <pthread.h>
#include "../suite.h"
#include "frag/impl.h"

static const char *const names[] = { "exp", "log",      "sin",    "cos",     "tanh",
                                     "add", "multiply", "divide", "maximum", "where_is_it" };
enum { NAMES = sizeof names / sizeof *names, THREADS = 8 };
static const nvg_frag *found[THREADS][NAMES];
static pthread_barrier_t gate;
static void *look(void *arg) {
  int me = (int)(intptr_t)arg;
  nvm_dtype t[2] = { NVM_F32, NVM_F32 };
  pthread_barrier_wait(&gate);
  for (int k = 0; k < NAMES; k++) {
    int i = (k + me) % NAMES, two = i >= 5 && i <= 8;
    found[me][i] = nvg_frag_find(names[i], t, two ? 2 : 1);
  }
  return NULL;
}
START_TEST(threads_share_the_library) {
  pthread_t th[THREADS];
  pthread_barrier_init(&gate, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) ck_assert_int_eq(pthread_create(&th[i], NULL, look, (void *)(intptr_t)i), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(th[i], NULL);
  for (int k = 0; k < NAMES; k++)
    for (int i = 0; i < THREADS; i++) {
      ck_assert_ptr_eq(found[i][k], found[0][k]);
      ck_assert((found[i][k] != NULL) == (k < NAMES - 1));
    }
  pthread_barrier_destroy(&gate);
}
END_TEST

SUITE("frag_threads", threads_share_the_library)
