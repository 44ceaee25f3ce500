/* Executes the instructions of a block, one statement after the other, each over its whole tile. Never moves elements
   or reduces itself: memory.c and reduce.c do. */
#include <string.h>
#include "codegen/interp/interp.h"
#include "frag/dtype.h"

/* Runs the fragment over whole tiles in one call; if operands are broadcast, they are expanded a chunk at a time. */
int nvc_do_map(nvc_nest *r, const nvc_ins *i) {
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
  return 0;
}

/* Copies the elements into the order of the result, unless it shares their memory. */
int nvc_do_relayout(nvc_nest *r, const nvc_ins *i) {
  for (int j = 0; j < i->s->nout; j++) {
    char *to = nvc_tile(r, i->s->out[j]), *from = nvc_tile(r, i->s->in[j]);
    if (to != from) nvc_gather(to, from, i->op[j].size, &i->op[j].v, 0, i->shape.total);
  }
  return 0;
}

int nvc_do_put(nvc_nest *r, const nvc_ins *i) { return nvc_do_relayout(r, i); }
int nvc_do_get(nvc_nest *r, const nvc_ins *i) { return nvc_do_relayout(r, i); }

int nvc_do_zeros(nvc_nest *r, const nvc_ins *i) {
  int tile = i->s->out[0];
  memset(nvc_tile(r, tile), 0, (size_t)(i->shape.total * nvg_size(r->p->k->tile[tile].type)));
  return 0;
}

int nvc_do_for(nvc_nest *r, const nvc_ins *i) {
  int64_t hi = nvc_scalar(r, i->s->hi), step = nvc_scalar(r, i->s->step);
  for (int64_t v = nvc_scalar(r, i->s->lo); v < hi && step > 0; v += step) {
    r->var[i->s->var] = v;
    int bad = nvc_nest_list(r, i->body);
    if (bad) return bad;
  }
  return 0;
}

int nvc_do_if(nvc_nest *r, const nvc_ins *i) {
  if (nvc_holds(r, i->s->where)) return nvc_nest_list(r, i->body);
  return i->other ? nvc_nest_list(r, i->other) : 0;
}

int nvc_nest_list(nvc_nest *r, const nvc_list *l) {
  static int (*const run[])(nvc_nest *, const nvc_ins *) = {
#define STATEMENT(id, word, ...) [NVF_##id] = nvc_do_##word,
#include "kernel/statements.def"
  };
  for (int i = 0; i < l->n; i++) {
    int bad = run[l->at[i].s->op](r, &l->at[i]);
    if (bad) return bad;
  }
  return 0;
}
