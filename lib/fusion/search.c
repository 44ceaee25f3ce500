/* Which values are stored and which share a kernel: greedy moves from one kernel per sink. Candidates to be stored are
   outputs, reductions, and dear maps whose readers end in different sinks or read them through shifts; everything else is
   computed where it is wanted. Moves: copy a stored value into its readers, merge two kernels with all between them. */
#include "fusion/planner.h"
#include <string.h>

enum { DEAR = 6, MOST_TRIALS = 4000 };
typedef struct group { int n, *root; nvf_cand *k; } group;
typedef struct state { int n; group *g; double time; } state;
typedef struct search {
  nvf_net *net;
  nvb_arena *a;
  int words, trials;
  uint64_t **above;        /* nodes that a node is made from, itself included */
  uint64_t **sink;         /* sinks that a node ends in */
  nvb_map *known;          /* roots and stored values above them -> candidate */
  NVB_VEC(nvf_cand *) cand;
  NVB_VEC(const char *) why;
  const char *last;        /* why the last trial was refused */
} search;

static uint64_t *bits(search *s) { return NVB_NEWN(s->a, uint64_t, s->words); }
static const nvf_node *node_of(const search *s, int i) { return &s->net->node[i]; }

/* ---- which values are worth a decision */
static int is_sink(const nvf_node *n) { return n->kind == NVG_VRED || n->out || n->must; }

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
    if (x->kind == NVG_VRED || x->kind == NVG_VSCAN)
      continue;
    sum += x->kind == NVG_VMAP ? (x->frag->cost > 1 ? x->frag->cost : 1) : 0;
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
      shifts += u->kind == NVG_VSLICE || u->kind == NVG_VROLL;
      if (nvf_is_view(u->kind))
        stack[n++] = x->user[j];
      else if (sinks > 1 && memcmp(s->sink[x->user[j]], me, (size_t)s->words * sizeof *me))
        return 1;
    }
  }
  return shifts > 1;
}

static int is_candidate(search *s, int i) {
  const nvf_node *n = node_of(s, i);
  if (n->out)
    return 1;
  if (!n->nuser)
    return 0;
  if (n->must)
    return 1;
  if (n->kind == NVG_VRED)
    return n->nin == 1;
  if (n->kind == NVG_VPICK)
    return 1;
  return n->kind == NVG_VMAP && work(s, i) >= DEAR && disputed(s, i);
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
    s->trials++;
    nvf_cand *k = nvf_cand_new(s->net, key, n, stored, &why);
    for (int w = 0; k && w < s->words; w++)
      buffers += __builtin_popcountll(k->reads[w]);
    if (k && buffers + k->put.n > s->net->caps->max_buffers)
      k = NULL, why = "more buffers than a kernel may have";
    if (k)
      nvf_assess(k);
    NVB_PUSH(s->a, s->cand, k);
    NVB_PUSH(s->a, s->why, why);
  }
  s->last = s->why.at[*at];
  return s->cand.at[*at];
}

static uint64_t *stored_by(search *s, int n, const group *g) {
  uint64_t *set = bits(s);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < g[i].n; j++)
      nvf_put_bit(set, g[i].root[j]);
  return set;
}

/* ---- dependences between groups */
static int reads_from(const group *x, const group *y) {
  for (int j = 0; j < y->n; j++)
    if (nvf_has(x->k->reads, y->root[j]))
      return 1;
  return 0;
}

/* needs[i]: bit set of groups that group i reads from, with theirs. 0 if there is a cycle. */
static int closure(search *s, const state *t, uint64_t **needs) {
  int words = t->n / 64 + 1, changed = 1;
  for (int i = 0; i < t->n; i++) {
    needs[i] = NVB_NEWN(s->a, uint64_t, words);
    for (int j = 0; j < t->n; j++)
      if (i != j && reads_from(&t->g[i], &t->g[j]))
        nvf_put_bit(needs[i], j);
  }
  while (changed) {
    changed = 0;
    for (int i = 0; i < t->n; i++)
      for (int j = 0; j < t->n; j++)
        if (nvf_has(needs[i], j))
          for (int w = 0; w < words; w++) {
            uint64_t more = needs[i][w] | needs[j][w];
            changed |= more != needs[i][w];
            needs[i][w] = more;
          }
  }
  for (int i = 0; i < t->n; i++)
    if (nvf_has(needs[i], i))
      return 0;
  return 1;
}

static int is_cyclic(search *s, const state *t) {
  return !closure(s, t, NVB_NEWN(s->a, uint64_t *, t->n + 1));
}

/* ---- states */
/* Kernels of all groups, and their time; 0 if some cannot be or they form a cycle. */
static int complete(search *s, state *t) {
  uint64_t *stored = stored_by(s, t->n, t->g);
  t->time = 0;
  for (int i = 0; i < t->n; i++) {
    t->g[i].k = make(s, t->g[i].n, t->g[i].root, stored);
    if (!t->g[i].k)
      return 0;
    t->time += t->g[i].k->put.n ? t->g[i].k->time : 0;
  }
  if (!is_cyclic(s, t))
    return 1;
  s->last = "the kernels would wait for each other";
  return 0;
}

/* Roots that nobody outside their kernel reads are registers, not buffers. */
static int tidy(search *s, state *t) {
  for (int again = 1; again;) {
    again = 0;
    if (!complete(s, t))
      return 0;
    for (int i = 0; i < t->n && !again; i++)
      for (int j = 0; j < t->g[i].n && !again && t->g[i].n > 1; j++) {
        int r = t->g[i].root[j], used = node_of(s, r)->out;
        for (int q = 0; q < t->n && !used; q++)
          used = q != i && nvf_has(t->g[q].k->reads, r);
        if (used)
          continue;
        int *root = nvb_dup(s->a, t->g[i].root, (size_t)t->g[i].n * sizeof *root);
        memmove(root + j, root + j + 1, (size_t)(t->g[i].n - j - 1) * sizeof *root);
        t->g[i] = (group){ t->g[i].n - 1, root, NULL };
        again = 1;
      }
  }
  return 1;
}

static state copied(search *s, const state *t) {
  state n = *t;
  n.g = nvb_dup(s->a, t->g, (size_t)(t->n + 1) * sizeof *t->g);
  return n;
}

static int copy_into_readers(search *s, const state *t, int i, state *out) {
  *out = copied(s, t);
  memmove(out->g + i, out->g + i + 1, (size_t)(out->n - i - 1) * sizeof *out->g);
  out->n--;
  return complete(s, out);
}

static int merged(search *s, const state *t, uint64_t **needs, int i, int j, state *out) {
  *out = copied(s, t);
  group all = { 0, NVB_NEWN(s->a, int, s->net->n + 1), NULL };
  int n = 0, at = -1;
  for (int q = 0; q < t->n; q++) {
    int between = (nvf_has(needs[j], q) && nvf_has(needs[q], i)) || (nvf_has(needs[i], q) && nvf_has(needs[q], j));
    if (q != i && q != j && !between) {
      out->g[n++] = t->g[q];
      continue;
    }
    if (at < 0)
      at = n++;
    memcpy(all.root + all.n, t->g[q].root, (size_t)t->g[q].n * sizeof *all.root);
    all.n += t->g[q].n;
  }
  out->g[at] = all;
  out->n = n;
  return tidy(s, out);
}

/* Whether two values have one shape, but for extents of 1. */
static int alike(const nvf_node *p, const nvf_node *q) {
  int j = 0;
  for (int d = 0; d < p->rank; d++) {
    while (p->dim[d] && j < q->rank && !q->dim[j])
      j++;
    if (p->dim[d] && (j == q->rank || q->dim[j++] != p->dim[d]))
      return 0;
  }
  for (; j < q->rank; j++)
    if (q->dim[j])
      return 0;
  return 1;
}

static int same_space(const search *s, const group *x, const group *y) {
  for (int i = 0; i < x->n; i++)
    for (int j = 0; j < y->n; j++)
      if (alike(node_of(s, x->root[i]), node_of(s, y->root[j])))
        return 1;
  return 0;
}

static int is_near(const search *s, const group *x, const group *y) {
  for (int w = 0; w < s->words; w++)
    if (x->k->reads[w] & y->k->reads[w])
      return 1;
  double small = 2 * s->net->caps->launch;
  return reads_from(x, y) || reads_from(y, x) || (x->k->time < small && y->k->time < small) || same_space(s, x, y);
}

static void offer(const state *now, const state *next, state *best) {
  if (next->time < now->time - 1e-6 && next->time < best->time - 1e-6)
    *best = *next;
}

/* The best move; 0 if nothing gains. maps: only copies of maps. */
static int step(search *s, state *t, int maps) {
  uint64_t **needs = NVB_NEWN(s->a, uint64_t *, t->n + 1);
  state best = *t, next;
  closure(s, t, needs);
  for (int i = 0; i < t->n; i++) {
    const nvf_node *n = node_of(s, t->g[i].root[0]);
    if (t->g[i].n == 1 && !n->out && !n->must && (!maps || n->kind == NVG_VMAP) && copy_into_readers(s, t, i, &next))
      offer(t, &next, &best);
  }
  for (int i = 0; i < t->n && !maps; i++)
    for (int j = i + 1; j < t->n && s->trials < MOST_TRIALS; j++) {
      double least = t->g[i].k->time < t->g[j].k->time ? t->g[i].k->time : t->g[j].k->time;
      if (is_near(s, &t->g[i], &t->g[j]) && least > t->time - best.time && merged(s, t, needs, i, j, &next))
        offer(t, &next, &best);
    }
  if (best.time >= t->time)
    return 0;
  *t = best;
  return 1;
}

/* ---- the result */
static const char *reason(search *s, const state *t, uint64_t **needs, int i, int j) {
  state next;
  if (!merged(s, t, needs, i, j, &next))
    return s->last ? s->last : "the kernels cannot be one";
  nvb_text text = { .arena = s->a };
  nvb_print(&text, "together %.1f us instead of %.1f", next.time / 1000, t->time / 1000);
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
  double least = 5 * s->net->caps->launch, buffers = 0;
  int small = c->k[i]->time < least;
  for (int j = first; j < i; j++)
    small |= c->k[j]->time < least;
  for (int j = first; j <= i; j++) {
    buffers += c->k[j]->put.n;
    for (int w = 0; w < s->words; w++)
      buffers += __builtin_popcountll(c->k[j]->reads[w]);
  }
  return small && buffers <= s->net->caps->max_buffers && i - first < NVF_MAX_PARTS;
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
  return n->out || n->must || n->kind == NVG_VMAP || n->kind == NVG_VSCAN || (n->kind == NVG_VRED && n->nin == 1) ||
         n->kind == NVG_VPICK || n->kind == NVG_VPAD || n->kind == NVG_VCONCAT || n->kind == NVG_VGATHER;
}

nvf_choice *nvf_search(nvf_net *net, int fuse) {
  search s = { .net = net, .a = net->arena, .words = net->n / 64 + 1, .known = nvb_map_new(net->arena) };
  state t = { .g = NVB_NEWN(s.a, group, net->n + 1) };
  reach(&s);
  for (int i = 0; i < net->n; i++) {
    const nvf_node *n = &net->node[i];
    int *root = nvb_dup(s.a, &i, sizeof i);
    if (fuse ? !is_candidate(&s, i) : !is_value(n))
      continue;
    int j = t.n; /* states of one reduction are made together */
    for (int q = 0; q < t.n && n->kind == NVG_VPICK; q++) {
      const nvf_node *m = &net->node[t.g[q].root[0]];
      j = m->kind == NVG_VPICK && m->in[0] == n->in[0] ? q : j;
    }
    if (j == t.n)
      t.g[t.n++] = (group){ 1, root, NULL };
    else {
      root = NVB_NEWN(s.a, int, t.g[j].n + 1);
      memcpy(root, t.g[j].root, (size_t)t.g[j].n * sizeof *root);
      root[t.g[j].n] = i;
      t.g[j] = (group){ t.g[j].n + 1, root, NULL };
    }
  }
  if (!complete(&s, &t))
    nvb_throw(s.a, NVM_ERR_INTERNAL, "[fuse] no kernel for a value: %s", s.last ? s.last : "unknown");
  for (int maps = 1; fuse && maps >= 0; maps--) /* a stored map makes a bad merge look good: copies of maps first */
    while (step(&s, &t, maps))
      ;
  return ordered(&s, &t, fuse);
}
