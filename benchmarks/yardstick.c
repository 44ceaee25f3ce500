/* What compiled C does with the benchmark's elementwise rows, and what memory allows: one line "name milliseconds" each
   (seed_ulp: the error of the first row).
   cc -O3 -march=native -ffast-math -fopenmp -fno-builtin-memcpy yardstick.c -lm; OMP_NUM_THREADS says how many threads.
   A process of its own: -ffast-math sets flush-to-zero for whoever loads it. */
#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <omp.h>
#include "timing.h"

enum { RUNS = 15 };
static const long N = 1L << 24;
static float *x, *y, *z, *o;

static float *array(void) {
  float *p = aligned_alloc(1 << 21, sizeof *p * (size_t)N);
  madvise(p, sizeof *p * (size_t)N, MADV_HUGEPAGE);
  return p;
}

static void copy(void) { /* 8 bytes an element moved, each thread its part */
#pragma omp parallel
  {
    long n = N / omp_get_num_threads(), i = omp_get_thread_num() * n;
    memcpy(o + i, x + i, sizeof *o * (size_t)n);
  }
}
static void seed(void) {
#pragma omp parallel for simd
  for (long i = 0; i < N; i++) o[i] = sqrtf(sinf(x[i]) * cosf(y[i]) + expf(-(z[i] * z[i])) + logf(x[i] + 1));
}
#ifdef __AVX512F__
typedef __m512 vec;
enum { W = 16 };
#define LOAD _mm512_load_ps
#define SET _mm512_set1_ps
#define STREAM _mm512_stream_ps
#else
typedef __m256 vec;
enum { W = 8 };
#define LOAD _mm256_load_ps
#define SET _mm256_set1_ps
#define STREAM _mm256_stream_ps
#endif
static void axpy(void) {
#pragma omp parallel for
  for (long i = 0; i < N; i += W) STREAM(o + i, SET(2.5f) * LOAD(x + i) + LOAD(y + i));
}
static void poly(void) {
#pragma omp parallel for
  for (long i = 0; i < N; i += W) {
    vec a = LOAD(x + i), b = LOAD(y + i), c = LOAD(z + i);
    STREAM(o + i, SET(2) * a + SET(3) * b * c - a * b + c * c);
  }
}
static void read_two(void) { /* the traffic of a reduction over two inputs */
  float s = 0;
#pragma omp parallel for simd reduction(+ : s)
  for (long i = 0; i < N; i++) s += (x[i] - y[i]) * (x[i] - y[i]);
  o[0] = s;
}

/* the greatest error of the seed row, the functions' arguments rounded to float, in units of its last place */
static double seed_ulp(void) {
  double worst = 0;
  int e;
  seed();
  for (long i = 0; i < N; i += 8) {
    float one = x[i] + 1, square = z[i] * z[i];
    double want = sqrt(sin((double)x[i]) * cos((double)y[i]) + exp(-(double)square) + log((double)one));
    frexp(want, &e);
    double d = fabs(o[i] - want) * ldexp(1, 24 - e);
    worst = d > worst ? d : worst;
  }
  return worst;
}

int main(void) {
  struct {
    const char *name;
    void (*run)(void);
  } row[] = { { "copy", copy }, { "seed", seed }, { "axpy", axpy }, { "poly", poly }, { "sumsq", read_two } };
  x = array(), y = array(), z = array(), o = array();
  unsigned r = 1;
#pragma omp parallel for
  for (long i = 0; i < N; i++) o[i] = 0;
  for (long i = 0; i < N; i++) {
    r = r * 1664525 + 1013904223, x[i] = (float)(r >> 8) * (1.5f / (1 << 24));
    r = r * 1664525 + 1013904223, y[i] = (float)(r >> 8) * (3.0f / (1 << 24)) - 1.5f;
    r = r * 1664525 + 1013904223, z[i] = (float)(r >> 8) * (4.0f / (1 << 24)) - 2.0f;
  }
  for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
    double t[RUNS];
    row[k].run();
    for (int i = 0; i < RUNS; i++) {
      double s = now();
      row[k].run();
      t[i] = now() - s;
    }
    printf("%s %.4f\n", row[k].name, median(t, RUNS) * 1e-3);
  }
  printf("seed_ulp %.3f\n", seed_ulp());
  return 0;
}
