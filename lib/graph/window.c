/* Simplifies arrays that were written in parts. A write is a select by coordinates (nvg_make_SLICE_UPDATE). A window in
   which the condition is constant reads what was written, or what was there before; of several writes to the same part,
   only the last one is kept. All rewrites are value-exact. Of an array that is also read across the border of a write,
   and so is in memory, every window reads that memory: what was written would be computed again. */
#include <string.h>
#include "graph/lower.h"

static int is_where(const nvg_val *x) { return x->kind == NVG_VMAP && x->op == NVG_OP_WHERE && x->nin == 3; }

/* ---- reading through a window */
/* left: budget of values to look at, so that a long history of writes costs no more than a short one */
enum { MOST = 1024 };
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
  int v = l->rep[i], crossed = 0;
  if (!is_where(nvg_at(l, v)) || is_whole(l, v)) return;
  for (int s = l->windows[i]; s && !crossed; s = l->windows[g->n + s]) {
    const nvg_val *x = &g->v[s];
    int64_t *at = nvb_dup(l->make.arena, x->attr, sizeof *at * 2 * (size_t)x->rank);
    window w = { l, at, x->shape, MOST };
    crossed = x->size && is_true(&w, nvg_at(l, v)->in[0]) < 0;
  }
  if (crossed) nvb_map_put(l->whole, &v, sizeof v, NULL);
}

/* ---- overwritten writes */
/* The array that a write modified; -1: x is no write, or is in memory itself, so that nothing is gained by what was
   there before. */
static int before_write(const nvg_lower *l, int x) {
  const nvg_val *w = nvg_at(l, x);
  return is_where(w) && !is_whole(l, x) && nvg_same_shape(w, nvg_at(l, w->in[2])) ? w->in[2] : -1;
}

int nvg_unless(const nvg_lower *l, int c, int x) {
  int y = before_write(l, x);
  return y >= 0 && nvg_at(l, x)->in[0] == c ? y : x;
}

int nvg_last_writes(nvg_lower *l, int v) {
  nvb_map *seen = nvb_map_new(l->make.arena);
  NVB_VEC(int) kept = { 0 };
  int x = v, again = 0;
  for (int y; (y = before_write(l, x)) >= 0; x = y) {
    int c = nvg_at(l, x)->in[0], fresh;
    nvb_map_put(seen, &c, sizeof c, &fresh);
    if (fresh) NVB_PUSH(l->make.arena, kept, x);
    again |= !fresh;
  }
  while (again && kept.n) {
    nvg_val w = *nvg_at(l, kept.at[--kept.n]);
    w.in = (int[]){ w.in[0], w.in[1], x };
    x = nvg_make_add(&l->make, &w);
  }
  return again ? x : v;
}
