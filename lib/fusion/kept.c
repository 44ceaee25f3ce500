/* Plans in the disk cache: what planning a large graph ended in, so that another process does not search again. A row
   has the numbers of a CPU plan whose steps are kernels, and each kernel text once. It decides nothing that changes a
   bit: a row is found by all that its plan depends on, and is read with a check of every number that leads to memory;
   what fails one is a miss. */
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/store.h"
#include "fusion/plan.h"
#include "fusion/planner_sources.h"

static const char kind[] = "plan";

/* All that a plan depends on beside its graph: the device, and the sources of the planner. */
static nvb_hash row_key(nvb_hash graph, const nvb_caps *caps) {
  int64_t sources = NVF_PLANNER_SOURCES;
  return nvb_hash_mix(nvb_hash_mix(graph, caps, sizeof *caps), &sources, sizeof sources);
}

/* ---- writing: numbers of seven bits a byte, the lowest first; texts and kernels by their numbers in tables before */
typedef struct writer {
  nvb_arena *arena;
  NVB_VEC(unsigned char) byte;
} writer;
typedef struct tables {
  writer texts, kernels, steps;
  int ntext, nkernel;
  nvb_map *text, *kernel; /* -> its number; a kernel by its text */
} tables;

static void put_word(writer *w, uint64_t x) {
  for (; x > 127; x >>= 7) NVB_PUSH(w->arena, w->byte, (unsigned char)(x | 128));
  NVB_PUSH(w->arena, w->byte, (unsigned char)x);
}

static void put_words(writer *w, int n, const uint64_t *x) {
  for (int i = 0; i < n; i++) put_word(w, x[i]);
}

static void put_text(tables *t, writer *w, const char *s) {
  int fresh, *at = nvb_map_put(t->text, s, strlen(s), &fresh);
  if (fresh) {
    *at = t->ntext++;
    put_word(&t->texts, strlen(s));
    for (const char *c = s; *c; c++) NVB_PUSH(t->texts.arena, t->texts.byte, (unsigned char)*c);
  }
  put_word(w, (uint64_t)*at);
}

static void put_kernel(tables *t, const nvf_step *s) {
  nvb_text text = { .arena = t->texts.arena };
  if (!s->text) nvf_kernel_print(&text, s->k), nvf_schedule_print(&text, s->k, s->s, nvf_schedule_of(NVB_CPU));
  const char *is = s->text ? s->text : nvb_text_get(&text);
  int fresh, *at = nvb_map_put(t->kernel, is, strlen(is), &fresh);
  if (fresh) {
    *at = t->nkernel++;
    put_text(t, &t->kernels, is);
    put_words(&t->kernels, 2, (const uint64_t[]){ (uint64_t)s->k->nstmt, (uint64_t)s->k->nparam });
    for (int i = 0; i < s->k->nparam; i++) {
      const nvf_param *p = &s->k->param[i];
      put_words(&t->kernels, 3, (const uint64_t[]){ (uint64_t)p->kind, (uint64_t)p->type, (uint64_t)p->written });
    }
  }
  put_word(&t->steps, (uint64_t)*at);
}

static void put_bind(writer *w, const nvf_bind *b) {
  put_word(w, (uint64_t)b->kind);
  if (b->kind == NVF_BUFFER) put_word(w, (uint64_t)b->buf);
  else put_word(w, b->bits);
  if (b->kind == NVF_SCALAR) put_word(w, (uint64_t)b->leaf);
  put_word(w, (uint64_t)b->offset);
}

static void put_step(tables *t, const nvf_step *s) {
  writer *w = &t->steps;
  uint64_t time;
  memcpy(&time, &s->time, sizeof time);
  put_kernel(t, s);
  put_text(t, w, s->hero ? s->hero : "");
  put_text(t, w, s->what ? s->what : "");
  put_words(w, 6,
            (const uint64_t[]){ (uint64_t)s->blocks, (uint64_t)s->grain, (uint64_t)s->bytes_read,
                                (uint64_t)s->bytes_written, (uint64_t)s->flops, time });
  for (int i = 0; i < s->k->nparam; i++) put_bind(w, &s->bind[i]);
  put_word(w, (uint64_t)s->nchecked);
  for (int i = 0; i < s->nchecked; i++) {
    const nvf_checked *c = &s->checked[i];
    put_text(t, w, c->op);
    put_words(w, 3, (const uint64_t[]){ (uint64_t)c->stmt, (uint64_t)c->axis, (uint64_t)c->extent });
  }
}

static void put_buffer(writer *w, const nvf_buf *b) {
  int64_t offset = b->kind == NVF_BTEMP ? b->offset : 0;
  put_words(w, 5,
            (const uint64_t[]){ (uint64_t)b->kind, (uint64_t)b->id, (uint64_t)b->bytes, (uint64_t)offset,
                                (uint64_t)(b->donor + 1) });
}

/* Whether the plan is all in what a row has. */
static int may_keep(const nvf_plan *p) {
  for (int i = 0; i < p->nstep; i++)
    if (p->step[i].gemm || p->step[i].routine) return 0;
  return p->device == NVB_CPU && p->nstep > 0;
}

void *nvf_plan_write(nvb_arena *a, const nvf_plan *p, size_t *bytes) {
  tables t = { .text = nvb_map_new(a), .kernel = nvb_map_new(a) };
  t.texts.arena = t.kernels.arena = t.steps.arena = a;
  writer counts = { .arena = a }, buffers = { .arena = a };
  if (!may_keep(p)) return NULL;
  for (int i = 0; i < p->nbuf; i++) put_buffer(&buffers, &p->buf[i]);
  for (int i = 0; i < p->nstep; i++) put_step(&t, &p->step[i]);
  put_words(&counts, 5,
            (const uint64_t[]){ (uint64_t)t.ntext, (uint64_t)t.nkernel, (uint64_t)p->nbuf, (uint64_t)p->nstep,
                                (uint64_t)p->temp_bytes });
  const writer *const part[] = { &counts, &t.texts, &t.kernels, &buffers, &t.steps };
  *bytes = 0;
  for (int i = 0; i < 5; i++) *bytes += (size_t)part[i]->byte.n;
  unsigned char *all = nvb_get(a, *bytes), *at = all;
  for (int i = 0; i < 5; at += part[i++]->byte.n)
    if (part[i]->byte.n) memcpy(at, part[i]->byte.at, (size_t)part[i]->byte.n);
  return all;
}

/* ---- reading. What cannot be is thrown, as NVM_ERR_VALUE. */
typedef struct reader {
  nvb_arena *arena;
  const unsigned char *at, *end;
  const nvg_graph *g;
  nvf_plan *p;
  int ntext, nkernel;
  const char **text;
  struct kept_kernel {
    const char *text;
    nvf_kernel *k;
  } *kernel; /* k: parameters alone */
} reader;

static void demand(const reader *r, int holds) {
  if (!holds) nvb_throw(r->arena, NVM_ERR_VALUE, "[plan] a kept plan is damaged");
}

static uint64_t get_word(reader *r) {
  uint64_t x = 0;
  for (int shift = 0;; shift += 7) {
    demand(r, r->at < r->end && shift < 64);
    x |= (uint64_t)(*r->at & 127) << shift;
    if (*r->at++ < 128) return x;
  }
}

/* A number of [0, most]. */
static int64_t get_number(reader *r, int64_t most) {
  uint64_t x = get_word(r);
  demand(r, most >= 0 && x <= (uint64_t)most);
  return (int64_t)x;
}

/* A number of things of which each takes a byte or more. */
static int get_count(reader *r) { return (int)get_number(r, r->end - r->at < INT32_MAX ? r->end - r->at : INT32_MAX); }

static const char *get_text(reader *r) { return r->text[get_number(r, r->ntext - 1)]; }

static const char *get_string(reader *r) {
  size_t n = (size_t)get_count(r);
  char *s = nvb_get(r->arena, n + 1);
  memcpy(s, r->at, n);
  r->at += n;
  demand(r, strlen(s) == n);
  return s;
}

static struct kept_kernel get_kernel(reader *r) {
  struct kept_kernel k = { get_text(r), NVB_NEW(r->arena, nvf_kernel) };
  k.k->title = kind;
  k.k->nstmt = (int)get_number(r, INT32_MAX);
  k.k->nparam = get_count(r);
  k.k->param = NVB_NEWN(r->arena, nvf_param, k.k->nparam + 1);
  for (int i = 0; i < k.k->nparam; i++) {
    nvf_param *p = &k.k->param[i];
    p->name = "";
    p->kind = (nvf_pkind)get_number(r, NVF_ROOTS);
    p->type = (nvm_dtype)get_number(r, NVM_NDTYPES - 1);
    p->written = (int)get_number(r, 1);
  }
  return k;
}

static int64_t output_bytes(const nvg_graph *g, int o) {
  return g->v[g->out[o]].size * nvg_size(g->v[g->out[o]].dtype);
}

static int64_t leaf_bytes(const nvg_graph *g, int l) {
  int64_t n = nvg_size(g->leaf[l].dtype);
  for (int d = 0; d < g->leaf[l].rank; d++) n *= g->leaf[l].shape[d];
  return n;
}

static nvf_buf get_buffer(reader *r) {
  const nvg_graph *g = r->g;
  nvf_buf b = { .kind = (nvf_bufkind)get_number(r, NVF_BTEMP) };
  int64_t ids = b.kind == NVF_BLEAF ? g->nleaf : b.kind == NVF_BOUT ? g->nout : INT32_MAX;
  b.id = (int)get_number(r, ids - 1);
  b.bytes = get_number(r, INT64_MAX);
  b.offset = get_number(r, r->p->temp_bytes);
  b.donor = (int)get_number(r, g->nleaf) - 1;
  if (b.kind == NVF_BTEMP) demand(r, b.bytes <= r->p->temp_bytes - b.offset);
  else demand(r, b.bytes == (b.kind == NVF_BOUT ? output_bytes(g, b.id) : leaf_bytes(g, b.id)));
  if (b.donor >= 0) demand(r, b.kind == NVF_BOUT && g->leaf[b.donor].donated && leaf_bytes(g, b.donor) == b.bytes);
  return b;
}

static nvf_bind get_bind(reader *r, const nvf_param *param) {
  nvf_bind b = { .kind = (nvf_pkind)get_number(r, NVF_ROOTS) };
  demand(r, b.kind == param->kind);
  if (b.kind == NVF_BUFFER) b.buf = (int)get_number(r, r->p->nbuf - 1);
  else b.bits = get_word(r);
  if (b.kind == NVF_SCALAR) b.leaf = (int)get_number(r, r->g->nleaf);
  int64_t within = b.kind == NVF_BUFFER ? r->p->buf[b.buf].bytes : b.leaf ? leaf_bytes(r->g, b.leaf - 1) : INT64_MAX;
  b.offset = get_number(r, within);
  if (b.leaf) demand(r, r->g->leaf[b.leaf - 1].weak_const && nvg_size(param->type) <= within - b.offset);
  return b;
}

static void get_step(reader *r, nvf_step *s) {
  const struct kept_kernel *k = &r->kernel[get_number(r, r->nkernel - 1)];
  s->k = k->k;
  s->text = k->text;
  s->hero = get_text(r);
  s->what = get_text(r);
  int64_t *const number[] = { &s->blocks, &s->grain, &s->bytes_read, &s->bytes_written, &s->flops };
  for (int i = 0; i < 5; i++) *number[i] = get_number(r, INT64_MAX);
  uint64_t time = get_word(r);
  memcpy(&s->time, &time, sizeof time);
  s->bind = NVB_NEWN(r->arena, nvf_bind, s->k->nparam + 1);
  for (int i = 0; i < s->k->nparam; i++) s->bind[i] = get_bind(r, &s->k->param[i]);
  s->nchecked = get_count(r);
  nvf_checked *c = NVB_NEWN(r->arena, nvf_checked, s->nchecked + 1);
  s->checked = c;
  for (int i = 0; i < s->nchecked; i++) {
    c[i].op = get_text(r);
    c[i].stmt = (int)get_number(r, INT32_MAX);
    c[i].axis = get_number(r, NVM_MAX_RANK);
    c[i].extent = get_number(r, INT64_MAX);
  }
}

static void read_plan(nvb_arena *a, void *arg) {
  reader *r = arg;
  nvf_plan *p = r->p;
  r->ntext = get_count(r);
  r->nkernel = get_count(r);
  p->nbuf = get_count(r);
  p->nstep = get_count(r);
  p->temp_bytes = get_number(r, INT64_MAX);
  r->text = NVB_NEWN(a, const char *, r->ntext + 1);
  for (int i = 0; i < r->ntext; i++) r->text[i] = get_string(r);
  r->kernel = NVB_NEWN(a, struct kept_kernel, r->nkernel + 1);
  for (int i = 0; i < r->nkernel; i++) r->kernel[i] = get_kernel(r);
  p->buf = NVB_NEWN(a, nvf_buf, p->nbuf + 1);
  for (int i = 0; i < p->nbuf; i++) p->buf[i] = get_buffer(r);
  p->step = NVB_NEWN(a, nvf_step, p->nstep + 1);
  for (int i = 0; i < p->nstep; i++) get_step(r, &p->step[i]);
  demand(r, r->at == r->end && p->nstep > 0);
}

nvf_plan *nvf_plan_read(nvb_arena *a, const void *bytes, size_t n, const nvg_graph *g) {
  nvf_plan *p = NVB_NEW(a, nvf_plan);
  *p = (nvf_plan){ .arena = a, .g = g, .given = g, .device = NVB_CPU };
  reader r = { .arena = a, .at = bytes, .end = (const unsigned char *)bytes + n, .g = g, .p = p };
  int status = nvb_protect(a, read_plan, &r);
  if (!status) return p;
  if (status == NVM_ERR_MEMORY || status == NVM_ERR_INTERRUPTED) nvb_throw(a, status, "%s", nvb_message());
  nvb_clear();
  return NULL;
}

/* ---- the disk cache */
nvf_plan *nvf_plan_find(nvb_arena *a, nvb_hash graph, const nvg_graph *g, const nvb_caps *caps) {
  void *row;
  size_t n;
  if (!nvb_store_get(kind, row_key(graph, caps), &row, &n)) return NULL;
  const void *bytes = nvb_dup(a, row, n);
  nvb_free(row);
  return nvf_plan_read(a, bytes, n, g);
}

typedef struct keeping { const nvf_plan *plan; nvb_hash key; } keeping;
static void keep_plan(nvb_arena *a, void *arg) {
  const keeping *k = arg;
  size_t n;
  const void *bytes = nvf_plan_write(a, k->plan, &n);
  if (bytes) nvb_store_put(kind, k->key, bytes, n);
}

/* A plan that cannot be kept is as good for this evaluation. */
void nvf_plan_keep(const nvf_plan *p, nvb_hash graph, const nvb_caps *caps) {
  keeping k = { p, row_key(graph, caps) };
  if (nvb_protect(p->arena, keep_plan, &k)) nvb_clear();
}

void nvf_plans_drop(void) { nvb_store_clear(kind); }
