/* Expands einsum: subscripts become labels of dimensions, operands become terms, and terms are multiplied pairwise. */
#include <ctype.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "graph/contraction.h"

enum { TEXT = 2048 };
typedef struct spec {            /* the parsed text */
  char text[TEXT];
  const char *input[TEXT]; /* subscripts of each operand, in text */
  const char *output;      /* subscripts after the arrow; NULL: no arrow */
  int n;
} spec;
/* labels: letters in order of appearance, then the dimensions of the ellipsis, the last one first */
typedef struct labels {
  int8_t number[128];    /* label of a letter; -1: none yet */
  int count, dots;       /* number of letters; dimensions of the widest ellipsis */
  int times[NVG_LABELS]; /* how often a letter occurs in the inputs */
  char letter[NVG_LABELS];
  int64_t extent[NVG_LABELS];
} labels;

static int fail_text(nvg_call *c, const char *what, const char *text) {
  nvg_bad(c, NVM_ERR_VALUE, "%s: '%s'", what, text);
  return 0;
}

/* ---- reading */
static int read_text(nvg_call *c, spec *s) {
  if (nvg_attr_text(c, "subscripts", TEXT, s->text)) return 0;
  char *arrow = strstr(s->text, "->");
  s->output = NULL;
  if (arrow) *arrow = 0, s->output = arrow + 2;
  s->n = 0;
  for (char *at = s->text; at;) {
    s->input[s->n++] = at;
    if ((at = strchr(at, ','))) *at++ = 0;
  }
  if (s->n != c->nin) return nvg_bad(c, NVM_ERR_VALUE, "subscripts of %d operands for %d", s->n, c->nin), 0;
  return 1;
}

/* Counts the letters of a term, and sets *dots if it has an ellipsis; returns 0 with a message on failure. */
static int read_term(nvg_call *c, const char *s, int *letters, int *dots) {
  *letters = *dots = 0;
  for (const char *p = s; *p; p++)
    if (isalpha((unsigned char)*p)) ++*letters;
    else if (!strncmp(p, "...", 3) && !*dots) *dots = 1, p += 2;
    else return fail_text(c, "subscripts are letters and one '...'", s);
  return 1;
}

/* Writes the labels of one operand's dimensions. */
static void label_term(const labels *l, const char *s, int dots, uint8_t *label) {
  for (int d = 0; *s; s++)
    if (*s != '.') label[d++] = (uint8_t)l->number[(int)*s];
    else
      for (s += 2; dots; dots--) label[d++] = (uint8_t)(l->count + dots - 1);
}

static int meet_labels(nvg_call *c, labels *l, const nvg_node *x, const char *s) {
  int letters, dots, rank = x->aval->rank;
  char shape[NVG_SHAPE_TEXT];
  if (!read_term(c, s, &letters, &dots)) return 0;
  if (dots ? letters > rank : letters != rank)
    return nvg_bad(c, NVM_ERR_VALUE, "'%s' does not name the dimensions of %s", s,
                   nvg_shape_text(shape, rank, x->aval->shape)),
           0;
  if (dots && rank - letters > l->dots) l->dots = rank - letters;
  for (; *s; s++) {
    if (*s == '.') continue;
    int8_t *number = &l->number[(int)*s];
    if (*number < 0) l->letter[l->count] = *s, *number = (int8_t)l->count++;
    l->times[*number]++;
  }
  return 1;
}

/* Checks that extents of equal labels agree or are 1, and that those of a diagonal agree. */
static int measure_labels(nvg_call *c, labels *l, const nvg_node *x, const uint8_t *label) {
  const int64_t *shape = x->aval->shape;
  for (int d = 0; d < x->aval->rank; d++) {
    int64_t *e = &l->extent[label[d]];
    int other = *e != shape[d] && *e != 1 && shape[d] != 1;
    for (int k = 0; k < d; k++) other |= label[k] == label[d] && shape[k] != shape[d];
    char letter[] = { label[d] < l->count ? l->letter[label[d]] : 0, 0 };
    if (other)
      return nvg_bad(c, NVM_ERR_VALUE, "'%s' has extents %lld and %lld", *letter ? letter : "...", (long long)*e,
                     (long long)shape[d]),
             0;
    if (*e == 1) *e = shape[d];
  }
  return 1;
}

/* Writes the labels of the result and returns their number: as the text says, or those of the ellipsis and then the
   letters that occur once, in alphabetical order. Returns -1 with a message on failure. */
static int result_labels(nvg_call *c, const labels *l, const spec *s, uint8_t *label) {
  int n = 0, letters, dots;
  uint64_t seen = 0;
  if (!s->output) {
    for (int k = l->dots; k; k--) label[n++] = (uint8_t)(l->count + k - 1);
    for (int ch = 'A'; ch <= 'z'; ch++)
      if (l->number[ch] >= 0 && l->times[l->number[ch]] == 1) {
        if (n == NVM_MAX_RANK) return fail_text(c, "the result has too many dimensions", ""), -1;
        label[n++] = (uint8_t)l->number[ch];
      }
    return n;
  }
  if (!read_term(c, s->output, &letters, &dots)) return -1;
  if (!dots && l->dots) return fail_text(c, "the result leaves out '...'", s->output), -1;
  if (letters + l->dots > NVM_MAX_RANK) return fail_text(c, "the result has too many dimensions", s->output), -1;
  for (const char *p = s->output; *p; p++) {
    if (*p == '.') continue;
    int number = l->number[(int)*p];
    if (number < 0) return fail_text(c, "the result has a letter that no operand has", s->output), -1;
    if (seen >> number & 1) return fail_text(c, "the result has a letter twice", s->output), -1;
    seen |= 1ull << number;
  }
  label_term(l, s->output, l->dots, label);
  return letters + l->dots;
}

static int read_operands(nvg_call *c, const spec *s, labels *l, nvg_term *t, const nvg_gemm_types *f) {
  memset(l, 0, sizeof *l);
  memset(l->number, -1, sizeof l->number);
  for (int i = 0; i < c->nin; i++)
    if (!meet_labels(c, l, c->in[i], s->input[i])) return 0;
  if (l->count + l->dots > NVG_LABELS)
    return nvg_bad(c, NVM_ERR_VALUE, "more than %d different dimensions", NVG_LABELS), 0;
  for (int k = 0; k < NVG_LABELS; k++) l->extent[k] = 1;
  for (int i = 0; i < c->nin; i++) {
    uint8_t label[NVM_MAX_RANK];
    int letters, dots;
    read_term(c, s->input[i], &letters, &dots);
    label_term(l, s->input[i], c->in[i]->aval->rank - letters, label);
    if (!measure_labels(c, l, c->in[i], label) || !nvg_term_make(c, &t[i], c->in[i], label, f)) return 0;
  }
  return 1;
}

/* ---- multiplying */
/* Removes the terms at these positions (each given once) from the list of *n terms, and appends their product. */
static int take_terms(nvg_call *c, nvg_term *t, int *n, const int64_t *at, int count, uint64_t wanted,
                      const nvg_gemm_types *f) {
  nvg_term *one = nvb_alloc(sizeof *one * (size_t)count);
  if (!one) return nvb_fail_memory(), 0;
  uint64_t rest = wanted;
  int kept = 0, ok = 1;
  for (int i = 0; i < *n; i++) {
    int taken = 0;
    for (int k = 0; k < count; k++)
      if (at[k] == i) one[k] = t[i], taken = 1;
    if (!taken) rest |= t[i].set, t[kept++] = t[i];
  }
  for (int k = 0; k + 1 < count && ok; k++) { /* labels that the remaining terms need are kept */
    uint64_t keep = rest;
    for (int j = k + 2; j < count; j++) keep |= one[j].set;
    nvg_term a = one[k];
    ok = nvg_term_contract(c, &one[k + 1], &a, &one[k + 1], keep, f);
  }
  ok = ok && nvg_term_sum(c, &one[count - 1], rest, f);
  t[kept] = one[count - 1];
  *n = kept + 1;
  nvb_free(one);
  return ok;
}

/* Follows `optimize` given as a list: for each step the number of positions, then the positions. */
static int given_path(nvg_call *c, const nvg_attr *path, nvg_term *t, int n, uint64_t wanted, const nvg_gemm_types *f) {
  static const char wrong[] = "the path does not fit %d operands";
  for (int i = 0; i < path->n;) {
    int64_t count = path->is[i++];
    uint64_t seen = 0;
    int fits = count > 0 && count <= path->n - i && n <= 64;
    for (int k = 0; fits && k < count; k++) {
      int64_t at = path->is[i + k];
      fits = at >= 0 && at < n && !(seen >> at & 1);
      if (fits) seen |= 1ull << at;
    }
    if (!fits) return nvg_bad(c, NVM_ERR_VALUE, wrong, c->nin), 0;
    if (!take_terms(c, t, &n, path->is + i, (int)count, wanted, f)) return 0;
    i += (int)count;
  }
  return n == 1 ? 1 : (nvg_bad(c, NVM_ERR_VALUE, wrong, c->nin), 0);
}

/* Finds a contraction order for these terms and returns its number of operations; -1 with a message. */
static double find_path(nvg_call *c, const nvg_term *t, int n, uint64_t wanted, int64_t order, const labels *l,
                        int (*pair)[2]) {
  if (order < 0 || order > NVM_ORDER_AUTO)
    return nvg_bad(c, NVM_ERR_VALUE, "there is no way %lld to optimize", (long long)order), -1;
  double extent[NVG_LABELS];
  uint64_t *set = nvb_alloc(sizeof *set * (size_t)n);
  if (!set) return nvb_fail_memory(), -1;
  for (int k = 0; k < NVG_LABELS; k++) extent[k] = (double)l->extent[k];
  for (int i = 0; i < n; i++) set[i] = t[i].set;
  double work = nvg_contraction_path(n, set, extent, wanted, (nvm_order)order, pair);
  nvb_free(set);
  return work;
}

static int chosen_path(nvg_call *c, nvg_term *t, int n, uint64_t wanted, int64_t order, const labels *l,
                       const nvg_gemm_types *f) {
  int (*pair)[2] = nvb_alloc(sizeof *pair * (size_t)n);
  if (!pair) return nvb_fail_memory(), 0;
  int ok = !(find_path(c, t, n, wanted, order, l, pair) < 0); /* the number may overflow to NaN */
  for (int k = 0; ok && n > 1; k++) {
    int64_t at[2] = { pair[k][0], pair[k][1] };
    ok = take_terms(c, t, &n, at, 2, wanted, f);
  }
  nvb_free(pair);
  return ok;
}

/* ---- the call */
typedef struct parsed_einsum {
  spec s;
  labels l;
  nvg_gemm_types f;
  uint8_t label[NVM_MAX_RANK]; /* labels of the result's dimensions */
  int rank;
  uint64_t wanted; /* the same labels as a set */
  nvg_term t[];
} parsed_einsum;

/* Parses the call; the caller frees the result with nvb_free. NULL with a message. */
static parsed_einsum *read_call(nvg_call *c) {
  if (c->nin < 1) return nvg_bad(c, NVM_ERR_VALUE, "needs at least one operand"), NULL;
  parsed_einsum *r = nvb_alloc(sizeof *r + sizeof *r->t * (size_t)c->nin);
  if (!r) return nvb_fail_memory(), NULL;
  if (read_text(c, &r->s) && nvg_gemm_types_of(c, c->in, c->nin, &r->f) &&
      read_operands(c, &r->s, &r->l, r->t, &r->f) && (r->rank = result_labels(c, &r->l, &r->s, r->label)) >= 0) {
    r->wanted = 0;
    for (int d = 0; d < r->rank; d++) r->wanted |= 1ull << r->label[d];
    return r;
  }
  return nvb_free(r), NULL;
}

static nvg_node *expand_einsum(nvg_call *c, parsed_einsum *r) {
  int64_t order = NVM_ORDER_AUTO;
  const nvg_attr *path = nvg_attr_get(c, "optimize");
  int listed = path && path->kind == 'I', n = c->nin;
  if (!listed && nvg_attr_int(c, "optimize", NVM_ORDER_AUTO, &order)) return NULL;
  int ok =
      listed ? given_path(c, path, r->t, n, r->wanted, &r->f) : chosen_path(c, r->t, n, r->wanted, order, &r->l, &r->f);
  /* with one operand, nothing has been summed yet */
  if (!ok || !nvg_term_sum(c, &r->t[0], r->wanted, &r->f)) return NULL;
  return nvg_xcast(c, nvg_term_as(c, &r->t[0], r->label, r->rank), r->f.out, 1);
}

nvg_node *nvg_make_EINSUM(nvg_call *c) {
  parsed_einsum *r = read_call(c);
  nvg_node *n = r ? expand_einsum(c, r) : NULL;
  nvb_free(r);
  return n;
}

int nvg_einsum_path(int (*pairs)[2], double *operations, nvg_node *const *in, int nin, nvg_attr subscripts,
                    nvm_order order) {
  nvg_call c = { .op = NVG_OP_EINSUM,
                 .in = in,
                 .nin = nin,
                 .attr = &subscripts,
                 .nattr = 1,
                 .default_float = NVM_F64,
                 .cap = sizeof c.inl / sizeof *c.inl };
  c.own = c.inl;
  parsed_einsum *r = nvg_check_operands(c.op, in, nin) ? NULL : read_call(&c);
  *operations = r ? find_path(&c, r->t, nin, r->wanted, order, &r->l, pairs) : -1;
  nvb_free(r);
  nvg_call_end(&c);
  return *operations < 0 ? nvb_status() : NVM_OK;
}
