/* The pipeline, on one page: collect, simplify, fuse, tune, prepare, run, attach. Each stage makes a new object out of the one
   before; between the lines it can be dumped (NVM_DUMP) and checked (NVM_CHECK). */
#include <pthread.h>
#include <string.h>
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "hallway.h"

typedef struct job {
  nvg_node *const *roots;
  int nroot;
  nvg_graph *g;          /* what was collected */
  nvf_plan *plan;        /* of the last fuse */
  nvh_program *program;
  char **text;           /* explain: where the text goes; nothing is run */
} job;
enum { ROUNDS = 4 };     /* fuse, prepare, veto: at most so often */

/* After each stage: its text to NVM_DUMP, its rules to NVM_CHECK. */
#define STAGE(name, print, check, x) \
  do { \
    if (nvb_has(NVB_DUMP, name)) { nvb_text t_ = { .arena = a }; print(&t_, x); nvb_dump(name, "program", nvb_text_get(&t_)); } \
    if (nvb_has(NVB_CHECK, name)) check(a, x); \
  } while (0)

static int fuse_on(void) { return strcmp(nvb_str(NVB_FUSE), "off") != 0; }

/* collected graph -> program */
static void plan(nvb_arena *a, void *arg) {
  job *j = arg;
  nvg_graph *s = nvg_simplify(a, j->g);                                STAGE("graph", nvg_graph_print, nvg_graph_check, s);
  nvh_views views;
  s = nvh_split_views(a, &views, s);            /* outputs that are only views of a leaf need no kernel */
  nvf_veto veto[ROUNDS];
  nvf_options o = { .fuse = fuse_on(), .veto = veto };
  int status = NVM_ERR_UNSUPPORTED;
  nvd_program *run = NULL;
  do {
    j->plan = nvf_fuse(a, s, nvb_caps_cpu(), &o);                      STAGE("plan", nvf_plan_print, nvf_plan_check, j->plan);
    if (j->text) return;
    status = s->nout ? nvd_prepare(&run, j->plan, NULL) : NVM_OK;
    if (status == NVM_ERR_UNSUPPORTED) veto[o.nveto] = (nvf_veto){ nvd_refused_step(), nvb_strdup(a, nvb_message()) };
  } while (status == NVM_ERR_UNSUPPORTED && ++o.nveto < ROUNDS);
  if (!status) status = nvh_program_make(&j->program, &views, run);
  if (status) nvb_throw(a, status, "%s", nvb_message());
}

static void collect(nvb_arena *a, void *arg) {
  job *j = arg;
  j->g = nvg_collect(a, j->roots, j->nroot);
  for (int i = 0; i < j->g->nleaf; i++)
    if (!atomic_load(&j->g->leaf_node[i]->value) && !j->text)
      nvb_throw(a, NVM_ERR_STATE, "this asks for a value that depends on an argument of a function being traced, which has none "
                "yet; use where() instead of if, or make the argument static");
}

static int run(job *j) {
  int nleaf = j->g->nleaf, nout = j->g->nout;
  nvg_value **leaf = nvb_alloc(sizeof *leaf * (size_t)(nleaf + nout + 1)), **out = leaf + nleaf;
  if (!leaf) return nvb_fail_memory();
  for (int i = 0; i < nleaf; i++) leaf[i] = atomic_load(&j->g->leaf_node[i]->value);
  for (int i = 0; i < nout; i++) nvg_node_ref(j->g->out_node[i]); /* other holders may let go meanwhile */
  int status = nvh_program_run(j->program, leaf, out);
  for (int i = 0; i < nout && !status; i++) nvg_node_set(j->g->out_node[i], out[i]);
  for (int i = 0; i < nout; i++) nvg_node_unref(j->g->out_node[i]);
  nvb_free(leaf);
  return status;
}

static int evaluate(nvb_arena *a, job *j) {
  int status = nvb_protect(a, collect, j);
  if (status) return status;
  nvb_hash key = nvh_program_key(j->g);
  j->program = nvh_program_find(key);
  if (!j->program) {
    if ((status = nvb_protect(a, plan, j))) return status;
    nvh_program_keep(key, j->program);
  }
  status = run(j);
  nvh_program_unref(j->program);
  return status;
}

/* One evaluation at a time: who waits for a value that another thread is computing finds it here afterwards. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int pending(nvg_node *const *roots, int n) {
  for (int i = 0; i < n; i++)
    if (!atomic_load(&roots[i]->value)) return 1;
  return 0;
}
int nvh_eval(nvg_node *const *roots, int n) {
  if (!pending(roots, n)) return NVM_OK;
  nvb_arena *a = nvb_arena_new();
  if (!a) return nvb_fail_memory();
  unsigned fp = nvb_fp_enter();
  pthread_mutex_lock(&lock);
  job j = { .roots = roots, .nroot = n };
  int status = pending(roots, n) ? evaluate(a, &j) : NVM_OK;
  pthread_mutex_unlock(&lock);
  nvb_fp_leave(fp);
  nvb_arena_free(a);
  return status;
}

/* For functions: a program for a graph whose leaves are placeholders; their strides are those of the graph. A status. */
int nvh_program_for(nvh_program **out, nvb_arena *a, nvg_graph *g) {
  job j = { .g = g };
  int status = nvb_protect(a, plan, &j);
  *out = j.program;
  return status;
}

static void explain(nvb_arena *a, void *arg) {
  job *j = arg;
  if (!j->g) collect(a, j);
  plan(a, j);
  nvb_text t = { .arena = a };
  nvf_plan_explain(&t, j->plan);
  const char *s = nvb_text_get(&t);
  size_t n = strlen(s) + 1;
  if (!(*j->text = nvb_alloc(n))) nvb_throw(a, NVM_ERR_MEMORY, "out of memory");
  memcpy(*j->text, s, n);
}
int nvh_explain_graph(char **text, nvb_arena *a, nvg_graph *g) {
  job j = { .text = text, .g = g };
  unsigned fp = nvb_fp_enter();
  int status = nvb_protect(a, explain, &j);
  nvb_fp_leave(fp);
  return status;
}
int nvh_explain(char **text, nvg_node *const *roots, int n) {
  nvb_arena *a = nvb_arena_new();
  if (!a) return nvb_fail_memory();
  unsigned fp = nvb_fp_enter();
  pthread_mutex_lock(&lock);
  job j = { .roots = roots, .nroot = n, .text = text };
  int status = nvb_protect(a, explain, &j);
  pthread_mutex_unlock(&lock);
  nvb_fp_leave(fp);
  nvb_arena_free(a);
  return status;
}

/* The lock is free in a forked child: who held it is not there, and what it made stays unreachable. */
static void in_child(void) { lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }
__attribute__((constructor)) static void at_fork(void) { pthread_atfork(NULL, NULL, in_child); }

enum { DEPTH = 512 };
int nvh_settle(nvg_node *n) {
  int64_t limit = nvb_int(NVB_MEM_LIMIT);
  int large = limit > 0 && nvg_pending_bytes() > limit / 4;
  if ((n->depth < DEPTH && !large) || nvh_tracing() || atomic_load(&n->value)) return NVM_OK;
  return nvh_eval(&n, 1);
}
