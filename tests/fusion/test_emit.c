/* The promise of planner.md: texts name sizes and never show them, so random shapes of one program end in few texts. */
#include "hints.h"
#include "oracle.h"

static uint64_t seen[512];
static int nseen;

static void note(const nvf_plan *p) {
  for (int i = 0; i < p->nstep; i++) {
    nvb_hash h = nvf_kernel_hash(p->step[i].k, p->step[i].s);
    int j = 0;
    while (j < nseen && seen[j] != h.lo) j++;
    if (j < nseen) continue;
    seen[nseen++] = h.lo;
    if (getenv("VERBOSE")) {
      nvb_text t = { .arena = p->arena };
      nvf_kernel_print(&t, p->step[i].k);
      nvf_schedule_print(&t, p->step[i].k, p->step[i].s, "cpu");
      puts(nvb_text_get(&t));
    }
  }
}

static int64_t size(int most) { /* log-uniform */
  int64_t n = 1;
  for (int bits = rand() % (most + 1); bits; bits--) n = 2 * n + (rand() & 1);
  return n;
}

static void chain(maker *m) {
  int64_t shape[4];
  int rank = 1 + rand() % 4, in[3];
  for (int d = 0; d < rank; d++) shape[d] = size(24 / rank);
  for (int i = 0; i < 3; i++) in[i] = m_leaf(m, NVM_F32, rank, shape, NULL);
  m_out(m, m_2(m, "add", m_2(m, "multiply", in[0], in[1]), m_1(m, "exp", in[2])));
}

static void softmax(maker *m) {
  int64_t shape[3];
  int rank = 2 + rand() % 2;
  for (int d = 0; d < rank; d++) shape[d] = 2 + size(d == rank - 1 ? 13 : 5);
  int x = m_leaf(m, NVM_F32, rank, shape, NULL);
  int e = m_1(m, "exp", m_2(m, "subtract", x, m_red(m, "maximum", x, rank - 1, 1)));
  m_out(m, m_2(m, "divide", e, m_red(m, "add", e, rank - 1, 1)));
}

static void column_sum(maker *m) {
  int64_t shape[2] = { 2 + size(13), 16 + size(11) };
  m_out(m, m_red(m, "add", m_leaf(m, NVM_F32, 2, shape, NULL), 0, 1));
}

static void product(maker *m) {
  int64_t n[3] = { 2 + size(12), 2 + size(12), 2 + size(12) };
  int d = m_product(m, m_leaf(m, NVM_F32, 2, (int64_t[]){ n[0], n[2] }, NULL),
                    m_leaf(m, NVM_F32, 2, (int64_t[]){ n[2], n[1] }, NULL));
  m_out(m, m_1(m, "exp", m_2(m, "add", d, m_leaf(m, NVM_F32, 1, n + 1, NULL))));
}

static void count(nvb_arena *a, void *arg) {
  void (*make)(maker *) = *(void (**)(maker *))arg;
  nseen = 0;
  srand(11);
  for (int i = 0; i < 200; i++) {
    maker m = { .a = a };
    make(&m);
    note(nvf_fuse(a, m_graph(&m), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 }));
  }
}

static int texts(void (*make)(maker *)) {
  in_arena(count, &make, NULL);
  return nseen;
}

START_TEST(chains_of_any_shape) { ck_assert_int_le(texts(chain), 4); }
END_TEST
/* of rows from 9 to 128 elements one for each 8 lengths */
START_TEST(softmax_over_the_last_axis) { ck_assert_int_le(texts(softmax), 12 + 15); }
END_TEST
/* blocks: 5 heights, 3 widths, 3 depths */
START_TEST(products_of_any_shape) { ck_assert_int_le(texts(product), 45); }
END_TEST
START_TEST(sums_of_columns) { ck_assert_int_le(texts(column_sum), 60); }
END_TEST

/* On a CPU short rows state between which multiples of 8 their length lies, where masks cost time. */
static void rows(nvb_arena *a, void *arg) {
  static const struct {
    const char *machine;
    int64_t rows, n, least, most;
  } at[] = {
    { "cpu16", 100000, 25, 25, 32 },    { "cpu16", 100000, 32, 25, 32 }, { "cpu16", 100000, 33, 33, 40 },
    { "cpu16", 100000, 128, 121, 128 }, { "cpu16", 100000, 129, 0, 0 },  { "cpu16", 100000, 8, 0, 0 },
    { "cpu16", 20, 25, 0, 0 },          { "h200", 100000, 25, 0, 0 },
  };
  (void)arg;
  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    maker m = { .a = a };
    m_out(&m, m_red(&m, "add", m_leaf(&m, NVM_F32, 2, (int64_t[]){ at[i].rows, at[i].n }, NULL), 1, 1));
    const nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find(at[i].machine), &(nvf_options){ .fuse = 1 });
    const nvf_kernel *k = p->step[0].k;
    int64_t least = 0, most = 0;
    for (int j = 0; j < k->nparam; j++) {
      least += k->param[j].least;
      most += k->param[j].most;
    }
    ck_assert_msg(least == at[i].least && most == at[i].most, "%d rows of %d on %s: %d, %d", (int)at[i].rows,
                  (int)at[i].n, at[i].machine, (int)least, (int)most);
  }
}
START_TEST(bounds_of_short_rows) { in_arena(rows, NULL, NULL); }
END_TEST

/* A block tests all of its indices, also those behind the end, so it is not much longer than a short axis. */
static void gathers(nvb_arena *a, void *arg) {
  (void)arg;
  for (int64_t n = 2; n < 100000; n += 1 + n / 3) {
    maker m = { .a = a };
    int in[] = { m_leaf(&m, NVM_F32, 1, (int64_t[]){ 7 }, NULL), m_leaf(&m, NVM_I64, 1, &n, NULL) };
    nvg_val gather = { .kind = NVG_VGATHER, .dtype = NVM_F32, .name = "take" };
    m_out(&m, m_1(&m, "exp", m_add(&m, gather, 1, &n, 2, in, 2, (int64_t[]){ 0, 0 })));
    const nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
    note(p);
    int64_t tile = p->step[0].grid[0].tile;
    ck_assert_msg(p->step[0].nchecked == 1 && tile <= 4096 && (tile <= 64 || tile < 4 * n), "%d: blocks of %d", (int)n,
                  (int)tile);
  }
}
START_TEST(checks_of_any_length) {
  nseen = 0;
  in_arena(gathers, NULL, NULL);
  ck_assert_int_le(nseen, 4);
}
END_TEST

/* What depends on the machine: whether stores stream where much is computed (a vector must be a line), and by what a
   division is done (many vectors must share the divisor). */
static void machine(nvb_arena *a, void *arg) {
  static const struct {
    const char *name;
    int width, axis, streams, shared;
  } at[] = {
    { "cpu16", 16, 1, 1, 1 },
    { "cpu16", 8, 1, 0, 1 },
    { "cpu16", 16, 0, 1, 0 },
    { "h200", 32, 1, 1, 0 },
  };
  (void)arg;
  for (int i = 0; i < 4; i++) {
    maker m = { .a = a };
    int x = m_leaf(&m, NVM_F32, 2, (int64_t[]){ 4096, 4096 }, NULL), stores = 0, divisions = 0;
    int y = m_1(&m, "tanh", x);
    m_out(&m, m_1(&m, "tanh", m_2(&m, "divide", y, m_red(&m, "add", y, at[i].axis, 1))));
    nvb_caps c = *nvb_caps_find(at[i].name);
    c.width = at[i].width;
    nvf_plan *p = nvf_fuse(a, m_graph(&m), &c, &(nvf_options){ .fuse = 1 });
    const nvf_step *s = &p->step[p->nstep - 1];
    const nvf_block *b = &s->k->part[0].body;
    for (int j = 0; j < b->n; j++) {
      const nvf_stmt *st = b->s[j];
      int division = st->op == NVF_MAP && !strncmp(st->frag->name, "divide", 6);
      if (st->op == NVF_STORE && at[i].width != 32) ck_assert_int_eq(hint_of(s, st->id, NVF_HINT_NT), at[i].streams);
      if (division) ck_assert_str_eq(st->frag->name, at[i].shared ? "divide_by" : "divide");
      stores += st->op == NVF_STORE;
      divisions += division;
    }
    ck_assert(stores == 1 && divisions == 1);
  }
}
START_TEST(what_the_machine_decides) { in_arena(machine, NULL, NULL); }
END_TEST

/* On a CPU a transform of rows that come from memory and go there is fetched a block ahead, both ways, and streams
   nothing; not rows that a cache holds, nor what a block does not find in one piece, nor where a vector is a line. */
static void fetched(nvb_arena *a, void *arg) {
  static const struct {
    int64_t n[2];
    int width, columns, reads, writes;
  } at[] = {
    { { 4096, 4096 }, 8, 0, 1, 1 }, { { 65536, 256 }, 8, 0, 1, 1 },  { { 16, 4096 }, 8, 0, 0, 0 },
    { { 4096, 4096 }, 8, 1, 0, 1 }, { { 1 << 20, 20 }, 8, 0, 0, 0 },
  };
  (void)arg;
  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    maker m = { .a = a };
    const int64_t *n = at[i].n, *strides = at[i].columns ? (int64_t[]){ 1, n[0] } : NULL;
    nvg_val t = { .kind = NVG_VROUTINE, .op = NVG_OP_DFT, .dtype = NVM_C64, .name = "dft" };
    int x = m_leaf(&m, NVM_C64, 2, n, strides), reads = 0, writes = 0;
    m_out(&m, m_add(&m, t, 2, n, 1, &x, 2, (int64_t[]){ NVG_DFT_FORWARD, n[1] }));
    nvb_caps c = *nvb_caps_find("cpu16");
    c.width = at[i].width;
    const nvf_step *s = nvf_fuse(a, m_graph(&m), &c, &(nvf_options){ .fuse = 1 })->step;
    for (int j = 0; j < s->k->nstmt; j++) {
      const nvf_stmt *st = s->k->stmt[j];
      int ahead = (int)hint_of(s, st->id, NVF_HINT_PREFETCH);
      reads += st->op == NVF_LOAD && ahead == 1;
      writes += st->op == NVF_STORE && ahead == 1;
      if (st->op == NVF_STORE && ahead) ck_assert_int_eq(hint_of(s, st->id, NVF_HINT_NT), 0);
    }
    ck_assert_msg(reads == at[i].reads && writes == at[i].writes, "case %d: %d and %d are fetched", (int)i, reads,
                  writes);
  }
}
START_TEST(transforms_fetch_ahead) { in_arena(fetched, NULL, NULL); }
END_TEST

/* On a CPU lines that are scanned lie side by side where there are as many as lanes: they come as they lie in memory
   and change places with the lanes, both ways. Fewer go one after the other, long ones with lanes along them. */
static void lines(nvb_arena *a, void *arg) {
  static const struct {
    int64_t lines, n;
    int turned, laned;
  } at[] = {
    { 16, 5000, 2, 1 },
    { 4096, 100, 2, 1 },
    { 15, 5000, 0, 1 },
    { 2, 40, 0, 0 },
  };
  (void)arg;
  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    maker m = { .a = a };
    int transposed = 0, laned = 0;
    m_out(&m, m_scan(&m, m_leaf(&m, NVM_F32, 2, (int64_t[]){ at[i].lines, at[i].n }, NULL), 1));
    const nvf_step *s = nvf_fuse(a, m_graph(&m), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 })->step;
    nvf_typed *t = nvf_kernel_check(a, s->k, s->s);
    for (int j = 0; j < s->k->ntile; j++)
      for (int d = 0; d < t->tile[j].n; d++) laned |= t->tile[j].d[d].level == 'l';
    const nvf_block *b = &s->k->part[0].body;
    for (int j = 0; j < b->n; j++) {
      const nvf_block *in = b->s[j]->op == NVF_FOR ? b->s[j]->body : NULL;
      transposed += b->s[j]->op == NVF_RELAYOUT;
      for (int k = 0; in && k < in->n; k++) transposed += in->s[k]->op == NVF_RELAYOUT;
    }
    ck_assert_msg(transposed == at[i].turned && laned == at[i].laned, "%d lines: %d relayouts", (int)at[i].lines,
                  transposed);
  }
}
/* Along both axes of a table: a kernel each, with lanes, on one core too. */
static void both_ways(nvb_arena *a, void *arg) {
  (void)arg;
  nvb_caps one = *nvb_caps_find("cpu16");
  one.cores = 1;
  for (int64_t n = 4; n < 1000; n *= 10) {
    maker m = { .a = a };
    m_out(&m, m_scan(&m, m_scan(&m, m_leaf(&m, NVM_F32, 2, (int64_t[]){ n, n }, NULL), 1), 0));
    ck_assert_int_eq(nvf_fuse(a, m_graph(&m), &one, &(nvf_options){ .fuse = 1 })->nstep, n > 4 ? 2 : 1);
  }
}
START_TEST(scanned_lines) {
  in_arena(lines, NULL, NULL);
  in_arena(both_ways, NULL, NULL);
}
END_TEST

SUITE("texts", what_the_machine_decides, transforms_fetch_ahead, scanned_lines, chains_of_any_shape,
      softmax_over_the_last_axis, bounds_of_short_rows, checks_of_any_length, sums_of_columns, products_of_any_shape)
