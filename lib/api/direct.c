/* Decides which graphs run directly. Planning pays once a graph has come often enough, so a graph runs directly until
   its direct runs together would take longer than planning it; the whole then takes at most twice as long as the better
   of both. A large graph is past that line at its first run. Never computes anything itself. */
#include "api/direct.h"
#include <string.h>
#include "api/eval.h"
#include "base/interrupt.h"
#include "base/settings.h"

/* ---- how long planning takes: from collected graph to loaded kernels, with a warm store. Graphs of 5 to 43 values
   took 70 to 120 us of CPU a value in processes that had planned up to 12 before, on a machine whose cores were shared,
   where what direct runs are priced by takes twice as long; in the long run planning takes a quarter of that. */
static double planning_ns(const nvg_graph *g) {
  /* FIRST: what the first plan of a process takes longer, whose code and memory are touched for the first time */
  enum { START = 50000, EACH = 40000, FIRST = 700000 };
  return START + (double)g->n * EACH + (nva_planned() ? 0 : FIRST);
}

/* how long it takes to bind a simplified graph to a program that was planned for other sizes, and to run that first */
static double binding_ns(const nvg_graph *g) {
  enum { START = 5000, EACH = 400 };
  return START + (double)g->n * EACH;
}

/* ---- what the direct runs have taken of a graph, or of one in all sizes of their classes. An entry has the first bits
   of its key and the time in units of TICK; a graph that meets another's entry takes it over. */
enum { ENTRIES = 1 << 12, TICK = 16, TIME_BITS = 24 };
static _Atomic uint64_t spent[ENTRIES];

static _Atomic uint64_t *entry_of(nvb_hash key, double *ns) {
  _Atomic uint64_t *e = &spent[key.lo % ENTRIES];
  uint64_t x = atomic_load_explicit(e, memory_order_relaxed);
  *ns = (x ^ key.hi) >> TIME_BITS ? 0 : (double)(x & ((1u << TIME_BITS) - 1)) * TICK;
  return e;
}
static void note_time(nvb_hash key, double ns) {
  double before, ticks;
  _Atomic uint64_t *e = entry_of(key, &before);
  const double most = (1u << TIME_BITS) - 1;
  ticks = (before + ns) / TICK + 1;
  uint64_t time = (uint64_t)(ticks < most ? ticks : most);
  atomic_store_explicit(e, key.hi >> TIME_BITS << TIME_BITS | time, memory_order_relaxed);
}

/* ---- may this graph run directly? */
int nva_direct_forced(void) { return !strcmp(nvb_str(NVB_TIER), "direct"); }
static int may_run_directly(void) {
  return (nva_direct_forced() || !strcmp(nvb_str(NVB_TIER), "auto")) && strcmp(nvb_str(NVB_FUSE), "off") &&
         strcmp(nvb_str(NVB_TUNE), "measure") && !*nvb_str(NVB_DUMP) && !nvb_has(NVB_CHECK, "graph") &&
         !nvb_has(NVB_CHECK, "plan") && !nvb_has(NVB_CHECK, "bits");
}
int nva_direct_allowed(void) { /* the answer is kept for the settings as they are */
  static _Atomic uint64_t yes, no;
  uint64_t version = nvb_settings_version();
  if (atomic_load_explicit(&yes, memory_order_relaxed) == version) return 1;
  if (atomic_load_explicit(&no, memory_order_relaxed) == version) return 0;
  int may = may_run_directly();
  if (nvb_settings_version() == version) atomic_store_explicit(may ? &yes : &no, version, memory_order_relaxed);
  return may;
}
static int has_donors(const nvg_graph *g) {
  int i = 0;
  while (i < g->nleaf && !g->leaf[i].donated) i++;
  return i < g->nleaf;
}
/* Adds up what the graph's values take, `each` of them beside its run; use: space for each of them. Returns 0 if one of
   them cannot be run directly. */
static int add_costs(nva_direct_cost *sum, const nvg_graph *g, int each, nva_use *use) {
  *sum = (nva_direct_cost){ .ns = (double)g->n * each };
  for (int i = 0; i < g->n; i++) sum->large |= g->v[i].size > NVA_BLOCK;
  if (sum->large) nva_direct_uses(use, g);
  for (int i = 0; i < g->n; i++) {
    nva_direct_cost c;
    if (!nva_direct_cost_of(&c, g, &g->v[i], sum->large ? &use[i] : NULL)) return 0;
    sum->ns += c.ns;
    sum->result += c.result;
    if (c.work > sum->work) sum->work = c.work;
  }
  return 1;
}

/* The simplified graph without the outputs that are views; NULL if it cannot be run directly. */
static nvg_graph *direct_graph(nvb_arena *a, const nva_job *j, nva_views *views, nva_direct_cost *cost) {
  enum { MOST = 256 << 20, SIMPLIFY = 500 }; /* bytes of temporaries; ns to simplify a value */
  double least = 0;
  for (int i = 0; i < j->g->n; i++) least += j->g->v[i].kind == NVG_VMAP ? (double)j->g->v[i].size / 4 : 0;
  if (j->dev != 1 || !nva_direct_allowed() || has_donors(j->g) || (!nva_direct_forced() && least > planning_ns(j->g)))
    return NULL;
  nvg_graph *s = nva_split_views(a, views, nvg_simplify(a, j->g), j->g->nout);
  return add_costs(cost, s, SIMPLIFY, NVB_NEWN(a, nva_use, s->n + 1)) && cost->result + cost->work <= MOST ? s : NULL;
}

/* ---- other sizes. A signature takes as long as to simplify the graph once more, so none is taken before a form of the
   class may be there: until then the runs of all graphs of the same operations count together. */
static nvb_hash class_of(const nvg_graph *g) {
  nvb_hash h = { (uint64_t)g->n, nvb_settings_version() };
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    uint64_t head = (uint64_t)v->kind | (uint64_t)v->dtype << 8 | (uint64_t)v->rank << 16 | (uint64_t)v->op << 32;
    h = nvb_hash_mix(h, &head, sizeof head);
    h = nvb_hash_mix(h, v->in, sizeof *v->in * (size_t)v->nin);
  }
  return h;
}
static nvb_hash form_mark(nvb_hash class) { return nvb_hash_mix(class, "form", 4); }
void nva_direct_note_form(const nvg_graph *g) { note_time(form_mark(class_of(g)), TICK); }
static int may_have_form(nvb_hash class) {
  double marked;
  entry_of(form_mark(class), &marked);
  return marked > 0;
}

typedef struct direct_request { nva_job *j; nvb_hash key; } direct_request;
/* A graph among those of the same operations. unplanned: no form of them is known, and their runs have not taken as
   long as planning does. */
typedef struct class_runs { nvb_hash class; int formed, unplanned; } class_runs;
static class_runs runs_of_class(const nvg_graph *s, double ns, double planning) {
  double before;
  class_runs k = { .class = class_of(s) };
  k.formed = may_have_form(k.class);
  entry_of(k.class, &before);
  k.unplanned = !k.formed && before + ns <= planning;
  return k;
}
/* The key under which its runs count. own: that of the graph; sign: NULL: it has none, so nothing serves its sizes. */
static nvb_hash key_of_runs(const class_runs *k, nvb_hash own, const nvf_signature *sign) {
  return k->unplanned ? k->class : !sign ? own : k->formed ? sign->key : k->class;
}
/* Binds what comes in ever new sizes of the same classes, once it is planned, and sets the key of its runs. */
static void bind_or_count(nvb_arena *a, direct_request *r, const nvg_graph *s, const nva_views *views, double ns) {
  nvb_caps cpu = nvb_caps_cpu();
  nvf_signature signature;
  class_runs k = runs_of_class(s, ns + r->j->spent, planning_ns(r->j->g));
  int signs = !k.unplanned && nva_job_bind(a, r->j, views, s, &signature, &cpu);
  r->key = key_of_runs(&k, r->key, signs ? &signature : NULL);
}
static void choose_run(nvb_arena *a, void *arg) {
  direct_request *r = arg;
  nva_direct_cost cost;
  nva_views views;
  double before, planning = planning_ns(r->j->g);
  nvg_graph *s = direct_graph(a, r->j, &views, &cost);
  if (s && !nva_direct_forced() && cost.ns > binding_ns(s)) bind_or_count(a, r, s, &views, cost.ns);
  if (r->j->program) return;
  entry_of(r->key, &before);
  before += r->j->spent;
  if (!s || (!nva_direct_forced() && before + cost.ns > planning)) return;
  nvb_log(3, "direct run: %d values, %.1f us expected; %.1f us before it, planning takes %.0f us", s->n, cost.ns / 1e3,
          before / 1e3, planning / 1e3);
  note_time(r->key, cost.ns);
  int status = nva_program_direct(&r->j->program, &views, s, &cost);
  if (status) nvb_throw(a, status, "%s", nvb_message());
}
int nva_job_direct(nvb_arena *a, nva_job *j, nvb_hash key) {
  return nva_job_protect(a, j, choose_run, &(direct_request){ j, key });
}

/* ---- small graphs. Where computing a graph's nodes takes no longer than to find a program that is known for it and to
   run that, nothing is gained by knowing one: the graph is computed at once, without being hashed or simplified. */
static double finding_ns(const nvg_graph *g) {
  enum { START = 1500, EACH = 100 };
  return START + (double)g->n * EACH;
}
static int has_value(const nvg_node *n) { return atomic_load(&n->value) != NULL; }
static int give_values(nvg_small *s, nvg_value *const *value) {
  for (int i = 0; i < s->g.nout; i++) nvg_node_set(s->g.out_node[i], value[i]);
  return 1;
}
static int compute_small(nvg_small *s, const nva_direct_cost *cost) {
  nvg_value *value[NVG_SMALL];
  char *out[NVG_SMALL];
  int n = 0;
  while (n < s->g.nout && (value[n] = nva_value_packed(s->g.out_node[n]->aval))) out[n] = value[n]->data, n++;
  nva_count_evaluation();
  if (n == s->g.nout && !nva_direct_compute(&s->g, cost, s->data, out)) return give_values(s, value);
  while (n) nvg_value_free(value[--n]);
  return 0;
}
/* ---- new graphs of little arrays. To collect, hash and simplify one takes longer than to compute it, so it is
   computed at once too, until that has taken so much longer than its program would that planning would have paid. */
static uint64_t mix_word(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15ull;
  return h ^ h >> 29;
}
/* Of the operations, sizes and constants: what has the same has the same program. */
static nvb_hash key_of_small(const nvg_graph *g) {
  uint64_t h = nvb_settings_version();
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    h = mix_word(h, (uint64_t)v->kind | (uint64_t)v->dtype << 8 | (uint64_t)v->rank << 16 | (uint64_t)v->op << 32);
    for (int k = 0; k < v->nin; k++) h = mix_word(h, (uint64_t)v->in[k]);
    for (int k = 0; k < v->nattr; k++) h = mix_word(h, (uint64_t)v->attr[k]);
    for (int d = 0; d < v->rank; d++) h = mix_word(h, (uint64_t)v->shape[d]);
  }
  return (nvb_hash){ h, mix_word(h, 1) };
}
/* Has planning it not paid yet? Sets what has been spent on a graph, which may be planned now if it has. */
static int is_young(const nvg_graph *g, const nva_direct_cost *cost, double *spent_on) {
  double before, planning = planning_ns(g), longer = cost->ns - finding_ns(g);
  if (cost->large || longer > 2 * binding_ns(g)) return 0;
  nvb_hash key = key_of_small(g);
  entry_of(key, &before);
  *spent_on = before + longer > planning ? planning : before;
  if (*spent_on == planning) return 0;
  note_time(key, longer);
  return 1;
}
/* Collects the roots that are pending, if they and what they need can be computed at once; only then claims are
   left. */
static int collect_small(nvg_small *s, nva_direct_cost *cost, nvm_ctx *c, nvg_node *const *roots, int n) {
  nvg_node *root[NVG_SMALL_NODES];
  nva_use use[NVG_SMALL];
  int m = 0;
  for (int i = 0; i < n; i++) {
    if (has_value(roots[i])) continue;
    if (m == NVG_SMALL_NODES || nva_device_of(c, roots[i]) != NVM_DEVICE_CPU) return 0;
    root[m++] = roots[i];
  }
  if (!m || !nva_direct_allowed() || !nvg_small_collect(s, root, m)) return 0;
  if (add_costs(cost, &s->g, 0, use)) return 1;
  nvg_claims_drop(&s->claims);
  return 0;
}
static int is_cheap(const nvg_graph *g, const nva_direct_cost *cost) {
  return nva_direct_forced() || cost->ns <= finding_ns(g);
}
int nva_run_small(nvm_ctx *c, nvg_node *const *roots, int n, double *spent_on) {
  nvg_small s;
  nva_direct_cost cost;
  *spent_on = 0;
  if (!collect_small(&s, &cost, c, roots, n)) return 0;
  int computes = is_cheap(&s.g, &cost) || is_young(&s.g, &cost, spent_on);
  int done = computes && !nvb_interrupt_pending() && compute_small(&s, &cost);
  if (done) nvb_log(3, "computed at once: %d values, %.1f us expected", s.g.n, cost.ns / 1e3);
  nvg_claims_drop(&s.claims);
  return done;
}

double nva_small_ns(nvm_ctx *c, nvg_node *const *roots, int n, double *spent_on) {
  nvg_small s;
  nva_direct_cost cost;
  *spent_on = 0;
  if (!collect_small(&s, &cost, c, roots, n)) return -1;
  int cheap = is_cheap(&s.g, &cost);
  if (!cheap) entry_of(key_of_small(&s.g), spent_on);
  nvg_claims_drop(&s.claims);
  return cheap ? cost.ns : -1;
}

void nva_direct_explain(nvb_arena *a, nvb_text *t, const nva_job *j, nvb_hash key) {
  nva_direct_cost cost;
  nva_views views;
  double before, planning = planning_ns(j->g);
  nvb_caps cpu = nvb_caps_cpu();
  nvf_signature signature;
  const nvg_graph *s = direct_graph(a, j, &views, &cost);
  int counts = s && cost.ns > binding_ns(s), signs = counts && nvf_signature_of(&signature, a, s, &cpu);
  if (signs) signature.key = nva_generic_key(signature.key);
  nva_program *form = nva_program_find(signs ? signature.key : key);
  nva_program_unref(form);
  class_runs k = counts ? runs_of_class(s, cost.ns, planning) : (class_runs){ 0 };
  if (counts) key = key_of_runs(&k, key, signs ? &signature : NULL);
  if (form) nvb_puts(t, "bound: it runs the kernels of a program that was planned for other sizes of the same class\n");
  entry_of(key, &before);
  before += j->spent;
  if (s && !form && s->nout && (nva_direct_forced() || before + cost.ns <= planning))
    nvb_print(t, "new: it runs directly, in about %.1f us, until that has taken the %.0f us that this plan takes\n",
              cost.ns / 1e3, planning / 1e3);
}
