/* Writes to parts of arrays that have values in host memory: in place where nobody else can see what is stored, by what
   the address says, and never where somebody does, by what others read. */
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "nvm/nvm.h"

enum { ROWS = 6, COLS = 5, ALL = ROWS * COLS };
static nvm_ctx *ctx;
static nvm_scope *scope;
static nvm_array *base; /* 0, 1, 2 ... as ROWS x COLS */
static void begin(void) {
  float x[ALL];
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  o.device = NVM_DEVICE_CPU;
  ck_assert_int_eq(nvm_ctx_new(&ctx, &o), NVM_OK);
  scope = nvm_scope_open(ctx);
  for (int i = 0; i < ALL; i++) x[i] = (float)i;
  base = nvm_from_host(ctx, NVM_F32, 2, (int64_t[]){ ROWS, COLS }, x);
}
static void end(void) {
  nvm_scope_close(scope);
  nvm_ctx_free(ctx);
}

static const void *address(nvm_array *a) {
  const void *data;
  ck_assert_msg(nvm_data(&data, NULL, a) == NVM_OK, "%s", nvm_last_error());
  return data;
}
static float element(nvm_array *a, int64_t i, int64_t j) {
  float x;
  nvm_array *e = nvm_element(a, (int64_t[]){ i, j });
  ck_assert_msg(e && nvm_copy_to_host(e, &x, sizeof x) == NVM_OK, "%s", nvm_last_error());
  nvm_array_unref(e);
  return x;
}
static nvm_array *window(int64_t row, int64_t rows, int64_t col, int64_t cols) {
  return nvm_view(base, 2, (int64_t[]){ row, col }, (int64_t[]){ rows, cols }, (int64_t[]){ 1, 1 }, NULL);
}
static void write(int64_t row, int64_t rows, int64_t col, int64_t cols, nvm_array *value) {
  int status =
      nvm_assign_view(base, 2, (int64_t[]){ row, col }, (int64_t[]){ rows, cols }, (int64_t[]){ 1, 1 }, NULL, value);
  ck_assert_msg(status == NVM_OK, "%s", nvm_last_error());
}
/* The window becomes 77; that, and nothing else, has changed. */
static void write_and_look(int64_t row, int64_t rows, int64_t col, int64_t cols) {
  write(row, rows, col, cols, nvm_float(77));
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t j = 0; j < COLS; j++) {
      int inside = i >= row && i < row + rows && j >= col && j < col + cols;
      ck_assert_float_eq(element(base, i, j), inside ? 77 : (float)(i * COLS + j));
    }
}

/* ---- in place: nobody else sees it */
START_TEST(what_nobody_else_holds_is_written_in_place) {
  const void *before = address(base);
  write_and_look(2, 2, 1, 3);
  ck_assert_ptr_eq(address(base), before);
}
END_TEST
START_TEST(views_that_nobody_has_read_hold_nothing) {
  const void *before = address(base);
  nvm_array *v = window(0, ROWS, 0, COLS), *w = window(1, 3, 1, 3);
  ck_assert_int_eq(nvm_assign(w, nvm_float(77)), NVM_OK);
  ck_assert_ptr_eq(address(base), before);
  ck_assert_float_eq(element(v, 1, 1), 77);
  nvm_array_unref(v), nvm_array_unref(w);
}
END_TEST
/* Windows as row, rows, column, columns: one that a view shows, one that is written beside it. */
static const int64_t beside[][8] = {
  { 0, 2, 0, COLS, 2, 3, 0, COLS }, { 0, ROWS, 1, 1, 0, ROWS, 2, 1 }, { 0, ROWS, 1, 1, 0, ROWS, 0, 1 },
  { 0, ROWS, 3, 2, 1, 4, 0, 3 },    { 1, 1, 0, 2, 1, 1, 2, 2 },       { 0, 3, 4, 1, 2, 3, 0, 4 },
  { 5, 1, 4, 1, 0, ROWS, 0, 4 },
};
START_TEST(what_is_beside_a_view_is_written_in_place) {
  const int64_t *b = beside[_i];
  nvm_array *v = window(b[0], b[1], b[2], b[3]), *old = nvm_snapshot(v);
  const void *before = address(base), *shown = address(v);
  write_and_look(b[4], b[5], b[6], b[7]);
  ck_assert_ptr_eq(address(base), before);
  ck_assert_ptr_eq(address(v), shown);
  ck_assert_float_eq(element(old, 0, 0), (float)(b[0] * COLS + b[2]));
  nvm_array_unref(v), nvm_array_unref(old);
}
END_TEST
START_TEST(a_view_that_is_read_and_written_lets_go) {
  const void *before = address(base);
  for (int64_t j = 0; j < COLS; j++) {
    nvm_array *v = window(0, ROWS, j, 1), *twice = nvm_mul(v, nvm_float(2));
    ck_assert_int_eq(nvm_assign(v, twice), NVM_OK);
    nvm_array_unref(v);
  }
  ck_assert_ptr_eq(address(base), before);
  ck_assert_float_eq(element(base, 3, 2), 2 * (3 * COLS + 2));
}
END_TEST
START_TEST(parts_of_an_array_are_moved_within_it) { /* down by a row, from what was there before */
  const void *before = address(base);
  nvm_array *from = window(0, ROWS - 1, 0, COLS);
  write(1, ROWS - 1, 0, COLS, from);
  ck_assert_ptr_eq(address(base), before);
  for (int64_t i = 0; i < ROWS; i++) ck_assert_float_eq(element(base, i, 1), (float)((i ? i - 1 : 0) * COLS + 1));
  ck_assert_float_eq(element(from, 1, 1), 1);
  nvm_array_unref(from);
}
END_TEST

/* ---- not in place: what others hold keeps its elements */
typedef nvm_array *holder(void);
static nvm_array *by_snapshot(void) { return nvm_snapshot(base); }
static nvm_array *by_hold(void) { return nvm_hold(base); }
static nvm_array *by_snapshot_of_a_view(void) {
  nvm_array *v = window(0, ROWS, 0, COLS), *r = nvm_snapshot(v);
  nvm_array_unref(v);
  return r;
}
static nvm_array *by_a_pending_operation(void) { return nvm_array_ref(nvm_mul(base, nvm_float(1))); }
static nvm_array *by_an_operation_on_a_view(void) {
  nvm_array *v = window(0, ROWS, 0, COLS), *r = nvm_array_ref(nvm_mul(v, nvm_float(1)));
  nvm_array_unref(v);
  return r;
}
static nvm_array *by_a_slice_that_is_no_view(void) {
  nvm_array *r = nvm_slice(base, (int64_t[]){ 0, 0 }, (int64_t[]){ ROWS, COLS }, NULL);
  ck_assert_int_eq(nvm_eval(&r, 1), NVM_OK);
  return nvm_array_ref(r);
}
static nvm_array *by_assignment(void) {
  nvm_array *r = nvm_array_ref(nvm_zeros(ctx, NVM_F32, 2, (int64_t[]){ ROWS, COLS }));
  ck_assert_int_eq(nvm_assign(r, base), NVM_OK);
  return r;
}
static holder *const holders[] = { by_snapshot,
                                   by_hold,
                                   by_snapshot_of_a_view,
                                   by_a_pending_operation,
                                   by_an_operation_on_a_view,
                                   by_a_slice_that_is_no_view,
                                   by_assignment };
START_TEST(what_others_hold_is_not_written) {
  nvm_array *other = holders[_i]();
  const void *before = address(base);
  write_and_look(2, 2, 1, 3);
  ck_assert_ptr_ne(address(base), before);
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t j = 0; j < COLS; j++) ck_assert_float_eq(element(other, i, j), (float)(i * COLS + j));
  nvm_array_unref(other);
  before = address(base); /* the copy is its own */
  write(0, 1, 0, 1, nvm_float(5));
  ck_assert_ptr_eq(address(base), before);
}
END_TEST
START_TEST(a_view_that_was_read_sees_what_is_written) {
  nvm_array *v = window(1, 4, 1, 3);
  ck_assert_float_eq(element(v, 1, 0), 2 * COLS + 1);
  const float *shown = address(v);
  write_and_look(2, 2, 1, 3);
  ck_assert_float_eq(*shown, COLS + 1);
  ck_assert_float_eq(element(v, 1, 0), 77);
  ck_assert_float_eq(*(const float *)address(v), COLS + 1);
  nvm_array_unref(v);
}
END_TEST
START_TEST(a_view_that_was_computed_before_its_base_sees_what_is_written) {
  ck_assert_int_eq(nvm_assign(base, nvm_float(5)), NVM_OK);
  nvm_array *v = window(1, 4, 1, 3);
  ck_assert_float_eq(*(const float *)address(v), 5);
  write(1, 1, 1, 1, nvm_float(77));
  ck_assert_float_eq(*(const float *)address(v), 77);
  nvm_array_unref(v);
}
END_TEST
static void let_go(void *owner) { ++*(int *)owner; }
START_TEST(memory_of_others_is_not_written) {
  float x[ALL] = { 0 };
  int released = 0;
  nvm_array *a = nvm_array_new_host(ctx, NVM_F32, 2, (int64_t[]){ ROWS, COLS }, NULL, x, let_go, &released);
  nvm_array *v = nvm_view(a, 2, (int64_t[]){ 1, 1 }, (int64_t[]){ 2, 2 }, (int64_t[]){ 1, 1 }, NULL);
  ck_assert_int_eq(nvm_assign(v, nvm_float(3)), NVM_OK);
  ck_assert_float_eq(x[COLS + 1], 0);
  ck_assert_float_eq(element(a, 1, 1), 3);
  ck_assert_int_eq(released, 1);
  nvm_array_unref(v), nvm_array_unref(a);
}
END_TEST
START_TEST(an_element_is_a_value) {
  nvm_array *e = nvm_element(base, (int64_t[]){ 2, 3 });
  float x;
  const void *before = address(base);
  write(2, 1, 3, 1, nvm_float(77));
  ck_assert_ptr_eq(address(base), before);
  ck_assert_int_eq(nvm_copy_to_host(e, &x, sizeof x), NVM_OK);
  ck_assert_float_eq(x, 2 * COLS + 3);
  nvm_array_unref(e);
  ck_assert_ptr_null(nvm_element(base, (int64_t[]){ 2, COLS }));
  ck_assert_int_eq(nvm_last_status(), NVM_ERR_INDEX);
}
END_TEST

/* ---- index arrays */
static nvm_array *list(int64_t n, const int64_t *at) { return nvm_from_host(ctx, NVM_I64, 1, &n, at); }
START_TEST(positions_are_written_in_their_order) {
  const int64_t rows[] = { 1, -1, 1, 0 }, columns[] = { 2, 4, -3, 0 }, bad[] = { 3, ROWS };
  const float x[] = { 50, 51, 52, 53 };
  int done;
  nvm_array *old = _i ? nvm_snapshot(base) : NULL, *values = nvm_from_host(ctx, NVM_F32, 1, (int64_t[]){ 4 }, x);
  const void *before = address(base);
  nvm_index at[] = { { .at = list(4, rows) }, { .at = list(4, columns), .axis = 1 } };
  ck_assert_int_eq(nvm_assign_at(&done, base, 2, at, 0, values), NVM_OK);
  ck_assert_int_eq(done, 1);
  ck_assert_int_eq(address(base) == before, !old);
  for (int i = 0; i < ALL; i++)
    ck_assert_float_eq(element(base, i / COLS, i % COLS), i == 7 ? 52 : i == ALL - 1 ? 51 : i == 0 ? 53 : (float)i);
  if (old) ck_assert_float_eq(element(old, 1, 2), 7);
  at[0] = (nvm_index){ .at = list(2, bad), .message_axis = 5 };
  ck_assert_int_eq(nvm_assign_at(&done, base, 1, at, 0, nvm_float(1)), NVM_ERR_INDEX);
  ck_assert_str_eq(nvm_last_error(), "[assign_at] index 6 is out of range for axis 5 of extent 6");
  ck_assert_float_eq(element(base, 3, 0), 15);
  nvm_array *part = window(1, 3, 1, 2); /* its rows are its own */
  at[0] = (nvm_index){ .at = list(1, columns) };
  ck_assert_int_eq(nvm_assign_at(&done, part, 1, at, 0, nvm_float(1)), NVM_OK);
  ck_assert_float_eq(element(base, 3, 2), 1);
  nvm_array_unref(part), nvm_array_unref(old);
}
END_TEST
START_TEST(an_array_indexes_itself) { /* what is stored does not change what was asked for */
  const int64_t x[] = { 1, 2, 3, 0 };
  int done;
  nvm_array *a = list(4, x);
  ck_assert_int_eq(nvm_assign_at(&done, a, 1, &(nvm_index){ .at = a }, 0, nvm_int(1)), NVM_OK);
  ck_assert_int_eq(done, 1);
  int64_t got[4];
  ck_assert_int_eq(nvm_copy_to_host(a, got, sizeof got), NVM_OK);
  for (int i = 0; i < 4; i++) ck_assert_int_eq(got[i], 1);
}
END_TEST
START_TEST(elements_are_read_by_arrays_masks_and_numbers) {
  const int64_t rows[] = { 4, -6 };
  const unsigned char bits[] = { 1, 0, 0, 1, 1 };
  nvm_array *mask = nvm_from_host(ctx, NVM_BOOL, 1, (int64_t[]){ COLS }, bits), *got;
  nvm_index at[] = { { .at = list(2, rows) }, { .at = mask, .axis = 1 }, { .number = -1, .axis = 1 } };
  float x[2 * COLS];
  ck_assert_int_eq(nvm_get_at(&got, base, 1, at, 0), NVM_OK); /* rows */
  ck_assert_int_eq(nvm_copy_to_host(got, x, sizeof x), NVM_OK);
  for (int i = 0; i < 2 * COLS; i++) ck_assert_float_eq(x[i], (float)(i < COLS ? 4 * COLS + i : i - COLS));
  nvm_array_unref(got);
  ck_assert_int_eq(nvm_get_at(&got, window(4, 1, 0, COLS), 1, at + 1, 1), NVM_OK); /* columns of a row */
  ck_assert_int_eq(nvm_copy_to_host(got, x, 3 * sizeof *x), NVM_OK);
  for (int i = 0; i < 3; i++) ck_assert_float_eq(x[i], (float)(4 * COLS + (i ? i + 2 : 0)));
  nvm_array_unref(got);
  at[1] = at[2];
  ck_assert_int_eq(nvm_get_at(&got, base, 2, at, 0), NVM_OK); /* the last column's, together */
  ck_assert_int_eq(nvm_copy_to_host(got, x, 2 * sizeof *x), NVM_OK);
  ck_assert(x[0] == 5 * COLS - 1 && x[1] == COLS - 1);
  nvm_array_unref(got);
  ck_assert_int_eq(nvm_get_at(&got, base, 1, &(nvm_index){ .at = nvm_add(list(2, rows), nvm_int(0)) }, 0), NVM_OK);
  ck_assert_ptr_null(got); /* has no value yet */
  ck_assert_int_eq(nvm_get_at(&got, base, 0, at, 0), NVM_ERR_VALUE);
}
END_TEST

static void release_nothing(void *owner) { (void)owner; }
START_TEST(what_strides_do_not_describe_is_left_to_an_expression) { /* parts of a borrowed array that is not packed */
  const float x[] = { 0, 1, 2, 3 };
  const int64_t two[] = { 2, 2 }, zero[] = { 0, 0 }, one[] = { 1, 1 }, strides[] = { 4, 8 }, row = 1;
  nvm_array *lent = nvm_from_host_borrow(ctx, NVM_F32, 2, two, strides, x, release_nothing, NULL), *got;
  nvm_array *part = nvm_view(lent, 2, zero, two, one, NULL);
  nvm_index at = { .at = list(1, &row) };
  ck_assert_ptr_null(nvm_element(base, (int64_t[]){ ROWS, 0 })); /* an earlier failure is not this call's */
  ck_assert_int_eq(nvm_get_at(&got, part, 1, &at, 0), NVM_OK);
  ck_assert_ptr_null(got);
  ck_assert_int_eq(nvm_get_at(&got, lent, 1, &at, 0), NVM_OK);
  float y[2];
  ck_assert_int_eq(nvm_copy_to_host(got, y, sizeof y), NVM_OK);
  ck_assert(y[0] == 1 && y[1] == 3);
  nvm_array_unref(got), nvm_array_unref(part);
}
END_TEST

/* ---- what is planned */
static int64_t planned(void) {
  nvm_counters c;
  ck_assert_int_eq(nvm_counters_get(&c, NVM_COUNTERS_VERSION), NVM_OK);
  return c.programs_planned;
}
START_TEST(one_program_serves_all_columns) {
  enum { N = 64 };
  nvm_array *a = nvm_array_ref(nvm_zeros(ctx, NVM_F64, 2, (int64_t[]){ N, N }));
  int64_t before = 0;
  for (int64_t j = 0; j < N; j++) {
    const int64_t start[] = { 0, j }, count[] = { N, 1 }, step[] = { 1, 1 };
    if (j == 3) before = planned(); /* the first has no value to lie over; some lie at multiples of 16 bytes */
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *v = nvm_view(a, 2, start, count, step, NULL);
    nvm_array *next = nvm_add(nvm_mul(v, nvm_float(2)), nvm_float(1));
    ck_assert_int_eq(nvm_assign_view(a, 2, start, count, step, NULL, next), NVM_OK);
    nvm_array_unref(nvm_element(a, start));
    nvm_array_unref(v);
    nvm_scope_close(s);
  }
  ck_assert_int_eq(planned(), before);
  nvm_array_unref(a);
}
END_TEST
START_TEST(a_chain_of_writes_ends) { /* a large pending array, and pending parts that are better computed with it */
  enum { N = 1 << 17, STEPS = 30 };
  nvm_array *a = nvm_array_ref(nvm_add(nvm_arange(ctx, NVM_F32, 0, N, 1), nvm_float(0)));
  int64_t zero = 0, half = N / 2, one = 1;
  int valued = 0;
  for (int i = 0; i < STEPS; i++) {
    nvm_array *v = nvm_view(a, 1, &zero, &half, &one, NULL);
    ck_assert_int_eq(nvm_assign(v, nvm_add(v, nvm_float(1))), NVM_OK);
    nvm_array_unref(v);
    valued += !nvm_is_pending(a);
  }
  ck_assert_int_ge(valued, 1);
  ck_assert_int_lt(valued, STEPS / 2);
  float *x = malloc(sizeof *x * N);
  ck_assert_int_eq(nvm_copy_to_host(a, x, sizeof *x * N), NVM_OK);
  for (int i = 0; i < N; i++) ck_assert_float_eq(x[i], (float)i + (i < N / 2 ? STEPS : 0));
  free(x);
  nvm_array_unref(a);
}
END_TEST
START_TEST(a_failure_leaves_the_array_as_it_was) {
  int64_t at = 9;
  nvm_array *bad = nvm_take(nvm_reshape(base, 1, (int64_t[]){ ALL }),
                            nvm_add(nvm_from_host(ctx, NVM_I64, 1, (int64_t[]){ 1 }, &at), nvm_int(ALL)), 0);
  ck_assert_int_ne(nvm_assign_view(base, 2, (int64_t[]){ 0, 0 }, (int64_t[]){ 1, 1 }, (int64_t[]){ 1, 1 }, NULL,
                                   nvm_reshape(bad, 2, (int64_t[]){ 1, 1 })),
                   NVM_OK);
  ck_assert_int_eq(nvm_assign_view(base, 2, (int64_t[]){ 0, 0 }, (int64_t[]){ 2, 2 }, (int64_t[]){ 1, 1 }, NULL,
                                   nvm_zeros(ctx, NVM_F32, 1, (int64_t[]){ 3 })),
                   NVM_ERR_VALUE);
  ck_assert_int_eq(
      nvm_assign_view(base, 2, (int64_t[]){ 0, 4 }, (int64_t[]){ 1, 2 }, (int64_t[]){ 1, 1 }, NULL, nvm_float(1)),
      NVM_ERR_INDEX);
  write_and_look(0, 1, 0, 1);
}
END_TEST

SUITE_WITH("writes", begin, end, what_nobody_else_holds_is_written_in_place, views_that_nobody_has_read_hold_nothing,
           EACH(what_is_beside_a_view_is_written_in_place, beside), a_view_that_is_read_and_written_lets_go,
           parts_of_an_array_are_moved_within_it, EACH(what_others_hold_is_not_written, holders),
           a_view_that_was_read_sees_what_is_written, a_view_that_was_computed_before_its_base_sees_what_is_written,
           memory_of_others_is_not_written, an_element_is_a_value, LOOP(positions_are_written_in_their_order, 2),
           an_array_indexes_itself, elements_are_read_by_arrays_masks_and_numbers,
           what_strides_do_not_describe_is_left_to_an_expression, one_program_serves_all_columns,
           a_chain_of_writes_ends, a_failure_leaves_the_array_as_it_was)
