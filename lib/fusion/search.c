/* Which values are stored and which share a kernel: greedy moves from one kernel per sink. Candidates to be stored are
   outputs, reductions, and dear maps whose readers end in different sinks or read them through shifts; everything else is
   computed where it is wanted. Moves: copy a stored value into its readers, merge two kernels with all between them. */
#include "fusion/planner.h"
#include <math.h>
#include <string.h>

/* PARTED: of kernels that do not wait for each other one takes less than so many launches: they share one as parts of a grid
   (on a CPU all do: no part takes registers or units from another).
   MOST_VISITS: instances that a search may build (some 30 ms of them); then what is best so far stands. */
enum { DEAR = 6, CROWD = 12, PARTED = 5, MOST_VISITS = 60000 };
typedef struct group { int n, *root; nvf_cand *k; int id; } group; /* id: its own, a new one when it changes */
typedef struct state { int n; group *g; double time; uint64_t *stored; } state;
typedef struct search {
  nvf_net *net;
  nvb_arena *a;
  int words, visits, ids;
  uint64_t **above;        /* nodes that a node is made from, itself included */
  uint64_t **sink;         /* sinks that a node ends in */
  nvb_map *known;          /* roots and stored values above them -> candidate */
  NVB_VEC(nvf_cand *) cand;
  NVB_VEC(const char *) why;
  const char *last;        /* why the last trial was refused */
  const nvf_refusals *no;
  nvb_map *pairs;          /* two groups -> what merging them gains; number 0: nothing */
  NVB_VEC(double) gain;
} search;

static uint64_t *bits(search *s) { return NVB_NEWN(s->a, uint64_t, s->words); }
static const nvf_node *node_of(const search *s, int i) { return &s->net->node[i]; }

/* ---- which values are worth a decision */
static int is_sink(const nvf_node *n) { return n->kind == NVG_VRED || n->out || n->must; }

static int is_made(const nvf_node *n) {
  return n->kind == NVG_VMAP || n->kind == NVG_VPAD || n->kind == NVG_VCONCAT || n->kind == NVG_VGATHER;
}

static void reach(search *s) {
  int n = s->net->n;
  s->above = NVB_NEWN(s->a, uint64_t *, n);
  s->sink = NVB_NEWN(s->a, uint64_t *, n);
  for (int i = 0; i < n; i++) {
    s->above[i] = bits(s);
    s->sink[i] = bits(s);
    nvf_put_bit(s->above[i], i);
    for (int j = 0; j < node_of(s, i)->nin; j++)
      for (int w = 0; w < s->words; w++)
        s->above[i][w] |= s->above[node_of(s, i)->in[j]][w];
  }
  for (int i = n - 1; i >= 0; i--) {
    if (is_sink(node_of(s, i)))
      nvf_put_bit(s->sink[i], i);
    else
      for (int j = 0; j < node_of(s, i)->nuser; j++)
        for (int w = 0; w < s->words; w++)
          s->sink[i][w] |= s->sink[node_of(s, i)->user[j]][w];
  }
}

/* Operations of an element from leaves and reductions, counted up to DEAR. */
static int work(search *s, int node) {
  uint64_t *seen = bits(s);
  int *stack = NVB_NEWN(s->a, int, s->net->n + 1), n = 0, sum = 0;
  stack[n++] = node;
  while (n && sum < DEAR) {
    const nvf_node *x = node_of(s, stack[--n]);
    if (x->kind == NVG_VRED || x->kind == NVG_VSCAN || x->kind == NVG_VCALL)
      continue;
    sum += x->kind == NVG_VMAP ? (x->frag->cost > 1 ? x->frag->cost : 1) : is_made(x) || x->kind == NVG_VROLL;
    for (int j = 0; j < x->nin; j++)
      if (!nvf_has(seen, x->in[j])) {
        nvf_put_bit(seen, x->in[j]);
        stack[n++] = x->in[j];
      }
  }
  return sum;
}

static int disputed(search *s, int node) {
  uint64_t *seen = bits(s), *me = s->sink[node];
  int *stack = NVB_NEWN(s->a, int, s->net->n + 1), n = 0, shifts = 0, sinks = 0;
  for (int w = 0; w < s->words; w++)
    sinks += __builtin_popcountll(me[w]);
  stack[n++] = node;
  while (n) {
    const nvf_node *x = node_of(s, stack[--n]);
    for (int j = 0; j < x->nuser; j++) {
      const nvf_node *u = node_of(s, x->user[j]);
      if (nvf_has(seen, x->user[j]))
        continue;
      nvf_put_bit(seen, x->user[j]);
      shifts += u->kind == NVG_VROLL ? 2 : u->kind == NVG_VSLICE; /* what comes round is read at two places */
      if (nvf_is_view(u->kind))
        stack[n++] = x->user[j];
      else if (sinks > 1 && memcmp(s->sink[x->user[j]], me, (size_t)s->words * sizeof *me))
        return 1;
    }
  }
  return shifts > 1;
}

static int feeds_view(const search *s, int view) { /* a product reads it, perhaps through other views */
  const nvf_node *n = node_of(s, view);
  int found = 0;
  for (int j = 0; j < n->nuser && !found; j++)
    found = node_of(s, n->user[j])->kind == NVG_VCALL || (nvf_is_view(node_of(s, n->user[j])->kind) && feeds_view(s, n->user[j]));
  return found;
}

/* What a product reads may be its head or be stored for it: a library reads nothing but matrices. So may be a view that is none. */
static int feeds_product(search *s, int i) {
  const nvf_node *n = node_of(s, i);
  int made = is_made(n), part = n->kind == NVG_VSLICE || n->kind == NVG_VRESHAPE || n->kind == NVG_VROLL;
  if (!s->net->nproduct || !(made || (part && s->net->offers)))
    return 0;
  for (int j = 0; j < n->nuser; j++) {
    const nvf_node *u = node_of(s, n->user[j]);
    if (u->kind == NVG_VCALL || (made && nvf_is_view(u->kind) && feeds_view(s, n->user[j])))
      return 1;
  }
  return 0;
}

static int is_candidate(search *s, int i) {
  const nvf_node *n = node_of(s, i);
  if (n->out)
    return 1;
  if (!n->nuser)
    return 0;
  if (n->must || feeds_product(s, i))
    return 1;
  if (n->kind == NVG_VRED)
    return n->nin == 1;
  if (n->kind == NVG_VPICK)
    return 1;
  return is_made(n) && work(s, i) >= DEAR && disputed(s, i);
}

/* ---- what others would not take */
int nvf_mark_of(const nvf_node *n) {
  return n->value * 256 + (n->kind == NVG_VPICK ? (int)n->attr[0] * 4 : 0) + (n->block ? 1 : n->finish ? 2 : 0);
}

static int is_among(int mark, int n, const int *marks) {
  for (int i = 0; i < n; i++)
    if (marks[i] == mark)
      return 1;
  return 0;
}

/* A kernel that makes all that a refused one made, and loads nothing more of what others make, is refused too. */
static const char *refusal_of(search *s, const nvf_cand *k) {
  int *made = NVB_NEWN(s->a, int, k->nroot + 1);
  for (int i = 0; i < k->nroot; i++)
    made[i] = nvf_mark_of(node_of(s, k->root[i]));
  for (int r = 0; r < s->no->n; r++) {
    const nvf_refusal *no = &s->no->at[r];
    int same = 1;
    for (int i = 0; i < no->nmade; i++)
      same &= is_among(no->made[i], k->nroot, made);
    for (int i = 0; i < s->net->n && same; i++)
      if (nvf_has(k->reads, i) && node_of(s, i)->kind != NVG_VLEAF)
        same = is_among(nvf_mark_of(node_of(s, i)), no->nread, no->read);
    if (same)
      return no->why;
  }
  return NULL;
}

/* ---- candidates, by roots and by what is stored above them */
static nvf_cand *make(search *s, int n, const int *root, const uint64_t *stored) {
  int *key = NVB_NEWN(s->a, int, n + 2 * s->words + 1);
  uint64_t *near = (uint64_t *)bits(s);
  memcpy(key, root, (size_t)n * sizeof *root);
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && key[j] < key[j - 1]; j--) {
      int swap = key[j];
      key[j] = key[j - 1];
      key[j - 1] = swap;
    }
  for (int i = 0; i < n; i++)
    for (int w = 0; w < s->words; w++)
      near[w] |= s->above[root[i]][w] & stored[w];
  memcpy(key + n, near, (size_t)s->words * sizeof *near);
  int fresh, *at = nvb_map_put(s->known, key, ((size_t)n + 2 * (size_t)s->words) * sizeof *key, &fresh);
  if (fresh) {
    const char *why = NULL;
    int buffers = 0;
    *at = s->cand.n;
    nvf_cand *k = nvf_cand_new(s->net, key, n, stored, &why);
    for (int w = 0; k && w < s->words; w++)
      buffers += __builtin_popcountll(k->reads[w]);
    if (k && buffers + k->put.n > s->net->caps->max_buffers)
      k = NULL, why = "more buffers than a kernel may have";
    if (k && ((why = nvf_refused(k)) || (s->no->n && (why = refusal_of(s, k)))))
      k = NULL;
    s->visits += k ? k->inst.n : 100;
    NVB_PUSH(s->a, s->cand, k);
    NVB_PUSH(s->a, s->why, why);
  }
  s->last = s->why.at[*at];
  return s->cand.at[*at];
}

/* ---- dependences between groups */
static int reads_from(const group *x, const group *y) {
  for (int j = 0; j < y->n; j++)
    if (nvf_has(x->k->reads, y->root[j]))
      return 1;
  return 0;
}

/* needs[i]: bit set of groups that group i reads from, with theirs. */
static void closure(search *s, const state *t, uint64_t **needs) {
  int words = t->n / 64 + 1;
  for (int i = 0; i < t->n; i++) {
    needs[i] = NVB_NEWN(s->a, uint64_t, words);
    for (int j = 0; j < t->n; j++)
      if (i != j && reads_from(&t->g[i], &t->g[j]))
        nvf_put_bit(needs[i], j);
  }
  for (int changed = 1; changed;) { /* groups stand nearly in order: one round, and one to see that it was enough */
    changed = 0;
    for (int i = 0; i < t->n; i++)
      for (int j = 0; j < t->n; j++)
        for (int w = 0; nvf_has(needs[i], j) && w < words; w++) {
          uint64_t more = needs[i][w] | needs[j][w];
          changed |= more != needs[i][w];
          needs[i][w] = more;
        }
  }
}

/* ---- moves, priced by the kernels that they change */
typedef struct move { int from, to; double gain; } move; /* to < 0: copy root -to - 1 of `from` into its readers */

static uint64_t *stored_without(search *s, const state *t, int n, const int *root) {
  uint64_t *set = nvb_dup(s->a, t->stored, (size_t)s->words * sizeof *set);
  for (int i = 0; i < n; i++)
    set[root[i] >> 6] &= ~(1ull << (root[i] & 63));
  return set;
}

static double time_of(const nvf_cand *k) { return k->put.n ? k->time : 0; }

/* The readers of a stored value without it, and its group without that root. Returns what is gained, or -1 where one of them
   cannot do without. out: NULL, or t changed. */
static double copied(search *s, const state *t, int i, int which, state *out) {
  int node = t->g[i].root[which], left = t->g[i].n - 1, *root = nvb_dup(s->a, t->g[i].root, (size_t)t->g[i].n * sizeof *root);
  uint64_t *stored = stored_without(s, t, 1, &node);
  group *g = out ? NVB_NEWN(s->a, group, t->n + 1) : NULL;
  double gain = 0;
  root[which] = root[left];
  for (int j = 0, n = 0; j < t->n; j++) {
    group x = t->g[j];
    if (j == i || nvf_has(x.k->reads, node)) {
      gain += time_of(x.k);
      if (j == i)
        x.n = left, x.root = root;
      if (!x.n)
        continue;
      x.k = make(s, x.n, x.root, stored);
      if (!x.k)
        return -1;
      gain -= time_of(x.k);
      x.id = s->ids++;
    }
    if (g)
      g[n++] = x;
  }
  if (out)
    *out = (state){ t->n - !left, g, t->time - gain, stored };
  return gain;
}

static int read_outside(const search *s, const state *t, const uint8_t *member, int root) {
  for (int q = 0; q < t->n; q++)
    if (!member[q] && nvf_has(t->g[q].k->reads, root))
      return 1;
  return node_of(s, root)->out;
}

/* Some groups as one; of their roots those that nobody else reads are registers, not buffers. */
static double joined(search *s, const state *t, const uint8_t *member, state *out) {
  int *root = NVB_NEWN(s->a, int, s->net->n + 1), *gone = NVB_NEWN(s->a, int, s->net->n + 1), n = 0, m = 0, kept = 0;
  double gain = 0;
  for (int q = 0; q < t->n; q++)
    for (int r = 0; r < t->g[q].n && member[q]; r++) {
      root[n++] = t->g[q].root[r];
      gain += r ? 0 : time_of(t->g[q].k);
    }
  nvf_cand *all = make(s, n, root, t->stored);
  if (!all)
    return -1;
  for (int r = 0; r < n; r++)
    if (read_outside(s, t, member, root[r]))
      root[kept++] = root[r];
    else
      gone[m++] = root[r];
  uint64_t *stored = m && kept ? stored_without(s, t, m, gone) : t->stored;
  nvf_cand *k = m && kept ? make(s, kept, root, stored) : all;
  if (!k)
    return -1;
  gain -= time_of(k);
  if (out) {
    *out = (state){ 0, NVB_NEWN(s->a, group, t->n + 1), t->time - gain, stored };
    for (int q = 0, put = 0; q < t->n; q++)
      if (!member[q])
        out->g[out->n++] = t->g[q];
      else if (!put++)
        out->g[out->n++] = (group){ m && kept ? kept : n, root, k, s->ids++ };
  }
  return gain;
}

static int same_space(const search *s, const group *x, const group *y) {
  for (int i = 0; i < x->n; i++)
    for (int j = 0; j < y->n; j++)
      if (nvf_alike(node_of(s, x->root[i]), node_of(s, y->root[j])))
        return 1;
  return 0;
}

static int reads_same(const search *s, const group *x, const group *y) {
  for (int w = 0; w < s->words; w++)
    if (x->k->reads[w] & y->k->reads[w])
      return 1;
  return 0;
}

/* What a root is read off: of a reduction the widest operand. */
static const nvf_node *source_of(const search *s, int i) {
  const nvf_node *n = node_of(s, i);
  while (n->kind == NVG_VRED || n->kind == NVG_VPICK) {
    const nvf_node *x = n;
    n = node_of(s, x->in[0]);
    for (int j = 1; j < x->nin; j++)
      n = node_of(s, x->in[j])->size > n->size ? node_of(s, x->in[j]) : n;
  }
  return n;
}

static double small_part(const search *s) {
  return s->net->caps->kind == NVB_CPU ? INFINITY : PARTED * s->net->caps->launch;
}

/* Kernels over different spaces, one of them small: where they do not wait for each other they share a launch as parts of one
   grid, so that merging them gains none. */
static int are_parts(const search *s, const group *x, const group *y) {
  double small = small_part(s);
  if (x->k->dot || y->k->dot)
    return 0;
  for (int i = 0; i < x->n; i++)
    for (int j = 0; j < y->n; j++)
      if (nvf_alike(source_of(s, x->root[i]), source_of(s, y->root[j])) ||
          (node_of(s, x->root[i])->size > 1 && nvf_alike(node_of(s, x->root[i]), node_of(s, y->root[j]))))
        return 0;
  return x->k->time < small || y->k->time < small;
}

/* Launches that a merge gains nothing of, or costs: one that the two share anyway; one that a reader had in common with
   another reader of the first, which now waits for it. */
static int launches_lost(const search *s, const state *t, uint64_t **needs, int i, int j) {
  const group *x = &t->g[i], *y = &t->g[j];
  if (!nvf_has(needs[i], j) && !nvf_has(needs[j], i))
    return !reads_same(s, x, y) && are_parts(s, x, y);
  int from = nvf_has(needs[j], i) ? i : j, to = from == i ? j : i;
  for (int q = 0; q < t->n; q++)
    if (q != i && q != j && reads_from(&t->g[q], &t->g[from]) && !nvf_has(needs[q], to) && !nvf_has(needs[to], q) &&
        are_parts(s, &t->g[q], &t->g[to]))
      return 1;
  return 0;
}

/* Two groups and all between them; of products that read the same also with a group that reads both, if that is better: what a
   library's rate is worth more than may not be worth more than two products that are never stored. */
static double merged(search *s, const state *t, uint64_t **needs, int i, int j, state *out) {
  uint8_t *member = nvb_get(s->a, (size_t)t->n + 1);
  for (int q = 0; q < t->n; q++)
    member[q] = q == i || q == j || (nvf_has(needs[j], q) && nvf_has(needs[q], i)) || (nvf_has(needs[i], q) && nvf_has(needs[q], j));
  double gain = joined(s, t, member, out);
  const char *why = s->last;
  for (int q = 0; q < t->n && t->g[i].k->dot && t->g[j].k->dot && reads_same(s, &t->g[i], &t->g[j]); q++) {
    state other;
    if (member[q] || !nvf_has(needs[q], i) || !nvf_has(needs[q], j))
      continue;
    uint8_t *with = nvb_dup(s->a, member, (size_t)t->n + 1);
    for (int r = 0; r < t->n; r++)
      with[r] |= r == q || (nvf_has(needs[q], r) && (nvf_has(needs[r], i) || nvf_has(needs[r], j)));
    double more = joined(s, t, with, out ? &other : NULL);
    if (more > gain && out)
      *out = other;
    gain = more > gain ? more : gain;
  }
  s->last = why;
  return gain == -1 ? gain : gain - launches_lost(s, t, needs, i, j) * s->net->caps->launch;
}

static int is_near(const search *s, const group *x, const group *y) {
  double small = 2 * s->net->caps->launch;
  return reads_same(s, x, y) || reads_from(x, y) || reads_from(y, x) || (x->k->time < small && y->k->time < small) || same_space(s, x, y);
}

/* What a merge gains, kept by the groups' identities: only pairs that the last move touched are priced again. */
static double merge_gain(search *s, const state *t, uint64_t **needs, int i, int j) {
  int key[2] = { t->g[i].id, t->g[j].id }, fresh, *at = nvb_map_put(s->pairs, key, sizeof key, &fresh);
  if (fresh) {
    *at = s->gain.n;
    NVB_PUSH(s->a, s->gain, -1);
    if (is_near(s, &t->g[i], &t->g[j]) && s->visits < MOST_VISITS)
      s->gain.at[*at] = merged(s, t, needs, i, j, NULL);
  }
  return s->gain.at[*at];
}

/* Many groups: those of one shape that read the same and do not wait for each other are tried together before pairs are. */
static void siblings(search *s, state *t) {
  for (int i = 0; i < t->n && t->n > CROWD; i++) {
    uint64_t **needs = NVB_NEWN(s->a, uint64_t *, t->n + 1);
    uint8_t *member = nvb_get(s->a, (size_t)t->n + 1);
    int n = 0;
    closure(s, t, needs);
    for (int j = i; j < t->n; j++) {
      member[j] = j == i || (is_near(s, &t->g[i], &t->g[j]) && same_space(s, &t->g[i], &t->g[j]));
      for (int q = i; q < j && member[j]; q++)
        member[j] = !member[q] || (!nvf_has(needs[j], q) && !nvf_has(needs[q], j));
      n += member[j];
    }
    state next;
    if (n > 1 && joined(s, t, member, &next) > 1e-6)
      *t = next;
  }
}

/* The best move; 0 if nothing gains. maps: only copies of maps. */
static int step(search *s, state *t, int maps) {
  uint64_t **needs = NVB_NEWN(s->a, uint64_t *, t->n + 1);
  move best = { -1, -1, 1e-6 };
  state next;
  double least = s->net->caps->launch / 2; /* a merge that gains nearly as much comes first: a copy is still there after it */
  closure(s, t, needs);
  for (int i = 0; i < t->n && s->visits < MOST_VISITS; i++)
    for (int r = 0; r < t->g[i].n; r++) {
      const nvf_node *n = node_of(s, t->g[i].root[r]);
      if (n->out || n->must || (maps && !is_made(n)))
        continue;
      double gain = copied(s, t, i, r, NULL);
      if (gain > best.gain)
        best = (move){ i, -1 - r, gain };
    }
  if (best.from >= 0)
    best.gain = best.gain - least > 1e-6 ? best.gain - least : 1e-6;
  for (int i = 0; i < t->n && !maps; i++)
    for (int j = i + 1; j < t->n; j++) {
      double gain = merge_gain(s, t, needs, i, j);
      if (gain > best.gain)
        best = (move){ i, j, gain };
    }
  if (best.from < 0)
    return 0;
  double gain = best.to < 0 ? copied(s, t, best.from, -1 - best.to, &next) : merged(s, t, needs, best.from, best.to, &next);
  if (gain > 1e-6)
    *t = next;
  else /* a price from before another move */
    *nvb_map_put(s->pairs, (int[2]){ t->g[best.from].id, t->g[best.to].id }, 2 * sizeof(int), NULL) = 0;
  return 1;
}

/* ---- the result */
static const char *reason(search *s, const state *t, uint64_t **needs, int i, int j) {
  double gain = merged(s, t, needs, i, j, NULL);
  const char *why = s->last;
  for (int r = 0; r < t->g[j].n && gain == -1; r++) { /* computed by its reader instead */
    const nvf_node *n = node_of(s, t->g[j].root[r]);
    if (nvf_has(t->g[i].k->reads, t->g[j].root[r]) && !n->out && !n->must)
      gain = copied(s, t, j, r, NULL);
  }
  if (gain == -1)
    return why ? why : "the kernels cannot be one";
  nvb_text text = { .arena = s->a };
  nvb_print(&text, "together %.1f us instead of %.1f", (t->time - gain) / 1000, t->time / 1000);
  return nvb_text_get(&text);
}

static void cuts(search *s, const state *t, uint64_t **needs, const int *place, nvf_choice *c) {
  c->cut = NVB_NEWN(s->a, nvf_cut, t->n * t->n + 1);
  for (int i = 0; i < t->n; i++)
    for (int j = 0; j < t->n; j++)
      if (i != j && place[i] >= 0 && place[j] >= 0 && reads_from(&t->g[i], &t->g[j]))
        c->cut[c->ncut++] = (nvf_cut){ c->step[place[j]], c->step[place[i]], reason(s, t, needs, i, j) };
}

/* The step of each kernel, in an order in which all is there when it is read: what waits for nothing comes first. */
static int level_of(const state *t, uint64_t **needs, int *level, int i) {
  if (level[i] >= 0)
    return level[i];
  int deep = 0;
  for (int j = 0; j < t->n; j++)
    if (nvf_has(needs[i], j)) {
      int l = level_of(t, needs, level, j) + 1;
      deep = l > deep ? l : deep;
    }
  return level[i] = deep;
}

/* Kernels that do not wait for each other share a launch, as parts of one grid, where a launch is worth something. */
static int may_share(const search *s, const nvf_choice *c, int first, int i) {
  double least = small_part(s), buffers = 0, params = 0;
  int small = c->k[i]->time < least;
  for (int j = first; j < i; j++)
    small |= c->k[j]->time < least;
  for (int j = first; j <= i; j++) {
    small &= !c->k[j]->dot; /* a step that a library may take holds a product alone */
    buffers += c->k[j]->put.n;
    params += (double)nvf_params(c->k[j]);
    for (int w = 0; w < s->words; w++)
      buffers += __builtin_popcountll(c->k[j]->reads[w]);
  }
  return small && buffers <= s->net->caps->max_buffers && (s->net->caps->kind == NVB_CPU || params <= NVF_MOST_PARAMS) &&
         i - first < NVF_MAX_PARTS;
}

static nvf_choice *ordered(search *s, state *t, int fuse) {
  nvf_choice *c = NVB_NEW(s->a, nvf_choice);
  uint64_t **needs = NVB_NEWN(s->a, uint64_t *, t->n + 1);
  int *place = NVB_NEWN(s->a, int, t->n + 1), *level = NVB_NEWN(s->a, int, t->n + 1), first = 0, last = -1;
  c->net = s->net;
  c->k = NVB_NEWN(s->a, nvf_cand *, t->n + 1);
  c->step = NVB_NEWN(s->a, int, t->n + 1);
  c->time = t->time;
  closure(s, t, needs);
  memset(level, 0xff, sizeof *level * (size_t)t->n);
  for (int i = 0; i < t->n; i++)
    level_of(t, needs, level, i);
  for (int l = 0; l < t->n; l++)
    for (int i = 0; i < t->n; i++) {
      if (level[i] != l)
        continue;
      place[i] = t->g[i].k->put.n ? c->n : -1;
      if (!t->g[i].k->put.n)
        continue;
      c->k[c->n] = t->g[i].k;
      if (!fuse || last != l || !may_share(s, c, first, c->n)) {
        first = c->n;
        c->nstep++;
      }
      last = l;
      c->step[c->n++] = c->nstep - 1;
    }
  if (fuse)
    cuts(s, t, needs, place, c);
  return c;
}

/* One kernel a value: nothing is copied or merged, views are still views. */
static int is_value(const nvf_node *n) {
  if (!n->nuser && !n->out)
    return 0;
  return n->out || n->must || is_made(n) || (n->kind == NVG_VRED && n->nin == 1) || n->kind == NVG_VPICK;
}

static void add_root(search *s, state *t, int i) {
  const nvf_node *n = node_of(s, i);
  int at = t->n, *root = NVB_NEWN(s->a, int, n->kind == NVG_VPICK ? 64 : 1); /* 64: more states than split.c takes */
  for (int q = 0; q < t->n && n->kind == NVG_VPICK; q++) { /* states of one reduction are made together */
    const nvf_node *m = node_of(s, t->g[q].root[0]);
    at = m->kind == NVG_VPICK && m->in[0] == n->in[0] ? q : at;
  }
  nvf_put_bit(t->stored, i);
  if (at < t->n)
    t->g[at].root[t->g[at].n++] = i;
  else {
    *root = i;
    t->g[t->n++] = (group){ 1, root, NULL, s->ids++ };
  }
}

/* A value in the middle of what no kernel can hold, to be stored; -1 if there is none. What is below a value counts in equal
   parts for each that reads it. Views are stored where nothing else can be. */
static int middle(search *s, const state *t, int root) {
  int best = -1, n = 0, *cone = NVB_NEWN(s->a, int, s->net->n + 1), *readers = NVB_NEWN(s->a, int, s->net->n + 1);
  double *below = NVB_NEWN(s->a, double, s->net->n + 1), most = 0;
  cone[n++] = root;
  for (int i = 0; i < n; i++) {
    const nvf_node *x = node_of(s, cone[i]);
    for (int j = 0; j < x->nin; j++)
      if (!nvf_has(t->stored, x->in[j]) && !readers[x->in[j]]++)
        cone[n++] = x->in[j];
  }
  for (int i = 0; i <= root; i++) {
    const nvf_node *x = node_of(s, i);
    for (int j = 0; j < x->nin && (readers[i] || i == root); j++)
      below[i] += readers[x->in[j]] ? (below[x->in[j]] + 1) / readers[x->in[j]] : 0;
  }
  for (int views = 0; views < 2 && best < 0; views++)
    for (int i = 0; i < root; i++) {
      const nvf_node *x = node_of(s, i);
      double part = below[i] < below[root] - below[i] ? below[i] : below[root] - below[i];
      if (readers[i] && (views ? nvf_is_view(x->kind) : is_made(x)) && part >= most)
        best = i, most = part;
    }
  return best;
}

nvf_choice *nvf_search(nvf_net *net, int fuse, const nvf_refusals *no) {
  static const nvf_refusals none;
  search s = { .net = net, .a = net->arena, .no = no, .words = net->n / 64 + 1, .known = nvb_map_new(net->arena), .pairs = nvb_map_new(net->arena) };
  state t = { .g = NVB_NEWN(s.a, group, net->n + 1), .stored = bits(&s) };
  NVB_PUSH(s.a, s.gain, -1);
  reach(&s);
  for (int i = 0; i < net->n; i++)
    if (fuse ? is_candidate(&s, i) : is_value(&net->node[i]))
      add_root(&s, &t, i);
  for (int i = 0; i < t.n; i++) {
    t.g[i].k = make(&s, t.g[i].n, t.g[i].root, t.stored);
    int cut = t.g[i].k ? -1 : middle(&s, &t, t.g[i].root[0]);
    if (!t.g[i].k && cut < 0 && s.no->n) { /* nothing is left to be cut: it may be refused once more */
      s.no = &none;
      s.known = nvb_map_new(net->arena);
      t.g[i].k = make(&s, t.g[i].n, t.g[i].root, t.stored);
      s.no = no;
    }
    if (!t.g[i].k && cut < 0)
      nvb_throw(s.a, NVM_ERR_INTERNAL, "[fuse] no kernel for a value: %s", s.last ? s.last : "unknown");
    if (cut < 0)
      continue;
    add_root(&s, &t, cut);
    i = -1; /* others may read it too */
  }
  for (int i = 0; i < t.n; i++)
    t.time += time_of(t.g[i].k);
  if (fuse)
    siblings(&s, &t);
  for (int maps = 1; fuse && maps >= 0; maps--) /* a stored map makes a bad merge look good: copies of maps first */
    while (step(&s, &t, maps))
      ;
  return ordered(&s, &t, fuse);
}
