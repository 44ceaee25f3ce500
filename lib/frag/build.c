/* Builds fragments in SSA form, one instruction at a time. The builder merges equal instructions (CSE) and folds
   constants with the interpreter itself; nvg_build_finish removes dead code and places the constants first, so that
   equal functions get equal hashes. It never reads text. */
#include "frag/impl.h"
#include <string.h>

struct nvg_build {
  nvb_arena *arena;
  NVB_VEC(nvg_inst) inst;
  NVB_VEC(uint8_t) hidden; /* per instruction: 1 if it is inside a loop that is closed */
  NVB_VEC(nvg_table) table;
  NVB_VEC(int) loop;    /* the loops that are open */
  int *bucket, buckets; /* interning table of instruction + 1, open addressing; `buckets` is a power of two */
};

nvg_build *nvg_build_new(nvb_arena *a) {
  nvg_build *b = NVB_NEW(a, nvg_build);
  b->arena = a;
  b->buckets = 64;
  b->bucket = NVB_NEWN(a, int, b->buckets);
  return b;
}

nvm_dtype nvg_build_type(const nvg_build *b, int i) { return (nvm_dtype)b->inst.at[i].type; }
int nvg_build_depth(const nvg_build *b) { return b->loop.n; }

static int append_inst(nvg_build *b, nvg_inst x) {
  NVB_PUSH(b->arena, b->inst, x);
  NVB_PUSH(b->arena, b->hidden, 0);
  return b->inst.n - 1;
}

static uint32_t inst_hash(const nvg_inst *x) {
  uint64_t w[3], h;
  memcpy(w, x, sizeof w);
  h = (w[0] * 0x9e3779b97f4a7c15u ^ w[1]) * 0xc2b2ae3d27d4eb4fu;
  h = ((h ^ h >> 29) + w[2]) * 0x9e3779b97f4a7c15u;
  return (uint32_t)(h >> 32);
}

static int *bucket_of(nvg_build *b, const nvg_inst *x) {
  for (uint32_t k = inst_hash(x);; k++) {
    int *at = &b->bucket[k & (uint32_t)(b->buckets - 1)];
    if (!*at || (!memcmp(&b->inst.at[*at - 1], x, sizeof *x) && !b->hidden.at[*at - 1])) return at;
  }
}

static int intern_inst(nvg_build *b, nvg_inst x) {
  if (b->inst.n * 2 >= b->buckets) {
    b->buckets *= 4;
    b->bucket = NVB_NEWN(b->arena, int, b->buckets);
    for (int i = 0; i < b->inst.n; i++)
      if (b->inst.at[i].prim != NVG_PHI && !b->hidden.at[i]) *bucket_of(b, &b->inst.at[i]) = i + 1;
  }
  int *at = bucket_of(b, &x);
  if (!*at) {
    int i = append_inst(b, x);
    *at = i + 1;
  }
  return *at - 1;
}

/* ---- folding */
static int is_const(const nvg_build *b, int i) { return b->inst.at[i].prim == NVG_CONST; }

/* Evaluates an operation whose operands are constants; returns the constant, or -1 where C does not define the
   result. */
static int fold_operation(nvg_build *b, nvg_prim p, nvm_dtype type, const int *op) {
  _Alignas(64) uint64_t in[3][NVG_GROUP], out[NVG_GROUP] = { 0 };
  nvm_dtype from = nvg_build_type(b, op[p == NVG_SEL]);
  if (p == NVG_DIV || p == NVG_REM || p == NVG_SHL || p == NVG_SHR) {
    if (nvg_class_of(type) != NVG_FLOAT) {
      uint64_t y = b->inst.at[op[1]].imm, width = (uint64_t)nvg_size(type) * 8;
      if (p == NVG_SHL || p == NVG_SHR ? y >= width : y == 0 || y == nvg_mask(type)) return -1;
    }
  } else if (p == NVG_TABLE || (p == NVG_CVT && nvg_class_of(from) == NVG_FLOAT && nvg_class_of(type) != NVG_FLOAT))
    return -1;
  int n = nvg_prims[p].n, size = nvg_size(from);
  for (int k = 0; k < n; k++) {
    int s = p == NVG_SEL && k == 0 ? 1 : size;
    for (int j = 0; j < NVG_GROUP; j++) memcpy((char *)in[k] + j * s, &b->inst.at[op[k]].imm, (size_t)s);
  }
  nvg_step(&(nvg_step_args){
      .prim = p, .type = type, .from = from, .n = NVG_GROUP, .out = out, .x = in[0], .y = in[1], .z = in[2] });
  return nvg_emit_const(b, type, out[0] & nvg_mask(type));
}

static int is_nan(const nvg_build *b, int i) {
  return is_const(b, i) && nvg_bits_nan(b->inst.at[i].type, b->inst.at[i].imm);
}

/* Folds an operation that has the NaN `nan` as an operand: arithmetic gives that NaN, comparisons are false (!= is
   true); -1 for other operations. */
static int of_nan(nvg_build *b, nvg_prim p, int nan) {
  switch (p) {
  case NVG_ADD: case NVG_SUB: case NVG_MUL: case NVG_DIV: case NVG_FMA: return nan;
  case NVG_EQ: case NVG_LT: case NVG_LE: case NVG_GT: case NVG_GE: return nvg_emit_const(b, NVM_BOOL, 0);
  case NVG_NE: return nvg_emit_const(b, NVM_BOOL, 1);
  default: return -1;
  }
}

/* Rewrites that keep every bit except those of a NaN: selects with a constant condition or equal branches, logic with a
   constant, conversions to the same type, operations on a NaN. Returns -1 if none applies. */
static int simplify_operation(nvg_build *b, nvg_prim p, nvm_dtype type, const int *op) {
  int n = nvg_prims[p].n, all = n > 0;
  for (int k = 0; k < n; k++) all &= is_const(b, op[k]);
  if (all) {
    int r = fold_operation(b, p, type, op);
    if (r >= 0) return r;
  }
  for (int k = 0; k < n; k++) {
    int r = is_nan(b, op[k]) ? of_nan(b, p, op[k]) : -1;
    if (r >= 0) return r;
  }
  if (p == NVG_SEL && is_const(b, op[0])) return b->inst.at[op[0]].imm ? op[1] : op[2];
  if (p == NVG_SEL && op[1] == op[2]) return op[1];
  const nvg_inst *other = p == NVG_SEL ? &b->inst.at[op[2]] : NULL;
  if (other && other->prim == NVG_SEL && other->a == op[0] && other->b == op[1]) return op[2];
  if ((p == NVG_CVT || p == NVG_BITS) && nvg_build_type(b, op[0]) == type) return op[0];
  if ((p == NVG_AND || p == NVG_OR) && type == NVM_BOOL)
    for (int k = 0; k < 2; k++) {
      if (op[0] == op[1]) return op[0];
      if (is_const(b, op[k])) return (b->inst.at[op[k]].imm != 0) == (p == NVG_OR) ? op[k] : op[1 - k];
    }
  return -1;
}

int nvg_emit(nvg_build *b, nvg_prim p, nvm_dtype type, int x, int y, int z) {
  int op[3] = { x, y, z }, r = simplify_operation(b, p, type, op);
  if (r >= 0) return r;
  return intern_inst(b, (nvg_inst){ .prim = (uint8_t)p, .type = (uint8_t)type, .a = x, .b = y, .c = z });
}

int nvg_emit_const(nvg_build *b, nvm_dtype type, uint64_t bits) {
  return intern_inst(b, (nvg_inst){ .prim = NVG_CONST, .type = (uint8_t)type, .a = -1, .b = -1, .c = -1, .imm = bits });
}

int nvg_emit_param(nvg_build *b, nvm_dtype type) {
  return append_inst(
      b, (nvg_inst){ .prim = NVG_PARAM, .type = (uint8_t)type, .a = -1, .b = -1, .c = -1, .imm = (uint64_t)b->inst.n });
}

int nvg_emit_table(nvg_build *b, const nvg_table *t, int index) {
  int k = 0;
  for (; k < b->table.n; k++) {
    const nvg_table *u = &b->table.at[k];
    if (u->n == t->n && u->type == t->type &&
        (u->bits == t->bits || !memcmp(u->bits, t->bits, sizeof *t->bits * (size_t)t->n)))
      break;
  }
  if (k == b->table.n) NVB_PUSH(b->arena, b->table, *t);
  return intern_inst(
      b, (nvg_inst){ .prim = NVG_TABLE, .type = (uint8_t)t->type, .tab = (uint16_t)k, .a = index, .b = -1, .c = -1 });
}

/* ---- loops */
int nvg_emit_loop(nvg_build *b, uint64_t iterations) {
  int i = append_inst(b, (nvg_inst){ .prim = NVG_LOOP, .type = NVM_I32, .a = -1, .b = -1, .c = -1, .imm = iterations });
  NVB_PUSH(b->arena, b->loop, i);
  return i;
}

int nvg_emit_phi(nvg_build *b, int first) {
  return append_inst(b, (nvg_inst){ .prim = NVG_PHI, .type = b->inst.at[first].type, .a = first, .b = -1, .c = -1 });
}

void nvg_phi_next(nvg_build *b, int phi, int next) { b->inst.at[phi].b = next; }
void nvg_loop_until(nvg_build *b, int loop, int phi) { b->inst.at[loop].a = phi; }

void nvg_emit_end(nvg_build *b) {
  int i = b->loop.at[--b->loop.n];
  append_inst(b, (nvg_inst){ .prim = NVG_END, .type = NVM_I32, .a = -1, .b = -1, .c = -1 });
  b->hidden.at[i++] = 1;
  while (b->inst.at[i].prim == NVG_PHI) i++;
  /* constants stay visible: nvg_build_finish moves them out of the loop */
  for (; i < b->inst.n; i++) b->hidden.at[i] = b->inst.at[i].prim != NVG_CONST;
}

/* ---- calls are inlined */
static void inline_end(nvg_build *b, const nvg_frag *f, const int *map, int loop) {
  if (f->inst[loop].a >= 0) nvg_loop_until(b, map[loop], map[f->inst[loop].a]);
  for (int k = loop + 1; f->inst[k].prim == NVG_PHI; k++) nvg_phi_next(b, map[k], map[f->inst[k].b]);
  nvg_emit_end(b);
}

int nvg_inline(nvg_build *b, const nvg_frag *f, const int *arg, int *result) {
  int *map = NVB_NEWN(b->arena, int, f->ninst + 1), *open = NVB_NEWN(b->arena, int, f->ninst + 1), depth = 0;
  for (int i = 0; i < f->ninst; i++) {
    const nvg_inst *x = &f->inst[i];
    nvm_dtype type = (nvm_dtype)x->type;
    switch (x->prim) {
    case NVG_PARAM: map[i] = arg[x->imm]; break;
    case NVG_CONST: map[i] = nvg_emit_const(b, type, x->imm); break;
    case NVG_TABLE: map[i] = nvg_emit_table(b, &f->table[x->tab], map[x->a]); break;
    case NVG_LOOP: map[i] = nvg_emit_loop(b, x->imm); open[depth++] = i; break;
    case NVG_PHI: map[i] = nvg_emit_phi(b, map[x->a]); break;
    case NVG_END: map[i] = -1; inline_end(b, f, map, open[--depth]); break;
    default: {
      int n = nvg_prims[x->prim].n;
      map[i] = nvg_emit(b, (nvg_prim)x->prim, type, map[x->a], n > 1 ? map[x->b] : -1, n > 2 ? map[x->c] : -1);
    }
    }
  }
  for (int k = 0; k < f->nresult; k++) result[k] = map[f->result[k]];
  return f->rare < 0 ? -1 : map[f->rare];
}

int nvg_frag_of_nan(nvb_arena *a, const nvg_frag *f, int param) {
  int rare = 1, kept = f->nresult == 1;
  nvm_dtype type = (nvm_dtype)f->inst[param].type;
  if (type != NVM_F32 && type != NVM_F64) return NVG_NAN_UNSEEN;
  for (int negative = 0; negative < 2; negative++) {
    nvg_build *b = nvg_build_new(a);
    int *arg = NVB_NEWN(a, int, f->nparam), *result = NVB_NEWN(a, int, f->nresult);
    uint64_t nan = nvg_mask(type);
    for (int i = 0; i < f->nparam; i++)
      arg[i] = i == param ? nvg_emit_const(b, type, negative ? nan : nan >> 1) : nvg_emit_param(b, f->inst[i].type);
    int flag = nvg_inline(b, f, arg, result);
    rare &= flag >= 0 && is_const(b, flag) && b->inst.at[flag].imm;
    kept = kept && is_nan(b, result[0]);
  }
  return rare ? NVG_NAN_SLOW_PATH : kept ? NVG_NAN_KEPT : NVG_NAN_UNSEEN;
}

int nvg_frag_shared(const nvg_frag *f) {
  enum { MOST = 16 };
  uint64_t by = 0;
  for (int i = 0; i < f->ninst; i++) {
    const nvg_inst *x = &f->inst[i];
    if (x->prim == NVG_SHR && x->a == 0 && f->inst[x->b].prim == NVG_CONST && f->inst[x->b].imm > by)
      by = f->inst[x->b].imm;
  }
  return by < MOST ? 1 << by : 1;
}

/* ---- the end */
static void mark_live(const nvg_build *b, uint8_t *live, const int *root, int nroot, int *stack) {
  int n = 0;
  for (int k = 0; k < nroot; k++)
    if (root[k] >= 0 && !live[root[k]]) live[root[k]] = 1, stack[n++] = root[k];
  while (n) {
    int i = stack[--n], loop = i;
    const nvg_inst *x = &b->inst.at[i];
    if (x->prim == NVG_PHI)
      while (b->inst.at[loop].prim == NVG_PHI) loop--;
    int op[4] = { x->a, x->b, x->c, loop };
    for (int k = 0; k < 4; k++)
      if (op[k] >= 0 && !live[op[k]]) live[op[k]] = 1, stack[n++] = op[k];
  }
}

/* new[i] becomes the new number of instruction i, or -1 if it is dead: first the parameters, then constants by first
   use, then the rest in order. */
static int number_insts(const nvg_build *b, uint8_t *live, int *new, const int *root, int nroot, int *open) {
  int n = 0, depth = 0;
  for (int i = 0; i < b->inst.n; i++) {
    const nvg_inst *x = &b->inst.at[i];
    if (x->prim == NVG_LOOP) open[depth++] = i;
    if (x->prim == NVG_END) live[i] = live[open[--depth]];
    new[i] = x->prim == NVG_PARAM ? n++ : -1;
  }
  for (int i = 0; i < b->inst.n + 1; i++) {
    const nvg_inst *x = i < b->inst.n ? &b->inst.at[i] : NULL;
    const int32_t op[3] = { x ? x->a : -1, x ? x->b : -1, x ? x->c : -1 }, *use = x ? op : root;
    for (int k = 0; k < (x ? 3 : nroot); k++)
      if (use[k] >= 0 && (!x || live[i]) && is_const(b, use[k]) && new[use[k]] < 0) new[use[k]] = n++;
  }
  for (int i = 0; i < b->inst.n; i++)
    if (live[i] && new[i] < 0) new[i] = n++;
  return n;
}

static int cost_of(const nvg_inst *x) {
  int flt = x->type == NVM_F32 || x->type == NVM_F64, wide = nvg_size((nvm_dtype)x->type) == 8;
  switch (x->prim) {
  case NVG_PARAM: case NVG_CONST: case NVG_BITS: case NVG_LOOP: case NVG_PHI: case NVG_END: return 0;
  case NVG_DIV: return flt ? 4 << wide : 16 << wide;
  case NVG_REM: return 16 << wide;
  case NVG_SQRT: case NVG_SQRT_INSIDE: return 4 << wide;
  case NVG_MULHI: case NVG_CLZ: case NVG_TABLE: return 2 << wide;
  default: return 1;
  }
}

static void measure_frag(nvg_frag *f) {
  enum { MOST = 1 << 30, UNTIL = 8 }; /* a loop that ends early takes about one in UNTIL of its iterations */
  int64_t times[NVG_MAX_LOOPS + 1] = { 1 }, cost = 0;
  int depth = 0;
  nvb_hash h = nvb_hash_bytes(f->inst, sizeof *f->inst * (size_t)f->ninst);
  for (int i = 0; i < f->ninst; i++) {
    if (f->inst[i].prim == NVG_LOOP) {
      int64_t most = (int64_t)f->inst[i].imm, inside = times[depth++] * (f->inst[i].a < 0 ? most : 1 + most / UNTIL);
      times[depth] = inside < MOST ? inside : MOST;
    }
    if (f->inst[i].prim == NVG_END) depth--;
    cost += times[depth] * cost_of(&f->inst[i]);
  }
  f->cost = cost > MOST ? MOST : (int)cost;
  int head[4] = { f->nparam, f->nresult, f->ninst, f->rare };
  h = nvb_hash_mix(h, head, sizeof head);
  h = nvb_hash_mix(h, f->result, sizeof *f->result * (size_t)f->nresult);
  for (int k = 0; k < f->ntable; k++) {
    int about[2] = { f->table[k].n, f->table[k].type };
    h = nvb_hash_mix(h, about, sizeof about);
    h = nvb_hash_mix(h, f->table[k].bits, sizeof(uint64_t) * (size_t)f->table[k].n);
  }
  f->hash = f->full ? nvb_hash_mix(h, &f->full->hash, sizeof f->full->hash) : h;
}

nvg_frag *nvg_build_finish(nvg_build *b, const char *name, const int *result, int nresult, int rare,
                           const nvg_frag *full) {
  nvb_arena *a = b->arena;
  int total = b->inst.n, nroot = nresult + 1, ntable = 0;
  int *root = NVB_NEWN(a, int, nroot), *new = NVB_NEWN(a, int, total + 1), *work = NVB_NEWN(a, int, total + 1);
  int *tab = NVB_NEWN(a, int, b->table.n + 1), *res = NVB_NEWN(a, int, nresult);
  uint8_t *live = NVB_NEWN(a, uint8_t, total + 1);
  nvg_frag *f = NVB_NEW(a, nvg_frag);
  memcpy(root, result, sizeof *root * (size_t)nresult);
  root[nresult] = rare;
  mark_live(b, live, root, nroot, work);
  int n = number_insts(b, live, new, root, nroot, work);
  nvg_inst *inst = NVB_NEWN(a, nvg_inst, n + 1);
  nvg_table *table = NVB_NEWN(a, nvg_table, b->table.n + 1);
  for (int i = 0; i < total; i++) {
    if (new[i] < 0) continue;
    nvg_inst x = b->inst.at[i];
    if (x.a >= 0) x.a = new[x.a];
    if (x.b >= 0) x.b = new[x.b];
    if (x.c >= 0) x.c = new[x.c];
    if (x.prim == NVG_TABLE) {
      if (!tab[x.tab]) table[ntable] = b->table.at[x.tab], tab[x.tab] = ++ntable;
      x.tab = (uint16_t)(tab[x.tab] - 1);
    }
    if (x.prim == NVG_PARAM) f->nparam++;
    inst[new[i]] = x;
  }
  for (int k = 0; k < nresult; k++) res[k] = new[result[k]];
  f->name = name, f->nresult = nresult, f->ninst = n, f->ntable = ntable;
  f->inst = inst, f->result = res, f->table = table;
  f->rare = rare < 0 ? -1 : new[rare];
  f->full = full;
  f->work = nvg_frag_slots(a, f);
  measure_frag(f);
  return f;
}
