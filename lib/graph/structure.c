/* What an expression says about the matrices that it makes: whether they are Hermitian, and whether a product with an
   inverse is a solution. Exact in real numbers; rounding may make a matrix that is not, so what uses it must give the
   right answer for any matrix. */
#include <string.h>
#include "graph/structure.h"

enum { DEEP = 24 }; /* operations that are looked through */

static int has_name(const nvg_val *v, const char *name) {
  return v->kind == NVG_VMAP && v->frag && !strcmp(v->frag->name + (strncmp(v->frag->name, "c.", 2) ? 0 : 2), name);
}

/* Does the permutation exchange the last two dimensions alone? */
static int is_transpose(const nvg_val *v) {
  if (v->kind != NVG_VPERMUTE || v->rank < 2) return 0;
  for (int d = 0; d < v->rank - 2; d++)
    if (v->attr[d] != d) return 0;
  return v->attr[v->rank - 2] == v->rank - 1;
}

static int is_complex(const nvg_val *v) { return v->dtype == NVM_C64 || v->dtype == NVM_C128; }

/* The value whose conjugate transpose v is, -1: of none that is seen. */
static int adjoint_of(const nvg_lower *l, int v) {
  const nvg_val *x = nvg_at(l, v), *y = x->nin ? nvg_at(l, x->in[0]) : NULL;
  if (!is_complex(x)) return is_transpose(x) ? x->in[0] : -1;
  if (has_name(x, "conj") && is_transpose(y)) return y->in[0];
  return is_transpose(x) && has_name(y, "conj") ? y->in[0] : -1;
}

static int are_adjoint(const nvg_lower *l, int a, int b) { return adjoint_of(l, b) == a || adjoint_of(l, a) == b; }

/* Is it the difference of the coordinates of row and column? */
static int is_distance(const nvg_lower *l, int v) {
  const nvg_val *x = nvg_at(l, v);
  if (!has_name(x, "subtract") || x->rank < 2) return 0;
  const nvg_val *i = nvg_at(l, x->in[0]), *j = nvg_at(l, x->in[1]);
  return i->kind == NVG_VIOTA && j->kind == NVG_VIOTA && i->attr[0] != j->attr[0] && i->attr[0] >= x->rank - 2 &&
         j->attr[0] >= x->rank - 2;
}

static int is_hermitian(const nvg_lower *l, int v, int depth);

/* A real function of real Hermitian operands is one; of complex ones sums, differences, conjugates, real parts and
   absolute values are. */
static int is_hermitian_map(const nvg_lower *l, const nvg_val *x, int depth) {
  if (x->nin == 2 && has_name(x, "add") && are_adjoint(l, x->in[0], x->in[1])) return 1;
  if (has_name(x, "equal") && is_distance(l, x->in[0]) && nvg_is_number(l, x->in[1], 0)) return 1;
  if (has_name(x, "abs") && is_distance(l, x->in[0])) return 1;
  int linear = has_name(x, "add") || has_name(x, "subtract") || has_name(x, "conj") || has_name(x, "make");
  if (is_complex(x) && !linear) return 0;
  int narrows = !is_complex(x) && is_complex(nvg_at(l, x->in[0]));
  if (narrows && !has_name(x, "real") && !has_name(x, "abs")) return 0;
  for (int i = 0; i < x->nin; i++) {
    int zero = has_name(x, "make") && i ? nvg_is_number(l, x->in[i], 0) : 1;
    if (!zero || !is_hermitian(l, x->in[i], depth)) return 0;
  }
  return 1;
}

static int is_hermitian(const nvg_lower *l, int v, int depth) {
  const nvg_val *x = nvg_at(l, v);
  if (depth == DEEP) return 0;
  if (x->size == 1) return !is_complex(x);
  if (x->rank < 2 && x->kind != NVG_VCONST) return 0;
  switch (x->kind) {
  case NVG_VCONST: return !is_complex(x);
  case NVG_VCALL: return are_adjoint(l, x->in[0], x->in[1]);
  case NVG_VMAP: return is_hermitian_map(l, x, depth + 1);
  case NVG_VPERMUTE: return is_transpose(x) && is_hermitian(l, x->in[0], depth + 1);
  case NVG_VEXPAND: {
    const nvg_val *y = nvg_at(l, x->in[0]);
    int whole = y->size == 1 || (y->rank >= 2 && y->shape[y->rank - 1] == y->shape[y->rank - 2]);
    return whole && is_hermitian(l, x->in[0], depth + 1);
  }
  default: return 0;
  }
}

int nvg_is_hermitian(const nvg_lower *l, int v) {
  const nvg_val *x = nvg_at(l, v);
  return x->rank >= 2 && x->shape[x->rank - 1] == x->shape[x->rank - 2] && is_hermitian(l, v, 0);
}

int nvg_is_inverse(const nvg_lower *l, int v) {
  const nvg_val *x = nvg_at(l, v);
  return x->kind == NVG_VROUTINE && x->nin == 1 && (x->op == NVG_OP_SUBSTITUTED || x->op == NVG_OP_SOLVED);
}
