/* Emits maps. Fast forms are inline; a sequence of maps with a rare flag forms a group, whose flags are ORed and tested
   once. The slow path is an out-of-line function that redoes the whole group in the full forms, so that the hot loop
   stays small; all copies of the loop share it. Short full forms work on vectors; long ones, which would take most of
   the compile time, are not optimised and redo flagged lanes alone. Decides groups, never what a fragment computes. */
#include "codegen/llvm/emit.h"
#include "frag/dtype.h"

typedef struct made {
  const nvf_stmt *s;
  val *out;
} made; /* out: [result][item], results of the fast form */
typedef struct slot {
  nvf_akind kind;
  int id;
  nvm_dtype type;
  int64_t off;
} slot;
struct nvcl_group {
  const nvf_layout *l;
  int n, nitem;
  NVB_VEC(made) map;
  val *flag;         /* by item: rare flag, i1 in n lanes; NULL: never rare */
  NVB_VEC(slot) in;  /* inputs */
  NVB_VEC(slot) out; /* results that are used outside the group; kind NVF_ATILE */
  int64_t bytes;
  int lone;   /* 1: the slow path goes lane by lane */
  slot flags; /* with `lone`: the flagged lanes */
};

enum { LONG = 64 }; /* highest cost of full forms that are compiled for vectors */

/* Does one of the first n maps define the tile? */
static int is_made_before(const nvcl_group *g, int tile, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < g->map.at[i].s->nout; j++)
      if (g->map.at[i].s->out[j] == tile) return 1;
  return 0;
}

static int uses_open_group(nvcl_em *e, const nvf_stmt *s) {
  nvc_ints uses = { 0 };
  if (!e->group) return 0;
  nvc_uses(&e->r, s, &uses);
  for (int i = 0; i < uses.n; i++)
    if (is_made_before(e->group, uses.at[i], e->group->map.n)) return 1;
  return 0;
}

static int assigns_mutable(const nvcl_em *e, const nvf_stmt *s) { /* does s assign to a mutable tile? */
  for (int i = 0; i < s->nout; i++)
    if (e->r.tile[s->out[i]].mutable) return 1;
  return 0;
}

void nvcl_group_touch(nvcl_em *e, const nvf_stmt *s) {
  int stays = s->op == NVF_MAP && nvcl_side(e, s) == NVC_WHOLE, touched = uses_open_group(e, s);
  if (e->group && (touched ? !stays : assigns_mutable(e, s))) nvcl_group_close(e);
}

static val argument_value(nvcl_em *e, const nvf_arg *a, const nvf_layout *l, int item, int n) {
  if (a->kind == NVF_ATILE) return nvcl_tile_at(e, a->id, l, item);
  if (a->kind == NVF_ASCALAR) return nvcl_splat(e, e->param[a->id], n);
  if (a->kind == NVF_ACONST) return nvcl_bits(e, a->type, a->bits, n);
  nvf_expr x = { .kind = NVF_AXIS, .id = a->id };
  nvcl_xv v = nvcl_index(e, &x, l, item);
  return nvcl_index_value(e, &v, n);
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
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] a map of more than %d operands or results", NVC_ARGS);
  if (grouped && e->group && !nvc_same_items(e->group->l, l)) nvcl_group_close(e);
  grouped = s->frag->rare >= 0 || uses_open_group(e, s);
  if (grouped && !e->group) e->group = open_group(e, l, n, nitem);
  val *out = NVB_NEWN(e->a, val, s->nout * nitem);
  for (int i = from; i < to; i++) {
    val arg[NVC_ARGS], res[NVC_ARGS];
    for (int k = 0; k < s->narg; k++) arg[k] = argument_value(e, &s->arg[k], l, i, n);
    val flag = nvcl_frag(e, s->frag, arg, res, n);
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
  made m = { s, out };
  NVB_PUSH(e->a, e->group->map, m);
  if (changes) nvcl_group_close(e);
}

/* ---- the slow path: a buffer of [slot][item][lane] is filled, redone and read back */
/* The last slot: a carried tile is both input and result. */
static int find_slot(const slot *at, int n, nvf_akind kind, int id) {
  while (n-- > 0 && (at[n].kind != kind || at[n].id != id)) {}
  return n;
}

static slot new_slot(nvcl_group *g, nvf_akind kind, int id, nvm_dtype type) {
  slot s = { kind, id, type, g->bytes };
  g->bytes += ((int64_t)g->n * g->nitem * nvg_size(type) + 63) & ~(int64_t)63;
  return s;
}

static int is_wanted(nvcl_em *e, const nvcl_group *g, int tile) {
  const nvc_ints *u = &e->r.tile[tile].users;
  if (e->r.tile[tile].mutable) return 1;
  for (int i = 0; i < u->n; i++) {
    int inside = 0;
    for (int k = 0; k < g->map.n; k++) inside |= g->map.at[k].s->id == u->at[i];
    if (!inside) return 1;
  }
  return 0;
}

static void find_slots(nvcl_em *e, nvcl_group *g) {
  int cost = 0;
  for (int i = 0; i < g->map.n; i++) cost += nvcl_frag_full(g->map.at[i].s->frag)->cost;
  g->lone = cost > LONG || g->n == 1;
  if (g->lone) g->flags = new_slot(g, NVF_ATILE, -1, NVM_BOOL);
  for (int i = 0; i < g->map.n; i++) {
    const nvf_stmt *s = g->map.at[i].s;
    for (int k = 0; k < s->narg; k++) {
      const nvf_arg *a = &s->arg[k];
      nvm_dtype type = a->kind == NVF_ATILE ? e->k->tile[a->id].type : a->kind == NVF_AAXIS ? NVM_I64 : a->type;
      if (a->kind == NVF_ASCALAR) type = e->k->param[a->id].type;
      if (a->kind == NVF_ACONST || (a->kind == NVF_ATILE && is_made_before(g, a->id, i)) ||
          find_slot(g->in.at, g->in.n, a->kind, a->id) >= 0)
        continue;
      slot n = new_slot(g, a->kind, a->id, type);
      NVB_PUSH(e->a, g->in, n);
    }
  }
  for (int i = 0; i < g->map.n; i++)
    for (int o = 0; o < g->map.at[i].s->nout; o++) {
      int tile = g->map.at[i].s->out[o];
      if (!is_wanted(e, g, tile)) continue;
      slot n = new_slot(g, NVF_ATILE, tile, e->k->tile[tile].type);
      NVB_PUSH(e->a, g->out, n);
    }
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
  NVB_VEC(slot) known = { 0 };
  NVB_VEC(val) value = { 0 };
  for (int i = 0; i < g->in.n; i++) {
    val v = read_slot(e, &g->in.at[i], buffer, at, n);
    NVB_PUSH(e->a, known, g->in.at[i]);
    NVB_PUSH(e->a, value, v);
  }
  for (int i = 0; i < g->map.n; i++) {
    const nvf_stmt *s = g->map.at[i].s;
    val arg[NVC_ARGS], res[NVC_ARGS];
    for (int k = 0; k < s->narg; k++) {
      const nvf_arg *a = &s->arg[k];
      arg[k] = a->kind == NVF_ACONST ? nvcl_bits(e, a->type, a->bits, n)
                                     : value.at[find_slot(known.at, known.n, a->kind, a->id)];
    }
    nvcl_frag(e, nvcl_frag_full(s->frag), arg, res, n);
    for (int o = 0; o < s->nout; o++) {
      slot made = { NVF_ATILE, s->out[o], e->k->tile[s->out[o]].type, 0 };
      NVB_PUSH(e->a, known, made);
      NVB_PUSH(e->a, value, res[o]);
    }
  }
  for (int i = 0; i < g->out.n; i++)
    write_slot(e, &g->out.at[i], buffer, at, n, value.at[find_slot(known.at, known.n, NVF_ATILE, g->out.at[i].id)]);
}

static int is_slow_path_of(const nvcl_slow_path *c, const nvcl_group *g) {
  int is = c->map.n == g->map.n;
  for (int i = 0; i < g->map.n && is; i++) is = c->map.at[i] == g->map.at[i].s->id;
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
  for (int i = 0; i < g->map.n; i++) NVB_PUSH(e->a, cold.map, g->map.at[i].s->id);
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

static const made *maker_of(const nvcl_group *g, int tile, int *which) {
  for (int m = 0; m < g->map.n; m++)
    for (int o = 0; o < g->map.at[m].s->nout; o++)
      if (g->map.at[m].s->out[o] == tile) {
        *which = o;
        return &g->map.at[m];
      }
  return NULL;
}

/* Fills the buffer: inputs; if lanes are redone one by one, also flags and fast results. */
static void fill_buffer(nvcl_em *e, nvcl_group *g, val buffer) {
  for (int k = 0; k < g->nitem; k++) {
    val at = nvcl_int(e, (int64_t)k * g->n);
    for (int i = 0; i < g->in.n; i++) {
      nvf_arg a = { .kind = g->in.at[i].kind, .id = g->in.at[i].id };
      write_slot(e, &g->in.at[i], buffer, at, g->n, argument_value(e, &a, g->l, k, g->n));
    }
    if (!g->lone) continue;
    val none = LLVMConstNull(nvcl_vec(e->i1, g->n));
    write_slot(e, &g->flags, buffer, at, g->n, g->flag[k] ? g->flag[k] : none);
    for (int i = 0; i < g->out.n; i++) {
      int o = 0;
      const made *m = maker_of(g, g->out.at[i].id, &o);
      write_slot(e, &g->out.at[i], buffer, at, g->n, m->out[o * g->nitem + k]);
    }
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
  val *redone = NVB_NEWN(e->a, val, g->out.n * g->nitem);
  for (int i = 0; i < g->out.n; i++)
    for (int k = 0; k < g->nitem; k++)
      redone[i * g->nitem + k] = read_slot(e, &g->out.at[i], buffer, nvcl_int(e, (int64_t)k * g->n), g->n);
  blk after = nvcl_here(e);
  LLVMBuildBr(e->b, next);
  nvcl_at(e, next);
  for (int m = 0; m < g->map.n; m++)
    for (int o = 0; o < g->map.at[m].s->nout; o++) {
      int i = find_slot(g->out.at, g->out.n, NVF_ATILE, g->map.at[m].s->out[o]);
      for (int k = 0; i >= 0 && k < g->nitem; k++) {
        val *fast = &g->map.at[m].out[o * g->nitem + k], p = LLVMBuildPhi(e->b, LLVMTypeOf(*fast), "");
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
  for (int m = 0; m < g->map.n; m++)
    for (int o = 0; o < g->map.at[m].s->nout; o++)
      for (int k = 0; k < g->nitem; k++) nvcl_define(e, g->map.at[m].s->out[o], k, g->map.at[m].out[o * g->nitem + k]);
}
