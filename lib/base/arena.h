/* Memory of one evaluation, freed in one call, and the one way out of a stage that cannot go on. A stage runs
   under nvb_protect; deep inside, nvb_throw (or an allocation that fails) unwinds to it, as lua_pcall does. What a
   stage holds outside the arena (LLVM objects, locks) is released by its caller after nvb_protect returns. */
#ifndef NVM_BASE_ARENA_H
#define NVM_BASE_ARENA_H
#include <stddef.h>
#include <stdint.h>

typedef struct nvb_arena nvb_arena;

nvb_arena *nvb_arena_new(void);             /* NULL when out of memory */
void nvb_arena_free(nvb_arena *a);          /* NULL is fine */
size_t nvb_arena_bytes(const nvb_arena *a); /* that it has taken, whether they are in use or not */
/* From here on what takes memory of it may throw NVM_ERR_INTERRUPTED too (interrupt.h): an evaluation's arena. */
void nvb_arena_ask(nvb_arena *a);
/* Cleared memory, 16-byte aligned, owned by the arena. Never NULL: throws NVM_ERR_MEMORY. Only under nvb_protect. */
void *nvb_get(nvb_arena *a, size_t bytes);
void *nvb_dup(nvb_arena *a, const void *p, size_t bytes);
char *nvb_strdup(nvb_arena *a, const char *s);
#define NVB_NEW(a, T) ((T *)nvb_get((a), sizeof(T)))
#define NVB_NEWN(a, T, n) ((T *)nvb_get((a), sizeof(T) * (size_t)(n)))

/* Calls fn(a, arg); returns NVM_OK, or the status thrown. Nests: the innermost catches. */
int nvb_protect(nvb_arena *a, void (*fn)(nvb_arena *a, void *arg), void *arg);
/* The same on a stack of its own with so many bytes, for what recurses as deep as a user's expression. */
int nvb_protect_deep(nvb_arena *a, size_t stack, void (*fn)(nvb_arena *a, void *arg), void *arg);
/* Sets the message and leaves to the innermost nvb_protect of this arena. */
_Noreturn void nvb_throw(nvb_arena *a, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A growing array in an arena: NVB_VEC(int) v = {0}; NVB_PUSH(a, v, 7); v.at[i], v.n. Old storage stays in the
   arena. */
#define NVB_VEC(T) struct { T *at; int n, cap; }
#define NVB_PUSH(a, v, x) \
  ((v).n == (v).cap ? (v).at = nvb_grow((a), (v).at, (v).n, &(v).cap, sizeof *(v).at), (void)0 : (void)0, \
   (v).at[(v).n++] = (x))
void *nvb_grow(nvb_arena *a, const void *old, int n, int *cap, size_t size);
#endif
