/* Implements weak scalars: Python numbers that take the dtype of the other operands, as constants and as parameters of
   a trace. Decides what an integer means for a dtype that does not hold it. A parameter is traced with one number, and
   remembers for which other numbers every test of the trace would have had the same result. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "graph/infer.h"

/* The form of an integer is the dtype of its node: I64; U64 from 2^63 on; F64 the nearest double, if neither holds
   it. */
/* attr of an integer parameter: its bits, and the ranks between which other integers must be */
enum { SEEN, LOW, HIGH, NATTR };

int nvg_weak_class(const nvg_node *n) { return n->weak ? n->weak - 1 : (int)nvg_class_of(n->aval->dtype); }
static int is_weak_integer(const nvg_node *w) {
  int c = w->weak - 1;
  return c == NVG_SIGNED || c == NVG_UNSIGNED;
}

static nvm_dtype form_of(char kind) {
  return kind == 'b' ? NVM_BOOL : kind == 'i' ? NVM_I64 : kind == 'u' ? NVM_U64 : kind == 'c' ? NVM_C128 : NVM_F64;
}
static uint8_t class_of(char kind) {
  return 1 + (kind == 'b'   ? NVG_BOOLEAN
              : kind == 'f' ? NVG_FLOAT
              : kind == 'c' ? NVG_COMPLEX
              : kind == 'u' ? NVG_UNSIGNED
                            : NVG_SIGNED);
}
char nvg_weak_kind(const nvg_node *w) {
  return is_weak_integer(w) && w->aval->dtype == NVM_F64 ? 'h' : "biufc"[w->weak - 1];
}

nvg_node *nvg_weak(char kind, double re, double im, int64_t i) {
  nvg_node *n = nvg_const(form_of(kind), re, im, i);
  if (n) n->weak = class_of(kind);
  return n;
}

/* Ranks an integer among all, within its form: an I64 by its value, a U64 above them, an F64 by its sign (1), or 2
   where no double is near. */
static int64_t rank_of(nvm_dtype form, int64_t bits) {
  if (form == NVM_U64) return INT64_MAX;
  if (form != NVM_F64) return bits;
  double v = nvg_bits_float(NVM_F64, (uint64_t)bits);
  return (isinf(v) ? 2 : 1) * (v < 0 ? -1 : 1);
}
nvg_node *nvg_weak_parameter(char kind, int64_t bits) {
  nvm_dtype form = form_of(kind);
  int64_t attr[NATTR] = { bits, INT64_MIN, INT64_MAX };
  nvg_node *n = nvg_leaf_with(nvg_aval_get(form, 0, NULL), attr, strchr("iuh", kind) ? NATTR : 0);
  if (n) n->weak = class_of(kind);
  return n;
}
int nvg_weak_asked(const nvg_node *p) {
  int whole = p->weak && p->nattr == NATTR && p->op == NVG_OP_LEAF;
  return whole && (p->attr[LOW] > INT64_MIN || p->attr[HIGH] < INT64_MAX);
}
int nvg_weak_takes(const nvg_node *p, int64_t bits) {
  int64_t at = rank_of(p->aval->dtype, bits);
  return p->attr[LOW] <= at && at <= p->attr[HIGH];
}
/* Notes that only parameters ranked low to high would have had the same result. */
static void narrow_ranks(nvg_node *w, int64_t low, int64_t high) {
  if (w->op != NVG_OP_LEAF) return;
  if (low > w->attr[LOW]) w->attr[LOW] = low;
  if (high < w->attr[HIGH]) w->attr[HIGH] = high;
}
void nvg_weak_narrow(nvg_node *p, const nvg_node *as) {
  if (nvg_weak_asked(as)) narrow_ranks(p, as->attr[LOW], as->attr[HIGH]);
}

int nvg_weak_side(nvg_node *w, nvm_dtype t) {
  if (!is_weak_integer(w)) return 0;
  nvm_dtype form = w->aval->dtype;
  int64_t at = rank_of(form, w->attr[SEEN]), least = 0, bits = 8 * nvg_size(t);
  if (nvg_class_of(t) == NVG_SIGNED) least = INT64_MIN >> (64 - bits);
  int64_t most = least ? ~least : bits == 64 ? INT64_MAX : (1ll << bits) - 1;
  if (form == NVM_U64) return t != NVM_U64;
  if (form == NVM_F64) least = most = 0;
  int side = at > most ? 1 : at < least ? -1 : 0;
  narrow_ranks(w,
               side > 0   ? most + 1
               : side < 0 ? INT64_MIN
                          : least,
               side < 0   ? least - 1
               : side > 0 ? INT64_MAX
                          : most);
  return side;
}
int nvg_weak_negative(nvg_node *w) {
  if (!is_weak_integer(w)) return 0;
  int yes = rank_of(w->aval->dtype, w->attr[SEEN]) < 0;
  narrow_ranks(w, yes ? INT64_MIN : 0, yes ? -1 : INT64_MAX);
  return yes;
}

/* A double has only the sign of an integer that no double is near. */
static const char *text_of(const nvg_node *w, char *out, size_t size) {
  double v = w->aval->dtype == NVM_F64 ? nvg_bits_float(NVM_F64, (uint64_t)w->attr[SEEN]) : 0;
  if (isinf(v)) snprintf(out, size, "%s", v < 0 ? "(below -1.8e308)" : "(above 1.8e308)");
  else if (w->aval->dtype == NVM_F64) snprintf(out, size, "%.0f", v);
  else snprintf(out, size, w->aval->dtype == NVM_U64 ? "%llu" : "%lld", (long long)w->attr[SEEN]);
  return out;
}
static int refuse_integer(const char *who, const nvg_node *w, nvm_dtype t) {
  char text[400];
  return nvb_fail(NVM_ERR_OVERFLOW, "[%s] the integer %s is out of range of %s", who, text_of(w, text, sizeof text),
                  nvg_dtype_name(t));
}
int nvg_weak_fits(const char *who, nvg_node *w, nvm_dtype t) {
  nvg_class c = nvg_class_of(t);
  if (!is_weak_integer(w) || c == NVG_BOOLEAN) return NVM_OK;
  if (c < NVG_FLOAT) return nvg_weak_side(w, t) ? refuse_integer(who, w, t) : NVM_OK;
  if (w->aval->dtype != NVM_F64) return NVM_OK;
  int64_t at = rank_of(NVM_F64, w->attr[SEEN]);
  narrow_ranks(w, at == 2 ? 2 : at < -1 ? INT64_MIN : -1, at == 2 ? INT64_MAX : at < -1 ? -2 : 1);
  return at == 1 || at == -1 ? NVM_OK : refuse_integer(who, w, t);
}

/* For a rounding to fewer than 53 bits: bits of an integer that a double drops set its last bit (round to odd), so that
   the value is rounded only once. */
static double sticky_double(uint64_t size) {
  return (double)(size >> 53 && size & 0x7ff ? (size & ~0x7ffull) | 0x400 : size);
}
static double as_double(nvm_dtype form, int64_t bits, int exact) {
  int negative = form != NVM_U64 && bits < 0;
  uint64_t size = negative ? 0 - (uint64_t)bits : (uint64_t)bits;
  double v = exact ? (double)size : sticky_double(size);
  return negative ? -v : v;
}
int nvg_weak_bits(uint64_t bits[2], const char *who, nvg_node *w, nvm_dtype t) {
  nvm_dtype from = w->aval->dtype, part = nvg_real_of(t);
  int floats = nvg_class_of(from) >= NVG_FLOAT, status = nvg_weak_fits(who, w, t);
  bits[0] = bits[1] = 0;
  if (status) return status;
  double re =
      floats ? nvg_bits_float(nvg_real_of(from), (uint64_t)w->attr[0]) : as_double(from, w->attr[0], part == NVM_F64);
  double im = nvg_parts(from) == 2 ? nvg_bits_float(nvg_real_of(from), (uint64_t)w->attr[1]) : 0;
  if (t == NVM_BOOL) bits[0] = re != 0 || im != 0;
  else if (nvg_class_of(t) >= NVG_FLOAT) {
    bits[0] = nvg_float_bits(part, re);
    if (nvg_parts(t) == 2) bits[1] = nvg_float_bits(part, im);
  } else if (floats) return nvb_fail(NVM_ERR_TYPE, "[%s] a float scalar cannot become %s", who, nvg_dtype_name(t));
  else bits[0] = nvg_int_bits(t, w->attr[0]);
  return NVM_OK;
}
nvg_node *nvg_const_as(const char *who, nvg_node *w, nvm_dtype t) {
  uint64_t bits[2];
  return nvg_weak_bits(bits, who, w, t) ? NULL : nvg_const_bits(t, bits[0], bits[1]);
}
