/* Kernel texts as CUDA C++: machine code for every architecture without spills and with the registers that the work
   asks for; and what NVRTC's errors say. Bits: test_bits.c, in the emulator. */
#include <pthread.h>
#include "../gate.h"
#include "../../cuda_text.h"
#include "codegen/cuda/cuda.h"

/* Registers of a thread, and why as many: what NVRTC 13.0 takes, and no more than one step of the file that they come
   from above it. A kernel's other schedules may have the same. */
enum { TOLD = 4 };
static const int archs[] = { 90, 80, 100, 120, 89 }; /* the last one: products alone, with 8.0's registers */
static const struct budget {
  const char *file, *schedule;
  int registers[TOLD]; /* by archs; 0: refused there, for its clusters, warpgroups or shared memory */
  int word;            /* bytes that wait for the call of a slow path, stored and loaded; else nothing is spilled */
  const char *why;
} budgets[] = {
  { "across.kir", "gpuitems", { 160, 144, 176, 176 }, 0, "64 rows in a thread, their exponentials and quotients" },
  { "across.kir", "gpulanes", { 40, 40, 40, 40 }, 0, "four elements" },
  { "across.kir", "gpuwhole", { 104, 48, 48, 48 }, 8, "four columns, or 32 rows of one" },
  { "argmin.kir", "gpu", { 56, 48, 56, 56 }, 0, "32 elements are merged as they come, a state is three registers" },
  { "attention.kir", "gpu", { 72, 72, 64, 72 }, 8, "16 sums, 8 scores, one vector of each factor" },
  { "carried.kir", "gpu", { 64, 32, 32, 32 }, 0, "four elements of two tiles of f64" },
  { "columns.kir", "gpu", { 56, 40, 40, 48 }, 0, "four columns of two sums, and what is loaded ahead" },
  { "columns2.kir", "gpu", { 40, 32, 40, 40 }, 0, "four partials of two sums" },
  { "copies.kir", "gpu", { 80, 56, 72, 72 }, 0, "16 elements and the sums of their runs, 8 beside them" },
  { "draws.kir", "gpu", { 80, 80, 80, 80 }, 0, "the words of four counters, and their keys" },
  { "fftconv.kir", "gpulong", { 104, 104, 104, 104 }, 0, "32 complex items and half as many factors" },
  { "fftconv.kir", "gpu", { 72, 72, 64, 64 }, 0, "16 complex items" },
  { "gather.kir", "gpu", { 40, 40, 40, 40 }, 0, "four elements of four tiles" },
  { "gemm.kir", "gpu", { 88, 88, 88, 88 }, 0, "32 sums, 12 of the factors" },
  { "gemm16.kir", "gpu", { 104, 104, 136, 128 }, 0, "32 sums, 12 of the factors, four numbers of a bias" },
  { "gemm16.kir", "mma2", { 232, 240, 176, 176 }, 0, "64 sums, 32 elements on their way to shared memory" },
  { "gemm16.kir", "mmav1", { 128, 136, 136, 136 }, 0, "64 sums, fragments of 24 registers" },
  { "gemm16.kir", "mmav2", { 255, 255, 255, 0 }, 0, "128 sums, fragments of 32 registers" },
  { "gemm16.kir", "mma", { 128, 136, 136, 128 }, 0, "32 sums, 32 elements on their way to shared memory" },
  { "gemm16.kir", "wgmma", { 168, 0, 0, 0 }, 0, "what 384 threads have before they share it out; 128 sums" },
  { "gemm2.kir", "gpu", { 88, 80, 88, 88 }, 0, "two times 16 sums, 12 of the factors" },
  { "gemm2.kir", "mmav1", { 240, 240, 248, 224 }, 0, "two times 64 sums, fragments of 32 registers" },
  { "gemm2.kir", "mma", { 168, 176, 176, 176 }, 0, "two times 32 sums, 32 elements on their way to shared memory" },
  { "gemm2.kir", "wgmma", { 168, 0, 0, 0 }, 0, "what 384 threads have before they share it out; two times 64 sums" },
  { "gemm32.kir", "gpu", { 128, 136, 136, 120 }, 0, "32 sums, 32 numbers that are added, a rare path" },
  { "gemm32.kir", "mma", { 192, 136, 136, 120 }, 0, "64 sums, fragments of 24 registers" },
  { "gemm64.kir", "gpu", { 168, 152, 152, 152 }, 0, "32 sums of f64, 12 of the factors, 32 numbers that are added" },
  { "gemm64.kir", "mmav1", { 160, 160, 152, 160 }, 0, "32 sums of f64, 32 numbers that are added" },
  { "gemm64.kir", "mma", { 168, 168, 160, 160 }, 0, "32 sums of f64, fragments of 24 registers" },
  { "gemm64t.kir", "gpu", { 160, 160, 152, 152 }, 0, "32 sums of f64, 12 of the factors, 32 numbers that are added" },
  { "gemm64t.kir", "mmav1", { 160, 160, 152, 160 }, 0, "32 sums of f64, 32 numbers that are added" },
  { "gemm64t.kir", "mma", { 168, 160, 160, 160 }, 0, "32 sums of f64, fragments of 24 registers" },
  { "gemmb.kir", "gpu", { 112, 120, 128, 128 }, 0, "32 sums, 12 of the factors, 32 numbers that are added" },
  { "gemmb.kir", "mmav1", { 176, 176, 192, 192 }, 0, "64 sums, 64 numbers that are added, fragments" },
  { "gemmb.kir", "mmav2", { 48, 56, 56, 56 }, 0, "8 sums, fragments of 8 registers" },
  { "gemmb.kir", "mmav3", { 232, 232, 176, 176 }, 0, "32 sums, 32 numbers that are added, 64 elements on their way" },
  { "gemmb.kir", "mma1", { 128, 136, 136, 136 }, 0, "32 sums, 32 elements on their way to shared memory" },
  { "gemmb.kir", "mma2", { 128, 136, 136, 136 }, 0, "16 sums, 48 elements on their way to shared memory" },
  { "gemmb.kir", "wgmma3", { 72, 0, 0, 0 }, 0, "8 sums, fragments of 8 registers" },
  { "gemmb.kir", "wgmma4", { 152, 0, 0, 0 }, 0, "32 sums, 32 numbers that are added, fragments of a round" },
  { "gemmb.kir", "wgmma", { 168, 0, 0, 0 }, 0, "what 384 threads have before they share it out; 128 sums" },
  { "gemmbt.kir", "gpu", { 112, 120, 128, 128 }, 0, "32 sums, 12 of the factors, 32 numbers that are added" },
  { "gemmbt.kir", "mmav1", { 184, 184, 192, 192 }, 0, "64 sums, 64 numbers that are added, fragments" },
  { "gemmbt.kir", "mmav2", { 48, 48, 48, 48 }, 0, "8 sums, fragments of 8 registers" },
  { "gemmbt.kir", "mmav3", { 176, 176, 136, 136 }, 0, "32 sums, 32 numbers that are added, 64 elements on their way" },
  { "gemmbt.kir", "mma1", { 128, 136, 136, 128 }, 0, "32 sums, 32 elements on their way to shared memory" },
  { "gemmbt.kir", "mma2", { 128, 136, 136, 136 }, 0, "16 sums, 48 elements on their way to shared memory" },
  { "gemmbt.kir", "wgmma3", { 72, 0, 0, 0 }, 0, "8 sums, fragments of 8 registers" },
  { "gemmbt.kir", "wgmma4", { 152, 0, 0, 0 }, 0, "32 sums, 32 numbers that are added, fragments of a round" },
  { "gemmbt.kir", "wgmma", { 168, 0, 0, 0 }, 0, "what 384 threads have before they share it out; 128 sums" },
  { "gemmi.kir", "gpu", { 80, 80, 88, 88 }, 0, "32 sums, 12 of the factors" },
  { "gemmi.kir", "mmav1", { 128, 128, 104, 104 }, 0, "32 sums, fragments of 24 registers" },
  { "gemmi.kir", "mmav2", { 64, 72, 64, 72 }, 0, "8 sums, fragments of 12 registers" },
  { "gemmi.kir", "mma1", { 160, 192, 168, 160 }, 0, "32 sums, 64 elements on their way to shared memory" },
  { "gemmi.kir", "wgmma1", { 168, 0, 0, 0 }, 0, "what 384 threads have before they share it out; 128 sums" },
  { "gemmi.kir", "wgmma", { 80, 0, 0, 0 }, 0, "32 sums" },
  { "gemmk.kir", "gpu1", { 96, 0, 88, 88 }, 0, "32 sums, 12 of the factors" },
  { "gemmk.kir", "gpu2", { 168, 168, 168, 168 }, 0, "32 sums, 64 elements on their way to shared memory" },
  { "gemmk.kir", "mmav1", { 72, 0, 64, 64 }, 0, "16 sums, fragments of 12 registers, four numbers of four blocks" },
  { "gemmk.kir", "mma", { 128, 0, 136, 136 }, 0, "32 sums, 32 elements on their way to shared memory" },
  { "gemmk.kir", "wgmma", { 72, 0, 0, 0 }, 0, "32 sums, then four numbers of four blocks" },
  { "gemmr.kir", "gpu", { 112, 120, 128, 120 }, 0, "32 sums, 12 of the factors, 32 numbers that are added" },
  { "gemmr.kir", "wgmma2", { 248, 0, 0, 0 }, 0, "128 sums, 32 numbers that are added, twice while they come" },
  { "gemmr.kir", "wgmma", { 168, 0, 0, 0 }, 0, "64 sums of a thread, 16 numbers that are added" },
  { "gemmt.kir", "gpu", { 80, 72, 72, 80 }, 0, "32 sums, 12 of the factors" },
  { "gemmt.kir", "mma", { 136, 88, 88, 88 }, 0, "64 sums, fragments of 24 registers" },
  { "layernorm.kir", "gpu", { 40, 40, 40, 48 }, 0, "one column, four rows ahead" },
  { "middle.kir", "gpu", { 64, 64, 64, 64 }, 0, "32 items of two reductions" },
  { "moments.kir", "gpu", { 168, 88, 88, 88 }, 0, "four reductions of 64 bits side by side, 16 elements at once" },
  { "nearest.kir", "gpu", { 40, 40, 32, 40 }, 0, "eight distances with their places" },
  { "normals.kir", "gpu", { 64, 56, 72, 64 }, 0, "the words of four counters, and what a pair of f64 is made of" },
  { "once.kir", "gpu", { 40, 32, 32, 32 }, 0, "four parts of f64" },
  { "pieces.kir", "gpu", { 40, 24, 24, 24 }, 0, "four indices of 64 bits" },
  { "rows16.kir", "gpu", { 112, 64, 104, 104 }, 0, "64 elements, wider than they were read" },
  { "scan.kir", "gpu", { 88, 88, 64, 64 }, 0, "32 elements and the totals of two runs" },
  { "scatter1.kir", "gpu", { 24, 24, 24, 24 }, 0, "four indices" },
  { "scatter2.kir", "gpu", { 40, 32, 32, 32 }, 0, "four elements and their indices" },
  { "seed.kir", "gpu", { 56, 48, 48, 48 }, 0, "eight elements of three operands" },
  { "softmax.kir", "gpuodd0", { 72, 0, 80, 72 }, 0, "32 exponentials, which the blocks of a cluster share" },
  { "softmax.kir", "gpushort", { 64, 40, 40, 40 }, 0, "16 elements of two rows" },
  { "softmax.kir", "gpu", { 136, 72, 104, 104 }, 0, "32 or 64 exponentials" },
  { "spread.kir", "gpu", { 64, 56, 56, 56 }, 0, "two columns of four states, and a merge with three quotients" },
  { "stencil.kir", "gpu", { 40, 40, 40, 40 }, 0, "two points of nine loads" },
  { "sum.kir", "gpu", { 80, 56, 56, 56 }, 0, "32 loads in flight and the levels of the tree" },
  { "transform.kir", "gpubulk", { 80, 80, 80, 80 }, 0, "16 complex items, as many factors, half of a butterfly" },
  { "transform.kir", "gpu", { 64, 64, 64, 64 }, 0, "16 complex items and as many factors" },
  { "transform32.kir", "gpu", { 104, 96, 104, 104 }, 0, "32 complex items and half as many factors" },
  { "transpose.kir", "gpu", { 56, 40, 40, 40 }, 0, "16 elements on their way" },
  { "turn.kir", "gpu", { 128, 64, 64, 64 }, 0, "16 complex numbers of f64" },
};
enum { BUDGETS = sizeof budgets / sizeof *budgets };
enum { ARCHS = sizeof archs / sizeof *archs };

/* NVRTC compiles the first schedule of a budget for 9.0 and for one of the other architectures, in turn from budget to
   budget, so that each kind of kernel meets each; with the argument "all" for all of them. */
static int all_archs;
static int is_product(const char *file) { return strncmp(file, "gemm", 4) == 0; }
static int is_in_turn(const struct budget *b, int arch) {
  int others = is_product(b->file) ? ARCHS - 1 : TOLD - 1;
  return all_archs || arch == 0 || arch == 1 + (int)(b - budgets) % others;
}

static int most_registers(const struct budget *b, int arch) { return b->registers[arch < TOLD ? arch : 1]; }

/* The first budget whose schedule's name begins that of the schedule; those of a file stand together, long names
   first. */
static const struct budget *budget_of(const char *file, const char *name) {
  for (int i = 0; i < BUDGETS; i++)
    if (strcmp(budgets[i].file, file) == 0 && strncmp(name, budgets[i].schedule, strlen(budgets[i].schedule)) == 0)
      return &budgets[i];
  return NULL;
}

typedef struct job { const char *source, *file, *name; const struct budget *b; int arch, status; nvc_cubin code;
  char message[256];
} job; /* arch: of archs */
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

typedef struct request { nvc_cuda_kernel c; const nvf_kernel *k; const nvf_schedule *s; int arch; } request;
static void emit_one(nvb_arena *a, void *arg) {
  request *r = arg;
  nvc_cuda_emit(a, &r->c, r->k, r->s, &(nvc_cuda_target){ archs[r->arch], 0, 0 });
}

/* Every GPU schedule of a text; the first of each budget for all architectures, in whose turn it is compiled. */
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
    for (int t = 0; t < (first ? ARCHS : 1); t++) {
      request r = { .k = k, .s = k->sched[i], .arch = t };
      if (archs[t] == 89 && !is_product(w->file)) continue;
      int status = nvb_protect(a, emit_one, &r), can = t < TOLD ? most_registers(b, t) > 0 : !status;
      ck_assert_msg(status == (can ? NVM_OK : NVM_ERR_UNSUPPORTED), "%s: %s for %d: %s", w->file, k->sched_name[i],
                    archs[t], status ? nvb_message() : "it is not refused");
      if (status) continue;
      ck_waits_first(r.c.source);
      ck_is_short(r.c.source);
      int bulk = strcmp(k->sched_name[i], "gpubulk") == 0 && archs[t] >= 90;
      ck_assert_int_eq(strstr(r.c.source, "nv_prefetch_bulk(p_") != NULL, bulk);
      ck_assert_msg(r.c.scratch == 0 || r.c.flags, "%s: %s does not fit into shared memory", w->file, k->sched_name[i]);
      if (!is_in_turn(b, t)) continue;
      NVB_PUSH(a, w->all, ((job){ r.c.source, w->file, k->sched_name[i], b, t, 0, { 0 }, "" }));
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
    j->status = nvc_nvrtc_compile(&j->code, j->source, j->file, archs[j->arch]);
    if (j->status) snprintf(j->message, sizeof j->message, "%s", nvb_message());
    nvb_free(j->code.bytes);
  }
}

static void judge(const job *j) {
  int arch = archs[j->arch];
  ck_assert_msg(j->status == NVM_OK, "%s: %s for %d: %s", j->file, j->name, arch, j->message);
  ck_assert_msg(j->code.spills <= j->b->word, "%s: %s for %d spills %d bytes", j->file, j->name, arch, j->code.spills);
  ck_assert_msg(j->code.n > 0 && j->code.registers > 0, "%s: %s: no code", j->file, j->name);
  ck_assert_msg(j->code.registers <= most_registers(j->b, j->arch), "%s: %s for %d has %d registers, not at most %d",
                j->file, j->name, arch, j->code.registers, most_registers(j->b, j->arch));
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
  jobs w = { .a = nvb_arena_new(), .lock = PTHREAD_MUTEX_INITIALIZER };
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
START_TEST(machine_code_1) { compile_rows(0, BUDGETS / 4); }
END_TEST
START_TEST(machine_code_2) { compile_rows(BUDGETS / 4, BUDGETS / 2); }
END_TEST
START_TEST(machine_code_3) { compile_rows(BUDGETS / 2, 3 * BUDGETS / 4); }
END_TEST
START_TEST(machine_code_4) { compile_rows(3 * BUDGETS / 4, BUDGETS); }
END_TEST

START_TEST(errors_show_the_line) {
  nvc_cubin c;
  if (!nvrtc()) return;
  const char *source = "__device__ int one() { return 1; }\n\n"
                       "extern \"C\" __global__ void nvm_kernel(int *x) {\n  *x = two();\n}\n";
  ck_assert(nvc_nvrtc_compile(&c, source, "pair", 90) == NVM_ERR_INTERNAL);
  ck_assert(c.bytes == NULL && c.n == 0);
  static const char *const says[] = { "sm_90a", "two", "    4    *x = two();" };
  for (int i = 0; i < 3; i++) ck_assert_msg(strstr(nvb_message(), says[i]), "%s", nvb_message());
  ck_assert(nvc_nvrtc_compile(&c, "void", "none", 13) != NVM_OK);
}
END_TEST

START_TEST(keys) {
  static const nvc_cuda_target other[] = { { 80, 0, 0 }, { 90, 1, 0 } };
  nvb_hash x = nvb_hash_bytes("x", 1), y = nvb_hash_bytes("y", 1), a = nvc_cubin_key(x, &(nvc_cuda_target){ 90, 0, 0 });
  ck_assert(nvb_hash_eq(a, nvc_cubin_key(x, &(nvc_cuda_target){ 90, 0, 0 })));
  ck_assert(!nvb_hash_eq(a, nvc_cubin_key(y, &(nvc_cuda_target){ 90, 0, 0 })));
  for (int i = 0; i < 2; i++) ck_assert(!nvb_hash_eq(a, nvc_cubin_key(x, &other[i])));
}
END_TEST

int main(int argc, char **argv) {
  all_archs = argc > 1 && strcmp(argv[1], "all") == 0;
  return RUN_SUITE("cuda", machine_code_1, machine_code_2, machine_code_3, machine_code_4, errors_show_the_line, keys);
}
