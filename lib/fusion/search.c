/* The search decides which values are stored and which share a kernel. It starts with one kernel for each value that
   may be stored (materialize.c) and takes greedy moves by price: recompute a stored value in its readers, or merge two
   kernels with all that lies between them. It never changes the graph. */
#include "fusion/planner.h"
#include <math.h>
#include <string.h>

/* CROWD: groups from which siblings are merged before pairs are tried; MANY, FEW: neighbours, in the first window, and
   in later ones, which have less time. PARTED: independent kernels share a launch as parts of one grid if one of them
   takes less than this many launches (on a CPU always, since parts take no registers or cores from each other). WINDOW:
   groups that are searched together; a longer list moves through the window in order. MOST_VISITS: expressions that may
   be built for the first window of each of the FIRST structures of sections (some 20 ms), LATER: for each further one;
   after that the best partition so far stands. */
enum { CROWD = 12, FEW = 6, MANY = 20, FIRST = 4, PARTED = 5, WINDOW = 32, MOST_VISITS = 40000, LATER = 4000 };
typedef struct group { int n, *root; nvf_fusion *k; int id; } group; /* id: unique; a changed group gets a new one */
/* Groups in topological order. needs: bit set of the groups of the window that a group depends on, directly or not. */
typedef struct window { int n; group g[WINDOW]; uint64_t needs[WINDOW]; } window;
/* The groups in which the search of a section ended: for each the number of its roots and these, as numbers among the
   roots with which the search began. */
typedef struct settlement { int n, *size, *root; } settlement;
/* What the search knows of a fusion: that of another one of the same structure, whose price it has; its own outline,
   that is roots, what it reads and price; all of it. Most fusions are tried and dropped, so they are built in memory
   that the next one takes again, and those that a plan is made of are built once more. */
typedef enum fusion_form { LENT = 1, OUTLINE, WHOLE } fusion_form;
typedef struct search {
  nvf_graph *graph;
  nvb_arena *a;
  int ids;
  int64_t most; /* limit of graph->built */
  double time;
  uint64_t *stored;
  int *readers;     /* by node: number of groups that load it */
  int *maker;       /* by node: 0, but in find_needs: 1 + the group of the window that stores it */
  int *inside;      /* by node: 0, but while the groups of a merge are looked at: number of them that load it */
  int *section;     /* by node: sections.c */
  nvb_map *settled; /* structure of a section -> its settlement */
  NVB_VEC(settlement) settlement;
  nvb_map *known;  /* roots and the stored values that they read -> fusion */
  nvb_map *priced; /* structure -> the fusion of it that was built */
  NVB_VEC(int) key;
  NVB_VEC(nvf_fusion *) fusion;
  NVB_VEC(const char *) why;
  NVB_VEC(uint8_t) form; /* by fusion: what there is of it (fusion_form) */
  nvb_arena *trial;      /* where fusions are built of which an outline is kept */
  const char *last;      /* why the last fusion was rejected, or why no library supports it */
  const nvf_rejections *no;
  nvb_map *moves; /* ids of the groups of a move -> its gain in ns */
  NVB_VEC(double) gain;
} search;
#define CANNOT (-INFINITY)

static const nvf_node *node_of(const search *s, int i) { return &s->graph->node[i]; }

/* ---- vetoed kernels */
int nvf_mark_of(const nvf_node *n) {
  return n->value * 256 + (n->kind == NVG_VPICK ? (int)n->attr[0] * 4 : 0) + (n->block ? 1 : n->finish ? 2 : 0);
}

static int is_among(int mark, int n, const int *marks) {
  for (int i = 0; i < n; i++)
    if (marks[i] == mark) return 1;
  return 0;
}

/* A kernel is rejected if it makes all roots of a vetoed kernel and loads no value of other kernels that the vetoed one
   did not load. */
static const char *rejection_of(search *s, const nvf_fusion *k) {
  int *made = NVB_NEWN(s->a, int, k->nroot + 1);
  for (int i = 0; i < k->nroot; i++) made[i] = nvf_mark_of(node_of(s, k->root[i]));
  for (int r = 0; r < s->no->n; r++) {
    const nvf_rejection *no = &s->no->at[r];
    int same = 1;
    for (int i = 0; i < no->nmade; i++) same &= is_among(no->made[i], k->nroot, made);
    for (int i = 0; i < k->nread && same; i++)
      if (node_of(s, k->read[i])->kind != NVG_VLEAF)
        same = is_among(nvf_mark_of(node_of(s, k->read[i])), no->nread, no->read);
    if (same) return no->why;
  }
  return NULL;
}

/* ---- fusions, by their roots and the stored values that they read */
static const char crowded[] = "more buffers than a kernel may have";
/* Writes the key of a fusion: its roots, ascending, and the stored values that they read. Returns the number of
   leaves that it reads. */
static int write_key(search *s, int n, const int *root) {
  nvf_walk *w = &s->graph->walk;
  int leaves = 0;
  s->key.n = 0;
  NVB_PUSH(s->a, s->key, n);
  for (int i = 0; i < n; i++) {
    NVB_PUSH(s->a, s->key, root[i]);
    for (int j = i + 1; j > 1 && s->key.at[j] < s->key.at[j - 1]; j--) {
      int swap = s->key.at[j];
      s->key.at[j] = s->key.at[j - 1];
      s->key.at[j - 1] = swap;
    }
  }
  nvf_walk_start(w);
  for (int i = 0; i < n; i++) nvf_walk_to(w, s->key.at[1 + i]);
  for (int i; (i = nvf_walk_next(w)) >= 0;) {
    leaves += node_of(s, i)->kind == NVG_VLEAF && node_of(s, i)->size > 1;
    for (int j = 0; j < node_of(s, i)->nin; j++) {
      int x = node_of(s, i)->in[j];
      if (!nvf_has(s->stored, x)) nvf_walk_to(w, x);
      else if (nvf_walk_pass(w, x)) NVB_PUSH(s->a, s->key, x);
    }
  }
  return leaves;
}

/* Whether the fusion whose key has been written has too many buffers; this is known before it is built. */
static int is_crowded(const search *s, int leaves) { return s->key.n - 1 + leaves > s->graph->caps->max_buffers; }

/* Builds fusion `at` of n roots, whose key has been written. */
static void build_fusion(search *s, int at, int n, int leaves) {
  const char *why = crowded;
  nvf_fusion *k = is_crowded(s, leaves) ? NULL : nvf_fusion_new(s->graph, s->key.at + 1, n, s->stored, &why);
  if (k && nvf_pointers(k) > s->graph->caps->max_buffers) k = NULL;
  if (k && ((why = nvf_why_rejected(k)) || (s->no->n && (why = rejection_of(s, k))))) k = NULL;
  s->fusion.at[at] = k;
  s->why.at[at] = k ? k->unsupported : why;
  s->form.at[at] = WHOLE;
}

/* What the search looks at, in its own memory. */
static nvf_fusion *outline_of(const search *s, const nvf_fusion *k) {
  nvf_fusion *o = NVB_NEW(s->a, nvf_fusion);
  *o = (nvf_fusion){ .graph = k->graph,
                     .nroot = k->nroot,
                     .root = nvb_dup(s->a, k->root, (size_t)k->nroot * sizeof *k->root),
                     .put.n = k->put.n,
                     .dot = k->dot ? nvb_dup(s->a, k->dot, sizeof *k->dot) : NULL,
                     .attention = k->attention,
                     .routine = k->routine,
                     .time = k->time,
                     .unsupported = k->unsupported ? nvb_strdup(s->a, k->unsupported) : NULL,
                     .nread = k->nread,
                     .read = nvb_dup(s->a, k->read, (size_t)(k->nread + 1) * sizeof *k->read) };
  return o;
}

/* Between these, what is made for the graph is made in memory that the next trial takes again. */
static void begin_trial(const search *s) { s->graph->arena = s->trial; }
static void end_trial(const search *s) {
  s->graph->arena = s->a;
  nvb_arena_clear(s->trial);
}

static void build_outline(search *s, int at, int n, int leaves) {
  begin_trial(s);
  build_fusion(s, at, n, leaves);
  if (s->fusion.at[at]) {
    s->fusion.at[at] = outline_of(s, s->fusion.at[at]);
    s->why.at[at] = s->fusion.at[at]->unsupported;
    s->form.at[at] = OUTLINE;
  }
  end_trial(s);
}

static nvb_hash hash_structure(const search *s, int n, const int *root, int coarse) {
  begin_trial(s);
  nvb_hash h = nvf_structure_of(s->graph, n, root, s->stored, coarse);
  end_trial(s);
  return h;
}

/* Gives fusion `at` the price of one of the same structure; returns 0 if there is none yet. */
static int borrow_price(search *s, int at, int n) {
  int fresh;
  if (s->no->n) return 0; /* a veto is about a kernel, not about its structure */
  nvb_hash h = hash_structure(s, n, s->key.at + 1, 0);
  int *of = nvb_map_put(s->priced, &h, sizeof h, &fresh);
  if (fresh) {
    *of = at;
    return 0;
  }
  s->fusion.at[at] = s->fusion.at[*of];
  s->why.at[at] = s->why.at[*of];
  return s->form.at[at] = LENT;
}

/* The number of the fusion that computes these roots, in this form or a fuller one. */
static int fusion_number(search *s, int n, const int *root, fusion_form form) {
  int leaves = write_key(s, n, root), fresh;
  int *at = nvb_map_put(s->known, s->key.at, (size_t)s->key.n * sizeof(int), &fresh);
  if (fresh) {
    *at = s->fusion.n;
    NVB_PUSH(s->a, s->fusion, NULL);
    NVB_PUSH(s->a, s->why, NULL);
    NVB_PUSH(s->a, s->form, 0);
    if (is_crowded(s, leaves) || !borrow_price(s, *at, n)) build_outline(s, *at, n, leaves);
  }
  if (s->form.at[*at] == LENT && form > LENT) build_outline(s, *at, n, leaves);
  if (s->form.at[*at] == OUTLINE && form > OUTLINE) {
    int64_t built = s->graph->built; /* the effort of the search does not count it again */
    build_fusion(s, *at, n, leaves);
    s->graph->built = built;
  }
  return *at;
}

/* The fusion that computes these roots, in this form or a fuller one; NULL: there is none. */
static nvf_fusion *find_fusion(search *s, int n, const int *root, fusion_form form) {
  int at = fusion_number(s, n, root, form);
  s->last = s->why.at[at];
  return s->fusion.at[at];
}

/* ---- dependences between groups */
static int reads_from(const group *x, const group *y) {
  for (int j = 0; j < y->n; j++)
    if (nvf_reads(x->k, y->root[j])) return 1;
  return 0;
}

static void find_needs(const search *s, window *w) {
  for (int i = 0; i < w->n; i++)
    for (int r = 0; r < w->g[i].n; r++) s->maker[w->g[i].root[r]] = i + 1;
  for (int i = 0; i < w->n; i++) {
    const nvf_fusion *k = w->g[i].k;
    w->needs[i] = 0;
    s->graph->looked += 1 + k->nread;
    for (int r = 0; r < k->nread; r++) {
      int j = s->maker[k->read[r]] - 1;
      if (j >= 0 && j < i) w->needs[i] |= 1ull << j | w->needs[j];
    }
  }
  for (int i = 0; i < w->n; i++)
    for (int r = 0; r < w->g[i].n; r++) s->maker[w->g[i].root[r]] = 0;
}

static int are_independent(const window *w, int i, int j) { return !(w->needs[i] >> j & 1) && !(w->needs[j] >> i & 1); }

/* ---- moves, priced by the kernels that they change, in ns */
/* to < 0: recompute root -to - 1 of `from` in its readers; at: index in s->gain */
typedef struct move { int from, to, at; double gain; } move;

static double time_of(const nvf_fusion *k) { return k->put.n ? k->time : 0; }

static void mark_stored(search *s, int n, const int *root, int stored) {
  for (int i = 0; i < n; i++)
    if (stored) nvf_put_bit(s->stored, root[i]);
    else s->stored[root[i] >> 6] &= ~(1ull << (root[i] & 63));
}

static void count_reads(search *s, const nvf_fusion *k, int by) {
  for (int i = 0; k && i < k->nread; i++) s->readers[k->read[i]] += by;
}

static void replace_group(search *s, group *g, int n, int *root, nvf_fusion *k) {
  count_reads(s, g->k, -1);
  count_reads(s, k, 1);
  *g = (group){ n, root, k, s->ids++ };
}

/* The move that stops storing root `which` of group i: its readers recompute it. Returns the gain, or CANNOT if a
   reader cannot recompute it or is outside the window. go: changes w if there is a gain. */
static double try_recompute(search *s, window *w, int i, int which, int go) {
  int node = w->g[i].root[which], left = w->g[i].n - 1,
      *root = nvb_dup(s->a, w->g[i].root, (size_t)(left + 1) * sizeof *root);
  nvf_fusion *k[WINDOW] = { NULL };
  double gain = 0;
  int readers = 0;
  root[which] = root[left];
  for (int j = i; j < w->n; j++) readers += nvf_reads(w->g[j].k, node);
  if (readers < s->readers[node]) return CANNOT;
  mark_stored(s, 1, &node, 0);
  for (int j = i; j < w->n && gain > CANNOT; j++) {
    const group *g = &w->g[j];
    if (j > i && !nvf_reads(g->k, node)) continue;
    gain += time_of(g->k);
    if (j == i && !left) continue;
    k[j] = find_fusion(s, j == i ? left : g->n, j == i ? root : g->root, go ? OUTLINE : LENT);
    gain = k[j] ? gain - time_of(k[j]) : CANNOT;
  }
  if (!go || gain <= 1e-6) {
    mark_stored(s, 1, &node, 1);
    return gain;
  }
  for (int j = i; j < w->n; j++)
    if (k[j]) replace_group(s, &w->g[j], j == i ? left : w->g[j].n, j == i ? root : w->g[j].root, k[j]);
  if (!left) {
    count_reads(s, w->g[i].k, -1);
    memmove(&w->g[i], &w->g[i + 1], (size_t)(--w->n - i) * sizeof *w->g);
  }
  s->time -= gain;
  return gain;
}

/* Counts, by node, how many of the groups read it; by -1: undoes that. */
static void count_inside(search *s, const window *w, uint64_t members, int by) {
  for (; members; members &= members - 1) {
    const nvf_fusion *k = w->g[__builtin_ctzll(members)].k;
    for (int i = 0; i < k->nread; i++) s->inside[k->read[i]] += by;
  }
}

static int is_read_outside(const search *s, int root) {
  return s->readers[root] > s->inside[root] || node_of(s, root)->out;
}

/* Replaces some groups by one; the groups that they depend on are moved before it. */
static void put_joined(search *s, window *w, uint64_t members, group all) {
  window old = *w;
  uint64_t before = 0, first = members & -members;
  for (int q = 0; q < w->n; q++) before |= members >> q & 1 ? w->needs[q] : 0;
  before = (before | (first - 1)) & ~members;
  w->n = 0;
  for (int late = 0; late < 2; late++) {
    for (int q = 0; q < old.n; q++)
      if (!(members >> q & 1) && (int)(before >> q & 1) != late) w->g[w->n++] = old.g[q];
    if (!late) w->g[w->n++] = all;
  }
  for (int q = 0; q < old.n; q++) count_reads(s, members >> q & 1 ? old.g[q].k : NULL, -1);
  count_reads(s, all.k, 1);
}

/* The move that merges some groups into one: roots that no other group reads are no longer stored. Returns the gain.
   go: changes w if the gain exceeds `price`. */
static double try_join(search *s, window *w, uint64_t members, double price, int go) {
  int n = 0, gone = 0, kept = 0;
  double gain = 0;
  for (int q = 0; q < w->n; q++) n += members >> q & 1 ? w->g[q].n : 0;
  int *root = NVB_NEWN(s->a, int, n + 1), *lost = NVB_NEWN(s->a, int, n + 1);
  n = 0;
  for (int q = 0; q < w->n; q++) {
    if (!(members >> q & 1)) continue;
    memcpy(root + n, w->g[q].root, (size_t)w->g[q].n * sizeof *root);
    n += w->g[q].n;
    gain += time_of(w->g[q].k);
  }
  count_inside(s, w, members, 1);
  for (int r = 0; r < n; r++)
    if (is_read_outside(s, root[r])) root[kept++] = root[r];
    else lost[gone++] = root[r];
  count_inside(s, w, members, -1);
  if (!kept) { /* no group reads any of them */
    root = lost;
    kept = gone;
    gone = 0;
  }
  mark_stored(s, gone, lost, 0);
  nvf_fusion *k = find_fusion(s, kept, root, go ? OUTLINE : LENT);
  gain = k ? gain - time_of(k) : CANNOT;
  if (!go || gain - price <= 1e-6) {
    mark_stored(s, gone, lost, 1);
    return gain;
  }
  put_joined(s, w, members, (group){ kept, root, k, s->ids++ });
  s->time -= gain;
  return gain;
}

static int same_space(const search *s, const group *x, const group *y) {
  for (int i = 0; i < x->n; i++)
    for (int j = 0; j < y->n; j++)
      if (nvf_alike(node_of(s, x->root[i]), node_of(s, y->root[j]))) return 1;
  return 0;
}

static int reads_same(const group *x, const group *y) {
  for (int i = 0, j = 0; i < x->k->nread && j < y->k->nread;)
    if (x->k->read[i] == y->k->read[j]) return 1;
    else if (x->k->read[i] < y->k->read[j]) i++;
    else j++;
  return 0;
}

/* The value from which a root is computed: of a reduction its widest operand. */
static const nvf_node *source_of(const search *s, int i) {
  const nvf_node *n = node_of(s, i);
  while (n->kind == NVG_VRED || n->kind == NVG_VPICK) {
    const nvf_node *x = n;
    n = node_of(s, x->in[0]);
    for (int j = 1; j < x->nin; j++) n = node_of(s, x->in[j])->size > n->size ? node_of(s, x->in[j]) : n;
  }
  return n;
}

static double small_part(const search *s) {
  return s->graph->caps->kind == NVB_CPU ? INFINITY : PARTED * s->graph->caps->launch;
}

/* Whether two kernels iterate over different shapes and one of them is small: if they are independent, they share a
   launch as parts of one grid, so that merging them saves no launch. */
static int are_parts(const search *s, const group *x, const group *y) {
  double small = small_part(s);
  if (x->k->dot || y->k->dot || x->k->attention || y->k->attention) return 0;
  for (int i = 0; i < x->n; i++)
    for (int j = 0; j < y->n; j++)
      if (nvf_alike(source_of(s, x->root[i]), source_of(s, y->root[j])) ||
          (node_of(s, x->root[i])->size > 1 && nvf_alike(node_of(s, x->root[i]), node_of(s, y->root[j]))))
        return 0;
  return x->k->time < small || y->k->time < small;
}

/* Launches that a merge costs, or seems to save but does not: one that the two share already as parts of one grid; one
   that the later kernel shared with another reader of the earlier one, which has to run after the merged kernel. */
static int launches_lost(const search *s, const window *w, int i, int j) {
  if (are_independent(w, i, j)) return !reads_same(&w->g[i], &w->g[j]) && are_parts(s, &w->g[i], &w->g[j]);
  int from = w->needs[j] >> i & 1 ? i : j, to = from == i ? j : i;
  for (int q = 0; q < w->n; q++)
    if (q != i && q != j && reads_from(&w->g[q], &w->g[from]) && are_independent(w, q, to) &&
        are_parts(s, &w->g[q], &w->g[to]))
      return 1;
  return 0;
}

/* The groups between these two: those that j depends on and that depend on i. */
static uint64_t groups_between(const window *w, int i, int j) {
  uint64_t members = 0;
  for (int q = i + 1; q < j; q++) members |= (w->needs[j] >> q & w->needs[q] >> i & 1) << q;
  return members;
}

/* Merges group i, a later group j and all between them. Two independent GEMMs that share an operand are also
   tried together with a group that reads both: two library calls may be faster than one kernel of both GEMMs, but
   slower than a kernel that never stores either product. */
static double try_merge(search *s, window *w, int i, int j, int go) {
  uint64_t pair = 1ull << i | 1ull << j | groups_between(w, i, j), members = pair;
  double price = launches_lost(s, w, i, j) * s->graph->caps->launch, gain = try_join(s, w, pair, price, 0);
  const char *why = s->last;
  int beside = w->g[i].k->dot && w->g[j].k->dot && are_independent(w, i, j) && reads_same(&w->g[i], &w->g[j]);
  for (int q = j + 1; q < w->n && beside; q++) {
    if (!(w->needs[q] >> i & w->needs[q] >> j & 1)) continue;
    uint64_t with = pair | 1ull << q | groups_between(w, i, q) | groups_between(w, j, q);
    double more = try_join(s, w, with, price, 0);
    if (more > gain) gain = more, members = with;
  }
  s->last = why;
  return (go ? try_join(s, w, members, price, 1) : gain) - price;
}

static int is_near(const search *s, const group *x, const group *y) {
  double small = 2 * s->graph->caps->launch;
  return reads_same(x, y) || reads_from(x, y) || reads_from(y, x) || (x->k->time < small && y->k->time < small) ||
         same_space(s, x, y);
}

/* The gain of a move is cached by the ids of its groups, so only moves of changed groups are priced again. Both
   functions return an index in s->gain. */
static int merge_gain(search *s, window *w, int i, int j) {
  int key[2] = { w->g[i].id, w->g[j].id }, fresh, *at = nvb_map_put(s->moves, key, sizeof key, &fresh);
  if (!fresh) return *at;
  *at = s->gain.n;
  NVB_PUSH(s->a, s->gain, CANNOT);
  if (is_near(s, &w->g[i], &w->g[j]) && s->graph->built < s->most) s->gain.at[*at] = try_merge(s, w, i, j, 0);
  return *at;
}

static int copy_gain(search *s, window *w, int i, int which) {
  int key[WINDOW + 3] = { w->g[i].id, which, -1 }, n = 3, fresh; /* longer than the key of a merge */
  for (int j = i + 1; j < w->n; j++)
    if (nvf_reads(w->g[j].k, w->g[i].root[which])) key[n++] = w->g[j].id;
  int *at = nvb_map_put(s->moves, key, (size_t)n * sizeof *key, &fresh);
  if (!fresh) return *at;
  *at = s->gain.n;
  NVB_PUSH(s->a, s->gain, try_recompute(s, w, i, which, 0));
  return *at;
}

static void prefer_move(const search *s, move *best, int from, int to, int at) {
  if (s->gain.at[at] > best->gain) *best = (move){ from, to, at, s->gain.at[at] };
}

/* If there are many groups, independent ones of one shape that read the same are merged together before pairs are
   tried. */
static void merge_siblings(search *s, window *w) {
  for (int i = 0, n = -1; i < w->n && w->n > CROWD; i++) {
    uint64_t members = 1ull << i;
    if (n != w->n) /* some were merged */
      find_needs(s, w);
    n = w->n;
    for (int j = i + 1; j < w->n; j++)
      if (is_near(s, &w->g[i], &w->g[j]) && same_space(s, &w->g[i], &w->g[j]) && !(w->needs[j] & members))
        members |= 1ull << j;
    if (members & (members - 1)) try_join(s, w, members, 0, 1);
  }
}

/* Whether the group reads a transform that a kernel computes: it may become the tail of that kernel. */
static int may_be_tail(const search *s, const group *x) {
  for (int i = 0; i < x->k->nread; i++)
    if (node_of(s, x->k->read[i])->passes) return 1;
  return 0;
}

/* Makes the best move; returns 0 if none gains. maps: only recompute maps, but not the tails of transforms. */
static int make_best_move(search *s, window *w, int maps) {
  move best = { -1, -1, 0, 1e-6 };
  /* a merge that gains nearly as much comes first: the recomputation is still possible after it */
  double least = s->graph->caps->launch / 2;
  find_needs(s, w);
  for (int i = 0; i < w->n && s->graph->built < s->most; i++)
    for (int r = 0; r < w->g[i].n; r++) {
      const nvf_node *n = node_of(s, w->g[i].root[r]);
      int may = !n->out && !n->must && (!maps || (nvf_is_made(n) && !may_be_tail(s, &w->g[i])));
      if (may) prefer_move(s, &best, i, -1 - r, copy_gain(s, w, i, r));
    }
  if (best.from >= 0) best.gain = best.gain - least > 1e-6 ? best.gain - least : 1e-6;
  for (int i = 0; i < w->n && !maps; i++)
    for (int j = i + 1; j < w->n; j++) prefer_move(s, &best, i, j, merge_gain(s, w, i, j));
  if (best.from < 0) return 0;
  double gain = best.to < 0 ? try_recompute(s, w, best.from, -1 - best.to, 1) : try_merge(s, w, best.from, best.to, 1);
  if (gain <= 1e-6) /* the cached gain is older than another move */
    s->gain.at[best.at] = 0;
  return 1;
}

/* While there are many groups, joins each with those that it reads, in order, where that gains and nothing lies between
   them: the search by price, which looks at all pairs, would take most of its moves for that. */
static void join_neighbours(search *s, window *w, int few) {
  for (int j = 1; j < w->n && w->n > few; j++) {
    find_needs(s, w);
    for (int i = j - 1; i >= 0 && s->graph->built < s->most; i--) {
      if (!reads_from(&w->g[j], &w->g[i]) || groups_between(w, i, j)) continue;
      if (try_merge(s, w, i, j, 1) <= 1e-6) continue;
      for (j = 0; w->g[j].id != s->ids - 1;) j++; /* the group that was made */
      find_needs(s, w);
      i = j;
    }
  }
}

typedef NVB_VEC(group) groups;
/* Searches the groups of a section, [at, end). */
static void settle_section(search *s, const groups *from, int at, int end, groups *to) {
  window *w = NVB_NEW(s->a, window);
  int late = s->settlement.n >= FIRST, before = to->n;
  while (at < end) {
    while (w->n < WINDOW && at < end) w->g[w->n++] = from->at[at++];
    s->most = s->graph->built + (late || to->n > before ? LATER : MOST_VISITS);
    merge_siblings(s, w);
    join_neighbours(s, w, to->n ? FEW : MANY);
    for (int maps = 1; maps >= 0; maps--) /* a stored map makes a bad merge look good, so maps are recomputed first */
      while (make_best_move(s, w, maps));
    int out = at == end ? w->n : w->n - WINDOW / 2;
    for (int i = 0; i < out; i++) NVB_PUSH(s->a, *to, w->g[i]);
    if (out > 0) memmove(w->g, w->g + out, (size_t)(w->n -= out) * sizeof *w->g);
  }
}

static int section_of(const search *s, const group *g) { return s->section[g->root[0]]; }

/* ---- sections of one structure, sizes and places aside, end in the same groups */
static int *list_roots(search *s, int n, const group *g, int *nroot) {
  NVB_VEC(int) root = { 0 };
  for (int i = 0; i < n; i++)
    for (int r = 0; r < g[i].n; r++) NVB_PUSH(s->a, root, g[i].root[r]);
  *nroot = root.n;
  return root.at;
}

/* What the search of these groups depends on: their structure, and which roots are read outside. */
static nvb_hash structure_of(search *s, int n, const group *g, int nroot, const int *root) {
  nvb_hash h = hash_structure(s, nroot, root, 1);
  NVB_VEC(int) more = { 0 };
  for (int by = 1; by >= -1; by -= 2) {
    for (int i = 0; i < n; i++)
      for (int r = 0; r < g[i].k->nread; r++) s->inside[g[i].k->read[r]] += by;
    for (int r = 0; r < nroot && by > 0; r++) NVB_PUSH(s->a, more, is_read_outside(s, root[r]));
  }
  for (int i = 0; i < n; i++) NVB_PUSH(s->a, more, g[i].n);
  return nvb_hash_mix(h, more.at, (size_t)more.n * sizeof *more.at);
}

static settlement describe_groups(search *s, int n, const group *g, int nroot, const int *root) {
  settlement e = { n, NVB_NEWN(s->a, int, n + 1), NVB_NEWN(s->a, int, nroot + 1) };
  for (int i = 0; i < nroot; i++) s->maker[root[i]] = i;
  for (int i = 0, at = 0; i < n; i++) {
    e.size[i] = g[i].n;
    for (int r = 0; r < g[i].n; r++) e.root[at++] = s->maker[g[i].root[r]];
  }
  for (int i = 0; i < nroot; i++) s->maker[root[i]] = 0;
  return e;
}

/* Makes the groups of the settlement from the n groups of another section; returns 0 if one of them has no kernel. */
static int settle_alike(search *s, const settlement *e, int n, const group *g, int nroot, const int *root, groups *to) {
  int first = to->n, fine = 1;
  double before = 0, after = 0;
  mark_stored(s, nroot, root, 0);
  for (int i = 0, at = 0; i < e->n; i++) {
    group x = { e->size[i], NVB_NEWN(s->a, int, e->size[i]), NULL, s->ids++ };
    for (int r = 0; r < x.n; r++) x.root[r] = root[e->root[at++]];
    mark_stored(s, x.n, x.root, 1);
    NVB_PUSH(s->a, *to, x);
  }
  for (int i = first; i < to->n && fine; i++) {
    to->at[i].k = find_fusion(s, to->at[i].n, to->at[i].root, OUTLINE);
    if ((fine = to->at[i].k != NULL)) after += time_of(to->at[i].k);
  }
  if (!fine) {
    mark_stored(s, nroot, root, 1);
    to->n = first;
    return 0;
  }
  for (int i = 0; i < n; i++) count_reads(s, g[i].k, -1), before += time_of(g[i].k);
  for (int i = first; i < to->n; i++) count_reads(s, to->at[i].k, 1);
  s->time += after - before;
  return 1;
}

static void settle_groups(search *s, const groups *from, groups *to) {
  for (int at = 0, end; at < from->n; at = end) {
    for (end = at + 1; end < from->n && section_of(s, &from->at[end]) == section_of(s, &from->at[at]);) end++;
    const group *g = from->at + at;
    int nroot, *root = list_roots(s, end - at, g, &nroot), first = to->n, fresh;
    nvb_hash h = structure_of(s, end - at, g, nroot, root);
    int *known = nvb_map_put(s->settled, &h, sizeof h, &fresh);
    if (!fresh && settle_alike(s, &s->settlement.at[*known], end - at, g, nroot, root, to)) continue;
    *known = s->settlement.n;
    settle_section(s, from, at, end, to);
    NVB_PUSH(s->a, s->settlement, describe_groups(s, to->n - first, to->at + first, nroot, root));
  }
}

/* ---- the result */
/* Why group i, which reads a root of group j, is not fused with it. */
static const char *why_apart(search *s, const groups *all, int i, int j) {
  if (section_of(s, &all->at[i]) != section_of(s, &all->at[j])) return "a large graph is divided between them";
  int lo = all->n > WINDOW ? j : 0, n = all->n - lo < WINDOW ? all->n - lo : WINDOW;
  if (i - lo >= n || s->graph->built > s->most + LATER) return "too much lies between";
  window *w = NVB_NEW(s->a, window);
  memcpy(w->g, all->at + lo, (size_t)(w->n = n) * sizeof *w->g);
  find_needs(s, w);
  double gain = try_merge(s, w, j - lo, i - lo, 0);
  const char *why = s->last;
  const group *from = &all->at[j];
  for (int r = 0; r < from->n && gain <= CANNOT; r++) { /* or the reader recomputes the root */
    const nvf_node *x = node_of(s, from->root[r]);
    if (nvf_reads(all->at[i].k, from->root[r]) && !x->out && !x->must) gain = try_recompute(s, w, j - lo, r, 0);
  }
  if (gain <= CANNOT) return why ? why : "the kernels cannot be one";
  nvb_text text = { .arena = s->a };
  nvb_print(&text, "together %.1f us instead of %.1f", (s->time - gain) / 1000, s->time / 1000);
  if (why) nvb_print(&text, ", by no library: %s", why);
  return nvb_text_get(&text);
}

/* By node: 1 + the group that makes it; 0: none does, as of a leaf, of which a group may store a copy. */
static int *find_makers(search *s, const groups *all) {
  int *by = NVB_NEWN(s->a, int, s->graph->n + 1);
  for (int i = 0; i < all->n; i++)
    for (int r = 0; r < all->at[i].n; r++) {
      int root = all->at[i].root[r];
      if (node_of(s, root)->kind != NVG_VLEAF) by[root] = i + 1;
    }
  return by;
}

/* Buffers of a kernel that does the work of two independent ones. */
static int pointers_of_both(const search *s, const nvf_fusion *x, const nvf_fusion *y) {
  int n = nvf_pointers(x) + nvf_pointers(y);
  for (int i = 0, j = 0; i < x->nread && j < y->nread;) {
    n -= x->read[i] == y->read[j] && !nvf_is_argument(s->graph, node_of(s, x->read[i]));
    int low = x->read[i] <= y->read[j], high = x->read[i] >= y->read[j];
    i += low;
    j += high;
  }
  return n;
}

/* Adds a cut between neighbours of one level that read the same value and are separate because one kernel would have
   too many buffers. */
typedef NVB_VEC(nvf_cut) cut_list;
static void too_many(search *s, const groups *all, const int *level, const int *kernel, nvf_partition *c,
                     cut_list *cut) {
  int *reader = NVB_NEWN(s->a, int, s->graph->n + 1); /* by node: 1 + the last group that reads it */
  for (int i = 0; i < all->n; i++) {
    const nvf_fusion *k = all->at[i].k;
    int last = -1;
    for (int r = 0; r < k->nread && kernel[i] >= 0; r++) {
      int x = k->read[r], j = reader[x] - 1;
      reader[x] = i + 1;
      if (j < 0 || j == last || level[j] != level[i] || node_of(s, x)->size <= 1) continue;
      last = j;
      int from = c->step[kernel[j]], to = c->step[kernel[i]];
      if (from != to && pointers_of_both(s, all->at[j].k, k) > s->graph->caps->max_buffers)
        NVB_PUSH(s->a, *cut, ((nvf_cut){ from < to ? from : to, from < to ? to : from, crowded }));
    }
  }
}

static void list_cuts(search *s, const groups *all, const int *by, const int *level, const int *kernel,
                      nvf_partition *c) {
  cut_list cut = { 0 };
  for (int i = 0; i < all->n; i++) {
    const nvf_fusion *k = all->at[i].k;
    int *from = NVB_NEWN(s->a, int, k->nread + 1), n = 0;
    for (int r = 0; r < k->nread; r++) {
      int at = n, j = by[k->read[r]] - 1;
      while (at && from[at - 1] > j) at--;
      if (j < 0 || kernel[i] < 0 || kernel[j] < 0 || (at && from[at - 1] == j)) continue;
      memmove(from + at + 1, from + at, (size_t)(n++ - at) * sizeof *from);
      from[at] = j;
    }
    for (int q = 0; q < n; q++)
      NVB_PUSH(s->a, cut, ((nvf_cut){ c->step[kernel[from[q]]], c->step[kernel[i]], why_apart(s, all, i, from[q]) }));
  }
  too_many(s, all, level, kernel, c, &cut);
  c->cut = cut.at;
  c->ncut = cut.n;
}

/* Whether kernel i may join the step that begins with kernel `first`: independent kernels share a launch as parts of
   one grid if one of them is small enough that a launch matters. */
static int may_share(const search *s, const nvf_partition *c, int first, int i) {
  double least = small_part(s), buffers = 0, params = 0;
  int code = 0;
  int small = c->k[i]->time < least;
  for (int j = first; j < i; j++) small |= c->k[j]->time < least;
  for (int j = first; j <= i; j++) {
    /* a GEMM, which a library may run, or a routine is a step of its own */
    small &= !c->k[j]->dot && !c->k[j]->attention && !c->k[j]->routine;
    buffers += nvf_pointers(c->k[j]);
    params += (double)nvf_params(c->k[j]);
    code += c->k[j]->code;
  }
  return small && code <= nvf_most_code(s->graph) && buffers <= s->graph->caps->max_buffers &&
         (s->graph->caps->kind == NVB_CPU || params <= NVF_MOST_PARAMS) && i - first < NVF_MAX_PARTS;
}

/* The fusions in topological order, sorted by level, and their steps. */
static nvf_partition *order_fusions(search *s, const groups *all, int fuse) {
  nvf_partition *c = NVB_NEW(s->a, nvf_partition);
  int *by = find_makers(s, all), *kernel = NVB_NEWN(s->a, int, all->n + 1), *level = NVB_NEWN(s->a, int, all->n + 1);
  int *many = NVB_NEWN(s->a, int, all->n + 2), *order = NVB_NEWN(s->a, int, all->n + 1), first = 0, last = -1;
  *c = (nvf_partition){ .graph = s->graph,
                        .time = s->time,
                        .k = NVB_NEWN(s->a, nvf_fusion *, all->n + 1),
                        .step = NVB_NEWN(s->a, int, all->n + 1) };
  for (int i = 0; i < all->n; i++) {
    const nvf_fusion *k = all->at[i].k;
    for (int r = 0; r < k->nread; r++) {
      int j = by[k->read[r]] - 1;
      level[i] = j >= 0 && level[j] >= level[i] ? level[j] + 1 : level[i];
    }
    many[level[i] + 1]++;
  }
  for (int l = 0; l < all->n; l++) many[l + 1] += many[l];
  for (int i = 0; i < all->n; i++) order[many[level[i]]++] = i;
  for (int q = 0; q < all->n; q++) {
    int i = order[q];
    kernel[i] = all->at[i].k->put.n ? c->n : -1;
    if (kernel[i] < 0) continue;
    c->k[c->n] = all->at[i].k;
    if (!fuse || last != level[i] || !may_share(s, c, first, c->n)) {
      first = c->n;
      c->nstep++;
    }
    last = level[i];
    c->step[c->n++] = c->nstep - 1;
  }
  if (fuse) list_cuts(s, all, by, level, kernel, c);
  return c;
}

/* Adds root i, keeping groups in the order of their first roots. Returns the index of its group. */
static int add_root(search *s, groups *all, int i) {
  const nvf_node *n = node_of(s, i);
  int at = all->n, *root = NVB_NEWN(s->a, int, n->kind == NVG_VPICK ? NVF_STATES : 1);
  nvf_put_bit(s->stored, i);
  /* states of one reduction share a group */
  for (int q = all->n; q-- > 0 && n->kind == NVG_VPICK && all->at[q].root[0] > n->in[0];) {
    const nvf_node *m = node_of(s, all->at[q].root[0]);
    if (m->kind != NVG_VPICK || m->in[0] != n->in[0]) continue;
    all->at[q].root[all->at[q].n++] = i;
    return q;
  }
  NVB_PUSH(s->a, *all, ((group){ 0 }));
  for (; at && all->at[at - 1].root[0] > i; at--) all->at[at] = all->at[at - 1];
  *root = i;
  all->at[at] = (group){ 1, root, NULL, s->ids++ };
  return at;
}

/* The kernel of a group for which nothing is left to store, without the vetoes. NULL: there is none. */
static nvf_fusion *find_unvetoed(search *s, const group *g) {
  static const nvf_rejections none;
  const nvf_rejections *no = s->no;
  s->no = &none;
  s->known = nvb_map_new(s->a);
  nvf_fusion *k = find_fusion(s, g->n, g->root, WHOLE);
  s->no = no;
  return k;
}

/* Builds the kernel of group i; if there is none, a value between it and its operands is stored, and the search goes
   back to that value's group. Returns the index of the next group. */
static int first_kernel(search *s, groups *all, int i) {
  group *g = &all->at[i];
  g->k = find_fusion(s, g->n, g->root, OUTLINE);
  int between = g->k ? -1 : nvf_materialize_between(s->graph, s->stored, g->root[0]);
  if (between >= 0) return add_root(s, all, between);
  if (!g->k && s->no->n) g->k = find_unvetoed(s, g);
  if (!g->k) nvb_throw(s->a, NVM_ERR_INTERNAL, "[fuse] no kernel for a value: %s", s->last ? s->last : "unknown");
  return i + 1;
}

nvf_partition *nvf_search(nvf_graph *graph, int fuse, const nvf_rejections *no) {
  search s = { .graph = graph,
               .a = graph->arena,
               .trial = nvb_arena_within(graph->arena),
               .no = no,
               .known = nvb_map_new(graph->arena),
               .priced = nvb_map_new(graph->arena),
               .moves = nvb_map_new(graph->arena),
               .settled = nvb_map_new(graph->arena),
               .stored = NVB_NEWN(graph->arena, uint64_t, graph->n / 64 + 1),
               .readers = NVB_NEWN(graph->arena, int, graph->n + 1),
               .maker = NVB_NEWN(graph->arena, int, graph->n + 1),
               .inside = NVB_NEWN(graph->arena, int, graph->n + 1) };
  groups all = { 0 }, settled = { 0 };
  uint8_t *worth = nvf_may_be_stored(graph, fuse);
  s.section = fuse ? nvf_sections_of(graph, worth) : NVB_NEWN(graph->arena, int, graph->n + 1);
  for (int i = 0; i < graph->n; i++)
    if (worth[i]) add_root(&s, &all, i);
  for (int i = 0; i < all.n;) i = first_kernel(&s, &all, i);
  for (int i = 0; i < all.n; i++) {
    count_reads(&s, all.at[i].k, 1);
    s.time += time_of(all.at[i].k);
  }
  if (fuse) settle_groups(&s, &all, &settled);
  groups *found = fuse ? &settled : &all;
  for (int i = 0; i < found->n; i++) {
    group *g = &found->at[i];
    g->k = find_fusion(&s, g->n, g->root, WHOLE);
    if (!g->k) g->k = find_unvetoed(&s, g);
    if (!g->k) nvb_throw(s.a, NVM_ERR_INTERNAL, "[fuse] no kernel for a value: %s", s.last ? s.last : "unknown");
  }
  return order_fusions(&s, found, fuse);
}
