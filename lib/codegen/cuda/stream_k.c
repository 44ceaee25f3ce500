/* Stream-K (Osama et al., 2023) for warp-specialised GEMMs: persistent CTAs compute whole tiles, then divide the
   k-tiles of the remaining tiles, too few for one more wave, into equal shares. The CTA with a tile's last k-tile
   finishes it: it adds the partial sums of the others, from global memory and in a fixed order. A share begins with the
   tile whose sums it gives away, so CTAs read the same operands at about the same time. Decides who computes which
   k-tiles; a CTA waits only for smaller share numbers, which have begun. */
#include "codegen/cuda/tensor_core.h"

/* K-tile k of all shared tiles belongs to share s where begin(s) <= k < begin(s + 1). A share computes its tiles from
   the last to the first: [first, last) are its k-tiles of the current tile, and has() tells whether an earlier share
   has k-tiles of this tile, too. The tiles are counted first, because only for a loop with a count the compiler knows
   that all lanes agree; then the loop's values go to uniform registers, which WGMMA takes (else products took 3 to 13 %
   longer). */
static const char stream_k_text[] =
    "struct nv_stream_k {\n"
    "  ix step, whole, ktiles, share, shares, each, more, count, tile, left, first, last, start, at;\n"
    "  static __device__ __forceinline__ ix quotient(ix a, ix b) { return (ux)a / (ux)b; }\n"
    "  __device__ __forceinline__ ix begin(ix s) const {\n"
    "    s = s < shares ? s : shares;\n"
    "    return s * each + (s < more ? s : more);\n"
    "  }\n"
    "  __device__ __forceinline__ nv_stream_k(ix share, ix blocks, ix tiles, ix ktiles, ix least)\n"
    "      : step(blocks), ktiles(ktiles), share(share), tile(share - blocks), first(0), last(ktiles) {\n"
    "    count = quotient(tiles, blocks);\n"
    "    whole = count * blocks;\n"
    "    left = tiles - whole;\n"
    "    const ix most = quotient(left * ktiles + least - 1, least);\n"
    "    shares = most < 1 ? 1 : most < blocks ? most : blocks;\n"
    "    each = quotient(left * ktiles, shares);\n"
    "    more = left * ktiles - each * shares;\n"
    "    start = begin(share);\n"
    "    at = begin(share + 1);\n"
    "    if (start < at) {\n"
    "      left = quotient(at - 1, ktiles) + 1;\n"
    "      count += left - quotient(start, ktiles);\n"
    "    }\n"
    "  }\n"
    "  __device__ __forceinline__ void next() {\n"
    "    if ((tile += step) < whole) return;\n"
    "    const ix from = --left * ktiles;\n"
    "    tile = whole + left;\n"
    "    last = at - from;\n"
    "    at = start > from ? start : from;\n"
    "    first = at - from;\n"
    "  }\n"
    "  __device__ __forceinline__ bool finishes() const { return last == ktiles; }\n"
    "  __device__ __forceinline__ bool has(ix other) const { return other >= 0 && begin(other + 1) > left * ktiles; }\n"
    "};\n";

/* Sums are exchanged in groups of four per thread: the bytes of one group of all consumer threads. */
static int four_of(const nvcu_em *e) { return 16 * 32 * e->warps; }

int nvcu_of_tiles(const nvf_expr *x) {
  return x && (x->kind == NVF_GRID || x->kind == NVF_VAR || nvcu_of_tiles(x->a) || nvcu_of_tiles(x->b));
}

const char *nvcu_pipeline_ktiles(nvcu_em *e, const nvcu_pipeline *g) {
  const nvf_stmt *s = g->loop;
  const char *lo = nvcu_uniform(e, s->lo), *hi = nvcu_uniform(e, s->hi),
             *step = s->step ? nvcu_uniform(e, s->step) : "1";
  return nvcu_text(e, "%s < %s ? (%s - %s + %s - 1) / %s : 1", lo, hi, hi, lo, step, step);
}

void nvcu_stream_k_plan(nvcu_em *e, nvcu_pipeline *g, const nvf_stmt *loop) {
  g->least = (int)nvc_hint(&e->r, loop, NVF_HINT_STREAM_K, 0);
  if (!g->least) return;
  if (e->cluster > 1) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] stream-K is not possible in a cluster");
  if (nvcu_of_tiles(loop->lo) || nvcu_of_tiles(loop->hi))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] stream-K needs equal numbers of k-tiles in all tiles");
  if (g->bytes < four_of(e))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a stage is too small for four sums of each thread");
  g->draw = nvcu_smem_new(e, 16, 0);
  nvb_puts(&e->preamble, stream_k_text);
}

void nvcu_stream_k_draw(nvcu_em *e, const nvcu_pipeline *g) {
  if (g->least)
    nvcu_line(e, "if (threadIdx.x == 0) *%s = nv_draw_number(flags, gridDim.x);",
              nvcu_smem_at(e, g->draw, 0, "unsigned"));
}

void nvcu_stream_k_begin(nvcu_em *e, const nvcu_pipeline *g, const char *blocks) {
  if (!g->least) return;
  nvcu_line(e, "const ix ktiles = %s;", nvcu_pipeline_ktiles(e, g));
  nvcu_line(e, "nv_stream_k work(*%s, gridDim.x, %s, ktiles, %d);", nvcu_smem_at(e, g->draw, 0, "int"), blocks,
            g->least);
}

const char *nvcu_stream_k_open(nvcu_em *e) {
  nvcu_for(e, "0", "work.count", "1", 1);
  nvcu_line(e, "work.next();");
  return nvcu_let(e, "ix", "work.tile");
}

/* ---- the partial sums of a shared tile */
int64_t nvcu_stream_k_bytes(const nvcu_em *e, const nvcu_pipeline *g) {
  return g && g->least ? (int64_t)g->nsum * nvc_items(&e->t->tile[g->sum[0]->in[0]]) / 4 * four_of(e) : 0;
}

static int fours_in_stage(const nvcu_em *e, const nvcu_pipeline *g) { return g->bytes / four_of(e); }

/* Calls `by` with groups of four of all sums, from group `first` on, at most `most` of them. */
static void pass_sums(nvcu_em *e, const nvcu_pipeline *g, const char *by, const char *at, int first, int most) {
  int each = nvc_items(&e->t->tile[g->sum[0]->in[0]]) / 4;
  for (int n = first; n < g->nsum * each && n < first + most; n++) {
    const char *v[4];
    for (int j = 0; j < 4; j++) v[j] = nvcu_tile_item(e, g->sum[n / each]->in[0], n % each * 4 + j);
    nvcu_line(e, "%s(%s + %d, %s, %s, %s, %s);", by, at, four_of(e) * (n - first), v[0], v[1], v[2], v[3]);
  }
}

static void open_others(nvcu_em *e) {
  nvcu_line(e, "#pragma unroll 1");
  nvcu_open(e, "for (ix other = work.share - 1; work.has(other); other--)");
}

void nvcu_stream_k_fetch(nvcu_em *e, const nvcu_pipeline *g) {
  if (!g->least) return;
  int64_t all = nvcu_stream_k_bytes(e, g), some = (int64_t)fours_in_stage(e, g) * four_of(e);
  nvcu_open(e, "if (work.finishes())");
  open_others(e);
  nvcu_line(e, "nv_wait_flag(flags + %d + other, %d);", NVC_FLAGS, e->warps);
  for (int64_t at = 0; at < all; at += some) {
    int bytes = (int)(all - at < some ? all - at : some);
    nvcu_line(e, "nv_mbarrier_wait(%s, phase);", nvcu_pipeline_barrier(e, g, 1, "stage"));
    nvcu_line(e, "nv_mbarrier_expect(%s, %d);", nvcu_pipeline_barrier(e, g, 0, "stage"), bytes);
    nvcu_line(e, "nv_bulk_load(%s + stage * %d, scratch + (long long)other * %lld + %lld, %d, %s);",
              nvcu_smem_at(e, g->tiles, 0, "char"), g->bytes, (long long)all, (long long)at, bytes,
              nvcu_pipeline_barrier(e, g, 0, "stage"));
    nvcu_pipeline_advance(e, g);
  }
  nvcu_close(e);
  nvcu_close(e);
}

void nvcu_stream_k_join(nvcu_em *e, const nvcu_pipeline *g) {
  if (!g->least) return;
  int64_t all = nvcu_stream_k_bytes(e, g);
  int some = fours_in_stage(e, g);
  nvcu_open(e, "if (!work.finishes())");
  nvcu_line(e, "char *const to = scratch + (long long)work.share * %lld + 16 * threadIdx.x;", (long long)all);
  pass_sums(e, g, "nv_store_partials", "to", 0, (int)(all / four_of(e)));
  nvcu_line(e, "nv_set_flag(flags + %d + work.share);", NVC_FLAGS);
  nvcu_line(e, "continue;");
  nvcu_close(e);
  open_others(e);
  for (int first = 0; first < all / four_of(e); first += some) {
    nvcu_line(e, "nv_mbarrier_wait(%s, phase);", nvcu_pipeline_barrier(e, g, 0, "stage"));
    const char *from = nvcu_fresh(e, "from");
    nvcu_line(e, "const char *const %s = %s + stage * %d + 16 * threadIdx.x;", from,
              nvcu_smem_at(e, g->tiles, 0, "char"), g->bytes);
    pass_sums(e, g, "nv_add_partials", from, first, some);
    /* one thread of a warpgroup releases the stage */
    if (!g->a_registers) nvcu_line(e, "nv_sync_consumers<%d>();", 32 * e->warps);
    nvcu_pipeline_release(e, g, "", "stage");
    nvcu_pipeline_advance(e, g);
  }
  nvcu_close(e);
}
