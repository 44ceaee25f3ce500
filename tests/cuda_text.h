/* What the text of every kernel for a GPU has to say. After check.h. */
#ifndef CUDA_TEXT_H
#define CUDA_TEXT_H
#include <string.h>

/* All threads of a kernel wait for the kernels before it, once, and nothing is read or written till then. */
static inline void ck_waits_first(const char *source) {
  static const char wait[] = "nv_after_previous();", *const forbidden[] = { "[", "return", "nv_load", "nv_store" };
  const char *body = strchr(strstr(source, "nvm_kernel("), '{'), *waits = strstr(body, wait);
  ck_assert_msg(waits && !strstr(waits + 1, wait), "a kernel that does not wait once:\n%.800s", body);
  int depth = 0;
  for (const char *at = body; at < waits; at++) depth += (*at == '{') - (*at == '}');
  ck_assert_msg(depth == 1, "not all threads wait:\n%.800s", body);
  for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
    const char *at = strstr(body, forbidden[i]);
    ck_assert_msg(!at || at > waits, "%s stands before the kernel waits:\n%.800s", forbidden[i], body);
  }
}
#endif
