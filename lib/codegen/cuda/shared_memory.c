/* Shared memory of a block: a room for each tile that is put, one for all exchanges, and a barrier only where a thread
   could read what is not written yet or write what is still read. Time is the order of the text: a barrier serves what
   was touched before it, unless a loop or a branch lies between. */
#include "codegen/cuda/emit.h"

static int64_t take(nvcu_em *e, int64_t bytes) {
  int64_t at = e->shared;
  e->shared += (bytes + 15) & ~(int64_t)15;
  if (e->shared > e->shared_most) e->shared_most = e->shared;
  return at;
}

nvcu_room *nvcu_room_new(nvcu_em *e, int64_t bytes, int loops) {
  nvcu_room *r = NVB_NEW(e->a, nvcu_room);
  *r = (nvcu_room){.off = take(e, bytes), .loops = loops};
  return r;
}

nvcu_room *nvcu_room_exchange(nvcu_em *e, int64_t bytes) {
  bytes = (bytes + 15) & ~(int64_t)15;
  if (bytes > e->exchange) e->exchange = bytes;
  if (!e->common || e->common->part != e->part) {
    e->common = NVB_NEW(e->a, nvcu_room);
    *e->common = (nvcu_room){.loops = 1, .exchange = 1, .part = e->part};
  }
  return e->common;
}

const char *nvcu_room_at(nvcu_em *e, const nvcu_room *r, int64_t off, const char *type) {
  return nvcu_text(e, r->exchange ? "((%s *)(shared + %lld))" : "((%s *)(shared + tiles + %lld))", type,
                   (long long)(r->off + off));
}

/* ---- time */
void nvcu_barrier(nvcu_em *e) {
  if (e->ring) nvcu_line(e, "nv_meet<%d>();", 32 * e->warps); /* those that compute */
  else nvcu_line(e, e->warps > 1 ? "__syncthreads();" : "__syncwarp();");
  e->barrier_at = ++e->clock;
}

void nvcu_met(nvcu_em *e) { e->barrier_at = ++e->clock; }

/* Barriers at which numbers from other blocks arrive, once each: nobody leaves before all of them are there, so that no
   block sends to one that has ended. They are ready when all blocks have begun, which the kernel says as its first and
   waits for before the first number is sent. */
int nvcu_mail_may(const nvcu_em *e) {
  return e->k->npart == 1 && !e->ring && (e->nmail || !e->cluster_at);
}

const char *nvcu_mail_new(nvcu_em *e) { return nvcu_text(e, "(mail + %d)", 8 * e->nmail++); }

void nvcu_mail_open(nvcu_em *e) {
  if (!e->mail_open++) nvcu_line(e, "nv_cluster_wait();");
}

void nvcu_cluster_barrier(nvcu_em *e) {
  if (e->nmail) nvcu_mail_open(e);
  nvcu_line(e, "nv_cluster_arrive();");
  nvcu_line(e, "nv_cluster_wait();");
  e->barrier_at = e->cluster_at = ++e->clock;
}

void nvcu_cluster_end(nvcu_em *e) {
  if (e->crossed == NVCU_READS) nvcu_line(e, "nv_cluster_arrive();");
  if (e->crossed != NVCU_OWN) nvcu_line(e, "nv_cluster_wait();");
}

void nvcu_scope_opened(nvcu_em *e) {
  if (e->depth >= NVCU_DEPTH) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] loops are nested too deeply");
  e->opened[e->depth] = e->clock;
}

/* What was done in a scope may not have been done. */
void nvcu_scope_closed(nvcu_em *e) {
  if (e->barrier_at > e->opened[e->depth]) e->loop_at = e->round_at = ++e->clock;
}

void nvcu_loop_opened(nvcu_em *e, int whole) {
  e->loop_at = ++e->clock;
  if (whole) e->round_at = e->clock;
}

void nvcu_part_opened(nvcu_em *e) {
  e->shared = 0;
  e->loop_at = e->round_at = 0; /* no other part was run by this block */
}

static int unknown_at(const nvcu_em *e, const nvcu_room *r) { return r->loops ? e->loop_at : e->round_at; }

void nvcu_may_write(nvcu_em *e, const nvcu_room *r) {
  if (r->read_at > e->barrier_at || unknown_at(e, r) > e->barrier_at) nvcu_barrier(e);
}

void nvcu_wrote(nvcu_em *e, nvcu_room *r) { r->written_at = ++e->clock; }

void nvcu_may_read(nvcu_em *e, const nvcu_room *r) {
  if (r->written_at > e->barrier_at || unknown_at(e, r) > e->barrier_at) nvcu_barrier(e);
}

void nvcu_read(nvcu_em *e, nvcu_room *r) { r->read_at = ++e->clock; }
