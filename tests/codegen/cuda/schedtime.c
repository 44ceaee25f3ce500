/* A hand tool: times every schedule of a kernel text for GPUs (or those whose names begin with NAME) on the first GPU,
   beside a copy of as many bytes, and compares each result with the first one's. Build it, carry it to a machine with a
   GPU, run
     schedtime FILE.kir n=8192 rows=16384 x=rows*n y=rows*n [-r ROUNDS] [-k NAME]... [-s] [-v]
   where each size, scalar and buffer (in elements) of the kernel has a value: numbers and earlier names, multiplied.
   -s: data of both signs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../../benchmarks/timing.h"
#include "base/err.h"
#include "base/mem.h"
#include "codegen/cuda/cuda.h"
#include "dispatch/cuda/device.h"
#include "frag/dtype.h"

enum { MOST = 64, BATCH = 8, VARIANTS = 128 };
typedef struct setting { char name[64]; double value; } setting;
static setting known[MOST];
static int nknown, rounds = 7, verbose, both_signs, nonly;
static const char *only[MOST];

static _Noreturn void give_up(const char *what) {
  fprintf(stderr, "%s: %s\n", what, nvb_message());
  exit(1);
}
static double value_of(const char *s) {
  double v = 1;
  for (char *end; *s; s = *end == '*' ? end + 1 : end) {
    double x = strtod(s, &end);
    if (end == s) {
      size_t n = strcspn(s, "*");
      int i = 0;
      while (i < nknown && (strlen(known[i].name) != n || strncmp(known[i].name, s, n))) i++;
      if (i == nknown) fprintf(stderr, "%s has no value\n", s), exit(2);
      x = known[i].value;
      end = (char *)(uintptr_t)s + n;
    }
    v *= x;
  }
  return v;
}
static double named(const char *name) { return value_of(name); }

/* ---- data: sizes of what is normally distributed, in the buffer's dtype; positive, so that logarithms and roots have
   values */
static void fill(void *p, nvm_dtype t, int64_t n) {
  enum { PERIOD = 1 << 20 };
  uint64_t s = 88172645463325252ull;
  nvm_dtype real = nvg_real_of(t);
  size_t size = (size_t)nvg_size(real);
  n *= nvg_parts(t);
  for (int64_t i = 0; i < n && i < PERIOD; i++) {
    double x = -6;
    for (int k = 0; k < 3; k++) {
      s ^= s << 13, s ^= s >> 7, s ^= s << 17;
      x += (double)(uint32_t)s * 0x1p-30;
    }
    x = x < 0 && !both_signs ? -x : x;
    uint64_t bits = nvg_class_of(real) < NVG_FLOAT ? nvg_int_bits(real, (int64_t)(x * 100)) : nvg_float_bits(real, x);
    memcpy((char *)p + (size_t)i * size, &bits, size);
  }
  for (int64_t i = PERIOD; i < n; i += PERIOD)
    memcpy((char *)p + (size_t)i * size, p, size * (size_t)(n - i < PERIOD ? n - i : PERIOD));
}

typedef struct variant { const char *name; nvd_program *p; double t[64], off; } variant;
typedef struct job {
  const char *text, *file;
  nvf_kernel *k;
  nvf_plan plan;
  variant v[VARIANTS];
  int nv;
  nvd_device *d;
  nvd_operand leaf[MOST], out[MOST];
  nvm_dtype out_type;
  int nleaf, nout;
  int64_t bytes;
} job;

static void bind(nvb_arena *a, job *j, nvf_step *s, uint64_t *args) {
  s->bind = NVB_NEWN(a, nvf_bind, j->k->nparam);
  int leaf = 0, out = 0;
  for (int i = 0; i < j->k->nparam; i++) {
    const nvf_param *p = &j->k->param[i];
    double v = named(p->name);
    s->bind[i].kind = p->kind;
    if (p->kind == NVF_SIZE) args[i] = s->bind[i].bits = (uint64_t)(int64_t)v;
    else if (p->kind == NVF_SCALAR)
      s->bind[i].bits =
          nvg_class_of(p->type) < NVG_FLOAT ? nvg_int_bits(p->type, (int64_t)v) : nvg_float_bits(p->type, v);
    else {
      int id = p->written ? out++ : leaf++;
      j->plan.buf[i] = (nvf_buf){
        .kind = p->written ? NVF_BOUT : NVF_BLEAF, .id = id, .donor = -1, .bytes = (int64_t)v * nvg_size(p->type)
      };
      s->bind[i].buf = i;
    }
  }
}

static int chosen(const char *name) {
  int any = !nonly && strncmp(name, "cpu", 3) != 0;
  for (int i = 0; i < nonly; i++) any |= strncmp(name, only[i], strlen(only[i])) == 0;
  return any;
}

static void prepare(nvb_arena *a, void *arg) {
  job *j = arg;
  j->k = nvf_kernel_parse(a, j->text, j->file);
  j->plan = (nvf_plan){ .arena = a, .nstep = 1, .nbuf = j->k->nparam, .buf = NVB_NEWN(a, nvf_buf, j->k->nparam + 1) };
  for (int i = 0; i < j->k->nsched && j->nv < VARIANTS; i++) {
    if (!chosen(j->k->sched_name[i])) continue;
    variant *v = &j->v[j->nv];
    nvf_step *s = j->plan.step = NVB_NEW(a, nvf_step);
    uint64_t *args = NVB_NEWN(a, uint64_t, j->k->nparam + 1);
    *s = (nvf_step){ .hero = "map", .what = "", .k = j->k, .s = j->k->sched[i], .grain = 1 };
    bind(a, j, s, args);
    s->blocks = nvf_blocks(j->k, s->s, args);
    v->name = j->k->sched_name[i];
    double t = now();
    if (nvd_prepare(&v->p, &j->plan, j->d, NULL, NULL)) printf("%-24s %s\n", v->name, nvb_message());
    else {
      if (verbose)
        printf("%-24s %lld blocks, prepared in %.1f ms\n", v->name, (long long)s->blocks, (now() - t) * 1e-3);
      j->nv++;
    }
  }
}

static void make_data(nvb_arena *a, void *arg) {
  (void)a;
  job *j = arg;
  for (int i = 0; i < j->k->nparam; i++) {
    const nvf_param *p = &j->k->param[i];
    if (p->kind != NVF_BUFFER) continue;
    size_t bytes = (size_t)j->plan.buf[i].bytes;
    nvd_buf *b = nvd_buf_new_on(j->d, bytes);
    void *host = malloc(bytes + 1);
    if (!b || !host) give_up("memory");
    fill(host, p->type, (int64_t)(bytes / (size_t)nvg_size(p->type)));
    if (nvd_upload(b, 0, host, bytes)) give_up("upload");
    free(host);
    nvd_operand o = { b, b->data };
    if (p->written && !j->nout) j->out_type = p->type;
    if (p->written) j->out[j->nout++] = o;
    else j->leaf[j->nleaf++] = o;
    j->bytes += (int64_t)bytes;
  }
}

static double run(job *j, variant *v, int times) {
  double t = now();
  for (int i = 0; i < times; i++)
    if (nvd_run_on(v->p, j->leaf, j->out)) give_up(v->name);
  if (nvd_synchronize(j->d)) give_up(v->name);
  return (now() - t) / times;
}

/* The largest distance, as a part of the larger value or of 1; what is no number where the other is one is far off. */
static double distance(nvm_dtype t, const char *a, const char *b, size_t bytes) {
  nvm_dtype real = nvg_real_of(t);
  size_t size = (size_t)nvg_size(real);
  double most = 0;
  for (size_t i = 0; memcmp(a, b, bytes) && i < bytes; i += size) {
    uint64_t x = 0, y = 0;
    memcpy(&x, a + i, size);
    memcpy(&y, b + i, size);
    if (x == y) continue;
    double p = nvg_class_of(real) < NVG_FLOAT ? (double)x : nvg_bits_float(real, x);
    double q = nvg_class_of(real) < NVG_FLOAT ? (double)y : nvg_bits_float(real, y);
    double scale = 1 + (p < 0 ? -p : p), d = (p < q ? q - p : p - q) / scale;
    most = d > most || d != d ? d : most;
    if (d != d) return d;
  }
  return most;
}

static void check(job *j) {
  size_t n = j->nout ? j->out[0].buf->bytes : 0;
  char *first = malloc(n + 1), *again = malloc(n + 1);
  for (int i = 0; first && again && i < j->nv; i++) {
    memset(again, 0xa5, n);
    nvd_upload(j->out[0].buf, 0, again, n);
    run(j, &j->v[i], 1);
    if (nvd_download(i ? again : first, j->out[0].buf, 0, n)) give_up("download");
    j->v[i].off = i ? distance(j->out_type, first, again, n) : 0;
  }
  free(first);
  free(again);
}

static double copy_time(job *j) {
  size_t n = (size_t)j->bytes / 2;
  nvd_buf *a = nvd_buf_new_on(j->d, n), *b = nvd_buf_new_on(j->d, n);
  double t[9];
  if (!a || !b) give_up("memory for the copy");
  for (int r = 0; r < 9; r++) {
    nvd_synchronize(j->d);
    double at = now();
    for (int i = 0; i < BATCH; i++) nvd_copy_on(b, 0, a, 0, n);
    nvd_synchronize(j->d);
    t[r] = (now() - at) / BATCH;
  }
  nvd_buf_unref(a);
  nvd_buf_unref(b);
  return median(t, 9);
}

static char *contents(const char *path) {
  FILE *f = fopen(path, "r");
  char *s = f ? calloc(1, 1 << 20) : NULL;
  if (!s || !fread(s, 1, (1 << 20) - 1, f)) fprintf(stderr, "%s cannot be read\n", path), exit(2);
  fclose(f);
  return s;
}

int main(int argc, char **argv) {
  static job j;
  for (int i = 2; i < argc; i++) {
    char *eq = strchr(argv[i], '=');
    if (!strcmp(argv[i], "-v")) verbose = 1;
    else if (!strcmp(argv[i], "-r") && i + 1 < argc) rounds = atoi(argv[++i]);
    else if (!strcmp(argv[i], "-k") && i + 1 < argc && nonly < MOST) only[nonly++] = argv[++i];
    else if (!strcmp(argv[i], "-s")) both_signs = 1;
    else if (eq && nknown < MOST) {
      snprintf(known[nknown].name, sizeof known->name, "%.*s", (int)(eq - argv[i]), argv[i]);
      known[nknown].value = value_of(eq + 1);
      nknown++;
    }
  }
  if (argc < 2 || rounds < 1 || rounds > 64)
    return fprintf(stderr, "schedtime FILE.kir name=value ... [-r ROUNDS] [-v]\n"), 2;
  j.file = argv[1];
  j.text = contents(argv[1]);
  nvb_arena *a = nvb_arena_new();
  if (nvd_device_get(&j.d, 0) || nvb_protect(a, prepare, &j) || nvb_protect(a, make_data, &j)) give_up(argv[1]);
  check(&j);
  double copy = copy_time(&j);
  for (int r = 0; r < rounds; r++)
    for (int i = 0; i < j.nv; i++) {
      variant *v = &j.v[(i + r * 7) % j.nv];
      usleep(10000); /* the card's clock rests */
      run(&j, v, 1);
      v->t[r] = run(&j, v, BATCH);
    }
  printf("%s: copy of the same bytes %.1f us\n", argv[1], copy);
  for (int i = 0; i < j.nv; i++) {
    double t = median(j.v[i].t, rounds);
    printf("%-24s %9.1f us  %.3f of a copy", j.v[i].name, t, t / copy);
    printf(j.v[i].off == 0 ? "\n" : "  OTHER BITS, off by %.3g\n", j.v[i].off);
    nvd_program_free(j.v[i].p);
  }
  nvb_arena_free(a);
  return 0;
}
