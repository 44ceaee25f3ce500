/* Draws: arrays of random numbers. Each element is a function of its number and of the state of a generator, so a draw
   takes no memory until it is read as a whole, and has the same bits wherever its elements are computed. */
#include "base/err.h"
#include "graph/infer.h"

enum { COUNTER_BITS = 128 };
static int is_wide(nvm_dtype t) { return nvg_size(t) == 8; }

/* A draw is a function of the element's number, the generator's state and parameters, of these dtypes (NVM_NDTYPES: the
   dtype of the draw), for dtypes of 8 bytes `wide`, if that is another one, and in front of these operands of what
   `first` draws, if there is one; it takes so many counters for each element, or 0: 32 or 64 bits. Or it is a function
   of random bits. */
typedef struct draw_row {
  nvg_op op, wide, first, of_bits;
  int parameters, counters;
  nvm_dtype parameter[NVG_DRAW_PARAMETERS];
} draw_row;
enum { OWN = NVM_NDTYPES };
static const draw_row rows[NVM_NDRAWS] = {
  [NVM_DRAW_UNIFORM] = { .of_bits = NVG_OP_UNIT },
  [NVM_DRAW_NORMAL] = { NVG_OP_RANDOM_NORMAL32, .wide = NVG_OP_RANDOM_NORMAL64 },
  [NVM_DRAW_EXPONENTIAL] = { .of_bits = NVG_OP_EXPONENTIAL },
  [NVM_DRAW_BELOW] = { NVG_OP_RANDOM_BELOW, 0, NVG_OP_RANDOM_FIRST64, 0, 1, 1, { NVM_I64 } },
  [NVM_DRAW_GAMMA] = { NVG_OP_RANDOM_GAMMA, 0, 0, 0, 1, 16, { OWN } },
  [NVM_DRAW_BETA] = { NVG_OP_RANDOM_BETA, 0, 0, 0, 2, 32, { OWN, OWN } },
  [NVM_DRAW_VONMISES] = { NVG_OP_RANDOM_VONMISES, 0, 0, 0, 1, 64, { OWN } },
  [NVM_DRAW_POISSON] = { NVG_OP_RANDOM_POISSON, 0, 0, 0, 1, 32, { NVM_F64 } },
  [NVM_DRAW_BINOMIAL] = { NVG_OP_RANDOM_BINOMIAL, 0, 0, 0, 2, 32, { NVM_I64, NVM_F64 } },
  [NVM_DRAW_ZIPF] = { NVG_OP_RANDOM_ZIPF, 0, 0, 0, 1, 64, { NVM_F64 } },
  [NVM_DRAW_HYPERGEOMETRIC] = { NVG_OP_RANDOM_HYPERGEOMETRIC, 0, 0, 0, 3, 64, { NVM_I64, NVM_I64, NVM_I64 } },
};
int nvg_draw_parameters(nvm_draw what) { return rows[what].parameters; }

uint64_t nvg_draw_counters(nvm_draw what, nvm_dtype t, int64_t n) {
  if (rows[what].first) n += n & 1; /* two elements have two counters */
  if (rows[what].counters) return (uint64_t)n * (uint64_t)rows[what].counters;
  uint64_t words = COUNTER_BITS / (is_wide(t) ? 64 : 32);
  return ((uint64_t)n + words - 1) / words;
}

nvg_node *nvg_counter_after(nvg_node *counter, uint64_t n) {
  nvg_node *sum[2] = { nvg_node_ref(counter) };
  if (!n) return sum[0];
  sum[1] = nvg_const_bits(NVM_I64, n, 0);
  return nvg_node_take(NVG_OP_ADD, nvg_aval_ref(counter->aval), sum, 2, NULL, 0);
}

/* An operation of `first`, unless it is NULL, the element's number, the state, and more operands; n elements along one
   axis. */
static nvg_node *draw_elements(nvg_call *c, nvg_op op, nvm_dtype t, nvg_node *first, nvg_node *const *state,
                               nvg_node *const *more, int64_t n) {
  nvg_node *in[2 + NVG_STATE + NVG_DRAW_PARAMETERS] = { first };
  int nin = nvg_ops[op].nin, at = first != NULL;
  in[at++] = nvg_xiota(c, 1, &n, 0);
  for (int i = 0; i < NVG_STATE; i++) in[at++] = state[i];
  for (int i = at; i < nin; i++)
    if (!(in[i] = more[i - at])) return NULL;
  if (!nvg_map_defined(op, in[nin - 1]->aval->dtype)) return NULL;
  return nvg_keep(c, nvg_node_new(op, nvg_aval_get(t, 1, &n), in, nin, NULL, 0));
}

/* A function of random bits. */
static nvg_node *of_bits(nvg_call *c, nvg_op op, nvm_dtype t, nvg_node *bits) {
  if (!bits || !nvg_map_defined(op, bits->aval->dtype)) return NULL;
  return nvg_keep(c, nvg_node_new(op, nvg_aval_as(bits->aval, t), &bits, 1, NULL, 0));
}

static nvg_node *draw(nvg_call *c, nvm_draw what, nvm_dtype t, nvg_node *const *state, nvg_node *const *parameter,
                      const nvg_aval *shape) {
  const draw_row *row = &rows[what];
  nvg_node *given[NVG_DRAW_PARAMETERS], *r;
  for (int i = 0; i < row->parameters; i++) {
    given[i] = nvg_xcast(c, parameter[i], row->parameter[i] == (nvm_dtype)OWN ? t : row->parameter[i], 1);
    if (given[i] && given[i]->aval->rank) given[i] = nvg_xreshape(c, given[i], 1, &shape->size);
  }
  nvg_op op = row->wide && is_wide(t) ? row->wide : row->op;
  nvg_node *first = row->first ? draw_elements(c, row->first, NVM_I64, NULL, state, NULL, shape->size) : NULL;
  if (row->first && !first) return NULL;
  if (op) r = draw_elements(c, op, t, first, state, given, shape->size);
  else {
    r = draw_elements(c, is_wide(t) ? NVG_OP_RANDOM64 : NVG_OP_RANDOM32, is_wide(t) ? NVM_U64 : NVM_U32, NULL, state,
                      NULL, shape->size);
    if (row->of_bits) r = of_bits(c, row->of_bits, t, r);
  }
  return r ? nvg_xreshape(c, r, shape->rank, shape->shape) : NULL;
}

nvg_node *nvg_draw(nvm_draw what, nvm_dtype t, nvg_node *const *state, nvg_node *const *parameter,
                   const nvg_aval *shape) {
  nvg_call c = { .op = NVG_OP_RANDOM64, .default_float = NVM_F64, .cap = 24 };
  c.own = c.inl;
  nvg_node *r = nvg_node_ref(draw(&c, what, t, state, parameter, shape));
  nvg_call_end(&c);
  return r;
}
