/* Streams, events, graphs. Work runs when it is waited for, and only what that needs: an order that was not asked for
   is not had. Where several streams may go on, one is drawn. */
#include "world.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  PARAM = 64, /* what a parameter is aligned to */
  DEEP = 1024 /* as many items wait in a stream before the oldest run */
};
stream *streams;
int eager;
static uint64_t dice = 1;
static int stuck, kernel_error, kernels_before_it = -1;

static void *grown(void *p, size_t n, size_t size) { return realloc(p, (n + 1) * size); }
static unsigned draw(unsigned n) {
  static int seeded;
  if (!seeded++) dice = getenv("NVM_EMU_SEED") ? strtoull(getenv("NVM_EMU_SEED"), NULL, 10) : 1;
  if (!dice) return 0;
  dice ^= dice << 13;
  dice ^= dice >> 7;
  dice ^= dice << 17;
  return (unsigned)(dice >> 33) % n;
}

/* ---- operations */
int launch_make(launch *out, const function *f, const unsigned *grid, const unsigned *block, unsigned shared,
                void **param) {
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (!f || !grid[0] || !grid[1] || !grid[2] || !threads || threads > 1024 || grid[0] > INT32_MAX || grid[1] > 65535 ||
      grid[2] > 65535 || (f->k->max_threads && threads > (uint64_t)f->k->max_threads) ||
      shared > (unsigned)f->shared_most || (f->k->nparam && !param) || (f->k->cluster > 8 && !f->large_cluster))
    return INVALID_VALUE;
  size_t n = 0;
  for (int i = 0; i < f->k->nparam; i++) n += ((size_t)f->k->size[i] + PARAM - 1) / PARAM * PARAM;
  char *copy = memset(aligned_alloc(PARAM, n + PARAM), 0, n + PARAM);
  *out = (launch){ f, { grid[0], grid[1], grid[2] }, { block[0], block[1], block[2] }, shared, 0, copy };
  for (int i = 0; i < f->k->nparam; copy += (f->k->size[i++] + PARAM - 1) / PARAM * PARAM)
    memcpy(copy, param[i], (size_t)f->k->size[i]);
  return OK;
}

op op_copy(const op *o) {
  op c = *o;
  size_t n = 0;
  for (int i = 0; o->kind == LAUNCH && i < o->l.f->k->nparam; i++)
    n += ((size_t)o->l.f->k->size[i] + PARAM - 1) / PARAM * PARAM;
  if (o->l.param) c.l.param = memcpy(aligned_alloc(PARAM, n + PARAM), o->l.param, n);
  if (o->staged) c.from = c.staged = memcpy(malloc(o->n + 1), o->staged, o->n);
  if (o->g) c.g = graph_copy(o->g);
  return c;
}
void op_free(op *o) {
  free(o->l.param);
  free(o->staged);
  if (o->g) graph_free(o->g);
}

/* A kernel that may overlap with others has no memory until it waits for them. */
static int closed_on = -1;
static void open_memory(void) {
  if (closed_on >= 0) memory_open(closed_on, 1);
  closed_on = -1;
}

static int run_launch(const launch *l) {
  void *param[512];
  char *p = l->param;
  if (l->f->gone) return EMU_ILLEGAL_INSTRUCTION;
  if (kernels_before_it >= 0 && kernels_before_it-- == 0) return kernel_error;
  for (int i = 0; i < l->f->k->nparam; p += (l->f->k->size[i++] + PARAM - 1) / PARAM * PARAM) param[i] = p;
  closed_on = l->f->device;
  if (l->overlaps) memory_close();
  else open_memory();
  int error = emu_execute(l->f->k, l->grid, l->block, l->shared, param, open_memory);
  open_memory();
  memory_open(l->f->device, 0);
  return error;
}

static int run_copy(const op *o) {
  int to = memory_device(o->to, o->n), from = memory_device(o->from, o->n);
  if (to < 0 && from < 0 && !o->staged && !(pinned(o->to) && pinned(o->from)))
    return EMU_ILLEGAL_ADDRESS; /* freed since */
  if (to >= 0) memory_open(to, 1);
  if (from >= 0) memory_open(from, 1);
  memory_admit(o->to);
  memory_admit(o->from);
  memmove(o->to, o->from, o->n);
  if (to >= 0) memory_open(to, 0);
  if (from >= 0) memory_open(from, 0);
  return OK;
}

static void on_fault(int sig, siginfo_t *info, void *context) {
  (void)context;
  if (!memory_admit(info->si_addr)) signal(sig, SIG_DFL); /* and it comes again */
}
static int run_host(const op *o) {
  struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, before;
  memory_open(o->device, 1);
  sigaction(SIGSEGV, &act, &before);
  int error = o->call(o->staged);
  sigaction(SIGSEGV, &before, NULL);
  memory_open(o->device, 0);
  return error;
}

static int run_graph(const graph *g);
static int run_op(const op *o) {
  switch (o->kind) {
  case LAUNCH: return run_launch(&o->l);
  case COPY: return run_copy(o);
  case FREE: return memory_free(o->to) ? EMU_ILLEGAL_ADDRESS : OK;
  case MARK: return OK;
  case GRAPH: return run_graph(o->g);
  case HOST: return run_host(o);
  }
  return OK;
}

/* ---- graphs */
graph *graph_new(int device) {
  static uint64_t ids;
  graph *g = calloc(1, sizeof *g);
  g->id = ++ids;
  g->device = device;
  return g;
}
node *graph_add(graph *g, op o, set after) {
  node *n = calloc(1, sizeof *n);
  *n =
      (node){ o, g, g->n, after.n,
              after.n ? memcpy(malloc((size_t)after.n * sizeof(int)), after.at, (size_t)after.n * sizeof(int)) : NULL };
  g->node = grown(g->node, (size_t)g->n, sizeof *g->node);
  return g->node[g->n++] = n;
}
graph *graph_copy(const graph *g) {
  graph *c = graph_new(g->device);
  for (int i = 0; i < g->n; i++) graph_add(c, op_copy(&g->node[i]->o), (set){ g->node[i]->dep, g->node[i]->ndep });
  for (int i = 0; i < g->nobject; i++) {
    c->object = grown(c->object, (size_t)i, sizeof *c->object);
    (c->object[c->nobject++] = g->object[i])->refs++;
  }
  return c;
}
void graph_free(graph *g) {
  for (int i = 0; i < g->n; i++) {
    op_free(&g->node[i]->o);
    free(g->node[i]->dep);
    free(g->node[i]);
  }
  for (int i = 0; i < g->nobject; i++)
    if (--g->object[i]->refs == 0) {
      g->object[i]->destroy(g->object[i]->owned);
      free(g->object[i]);
    }
  free(g->node);
  free(g->object);
  free(g);
}

/* Any order that the edges allow. */
static int run_graph(const graph *g) {
  char *done = calloc((size_t)g->n + 1, 1);
  int error = OK;
  for (int left = g->n; left && !error; left--) {
    int ready[DEEP], n = 0;
    for (int i = 0; i < g->n && n < DEEP; i++) {
      int open = !done[i];
      for (int d = 0; d < g->node[i]->ndep; d++) open &= done[g->node[i]->dep[d]];
      if (open) ready[n++] = i;
    }
    int i = ready[draw((unsigned)n)];
    done[i] = 1;
    error = run_op(&g->node[i]->o);
  }
  free(done);
  return error;
}

set set_join(set a, set b) {
  for (int i = 0; i < b.n; i++) {
    int known = 0;
    for (int j = 0; j < a.n; j++) known |= a.at[j] == b.at[i];
    if (known) continue;
    a.at = grown(a.at, (size_t)a.n, sizeof *a.at);
    a.at[a.n++] = b.at[i];
  }
  return a;
}

/* ---- streams */
stream *stream_new(int device, int blocking) {
  stream *s = calloc(1, sizeof *s);
  s->device = device;
  s->blocking = blocking;
  s->tail = &s->head;
  s->next = streams;
  return streams = s;
}
stream *stream_find(void *handle, int device) {
  static stream *legacy[MAX_DEVICES];
  static _Thread_local stream *mine[MAX_DEVICES];
  stream **own = (uintptr_t)handle <= 1 ? &legacy[device] : (uintptr_t)handle == 2 ? &mine[device] : NULL;
  if (own) return *own ? *own : (*own = stream_new(device, (uintptr_t)handle == 2 ? 1 : 2));
  for (stream *s = streams; s; s = s->next)
    if (s == handle) return s->dead ? NULL : s;
  return NULL;
}

void wait_for(stream *s, point p) {
  if (!p.s || p.s == s || is_done(p)) return;
  s->wait = grown(s->wait, (size_t)s->nwait, sizeof *s->wait);
  s->wait[s->nwait++] = p;
}
int is_done(point p) { return !p.s || p.s->done >= p.seq; }

int enqueue(stream *s, op o) {
  if (s->capture) {
    node *n = graph_add(s->capture, o, s->front);
    free(s->front.at);
    s->front = set_join((set){ 0 }, (set){ &n->index, 1 });
    return OK;
  }
  for (stream *q = streams; q && s->blocking; q = q->next) /* the legacy stream (2) and the blocking ones (1) */
    if (q->device == s->device && s->blocking + q->blocking == 3) wait_for(s, (point){ q, q->asked });
  item *i = calloc(1, sizeof *i);
  *i = (item){ o, NULL, s->wait, s->nwait };
  s->wait = NULL;
  s->nwait = 0;
  *s->tail = i;
  s->tail = &i->next;
  s->asked++;
  if (eager) return run_until((point){ s, s->asked });
  return s->asked - s->done > DEEP ? run_until((point){ s, s->asked - DEEP }) : OK;
}

static int depth; /* of runs within runs: the host goes on where the first one ends */
static int end_run(void) {
  if (--depth == 0) memory_close();
  return stuck;
}
static int run_head(stream *s) {
  item *i = s->head;
  for (int w = 0; w < i->nwait; w++) run_until(i->wait[w]);
  int error = stuck ? OK : run_op(&i->o); /* after an error nothing runs, all of it is over */
  if (error && !stuck) stuck = error;
  if (!(s->head = i->next)) s->tail = &s->head;
  s->done++;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  s->marked[s->done % MARKS] = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
  op_free(&i->o);
  free(i->wait);
  free(i);
  return stuck;
}
int run_until(point p) {
  depth++;
  while (!is_done(p)) run_head(p.s);
  return end_run();
}
int run_some(stream *s) {
  depth++;
  if (s->head) run_head(s);
  return end_run();
}
int run_all(int device) {
  for (depth++;;) {
    stream *open[DEEP];
    unsigned n = 0;
    for (stream *s = streams; s && n < DEEP; s = s->next)
      if (s->head && (device < 0 || s->device == device)) open[n++] = s;
    if (!n) return end_run();
    run_head(open[draw(n)]);
  }
}

int sticky(void) { return stuck; }
void make_sticky(int error) { stuck = error; }
void emu_fail_kernel(int after, int error) {
  kernels_before_it = after;
  kernel_error = error;
}
int64_t emu_pending(void) {
  int64_t n = 0;
  for (stream *s = streams; s; s = s->next) n += (int64_t)(s->asked - s->done);
  return n;
}
void emu_eager(int on) {
  if (on) run_all(-1);
  eager = on;
}
