/* Emits fragments as device functions, each once per form and with one line per instruction. Results have the bits of
   the interpreter's, except for NaN payloads; signed arithmetic goes through unsigned types, where it wraps. Fast
   forms compute square roots and quotients of f32 by short sequences without branches: an input that these cannot
   round gives NaN or sets the rare flag, and the caller tests for this NaN. Decides the form of an instruction, never
   its result. */
#include <string.h>
#include "codegen/cuda/emit.h"
#include "frag/dtype.h"

enum { FULL, FAST, TABLE, ROOT, INSIDE32, INSIDE64, QUOTIENT, SQUARE, GELU, XPHI4, XPHI7, LEAST, MOST, ELEMENTS };

/* The CUDA compiler's own sequences, without its branches for special inputs; for a quotient, the shorter one that
   Markstein proved: nv_rcp is within an ulp, so r is 1 / b rounded to nearest. An input that they cannot do gives NaN,
   for which the caller tests, or sets the flag. Zeros are done, except for the root of -0. */
static const char root_text[] = "static __device__ __forceinline__ float nv_root(float x, bool &bad) {\n"
                                "  const float r = nv_min(nv_rsqrt(x), 0x1p63f), g = x * r;\n"
                                "  bad |= (nv_u32(x) << 1) - 1u < 0x19ffffffu;\n"
                                "  return nv_fma(nv_fma(-g, g, x), 0.5f * r, g);\n"
                                "}\n";
static const char root_inside_text[] = "static __device__ __forceinline__ float nv_root_inside(float x) {\n"
                                       "  const float r = nv_rsqrt(x), g = x * r;\n"
                                       "  return nv_fma(nv_fma(-g, g, x), 0.5f * r, g);\n"
                                       "}\n";
static const char root64_inside_text[] = "static __device__ __forceinline__ double nv_root_inside(double x) {\n"
                                         "  const double r0 = nv_rsqrt(x), e = nv_fma(r0 * r0, -x, 1.0);\n"
                                         "  const double r = nv_fma(nv_fma(e, 0.375, 0.5), r0 * e, r0), g = x * r;\n"
                                         "  return nv_fma(nv_fma(-g, g, x), 0.5 * r, g);\n"
                                         "}\n";
/* For |b| < 2^25 and |a| >= 2^-99 no intermediate result underflows. A zero has the sign of the first product. */
static const char quotient_text[] =
    "static __device__ __forceinline__ float nv_quotient(float a, float b, bool &bad) {\n"
    "  const float r0 = nv_rcp(b), r = nv_fma(r0, nv_fma(-b, r0, 1.0f), r0), q = a * r;\n"
    "  bad |= !(nv_abs(b) < 0x1p25f);\n"
    "  bad |= (nv_u32(a) << 1) - 1u < 0x1bffffffu;\n"
    "  return nv_f32(nv_pick(nv_u32(nv_fma(r, nv_fma(-b, q, a), q)), nv_u32(q), 0x7fffffffu));\n"
    "}\n";

/* Library fragments that the device has instructions for; $ stands for an operand. `level` 0: they give the fragment's
   bits, NaN payloads excepted (8-bit casts: from compute capability 8.9 on). Otherwise the hint approx must allow the
   error: 1: about 2^-20; 2: 2^-11. Halved exponents and scaled quotients keep subnormal results; the clamps keep inputs
   whose result tends to zero from 0 * inf. */
#define LOGISTIC(t) "0x1p-24f * nv_rcp(0x1p-24f + nv_ex2(" t "))"
static const struct form {
  const char *name;
  nvm_dtype from, to;
  int level;
  const char *text;
} forms[] = {
  { "maximum", NVM_F32, NVM_F32, 0, "nv_max($0, $1)" },
  { "minimum", NVM_F32, NVM_F32, 0, "nv_min($0, $1)" },
  { "cast", NVM_F32, NVM_BF16, 0, "nv_bfloat($0)" },
  { "cast", NVM_F32, NVM_F16, 0, "nv_half($0)" },
  { "cast", NVM_F16, NVM_F32, 0, "nv_float($0)" },
  { "cast", NVM_F32, NVM_F8E4, 0, "nv_e4m3($0)" },
  { "cast", NVM_F32, NVM_F8E5, 0, "nv_e5m2($0)" },
  { "cast", NVM_F8E4, NVM_F16, 0, "nv_half_e4m3($0)" },
  { "cast", NVM_F8E5, NVM_F16, 0, "nv_half_e5m2($0)" },
  { "cast", NVM_F8E4, NVM_F32, 0, "nv_float(nv_half_e4m3($0))" },
  { "cast", NVM_F8E5, NVM_F32, 0, "nv_float(nv_half_e5m2($0))" },
  { "exp", NVM_F32, NVM_F32, 1, "nv_square(nv_ex2($0 * 0x1.715476p-1f))" },
  { "exp2", NVM_F32, NVM_F32, 1, "nv_square(nv_ex2($0 * 0.5f))" },
  { "tanh", NVM_F32, NVM_F32, 2, "nv_tanh($0)" },
  { "sigmoid", NVM_F32, NVM_F32, 1, LOGISTIC("nv_fma($0, -0x1.715476p+0f, -24.0f)") },
  { "silu", NVM_F32, NVM_F32, 1, "nv_max($0, -256.0f) * (" LOGISTIC("nv_fma($0, -0x1.715476p+0f, -24.0f)") ")" },
  { "gelu_tanh", NVM_F32, NVM_F32, 1, "nv_gelu(nv_max($0, -256.0f))" },
  { "gelu", NVM_F32, NVM_F32, 2, "nv_xphi4($0)" },
  { "gelu", NVM_F32, NVM_F32, 1, "nv_xphi7($0)" },
  { "divide", NVM_F32, NVM_F32, 1, "nv_divide($0, $1)" },
};
static const char square_text[] = "static __device__ __forceinline__ float nv_square(float x) { return x * x; }\n";
static const char gelu_text[] =
    "static __device__ __forceinline__ float nv_gelu(float x) {\n"
    "  return x * (" LOGISTIC("nv_fma(x, nv_fma(x * x, -0x1.a5a7dp-4f, -0x1.26aec2p+1f), -24.0f)") ");\n"
                                                                                                   "}\n";

/* x Phi(x) as in frag/functions/special.frag, with the tail Phi(-h) = exp(-h^2 / 2) u P(u - 0.5), u = 1 / (1 + h / 4).
   P was found by Lawson's iteration on h <= 15; its relative error is 2^-14.0 for degree 4, 2^-20.9 for degree 7. */
#define XPHI(name, p) \
  "static __device__ __forceinline__ float " name "(float x) {\n" \
  "  const float h = nv_min(nv_abs(x), 16.0f), u = nv_rcp(nv_fma(h, 0.25f, 1.0f)), y = u - 0.5f;\n" \
  "  const float e = nv_ex2(h * h * -0x1.715476p-2f);\n" \
  "  return nv_fma(-h, e * (u * " p ") * e, nv_max(x, -0.0f));\n" \
  "}\n"
#define NEXT(c, p) "nv_fma(y, " p ", " c ")"
static const char xphi4_text[] =
    XPHI("nv_xphi4", NEXT("0x1.82b4p-3f",
                          NEXT("0x1.370d94p-2f", NEXT("0x1.8c644ap-2f", NEXT("0x1.854fdap-2f", "0x1.ea8036p-3f")))));
static const char xphi7_text[] = XPHI(
    "nv_xphi7",
    NEXT("0x1.82b4bep-3f",
         NEXT("0x1.373db8p-2f",
              NEXT("0x1.8c6bcap-2f",
                   NEXT("0x1.7e25fep-2f",
                        NEXT("0x1.ef481ap-3f", NEXT("0x1.d52eb6p-5f", NEXT("-0x1.d25ca2p-5f", "-0x1.f9f81p-6f"))))))));

/* Merges of many (value, index) elements at once: the best value first, then the lowest index that has it, while one
   merge after the other compares both each time. Four independent chains of each hide the latency. Rare inputs are done
   again: NaN is the best and equals nothing; zeros are equal whatever their sign. */
#define BEST(name, better, of_f32) \
  "template <class T, class I, int N> static __device__ __forceinline__ void " name \
  "(const T (&v)[N], const I (&at)[N], T &best, I &first) {\n" \
  "  constexpr bool f32 = sizeof(T) == 4 && T(0.5) != T(0);\n" \
  "  constexpr I most = (I)(~0ull >> (65 - 8 * sizeof(I)));\n" \
  "  T m[4] = {v[0], v[1], v[2], v[3]};\n" \
  "  I i[4] = {most, most, most, most};\n" \
  "  for (int k = 4; k < N + 3; k++) {\n" \
  "    T &a = m[k < N ? k & 3 : 0], b = k < N ? v[k] : m[k - N + 1];\n" \
  "    if constexpr (f32) a = " of_f32 "(a, b);\n" \
  "    else a = b " better " a || b != b ? b : a;\n" \
  "  }\n" \
  "  for (int k = 0; k < N; k++)\n" \
  "    if (v[k] == m[0]) i[k & 3] = at[k] < i[k & 3] ? at[k] : i[k & 3];\n" \
  "  for (int k = 1; k < 4; k++) i[0] = i[k] < i[0] ? i[k] : i[0];\n" \
  "  if (m[0] != m[0] || m[0] == T(0)) {\n" \
  "    i[0] = most;\n" \
  "    for (int k = 0; k < N; k++)\n" \
  "      if ((v[k] " better "= m[0] || v[k] != v[k]) && at[k] < i[0]) i[0] = at[k];\n" /* with == it would be kept */ \
  "    for (int k = 0; k < N; k++) m[0] = at[k] == i[0] ? v[k] : m[0];\n" \
  "  }\n" \
  "  best = m[0], first = i[0];\n" \
  "}\n"
static const struct best {
  const char *merge;
  int form;
  const char *name, *text;
} bests[] = {
  { "argmin", LEAST, "nv_least", BEST("nv_least", "<", "nv_min") },
  { "argmax", MOST, "nv_most", BEST("nv_most", ">", "nv_max") },
};

static int is_library(const nvg_frag *f, const char *name, const nvm_dtype *types) {
  const nvg_frag *l = !strcmp(name, "cast") ? nvg_frag_cast(types[0], types[1]) : nvg_frag_find(name, types, f->nparam);
  return l && nvb_hash_eq(l->hash, f->hash);
}

static const char *form_of(const nvg_frag *f, int level) {
  if (!f->name || f->nresult != 1 || f->nparam < 1 || f->nparam > 2) return NULL;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const struct form *x = &forms[i];
    nvm_dtype types[2] = { x->from, strcmp(x->name, "cast") ? x->from : x->to };
    if (x->level <= level && f->inst[0].type == x->from && f->inst[f->result[0]].type == x->to &&
        !strcmp(f->name, x->name) && is_library(f, x->name, types))
      return x->text;
  }
  return NULL;
}

typedef struct state {
  nvcu_em *e;
  const nvg_frag *f;
  const char **v; /* [instruction]: the atom of its value */
  nvb_text t;
  int fast, depth;
  int loop[16];
  const char *flag;    /* the name of the rare flag */
  const char *element; /* what is added to names, if there is code for several elements */
} state;

static int is_float(nvm_dtype t) { return t == NVM_F32 || t == NVM_F64; }
static int width_of(nvm_dtype t) { return t == NVM_BOOL ? 1 : 8 * nvg_size(t); }

/* ---- the registry of functions and tables in the preamble */
static const char *find_known(nvcu_em *e, nvb_hash h, int form) {
  for (int i = 0; i < e->fn.n; i++)
    if (e->fn.at[i].form == form && e->fn.at[i].hash.hi == h.hi && e->fn.at[i].hash.lo == h.lo) return e->fn.at[i].name;
  return NULL;
}

static const char *now_known(nvcu_em *e, nvb_hash h, int form, const char *name) {
  nvcu_function f = { h, form, name };
  NVB_PUSH(e->a, e->fn, f);
  return name;
}

static const char *define_helper(nvcu_em *e, int form, const char *name, const char *text) {
  nvb_hash none = { 0 };
  if (find_known(e, none, form)) return name;
  nvb_puts(&e->preamble, text);
  return now_known(e, none, form, name);
}

static const char *table_name(nvcu_em *e, const nvg_table *t) {
  nvb_hash h = nvb_hash_bytes(t->bits, sizeof *t->bits * (size_t)t->n);
  const char *name = find_known(e, h, TABLE + 16 * (int)t->type);
  if (name) return name;
  name = nvcu_fresh(e, "table");
  nvb_print(&e->preamble, "static __device__ const %s %s[] = {", nvcu_type(t->type), name);
  for (int i = 0; i < t->n; i++) nvb_print(&e->preamble, "%s%s", i ? ", " : "", nvcu_const(e, t->type, t->bits[i]));
  nvb_puts(&e->preamble, "};\n");
  return now_known(e, h, TABLE + 16 * (int)t->type, name);
}

/* ---- instructions as expressions */
static const char *wrapping_text(state *s, nvm_dtype t, const char *a, const char *op, const char *b) {
  const char *u = width_of(t) == 64 ? "unsigned long long" : "unsigned";
  if (t == NVM_U32 || t == NVM_U64) return nvcu_text(s->e, "%s %s %s", a, op, b);
  return nvcu_text(s->e, "(%s)((%s)%s %s (%s)%s)", nvcu_type(t), u, a, op, u, b);
}

static const char *binary_text(state *s, nvm_dtype t, const char *a, const char *op, const char *b) {
  if (is_float(t)) return nvcu_text(s->e, "%s %s %s", a, op, b);
  return wrapping_text(s, t, a, op, b);
}

/* Operations that cannot overflow. */
static const char *narrow_text(state *s, nvm_dtype t, const char *a, const char *op, const char *b) {
  return width_of(t) < 32 ? nvcu_text(s->e, "(%s)(%s %s %s)", nvcu_type(t), a, op, b)
                          : nvcu_text(s->e, "%s %s %s", a, op, b);
}

static const char *shift_text(state *s, nvg_prim p, nvm_dtype t, const char *a, const nvg_inst *by, const char *b) {
  const char *n = by->prim == NVG_CONST && by->imm < (uint64_t)width_of(t)
                      ? nvcu_text(s->e, "%d", (int)by->imm)
                      : nvcu_text(s->e, "((unsigned)%s & %du)", b, width_of(t) - 1);
  if (p == NVG_SHR) return narrow_text(s, t, a, ">>", n);
  return nvcu_text(s->e, "(%s)((%s)%s << %s)", nvcu_type(t), width_of(t) == 64 ? "unsigned long long" : "unsigned", a,
                   n);
}

static const char *convert_text(state *s, nvm_dtype from, nvm_dtype to, const char *a) {
  if (from == NVM_F16 && is_float(to))
    return nvcu_text(s->e, to == NVM_F32 ? "nv_float(%s)" : "(double)nv_float(%s)", a);
  if (to == NVM_F16 && from == NVM_F32) return nvcu_text(s->e, "nv_half(%s)", a);
  if (is_float(from) && !is_float(to) && width_of(to) < 32) return nvcu_text(s->e, "(%s)(int)%s", nvcu_type(to), a);
  if (to == NVM_BOOL) return nvcu_text(s->e, "(%s & 1) != 0", a);
  return nvcu_text(s->e, "(%s)%s", nvcu_type(to), a);
}

static const char *reinterpret_text(state *s, nvm_dtype from, nvm_dtype to, const char *a) {
  if (is_float(from) && is_float(to)) return a;
  if (from == NVM_F32) return nvcu_text(s->e, "(%s)nv_u32(%s)", nvcu_type(to), a);
  if (from == NVM_F64) return nvcu_text(s->e, "(%s)nv_u64(%s)", nvcu_type(to), a);
  if (to == NVM_F32) return nvcu_text(s->e, "nv_f32((unsigned)%s)", a);
  if (to == NVM_F64) return nvcu_text(s->e, "nv_f64((unsigned long long)%s)", a);
  return nvcu_text(s->e, "(%s)%s", nvcu_type(to), a);
}

static const char *count_zeros(state *s, nvm_dtype t, const char *a) {
  int w = width_of(t);
  const char *u = w == 64 ? "unsigned long long" : "unsigned";
  if (w < 32)
    return nvcu_text(s->e, "(%s)(nv_clz((unsigned)(%s)%s) - %d)", nvcu_type(t),
                     w == 8 ? "unsigned char" : "unsigned short", a, 32 - w);
  return nvcu_text(s->e, "(%s)nv_clz((%s)%s)", nvcu_type(t), u, a);
}

static const char *quotient_call(state *s, nvm_dtype t, const char *a, const char *b) {
  if (t != NVM_F32 || !s->fast || s->depth) return narrow_text(s, t, a, "/", b);
  define_helper(s->e, QUOTIENT, "nv_quotient", quotient_text);
  return nvcu_text(s->e, "nv_quotient(%s, %s, %s)", a, b, s->flag);
}

static const char *root_call(state *s, nvm_dtype t, const char *a) {
  if (t != NVM_F32 || !s->fast || s->depth) return nvcu_text(s->e, "nv_sqrt(%s)", a);
  define_helper(s->e, ROOT, "nv_root", root_text);
  return nvcu_text(s->e, "nv_root(%s, %s)", a, s->flag);
}

static const char *root_inside_call(state *s, nvm_dtype t, const char *a) {
  if (t == NVM_F32) define_helper(s->e, INSIDE32, "nv_root_inside", root_inside_text);
  else define_helper(s->e, INSIDE64, "nv_root_inside", root64_inside_text);
  return nvcu_text(s->e, "nv_root_inside(%s)", a);
}

static const char *negated_text(state *s, nvm_dtype t, const char *a) {
  if (is_float(t)) return nvcu_text(s->e, "-%s", a);
  if (nvg_class_of(t) != NVG_SIGNED) return wrapping_text(s, t, "0", "-", a);
  return nvcu_text(s->e, "(%s)nv_neg((%s)%s)", nvcu_type(t), width_of(t) == 64 ? "long long" : "int", a);
}

/* x & m | y & ~m, as in copysign, is one instruction, which the compiler does not recognise from two constants. */
static const char *select_bits_text(state *s, const nvg_inst *in, nvm_dtype t, const char *a, const char *b) {
  const nvg_inst *x = s->f->inst, *p = &x[in->a], *q = &x[in->b];
  int both = p->prim == NVG_AND && q->prim == NVG_AND && x[p->b].prim == NVG_CONST && x[q->b].prim == NVG_CONST;
  if (!both || width_of(t) != 32 || (uint32_t)(x[p->b].imm ^ x[q->b].imm) != ~0u) return narrow_text(s, t, a, "|", b);
  return nvcu_text(s->e, "(%s)nv_pick((unsigned)%s, (unsigned)%s, %uu)", nvcu_type(t), s->v[p->a], s->v[q->a],
                   (unsigned)x[p->b].imm);
}

/* The product of the lower half of a word and a constant of 32 bits is one instruction. Compilers recognise it only if
   no conversion to 64 bits stands between: else they add the product of the upper half, which is 0, too. */
static const char *half_product_text(state *s, const nvg_inst *in) {
  const nvg_inst *x = s->f->inst, *p = &x[in->a], *q = &x[in->b];
  int halves = in->type == NVM_U64 && p->prim == NVG_AND && x[p->b].prim == NVG_CONST && x[p->b].imm == UINT32_MAX &&
               q->prim == NVG_CONST && q->imm <= UINT32_MAX;
  return halves ? nvcu_text(s->e, "nv_mul_wide((unsigned)%s, %uu)", s->v[p->a], (unsigned)q->imm) : NULL;
}

static const char *arithmetic_text(state *s, const nvg_inst *in, nvm_dtype t, const char *a, const char *b,
                                   const char *c) {
  static const char *const compare[] = { "==", "!=", "<", "<=", ">", ">=" };
  const char *halves = in->prim == NVG_MUL ? half_product_text(s, in) : NULL;
  if (halves) return halves;
  switch (in->prim) {
  case NVG_ADD: return binary_text(s, t, a, "+", b);
  case NVG_SUB: return binary_text(s, t, a, "-", b);
  case NVG_MUL: return binary_text(s, t, a, "*", b);
  case NVG_DIV: return quotient_call(s, t, a, b);
  case NVG_REM: return narrow_text(s, t, a, "%", b);
  case NVG_NEG: return negated_text(s, t, a);
  case NVG_ABS: return nvcu_text(s->e, "nv_abs(%s)", a);
  case NVG_FMA: return nvcu_text(s->e, "nv_fma(%s, %s, %s)", a, b, c);
  case NVG_SQRT: return root_call(s, t, a);
  case NVG_SQRT_INSIDE: return root_inside_call(s, t, a);
  case NVG_RINT: return nvcu_text(s->e, "nv_rint(%s)", a);
  case NVG_FLOOR: return nvcu_text(s->e, "nv_floor(%s)", a);
  case NVG_CEIL: return nvcu_text(s->e, "nv_ceil(%s)", a);
  case NVG_TRUNC: return nvcu_text(s->e, "nv_trunc(%s)", a);
  case NVG_MULHI: return nvcu_text(s->e, "nv_mulhi(%s, %s)", a, b);
  case NVG_AND: return narrow_text(s, t, a, "&", b);
  case NVG_OR: return select_bits_text(s, in, t, a, b);
  case NVG_XOR: return narrow_text(s, t, a, "^", b);
  case NVG_NOT: return t == NVM_BOOL ? nvcu_text(s->e, "!%s", a) : nvcu_text(s->e, "(%s)~%s", nvcu_type(t), a);
  case NVG_SHL:
  case NVG_SHR: return shift_text(s, in->prim, t, a, &s->f->inst[in->b], b);
  case NVG_CLZ: return count_zeros(s, t, a);
  default: return nvcu_text(s->e, "%s %s %s", a, compare[in->prim - NVG_EQ], b);
  }
}

/* ---- loops: PHIs are variables, which are all assigned at the end of each iteration */
static void put_line(state *s, const char *text) { nvb_print(&s->t, "%*s%s\n", 2 + 2 * s->depth, "", text); }

static void loop_open(state *s, int i) {
  const nvg_inst *x = s->f->inst;
  if (s->depth == 16) nvb_throw(s->e->a, NVM_ERR_UNSUPPORTED, "[cuda] loops of a fragment are nested too deeply");
  s->v[i] = nvcu_text(s->e, "v%d", i);
  for (int k = i + 1; x[k].prim == NVG_PHI; k++) {
    s->v[k] = nvcu_text(s->e, "v%d", k);
    put_line(s, nvcu_text(s->e, "%s %s = %s;", nvcu_type(x[k].type), s->v[k], s->v[x[k].a]));
  }
  put_line(s, "#pragma unroll 1");
  const char *until = x[i].a < 0 ? "" : nvcu_text(s->e, " && !%s", s->v[x[i].a]);
  put_line(s, nvcu_text(s->e, "for (int %s = 0; %s < %d%s; %s++) {", s->v[i], s->v[i], (int)x[i].imm, until, s->v[i]));
  s->loop[s->depth++] = i;
}

static void loop_close(state *s) {
  const nvg_inst *x = s->f->inst;
  int at = s->loop[s->depth - 1];
  for (int k = at + 1; x[k].prim == NVG_PHI; k++)
    put_line(s, nvcu_text(s->e, "const %s n%d = %s;", nvcu_type(x[k].type), k, s->v[x[k].b]));
  for (int k = at + 1; x[k].prim == NVG_PHI; k++) put_line(s, nvcu_text(s->e, "v%d = n%d;", k, k));
  s->depth--;
  put_line(s, "}");
}

/* Is it a quotient or root that has a short sequence? */
static int is_apart(const nvg_inst *x, int depth) {
  return !depth && (x->prim == NVG_SQRT || x->prim == NVG_DIV) && x->type == NVM_F32;
}

static int is_result(const nvg_frag *f, int i) { return f->nresult == 1 && f->result[0] == i; }

/* Text of the value of instruction i. */
static const char *value_text(state *s, int i) {
  const nvg_inst *in = &s->f->inst[i];
  const char *a = in->a >= 0 ? s->v[in->a] : NULL, *b = in->b >= 0 ? s->v[in->b] : NULL,
             *c = in->c >= 0 ? s->v[in->c] : NULL;
  nvm_dtype from = in->a >= 0 ? (nvm_dtype)s->f->inst[in->a].type : (nvm_dtype)in->type;
  switch (in->prim) {
  case NVG_CONST: return nvcu_const(s->e, in->type, in->imm);
  case NVG_SEL: return nvcu_text(s->e, "%s ? %s : %s", a, b, c);
  case NVG_CVT: return convert_text(s, from, in->type, a);
  case NVG_BITS: return reinterpret_text(s, from, in->type, a);
  case NVG_TABLE: return nvcu_text(s->e, "%s[%s]", table_name(s->e, &s->f->table[in->tab]), a);
  default: return arithmetic_text(s, in, from, a, b, c);
  }
}

static void emit_instruction(state *s, int i) {
  const nvg_inst *in = &s->f->inst[i];
  switch (in->prim) {
  case NVG_PARAM: s->v[i] = nvcu_text(s->e, "p%d", (int)in->imm); return;
  case NVG_CONST: s->v[i] = value_text(s, i); return;
  case NVG_LOOP: loop_open(s, i); return;
  case NVG_END: loop_close(s); return;
  case NVG_PHI: return; /* defined with its loop */
  default: break;
  }
  const char *x = value_text(s, i);
  s->v[i] = nvcu_text(s->e, "v%d%s", i, s->element ? s->element : "");
  put_line(s, nvcu_text(s->e, "const %s %s = %s;", nvcu_type(in->type), s->v[i], x));
  if (s->fast && is_apart(in, s->depth) && !is_result(s->f, i))
    put_line(s, nvcu_text(s->e, "%s |= %s != %s;", s->flag, s->v[i], s->v[i]));
}

/* Text of a fragment that is one float instruction, to stand where it is used: for a compiler, a call is as much work
   as several of these. The machine code is the same, except in kernels with contractions, which may spill more. NULL: a
   function has to be called. */
static const char *in_place(nvcu_em *e, const nvg_frag *f, const char *const *arg) {
  state s = { .e = e, .f = f, .v = NVB_NEWN(e->a, const char *, f->ninst) };
  int n = 0;
  for (int i = 0; i < f->ninst; i++) {
    const nvg_inst *in = &f->inst[i];
    int plain = is_float(in->type) && in->prim != NVG_LOOP && in->prim != NVG_TABLE && in->prim != NVG_SEL;
    if (in->prim == NVG_PARAM) s.v[i] = arg[in->imm];
    else if (in->prim == NVG_CONST) s.v[i] = value_text(&s, i);
    else if (plain && !n++) s.v[i] = nvcu_text(e, "(%s)", value_text(&s, i));
    else return NULL;
  }
  return s.v[f->result[0]];
}

/* ---- functions */
static void emit_signature(state *s, const char *name) {
  const nvg_frag *f = s->f;
  int one = f->nresult == 1;
  nvb_print(&s->t, "static __device__ __forceinline__ %s %s(", one ? nvcu_type(f->inst[f->result[0]].type) : "void",
            name);
  for (int i = 0; i < f->nparam; i++) nvb_print(&s->t, "%sconst %s p%d", i ? ", " : "", nvcu_type(f->inst[i].type), i);
  const char *comma = f->nparam ? ", " : "";
  for (int i = 0; i < f->nresult && !one; i++, comma = ", ")
    nvb_print(&s->t, "%s%s &o%d", comma, nvcu_type(f->inst[f->result[i]].type), i);
  if (s->fast) nvb_print(&s->t, "%sbool &bad", comma);
  nvb_puts(&s->t, ") {\n");
}

static const char *emit_function(nvcu_em *e, const nvg_frag *f, int fast) {
  if (!fast && f->rare >= 0) f = f->full;
  const char *name = find_known(e, f->hash, fast ? FAST : FULL);
  if (name) return name;
  state s = { .e = e, .f = f, .v = NVB_NEWN(e->a, const char *, f->ninst), .t = { .arena = e->a }, .fast = fast };
  s.flag = "bad";
  char *plain = nvb_strdup(e->a, f->name ? f->name : "f");
  for (char *p = plain; *p; p++)
    if (*p == '.' || *p == '<' || *p == '>') *p = '_';
  name = nvcu_text(e, fast ? "%s_%s_fast" : "%s_%s", nvcu_fresh(e, "f"), plain);
  emit_signature(&s, name);
  for (int i = 0; i < f->ninst; i++) emit_instruction(&s, i);
  if (fast && f->rare >= 0) put_line(&s, nvcu_text(e, "bad |= %s;", s.v[f->rare]));
  if (f->nresult == 1) put_line(&s, nvcu_text(e, "return %s;", s.v[f->result[0]]));
  else
    for (int i = 0; i < f->nresult; i++) put_line(&s, nvcu_text(e, "o%d = %s;", i, s.v[f->result[i]]));
  nvb_puts(&s.t, "}\n");
  nvb_puts(&e->preamble, s.t.s);
  return now_known(e, f->hash, fast ? FAST : FULL, name);
}

int nvcu_frag_has_slow_path(const nvg_frag *f, int approx) {
  if (form_of(f, approx)) return 0;
  for (int i = 0, depth = 0; i < f->ninst; i++) {
    const nvg_inst *x = &f->inst[i];
    depth += x->prim == NVG_LOOP ? 1 : x->prim == NVG_END ? -1 : 0;
    if (is_apart(x, depth)) return 1;
  }
  return f->rare >= 0;
}

int nvcu_frag_shows(const nvg_frag *f, int approx) {
  return !form_of(f, approx) && f->nresult == 1 && is_apart(&f->inst[f->result[0]], 0);
}

/* ---- n elements at once: one instruction after the other, each for all elements. What they have in common is computed
   once, and a constant that needs an instruction of its own serves all of them. If the first parameter numbers them,
   and the first number is a multiple of n, they have all but its last bits in common. */
typedef struct elements {
  int n, numbered;
  const uint8_t *own; /* by parameter: 1: each element has its own */
} elements;

static int is_without_last_bits(const nvg_frag *f, int i, int n) {
  const nvg_inst *in = &f->inst[i], *by = in->prim == NVG_SHR && in->a == 0 ? &f->inst[in->b] : NULL;
  return by && by->prim == NVG_CONST && 1ull << by->imm >= (uint64_t)n;
}

static int is_common(const state *s, const elements *all, const uint8_t *common, int i) {
  const nvg_frag *f = s->f;
  const nvg_inst *in = &f->inst[i];
  if (s->fast && is_apart(in, 0)) return 0; /* it sets the flag of each */
  const int operand[] = { in->a, in->b, in->c };
  int same = in->prim != NVG_PARAM || !all->own[in->imm];
  for (int k = 0; k < 3; k++) same &= operand[k] < 0 || common[operand[k]];
  return same || (all->numbered && is_without_last_bits(f, i, all->n));
}

/* The bits by which instruction i shifts the element's number right; 0 if it is the number, -1 if neither. */
static int shift_of(const nvg_frag *f, int i) {
  const nvg_inst *in = &f->inst[i];
  if (i == 0) return 0;
  return in->prim == NVG_SHR && in->a == 0 && f->inst[in->b].prim == NVG_CONST ? (int)f->inst[in->b].imm : -1;
}

/* Text of instruction i for element k, if it is a parameter or some of the last bits of the element's number; else
   NULL. */
static const char *known_text(state *s, const elements *all, int i, int k) {
  const nvg_inst *in = &s->f->inst[i], *by = in->prim == NVG_AND ? &s->f->inst[in->b] : NULL;
  if (in->prim == NVG_PARAM && all->own[in->imm])
    return !all->numbered ? nvcu_text(s->e, "p%d_%d", i, k) : k ? nvcu_text(s->e, "(p0 + %d)", k) : "p0";
  if (!all->numbered || !by || by->prim != NVG_CONST) return NULL;
  int shift = shift_of(s->f, in->a);
  return shift >= 0 && by->imm < (uint64_t)all->n >> shift
             ? nvcu_const(s->e, in->type, by->imm & (uint64_t)(k >> shift))
             : NULL;
}

static void emit_elements(state *s, const elements *all) {
  const nvg_frag *f = s->f;
  const char **v = s->v;
  uint8_t *common = NVB_NEWN(s->e->a, uint8_t, f->ninst);
  for (int i = 0; i < f->ninst; i++) {
    common[i] = (uint8_t)is_common(s, all, common, i);
    for (int k = 0; k < all->n; k++) {
      const char *known = known_text(s, all, i, k);
      s->v = v + k * f->ninst;
      s->element = common[i] ? "" : nvcu_text(s->e, "_%d", k);
      s->flag = nvcu_text(s->e, "bad_%d", k);
      if (known) s->v[i] = known;
      else if (common[i] && k) s->v[i] = v[i];
      else emit_instruction(s, i);
    }
  }
  for (int k = 0; k < all->n; k++) {
    s->v = v + k * f->ninst;
    if (s->fast && f->rare >= 0) put_line(s, nvcu_text(s->e, "bad_%d |= %s;", k, s->v[f->rare]));
    for (int o = 0; o < f->nresult; o++) put_line(s, nvcu_text(s->e, "o%d_%d = %s;", o, k, s->v[f->result[o]]));
  }
}

static void elements_signature(state *s, const elements *all, const char *name) {
  const nvg_frag *f = s->f;
  const char *comma = "";
  nvb_print(&s->t, "static __device__ __forceinline__ void %s(", name);
  for (int i = 0; i < f->nparam; i++)
    for (int k = 0; k < (all->own[i] && !all->numbered ? all->n : 1); k++, comma = ", ") {
      nvb_print(&s->t, "%sconst %s p%d", comma, nvcu_type(f->inst[i].type), i);
      if (all->own[i] && !all->numbered) nvb_print(&s->t, "_%d", k);
    }
  for (int k = 0; k < all->n; k++)
    for (int o = 0; o < f->nresult; o++, comma = ", ")
      nvb_print(&s->t, "%s%s &o%d_%d", comma, nvcu_type(f->inst[f->result[o]].type), o, k);
  for (int k = 0; k < all->n && s->fast; k++) nvb_print(&s->t, ", bool &bad_%d", k);
  nvb_puts(&s->t, ") {\n");
}

static const char *elements_function(nvcu_em *e, const nvg_frag *f, const elements *all, int fast) {
  int form = ELEMENTS + 16 * all->n + 512 * fast + 1024 * all->numbered;
  for (int i = 0; i < f->nparam; i++) form += all->own[i] << (11 + i);
  const char *name = find_known(e, f->hash, form);
  if (name) return name;
  state s = { .e = e, .f = f, .v = NVB_NEWN(e->a, const char *, all->n * f->ninst), .fast = fast };
  s.t = (nvb_text){ .arena = e->a };
  name = nvcu_text(e, "%s_%d", nvcu_fresh(e, "f"), all->n);
  elements_signature(&s, all, name);
  emit_elements(&s, all);
  nvb_puts(&s.t, "}\n");
  nvb_puts(&e->preamble, s.t.s);
  return now_known(e, f->hash, form, name);
}

static int has_loops(const nvg_frag *f) {
  int loops = 0;
  for (int i = 0; i < f->ninst; i++) loops |= f->inst[i].prim == NVG_LOOP;
  return loops;
}
int nvcu_frag_shared(const nvg_frag *f) {
  return f->nresult == 1 && !has_loops(f) && !nvcu_frag_has_slow_path(f, 0) ? nvg_frag_shared(f) : 1;
}
/* An instruction has room for the upper half of a constant alone. */
int nvcu_frag_long_constants(const nvg_frag *f) {
  enum { MOST = 16 }; /* parameters */
  int n = 0;
  for (int i = 0; i < f->ninst; i++)
    n += f->inst[i].prim == NVG_CONST && f->inst[i].type == NVM_F64 && (uint32_t)f->inst[i].imm;
  return f->nparam <= MOST && !has_loops(f) ? n : 0;
}

void nvcu_frag_at_once(nvcu_em *e, const nvg_frag *f, int n, int numbered, const char *const *arg, const char **out,
                       const char *const *flag) {
  uint8_t *own = NVB_NEWN(e->a, uint8_t, f->nparam + 1);
  nvb_text t = { .arena = e->a };
  for (int i = 0; i < f->nparam; i++)
    for (int k = 1; k < n; k++) own[i] |= strcmp(arg[i], arg[k * f->nparam + i]) != 0;
  elements all = { n, numbered, own };
  int fast = flag && nvcu_frag_has_slow_path(f, 0);
  for (int k = 0; k < n * f->nresult; k++)
    if (!out[k])
      nvcu_line(e, "%s %s;", nvcu_type(f->inst[f->result[k % f->nresult]].type), out[k] = nvcu_fresh(e, "f"));
  nvb_print(&t, "%s(", elements_function(e, f, &all, fast));
  for (int i = 0; i < f->nparam; i++)
    for (int k = 0; k < (own[i] && !numbered ? n : 1); k++) nvb_print(&t, "%s, ", arg[k * f->nparam + i]);
  for (int k = 0; k < n * f->nresult; k++) nvb_print(&t, "%s%s", k ? ", " : "", out[k]);
  for (int k = 0; k < n && fast; k++) nvb_print(&t, ", %s", flag[k]);
  nvcu_line(e, "%s);", t.s);
}

/* Text of the device's instruction for the fragment with its operands; NULL if there is none. */
static const char *device_form(nvcu_em *e, const nvg_frag *f, const char *const *arg, int level) {
  const char *p = form_of(f, level);
  int f8 = p && (nvg_is_f8(f->inst[0].type) || nvg_is_f8(f->inst[f->result[0]].type));
  if (!p || (f8 && e->target->arch < 89)) return NULL;
  if (strstr(p, "nv_square")) define_helper(e, SQUARE, "nv_square", square_text);
  if (strstr(p, "nv_gelu")) define_helper(e, GELU, "nv_gelu", gelu_text);
  if (strstr(p, "nv_xphi4")) define_helper(e, XPHI4, "nv_xphi4", xphi4_text);
  if (strstr(p, "nv_xphi7")) define_helper(e, XPHI7, "nv_xphi7", xphi7_text);
  nvb_text t = { .arena = e->a };
  for (; *p; p++)
    if (*p == '$') nvb_puts(&t, arg[*++p - '0']);
    else nvb_print(&t, "%c", *p);
  return t.s;
}

const char *nvcu_frag_value(nvcu_em *e, const nvg_frag *f, const char *const *arg, const char *flag, int approx) {
  const char *short_form = device_form(e, f, arg, approx);
  if (short_form) return short_form;
  int fast = flag && nvcu_frag_has_slow_path(f, 0);
  const char *short_text = fast || f->rare >= 0 || e->contracts ? NULL : in_place(e, f, arg);
  if (short_text) return short_text;
  nvb_text t = { .arena = e->a };
  nvb_print(&t, "%s(", emit_function(e, f, fast));
  for (int i = 0; i < f->nparam; i++) nvb_print(&t, "%s%s", i ? ", " : "", arg[i]);
  if (fast) nvb_print(&t, "%s%s", f->nparam ? ", " : "", flag);
  nvb_puts(&t, ")");
  return t.s;
}

void nvcu_frag(nvcu_em *e, const nvg_frag *f, const char *const *arg, const char **out, const char *flag, int approx) {
  int fast = flag && nvcu_frag_has_slow_path(f, 0);
  if (f->nresult == 1) {
    const char *x = nvcu_frag_value(e, f, arg, flag, approx);
    if (out[0]) {
      nvcu_line(e, "%s = %s;", out[0], x);
      return;
    }
    out[0] = nvcu_fresh(e, "f");
    nvcu_line(e, "const %s %s = %s;", nvcu_type(f->inst[f->result[0]].type), out[0], x);
    return;
  }
  nvb_text t = { .arena = e->a };
  for (int i = 0; i < f->nresult; i++)
    if (!out[i]) {
      out[i] = nvcu_fresh(e, "f");
      nvcu_line(e, "%s %s;", nvcu_type(f->inst[f->result[i]].type), out[i]);
    }
  nvb_print(&t, "%s(", emit_function(e, f, fast));
  for (int i = 0; i < f->nparam; i++) nvb_print(&t, "%s, ", arg[i]);
  for (int i = 0; i < f->nresult; i++) nvb_print(&t, "%s%s", i ? ", " : "", out[i]);
  nvcu_line(e, "%s%s%s);", t.s, fast ? ", " : "", fast ? flag : "");
}

void nvcu_merge(nvcu_em *e, const nvg_frag *f, const char **a, const char *const *b, int nstate, int into) {
  const char *arg[NVCU_ARGS] = { 0 }, *out[NVCU_ARGS] = { 0 };
  if (2 * nstate > NVCU_ARGS)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a merge has %d states, which is too many", nstate);
  for (int i = 0; i < nstate; i++) {
    arg[i] = a[i];
    arg[nstate + i] = b[i];
    if (into && nstate == 1) out[i] = a[i];
  }
  nvcu_frag(e, f, arg, out, NULL, 0);
  for (int i = 0; i < nstate; i++)
    if (!into) a[i] = out[i];
    else if (nstate > 1) nvcu_line(e, "%s = %s;", a[i], out[i]);
}

int nvcu_merges_many(const nvg_frag *f) {
  nvm_dtype types[4];
  for (int i = 0; i < f->nparam && i < 4; i++) types[i] = f->inst[i].type;
  for (size_t i = 0; i < sizeof bests / sizeof *bests; i++)
    if (f->name && f->nparam == 4 && !strcmp(f->name, bests[i].merge) && is_library(f, bests[i].merge, types))
      return (int)i + 1;
  return 0;
}

void nvcu_merge_many(nvcu_em *e, const nvg_frag *f, int n, const char *const *x, const char **out) {
  const struct best *b = &bests[nvcu_merges_many(f) - 1];
  nvb_text t = { .arena = e->a };
  define_helper(e, b->form, b->name, b->text);
  for (int i = 0; i < 2; i++) {
    out[i] = nvcu_fresh(e, "b");
    nvcu_line(e, "%s %s;", nvcu_type(f->inst[i].type), out[i]);
    for (int k = 0; k < n; k++) nvb_print(&t, "%s%s", k ? ", " : i ? "}, {" : "", x[2 * k + i]);
  }
  nvcu_line(e, "%s({%s}, %s, %s);", b->name, t.s, out[0], out[1]);
}
