/* Lays out the shared tiles that tensor cores read. A row has up to 128 contiguous bytes; longer rows are stored as
   several such columns of all rows. The 16-byte units of a row are swizzled by an exclusive or with the row's number,
   as TMA does for 32, 64 and 128 bytes, so that 8 rows of a column are free of bank conflicts; for elements of 8 bytes
   the rows within each 8 are permuted first. Decides addresses and the accesses that fill a tile, from registers or by
   cp.async; never how MMAs use it. */
#include "codegen/cuda/tensor_core.h"
#include "frag/dtype.h"

enum { WIDEST = 16 };

/* The contraction on tensor cores that reads the tile; NULL: there is none. */
const nvf_stmt *nvcu_tensor_user(const nvcu_em *e, int tile) {
  const nvc_ints *u = &e->r.tile[tile].users;
  for (int i = 0; i < u->n; i++) {
    const nvf_stmt *s = e->r.stmt[u->at[i]];
    if (s->op == NVF_CONTRACT && nvc_hint(&e->r, s, NVF_HINT_MMA, 0)) return s;
  }
  return NULL;
}

nvcu_rows *nvcu_rows_of(nvcu_em *e, const nvf_stmt *put) {
  const nvf_layout *l = &e->t->tile[put->in[0]];
  nvcu_rows *r = NVB_NEW(e->a, nvcu_rows);
  r->type = e->k->tile[put->out[0]].type;
  r->size = nvg_size(r->type);
  int axis[2], n = 0;
  for (int i = 0; i < put->norder; i++) {
    if (nvcu_apart(l, put->order[i])) continue;
    if (n == 2)
      nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the operands of tensor cores must be shared tiles of two axes");
    axis[n++] = put->order[i];
  }
  if (n < 2)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the operands of tensor cores must be shared tiles of two axes");
  r->row = axis[0];
  r->col = axis[1];
  r->rows = (int)nvf_extent(l, r->row);
  int64_t bytes = nvf_extent(l, r->col) * r->size;
  r->swizzle = bytes < 128 ? (int)bytes : 128;
  if ((r->swizzle & (r->swizzle - 1)) || r->swizzle < 32 || bytes % r->swizzle || r->rows % 8)
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] a shared tile of %d rows of %lld bytes does not suit tensor cores",
              r->rows, (long long)bytes);
  r->bytes = bytes * r->rows;
  e->tensor = 1;
  return e->tile[put->out[0]].rows = r;
}

nvcu_smem *nvcu_rows_smem(nvcu_em *e, int64_t bytes) {
  e->shared = (e->shared + 1023) & ~(int64_t)1023;
  return nvcu_smem_new(e, bytes, 0);
}

void nvcu_rows_new(nvcu_em *e, const nvf_stmt *put, int stages) {
  nvcu_rows *r = nvcu_rows_of(e, put);
  nvcu_smem *smem = e->tile[put->out[0]].smem = nvcu_rows_smem(e, r->bytes * stages);
  r->at = nvcu_smem_at(e, smem, 0, "char");
}

const char *nvcu_rows_offset(nvcu_em *e, const nvcu_rows *r, const char *row, const char *byte) {
  row = r->size == 8 ? nvcu_text(e, "nv_f64_row(%s)", row) : row;
  return nvcu_text(e, "nv_swizzled<%d, %d>(%s, %s)", r->rows, r->swizzle, row, byte);
}

static const char *offset_of(nvcu_em *e, const nvcu_rows *r, const nvf_layout *l, int item) {
  nvcu_xv row = nvcu_coordinate(e, r->row, l, item), byte = nvcu_times(e, nvcu_coordinate(e, r->col, l, item), r->size);
  return nvcu_rows_offset(e, r, nvcu_index_text(e, &row), nvcu_index_text(e, &byte));
}

/* The item digit along the columns, whose first n items form one access of up to `most` bytes; -1: there is none. */
static int column_digit(const nvcu_rows *r, const nvf_layout *l, int most, int *n, int *step) {
  *n = 1;
  *step = 1;
  for (int i = l->n; i-- > 0;) {
    const nvf_digit *d = &l->d[i];
    if (d->level != 'i') continue;
    if (d->axis == r->col && d->stride == 1 && d->extent > 1) {
      while (d->extent % (2 * *n) == 0 && 2 * *n * r->size <= most) *n *= 2;
      return i;
    }
    *step *= d->extent;
  }
  return -1;
}

static int begins_copy(const nvf_layout *l, int digit, int n, int item) {
  return digit < 0 || nvc_digit_value(l, digit, item) % n == 0;
}

/* ---- from registers, and back */
void nvcu_rows_put(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *l = &e->t->tile[s->in[0]];
  nvcu_tile *t = &e->tile[s->out[0]];
  const char *type = nvcu_type(e->k->tile[s->out[0]].type);
  if (!t->rows) nvcu_rows_new(e, s, 1);
  nvcu_may_write(e, t->smem);
  int n, step, digit = column_digit(t->rows, l, WIDEST, &n, &step), open = nvcu_open_loops(e, l);
  for (int item = 0; item < nvc_items(l); item++) {
    nvb_text x = { .arena = e->a };
    if (!begins_copy(l, digit, n, item)) continue;
    const char *at = offset_of(e, t->rows, l, item);
    for (int i = 0; i < n; i++) nvb_print(&x, "%s%s", i ? ", " : "", nvcu_tile_item(e, s->in[0], item + i * step));
    nvcu_line(e, "*(nv_pack<%s, %d> *)(%s + %s) = {{%s}};", type, n, t->rows->at, at, x.s);
  }
  nvcu_close_loops(e, open);
  nvcu_wrote(e, t->smem);
}

void nvcu_rows_get(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *l = &e->t->tile[s->out[0]];
  nvcu_tile *t = &e->tile[s->in[0]];
  const char *type = nvcu_type(e->k->tile[s->in[0]].type);
  nvcu_may_read(e, t->smem);
  int open = nvcu_open_loops(e, l);
  for (int item = 0; item < nvc_items(l); item++)
    nvcu_define(e, s->out[0], item,
                nvcu_text(e, "*(const %s *)(%s + %s)", type, t->rows->at, offset_of(e, t->rows, l, item)));
  nvcu_close_loops(e, open);
  nvcu_read(e, t->smem);
}

/* ---- copies from global to shared memory without registers */
int nvcu_copies(const nvcu_em *e, const nvf_stmt *load, const nvf_stmt *put) {
  return load && load->op == NVF_LOAD && load->nout == 1 && !load->other && e->r.tile[put->in[0]].users.n == 1 &&
         (!load->where || !load->where->ntile) && !nvc_has(load->map, NVF_TILE) && !e->r.tile[put->in[0]].mutable &&
         e->r.nest_of[load->id] == e->r.nest_of[put->id];
}

static const char *holds_text(nvcu_em *e, const nvf_stmt *load, const nvf_layout *l, int item, int n, int step) {
  const char *all = NULL;
  if (nvc_hint(&e->r, load, NVF_HINT_WHOLE, 0)) n = 1;
  for (int i = 0; i < n; i++) all = nvcu_and(e, all, nvcu_cond(e, load->where, l, item + i * step));
  return all ? all : "true";
}

static const char *address_text(nvcu_em *e, const nvf_stmt *load, const nvf_layout *l, int item) {
  nvcu_xv at = nvcu_index(e, load->map, l, item);
  return nvcu_text(e, "p_%s + %s", e->k->param[load->buf].name, nvcu_index_text(e, &at));
}

/* Elements of one cp.async; below 4 bytes there is none, and each element is moved by itself. */
static int elements_per_copy(const nvcu_em *e, const nvf_stmt *load, const nvcu_rows *r, const nvf_layout *l, int *step,
                             int *digit) {
  int n;
  int64_t vec = nvc_hint(&e->r, load, NVF_HINT_VEC, 1);
  *digit = column_digit(r, l, vec * r->size > WIDEST ? WIDEST : (int)vec * r->size, &n, step);
  return n * r->size < 4 ? 1 : n;
}

void nvcu_rows_copy(nvcu_em *e, const nvf_stmt *load, const nvf_stmt *put, const char *to) {
  const nvf_layout *l = &e->t->tile[put->in[0]];
  const nvcu_rows *r = e->tile[put->out[0]].rows;
  const char *type = nvcu_type(e->k->tile[put->in[0]].type);
  int step, digit, n = elements_per_copy(e, load, r, l, &step, &digit), open = nvcu_open_loops(e, l);
  for (int item = 0; item < nvc_items(l); item++) {
    if (!begins_copy(l, digit, n, item)) continue;
    const char *at = nvcu_text(e, "%s + %s", to, offset_of(e, r, l, item));
    const char *ok = holds_text(e, load, l, item, n, step), *from = address_text(e, load, l, item);
    int single = n > 1 && !nvc_hint(&e->r, load, NVF_HINT_WHOLE, 0) && load->where;
    if (n * r->size < 4) {
      nvcu_line(e, "*(%s *)(%s) = %s ? *(%s) : (%s)0;", type, at, ok, from, type);
      continue;
    }
    if (single) nvcu_open(e, "if (%s)", ok);
    nvcu_line(e, "nv_cp_async<%d>(%s, %s, %s);", n * r->size, at, from, single ? "true" : ok);
    if (!single) continue;
    nvcu_close(e);
    nvcu_open(e, "else");
    for (int i = 0; i < n; i++)
      nvcu_line(e, "((%s *)(%s))[%d] = %s ? *(%s) : (%s)0;", type, at, i, holds_text(e, load, l, item + i * step, 1, 0),
                address_text(e, load, l, item + i * step), type);
    nvcu_close(e);
  }
  nvcu_close_loops(e, open);
}
