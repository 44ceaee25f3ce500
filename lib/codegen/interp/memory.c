/* Moves elements between buffers and tiles, and evaluates index expressions and conditions. If map and condition are
   linear in the axes, rows are copied, and a row's condition is an interval; otherwise addresses and masks are
   evaluated, 256 at a time. Never touches a masked element. */
#include <string.h>
#include "base/int.h"
#include "codegen/interp/interp.h"
#include "frag/dtype.h"

enum { MASKS = 16 }; /* linear conditions of one statement, at most */

/* ---- views */
void nvc_view_collapse(nvc_view *v) {
  int n = 0;
  for (int i = 0; i < v->n; i++) {
    if (v->ext[i] == 1) continue;
    if (n && v->stride[n - 1] == v->stride[i] * v->ext[i]) {
      v->ext[n - 1] *= v->ext[i];
      v->stride[n - 1] = v->stride[i];
    } else {
      v->ext[n] = v->ext[i];
      v->stride[n++] = v->stride[i];
    }
  }
  if (!n) v->ext[0] = 1, v->stride[0] = 0, n = 1;
  v->n = n;
}

#define ROW(T)                                                                                                         \
  case sizeof(T): {                                                                                                    \
    T *t = to;                                                                                                         \
    const T *f = from;                                                                                                 \
    for (int64_t i = 0; i < n; i++) t[i * ts] = f[i * fs];                                                             \
    return;                                                                                                            \
  }

static void repeat_value(char *to, const void *one, size_t size, size_t bytes) {
  memcpy(to, one, size);
  for (size_t done = size; done < bytes; done *= 2) memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}
static void copy_row(void *to, int64_t ts, const void *from, int64_t fs, int size, int64_t n) {
  if (ts == 1 && fs == 1) {
    memcpy(to, from, (size_t)(n * size));
    return;
  }
  if (ts == 1 && fs == 0 && n > 0) {
    repeat_value(to, from, (size_t)size, (size_t)(n * size));
    return;
  }
  switch (size) { ROW(uint8_t) ROW(uint16_t) ROW(uint32_t) ROW(uint64_t) }
}

static void fill_row(void *to, int size, uint64_t bits, int64_t n) {
  if (n > 0) copy_row(to, 1, &bits, 0, size, n); /* little endian: the low bytes are the element */
}

/* Copies elements [start, start + n) row by row, for gather and spread. back: from packed to the view. */
static void copy_rows(char *packed, char *seen, int size, const nvc_view *v, int64_t start, int64_t n, int back) {
  int64_t at[NVC_RANK], off = 0, left = start;
  int last = v->n - 1;
  for (int d = last; d >= 0; d--) {
    at[d] = left % v->ext[d];
    left /= v->ext[d];
    off += at[d] * v->stride[d];
  }
  while (n > 0) {
    int64_t m = v->ext[last] - at[last];
    if (m > n) m = n;
    if (back) copy_row(seen + off * size, v->stride[last], packed, 1, size, m);
    else copy_row(packed, 1, seen + off * size, v->stride[last], size, m);
    packed += m * size;
    n -= m;
    off -= at[last] * v->stride[last];
    at[last] = 0;
    for (int d = last - 1; d >= 0; d--) {
      off += v->stride[d];
      if (++at[d] < v->ext[d]) break;
      off -= at[d] * v->stride[d];
      at[d] = 0;
    }
  }
}

void nvc_gather(void *to, const void *from, int size, const nvc_view *v, int64_t start, int64_t n) {
  copy_rows(to, (char *)(uintptr_t)from, size, v, start, n, 0);
}
void nvc_spread(void *to, const void *from, int size, const nvc_view *v, int64_t start, int64_t n) {
  copy_rows((char *)(uintptr_t)from, to, size, v, start, n, 1);
}

/* Coordinates along the d-th axis of the shape at elements [start, start + n). */
static void list_coordinates(int64_t *to, const nvc_shape *s, int d, int64_t start, int64_t n) {
  int64_t run = s->v.stride[d], c = start / run % s->v.ext[d], m = run - start % run;
  while (n > 0) {
    if (m > n) m = n;
    for (int64_t i = 0; i < m; i++) to[i] = c;
    to += m;
    n -= m;
    m = run;
    if (++c == s->v.ext[d]) c = 0;
  }
}

const void *nvc_operand_at(const nvc_nest *r, const nvc_ins *i, const nvc_operand *o, int64_t start, int64_t n,
                           void *work) {
  if (o->from == NVC_COORD) {
    list_coordinates(work, &i->shape, o->id, start, n);
    return work;
  }
  const char *base = o->from == NVC_TILE   ? nvc_tile(r, o->id)
                     : o->from == NVC_WORD ? (const char *)&o->word
                                           : (const char *)&r->args[o->id];
  if (o->whole) return base + start * o->size;
  nvc_gather(work, base, o->size, &o->v, start, n);
  return work;
}

/* ---- index expressions */
static int64_t apply_operation(nvf_xkind kind, int64_t a, int64_t b) {
  switch (kind) {
  case NVF_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
  case NVF_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
  case NVF_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
  case NVF_DIV: return b > 0 ? nvb_floor_div(a, b) : 0;
  default: return b > 0 ? a - b * nvb_floor_div(a, b) : 0;
  }
}

int64_t nvc_scalar(const nvc_nest *r, const nvf_expr *x) {
  switch (x->kind) {
  case NVF_CONST: return x->value;
  case NVF_PARAM: return (int64_t)r->args[x->id];
  case NVF_NAME: return r->p->s->bind[x->id].value;
  case NVF_GRID: return r->grid[x->id];
  case NVF_AXIS: return r->coord[x->id];
  case NVF_VAR: return r->var[x->id];
  case NVF_TILE: return 0;
  default: return apply_operation(x->kind, nvc_scalar(r, x->a), nvc_scalar(r, x->b));
  }
}

static int compare_with(nvf_cmp c, int64_t a, int64_t b) {
  switch (c) {
  case NVF_LT: return a < b;
  case NVF_LE: return a <= b;
  case NVF_EQ: return a == b;
  case NVF_NE: return a != b;
  case NVF_GE: return a >= b;
  default: return a > b;
  }
}

int nvc_holds(const nvc_nest *r, const nvf_cond *c) {
  for (int i = 0; i < c->nrel; i++)
    if (!compare_with(c->rel[i].cmp, nvc_scalar(r, c->rel[i].a), nvc_scalar(r, c->rel[i].b))) return 0;
  return 1;
}

static int is_varying(const nvf_expr *x) { /* does x vary over the elements of a tile? */
  if (x->kind == NVF_AXIS || x->kind == NVF_TILE) return 1;
  return x->kind >= NVF_ADD && (is_varying(x->a) || is_varying(x->b));
}

int nvc_affine(const nvf_expr *x) {
  if (x->kind < NVF_ADD) return x->kind != NVF_TILE;
  if (x->kind == NVF_DIV || x->kind == NVF_MOD) return !is_varying(x);
  return nvc_affine(x->a) && nvc_affine(x->b) && (x->kind != NVF_MUL || !is_varying(x->a) || !is_varying(x->b));
}

int nvc_affine_cond(const nvf_cond *c) {
  if (!c) return 1;
  if (c->ntile || c->nrel > MASKS / 2) return 0;
  for (int i = 0; i < c->nrel; i++)
    if (c->rel[i].cmp == NVF_NE || !nvc_affine(c->rel[i].a) || !nvc_affine(c->rel[i].b)) return 0;
  return 1;
}

int nvc_expr_depth(const nvf_expr *x) {
  if (x->kind < NVF_ADD) return 1;
  int a = nvc_expr_depth(x->a), b = nvc_expr_depth(x->b) + 1;
  return a > b ? a : b;
}

/* ---- linear forms: the value at the first element, and the coefficient of each axis of the shape */
typedef struct linear { int64_t base, coef[NVC_RANK]; } linear;

static linear linear_of(const nvc_nest *r, const nvc_shape *s, const nvf_expr *x) {
  linear l;
  for (int d = 0; d < s->v.n; d++) r->coord[s->axis[d]] = 0;
  l.base = nvc_scalar(r, x);
  for (int d = 0; d < s->v.n; d++) {
    r->coord[s->axis[d]] = 1;
    l.coef[d] = s->v.ext[d] == 1 ? 0 : nvc_scalar(r, x) - l.base;
    r->coord[s->axis[d]] = 0;
  }
  return l;
}

/* The form a - b + c of a condition: an element is accessed if all forms are below 0. */
static linear difference_of(const nvc_nest *r, const nvc_shape *s, const nvf_expr *a, const nvf_expr *b, int64_t c) {
  linear x = linear_of(r, s, a), y = linear_of(r, s, b);
  x.base += c - y.base;
  for (int d = 0; d < s->v.n; d++) x.coef[d] -= y.coef[d];
  return x;
}

typedef struct guard {
  int n, never;
  linear below[MASKS];
} guard;

/* Adds a form, unless it holds for the whole tile; a form that holds nowhere sets `never`. */
static void add_form(guard *g, const nvc_shape *s, linear l) {
  int64_t lo = l.base, hi = l.base;
  for (int d = 0; d < s->v.n; d++) *(l.coef[d] > 0 ? &hi : &lo) += l.coef[d] * (s->v.ext[d] - 1);
  if (lo >= 0) g->never = 1;
  else if (hi >= 0) g->below[g->n++] = l;
}

static void guard_of(const nvc_nest *r, const nvc_shape *s, const nvf_cond *c, guard *g) {
  g->n = g->never = 0;
  for (int i = 0; c && i < c->nrel; i++) {
    const struct nvf_rel *q = &c->rel[i];
    if (q->cmp == NVF_LT) add_form(g, s, difference_of(r, s, q->a, q->b, 0));
    if (q->cmp == NVF_LE || q->cmp == NVF_EQ) add_form(g, s, difference_of(r, s, q->a, q->b, -1));
    if (q->cmp == NVF_GT) add_form(g, s, difference_of(r, s, q->b, q->a, 0));
    if (q->cmp == NVF_GE || q->cmp == NVF_EQ) add_form(g, s, difference_of(r, s, q->b, q->a, -1));
  }
}

/* Cuts [*lo, *hi) to the elements t with base + coef * t < 0. */
static void cut_range(int64_t base, int64_t coef, int64_t *lo, int64_t *hi) {
  if (coef == 0) {
    if (base >= 0) *hi = *lo;
    return;
  }
  if (coef > 0) {
    int64_t end = nvb_floor_div(-base - 1, coef) + 1;
    if (end < *hi) *hi = end;
  } else {
    int64_t first = nvb_floor_div(base, -coef) + 1;
    if (first > *lo) *lo = first;
  }
  if (*hi < *lo) *hi = *lo;
}

/* A guarded move, row by row, between a packed tile and memory at linear addresses. */
typedef struct mover {
  char *mem;      /* address of element 0 */
  int64_t scale;  /* parts from one element to the next: 2 for pairs */
  int size, back; /* back: from the tile to memory */
  char *tile;
  uint64_t other;
} mover;

static void move_row(const mover *m, int64_t address, int64_t stride, int64_t first, int64_t n, int64_t lo,
                     int64_t hi) {
  char *t = m->tile + first * m->size;
  if (hi > lo) {
    char *mem = m->mem + (address + lo * stride) * m->scale * m->size;
    if (m->back) copy_row(mem, stride * m->scale, t + lo * m->size, 1, m->size, hi - lo);
    else copy_row(t + lo * m->size, 1, mem, stride * m->scale, m->size, hi - lo);
  }
  if (m->back) return;
  fill_row(t, m->size, m->other, lo < n ? lo : n);
  if (hi < n) fill_row(t + hi * m->size, m->size, m->other, n - hi);
}

static void move_guarded(const mover *m, const nvc_shape *s, const linear *map, const guard *g) {
  int in = s->v.n - 1;
  while (in > 0 && s->v.ext[in] == 1) in--;
  int64_t at[NVC_RANK] = { 0 }, n = s->v.ext[in], address = map->base, value[MASKS];
  for (int i = 0; i < g->n; i++) value[i] = g->below[i].base;
  for (int64_t first = 0; first < s->total; first += n) {
    int64_t lo = 0, hi = n;
    for (int i = 0; i < g->n; i++) cut_range(value[i], g->below[i].coef[in], &lo, &hi);
    move_row(m, address, map->coef[in], first, n, lo, hi);
    for (int d = in - 1; d >= 0; d--) {
      int64_t step = ++at[d] < s->v.ext[d] ? 1 : 1 - at[d];
      address += step * map->coef[d];
      for (int i = 0; i < g->n; i++) value[i] += step * g->below[i].coef[d];
      if (step == 1) break;
      at[d] = 0;
    }
  }
}

static void move_linear(const mover *m, const nvc_shape *s, const linear *map, const guard *g) {
  if (g->never) {
    if (!m->back) fill_row(m->tile, m->size, m->other, s->total);
    return;
  }
  if (g->n) {
    move_guarded(m, s, map, g);
    return;
  }
  nvc_view v = s->v;
  for (int d = 0; d < v.n; d++) v.stride[d] = map->coef[d] * m->scale;
  nvc_view_collapse(&v);
  copy_rows(m->tile, m->mem + map->base * m->scale * m->size, m->size, &v, 0, s->total, m->back);
}

/* ---- evaluated addresses and masks */
static void widen_indices(int64_t *to, const void *from, nvm_dtype t, int64_t n) {
#define WIDEN(D, T)                                                                                                    \
  case D:                                                                                                              \
    for (int64_t i = 0; i < n; i++) to[i] = (int64_t)((const T *)from)[i];                                             \
    return;
  switch (t) {
    /* clang-format off */
    WIDEN(NVM_I8, int8_t)
    WIDEN(NVM_I16, int16_t) WIDEN(NVM_I32, int32_t) WIDEN(NVM_I64, int64_t) WIDEN(NVM_U8, uint8_t)
        /* clang-format on */
        WIDEN(NVM_U16, uint16_t) WIDEN(NVM_U32, uint32_t) WIDEN(NVM_U64, uint64_t) default : return;
  }
}

static const nvc_operand *tile_operand(const nvc_ins *i, int tile) {
  for (int j = 0; j < i->nop; j++)
    if (i->op[j].id == tile && i->op[j].from == NVC_TILE) return &i->op[j];
  return NULL;
}

/* Values of x at elements [start, start + n), n <= NVC_BATCH, in to[0]; to[1], to[2] ... are work memory. */
static void evaluate(const nvc_nest *r, const nvc_ins *i, const nvf_expr *x, int64_t start, int64_t n,
                     int64_t (*to)[NVC_BATCH]) {
  if (!is_varying(x)) {
    fill_row(to[0], 8, (uint64_t)nvc_scalar(r, x), n);
    return;
  }
  if (x->kind == NVF_AXIS) {
    for (int d = 0; d < i->shape.v.n; d++)
      if (i->shape.axis[d] == x->id) list_coordinates(to[0], &i->shape, d, start, n);
    return;
  }
  if (x->kind == NVF_TILE) {
    int64_t work[NVC_BATCH];
    widen_indices(to[0], nvc_operand_at(r, i, tile_operand(i, x->id), start, n, work), r->p->k->tile[x->id].type, n);
    return;
  }
  evaluate(r, i, x->a, start, n, to);
  if (!is_varying(x->b)) fill_row(to[1], 8, (uint64_t)nvc_scalar(r, x->b), n);
  else evaluate(r, i, x->b, start, n, to + 1);
  int64_t *a = to[0], *b = to[1];
  switch (x->kind) {
  case NVF_ADD:
    for (int64_t j = 0; j < n; j++) a[j] = apply_operation(NVF_ADD, a[j], b[j]);
    return;
  case NVF_SUB:
    for (int64_t j = 0; j < n; j++) a[j] = apply_operation(NVF_SUB, a[j], b[j]);
    return;
  case NVF_MUL:
    for (int64_t j = 0; j < n; j++) a[j] = apply_operation(NVF_MUL, a[j], b[j]);
    return;
  default:
    for (int64_t j = 0; j < n; j++) a[j] = apply_operation(x->kind, a[j], b[j]);
  }
}

static void mask_of(const nvc_nest *r, const nvc_ins *i, int64_t start, int64_t n, uint8_t *mask,
                    int64_t (*work)[NVC_BATCH]) {
  const nvf_cond *c = i->s->where;
  memset(mask, 1, (size_t)n);
  for (int q = 0; c && q < c->nrel; q++) {
    evaluate(r, i, c->rel[q].a, start, n, work);
    evaluate(r, i, c->rel[q].b, start, n, work + 1);
    for (int64_t j = 0; j < n; j++) mask[j] &= (uint8_t)compare_with(c->rel[q].cmp, work[0][j], work[1][j]);
  }
  for (int q = 0; c && q < c->ntile; q++) {
    const uint8_t *b = nvc_operand_at(r, i, tile_operand(i, c->tile[q]), start, n, work[0]);
    for (int64_t j = 0; j < n; j++) mask[j] &= b[j];
  }
}

#define MOVE(T)                                                                                                        \
  case sizeof(T):                                                                                                      \
    for (int64_t j = 0; j < n; j++) {                                                                                  \
      T *t = (T *)m->tile + start + j, *e = (T *)m->mem + address[j] * m->scale;                                       \
      if (m->back) {                                                                                                   \
        if (mask[j]) *e = *t;                                                                                          \
      } else *t = mask[j] ? *e : (T)m->other;                                                                          \
    }                                                                                                                  \
    return;
static void move_evaluated(const mover *m, const int64_t *address, const uint8_t *mask, int64_t start, int64_t n) {
  switch (m->size) { MOVE(uint8_t) MOVE(uint16_t) MOVE(uint32_t) MOVE(uint64_t) }
}

#define RAISE(D, T)                                                                                                    \
  case D: {                                                                                                            \
    T *e = (T *)mem + at, v = *(const T *)value, now = __atomic_load_n(e, __ATOMIC_RELAXED);                           \
    while (now < v && !__atomic_compare_exchange_n(e, &now, v, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}              \
    return;                                                                                                            \
  }
static void raise_max(nvm_dtype t, char *mem, int64_t at, const void *value) {
  switch (t) {
    RAISE(NVM_I32, int32_t) RAISE(NVM_I64, int64_t) RAISE(NVM_U32, uint32_t) RAISE(NVM_U64, uint64_t) default : return;
  }
}

/* Moves elements between a buffer and a statement's tiles; part 1 of a pair is the element after part 0. */
static void access_buffer(const nvc_nest *r, const nvc_ins *i, int back) {
  const nvf_stmt *s = i->s;
  nvm_dtype t = r->p->k->param[s->buf].type;
  int parts = nvg_class_of(t) == NVG_COMPLEX ? 2 : 1, size = nvg_size(t) / parts;
  char *from = r->p->table[s->buf] ? r->p->table[s->buf] : (char *)(uintptr_t)r->args[s->buf];
  mover m[2];
  for (int p = 0; p < parts; p++)
    m[p] = (mover){
      from + p * size, parts, size, back, nvc_tile(r, back ? s->in[p] : s->out[p]), s->has_other ? s->other : 0
    };
  if (i->affine) {
    guard g;
    nvc_shape made = i->shape;
    for (int d = 0; d < made.v.n && made.total > r->most; d++) /* a single axis has all elements */
      if (made.v.ext[d] > 1) made.v.ext[d] = made.total = r->most;
    linear map = linear_of(r, &made, s->map);
    guard_of(r, &made, s->where, &g);
    for (int p = 0; p < parts; p++) move_linear(&m[p], &made, &map, &g);
    return;
  }
  int64_t (*work)[NVC_BATCH] = (void *)r->work;
  uint8_t mask[NVC_BATCH];
  for (int64_t start = 0; start < i->shape.total; start += NVC_BATCH) {
    int64_t n = i->shape.total - start < NVC_BATCH ? i->shape.total - start : NVC_BATCH;
    mask_of(r, i, start, n, mask, work);
    evaluate(r, i, s->map, start, n, work);
    if (s->op == NVF_ATOMIC_MAX) {
      for (int64_t j = 0; j < n; j++)
        if (mask[j]) raise_max(t, m[0].mem, work[0][j], m[0].tile + (start + j) * size);
    } else
      for (int p = 0; p < parts; p++) move_evaluated(&m[p], work[0], mask, start, n);
  }
}

int64_t nvc_end(const nvc_nest *r, const nvc_ins *i) {
  guard g;
  int64_t lo = 0, hi = i->shape.total;
  guard_of(r, &i->shape, i->s->where, &g);
  for (int d = 0; d < i->shape.v.n; d++)
    for (int j = 0; j < g.n && i->shape.v.ext[d] > 1; j++) cut_range(g.below[j].base, g.below[j].coef[d], &lo, &hi);
  return g.never ? 0 : hi;
}

int nvc_do_load(nvc_nest *r, const nvc_ins *i) {
  access_buffer(r, i, 0);
  return 0;
}

int nvc_do_store(nvc_nest *r, const nvc_ins *i) {
  access_buffer(r, i, 1);
  return 0;
}

int nvc_do_atomic_max(nvc_nest *r, const nvc_ins *i) { return nvc_do_store(r, i); }

int nvc_do_index(nvc_nest *r, const nvc_ins *i) {
  int64_t (*work)[NVC_BATCH] = (void *)r->work, *out = (int64_t *)(void *)nvc_tile(r, i->s->out[0]);
  for (int64_t start = 0; start < i->shape.total; start += NVC_BATCH) {
    int64_t n = i->shape.total - start < NVC_BATCH ? i->shape.total - start : NVC_BATCH;
    evaluate(r, i, i->s->map, start, n, work);
    memcpy(out + start, work[0], sizeof(int64_t) * (size_t)n);
  }
  return 0;
}

/* A test whose condition is linear is a guarded load of a 1 that all elements share. */
static void test_rows(const nvc_nest *r, const nvc_ins *i, char *out) {
  char one = 1;
  guard g;
  guard_of(r, &i->shape, i->s->where, &g);
  move_linear(&(mover){ .mem = &one, .scale = 1, .size = 1, .tile = out }, &i->shape, &(linear){ 0 }, &g);
}

int nvc_do_test(nvc_nest *r, const nvc_ins *i) {
  uint8_t *out = (uint8_t *)nvc_tile(r, i->s->out[0]);
  if (i->affine) {
    test_rows(r, i, (char *)out);
    return 0;
  }
  for (int64_t start = 0; start < i->shape.total; start += NVC_BATCH) {
    int64_t n = i->shape.total - start < NVC_BATCH ? i->shape.total - start : NVC_BATCH;
    mask_of(r, i, start, n, out + start, (void *)r->work);
  }
  return 0;
}

int nvc_do_check(nvc_nest *r, const nvc_ins *i) {
  int64_t (*work)[NVC_BATCH] = (void *)r->work;
  uint8_t mask[NVC_BATCH], *bad;
  for (int64_t start = 0; start < i->shape.total; start += NVC_BATCH) {
    int64_t n = i->shape.total - start < NVC_BATCH ? i->shape.total - start : NVC_BATCH;
    mask_of(r, i, start, n, mask, work);
    if (!(bad = memchr(mask, 0, (size_t)n))) continue;
    r->outside = 0; /* a check of tiles alone has no value to report */
    if (i->s->where->nrel) {
      evaluate(r, i, i->s->where->rel[0].a, start + (bad - mask), 1, work);
      r->outside = work[0][0];
    }
    return i->s->id + 1;
  }
  return 0;
}

const void *nvc_masked(const nvc_nest *r, const nvc_ins *i, const void *from, int size, uint64_t other, void *work) {
  mover m = { (char *)(uintptr_t)from, 1, size, 0, work, other };
  const nvc_view *v = &i->shape.v;
  if (i->affine) {
    guard g;
    linear map = { 0 };
    for (int d = 0; d < v->n; d++) map.coef[d] = v->stride[d];
    guard_of(r, &i->shape, i->s->where, &g);
    if (!g.n && !g.never) return from;
    move_linear(&m, &i->shape, &map, &g);
    return work;
  }
  uint8_t mask[NVC_BATCH];
  int64_t own[NVC_BATCH];
  for (int64_t start = 0; start < i->shape.total; start += NVC_BATCH) {
    int64_t n = i->shape.total - start < NVC_BATCH ? i->shape.total - start : NVC_BATCH;
    for (int64_t j = 0; j < n; j++) own[j] = start + j;
    mask_of(r, i, start, n, mask, (void *)r->work);
    move_evaluated(&m, own, mask, start, n);
  }
  return work;
}
