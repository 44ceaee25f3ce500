/* What a call costs on a GPU, from C: one line "name microseconds" each. The functions are ten cheap operations and the
   first row of the benchmarks, on 4,096 floats.   issue: the call returns, the queue being empty; back_to_back: many
   calls, one wait; and_wait: a call and its wait; first: trace, plan, compile (or load) and run.   driver: the least
   that a call can take, the driver's own launch of a graph with one kernel.   cc -O2 gpu_latency.c -lnvm -ldl */
#include <dlfcn.h>
#include <nvm/nvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "timing.h"

enum { N = 4096, ROUNDS = 41, BATCH = 16, MANY = 5000 };
static nvm_ctx *ctx;

static void need(int status) {
  if (status) fprintf(stderr, "%s\n", nvm_last_error()), exit(1);
}

static int ten(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  nvm_array *x = in[0], *y = nvm_add(x, nvm_float(1));
  for (int i = 0; i < 9; i++)
    y = i % 4 == 0   ? nvm_mul(y, x)
        : i % 4 == 1 ? nvm_sub(y, nvm_float(0.5))
        : i % 4 == 2 ? nvm_maximum(y, x)
                     : nvm_mul(y, nvm_float(0.25));
  out[0] = y;
  return NVM_OK;
}
static int seed(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  nvm_array *a = nvm_mul(nvm_sin(in[0]), nvm_cos(in[1])), *b = nvm_exp(nvm_neg(nvm_mul(in[2], in[2])));
  out[0] = nvm_sqrt(nvm_add(nvm_add(a, b), nvm_log(nvm_add(in[0], nvm_float(1)))));
  return NVM_OK;
}

static void measure(const char *name, nvm_trace_fn trace, int nin, nvm_array *const *in) {
  double issue[ROUNDS], many[ROUNDS], wait[ROUNDS];
  nvm_array *out;
  nvm_fn *f;
  need(nvm_fn_new(&f, ctx, trace, NULL, nin, 1));
  double first = now();
  need(nvm_fn_call(f, in, &out));
  need(nvm_synchronize(ctx));
  printf("%s_first %.1f\n", name, now() - first);
  nvm_array_unref(out);
  for (int r = 0; r < ROUNDS; r++) {
    double t = now();
    for (int i = 0; i < MANY; i++) {
      need(nvm_fn_call(f, in, &out));
      nvm_array_unref(out);
    }
    need(nvm_synchronize(ctx));
    many[r] = (now() - t) / MANY;
    t = now();
    for (int i = 0; i < BATCH; i++) {
      need(nvm_fn_call(f, in, &out));
      nvm_array_unref(out);
    }
    issue[r] = (now() - t) / BATCH;
    need(nvm_synchronize(ctx));
    t = now();
    for (int i = 0; i < BATCH; i++) {
      need(nvm_fn_call(f, in, &out));
      need(nvm_synchronize(ctx));
      nvm_array_unref(out);
    }
    wait[r] = (now() - t) / BATCH;
  }
  printf("%s_issue %.3f\n%s_back_to_back %.3f\n%s_and_wait %.3f\n", name, median(issue, ROUNDS), name,
         median(many, ROUNDS), name, median(wait, ROUNDS));
  nvm_fn_free(f);
}

/* ---- the least that a call can take: the driver's own launch of a graph with one kernel */
static const char ptx[] =
  ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x) {\n.reg .u64 %a; "
  ".reg .u32 %i, %j; .reg .u64 %o; .reg .f32 %f;\n"
  "ld.param.u64 %a, [x]; cvta.to.global.u64 %a, %a; mov.u32 %i, %ctaid.x; mov.u32 %j, %tid.x; "
  "mad.lo.u32 %i, %i, 128, %j;\n"
  "mul.wide.u32 %o, %i, 4; add.u64 %a, %a, %o; ld.global.f32 %f, [%a]; add.f32 %f, %f, %f; st.global.f32 [%a], %f; "
  "ret;\n}\n";
typedef struct node { void *function; unsigned grid[3], block[3], shared; void **param, **extra;
                      void *kernel, *context; } node;
static void driver(void) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *stream, *graph, *exec, *at;
  int device, error = 0;
  uint64_t x;
  if (!lib) return;
#define CALL(name, ...) ({ int (*f)() = (int (*)())dlsym(lib, name); f ? f(__VA_ARGS__) : 1; })
  error = CALL("cuInit", 0) || CALL("cuDeviceGet", &device, 0) || CALL("cuDevicePrimaryCtxRetain", &context, device) ||
          CALL("cuCtxSetCurrent", context) || CALL("cuModuleLoadData", &module, ptx) ||
          CALL("cuStreamCreate", &stream, 1u) || CALL("cuMemAlloc_v2", &x, (size_t)4 * N) ||
          CALL("cuGraphCreate", &graph, 0u);
  node k = { .grid = { N / 128, 1, 1 }, .block = { 128, 1, 1 }, .param = (void *[]){ &x } };
  error = error || CALL("cuModuleGetFunction", &k.function, module, "k") ||
          CALL("cuGraphAddKernelNode_v2", &at, graph, NULL, (size_t)0, &k) ||
          CALL("cuGraphInstantiateWithFlags", &exec, graph, 0ull);
  int (*launch)(void *, void *) = (int (*)(void *, void *))dlsym(lib, "cuGraphLaunch"),
                             (*wait)(void *) = (int (*)(void *))dlsym(lib, "cuStreamSynchronize");
  double issue[ROUNDS], many[ROUNDS], t;
  for (int r = 0; r < ROUNDS && !error; r++) {
    t = now();
    for (int i = 0; i < MANY; i++) error |= launch(exec, stream);
    error |= wait(stream);
    many[r] = (now() - t) / MANY;
    t = now();
    for (int i = 0; i < BATCH; i++) error |= launch(exec, stream);
    issue[r] = (now() - t) / BATCH;
    error |= wait(stream);
  }
  if (!error) printf("driver_issue %.3f\ndriver_back_to_back %.3f\n", median(issue, ROUNDS), median(many, ROUNDS));
}

int main(int argc, char **argv) {
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  int64_t n = N;
  float x[N];
  nvm_array *in[3];
  need(nvm_device_find(&o.device, argc > 1 ? argv[1] : "cuda:0"));
  need(nvm_ctx_new(&ctx, &o));
  nvm_scope *s = nvm_scope_open(ctx);
  for (int i = 0; i < N; i++) x[i] = (float)(i % 1000) * 1e-3f;
  for (int i = 0; i < 3; i++) {
    in[i] = nvm_to_device(nvm_from_host(ctx, NVM_F32, 1, &n, x), o.device);
    need(nvm_eval(&in[i], 1));
  }
  measure("ten", ten, 1, in);
  measure("seed", seed, 3, in);
  if (argc < 2 || strncmp(argv[1], "cpu", 3)) driver();
  nvm_scope_close(s);
  nvm_ctx_free(ctx);
  return 0;
}
