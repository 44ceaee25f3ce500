/* Decides how the outputs of a loop's body become its carries: an output that is a parameter unchanged keeps that
   carry's memory, one that is a parameter with elements written to it is stored there in place, and all others are
   computed. Never looks at a value. */
#include <string.h>
#include "api/loop_body.h"
#include "base/mem.h"
#include "graph/infer.h"

/* Is the index a number times the loop's index plus a number? */
static int is_affine(nva_at *at, const nvg_node *n, const nvg_node *index) {
  nva_at a, b;
  *at = (nva_at){ .made = -1 };
  if (n == index) return at->scale = 1;
  if (n->aval->dtype != NVM_I64 || n->aval->rank) return 0;
  if (n->op == NVG_OP_CONST) return at->offset = n->attr[0], 1;
  if (n->op == NVG_OP_CAST || n->op == NVG_OP_RESHAPE) return n->nin == 1 && is_affine(at, n->in[0], index);
  if (n->nin != 2 || !is_affine(&a, n->in[0], index) || !is_affine(&b, n->in[1], index)) return 0;
  if (n->op == NVG_OP_ADD) return at->scale = a.scale + b.scale, at->offset = a.offset + b.offset, 1;
  if (n->op == NVG_OP_SUBTRACT) return at->scale = a.scale - b.scale, at->offset = a.offset - b.offset, 1;
  return 0;
}
static int add_output(nva_body *b, nvg_node *n) { /* returns its number */
  b->out[b->nout] = n;
  return b->nout++;
}
static const nva_put *leading_put(const nvg_node *n) { /* the write to leading elements that made n; NULL: none did */
  const nva_put *p = nva_trace_put(n);
  return p && p->leading ? p : NULL;
}
/* The carry whose parameter n is, after the elements written to it are left away; -1: none. */
static int carry_under(const nva_body *b, const nvg_node *n) {
  for (const nva_put *p; (p = leading_put(n));) n = p->base;
  for (int k = 0; k < b->loop->ncarry; k++)
    if (b->param[1 + k] == n) return k;
  return -1;
}
static int count_puts(const nvg_node *n) {
  int count = 0;
  for (const nva_put *p; (p = leading_put(n)); n = p->base) count++;
  return count;
}
/* Adds the stores that make carry number `carry` of its parameter, in the order of the writes. */
static void add_stores(nva_body *b, int carry, const nvg_node *n) {
  nva_loop *l = b->loop;
  int count = count_puts(n), at = l->nstore + count;
  l->nstore += count;
  for (const nva_put *p; (p = leading_put(n)); n = p->base) {
    nva_store *s = &l->store[--at];
    *s = (nva_store){ .carry = carry, .value = add_output(b, p->value), .n = p->n };
    for (int i = 0; i < p->n; i++)
      if (!is_affine(&s->at[i], p->at[i].at, l->index)) s->at[i] = (nva_at){ .made = add_output(b, p->at[i].at) };
  }
}
/* Gives carry k the memory of the carry that it is a changed form of, unless another has it. own: only its own. */
static void try_move(nva_body *b, int k, nvg_node *n, int own, uint8_t *moved) {
  int from = carry_under(b, n);
  const nva_loop *l = b->loop;
  if (l->move[k] >= 0 || from < 0 || (own ? from != k : from == k) || moved[from]) return;
  if (b->param[1 + from]->aval != l->operand[l->nhead + k]->aval) return;
  l->move[k] = from;
  moved[from] = 1;
  add_stores(b, k, n);
}
int nva_body_arrange(nva_body *b, nvg_node *const *outs, int nout) {
  nva_loop *l = b->loop;
  int puts = 0;
  for (int k = 0; k < l->ncarry; k++) puts += count_puts(outs[k]);
  uint8_t *moved = nvb_calloc((size_t)l->ncarry + 1, 1);
  b->out = nvb_calloc((size_t)(nout + (1 + NVA_INDICES) * puts + 1), sizeof *b->out);
  l->move = nvb_calloc((size_t)l->ncarry + 1, sizeof *l->move);
  l->made = nvb_calloc((size_t)nout + 1, sizeof *l->made);
  l->store = nvb_calloc((size_t)puts + 1, sizeof *l->store);
  if (!moved || !b->out || !l->move || !l->made || !l->store) return nvb_free(moved), nvb_fail_memory();
  for (int k = 0; k < l->ncarry; k++) l->move[k] = -1;
  for (int own = 1; own >= 0; own--)
    for (int k = 0; k < l->ncarry; k++) try_move(b, k, outs[k], own, moved);
  for (int i = 0; i < nout; i++) l->made[i] = i < l->ncarry && l->move[i] >= 0 ? -1 : add_output(b, outs[i]);
  nvb_free(moved);
  return NVM_OK;
}
