/* Transforms in two passes, for every pair of radices: texts that a generator writes, interpreted and compiled, against
   the sum in higher precision. The roots of unity that they read, against long double. */
#include "gate.h"
#include "kernel/dft.h"
#include "kernel/roots.h"

/* twists: powers that the second pass takes; real: the first pass takes real numbers */
typedef struct shape { int na, nb, sign, twists; nvm_dtype type; int real; } shape;

static void write_twisted(char *to, const shape *s) {
  to += sprintf(to, "    v1r, v1i = load(w, a, only(LB, a))\n");
  for (int i = 1; i < s->twists; i++)
    to += sprintf(to, "    v%dr, v%di = load(w, a*%d, only(LB, a))\n", 1 << i, 1 << i, 1 << i);
  to += sprintf(to, "    er, ei = dft(cr, ci, b, %d", s->sign);
  for (int i = 0; i < s->twists; i++) to += sprintf(to, ", v%dr, v%di", 1 << i, 1 << i);
  sprintf(to, ")\n");
}

static void write_rotated(char *to, const shape *s) {
  sprintf(to,
          "    wr, wi = load(w, a*b, only(LB, a, b))\n    dr, di = map(rotate, cr, ci, wr, wi)\n"
          "    er, ei = dft(dr, di, b, %d)\n",
          s->sign);
}

/* Element a NB + b of the input, a + NA b of the result */
static void write_text(char *to, const shape *s) {
  const char *t = s->type == NVM_F32 ? "c64" : "c128";
  char second[1024];
  int n = s->na * s->nb;
  (s->twists ? write_twisted : write_rotated)(second, s);
  to += sprintf(to,
                "frag rotate<T: real>(ar: T, ai: T, br: T, bi: T) -> (T, T) { return fma(ar, br, -(ai*bi)), "
                "fma(ar, bi, ai*br) }\n"
                "kernel transform(x: %s[], y: mut %s[], w: roots(%s, %d, %d, %d), count: size) {\n"
                "  grid (g = (count + R - 1) // R) {\n"
                "    xr, xi = load(x, (g*R + r)*%d + a*%d + b, LA, where = g*R + r < count)\n"
                "    ar, ai = dft(xr, %sa, %d)\n    cr, ci = relayout(ar, ai, LB)\n%s"
                "    store(y, (g*R + r)*%d + a + b*%d, er, ei, where = g*R + r < count)\n  }\n}\n",
                t, t, t, n, s->sign, n, n, s->nb, s->real ? "" : "xi, ", s->sign, second, n, s->na);
  sprintf(to,
          "schedule cpu { LA = \"r: l4; a: i%d; b: I%d\"; LB = \"r: l4; a: I%d; b: i%d\"; R = 4 }\n"
          "schedule gpu1 { LA = \"r: w2; a: i%d; b: l%d\"; LB = \"r: w2; a: l%d; b: i%d\"; R = 2 }\n",
          s->na, s->nb, s->na, s->nb, s->na, s->nb, s->na, s->nb);
}

static double part(const shape *s, const void *v, int64_t i) {
  return s->type == NVM_F32 ? (double)((const float *)v)[i] : ((const double *)v)[i];
}

static void compare(const shape *s, const void *x, const void *y, int count) {
  int n = s->na * s->nb;
  long double wrong = 0, all = 0;
  for (int r = 0; r < count; r++)
    for (int k = 0; k < n; k++) {
      long double re = 0, im = 0;
      for (int t = 0; t < n; t++) {
        long double w = s->sign * 2 * 3.14159265358979323846264338327950288L * (int64_t)(t * k % n) / n;
        long double xr = part(s, x, 2 * (r * n + t)), xi = part(s, x, 2 * (r * n + t) + 1);
        re += xr * cosl(w) - xi * sinl(w);
        im += xr * sinl(w) + xi * cosl(w);
      }
      long double dr = re - part(s, y, 2 * (r * n + k)), di = im - part(s, y, 2 * (r * n + k) + 1);
      wrong += dr * dr + di * di;
      all += re * re + im * im;
    }
  double error = (double)sqrtl(wrong / all), most = (s->type == NVM_F32 ? 1.2e-7 : 2.3e-16) * (1 + .2 * log2(n));
  if (s->twists && (1 << s->twists < s->nb || s->nb & (s->nb - 1))) most *= 2; /* products of rounded powers */
  ck_assert_msg(error < most, "%d x %d, sign %d, %d twists: error %g, at most %g", s->na, s->nb, s->sign, s->twists,
                error, most);
}

static void transform_of(const shape *s) {
  enum { COUNT = 5 };
  char text[8192];
  int64_t all = (int64_t)s->na * s->nb * COUNT, size = s->type == NVM_F32 ? 4 : 8;
  void *x = malloc((size_t)(2 * all * size)), *y = calloc((size_t)all, (size_t)(2 * size));
  for (int64_t i = 0; i < 2 * all; i++) {
    double v = s->real && i % 2 ? 0 : 2 * gate_uniform() - 1;
    if (s->type == NVM_F32) ((float *)x)[i] = (float)v;
    else ((double *)x)[i] = v;
  }
  write_text(text, s);
  gate g = { .file = "transform", .text = text, .prefix = "cpu" };
  nvm_dtype pair = s->type == NVM_F32 ? NVM_C64 : NVM_C128;
  gate_in(&g, pair, x, all);
  gate_out(&g, pair, y, all);
  gate_size(&g, 0); /* the table, which nobody passes */
  gate_size(&g, COUNT);
  gate_run(&g);
  compare(s, x, y, COUNT);
  free(x);
  free(y);
}

START_TEST(radices) { /* every radix that a pass may have, beside one of every kind */
  static const int other[] = { 2, 3, 5, 13, 16 };
  int which = 0;
  for (int na = 1; na <= 26; na++)
    if (nvf_dft_has(na)) {
      int nb = other[which++ % 5];
      transform_of(&(shape){ na, nb, which % 2 ? -1 : 1, 0, which % 3 ? NVM_F32 : NVM_F64, 0 });
    }
}
END_TEST

START_TEST(real_items) { /* of every radix */
  for (int na = 1; na <= 32; na++)
    for (int sign = -1; sign <= 1 && nvf_dft_has(na); sign += 2)
      transform_of(&(shape){ na, 3 + na % 2, sign, 0, (na + sign) % 3 ? NVM_F32 : NVM_F64, 1 });
}
END_TEST

START_TEST(twists) { /* the powers of a twist are given, or products of those that are */
  for (int nb = 2; nb <= 32; nb++) {
    int most = 1, some = nb <= 16 && !(nb & (nb - 1) && nb % 12);
    while (1 << most < nb) most++;
    for (int given = some ? 1 : most; given <= most && nvf_dft_has(nb); given++)
      transform_of(&(shape){ nb > 8 ? 4 : 12, nb, given % 2 ? -1 : 1, given, nb % 3 ? NVM_F32 : NVM_F64, 0 });
  }
}
END_TEST

/* The nearest number to v, which has 11 bits more than a double: half a unit in the last place, and what v lacks */
static int is_nearest(double got, long double v, int digits) {
  int e;
  frexp(got, &e);
  return fabsl(got - v) <= ldexpl(.5L + .01L, e - digits);
}

START_TEST(roots_are_rounded) {
  static const int64_t sizes[] = { 1, 2, 3, 5, 7, 8, 12, 64, 360, 1001, 4096, 16384, 1000003 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int64_t n = sizes[i], q = 0; q < n; q += 1 + n / 997) {
      double root[2][2];
      nvf_root(n, q, NVM_F32, root[0]);
      nvf_root(n, q, NVM_F64, root[1]);
      /* the angle within an eighth of the circle, so that zeros and halves are exact */
      int64_t eighth = 8 * q / n, rest = 8 * q % n;
      if (eighth % 2) rest = n - rest;
      long double w = 3.14159265358979323846264338327950288L / 4 * rest / n, c = cosl(w), s = sinl(w), t = c;
      if ((eighth + 1) / 2 % 2) c = s, s = t;
      if (eighth >= 2 && eighth < 6) c = -c;
      if (eighth >= 4) s = -s;
      for (int wide = 0; wide < 2; wide++)
        ck_assert_msg(is_nearest(root[wide][0], c, wide ? 53 : 24) && is_nearest(root[wide][1], s, wide ? 53 : 24),
                      "root %lld of %lld in f%d", (long long)q, (long long)n, wide ? 64 : 32);
    }
}
END_TEST

#ifdef GATE_CUDA
int main(void) {
  return gate_emulator() ? RUN_SUITE("cuda transform", radices, real_items, twists, roots_are_rounded) : 77;
}
#else
SUITE("transform", radices, real_items, twists, roots_are_rounded)
#endif
