/* The printer: it writes kernels and schedules as text that parses back to the same kernel, and hashes that text. It
   prints fragments of the library by name and all others in full, before the kernel. */
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "kernel/lex.h"
#include "kernel/kernel.h"
#include "frag/dtype.h"

typedef struct printer {
  nvb_text *t;
  const nvf_kernel *k;
  const nvf_part *part;
  int depth;
} printer;

/* ---- expressions */
static int binding_strength(nvf_xkind kind) {
  return kind == NVF_ADD || kind == NVF_SUB ? 1 : kind == NVF_MUL || kind == NVF_DIV || kind == NVF_MOD ? 2 : 3;
}

static void print_leaf(printer *p, const nvf_expr *x) {
  const nvf_kernel *k = p->k;
  const char *name = x->kind == NVF_PARAM  ? k->param[x->id].name
                     : x->kind == NVF_NAME ? k->name[x->id]
                     : x->kind == NVF_GRID ? p->part->grid[x->id].name
                     : x->kind == NVF_AXIS ? k->axis[x->id]
                     : x->kind == NVF_VAR  ? k->var[x->id]
                                           : k->tile[x->id].name;
  nvb_puts(p->t, name);
}

/* least: operators that bind less need parentheses. A negative constant is printed as 0 - n, which the builder folds
   back. */
static void print_expression(printer *p, const nvf_expr *x, int least) {
  static const char *const sign[] = {
    [NVF_ADD] = " + ", [NVF_SUB] = " - ", [NVF_MUL] = "*", [NVF_DIV] = "//", [NVF_MOD] = "%"
  };
  int own = binding_strength(x->kind);
  if (x->kind == NVF_CONST && x->value < 0) nvb_print(p->t, "(0 - %llu)", 0 - (unsigned long long)x->value);
  else if (x->kind == NVF_CONST) nvb_print(p->t, "%lld", (long long)x->value);
  else if (own == 3) print_leaf(p, x);
  else {
    if (own < least) nvb_puts(p->t, "(");
    print_expression(p, x->a, own);
    nvb_puts(p->t, sign[x->kind]);
    print_expression(p, x->b, own + 1);
    if (own < least) nvb_puts(p->t, ")");
  }
}

static void print_condition(printer *p, const nvf_cond *c) {
  static const char *const sign[] = { [NVF_LT] = "<",  [NVF_LE] = "<=", [NVF_EQ] = "==",
                                      [NVF_NE] = "!=", [NVF_GE] = ">=", [NVF_GT] = ">" };
  for (int i = 0; i < c->nrel; i++) {
    if (i) nvb_puts(p->t, " & ");
    print_expression(p, c->rel[i].a, 1);
    nvb_print(p->t, " %s ", sign[c->rel[i].cmp]);
    print_expression(p, c->rel[i].b, 1);
  }
  for (int i = 0; i < c->ntile; i++) nvb_print(p->t, "%s%s", i || c->nrel ? " & " : "", p->k->tile[c->tile[i]].name);
  if (!c->nrel && !c->ntile) nvb_puts(p->t, "0 == 0");
}

/* ---- parts of statements */
static void print_tiles(printer *p, const int *id, int n) {
  for (int i = 0; i < n; i++) nvb_print(p->t, "%s%s", i ? ", " : "", p->k->tile[id[i]].name);
}

static void print_bundle(printer *p, const int *id, int n) { /* X or (X, Y) */
  if (n != 1) nvb_puts(p->t, "(");
  print_tiles(p, id, n);
  if (n != 1) nvb_puts(p->t, ")");
}

static void print_layout_name(printer *p, const nvf_stmt *s) {
  const char *name = p->k->name[s->layout];
  if (s->nonly < 0) {
    nvb_puts(p->t, name);
    return;
  }
  nvb_print(p->t, "only(%s", name);
  for (int i = 0; i < s->nonly; i++) nvb_print(p->t, ", %s", p->k->axis[s->only[i]]);
  nvb_puts(p->t, ")");
}

/* How kernel text names the fragment: a cast by the dtype of its result, any other by its own name. */
static const char *frag_name(const nvf_stmt *s) {
  const nvg_frag *f = s->frag;
  if (s->op == NVF_MAP && f->nparam == 1 && f->nresult == 1) {
    nvm_dtype to = (nvm_dtype)f->inst[f->result[0]].type;
    if (nvg_frag_cast((nvm_dtype)f->inst[0].type, to) == f) return nvg_dtype_short(to);
  }
  return f->name;
}

static void print_operand(printer *p, const nvf_arg *a) {
  nvb_puts(p->t, ", ");
  if (a->kind == NVF_ATILE) nvb_puts(p->t, p->k->tile[a->id].name);
  else if (a->kind == NVF_AAXIS) nvb_puts(p->t, p->k->axis[a->id]);
  else if (a->kind == NVF_ASCALAR) nvb_puts(p->t, p->k->param[a->id].name);
  else {
    nvb_text number = { .arena = p->t->arena };
    nvf_const_print(&number, a->type, a->bits);
    int typed = strncmp(number.s, "bits", 4) == 0;
    nvb_print(p->t, typed ? "%s%s" : "%s(%s)", typed ? "" : nvg_dtype_short(a->type), number.s);
  }
}

static void print_keywords(printer *p, const nvf_stmt *s) {
  const nvf_kernel *k = p->k;
  if (s->where && s->op != NVF_TEST && s->op != NVF_CHECK) {
    nvb_puts(p->t, ", where = ");
    print_condition(p, s->where);
  }
  if (s->op == NVF_LOAD && s->has_other) {
    nvb_puts(p->t, ", other = ");
    nvf_const_print(p->t, nvg_real_of(k->param[s->buf].type), s->other);
  }
  int state = s->op == NVF_SCAN && s->frag && s->nin > s->frag->nresult ? s->nin / 2 : s->nin;
  if (s->init) {
    nvb_puts(p->t, ", init = (");
    for (int i = 0; i < state; i++) {
      if (i) nvb_puts(p->t, ", ");
      nvf_const_print(p->t, k->tile[s->in[i]].type, s->init[i]);
    }
    nvb_puts(p->t, ")");
  }
  if (state < s->nin && s->op == NVF_SCAN) {
    nvb_puts(p->t, ", carry = ");
    print_bundle(p, s->in + state, s->nin - state);
  }
}

/* ---- statements: what stands in their parentheses, keywords apart */
static void print_address(printer *p, const nvf_stmt *s) { /* ends in a comma */
  nvb_print(p->t, "%s, ", p->k->param[s->buf].name);
  print_expression(p, s->map, 1);
  nvb_puts(p->t, ", ");
}

static void print_load(printer *p, const nvf_stmt *s) {
  print_address(p, s);
  print_layout_name(p, s);
}

static void print_store(printer *p, const nvf_stmt *s) {
  print_address(p, s);
  print_tiles(p, s->in, s->nin);
}

static void print_atomic_max(printer *p, const nvf_stmt *s) { print_store(p, s); }

static void print_map(printer *p, const nvf_stmt *s) {
  nvb_puts(p->t, frag_name(s));
  for (int i = 0; i < s->narg; i++) print_operand(p, &s->arg[i]);
  if (s->layout < 0) return;
  nvb_puts(p->t, ", layout = ");
  print_layout_name(p, s);
}

static void print_scan(printer *p, const nvf_stmt *s) {
  nvb_print(p->t, "%s, ", s->frag->name);
  print_bundle(p, s->in, s->frag->nresult);
  nvb_print(p->t, ", %s", p->k->axis[s->axis]);
}

static void print_reduce(printer *p, const nvf_stmt *s) {
  print_scan(p, s);
  nvb_print(p->t, ", %s", p->k->name[s->red_order]);
}

static void print_dft(printer *p, const nvf_stmt *s) {
  print_tiles(p, s->in, s->nin > 1 ? 2 : 1);
  nvb_print(p->t, ", %s, %d", p->k->axis[s->axis], s->sign);
  if (s->nin <= 2) return;
  nvb_puts(p->t, ", ");
  print_tiles(p, s->in + 2, s->nin - 2);
}

static void print_put(printer *p, const nvf_stmt *s) {
  print_tiles(p, s->in, 1);
  for (int i = 0; i < s->norder; i++) nvb_print(p->t, "%s%s", i ? ", " : ", [", p->k->axis[s->order[i]]);
  nvb_puts(p->t, "]");
}

static void print_relayout(printer *p, const nvf_stmt *s) {
  print_tiles(p, s->in, s->nin);
  nvb_puts(p->t, ", ");
  print_layout_name(p, s);
}

static void print_get(printer *p, const nvf_stmt *s) { print_relayout(p, s); }

static void print_contract(printer *p, const nvf_stmt *s) {
  print_tiles(p, s->in, 3);
  nvb_print(p->t, ", %s", p->k->axis[s->axis]);
}

static void print_zeros(printer *p, const nvf_stmt *s) {
  nvb_print(p->t, "%s, ", nvg_dtype_short(p->k->tile[s->out[0]].type));
  print_layout_name(p, s);
}

static void print_index(printer *p, const nvf_stmt *s) {
  print_expression(p, s->map, 1);
  nvb_puts(p->t, ", ");
  print_layout_name(p, s);
}

static void print_check(printer *p, const nvf_stmt *s) {
  print_condition(p, s->where);
  if (s->layout < 0) return;
  nvb_puts(p->t, ", ");
  print_layout_name(p, s);
}

static void print_test(printer *p, const nvf_stmt *s) { print_check(p, s); }

static void print_call(printer *p, const nvf_stmt *s) {
  static void (*const print_arguments[])(printer *, const nvf_stmt *) = {
#define OPERATION(id, word, ...) [NVF_##id] = print_##word,
#include "kernel/statements.def"
  };
  print_tiles(p, s->out, s->nout);
  nvb_print(p->t, "%s%s(", s->nout ? " = " : "", nvf_op_name(s->op));
  print_arguments[s->op](p, s);
  print_keywords(p, s);
  nvb_puts(p->t, ")");
}

static void print_block(printer *p, const nvf_block *b);

static void print_loop(printer *p, const nvf_stmt *s) {
  nvb_print(p->t, "for %s in range(", p->k->var[s->var]);
  print_expression(p, s->lo, 1);
  nvb_puts(p->t, ", ");
  print_expression(p, s->hi, 1);
  nvb_puts(p->t, ", ");
  print_expression(p, s->step, 1);
  nvb_puts(p->t, ")");
  for (int i = 0; i < s->ncarry; i++)
    nvb_print(p->t, "%s%s = %s", i ? ", " : " carry (", p->k->tile[s->carry[i].inner].name,
              p->k->tile[s->carry[i].outer].name);
  nvb_puts(p->t, s->ncarry ? ") " : " ");
  print_block(p, s->body);
}

static void print_branch(printer *p, const nvf_stmt *s) {
  nvb_puts(p->t, "if ");
  print_condition(p, s->where);
  nvb_puts(p->t, " ");
  print_block(p, s->body);
  if (!s->other_body) return;
  nvb_puts(p->t, " else ");
  print_block(p, s->other_body);
}

static void print_statement(printer *p, const nvf_stmt *s) {
  nvb_print(p->t, "%*s", 2 * p->depth, "");
  (s->op == NVF_FOR ? print_loop : s->op == NVF_IF ? print_branch : print_call)(p, s);
  nvb_puts(p->t, "\n");
}

static void print_block(printer *p, const nvf_block *b) {
  nvb_puts(p->t, "{\n");
  p->depth++;
  for (int i = 0; i < b->n; i++) print_statement(p, b->s[i]);
  p->depth--;
  nvb_print(p->t, "%*s}", 2 * p->depth, "");
}

static void print_part(printer *p, const nvf_part *part) {
  p->part = part;
  nvb_print(p->t, "%*sgrid (", 2 * p->depth, "");
  for (int i = 0; i < part->ngrid; i++) {
    nvb_print(p->t, "%s%s = ", i ? ", " : "", part->grid[i].name);
    print_expression(p, part->grid[i].extent, 1);
  }
  nvb_puts(p->t, ") ");
  print_block(p, &part->body);
  nvb_puts(p->t, "\n");
}

/* ---- fragments of the text itself */
static int in_library(const nvg_frag *f) {
  nvm_dtype type[256];
  if (f->nparam > 256) return 0;
  for (int i = 0; i < f->nparam; i++) type[i] = (nvm_dtype)f->inst[i].type;
  if (f->nparam == 1 && f->nresult == 1 && nvg_frag_cast(type[0], (nvm_dtype)f->inst[f->result[0]].type) == f) return 1;
  const nvg_frag *found = nvg_frag_find(f->name, type, f->nparam);
  if (!found) nvb_clear(); /* a fragment that is not in the library is no error */
  return found == f;
}

typedef struct frag_list {
  nvb_arena *a;
  NVB_VEC(const nvg_frag *) all;
} frag_list;

/* Collects each fragment once, in the order of use. */
static void frags_of(frag_list *l, const nvf_block *b) {
  for (int i = 0; i < b->n; i++) {
    const nvf_stmt *s = b->s[i];
    int seen = !s->frag;
    for (int j = 0; j < l->all.n && !seen; j++) seen = l->all.at[j] == s->frag;
    if (!seen) NVB_PUSH(l->a, l->all, s->frag);
    if (s->body) frags_of(l, s->body);
    if (s->other_body) frags_of(l, s->other_body);
  }
}

static frag_list all_frags(nvb_arena *a, const nvf_kernel *k) {
  frag_list l = { .a = a };
  for (int i = 0; i < k->npart; i++) frags_of(&l, &k->part[i].body);
  return l;
}

static void print_param(printer *p, const nvf_param *q) {
  nvb_print(p->t, "%s: ", q->name);
  if (q->kind == NVF_SIZE) {
    nvb_puts(p->t, "size");
    if (q->most) nvb_print(p->t, "(%lld, %lld)", (long long)q->least, (long long)q->most);
  } else if (q->kind == NVF_ROOTS)
    nvb_print(p->t, "roots(%s, %lld, %d, %lld)", nvg_dtype_short(q->type), (long long)q->roots.n, q->roots.sign,
              (long long)q->roots.length);
  else
    nvb_print(p->t, "%s%s%s%s", q->written ? "mut " : "", q->unique ? "unique " : "", nvg_dtype_short(q->type),
              q->kind == NVF_BUFFER ? "[]" : "");
}

void nvf_kernel_print(nvb_text *t, const nvf_kernel *k) {
  printer p = { .t = t, .k = k };
  frag_list l = all_frags(t->arena, k);
  for (int i = 0; i < l.all.n; i++)
    if (!in_library(l.all.at[i])) {
      nvg_frag_print(t, l.all.at[i]);
      if (t->n && t->s[t->n - 1] != '\n') nvb_puts(t, "\n");
    }
  nvb_print(t, "kernel %s(", *k->title ? k->title : "k");
  for (int i = 0; i < k->nparam; i++) {
    if (i) nvb_puts(t, ", ");
    print_param(&p, &k->param[i]);
  }
  nvb_puts(t, ") {\n");
  p.depth = 1;
  for (int i = 0; i < k->npart; i++) print_part(&p, &k->part[i]);
  nvb_puts(t, "}\n");
}

/* ---- schedules, sorted by name: equal schedules have the same text however they were built */
typedef struct bound {
  const char *name;
  const nvf_binding *b;
} bound;
static int by_name(const void *a, const void *b) { return strcmp(((const bound *)a)->name, ((const bound *)b)->name); }

void nvf_schedule_print(nvb_text *t, const nvf_kernel *k, const nvf_schedule *s, const char *name) {
  int count = s->nbind < k->nname ? s->nbind : k->nname;
  bound *order = NVB_NEWN(t->arena, bound, count);
  for (int i = 0; i < count; i++) order[i] = (bound){ k->name[i], &s->bind[i] };
  qsort(order, (size_t)count, sizeof *order, by_name);
  nvb_print(t, "schedule %s {\n", name);
  for (int i = 0; i < count; i++) {
    const nvf_binding *b = order[i].b;
    if (b->kind == NVF_UNBOUND) continue;
    nvb_print(t, "  %s = ", order[i].name);
    if (b->kind == NVF_BINT) nvb_print(t, "%lld", (long long)b->value);
    else if (b->kind == NVF_BRED_ORDER) nvb_print(t, "order(%d, %d)", b->order.c, b->order.w);
    else {
      nvb_puts(t, "\"");
      nvf_layout_print(t, k, &b->layout);
      nvb_puts(t, "\"");
    }
    nvb_puts(t, "\n");
  }
  for (int i = 0; i < s->nhint; i++)
    nvb_print(t, "  hint %d %s = %lld\n", s->hint[i].stmt, nvf_hint_get(s->hint[i].hint)->word,
              (long long)s->hint[i].value);
  nvb_puts(t, "}\n");
}

nvb_hash nvf_kernel_hash(const nvf_kernel *k, const nvf_schedule *s) {
  nvb_text t = { .arena = k->arena };
  nvf_kernel_print(&t, k);
  if (s) nvf_schedule_print(&t, k, s, "s");
  nvb_hash h = nvb_hash_bytes(t.s, t.n);
  frag_list l = all_frags(k->arena, k);
  for (int i = 0; i < l.all.n; i++) h = nvb_hash_mix(h, &l.all.at[i]->hash, sizeof l.all.at[i]->hash);
  return h;
}
