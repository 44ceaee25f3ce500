/* Generates the text of a DFT fragment: decimation in time, butterflies of explicit fma, roots of unity correctly
   rounded to the type. A twisted transform multiplies the powers of its twiddle w into the roots; repeated squaring
   makes these powers. This file decides the order of every rounding of NVF_DFT; it never sees a layout. */
#include "kernel/dft.h"
#include "base/err.h"

typedef struct cpx { int re, im; } cpx; /* names v<re>, v<im> */
typedef struct writer {
  nvb_arena *arena;
  nvb_text t;
  int next, sign;
  nvm_dtype type;
  int twisted;
  cpx power[NVF_DFT_MAX + 1];                   /* by n: the twist w^(N / n) of a transform of n items */
  cpx factor[NVF_DFT_MAX + 1][NVF_DFT_MAX / 2]; /* by n and q: the twist times the q-th root; re 0: not written yet */
} writer;

static const double quarter[17] = { /* cos(2 pi k / 64) */
                                    0x1.0000000000000p+0,
                                    0x1.fd88da3d12526p-1,
                                    0x1.f6297cff75cb0p-1,
                                    0x1.e9f4156c62ddap-1,
                                    0x1.d906bcf328d46p-1,
                                    0x1.c38b2f180bdb1p-1,
                                    0x1.a9b66290ea1a3p-1,
                                    0x1.8bc806b151741p-1,
                                    0x1.6a09e667f3bcdp-1,
                                    0x1.44cf325091dd6p-1,
                                    0x1.1c73b39ae68c8p-1,
                                    0x1.e2b5d3806f63bp-2,
                                    0x1.87de2a6aea963p-2,
                                    0x1.294062ed59f06p-2,
                                    0x1.8f8b83c69a60bp-3,
                                    0x1.917a6bc29b42cp-4,
                                    0
};

static double cos64(int k) { return k <= 16 ? quarter[k] : -quarter[32 - k]; } /* 0 <= k <= 32 */
static double sin64(int k) { return k <= 16 ? quarter[16 - k] : quarter[k - 16]; }

/* e^(sign 2 pi i q / n) in the type of the transform */
static void unity_root(const writer *w, int n, int q, double *c, double *s) {
  int k = q * (64 / n);
  *c = cos64(k);
  *s = w->sign * sin64(k);
  if (w->type == NVM_F32) {
    *c = (float)*c;
    *s = (float)*s;
  }
}

static int begin_value(writer *w) { /* begins an assignment and returns its variable */
  nvb_print(&w->t, "  v%d = ", w->next);
  return w->next++;
}
static int put_add(writer *w, int a, int b) {
  int v = begin_value(w);
  nvb_print(&w->t, "v%d + v%d\n", a, b);
  return v;
}
static int put_sub(writer *w, int a, int b) {
  int v = begin_value(w);
  nvb_print(&w->t, "v%d - v%d\n", a, b);
  return v;
}
static int put_mul(writer *w, int a, int b) {
  int v = begin_value(w);
  nvb_print(&w->t, "v%d * v%d\n", a, b);
  return v;
}
static int put_neg(writer *w, int a) {
  int v = begin_value(w);
  nvb_print(&w->t, "-v%d\n", a);
  return v;
}
static int put_mulk(writer *w, double k, int a) {
  int v = begin_value(w);
  nvb_print(&w->t, "%a * v%d\n", k, a);
  return v;
}
static int put_fmak(writer *w, double k, int a, int b) {
  int v = begin_value(w);
  nvb_print(&w->t, "fma(%a, v%d, v%d)\n", k, a, b);
  return v;
}
static int put_fma(writer *w, int a, int b, int c) {
  int v = begin_value(w);
  nvb_print(&w->t, "fma(v%d, v%d, v%d)\n", a, b, c);
  return v;
}

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

/* The twist w^(N / n); its square is the twist for n / 2. */
static cpx power_of_twist(writer *w, int n) {
  if (!w->power[n].re) {
    cpx b = power_of_twist(w, 2 * n);
    int im = put_mul(w, put_mulk(w, 2, b.re), b.im), nb = put_neg(w, b.im);
    w->power[n] = (cpx){ put_fma(w, nb, b.im, put_mul(w, b.re, b.re)), im };
  }
  return w->power[n];
}

static cpx twist_factor(writer *w, int n, int q) {
  if (q == 0) return power_of_twist(w, n);
  cpx *f = &w->factor[n][q];
  if (!f->re) {
    double c, s;
    cpx b = power_of_twist(w, n);
    unity_root(w, n, q, &c, &s);
    *f = (cpx){ put_fmak(w, c, b.re, put_neg(w, put_mulk(w, s, b.im))), put_fmak(w, s, b.re, put_mulk(w, c, b.im)) };
  }
  return *f;
}

static void put_twisted_butterfly(writer *w, int n, int q, cpx e, cpx o, cpx *lo, cpx *hi) {
  int transposed = n >= 4 && q >= n / 4; /* the factor is i or -i times that of q - n / 4 */
  cpx f = twist_factor(w, n, transposed ? q - n / 4 : q);
  if (transposed && w->sign > 0) f = (cpx){ put_neg(w, f.im), f.re };
  else if (transposed) f = (cpx){ f.im, put_neg(w, f.re) };
  *lo = (cpx){ put_fma(w, put_neg(w, f.im), o.im, put_fma(w, f.re, o.re, e.re)),
               put_fma(w, f.im, o.re, put_fma(w, f.re, o.im, e.im)) };
  *hi = put_other_half(w, e, *lo);
}

/* Replaces the items x[0], x[step] ... by their transform. */
static void put_transform(writer *w, cpx *x, int n, int step) {
  if (n == 1) return;
  put_transform(w, x, n / 2, 2 * step);
  put_transform(w, x + step, n / 2, 2 * step);
  cpx out[NVF_DFT_MAX];
  for (int i = 0; i < n / 2; i++) {
    int q = w->twisted && n >= 4 ? i / 2 + (i % 2) * (n / 4) : i; /* both uses of a factor come one after the other */
    cpx e = x[2 * q * step], o = x[(2 * q + 1) * step];
    (w->twisted ? put_twisted_butterfly : put_butterfly)(w, n, q, e, o, &out[q], &out[q + n / 2]);
  }
  for (int i = 0; i < n; i++) x[i * step] = out[i];
}

static void write_frag(writer *w, const char *name, int n) {
  const char *type = w->type == NVM_F32 ? "f32" : "f64";
  cpx x[NVF_DFT_MAX];
  int count = 2 * n + (w->twisted ? 2 : 0);
  w->next = 1; /* 0 means "not written yet" */
  nvb_print(&w->t, "frag %s<%s>(", name, type);
  for (int i = 0; i < count; i++) nvb_print(&w->t, "%sv%d: %s", i ? ", " : "", w->next++, type);
  nvb_puts(&w->t, ") -> (");
  for (int i = 0; i < 2 * n; i++) nvb_print(&w->t, "%s%s", i ? ", " : "", type);
  nvb_puts(&w->t, ") {\n");
  for (int i = 0; i < n; i++) x[i] = (cpx){ 2 * i + 1, 2 * i + 2 };
  if (w->twisted) w->power[n] = (cpx){ 2 * n + 1, 2 * n + 2 };
  put_transform(w, x, n, 1);
  nvb_puts(&w->t, "  return ");
  for (int i = 0; i < n; i++) nvb_print(&w->t, "%sv%d, v%d", i ? ", " : "", x[i].re, x[i].im);
  nvb_puts(&w->t, "\n}\n");
}

const nvg_frag *nvf_dft(nvb_arena *a, nvg_fragset *set, int n, int sign, int twisted, nvm_dtype type) {
  if (n < 1 || n > NVF_DFT_MAX || (n & (n - 1)) || (type != NVM_F32 && type != NVM_F64))
    nvb_throw(a, NVM_ERR_VALUE, "[dft] %d items of this type: a power of two up to %d of f32 or f64", n, NVF_DFT_MAX);
  nvb_text name = { .arena = a };
  nvb_print(&name, "dft%d_%s%s", n, sign > 0 ? "inverse" : "forward", twisted ? "_twisted" : "");
  nvm_dtype param[2 * NVF_DFT_MAX + 2];
  int count = 2 * n + (twisted ? 2 : 0);
  for (int i = 0; i < count; i++) param[i] = type;
  const nvg_frag *known = nvg_fragset_find(set, name.s, param, count);
  if (known) return known;
  nvb_clear();
  writer *w = NVB_NEW(a, writer);
  *w = (writer){ .arena = a, .t = { .arena = a }, .sign = sign, .type = type, .twisted = twisted };
  write_frag(w, name.s, n);
  nvg_fragset_parse(set, w->t.s, name.s);
  return nvg_fragset_find(set, name.s, param, count);
}
