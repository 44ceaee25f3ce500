/* The lexer of fragment text: tokens, messages with positions, and numbers, which are rounded once in any locale. */
#include "frag/lex.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "frag/soft.h"

void nvg_lex_fail(const lexer *l, const char *fmt, ...) {
  char what[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  int line = 1;
  const char *start = l->text;
  for (const char *p = l->text; p < l->tok; p++)
    if (*p == '\n') line++, start = p + 1;
  nvb_throw(l->arena, NVM_ERR_VALUE, "%s:%d:%d: %s", l->where, line, (int)(l->tok - start) + 1, what);
}

enum { LETTER = 1, DIGIT = 2, SPACE = 4 };
static int kind_of(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return LETTER;
  if (c >= '0' && c <= '9') return DIGIT;
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' ? SPACE : 0;
}

enum { LONGEST = 100 }; /* characters of a number */

/* Returns 1 if the C library reads the whole text as a number. */
static int is_read(slice s) {
  char text[LONGEST + 1], *end;
  memcpy(text, s.p, (size_t)s.n);
  text[s.n] = 0;
  nvb_read_double(text, &end);
  return !*end;
}

/* Lexes a decimal or hexadecimal number, an integer or with fraction and exponent (e, or p after 0x). */
static void lex_number(lexer *l) {
  const char *p = l->p;
  l->is_int = 1, l->mag = 0;
  l->hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
  if (l->hex) p += 2;
  for (;; p++) {
    int d = *p >= '0' && *p <= '9'                           ? *p - '0'
            : l->hex && (*p | 32) >= 'a' && (*p | 32) <= 'f' ? (*p | 32) - 'a' + 10
                                                             : -1;
    if (d >= 0) {
      if (__builtin_mul_overflow(l->mag, l->hex ? 16u : 10u, &l->mag) ||
          __builtin_add_overflow(l->mag, (uint64_t)d, &l->mag))
        l->is_int = 0;
    } else if (*p == '.') l->is_int = 0;
    else if ((*p | 32) == (l->hex ? 'p' : 'e')) {
      l->is_int = 0;
      if (p[1] == '-' || p[1] == '+') p++;
    } else break;
  }
  l->word = (slice){ l->tok, (int)(p - l->tok) };
  l->p = p;
  l->kind = T_NUMBER;
  if (l->word.n > LONGEST || kind_of(*p) & LETTER || !is_read(l->word)) nvg_lex_fail(l, "not a number");
}

void nvg_lex_next(lexer *l) {
  l->before = (int)(l->tok - l->text);
  for (;; l->p++) {
    if (*l->p == '#') l->p += strcspn(l->p, "\n");
    if (!(kind_of(*l->p) & SPACE)) break;
  }
  l->tok = l->p;
  int k = kind_of(*l->p);
  if (k & LETTER) {
    while (kind_of(*l->p) & (LETTER | DIGIT) || (*l->p == '.' && kind_of(l->p[1]) & LETTER)) l->p++;
    l->kind = T_NAME;
    l->word = (slice){ l->tok, (int)(l->p - l->tok) };
  } else if (k & DIGIT || (*l->p == '.' && kind_of(l->p[1]) & DIGIT)) {
    lex_number(l);
  } else {
    static const char pairs[][3] = { "<<", ">>", "==", "!=", "<=", ">=", "&&", "||", "->" };
    l->kind = (unsigned char)*l->p;
    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++)
      if (l->p[0] == pairs[i][0] && l->p[1] == pairs[i][1]) l->kind = TWO(pairs[i][0], pairs[i][1]);
    l->p += l->kind == T_END ? 0 : l->kind > 511 ? 2 : 1;
  }
}

lexer nvg_lex_open(nvb_arena *a, const char *text, const char *where, int at) {
  lexer l = { .arena = a, .text = text, .where = where, .tok = text + at, .p = text + at };
  nvg_lex_next(&l);
  return l;
}

int nvg_lex_take(lexer *l, int kind) {
  if (kind == '>' && l->kind == TWO('>', '>')) { /* '>>' closes two lists of types */
    l->kind = '>';
    l->tok++;
    return 1;
  }
  if (l->kind != kind) return 0;
  nvg_lex_next(l);
  return 1;
}

void nvg_lex_expect(lexer *l, int kind) {
  if (!nvg_lex_take(l, kind)) nvg_lex_fail(l, "'%c' is missing", kind);
}

slice nvg_lex_name(lexer *l) {
  if (l->kind != T_NAME) nvg_lex_fail(l, "a name is missing");
  slice s = l->word;
  nvg_lex_next(l);
  return s;
}

int nvg_lex_take_word(lexer *l, const char *word) {
  if (l->kind != T_NAME || !is(l->word, word)) return 0;
  nvg_lex_next(l);
  return 1;
}

void nvg_lex_word(lexer *l, const char *word) {
  if (!nvg_lex_take_word(l, word)) nvg_lex_fail(l, "'%s' is missing", word);
}

/* Finds the next brace by characters, not tokens, to index the library quickly. It skips comments and strings. */
static const char *next_brace(const lexer *l, const char *p) {
  for (p += strcspn(p, "{}#\""); *p == '#' || *p == '"'; p += strcspn(p, "{}#\"")) {
    int comment = *p == '#';
    p += 1 + strcspn(p + 1, comment ? "\n" : "\"");
    if (!*p && !comment) nvg_lex_fail(l, "a string does not end");
    p += !comment;
  }
  return p;
}

void nvg_lex_skip(lexer *l) {
  const char *p = l->tok;
  for (int depth = 1; depth; p++) {
    p = next_brace(l, p);
    if (!*p) nvg_lex_fail(l, "'}' is missing");
    depth += *p == '{' ? 1 : -1;
  }
  l->p = p;
  nvg_lex_next(l);
}

void nvg_lex_skip_to_body(lexer *l) {
  const char *p = next_brace(l, l->tok);
  if (*p != '{') nvg_lex_fail(l, "'{' is missing");
  l->p = p + 1;
  nvg_lex_next(l);
}

/* ---- numbers */
static uint64_t real_bits(int type, float f, double d) { return type == NVM_F32 ? bits_f32(f) : bits_f64(d); }

uint64_t nvg_lex_float(int type, slice text, int negative) {
  uint64_t sign = (uint64_t)negative << (type == NVM_F32 ? 31 : 63);
  char s[LONGEST + 1];
  memcpy(s, text.p, (size_t)text.n);
  s[text.n] = 0;
  if (s[0] == 'n') return sign | real_bits(type, __builtin_nanf(""), __builtin_nan(""));
  if (s[0] == 'i') return sign | real_bits(type, __builtin_inff(), __builtin_inf());
  return sign | real_bits(type, nvb_read_float(s, NULL), nvb_read_double(s, NULL));
}

uint64_t nvg_lex_float_of_int(int type, uint64_t magnitude, int negative) {
  return (uint64_t)negative << (type == NVM_F32 ? 31 : 63) | real_bits(type, (float)magnitude, (double)magnitude);
}

int nvg_lex_whole(uint64_t *bits, nvm_dtype type, uint64_t magnitude, int negative, int hex) {
  int natural = nvg_class_of(type) == NVG_UNSIGNED;
  uint64_t mask = nvg_mask(type), most = natural || hex ? mask : (mask >> 1) + (uint64_t)negative;
  *bits = (negative ? 0 - magnitude : magnitude) & mask;
  return magnitude <= most && !(negative && natural && magnitude);
}

/* ---- table name: type = { literals }; integers may be given as hexadecimal bits */
static uint64_t table_entry(lexer *l, nvm_dtype type) {
  int negative = nvg_lex_take(l, '-'), real = nvg_class_of(type) == NVG_FLOAT;
  uint64_t bits;
  if (l->kind != T_NUMBER && !(l->kind == T_NAME && real && (is(l->word, "inf") || is(l->word, "nan"))))
    nvg_lex_fail(l, "a number is missing");
  if (real) bits = nvg_lex_float(type, l->word, negative);
  else if (!l->is_int || !nvg_lex_whole(&bits, type, l->mag, negative, l->hex))
    nvg_lex_fail(l, "the number does not fit %s", nvg_dtype_short(type));
  nvg_lex_next(l);
  return bits;
}

nvg_table nvg_lex_table(nvb_arena *a, const char *text, const char *where, int at) {
  lexer l = nvg_lex_open(a, text, where, at);
  NVB_VEC(uint64_t) bits = { 0 };
  nvg_lex_name(&l);
  nvg_lex_expect(&l, ':');
  slice s = nvg_lex_name(&l);
  char name[8] = ""; /* long enough for every name of a numeric type */
  memcpy(name, s.p, s.n < 8 ? (size_t)s.n : 0);
  int type = nvg_dtype_find(name);
  nvg_class cls = type >= 0 ? nvg_class_of((nvm_dtype)type) : NVG_COMPLEX;
  if (cls == NVG_COMPLEX || cls == NVG_BOOLEAN || nvg_is_narrow((nvm_dtype)type))
    nvg_lex_fail(&l, "a table holds integers, f32 or f64");
  nvg_lex_expect(&l, '=');
  nvg_lex_expect(&l, '{');
  while (l.kind != '}') {
    NVB_PUSH(a, bits, table_entry(&l, (nvm_dtype)type));
    if (!nvg_lex_take(&l, ',')) break;
  }
  if (l.kind != '}') nvg_lex_fail(&l, "'}' is missing");
  if (!bits.n) nvg_lex_fail(&l, "the table is empty");
  return (nvg_table){ .n = bits.n, .type = (nvm_dtype)type, .bits = bits.at };
}
