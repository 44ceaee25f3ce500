/* Decides whether two strided parts of one memory have a byte in common. They do if a sum of steps from the first byte
   of one and back from the last byte of the other covers the distance between these two bytes, so the question is a
   linear equation in bounded integers. It is decided by the largest step first; a sum of steps that reaches every
   multiple of their greatest common divisor, as the axes of an array without gaps do, is decided at once. */
#include "api/overlap.h"
#include <stdlib.h>
#include "base/int.h"

enum { MOST_TERMS = 2 * (NVM_MAX_RANK + 1) }; /* the axes and the bytes of an element, of both */
/* A sum of `step * x` for x in 0..most. What holds for it and all smaller terms together: the greatest common divisor
   of their steps, their largest sum, and whether their sums are all multiples of the divisor up to it. */
typedef struct term { int64_t step, most, divisor, reach; int dense; } term;
typedef struct equation { int n; int64_t work; term t[MOST_TERMS + 1]; } equation;

/* ---- setting up */
/* The part's first byte and the one behind its last. */
typedef struct span { int64_t first, end; } span;
static int find_span(span *s, const nva_part *p) { /* returns 0 if it exceeds the address space */
  *s = (span){ p->offset, p->offset };
  int fits = !__builtin_add_overflow(s->end, (int64_t)p->each, &s->end);
  for (int d = 0; d < p->rank && fits; d++) {
    int64_t *end = p->stride[d] < 0 ? &s->first : &s->end, length;
    fits =
        !__builtin_mul_overflow(p->stride[d], p->shape[d] - 1, &length) && !__builtin_add_overflow(*end, length, end);
  }
  return fits;
}
static void add_term(equation *e, int64_t step, int64_t most) {
  if (step && most) e->t[e->n++] = (term){ .step = step, .most = most };
}
static int compare_steps(const void *a, const void *b) { /* the largest first */
  int64_t x = ((const term *)a)->step, y = ((const term *)b)->step;
  return (x < y) - (x > y);
}
static int64_t add_up_to(int64_t a, int64_t b, int64_t limit) { return a >= limit - b ? limit : a + b; }
/* Sorts the terms, merges those of one step, bounds them by `want` and describes the sums from each term on. */
static void finish_terms(equation *e, int64_t want) {
  int n = 0;
  qsort(e->t, (size_t)e->n, sizeof *e->t, compare_steps);
  for (int i = 0; i < e->n; i++)
    if (n && e->t[n - 1].step == e->t[i].step) e->t[n - 1].most = add_up_to(e->t[n - 1].most, e->t[i].most, want);
    else if (e->t[i].step <= want) e->t[n++] = e->t[i];
  e->n = n;
  e->t[n] = (term){ .dense = 1 };
  while (n--) {
    term *t = &e->t[n], *less = t + 1;
    if (t->most > want / t->step) t->most = want / t->step;
    t->divisor = nvb_gcd(t->step, less->divisor);
    t->reach = add_up_to(less->reach, t->step * t->most, want);
    t->dense = less->dense && (!less->divisor || (t->divisor == less->divisor && t->step - t->divisor <= less->reach));
  }
}

/* ---- solving */
__extension__ typedef __int128 wide;
/* The inverse of a modulo m, which have no common divisor; m > 0. */
static int64_t invert_modulo(int64_t a, int64_t m) {
  int64_t r = m, next = a % m, x = 0, y = 1;
  while (next) {
    int64_t q = r / next, rest = r - q * next, z = x - q * y;
    r = next, next = rest, x = y, y = z;
  }
  return x < 0 ? x + m : x;
}
/* The factors of term i that leave smaller terms something that they may add up to: from..to in steps of `by`. */
typedef struct factors { int64_t from, to, by; } factors;
static factors list_factors(const equation *e, int i, int64_t want) {
  const term *t = &e->t[i], *less = t + 1;
  int64_t left = want - less->reach, residue = 0;
  factors f = { left > 0 ? (left + t->step - 1) / t->step : 0, want / t->step, 1 };
  if (f.to > t->most) f.to = t->most;
  if (less->divisor) f.by = less->divisor / t->divisor;
  if (f.by > 1)
    residue = (int64_t)((wide)(want / t->divisor % f.by) * invert_modulo(t->step / t->divisor, f.by) % f.by);
  int64_t ahead = (residue - f.from % f.by + f.by) % f.by;
  f.from += ahead;
  return f;
}
static int solve_from(equation *e, int i, int64_t want) { /* have the terms from i on the sum `want`? */
  const term *t = &e->t[i];
  if (want > t->reach || (t->divisor ? want % t->divisor : want)) return NVA_APART;
  if (t->dense) return NVA_OVERLAPPING;
  factors f = list_factors(e, i, want);
  int found = NVA_APART;
  for (int64_t x = f.from; x <= f.to && found == NVA_APART; x += f.by)
    found = e->work && e->work-- ? solve_from(e, i + 1, want - x * t->step) : NVA_UNDECIDED;
  return found;
}

/* The greatest number of bytes of which all steps, elements and the distance are multiples. */
static int64_t find_unit(const nva_part *p, const nva_part *q) {
  int64_t unit = nvb_gcd((int64_t)p->each, (int64_t)q->each);
  if ((p->offset - q->offset) % unit) return 1;
  for (int d = 0; d < p->rank; d++)
    if (p->stride[d] % unit) return 1;
  for (int d = 0; d < q->rank; d++)
    if (q->stride[d] % unit) return 1;
  return unit;
}
static void add_part(equation *e, const nva_part *p, int64_t unit) {
  for (int d = 0; d < p->rank; d++) add_term(e, llabs(p->stride[d]) / unit, p->shape[d] - 1);
  add_term(e, 1, (int64_t)p->each / unit - 1);
}
int nva_parts_overlap(const nva_part *p, const nva_part *q, int64_t work) {
  equation e = { .work = work };
  span a, b;
  if (!p->size || !q->size) return NVA_APART;
  if (!find_span(&a, p) || !find_span(&b, q)) return NVA_UNDECIDED;
  if (a.end <= b.first || b.end <= a.first) return NVA_APART;
  if (!work) return NVA_UNDECIDED;
  int64_t unit = find_unit(p, q), want = (b.end - a.first) / unit - 1;
  add_part(&e, p, unit), add_part(&e, q, unit);
  finish_terms(&e, want);
  return solve_from(&e, 0, want);
}

/* Reads the description of a part; a status. */
static int read_part(nva_part *p, const nvm_strided *m) {
  if (m->rank < 0 || m->rank > NVM_MAX_RANK)
    return nvb_fail(NVM_ERR_VALUE, "[overlap] %d dimensions; at most %d are possible", m->rank, NVM_MAX_RANK);
  if (m->rank && (!m->shape || !m->strides)) return nva_missing("overlap", m->shape ? "strides" : "shape");
  *p = (nva_part){ .each = m->each, .rank = m->rank, .size = m->each != 0, .offset = m->at };
  for (int d = 0; d < m->rank; d++) {
    p->shape[d] = m->shape[d], p->stride[d] = m->strides[d];
    if (m->shape[d] <= 0) p->size = 0;
  }
  return NVM_OK;
}
int nvm_overlap(int *out, const nvm_strided *a, const nvm_strided *b, int64_t work) {
  nva_part p, q;
  if (!out || !a || !b) return nva_missing("overlap", out ? "memory" : "pointer for the answer");
  int status = read_part(&p, a);
  if (!status) status = read_part(&q, b);
  if (!status) *out = nva_parts_overlap(&p, &q, work);
  return status;
}
