/* Adds in the order that the shape fixes: a lane in sequence, then the lanes of a chunk, then the chunks, each
   by the bits of their number, lowest first. The loops are compiled for three levels of x86-64; the results do not
   depend on the level. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* GCC vectorises the loops below, whatever the build's optimisation level */
#endif
#include "frag/sum.h"
#include <string.h>
#include "frag/dtype.h"
#include "frag/impl.h"
#include "frag/soft.h"

/* ROOM: elements of short rows that are merged side by side; SIDE: such rows of one number an element; VECTOR: bytes */
enum { ROOM = 256, ALIGN = 64, SIDE = 8, LANES = 128, VECTOR = 32 };

#define T float
#define NAME(x) x##_f32
#include "frag/sum.inc"
#define T double
#define NAME(x) x##_f64
#include "frag/sum.inc"
#define T uint32_t
#define NAME(x) x##_u32
#include "frag/sum.inc"
#define T uint64_t
#define NAME(x) x##_u64
#include "frag/sum.inc"

typedef void add_fn(nvg_sum *s, const void *x, const void *y, int64_t n);
NVG_SOFT void add(nvg_sum *s, const void *x, const void *y, int64_t n) {
  if (s->type == NVM_F64) add_f64(s, x, y, n);
  else if (s->type == NVM_F32) add_f32(s, x, y, n);
  else if (nvg_size(s->type) == 8) add_u64(s, x, y, n);
  else add_u32(s, x, y, n);
}
#if defined __x86_64__
__attribute__((target("arch=x86-64-v4"))) static void add_v4(nvg_sum *s, const void *x, const void *y, int64_t n) {
  add(s, x, y, n);
}
__attribute__((target("arch=x86-64-v3"))) static void add_v3(nvg_sum *s, const void *x, const void *y, int64_t n) {
  add(s, x, y, n);
}
#endif
static void add_plain(nvg_sum *s, const void *x, const void *y, int64_t n) { add(s, x, y, n); }

void nvg_sum_add(nvg_sum *s, const void *x, const void *y, int64_t n) {
  static add_fn *const variants[] = {
    add_plain,
#if defined __x86_64__
    add_v3,
    add_v4,
#endif
  };
  variants[nvg_step_level() - 1](s, x, y, n);
}

int nvg_sum_can(nvm_dtype type) { return nvg_size(type) >= 4 && nvg_parts(type) == 1; }

/* ---- memory */
static int64_t aligned(int64_t elements, nvm_dtype type) {
  return (elements * nvg_size(type) + ALIGN - 1) & ~(int64_t)(ALIGN - 1);
}
static int64_t room_of(const nvg_sum *s) { return s->width > ROOM ? s->width : ROOM; }
static void set_order(nvg_sum *s, nvm_dtype type, int64_t len, int64_t inner, int chunk, int lanes) {
  *s = (nvg_sum){ .type = type,
                  .inner = inner,
                  .width = (lanes < len ? lanes : len) * inner,
                  .chunk = chunk * inner,
                  .row = len * inner };
}
static int64_t levels_of(const nvg_sum *s) { /* of merged chunks, and the one that is merged */
  int64_t n = 2;
  for (int64_t chunks = s->row / s->chunk; chunks; chunks /= 2) n++;
  return n;
}
int64_t nvg_sum_bytes(nvm_dtype type, int64_t len, int64_t inner, int chunk, int lanes) {
  nvg_sum s;
  set_order(&s, type, len, inner, chunk, lanes);
  return aligned(s.width, type) + 3 * aligned(room_of(&s), type) + aligned(levels_of(&s) * inner, type);
}
void nvg_sum_start(nvg_sum *s, nvm_dtype type, int64_t len, int64_t inner, int chunk, int lanes, char *memory,
                   char *out) {
  set_order(s, type, len, inner, chunk, lanes);
  s->acc = memory;
  s->products = s->acc + aligned(s->width, type);
  s->spare = s->products + aligned(room_of(s), type);
  s->partial = s->spare + 2 * aligned(room_of(s), type);
  s->out = out;
}
