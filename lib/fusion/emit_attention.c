/* Emits the kernel text of attention: a block puts a tile of queries into shared memory and walks the keys. In each
   step it contracts them with a tile of keys, computes the scores, subtracts the running maximum of the row, and
   contracts the exponentials with a tile of values. Where the maximum grows, the sums so far are multiplied by the
   exponential of the difference. Each region (queries, keys, values, scores, epilogue) has layouts of its own, as in a
   GEMM. */
#include <float.h>
#include <math.h>
#include "frag/dtype.h"
#include "fusion/emit.h"

typedef nvf_emitter emitter;
/* What the loop carries: sums of the result, sums of exponentials, maxima. */
enum { RESULT, SUMS, MAXIMA, CARRIED };
static const nvm_dtype PAIR[2] = { NVM_F32, NVM_F32 };

static uint64_t axis_bit(int axis) { return 1ull << axis; }
static nvf_arg tile_arg(int tile) { return (nvf_arg){ .kind = NVF_ATILE, .id = tile }; }
static uint64_t number(double x) { return nvg_float_bits(NVM_F32, x); }

/* On a GPU whose operands have 16 bits, the device's own instructions compute what is rounded to these. */
static void may_approximate(emitter *e, const nvf_stmt *s) {
  nvm_dtype t = e->s->operand;
  if (e->s->mma && nvg_is_narrow(t)) nvf_emit_hint(e, s, NVF_HINT_APPROX, t == NVM_BF16 ? 2 : 1);
}

/* A function of two tiles of f32, in a new tile (out -1) or in a given one. */
static int emit_two(emitter *e, const char *frag, int x, int y, int out, uint64_t axes) {
  const nvf_arg arg[2] = { tile_arg(x), tile_arg(y) };
  out = out >= 0 ? out : *nvf_emit_tiles(e, 1, NVM_F32, "t");
  nvf_stmt *s = nvf_emit_map(e, nvg_frag_find(frag, PAIR, 2), 1, &out, 2, nvb_dup(e->a, arg, sizeof arg), axes);
  may_approximate(e, s);
  return out;
}

static int emit_exp(emitter *e, int x, int y, uint64_t axes) { /* exp(x - y) */
  int d = emit_two(e, "subtract", x, y, -1, axes), *out = nvf_emit_tiles(e, 1, NVM_F32, "t");
  nvf_arg arg = tile_arg(d);
  may_approximate(e, nvf_emit_map(e, nvg_frag_find("exp", PAIR, 1), 1, out, 1, nvb_dup(e->a, &arg, sizeof arg), axes));
  return *out;
}

static int emit_constant(emitter *e, double x, uint64_t axes) {
  const nvf_arg arg = { .kind = NVF_ACONST, .type = NVM_F32, .bits = number(x) };
  return nvf_emit_mapped(e, nvg_frag_cast(NVM_F32, NVM_F32), NVM_F32, 1, &arg, axes);
}

static int emit_zeros(emitter *e, uint64_t axes) {
  int *out = nvf_emit_tiles(e, 1, NVM_F32, "sum");
  nvf_stmt *s = nvf_emit_stmt(e, NVF_ZEROS);
  nvf_set(e->kn, s, 1, out, 0, NULL);
  nvf_emit_layout(e, s, axes, NVF_OWN);
  return *out;
}

/* Reduces the keys of a tile, in the order that the schedule says. */
static int emit_row(emitter *e, const char *frag, double init, int tile) {
  int k = e->k->attention->k, *out = nvf_emit_tiles(e, 1, NVM_F32, "r");
  const nvf_placement *at = &e->s->at[k];
  int order = nvf_emit_red_order(e, (nvf_red_order){ (int)at->tile, (int)at->beside });
  uint64_t bits = number(init);
  nvf_stmt *s = nvf_emit_stmt(e, NVF_REDUCE);
  nvf_set(e->kn, s, 1, out, 1, &tile);
  s->frag = nvg_frag_find(frag, PAIR, 2);
  s->axis = e->axis[k];
  s->red_order = order;
  s->init = nvb_dup(e->a, &bits, sizeof bits);
  return *out;
}

/* Whether a tile of the axis has no padding. */
static int is_whole(emitter *e, int axis) { return !nvf_emit_bounds(e, NULL, axis_bit(axis), axis_bit(axis)); }

/* Where the loop ends: behind the last key, or behind the last one that a query of the block sees. Then it may end in a
   tile of padding, whose scores need masks. */
static const nvf_expr *end_of_keys(emitter *e) {
  const nvf_attention *t = e->k->attention;
  int64_t more, tile = e->s->at[t->m].tile, keys = e->k->axis.at[t->k].n;
  int64_t last = (e->k->axis.at[t->m].n + tile - 1) / tile * tile;
  if (!nvf_is_causal(e->k, &more) || (is_whole(e, t->k) && last + more > keys))
    return nvf_emit_size(e, e->k->axis.at[t->k].extent);
  const nvf_expr *size = nvf_x(e->kn, NVF_NAME, e->tile_size[t->m], 0), *at = nvf_x(e->kn, NVF_GRID, e->grid[t->m], 0);
  at = nvf_x2(e->kn, NVF_ADD, nvf_x2(e->kn, NVF_MUL, at, size), size);
  return more ? nvf_x2(e->kn, NVF_ADD, at, nvf_x(e->kn, NVF_CONST, 0, more)) : at;
}

static struct nvf_carry *open_loop(emitter *e) {
  const nvf_attention *t = e->k->attention;
  struct nvf_carry *carry = nvb_get(e->a, CARRIED * sizeof *carry);
  carry[RESULT].outer = emit_zeros(e, axis_bit(t->m) | axis_bit(t->n));
  carry[SUMS].outer = emit_zeros(e, axis_bit(t->m));
  carry[MAXIMA].outer = emit_constant(e, -FLT_MAX, axis_bit(t->m)); /* finite, so that exp(-inf - maximum) is 0 */
  for (int i = 0; i < CARRIED; i++) carry[i].inner = *nvf_emit_tiles(e, 1, NVM_F32, i == RESULT ? "acc" : "row");
  nvf_stmt *s = nvf_emit_stmt(e, NVF_FOR);
  s->var = e->var[t->k];
  s->lo = nvf_x(e->kn, NVF_CONST, 0, 0);
  s->hi = end_of_keys(e);
  s->step = nvf_x(e->kn, NVF_NAME, e->tile_size[t->k], 0);
  s->ncarry = CARRIED;
  s->carry = nvb_dup(e->a, carry, CARRIED * sizeof *carry);
  s->body = e->block = nvf_new_block(e->kn);
  nvf_emit_hint(e, s, NVF_HINT_STAGES, e->s->stages);
  return carry;
}

/* An operand as a shared tile; side: its axis that stays, axis: that which is contracted. */
static int emit_operand(emitter *e, const nvf_region *z, int which, int side, int axis, const char *name) {
  nvf_enter_region(e, z, which);
  int t = nvf_emit_operand(e, e->k->attention->of[which], 0, e->s->operand, axis, axis_bit(side) | axis_bit(axis),
                           is_whole(e, axis));
  return nvf_emit_shared(e, t, e->s->put, name);
}

/* The scores of a tile: -inf beyond the last key. */
static int emit_scores(emitter *e, const nvf_region *z, int queries, int keys) {
  const nvf_attention *t = e->k->attention;
  uint64_t axes = axis_bit(t->m) | axis_bit(t->k);
  nvf_enter_region(e, z, NVF_ATTENDED);
  int sum = emit_zeros(e, axes), *out = NVB_NEW(e->a, int);
  *out = nvf_emit_contract(e, sum, -1, queries, keys, t->depth);
  e->tile[t->first] = out;
  nvf_emit_prologue(e, z, t->regions, NVF_ATTENDED, t->k, 1);
  int scores = nvf_emit_tile(e, t->of[NVF_ATTENDED], 0);
  return is_whole(e, t->k) ? scores : nvf_emit_ended(e, scores, NVM_F32, t->k, number(-INFINITY), axes);
}

static void emit_copy(emitter *e, int from, int to, uint64_t axes) {
  const nvf_arg arg = tile_arg(from);
  nvf_emit_map(e, nvg_frag_cast(NVM_F32, NVM_F32), 1, &to, 1, nvb_dup(e->a, &arg, sizeof arg), axes);
}

/* One step: the exponentials of the scores, their sums, and their product with the values. */
static void emit_step(emitter *e, const nvf_region *z, const struct nvf_carry *carry, int scores, int values) {
  const nvf_attention *t = e->k->attention;
  uint64_t rows = axis_bit(t->m), axes = rows | axis_bit(t->k);
  int acc = carry[RESULT].inner, sums = carry[SUMS].inner, before = carry[MAXIMA].inner;
  int maxima = emit_two(e, "maximum", before, emit_row(e, "maximum", -INFINITY, scores), -1, rows);
  int less = emit_exp(e, before, maxima, rows), p = emit_exp(e, scores, maxima, axes);
  int more = emit_row(e, "add", -0.0, p);
  emit_two(e, "add", emit_two(e, "multiply", sums, less, -1, rows), more, sums, rows);
  const nvf_arg arg = tile_arg(p);
  nvm_dtype operand = e->s->operand;
  if (operand != NVM_F32) p = nvf_emit_mapped(e, nvg_frag_cast(NVM_F32, operand), operand, 1, &arg, axes);
  int shared = nvf_emit_shared(e, p, (const int[]){ t->m, t->k }, "Ps");
  nvf_enter_region(e, z, NVF_EPILOGUE);
  emit_two(e, "multiply", acc, less, acc, rows | axis_bit(t->n));
  nvf_emit_contract(e, acc, acc, shared, values, t->k);
  emit_copy(e, maxima, before, rows);
}

void nvf_emit_attention(emitter *e) {
  const nvf_attention *t = e->k->attention;
  nvf_block *outside = e->block;
  nvf_region z[NVF_REGIONS];
  nvf_open_regions(e, z, NVF_PARTS_OF_ATTENTION);
  for (int i = NVF_QUERIES; i < NVF_PARTS_OF_ATTENTION; i++) nvf_emit_prologue(e, z, t->regions, i, t->k, 0);
  int queries = emit_operand(e, z, NVF_QUERIES, t->m, t->depth, "Qs");
  nvf_enter_region(e, z, NVF_EPILOGUE);
  const struct nvf_carry *carry = open_loop(e);
  for (int i = NVF_KEYS; i <= NVF_VALUES; i++) nvf_emit_prologue(e, z, t->regions, i, t->k, 1);
  int keys = emit_operand(e, z, NVF_KEYS, t->k, t->depth, "Ks");
  int values = emit_operand(e, z, NVF_VALUES, t->n, t->k, "Vs");
  emit_step(e, z, carry, emit_scores(e, z, queries, keys), values);
  e->block = outside;
  int *out = NVB_NEW(e->a, int);
  nvf_enter_region(e, z, NVF_EPILOGUE);
  *out = emit_two(e, "divide", carry[RESULT].outer, carry[SUMS].outer, -1, axis_bit(t->m) | axis_bit(t->n));
  e->tile[t->second] = out;
  nvf_emit_epilogue(e, z, t->regions);
}
