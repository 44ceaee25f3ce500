/* Simplifies arrays that were written in parts. A write is a select by coordinates (nvg_make_SLICE_UPDATE); where it is
   to a contiguous part it becomes a pad with what was there before. A window in which a write is everywhere or nowhere
   reads what was written, or what was there before; of several writes to the same part, only the last one is kept. All
   rewrites are value-exact. Of an array that is also read across the border of a write, and so is in memory, every
   window reads that memory: what was written would be computed again. */
#include <string.h>
#include "graph/lower.h"

static int is_where(const nvg_val *x) { return x->kind == NVG_VMAP && x->op == NVG_OP_WHERE && x->nin == 3; }

/* ---- reading through a window */
/* left: budget of values to look at, so that a long history of writes costs no more than a short one */
enum { MOST = 4096 };
typedef struct window { const nvg_lower *l; int64_t *at; const int64_t *shape; int left; } window;

static int is_whole(const nvg_lower *l, int v) { return l->whole && nvb_map_find(l->whole, &v, sizeof v) != NULL; }

/* The least and the greatest coordinate of a dimension. */
static void ends_of(const window *w, int d, int64_t *lo, int64_t *hi) {
  int64_t a = w->at[2 * d], b = a + (w->shape[d] - 1) * w->at[2 * d + 1];
  *lo = a < b ? a : b;
  *hi = a < b ? b : a;
}

/* Bounds a value that is a coordinate minus a constant; returns 0 if it is something else. */
static int limits_of(window *w, int v, int64_t *lo, int64_t *hi) {
  const nvg_val *x = nvg_at(w->l, v);
  uint64_t c, none;
  if (x->kind == NVG_VIOTA) return ends_of(w, (int)x->attr[0], lo, hi), 1;
  return x->kind == NVG_VMAP && x->op == NVG_OP_SUBTRACT && nvg_at(w->l, x->in[0])->kind == NVG_VIOTA &&
         nvg_const_of(w->l, x->in[1], &c, &none) && limits_of(w, x->in[0], lo, hi) &&
         !__builtin_sub_overflow(*lo, (int64_t)c, lo) && !__builtin_sub_overflow(*hi, (int64_t)c, hi);
}

/* Evaluates a condition over the window: 1 it holds everywhere, 0 nowhere, -1 unknown. */
static int is_true(window *w, int v) {
  const nvg_val *x = nvg_at(w->l, v);
  int64_t lo, hi;
  uint64_t c, none;
  if (x->kind != NVG_VMAP || x->nin != 2 || --w->left < 0) return -1;
  if (x->op == NVG_OP_LOGICAL_AND) {
    int a = is_true(w, x->in[0]), b = a ? is_true(w, x->in[1]) : 0;
    return !b ? 0 : a == 1 && b == 1 ? 1 : -1;
  }
  if ((x->op != NVG_OP_GREATER_EQUAL && x->op != NVG_OP_LESS_EQUAL) || !nvg_const_of(w->l, x->in[1], &c, &none) ||
      !limits_of(w, x->in[0], &lo, &hi))
    return -1;
  int64_t n = (int64_t)c;
  if (x->op == NVG_OP_LESS_EQUAL) return hi <= n ? 1 : lo > n ? 0 : -1;
  return lo >= n ? 1 : hi < n ? 0 : -1;
}

/* Tests a window against padding: 1 if it is inside the operand (the window is then moved into it), 0 if outside, -1 if
   it crosses the border. */
static int is_inside_pad(window *w, const nvg_val *pad) {
  const nvg_val *x = nvg_at(w->l, pad->in[0]);
  int all = 1;
  for (int d = 0; d < pad->rank; d++) {
    int64_t lo, hi;
    ends_of(w, d, &lo, &hi);
    if (hi < pad->attr[d] || lo >= pad->attr[d] + x->shape[d]) return 0;
    all &= lo >= pad->attr[d] && hi < pad->attr[d] + x->shape[d];
  }
  for (int d = 0; d < pad->rank && all; d++) w->at[2 * d] -= pad->attr[d];
  return all ? 1 : -1;
}

/* Moves the window one value further; returns that value, or -1 if the window shows elements of several. *ends: the
   value is 0-d, the same everywhere. */
static int next_value(window *w, int v, int *ends) {
  const nvg_val *x = nvg_at(w->l, v);
  int where = is_where(x);
  int side = where ? is_true(w, x->in[0]) : x->kind == NVG_VPAD ? is_inside_pad(w, x) : -1;
  if (x->kind == NVG_VSLICE)
    for (int d = 0; d < x->rank; d++) {
      w->at[2 * d] = x->attr[2 * d] + w->at[2 * d] * x->attr[2 * d + 1];
      w->at[2 * d + 1] = w->shape[d] > 1 ? w->at[2 * d + 1] * x->attr[2 * d + 1] : 1;
    }
  else if (side < 0) return -1;
  v = where ? x->in[side ? 1 : 2] : x->kind == NVG_VPAD ? x->in[!side] : x->in[0];
  *ends = nvg_at(w->l, v)->rank != x->rank;
  return v;
}

/* ---- a select by coordinates as a pad */
typedef struct box { int64_t at[NVM_MAX_RANK], n[NVM_MAX_RANK]; } box;

/* Narrows the box to the coordinates for which the condition holds; returns 0 if they are no box. */
static int narrow_box(const nvg_lower *l, int condition, box *b) {
  const nvg_val *x = nvg_at(l, condition);
  uint64_t c, none, less = 0;
  if (x->kind != NVG_VMAP || x->nin != 2) return 0;
  if (x->op == NVG_OP_LOGICAL_AND) return narrow_box(l, x->in[0], b) && narrow_box(l, x->in[1], b);
  if ((x->op != NVG_OP_GREATER_EQUAL && x->op != NVG_OP_LESS_EQUAL) || !nvg_const_of(l, x->in[1], &c, &none)) return 0;
  const nvg_val *at = nvg_at(l, x->in[0]);
  if (at->kind == NVG_VMAP && at->op == NVG_OP_SUBTRACT && nvg_const_of(l, at->in[1], &less, &none))
    at = nvg_at(l, at->in[0]);
  else less = 0;
  if (at->kind != NVG_VIOTA) return 0;
  int64_t limit, d = at->attr[0], end = b->at[d] + b->n[d];
  if (__builtin_add_overflow((int64_t)c, (int64_t)less, &limit) || limit < 0 || limit >= at->shape[d]) return 0;
  if (x->op == NVG_OP_GREATER_EQUAL) b->at[d] = limit > b->at[d] ? limit : b->at[d];
  else end = limit + 1 < end ? limit + 1 : end;
  b->n[d] = end - b->at[d];
  return b->n[d] > 0;
}

/* The elements in the box of a value that is the same everywhere or padding around a smaller one; -1: it is neither. */
static int value_in(nvg_lower *l, int v, const box *b, int rank) {
  int64_t attr[2 * NVM_MAX_RANK];
  for (int d = 0; d < rank; d++) attr[2 * d] = b->at[d], attr[2 * d + 1] = 1;
  if (nvg_at(l, v)->rank == 0) return nvg_add_full(l, v, rank, b->n);
  if (nvg_at(l, v)->kind == NVG_VEXPAND) return nvg_add_slice(l, v, attr, b->n);
  int padded = 0;
  for (const nvg_val *x; (x = nvg_at(l, v))->kind == NVG_VPAD; padded = 1, v = x->in[0])
    for (int d = 0; d < rank; d++) attr[2 * d] -= x->attr[d];
  for (int d = 0; d < rank && padded; d++) padded = attr[2 * d] >= 0 && attr[2 * d] + b->n[d] <= nvg_at(l, v)->shape[d];
  return padded ? nvg_add_slice(l, v, attr, b->n) : -1;
}

static int is_written(const nvg_lower *l, const nvg_val *x) {
  return x->kind == NVG_VPAD && nvg_same_shape(x, nvg_at(l, x->in[1]));
}

/* Whether the write x is to a part of the box. */
static int is_within(const nvg_lower *l, const nvg_val *x, const box *b) {
  int within = is_written(l, x);
  for (int d = 0; d < x->rank && within; d++)
    within = x->attr[d] >= b->at[d] && x->attr[d] + nvg_at(l, x->in[0])->shape[d] <= b->at[d] + b->n[d];
  return within;
}

int nvg_add_write(nvg_lower *l, const int *in) {
  const nvg_val *c = nvg_at(l, in[0]), *x = nvg_at(l, in[2]);
  box b;
  if (!c->rank || nvg_at(l, in[1])->dtype != x->dtype || (x->rank && !nvg_same_shape(c, x))) return -1;
  int rank = c->rank, before = in[2];
  int64_t *shape = nvb_dup(l->make.arena, c->shape, (size_t)rank * sizeof *shape);
  memset(b.at, 0, sizeof b.at);
  memcpy(b.n, shape, (size_t)rank * sizeof *shape);
  if (!narrow_box(l, in[0], &b)) return -1;
  int v = value_in(l, in[1], &b, rank);
  if (v < 0) return -1;
  while (!is_whole(l, before) && is_within(l, nvg_at(l, before), &b)) before = nvg_at(l, before)->in[1];
  nvg_val pad = { .kind = NVG_VPAD,
                  .dtype = nvg_at(l, v)->dtype,
                  .rank = rank,
                  .shape = shape,
                  .nin = 2,
                  .in = (int[]){ v, before },
                  .attr = b.at,
                  .nattr = rank };
  return nvg_add(l, &pad);
}

/* Whether the value costs nothing to read: it is in memory, or made of coordinates or one number. */
static int is_free(const nvg_lower *l, int v) {
  nvg_vkind kind = nvg_at(l, v)->kind;
  return kind == NVG_VLEAF || kind == NVG_VCONST || kind == NVG_VIOTA || kind == NVG_VEXPAND;
}

int nvg_seen_through(const nvg_lower *l, int v, int64_t *attr, const int64_t *shape) {
  int64_t kept[2 * NVM_MAX_RANK];
  window w = { l, attr, shape, MOST };
  int whole = -1, ends = 0; /* whole: the first value on the way of which windows show more than one part */
  size_t size = sizeof *attr * 2 * (size_t)nvg_at(l, v)->rank;
  for (int next; w.left > 0 && !ends; w.left--, v = next) {
    if (whole < 0 && is_whole(l, v)) whole = v, memcpy(kept, attr, size);
    if ((next = next_value(&w, v, &ends)) < 0) break;
  }
  if (whole < 0 || whole == v || is_free(l, v)) return v;
  memcpy(attr, kept, size);
  return whole;
}

const int *nvg_windows_of(nvb_arena *a, const nvg_graph *g) {
  int *next = NVB_NEWN(a, int, 2 * g->n + 1);
  for (int i = g->n - 1; i >= 0; i--) {
    if (g->v[i].kind != NVG_VSLICE) continue;
    next[g->n + i] = next[g->v[i].in[0]];
    next[g->v[i].in[0]] = i;
  }
  return next;
}

void nvg_note_windows(nvg_lower *l, int i) {
  const nvg_graph *g = l->g;
  int v = l->rep[i], crossed = 0, where = is_where(nvg_at(l, v));
  if ((!where && !is_written(l, nvg_at(l, v))) || is_whole(l, v)) return;
  for (int s = l->windows[i]; s && !crossed; s = l->windows[g->n + s]) {
    const nvg_val *x = &g->v[s];
    int64_t *at = nvb_dup(l->make.arena, x->attr, sizeof *at * 2 * (size_t)x->rank);
    window w = { l, at, x->shape, MOST };
    crossed = x->size && (where ? is_true(&w, nvg_at(l, v)->in[0]) : is_inside_pad(&w, nvg_at(l, v))) < 0;
  }
  if (crossed) nvb_map_put(l->whole, &v, sizeof v, NULL);
}

/* ---- overwritten writes */
/* The array that a write modified; -1: x is no write, or is in memory itself, so that nothing is gained by what was
   there before. */
static int before_write(const nvg_lower *l, int x) {
  const nvg_val *w = nvg_at(l, x);
  if (is_whole(l, x)) return -1;
  return is_written(l, w) ? w->in[1] : is_where(w) && nvg_same_shape(w, nvg_at(l, w->in[2])) ? w->in[2] : -1;
}

int nvg_unless(const nvg_lower *l, int c, int x) {
  int y = before_write(l, x);
  return y >= 0 && is_where(nvg_at(l, x)) && nvg_at(l, x)->in[0] == c ? y : x;
}

/* What says which part a write is to: of a select its condition, of a pad its box. Returns the number of words. */
static int part_of(const nvg_lower *l, const nvg_val *w, int64_t *key) {
  if (is_where(w)) return key[0] = w->in[0], 1;
  memcpy(key, w->attr, (size_t)w->rank * sizeof *key);
  memcpy(key + w->rank, nvg_at(l, w->in[0])->shape, (size_t)w->rank * sizeof *key);
  return 2 * w->rank;
}

int nvg_last_writes(nvg_lower *l, int v) {
  nvb_map *seen = nvb_map_new(l->make.arena);
  NVB_VEC(int) kept = { 0 };
  int x = v, again = 0;
  for (int y; (y = before_write(l, x)) >= 0; x = y) {
    int64_t part[2 * NVM_MAX_RANK];
    int fresh, words = part_of(l, nvg_at(l, x), part);
    nvb_map_put(seen, part, (size_t)words * sizeof *part, &fresh);
    if (fresh) NVB_PUSH(l->make.arena, kept, x);
    again |= !fresh;
  }
  while (again && kept.n) {
    nvg_val w = *nvg_at(l, kept.at[--kept.n]);
    w.in = is_where(&w) ? (int[]){ w.in[0], w.in[1], x } : (int[]){ w.in[0], x };
    x = nvg_make_add(&l->make, &w);
  }
  return again ? x : v;
}
