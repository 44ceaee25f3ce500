/* Arenas hold the memory of one evaluation and free it in one call. They also give a stage its only non-local exit:
   the stage runs under nvb_protect, and nvb_throw, or an allocation that fails, unwinds to it (as with Lua's
   lua_pcall). An arena never releases what a stage holds elsewhere (LLVM objects, locks): the caller releases that
   after nvb_protect has returned. */
#ifndef NVM_BASE_ARENA_H
#define NVM_BASE_ARENA_H
#include <stddef.h>
#include <stdint.h>

typedef struct nvb_arena nvb_arena;

nvb_arena *nvb_arena_new(void);    /* NULL when out of memory */
void nvb_arena_free(nvb_arena *a); /* NULL is fine */
/* An arena whose failures unwind to the innermost nvb_protect of `outer`, unless it has one of its own, and which is
   freed with `outer`. For what a stage makes and drops many times. Throws if there is no memory. */
nvb_arena *nvb_arena_within(nvb_arena *outer);
void nvb_arena_clear(nvb_arena *a);         /* forgets all that was allocated, and keeps a chunk for what comes next */
size_t nvb_arena_bytes(const nvb_arena *a); /* bytes taken from the heap, used or not, those within it included */
/* From this call on, allocations from the arena may also throw NVM_ERR_INTERRUPTED (interrupt.h). Evaluations call
   it. */
void nvb_arena_ask(nvb_arena *a);
/* Returns zeroed memory, 16-byte aligned, that the arena owns. It never returns NULL: on failure it throws
   NVM_ERR_MEMORY. Call it only under nvb_protect. */
void *nvb_get(nvb_arena *a, size_t bytes);
void *nvb_dup(nvb_arena *a, const void *p, size_t bytes);
char *nvb_strdup(nvb_arena *a, const char *s);
#define NVB_NEW(a, T) ((T *)nvb_get((a), sizeof(T)))
#define NVB_NEWN(a, T, n) ((T *)nvb_get((a), sizeof(T) * (size_t)(n)))

/* Calls fn(a, arg); returns NVM_OK, or the status that was thrown. Calls nest: the innermost one catches a throw. */
int nvb_protect(nvb_arena *a, void (*fn)(nvb_arena *a, void *arg), void *arg);
/* Does the same on a separate stack of `stack` bytes, for code that recurses as deep as a user's expression. */
int nvb_protect_deep(nvb_arena *a, size_t stack, void (*fn)(nvb_arena *a, void *arg), void *arg);
/* Sets the message and unwinds to the innermost nvb_protect of this arena. */
_Noreturn void nvb_throw(nvb_arena *a, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A growing array in an arena: NVB_VEC(int) v = {0}; NVB_PUSH(a, v, 7); v.at[i], v.n. When the array grows, the
   arena keeps the old storage until it is freed. */
#define NVB_VEC(T) struct { T *at; int n, cap; }
#define NVB_PUSH(a, v, x) \
  ((v).n == (v).cap ? (v).at = nvb_grow((a), (v).at, (v).n, &(v).cap, sizeof *(v).at), (void)0 : (void)0, \
   (v).at[(v).n++] = (x))
void *nvb_grow(nvb_arena *a, const void *old, int n, int *cap, size_t size);
#endif
