/* A bench for fragment texts: parses .frag files, prints a function's instructions, evaluates it, compares its forms.
   fragtool FILE.frag... -- print  NAME TYPES              types by commas: f32,i32; NAME may be cast:bf16
                            eval   NAME TYPES VALUE...     VALUE: 1.5, -3, inf, 0x1.8p3, or bits as =3fc00000
                            range  NAME TYPES LO HI COUNT [VALUE...]   the first parameter steps through [LO, HI]
                            compare NAME TYPES [VALUE...]  fast against full: every f32, else 2^24 samples
                            all    NAME TYPES              raw results for all 2^32 (f32), to stdout */
#include "frag/impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the files are the library */
const nvg_text nvg_frag_texts[] = { { 0 } };
const uint16_t nvg_frag_buckets[NVG_BUCKETS + 1];
const nvg_frag_place nvg_frag_places[] = { { 0 } };

enum { N = 1 << 16, MAX = 16 };
static int argc_;
static char **argv_;
static uint64_t value[MAX][N], result[MAX][N], other[MAX][N];
static uint8_t rare[N];

static char *slurp(nvb_arena *a, const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) nvb_throw(a, NVM_ERR_IO, "%s: cannot be read", path);
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  rewind(f);
  char *s = nvb_get(a, (size_t)n + 1);
  if (fread(s, 1, (size_t)n, f) != (size_t)n) nvb_throw(a, NVM_ERR_IO, "%s: cannot be read", path);
  fclose(f);
  return s;
}

static uint64_t parse_value(int t, const char *s) {
  float f = strtof(s, NULL);
  double d = strtod(s, NULL);
  uint64_t u = 0;
  if (s[0] == '=') return strtoull(s + 1, NULL, 16);
  if (t == NVM_F32) memcpy(&u, &f, 4);
  else if (t == NVM_F64) memcpy(&u, &d, 8);
  else u = s[0] == '-' ? (uint64_t)strtoll(s, NULL, 0) : strtoull(s, NULL, 0);
  return u & nvg_mask((nvm_dtype)t);
}

static void show(int t, uint64_t u) {
  float f;
  double d;
  memcpy(&f, &u, 4);
  memcpy(&d, &u, 8);
  int w = nvg_size((nvm_dtype)t) * 2;
  if (t == NVM_F32) printf("%.9g (%0*llx)", f, w, (unsigned long long)u);
  else if (t == NVM_F64) printf("%.17g (%0*llx)", d, w, (unsigned long long)u);
  else if (nvg_class_of((nvm_dtype)t) == NVG_SIGNED) printf("%lld", (long long)(u << (64 - w * 4)) >> (64 - w * 4));
  else printf("%llu (%0*llx)", (unsigned long long)u, w, (unsigned long long)u);
}

static void put(void *p, int t, int i, uint64_t u) {
  memcpy((char *)p + i * nvg_size((nvm_dtype)t), &u, (size_t)nvg_size((nvm_dtype)t));
}
static uint64_t get(const void *p, int t, int i) {
  uint64_t u = 0;
  memcpy(&u, (const char *)p + i * nvg_size((nvm_dtype)t), (size_t)nvg_size((nvm_dtype)t));
  return u;
}

static const nvg_frag *find(nvb_arena *a, nvg_fragset *s, char *name, char *types) {
  int param[MAX], n = 0, targ[1], ntarg = 0;
  for (char *w = strtok(types, ","); w && n < MAX; w = strtok(NULL, ","))
    if ((param[n++] = nvg_dtype_find(w)) < 0) nvb_throw(a, NVM_ERR_TYPE, "no type %s", w);
  char *colon = strchr(name, ':');
  if (colon) *colon = 0, targ[0] = nvg_dtype_find(colon + 1), ntarg = 1;
  nvg_frag_query q = {
    .name = name, .len = (int)strlen(name), .targ = targ, .ntarg = ntarg, .param = param, .nparam = n
  };
  const nvg_frag *f = nvg_fragset_query(s, &q);
  if (!f) nvb_throw(a, nvg_query_fail(&q), "%s", nvb_message());
  nvg_frag_check(a, f);
  return f;
}

static int type_in(const nvg_frag *f, int i) { return f->inst[i].type; }
static int type_out(const nvg_frag *f, int i) { return f->inst[f->result[i]].type; }

static void apply(const nvg_frag *f, int n, int full) {
  const void *in[MAX];
  void *out[MAX];
  for (int i = 0; i < MAX; i++) in[i] = value[i], out[i] = full ? other[i] : result[i];
  nvg_frag_run(f, in, out, n, full);
  if (!full) nvg_frag_flags(f, in, rare, n);
}

static void line(const nvg_frag *f, int i) {
  for (int k = 0; k < f->nparam; k++) show(type_in(f, k), get(value[k], type_in(f, k), i)), printf(" ");
  printf("->");
  for (int k = 0; k < f->nresult; k++) printf(" "), show(type_out(f, k), get(other[k], type_out(f, k), i));
  if (f->full) {
    printf("   fast%s", rare[i] ? " (rare)" : "");
    for (int k = 0; k < f->nresult; k++) printf(" "), show(type_out(f, k), get(result[k], type_out(f, k), i));
  }
  printf("\n");
}

static int nan_bits(int t, uint64_t u) {
  if (t == NVM_F32) return (u & 0x7fffffff) > 0x7f800000;
  return t == NVM_F64 && (u & 0x7fffffffffffffff) > 0x7ff0000000000000;
}

static void compare(const nvg_frag *f, char **fixed, int nfixed, int dump) {
  int t = type_in(f, 0), exhaustive = nvg_size((nvm_dtype)t) <= 4;
  uint64_t all = exhaustive ? 1ull << nvg_size((nvm_dtype)t) * 8 : 1 << 24, bad = 0, rares = 0,
           seed = 88172645463325252u;
  for (int k = 1; k < f->nparam; k++)
    for (int i = 0; i < N; i++)
      put(value[k], type_in(f, k), i, parse_value(type_in(f, k), k <= nfixed ? fixed[k - 1] : "1"));
  for (uint64_t lo = 0; lo < all; lo += N) {
    int n = all - lo < N ? (int)(all - lo) : N;
    for (int i = 0; i < n; i++) {
      seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
      put(value[0], t, i, exhaustive ? lo + (uint64_t)i : seed);
    }
    if (dump) {
      apply(f, n, 1);
      fwrite(other[0], (size_t)nvg_size((nvm_dtype)type_out(f, 0)), (size_t)n, stdout);
      continue;
    }
    apply(f, n, 0);
    apply(f, n, 1);
    for (int i = 0; i < n; i++) {
      int differs = 0;
      rares += rare[i];
      for (int k = 0; k < f->nresult; k++) {
        int o = type_out(f, k);
        uint64_t u = get(result[k], o, i), v = get(other[k], o, i);
        differs |= u != v && !(nan_bits(o, u) && nan_bits(o, v));
      }
      if (differs && !rare[i] && bad++ < 10) line(f, i);
    }
  }
  if (!dump)
    printf("%llu values, %llu rare, %llu differ where not rare\n", (unsigned long long)all, (unsigned long long)rares,
           (unsigned long long)bad);
}

static void range(const nvg_frag *f, char **arg, int n) {
  double lo = strtod(arg[0], NULL), hi = strtod(arg[1], NULL);
  int count = atoi(arg[2]);
  for (int i = 0; i < count && i < N; i++) {
    char s[64];
    snprintf(s, sizeof s, "%.17g", count > 1 ? lo + (hi - lo) * i / (count - 1) : lo);
    put(value[0], type_in(f, 0), i, parse_value(type_in(f, 0), s));
    for (int k = 1; k < f->nparam; k++)
      put(value[k], type_in(f, k), i, parse_value(type_in(f, k), k + 2 < n ? arg[k + 2] : "1"));
  }
  apply(f, count, 0);
  apply(f, count, 1);
  for (int i = 0; i < count; i++) line(f, i);
}

static void work(nvb_arena *a, void *arg) {
  nvg_fragset *s = nvg_library_set(a);
  int i = 1;
  (void)arg;
  for (; i < argc_ && strcmp(argv_[i], "--"); i++) nvg_fragset_add(s, slurp(a, argv_[i]), argv_[i]);
  if (argc_ - i < 4)
    nvb_throw(a, NVM_ERR_VALUE, "usage: fragtool FILE... -- print|eval|range|compare|all NAME TYPES ...");
  char *what = argv_[i + 1], **rest = argv_ + i + 4;
  int nrest = argc_ - i - 4;
  const nvg_frag *f = find(a, s, argv_[i + 2], argv_[i + 3]);
  if (!strcmp(what, "print")) {
    nvb_text t = { .arena = a };
    nvg_frag_print(&t, f);
    printf("%s# %d instructions, cost %d, rare %s, %d bytes of work per element\n", nvb_text_get(&t), f->ninst, f->cost,
           f->rare < 0 ? "no" : "yes", f->work);
  } else if (!strcmp(what, "eval") && nrest >= f->nparam) {
    for (int k = 0; k < f->nparam; k++) put(value[k], type_in(f, k), 0, parse_value(type_in(f, k), rest[k]));
    apply(f, 1, 0);
    apply(f, 1, 1);
    line(f, 0);
  } else if (!strcmp(what, "range") && nrest >= 3) range(f, rest, nrest);
  else if (!strcmp(what, "compare") || !strcmp(what, "all")) compare(f, rest, nrest, what[0] == 'a');
  else nvb_throw(a, NVM_ERR_VALUE, "too few values, or an unknown command");
}

int main(int argc, char **argv) {
  argc_ = argc, argv_ = argv;
  nvb_arena *a = nvb_arena_new();
  int status = nvb_protect(a, work, NULL);
  if (status) fprintf(stderr, "%s\n", nvb_message());
  nvb_arena_free(a);
  return status;
}
