/* A hand tool: the plan of a graph's text (what NVM_DUMP=graph shows) for a machine of the table of device facts, with
   the text of every kernel and what schedtime needs to run it:  plantext FILE.graph [h200 | cpu16 | ...] Its status
   says whether every kernel is legal and, for a GPU, can be spelled. */
#include <stdio.h>
#include <stdlib.h>
#include "base/caps.h"
#include "base/err.h"
#include "codegen/cuda.h"
#include "fusion/plan.h"

typedef struct job { const char *file, *text; const nvb_caps *caps; } job;

static void values(nvb_text *t, const nvf_plan *p, const nvf_step *s) {
  nvb_puts(t, "# schedtime:");
  for (int i = 0; i < s->k->nparam; i++) {
    const nvf_param *x = &s->k->param[i];
    uint64_t bits = s->bind[i].bits;
    if (x->kind == NVF_BUFFER)
      nvb_print(t, " %s=%lld", x->name, (long long)(p->buf[s->bind[i].buf].bytes / nvg_size(x->type)));
    else if (x->kind == NVF_SIZE || nvg_class_of(x->type) < NVG_FLOAT)
      nvb_print(t, " %s=%lld", x->name, (long long)bits);
    else
      nvb_print(t, " %s=%.17g", x->name, nvg_bits_float(x->type, bits));
  }
  nvb_puts(t, "\n");
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
    nvf_kernel_check(a, p->step[i].k, p->step[i].s);
    if (j->caps->kind == NVB_CUDA)
      nvc_cuda_emit(a, &k, p->step[i].k, p->step[i].s, &(nvc_cuda_target){ .arch = j->caps->cluster > 1 ? 90 : 80 });
  }
}

int main(int argc, char **argv) {
  FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
  char *text = f ? calloc(1, 1 << 20) : NULL;
  job j = { argc > 1 ? argv[1] : "", text, nvb_caps_find(argc > 2 ? argv[2] : "h200") };
  if (!text || !fread(text, 1, (1 << 20) - 1, f) || !j.caps)
    return fprintf(stderr, "plantext FILE.graph [h200 | cpu16]\n"), 2;
  nvb_arena *a = nvb_arena_new();
  int status = nvb_protect(a, show, &j);
  if (status)
    fprintf(stderr, "%s\n", nvb_message());
  nvb_arena_free(a);
  free(text);
  fclose(f);
  return status != 0;
}
