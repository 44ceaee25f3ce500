/* Draws: arrays of random numbers. Each element is a function of its number and of the state of a generator, so a draw
   takes no memory until it is read as a whole, and has the same bits wherever its elements are computed. */
#include "base/err.h"
#include "graph/infer.h"

enum { COUNTER_BITS = 128 };
static int is_wide(nvm_dtype t) { return nvg_size(t) == 8; }

uint64_t nvg_draw_counters(nvm_draw what, nvm_dtype t, int64_t n) {
  uint64_t words = what == NVM_DRAW_BELOW ? 1 : COUNTER_BITS / (is_wide(t) ? 64 : 32);
  return ((uint64_t)n + words - 1) / words;
}

nvg_node *nvg_counter_after(nvg_node *counter, uint64_t n) {
  nvg_node *sum[2] = { nvg_node_ref(counter) };
  if (!n) return sum[0];
  sum[1] = nvg_const_bits(NVM_I64, n, 0);
  return nvg_node_take(NVG_OP_ADD, nvg_aval_ref(counter->aval), sum, 2, NULL, 0);
}

/* The random integers of n elements, along one axis. below: int64, 0-d or of n elements; NULL: all bits. */
static nvg_node *draw_integers(nvg_call *c, nvm_dtype t, nvg_node *const *state, nvg_node *below, int64_t n) {
  nvg_node *in[1 + NVG_STATE + 1] = { nvg_xiota(c, 1, &n, 0) };
  for (int i = 0; i < NVG_STATE; i++) in[1 + i] = state[i];
  in[1 + NVG_STATE] = below;
  nvm_dtype bits = is_wide(t) ? NVM_U64 : NVM_U32;
  nvg_op op = below ? NVG_OP_RANDOM_BELOW : is_wide(t) ? NVG_OP_RANDOM64 : NVG_OP_RANDOM32;
  if (!nvg_map_frag(op, NVM_I64)) return NULL;
  return nvg_keep(c, nvg_node_new(op, nvg_aval_get(bits, 1, &n), in, nvg_ops[op].nin, NULL, 0));
}

/* A function of random bits. */
static nvg_node *of_bits(nvg_call *c, nvg_op op, nvm_dtype t, nvg_node *bits) {
  if (!bits || !nvg_map_frag(op, bits->aval->dtype)) return NULL;
  return nvg_keep(c, nvg_node_new(op, nvg_aval_as(bits->aval, t), &bits, 1, NULL, 0));
}

static nvg_node *draw(nvg_call *c, nvm_draw what, nvm_dtype t, nvg_node *const *state, nvg_node *below,
                      const nvg_aval *shape) {
  static const nvg_op of[NVM_NDRAWS] = { [NVM_DRAW_UNIFORM] = NVG_OP_UNIT,
                                         [NVM_DRAW_NORMAL] = NVG_OP_NORMAL,
                                         [NVM_DRAW_EXPONENTIAL] = NVG_OP_EXPONENTIAL };
  if (below && !(below = nvg_xcast(c, below, NVM_I64, 1))) return NULL;
  if (below && below->aval->rank) below = nvg_xreshape(c, below, 1, &shape->size);
  nvg_node *bits = draw_integers(c, t, state, below, shape->size);
  nvg_node *r = of[what] ? of_bits(c, of[what], t, bits) : bits;
  return r ? nvg_xreshape(c, r, shape->rank, shape->shape) : NULL;
}

nvg_node *nvg_draw(nvm_draw what, nvm_dtype t, nvg_node *const *state, nvg_node *below, const nvg_aval *shape) {
  nvg_call c = { .op = NVG_OP_RANDOM64, .default_float = NVM_F64, .cap = 24 };
  c.own = c.inl;
  nvg_node *r = nvg_node_ref(draw(&c, what, t, state, below, shape));
  nvg_call_end(&c);
  return r;
}
