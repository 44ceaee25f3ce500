/* The gate's way through CUDA C++: one schedule of the CPU interpreted, then schedules emitted, compiled by the
   emulator's NVRTC and run by its executor, with 32-bit and 64-bit indices in turn: those for GPUs, of the others the
   first, and the last where there are none for GPUs (lanes that a layout does not use hold copies). */
#ifndef GATE_CUDA_H
#define GATE_CUDA_H
#include "codegen/cuda/cuda.h"
#include "../emu/exec.h"

static int gate_quiet; /* sources that fail are not printed */

typedef struct gate_launch { const nvc_cuda_kernel *k; const emu_kernel *f; int narg; } gate_launch;

/* What a launch passes for TMA (lib/dispatch/cuda/tensor_map.c), as the emulator has it */
static inline void *gate_map(const nvc_cuda_map *m, const uint64_t *args, uint64_t *to) {
  int size = nvg_size((nvm_dtype)m->type);
  emu_map e = { .rank = m->rank, .size = size, .span = m->swizzle };
  e.address = (char *)(uintptr_t)args[m->param] + nvc_poly_value(&m->offset, args) * size;
  for (int i = 0; i < m->rank; i++) {
    e.extent[i] = nvc_poly_value(&m->extent[i], args);
    e.stride[i] = nvc_poly_value(&m->stride[i], args) * size;
    e.box[i] = m->box[i];
    ck_assert_msg(!i || e.stride[i] % 16 == 0, "a row of %lld bytes for TMA", e.stride[i]);
  }
  ck_assert_msg((uintptr_t)e.address % 16 == 0, "an address for TMA that is no multiple of 16");
  memcpy(to, &e, sizeof e);
  return to;
}

static inline int gate_on_gpu(const gate_way *w, const uint64_t *args, int64_t blocks, char *scratch) {
  const gate_launch *l = w->other;
  void *param[GATE_ARGS + 3 + NVC_MAPS];
  _Alignas(64) uint64_t map[NVC_MAPS][16];
  int n = l->narg, failed = 0, *slot = &failed;
  char *workspace = scratch; /* of all blocks */
  for (int i = 0; i < n; i++) param[i] = (void *)(uintptr_t)&args[i];
  if (l->k->scratch && !(workspace = malloc((size_t)(blocks * l->k->scratch) + 1))) return -1;
  if (l->k->checks) param[n++] = &slot;
  if (l->k->scratch) param[n++] = &workspace;
  int64_t nposts = l->k->flags ? NVC_FLAGS + blocks * l->k->flags : 0;
  unsigned *posts = calloc((size_t)nposts + 1, sizeof *posts);
  if (nposts) param[n++] = &posts;
  for (int i = 0; i < l->k->nmap; i++) param[n++] = gate_map(&l->k->map[i], args, map[i]);
  ck_assert_int_eq(n, l->f->nparam);
  int error = !blocks ? 0
                      : emu_execute(l->f, (emu_dim){ (unsigned)(blocks * l->k->cluster), 1, 1 },
                                    (emu_dim){ (unsigned)l->k->threads, 1, 1 }, (size_t)l->k->shared, param, NULL);
  if (error && !gate_quiet) printf("%s\n", l->k->source);
  ck_assert_msg(!error, "%s", emu_error());
  for (int64_t i = 0; i < nposts; i++) ck_assert_msg(!posts[i], "post %lld was not taken", (long long)i);
  free(posts);
  if (l->k->scratch) free(workspace);
  return failed;
}

typedef struct gate_emission { nvc_cuda_kernel out; const nvf_kernel *k; const nvf_schedule *s;
  int wide;
} gate_emission;

static inline void gate_emit(nvb_arena *a, void *arg) {
  gate_emission *e = arg;
  nvc_cuda_emit(a, &e->out, e->k, e->s, &(nvc_cuda_target){ 90, e->wide, 0 });
}

static inline void gate_emulate(nvb_arena *a, gate_job *j, nvf_schedule *s, const char *name, int wide) {
  gate_emission made = { .k = j->k, .s = s, .wide = wide };
  nvc_cubin cubin;
  int status = nvb_protect(a, gate_emit, &made);
  if (gate_refused(j->g, status)) return;
  ck_assert_msg(status == NVM_OK, "%s: %s: %s", j->g->file, name, nvb_message());
  nvc_cuda_kernel k = made.out;
  if (getenv("GATE_SHOW")) printf("%s\n", k.source);
  ck_assert_msg(nvc_nvrtc_compile(&cubin, k.source, j->k->title, 90) == NVM_OK, "%s: %s: %s", j->g->file, name,
                nvb_message());
  emu_module *m = emu_module_load(cubin.bytes);
  ck_assert_msg(m != NULL, "%s", emu_error());
  gate_launch l = { &k, emu_module_kernel(m, "nvm_kernel"), j->k->nparam };
  ck_assert(l.f != NULL);
  gate_way way = { wide ? "CUDA, 64 bits" : "CUDA", 0, gate_on_gpu, NULL, NULL, &l };
  for (uint64_t seed = 0; seed < 3; seed += 2) { /* of the order of threads: two, so that a race is seen */
    emu_seed(seed);
    gate_call(j, s, name, &way);
  }
  emu_module_unload(m);
  nvb_free(cubin.bytes);
}

static inline int gate_runs(const gate_job *j) {
  return 1 + 2 * (j->k->nsched > 1 ? 2 : 1);
} /* if all are of the CPU */

/* Before the first use of the library's settings. */
static inline int gate_emulator(void) {
  if (system("g++ --version > /dev/null 2>&1") != 0)
    return puts("skipped: no g++, which the emulator compiles kernels with"), 0;
  if (!getenv("NVM_EMU_DIR")) return puts("skipped: NVM_EMU_DIR does not say where the emulator is"), 0;
  setenv("NVM_CUDA_DIR", getenv("NVM_EMU_DIR"), 1);
  return 1;
}

static inline void gate_work(nvb_arena *a, void *arg) {
  gate_job *j = arg;
  j->k = nvf_kernel_parse(a, j->text, j->g->file);
  int any = 0;
  for (int i = 0; i < j->k->nsched; i++) any |= gate_for_gpu(j->g, j->k->sched_name[i]);
  for (int i = 0, n = 0; i < j->k->nsched; i++) {
    const char *name = j->k->sched_name[i];
    int for_gpu = gate_for_gpu(j->g, name);
    if (!for_gpu && strncmp(name, j->g->prefix, strlen(j->g->prefix)) != 0) continue;
    if (!j->runs) gate_interpret(a, j, j->k->sched[i], name);
    if (for_gpu || n == 0 || (!any && i == j->k->nsched - 1)) gate_emulate(a, j, j->k->sched[i], name, n % 2);
    n++;
  }
}
#endif
