/* Short words for building nodes in tests. Every node made by these lives until drop_nodes(). */
#ifndef NVM_TESTS_NODES_H
#define NVM_TESTS_NODES_H
#include <stdio.h>
#include <string.h>
#include "../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "graph/graph.h"

static nvg_node *kept_[4096];
static int nkept_;
static inline nvg_node *keep(nvg_node *n) {
  if (n) kept_[nkept_++] = n;
  return n;
}
static inline void drop_nodes(void) {
  while (nkept_) nvg_node_unref(kept_[--nkept_]);
}

/* leaf(NVM_F32, 2, 3, 4): a placeholder of shape (3, 4) */
#define leaf(t, rank, ...) keep(nvg_leaf_new(nvg_aval_get(t, rank, (int64_t[]){ __VA_ARGS__, 0 }), NULL))
#define scalar(t) keep(nvg_leaf_new(nvg_aval_get(t, 0, NULL), NULL))
static inline nvg_node *real(double x) { return keep(nvg_weak('f', x, 0, 0)); }
static inline nvg_node *whole(int64_t x) { return keep(nvg_weak('i', 0, 0, x)); }

static inline nvg_node *call(const char *name, nvg_node *const *in, int nin, const nvg_attr *at, int nat) {
  int op = nvg_op_find(name);
  ck_assert_msg(op >= 0, "no operation %s", name);
  return keep(nvg_apply((nvg_op)op, in, nin, at, nat, NVM_F64));
}
#define attrs_(...) (nvg_attr[]){ __VA_ARGS__ }, COUNT_(nvg_attr, __VA_ARGS__)
#define op0(name, ...) call(name, NULL, 0, attrs_(__VA_ARGS__))
#define op1(name, a) call(name, (nvg_node *[]){ a }, 1, NULL, 0)
#define op2(name, a, b) call(name, (nvg_node *[]){ a, b }, 2, NULL, 0)
#define op3(name, a, b, c) call(name, (nvg_node *[]){ a, b, c }, 3, NULL, 0)
#define op1a(name, a, ...) call(name, (nvg_node *[]){ a }, 1, attrs_(__VA_ARGS__))
#define op2a(name, a, b, ...) call(name, (nvg_node *[]){ a, b }, 2, attrs_(__VA_ARGS__))
#define opn(name, n, ...) call(name, (nvg_node *[]){ __VA_ARGS__ }, n, NULL, 0)

#define COUNT_(T, ...) (int)(sizeof((T[]){ __VA_ARGS__ }) / sizeof(T))
#define I(n_, v) { .name = n_, .kind = 'i', .i = v }
#define F(n_, v) { .name = n_, .kind = 'f', .f = v }
#define D(n_, v) { .name = n_, .kind = 'd', .i = v }
#define L(n_, ...) { .name = n_, .kind = 'I', .is = (int64_t[]){ __VA_ARGS__ }, .n = COUNT_(int64_t, __VA_ARGS__) }
#define NONE(n_) { .name = n_, .kind = 'n' }

static inline void is_aval(const nvg_node *n, nvm_dtype t, const char *shape) {
  char text[256] = "";
  ck_assert_msg(n != NULL, "%s", nvb_message());
  for (int d = 0; d < n->aval->rank; d++)
    sprintf(text + strlen(text), d ? ",%lld" : "%lld", (long long)n->aval->shape[d]);
  ck_assert_str_eq(text, shape);
  ck_assert_str_eq(nvg_dtype_name(n->aval->dtype), nvg_dtype_name(t));
}
static inline void is_fault(const nvg_node *n, int status, const char *message) {
  ck_assert_ptr_null(n);
  ck_assert_str_eq(nvb_message(), message);
  ck_assert_int_eq(nvb_status(), status);
}

/* Collects and simplifies roots[0..n) and hands both graphs to `look`. */
typedef struct staged { nvg_node *const *roots; int n;
  void (*look)(nvb_arena *a, const nvg_graph *raw, const nvg_graph *g);
} staged;
static inline void stage_(nvb_arena *a, void *arg) {
  staged *s = arg;
  nvg_graph *raw = nvg_collect(a, s->roots, s->n, NULL), *g = nvg_simplify(a, raw);
  nvg_graph_check(a, g);
  if (s->look) s->look(a, raw, g);
}
static inline int stages(nvg_node *const *roots, int n,
                         void (*look)(nvb_arena *a, const nvg_graph *raw, const nvg_graph *g)) {
  nvb_arena *a = nvb_arena_new();
  staged s = { roots, n, look };
  int status = a ? nvb_protect(a, stage_, &s) : NVM_ERR_MEMORY;
  nvb_arena_free(a);
  return status;
}
#endif
