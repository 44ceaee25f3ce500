/* Allocates the shared memory of a CTA: a buffer for each tile that is put, one for all exchanges; and emits a barrier
   only where a thread could read what is not yet written or overwrite what is still read. Time is the order of the
   emitted text: a barrier serves all accesses before it, unless a loop or a branch lies in between. Decides offsets and
   barriers, never addresses within a buffer. */
#include "codegen/cuda/emit.h"

static int64_t take_bytes(nvcu_em *e, int64_t bytes) {
  int64_t at = e->shared;
  e->shared += (bytes + 15) & ~(int64_t)15;
  if (e->shared > e->shared_most) e->shared_most = e->shared;
  return at;
}

nvcu_smem *nvcu_smem_new(nvcu_em *e, int64_t bytes, int loops) {
  nvcu_smem *r = NVB_NEW(e->a, nvcu_smem);
  *r = (nvcu_smem){ .off = take_bytes(e, bytes), .loops = loops };
  return r;
}

nvcu_smem *nvcu_smem_exchange(nvcu_em *e, int64_t bytes) {
  bytes = (bytes + 15) & ~(int64_t)15;
  if (bytes > e->exchange) e->exchange = bytes;
  if (!e->common || e->common->part != e->part) {
    e->common = NVB_NEW(e->a, nvcu_smem);
    *e->common = (nvcu_smem){ .loops = 1, .exchange = 1, .part = e->part };
  }
  return e->common;
}

const char *nvcu_smem_at(nvcu_em *e, const nvcu_smem *r, int64_t off, const char *type) {
  return nvcu_text(e, r->exchange ? "((%s *)(shared + %lld))" : "((%s *)(shared + tiles + %lld))", type,
                   (long long)(r->off + off));
}

/* ---- time */
void nvcu_barrier(nvcu_em *e) {
  if (e->pipeline) nvcu_line(e, "nv_sync_consumers<%d>();", 32 * e->warps); /* the consumer warps */
  else nvcu_line(e, e->warps > 1 ? "__syncthreads();" : "__syncwarp();");
  e->barrier_at = ++e->clock;
}

void nvcu_note_barrier(nvcu_em *e) { e->barrier_at = ++e->clock; }

/* mbarriers for values from other CTAs, one phase each. Each CTA waits for all values sent to it before it exits, so no
   CTA sends to one that has ended. They are initialised when all CTAs run: the kernel arrives at the cluster barrier
   first, and waits for it before the first value is sent. */
int nvcu_dsmem_is_allowed(const nvcu_em *e) {
  return e->k->npart == 1 && !e->pipeline && (e->ndsmem || !e->cluster_at);
}

const char *nvcu_dsmem_barrier_new(nvcu_em *e) { return nvcu_text(e, "(bars + %d)", 8 * e->ndsmem++); }

void nvcu_dsmem_open(nvcu_em *e) {
  if (!e->dsmem_open++) nvcu_line(e, "nv_cluster_wait();");
}

void nvcu_cluster_barrier(nvcu_em *e) {
  if (e->ndsmem) nvcu_dsmem_open(e);
  nvcu_line(e, "nv_cluster_arrive();");
  nvcu_line(e, "nv_cluster_wait();");
  e->barrier_at = e->cluster_at = ++e->clock;
}

void nvcu_cluster_end(nvcu_em *e) {
  if (e->remote == NVCU_READS) nvcu_line(e, "nv_cluster_arrive();");
  if (e->remote != NVCU_OWN) nvcu_line(e, "nv_cluster_wait();");
}

void nvcu_scope_opened(nvcu_em *e) {
  if (e->depth >= NVCU_DEPTH) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] loops are nested too deeply");
  e->opened[e->depth] = e->clock;
}

/* The accesses and barriers of a closed scope may not have been executed. */
void nvcu_scope_closed(nvcu_em *e) {
  if (e->barrier_at > e->opened[e->depth]) e->loop_at = e->round_at = ++e->clock;
}

void nvcu_loop_opened(nvcu_em *e, int whole) {
  e->loop_at = ++e->clock;
  if (whole) e->round_at = e->clock;
}

void nvcu_part_opened(nvcu_em *e) {
  e->shared = 0;
  e->loop_at = e->round_at = 0; /* a CTA runs one part */
}

static int unknown_at(const nvcu_em *e, const nvcu_smem *r) { return r->loops ? e->loop_at : e->round_at; }

void nvcu_may_write(nvcu_em *e, const nvcu_smem *r) {
  if (r->read_at > e->barrier_at || unknown_at(e, r) > e->barrier_at) nvcu_barrier(e);
}

void nvcu_wrote(nvcu_em *e, nvcu_smem *r) { r->written_at = ++e->clock; }

void nvcu_may_read(nvcu_em *e, const nvcu_smem *r) {
  if (r->written_at > e->barrier_at || unknown_at(e, r) > e->barrier_at) nvcu_barrier(e);
}

void nvcu_read(nvcu_em *e, nvcu_smem *r) { r->read_at = ++e->clock; }
