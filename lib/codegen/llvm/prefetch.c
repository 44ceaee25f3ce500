/* Spreads the prefetches of a kernel with transforms over all that it computes. The first and the last nest alone read
   and write memory, and would wait for it there. What the kernel reads and writes a block later is fetched in equal
   parts beside each transform of a pass. Other kernels prefetch where they read (statement.c). */
#include "codegen/llvm/emit.h"
#include "frag/dtype.h"

enum { LINE = 64 };

int nvcl_moves_with_block(const nvcl_em *e, const nvf_expr *x) {
  return x->kind >= NVF_ADD ? nvcl_moves_with_block(e, x->a) || nvcl_moves_with_block(e, x->b)
                            : x->kind == NVF_GRID && x->id == e->ngrid - 1;
}

void nvcl_prefetch_line(nvcl_em *e, val p, int written) {
  nvcl_call(e, "llvm.prefetch", &e->ptr, 1, (val[]){ p, nvcl_i32(e, written), nvcl_i32(e, 2), nvcl_i32(e, 1) }, 4);
}

/* ---- transforms */
static int transforms_in(const nvc_nest *r) {
  int n = 0;
  for (int i = 0; i < r->s.n; i++) n += r->s.at[i]->op == NVF_DFT;
  return n;
}

int nvcl_spreads_prefetches(const nvcl_em *e) {
  int n = 0;
  for (int i = 0; i < e->seq->n; i++) n += transforms_in(e->seq->nest[i]);
  return n > 0;
}

static int64_t iterations_of(const nvc_nest *r) {
  int64_t n = 1;
  for (int i = 0; i < r->nloop; i++) n *= r->loop[i].extent;
  return n;
}

/* The number of the iteration in which the open loops are */
static val iteration_at(nvcl_em *e, const nvc_nest *r) {
  val at = nvcl_int(e, 0);
  for (int i = 0; i < r->nloop; i++) {
    at = LLVMBuildNSWMul(e->b, at, nvcl_int(e, r->loop[i].extent), "");
    at = LLVMBuildNSWAdd(e->b, at, nvcl_loop_value(e, &r->loop[i], 1), "");
  }
  return at;
}

/* The bytes that a block accesses from the element on whose coordinates are all 0; 0: they do not follow each other in
   ascending order. */
static int64_t bytes_of_block(nvcl_em *e, const nvf_stmt *s) {
  const nvf_layout *l = nvc_layout_of(&e->r, s);
  int64_t last = 0, count = 1, c;
  for (int axis = 0; axis < e->k->naxis; axis++) {
    int64_t n = nvf_extent(l, axis);
    if (!nvc_coef(&e->r, s->map, axis, &c) || c < 0) return 0;
    last += c * (n - 1);
    count *= n;
  }
  return last + 1 == count ? count * nvg_size(e->k->param[s->buf].type) : 0;
}

/* Fetches the lines [first, first + n) from p on in n iterations or fewer: some in each. */
static void fetch_lines(nvcl_em *e, const nvc_nest *r, val p, int64_t first, int64_t n, int written) {
  int64_t count = iterations_of(r), each = (n + count - 1) / count;
  val at = LLVMBuildNSWMul(e->b, iteration_at(e, r), nvcl_int(e, each * LINE), "");
  p = LLVMBuildGEP2(e->b, e->i8, p, &at, 1, "");
  for (int64_t k = 0; k < each; k++) nvcl_prefetch_line(e, nvcl_gep(e, p, (first + k) * LINE), written);
}

/* Fetches the nest's part of what the statement accesses so many blocks later. */
static void fetch_part(nvcl_em *e, const nvc_nest *r, const nvf_stmt *s, int64_t blocks) {
  int64_t bytes = bytes_of_block(e, s), lines = (bytes + LINE - 1) / LINE, before = 0, all = 0, mine = transforms_in(r);
  for (int i = 0; i < e->seq->n; i++) {
    if (e->seq->nest[i] == r) before = all;
    all += transforms_in(e->seq->nest[i]);
  }
  int64_t first = lines * before / all, end = lines * (before + mine) / all;
  if (first == end) return;
  e->ahead = blocks;
  val at = LLVMBuildMul(e->b, nvcl_uniform(e, s->map), nvcl_int(e, nvg_size(e->k->param[s->buf].type)), "");
  e->ahead = 0;
  fetch_lines(e, r, LLVMBuildGEP2(e->b, e->i8, e->param[s->buf], &at, 1, ""), first, end - first, s->op == NVF_STORE);
}

void nvcl_prefetch_part(nvcl_em *e, const nvc_nest *r) {
  if (!transforms_in(r)) return;
  for (int i = 0; i < e->seq->n; i++)
    for (int j = 0; j < e->seq->nest[i]->s.n; j++) {
      const nvf_stmt *s = e->seq->nest[i]->s.at[j];
      int64_t blocks = nvc_hint(&e->r, s, NVF_HINT_PREFETCH, 0);
      if (blocks && e->r.nest_of[s->id] == e->seq->nest[i] && nvcl_moves_with_block(e, s->map))
        fetch_part(e, r, s, blocks);
    }
}
