/* Tries the merge of a reduction or scan on pseudo-random states: whether it is commutative, and whether the given
   states are its identity. Never looks at layouts. */
#include <string.h>
#include "frag/dtype.h"
#include "kernel/kernel.h"

enum { STATES = NVF_STATES, TRIES = 16 /* samples of each state */ };

/* The j-th sample of a state. wild: any value, special ones first; else positive numbers, as merges of several states
   may expect. */
static uint64_t sample_state(nvm_dtype t, uint32_t *seed, int wild, int j) {
  static const double special[] = { -0.0, 0.0, -__builtin_inf(), __builtin_inf() };
  *seed = *seed * 1664525 + 1013904223;
  int v = (int)(*seed >> 27) - 12; /* -12 ... 19 */
  if (!wild && v <= 0) v = 1 - v;
  union {
    double d;
    uint64_t u;
  } d = { .d = wild && j < 4 ? special[j] : v * 0.25 };
  union {
    float f;
    uint32_t u;
  } f = { .f = (float)d.d };
  switch (nvg_class_of(t)) {
  case NVG_FLOAT: return t == NVM_F64 ? d.u : t == NVM_F32 ? f.u : 0x3c00u + (uint64_t)(v & 15);
  case NVG_BOOLEAN: return v & 1;
  default: return (uint64_t)(int64_t)v;
  }
}

typedef struct states {
  uint64_t word[STATES][TRIES];
  nvm_dtype type[STATES];
  int n;
} states; /* the samples of each state are packed by its dtype */

static void run_merge(const nvg_frag *f, const states *a, const states *b, states *out) {
  const void *in[2 * STATES];
  void *to[STATES];
  for (int i = 0; i < a->n; i++) {
    in[i] = a->word[i];
    in[a->n + i] = b->word[i];
    to[i] = out->word[i];
  }
  nvg_frag_run(f, in, to, TRIES, 1);
}

static int same_value(nvm_dtype t, const void *a, const void *b) {
  int size = nvg_size(t);
  if (memcmp(a, b, (size_t)size) == 0) return 1;
  if (t == NVM_F32) {
    float x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return x != x && y != y;
  }
  if (t == NVM_F64) {
    double x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return x != x && y != y;
  }
  return 0;
}

static int same_states(const states *a, const states *b) {
  for (int i = 0; i < a->n; i++)
    for (int j = 0, size = nvg_size(a->type[i]); j < TRIES; j++)
      if (!same_value(a->type[i], (const char *)a->word[i] + j * size, (const char *)b->word[i] + j * size)) return 0;
  return 1;
}

static void fill_states(states *s, const uint64_t *init, uint32_t seed) { /* with init, or with samples if it is NULL */
  int back = seed == 2; /* reversed, so that special values of one operand meet ordinary ones of the other */
  for (int i = 0; i < s->n; i++)
    for (int j = 0, size = nvg_size(s->type[i]); j < TRIES; j++) {
      uint64_t v = init ? init[i] : sample_state(s->type[i], &seed, s->n == 1, back ? TRIES - 1 - j : j);
      memcpy((char *)s->word[i] + j * size, &v, (size_t)size);
    }
}

nvf_merge_fault nvf_try_merge(const nvg_frag *f, int n, const nvm_dtype *type, int any_order, const uint64_t *init) {
  states a = { .n = n }, b, ab, ba;
  for (int i = 0; i < n; i++) a.type[i] = type[i];
  b = ab = ba = a;
  fill_states(&a, NULL, 1);
  fill_states(&b, NULL, 2);
  if (any_order) {
    run_merge(f, &a, &b, &ab);
    run_merge(f, &b, &a, &ba);
    if (!same_states(&ab, &ba)) return NVF_NOT_COMMUTATIVE;
  }
  if (!init) return NVF_NO_FAULT;
  fill_states(&b, init, 0);
  run_merge(f, &b, &a, &ba);
  run_merge(f, &a, &b, &ab);
  return same_states(&ba, &a) && same_states(&ab, &a) ? NVF_NO_FAULT : NVF_NO_IDENTITY;
}
