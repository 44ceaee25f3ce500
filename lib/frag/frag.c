/* Implements what every stage needs of fragments: the table of primitives, their typing rules, the assignment of values
   to slots of the interpreter's work memory, and the checker. It never parses, builds or runs a fragment. */
#include "frag/impl.h"
#include <string.h>

const nvg_prim_info nvg_prims[NVG_NPRIMS] = {
#define PRIM(id, text, n, in, out, doc) {#id, text, in, out, doc, n},
#include "frag/prims.def"
#undef PRIM
};

uint64_t nvg_mask(nvm_dtype t) { return t == NVM_BOOL ? 1 : nvg_size(t) == 8 ? ~0ull : (1ull << nvg_size(t) * 8) - 1; }

int nvg_bits_nan(int type, uint64_t bits) {
  if (type == NVM_F32) return (bits & 0x7fffffff) > 0x7f800000;
  return type == NVM_F64 && (bits & INT64_MAX) > 0x7ff0000000000000;
}

/* Finds a primitive that text calls as a function; -1 if there is none. */
int nvg_prim_find(const char *name, int len) {
  static const uint8_t named[] = { NVG_REM,   NVG_ABS,  NVG_FMA,   NVG_SQRT,  NVG_SQRT_INSIDE, NVG_RINT,
                                   NVG_FLOOR, NVG_CEIL, NVG_TRUNC, NVG_MULHI, NVG_CLZ,         NVG_SEL };
  for (unsigned i = 0; i < sizeof named; i++)
    if (strlen(nvg_prims[named[i]].text) == (size_t)len && !memcmp(nvg_prims[named[i]].text, name, (size_t)len))
      return named[i];
  return -1;
}

/* Returns 1 if dtype t belongs to the class that an operand's letter stands for (prims.def). */
static int is_in_class(char letter, int t) {
  nvg_class c = nvg_class_of((nvm_dtype)t);
  int flt = t == NVM_F32 || t == NVM_F64, integer = c == NVG_SIGNED || c == NVG_UNSIGNED;
  switch (letter) {
  case 'F': return flt;
  case 'I': return integer;
  case 'B': return c == NVG_BOOLEAN;
  case 'N': return flt || integer;
  case 'J': return integer || c == NVG_BOOLEAN;
  default: return flt || integer || c == NVG_BOOLEAN;
  }
}

static int is_convertible(int from, int to) {
  if (from == NVM_F16 || to == NVM_F16) return from == NVM_F32 || to == NVM_F32;
  return is_in_class('A', from) && is_in_class('N', to) && from != to;
}

int nvg_prim_type(nvg_prim p, const int *t, int want) {
  const nvg_prim_info *info = &nvg_prims[p];
  for (int i = 0; i < info->n; i++)
    if (t[i] < 0 || nvg_class_of((nvm_dtype)t[i]) == NVG_COMPLEX) return -1;
  if (p == NVG_CVT) return is_convertible(t[0], want) ? want : -1;
  if (p == NVG_BITS)
    return nvg_size((nvm_dtype)t[0]) == nvg_size((nvm_dtype)want) && t[0] != NVM_BOOL && want != NVM_BOOL ? want : -1;
  if (p == NVG_MULHI && nvg_size((nvm_dtype)t[0]) < 4) return -1;
  for (int i = 0; i < info->n; i++) {
    if (!is_in_class(info->in[i], t[i])) return -1;
    for (int j = 0; j < i; j++)
      if (info->in[i] == info->in[j] && t[i] != t[j]) return -1;
  }
  switch (info->out[0]) {
  case 'T': return t[0];
  case 'B': return NVM_BOOL;
  case '2': return t[1];
  case 'i': return NVM_I32;
  default: return want;
  }
}

/* ---- work memory */
typedef struct slots { nvb_arena *arena; NVB_VEC(int) free[4]; int top; } slots;

static int size_class(nvm_dtype t) { return nvg_size(t) == 8 ? 3 : nvg_size(t) == 4 ? 2 : nvg_size(t) == 2 ? 1 : 0; }

static int slot_take(slots *s, nvm_dtype t) {
  int c = size_class(t), at;
  if (s->free[c].n) return s->free[c].at[--s->free[c].n];
  at = s->top;
  s->top += 1 << c;
  return at;
}

/* last[i] is the last instruction that reads value i; a read inside a loop that does not contain i counts as a read at
   the end of the outermost such loop. */
static int *last_uses(nvb_arena *a, const nvg_frag *f) {
  int *last = NVB_NEWN(a, int, f->ninst + 1), *end = NVB_NEWN(a, int, f->ninst + 1),
      *open = NVB_NEWN(a, int, f->ninst + 1);
  int depth = 0;
  for (int i = 0; i < f->ninst; i++) { /* end[i]: the END of the loop that opens at i */
    if (f->inst[i].prim == NVG_LOOP) open[depth++] = i;
    if (f->inst[i].prim == NVG_END) end[open[--depth]] = i;
  }
  for (int i = 0; i < f->ninst; i++) {
    const nvg_inst *x = &f->inst[i];
    const int32_t op[3] = { x->a, x->b, x->c };
    if (x->prim == NVG_LOOP) open[depth++] = i;
    if (x->prim == NVG_END) depth--;
    last[i] = x->prim == NVG_LOOP ? end[i] : x->prim == NVG_PHI ? end[open[depth - 1]] : last[i] > i ? last[i] : i;
    for (int k = 0; k < 3; k++) {
      if (op[k] < 0) continue;
      int until = x->prim == NVG_PHI ? end[open[depth - 1]] : i;
      for (int d = depth - 1; d >= 0; d--)
        if (open[d] > op[k]) until = end[open[d]];
      if (last[op[k]] < until) last[op[k]] = until;
    }
  }
  for (int k = 0; k < f->nresult; k++) last[f->result[k]] = f->ninst;
  if (f->rare >= 0) last[f->rare] = f->ninst;
  return last;
}

/* Assigns each value a slot by its lifetime. Constants are filled once per run, so their slots are never shared. The
   slot of an END holds the next values of the loop's PHIs. */
int nvg_frag_slots(nvb_arena *a, nvg_frag *f) {
  slots s = { .arena = a };
  int *last = last_uses(a, f), *slot = NVB_NEWN(a, int, f->ninst + 1);
  NVB_VEC(int) live = { 0 }, loop = { 0 };
  for (int i = 0; i < f->ninst; i++)
    if (f->inst[i].prim == NVG_CONST) slot[i] = slot_take(&s, (nvm_dtype)f->inst[i].type);
  for (int i = 0; i < f->ninst; i++) {
    const nvg_inst *x = &f->inst[i];
    if (x->prim == NVG_CONST) continue;
    slot[i] = x->prim == NVG_END ? -1 : slot_take(&s, (nvm_dtype)x->type);
    if (x->prim == NVG_LOOP) NVB_PUSH(a, loop, i);
    if (x->prim == NVG_END) {
      int bytes = 0;
      for (int k = loop.at[--loop.n] + 1; f->inst[k].prim == NVG_PHI; k++) bytes += 8;
      slot[i] = s.top;
      s.top += bytes;
    }
    if (x->prim == NVG_END) continue;
    NVB_PUSH(a, live, i);
    int kept = 0;
    for (int k = 0; k < live.n; k++) {
      int v = live.at[k], c = size_class((nvm_dtype)f->inst[v].type);
      if (last[v] > i) live.at[kept++] = v;
      else NVB_PUSH(a, s.free[c], slot[v]);
    }
    live.n = kept;
  }
  f->slot = slot;
  return s.top;
}

/* ---- the checker */
#define MUST(cond, what) \
  do { if (!(cond)) nvb_throw(a, NVM_ERR_INTERNAL, "[fragment %s] instruction %d: %s", f->name, i, what); } while (0)

static int ends_loop(const nvg_frag *f, int loop) {
  int phi = f->inst[loop].a, k = loop + 1;
  while (k < f->ninst && k < phi && f->inst[k].prim == NVG_PHI) k++;
  return k < f->ninst && k == phi && f->inst[k].prim == NVG_PHI && f->inst[k].type == NVM_BOOL;
}

static void check_inst(nvb_arena *a, const nvg_frag *f, int i, const int *hidden, int phi_ok, int loop) {
  const nvg_inst *x = &f->inst[i];
  const int32_t op[3] = { x->a, x->b, x->c };
  int t[3] = { -1, -1, -1 };
  MUST(x->prim < NVG_NPRIMS, "unknown primitive");
  for (int k = 0; k < 3; k++) {
    if (k >= nvg_prims[x->prim].n) {
      MUST(op[k] == -1 || (x->prim == NVG_LOOP && k == 0), "an operand too many");
      continue;
    }
    int later = x->prim == NVG_PHI && k == 1;
    MUST(op[k] >= 0 && op[k] < f->ninst && (op[k] < i || later), "an operand that is not defined before");
    MUST(later || !hidden[op[k]], "an operand from inside a loop that is closed");
    MUST(f->inst[op[k]].prim != NVG_END, "END has no value");
    t[k] = f->inst[op[k]].type;
  }
  MUST(x->prim == NVG_END || nvg_prim_type((nvg_prim)x->prim, t, x->type) == x->type, "types that do not fit");
  MUST((x->prim == NVG_PARAM) == (i < f->nparam) && (x->prim != NVG_PARAM || x->imm == (uint64_t)i),
       "parameters come first, in order");
  MUST(x->prim != NVG_CONST || !(x->imm & ~nvg_mask((nvm_dtype)x->type)), "constant wider than its type");
  MUST(x->prim != NVG_TABLE || (x->tab < f->ntable && f->table[x->tab].type == (nvm_dtype)x->type), "no such table");
  MUST(x->prim != NVG_PHI || phi_ok, "a PHI that does not follow its LOOP");
  MUST(x->prim != NVG_PHI || x->b > loop || !hidden[x->b], "a PHI's next value is not visible at its END");
  MUST(x->prim != NVG_LOOP || x->a < 0 || ends_loop(f, i), "a loop ends by what is no bool among its PHIs");
  MUST(x->prim != NVG_LOOP || (x->imm >= 1 && x->imm <= 1u << 20), "iterations of a loop");
}

void nvg_frag_check(nvb_arena *a, const nvg_frag *f) {
  int *hidden = NVB_NEWN(a, int, f->ninst + 1), *open = NVB_NEWN(a, int, f->ninst + 1), depth = 0, i;
  for (i = 0; i < f->ninst; i++) {
    const nvg_inst *x = &f->inst[i];
    int phi_ok = i && (f->inst[i - 1].prim == NVG_LOOP || f->inst[i - 1].prim == NVG_PHI);
    check_inst(a, f, i, hidden, phi_ok, depth ? open[depth - 1] : -1);
    MUST(x->prim != NVG_LOOP || depth < NVG_MAX_LOOPS, "loops are nested too deeply");
    if (x->prim == NVG_LOOP) open[depth++] = i;
    if (x->prim != NVG_END) continue;
    MUST(depth > 0, "END without LOOP");
    int lo = open[--depth], phi = lo + 1;
    hidden[lo] = 1;
    for (; f->inst[phi].prim == NVG_PHI; phi++)
      MUST(f->inst[phi].b < i && !hidden[f->inst[phi].b], "a PHI's next value is not visible at its END");
    for (; phi <= i; phi++) hidden[phi] = 1;
  }
  MUST(depth == 0, "LOOP without END");
  MUST(f->nparam >= 0 && f->nresult >= 1, "a fragment has at least one result");
  for (int k = 0; k < f->nresult; k++)
    MUST(f->result[k] >= 0 && f->result[k] < f->ninst && !hidden[f->result[k]], "a result that is not visible");
  MUST((f->rare >= 0) == (f->full != NULL), "rare and the full form come together");
  if (f->rare < 0) return;
  MUST(f->rare < f->ninst && !hidden[f->rare] && f->inst[f->rare].type == NVM_BOOL, "rare is not a visible bool");
  MUST(f->full->rare < 0 && f->full->nparam == f->nparam && f->full->nresult == f->nresult,
       "the full form has another shape");
  for (int k = 0; k < f->nparam; k++)
    MUST(f->full->inst[k].type == f->inst[k].type, "the full form has other parameters");
  for (int k = 0; k < f->nresult; k++)
    MUST(f->full->inst[f->full->result[k]].type == f->inst[f->result[k]].type, "the full form has other results");
  nvg_frag_check(a, f->full);
}
