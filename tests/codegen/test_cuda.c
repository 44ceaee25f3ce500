/* Kernel texts as CUDA C++: machine code for every architecture without spills and with the registers that the work
   asks for; and what NVRTC's errors say. Bits: test_cuda_bits.c, in the emulator. */
#include <pthread.h>
#include "gate.h"
#include "../cuda_text.h"
#include "codegen/cuda.h"

/* Registers of a thread on compute capability 9.0, and why as many. A kernel's other schedules may have the same. */
static const struct budget {
  const char *file, *schedule;
  int registers;
  const char *why;
  int everywhere; /* compiled for all architectures; 2: for those with clusters */
} budgets[] = {
    {"across.kir", "gpuitems", 208, "64 rows in a thread, their exponentials and quotients", 0},
    {"across.kir", "gpulanes", 56, "four elements", 0},
    {"across.kir", "gpuwhole", 104, "four columns, or 32 rows of one", 0},
    {"argmin.kir", "gpu", 56, "32 elements are merged as they come, a state is three registers", 1},
    {"attention.kir", "gpu", 104, "16 sums, 8 scores, one vector of each factor", 1},
    {"carried.kir", "gpu", 64, "four elements of two tiles of f64", 1},
    {"columns.kir", "gpu", 56, "four columns of two sums, and what is loaded ahead", 0},
    {"columns2.kir", "gpu", 40, "four partials of two sums", 0},
    {"copies.kir", "gpu", 80, "16 elements and the sums of their runs, 8 beside them", 0},
    {"fftconv.kir", "gpulong", 112, "32 complex items and half as many factors", 0},
    {"fftconv.kir", "gpu", 72, "16 complex items", 1},
    {"gather.kir", "gpu", 40, "four elements of four tiles", 0},
    {"gemm.kir", "gpu", 96, "32 sums, 12 of the factors", 0},
    {"gemm16.kir", "gpu", 104, "32 sums, 12 of the factors, four numbers of a bias", 0},
    {"gemm16.kir", "mma2", 232, "64 sums, 32 elements on their way to shared memory", 0},
    {"gemm16.kir", "mmav1", 128, "64 sums, fragments of 24 registers", 1},
    {"gemm16.kir", "mmav2", 255, "128 sums, fragments of 32 registers", 0},
    {"gemm16.kir", "mma", 128, "32 sums, 32 elements on their way to shared memory", 1},
    {"gemm16.kir", "wgmma", 168, "what 384 threads have before they share it out; 128 sums", 0},
    {"gemm2.kir", "gpu", 128, "two times 16 sums, 12 of the factors", 0},
    {"gemm2.kir", "mmav1", 255, "two times 64 sums, fragments of 32 registers", 1},
    {"gemm2.kir", "mma", 168, "two times 32 sums, 32 elements on their way to shared memory", 1},
    {"gemm2.kir", "wgmma", 168, "what 384 threads have before they share it out; two times 64 sums", 0},
    {"gemm32.kir", "gpu", 128, "32 sums, 32 numbers that are added, a rare path", 0},
    {"gemm32.kir", "mma", 200, "64 sums, fragments of 24 registers", 1},
    {"gemm64.kir", "gpu", 168, "32 sums of f64, 12 of the factors, 32 numbers that are added", 0},
    {"gemm64.kir", "mmav1", 200, "32 sums of f64, 32 numbers that are added", 1},
    {"gemm64.kir", "mma", 168, "32 sums of f64, fragments of 24 registers", 1},
    {"gemm64t.kir", "gpu", 168, "32 sums of f64, 12 of the factors, 32 numbers that are added", 0},
    {"gemm64t.kir", "mmav1", 200, "32 sums of f64, 32 numbers that are added", 1},
    {"gemm64t.kir", "mma", 168, "32 sums of f64, fragments of 24 registers", 1},
    {"gemmb.kir", "gpu", 112, "32 sums, 12 of the factors, 32 numbers that are added", 0},
    {"gemmb.kir", "mmav1", 184, "64 sums, 64 numbers that are added, fragments", 1},
    {"gemmb.kir", "mmav2", 48, "8 sums, fragments of 8 registers", 0},
    {"gemmb.kir", "mmav3", 232, "32 sums, 32 numbers that are added, 64 elements on their way", 0},
    {"gemmb.kir", "mma1", 128, "32 sums, 32 elements on their way to shared memory", 1},
    {"gemmb.kir", "mma2", 128, "16 sums, 48 elements on their way to shared memory", 0},
    {"gemmb.kir", "wgmma3", 72, "8 sums, fragments of 8 registers", 0},
    {"gemmb.kir", "wgmma4", 160, "32 sums, 32 numbers that are added, fragments of a round", 0},
    {"gemmb.kir", "wgmma", 168, "what 384 threads have before they share it out; 128 sums", 0},
    {"gemmbt.kir", "gpu", 112, "32 sums, 12 of the factors, 32 numbers that are added", 0},
    {"gemmbt.kir", "mmav1", 184, "64 sums, 64 numbers that are added, fragments", 1},
    {"gemmbt.kir", "mmav2", 48, "8 sums, fragments of 8 registers", 0},
    {"gemmbt.kir", "mmav3", 232, "32 sums, 32 numbers that are added, 64 elements on their way", 0},
    {"gemmbt.kir", "mma1", 128, "32 sums, 32 elements on their way to shared memory", 1},
    {"gemmbt.kir", "mma2", 128, "16 sums, 48 elements on their way to shared memory", 0},
    {"gemmbt.kir", "wgmma3", 72, "8 sums, fragments of 8 registers", 0},
    {"gemmbt.kir", "wgmma4", 160, "32 sums, 32 numbers that are added, fragments of a round", 0},
    {"gemmbt.kir", "wgmma", 168, "what 384 threads have before they share it out; 128 sums", 0},
    {"gemmi.kir", "gpu", 96, "32 sums, 12 of the factors", 1},
    {"gemmi.kir", "mmav1", 128, "32 sums, fragments of 24 registers", 1},
    {"gemmi.kir", "mmav2", 64, "8 sums, fragments of 12 registers", 1},
    {"gemmi.kir", "mma1", 168, "32 sums, 64 elements on their way to shared memory", 1},
    {"gemmi.kir", "wgmma1", 168, "what 384 threads have before they share it out; 128 sums", 0},
    {"gemmi.kir", "wgmma", 96, "32 sums", 0},
    {"gemmk.kir", "gpu1", 96, "32 sums, 12 of the factors", 2},
    {"gemmk.kir", "gpu2", 168, "32 sums, 64 elements on their way to shared memory", 1},
    {"gemmk.kir", "mmav1", 72, "16 sums, fragments of 12 registers, four numbers of four blocks", 2},
    {"gemmk.kir", "mma", 128, "32 sums, 32 elements on their way to shared memory", 2},
    {"gemmk.kir", "wgmma", 72, "32 sums, then four numbers of four blocks", 0},
    {"gemmr.kir", "gpu", 112, "32 sums, 12 of the factors, 32 numbers that are added", 0},
    {"gemmr.kir", "wgmma2", 248, "128 sums, 32 numbers that are added, twice while they come", 0},
    {"gemmr.kir", "wgmma", 168, "64 sums of a thread, 16 numbers that are added", 0},
    {"gemmt.kir", "gpu", 96, "32 sums, 12 of the factors", 0},
    {"gemmt.kir", "mma", 200, "64 sums, fragments of 24 registers", 1},
    {"layernorm.kir", "gpu", 40, "one column, four rows ahead", 0},
    {"middle.kir", "gpu", 72, "32 items of two reductions", 0},
    {"moments.kir", "gpu", 168, "four reductions of 64 bits side by side, 16 elements at once", 1},
    {"nearest.kir", "gpu", 40, "eight distances with their places", 0},
    {"once.kir", "gpu", 40, "four parts of f64", 0},
    {"pieces.kir", "gpu", 40, "four indices of 64 bits", 0},
    {"rows16.kir", "gpu", 136, "64 elements, wider than they were read", 0},
    {"scan.kir", "gpu", 96, "32 elements and the totals of two runs", 1},
    {"scatter1.kir", "gpu", 24, "four indices", 0},
    {"scatter2.kir", "gpu", 40, "four elements and their indices", 0},
    {"seed.kir", "gpu", 56, "eight elements of three operands", 1},
    {"softmax.kir", "gpuodd0", 96, "32 exponentials, which the blocks of a cluster share", 2},
    {"softmax.kir", "gpushort", 80, "16 elements of two rows", 0},
    {"softmax.kir", "gpu", 136, "32 or 64 exponentials", 1},
    {"spread.kir", "gpu", 64, "two columns of four states, and a merge with three quotients", 1},
    {"stencil.kir", "gpu", 40, "two points of nine loads", 0},
    {"sum.kir", "gpu", 80, "32 loads in flight and the levels of the tree", 0},
    {"transpose.kir", "gpu", 56, "16 elements on their way", 0},
    {"turn.kir", "gpu", 128, "16 complex numbers of f64", 1},
};
enum { BUDGETS = sizeof budgets / sizeof *budgets };
#ifdef __SANITIZE_ADDRESS__ /* which looks at the emitter, not at NVRTC */
enum { ARCHS = 1 };
#else
enum { ARCHS = 5 };
#endif
static const int archs[] = {90, 80, 100, 120, 89}; /* the last one: products alone */

/* The first budget whose schedule's name begins that of the schedule; those of a file stand together, long names
   first. */
static const struct budget *budget_of(const char *file, const char *name) {
  for (int i = 0; i < BUDGETS; i++)
    if (strcmp(budgets[i].file, file) == 0 && strncmp(name, budgets[i].schedule, strlen(budgets[i].schedule)) == 0)
      return &budgets[i];
  return NULL;
}

typedef struct job { const char *source, *file, *name; int arch, status, most; nvc_cubin code;
                     char message[256]; } job;
typedef struct jobs {
  nvb_arena *a;
  const char *file;
  char *text;
  NVB_VEC(job) all;
  int next;
  pthread_mutex_t lock;
} jobs;

static int for_gpus(const char *schedule) {
  return strncmp(schedule, "gpu", 3) == 0 || strncmp(schedule, "mma", 3) == 0 || strncmp(schedule, "wgmma", 5) == 0;
}

/* A source has no function of the prelude that it does not call. */
static void ck_is_short(const char *source) {
  for (const char *at = source; (at = strstr(at, "\nNV ")); at++) {
    const char *from = strstr(at, "nv_");
    char name[64] = "";
    size_t n = strspn(from, "abcdefghijklmnopqrstuvwxyz0123456789_");
    memcpy(name, from, n);
    int uses = 0;
    for (const char *use = source; (use = strstr(use, name)); use += n) uses++;
    ck_assert_msg(uses > 1, "%s is not called", name);
  }
}

/* Every GPU schedule of a text; the first of some budgets for all architectures. */
static void emit_all(nvb_arena *a, void *arg) {
  jobs *w = arg;
  nvf_kernel *k = nvf_kernel_parse(a, w->text, w->file);
  const struct budget *before = NULL;
  for (int i = 0; i < k->nsched; i++) {
    if (!for_gpus(k->sched_name[i])) continue;
    const struct budget *b = budget_of(w->file, k->sched_name[i]);
    int first = b != before;
    before = b;
    ck_assert_msg(b != NULL, "%s: no budget for %s", w->file, k->sched_name[i]);
    for (int t = 0; t < (first && b->everywhere ? ARCHS : 1); t++) {
      nvc_cuda_kernel c;
      if ((b->everywhere == 2 && archs[t] < 90) || (archs[t] == 89 && strncmp(w->file, "gemm", 4) != 0)) continue;
      nvc_cuda_emit(a, &c, k, k->sched[i], &(nvc_cuda_target){archs[t], 0, 0});
      ck_waits_first(c.source);
      ck_is_short(c.source);
      ck_assert_msg(c.scratch == 0 || c.posts, "%s: %s does not fit into shared memory", w->file, k->sched_name[i]);
      NVB_PUSH(a, w->all, ((job){c.source, w->file, k->sched_name[i], archs[t], 0, b->registers, {0}, ""}));
    }
  }
  ck_assert_msg(w->all.n > 0, "%s has no schedule for GPUs", w->file);
}

static void *compile(void *arg) {
  jobs *w = arg;
  for (;;) {
    pthread_mutex_lock(&w->lock);
    job *j = w->next < w->all.n ? &w->all.at[w->next++] : NULL;
    pthread_mutex_unlock(&w->lock);
    if (!j) return NULL;
    j->status = nvc_nvrtc_compile(&j->code, j->source, j->file, j->arch);
    if (j->status) snprintf(j->message, sizeof j->message, "%s", nvb_message());
    nvb_free(j->code.bytes);
  }
}

static void judge(const job *j) {
  ck_assert_msg(j->status == NVM_OK, "%s: %s for %d: %s", j->file, j->name, j->arch, j->message);
  int word = strcmp(j->file, "attention.kir") ? 0 : 8; /* waits for the call of a rare path, and is stored and loaded */
  ck_assert_msg(j->code.spills <= word, "%s: %s for %d spills %d bytes", j->file, j->name, j->arch, j->code.spills);
  ck_assert_msg(j->code.n > 0 && j->code.registers > 0, "%s: %s: no code", j->file, j->name);
  if (j->arch == archs[0])
    ck_assert_msg(j->code.registers <= j->most, "%s: %s has %d registers, not at most %d", j->file, j->name,
                  j->code.registers, j->most);
}

static int nvrtc(void) {
  if (nvc_nvrtc_available()) return 1;
  printf("skipped: %s\n", nvb_message());
  return 0;
}

/* Two threads compile the schedules of budgets [from, to). */
static void compile_rows(int from, int to) {
  if (!nvrtc()) return;
  int64_t before = nvc_cuda_compiled();
  jobs w = {.a = nvb_arena_new(), .lock = PTHREAD_MUTEX_INITIALIZER};
  pthread_t second;
  while (to < BUDGETS && strcmp(budgets[to].file, budgets[to - 1].file) == 0) to++;
  for (int i = from; i < to; i++) {
    if (i && strcmp(budgets[i].file, budgets[i - 1].file) == 0) continue;
    w.file = budgets[i].file;
    w.text = gate_text(w.file);
    ck_assert_msg(nvb_protect(w.a, emit_all, &w) == NVM_OK, "%s", nvb_message());
    free(w.text);
  }
  ck_assert(pthread_create(&second, NULL, compile, &w) == 0);
  compile(&w);
  pthread_join(second, NULL);
  for (int i = 0; i < w.all.n; i++) judge(&w.all.at[i]);
  ck_assert_int_eq(nvc_cuda_compiled() - before, w.all.n);
  nvb_arena_free(w.a);
}
START_TEST(machine_code_1) { compile_rows(0, BUDGETS / 4); } END_TEST
START_TEST(machine_code_2) { compile_rows(BUDGETS / 4, BUDGETS / 2); } END_TEST
START_TEST(machine_code_3) { compile_rows(BUDGETS / 2, 3 * BUDGETS / 4); } END_TEST
START_TEST(machine_code_4) { compile_rows(3 * BUDGETS / 4, BUDGETS); } END_TEST

START_TEST(errors_show_the_line) {
  nvc_cubin c;
  if (!nvrtc()) return;
  const char *source = "__device__ int one() { return 1; }\n\n"
                       "extern \"C\" __global__ void nvm_kernel(int *x) {\n  *x = two();\n}\n";
  ck_assert(nvc_nvrtc_compile(&c, source, "pair", 90) == NVM_ERR_INTERNAL);
  ck_assert(c.bytes == NULL && c.n == 0);
  static const char *const says[] = {"sm_90a", "two", "    4    *x = two();"};
  for (int i = 0; i < 3; i++) ck_assert_msg(strstr(nvb_message(), says[i]), "%s", nvb_message());
  ck_assert(nvc_nvrtc_compile(&c, "void", "none", 13) != NVM_OK);
}
END_TEST

START_TEST(resources_are_read) {
  nvc_cubin c;
  if (!nvrtc()) return;
  const char *source = "extern \"C\" __global__ void __launch_bounds__(1024, 2) nvm_kernel(float *x, int n) {\n"
                       "  float v[64], s = 0;\n  for (int k = 0; k < 64; k++) v[k] = x[threadIdx.x + k * n];\n"
                       "  __syncthreads();\n"
                       "  for (int k = 0; k < 64; k++)\n    for (int j = 0; j < k; j++) s += v[k] * v[j];\n"
                       "  x[threadIdx.x] = s;\n}\n";
  ck_assert_msg(nvc_nvrtc_compile(&c, source, "many", 90) == NVM_OK, "%s", nvb_message());
  ck_assert_int_eq(c.registers, 32); /* of 65,536, two blocks of 1,024 */
  ck_assert_int_gt(c.spills, 0);
  ck_assert_int_gt(c.stack, 0);
  nvb_free(c.bytes);
}
END_TEST

START_TEST(keys) {
  static const nvc_cuda_target other[] = { { 80, 0, 0 }, { 90, 1, 0 } };
  nvb_hash x = nvb_hash_bytes("x", 1), y = nvb_hash_bytes("y", 1), a = nvc_cubin_key(x, &(nvc_cuda_target){ 90, 0, 0 });
  ck_assert(nvb_hash_eq(a, nvc_cubin_key(x, &(nvc_cuda_target){ 90, 0, 0 })));
  ck_assert(!nvb_hash_eq(a, nvc_cubin_key(y, &(nvc_cuda_target){ 90, 0, 0 })));
  for (int i = 0; i < 2; i++)
    ck_assert(!nvb_hash_eq(a, nvc_cubin_key(x, &other[i])));
}
END_TEST

SUITE("cuda", machine_code_1, machine_code_2, machine_code_3, machine_code_4, errors_show_the_line, resources_are_read,
      keys)
