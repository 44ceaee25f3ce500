/* Emits a fragment over vectors of n lanes: one IR operation, or a short fixed sequence, per primitive. Never emits
   library calls, half or bfloat arithmetic, frem, saturating conversions or fast-math flags. Results have the bits of
   the interpreter's, except for NaN payloads. */
#include "codegen/llvm/emit.h"
#include "frag/dtype.h"

typedef struct open_loop {
  int inst;
  blk header, exit;
  val i;
} open_loop;
typedef struct state {
  nvcl_em *e;
  const nvg_frag *f;
  val *v;
  val *mask;    /* by instruction, of a condition: words of ones or zeros, as wide as what was compared; NULL: none */
  int n, depth; /* n: lanes of the instruction that is emitted */
  int lanes;
  const int
      *group; /* by instruction, how many adjacent lanes share its value, so it has lanes / group; NULL: none do */
  const nvcl_lanes *arg; /* of the arguments */
  open_loop loop[8];
} state;

const nvg_frag *nvcl_frag_full(const nvg_frag *f) { return f->rare >= 0 ? f->full : f; }

static int is_float(nvm_dtype t) { return t == NVM_F32 || t == NVM_F64; }
static int is_signed(nvm_dtype t) { return nvg_class_of(t) == NVG_SIGNED; }
static typ vec_type(state *s, nvm_dtype t) { return nvcl_vec(nvcl_type(s->e, t), s->n); }
static unsigned width_of(nvm_dtype t) { return t == NVM_BOOL ? 1 : 8u * (unsigned)nvg_size(t); }
static val splat_word(state *s, nvm_dtype t, uint64_t x) { return nvcl_bits(s->e, t, x, s->n); }

static val call_unary(state *s, const char *name, val a) {
  typ t = LLVMTypeOf(a);
  return nvcl_call(s->e, name, &t, 1, &a, 1);
}

/* Quotient of integers through a float type that represents both exactly: the rounded quotient never reaches the next
   integer, so truncation is exact. 64 bits use the machine's division; the fragment made the divisor safe. */
static val int_div(state *s, nvm_dtype t, val a, val b) {
  LLVMBuilderRef B = s->e->b;
  int sign = is_signed(t);
  if (width_of(t) == 64) return sign ? LLVMBuildSDiv(B, a, b, "") : LLVMBuildUDiv(B, a, b, "");
  nvm_dtype ft = width_of(t) == 32 ? NVM_F64 : NVM_F32, it = width_of(t) == 32 ? t : NVM_I32;
  typ f = vec_type(s, ft), to = vec_type(s, it);
  val x = sign ? LLVMBuildSIToFP(B, a, f, "") : LLVMBuildUIToFP(B, a, f, "");
  val y = sign ? LLVMBuildSIToFP(B, b, f, "") : LLVMBuildUIToFP(B, b, f, "");
  val q = LLVMBuildFDiv(B, x, y, "");
  q = is_signed(it) ? LLVMBuildFPToSI(B, q, to, "") : LLVMBuildFPToUI(B, q, to, "");
  return it == t ? q : LLVMBuildTrunc(B, q, vec_type(s, t), "");
}

static val int_rem(state *s, nvm_dtype t, val a, val b) {
  return LLVMBuildSub(s->e->b, a, LLVMBuildMul(s->e->b, int_div(s, t, a, b), b, ""), "");
}

static val high_half(state *s, nvm_dtype t, val a, val b) {
  LLVMBuilderRef B = s->e->b;
  if (width_of(t) < 64) {
    typ wide = nvcl_vec(LLVMIntTypeInContext(s->e->c, 2 * width_of(t)), s->n), narrow = vec_type(s, t);
    val x = is_signed(t) ? LLVMBuildSExt(B, a, wide, "") : LLVMBuildZExt(B, a, wide, "");
    val y = is_signed(t) ? LLVMBuildSExt(B, b, wide, "") : LLVMBuildZExt(B, b, wide, "");
    val by = LLVMConstInt(LLVMIntTypeInContext(s->e->c, 2 * width_of(t)), width_of(t), 0);
    return LLVMBuildTrunc(B, LLVMBuildLShr(B, LLVMBuildMul(B, x, y, ""), nvcl_splat(s->e, by, s->n), ""), narrow, "");
  }
  /* four products of 32 bits, since vectors have no wider multiplication */
  val low = splat_word(s, t, 0xffffffffu), half = splat_word(s, t, 32);
  val al = LLVMBuildAnd(B, a, low, ""), ah = LLVMBuildLShr(B, a, half, "");
  val bl = LLVMBuildAnd(B, b, low, ""), bh = LLVMBuildLShr(B, b, half, "");
  val mid = LLVMBuildAdd(B, LLVMBuildMul(B, ah, bl, ""), LLVMBuildLShr(B, LLVMBuildMul(B, al, bl, ""), half, ""), "");
  val mid2 = LLVMBuildAdd(B, LLVMBuildMul(B, al, bh, ""), LLVMBuildAnd(B, mid, low, ""), "");
  val hi = LLVMBuildAdd(B, LLVMBuildMul(B, ah, bh, ""), LLVMBuildLShr(B, mid, half, ""), "");
  hi = LLVMBuildAdd(B, hi, LLVMBuildLShr(B, mid2, half, ""), "");
  if (!is_signed(t)) return hi;
  val zero = splat_word(s, t, 0), na = LLVMBuildICmp(B, LLVMIntSLT, a, zero, ""),
      nb = LLVMBuildICmp(B, LLVMIntSLT, b, zero, "");
  hi = LLVMBuildSub(B, hi, LLVMBuildSelect(B, na, b, zero, ""), "");
  return LLVMBuildSub(B, hi, LLVMBuildSelect(B, nb, a, zero, ""), "");
}

static val emit_shift(state *s, nvg_prim p, nvm_dtype t, val a, val by) {
  LLVMBuilderRef B = s->e->b;
  by = LLVMBuildAnd(B, by, splat_word(s, t, width_of(t) - 1), "");
  if (p == NVG_SHL) return LLVMBuildShl(B, a, by, "");
  return is_signed(t) ? LLVMBuildAShr(B, a, by, "") : LLVMBuildLShr(B, a, by, "");
}

static val emit_compare(state *s, nvg_prim p, nvm_dtype t, val a, val b) {
  static const LLVMRealPredicate real[] = {
    LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT, LLVMRealOLE, LLVMRealOGT, LLVMRealOGE
  };
  static const LLVMIntPredicate sint[] = { LLVMIntEQ, LLVMIntNE, LLVMIntSLT, LLVMIntSLE, LLVMIntSGT, LLVMIntSGE };
  static const LLVMIntPredicate uint[] = { LLVMIntEQ, LLVMIntNE, LLVMIntULT, LLVMIntULE, LLVMIntUGT, LLVMIntUGE };
  int i = p - NVG_EQ;
  if (is_float(t)) return LLVMBuildFCmp(s->e->b, real[i], a, b, "");
  return LLVMBuildICmp(s->e->b, (is_signed(t) ? sint : uint)[i], a, b, "");
}

static val to_float(state *s, nvm_dtype from, nvm_dtype to, val a) {
  LLVMBuilderRef B = s->e->b;
  typ t = vec_type(s, to);
  if (from == NVM_F16) return LLVMBuildFPExt(B, LLVMBuildBitCast(B, a, nvcl_vec(s->e->half, s->n), ""), t, "");
  if (from == NVM_F32 && to == NVM_F64) return LLVMBuildFPExt(B, a, t, "");
  if (from == NVM_F64 && to == NVM_F32) return LLVMBuildFPTrunc(B, a, t, "");
  if (from == to) return a;
  return is_signed(from) ? LLVMBuildSIToFP(B, a, t, "") : LLVMBuildUIToFP(B, a, t, "");
}

static val emit_convert(state *s, nvm_dtype from, nvm_dtype to, val a) {
  LLVMBuilderRef B = s->e->b;
  if (is_float(to)) return to_float(s, from, to, a);
  if (to == NVM_F16 && from == NVM_F32)
    return LLVMBuildBitCast(B, LLVMBuildFPTrunc(B, a, nvcl_vec(s->e->half, s->n), ""), vec_type(s, to), "");
  if (is_float(from)) {
    nvm_dtype mid = width_of(to) < 32 ? NVM_I32 : to;
    val i = is_signed(mid) ? LLVMBuildFPToSI(B, a, vec_type(s, mid), "") : LLVMBuildFPToUI(B, a, vec_type(s, mid), "");
    return mid == to ? i : LLVMBuildTrunc(B, i, vec_type(s, to), "");
  }
  if (width_of(to) == width_of(from)) return a;
  if (width_of(to) < width_of(from)) return LLVMBuildTrunc(B, a, vec_type(s, to), "");
  return is_signed(from) ? LLVMBuildSExt(B, a, vec_type(s, to), "") : LLVMBuildZExt(B, a, vec_type(s, to), "");
}

static val emit_reinterpret(state *s, nvm_dtype from, nvm_dtype to, val a) {
  if (to == NVM_BOOL || from == NVM_BOOL)
    return emit_convert(s, from == NVM_BOOL ? from : NVM_U8, to == NVM_BOOL ? to : NVM_U8, a);
  return LLVMBuildBitCast(s->e->b, a, vec_type(s, to), "");
}

val nvcl_table(nvcl_em *e, const char *name, nvm_dtype t, val *x, uint64_t n) {
  val g = LLVMAddGlobal(e->m, LLVMArrayType2(nvcl_memtype(e, t), n), name);
  LLVMSetInitializer(g, LLVMConstArray2(nvcl_memtype(e, t), x, n));
  LLVMSetGlobalConstant(g, 1);
  LLVMSetLinkage(g, LLVMPrivateLinkage);
  LLVMSetAlignment(g, 64);
  return g;
}

/* The table of a fragment, one for each content */
static val table_global(state *s, const nvg_table *t) {
  nvcl_em *e = s->e;
  nvb_hash h = nvb_hash_bytes(t->bits, sizeof *t->bits * (size_t)t->n);
  nvb_text name = { .arena = e->a };
  nvb_print(&name, "table%d.%016llx%016llx", (int)t->type, (unsigned long long)h.hi, (unsigned long long)h.lo);
  val g = LLVMGetNamedGlobal(e->m, name.s);
  if (g) return g;
  val *x = NVB_NEWN(e->a, val, t->n);
  for (int i = 0; i < t->n; i++) x[i] = nvcl_bits(e, t->type == NVM_BOOL ? NVM_U8 : t->type, t->bits[i], 1);
  return nvcl_table(e, name.s, t->type, x, (uint64_t)t->n);
}

static val look_up(state *s, const nvg_table *t, nvm_dtype itype, val i) {
  nvcl_em *e = s->e;
  typ mem = nvcl_memtype(e, t->type), vt = nvcl_vec(mem, s->n);
  val g = table_global(s, t);
  if (width_of(itype) < 32) i = emit_convert(s, itype, NVM_I32, i);
  val p = LLVMBuildGEP2(e->b, mem, g, &i, 1, "");
  unsigned size = (unsigned)nvg_size(t->type);
  if (s->n == 1) return nvcl_from_memory(e, nvcl_load(e, mem, p, size), t->type, 1);
  typ over[2] = { vt, LLVMTypeOf(p) };
  val arg[4] = { p, nvcl_i32(e, (int)size), LLVMConstAllOnes(nvcl_vec(e->i1, s->n)), LLVMGetPoison(vt) };
  return nvcl_from_memory(e, nvcl_call(e, "llvm.masked.gather", over, 2, arg, 4), t->type, s->n);
}

/* ---- loops: a header with the PHIs, and the test at the bottom; in the header if the loop ends as soon as all lanes
   are over */
static val is_below(nvcl_em *e, val iteration, uint64_t iterations) {
  return LLVMBuildICmp(e->b, LLVMIntULT, iteration, nvcl_i32(e, (int)iterations), "");
}
/* Leaves the header for the body, or for the block behind the loop, which is returned. NULL: the test is elsewhere. */
static blk until_all(state *s, int i, val iteration) {
  nvcl_em *e = s->e;
  if (s->f->inst[i].a < 0) return NULL;
  blk body = nvcl_block(e, "frag.body"), exit = nvcl_block(e, "frag.done");
  val some = nvcl_any(e, LLVMBuildNot(e->b, LLVMBuildFreeze(e->b, s->v[s->f->inst[i].a], ""), ""));
  LLVMBuildCondBr(e->b, LLVMBuildAnd(e->b, some, is_below(e, iteration, s->f->inst[i].imm), ""), body, exit);
  nvcl_at(e, body);
  return exit;
}
static val loop_open(state *s, int i) {
  nvcl_em *e = s->e;
  if (s->depth == 8) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] loops of a fragment are nested too deeply");
  blk before = nvcl_here(e), header = nvcl_block(e, "frag");
  LLVMBuildBr(e->b, header);
  nvcl_at(e, header);
  val iteration = LLVMBuildPhi(e->b, e->i32, ""), zero = nvcl_i32(e, 0);
  LLVMAddIncoming(iteration, &zero, &before, 1);
  for (int k = i + 1; s->f->inst[k].prim == NVG_PHI; k++) {
    val first = s->v[s->f->inst[k].a];
    s->v[k] = LLVMBuildPhi(e->b, LLVMTypeOf(first), "");
    LLVMAddIncoming(s->v[k], &first, &before, 1);
  }
  s->loop[s->depth++] = (open_loop){ i, header, until_all(s, i, iteration), iteration };
  return nvcl_splat(e, iteration, s->n);
}

/* From here on a PHI of the loop stands for its value after the last iteration, which is its own if the header
   tests. */
static void loop_close(state *s) {
  nvcl_em *e = s->e;
  open_loop *l = &s->loop[--s->depth];
  uint64_t iterations = s->f->inst[l->inst].imm;
  val next = LLVMBuildAdd(e->b, l->i, nvcl_i32(e, 1), ""), *last = NVB_NEWN(e->a, val, s->f->ninst);
  blk here = nvcl_here(e), exit = l->exit ? l->exit : nvcl_block(e, "frag.done");
  LLVMAddIncoming(l->i, &next, &here, 1);
  for (int k = l->inst + 1; s->f->inst[k].prim == NVG_PHI; k++) {
    last[k] = s->v[s->f->inst[k].b];
    LLVMAddIncoming(s->v[k], &last[k], &here, 1);
  }
  for (int k = l->inst + 1; s->f->inst[k].prim == NVG_PHI && !l->exit; k++) s->v[k] = last[k];
  if (l->exit) LLVMBuildBr(e->b, l->header);
  else LLVMBuildCondBr(e->b, is_below(e, next, iterations), l->header, exit);
  nvcl_at(e, exit);
}

static val emit_arithmetic(state *s, const nvg_inst *in, nvm_dtype t, val a, val b, val c) {
  LLVMBuilderRef B = s->e->b;
  int real = is_float(t);
  typ vt = vec_type(s, t);
  switch (in->prim) {
  case NVG_ADD: return real ? LLVMBuildFAdd(B, a, b, "") : LLVMBuildAdd(B, a, b, "");
  case NVG_SUB: return real ? LLVMBuildFSub(B, a, b, "") : LLVMBuildSub(B, a, b, "");
  case NVG_MUL: return real ? LLVMBuildFMul(B, a, b, "") : LLVMBuildMul(B, a, b, "");
  case NVG_DIV: return real ? LLVMBuildFDiv(B, a, b, "") : int_div(s, t, a, b);
  case NVG_REM: return int_rem(s, t, a, b);
  case NVG_NEG: return real ? LLVMBuildFNeg(B, a, "") : LLVMBuildNeg(B, a, "");
  case NVG_ABS: return call_unary(s, "llvm.fabs", a);
  case NVG_FMA: return nvcl_call(s->e, "llvm.fma", &vt, 1, (val[]){ a, b, c }, 3);
  case NVG_SQRT:
  case NVG_SQRT_INSIDE: return call_unary(s, "llvm.sqrt", a);
  case NVG_RINT: return call_unary(s, "llvm.roundeven", a);
  case NVG_FLOOR: return call_unary(s, "llvm.floor", a);
  case NVG_CEIL: return call_unary(s, "llvm.ceil", a);
  case NVG_TRUNC: return call_unary(s, "llvm.trunc", a);
  case NVG_MULHI: return high_half(s, t, a, b);
  case NVG_AND: return LLVMBuildAnd(B, a, b, "");
  case NVG_OR: return LLVMBuildOr(B, a, b, "");
  case NVG_XOR: return LLVMBuildXor(B, a, b, "");
  case NVG_NOT: return LLVMBuildNot(B, a, "");
  case NVG_SHL:
  case NVG_SHR: return emit_shift(s, in->prim, t, a, b);
  case NVG_CLZ: return nvcl_call(s->e, "llvm.ctlz", &vt, 1, (val[]){ a, LLVMConstNull(s->e->i1) }, 2);
  default: return emit_compare(s, in->prim, t, a, b);
  }
}

/* ---- conditions. A CPU without mask registers compares into words as wide as the operands. LLVM packs conditions
   into 16 bits wherever they are combined or outlive a block; as words they remain what comparisons make and selections
   use (8 powers of f32: 133 -> 107 instructions). */
static int is_comparison(const nvg_inst *in) { return in->prim >= NVG_EQ && in->prim <= NVG_GE; }
static val combine_words(state *s, nvg_prim p, val a, val b) {
  LLVMBuilderRef B = s->e->b;
  if (p == NVG_NOT) return a ? LLVMBuildNot(B, a, "") : NULL;
  if (!a || !b || LLVMTypeOf(a) != LLVMTypeOf(b)) return NULL;
  return p == NVG_AND ? LLVMBuildAnd(B, a, b, "") : p == NVG_OR ? LLVMBuildOr(B, a, b, "") : LLVMBuildXor(B, a, b, "");
}
/* The words of instruction i, whose value is v; NULL: it has none. */
static val words_of(state *s, int i, val v) {
  const nvg_inst *in = &s->f->inst[i];
  if (s->e->target->width > 32 || s->n == 1 || s->group || in->type != NVM_BOOL) return NULL;
  if (is_comparison(in)) {
    unsigned width = width_of(s->f->inst[in->a].type);
    return width < 32 ? NULL : LLVMBuildSExt(s->e->b, v, nvcl_vec(LLVMIntTypeInContext(s->e->c, width), s->n), "");
  }
  int combines = in->prim == NVG_AND || in->prim == NVG_OR || in->prim == NVG_XOR || in->prim == NVG_NOT;
  return combines ? combine_words(s, in->prim, s->mask[in->a], in->b >= 0 ? s->mask[in->b] : NULL) : NULL;
}
static val keep_words(state *s, int i, val v) { /* v, or what its words say */
  val w = s->mask[i] = words_of(s, i, v);
  return w && !is_comparison(&s->f->inst[i]) ? LLVMBuildICmp(s->e->b, LLVMIntSLT, w, LLVMConstNull(LLVMTypeOf(w)), "")
                                             : v;
}

/* ---- lanes that share a value. The quotient of consecutive numbers and a power of two is the same in groups of lanes,
   and so is what derives from it; it is computed once for each group. */
static int is_consecutive(const nvg_frag *f, int i, const nvcl_lanes *arg) {
  const nvg_inst *in = &f->inst[i];
  if (in->prim == NVG_PARAM) return arg[in->imm] == NVCL_CONSECUTIVE;
  return in->prim == NVG_BITS && nvg_class_of(in->type) < NVG_FLOAT && is_consecutive(f, in->a, arg);
}
static int is_quotient(const state *s, int i) {
  const nvg_inst *in = &s->f->inst[i];
  return in->prim == NVG_SHR && s->f->inst[in->b].prim == NVG_CONST && is_consecutive(s->f, in->a, s->arg);
}
static int group_of(const state *s, int i, const int *group) {
  const nvg_inst *in = &s->f->inst[i];
  const int operand[] = { in->a, in->b, in->c };
  if (in->prim == NVG_PARAM && s->arg[in->imm] != NVCL_UNIFORM) return 1;
  if (is_quotient(s, i)) {
    uint64_t by = s->f->inst[in->b].imm;
    return by < 16 && (1 << by) < s->lanes ? 1 << by : s->lanes;
  }
  int least = s->lanes;
  for (int k = 0; k < 3; k++)
    if (operand[k] >= 0 && group[operand[k]] < least) least = group[operand[k]];
  return least;
}
static const int *find_groups(const state *s) {
  int *group = NVB_NEWN(s->e->a, int, s->f->ninst), counts = 0;
  for (int i = 0; i < s->f->nparam; i++) counts |= s->arg[i] == NVCL_CONSECUTIVE;
  if (!counts || s->lanes & (s->lanes - 1)) return NULL;
  for (int i = 0; i < s->f->ninst; i++) {
    if (s->f->inst[i].prim == NVG_LOOP) return NULL;
    group[i] = group_of(s, i, group);
  }
  return group;
}
/* Which of the groups lane k of a value in groups stands for, and which lane stands for group k. With AVX2 the middle
   ones of four words of 64 bits change places, since lanes then spread by shuffles inside of 128 bits. */
static int place_of(const state *s, int k, int group) {
  int swapped = group > 1 && s->lanes / group % 4 == 0 && s->e->target->width == 32;
  return swapped && (k + 1) % 4 > 1 ? k ^ 3 : k;
}
/* The low bits of consecutive numbers, of which the first is a multiple of the lanes, or of their quotients, one for
   each group, are constants. NULL: other bits are asked for. */
static val rest_of_numbers(state *s, int i) {
  const nvg_inst *in = &s->f->inst[i], *by = in->prim == NVG_AND ? &s->f->inst[in->b] : NULL;
  int64_t rest[NVC_LANES];
  int group = s->group[i], n = s->lanes / group;
  if (!by || by->prim != NVG_CONST || by->imm >= (uint64_t)n) return NULL;
  if (!is_consecutive(s->f, in->a, s->arg) && !is_quotient(s, in->a)) return NULL;
  for (int k = 0; k < n; k++) rest[k] = place_of(s, k, group) & (int64_t)by->imm;
  return nvcl_consts(s->e, nvcl_type(s->e, in->type), rest, n);
}
/* The value of instruction i in groups of at most its own. */
static val in_groups(state *s, int i, int group) {
  int own = s->group ? s->group[i] : 1, lane[NVC_LANES], n = s->lanes / group;
  if (own == group) return s->v[i];
  if (own == s->lanes) return nvcl_splat(s->e, s->v[i], n);
  for (int k = 0; k < n; k++) lane[k] = place_of(s, place_of(s, k, group) * group / own, own);
  return nvcl_shuffle(s->e, s->v[i], NULL, lane, n);
}
/* The quotient of consecutive numbers and a power of two, one for each group: that of the first number, and the
   following. */
static val numbers_of_groups(state *s, int i) {
  const nvg_inst *in = &s->f->inst[i];
  int64_t next[NVC_LANES];
  if (in->prim != NVG_SHR || s->group[i] == 1 || !is_consecutive(s->f, in->a, s->arg)) return NULL;
  val first = LLVMBuildExtractElement(s->e->b, s->v[in->a], nvcl_i32(s->e, 0), "");
  typ t = LLVMTypeOf(first);
  val by = LLVMConstInt(t, s->f->inst[in->b].imm, 0);
  first = is_signed(in->type) ? LLVMBuildAShr(s->e->b, first, by, "") : LLVMBuildLShr(s->e->b, first, by, "");
  int n = s->lanes / s->group[i];
  for (int k = 0; k < n; k++) next[k] = place_of(s, k, s->group[i]);
  return n == 1 ? first : LLVMBuildAdd(s->e->b, nvcl_splat(s->e, first, n), nvcl_consts(s->e, t, next, n), "");
}
static val operand_value(state *s, int i, int of) { return in_groups(s, of, s->group ? s->group[i] : 1); }
static val parameter_value(state *s, val arg) { /* in s->n lanes, which are all or one */
  if (s->n < s->lanes && LLVMGetTypeKind(LLVMTypeOf(arg)) == LLVMVectorTypeKind)
    return LLVMBuildExtractElement(s->e->b, arg, nvcl_i32(s->e, 0), "");
  return nvcl_splat(s->e, arg, s->n);
}

static val emit_instruction(state *s, int i, const val *arg) {
  const nvg_inst *in = &s->f->inst[i];
  int phi = in->prim == NVG_PHI;
  val known = s->group ? rest_of_numbers(s, i) : NULL;
  if (s->group && !known) known = numbers_of_groups(s, i);
  if (known) return known;
  if (s->group) s->n = s->lanes / s->group[i];
  val a = in->a >= 0 && !phi ? operand_value(s, i, in->a) : NULL,
      b = in->b >= 0 && !phi ? operand_value(s, i, in->b) : NULL;
  val c = in->c >= 0 ? operand_value(s, i, in->c) : NULL;
  nvm_dtype from = in->a >= 0 ? s->f->inst[in->a].type : in->type;
  switch (in->prim) {
  case NVG_PARAM: return parameter_value(s, arg[in->imm]);
  case NVG_CONST: return splat_word(s, in->type, in->imm);
  case NVG_SEL: return LLVMBuildSelect(s->e->b, a, b, c, "");
  case NVG_CVT: return emit_convert(s, from, in->type, a);
  case NVG_BITS: return emit_reinterpret(s, from, in->type, a);
  case NVG_TABLE: return look_up(s, &s->f->table[in->tab], from, a);
  case NVG_LOOP: return loop_open(s, i);
  case NVG_PHI: return s->v[i]; /* built with its loop */
  case NVG_END: loop_close(s); return NULL;
  default: return emit_arithmetic(s, in, from, a, b, c);
  }
}

val nvcl_frag_over(nvcl_em *e, const nvg_frag *f, const val *arg, const nvcl_lanes *lanes, val *out, int n) {
  state s = { .e = e, .f = f, .n = n, .lanes = n, .arg = lanes, .v = NVB_NEWN(e->a, val, f->ninst) };
  s.mask = NVB_NEWN(e->a, val, f->ninst);
  if (lanes) s.group = find_groups(&s);
  for (int i = 0; i < f->ninst; i++) s.v[i] = keep_words(&s, i, emit_instruction(&s, i, arg));
  for (int i = 0; i < f->nresult; i++) out[i] = in_groups(&s, f->result[i], 1);
  return f->rare >= 0 ? in_groups(&s, f->rare, 1) : NULL;
}
val nvcl_frag(nvcl_em *e, const nvg_frag *f, const val *arg, val *out, int n) {
  return nvcl_frag_over(e, f, arg, NULL, out, n);
}
