/* The lexer of kernel text: it makes tokens, reports every error with its line and column, and converts constants
   between text and bits. It never knows what a name stands for. */
#include "kernel/lex.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/text.h"
#include "frag/dtype.h"
#include "frag/frag.h"

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

void nvf_lex_fail_at(nvf_lex *l, const char *at, const char *fmt, ...) {
  int line = 1, col = 1;
  for (const char *p = l->text; p < at; p++, col++)
    if (*p == '\n') {
      line++;
      col = 0;
    }
  char what[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  nvb_throw(l->arena, NVM_ERR_VALUE, "%s:%d:%d: %s", l->where, line, col, what);
}

static void skip_space(nvf_lex *l) {
  for (;;) {
    while (*l->p == ' ' || *l->p == '\t' || *l->p == '\n' || *l->p == '\r') l->p++;
    if (*l->p != '#') return;
    while (*l->p && *l->p != '\n') l->p++;
  }
}

/* Takes digits, letters and dots, and a sign after the exponent's letter. */
static void take_number(nvf_lex *l) {
  int hex = l->p[0] == '0' && (l->p[1] == 'x' || l->p[1] == 'X');
  for (char last = 0; is_digit(*l->p) || is_letter(*l->p) || *l->p == '.' || *l->p == '+' || *l->p == '-';
       last = *l->p++) {
    if (*l->p != '+' && *l->p != '-') continue;
    int exponent = hex ? last == 'p' || last == 'P' : last == 'e' || last == 'E';
    if (!exponent) break;
  }
}

void nvf_lex_next(nvf_lex *l) {
  static const char *const two[] = { "//", "==", "!=", "<=", ">=" };
  skip_space(l);
  l->s = l->p;
  char c = *l->p;
  if (!c) l->kind = NVF_T_END;
  else if (is_letter(c)) {
    l->kind = NVF_T_NAME;
    while (is_letter(*l->p) || is_digit(*l->p) || (*l->p == '.' && is_letter(l->p[1]))) l->p++;
  } else if (is_digit(c)) {
    l->kind = NVF_T_NUMBER;
    take_number(l);
  } else if (c == '"') {
    l->kind = NVF_T_STRING;
    l->p++;
    while (*l->p && *l->p != '"' && *l->p != '\n') l->p++;
    if (*l->p != '"') nvf_lex_fail(l, "the string is not closed");
    l->s++;
    l->n = (int)(l->p++ - l->s);
    return;
  } else {
    l->kind = NVF_T_OP;
    l->p++;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
      if (l->s[0] == two[i][0] && l->s[1] == two[i][1]) {
        l->p = l->s + 2;
        break;
      }
  }
  l->n = (int)(l->p - l->s);
}

void nvf_lex_open(nvf_lex *l, nvb_arena *a, const char *text, const char *where) {
  *l = (nvf_lex){ .arena = a, .where = where, .text = text, .p = text };
  nvf_lex_next(l);
}

int nvf_lex_is(const nvf_lex *l, const char *token) {
  return (l->kind == NVF_T_NAME || l->kind == NVF_T_OP) && (size_t)l->n == strlen(token) &&
         memcmp(l->s, token, (size_t)l->n) == 0;
}

int nvf_lex_accept(nvf_lex *l, const char *token) {
  int is = nvf_lex_is(l, token);
  if (is) nvf_lex_next(l);
  return is;
}

void nvf_lex_expect(nvf_lex *l, const char *token) {
  if (nvf_lex_accept(l, token)) return;
  if (l->kind == NVF_T_END) nvf_lex_fail(l, "'%s' is missing at the end of the text", token);
  nvf_lex_fail(l, "'%s' is missing before '%.*s'", token, l->n > 40 ? 40 : l->n, l->s);
}

const char *nvf_lex_name(nvf_lex *l, const char *what) {
  if (l->kind != NVF_T_NAME) nvf_lex_fail(l, "%s is missing", what);
  char *s = nvb_get(l->arena, (size_t)l->n + 1);
  memcpy(s, l->s, (size_t)l->n);
  nvf_lex_next(l);
  return s;
}

/* Copies the token into a string; numbers are short. */
static void token_text(nvf_lex *l, char *out, size_t size) {
  if (l->kind != NVF_T_NUMBER) nvf_lex_fail(l, "a number is missing");
  if ((size_t)l->n >= size) nvf_lex_fail(l, "the number is too long");
  memcpy(out, l->s, (size_t)l->n);
  out[l->n] = 0;
}

static uint64_t unsigned_value(nvf_lex *l) {
  char s[96];
  uint64_t v = 0;
  token_text(l, s, sizeof s);
  int hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
  for (const char *p = s + 2 * hex;; p++) {
    uint64_t d = is_digit(*p)             ? (uint64_t)(*p - '0')
                 : *p >= 'a' && *p <= 'f' ? (uint64_t)(*p - 'a') + 10
                                          : 99,
             base = hex ? 16 : 10;
    if (!*p && p > s + 2 * hex) break;
    if (d >= base) nvf_lex_fail(l, "not an integer: %s", s);
    if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
      nvf_lex_fail(l, "the number is too large");
  }
  nvf_lex_next(l);
  return v;
}

int64_t nvf_lex_int(nvf_lex *l) {
  const char *at = l->s;
  uint64_t v = unsigned_value(l);
  if (v > INT64_MAX) nvf_lex_fail_at(l, at, "the number is too large");
  return (int64_t)v;
}

int nvf_lex_type(nvf_lex *l) {
  const char *at = l->s, *name = nvf_lex_name(l, "a dtype");
  int t = nvg_dtype_find(name);
  if (t < 0) nvf_lex_fail_at(l, at, "'%s' is no dtype", name);
  return t;
}

char *nvf_lex_fragments(nvf_lex *l) {
  char *copy = nvb_strdup(l->arena, l->text);
  while (l->kind != NVF_T_END) {
    int ours = nvf_lex_is(l, "kernel") || nvf_lex_is(l, "schedule");
    const char *from = l->s;
    while (l->kind != NVF_T_END && !nvf_lex_is(l, "{")) nvf_lex_next(l);
    for (int depth = 0; l->kind != NVF_T_END;) {
      depth += nvf_lex_is(l, "{") - nvf_lex_is(l, "}");
      if (depth == 0) break;
      nvf_lex_next(l);
    }
    for (const char *q = from; ours && q < l->p; q++)
      if (*q != '\n') copy[q - l->text] = ' ';
    if (l->kind != NVF_T_END) nvf_lex_next(l);
  }
  return copy;
}

/* ---- constants */
static double float_value(nvf_lex *l, int narrow) {
  if (nvf_lex_accept(l, "inf")) return __builtin_inf();
  if (nvf_lex_accept(l, "nan")) return __builtin_nan("");
  char s[96], *end;
  token_text(l, s, sizeof s);
  double v = narrow ? (double)nvb_read_float(s, &end) : nvb_read_double(s, &end);
  if (*end) nvf_lex_fail(l, "not a number: %s", s);
  nvf_lex_next(l);
  return v;
}

static uint64_t cast_bits(nvb_arena *a, nvm_dtype from, nvm_dtype to, uint64_t bits) {
  uint64_t out = 0;
  const nvg_frag *f = nvg_frag_cast(from, to);
  if (!f) nvb_throw(a, nvb_status(), "%s", nvb_strdup(a, nvb_message()));
  nvg_frag_run(f, (const void *[]){ &bits }, (void *[]){ &out }, 1, 1);
  return out;
}

static uint64_t float_bits(nvb_arena *a, nvm_dtype type, double v) {
  union {
    double d;
    uint64_t u;
  } d = { .d = v };
  union {
    float f;
    uint32_t u;
  } f = { .f = (float)v };
  if (type == NVM_F64) return d.u;
  return type == NVM_F32 ? f.u : cast_bits(a, NVM_F64, type, d.u);
}

static uint64_t all_ones(nvm_dtype type) {
  return nvg_size(type) >= 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * nvg_size(type)) - 1;
}

static uint64_t int_const(nvf_lex *l, nvm_dtype type, int minus) {
  const char *at = l->s;
  uint64_t v = unsigned_value(l), top = (all_ones(type) >> 1) + 1;
  int is_signed = nvg_class_of(type) == NVG_SIGNED;
  if (is_signed ? v > top - !minus : v > all_ones(type) || (minus && v))
    nvf_lex_fail_at(l, at, "the number does not fit %s", nvg_dtype_short(type));
  return (minus ? 0 - v : v) & all_ones(type);
}

uint64_t nvf_lex_const(nvf_lex *l, nvm_dtype type) {
  if (nvf_lex_accept(l, "bits")) {
    nvf_lex_expect(l, "<");
    const char *at = l->s;
    if (nvf_lex_type(l) != (int)type) nvf_lex_fail_at(l, at, "the constant must be %s", nvg_dtype_short(type));
    nvf_lex_expect(l, ">");
    nvf_lex_expect(l, "(");
    at = l->s;
    uint64_t v = unsigned_value(l);
    if (v & ~all_ones(type)) nvf_lex_fail_at(l, at, "more bits than %s has", nvg_dtype_short(type));
    nvf_lex_expect(l, ")");
    return v;
  }
  if (type == NVM_BOOL && nvf_lex_accept(l, "true")) return 1;
  if (type == NVM_BOOL && nvf_lex_accept(l, "false")) return 0;
  int minus = nvf_lex_accept(l, "-");
  if (type == NVM_BOOL) {
    const char *at = l->s;
    if (minus || unsigned_value(l) > 1) nvf_lex_fail_at(l, at, "a bool is true or false");
    return at[0] == '1';
  }
  if (nvg_class_of(type) != NVG_FLOAT) return int_const(l, type, minus);
  double v = float_value(l, type == NVM_F32);
  return float_bits(l->arena, type, minus ? -v : v);
}

void nvf_const_print(nvb_text *t, nvm_dtype type, uint64_t bits) {
  union {
    uint64_t u;
    double d;
  } d;
  union {
    uint32_t u;
    float f;
  } f;
  switch (nvg_class_of(type)) {
  case NVG_BOOLEAN: nvb_puts(t, bits ? "true" : "false"); return;
  case NVG_UNSIGNED: nvb_print(t, "%llu", (unsigned long long)bits); return;
  case NVG_SIGNED: {
    uint64_t sign = (all_ones(type) >> 1) + 1;
    nvb_print(t, "%lld", (long long)(int64_t)((bits ^ sign) - sign));
    return;
  }
  default: break;
  }
  f.u = (uint32_t)bits;
  d.u = type == NVM_F64 ? bits : type == NVM_F32 ? (d.d = (double)f.f, d.u) : cast_bits(t->arena, type, NVM_F64, bits);
  if (d.d == d.d && float_bits(t->arena, type, d.d) == bits) nvb_put_double(t, d.d);
  else nvb_print(t, "bits<%s>(0x%llx)", nvg_dtype_short(type), (unsigned long long)bits);
}
