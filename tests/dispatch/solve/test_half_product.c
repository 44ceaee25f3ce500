/* Half of a product with the transpose, on a GPU or the emulator: every type and layout against sums in long double, by
   every number of levels, with blocks that overlap; the result is symmetric bit by bit. What is rejected; options; a
   call that fails. */
#include <dlfcn.h>
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

static const nvm_dtype types[] = { NVM_F32, NVM_BF16, NVM_F16, NVM_F64, NVM_C64, NVM_C128 };
enum { NTYPES = sizeof types / sizeof *types };

/* A random case of n rows. */
static product_case draw_square(int i, int64_t n) {
  nvm_dtype t = types[i % NTYPES];
  product_case c = { .m = n,
                     .n = n,
                     .k = 1 + draw(20),
                     .alpha = draw(2) ? 1 : -0.5,
                     .alpha_given = (int)draw(2),
                     .nbatch = (int)draw(3),
                     .accumulate = nvg_is_narrow(t) ? NVM_F32 : t };
  c.batch[0] = 1 + draw(2), c.batch[1] = 1 + draw(2);
  for (int x = 0; x < NMAT; x++) c.x[x] = (matrix){ .there = x == A || x == B || x == D, .type = t };
  if (nvg_is_narrow(t) && draw(2)) c.x[D].type = NVM_F32;
  c.x[A].transposed = (int)draw(2), c.x[D].transposed = (int)draw(2);
  c.x[A].pad = (int)draw(3), c.x[D].pad = (int)draw(9), c.x[A].skip = draw(3);
  c.act = nvg_parts(t) == 1 && draw(3) == 0 ? NVF_ACT_RELU : NVF_ACT_NONE;
  return c;
}

/* Makes b the transpose of a, in the memory of a. */
static void make_symmetric(product *p, int half) {
  nvf_gemm *g = nvb_dup(p->plan->arena, p->plan->step[0].gemm, sizeof *g);
  p->plan->step[0].gemm = g;
  nvf_matrix *b = &p->words[B];
  *b = p->words[A];
  b->row = p->words[A].col, b->col = p->words[A].row;
  size_t bytes = (size_t)(p->elements[A] * nvg_size(b->type));
  free(p->data[B]);
  p->data[B] = memcpy(malloc(bytes), p->data[A], bytes);
  p->elements[B] = p->elements[A];
  g->b = *b, g->symmetric = 1, g->half = half;
  p->plan->device = NVB_CUDA;
}

static void check_symmetric(const product *p) {
  size_t size = (size_t)nvg_size(p->words[D].type);
  for (int64_t b = 0; b < (p->c.nbatch > 0 ? p->c.batch[0] : 1) * (p->c.nbatch > 1 ? p->c.batch[1] : 1); b++)
    for (int64_t i = 0; i < p->c.m; i++)
      for (int64_t j = 0; j < i; j++) {
        int64_t e1 = p->c.nbatch > 1 ? p->c.batch[1] : 1;
        const char *x = p->data[D] + size * (size_t)place_of(p, D, b / e1, b % e1, i, j);
        const char *y = p->data[D] + size * (size_t)place_of(p, D, b / e1, b % e1, j, i);
        ck_assert_msg(!memcmp(x, y, size), "%s: %lld, %lld of %lld", case_text(&p->c), (long long)i, (long long)j,
                      (long long)b);
      }
}

static void try_half(nvd_device *d, const product_case *c, int half, const nvd_solver_choice *choice) {
  nvb_arena *a = nvb_arena_new();
  product p;
  product_new(&p, a, c);
  make_symmetric(&p, half);
  if (!choice) ck_assert_str_eq(product_way(a, &p, d), "cublaslt, half of it, which is mirrored");
  nvd_program *program;
  ck_assert_msg(!nvd_prepare(&program, p.plan, d, choice, NULL), "%s: %s", case_text(c), nvb_message());
  size_t bytes = (size_t)(p.elements[D] * nvg_size(p.words[D].type));
  char *before[NMAT] = { 0 };
  before[D] = memcpy(malloc(bytes), p.data[D], bytes);
  ck_assert_msg(!product_run(&p, program, d), "%s: %s", case_text(c), nvb_message());
  compare_product(&p, before);
  check_symmetric(&p);
  char *first = memcpy(malloc(bytes), p.data[D], bytes);
  memcpy(p.data[D], before[D], bytes);
  OK(product_run(&p, program, d));
  ck_assert_int_eq(memcmp(first, p.data[D], bytes), 0);
  nvd_program_free(program);
  free(first), free(before[D]);
  product_free(&p);
  nvb_arena_free(a);
}

START_TEST(random_halves) {
  static const int64_t extents[] = { 256, 257, 264, 300 };
  nvd_device *d = device();
  for (int i = 0; i < 3 * NTYPES; i++) {
    product_case c = draw_square(i, extents[draw(4)]);
    try_half(d, &c, 1 + i % 3, NULL);
  }
}
END_TEST

/* What is on the diagonal or below it belongs to some block, and no two blocks of a call overlap. */
START_TEST(blocks_cover_the_triangle) {
  for (int64_t n = 16; n < 200; n += 1 + draw(9))
    for (int levels = 1; levels <= NVF_HALF_LEVELS && n >> levels >= 4; levels++)
      for (int64_t unit = 1; unit <= 4; unit *= 2) {
        nvf_half_call call[NVF_HALF_CALLS];
        int calls = nvf_half_calls(call, n, levels, unit), *by = calloc((size_t)(n * n), sizeof *by);
        int64_t start = (n >> levels) / unit * unit;
        ck_assert_int_eq(calls > 0, start && n - (start << levels) <= start);
        ck_assert_int_le(calls, NVF_HALF_CALLS);
        for (int x = 0; x < calls; x++)
          for (int64_t b = 0; b < call[x].count; b++) {
            int64_t row = call[x].row + b * call[x].step, col = call[x].col + b * call[x].step;
            ck_assert(row % unit == 0 && col % unit == 0 && row + call[x].rows <= n && col + call[x].cols <= n);
            for (int64_t i = row; i < row + call[x].rows; i++)
              for (int64_t j = col; j < col + call[x].cols; j++) {
                ck_assert_int_ne(by[i * n + j], x + 1);
                by[i * n + j] = x + 1;
              }
          }
        for (int64_t i = 0; i < n; i++)
          for (int64_t j = 0; j <= i && calls; j++) ck_assert(by[i * n + j]);
        free(by);
      }
}
END_TEST

START_TEST(options_and_choices) {
  nvd_device *d = device();
  nvb_arena *a = nvb_arena_new();
  nvd_solver_option all[16];
  product_case c = draw_square(0, 256);
  product p;
  product_new(&p, a, &c);
  make_symmetric(&p, 2);
  int n = nvd_solver_options(all, 16, p.plan, 0, d), halves = 0;
  for (int i = 0; i < n; i++) halves += strstr(all[i].what, "half of it in") != NULL;
  ck_assert_int_eq(halves, 2); /* blocks of 128 and 64 */
  ck_assert_ptr_nonnull(strstr(all[0].what, "2 levels"));
  ck_assert_ptr_nonnull(strstr(all[1].what, "1 levels"));
  for (int i = 0; i < halves; i++) try_half(d, &c, 0, &all[i].choice);
  for (int x = C; x <= AUX; x++) { /* what is added need not be symmetric */
    nvf_gemm g = *p.plan->step[0].gemm;
    if (x == D) continue;
    *(x == C ? &g.c : x == BIAS ? &g.bias : &g.aux) = g.d;
    ck_assert(!nvf_half_may(&g));
  }
  nvf_gemm other = *p.plan->step[0].gemm;
  other.symmetric = 0;
  p.plan->step[0].gemm = &other;
  n = nvd_solver_options(all, 16, p.plan, 0, d);
  for (int i = 0; i < n; i++) ck_assert_ptr_null(strstr(all[i].what, "half of it in"));
  product_free(&p);
  nvb_arena_free(a);
}
END_TEST

/* A call that fails in the middle is an error of the run, and what was made before is freed. */
START_TEST(a_call_fails) {
  void (*let_fail)(const char *, int, int), *found = dlsym(RTLD_DEFAULT, "emu_fail");
  if (!found) return;
  memcpy(&let_fail, &found, sizeof found);
  nvd_device *d = device();
  product_case c = draw_square(0, 256);
  for (int call = 0; call < 3; call++) {
    nvb_arena *a = nvb_arena_new();
    nvd_program *program;
    product p;
    product_new(&p, a, &c);
    make_symmetric(&p, 2);
    let_fail("cublasLtMatmulDescCreate", call, 14); /* the whole product takes the place of half */
    OK(nvd_prepare(&program, p.plan, d, NULL, NULL));
    OK(product_run(&p, program, d));
    nvd_program_free(program);
    OK(nvd_prepare(&program, p.plan, d, NULL, NULL));
    let_fail("cublasLtMatmul", call, 13);
    ck_assert_int_eq(product_run(&p, program, d), NVM_ERR_DEVICE);
    OK(product_run(&p, program, d));
    check_symmetric(&p);
    nvd_program_free(program);
    product_free(&p);
    nvb_arena_free(a);
  }
}
END_TEST

/* What a library failed by may have broken the context: then the device is lost. */
START_TEST(a_call_breaks_the_context) {
  void (*let_fail)(const char *, int, int), *found = dlsym(RTLD_DEFAULT, "emu_fail");
  if (!found) return;
  memcpy(&let_fail, &found, sizeof found);
  nvd_device *d = device();
  nvb_arena *a = nvb_arena_new();
  product_case c = draw_square(0, 256);
  nvd_program *program;
  product p;
  product_new(&p, a, &c);
  make_symmetric(&p, 1);
  OK(nvd_prepare(&program, p.plan, d, NULL, NULL));
  let_fail("cublasLtMatmul", 1, 13);
  let_fail("cudaGetLastError", 0, 700);
  ck_assert_int_eq(product_run(&p, program, d), NVM_ERR_DEVICE);
  ck_assert_msg(strstr(nvb_message(), "the device is lost"), "%s", nvb_message());
  ck_assert_int_eq(nvd_device_usable(0), NVM_ERR_DEVICE);
  nvd_program_free(program);
  product_free(&p);
  nvb_arena_free(a);
}
END_TEST

int main(void) {
  if (!getenv("NVM_EMU_DIR")) { /* CUDA does not go on in a child */
    setenv("CK_FORK", "no", 1);
    if (!nvd_device_count()) {
      printf("skipped: %s\n", nvb_message());
      return 77;
    }
  }
  return RUN_SUITE("half_product", random_halves, blocks_cover_the_triangle, options_and_choices, a_call_fails,
                   a_call_breaks_the_context);
}
