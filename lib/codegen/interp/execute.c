/* Executes the instructions of a block, one statement after the other, each over its whole tile. Never moves elements
   or reduces itself: memory.c and reduce.c do. */
#include <string.h>
#include "codegen/interp/interp.h"
#include "frag/dtype.h"

/* Runs the fragment over whole tiles in one call; if operands are broadcast, they are expanded a chunk at a time. */
static void run_map(const nvc_nest *r, const nvc_ins *i) {
  const nvf_stmt *s = i->s;
  const void *in[NVC_OPERANDS];
  void *out[NVC_OPERANDS];
  int whole = 1;
  for (int j = 0; j < i->nop; j++) whole &= i->op[j].whole;
  int64_t all = nvc_made(r, i), step = whole ? all : NVC_CHUNK;
  for (int64_t start = 0; start < all; start += step) {
    int64_t n = all - start < step ? all - start : step;
    char *workspace = r->work;
    for (int j = 0; j < i->nop; j++) {
      in[j] = nvc_operand_at(r, i, &i->op[j], start, n, workspace);
      if (!i->op[j].whole) workspace += NVC_CHUNK * i->op[j].size;
    }
    for (int j = 0; j < s->nout; j++) out[j] = nvc_tile(r, s->out[j]) + start * nvg_size(r->p->k->tile[s->out[j]].type);
    nvg_frag_run(i->frag, in, out, n, 1);
  }
}

/* Relayout, put and get: copies the elements into the order of the result, unless it shares their memory. */
static void run_copy(const nvc_nest *r, const nvc_ins *i) {
  for (int j = 0; j < i->s->nout; j++) {
    char *to = nvc_tile(r, i->s->out[j]), *from = nvc_tile(r, i->s->in[j]);
    if (to != from) nvc_gather(to, from, i->op[j].size, &i->op[j].v, 0, i->shape.total);
  }
}

static int run_for(nvc_nest *r, const nvc_ins *i) {
  int64_t hi = nvc_scalar(r, i->s->hi), step = nvc_scalar(r, i->s->step);
  for (int64_t v = nvc_scalar(r, i->s->lo); v < hi && step > 0; v += step) {
    r->var[i->s->var] = v;
    int bad = nvc_nest_list(r, i->body);
    if (bad) return bad;
  }
  return 0;
}

static int run_if(nvc_nest *r, const nvc_ins *i) {
  if (nvc_holds(r, i->s->where)) return nvc_nest_list(r, i->body);
  return i->other ? nvc_nest_list(r, i->other) : 0;
}

static int run_ins(nvc_nest *r, const nvc_ins *i) {
  switch (i->s->op) {
  case NVF_LOAD: nvc_do_load(r, i); return 0;
  case NVF_STORE:
  case NVF_ATOMIC_MAX: nvc_do_store(r, i); return 0;
  case NVF_MAP: run_map(r, i); return 0;
  case NVF_REDUCE: nvc_do_reduce(r, i); return 0;
  case NVF_SCAN: nvc_do_scan(r, i); return 0;
  case NVF_RELAYOUT:
  case NVF_PUT:
  case NVF_GET: run_copy(r, i); return 0;
  case NVF_DFT: nvc_do_dft(r, i); return 0;
  case NVF_CONTRACT: nvc_do_contract(r, i); return 0;
  case NVF_ZEROS:
    memset(nvc_tile(r, i->s->out[0]), 0, (size_t)(i->shape.total * nvg_size(r->p->k->tile[i->s->out[0]].type)));
    return 0;
  case NVF_INDEX: nvc_do_index(r, i); return 0;
  case NVF_TEST: nvc_do_test(r, i); return 0;
  case NVF_FOR: return run_for(r, i);
  case NVF_IF: return run_if(r, i);
  case NVF_CHECK: return nvc_all(r, i) ? 0 : i->s->id + 1;
  }
  return 0;
}

int nvc_nest_list(nvc_nest *r, const nvc_list *l) {
  for (int i = 0; i < l->n; i++) {
    int bad = run_ins(r, &l->at[i]);
    if (bad) return bad;
  }
  return 0;
}
