/* Interprets a fragment over n elements in blocks, with one loop per instruction. A table of expressions defines all
   loops, which are compiled for three levels of x86-64; the results do not depend on the level. It never calls libm. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* GCC vectorises every loop below, whatever the build's optimisation level */
#endif
#include "frag/impl.h"
#include "frag/soft.h"

#define BLOCK 256 /* elements, at most */
#define GROUP NVG_GROUP /* a loop runs over whole groups, so vector code needs no remainder loop; or it is `exact` */
enum { FEW = 8 };               /* so many elements are computed by exact loops, which fill no group */
enum { MOST_PARAMS = 16 };      /* of a function whose blocks are computed again */
enum { WORK_BYTES = 96 << 10 }; /* limit of work memory on the stack, unless one group needs more */

static inline int size_of(nvm_dtype t) { /* inlined nvg_size: a call would cost more than the work */
  return t == NVM_I64 || t == NVM_U64 || t == NVM_F64                    ? 8
         : t == NVM_I32 || t == NVM_U32 || t == NVM_F32                  ? 4
         : t == NVM_I16 || t == NVM_U16 || t == NVM_F16 || t == NVM_BF16 ? 2
                                                                         : 1;
}

/* ---- one instruction. X, Y, Z: element i of the operands as type T; O: type of the result */
#define OVER(O, T, expr)                                         \
  do {                                                           \
    O *restrict o = s->out;                                      \
    const T *x = s->x, *y = s->y, *z = s->z;                     \
    uint64_t n = (uint64_t)s->n / (exact ? 1 : GROUP) * (exact ? 1 : GROUP); \
    for (uint64_t i = 0; i < n; i++) o[i] = (O)(expr);           \
    (void)x, (void)y, (void)z;                                   \
    return;                                                      \
  } while (0)
#define X x[i]
#define Y y[i]
#define Z z[i]
#define KEY(prim, t) ((prim) * NVM_NDTYPES + (t))
#define AT(prim, t, O, T, expr) case KEY(NVG_##prim, NVM_##t): OVER(O, T, expr);

/* Kinds of type. W: a type in which arithmetic wraps (C widens 8 and 16 bits to int). */
#define WIDTHS(P) \
  P(U8, uint8_t, uint32_t) P(U16, uint16_t, uint32_t) P(U32, uint32_t, uint32_t) P(U64, uint64_t, uint64_t)
#define INTS(P)                                                     \
  P(I8, int8_t) P(I16, int16_t) P(I32, int32_t) P(I64, int64_t)     \
  P(U8, uint8_t) P(U16, uint16_t) P(U32, uint32_t) P(U64, uint64_t)
#define FLOATS(P) P(F32, float) P(F64, double)

/* operations that depend on the width alone: the caller passes the unsigned type */
#define BY_WIDTH(t, T, W)                                                                                           \
  AT(ADD, t, T, T, (W)X + (W)Y) AT(SUB, t, T, T, (W)X - (W)Y) AT(MUL, t, T, T, (W)X * (W)Y) AT(NEG, t, T, T, -(W)X) \
  AT(AND, t, T, T, X & Y) AT(OR, t, T, T, X | Y) AT(XOR, t, T, T, X ^ Y) AT(NOT, t, T, T, ~X)                       \
  AT(SHL, t, T, T, (W)X << (Y & (sizeof(T) * 8 - 1))) AT(EQ, t, uint8_t, T, X == Y) AT(NE, t, uint8_t, T, X != Y)   \
  AT(BITS, t, T, T, X)
#define BY_INT(t, T)                                                                                                \
  AT(DIV, t, T, T, X / Y) AT(REM, t, T, T, X % Y) AT(SHR, t, T, T, X >> (Y & (int)(sizeof(T) * 8 - 1)))             \
  AT(LT, t, uint8_t, T, X < Y) AT(LE, t, uint8_t, T, X <= Y)
#define BY_FLOAT(t, T)                                                                                              \
  AT(ADD, t, T, T, X + Y) AT(SUB, t, T, T, X - Y) AT(MUL, t, T, T, X * Y) AT(DIV, t, T, T, X / Y)                   \
  AT(LT, t, uint8_t, T, X < Y) AT(LE, t, uint8_t, T, X <= Y) AT(EQ, t, uint8_t, T, X == Y)                          \
  AT(NE, t, uint8_t, T, X != Y) AT(RINT, t, T, T, rint_##T(X)) AT(FLOOR, t, T, T, floor_##T(X))                     \
  AT(CEIL, t, T, T, ceil_##T(X)) AT(TRUNC, t, T, T, trunc_##T(X))

typedef void step_fn(const nvg_step_args *s);

/* conversions are selected by the pair of types; integers differ only in the sign of the source and the width of the
   result */
#define PAIR(to, from) ((to) * NVM_NDTYPES + (from))
#define TO(t, T, f, F) case PAIR(NVM_##t, NVM_##f): OVER(T, F, X);
#define FROM_ANY(t, T)                                                                                              \
  TO(t, T, BOOL, uint8_t) TO(t, T, I8, int8_t) TO(t, T, I16, int16_t) TO(t, T, I32, int32_t) TO(t, T, I64, int64_t) \
  TO(t, T, U8, uint8_t) TO(t, T, U16, uint16_t) TO(t, T, U32, uint32_t) TO(t, T, U64, uint64_t)
#define FROM_FLOAT(t, T) TO(t, T, F32, float) TO(t, T, F64, double)

static int unsigned_of(int t) { return t >= NVM_I8 && t <= NVM_I64 ? t + (NVM_U8 - NVM_I8) : t; }

NVG_SOFT void convert(const nvg_step_args *s, int exact) {
  int to = s->type, from = s->from, flt = from == NVM_F32 || from == NVM_F64;
  switch (PAIR(flt ? to : unsigned_of(to), from)) {
    /* clang-format off */
    FROM_ANY(U8, uint8_t) FROM_ANY(U16, uint16_t) FROM_ANY(U32, uint32_t) FROM_ANY(U64, uint64_t)
    FROM_ANY(F32, float) FROM_ANY(F64, double)
    FROM_FLOAT(I8, int8_t) FROM_FLOAT(I16, int16_t) FROM_FLOAT(I32, int32_t) FROM_FLOAT(I64, int64_t)
    FROM_FLOAT(U8, uint8_t) FROM_FLOAT(U16, uint16_t) FROM_FLOAT(U32, uint32_t) FROM_FLOAT(U64, uint64_t)
    TO(F32, float, F64, double) TO(F64, double, F32, float)
      /* clang-format on */
  case PAIR(NVM_F16, NVM_F32): OVER(uint16_t, float, f16_of_f32(X));
  case PAIR(NVM_F32, NVM_F16): OVER(float, uint16_t, f32_of_f16(X));
  }
}

#define CHOOSE(T) case sizeof(T): { const uint8_t *c = s->x; OVER(T, T, c[i] ? Y : Z); }
#define LOOK(T) case sizeof(T): { const uint64_t *t = s->table->bits; OVER(T, T, t[look_index(s->from, s->x, i)]); }

NVG_SOFT uint64_t look_index(nvm_dtype t, const void *x, uint64_t i) {
  switch (size_of(t)) {
  case 1: return ((const uint8_t *)x)[i];
  case 2: return ((const uint16_t *)x)[i];
  case 4: return ((const uint32_t *)x)[i];
  default: return ((const uint64_t *)x)[i];
  }
}

/* Square roots use vector builtins on x86-64: there the compiler would call libm to set errno unless -fno-math-errno is
   given. */
#if defined __x86_64__
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef double two __attribute__((vector_size(16), aligned(8), may_alias));
NVG_SOFT float root_of_float(float x) { return __builtin_ia32_sqrtps((four){ x })[0]; }
NVG_SOFT double root_of_double(double x) { return __builtin_ia32_sqrtpd((two){ x })[0]; }
NVG_SOFT void root(const nvg_step_args *s, int exact) {
  if (exact && s->type == NVM_F32) OVER(float, float, root_of_float(X));
  if (exact) OVER(double, double, root_of_double(X));
  for (int i = 0; s->type == NVM_F32 && i < s->n; i += 4)
    *(four *)((float *)s->out + i) = __builtin_ia32_sqrtps(*(const four *)((const float *)s->x + i));
  for (int i = 0; s->type == NVM_F64 && i < s->n; i += 2)
    *(two *)((double *)s->out + i) = __builtin_ia32_sqrtpd(*(const two *)((const double *)s->x + i));
}
#else
NVG_SOFT void root(const nvg_step_args *s, int exact) {
  if (s->type == NVM_F32) OVER(float, float, __builtin_sqrtf(X));
  OVER(double, double, __builtin_sqrt(X));
}
#endif

/* fused: this variant has FMA instructions */
NVG_SOFT void step(const nvg_step_args *s, int fused, int exact) {
  switch (s->prim) {
  case NVG_CVT: convert(s, exact); return;
  case NVG_SQRT: case NVG_SQRT_INSIDE: root(s, exact); return;
  case NVG_SEL:
    switch (size_of(s->type)) { CHOOSE(uint8_t) CHOOSE(uint16_t) CHOOSE(uint32_t) CHOOSE(uint64_t) }
    return;
  case NVG_TABLE:
    switch (size_of(s->type)) { LOOK(uint8_t) LOOK(uint16_t) LOOK(uint32_t) LOOK(uint64_t) }
    return;
  case NVG_FMA:
    if (s->type == NVM_F32) {
      if (fused) OVER(float, float, __builtin_fmaf(X, Y, Z));
      else OVER(float, float, soft_fmaf(X, Y, Z));
    }
    if (fused) OVER(double, double, __builtin_fma(X, Y, Z));
    else OVER(double, double, soft_fma(X, Y, Z));
  default: break;
  }
  switch (KEY(s->prim, s->from)) {
    /* clang-format off */
    WIDTHS(BY_WIDTH) INTS(BY_INT) FLOATS(BY_FLOAT)
    AT(NOT, BOOL, uint8_t, uint8_t, X ^ 1)
    AT(ABS, F32, uint32_t, uint32_t, X & 0x7fffffffu) AT(ABS, F64, uint64_t, uint64_t, X & 0x7fffffffffffffffu)
    AT(NEG, F32, uint32_t, uint32_t, X ^ 0x80000000u) AT(NEG, F64, uint64_t, uint64_t, X ^ 0x8000000000000000u)
    AT(MULHI, I32, int32_t, int32_t, mulhi_i32(X, Y)) AT(MULHI, U32, uint32_t, uint32_t, mulhi_u32(X, Y))
    AT(MULHI, I64, int64_t, int64_t, mulhi_i64(X, Y)) AT(MULHI, U64, uint64_t, uint64_t, mulhi_u64(X, Y))
    AT(CLZ, U8, uint8_t, uint8_t, clz_u8(X)) AT(CLZ, U16, uint16_t, uint16_t, clz_u16(X))
    AT(CLZ, U32, uint32_t, uint32_t, clz_u32(X)) AT(CLZ, U64, uint64_t, uint64_t, clz_u64(X))
    /* clang-format on */
  }
}

#if defined __x86_64__
__attribute__((target("arch=x86-64-v4"))) static void step_v4(const nvg_step_args *s) { step(s, 1, 0); }
__attribute__((target("arch=x86-64-v3"))) static void step_v3(const nvg_step_args *s) { step(s, 1, 0); }
__attribute__((target("arch=x86-64-v3"))) static void step_few_v3(const nvg_step_args *s) { step(s, 1, 1); }
#endif
#if defined __FP_FAST_FMA && defined __FP_FAST_FMAF
enum { PLAIN_FMA = 1 };
#else
enum { PLAIN_FMA = 0 };
#endif
static void step_plain(const nvg_step_args *s) { step(s, PLAIN_FMA, 0); }
static void step_few_plain(const nvg_step_args *s) { step(s, PLAIN_FMA, 1); }

/* for each level: the loops over whole groups, and the exact ones */
static step_fn *const variants[][2] = {
  { step_plain, step_few_plain },
#if defined __x86_64__
  { step_v3, step_few_v3 },
  { step_v4, step_few_v3 },
#endif
};

int nvg_step_variants(void) {
#if defined __x86_64__
  __builtin_cpu_init();
  int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  int v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
  return v3 && v4 ? 3 : v3 ? 2 : 1;
#else
  return 1;
#endif
}

static _Atomic int best_variant; /* 1 + index; 0 before the first use */

int nvg_step_level(void) {
  int v = best_variant;
  if (!v) best_variant = v = nvg_step_variants();
  return v;
}
static step_fn *best_steps(int exact) { return variants[nvg_step_level() - 1][exact]; }

int nvg_step_limit(int variant) {
  int all = nvg_step_variants();
  best_variant = variant > 0 && variant < all ? variant : all;
  return best_variant;
}

/* Maps operations to the loops that exist: signed to unsigned where the bits are the same, > and >= to < and <=. */
static void fold_kinds(nvg_step_args *s) {
  const void *x = s->x;
  switch (s->prim) {
  case NVG_GT: s->prim = NVG_LT, s->x = s->y, s->y = x; break;
  case NVG_GE: s->prim = NVG_LE, s->x = s->y, s->y = x; break;
  case NVG_ADD: case NVG_SUB: case NVG_MUL: case NVG_NEG: case NVG_AND: case NVG_OR: case NVG_XOR: case NVG_SHL:
  case NVG_EQ: case NVG_NE: case NVG_CLZ:
    s->from = s->from == NVM_BOOL ? NVM_U8 : (nvm_dtype)unsigned_of(s->from);
    break;
  case NVG_NOT: s->from = (nvm_dtype)unsigned_of(s->from); break;
  case NVG_BITS: s->from = (nvm_dtype)(NVM_U8 + (size_of(s->type) == 8 ? 3 : size_of(s->type) >> 1)); break;
  default: break;
  }
}

void nvg_step(const nvg_step_args *s) {
  nvg_step_args t = *s;
  fold_kinds(&t);
  best_steps(0)(&t);
}

/* ---- a fragment */
typedef struct run {
  const nvg_frag *f;
  step_fn *fn;
  char *work;
  int block, n; /* elements of a slot; elements of this block, padded to whole groups unless `fn` is exact */
} run;

static void *slot_memory(const run *r, int i) { return r->work + (size_t)r->f->slot[i] * (size_t)r->block; }

static void fill_block(void *out, nvm_dtype t, uint64_t bits, int n) {
  switch (size_of(t)) {
  case 1: memset(out, (int)bits, (size_t)n); break;
  case 2: for (int i = 0; i < n; i++) ((uint16_t *)out)[i] = (uint16_t)bits; break;
  case 4: for (int i = 0; i < n; i++) ((uint32_t *)out)[i] = (uint32_t)bits; break;
  default: for (int i = 0; i < n; i++) ((uint64_t *)out)[i] = bits;
  }
}

static void copy_value(const run *r, void *to, const void *from, int type) {
  memcpy(to, from, (size_t)(r->n * size_of((nvm_dtype)type)));
}

/* Gives all PHIs of a loop their next values at once: first into the slot of END, then into the PHIs. */
static void next_iteration(const run *r, int loop, int end) {
  const nvg_inst *x = r->f->inst;
  char *workspace = slot_memory(r, end);
  for (int k = loop + 1; x[k].prim == NVG_PHI; k++)
    copy_value(r, workspace + (size_t)((k - loop - 1) * 8 * r->block), slot_memory(r, x[k].b), x[k].type);
  for (int k = loop + 1; x[k].prim == NVG_PHI; k++)
    copy_value(r, slot_memory(r, k), workspace + (size_t)((k - loop - 1) * 8 * r->block), x[k].type);
}

static void run_inst(const run *r, int i) {
  const nvg_inst *x = &r->f->inst[i];
  nvg_step_args s = { .prim = (nvg_prim)x->prim, .type = (nvm_dtype)x->type, .n = r->n, .out = slot_memory(r, i) };
  s.from = (nvm_dtype)r->f->inst[x->prim == NVG_SEL ? x->b : x->a].type;
  s.x = slot_memory(r, x->a);
  if (x->b >= 0) s.y = slot_memory(r, x->b);
  if (x->c >= 0) s.z = slot_memory(r, x->c);
  if (x->prim == NVG_TABLE) s.table = &r->f->table[x->tab];
  fold_kinds(&s);
  r->fn(&s);
}

/* Whether all elements have what ends the loop. */
static int is_over(const run *r, int loop) {
  int until = r->f->inst[loop].a;
  return until >= 0 && !memchr(slot_memory(r, until), 0, (size_t)r->n);
}
static int last_phi(const nvg_frag *f, int loop) {
  while (f->inst[loop + 1].prim == NVG_PHI) loop++;
  return loop;
}
static int end_of_loop(const nvg_frag *f, int i) {
  for (int depth = 1; depth; depth += (f->inst[i].prim == NVG_LOOP) - (f->inst[i].prim == NVG_END)) i++;
  return i;
}
/* Gives the PHIs of a loop their first values: where the run goes on. */
static int open_loop(const run *r, int loop, int *opened) {
  const nvg_inst *x = r->f->inst;
  int body = last_phi(r->f, loop);
  fill_block(slot_memory(r, loop), NVM_I32, 0, r->n);
  for (int k = loop + 1; k <= body; k++) copy_value(r, slot_memory(r, k), slot_memory(r, x[k].a), x[k].type);
  *opened = !is_over(r, loop);
  return *opened ? body : end_of_loop(r->f, loop);
}

static void run_block(const run *r) {
  const nvg_inst *x = r->f->inst;
  struct {
    int at;
    uint64_t iteration;
  } open[NVG_MAX_LOOPS + 1];
  int depth = 0, opened;
  for (int i = r->f->nparam; i < r->f->ninst; i++) {
    switch (x[i].prim) {
    case NVG_CONST: break;
    case NVG_LOOP:
      open[depth].at = i, open[depth].iteration = 0;
      i = open_loop(r, i, &opened);
      depth += opened;
      break;
    case NVG_END: {
      int at = open[depth - 1].at;
      next_iteration(r, at, i);
      if (++open[depth - 1].iteration == x[at].imm || is_over(r, at)) {
        depth--;
        break;
      }
      fill_block(slot_memory(r, at), NVM_I32, open[depth - 1].iteration, r->n);
      i = last_phi(r->f, at);
      break;
    }
    default: run_inst(r, i);
    }
  }
}

/* Loads a parameter's block; the padding repeats the last element, so that no value is computed that the caller did not
   pass. */
static void load_param(const run *r, int i, const void *const *in, int64_t lo, int n) {
  nvm_dtype type = (nvm_dtype)r->f->inst[i].type;
  size_t size = (size_t)size_of(type);
  char *to = slot_memory(r, i);
  uint64_t last = 0;
  memcpy(to, (const char *)in[i] + (size_t)lo * size, (size_t)n * size);
  if (n == r->n) return;
  memcpy(&last, to + (size_t)(n - 1) * size, size);
  fill_block(to + (size_t)n * size, type, last, r->n - n);
}

/* What a run does beside writing results. rare: where it writes the flag of each element; redo: a block in which a flag
   is set is computed by the full form. */
typedef struct extras { uint8_t *rare; int redo; } extras;
static void redo_block(const nvg_frag *full, const void *const *in, void *const *out, int64_t lo, int64_t n);
static void run_all(const nvg_frag *f, const void *const *in, void *const *out, extras e, int64_t n) {
  int few = n <= FEW, block = BLOCK, least = few ? FEW : n < BLOCK ? (int)(n + GROUP - 1) / GROUP * GROUP : BLOCK;
  while (block > GROUP && f->work * block > WORK_BYTES) block /= 2;
  if (block > least) block = least;
  char work[(size_t)f->work * (size_t)block + 64];
  run r = { .f = f, .fn = best_steps(few), .block = block };
  r.work = work + (64 - (uintptr_t)work % 64) % 64;
  for (int i = f->nparam; i < f->ninst && f->inst[i].prim == NVG_CONST; i++)
    fill_block(slot_memory(&r, i), (nvm_dtype)f->inst[i].type, f->inst[i].imm, block);
  for (int64_t lo = 0; lo < n; lo += block) {
    int m = n - lo < block ? (int)(n - lo) : block;
    r.n = few ? m : (m + GROUP - 1) / GROUP * GROUP;
    for (int i = 0; i < f->nparam; i++) load_param(&r, i, in, lo, m);
    run_block(&r);
    for (int k = 0; out && k < f->nresult; k++) {
      size_t size = (size_t)size_of((nvm_dtype)f->inst[f->result[k]].type);
      memcpy((char *)out[k] + (size_t)lo * size, slot_memory(&r, f->result[k]), (size_t)m * size);
    }
    if (e.rare) memcpy(e.rare + lo, slot_memory(&r, f->rare), (size_t)m);
    if (e.redo && memchr(slot_memory(&r, f->rare), 1, (size_t)m)) redo_block(f->full, in, out, lo, m);
  }
}
static void redo_block(const nvg_frag *full, const void *const *in, void *const *out, int64_t lo, int64_t n) {
  const void *from[MOST_PARAMS];
  void *to[MOST_PARAMS];
  for (int i = 0; i < full->nparam; i++)
    from[i] = (const char *)in[i] + (size_t)lo * (size_t)size_of((nvm_dtype)full->inst[i].type);
  for (int k = 0; k < full->nresult; k++)
    to[k] = (char *)out[k] + (size_t)lo * (size_t)size_of((nvm_dtype)full->inst[full->result[k]].type);
  run_all(full, from, to, (extras){ 0 }, n);
}

/* ---- a fragment of one instruction: it reads its operands and writes its result where they are, without work memory.
   Exact loops compute the elements that fill no group. */
static int is_single(const nvg_frag *f, const void *const *in, void *const *out) {
  int apart = f->ninst == f->nparam + 1 && f->nresult == 1 && f->result[0] == f->nparam && f->nparam <= 3 &&
              f->inst[f->nparam].a >= 0; /* no constant */
  for (int i = 0; i < f->nparam && apart; i++) apart = in[i] != out[0];
  return apart;
}
static void run_single(const nvg_frag *f, const void *const *in, void *out, int n, int exact) {
  const nvg_inst *x = &f->inst[f->nparam];
  nvg_step_args s = { .prim = (nvg_prim)x->prim, .type = (nvm_dtype)x->type, .n = n, .out = out };
  s.from = (nvm_dtype)f->inst[x->prim == NVG_SEL ? x->b : x->a].type;
  s.x = in[x->a];
  if (x->b >= 0) s.y = in[x->b];
  if (x->c >= 0) s.z = in[x->c];
  if (x->prim == NVG_TABLE) s.table = &f->table[x->tab];
  fold_kinds(&s);
  best_steps(exact)(&s);
}
static void run_directly(const nvg_frag *f, const void *const *in, char *out, int64_t n) {
  enum { MOST = 1 << 30 };
  const void *from[3];
  size_t size = (size_t)size_of((nvm_dtype)f->inst[f->nparam].type);
  int64_t whole = n / GROUP * GROUP;
  for (int64_t lo = 0; lo < whole; lo += MOST) {
    int64_t m = whole - lo < MOST ? whole - lo : MOST;
    for (int i = 0; i < f->nparam; i++)
      from[i] = (const char *)in[i] + (size_t)lo * (size_t)size_of((nvm_dtype)f->inst[i].type);
    run_single(f, from, out + (size_t)lo * size, (int)m, 0);
  }
  for (int i = 0; i < f->nparam; i++)
    from[i] = (const char *)in[i] + (size_t)whole * (size_t)size_of((nvm_dtype)f->inst[i].type);
  if (n > whole) run_single(f, from, out + (size_t)whole * size, (int)(n - whole), 1);
}

void nvg_frag_run(const nvg_frag *f, const void *const *in, void *const *out, int64_t n, int full) {
  f = full && f->full ? f->full : f;
  int single = n > 0 && is_single(f, in, out);
  if (single && n < GROUP) run_single(f, in, out[0], (int)n, 1);
  else if (single) run_directly(f, in, out[0], n);
  else if (n > 0) run_all(f, in, out, (extras){ 0 }, n);
}

void nvg_frag_apply(const nvg_frag *f, const void *const *in, void *const *out, int64_t n) {
  int apart = f->full && f->rare >= 0 && f->nparam <= MOST_PARAMS && f->nresult <= MOST_PARAMS;
  for (int i = 0; i < f->nparam && apart; i++)
    for (int k = 0; k < f->nresult; k++) apart &= in[i] != out[k];
  if (n > 0 && apart) run_all(f, in, out, (extras){ .redo = 1 }, n);
  else nvg_frag_run(f, in, out, n, 1);
}

void nvg_frag_flags(const nvg_frag *f, const void *const *in, uint8_t *rare, int64_t n) {
  if (f->rare < 0) memset(rare, 0, n > 0 ? (size_t)n : 0);
  else if (n > 0) run_all(f, in, NULL, (extras){ .rare = rare }, n);
}
