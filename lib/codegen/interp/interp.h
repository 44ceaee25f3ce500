/* Internals of the interpreter: a kernel under a schedule is a list of instructions over packed tiles in scratch
   memory. compile.c builds the list, execute.c and reduce.c execute it, memory.c moves elements. No other folder
   includes this. */
#ifndef NVM_CODEGEN_INTERP_INTERP_H
#define NVM_CODEGEN_INTERP_INTERP_H
#include "codegen/codegen.h"

enum {
  NVC_RANK = NVF_MAX_DIGITS,
  NVC_OPERANDS = 160, /* operands or results of a map, at most */
  NVC_CHUNK = 1024,   /* elements per call of a fragment if operands are broadcast */
  NVC_BATCH = 256     /* elements per evaluation of an index expression, and per batch of a transform */
};

/* Elements of a tile, or of another array with a tile's extents: strides in elements, 0 along an axis of broadcast. */
typedef struct nvc_view { int n; int64_t ext[NVC_RANK], stride[NVC_RANK]; } nvc_view;
/* a packed tile, in the layout's order of axes */
typedef struct nvc_shape { nvc_view v; int axis[NVC_RANK]; int64_t total; } nvc_shape;

typedef enum nvc_source { NVC_TILE, NVC_WORD, NVC_SCALAR, NVC_COORD } nvc_source;
typedef struct nvc_operand {
  nvc_source from;
  int id;    /* tile or parameter; COORD: position of the axis in the shape */
  int size;  /* bytes of an element */
  int whole; /* 1: it has exactly the elements of the result, in its order */
  uint64_t word;
  nvc_view v; /* view over the result's shape, collapsed */
} nvc_operand;

typedef struct nvc_ins {
  const nvf_stmt *s;
  nvc_shape shape; /* shape of the result; STORE, REDUCE, SCAN: of the operand */
  int nop;
  nvc_operand *op;                 /* MAP: arguments; CONTRACT: A, B; DFT: all; else tiles of map and where */
  int affine;                      /* 1: map and where are linear in the axes and have no tiles */
  int64_t outer, len, inner;       /* elements outside, along and inside s->axis */
  int64_t chunk, lanes;            /* REDUCE: the reduction order, cut to the extent */
  nvc_shape rest;                  /* DFT: shape without the axis */
  int64_t along[4];                /* DFT, CONTRACT: stride of the axis in each operand */
  const nvg_frag *frag, *widen[2]; /* widen: CONTRACT: casts of operands to the sum's type; NULL: none */
  struct nvc_list *body, *other;   /* FOR, IF */
} nvc_ins;
typedef struct nvc_list {
  int n;
  nvc_ins *at;
  int straight; /* 1: only loads, maps and stores of one axis: elements that are not stored need not be computed */
} nvc_list;

struct nvc_interp {
  const nvf_kernel *k;
  const nvf_schedule *s;
  const nvf_typed *t;
  nvc_list *part;  /* one per part */
  int *slot;       /* by tile: tiles with the same slot share memory */
  int64_t *offset; /* by slot: offset in scratch, in bytes */
  int64_t work;    /* offset of work memory in scratch */
  int64_t scratch;
  char **table; /* by parameter: the elements of a table of roots; NULL: it is an argument */
};

typedef struct nvc_nest {
  const nvc_interp *p;
  const uint64_t *args;
  char *scratch, *work;
  int64_t *grid, *var, *coord; /* block coordinates, loop variables, coordinates by axis */
  int64_t most;                /* elements of a tile that the block stores, at most; INT64_MAX: all */
  int64_t outside;             /* the value that a failed check found out of range */
} nvc_nest;

static inline char *nvc_tile(const nvc_nest *r, int tile) { return r->scratch + r->p->offset[r->p->slot[tile]]; }
static inline int64_t nvc_made(const nvc_nest *r, const nvc_ins *i) { /* elements that an instruction has to compute */
  return i->shape.total < r->most ? i->shape.total : r->most;
}
static inline int64_t nvc_align(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

/* ---- memory.c */
void nvc_view_collapse(nvc_view *v);
/* Elements [start, start + n) of the view over `from`, packed to `to`; and back. */
void nvc_gather(void *to, const void *from, int size, const nvc_view *v, int64_t start, int64_t n);
void nvc_spread(void *to, const void *from, int size, const nvc_view *v, int64_t start, int64_t n);
/* Elements [start, start + n) of an operand: their address, or that of a copy in `work` (n * size bytes). */
const void *nvc_operand_at(const nvc_nest *r, const nvc_ins *i, const nvc_operand *o, int64_t start, int64_t n,
                           void *work);
int64_t nvc_scalar(const nvc_nest *r, const nvf_expr *x); /* value at the coordinates of r */
int nvc_holds(const nvc_nest *r, const nvf_cond *c);
int64_t nvc_end(const nvc_nest *r, const nvc_ins *i); /* elements up to the last one that a store of one axis stores */
/* The elements of `from`, with `other` where the condition fails; `from` itself if it never fails, else `work`. */
const void *nvc_masked(const nvc_nest *r, const nvc_ins *i, const void *from, int size, uint64_t other, void *work);
int nvc_affine(const nvf_expr *x);
int nvc_affine_cond(const nvf_cond *c);
int nvc_expr_depth(const nvf_expr *x);

/* ---- reduce.c: operations along an axis */
int64_t nvc_reduce_work(const nvc_interp *p, const nvc_ins *i);
int64_t nvc_scan_work(const nvc_interp *p, const nvc_ins *i);
int64_t nvc_dft_work(const nvc_interp *p, const nvc_ins *i);
int64_t nvc_contract_work(const nvc_interp *p, const nvc_ins *i);

/* ---- one statement over its whole tile: nvc_do_ and its word. Returns 0, or the id + 1 of the check that failed; then
   r->outside is the left side of its first relation at the first element where it fails. */
#define STATEMENT(id, word, ...) int nvc_do_##word(nvc_nest *r, const nvc_ins *i);
#include "kernel/statements.def"
int nvc_nest_list(nvc_nest *r, const nvc_list *l);
#endif
