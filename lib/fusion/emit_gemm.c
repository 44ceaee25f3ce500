/* Emits the kernel text of GEMMs: zeros; a loop over k-tiles that loads a tile of each operand, computes its prologue,
   puts it into shared memory and contracts it, once for all GEMMs that share the operand; then the epilogue, like any
   other kernel. Each region has its own tiles, layouts and shape, because operand tiles have layouts of their own. */
#include <stdio.h>
#include <string.h>
#include "frag/dtype.h"
#include "fusion/emit.h"

typedef nvf_emitter emitter;
typedef nvf_region region;
/* shared tiles of an operand: real part, imaginary part, negated imaginary part */
typedef struct packed { int n, tile[3]; } packed;

void nvf_enter_region(emitter *e, const region *z, int which) {
  e->tile = z[which].tile;
  e->layouts = z[which].layouts;
  e->s = z[which].s;
  e->region = which;
}

void nvf_open_regions(emitter *e, region *z, int n) {
  z[NVF_EPILOGUE] = (region){ e->tile, e->layouts, e->s, NULL };
  for (int i = NVF_EPILOGUE + 1; i < n; i++)
    z[i] = (region){ NVB_NEWN(e->a, int *, e->k->expr.n + 1), nvb_map_new(e->a), e->s->prologue[i], NULL };
  for (int i = 0; i < n; i++) z[i].order = nvf_order(e->k, z[i].s);
}

void nvf_emit_prologue(emitter *e, const region *z, const uint8_t *regions, int which, int axis, int moves) {
  nvf_enter_region(e, z, which);
  for (int i = 0; i < e->k->expr.n; i++) {
    int v = z[which].order[i];
    if ((regions[v] >> which & 1) && (int)(nvf_emit_iexpr_of(e, v)->axes >> axis & 1) == moves) nvf_emit_iexpr(e, v);
  }
}

/* Emits the prologues: all expressions without k, or (moves) all with k. */
static void emit_prologues(emitter *e, const region *z, int moves) {
  const nvf_dot *dot = e->k->dot;
  for (int i = NVF_EPILOGUE + 1; i < dot->nregion; i++) nvf_emit_prologue(e, z, dot->regions, i, dot->k, moves);
}

void nvf_emit_epilogue(emitter *e, const region *z, const uint8_t *regions) {
  nvf_enter_region(e, z, NVF_EPILOGUE);
  for (int i = 0; i < e->k->expr.n; i++) {
    int v = z[NVF_EPILOGUE].order[i];
    if (regions[v] >> NVF_EPILOGUE & 1) {
      nvf_emit_iexpr(e, v);
      nvf_emit_puts(e, v);
    }
  }
  nvf_emit_puts(e, -1);
}

/* ---- operands */
/* Whether the operand is 0 beyond the end of the axis, as loads are. */
static int ends_in_zeros(const emitter *e, int i, int axis) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  const char *f = v->kind == NVF_IMAP ? nvf_emit_node(e, v->node)->frag->name : "";
  if (!strcmp(f, "cast") || !strcmp(f, "negative")) return ends_in_zeros(e, v->arg[0], axis);
  return v->kind == NVF_ILOAD && (v->axes >> axis & 1);
}

int nvf_emit_mapped(emitter *e, const nvg_frag *f, nvm_dtype type, int n, const nvf_arg *arg, uint64_t axes) {
  int *out = nvf_emit_tiles(e, 1, type, "t");
  nvf_emit_map(e, f, 1, out, n, nvb_dup(e->a, arg, (size_t)n * sizeof *arg), axes);
  return *out;
}

int nvf_emit_ended(emitter *e, int tile, nvm_dtype type, int axis, uint64_t beyond, uint64_t axes) {
  int *p = nvf_emit_tiles(e, 1, NVM_BOOL, "p");
  const nvf_expr *end = nvf_emit_size(e, e->k->axis.at[axis].extent);
  const nvf_cond *where = nvf_and_rel(e->kn, NULL, NVF_LT, nvf_emit_coord(e, axis), end);
  nvf_stmt *s = nvf_emit_stmt(e, NVF_TEST);
  nvf_set(e->kn, s, 1, p, 0, NULL);
  s->where = where;
  nvf_emit_layout(e, s, 1ull << axis, NVF_OWN);
  nvf_arg arg[3] = { { .kind = NVF_ATILE, .id = *p },
                     { .kind = NVF_ATILE, .id = tile },
                     { .kind = NVF_ACONST, .type = type, .bits = beyond } };
  return nvf_emit_mapped(e, nvf_emit_choose(e, type), type, 3, arg, axes);
}

int nvf_emit_shared(emitter *e, int tile, const int *axis, const char *name) {
  int out = nvf_add_tile(e->kn, e->kn->tile[tile].type, name), *order = NVB_NEWN(e->a, int, 3), n = 0;
  e->kn->tile[out].shared = 1;
  if (e->split_k >= 0) order[n++] = e->split_k;
  for (int i = 0; i < 2; i++)
    if (axis[i] >= 0) order[n++] = e->axis[axis[i]];
  nvf_stmt *s = nvf_emit_stmt(e, NVF_PUT);
  nvf_set(e->kn, s, 1, &out, 1, &tile);
  s->norder = n;
  s->order = order;
  return out;
}

int nvf_emit_operand(emitter *e, int i, int part, nvm_dtype to, int axis, uint64_t axes, int whole) {
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  nvm_dtype type = nvg_real_of(nvf_emit_node(e, v->node)->dtype);
  int less = nvf_emit_is_scalar(e, i) || (axes & ~v->axes);
  int t = less ? nvf_emit_broadcast(e, i, part, axes) : nvf_emit_tile(e, i, part);
  if (type != to)
    t = nvf_emit_mapped(e, nvg_frag_cast(type, to), to, 1, &(nvf_arg){ .kind = NVF_ATILE, .id = t }, axes);
  return whole || ends_in_zeros(e, i, axis) ? t : nvf_emit_ended(e, t, to, axis, 0, axes);
}

static packed emit_packed(emitter *e, const region *z, int which) {
  static const char *const name[NVF_REGIONS] = { NULL, "As", "Bs", "Cs", "Ds" };
  const nvf_dot *dot = e->k->dot;
  int i = dot->of[which], side = nvf_side(dot, which), k = dot->k;
  uint64_t axes = 1ull << k | (side < 0 ? 0 : 1ull << side);
  const nvf_iexpr *v = nvf_emit_iexpr_of(e, i);
  nvm_dtype type = nvg_real_of(nvf_emit_node(e, v->node)->dtype), to = z[NVF_EPILOGUE].s->operand;
  to = nvg_is_f8(to) || (z[NVF_EPILOGUE].s->mma && type == NVM_I8) ? type : to;
  int whole = nvf_is_exact(e->k, k) && e->k->axis.at[k].n % z[NVF_EPILOGUE].s->at[k].tile == 0;
  int parts = nvf_emit_parts(e, i);
  packed out = { .n = parts };
  nvf_enter_region(e, z, which);
  for (int p = 0; p < parts; p++) {
    int t = nvf_emit_operand(e, i, p, to, k, axes, whole);
    out.tile[p] = nvf_emit_shared(e, t, e->s->put, name[which]);
    if (p == 1 && !dot->right[which]) {
      t = nvf_emit_mapped(e, nvg_frag_find("negative", &to, 1), to, 1, &(nvf_arg){ .kind = NVF_ATILE, .id = t }, axes);
      out.tile[out.n++] = nvf_emit_shared(e, t, e->s->put, name[which]);
    }
  }
  return out;
}

/* ---- the whole */
int nvf_emit_contract(emitter *e, int acc, int out, int a, int b, int axis) {
  out = out >= 0 ? out : *nvf_emit_tiles(e, 1, e->kn->tile[acc].type, "acc");
  nvf_stmt *s = nvf_emit_stmt(e, NVF_CONTRACT);
  nvf_set(e->kn, s, 1, &out, 3, (int[]){ acc, a, b });
  s->axis = e->axis[axis];
  nvf_emit_hint(e, s, NVF_HINT_MMA, e->s->mma);
  return out;
}

/* Emits zeros for each part of each GEMM, in their order. */
static struct nvf_carry *open_sums(emitter *e, int n, nvm_dtype type) {
  struct nvf_carry *carry = nvb_get(e->a, (size_t)n * sizeof *carry);
  for (int i = 0; i < n; i++) {
    carry[i].outer = *nvf_emit_tiles(e, 1, type, "sum");
    nvf_stmt *s = nvf_emit_stmt(e, NVF_ZEROS);
    nvf_set(e->kn, s, 1, &carry[i].outer, 0, NULL);
    nvf_emit_layout(e, s, nvf_emit_iexpr_of(e, *e->k->dot->expr)->axes, e->split_k >= 0 ? NVF_APART : NVF_OWN);
  }
  return carry;
}

static void open_loop(emitter *e, int parts, const struct nvf_carry *carry) {
  const nvf_dot *dot = e->k->dot;
  nvf_stmt *s = nvf_emit_stmt(e, NVF_FOR);
  s->var = e->var[dot->k];
  s->lo = nvf_x(e->kn, NVF_CONST, 0, 0);
  s->hi = nvf_emit_size(e, e->k->axis.at[dot->k].extent);
  s->step = nvf_x(e->kn, NVF_NAME, e->tile_size[dot->k], 0);
  if (e->split_k >= 0) s->step = nvf_x2(e->kn, NVF_MUL, nvf_x(e->kn, NVF_NAME, e->split_k_name, 0), s->step);
  s->ncarry = parts;
  s->carry = nvb_dup(e->a, carry, (size_t)parts * sizeof *carry);
  s->body = e->block = nvf_new_block(e->kn);
  nvf_emit_hint(e, s, NVF_HINT_STAGES, e->s->stages);
  nvf_emit_hint(e, s, NVF_HINT_WARP_SPECIALIZE, e->s->warp_specialize);
  nvf_emit_hint(e, s, NVF_HINT_STREAM_K, e->s->stream_k);
  nvf_emit_hint(e, s, NVF_HINT_KEEP_OPERAND, e->s->keep_operand);
}

static void contract_all(emitter *e, const packed *a, const packed *b, const struct nvf_carry *sum) {
  int re = sum[0].inner, k = e->k->dot->k;
  if (a->n == 1) {
    nvf_emit_contract(e, re, re, a->tile[0], b->tile[0], k);
    return;
  }
  int im = sum[1].inner;
  nvf_emit_contract(e, nvf_emit_contract(e, re, -1, a->tile[0], b->tile[0], k), re, a->tile[2], b->tile[1], k);
  nvf_emit_contract(e, nvf_emit_contract(e, im, -1, a->tile[0], b->tile[1], k), im, a->tile[1], b->tile[0], k);
}

/* ---- split-K: the blocks of a cluster take k-tiles in turn */
static void open_split_k(emitter *e) {
  char name[16];
  if (e->s->split_k < 2) return;
  snprintf(name, sizeof name, e->kn->npart > 1 ? "Ts%d" : "Ts", e->kn->npart);
  e->split_k = nvf_add_axis(e->kn, name + 1);
  e->split_k_name = nvf_add_name(e->kn, name);
  nvf_binding *b = nvf_bind_name(e->kn, e->sched, e->split_k_name);
  b->kind = NVF_BINT;
  b->value = e->s->split_k;
}

/* Adds the accumulators of all blocks in the order of the blocks; each block then has a part of the tile. */
static void add_up(emitter *e, int n, nvm_dtype type, int *sum) {
  int *partial = nvf_emit_tiles(e, n, type, "p"), *out = nvf_emit_tiles(e, n, type, "sum");
  nvf_stmt *s = nvf_emit_stmt(e, NVF_RELAYOUT);
  nvf_set(e->kn, s, n, partial, n, sum);
  nvf_emit_layout(e, s, nvf_emit_iexpr_of(e, *e->k->dot->expr)->axes, NVF_TOGETHER);
  for (int i = 0; i < n; i++) {
    s = nvf_emit_stmt(e, NVF_REDUCE);
    nvf_set(e->kn, s, 1, &out[i], 1, &partial[i]);
    s->frag = nvg_frag_find("add", (nvm_dtype[2]){ type, type }, 2);
    s->axis = e->split_k;
    s->red_order = nvf_emit_red_order(e, (nvf_red_order){ 1, 1 });
    uint64_t none = nvg_class_of(type) < NVG_FLOAT ? 0 : nvg_float_bits(type, -0.0);
    s->init = nvb_dup(e->a, &none, sizeof *s->init);
    sum[i] = out[i];
  }
}

void nvf_emit_gemm(emitter *e) {
  const nvf_dot *dot = e->k->dot;
  const nvf_node *n = nvf_emit_node(e, nvf_emit_iexpr_of(e, *dot->expr)->node);
  nvm_dtype sum = nvg_real_of(n->dtype);
  nvf_block *outside = e->block;
  int sums = n->parts * dot->count;
  packed operand[NVF_REGIONS];
  region z[NVF_REGIONS];
  open_split_k(e);
  nvf_open_regions(e, z, dot->nregion);
  struct nvf_carry *carry = open_sums(e, sums, sum);
  emit_prologues(e, z, 0);
  nvf_enter_region(e, z, NVF_EPILOGUE);
  for (int i = 0; i < sums; i++) carry[i].inner = *nvf_emit_tiles(e, 1, sum, "acc");
  open_loop(e, sums, carry);
  emit_prologues(e, z, 1);
  for (int i = NVF_EPILOGUE + 1; i < dot->nregion; i++) operand[i] = emit_packed(e, z, i);
  nvf_enter_region(e, z, NVF_EPILOGUE);
  for (int d = 0; d < dot->count; d++)
    contract_all(e, &operand[dot->region[d][0]], &operand[dot->region[d][1]], carry + d * n->parts);
  e->block = outside;
  int *all = NVB_NEWN(e->a, int, sums + 1);
  for (int i = 0; i < sums; i++) all[i] = carry[i].outer;
  if (e->split_k >= 0) add_up(e, sums, sum, all);
  for (int d = 0; d < dot->count; d++) e->tile[dot->expr[d]] = all + d * n->parts;
  nvf_emit_epilogue(e, z, dot->regions);
}
