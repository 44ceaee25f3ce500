/* Devices without a GPU: what is said where there is none; and through the emulator of tests/emu, which runs work
   only when it is waited for and keeps device memory closed to the host: memory, streams, copies, programs, replays,
   captures, failures. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../emu/emu.h"
#include "../../folder.h"
#include "../../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "base/store.h"
#include "codegen/cuda/cuda.h"
#include "dispatch/cuda/device.h"
#include "runtime.h"

/* ---- plans by hand, as in tests/dispatch/test_program.c */
enum { BLOCK = 1024, N = 3000 };
#define TEXT_AT(layout, name, body, params) \
  "kernel " name "(" params ", n: size) {\n  grid (b = (n + 1023) // 1024) {\n" body "  }\n}\n" \
  "schedule cpu { L = \"" layout "\" }\n"
#define TEXT(name, body, params) TEXT_AT("j: i4 w8 l32", name, body, params)
#define SCALED \
  "    X = load(x, b*1024 + j, L, where = b*1024 + j < n)\n    Y = map(multiply, X, a)\n" \
  "    store(y, b*1024 + j, Y, where = b*1024 + j < n)\n"
static const char scale_text[] = TEXT("scale", SCALED, "x: f32[], y: mut f32[], a: f32");
static const char narrow_text[] = TEXT_AT("j: i8 w4 l32", "scale", SCALED, "x: f32[], y: mut f32[], a: f32");
static const char shift_text[] = TEXT("scale",
                                      "    X = load(x, b*1024 + j, L, where = b*1024 + j < n)\n    Y = map(add, X, a)\n"
                                      "    store(y, b*1024 + j, Y, where = b*1024 + j < n)\n",
                                      "x: f32[], y: mut f32[], a: f32");
static const char sum_text[] = TEXT(
    "sum2",
    "    X = load(x, b*1024 + j, L, where = b*1024 + j < n)\n    T = load(t, b*1024 + j, L, where = b*1024 + j < n)\n"
    "    Y = map(add, X, T)\n    store(y, b*1024 + j, Y, where = b*1024 + j < n)\n",
    "x: f32[], t: f32[], y: mut f32[]");
static const char pick_text[] =
    TEXT("pick",
         "    I = load(at, b*1024 + j, L, where = b*1024 + j < n)\n    check(I >= 0 & I < m, L)\n"
         "    X = load(x, I, L, where = b*1024 + j < n)\n    store(y, b*1024 + j, X, where = b*1024 + j < n)\n",
         "x: f32[], at: i64[], y: mut f32[], m: size");

/* x x^T of SIDE rows and columns, whose blocks divide the k-tiles of all tiles (stream-K) */
enum { SIDE = 128 };
static const char meet_text[] =
    "kernel meet(x: f32[], y: mut f32[], n: size) {\n  grid (bi = (n + 63) // 64, bj = (n + 63) // 64) {\n"
    "    Z = zeros(f32, LZ)\n    for t in range(0, n, 32) carry (S = Z) {\n"
    "      A = load(x, (bi*64 + i)*n + (t + k), LA, where = bi*64 + i < n & t + k < n)\n"
    "      B = load(x, (bj*64 + j)*n + (t + k), LB, where = bj*64 + j < n & t + k < n)\n"
    "      As = put(A, [i, k])\n      Bs = put(B, [j, k])\n      S = contract(S, As, Bs, k)\n    }\n"
    "    store(y, (bi*64 + i)*n + (bj*64 + j), Z, where = bi*64 + i < n & bj*64 + j < n)\n  }\n}\n"
    "schedule cpu { LZ = \"i: w4 i2 l8; j: i8 l4 i2\"; LA = \"i: i4 w4 l4; k: l8 i4\"; LB = \"j: i4 w4 l4; k: l8 i4\"\n"
    "  hint 1 stages = 2; hint 1 warp_specialize = 1; hint 1 stream_k = 1; hint 6 mma = 2 }\n";

static nvf_bind buffer(int buf) { return (nvf_bind){ .kind = NVF_BUFFER, .buf = buf }; }
static nvf_bind size_of(int64_t n) { return (nvf_bind){ .kind = NVF_SIZE, .bits = (uint64_t)n }; }
static nvf_bind scalar(float x) {
  nvf_bind b = { .kind = NVF_SCALAR };
  memcpy(&b.bits, &x, sizeof x);
  return b;
}
static nvf_step step(nvb_arena *a, const char *text, const char *hero, int64_t n, const nvf_bind *bind) {
  nvf_step s = { .hero = hero, .what = "made by hand", .blocks = (n + BLOCK - 1) / BLOCK, .grain = 4 };
  s.k = nvf_kernel_parse(a, text, "test");
  s.s = nvf_schedule_find(s.k, "cpu");
  s.bind = nvb_dup(a, bind, sizeof *bind * (size_t)s.k->nparam);
  return s;
}
typedef struct request { int64_t n, m; nvf_plan *plan; } request;
static nvf_plan *plan_new(nvb_arena *a, request *r, int nstep, int nbuf) {
  nvf_plan *p = r->plan = NVB_NEW(a, nvf_plan);
  p->arena = a;
  p->nstep = nstep, p->nbuf = nbuf;
  p->step = NVB_NEWN(a, nvf_step, nstep);
  p->buf = NVB_NEWN(a, nvf_buf, nbuf);
  return p;
}
static nvf_buf leaf_buf(int id) { return (nvf_buf){ .kind = NVF_BLEAF, .id = id, .donor = -1 }; }

static void steps_with(nvb_arena *a, request *r, const char *first) {
  nvf_plan *p = plan_new(a, r, 2, 3);
  p->buf[0] = leaf_buf(0);
  p->buf[1] = (nvf_buf){ .kind = NVF_BTEMP, .bytes = 4 * r->n, .offset = 64, .last = 1, .donor = -1 };
  p->buf[2] = (nvf_buf){ .kind = NVF_BOUT, .bytes = 4 * r->n, .donor = -1 };
  p->temp_bytes = 64 + 4 * r->n;
  p->step[0] = step(a, first, "map", r->n, (nvf_bind[]){ buffer(0), buffer(1), scalar(2), size_of(r->n) });
  p->step[1] = step(a, sum_text, "map", r->n, (nvf_bind[]){ buffer(0), buffer(1), buffer(2), size_of(r->n) });
}
/* y = x + 2 x, the product in a temporary 64 bytes into the block */
static void two_steps(nvb_arena *a, void *arg) { steps_with(a, arg, scale_text); }
static void two_sums(nvb_arena *a, void *arg) { steps_with(a, arg, shift_text); }    /* x + (x + 2) */
static void two_narrow(nvb_arena *a, void *arg) { steps_with(a, arg, narrow_text); } /* as two_steps, 128 threads */
/* y = leaf 1 (in host memory) times leaf 0 */
static void given(nvb_arena *a, void *arg) {
  request *r = arg;
  nvf_plan *p = plan_new(a, r, 1, 2);
  p->buf[0] = leaf_buf(0);
  p->buf[1] = (nvf_buf){ .kind = NVF_BOUT, .bytes = 4 * r->n, .donor = -1 };
  p->step[0] = step(a, scale_text, "map", r->n,
                    (nvf_bind[]){ buffer(0), buffer(1), { .kind = NVF_SCALAR, .leaf = 2 }, size_of(r->n) });
}
static void long_scale(nvb_arena *a, void *arg) { /* y = 2 leaf 0, in 20 us, as the plan says */
  given(a, arg);
  nvf_step *s = &((request *)arg)->plan->step[0];
  s->bind[2] = scalar(2);
  s->time = 20000;
}
static void two_steps_in(nvb_arena *a, void *arg, double first, double second) {
  two_steps(a, arg);
  nvf_step *s = ((request *)arg)->plan->step;
  s[0].time = first, s[1].time = second;
}
static void long_and_short(nvb_arena *a, void *arg) { two_steps_in(a, arg, 20000, 1000); }
static void two_short(nvb_arena *a, void *arg) { two_steps_in(a, arg, 9000, 1000); }
static void meet(nvb_arena *a, void *arg) {
  request *r = arg;
  nvf_plan *p = plan_new(a, r, 1, 2);
  p->buf[0] = leaf_buf(0);
  p->buf[1] = (nvf_buf){ .kind = NVF_BOUT, .bytes = 4 * r->n, .donor = -1 };
  p->step[0] = step(a, meet_text, "product", r->n, (nvf_bind[]){ buffer(0), buffer(1), size_of(SIDE) });
  p->step[0].blocks = SIDE / 64 * (SIDE / 64);
}
static void gather(nvb_arena *a, void *arg) {
  request *r = arg;
  nvf_plan *p = plan_new(a, r, 1, 3);
  p->buf[0] = leaf_buf(0);
  p->buf[1] = leaf_buf(1);
  p->buf[2] = (nvf_buf){ .kind = NVF_BOUT, .bytes = 4 * r->n, .donor = -1 };
  p->step[0] =
      step(a, pick_text, "gather", r->n, (nvf_bind[]){ buffer(0), buffer(1), buffer(2), size_of(r->m), size_of(r->n) });
}

static void crowded(nvb_arena *a, void *arg) { /* four of its blocks are to fit into a unit */
  given(a, arg);
  nvf_step *s = &((request *)arg)->plan->step[0];
  nvf_add_hint(s->k, s->s, 0, NVF_HINT_MIN_BLOCKS, 4);
}

/* one thread's worth of 1,024 elements */
static void unrolled(nvb_arena *a, void *arg) {
  given(a, arg);
  nvf_step *s = &((request *)arg)->plan->step[0];
  s->k = nvf_kernel_parse(
      a,
      "kernel long(x: f32[], y: mut f32[], a: f32, n: size) {\n  grid (b = (n + 1023) // 1024) {\n"
      "    X = load(x, b*1024 + j, L, where = b*1024 + j < n)\n    Y = map(multiply, X, a)\n"
      "    store(y, b*1024 + j, Y, where = b*1024 + j < n)\n  }\n}\nschedule cpu { L = \"j: i1024\" }\n",
      "test");
  s->s = nvf_schedule_find(s->k, "cpu");
}

static int prepare(nvd_program **out, nvd_device *d, void (*make)(nvb_arena *, void *), int64_t n, int64_t m,
                   nvd_terms *terms) {
  *out = NULL;
  nvb_arena *a = nvb_arena_new();
  if (!a) return nvb_fail_memory();
  request r = { n, m, NULL };
  int status = nvb_protect(a, make, &r);
  if (!status) status = nvd_prepare(out, r.plan, d, NULL, terms);
  nvb_arena_free(a);
  return status;
}

/* ---- a device of the emulator */

static nvd_device *emulated(int ordinal) {
  nvd_device *d = NULL;
  const char *dir = getenv("NVM_EMU_DIR");
  ck_assert_msg(dir != NULL, "NVM_EMU_DIR names no folder");
  OK(nvb_set("cuda_dir", dir));
  OK(nvd_device_get(&d, ordinal));
  return d;
}
static nvd_program *program(nvd_device *d, void (*make)(nvb_arena *, void *), int64_t n, int64_t m) {
  nvd_program *p;
  OK(prepare(&p, d, make, n, m, NULL));
  return p;
}
static nvd_buf *upload(nvd_device *d, const void *data, size_t bytes) {
  nvd_buf *b = nvd_buf_new_on(d, bytes);
  ck_assert_msg(b != NULL, "%s", nvb_message());
  OK(nvd_upload(b, 0, data, bytes));
  return b;
}
static nvd_buf *ramp(nvd_device *d, int64_t n) { /* 1, 2, 3, ... */
  float *x = malloc(sizeof *x * (size_t)n);
  for (int64_t i = 0; i < n; i++) x[i] = (float)(i + 1);
  nvd_buf *b = upload(d, x, 4 * (size_t)n);
  memset(x, 0xff, 4 * (size_t)n); /* what was uploaded has been taken */
  free(x);
  return b;
}
static nvd_operand on(nvd_buf *b) { return (nvd_operand){ b, b->data }; }
static nvd_buf *run1(nvd_program *p, nvd_device *d, nvd_buf *x, int64_t n) {
  nvd_buf *y = nvd_buf_new_on(d, 4 * (size_t)n);
  ck_assert_msg(y != NULL, "%s", nvb_message());
  OK(nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) }));
  return y;
}
static void ck_ramp(nvd_buf *b, int64_t n, float by) {
  float *y = malloc(sizeof *y * (size_t)n);
  OK(nvd_download(y, b, 0, 4 * (size_t)n));
  for (int64_t i = 0; i < n; i++)
    ck_assert_msg(y[i] == by * (float)(i + 1), "element %lld is %g", (long long)i, (double)y[i]);
  free(y);
}
static int64_t used(nvd_device *d) {
  nvd_device_memory m;
  OK(nvd_device_memory_get(&m, d));
  return m.used;
}

/* ---- no GPU */
START_TEST(nothing_is_looked_for) {
  nvd_device *d;
  OK(nvb_set("cuda_dir", "off"));
  ck_assert_int_eq(nvd_device_count(), 0);
  ck_assert_msg(strstr(nvb_message(), "NVM_CUDA_DIR"), "%s", nvb_message());
  ck_assert_int_eq(nvd_device_get(&d, 0), NVM_ERR_UNSUPPORTED);
  ck_assert(!d && strstr(nvb_message(), "NVM_CUDA_DIR"));
  ck_assert(strstr(nvd_device_line(0), "NVM_CUDA_DIR"));
}
END_TEST

START_TEST(too_old) {
  emu_fail("cudaGetDeviceCount", 0, 100);
  nvb_set("cuda_dir", getenv("NVM_EMU_DIR"));
  ck_assert_int_eq(nvd_device_count(), 0);
  ck_assert_msg(strstr(nvb_message(), "no CUDA-capable device") && strstr(nvb_message(), "13.0"), "%s", nvb_message());
  nvd_device *d;
  ck_assert_int_eq(nvd_device_get(&d, 0), NVM_ERR_UNSUPPORTED); /* the same again */
  ck_assert(strstr(nvb_message(), "no CUDA-capable device"));
}
END_TEST

/* Found out without a context, and without a start of the device. */
START_TEST(the_first_that_can_be_used) {
  nvd_device *d;
  setenv("NVM_EMU_DEVICES", "4", 1);
  setenv("NVM_EMU_ARCH", "75,130,90,80", 1);
  nvb_set("cuda_dir", getenv("NVM_EMU_DIR"));
  ck_assert_int_eq(nvd_device_count(), 4);
  ck_assert_int_eq(nvd_device_first(), 2);
  ck_assert_int_eq(nvd_device_usable(0), NVM_ERR_UNSUPPORTED);
  ck_assert_msg(strstr(nvb_message(), "[cuda:0] compute capability 7.5"), "%s", nvb_message());
  ck_assert_int_eq(nvd_device_usable(1), NVM_ERR_UNSUPPORTED);
  ck_assert_msg(strstr(nvb_message(), "NVRTC 13.0 does not know compute capability 13.0"), "%s", nvb_message());
  OK(nvd_device_usable(3));
  ck_assert_int_eq(nvd_device_usable(4), NVM_ERR_DEVICE);
  ck_assert_int_eq(emu_calls("cuDevicePrimaryCtxRetain") + emu_calls("cudaMemPoolCreate"), 0);
  ck_assert_int_eq(nvd_device_get(&d, 0), NVM_ERR_UNSUPPORTED);
  ck_assert_msg(!d && strstr(nvd_device_line(0), "7.5"), "%s", nvd_device_line(0));
  OK(nvd_device_get(&d, 3));
  ck_assert_int_eq(nvd_device_ordinal(d), 3);
  ck_assert_msg(strstr(nvd_device_line(3), "8.0"), "%s", nvd_device_line(3));
}
END_TEST

START_TEST(none_that_can_be_used) {
  nvd_device *d;
  setenv("NVM_EMU_ARCH", "70", 1);
  nvb_set("cuda_dir", getenv("NVM_EMU_DIR"));
  ck_assert_int_eq(nvd_device_first(), -1);
  ck_assert_msg(strstr(nvb_message(), "7.0; 8.0 is needed"), "%s", nvb_message());
  ck_assert_int_eq(nvd_device_get(&d, 0), NVM_ERR_UNSUPPORTED);
}
END_TEST

/* CUDA is there, and an NVRTC that is not one. */
START_TEST(nothing_that_compiles) {
  static const char *const name[][2] = { { "libcudart.so.13", "libcudart.so.13" },
                                         { "libcuda.so.1", "libcuda.so.1" },
                                         { "libcuda.so.1", "libnvrtc.so.13" } };
  char dir[] = "/tmp/nvm-test-XXXXXX", from[600], to[600];
  nvd_device *d;
  ck_assert_ptr_nonnull(mkdtemp(dir));
  for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
    snprintf(from, sizeof from, "%s/%s", getenv("NVM_EMU_DIR"), name[i][0]);
    snprintf(to, sizeof to, "%s/%s", dir, name[i][1]);
    ck_assert_int_eq(symlink(from, to), 0);
  }
  nvb_set("cuda_dir", dir);
  ck_assert_int_eq(nvd_device_first(), -1);
  ck_assert_msg(strstr(nvb_message(), "NVRTC is too old: it has no nvrtcVersion"), "%s", nvb_message());
  ck_assert_int_eq(nvd_device_get(&d, 0), NVM_ERR_UNSUPPORTED);
  sweep_folder(dir);
}
END_TEST

START_TEST(wrong_ordinal) {
  emulated(0);
  nvd_device *d;
  ck_assert_int_eq(nvd_device_get(&d, 1), NVM_ERR_DEVICE);
  ck_assert_msg(strstr(nvb_message(), "cuda:1") && strstr(nvb_message(), "there is 1"), "%s", nvb_message());
  ck_assert_int_eq(nvd_device_get(&d, -1), NVM_ERR_DEVICE);
}
END_TEST

START_TEST(facts) {
  nvd_device *d = emulated(0);
  const nvb_caps *c = nvd_device_caps(d);
  ck_assert_str_eq(c->name, "h200");
  ck_assert_int_eq(c->cores, 132);
  ck_assert(c->kind == NVB_CUDA && c->l2 == 60 << 20 && c->bandwidth == nvb_caps_find("h200")->bandwidth);
  ck_assert_msg(strstr(nvd_device_line(0), "NVIDIA H200") && strstr(nvd_device_line(0), "9.0"), "%s",
                nvd_device_line(0));
  nvb_caps a30 = nvb_caps_gpu("NVIDIA A30", 80, 56);
  ck_assert_str_eq(a30.name, "a100");
  ck_assert(a30.cores == 56 && a30.bandwidth < nvb_caps_find("a100")->bandwidth);
  ck_assert_str_eq(nvb_caps_gpu("NVIDIA GH200 480GB", 90, 132).name, "h200");
  ck_assert_str_eq(nvb_caps_gpu("NVIDIA H100 PCIe", 90, 114).name, "h100");
  ck_assert_str_eq(nvb_caps_gpu("NVIDIA RTX A6000", 86, 84).name, "rtx4090");
  ck_assert_str_eq(nvb_caps_gpu("NVIDIA B300", 103, 148).name, "b200");
}
END_TEST

/* ---- memory */
START_TEST(freed_memory_is_had_again) {
  nvd_device *d = emulated(0);
  static const size_t sizes[] = { 0, 1, 512, 4000, 100000, (33 << 20) + 5 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    nvd_buf *b = nvd_buf_new_on(d, sizes[i]);
    ck_assert(b && b->device == d && b->bytes == sizes[i] && b->cap >= sizes[i] && (uintptr_t)b->data % 256 == 0);
    ck_assert(b->cap <= sizes[i] + sizes[i] / 8 + 512);
    char *data = b->data;
    nvd_buf_unref(b);
    int64_t calls = emu_calls("*");
    for (int k = 0; k < 100; k++) {
      ck_assert((b = nvd_buf_new_on(d, sizes[i])) && b->data == data);
      nvd_buf_unref(b);
    }
    ck_assert_int_eq(emu_calls("*"), calls);
  }
  ck_assert_int_eq(used(d), 0);
}
END_TEST

START_TEST(memory_is_counted) {
  nvd_device *d = emulated(0);
  nvd_device_memory m;
  nvd_buf *a = nvd_buf_new_on(d, 1 << 20), *b = nvd_buf_new_on(d, 3 << 20);
  nvd_buf_unref(a);
  OK(nvd_device_memory_get(&m, d));
  ck_assert(m.used == 3 << 20 && m.peak == 4 << 20 && m.reserved >= 4 << 20 && m.total > 1 << 30 && !m.limit);
  nvd_device_memory_reset_peak(d);
  OK(nvd_device_memory_limit(d, 6 << 20));
  ck_assert(!nvd_buf_new_on(d, 4 << 20));
  ck_assert_int_eq(nvb_status(), NVM_ERR_MEMORY);
  ck_assert_msg(strstr(nvb_message(), "4194304") && strstr(nvb_message(), "3145728") &&
                    strstr(nvb_message(), "6291456"),
                "%s", nvb_message());
  nvd_buf *c = nvd_buf_new_on(d, 3 << 20); /* what is kept gives way */
  ck_assert_msg(c != NULL, "%s", nvb_message());
  OK(nvd_device_memory_get(&m, d));
  ck_assert(m.used == 6 << 20 && m.peak == 6 << 20 && m.limit == 6 << 20);
  nvd_buf_unref(b), nvd_buf_unref(c);
  nvd_device_memory_trim(d);
  ck_assert_int_eq(emu_used(0), 0);
  ck_assert_int_eq(nvd_device_memory_limit(d, -1), NVM_ERR_VALUE);
}
END_TEST

START_TEST(a_limit_counts_blocks_as_they_are) {
  nvd_device *d = emulated(0);
  nvd_buf_unref(nvd_buf_new_on(d, 36 << 20)); /* kept, in the class of 33 and 34 */
  OK(nvd_device_memory_limit(d, 34 << 20));
  nvd_buf *b = nvd_buf_new_on(d, 33 << 20);
  ck_assert_msg(b != NULL, "%s", nvb_message());
  ck_assert_int_le(used(d), 34 << 20);
  nvd_buf_unref(b);
  OK(nvd_device_memory_limit(d, (33 << 20) - 1));
  ck_assert(!nvd_buf_new_on(d, (33 << 20) - 2)); /* its block would be larger */
  ck_assert_msg(strstr(nvb_message(), "limit"), "%s", nvb_message());
  nvd_device_memory_trim(d);
}
END_TEST

START_TEST(full_memory_gives_up_what_is_kept) {
  nvd_device *d = emulated(0);
  emu_limit(64 << 20);
  nvd_buf *x = ramp(d, 1 << 20), *y = nvd_buf_new_on(d, 40 << 20);
  ck_assert(x && y);
  nvd_buf_unref(y);
  ck_assert((y = nvd_buf_new_on(d, 50 << 20))); /* of another class: the 40 have to go first */
  ck_assert(!nvd_buf_new_on(d, 20 << 20));
  ck_assert_int_eq(nvb_status(), NVM_ERR_MEMORY);
  ck_assert_msg(strstr(nvb_message(), "20971520") && strstr(nvb_message(), "cuda:0"), "%s", nvb_message());
  nvd_buf_unref(y);
  ck_assert((y = nvd_buf_new_on(d, 20 << 20)));
  ck_ramp(x, 1 << 20, 1);
  nvd_buf_unref(x), nvd_buf_unref(y);
}
END_TEST

START_TEST(copies) {
  nvd_device *d = emulated(0);
  static const size_t sizes[] = { 1, 1000, 70000, (2 << 20) + 1, 19 << 20 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t n = sizes[i];
    char *x = malloc(n), *y = calloc(n, 1), *z = calloc(n, 1);
    for (size_t k = 0; k < n; k++) x[k] = (char)(k * 37 + k / 251);
    nvd_buf *a = nvd_buf_new_on(d, n + 7), *b = nvd_buf_new_on(d, n);
    OK(nvd_upload(a, 7, x, n));
    memcpy(z, x, n);
    memset(x, 0, n);
    OK(nvd_copy_on(b, 0, a, 7, n));
    OK(nvd_download(y, b, 0, n));
    ck_assert(!memcmp(y, z, n));
    OK(nvd_download(y, b, n / 2, 1));
    ck_assert_int_eq(y[0], z[n / 2]);
    ck_assert_int_eq(nvd_download(y, b, 1, n), NVM_ERR_INTERNAL);
    nvd_buf_unref(a), nvd_buf_unref(b);
    free(x), free(y), free(z);
  }
  OK(nvd_synchronize(d));
  ck_assert_int_eq(emu_pending(), 0);
}
END_TEST

/* ---- streams */
START_TEST(streams) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, two_steps, N, 0);
  void *own = nvd_stream(d), *mine = NULL;
  CUDA(cudaStreamCreateWithFlags(&mine, 1));
  nvd_buf *x = ramp(d, N), *y[8];
  for (int i = 0; i < 8; i++) { /* what is made on one is read and freed on the other */
    OK(nvd_stream_set(d, i % 2 ? mine : NULL));
    ck_assert_ptr_eq(nvd_stream(d), i % 2 ? mine : own);
    y[i] = run1(p, d, i ? y[i - 1] : x, N);
    if (i) nvd_buf_unref(y[i - 1]);
  }
  ck_ramp(y[7], N, 6561);
  nvd_buf_unref(x), nvd_buf_unref(y[7]);
  OK(nvd_stream_set(d, NULL));
  int64_t calls = emu_calls("cuEventRecord");
  CUDA(cudaStreamDestroy(mine)); /* once it is nobody's current stream it is not touched any more */
  nvd_program_free(p);
  p = program(d, two_steps, N, 0);
  x = ramp(d, N);
  for (int i = 0; i < 6; i++) {
    nvd_buf *t = run1(p, d, x, N);
    nvd_buf_unref(x);
    x = t;
  }
  ck_ramp(x, N, 729);
  nvd_device_memory_trim(d);
  ck_assert_int_lt(emu_calls("cuEventRecord"), calls + 16);
  nvd_buf_unref(x);
  nvd_program_free(p);
}
END_TEST

static void zeros(nvd_device *d) { /* into memory of N floats that is free now */
  static const float zero[N];
  float y[N];
  nvd_buf *b = upload(d, zero, sizeof zero);
  OK(nvd_download(y, b, 0, sizeof y));
  ck_assert(!memcmp(y, zero, sizeof y));
  nvd_buf_unref(b);
}
START_TEST(reuse_comes_after_the_last_use) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, two_steps, N, 0), *q = program(d, given, N, 0);
  void *mine;
  float five = 5;
  CUDA(cudaStreamCreateWithFlags(&mine, 1));
  nvd_buf *x = ramp(d, N); /* made here, read there, freed here */
  OK(nvd_stream_set(d, mine));
  nvd_buf *y = run1(p, d, x, N);
  OK(nvd_stream_set(d, NULL));
  nvd_buf_unref(x);
  zeros(d);
  ck_ramp(y, N, 3);
  nvd_buf_unref(y);
  nvd_device_memory_trim(d);
  OK(nvd_stream_set(d, mine)); /* made, read and freed there, wanted here */
  x = ramp(d, N);
  y = run1(p, d, x, N);
  nvd_buf_unref(x);
  OK(nvd_stream_set(d, NULL));
  zeros(d);
  ck_ramp(y, N, 3);
  nvd_buf *z = run1(p, d, y, N); /* read here, written again there */
  OK(nvd_stream_set(d, mine));
  x = ramp(d, N);
  OK(nvd_run_on(q, (nvd_operand[]){ on(x), { NULL, (char *)&five } }, (nvd_operand[]){ on(y) }));
  ck_ramp(y, N, 5);
  ck_ramp(z, N, 9);
  OK(nvd_stream_set(d, NULL));
  nvd_buf_unref(x), nvd_buf_unref(y), nvd_buf_unref(z);
  nvd_program_free(p), nvd_program_free(q);
}
END_TEST

START_TEST(stream_of_another_device) {
  setenv("NVM_EMU_DEVICES", "2", 1);
  nvd_device *d = emulated(0), *e = emulated(1);
  void *there;
  int now = -1;
  ck_assert_int_eq(nvd_device_count(), 2);
  CUDA(cudaSetDevice(1));
  CUDA(cudaStreamCreateWithFlags(&there, 1));
  CUDA(cudaSetDevice(0));
  ck_assert_int_eq(nvd_stream_set(d, there), NVM_ERR_VALUE);
  ck_assert_msg(strstr(nvb_message(), "cuda:0"), "%s", nvb_message());
  OK(nvd_stream_set(e, there));
  int ordinal = 7;
  OK(nvd_stream_ordinal(&ordinal, there));
  ck_assert_int_eq(ordinal, 1);
  OK(nvd_stream_ordinal(&ordinal, (void *)2));
  ck_assert_int_eq(ordinal, -1);
  nvd_buf *mine = ramp(d, N);
  OK(nvd_memory_ordinal(&ordinal, mine->data + 8));
  ck_assert_int_eq(ordinal, 0);
  ck_assert_int_eq(nvd_memory_ordinal(&ordinal, &ordinal), NVM_ERR_VALUE);
  for (int garbage = 0; garbage < 2; garbage++) { /* others hand over a stream: in and out */
    void *stream = garbage ? (void *)0x777 : there;
    const char *want = garbage ? "0x777 is no stream" : "this stream is of cuda:1, not of cuda:0";
    ck_assert(!nvd_buf_wrap_on(d, mine->data, 4 * N, stream, NULL, NULL) && nvb_status() == NVM_ERR_VALUE);
    ck_assert_msg(strstr(nvb_message(), want), "%s", nvb_message());
    ck_assert_int_eq(nvd_buf_ready(mine, stream), NVM_ERR_VALUE);
    ck_assert_msg(strstr(nvb_message(), want), "%s", nvb_message());
    ck_assert_int_eq(nvd_buf_use(mine, stream, 0), NVM_ERR_VALUE);
  }
  ck_assert(!nvd_buf_wrap_on(e, mine->data, 4 * N, NULL, NULL, NULL));
  ck_assert_msg(strstr(nvb_message(), "no memory of cuda:1: it is memory of cuda:0"), "%s", nvb_message());
  nvd_buf_unref(mine);
  nvd_buf *x = ramp(d, N), *y = nvd_buf_new_on(e, 4 * N); /* from one to the other and on */
  OK(nvd_copy_on(y, 0, x, 0, 4 * N));
  nvd_buf_unref(x);
  nvd_program *p = program(e, two_steps, N, 0);
  nvd_buf *z = run1(p, e, y, N);
  ck_ramp(z, N, 3);
  ck_assert_int_eq(nvd_run_on(p, (nvd_operand[]){ { NULL, NULL } }, (nvd_operand[]){ on(y) }), NVM_ERR_INTERNAL);
  CUDA(cudaGetDevice(&now));
  ck_assert_int_eq(now, 0); /* the thread's device is what it was */
  nvd_buf_unref(y), nvd_buf_unref(z);
  nvd_program_free(p);
}
END_TEST

static int released;
static void release(void *owner) { released++, (void)owner; }
START_TEST(foreign_memory) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, two_steps, N, 0);
  void *theirs, *data;
  CUDA(cudaStreamCreateWithFlags(&theirs, 1));
  CUDA(cudaMalloc(&data, 4 * N));
  nvd_buf *x = ramp(d, N), *w = nvd_buf_wrap_on(d, data, 4 * N, theirs, release, NULL);
  ck_assert_msg(w != NULL, "%s", nvb_message());
  OK(nvd_copy_on(w, 0, x, 0, 4 * N));
  nvd_buf *y = run1(p, d, w, N);
  nvd_buf_unref(w);
  ck_assert_int_eq(released, 0); /* the run is not over */
  ck_ramp(y, N, 3);
  OK(nvd_synchronize(d));
  nvd_buf_unref(x);
  ck_assert_int_eq(released, 1);
  OK(nvd_stream_set(d, theirs)); /* on the owner's stream nothing needs to be over */
  w = nvd_buf_wrap_on(d, data, 4 * N, theirs, release, NULL);
  nvd_buf *z = run1(p, d, w, N);
  nvd_buf_unref(w);
  ck_assert_int_eq(released, 2);
  OK(nvd_buf_ready(y, theirs));
  OK(nvd_buf_use(y, theirs, 0));
  nvd_buf_unref(y), nvd_buf_unref(z);
  ck_assert(!nvd_buf_wrap_on(d, &released, 4, NULL, NULL, NULL));
  ck_assert_int_eq(nvb_status(), NVM_ERR_VALUE);
  emu_fail("cuEventRecord", 0, 400); /* the order would be lost */
  emu_fail("cuEventRecord", 0, 400);
  ck_assert(!nvd_buf_wrap_on(d, data, 4 * N, theirs, release, NULL));
  ck_assert_msg(strstr(nvb_message(), "invalid resource handle"), "%s", nvb_message());
  ck_assert_int_eq(released, 2);
  OK(nvd_stream_set(d, NULL));
  CUDA(cudaFree(data));
  nvd_program_free(p);
}
END_TEST

/* ---- programs */
START_TEST(runs_become_replays) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, two_steps, N, 0);
  nvd_buf *x = ramp(d, N), *y = NULL;
  int64_t before = nvd_kernels_run();
  for (int i = 0; i < 12; i++) {
    nvd_buf *t = run1(p, d, x, N);
    nvd_buf_unref(y);
    y = t;
    if (i == 6) ck_ramp(y, N, 3);
  }
  ck_ramp(y, N, 3);
  ck_assert_int_eq(nvd_kernels_run() - before, 24);
  ck_assert_int_eq(emu_calls("cuLaunchKernelEx"), 4);
  ck_assert_int_eq(emu_calls("cuGraphLaunch"), 10);
  int64_t sets = emu_calls("cuGraphExecKernelNodeSetParams"), launches = emu_calls("cuGraphLaunch");
  int64_t all = emu_calls("*");
  for (int i = 0; i < 10; i++)
    OK(nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) })); /* the same again */
  ck_assert_int_le(emu_calls("cuGraphExecKernelNodeSetParams"), sets + 2);
  ck_assert_int_eq(emu_calls("cuGraphLaunch"), launches + 10);
  /* the launch, and a look at the context, which the thread keeps */
  ck_assert_int_le(emu_calls("*"), all + 2 + 10 * 2);
  nvd_buf_unref(x), nvd_buf_unref(y);
  nvd_program_free(p);
  OK(nvd_synchronize(d));
  ck_assert_int_eq(used(d), 0);
}
END_TEST

static void ck_met(nvb_arena *a, nvd_buf *y) {
  float *got = NVB_NEWN(a, float, SIDE *SIDE);
  OK(nvd_download(got, y, 0, 4 * SIDE * SIDE));
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++) {
      float sum = 0;
      for (int k = 0; k < SIDE; k++) sum += (float)((i + k) % 5 * ((j + k) % 5));
      ck_assert_msg(got[i * SIDE + j] == sum, "[%d, %d] is %g, not %g", i, j, got[i * SIDE + j], sum);
    }
  nvd_buf_unref(y);
}

/* What their blocks meet with is zero before each run: launched, replayed, on two streams, in a graph of others. */
START_TEST(blocks_meet) {
  nvd_device *d = emulated(0);
  nvb_arena *a = nvb_arena_new();
  void *mine, *graph, *exec;
  nvd_program *p = program(d, meet, SIDE * SIDE, 0);
  float *from = NVB_NEWN(a, float, SIDE *SIDE);
  for (int i = 0; i < SIDE * SIDE; i++) from[i] = (float)((i / SIDE + i % SIDE) % 5);
  nvd_buf *x = upload(d, from, 4 * SIDE * SIDE);
  for (int i = 0; i < 5; i++) ck_met(a, run1(p, d, x, SIDE * SIDE));
  CUDA(cudaStreamCreateWithFlags(&mine, 1));
  OK(nvd_stream_set(d, mine));
  ck_met(a, run1(p, d, x, SIDE * SIDE));
  CUDA(cudaStreamBeginCapture(mine, 0));
  nvd_buf *y = run1(p, d, x, SIDE * SIDE);
  CUDA(cudaStreamEndCapture(mine, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 2; i++) CUDA(cudaGraphLaunch(exec, mine));
  CUDA(cudaStreamSynchronize(mine));
  OK(nvd_stream_set(d, NULL));
  ck_met(a, y);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  nvd_buf_unref(x);
  nvd_program_free(p);
  nvb_arena_free(a);
}
END_TEST

/* A long kernel may overlap with what was launched before it: not if that is known to have ended, and not in a graph of
   the caller's. */
START_TEST(long_kernels_are_launched) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, long_scale, N, 0);
  void *mine, *graph, *exec;
  nvd_buf *x = ramp(d, N), *y[6];
  for (int i = 0; i < 6; i++) y[i] = run1(p, d, i ? y[i - 1] : x, N);
  for (int i = 0; i < 6; i++) ck_ramp(y[i], N, 2 << i);
  ck_assert_int_eq(emu_calls("overlaps"), 6);
  ck_assert_int_eq(emu_calls("cuGraphLaunch"), 0);
  nvd_buf_unref(y[5]), nvd_buf_unref(y[4]);
  OK(nvd_synchronize(d));
  for (int i = 4; i < 6; i++) { /* alone, then behind that */
    y[i] = run1(p, d, y[i - 1], N);
    ck_assert_int_eq(emu_calls("cuGraphLaunch"), 1);
  }
  ck_ramp(y[5], N, 64);
  ck_ramp(y[4], N, 32);
  ck_assert_int_eq(emu_calls("overlaps"), 7);
  nvd_buf_unref(y[5]);
  y[5] = run1(p, d, y[0], N); /* the copy to the host waited */
  ck_assert_int_eq(emu_calls("overlaps"), 7);
  ck_assert_int_eq(emu_calls("cuGraphLaunch"), 2);
  CUDA(cudaStreamCreateWithFlags(&mine, 1));
  OK(nvd_stream_set(d, mine));
  CUDA(cudaStreamBeginCapture(mine, 0));
  nvd_buf *captured = run1(p, d, x, N);
  CUDA(cudaStreamEndCapture(mine, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphLaunch(exec, mine));
  CUDA(cudaStreamSynchronize(mine));
  ck_ramp(captured, N, 2);
  ck_assert_int_eq(emu_calls("overlaps"), 7);
  OK(nvd_stream_set(d, NULL));
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  for (int i = 0; i < 6; i++) nvd_buf_unref(y[i]);
  nvd_buf_unref(captured), nvd_buf_unref(x);
  nvd_program_free(p);
}
END_TEST

/* So may several, if they are long on average. */
START_TEST(long_steps_are_launched) {
  nvd_device *d = emulated(0);
  nvd_program *p[] = { program(d, long_and_short, N, 0), program(d, two_short, N, 0) };
  nvd_buf *x = ramp(d, N), *y = nvd_buf_new_on(d, 4 * N);
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < 6; i++) OK(nvd_run_on(p[k], (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) }));
    ck_assert_int_eq(emu_calls("overlaps"), k ? 16 : 12);
    ck_assert_int_eq(emu_calls("cuGraphLaunch"), k ? 4 : 0);
    ck_ramp(y, N, 3);
    nvd_program_free(p[k]);
  }
  nvd_buf_unref(x), nvd_buf_unref(y);
}
END_TEST

START_TEST(a_graph_that_fails_is_given_up) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, two_steps, N, 0);
  nvd_buf *x = ramp(d, N), *y = nvd_buf_new_on(d, 4 * N);
  emu_fail("cuGraphInstantiateWithFlags", 0, 1);
  for (int i = 0; i < 6; i++) OK(nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) }));
  ck_assert_int_eq(emu_calls("cuGraphLaunch"), 0);
  ck_assert_int_eq(emu_calls("cuLaunchKernelEx"), 12);
  ck_ramp(y, N, 3);
  nvd_buf_unref(x), nvd_buf_unref(y);
  nvd_program_free(p);
}
END_TEST

START_TEST(values_from_the_host) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, given, N, 0);
  nvd_buf *x = ramp(d, N), *y = nvd_buf_new_on(d, 4 * N);
  for (int i = 1; i <= 8; i++) {
    float by = (float)i;
    OK(nvd_run_on(p, (nvd_operand[]){ on(x), { NULL, (char *)&by } }, (nvd_operand[]){ on(y) }));
    by = -1; /* taken */
    ck_ramp(y, N, (float)i);
  }
  nvd_program_free(p);
  float by = 3, host[N], in[N];
  for (int i = 0; i < N; i++) in[i] = (float)(i + 1);
  p = program(NULL, given, N, 0); /* the CPU takes them too */
  nvb_set("tier", "0");
  OK(nvd_run(p, (char *[]){ (char *)in, (char *)&by }, (char *[]){ (char *)host }));
  ck_assert(host[N - 1] == 3.0f * N);
  nvd_program_free(p);
  nvd_buf_unref(x), nvd_buf_unref(y);
}
END_TEST

START_TEST(kernels_are_kept) {
  char dir[] = "/tmp/nvm-device-XXXXXX";
  nvd_device *d = emulated(0);
  ck_assert(mkdtemp(dir) && !nvb_set("cache_dir", dir));
  nvd_program *p = program(d, two_steps, N, 0), *q = program(d, two_steps, 7, 0);
  ck_assert_int_eq(nvc_cuda_compiled(), 2); /* another size compiles nothing */
  ck_assert_int_eq(nvd_kernels_loaded(), 0);
  nvd_program_free(p), nvd_program_free(q);
  p = program(d, two_steps, 99, 0); /* they outlive their programs */
  ck_assert_int_eq(nvc_cuda_compiled(), 2);
  nvd_program_free(p);
  nvd_code_trim();
  p = program(d, two_steps, N, 0);
  ck_assert_int_eq(nvc_cuda_compiled(), 2);
  ck_assert_int_eq(nvd_kernels_loaded(), 2);
  nvd_program_free(p);
  nvd_code_trim();
  emu_fail("cuModuleLoadData", 0, 200); /* a cubin of the store that does not load is made again */
  p = program(d, two_steps, N, 0);
  ck_assert_int_eq(nvc_cuda_compiled(), 3);
  nvd_buf *x = ramp(d, N), *y = run1(p, d, x, N);
  ck_ramp(y, N, 3);
  nvd_buf_unref(x), nvd_buf_unref(y);
  nvd_program_free(p);
  sweep_folder(dir);
}
END_TEST

START_TEST(wide_indices) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, two_steps, N, 0);
  int64_t before = nvc_cuda_compiled() + nvd_kernels_loaded();
  nvd_program *q = program(d, two_steps, 1 << 30, 0); /* the same texts, other code */
  ck_assert_int_eq(nvc_cuda_compiled() + nvd_kernels_loaded(), before + 2);
  nvd_program_free(p), nvd_program_free(q);
}
END_TEST

START_TEST(long_code_is_refused) {
  nvd_device *d = emulated(0);
  nvd_program *p;
  nvd_terms terms = { 0 };
  ck_assert_int_eq(prepare(&p, d, unrolled, N, 0, &terms), NVM_ERR_UNSUPPORTED);
  ck_assert_msg(!p && strstr(nvb_message(), "long would be more than 3000 lines"), "%s", nvb_message());
  OK(prepare(&p, d, unrolled, N, 0, &terms)); /* who comes back with it cannot do without */
  nvd_program_free(p);
  ck_assert_int_eq(prepare(&p, d, unrolled, N, 0, NULL), NVM_ERR_UNSUPPORTED); /* another planning */
}
END_TEST

START_TEST(spills_are_refused_once) {
  nvd_device *d = emulated(0);
  setenv("NVM_EMU_SPILLS", "1000", 1);
  nvb_set("cache_dir", "off");
  nvd_program *p;
  nvd_terms terms = { 0 };
  ck_assert_int_eq(prepare(&p, d, two_steps, N, 0, &terms), NVM_ERR_UNSUPPORTED);
  ck_assert_int_eq(terms.step, 0);
  ck_assert_msg(!p && strstr(nvb_message(), "scale") && strstr(nvb_message(), "spilled"), "%s", nvb_message());
  ck_assert_int_eq(prepare(&p, d, two_steps, N, 0, &terms), NVM_ERR_UNSUPPORTED);
  ck_assert_int_eq(terms.step, 1);
  OK(prepare(&p, d, two_steps, N, 0, &terms)); /* who asks again has nothing better */
  nvd_program_free(p);
  ck_assert_int_eq(prepare(&p, d, two_steps, N, 0, NULL), NVM_ERR_UNSUPPORTED);
}
END_TEST

START_TEST(what_is_refused_is_the_planning_s_own) { /* whatever the thread did before */
  nvd_device *d = emulated(0);
  setenv("NVM_EMU_SPILLS", "1000", 1);
  nvb_set("cache_dir", "off");
  for (int round = 0; round < 3; round++) {
    nvd_program *p;
    nvd_terms terms = { .any = round == 1 }; /* what is taken in one planning is refused in the next */
    int status = prepare(&p, d, two_steps, N, 0, &terms);
    ck_assert_int_eq(status, terms.any ? NVM_OK : NVM_ERR_UNSUPPORTED);
    ck_assert_int_eq(terms.nrejected, !terms.any);
    ck_assert(terms.any || !terms.step);
    nvd_program_free(p);
  }
}
END_TEST

START_TEST(blocks_of_a_unit_are_a_wish) {
  nvd_device *d = emulated(0);
  setenv("NVM_EMU_CROWDED", "1000", 1);
  nvb_set("cache_dir", "off");
  int64_t before = nvc_cuda_compiled();
  nvd_program_free(program(d, crowded, N, 0)); /* without it nothing is spilled */
  ck_assert_int_eq(nvc_cuda_compiled(), before + 2);
  setenv("NVM_EMU_SPILLS", "1000", 1);
  nvd_program *p;
  ck_assert_int_eq(prepare(&p, d, two_steps, N, 0, NULL), NVM_ERR_UNSUPPORTED);
}
END_TEST

START_TEST(runs_are_reported) {
  char dir[] = "/tmp/nvm-runs-XXXXXX";
  nvd_device *d = emulated(0);
  ck_assert(mkdtemp(dir) && !nvb_set("dump", "run") && !nvb_set("dump_dir", dir));
  nvd_program *p = program(d, two_steps, N, 0);
  nvd_buf *x = ramp(d, N), *y = run1(p, d, x, N);
  ck_ramp(y, N, 3);
  ck_assert(run_line(dir, 2));
  const char *line = run_line(dir, 1);
  ck_assert_msg(!strncmp(line, "1/2 map, cuda:0: 3 blocks of 256 threads", 40), "%s", line);
  sweep_folder(dir);
  nvd_buf_unref(x), nvd_buf_unref(y);
  nvd_program_free(p);
}
END_TEST

typedef struct keyed { const char *text; nvb_hash key; } keyed;
static void name_cubin(nvb_arena *a, void *arg) { /* as of a device of compute capability 9.0 */
  keyed *r = arg;
  nvf_kernel *k = nvf_kernel_parse(a, r->text, "test");
  nvb_text t = { .arena = a };
  nvf_kernel_print(&t, k);
  nvf_schedule_print(&t, k, nvf_schedule_find(k, "cpu"), "gpu");
  r->key = nvc_cubin_key(nvb_hash_bytes(t.s, t.n), &(nvc_cuda_target){ .arch = 90 });
}
static nvb_hash key_of(const char *text) {
  nvb_arena *a = nvb_arena_new();
  keyed r = { .text = text };
  OK(nvb_protect(a, name_cubin, &r));
  nvb_arena_free(a);
  return r.key;
}
static void copy_row(const char *from, const char *to) { /* the code of one kernel, to be found as that of another */
  void *row;
  size_t n;
  ck_assert(nvb_store_get("cubin", key_of(from), &row, &n));
  nvb_store_put("cubin", key_of(to), row, n);
  nvb_free(row);
}
START_TEST(wrong_code_is_found_out) {
  char dir[] = "/tmp/nvm-device-XXXXXX";
  nvd_device *d = emulated(0);
  ck_assert(mkdtemp(dir) && !nvb_set("check", "bits"));
  nvb_set("cache_dir", "off");
  nvd_program *p = program(d, two_steps, N, 0);
  nvd_buf *x = ramp(d, N), *y = run1(p, d, x, N); /* right code passes */
  ck_ramp(y, N, 3);
  nvd_program_free(p);
  nvd_code_trim();
  nvb_set("cache_dir", dir);
  nvd_program_free(program(d, two_sums, N, 0));
  nvd_code_trim();
  copy_row(shift_text, scale_text);
  p = program(d, two_steps, N, 0);
  ck_assert_int_eq(nvd_kernels_loaded(), 2);
  ck_assert_int_eq(nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) }), NVM_ERR_INTERNAL);
  ck_assert_msg(strstr(nvb_message(), "[bits]") && strstr(nvb_message(), "step 1 of 2, element 0 of argument 1"), "%s",
                nvb_message());
  nvd_program_free(p);
  nvd_buf_unref(x), nvd_buf_unref(y);
  sweep_folder(dir);
}
END_TEST

/* What is launched is what the row says: code from the store needs no source. */
START_TEST(rows_say_how_to_launch) {
  char dir[] = "/tmp/nvm-device-XXXXXX", runs[] = "/tmp/nvm-runs-XXXXXX";
  nvd_device *d = emulated(0);
  ck_assert(mkdtemp(dir) && mkdtemp(runs) && !nvb_set("cache_dir", dir));
  ck_assert(!nvb_set("dump", "run") && !nvb_set("dump_dir", runs));
  nvd_program_free(program(d, two_narrow, N, 0));
  nvd_code_trim();
  copy_row(narrow_text, scale_text);
  nvd_program *p = program(d, two_steps, N, 0);
  nvd_buf *x = ramp(d, N), *y = run1(p, d, x, N);
  ck_ramp(y, N, 3);
  const char *line = run_line(runs, 1);
  ck_assert_msg(line && !strncmp(line, "1/2 map, cuda:0: 3 blocks of 128 threads", 40), "%s", line);
  nvd_buf_unref(x), nvd_buf_unref(y);
  nvd_program_free(p);
  sweep_folder(dir), sweep_folder(runs);
}
END_TEST

/* ---- captures */
START_TEST(captured_runs) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, two_steps, N, 0);
  void *mine, *theirs, *graph, *exec;
  float first[N], y[N];
  CUDA(cudaStreamCreateWithFlags(&mine, 1));
  CUDA(cudaStreamCreateWithFlags(&theirs, 1));
  OK(nvd_stream_set(d, theirs));
  nvd_buf *x = ramp(d, N);
  OK(nvd_stream_set(d, mine));
  int64_t before = used(d);
  CUDA(cudaStreamBeginCapture(mine, 0)); /* the strictest mode */
  nvd_buf *a = run1(p, d, x, N), *b = run1(p, d, a, N);
  ck_assert_int_eq(nvd_upload(x, 0, y, 4), NVM_ERR_STATE);
  ck_assert(!nvd_may_time(d));
  CUDA(cudaStreamEndCapture(mine, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphDestroy(graph));
  nvd_buf_unref(a); /* the graph's now */
  nvd_program_free(p);
  nvd_code_trim();
  OK(nvd_stream_set(d, NULL));
  nvd_buf *other = nvd_buf_new_on(d, 4 * N); /* none of the graph's memory */
  memset(first, 0, sizeof first);
  OK(nvd_upload(other, 0, first, sizeof first));
  for (int i = 0; i < 2; i++) {
    CUDA(cudaGraphLaunch(exec, mine));
    CUDA(cudaStreamSynchronize(mine));
    ck_ramp(b, N, 9);
  }
  OK(nvd_download(y, other, 0, sizeof y));
  ck_assert(!memcmp(y, first, sizeof y));
  nvd_buf_unref(other), nvd_buf_unref(b);
  ck_assert_int_gt(used(d), before);
  CUDA(cudaGraphExecDestroy(exec));
  p = program(d, two_steps, N, 0);
  ck_assert_int_eq(used(d), before);
  nvd_buf_unref(x);
  nvd_program_free(p);
}
END_TEST

/* ---- failures */
static nvd_buf *pick(nvd_program *p, nvd_device *d, nvd_buf *x, nvd_buf *at) {
  nvd_buf *y = nvd_buf_new_on(d, 4 * N);
  ck_assert(y != NULL);
  OK(nvd_run_on(p, (nvd_operand[]){ on(x), on(at) }, (nvd_operand[]){ on(y) }));
  return y;
}
START_TEST(index_out_of_range) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, gather, N, N), *q = program(d, two_steps, N, 0);
  int64_t index[N];
  float y[N];
  for (int i = 0; i < N; i++) index[i] = i;
  nvd_buf *x = ramp(d, N), *right = upload(d, index, sizeof index);
  index[N - 2] = N;
  nvd_buf *wrong = upload(d, index, sizeof index);
  for (int i = 0; i < 6; i++) { /* also as a replay */
    nvd_buf *bad = pick(p, d, x, wrong), *good = pick(p, d, x, right);
    nvd_buf *from_bad = run1(q, d, bad, N), *from_good = run1(q, d, good, N);
    for (int twice = 0; twice < 2; twice++) {
      ck_assert_int_eq(nvd_download(y, bad, 0, sizeof y), NVM_ERR_INDEX);
      ck_assert_msg(!strcmp(nvb_message(), "[gather] an index is out of range: made by hand"), "%s", nvb_message());
      ck_assert_int_eq(nvd_download(y, from_bad, 0, 4), NVM_ERR_INDEX);
      ck_assert_msg(strstr(nvb_message(), "[gather]"), "%s", nvb_message());
    }
    nvd_buf *copy = nvd_buf_new_on(d, 4 * N);
    OK(nvd_copy_on(copy, 0, from_bad, 0, 4 * N));
    ck_assert_int_eq(nvd_download(y, copy, 0, 4), NVM_ERR_INDEX);
    ck_ramp(good, N, 1);
    ck_ramp(from_good, N, 3);
    ck_ramp(x, N, 1);
    nvd_buf_unref(bad), nvd_buf_unref(good), nvd_buf_unref(from_bad), nvd_buf_unref(from_good), nvd_buf_unref(copy);
  }
  nvd_buf *bad = pick(p, d, x, wrong); /* the program's end is not that of its messages */
  nvd_program_free(p), nvd_program_free(q);
  ck_assert_int_eq(nvd_download(y, bad, 0, 4), NVM_ERR_INDEX);
  ck_assert_msg(strstr(nvb_message(), "made by hand"), "%s", nvb_message());
  nvd_buf_unref(x), nvd_buf_unref(right), nvd_buf_unref(wrong), nvd_buf_unref(bad);
}
END_TEST

START_TEST(long_chains_of_checks) { /* x = x[at], nothing read between */
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, gather, N, N);
  int64_t index[N], most = 0, before = nvb_live_blocks();
  for (int i = 0; i < N; i++) index[i] = i;
  nvd_buf *x = ramp(d, N), *at = upload(d, index, sizeof index);
  for (int i = 0; i < 3000; i++) {
    nvd_buf *y = pick(p, d, x, at);
    nvd_buf_unref(x);
    x = y;
    int64_t now = nvb_live_blocks() - before;
    most = now > most ? now : most;
  }
  ck_ramp(x, N, 1);
  ck_assert_int_lt(most, 1500); /* those that a queue of the device holds */
  nvd_buf_unref(x), nvd_buf_unref(at);
  nvd_program_free(p);
}
END_TEST

START_TEST(lost) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, two_steps, N, 0), *q;
  nvd_buf *x = ramp(d, N);
  OK(nvd_synchronize(d));
  emu_fail_kernel(0, 700);
  nvd_buf *y = run1(p, d, x, N);
  float host[N];
  for (int twice = 0; twice < 2; twice++) {
    ck_assert_int_eq(nvd_download(host, y, 0, sizeof host), NVM_ERR_DEVICE);
    ck_assert_msg(strstr(nvb_message(), "illegal memory access") && strstr(nvb_message(), "scale+sum2") &&
                      strstr(nvb_message(), "cuda:0"),
                  "%s", nvb_message());
  }
  ck_assert_int_eq(nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) }), NVM_ERR_DEVICE);
  ck_assert(!nvd_buf_new_on(d, 4) && nvb_status() == NVM_ERR_DEVICE);
  ck_assert_int_eq(nvd_synchronize(d), NVM_ERR_DEVICE);
  ck_assert_int_eq(nvd_device_memory_trim(d), NVM_ERR_DEVICE);
  ck_assert_int_eq(nvd_device_usable(0), NVM_ERR_DEVICE);
  ck_assert(strstr(nvb_message(), "scale+sum2") && strstr(nvd_device_line(0), "scale+sum2"));
  ck_assert(nvd_device_count() == 1 && nvd_device_first() == 0); /* there it is, and nothing takes its place */
  OK(nvd_device_get(&d, 0));
  ck_assert_int_eq(prepare(&q, d, two_steps, N, 0, NULL), NVM_ERR_DEVICE);
  nvd_buf_unref(x), nvd_buf_unref(y);
  nvd_program_free(p);
  float in[N], out[N]; /* the CPU goes on */
  for (int i = 0; i < N; i++) in[i] = (float)i;
  nvb_set("tier", "0");
  OK(prepare(&p, NULL, two_steps, N, 0, NULL));
  OK(nvd_run(p, (char *[]){ (char *)in }, (char *[]){ (char *)out }));
  ck_assert(out[N - 1] == 3.0f * (N - 1));
  nvd_program_free(p);
}
END_TEST

START_TEST(a_call_fails) { /* what fails now and then leaves a device that goes on */
  nvd_device *d = emulated(0);
  static const struct {
    const char *call;
    int error, status;
  } row[] = {
    { "cuLaunchKernelEx", 1, NVM_ERR_DEVICE },
    { "cuLaunchKernelEx", 2, NVM_ERR_MEMORY },
    { "cudaMallocFromPoolAsync", 2, NVM_OK },
    { "cuGraphLaunch", 1, NVM_ERR_DEVICE },
    { "cuGraphExecKernelNodeSetParams", 1, NVM_ERR_DEVICE },
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    nvd_program *p = program(d, two_steps, N, 0);
    nvd_buf *x = ramp(d, N), *y = nvd_buf_new_on(d, 4 * N), *z = nvd_buf_new_on(d, 4 * N);
    int graphs = strstr(row[i].call, "Graph") != NULL;
    for (int k = 0; k < 4 * graphs; k++) OK(nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(z) }));
    nvd_device_memory_trim(d);
    emu_fail(row[i].call, 0, row[i].error);
    ck_assert_int_eq(nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) }), row[i].status);
    emu_reset();
    OK(nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) }));
    ck_ramp(y, N, 3);
    nvd_buf_unref(x), nvd_buf_unref(y), nvd_buf_unref(z);
    nvd_program_free(p);
  }
}
END_TEST

/* A start or a first copy that fails midway: what it had made is there for the next, and none is made twice. */
START_TEST(what_was_made_before_a_failure_stays) {
  nvd_device *d = NULL;
  float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
  OK(nvb_set("cuda_dir", getenv("NVM_EMU_DIR")));
  emu_fail("cudaStreamCreateWithFlags", 0, 2);
  ck_assert_int_eq(nvd_device_get(&d, 0), NVM_ERR_MEMORY);
  emu_fail("cudaEventCreateWithFlags", 0, 2);
  ck_assert_int_eq(nvd_device_get(&d, 0), NVM_ERR_MEMORY);
  OK(nvd_device_get(&d, 0));
  ck_assert_int_eq(emu_calls("cudaMemPoolCreate"), 1);
  ck_assert_int_eq(emu_calls("cuDevicePrimaryCtxRetain"), 1);
  ck_assert_int_eq(emu_calls("cudaEventCreateWithFlags") - emu_calls("cudaEventDestroy"), 2); /* one of them failed */
  nvd_buf *b = nvd_buf_new_on(d, sizeof x);
  int64_t pinned = emu_calls("cudaHostAlloc"), events = emu_calls("cudaEventCreateWithFlags");
  emu_fail("cudaEventCreateWithFlags", 3, 2);
  ck_assert_int_eq(nvd_upload(b, 0, x, sizeof x), NVM_ERR_MEMORY);
  OK(nvd_upload(b, 0, x, sizeof x));
  OK(nvd_download(y, b, 0, sizeof y));
  ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
  ck_assert_int_eq(emu_calls("cudaHostAlloc"), pinned + 1);
  ck_assert_int_eq(emu_calls("cudaEventCreateWithFlags"), events + 8 + 1); /* one for each piece, and the failed call */
  nvd_buf_unref(b);
}
END_TEST

static int life(nvd_device *d, nvd_buf *x) {
  nvd_program *p = NULL;
  nvd_buf *y = nvd_buf_new_on(d, 4 * N);
  int status = y ? prepare(&p, d, two_steps, N, 0, NULL) : nvb_status();
  for (int i = 0; i < 4 && !status; i++) status = nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) });
  if (!status) ck_ramp(y, N, 3);
  nvd_program_free(p);
  nvd_buf_unref(y);
  return status;
}
START_TEST(every_allocation_may_fail) {
  nvd_device *d = emulated(0);
  nvd_buf *x = ramp(d, N);
  for (int sticky = 0; sticky < 2; sticky++) {
    OK(life(d, x));
    nvd_device_memory_trim(d);
    int64_t before = nvb_live_blocks();
    int met = 0;
    for (int k = 1; k < 60; k++) {
      nvb_fail_alloc(k, sticky);
      int status = life(d, x);
      nvb_fail_alloc(0, 0);
      ck_assert_msg(!status || status == NVM_ERR_MEMORY, "request %d: %d %s", k, status, nvb_message());
      met += status != 0;
      nvd_device_memory_trim(d);
      ck_assert_msg(nvb_live_blocks() == before, "request %d leaks %lld", k, (long long)(nvb_live_blocks() - before));
    }
    ck_assert_int_gt(met, 3);
  }
  nvd_buf_unref(x);
}
END_TEST

/* The device's own time of a program, and a limit to waiting for it. */
START_TEST(runs_are_timed) {
  nvd_device *d = emulated(0);
  nvd_program *p = program(d, two_steps, N, 0);
  nvd_buf *x = ramp(d, N), *y = run1(p, d, x, N), *flush = nvd_buf_new_on(d, 1 << 16);
  double one = 0, many = 0, cold = 0;
  int hung = 7;
  nvd_operand in[] = { on(x) }, out[] = { on(y) };
  OK(nvd_time_on(&one, p, in, out, 1, NULL, 1e10, &hung));
  OK(nvd_time_on(&many, p, in, out, 40, NULL, 1e10, &hung));
  int64_t copies = emu_calls("cudaMemcpyAsync"), spans = emu_calls("cudaEventElapsedTime");
  OK(nvd_time_on(&one, p, in, out, 3, NULL, 1e10, &hung));
  ck_assert(emu_calls("cudaMemcpyAsync") == copies && emu_calls("cudaEventElapsedTime") == spans + 1);
  OK(nvd_time_on(&cold, p, in, out, 3, flush, 1e10, &hung)); /* each run by itself, behind what empties the caches */
  ck_assert(emu_calls("cudaMemcpyAsync") == copies + 3 && emu_calls("cudaEventElapsedTime") == spans + 4);
  ck_assert(one > 0 && many > one && cold > 0 && !hung);
  ck_ramp(y, N, 3);
  emu_hang(1);
  ck_assert_int_eq(nvd_time_on(&one, p, in, out, 1, NULL, 2e6, &hung), NVM_ERR_DEVICE);
  ck_assert(hung && strstr(nvb_message(), "lost: a kernel that was tried has not ended after 0.002 s, in kernel"));
  emu_hang(0);
  ck_assert_int_eq(nvd_time_on(&one, p, in, out, 1, NULL, 1e10, &hung), NVM_ERR_STATE);
  ck_assert_int_eq(nvd_run_on(p, in, out), NVM_ERR_DEVICE);
  nvd_buf_unref(x), nvd_buf_unref(y), nvd_buf_unref(flush);
  nvd_program_free(p);
}
END_TEST

START_TEST(a_forked_child_is_told) {
  nvd_device *d = emulated(0), *e;
  nvd_program *p = program(d, two_steps, N, 0), *q;
  nvd_buf *x = ramp(d, N), *y = run1(p, d, x, N);
  float host[4];
  pid_t child = fork();
  if (!child) {
    int bad = nvd_device_get(&e, 0) != NVM_ERR_DEVICE || !strstr(nvb_message(), "fork");
    bad |= nvd_device_count() != 0 || !strstr(nvb_message(), "fork");
    bad |= nvd_device_first() != 0 || nvd_device_usable(0) != NVM_ERR_DEVICE; /* where it would be an error */
    bad |= nvd_buf_new_on(d, 4) != NULL;
    bad |= nvd_download(host, y, 0, 4) != NVM_ERR_DEVICE || nvd_upload(x, 0, host, 4) != NVM_ERR_DEVICE;
    bad |= nvd_run_on(p, (nvd_operand[]){ on(x) }, (nvd_operand[]){ on(y) }) != NVM_ERR_DEVICE;
    bad |= nvd_synchronize(d) != NVM_ERR_DEVICE || nvd_stream_set(d, NULL) != NVM_ERR_DEVICE;
    bad |= prepare(&q, d, two_steps, N, 0, NULL) != NVM_ERR_DEVICE;
    nvd_buf_unref(x), nvd_buf_unref(y), nvd_program_free(p);
    nvd_device_memory_trim(d);
    _exit(bad);
  }
  int status = -1;
  waitpid(child, &status, 0);
  ck_assert_int_eq(status, 0);
  ck_ramp(y, N, 3);
  nvd_buf_unref(x), nvd_buf_unref(y);
  nvd_program_free(p);
}
END_TEST

/* ---- threads: one program, own streams and the device's, memory that comes and goes */
static nvd_program *shared;
static nvd_device *device;
static void *runner(void *arg) {
  int *bad = arg;
  void *mine = NULL;
  float y[N];
  if (*bad % 2) *bad = cudaStreamCreateWithFlags(&mine, 1) || nvd_stream_set(device, mine);
  else *bad = 0;
  for (int i = 0; i < 40 && !*bad; i++) {
    float x[N];
    for (int k = 0; k < N; k++) x[k] = (float)(k + i);
    nvd_buf *a = nvd_buf_new_on(device, sizeof x), *b = nvd_buf_new_on(device, sizeof x);
    *bad = !a || !b || nvd_upload(a, 0, x, sizeof x) ||
           nvd_run_on(shared, (nvd_operand[]){ on(a) }, (nvd_operand[]){ on(b) }) || nvd_download(y, b, 0, sizeof y);
    for (int k = 0; k < N; k++) *bad |= y[k] != 3 * x[k];
    nvd_buf_unref(a), nvd_buf_unref(b);
  }
  nvd_stream_set(device, NULL);
  return NULL;
}
START_TEST(threads) {
  device = emulated(0);
  shared = program(device, two_steps, N, 0);
  pthread_t t[6];
  int bad[6] = { 0, 1, 2, 3, 4, 5 };
  for (int i = 0; i < 6; i++) pthread_create(&t[i], NULL, runner, &bad[i]);
  for (int i = 0; i < 6; i++) {
    pthread_join(t[i], NULL);
    ck_assert_int_eq(bad[i], 0);
  }
  nvd_program_free(shared);
  ck_assert_int_eq(used(device), 0);
}
END_TEST

/* A thread that ends gives up its stream: what stands for it stands for the next one's. */
static void *passer(void *arg) {
  void *mine = NULL;
  int *bad = arg;
  *bad = cudaStreamCreateWithFlags(&mine, 1) || nvd_stream_set(device, mine);
  return NULL;
}
START_TEST(threads_that_end) {
  device = emulated(0);
  int64_t events = 0;
  for (int i = 0; i < 6; i++) {
    pthread_t t;
    int bad = 1;
    pthread_create(&t, NULL, passer, &bad);
    pthread_join(t, NULL);
    ck_assert_int_eq(bad, 0);
    events = i ? events : emu_calls("cudaEventCreateWithFlags");
  }
  ck_assert_int_eq(emu_calls("cudaEventCreateWithFlags"), events);
}
END_TEST

SUITE("device", nothing_is_looked_for, too_old, the_first_that_can_be_used, none_that_can_be_used,
      nothing_that_compiles, wrong_ordinal, facts, freed_memory_is_had_again, memory_is_counted,
      a_limit_counts_blocks_as_they_are, full_memory_gives_up_what_is_kept, copies, streams,
      reuse_comes_after_the_last_use, stream_of_another_device, foreign_memory, runs_become_replays,
      long_kernels_are_launched, long_steps_are_launched, a_graph_that_fails_is_given_up, values_from_the_host,
      kernels_are_kept, wide_indices, long_code_is_refused, spills_are_refused_once,
      what_is_refused_is_the_planning_s_own, blocks_of_a_unit_are_a_wish, runs_are_reported, wrong_code_is_found_out,
      rows_say_how_to_launch, captured_runs, index_out_of_range, blocks_meet, long_chains_of_checks, lost, a_call_fails,
      what_was_made_before_a_failure_stays, every_allocation_may_fail, runs_are_timed, a_forked_child_is_told, threads,
      threads_that_end)
