/* Has the types, constants and small helpers over LLVM's builder. Decides the type of a dtype in a register (bool i1,
   16-bit floats i16, because LLVM's half and bfloat lower to library calls) and in memory; never what is computed. */
#include "codegen/llvm/emit.h"
#include <string.h>
#include "base/text.h"
#include "frag/dtype.h"

void nvcl_em_types(nvcl_em *e) {
  e->i1 = LLVMInt1TypeInContext(e->c);
  e->i8 = LLVMInt8TypeInContext(e->c);
  e->i16 = LLVMInt16TypeInContext(e->c);
  e->i32 = LLVMInt32TypeInContext(e->c);
  e->i64 = LLVMInt64TypeInContext(e->c);
  e->half = LLVMHalfTypeInContext(e->c);
  e->f32 = LLVMFloatTypeInContext(e->c);
  e->f64 = LLVMDoubleTypeInContext(e->c);
  e->ptr = LLVMPointerTypeInContext(e->c, 0);
  e->tvoid = LLVMVoidTypeInContext(e->c);
}

typ nvcl_type(nvcl_em *e, nvm_dtype t) {
  switch (t) {
  case NVM_BOOL: return e->i1;
  case NVM_I8:
  case NVM_F8E4:
  case NVM_F8E5:
  case NVM_U8: return e->i8;
  case NVM_I16:
  case NVM_U16:
  case NVM_F16:
  case NVM_BF16: return e->i16;
  case NVM_I32:
  case NVM_U32: return e->i32;
  case NVM_I64:
  case NVM_U64: return e->i64;
  case NVM_F32:
  case NVM_C64: return e->f32;
  default: return e->f64;
  }
}

typ nvcl_memtype(nvcl_em *e, nvm_dtype t) { return t == NVM_BOOL ? e->i8 : nvcl_type(e, t); }
typ nvcl_vec(typ t, int n) { return n == 1 ? t : LLVMVectorType(t, (unsigned)n); }
val nvcl_int(nvcl_em *e, int64_t x) { return LLVMConstInt(e->i64, (uint64_t)x, 1); }
val nvcl_i32(nvcl_em *e, int x) { return LLVMConstInt(e->i32, (uint64_t)x, 1); }

static val splat_const(val v, int n) {
  val all[2 * NVC_LANES]; /* two values per lane, for pairs */
  if (n == 1) return v;
  for (int i = 0; i < n; i++) all[i] = v;
  return LLVMConstVector(all, (unsigned)n);
}

val nvcl_bits(nvcl_em *e, nvm_dtype t, uint64_t bits, int n) {
  val v;
  if (t == NVM_F32) v = LLVMConstBitCast(LLVMConstInt(e->i32, bits & 0xffffffffu, 0), e->f32);
  else if (t == NVM_F64) v = LLVMConstBitCast(LLVMConstInt(e->i64, bits, 0), e->f64);
  else {
    unsigned width = 8u * (unsigned)nvg_size(t);
    v = LLVMConstInt(nvcl_type(e, t), t == NVM_BOOL ? bits & 1 : width == 64 ? bits : bits & ((1ull << width) - 1), 0);
  }
  return splat_const(v, n);
}

val nvcl_consts(nvcl_em *e, typ t, const int64_t *x, int n) {
  (void)e;
  val all[NVC_LANES];
  for (int i = 0; i < n; i++) all[i] = LLVMConstInt(t, (uint64_t)x[i], 1);
  return n == 1 ? all[0] : LLVMConstVector(all, (unsigned)n);
}

val nvcl_zero(nvcl_em *e, nvm_dtype t, int n) { return LLVMConstNull(nvcl_vec(nvcl_type(e, t), n)); }

val nvcl_splat(nvcl_em *e, val v, int n) {
  typ t = LLVMTypeOf(v);
  if (n == 1 || LLVMGetTypeKind(t) == LLVMVectorTypeKind) return v;
  if (LLVMIsConstant(v)) return splat_const(v, n);
  typ vt = LLVMVectorType(t, (unsigned)n);
  val one = LLVMBuildInsertElement(e->b, LLVMGetPoison(vt), v, nvcl_i32(e, 0), "");
  return LLVMBuildShuffleVector(e->b, one, LLVMGetPoison(vt), LLVMConstNull(LLVMVectorType(e->i32, (unsigned)n)), "");
}

val nvcl_shuffle(nvcl_em *e, val a, val b, const int *lane, int n) {
  unsigned have = LLVMGetVectorSize(LLVMTypeOf(a));
  int same = !b && (int)have == n;
  val at[2 * NVC_LANES];
  for (int i = 0; i < n; i++) {
    same &= lane[i] == i;
    at[i] = lane[i] < 0 ? LLVMGetPoison(e->i32) : nvcl_i32(e, lane[i]);
  }
  if (same) return a;
  if (n == 1) return LLVMBuildExtractElement(e->b, lane[0] < (int)have ? a : b, nvcl_i32(e, lane[0] % (int)have), "");
  return LLVMBuildShuffleVector(e->b, a, b ? b : LLVMGetPoison(LLVMTypeOf(a)), LLVMConstVector(at, (unsigned)n), "");
}

val nvcl_call(nvcl_em *e, const char *intrinsic, typ *over, int nover, val *arg, int narg) {
  unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
  if (!id) nvb_throw(e->a, NVM_ERR_INTERNAL, "[llvm] no intrinsic %s", intrinsic);
  val fn = LLVMGetIntrinsicDeclaration(e->m, id, over, (size_t)nover);
  return LLVMBuildCall2(e->b, LLVMIntrinsicGetType(e->c, id, over, (size_t)nover), fn, arg, (unsigned)narg, "");
}

/* The words whose signs a mask is, joined until they fill one vector: LLVM would pack the masks of all first. */
static val join_words(nvcl_em *e, val mask) {
  int signs = LLVMIsAICmpInst(mask) && LLVMGetICmpPredicate(mask) == LLVMIntSLT && LLVMIsNull(LLVMGetOperand(mask, 1));
  if (!signs || e->target->width > 32) return mask;
  val w = LLVMGetOperand(mask, 0);
  typ word = LLVMGetElementType(LLVMTypeOf(w));
  int n = (int)LLVMGetVectorSize(LLVMTypeOf(w)), most = 8 * e->target->width / (int)LLVMGetIntTypeWidth(word);
  for (; n > most && n % 2 == 0; n /= 2) {
    int lane[NVC_LANES];
    for (int k = 0; k < n; k++) lane[k] = k;
    w = LLVMBuildOr(e->b, nvcl_shuffle(e, w, NULL, lane, n / 2), nvcl_shuffle(e, w, NULL, lane + n / 2, n / 2), "");
  }
  return LLVMBuildICmp(e->b, LLVMIntSLT, w, LLVMConstNull(LLVMTypeOf(w)), "");
}

val nvcl_any(nvcl_em *e, val mask) {
  if (LLVMGetTypeKind(LLVMTypeOf(mask)) != LLVMVectorTypeKind) return mask;
  mask = join_words(e, mask);
  typ t = LLVMTypeOf(mask);
  typ word = LLVMIntTypeInContext(e->c, LLVMGetVectorSize(t));
  return LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildBitCast(e->b, mask, word, ""), LLVMConstNull(word), "");
}

val nvcl_slot(nvcl_em *e, typ t, const char *name) {
  blk here = nvcl_here(e);
  val first = LLVMGetFirstInstruction(e->entry);
  if (first) LLVMPositionBuilderBefore(e->b, first);
  else nvcl_at(e, e->entry);
  val p = LLVMBuildAlloca(e->b, t, name);
  nvcl_at(e, here);
  return p;
}

val nvcl_gep(nvcl_em *e, val p, int64_t bytes) {
  if (!bytes) return p;
  val at = nvcl_int(e, bytes);
  return LLVMBuildInBoundsGEP2(e->b, e->i8, p, &at, 1, "");
}

val nvcl_load(nvcl_em *e, typ t, val p, unsigned align) {
  val v = LLVMBuildLoad2(e->b, t, p, "");
  LLVMSetAlignment(v, align);
  return v;
}

void nvcl_store(nvcl_em *e, val v, val p, unsigned align) { LLVMSetAlignment(LLVMBuildStore(e->b, v, p), align); }
blk nvcl_block(nvcl_em *e, const char *name) { return LLVMAppendBasicBlockInContext(e->c, e->fn, name); }
void nvcl_at(nvcl_em *e, blk b) { LLVMPositionBuilderAtEnd(e->b, b); }
blk nvcl_here(nvcl_em *e) { return LLVMGetInsertBlock(e->b); }

void nvcl_unlikely(nvcl_em *e, val when, blk rare, blk usual) {
  LLVMMetadataRef w[3] = { LLVMMDStringInContext2(e->c, "branch_weights", 14), LLVMValueAsMetadata(nvcl_i32(e, 1)),
                           LLVMValueAsMetadata(nvcl_i32(e, 1 << 20)) };
  LLVMSetMetadata(LLVMBuildCondBr(e->b, when, rare, usual), LLVMGetMDKindIDInContext(e->c, "prof", 4),
                  LLVMMetadataAsValue(e->c, LLVMMDNodeInContext2(e->c, w, 3)));
}

/* The same value, hidden from LLVM: loop strength reduction would take half of the compile time to rewrite the
   addresses of a loop body, and vector code hides a few scalar instructions anyway. */
static val hide_value(nvcl_em *e, val x) {
  typ t = LLVMFunctionType(e->i64, &e->i64, 1, 0);
  val copy = LLVMGetInlineAsm(t, "", 0, "=r,0", 4, 0, 0, LLVMInlineAsmDialectATT, 0);
  return LLVMBuildCall2(e->b, t, copy, &x, 1, "");
}

/* Opens for (i = lo; i < hi; i += step), with the test at the bottom and a guard before it, which is left out if both
   ends are constants. */
void nvcl_for_begin(nvcl_em *e, nvcl_for *f, val lo, val hi, val step, const char *name) {
  blk before = nvcl_here(e);
  f->body = nvcl_block(e, name);
  f->exit = nvcl_block(e, "done");
  f->hi = hi;
  f->step = step;
  val some = LLVMBuildICmp(e->b, LLVMIntSLT, lo, hi, "");
  if (LLVMIsAConstantInt(some) && LLVMConstIntGetZExtValue(some)) LLVMBuildBr(e->b, f->body);
  else LLVMBuildCondBr(e->b, some, f->body, f->exit);
  nvcl_at(e, f->body);
  f->phi = LLVMBuildPhi(e->b, e->i64, name);
  LLVMAddIncoming(f->phi, &lo, &before, 1);
  f->i = hide_value(e, f->phi);
}

void nvcl_for_end(nvcl_em *e, nvcl_for *f) {
  val next = LLVMBuildNSWAdd(e->b, f->i, f->step, "");
  blk here = nvcl_here(e);
  LLVMAddIncoming(f->phi, &next, &here, 1);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, next, f->hi, ""), f->body, f->exit);
  nvcl_at(e, f->exit);
}

void nvcl_attr(nvcl_em *e, val fn, const char *key, const char *value) {
  LLVMAttributeRef at =
      value ? LLVMCreateStringAttribute(e->c, key, (unsigned)strlen(key), value, (unsigned)strlen(value))
            : LLVMCreateEnumAttribute(e->c, LLVMGetEnumAttributeKindForName(key, strlen(key)), 0);
  LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, at);
}

void nvcl_attributes(nvcl_em *e, val fn) {
  nvb_text width = { .arena = e->a };
  nvb_print(&width, "%d", 8 * e->target->width);
  nvcl_attr(e, fn, "nounwind", NULL);
  nvcl_attr(e, fn, "target-cpu", e->target->cpu);
  nvcl_attr(e, fn, "target-features", e->target->features);
  /* LLVM's models of these CPUs reorder instructions after register allocation, which takes half of a kernel's compile
     time and gains no speed. */
  if (!strncmp(e->target->cpu, "znver", 5)) nvcl_attr(e, fn, "tune-cpu", "generic");
  nvcl_attr(e, fn, "prefer-vector-width", width.s);
  nvcl_attr(e, fn, "min-legal-vector-width", width.s);
  nvcl_attr(e, fn, "no-builtins", "");
}
