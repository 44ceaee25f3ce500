/* The emulator itself: that it computes, and that it shows what a GPU would only sometimes show. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "call.h"

int nvrtcCreateProgram(void **out, const char *source, const char *name, int n, const char *const *headers,
                       const char *const *names);
int nvrtcCompileProgram(void *p, int n, const char *const *option);
int nvrtcGetCUBINSize(void *p, size_t *n);
int nvrtcGetCUBIN(void *p, char *out);
int nvrtcGetProgramLogSize(void *p, size_t *n);
int nvrtcGetProgramLog(void *p, char *out);
int nvrtcDestroyProgram(void **p);
int cudaMalloc(void **data, size_t bytes);
int cudaFree(void *data);
int cudaDeviceSynchronize(void);
int cudaEventRecord(void *event, void *stream);
int cudaStreamIsCapturing(void *stream, int *status);
int cudaStreamBeginCapture(void *handle, int mode);
int cudaStreamEndCapture(void *handle, void **out);

enum { N = 1000 };
#define SURE(x) ck_assert_int_eq(x, 0)

static int build(void **out, const char *source, char *log, size_t nlog) {
  void *p, *image;
  size_t n = 0;
  SURE(nvrtcCreateProgram(&p, source, "test.cu", 0, NULL, NULL));
  int code = nvrtcCompileProgram(p, 1, (const char *[]){ "--gpu-architecture=sm_90a" });
  SURE(nvrtcGetProgramLogSize(p, &n));
  ck_assert(n < nlog);
  SURE(nvrtcGetProgramLog(p, log));
  if (!code) {
    SURE(nvrtcGetCUBINSize(p, &n));
    image = malloc(n);
    SURE(nvrtcGetCUBIN(p, image));
    SURE(cuModuleLoadData(out, image));
    free(image);
  }
  SURE(nvrtcDestroyProgram(&p));
  return code;
}
static void *kernel(const char *source) {
  static char log[4096];
  void *m, *f;
  int code = build(&m, source, log, sizeof log);
  ck_assert_msg(!code, "%s", log);
  SURE(cuModuleGetFunction(&f, m, "k"));
  return f;
}
static int start(void *f, unsigned blocks, unsigned threads, unsigned shared, void *on, void **param) {
  nvd_launch l = { .grid = { blocks, 1, 1 }, .block = { threads, 1, 1 }, .shared = shared, .stream = on };
  return cuLaunchKernelEx(&l, f, param, NULL);
}
static const char scale[] = "__global__ void __launch_bounds__(128) k(const float *x, float *y, float a, int n) {\n"
                            "  int i = blockIdx.x * 128 + threadIdx.x;\n  if (i < n) y[i] = a * x[i];\n}\n";
static void run_scale(void *f, float *x, float *y, float a, void *on) {
  int n = N;
  SURE(start(f, 8, 128, 0, on, (void *[]){ &x, &y, &a, &n }));
}
static float *device(int fill) {
  static float host[N];
  void *p;
  SURE(cudaMalloc(&p, sizeof host));
  for (int i = 0; i < N; i++) host[i] = (float)i;
  if (fill) SURE(cudaMemcpyAsync(p, host, sizeof host, CUDA_TO_DEVICE, NULL));
  SURE(cudaDeviceSynchronize());
  return p;
}
static float at(float *x, int i, void *on) {
  float v;
  SURE(cudaMemcpyAsync(&v, x + i, 4, CUDA_TO_HOST, on));
  return v;
}
static void *made_stream(void) {
  void *s;
  SURE(cudaStreamCreateWithFlags(&s, CUDA_STREAM_NON_BLOCKING));
  return s;
}

START_TEST(order) {
  void *f = kernel(scale), *a = made_stream(), *b = made_stream(), *event;
  float *x = device(1), *y = device(0), *z = device(0);
  SURE(cudaEventCreateWithFlags(&event, CUDA_EVENT_NO_TIMING));
  run_scale(f, x, y, 2, a);
  ck_assert_int_eq(cudaEventQuery(event), 0); /* never recorded */
  ck_assert_int_eq(emu_pending(), 1);
  run_scale(f, y, z, 3, b); /* before y is there */
  ck_assert(at(z, 10, b) != at(z, 10, b));
  run_scale(f, x, y, 2, a);
  SURE(cudaEventRecord(event, a));
  SURE(cudaStreamWaitEvent(b, event, 0));
  run_scale(f, y, z, 3, b);
  ck_assert(at(z, 10, b) == 60);
  SURE(cudaEventSynchronize(event));
  ck_assert_int_eq(emu_calls("cuLaunchKernelEx"), 4);
}
END_TEST

START_TEST(meetings) {
  void *f = kernel("__global__ void k(int *out) {\n  extern __shared__ int s[];\n  int t = threadIdx.x, v = t;\n"
                   "  for (int i = 1; i < 32; i *= 2) v += __shfl_xor_sync(~0u, v, i);\n"
                   "  s[t] = v; __syncthreads();\n  out[t] = s[(t + 32) % 64];\n}\n");
  void *out;
  int v;
  SURE(cudaMalloc(&out, 256));
  SURE(start(f, 1, 64, 256, NULL, (void *[]){ &out }));
  SURE(cudaMemcpyAsync(&v, out, 4, CUDA_TO_HOST, NULL));
  ck_assert_int_eq(v, 32 * 47 + 16);
}
END_TEST

/* Threads that have ended are not waited for where the blocks of a cluster meet. */
#define CLUSTER "// prelude\n// end of prelude\n" \
                "__global__ void __launch_bounds__(64) __cluster_dims__(2, 1, 1) k(int *out) {\n"
START_TEST(clusters) {
  void *f =
      kernel(CLUSTER "  extern __shared__ char d[];\n"
                     "  int *s = (int *)nv_own_shared(d), t = threadIdx.x, b = blockIdx.x;\n  if (t >= 32) return;\n"
                     "  s[t] = 100 * b + t;\n  nv_cluster_arrive(); nv_cluster_wait();\n"
                     "  out[32 * b + t] = nv_peer_shared(s, 1 - b)[31 - t];\n"
                     "  nv_cluster_arrive(); nv_cluster_wait();\n}\n");
  void *out;
  int v[64];
  SURE(cudaMalloc(&out, sizeof v));
  SURE(start(f, 2, 64, 256, NULL, (void *[]){ &out }));
  SURE(cudaMemcpyAsync(v, out, sizeof v, CUDA_TO_HOST, NULL));
  SURE(cudaDeviceSynchronize());
  for (int i = 0; i < 64; i++) ck_assert_int_eq(v[i], 100 * (i < 32) + 31 - i % 32);
}
END_TEST

/* What goes wrong in a kernel is met at the next wait and stays. */
static void wrong(const char *source, unsigned shared, int error) {
  void *f = kernel(source), *out;
  SURE(cudaMalloc(&out, 256));
  SURE(start(f, strstr(source, "__cluster_dims__") ? 2 : 1, 64, shared, NULL, (void *[]){ &out }));
  ck_assert_int_eq(cudaStreamSynchronize(NULL), error);
  ck_assert_int_eq(cudaStreamSynchronize(NULL), error);
  ck_assert_int_eq(cudaGetLastError(), error);
  emu_reset();
  SURE(cudaStreamSynchronize(NULL));
}
START_TEST(kernels_that_fail) {
  wrong("__global__ void k(int *p) { p[64 + threadIdx.x * 1024] = 1; }", 0, EMU_ILLEGAL_ADDRESS);
  wrong("__global__ void k(int *p) { if (threadIdx.x == 5) *(long long *)(p + 1) = 1; }", 0, EMU_MISALIGNED);
  wrong("__global__ void k(int *p) { if (threadIdx.x) __syncthreads(); }", 0, EMU_LAUNCH_FAILURE);
  wrong("__global__ void k(int *p) { if (threadIdx.x & 1) __syncwarp();\n else __shfl_sync(~0u, 1, 1); }", 0,
        EMU_LAUNCH_FAILURE);
  wrong("__global__ void k(int *p) { if (threadIdx.x < 32) __syncthreads();\n else __syncthreads(); }", 0,
        EMU_LAUNCH_FAILURE);
  wrong("__global__ void k(int *p) { extern __shared__ int s[]; s[threadIdx.x] = 1; }", 128, EMU_LAUNCH_FAILURE);
  wrong(CLUSTER "  if (blockIdx.x == 0) nv_cluster_arrive(), nv_cluster_wait();\n}\n", 0, EMU_LAUNCH_FAILURE);
  wrong(CLUSTER "  extern __shared__ char d[];\n  *out = *nv_peer_shared((int *)nv_own_shared(d), 2);\n}\n", 256,
        EMU_LAUNCH_FAILURE);
  wrong(CLUSTER "  extern __shared__ char d[];\n  if (blockIdx.x == 0) return;\n  __syncthreads();\n"
                "  *out = *nv_peer_shared((int *)nv_own_shared(d), 0);\n}\n",
        256, EMU_LAUNCH_FAILURE);
}
END_TEST

/* A kernel that may start early has no memory before it has waited for those before it. */
START_TEST(overlaps) {
  static const char waits[] = "// prelude\n// end of prelude\n__global__ void k(int *p) {\n"
                              "  nv_after_previous();\n  p[threadIdx.x] += 1;\n}\n";
  static const char reads[] = "// prelude\n// end of prelude\n__global__ void k(int *p) {\n"
                              "  int x = p[threadIdx.x];\n  nv_after_previous();\n  p[threadIdx.x] = x + 1;\n}\n";
  nvd_attribute early = { .id = CUDA_LAUNCH_OVERLAPS, .value.number = 1 };
  nvd_launch l = { .grid = { 2, 1, 1 }, .block = { 64, 1, 1 }, .attribute = &early, .nattribute = 1 };
  int v[64] = { 0 };
  void *p;
  SURE(cudaMalloc(&p, sizeof v));
  SURE(cudaMemcpyAsync(p, v, sizeof v, CUDA_TO_DEVICE, NULL));
  void *f = kernel(waits), *g = kernel(reads), *param[] = { &p };
  SURE(cuLaunchKernelEx(&l, f, param, NULL));
  SURE(cuLaunchKernelEx(&l, f, param, NULL));
  SURE(cudaMemcpyAsync(v, p, sizeof v, CUDA_TO_HOST, NULL));
  SURE(cudaStreamSynchronize(NULL));
  ck_assert_int_eq(v[63], 4);
  early.value.number = 0;
  SURE(cuLaunchKernelEx(&l, g, param, NULL));
  SURE(cudaStreamSynchronize(NULL));
  early.value.number = 1;
  SURE(cuLaunchKernelEx(&l, g, param, NULL));
  ck_assert_int_eq(cudaStreamSynchronize(NULL), EMU_ILLEGAL_ADDRESS);
  emu_reset();
  early.id = 4;
  ck_assert_int_eq(cuLaunchKernelEx(&l, f, param, NULL), INVALID_VALUE);
}
END_TEST

START_TEST(memory_is_closed) {
  void *x, *pool, *s = made_stream();
  nvd_pool_props props = { .type = CUDA_POOL_PINNED, .place_type = CUDA_POOL_PLACE_DEVICE };
  SURE(cudaMemPoolCreate(&pool, &props));
  emu_limit(1 << 20);
  SURE(cudaMallocFromPoolAsync(&x, 1 << 20, pool, s));
  SURE(cudaFreeAsync(x, s));
  SURE(cudaMallocFromPoolAsync(&x, 1 << 20, pool, s)); /* runs what waits */
  ck_assert_int_eq(cudaMallocFromPoolAsync(&x, 1, pool, s), NO_MEMORY);
  ck_assert_int_eq(emu_used(0), 1 << 20);
  emu_limit(0);
  emu_fail("cudaMallocFromPoolAsync", 1, NO_MEMORY);
  SURE(cudaMallocFromPoolAsync(&x, 1, pool, s));
  ck_assert_int_eq(cudaMallocFromPoolAsync(&x, 1, pool, s), NO_MEMORY);
  SURE(cudaMallocFromPoolAsync(&x, 100, pool, s));
  int v, type;
  ck_assert_int_eq(cudaMemcpyAsync(&v, (char *)x + 98, 4, CUDA_TO_HOST, s), INVALID_VALUE); /* beyond its end */
  SURE(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (uintptr_t)x));
  ck_assert_int_eq(type, 2);
  ck_assert_int_eq(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (uintptr_t)&v), INVALID_VALUE);
  ck_assert_int_eq(cudaFree(&v), INVALID_VALUE);
}
END_TEST

START_TEST(host_cannot_touch) {
  volatile float *x = device(1);
  printf("%g\n", (double)x[0]);
}
END_TEST

START_TEST(graphs) {
  void *f = kernel(scale), *s = made_stream(), *g, *exec, *n1, *n2;
  float *x = device(1), *y = device(0), *z = device(0), a = 2, b = 3;
  int n = N;
  void *first[] = { &x, &y, &a, &n }, *second[] = { &y, &z, &b, &n };
  nvd_node_params p = { .function = f, .grid = { 8, 1, 1 }, .block = { 128, 1, 1 }, .param = first };
  SURE(cuGraphCreate(&g, 0));
  SURE(cuGraphAddKernelNode(&n1, g, NULL, 0, &p));
  p.param = second;
  SURE(cuGraphAddKernelNode(&n2, g, &n1, 1, &p));
  SURE(cuGraphInstantiateWithFlags(&exec, g, 0));
  SURE(cuGraphLaunch(exec, s));
  b = 5;
  SURE(cuGraphExecKernelNodeSetParams(exec, n2, &p)); /* for later launches alone */
  ck_assert(at(z, 10, s) == 60);
  SURE(cuGraphLaunch(exec, s));
  SURE(cuGraphExecDestroy(exec));
  ck_assert(at(z, 10, s) == 100);
  SURE(cuGraphDestroy(g));
  p.block[0] = 256; /* beyond the launch bounds */
  SURE(cuGraphCreate(&g, 0));
  ck_assert_int_eq(cuGraphAddKernelNode(&n1, g, NULL, 0, &p), INVALID_VALUE);
}
END_TEST

START_TEST(captures) {
  void *f = kernel(scale), *s = made_stream(), *t = made_stream(), *g, *exec, *event, *x2;
  float *x = device(1), *y = device(0), *z = device(0);
  int status;
  SURE(cudaEventCreateWithFlags(&event, CUDA_EVENT_NO_TIMING));
  for (int joined = 0; joined < 2; joined++) {
    SURE(cudaStreamBeginCapture(s, 0));
    run_scale(f, x, y, 7, s);
    SURE(cudaEventRecord(event, s));
    SURE(cudaStreamWaitEvent(t, event, 0));
    run_scale(f, y, z, 2, t);
    SURE(cudaStreamIsCapturing(t, &status));
    ck_assert_int_eq(status, 1);
    ck_assert_int_eq(cudaEventQuery(event), CAPTURED_EVENT);
    SURE(cudaEventRecord(event, t));
    if (joined) SURE(cudaStreamWaitEvent(s, event, 0));
    ck_assert_int_eq(cudaStreamEndCapture(s, &g), joined ? OK : CAPTURE_UNJOINED);
  }
  SURE(cuGraphInstantiateWithFlags(&exec, g, 0));
  SURE(cuGraphLaunch(exec, s));
  ck_assert(at(z, 10, s) == 140);
  SURE(cudaStreamBeginCapture(s, 0));
  ck_assert_int_eq(cudaMalloc(&x2, 4), CAPTURE_UNSUPPORTED);
  ck_assert_int_eq(cudaStreamEndCapture(s, &g), CAPTURE_INVALIDATED);
  SURE(cudaStreamBeginCapture(s, 0));
  ck_assert_int_eq(cudaStreamSynchronize(s), CAPTURE_UNSUPPORTED);
  ck_assert_int_eq(cudaStreamEndCapture(s, &g), CAPTURE_INVALIDATED);
  int relaxed = CUDA_CAPTURE_RELAXED;
  SURE(cudaStreamBeginCapture(s, 0));
  SURE(cudaThreadExchangeStreamCaptureMode(&relaxed));
  SURE(cudaMalloc(&x2, 4));
  SURE(cudaThreadExchangeStreamCaptureMode(&relaxed));
  SURE(cudaStreamEndCapture(s, &g));
}
END_TEST

START_TEST(sources_that_fail) {
  char log[4096];
  void *m;
  ck_assert_int_eq(
      build(&m, "// prelude\n#error\n// end of prelude\n__global__ void k() {\n  int x = y;\n}\n", log, sizeof log), 6);
  ck_assert_msg(strstr(log, "test.cu(5): error: ") != NULL, "%s", log);
}
END_TEST

/* Every function of the prelude that sources carry has its double here. */
START_TEST(prelude_is_whole) {
  static char real[1 << 16], ours[1 << 16];
  FILE *f = fopen("lib/codegen/cuda/prelude.cu", "rb"), *g = fopen("tests/emu/prelude.h", "rb");
  ck_assert_msg(f && g, "this test runs in the root of the sources");
  ck_assert(fread(real, 1, sizeof real - 1, f) > 0 && fread(ours, 1, sizeof ours - 1, g) > 0);
  int n = 0;
  for (char *p = real; (p = strstr(p, " nv_")); p++) {
    size_t length = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");
    char name[64];
    if (p[1 + length] != '(') continue;
    snprintf(name, sizeof name, "%.*s(", (int)length + 1, p);
    ck_assert_msg(strstr(ours, name) != NULL, "tests/emu/prelude.h has no%s", name);
    n++;
  }
  ck_assert_int_gt(n, 20);
  fclose(f);
  fclose(g);
}
END_TEST

int main(void) {
  if (system("g++ --version > /dev/null 2>&1") != 0)
    return puts("skipped: no g++, which the emulator compiles kernels with"), 77;
  return RUN_SUITE("emulator", order, meetings, clusters, kernels_that_fail, overlaps, memory_is_closed, graphs,
                   captures, sources_that_fail, prelude_is_whole, RAISES(host_cannot_touch, SIGSEGV));
}
