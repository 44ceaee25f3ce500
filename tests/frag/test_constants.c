/* Every constant of the library's fragments is what its formula says. A table (constants.h) names the formula of each,
   which MPFR evaluates; coefficients of polynomials and numbers that were chosen, which the accuracy tests hold, are
   listed too. A constant without a row fails, and so does a row without its constant. */
#include <ctype.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "frag/impl.h"
#include "constants.h"

enum { PRECISION = 2600 };

/* ---- formulas: + - * / ^ ( ), numbers, pi, e, log, log2, log10, sqrt, tan */
static void sum(const char **s, mpfr_t y);

static int word(const char **s, const char *w) {
  size_t n = strlen(w);
  if (strncmp(*s, w, n) || isalnum((unsigned char)(*s)[n])) return 0;
  return *s += n, 1;
}
static void operand(const char **s, mpfr_t y) {
  static const struct {
    const char *name;
    int (*f)(mpfr_t, const mpfr_t, mpfr_rnd_t);
  } functions[] = {
    { "log2", mpfr_log2 }, { "log10", mpfr_log10 }, { "log", mpfr_log }, { "sqrt", mpfr_sqrt }, { "tan", mpfr_tan }
  };
  for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
    if (word(s, functions[i].name)) {
      operand(s, y), functions[i].f(y, y, MPFR_RNDN);
      return;
    }
  if (word(s, "pi")) mpfr_const_pi(y, MPFR_RNDN);
  else if (word(s, "e")) mpfr_set_ui(y, 1, MPFR_RNDN), mpfr_exp(y, y, MPFR_RNDN);
  else if (**s == '(') {
    ++*s, sum(s, y);
    ck_assert_msg(**s == ')', "a formula lacks ) at %s", *s);
    ++*s;
  } else {
    char *end;
    mpfr_strtofr(y, *s, &end, 0, MPFR_RNDN);
    ck_assert_msg(end != *s, "a formula has no number at %s", *s);
    *s = end;
  }
}
static void power(const char **s, mpfr_t y) {
  int minus = **s == '-';
  *s += minus;
  operand(s, y);
  if (**s == '^') {
    mpfr_t x;
    mpfr_init2(x, PRECISION);
    ++*s, power(s, x), mpfr_pow(y, y, x, MPFR_RNDN);
    mpfr_clear(x);
  }
  if (minus) mpfr_neg(y, y, MPFR_RNDN);
}
static void chain(const char **s, mpfr_t y, void (*term)(const char **, mpfr_t), const char *signs,
                  int (*const *ops)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t)) {
  mpfr_t x;
  mpfr_init2(x, PRECISION);
  term(s, y);
  while (**s && strchr(signs, **s)) {
    int which = *(*s)++ == signs[1];
    term(s, x), ops[which](y, y, x, MPFR_RNDN);
  }
  mpfr_clear(x);
}
static void product(const char **s, mpfr_t y) {
  static int (*const ops[])(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t) = { mpfr_mul, mpfr_div };
  chain(s, y, power, "*/", ops);
}
static void sum(const char **s, mpfr_t y) {
  static int (*const ops[])(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t) = { mpfr_add, mpfr_sub };
  chain(s, y, product, "+-", ops);
}
static void formula(const char *text, mpfr_t y) { /* its size: signs are the fragments' */
  const char *s = text;
  sum(&s, y);
  ck_assert_msg(!*s, "%s: cannot be read at %s", text, s);
  mpfr_abs(y, y, MPFR_RNDN);
}

/* ---- is the literal the formula's value, rounded to its digits? */
static int rounds_to(const mpfr_t exact, const mpfr_t literal, int digits, mpfr_rnd_t how) {
  mpfr_t y;
  mpfr_init2(y, digits);
  mpfr_set(y, exact, how);
  int same = mpfr_equal_p(y, literal);
  mpfr_clear(y);
  return same;
}
static void hold(const constant *c, const char *text, const char *type) {
  mpfr_t exact, literal;
  mpfr_init2(exact, PRECISION), mpfr_init2(literal, PRECISION);
  formula(c->formula, exact);
  mpfr_strtofr(literal, text, NULL, 0, MPFR_RNDN);
  int whole = !strpbrk(text, ".p"), digits = mpfr_min_prec(literal) <= 24 ? 24 : 53;
  if (whole) mpfr_rint(exact, exact, MPFR_RNDN), digits = 64;
  ck_assert_msg(rounds_to(exact, literal, digits, c->kind == CUT ? MPFR_RNDZ : MPFR_RNDN), "%s: %s is not %s", c->in,
                text, c->formula);
  if (!whole && digits == 53 && *type == 'T') { /* of both types, rounded twice in f32 */
    mpfr_t twice;
    mpfr_init2(twice, 24);
    mpfr_set(twice, literal, MPFR_RNDN);
    ck_assert_msg(rounds_to(exact, twice, 24, MPFR_RNDN), "%s: %s in f32 is not %s", c->in, text, c->formula);
    mpfr_clear(twice);
  }
  mpfr_clear(exact), mpfr_clear(literal);
}
/* word i of a table: the bits of the formula's value from behind the point, after a word of zeros */
static void hold_word(const constant *c, const char *text, int i) {
  mpfr_t exact, one;
  int width = atoi(c->literal);
  mpfr_init2(exact, PRECISION), mpfr_init2(one, PRECISION);
  formula(c->formula, exact);
  mpfr_mul_2si(exact, exact, (long)width * i, MPFR_RNDN);
  mpfr_floor(exact, exact);
  mpfr_set_ui_2exp(one, 1, width, MPFR_RNDN);
  mpfr_fmod(exact, exact, one, MPFR_RNDN);
  mpfr_strtofr(one, text, NULL, 0, MPFR_RNDN);
  ck_assert_msg(mpfr_equal_p(exact, one), "%s: word %d is not %s", c->in, i, text);
  mpfr_clear(exact), mpfr_clear(one);
}

/* ---- the texts */
/* A number that needs no row: at most 12 bits that count, or a mask of ones. */
static int is_plain(const char *text) {
  mpfr_t x;
  mpfr_init2(x, PRECISION);
  int exact = !mpfr_strtofr(x, text, NULL, 0, MPFR_RNDN) && mpfr_min_prec(x) <= 64;
  int plain = exact && mpfr_min_prec(x) <= 12;
  if (exact && !plain && !strncmp(text, "0x", 2) && !strpbrk(text, ".p")) {
    unsigned long long u = strtoull(text, NULL, 0);
    while (u && !(u & 1)) u >>= 1;
    plain = !(u & (u + 1));
  }
  mpfr_clear(x);
  return plain;
}

/* The name of the definition that begins here, with the type that it is for: its first type variable or the type of its
   first parameter or element. 0 if none does. */
static int definition(const char *s, char *key, size_t size) {
  int skip = !strncmp(s, "frag ", 5) ? 5 : !strncmp(s, "table ", 6) ? 6 : 0;
  if (!skip) return 0;
  size_t n = strcspn(s += skip, "<(: "), at = s[n] == '<' ? n + 1 : (size_t)(strchr(s, ':') - s) + 2;
  snprintf(key, size, "%.*s:%.*s", (int)n, s, (int)strspn(s + at, "abcdefghijklmnopqrstuvwxyzT0123456789"), s + at);
  return 1;
}
/* The next number of the line at *s, which moves behind it; 0 if there is none. */
static int number(const char **s, char *text, size_t size) {
  for (const char *p = *s; *p && *p != '\n' && *p != '#'; p++) {
    if (isalpha((unsigned char)*p) || *p == '_') { /* a name with its digits */
      while (isalnum((unsigned char)p[1]) || p[1] == '_' || p[1] == '.') p++;
      continue;
    }
    if (!isdigit((unsigned char)*p)) continue;
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '.' ||
           ((p[n] == '-' || p[n] == '+') && strchr("ep", p[n - 1]) && (p[n - 1] == 'p' || p[1] != 'x')))
      n++;
    snprintf(text, size, "%.*s", (int)n, p);
    return *s = p + n, 1;
  }
  return 0;
}

static const constant *row_of(const char *key, const char *text) {
  const constant *rest = NULL;
  for (int i = 0; i < NCONSTANTS; i++) {
    const constant *c = &constants[i];
    if (strcmp(c->in, key)) continue;
    if (c->kind == COEFFICIENTS || c->kind == WORDS) rest = c;
    else if (!strcmp(c->literal, text)) return c;
  }
  return rest;
}

static int used[NCONSTANTS];

static int check_number(const char *key, const char *text) { /* 0: it has no row */
  const constant *c = row_of(key, text);
  if (!c || c->kind != WORDS)
    if (is_plain(text)) return 1;
  if (!c) return fprintf(stderr, "%s: %s has no row\n", key, text), 0;
  int i = used[c - constants]++;
  if (c->kind == WORDS) hold_word(c, text, i);
  else if (c->kind != COEFFICIENTS && c->kind != CHOSEN) hold(c, text, strchr(key, ':') + 1);
  return 1;
}

START_TEST(constants_are_their_formulas) {
  char key[64] = "?", text[64];
  int missing = 0;
  for (const nvg_text *t = nvg_frag_texts; t->name; t++)
    for (const char *line = t->text; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
      const char *s = line;
      definition(line, key, sizeof key);
      while (number(&s, text, sizeof text)) missing += !check_number(key, text);
    }
  ck_assert_msg(!missing, "%d constants have no row in constants.h", missing);
  for (int i = 0; i < NCONSTANTS; i++) {
    const constant *c = &constants[i];
    ck_assert_msg(used[i] > 0, "%s: the row of %s is not used", c->in, c->literal ? c->literal : "coefficients");
    ck_assert_msg(c->kind != COEFFICIENTS || used[i] == atoi(c->literal), "%s has %d coefficients, not %s", c->in,
                  used[i], c->literal);
  }
}
END_TEST

int main(void) { return RUN_SUITE("constants", constants_are_their_formulas); }
