/* Layouts: the digits of each axis of a tile and the level (register, loop, lane, warp, CTA) of each digit. This file
   parses and prints layouts and answers what the checker, the interpreter and the emitters ask of them; it never
   decides which layout is good. */
#include <string.h>
#include "kernel/kernel.h"

int64_t nvf_extent(const nvf_layout *l, int axis) {
  int64_t e = 1;
  for (int i = 0; i < l->n; i++)
    if (l->d[i].axis == axis) e *= l->d[i].extent;
  return e;
}

int nvf_layout_axes(const nvf_layout *l, int *axes) {
  int n = 0;
  for (int i = 0; i < l->n; i++) {
    int seen = 0;
    for (int j = 0; j < n; j++) seen |= axes[j] == l->d[i].axis;
    if (!seen) axes[n++] = l->d[i].axis;
  }
  return n;
}

nvf_layout nvf_layout_only(const nvf_layout *l, const int *axes, int n) {
  nvf_layout r = { 0 };
  for (int i = 0; i < l->n; i++)
    for (int j = 0; j < n; j++)
      if (l->d[i].axis == axes[j]) {
        r.d[r.n++] = l->d[i];
        break;
      }
  return r;
}

nvf_layout nvf_layout_without(const nvf_layout *l, int axis) {
  nvf_layout r = { 0 };
  for (int i = 0; i < l->n; i++)
    if (l->d[i].axis != axis) r.d[r.n++] = l->d[i];
  return r;
}

static int same_digit(const nvf_digit *a, const nvf_digit *b) {
  return a->axis == b->axis && a->extent == b->extent && a->stride == b->stride && a->level == b->level &&
         a->pstride == b->pstride;
}

int nvf_layout_within(const nvf_layout *a, const nvf_layout *b) {
  for (int i = 0; i < a->n; i++) {
    int found = a->d[i].extent == 1;
    for (int j = 0; j < b->n && !found; j++) found = same_digit(&a->d[i], &b->d[j]);
    if (!found) return 0;
  }
  return 1;
}

int nvf_layout_eq(const nvf_layout *a, const nvf_layout *b) {
  return nvf_layout_within(a, b) && nvf_layout_within(b, a);
}

void nvf_layout_finish(nvf_layout *l) {
  int lane = 1, warp = 1, block = 1;
  for (int i = l->n; i-- > 0;) {
    nvf_digit *d = &l->d[i];
    d->stride = 1;
    for (int j = i + 1; j < l->n; j++)
      if (l->d[j].axis == d->axis) d->stride *= l->d[j].extent;
    int *run = d->level == 'l' ? &lane : d->level == 'w' ? &warp : d->level == 'c' ? &block : NULL;
    if (!run) d->pstride = 0;
    else if (d->pstride <= 0) {
      d->pstride = *run;
      *run *= d->extent;
    }
  }
}

/* ---- text */
typedef struct reader {
  nvf_kernel *k;
  const char *text, *p;
} reader;

static _Noreturn void fail_layout(reader *r, const char *what) {
  nvb_throw(r->k->arena, NVM_ERR_VALUE, "[layout] %s at column %d of \"%s\"", what, (int)(r->p - r->text) + 1, r->text);
}

static void skip_space(reader *r) {
  while (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r') r->p++;
}

static int parse_number(reader *r) {
  int64_t v = 0;
  if (*r->p < '0' || *r->p > '9') fail_layout(r, "a number is missing");
  for (; *r->p >= '0' && *r->p <= '9'; r->p++)
    if ((v = v * 10 + (*r->p - '0')) > 1 << 30) fail_layout(r, "the number is too large");
  return (int)v;
}

static int axis_of(reader *r) {
  const char *from = r->p;
  while ((*r->p >= 'a' && *r->p <= 'z') || (*r->p >= 'A' && *r->p <= 'Z') || (*r->p >= '0' && *r->p <= '9') ||
         *r->p == '_')
    r->p++;
  size_t n = (size_t)(r->p - from);
  if (n == 0) fail_layout(r, "the name of an axis is missing");
  for (int i = 0; i < r->k->naxis; i++)
    if (strlen(r->k->axis[i]) == n && memcmp(r->k->axis[i], from, n) == 0) return i;
  r->p = from;
  fail_layout(r, "no such axis in the kernel");
}

static void parse_digit(reader *r, nvf_layout *l, int axis) {
  if (l->n == NVF_MAX_DIGITS) fail_layout(r, "too many digits");
  nvf_digit d = { .axis = axis, .level = *r->p++ };
  d.extent = parse_number(r);
  if (d.extent < 1) fail_layout(r, "an extent must be at least 1");
  if (*r->p == '@') {
    r->p++;
    if (d.level == 'i' || d.level == 'I') fail_layout(r, "only l, w and c digits have a stride");
    if ((d.pstride = parse_number(r)) < 1) fail_layout(r, "a stride must be at least 1");
  }
  l->d[l->n++] = d;
}

/* Checks that all digits of an axis are adjacent, and that a tile has less than 2^31 elements. */
static void check_axis(reader *r, const nvf_layout *l, int first) {
  int64_t all = 1;
  for (int i = 0; i < l->n; i++) {
    if (i < first && l->d[i].axis == l->d[first].axis) fail_layout(r, "an axis is written twice");
    if ((all *= l->d[i].extent) > INT32_MAX) fail_layout(r, "the layout has too many elements");
  }
}

void nvf_layout_parse(nvf_kernel *k, nvf_layout *out, const char *text) {
  reader r = { k, text, text };
  *out = (nvf_layout){ 0 };
  for (skip_space(&r); *r.p;) {
    int axis = axis_of(&r), first = out->n;
    skip_space(&r);
    if (*r.p++ != ':') {
      r.p--;
      fail_layout(&r, "':' is missing");
    }
    for (skip_space(&r); *r.p && *r.p != ';'; skip_space(&r)) {
      if (!strchr("iIlwc", *r.p)) fail_layout(&r, "a digit begins with i, I, l, w or c");
      parse_digit(&r, out, axis);
    }
    if (out->n == first) fail_layout(&r, "an axis needs a digit");
    check_axis(&r, out, first);
    if (*r.p == ';') r.p++;
    skip_space(&r);
  }
  nvf_layout_finish(out);
}

/* Prints the strides of lanes, warps and CTAs only if they differ from those that nvf_layout_finish computes. */
void nvf_layout_print(nvb_text *t, const nvf_kernel *k, const nvf_layout *l) {
  nvf_layout plain = *l;
  for (int i = 0; i < plain.n; i++) plain.d[i].pstride = 0;
  nvf_layout_finish(&plain);
  int same = 1;
  for (int i = 0; i < l->n; i++) same &= plain.d[i].pstride == l->d[i].pstride;
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    if (i == 0 || l->d[i - 1].axis != d->axis) nvb_print(t, "%s%s:", i ? "; " : "", k->axis[d->axis]);
    nvb_print(t, " %c%d", d->level, (int)d->extent);
    if (!same && d->level != 'i' && d->level != 'I') nvb_print(t, "@%d", (int)d->pstride);
  }
}
