/* The checker: it finds the layout of every tile under a schedule and enforces every rule of kernel-text.md. It decides
   the layouts that a text leaves open (those of maps and reductions); it never changes the kernel or the schedule. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "frag/dtype.h"
#include "kernel/dft.h"
#include "kernel/kernel.h"

typedef struct checker {
  nvb_arena *a;
  const nvf_kernel *k;
  const nvf_schedule *s;
  nvf_typed *t;
  const nvf_part *part;
  const nvf_stmt *at;      /* for messages */
  uint8_t *open, *carried; /* by tile: it has a value at this point; it may be assigned again */
  uint8_t *var;            /* by variable: the checker is inside its loop */
  int next;                /* id of the next statement in text order */
} checker;

static _Noreturn __attribute__((format(printf, 2, 3))) void fail_check(checker *c, const char *fmt, ...) {
  char what[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  if (!c->at) nvb_throw(c->a, NVM_ERR_VALUE, "[kernel %s] %s", c->k->title, what);
  nvb_throw(c->a, NVM_ERR_VALUE, "[kernel %s] statement %d (%s): %s", c->k->title, c->at->id, nvf_op_name(c->at->op),
            what);
}

static const char *tile_name(checker *c, int id) { return c->k->tile[id].name; }
static const char *axis_name(checker *c, int id) { return c->k->axis[id]; }
static nvm_dtype tile_type(checker *c, int id) { return c->k->tile[id].type; }
static int has_axis(const nvf_layout *l, int axis) {
  for (int i = 0; i < l->n; i++)
    if (l->d[i].axis == axis) return 1;
  return 0;
}
static int is_int(nvm_dtype t) {
  nvg_class g = nvg_class_of(t);
  return g == NVG_SIGNED || g == NVG_UNSIGNED;
}
static int is_power2(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/* ---- names of the schedule */
static const nvf_binding *find_binding(checker *c, int name, nvf_bkind kind, const char *what) {
  if (name < 0 || name >= c->k->nname) fail_check(c, "%s is missing", what);
  if (name >= c->s->nbind || c->s->bind[name].kind != kind)
    fail_check(c, "the schedule gives no %s '%s'", what, c->k->name[name]);
  return &c->s->bind[name];
}

static void check_places(checker *c, const nvf_layout *l, const char *name) {
  int64_t all = 1;
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    if (d->axis < 0 || d->axis >= c->k->naxis || d->extent < 1 || !strchr("iIlwc", d->level))
      fail_check(c, "layout %s is damaged", name);
    if ((all *= d->extent) > NVF_TILE_MOST) fail_check(c, "layout %s: a tile of more than 2^28 elements", name);
    for (int j = 0; j < i; j++) { /* digits of one level may not overlap in the lane, warp or block number */
      const nvf_digit *e = &l->d[j];
      if (d->level == 'i' || d->level == 'I' || e->level != d->level || d->extent == 1 || e->extent == 1) continue;
      int64_t dl = d->pstride, dh = dl * d->extent, el = e->pstride, eh = el * e->extent;
      if (dl < eh && el < dh)
        fail_check(c, "layout %s: two digits share %s", name,
                   d->level == 'l'   ? "lanes"
                   : d->level == 'w' ? "warps"
                                     : "blocks");
    }
  }
}

static nvf_layout named_layout(checker *c, const nvf_stmt *s) {
  const nvf_binding *b = find_binding(c, s->layout, NVF_BLAYOUT, "layout");
  check_places(c, &b->layout, c->k->name[s->layout]);
  if (s->nonly < 0) return b->layout;
  for (int i = 0; i < s->nonly; i++)
    if (!has_axis(&b->layout, s->only[i]))
      fail_check(c, "layout %s has no axis %s", c->k->name[s->layout], axis_name(c, s->only[i]));
  return nvf_layout_only(&b->layout, s->only, s->nonly);
}

/* ---- tiles */
static const nvf_layout *tile_of_value(checker *c, int id) {
  if (id < 0 || id >= c->k->ntile || !c->open[id])
    fail_check(c, "tile %s has no value here", id < 0 || id >= c->k->ntile ? "?" : tile_name(c, id));
  return &c->t->tile[id];
}

static const nvf_layout *register_tile(checker *c, int id) {
  const nvf_layout *l = tile_of_value(c, id);
  if (c->k->tile[id].shared) fail_check(c, "tile %s is shared: get it first", tile_name(c, id));
  return l;
}

static const nvf_layout *shared_tile(checker *c, int id) {
  const nvf_layout *l = tile_of_value(c, id);
  if (!c->k->tile[id].shared) fail_check(c, "tile %s is not shared: put it first", tile_name(c, id));
  return l;
}

/* Whether two layouts have the same digits and their axes in the same order, as tiles must that are carried or pass a
   statement together. */
static int one_layout(const nvf_layout *a, const nvf_layout *b) {
  if (!nvf_layout_eq(a, b)) return 0;
  for (int i = 0, j = 0;; i++, j++) {
    while (i < a->n && a->d[i].extent == 1) i++;
    while (j < b->n && b->d[j].extent == 1) j++;
    if (i == a->n || j == b->n) return 1;
    if (a->d[i].axis != b->d[j].axis) return 0;
  }
}

static void define_tile(checker *c, int id, const nvf_layout *l, nvm_dtype type) {
  if (id < 0 || id >= c->k->ntile) fail_check(c, "a result is missing");
  if (tile_type(c, id) != type)
    fail_check(c, "tile %s is %s, the value %s", tile_name(c, id), nvg_dtype_short(tile_type(c, id)),
               nvg_dtype_short(type));
  if (c->open[id]) {
    if (!c->carried[id]) fail_check(c, "tile %s is assigned twice", tile_name(c, id));
    if (!one_layout(&c->t->tile[id], l)) fail_check(c, "tile %s is carried and must keep its layout", tile_name(c, id));
    return;
  }
  if (c->k->tile[id].shared != (nvf_op_get(c->at->op)->results[0] == 's'))
    fail_check(c, "tile %s: only put makes shared tiles", tile_name(c, id));
  c->t->tile[id] = *l;
  c->open[id] = 1;
}

static const nvf_layout *operand_layout(const checker *c, const nvf_stmt *s, int i) { return &c->t->tile[s->in[i]]; }

/* Whether n tiles are as many as `kinds` of statements.def says: all of its letters, or more where it ends in +. */
static int is_count(const char *kinds, int n) {
  int least = (int)strcspn(kinds, "+");
  return kinds[least] ? n >= least : n == least;
}

static _Noreturn void fail_counts(checker *c, const nvf_stmt *s) {
  fail_check(c, "%d operands and %d results", s->nin, s->nout);
}

/* Checks that the statement takes and makes as many tiles as its row says, and that each operand has a value where the
   row wants it, in registers or in shared memory. */
static void check_tiles(checker *c, const nvf_stmt *s) {
  const nvf_op_row *row = nvf_op_get(s->op);
  if (!is_count(row->operands, s->nin) || !is_count(row->results, s->nout)) fail_counts(c, s);
  char kind = 'r';
  for (int i = 0, at = 0; i < s->nin; i++) {
    if (row->operands[at] && row->operands[at] != '+') kind = row->operands[at++];
    (kind == 's' ? shared_tile : register_tile)(c, s->in[i]);
  }
}

/* Whether the kernel text and the schedule determine the value of the expression. */
static int is_given(const nvf_expr *x) {
  return x->kind < NVF_ADD ? x->kind == NVF_CONST || x->kind == NVF_NAME : is_given(x->a) && is_given(x->b);
}

/* Whether a checked expression is determined and not positive. */
static int is_wrong(const checker *c, const nvf_expr *x) {
  return is_given(x) && nvf_eval(c->k, c->s, x, NULL, NULL) <= 0;
}

/* ---- expressions. `l`: the layout whose axes are coordinates; NULL: the value is uniform in the block */
static void check_expr(checker *c, const nvf_expr *x, const nvf_layout *l) {
  if (!x) fail_check(c, "an index expression is missing");
  switch (x->kind) {
  case NVF_CONST: return;
  case NVF_PARAM:
    if (x->id < 0 || x->id >= c->k->nparam || c->k->param[x->id].kind != NVF_SIZE)
      fail_check(c, "an index expression needs a size");
    return;
  case NVF_NAME: find_binding(c, x->id, NVF_BINT, "constant"); return;
  case NVF_GRID:
    if (!c->part || x->id < 0 || x->id >= c->part->ngrid) fail_check(c, "no such block coordinate");
    return;
  case NVF_VAR:
    if (x->id < 0 || x->id >= c->k->nvar || !c->var[x->id]) fail_check(c, "a loop variable outside its loop");
    return;
  case NVF_AXIS:
    if (!l) fail_check(c, "axis %s where all must be the same in the whole block", axis_name(c, x->id));
    if (!has_axis(l, x->id)) fail_check(c, "the tile has no axis %s", axis_name(c, x->id));
    return;
  case NVF_TILE:
    if (!l) fail_check(c, "tile %s where all must be the same in the whole block", tile_name(c, x->id));
    if (!nvf_layout_within(register_tile(c, x->id), l)) fail_check(c, "tile %s needs a relayout", tile_name(c, x->id));
    if (!is_int(tile_type(c, x->id))) fail_check(c, "tile %s is no integer", tile_name(c, x->id));
    return;
  default:
    check_expr(c, x->a, l);
    check_expr(c, x->b, l);
    if ((x->kind == NVF_DIV || x->kind == NVF_MOD) && is_wrong(c, x->b)) fail_check(c, "a divisor must be positive");
  }
}

static void check_cond(checker *c, const nvf_cond *w, const nvf_layout *l) {
  for (int i = 0; w && i < w->nrel; i++) {
    check_expr(c, w->rel[i].a, l);
    check_expr(c, w->rel[i].b, l);
  }
  for (int i = 0; w && i < w->ntile; i++) {
    if (!l) fail_check(c, "tile %s where all must be the same in the whole block", tile_name(c, w->tile[i]));
    if (!nvf_layout_within(register_tile(c, w->tile[i]), l))
      fail_check(c, "tile %s needs a relayout", tile_name(c, w->tile[i]));
    if (tile_type(c, w->tile[i]) != NVM_BOOL) fail_check(c, "tile %s is no bool", tile_name(c, w->tile[i]));
  }
}

static int uses_axis(checker *c, const nvf_expr *x, int axis) {
  if (x->kind == NVF_AXIS) return x->id == axis;
  if (x->kind == NVF_TILE) return has_axis(&c->t->tile[x->id], axis);
  return x->kind >= NVF_ADD && (uses_axis(c, x->a, axis) || uses_axis(c, x->b, axis));
}

/* an equality of `where` uses the axis, so that one coordinate is stored */
static int is_pinned(checker *c, const nvf_cond *w, int axis) {
  for (int i = 0; w && i < w->nrel; i++)
    if (w->rel[i].cmp == NVF_EQ && (uses_axis(c, w->rel[i].a, axis) || uses_axis(c, w->rel[i].b, axis))) return 1;
  return 0;
}

/* ---- memory */
static nvm_dtype check_buffer(checker *c, const nvf_stmt *s) {
  nvf_pkind kind = s->buf < 0 || s->buf >= c->k->nparam ? NVF_SIZE : c->k->param[s->buf].kind;
  if (kind != NVF_BUFFER && kind != NVF_ROOTS) fail_check(c, "the buffer is missing");
  return c->k->param[s->buf].type;
}

static void check_load(checker *c, const nvf_stmt *s, nvf_layout *l) {
  nvm_dtype t = check_buffer(c, s);
  *l = named_layout(c, s);
  if (s->nout != nvg_parts(t)) fail_counts(c, s);
  check_expr(c, s->map, l);
  check_cond(c, s->where, l);
  for (int i = 0; i < s->nout; i++) define_tile(c, s->out[i], l, nvg_real_of(t));
}

static nvm_dtype check_write(checker *c, const nvf_stmt *s, nvf_layout *l) {
  nvm_dtype t = check_buffer(c, s);
  if (!c->k->param[s->buf].written) fail_check(c, "buffer %s is not marked mut", c->k->param[s->buf].name);
  *l = *operand_layout(c, s, 0);
  for (int i = 0; i < s->nin; i++) {
    if (!one_layout(operand_layout(c, s, i), l)) fail_check(c, "tile %s needs a relayout", tile_name(c, s->in[i]));
    if (tile_type(c, s->in[i]) != nvg_real_of(t))
      fail_check(c, "tile %s is %s, the buffer %s", tile_name(c, s->in[i]), nvg_dtype_short(tile_type(c, s->in[i])),
                 nvg_dtype_short(t));
  }
  check_expr(c, s->map, l);
  check_cond(c, s->where, l);
  return t;
}

static void check_atomic_max(checker *c, const nvf_stmt *s, nvf_layout *l) {
  nvm_dtype t = check_write(c, s, l);
  if (!is_int(t) || nvg_size(t) < 4) fail_check(c, "atomic_max is for integers of 32 and 64 bits");
}

static void check_store(checker *c, const nvf_stmt *s, nvf_layout *l) {
  int axes[NVF_MAX_DIGITS];
  if (s->nin != nvg_parts(check_write(c, s, l))) fail_counts(c, s);
  for (int i = 0, n = nvf_layout_axes(l, axes); i < n; i++)
    if (nvf_extent(l, axes[i]) > 1 && !uses_axis(c, s->map, axes[i]) && !is_pinned(c, s->where, axes[i]))
      fail_check(c, "axis %s would be stored to one place", axis_name(c, axes[i]));
}

/* ---- maps: the result has the named layout, else that of an operand whose layout contains all others */
static nvf_layout map_layout(checker *c, const nvf_stmt *s) {
  if (s->layout >= 0) return named_layout(c, s);
  const nvf_layout *best = NULL;
  for (int i = 0; i < s->narg; i++) {
    if (s->arg[i].kind != NVF_ATILE) continue;
    const nvf_layout *l = register_tile(c, s->arg[i].id);
    if (!best || (l->n > best->n && nvf_layout_within(best, l)) ||
        (!nvf_layout_within(l, best) && nvf_layout_within(best, l)))
      best = l;
  }
  if (!best) fail_check(c, "without tiles a map needs a layout");
  return *best;
}

static int is_number(const nvf_param *p) { return p->kind == NVF_SCALAR || p->kind == NVF_SIZE; }

static nvm_dtype arg_type(checker *c, const nvf_arg *a) {
  int scalar = a->kind == NVF_ASCALAR;
  if (scalar && (a->id < 0 || a->id >= c->k->nparam || !is_number(&c->k->param[a->id])))
    fail_check(c, "an operand is no scalar");
  return a->kind == NVF_ATILE   ? tile_type(c, a->id)
         : scalar               ? c->k->param[a->id].type
         : a->kind == NVF_AAXIS ? NVM_I64
                                : a->type;
}

static void check_map(checker *c, const nvf_stmt *s, nvf_layout *l) {
  const nvg_frag *f = s->frag;
  if (!f) fail_check(c, "the fragment is missing");
  *l = map_layout(c, s);
  if (f->nparam != s->narg || f->nresult != s->nout)
    fail_check(c, "fragment %s takes %d operands and makes %d results, not %d and %d", f->name, f->nparam, f->nresult,
               s->narg, s->nout);
  for (int i = 0; i < s->narg; i++) {
    const nvf_arg *a = &s->arg[i];
    if (a->kind == NVF_ATILE && !nvf_layout_within(register_tile(c, a->id), l))
      fail_check(c, "tile %s needs a relayout", tile_name(c, a->id));
    if (a->kind == NVF_AAXIS && !has_axis(l, a->id)) fail_check(c, "the tile has no axis %s", axis_name(c, a->id));
    if (arg_type(c, a) != f->inst[i].type)
      fail_check(c, "operand %d of %s is %s, not %s", i + 1, f->name, nvg_dtype_short(arg_type(c, a)),
                 nvg_dtype_short((nvm_dtype)f->inst[i].type));
  }
  for (int i = 0; i < s->nout; i++) define_tile(c, s->out[i], l, (nvm_dtype)f->inst[f->result[i]].type);
}

/* ---- reductions and scans */
static void try_merge(checker *c, const nvf_stmt *s, int n) {
  nvm_dtype type[NVF_STATES];
  if (n > NVF_STATES) fail_check(c, "more than %d states", NVF_STATES);
  for (int i = 0; i < n; i++) type[i] = tile_type(c, s->in[i]);
  nvf_merge_fault fault = nvf_try_merge(s->frag, n, type, s->op == NVF_REDUCE, s->init);
  if (fault == NVF_NOT_COMMUTATIVE) fail_check(c, "the merge %s is not commutative", s->frag->name);
  if (fault == NVF_NO_IDENTITY) fail_check(c, "init is not the identity of %s", s->frag->name);
}

static void check_merge(checker *c, const nvf_stmt *s, int n, const nvf_layout *l) {
  const nvg_frag *f = s->frag;
  if (!f || f->nresult != n || f->nparam != 2 * n)
    fail_check(c, "the merge must take two states of %d and make one", n);
  for (int i = 0; i < n; i++) {
    nvm_dtype t = tile_type(c, s->in[i]);
    if (!one_layout(operand_layout(c, s, i), l)) fail_check(c, "tile %s needs a relayout", tile_name(c, s->in[i]));
    if (f->inst[i].type != t || f->inst[n + i].type != t || f->inst[f->result[i]].type != t)
      fail_check(c, "the merge %s does not keep %s", f->name, nvg_dtype_short(t));
  }
  if (!has_axis(l, s->axis)) fail_check(c, "the tile has no axis %s", axis_name(c, s->axis));
  check_cond(c, s->where, l);
  if (!s->init && (s->where || s->op == NVF_REDUCE))
    fail_check(c, "%s needs init", s->where ? "`where`" : "a reduction");
  try_merge(c, s, n);
}

/* Whether digit d and those above it are only warps, CTAs of a cluster and loops, CTAs among them. */
static int is_numbered(const nvf_layout *l, const nvf_digit *d) {
  int blocks = 0, others = 0;
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *x = &l->d[i];
    if (x->axis != d->axis || x->extent == 1) continue;
    blocks |= x->level == 'c';
    others |= x->stride >= d->stride && (x->level == 'l' || x->level == 'i');
  }
  return blocks && !others;
}

/* Whether every digit of the axis is a power of two, except that the most significant digit and those of is_numbered
   need not be, unless they are lanes. */
static int even_digits(const nvf_layout *l, int axis) {
  int64_t n = nvf_extent(l, axis);
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    if (d->axis != axis || is_power2(d->extent)) continue;
    if (d->level == 'l' || !(d->stride * d->extent == n || is_numbered(l, d))) return 0;
  }
  return 1;
}

/* Checks that each digit of the axis lies in one part of the reduction order: lanes (strides below W), sequence (below
   C) or chunks (above). */
static void check_order(checker *c, const nvf_stmt *s, const nvf_layout *l) {
  int64_t n = nvf_extent(l, s->axis);
  const nvf_binding *b = find_binding(c, s->red_order, NVF_BRED_ORDER, "order");
  if (!even_digits(l, s->axis))
    fail_check(c, "axis %s is reduced: its digits are powers of two, but for the first one, which is none of lanes",
               axis_name(c, s->axis));
  if (!is_power2(b->order.c) || !is_power2(b->order.w) || b->order.w > b->order.c)
    fail_check(c, "an order is two powers of two, chunk >= lanes");
  int64_t C = b->order.c < n ? b->order.c : n, W = b->order.w < C ? b->order.w : C;
  int inside = 0, items = 0; /* inside: a chunk digit that is no loop was seen; items: one of items in sequence */
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    if (d->axis != s->axis || d->extent == 1) continue;
    int64_t end = d->stride * d->extent;
    int lane = end <= W, seq = d->stride >= W && end <= C, chunk = d->stride >= C;
    if (!lane && !seq && !chunk)
      fail_check(c, "digit %c%d of axis %s crosses a border of the order (%lld, %lld)", d->level, (int)d->extent,
                 axis_name(c, s->axis), (long long)C, (long long)W);
    if (seq && d->level != 'i' && d->level != 'I')
      fail_check(c, "digit %c%d of axis %s is in sequence: it must be items or a loop", d->level, (int)d->extent,
                 axis_name(c, s->axis));
    if (chunk && d->level == 'I' && inside)
      fail_check(c, "looped chunks must be the outermost digits of axis %s", axis_name(c, s->axis));
    if (seq && d->level == 'I' && items)
      fail_check(c, "loops in sequence must lie above items in sequence: axis %s", axis_name(c, s->axis));
    inside |= chunk && d->level != 'I';
    items |= seq && d->level == 'i';
  }
}

static void check_reduce(checker *c, const nvf_stmt *s, nvf_layout *l) {
  if (s->nout != s->nin) fail_counts(c, s);
  *l = *operand_layout(c, s, 0);
  check_merge(c, s, s->nin, l);
  check_order(c, s, l);
  nvf_layout rest = nvf_layout_without(l, s->axis);
  for (int i = 0; i < s->nout; i++) define_tile(c, s->out[i], &rest, tile_type(c, s->in[i]));
}

static void check_scan(checker *c, const nvf_stmt *s, nvf_layout *l) {
  int n = s->frag ? s->frag->nresult : 0;
  if (n < 1 || (s->nin != n && s->nin != 2 * n))
    fail_check(c, "a scan takes its tiles, or its tiles and their carries");
  if (s->nout != s->nin) fail_counts(c, s);
  *l = *operand_layout(c, s, 0);
  check_merge(c, s, n, l);
  nvf_layout rest = nvf_layout_without(l, s->axis);
  if (!is_power2(nvf_extent(l, s->axis)))
    fail_check(c, "axis %s is scanned: its extent must be a power of two", axis_name(c, s->axis));
  for (int i = l->n; i-- > 0;)
    if (l->d[i].axis == s->axis) {
      if (l->d[i].extent > 1 && l->d[i].level != 'i' && l->d[i].level != 'I' && l->d[i].level != 'l')
        fail_check(c, "the lowest digit of axis %s must be items, lanes or a loop", axis_name(c, s->axis));
      break;
    }
  for (int i = n; i < s->nin; i++) {
    if (!one_layout(operand_layout(c, s, i), &rest)) fail_check(c, "tile %s needs a relayout", tile_name(c, s->in[i]));
    if (tile_type(c, s->in[i]) != tile_type(c, s->in[i - n]))
      fail_check(c, "tile %s has another dtype than what it carries", tile_name(c, s->in[i]));
  }
  for (int i = 0; i < s->nout; i++) define_tile(c, s->out[i], i < n ? l : &rest, tile_type(c, s->in[i]));
}

/* ---- layouts and shared tiles */
static void same_axes(checker *c, const nvf_layout *a, const nvf_layout *b) {
  int axes[NVF_MAX_DIGITS], na = nvf_layout_axes(a, axes);
  for (int i = 0; i < na; i++)
    if (nvf_extent(b, axes[i]) != nvf_extent(a, axes[i]))
      fail_check(c, "axis %s has extent %lld, then %lld", axis_name(c, axes[i]), (long long)nvf_extent(a, axes[i]),
                 (long long)nvf_extent(b, axes[i]));
}

static void check_relayout(checker *c, const nvf_stmt *s, nvf_layout *l) {
  if (s->nout != s->nin) fail_counts(c, s);
  *l = named_layout(c, s);
  const nvf_layout *from = operand_layout(c, s, 0);
  same_axes(c, from, l);
  same_axes(c, l, from);
  for (int i = 1; i < s->nin; i++)
    if (!one_layout(operand_layout(c, s, i), from))
      fail_check(c, "tiles of one relayout have one layout; %s has not", tile_name(c, s->in[i]));
  for (int i = 0; i < s->nout; i++) define_tile(c, s->out[i], l, tile_type(c, s->in[i]));
}

static void check_get(checker *c, const nvf_stmt *s, nvf_layout *l) { check_relayout(c, s, l); }

static void check_put(checker *c, const nvf_stmt *s, nvf_layout *l) {
  int axes[NVF_MAX_DIGITS];
  *l = *operand_layout(c, s, 0);
  int n = nvf_layout_axes(l, axes);
  for (int i = 0; i < s->norder; i++) {
    if (!has_axis(l, s->order[i])) fail_check(c, "the tile has no axis %s", axis_name(c, s->order[i]));
    for (int j = 0; j < i; j++)
      if (s->order[i] == s->order[j]) fail_check(c, "axis %s is named twice", axis_name(c, s->order[i]));
  }
  if (s->norder != n) fail_check(c, "put names each axis of the tile once");
  define_tile(c, s->out[0], l, tile_type(c, s->in[0]));
}

static void check_contract(checker *c, const nvf_stmt *s, nvf_layout *l) {
  int axes[NVF_MAX_DIGITS];
  *l = *operand_layout(c, s, 0);
  nvm_dtype t = tile_type(c, s->in[0]), one = tile_type(c, s->in[1]), other = tile_type(c, s->in[2]);
  nvm_dtype factor = one == NVM_I8 ? other : one;
  int bytes = (one == NVM_I8 || other == NVM_I8) && nvg_size(factor) == 2, whole = t == NVM_I32 && factor == NVM_I8,
      fit = one == other || bytes || (nvg_is_f8(one) && nvg_is_f8(other));
  if (t != NVM_F32 && t != NVM_F64 && t != NVM_I32) fail_check(c, "contract adds up in f32, f64 and i32");
  if (has_axis(l, s->axis)) fail_check(c, "the sum still has axis %s", axis_name(c, s->axis));
  for (int i = 1; i < 3; i++) {
    const nvf_layout *x = operand_layout(c, s, i);
    if (!fit || (factor != t && !whole && !(t == NVM_F32 && nvg_is_narrow(factor))))
      fail_check(c, "tile %s is %s, the sum %s", tile_name(c, s->in[i]), nvg_dtype_short(tile_type(c, s->in[i])),
                 nvg_dtype_short(t));
    if (!has_axis(x, s->axis)) fail_check(c, "tile %s has no axis %s", tile_name(c, s->in[i]), axis_name(c, s->axis));
    if (nvf_extent(x, s->axis) != nvf_extent(&c->t->tile[s->in[1]], s->axis))
      fail_check(c, "axis %s has two extents", axis_name(c, s->axis));
    for (int j = 0, n = nvf_layout_axes(x, axes); j < n; j++)
      if (axes[j] != s->axis && nvf_extent(x, axes[j]) != nvf_extent(l, axes[j]))
        fail_check(c, "axis %s of tile %s is not in the sum", axis_name(c, axes[j]), tile_name(c, s->in[i]));
  }
  define_tile(c, s->out[0], l, t);
}

static void check_dft(checker *c, const nvf_stmt *s, nvf_layout *l) {
  int parts = s->nin > 1 ? 2 : 1;
  if (s->nin % parts || s->nin - parts > 2 * NVF_DFT_TWISTS)
    fail_check(c, "dft takes two tiles, and two for each power of a twist, or one of real numbers");
  *l = *operand_layout(c, s, 0);
  nvm_dtype t = tile_type(c, s->in[0]);
  nvf_layout rest = nvf_layout_without(l, s->axis);
  int64_t n = nvf_extent(l, s->axis);
  if (t != NVM_F32 && t != NVM_F64) fail_check(c, "dft is for f32 and f64");
  if (s->sign != 1 && s->sign != -1) fail_check(c, "the sign is 1 or -1");
  if (!has_axis(l, s->axis)) fail_check(c, "the tile has no axis %s", axis_name(c, s->axis));
  if (!nvf_dft_has(n))
    fail_check(c, "axis %s has %lld items: at most %d, with prime factors up to 13", axis_name(c, s->axis),
               (long long)n, NVF_DFT_MAX);
  if (s->nin > 2 && 1 << (s->nin / 2 - 2) >= n)
    fail_check(c, "a transform of %lld items has no such twist", (long long)n);
  for (int i = 0; i < l->n; i++)
    if (l->d[i].axis == s->axis && l->d[i].extent > 1 && l->d[i].level != 'i')
      fail_check(c, "axis %s must be all items", axis_name(c, s->axis));
  for (int i = 0; i < s->nin; i++) {
    const nvf_layout *x = operand_layout(c, s, i);
    if (i < parts ? !one_layout(x, l) : !nvf_layout_within(x, &rest))
      fail_check(c, "tile %s needs a relayout", tile_name(c, s->in[i]));
    if (tile_type(c, s->in[i]) != t) fail_check(c, "tile %s has another dtype", tile_name(c, s->in[i]));
  }
  for (int i = 0; i < 2; i++) define_tile(c, s->out[i], l, t);
}

static void check_zeros(checker *c, const nvf_stmt *s, nvf_layout *l) {
  *l = named_layout(c, s);
  define_tile(c, s->out[0], l, tile_type(c, s->out[0]));
}

static void check_index(checker *c, const nvf_stmt *s, nvf_layout *l) {
  *l = named_layout(c, s);
  check_expr(c, s->map, l);
  define_tile(c, s->out[0], l, NVM_I64);
}

static void check_test(checker *c, const nvf_stmt *s, nvf_layout *l) {
  *l = named_layout(c, s);
  if (!s->where) fail_check(c, "the condition is missing");
  check_cond(c, s->where, l);
  define_tile(c, s->out[0], l, NVM_BOOL);
}

static int largest_extents(const nvf_layout *x, nvf_layout *l) {
  if (x->n > l->n) *l = *x;
  return 1;
}

static int largest_in(checker *c, const nvf_expr *x, nvf_layout *l) { /* returns 0 if the expression has no tile */
  if (!x || (x->kind < NVF_ADD && x->kind != NVF_TILE)) return 0;
  if (x->kind == NVF_TILE) return largest_extents(register_tile(c, x->id), l);
  return largest_in(c, x->a, l) | largest_in(c, x->b, l);
}

/* Finds the layout of a check: the named one, or that of its largest tile; without tiles it is done once in a block. */
static void check_check(checker *c, const nvf_stmt *s, nvf_layout *l) {
  if (!s->where) fail_check(c, "the condition is missing");
  int over = s->layout >= 0;
  if (over) *l = named_layout(c, s);
  for (int i = 0; s->layout < 0 && i < s->where->ntile; i++)
    over |= largest_extents(register_tile(c, s->where->tile[i]), l);
  for (int i = 0; s->layout < 0 && i < s->where->nrel; i++)
    over |= largest_in(c, s->where->rel[i].a, l) | largest_in(c, s->where->rel[i].b, l);
  check_cond(c, s->where, over ? l : NULL);
}

/* ---- blocks */
static void check_block(checker *c, const nvf_block *b);

static void check_for(checker *c, const nvf_stmt *s, nvf_layout *l) {
  (void)l;
  check_expr(c, s->lo, NULL);
  check_expr(c, s->hi, NULL);
  check_expr(c, s->step, NULL);
  if (!is_given(s->step)) fail_check(c, "the step must be a number that the text or the schedule gives");
  if (is_wrong(c, s->step)) fail_check(c, "the step must be positive");
  if (s->var < 0 || s->var >= c->k->nvar || c->var[s->var] || !s->body)
    fail_check(c, "the loop has no variable or no body");
  for (int i = 0; i < s->ncarry; i++) {
    register_tile(c, s->carry[i].outer);
    c->open[s->carry[i].outer] = 0; /* inside the loop only the inner name has a value */
  }
  for (int i = 0; i < s->ncarry; i++) {
    int in = s->carry[i].inner, out = s->carry[i].outer;
    if (in < 0 || in >= c->k->ntile || c->open[in]) fail_check(c, "a carried tile has a value before the loop");
    define_tile(c, in, &c->t->tile[out], tile_type(c, out));
    c->carried[in] = 1;
  }
  c->var[s->var] = 1;
  check_block(c, s->body);
  c->at = s;
  c->var[s->var] = 0;
  for (int i = 0; i < s->ncarry; i++) {
    c->open[s->carry[i].inner] = c->carried[s->carry[i].inner] = 0;
    c->open[s->carry[i].outer] = 1;
  }
}

static void check_if(checker *c, const nvf_stmt *s, nvf_layout *l) {
  (void)l;
  if (!s->where || !s->body) fail_check(c, "the condition or the body is missing");
  check_cond(c, s->where, NULL);
  check_block(c, s->body);
  if (s->other_body) check_block(c, s->other_body);
}

static void check_stmt(checker *c, const nvf_stmt *s) {
  static void (*const checks[])(checker *, const nvf_stmt *, nvf_layout *) = {
#define STATEMENT(id, word, ...) [NVF_##id] = check_##word,
#include "kernel/statements.def"
  };
  nvf_layout *l = NVB_NEW(c->a, nvf_layout);
  c->at = s;
  if (s->id != c->next++) fail_check(c, "statements must be numbered in the order of the text");
  c->t->stmt[s->id] = l;
  check_tiles(c, s);
  checks[s->op](c, s, l);
}

/* Checks a block. Tiles that it defines have no value after it. */
static void check_block(checker *c, const nvf_block *b) {
  uint8_t *before = nvb_dup(c->a, c->open, (size_t)c->k->ntile + 1);
  for (int i = 0; i < b->n; i++) check_stmt(c, b->s[i]);
  memcpy(c->open, before, (size_t)c->k->ntile);
}

/* ---- hints */
static void check_hints(checker *c) {
  for (int i = 0; i < c->s->nhint; i++) {
    const nvf_note *h = &c->s->hint[i];
    if (h->stmt < 0 || h->stmt >= c->k->nstmt || h->hint >= NVF_NHINTS) fail_check(c, "hint %d is damaged", i);
    c->at = c->k->stmt[h->stmt];
    const char *fault = nvf_hint_fault(c->a, c->at, h->hint, h->value);
    if (fault) fail_check(c, "%s", fault);
    if (c->t->hints[h->stmt] >> h->hint & 1) fail_check(c, "hint %s is given twice", nvf_hint_get(h->hint)->word);
    c->t->hints[h->stmt] |= 1u << h->hint;
  }
  c->at = NULL;
}

nvf_typed *nvf_kernel_check(nvb_arena *a, const nvf_kernel *k, const nvf_schedule *s) {
  checker c = { .a = a, .k = k, .s = s, .t = NVB_NEW(a, nvf_typed) };
  *c.t = (nvf_typed){ .k = k, .s = s };
  c.t->tile = NVB_NEWN(a, nvf_layout, k->ntile + 1);
  c.t->stmt = NVB_NEWN(a, nvf_layout *, k->nstmt + 1);
  c.t->hints = NVB_NEWN(a, uint32_t, k->nstmt + 1);
  c.open = NVB_NEWN(a, uint8_t, k->ntile + 1);
  c.carried = NVB_NEWN(a, uint8_t, k->ntile + 1);
  c.var = NVB_NEWN(a, uint8_t, k->nvar + 1);
  if (!k->npart) fail_check(&c, "there is no grid");
  for (int p = 0; p < k->npart; p++) {
    for (int g = 0; g < k->part[p].ngrid; g++) check_expr(&c, k->part[p].grid[g].extent, NULL);
    c.part = &k->part[p];
    check_block(&c, &k->part[p].body);
    c.part = NULL;
    c.at = NULL;
  }
  if (c.next != k->nstmt) fail_check(&c, "%d statements were made, %d are in blocks", k->nstmt, c.next);
  check_hints(&c);
  return c.t;
}
