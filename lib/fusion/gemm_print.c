/* Prints GEMM descriptors for people. It decides nothing. */
#include <math.h>
#include "fusion/planner.h"

static void print_factor(nvb_text *t, const nvf_scale *s, const char *name) {
  if (s->param >= 0) nvb_print(t, "%s%s ", s->value < 0 ? "-" : "", name);
  else if (s->value == -1) nvb_puts(t, "-");
  else if (s->value != 1) nvb_print(t, "%.6g ", s->value);
}

static void print_scale(nvb_text *t, const nvf_gemm *p, int which) {
  static const char *const name[NVF_SCALES] = { "scale_a", "scale_b" };
  static const char *const by[NVF_SCALES][4] = { { "", " of rows", " of 1 x 128", " of 128 x 128" },
                                                 { "", " of columns", " of 128 x 1", " of 128 x 128" } };
  if (p->scale[which].param >= 0)
    nvb_print(t, p->by[which] ? "(%s%s) " : "%s%s ", name[which], by[which][p->by[which]]);
}

void nvf_gemm_print(nvb_text *t, const nvf_gemm *p) {
  static const char *const act[] = { [NVF_ACT_NONE] = "", [NVF_ACT_RELU] = "relu(", [NVF_ACT_GELU] = "gelu(" };
  for (int i = 0; i < p->nbatch; i++) nvb_print(t, "%lld x ", (long long)p->batch[i]);
  nvb_print(t, "%lld x %lld x %lld of %s", (long long)p->m, (long long)p->n, (long long)p->k,
            nvg_dtype_short(p->operands));
  nvb_puts(t, p->operands == NVM_BF16 && p->precision ? " terms" : "");
  if (!p->unsupported && p->b.type != p->a.type) nvb_print(t, " and %s", nvg_dtype_short(p->b.type));
  nvb_puts(t, ": ");
  if (p->unsupported) {
    nvb_puts(t, p->unsupported);
    return;
  }
  nvb_print(t, "d%s = ", p->d.col == 1 ? "" : "^T");
  nvb_print(t, "%s%s", act[p->act], p->aux.param >= 0 ? "aux = " : "");
  print_factor(t, &p->alpha, "alpha");
  print_scale(t, p, NVF_SCALE_A);
  print_scale(t, p, NVF_SCALE_B);
  nvb_print(t, "a%s b%s", p->a.col == 1 ? "" : "^T", p->b.col == 1 ? "" : "^T");
  if (p->c.param >= 0) {
    nvf_scale beta = p->beta;
    beta.value = fabs(beta.value);
    nvb_puts(t, p->beta.value < 0 ? " - " : " + ");
    print_factor(t, &beta, "beta");
    nvb_puts(t, "c");
  }
  if (p->bias.param >= 0) nvb_puts(t, p->bias.row ? " + bias of rows" : " + bias");
  nvb_puts(t, p->act ? ")" : "");
}
