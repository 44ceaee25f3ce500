/* Computes a simplified graph value by value: views are strides, elementwise functions are run by the interpreter of
   fragments, everything else moves elements. Never decides whether a graph is computed so (direct.c does), nor what a
   value is. */
#include <string.h>
#include "api/direct.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/profile.h"

typedef nva_direct_run run;

/* ---- memory */
char *nva_direct_result(run *r, int value, int64_t bytes) {
  if (value >= 0 && r->out[value]) return r->out[value];
  char *at = r->result;
  r->result += nva_direct_align(bytes);
  return at;
}
char *nva_direct_work(run *r, int64_t bytes) {
  char *at = r->work;
  r->work += nva_direct_align(bytes);
  return at;
}
void nva_direct_set_packed(int64_t *stride, int rank, const int64_t *shape, int64_t size) {
  for (int d = rank - 1; d >= 0; d--) {
    stride[d] = size;
    size *= shape[d];
  }
}
int nva_direct_is_packed(const int64_t *stride, int rank, const int64_t *shape, int64_t size) {
  for (int d = rank - 1; d >= 0; d--) {
    if (shape[d] != 1 && stride[d] != size) return 0;
    size *= shape[d];
  }
  return 1;
}
/* Sets the strides of a value whose elements are packed; returns where they are. */
static char *new_packed(run *r, int value) {
  const nvg_val *v = &r->g->v[value];
  int size = nvg_size(v->dtype);
  nva_direct_set_packed(r->elements[value].stride, v->rank, v->shape, size);
  return r->elements[value].at[0] = nva_direct_result(r, value, v->size * size);
}
/* Repeats an element n times; copies double, so that few calls make many elements. */
static void repeat_element(char *to, const char *element, size_t size, size_t n) {
  memcpy(to, element, size);
  for (size_t have = 1; have < n; have *= 2) memcpy(to + have * size, to, size * (have < n - have ? have : n - have));
}
char *nva_direct_packed(run *r, int value, int part, int64_t n) {
  const nvg_val *v = &r->g->v[value];
  const nva_elements *p = &r->elements[value];
  int size = nvg_size(nvg_real_of(v->dtype));
  char *from = p->at[0] + part * size;
  if (nva_direct_is_packed(p->stride, v->rank, v->shape, size) && (v->size == n || v->size > 1)) return from;
  char *to = nva_direct_work(r, n * size);
  if (v->size == 1) return repeat_element(to, from, (size_t)size, (size_t)n), to;
  int64_t to_stride[NVM_MAX_RANK];
  nva_direct_set_packed(to_stride, v->rank, v->shape, size);
  nva_move_strided(to, to_stride, from, p->stride, v->rank, v->shape, (size_t)size);
  return to;
}
void nva_direct_join(char *to, const char *re, const char *im, int size, int64_t n) {
  const int64_t apart = 2 * size, each = size;
  nva_move_strided(to, &apart, re, &each, 1, &n, (size_t)size);
  nva_move_strided(to + size, &apart, im, &each, 1, &n, (size_t)size);
}

/* ---- elementwise */
static void run_map(run *r, int value) {
  const nvg_val *v = &r->g->v[value];
  const void *in[NVA_PARTS];
  void *out[2];
  int n = 0, parts = nvg_parts(v->dtype), size = nvg_size(v->dtype) / parts;
  if (r->use && r->use[value].inside) return;
  char *result = new_packed(r, value);
  if (v->size > NVA_BLOCK) {
    nva_direct_map(r, value, result);
    return;
  }
  for (int i = 0; i < v->nin; i++)
    for (int k = 0; k < nvg_parts(r->g->v[v->in[i]].dtype); k++) in[n++] = nva_direct_packed(r, v->in[i], k, v->size);
  for (int k = 0; k < parts; k++) out[k] = parts == 1 ? result : nva_direct_work(r, v->size * size);
  nvg_frag_apply(v->frag, in, out, v->size);
  if (parts == 2) nva_direct_join(result, out[0], out[1], size, v->size);
}

static void run_reduction(run *r, int value) {
  const nvg_val *v = &r->g->v[value];
  if (nva_direct_is_sum(r->g, v)) nva_direct_sum(r, value, new_packed(r, value));
  else {
    nva_direct_set_packed(r->elements[value].stride, v->rank, v->shape, nvg_size(v->dtype));
    nva_direct_reduce(r, value);
  }
}

/* ---- views */
static void run_view(run *r, int value) {
  const nvg_val *v = &r->g->v[value], *x = &r->g->v[v->in[0]];
  nva_elements *to = &r->elements[value];
  const nva_elements *from = &r->elements[v->in[0]];
  to->at[0] = from->at[0];
  memcpy(to->stride, from->stride, sizeof *to->stride * (size_t)x->rank);
  int64_t offset = 0, stride[NVM_MAX_RANK];
  if (nvg_view_strides(&offset, to->stride, x, v)) {
    to->at[0] += offset;
    return;
  }
  int size = nvg_size(v->dtype);
  char *copy = nva_direct_result(r, value, x->size * size);
  nva_direct_set_packed(stride, x->rank, x->shape, size);
  nva_move_strided(copy, stride, from->at[0], from->stride, x->rank, x->shape, (size_t)size);
  nva_direct_set_packed(to->stride, v->rank, v->shape, size);
  to->at[0] = copy;
}

/* ---- operations that move elements */
/* Moves `shape` elements, or the one element of a 0-d operand, from `from` on to `to` on in the new value. */
static void put_operand(run *r, int value, int64_t to, int operand, int64_t from, const int64_t *shape) {
  const nvg_val *v = &r->g->v[value];
  const nva_elements *x = &r->elements[operand];
  const int64_t none[NVM_MAX_RANK] = { 0 };
  nva_move_strided(r->elements[value].at[0] + to, r->elements[value].stride, x->at[0] + from,
                   r->g->v[operand].rank ? x->stride : none, v->rank, shape, (size_t)nvg_size(v->dtype));
}
static void run_pad(run *r, int value) {
  const nvg_val *v = &r->g->v[value];
  int64_t to = 0;
  new_packed(r, value);
  for (int d = 0; d < v->rank; d++) to += v->attr[d] * r->elements[value].stride[d];
  put_operand(r, value, 0, v->in[1], 0, v->shape);
  put_operand(r, value, to, v->in[0], 0, r->g->v[v->in[0]].shape);
}
static void run_concat(run *r, int value) {
  const nvg_val *v = &r->g->v[value];
  new_packed(r, value);
  for (int64_t i = 0, at = 0; i < v->nin; at += r->g->v[v->in[i++]].shape[v->attr[0]])
    put_operand(r, value, at * r->elements[value].stride[v->attr[0]], v->in[i], 0, r->g->v[v->in[i]].shape);
}
static void run_roll(run *r, int value) {
  const nvg_val *v = &r->g->v[value];
  int64_t axis = v->attr[0], by = v->attr[1], n = v->shape[axis], shape[NVM_MAX_RANK];
  new_packed(r, value);
  memcpy(shape, v->shape, sizeof *shape * (size_t)v->rank);
  shape[axis] = n - by;
  put_operand(r, value, 0, v->in[0], by * r->elements[v->in[0]].stride[axis], shape);
  shape[axis] = by;
  put_operand(r, value, (n - by) * r->elements[value].stride[axis], v->in[0], 0, shape);
}
static void run_iota(run *r, int value) {
  const nvg_val *v = &r->g->v[value];
  nva_elements *p = &r->elements[value];
  int64_t n = v->shape[v->attr[0]], *at = (void *)(p->at[0] = nva_direct_result(r, -1, n * 8));
  for (int64_t i = 0; i < n; i++) at[i] = i;
  for (int d = 0; d < v->rank; d++) p->stride[d] = d == v->attr[0] ? 8 : 0;
}
static void run_const(run *r, int value) {
  const nvg_val *v = &r->g->v[value];
  char *at = r->elements[value].at[0] = nva_direct_result(r, -1, 16);
  int parts = nvg_parts(v->dtype), size = nvg_size(v->dtype) / parts;
  for (int i = 0; i < parts; i++) memcpy(at + i * size, &v->attr[i], (size_t)size);
}

/* ---- matrix products */
static const char *matrix_at(const char *first, const int64_t *stride, const nvg_val *v, int64_t i) { /* of batch i */
  for (int d = v->rank - 3; d >= 0; i /= v->shape[d--]) first += i % v->shape[d] * stride[d];
  return first;
}
/* The left operand may have any strides, the right one has rows that are not apart. */
static void run_product(run *r, int value) {
  const nvg_val *v = &r->g->v[value], *x = &r->g->v[v->in[0]], *y = &r->g->v[v->in[1]];
  const nva_elements *a = &r->elements[v->in[0]], *b = &r->elements[v->in[1]];
  int64_t size = nvg_size(v->dtype), packed[NVM_MAX_RANK];
  int last = v->rank - 1, apart = y->shape[last] > 1 && b->stride[last] != size;
  const char *right = apart ? nva_direct_packed(r, v->in[1], 0, y->size) : b->at[0];
  const int64_t *stride = apart ? packed : b->stride;
  nva_direct_set_packed(packed, y->rank, y->shape, size);
  nvg_product p = { .type = v->dtype, .m = v->shape[last - 1], .n = v->shape[last], .k = x->shape[last] };
  p.a_row = a->stride[last - 1] / size, p.a_col = a->stride[last] / size, p.b_row = stride[last - 1] / size;
  char *d = new_packed(r, value);
  for (int64_t i = 0; i < v->size / (p.m * p.n); i++, d += p.m * p.n * size) {
    p.a = matrix_at(a->at[0], a->stride, v, i);
    p.b = matrix_at(right, stride, v, i);
    p.d = d;
    nvg_product_run(&p);
  }
}

/* ---- indices */
static int run_gather(run *r, int value) {
  const nvg_val *v = &r->g->v[value], *x = &r->g->v[v->in[0]];
  int64_t axis = v->attr[0], at[NVM_MAX_RANK] = { 0 }, by[NVM_MAX_RANK], offset = 0, size = nvg_size(v->dtype);
  const int64_t *stride = r->elements[v->in[0]].stride;
  const int64_t *index = (const void *)nva_direct_packed(r, v->in[1], 0, v->size);
  for (int d = 0; d < v->rank; d++) by[d] = d == axis || x->shape[d] == 1 ? 0 : stride[d];
  char *to = new_packed(r, value);
  for (int64_t i = 0; i < v->size; i++, to += size) {
    if (index[i] < 0 || index[i] >= x->shape[axis]) return NVM_ERR_INDEX;
    memcpy(to, r->elements[v->in[0]].at[0] + offset + index[i] * stride[axis], (size_t)size);
    for (int d = v->rank - 1; d >= 0; d--) {
      offset += by[d];
      if (++at[d] < v->shape[d]) break;
      offset -= by[d] * v->shape[d];
      at[d] = 0;
    }
  }
  return NVM_OK;
}
static int run_scatter(run *r, int value) {
  const nvg_val *v = &r->g->v[value];
  int64_t n = r->g->v[v->in[0]].size;
  const int64_t *index = (const void *)nva_direct_packed(r, v->in[0], 0, n);
  int64_t *to = (void *)new_packed(r, value);
  memset(to, 0, (size_t)v->size * 8);
  for (int64_t i = 0; i < n; i++) {
    if (index[i] < 0 || index[i] >= v->size) return NVM_ERR_INDEX;
    to[index[i]] = i + 1;
  }
  return NVM_OK;
}

/* ---- all values */
static int run_value(run *r, int value, char *const *leaf) {
  const nvg_val *v = &r->g->v[value];
  nva_elements *p = &r->elements[value];
  switch (v->kind) {
  case NVG_VLEAF:
    p->at[0] = leaf[v->leaf];
    for (int d = 0; d < v->rank; d++) p->stride[d] = r->g->leaf[v->leaf].stride[d] * nvg_size(v->dtype);
    return NVM_OK;
  case NVG_VCONST: run_const(r, value); return NVM_OK;
  case NVG_VIOTA: run_iota(r, value); return NVM_OK;
  case NVG_VMAP: run_map(r, value); return NVM_OK;
  case NVG_VRED: run_reduction(r, value); return NVM_OK;
  case NVG_VPICK:
    p->at[0] = r->elements[v->in[0]].at[v->attr[0]];
    nva_direct_set_packed(p->stride, v->rank, v->shape, nvg_size(v->dtype));
    return NVM_OK;
  case NVG_VPAD: run_pad(r, value); return NVM_OK;
  case NVG_VCONCAT: run_concat(r, value); return NVM_OK;
  case NVG_VROLL: run_roll(r, value); return NVM_OK;
  case NVG_VCALL: run_product(r, value); return NVM_OK;
  case NVG_VGATHER: return run_gather(r, value);
  case NVG_VSCATTER: return run_scatter(r, value);
  default: run_view(r, value); return NVM_OK;
  }
}
/* Copies a value to its output unless it was computed there. */
static void give_output(const run *r, int value, char *to) {
  const nvg_val *v = &r->g->v[value];
  const nva_elements *p = &r->elements[value];
  int64_t stride[NVM_MAX_RANK];
  if (p->at[0] == to) return;
  nva_direct_set_packed(stride, v->rank, v->shape, nvg_size(v->dtype));
  nva_move_strided(to, stride, p->at[0], p->stride, v->rank, v->shape, (size_t)nvg_size(v->dtype));
}
static int64_t table_bytes(const nvg_graph *g, int large) {
  size_t each = sizeof(nva_elements) + sizeof(char *) + (large ? sizeof(nva_use) + 2 * sizeof(char *) : 0);
  return nva_direct_align((int64_t)each * g->n);
}
static run start_run(const nvg_graph *g, const nva_direct_cost *cost, char *tables, char *const *out) {
  run r = { .g = g, .elements = (void *)tables };
  r.out = (char **)(void *)(r.elements + g->n);
  for (int i = 0; i < g->n; i++) r.out[i] = NULL;
  for (int i = 0; i < g->nout; i++) r.out[g->out[i]] = out[i];
  if (!cost->large) return r;
  r.repeated = (const char **)(void *)(r.out + g->n);
  r.use = (void *)(r.repeated + 2 * (size_t)g->n);
  nva_direct_uses(r.use, g);
  return r;
}
/* memory: of the results, `bytes` of them, and then of work. */
static int run_all(run *r, char *memory, int64_t bytes, char *const *leaf, char *const *out) {
  const nvg_graph *g = r->g;
  int status = NVM_OK;
  r->result = memory;
  for (int i = 0; i < g->n && !status; i++) {
    r->work = memory + bytes;
    if (r->place) r->result = memory + r->place[i].at;
    status = run_value(r, i, leaf);
  }
  for (int i = 0; i < g->nout && !status; i++) give_output(r, g->out[i], out[i]);
  return status;
}
/* A run of large values, or of many: its memory is the heap's, and results take the places of others. */
static int run_large(const nvg_graph *g, const nva_direct_cost *cost, char *const *leaf, char *const *out) {
  nva_direct_cost large = { .large = 1 }; /* `use` decides over places */
  int64_t tables = table_bytes(g, 1);
  char *table = nvb_alloc_kept((size_t)(tables + (int64_t)sizeof(nva_place) * g->n));
  if (!table) return nvb_fail_memory();
  run r = start_run(g, &large, table, out);
  r.place = (void *)(table + tables);
  int64_t bytes = nva_direct_place(g, r.place, r.use);
  nvd_buf *memory = nvd_buf_new((size_t)(bytes + cost->work));
  int status = memory ? run_all(&r, memory->data, bytes, leaf, out) : nvb_status();
  nvd_buf_unref(memory);
  nvb_free_kept(table, (size_t)(tables + (int64_t)sizeof(nva_place) * g->n));
  return status;
}
static int compute(const nvg_graph *g, const nva_direct_cost *cost, char *const *leaf, char *const *out) {
  enum { LITTLE = 32 << 10 };
  int64_t tables = table_bytes(g, cost->large);
  if (tables + cost->result + cost->work > LITTLE) return run_large(g, cost, leaf, out);
  char memory[LITTLE] __attribute__((aligned(64)));
  run r = start_run(g, cost, memory, out);
  return run_all(&r, memory + tables, cost->result, leaf, out);
}
int nva_direct_compute(const nvg_graph *g, const nva_direct_cost *cost, char *const *leaf, char *const *out) {
  int64_t start = nvd_is_profiling() ? nvb_clock_ns() : 0;
  int status = compute(g, cost, leaf, out);
  if (start && !status) nva_direct_note(g, start);
  return status;
}

/* ---- what it takes: times that were measured for 1 to 10,000 elements */
static double time_of(const nvg_frag *f, double n) {
  enum { BLOCK = 256 };
  double steps = f->ninst > f->cost ? f->ninst : f->cost;
  return steps * (n * 0.25 + 12 * (1 + n / BLOCK));
}
static void cost_of_map(nva_direct_cost *c, const nvg_val *v, int64_t read, const nva_use *use) {
  int64_t bytes = nva_direct_align(v->size * nvg_size(v->dtype));
  int large = v->size > NVA_BLOCK;
  c->ns += time_of(v->frag, (double)v->size);
  c->result = use && use->inside ? 0 : bytes;
  c->work = !large ? read + 2 * bytes : use->inside ? 0 : nva_direct_block_bytes(use);
}
static void cost_of_sum(nva_direct_cost *c, const nvg_graph *g, const nvg_val *v, const nva_use *use) {
  enum { SPARE = 1 << 10 };
  const nvg_val *x = &g->v[v->in[0]];
  int64_t inner = 1, parts = nvg_parts(v->dtype), size = nvg_size(v->dtype);
  for (int64_t d = v->attr[0] + v->attr[1]; d < x->rank; d++) inner *= x->shape[d];
  int64_t sums = nvg_sum_bytes(nvg_real_of(v->dtype), x->size / v->size, inner, v->chunk, v->lanes);
  c->ns += 0.5 * (double)x->size + 50 * (double)v->size / (double)inner;
  c->result = nva_direct_align(v->size * size);
  c->work = parts * sums + 2 * c->result + SPARE;
  c->work += x->size > NVA_BLOCK ? nva_direct_block_bytes(use) : nva_direct_align(x->size * size);
}
static double time_of_product(const nvg_val *v, double inner) {
  /* what a term takes longer whose row has too few columns for a vector: in many rows, in few of them */
  const double of_column = 0.15, of_few = 1.2;
  int64_t columns = v->shape[v->rank - 1], rows = v->shape[v->rank - 2];
  double narrow = columns >= 8 ? 0 : rows < 4 ? of_few : of_column;
  return inner * (double)v->size * (0.0125 * nvg_size(v->dtype) + narrow);
}
int nva_direct_cost_of(nva_direct_cost *c, const nvg_graph *g, const nvg_val *v, const nva_use *use) {
  enum { EACH = 100, LEVELS = 24, SPARE = 8 << 10 }; /* EACH: to run a value of any size */
  int64_t bytes = nva_direct_align(v->size * nvg_size(v->dtype)), read = 0;
  double n = (double)v->size, most = n;
  int parts = 0;
  for (int i = 0; i < v->nin; i++) {
    const nvg_val *x = &g->v[v->in[i]];
    int64_t size = x->size > v->size ? x->size : v->size; /* an operand of one element is repeated */
    read += 2 * nva_direct_align(size * nvg_size(x->dtype));
    parts += nvg_parts(x->dtype);
    most = (double)size > most ? (double)size : most;
  }
  *c = (nva_direct_cost){ .ns = EACH };
  switch (v->kind) {
  case NVG_VLEAF: case NVG_VPICK: case NVG_VPERMUTE: case NVG_VSLICE: case NVG_VEXPAND: return 1;
  case NVG_VCONST: c->result = 64; return 1;
  case NVG_VIOTA:
    c->ns += (double)v->shape[v->attr[0]] / 2;
    c->result = nva_direct_align(v->shape[v->attr[0]] * 8);
    return 1;
  case NVG_VMAP: cost_of_map(c, v, read, use); return parts <= NVA_PARTS;
  case NVG_VRED:
    if (nva_direct_is_sum(g, v)) return cost_of_sum(c, g, v, use), 1;
    c->ns += time_of(v->frag, most) + LEVELS * time_of(v->frag, n) + most;
    c->result = read;
    c->work = 4 * read + SPARE;
    return v->nin <= NVA_STATES;
  case NVG_VCALL:
    c->ns += time_of_product(v, (double)g->v[v->in[0]].shape[v->rank - 1]) + (double)g->v[v->in[1]].size;
    c->result = bytes;
    c->work = read;
    return nvg_product_can(v->dtype) && g->v[v->in[0]].dtype == v->dtype && v->size && !nvb_int(NVB_REPRODUCIBLE);
  case NVG_VGATHER:
    c->ns += 5 * n;
    c->result = bytes;
    c->work = nva_direct_align(v->size * 8);
    return 1;
  case NVG_VRESHAPE: case NVG_VPAD: case NVG_VCONCAT: case NVG_VROLL: case NVG_VSCATTER:
    c->ns += 2 * most;
    c->result = bytes;
    c->work = read;
    return 1;
  default: return 0;
  }
}
