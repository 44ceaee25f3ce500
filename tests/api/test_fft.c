/* The C API's Fourier transforms: every function, against sums in double, and what is rejected. */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "../suite.h"
#include "nvm/nvm.h"

static nvm_ctx *ctx;
static nvm_scope *scope;
static void open_all(void) {
  ck_assert_int_eq(nvm_ctx_new(&ctx, NULL), NVM_OK);
  scope = nvm_scope_open(ctx);
}
static void close_all(void) {
  nvm_scope_close(scope);
  nvm_ctx_free(ctx);
}

enum { N = 6, HALF = N / 2 + 1 };
static const double complex signal[N] = { 1 + 2 * I, -3, 0.5 - I, 4 * I, 2, -1 - 1 * I };
static const double real_signal[N] = { 1, -3, 0.5, 4, 2, -1 };
static nvm_array *of(const double complex *x, int64_t n) { return nvm_from_host(ctx, NVM_C128, 1, &n, x); }
static nvm_array *real_of(const double *x, int64_t n) { return nvm_from_host(ctx, NVM_F64, 1, &n, x); }

static double complex sum_of(const double complex *x, int n, int k, int sign) {
  double complex s = 0;
  for (int j = 0; j < n; j++) s += x[j] * cexp(sign * 2 * M_PI * I * j * k / n);
  return s;
}
static void near(nvm_array *a, int n, const double complex *want) {
  double complex got[16];
  ck_assert_msg(a && nvm_size(a) == n, "%s", nvm_last_error());
  ck_assert_int_eq(nvm_dtype_of(a), NVM_C128);
  ck_assert_int_eq(nvm_copy_to_host(a, got, sizeof *got * (size_t)n), NVM_OK);
  for (int i = 0; i < n; i++) ck_assert_double_le(cabs(got[i] - want[i]), 1e-14);
}
static void near_real(nvm_array *a, int n, const double *want) {
  double got[16];
  ck_assert_msg(a && nvm_size(a) == n, "%s", nvm_last_error());
  ck_assert_int_eq(nvm_dtype_of(a), NVM_F64);
  ck_assert_int_eq(nvm_copy_to_host(a, got, sizeof *got * (size_t)n), NVM_OK);
  for (int i = 0; i < n; i++) ck_assert_double_le(fabs(got[i] - want[i]), 1e-14);
}

START_TEST(along_one_axis) {
  double complex forward[N], inverse[N], half[HALF], as_complex[N];
  for (int k = 0; k < N; k++) forward[k] = sum_of(signal, N, k, -1), inverse[k] = sum_of(signal, N, k, 1) / N;
  for (int j = 0; j < N; j++) as_complex[j] = real_signal[j];
  for (int k = 0; k < HALF; k++) half[k] = sum_of(as_complex, N, k, -1);
  near(nvm_fft(of(signal, N), -1, -1, NVM_NORM_BACKWARD), N, forward);
  near(nvm_ifft(of(signal, N), N, 0, NVM_NORM_BACKWARD), N, inverse);
  near(nvm_rfft(real_of(real_signal, N), -1, 0, NVM_NORM_BACKWARD), HALF, half);
  near_real(nvm_irfft(of(half, HALF), -1, 0, NVM_NORM_BACKWARD), N, real_signal);
  nvm_array *back = nvm_ihfft(real_of(real_signal, N), -1, 0, NVM_NORM_ORTHO);
  near_real(nvm_hfft(back, N, 0, NVM_NORM_ORTHO), N, real_signal);
  for (int k = 0; k < N; k++) forward[k] /= N;
  near(nvm_fft(of(signal, N), -1, -1, NVM_NORM_FORWARD), N, forward);
  for (int k = 0; k < 3; k++) forward[k] = sum_of(signal, 3, k, -1);
  near(nvm_fft(of(signal, N), 3, -1, NVM_NORM_BACKWARD), 3, forward);
}
END_TEST

START_TEST(along_several_axes) {
  int64_t shape[2] = { 2, 3 }, s[2] = { 2, 3 };
  int axes[2] = { 0, 1 };
  nvm_norm by = NVM_NORM_BACKWARD;
  nvm_array *x = nvm_reshape(of(signal, N), 2, shape), *real = nvm_reshape(real_of(real_signal, N), 2, shape);
  near(nvm_ifftn(nvm_fftn(x, NULL, NULL, 0, by), s, axes, 2, by), N, signal);
  near(nvm_ifft2(nvm_fft2(x, s, NULL, 2, by), NULL, NULL, 0, by), N, signal);
  near_real(nvm_irfftn(nvm_rfftn(real, NULL, axes, 2, by), s, NULL, 2, by), N, real_signal);
  near_real(nvm_irfft2(nvm_rfft2(real, NULL, NULL, 0, by), s, axes, 2, by), N, real_signal);
  near(nvm_ifft(nvm_fftn(of(signal, N), NULL, axes, 1, by), -1, -1, by), N, signal);
}
END_TEST

START_TEST(shifts_and_frequencies) {
  const double of_five[5] = { 0, 1, 2, -2, -1 }, shifted[5] = { -2, -1, 0, 1, 2 }, of_four[3] = { 0, 0.5, 1 };
  nvm_array *at = nvm_fftfreq(ctx, NVM_F64, 5, 0.2);
  near_real(at, 5, of_five);
  near_real(nvm_fftshift(at, NULL, 0), 5, shifted);
  near_real(nvm_ifftshift(nvm_fftshift(at, (int[]){ 0 }, 1), (int[]){ -1 }, 1), 5, of_five);
  near_real(nvm_rfftfreq(ctx, NVM_F64, 4, 0.5), 3, of_four);
  ck_assert_int_eq(nvm_dtype_of(nvm_fftfreq(ctx, NVM_DTYPE_DEFAULT, 4, 1)), nvm_ctx_default_float(ctx));
}
END_TEST

static void rejected(nvm_array *a, int status, const char *text) {
  ck_assert_ptr_null(a);
  ck_assert_msg(nvm_last_status() == status && strstr(nvm_last_error(), text), "%d %s", nvm_last_status(),
                nvm_last_error());
  nvm_scope_close(scope);
  scope = nvm_scope_open(ctx);
}
START_TEST(what_is_rejected) {
  nvm_norm by = NVM_NORM_BACKWARD;
  rejected(nvm_fft(of(signal, N), 0, 0, by), NVM_ERR_VALUE, "number of points is 0");
  rejected(nvm_fft(of(signal, N), (int64_t)1 << 31, 0, by), NVM_ERR_VALUE, "at most 2147483647 points");
  rejected(nvm_fft(of(signal, N), -1, 1, by), NVM_ERR_INDEX, "axis 1 is out of range");
  rejected(nvm_rfft(of(signal, N), -1, 0, by), NVM_ERR_TYPE, "real numbers");
  rejected(nvm_fft(of(signal, N), -1, 0, (nvm_norm)7), NVM_ERR_VALUE, "norm is");
  rejected(nvm_fftn(of(signal, N), NULL, (int[]){ 0, 0 }, 2, by), NVM_ERR_VALUE, "given twice");
  rejected(nvm_fftn(of(signal, N), (int64_t[]){ 4, 4 }, NULL, 2, by), NVM_ERR_VALUE, "2 entries for 1 dimensions");
  rejected(nvm_fftn(of(signal, N), NULL, (int[]){ 0 }, 40, by), NVM_ERR_VALUE, "entries");
  rejected(nvm_fftfreq(ctx, NVM_F64, 0, 1), NVM_ERR_VALUE, "number of points is 0");
}
END_TEST

SUITE_WITH("fft", open_all, close_all, along_one_axis, along_several_axes, shifts_and_frequencies, what_is_rejected)
