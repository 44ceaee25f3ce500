/* What a call costs on a GPU, from C: one line "name microseconds" each. The functions are ten cheap operations and the
   first row of the benchmarks, on 4,096 floats.   issue: the call returns, the queue being empty; back_to_back: many
   calls, one wait; and_wait: a call and its wait; first: trace, plan, compile (or load) and run.   driver: the least
   that a call can take, the driver's own launch of a graph with one kernel.   All of them take turns, each turn on the
   next processor: what else a machine does slows some for minutes. Medians of all turns, and, as calm_..., of those on
   the processor where the driver was quickest.   cc -O2 gpu_latency.c -lnvm -ldl */
#define _GNU_SOURCE /* sched_setaffinity */
#include <dlfcn.h>
#include <nvm/nvm.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "timing.h"

enum { N = 4096, ROUNDS = 80, BATCH = 16, BATCHES = 9, MANY = 4000 };
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

/* What is called: `of` a function of nvm or a launch of the driver, and its times in each round. */
typedef struct subject {
  const char *name;
  void (*call)(void *of), (*wait)(void *of);
  void *of;
  double issue[ROUNDS], many[ROUNDS], waited[ROUNDS];
} subject;

typedef struct function { nvm_fn *f; nvm_array *const *in; } function;
static void function_call(void *of) {
  function *f = of;
  nvm_array *out;
  need(nvm_fn_call(f->f, f->in, &out));
  nvm_array_unref(out);
}
static void function_wait(void *of) {
  (void)of;
  need(nvm_synchronize(ctx));
}
static subject *first(subject *s, const char *name, nvm_trace_fn trace, int nin, nvm_array *const *in) {
  static function f[2];
  static int n;
  function *of = &f[n++];
  *of = (function){ .in = in };
  *s = (subject){ .name = name, .call = function_call, .wait = function_wait, .of = of };
  need(nvm_fn_new(&of->f, ctx, trace, NULL, nin, 1));
  double t = now();
  s->call(of), s->wait(of);
  printf("%s_first %.1f\n", name, now() - t);
  return s + 1;
}

static double calls(subject *s, int n, void (*wait)(void *)) {
  double t = now();
  for (int i = 0; i < n; i++) {
    s->call(s->of);
    if (wait) wait(s->of);
  }
  return (now() - t) / n;
}
static void turn(subject *s, int r) {
  double t = now();
  calls(s, MANY, NULL);
  s->wait(s->of);
  s->many[r] = (now() - t) / MANY;
  double issue[BATCHES];
  for (int i = 0; i < BATCHES; i++) {
    issue[i] = calls(s, BATCH, NULL);
    s->wait(s->of);
  }
  s->issue[r] = median(issue, BATCHES);
  s->waited[r] = calls(s, BATCH, s->wait);
}

/* The r-th processor of those that this process may use, in a ring. */
static void move(const cpu_set_t *all, int r) {
  cpu_set_t one;
  int cpu = -1;
  for (r %= CPU_COUNT(all); r >= 0; r--) do
      cpu++;
    while (!CPU_ISSET(cpu, all));
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/* The median of the turns that were on processor p of so many. */
static double on(const double *times, int cpus, int p) {
  double t[ROUNDS];
  int n = 0;
  for (int r = p; r < ROUNDS; r += cpus) t[n++] = times[r];
  return median(t, n);
}
static void say(const char *how, const subject *s, int cpus, int p) {
  printf("%s%s_issue %.3f\n%s%s_back_to_back %.3f\n%s%s_and_wait %.3f\n", how, s->name, on(s->issue, cpus, p), how,
         s->name, on(s->many, cpus, p), how, s->name, on(s->waited, cpus, p));
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
  void *kernel, *context;
} node;
typedef struct launch { int (*launch)(void *, void *), (*wait)(void *); void *exec, *stream; } launch;
static void launch_call(void *of) {
  launch *l = of;
  l->launch(l->exec, l->stream);
}
static void launch_wait(void *of) {
  launch *l = of;
  l->wait(l->stream);
}
static subject *driver(subject *s) {
  static launch l;
  void *lib = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *graph, *at;
  int device;
  uint64_t x;
  if (!lib) return s;
#define CALL(name, ...) ({ int (*f)() = (int (*)())dlsym(lib, name); f ? f(__VA_ARGS__) : 1; })
  int error = CALL("cuInit", 0) || CALL("cuDeviceGet", &device, 0) ||
              CALL("cuDevicePrimaryCtxRetain", &context, device) || CALL("cuCtxSetCurrent", context) ||
              CALL("cuModuleLoadData", &module, ptx) || CALL("cuStreamCreate", &l.stream, 1u) ||
              CALL("cuMemAlloc_v2", &x, (size_t)4 * N) || CALL("cuGraphCreate", &graph, 0u);
  node k = { .grid = { N / 128, 1, 1 }, .block = { 128, 1, 1 }, .param = (void *[]){ &x } };
  error = error || CALL("cuModuleGetFunction", &k.function, module, "k") ||
          CALL("cuGraphAddKernelNode_v2", &at, graph, NULL, (size_t)0, &k) ||
          CALL("cuGraphInstantiateWithFlags", &l.exec, graph, 0ull);
  l.launch = (int (*)(void *, void *))dlsym(lib, "cuGraphLaunch");
  l.wait = (int (*)(void *))dlsym(lib, "cuStreamSynchronize");
  *s = (subject){ .name = "driver", .call = launch_call, .wait = launch_wait, .of = &l };
  return error ? s : s + 1;
}

int main(int argc, char **argv) {
  static subject s[3];
  subject *end = s;
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  int64_t n = N;
  float x[N];
  nvm_array *in[3];
  cpu_set_t all;
  need(nvm_device_find(&o.device, argc > 1 ? argv[1] : "cuda:0"));
  need(nvm_ctx_new(&ctx, &o));
  nvm_scope *scope = nvm_scope_open(ctx);
  for (int i = 0; i < N; i++) x[i] = (float)(i % 1000) * 1e-3f;
  for (int i = 0; i < 3; i++) {
    in[i] = nvm_to_device(nvm_from_host(ctx, NVM_F32, 1, &n, x), o.device);
    need(nvm_eval(&in[i], 1));
  }
  end = first(end, "ten", ten, 1, in);
  end = first(end, "seed", seed, 3, in);
  end = argc < 2 || strncmp(argv[1], "cpu", 3) ? driver(end) : end;
  sched_getaffinity(0, sizeof all, &all);
  for (int r = 0; r < ROUNDS; r++) {
    move(&all, r);
    for (subject *i = s; i < end; i++) turn(i, r);
  }
  int cpus = CPU_COUNT(&all) < ROUNDS ? CPU_COUNT(&all) : ROUNDS, calm = 0;
  for (int p = 1; p < cpus; p++)
    if (on(end[-1].issue, cpus, p) < on(end[-1].issue, cpus, calm)) calm = p;
  for (subject *i = s; i < end; i++) {
    say("", i, 1, 0);
    say("calm_", i, cpus, calm);
  }
  for (subject *i = s; i < end && i->call == function_call; i++) nvm_fn_free(((function *)i->of)->f);
  nvm_scope_close(scope);
  nvm_ctx_free(ctx);
  return 0;
}
