/* Cross-warp reduction buffer in shared memory: each warp stores its partial result under its number in the reduction
   tree, without waiting; after the loops every warp loads all partials and merges the tree itself, so the whole axis
   costs one barrier. In a cluster each CTA has a buffer, and a warp sends its partial to all of them through DSMEM,
   with an mbarrier that counts the bytes; where that is impossible, a CTA stores to its own buffer, and after a cluster
   barrier each CTA reads those of the others. Decides where partials lie, never the order in which they merge. */
#include "codegen/cuda/emit.h"
#include "frag/dtype.h"

enum { LANES = 32, EACH = 32 }; /* EACH: partials that a lane merges by itself, at most */

struct nvcu_cross_warp {
  const nvf_stmt *s;
  const nvf_layout *acc;
  int64_t bit;               /* stride: the digits of the axis from this one on are merged through the buffer */
  int n, each, kept;         /* partials of the axis; of a lane; buffers, one for each index of warps on other axes */
  int size;                  /* slots of one buffer */
  int ny, loop;              /* result items; digit of acc that is a loop, -1: none */
  int block;                 /* digit of acc that the CTAs of a cluster divide, -1: none */
  const char *dsmem_barrier; /* the mbarrier of partials from other CTAs; NULL: they are read from the other CTAs */
  const char *visited;       /* iterations of the loop that are done; NULL: all */
  nvcu_smem *smem;
  int64_t *off; /* [result item][state] */
};

/* By how much the number of a partial grows with digit d; acc has no sequence digits. */
static int step_of(const nvcu_cross_warp *b, const nvf_digit *d) {
  int n = 1;
  for (int i = 0; i < b->acc->n; i++) {
    const nvf_digit *x = &b->acc->d[i];
    n *= x->axis == d->axis && x->stride >= b->bit && x->stride < d->stride ? x->extent : 1;
  }
  return n;
}

/* The lowest stride of the axis above which only warps, CTAs and loops are left; 0 if lanes or items lie above it, or
   if lanes have indices of another axis. */
static int64_t lowest_stride(const nvf_layout *acc, int axis) {
  int64_t low = INT64_MAX;
  for (int i = 0; i < acc->n; i++) {
    const nvf_digit *d = &acc->d[i];
    if (d->axis == axis && d->extent > 1 && (d->level == 'w' || d->level == 'c' || d->level == 'I') && d->stride < low)
      low = d->stride;
  }
  for (int i = 0; i < acc->n; i++) {
    const nvf_digit *d = &acc->d[i];
    int above = d->axis == axis && d->stride * d->extent > low;
    if (d->extent > 1 && (above ? d->level == 'l' || d->level == 'i' : d->axis != axis && d->level == 'l')) return 0;
  }
  return low;
}

/* Does each warp of each CTA of the cluster store once per iteration? Only then the number of bytes that arrive is
   known. */
static int is_sent(const nvcu_em *e, const nvcu_cross_warp *b) {
  int warps = 1, ok = b->block >= 0 && b->acc->d[b->block].extent == e->cluster && nvcu_dsmem_is_allowed(e);
  for (int i = 0; i < b->acc->n; i++) warps *= b->acc->d[i].level == 'w' ? b->acc->d[i].extent : 1;
  for (int i = 0; i < b->s->nout; i++) ok &= nvg_size(e->k->tile[b->s->out[i]].type) >= 4;
  return ok && warps == e->warps;
}

nvcu_cross_warp *nvcu_cross_warp_new(nvcu_em *e, const nvf_stmt *s, const nvf_layout *acc, int ny, int again) {
  nvcu_cross_warp *b = NVB_NEW(e->a, nvcu_cross_warp);
  int64_t n = 1, at = 0;
  int loops = 0, warps = 0;
  *b = (nvcu_cross_warp){ .s = s, .acc = acc, .ny = ny, .loop = -1, .block = -1, .each = 1, .kept = 1 };
  b->bit = lowest_stride(acc, s->axis);
  for (int i = 0; i < acc->n && b->bit; i++) {
    const nvf_digit *d = &acc->d[i];
    if (d->axis != s->axis && d->level == 'w') b->kept *= d->extent;
    if (d->axis != s->axis || d->stride < b->bit || d->extent == 1) continue;
    n *= d->extent;
    loops += d->level == 'I';
    warps += d->level == 'w';
    if (d->level == 'I') b->loop = i;
    if (d->level == 'c') b->block = i;
  }
  if (!b->bit || loops > 1 || !(b->block >= 0 || (loops && warps)) || n > LANES * EACH) return NULL;
  /* a cluster's buffer is written once: no barrier precedes a second write */
  if (b->block >= 0 && (e->nested || again)) return NULL;
  b->n = (int)n;
  while (LANES * b->each < b->n) b->each *= 2;
  b->size = b->each > 1 ? LANES * b->each : b->n;
  b->off = NVB_NEWN(e->a, int64_t, ny * s->nout);
  for (int k = 0; k < ny * s->nout; k++) {
    int size = nvg_size(e->k->tile[s->out[k % s->nout]].type);
    b->off[k] = at = (at + size - 1) / size * size;
    at += (int64_t)size * b->size * b->kept;
  }
  b->smem = nvcu_smem_new(e, at, 1);
  b->dsmem_barrier = is_sent(e, b) ? nvcu_dsmem_barrier_new(e) : NULL;
  return b;
}

int64_t nvcu_cross_warp_bit(const nvcu_cross_warp *b) { return b->bit; }
void nvcu_cross_warp_limit(nvcu_cross_warp *b, const char *visited) {
  b->visited = nvcu_is_number(visited) ? NULL : visited;
}

void nvcu_cross_warp_open(nvcu_em *e, const nvcu_cross_warp *b) {
  nvcu_may_write(e, b->smem);
  if (b->dsmem_barrier && b->loop >= 0) nvcu_dsmem_open(e); /* waits once, not in each iteration */
}

static const char *slots_text(nvcu_em *e, const nvcu_cross_warp *b, int k) {
  return nvcu_smem_at(e, b->smem, b->off[k], nvcu_type(e->k->tile[b->s->out[k % b->s->nout]].type));
}

/* Offset of the buffer for this warp's indices of the other axes. */
static nvcu_xv kept_part(nvcu_em *e, const nvcu_cross_warp *b) {
  nvcu_xv at = { 0 };
  int64_t step = b->size;
  for (int i = 0; i < b->acc->n; i++) {
    const nvf_digit *d = &b->acc->d[i];
    if (d->axis == b->s->axis || d->level != 'w') continue;
    at = nvcu_add(e, at, nvcu_times(e, nvcu_digit(e, b->acc, i, 0), step), 1);
    step *= d->extent;
  }
  return at;
}

/* The slot of this warp's partial. A lane merges `each` consecutive partials, while lanes load consecutive slots. */
static const char *slot_of_warp(nvcu_em *e, const nvcu_cross_warp *b) {
  nvcu_xv at = { 0 }, kept = kept_part(e, b);
  for (int i = 0; i < b->acc->n; i++)
    if (b->acc->d[i].axis == b->s->axis && b->acc->d[i].stride >= b->bit)
      at = nvcu_add(e, at, nvcu_times(e, nvcu_digit(e, b->acc, i, 0), step_of(b, &b->acc->d[i])), 1);
  if (b->each == 1) at = nvcu_add(e, at, kept, 1);
  const char *number = nvcu_index_text(e, &at);
  if (b->each == 1) return number;
  number = nvcu_let(e, "unsigned", number);
  return nvcu_text(e, "%s + %s %% %d * %d + %s / %d", nvcu_index_text(e, &kept), number, b->each, LANES, number,
                   b->each);
}

void nvcu_cross_warp_store(nvcu_em *e, nvcu_cross_warp *b, const char *const *const *v) {
  const char *slot = slot_of_warp(e, b);
  if (b->dsmem_barrier) nvcu_dsmem_open(e);
  nvcu_open(e, b->dsmem_barrier ? "if (lane < %d)" : "if (lane == 0)", e->cluster);
  for (int k = 0; k < b->ny * b->s->nout; k++) {
    const char *to = nvcu_text(e, "%s[%s]", slots_text(e, b, k), slot), *x = v[k / b->s->nout][k % b->s->nout];
    if (b->dsmem_barrier) nvcu_line(e, "nv_dsmem_store(&%s, %s, %s, lane);", to, x, b->dsmem_barrier);
    else nvcu_line(e, "%s = %s;", to, x);
  }
  nvcu_close(e);
  nvcu_wrote(e, b->smem);
}

/* How many partials were stored from the lane's first number on; NULL: all of them. The loop is the outermost digit of
   the number. */
static const char *left_of(nvcu_em *e, const nvcu_cross_warp *b, const char *first) {
  if (b->loop >= 0 && b->visited)
    return nvcu_let(e, "int", nvcu_text(e, "%s * %d - %s", b->visited, step_of(b, &b->acc->d[b->loop]), first));
  return LANES * b->each > b->n ? nvcu_let(e, "int", nvcu_text(e, "%d - %s", b->n, first)) : NULL;
}

/* Loads the lane's c-th partial; the identity stands for a partial that was not stored. */
static const char *read_partial(nvcu_em *e, const nvcu_cross_warp *b, int k, const char *first, int c,
                                const char *left) {
  const nvf_digit *d = b->block < 0 || b->dsmem_barrier ? NULL : &b->acc->d[b->block];
  nvm_dtype type = e->k->tile[b->s->out[k % b->s->nout]].type;
  const char *from = slots_text(e, b, k), *name = nvcu_fresh(e, "q");
  nvcu_xv kept = kept_part(e, b);
  if (d) {
    const char *rank = nvcu_rank(e, b->acc);
    from = nvcu_text(e, "nv_peer_shared(%s, %s + ((%s + %d) / %d %% %d - %s / %d %% %d) * %d)", from, rank, first, c,
                     step_of(b, d), d->extent, rank, d->pstride, d->extent, d->pstride);
  }
  from = nvcu_text(e, "%s[%s + lane + %d]", from, nvcu_index_text(e, &kept), c * LANES);
  if (left) from = nvcu_text(e, "%s > %d ? %s : %s", left, c, from, nvcu_const(e, type, b->s->init[k % b->s->nout]));
  nvcu_line(e, "const %s %s = %s;", nvcu_type(type), name, from);
  return name;
}

/* Bits of the warp number that belong to the reduced axis; 0 if its digits are not bits of the number. */
static int other_bits(const nvcu_cross_warp *b) {
  int mask = 0;
  for (int i = 0; i < b->acc->n; i++) {
    const nvf_digit *d = &b->acc->d[i];
    if (d->axis != b->s->axis || d->level != 'w' || d->extent == 1) continue;
    if (d->pstride & (d->pstride - 1)) return 0;
    for (int m = 1; m < d->extent; m *= 2) mask |= m * d->pstride;
  }
  return mask;
}

/* Waits for the partials of all iterations that were done, at the mbarrier. */
static void wait_for_dsmem(nvcu_em *e, const nvcu_cross_warp *b) {
  int iterations = b->loop >= 0 ? b->acc->d[b->loop].extent : 1, n = 0;
  for (int i = 0; i < b->s->nout; i++) n += nvg_size(e->k->tile[b->s->out[i]].type);
  n *= b->ny * b->n * b->kept;
  const char *bytes = b->visited ? nvcu_text(e, "%s * %d", b->visited, n / iterations) : nvcu_text(e, "%d", n);
  nvcu_line(e, "if (threadIdx.x == 0) nv_mbarrier_expect(%s, %s);", b->dsmem_barrier, bytes);
  nvcu_line(e, "nv_mbarrier_wait(%s, 0);", b->dsmem_barrier);
}

void nvcu_cross_warp_sync(nvcu_em *e, const nvcu_cross_warp *b, int last) {
  int mask = other_bits(b);
  if (b->dsmem_barrier) wait_for_dsmem(e, b);
  else if (b->block >= 0 && b->smem->written_at > e->cluster_at) nvcu_cluster_barrier(e);
  if (b->block < 0) nvcu_may_read(e, b->smem);
  if (last && mask && e->cluster == 1 && !(e->warps_later & mask)) nvcu_line(e, "if (warp & %d) return;", mask);
}

int nvcu_cross_warp_loads_remote(const nvcu_cross_warp *b) { return b->block >= 0 && !b->dsmem_barrier; }

const char **nvcu_cross_warp_load(nvcu_em *e, nvcu_cross_warp *b, int y) {
  int n = b->s->nout;
  const char **v = NVB_NEWN(e->a, const char *, b->each *n), *other[NVCU_ARGS];
  const char *first = b->each == 1 ? "lane" : nvcu_let(e, "int", nvcu_text(e, "lane * %d", b->each));
  const char *left = left_of(e, b, first);
  for (int c = 0; c < b->each; c++)
    for (int i = 0; i < n; i++) v[c * n + i] = read_partial(e, b, y * n + i, first, c, left);
  for (int h = 1; h < b->each; h *= 2)
    for (int c = 0; c < b->each; c += 2 * h) nvcu_merge(e, b->s->frag, &v[c * n], &v[(c + h) * n], n, 0);
  for (int m = 1; m < LANES; m *= 2) {
    for (int i = 0; i < n; i++) {
      other[i] = nvcu_fresh(e, "q");
      nvcu_line(e, "const %s %s = __shfl_xor_sync(~0u, %s, %d);", nvcu_type(e->k->tile[b->s->out[i]].type), other[i],
                v[i], m);
    }
    nvcu_merge(e, b->s->frag, v, other, n, 0);
  }
  nvcu_read(e, b->smem);
  return v;
}
