/* Recognises GELU in its tanh form however the user wrote it, by evaluating the expression at sample points. Only a
   library call uses the answer, whose own GELU is accurate to 5e-6 (numerics.md, section 4); generated kernels compute
   the expression as written. */
#include <math.h>
#include <string.h>
#include "frag/dtype.h"
#include "fusion/planner.h"

enum { POINTS = 32, MOST = 32 /* most expressions of a written-out GELU */, ARGS = 4 };
typedef struct probe {
  const nvf_fusion *k;
  int of;            /* expression of the argument */
  int n, inst[MOST]; /* expressions of the argument and constants, in the order of evaluation */
  float value[MOST][POINTS];
} probe;

/* The values of expression i where the argument has the values `at`; NULL: it is not a float32 expression of the
   argument and constants alone. */
static const float *probe_values(probe *p, int i, const float *at) {
  const nvf_iexpr *v = &p->k->expr.at[i];
  const nvf_node *n = &p->k->graph->node[v->node];
  if (i == p->of) return at;
  for (int j = 0; j < p->n; j++)
    if (p->inst[j] == i) return p->value[j];
  if (v->kind == NVF_ISAME) return probe_values(p, v->arg[0], at);
  if (n->dtype != NVM_F32 || n->parts > 1) return NULL;
  float made[POINTS];
  if (v->kind == NVF_ICONST && n->kind == NVG_VCONST) {
    for (int x = 0; x < POINTS; x++) made[x] = (float)nvg_bits_float(NVM_F32, (uint64_t)n->attr[0]);
  } else if (v->kind == NVF_IMAP && v->narg <= ARGS && n->frag->nresult == 1 && n->frag->nparam == v->narg) {
    const void *in[ARGS];
    for (int j = 0; j < v->narg; j++)
      if (!(in[j] = probe_values(p, v->arg[j], at))) return NULL;
    nvg_frag_run(n->frag, in, (void *[]){ made }, POINTS, 1);
  } else return NULL;
  if (p->n == MOST) return NULL;
  p->inst[p->n] = i;
  return memcpy(p->value[p->n++], made, sizeof made);
}

static double gelu_at(double x) { return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))); }

/* Whether expression i is the tanh form of GELU of expression `of`. Constants such as 0.7978845 may be rounded: to 16
   bits (narrow) the error is up to 3.5e-4, that of GELU by erf 4.7e-4. */
static int is_gelu_of(const nvf_fusion *k, int i, int of, int narrow) {
  probe p = { .k = k, .of = of };
  float at[POINTS];
  for (int x = 0; x < POINTS; x++) at[x] = (float)(x - POINTS / 2) * 0.377f;
  const float *got = probe_values(&p, i, at);
  for (int x = 0; x < POINTS; x++)
    if (!got || !(fabs((double)got[x] - gelu_at(at[x])) <= (narrow ? 4e-4 : 2e-6 * fmax(1, fabs((double)at[x])))))
      return 0;
  return 1;
}

/* Whether expression i contains a tanh, sigmoid or exp, so that evaluating it is worth the time. */
static int looks_like(const nvf_fusion *k, int i, int depth) {
  const nvf_iexpr *v = &k->expr.at[i];
  const char *f = v->kind == NVF_IMAP ? k->graph->node[v->node].frag->name : "";
  int yes = f && (!strcmp(f, "tanh") || !strcmp(f, "sigmoid") || !strcmp(f, "exp"));
  for (int j = 0; j < v->narg && v->kind == NVF_IMAP && depth > 0 && !yes; j++)
    yes = looks_like(k, v->arg[j], depth - 1);
  return yes;
}

int nvf_gelu_of(const nvf_fusion *k, int i, int narrow) {
  enum { DEPTH = 6 };
  if (k->graph->node[k->expr.at[i].node].dtype != NVM_F32 || !looks_like(k, i, DEPTH)) return -1;
  for (int of = i - 1; of >= 0; of--)
    if (k->graph->node[k->expr.at[of].node].dtype == NVM_F32 && k->expr.at[of].kind != NVF_ICONST &&
        is_gelu_of(k, i, of, narrow))
      return of;
  return -1;
}
