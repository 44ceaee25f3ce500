/* The arithmetic of Fourier transforms: errors against sums in long double, and one result for every vector width and
   number of lanes. */
#include "dispatch/fft_code.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "suite.h"

/* Vectors of 16 and 64 bytes are tested on every processor, in its own instructions. */
#pragma GCC diagnostic ignored "-Wpsabi"
#define UNROLL _Pragma("GCC unroll 16")
#define T float
#define WIDTH 16
#define NAME(x) x##_32_base
#define FN
#include "dispatch/fft_code.inc"
#define T float
#define WIDTH 64
#define NAME(x) x##_32_wide
#define FN
#include "dispatch/fft_code.inc"
#define T double
#define WIDTH 64
#define NAME(x) x##_64_wide
#define FN
#include "dispatch/fft_code.inc"

static uint64_t state = 88172645463325252u;
static double next(void) { /* between -1 and 1 */
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(int64_t)state / 9223372036854775808.0;
}

/* ---- values */
static void compare_with_sums(nvg_dft kind, int64_t n, int f64) {
  const nvd_fft *f = nvd_fft_get(kind, n, f64);
  int size = f64 ? 8 : 4, from_real = kind == NVG_DFT_REAL, to_real = kind == NVG_DFT_TO_REAL;
  int lanes = nvd_fft_lanes(f, 1);
  int64_t half = n / 2 + 1, in = from_real ? n : 2 * (to_real ? half : n),
          out = to_real ? n : 2 * (from_real ? half : n);
  char *x = malloc((size_t)(in * size)), *y = malloc((size_t)(out * size));
  void *scratch = aligned_alloc(64, (size_t)nvd_fft_workspace(f, lanes));
  for (int64_t i = 0; i < in; i++)
    if (f64) ((double *)(void *)x)[i] = next();
    else ((float *)(void *)x)[i] = (float)next();
  const char *from[] = { x };
  char *to[] = { y };
  nvd_fft_rows rows = { kind, 1, lanes, 1, from, to, 1, NULL };
  ck_assert_int_ge(lanes, 1);
  nvd_fft_run(f, &rows, scratch);
#define AT(p, i) (f64 ? (long double)((double *)(void *)(p))[i] : (long double)((float *)(void *)(p))[i])
  long double error = 0, sum = 0, *turn = malloc(sizeof *turn * 2 * (size_t)n);
  for (int64_t j = 0; j < n; j++) {
    turn[2 * j] = cosl(2 * acosl(-1) * (long double)j / (long double)n);
    turn[2 * j + 1] = sinl(2 * acosl(-1) * (long double)j / (long double)n);
  }
  int sign = kind == NVG_DFT_INVERSE || to_real ? 1 : -1;
  for (int64_t k = 0; k < (from_real ? half : n); k++) {
    long double re = 0, im = 0;
    for (int64_t j = 0; j < n; j++) {
      int64_t at = to_real && j >= half ? n - j : j;
      int bare = to_real && (!j || 2 * j == n); /* its imaginary part is not read */
      long double a = from_real ? AT(x, j) : AT(x, 2 * at), b = from_real || bare ? 0 : AT(x, 2 * at + 1);
      long double c = turn[j * k % n * 2], s = sign * turn[j * k % n * 2 + 1];
      if (at != j) b = -b;
      re += a * c - b * s;
      im += a * s + b * c;
    }
    long double dr = AT(y, to_real ? k : 2 * k) - re, di = to_real ? 0 : AT(y, 2 * k + 1) - im;
    error += dr * dr + di * di;
    sum += re * re + (to_real ? 0 : im * im);
  }
  long double bound = (f64 ? 1e-15L : 5e-8L) * (n > 2 ? log2l((long double)n) : 1);
  ck_assert_msg(sqrtl(error) <= bound * sqrtl(sum), "kind %d, %lld points, f64 %d: error %Lg of %Lg", (int)kind,
                (long long)n, f64, sqrtl(error / sum), bound);
  free(x), free(y), free(scratch), free(turn);
  nvd_fft_release(f);
}

START_TEST(errors_are_within_the_bound) {
  for (int kind = 0; kind < NVG_NDFT; kind++)
    for (int f64 = 0; f64 < 2; f64++) {
      for (int64_t n = 2; n < 140; n++) compare_with_sums((nvg_dft)kind, n, f64);
      static const int64_t more[] = { 169, 243, 256, 254,  257,  289,  343,  360,  381, 509,
                                      512, 625, 720, 1001, 1009, 1016, 1024, 1155, 1331 };
      for (size_t i = 0; i < sizeof more / sizeof *more; i++) compare_with_sums((nvg_dft)kind, more[i], f64);
    }
}
END_TEST

/* ---- bits */
/* Transforms `lanes` copies of x and checks that each has the bits of `want`. */
static void compare_lanes(const nvd_fft_code *code, const nvd_passes *p, int wide, int lanes, const char *x,
                          const char *want, int first) {
  size_t size = wide ? 8 : 4, n = (size_t)p->n;
  char *m = malloc(4 * n * size * (size_t)lanes);
  size_t plane = n * size * (size_t)lanes;
  nvd_planes a = { m, m + plane }, b = { m + 2 * plane, m + 3 * plane };
  for (size_t j = 0; j < 2 * n; j++)
    for (size_t l = 0; l < (size_t)lanes; l++) memcpy(m + (j * (size_t)lanes + l) * size, x + j * size, size);
  nvd_planes r = nvd_fft_transform(&(nvd_fft_team){ code, lanes, 1 }, p, a, b);
  for (size_t j = 0; j < n; j++)
    for (size_t l = 0; l < (size_t)lanes; l++) {
      size_t at = (j * (size_t)lanes + l) * size;
      char *re = (char *)(uintptr_t)want + j * size, *im = re + n * size;
      if (first && !l) memcpy(re, (char *)r.re + at, size), memcpy(im, (char *)r.im + at, size);
      ck_assert_msg(!memcmp(re, (char *)r.re + at, size) && !memcmp(im, (char *)r.im + at, size),
                    "%lld points, wide %d, vectors of %d, %d lanes: element %zu", (long long)n, wide, code->lanes,
                    lanes, j);
    }
  free(m);
}

START_TEST(bits_depend_on_no_width) {
  static const int64_t lengths[] = {
    256, 264, 273, 280, 288, 300, 343, 360, 375, 512, 729, 1001, 1024, 1056, 2048, 3125
  };
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (int wide = 0; wide < 2; wide++) {
      const nvd_fft *f = nvd_fft_get(NVG_DFT_FORWARD, lengths[i], wide);
      size_t size = wide ? 8 : 4, n = (size_t)lengths[i];
      char *x = malloc(2 * n * size), *want = malloc(2 * n * size);
      for (size_t j = 0; j < 2 * n; j++)
        if (wide) ((double *)(void *)x)[j] = next();
        else ((float *)(void *)x)[j] = (float)next();
      const nvd_fft_code *all[] = { wide ? nvd_fft_code_of_few() : &code_32_base, nvd_fft_code_of(wide),
                                    wide ? &code_64_wide : &code_32_wide };
      for (int c = 0; c < 3; c++)
        for (int lanes = 1; lanes <= all[c]->lanes; lanes += all[c]->lanes - 1)
          compare_lanes(all[c], &f->direct, wide, lanes, x, want, !c && lanes == 1);
      free(x), free(want);
      nvd_fft_release(f);
    }
}
END_TEST

/* ---- passes that read and write a row */
static nvd_planes exchanged(nvd_planes x, int is) { return is ? (nvd_planes){ x.im, x.re } : x; }

/* A complex row by passes between planes, and by passes of which the first reads it and the last writes the result. */
static void compare_ends(const nvd_fft_team *t, const nvd_passes *p, int backwards, nvd_planes a, nvd_planes b,
                         const char *x, char *want, char *got) {
  nvd_fft_read(t, a, &x, p->n, 0);
  nvd_planes r = nvd_fft_transform(t, p, exchanged(a, backwards), exchanged(b, backwards));
  nvd_fft_write(t, exchanged(r, backwards), &want, p->n, 0);
  if (backwards) nvd_fft_read(t, a, &x, p->n, 0);
  else nvd_fft_first(t, p->pass, x, a);
  r = nvd_fft_some(t, p, !backwards, p->npass - 1, exchanged(a, backwards), exchanged(b, backwards));
  nvd_fft_last(t, &p->pass[p->npass - 1], r, got, backwards);
}

/* The halves of the spectrum of a real row: made in planes and written, or in the row; read and joined, or joined. */
static void compare_halves(const nvd_fft_team *t, const nvd_fft *f, int join, nvd_planes a, nvd_planes b, const char *x,
                           char *want, char *got) {
  nvd_fft_read(t, a, &x, f->points + join, 0);
  if (join) nvd_fft_join(t, a, b, f->split, f->n);
  else nvd_fft_split(t, a, b, f->split, f->n);
  nvd_fft_write(t, b, &want, f->points + !join, 0);
  if (!join) {
    nvd_fft_split_row(t, a, got, f->split, f->n);
    return;
  }
  nvd_fft_join_row(t, x, b, f->split, f->n);
  nvd_fft_write(t, b, &got, f->points, 0);
}

START_TEST(passes_read_and_write_rows) {
  static const int64_t lengths[] = { 256, 264, 273, 280, 288, 300, 343, 512, 1001, 1056, 2048 };
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (int wide = 0; wide < 2; wide++)
      for (int way = 0; way < 4; way++) {
        const nvd_fft *f = nvd_fft_get(way < 2 ? NVG_DFT_FORWARD : NVG_DFT_REAL, lengths[i] << (way > 1), wide);
        size_t size = wide ? 8 : 4, n = (size_t)lengths[i] + 1;
        char *x = malloc(2 * n * size), *m = malloc(4 * n * size), *want[2];
        nvd_planes a = { m, m + n * size }, b = { m + 2 * n * size, m + 3 * n * size };
        for (size_t j = 0; j < 2 * n; j++)
          if (wide) ((double *)(void *)x)[j] = next();
          else ((float *)(void *)x)[j] = (float)next();
        const nvd_fft_code *all[] = { wide ? nvd_fft_code_of_few() : &code_32_base, nvd_fft_code_of(wide),
                                      wide ? &code_64_wide : &code_32_wide };
        for (int c = 0; c < 3; c++) {
          nvd_fft_team team = { all[c], 1, 1 };
          for (int k = 0; k < 2; k++) want[k] = calloc(2 * n, size);
          if (way < 2) compare_ends(&team, &f->direct, way, a, b, x, want[0], want[1]);
          else compare_halves(&team, f, way - 2, a, b, x, want[0], want[1]);
          ck_assert_msg(!memcmp(want[0], want[1], 2 * n * size), "%lld points, wide %d, vectors of %d, way %d",
                        (long long)lengths[i], wide, all[c]->lanes, way);
          for (int k = 0; k < 2; k++) free(want[k]);
        }
        free(x), free(m);
        nvd_fft_release(f);
      }
}
END_TEST

/* Transforms `count` rows of `in` bytes one by one, into rows of `out` bytes, or as many at once as a vector has
   lanes. */
static void transform_rows(nvg_dft kind, int64_t n, int f64, int lanes, int count, const char *x, size_t in, char *y,
                           size_t out) {
  const nvd_fft *f = nvd_fft_get(kind, n, f64);
  void *scratch = aligned_alloc(64, (size_t)nvd_fft_workspace(f, lanes));
  for (int at = 0; at < count; at += lanes) {
    const char *from[NVD_FFT_LANES];
    char *to[NVD_FFT_LANES];
    int some = count - at < lanes ? count - at : lanes;
    for (int i = 0; i < some; i++) from[i] = x + (size_t)(at + i) * in, to[i] = y + (size_t)(at + i) * out;
    nvd_fft_run(f, &(nvd_fft_rows){ kind, 1, lanes, some, from, to, 1, NULL }, scratch);
  }
  free(scratch);
  nvd_fft_release(f);
}

/* All kinds, lengths and dtypes: reading, transforming and writing rows together changes none of them, and nothing is
   written behind a row. */
START_TEST(rows_do_not_depend_on_their_group) {
  enum { GUARD = 64 };
  for (int kind = 0; kind < NVG_NDFT; kind++)
    for (int f64 = 0; f64 < 2; f64++)
      for (int64_t n = 2; n < 150; n++) {
        const nvd_fft *f = nvd_fft_get((nvg_dft)kind, n, f64);
        int most = nvd_fft_lanes(f, 1000), all = nvd_fft_code_of(f->wide)->lanes, count = 2 * all + 1;
        int least = nvd_fft_lanes(f, 1);
        size_t size = f64 ? 8 : 4, half = (size_t)n / 2 + 1, whole = (size_t)n, real = kind == NVG_DFT_REAL;
        size_t to_real = kind == NVG_DFT_TO_REAL, in = size * (real ? whole : 2 * (to_real ? half : whole));
        size_t out = size * (to_real ? whole : 2 * (real ? half : whole)), bytes = out * (size_t)count + GUARD;
        char *x = malloc(in * (size_t)count), *y = malloc(bytes), *want = malloc(bytes);
        for (size_t i = 0; i < in / size * (size_t)count; i++)
          if (f64) ((double *)(void *)x)[i] = next();
          else ((float *)(void *)x)[i] = (float)next();
        memset(y, 1, bytes), memset(want, 1, bytes);
        ck_assert(most == all || most == 1);
        transform_rows((nvg_dft)kind, n, f64, least, count, x, in, want, out);
        transform_rows((nvg_dft)kind, n, f64, all, count, x, in, y, out);
        ck_assert_msg(!memcmp(y, want, bytes), "kind %d, %lld points, f64 %d", kind, (long long)n, f64);
        free(x), free(y), free(want);
        nvd_fft_release(f);
      }
}
END_TEST

/* Threads that share a row divide each pass into parts, some of which end between vectors. */
START_TEST(threads_share_a_row) {
  static const int64_t lengths[] = { 4096, 5005, 4290, 10007, 32768, 46305, 65537, 65538 };
  for (int kind = 0; kind < NVG_NDFT; kind++)
    for (int f64 = 0; f64 < 2; f64++)
      for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int64_t n = lengths[i];
        const nvd_fft *f = nvd_fft_get((nvg_dft)kind, n, f64);
        size_t bytes = (size_t)(2 * n + 2) * (f64 ? 8 : 4);
        char *x = malloc(bytes), *y = calloc(bytes, 1), *want = calloc(bytes, 1);
        void *scratch = aligned_alloc(64, (size_t)nvd_fft_workspace(f, 1));
        for (int64_t j = 0; j < 2 * n + 2; j++)
          if (f64) ((double *)(void *)x)[j] = next();
          else ((float *)(void *)x)[j] = (float)next();
        const char *from[] = { x };
        nvd_fft_run(f, &(nvd_fft_rows){ (nvg_dft)kind, 1, 1, 1, from, &want, 1, NULL }, scratch);
        for (int threads = 2; threads < 5; threads++) {
          nvd_fft_run(f, &(nvd_fft_rows){ (nvg_dft)kind, 1, 1, 1, from, &y, threads, NULL }, scratch);
          ck_assert_msg(!memcmp(y, want, bytes), "kind %d, %lld points, f64 %d, %d threads", kind, (long long)n, f64,
                        threads);
        }
        free(x), free(y), free(want), free(scratch);
        nvd_fft_release(f);
      }
}
END_TEST

/* Reads rows of n numbers into planes and writes them back, with one row or a vector of them. */
static void move_rows(const nvd_fft_code *code, int wide, int lanes, int64_t n, int real) {
  size_t size = wide ? 8 : 4, width = size * (real ? 1 : 2), count = (size_t)(n * lanes);
  char *x = malloc(count * width), *y = calloc(count * width + 1, 1), *m = malloc(2 * count * size);
  nvd_planes planes = { m, m + count * size };
  const char *from[NVD_FFT_LANES];
  char *to[NVD_FFT_LANES];
  for (size_t i = 0; i < count * width; i++) x[i] = (char)(next() * 127);
  for (int l = 0; l < lanes; l++) from[l] = x + (size_t)(l * n) * width, to[l] = y + (size_t)(l * n) * width;
  (real ? code->read_real : code->read)(planes, from, n, lanes, (nvd_part){ 0, 1 });
  for (int64_t j = 0; j < n; j++)
    for (int l = 0; l < lanes; l++) {
      size_t at = (size_t)(j * lanes + l) * size;
      int same = !memcmp(m + at, from[l] + (size_t)j * width, size);
      for (size_t i = 0; i < size; i++)
        same &= m[count * size + at + i] == (real ? 0 : from[l][(size_t)j * width + size + i]);
      ck_assert_msg(same, "wide %d, vectors of %d, %d lanes, real %d: element %lld of %lld", wide, code->lanes, lanes,
                    real, (long long)j, (long long)n);
    }
  (real ? code->write_real : code->write)(planes, to, n, lanes, (nvd_part){ 0, 1 });
  ck_assert_msg(!memcmp(x, y, count * width) && !y[count * width], "wide %d, vectors of %d, %d lanes, real %d: %lld",
                wide, code->lanes, lanes, real, (long long)n);
  free(x), free(y), free(m);
}

START_TEST(rows_become_planes_and_rows) {
  const nvd_fft_code *all[] = { &code_32_base,         nvd_fft_code_of(0), &code_32_wide,
                                nvd_fft_code_of_few(), nvd_fft_code_of(1), &code_64_wide };
  for (int c = 0; c < 6; c++)
    for (int64_t n = 1; n < 70; n++)
      for (int lanes = 1; lanes <= all[c]->lanes; lanes += all[c]->lanes - 1)
        for (int real = 0; real < 2; real++) move_rows(all[c], c > 2, lanes, n, real);
}
END_TEST

START_TEST(plans_are_kept) {
  const nvd_fft *f = nvd_fft_get(NVG_DFT_FORWARD, 1000, 0), *inverse = nvd_fft_get(NVG_DFT_INVERSE, 1000, 0);
  ck_assert_ptr_eq(f, inverse);
  ck_assert_ptr_ne(f, nvd_fft_get(NVG_DFT_FORWARD, 1000, 1));
  ck_assert_ptr_ne(f, nvd_fft_get(NVG_DFT_REAL, 1000, 0));
  nvd_fft_release(f);
  nvd_fft_release(inverse);
  ck_assert_ptr_eq(f, nvd_fft_get(NVG_DFT_FORWARD, 1000, 0));
  nvd_fft_release(f);
}
END_TEST

SUITE("fft", errors_are_within_the_bound, bits_depend_on_no_width, rows_do_not_depend_on_their_group,
      passes_read_and_write_rows, threads_share_a_row, rows_become_planes_and_rows, plans_are_kept)
