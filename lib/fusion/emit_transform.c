/* Emits the kernel text of transforms along one axis. The axis is an axis of the text for each pass, a digit of the
   points; a pass transforms one of them, all of whose values are items of a thread. The digits are first read with
   that of the first pass most significant, and come out with it least significant, so nothing is reordered: a second
   transform takes the passes from the other end, and so does an inverse one. Head, middle and tail are statements
   over the same axes, in the layout of the pass beside them. */
#include <stdio.h>
#include "frag/dtype.h"
#include "fusion/emit.h"

typedef nvf_emitter emitter;

int nvf_emit_points(emitter *e, const char *name) {
  char digit[24];
  int known = e->point[0] >= 0;
  for (int p = 0; p < e->k->transforms->passes.n && !known; p++) {
    snprintf(digit, sizeof digit, "%s_%d", name, p);
    e->point[p] = nvf_add_axis(e->kn, digit);
  }
  return e->point[0];
}

static const nvf_expr *scaled(emitter *e, const nvf_expr *x, int64_t by) {
  return nvf_x2(e->kn, NVF_MUL, x, nvf_x(e->kn, NVF_CONST, 0, by));
}

/* The number that the digits of the first n passes from this end have, the first one least significant */
static const nvf_expr *index_so_far(emitter *e, int n, int backwards) {
  const nvf_passes *p = &e->k->transforms->passes;
  const nvf_expr *sum = NULL;
  int64_t by = 1;
  for (int i = 0; i < n; i++) {
    int q = backwards ? p->n - 1 - i : i;
    const nvf_expr *x = scaled(e, nvf_x(e->kn, NVF_AXIS, e->point[q], 0), by);
    sum = sum ? nvf_x2(e->kn, NVF_ADD, x, sum) : x;
    by *= p->radix[q];
  }
  return sum;
}

const nvf_expr *nvf_emit_point(emitter *e) { return index_so_far(e, e->k->transforms->passes.n, !e->reversed); }

/* ---- twiddles */
/* Loads root number `at` of n, over the digits of the first `count` passes of the order. */
static int *load_roots(emitter *e, nvm_dtype real, int64_t n, int64_t length, int sign, const nvf_expr *at,
                       const int *order, int count) {
  nvm_dtype t = nvg_complex_of(real);
  int w = nvf_emit_roots(e, t, n, length, sign), *tile = nvf_emit_tiles(e, 2, real, "w");
  nvf_stmt *s = nvf_emit_stmt(e, NVF_LOAD);
  nvf_set(e->kn, s, 2, tile, 0, NULL);
  s->buf = w;
  s->map = at;
  nvf_emit_layout(e, s, 1ull << e->k->transforms->axis, NVF_OWN);
  s->nonly = count;
  s->only = NVB_NEWN(e->a, int, count + 1);
  for (int i = 0; i < count; i++) s->only[i] = e->point[order[i]];
  nvf_emit_hint(e, s, NVF_HINT_VEC, e->k->graph->caps->kind != NVB_CPU);
  return tile;
}

/* The powers of the twist of a pass. Returns their tiles' number. */
static int load_twists(emitter *e, int step, const int *order, int64_t before, int sign, nvm_dtype t, int *twist) {
  int n = 0, radix = e->k->transforms->passes.radix[order[step]];
  const nvf_expr *at = index_so_far(e, step, order[0] != 0);
  for (int power = 1; power < radix; power *= 2) {
    int whole = radix % power == 0; /* else its angles are no multiples of a part of the circle */
    int *w = whole
                 ? load_roots(e, t, before * radix / power, before, sign, at, order, step)
                 : load_roots(e, t, before * radix, (before - 1) * power + 1, sign, scaled(e, at, power), order, step);
    twist[n++] = w[0];
    twist[n++] = w[1];
  }
  return n;
}

/* ---- passes */
static void exchange(emitter *e, uint64_t axes, int *tile) {
  int *out = nvf_emit_tiles(e, 2, e->kn->tile[tile[0]].type, "x");
  nvf_stmt *s = nvf_emit_stmt(e, NVF_RELAYOUT);
  nvf_set(e->kn, s, 2, out, 2, tile);
  nvf_emit_layout(e, s, axes, NVF_OWN);
  tile[0] = out[0], tile[1] = out[1];
}

/* Of the pass in the middle of three a CPU loads the twists, over fewer axes, before the exchange, so that this and the
   transform share a loop and nothing is copied between them. */
static void emit_pass(emitter *e, uint64_t axes, int step, const int *order, int64_t before, int sign, int *tile) {
  enum { MOST = 2 + 2 * 5 };
  int in[MOST] = { 0 }, n = tile[1] < 0 ? 1 : 2, last = e->k->transforms->passes.n - 1;
  int before_it = e->k->graph->caps->kind == NVB_CPU && step < last;
  nvm_dtype t = e->kn->tile[tile[0]].type;
  if (step && !before_it) exchange(e, axes, tile);
  if (step) n += load_twists(e, step, order, before, sign, t, in + 2);
  if (step && before_it) exchange(e, axes, tile);
  in[0] = tile[0], in[1] = tile[1];
  int *out = nvf_emit_tiles(e, 2, t, "f");
  nvf_stmt *s = nvf_emit_stmt(e, NVF_DFT);
  nvf_set(e->kn, s, 2, out, n, in);
  s->axis = e->point[order[step]];
  s->sign = sign;
  tile[0] = out[0], tile[1] = out[1];
}

/* A part of the operand of a transform, over its axes; -1: real numbers have no such part. */
static int operand_tile(emitter *e, int i, int part) {
  if (part == nvf_emit_parts(e, i)) return -1;
  return nvf_emit_is_scalar(e, i) ? nvf_emit_broadcast(e, i, part, nvf_emit_iexpr_of(e, i)->axes)
                                  : nvf_emit_tile(e, i, part);
}

/* Emits transform i from the tiles of its operand. */
static int *emit_transform(emitter *e, int i) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  const nvf_passes *p = &e->k->transforms->passes;
  int *tile = NVB_NEWN(e->a, int, 2), order[NVF_PASSES];
  int sign = nvf_emit_node(e, v->node)->attr[0] == NVG_DFT_INVERSE ? 1 : -1;
  int64_t before = 1;
  for (int part = 0; part < 2; part++) tile[part] = operand_tile(e, *v->arg, part);
  for (int step = 0; step < p->n; step++) order[step] = e->reversed ? p->n - 1 - step : step;
  for (int step = 0; step < p->n; step++) {
    e->pass = e->s->turns && e->reversed && order[step] == 1 ? NVF_BACKWARDS : order[step];
    emit_pass(e, v->axes, step, order, before, sign, tile);
    before *= p->radix[order[step]];
  }
  return tile;
}

void nvf_emit_transforms(emitter *e) {
  const nvf_transforms *t = e->k->transforms;
  const int *order = nvf_order(e->k, e->s);
  e->reversed = t->reversed;
  e->pass = e->reversed ? t->passes.n - 1 : 0;
  for (int stage = 0; stage <= t->stages; stage++) {
    int first = e->pass, **tile = NVB_NEWN(e->a, int *, e->k->expr.n + 1);
    for (int i = 0; i < t->count && stage; i++) {
      if (t->stage[t->expr[i]] != stage) continue;
      e->pass = first;
      tile[t->expr[i]] = emit_transform(e, t->expr[i]);
    }
    e->tile = tile;
    e->reversed = (stage + t->reversed) % 2;
    for (int i = 0; i < e->k->expr.n; i++) {
      if (!(t->needed[order[i]] >> stage & 1)) continue;
      nvf_emit_iexpr(e, order[i]);
      if (stage == t->stages) nvf_emit_puts(e, order[i]);
    }
  }
  nvf_emit_puts(e, -1);
}
