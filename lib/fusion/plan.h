/* The planner's interface: nvf_fuse turns an evaluation graph with reduction orders into a plan. A plan decides which
   values share a kernel, the order of the kernels, and the memory of every value; it never runs anything. planner.md
   describes it, and nvf_fuse in fuse.c calls its phases. */
#ifndef NVM_FUSION_PLAN_H
#define NVM_FUSION_PLAN_H
#include "base/caps.h"
#include "graph/graph.h"
#include "kernel/kernel.h"

typedef enum nvf_bufkind { NVF_BLEAF, NVF_BOUT, NVF_BTEMP } nvf_bufkind;
typedef struct nvf_buf {
  nvf_bufkind kind;
  int id; /* leaf slot or output number */
  int64_t bytes;
  int first, last; /* TEMP: steps between which it lives */
  int64_t offset;  /* TEMP: in the program's one temporary block, 64-byte aligned; lifetimes may share bytes */
  int donor;       /* OUT: leaf slot whose memory it takes, -1 if none */
} nvf_buf;

typedef struct nvf_bind { /* one per kernel parameter */
  nvf_pkind kind;
  int buf;
  int64_t offset; /* bytes; of a part in the value of a leaf */
  uint64_t bits;
  int leaf; /* SCALAR: 1 + the leaf slot whose value (in host memory) it is at each run; 0: bits */
} nvf_bind;
/* A step that holds a matrix product, as a BLAS call: d = act(alpha * a b + beta * c + bias), by batch; of floats
   of 8 bits d = act(alpha * scale_a * scale_b * a b + beta * c + bias), with scales in memory. What a library is told;
   the step's kernel says the same. Addresses are those of the kernel's parameters. */
enum { NVF_BATCHES = 8 };
enum { NVF_SCALE_A, NVF_SCALE_B, NVF_SCALES };
/* What has a number in a scale: the whole operand; each row of a and column of b; NVF_BLOCK of such a row or column;
   NVF_BLOCK rows or columns by as many of what is summed. */
typedef enum nvf_scale_mode { NVF_SCALE_TENSOR, NVF_SCALE_ROW, NVF_SCALE_VECTOR, NVF_SCALE_BLOCK } nvf_scale_mode;
enum { NVF_BLOCK = 128 };
typedef struct nvf_matrix {
  int param; /* buffer parameter of the kernel; -1: absent */
  nvm_dtype type;
  int64_t offset;   /* of element (0, 0) from the parameter's address, in elements, as the strides */
  int64_t row, col; /* one of them is 1, or that extent is */
  int64_t batch[NVF_BATCHES];
} nvf_matrix;
/* A number that is neither 0 nor infinite (BLAS does not look at what 0 multiplies); of a parameter of the kernel, a
   scalar or (memory) the buffer of one, the parameter's value, rounded to `as`, times `value`, which is 1 or -1; param
   -1: value. */
typedef struct nvf_scale { int param; double value; nvm_dtype as; int memory; } nvf_scale;
typedef enum nvf_act { NVF_ACT_NONE, NVF_ACT_RELU, NVF_ACT_GELU } nvf_act; /* GELU: the tanh form */
typedef struct nvf_gemm {
  int64_t m, n, k;
  int nbatch;
  int64_t batch[NVF_BATCHES]; /* extents, outermost first */
  nvm_dtype operands, accumulate;
  int precision; /* nvm_precision: of f32 what the user allowed, of bf16 what it is pieces for */
  nvf_matrix a, b, c, d;
  nvf_matrix aux; /* what goes into act, stored too */
  nvf_scale alpha, beta;
  nvf_matrix bias;              /* row 0: one value a column; col 0: one a row */
  nvf_matrix scale[NVF_SCALES]; /* f32, indexed like their operands, but by blocks */
  nvf_scale_mode by[NVF_SCALES];
  nvf_act act;
  const char *unsupported; /* what the step does that these words do not say; NULL: they say all */
  int own;                 /* its own kernel is expected: faster than a library, or no library offers these words */
} nvf_gemm;

/* A step that no kernel does: rows of the last dimension in order, or counted, or summed by bins. The step's kernel has
   no statements; its parameters are the operands and, behind them, every buffer that gets the result. */
typedef struct nvf_routine {
  nvg_op op; /* of a row whose nodes are NVG_VROUTINE */
  int descending;
  int nin; /* operands, of one shape: the second one has weights */
  nvm_dtype operand[2], result;
  int rank;
  const int64_t *shape, *stride[2]; /* of the operands, strides in elements */
  int64_t each;                     /* elements of a row of the result, which is packed */
} nvf_routine;

/* Whether a function of the product, in f32, may be good to 5e-6 alone. */
static inline int nvf_is_coarse(int precision) {
  return precision == NVM_PRECISION_TF32 || precision == NVM_PRECISION_BF16X3;
}

/* What a step's schedule decides by rules unless it is told (a tuning record): nothing of it changes a bit. */
typedef enum nvf_knob {
#define KNOB(id, name, what) NVF_K##id,
#include "fusion/knobs.def"
#undef KNOB
  NVF_NKNOBS
} nvf_knob;
typedef struct nvf_knobs { unsigned set; int32_t value[NVF_NKNOBS]; } nvf_knobs; /* set: bit i, value[i] holds */
static inline void nvf_knob_set(nvf_knobs *k, nvf_knob i, int64_t value) {
  k->set |= 1u << i, k->value[i] = (int32_t)value;
}
void nvf_knobs_print(nvb_text *t, const nvf_knobs *k); /* "block=4096 chunks=8"; nothing for none */
int nvf_knobs_read(nvf_knobs *out, const char *text);  /* 0: not such a text */

/* a CHECK of the kernel: the operation whose index it looks at, along which axis of it, and what the index is to be
   below */
typedef struct nvf_checked { int stmt; const char *op; int64_t axis, extent; } nvf_checked;
typedef struct nvf_step {
  /* "map", "row-reduce", "column-reduce", "full-reduce", "normalisation", "transpose", "scan", "copy", "gemm",
     "routine" */
  const char *hero;
  nvf_kernel *k;
  nvf_schedule *s;
  nvf_bind *bind;
  int64_t blocks, grain; /* blocks of the grid; blocks per chunk of the pool, on a GPU that are busy at once */
  int64_t bytes_read, bytes_written, flops;
  double time;      /* ns that the model expects, with the launch */
  const char *what; /* one line: the ops in it, for explain */
  int nchecked;
  const nvf_checked *checked;
  const nvf_gemm *gemm;       /* NULL: the step holds none */
  const nvf_routine *routine; /* NULL: a kernel does it, or a library in its place */
  const char *chosen;         /* who chose its schedule, for explain; NULL: the rules */
} nvf_step;
/* an edge between steps, and the reason it was not fused */
typedef struct nvf_cut { int from, to; const char *why; } nvf_cut;

/* A step of the plan that was made with the vetoes before this one, and why its kernel is not to be (it spills, a
   solver refused it). The kernel is cut; from NVF_VETOES on there is one kernel a value. */
typedef struct nvf_veto { int step; const char *why; } nvf_veto;
enum { NVF_VETOES = 3 };

typedef struct nvf_plan {
  nvb_arena *arena;
  const nvg_graph *g; /* that was given, or the same with products split into bf16, or of floats for bytes */
  const nvg_graph *given;
  nvb_devkind device; /* what it was planned for */
  int nstep;
  nvf_step *step;
  int nbuf;
  nvf_buf *buf;
  int ncut;
  nvf_cut *cut;
  int nveto;
  const nvf_veto *veto; /* that it was made with */
  int64_t temp_bytes;
  int64_t work;                          /* of the search: instances built and pairs of kernels looked at */
  int64_t bytes_min;                     /* each leaf element that is needed read once, each output written once */
  const struct nvf_partition *partition; /* what the steps were made of, for nvf_step_with; in the plan's arena */
  const int *buf_of;                     /* by node of the choice: its first buffer, -1: none */
  const int *twin;                       /* by buffer: the next output of the same node, -1: none */
  const char *chosen;                    /* why it is this plan, for explain; NULL: by the rules */
  const char *bf16_note; /* what became of products that may be of bfloat16 terms, for explain; NULL: there are none */
} nvf_plan;

/* What a library of products on the device says beside d = alpha a b + beta c of 32 and 64 bits. */
typedef enum nvf_capability {
  NVF_CAN_GEMM = 1,
  NVF_CAN_F16 = 2,
  NVF_CAN_TF32 = 4,
  NVF_CAN_BIAS = 8,
  NVF_CAN_RELU = 16,
  NVF_CAN_GELU = 32,
  NVF_CAN_AUX = 64,     /* GELU of 16-bit results; what goes into it */
  NVF_CAN_F8 = 128,     /* floats of 8 bits, with scales */
  NVF_CAN_BF16X9 = 256, /* on devices that can (nvb_caps.splits): float32 that it takes apart itself */
  NVF_CAN_I8 = 1024,    /* integers of 8 bits, summed in 32 */
  NVF_CAN_SCALES = 512  /* on devices that can (nvb_caps.scales): scales of more than one number */
} nvf_capability;

/* Products of float32 that may be of bfloat16 terms */
typedef enum nvf_bf16_split { NVF_BF16_CHEAPER, NVF_BF16_NEVER, NVF_BF16_ALWAYS } nvf_bf16_split;

typedef struct nvf_options {
  int fuse; /* 0: one kernel per value, for the oracle */
  int nveto;
  const nvf_veto *veto;
  int capabilities;          /* of nvf_capability, bits; 0: there is no library */
  nvf_bf16_split bf16_split; /* in pieces: if that may pay on the device at all */
  int *step; /* NULL, or what holds the step that is being made, -1 before and after: a throw is about it */
} nvf_options;

nvf_plan *nvf_fuse(nvb_arena *a, const nvg_graph *g, const nvb_caps *caps, const nvf_options *o); /* throws */
/* Step i of a plan with its schedule told these things: a step in the plan's arena. Throws where no kernel can be
   so. */
nvf_step *nvf_step_with(const nvf_plan *p, int i, const nvf_knobs *knobs);
/* "70 x 20 x 130 of f32: d = gelu(a b^T + bias)", or why not */
void nvf_gemm_print(nvb_text *t, const nvf_gemm *p);
/* For people: how the blocks of its own kernel share out its sums, behind other words; "": each has its own. */
const char *nvf_step_k_partition(const nvf_step *s);
const char *nvf_schedule_of(nvb_devkind device);     /* the name of its schedules in text: "cpu", "cuda" */
void nvf_plan_print(nvb_text *t, const nvf_plan *p); /* NVM_DUMP=plan */
/* for people: kernels, bytes against the minimum, flops, why each cut */
void nvf_plan_explain(nvb_text *t, const nvf_plan *p);
void nvf_plan_check(nvb_arena *a, const nvf_plan *p);
#endif
