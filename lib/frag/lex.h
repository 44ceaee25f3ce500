/* The lexer of fragment text, which the parser and the library's index share. Every error message has a position. */
#ifndef NVM_FRAG_LEX_H
#define NVM_FRAG_LEX_H
#include "frag/impl.h"
#include <string.h>

enum { T_END = 0, T_NAME = 256, T_NUMBER = 257 };
#define TWO(a, b) ((a) << 9 | (b)) /* a token of two characters */

typedef struct slice { const char *p; int n; } slice;
typedef struct lexer {
  nvb_arena *arena;
  const char *text, *where, *tok, *p; /* tok: start of the current token; p: its end */
  int kind, before;                   /* kind: a character, TWO, or T_*; before: offset of the token taken last */
  slice word;                         /* text of a NAME or NUMBER */
  int is_int, hex;                    /* NUMBER: is_int 1: an integer below 2^64, with its value in mag */
  uint64_t mag;
} lexer;

lexer nvg_lex_open(nvb_arena *a, const char *text, const char *where, int at); /* the first token is already read */
void nvg_lex_next(lexer *l);
_Noreturn void nvg_lex_fail(const lexer *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* if it is the current token, skips it and returns 1; '>' also matches the first half of '>>' */
int nvg_lex_take(lexer *l, int kind);
void nvg_lex_expect(lexer *l, int kind);
slice nvg_lex_name(lexer *l);
int nvg_lex_take_word(lexer *l, const char *word);
void nvg_lex_word(lexer *l, const char *word);
void nvg_lex_skip(lexer *l);         /* after '{' was taken: skips to behind the matching '}' */
void nvg_lex_skip_to_body(lexer *l); /* skips to behind the next '{' */
static inline int same(slice a, slice b) { return a.n == b.n && !memcmp(a.p, b.p, (size_t)a.n); }
static inline int is(slice a, const char *word) { return !strncmp(a.p, word, (size_t)a.n) && !word[a.n]; }

/* Return the bits of a number as f32 or f64, rounded once. */
uint64_t nvg_lex_float(int type, slice text, int negative);
uint64_t nvg_lex_float_of_int(int type, uint64_t magnitude, int negative);
/* Writes the bits of an integer literal; a hexadecimal one may use all bits of the type. Returns 0 if it does not
   fit. */
int nvg_lex_whole(uint64_t *bits, nvm_dtype type, uint64_t magnitude, int negative, int hex);
/* Parses the table whose name is at offset `at`. */
nvg_table nvg_lex_table(nvb_arena *a, const char *text, const char *where, int at);
#endif
