/* Emits maps. Fast forms are inline; a sequence of maps with a rare flag forms a group, whose flags are ORed and tested
   once. The slow path is an out-of-line function that redoes the whole group in the full forms, so that the hot loop
   stays small; all copies of the loop share it. Short full forms work on vectors; long ones, which would take most of
   the compile time, are not optimised and redo flagged lanes alone. Decides groups, never what a fragment computes. */
#include "codegen/llvm/emit.h"
#include "codegen/map_group.h"
#include "frag/dtype.h"

typedef nvc_group_value slot;
struct nvcl_group {
  nvc_map_group of;
  const nvf_layout *l;
  int n, nitem;
  NVB_VEC(val *) made; /* by map: [result][item], results of the fast form */
  val *flag;           /* by item: rare flag, i1 in n lanes; NULL: never rare */
  int64_t bytes;
  int lone;   /* 1: the slow path goes lane by lane */
  slot flags; /* with `lone`: the flagged lanes */
};

enum { LONG = 64 }; /* highest cost of full forms that are compiled for vectors */

static int uses_open_group(nvcl_em *e, const nvf_stmt *s) {
  return e->group && nvc_group_is_used(&e->r, &e->group->of, s, NULL);
}

void nvcl_group_touch(nvcl_em *e, const nvf_stmt *s) {
  int stays = s->op == NVF_MAP && nvcl_side(e, s) == NVC_WHOLE, touched = uses_open_group(e, s);
  if (e->group && (touched ? !stays : nvc_assigns_mutable(&e->r, s))) nvcl_group_close(e);
}

static val argument_value(nvcl_em *e, const nvf_arg *a, const nvf_layout *l, int item, int n) {
  if (a->kind == NVF_ATILE) return nvcl_tile_at(e, a->id, l, item);
  if (a->kind == NVF_ASCALAR) return nvcl_splat(e, e->param[a->id], n);
  if (a->kind == NVF_ACONST) return nvcl_bits(e, a->type, a->bits, n);
  nvf_expr x = { .kind = NVF_AXIS, .id = a->id };
  nvcl_xv v = nvcl_index(e, &x, l, item);
  return nvcl_index_value(e, &v, n);
}

static nvcl_lanes lanes_of_index(nvcl_em *e, const nvf_expr *x, const nvf_layout *l, int item, int n) {
  nvcl_xv v = nvcl_index(e, x, l, item);
  int counts = v.form == 1 && (!v.base || v.divisor % n == 0) && (v.k + v.pat[0]) % n == 0;
  for (int i = 1; counts && i < n; i++) counts = v.pat[i] == v.pat[0] + i;
  return counts ? NVCL_CONSECUTIVE : v.form ? NVCL_ANY : NVCL_UNIFORM;
}
static nvcl_lanes argument_lanes(nvcl_em *e, const nvf_arg *a, const nvf_layout *l, int item, int n) {
  if (a->kind == NVF_ASCALAR || a->kind == NVF_ACONST) return NVCL_UNIFORM;
  nvf_expr axis = { .kind = NVF_AXIS, .id = a->id };
  if (a->kind != NVF_ATILE) return lanes_of_index(e, &axis, l, item, n);
  const nvf_stmt *def = e->r.tile[a->id].def;
  if (nvcl_layout_lanes(e, &e->t->tile[a->id]) == 1) return NVCL_UNIFORM;
  return def && def->op == NVF_INDEX ? lanes_of_index(e, def->map, l, item, n) : NVCL_ANY;
}

static val or_conditions(nvcl_em *e, val a, val b) { return a && b ? LLVMBuildOr(e->b, a, b, "") : a ? a : b; }

static nvcl_group *open_group(nvcl_em *e, const nvf_layout *l, int n, int nitem) {
  nvcl_group *g = NVB_NEW(e->a, nvcl_group);
  g->l = l;
  g->n = n;
  g->nitem = nitem;
  g->flag = NVB_NEWN(e->a, val, nitem);
  return g;
}

/* Defines a choice whose side is known. */
static void take_side(nvcl_em *e, const nvf_stmt *s, int side, int from, int to) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  for (int o = 0; o < s->nout; o++)
    for (int i = from; i < to; i++)
      nvcl_define(e, s->out[o], i,
                  argument_value(e, &s->arg[1 + (side - 1) * s->nout + o], l, i, nvcl_layout_lanes(e, l)));
}

void nvcl_emit_map(nvcl_em *e, const nvf_stmt *s, int from, int to) {
  if (nvcl_side(e, s)) {
    take_side(e, s, nvcl_side(e, s), from, to);
    return;
  }
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  int n = nvcl_layout_lanes(e, l), nitem = nvc_items(l), grouped = s->frag->rare >= 0 || uses_open_group(e, s),
      changes = 0;
  if (s->narg > NVC_ARGS || s->nout > NVC_ARGS)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] a map has more than %d operands or results", NVC_ARGS);
  if (grouped && e->group && !nvc_same_items(e->group->l, l)) nvcl_group_close(e);
  grouped = s->frag->rare >= 0 || uses_open_group(e, s);
  if (grouped && !e->group) e->group = open_group(e, l, n, nitem);
  val *out = NVB_NEWN(e->a, val, s->nout * nitem);
  for (int i = from; i < to; i++) {
    val arg[NVC_ARGS], res[NVC_ARGS];
    nvcl_lanes lanes[NVC_ARGS];
    for (int k = 0; k < s->narg; k++) {
      arg[k] = argument_value(e, &s->arg[k], l, i, n);
      lanes[k] = argument_lanes(e, &s->arg[k], l, i, n);
    }
    val flag = nvcl_frag_over(e, s->frag, arg, lanes, res, n);
    if (flag) e->group->flag[i] = or_conditions(e, e->group->flag[i], flag);
    for (int o = 0; o < s->nout; o++) out[o * nitem + i] = res[o];
  }
  for (int o = 0; o < s->nout; o++) {
    changes |= e->r.tile[s->out[o]].mutable;
    for (int i = from; i < to; i++) {
      if (!grouped) nvcl_define(e, s->out[o], i, out[o * nitem + i]);
      else if (!e->r.tile[s->out[o]].mutable) e->tile[s->out[o]].v[i] = out[o * nitem + i];
    }
  }
  if (!grouped) return;
  NVB_PUSH(e->a, e->group->of.map, (nvf_stmt *)s);
  NVB_PUSH(e->a, e->group->made, out);
  if (changes) nvcl_group_close(e);
}

/* ---- the slow path: a buffer of [slot][item][lane] is filled, redone and read back */
static void place_slot(nvcl_group *g, slot *s) {
  s->off = g->bytes;
  g->bytes += ((int64_t)g->n * g->nitem * nvg_size(s->type) + 63) & ~(int64_t)63;
}

static void find_slots(nvcl_em *e, nvcl_group *g) {
  int cost = 0;
  for (int i = 0; i < g->of.map.n; i++) cost += nvcl_frag_full(g->of.map.at[i]->frag)->cost;
  g->lone = cost > LONG || g->n == 1;
  g->flags = (slot){ NVF_ATILE, -1, NVM_BOOL, 0 };
  if (g->lone) place_slot(g, &g->flags);
  nvc_group_find_values(&e->r, &g->of);
  for (int i = 0; i < g->of.in.n; i++) place_slot(g, &g->of.in.at[i]);
  for (int i = 0; i < g->of.out.n; i++) place_slot(g, &g->of.out.at[i]);
}

static val slot_address(nvcl_em *e, const slot *s, val buffer, val at) {
  val p = nvcl_gep(e, buffer, s->off);
  return LLVMBuildInBoundsGEP2(e->b, nvcl_memtype(e, s->type), p, &at, 1, "");
}

static val read_slot(nvcl_em *e, const slot *s, val buffer, val at, int n) {
  val p = slot_address(e, s, buffer, at);
  return nvcl_from_memory(e, nvcl_load(e, nvcl_vec(nvcl_memtype(e, s->type), n), p, (unsigned)nvg_size(s->type)),
                          s->type, n);
}

static void write_slot(nvcl_em *e, const slot *s, val buffer, val at, int n, val v) {
  nvcl_store(e, nvcl_to_memory(e, v, s->type, n), slot_address(e, s, buffer, at), (unsigned)nvg_size(s->type));
}

static void redo_lanes(nvcl_em *e, nvcl_group *g, val buffer, val at, int n) {
  nvc_group_values known = { 0 };
  NVB_VEC(val) value = { 0 };
  for (int i = 0; i < g->of.in.n; i++) {
    val v = read_slot(e, &g->of.in.at[i], buffer, at, n);
    NVB_PUSH(e->a, known, g->of.in.at[i]);
    NVB_PUSH(e->a, value, v);
  }
  for (int i = 0; i < g->of.map.n; i++) {
    const nvf_stmt *s = g->of.map.at[i];
    val arg[NVC_ARGS], res[NVC_ARGS];
    for (int k = 0; k < s->narg; k++) {
      const nvf_arg *a = &s->arg[k];
      arg[k] =
          a->kind == NVF_ACONST ? nvcl_bits(e, a->type, a->bits, n) : value.at[nvc_group_find(&known, a->kind, a->id)];
    }
    nvcl_frag(e, nvcl_frag_full(s->frag), arg, res, n);
    for (int o = 0; o < s->nout; o++) {
      slot new = { NVF_ATILE, s->out[o], e->k->tile[s->out[o]].type, 0 };
      NVB_PUSH(e->a, known, new);
      NVB_PUSH(e->a, value, res[o]);
    }
  }
  for (int i = 0; i < g->of.out.n; i++)
    write_slot(e, &g->of.out.at[i], buffer, at, n, value.at[nvc_group_find(&known, NVF_ATILE, g->of.out.at[i].id)]);
}

static int is_slow_path_of(const nvcl_slow_path *c, const nvcl_group *g) {
  int is = c->map.n == g->of.map.n;
  for (int i = 0; i < g->of.map.n && is; i++) is = c->map.at[i] == g->of.map.at[i]->id;
  return is;
}

static val slow_function(nvcl_em *e, nvcl_group *g) {
  for (int i = 0; i < e->slow_paths.n; i++)
    if (is_slow_path_of(&e->slow_paths.at[i], g)) return e->slow_paths.at[i].fn;
  blk here = nvcl_here(e), entry = e->entry;
  val fn = e->fn, f = LLVMAddFunction(e->m, "nvm_cold", LLVMFunctionType(e->tvoid, &e->ptr, 1, 0));
  int lanes = g->lone ? 1 : e->target->width / 4 < g->n ? e->target->width / 4 : g->n;
  LLVMSetLinkage(f, LLVMInternalLinkage);
  nvcl_attr(e, f, "noinline", NULL);
  nvcl_attr(e, f, "cold", NULL);
  if (g->lone) nvcl_attr(e, f, "optnone", NULL);
  nvcl_attributes(e, f);
  e->fn = f;
  e->entry = nvcl_block(e, "entry");
  nvcl_at(e, e->entry);
  nvcl_for loop;
  nvcl_for_begin(e, &loop, nvcl_int(e, 0), nvcl_int(e, (int64_t)g->n * g->nitem), nvcl_int(e, lanes), "lane");
  blk next = g->lone ? nvcl_block(e, "next") : NULL;
  if (g->lone) {
    blk yes = nvcl_block(e, "flagged");
    LLVMBuildCondBr(e->b, read_slot(e, &g->flags, LLVMGetParam(f, 0), loop.i, 1), yes, next);
    nvcl_at(e, yes);
  }
  redo_lanes(e, g, LLVMGetParam(f, 0), loop.i, lanes);
  if (g->lone) {
    LLVMBuildBr(e->b, next);
    nvcl_at(e, next);
  }
  nvcl_for_end(e, &loop);
  LLVMBuildRetVoid(e->b);
  e->fn = fn;
  e->entry = entry;
  nvcl_at(e, here);
  nvcl_slow_path cold = { .fn = f };
  for (int i = 0; i < g->of.map.n; i++) NVB_PUSH(e->a, cold.map, g->of.map.at[i]->id);
  NVB_PUSH(e->a, e->slow_paths, cold);
  return f;
}

/* The flags of all items, without lanes that no effect uses. */
static val slow_flags(nvcl_em *e, nvcl_group *g) {
  val all = NULL;
  for (int i = 0; i < g->nitem; i++) {
    if (!g->flag[i]) continue;
    val live = e->active ? nvcl_mask_value(e, nvcl_relations(e, e->active, g->l, i), g->n) : NULL;
    all = or_conditions(e, all, live ? LLVMBuildAnd(e->b, g->flag[i], live, "") : g->flag[i]);
  }
  return all;
}

/* The results of the fast form, [item], for a tile that the group makes */
static const val *fast_results(const nvcl_group *g, int tile) {
  for (int m = 0; m < g->of.map.n; m++)
    for (int o = 0; o < g->of.map.at[m]->nout; o++)
      if (g->of.map.at[m]->out[o] == tile) return &g->made.at[m][o * g->nitem];
  return NULL;
}

/* Fills the buffer: inputs; if lanes are redone one by one, also flags and fast results. */
static void fill_buffer(nvcl_em *e, nvcl_group *g, val buffer) {
  for (int k = 0; k < g->nitem; k++) {
    val at = nvcl_int(e, (int64_t)k * g->n);
    for (int i = 0; i < g->of.in.n; i++) {
      nvf_arg a = { .kind = g->of.in.at[i].kind, .id = g->of.in.at[i].id };
      write_slot(e, &g->of.in.at[i], buffer, at, g->n, argument_value(e, &a, g->l, k, g->n));
    }
    if (!g->lone) continue;
    val none = LLVMConstNull(nvcl_vec(e->i1, g->n));
    write_slot(e, &g->flags, buffer, at, g->n, g->flag[k] ? g->flag[k] : none);
    for (int i = 0; i < g->of.out.n; i++)
      write_slot(e, &g->of.out.at[i], buffer, at, g->n, fast_results(g, g->of.out.at[i].id)[k]);
  }
}

/* Calls the slow path; PHIs select between its results and the fast ones. */
static void call_slow_path(nvcl_em *e, nvcl_group *g, val some) {
  val fn = slow_function(e, g), buffer = nvcl_slot(e, LLVMArrayType2(e->i8, (uint64_t)g->bytes), "cold");
  LLVMSetAlignment(buffer, 64);
  blk before = nvcl_here(e), cold = nvcl_block(e, "cold"), next = nvcl_block(e, "next");
  nvcl_unlikely(e, LLVMBuildFreeze(e->b, nvcl_any(e, some), ""), cold, next);
  nvcl_at(e, cold);
  fill_buffer(e, g, buffer);
  LLVMBuildCall2(e->b, LLVMGlobalGetValueType(fn), fn, &buffer, 1, "");
  val *redone = NVB_NEWN(e->a, val, g->of.out.n * g->nitem);
  for (int i = 0; i < g->of.out.n; i++)
    for (int k = 0; k < g->nitem; k++)
      redone[i * g->nitem + k] = read_slot(e, &g->of.out.at[i], buffer, nvcl_int(e, (int64_t)k * g->n), g->n);
  blk after = nvcl_here(e);
  LLVMBuildBr(e->b, next);
  nvcl_at(e, next);
  for (int m = 0; m < g->of.map.n; m++)
    for (int o = 0; o < g->of.map.at[m]->nout; o++) {
      int i = nvc_group_find(&g->of.out, NVF_ATILE, g->of.map.at[m]->out[o]);
      for (int k = 0; i >= 0 && k < g->nitem; k++) {
        val *fast = &g->made.at[m][o * g->nitem + k], p = LLVMBuildPhi(e->b, LLVMTypeOf(*fast), "");
        LLVMAddIncoming(p, (val[]){ *fast, redone[i * g->nitem + k] }, (blk[]){ before, after }, 2);
        *fast = p;
      }
    }
}

void nvcl_group_close(nvcl_em *e) {
  nvcl_group *g = e->group;
  if (!g) return;
  e->group = NULL;
  find_slots(e, g);
  val some = slow_flags(e, g);
  if (some && !(LLVMIsAConstant(some) && LLVMIsNull(some))) call_slow_path(e, g, some);
  for (int m = 0; m < g->of.map.n; m++)
    for (int o = 0; o < g->of.map.at[m]->nout; o++)
      for (int k = 0; k < g->nitem; k++) nvcl_define(e, g->of.map.at[m]->out[o], k, g->made.at[m][o * g->nitem + k]);
}
