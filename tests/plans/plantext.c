/* A hand tool: the plan of a graph's text (what NVM_DUMP=graph shows) for a machine of the table of device facts, with
   the text of every kernel and what schedtime needs to run it:  plantext FILE.graph [h200 | cpu16 | ...] [-c]
   Its status says whether every kernel is legal and, for a GPU, can be spelled; NVM_DUMP=cuda shows how. -c: and what
   NVRTC makes of each, and of its baseline code if it has any, with the processor time of some compiles in a process
   that has compiled before, the median and the least. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../benchmarks/timing.h"
#include "base/caps.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "codegen/cuda/cuda.h"
#include "fusion/plan.h"

enum { ROUNDS = 11 };
typedef struct job { const char *file, *text; const nvb_caps *caps; int compiles; } job;

static void values(nvb_text *t, const nvf_plan *p, const nvf_step *s) {
  nvb_puts(t, "# schedtime:");
  for (int i = 0; i < s->k->nparam; i++) {
    const nvf_param *x = &s->k->param[i];
    uint64_t bits = s->bind[i].bits;
    if (x->kind == NVF_BUFFER)
      nvb_print(t, " %s=%lld", x->name, (long long)(p->buf[s->bind[i].buf].bytes / nvg_size(x->type)));
    else if (x->kind == NVF_SIZE || nvg_class_of(x->type) < NVG_FLOAT)
      nvb_print(t, " %s=%lld", x->name, (long long)bits);
    else nvb_print(t, " %s=%.17g", x->name, nvg_bits_float(x->type, bits));
  }
  nvb_puts(t, "\n");
}

static double processor_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void compile(nvb_arena *a, int step, const char *source, const nvc_cuda_target *t) {
  int (*by)(nvc_cubin *, const char *, const char *, int) = t->baseline ? nvc_nvrtc_compile_quick : nvc_nvrtc_compile;
  double ms[ROUNDS], least = 1e9;
  nvc_cubin c;
  for (int r = -1; r < ROUNDS; r++) { /* the first one opens the library */
    double start = processor_ms();
    if (by(&c, source, "kernel", t->arch)) nvb_throw(a, nvb_status(), "%s", nvb_message());
    if (r >= 0) ms[r] = processor_ms() - start, least = ms[r] < least ? ms[r] : least;
    nvb_free(c.bytes);
  }
  printf("# step %d%s: compiled in %.1f ms (%.1f at best), %zu bytes, %d registers, %d bytes of spills\n", step,
         t->baseline ? ", compact" : "", median(ms, ROUNDS), least, c.n, c.registers, c.spills);
}

typedef struct compact { const nvf_step *s; int step, arch; } compact;
static void compile_compact(nvb_arena *a, void *arg) {
  compact *c = arg;
  nvc_cuda_kernel k;
  nvc_cuda_target t = { .arch = c->arch, .baseline = 1 };
  nvc_cuda_emit(a, &k, c->s->k, c->s->s, &t);
  nvb_dump("cuda", c->s->k->title, k.source);
  compile(a, c->step, k.source, &t);
}

static void show(nvb_arena *a, void *arg) {
  job *j = arg;
  nvb_text t = { .arena = a };
  nvf_options o = { .fuse = 1 };
  nvf_plan *p = nvf_fuse(a, nvg_graph_parse(a, j->text, j->file), j->caps, &o);
  nvf_plan_explain(&t, p);
  for (int i = 0; i < p->nstep; i++) {
    nvb_print(&t, "\n# step %d: %lld blocks\n", i, (long long)p->step[i].blocks);
    values(&t, p, &p->step[i]);
    nvf_kernel_print(&t, p->step[i].k);
    nvf_schedule_print(&t, p->step[i].k, p->step[i].s, "gpu");
  }
  fputs(nvb_text_get(&t), stdout);
  for (int i = 0; i < p->nstep; i++) {
    nvc_cuda_kernel k;
    nvc_cuda_target t = { .arch = j->caps->cluster > 1 ? 90 : 80 };
    nvf_kernel_check(a, p->step[i].k, p->step[i].s);
    if (j->caps->kind != NVB_CUDA) continue;
    nvc_cuda_emit(a, &k, p->step[i].k, p->step[i].s, &t);
    nvb_dump("cuda", p->step[i].k->title, k.source);
    if (!j->compiles) continue;
    compile(a, i, k.source, &t);
    if (nvb_protect(a, compile_compact, &(compact){ &p->step[i], i, t.arch }))
      printf("# step %d has no baseline code: %s\n", i, nvb_message());
  }
}

int main(int argc, char **argv) {
  FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
  char *text = f ? calloc(1, 1 << 20) : NULL;
  int compiles = argc > 2 && strcmp(argv[argc - 1], "-c") == 0;
  job j = { argc > 1 ? argv[1] : "", text, nvb_caps_find(argc - compiles > 2 ? argv[2] : "h200"), compiles };
  if (!text || !fread(text, 1, (1 << 20) - 1, f) || !j.caps)
    return fprintf(stderr, "plantext FILE.graph [h200 | cpu16] [-c]\n"), 2;
  nvb_arena *a = nvb_arena_new();
  int status = nvb_protect(a, show, &j);
  if (status) fprintf(stderr, "%s\n", nvb_message());
  nvb_arena_free(a);
  free(text);
  fclose(f);
  return status != 0;
}
