/* Matrix products of types that tensor cores take: every one has a kernel for every GPU, whatever its sizes, its
   operands' places in memory, its alignment and its tail; and large aligned ones are fed by TMA where there is one. */
#include "../suite.h"
#include <stdlib.h>
#include <string.h>
#include "base/caps.h"
#include "base/err.h"
#include "codegen/cuda/cuda.h"
#include "fusion/plan.h"

static const struct {
  const char *name;
  int arch;
} with_cores[] = { { "h200", 90 }, { "a100", 80 }, { "b200", 100 }, { "rtx5090", 120 }, { "rtx4090", 89 } };
enum { CORES = sizeof with_cores / sizeof *with_cores };

/* tails: a matrix; another product with the same left or right operand; a function with a slow path */
enum { BARE, ADDED, LEFT_TOO, RIGHT_TOO, TANH };
typedef struct product {
  const char *type;
  int m, n, k, left, right, batch, align, tail;
  const char *device;
  int arch, roles, mma, steps; /* mma: of f64 */
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

static int is_eight(const product *p) { return p->type[1] == '8'; }

/* The i-th leaf, a left or a right operand, as it is multiplied: its value. */
static int operand(nvb_text *t, const product *p, int i, int right, int transposed, int *n) {
  int rows = right ? p->k : p->m, cols = right ? p->n : p->k;
  nvb_print(t, "%%%d = leaf{%d} : %s", (*n)++, i, p->type);
  shape(t, p, transposed ? cols : rows, transposed ? rows : cols);
  if (transposed) {
    nvb_print(t, "\n%%%d = permute(%%%d){%s} : %s", *n, *n - 1, p->batch > 1 ? "0, 2, 1" : "1, 0", p->type);
    ++*n;
    shape(t, p, rows, cols);
  }
  if (is_eight(p)) {
    nvb_print(t, "\n%%%d = map cast(%%%d) narrowed(1) : f16", *n, *n - 1);
    ++*n;
    shape(t, p, rows, cols);
  }
  nvb_puts(t, "\n");
  return *n - 1;
}

static const char *sum_of(const product *p) { return strcmp(p->type, "f64") ? "f32" : p->type; }

static int multiplied(nvb_text *t, const product *p, int half, int a, int b, int *n) {
  int twice = !strcmp(p->type, "f64");
  nvb_print(t, "%%%d = call gemm(%%%d, %%%d){%d, %d} : %s", (*n)++, a, b, twice ? NVM_F64 : NVM_F32, !half && !twice,
            sum_of(p));
  shape(t, p, p->m, p->n);
  nvb_puts(t, "\n");
  return *n - 1;
}

static const char *text_of(nvb_arena *a, const product *p) {
  nvb_text t = { .arena = a };
  int half = p->type[0] != 'f' || p->type[1] == '1' || is_eight(p), n = 0;
  int too = p->tail == LEFT_TOO || p->tail == RIGHT_TOO;
  int right = p->tail == LEFT_TOO, transposed = right ? !p->right : !p->left; /* of a further operand */
  int rows = p->tail == ADDED ? p->m : right ? p->k : p->m, cols = p->tail == ADDED || right ? p->n : p->k;
  leaf(&t, p, 0, p->left ? p->k : p->m, p->left ? p->m : p->k);
  leaf(&t, p, 1, p->right ? p->n : p->k, p->right ? p->k : p->n);
  if (p->tail && p->tail != TANH) leaf(&t, p, 2, too && transposed ? cols : rows, too && transposed ? rows : cols);
  int x = operand(&t, p, 0, 0, p->left, &n), y = operand(&t, p, 1, 1, p->right, &n), z = -1;
  int sum = multiplied(&t, p, half, x, y, &n);
  if (too) {
    z = operand(&t, p, 2, right, transposed, &n);
    z = multiplied(&t, p, half, right ? x : z, right ? z : y, &n);
  } else if (p->tail == TANH) {
    nvb_print(&t, "%%%d = map tanh(%%%d) : %s", n, sum, sum_of(p)), sum = n++;
    shape(&t, p, p->m, p->n);
    nvb_puts(&t, "\n");
  } else if (p->tail) {
    nvb_print(&t, "%%%d = leaf{2} : %s", z = n++, p->type);
    shape(&t, p, p->m, p->n);
    if (half) nvb_print(&t, "\n%%%d = map cast(%%%d) : f32", n, z), z = n++, shape(&t, p, p->m, p->n);
    nvb_puts(&t, "\n");
  }
  if (p->tail && p->tail != TANH) {
    nvb_print(&t, "%%%d = map add(%%%d, %%%d) : %s", n, sum, z, sum_of(p)), sum = n++;
    shape(&t, p, p->m, p->n);
    nvb_puts(&t, "\n");
  }
  if (half) {
    nvb_print(&t, "%%%d = map cast(%%%d) narrowed(1) : %s", n, sum, p->type), sum = n++;
    shape(&t, p, p->m, p->n);
  }
  nvb_print(&t, "\nout %%%d\n", sum);
  return t.s;
}

static void plan(nvb_arena *a, void *arg) {
  product *p = arg;
  nvf_plan *f =
      nvf_fuse(a, nvg_graph_parse(a, text_of(a, p), "product"), nvb_caps_find(p->device), &(nvf_options){ .fuse = 1 });
  nvc_cuda_kernel k;
  p->roles = p->mma = 0;
  p->steps = f->nstep;
  for (int i = 0; i < f->nstep; i++) {
    nvc_cuda_emit(a, &k, f->step[i].k, f->step[i].s, &(nvc_cuda_target){ .arch = p->arch });
    p->roles |= k.nmap > 0;
    p->mma |= strstr(k.source, "nv_mma_f64") != NULL;
  }
}

/* Every seventh case of the product of these tables: among them is each choice of values from any four of its eight. */
enum { STRIDE = ONE_IN > 1 ? ONE_IN : 7 };
START_TEST(all_are_spelled) {
  static const char *const type[] = { "bf16", "f16", "f32", "f8e4", "f8e5", "f64" };
  static const int size[][3] = { { 16, 8192, 512 },    { 64, 64, 64 },  { 17, 33, 65 }, { 1024, 1024, 1024 },
                                 { 4096, 4096, 4096 }, { 72, 136, 72 }, { 24, 24, 8 },  { 40, 8192, 64 } };
  int fed = 0, one[4] = { 0 };
  for (int i = 0; i < 6 * 8 * 4 * 2 * 2 * 4 * CORES; i += STRIDE) {
    int d = i % CORES, at = i / CORES;
    product p = { .device = with_cores[d].name,
                  .arch = with_cores[d].arch,
                  .left = at & 1,
                  .right = at >> 1 & 1,
                  .align = at >> 2 & 1,
                  .tail = at >> 3 & 3,
                  .batch = at >> 5 & 1 ? 3 : 1 };
    const int *s = size[(at >>= 6) % 8];
    p.m = s[0], p.n = s[1], p.k = s[2], p.type = type[at / 8 % 6];
    nvb_arena *a = nvb_arena_new();
    ck_assert_msg(nvb_protect(a, plan, &p) == NVM_OK,
                  "%s, %s %d x %d x %d, turned %d %d, batch %d, aligned %d, tail %d: %s", p.device, p.type, p.m, p.n,
                  p.k, p.left, p.right, p.batch, p.align, p.tail, nvb_message());
    nvb_arena_free(a);
    int eight = is_eight(&p), along = !p.left && p.right && p.tail < LEFT_TOO;
    int large = p.m >= 1024 && p.align && (p.type[0] == 'b' || p.type[1] == '1' || (eight && along));
    ck_assert_msg(!eight || p.arch == 80 || !along || p.steps == 1, "%s: %d kernels of %s", p.device, p.steps, p.type);
    ck_assert_msg(!large || p.roles == (d == 0), "%s: %s %d x %d x %d %s TMA", p.device, p.type, p.m, p.n, p.k,
                  p.roles ? "uses" : "lacks");
    ck_assert_msg(p.mma == (p.type[1] == '6'), "%s: %s %d x %d x %d: %s", p.device, p.type, p.m, p.n, p.k,
                  p.mma ? "tensor cores of f64" : "no tensor cores");
    fed += p.roles;
    one[p.tail] += p.steps == 1;
  }
  ck_assert_int_gt(fed, 0);
  for (int i = 0; i < 4; i++) ck_assert_msg(one[i] > 0, "no kernel with tail %d", i);
}
END_TEST

/* split-K where tiles are few: as many blocks of a cluster as the machine has SMs for, if sums are long. */
typedef struct few {
  const char *type;
  int m, n, k;
  const char *device;
  int arch, most, cluster, cores; /* units 0: the device's */
} few;
static void plan_few(nvb_arena *a, void *arg) {
  few *f = arg;
  product p = { .type = f->type, .m = f->m, .n = f->n, .k = f->k, .align = 1 };
  const nvf_options o = { .fuse = 1 };
  nvb_caps found = f->cores ? nvb_caps_gpu(f->device, f->arch, f->cores) : *nvb_caps_find(f->device), *c = &found;
  nvf_plan *plan = nvf_fuse(a, nvg_graph_parse(a, text_of(a, &p), "product"), c, &o);
  nvc_cuda_kernel k;
  ck_assert_int_eq(plan->nstep, 1);
  nvc_cuda_emit(a, &k, plan->step[0].k, plan->step[0].s, &(nvc_cuda_target){ .arch = f->arch });
  f->cluster = k.cluster;
}

START_TEST(few_tiles_are_shared_out) {
  few each[] = { { "bf16", 64, 64, 16384, "h200", 90, 16, 0, 0 }, { "bf16", 16, 4096, 4096, "h200", 90, 2, 0, 0 },
                 { "f16", 16, 8192, 8192, "h200", 90, 1, 0, 0 },  { "bf16", 4096, 4096, 4096, "h200", 90, 1, 0, 0 },
                 { "bf16", 64, 64, 64, "h200", 90, 1, 0, 0 },     { "f32", 64, 64, 16384, "h200", 90, 16, 0, 0 },
                 { "bf16", 64, 64, 16384, "b200", 100, 8, 0, 0 }, { "bf16", 64, 64, 16384, "a100", 80, 1, 0, 0 },
                 { "bf16", 64, 64, 16384, "h100", 90, 1, 0, 1 } };
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    nvb_arena *a = nvb_arena_new();
    few *f = &each[i];
    ck_assert_msg(nvb_protect(a, plan_few, f) == NVM_OK, "%s", nvb_message());
    ck_assert_msg(f->cluster == f->most, "%s %d x %d x %d on %s: %d blocks a tile, not %d", f->type, f->m, f->n, f->k,
                  f->device, f->cluster, f->most);
    nvb_arena_free(a);
  }
}
END_TEST

/* The function is in float32, what leaves through shared memory has fewer bits. */
START_TEST(slow_paths_before_a_store) {
  static const char *const type[] = { "bf16", "f16", "f8e4", "f8e5" };
  for (int i = 0; i < 4; i++) {
    product p = { .device = "h200",
                  .arch = 90,
                  .type = type[i],
                  .m = 4096,
                  .n = 4096,
                  .k = 512,
                  .right = 1,
                  .align = 1,
                  .batch = 1,
                  .tail = TANH };
    nvb_arena *a = nvb_arena_new();
    ck_assert_msg(nvb_protect(a, plan, &p) == NVM_OK, "%s: %s", p.type, nvb_message());
    ck_assert_int_eq(p.steps, 1);
    nvb_arena_free(a);
  }
}
END_TEST

/* Integers of 8 bits on both sides, with a tail: tensor cores multiply them where rows along k begin at multiples of 4
   bytes, what is MN-major is copied first; elsewhere floats are multiplied. */
typedef struct whole { int m, n, k, left, right, batch, more, device, steps, mma, roles; } whole;

static void shape3(nvb_text *t, int batch, int rows, int cols) {
  nvb_print(t, batch > 1 ? "[%d, " : "[", batch);
  nvb_print(t, "%d, %d]", rows, cols);
}

static int byte_operand(nvb_text *t, const whole *w, int i, int rows, int cols, int transposed, int at) {
  nvb_print(t, "%%%d = leaf{%d} : i8", at, i);
  shape3(t, w->batch, transposed ? cols : rows, transposed ? rows : cols);
  if (transposed) {
    nvb_print(t, "\n%%%d = permute(%%%d){%s} : i8", at + 1, at, w->batch > 1 ? "0, 2, 1" : "1, 0");
    shape3(t, w->batch, rows, cols);
  }
  nvb_puts(t, "\n");
  return at + !!transposed;
}

static const char *text_of_whole(nvb_arena *a, const whole *w) {
  nvb_text t = { .arena = a };
  for (int i = 0; i < 2; i++) {
    int transposed = i ? w->right : w->left, rows = i ? w->k : w->m, cols = i ? w->n : w->k;
    int ld = (transposed ? rows : cols) + w->more;
    nvb_print(&t, "leaf %d i8", i);
    shape3(&t, w->batch, transposed ? cols : rows, transposed ? rows : cols);
    if (w->batch > 1) nvb_print(&t, " strides(%d, %d, 1)", ld * (transposed ? cols : rows), ld);
    else nvb_print(&t, " strides(%d, 1)", ld);
    nvb_puts(&t, w->more ? "\n" : " align16\n");
  }
  int x = byte_operand(&t, w, 0, w->m, w->k, w->left, 0), y = byte_operand(&t, w, 1, w->k, w->n, w->right, x + 1);
  nvb_print(&t, "%%%d = call gemm(%%%d, %%%d){%d, 0} : i32", y + 1, x, y, NVM_I32);
  shape3(&t, w->batch, w->m, w->n);
  nvb_print(&t, "\n%%%d = map cast(%%%d) : f32", y + 2, y + 1);
  shape3(&t, w->batch, w->m, w->n);
  nvb_print(&t, "\n%%%d = map tanh(%%%d) : f32", y + 3, y + 2);
  shape3(&t, w->batch, w->m, w->n);
  nvb_print(&t, "\nout %%%d\n", y + 3);
  return t.s;
}

static void plan_whole(nvb_arena *a, void *arg) {
  whole *w = arg;
  nvf_plan *p = nvf_fuse(a, nvg_graph_parse(a, text_of_whole(a, w), "whole"), nvb_caps_find(with_cores[w->device].name),
                         &(nvf_options){ .fuse = 1 });
  w->steps = p->nstep;
  w->mma = w->roles = 0;
  for (int i = 0; i < p->nstep; i++) {
    nvc_cuda_kernel k;
    nvc_cuda_emit(a, &k, p->step[i].k, p->step[i].s, &(nvc_cuda_target){ .arch = with_cores[w->device].arch });
    w->roles |= k.nmap > 0;
    w->mma |= strstr(k.source, "nv_mma_s8(c") || strstr(k.source, "nv_mma_s8(acc") || strstr(k.source, "nv_wgmma_s8<");
  }
}

START_TEST(bytes_on_both_sides) {
  static const int size[][3] = { { 2, 64, 64 },      { 16, 8192, 4096 }, { 17, 76, 100 },
                                 { 64, 4096, 8192 }, { 17, 77, 99 },     { 4096, 4096, 4096 } };
  for (int i = 0; i < 6 * 2 * 2 * 2 * 2 * CORES; i += ONE_IN) {
    int at = i / CORES;
    const int *s = size[at / 16];
    whole w = { .m = s[0],
                .n = s[1],
                .k = s[2],
                .left = at & 1,
                .right = at >> 1 & 1,
                .more = at >> 2 & 1,
                .batch = at >> 3 & 1 ? 3 : 1,
                .device = i % CORES };
    nvb_arena *a = nvb_arena_new();
    int status = nvb_protect(a, plan_whole, &w), across = w.left || !w.right;
    const char *on = with_cores[w.device].name;
    ck_assert_msg(status == NVM_OK, "%s, %d x %d x %d, turned %d %d, %d more: %s", on, w.m, w.n, w.k, w.left, w.right,
                  w.more, nvb_message());
    if ((w.k <= 100 || w.m <= 64) && (across || w.more)) /* a copy may cost more, bytes be moved one by one */
      w.steps = -1;
    int rows = w.k % 4 == 0 && (!w.more || (w.left && !w.right)); /* a copy has none between them */
    ck_assert_msg(w.mma == rows || w.steps < 0, "%s, %d x %d x %d, turned %d %d, %d more: %s", on, w.m, w.n, w.k,
                  w.left, w.right, w.more, w.mma ? "tensor cores" : "no tensor cores");
    ck_assert_msg(!rows || w.steps < 0 || (w.steps > across && w.steps <= 1 + w.left + !w.right),
                  "%s, %d x %d x %d, turned %d %d: %d steps", on, w.m, w.n, w.k, w.left, w.right, w.steps);
    ck_assert_msg(w.steps < 0 || w.roles == (rows && w.k % 16 == 0 && !w.device), "%s, %d x %d x %d %s TMA", on, w.m,
                  w.n, w.k, w.roles ? "uses" : "lacks");
    nvb_arena_free(a);
  }
}
END_TEST

/* Integers of 8 bits on one side, scaled in the tail: one kernel that reads them as they are, for tensor cores,
   whichever side, way and alignment. */
typedef struct weights { int m, n, k, left, transposed, align, device, roles, mma; } weights;

static const char *text_of_weights(nvb_arena *a, const weights *w) {
  nvb_text t = { .arena = a };
  int rows = w->left ? w->n : w->k, cols = w->left ? w->k : w->n, more = !w->align; /* of the bytes */
  const char *align = w->align ? " align16" : "";
  if (w->transposed) rows ^= cols, cols ^= rows, rows ^= cols;
  nvb_print(&t,
            "leaf 0 bf16[%d, %d] strides(%d, 1)%s\nleaf 1 i8[%d, %d] strides(%d, 1)%s\nleaf 2 f32[%d, %d] "
            "strides(1, 1)\n",
            w->left ? w->k : w->m, w->left ? w->m : w->k, (w->left ? w->m : w->k) + more, align, rows, cols,
            cols + more, align, w->left ? w->n : 1, w->left ? 1 : w->n);
  nvb_print(&t, "%%0 = leaf{0} : bf16[%d, %d]\n%%1 = leaf{1} : i8[%d, %d]\n", w->left ? w->k : w->m,
            w->left ? w->m : w->k, rows, cols);
  int r = w->transposed ? cols : rows, c = w->transposed ? rows : cols, m = w->left ? w->n : w->m,
      n = w->left ? w->m : w->n;
  int at = 2;
  if (w->transposed) nvb_print(&t, "%%%d = permute(%%1){1, 0} : i8[%d, %d]\n", at++, r, c);
  nvb_print(&t, "%%%d = map cast(%%%d) narrowed(1) : bf16[%d, %d]\n", at, at - 1, r, c);
  nvb_print(&t, "%%%d = call gemm(%%%d, %%%d){11, 0} : f32[%d, %d]\n", at + 1, w->left ? at : 0, w->left ? 0 : at, m,
            n);
  nvb_print(&t, "%%%d = leaf{2} : f32[%d, %d]\n%%%d = expand(%%%d) : f32[%d, %d]\n", at + 2, w->left ? w->n : 1,
            w->left ? 1 : w->n, at + 3, at + 2, m, n);
  nvb_print(&t, "%%%d = map multiply(%%%d, %%%d) : f32[%d, %d]\n", at + 4, at + 1, at + 3, m, n);
  nvb_print(&t, "%%%d = map cast(%%%d) narrowed(1) : bf16[%d, %d]\nout %%%d\n", at + 5, at + 4, m, n, at + 5);
  return t.s;
}

static void plan_weights(nvb_arena *a, void *arg) {
  weights *w = arg;
  nvf_plan *p = nvf_fuse(a, nvg_graph_parse(a, text_of_weights(a, w), "weights"),
                         nvb_caps_find(with_cores[w->device].name), &(nvf_options){ .fuse = 1 });
  nvc_cuda_kernel k;
  ck_assert_int_eq(p->nstep, 1);
  nvc_cuda_emit(a, &k, p->step[0].k, p->step[0].s, &(nvc_cuda_target){ .arch = with_cores[w->device].arch });
  w->roles = k.nmap > 0;
  w->mma = strstr(k.source, "nv_s8_to_bf16(nv_") || strstr(k.source, " << 16;\n");
}

START_TEST(bytes_beside_sixteen_bits) {
  static const int size[][3] = { { 2, 64, 64 },      { 16, 8192, 4096 },  { 17, 77, 99 },
                                 { 64, 4096, 8192 }, { 200, 1024, 1040 }, { 4096, 4096, 4096 } };
  for (int i = 0; i < 6 * 8 * CORES; i += ONE_IN) {
    const int *s = size[i / (8 * CORES)];
    weights w = { s[0], s[1], s[2], i & 1, i >> 1 & 1, i >> 2 & 1, i / 8 % CORES, 0, 0 };
    nvb_arena *a = nvb_arena_new();
    int status = nvb_protect(a, plan_weights, &w);
    ck_assert_msg(status == NVM_OK, "%s, %d x %d x %d, left %d, turned %d, aligned %d: %s", with_cores[w.device].name,
                  w.m, w.n, w.k, w.left, w.transposed, w.align, nvb_message());
    ck_assert_msg(w.mma, "%s, %d x %d x %d: no tensor cores", with_cores[w.device].name, w.m, w.n, w.k);
    int even = w.align && (w.left ? w.m : w.k) % 8 == 0 && (w.left == w.transposed ? w.n : w.k) % 16 == 0;
    ck_assert_msg(w.roles == (even && !w.device), "%s, %d x %d x %d %s TMA", with_cores[w.device].name, w.m, w.n, w.k,
                  w.roles ? "uses" : "lacks");
    nvb_arena_free(a);
  }
}
END_TEST

/* Of short sums a factor stays in shared memory, where tiles are many and the tail reads no matrix; the kernel is
   taken before a library then. */
typedef struct brief { int m, n, k, tail, stays, own; } brief;
static void plan_brief(nvb_arena *a, void *arg) {
  const brief *b = arg;
  product p = { .type = "bf16", .m = b->m, .n = b->n, .k = b->k, .align = 1, .tail = b->tail };
  const nvf_options o = { .fuse = 1, .capabilities = NVF_CAN_GEMM };
  nvf_plan *plan = nvf_fuse(a, nvg_graph_parse(a, text_of(a, &p), "product"), nvb_caps_find("h200"), &o);
  nvb_text t = { .arena = a };
  nvf_schedule_print(&t, plan->step[0].k, plan->step[0].s, "gpu");
  ck_assert_msg(!strstr(t.s, "keep_operand = 1") == !b->stays && plan->step[0].gemm->own == b->own,
                "%d x %d x %d, tail %d: own %d\n%s", b->m, b->n, b->k, b->tail, plan->step[0].gemm->own, t.s);
}

START_TEST(factors_of_short_sums_stay) {
  brief each[] = { { 16384, 16384, 64, BARE, 1, 1 },  { 16384, 16384, 128, BARE, 1, 1 },
                   { 16384, 16384, 256, BARE, 1, 1 }, { 65536, 8192, 256, BARE, 1, 1 },
                   { 16384, 16384, 320, BARE, 0, 1 }, { 16384, 16384, 128, ADDED, 0, 1 },
                   { 2048, 2048, 128, BARE, 0, 1 },   { 512, 65536, 128, BARE, 0, 1 } };
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    nvb_arena *a = nvb_arena_new();
    ck_assert_msg(nvb_protect(a, plan_brief, &each[i]) == NVM_OK, "%s", nvb_message());
    nvb_arena_free(a);
  }
}
END_TEST

SUITE("tensor", few_tiles_are_shared_out, factors_of_short_sums_stay, all_are_spelled, slow_paths_before_a_store,
      bytes_beside_sixteen_bits, bytes_on_both_sides)
