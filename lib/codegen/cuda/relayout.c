/* Moves between layouts through shared memory: relayout, put and get, contraction of shared tiles without tensor cores;
   also the transform of item axes. Addresses are linear in the digits, so that those of items are constants; pads are
   chosen by counting bank conflicts. Decides addresses, pads and the widths of accesses; never those of operands for
   tensor cores (swizzle.c, mma.c). */
#include "codegen/cuda/tensor_core.h"
#include <string.h>
#include "frag/dtype.h"
#include "kernel/dft.h"

enum {
  WIDEST = 16,               /* bytes of an access, at most */
  BANKS = 32,                /* banks of 4 bytes */
  VIEWS = 32,                /* layouts that access one buffer, at most */
  DEEP = 8,                  /* iterations of a contraction that are unrolled */
  CELLS = 2 * NVF_MAX_DIGITS /* cells of axes that are split, and one for each other axis */
};

/* A cell is a part of an axis index that no layout splits. An element's address is the sum of cell value * step, in
   scalars; the CTA of the cluster that has it is the sum of cell value * block. */
typedef struct cell {
  int axis;
  int64_t stride, extent, step, block;
} cell;
typedef struct nvcu_addresses {
  struct nvcu_addresses *next;
  const nvf_part *part;
  int n;
  cell c[CELLS];   /* slowest first */
  int group, size; /* scalars per element, bytes per scalar */
  int nview;
  const nvf_layout *view[VIEWS];
  int64_t scalars, most; /* size of the buffer, and its limit for pads; most 0: no limit */
} nvcu_addresses;

/* ---- addresses */
static int do_overlap(const cell *c, const nvf_digit *d) {
  return d->axis == c->axis && d->extent > 1 && d->stride < c->stride * c->extent && c->stride < d->stride * d->extent;
}

/* What digit d adds to the cell's address when its value is v. */
static int64_t part_of_digit(const cell *c, const nvf_digit *d, int64_t v) {
  int64_t part = d->stride >= c->stride ? v * (d->stride / c->stride) : v / (c->stride / d->stride);
  return part % c->extent * c->step;
}

static int64_t address_of_lane(const nvcu_addresses *m, const nvf_layout *l, int lane) {
  int64_t at = 0;
  for (int i = 0; i < l->n; i++)
    for (int k = 0; k < m->n && l->d[i].level == 'l'; k++)
      if (do_overlap(&m->c[k], &l->d[i]))
        at += part_of_digit(&m->c[k], &l->d[i], lane / l->d[i].pstride % l->d[i].extent);
  return at;
}

/* The number of a thread's items of l that are contiguous and aligned, up to one access; *digit: their item digit. */
static int vector_length(const nvcu_addresses *m, const nvf_layout *l, int *digit) {
  int run = 1, cell_of = 0;
  *digit = -1;
  for (int i = 0; i < l->n; i++)
    for (int k = 0; k < m->n && *digit < 0; k++)
      if (l->d[i].level == 'i' && do_overlap(&m->c[k], &l->d[i]) && m->c[k].step == m->group &&
          l->d[i].stride >= m->c[k].stride && part_of_digit(&m->c[k], &l->d[i], 1) == m->group)
        *digit = i, cell_of = k;
  if (*digit < 0) return 1;
  const nvf_digit *d = &l->d[*digit];
  while (2 * run * m->group * m->size <= WIDEST && d->extent % (2 * run) == 0 && m->c[cell_of].extent % (2 * run) == 0)
    run *= 2;
  for (int i = 0; i < l->n; i++)
    for (int k = 0; k < m->n; k++) {
      if (!do_overlap(&m->c[k], &l->d[i])) continue;
      /* the digit's value where the cell's next digit begins */
      int64_t v = i == *digit ? run : 1, next = m->c[k].stride / l->d[i].stride;
      int64_t by = part_of_digit(&m->c[k], &l->d[i], v < next ? next : v);
      while (by % (run * m->group)) run /= 2;
    }
  for (int k = 0; k < m->n; k++) { /* a loop walks the axes that l lacks */
    int walked = 1;
    for (int i = 0; i < l->n; i++) walked &= l->d[i].axis != m->c[k].axis;
    while (walked && m->c[k].step % (run * m->group)) run /= 2;
  }
  return run;
}

/* Bank wavefronts of one access to all items of l: 128 bytes each at best. */
static int64_t count_requests(const nvcu_addresses *m, const nvf_layout *l) {
  int digit, bytes = vector_length(m, l, &digit) * m->group * m->size, together = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  int64_t sum = 0;
  for (int first = 0; first < 32; first += together) {
    int64_t word[32 * WIDEST / 4];
    int n = 0, most = 0, load[BANKS] = { 0 };
    for (int lane = first; lane < first + together; lane++)
      for (int b = 0; b < bytes; b += 4) {
        int64_t w = (address_of_lane(m, l, lane) * m->size + b) / 4;
        int known = 0;
        for (int i = 0; i < n; i++) known |= word[i] == w;
        if (known) continue;
        word[n++] = w;
        if (++load[w % BANKS] > most) most = load[w % BANKS];
      }
    sum += most;
  }
  return sum * nvc_items(l) * m->group * m->size / bytes;
}

/* ---- pads */
static void give_steps(nvcu_addresses *m, const int *pad) {
  int64_t step = m->group;
  for (int k = m->n; k-- > 0;) {
    m->c[k].step = m->c[k].block ? 0 : step;
    if (!m->c[k].block) step = (step * m->c[k].extent + pad[k] * m->group);
  }
  m->scalars = 0;
  for (int k = 0; k < m->n; k++) m->scalars += (m->c[k].extent - 1) * m->c[k].step;
  m->scalars += m->group;
}

static int64_t price_of(nvcu_addresses *m, const int *pad) {
  int64_t sum = 0;
  give_steps(m, pad);
  for (int i = 0; i < m->nview; i++) sum += count_requests(m, m->view[i]);
  return sum * (1 << 20) + m->scalars;
}

static int64_t least_requests(const nvcu_addresses *m) {
  int64_t sum = 0;
  for (int i = 0; i < m->nview; i++) sum += ((int64_t)nvc_items(m->view[i]) * m->group * m->size * 32 + 127) / 128;
  return sum;
}

/* Chooses the pad after each cell, cell by cell and in pairs, as long as that saves wavefronts. */
static void choose_pads(nvcu_addresses *m) {
  static const int some[] = { 0, 1, 2, 4, 8, 16 };
  enum { SOME = sizeof some / sizeof *some };
  int pad[CELLS] = { 0 }, better = 1;
  int64_t best = price_of(m, pad), least = least_requests(m);
  while (better && best >> 20 > least) {
    better = 0;
    for (int a = 1; a < m->n; a++)
      for (int b = a; b < m->n; b++)
        for (int x = 0; x < SOME; x++)
          for (int y = 0; y < (a == b ? 1 : SOME); y++) {
            int pa = pad[a], pb = pad[b];
            pad[b] = some[y];
            pad[a] = some[x];
            int64_t p = price_of(m, pad);
            int is = p < best && (!m->most || m->scalars <= m->most);
            better |= is;
            if (is) best = p;
            else pad[a] = pa, pad[b] = pb;
          }
  }
  give_steps(m, pad);
}

/* Splits the axis into cells that no layout splits further; one cell if the digits do not nest. */
static void split_axis(nvcu_addresses *m, int axis, int64_t extent) {
  int64_t bound[2 * VIEWS * NVF_MAX_DIGITS + 2] = { extent };
  int n = 1;
  for (int v = 0; v < m->nview; v++)
    for (int i = 0; i < m->view[v]->n; i++) {
      const nvf_digit *d = &m->view[v]->d[i];
      int at = 0;
      if (d->axis != axis || d->extent == 1) continue;
      while (at < n && bound[at] > d->stride) at++;
      if (at < n && bound[at] == d->stride) continue;
      memmove(&bound[at + 1], &bound[at], sizeof *bound * (size_t)(n++ - at));
      bound[at] = d->stride;
    }
  if (bound[n - 1] != 1) bound[n++] = 1;
  for (int i = 0; i + 1 < n; i++)
    if (bound[i] % bound[i + 1] || m->n + n > NVF_MAX_DIGITS) bound[1] = 1, n = 2;
  for (int i = 0; i + 1 < n; i++) m->c[m->n++] = (cell){ axis, bound[i + 1], bound[i] / bound[i + 1], 0, 0 };
}

static void add_view(nvcu_addresses *m, const nvf_layout *l) {
  for (int i = 0; i < m->nview; i++)
    if (nvf_layout_eq(m->view[i], l)) return;
  if (m->nview < VIEWS) m->view[m->nview++] = l;
}

/* ---- text of addresses */
static nvcu_xv address_value(nvcu_em *e, const nvcu_addresses *m, const nvf_layout *l, int item) {
  nvcu_xv at = { 0 };
  for (int i = 0; i < l->n; i++)
    for (int k = 0; k < m->n; k++) {
      const cell *c = &m->c[k];
      const nvf_digit *d = &l->d[i];
      if (!do_overlap(c, d)) continue;
      nvcu_xv v = nvcu_digit(e, l, i, item);
      if (!v.base) {
        at.k += part_of_digit(c, d, v.k);
        continue;
      }
      int64_t by = d->stride >= c->stride ? 1 : c->stride / d->stride;
      if (by > 1 || (d->stride < c->stride && c->extent * by < d->extent)) {
        const char *t = nvcu_index_text(e, &v);
        if (by > 1) t = nvcu_text(e, "%s / %lld", t, (long long)by);
        if (c->extent * by < d->extent) t = nvcu_text(e, "%s %% %lld", t, (long long)c->extent);
        v = (nvcu_xv){ .base = nvcu_let(e, "ix", t), .divisor = 1, .natural = 1 };
      } else if (d->stride == c->stride && d->extent > c->extent) {
        v = (nvcu_xv){ .base =
                           nvcu_let(e, "ix", nvcu_text(e, "%s %% %lld", nvcu_index_text(e, &v), (long long)c->extent)),
                       .divisor = 1,
                       .natural = 1 };
      }
      at = nvcu_add(e, at, nvcu_times(e, v, d->stride > c->stride ? d->stride / c->stride * c->step : c->step), 1);
    }
  return at;
}

/* The address of the buffer in the CTA that has the item, which may be another one of the cluster. */
static const char *smem_of(nvcu_em *e, const nvcu_addresses *m, const char *workspace, const char *type,
                           const nvf_layout *l, int item) {
  nvcu_addresses of = *m;
  int apart = 0;
  for (int k = 0; k < of.n; k++) apart |= (of.c[k].step = of.c[k].block) != 0;
  if (!apart) return workspace;
  nvcu_xv x = address_value(e, &of, l, item);
  return nvcu_let(e, nvcu_text(e, "%s *", type),
                  nvcu_text(e, "nv_peer_shared(%s, %s)", workspace, nvcu_index_text(e, &x)));
}

/* One access: `n` items of l, first, first + step ..., of each tile of the group. */
typedef struct access {
  const char *at;
  int n, first, step;
} access;

static access access_at(nvcu_em *e, const nvcu_addresses *m, const char *workspace, const nvf_layout *l, int item,
                        int n, int digit, nvcu_xv more) {
  access a = { .n = n, .first = item, .step = digit < 0 ? 1 : nvc_item_step(l, digit) };
  nvcu_xv x = nvcu_add(e, address_value(e, m, l, item), more, 1);
  a.at = nvcu_text(e, "%s[%s]", workspace, nvcu_index_text(e, &x));
  return a;
}

static const char *pack_text(nvcu_em *e, const char *type, int n, const char *at, int reads) {
  return n == 1 ? at : nvcu_text(e, "*(%snv_pack<%s, %d> *)&%s", reads ? "const " : "", type, n, at);
}

/* Does the item of l begin an access? */
static int begins_access(const nvf_layout *l, int item, int n, int digit) {
  return digit < 0 || nvc_digit_value(l, digit, item) % n == 0;
}

/* Writes all items of l; v: [item][scalar of the element]. */
static void write_items(nvcu_em *e, const nvcu_addresses *m, const char *workspace, nvm_dtype t, const nvf_layout *l,
                        const char *const *v) {
  int digit, n = vector_length(m, l, &digit);
  for (int item = 0; item < nvc_items(l); item++) {
    if (!begins_access(l, item, n, digit)) continue;
    access a = access_at(e, m, workspace, l, item, n, digit, (nvcu_xv){ 0 });
    nvb_text x = { .arena = e->a };
    for (int i = 0; i < n; i++)
      for (int j = 0; j < m->group; j++) nvb_print(&x, "%s%s", x.n ? ", " : "", v[(item + i * a.step) * m->group + j]);
    nvcu_line(e, n * m->group == 1 ? "%s = %s;" : "%s = {{%s}};", pack_text(e, nvcu_type(t), n * m->group, a.at, 0),
              x.s);
  }
}

/* Reads one access; out: the names of its scalars. */
static void read_access(nvcu_em *e, const nvcu_addresses *m, const access *a, const char *type, const char **out) {
  int n = a->n * m->group;
  const char *name = nvcu_fresh(e, "s");
  if (n == 1) nvcu_line(e, "const %s %s = %s;", type, name, a->at);
  else nvcu_line(e, "const nv_pack<%s, %d> %s = %s;", type, n, name, pack_text(e, type, n, a->at, 1));
  for (int i = 0; i < n; i++) out[i] = n == 1 ? name : nvcu_text(e, "%s.at[%d]", name, i);
}

static void read_items(nvcu_em *e, const nvcu_addresses *m, const char *workspace, nvm_dtype t, const nvf_layout *l,
                       const char **v) {
  int digit, n = vector_length(m, l, &digit);
  const char *got[WIDEST];
  for (int item = 0; item < nvc_items(l); item++) {
    if (!begins_access(l, item, n, digit)) continue;
    access a = access_at(e, m, smem_of(e, m, workspace, nvcu_type(t), l, item), l, item, n, digit, (nvcu_xv){ 0 });
    read_access(e, m, &a, nvcu_type(t), got);
    for (int i = 0; i < n * m->group; i++) v[(item + i / m->group * a.step) * m->group + i % m->group] = got[i];
  }
}

int nvcu_open_loops(nvcu_em *e, const nvf_layout *l) {
  int open = e->nloop;
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    if (!nvc_looped(d) || nvcu_loop_value(e, d)) continue;
    const char *v = nvcu_for(e, "0", nvcu_text(e, "%d", (int)d->extent), "1", 0);
    e->loop[e->nloop++] = (nvcu_loop){ d->axis, d->extent, d->stride, v };
  }
  return open;
}
void nvcu_close_loops(nvcu_em *e, int open) {
  for (; e->nloop > open; e->nloop--) nvcu_close(e);
}

/* Writes `group` tiles of layout l, whose values alternate in memory. */
static void write_tiles(nvcu_em *e, const nvcu_addresses *m, const char *workspace, const int *tile,
                        const nvf_layout *l) {
  int open = nvcu_open_loops(e, l), n = nvc_items(l) * m->group;
  const char **v = NVB_NEWN(e->a, const char *, n);
  for (int i = 0; i < n; i++) v[i] = nvcu_tile_item(e, tile[i % m->group], i / m->group);
  write_items(e, m, workspace, e->k->tile[tile[0]].type, l, v);
  nvcu_close_loops(e, open);
}

static void read_tiles(nvcu_em *e, const nvcu_addresses *m, const char *workspace, const int *tile,
                       const nvf_layout *l) {
  int open = nvcu_open_loops(e, l), n = nvc_items(l) * m->group;
  const char **v = NVB_NEWN(e->a, const char *, n);
  read_items(e, m, workspace, e->k->tile[tile[0]].type, l, v);
  for (int i = 0; i < n; i++) nvcu_define(e, tile[i % m->group], i / m->group, v[i]);
  nvcu_close_loops(e, open);
}

/* ---- relayout */
static void each_stmt(const nvf_block *b, void (*see)(nvcu_em *, void *, const nvf_stmt *), nvcu_em *e, void *arg) {
  for (int i = 0; b && i < b->n; i++) {
    see(e, arg, b->s[i]);
    each_stmt(b->s[i]->body, see, e, arg);
    each_stmt(b->s[i]->other_body, see, e, arg);
  }
}

/* 1: two tiles of one type move as one element of two scalars. */
static int group_of(const nvcu_em *e, const nvf_stmt *s) {
  return s->nin == 2 && e->k->tile[s->in[0]].type == e->k->tile[s->in[1]].type;
}

static int same_axes(const nvcu_addresses *m, const nvf_layout *l) {
  int axes[NVF_MAX_DIGITS], n = nvf_layout_axes(l, axes), most[NVF_MAX_DIGITS], nm = nvf_layout_axes(m->view[0], most);
  int same = n == nm;
  for (int i = 0; i < n; i++) same &= nvf_extent(l, axes[i]) == nvf_extent(m->view[0], axes[i]);
  return same;
}

static void see_relayout(nvcu_em *e, void *arg, const nvf_stmt *s) {
  nvcu_addresses *m = arg;
  if (s->op != NVF_RELAYOUT || group_of(e, s) + 1 != m->group || nvg_size(e->k->tile[s->in[0]].type) != m->size) return;
  const nvf_layout *from = &e->t->tile[s->in[0]], *to = &e->t->tile[s->out[0]];
  if (nvf_layout_eq(from, to) || !same_axes(m, from)) return;
  add_view(m, from);
  add_view(m, to);
}

/* The addresses of a relayout, which all relayouts of the part over the same axes share. */
static nvcu_addresses *relayout_map(nvcu_em *e, const nvf_stmt *s, int tile, int group) {
  const nvf_layout *from = &e->t->tile[s->in[0]];
  int size = nvg_size(e->k->tile[tile].type), axes[NVF_MAX_DIGITS];
  for (nvcu_addresses *m = e->maps; m; m = m->next)
    if (m->part == e->part && m->group == group && m->size == size && same_axes(m, from)) {
      int known = 0;
      for (int i = 0; i < m->nview; i++) known |= nvf_layout_eq(m->view[i], from);
      if (known) return m;
    }
  nvcu_addresses *m = NVB_NEW(e->a, nvcu_addresses);
  *m = (nvcu_addresses){ .next = e->maps, .part = e->part, .group = group, .size = size };
  add_view(m, from);
  add_view(m, &e->t->tile[s->out[0]]);
  each_stmt(&e->part->body, see_relayout, e, m);
  for (int i = 0, n = nvf_layout_axes(from, axes); i < n; i++) split_axis(m, axes[i], nvf_extent(from, axes[i]));
  choose_pads(m);
  return e->maps = m;
}

static int same_level(const nvf_layout *a, const nvf_layout *b, char level) {
  for (int way = 0; way < 2; way++) {
    const nvf_layout *x = way ? a : b, *y = way ? b : a;
    for (int i = 0; i < x->n; i++) {
      const nvf_digit *d = &x->d[i];
      int found = d->level != level || d->extent == 1;
      for (int j = 0; j < y->n && !found; j++)
        found = y->d[j].level == level && y->d[j].axis == d->axis && y->d[j].extent == d->extent &&
                y->d[j].stride == d->stride && y->d[j].pstride == d->pstride;
      if (!found) return 0;
    }
  }
  return 1;
}

/* The item of `to` with the same elements as an item of `from`, if the layouts differ in items only. */
static int same_item(const nvf_layout *from, const nvf_layout *to, int item) {
  int at = 0;
  for (int i = 0; i < to->n; i++) {
    int64_t x = 0;
    if (to->d[i].level != 'i') continue;
    for (int j = 0; j < from->n; j++)
      if (from->d[j].level == 'i' && from->d[j].axis == to->d[i].axis)
        x += nvc_digit_value(from, j, item) * from->d[j].stride;
    at = at * to->d[i].extent + (int)(x / to->d[i].stride % to->d[i].extent);
  }
  return at;
}

static void rename_items(nvcu_em *e, const nvf_stmt *s, const nvf_layout *from, const nvf_layout *to) {
  for (int k = 0; k < s->nin; k++)
    for (int i = 0; i < nvc_items(to); i++)
      nvcu_define(e, s->out[k], i, nvcu_tile_item(e, s->in[k], same_item(to, from, i)));
}

/* Does every thread overwrite only what it alone has read? */
static int own_items(nvcu_em *e, const nvcu_smem *r, const nvcu_addresses *m, const nvf_layout *from) {
  return e->got && m == e->got_map && r->read_at == e->got_at && r->written_at < e->got_at && e->loop_at < e->got_at &&
         nvf_layout_eq(e->got, from) && !nvcu_first_copy(e, from);
}

static void exchange_group(nvcu_em *e, const nvf_stmt *s, int first, int group, const nvf_layout *from,
                           const nvf_layout *to) {
  nvcu_addresses *m = relayout_map(e, s, s->in[first], group);
  nvcu_smem *r = nvcu_smem_exchange(e, m->scalars * m->size);
  const char *at = nvcu_smem_at(e, r, 0, nvcu_type(e->k->tile[s->in[first]].type));
  int within = e->warps > 1 && same_level(from, to, 'w') && !nvc_has_loops(from) && !nvc_has_loops(to);
  if (!own_items(e, r, m, from)) nvcu_may_write(e, r);
  write_tiles(e, m, at, &s->in[first], from);
  nvcu_wrote(e, r);
  if (within) nvcu_line(e, "__syncwarp();");
  else nvcu_may_read(e, r);
  read_tiles(e, m, at, &s->out[first], to);
  nvcu_read(e, r);
  e->got = to;
  e->got_at = r->read_at;
  e->got_map = m;
}

void nvcu_transfer(nvcu_em *e, nvm_dtype t, const nvf_layout *from, nvcu_values put, const nvf_layout *to,
                   nvcu_values get, void *arg) {
  nvcu_addresses m = { .part = e->part, .group = 1, .size = nvg_size(t) };
  const char **v = NVB_NEWN(e->a, const char *, nvc_items(from)), **w = NVB_NEWN(e->a, const char *, nvc_items(to));
  int axes[NVF_MAX_DIGITS], n = nvf_layout_axes(from, axes);
  add_view(&m, from);
  add_view(&m, to);
  for (int i = 0; i < n; i++) split_axis(&m, axes[i], nvf_extent(from, axes[i]));
  choose_pads(&m);
  nvcu_smem *r = nvcu_smem_exchange(e, m.scalars * m.size);
  const char *at = nvcu_smem_at(e, r, 0, nvcu_type(t));
  nvcu_may_write(e, r);
  int open = nvcu_open_loops(e, from);
  put(e, arg, v);
  write_items(e, &m, at, t, from, v);
  nvcu_close_loops(e, open);
  nvcu_wrote(e, r);
  nvcu_may_read(e, r);
  open = nvcu_open_loops(e, to);
  read_items(e, &m, at, t, to, w);
  get(e, arg, w);
  nvcu_close_loops(e, open);
  nvcu_read(e, r);
}

/* ---- between the CTAs of a cluster */
int nvcu_apart(const nvf_layout *l, int axis) {
  int digits = 0;
  for (int i = 0; i < l->n; i++) {
    if (l->d[i].axis != axis || l->d[i].extent == 1) continue;
    if (l->d[i].level != 'c') return 0;
    digits++;
  }
  return digits;
}

static nvcu_addresses *cluster_map(nvcu_em *e, nvm_dtype t, const nvf_layout *from, const nvf_layout *to) {
  nvcu_addresses *m = NVB_NEW(e->a, nvcu_addresses);
  int axes[NVF_MAX_DIGITS], n = nvf_layout_axes(from, axes);
  *m = (nvcu_addresses){ .part = e->part, .group = 1, .size = nvg_size(t) };
  add_view(m, from);
  add_view(m, to);
  for (int i = 0; i < n; i++) split_axis(m, axes[i], nvf_extent(from, axes[i]));
  for (int i = 0; i < from->n; i++)
    for (int k = 0; k < m->n && from->d[i].level == 'c'; k++) {
      const nvf_digit *d = &from->d[i];
      cell *c = &m->c[k];
      if (!do_overlap(c, d)) continue;
      if (c->stride % d->stride || d->stride * d->extent % (c->stride * c->extent))
        nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] the digits of a cluster's blocks do not nest");
      c->block = c->stride / d->stride * d->pstride;
    }
  give_steps(m, (int[CELLS]){ 0 });
  m->most = m->scalars + m->scalars / 8;
  choose_pads(m);
  return m;
}

/* Each CTA writes its elements, the cluster synchronises, and each CTA reads what it needs through DSMEM. That happens
   once in a kernel: the buffers serve this statement only, and the CTAs end together. */
static void exchange_blocks(nvcu_em *e, const nvf_stmt *s, const nvf_layout *from, const nvf_layout *to) {
  nvcu_addresses **m = NVB_NEWN(e->a, nvcu_addresses *, s->nin);
  const char **at = NVB_NEWN(e->a, const char *, s->nin);
  if (e->nloop || e->nested || nvc_has_loops(from) || nvc_has_loops(to))
    nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[cuda] statement %d moves values between blocks inside a loop", s->id);
  for (int k = 0; k < s->nin; k++) {
    nvm_dtype t = e->k->tile[s->in[k]].type;
    m[k] = cluster_map(e, t, from, to);
    at[k] = nvcu_smem_at(e, nvcu_smem_new(e, m[k]->scalars * m[k]->size, 1), 0, nvcu_type(t));
    write_tiles(e, m[k], at[k], &s->in[k], from);
  }
  nvcu_cluster_barrier(e);
  for (int k = 0; k < s->nin; k++) read_tiles(e, m[k], at[k], &s->out[k], to);
  e->remote = NVCU_READS;
}

void nvcu_emit_relayout(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *from = &e->t->tile[s->in[0]], *to = &e->t->tile[s->out[0]];
  if (!same_level(from, to, 'c')) {
    exchange_blocks(e, s, from, to);
    return;
  }
  if (same_level(from, to, 'l') && same_level(from, to, 'w') && same_level(from, to, 'I')) {
    rename_items(e, s, from, to);
    return;
  }
  int group = group_of(e, s) + 1;
  for (int k = 0; k < s->nin; k += group) exchange_group(e, s, k, group, from, to);
}

/* ---- put and get */
typedef struct readers {
  int tile;
  nvcu_addresses *m;
} readers;

static void see_reader(nvcu_em *e, void *arg, const nvf_stmt *s) {
  readers *r = arg;
  int axes[NVF_MAX_DIGITS], n = 0;
  if (s->op == NVF_GET && s->in[0] == r->tile) add_view(r->m, &e->t->tile[s->out[0]]);
  if (s->op != NVF_CONTRACT || (s->in[1] != r->tile && s->in[2] != r->tile)) return;
  for (int i = 0; i < r->m->n; i++)
    if (r->m->c[i].axis != s->axis) axes[n++] = r->m->c[i].axis;
  nvf_layout *l = NVB_NEW(e->a, nvf_layout);
  *l = nvf_layout_only(&e->t->tile[s->out[0]], axes, n);
  for (int64_t k = 0; k < nvf_extent(&e->t->tile[r->tile], s->axis) && r->m->nview < VIEWS; k += 4)
    r->m->view[r->m->nview++] = l;
}

static void map_shared(nvcu_em *e, const nvf_stmt *put) {
  nvcu_tile *t = &e->tile[put->out[0]];
  const nvf_layout *l = &e->t->tile[put->in[0]];
  nvcu_addresses *m = NVB_NEW(e->a, nvcu_addresses);
  readers r = { put->out[0], m };
  *m = (nvcu_addresses){ .part = e->part, .group = 1, .size = nvg_size(e->k->tile[put->out[0]].type) };
  for (int i = 0; i < put->norder; i++)
    if (!nvcu_apart(l, put->order[i])) m->c[m->n++] = (cell){ put->order[i], 1, nvf_extent(l, put->order[i]), 0, 0 };
  add_view(m, l);
  each_stmt(&e->part->body, see_reader, e, &r);
  choose_pads(m);
  t->map = m;
  t->smem = nvcu_smem_new(e, m->scalars * m->size, 0);
}

static const char *shared_tile(nvcu_em *e, int tile) {
  return nvcu_smem_at(e, e->tile[tile].smem, 0, nvcu_type(e->k->tile[tile].type));
}

void nvcu_emit_put(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *l = &e->t->tile[s->in[0]];
  nvcu_tile *t = &e->tile[s->out[0]];
  if (nvcu_tensor_user(e, s->out[0])) {
    if (!nvcu_is_in_registers(e, s)) nvcu_rows_put(e, s);
    return;
  }
  if (!t->map) map_shared(e, s);
  nvcu_may_write(e, t->smem);
  write_tiles(e, t->map, shared_tile(e, s->out[0]), s->in, l);
  nvcu_wrote(e, t->smem);
}

void nvcu_emit_get(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *l = &e->t->tile[s->out[0]];
  nvcu_tile *t = &e->tile[s->in[0]];
  if (t->rows) {
    nvcu_rows_get(e, s);
    return;
  }
  nvcu_may_read(e, t->smem);
  read_tiles(e, t->map, shared_tile(e, s->in[0]), s->out, l);
  nvcu_read(e, t->smem);
}

/* ---- the transform of an item axis */
void nvcu_emit_dft(nvcu_em *e, const nvf_stmt *s) {
  const nvf_layout *l = &e->t->tile[s->out[0]];
  nvf_layout rest = nvf_layout_without(l, s->axis);
  int n = (int)nvf_extent(l, s->axis), parts = s->nin > 1 ? 2 : 1;
  if (!e->frags) e->frags = nvg_fragset_new(e->a);
  const nvg_frag *f = nvf_dft(e->a, e->frags, n, s->sign, nvf_dft_powers(s->nin), e->k->tile[s->in[0]].type);
  for (int r = 0; r < nvc_items(&rest); r++) {
    const char *arg[NVF_DFT_PARAMS], *out[2 * NVF_DFT_MAX] = { 0 };
    int item[NVF_DFT_MAX] = { 0 };
    for (int i = 0; i < nvc_items(l); i++)
      if (nvc_match_item(&rest, l, i) == r) item[nvc_axis_part(l, s->axis, i)] = i;
    for (int q = 0; q < n; q++)
      for (int j = 0; j < parts; j++) arg[parts * q + j] = nvcu_tile_at(e, s->in[j], l, item[q]);
    for (int j = parts; j < s->nin; j++) arg[parts * (n - 1) + j] = nvcu_tile_at(e, s->in[j], l, item[0]);
    nvcu_frag(e, f, arg, out, NULL, 0);
    for (int q = 0; q < n; q++)
      for (int j = 0; j < 2; j++) nvcu_define(e, s->out[j], item[q], out[2 * q + j]);
  }
}

/* ---- contraction: out = acc + sum over the axis, ascending, of A * B. Each iteration reads the elements of A and B
   that the items need. */
typedef struct factor {
  nvf_layout l; /* the sum's layout, limited to the axes of the operand */
  const nvcu_addresses *m;
  const char *at;
  int64_t step; /* scalars from one index of the axis to the next */
  const char *type;
  const nvg_frag *widen; /* conversion to the sum's type; NULL: none */
  const char **v;        /* values by item of l */
} factor;

static factor factor_of(nvcu_em *e, const nvf_stmt *s, int tile) {
  nvm_dtype t = e->k->tile[tile].type, sum = e->k->tile[s->out[0]].type;
  factor f = { .m = e->tile[tile].map, .at = shared_tile(e, tile), .type = nvcu_type(t) };
  f.widen = t == sum ? NULL : nvg_frag_cast(t, sum);
  int axes[NVF_MAX_DIGITS], n = 0;
  for (int i = 0; i < f.m->n; i++) {
    if (f.m->c[i].axis == s->axis) f.step = f.m->c[i].step;
    else axes[n++] = f.m->c[i].axis;
  }
  f.l = nvf_layout_only(&e->t->tile[s->out[0]], axes, n);
  f.v = NVB_NEWN(e->a, const char *, nvc_items(&f.l));
  return f;
}

static void read_operand(nvcu_em *e, factor *f, const char *k) {
  int digit, n = vector_length(f->m, &f->l, &digit);
  const char *v[WIDEST];
  nvcu_xv more = nvcu_times(e, (nvcu_xv){ .base = k, .divisor = 1, .natural = 1 }, f->step);
  for (int item = 0; item < nvc_items(&f->l); item++) {
    if (!begins_access(&f->l, item, n, digit)) continue;
    access a = access_at(e, f->m, f->at, &f->l, item, n, digit, more);
    read_access(e, f->m, &a, f->type, v);
    for (int i = 0; i < n; i++) {
      const char *wide = NULL;
      if (f->widen) nvcu_frag(e, f->widen, &v[i], &wide, NULL, 0);
      f->v[item + i * a.step] = wide ? wide : v[i];
    }
  }
}

void nvcu_emit_contract(nvcu_em *e, const nvf_stmt *s) {
  if (nvc_hint(&e->r, s, NVF_HINT_MMA, 0)) {
    nvcu_mma(e, s);
    return;
  }
  const nvf_layout *l = &e->t->tile[s->out[0]];
  const char *type = nvcu_type(e->k->tile[s->out[0]].type), **sum = NVB_NEWN(e->a, const char *, nvc_items(l));
  int64_t steps = nvf_extent(&e->t->tile[s->in[1]], s->axis),
          deep = nvc_hint(&e->r, s, NVF_HINT_UNROLL, steps < DEEP ? steps : DEEP);
  for (int j = 1; j < 3; j++) nvcu_may_read(e, e->tile[s->in[j]].smem);
  factor a = factor_of(e, s, s->in[1]), b = factor_of(e, s, s->in[2]);
  for (int i = 0; i < nvc_items(l); i++) {
    sum[i] = nvcu_fresh(e, "c");
    nvcu_line(e, "%s %s = %s;", type, sum[i], nvcu_tile_at(e, s->in[0], l, i));
  }
  const char *k = nvcu_for(e, "0", nvcu_text(e, "%lld", (long long)steps), "1", (int)deep);
  read_operand(e, &a, k);
  read_operand(e, &b, k);
  for (int i = 0; i < nvc_items(l); i++)
    nvcu_line(e, "%s = nv_fma(%s, %s, %s);", sum[i], a.v[nvc_match_item(&a.l, l, i)], b.v[nvc_match_item(&b.l, l, i)],
              sum[i]);
  nvcu_close(e);
  for (int j = 1; j < 3; j++) nvcu_read(e, e->tile[s->in[j]].smem);
  for (int i = 0; i < nvc_items(l); i++) nvcu_define(e, s->out[0], i, sum[i]);
}
