/* Prints a fragment as text: concrete types, one statement per instruction, constants as literals. Parsing the text
   gives a fragment with the same hash. */
#include "frag/impl.h"
#include <string.h>

static const char *type_name(int t) { return nvg_dtype_short((nvm_dtype)t); }

static void put_hex_float(nvb_text *t, int type, uint64_t bits) {
  int wide = type == NVM_F64, mant = wide ? 52 : 23, top = wide ? 0x7ff : 0xff, digits = wide ? 13 : 6;
  uint64_t m = bits & ((1ull << mant) - 1);
  int e = (int)(bits >> mant & (uint64_t)top);
  if (bits >> (wide ? 63 : 31)) nvb_puts(t, "-");
  if (e == top) {
    nvb_puts(t, "inf");
    return;
  }
  if (!e && !m) {
    nvb_puts(t, "0.0");
    return;
  }
  int lead = e != 0, power = (e ? e : 1) - (wide ? 1023 : 127);
  if (!wide) m <<= 1; /* six hexadecimal digits hold 24 bits, the fraction has 23 */
  while (digits > 1 && !(m & 15)) m >>= 4, digits--;
  nvb_print(t, "0x%d.%0*llxp%d", lead, digits, (unsigned long long)m, power);
}

/* Prints a literal; whole floats below 2^20 are printed in decimal, to be readable. */
static void put_number(nvb_text *t, int type, uint64_t bits) {
  if (type == NVM_F32 || type == NVM_F64) {
    double d;
    float f;
    uint32_t low = (uint32_t)bits;
    memcpy(&d, &bits, 8);
    memcpy(&f, &low, 4);
    if (type == NVM_F32) d = f;
    if (d > -1048576 && d < 1048576 && d == (double)(long)d && d != 0) nvb_print(t, "%ld.0", (long)d);
    else put_hex_float(t, type, bits);
  } else if (nvg_class_of((nvm_dtype)type) == NVG_SIGNED) {
    int shift = 64 - nvg_size((nvm_dtype)type) * 8;
    int64_t v = (int64_t)(bits << shift) >> shift;
    if (v < 0) nvb_print(t, "-%llu", (unsigned long long)(0 - (uint64_t)v));
    else nvb_print(t, "%llu", (unsigned long long)v);
  } else nvb_print(t, bits < 1024 ? "%llu" : "0x%llx", (unsigned long long)bits);
}

static void put_constant(nvb_text *t, int type, uint64_t bits, int untyped) {
  int nan = nvg_bits_nan(type, bits);
  if (type == NVM_BOOL) nvb_puts(t, bits ? "true" : "false");
  else if (nan && bits == (type == NVM_F64 ? 0x7ff8000000000000 : 0x7fc00000))
    nvb_print(t, untyped ? "nan" : "%s(nan)", type_name(type));
  else if (nan || nvg_is_narrow((nvm_dtype)type))
    nvb_print(t, "bits<%s>(u%d(0x%llx))", type_name(type), 8 * nvg_size((nvm_dtype)type), (unsigned long long)bits);
  else {
    if (!untyped) nvb_print(t, "%s(", type_name(type));
    put_number(t, type, bits);
    if (!untyped) nvb_puts(t, ")");
  }
}

static void put_operand(nvb_text *t, const nvg_frag *f, int i, int untyped) {
  const nvg_inst *x = &f->inst[i];
  if (x->prim == NVG_CONST) put_constant(t, x->type, x->imm, untyped);
  else nvb_print(t, x->prim == NVG_PARAM ? "p%d" : "v%d", i);
}

/* Returns 1 if operand k may be printed as a untyped literal, because another operand of the same letter gives its
   type. */
static int is_untyped(const nvg_frag *f, const nvg_inst *x, int k) {
  const int32_t op[3] = { x->a, x->b, x->c };
  const nvg_prim_info *p = &nvg_prims[x->prim];
  for (int j = 0; j < p->n; j++)
    if (j != k && p->in[j] == p->in[k] && f->inst[op[j]].prim != NVG_CONST) return 1;
  return 0;
}

static void put_table_name(nvb_text *t, const nvg_frag *f, int tab) { nvb_print(t, "%s_t%d", f->name, tab); }

static void put_value(nvb_text *t, const nvg_frag *f, int i, int table0) {
  const nvg_inst *x = &f->inst[i];
  const int32_t op[3] = { x->a, x->b, x->c };
  const nvg_prim_info *p = &nvg_prims[x->prim];
  switch (x->prim) {
  case NVG_CVT: nvb_print(t, "%s(", type_name(x->type)); break;
  case NVG_BITS: nvb_print(t, "bits<%s>(", type_name(x->type)); break;
  case NVG_TABLE: put_table_name(t, f, table0 + x->tab); nvb_puts(t, "["); break;
  case NVG_NEG: nvb_puts(t, "-("); break;
  case NVG_NOT: nvb_puts(t, "~("); break;
  default:
    if (nvg_prim_find(p->text, (int)strlen(p->text)) >= 0) {
      nvb_print(t, "%s(", p->text);
      break;
    }
    put_operand(t, f, x->a, is_untyped(f, x, 0)); /* all other primitives are binary operators */
    nvb_print(t, " %s ", p->text);
    put_operand(t, f, x->b, is_untyped(f, x, 1));
    return;
  }
  for (int k = 0; k < p->n; k++) {
    if (k) nvb_puts(t, ", ");
    put_operand(t, f, op[k], is_untyped(f, x, k));
  }
  nvb_puts(t, x->prim == NVG_TABLE ? "]" : ")");
}

static void put_indent(nvb_text *t, int n) {
  while (n--) nvb_puts(t, "  ");
}

static int put_loop(nvb_text *t, const nvg_frag *f, int i) {
  nvb_print(t, "for v%d in %llu carry (", i, (unsigned long long)f->inst[i].imm);
  int k = i + 1;
  for (; f->inst[k].prim == NVG_PHI; k++) {
    nvb_print(t, k == i + 1 ? "v%d = " : ", v%d = ", k);
    put_operand(t, f, f->inst[k].a, 0);
  }
  nvb_puts(t, ")");
  if (f->inst[i].a >= 0) nvb_print(t, " until v%d", f->inst[i].a);
  nvb_puts(t, " {\n");
  return k - 1;
}

static void put_next(nvb_text *t, const nvg_frag *f, int loop) {
  for (int pass = 0; pass < 2; pass++) {
    for (int k = loop + 1; f->inst[k].prim == NVG_PHI; k++) {
      if (k > loop + 1) nvb_puts(t, ", ");
      if (pass) put_operand(t, f, f->inst[k].b, 0);
      else nvb_print(t, "v%d", k);
    }
    nvb_puts(t, pass ? "\n" : " = ");
  }
}

static void put_body(nvb_text *t, const nvg_frag *f, int depth, int table0) {
  int open[NVG_MAX_LOOPS], loops = 0;
  for (int i = f->nparam; i < f->ninst; i++) {
    int prim = f->inst[i].prim;
    if (prim == NVG_CONST) continue;
    put_indent(t, depth + loops);
    if (prim == NVG_LOOP) {
      open[loops++] = i;
      i = put_loop(t, f, i);
    } else if (prim == NVG_END) {
      put_next(t, f, open[--loops]);
      put_indent(t, depth + loops);
      nvb_puts(t, "}\n");
    } else {
      nvb_print(t, "v%d = ", i);
      put_value(t, f, i, table0);
      nvb_puts(t, "\n");
    }
  }
  if (f->rare >= 0) {
    put_indent(t, depth);
    nvb_puts(t, "rare ");
    put_operand(t, f, f->rare, 0);
    nvb_puts(t, "\n");
  }
  put_indent(t, depth);
  for (int k = 0; k < f->nresult; k++) {
    nvb_puts(t, k ? ", " : "return ");
    put_operand(t, f, f->result[k], 0);
  }
  nvb_puts(t, "\n");
}

static void put_tables(nvb_text *t, const nvg_frag *f, int first) {
  for (int k = 0; k < f->ntable; k++) {
    const nvg_table *tab = &f->table[k];
    nvb_puts(t, "table ");
    put_table_name(t, f, first + k);
    nvb_print(t, ": %s = {", type_name(tab->type));
    for (int i = 0; i < tab->n; i++) {
      nvb_puts(t, i % 8 ? ", " : i ? ",\n  " : "\n  ");
      put_number(t, tab->type, tab->bits[i]);
    }
    nvb_puts(t, "\n}\n");
  }
}

void nvg_frag_print(nvb_text *t, const nvg_frag *f) {
  put_tables(t, f, 0);
  if (f->full) put_tables(t, f->full, f->ntable);
  nvb_print(t, "frag %s(", f->name);
  for (int i = 0; i < f->nparam; i++) nvb_print(t, i ? ", p%d: %s" : "p%d: %s", i, type_name(f->inst[i].type));
  nvb_puts(t, ") -> (");
  for (int k = 0; k < f->nresult; k++) nvb_print(t, k ? ", %s" : "%s", type_name(f->inst[f->result[k]].type));
  nvb_puts(t, ") {\n");
  if (f->full) {
    nvb_puts(t, "  fast {\n");
    put_body(t, f, 2, 0);
    nvb_puts(t, "  } full {\n");
    put_body(t, f->full, 2, f->ntable);
    nvb_puts(t, "  }\n");
  } else put_body(t, f, 1, 0);
  nvb_puts(t, "}\n");
}
