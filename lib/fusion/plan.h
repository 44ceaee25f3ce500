/* The planner's interface: nvf_fuse turns an evaluation graph with reduction orders into a plan. A plan decides which
   values share a kernel, the order of the kernels, and the memory of every value; it never runs anything. planner.md
   describes it, and nvf_fuse in fuse.c calls its phases. */
#ifndef NVM_FUSION_PLAN_H
#define NVM_FUSION_PLAN_H
#include "base/caps.h"
#include "fusion/index.h"
#include "graph/graph.h"
#include "kernel/kernel.h"

typedef enum nvf_bufkind { NVF_BLEAF, NVF_BOUT, NVF_BTEMP } nvf_bufkind;
typedef struct nvf_buf {
  nvf_bufkind kind;
  int id; /* leaf slot or output number */
  int64_t bytes;
  nvf_prod size;   /* the same, by symbols */
  int first, last; /* TEMP: first and last step that use it */
  /* TEMP: bytes into the plan's one block of temporaries, 64-byte aligned; buffers with disjoint lifetimes may
     overlap */
  int64_t offset;
  int donor; /* OUT: leaf slot of the donated memory that it takes; -1: none */
  int local; /* TEMP: it lies between steps that run in strips; a run in strips has no memory for all of it */
} nvf_buf;

typedef struct nvf_bind { /* what a kernel parameter is bound to */
  nvf_pkind kind;
  int buf;
  int64_t offset; /* bytes into the leaf's value, of the part (real or imaginary) that is passed */
  uint64_t bits;
  int leaf;      /* SCALAR: 1 + the leaf slot whose value (in host memory) each run passes; 0: `bits` is the value */
  nvf_prod size; /* SIZE: what `bits` is the value of */
  /* SCALAR: 1 + the constant of the graph whose attribute `part` is `bits`; 0: `bits` depends on no constant */
  int constant, part;
} nvf_bind;
/* The GEMM descriptor of a step: d = act(alpha * a b + beta * c + bias) for each element of the batch; of 8-bit floats
   d = act(alpha * scale_a * scale_b * a b + beta * c + bias), with scales in memory. A library runs the descriptor, and
   the step's kernel computes the same. Addresses refer to the kernel's parameters. */
enum { NVF_BATCHES = 8 };
enum { NVF_SCALE_A, NVF_SCALE_B, NVF_SCALES };
/* Elements that share a number of a scale: the whole operand; a row of a or a column of b; NVF_BLOCK elements of such a
   row or column; NVF_BLOCK rows or columns by NVF_BLOCK along k. */
typedef enum nvf_scale_mode { NVF_SCALE_TENSOR, NVF_SCALE_ROW, NVF_SCALE_VECTOR, NVF_SCALE_BLOCK } nvf_scale_mode;
enum { NVF_BLOCK = 128 };
typedef struct nvf_matrix {
  int param; /* buffer parameter of the kernel; -1: absent */
  nvm_dtype type;
  int64_t offset;   /* of element (0, 0) from the parameter's address, in elements, like the strides */
  int64_t row, col; /* strides; one of them is 1, or its extent is */
  int64_t batch[NVF_BATCHES];
} nvf_matrix;
/* alpha or beta: a number that is neither 0 nor infinite (BLAS does not read what 0 multiplies). param -1: `value`;
   else the value of that kernel parameter, a scalar or (memory) a buffer of one element, rounded to `as`, times
   `value`, which is 1 or -1. */
typedef struct nvf_scale { int param; double value; nvm_dtype as; int memory; } nvf_scale;
typedef enum nvf_act { NVF_ACT_NONE, NVF_ACT_RELU, NVF_ACT_GELU } nvf_act; /* GELU: the tanh form */
typedef struct nvf_gemm {
  int64_t m, n, k;
  int nbatch;
  int64_t batch[NVF_BATCHES]; /* extents, outermost first */
  nvm_dtype operands, accumulate;
  /* nvm_precision: of f32 what the user allowed, of bf16 that of the f32 GEMM whose split it is part of */
  int precision;
  nvf_matrix a, b, c, d;
  nvf_matrix aux; /* the argument of act, if it is stored too */
  nvf_scale alpha, beta;
  nvf_matrix bias;              /* row 0: one value for each column; col 0: one for each row */
  nvf_matrix scale[NVF_SCALES]; /* f32; strides like those of their operands, but by blocks */
  nvf_scale_mode by[NVF_SCALES];
  nvf_act act;
  const char *unsupported; /* what the step does that no descriptor expresses; NULL: the descriptor is complete */
  /* the planner expects the generated kernel to run: it is faster than a library, or no library supports the GEMM */
  int own;
  int symmetric; /* b is a transposed, the same in memory; the result is symmetric if nothing is added to it */
  int half;      /* levels by which a library computes half of a symmetric result (nvf_half_calls); 0: the whole */
} nvf_gemm;

/* Half of a symmetric result of n x n: a call multiplies `count` blocks of rows x cols, the first one at (row, col),
   each `step` rows and columns behind the last. Of two halves of the diagonal what is below the one and beside the
   other is one block; at the next level both halves are divided so, and behind the last level come the blocks on the
   diagonal. Blocks begin at multiples of `unit`, so the last ones of a level may overlap; whatever is on the
   diagonal or below it is in a block. Returns the number of calls; 0: blocks would be smaller than they overlap. */
enum { NVF_HALF_LEVELS = 5, NVF_HALF_CALLS = NVF_HALF_LEVELS + 2 };
typedef struct nvf_half_call { int64_t rows, cols, row, col, step, count; } nvf_half_call;
int nvf_half_calls(nvf_half_call *out, int64_t n, int levels, int64_t unit);
int64_t nvf_half_unit(const nvf_gemm *p); /* elements */
int nvf_half_may(const nvf_gemm *p);      /* can half of the product be computed in this way? */

/* A step that no kernel does (an NVG_VROUTINE). The step's kernel has no statements; its parameters are the operands,
   then every buffer that receives the result, which is row-major. */
typedef struct nvf_operand { nvm_dtype type; int rank; const int64_t *shape, *stride; } nvf_operand; /* in elements */
typedef struct nvf_routine {
  nvg_op op;
  const char *what; /* the operation that the user called */
  int nin, nattr;
  nvf_operand in[2], result;
  const int64_t *attr;
} nvf_routine;
/* How many rows an operand has, and how far apart they are, in elements; returns 0 if they have no such form, or
   elements that lie backwards. */
int nvf_rows_of(const nvf_operand *x, int64_t *count, int64_t *apart);

/* Whether a function of a GEMM's f32 result may have an error of 5e-6. */
static inline int nvf_is_coarse(int precision) {
  return precision == NVM_PRECISION_TF32 || precision == NVM_PRECISION_BF16X3;
}

/* Knobs: parameters that a schedule decides by rules unless a tuning record or the tuner sets them. None changes a
   bit. */
typedef enum nvf_knob {
#define KNOB(id, name, what) NVF_K##id,
#include "fusion/knobs.def"
#undef KNOB
  NVF_NKNOBS
} nvf_knob;
typedef struct nvf_knobs { unsigned set; int32_t value[NVF_NKNOBS]; } nvf_knobs; /* bit i of set: value[i] is set */
static inline void nvf_knob_set(nvf_knobs *k, nvf_knob i, int64_t value) {
  k->set |= 1u << i, k->value[i] = (int32_t)value;
}
void nvf_knobs_print(nvb_text *t, const nvf_knobs *k); /* "block=4096 chunks=8"; nothing for none */
int nvf_knobs_read(nvf_knobs *out, const char *text);  /* returns 0 if the text is malformed */

/* A CHECK statement of the kernel: the operation whose index it tests, the indexed axis, and the extent that the index
   must be below. */
typedef struct nvf_checked { int stmt; const char *op; int64_t axis, extent; nvf_prod size; } nvf_checked;
/* An axis of the grid of a step: ceil(extent / tile) coordinates. */
typedef struct nvf_grid_axis { int part; nvf_prod extent; int64_t tile; } nvf_grid_axis;
typedef struct nvf_step {
  /* "map", "row-reduce", "column-reduce", "full-reduce", "normalisation", "transpose", "scan", "copy",
     "fill" (no operand, no operation), "gemm", "routine" */
  const char *hero;
  nvf_kernel *k;
  nvf_schedule *s;
  const char *text; /* of a kept plan: that of kernel and schedule, of which k has only the parameters; else NULL */
  nvf_bind *bind;   /* by parameter of the kernel */
  int ngrid;
  const nvf_grid_axis *grid; /* by part; a part without grid axes has one block */
  int64_t blocks, grain;     /* blocks of the grid; CPU: blocks in a chunk of the pool, GPU: blocks that run at once */
  int64_t chunks;            /* tasks of the pool that a knob asks for; 0: the rules decide */
  int64_t bytes_read, bytes_written, flops; /* of one run, by the cost model; flops: operations */
  double time;                              /* ns by the cost model, with the launch */
  const char *what;                         /* the ops in it, one line for explain */
  int nchecked;
  const nvf_checked *checked; /* the CHECK statements of the kernel */
  const nvf_gemm *gemm;       /* NULL: it has no GEMM */
  const nvf_routine *routine; /* NULL: a kernel does the step, or a library in its place */
  const char *chosen;         /* who chose its schedule, for explain; NULL: the rules of the schedule */
  int in_strips;              /* it runs in strips, which are made for its schedule */
} nvf_step;

/* Steps that a CPU runs together, strip by strip (strips.c). A unit of a step is a row of a routine, or the blocks with
   one coordinate along the outermost grid axis of a kernel. Unit u of the step reads or writes the elements
   [each u + lo, each u + hi) of a local buffer, one that only these steps use, and writes no other part of it. */
typedef struct nvf_range { int64_t lo, hi; } nvf_range;
typedef struct nvf_window {
  int step, local, written;   /* numbers of nvf_strips.step and local */
  int64_t each, lo, hi, size; /* size: bytes of an element */
} nvf_window;
typedef struct nvf_strips {
  int n, *step;            /* steps of the plan, ascending */
  int64_t *units, *blocks; /* of each step: how many units it has, and blocks of a unit */
  int64_t count, each;     /* strips; units of the last step in each of them */
  int nwindow, nlocal, *local;
  nvf_window *window;        /* by step */
  int64_t *elements, *bytes; /* of each local buffer: in all; the most bytes that a strip has of it */
} nvf_strips;
/* The units of each step, and the elements of each local buffer, in a strip. */
void nvf_strip_at(const nvf_strips *s, int64_t number, nvf_range *units, nvf_range *elements);
/* an edge between steps, and the reason it was not fused */
typedef struct nvf_cut { int from, to; const char *why; } nvf_cut;

/* A step of the plan that was made with the vetoes before this one, and why its kernel cannot be used (it spills, or a
   solver refused it). The next plan does without that kernel; from NVF_VETOES vetoes on each value has a kernel of its
   own. */
typedef struct nvf_veto { int step; const char *why; } nvf_veto;
enum { NVF_VETOES = 3 };
/* bytes that a step moves; smaller steps are dominated by launch time, and the CPU may interpret them */
enum { NVF_TUNED_FROM = 256 << 10 };

typedef struct nvf_plan {
  nvb_arena *arena;
  const nvg_graph *g; /* the given graph, or an alternative form: GEMMs split into bf16, or of floats instead of int8 */
  const nvg_graph *given;
  nvb_devkind device; /* the device that it was planned for */
  int nstep;
  nvf_step *step;
  int nbuf;
  nvf_buf *buf;
  int ncut;
  nvf_cut *cut;
  int nveto;
  const nvf_veto *veto; /* the vetoes that it was made with */
  int64_t temp_bytes;   /* size of the block of temporaries */
  int64_t kept_bytes;   /* without the local buffers of strips, which are its end */
  int nstrips;
  nvf_strips **strips;                   /* no step is in two of them */
  int64_t work;                          /* effort of the search: expressions built plus pairs of kernels examined */
  int64_t bytes_min;                     /* each leaf read once, each output written once */
  const struct nvf_partition *partition; /* the fusions of the steps, for nvf_step_with; in the plan's arena */
  const int *buf_of;                     /* by node of the partition: its first buffer, -1: none */
  const int *twin;                       /* by buffer: the buffer of the next output of the same node, -1: none */
  const char *chosen;                    /* why this plan was chosen, for explain; NULL: by the cost model */
  const char *bf16_note;                 /* which GEMMs were split into bf16, for explain; NULL: none may be */
} nvf_plan;

/* What the device's GEMM libraries support in addition to d = alpha a b + beta c of 32 and 64 bits. */
typedef enum nvf_capability {
  NVF_CAN_GEMM = 1,
  NVF_CAN_F16 = 2,
  NVF_CAN_TF32 = 4,
  NVF_CAN_BIAS = 8,
  NVF_CAN_RELU = 16,
  NVF_CAN_GELU = 32,
  NVF_CAN_AUX = 64,      /* storing the argument of GELU, of 16-bit results */
  NVF_CAN_F8 = 128,      /* 8-bit floats, with scales */
  NVF_CAN_BF16X9 = 256,  /* on devices that can (nvb_caps.splits): float32 that the library splits into bf16 itself */
  NVF_CAN_I8 = 1024,     /* int8 with int32 sums */
  NVF_CAN_HALF = 8192,   /* half of the product of a matrix with its transpose */
  NVF_CAN_DFT = 2048,    /* Fourier transforms of any length, on a GPU */
  NVF_DFT_ALWAYS = 4096, /* the library computes every transform, also those that kernels can: a form for the tuner */
  NVF_CAN_SCALES = 512   /* on devices that can (nvb_caps.scales): scales of more than one number */
} nvf_capability;

/* Whether float32 GEMMs that may be split into bf16 are split */
typedef enum nvf_bf16_split { NVF_BF16_CHEAPER, NVF_BF16_NEVER, NVF_BF16_ALWAYS } nvf_bf16_split;

typedef struct nvf_options {
  int fuse; /* 0: one kernel for each value: a reference for tests, or, with general schedules, a stand-in */
  /* GPU: kernels of one value have schedules that are the same for most sizes, so that many programs share them */
  int general;
  int nveto;
  const nvf_veto *veto;
  int capabilities;          /* bits of nvf_capability; 0: there is no library */
  nvf_bf16_split bf16_split; /* ALWAYS: the best form with splits, if there is one */
  /* NULL, or receives the step that is being made, -1 before and after; an error concerns that step */
  int *step;
} nvf_options;

nvf_plan *nvf_fuse(nvb_arena *a, const nvg_graph *g, const nvb_caps *caps, const nvf_options *o); /* throws */
/* Step i of a plan with its schedule under these knobs, in the plan's arena. Throws if no kernel can have them. */
nvf_step *nvf_step_with(const nvf_plan *p, int i, const nvf_knobs *knobs);
/* prints "70 x 20 x 130 of f32: d = gelu(a b^T + bias)", or why the descriptor is incomplete */
/* ---- other sizes (signature.c, generic.c) */
/* What graphs have in common that one plan may serve: everything but the values of sizes, of which only the class is in
   the key, and of constants. size: the values of the sizes, in the order of their symbols. */
typedef struct nvf_signature { nvb_hash key; int n; const int64_t *size; } nvf_signature;
/* Returns 0 if the graph can only have a plan of its own. */
int nvf_signature_of(nvf_signature *out, nvb_arena *a, const nvg_graph *g, const nvb_caps *caps);
/* The class of a size: 0 for 0, else 1 + the exponent of the next power of two; negative numbers have classes from 65
   on. */
int nvf_size_class(int64_t n);
/* A plan whose numbers are functions of the sizes, with the facts under which it is right. */
typedef struct nvf_generic nvf_generic;
/* The generic form of a plan, which keeps nothing of the plan's arena; NULL if the plan serves its own sizes alone. */
nvf_generic *nvf_generic_of(nvb_arena *a, const nvf_plan *p, const nvf_signature *s);
const nvf_plan *nvf_generic_plan(const nvf_generic *g); /* the numbers of the plan that it is the form of */
/* The plan for a graph of the same signature's key, without kernels, schedules and texts for people beside those of its
   steps; NULL if a fact does not hold of its sizes. */
nvf_plan *nvf_plan_bind(nvb_arena *a, const nvf_generic *of, const nvg_graph *g, const nvf_signature *s,
                        const nvb_caps *caps);

/* ---- plans in the disk cache (kept.c). graph: a hash of all of the graph and the settings that the plan depends on */
/* The plan that is kept for the graph, with the texts of its kernels, without symbols, lifetimes and partition; NULL:
   there is none that is whole and fits the graph. Throws if memory runs out. */
nvf_plan *nvf_plan_find(nvb_arena *a, nvb_hash graph, const nvg_graph *g, const nvb_caps *caps);
void nvf_plan_keep(const nvf_plan *p, nvb_hash graph, const nvb_caps *caps); /* if such a plan can be kept. Throws */
void nvf_plans_drop(void); /* drops all, since they may not be what would be planned with other tuning records */
/* The row of a plan; NULL if it cannot be kept: it is for a GPU, or has a matrix product or a routine. Throws. */
void *nvf_plan_write(nvb_arena *a, const nvf_plan *p, size_t *bytes);
nvf_plan *nvf_plan_read(nvb_arena *a, const void *bytes, size_t n,
                        const nvg_graph *g); /* NULL: no plan of this graph */

void nvf_gemm_print(nvb_text *t, const nvf_gemm *p);
nvb_gemm_class nvf_gemm_class(const nvf_gemm *p); /* by which a device's rate of GEMMs is chosen */
/* For people, to append to a line: how the generated kernel divides K among blocks (split-K, stream-K); "": it does
   not. */
const char *nvf_step_k_partition(const nvf_step *s);
/* the name of the device's schedules in kernel text: "cpu", "cuda" */
const char *nvf_schedule_of(nvb_devkind device);
void nvf_plan_print(nvb_text *t, const nvf_plan *p); /* NVM_DUMP=plan */
/* for people: kernels, bytes against the minimum, flops, and the reason of each cut */
void nvf_plan_explain(nvb_text *t, const nvf_plan *p);
void nvf_plan_check(nvb_arena *a, const nvf_plan *p);
#endif
