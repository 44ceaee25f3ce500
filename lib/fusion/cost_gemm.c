/* The cost model of kernels with GEMMs. It prices the generated kernel and, where a library supports the GEMM
   descriptor, the library call; the cheaper one decides (a CPU's library always takes 16-bit operands). The work and
   the reads of an epilogue add to the time of generated code (a bf16 matrix added at 4096: 7 us of 178); every block
   that reads a tile computes its prologue again. */
#include <math.h>
#include <string.h>
#include "frag/dtype.h"
#include "fusion/planner.h"

static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }

static double tiles_of(double n, int64_t tile) { return (double)(((int64_t)n + tile - 1) / tile); }
static double axis_length(const nvf_fusion *k, int axis) { return axis < 0 ? 1 : (double)k->axis.at[axis].n; }

nvb_gemm_class nvf_gemm_class(const nvf_gemm *p) {
  if (p->operands == NVM_I8) return NVB_GEMM_I8;
  if (nvg_is_narrow(p->operands)) return nvg_is_f8(p->operands) ? NVB_GEMM_F8 : NVB_GEMM_F16;
  int tf32 = p->precision == NVM_PRECISION_TF32;
  return nvg_real_of(p->accumulate) == NVM_F64 ? NVB_GEMM_F64 : tf32 ? NVB_GEMM_TF32 : NVB_GEMM_F32;
}

/* The class of generated code, which upcasts operands with scales of vectors or blocks to float32. */
static nvb_gemm_class own_class(const nvf_gemm *p) {
  return p->by[NVF_SCALE_A] >= NVF_SCALE_VECTOR ? NVB_GEMM_TF32 : nvf_gemm_class(p);
}

/* The rate of a library. A library that splits float32 into bf16x9 multiplies nine times as much and moves no more
   bytes. With WGMMA its rate is lower for tf32 if both operands are MN-major (us, 4096 x 4096 x 4096 and 8192: 522 and
   4069 instead of 332 and 2650). */
static double library_rate(const nvf_fusion *k, const nvf_gemm *p) {
  enum { TERMS = 9 };
  const nvb_caps *c = k->graph->caps;
  nvb_gemm_class class = nvf_gemm_class(p);
  int mn_major = class == NVB_GEMM_TF32 && c->tensor > 1 && nvf_tensor_is_mn_major(k, k->dot->region[0][0]) &&
                 nvf_tensor_is_mn_major(k, k->dot->region[0][1]);
  double rate = c->gemm[class].library * (mn_major ? 0.65 : 1), split = c->gemm[NVB_GEMM_F16].library / TERMS;
  int splits = p->precision == NVM_PRECISION_BF16X9 && p->operands == NVM_F32 && c->splits &&
               (k->graph->capabilities & NVF_CAN_BF16X9);
  return splits ? most(rate, split) : rate;
}

/* The rate of generated code: on tensor cores, else at most that of float32, of f64 half of it. 8-bit floats may become
   f16. */
static double generated_rate(const nvf_fusion *k, nvb_gemm_class class) {
  const nvb_gemm_rate *rate = k->graph->caps->gemm;
  double reach = k->graph->caps->kind == NVB_CPU ? 1 : nvf_tensor_reach(k);
  class = class == NVB_GEMM_F8 && nvf_tensor_operand(k) == NVM_F16 ? NVB_GEMM_F16 : class;
  double single = rate[NVB_GEMM_F32].generated * (class == NVB_GEMM_F64 ? 0.5 : 1);
  return reach > 0 ? reach * rate[class].generated : least(rate[class].generated, single);
}

static int is_load(const nvf_fusion *k, int expr, int zones) {
  return k->expr.at[expr].kind == NVF_ILOAD && (k->dot->regions[expr] & zones);
}

/* Bytes that some regions read, each element of a value once. */
static double bytes_read(const nvf_fusion *k, int zones) {
  double sum = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    double n = 0, size = v->kind == NVF_ILOAD ? (double)k->graph->node[v->node].size : 0;
    int first = is_load(k, i, zones);
    for (int j = 0; j < i && first; j++) first = !is_load(k, j, zones) || k->expr.at[j].node != v->node;
    for (int j = i; j < k->expr.n && first; j++)
      if (is_load(k, j, zones) && k->expr.at[j].node == v->node) n += nvf_elements(k, k->expr.at[j].axes);
    sum += least(n, size) * (first ? nvg_size(k->graph->node[v->node].dtype) : 0);
  }
  return sum;
}

/* How often an expression is computed: once in every block along grid axes that it lacks. */
static double times_repeated(const nvf_fusion *k, nvf_gemm_tiling t, uint64_t axes) {
  double n = 1;
  for (uint64_t m = k->grid & ~axes; m; m &= m - 1) {
    int a = __builtin_ctzll(m);
    int64_t tile = a == k->dot->m ? t.m : a == k->dot->n ? t.n : 1;
    n *= tiles_of((double)k->axis.at[a].n, tile);
  }
  return n;
}

/* Operations for an element. On a GPU a map that is rounded to 16 bits takes a few approximate instructions, and a cast
   takes one, which costs nothing among the stores of an epilogue (bf16, ns for a million results in addition to the
   GEMM, generated kernel: bias and relu 40, after short sums 120, gelu 400 and 700; a library: 100, gelu 200 to
   700). */
static double work_of(const nvf_fusion *k, int expr) {
  enum { OWN = 14 };
  const nvf_iexpr *v = &k->expr.at[expr];
  const nvf_node *n = v->kind == NVF_IMAP || nvf_is_red(v) ? &k->graph->node[v->node] : NULL;
  double cost = n && n->frag->cost > 1 ? n->frag->cost : 1;
  if (!n || !n->narrowed || k->graph->caps->kind == NVB_CPU) return cost;
  if (!strcmp(n->frag->name, "cast")) return k->dot->regions[expr] & 1 << NVF_EPILOGUE ? 0 : 1;
  return least(cost, OWN);
}

static int is_operand(const nvf_fusion *k, int expr) {
  for (int z = NVF_EPILOGUE + 1; z < k->dot->nregion; z++)
    if (k->dot->of[z] == expr) return 1;
  return 0;
}

/* ns of a CPU's library: GEMMs of few multiplications run on one thread and read operands in place; else each
   operand is copied first. Calls of a batch run one after the other. OpenBLAS has kernels for small matrices for
   AVX-512 alone; by AVX2 8 x 8 x 8 of f64 take 220 ns, generated code 103. */
static double library_cpu(const nvb_caps *c, const nvf_gemm *p, double rate, double flops, double batches,
                          double filled) {
  /* multiplications of real numbers; ns; bytes moved for each byte copied */
  enum { FEW = 1000000, CALL_512 = 60, CALL_256 = 150, COPY = 3 };
  double size = nvg_size(p->operands), m = (double)p->m, n = (double)p->n, depth = (double)p->k;
  double bytes = batches * depth * (m + n) * size, calls = batches * (c->width < 16 ? CALL_256 : CALL_512);
  if (nvg_parts(p->accumulate) == 1 && m * n * depth <= FEW)
    return calls + most(flops * c->cores / rate, bytes > (double)c->onchip ? bytes / c->core_bandwidth : 0);
  return calls + flops / (rate * filled) + bytes / c->bandwidth + COPY * bytes / c->l2_bandwidth;
}

/* ns of a generated kernel on a CPU: its work, the overhead of its blocks, and the time to wake other threads if that
   pays. */
static double own_cpu(const nvb_caps *c, double work, double sums, double blocks, double filled) {
  enum { BLOCK = 40, WAKE = 10000 }; /* ns */
  double shared = work + (sums / c->l2_bandwidth + BLOCK * blocks / c->cores) / filled;
  return least(shared * filled * c->cores, shared + (c->cores > 1 ? WAKE : 0));
}

/* The work of a kernel: m, n and depth (k) of the GEMM; batches: elements of its batch; blocks; padded: elements of all
   tiles relative to those of the result; flops: operations of the GEMMs; ops: all others; quotients in the addresses of
   prologues; l2: bytes that blocks load; rd, wr: bytes of memory; loads: whether prologues load inside the loop. */
typedef struct effort {
  double m, n, depth, batches, blocks, padded, flops, ops, quotients, l2, rd, wr;
  int loads;
} effort;
static effort effort_of(const nvf_fusion *k, nvf_gemm_tiling t) {
  const nvf_graph *graph = k->graph;
  const nvf_iexpr *dot = &k->expr.at[*k->dot->expr];
  int cpu = graph->caps->kind == NVB_CPU;
  double m = axis_length(k, k->dot->m), n = axis_length(k, k->dot->n), depth = axis_length(k, k->dot->k);
  double batches = (double)((k->axis.n ? nvf_elements(k, dot->axes) : 1) / (m * n)); /* the batch */
  double rows = tiles_of(m, t.m), columns = tiles_of(n, t.n);
  effort f = { .m = m,
               .n = n,
               .depth = depth,
               .batches = batches,
               .blocks = batches * rows * columns,
               .padded = rows * (double)t.m / m * columns * (double)t.n / n,
               .rd = bytes_read(k, ~0),
               .flops = k->dot->count * (graph->node[dot->node].parts > 1 ? 8 : 2) * m * n * depth * batches };
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    double each = nvf_elements(k, v->axes | (nvf_is_red(v) ? 1ull << v->axis : 0)),
           times = times_repeated(k, t, v->axes);
    if (!k->dot->regions[i]) /* a cast that the GEMM does without */
      continue;
    /* the rate includes loads of operands; on a CPU they limit a GEMM of few rows */
    if (v->kind == NVF_ILOAD && is_operand(k, i)) {
      f.l2 += cpu ? 2 * each * times * nvg_size(graph->node[v->node].dtype) : 0;
      continue;
    }
    if (v->kind == NVF_ILOAD) {
      f.l2 += each * times * nvg_size(graph->node[v->node].dtype);
      int head = k->dot->regions[i] & ~(1 << NVF_EPILOGUE);
      f.quotients += head ? nvf_ix_floors(graph->space, v->at) * each * times : 0;
      f.loads |= head && (v->axes >> k->dot->k & 1);
    } else if (v->kind != NVF_ICONST && v->kind != NVF_IDOT) f.ops += each * times * work_of(k, i);
  }
  f.wr = nvf_bytes_stored(k);
  return f;
}

/* The factor for SMs that are idle in the last wave. The others are faster meanwhile, so only half of the idle time
   counts (bf16, generated kernel relative to a library: 3072 x 3072 with 2.2 waves 1.08, 2048 x 11008 with 5.2 1.014,
   4096 x 4096 with 3.9 0.99). */
static double idle_factor(double waves) { return waves > 1 ? 0.5 + 0.5 * ceil(waves) / waves : 1; }

/* whether a kernel on tensor cores has at most NVF_SHORT k-tiles */
static int is_short(const nvf_fusion *k, nvf_gemm_tiling t, const effort *f) {
  return k->graph->caps->tensor && tiles_of(f->depth, t.k) <= NVF_SHORT && nvf_tensor_reach(k) > 0;
}

/* ns that short sums add: their multiplications and stores do not overlap as those of long sums do, unless an operand
   is kept in shared memory (bf16 16384 x 16384, k of 64, 128, 192, 256, a library: 171, 184, 198, 234 us; generated
   tiles that load both operands: 163, 172, 210, 265; that keep one: 141, 136, 172, 220; the stores alone take 134). */
static double unhidden_time(const nvf_fusion *k, nvf_gemm_tiling t, const effort *f, double work, double moved) {
  return is_short(k, t, f) ? least(work, moved) / 2 : 0;
}

static double own_time(const nvf_fusion *k, nvf_gemm_tiling t, const effort *f, const nvf_gemm *p, double rate) {
  enum { RESULT = 4 };    /* how often a CPU moves the sums: to clear, read, write and store them */
  enum { QUOTIENT = 64 }; /* operations of a quotient in the loop of a GPU kernel, which waits for it */
  enum { SHORT = 2 };     /* factor of operations after few multiplications */
  /* WAIT: ns of a k-tile whose prologues load, since such loads are not pipelined (int8 weights times scales, 16 rows
     of 8192: 224 us in 128 k-tiles); FEW: k-tiles whose wait does not count; TURNS: blocks of an SM that overlap
     their waits */
  enum { WAIT = 1700, FEW = 4, TURNS = 4 };
  const nvb_caps *c = k->graph->caps;
  double parts = t.stream_k ? most(f->blocks, c->cores) : f->blocks * (double)t.split_k;
  double filled = least(1, parts / c->cores);
  double bandwidth = least(c->bandwidth, c->core_bandwidth * most(1, parts)), moved = (f->rd + f->wr) / bandwidth;
  double ops = is_short(k, t, f) ? SHORT * f->ops : f->ops;
  double own =
      f->flops * f->padded / (rate * filled) + ops / (c->rate * filled) + bytes_read(k, 1 << NVF_EPILOGUE) / bandwidth;
  own += c->kind == NVB_CPU ? 0 : QUOTIENT * f->quotients / (c->rate * filled);
  if (f->loads && c->tensor && nvf_tensor_reach(k) > 0)
    own = most(own, WAIT * (tiles_of(f->depth, t.k * t.split_k) - FEW) * most(1, parts / (c->cores * TURNS)));
  if (c->tensor && nvf_tensor_reach(k) > 0 && !t.stream_k) own *= idle_factor(parts / c->cores);
  own += t.join_time + (t.split_k > 1 ? nvf_split_k_time(k, t.m * t.n) : 0);
  double exposed = t.stages ? 0 : unhidden_time(k, t, f, own, moved);
  if (c->kind == NVB_CPU)
    own = own_cpu(c, own, RESULT * f->batches * f->m * f->n * nvg_size(p->accumulate), f->blocks, filled);
  return exposed + most(own, most(moved, f->l2 / (c->l2_bandwidth * (c->kind == NVB_CPU ? filled : 1))));
}

static double library_time(const nvf_fusion *k, nvf_gemm_tiling t, const effort *f, const nvf_gemm *p, double rate) {
  /* factor of the bytes of GELU's argument, if it is stored (cuBLASLt, 34 MB: 23 us more, 134 MB: 42) */
  enum { AUX = 3 };
  /* ns that a library takes longer to begin than a persistent kernel, whose blocks begin while others end (bf16,
     generated kernel relative to a library: 2048 x 2048 x 2048 0.93, 512 x 4096 x 4096 0.89, 64 x 8192 x 8192
     0.96) */
  enum { BEGIN = 1500 };
  static const double TAIL = 0.75; /* fraction of an epilogue's operations that adds to the time */
  const nvb_caps *c = k->graph->caps;
  int cpu = c->kind == NVB_CPU;
  double blocks = f->blocks * most(1, f->depth / 1024), filled = least(1, blocks / c->cores);
  double time = (f->rd + f->wr) / least(c->bandwidth, c->core_bandwidth * most(1, cpu ? f->blocks : blocks));
  double work = rate > 0 ? f->flops / (rate * filled) : 0;
  time = most(work, time) + unhidden_time(k, t, f, work, time);
  if (p->aux.param >= 0)
    time += AUX * f->batches * f->m * f->n * nvg_size(p->aux.type) /
            least(c->bandwidth, c->core_bandwidth * most(1, f->blocks * (double)t.split_k));
  if (!cpu) time += TAIL * f->ops / c->rate;
  /* alternative forms of the GEMM would be bf16 */
  int split = p->precision == NVM_PRECISION_BF16X3 || p->precision == NVM_PRECISION_BF16X9;
  if (!cpu && (split || ((nvg_is_narrow(p->operands) || p->operands == NVM_I8) && nvf_tensor_reach(k) > 0)))
    time += BEGIN;
  if (cpu && rate > 0 && !nvg_is_narrow(p->operands)) time = library_cpu(c, p, rate, f->flops, f->batches, filled);
  return time;
}

void nvf_assess_gemm(nvf_fusion *k) {
  const nvf_graph *graph = k->graph;
  const nvb_caps *c = graph->caps;
  const nvf_gemm *gemm = nvf_gemm_of(k, NULL, NULL);
  nvf_gemm_tiling t = nvf_gemm_tile(k);
  k->grid = nvf_all_axes(k) & ~k->reduced;
  effort f = effort_of(k, t);
  double rate = library_rate(k, gemm), library = library_time(k, t, &f, gemm, rate);
  double own = own_time(k, t, &f, gemm, generated_rate(k, own_class(gemm)));
  int asked = graph->capabilities && rate > 0 && nvf_gemm_supported(gemm, graph->capabilities);
  if (asked && (graph->capabilities & NVF_CAN_HALF)) library *= nvf_half_fraction(gemm, c, rate, &k->half);
  asked &= library <= own || (c->kind == NVB_CPU && nvg_is_narrow(gemm->operands));
  k->own = graph->capabilities && !asked;
  k->half = asked ? k->half : 0;
  k->unsupported = k->own ? gemm->unsupported : NULL;
  k->blocks = f.blocks;
  k->time = c->launch + (graph->node[k->expr.at[*k->dot->expr].node].size ? asked ? library : own : 0);
  k->bytes_read = (int64_t)f.rd;
  k->bytes_written = (int64_t)f.wr;
  k->flops = (int64_t)(f.flops + f.ops);
}
