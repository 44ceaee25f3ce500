/* One rule for NULL: a call that is given it where the header does not say what it means has a status with a message,
   or gives NULL with one, and does nothing. The calls are made from the headers (make_null_calls.py). Options that are
   0 but for their version are those of the INIT macro; versions that the library does not have are refused, and so are
   shapes and strides that no memory has. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "nvm/linalg.h"
#include "nvm/loop.h"
#include "nvm/random.h"
#include "nvm/vmap.h"

static nvm_ctx *ctx;
static nvm_scope *scope;
static nvm_array *array, *arrays[2];
static nvm_fn *fn;
static nvm_traced *traced;
static nvm_loop *loop;
static nvm_vmap_trace *vmap_trace;
static nvm_generator *generator;
static nvm_profile *profile;
static const nvm_generator_state generator_state = { .key = 1 };
static const nvm_strided elements = { .each = 8 };
static const nvm_loop_options steps = { .version = NVM_LOOP_OPTIONS_VERSION, .kind = NVM_SCAN, .length = 2 };
static const int64_t ones[4] = { 1, 1, 1, 1 };
static const int axes[2] = { 0, 1 };
static const double numbers[4] = { 1, 2, 3, 4 };
static const nvm_attr attr = { .name = "axis", .kind = 'i' };
static const nvm_index indices[2] = { { .axis = 0 }, { .axis = 1 } };
static max_align_t space[256];
static void *const memory = space;

static int trace(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  out[0] = nvm_add(in[0], in[1]);
  out[1] = nvm_mul(in[0], in[1]);
  return out[0] && out[1] ? NVM_OK : nvm_last_status();
}
static void set_up(void) {
  static const int64_t shape[2] = { 2, 2 };
  nvm_array *in[2];
  ck_assert(!nvm_ctx_new(&ctx, NULL) && !nvm_fn_new(&fn, ctx, trace, NULL, 2, 2) && !nvm_trace_begin(ctx));
  in[0] = nvm_placeholder(ctx, NVM_F64, 2, shape), in[1] = nvm_placeholder(ctx, NVM_F64, 2, shape);
  ck_assert(!nvm_traced_new(&traced, ctx, in, 2, in, 2) && !nvm_trace_end(ctx));
  nvm_array_unref(in[0]), nvm_array_unref(in[1]);
  ck_assert(!nvm_generator_new(&generator, ctx, 1) && !nvm_profile_new(&profile, NULL));
  scope = nvm_scope_open(ctx);
  array = arrays[0] = arrays[1] = nvm_from_host(ctx, NVM_F64, 2, shape, numbers);
  nvm_array *const *ins;
  nvm_array *outs[2];
  int n;
  ck_assert(!nvm_loop_open(&loop, ctx, &steps, arrays, 2) && !nvm_loop_inputs(&ins, &n, loop) && n == 2);
  ck_assert(!nvm_loop_outputs(loop, ins, 2) && nvm_loop_results(loop) == 2 && !nvm_loop_close(loop, outs));
  nvm_array_unref(outs[0]), nvm_array_unref(outs[1]);
  ck_assert(!nvm_vmap_open(&vmap_trace, ctx, arrays, NULL, 2) && !nvm_vmap_inputs(&ins, &n, vmap_trace) && n == 2);
  ck_assert(!nvm_vmap_close(outs, vmap_trace, ins, NULL, 2));
  nvm_array_unref(outs[0]), nvm_array_unref(outs[1]);
  ck_assert(array != NULL && !*nvm_last_error());
}
static void tear_down(void) {
  nvm_loop_free(loop);
  nvm_vmap_free(vmap_trace);
  nvm_generator_free(generator);
  nvm_profile_free(profile);
  nvm_scope_close(scope);
  nvm_traced_free(traced);
  nvm_fn_free(fn);
  nvm_ctx_free(ctx);
}

static const char *title;
static void null_is_refused(int status) {
  ck_assert_msg(status != NVM_OK, "%s: NULL is taken", title);
  ck_assert_msg(nvm_last_status() != NVM_OK && *nvm_last_error(), "%s: nothing says why it is refused", title);
}
static void version_is_refused(int status) {
  ck_assert_msg(status == NVM_ERR_VALUE && nvm_last_status() == NVM_ERR_VALUE && strstr(nvm_last_error(), "version"),
                "%s: %d %s", title, status, nvm_last_error());
}
#include "null_calls.h"
START_TEST(null_and_unknown_versions) {
  title = null_calls[_i];
  call_with_null(_i);
}
END_TEST

START_TEST(options_of_zeros) {
  nvm_ctx *c;
  nvm_ctx_options co = { .version = NVM_CTX_OPTIONS_VERSION };
  ck_assert_msg(!nvm_ctx_new(&c, &co), "%s", nvm_last_error());
  ck_assert_int_eq(nvm_ctx_default_float(c), NVM_F64);
  ck_assert_int_eq(nvm_ctx_free(c), NVM_OK);
  nvm_matmul_options po = { .version = NVM_MATMUL_OPTIONS_VERSION, .precision = NVM_PRECISION_TF32 };
  nvm_array *product = nvm_matmul_opt(array, array, &po);
  ck_assert_msg(product && nvm_dtype_of(product) == NVM_F64, "%s", nvm_last_error());
  ck_assert(nvm_tensordot(array, array, NULL, NULL, 1, &po) && nvm_einsum("ij,jk", arrays, 2, &po));
  nvm_loop_options lo = { .version = NVM_LOOP_OPTIONS_VERSION, .kind = NVM_SCAN };
  nvm_scan_options so = { .version = NVM_SCAN_OPTIONS_VERSION };
  nvm_loop *scan;
  nvm_array *swept[2];
  ck_assert_msg(!nvm_loop_open(&scan, ctx, &lo, arrays, 2), "%s", nvm_last_error());
  nvm_loop_free(scan);
  ck_assert_msg(!nvm_scan(swept, ctx, trace, NULL, arrays, 2, NULL, 0, 0, &so), "%s", nvm_last_error());
  nvm_array_unref(swept[0]), nvm_array_unref(swept[1]);
  nvm_tune_options to = { .version = NVM_TUNE_OPTIONS_VERSION };
  ck_assert_msg(!nvm_tune_begin(&to) && !nvm_tune_end(), "%s", nvm_last_error());
}
END_TEST

static const struct hostile {
  int rank;
  int64_t shape[3], strides[3];
} hostile[] = {
  { -1, { 1 }, { 8 } },
  { INT_MIN, { 1 }, { 8 } },
  { INT_MAX, { 1 }, { 8 } },
  { NVM_MAX_RANK + 1, { 1 }, { 8 } },
  { 1, { -1 }, { 8 } },
  { 1, { INT64_MIN }, { 8 } },
  { 2, { INT64_MAX, INT64_MAX }, { 8, 8 } },
  { 2, { 1LL << 32, 1LL << 32 }, { 0, 0 } },
  { 3, { 0, INT64_MAX, INT64_MAX }, { 8, 8, 8 } },
  { 1, { 2 }, { INT64_MAX - 7 } },
  { 1, { 2 }, { INT64_MIN } },
  { 1, { 3 }, { INT64_MIN / 2 } },
  { 2, { 2, 2 }, { INT64_MAX / 2 - 3, INT64_MAX / 2 - 3 } },
  { 1, { 1LL << 40 }, { 1LL << 40 } },
  { 1, { 2 }, { -(1LL << 60) } },
};
static int released;
static void release(void *owner) { (void)owner, released++; }
START_TEST(what_no_memory_has) {
  const struct hostile *h = &hostile[_i];
  nvm_array *made[] = { nvm_from_host_borrow(ctx, NVM_F64, h->rank, h->shape, h->strides, numbers, release, NULL),
                        nvm_array_new_host(ctx, NVM_F64, h->rank, h->shape, h->strides, numbers, NULL, NULL) };
  for (int i = 0; i < 2; i++) ck_assert_msg(!made[i] && nvm_last_status() == NVM_ERR_VALUE, "it is made");
  ck_assert_msg(released == 1 && *nvm_last_error(), "released %d times", released);
}
END_TEST
/* A stride along which nothing is stepped may be anything. */
START_TEST(strides_that_do_not_matter) {
  static const int64_t one[2] = { 1, 4 }, wild[2] = { INT64_MIN, 8 };
  static const int64_t none[2] = { 0, 4 }, worse[2] = { INT64_MAX - 7, INT64_MIN };
  double out[4];
  nvm_array *a = nvm_from_host_borrow(ctx, NVM_F64, 2, one, wild, numbers, release, NULL);
  ck_assert_msg(!nvm_copy_to_host(nvm_add(a, a), out, sizeof out), "%s", nvm_last_error());
  ck_assert(out[0] == 2 && out[3] == 8);
  nvm_array *empty = nvm_from_host_borrow(ctx, NVM_F64, 2, none, worse, numbers, release, NULL);
  ck_assert_msg(!nvm_copy_to_host(nvm_add(empty, empty), out, 0), "%s", nvm_last_error());
}
END_TEST

START_TEST(a_context_with_an_open_scope) {
  ck_assert_int_eq(nvm_ctx_free(ctx), NVM_ERR_STATE);
  ck_assert_msg(strstr(nvm_last_error(), "[ctx_free] 1 of its scopes"), "%s", nvm_last_error());
  ck_assert(nvm_add(array, array) != NULL);
}
END_TEST

SUITE_WITH("null", set_up, tear_down, EACH(null_and_unknown_versions, null_calls), options_of_zeros,
           EACH(what_no_memory_has, hostile), strides_that_do_not_matter, a_context_with_an_open_scope)
