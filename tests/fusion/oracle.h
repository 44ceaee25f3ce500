/* For the planner's suites: graphs made by hand, an evaluator that knows no plan (node by node, element by element,
   sums in the order of numerics.md), and plans run through the interpreter. */
#ifndef ORACLE_H
#define ORACLE_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../arena.h"
#include "../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "codegen/codegen.h"
#include "fusion/plan.h"

/* ---- graphs */
typedef struct maker {
  nvb_arena *a;
  NVB_VEC(nvg_val) v;
  NVB_VEC(nvg_leaf) leaf;
  NVB_VEC(int) out;
  const nvf_plan *plan; /* whose order the sums of products have; NULL: ascending */
} maker;

static inline int m_add(maker *m, nvg_val v, int rank, const int64_t *shape, int nin, const int *in, int nattr,
                        const int64_t *attr) {
  v.rank = rank;
  v.shape = nvb_dup(m->a, shape, sizeof *shape * (size_t)rank);
  v.size = 1;
  for (int d = 0; d < rank; d++) v.size *= shape[d];
  v.nin = nin;
  v.in = nvb_dup(m->a, in, sizeof *in * (size_t)nin);
  v.nattr = nattr;
  v.attr = nvb_dup(m->a, attr, sizeof *attr * (size_t)nattr);
  NVB_PUSH(m->a, m->v, v);
  return m->v.n - 1;
}

/* stride NULL: packed */
static inline int m_leaf(maker *m, nvm_dtype t, int rank, const int64_t *shape, const int64_t *stride) {
  int64_t *st = NVB_NEWN(m->a, int64_t, rank + 1), n = 1;
  for (int d = rank - 1; d >= 0; n *= shape[d], d--) st[d] = stride ? stride[d] : n;
  NVB_PUSH(m->a, m->leaf,
           ((nvg_leaf){
               .dtype = t, .rank = rank, .shape = nvb_dup(m->a, shape, sizeof *shape * (size_t)rank), .stride = st }));
  return m_add(m, (nvg_val){ .kind = NVG_VLEAF, .dtype = t, .leaf = m->leaf.n - 1, .name = "leaf" }, rank, shape, 0,
               NULL, 0, NULL);
}

static inline int m_const(maker *m, float x) {
  union {
    float f;
    uint32_t u;
  } b = { .f = x };
  int64_t attr[2] = { b.u, 0 };
  return m_add(m, (nvg_val){ .kind = NVG_VCONST, .dtype = NVM_F32, .name = "const" }, 0, NULL, 0, NULL, 2, attr);
}

static inline int m_view(maker *m, nvg_vkind k, int x, int rank, const int64_t *shape, int nattr, const int64_t *attr) {
  return m_add(m, (nvg_val){ .kind = k, .dtype = m->v.at[x].dtype, .name = "view" }, rank, shape, 1, &x, nattr, attr);
}

static inline int m_map(maker *m, const char *name, int n, const int *in) {
  nvm_dtype t[8];
  int np = 0, big = in[0];
  for (int i = 0; i < n; i++) {
    const nvg_val *x = &m->v.at[in[i]];
    for (int p = 0; p < (nvg_class_of(x->dtype) == NVG_COMPLEX ? 2 : 1); p++) t[np++] = nvg_real_of(x->dtype);
    if (x->rank > m->v.at[big].rank) big = in[i];
  }
  const nvg_frag *f = nvg_frag_find(name, t, np);
  if (!f) nvb_throw(m->a, NVM_ERR_VALUE, "no fragment %s: %s", name, nvb_message());
  nvm_dtype r = (nvm_dtype)f->inst[f->result[0]].type;
  const nvg_val big_v = m->v.at[big];
  return m_add(m,
               (nvg_val){ .kind = NVG_VMAP, .dtype = f->nresult > 1 ? nvg_complex_of(r) : r, .frag = f, .name = name },
               big_v.rank, big_v.shape, n, in, 0, NULL);
}
static inline int m_1(maker *m, const char *f, int x) { return m_map(m, f, 1, &x); }
static inline int m_expand(maker *m, int x, int rank, const int64_t *shape);

/* Binary, with broadcasting. */
static inline int m_2(maker *m, const char *f, int x, int y) {
  const nvg_val a = m->v.at[x], b = m->v.at[y];
  int rank = a.rank > b.rank ? a.rank : b.rank;
  int64_t shape[NVM_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    int64_t p = d - rank + a.rank >= 0 ? a.shape[d - rank + a.rank] : 1,
            q = d - rank + b.rank >= 0 ? b.shape[d - rank + b.rank] : 1;
    shape[d] = p == 1 ? q : p;
  }
  int in[2] = { a.rank ? m_expand(m, x, rank, shape) : x, b.rank ? m_expand(m, y, rank, shape) : y };
  return m_map(m, f, 2, in);
}

static inline int m_reshape(maker *m, int x, int rank, const int64_t *shape) {
  return m_view(m, NVG_VRESHAPE, x, rank, shape, 0, NULL);
}

static inline int m_expand(maker *m, int x, int rank, const int64_t *shape) {
  int64_t one[NVM_MAX_RANK] = { 0 };
  nvg_val v = m->v.at[x];
  if (v.rank < rank) {
    for (int d = 0; d < rank; d++) one[d] = d < rank - v.rank ? 1 : v.shape[d - rank + v.rank];
    x = m_reshape(m, x, rank, one);
    v = m->v.at[x];
  }
  return memcmp(v.shape, shape, sizeof *shape * (size_t)rank) ? m_view(m, NVG_VEXPAND, x, rank, shape, 0, NULL) : x;
}

/* add, maximum, minimum over n axes from `at`, kept as 1 */
static inline int m_red(maker *m, const char *name, int x, int at, int n) {
  const nvg_val v = m->v.at[x];
  int64_t shape[NVM_MAX_RANK], attr[2] = { at, n }, inner = 1;
  nvm_dtype t[2] = { v.dtype, v.dtype };
  uint64_t init = nvg_float_bits(v.dtype, !strcmp(name, "add")       ? -0.0
                                          : !strcmp(name, "maximum") ? -INFINITY
                                                                     : INFINITY);
  for (int d = 0; d < v.rank; d++) {
    shape[d] = d >= at && d < at + n ? 1 : v.shape[d];
    inner *= d >= at + n ? v.shape[d] : 1;
  }
  nvg_val r = { .kind = NVG_VRED,
                .dtype = v.dtype,
                .frag = nvg_frag_find(name, t, 2),
                .chunk = inner < 16 ? 1024 : 64,
                .lanes = inner < 16 ? 128 : 1,
                .order_free = strcmp(name, "add") != 0,
                .init = nvb_dup(m->a, &init, sizeof init),
                .name = name };
  return m_add(m, r, v.rank, shape, 1, &x, 2, attr);
}

static inline int m_product(maker *m, int x, int y) {
  const nvg_val a = m->v.at[x], b = m->v.at[y];
  int64_t shape[NVM_MAX_RANK] = { 0 };
  memcpy(shape, a.shape, sizeof *shape * (size_t)a.rank);
  shape[a.rank - 1] = b.shape[a.rank - 1];
  nvm_dtype sum = a.dtype == NVM_I8 ? NVM_I32 : nvg_compute_of(a.dtype);
  return m_add(m, (nvg_val){ .kind = NVG_VCALL, .op = NVG_OP_GEMM, .dtype = sum, .name = "matmul" }, a.rank, shape, 2,
               (int[2]){ x, y }, 2, (int64_t[2]){ sum, 0 });
}

static inline int m_turn(maker *m, int x) { /* the last two dimensions change places */
  const nvg_val v = m->v.at[x];
  int64_t shape[NVM_MAX_RANK] = { 0 }, attr[NVM_MAX_RANK] = { 0 };
  for (int d = 0; d < v.rank; d++) attr[d] = d < v.rank - 2 ? d : 2 * v.rank - 3 - d, shape[d] = v.shape[attr[d]];
  return m_view(m, NVG_VPERMUTE, x, v.rank, shape, v.rank, attr);
}

/* add, prod along an axis */
static inline int m_scan_of(maker *m, const char *name, int x, int axis) {
  const nvg_val v = m->v.at[x];
  static const uint64_t zero = 0x80000000u, one = 0x3f800000u;
  nvg_val r = { .kind = NVG_VSCAN,
                .dtype = v.dtype,
                .frag = nvg_frag_find(name, (nvm_dtype[2]){ v.dtype, v.dtype }, 2),
                .init = strcmp(name, "prod") ? &zero : &one,
                .name = name };
  return m_add(m, r, v.rank, v.shape, 1, &x, 1, (int64_t[1]){ axis });
}
static inline int m_scan(maker *m, int x, int axis) { return m_scan_of(m, "add", x, axis); }

static inline void m_out(maker *m, int x) { NVB_PUSH(m->a, m->out, x); }
static inline nvg_graph *m_graph(maker *m) {
  nvg_graph *g = NVB_NEW(m->a, nvg_graph);
  *g = (nvg_graph){
    .arena = m->a, .n = m->v.n, .v = m->v.at, .nleaf = m->leaf.n, .leaf = m->leaf.at, .nout = m->out.n, .out = m->out.at
  };
  return g;
}

/* ---- the evaluator: a value is its parts, packed */
typedef struct value { int n; char *part[2]; } value;
static inline void unravel(int64_t i, int rank, const int64_t *shape, int64_t *c) {
  for (int d = rank - 1; d >= 0; d--) {
    c[d] = i % shape[d];
    i /= shape[d];
  }
}
static inline int64_t ravel(int rank, const int64_t *shape, const int64_t *c) {
  int64_t i = 0;
  for (int d = 0; d < rank; d++) i = i * shape[d] + c[d];
  return i;
}
static inline int parts_of(nvm_dtype t) { return nvg_class_of(t) == NVG_COMPLEX ? 2 : 1; }

/* Source element of an element of a view, or -1 (pad). which: operand of concat. */
static inline int64_t source(const nvg_graph *g, const nvg_val *v, int64_t i, int *which, const value *val) {
  const nvg_val *x = &g->v[v->in[0]];
  int64_t c[NVM_MAX_RANK + 1] = { 0 }, s[NVM_MAX_RANK + 1] = { 0 };
  *which = 0;
  unravel(i, v->rank, v->shape, c);
  for (int d = 0; d < v->rank && d < x->rank; d++) s[d] = c[d];
  switch (v->kind) {
  case NVG_VRESHAPE: return i;
  case NVG_VPERMUTE: for (int d = 0; d < v->rank; d++) s[v->attr[d]] = c[d]; break;
  case NVG_VSLICE: for (int d = 0; d < v->rank; d++) s[d] = v->attr[2 * d] + c[d] * v->attr[2 * d + 1]; break;
  case NVG_VEXPAND: for (int d = 0; d < v->rank; d++) s[d] = x->shape[d] == 1 ? 0 : c[d]; break;
  case NVG_VROLL: s[v->attr[0]] = (c[v->attr[0]] + v->attr[1]) % x->shape[v->attr[0]]; break;
  case NVG_VPAD:
    for (int d = 0; d < v->rank; d++) {
      s[d] = c[d] - v->attr[d];
      if (s[d] < 0 || s[d] >= x->shape[d]) return -1;
    }
    break;
  case NVG_VCONCAT:
    for (; s[v->attr[0]] >= g->v[v->in[*which]].shape[v->attr[0]]; ++*which)
      s[v->attr[0]] -= g->v[v->in[*which]].shape[v->attr[0]];
    x = &g->v[v->in[*which]];
    break;
  case NVG_VGATHER: s[v->attr[0]] = ((int64_t *)val[v->in[1]].part[0])[i]; break;
  default: break;
  }
  return ravel(x->rank, x->shape, s);
}

static inline void eval_map(maker *m, const nvg_graph *g, const nvg_val *v, value *val, value *o) {
  const void *in[16];
  void *out[4];
  int n = 0;
  for (int i = 0; i < v->nin; i++) {
    const nvg_val *x = &g->v[v->in[i]];
    for (int p = 0; p < parts_of(x->dtype); p++) {
      int e = nvg_size(nvg_real_of(x->dtype));
      char *full = val[v->in[i]].part[p];
      if (x->size == 1 && v->size > 1) {
        full = nvb_get(m->a, (size_t)(e * v->size));
        for (int64_t j = 0; j < v->size; j++) memcpy(full + j * e, val[v->in[i]].part[p], (size_t)e);
      }
      in[n++] = full;
    }
  }
  for (int p = 0; p < o->n; p++) out[p] = o->part[p];
  nvg_frag_run(v->frag, in, out, v->size, 1);
}

/* One result of an ordered reduction: state words of `n` elements, merged in place by the tree. */
static inline void merge_at(const nvg_frag *f, int ns, const int *size, char **st, int64_t i, int64_t j) {
  const void *in[16];
  void *out[8];
  char tmp[8][16];
  for (int s = 0; s < ns; s++) {
    in[s] = st[s] + i * size[s];
    in[ns + s] = st[s] + j * size[s];
    out[s] = tmp[s];
  }
  nvg_frag_run(f, in, out, 1, 1);
  for (int s = 0; s < ns; s++) memcpy(st[s] + i * size[s], tmp[s], (size_t)size[s]);
}
static inline void tree(const nvg_frag *f, int ns, const int *size, char **st, int64_t n, int64_t stride) {
  for (int64_t b = 1; b < n; b *= 2)
    for (int64_t i = 0; i + b < n; i += 2 * b) merge_at(f, ns, size, st, i * stride, (i + b) * stride);
}
static inline void ordered_fold(const nvg_val *v, int ns, const int *size, char **st, int64_t n) {
  int64_t C = v->chunk, W = v->lanes;
  for (int64_t c = 0; c < n; c += C) {
    int64_t len = n - c < C ? n - c : C;
    char *at[8];
    for (int s = 0; s < ns; s++) at[s] = st[s] + c * size[s];
    for (int64_t i = W; i < len; i++) merge_at(v->frag, ns, size, at, i % W, i);
    tree(v->frag, ns, size, at, len < W ? len : W, 1);
  }
  tree(v->frag, ns, size, st, (n + C - 1) / C, C);
}

static inline void eval_red(maker *m, const nvg_graph *g, const nvg_val *v, value *val, char **out) {
  const nvg_val *x = &g->v[v->in[0]];
  int size[8], ns = 0;
  char *st[8], *src[8];
  int64_t n = 1;
  for (int d = (int)v->attr[0]; d < v->attr[0] + v->attr[1]; d++) n *= x->shape[d];
  for (int i = 0; i < v->nin; i++)
    for (int p = 0; p < parts_of(g->v[v->in[i]].dtype); p++, ns++) {
      size[ns] = nvg_size(nvg_real_of(g->v[v->in[i]].dtype));
      src[ns] = val[v->in[i]].part[p];
      st[ns] = nvb_get(m->a, (size_t)(size[ns] * (n + 1)));
    }
  int64_t inner = 1;
  for (int d = (int)(v->attr[0] + v->attr[1]); d < x->rank; d++) inner *= x->shape[d];
  for (int64_t o = 0; o < v->size; o++) {
    for (int64_t i = 0; i < n; i++)
      for (int s = 0; s < ns; s++)
        memcpy(st[s] + i * size[s], src[s] + ((o / inner * n + i) * inner + o % inner) * size[s], (size_t)size[s]);
    if (n) ordered_fold(v, ns, size, st, n);
    for (int s = 0; s < ns; s++) memcpy(out[s] + o * size[s], n ? (void *)st[s] : (void *)&v->init[s], (size_t)size[s]);
  }
}

/* One line of a scan of f32, a sum or a product (numerics.md section 4: runs of 16, blocks of 1,024). */
static inline float both(int prod, float x, float y) { return prod ? x * y : x + y; }
/* aligned group of n runs, absent ones skipped */
static inline float group_total(int prod, const float *total, int at, int n, int runs) {
  if (n == 1) return total[at];
  float low = group_total(prod, total, at, n / 2, runs);
  return at + n / 2 < runs ? both(prod, low, group_total(prod, total, at + n / 2, n / 2, runs)) : low;
}
static inline void scan_line(int prod, const float *x, float *y, int64_t n, int64_t step) {
  float carry = 0;
  for (int64_t b = 0; b < n; b += 1024) {
    int64_t len = n - b < 1024 ? n - b : 1024;
    float total[64], in[1024];
    int runs = (int)((len + 15) / 16);
    for (int64_t i = 0; i < len; i++)
      total[i / 16] = in[i] = i % 16 ? both(prod, in[i - 1], x[(b + i) * step]) : x[(b + i) * step];
    for (int64_t i = 0; i < len; i++) {
      int r = (int)(i / 16), have = 0;
      float e = 0;
      for (int bit = 1; bit <= r; bit *= 2)
        if (r & bit) {
          float left = group_total(prod, total, (r & ~(2 * bit - 1)), bit, runs);
          e = have ? both(prod, left, e) : left;
          have = 1;
        }
      float base = b ? (have ? both(prod, carry, e) : carry) : e;
      y[(b + i) * step] = b || have ? both(prod, base, in[i]) : in[i];
    }
    int top = 1;
    while (top < runs) top *= 2;
    float all = group_total(prod, total, 0, top, runs);
    carry = b ? both(prod, carry, all) : all;
  }
}

/* split-K of a product (numerics.md section 4): each block takes every blocks-th k-tile of this depth. */
typedef struct split_k { int64_t blocks, depth; } split_k;
/* By the plan's step that makes a product of that many sums: a loop whose step is both numbers. */
static inline split_k split_k_of(const nvf_plan *p, int64_t sums, int64_t k) {
  for (int i = 0; p && i < p->nstep; i++) {
    const nvf_step *st = &p->step[i];
    int64_t n = st->gemm ? st->gemm->m * st->gemm->n : 0;
    for (int b = 0; n && b < st->gemm->nbatch; b++) n *= st->gemm->batch[b];
    for (int j = 0; n == sums && st->gemm->k == k && j < st->k->part->body.n; j++) {
      const nvf_stmt *s = st->k->part->body.s[j];
      if (s->op == NVF_FOR && s->step->kind == NVF_MUL)
        return (split_k){ st->s->bind[s->step->a->id].value, st->s->bind[s->step->b->id].value };
    }
  }
  return (split_k){ 1, k };
}

/* The parts of the operands as they are multiplied one after the other: re += re re, re -= im im, im += re im, im += im
   re; fma in ascending order of the sum's axis. */
static inline double product_at(const value *x, int part, nvm_dtype t, int64_t i) {
  uint64_t bits = 0;
  memcpy(&bits, x->part[part] + i * nvg_size(t), (size_t)nvg_size(t));
  return t == NVM_I8 ? (int8_t)bits : nvg_bits_float(t, bits);
}
typedef struct dots { /* of one row and one column: first elements, and the distances of the next ones */
  const value *x, *y;
  int64_t row, column, k, n;
  nvm_dtype operands, sum;
  split_k by;
} dots;
static inline double rounded_sum(nvm_dtype t, double x, double y) { return t == NVM_F32 ? (float)x + (float)y : x + y; }
static inline double fused(nvm_dtype t, double x, double y, double acc) {
  return t == NVM_F32 ? fmaf((float)x, (float)y, (float)acc) : fma(x, y, acc);
}
static inline double part_of_block(const dots *d, int q, int64_t block, double acc) {
  int left = q == 1 || q == 3, right = q == 1 || q == 2;
  for (int64_t r = block * d->by.depth; r < d->k; r += d->by.blocks * d->by.depth)
    for (int64_t k = r; k < r + d->by.depth && k < d->k; k++)
      acc = fused(d->sum, product_at(d->x, left, d->operands, d->row + k) * (q == 1 ? -1 : 1),
                  product_at(d->y, right, d->operands, d->column + k * d->n), acc);
  return acc;
}
static inline double sum_of_blocks(const dots *d, int part, int64_t first, int64_t blocks) {
  if (blocks > 1)
    return rounded_sum(d->sum, sum_of_blocks(d, part, first, blocks / 2),
                       sum_of_blocks(d, part, first + blocks / 2, blocks / 2));
  double acc = part_of_block(d, 2 * part, first, 0);
  return d->x->n > 1 ? part_of_block(d, 2 * part + 1, first, acc) : acc;
}
static inline void eval_product(const maker *m, const nvg_graph *g, const nvg_val *v, const value *val, value *o) {
  int64_t rows = v->shape[v->rank - 2], n = v->shape[v->rank - 1], k = g->v[v->in[0]].shape[v->rank - 1];
  dots d = { .x = &val[v->in[0]],
             .y = &val[v->in[1]],
             .k = k,
             .n = n,
             .operands = nvg_real_of(g->v[v->in[0]].dtype),
             .sum = nvg_real_of(v->dtype),
             .by = split_k_of(m->plan, v->size, k) };
  for (int64_t i = 0; i < v->size; i++) {
    d.row = i / n * k;
    d.column = i / (rows * n) * k * n + i % n;
    for (int p = 0; p < o->n; p++) {
      double sum = sum_of_blocks(&d, p, 0, d.by.blocks);
      uint64_t bits = d.sum == NVM_I32 ? (uint32_t)(int64_t)sum : nvg_float_bits(d.sum, sum);
      memcpy(o->part[p] + i * nvg_size(d.sum), &bits, (size_t)nvg_size(d.sum));
    }
  }
}

/* data: of each leaf, at its first element */
static inline value *evaluate(maker *m, const nvg_graph *g, char *const *data) {
  value *val = NVB_NEWN(m->a, value, g->n);
  char ***state = NVB_NEWN(m->a, char **, g->n);
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    int e = nvg_size(nvg_real_of(v->dtype));
    val[i].n = parts_of(v->dtype);
    for (int p = 0; p < val[i].n; p++) val[i].part[p] = nvb_get(m->a, (size_t)(e * v->size) + 16);
    int64_t c[NVM_MAX_RANK + 1];
    if (v->kind == NVG_VMAP) {
      eval_map(m, g, v, val, &val[i]);
      continue;
    }
    if (v->kind == NVG_VRED) {
      state[i] = NVB_NEWN(m->a, char *, 8);
      for (int s = 0; s < v->nin * val[i].n; s++)
        state[i][s] = s < val[i].n ? val[i].part[s] : nvb_get(m->a, (size_t)(16 * v->size) + 16);
      eval_red(m, g, v, val, state[i]);
      continue;
    }
    if (v->kind == NVG_VSCAN) {
      int64_t n = v->shape[v->attr[0]], inner = 1;
      for (int d = (int)v->attr[0] + 1; d < v->rank; d++) inner *= v->shape[d];
      for (int64_t o = 0; o < v->size; o++)
        if (o / inner % n == 0)
          scan_line(!strcmp(v->name, "prod"), (float *)val[v->in[0]].part[0] + o, (float *)val[i].part[0] + o, n,
                    inner);
      continue;
    }
    if (v->kind == NVG_VCALL) {
      eval_product(m, g, v, val, &val[i]);
      continue;
    }
    if (v->kind == NVG_VPICK) {
      val[i].part[0] = state[v->in[0]][v->attr[0]];
      continue;
    }
    for (int64_t j = 0; j < v->size; j++)
      for (int p = 0; p < val[i].n; p++) {
        char *to = val[i].part[p] + j * e;
        int which;
        if (v->kind == NVG_VCONST) memcpy(to, &v->attr[p], (size_t)e);
        else if (v->kind == NVG_VIOTA) {
          unravel(j, v->rank, v->shape, c);
          memcpy(to, &c[v->attr[0]], 8);
        } else if (v->kind == NVG_VLEAF) {
          const nvg_leaf *l = &g->leaf[v->leaf];
          int64_t at = 0;
          unravel(j, v->rank, v->shape, c);
          for (int d = 0; d < v->rank; d++) at += c[d] * l->stride[d];
          memcpy(to, data[v->leaf] + (at * val[i].n + p) * e, (size_t)e);
        } else {
          int64_t s = source(g, v, j, &which, val);
          memcpy(to, s < 0 ? val[v->in[1]].part[p] : val[v->in[which]].part[p] + s * e, (size_t)e);
        }
      }
  }
  return val;
}

/* ---- plans through the interpreter */
static inline char **random_leaves(maker *m, const nvg_graph *g, unsigned seed) {
  char **data = NVB_NEWN(m->a, char *, g->nleaf + 1);
  srand(seed);
  for (int i = 0; i < g->nleaf; i++) {
    const nvg_leaf *l = &g->leaf[i];
    int64_t lo = 0, hi = 0;
    for (int d = 0; d < l->rank; d++)
      *(l->stride[d] < 0 ? &lo : &hi) += (l->shape[d] > 0 ? l->shape[d] - 1 : 0) * l->stride[d];
    int e = nvg_size(l->dtype), r = nvg_size(nvg_real_of(l->dtype));
    char *p = nvb_get(m->a, (size_t)((hi - lo + 1) * e) + 64);
    for (int64_t j = 0; j < (hi - lo + 1) * e / r; j++) {
      double x = (double)(rand() % 2001 - 1000) / 256;
      float f = (float)x;
      int64_t n = rand() % 7;
      memcpy(p + j * r,
             l->dtype == NVM_BOOL                   ? (void *)&(char){ rand() & 1 }
             : nvg_class_of(l->dtype) == NVG_SIGNED ? (void *)&n
             : r == 8                               ? (void *)&x
                                                    : (void *)&f,
             (size_t)r);
    }
    data[i] = p - lo * e;
  }
  return data;
}

/* How a plan's kernels are run: as they are, as read back from their text, or compiled (for a CPU). */
typedef enum way { INTERPRETED, READ_BACK, COMPILED } way;

static inline int run_step(nvb_arena *a, const nvf_plan *p, const nvf_step *s, const uint64_t *args, way w) {
  nvf_kernel *k = s->k;
  nvf_schedule *sched = s->s;
  const char *name = nvf_schedule_of(p->device);
  if (w != INTERPRETED) {
    nvb_text t = { .arena = a };
    nvf_kernel_print(&t, s->k);
    nvf_schedule_print(&t, s->k, s->s, name);
    k = nvf_kernel_parse(a, nvb_text_get(&t), "plan");
    sched = nvf_schedule_find(k, name);
  }
  if (w == COMPILED) {
    nvc_object o;
    nvc_code *code;
    if (nvc_compile(&o, k, sched, nvc_target_host(), 0) || nvc_load(&code, &o))
      nvb_throw(a, nvb_status(), "%s", nvb_message());
    char *scratch = nvb_get(a, (size_t)o.scratch + 64);
    int rc = nvc_code_entry(code)(args, 0, s->blocks, scratch + (-(uintptr_t)scratch & 63));
    nvc_code_free(code);
    nvb_free(o.bytes);
    return rc;
  }
  nvc_interp *i = nvc_interp_new(a, k, sched);
  char *scratch = nvb_get(a, (size_t)nvc_interp_scratch(i) + 64);
  return nvc_interp_run(i, args, 0, s->blocks, scratch + (-(uintptr_t)scratch & 63));
}

static inline char **run_plan_by(maker *m, const nvf_plan *p, char *const *leaf, way w) {
  char **out = NVB_NEWN(m->a, char *, p->g->nout + 1), *temp = nvb_get(m->a, (size_t)p->temp_bytes + 64);
  memset(temp, 0xa5, (size_t)p->temp_bytes + 64);
  for (int o = 0; o < p->g->nout; o++) {
    const nvg_val *v = &p->g->v[p->g->out[o]];
    out[o] = nvb_get(m->a, (size_t)(v->size * nvg_size(v->dtype)) + 64);
    memset(out[o], 0x5a, (size_t)(v->size * nvg_size(v->dtype)) + 64);
  }
  for (int i = 0; i < p->nstep; i++) {
    const nvf_step *s = &p->step[i];
    uint64_t *args = NVB_NEWN(m->a, uint64_t, s->k->nparam + 1);
    for (int j = 0; j < s->k->nparam; j++) {
      const nvf_buf *b = s->bind[j].kind == NVF_BUFFER ? &p->buf[s->bind[j].buf] : NULL;
      if (s->bind[j].kind == NVF_SCALAR && s->bind[j].leaf) {
        memcpy(&args[j], leaf[s->bind[j].leaf - 1], (size_t)nvg_size(s->k->param[j].type));
        continue;
      }
      args[j] = !b ? s->bind[j].bits
                   : (uint64_t)(uintptr_t)((b->kind == NVF_BLEAF  ? leaf[b->id]
                                            : b->kind == NVF_BOUT ? out[b->id]
                                                                  : temp + b->offset) +
                                           s->bind[j].offset);
    }
    int rc = run_step(m->a, p, s, args, w);
    if (rc) nvb_throw(m->a, NVM_ERR_INDEX, "check %d of step %d failed", rc - 1, i);
  }
  return out;
}

/* The plan with every step told these things. */
static inline nvf_plan *told_plan(const nvf_plan *p, const nvf_knobs *k) {
  nvf_plan *q = nvb_dup(p->arena, p, sizeof *p);
  q->step = nvb_dup(p->arena, p->step, (size_t)p->nstep * sizeof *p->step);
  for (int i = 0; i < p->nstep; i++) q->step[i] = *nvf_step_with(p, i, k);
  return q;
}

static inline char **run_plan(maker *m, const nvf_plan *p, char *const *leaf) {
  return run_plan_by(m, p, leaf, INTERPRETED);
}

/* Number of elements of output o that differ from the evaluator (both NaN is equal). */
static inline int64_t differ(const nvg_graph *g, int o, const value *val, const char *got) {
  const nvg_val *v = &g->v[g->out[o]];
  const value *w = &val[g->out[o]];
  int e = nvg_size(nvg_real_of(v->dtype));
  int64_t bad = 0;
  for (int64_t i = 0; i < v->size; i++)
    for (int p = 0; p < w->n; p++) {
      const char *x = w->part[p] + i * e, *y = got + (i * w->n + p) * e;
      float f, h;
      memcpy(&f, x, e < 4 ? (size_t)e : 4);
      memcpy(&h, y, e < 4 ? (size_t)e : 4);
      bad += memcmp(x, y, (size_t)e) && !(nvg_real_of(v->dtype) == NVM_F32 && f != f && h != h);
    }
  return bad;
}
#endif
