/* Emits maps. A sequence of maps with a rare flag forms a group: for a few items at a time the fast forms run, their
   flags are ORed, and one branch redoes these items in the full forms, in an out-of-line function. So the hot code has
   one branch per chunk, and few values are live across it. Both sides compute the same bits. Decides groups and chunks,
   never what a fragment computes. */
#include <string.h>
#include "codegen/cuda/tensor_core.h"
#include "codegen/map_group.h"
#include "frag/dtype.h"

enum { CHUNK = 4 }; /* items behind one branch */

struct nvcu_group {
  nvc_map_group of;
  const nvf_layout *l;
  const char *slow_path; /* name of the out-of-line function */
  uint8_t *same;         /* by input: 1: it is the same for all items of a chunk */
  uint8_t *asked; /* by map: 1: its result is tested for NaN, which shows that a quotient or root could not be done */
};

static int is_approximate(const nvcu_em *e, const nvf_stmt *s) { return (int)nvc_hint(&e->r, s, NVF_HINT_APPROX, 0); }
/* Is it one element per thread, computed from results of the kernel's reductions? */
static int of_results(const nvcu_em *e, const nvf_layout *l) {
  int reduces = 0, of = nvc_items(l) == 1 && !e->nloop && !e->nested;
  for (int i = 0; of && i < e->k->nstmt; i++) {
    const nvf_stmt *s = e->r.stmt[i];
    for (int d = 0; s && s->op == NVF_REDUCE && d < l->n; d++) of &= l->d[d].axis != s->axis;
    reduces |= s && s->op == NVF_REDUCE;
  }
  return of && reduces;
}

/* Does the map use its fast form? Not for few elements, and not in the baseline tier, whose code is short. */
static int has_slow_path(const nvcu_em *e, const nvf_stmt *s) {
  return nvcu_frag_has_slow_path(s->frag, is_approximate(e, s)) && !e->target->baseline &&
         !of_results(e, nvc_layout_of(&e->r, s));
}

/* Does s use a result of the open group, also through a cast that its store does itself? */
static int uses_open_group(nvcu_em *e, const nvf_stmt *s) {
  return e->group && nvc_group_is_used(&e->r, &e->group->of, s, e->done);
}

void nvcu_group_touch(nvcu_em *e, const nvf_stmt *s) {
  if (e->group &&
      ((s->op != NVF_MAP && uses_open_group(e, s)) || (nvc_assigns_mutable(&e->r, s) && !uses_open_group(e, s))))
    nvcu_group_close(e);
}

static const char *argument_text(nvcu_em *e, const nvf_arg *a, const nvf_layout *l, int item) {
  const nvf_param *p = a->kind == NVF_ASCALAR ? &e->k->param[a->id] : NULL;
  if (a->kind == NVF_ATILE) return nvcu_tile_at(e, a->id, l, item);
  if (a->kind == NVF_ACONST) return nvcu_const(e, a->type, a->bits);
  if (p && p->kind == NVF_SIZE) return nvcu_text(e, "(long long)p_%s", p->name);
  if (p) return nvcu_text(e, p->type == NVM_BOOL ? "(p_%s != 0)" : "p_%s", p->name);
  nvcu_xv x = nvcu_coordinate(e, a->id, l, item);
  return nvcu_text(e, "(long long)%s", nvcu_index_text(e, &x));
}

static void one_map(nvcu_em *e, const nvf_stmt *s, const nvf_layout *l, int item) {
  const char *arg[NVCU_ARGS], *out[NVCU_ARGS];
  for (int k = 0; k < s->narg; k++) arg[k] = argument_text(e, &s->arg[k], l, item);
  if (s->nout == 1) {
    nvcu_define(e, s->out[0], item, nvcu_frag_value(e, s->frag, arg, NULL, is_approximate(e, s)));
    return;
  }
  memset(out, 0, sizeof *out * (size_t)s->nout);
  nvcu_frag(e, s->frag, arg, out, NULL, is_approximate(e, s));
  for (int o = 0; o < s->nout; o++) nvcu_define(e, s->out[o], item, out[o]);
}

/* ---- elements that share work, as words of one counter do */
/* Numbers of elements: an index expression, and how many values in a row are known to begin with a multiple of their
   number. */
typedef struct numbers { const nvf_expr *x; nvf_expr axis; int64_t known; } numbers;
/* Those of a map whose fragment shares work between neighbours; x NULL: nothing is known of them. */
static void find_numbers(const nvcu_em *e, const nvf_stmt *s, numbers *of) {
  const nvf_arg *a = &s->arg[0];
  const nvf_stmt *def = a->kind == NVF_ATILE ? e->r.tile[a->id].def : NULL;
  *of = (numbers){ .axis = { .kind = NVF_AXIS, .id = a->id }, .known = 1 };
  if (a->kind == NVF_AAXIS) of->x = &of->axis;
  if (!def || def->op != NVF_INDEX || e->r.tile[a->id].mutable) return;
  of->x = def->map;
  of->known = nvc_hint(&e->r, def, NVF_HINT_CONSECUTIVE, 1);
}

static int begins_with_multiple(nvcu_em *e, const numbers *of, const nvf_layout *l, int item, int n) {
  if (of->known % n == 0) return 1;
  e->long_index = nvc_has(of->x, NVF_MUL);
  nvcu_xv v = nvcu_index(e, of->x, l, item);
  e->long_index = 0;
  return (!v.base || v.divisor % n == 0) && v.k % n == 0;
}

/* Do item and those that follow in steps, n in all, have the map's other operands in common? */
static int has_common_operands(nvcu_em *e, const nvf_stmt *s, const nvf_layout *l, int item, int step, int n) {
  int same = 1;
  for (int k = 1; k < n && same; k++) {
    same = nvcu_now(e, l, item + k * step);
    for (int a = 1; a < s->narg && same; a++)
      same = !strcmp(argument_text(e, &s->arg[a], l, item), argument_text(e, &s->arg[a], l, item + k * step));
  }
  return same;
}

/* The step between n items from this one on whose elements share work; 0: these do not. */
static int step_together(nvcu_em *e, const nvf_stmt *s, const numbers *of, const nvf_layout *l, int item, int n) {
  for (int d = 0; d < l->n; d++) {
    int64_t c;
    int along = l->d[d].level == 'i' && l->d[d].stride == 1 && l->d[d].extent % n == 0;
    if (!along || nvc_digit_value(l, d, item) % n || !nvc_coef(&e->r, of->x, l->d[d].axis, &c) || c != 1) continue;
    int step = nvc_item_step(l, d);
    return begins_with_multiple(e, of, l, item, n) && has_common_operands(e, s, l, item, step, n) ? step : 0;
  }
  return 0;
}

static void map_together(nvcu_em *e, const nvf_stmt *s, const nvf_layout *l, int item, int n, int step) {
  const char **arg = NVB_NEWN(e->a, const char *, n * s->narg), **out = NVB_NEWN(e->a, const char *, n);
  for (int k = 0; k < n; k++)
    for (int a = 0; a < s->narg; a++) arg[k * s->narg + a] = argument_text(e, &s->arg[a], l, item + k * step);
  nvcu_frag_at_once(e, s->frag, n, 1, arg, out, NULL);
  for (int k = 0; k < n; k++) nvcu_define(e, s->out[0], item + k * step, out[k]);
}

/* Emits the map over all items, those together that share work. */
static void emit_items(nvcu_em *e, const nvf_stmt *s, const nvf_layout *l) {
  int items = nvc_items(l), most = s->narg ? nvcu_frag_shared(s->frag) : 1;
  uint8_t *done = NVB_NEWN(e->a, uint8_t, items);
  numbers of = { 0 };
  if (most > 1) find_numbers(e, s, &of);
  for (int i = 0; i < items; i++) {
    int n = of.x ? most : 1, step = 0;
    if (done[i] || !nvcu_now(e, l, i)) continue;
    while (n > 1 && !(step = step_together(e, s, &of, l, i, n))) n /= 2;
    if (n > 1) map_together(e, s, l, i, n, step);
    else one_map(e, s, l, i);
    for (int k = 0; k < n; k++) done[i + k * step] = 1;
  }
}

void nvcu_emit_map(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  if (s->narg > NVCU_ARGS || s->nout > NVCU_ARGS)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a map has more than %d operands or results", NVCU_ARGS);
  if (e->group && (has_slow_path(e, s) || uses_open_group(e, s)) && !nvc_same_items(e->group->l, l))
    nvcu_group_close(e);
  int same = nvcu_f32_before_cast(e, s);
  if (same >= 0) {
    for (int i = 0; i < nvc_items(l); i++)
      if (nvcu_now(e, l, i)) nvcu_define(e, s->out[0], i, nvcu_tile_at(e, same, l, i));
    return;
  }
  if (!has_slow_path(e, s) && !uses_open_group(e, s)) {
    emit_items(e, s, l);
    return;
  }
  if (!e->group) {
    e->group = NVB_NEW(e->a, nvcu_group);
    e->group->l = l;
  }
  NVB_PUSH(e->a, e->group->of.map, (nvf_stmt *)s);
  if (nvc_assigns_mutable(&e->r, s)) nvcu_group_close(e);
}

/* Decides which results are tested for NaN, from the last map backwards: a NaN needs no test if a later map flags it,
   or if a later map passes it on and is tested itself. */
static void find_asked(nvcu_em *e, nvcu_group *g) {
  uint8_t *noticed = NVB_NEWN(e->a, uint8_t, g->of.map.n);
  g->asked = NVB_NEWN(e->a, uint8_t, g->of.map.n);
  for (int i = g->of.map.n; i-- > 0;) {
    const nvf_stmt *s = g->of.map.at[i];
    g->asked[i] = !noticed[i] && nvcu_frag_shows(s->frag, is_approximate(e, s));
    noticed[i] |= g->asked[i];
    for (int k = 0; k < s->narg; k++) {
      const nvf_stmt *m = s->arg[k].kind == NVF_ATILE ? nvc_group_maker(&g->of, s->arg[k].id, i) : NULL;
      int then = m && m->nout == 1 ? nvg_frag_of_nan(e->a, s->frag, k) : NVG_NAN_UNSEEN;
      if ((then == NVG_NAN_SLOW_PATH && has_slow_path(e, s)) || (then == NVG_NAN_KEPT && noticed[i]))
        for (int j = 0; j < i; j++) noticed[j] |= g->of.map.at[j] == m;
    }
  }
}

/* ---- the slow path: a function that takes n items through all maps in their full forms, in one loop, so that a chunk
   costs one call. It is emitted like the kernel's body, into the preamble. */
static const char *slow_argument(nvcu_em *e, const nvcu_group *g, const nvf_arg *a, const char *const *made) {
  if (a->kind == NVF_ACONST) return nvcu_const(e, a->type, a->bits);
  if (a->kind == NVF_ATILE && made[a->id]) return made[a->id];
  int i = nvc_group_find(&g->of.in, a->kind, a->id);
  return nvcu_text(e, g->same[i] ? "a%d" : "a%d[k]", i);
}

static void slow_item(nvcu_em *e, const nvcu_group *g) {
  const char **made = NVB_NEWN(e->a, const char *, e->k->ntile);
  for (int i = 0; i < g->of.map.n; i++) {
    const nvf_stmt *s = g->of.map.at[i];
    const char *arg[NVCU_ARGS], *out[NVCU_ARGS];
    for (int k = 0; k < s->narg; k++) arg[k] = slow_argument(e, g, &s->arg[k], made);
    memset(out, 0, sizeof *out * (size_t)s->nout);
    nvcu_frag(e, s->frag, arg, out, NULL, is_approximate(e, s));
    for (int o = 0; o < s->nout; o++) made[s->out[o]] = out[o];
  }
  for (int i = 0; i < g->of.out.n; i++) nvcu_line(e, "r%d[k] = %s;", i, made[g->of.out.at[i].id]);
}

static void slow_function(nvcu_em *e, const nvcu_group *g) {
  nvb_text kernel = e->out, t = { .arena = e->a };
  int depth = e->depth;
  e->out = (nvb_text){ .arena = e->a };
  e->depth = 1;
  nvcu_line(e, "#pragma unroll 1");
  nvcu_line(e, "for (int k = 0; k < n; k++) {");
  e->depth++;
  slow_item(e, g);
  e->depth--;
  nvcu_line(e, "}");
  for (int i = 0; i < g->of.in.n; i++)
    nvb_print(&t, g->same[i] ? "%s a%d, " : "const %s *a%d, ", nvcu_type(g->of.in.at[i].type), i);
  for (int i = 0; i < g->of.out.n; i++) nvb_print(&t, "%s *r%d, ", nvcu_type(g->of.out.at[i].type), i);
  nvb_print(&e->preamble, "static __device__ __noinline__ void %s(%sint n) {\n%s}\n", g->slow_path, nvb_text_get(&t),
            e->out.s);
  e->out = kernel;
  e->depth = depth;
}

/* ---- the fast path */
static const char *out_name(nvcu_em *e, const nvcu_group *g, int i, int item) {
  return nvcu_text(e, "%s_%s_%d", g->slow_path, e->k->tile[g->of.out.at[i].id].name, item);
}

/* Flags of items that no effect uses must not count: such items have a flag of their own, which is masked. Neighbouring
   items with the same mask share it. */
static const char *live_mask(nvcu_em *e, const nvf_layout *l, int item) {
  return nvcu_relations(e, e->nest->carries & ~e->known, l, item);
}

static const char *fast_argument(nvcu_em *e, const nvcu_group *g, int map, const nvf_arg *a, int item) {
  const nvf_stmt *m = a->kind == NVF_ATILE ? nvc_group_maker(&g->of, a->id, map) : NULL;
  int o = m ? nvc_group_find(&g->of.out, NVF_ATILE, a->id) : -1;
  return o >= 0 ? out_name(e, g, o, nvc_match_item(&e->t->tile[a->id], g->l, item)) : argument_text(e, a, g->l, item);
}

/* Map i of the group for items [lo, hi), each with its flag. */
static void fast_map(nvcu_em *e, const nvcu_group *g, int i, int lo, int hi, const char *const *flag) {
  const nvf_stmt *s = g->of.map.at[i];
  int n = hi - lo;
  const char **arg = NVB_NEWN(e->a, const char *, n * s->narg + 1), **out = NVB_NEWN(e->a, const char *, n * s->nout);
  for (int k = 0; k < n; k++) {
    for (int a = 0; a < s->narg; a++) arg[k * s->narg + a] = fast_argument(e, g, i, &s->arg[a], lo + k);
    for (int o = 0; o < s->nout; o++) {
      int at = nvc_group_find(&g->of.out, NVF_ATILE, s->out[o]);
      out[k * s->nout + o] = at >= 0 ? out_name(e, g, at, lo + k) : NULL;
    }
  }
  if (n > 1) nvcu_frag_at_once(e, s->frag, n, 0, arg, out, has_slow_path(e, s) ? flag : NULL);
  else nvcu_frag(e, s->frag, arg, out, has_slow_path(e, s) ? *flag : NULL, is_approximate(e, s));
  for (int k = 0; k < n; k++) {
    if (g->asked[i]) nvcu_line(e, "%s |= %s != %s;", flag[k], out[k * s->nout], out[k * s->nout]);
    for (int o = 0; o < s->nout; o++)
      if (nvc_group_find(&g->of.out, NVF_ATILE, s->out[o]) < 0) nvcu_bind(e, s->out[o], lo + k, out[k * s->nout + o]);
  }
}

/* Constants for which a map takes all items at once: machine code has one or two more instructions for each constant of
   a double that uses its lower half. */
static int shared_constants(nvcu_em *e, const nvf_stmt *s) {
  return is_approximate(e, s) ? 0 : nvcu_frag_long_constants(s->frag);
}

static const char *given_text(nvcu_em *e, const nvcu_group *g, int i, int item) {
  nvf_arg a = { .kind = g->of.in.at[i].kind, .id = g->of.in.at[i].id };
  return argument_text(e, &a, g->l, item);
}

/* Finds inputs that are the same for all items of a chunk, which are passed as one value. */
static void find_same(nvcu_em *e, nvcu_group *g, int n) {
  g->same = NVB_NEWN(e->a, uint8_t, g->of.in.n);
  for (int i = 0; i < g->of.in.n; i++) {
    int same = 1;
    for (int k = 0; k < n && same && g->of.in.at[i].kind != NVF_ASCALAR; k++)
      same = strcmp(given_text(e, g, i, k), given_text(e, g, i, k - k % CHUNK)) == 0;
    g->same[i] = (uint8_t)same;
  }
}

static void call_slow_path(nvcu_em *e, const nvcu_group *g, int lo, int n) {
  nvb_text t = { .arena = e->a };
  for (int i = 0; i < g->of.in.n; i++) {
    nvb_text a = { .arena = e->a };
    for (int k = 0; k < n; k++) nvb_print(&a, "%s%s", k ? ", " : "", given_text(e, g, i, lo + k));
    if (!g->same[i]) nvcu_line(e, "const %s a%d[] = {%s};", nvcu_type(g->of.in.at[i].type), i, a.s);
    if (g->same[i]) nvb_print(&t, "%s, ", given_text(e, g, i, lo));
    else nvb_print(&t, "a%d, ", i);
  }
  for (int i = 0; i < g->of.out.n; i++) {
    nvcu_line(e, "%s r%d[%d];", nvcu_type(g->of.out.at[i].type), i, n);
    nvb_print(&t, "r%d, ", i);
  }
  nvcu_line(e, "%s(%s%d);", g->slow_path, nvb_text_get(&t), n);
  for (int i = 0; i < g->of.out.n; i++)
    for (int k = 0; k < n; k++) nvcu_line(e, "%s = r%d[%d];", out_name(e, g, i, lo + k), i, k);
}

static int same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

/* How many items the group's maps take at once: several if that saves many constants and a thread has the registers. It
   slows what memory bounds: on an H200 log of float64 took 1.07 times as long, normal numbers 0.89. */
static int items_at_once(nvcu_em *e, const nvcu_group *g) {
  enum { MANY = 32, WARPS = 8 };
  int constants = 0;
  for (int i = 0; i < g->of.map.n; i++) constants += shared_constants(e, g->of.map.at[i]);
  return constants < MANY || e->warps > WARPS ? 1 : CHUNK;
}

/* The fast forms of items [lo, hi), each with its flag. */
static void fast_items(nvcu_em *e, const nvcu_group *g, int lo, int hi, const char *const *flag) {
  for (int each = items_at_once(e, g), to; lo < hi; flag += to - lo, lo = to) {
    to = lo + each < hi ? lo + each : hi;
    for (int i = 0; i < g->of.map.n; i++)
      if (shared_constants(e, g->of.map.at[i])) fast_map(e, g, i, lo, to, flag);
      else
        for (int k = lo; k < to; k++) fast_map(e, g, i, k, k + 1, flag + k - lo);
  }
}

static void emit_chunk(nvcu_em *e, nvcu_group *g, int lo, int hi) {
  const char *mask[CHUNK], *flag[CHUNK];
  for (int i = 0; i < g->of.out.n; i++)
    for (int k = lo; k < hi; k++) nvcu_line(e, "%s %s;", nvcu_type(g->of.out.at[i].type), out_name(e, g, i, k));
  nvcu_open(e, "%s", "");
  nvcu_line(e, "bool bad = false;");
  for (int k = 0; k < hi - lo; k++) {
    mask[k] = live_mask(e, g->l, lo + k);
    int same = k && same_text(mask[k], mask[k - 1]);
    flag[k] = same ? flag[k - 1] : mask[k] ? nvcu_fresh(e, "bad") : "bad";
    if (mask[k] && !same) nvcu_line(e, "bool %s = false;", flag[k]);
  }
  fast_items(e, g, lo, hi, flag);
  for (int k = 0; k < hi - lo; k++)
    if (mask[k] && (!k || flag[k] != flag[k - 1])) nvcu_line(e, "bad |= %s & %s;", flag[k], mask[k]);
  nvcu_open(e, "if (bad)");
  call_slow_path(e, g, lo, hi - lo);
  nvcu_close(e);
  nvcu_close(e);
}

void nvcu_group_close(nvcu_em *e) {
  nvcu_group *g = e->group;
  if (!g) return;
  int n = nvc_items(g->l);
  e->group = NULL;
  g->slow_path = nvcu_fresh(e, "slow");
  nvc_group_find_values(&e->r, &g->of);
  find_same(e, g, n);
  find_asked(e, g);
  slow_function(e, g);
  for (int lo = 0; lo < n; lo += CHUNK)
    if (nvcu_now(e, g->l, lo)) emit_chunk(e, g, lo, lo + CHUNK < n ? lo + CHUNK : n);
  for (int i = 0; i < g->of.out.n; i++)
    for (int k = 0; k < n; k++) {
      if (!nvcu_now(e, g->l, k)) continue;
      const char *name = out_name(e, g, i, k);
      if (e->r.tile[g->of.out.at[i].id].mutable) nvcu_define(e, g->of.out.at[i].id, k, name);
      else nvcu_bind(e, g->of.out.at[i].id, k, name);
    }
}
