/* For the suites of plans: programs written in a few letters over nvg_apply, planned for a machine that a table
   describes. */
#ifndef LAZY_H
#define LAZY_H
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../arena.h"
#include "../suite.h"
#include "fusion/plan.h"

typedef nvg_node *N;
enum { MOST_NODES = 32768, MOST_OUT = 1000 };
typedef struct program { N keep[MOST_NODES]; int nkeep; N out[MOST_OUT]; int nout; } program;
static program *P; /* the program being written */

static inline N keep(N n) {
  if (!n) ck_abort_msg("%s", nvb_message());
  ck_assert_int_lt(P->nkeep, MOST_NODES);
  return P->keep[P->nkeep++] = n;
}
static inline N leaf_of(nvm_dtype t, int rank, const int64_t *shape) {
  return keep(nvg_leaf_new(nvg_aval_get(t, rank, shape), NULL));
}
#define SHAPE(...) (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / 8), (int64_t[]){ __VA_ARGS__ }
#define X(...) leaf_of(NVM_F32, SHAPE(__VA_ARGS__))
static inline N apply(int op, int nin, N *in, int nattr, const nvg_attr *attr) {
  return keep(nvg_apply((nvg_op)op, in, nin, attr, nattr, NVM_F32));
}
static inline N u(int op, N x) { return apply(op, 1, &x, 0, NULL); }
static inline N b(int op, N x, N y) { return apply(op, 2, (N[]){ x, y }, 0, NULL); }
static inline N w(double x) { return keep(nvg_weak('f', x, 0, 0)); }
#define add(x, y) b(NVG_OP_ADD, x, y)
#define sub(x, y) b(NVG_OP_SUBTRACT, x, y)
#define mul(x, y) b(NVG_OP_MULTIPLY, x, y)
#define dvd(x, y) b(NVG_OP_DIVIDE, x, y)
#define mx(x, y) b(NVG_OP_MAXIMUM, x, y)
#define lt(x, y) b(NVG_OP_LESS, x, y)
#define eq(x, y) b(NVG_OP_EQUAL, x, y)
#define ex(x) u(NVG_OP_EXP, x)
#define lg(x) u(NVG_OP_LOG, x)
#define sq(x) u(NVG_OP_SQRT, x)
#define sn(x) u(NVG_OP_SIN, x)
#define th(x) u(NVG_OP_TANH, x)
#define ng(x) u(NVG_OP_NEGATIVE, x)
#define ab(x) u(NVG_OP_ABS, x)
static inline N where(N c, N x, N y) { return apply(NVG_OP_WHERE, 3, (N[]){ c, x, y }, 0, NULL); }
/* over one axis, or all (-1), or a list */
static inline N red(int op, N x, int axis, int kd) {
  nvg_attr a[2] = { { .name = "axis", .kind = axis < 0 ? 'n' : 'i', .i = axis },
                    { .name = "keepdims", .kind = 'b', .i = kd } };
  return apply(op, 1, &x, 2, a);
}
static inline N reds(int op, N x, int kd, int n, const int64_t *axes) {
  nvg_attr a[2] = { { .name = "axis", .kind = 'I', .is = axes, .n = n }, { .name = "keepdims", .kind = 'b', .i = kd } };
  return apply(op, 1, &x, 2, a);
}
#define sum(x, a, k) red(NVG_OP_SUM, x, a, k)
#define max_(x, a, k) red(NVG_OP_MAX, x, a, k)
#define min_(x, a, k) red(NVG_OP_MIN, x, a, k)
static inline N mean_of(N s, int64_t n) { return dvd(s, w((double)n)); } /* mean as the prototype of a user writes it */
static inline N reshape_(N x, int rank, const int64_t *shape) {
  return apply(NVG_OP_RESHAPE, 1, &x, 1, &(nvg_attr){ .name = "shape", .kind = 'I', .is = shape, .n = rank });
}
#define reshape(x, ...) reshape_(x, SHAPE(__VA_ARGS__))
static inline N permute_(N x, int rank, const int64_t *axes) {
  return apply(NVG_OP_PERMUTE_DIMS, 1, &x, 1, &(nvg_attr){ .name = "axes", .kind = 'I', .is = axes, .n = rank });
}
#define permute(x, ...) permute_(x, SHAPE(__VA_ARGS__))
static inline N broadcast_(N x, int rank, const int64_t *shape) {
  return apply(NVG_OP_BROADCAST_TO, 1, &x, 1, &(nvg_attr){ .name = "shape", .kind = 'I', .is = shape, .n = rank });
}
#define broadcast(x, ...) broadcast_(x, SHAPE(__VA_ARGS__))
/* start, count, step per dimension */
static inline N slice_(N x, int n, const int64_t *v) {
  int64_t s[3][8];
  for (int i = 0; i < n; i++) s[i % 3][i / 3] = v[i];
  nvg_attr a[3] = { { .name = "start", .kind = 'I', .is = s[0], .n = n / 3 },
                    { .name = "count", .kind = 'I', .is = s[1], .n = n / 3 },
                    { .name = "step", .kind = 'I', .is = s[2], .n = n / 3 } };
  return apply(NVG_OP_SLICE, 1, &x, 3, a);
}
#define slice(x, ...) slice_(x, SHAPE(__VA_ARGS__))
static inline N roll(N x, int64_t by, int64_t axis) {
  nvg_attr a[2] = { { .name = "shift", .kind = 'i', .i = by }, { .name = "axis", .kind = 'i', .i = axis } };
  return apply(NVG_OP_ROLL, 1, &x, 2, a);
}
static inline N concat(N x, N y, int64_t axis) {
  return apply(NVG_OP_CONCAT, 2, (N[]){ x, y }, 1, &(nvg_attr){ .name = "axis", .kind = 'i', .i = axis });
}
static inline N pad(N x, int64_t n) {
  return apply(NVG_OP_PAD, 1, &x, 1, &(nvg_attr){ .name = "pad_width", .kind = 'i', .i = n });
}
static inline N arange(int64_t n) {
  nvg_attr a[2] = { { .name = "start", .kind = 'i', .i = n }, { .name = "dtype", .kind = 'd', .i = NVM_I64 } };
  return apply(NVG_OP_ARANGE, 0, NULL, 2, a);
}
static inline void out(N x) {
  ck_assert_int_lt(P->nout, MOST_OUT);
  P->out[P->nout++] = x;
}

/* Collects, simplifies and plans what was written. */
static inline nvg_graph *graph_of(nvb_arena *a) { return nvg_simplify(a, nvg_collect(a, P->out, P->nout, NULL)); }
static inline void forget(void) {
  for (int i = 0; i < P->nkeep; i++) nvg_node_unref(P->keep[i]);
  P->nkeep = P->nout = 0;
}
static inline void in_program(void (*fn)(nvb_arena *a, void *arg), const void *arg, const char *name) {
  static program one;
  P = &one;
  P->nkeep = P->nout = 0; /* after a test that failed in this process */
  in_arena(fn, arg, name);
  forget();
}
static inline double now_us(void) { /* of this process: others on the machine do not count */
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
#endif
