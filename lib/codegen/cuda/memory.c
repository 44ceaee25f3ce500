/* Emits loads and stores of buffers. Under the hint `vec`, contiguous items of an axis move in one vector access of up
   to 16 bytes, if one condition holds for all of them (`whole`) or each of them passes its own; else one by one.
   Decides widths and the order of tests; never touches memory where a condition fails. */
#include "codegen/cuda/emit.h"
#include "codegen/cuda/tensor_core.h"
#include "frag/dtype.h"

typedef struct access {
  const nvf_stmt *s;
  const nvf_layout *l;
  nvm_dtype type;     /* type of a part (real or imaginary) */
  const char *memory; /* its C type in memory */
  int parts, pairs;   /* number of parts; pairs: 1: one access has both parts */
  int n, step;        /* elements of an access; step from one of its items to the next */
  int digit;          /* the item digit of an access; -1: single elements */
  int whole;          /* 1: one condition holds for all n elements */
  int words;          /* 1: 16-bit elements are loaded as words, because the compiler would move each by itself */
} access;

/* The item digit along which memory is contiguous, if n divides it; -1: there is none. */
static int vector_digit(const nvcu_em *e, const nvf_stmt *s, const nvf_layout *l, int n) {
  for (int i = 0; i < l->n; i++) {
    int64_t c;
    const nvf_digit *d = &l->d[i];
    if (d->level == 'i' && d->stride == 1 && d->extent % n == 0 && nvc_coef(&e->r, s->map, d->axis, &c) && c == 1)
      return i;
  }
  return -1;
}

static access access_of(nvcu_em *e, const nvf_stmt *s) {
  nvm_dtype t = e->k->param[s->buf].type;
  access a = {
    .s = s, .l = nvc_layout_of(&e->r, s), .type = nvg_real_of(t), .parts = nvg_parts(t), .n = 1, .digit = -1
  };
  int64_t n = nvc_hint(&e->r, s, NVF_HINT_VEC, 0);
  a.memory = a.type == NVM_BOOL ? "unsigned char" : nvcu_type(a.type);
  a.pairs = a.parts == 2 && n > 0;
  if (n > 1 && n * nvg_size(t) <= 16 && !(n & (n - 1))) a.digit = vector_digit(e, s, a.l, (int)n);
  if (a.digit >= 0) {
    a.n = (int)n;
    a.step = nvc_item_step(a.l, a.digit);
  }
  a.whole = !s->where || nvc_hint(&e->r, s, NVF_HINT_WHOLE, 0) != 0;
  return a;
}

void nvcu_find_steady(nvcu_em *e, const nvc_seq *q) {
  for (int i = 0; q && i < q->n; i++) {
    for (int j = 0; j < q->nest[i]->s.n; j++) {
      const nvf_stmt *s = q->nest[i]->s.at[j];
      if ((s->op != NVF_LOAD && s->op != NVF_STORE) || !s->where) continue;
      access a = access_of(e, s);
      if (a.digit < 0 || !a.whole) continue;
      for (uint64_t set = nvc_relation_set(&e->r, s->where); set; set &= set - 1)
        e->steady[__builtin_ctzll(set)] = (nvcu_steady){ a.l->d[a.digit], a.n };
    }
    nvcu_find_steady(e, q->nest[i]->body);
    nvcu_find_steady(e, q->nest[i]->other);
  }
}

int nvcu_is_plain(const nvc_seq *q) {
  int plain = q->n == 1 && !q->nest[0]->solo;
  for (int i = 0; plain && i < q->nest[0]->s.n; i++) {
    const nvf_stmt *s = q->nest[0]->s.at[i];
    if (s->op == NVF_LOAD) plain = !nvc_has(s->map, NVF_TILE) && !(s->where && s->where->ntile);
    else plain = s->op == NVF_MAP || s->op == NVF_STORE;
  }
  return plain;
}

int nvcu_alike(const nvcu_em *e, int q, const nvf_layout *l, int item) {
  const nvcu_steady *s = q >= 0 ? &e->steady[q] : NULL;
  int step = 1;
  if (!s || !s->n || !l) return item;
  for (int i = l->n - 1; i >= 0; i--) {
    const nvf_digit *d = &l->d[i];
    if (d->axis == s->d.axis && d->stride == s->d.stride && d->extent == s->d.extent && d->level == 'i')
      return item - nvc_digit_value(l, i, item) % s->n * step;
    if (d->level == 'i') step *= d->extent;
  }
  return item;
}

static int is_first(const access *a, int item) {
  return a->digit < 0 || nvc_digit_value(a->l, a->digit, item) % a->n == 0;
}
static int vector_type(const access *a) { return a->n * (a->pairs ? 2 : 1) > 1; }

/* Does the address depend on checked indices? If a check of the thread has failed, none of them is used. */
static int is_checked(const nvcu_em *e, const access *a) { return e->checks && nvc_has(a->s->map, NVF_TILE); }

static const char *mask_text(nvcu_em *e, const access *a, int item) {
  return nvcu_and(e, nvcu_cond(e, a->s->where, a->l, item), is_checked(e, a) ? "sound" : NULL);
}

static int count_members(const access *a) { return a->words ? a->n / 2 : a->n * (a->pairs ? 2 : 1); }

static const char *pack_values(nvcu_em *e, const access *a) {
  return nvcu_text(e, "nv_pack<%s, %d>", a->words ? "unsigned" : a->memory, count_members(a));
}

static const char *address_text(nvcu_em *e, const access *a, int item, int part) {
  nvcu_xv at = nvcu_index(e, a->s->map, a->l, item);
  if (a->parts == 2) {
    at = nvcu_times(e, at, 2);
    at.k += part;
  }
  return nvcu_text(e, "p_%s + %s", e->k->param[a->s->buf].name, nvcu_index_text(e, &at));
}

/* Text of "the condition holds for the whole tile", if it has relations only; "" if it cannot be said. */
static const char *all_hold(nvcu_em *e, const access *a) {
  const nvf_cond *c = a->s->where;
  for (int i = 0; i < c->nrel; i++)
    if (nvc_relation(&e->r, &c->rel[i]) < 0) return "";
  return c->ntile || is_checked(e, a) ? "" : nvcu_all_hold(e, nvc_relation_set(&e->r, c), a->l);
}

/* ---- loads */
static const char *fetch_text(nvcu_em *e, const access *a, int item, int part, int wide) {
  const char *p = address_text(e, a, item, part);
  int stream = nvc_hint(&e->r, a->s, NVF_HINT_STREAM, 0) != 0;
  if (wide)
    return nvcu_text(e, stream ? "nv_load_stream((const %s *)(%s))" : "*(const %s *)(%s)", pack_values(e, a), p);
  return nvcu_text(e, stream ? "nv_load_stream(%s)" : "*(%s)", p);
}

static uint64_t other_bits(const access *a) { return a->s->has_other ? a->s->other : 0; }

static const char *in_register(nvcu_em *e, const access *a, const char *v) {
  return a->type == NVM_BOOL ? nvcu_text(e, "(%s != 0)", v) : v;
}

static void load_single(nvcu_em *e, const access *a, int item) {
  const char *m = mask_text(e, a, item);
  for (int j = 0; j < a->s->nout; j++) {
    const char *v = in_register(e, a, fetch_text(e, a, item, j, 0));
    if (m) v = nvcu_text(e, "%s ? %s : %s", m, v, nvcu_const(e, a->type, other_bits(a)));
    nvcu_define(e, a->s->out[j], item, v);
  }
}

/* Binds the elements of a pack to items. */
static void bind_pack(nvcu_em *e, const access *a, int item, const char *q) {
  for (int i = 0; i < a->n; i++)
    for (int j = 0; j < a->s->nout; j++) {
      const char *v = a->words ? nvcu_text(e, "(%s)(%s.at[%d]%s)", a->memory, q, i / 2, i % 2 ? " >> 16" : "")
                               : in_register(e, a, nvcu_text(e, "%s.at[%d]", q, i * a->s->nout + j));
      if (e->r.tile[a->s->out[j]].mutable) nvcu_define(e, a->s->out[j], item + i * a->step, v);
      else nvcu_bind(e, a->s->out[j], item + i * a->step, v);
    }
}

static const char *all_of(nvcu_em *e, const access *a, const char *v) {
  nvb_text t = { .arena = e->a };
  for (int i = 0; i < count_members(a); i++) nvb_print(&t, "%s%s", i ? ", " : "", v);
  return nvcu_text(e, "{%s}", t.s);
}

static const char *fill_text(nvcu_em *e, const access *a) {
  uint64_t bits = a->type == NVM_BOOL ? other_bits(a) & 1 : other_bits(a);
  if (a->words) return all_of(e, a, nvcu_const(e, NVM_U32, (bits & 0xffff) * 0x10001));
  return all_of(e, a, nvcu_const(e, a->type == NVM_BOOL ? NVM_U8 : a->type, bits));
}

/* Is the value of an element whose condition fails never stored? Then it may be any register's content: zeros would be
   instructions that wait for the loads. */
static int is_unseen(nvcu_em *e, const access *a) {
  const nvf_cond *c = a->s->where;
  for (int i = 0; i < c->nrel; i++) {
    int q = nvc_relation(&e->r, &c->rel[i]);
    if (q < 0 || !(e->nest->carries >> q & 1)) return 0;
  }
  return e->plain && a->type == NVM_F32 && !a->s->has_other;
}

static void load_vector(nvcu_em *e, const access *a, int item) {
  const char *m = mask_text(e, a, item), *q = nvcu_fresh(e, "q"), *v = fetch_text(e, a, item, 0, 1);
  if (!m) nvcu_line(e, "const %s %s = %s;", pack_values(e, a), q, v);
  else if (is_unseen(e, a)) {
    nvcu_line(e, "%s %s;", pack_values(e, a), q);
    nvcu_line(e, "if (%s) %s = %s;", m, q, v);
    nvcu_line(e, "else %s = %s;", q, all_of(e, a, "nv_undefined()"));
  } else {
    nvcu_line(e, "%s %s = %s;", pack_values(e, a), q, fill_text(e, a));
    nvcu_line(e, "if (%s) %s = %s;", m, q, v);
  }
  bind_pack(e, a, item, q);
}

static void load_parts(nvcu_em *e, const access *a, int item, const char *q) { /* elements of a pack, one by one */
  for (int i = 0; i < a->n; i++) {
    const char *m = mask_text(e, a, item + i * a->step);
    for (int j = 0; j < (a->pairs ? 2 : 1); j++) {
      const char *v = fetch_text(e, a, item + i * a->step, j, 0);
      nvcu_line(e, "%s%s%s%s.at[%d] = %s;", m ? "if (" : "", m ? m : "", m ? ") " : "", q, i * (a->pairs ? 2 : 1) + j,
                v);
    }
  }
}

static const char *every_mask(nvcu_em *e, const access *a, int item) {
  const char *all = NULL;
  for (int i = 0; i < a->n; i++) all = nvcu_and(e, all, mask_text(e, a, item + i * a->step));
  return all ? all : "true";
}

/* Loads with a condition that may differ within an access: vectors if it holds for all elements, else one by one. */
static void load_either(nvcu_em *e, const access *a) {
  int n = nvc_items(a->l);
  const char **q = NVB_NEWN(e->a, const char *, n), *full = all_hold(e, a);
  for (int i = 0; i < n; i++)
    if (is_first(a, i) && nvcu_now(e, a->l, i))
      nvcu_line(e, "%s %s = %s;", pack_values(e, a), q[i] = nvcu_fresh(e, "q"), fill_text(e, a));
  for (int side = 0; side < 2 && *full; side++) {
    nvcu_open(e, side ? "else" : "if (%s)", full);
    for (int i = 0; i < n; i++) {
      if (!q[i]) continue;
      if (side) load_parts(e, a, i, q[i]);
      else nvcu_line(e, "%s = %s;", q[i], fetch_text(e, a, i, 0, 1));
    }
    nvcu_close(e);
  }
  for (int i = 0; i < n; i++) {
    if (!q[i]) continue;
    if (!*full) {
      nvcu_open(e, "if (%s)", every_mask(e, a, i));
      nvcu_line(e, "%s = %s;", q[i], fetch_text(e, a, i, 0, 1));
      nvcu_close(e);
      nvcu_open(e, "else");
      load_parts(e, a, i, q[i]);
      nvcu_close(e);
    }
    bind_pack(e, a, i, q[i]);
  }
}

static int moves_with_block(const nvcu_em *e, const nvf_expr *x) { /* does x depend on the last block coordinate? */
  return x->kind >= NVF_ADD ? moves_with_block(e, x->a) || moves_with_block(e, x->b)
                            : x->kind == NVF_GRID && x->id == e->part->ngrid - 1;
}

/* Text of "this lane prefetches": one lane for each 128 bytes; NULL: all lanes. */
static const char *asks_text(nvcu_em *e, const access *a) {
  int64_t bytes = nvg_size(a->type) * a->parts;
  for (int i = 0; i < a->l->n; i++) {
    const nvf_digit *d = &a->l->d[i];
    int64_t c;
    if (d->level != 'l' || d->pstride != 1 || !nvc_coef(&e->r, a->s->map, d->axis, &c) || c != 1) continue;
    int64_t sharing = 128 / (bytes * d->stride > 128 ? 128 : bytes * d->stride);
    if (sharing > d->extent) sharing = d->extent;
    if (sharing > 1) return nvcu_text(e, "(lane & %d) == 0", (int)sharing - 1);
  }
  return NULL;
}

/* Bytes of a block's elements, if they follow each other in memory from the first one on; 0: they do not. */
static int64_t bytes_in_a_row(const nvcu_em *e, const access *a) {
  int64_t run = 1, all = 1, c;
  for (int i = 0; i < a->l->n; i++) {
    all *= a->l->d[i].extent;
    for (int j = 0; j < a->l->n; j++) {
      const nvf_digit *d = &a->l->d[j];
      if (d->extent == 1 || !nvc_coef(&e->r, a->s->map, d->axis, &c) || c * d->stride != run) continue;
      run *= d->extent;
      break;
    }
  }
  return run == all ? all * nvg_size(a->type) * a->parts : 0;
}

/* What one instruction of the block's first thread can prefetch; 0: each thread prefetches its own elements. */
static int64_t bulk_bytes(const nvcu_em *e, const access *a) {
  int bulk = nvc_hint(&e->r, a->s, NVF_HINT_BULK, 0) && e->target->arch >= 90 && !a->s->where;
  int64_t bytes = bulk ? bytes_in_a_row(e, a) : 0;
  return bytes % 16 ? 0 : bytes;
}

/* Prefetches into L2 the elements that the block `ahead` blocks later will load. */
static void emit_prefetch(nvcu_em *e, const access *a, int64_t ahead) {
  uint64_t known = e->known;
  const nvf_part *p = e->part;
  int64_t bulk = bulk_bytes(e, a);
  const char *all = bulk ? "threadIdx.x == 0" : asks_text(e, a),
             *extent = nvcu_uniform(e, p->grid[p->ngrid - 1].extent);
  all = nvcu_and(e, all ? nvcu_text(e, "(%s)", all) : NULL,
                 nvcu_text(e, "(%s < %s - %lld)", e->grid[p->ngrid - 1], extent, (long long)ahead));
  nvcu_open(e, "if (%s)", all);
  e->prefetch = ahead;
  e->known = 0;
  if (bulk) nvcu_line(e, "nv_prefetch_bulk(%s, %lld);", address_text(e, a, 0, 0), (long long)bulk);
  for (int i = 0; i < nvc_items(a->l) && !bulk; i++) {
    if (!is_first(a, i)) continue;
    const char *m = mask_text(e, a, i), *at = address_text(e, a, i, 0);
    nvcu_line(e, "%s%s%snv_prefetch(%s);", m ? "if (" : "", m ? m : "", m ? ") " : "", at);
  }
  e->prefetch = 0;
  e->known = known;
  nvcu_close(e);
}

static void emit_load(nvcu_em *e, access *a) {
  const char *full = vector_type(a) && !a->whole ? all_hold(e, a) : NULL;
  if (full) {
    load_either(e, a);
    return;
  }
  a->words = a->n > 1 && nvg_size(a->type) == 2;
  for (int i = 0; i < nvc_items(a->l); i++) {
    if (!nvcu_now(e, a->l, i)) continue;
    if (vector_type(a) && is_first(a, i)) load_vector(e, a, i);
    if (!vector_type(a)) load_single(e, a, i);
  }
}

/* The prefetch for a later block follows this block's own loads. */
void nvcu_load(nvcu_em *e, const nvf_stmt *s) {
  access a = access_of(e, s);
  int64_t ahead = nvc_hint(&e->r, s, NVF_HINT_PREFETCH, 0);
  emit_load(e, &a);
  if (ahead > 0 && e->r.nest_of[s->id] == e->nest && moves_with_block(e, s->map) && !nvc_has(s->map, NVF_TILE))
    emit_prefetch(e, &a, ahead);
}

/* ---- stores */
static const char *to_memory(nvcu_em *e, const access *a, int item, int part) {
  const char *v = nvcu_tile_at(e, a->s->in[part], a->l, item);
  return a->type == NVM_BOOL ? nvcu_text(e, "(unsigned char)%s", v) : v;
}

static void put_store(nvcu_em *e, const access *a, const char *m, const char *p, const char *v) {
  int stream = nvc_hint(&e->r, a->s, NVF_HINT_NT, 0) != 0;
  const char *when = m ? nvcu_text(e, "if (%s) ", m) : "";
  if (stream) nvcu_line(e, "%snv_store_stream(%s, %s);", when, p, v);
  else nvcu_line(e, "%s*(%s) = %s;", when, p, v);
}

static void store_single(nvcu_em *e, const access *a, int item) {
  const char *m = mask_text(e, a, item);
  for (int j = 0; j < a->parts; j++) {
    const char *p = address_text(e, a, item, j);
    put_store(e, a, m, p, nvcu_text(e, "(%s)%s", a->memory, to_memory(e, a, item, j)));
  }
}

static void store_vector(nvcu_em *e, const access *a, int item, const char *m) {
  nvb_text t = { .arena = e->a };
  const char *type = pack_values(e, a), *p = address_text(e, a, item, 0);
  for (int i = 0; i < a->n; i++)
    for (int j = 0; j < a->parts; j++) nvb_print(&t, "%s%s", t.n ? ", " : "", to_memory(e, a, item + i * a->step, j));
  put_store(e, a, m, nvcu_text(e, "(%s *)(%s)", type, p), nvcu_text(e, "%s{%s}", type, t.s));
}

static void store_parts(nvcu_em *e, const access *a, int item) {
  for (int i = 0; i < a->n; i++) store_single(e, a, item + i * a->step);
}

static void store_either(nvcu_em *e, const access *a, const char *full) {
  for (int side = 0; side < 2 && *full; side++) {
    nvcu_open(e, side ? "else" : "if (%s)", full);
    for (int i = 0; i < nvc_items(a->l); i++)
      if (is_first(a, i) && nvcu_now(e, a->l, i)) side ? store_parts(e, a, i) : store_vector(e, a, i, NULL);
    nvcu_close(e);
  }
  for (int i = 0; i < nvc_items(a->l) && !*full; i++) {
    if (!is_first(a, i) || !nvcu_now(e, a->l, i)) continue;
    const char *m = every_mask(e, a, i);
    nvcu_open(e, "if (%s)", m);
    store_vector(e, a, i, NULL);
    nvcu_close(e);
    nvcu_open(e, "else");
    store_parts(e, a, i);
    nvcu_close(e);
  }
}

void nvcu_emit_load(nvcu_em *e, const nvf_stmt *s) {
  if (!nvcu_tma_load(e, s)) nvcu_load(e, s);
}

void nvcu_emit_store(nvcu_em *e, const nvf_stmt *s) {
  if (nvcu_tma_store(e, s)) return;
  access a = access_of(e, s);
  const char *once = nvcu_first_copy(e, a.l), *full = vector_type(&a) && !a.whole ? all_hold(e, &a) : NULL;
  if (once) nvcu_open(e, "if (%s)", once);
  if (full) store_either(e, &a, full);
  for (int i = 0; i < nvc_items(a.l) && !full; i++) {
    if (!nvcu_now(e, a.l, i)) continue;
    if (vector_type(&a) && is_first(&a, i)) store_vector(e, &a, i, mask_text(e, &a, i));
    if (!vector_type(&a)) store_single(e, &a, i);
  }
  if (once) nvcu_close(e);
}

void nvcu_emit_atomic_max(nvcu_em *e, const nvf_stmt *s) {
  access a = access_of(e, s);
  const char *once = nvcu_first_copy(e, a.l);
  for (int i = 0; i < nvc_items(a.l); i++) {
    const char *m = nvcu_and(e, once, mask_text(e, &a, i)), *p = address_text(e, &a, i, 0);
    nvcu_line(e, "%s%s%satomicMax(%s, %s);", m ? "if (" : "", m ? m : "", m ? ") " : "", p,
              nvcu_tile_at(e, s->in[0], a.l, i));
  }
}
