/* Products run by cuBLASLt: on a GPU, or on the emulator (tests/emu) where there is none. Every type, layout and tail
   that it takes against sums in long double; chains with kernels before and behind, replayed and captured; workspaces
   that cannot be had, addresses less aligned than was promised; choices, refusals, failures. NVM_TEST_PRODUCTS: how
   many random ones (200). */
#include <dlfcn.h>
#include <unistd.h>
#include "../../folder.h"
#include "../cuda/runtime.h"
#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/cuda/device_impl.h"
#include "gemms.h"

static nvd_device *device(void) {
  nvd_device *d = NULL;
  const char *dir = getenv("NVM_EMU_DIR");
  if (dir) OK(nvb_set("cuda_dir", dir));
  OK(nvd_device_get(&d, 0));
  return d;
}
static int is_emulated(void) { return getenv("NVM_EMU_DIR") != NULL; }
static int64_t calls(const char *name) { /* -1: nobody counts them */
  int64_t (*count)(const char *) = NULL;
  void *found = dlsym(RTLD_DEFAULT, "emu_calls");
  memcpy(&count, &found, sizeof found);
  return count ? count(name) : -1;
}

static const nvm_dtype types[] = { NVM_F32, NVM_BF16, NVM_F16, NVM_F64, NVM_C64, NVM_C128, NVM_I8, NVM_F8E4, NVM_F8E5 };
enum { NTYPES = sizeof types / sizeof *types };

/* Scales of one number, or of parts of both operands, wherever they lie. */
static void draw_scales(product_case *c) {
  static const nvf_scale_mode pairs[][2] = { { NVF_SCALE_ROW, NVF_SCALE_ROW },
                                             { NVF_SCALE_VECTOR, NVF_SCALE_VECTOR },
                                             { NVF_SCALE_VECTOR, NVF_SCALE_BLOCK },
                                             { NVF_SCALE_BLOCK, NVF_SCALE_VECTOR } };
  const nvf_scale_mode *by = draw(2) ? NULL : pairs[draw(4)];
  for (int i = 0; i < NVF_SCALES; i++)
    c->x[SCALE + i] = (matrix){ .there = by || draw(2),
                                .type = NVM_F32,
                                .skip = draw(2) ? 4 : draw(5),
                                .transposed = (int)draw(2),
                                .pad = draw(2) ? 0 : (int)draw(5),
                                .by = by ? by[i] : NVF_SCALE_TENSOR };
  if (by) c->nbatch = 0, c->alpha = 2, c->alpha_given = 0, c->x[C].there = c->in_place = 0, c->k *= 1 + draw(4);
}

/* Floats of 8 bits, one operand of e4m3: both along k, in units of 16 bytes; results of 32 or 16 bits; scales. */
static void draw_eights(product_case *c, nvm_dtype t) {
  static const nvm_dtype results[] = { NVM_F32, NVM_F16, NVM_BF16 };
  nvm_dtype out = results[draw(3)];
  int unturned = (int)draw(2), other = t == NVM_F8E4 ? B : A;
  c->x[A].type = c->x[B].type = t;
  c->x[other].type = NVM_F8E4;
  c->x[A].transposed = 0, c->x[B].transposed = 1, c->x[D].transposed = !unturned;
  c->m = (c->m + 15) & ~(int64_t)15, c->n = (c->n + 15) & ~(int64_t)15, c->k = (c->k + 15) & ~(int64_t)15;
  *(unturned ? &c->m : &c->n) -= draw(16); /* rows of the result as many as they like */
  for (int x = 0; x < NMAT; x++) c->x[x].pad *= 16, c->x[x].skip *= 16;
  draw_scales(c);
  c->x[D].type = c->x[C].type = out, c->x[BIAS].type = out == NVM_F32 ? NVM_BF16 : out;
}

/* A random case that it should take. */
static product_case draw_case(int i) {
  nvm_dtype t = types[i % NTYPES];
  product_case c = product_draw(t, i % 5 ? 40 : 150);
  c.precision = nvg_real_of(t) == NVM_F32 && draw(3) == 0;
  nvm_dtype out = nvg_is_narrow(t) && draw(3) ? t : nvg_is_narrow(t) ? NVM_F32 : t == NVM_I8 ? NVM_I32 : t;
  if (t == NVM_I8) { /* in fours, and summed along contiguous rows */
    c.accumulate = NVM_I32;
    c.m = 4 * c.m, c.n = 4 * c.n, c.k = 4 * c.k;
    for (int x = 0; x < NMAT; x++) c.x[x].pad *= 4, c.x[x].skip *= 16;
    c.x[A].transposed = c.x[D].transposed = 0, c.x[B].transposed = 1;
    c.x[C].there = c.x[BIAS].there = c.in_place = 0;
    c.alpha = 1, c.beta = 0, c.alpha_given = c.beta_given = 0;
  }
  for (int x = C; x < SCALE; x++) c.x[x].type = out;
  if (nvg_is_f8(t)) draw_eights(&c, t);
  out = c.x[D].type;
  c.x[C].transposed = c.x[D].transposed;
  if (c.in_place) c.x[C] = c.x[D];
  c.bias_axis = !c.x[D].transposed;
  if (nvg_parts(c.accumulate) > 1 || t == NVM_I8) c.x[BIAS].there = 0;
  else c.act = draw(2) ? NVF_ACT_NONE : draw(2) || (!nvg_is_narrow(out) && !c.precision) ? NVF_ACT_RELU : NVF_ACT_GELU;
  if (c.act == NVF_ACT_GELU && !nvg_is_f8(t) && draw(2)) {
    c.x[AUX] = (matrix){ .there = 1, .type = out, .transposed = c.x[D].transposed, .pad = 0 };
    *(c.x[D].transposed ? &c.m : &c.n) += 7, *(c.x[D].transposed ? &c.m : &c.n) &= ~(int64_t)7;
  }
  if (i % 3 == 0 && !nvg_is_f8(t)) { /* as tensor cores like it */
    c.m = (c.m + 7) & ~(int64_t)7, c.n = (c.n + 7) & ~(int64_t)7, c.k = (c.k + 15) & ~(int64_t)15;
    for (int x = 0; x < NMAT; x++) c.x[x].skip = c.x[x].pad = 0;
  }
  return c;
}

START_TEST(random_products) {
  nvd_device *d = device();
  const char *set = getenv("NVM_TEST_PRODUCTS");
  int n = set ? atoi(set) : ONE_IN > 1 ? 64 : 200, declined[NTYPES] = { 0 };
  for (int i = 0; i < n; i++) {
    product_case c = draw_case(i);
    declined[i % NTYPES] += !product_offered(&c, d);
    if (product_offered(&c, d)) product_try(&c, d, "cublaslt", 1 + (i % 9 == 0));
    else if (getenv("NVM_TEST_TELL")) printf("no algorithm: %s\n", case_text(&c));
  }
  for (int t = 0; t < NTYPES; t++) {
    printf("%s: cuBLASLt has no algorithm for %d of %d\n", nvg_dtype_short(types[t]), declined[t], n / NTYPES);
    ck_assert_int_lt(declined[t], n / NTYPES * 3 / 4 + 1);
  }
}
END_TEST

static product_case plain(nvm_dtype t, int64_t m, int64_t n, int64_t k) {
  product_case c = { .m = m, .n = n, .k = k, .alpha = 1, .accumulate = nvg_is_narrow(t) ? NVM_F32 : t };
  for (int x = 0; x < NMAT; x++) c.x[x] = (matrix){ .there = x == A || x == B || x == D, .type = t };
  return c;
}

static const char *way_of(const product_case *c, nvd_device *d) {
  static char text[512];
  nvb_arena *a = nvb_arena_new();
  product p;
  product_new(&p, a, c);
  p.plan->device = NVB_CUDA;
  snprintf(text, sizeof text, "%s", product_way(a, &p, d));
  product_free(&p);
  nvb_arena_free(a);
  return text;
}
START_TEST(refusals) {
  nvd_device *d = device();
  product_case c = plain(NVM_F32, 8, 8, 0);
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "nothing to sum"));
  c = plain(NVM_F32, 8, 8, 8), c.x[BIAS].there = 1, c.bias_axis = 0;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "contiguous row"));
  c.bias_axis = 1, c.x[BIAS].type = NVM_F64;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "another type"));
  c = plain(NVM_C64, 8, 8, 8), c.act = NVF_ACT_RELU;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "no activation for this type"));
  c = plain(NVM_F64, 8, 8, 8), c.act = NVF_ACT_GELU;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "not as accurate"));
  c.x[A].type = c.x[B].type = c.x[D].type = c.accumulate = NVM_F32;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "not as accurate"));
  c.precision = 1; /* who allows TF32 allows that */
  ck_assert_str_eq(way_of(&c, d), "cublaslt");
  c = plain(NVM_F32, 8, 8, 8), c.act = NVF_ACT_RELU, c.x[AUX].there = 1;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "GELU alone"));
  c = plain(NVM_F32, 8, 8, 8), c.x[C].there = c.x[C].transposed = 1, c.beta = 1;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "another type or layout"));
  c = plain(NVM_I32, 8, 8, 8);
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "no product of these types"));
  c = plain(NVM_F8E5, 32, 48, 64), c.x[D].type = NVM_BF16, c.x[B].transposed = 1;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "no product of these types"));
  c.x[A].type = NVM_F8E4;
  ck_assert_str_eq(way_of(&c, d), "cublaslt");
  c.m = 1; /* rows of the result */
  ck_assert_str_eq(way_of(&c, d), "cublaslt");
  c.x[A].transposed = 1, c.m = 32;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "does not lie along"));
  c.x[A].transposed = 0, c.k = 40;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "extents that are multiples of 16"));
  c.k = 48, c.n = 40;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "extents that are multiples of 16"));
  c.n = 48, c.x[A].pad = 8;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "rows that begin at multiples of 16 bytes"));
  c.x[A].pad = 0, c.x[B].skip = 4;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "rows that begin at multiples of 16 bytes"));
  c.x[B].skip = 0, c.x[BIAS].there = 1, c.bias_axis = 1, c.x[D].type = NVM_F32, c.x[BIAS].type = NVM_F32;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "another type than it takes"));
  c.x[D].type = NVM_F8E4;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "no product of these types"));
  c = plain(NVM_I8, 8, 12, 20), c.x[D].type = c.accumulate = NVM_I32, c.x[B].transposed = 1;
  ck_assert_str_eq(way_of(&c, d), "cublaslt");
  c.x[B].transposed = 0;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "does not lie along"));
  c.x[B].transposed = 1, c.n = 10;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "extents in fours"));
  c.n = 12, c.x[A].pad = 2;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "rows that begin at multiples of 4 bytes"));
  c.x[A].pad = 0, c.x[B].skip = 2;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "rows that begin at multiples of 4 bytes"));
  nvb_set("solvers", "openblas");
  c = plain(NVM_F32, 8, 8, 8);
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "NVM_SOLVERS"));
  nvb_set("solvers", NULL);
  ck_assert_str_eq(way_of(&c, d), "cublaslt");
}
END_TEST

START_TEST(scales_of_parts) {
  nvd_device *d = device();
  int arch = d->arch;
  product_case c = plain(NVM_F8E4, 64, 144, 384);
  c.x[D].type = NVM_BF16, c.x[B].transposed = 1;
  c.x[SCALE] = c.x[SCALE + 1] = (matrix){ .there = 1, .type = NVM_F32, .by = NVF_SCALE_VECTOR };
  for (d->arch = 80; d->arch < 130 && is_emulated(); d->arch += 10)
    ck_assert(strstr(way_of(&c, d), d->arch == 90 ? "cublaslt" : "on compute capability 9.0 alone"));
  d->arch = is_emulated() ? 90 : arch;
  if (d->arch != 90) return;
  for (int i = 0; i < 4; i++) {
    c.x[SCALE].transposed = i & 1, c.x[SCALE + 1].transposed = i >> 1;
    product_try(&c, d, "cublaslt", 2);
  }
  c.x[SCALE].by = NVF_SCALE_BLOCK;
  ck_assert_str_eq(way_of(&c, d), "cublaslt");
  c.beta = 1, c.x[C] = c.x[D];
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "never asked to add a matrix"));
  c.x[C].there = 0, c.nbatch = 1, c.batch[0] = 2;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "one product at a time"));
  c.nbatch = 0, c.x[SCALE + 1].by = NVF_SCALE_BLOCK;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "no such pair of scales"));
  c.x[SCALE + 1].by = NVF_SCALE_ROW;
  ck_assert_ptr_nonnull(strstr(way_of(&c, d), "no such pair of scales"));
  c.x[SCALE].by = NVF_SCALE_ROW;
  ck_assert_str_eq(way_of(&c, d), "cublaslt");
  d->arch = arch;
}
END_TEST

START_TEST(choices) {
  nvd_device *d = device();
  nvb_arena *a = nvb_arena_new();
  product p;
  product_case c = plain(NVM_BF16, 256, 128, 64);
  product_new(&p, a, &c);
  p.plan->device = NVB_CUDA;
  nvd_solver_option all[16];
  int n = nvd_solver_options(all, 16, p.plan, 0, d);
  ck_assert_int_ge(n, 2);
  ck_assert_str_eq(all[n - 1].choice.solver, "kernel");
  char *before[NMAT] = { 0 };
  before[D] = memcpy(malloc((size_t)p.elements[D] * 2), p.data[D], (size_t)p.elements[D] * 2);
  for (int i = 0; i < n; i++) {
    nvd_solver_choice damaged = all[0].choice;
    memset(damaged.config, 0x5a, sizeof damaged.config);
    product_choose(&p, d, i < n - 1 ? &all[i].choice : &damaged, before); /* then the heuristic's first */
  }
  free(before[D]);
  product_free(&p);
  nvb_arena_free(a);
}
END_TEST

/* On compute capability 10.x it takes float32 apart itself, where it has an algorithm for that, and else does not; what
   was chosen is run as what it was chosen for. */
START_TEST(float32_in_pieces) {
  nvd_device *d = device();
  int arch = d->arch;
  product_case c = plain(NVM_F32, 96, 48, 64);
  c.precision = NVM_PRECISION_BF16X9;
  for (int tail = 0; tail < 2 && is_emulated(); tail++) {
    nvb_arena *a = nvb_arena_new();
    nvd_solver_option all[16];
    product p;
    c.act = tail ? NVF_ACT_RELU : NVF_ACT_NONE; /* which the emulator does not do for split operands */
    for (d->arch = 90; d->arch < 130; d->arch += 10) {
      product_new(&p, a, &c);
      p.plan->device = NVB_CUDA;
      int n = nvd_solver_options(all, 16, p.plan, 0, d), pieces = 0;
      for (int i = 0; i < n; i++) pieces += strstr(all[i].what, "in bf16x9") != NULL;
      ck_assert_int_eq(pieces > 0, d->arch == 100 && !tail);
      ck_assert_int_gt(n - 1, pieces);
      product_free(&p);
      product_try(&c, d, "cublaslt", 1);
    }
    nvb_arena_free(a);
    d->arch = arch;
  }
}
END_TEST

/* ---- chains: y = 2 * ((3 x) b) by two kernels with a product between, in temporaries */
enum { M = 48, W = 64 };
static const char scale_text[] =
    "kernel scale(x: f32[], y: mut f32[], a: f32, n: size) {\n  grid (b = (n + 1023) // 1024) {\n"
    "    X = load(x, b*1024 + j, L, where = b*1024 + j < n)\n    Y = map(multiply, X, a)\n"
    "    store(y, b*1024 + j, Y, where = b*1024 + j < n)\n  }\n}\nschedule cpu { L = \"j: i4 w8 l32\" }\n";
static nvf_step scale_step(nvb_arena *a, int from, int to, float by, int64_t n) {
  nvf_step s = { .hero = "map", .what = "made by hand", .blocks = (n + 1023) / 1024, .grain = 4 };
  nvf_bind bind[4] = { { .kind = NVF_BUFFER, .buf = from },
                       { .kind = NVF_BUFFER, .buf = to },
                       { .kind = NVF_SCALAR },
                       { .kind = NVF_SIZE, .bits = (uint64_t)n } };
  memcpy(&bind[2].bits, &by, sizeof by);
  s.k = nvf_kernel_parse(a, scale_text, "test");
  s.s = nvf_schedule_find(s.k, "cpu");
  s.bind = nvb_dup(a, bind, sizeof bind);
  return s;
}
static void chain(nvb_arena *a, void *arg) {
  product p = { .c = plain(NVM_F32, M, W, W) };
  for (int x = 0; x < NMAT; x++) lay(&p, x);
  plan_product(a, &p);
  nvf_plan *plan = NVB_NEW(a, nvf_plan);
  int64_t bytes = 4 * M * W;
  *plan = (nvf_plan){ .arena = a,
                      .device = NVB_CUDA,
                      .nstep = 3,
                      .step = NVB_NEWN(a, nvf_step, 3),
                      .nbuf = 5,
                      .buf = NVB_NEWN(a, nvf_buf, 5),
                      .temp_bytes = 2 * bytes,
                      .g = aligned_leaves(a) };
  plan->buf[0] = (nvf_buf){ .kind = NVF_BLEAF, .id = 0, .donor = -1 };
  plan->buf[1] = (nvf_buf){ .kind = NVF_BLEAF, .id = 1, .donor = -1 };
  plan->buf[2] = (nvf_buf){ .kind = NVF_BTEMP, .bytes = bytes, .last = 1, .donor = -1 };
  plan->buf[3] = (nvf_buf){ .kind = NVF_BTEMP, .bytes = bytes, .offset = bytes, .first = 1, .last = 2, .donor = -1 };
  plan->buf[4] = (nvf_buf){ .kind = NVF_BOUT, .bytes = bytes, .donor = -1 };
  plan->step[0] = scale_step(a, 0, 2, 3, M * W);
  plan->step[1] = p.plan->step[0];
  for (int i = 0; i < 3; i++) plan->step[1].bind[i].buf = (int[]){ 2, 1, 3 }[i];
  plan->step[2] = scale_step(a, 3, 4, 2, M * W);
  for (int x = 0; x < NMAT; x++) free(p.data[x]);
  *(nvf_plan **)arg = plan;
}
static nvd_program *chain_program(nvd_device *d) {
  nvb_arena *a = nvb_arena_new();
  nvf_plan *plan;
  nvd_program *p;
  OK(nvb_protect(a, chain, &plan));
  OK(nvd_prepare(&p, plan, d, NULL, NULL));
  nvb_arena_free(a);
  return p;
}
/* x is the number v everywhere, b the unit matrix times 5: y is 30 v. At `skip` bytes into their buffers. */
static nvd_operand constant(nvd_device *d, float v, int unit, size_t skip) {
  int n = unit ? W * W : M * W;
  char *data = malloc(4 * (size_t)n + skip);
  float *x = calloc((size_t)n, 4);
  for (int i = 0; i < n; i++) x[i] = !unit ? v : i / W == i % W ? 5 : 0;
  memcpy(data + skip, x, 4 * (size_t)n);
  nvd_buf *b = nvd_buf_new_on(d, 4 * (size_t)n + skip);
  ck_assert(b != NULL);
  OK(nvd_upload(b, 0, data, 4 * (size_t)n + skip));
  free(data), free(x);
  return (nvd_operand){ b, b->data + skip };
}
static int is_constant(const nvd_operand *y, float v) {
  float got[M * W];
  OK(nvd_download(got, y->buf, 0, sizeof got));
  for (int i = 0; i < M * W; i++)
    if (got[i] != v) return 0;
  return 1;
}
/* keep: where the result stays, so that the next one lies elsewhere; NULL: what is used is given back. */
static int run_chain(nvd_program *p, nvd_device *d, float v, size_t skip, nvd_buf **keep) {
  nvd_operand leaf[2] = { constant(d, v, 0, 0), constant(d, 0, 1, skip) }, out = { nvd_buf_new_on(d, 4 * M * W), NULL };
  out.data = out.buf->data;
  int status = nvd_run_on(p, leaf, &out);
  if (!status) ck_assert(is_constant(&out, 30 * v));
  nvd_buf_unref(leaf[0].buf), nvd_buf_unref(leaf[1].buf);
  if (keep) *keep = out.buf;
  else nvd_buf_unref(out.buf);
  return status;
}

START_TEST(replayed_between_kernels) {
  nvd_device *d = device();
  nvd_program *p = chain_program(d);
  nvd_buf *y[8] = { NULL };
  for (int i = 1; i < 8; i++) OK(run_chain(p, d, (float)i, 0, &y[i]));
  for (int i = 1; i < 8; i++) nvd_buf_unref(y[i]);
  if (calls("cuGraphLaunch") >= 0) {
    ck_assert_int_eq(calls("cuGraphInstantiateWithFlags"), 2); /* before the product, and behind it */
    ck_assert_int_eq(calls("cuLaunchKernelEx"), 4);            /* two runs as they are */
    ck_assert_int_eq(calls("cublasLtMatmul"), 7);
    ck_assert_int_eq(calls("cublasLtMatmulAlgoGetHeuristic"), 1);
  }
  nvd_program_free(p);
}
END_TEST

START_TEST(recorded_whole) { /* memory that is given back is met again: soon the library is called no more */
  nvd_device *d = device();
  nvd_program *p = chain_program(d);
  for (int i = 1; i < 12; i++) OK(run_chain(p, d, (float)i, 0, NULL));
  int64_t before = calls("cublasLtMatmul"), graphs = calls("cuGraphLaunch");
  for (int i = 1; i < 5; i++) OK(run_chain(p, d, (float)i, 0, NULL));
  ck_assert_int_eq(calls("cublasLtMatmul"), before);
  ck_assert(before < 0 || calls("cuGraphLaunch") == graphs + 4);
  nvd_buf *y[4] = { NULL };
  for (int i = 0; i < 4; i++) /* elsewhere, then there again */
    OK(run_chain(p, d, (float)i, 0, &y[i]));
  for (int i = 0; i < 4; i++) nvd_buf_unref(y[i]);
  for (int i = 1; i < 5; i++) OK(run_chain(p, d, (float)i, 0, NULL));
  nvd_program_free(p);
}
END_TEST

START_TEST(less_aligned_than_promised) {
  nvd_device *d = device();
  nvd_program *p = chain_program(d);
  for (int i = 1; i < 6; i++) OK(run_chain(p, d, (float)i, i % 2 ? 4 : 0, NULL));
  nvd_program_free(p);
}
END_TEST

START_TEST(captured) {
  nvd_device *d = device();
  nvd_program *p = chain_program(d);
  void *mine, *graph, *exec;
  nvd_operand leaf[2] = { constant(d, 2, 0, 0), constant(d, 0, 1, 0) }, out = { nvd_buf_new_on(d, 4 * M * W), NULL };
  out.data = out.buf->data;
  CUDA(cudaStreamCreateWithFlags(&mine, 1));
  OK(nvd_stream_set(d, mine));
  CUDA(cudaStreamBeginCapture(mine, 0)); /* the strictest mode */
  OK(nvd_run_on(p, leaf, &out));
  CUDA(cudaStreamEndCapture(mine, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  nvd_program_free(p);
  for (int i = 0; i < 2; i++) CUDA(cudaGraphLaunch(exec, mine));
  CUDA(cudaStreamSynchronize(mine));
  ck_assert(is_constant(&out, 60));
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  nvd_buf_unref(leaf[0].buf), nvd_buf_unref(leaf[1].buf), nvd_buf_unref(out.buf);
  OK(nvd_stream_set(d, NULL));
}
END_TEST

START_TEST(watched) {
  char dir[] = "/tmp/nvm-products-XXXXXX";
  nvd_device *d = device();
  ck_assert_ptr_nonnull(mkdtemp(dir));
  nvb_set("dump", "run"), nvb_set("dump_dir", dir), nvb_set("check", "bits");
  nvd_program *p = chain_program(d);
  OK(run_chain(p, d, 1, 0, NULL));
  ck_assert(run_line(dir, 1) && run_line(dir, 3));
  const char *line = run_line(dir, 2);
  ck_assert_msg(!strncmp(line, "2/3 gemm, cuda:0: cublaslt, ", 28), "%s", line);
  sweep_folder(dir);
  nvd_program_free(p);
  nvb_set("dump", NULL), nvb_set("dump_dir", NULL), nvb_set("check", NULL);
}
END_TEST

/* ---- what fails */
START_TEST(without_workspace) { /* the limit leaves space for the arrays, then for less and less of the workspace */
  nvd_device *d = device();
  nvd_program *p = chain_program(d);
  OK(run_chain(p, d, 1, 0, NULL));
  nvd_device_memory m;
  int ran = 0;
  for (int64_t left = 8 << 20; left; left = left > 16384 ? left / 2 : 0) {
    nvd_device_memory_trim(d);
    OK(nvd_device_memory_get(&m, d));
    OK(nvd_device_memory_limit(d, m.used + left));
    nvd_operand leaf[2], out;
    int64_t need = 0;
    OK(nvd_device_memory_limit(d, 0));
    leaf[0] = constant(d, 2, 0, 0), leaf[1] = constant(d, 0, 1, 0);
    out.buf = nvd_buf_new_on(d, 4 * M * W), out.data = out.buf->data;
    OK(nvd_device_memory_get(&m, d));
    need = 2 * 4 * M * W + 8192; /* temporaries, in a cell that is somewhat larger */
    OK(nvd_device_memory_limit(d, m.used + need + left));
    OK(nvd_run_on(p, leaf, &out));
    ran++;
    OK(nvd_device_memory_limit(d, 0));
    ck_assert(is_constant(&out, 60));
    nvd_buf_unref(leaf[0].buf), nvd_buf_unref(leaf[1].buf), nvd_buf_unref(out.buf);
  }
  ck_assert_int_gt(ran, 5);
  nvd_program_free(p);
}
END_TEST

START_TEST(a_call_fails) {
  if (!is_emulated()) return;
  void (*let_fail)(const char *, int, int), *found = dlsym(RTLD_DEFAULT, "emu_fail");
  memcpy(&let_fail, &found, sizeof found);
  static const char *const name[] = { "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
                                      "cublasLtMatrixLayoutCreate", "cublasLtMatmulAlgoGetHeuristic",
                                      "cublasLtMatmulPreferenceCreate" };
  nvd_device *d = device();
  product_case c = plain(NVM_F32, 8, 8, 8);
  nvb_arena *a = nvb_arena_new();
  product p;
  product_new(&p, a, &c);
  p.plan->device = NVB_CUDA;
  nvd_solver_option all[4];
  ck_assert_int_eq(nvd_solver_options(all, 4, p.plan, 0, d), 3);
  int64_t before = nvb_live_blocks();
  for (int i = 0; i < 5; i++) {
    let_fail(name[i], 0, 14);
    ck_assert_int_eq(nvd_solver_options(all, 4, p.plan, 0, d), 1); /* its own kernel is left */
  }
  ck_assert_int_eq(nvb_live_blocks(), before);
  product_free(&p);
  nvb_arena_free(a);
  nvd_program *chain = chain_program(d);
  nvd_buf *y[10] = { NULL };
  for (int i = 0; i < 10; i += 2) { /* launched one by one, then between graphs */
    let_fail("cublasLtMatmul", 0, 13);
    ck_assert_int_eq(run_chain(chain, d, 1, 0, &y[i]), NVM_ERR_DEVICE);
    ck_assert_msg(strstr(nvb_message(), "cuBLASLt") && strstr(nvb_message(), "EXECUTION_FAILED"), "%s", nvb_message());
    OK(run_chain(chain, d, 2, 0, &y[i + 1]));
  }
  for (int i = 0; i < 10; i++) nvd_buf_unref(y[i]);
  nvd_program_free(chain);
  chain = chain_program(d);
  let_fail("cudaStreamEndCapture", 0, 1); /* what cannot be recorded runs as it is */
  for (int i = 0; i < 6; i++) OK(run_chain(chain, d, 1, 0, NULL));
  ck_assert_int_ge(calls("cublasLtMatmul"), 6);
  nvd_program_free(chain);
}
END_TEST

int main(void) {
  if (!is_emulated()) { /* CUDA does not go on in a child */
    setenv("CK_FORK", "no", 1);
    if (!nvd_device_count()) {
      printf("skipped: %s\n", nvb_message());
      return 77;
    }
  }
  return RUN_SUITE("solve_cuda", random_products, refusals, scales_of_parts, choices, float32_in_pieces,
                   replayed_between_kernels, recorded_whole, less_aligned_than_promised, captured, watched,
                   without_workspace, a_call_fails);
}
