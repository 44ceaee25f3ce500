/* Contractions on tensor cores: every schedule of a text whose name begins with "mma" in the emulator, near what the
   interpreter computes with the first schedule (the order of addition differs); and as machine code without spills. */
#define GATE_CUDA
#include "../gate.h"

enum { FEW = 2, SHARES = 7 }; /* blocks of persistent kernels, and stream-K */
typedef struct matrix { nvm_dtype type; int rows, cols, ld; void *data; } matrix;

static matrix matrix_new(nvm_dtype t, int rows, int cols, int ld, double size) {
  matrix m = { t, rows, cols, ld, calloc((size_t)rows * (size_t)ld + 1, (size_t)nvg_size(t)) };
  for (int i = 0; i < rows * ld && size > 0; i++) {
    double x = size * (2 * gate_uniform() - 1);
    uint64_t bits = nvg_class_of(t) < NVG_FLOAT ? (uint64_t)(int64_t)floor(x) : nvg_float_bits(t, x);
    memcpy((char *)m.data + (size_t)i * (size_t)nvg_size(t), &bits, (size_t)nvg_size(t));
  }
  return m;
}

static double value_at(const matrix *m, const void *data, int64_t i) {
  uint64_t bits = 0;
  memcpy(&bits, (const char *)data + i * nvg_size(m->type), (size_t)nvg_size(m->type));
  return m->type == NVM_I32 ? (int32_t)bits : nvg_bits_float(m->type, bits);
}

typedef struct product {
  const char *file, *prefix;
  int m, n, k, lda, ldb, ldd;
  matrix in[4], out;
  int nin;
  double tolerance;
} product;

static void arguments(const product *p, void *const *data, uint64_t *args) {
  int n = 0;
  for (int i = 0; i < p->nin; i++) args[n++] = (uint64_t)(uintptr_t)p->in[i].data;
  args[n++] = (uint64_t)(uintptr_t)*data;
  const int size[] = { p->m, p->n, p->k, p->lda, p->ldb, p->ldd };
  for (int i = 0; i < 6; i++) args[n++] = (uint64_t)size[i];
}

static void compare(const product *p, const char *name, const void *want, const void *got) {
  for (int64_t i = 0; i < (int64_t)p->out.rows * p->out.ld; i++) {
    double w = value_at(&p->out, want, i), g = value_at(&p->out, got, i);
    ck_assert_msg(fabs(w - g) <= p->tolerance * (1 + fabs(w)), "%s, %s, %d x %d x %d: [%lld, %lld] is %g, should be %g",
                  p->file, name, p->m, p->n, p->k, (long long)(i / p->out.ld), (long long)(i % p->out.ld), g, w);
  }
}

static size_t bytes_of(const matrix *m) { return (size_t)m->rows * (size_t)m->ld * (size_t)nvg_size(m->type); }

static void launch(const product *p, gate_launch *l, const uint64_t *args, int64_t blocks, const char *name,
                   const void *want, void *out) {
  memset(out, 0, bytes_of(&p->out));
  ck_assert_int_eq(gate_on_gpu(&(gate_way){ .name = name, .other = l }, args, blocks, NULL), 0);
  compare(p, name, want, out);
}

static void emulate(nvb_arena *a, const product *p, nvf_kernel *k, nvf_schedule *s, const char *name, const void *want,
                    void *out) {
  nvc_cuda_kernel c;
  nvc_cubin cubin;
  uint64_t args[GATE_ARGS];
  arguments(p, &out, args);
  nvc_cuda_emit(a, &c, k, s, &(nvc_cuda_target){ 90, 0, 0 });
  if (getenv("GATE_SHOW")) printf("%s\n", c.source);
  ck_assert_msg(nvc_nvrtc_compile(&cubin, c.source, k->title, 90) == NVM_OK, "%s: %s: %s", p->file, name,
                nvb_message());
  emu_module *m = emu_module_load(cubin.bytes);
  ck_assert_msg(m != NULL, "%s", emu_error());
  gate_launch l = { &c, emu_module_kernel(m, "nvm_kernel"), k->nparam };
  int64_t blocks = nvf_blocks(k, s, args);
  for (int n = SHARES; c.flags && n > 1; n -= 2) launch(p, &l, args, n, name, want, out);
  if (!c.flags) launch(p, &l, args, c.persistent && blocks > FEW ? FEW : blocks, name, want, out);
  emu_module_unload(m);
  nvb_free(cubin.bytes);
}

static void work(nvb_arena *a, void *arg) {
  const product *p = arg;
  char *text = gate_text(p->file);
  nvf_kernel *k = nvf_kernel_parse(a, text, p->file);
  void *want = calloc(1, bytes_of(&p->out) + 1), *got = malloc(bytes_of(&p->out) + 1);
  uint64_t args[GATE_ARGS];
  arguments(p, &want, args);
  nvc_interp *in = nvc_interp_new(a, k, k->sched[0]);
  void *scratch = aligned_alloc(64, (size_t)nvc_interp_scratch(in) + 64 - (size_t)nvc_interp_scratch(in) % 64);
  nvc_interp_run(in, args, 0, nvf_blocks(k, k->sched[0], args), scratch);
  free(scratch);
  int runs = 0;
  for (int i = 0; i < k->nsched; i++) {
    if (strncmp(k->sched_name[i], p->prefix, strlen(p->prefix)) != 0 || strncmp(k->sched_name[i], "cpu", 3) == 0)
      continue;
    emulate(a, p, k, k->sched[i], k->sched_name[i], want, got);
    runs++;
  }
  ck_assert_int_gt(runs, 0);
  free(want);
  free(got);
  free(text);
}

static void run_product(product *p) {
  nvb_arena *a = nvb_arena_new();
  ck_assert_msg(nvb_protect(a, work, p) == NVM_OK, "%s: %s", p->file, nvb_message());
  for (int i = 0; i < p->nin; i++) free(p->in[i].data);
  nvb_arena_free(a);
}

/* size: m, n, k and the leading dimensions of a, b, d */
static product product_of(const char *file, const char *prefix, const int *size, int nin) {
  return (product){ .file = file,
                    .prefix = prefix,
                    .m = size[0],
                    .n = size[1],
                    .k = size[2],
                    .lda = size[3],
                    .ldb = size[4],
                    .ldd = size[5],
                    .nin = nin };
}

/* Rows of both operands, of numbers up to `most`, are K-major; what else goes in is left to the caller. */
static product along_k(const char *file, const char *prefix, const int *size, int nin, nvm_dtype a, nvm_dtype b,
                       double most, nvm_dtype d) {
  product p = product_of(file, prefix, size, nin);
  p.in[0] = matrix_new(a, p.m, p.k, p.lda, most);
  p.in[1] = matrix_new(b, p.n, p.k, p.ldb, most);
  p.out = (matrix){ d, p.m, p.n, p.ldd, NULL };
  return p;
}

static void gemm16_in(const char *file, const char *prefix, int m, int n, int k, int lda, int ldb, int ldd) {
  product p = along_k(file, prefix, (int[]){ m, n, k, lda, ldb, ldd }, 3, NVM_BF16, NVM_BF16, 0.5, NVM_BF16);
  p.in[2] = matrix_new(NVM_BF16, 1, n, n, 1);
  p.tolerance = 0x1p-8 + k * 0x1p-22;
  run_product(&p);
}

static void gemm16_of(const char *prefix, int m, int n, int k, int lda, int ldb, int ldd) {
  gemm16_in("gemm16.kir", prefix, m, n, k, lda, ldb, ldd);
}

START_TEST(rows) {
  gemm16_of("mma", 128, 256, 128, 128, 128, 256);
  gemm16_of("mma", 136, 264, 104, 112, 136, 272);
}
END_TEST
START_TEST(unaligned) {
  gemm16_of("mma1", 70, 131, 77, 77, 79, 133);
  gemm16_of("mma2", 131, 70, 33, 35, 33, 71);
  gemm16_of("mma2", 1, 1, 1, 1, 1, 1);
  gemm16_of("mmav1", 70, 131, 77, 80, 88, 134); /* rows are aligned, their ends are not */
}
END_TEST

/* Roles, TMA, stages; several tiles a block, edges in all directions. */
START_TEST(groups) {
  gemm16_of("wgmma", 128, 256, 128, 128, 128, 256);
  gemm16_of("wgmma", 136, 522, 200, 208, 216, 528);
  gemm16_of("wgmma", 300, 10, 8, 8, 8, 16);
  gemm16_of("wgmmat", 400, 300, 72, 72, 80, 304); /* two k-tiles, which divide the stages, and three */
  gemm16_of("wgmmat", 400, 300, 136, 136, 136, 304);
  gemm16_of("", 9, 9, 0, 8, 8, 16);
}
END_TEST

/* The blocks of a cluster take k-tiles in turn: all, some and none of them have a last one. */
START_TEST(shared_out) {
  gemm16_in("gemmk.kir", "", 128, 128, 512, 512, 512, 128);
  gemm16_in("gemmk.kir", "", 70, 134, 328, 336, 344, 140);
  gemm16_in("gemmk.kir", "", 9, 9, 40, 48, 40, 16);
  gemm16_in("gemmk.kir", "", 9, 9, 0, 8, 8, 16);
}
END_TEST
/* Floats of 8 bits; ends of rows that are no multiples of 16 bytes. */
static void gemm8_of(const char *prefix, int m, int n, int k, int lda, int ldb, int ldd) {
  product p = along_k("gemm8.kir", prefix, (int[]){ m, n, k, lda, ldb, ldd }, 3, NVM_F8E4, NVM_F8E5, 2, NVM_BF16);
  p.in[2] = matrix_new(NVM_F32, 1, 1, 1, 1);
  p.tolerance = 0x1p-8 + k * 0x1p-22;
  run_product(&p);
}
START_TEST(eights) {
  gemm8_of("", 128, 256, 256, 256, 256, 256);
  gemm8_of("mma", 136, 72, 208, 208, 224, 72);
  gemm8_of("mma1", 70, 131, 77, 77, 79, 133);
  gemm8_of("wgmma", 136, 522, 300, 304, 320, 528);
  gemm8_of("wgmma", 9, 9, 0, 16, 16, 16);
}
END_TEST

/* Integers of 8 bits on both sides, all of them: their sums are exact. */
static void gemmi_of(const char *prefix, int m, int n, int k, int lda, int ldb, int ldd) {
  product p = along_k("gemmi.kir", prefix, (int[]){ m, n, k, lda, ldb, ldd }, 3, NVM_I8, NVM_I8, 128, NVM_I32);
  p.in[2] = matrix_new(NVM_I32, 1, n, n, 0x1p30);
  run_product(&p);
}
START_TEST(whole) {
  gemmi_of("", 128, 256, 256, 256, 256, 256);
  gemmi_of("mma", 136, 72, 208, 208, 224, 72);
  gemmi_of("mma1", 70, 131, 77, 77, 79, 133);
  gemmi_of("wgmma", 136, 522, 300, 304, 320, 528);
  gemmi_of("wgmma", 9, 9, 0, 16, 16, 16);
}
END_TEST

/* Integers of 8 bits on one side, along k and across: all of them. */
static void gemmb_of(const char *prefix, int m, int n, int k, int lda, int ldb, int ldd) {
  for (int along = 0; along < 2; along++) {
    product p = product_of(along ? "gemmb.kir" : "gemmbt.kir", prefix, (int[]){ m, n, k, lda, ldb, ldd }, 4);
    p.in[0] = matrix_new(NVM_BF16, m, k, lda, 0.5);
    p.in[1] = matrix_new(NVM_I8, along ? n : k, ldb, ldb, 128);
    p.in[2] = matrix_new(NVM_F32, 1, n, n, 0x1p-7);
    p.in[3] = matrix_new(NVM_BF16, m, n, ldd, 1);
    p.out = (matrix){ NVM_BF16, m, n, ldd, NULL };
    p.tolerance = 0x1p-8 + k * 0x1p-22;
    run_product(&p);
  }
}
START_TEST(bytes) {
  gemmb_of("", 256, 128, 128, 128, 128, 128);
  gemmb_of("mma1", 70, 131, 77, 77, 133, 133);
  gemmb_of("mma2", 33, 70, 77, 77, 79, 71);
  gemmb_of("mma", 70, 144, 80, 80, 144, 144);
  gemmb_of("mmav3", 70, 142, 78, 78, 142, 142); /* two bytes are no copy */
  gemmb_of("wgmma", 330, 152, 200, 208, 208, 152);
  gemmb_of("wgmma", 9, 9, 0, 16, 16, 16);
}
END_TEST

/* Two products of one left operand, in one loop. */
static void gemm2_of(const char *prefix, int m, int n, int k, int lda, int ldb, int ldd) {
  product p = along_k("gemm2.kir", prefix, (int[]){ m, n, k, lda, ldb, ldd }, 3, NVM_BF16, NVM_BF16, 0.5, NVM_BF16);
  p.in[2] = matrix_new(NVM_BF16, n, k, ldb, 0.5);
  p.tolerance = 0x1p-7;
  run_product(&p);
}
START_TEST(two) {
  gemm2_of("", 128, 128, 64, 64, 64, 128);
  gemm2_of("mma", 136, 104, 104, 112, 136, 112);
  gemm2_of("mma1", 70, 131, 77, 77, 79, 133);
  gemm2_of("wgmma", 136, 266, 200, 208, 216, 272);
  gemm2_of("wgmma", 9, 9, 0, 8, 8, 16);
}
END_TEST

/* A matrix that comes while the loop runs, a vector before it; two products of 64 rows in a warpgroup; turned. */
START_TEST(residual) {
  const int size[][6] = { { 256, 384, 128, 128, 128, 384 }, { 330, 202, 72, 72, 80, 208 }, { 40, 100, 0, 8, 8, 104 } };
  for (int i = 0; i < 3; i++) {
    const int *s = size[i];
    product p = along_k("gemmr.kir", "", s, 4, NVM_F16, NVM_F16, 0.5, NVM_F16);
    p.in[2] = matrix_new(NVM_F32, 1, s[0], s[0], 1);
    p.in[3] = matrix_new(NVM_F16, s[0], s[1], s[5], 1);
    p.tolerance = 0x1p-10;
    run_product(&p);
  }
}
END_TEST

/* A and B with k first; A is scaled by registers, so that B's copies alone run ahead. */
START_TEST(columns) {
  const int size[][6] = { { 128, 128, 96, 128, 128, 128 }, { 72, 136, 40, 80, 144, 140 } };
  for (int i = 0; i < 2; i++) {
    const int *s = size[i];
    product p = product_of("gemmt.kir", "mma", s, 3);
    p.in[0] = matrix_new(NVM_F16, s[2], s[0], s[3], 0.5);
    p.in[1] = matrix_new(NVM_F16, s[2], s[1], s[4], 0.5);
    p.in[2] = matrix_new(NVM_F32, 1, s[0], s[0], 1);
    p.out = (matrix){ NVM_F16, s[0], s[1], s[5], NULL };
    p.tolerance = 0x1p-10;
    run_product(&p);
  }
}
END_TEST
START_TEST(tf32) {
  const int size[][6] = { { 128, 128, 96, 96, 128, 128 }, { 70, 131, 45, 48, 132, 134 } };
  for (int i = 0; i < 2; i++) {
    const int *s = size[i];
    product p = product_of("gemm32.kir", "mma", s, 4);
    p.in[0] = matrix_new(NVM_F32, s[0], s[2], s[3], 0.5);
    p.in[1] = matrix_new(NVM_F32, s[2], s[1], s[4], 0.5);
    p.in[2] = matrix_new(NVM_F32, 1, s[0], s[0], 1);
    p.in[3] = matrix_new(NVM_F32, s[0], s[1], s[5], 1);
    p.out = (matrix){ NVM_F32, s[0], s[1], s[5], NULL };
    p.tolerance = 0x1p-9;
    run_product(&p);
  }
}
END_TEST

/* f64, the right operand either way: rows are aligned and not, ends of all kinds. */
static void gemm64_of(const char *prefix, int m, int n, int k, int lda, int ldb, int ldd) {
  for (int along = 0; along < 2; along++) {
    product p = product_of(along ? "gemm64t.kir" : "gemm64.kir", prefix, (int[]){ m, n, k, lda, ldb, ldd }, 4);
    p.in[0] = matrix_new(NVM_F64, m, k, lda, 0.5);
    p.in[1] = matrix_new(NVM_F64, along ? n : k, ldb, ldb, 0.5);
    p.in[2] = matrix_new(NVM_F64, 1, m, m, 1);
    p.in[3] = matrix_new(NVM_F64, m, n, ldd, 1);
    p.out = (matrix){ NVM_F64, m, n, ldd, NULL };
    p.tolerance = k * 0x1p-52;
    run_product(&p);
  }
}
START_TEST(doubles) {
  gemm64_of("", 128, 128, 48, 128, 128, 128);
  gemm64_of("mma", 70, 134, 44, 136, 136, 136);
  gemm64_of("mma1", 70, 131, 45, 133, 133, 133);
  gemm64_of("mma2", 33, 70, 7, 71, 71, 71);
}
END_TEST

int main(void) {
  if (!gate_emulator()) return 77;
  return RUN_SUITE("cuda mma", rows, unaligned, columns, tf32, groups, shared_out, eights, whole, bytes, doubles, two,
                   residual);
}
