/* Executes operations along an axis: reductions and scans in the order of docs/how-it-works/numerics.md, transforms,
   contractions. Each is arranged so that a fragment runs over many elements at once. Never changes the order in which
   one result merges. */
#include <string.h>
#include "codegen/interp/interp.h"
#include "frag/dtype.h"
#include "kernel/dft.h"

/* WIDE: elements of a row from which sequences merge one by one, without gathering them */
enum { STATES = NVF_STATES, WIDE = 64 };

static int size_of(const nvc_interp *p, int tile) { return nvg_size(p->k->tile[tile].type); }

/* An array of states: element e of state j at at[j] + e * size[j]. */
typedef struct states {
  int n, size[STATES];
  char *at[STATES];
} states;

static states states_of(const nvc_nest *r, const int *tile, int n) {
  states s = { .n = n };
  for (int j = 0; j < n; j++) {
    s.size[j] = size_of(r->p, tile[j]);
    s.at[j] = nvc_tile(r, tile[j]);
  }
  return s;
}

static states states_at(const states *s, int64_t element) {
  states t = *s;
  for (int j = 0; j < s->n; j++) t.at[j] += element * s->size[j];
  return t;
}

static states take_states(const states *like, char **work, int64_t elements) {
  states t = *like;
  for (int j = 0; j < t.n; j++) {
    t.at[j] = *work;
    *work += nvc_align(elements * t.size[j]);
  }
  return t;
}

static int64_t registers_for(const nvc_interp *p, const nvf_stmt *s, int n, int64_t elements) {
  int64_t sum = 0;
  for (int j = 0; j < n; j++) sum += nvc_align(elements * size_of(p, s->in[j]));
  return sum;
}

static void merge_states(const nvc_ins *i, const states *a, const states *b, const states *out, int64_t n) {
  const void *in[2 * STATES];
  void *to[STATES];
  for (int j = 0; j < a->n; j++) {
    in[j] = a->at[j];
    in[a->n + j] = b->at[j];
    to[j] = out->at[j];
  }
  nvg_frag_run(i->frag, in, to, n, 1);
}

static void copy_states(const states *to, const states *from, int64_t n) {
  for (int j = 0; j < to->n; j++) memmove(to->at[j], from->at[j], (size_t)(n * to->size[j]));
}

/* n elements of the view over `from`, packed to `to`; spread: back */
static void gather_states(const states *to, const states *from, const nvc_view *v, int64_t n) {
  for (int j = 0; j < to->n; j++) nvc_gather(to->at[j], from->at[j], to->size[j], v, 0, n);
}
static void spread_states(const states *to, const states *from, const nvc_view *v, int64_t n) {
  for (int j = 0; j < to->n; j++) nvc_spread(to->at[j], from->at[j], to->size[j], v, 0, n);
}

static nvc_view view_of(int64_t n0, int64_t s0, int64_t n1, int64_t s1) {
  nvc_view v = { 2, { n0, n1 }, { s0, s1 } };
  nvc_view_collapse(&v);
  return v;
}

/* The operands with masked elements replaced by the identity. */
static states load_operands(const nvc_nest *r, const nvc_ins *i, int n, char **work) {
  states x = states_of(r, i->s->in, n);
  if (!i->s->where) return x;
  states scratch = take_states(&x, work, i->shape.total);
  nvc_nest below = *r;
  below.work = *work; /* evaluated masks come after the operands */
  for (int j = 0; j < n; j++)
    x.at[j] = (char *)(uintptr_t)nvc_masked(&below, i, x.at[j], x.size[j], i->s->init[j], scratch.at[j]);
  return x;
}

/* ---- reductions. Lane p of chunk c is row c * W + p: after the sequences, one tree merges all rows, pairs first */
static void reduce_sequences(const nvc_ins *i, const states *x, const states *acc, char *work) {
  int64_t seq = i->chunk / i->lanes, run = i->lanes * i->inner, n = i->outer * i->len / i->chunk,
          whole = i->chunk * i->inner;
  if (run < WIDE && n > 1) { /* merges step q of all sequences at once */
    nvc_view v = view_of(n, whole, run, 1);
    states step = take_states(x, &work, n * run);
    gather_states(acc, x, &v, n * run);
    for (int64_t q = 1; q < seq; q++) {
      states from = states_at(x, q * run);
      gather_states(&step, &from, &v, n * run);
      merge_states(i, acc, &step, acc, n * run);
    }
    return;
  }
  for (int64_t c = 0; c < n; c++) {
    states to = states_at(acc, c * run), first = states_at(x, c * whole);
    copy_states(&to, &first, run);
    for (int64_t q = 1; q < seq; q++) {
      states from = states_at(x, c * whole + q * run);
      merge_states(i, &to, &from, &to, run);
    }
  }
}

/* Rows 2k and 2k + 1 of `in` become row k of out. */
static void halve_even(const nvc_ins *i, const states *in, const states *out, int64_t rows, char *work) {
  int64_t n = rows / 2 * i->inner;
  nvc_view v = view_of(rows / 2, 2 * i->inner, i->inner, 1);
  states even = take_states(in, &work, n), odd = take_states(in, &work, n), second = states_at(in, i->inner);
  gather_states(&even, in, &v, n);
  gather_states(&odd, &second, &v, n);
  merge_states(i, &even, &odd, out, n);
}

/* halve_even for each of `outer` trees of `rows` rows; an odd last row has no partner. `in` and `out` may be the
   same. */
static void halve_rows(const nvc_ins *i, const states *in, const states *out, int64_t outer, int64_t rows, char *work) {
  if (rows % 2 == 0) {
    halve_even(i, in, out, outer * rows, work);
    return;
  }
  for (int64_t o = 0; o < outer; o++) {
    states from = states_at(in, o * rows * i->inner), to = states_at(out, o * (rows + 1) / 2 * i->inner);
    states last = states_at(&from, (rows - 1) * i->inner), alone = states_at(&to, rows / 2 * i->inner);
    halve_even(i, &from, &to, rows - 1, work);
    copy_states(&alone, &last, i->inner);
  }
}

int nvc_do_reduce(nvc_nest *r, const nvc_ins *i) {
  char *work = r->work;
  states x = load_operands(r, i, i->s->nin, &work), out = states_of(r, i->s->out, i->s->nin);
  int64_t rows = i->len / i->chunk * i->lanes;
  states acc = take_states(&x, &work, i->outer * rows * i->inner);
  if (i->chunk > i->lanes) {
    reduce_sequences(i, &x, &acc, work);
    x = acc;
  }
  for (; rows > 1; rows = (rows + 1) / 2) {
    halve_rows(i, &x, rows == 2 ? &out : &acc, i->outer, rows, work);
    x = acc;
  }
  if (i->len / i->chunk * i->lanes == 1) copy_states(&out, &x, i->outer * i->inner);
  return 0;
}

int64_t nvc_reduce_work(const nvc_interp *p, const nvc_ins *i) {
  int64_t rows = i->outer * (i->len / i->chunk) * i->lanes;
  return (i->s->where ? registers_for(p, i->s, i->s->nin, i->shape.total) : 0) +
         3 * registers_for(p, i->s, i->s->nin, rows * i->inner);
}

/* ---- scans: runs of 16 elements in sequence, blocks of 64 runs by the bits of the run's number, blocks from left to
   right. The value is (carry + e) + p; an absent term is skipped. */
typedef struct scan {
  const nvc_ins *i;
  int64_t run, runs, in;
  states p, total, e, work;
} scan;

/* e of the runs of a block: from the lowest set bit of the run's number upward, the total of the group to the left +
   e. */
static void exclusive_prefixes(const scan *s, int64_t first, int64_t count) {
  states total = states_at(&s->total, first * s->in); /* totals of groups of `size` runs, which grow in place */
  for (int64_t size = 1; size < count; size *= 2) {
    for (int64_t g = 1; g * size < count; g += 2) {
      int64_t at = first + g * size, n = count - g * size < size ? count - g * size : size;
      states left = states_at(&total, (g - 1) * size * s->in), e = states_at(&s->e, at * s->in),
             more = states_at(&e, s->in);
      copy_states(&e, &left, s->in);
      if (n > 1) {
        nvc_view v = view_of(n - 1, 0, s->in, 1);
        gather_states(&s->work, &left, &v, (n - 1) * s->in);
        merge_states(s->i, &s->work, &more, &more, (n - 1) * s->in);
      }
    }
    for (int64_t g = 0; (g + 1) * size < count; g += 2) { /* a group that is absent on the right is skipped */
      states left = states_at(&total, g * size * s->in), right = states_at(&total, (g + 1) * size * s->in);
      merge_states(s->i, &left, &right, &left, s->in);
    }
  }
}

/* carry + e for the runs of a block, in place (has: there is a carry), then the carry of the next block. */
static void carry_over(const scan *s, const states *carry, int has, int64_t first, int64_t count) {
  states e = states_at(&s->e, first * s->in), more = states_at(&e, s->in), total = states_at(&s->total, first * s->in);
  if (has && count > 1) {
    nvc_view v = view_of(count - 1, 0, s->in, 1);
    gather_states(&s->work, carry, &v, (count - 1) * s->in);
    merge_states(s->i, &s->work, &more, &more, (count - 1) * s->in);
  }
  if (has) copy_states(&e, carry, s->in);
  if (has) merge_states(s->i, carry, &total, carry, s->in);
  else copy_states(carry, &total, s->in);
}

static void scan_line(const scan *s, const states *x, const states *out, const states *carry, int has) {
  const nvc_ins *i = s->i;
  int64_t in = s->in, lines = s->runs * in, skip = has ? 0 : 1;
  nvc_view v = view_of(s->runs, s->run * in, in, 1);
  gather_states(&s->total, x, &v, lines); /* prefixes within the runs go to out; the last one is the run's total */
  spread_states(out, &s->total, &v, lines);
  for (int64_t t = 1; t < s->run; t++) {
    states from = states_at(x, t * in), to = states_at(out, t * in);
    gather_states(&s->work, &from, &v, lines);
    merge_states(i, &s->total, &s->work, &s->total, lines);
    spread_states(&to, &s->total, &v, lines);
  }
  for (int64_t b = 0; b < s->runs; b += NVF_SCAN_RUNS) {
    int64_t count = s->runs - b < NVF_SCAN_RUNS ? s->runs - b : NVF_SCAN_RUNS;
    exclusive_prefixes(s, b, count);
    carry_over(s, carry, has || b > 0, b, count);
  }
  int64_t n = (s->runs - skip) * s->run * in;
  if (n <= 0) return;
  nvc_view all = { 3, { s->runs - skip, s->run, in }, { in, 0, 1 } };
  nvc_view_collapse(&all);
  states e = states_at(&s->e, skip * in), to = states_at(out, skip * s->run * in);
  gather_states(&s->p, &e, &all, n);
  merge_states(i, &s->p, &to, &to, n);
}

int nvc_do_scan(nvc_nest *r, const nvc_ins *i) {
  int n = i->frag->nresult, has = i->s->nin > n;
  char *work = r->work;
  states x = load_operands(r, i, n, &work), out = states_of(r, i->s->out, n);
  scan s = { .i = i, .run = i->len < NVF_SCAN_RUN ? i->len : NVF_SCAN_RUN, .in = i->inner };
  int64_t line = i->len * i->inner;
  s.runs = i->len / s.run;
  s.p = take_states(&x, &work, line);
  s.total = take_states(&x, &work, s.runs * i->inner);
  s.e = take_states(&x, &work, s.runs * i->inner);
  s.work = take_states(&x, &work, s.runs * i->inner);
  states carry = take_states(&x, &work, i->inner);
  for (int64_t o = 0; o < i->outer; o++) {
    states xo = states_at(&x, o * line), oo = states_at(&out, o * line);
    if (has) {
      states from = states_of(r, i->s->in + n, n), at = states_at(&from, o * i->inner);
      copy_states(&carry, &at, i->inner);
    }
    scan_line(&s, &xo, &oo, &carry, has);
    if (has) {
      states to = states_of(r, i->s->out + n, n), at = states_at(&to, o * i->inner);
      copy_states(&at, &carry, i->inner);
    }
  }
  return 0;
}

int64_t nvc_scan_work(const nvc_interp *p, const nvc_ins *i) {
  const nvf_stmt *s = i->s;
  int n = i->frag->nresult;
  return (s->where ? registers_for(p, s, n, i->shape.total) : 0) + 5 * registers_for(p, s, n, i->len * i->inner);
}

/* ---- transforms: in batches over the elements of the other axes */
int nvc_do_dft(nvc_nest *r, const nvc_ins *i) {
  const nvf_stmt *s = i->s;
  int64_t n = i->len, count = i->rest.total, parts = s->nin > 1 ? 2 : 1, items = parts * n;
  int size = i->op[0].size;
  const void *in[NVF_DFT_PARAMS];
  void *out[2 * NVF_DFT_MAX];
  char *level = r->work;
  for (int64_t start = 0; start < count; start += NVC_BATCH) {
    int64_t m = count - start < NVC_BATCH ? count - start : NVC_BATCH;
    for (int64_t t = 0; t < items + s->nin - parts; t++) {
      int q = t < items ? (int)(t % parts) : (int)(t - items + parts);
      const nvc_operand *o = &i->op[q];
      char *to = level + t * NVC_BATCH * size;
      nvc_gather(to, nvc_tile(r, o->id) + (q < parts ? t / parts * i->along[q] * size : 0), size, &o->v, start, m);
      in[t] = to;
    }
    for (int64_t t = 0; t < 2 * n; t++) out[t] = level + t * NVC_BATCH * size;
    nvg_frag_run(i->frag, in, out, m, 1);
    for (int64_t t = 0; t < 2 * n; t++)
      nvc_spread(nvc_tile(r, s->out[t % 2]) + t / 2 * i->along[0] * size, out[t], size, &i->op[0].v, start, m);
  }
  return 0;
}

int64_t nvc_dft_work(const nvc_interp *p, const nvc_ins *i) {
  (void)p;
  return (2 * i->len + (i->s->nin > 2 ? i->s->nin - 2 : 0)) * NVC_BATCH * i->op[0].size;
}

/* ---- contractions: a chunk of the sum is accumulated along the whole axis. Products of 16-bit operands are exact in
   the fma. */
static const void *load_operand(const nvc_nest *r, const nvc_ins *i, int j, int64_t q, int64_t start, int64_t n,
                                char *workspace) {
  const nvc_operand *o = &i->op[j];
  const nvg_frag *widen = i->widen[j];
  char *packed = widen ? workspace + (int64_t)NVC_CHUNK * nvg_size(widen->inst[widen->result[0]].type) : workspace;
  nvc_gather(packed, nvc_tile(r, o->id) + q * i->along[j] * o->size, o->size, &o->v, start, n);
  const void *in[1] = { packed };
  void *out[1] = { workspace };
  if (widen) nvg_frag_run(widen, in, out, n, 1);
  return workspace;
}

int nvc_do_contract(nvc_nest *r, const nvc_ins *i) {
  int size = nvg_size(r->p->k->tile[i->s->in[0]].type);
  int64_t bytes = (int64_t)NVC_CHUNK * size;
  char *acc = r->work;
  const char *from = nvc_tile(r, i->s->in[0]);
  char *to = nvc_tile(r, i->s->out[0]);
  for (int64_t start = 0; start < i->shape.total; start += NVC_CHUNK) {
    int64_t n = i->shape.total - start < NVC_CHUNK ? i->shape.total - start : NVC_CHUNK;
    memcpy(acc, from + start * size, (size_t)(n * size));
    for (int64_t q = 0; q < i->len; q++) {
      const void *in[3] = { load_operand(r, i, 0, q, start, n, acc + bytes),
                            load_operand(r, i, 1, q, start, n, acc + 3 * bytes), acc };
      void *out[1] = { acc };
      nvg_frag_run(i->frag, in, out, n, 1);
    }
    memcpy(to + start * size, acc, (size_t)(n * size));
  }
  return 0;
}

int64_t nvc_contract_work(const nvc_interp *p, const nvc_ins *i) {
  return 5 * (int64_t)NVC_CHUNK * nvg_size(p->k->tile[i->s->in[0]].type);
}
