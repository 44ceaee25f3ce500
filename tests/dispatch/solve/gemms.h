/* Products for the suites of solvers: cases with every layout, a plan of one step made by hand for each, run on the
   CPU or a device and held against sums in long double. */
#ifndef NVM_TESTS_PRODUCTS_H
#define NVM_TESTS_PRODUCTS_H
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../suite.h"
#include "base/err.h"
#include "dispatch/cuda/device.h"
#include "dispatch/dispatch.h"
#include "frag/dtype.h"

enum { A, B, C, D, BIAS, AUX, SCALE, NMAT = SCALE + NVF_SCALES, MAX_ELEMENTS = 1 << 20 };
typedef struct matrix {
  int there;
  nvm_dtype type;
  int transposed, pad; /* in memory: columns first; elements between its columns (rows) beyond their length */
  int shared;          /* bits: batch dims in which it is the same */
  int64_t skip;        /* elements before it */
  nvf_scale_mode by;   /* of a scale */
} matrix;
typedef struct product_case {
  int64_t m, n, k, batch[2];
  int nbatch, precision, bias_axis; /* 1: one value a column */
  matrix x[NMAT];
  nvm_dtype accumulate;
  double alpha, beta;
  int alpha_given, beta_given; /* as scalar parameters */
  nvf_act act;
  int in_place; /* c is d's memory */
  int own;      /* the planner expects its own kernel to be faster */
} product_case;

typedef struct product {         /* a case with its memory */
  product_case c;
  nvf_matrix words[NMAT];
  int64_t elements[NMAT];
  char *data[NMAT];
  nvf_plan *plan;
} product;

static inline uint64_t draw_bits(void) {
  static uint64_t s = 88172645463325252u;
  s ^= s << 13, s ^= s >> 7;
  return s ^= s << 17;
}
static inline int64_t draw(int64_t n) { return (int64_t)(draw_bits() >> 11) % n; }

typedef long double _Complex wide;
static inline wide element(const product *p, int x, int64_t at) {
  nvm_dtype t = p->words[x].type;
  const char *from = p->data[x] + at * nvg_size(t);
  long double part[2] = { 0, 0 };
  for (int i = 0; i < nvg_parts(t); i++) {
    nvm_dtype real = nvg_real_of(t);
    uint64_t bits = 0;
    memcpy(&bits, from + i * nvg_size(real), (size_t)nvg_size(real));
    part[i] = nvg_class_of(real) == NVG_FLOAT ? (long double)nvg_bits_float(real, bits) : nvg_bits_int(real, bits);
  }
  return part[0] + part[1] * (wide)I;
}
static inline void set_element(const product *p, int x, int64_t at, double re, double im) {
  nvm_dtype t = p->words[x].type, real = nvg_real_of(t);
  for (int i = 0; i < nvg_parts(t); i++) {
    double v = i ? im : re;
    uint64_t bits = nvg_class_of(real) == NVG_FLOAT ? nvg_float_bits(real, v) : nvg_int_bits(real, (int64_t)v);
    memcpy(p->data[x] + at * nvg_size(t) + i * nvg_size(real), &bits, (size_t)nvg_size(real));
  }
}
static inline int64_t place_of(const product *p, int x, int64_t b0, int64_t b1, int64_t i, int64_t j) {
  const nvf_matrix *w = &p->words[x];
  return w->offset + b0 * w->batch[0] + b1 * w->batch[1] + i * w->row + j * w->col;
}

static inline int64_t blocks_of(int64_t n) { return (n + NVF_BLOCK - 1) / NVF_BLOCK; }

/* Strides, and memory filled with numbers of which small sums are exact to the eye; D's with what must be
   overwritten. */
static inline void lay(product *p, int x) {
  const product_case *c = &p->c;
  const matrix *mat = &c->x[x];
  nvf_matrix *w = &p->words[x];
  int64_t rows = x == B ? c->k : c->m, cols = x == A ? c->k : c->n;
  if (x >= SCALE && mat->by) {
    int64_t sums = mat->by == NVF_SCALE_ROW ? 1 : blocks_of(c->k), outer = x == SCALE ? c->m : c->n;
    outer = mat->by == NVF_SCALE_BLOCK ? blocks_of(outer) : outer;
    rows = x == SCALE ? outer : sums;
    cols = x == SCALE ? sums : outer;
  }
  *w = (nvf_matrix){ .param = -1, .type = mat->type };
  if (!mat->there) return;
  w->offset = mat->skip;
  int64_t one;
  if (x >= SCALE && !mat->by) {
    one = 1;
  } else if (x == BIAS) {
    w->col = c->bias_axis == 1;
    w->row = c->bias_axis == 0;
    one = (c->bias_axis == 1 ? cols : rows) + mat->pad;
  } else {
    w->row = mat->transposed ? 1 : cols + mat->pad;
    w->col = mat->transposed ? rows + mat->pad : 1;
    one = mat->transposed ? w->col * cols : w->row * rows;
  }
  int64_t total = one;
  for (int d = c->nbatch - 1; d >= 0 && x < SCALE; d--)
    if (!(mat->shared >> d & 1)) {
      w->batch[d] = total;
      total *= c->batch[d];
    }
  p->elements[x] = mat->skip + total + 3;
  ck_assert_int_lt(p->elements[x], MAX_ELEMENTS * 8);
  p->data[x] = malloc((size_t)(p->elements[x] * nvg_size(mat->type)));
  int whole = nvg_class_of(mat->type) < NVG_FLOAT;
  for (int64_t i = 0; i < p->elements[x]; i++) {
    double re = (double)draw(2001) / 1000 - 1, im = (double)draw(2001) / 1000 - 1;
    if (x == D || x == AUX) re = im = whole ? -77 : NAN;
    set_element(p, x, i, whole && x != D ? (double)(draw(255) - 127) : re, im);
  }
}

/* Of a graph, what programs look at: its leaves begin at multiples of 16. */
static inline nvg_graph *aligned_leaves(nvb_arena *a) {
  nvg_graph *g = NVB_NEW(a, nvg_graph);
  g->leaf = NVB_NEWN(a, nvg_leaf, NMAT);
  for (g->nleaf = 0; g->nleaf < NMAT; g->nleaf++) g->leaf[g->nleaf].align16 = 1;
  return g;
}

static inline void plan_product(nvb_arena *a, void *arg) {
  static const char *const name[NMAT] = { "a", "b", "c", "d", "bias", "aux", "scale_a", "scale_b" };
  product *p = arg;
  product_case *c = &p->c;
  nvf_plan *plan = p->plan = NVB_NEW(a, nvf_plan);
  nvf_step *s = plan->step = NVB_NEW(a, nvf_step);
  nvf_gemm *w = NVB_NEW(a, nvf_gemm);
  *plan = (nvf_plan){ .arena = a, .nstep = 1, .step = s, .buf = NVB_NEWN(a, nvf_buf, NMAT), .g = aligned_leaves(a) };
  *s = (nvf_step){ .hero = "gemm", .what = "made by hand", .blocks = 1, .grain = 1, .gemm = w };
  s->k = nvf_kernel_new(a, "product");
  s->bind = NVB_NEWN(a, nvf_bind, NMAT + 2);
  for (int x = 0; x < NMAT; x++)
    if (c->x[x].there && !(x == C && c->in_place)) {
      int out = x == D || x == AUX;
      nvf_bufkind kind = out ? NVF_BOUT : NVF_BLEAF;
      int id = x == AUX;
      for (int y = 0; y < x && !out; y++) id += c->x[y].there && y != D && y != AUX && !(y == C && c->in_place);
      w->d.param = -1;
      p->words[x].param = nvf_add_param(s->k, NVF_BUFFER, p->words[x].type, name[x]);
      s->k->param[p->words[x].param].written = out;
      s->bind[p->words[x].param] = (nvf_bind){ .kind = NVF_BUFFER, .buf = plan->nbuf };
      plan->buf[plan->nbuf++] =
          (nvf_buf){ .kind = kind, .id = id, .donor = -1, .bytes = p->elements[x] * nvg_size(p->words[x].type) };
    }
  if (c->in_place) { p->words[C] = p->words[D]; }
  *w = (nvf_gemm){ .own = c->own,
                   .m = c->m,
                   .n = c->n,
                   .k = c->k,
                   .nbatch = c->nbatch,
                   .batch = { c->batch[0], c->batch[1] },
                   .accumulate = c->accumulate,
                   .precision = c->precision,
                   .a = p->words[A],
                   .b = p->words[B],
                   .c = p->words[C],
                   .d = p->words[D],
                   .aux = p->words[AUX],
                   .bias = p->words[BIAS],
                   .scale = { p->words[SCALE], p->words[SCALE + 1] },
                   .by = { c->x[SCALE].by, c->x[SCALE + 1].by },
                   .alpha = { .param = -1, .value = c->alpha },
                   .beta = { .param = -1, .value = c->beta },
                   .act = c->act };
  nvm_dtype real = nvg_real_of(c->accumulate);
  struct {
    nvf_scale *s;
    int given;
    const char *name;
  } scale[2] = { { &w->alpha, c->alpha_given, "alpha" }, { &w->beta, c->beta_given, "beta" } };
  for (int i = 0; i < 2; i++)
    if (scale[i].given) {
      uint64_t bits = nvg_float_bits(real, scale[i].s->value);
      scale[i].s->param = nvf_add_param(s->k, NVF_SCALAR, real, scale[i].name);
      s->bind[scale[i].s->param] = (nvf_bind){ .kind = NVF_SCALAR, .bits = bits };
      *scale[i].s = (nvf_scale){ scale[i].s->param, 1, real, 0 };
    }
}

static inline long double activated(nvf_act act, long double v) {
  if (act == NVF_ACT_RELU) return v > 0 || isnan(v) ? v : 0;
  if (act == NVF_ACT_GELU) return 0.5L * v * (1 + tanhl(0.79788456080286535588L * (v + 0.044715L * v * v * v)));
  return v;
}
static inline double precision_of(nvm_dtype t) {
  return t == NVM_F16                ? 0x1p-11
         : t == NVM_BF16             ? 0x1p-8
         : nvg_real_of(t) == NVM_F32 ? 0x1p-24
         : t == NVM_I32              ? 0
                                     : 0x1p-53;
}
static inline const char *case_text(const product_case *c) {
  static char text[512];
  int n = snprintf(text, sizeof text,
                   "%lldx%lldx%lld batches %d (%lld, %lld) alpha %g beta %g act %d bias %d prec %d:", (long long)c->m,
                   (long long)c->n, (long long)c->k, c->nbatch, (long long)c->batch[0], (long long)c->batch[1],
                   c->alpha, c->beta, c->act, c->x[BIAS].there ? c->bias_axis : -1, c->precision);
  for (int x = 0; x < NMAT; x++)
    if (c->x[x].there)
      n += snprintf(text + n, sizeof text - (size_t)n, " %c=%s%s+%d@%lld%.*s", "abcdvxpq"[x],
                    nvg_dtype_short(c->x[x].type), c->x[x].transposed ? "^T" : "", c->x[x].pad, (long long)c->x[x].skip,
                    (int)c->x[x].by, "rpb");
  return text;
}

/* Of a row of a (a column of b) and a place in what is summed; 1 for what is not there. */
static inline long double scale_of(const product *p, int which, int64_t outer, int64_t k) {
  const matrix *s = &p->c.x[SCALE + which];
  const nvf_matrix *w = &p->words[SCALE + which];
  outer = s->by == NVF_SCALE_TENSOR ? 0 : outer / (s->by == NVF_SCALE_BLOCK ? NVF_BLOCK : 1);
  k = s->by >= NVF_SCALE_VECTOR ? k / NVF_BLOCK : 0;
  int64_t at = w->offset + (which ? k * w->row + outer * w->col : outer * w->row + k * w->col);
  return s->there ? creall(element(p, SCALE + which, at)) : 1;
}

/* All elements, those that no matrix has as well. The caller frees. */
static inline wide *elements_of(const product *p, int x) {
  wide *all = malloc(sizeof *all * (size_t)p->elements[x]);
  for (int64_t i = 0; i < p->elements[x]; i++) all[i] = element(p, x, i);
  return all;
}

/* The product's element at two batches, a row and a column; *size: the sum of the sizes of what it adds. */
static inline wide summed(const product *p, const wide *a, const wide *b, const int64_t *at, long double *size) {
  wide sum = 0;
  *size = 0;
  int real = nvg_parts(p->words[A].type) == 1 && nvg_parts(p->words[B].type) == 1;
  for (int64_t k = 0; k < p->c.k; k++) {
    wide x = a[place_of(p, A, at[0], at[1], at[2], k)], y = b[place_of(p, B, at[0], at[1], k, at[3])];
    wide xy = real ? creall(x) * creall(y) : x * y;
    if (p->c.x[SCALE].there || p->c.x[SCALE + 1].there)
      xy *= scale_of(p, NVF_SCALE_A, at[2], k) * scale_of(p, NVF_SCALE_B, at[3], k);
    sum += xy;
    *size += fabsl(creall(xy)) + fabsl(cimagl(xy));
  }
  return sum;
}

/* Every element of d (and aux), and that nothing beside them was written. `before`: the memory as it was. */
static inline void compare_product(const product *p, char *const *before) {
  const product_case *c = &p->c;
  int64_t e0 = c->nbatch > 0 ? c->batch[0] : 1, e1 = c->nbatch > 1 ? c->batch[1] : 1;
  char *touched = calloc((size_t)p->elements[D] + 1, 1);
  wide *x = elements_of(p, A), *y = elements_of(p, B);
  int f8 = nvg_is_f8(c->x[A].type);
  double fine = c->precision ? 0x1p-10 : f8 ? 0x1p-8 : 0, unit = precision_of(c->accumulate);
  for (int64_t b0 = 0; b0 < e0; b0++)
    for (int64_t b1 = 0; b1 < e1; b1++)
      for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
          long double size;
          wide sum = summed(p, x, y, (int64_t[]){ b0, b1, i, j }, &size);
          sum *= c->alpha;
          size *= fabs(c->alpha);
          if (c->x[C].there) {
            product q = *p;
            q.data[C] = before[C];
            wide v = element(&q, C, place_of(p, C, b0, b1, i, j)) * c->beta;
            sum += v;
            size += cabsl(v);
          }
          if (c->x[BIAS].there) {
            wide v = element(p, BIAS, place_of(p, BIAS, b0, b1, i, j));
            sum += v;
            size += cabsl(v);
          }
          int64_t at = place_of(p, D, b0, b1, i, j);
          touched[at] = 1;
          wide want = c->act ? activated(c->act, creall(sum)) : sum;
          for (int z = D; z <= AUX; z += AUX - D) {
            if (!c->x[z].there) continue;
            wide w = z == D ? want : sum, got = element(p, z, place_of(p, z, b0, b1, i, j));
            double unit_d = precision_of(c->x[z].type);
            long double most =
                size * ((double)c->k + 8) * unit + size * (fine + (unit_d > unit ? unit_d : 0)) +
                cabsl(w) * 4 * unit_d +
                (c->act == NVF_ACT_GELU ? 4e-3L * unit_d / 0x1p-24 * 0x1p-10 + 2e-3L * (unit_d > 0x1p-12) : 0);
            ck_assert_msg(cabsl(got - w) <= most,
                          "%s: %s at %lld, %lld of batch %lld, %lld: %.9Lg %+.9Lgi, not %.9Lg %+.9Lgi", case_text(c),
                          z == D ? "d" : "aux", (long long)i, (long long)j, (long long)b0, (long long)b1, creall(got),
                          cimagl(got), creall(w), cimagl(w));
          }
        }
  size_t size = (size_t)nvg_size(c->x[D].type);
  for (int64_t i = 0; i < p->elements[D]; i++)
    ck_assert_msg(touched[i] || !memcmp(p->data[D] + size * (size_t)i, before[D] + size * (size_t)i, size),
                  "%s: element %lld of d's memory is not the result's", case_text(c), (long long)i);
  free(touched), free(x), free(y);
}

static inline void product_new(product *p, nvb_arena *a, const product_case *c) {
  *p = (product){ .c = *c };
  for (int x = 0; x < NMAT; x++) lay(p, x);
  if (c->in_place) { /* d's memory holds c */
    for (int64_t i = 0; i < p->elements[D]; i++)
      set_element(p, D, i, (double)draw(2001) / 1000 - 1, (double)draw(2001) / 1000 - 1);
    free(p->data[C]);
    p->data[C] = p->data[D];
    p->elements[C] = p->elements[D];
  }
  ck_assert_msg(!nvb_protect(a, plan_product, p), "%s: %s", case_text(c), nvb_message());
}

static inline int product_run(product *p, nvd_program *program, nvd_device *d) {
  char *leaf[NMAT], *out[2] = { p->data[D], p->data[AUX] };
  nvd_operand on[NMAT] = { 0 }, to[2] = { 0 };
  int n = 0, status = NVM_OK;
  int order[NMAT], norder = 0;
  for (int x = 0; x < NMAT; x++)
    if (p->c.x[x].there && x != D && x != AUX && !(x == C && p->c.in_place))
      order[norder++] = x, leaf[n++] = p->data[x];
  if (!d) return nvd_run(program, leaf, out);
  for (int i = 0; i < norder + 2 && !status; i++) {
    int x = i < norder ? order[i] : i == norder ? D : AUX;
    if (!p->c.x[x].there) continue;
    size_t bytes = (size_t)(p->elements[x] * nvg_size(p->words[x].type));
    nvd_operand *o = i < norder ? &on[i] : &to[i - norder];
    o->buf = nvd_buf_new_on(d, bytes);
    ck_assert_msg(o->buf != NULL, "%s", nvb_message());
    o->data = o->buf->data;
    status = nvd_upload(o->buf, 0, p->data[x], bytes);
  }
  status = status ? status : nvd_run_on(program, on, to);
  for (int i = 0; i < 2 && !status; i++)
    if (to[i].buf) status = nvd_download(p->data[i ? AUX : D], to[i].buf, 0, to[i].buf->bytes);
  for (int i = 0; i < norder; i++) nvd_buf_unref(on[i].buf);
  nvd_buf_unref(to[0].buf);
  nvd_buf_unref(to[1].buf);
  return status;
}

static inline void product_free(product *p) {
  for (int x = 0; x < NMAT; x++)
    if (!(x == C && p->c.in_place)) free(p->data[x]);
}

typedef struct telling { product *p; nvd_device *d; const char *text; } telling;
static inline void tell_way(nvb_arena *a, void *arg) {
  telling *r = arg;
  nvb_text t = { .arena = a };
  nvd_explain(&t, r->p->plan, r->d, NULL);
  r->text = nvb_text_get(&t);
}
/* "openblas", or "its own kernel: " and why not the others; until the next call. */
static inline const char *product_way(nvb_arena *a, product *p, nvd_device *d) {
  static char text[512];
  char by[64], why[256] = "";
  telling r = { p, d, NULL };
  ck_assert_int_eq(nvb_protect(a, tell_way, &r), NVM_OK);
  ck_assert_int_ge(sscanf(r.text, "  1 runs by %63[^\n]\n    not by %255[^\n]", by, why), 1);
  snprintf(text, sizeof text, "%s%s%s", by, *why ? ": " : "", why);
  return text;
}

/* Has a library something for it, beside its own kernel? */
static inline int product_offered(const product_case *c, nvd_device *d) {
  nvb_arena *a = nvb_arena_new();
  product p;
  nvd_solver_option some[2];
  product_new(&p, a, c);
  p.plan->device = d ? NVB_CUDA : NVB_CPU;
  int n = nvd_solver_options(some, 2, p.plan, 0, d);
  product_free(&p);
  nvb_arena_free(a);
  return n == 2;
}

/* Runs the case `times` times and compares; `by`: the solver that is to take it. */
static inline void product_try(const product_case *c, nvd_device *d, const char *by, int times) {
  nvb_arena *a = nvb_arena_new();
  product p;
  product_new(&p, a, c);
  p.plan->device = d ? NVB_CUDA : NVB_CPU;
  const char *way = product_way(a, &p, d);
  ck_assert_msg(strstr(way, by) == way, "%s: %s", case_text(c), way);
  nvd_program *program;
  ck_assert_msg(!nvd_prepare(&program, p.plan, d, NULL, NULL), "%s: %s", case_text(c), nvb_message());
  char *before[NMAT] = { 0 };
  for (int i = 0; i < times; i++) {
    for (int x = C; x <= D; x++)
      if (p.data[x]) {
        free(before[x]);
        size_t bytes = (size_t)(p.elements[x] * nvg_size(p.words[x].type));
        before[x] = memcpy(malloc(bytes), p.data[x], bytes);
      }
    ck_assert_msg(!product_run(&p, program, d), "%s: %s", case_text(c), nvb_message());
    compare_product(&p, before);
  }
  free(before[C]), free(before[D]);
  nvd_program_free(program);
  product_free(&p);
  nvb_arena_free(a);
}

/* Once, as a choice says. */
static inline void product_choose(product *p, nvd_device *d, const nvd_solver_choice *choice, char **before) {
  nvd_program *program;
  ck_assert_msg(!nvd_prepare(&program, p->plan, d, choice, NULL), "%s", nvb_message());
  ck_assert_msg(!product_run(p, program, d), "%s", nvb_message());
  compare_product(p, before);
  nvd_program_free(program);
}

/* ---- random cases */
static inline product_case product_draw(nvm_dtype type, int64_t most) {
  product_case c = { .m = 1 + draw(most),
                     .n = 1 + draw(most),
                     .k = 1 + draw(most),
                     .nbatch = (int)draw(3),
                     .batch = { 1 + draw(3), 1 + draw(3) },
                     .alpha = 1,
                     .beta = 0,
                     .accumulate = type };
  if (nvg_is_narrow(type)) c.accumulate = NVM_F32;
  for (int x = 0; x < NMAT; x++)
    c.x[x] = (matrix){ .there = x == A || x == B || x == D,
                       .type = x <= B ? type : c.accumulate,
                       .transposed = (int)draw(2),
                       .pad = (int)draw(3) * (int)draw(9),
                       .skip = draw(3) ? 0 : draw(40) };
  c.x[A].shared = draw(4) ? 0 : (int)draw(4);
  c.x[B].shared = draw(4) ? 0 : (int)draw(4);
  if (draw(3) == 0) c.alpha = (double)draw(9) - 4.5, c.alpha_given = (int)draw(2);
  if (draw(3) == 0) {
    c.x[C].there = 1;
    c.beta = draw(2) ? 1 : (double)draw(9) / 2 - 2.25, c.beta_given = (int)draw(2);
    c.in_place = draw(3) == 0;
    if (c.in_place) c.x[C] = c.x[D];
  }
  c.x[BIAS].there = draw(3) == 0;
  c.bias_axis = (int)draw(2);
  return c;
}
#endif
