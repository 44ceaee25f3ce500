/* Emits the kernel text of a fusion: one statement per indexed expression, with addresses over sizes by name. The text
   names symbols, products of symbols and schedule constants, never the value of a size; each literal of the program is
   a scalar parameter of its own. It makes no choice of the schedule (schedule*.c do). */
#include "fusion/emit.h"
#include "fusion/schedule.h"
#include <stdio.h>
#include <string.h>

typedef nvf_emitter emitter;

/* ---- tiles */
int nvf_emit_parts(const emitter *e, int i) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  if (v->kind == NVF_ITEST || v->kind == NVF_IINDEX) return 1;
  if (v->kind != NVF_IRED && v->kind != NVF_ISCAN) return nvf_emit_node(e, v->node)->parts;
  int n = 0;
  for (int j = 0; j < nvf_states(nvf_emit_node(e, v->node)); j++)
    n += nvf_emit_node(e, nvf_emit_node(e, v->node)->in[j])->parts;
  return n;
}

int *nvf_emit_tiles(emitter *e, int n, nvm_dtype type, const char *name) {
  int *t = NVB_NEWN(e->a, int, n + 1);
  for (int i = 0; i < n; i++) t[i] = nvf_add_tile(e->kn, nvg_real_of(type), name);
  return t;
}

nvf_stmt *nvf_emit_stmt(emitter *e, nvf_op op) { return nvf_add_stmt(e->kn, e->block, op); }

/* Adds the digits of one axis to a layout, most significant first. */
static void add_digits(emitter *e, nvf_layout *l, int axis, const nvf_digits *d) {
  if (l->n + d->n >= NVF_MAX_DIGITS) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[fuse] a tile over too many axes");
  for (int i = d->n - 1; i >= 0; i--) /* the checker limits the size of a tile */
    l->d[l->n++] = (nvf_digit){ .axis = axis,
                                .extent = (int32_t)(d->d[i].n < INT32_MAX ? d->d[i].n : INT32_MAX),
                                .level = d->d[i].level,
                                .pstride = d->d[i].at };
  if (!d->n) l->d[l->n++] = (nvf_digit){ .axis = axis, .extent = 1, .level = 'i' };
}

/* Adds the axis of split-K to layouts of tiles that have k, and to those of accumulators. */
static void add_split(emitter *e, nvf_layout *l, nvb_text *name, uint64_t axes, nvf_digits_of which) {
  if (e->split_k < 0 || (which < NVF_APART && !(axes >> e->k->dot->k & 1))) return;
  const nvf_digits d = { .n = 1, .d = { { which == NVF_TOGETHER ? 'i' : 'c', 0, e->s->split_k } } };
  add_digits(e, l, e->split_k, &d);
  nvb_puts(name, e->kn->axis[e->split_k]);
}

/* Adds the digits of the points of a transform in the layout of the pass. */
static void add_points(emitter *e, nvf_layout *l, nvb_text *name) {
  for (int q = 0; q < e->k->transforms->passes.n; q++) add_digits(e, l, e->point[q], &e->s->point[e->pass][q]);
  nvb_puts(name, "z");
}

/* Sets the layout of a tile over these axes: one name for each set of axes. An axis has the same digits in all layouts,
   except in those of transposed accesses and of split-K accumulators. */
void nvf_emit_layout(emitter *e, nvf_stmt *s, uint64_t axes, nvf_digits_of which) {
  int fresh, *at, transposed = which == NVF_TRANSPOSED || which == NVF_APART;
  nvb_text name = { .arena = e->a };
  uint64_t key[2] = { axes & e->tiles, which | (uint64_t)e->pass << 8 };
  axes &= e->tiles;
  at = nvb_map_put(e->layouts, key, sizeof key, &fresh);
  if (fresh) {
    nvf_layout l = { 0 };
    nvb_puts(&name, which ? (const char *[]){ "", "X", "S", "P" }[which]
                          : (const char *[NVF_REGIONS]){ "L", "A", "B", "C", "D" }[e->region + e->pass]);
    add_split(e, &l, &name, axes, which);
    for (int i = 0; i < e->s->norder; i++) {
      int a = e->s->order[i];
      if (!(axes >> a & 1)) continue;
      if (nvf_is_transformed(e->k, a)) {
        add_points(e, &l, &name);
        continue;
      }
      const nvf_digits *own = e->k->transforms && a == e->s->batch ? &e->s->several[e->pass] : &e->s->at[a].digits;
      add_digits(e, &l, e->axis[a], transposed ? &e->s->at[a].transposed : own);
      nvb_puts(&name, e->kn->axis[e->axis[a]]);
    }
    *at = nvf_add_name(e->kn, nvb_text_get(&name));
    nvf_binding *b = nvf_bind_name(e->kn, e->sched, *at);
    nvf_layout_finish(&l);
    b->kind = NVF_BLAYOUT;
    b->layout = l;
  }
  s->layout = *at;
}

static void set_layout(emitter *e, nvf_stmt *s, uint64_t axes) { nvf_emit_layout(e, s, axes, NVF_OWN); }

/* Emits a relayout of tiles to or from the layout of transposed accesses. */
static int *transposed_tiles(emitter *e, int n, const int *tiles, nvm_dtype type, uint64_t axes, int transposed) {
  int *out = nvf_emit_tiles(e, n, type, "t");
  nvf_stmt *s = nvf_emit_stmt(e, NVF_RELAYOUT);
  nvf_set(e->kn, s, n, out, n, tiles);
  nvf_emit_layout(e, s, axes, transposed);
  return out;
}

void nvf_emit_hint(emitter *e, const nvf_stmt *s, nvf_hint hint, int64_t value) {
  if (value) nvf_add_hint(e->kn, e->sched, s->id, hint, value);
}

static uint64_t constant_bits(const emitter *e, int i, int part) {
  const nvf_node *n = nvf_emit_node(e, nvf_emit_iexpr_of(e, i)->node);
  return n->kind == NVG_VCONST ? (part < 1 || n->parts > 1 ? (uint64_t)n->attr[part] : 0) : n->init[part];
}

/* 1 + the constant of the graph whose attribute the bits are; 0: they are no attribute of one. */
static int constant_of(const emitter *e, int i, int part) {
  const nvf_node *n = nvf_emit_node(e, nvf_emit_iexpr_of(e, i)->node);
  int own = n->kind == NVG_VCONST && e->k->graph->g->v[n->value].kind == NVG_VCONST;
  return own && (part < 1 || n->parts > 1) ? 1 + n->value : 0;
}

static int is_argument(const emitter *e, int i) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  return v->kind == NVF_ILOAD && nvf_is_argument(e->k->graph, nvf_emit_node(e, v->node));
}

int nvf_emit_is_scalar(const emitter *e, int i) {
  return nvf_emit_iexpr_of(e, i)->kind == NVF_ICONST || is_argument(e, i);
}

/* An operand of a map: a tile, or a scalar parameter of its own for a constant. */
static nvf_arg map_operand(emitter *e, int i, int part) {
  if (!nvf_emit_is_scalar(e, i)) return (nvf_arg){ .kind = NVF_ATILE, .id = nvf_emit_tile(e, i, part) };
  nvm_dtype t = nvg_real_of(nvf_emit_node(e, nvf_emit_iexpr_of(e, i)->node)->dtype);
  if (is_argument(e, i)) {
    int key[2] = { nvf_emit_node(e, nvf_emit_iexpr_of(e, i)->node)->leaf, part }, fresh;
    int *at = nvb_map_put(e->scalar_of, key, sizeof key, &fresh);
    if (fresh) *at = nvf_emit_param(e, NVF_SCALAR, t, (nvf_bind){ .leaf = 1 + key[0], .offset = part * nvg_size(t) });
    return (nvf_arg){ .kind = NVF_ASCALAR, .id = *at };
  }
  return (nvf_arg){ .kind = NVF_ASCALAR,
                    .id = nvf_emit_param(e, NVF_SCALAR, t,
                                         (nvf_bind){ .bits = constant_bits(e, i, part),
                                                     .constant = constant_of(e, i, part),
                                                     .part = part }) };
}

nvf_stmt *nvf_emit_map(emitter *e, const nvg_frag *f, int nout, const int *out, int narg, nvf_arg *arg, uint64_t axes) {
  nvf_stmt *s = nvf_emit_stmt(e, NVF_MAP);
  nvf_set(e->kn, s, nout, out, 0, NULL);
  s->frag = f;
  s->narg = narg;
  s->arg = arg;
  set_layout(e, s, axes);
  return s;
}

static const nvg_frag *check_frag(emitter *e, const nvg_frag *f, const char *what) {
  if (!f) nvb_throw(e->a, NVM_ERR_INTERNAL, "[fuse] there is no fragment %s", what);
  return f;
}

/* c ? x : y, for values of type t */
const nvg_frag *nvf_emit_choose(emitter *e, nvm_dtype t) {
  return check_frag(e, nvg_frag_find("where", (nvm_dtype[3]){ NVM_BOOL, t, t }, 3), "where");
}

/* Emits a copy of the values, broadcast over these axes. */
int nvf_emit_broadcast(emitter *e, int i, int part, uint64_t axes) {
  nvm_dtype t = nvg_real_of(nvf_emit_node(e, nvf_emit_iexpr_of(e, i)->node)->dtype);
  int *out = nvf_emit_tiles(e, 1, t, "w");
  nvf_arg *arg = NVB_NEW(e->a, nvf_arg);
  *arg = map_operand(e, i, part);
  nvf_emit_map(e, check_frag(e, nvg_frag_cast(t, t), "cast"), 1, out, 1, arg, axes);
  return *out;
}

int nvf_emit_tile(emitter *e, int i, int part) {
  if (nvf_emit_is_scalar(e, i) && !e->tile[i])
    e->tile[i] = NVB_NEWN(e->a, int, 3), e->tile[i][0] = nvf_emit_broadcast(e, i, 0, 0),
    e->tile[i][1] = nvf_emit_parts(e, i) > 1 ? nvf_emit_broadcast(e, i, 1, 0) : 0;
  return e->tile[i][part];
}

/* ---- one statement or a few per expression */
/* The scan in segments whose carry expression i loads; NULL: there is none. */
static const nvf_iexpr *scan_of_carry(const emitter *e, int i) {
  for (int j = i + 1; j < e->k->expr.n; j++) {
    const nvf_iexpr *v = nvf_emit_iexpr_of(e, j);
    if (v->kind == NVF_ISCAN && nvf_emit_node(e, v->node)->block && v->arg[v->narg - 1] == i) return v;
  }
  return NULL;
}

/* Turns a load into that of the carry of the block's segment: the last total before the segment; for the first segment
   the identity. */
static void offset_to_carry(emitter *e, const nvf_iexpr *scan, nvf_stmt *s) {
  enum { BLOCK = NVF_SCAN_RUN * NVF_SCAN_RUNS };
  const nvf_node *n = nvf_emit_node(e, scan->node), *c = nvf_emit_node(e, n->in[n->nin - 1]);
  const nvf_expr *at = nvf_x(e->kn, NVF_GRID, e->segment[scan->axis], 0), *one = nvf_x(e->kn, NVF_CONST, 0, 1);
  const nvf_expr *reach = nvf_x(e->kn, NVF_NAME, e->reach, 0), *block = nvf_x(e->kn, NVF_CONST, 0, BLOCK);
  const nvf_expr *blocks = nvf_x2(e->kn, NVF_DIV, reach, block);
  nvf_prod inner = 0;
  for (int d = (int)n->attr[0] + 1; d < c->rank; d++) inner = nvf_mul(e->sp, inner, c->dim[d]);
  s->where = nvf_and_rel(e->kn, s->where, NVF_GE, at, one);
  at = nvf_x2(e->kn, NVF_SUB, nvf_x2(e->kn, NVF_MUL, at, blocks), one);
  s->map = nvf_x2(e->kn, NVF_ADD, s->map, nvf_x2(e->kn, NVF_MUL, at, nvf_emit_size(e, inner)));
  s->has_other = 1;
  s->other = n->init[0];
}

/* Whether so many bytes leave the caches before they are read again. */
static int leave_caches(const emitter *e, int64_t bytes) {
  enum { MOST = 16 << 20 };
  int64_t l2 = e->k->graph->caps->l2;
  return bytes > (l2 < MOST ? l2 : MOST);
}

/* Whether a vector of a CPU is a whole line of memory. */
static int has_whole_lines(const emitter *e, nvm_dtype t) {
  enum { LINE = 64 };
  return e->k->graph->caps->width * nvg_size(nvg_real_of(t)) >= LINE;
}

/* Whether a kernel of a CPU fetches so many bytes, which it accesses at `at`, a block before: with transforms each
   block is a row, whose passes touch memory only first and last, and would wait there. Times over those without, with
   streaming stores, of complex64 from memory on a Zen 3: fft(x) of 2048 points 0.70, ifft(fft(x) h) of 256 0.90, of
   1024 0.74, of 4096 0.79 (without streaming stores alone 0.95, with reads fetched alone 0.82). Where vectors are whole
   lines it is not done: on two threads of a Xeon with AVX-512 these three took 1.13, 1.35 and 1.24. */
static int is_fetched_ahead(const emitter *e, nvf_ix at, nvm_dtype type, int64_t bytes) {
  const nvf_transforms *t = e->k->transforms;
  if (e->k->graph->caps->kind != NVB_CPU || !t || !leave_caches(e, bytes) || has_whole_lines(e, type)) return 0;
  int several = e->s->batch >= 0 && e->s->at[e->s->batch].tiled;
  return !several && (nvf_is_one(e->k, at, t->axis) || nvf_is_one(e->k, at, t->from));
}

static void emit_load(emitter *e, int i) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  const nvf_node *n = nvf_emit_node(e, v->node);
  const nvf_expr *map = nvf_emit_expr(e, v->at);
  const nvf_cond *where = nvf_emit_guard(e, nvf_emit_bounds(e, NULL, v->axes, v->axes), v->guard);
  int buf = nvf_emit_buffer(e, e->buf_of[v->node], n->dtype, 0),
      transposed = nvf_is_transposed_access(e->k, e->s, v->at);
  e->tile[i] = nvf_emit_tiles(e, n->parts, n->dtype, "t");
  nvf_stmt *s = nvf_emit_stmt(e, NVF_LOAD);
  nvf_set(e->kn, s, n->parts, e->tile[i], 0, NULL);
  s->buf = buf;
  s->map = map;
  s->where = where;
  nvf_emit_layout(e, s, v->axes, transposed);
  const nvf_iexpr *scan = scan_of_carry(e, i);
  if (scan) offset_to_carry(e, scan, s);
  else if (e->k->graph->caps->kind != NVB_CPU) {
    nvf_access m = { v->at, v->guard, v->node, transposed, .pass = e->pass, .axes = v->axes };
    nvf_access_hints w = nvf_access_hints_of(e->k, e->s, &m);
    nvf_emit_hint(e, s, NVF_HINT_VEC, w.vec);
    nvf_emit_hint(e, s, NVF_HINT_WHOLE, w.whole);
    nvf_emit_hint(e, s, NVF_HINT_STREAM, w.stream);
    nvf_emit_hint(e, s, NVF_HINT_PREFETCH, w.prefetch);
    nvf_emit_hint(e, s, NVF_HINT_BULK, w.bulk);
    nvf_emit_hint(e, s, NVF_HINT_TMA, w.tma);
  } else if (is_fetched_ahead(e, v->at, n->dtype, n->size * nvg_size(n->dtype)))
    nvf_emit_hint(e, s, NVF_HINT_PREFETCH, 1);
  if (transposed) e->tile[i] = transposed_tiles(e, n->parts, e->tile[i], n->dtype, v->axes, 0);
}

/* The fragment of a map. On a CPU a division takes as long as twenty other operations; if many vectors share the
   divisor, divide_by takes six. */
static const nvg_frag *frag_of(emitter *e, const nvf_iexpr *v) {
  enum { MANY = 4 };
  const nvf_node *n = nvf_emit_node(e, v->node);
  const nvb_caps *c = e->k->graph->caps;
  int lane = e->s->lane;
  if (c->kind != NVB_CPU || strcmp(n->frag->name, "divide") || lane < 0 || e->s->at[lane].tile < MANY * c->width ||
      (v->axes & ~nvf_emit_iexpr_of(e, v->arg[1])->axes & 1ull << lane) == 0)
    return n->frag;
  nvm_dtype t = (nvm_dtype)n->frag->inst[0].type;
  return check_frag(e, nvg_frag_find("divide_by", (nvm_dtype[2]){ t, t }, 2), "divide_by");
}

static void emit_map(emitter *e, int i) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  const nvf_node *n = nvf_emit_node(e, v->node);
  nvf_arg *arg = NVB_NEWN(e->a, nvf_arg, 2 * v->narg + 1);
  int m = 0;
  for (int j = 0; j < v->narg; j++)
    for (int p = 0; p < nvf_emit_parts(e, v->arg[j]); p++) arg[m++] = map_operand(e, v->arg[j], p);
  e->tile[i] = nvf_emit_tiles(e, n->parts, n->dtype, "t");
  nvf_stmt *s = nvf_emit_map(e, frag_of(e, v), n->parts, e->tile[i], m, arg, v->axes);
  if (e->k->graph->caps->kind != NVB_CPU) nvf_emit_hint(e, s, NVF_HINT_APPROX, n->narrowed);
}

static void emit_select(emitter *e, int i) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  const nvf_node *n = nvf_emit_node(e, v->node);
  e->tile[i] = nvf_emit_tiles(e, n->parts, n->dtype, "t");
  for (int p = 0; p < n->parts; p++) {
    nvf_arg *arg = NVB_NEWN(e->a, nvf_arg, 3);
    arg[0] = map_operand(e, v->arg[0], 0);
    arg[1] = map_operand(e, v->arg[1], p);
    arg[2] = map_operand(e, v->arg[2], p);
    nvf_emit_map(e, nvf_emit_choose(e, nvg_real_of(n->dtype)), 1, e->tile[i] + p, 3, arg, v->axes);
  }
}

int nvf_emit_red_order(emitter *e, nvf_red_order st) {
  char text[32];
  snprintf(text, sizeof text, "S%d_%d", st.c, st.w);
  int name = nvf_add_name(e->kn, text);
  nvf_binding *b = nvf_bind_name(e->kn, e->sched, name);
  b->kind = NVF_BRED_ORDER;
  b->order = st;
  return name;
}

static void emit_reduction(emitter *e, int i) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  const nvf_node *n = nvf_emit_node(e, v->node);
  int parts = nvf_emit_parts(e, i), *in = NVB_NEWN(e->a, int, 2 * parts + 1), *out = NVB_NEWN(e->a, int, 2 * parts + 1),
      m = 0;
  for (int j = 0; j < nvf_states(n); j++)
    for (int p = 0; p < nvf_emit_node(e, n->in[j])->parts; p++, m++) {
      uint64_t all = nvf_emit_iexpr_of(e, v->arg[j])->axes;
      in[m] =
          nvf_emit_is_scalar(e, v->arg[j]) ? nvf_emit_broadcast(e, v->arg[j], p, all) : nvf_emit_tile(e, v->arg[j], p);
      out[m] = *nvf_emit_tiles(e, 1, nvf_emit_node(e, n->in[j])->dtype, "r");
    }
  const nvf_cond *where =
      v->kind == NVF_IRED ? nvf_emit_bounds(e, NULL, 1ull << v->axis, v->axes | 1ull << v->axis) : NULL;
  nvf_red_order st;
  nvf_red_order_of(e->k, e->s, v, &st);
  int order = v->kind == NVF_IRED ? nvf_emit_red_order(e, st) : -1;
  e->tile[i] = out;
  const int *carry = v->kind == NVF_ISCAN && e->s->at[v->axis].walk ? e->carry + e->state[i] : NULL;
  for (int p = 0; p < parts && carry; p++) in[parts + p] = out[parts + p] = carry[p];
  nvf_stmt *s = nvf_emit_stmt(e, v->kind == NVF_IRED ? NVF_REDUCE : NVF_SCAN);
  nvf_set(e->kn, s, carry ? 2 * parts : parts, out, carry ? 2 * parts : parts, in);
  s->frag = n->frag;
  s->axis = e->axis[v->axis];
  s->red_order = order;
  s->where = where;
  s->init = n->init ? nvb_dup(e->a, n->init, (size_t)parts * sizeof *n->init) : NULL;
}

static void emit_index(emitter *e, int i) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  const nvf_cond *where = v->kind == NVF_ITEST ? nvf_emit_guard(e, NULL, v->guard) : NULL;
  const nvf_expr *map = v->kind == NVF_IINDEX ? nvf_emit_expr(e, v->at) : NULL;
  e->tile[i] = nvf_emit_tiles(e, 1, v->kind == NVF_ITEST ? NVM_BOOL : NVM_I64, v->kind == NVF_ITEST ? "p" : "t");
  nvf_stmt *s = nvf_emit_stmt(e, v->kind == NVF_ITEST ? NVF_TEST : NVF_INDEX);
  nvf_set(e->kn, s, 1, e->tile[i], 0, NULL);
  s->where = where;
  s->map = map;
  set_layout(e, s, v->axes);
  if (map) nvf_emit_hint(e, s, NVF_HINT_CONSECUTIVE, nvf_consecutive(e->k, e->s, i));
}

static void emit_pick(emitter *e, int i) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  const nvf_node *r = nvf_emit_node(e, nvf_emit_iexpr_of(e, v->arg[0])->node);
  int at = 0;
  for (int j = 0; j < v->pick && nvf_emit_iexpr_of(e, v->arg[0])->kind != NVF_ICONST; j++)
    at += nvf_emit_node(e, r->in[j])->parts;
  nvf_emit_tile(e, v->arg[0], 0);
  e->tile[i] = e->tile[v->arg[0]] + at;
}

/* Emits a check that an index is in range where its guard holds; elsewhere the index is taken as 0. */
static void emit_check(emitter *e, int check) {
  const nvf_check *c = &e->k->check.at[check];
  const nvf_cond *mask = nvf_emit_guard(e, nvf_emit_bounds(e, NULL, c->axes, c->axes), c->guard);
  int t = nvf_emit_tile(e, c->expr, 0), *in = nvf_emit_tiles(e, 1, NVM_I64, "q");
  if (mask) {
    int *p = nvf_emit_tiles(e, 1, NVM_BOOL, "p");
    nvf_stmt *s = nvf_emit_stmt(e, NVF_TEST);
    nvf_set(e->kn, s, 1, p, 0, NULL);
    s->where = mask;
    set_layout(e, s, c->axes);
    nvf_arg *arg = NVB_NEWN(e->a, nvf_arg, 3);
    arg[0] = (nvf_arg){ .kind = NVF_ATILE, .id = *p };
    arg[1] = map_operand(e, c->expr, 0);
    arg[2] = (nvf_arg){ .kind = NVF_ACONST, .type = NVM_I64 };
    nvf_emit_map(e, nvf_emit_choose(e, NVM_I64), 1, in, 3, arg, c->axes);
    t = *in;
  }
  e->checked[check] = t;
  const nvf_expr *x = nvf_x(e->kn, NVF_TILE, t, 0);
  const nvf_cond *ok = nvf_and_rel(e->kn, NULL, NVF_GE, x, nvf_x(e->kn, NVF_CONST, 0, 0));
  ok = nvf_and_rel(e->kn, ok, NVF_LT, x, nvf_emit_size(e, c->n));
  nvf_stmt *s = nvf_emit_stmt(e, NVF_CHECK);
  s->where = ok;
  set_layout(e, s, c->axes);
  NVB_PUSH(e->a, e->checks, ((nvf_checked){ s->id, c->op, c->of, nvf_value(e->sp, c->n), c->n }));
}

/* Whether all checked indices in the index expression are emitted. */
static int has_tiles(const emitter *e, nvf_ix x) {
  int n, made = 1;
  const nvf_term *t = nvf_ix_terms(e->sp, x, &n);
  for (int i = 0; i < n && made; i++) {
    const nvf_atom *a = nvf_ix_atom(e->sp, t[i].atom);
    made = a->kind == NVF_AT_TILE ? e->checked[a->id] >= 0 : a->kind != NVF_AT_FLOOR || has_tiles(e, a->of);
  }
  return made;
}

/* Emits the checks whose expression is emitted, each after the checks that its guard uses. */
static void emit_checks(emitter *e) {
  for (int c = 0; c < e->k->check.n; c++) {
    const nvf_guard *g = &e->k->guard.at[e->k->check.at[c].guard];
    int ready = e->checked[c] < 0 && nvf_has(e->met, e->k->check.at[c].expr);
    for (int i = 0; i < g->n && ready; i++) ready = has_tiles(e, g->b[i].e);
    if (ready) emit_check(e, c);
  }
}

void nvf_emit_iexpr(emitter *e, int i) {
  switch (nvf_emit_iexpr_of(e, i)->kind) {
  case NVF_ILOAD:
    if (!is_argument(e, i)) emit_load(e, i);
    break;
  case NVF_ICONST: case NVF_IDOT: case NVF_IDFT: break;
  case NVF_IINDEX: case NVF_ITEST: emit_index(e, i); break;
  case NVF_IMAP: emit_map(e, i); break;
  case NVF_ISELECT: emit_select(e, i); break;
  case NVF_IRED: case NVF_ISCAN: emit_reduction(e, i); break;
  case NVF_IPICK: emit_pick(e, i); break;
  case NVF_ISAME: {
    int n = nvf_emit_parts(e, i);
    e->tile[i] = NVB_NEWN(e->a, int, n + 1);
    for (int p = 0; p < n; p++)
      e->tile[i][p] = nvf_emit_broadcast(e, nvf_emit_iexpr_of(e, i)->arg[0], p, nvf_emit_iexpr_of(e, i)->axes);
  }
  }
  nvf_put_bit(e->met, i);
  emit_checks(e);
}

/* Operations from loads and results of reductions to expression i, over its axes. An expression that lacks one of the
   axes is computed seldom, and the operand of a reduction is computed before it, so neither counts. */
static int work_before(const emitter *e, int i, uint64_t axes, uint64_t *seen) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  if (nvf_has(seen, i) || axes & ~v->axes || (v->kind != NVF_IMAP && v->kind != NVF_ISELECT && v->kind != NVF_ISAME))
    return 0;
  nvf_put_bit(seen, i);
  for (int r = 0; r < e->k->expr.n; r++)
    for (int a = 0; a < e->k->expr.at[r].narg && e->k->expr.at[r].kind == NVF_IRED; a++)
      if (e->k->expr.at[r].arg[a] == i) return 0;
  int work = v->kind == NVF_IMAP ? e->k->graph->node[v->node].frag->cost : 1;
  for (int a = 0; a < v->narg; a++) work += work_before(e, v->arg[a], axes, seen);
  return work;
}

/* Hints of a store. Results that no cache keeps until they are read use streaming stores. On a CPU whose vectors are
   shorter than a cache line this holds only if little is computed for each: between slow streaming stores the
   write-combining buffers drain half empty (tanh over 64 MB in vectors of 32 bytes: 0.5 ns an element, 2.0 with
   streaming stores; x + 1 gains a third; in vectors of 64 bytes all gain, tanh a quarter). */
static void set_store_hints(emitter *e, const nvf_stmt *s, const nvf_put *q, int64_t bytes, int temp) {
  enum { LITTLE = 10 };
  const nvb_caps *c = e->k->graph->caps;
  int whole = has_whole_lines(e, e->kn->param[s->buf].type);
  uint64_t *seen = NVB_NEWN(e->a, uint64_t, e->k->expr.n / 64 + 1);
  if (c->kind != NVB_CPU) {
    int transposed = nvf_is_transposed_access(e->k, e->s, q->at);
    nvf_access_hints w = nvf_access_hints_of(
        e->k, e->s, &(nvf_access){ q->at, 0, q->node, transposed, .store = 1, .pass = e->pass, .axes = q->axes });
    nvf_emit_hint(e, s, NVF_HINT_VEC, w.vec);
    nvf_emit_hint(e, s, NVF_HINT_WHOLE, w.whole);
    nvf_emit_hint(e, s, NVF_HINT_NT, w.stream);
    nvf_emit_hint(e, s, NVF_HINT_TMA, w.tma);
  } else if (is_fetched_ahead(e, q->at, e->kn->param[s->buf].type, bytes)) nvf_emit_hint(e, s, NVF_HINT_PREFETCH, 1);
  else
    nvf_emit_hint(
        e, s, NVF_HINT_NT,
        nvf_knob_value(e->k, NVF_KSTREAM,
                       !temp && leave_caches(e, bytes) &&
                           (whole || work_before(e, q->expr, nvf_emit_iexpr_of(e, q->expr)->axes, seen) <= LITTLE)));
}

static void emit_put(emitter *e, const nvf_put *q, int buf) {
  const nvf_node *n = nvf_emit_node(e, q->node);
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, q->expr);
  int in[2];
  for (int p = 0; p < n->parts; p++)
    in[p] = nvf_emit_is_scalar(e, q->expr) || ((v->axes ^ q->axes) & e->tiles)
                ? nvf_emit_broadcast(e, q->expr, p, q->axes)
                : nvf_emit_tile(e, q->expr, p);
  const int *put =
      nvf_is_transposed_access(e->k, e->s, q->at) ? transposed_tiles(e, n->parts, in, n->dtype, q->axes, 1) : in;
  const nvf_expr *map = nvf_emit_expr(e, q->at);
  const nvf_cond *where = nvf_emit_bounds(e, NULL, q->axes, q->axes | ~e->tiles);
  for (int a = 0; a < e->k->axis.n; a++) /* other blocks have copies; the first block writes */
    if (e->grid[a] >= 0 && !(q->axes >> a & 1))
      where = nvf_and_rel(e->kn, where, NVF_EQ, nvf_x(e->kn, NVF_GRID, e->grid[a], 0), nvf_x(e->kn, NVF_CONST, 0, 0));
  for (int a = 0; a < e->k->axis.n; a++)
    if (e->segment[a] >= 0 && !(q->axes >> a & 1))
      where =
          nvf_and_rel(e->kn, where, NVF_EQ, nvf_x(e->kn, NVF_GRID, e->segment[a], 0), nvf_x(e->kn, NVF_CONST, 0, 0));
  if (n->kind == NVG_VSCATTER) { /* elsewhere the check has failed already */
    where = nvf_and_rel(e->kn, where, NVF_GE, map, nvf_x(e->kn, NVF_CONST, 0, 0));
    where = nvf_and_rel(e->kn, where, NVF_LT, map, nvf_emit_size(e, *n->dim));
  }
  int x = nvf_emit_buffer(e, buf, n->dtype, 1);
  nvf_stmt *s = nvf_emit_stmt(e, n->kind == NVG_VSCATTER ? NVF_ATOMIC_MAX : NVF_STORE);
  nvf_set(e->kn, s, 0, NULL, n->parts, put);
  s->buf = x;
  s->map = map;
  s->where = where;
  if (s->op == NVF_STORE) set_store_hints(e, s, q, n->size * nvg_size(n->dtype), e->plan->buf[buf].kind == NVF_BTEMP);
}

/* ---- axes, grid, layout */
static const nvf_expr *count_of(emitter *e, const nvf_expr *n, const nvf_expr *t) { /* ceil(n / t) */
  n = nvf_x2(e->kn, NVF_SUB, nvf_x2(e->kn, NVF_ADD, n, t), nvf_x(e->kn, NVF_CONST, 0, 1));
  return nvf_x2(e->kn, NVF_DIV, n, t);
}

static void emit_segments(emitter *e, int a, const char *name) {
  char reach[20], grid[20];
  snprintf(reach, sizeof reach, "G%s", name);
  snprintf(grid, sizeof grid, "s%s", name);
  nvf_binding *b = nvf_bind_name(e->kn, e->sched, e->reach = nvf_add_name(e->kn, reach));
  b->kind = NVF_BINT;
  b->value = e->s->at[a].segment;
  const nvf_expr *n = nvf_emit_size(e, e->k->axis.at[a].extent);
  e->segment[a] = nvf_add_grid(e->kn, e->part, grid, count_of(e, n, nvf_x(e->kn, NVF_NAME, e->reach, 0)));
}

static void emit_axes(emitter *e) {
  static const char letters[] = "ijkmpqruvwyz";
  char name[16];
  for (int a = 0; a < e->k->axis.n; a++) {
    e->axis[a] = e->grid[a] = e->tile_size[a] = e->var[a] = e->segment[a] = -1;
    if (!e->k->axis.at[a].extent) continue;
    snprintf(name, sizeof name, e->letters < 12 ? "%c" : "%c%d", letters[e->letters % 12], e->letters / 12);
    e->letters++; /* letters go on from part to part, so axes are unique */
    if (e->s->at[a].tile) {
      e->axis[a] = nvf_is_transformed(e->k, a) ? nvf_emit_points(e, name) : nvf_add_axis(e->kn, name);
      e->tiles |= 1ull << a;
    }
    if (e->s->at[a].walk) {
      snprintf(name, sizeof name, "t%d", e->letters);
      e->var[a] = nvf_add_var(e->kn, name);
    }
    if (e->s->at[a].tiled || e->s->at[a].walk) {
      char big[20];
      snprintf(big, sizeof big, "T%s", e->kn->axis[e->axis[a]]);
      e->tile_size[a] = nvf_add_name(e->kn, big);
      nvf_binding *b = nvf_bind_name(e->kn, e->sched, e->tile_size[a]);
      b->kind = NVF_BINT;
      b->value = e->s->at[a].tile;
    }
    if (e->s->at[a].segment) emit_segments(e, a, name);
    if (!(e->k->grid >> a & 1)) continue;
    const nvf_expr *n_of = nvf_emit_size(e, e->k->axis.at[a].extent),
                   *t = e->tile_size[a] >= 0 ? nvf_x(e->kn, NVF_NAME, e->tile_size[a], 0) : NULL;
    if (t) n_of = count_of(e, n_of, t);
    char grid[20];
    snprintf(grid, sizeof grid, "b%s", name);
    e->grid[a] = nvf_add_grid(e->kn, e->part, grid, n_of);
    nvf_grid_axis by = { e->kn->npart - 1, e->k->axis.at[a].extent, t ? e->s->at[a].tile : 1 };
    NVB_PUSH(e->a, e->grid_axes, by);
  }
}

/* Blocks in a chunk of the thread pool: some 40 us of work, but several chunks for each core. On a GPU: the blocks of
   one wave. */
int64_t nvf_grain(const nvf_step *s, const nvb_caps *c) {
  if (c->kind != NVB_CPU) return s->blocks < c->cores ? s->blocks < 1 ? 1 : s->blocks : c->cores;
  if (s->chunks > 0) return s->blocks > s->chunks ? (s->blocks + s->chunks - 1) / s->chunks : 1;
  double one =
      ((double)(s->bytes_read + s->bytes_written) / c->core_bandwidth + (double)s->flops * c->cores / c->rate) /
      (double)(s->blocks ? s->blocks : 1);
  int64_t n = (int64_t)(40000 / (one + 10)), fair = s->blocks / (4 * (int64_t)c->cores);
  n = n > fair ? fair : n;
  return n < 1 ? 1 : n;
}

/* Marks buffers as unique: no two of a step overlap, except an output and the donated leaf whose memory it takes. */
static void mark_unique(emitter *e) {
  for (int i = 0; i < e->kn->nparam; i++) {
    const nvf_buf *b = e->kn->param[i].kind == NVF_BUFFER ? &e->plan->buf[e->bind.at[i].buf] : NULL;
    e->kn->param[i].unique = b != NULL;
    for (int j = 0; j < e->kn->nparam && b; j++) {
      const nvf_buf *o = e->kn->param[j].kind == NVF_BUFFER ? &e->plan->buf[e->bind.at[j].buf] : NULL;
      if (o && ((b->kind == NVF_BOUT && o->kind == NVF_BLEAF && b->donor == o->id) ||
                (o->kind == NVF_BOUT && b->kind == NVF_BLEAF && o->donor == b->id)))
        e->kn->param[i].unique = 0;
    }
  }
}

/* Whether a GPU may store the result at once and need not keep it to the end: the store must not split a loop, and a
   donated leaf is not overwritten before all of it is read. */
static int is_early(const emitter *e, const nvf_put *q, int buf) {
  return e->k->graph->caps->kind != NVB_CPU && e->plan->buf[buf].donor < 0 && !(e->s->loops & ~q->axes);
}

/* Emits the stores of an expression that may follow it; -1: all others. */
void nvf_emit_puts(emitter *e, int expr) {
  for (int i = 0; i < e->k->put.n; i++) {
    const nvf_put *q = &e->k->put.at[i];
    for (int b = e->buf_of[q->node]; b >= 0; b = e->plan->twin[b]) {
      int now = expr < 0 ? !is_early(e, q, b) : is_early(e, q, b) && q->expr == expr;
      if (now && e->plan->buf[b].kind != NVF_BLEAF) /* an output may be a leaf itself, which is not stored */
        emit_put(e, q, b);
    }
  }
}

/* Opens the loop of a walk. A scan's carry starts as the identity, or with the carry of its segment. */
static void open_scan_loop(emitter *e, int axis) {
  const nvf_fusion *k = e->k;
  NVB_VEC(struct nvf_carry) carry = { 0 };
  e->state = NVB_NEWN(e->a, int, k->expr.n + 1);
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    e->state[i] = carry.n;
    for (int p = 0; p < nvf_emit_parts(e, i) && v->kind == NVF_ISCAN && v->axis == axis; p++) {
      nvm_dtype t = nvg_real_of(nvf_emit_node(e, v->node)->dtype);
      if (nvf_emit_node(e, v->node)->block) {
        NVB_PUSH(e->a, carry, ((struct nvf_carry){ .outer = nvf_emit_tile(e, v->arg[v->narg - 1], p) }));
        continue;
      }
      int outer = *nvf_emit_tiles(e, 1, t, "c");
      nvf_arg *arg = NVB_NEW(e->a, nvf_arg);
      *arg = (nvf_arg){ .kind = NVF_ACONST, .type = t, .bits = nvf_emit_node(e, v->node)->init[p] };
      nvf_emit_map(e, check_frag(e, nvg_frag_cast(t, t), "cast"), 1, &outer, 1, arg, v->axes & ~(1ull << axis));
      NVB_PUSH(e->a, carry, ((struct nvf_carry){ .outer = outer }));
    }
  }
  nvf_stmt *s = nvf_emit_stmt(e, NVF_FOR);
  e->carry = NVB_NEWN(e->a, int, carry.n + 1);
  for (int i = 0; i < carry.n; i++)
    carry.at[i].inner = e->carry[i] = *nvf_emit_tiles(e, 1, e->kn->tile[carry.at[i].outer].type, "c");
  s->var = e->var[axis];
  s->lo = nvf_x(e->kn, NVF_CONST, 0, 0);
  s->hi = nvf_emit_size(e, k->axis.at[axis].extent);
  if (e->segment[axis] >= 0) {
    const nvf_expr *reach = nvf_x(e->kn, NVF_NAME, e->reach, 0);
    s->lo = nvf_x2(e->kn, NVF_MUL, nvf_x(e->kn, NVF_GRID, e->segment[axis], 0), reach);
    s->hi = nvf_x2(e->kn, NVF_ADD, s->lo, reach);
  }
  nvf_emit_hint(e, s, NVF_HINT_UNROLL, e->s->at[axis].tile == 1 ? 64 : 0); /* one element after the other */
  s->step = nvf_x(e->kn, NVF_NAME, e->tile_size[axis], 0);
  s->ncarry = carry.n;
  s->carry = carry.at;
  s->body = e->block = nvf_new_block(e->kn);
}

static void emit_part(emitter *e, nvf_fusion *k, nvf_tiling *s) {
  nvb_arena *a = e->a;
  e->k = k;
  e->s = s;
  e->part = nvf_add_part(e->kn);
  e->block = &e->part->body;
  e->axis = NVB_NEWN(a, int, k->axis.n + 1);
  e->grid = NVB_NEWN(a, int, k->axis.n + 1);
  e->tile_size = NVB_NEWN(a, int, k->axis.n + 1);
  e->var = NVB_NEWN(a, int, k->axis.n + 1);
  e->segment = NVB_NEWN(a, int, k->axis.n + 1);
  e->tile = NVB_NEWN(a, int *, k->expr.n + 1);
  e->met = NVB_NEWN(a, uint64_t, k->expr.n / 64 + 1);
  e->checked = NVB_NEWN(a, int, k->check.n + 1);
  memset(e->checked, 0xff, (size_t)k->check.n * sizeof *e->checked);
  e->layouts = nvb_map_new(a);
  e->tiles = 0;
  e->split_k = e->split_k_name = e->point[0] = -1;
  emit_axes(e);
  if (k->dot || k->attention) {
    (k->dot ? nvf_emit_gemm : nvf_emit_attention)(e);
    return;
  }
  e->pass = e->reversed = 0;
  if (k->transforms) {
    nvf_emit_transforms(e);
    return;
  }
  int *order = nvf_order(k, s), walk = -1;
  for (int i = 0; i < k->axis.n; i++) walk = s->at[i].walk ? i : walk;
  for (int inside = walk < 0; inside < 2; inside++) { /* expressions without the walked axis first, then the loop */
    if (walk >= 0 && inside) open_scan_loop(e, walk);
    for (int i = 0; i < k->expr.n; i++)
      if (walk < 0 || (k->expr.at[order[i]].axes >> walk & 1) == (uint64_t)inside) {
        nvf_emit_iexpr(e, order[i]);
        nvf_emit_puts(e, order[i]);
      }
  }
  nvf_emit_puts(e, -1);
}

void nvf_emit(const nvf_plan *p, nvf_step *step, int n, nvf_fusion *const *k, nvf_tiling *const *s, const int *buf_of,
              const char *name) {
  nvb_arena *a = p->arena;
  emitter *e = NVB_NEW(a, emitter);
  *e = (emitter){ .plan = p, .sp = k[0]->graph->space, .a = a, .buf_of = buf_of, .kn = nvf_kernel_new(a, name) };
  e->sched = nvf_schedule_new(e->kn);
  e->size_of = nvb_map_new(a);
  e->buffer_of = nvb_map_new(a);
  e->scalar_of = nvb_map_new(a);
  for (int i = 0; i < n; i++) {
    emit_part(e, k[i], s[i]);
    step->bytes_read += k[i]->bytes_read;
    step->bytes_written += k[i]->bytes_written;
    step->flops += k[i]->flops;
  }
  if (n == 1) {
    const nvf_stmt first = { .id = 0 };
    nvf_emit_hint(e, &first, NVF_HINT_MIRROR, s[0]->mirror);
    nvf_emit_hint(e, &first, NVF_HINT_MIN_BLOCKS, s[0]->blocks);
    nvf_emit_hint(e, &first, NVF_HINT_RASTER, s[0]->raster);
  }
  mark_unique(e);
  step->k = e->kn;
  step->s = e->sched;
  step->bind = e->bind.at;
  step->checked = e->checks.at;
  step->nchecked = e->checks.n;
  step->grid = e->grid_axes.at;
  step->ngrid = e->grid_axes.n;
  uint64_t *args = NVB_NEWN(a, uint64_t, e->bind.n + 1);
  for (int i = 0; i < e->bind.n; i++) args[i] = e->bind.at[i].bits;
  step->blocks = nvf_blocks(e->kn, e->sched, args);
  step->chunks = nvf_knob_value(k[0], NVF_KCHUNKS, 0);
  step->grain = nvf_grain(step, k[0]->graph->caps);
  if (k[0]->dot) {
    nvf_gemm *gemm = nvf_gemm_of(k[0], step, buf_of);
    gemm->own = k[0]->own;
    gemm->half = k[0]->half;
    step->gemm = gemm;
  }
}
