/* Emits the whole module: nvm_kernel unpacks the parameter slots, loops over the blocks and calls nvm_body for each,
   whose parameter attributes can say that buffers do not overlap. The body finds the part and the block coordinates,
   and executes the part's loop nests. It has no loop around them: LLVM would move the addresses of all nests out of it,
   and so many values that live as long as the function take most of the time of a compilation, and are spilled.
   Decides lanes and attributes; never what a statement becomes. */
#include "codegen/llvm/emit.h"
#include <string.h>
#include "frag/dtype.h"
#include "kernel/roots.h"

static typ param_type(nvcl_em *e, const nvf_param *p) {
  return p->kind == NVF_BUFFER || p->kind == NVF_ROOTS ? e->ptr : p->kind == NVF_SIZE ? e->i64 : nvcl_type(e, p->type);
}

static void add_attribute(nvcl_em *e, val fn, unsigned param, const char *word) {
  LLVMAddAttributeAtIndex(fn, param + 1,
                          LLVMCreateEnumAttribute(e->c, LLVMGetEnumAttributeKindForName(word, strlen(word)), 0));
}

static val declare_body(nvcl_em *e) {
  const nvf_kernel *k = e->k;
  typ *t = NVB_NEWN(e->a, typ, k->nparam + 2);
  for (int i = 0; i < k->nparam; i++) t[i] = param_type(e, &k->param[i]);
  t[k->nparam] = e->i64;
  t[k->nparam + 1] = e->ptr;
  val f = LLVMAddFunction(e->m, "nvm_body", LLVMFunctionType(e->i32, t, (unsigned)k->nparam + 2, 0));
  LLVMSetLinkage(f, LLVMInternalLinkage);
  nvcl_attributes(e, f);
  for (int i = 0; i < k->nparam; i++) {
    LLVMSetValueName2(LLVMGetParam(f, (unsigned)i), k->param[i].name, strlen(k->param[i].name));
    if (param_type(e, &k->param[i]) != e->ptr) continue;
    if (k->param[i].unique) add_attribute(e, f, (unsigned)i, "noalias");
    if (!k->param[i].written) add_attribute(e, f, (unsigned)i, "readonly");
  }
  add_attribute(e, f, (unsigned)k->nparam + 1, "noalias");
  return f;
}

static val roots_global(nvcl_em *e, const nvf_param *p) {
  nvm_dtype t = nvg_real_of(p->type);
  uint64_t n = 2 * (uint64_t)p->roots.length, *bits = nvf_roots_bits(e->a, p);
  val *x = NVB_NEWN(e->a, val, n);
  for (uint64_t i = 0; i < n; i++) x[i] = nvcl_bits(e, t, bits[i], 1);
  return nvcl_table(e, p->name, t, x, n);
}

static val unpack_param(nvcl_em *e, const nvf_param *p, val slot) {
  if (p->kind == NVF_ROOTS) return roots_global(e, p);
  if (p->kind == NVF_BUFFER) return nvcl_load(e, e->ptr, slot, 8);
  val v = nvcl_load(e, e->i64, slot, 8);
  typ t = param_type(e, p);
  if (p->kind == NVF_SIZE || t == e->i64) return v;
  if (t == e->f64) return LLVMBuildBitCast(e->b, v, t, "");
  if (t == e->f32) return LLVMBuildBitCast(e->b, LLVMBuildTrunc(e->b, v, e->i32, ""), t, "");
  return LLVMBuildTrunc(e->b, v, t, "");
}

/* ---- parts */
static void count_lanes(nvcl_em *e, const nvf_block *b) {
  for (int i = 0; i < b->n; i++) {
    const nvf_layout *l = nvc_layout_of(&e->r, b->s[i]);
    for (int j = 0; j < l->n; j++) {
      if (l->d[j].level == 'w' && l->d[j].extent > 1) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] a layout has warps");
      if (l->d[j].level == 'l' && l->d[j].extent * l->d[j].pstride > e->lanes)
        e->lanes = l->d[j].extent * l->d[j].pstride;
    }
    if (b->s[i]->body) count_lanes(e, b->s[i]->body);
    if (b->s[i]->other_body) count_lanes(e, b->s[i]->other_body);
  }
  if (e->lanes > NVC_LANES || (e->lanes & (e->lanes - 1)))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] %d lanes: a power of two up to %d", e->lanes, NVC_LANES);
}

/* Relations that every effect carries and that have one value in the block are tested once for the block. */
static void emit_guarded(nvcl_em *e, const nvc_seq *q) {
  uint64_t whole = nvc_same_in_block(&e->r, nvc_carried_by_all(q));
  nvcl_mask m = nvcl_relations(e, whole, NULL, 0);
  blk work = nvcl_block(e, "work"), skip = m.one ? nvcl_block(e, "skip") : NULL;
  if (skip) LLVMBuildCondBr(e->b, m.one, work, skip);
  else LLVMBuildBr(e->b, work);
  nvcl_at(e, work);
  e->known = whole;
  nvcl_emit_seq(e, q);
  if (!skip) return;
  LLVMBuildBr(e->b, skip);
  nvcl_at(e, skip);
}

static val grid_extent(nvcl_em *e, const nvf_grid *g) {
  val x = nvcl_uniform(e, g->extent);
  return nvcl_call(e, "llvm.smax", &e->i64, 1, (val[]){ x, nvcl_int(e, 0) }, 2);
}

static val part_blocks(nvcl_em *e, const nvf_part *p) {
  val n = nvcl_int(e, 1);
  for (int g = 0; g < p->ngrid; g++) n = LLVMBuildMul(e->b, n, grid_extent(e, &p->grid[g]), "");
  return n;
}

static void emit_coordinates(nvcl_em *e, const nvf_part *p, val *extent, val block) {
  e->ngrid = p->ngrid;
  e->grid = NVB_NEWN(e->a, val, p->ngrid);
  for (int g = p->ngrid; g-- > 0;) {
    val q = g ? nvcl_floor_div(e, block, extent[g]) : NULL;
    e->grid[g] = g ? LLVMBuildSub(e->b, block, LLVMBuildMul(e->b, q, extent[g], ""), "") : block;
    block = q;
  }
}

static void emit_part(nvcl_em *e, const nvf_part *p, val *extent, val block) {
  int64_t most = e->scratch_bytes;
  e->scratch_bytes = 0;
  e->lanes = 1;
  count_lanes(e, &p->body);
  emit_coordinates(e, p, extent, block);
  emit_guarded(e, nvcl_plan_part(e, p));
  if (e->scratch_bytes < most) e->scratch_bytes = most;
}

static void emit_block(nvcl_em *e, val block) {
  const nvf_kernel *k = e->k;
  val from = nvcl_int(e, 0), **extent = NVB_NEWN(e->a, val *, k->npart);
  blk done = nvcl_block(e, "done");
  for (int p = 0; p < k->npart; p++) {
    extent[p] = NVB_NEWN(e->a, val, k->part[p].ngrid);
    for (int g = 0; g < k->part[p].ngrid; g++) extent[p][g] = grid_extent(e, &k->part[p].grid[g]);
    val in_part = p ? LLVMBuildSub(e->b, block, from, "") : block;
    blk later = p + 1 < k->npart ? nvcl_block(e, "later") : NULL;
    if (later) {
      blk mine = nvcl_block(e, "part");
      from = LLVMBuildAdd(e->b, from, part_blocks(e, &k->part[p]), "");
      LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, block, from, ""), mine, later);
      nvcl_at(e, mine);
    }
    emit_part(e, &k->part[p], extent[p], in_part);
    LLVMBuildBr(e->b, done);
    if (later) nvcl_at(e, later);
  }
  if (k->npart == 0) LLVMBuildBr(e->b, done);
  nvcl_at(e, done);
}

static void emit_body(nvcl_em *e, val f) {
  unsigned n = (unsigned)e->k->nparam;
  e->fn = f;
  for (unsigned i = 0; i < n; i++) e->param[i] = LLVMGetParam(f, i);
  e->scratch = LLVMGetParam(f, n + 1);
  e->entry = nvcl_block(e, "entry");
  blk start = nvcl_block(e, "start");
  e->failed = nvcl_block(e, "failed");
  nvcl_at(e, start);
  e->error = nvcl_slot(e, e->i32, "error");
  emit_block(e, LLVMGetParam(f, n));
  LLVMBuildRet(e->b, nvcl_i32(e, 0));
  nvcl_at(e, e->failed);
  LLVMBuildRet(e->b, nvcl_load(e, e->i32, e->error, 4));
  nvcl_at(e, e->entry);
  LLVMBuildBr(e->b, start);
}

/* ---- the entry: a loop over blocks, which ends at the first that fails */
static void emit_return(nvcl_em *e, val status) {
  if (e->streamed)
    nvcl_call(e, "llvm.x86.sse.sfence", NULL, 0, NULL, 0); /* makes streamed stores visible before the return */
  LLVMBuildRet(e->b, status);
}

static void emit_entry(nvcl_em *e, val body) {
  typ t[4] = { e->ptr, e->i64, e->i64, e->ptr };
  val f = LLVMAddFunction(e->m, "nvm_kernel", LLVMFunctionType(e->i32, t, 4, 0));
  val *arg = NVB_NEWN(e->a, val, e->k->nparam + 2);
  nvcl_for block;
  nvcl_attributes(e, f);
  e->fn = f;
  nvcl_at(e, nvcl_block(e, "entry"));
  blk failed = nvcl_block(e, "failed"), next = nvcl_block(e, "next.block");
  for (int i = 0; i < e->k->nparam; i++)
    arg[i] = unpack_param(e, &e->k->param[i], nvcl_gep(e, LLVMGetParam(f, 0), 8 * i));
  nvcl_for_begin(e, &block, LLVMGetParam(f, 1), LLVMGetParam(f, 2), nvcl_int(e, 1), "block");
  arg[e->k->nparam] = block.i;
  arg[e->k->nparam + 1] = LLVMGetParam(f, 3);
  val status = LLVMBuildCall2(e->b, LLVMGlobalGetValueType(body), body, arg, (unsigned)e->k->nparam + 2, "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, status, nvcl_i32(e, 0), ""), next, failed);
  nvcl_at(e, next);
  nvcl_for_end(e, &block);
  emit_return(e, nvcl_i32(e, 0));
  nvcl_at(e, failed);
  emit_return(e, status);
}

int64_t nvcl_emit_kernel(nvb_arena *a, LLVMContextRef c, LLVMModuleRef m, LLVMBuilderRef b, const nvf_kernel *k,
                         const nvf_schedule *s, const nvc_target *target, int compact) {
  nvcl_em *e = NVB_NEW(a, nvcl_em);
  *e = (nvcl_em){ .a = a, .k = k, .s = s, .target = target, .c = c, .m = m, .b = b, .compact = compact };
  e->t = nvf_kernel_check(a, k, s);
  nvc_nests_init(&e->r, a, k, s, e->t);
  e->r.in_memory = nvcl_in_memory;
  e->r.emitter = e;
  nvcl_em_types(e);
  e->param = NVB_NEWN(a, val, k->nparam);
  e->var = NVB_NEWN(a, val, k->nvar);
  e->fixed = NVB_NEWN(a, val, k->naxis);
  e->tile = NVB_NEWN(a, nvcl_tile, k->ntile);
  val body = declare_body(e);
  emit_body(e, body);
  emit_entry(e, body);
  return e->scratch_bytes;
}
