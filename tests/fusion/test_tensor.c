/* Matrix products of types that tensor cores take: every one has a kernel for every GPU, whatever its sizes, its
   operands' places in memory, its alignment and its tail; and large aligned ones are fed by TMA where there is one. */
#include "../suite.h"
#include <stdlib.h>
#include "base/caps.h"
#include "base/err.h"
#include "codegen/cuda.h"
#include "fusion/plan.h"

typedef struct product {
  const char *type;
  int m, n, k, left, right, batch, align, tail;
  const char *device;
  int arch, roles;
} product;

static void shape(nvb_text *t, const product *p, int rows, int cols) {
  if (p->batch > 1) nvb_print(t, "[%d, %d, %d]", p->batch, rows, cols);
  else nvb_print(t, "[%d, %d]", rows, cols);
}

static void leaf(nvb_text *t, const product *p, int i, int rows, int cols) {
  int ld = cols + (p->align ? 0 : 1);
  nvb_print(t, "leaf %d %s", i, p->type);
  shape(t, p, rows, cols);
  if (p->batch > 1) nvb_print(t, " strides(%d, %d, 1)%s\n", rows * ld, ld, p->align ? " align16" : "");
  else nvb_print(t, " strides(%d, 1)%s\n", ld, p->align ? " align16" : "");
}

static const char *text_of(nvb_arena *a, const product *p) {
  nvb_text t = {.arena = a};
  int half = p->type[0] != 'f' || p->type[1] == '1', n = 0;
  leaf(&t, p, 0, p->left ? p->k : p->m, p->left ? p->m : p->k);
  leaf(&t, p, 1, p->right ? p->n : p->k, p->right ? p->k : p->n);
  if (p->tail) leaf(&t, p, 2, p->m, p->n);
  int operand[2];
  for (int i = 0; i < 2; i++) {
    int turned = i ? p->right : p->left, rows = i ? p->k : p->m, cols = i ? p->n : p->k;
    nvb_print(&t, "%%%d = leaf{%d} : %s", n++, i, p->type);
    shape(&t, p, turned ? cols : rows, turned ? rows : cols);
    if (turned) {
      nvb_print(&t, "\n%%%d = permute(%%%d){%s} : %s", n, n - 1, p->batch > 1 ? "0, 2, 1" : "1, 0", p->type);
      n++;
      shape(&t, p, rows, cols);
    }
    nvb_puts(&t, "\n");
    operand[i] = n - 1;
  }
  nvb_print(&t, "%%%d = call product(%%%d, %%%d){11, %d} : f32", n++, operand[0], operand[1], !half);
  shape(&t, p, p->m, p->n);
  if (p->tail) {
    nvb_print(&t, "\n%%%d = leaf{2} : %s", n++, p->type);
    shape(&t, p, p->m, p->n);
    if (half) nvb_print(&t, "\n%%%d = map cast(%%%d) : f32", n, n - 1), n++, shape(&t, p, p->m, p->n);
    nvb_print(&t, "\n%%%d = map add(%%%d, %%%d) : f32", n, n - 2 - half, n - 1), n++;
    shape(&t, p, p->m, p->n);
  }
  if (half) nvb_print(&t, "\n%%%d = map cast(%%%d) half(1) : %s", n, n - 1, p->type), n++, shape(&t, p, p->m, p->n);
  nvb_print(&t, "\nout %%%d\n", n - 1);
  return t.s;
}

static void plan(nvb_arena *a, void *arg) {
  product *p = arg;
  nvf_plan *f =
      nvf_fuse(a, nvg_graph_parse(a, text_of(a, p), "product"), nvb_caps_find(p->device), &(nvf_options){.fuse = 1});
  nvc_cuda_kernel k;
  p->roles = 0;
  for (int i = 0; i < f->nstep; i++) {
    nvc_cuda_emit(a, &k, f->step[i].k, f->step[i].s, &(nvc_cuda_target){.arch = p->arch});
    p->roles |= k.nmap > 0;
  }
}

START_TEST(all_are_spelled) {
  static const struct {
    const char *name;
    int arch;
  } device[] = {{"h200", 90}, {"a100", 80}, {"b200", 100}, {"rtx5090", 120}};
  static const char *const type[] = {"bf16", "f16", "f32"};
  static const int size[][3] = {{16, 8192, 512},    {64, 64, 64},  {17, 33, 65}, {1024, 1024, 1024},
                                {4096, 4096, 4096}, {72, 136, 72}, {24, 24, 8},  {40, 8192, 64}};
  int fed = 0;
  for (int i = 0; i < 3 * 8 * 4 * 2 * 2 * 2 * 4; i++) {
    int d = i & 3, at = i >> 2;
    product p = {.device = device[d].name,
                 .arch = device[d].arch,
                 .left = at & 1,
                 .right = at >> 1 & 1,
                 .align = at >> 2 & 1,
                 .tail = at >> 3 & 1,
                 .batch = at >> 4 & 1 ? 3 : 1};
    const int *s = size[(at >>= 5) % 8];
    p.m = s[0], p.n = s[1], p.k = s[2], p.type = type[at / 8 % 3];
    nvb_arena *a = nvb_arena_new();
    ck_assert_msg(nvb_protect(a, plan, &p) == NVM_OK,
                  "%s, %s %d x %d x %d, turned %d %d, batch %d, aligned %d, tail %d: %s", p.device, p.type, p.m, p.n,
                  p.k, p.left, p.right, p.batch, p.align, p.tail, nvb_message());
    nvb_arena_free(a);
    int large = p.m >= 1024 && p.align && (p.type[0] == 'b' || p.type[1] == '1');
    ck_assert_msg(!large || p.roles == (d == 0), "%s: %s %d x %d x %d %s TMA", p.device, p.type, p.m, p.n, p.k,
                  p.roles ? "uses" : "lacks");
    fed += p.roles;
  }
  ck_assert_int_gt(fed, 0);
}
END_TEST

SUITE("tensor", all_are_spelled)
