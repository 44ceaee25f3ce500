/* Reduces in a direct run, by the tree of docs/how-it-works/numerics.md section 4. The elements are laid out so that
   each step of the tree is one call of the fragment over contiguous memory. Never changes the order of a result. */
#include <string.h>
#include "api/direct.h"

enum { PLANES = 2 * NVA_STATES, WIDE = 64 }; /* WIDE: elements from which rows merge without being gathered */

/* The states of a reduction, each part a plane of packed elements of one size. */
typedef struct planes { int n, size[PLANES]; char *at[PLANES]; } planes;
typedef struct tree {
  nva_direct_run *r;
  const nvg_val *v;
  int64_t outer, len, inner, row; /* elements before, along and inside the axes; row: those of outer and inner */
  int64_t chunk, lanes;
} tree;

static planes planes_at(const planes *p, int64_t element) {
  planes q = *p;
  for (int i = 0; i < p->n; i++) q.at[i] += element * p->size[i];
  return q;
}
static planes planes_new(nva_direct_run *r, const planes *like, int64_t elements) {
  planes q = *like;
  for (int i = 0; i < q.n; i++) q.at[i] = nva_direct_work(r, elements * q.size[i]);
  return q;
}
static void merge_planes(const tree *t, const planes *a, const planes *b, const planes *to, int64_t n) {
  const void *in[2 * PLANES];
  void *out[PLANES];
  for (int i = 0; i < a->n; i++) {
    in[i] = a->at[i];
    in[a->n + i] = b->at[i];
    out[i] = to->at[i];
  }
  nvg_frag_apply(t->v->frag, in, out, n);
}
static void move_planes(const planes *to, const planes *from, const int64_t *shape, const int64_t *to_stride,
                        const int64_t *from_stride) {
  enum { RANK = 4 };
  for (int i = 0; i < to->n; i++) {
    int64_t a[RANK], b[RANK];
    for (int d = 0; d < RANK; d++) {
      a[d] = to_stride[d] * to->size[i];
      b[d] = from_stride[d] * to->size[i];
    }
    nva_move_strided(to->at[i], a, from->at[i], b, RANK, shape, (size_t)to->size[i]);
  }
}
static void copy_planes(const planes *to, const planes *from, int64_t n) {
  for (int i = 0; i < to->n; i++) memcpy(to->at[i], from->at[i], (size_t)(n * to->size[i]));
}

/* Number of lanes of chunk c that have an element in step q. */
static int64_t lanes_in(const tree *t, int64_t c, int64_t q) {
  int64_t left = t->len - c * t->chunk - q * t->lanes;
  return left < 0 ? 0 : left < t->lanes ? left : t->lanes;
}

/* Orders the elements by step, then chunk, lane and kept element: the rows of a step are the first of those of the step
   before it. Returns x itself if that is its order. */
static planes order_by_step(const tree *t, const planes *x) {
  int64_t chunks = (t->len + t->chunk - 1) / t->chunk, steps = t->chunk / t->lanes, at = 0;
  if (t->outer == 1 && (chunks == 1 || steps == 1)) return *x;
  planes all = planes_new(t->r, x, t->len * t->row);
  const int64_t to_stride[] = { t->lanes * t->row, t->row, t->inner, 1 };
  const int64_t from_stride[] = { t->chunk * t->inner, t->inner, t->len * t->inner, 1 };
  for (int64_t q = 0; q < steps; q++)
    for (int64_t c = 0, n; c < chunks && (n = lanes_in(t, c, q)) > 0;) {
      int64_t same =
          n == t->lanes && c < chunks - 1 ? chunks - 1 - c : 1; /* chunks with all their lanes move at once */
      planes to = planes_at(&all, at), from = planes_at(x, (c * t->chunk + q * t->lanes) * t->inner);
      move_planes(&to, &from, (int64_t[]){ same, n, t->outer, t->inner }, to_stride, from_stride);
      at += same * n * t->row;
      c += same;
    }
  return all;
}

/* Merges rows 2k and 2k + 1 to row k; an odd last row stays alone. */
static void halve_rows(const tree *t, const planes *acc, const planes *even, const planes *odd, int64_t rows) {
  int64_t pairs = rows / 2;
  planes second = planes_at(acc, t->row);
  if (t->row < WIDE) {
    const int64_t shape[] = { pairs, t->row, 1, 1 }, packed[] = { t->row, 1, 0, 0 }, apart[] = { 2 * t->row, 1, 0, 0 };
    move_planes(even, acc, shape, packed, apart);
    move_planes(odd, &second, shape, packed, apart);
    merge_planes(t, even, odd, acc, pairs * t->row);
  } else
    for (int64_t k = 0; k < pairs; k++) {
      planes a = planes_at(acc, 2 * k * t->row), b = planes_at(acc, (2 * k + 1) * t->row),
             to = planes_at(acc, k * t->row);
      merge_planes(t, &a, &b, &to, t->row);
    }
  if (rows % 2) {
    planes last = planes_at(acc, (rows - 1) * t->row), to = planes_at(acc, pairs * t->row);
    if (pairs) copy_planes(&to, &last, t->row);
  }
}

/* Every chunk but the last has the same lanes, whose number is a power of two, so one tree over all rows merges the
   lanes of each chunk and then the chunks. */
static planes reduce_planes(const tree *t, const planes *x) {
  int64_t chunks = (t->len + t->chunk - 1) / t->chunk;
  int64_t rows = (chunks - 1) * t->lanes + lanes_in(t, chunks - 1, 0);
  planes step = order_by_step(t, x), acc = planes_new(t->r, x, rows * t->row);
  copy_planes(&acc, &step, rows * t->row);
  for (int64_t q = 1, at = rows; q < t->chunk / t->lanes && at < t->len; q++) {
    int64_t n = chunks > 1 ? (chunks - 1) * t->lanes + lanes_in(t, chunks - 1, q) : lanes_in(t, 0, q);
    planes from = planes_at(&step, at * t->row);
    merge_planes(t, &acc, &from, &acc, n * t->row);
    at += n;
  }
  planes even = planes_new(t->r, x, rows * t->row), odd = planes_new(t->r, x, rows * t->row);
  for (; rows > 1; rows = (rows + 1) / 2) halve_rows(t, &acc, &even, &odd, rows);
  return acc;
}

void nva_direct_reduce(nva_direct_run *r, int value) {
  const nvg_val *v = &r->g->v[value], *x = &r->g->v[v->in[0]];
  tree t = { .r = r, .v = v, .outer = 1, .len = 1, .inner = 1, .chunk = v->chunk, .lanes = v->lanes };
  for (int d = 0; d < x->rank; d++)
    *(d < v->attr[0] ? &t.outer : d < v->attr[0] + v->attr[1] ? &t.len : &t.inner) *= x->shape[d];
  t.row = t.outer * t.inner;
  planes p = { 0 };
  for (int i = 0; i < v->nin; i++)
    for (int part = 0; part < nvg_parts(r->g->v[v->in[i]].dtype); part++) {
      p.size[p.n] = nvg_size(nvg_real_of(r->g->v[v->in[i]].dtype));
      p.at[p.n++] = nva_direct_packed(r, v->in[i], part, x->size);
    }
  p = reduce_planes(&t, &p);
  for (int i = 0, k = 0; i < v->nin; i++) {
    nvm_dtype type = r->g->v[v->in[i]].dtype;
    char *to = r->elements[value].at[i] = nva_direct_result(r, i ? -1 : value, v->size * nvg_size(type));
    if (nvg_parts(type) == 2) nva_direct_join(to, p.at[k], p.at[k + 1], p.size[k], v->size);
    else memcpy(to, p.at[k], (size_t)(v->size * p.size[k]));
    k += nvg_parts(type);
  }
}
