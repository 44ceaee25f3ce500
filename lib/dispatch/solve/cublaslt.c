/* The cuBLASLt solver; the library is loaded with dlopen at first use. Decides which GEMMs and epilogues cuBLASLt
   supports, and which algorithm a step keeps: the chosen one or the heuristic's first. At a run it changes the
   algorithm only if the workspace is smaller or an address less aligned than the algorithm was found for. */
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/library.h"
#include "dispatch/cuda/device_impl.h"
#include "dispatch/solve/cublaslt_api.h"
#include "dispatch/solve/half_product.h"
#include "dispatch/solve/solve.h"
#include "frag/dtype.h"

enum { MOST_CALLS = 64, MOST_FOUND = 32, ALIGNED = 256, AUX_STEP = 8 };
enum { UNIT = 16 /* bytes, for FP8 operands */, FOURS = 4 /* for int8 operands */ };
/* MOST_BLOCKS: the largest sum of a pair of scale modes, which excludes blocks with blocks; STEP: their numbers are
   padded to multiples of it */
enum { MOST_BLOCKS = NVF_SCALE_VECTOR + NVF_SCALE_BLOCK, STEP = 4 };
enum { WORKSPACE = 4 << 20, WORKSPACE_90 = 32 << 20, MOST_COMPUTES = 2 };
enum { VERSION_BF16X9 = 120900, VERSION_SCALES = 120900 };

/* ---- the library, and its handle for each device */
static struct {
#define MEMBER(name, args) int (*name) args;
  NVD_LT(MEMBER)
#undef MEMBER
  size_t (*cublasLtGetVersion)(void);
  const char *(*cublasLtGetStatusName)(int status);
} lt;
static char line[64], why_not[512];
static int opened;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_once(void) {
  static const char *const soname[] = { "libcublasLt.so.13", "libcublasLt.so.12", NULL };
  static const nvb_symbol symbol[] = {
#define ROW(name, args) { #name, (void (**)(void))&lt.name, 0 },
    NVD_LT(ROW)
#undef ROW
        { "cublasLtGetVersion", (void (**)(void))&lt.cublasLtGetVersion, 0 },
    { "cublasLtGetStatusName", (void (**)(void))&lt.cublasLtGetStatusName, 0 },
  };
  void *handle = nvb_library_open(soname);
  int n = (int)(sizeof symbol / sizeof *symbol);
  opened = handle ? nvb_library_symbols(handle, "cuBLASLt", symbol, n) : nvb_status();
  if (opened) snprintf(why_not, sizeof why_not, "%s", nvb_message());
  else
    snprintf(line, sizeof line, "%zu.%zu.%zu", lt.cublasLtGetVersion() / 10000, lt.cublasLtGetVersion() / 100 % 100,
             lt.cublasLtGetVersion() % 100);
}

static int is_open(void) {
  pthread_once(&once, open_once);
  return !opened;
}

const char *nvd_cublaslt_line(void) { return is_open() ? line : why_not; }

static int handle_of(void **out, nvd_device *d) { /* a status of cuBLAS */
  static nvb_lock lock = NVB_LOCK(CUBLASLT);
  static void *handle[NVD_MAX_DEVICES];
  nvb_lock_take(&lock);
  void **h = &handle[nvd_device_ordinal(d)];
  int entered = nvd_enter(d), status = *h ? 0 : lt.cublasLtCreate(h);
  nvd_leave(entered);
  if (status) *h = NULL;
  *out = *h;
  nvb_lock_give(&lock);
  return status;
}

/* ---- what it supports */
/* GELU: the library's GELU is accurate to the last place of these results. Measured on an H200: its GELU is accurate to
   5e-6 for f32 and to 1e-9 for f64, which is too little. */
enum { EPILOGUES = 1, GELU = 2 };
static const struct row {
  nvm_dtype in, sum, out;
  int compute, scale, does;
} rows[] = {
  { NVM_F32, NVM_F32, NVM_F32, LT_COMPUTE_32F, LT_R_32F, EPILOGUES },
  { NVM_F64, NVM_F64, NVM_F64, LT_COMPUTE_64F, LT_R_64F, EPILOGUES },
  { NVM_F16, NVM_F32, NVM_F16, LT_COMPUTE_32F, LT_R_32F, EPILOGUES | GELU },
  { NVM_F16, NVM_F32, NVM_F32, LT_COMPUTE_32F, LT_R_32F, EPILOGUES },
  { NVM_BF16, NVM_F32, NVM_BF16, LT_COMPUTE_32F, LT_R_32F, EPILOGUES | GELU },
  { NVM_BF16, NVM_F32, NVM_F32, LT_COMPUTE_32F, LT_R_32F, EPILOGUES },
  { NVM_F8E4, NVM_F32, NVM_F32, LT_COMPUTE_32F, LT_R_32F, EPILOGUES },
  { NVM_F8E4, NVM_F32, NVM_F16, LT_COMPUTE_32F, LT_R_32F, EPILOGUES | GELU },
  { NVM_F8E4, NVM_F32, NVM_BF16, LT_COMPUTE_32F, LT_R_32F, EPILOGUES | GELU },
  { NVM_C64, NVM_C64, NVM_C64, LT_COMPUTE_32F, LT_C_32F, 0 },
  { NVM_C128, NVM_C128, NVM_C128, LT_COMPUTE_64F, LT_C_64F, 0 },
  { NVM_I8, NVM_I32, NVM_I32, LT_COMPUTE_32I, LT_R_32I, 0 },
};

static int type_of(nvm_dtype t) {
  static const int type[] = { [NVM_F32] = LT_R_32F,   [NVM_F64] = LT_R_64F,      [NVM_F16] = LT_R_16F,
                              [NVM_BF16] = LT_R_16BF, [NVM_F8E4] = LT_R_8F_E4M3, [NVM_F8E5] = LT_R_8F_E5M2,
                              [NVM_C64] = LT_C_32F,   [NVM_C128] = LT_C_64F,     [NVM_I8] = LT_R_8I,
                              [NVM_I32] = LT_R_32I };
  return type[t];
}

static int is_f8(const nvd_gemm *g) { return nvg_is_f8(g->a.type) && nvg_is_f8(g->b.type); }

/* Of two FP8 operands one is e4m3; the other may have either format. */
static int has_operands(const struct row *r, const nvd_gemm *g) {
  nvm_dtype a = g->a.type, b = g->b.type;
  if (!is_f8(g)) return a == r->in && b == r->in;
  return r->in == NVM_F8E4 && (a == NVM_F8E4 || b == NVM_F8E4);
}

static const struct row *row_of(const nvd_gemm *g) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (has_operands(&rows[i], g) && g->accumulate == rows[i].sum && g->d.type == rows[i].out) return &rows[i];
  return NULL;
}

static nvm_dtype type_of_bias(const nvd_gemm *g) { return is_f8(g) && g->d.type == NVM_F32 ? NVM_BF16 : g->d.type; }

static int is_vector(const nvd_matrix *x, const nvd_gemm *g) { /* one value for each row, contiguous */
  return (x->row == 1 || g->m == 1) && (x->col == 0 || g->n == 1);
}

static const char *rejects_epilogue(const nvd_gemm *g, const struct row *r) {
  int tail = g->bias.param >= 0 || g->act != NVF_ACT_NONE;
  if (g->aux.param >= 0 && g->act != NVF_ACT_GELU)
    return "the value before the activation is asked for, which it stores for GELU alone";
  if (g->aux.param >= 0 && is_f8(g)) return "it stores no value before GELU of operands of 8 bits";
  if (g->aux.param >= 0 && (g->aux.type != g->d.type || g->aux.trans || !g->aux.ld || g->aux.ld % AUX_STEP))
    return "the value before GELU has another type or layout than it stores";
  if (tail && !(r->does & EPILOGUES)) return "it has no bias and no activation for this type";
  if (g->act == NVF_ACT_GELU && !(r->does & GELU) && !(nvf_is_coarse(g->precision) && r->out == NVM_F32))
    return "its GELU of this type is not as accurate as the type";
  if (g->bias.param >= 0 && g->bias.type != type_of_bias(g))
    return is_f8(g) ? "the bias has another type than it takes" : "the bias has another type than the result";
  if (g->bias.param >= 0 && !is_vector(&g->bias, g))
    return "the bias is not one value for each element of a contiguous row of the result";
  return NULL;
}

/* The number of calls: one call covers the longest batch dimension, *longest. */
static int64_t calls_of(const nvd_gemm *g, int *longest) {
  int64_t most = 1;
  *longest = g->nbatch - 1;
  for (int d = 0; d < g->nbatch; d++)
    if (g->extent[d] > most) most = g->extent[ *longest = d];
  return g->batches / (most ? most : 1);
}

/* The power of two in bytes that every address of the matrix will be a multiple of, at most ALIGNED. */
static uint32_t alignment_of(const nvd_task *t, const nvd_matrix *x) {
  const nvf_bind *bind = &t->step->bind[x->param];
  const nvf_buf *buf = &t->plan->buf[bind->buf];
  int64_t size = nvg_size(x->type), bytes = bind->offset | x->offset * size | ALIGNED;
  int leaf = buf->kind == NVF_BLEAF ? buf->id : buf->kind == NVF_BOUT ? buf->donor : -1;
  if (buf->kind == NVF_BTEMP) bytes |= buf->offset;
  if (leaf >= 0) bytes |= t->plan->g && t->plan->g->leaf[leaf].align16 ? 16 : size;
  for (int d = 0; d < t->g.nbatch; d++) bytes |= x->batch[d] * size;
  return (uint32_t)(bytes & -bytes);
}

/* Why cuBLASLt rejects an FP8 GEMM: its operands must be K-major, and all rows and buffers aligned to 16 bytes. */
static const char *rejects_f8(const nvd_task *t) {
  const nvd_gemm *g = &t->g;
  const nvd_matrix *const all[] = { &g->a, &g->b, &g->c, &g->d };
  if (!g->a.trans || g->b.trans) return "an operand of 8 bits does not lie along what is summed";
  if (g->k % UNIT || g->m % UNIT) return "8-bit operands need extents that are multiples of 16";
  for (int i = 0; i < 4; i++)
    if (all[i]->param >= 0 && (all[i]->ld * nvg_size(all[i]->type) % UNIT || alignment_of(t, all[i]) < UNIT))
      return "of operands of 8 bits it takes rows that begin at multiples of 16 bytes";
  return NULL;
}

/* Why cuBLASLt rejects an int8 GEMM: its operands must be K-major, and extents and alignments multiples of 4 (docs of
   cublasLtMatmul, "regular data ordering"). */
static const char *rejects_i8(const nvd_task *t) {
  const nvd_gemm *g = &t->g;
  const nvd_matrix *const all[] = { &g->a, &g->b, &g->d };
  if (!g->a.trans || g->b.trans) return "an operand of integers of 8 bits does not lie along what is summed";
  if (g->k % FOURS || g->m % FOURS) return "of integers of 8 bits it takes extents in fours";
  for (int i = 0; i < 3; i++)
    if (all[i]->ld % FOURS || alignment_of(t, all[i]) < FOURS)
      return "of integers of 8 bits it takes rows that begin at multiples of 4 bytes";
  return NULL;
}

/* ---- scales of vectors or blocks of an operand */
/* The layout that the library expects: `runs` runs of `run` scales, `ld` apart. For vectors along k, a run holds the
   scales of all rows (columns) at one position of k; for blocks, those of one block row along k. from: strides in the
   caller's memory, between scales of a run and between runs. */
typedef struct layout { int64_t run, runs, ld, from[2]; } layout;

static layout layout_of(const nvd_gemm *g, int i) {
  int64_t outer = i ? g->n : g->m, inner = (g->k + NVF_BLOCK - 1) / NVF_BLOCK;
  int64_t out = i ? g->scale[i].col : g->scale[i].row, in = i ? g->scale[i].row : g->scale[i].col;
  if (g->by[i] == NVF_SCALE_BLOCK)
    return (layout){ inner, (outer + NVF_BLOCK - 1) / NVF_BLOCK, (inner + STEP - 1) / STEP * STEP, { in, out } };
  return (layout){ outer, g->by[i] == NVF_SCALE_VECTOR ? inner : 1, outer, { out, in } };
}

/* scales of neighbouring runs are contiguous: the matrix can be transposed */
static int is_mn_major(const layout *l) {
  return (l->runs == 1 || l->from[1] == 1) && (l->run == 1 || l->from[0] >= l->runs);
}
static int is_k_major(const layout *l) {
  return (l->run == 1 || l->from[0] == 1) && (l->runs == 1 || l->from[1] >= l->run);
}

static int is_ready(const nvd_task *t, int i) { /* in the library's own layout */
  layout l = layout_of(&t->g, i);
  return is_k_major(&l) && (l.runs == 1 || l.from[1] == l.ld) && alignment_of(t, &t->g.scale[i]) >= UNIT;
}

static const char *rejects_scales(const nvd_task *t) {
  const nvd_gemm *g = &t->g;
  const nvf_scale_mode *by = g->by;
  if (!by[0] && !by[1]) return NULL;
  if (!nvb_scales_f8(t->device->arch) || lt.cublasLtGetVersion() < VERSION_SCALES)
    return "it takes scales of parts of an operand on compute capability 9.0 alone, from 12.9 on";
  if ((by[0] == NVF_SCALE_ROW || by[1] == NVF_SCALE_ROW) ? by[0] != by[1]
                                                         : !by[0] || !by[1] || by[0] + by[1] > MOST_BLOCKS)
    return "it has no such pair of scales";
  if (g->batches > 1) return "it takes scales of parts of an operand for one product at a time";
  if (g->c.param >= 0) return "beside scales of parts of an operand it was never asked to add a matrix";
  for (int i = 0; i < NVF_SCALES; i++) {
    layout l = layout_of(g, i);
    if (!is_k_major(&l) && !is_mn_major(&l)) return "the scales of an operand lie as no matrix";
    if (by[i] == NVF_SCALE_VECTOR && l.run % STEP)
      return "it takes scales of 128 numbers for rows and columns in fours";
  }
  return NULL;
}

static const char *reject_task(const nvd_task *t) {
  const nvd_gemm *g = &t->g;
  const struct row *r = row_of(g);
  int at;
  if (!is_open()) return why_not;
  if (!r) return "it has no product of these types";
  if (r->scale == LT_R_32I && (g->alpha.param >= 0 || g->alpha.value != 1 || g->c.param >= 0))
    return "it has no factors for whole numbers";
  if (!g->m || !g->n || !g->k || !g->batches) return "there is nothing to sum";
  if (g->c.param >= 0 && (g->c.type != g->d.type || g->c.trans || (!g->c.ld && !is_vector(&g->c, g))))
    return "what is added has another type or layout than the result";
  if (calls_of(g, &at) > MOST_CALLS || g->batches / calls_of(g, &at) > INT32_MAX)
    return "its batches lie too far apart for few calls";
  const char *why = is_f8(g) ? rejects_f8(t) : r->in == NVM_I8 ? rejects_i8(t) : NULL;
  why = why ? why : rejects_scales(t);
  return why ? why : rejects_epilogue(g, r);
}

/* ---- a step's descriptors */
enum { A, B, C, D, BIAS, AUX, NMAT };
typedef struct found { nvd_lt_algo algo; int64_t workspace; uint32_t align; int there; } found;
typedef struct solution {
  nvd_solution base;
  const struct row *row;
  int compute;
  void *handle, *desc, *layout[4];
  const void *bias, *aux, *scale[NVF_SCALES]; /* the addresses that desc holds now */
  /* copies of scales in the library's layout, at byte offset `at` of the workspace */
  struct transposition {
    void *desc, *from, *to;
    int64_t at;
  } turn[NVF_SCALES];
  int64_t transposed;     /* bytes of all those copies */
  uint32_t align[NMAT];   /* bytes of alignment that addresses are known to have */
  int64_t batches, calls; /* batches in one call; number of calls */
  found chosen, spare;
} solution;

static const nvd_matrix *matrix_of(const nvd_gemm *g, int x) {
  const nvd_matrix *const all[NMAT] = { &g->a, &g->b, g->c.param < 0 ? &g->d : &g->c, &g->d, &g->bias, &g->aux };
  return all[x];
}

/* Moves the longest batch dimension to the last place. */
static void sort_batches(nvd_gemm *g, solution *s) {
  nvd_matrix *const all[NMAT] = { &g->a, &g->b, &g->c, &g->d, &g->bias, &g->aux };
  int at, last = g->nbatch - 1;
  s->calls = calls_of(g, &at);
  s->batches = last >= 0 ? g->extent[at] : 1;
  if (last < 0) return;
  int64_t extent = g->extent[at];
  g->extent[at] = g->extent[last];
  g->extent[last] = extent;
  for (int x = 0; x < NMAT; x++) {
    int64_t stride = all[x]->batch[at];
    all[x]->batch[at] = all[x]->batch[last];
    all[x]->batch[last] = stride;
  }
}

static int set_attribute(solution *s, int attribute, const void *value, size_t n) {
  return lt.cublasLtMatmulDescSetAttribute(s->desc, attribute, value, n);
}

static int describe_epilogue(solution *s, const nvd_gemm *g) {
  static const int act[] = { [NVF_ACT_NONE] = 0, [NVF_ACT_RELU] = LT_EPILOGUE_RELU, [NVF_ACT_GELU] = LT_EPILOGUE_GELU };
  int epilogue = act[g->act] | (g->bias.param >= 0 ? LT_EPILOGUE_BIAS : 0) | (g->aux.param >= 0 ? LT_EPILOGUE_AUX : 0);
  int last = g->nbatch - 1, error;
  epilogue = epilogue ? epilogue : LT_EPILOGUE_NONE;
  error = set_attribute(s, LT_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  if (g->bias.param >= 0 && !error) {
    /* a placeholder with the alignment of the real addresses */
    s->bias = (const void *)(uintptr_t)(ALIGNED | s->align[BIAS]);
    int type = type_of(type_of_bias(g));
    error = set_attribute(s, LT_DESC_BIAS, &s->bias, sizeof s->bias);
    error = error ? error : set_attribute(s, LT_DESC_BIAS_TYPE, &type, sizeof type);
    if (!error && last >= 0) error = set_attribute(s, LT_DESC_BIAS_STRIDE, &g->bias.batch[last], sizeof *g->bias.batch);
  }
  if (g->aux.param >= 0 && !error) {
    s->aux = (const void *)(uintptr_t)(ALIGNED | s->align[AUX]);
    error = set_attribute(s, LT_DESC_AUX, &s->aux, sizeof s->aux);
    error = error ? error : set_attribute(s, LT_DESC_AUX_LD, &g->aux.ld, sizeof g->aux.ld);
    if (!error && last >= 0) error = set_attribute(s, LT_DESC_AUX_STRIDE, &g->aux.batch[last], sizeof *g->aux.batch);
  }
  return error;
}

static const int scale_attribute[NVF_SCALES] = { LT_DESC_SCALE_A, LT_DESC_SCALE_B };
static const int mode_attribute[NVF_SCALES] = { LT_DESC_SCALE_MODE_A, LT_DESC_SCALE_MODE_B };

static int describe_transposition(solution *s, const nvd_gemm *g, int i) {
  struct transposition *t = &s->turn[i];
  layout l = layout_of(g, i);
  int mn_major = !is_k_major(&l);
  int64_t rows = mn_major ? l.runs : l.run, cols = mn_major ? l.run : l.runs, ld = l.from[!mn_major];
  int error = lt.cublasLtMatrixTransformDescCreate(&t->desc, LT_R_32F);
  error = error ? error
                : lt.cublasLtMatrixTransformDescSetAttribute(t->desc, LT_TRANSFORM_TRANSA, &mn_major, sizeof mn_major);
  error = error
              ? error
              : lt.cublasLtMatrixLayoutCreate(&t->from, LT_R_32F, (uint64_t)rows, (uint64_t)cols, cols > 1 ? ld : rows);
  error = error ? error : lt.cublasLtMatrixLayoutCreate(&t->to, LT_R_32F, (uint64_t)l.run, (uint64_t)l.runs, l.ld);
  t->at = s->transposed;
  s->transposed += (l.ld * l.runs * nvg_size(NVM_F32) + ALIGNED - 1) / ALIGNED * ALIGNED;
  return error;
}

static int describe_scales(solution *s, const nvd_task *t) {
  static const int mode[] = { [NVF_SCALE_TENSOR] = LT_SCALE_ONE,
                              [NVF_SCALE_ROW] = LT_SCALE_OUTER,
                              [NVF_SCALE_VECTOR] = LT_SCALE_VEC128,
                              [NVF_SCALE_BLOCK] = LT_SCALE_BLOCK128 };
  const nvd_gemm *g = &t->g;
  int error = 0;
  for (int i = 0; i < NVF_SCALES && !error; i++) {
    if (g->scale[i].param < 0) continue;
    s->scale[i] = (const void *)(uintptr_t)ALIGNED;
    error = set_attribute(s, scale_attribute[i], &s->scale[i], sizeof *s->scale);
    if (!error && g->by[i]) error = set_attribute(s, mode_attribute[i], &mode[g->by[i]], sizeof *mode);
    if (!error && g->by[i] && !is_ready(t, i)) error = describe_transposition(s, g, i);
  }
  return error;
}

/* Lists the compute types that may run the GEMM, the best first, and returns their number. The emulation of float32 by
   bf16x9 may have no algorithm for it, or be unknown to an older library. */
static int computes_of(int out[MOST_COMPUTES], const nvd_task *t) {
  const nvd_gemm *g = &t->g;
  const struct row *r = row_of(g);
  int wide = nvg_size(nvg_real_of(g->a.type)) == 4 && r->scale != LT_R_32I, arch = t->device->arch, n = 0;
  if (g->precision == NVM_PRECISION_TF32 && wide) return out[0] = LT_COMPUTE_TF32, 1;
  if (g->precision == NVM_PRECISION_BF16X9 && r->in == NVM_F32 && nvb_splits_f32(arch) &&
      lt.cublasLtGetVersion() >= VERSION_BF16X9)
    out[n++] = LT_COMPUTE_BF16X9;
  out[n++] = r->compute;
  return n;
}

static int describe_gemm(solution *s, const nvd_task *t) { /* a status of cuBLAS */
  const nvd_gemm *g = &s->base.g;
  int error = lt.cublasLtMatmulDescCreate(&s->desc, s->compute, s->row->scale);
  error = error ? error : set_attribute(s, LT_DESC_TRANSA, &g->a.trans, sizeof g->a.trans);
  error = error ? error : set_attribute(s, LT_DESC_TRANSB, &g->b.trans, sizeof g->b.trans);
  error = error ? error : describe_epilogue(s, g);
  error = error ? error : describe_scales(s, t);
  for (int x = A; x <= D && !error; x++) {
    const nvd_matrix *m = matrix_of(g, x);
    int64_t rows = x == B ? g->k : g->m, cols = x == A ? g->k : g->n, last = g->nbatch - 1;
    uint64_t tall = (uint64_t)(m->trans ? cols : rows), broad = (uint64_t)(m->trans ? rows : cols);
    int32_t batches = (int32_t)s->batches, type = type_of(m->type);
    error = lt.cublasLtMatrixLayoutCreate(&s->layout[x], type, tall, broad, m->ld);
    if (error || last < 0) continue;
    error = lt.cublasLtMatrixLayoutSetAttribute(s->layout[x], LT_LAYOUT_BATCHES, &batches, sizeof batches);
    error =
        error ? error
              : lt.cublasLtMatrixLayoutSetAttribute(s->layout[x], LT_LAYOUT_STRIDE, &m->batch[last], sizeof *m->batch);
  }
  return error;
}

/* Asks the heuristic for algorithms, the best first, for this alignment (0: the known ones) and workspace. Returns
   their number. */
static int search_algorithms(nvd_lt_result *out, int most, const solution *s, uint32_t align, size_t workspace_bytes) {
  void *preference = NULL;
  int n = 0, error = lt.cublasLtMatmulPreferenceCreate(&preference);
  /* partial sums must not be rounded to the result's type */
  uint32_t reduction = s->row->out == s->row->sum ? LT_REDUCE_ANY : LT_REDUCE_COMPUTE_TYPE;
  if (error) return 0;
  lt.cublasLtMatmulPreferenceSetAttribute(preference, LT_PREF_WORKSPACE, &workspace_bytes, sizeof workspace_bytes);
  lt.cublasLtMatmulPreferenceSetAttribute(preference, LT_PREF_REDUCTION, &reduction, sizeof reduction);
  for (int x = A; x <= D; x++)
    lt.cublasLtMatmulPreferenceSetAttribute(preference, LT_PREF_ALIGN_A + x, align ? &align : &s->align[x],
                                            sizeof align);
  error = lt.cublasLtMatmulAlgoGetHeuristic(s->handle, s->desc, s->layout[A], s->layout[B], s->layout[C], s->layout[D],
                                            preference, most, out, &n);
  lt.cublasLtMatmulPreferenceDestroy(preference);
  int good = 0;
  for (int i = 0; i < n && !error; i++)
    if (!out[i].status) out[good++] = out[i];
  return good;
}

static void destroy_transposition(struct transposition *t) {
  if (t->from) lt.cublasLtMatrixLayoutDestroy(t->from);
  if (t->to) lt.cublasLtMatrixLayoutDestroy(t->to);
  if (t->desc) lt.cublasLtMatrixTransformDescDestroy(t->desc);
}

static void destroy_solution(nvd_solution *base) {
  solution *s = (solution *)base;
  if (nvd_cuda_forked) /* they belong to the parent process */
    return;
  for (int x = A; x <= D; x++)
    if (s->layout[x]) lt.cublasLtMatrixLayoutDestroy(s->layout[x]);
  for (int i = 0; i < NVF_SCALES; i++) destroy_transposition(&s->turn[i]);
  if (s->desc) lt.cublasLtMatmulDescDestroy(s->desc);
}

static size_t workspace_of(const nvd_device *d) { return d->arch >= 90 ? WORKSPACE_90 : WORKSPACE; }

/* Prepares everything but the algorithm. What was made stays in s after a failure. Returns a cuBLAS status. */
static int open_solution(solution *s, const nvd_task *t, int compute) {
  s->base.g = t->g;
  s->compute = compute;
  s->row = row_of(&t->g);
  sort_batches(&s->base.g, s);
  for (int x = A; x < NMAT; x++) {
    const nvd_matrix *m = matrix_of(&s->base.g, x);
    s->align[x] = m->param < 0 ? ALIGNED : alignment_of(t, m);
  }
  int error = handle_of(&s->handle, t->device);
  return error ? error : describe_gemm(s, t);
}

static int is_zero(const unsigned char *p, size_t n) {
  while (n && !*p) p++, n--;
  return !n;
}

/* Selects the chosen algorithm, if the library still accepts it, or the heuristic's first if none is named. Returns 1
   if there is one. */
static int decide_algorithm(solution *s, const nvd_device *d, const nvd_solver_choice *choice) {
  nvd_lt_result r = { .status = 0 };
  int found = 0, named = !is_zero(choice->config, sizeof choice->config);
  if (named) {
    memcpy(&r.algo, choice->config, sizeof r.algo);
    found = !lt.cublasLtMatmulAlgoCheck(s->handle, s->desc, s->layout[A], s->layout[B], s->layout[C], s->layout[D],
                                        &r.algo, &r) &&
            r.workspace <= workspace_of(d);
    memcpy(&r.algo, choice->config, sizeof r.algo);
  } else {
    found = search_algorithms(&r, 1, s, 0, workspace_of(d)) > 0;
  }
  s->chosen = (struct found){ r.algo, (int64_t)r.workspace, 0, found };
  return found;
}

static const char *name_error(nvb_arena *a, int error) {
  nvb_text t = { .arena = a };
  nvb_print(&t, "it says %s", lt.cublasLtGetStatusName(error));
  return nvb_text_get(&t);
}

static nvd_solution *prepare_whole(nvb_arena *a, const nvd_task *t, const nvd_solver_choice *choice, const char **why) {
  int compute[MOST_COMPUTES], n = computes_of(compute, t), error = 0;
  for (int i = 0; i < n; i++) {
    solution *s = NVB_NEW(a, solution);
    error = open_solution(s, t, compute[i]);
    int entered = nvd_enter(t->device), found = !error && decide_algorithm(s, t->device, choice);
    nvd_leave(entered);
    if (found) {
      s->base.workspace = s->transposed + s->chosen.workspace;
      return &s->base;
    }
    destroy_solution(&s->base);
  }
  *why = error ? name_error(a, error) : "it knows no algorithm for this";
  return NULL;
}

/* Lists the options of one compute type and returns their number. */
static int options_by(nvd_solver_option *out, int most, const nvd_task *t, int compute) {
  solution s = { .row = NULL };
  nvd_lt_result r[MOST_FOUND];
  int n = 0, entered;
  if (!open_solution(&s, t, compute)) {
    entered = nvd_enter(t->device);
    n = search_algorithms(r, most < MOST_FOUND ? most : MOST_FOUND, &s, 0, workspace_of(t->device));
    nvd_leave(entered);
  }
  for (int i = 0; i < n; i++) {
    uint32_t tile = 0, stages = 0;
    int32_t split = 1;
    size_t had;
    lt.cublasLtMatmulAlgoConfigGetAttribute(&r[i].algo, LT_CONFIG_TILE, &tile, sizeof tile, &had);
    lt.cublasLtMatmulAlgoConfigGetAttribute(&r[i].algo, LT_CONFIG_STAGES, &stages, sizeof stages, &had);
    lt.cublasLtMatmulAlgoConfigGetAttribute(&r[i].algo, LT_CONFIG_SPLIT, &split, sizeof split, &had);
    out[i] = (nvd_solver_option){ .workspace = s.transposed + (int64_t)r[i].workspace };
    memcpy(out[i].choice.config, &r[i].algo, sizeof r[i].algo);
    snprintf(out[i].what, sizeof out[i].what, "cuBLASLt%s %d, tile %u, stages %u, split %d",
             compute == LT_COMPUTE_BF16X9 ? " in bf16x9" : "", i + 1, tile, stages, split);
  }
  destroy_solution(&s.base);
  return n;
}

static int list_options(nvd_solver_option *out, int most, const nvd_task *t) {
  int compute[MOST_COMPUTES], ways = computes_of(compute, t);
  int n = nvd_half_options(out, most / 2, t, (int64_t)workspace_of(t->device));
  for (int i = 0; i < ways; i++) n += options_by(out + n, most - n, t, compute[i]);
  return n;
}

/* ---- running */
typedef union number { float f[2]; double d[2]; int32_t i; } number;
static number number_of(const struct row *r, double v) {
  number n = { .d = { 0, 0 } };
  if (r->scale == LT_R_32I) n.i = (int32_t)v;
  else if (r->scale == LT_R_64F || r->scale == LT_C_64F) n.d[0] = v;
  else n.f[0] = (float)v;
  return n;
}

static int set_pointer(solution *s, int attribute, const void **now, const void *to) {
  if (*now == to) return 0;
  int error = set_attribute(s, attribute, &to, sizeof to);
  *now = error ? NULL : to;
  return error;
}

static int is_fitting(const solution *s, const found *f, char *const *at, int64_t workspace_bytes) {
  int fits = f->there && f->workspace <= workspace_bytes;
  for (int x = A; x < NMAT; x++) fits &= ((uintptr_t)at[x] & ((f->align ? f->align : s->align[x]) - 1)) == 0;
  return fits;
}

static uint32_t least_alignment(const nvd_gemm *g) {
  return is_f8(g) ? UNIT : g->a.type == NVM_I8 ? FOURS : (uint32_t)nvg_size(g->a.type);
}

/* Returns an algorithm that fits these addresses and this workspace; NULL if there is none. */
static const nvd_lt_algo *find_algorithm(solution *s, char *const *at, int64_t workspace_bytes) {
  if (is_fitting(s, &s->chosen, at, workspace_bytes)) return &s->chosen.algo;
  if (!is_fitting(s, &s->spare, at, workspace_bytes)) {
    nvd_lt_result r;
    uint32_t align = least_alignment(&s->base.g);
    s->spare.there = 0;
    if (search_algorithms(&r, 1, s, align, (size_t)workspace_bytes) > 0)
      s->spare = (found){ r.algo, (int64_t)r.workspace, align, 1 };
  }
  return s->spare.there ? &s->spare.algo : NULL;
}

/* Points the descriptor to a scale, which is first copied into the workspace if its layout is not the library's. */
static int point_scale(solution *s, int i, const nvd_run_args *args) {
  const struct transposition *t = &s->turn[i];
  const char *at = nvd_matrix_at(&s->base.g, &s->base.g.scale[i], 0, args->arg);
  const float one = 1, none = 0;
  if (!t->desc) return set_pointer(s, scale_attribute[i], &s->scale[i], at);
  if (args->workspace_bytes < s->transposed) return LT_OUT_OF_MEMORY;
  char *to = (char *)args->workspace + t->at;
  int error =
      lt.cublasLtMatrixTransform(s->handle, t->desc, &one, at, t->from, &none, NULL, NULL, to, t->to, args->stream);
  return error ? error : set_pointer(s, scale_attribute[i], &s->scale[i], to);
}

static int run_call(solution *s, const nvd_run_args *args, int64_t batch, double factor, const number *beta) {
  const nvd_gemm *g = &s->base.g;
  char *at[NMAT];
  for (int x = A; x < NMAT; x++) at[x] = nvd_matrix_at(g, matrix_of(g, x), batch, args->arg);
  int error = g->bias.param < 0 ? 0 : set_pointer(s, LT_DESC_BIAS, &s->bias, at[BIAS]);
  error = error || g->aux.param < 0 ? error : set_pointer(s, LT_DESC_AUX, &s->aux, at[AUX]);
  for (int i = 0; i < NVF_SCALES && !error; i++) error = g->scale[i].param < 0 ? 0 : point_scale(s, i, args);
  char *workspace = (char *)args->workspace + s->transposed;
  const int64_t workspace_bytes = args->workspace_bytes - s->transposed;
  const number alpha = number_of(s->row, factor);
  const nvd_lt_algo *algo = error ? NULL : find_algorithm(s, at, workspace_bytes);
  if (!error && !algo)
    return nvb_fail(NVM_ERR_MEMORY, "[matmul] cuBLASLt knows no algorithm that does with %lld bytes of workspace",
                    (long long)args->workspace_bytes);
  if (!error)
    error =
        lt.cublasLtMatmul(s->handle, s->desc, &alpha, at[A], s->layout[A], at[B], s->layout[B], beta, at[C],
                          s->layout[C], at[D], s->layout[D], algo, workspace, (size_t)workspace_bytes, args->stream);
  if (!error) return NVM_OK;
  return nvb_fail(error == LT_OUT_OF_MEMORY ? NVM_ERR_MEMORY : NVM_ERR_DEVICE, "[matmul] cuBLASLt: %s",
                  lt.cublasLtGetStatusName(error));
}

static int run_solution(nvd_solution *base, const nvd_run_args *args) {
  solution *s = (solution *)base;
  const nvd_gemm *g = &base->g;
  double alpha = nvd_scale_now(g->alpha, g->alpha_type, args->arg);
  number beta = number_of(s->row, g->c.param < 0 ? 0 : nvd_scale_now(g->beta, g->beta_type, args->arg));
  int status = NVM_OK;
  for (int64_t i = 0; i < s->calls && !status; i++) status = run_call(s, args, i * s->batches, alpha, &beta);
  return status;
}

/* ---- half of a symmetric product, by calls of its own, if that is chosen, or expected to be faster and nothing
   else is chosen */
static nvd_solution *prepare_solution(nvb_arena *a, const nvd_task *t, const nvd_solver_choice *choice,
                                      const char **why) {
  static const nvd_solver whole = {
    .name = "cublaslt", .rejects = reject_task, .prepare = prepare_whole, .run = run_solution, .free = destroy_solution
  };
  static const nvd_solver_choice any = { .solver = "" };
  int chosen = nvd_half_levels(choice), named = !is_zero(choice->config, sizeof choice->config);
  int levels = named ? chosen : t->step->gemm->half;
  const char *no = NULL;
  nvd_solution *s = levels ? nvd_half_product(a, t, levels, &whole, &no) : NULL;
  return s ? s : prepare_whole(a, t, chosen ? &any : choice, why);
}

static int find_capabilities(void) {
  enum {
    ALWAYS = NVF_CAN_GEMM | NVF_CAN_F16 | NVF_CAN_TF32 | NVF_CAN_BIAS | NVF_CAN_RELU | NVF_CAN_GELU | NVF_CAN_AUX |
    NVF_CAN_F8 | NVF_CAN_I8 | NVF_CAN_HALF
  };
  return !is_open() ? 0
                    : ALWAYS | (lt.cublasLtGetVersion() >= VERSION_BF16X9 ? NVF_CAN_BF16X9 : 0) |
                          (lt.cublasLtGetVersion() >= VERSION_SCALES ? NVF_CAN_SCALES : 0);
}

const nvd_solver nvd_cublaslt = { .name = "cublaslt",
                                  .device = NVB_CUDA,
                                  .capabilities = find_capabilities,
                                  .rejects = reject_task,
                                  .options = list_options,
                                  .prepare = prepare_solution,
                                  .run = run_solution,
                                  .free = destroy_solution };
