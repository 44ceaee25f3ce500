/* Implements dtypes and NumPy's promotion (NEP 50); no other file knows it. All rules follow from the table of classes
   and widths; only f16 with bf16, and f8e4 with f8e5, are special. */
#include <math.h>
#include <string.h>
#include "frag/dtype.h"
#include "frag/soft.h"

static const struct {
  const char *name, *brief;
  nvg_class cls;
  int size;
} info[NVM_NDTYPES] = {
  [NVM_BOOL] = { "bool", "bool", NVG_BOOLEAN, 1 },        [NVM_I8] = { "int8", "i8", NVG_SIGNED, 1 },
  [NVM_I16] = { "int16", "i16", NVG_SIGNED, 2 },          [NVM_I32] = { "int32", "i32", NVG_SIGNED, 4 },
  [NVM_I64] = { "int64", "i64", NVG_SIGNED, 8 },          [NVM_U8] = { "uint8", "u8", NVG_UNSIGNED, 1 },
  [NVM_U16] = { "uint16", "u16", NVG_UNSIGNED, 2 },       [NVM_U32] = { "uint32", "u32", NVG_UNSIGNED, 4 },
  [NVM_U64] = { "uint64", "u64", NVG_UNSIGNED, 8 },       [NVM_F16] = { "float16", "f16", NVG_FLOAT, 2 },
  [NVM_BF16] = { "bfloat16", "bf16", NVG_FLOAT, 2 },      [NVM_F32] = { "float32", "f32", NVG_FLOAT, 4 },
  [NVM_F64] = { "float64", "f64", NVG_FLOAT, 8 },         [NVM_C64] = { "complex64", "c64", NVG_COMPLEX, 8 },
  [NVM_C128] = { "complex128", "c128", NVG_COMPLEX, 16 }, [NVM_F8E4] = { "float8_e4m3fn", "f8e4", NVG_FLOAT, 1 },
  [NVM_F8E5] = { "float8_e5m2", "f8e5", NVG_FLOAT, 1 },
};

int nvg_size(nvm_dtype t) { return info[t].size; }
nvg_class nvg_class_of(nvm_dtype t) { return info[t].cls; }
const char *nvg_dtype_name(nvm_dtype t) { return t >= 0 && t < NVM_NDTYPES ? info[t].name : "?"; }
const char *nvg_dtype_short(nvm_dtype t) { return t >= 0 && t < NVM_NDTYPES ? info[t].brief : "?"; }

int nvg_dtype_find(const char *name) {
  for (int t = 0; t < NVM_NDTYPES; t++)
    if (!strcmp(name, info[t].name) || !strcmp(name, info[t].brief)) return t;
  return -1;
}

static nvm_dtype of_size(nvg_class c, int size) {
  for (int t = 0; t < NVM_NDTYPES; t++)
    if (info[t].cls == c && info[t].size == size) return (nvm_dtype)t;
  return NVM_F64; /* no integer is wide enough: as in NumPy, the result is float64 */
}

static nvm_dtype promote_ints(nvm_dtype a, nvm_dtype b) {
  if (info[a].cls == info[b].cls) return info[a].size >= info[b].size ? a : b;
  nvm_dtype s = info[a].cls == NVG_SIGNED ? a : b, u = s == a ? b : a;
  return info[s].size > info[u].size ? s : of_size(NVG_SIGNED, 2 * info[u].size);
}

/* Promotes an integer with a float: the result is f if f holds every value of i (f16 and bf16 hold 8 bits, f32 16 bits,
   f64 32 bits), else f32 or f64. */
static nvm_dtype promote_int_float(nvm_dtype i, nvm_dtype f) {
  int need = 2 * info[i].size;
  if (info[f].size >= need) return f;
  return need >= 8 ? NVM_F64 : NVM_F32;
}

nvm_dtype nvg_promote(nvm_dtype a, nvm_dtype b) {
  if (a == b) return a;
  if (info[a].cls > info[b].cls) {
    nvm_dtype t = a;
    a = b;
    b = t;
  }
  nvg_class ca = info[a].cls, cb = info[b].cls;
  if (ca == NVG_BOOLEAN) return b;
  if (cb == NVG_COMPLEX) {
    nvm_dtype r = nvg_promote(nvg_real_of(a), nvg_real_of(b));
    return nvg_complex_of(r);
  }
  if (cb == NVG_FLOAT) {
    if (ca != NVG_FLOAT) return promote_int_float(a, b);
    if (info[a].size == info[b].size) return info[a].size == 1 ? NVM_F16 : NVM_F32; /* f8e4 with f8e5, f16 with bf16 */
    return info[a].size > info[b].size ? a : b;
  }
  return promote_ints(a, b);
}

nvm_dtype nvg_promote_weak(nvm_dtype t, nvg_class weak, nvm_dtype default_float) {
  nvg_class c = info[t].cls;
  if (weak == NVG_BOOLEAN) return t;
  if (weak == NVG_SIGNED || weak == NVG_UNSIGNED) return c != NVG_BOOLEAN ? t : weak == NVG_SIGNED ? NVM_I64 : NVM_U64;
  nvm_dtype f = c < NVG_FLOAT ? default_float : t;
  return weak == NVG_COMPLEX ? nvg_complex_of(f) : f;
}

nvm_dtype nvg_real_of(nvm_dtype t) { return t == NVM_C64 ? NVM_F32 : t == NVM_C128 ? NVM_F64 : t; }
nvm_dtype nvg_complex_of(nvm_dtype t) { return t == NVM_F64 || t == NVM_C128 ? NVM_C128 : NVM_C64; }
int nvg_is_f8(nvm_dtype t) { return info[t].cls == NVG_FLOAT && info[t].size == 1; }
int nvg_is_narrow(nvm_dtype t) { return info[t].cls == NVG_FLOAT && info[t].size <= 2; }
nvm_dtype nvg_compute_of(nvm_dtype t) { return nvg_is_narrow(t) ? NVM_F32 : t; }
int nvg_parts(nvm_dtype t) { return info[t].cls == NVG_COMPLEX ? 2 : 1; }

int nvg_precision(nvm_dtype t) {
  switch (t) {
  case NVM_BOOL: return 1;
  case NVM_BF16: return 8;
  case NVM_F8E4: return 4;
  case NVM_F8E5: return 3;
  case NVM_F16: return 11;
  case NVM_F32: return 24;
  case NVM_F64: return 53;
  default: return 8 * info[t].size - (info[t].cls == NVG_SIGNED);
  }
}

int nvg_embeds(nvm_dtype from, nvm_dtype to) {
  if (from == to) return 1;
  nvg_class a = info[from].cls, b = info[to].cls;
  if (b == NVG_COMPLEX) return nvg_embeds(nvg_real_of(from), nvg_real_of(to));
  if (a == NVG_COMPLEX || b == NVG_BOOLEAN) return 0;
  if (a == NVG_BOOLEAN) return 1;
  if (a == NVG_FLOAT) return b == NVG_FLOAT && info[to].size > info[from].size;
  if (b == NVG_UNSIGNED && a == NVG_SIGNED) return 0;
  return nvg_precision(from) <= nvg_precision(to);
}

/* ---- floats of 16 bits and less: `exp` and `mant` count bits of exponent and fraction; most: 0, or the greatest
   finite value, to which larger ones saturate; in such a format NaN has all bits set */
typedef struct format { int exp, mant; uint64_t most; } format;
static format format_of(nvm_dtype t) {
  switch (t) {
  case NVM_F16: return (format){ 5, 10, 0 };
  case NVM_BF16: return (format){ 8, 7, 0 };
  case NVM_F8E4: return (format){ 4, 3, 0x7e };
  default: return (format){ 5, 2, 0x7b };
  }
}

/* Rounds v once, to nearest even. */
static uint64_t pack_float(double v, format f) {
  int exp = f.exp, mant = f.mant;
  uint64_t b = bits_f64(v), sign = (b >> 63) << (exp + mant), inf = ((1ull << exp) - 1) << mant;
  int e = (int)(b >> 52 & 0x7ff);
  uint64_t m = b & 0xfffffffffffffull;
  if (e == 0x7ff && f.most) return sign | (m ? (1ull << (exp + mant)) - 1 : f.most);
  if (e == 0x7ff) return sign | inf | (m ? (1ull << (mant - 1)) | m >> (52 - mant) : 0);
  if (!e) return sign; /* a double that is subnormal rounds to 0 */
  m |= 1ull << 52;
  int target = e - 1023 + (1 << (exp - 1)) - 1; /* biased exponent of the result; <= 0 if it is subnormal */
  int drop = 52 - mant + (target < 1 ? 1 - target : 0);
  if (drop > 54) return sign;
  uint64_t keep = m >> drop, rest = m & ((1ull << drop) - 1), half = 1ull << (drop - 1);
  keep += rest > half || (rest == half && (keep & 1));
  uint64_t out = target < 1 ? keep : keep + ((uint64_t)(target - 1) << mant); /* a carry moves into the exponent */
  uint64_t most = f.most ? f.most : inf;
  return sign | (out >= most ? most : out);
}

static double unpack_narrow(nvm_dtype t, uint64_t bits) {
  format f = format_of(t);
  int exp = f.exp, mant = f.mant, bias = (1 << (exp - 1)) - 1;
  int e = (int)(bits >> mant) & ((1 << exp) - 1);
  uint64_t m = bits & ((1ull << mant) - 1), out;
  int special = t == NVM_F8E4 ? e == 15 && m == 7 : e == (1 << exp) - 1;
  if (special) out = 0x7ffull << 52 | m << (52 - mant);
  else if (e) out = (uint64_t)(e - bias + 1023) << 52 | m << (52 - mant);
  else {
    out = bits_f64((double)m);
    if (m) out -= (uint64_t)(bias - 1 + mant) << 52;
  }
  return f64_bits(out | (bits >> (exp + mant) & 1) << 63);
}

uint64_t nvg_float_bits(nvm_dtype t, double v) {
  if (nvg_is_narrow(t)) return pack_float(v, format_of(t));
  return t == NVM_F32 ? bits_f32((float)v) : bits_f64(v);
}

double nvg_bits_float(nvm_dtype t, uint64_t bits) {
  if (nvg_is_narrow(t)) return unpack_narrow(t, bits);
  return t == NVM_F32 ? f32_bits((uint32_t)bits) : f64_bits(bits);
}

uint64_t nvg_int_bits(nvm_dtype t, int64_t v) {
  if (t == NVM_BOOL) return v != 0;
  int size = info[t].size;
  return size == 8 ? (uint64_t)v : (uint64_t)v & ((1ull << (8 * size)) - 1);
}

int64_t nvg_bits_int(nvm_dtype t, uint64_t bits) {
  int shift = 64 - 8 * info[t].size;
  return info[t].cls == NVG_SIGNED ? (int64_t)(bits << shift) >> shift : (int64_t)(bits << shift >> shift);
}

int nvg_is_extreme(nvm_dtype t, const void *at) {
  const double least = 0x1p-24, most = 65504; /* of float16 */
  uint64_t bits = 0;
  memcpy(&bits, at, (size_t)nvg_size(nvg_real_of(t)));
  double x = nvg_class_of(t) >= NVG_FLOAT ? nvg_bits_float(nvg_real_of(t), bits) : (double)nvg_bits_int(t, bits);
  return !(fabs(x) >= least && fabs(x) <= most);
}
