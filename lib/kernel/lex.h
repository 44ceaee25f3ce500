/* The lexer's interface: tokens and constants of kernel text. Only files of lib/kernel include this header. */
#ifndef NVM_KERNEL_LEX_H
#define NVM_KERNEL_LEX_H
#include "base/text.h"
#include "kernel/kernel.h"
#include "nvm/types.h"

typedef enum nvf_tok { NVF_T_END, NVF_T_NAME, NVF_T_NUMBER, NVF_T_STRING, NVF_T_OP } nvf_tok;
typedef struct nvf_lex {
  nvb_arena *arena;
  const char *where, *text; /* name of the text, for messages; the whole text */
  const char *p;            /* the first character after the current token */
  nvf_tok kind;             /* the current token and its characters (of a string: without the quotes) */
  const char *s;
  int n;
} nvf_lex;

void nvf_lex_open(nvf_lex *l, nvb_arena *a, const char *text, const char *where); /* opens a text at its first token */
void nvf_lex_next(nvf_lex *l);
_Noreturn void nvf_lex_fail_at(nvf_lex *l, const char *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#define nvf_lex_fail(l, ...) nvf_lex_fail_at((l), (l)->s, __VA_ARGS__) /* throws where:line:col: ... */
int nvf_lex_is(const nvf_lex *l, const char *token); /* whether the current token is this name or operator */
int nvf_lex_accept(nvf_lex *l, const char *token);   /* the same; if so, goes on to the next token */
void nvf_lex_expect(nvf_lex *l, const char *token);
const char *nvf_lex_name(nvf_lex *l, const char *what); /* takes a name; `what` for the message */
int64_t nvf_lex_int(nvf_lex *l);                        /* takes an integer without a sign */
int nvf_lex_type(nvf_lex *l);                           /* takes the name of a dtype */

/* A copy of the text from the first token on, in which kernels and schedules are blank, with the same lines. */
char *nvf_lex_fragments(nvf_lex *l);

/* A constant of a type, as bits: [-] number, inf, nan, true, false, or bits<type>(0x...). Throws if it does not fit. */
uint64_t nvf_lex_const(nvf_lex *l, nvm_dtype type);
void nvf_const_print(nvb_text *t, nvm_dtype type, uint64_t bits); /* reads back to the same bits */
/* Reads bindings and hints up to the closing brace or the end (schedule.c). */
void nvf_schedule_read(nvf_lex *l, nvf_kernel *k, nvf_schedule *s);
#endif
