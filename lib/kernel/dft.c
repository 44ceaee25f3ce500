/* Generates the text of a DFT fragment: decimation in time, butterflies of explicit fma, roots of unity correctly
   rounded to the type. A twisted transform multiplies the powers of its twiddle w into the roots; w, w^2, w^4 ... are
   given, as many as there are, and each further one is the square of the one before. Of real items the operations on
   imaginary parts that are zero are left out, and of two results that are conjugate one is computed, at each level.
   This file decides the order of every rounding of NVF_DFT; it never sees a layout. */
#include "kernel/dft.h"
#include "base/err.h"
#include "kernel/roots.h"

typedef struct cpx { int re, im; } cpx; /* names v<re>, v<im>; im 0: there is none, it is zero */
typedef struct writer {
  nvb_arena *arena;
  nvb_text t;
  int next, sign;
  nvm_dtype type;
  int items;                                    /* of the whole transform */
  int twists;                                   /* given powers of the twist; 0: there is none */
  int real;                                     /* the items are real numbers */
  cpx power[NVF_DFT_MAX + 1];                   /* of the twist, by exponent; re 0: not written yet */
  cpx factor[NVF_DFT_MAX + 1][NVF_DFT_MAX / 2]; /* by n and q: the twist times the q-th root; re 0: not written yet */
} writer;

/* e^(sign 2 pi i q / n) in the type of the transform */
static void unity_root(const writer *w, int n, int q, double *c, double *s) {
  double root[2];
  nvf_root(n, q, w->type, root);
  *c = root[0];
  *s = w->sign * root[1];
}

/* Each writes one operation and returns its variable. Variable 0 is zero: what it is added to, it leaves out. */
static int begin_value(writer *w) { /* begins an assignment and returns its variable */
  nvb_print(&w->t, "  v%d = ", w->next);
  return w->next++;
}
static int put_neg(writer *w, int a) {
  if (!a) return 0;
  int v = begin_value(w);
  nvb_print(&w->t, "-v%d\n", a);
  return v;
}
static int put_add(writer *w, int a, int b) {
  if (!a || !b) return a ? a : b;
  int v = begin_value(w);
  nvb_print(&w->t, "v%d + v%d\n", a, b);
  return v;
}
static int put_sub(writer *w, int a, int b) {
  if (!a || !b) return a ? a : put_neg(w, b);
  int v = begin_value(w);
  nvb_print(&w->t, "v%d - v%d\n", a, b);
  return v;
}
static int put_mul(writer *w, int a, int b) {
  if (!a || !b) return 0;
  int v = begin_value(w);
  nvb_print(&w->t, "v%d * v%d\n", a, b);
  return v;
}
static int put_mulk(writer *w, double k, int a) {
  if (!a) return 0;
  int v = begin_value(w);
  nvb_print(&w->t, "%a * v%d\n", k, a);
  return v;
}
static int put_fmak(writer *w, double k, int a, int b) {
  if (!a || !b) return a ? put_mulk(w, k, a) : b;
  int v = begin_value(w);
  nvb_print(&w->t, "fma(%a, v%d, v%d)\n", k, a, b);
  return v;
}
static int put_fma(writer *w, int a, int b, int c) {
  if (!a || !b || !c) return a && b ? put_mul(w, a, b) : c;
  int v = begin_value(w);
  nvb_print(&w->t, "fma(v%d, v%d, v%d)\n", a, b, c);
  return v;
}
static cpx put_conj(writer *w, cpx x) { return (cpx){ x.re, put_neg(w, x.im) }; }

/* The other half of a butterfly: 2 e - p, where p = e + f o */
static cpx put_other_half(writer *w, cpx e, cpx p) {
  return (cpx){ put_fmak(w, 2, e.re, put_neg(w, p.re)), put_fmak(w, 2, e.im, put_neg(w, p.im)) };
}

static void put_butterfly(writer *w, int n, int q, cpx e, cpx o, cpx *lo, cpx *hi) {
  if (q == 0) {
    *lo = (cpx){ put_add(w, e.re, o.re), put_add(w, e.im, o.im) };
    *hi = (cpx){ put_sub(w, e.re, o.re), put_sub(w, e.im, o.im) };
  } else if (4 * q == n) {
    cpx p = { put_sub(w, e.re, o.im), put_add(w, e.im, o.re) }, m = { put_add(w, e.re, o.im), put_sub(w, e.im, o.re) };
    *lo = w->sign > 0 ? p : m;
    *hi = w->sign > 0 ? m : p;
  } else {
    double c, s;
    unity_root(w, n, q, &c, &s);
    *lo = (cpx){ put_fmak(w, -s, o.im, put_fmak(w, c, o.re, e.re)), put_fmak(w, s, o.re, put_fmak(w, c, o.im, e.im)) };
    *hi = put_other_half(w, e, *lo);
  }
}

static cpx put_product(writer *w, cpx a, cpx b) {
  int re = put_fma(w, a.re, b.re, put_neg(w, put_mul(w, a.im, b.im)));
  return (cpx){ re, put_fma(w, a.re, b.im, put_mul(w, a.im, b.re)) };
}

/* The twist to the power of `to`: a square, or a product of the greatest power of two that is in it and the rest. */
static cpx power_of_twist(writer *w, int to) {
  int most = 1;
  while (2 * most <= to) most *= 2;
  if (!w->power[to].re && most < to)
    w->power[to] = put_product(w, power_of_twist(w, most), power_of_twist(w, to - most));
  if (!w->power[to].re) {
    cpx b = power_of_twist(w, to / 2);
    int im = put_mul(w, put_mulk(w, 2, b.re), b.im), nb = put_neg(w, b.im);
    w->power[to] = (cpx){ put_fma(w, nb, b.im, put_mul(w, b.re, b.re)), im };
  }
  return w->power[to];
}

/* A transform of n items, a part of the whole, has the twist w^(N / n). */
static cpx twist_factor(writer *w, int n, int q) {
  if (q == 0) return power_of_twist(w, w->items / n);
  cpx *f = &w->factor[n][q];
  if (!f->re) {
    double c, s;
    cpx b = power_of_twist(w, w->items / n);
    unity_root(w, n, q, &c, &s);
    *f = (cpx){ put_fmak(w, c, b.re, put_neg(w, put_mulk(w, s, b.im))), put_fmak(w, s, b.re, put_mulk(w, c, b.im)) };
  }
  return *f;
}

static void put_twisted_butterfly(writer *w, int n, int q, cpx e, cpx o, cpx *lo, cpx *hi) {
  int transposed = n % 4 == 0 && q >= n / 4; /* the factor is i or -i times that of q - n / 4 */
  cpx f = twist_factor(w, n, transposed ? q - n / 4 : q);
  if (transposed && w->sign > 0) f = (cpx){ put_neg(w, f.im), f.re };
  else if (transposed) f = (cpx){ f.im, put_neg(w, f.re) };
  *lo = (cpx){ put_fma(w, put_neg(w, f.im), o.im, put_fma(w, f.re, o.re, e.re)),
               put_fma(w, f.im, o.re, put_fma(w, f.re, o.im, e.im)) };
  *hi = put_other_half(w, e, *lo);
}

/* The twiddle e^(sign 2 pi i q / n) times x */
static cpx put_rotated(writer *w, int n, int q, cpx x) {
  double c, s;
  if (q == 0) return x;
  unity_root(w, n, q, &c, &s);
  return (cpx){ put_fmak(w, c, x.re, put_mulk(w, -s, x.im)), put_fmak(w, c, x.im, put_mulk(w, s, x.re)) };
}

/* Item j of p that a butterfly takes: x times its twiddle, and the twist of n items to the power of j */
static cpx put_turned(writer *w, int n, int q, int j, cpx x) {
  if (!w->twists || !j) return put_rotated(w, n, q * j, x);
  return put_product(w, put_rotated(w, n, q * j, power_of_twist(w, j * (w->items / n))), x);
}

/* y[0] + sum of cos(2 pi j k / p) a[j], and the sum of sin(sign 2 pi j k / p) b[j] */
static void put_halves(writer *w, int p, int k, cpx y, const cpx *a, const cpx *b, cpx *even, cpx *odd) {
  *even = y;
  for (int j = 1; j <= p / 2; j++) {
    double c, s;
    unity_root(w, p, j * k % p, &c, &s);
    *even = (cpx){ put_fmak(w, c, a[j].re, even->re), put_fmak(w, c, a[j].im, even->im) };
    *odd = j == 1 ? (cpx){ put_mulk(w, s, b[j].re), put_mulk(w, s, b[j].im) }
                  : (cpx){ put_fmak(w, s, b[j].re, odd->re), put_fmak(w, s, b[j].im, odd->im) };
  }
}

/* The transform of p items, an odd prime: pairs of items have common factors, those of cosines and those of sines. */
static void put_odd_butterfly(writer *w, int p, const cpx *y, cpx *out) {
  cpx a[NVF_DFT_PRIME], b[NVF_DFT_PRIME], even, odd = { 0 };
  out[0] = y[0];
  for (int j = 1; j <= p / 2; j++) {
    a[j] = (cpx){ put_add(w, y[j].re, y[p - j].re), put_add(w, y[j].im, y[p - j].im) };
    b[j] = (cpx){ put_sub(w, y[j].re, y[p - j].re), put_sub(w, y[j].im, y[p - j].im) };
    out[0] = (cpx){ put_add(w, out[0].re, a[j].re), put_add(w, out[0].im, a[j].im) };
  }
  for (int k = 1; k <= p / 2; k++) {
    put_halves(w, p, k, y[0], a, b, &even, &odd);
    out[k] = (cpx){ put_sub(w, even.re, odd.im), put_add(w, even.im, odd.re) };
    out[p - k] = (cpx){ put_add(w, even.re, odd.im), put_sub(w, even.im, odd.re) };
  }
}

static void put_halved(writer *w, const cpx *x, int n, int step, cpx *out) {
  for (int i = 0; i < n / 2; i++) {
    int q =
        w->twists && n % 4 == 0 ? i / 2 + (i % 2) * (n / 4) : i; /* both uses of a factor come one after the other */
    cpx e = x[2 * q * step], o = x[(2 * q + 1) * step];
    (w->twists ? put_twisted_butterfly : put_butterfly)(w, n, q, e, o, &out[q], &out[q + n / 2]);
  }
}

/* Of real items: results n / 2 - q and n - q are conjugate to those of q. */
static void put_halved_real(writer *w, const cpx *x, int n, int step, cpx *out) {
  for (int q = 0; 4 * q <= n && 2 * q < n; q++) {
    put_butterfly(w, n, q, x[2 * q * step], x[(2 * q + 1) * step], &out[q], &out[q + n / 2]);
    if (!q || 4 * q == n) continue;
    out[n / 2 - q] = put_conj(w, out[q + n / 2]);
    out[n - q] = put_conj(w, out[q]);
  }
}

/* Of real items: the results of n / p - q, in the opposite order, are conjugate to those of q. */
static void put_odd(writer *w, const cpx *x, int n, int p, int step, cpx *out) {
  for (int q = 0; w->real ? 2 * q < n / p : q < n / p; q++) {
    cpx y[NVF_DFT_PRIME], to[NVF_DFT_PRIME];
    for (int j = 0; j < p; j++) y[j] = put_turned(w, n, q, j, x[(p * q + j) * step]);
    put_odd_butterfly(w, p, y, to);
    for (int j = 0; j < p; j++) out[q + j * (n / p)] = to[j];
    for (int j = 0; j < p && w->real && q; j++) out[n - q - j * (n / p)] = put_conj(w, to[j]);
  }
}

static int least_factor(int n) {
  for (int p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

/* Replaces the items x[0], x[step] ... by their transform. */
static void put_transform(writer *w, cpx *x, int n, int step) {
  cpx out[NVF_DFT_MAX];
  int p = least_factor(n);
  if (n == 1) return;
  for (int j = 0; j < p; j++) put_transform(w, x + j * step, n / p, p * step);
  if (p == 2) (w->real ? put_halved_real : put_halved)(w, x, n, step, out);
  else put_odd(w, x, n, p, step, out);
  for (int i = 0; i < n; i++) x[i * step] = out[i];
}

static void write_frag(writer *w, const char *name, int n) {
  const char *type = w->type == NVM_F32 ? "f32" : "f64";
  cpx x[NVF_DFT_MAX];
  int parts = 2 - w->real, count = parts * n + 2 * w->twists;
  w->next = 1; /* 0 means "not written yet" */
  nvb_print(&w->t, "frag %s<%s>(", name, type);
  for (int i = 0; i < count; i++) nvb_print(&w->t, "%sv%d: %s", i ? ", " : "", w->next++, type);
  nvb_puts(&w->t, ") -> (");
  for (int i = 0; i < 2 * n; i++) nvb_print(&w->t, "%s%s", i ? ", " : "", type);
  nvb_puts(&w->t, ") {\n");
  for (int i = 0; i < n; i++) x[i] = w->real ? (cpx){ i + 1, 0 } : (cpx){ 2 * i + 1, 2 * i + 2 };
  for (int i = 0; i < w->twists; i++) w->power[1 << i] = (cpx){ 2 * (n + i) + 1, 2 * (n + i) + 2 };
  put_transform(w, x, n, 1);
  nvb_puts(&w->t, "  return ");
  for (int i = 0; i < n; i++) {
    nvb_print(&w->t, "%sv%d, ", i ? ", " : "", x[i].re);
    if (x[i].im) nvb_print(&w->t, "v%d", x[i].im);
    else nvb_puts(&w->t, "0.0");
  }
  nvb_puts(&w->t, "\n}\n");
}

int nvf_dft_has(int64_t n) {
  if (n < 1 || n > NVF_DFT_MAX) return 0;
  for (int64_t p = 2; p <= NVF_DFT_PRIME; p++)
    while (n % p == 0) n /= p;
  return n == 1;
}

const nvg_frag *nvf_dft(nvb_arena *a, nvg_fragset *set, int n, int sign, int powers, nvm_dtype type) {
  int real = powers == NVF_DFT_REAL, twists = real ? 0 : powers;
  if (!nvf_dft_has(n) || (type != NVM_F32 && type != NVM_F64))
    nvb_throw(a, NVM_ERR_VALUE, "[dft] %d items of this type: at most %d of f32 or f64, with prime factors up to %d", n,
              NVF_DFT_MAX, NVF_DFT_PRIME);
  nvb_text name = { .arena = a };
  nvb_print(&name, "dft%d_%s", n, sign > 0 ? "inverse" : "forward");
  if (twists) nvb_print(&name, "_twisted%d", twists);
  if (real) nvb_puts(&name, "_real");
  nvm_dtype param[NVF_DFT_PARAMS];
  int count = (2 - real) * n + 2 * twists;
  for (int i = 0; i < count; i++) param[i] = type;
  const nvg_frag *known = nvg_fragset_find(set, name.s, param, count);
  if (known) return known;
  nvb_clear();
  writer *w = NVB_NEW(a, writer);
  *w = (writer){
    .arena = a, .t = { .arena = a }, .sign = sign, .type = type, .items = n, .twists = twists, .real = real
  };
  write_frag(w, name.s, n);
  nvg_fragset_parse(set, w->t.s, name.s);
  return nvg_fragset_find(set, name.s, param, count);
}
