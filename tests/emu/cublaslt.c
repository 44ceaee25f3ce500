/* libcublasLt: products as lib/dispatch asks for them, queued like kernels and summed in double, multiplied by a
   factor of 0 too (as the library does for 16-bit types). Refuses what the library refuses and a caller could get
   wrong: workspaces that are not there, addresses less aligned than the algorithm was found for, columns that
   overlap, tails it does not have; operands of 8 bits that do not are K-major, or in units of 16 (integers: of 4);
   pairs of scales. */
#include "call.h"
#include "dispatch/solve/cublaslt_api.h"
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "frag/soft.h"

enum { LT_INVALID = 7, LT_NOT_SUPPORTED = 15, MAGIC = 0x656d75, WORKSPACE = 1 << 20 };
#define DECLARE_LT(name, args) int name args;
NVD_LT(DECLARE_LT)
size_t cublasLtGetVersion(void);
const char *cublasLtGetStatusName(int status);

typedef struct layout { int type; int32_t batches; int64_t rows, cols, ld, stride; } layout;
typedef struct desc {
  int compute, scale, trans[2], epilogue, bias_type;
  const float *factor[2]; /* in the device's memory: of a, b */
  int mode[2];            /* what of a, b has one number there */
  char *bias, *aux;
  int64_t bias_stride, aux_ld, aux_stride;
} desc;
typedef struct preference { size_t workspace; uint32_t reduction, align[4]; } preference;
typedef struct algo { uint64_t magic, workspace, align, number, compute; } algo;

size_t cublasLtGetVersion(void) { return 130100; }
const char *cublasLtGetStatusName(int status) {
  return status == LT_INVALID         ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == LT_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == LT_OUT_OF_MEMORY ? "CUBLAS_STATUS_ALLOC_FAILED"
         : status                     ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                      : "CUBLAS_STATUS_SUCCESS";
}
int cublasLtCreate(void **handle) {
  CALL;
  return *handle = malloc(1), OK;
} /* lives as long as the process */

/* ---- descriptions */
int cublasLtMatmulDescCreate(void **to, int compute, int scale) {
  CALL;
  desc *d = *to = calloc(1, sizeof *d);
  *d = (desc){ .compute = compute, .scale = scale, .epilogue = LT_EPILOGUE_NONE, .bias_type = -1 };
  return OK;
}
int cublasLtMatmulDescDestroy(void *d) {
  CALL;
  free(d);
  return OK;
}
int cublasLtMatmulDescSetAttribute(void *to, int attribute, const void *value, size_t n) {
  CALL;
  desc *d = to;
  struct {
    int attribute;
    void *at;
    size_t n;
  } known[] = { { LT_DESC_TRANSA, &d->trans[0], 4 },         { LT_DESC_TRANSB, &d->trans[1], 4 },
                { LT_DESC_EPILOGUE, &d->epilogue, 4 },       { LT_DESC_BIAS, &d->bias, 8 },
                { LT_DESC_BIAS_STRIDE, &d->bias_stride, 8 }, { LT_DESC_AUX, &d->aux, 8 },
                { LT_DESC_AUX_LD, &d->aux_ld, 8 },           { LT_DESC_AUX_STRIDE, &d->aux_stride, 8 },
                { LT_DESC_BIAS_TYPE, &d->bias_type, 4 },     { LT_DESC_SCALE_A, &d->factor[0], 8 },
                { LT_DESC_SCALE_B, &d->factor[1], 8 },       { LT_DESC_SCALE_MODE_A, &d->mode[0], 4 },
                { LT_DESC_SCALE_MODE_B, &d->mode[1], 4 } };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].attribute == attribute && known[i].n == n) return memcpy(known[i].at, value, n), OK;
  return LT_INVALID;
}
int cublasLtMatrixLayoutCreate(void **to, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  CALL;
  layout *l = *to = calloc(1, sizeof *l);
  *l = (layout){ type, 1, (int64_t)rows, (int64_t)cols, ld, 0 };
  return OK;
}
int cublasLtMatrixLayoutDestroy(void *l) {
  CALL;
  free(l);
  return OK;
}
int cublasLtMatrixLayoutSetAttribute(void *to, int attribute, const void *value, size_t n) {
  CALL;
  layout *l = to;
  if (attribute == LT_LAYOUT_BATCHES && n == 4) return memcpy(&l->batches, value, n), OK;
  if (attribute == LT_LAYOUT_STRIDE && n == 8) return memcpy(&l->stride, value, n), OK;
  return LT_INVALID;
}
int cublasLtMatmulPreferenceCreate(void **to) {
  CALL;
  preference *p = *to = calloc(1, sizeof *p);
  *p = (preference){ 0, 7, { 256, 256, 256, 256 } }; /* what the library begins with */
  return OK;
}
int cublasLtMatmulPreferenceDestroy(void *p) {
  CALL;
  free(p);
  return OK;
}
int cublasLtMatmulPreferenceSetAttribute(void *to, int attribute, const void *value, size_t n) {
  CALL;
  preference *p = to;
  if (attribute == LT_PREF_WORKSPACE && n == 8) return memcpy(&p->workspace, value, n), OK;
  if (attribute == LT_PREF_REDUCTION && n == 4) return memcpy(&p->reduction, value, n), OK;
  if (attribute >= LT_PREF_ALIGN_A && attribute < LT_PREF_ALIGN_A + 4 && n == 4)
    return memcpy(&p->align[attribute - LT_PREF_ALIGN_A], value, n), OK;
  return LT_INVALID;
}

/* ---- what it can do */
static const struct {
  int in, out, compute, scale, tails;
} rows[] = {
  { LT_R_32F, LT_R_32F, LT_COMPUTE_32F, LT_R_32F, 1 },     { LT_R_32F, LT_R_32F, LT_COMPUTE_TF32, LT_R_32F, 1 },
  { LT_R_32F, LT_R_32F, LT_COMPUTE_BF16X9, LT_R_32F, 0 }, /* without tails: then somebody asks again */
  { LT_R_64F, LT_R_64F, LT_COMPUTE_64F, LT_R_64F, 1 },     { LT_R_16F, LT_R_16F, LT_COMPUTE_32F, LT_R_32F, 1 },
  { LT_R_16F, LT_R_32F, LT_COMPUTE_32F, LT_R_32F, 1 },     { LT_R_16BF, LT_R_16BF, LT_COMPUTE_32F, LT_R_32F, 1 },
  { LT_R_16BF, LT_R_32F, LT_COMPUTE_32F, LT_R_32F, 1 },    { LT_C_32F, LT_C_32F, LT_COMPUTE_32F, LT_C_32F, 0 },
  { LT_C_32F, LT_C_32F, LT_COMPUTE_TF32, LT_C_32F, 0 },    { LT_C_64F, LT_C_64F, LT_COMPUTE_64F, LT_C_64F, 0 },
  { LT_R_8I, LT_R_32I, LT_COMPUTE_32I, LT_R_32I, 0 },      { LT_R_8F_E4M3, LT_R_32F, LT_COMPUTE_32F, LT_R_32F, 1 },
  { LT_R_8F_E4M3, LT_R_16F, LT_COMPUTE_32F, LT_R_32F, 1 }, { LT_R_8F_E4M3, LT_R_16BF, LT_COMPUTE_32F, LT_R_32F, 1 }
};

static int is_8(int type) { return type == LT_R_8F_E4M3 || type == LT_R_8F_E5M2; }
static int bias_type_of(const desc *p, int d) { return p->bias_type >= 0 ? p->bias_type : d; }

static int refuses_scales(const desc *p, const layout *d) {
  const int *mode = p->mode;
  if (!mode[0] && !mode[1]) return 0;
  if (mode[0] == LT_SCALE_OUTER || mode[1] == LT_SCALE_OUTER ? mode[0] != mode[1] : !mode[0] || !mode[1]) return 1;
  if ((mode[0] == LT_SCALE_BLOCK128 && mode[1] == LT_SCALE_BLOCK128) || d->batches > 1) return 1;
  if ((mode[0] == LT_SCALE_VEC128 && d->rows % 4) || (mode[1] == LT_SCALE_VEC128 && d->cols % 4)) return 1;
  return !p->factor[0] || !p->factor[1] || ((uintptr_t)p->factor[0] | (uintptr_t)p->factor[1]) % 16;
}

/* Types beside one another, as the table of cublasLtMatmul has them; layouts, extents, tails of operands of 8 bits. */
static int refuses_eights(const desc *p, const layout *a, const layout *b, const layout *c, const layout *d) {
  int bias = bias_type_of(p, d->type), unit = d->type == LT_R_32F ? 4 : 2;
  if ((a->type == LT_R_8F_E5M2 && b->type == LT_R_8F_E5M2) || c->type != d->type) return 1;
  if ((p->epilogue & LT_EPILOGUE_BIAS) && bias != (d->type == LT_R_32F ? LT_R_16BF : d->type)) return 1;
  if (refuses_scales(p, d)) return 1;
  if (!p->trans[0] || p->trans[1] || a->rows % 16 || d->rows % 16 || (p->epilogue & LT_EPILOGUE_AUX)) return 1;
  return (a->ld | b->ld | d->ld * unit | a->stride | b->stride | d->stride * unit) % 16;
}

/* Integers of 8 bits along k, in fours. */
static int refuses_bytes(const desc *p, const layout *a, const layout *b, const layout *d) {
  if (!p->trans[0] || p->trans[1] || a->rows % 4 || d->rows % 4) return 1;
  return (a->ld | b->ld | d->ld | a->stride | b->stride) % 4;
}

static int knows(const desc *p, const layout *a, const layout *b, const layout *c, const layout *d) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int f8 = is_8(a->type) && is_8(b->type) && is_8(rows[i].in);
    int same = rows[i].in == a->type && rows[i].in == b->type && rows[i].out == c->type;
    if (rows[i].out != d->type || rows[i].compute != p->compute || rows[i].scale != p->scale) continue;
    if (!same && !f8) continue;
    int scaled = p->factor[0] || p->factor[1] || p->mode[0] || p->mode[1];
    if (f8 ? refuses_eights(p, a, b, c, d) : scaled) return LT_NOT_SUPPORTED;
    if (a->type == LT_R_8I && refuses_bytes(p, a, b, d)) return LT_NOT_SUPPORTED;
    if (p->epilogue != LT_EPILOGUE_NONE && !rows[i].tails) return LT_NOT_SUPPORTED;
    int64_t m = p->trans[0] ? a->cols : a->rows, k = p->trans[0] ? a->rows : a->cols;
    int64_t n = p->trans[1] ? b->rows : b->cols, k2 = p->trans[1] ? b->cols : b->rows;
    if (m != d->rows || n != d->cols || m != c->rows || n != c->cols || k != k2 || !m || !n || !k) return LT_INVALID;
    if (a->ld < a->rows || b->ld < b->rows || d->ld < d->rows || (c->ld && c->ld < c->rows)) return LT_INVALID;
    if (a->batches != d->batches || b->batches != d->batches || c->batches != d->batches) return LT_INVALID;
    return (p->epilogue & LT_EPILOGUE_AUX) && (!p->aux || p->aux_ld % 8 || p->aux_ld < d->rows) ? LT_INVALID : OK;
  }
  return LT_NOT_SUPPORTED;
}

/* Two at most: one that wants a workspace and 16 bytes of alignment, and one that wants nothing. */
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *p, void *a, void *b, void *c, void *d, void *preferred,
                                   int asked, nvd_lt_result *out, int *n) {
  CALL;
  (void)handle;
  const preference *w = preferred;
  int status = knows(p, a, b, c, d), aligned = 1;
  *n = 0;
  if (status) return status;
  for (int i = 0; i < 4; i++) aligned &= w->align[i] >= 16;
  for (int i = 0; i < 2 && *n < asked; i++) {
    algo x = { MAGIC, i ? 0 : WORKSPACE,
               !i || is_8(((layout *)a)->type)  ? 16
               : ((layout *)a)->type == LT_R_8I ? 4
                                                : 1,
               (uint64_t)i, (uint64_t)((desc *)p)->compute };
    if (!aligned && x.align == 16) continue;
    for (int j = 0; j < 4 && x.align == 4; j++)
      if (w->align[j] < 4) return LT_NOT_SUPPORTED;
    if (!i && w->workspace < WORKSPACE) continue;
    out[*n] = (nvd_lt_result){ .workspace = x.workspace, .waves = 1 };
    memcpy(&out[(*n)++].algo, &x, sizeof x);
  }
  return OK;
}
int cublasLtMatmulAlgoCheck(void *handle, void *p, void *a, void *b, void *c, void *d, const nvd_lt_algo *which,
                            nvd_lt_result *out) {
  CALL;
  (void)handle;
  algo x;
  memcpy(&x, which, sizeof x);
  if (x.magic != MAGIC || x.compute != (uint64_t)((desc *)p)->compute) return LT_INVALID;
  *out = (nvd_lt_result){ .algo = *which, .workspace = x.workspace };
  return knows(p, a, b, c, d);
}
int cublasLtMatmulAlgoConfigGetAttribute(const nvd_lt_algo *which, int attribute, void *value, size_t n, size_t *had) {
  CALL;
  algo x;
  memcpy(&x, which, sizeof x);
  if (n != 4) return LT_INVALID;
  *(uint32_t *)value = attribute == LT_CONFIG_SPLIT ? 1 : (uint32_t)x.number + 20;
  *had = n;
  return OK;
}

/* ---- doing it */
typedef struct job { desc p; layout l[4]; char *at[4]; double alpha, beta; size_t nroom; } job;

static int size_of(int type) {
  if (type == LT_R_8I || is_8(type)) return 1;
  return type == LT_R_16F || type == LT_R_16BF  ? 2
         : type == LT_R_64F || type == LT_C_32F ? 8
         : type == LT_C_64F                     ? 16
                                                : 4;
}
static double eight_of(int type, int bits) { /* without its sign */
  if (type == LT_R_8F_E4M3) return bits == 0x7f ? (double)NAN : 256 * (double)f32_of_f16((uint16_t)(bits << 7));
  return (double)f32_of_f16((uint16_t)(bits << 8));
}
static double _Complex value_at(int type, const char *at) {
  union {
    float f[2];
    double d[2];
    int32_t i;
    uint16_t h;
    int8_t c;
  } u = { .d = { 0, 0 } };
  memcpy(&u, at, (size_t)size_of(type));
  switch (type) {
  case LT_R_32F: return (double)u.f[0];
  case LT_C_32F: return (double)u.f[0] + (double)u.f[1] * (double _Complex)I;
  case LT_R_64F: return u.d[0];
  case LT_C_64F: return u.d[0] + u.d[1] * (double _Complex)I;
  case LT_R_16F: return (double)f32_of_f16(u.h);
  case LT_R_16BF: return (double)f32_bits((uint32_t)u.h << 16);
  case LT_R_8I: return u.c;
  case LT_R_8F_E4M3:
  case LT_R_8F_E5M2: return u.c < 0 ? -eight_of(type, u.c & 0x7f) : eight_of(type, u.c);
  default: return u.i;
  }
}
static void put_value(int type, char *at, double _Complex v) {
  union {
    float f[2];
    double d[2];
    int32_t i;
    uint16_t h;
  } u = { .d = { 0, 0 } };
  uint32_t bits = bits_f32((float)creal(v));
  if (type == LT_R_32F || type == LT_C_32F) u.f[0] = (float)creal(v), u.f[1] = (float)cimag(v);
  else if (type == LT_R_64F || type == LT_C_64F) u.d[0] = creal(v), u.d[1] = cimag(v);
  else if (type == LT_R_16F) u.h = f16_of_f32((float)creal(v));
  else if (type == LT_R_16BF)
    u.h = (uint16_t)((isnan(creal(v)) ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  else u.i = (int32_t)(int64_t)creal(v);
  memcpy(at, &u, (size_t)size_of(type));
}
static double _Complex entry(const job *j, int x, int64_t batch, int64_t row, int64_t col) {
  const layout *l = &j->l[x];
  int64_t i = x < 2 && j->p.trans[x] ? col + row * l->ld : row + col * l->ld;
  return value_at(l->type, j->at[x] + (batch * l->stride + i) * size_of(l->type));
}

/* Of a row of a (a column of b) and a place in what is summed. */
static double factor_of(const job *j, int which, int64_t outer, int64_t inner, int64_t depth) {
  const float *f = j->p.factor[which];
  int64_t n = which ? j->l[3].cols : j->l[3].rows, blocks = (depth + 127) / 128;
  if (!f) return 1;
  switch (j->p.mode[which]) {
  case LT_SCALE_OUTER: return (double)f[outer];
  case LT_SCALE_VEC128: return (double)f[inner / 128 * n + outer];
  case LT_SCALE_BLOCK128: return (double)f[outer / 128 * ((blocks + 3) / 4 * 4) + inner / 128];
  default: return (double)*f;
  }
}

static int multiply(const void *data) {
  const job *j = data;
  const layout *d = &j->l[3];
  int64_t depth = j->p.trans[0] ? j->l[0].rows : j->l[0].cols;
  int size = size_of(d->type), bias = bias_type_of(&j->p, d->type);
  for (int64_t b = 0; b < d->batches; b++)
    for (int64_t col = 0; col < d->cols; col++)
      for (int64_t row = 0; row < d->rows; row++) {
        double _Complex v = 0;
        for (int64_t k = 0; k < depth; k++)
          v += entry(j, 0, b, row, k) * entry(j, 1, b, k, col) * factor_of(j, 0, row, k, depth) *
               factor_of(j, 1, col, k, depth);
        v *= j->alpha;
        if (j->beta != 0) v += j->beta * entry(j, 2, b, row, col);
        if (j->p.epilogue & LT_EPILOGUE_BIAS)
          v += value_at(bias, j->p.bias + (b * j->p.bias_stride + row) * size_of(bias));
        if (j->p.epilogue & LT_EPILOGUE_AUX)
          put_value(d->type, j->p.aux + (b * j->p.aux_stride + col * j->p.aux_ld + row) * size, v);
        double x = creal(v);
        if (j->p.epilogue & LT_EPILOGUE_RELU) v = x <= 0 ? 0 : x;
        if (j->p.epilogue & LT_EPILOGUE_GELU)
          v = 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
        put_value(d->type, j->at[3] + (b * d->stride + col * d->ld + row) * size, v);
      }
  return OK;
}

static double scale_of(int type, const void *at) { return creal(value_at(type, at)); }

int cublasLtMatmul(void *handle, void *p, const void *alpha, const void *a, void *al, const void *b, void *bl,
                   const void *beta, const void *c, void *cl, void *d, void *dl, const nvd_lt_algo *which,
                   void *workspace, size_t bytes, void *where) {
  CALL;
  STREAM(s, where);
  READY(s);
  (void)handle;
  job *j = calloc(1, sizeof *j);
  *j = (job){ *(desc *)p,
              { *(layout *)al, *(layout *)bl, *(layout *)cl, *(layout *)dl },
              { (char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)c, d },
              0,
              0,
              bytes };
  j->alpha = scale_of(j->p.scale, alpha);
  j->beta = scale_of(j->p.scale, beta);
  algo x;
  memcpy(&x, which, sizeof x);
  int bad = knows(p, al, bl, cl, dl);
  if (x.magic != MAGIC || x.compute != (uint64_t)j->p.compute) bad = LT_INVALID;
  if (x.workspace > bytes || (x.workspace && memory_device(workspace, bytes) != s->device)) bad = LT_INVALID;
  for (int i = 0; i < 4 && !bad; i++) {
    const layout *l = &j->l[i];
    int64_t n = (l->batches - 1) * l->stride + (l->cols - 1) * l->ld + l->rows;
    if ((i == 2 && j->beta == 0) || !n) continue;
    if ((uintptr_t)j->at[i] % x.align || memory_device(j->at[i], (size_t)(n * size_of(l->type))) != s->device)
      bad = LT_INVALID;
  }
  if (bad) return free(j), bad;
  return enqueue(
      s, (op){ .kind = HOST, .call = multiply, .device = s->device, .staged = j, .n = sizeof *j, .from = (char *)j });
}

/* ---- c = alpha op(a), of float32 */
typedef struct turning { layout a, c; int trans; float alpha; const char *from; char *to; } turning;
int cublasLtMatrixTransformDescCreate(void **to, int scale) {
  CALL;
  if (scale != LT_R_32F) return LT_NOT_SUPPORTED;
  return *to = calloc(1, sizeof(int)), OK;
}
int cublasLtMatrixTransformDescDestroy(void *d) {
  CALL;
  free(d);
  return OK;
}
int cublasLtMatrixTransformDescSetAttribute(void *to, int attribute, const void *value, size_t n) {
  CALL;
  if (attribute != LT_TRANSFORM_TRANSA || n != 4) return LT_INVALID;
  return memcpy(to, value, n), OK;
}
static int turn(const void *data) {
  const turning *t = data;
  for (int64_t col = 0; col < t->c.cols; col++)
    for (int64_t row = 0; row < t->c.rows; row++) {
      int64_t i = t->trans ? col + row * t->a.ld : row + col * t->a.ld;
      double v = creal(value_at(LT_R_32F, t->from + 4 * i));
      put_value(LT_R_32F, t->to + 4 * (row + col * t->c.ld), (double)t->alpha * v);
    }
  return OK;
}
int cublasLtMatrixTransform(void *handle, void *p, const void *alpha, const void *a, void *al, const void *beta,
                            const void *b, void *bl, void *c, void *cl, void *where) {
  CALL;
  STREAM(s, where);
  READY(s);
  (void)handle, (void)beta;
  turning *t = calloc(1, sizeof *t);
  *t = (turning){ *(layout *)al, *(layout *)cl, *(int *)p, *(const float *)alpha, a, c };
  const layout *from = &t->a, *to = &t->c;
  int64_t n = (from->cols - 1) * from->ld + from->rows, m = (to->cols - 1) * to->ld + to->rows;
  int fits = (t->trans ? from->cols : from->rows) == to->rows && (t->trans ? from->rows : from->cols) == to->cols;
  fits &= from->type == LT_R_32F && to->type == LT_R_32F && from->ld >= from->rows && to->ld >= to->rows;
  if (b || bl || !fits || memory_device(a, 4 * (size_t)n) != s->device || memory_device(c, 4 * (size_t)m) != s->device)
    return free(t), LT_INVALID;
  return enqueue(
      s, (op){ .kind = HOST, .call = turn, .device = s->device, .staged = t, .n = sizeof *t, .from = (char *)t });
}
