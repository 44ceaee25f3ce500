/* Emits reductions along one innermost loop whose result is one of the elements (argmin, argmax, any, all): an
   iteration only tests whether one of its elements beats the best so far, which is rare; then the first one that equals
   the new best is where the first bit of a mask is set. The loop ends once nothing can change any more, unless later
   nests read elements that the iterations keep in scratch. Three fragments, named after the merge, say what this
   file has to know of it: keeps.<merge>, best.<merge>, ends.<merge>. It never decides which element wins. */
#include <stdio.h>
#include <string.h>
#include "codegen/llvm/emit.h"
#include "codegen/reduction.h"

struct nvcl_search {
  nvcl_red *red;
  const nvc_reduction *of;
  const nvg_frag *keeps, *best, *ends; /* ends NULL: no element is kept beside every other */
  const nvf_expr *position;            /* NULL: none is asked for */
  int64_t step;                        /* from the position of an element to that of the next one */
  nvm_dtype type;
  int n, whole;     /* n: lanes of the operand; whole: 1 if the loop executes every iteration */
  val value, place; /* stack slots: the best element, in all lanes; an i64, the position of the first that equals it */
  blk over;         /* behind all iterations, those with masks as well */
};

static const nvg_frag *make_helper(const char *what, const nvg_frag *merge, nvm_dtype t, int n) {
  char name[64];
  if (snprintf(name, sizeof name, "%s.%s", what, merge->name) >= (int)sizeof name) return NULL;
  return nvg_frag_find(name, (nvm_dtype[]){ t, t }, n);
}

/* Is it the library's merge of that name? A kernel text may define another one. */
static int is_known(const nvg_frag *merge, const nvm_dtype *state, int n) {
  nvm_dtype type[4];
  for (int i = 0; i < 2 * n; i++) type[i] = state[i % n];
  return merge->nparam == 2 * n && nvg_frag_find(merge->name, type, 2 * n) == merge;
}

/* The positions of a tile that ascend along the axis, so that the first of equal elements is in the first
   iteration; NULL: the tile has others. */
static const nvf_expr *ascending_positions(nvcl_em *e, int tile, int axis) {
  int64_t step;
  const nvf_stmt *s = e->r.tile[tile].def;
  while (s->op == NVF_MAP && s->narg == 1 && s->arg[0].kind == NVF_ATILE && !strcmp(s->frag->name, "cast"))
    s = e->r.tile[s->arg[0].id].def;
  int is = s->op == NVF_INDEX && !nvc_has(s->map, NVF_TILE) && nvc_coef(&e->r, s->map, axis, &step) && step > 0;
  return is ? s->map : NULL;
}

/* Does a condition end rows, and nothing else? Then lanes without an element are behind all that have one. */
static int only_ends_rows(nvcl_em *e, const nvf_cond *c, int axis) {
  int64_t a, b;
  for (int i = 0; c && i < c->nrel; i++) {
    const struct nvf_rel *r = &c->rel[i];
    if (!nvc_coef(&e->r, r->a, axis, &a) || !nvc_coef(&e->r, r->b, axis, &b)) return 0;
    if (b || a < 0 || (a && r->cmp != NVF_LT && r->cmp != NVF_LE)) return 0;
  }
  return !c || !c->ntile;
}

/* May one iteration of the nest's statements be executed again? */
static int is_pure(nvcl_em *e, const nvc_nest *r) {
  int folds = 0;
  for (int i = 0; i < r->s.n; i++) {
    const nvf_stmt *s = r->s.at[i];
    int fold = s->op == NVF_REDUCE;
    folds += fold;
    if (!fold && !nvf_stmt_is(s, NVF_ELEMENTWISE)) return 0;
    for (int o = 0; o < s->nout && !fold; o++)
      if (e->r.tile[s->out[o]].mutable) return 0;
  }
  return folds == 1;
}

/* Do later nests read elements from scratch that the iterations compute? Then none of them may be left out. */
static int keeps_elements(nvcl_em *e, const nvc_nest *r) {
  for (int i = 0; i < r->s.n; i++)
    for (int o = 0; o < r->s.at[i]->nout && r->s.at[i]->op != NVF_REDUCE; o++)
      if (e->r.tile[r->s.at[i]->out[o]].kept) return 1;
  return 0;
}

/* Are all lanes and items along the axis in the innermost loop, with iterations in sequence, and are there enough of
   them? */
static int is_one_row(nvcl_em *e, const nvc_reduction *of, int lanes) {
  enum { MANY = 512 };
  const nvf_digit *d = &of->nest->loop[of->nest->nloop - 1];
  return of->start == of->nest->nloop - 1 && d->axis == of->s->axis && of->chunks == 1 && !of->spread && of->ny == 1 &&
         e->tile[of->s->out[0]].lanes == 1 && nvc_role_of(of, d) == NVC_SEQUENCE && lanes > 1 && of->extent >= MANY;
}

/* Do items and lanes of the layout number consecutive elements of the axis? */
static int is_in_order(const nvf_layout *l, int axis, int lanes) {
  for (int i = 0; i < l->n; i++)
    if (l->d[i].level == 'l' && l->d[i].extent > 1 && l->d[i].stride != l->d[i].pstride) return 0;
  for (int i = 0; i < nvc_items(l); i++)
    if (nvc_axis_part(l, axis, i) != (int64_t)i * lanes) return 0;
  return 1;
}

const nvcl_ordered *nvcl_ordered_new(nvcl_em *e, const nvc_reduction *of) {
  const nvg_frag *merge = of->s->frag;
  nvm_dtype state[2];
  if (of->nstate != 2 || of->chunks > 1 || of->spread || !only_ends_rows(e, of->s->where, of->s->axis)) return NULL;
  for (int i = 0; i < 2; i++) state[i] = e->k->tile[of->s->out[i]].type;
  const nvf_expr *position = ascending_positions(e, of->s->in[1], of->s->axis);
  const nvg_frag *keeps = is_known(merge, state, 2) ? make_helper("keeps", merge, state[0], 2) : NULL;
  if (!position || !keeps) return NULL;
  nvcl_ordered *o = NVB_NEW(e->a, nvcl_ordered);
  *o = (nvcl_ordered){ keeps, make_helper("ends", merge, state[0], 1), position };
  return o;
}

val nvcl_ordered_keeps(nvcl_em *e, const nvcl_ordered *o, val best, val x, int n) {
  val keeps, ends;
  nvcl_frag(e, o->keeps, (val[]){ best, x }, &keeps, n);
  if (!o->ends) return keeps;
  nvcl_frag(e, o->ends, &best, &ends, n);
  return LLVMBuildOr(e->b, keeps, ends, "");
}

nvcl_search *nvcl_search_new(nvcl_em *e, const nvc_nest *r) {
  if (e->red.n != 1 || !r->nloop || e->split || !is_pure(e, r)) return NULL;
  const nvc_reduction *of = nvcl_reduction(e->red.at[0]);
  const nvg_frag *merge = of->s->frag;
  nvm_dtype state[2];
  for (int i = 0; i < of->nstate && i < 2; i++) state[i] = e->k->tile[of->s->out[i]].type;
  int n = nvcl_layout_lanes(e, of->x), has_position = of->nstate == 2;
  if (of->nstate > 2 || !is_one_row(e, of, n) || !is_known(merge, state, of->nstate)) return NULL;
  const nvf_expr *position = has_position ? ascending_positions(e, of->s->in[1], of->s->axis) : NULL;
  if (has_position && !(position && only_ends_rows(e, of->s->where, of->s->axis) && is_in_order(of->x, of->s->axis, n)))
    return NULL;
  nvcl_search *s = NVB_NEW(e->a, nvcl_search);
  *s = (nvcl_search){ .red = e->red.at[0],
                      .of = of,
                      .keeps = make_helper("keeps", merge, state[0], 2),
                      .best = make_helper("best", merge, state[0], 2),
                      .ends = make_helper("ends", merge, state[0], 1),
                      .position = position,
                      .type = state[0],
                      .n = n };
  s->whole = !s->ends || keeps_elements(e, r);
  if (position) nvc_coef(&e->r, position, of->s->axis, &s->step);
  if (!s->keeps || !s->best) return NULL;
  s->value = nvcl_slot(e, nvcl_vec(nvcl_type(e, s->type), n), "best");
  LLVMSetAlignment(s->value, 64);
  s->place = nvcl_slot(e, e->i64, "place");
  return s;
}

void nvcl_search_begin(nvcl_em *e, nvcl_search *s) {
  nvcl_store(e, nvcl_bits(e, s->type, s->of->s->init[0], s->n), s->value, 16);
  s->over = nvcl_block(e, "search.over");
  nvcl_store(e, s->position ? nvcl_uniform(e, s->position) : nvcl_int(e, 0), s->place, 8);
}

static val apply_frag(nvcl_em *e, const nvg_frag *f, val a, val b, int n) {
  val out, arg[2] = { a, b };
  nvcl_frag(e, f, arg, &out, n);
  return out;
}

/* The best element of an iteration, in all lanes. */
static val best_of(nvcl_em *e, const nvcl_search *s, val *x, int items) {
  int lane[NVC_LANES];
  for (int by = 1; by < items; by *= 2)
    for (int i = 0; i + by < items; i += 2 * by) x[i] = apply_frag(e, s->best, x[i], x[i + by], s->n);
  for (int by = s->n / 2; by > 0; by /= 2) {
    for (int i = 0; i < s->n; i++) lane[i] = i ^ by;
    x[0] = apply_frag(e, s->best, x[0], nvcl_shuffle(e, x[0], NULL, lane, s->n), s->n);
  }
  return x[0];
}

static val first_lane(nvcl_em *e, val v) { return LLVMBuildExtractElement(e->b, v, nvcl_i32(e, 0), ""); }

/* The position of the first element of an iteration that equals its best one, which beats all before it. Masked
   elements do not, or are behind one that does. */
static val place_of(nvcl_em *e, const nvcl_search *s, val *x, int items, val best) {
  typ bits = LLVMIntTypeInContext(e->c, (unsigned)(items * s->n));
  val word = NULL, over;
  for (int i = 0; i < items; i++) {
    val is = apply_frag(e, s->keeps, x[i], best, s->n);
    if (s->ends) { /* a NaN is kept by none */
      nvcl_frag(e, s->ends, &x[i], &over, s->n);
      is = LLVMBuildOr(e->b, is, over, "");
    }
    is = LLVMBuildBitCast(e->b, is, LLVMIntTypeInContext(e->c, (unsigned)s->n), "");
    is = LLVMBuildZExtOrBitCast(e->b, is, bits, "");
    is = LLVMBuildShl(e->b, is, LLVMConstInt(bits, (unsigned)(i * s->n), 0), "");
    word = word ? LLVMBuildOr(e->b, word, is, "") : is;
  }
  nvcl_xv first = nvcl_index(e, s->position, s->of->x, 0);
  val at = nvcl_call(e, "llvm.cttz", &bits, 1, (val[]){ word, LLVMConstInt(e->i1, 0, 0) }, 2);
  at = LLVMBuildNSWMul(e->b, LLVMBuildIntCast2(e->b, at, e->i64, 0, ""), nvcl_int(e, s->step), "");
  return LLVMBuildNSWAdd(e->b, first_lane(e, nvcl_index_value(e, &first, s->n)), at, "");
}

/* Replaces the best element if it is beaten; a NaN, which `keeps` rejects even against itself, stays. */
static void take_best(nvcl_em *e, const nvcl_search *s, val old, val now, val place) {
  val a = first_lane(e, old), b = first_lane(e, now), was = nvcl_load(e, e->i64, s->place, 8);
  val beaten = LLVMBuildAnd(e->b, apply_frag(e, s->keeps, a, a, 1),
                            LLVMBuildNot(e->b, apply_frag(e, s->keeps, a, b, 1), ""), "");
  nvcl_store(e, LLVMBuildSelect(e->b, beaten, now, old, ""), s->value, 16);
  nvcl_store(e, LLVMBuildSelect(e->b, beaten, place, was, ""), s->place, 8);
}

void nvcl_search_step(nvcl_em *e, nvcl_search *s) {
  int items = nvc_items(s->of->x);
  val *x = NVB_NEWN(e->a, val, 2 * items), all = NULL;
  val old = nvcl_load(e, nvcl_vec(nvcl_type(e, s->type), s->n), s->value, 16);
  for (int i = 0; i < items; i++) {
    x[i] = x[items + i] = nvcl_reduce_operand(e, s->red, 0, i);
    val keeps = apply_frag(e, s->keeps, old, x[i], s->n);
    all = all ? LLVMBuildAnd(e->b, all, keeps, "") : keeps;
  }
  blk found = nvcl_block(e, "found"), next = nvcl_block(e, "beaten.by.none");
  nvcl_unlikely(e, nvcl_any(e, LLVMBuildNot(e->b, all, "")), found, next);
  nvcl_at(e, found);
  val best = best_of(e, s, x, items);
  take_best(e, s, old, best, s->position ? place_of(e, s, &x[items], items, best) : nvcl_int(e, 0));
  if (s->whole) {
    LLVMBuildBr(e->b, next);
  } else {
    val now = nvcl_load(e, LLVMTypeOf(old), s->value, 16), one = first_lane(e, now), over;
    nvcl_frag(e, s->ends, &one, &over, 1);
    LLVMBuildCondBr(e->b, over, s->over, next);
  }
  nvcl_at(e, next);
}

void nvcl_search_end(nvcl_em *e, nvcl_search *s) {
  LLVMBuildBr(e->b, s->over);
  nvcl_at(e, s->over);
  nvcl_reduce_give(e, s->red, 0, nvcl_load(e, nvcl_vec(nvcl_type(e, s->type), s->n), s->value, 16));
  if (!s->position) return;
  val place = nvcl_load(e, e->i64, s->place, 8);
  place = LLVMBuildIntCast2(e->b, place, nvcl_type(e, e->k->tile[s->of->s->out[1]].type), 1, "");
  nvcl_reduce_give(e, s->red, 1, nvcl_splat(e, place, s->n));
}
