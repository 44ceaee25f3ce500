/* Accesses elements of buffers, shared tiles and scratch, one register item at a time. Decides the instruction from how
   the address differs between lanes: not at all, by constants (dense: vector accesses and shuffles), or arbitrarily
   (gather, scatter). Never touches memory for a masked lane. */
#include <string.h>
#include "codegen/llvm/emit.h"
#include "frag/dtype.h"

val nvcl_to_memory(nvcl_em *e, val v, nvm_dtype t, int n) {
  return t == NVM_BOOL ? LLVMBuildZExt(e->b, v, nvcl_vec(e->i8, n), "") : v;
}
val nvcl_from_memory(nvcl_em *e, val v, nvm_dtype t, int n) {
  return t == NVM_BOOL ? LLVMBuildICmp(e->b, LLVMIntNE, v, LLVMConstNull(nvcl_vec(e->i8, n)), "") : v;
}

static unsigned size_of(const nvcl_access *x) { return (unsigned)nvg_size(x->type); }

/* Address of the element that a lane with offset `shift` accesses */
static val address_of(nvcl_em *e, const nvcl_access *x, int64_t shift) {
  typ mem = nvcl_memtype(e, x->type), step = x->parts == 2 ? LLVMArrayType2(mem, 2) : mem;
  val p = x->base, at = x->at.base;
  if (at) p = LLVMBuildInBoundsGEP2(e->b, step, p, &at, 1, "");
  return nvcl_gep(e, p, (x->at.k + shift) * x->parts * (int64_t)size_of(x));
}

static val addresses_of(nvcl_em *e, const nvcl_access *x, val p, int part) {
  typ mem = nvcl_memtype(e, x->type), step = x->parts == 2 ? LLVMArrayType2(mem, 2) : mem;
  val at = x->at.form == 2 ? x->at.vec : nvcl_consts(e, e->i64, x->at.pat, x->n);
  val v = LLVMBuildGEP2(e->b, step, p, &at, 1, "");
  return part ? nvcl_gep(e, v, (int64_t)size_of(x)) : v;
}

/* The same, one by one, of lanes that are a step apart: a scalar for each address is cheaper than to take a vector
   of them to pieces, as machines without fast gathers do. */
static const val *stepped_addresses(nvcl_em *e, const nvcl_access *x, val p, int part, const int *lane, int m) {
  int fast = e->target->width == 64 && strncmp(e->target->cpu, "znver", 5) != 0;
  if (x->at.form != 2 || !x->at.step || fast) return NULL;
  typ mem = nvcl_memtype(e, x->type), step = x->parts == 2 ? LLVMArrayType2(mem, 2) : mem;
  val *each = NVB_NEWN(e->a, val, m);
  for (int i = 0; i < m; i++) {
    val at = LLVMBuildNSWMul(e->b, x->at.step, nvcl_int(e, x->at.pat[lane ? lane[i] : i]), "");
    each[i] = nvcl_gep(e, LLVMBuildInBoundsGEP2(e->b, step, p, &at, 1, ""), part * (int64_t)size_of(x));
  }
  return each;
}

/* ---- guards: an access without any active lane is branched around, or reads the stack. The machine looks even at the
   address of a vector whose mask is empty, and a missing page takes it some thousand cycles (a roll of 10^5 doubles at
   the start of a mapping: 3.6 ms; a sum of 8 rows of 2^21 by tiles of 16 rows: 70 ms, 2.2 without). */
static int is_never(const nvcl_access *x) {
  return (x->some && LLVMIsNull(x->some)) || (x->mask && LLVMIsNull(x->mask));
}

/* Opens a branch that is taken if `when` holds (NULL: always). Returns the block after it; NULL: there is no branch. */
static blk open_guard(nvcl_em *e, val when, const char *name) {
  if (!when || LLVMIsAConstantInt(when)) return NULL;
  blk yes = nvcl_block(e, name), next = nvcl_block(e, "next");
  LLVMBuildCondBr(e->b, when, yes, next);
  nvcl_at(e, yes);
  return next;
}

static void close_guard(nvcl_em *e, blk next) {
  if (!next) return;
  LLVMBuildBr(e->b, next);
  nvcl_at(e, next);
}

/* After a guard: `got` if it was taken, else `none` */
static val guarded_value(nvcl_em *e, val got, val none, blk taken, blk from) {
  val v = LLVMBuildPhi(e->b, LLVMTypeOf(got), "");
  LLVMAddIncoming(v, (val[]){ none, got }, (blk[]){ from, taken }, 2);
  return v;
}

enum { ROOM_EACH = 16 * NVC_LANES }; /* bytes of stack for values, and as many for pointers */

/* ---- masked accesses that the machine has no instruction for: if all lanes are active, a plain access; else a loop
   over the active lanes. A branch for each lane made some kernels compile for seconds. */
typedef struct lanes {
  typ type; /* type of a value in memory */
  unsigned size;
  int n, writes;
  val p, v;        /* p: a pointer, or one for each lane; v: the value to write, or the value of masked lanes to read */
  const val *each; /* the pointers of lanes as scalars; NULL: none */
} lanes;

static int are_apart(const lanes *l) { return LLVMGetTypeKind(LLVMTypeOf(l->p)) == LLVMVectorTypeKind; }

/* LLVM takes gathers of AVX2 to pieces, with a branch for each lane. */
static int has_gathers(const nvcl_em *e) { return e->target->width >= 64; }

static int has_mask(const nvcl_em *e, const lanes *l) {
  enum { WORD = 64 }; /* lanes, at most, of the loop over active lanes */
  int apart = are_apart(l), least = l->size >= 4 ? (apart && l->writes ? 64 : 32) : apart ? 128 : 64;
  return e->target->width >= least || l->n > WORD;
}

static val each_alone(nvcl_em *e, const lanes *l) {
  val v = l->writes ? l->v : LLVMGetPoison(nvcl_vec(l->type, l->n));
  for (int i = 0; i < l->n; i++) {
    val at = nvcl_i32(e, i);
    if (l->writes) nvcl_store(e, LLVMBuildExtractElement(e->b, v, at, ""), l->each[i], l->size);
    else v = LLVMBuildInsertElement(e->b, v, nvcl_load(e, l->type, l->each[i], l->size), at, "");
  }
  return v;
}

static val at_once(nvcl_em *e, const lanes *l, val mask) {
  if (l->each && !mask) return each_alone(e, l);
  static const char *const name[2][2] = { { "llvm.masked.load", "llvm.masked.store" },
                                          { "llvm.masked.gather", "llvm.masked.scatter" } };
  typ over[2] = { nvcl_vec(l->type, l->n), LLVMTypeOf(l->p) };
  val align = nvcl_i32(e, (int)l->size), full = LLVMConstAllOnes(nvcl_vec(e->i1, l->n));
  val to[4] = { l->v, l->p, align, mask ? mask : full }, from[4] = { l->p, align, to[3], l->v };
  return nvcl_call(e, name[are_apart(l)][l->writes], over, 2, l->writes ? to : from, 4);
}

/* Reads the active lanes one by one, without a branch: the others look at the stack. */
static val each_selected(nvcl_em *e, const lanes *l, val mask) {
  val word = LLVMBuildBitCast(e->b, mask, LLVMIntTypeInContext(e->c, (unsigned)l->n), ""), v = l->v;
  for (int i = 0; i < l->n; i++) {
    val is =
        LLVMBuildTrunc(e->b, LLVMBuildLShr(e->b, word, LLVMConstInt(LLVMTypeOf(word), (unsigned)i, 0), ""), e->i1, "");
    val p = l->each ? l->each[i] : LLVMBuildExtractElement(e->b, l->p, nvcl_i32(e, i), "");
    p = LLVMBuildSelect(e->b, is, p, e->workspace, "");
    v = LLVMBuildInsertElement(e->b, v, nvcl_load(e, l->type, p, l->size), nvcl_i32(e, i), "");
  }
  return LLVMBuildSelect(e->b, mask, v, l->v, "");
}

/* Copies m lanes from lane i on: from memory to the stack, or for a write from the stack to memory. Returns the lanes
   that are left. */
static val copy_lanes(nvcl_em *e, const lanes *l, val left, val i, int m) {
  int apart = are_apart(l);
  val pointers = nvcl_gep(e, e->workspace, ROOM_EACH),
      mine = LLVMBuildInBoundsGEP2(e->b, l->type, e->workspace, &i, 1, "");
  val p = LLVMBuildInBoundsGEP2(e->b, apart ? e->ptr : l->type, apart ? pointers : l->p, &i, 1, "");
  if (apart) p = nvcl_load(e, e->ptr, p, 8);
  nvcl_store(e, nvcl_load(e, nvcl_vec(l->type, m), l->writes ? mine : p, l->size), l->writes ? p : mine, l->size);
  val done = LLVMBuildShl(e->b, nvcl_int(e, (1ll << m) - 1), i, "");
  return LLVMBuildAnd(e->b, left, LLVMBuildNot(e->b, done, ""), "");
}

/* Copies lane i and the next ones together if m of them are active, else half of these, a quarter, in the end lane i
   alone: rows of bytes end with up to 31. */
static val copy_some(nvcl_em *e, const lanes *l, val left, val i, int m) {
  if (are_apart(l) || m < 4) return copy_lanes(e, l, left, i, 1);
  blk many = nvcl_block(e, "many"), fewer = nvcl_block(e, "fewer"), next = nvcl_block(e, "copied");
  val all = nvcl_int(e, (1ll << m) - 1), run = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, left, i, ""), all, "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, run, all, ""), many, fewer);
  nvcl_at(e, many);
  val rest[2] = { copy_lanes(e, l, left, i, m) };
  LLVMBuildBr(e->b, next);
  nvcl_at(e, fewer);
  rest[1] = copy_some(e, l, left, i, m / 2);
  blk from = nvcl_here(e);
  LLVMBuildBr(e->b, next);
  nvcl_at(e, next);
  return guarded_value(e, rest[0], rest[1], many, from);
}

/* Makes sure that the function has a workspace on its stack. */
static void need_workspace(nvcl_em *e) {
  if (e->workspace_in == e->entry) return;
  e->workspace_in = e->entry;
  e->workspace = nvcl_slot(e, LLVMArrayType2(e->i8, 2 * ROOM_EACH), "lanes");
  LLVMSetAlignment(e->workspace, 64);
}

/* Loops over the active lanes, with values and pointers on the stack. */
static val one_by_one(nvcl_em *e, const lanes *l, val bits) {
  need_workspace(e);
  nvcl_store(e, l->v, e->workspace, 64);
  if (are_apart(l)) nvcl_store(e, l->p, nvcl_gep(e, e->workspace, ROOM_EACH), 64);
  blk from = nvcl_here(e), test = nvcl_block(e, "lanes"), body = nvcl_block(e, "lane"), done = nvcl_block(e, "done");
  LLVMBuildBr(e->b, test);
  nvcl_at(e, test);
  val left = LLVMBuildPhi(e->b, e->i64, "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntNE, left, nvcl_int(e, 0), ""), body, done);
  nvcl_at(e, body);
  val i = nvcl_call(e, "llvm.cttz", &e->i64, 1, (val[]){ left, LLVMConstInt(e->i1, 1, 0) }, 2);
  val rest = copy_some(e, l, left, i, l->n / 2);
  LLVMAddIncoming(left, (val[]){ bits, rest }, (blk[]){ from, nvcl_here(e) }, 2);
  LLVMBuildBr(e->b, test);
  nvcl_at(e, done);
  return l->writes ? NULL : nvcl_load(e, nvcl_vec(l->type, l->n), e->workspace, 64);
}

/* A masked instruction, if any lane is active. A load of adjacent elements without one looks at the stack instead: that
   is cheaper than a branch, which would keep every vector that is loaded in a register of its own. */
static val masked_at_once(nvcl_em *e, const lanes *l, val mask) {
  val some = nvcl_any(e, mask);
  if (!l->writes && !are_apart(l) && !LLVMIsAConstantInt(some)) {
    lanes safe = *l;
    need_workspace(e);
    safe.p = LLVMBuildSelect(e->b, some, l->p, e->workspace, "");
    return at_once(e, &safe, mask);
  }
  int one_by_one = are_apart(l) && !l->writes && !has_gathers(e);
  if (one_by_one) need_workspace(e);
  blk from = nvcl_here(e), next = open_guard(e, some, "some");
  val v = one_by_one ? each_selected(e, l, mask) : at_once(e, l, mask);
  blk taken = nvcl_here(e);
  close_guard(e, next);
  return l->writes || !next ? v : guarded_value(e, v, l->v, taken, from);
}

/* Accesses the lanes of a mask (NULL: all). Returns the value read. */
static val access_lanes(nvcl_em *e, const lanes *l, val mask) {
  if (!mask) return at_once(e, l, NULL);
  if (has_mask(e, l)) return masked_at_once(e, l, mask);
  blk whole = nvcl_block(e, "whole"), part = nvcl_block(e, "part"), next = nvcl_block(e, "next");
  val word = LLVMBuildBitCast(e->b, mask, LLVMIntTypeInContext(e->c, (unsigned)l->n), "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, word, LLVMConstAllOnes(LLVMTypeOf(word)), ""), whole, part);
  nvcl_at(e, whole);
  val got = at_once(e, l, NULL);
  LLVMBuildBr(e->b, next);
  nvcl_at(e, part);
  val single = one_by_one(e, l, LLVMBuildZExt(e->b, word, e->i64, ""));
  blk walked = nvcl_here(e);
  LLVMBuildBr(e->b, next);
  nvcl_at(e, next);
  return l->writes ? NULL : guarded_value(e, got, single, whole, walked);
}

/* ---- reading */
static val scalar_read(nvcl_em *e, const nvcl_access *x, val p, int part) {
  p = nvcl_gep(e, p, part * (int64_t)size_of(x));
  return nvcl_from_memory(e, nvcl_load(e, nvcl_memtype(e, x->type), p, size_of(x)), x->type, 1);
}

static void same_read(nvcl_em *e, const nvcl_access *x, int64_t shift, uint64_t other, val *out) {
  val p = address_of(e, x, shift), some = x->mask ? nvcl_any(e, x->mask) : NULL;
  blk from = nvcl_here(e), next = open_guard(e, some, "read");
  for (int j = 0; j < x->parts; j++) out[j] = nvcl_splat(e, scalar_read(e, x, p, j), x->n);
  blk taken = nvcl_here(e);
  close_guard(e, next);
  val fill = nvcl_bits(e, x->type, other, x->n);
  for (int j = 0; j < x->parts && next; j++) out[j] = guarded_value(e, out[j], fill, taken, from);
  for (int j = 0; j < x->parts && next; j++) out[j] = LLVMBuildSelect(e->b, x->mask, out[j], fill, "");
}

static void gather_elements(nvcl_em *e, const nvcl_access *x, uint64_t other, val *out) {
  lanes l = { .type = nvcl_memtype(e, x->type), .size = size_of(x), .n = x->n };
  val p = address_of(e, x, 0);
  l.v = nvcl_bits(e, x->type == NVM_BOOL ? NVM_U8 : x->type, other, x->n);
  for (int j = 0; j < x->parts; j++) {
    l.p = addresses_of(e, x, p, j);
    l.each = stepped_addresses(e, x, p, j, NULL, x->n);
    out[j] = nvcl_from_memory(e, access_lanes(e, &l, x->mask), x->type, x->n);
  }
}

/* Reads all of [lo, lo + range) by vectors of n elements, of which the last one ends at the end; lanes select from
   them. */
static void dense_read(nvcl_em *e, const nvcl_access *x, int64_t lo, int64_t range, val *out) {
  typ mem = nvcl_memtype(e, x->type);
  int total = (int)range * x->parts, len = total < x->n ? total : x->n, nload = (total + len - 1) / len;
  val p = address_of(e, x, lo), loaded[16];
  for (int k = 0; k < nload; k++) {
    int from = k * len < total - len ? k * len : total - len;
    loaded[k] = nvcl_load(e, nvcl_vec(mem, len), nvcl_gep(e, p, from * (int64_t)size_of(x)), size_of(x));
  }
  for (int j = 0; j < x->parts; j++) {
    val v = NULL;
    for (int k = 0; k < nload; k++) {
      int lane[NVC_LANES];
      for (int i = 0; i < x->n; i++) {
        int q = (int)(x->at.pat[i] - lo) * x->parts + j, mine = q / len < nload ? q / len : nload - 1;
        int from = k * len < total - len ? k * len : total - len;
        lane[i] = mine == k ? (v ? x->n : 0) + q - from : v ? i : -1;
      }
      if (v && len < x->n) nvb_throw(e->a, NVM_ERR_INTERNAL, "[llvm] the parts of the kernel differ in size");
      v = v ? nvcl_shuffle(e, v, loaded[k], lane, x->n) : nvcl_shuffle(e, loaded[k], NULL, lane, x->n);
    }
    out[j] = nvcl_from_memory(e, v, x->type, x->n);
  }
}

static int ascends(const nvcl_access *x, int64_t lo) {
  int is = 1;
  for (int i = 0; is && i < x->n; i++) is = x->at.pat[i] - lo == i;
  return is;
}

/* Whether the parts of pairs are best told apart by pairs_read. */
static int has_halves(const nvcl_access *x) {
  enum { BYTES = 32 };
  return x->parts == 2 && x->n * (int)size_of(x) == BYTES && size_of(x) >= 4;
}

/* Reads as many pairs as a vector of 32 bytes has lanes. Its halves are loaded such that a part of all of them is one
   shuffle within 16 bytes: of whole vectors, it would be that and an exchange of quarters, which takes longer. */
static void pairs_read(nvcl_em *e, const nvcl_access *x, int64_t lo, val *out) {
  enum { HALF = 16 };
  int n = x->n, few = n / 2, join[NVC_LANES], lane[NVC_LANES];
  val p = address_of(e, x, lo), at[4], from[2];
  for (int k = 0; k < 4; k++)
    at[k] = nvcl_load(e, nvcl_vec(nvcl_memtype(e, x->type), few), nvcl_gep(e, p, k * HALF), size_of(x));
  for (int i = 0; i < n; i++) join[i] = i;
  for (int k = 0; k < 2; k++) from[k] = nvcl_shuffle(e, at[k], at[k + 2], join, n);
  for (int j = 0; j < 2; j++) {
    for (int i = 0; i < n; i++) {
      int in = i % few, second = in >= few / 2;
      lane[i] = i / few * few + (in - second * few / 2) * 2 + j + second * n;
    }
    out[j] = nvcl_from_memory(e, nvcl_shuffle(e, from[0], from[1], lane, n), x->type, n);
  }
}

static val repeat_mask(nvcl_em *e, val mask, int n, int parts, int reversed) {
  int lane[2 * NVC_LANES];
  for (int i = 0; i < n * parts; i++) lane[i] = reversed ? n - 1 - i / parts : i / parts;
  return nvcl_shuffle(e, mask, NULL, lane, n * parts);
}

static void masked_read(nvcl_em *e, const nvcl_access *x, int64_t lo, int reversed, uint64_t other, val *out) {
  int wide = x->n * x->parts;
  lanes l = { nvcl_memtype(e, x->type),
              size_of(x),
              wide,
              0,
              address_of(e, x, lo),
              nvcl_bits(e, x->type == NVM_BOOL ? NVM_U8 : x->type, other, wide),
              NULL };
  val v = access_lanes(e, &l, repeat_mask(e, x->mask, x->n, x->parts, reversed));
  for (int j = 0; j < x->parts; j++) {
    int lane[NVC_LANES];
    for (int i = 0; i < x->n; i++) lane[i] = (reversed ? x->n - 1 - i : i) * x->parts + j;
    out[j] = nvcl_from_memory(e, nvcl_shuffle(e, v, NULL, lane, x->n), x->type, x->n);
  }
}

static void span_of(const nvcl_access *x, int64_t *lo, int64_t *hi) {
  *lo = *hi = x->at.pat[0];
  for (int i = 1; i < x->n; i++) {
    if (x->at.pat[i] < *lo) *lo = x->at.pat[i];
    if (x->at.pat[i] > *hi) *hi = x->at.pat[i];
  }
}

static void read_some(nvcl_em *e, const nvcl_access *x, uint64_t other, val *out) {
  int64_t lo = 0, hi = 0;
  if (x->n == 1) {
    val p = address_of(e, x, 0);
    for (int j = 0; j < x->parts; j++) out[j] = scalar_read(e, x, p, j);
    return;
  }
  if (x->at.form == 1) span_of(x, &lo, &hi);
  if (x->at.form == 0 || (x->at.form == 1 && lo == hi)) {
    same_read(e, x, lo, other, out);
    return;
  }
  if (x->at.form == 1 && !x->mask && has_halves(x) && ascends(x, lo)) {
    pairs_read(e, x, lo, out);
    return;
  }
  if (x->at.form == 1 && !x->mask && hi - lo < 4 * x->n) {
    dense_read(e, x, lo, hi - lo + 1, out);
    return;
  }
  int up = x->at.form == 1, down = up;
  for (int i = 0; up + down && i < x->n; i++) {
    up &= x->at.pat[i] - lo == i;
    down &= hi - x->at.pat[i] == i;
  }
  if (up || down) masked_read(e, x, lo, down, other, out);
  else gather_elements(e, x, other, out);
}

void nvcl_read(nvcl_em *e, const nvcl_access *x, uint64_t other, val *out) {
  val fill = nvcl_bits(e, x->type, other, x->n);
  blk from = nvcl_here(e), next = open_guard(e, x->some, "read");
  for (int j = 0; j < x->parts; j++) out[j] = fill;
  if (!is_never(x)) read_some(e, x, other, out);
  blk taken = nvcl_here(e);
  close_guard(e, next);
  for (int j = 0; j < x->parts && next; j++) out[j] = guarded_value(e, out[j], fill, taken, from);
}

/* ---- writing */
static void guarded_store(nvcl_em *e, val v, val p, unsigned align, val when) {
  blk next = open_guard(e, when, "write");
  nvcl_store(e, v, p, align);
  close_guard(e, next);
}

/* Stores n vectors, one after the other from p on, past the caches if the address is aligned: a test at run time, of
   the buffer's address alone if that decides. from: bytes between the address of lanes with offset 0 and p. */
static void stream_store(nvcl_em *e, const nvcl_access *x, int n, const val *v, val p, int64_t from, unsigned bytes) {
  unsigned whole = bytes < 64 ? bytes : 64, align = size_of(x);
  int fixed = !x->at.base || x->at.divisor * x->parts * (int64_t)size_of(x) % whole == 0;
  val begin = fixed ? nvcl_gep(e, x->base, x->at.k * x->parts * align + from) : p;
  val low = LLVMBuildAnd(e->b, LLVMBuildPtrToInt(e->b, begin, e->i64, ""), nvcl_int(e, whole - 1), "");
  val odd = LLVMBuildICmp(e->b, LLVMIntNE, low, nvcl_int(e, 0), "");
  blk yes = nvcl_block(e, "stream"), no = nvcl_block(e, "plain"), next = nvcl_block(e, "next");
  nvcl_unlikely(e, odd, no, yes);
  nvcl_at(e, yes);
  for (int i = 0; i < n; i++) {
    val s = LLVMBuildStore(e->b, v[i], nvcl_gep(e, p, i * (int64_t)bytes));
    LLVMSetAlignment(s, whole);
    LLVMMetadataRef one = LLVMValueAsMetadata(nvcl_i32(e, 1));
    LLVMSetMetadata(s, LLVMGetMDKindIDInContext(e->c, "nontemporal", 11),
                    LLVMMetadataAsValue(e->c, LLVMMDNodeInContext2(e->c, &one, 1)));
  }
  LLVMBuildBr(e->b, next);
  nvcl_at(e, no);
  for (int i = 0; i < n; i++) nvcl_store(e, v[i], nvcl_gep(e, p, i * (int64_t)bytes), align);
  LLVMBuildBr(e->b, next);
  nvcl_at(e, next);
  e->streamed = 1;
}

static void vector_store(nvcl_em *e, const nvcl_access *x, val v, val p, val mask, int m) {
  unsigned align = size_of(x);
  if (m == 1) guarded_store(e, v, p, align, mask);
  else if (mask) access_lanes(e, &(lanes){ nvcl_memtype(e, x->type), align, m, 1, p, v, NULL }, mask);
  else nvcl_store(e, v, p, align);
}

/* position[i]: the lane that stores element lo + i; the parts of pairs alternate. Both halves of pairs are shuffled
   before the first is stored: they have shuffles in common. */
static void dense_write(nvcl_em *e, const nvcl_access *x, const val *in, int64_t lo, const int *position, int m,
                        int stream) {
  int64_t bytes = m * (int64_t)size_of(x), first = lo * x->parts * (int64_t)size_of(x);
  val p = nvcl_gep(e, address_of(e, x, 0), first), v[2], mask[2];
  for (int half = 0; half < x->parts; half++) {
    int lane[NVC_LANES], from[NVC_LANES];
    for (int i = 0; i < m; i++) {
      int q = half * m + i;
      from[i] = position[q / x->parts];
      lane[i] = from[i] + (q % x->parts) * x->n;
    }
    v[half] = nvcl_shuffle(e, in[0], x->parts == 2 ? in[1] : NULL, lane, m);
    mask[half] = x->mask ? nvcl_shuffle(e, x->mask, NULL, from, m) : NULL;
  }
  int past = stream && !x->mask && m > 1 && bytes >= 16 && !(bytes & (bytes - 1));
  if (past) stream_store(e, x, x->parts, v, p, first, (unsigned)bytes);
  for (int half = 0; half < x->parts && !past; half++)
    vector_store(e, x, v[half], nvcl_gep(e, p, half * bytes), mask[half], m);
}

static void scatter_elements(nvcl_em *e, const nvcl_access *x, const val *in, const int *lane, int m) {
  val p = address_of(e, x, 0);
  val mask = x->mask ? nvcl_shuffle(e, x->mask, NULL, lane, m) : NULL;
  for (int j = 0; j < x->parts; j++) {
    val at = nvcl_shuffle(e, addresses_of(e, x, p, j), NULL, lane, m), v = nvcl_shuffle(e, in[j], NULL, lane, m);
    if (m == 1) {
      guarded_store(e, v, at, size_of(x), mask);
      continue;
    }
    const val *each = stepped_addresses(e, x, p, j, lane, m);
    access_lanes(e, &(lanes){ nvcl_memtype(e, x->type), size_of(x), m, 1, at, v, each }, mask);
  }
}

static int writing_lanes(const nvcl_access *x, const nvf_layout *l, int *lane) {
  int m = 0;
  for (int i = 0; i < x->n; i++) {
    int self = 0;
    for (int d = 0; d < l->n; d++)
      if (l->d[d].level == 'l') self += i / l->d[d].pstride % l->d[d].extent * l->d[d].pstride;
    if (self == i) lane[m++] = i;
  }
  return m;
}

static void write_some(nvcl_em *e, const nvcl_access *x, const val *raw, const nvf_layout *l, int stream) {
  int lane[NVC_LANES], position[NVC_LANES], dense = x->at.form < 2;
  val in[2];
  for (int j = 0; j < x->parts; j++) in[j] = nvcl_to_memory(e, raw[j], x->type, x->n);
  if (x->n == 1) {
    val p = address_of(e, x, 0);
    for (int j = 0; j < x->parts; j++) nvcl_store(e, in[j], nvcl_gep(e, p, j * (int64_t)size_of(x)), size_of(x));
    return;
  }
  int m = writing_lanes(x, l, lane);
  int64_t lo = x->at.form == 1 ? x->at.pat[lane[0]] : 0;
  for (int i = 0; x->at.form == 1 && i < m; i++) lo = x->at.pat[lane[i]] < lo ? x->at.pat[lane[i]] : lo;
  for (int i = 0; i < m; i++) position[i] = -1;
  for (int i = 0; dense && i < m; i++) {
    int64_t at = (x->at.form == 1 ? x->at.pat[lane[i]] : 0) - lo;
    if (at < m) position[at] = lane[i];
    dense &= at < m;
  }
  for (int i = 0; i < m; i++) dense &= position[i] >= 0;
  if (dense) dense_write(e, x, in, lo, position, m, stream);
  else scatter_elements(e, x, in, lane, m);
}

void nvcl_write(nvcl_em *e, const nvcl_access *x, const val *in, const nvf_layout *l, int stream) {
  if (is_never(x)) return;
  blk next = open_guard(e, x->some, "write");
  write_some(e, x, in, l, stream);
  close_guard(e, next);
}
