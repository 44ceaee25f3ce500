/* Composes the whole source: prelude, the functions that the kernel calls, and the kernel, whose grid is divided among
   its parts. Also has the helpers that write text. Decides warps, cluster, rasterisation and launch facts (threads,
   shared memory, scratch); never what a statement becomes. */
#include "codegen/cuda/tensor_core.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "frag/dtype.h"
#include "kernel/roots.h"

extern const char nvc_cuda_prelude[], nvc_cuda_tensor[]; /* prelude.cu, tensor_core.cu */

/* Plain C++ of every source: several elements in one access, floored division. */
static const char common[] = "template <class T, int N> struct __align__(sizeof(T) * N) nv_pack { T at[N]; };\n"
                             "template <class T> static __device__ __forceinline__ T nv_div(T a, T b) {\n"
                             "  const T q = a / b;\n"
                             "  return q - (a - q * b < 0);\n"
                             "}\n"
                             "template <class T> static __device__ __forceinline__ T nv_mod(T a, T b) {\n"
                             "  const T r = a % b;\n"
                             "  return r < 0 ? r + b : r;\n"
                             "}\n"
                             "/* i < most with x + step * i < 0 */\n"
                             "template <class T> static __device__ __forceinline__ T nv_rounds(T x, T step, T most) {\n"
                             "  const T n = x < 0 ? (step - 1 - x) / step : 0;\n"
                             "  return n < most ? n : most;\n"
                             "}\n";
/* The offset of a byte of a row in a swizzled shared tile of ROWS rows (swizzle.c). */
static const char swizzle[] =
    "template <int ROWS, int SPAN> static __device__ __forceinline__ int nv_swizzled(int row, int byte) {\n"
    "  const int mask = (row * SPAN / 128 & (SPAN / 16 - 1)) << 4;\n"
    "  return byte / SPAN * (ROWS * SPAN) + row * SPAN + (byte % SPAN ^ mask);\n"
    "}\n";
/* Keeps the lowest id of a failed statement; 0: none has failed. */
static const char fail[] = "static __device__ __noinline__ void nv_fail(int *failed, int id) {\n"
                           "  for (int old = *failed; old == 0 || old > id;) {\n"
                           "    const int seen = atomicCAS(failed, old, id);\n"
                           "    if (seen == old) return;\n"
                           "    old = seen;\n"
                           "  }\n"
                           "}\n";

/* ---- text */
static const char *format_text(nvcu_em *e, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  char *s = nvb_get(e->a, (size_t)n + 1);
  vsnprintf(s, (size_t)n + 1, fmt, ap);
  return s;
}

static void put_indented(nvcu_em *e, const char *text, const char *end) {
  nvb_print(&e->out, "%*s%s%s\n", 2 * e->depth, "", text, end);
}

void nvcu_line(nvcu_em *e, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  put_indented(e, format_text(e, fmt, ap), "");
  va_end(ap);
}

void nvcu_open(nvcu_em *e, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *text = format_text(e, fmt, ap);
  put_indented(e, text, *text ? " {" : "{");
  va_end(ap);
  e->depth++;
  nvcu_scope_opened(e);
}

void nvcu_close(nvcu_em *e) {
  nvcu_scope_closed(e);
  e->depth--;
  while (e->let.n && e->let.at[e->let.n - 1].depth > e->depth) e->let.n--;
  put_indented(e, "}", "");
}

const char *nvcu_text(nvcu_em *e, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *s = format_text(e, fmt, ap);
  va_end(ap);
  return s;
}

const char *nvcu_fresh(nvcu_em *e, const char *prefix) { return nvcu_text(e, "%s%d", prefix, e->serial++); }

const char *nvcu_let(nvcu_em *e, const char *type, const char *text) {
  for (int i = e->let.n; i-- > 0;)
    if (strcmp(e->let.at[i].text, text) == 0 && strcmp(e->let.at[i].type, type) == 0) return e->let.at[i].name;
  nvcu_name n = { type, text, nvcu_fresh(e, "t"), e->depth };
  nvcu_line(e, "const %s %s = %s;", type, n.name, text);
  NVB_PUSH(e->a, e->let, n);
  return n.name;
}

const char *nvcu_for(nvcu_em *e, const char *lo, const char *hi, const char *step, int unroll) {
  const char *v = nvcu_fresh(e, "i");
  if (unroll) nvcu_line(e, "#pragma unroll %d", unroll);
  if (strcmp(step, "1") == 0) nvcu_open(e, "for (ix %s = %s; %s < %s; %s++)", v, lo, v, hi, v);
  else nvcu_open(e, "for (ix %s = %s; %s < %s; %s += %s)", v, lo, v, hi, v, step);
  nvcu_loop_opened(e, 0);
  return v;
}

/* ---- types and constants */
const char *nvcu_type(nvm_dtype t) {
  static const char *const name[] = { [NVM_BOOL] = "bool",
                                      [NVM_I8] = "signed char",
                                      [NVM_I16] = "short",
                                      [NVM_I32] = "int",
                                      [NVM_I64] = "long long",
                                      [NVM_U8] = "unsigned char",
                                      [NVM_U16] = "unsigned short",
                                      [NVM_U32] = "unsigned",
                                      [NVM_U64] = "unsigned long long",
                                      [NVM_F16] = "unsigned short",
                                      [NVM_BF16] = "unsigned short",
                                      [NVM_F32] = "float",
                                      [NVM_F64] = "double",
                                      [NVM_C64] = "float",
                                      [NVM_C128] = "double",
                                      [NVM_F8E4] = "unsigned char",
                                      [NVM_F8E5] = "unsigned char" };
  return name[t];
}

const char *nvcu_const(nvcu_em *e, nvm_dtype t, uint64_t bits) {
  double v = t == NVM_F32 || t == NVM_F64 ? nvg_bits_float(t, bits) : 0;
  int minus = nvg_class_of(t) == NVG_SIGNED && nvg_bits_int(t, bits) < 0;
  switch (t) {
  case NVM_BOOL: return bits & 1 ? "true" : "false";
  case NVM_F32:
    if (v - v != 0) return nvcu_text(e, "nv_f32(0x%08xu)", (unsigned)bits);
    return nvcu_text(e, bits >> 31 & 1 ? "(%af)" : "%af", v);
  case NVM_F64:
    if (v - v != 0) return nvcu_text(e, "nv_f64(0x%016llxull)", (unsigned long long)bits);
    return nvcu_text(e, bits >> 63 ? "(%a)" : "%a", v);
  case NVM_U32: return nvcu_text(e, "%uu", (unsigned)bits);
  case NVM_U64: return nvcu_text(e, "%lluull", (unsigned long long)bits);
  case NVM_I64:
    if (bits == 1ull << 63) return "(-9223372036854775807ll - 1)";
    return nvcu_text(e, minus ? "(%lldll)" : "%lldll", (long long)bits);
  case NVM_I32:
    if (bits == 1u << 31) return "(-2147483647 - 1)";
    return nvcu_text(e, minus ? "(%d)" : "%d", (int)bits);
  default: return nvcu_text(e, "((%s)%d)", nvcu_type(t), nvg_is_narrow(t) ? (int)bits : (int)nvg_bits_int(t, bits));
  }
}

int nvcu_is_number(const char *atom) { return atom[strspn(atom, "-0123456789")] == 0; }

/* ---- threads */
static int span_of(const nvf_layout *l, char level) {
  int n = 1;
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    if (d->level == level && d->extent > 1 && d->extent * d->pstride > n) n = d->extent * d->pstride;
  }
  return n;
}

static int most_persistent(const nvcu_em *e, char level) {
  int n = 1;
  for (int t = 0; t < e->k->ntile; t++) {
    int here = span_of(&e->t->tile[t], level);
    n = here > n ? here : n;
  }
  return n;
}

const char *nvcu_warp(nvcu_em *e, const nvf_layout *l) {
  int n = span_of(l, 'w');
  return e->warps % n ? nvcu_let(e, "int", nvcu_text(e, "warp %% %d", n)) : "warp";
}

const char *nvcu_rank(nvcu_em *e, const nvf_layout *l) {
  int n = span_of(l, 'c');
  return e->cluster % n ? nvcu_let(e, "int", nvcu_text(e, "rank %% %d", n)) : "rank";
}

void nvcu_need_bits(nvcu_em *e, const nvf_digit *d, const char *what) {
  if (d->pstride & (d->pstride - 1))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the %s of a %s have a stride of %d, which is no power of two",
              d->level == 'l' ? "lanes" : "warps", what, (int)d->pstride);
}

/* The bits of the lane, warp or CTA number that l's digits use; -1: some extent or stride is no power of two. */
static int used_mask(const nvf_layout *l, char level) {
  int mask = 0;
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    if (d->level != level || d->extent == 1) continue;
    if (d->extent & (d->extent - 1) || d->pstride & (d->pstride - 1)) return -1;
    mask |= (d->extent - 1) * d->pstride;
  }
  return mask;
}

static const char *first_of(nvcu_em *e, const nvf_layout *l, char level, const char *number, int all) {
  int mask = used_mask(l, level);
  if (mask >= 0 && !(all & (all - 1)))
    return (all - 1) & ~mask ? nvcu_text(e, "(%s & %d) == 0", number, (all - 1) & ~mask) : NULL;
  nvb_text sum = { .arena = e->a };
  int used = 1;
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    if (d->level != level || d->extent == 1) continue;
    nvb_print(&sum, "%s%s / %d %% %d * %d", sum.n ? " + " : "", number, d->pstride, d->extent, d->pstride);
    used *= d->extent;
  }
  if (used == all) return NULL;
  return nvcu_text(e, "%s == %s", number, sum.n ? sum.s : "0");
}

const char *nvcu_first_copy(nvcu_em *e, const nvf_layout *l) {
  const char *a = first_of(e, l, 'l', "lane", 32), *b = first_of(e, l, 'w', "warp", e->warps);
  const char *c = first_of(e, l, 'c', "rank", e->cluster);
  const char *both = nvcu_and(e, nvcu_and(e, a, b), c);
  return both ? nvcu_let(e, "bool", both) : NULL;
}

/* ---- parameters */
static void put_roots(nvcu_em *e, const nvf_param *p) {
  nvm_dtype t = nvg_real_of(p->type);
  const uint64_t *bits = nvf_roots_bits(e->a, p);
  nvb_print(&e->preamble, "static __device__ const __align__(16) %s p_%s[] = {", nvcu_type(t), p->name);
  for (int64_t i = 0; i < 2 * p->roots.length; i++)
    nvb_print(&e->preamble, "%s%s", i ? ", " : "", nvcu_const(e, t, bits[i]));
  nvb_puts(&e->preamble, "};\n");
}

static void put_parameters(nvcu_em *e, nvb_text *t, const nvc_cuda_kernel *k) {
  for (int i = 0; i < e->k->nparam; i++) {
    const nvf_param *p = &e->k->param[i];
    if (p->kind == NVF_ROOTS) {
      nvb_print(t, "%slong long", i ? ", " : "");
      continue;
    }
    const char *type = p->kind == NVF_SIZE ? "ix" : p->type == NVM_BOOL ? "unsigned char" : nvcu_type(p->type);
    nvb_print(t, "%s%s%s %s%sp_%s", i ? ", " : "", p->kind == NVF_BUFFER && !p->written ? "const " : "", type,
              p->kind == NVF_BUFFER ? "*" : "", p->kind == NVF_BUFFER && p->unique ? "__restrict__ " : "", p->name);
  }
  if (e->checks) nvb_print(t, "%sint *failed", e->k->nparam ? ", " : "");
  if (k->scratch) nvb_print(t, "%schar *scratch", e->k->nparam || e->checks ? ", " : "");
  if (k->flags) nvb_puts(t, ", unsigned *flags");
  for (int i = 0; i < e->nmap; i++)
    nvb_print(t, "%sconst __grid_constant__ nv_map map%d", e->k->nparam || i ? ", " : "", i);
}

/* ---- parts */
static const char *grid_extent(nvcu_em *e, const nvf_grid *g) {
  const char *x = nvcu_uniform(e, g->extent);
  if (nvcu_is_number(x)) return *x == '-' ? "0" : x;
  return nvcu_let(e, "ix", nvcu_text(e, "%s < 0 ? 0 : %s", x, x));
}

/* A hint of the whole kernel, which is one of statement 0 */
static int64_t kernel_hint(const nvcu_em *e, nvf_hint hint) { return nvf_hint_value(e->s, 0, hint, 0); }

/* Rasterisation: blocks of the last two axes go in bands of `high` rows, column by column within a band, so that the
   operands that concurrent CTAs read fit into the L2. */
static const char *raster_order(nvcu_em *e, const nvf_part *p, const char *block, int64_t high) {
  int g = p->ngrid - 1;
  const char *rows = grid_extent(e, &p->grid[g - 1]), *cols = e->grid_extent[g], *plane = nvcu_fresh(e, "q"), *in;
  nvcu_line(e, "const ix %s = (ux)%s / (ux)(%s * %s);", plane, block, rows, cols);
  in = nvcu_let(e, "ix", nvcu_text(e, "%s - %s * (%s * %s)", block, plane, rows, cols));
  const char *band = nvcu_let(e, "ix", nvcu_text(e, "(ux)%s / (ux)(%lld * %s)", in, (long long)high, cols));
  const char *at = nvcu_let(e, "ix", nvcu_text(e, "%s - %s * %lld * %s", in, band, (long long)high, cols));
  const char *here = nvcu_let(e, "ix", nvcu_text(e, "%s - %s * %lld", rows, band, (long long)high));
  const char *tall =
      nvcu_let(e, "ix", nvcu_text(e, "%s < %lld ? %s : %lld", here, (long long)high, here, (long long)high));
  e->grid[g] = nvcu_let(e, "ix", nvcu_text(e, "(ux)%s / (ux)%s", at, tall));
  e->grid[g - 1] =
      nvcu_let(e, "ix", nvcu_text(e, "%s * %lld + %s - %s * %s", band, (long long)high, at, e->grid[g], tall));
  return plane;
}

/* Blocks of the last two axes go in shells around (0, 0), (i, j) and (j, i) one after the other, so that data that both
   read is read from DRAM once. What a longer axis has beyond the square comes afterwards, in order. */
static const char *mirror_order(nvcu_em *e, const nvf_part *p, const char *block) {
  int g = p->ngrid - 1;
  const char *rows = grid_extent(e, &p->grid[g - 1]), *cols = e->grid_extent[g], *plane = nvcu_fresh(e, "q");
  const char *i = e->grid[g - 1] = nvcu_fresh(e, "b"), *j = e->grid[g] = nvcu_fresh(e, "b"), *s = nvcu_fresh(e, "s");
  nvcu_line(e, "const ix %s = (ux)%s / (ux)(%s * %s);", plane, block, rows, cols);
  const char *in = nvcu_let(e, "ix", nvcu_text(e, "%s - %s * (%s * %s)", block, plane, rows, cols));
  const char *side = nvcu_let(e, "ix", nvcu_text(e, "%s < %s ? %s : %s", rows, cols, rows, cols));
  const char *rest = nvcu_let(e, "ix", nvcu_text(e, "%s - %s * %s", in, side, side));
  nvcu_line(e, "ix %s, %s, %s = (ix)nv_sqrt((float)%s);", i, j, s, in);
  nvcu_line(e, "%s -= %s * %s > %s;", s, s, s, in); /* corrects the rounding of the float */
  nvcu_line(e, "%s += (%s + 1) * (%s + 1) <= %s;", s, s, s, in);
  const char *at = nvcu_let(e, "ix", nvcu_text(e, "%s - %s * %s", in, s, s));
  nvcu_line(e, "%s = %s >= 0 ? (%s > %s ? %s / %s : %s %% %s) : %s & 1 ? %s / 2 : %s;", i, rest, rows, cols, in, cols,
            rest, side, at, at, s);
  nvcu_line(e, "%s = %s >= 0 ? (%s > %s ? %s %% %s : %s + %s / %s) : %s & 1 ? %s : %s / 2;", j, rest, rows, cols, in,
            cols, side, rest, side, at, s, at);
  return plane;
}

static void emit_coordinates(nvcu_em *e, const nvf_part *p, const char *block) {
  int n = p->ngrid;
  int64_t high = n > 1 ? kernel_hint(e, NVF_HINT_RASTER) : 0, two = n > 1 && kernel_hint(e, NVF_HINT_MIRROR);
  if (high > 0 || two) {
    block = high > 0 ? raster_order(e, p, block, high) : mirror_order(e, p, block);
    n -= 2;
  }
  for (int g = n; g-- > 0;) {
    e->grid[g] = g ? nvcu_fresh(e, "b") : block;
    if (!g) break;
    const char *q = nvcu_fresh(e, "q");
    nvcu_line(e, "const ix %s = (ux)%s / (ux)%s, %s = %s - %s * %s;", q, block, e->grid_extent[g], e->grid[g], block, q,
              e->grid_extent[g]);
    block = q;
  }
}

static void own_coordinates(nvcu_em *e, const char *block) { emit_coordinates(e, e->part, block); }

/* The number of the part's blocks, as an atom */
static const char *count_blocks(nvcu_em *e, const nvf_part *part) {
  const char *n = "1";
  for (int g = 0; g < part->ngrid; g++) {
    const char *extent = grid_extent(e, &part->grid[g]);
    n = g ? nvcu_text(e, "%s * %s", n, extent) : extent;
  }
  return nvcu_let(e, "ix", n);
}

/* Relations that every effect carries and that are the same for the whole block are tested once for the block. */
static void emit_part(nvcu_em *e, const nvf_part *p, const char *block) {
  e->part = p;
  e->grid = NVB_NEWN(e->a, const char *, p->ngrid + 1);
  e->grid_extent = NVB_NEWN(e->a, const char *, p->ngrid + 1);
  for (int g = 1; g < p->ngrid; g++) e->grid_extent[g] = grid_extent(e, &p->grid[g]);
  nvcu_part_opened(e);
  e->nloop = 0;
  nvc_seq *q = nvc_nests_of_part(&e->r, p);
  for (int i = 0; i < e->k->nstmt; i++) e->contracts |= e->r.stmt[i] && e->r.stmt[i]->op == NVF_CONTRACT;
  memset(e->steady, 0, sizeof e->steady);
  nvcu_find_steady(e, q);
  e->plain = nvcu_is_plain(q);
  e->known = 0;
  e->remote = NVCU_OWN;
  if (nvcu_warp_specialized(e, q, own_coordinates, e->k->npart == 1 ? count_blocks(e, p) : NULL)) return;
  emit_coordinates(e, p, block);
  uint64_t whole = nvc_same_in_block(&e->r, nvc_carried_by_all(q));
  e->known = 0;
  const char *work = nvcu_relations(e, whole, NULL, 0);
  e->known = whole;
  if (work) nvcu_open(e, "if (%s)", work);
  nvcu_homes(e);
  nvcu_seq(e, q);
  nvcu_cluster_end(e);
  if (work) nvcu_close(e);
}

static void emit_parts(nvcu_em *e) {
  const char *block = "block";
  for (int p = 0; p < e->k->npart; p++) {
    const nvf_part *part = &e->k->part[p];
    if (p + 1 == e->k->npart) {
      emit_part(e, part, block);
      break;
    }
    const char *end = count_blocks(e, part);
    nvcu_open(e, "if (%s < %s)", block, end);
    emit_part(e, part, block);
    nvcu_line(e, "return;");
    nvcu_close(e);
    block = nvcu_let(e, "ix", nvcu_text(e, "%s - %s", block, end));
  }
}

/* ---- the whole source */
/* Bytes of shared memory of a CTA (CUDA programming guide, compute capabilities). */
static int64_t shared_limit(int arch) {
  switch (arch) {
  case 75: return 64 << 10;
  case 80:
  case 87: return 163 << 10;
  case 90:
  case 100:
  case 103:
  case 110: return 227 << 10;
  default: return 99 << 10;
  }
}

static void set_up(nvcu_em *e) {
  e->r.map_cost = 96; /* cost of what is recomputed instead of kept in local memory: exp is about 20 */
  e->warps = most_persistent(e, 'w');
  if (most_persistent(e, 'l') > 32) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a layout has more than 32 lanes");
  if (e->warps > 32) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a layout has %d warps, which is too many", e->warps);
  e->cluster = most_persistent(e, 'c');
  if (e->cluster > (e->target->arch == 90 ? 16 : e->target->arch > 90 ? 8 : 1))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a cluster of %d blocks is too large", e->cluster);
  e->out.arena = e->preamble.arena = e->a;
  e->var = NVB_NEWN(e->a, const char *, e->k->nvar + 1);
  e->fixed = NVB_NEWN(e->a, const char *, e->k->naxis + 1);
  e->tile = NVB_NEWN(e->a, nvcu_tile, e->k->ntile + 1);
  e->done = NVB_NEWN(e->a, uint8_t, e->k->nstmt + 1);
  e->depth = 1;
}

int nvcu_least_blocks(const nvcu_em *e) {
  int64_t least = kernel_hint(e, NVF_HINT_MIN_BLOCKS);
  return least > 0 ? (int)least : e->pipeline ? 1 : 0;
}

static int64_t dsmem_barriers_at(const nvcu_em *e) { return e->exchange + e->shared_most; }

static void compose_source(nvcu_em *e, nvb_text *t, const nvc_cuda_kernel *k) { /* everything but the prelude */
  nvb_puts(t, common);
  if (e->tensor) nvb_puts(t, swizzle);
  nvb_puts(t, e->target->wide ? "typedef long long ix;\ntypedef unsigned long long ux;\n"
                              : "typedef int ix;\ntypedef unsigned ux;\n");
  if (e->checks) nvb_puts(t, fail);
  nvb_puts(t, nvb_text_get(&e->preamble));
  if (k->shared) nvb_print(t, "extern __shared__ __align__(%d) char dynamic[];\n", e->tensor ? 1024 : 16);
  nvb_print(t, "extern \"C\" __global__ void __launch_bounds__(%d", k->threads);
  int least = nvcu_least_blocks(e);
  if (least) nvb_print(t, ", %d", least);
  nvb_puts(t, ") ");
  if (e->cluster > 1) nvb_print(t, "__cluster_dims__(%d, 1, 1) ", e->cluster);
  nvb_puts(t, "nvm_kernel(");
  put_parameters(e, t, k);
  nvb_puts(t, ") {\n  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;\n");
  if (e->cluster > 1)
    nvb_print(t, "  const ix block = blockIdx.x / %d;\n  const int rank = blockIdx.x %% %d;\n", e->cluster, e->cluster);
  else nvb_puts(t, "  const ix block = blockIdx.x;\n");
  if (e->exchange + e->shared_most > 0) {
    nvb_print(t, "  enum { tiles = %lld };\n", (long long)e->exchange);
    if (k->shared) nvb_print(t, "  char *const shared = %s;\n", e->cluster > 1 ? "nv_own_shared(dynamic)" : "dynamic");
    else nvb_print(t, "  char *const shared = scratch + (long long)block * %lld;\n", (long long)k->scratch);
  }
  if (e->ndsmem) {
    nvb_print(t, "  char *const bars = shared + %lld;\n", (long long)dsmem_barriers_at(e));
    nvb_puts(t, "  if (threadIdx.x == 0) {\n");
    nvb_print(t, "    for (int i = 0; i < %d; i++) nv_mbarrier_init(bars + 8 * i, 1);\n", e->ndsmem);
    nvb_puts(t, "    nv_mbarrier_fence();\n  }\n  __syncwarp();\n  nv_cluster_begin();\n");
  }
  if (e->checks) nvb_puts(t, "  bool sound = true;\n"); /* false: a check of this thread has failed */
  /* a warp-specialised kernel initialises its mbarriers first */
  if (!e->pipeline) nvb_puts(t, "  nv_after_previous();\n");
  nvb_puts(t, nvb_text_get(&e->out));
  nvb_puts(t, "}\n");
}

int64_t nvc_poly_value(const nvc_poly *p, const uint64_t *args) {
  int64_t sum = 0;
  for (int i = 0; i < p->n; i++) {
    int64_t x = p->t[i].c;
    for (int k = 0; k < p->t[i].n; k++) x *= (int64_t)args[p->t[i].param[k]];
    sum += x;
  }
  return sum;
}

/* ---- the baseline tier: a loop over a thread's items instead of unrolled code */
static const nvf_schedule *baseline_schedule(nvb_arena *a, const nvf_schedule *s) {
  nvf_schedule *c = nvb_dup(a, s, sizeof *s);
  c->bind = nvb_dup(a, s->bind, sizeof *s->bind * (size_t)s->nbind);
  for (int i = 0; i < s->nbind; i++)
    for (int j = 0; c->bind[i].kind == NVF_BLAYOUT && j < c->bind[i].layout.n; j++)
      if (c->bind[i].layout.d[j].level == 'i') c->bind[i].layout.d[j].level = 'I';
  c->hint = NVB_NEWN(a, nvf_note, s->nhint);
  c->nhint = 0;
  for (int i = 0; i < s->nhint; i++)
    if (s->hint[i].hint == NVF_HINT_APPROX) c->hint[c->nhint++] = s->hint[i];
  return c;
}

void nvc_cuda_emit(nvb_arena *a, nvc_cuda_kernel *out, const nvf_kernel *k, const nvf_schedule *s,
                   const nvc_cuda_target *target) {
  nvcu_em *e = NVB_NEW(a, nvcu_em);
  nvb_text t = { .arena = a }, body = { .arena = a };
  if (target->baseline) s = baseline_schedule(a, s);
  *e = (nvcu_em){ .a = a, .k = k, .s = s, .target = target, .t = nvf_kernel_check(a, k, s) };
  nvc_nests_init(&e->r, a, k, s, e->t);
  set_up(e);
  for (int i = 0; i < k->nparam; i++)
    if (k->param[i].kind == NVF_ROOTS) put_roots(e, &k->param[i]);
  emit_parts(e);
  for (int i = 0; target->baseline && i < k->nstmt; i++) /* the statements of a part are known when it is emitted */
    if (e->r.stmt[i] && nvf_stmt_is(e->r.stmt[i], NVF_WHOLE_TILE))
      nvb_throw(
          a, NVM_ERR_UNSUPPORTED,
          "[cuda] statement %d (%s) needs all elements of its tile at once, but the baseline tier loops over them", i,
          nvf_op_get(e->r.stmt[i]->op)->word);
  if (e->tensor) e->exchange = (e->exchange + 1023) & ~(int64_t)1023;
  int64_t shared = dsmem_barriers_at(e) + 8 * e->ndsmem, fits = shared <= shared_limit(target->arch);
  if (!fits && e->cluster > 1)
    nvb_throw(a, NVM_ERR_UNSUPPORTED,
              "[cuda] a block of a cluster needs %lld bytes of shared memory, which is too much", (long long)shared);
  if (e->tensor && !fits)
    nvb_throw(a, NVM_ERR_UNSUPPORTED,
              "[cuda] the tiles for tensor cores need %lld bytes of shared memory, a block has %lld", (long long)shared,
              (long long)shared_limit(target->arch));
  *out = (nvc_cuda_kernel){ .threads = 32 * (e->warps + (e->pipeline ? NVCU_GROUP : 0)),
                            .checks = e->checks,
                            .shared = fits ? shared : 0,
                            .scratch = fits ? nvcu_stream_k_bytes(e, e->pipeline) : shared,
                            .flags = e->pipeline && e->pipeline->least,
                            .cluster = e->cluster,
                            .persistent = e->pipeline && e->cluster == 1 ? nvcu_least_blocks(e) : 0,
                            .nmap = e->nmap };
  memcpy(out->map, e->map, sizeof e->map);
  compose_source(e, &body, out);
  const char *text[] = { nvc_cuda_prelude, nvc_cuda_tensor };
  nvcu_prelude(a, &t, text, 1 + e->tensor, nvb_text_get(&body));
  nvb_puts(&t, body.s);
  out->source = t.s;
}
