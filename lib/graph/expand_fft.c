/* Expands Fourier transforms: each axis is cropped or padded, moved to the end, and transformed there; factors of the
   normalisation and conjugations are elementwise operations around that. Never decides how a transform is computed. */
#include <math.h>
#include <string.h>
#include "graph/infer.h"

enum { POINTS_MOST = INT32_MAX };

/* ---- one axis */
/* Transforms the last dimension of x, whose dtype fits the kind. One point is its own transform. */
static nvg_node *transform_rows(nvg_call *c, nvg_dft kind, nvg_node *x, int64_t n) {
  if (!x) return NULL;
  nvm_dtype t = x->aval->dtype;
  if (n == 1 && kind == NVG_DFT_REAL) return nvg_xcast(c, x, nvg_complex_of(t), NVG_INNER);
  if (n == 1) return kind == NVG_DFT_TO_REAL ? nvg_x1(c, NVG_OP_REAL, x) : x;
  int64_t shape[NVM_MAX_RANK], attr[3] = { kind, n, c->op };
  int rank = x->aval->rank;
  memcpy(shape, x->aval->shape, sizeof *shape * (size_t)rank);
  shape[rank - 1] = kind == NVG_DFT_REAL ? n / 2 + 1 : n;
  if (kind == NVG_DFT_REAL) t = nvg_complex_of(t);
  if (kind == NVG_DFT_TO_REAL) t = nvg_real_of(t);
  return nvg_keep(c, nvg_node_new(NVG_OP_DFT, nvg_aval_get(t, rank, shape), &x, 1, attr, 3));
}

/* Crops an axis, or pads it with zeros, to n elements. */
static nvg_node *resize_axis(nvg_call *c, nvg_node *x, int axis, int64_t n) {
  if (!x || x->aval->shape[axis] == n) return x;
  if (x->aval->shape[axis] > n) return nvg_xrange(c, x, axis, 0, n, 1);
  int64_t shape[NVM_MAX_RANK], none[NVM_MAX_RANK] = { 0 };
  memcpy(shape, x->aval->shape, sizeof *shape * (size_t)x->aval->rank);
  shape[axis] = n;
  return nvg_xpad(c, x, nvg_xconst(c, x->aval->dtype, 0, 0), none, shape);
}

static nvg_node *transform_axis(nvg_call *c, nvg_dft kind, nvg_node *x, int axis, int64_t n) {
  x = resize_axis(c, x, axis, kind == NVG_DFT_TO_REAL ? n / 2 + 1 : n);
  return nvg_xmove_axis(c, transform_rows(c, kind, nvg_xmove_axis(c, x, axis, 0), n), axis, 1);
}

/* ---- normalisation */
typedef enum norm { BACKWARD, ORTHO, FORWARD } norm;

static int read_norm(nvg_call *c, norm *out) {
  static const char *const names[] = { "backward", "ortho", "forward" };
  char text[16] = "backward";
  if (nvg_attr_get(c, "norm") && nvg_attr_text(c, "norm", sizeof text, text)) return NVM_ERR_VALUE;
  for (int i = BACKWARD; i <= FORWARD; i++)
    if (!strcmp(text, names[i])) return *out = (norm)i, NVM_OK;
  nvg_bad(c, NVM_ERR_VALUE, "norm is \"backward\", \"ortho\" or \"forward\", not \"%s\"", text);
  return NVM_ERR_VALUE;
}

/* Multiplies by the factor of a transform of `points` points in all; backwards: the transform is an inverse. */
static nvg_node *normalise(nvg_call *c, nvg_node *x, norm by, int backwards, double points) {
  if (!x || points == 1 || (by != ORTHO && (by == FORWARD) == backwards)) return x;
  nvg_node *f = nvg_xfloat(c, by == ORTHO ? 1 / sqrt(points) : 1 / points);
  if (nvg_parts(x->aval->dtype) == 1) return nvg_x2(c, NVG_OP_MULTIPLY, x, f);
  nvg_node *re = nvg_x1(c, NVG_OP_REAL, x), *im = nvg_x1(c, NVG_OP_IMAG, x);
  return nvg_x2(c, NVG_OP_COMPLEX, nvg_x2(c, NVG_OP_MULTIPLY, re, f), nvg_x2(c, NVG_OP_MULTIPLY, im, f));
}

/* ---- the operand, axes and numbers of points */
typedef struct task {
  nvg_node *x;
  nvg_dft kind; /* of the last axis; the others are complex and of the same direction */
  norm by;
  int naxes, axis[NVM_MAX_RANK];
  int64_t points[NVM_MAX_RANK];
} task;

static int is_backwards(nvg_dft kind) { return kind == NVG_DFT_INVERSE || kind == NVG_DFT_TO_REAL; }

/* Reads the operand, in the dtype of the arithmetic, and the normalisation. A status. */
static int open_task(nvg_call *c, task *t, nvg_dft kind) {
  const nvg_op_info *o = &nvg_ops[c->op];
  int type = nvg_rule_in(o->name, o->rule, c->in, 1, c->default_float);
  if (type < 0) return NVM_ERR_TYPE;
  nvm_dtype real = nvg_compute_of((nvm_dtype)type);
  *t = (task){ .kind = kind };
  t->x = nvg_xcast(c, c->in[0], kind == NVG_DFT_REAL ? real : nvg_complex_of(real), NVG_INNER);
  return !t->x ? NVM_ERR_MEMORY : read_norm(c, &t->by);
}

static int check_points(nvg_call *c, int64_t n) {
  if (n > 0 && n <= POINTS_MOST) return NVM_OK;
  if (n < 1) nvg_bad(c, NVM_ERR_VALUE, "the number of points is %lld; it must be 1 or more", (long long)n);
  else nvg_bad(c, NVM_ERR_VALUE, "a transform has at most %d points, not %lld", POINTS_MOST, (long long)n);
  return NVM_ERR_VALUE;
}

/* The number of points if the call does not give it. */
static int64_t points_of(const task *t, int axis, int last) {
  int64_t n = t->x->aval->shape[axis];
  return last && t->kind == NVG_DFT_TO_REAL ? 2 * (n - 1) : n;
}

static int read_one_axis(nvg_call *c, task *t) {
  t->naxes = 1;
  int status = nvg_attr_axis(c, "axis", t->x->aval->rank, -1, &t->axis[0]);
  if (!status) status = nvg_attr_int(c, "n", points_of(t, t->axis[0], 1), &t->points[0]);
  return status ? status : check_points(c, t->points[0]);
}

static int check_counts(nvg_call *c, int naxes, int ns, int rank) {
  if (ns >= 0 && naxes >= 0 && ns != naxes) nvg_bad(c, NVM_ERR_VALUE, "s has %d entries for %d axes", ns, naxes);
  else if (ns > rank) nvg_bad(c, NVM_ERR_VALUE, "s has %d entries for %d dimensions", ns, rank);
  else return NVM_OK;
  return NVM_ERR_VALUE;
}

/* Reads axes and s; few: the number of axes if neither is given, or -1, that is all. */
static int read_axes(nvg_call *c, task *t, int few) {
  int64_t axes[NVM_MAX_RANK], s[NVM_MAX_RANK];
  int rank = t->x->aval->rank, na, ns, status = nvg_attr_ints(c, "axes", NVM_MAX_RANK, axes, &na);
  if (!status) status = nvg_attr_ints(c, "s", NVM_MAX_RANK, s, &ns);
  if (!status) status = check_counts(c, na, ns, rank);
  if (status) return status;
  t->naxes = na >= 0 ? na : ns >= 0 ? ns : few >= 0 ? few : rank;
  uint32_t seen = 0;
  for (int i = 0; i < t->naxes; i++) {
    if ((status = nvg_axis(c, na >= 0 ? axes[i] : i - t->naxes, rank, &t->axis[i]))) return status;
    if (seen >> t->axis[i] & 1) {
      nvg_bad(c, NVM_ERR_VALUE, "axis %d is given twice", t->axis[i]);
      return NVM_ERR_VALUE;
    }
    seen |= 1u << t->axis[i];
    t->points[i] = ns >= 0 && s[i] != -1 ? s[i] : points_of(t, t->axis[i], i == t->naxes - 1);
    if ((status = check_points(c, t->points[i]))) return status;
  }
  return NVM_OK;
}

/* ---- the transforms */
/* Transforms all axes: forward from the last one to the first, backwards from the first one to the last, so that the
   two that meet around a filter run along one axis. Of real numbers the last axis comes first, to real numbers last. */
static nvg_node *transform_axes(nvg_call *c, const task *t) {
  int backwards = is_backwards(t->kind), last = t->naxes - 1;
  nvg_dft inner = backwards ? NVG_DFT_INVERSE : NVG_DFT_FORWARD;
  nvg_node *x = t->x;
  for (int i = 0; i <= last; i++) {
    int at = backwards ? i : last - i;
    x = transform_axis(c, at == last ? t->kind : inner, x, t->axis[at], t->points[at]);
  }
  return x;
}

static nvg_node *close_task(nvg_call *c, const task *t, norm by, int backwards) {
  double points = 1;
  for (int i = 0; i < t->naxes; i++) points *= (double)t->points[i];
  return normalise(c, transform_axes(c, t), by, backwards, points);
}

static nvg_node *transform_one(nvg_call *c, nvg_dft kind) {
  task t;
  if (open_task(c, &t, kind) || read_one_axis(c, &t)) return NULL;
  return close_task(c, &t, t.by, is_backwards(kind));
}
nvg_node *nvg_make_FFT(nvg_call *c) { return transform_one(c, NVG_DFT_FORWARD); }
nvg_node *nvg_make_IFFT(nvg_call *c) { return transform_one(c, NVG_DFT_INVERSE); }
nvg_node *nvg_make_RFFT(nvg_call *c) { return transform_one(c, NVG_DFT_REAL); }
nvg_node *nvg_make_IRFFT(nvg_call *c) { return transform_one(c, NVG_DFT_TO_REAL); }

/* The transform of a signal with Hermitian symmetry is that to real numbers of the conjugate, in the other
   direction. */
nvg_node *nvg_make_HFFT(nvg_call *c) {
  task t;
  if (open_task(c, &t, NVG_DFT_TO_REAL) || read_one_axis(c, &t)) return NULL;
  t.x = nvg_x1(c, NVG_OP_CONJ, t.x);
  return close_task(c, &t, t.by, 0);
}
nvg_node *nvg_make_IHFFT(nvg_call *c) {
  task t;
  if (open_task(c, &t, NVG_DFT_REAL) || read_one_axis(c, &t)) return NULL;
  return nvg_x1(c, NVG_OP_CONJ, close_task(c, &t, t.by, 1));
}

static nvg_node *transform_many(nvg_call *c, nvg_dft kind, int few) {
  task t;
  if (open_task(c, &t, kind) || read_axes(c, &t, few)) return NULL;
  if (!t.naxes && (kind == NVG_DFT_REAL || kind == NVG_DFT_TO_REAL))
    return nvg_bad(c, NVM_ERR_VALUE, "needs an axis to transform");
  return close_task(c, &t, t.by, is_backwards(kind));
}
nvg_node *nvg_make_FFTN(nvg_call *c) { return transform_many(c, NVG_DFT_FORWARD, -1); }
nvg_node *nvg_make_IFFTN(nvg_call *c) { return transform_many(c, NVG_DFT_INVERSE, -1); }
nvg_node *nvg_make_RFFTN(nvg_call *c) { return transform_many(c, NVG_DFT_REAL, -1); }
nvg_node *nvg_make_IRFFTN(nvg_call *c) { return transform_many(c, NVG_DFT_TO_REAL, -1); }
nvg_node *nvg_make_FFT2(nvg_call *c) { return transform_many(c, NVG_DFT_FORWARD, 2); }
nvg_node *nvg_make_IFFT2(nvg_call *c) { return transform_many(c, NVG_DFT_INVERSE, 2); }
nvg_node *nvg_make_RFFT2(nvg_call *c) { return transform_many(c, NVG_DFT_REAL, 2); }
nvg_node *nvg_make_IRFFT2(nvg_call *c) { return transform_many(c, NVG_DFT_TO_REAL, 2); }

/* ---- shifts and frequencies */
static nvg_node *shift_axes(nvg_call *c, int back) {
  uint32_t axes;
  nvg_node *x = nvg_typed(c);
  if (!x || nvg_attr_axes(c, "axes", x->aval->rank, &axes)) return NULL;
  for (int d = 0; x && d < x->aval->rank; d++)
    if (axes >> d & 1) x = nvg_xrotate(c, x, d, (x->aval->shape[d] + back) / 2);
  return x;
}
nvg_node *nvg_make_FFTSHIFT(nvg_call *c) { return shift_axes(c, 0); }
nvg_node *nvg_make_IFFTSHIFT(nvg_call *c) { return shift_axes(c, 1); }

/* i / (n d) of the elements i of a transform; those behind the middle have negative frequencies, unless it is of real
   numbers. */
static nvg_node *frequencies(nvg_call *c, int real) {
  int64_t n;
  double d;
  int t;
  if (nvg_attr_int(c, "n", 0, &n) || nvg_attr_float(c, "d", 1, &d) || check_points(c, n)) return NULL;
  if (nvg_attr_dtype(c, "dtype", (int)c->default_float, &t)) return NULL;
  if (nvg_class_of((nvm_dtype)t) != NVG_FLOAT) return nvg_bad(c, NVM_ERR_TYPE, "makes floats");
  if (d == 0) return nvg_bad(c, NVM_ERR_VALUE, "the distance of samples is zero");
  int64_t count = real ? n / 2 + 1 : n, half = (n + 1) / 2;
  nvg_node *i = nvg_xiota(c, 1, &count, 0);
  if (!real) i = nvg_xrotate(c, nvg_x2(c, NVG_OP_SUBTRACT, i, nvg_xint(c, n / 2)), 0, half);
  nvg_node *at = nvg_x2(c, NVG_OP_MULTIPLY, nvg_xcast(c, i, NVM_F64, 1), nvg_xfloat(c, 1 / ((double)n * d)));
  return nvg_xcast(c, at, (nvm_dtype)t, 1);
}
nvg_node *nvg_make_FFTFREQ(nvg_call *c) { return frequencies(c, 0); }
nvg_node *nvg_make_RFFTFREQ(nvg_call *c) { return frequencies(c, 1); }
