/* Chains: a traced function with loops as a sequence of stages. A stage is a function without loops, which computes
   what its loop and later stages need, and then that loop; the last stage has no loop and computes the outputs. Decides
   what each stage computes, and how long values are kept; never how a loop takes its steps. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "api/loop.h"
#include "base/mem.h"
#include "graph/graph.h"

/* Values in use during a run have slots: the function's parameters, then what stages compute for others, and the
   results of loops. */
typedef struct stage {
  nvm_traced *part; /* its parameters are the slots; NULL: it has nothing to compute */
  int npart, first; /* its outputs, and the slot of the first one */
  nva_loop *loop;   /* counted; NULL: the last stage */
  int *operand;     /* the slot of each; -1: a constant */
  int result;       /* the slot of the loop's first result */
} stage;
struct nva_chain {
  int nparam, nslot, nstage, nout;
  stage *stage;
  int *last; /* for each slot: the last stage that uses it */
  int *out;  /* for each output: the slot whose value it takes over; -1: the last stage computes it */
};

/* ---- building */
/* A node that stages exchange: the result of a loop, or an operand of one that has to be computed. */
typedef struct item {
  nvg_node *node;
  int stage;  /* the first that has it */
  int later;  /* later stages need it */
  int result; /* it is the result of a loop: of number `stage` */
  int slot;   /* -1: none */
  uint16_t op;
} item;
typedef struct builder {
  nvb_arena *arena;
  nvm_ctx *ctx;
  nva_chain *c;
  nvg_node *const *outs;
  int nviews, nloop;
  nva_loop **loop; /* those that are needed, in order */
  NVB_VEC(item *) items;
  NVB_VEC(nvg_node *) seen; /* nodes that are marked */
  NVB_VEC(nvg_node *) way;
  NVB_VEC(nvg_node *) slots; /* the node of each slot; NULL: only its loop reads it */
} builder;

/* While a chain is built, nvg_node.mark of the trace's own nodes is their item, or &passed. */
static char passed;
static item *item_of(const nvg_node *n) { return n->mark == &passed ? NULL : n->mark; }
static int is_leaf(const nvg_node *n) { return n->op == NVG_OP_LEAF || atomic_load(&n->value); }
static void mark_node(builder *b, nvg_node *n, void *mark) {
  if (!n->mark) NVB_PUSH(b->arena, b->seen, n);
  n->mark = mark;
}
static void clear_marks(builder *b, int all) { /* all: those of items too */
  int n = 0;
  for (int i = 0; i < b->seen.n; i++)
    if (all || b->seen.at[i]->mark == &passed) b->seen.at[i]->mark = NULL;
    else b->seen.at[n++] = b->seen.at[i];
  b->seen.n = n;
}
static void add_item(builder *b, nvg_node *n, int stage, int result) {
  item *x = NVB_NEW(b->arena, item);
  *x = (item){ .node = n, .stage = stage, .result = result, .slot = -1, .op = n->op };
  mark_node(b, n, x);
  NVB_PUSH(b->arena, b->items, x);
}
/* Walks down from the nodes on the way, and calls `met` for each item, below which it does not go. */
static void walk(builder *b, void (*met)(builder *b, item *x, int stage), int stage) {
  while (b->way.n) {
    nvg_node *n = b->way.at[--b->way.n];
    item *x = item_of(n);
    if (x) met(b, x, stage);
    if (x || n->mark || is_leaf(n)) continue;
    mark_node(b, n, &passed);
    for (int i = 0; i < n->nin; i++) NVB_PUSH(b->arena, b->way, n->in[i]);
  }
}

/* ---- the loops that are needed */
static void need_loop(builder *b, item *x, int stage) {
  nva_loop *l = b->loop[x->stage];
  (void)stage;
  if (x->later) return;
  for (int i = 0; i < l->nresult; i++) item_of(l->result[i])->later = 1;
  for (int i = 0; i < nva_loop_operands(l); i++) NVB_PUSH(b->arena, b->way, l->operand[i]);
}
static void find_loops(builder *b, nva_loop *const *all, int n) {
  b->loop = nvb_dup(b->arena, all, sizeof *all * (size_t)n);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < all[k]->nresult; i++) add_item(b, all[k]->result[i], k, 1);
  for (int i = 0; i < b->c->nout; i++) NVB_PUSH(b->arena, b->way, b->outs[i]);
  walk(b, need_loop, 0);
  for (int k = 0; k < n; k++)
    if (all[k]->nresult && item_of(all[k]->result[0])->later) b->loop[b->nloop++] = all[k];
  clear_marks(b, 1);
  b->items.n = 0;
}

/* ---- what stages exchange */
static void note_need(builder *b, item *x, int stage) { /* this stage needs x */
  (void)b;
  x->later |= x->stage != stage;
  if (stage < x->stage && !x->result) x->stage = stage;
}
static void walk_operands(builder *b, const nvg_node *n, int stage) {
  for (int i = 0; i < n->nin; i++) NVB_PUSH(b->arena, b->way, n->in[i]);
  walk(b, note_need, stage);
  clear_marks(b, 0);
}
/* Does a stage have to give it to the loop? Parameters are given by the caller, and constants are in their nodes. */
static int is_made(const nvg_node *n) {
  return atomic_load(&n->value) ? !n->weak : n->op != NVG_OP_LEAF && n->op != NVG_OP_CONST;
}
static void find_items(builder *b) {
  for (int k = 0; k < b->nloop; k++) {
    const nva_loop *l = b->loop[k];
    for (int i = 0; i < nva_loop_operands(l); i++) {
      nvg_node *n = l->operand[i];
      if (item_of(n)) note_need(b, item_of(n), k);
      else if (is_made(n)) add_item(b, n, k, 0);
    }
    for (int i = 0; i < l->nresult; i++) add_item(b, l->result[i], k, 1);
  }
  for (int i = 0; i < b->items.n; i++) /* what one lowers to an earlier stage comes behind it */
    if (!b->items.at[i]->result) walk_operands(b, b->items.at[i]->node, b->items.at[i]->stage);
  for (int i = 0; i < b->c->nout; i++) NVB_PUSH(b->arena, b->way, b->outs[i]);
  walk(b, note_need, b->nloop);
  clear_marks(b, 0);
}

/* ---- the stages */
/* A carry of a loop, whose memory the loop takes. */
static int is_taken(const nva_loop *l, int operand) {
  return l->kind != NVM_COND && operand >= l->nhead && operand < l->nhead + l->ncarry;
}
static int add_slot(builder *b, nvg_node *n) {
  NVB_PUSH(b->arena, b->slots, n);
  return b->slots.n - 1;
}
static int slot_of(const builder *b, nvg_node *n) { /* -1: none */
  if (item_of(n)) return item_of(n)->slot;
  int i = 0;
  while (i < b->c->nparam && b->slots.at[i] != n) i++;
  return i < b->c->nparam ? i : -1;
}
/* Makes the function of stage k, whose outputs from number nviews on are copies. */
static void make_part(builder *b, int k, nvg_node *const *outs, int nout, int nviews) {
  stage *s = &b->c->stage[k];
  s->npart = nout;
  int status = nout ? nva_traced_over(&s->part, b->ctx, b->slots.at, s->first, outs, nout, nviews, NULL, 0) : NVM_OK;
  if (status) nvb_throw(b->arena, status, "%s", nvb_message());
}
static void use_slot(builder *b, int slot, int k) {
  if (slot >= 0) b->c->last[slot] = k;
}
/* Makes stage k < nloop: its outputs are what this or later stages need, then the carries of the loop. */
static void make_stage(builder *b, int k) {
  stage *s = &b->c->stage[k];
  nva_loop *l = b->loop[k];
  NVB_VEC(nvg_node *) out = { 0 };
  int n = nva_loop_operands(l);
  s->first = b->slots.n;
  s->operand = nvb_calloc((size_t)n + 1, sizeof *s->operand);
  if (!s->operand) nvb_throw(b->arena, NVM_ERR_MEMORY, "out of memory");
  for (int i = 0; i < n; i++)
    if (item_of(l->operand[i]) && !is_taken(l, i)) item_of(l->operand[i])->later = 1;
  for (int i = 0; i < b->items.n; i++) {
    item *x = b->items.at[i];
    if (x->stage != k || !x->later || x->result) continue;
    NVB_PUSH(b->arena, out, x->node);
    x->slot = add_slot(b, x->node);
  }
  int nviews = out.n;
  for (int i = 0; i < n; i++) {
    if (!is_taken(l, i)) s->operand[i] = slot_of(b, l->operand[i]);
    else NVB_PUSH(b->arena, out, l->operand[i]), s->operand[i] = add_slot(b, NULL);
  }
  make_part(b, k, out.at, out.n, nviews);
  s->loop = nva_loop_ref(l);
  s->result = b->slots.n;
  for (int i = 0; i < l->nresult; i++) item_of(l->result[i])->slot = add_slot(b, l->result[i]);
  for (int i = 0; i < b->items.n; i++) /* from now on it is a leaf */
    if (b->items.at[i]->slot >= s->first) b->items.at[i]->node->op = NVG_OP_LEAF;
}
static void make_last(builder *b) {
  nva_chain *c = b->c;
  NVB_VEC(nvg_node *) out = { 0 };
  int nviews = 0;
  uint8_t *taken = nvb_get(b->arena, (size_t)b->slots.n + 1);
  c->stage[b->nloop].first = b->slots.n;
  for (int i = 0; i < c->nout; i++) {
    item *x = item_of(b->outs[i]);
    c->out[i] = x && x->result && !taken[x->slot] ? x->slot : -1;
    if (c->out[i] >= 0) taken[x->slot] = 1;
    else NVB_PUSH(b->arena, out, b->outs[i]), nviews += i < b->nviews;
  }
  make_part(b, b->nloop, out.at, out.n, nviews);
}
/* Notes the last stage that uses each slot; a value that nothing uses goes after the stage that makes it. */
static void find_last(builder *b) {
  nva_chain *c = b->c;
  c->nslot = b->slots.n;
  if (!(c->last = nvb_calloc((size_t)c->nslot + 1, sizeof *c->last)))
    nvb_throw(b->arena, NVM_ERR_MEMORY, "out of memory");
  for (int k = 0; k < c->nstage; k++) {
    const stage *s = &c->stage[k];
    for (int i = s->first; i < c->nslot; i++) c->last[i] = k;
    for (int i = 0; s->part && i < nva_traced_leaves(s->part); i++) use_slot(b, nva_traced_source(s->part, i), k);
    for (int i = 0; s->loop && i < nva_loop_operands(s->loop); i++) use_slot(b, s->operand[i], k);
  }
  for (int i = 0; i < c->nout; i++) use_slot(b, c->out[i], c->nstage);
}

typedef struct request { builder *b; nvg_node *const *param; nva_loop *const *loop; int n; } request;
static void build_chain(nvb_arena *a, void *arg) {
  request *r = arg;
  builder *b = r->b;
  b->arena = a;
  for (int i = 0; i < b->c->nparam; i++) NVB_PUSH(a, b->slots, r->param[i]);
  find_loops(b, r->loop, r->n);
  if (!b->nloop) return;
  nva_chain *c = b->c;
  c->stage = nvb_calloc((size_t)b->nloop + 1, sizeof *c->stage);
  c->out = nvb_calloc((size_t)c->nout + 1, sizeof *c->out);
  if (!c->stage || !c->out) nvb_throw(a, NVM_ERR_MEMORY, "out of memory");
  c->nstage = b->nloop + 1;
  find_items(b);
  for (int k = 0; k < b->nloop; k++) make_stage(b, k);
  make_last(b);
  find_last(b);
}
int nva_chain_new(nva_chain **out, nvm_ctx *ctx, nvg_node *const *param, int nparam, nvg_node *const *outs, int nout,
                  int nviews, nva_loop *const *loop, int n, uint8_t *used) {
  *out = NULL;
  nva_chain *c = nvb_calloc(1, sizeof *c);
  nvb_arena *a = nvb_arena_new();
  builder b = { .arena = a, .ctx = ctx, .c = c, .outs = outs, .nviews = nviews };
  int status = c && a ? NVM_OK : nvb_fail_memory();
  if (!status) {
    c->nparam = nparam;
    c->nout = nout;
    status = nvb_protect(a, build_chain, &(request){ &b, param, loop, n });
    for (int i = 0; i < b.items.n; i++) b.items.at[i]->node->op = b.items.at[i]->op;
    clear_marks(&b, 1);
  }
  nvb_arena_free(a);
  if (status || !c->nstage) return nva_chain_free(c), status;
  for (int k = 0; k < c->nstage; k++) {
    const stage *s = &c->stage[k];
    for (int i = 0; s->part && i < nva_traced_leaves(s->part); i++) {
      int slot = nva_traced_source(s->part, i);
      if (slot >= 0 && slot < nparam) used[slot] = 1;
    }
    for (int i = 0; s->loop && i < nva_loop_operands(s->loop); i++)
      if (s->operand[i] >= 0 && s->operand[i] < nparam) used[s->operand[i]] = 1;
  }
  return *out = c, NVM_OK;
}
void nva_chain_free(nva_chain *c) {
  if (!c) return;
  for (int k = 0; k < c->nstage; k++) {
    nvm_traced_free(c->stage[k].part);
    nva_loop_unref(c->stage[k].loop);
    nvb_free(c->stage[k].operand);
  }
  nvb_free(c->stage), nvb_free(c->last), nvb_free(c->out);
  nvb_free(c);
}

/* ---- running */
static int run_loop(const stage *s, int dev, nvg_value **env) {
  enum { FEW = 24 };
  nvg_value *few[FEW], **operand = few;
  int n = nva_loop_operands(s->loop);
  if (n > FEW && !(operand = nvb_alloc(sizeof *operand * (size_t)n))) return nvb_fail_memory();
  for (int i = 0; i < n; i++) operand[i] = s->operand[i] < 0 ? NULL : env[s->operand[i]];
  int status = nva_loop_run(s->loop, dev, operand, env + s->result);
  if (operand != few) nvb_free(operand);
  return status;
}
/* Frees the values whose last use was in stage k, those of parameters aside. */
static void drop_values(const nva_chain *c, nvg_value **env, int k) {
  for (int i = c->nparam; i < c->nslot; i++)
    if (env[i] && c->last[i] <= k) nvg_value_free(env[i]), env[i] = NULL;
}
static int run_stages(const nva_chain *c, int dev, nvg_value **env) {
  int status = NVM_OK;
  for (int k = 0; k < c->nstage && !status; k++) {
    const stage *s = &c->stage[k];
    if (s->part) status = nva_traced_run(s->part, dev, env, env + s->first);
    if (!status && s->loop) status = run_loop(s, dev, env);
    if (k + 1 < c->nstage) drop_values(c, env, k);
  }
  return status;
}
int nva_chain_run(nva_chain *c, int dev, nvg_value *const *param, nvg_value **out) {
  const stage *last = &c->stage[c->nstage - 1];
  nvg_value **env = nvb_calloc((size_t)(c->nslot + last->npart) + 1, sizeof *env);
  if (!env) return nvb_fail_memory();
  memcpy(env, param, sizeof *env * (size_t)c->nparam);
  int status = run_stages(c, dev, env), computed = last->first;
  for (int i = 0; i < c->nout && !status; i++) {
    nvg_value **from = &env[c->out[i] >= 0 ? c->out[i] : computed++];
    out[i] = *from;
    *from = NULL;
  }
  drop_values(c, env, c->nstage);
  nvb_free(env);
  return status;
}

/* ---- describing */
int nva_append(char **text, const char *format, ...) {
  va_list ap, again;
  va_start(ap, format);
  va_copy(again, ap);
  size_t before = *text ? strlen(*text) : 0, n = (size_t)vsnprintf(NULL, 0, format, ap) + 1;
  char *all = nvb_realloc(*text, before + n);
  if (all) vsnprintf(all + before, n, format, again), *text = all;
  va_end(ap), va_end(again);
  return all ? NVM_OK : nvb_fail_memory();
}
static int describe_loop(char **text, nva_loop *l, int dev, const char *stage) {
  const char *name = nva_loop_name(l), *carries = l->kind == NVM_COND ? "operands" : "carries";
  int status = nva_append(text, "%s (%s: %d; arrays from outside: %d; stores in place: %d)\n", name, carries, l->ncarry,
                          l->ncap, l->nstore);
  if (!status && l->other) {
    status = nva_append(text, "%s\n", l->kind == NVM_COND ? "if false:" : "first test:");
    status = status ? status : nva_traced_describe(text, l->other, dev, stage);
  }
  if (!status) status = nva_append(text, "%s\n", l->kind == NVM_COND ? "if true:" : "each step:");
  status = status ? status : nva_traced_describe(text, l->body, dev, stage);
  return status ? status : nva_append(text, "end of the %s\n", name);
}
int nva_chain_describe(char **text, nva_chain *c, int dev, const char *stage) {
  int status = NVM_OK;
  for (int k = 0; k < c->nstage && !status; k++) {
    if (c->stage[k].part) status = nva_traced_describe(text, c->stage[k].part, dev, stage);
    if (!status && c->stage[k].loop) status = describe_loop(text, c->stage[k].loop, dev, stage);
  }
  return status;
}
