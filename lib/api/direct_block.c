/* Computes large elementwise values block by block, with the maps that they alone use, so that what is not asked for
   stays in the cache; and hands such blocks to whoever reads a value in row-major order. Never decides which values are
   computed so (direct_run.c). */
#include <string.h>
#include "api/direct.h"

typedef nva_direct_run run;

/* Some indices of `axis`, one of each dimension before it, all of those behind it. */
typedef struct block { int rank, axis; int64_t each, n, at[NVM_MAX_RANK], shape[NVM_MAX_RANK]; } block;

/* ---- which maps are computed with their only reader */
static int operand_parts(const nvg_graph *g, const nvg_val *v) {
  int parts = 0;
  for (int i = 0; i < v->nin; i++) parts += nvg_parts(g->v[v->in[i]].dtype);
  return parts;
}
static int first_place(const nvg_val *v, int k) { /* of operand k among the operands */
  int i = 0;
  while (v->in[i] != v->in[k]) i++;
  return i;
}
void nva_direct_uses(nva_use *use, const nvg_graph *g) {
  memset(use, 0, sizeof *use * (size_t)g->n);
  for (int i = 0; i < g->nout; i++) use[g->out[i]].readers++;
  for (int i = 0; i < g->n; i++)
    for (int k = 0; k < g->v[i].nin; k++) use[g->v[i].in[k]].readers += first_place(&g->v[i], k) == k;
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    int sums = nva_direct_is_sum(g, v);
    if (!sums && (v->kind != NVG_VMAP || v->size <= NVA_BLOCK)) continue;
    use[i].repeated = operand_parts(g, v);
    use[i].slots = use[i].repeated + nvg_parts(v->dtype);
    for (int k = 0; k < v->nin; k++) {
      nva_use *x = &use[v->in[k]];
      const nvg_val *of = &g->v[v->in[k]];
      if (first_place(v, k) < k) continue;
      x->inside =
          of->kind == NVG_VMAP && of->size > NVA_BLOCK && x->readers == 1 && x->slots + use[i].slots <= NVA_SLOTS;
      if (x->inside) use[i].repeated += x->repeated, use[i].slots += x->slots;
    }
  }
}

/* ---- the blocks of a value, in row-major order */
static void start_blocks(block *b, const nvg_val *v) {
  int64_t inner = 1;
  int d = v->rank - 1;
  *b = (block){ .rank = v->rank };
  for (; d > 0 && inner * v->shape[d] <= NVA_BLOCK; d--) inner *= b->shape[d] = v->shape[d];
  int64_t most = NVA_BLOCK / inner, blocks = (v->shape[d] + most - 1) / most;
  b->axis = d;
  b->each = (v->shape[d] + blocks - 1) / blocks;
  b->shape[d] = b->each;
  for (int k = 0; k < d; k++) b->shape[k] = 1;
  b->n = b->each * inner;
}
static int next_block(block *b, const nvg_val *v) {
  int64_t inner = b->n / b->shape[b->axis], left;
  int d = b->axis;
  for (b->at[d] += b->shape[d]; b->at[d] >= v->shape[d]; b->at[d]++) {
    b->at[d] = 0;
    if (--d < 0) return 0;
  }
  left = v->shape[b->axis] - b->at[b->axis];
  b->shape[b->axis] = left < b->each ? left : b->each;
  b->n = b->shape[b->axis] * inner;
  return 1;
}

/* ---- slots: memory for parts of blocks, the lowest first, so that few of them are used and stay in the cache */
static void start_slots(run *r, const nva_use *use) {
  r->slots = nva_direct_work(r, use->slots * NVA_SLOT);
  r->free = ~0ull;
}
static char *take_slot(run *r) {
  int k = __builtin_ctzll(r->free);
  r->free &= r->free - 1;
  return r->slots + k * NVA_SLOT;
}
static void give_slot(run *r, const void *part) { /* of what may be no slot */
  uintptr_t offset = (uintptr_t)part - (uintptr_t)r->slots;
  if (offset < (uintptr_t)(NVA_SLOTS * NVA_SLOT)) r->free |= 1ull << offset / NVA_SLOT;
}

/* ---- blocks of what is in memory; to: where they are copied if they are apart, NULL: to a slot */
static const char *memory_block(run *r, int value, int part, const block *b, char *to) {
  const nva_elements *p = &r->elements[value];
  int size = nvg_size(nvg_real_of(r->g->v[value].dtype));
  const char *from = p->at[0] + part * size;
  for (int d = 0; d <= b->axis; d++) from += b->at[d] * p->stride[d];
  if (nva_direct_is_packed(p->stride, b->rank, b->shape, size)) return from;
  int64_t stride[NVM_MAX_RANK];
  to = to ? to : take_slot(r);
  nva_direct_set_packed(stride, b->rank, b->shape, size);
  nva_move_strided(to, stride, from, p->stride, b->rank, b->shape, (size_t)size);
  return to;
}
/* Are all blocks of the value the same copy? */
static int is_repeated(const run *r, int value, const block *b) {
  const nvg_val *v = &r->g->v[value];
  const nva_elements *p = &r->elements[value];
  for (int d = 0; d <= b->axis && v->size > 1; d++)
    if (p->stride[d] && v->shape[d] > 1) return 0;
  return v->size == 1 || !nva_direct_is_packed(p->stride, b->rank, b->shape, nvg_size(v->dtype));
}
static void repeat_block(run *r, int value, const block *b) {
  const nvg_val *v = &r->g->v[value];
  for (int part = 0; part < nvg_parts(v->dtype); part++)
    r->repeated[2 * value + part] = v->size == 1 ? nva_direct_packed(r, value, part, b->n)
                                                 : memory_block(r, value, part, b, nva_direct_work(r, NVA_SLOT));
}
/* Makes the copies that all blocks of the value share; b: the first block. */
static void repeat_operands(run *r, int value, const block *b) {
  const nvg_val *v = &r->g->v[value];
  for (int i = 0; i < v->nin; i++) {
    int x = v->in[i];
    r->repeated[2 * x] = NULL;
    if (r->use[x].inside) repeat_operands(r, x, b);
    else if (is_repeated(r, x, b)) repeat_block(r, x, b);
  }
}

/* ---- blocks of maps */
static void compute_block(run *r, int value, const block *b, void *out[2]);
/* The parts of a value's block, which the caller gives back; number of parts. */
static int find_block(run *r, int value, const block *b, const void *part[2]) {
  int parts = nvg_parts(r->g->v[value].dtype);
  void *out[2] = { NULL, NULL };
  if (r->use[value].inside) compute_block(r, value, b, out);
  for (int k = 0; k < parts; k++)
    part[k] = out[k]                   ? out[k]
              : r->repeated[2 * value] ? r->repeated[2 * value + k]
                                       : memory_block(r, value, k, b, NULL);
  return parts;
}
/* out: NULL: slots, which are taken when the operands are there */
static void compute_block(run *r, int value, const block *b, void *out[2]) {
  const nvg_val *v = &r->g->v[value];
  const void *in[NVA_PARTS];
  int n = 0, at[NVA_PARTS];
  for (int i = 0, k; i < v->nin; i++) {
    at[i] = n;
    if ((k = first_place(v, i)) == i) n += find_block(r, v->in[i], b, in + n);
    else
      for (int m = 0; m < nvg_parts(r->g->v[v->in[i]].dtype); m++) in[n++] = in[at[k] + m];
  }
  for (int k = 0; k < nvg_parts(v->dtype); k++) out[k] = out[k] ? out[k] : take_slot(r);
  nvg_frag_apply(v->frag, in, out, b->n);
  for (int i = 0; i < n; i++) give_slot(r, in[i]);
}

void nva_direct_map(run *r, int value, char *to) {
  const nvg_val *v = &r->g->v[value];
  int parts = nvg_parts(v->dtype);
  block b;
  start_blocks(&b, v);
  start_slots(r, &r->use[value]);
  repeat_operands(r, value, &b);
  do {
    void *out[2] = { parts == 1 ? to : NULL, NULL };
    compute_block(r, value, &b, out);
    if (parts == 2) nva_direct_join(to, out[0], out[1], nvg_size(v->dtype) / 2, b.n);
    for (int k = 0; k < parts && parts == 2; k++) give_slot(r, out[k]);
    to += b.n * nvg_size(v->dtype);
  } while (next_block(&b, v));
}

/* ---- sums */
int nva_direct_is_sum(const nvg_graph *g, const nvg_val *v) {
  const nvg_frag *f = v->frag;
  int parts = nvg_parts(v->dtype), adds = v->kind == NVG_VRED && v->nin == 1 && f->ninst == 3 * parts;
  nvm_dtype type = nvg_real_of(v->dtype);
  for (int k = 0; k < parts && adds; k++) {
    const nvg_inst *x = &f->inst[f->result[k]];
    adds = x->prim == NVG_ADD && x->a == k && x->b == parts + k;
  }
  return adds && nvg_sum_can(type) && g->v[v->in[0]].size > 0;
}
static int is_product(const nvg_val *v) {
  const nvg_frag *f = v->kind == NVG_VMAP ? v->frag : NULL;
  return f && f->nparam == 2 && f->ninst == 3 && f->inst[2].prim == NVG_MUL && f->inst[2].a != f->inst[2].b;
}
/* Adds all blocks of an operand to the sums of its parts; products are added as they are made. */
static void add_blocks(run *r, int operand, const nva_use *use, nvg_sum *s) {
  const nvg_val *x = &r->g->v[operand];
  const void *part[2], *factor[2] = { NULL, NULL };
  int inside = r->use[operand].inside, product = inside && is_product(x);
  block b;
  start_blocks(&b, x);
  start_slots(r, use);
  r->repeated[2 * operand] = NULL;
  if (inside) repeat_operands(r, operand, &b);
  do {
    int parts = find_block(r, product ? x->in[0] : operand, &b, part);
    if (product) find_block(r, x->in[1], &b, factor);
    for (int k = 0; k < parts; k++) {
      nvg_sum_add(&s[k], part[k], factor[k], b.n);
      give_slot(r, part[k]);
      if (product) give_slot(r, factor[k]);
    }
  } while (next_block(&b, x));
}
void nva_direct_sum(run *r, int value, char *to) {
  const nvg_val *v = &r->g->v[value], *x = &r->g->v[v->in[0]];
  nvm_dtype type = nvg_real_of(v->dtype);
  int parts = nvg_parts(v->dtype), size = nvg_size(type);
  int64_t len = 1, inner = 1;
  nvg_sum s[2];
  char *out[2] = { to, NULL };
  for (int d = (int)v->attr[0]; d < x->rank; d++) *(d < v->attr[0] + v->attr[1] ? &len : &inner) *= x->shape[d];
  for (int k = 0; k < parts; k++) {
    if (parts == 2) out[k] = nva_direct_work(r, v->size * size);
    char *memory = nva_direct_work(r, nvg_sum_bytes(type, len, inner, v->chunk, v->lanes));
    nvg_sum_start(&s[k], type, len, inner, v->chunk, v->lanes, memory, out[k]);
  }
  if (x->size > NVA_BLOCK) add_blocks(r, v->in[0], &r->use[value], s);
  else
    for (int k = 0; k < parts; k++) nvg_sum_add(&s[k], nva_direct_packed(r, v->in[0], k, x->size), NULL, x->size);
  if (parts == 2) nva_direct_join(to, out[0], out[1], size, v->size);
}
