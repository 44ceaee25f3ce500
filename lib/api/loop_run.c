/* Runs loops: binds the program of a body to memory once, and then takes each step by running it there. A step
   allocates nothing: a carry is computed in place where the plan allows it, else into a second buffer, and the two
   change places. Bodies that have loops themselves run as the functions that they are, by values. Never waits for a
   GPU, but to read a predicate, a bound, or an index that the body computes. */
#include <stdio.h>
#include <string.h>
#include "api/loop.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "graph/infer.h"

typedef struct carry {
  const nvg_aval *aval;
  nvg_value value;   /* its present memory, packed; the buffer is counted */
  nvd_operand spare; /* memory for the next value, counted; none if it is computed in place or moved */
  nvd_operand next;  /* during a step: its next memory */
  int from;          /* the carry whose memory it takes; -1: its spare */
  int refill;        /* after a step: the carry whose memory becomes its spare; -1: none */
} carry;
/* An output of the body. */
typedef struct outlet {
  const nvg_aval *aval;
  nvd_operand at; /* where the last step put it; a counted buffer if `owned` */
  int owned;
  int carry, y; /* whose next value or row it is; -1: none */
} outlet;
typedef struct rows { /* an x or a y of a scan */
  nvd_operand at;
  int64_t step; /* bytes from row to row */
  int direct;   /* y: steps compute the row there */
} rows;
typedef struct run {
  nva_loop *l;
  int dev, nout;
  nvd_device *gpu;
  nvg_value *const *operand;
  int64_t lower, steps, step, index;
  nvg_value number;  /* the index */
  nvg_value **param; /* for each parameter of the body its value */
  carry *carry;
  outlet *outlet;
  rows *x, *y;
  nvg_value *row; /* the row of each x */
  /* a body without loops */
  nva_program *program, *now; /* now: the one that runs, which may stand in for it until its code is there */
  int *leaf_of;               /* for each parameter its leaf; -1: the body does not read it */
  nvg_value **value, **moved; /* of the leaves; those that are freed after the run */
  nvd_operand *leaf, *out;
} run;

/* ---- memory */
static int64_t bytes_of(const nvg_aval *av) { return av->size * nvg_size(av->dtype); }
static nvd_operand memory_new(const run *r, int64_t bytes) { /* buf NULL with a message: there is none */
  nvd_buf *b = r->gpu ? nvd_buf_new_on(r->gpu, (size_t)bytes) : nvd_buf_new((size_t)bytes);
  return (nvd_operand){ b, b ? b->data : NULL };
}
static void memory_free(nvd_operand m) {
  if (m.buf) nvd_buf_unref(m.buf);
}
static nvd_operand operand_of(const nvg_value *v) { return (nvd_operand){ v->buffer, v->data }; }
static int copy_bytes(const run *r, nvd_operand to, int64_t offset, nvd_operand from, int64_t bytes) {
  if (!r->gpu) return memcpy(to.data + offset, from.data, (size_t)bytes), NVM_OK;
  return nvd_copy_on(to.buf, (size_t)(to.data - to.buf->data + offset), from.buf, (size_t)(from.data - from.buf->data),
                     (size_t)bytes);
}
static int read_bytes(const run *r, void *to, nvd_operand from, int64_t bytes) {
  if (!r->gpu) return memcpy(to, from.data, (size_t)bytes), NVM_OK;
  return nvd_download(to, from.buf, (size_t)(from.data - from.buf->data), (size_t)bytes);
}

/* ---- numbers that the host reads */
static int64_t extended(nvm_dtype t, int64_t bits) { /* an integer of its dtype, from its bytes */
  int unused = 64 - 8 * nvg_size(t);
  uint64_t top = (uint64_t)bits << unused;
  return nvg_class_of(t) == NVG_SIGNED ? (int64_t)top >> unused : (int64_t)(top >> unused);
}
static int read_head(int64_t *out, const run *r, int i, const char *what) {
  const nvg_node *n = r->l->operand[i];
  nvm_dtype t = n->aval->dtype;
  int64_t bits = n->op == NVG_OP_CONST ? n->attr[0] : 0;
  int status = r->operand[i] ? nva_copy_out(&bits, r->operand[i], n->aval) : NVM_OK;
  *out = extended(t, bits);
  if (!status && t == NVM_U64 && *out < 0)
    return nvb_fail(NVM_ERR_OVERFLOW, "[%s] the %s is out of range of int64", nva_loop_name(r->l), what);
  return status;
}
/* Finds the number of steps. A while_loop takes its first test. */
static int count_steps(run *r) {
  nva_loop *l = r->l;
  int64_t upper = 0;
  r->steps = l->kind == NVM_SCAN ? l->length : INT64_MAX;
  if (l->kind != NVM_FORI_LOOP) return NVM_OK;
  int status = read_head(&r->lower, r, 0, "lower bound");
  if (!status) status = read_head(&upper, r, 1, "upper bound");
  if (upper <= r->lower) r->steps = 0;
  else if (__builtin_sub_overflow(upper, r->lower, &r->steps)) r->steps = INT64_MAX;
  if (status || !r->steps || !nvg_weak_asked(l->index)) return status;
  if (nvg_weak_takes(l->index, r->lower) && nvg_weak_takes(l->index, upper - 1)) return NVM_OK;
  return nvb_fail(NVM_ERR_OVERFLOW,
                  "[fori_loop] the index runs from %lld to %lld, and the body uses it with a dtype that does not hold "
                  "all of these",
                  (long long)r->lower, (long long)(upper - 1));
}

/* ---- parameters */
static void set_packed(nvg_value *v, const run *r, const nvg_aval *av, nvd_operand at) {
  *v = (nvg_value){ .buffer = at.buf, .data = at.data, .device = r->dev - 1 };
  nvg_packed(v->stride, av->rank, av->shape);
}
static void set_carry(run *r, int k) {
  carry *c = &r->carry[k];
  nvg_value *from = r->operand[r->l->nhead + k];
  c->aval = r->l->operand[r->l->nhead + k]->aval;
  set_packed(&c->value, r, c->aval, operand_of(from));
  nvd_buf_ref(c->value.buffer);
  r->param[1 + k] = &c->value;
}
static void set_row(run *r, int i) {
  const nva_loop *l = r->l;
  int at = l->nhead + l->ncarry + i;
  const nvg_value *from = r->operand[at];
  const nvg_aval *av = l->operand[at]->aval;
  rows *x = &r->x[i];
  nvg_value *row = r->param[1 + l->ncarry + i] = &r->row[i];
  *x = (rows){ .at = operand_of(from), .step = from->stride[0] * nvg_size(av->dtype) };
  *row = (nvg_value){ .buffer = from->buffer, .data = from->data, .device = from->device };
  memcpy(row->stride, from->stride + 1, sizeof *row->stride * (size_t)(av->rank - 1));
  /* a program for rows of any alignment, unless all are aligned */
  if (x->step % 16 && l->length > 1 && (uintptr_t)from->data % 16 == 0) row->data += x->step;
}
static void set_parameters(run *r) {
  const nva_loop *l = r->l;
  r->number = (nvg_value){ .data = (char *)&r->index };
  r->param[0] = &r->number;
  for (int k = 0; k < l->ncarry; k++) set_carry(r, k);
  for (int i = 0; i < l->nx; i++) set_row(r, i);
  for (int i = 0, from = l->nhead + l->ncarry + l->nx; i < l->ncap; i++)
    r->param[1 + l->ncarry + l->nx + i] = r->operand[from + i];
}
static int64_t row_of(const run *r) { return r->l->reverse ? r->steps - 1 - r->step : r->step; }

/* ---- outputs */
static int set_outlets(run *r) {
  const nva_loop *l = r->l;
  for (int o = 0; o < r->nout; o++)
    r->outlet[o] = (outlet){ .aval = nva_traced_output(l->body, o), .carry = -1, .y = -1 };
  for (int i = 0; i < l->nresult; i++) {
    if (l->made[i] < 0) continue;
    if (i < l->ncarry) r->outlet[l->made[i]].carry = i;
    else r->outlet[l->made[i]].y = i - l->ncarry;
  }
  for (int i = 0; i < l->ny; i++) {
    int64_t row = bytes_of(r->outlet[l->made[l->ncarry + i]].aval);
    r->y[i] = (rows){ .at = memory_new(r, row * r->steps), .step = row };
    if (!r->y[i].at.buf) return nvb_status();
  }
  return NVM_OK;
}

/* ---- bodies without loops: memory is bound once */
static int leaf_carry(const run *r, int leaf) { /* the carry that a leaf is; -1: none */
  int s = nva_traced_source(r->l->body, leaf);
  return s >= 1 && s <= r->l->ncarry ? s - 1 : -1;
}
/* The leaves, as bits, that the plan may overwrite: carries whose memory no carry takes over as it is. */
static uint64_t find_given(const run *r) {
  const nva_loop *l = r->l;
  uint64_t bits = 0;
  for (int i = 0; i < nva_traced_leaves(l->body) && i < 64; i++) {
    int k = leaf_carry(r, i), kept = k < 0;
    for (int m = 0; m < l->ncarry && !kept; m++) kept = l->move[m] == k;
    bits |= (uint64_t)!kept << i;
  }
  return bits;
}
/* Decides where each carry's next value is. */
static int place_carries(run *r) {
  const nva_loop *l = r->l;
  uint8_t *taken = nvb_calloc((size_t)l->ncarry + 1, 1);
  if (!taken) return nvb_fail_memory();
  for (int k = 0; k < l->ncarry; k++) {
    carry *c = &r->carry[k];
    int donor = l->made[k] < 0 || !r->now ? -1 : nva_program_donor(r->now, l->made[k]);
    c->from = l->move[k] >= 0 ? l->move[k] : donor >= 0 ? leaf_carry(r, donor) : c->aval->size ? -1 : k;
    c->refill = -1;
    if (c->from >= 0) taken[c->from] = 1;
  }
  int status = NVM_OK;
  for (int own = 1; own >= 0; own--)
    for (int k = 0; k < l->ncarry; k++) {
      carry *c = &r->carry[k];
      int m = own ? k : 0;
      if (c->from >= 0 || c->refill >= 0) continue;
      while (m < (own ? k + 1 : l->ncarry) && (taken[m] || bytes_of(r->carry[m].aval) != bytes_of(c->aval))) m++;
      if (m < (own ? k + 1 : l->ncarry)) taken[c->refill = m] = 1;
    }
  for (int k = 0; k < l->ncarry && !status; k++) {
    carry *c = &r->carry[k];
    if (c->from < 0 && !(c->spare = memory_new(r, bytes_of(c->aval))).buf) status = nvb_status();
  }
  nvb_free(taken);
  return status;
}
/* Rows whose bytes are a multiple of 16 are aligned as kernels of a GPU want their outputs. */
static int place_outlets(run *r) {
  for (int o = 0; o < r->nout; o++) {
    outlet *x = &r->outlet[o];
    if (x->y >= 0) r->y[x->y].direct = !r->gpu || r->y[x->y].step % 16 == 0;
    if (!x->aval->size || x->carry >= 0 || (x->y >= 0 && r->y[x->y].direct)) continue;
    if (!(x->at = memory_new(r, bytes_of(x->aval))).buf) return nvb_status();
    x->owned = 1;
  }
  return NVM_OK;
}
static int bind_flat(run *r) {
  nva_loop *l = r->l;
  int n = nva_traced_leaves(l->body), status = nva_traced_bind(l->body, r->dev, r->param, r->value, r->moved);
  for (int i = 0; i < 1 + l->ncarry + l->nx; i++) r->leaf_of[i] = -1;
  for (int i = 0; i < n; i++) {
    int s = nva_traced_source(l->body, i);
    if (s >= 0 && s < 1 + l->ncarry + l->nx) r->leaf_of[s] = i;
    r->leaf[i] = (nvd_operand){ r->value[i]->device ? r->value[i]->buffer : NULL, r->value[i]->data };
  }
  if (!status && r->nout && !(r->program = nva_traced_program(l->body, r->dev, r->value, find_given(r))))
    status = nvb_status();
  if (!status && r->program) r->now = nva_program_now(r->program);
  if (!status) status = place_carries(r);
  return status ? status : place_outlets(r);
}
static void aim_leaves(run *r) {
  const nva_loop *l = r->l;
  for (int k = 0; k < l->ncarry; k++)
    if (r->leaf_of[1 + k] >= 0) {
      nvd_operand *at = &r->leaf[r->leaf_of[1 + k]];
      *at = (nvd_operand){ r->gpu ? r->carry[k].value.buffer : NULL, r->carry[k].value.data };
    }
  for (int i = 0; i < l->nx; i++)
    if (r->leaf_of[1 + l->ncarry + i] >= 0)
      r->leaf[r->leaf_of[1 + l->ncarry + i]].data = r->x[i].at.data + row_of(r) * r->x[i].step;
}
static void aim_outputs(run *r) {
  for (int k = 0; k < r->l->ncarry; k++) {
    carry *c = &r->carry[k];
    c->next = c->from < 0 ? c->spare : operand_of(&r->carry[c->from].value);
  }
  for (int o = 0, n = 0; o < r->nout; o++) {
    outlet *x = &r->outlet[o];
    const rows *y = x->y >= 0 ? &r->y[x->y] : NULL;
    if (x->carry >= 0) x->at = r->carry[x->carry].next;
    else if (y && y->direct) x->at = (nvd_operand){ y->at.buf, y->at.data + row_of(r) * y->step };
    if (x->aval->size) r->out[n++] = x->at;
  }
}
static void free_spares(run *r) {
  for (int k = 0; k < r->l->ncarry; k++)
    if (r->carry[k].from < 0) memory_free(r->carry[k].spare), r->carry[k].spare = (nvd_operand){ NULL, NULL };
}
/* The program that runs has changed, and its plan may compute other carries in place. */
static int change_program(run *r) {
  free_spares(r);
  r->now = nva_program_now(r->program);
  return place_carries(r);
}
static int step_flat(run *r) {
  int status = r->program && r->now != nva_program_now(r->program) ? change_program(r) : NVM_OK;
  if (status) return status;
  aim_leaves(r);
  aim_outputs(r);
  if (r->now && (status = nva_program_run_in(r->now, r->leaf, r->out))) return status;
  for (int k = 0; k < r->l->ncarry; k++)
    if (r->carry[k].refill >= 0) r->carry[k].spare = operand_of(&r->carry[r->carry[k].refill].value);
  for (int k = 0; k < r->l->ncarry; k++) {
    carry *c = &r->carry[k];
    c->value.buffer = c->next.buf, c->value.data = c->next.data;
  }
  return NVM_OK;
}

/* ---- bodies with loops: each step makes values */
static void release_outlets(run *r) {
  for (int o = 0; o < r->nout; o++)
    if (r->outlet[o].owned) memory_free(r->outlet[o].at), r->outlet[o].owned = 0;
}
static int step_nested(run *r) {
  const nva_loop *l = r->l;
  nvg_value **made = r->value;
  release_outlets(r);
  for (int i = 0; i < l->nx; i++) r->row[i].data = r->x[i].at.data + row_of(r) * r->x[i].step;
  int status = nva_traced_run(l->body, r->dev, r->param, made);
  if (status) return status;
  for (int o = 0; o < r->nout; o++) {
    r->outlet[o].at = operand_of(made[o]);
    nvd_buf_ref(made[o]->buffer);
    r->outlet[o].owned = 1;
    nvg_value_free(made[o]);
  }
  for (int k = 0; k < l->ncarry; k++)
    r->carry[k].next = l->move[k] >= 0 ? operand_of(&r->carry[l->move[k]].value) : r->outlet[l->made[k]].at;
  for (int k = 0; k < l->ncarry; k++) nvd_buf_ref(r->carry[k].next.buf);
  for (int k = 0; k < l->ncarry; k++) {
    nvd_buf_unref(r->carry[k].value.buffer);
    r->carry[k].value.buffer = r->carry[k].next.buf, r->carry[k].value.data = r->carry[k].next.data;
  }
  return NVM_OK;
}

/* ---- after a step */
static int position_of(int64_t *out, const run *r, const nva_store *s, int i) {
  const nva_at *at = &s->at[i];
  int64_t k = (int64_t)((uint64_t)at->scale * (uint64_t)r->index + (uint64_t)at->offset);
  int64_t extent = r->carry[s->carry].aval->shape[i];
  int status = at->made < 0 ? NVM_OK : read_bytes(r, &k, r->outlet[at->made].at, sizeof k);
  *out = k < 0 ? k + extent : k;
  if (status || (*out >= 0 && *out < extent)) return status;
  return nvb_fail(NVM_ERR_INDEX, "[setitem] index %lld is out of range for axis %d of extent %lld", (long long)k, i,
                  (long long)extent);
}
static int store_elements(const run *r, const nva_store *s) {
  const outlet *from = &r->outlet[s->value];
  const carry *to = &r->carry[s->carry];
  int64_t at = 0, k;
  for (int i = 0; i < s->n; i++) {
    int status = position_of(&k, r, s, i);
    if (status) return status;
    at = at * to->aval->shape[i] + k;
  }
  int64_t bytes = bytes_of(from->aval);
  return bytes ? copy_bytes(r, operand_of(&to->value), at * bytes, from->at, bytes) : NVM_OK;
}
static int finish_step(run *r) {
  const nva_loop *l = r->l;
  int status = NVM_OK;
  for (int i = 0; i < l->nstore && !status; i++) status = store_elements(r, &l->store[i]);
  for (int i = 0; i < l->ny && !status; i++)
    if (!r->y[i].direct && r->y[i].step)
      status = copy_bytes(r, r->y[i].at, row_of(r) * r->y[i].step, r->outlet[l->made[l->ncarry + i]].at, r->y[i].step);
  return status;
}
static int name_step(const run *r, int status) {
  char why[900];
  if (status == NVM_ERR_INTERRUPTED) return status;
  snprintf(why, sizeof why, "%s", nvb_message());
  return nvb_fail(status, "[%s] step %lld: %s", nva_loop_name(r->l), (long long)r->step, why);
}
static int read_test(int *out, const run *r, nvd_operand at) {
  uint8_t b = 0;
  int status = read_bytes(r, &b, at, 1);
  return *out = b != 0, status;
}
/* The test before the first step of a while_loop. */
static int test_first(int *out, const run *r) {
  nvg_value *v;
  int status = nva_traced_run(r->l->other, r->dev, r->param, &v);
  if (status) return status;
  status = read_test(out, r, operand_of(v));
  nvg_value_free(v);
  return status;
}
static int take_steps(run *r) {
  const nva_loop *l = r->l;
  int nested = nva_traced_has_loops(l->body), on = 1;
  int status = l->kind == NVM_WHILE_LOOP ? test_first(&on, r) : NVM_OK;
  if (!status && r->steps && on && !nested) status = bind_flat(r);
  for (; !status && on && r->step < r->steps; r->step++) {
    r->index = r->lower + r->step;
    if ((status = nvb_interrupted())) break;
    status = nested ? step_nested(r) : step_flat(r);
    if (!status) status = finish_step(r);
    if (!status && l->goes_on >= 0) status = read_test(&on, r, r->outlet[l->goes_on].at);
    if (status) break;
  }
  return status ? name_step(r, status) : NVM_OK;
}

/* ---- results */
static int take_results(run *r, nvg_value **out) {
  const nva_loop *l = r->l;
  int i = 0;
  for (; i < l->nresult; i++) {
    int64_t stride[NVM_MAX_RANK];
    const nvg_aval *av = l->result[i]->aval;
    nvd_operand at = i < l->ncarry ? operand_of(&r->carry[i].value) : r->y[i - l->ncarry].at;
    nvg_packed(stride, av->rank, av->shape);
    if (!(out[i] = nva_value_new(nvd_buf_ref(at.buf), at.data, av->rank, stride))) break;
  }
  if (i == l->nresult) return NVM_OK;
  while (i) nvg_value_free(out[--i]), out[i] = NULL;
  return nvb_status() ? nvb_status() : NVM_ERR_MEMORY;
}
static void end_run(run *r) {
  const nva_loop *l = r->l;
  for (int k = 0; k < l->ncarry; k++)
    if (r->carry[k].value.buffer) nvd_buf_unref(r->carry[k].value.buffer);
  free_spares(r);
  release_outlets(r);
  for (int i = 0; i < l->ny; i++) memory_free(r->y[i].at);
  for (int i = 0; r->moved && i < nva_traced_leaves(l->body); i++) nvg_value_free(r->moved[i]);
  nva_program_unref(r->program);
}
static int run_loop(run *r, nvg_value **out) {
  set_parameters(r);
  int status = count_steps(r);
  if (!status) status = set_outlets(r);
  if (!status) status = take_steps(r);
  if (!status) status = take_results(r, out);
  end_run(r);
  return status;
}
/* Gets the memory of a run's lists, all zeros. */
static void *lists_of(run *r) {
  const nva_loop *l = r->l;
  size_t leaves = (size_t)nva_traced_leaves(l->body), params = (size_t)(1 + l->ncarry + l->nx + l->ncap);
  size_t nout = (size_t)r->nout, nc = (size_t)l->ncarry, nx = (size_t)l->nx, ny = (size_t)l->ny;
  size_t values = leaves > nout ? leaves : nout;
  char *at = nvb_calloc(1, nc * sizeof *r->carry + nout * (sizeof *r->outlet + sizeof *r->out) +
                               nx * (sizeof *r->row + sizeof *r->x) + ny * sizeof *r->y +
                               (params + values + leaves) * sizeof *r->param + leaves * sizeof *r->leaf +
                               params * sizeof *r->leaf_of + 1);
  if (!at) return nvb_fail_memory(), NULL;
  r->carry = (carry *)(void *)at;
  r->row = (nvg_value *)(void *)(r->carry + nc);
  r->outlet = (outlet *)(void *)(r->row + nx);
  r->x = (rows *)(void *)(r->outlet + nout);
  r->y = r->x + nx;
  r->out = (nvd_operand *)(void *)(r->y + ny);
  r->leaf = r->out + nout;
  r->param = (nvg_value **)(void *)(r->leaf + leaves);
  r->value = r->param + params;
  r->moved = r->value + values;
  r->leaf_of = (int *)(void *)(r->moved + leaves);
  return at;
}
static int run_branch(nva_loop *l, int dev, nvg_value *const *operand, nvg_value **out) {
  enum { FEW = 24 };
  run r = { .l = l, .dev = dev, .operand = operand };
  nvg_value *few[FEW], **param = few;
  int64_t yes, n = nva_loop_operands(l);
  int status = read_head(&yes, &r, 0, "predicate");
  if (status) return status;
  if (n > FEW && !(param = nvb_alloc(sizeof *param * (size_t)n))) return nvb_fail_memory();
  r.number = (nvg_value){ .data = (char *)&r.index };
  param[0] = &r.number; /* the index, which no branch reads */
  for (int64_t i = 1; i < n; i++) param[i] = operand[i];
  status = nva_traced_run(yes ? l->body : l->other, dev, param, out);
  if (param != few) nvb_free(param);
  return status;
}
int nva_loop_run(nva_loop *l, int dev, nvg_value *const *operand, nvg_value **out) {
  int status = nvb_interrupted();
  for (int i = 0; i < l->nresult; i++) out[i] = NULL;
  if (status) return status;
  if (l->kind == NVM_COND) return run_branch(l, dev, operand, out);
  run r = { .l = l, .dev = dev, .operand = operand, .nout = nva_traced_outputs(l->body) };
  if (dev > 1 && !(r.gpu = nva_gpu(nva_loop_name(l), dev))) return nvb_status();
  void *lists = lists_of(&r);
  if (!lists) return nvb_status();
  status = run_loop(&r, out);
  nvb_free(lists);
  return status;
}
