/* Implements arenas as chunks of doubling size that are freed together, and the stack of nvb_protect frames to which
   a throw unwinds. One thread at a time uses an arena. An arena gives memory back when it is freed, or cleared, never
   in part. */
#include "base/arena.h"
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include "base/err.h"
#include "base/interrupt.h"
#include "base/mem.h"

/* bytes of this header and the memory behind it; a multiple of 16 */
typedef struct chunk { struct chunk *next; size_t bytes; } chunk;
typedef struct frame { jmp_buf jump; struct frame *outer; int status; } frame;

struct nvb_arena {
  chunk *chunks;
  chunk *filled;  /* the chunk that requests are taken from */
  char *at, *end; /* its free bytes */
  size_t next;    /* bytes of the next chunk */
  frame *top;     /* innermost nvb_protect */
  int asks;       /* 0: allocations do not check for interrupts; else 1 + the allocations since the last check */
  nvb_arena *outer, *inner, *beside; /* the arena that it lies within; the newest of those within it; the one before */
};

enum { ALIGN = 16, FIRST = 4 << 10, LARGEST = 1 << 20 };
_Static_assert(sizeof(chunk) % ALIGN == 0, "chunk bytes are aligned");

nvb_arena *nvb_arena_new(void) {
  nvb_arena *a = nvb_calloc(1, sizeof *a);
  if (a) a->next = FIRST;
  return a;
}

nvb_arena *nvb_arena_within(nvb_arena *outer) {
  nvb_arena *a = nvb_arena_new();
  if (!a) nvb_throw(outer, nvb_fail_memory(), "%s", nvb_message());
  a->outer = outer;
  a->asks = outer->asks;
  a->beside = outer->inner;
  outer->inner = a;
  return a;
}

/* Frees all chunks but one. */
static void free_chunks(nvb_arena *a, chunk *but) {
  for (chunk *c = a->chunks, *next; c; c = next) {
    next = c->next;
    if (c != but) nvb_free_kept(c, c->bytes);
  }
  a->chunks = but;
}

void nvb_arena_clear(nvb_arena *a) {
  free_chunks(a, a->filled);
  if (!a->filled) return;
  a->filled->next = NULL;
  a->at = (char *)(a->filled + 1);
}

void nvb_arena_free(nvb_arena *a) {
  if (!a) return;
  for (nvb_arena *i = a->inner, *next; i; i = next) {
    next = i->beside;
    nvb_arena_free(i);
  }
  free_chunks(a, NULL);
  nvb_free(a);
}

size_t nvb_arena_bytes(const nvb_arena *a) {
  size_t bytes = sizeof *a;
  for (const chunk *c = a->chunks; c; c = c->next) bytes += c->bytes;
  for (const nvb_arena *i = a->inner; i; i = i->beside) bytes += nvb_arena_bytes(i);
  return bytes;
}

_Noreturn static void unwind_to(nvb_arena *a, int status) {
  while (!a->top && a->outer) a = a->outer;
  if (!a->top) __builtin_trap(); /* the caller threw outside nvb_protect, which is a bug: no frame is left to jump to */
  a->top->status = status;
  longjmp(a->top->jump, 1);
}

_Noreturn void nvb_throw(nvb_arena *a, int status, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  nvb_vfail(status, fmt, ap);
  va_end(ap);
  unwind_to(a, status);
}

int nvb_protect(nvb_arena *a, void (*fn)(nvb_arena *a, void *arg), void *arg) {
  frame f = { .outer = a->top, .status = NVM_OK };
  a->top = &f;
  if (!setjmp(f.jump)) fn(a, arg);
  a->top = f.outer;
  return f.status;
}

static void *chunk_new(nvb_arena *a, size_t bytes) {
  chunk *c = bytes <= PTRDIFF_MAX ? nvb_alloc_kept(bytes) : NULL;
  if (!c) unwind_to(a, nvb_fail_memory());
  *c = (chunk){ a->chunks, bytes };
  a->chunks = c;
  return c + 1;
}

void nvb_arena_ask(nvb_arena *a) { a->asks = 1; }

void *nvb_get(nvb_arena *a, size_t bytes) {
  enum { SELDOM = 256 }; /* planning makes 256 allocations in some ten microseconds */
  if (a->asks && ++a->asks > SELDOM && (a->asks = 1, nvb_interrupted())) unwind_to(a, NVM_ERR_INTERRUPTED);
  if (bytes > PTRDIFF_MAX - ALIGN) unwind_to(a, nvb_fail_memory());
  size_t n = bytes ? (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
  if (n > (size_t)(a->end - a->at)) {
    if (n > a->next / 4) /* a large request gets a chunk of its own, so that the current chunk can be filled further */
      return memset(chunk_new(a, sizeof(chunk) + n), 0, n);
    a->at = chunk_new(a, a->next);
    a->filled = a->chunks;
    a->end = a->at + a->next - sizeof(chunk);
    if (a->next < LARGEST) a->next *= 2;
  }
  void *p = a->at;
  a->at += n;
  return memset(p, 0, n);
}

void *nvb_dup(nvb_arena *a, const void *p, size_t bytes) {
  void *q = nvb_get(a, bytes);
  return bytes ? memcpy(q, p, bytes) : q;
}

char *nvb_strdup(nvb_arena *a, const char *s) { return nvb_dup(a, s, strlen(s) + 1); }

void *nvb_grow(nvb_arena *a, const void *old, int n, int *cap, size_t size) {
  if (*cap > INT_MAX / 2) unwind_to(a, nvb_fail_memory());
  int more = *cap ? *cap * 2 : 8;
  void *p = nvb_get(a, size * (size_t)more);
  if (n) memcpy(p, old, size * (size_t)n);
  *cap = more;
  return p;
}
