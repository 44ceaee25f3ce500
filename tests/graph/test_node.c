/* Lazy nodes: counting, freeing long chains, interned avals, threads, and memory that runs out. */
#include <pthread.h>
#include "nodes.h"

static int released;
static void release(void *buffer) { (void)buffer, released++; }
static nvg_value *value(int64_t stride) {
  nvg_value *v = nvb_calloc(1, sizeof *v);
  v->unref = release;
  v->stride[0] = stride;
  return v;
}

START_TEST(a_chain_of_a_million_nodes_is_freed_flat) {
  nvg_node *warm = nvg_leaf_new(nvg_aval_get(NVM_F32, 1, (int64_t[]){ 8 }), NULL),
           *once = nvg_apply(NVG_OP_NEGATIVE, &warm, 1, NULL, 0, NVM_F64);
  ck_assert_ptr_nonnull(once);
  nvg_node_unref(once);
  int64_t before = nvb_live_blocks();
  nvg_node *x = nvg_node_ref(warm);
  for (int i = 0; i < 1000000; i++) {
    nvg_node *y = nvg_apply(NVG_OP_NEGATIVE, &x, 1, NULL, 0, NVM_F64);
    nvg_node_unref(x);
    x = y;
  }
  ck_assert_int_eq(x->depth, 1000000 + warm->depth);
  ck_assert_int_eq(nvb_live_blocks(), before + 1000000);
  nvg_node_unref(x);
  ck_assert_int_eq(nvb_live_blocks(), before);
  nvg_node_unref(warm);
}
END_TEST

START_TEST(avals_are_one_per_shape_and_dtype) {
  int64_t a[] = { 3, 4 }, b[] = { 4, 3 };
  const nvg_aval *x = nvg_aval_get(NVM_F32, 2, a);
  ck_assert_ptr_eq(x, nvg_aval_get(NVM_F32, 2, a));
  ck_assert_ptr_ne(x, nvg_aval_get(NVM_F32, 2, b));
  ck_assert_ptr_eq(nvg_aval_as(x, NVM_I8), nvg_aval_get(NVM_I8, 2, a));
  ck_assert_ptr_eq(nvg_aval_as(x, NVM_I8)->shape, x->shape);
  ck_assert_int_eq(x->size, 12);
  ck_assert_int_eq(nvg_aval_get(NVM_F32, 3, (int64_t[]){ 5, 0, 7 })->size, 0);
  ck_assert_ptr_null(nvg_aval_get(NVM_F32, 1, (int64_t[]){ -1 }));
  ck_assert_str_eq(nvb_message(), "negative extent in shape (-1,)");
  ck_assert_ptr_null(nvg_aval_get(NVM_F32, 3, (int64_t[]){ 1ll << 31, 1ll << 31, 4 }));
  /* too many bytes but for the 0 */
  ck_assert_ptr_null(nvg_aval_get(NVM_F32, 3, (int64_t[]){ 1ll << 40, 0, 1ll << 40 }));
  ck_assert_ptr_null(nvg_aval_get(NVM_F32, 33, (int64_t[33]){ 0 }));
}
END_TEST

START_TEST(a_value_is_released_once_with_its_node) {
  released = 0;
  nvg_node *x = nvg_leaf_new(nvg_aval_get(NVM_F32, 1, (int64_t[]){ 8 }), value(1)),
           *y = nvg_apply(NVG_OP_SIN, &x, 1, NULL, 0, NVM_F64);
  nvg_node_unref(x);
  ck_assert_int_eq(released, 0);
  nvg_node_unref(y);
  ck_assert_int_eq(released, 1);
  ck_assert_ptr_null(nvg_leaf_new(NULL, value(1))); /* taken even if it fails */
  ck_assert_int_eq(released, 2);
}
END_TEST

START_TEST(bytes_that_only_pending_nodes_hold_are_counted) {
  int64_t before = nvg_pending_bytes();
  nvg_node *x = nvg_leaf_new(nvg_aval_get(NVM_F32, 1, (int64_t[]){ 100 }), value(1)),
           *y = nvg_apply(NVG_OP_NEGATIVE, &x, 1, NULL, 0, NVM_F64);
  ck_assert_int_eq(nvg_pending_bytes(), before); /* the caller holds x too */
  nvg_node *again = nvg_node_ref(x);
  nvg_node_unref(x);
  ck_assert_int_eq(nvg_pending_bytes(), before);
  nvg_node_unref(again);
  ck_assert_int_eq(nvg_pending_bytes(), before + 400);
  nvg_node *z = nvg_apply(NVG_OP_ADD, (nvg_node *[]){ y, y }, 2, NULL, 0, NVM_F64);
  nvg_node_unref(y);
  ck_assert_int_eq(nvg_pending_bytes(), before + 400);
  nvg_node_unref(z);
  ck_assert_int_eq(nvg_pending_bytes(), before);
}
END_TEST

static void *intern(void *arg) {
  const nvg_aval **out = arg;
  for (int64_t i = 0; i < 2000; i++) out[i] = nvg_aval_get(NVM_F64, 2, (int64_t[]){ 1000 + i, 7 });
  return NULL;
}
START_TEST(threads_agree_on_avals) {
  enum { T = 4 };
  static const nvg_aval *got[T][2000];
  pthread_t t[T];
  for (int i = 0; i < T; i++) pthread_create(&t[i], NULL, intern, got[i]);
  for (int i = 0; i < T; i++) pthread_join(t[i], NULL);
  for (int i = 1; i < T; i++) ck_assert_mem_eq(got[i], got[0], sizeof got[0]);
}
END_TEST

/* A bit of everything that allocates while building. */
static int build_and_stage(void) {
  nvg_node *x = nvg_leaf_new(nvg_aval_get(NVM_F32, 2, (int64_t[]){ 40, 1000 }), NULL), *w = nvg_weak('f', 2, 0, 0),
           *r[4] = { NULL };
  nvg_attr axis = I("axis", 0);
  int status = NVM_ERR_MEMORY;
  if (x && w) {
    nvg_node *in[2] = { x, w };
    r[0] = nvg_apply(NVG_OP_MULTIPLY, in, 2, NULL, 0, NVM_F64);
    r[1] = r[0] ? nvg_apply(NVG_OP_VAR, &r[0], 1, &axis, 1, NVM_F64) : NULL;
    r[2] = r[1] ? nvg_apply(NVG_OP_SOFTMAX, &r[0], 1, NULL, 0, NVM_F64) : NULL;
    nvg_node *three[3] = { x, r[2], x };
    r[3] = r[2] ? nvg_apply(NVG_OP_CONCAT, three, 3, &axis, 1, NVM_F64) : NULL;
    status = r[3] ? stages(r, 4, NULL) : nvb_status();
  }
  for (int i = 0; i < 4; i++) nvg_node_unref(r[i]);
  nvg_node_unref(w);
  nvg_node_unref(x);
  return status;
}

START_TEST(each_allocation_may_fail_and_nothing_is_left) {
  ck_assert_int_eq(build_and_stage(), NVM_OK); /* avals and fragments are there for good */
  int64_t before = nvb_live_blocks();
  for (int64_t n = 1;; n++) {
    nvb_fail_alloc(n, n % 2);
    int status = build_and_stage();
    nvb_fail_alloc(0, 0);
    ck_assert_int_eq(nvb_live_blocks(), before);
    if (!status) {
      ck_assert_int_gt(n, 20);
      break;
    }
    ck_assert_int_eq(status, NVM_ERR_MEMORY);
    ck_assert_int_lt(n, 100000);
  }
}
END_TEST

/* ---- the last handle and the last pending user of a value go at the same time */
typedef struct leaving { nvg_node *x, *y; atomic_int turn, done; int turns; } leaving;
static void *let_go(void *arg) {
  leaving *l = arg;
  for (int i = 1; i <= l->turns; i++) {
    while (atomic_load(&l->turn) < i) {}
    nvg_node_unref(l->y);
    atomic_fetch_add(&l->done, 1);
  }
  return NULL;
}
START_TEST(owners_in_two_threads_let_go) {
  leaving l = { .turns = 20000 };
  pthread_t t;
  int64_t before = nvg_pending_bytes(), live = 0;
  pthread_create(&t, NULL, let_go, &l);
  for (int i = 1; i <= l.turns; i++) {
    l.x = nvg_leaf_new(nvg_aval_get(NVM_F32, 1, (int64_t[]){ 8 }), value(1));
    l.y = nvg_apply(NVG_OP_SIN, &l.x, 1, NULL, 0, NVM_F64);
    if (i == 1) live = nvb_live_blocks();
    ck_assert_int_eq(nvb_live_blocks(), live);
    atomic_store(&l.turn, i);
    nvg_node_unref(l.x);
    while (atomic_load(&l.done) < i) {}
  }
  pthread_join(t, NULL);
  ck_assert_int_eq(nvg_pending_bytes(), before);
}
END_TEST

SUITE("graph_node", owners_in_two_threads_let_go, a_chain_of_a_million_nodes_is_freed_flat,
      avals_are_one_per_shape_and_dtype, a_value_is_released_once_with_its_node,
      bytes_that_only_pending_nodes_hold_are_counted, threads_agree_on_avals,
      each_allocation_may_fail_and_nothing_is_left)
