/* A bench for kernel texts: parses FILE.kir and shows what the library makes of it, one schedule after the other.
   texttool FILE.kir [check | print | cuda | llvm] [SCHEDULE...]
     check   whether each schedule is legal, or the message of the first rule that it breaks
     print   the kernel and its schedules as the library prints them
     cuda    CUDA C++ for compute capability 9.0
     llvm    LLVM IR for this CPU, optimised
   SCHEDULE is the beginning of a name; without one all are shown. The status is 1 if one of them cannot be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "codegen/codegen.h"
#include "codegen/cuda/cuda.h"

enum { SIZE = 1 << 20 };
typedef struct request {
  const char *file, *what;
  char *text, **name; /* name: beginnings of schedules' names, NULL at the end */
  int failed, shown;
  const nvf_kernel *k; /* the schedule at hand */
  const nvf_schedule *s;
  const char *schedule; /* its name */
} request;

static void show_schedule(nvb_arena *a, void *arg) {
  request *r = arg;
  nvf_kernel_check(a, r->k, r->s);
  if (strcmp(r->what, "cuda") == 0) {
    nvc_cuda_kernel out;
    nvc_cuda_emit(a, &out, r->k, r->s, &(nvc_cuda_target){ .arch = 90 });
    printf("// schedule %s\n%s\n", r->schedule, out.source);
  } else if (strcmp(r->what, "llvm") == 0) {
    nvc_object o;
    if (nvc_compile(&o, r->k, r->s, nvc_target_host(), 0)) nvb_throw(a, nvb_status(), "%s", nvb_message());
    nvb_free(o.bytes);
  } else printf("%s: legal\n", r->schedule);
}

static int is_asked_for(const request *r, const char *name) {
  int found = !*r->name;
  for (char **at = r->name; *at; at++) found |= strncmp(name, *at, strlen(*at)) == 0;
  return found;
}

static void show_text(nvb_arena *a, void *arg) {
  request *r = arg;
  nvf_kernel *k = nvf_kernel_parse(a, r->text, r->file);
  nvb_text t = { .arena = a };
  int prints = strcmp(r->what, "print") == 0;
  if (prints) nvf_kernel_print(&t, k);
  for (int i = 0; i < k->nsched; i++) {
    if (!is_asked_for(r, k->sched_name[i])) continue;
    r->shown++;
    r->k = k, r->s = k->sched[i], r->schedule = k->sched_name[i];
    if (prints) {
      nvf_schedule_print(&t, k, r->s, k->sched_name[i]);
      continue;
    }
    if (nvb_protect(a, show_schedule, r)) r->failed = 1, printf("%s: %s\n", r->schedule, nvb_message());
  }
  if (prints) puts(nvb_text_get(&t));
}

int main(int argc, char **argv) {
  static const char *const words[] = { "check", "print", "cuda", "llvm" };
  request r = {
    .file = argc > 1 ? argv[1] : "", .what = "check", .name = argv + (argc > 1 ? 2 : 1), .text = calloc(1, SIZE)
  };
  for (int i = 0; i < 4 && argc > 2; i++)
    if (strcmp(argv[2], words[i]) == 0) r.what = words[i], r.name = argv + 3;
  FILE *f = fopen(r.file, "r");
  if (!f || !r.text || !fread(r.text, 1, SIZE - 1, f))
    return fprintf(stderr, "texttool FILE.kir [check | print | cuda | llvm] [SCHEDULE...]\n"), 2;
  fclose(f);
  if (strcmp(r.what, "llvm") == 0) nvb_set("dump", "llvm");
  nvb_arena *a = nvb_arena_new();
  if (nvb_protect(a, show_text, &r)) r.failed = 1, fprintf(stderr, "%s\n", nvb_message());
  else if (!r.shown) r.failed = 1, fprintf(stderr, "%s has no such schedule\n", r.file);
  nvb_arena_free(a);
  free(r.text);
  return r.failed;
}
