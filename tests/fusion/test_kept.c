/* Plans as rows of the disk cache: one that is read back is the plan that was written, and bytes that are no plan of
   the graph read as none, or as one whose every number stays within its memory. */
#include "oracle.h"

static void stencil(maker *m) { /* steps that write a part of an array */
  int u = m_leaf(m, NVM_F32, 2, (int64_t[]){ 12, 9 }, NULL);
  for (int i = 0; i < 5; i++) {
    int v = m_view(m, NVG_VSLICE, u, 2, (int64_t[]){ 10, 7 }, 4, (int64_t[]){ 1, 1, 1, 1 });
    int w = m_view(m, NVG_VSLICE, u, 2, (int64_t[]){ 10, 7 }, 4, (int64_t[]){ 2, 1, 0, 1 });
    int in[2] = { m_2(m, "add", v, m_1(m, "sin", w)), u };
    u = m_add(m, (nvg_val){ .kind = NVG_VPAD, .dtype = NVM_F32, .name = "pad" }, 2, (int64_t[]){ 12, 9 }, 2, in, 2,
              (int64_t[]){ 1, 1 });
  }
  m_out(m, u);
}

static void softmax(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, (int64_t[]){ 40, 37 }, NULL);
  int e = m_1(m, "exp", m_2(m, "subtract", x, m_red(m, "maximum", x, 1, 1)));
  m_out(m, m_2(m, "divide", e, m_red(m, "add", e, 1, 1)));
  m_out(m, m_red(m, "add", m_turn(m, e), 0, 1));
}

static void chains(maker *m) { /* of several texts and outputs */
  int x = m_leaf(m, NVM_F32, 1, (int64_t[]){ 1000 }, NULL), y = m_leaf(m, NVM_F32, 1, (int64_t[]){ 1000 }, NULL);
  for (int i = 0; i < 4; i++) {
    y = m_scan(m, m_2(m, "multiply", m_1(m, "sin", y), x), 0);
    m_out(m, m_2(m, "add", y, m_const(m, 0.5F)));
  }
}
static void (*const made[])(maker *) = { stencil, softmax, chains };

static void same_plan(const nvf_plan *p, const nvf_plan *q) {
  ck_assert(p->nstep == q->nstep && p->nbuf == q->nbuf && p->temp_bytes == q->temp_bytes);
  for (int i = 0; i < p->nbuf; i++) {
    const nvf_buf *b = &p->buf[i], *c = &q->buf[i];
    ck_assert(b->kind == c->kind && b->id == c->id && b->bytes == c->bytes && b->donor == c->donor);
    ck_assert(b->kind != NVF_BTEMP || b->offset == c->offset);
  }
  for (int i = 0; i < p->nstep; i++) {
    const nvf_step *s = &p->step[i], *t = &q->step[i];
    ck_assert(s->blocks == t->blocks && s->grain == t->grain && s->flops == t->flops && s->time == t->time);
    ck_assert(s->bytes_read == t->bytes_read && s->bytes_written == t->bytes_written && s->nchecked == t->nchecked);
    ck_assert_str_eq(s->hero, t->hero);
    ck_assert_int_eq(s->k->nparam, t->k->nparam);
    for (int j = 0; j < s->k->nparam; j++) {
      ck_assert(s->bind[j].kind == t->bind[j].kind && s->bind[j].buf == t->bind[j].buf);
      ck_assert(s->bind[j].offset == t->bind[j].offset && s->bind[j].leaf == t->bind[j].leaf);
      ck_assert(s->bind[j].kind == NVF_BUFFER || s->bind[j].bits == t->bind[j].bits);
    }
  }
}

static void round_trip(nvb_arena *a, void *arg) {
  maker m = { .a = a };
  (*(void (*const *)(maker *))arg)(&m);
  const nvg_graph *g = m_graph(&m);
  const nvf_plan *p = nvf_fuse(a, g, nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  size_t n, again;
  const void *bytes = nvf_plan_write(a, p, &n);
  nvf_plan *q = nvf_plan_read(a, bytes, n, g);
  ck_assert(bytes && q);
  same_plan(p, q);
  const void *more = nvf_plan_write(a, q, &again);
  ck_assert(again == n && !memcmp(bytes, more, n));
  for (int i = 0; i < q->nstep; i++) {
    q->step[i].k = nvf_kernel_parse(a, q->step[i].text, "kept");
    q->step[i].s = nvf_schedule_find(q->step[i].k, "cpu");
  }
  char **leaf = random_leaves(&m, g, 1), **want = run_plan(&m, p, leaf), **out = run_plan(&m, q, leaf);
  for (int o = 0; o < g->nout; o++) {
    const nvg_val *v = &g->v[g->out[o]];
    ck_assert_mem_eq(out[o], want[o], (size_t)(v->size * nvg_size(v->dtype)));
  }
}
START_TEST(a_plan_that_is_read_back_is_the_plan) { in_arena(round_trip, &made[_i], NULL); }
END_TEST

static void stays_within(const nvf_plan *p) {
  for (int i = 0; i < p->nbuf; i++) {
    const nvf_buf *b = &p->buf[i];
    ck_assert(b->bytes >= 0 && b->id >= 0 && b->donor < p->g->nleaf);
    if (b->kind == NVF_BLEAF) ck_assert_int_lt(b->id, p->g->nleaf);
    else if (b->kind == NVF_BOUT) ck_assert_int_lt(b->id, p->g->nout);
    else ck_assert(b->offset >= 0 && b->offset <= p->temp_bytes && b->bytes <= p->temp_bytes - b->offset);
  }
  for (int i = 0; i < p->nstep; i++)
    for (int j = 0; j < p->step[i].k->nparam; j++) {
      const nvf_bind *b = &p->step[i].bind[j];
      ck_assert(b->kind == p->step[i].k->param[j].kind && b->offset >= 0);
      if (b->kind != NVF_BUFFER) continue;
      ck_assert(b->buf >= 0 && b->buf < p->nbuf);
      ck_assert_int_le(b->offset, p->buf[b->buf].bytes);
    }
}

static void damages(nvb_arena *a, void *arg) {
  maker m = { .a = a };
  (*(void (*const *)(maker *))arg)(&m);
  const nvg_graph *g = m_graph(&m);
  size_t n;
  const unsigned char *bytes =
      nvf_plan_write(a, nvf_fuse(a, g, nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 }), &n);
  for (size_t short_of = 0; short_of < n; short_of += 1 + n / 500) ck_assert(!nvf_plan_read(a, bytes, short_of, g));
  int none = 0;
  for (int round = 0; round < 4000; round++) {
    unsigned char *other = nvb_dup(a, bytes, n);
    for (int k = 1 + rand() % 3; k > 0; k--) other[(size_t)rand() % n] ^= (unsigned char)(1 << rand() % 8);
    const nvf_plan *p = nvf_plan_read(a, other, n, g);
    if (p) stays_within(p);
    none += !p;
  }
  ck_assert_int_gt(none, 100);
}
START_TEST(damaged_bytes_are_no_plan_or_stay_within_memory) { in_arena(damages, &made[_i], NULL); }
END_TEST

static void others(nvb_arena *a, void *arg) {
  (void)arg;
  maker m = { .a = a }, n = { .a = a };
  softmax(&m);
  chains(&n);
  size_t bytes;
  const nvf_options o = { .fuse = 1 };
  const void *row = nvf_plan_write(a, nvf_fuse(a, m_graph(&m), nvb_caps_find("cpu16"), &o), &bytes);
  ck_assert(!nvf_plan_read(a, row, bytes, m_graph(&n)));
  ck_assert(!nvf_plan_write(a, nvf_fuse(a, m_graph(&m), nvb_caps_find("h200"), &o), &bytes));
}
START_TEST(the_plan_of_another_graph_or_for_a_gpu_is_none) { in_arena(others, NULL, NULL); }
END_TEST

/* Memory that ends at any allocation while the plan is kept is no failure of the evaluation. */
static void short_of_memory(nvb_arena *a, void *arg) {
  maker m = { .a = a };
  const nvb_caps *caps = nvb_caps_find("cpu16");
  (void)arg;
  softmax(&m);
  nvf_plan *p = nvf_fuse(a, m_graph(&m), caps, &(nvf_options){ .fuse = 1 });
  for (int64_t n = 1; n <= 8; n++) {
    nvb_fail_alloc(n, 1);
    for (int i = 0; i < 64; i++) nvf_plan_keep(p, (nvb_hash){ 0 }, caps); /* past the end of the arena's block */
    nvb_fail_alloc(0, 0);
    ck_assert_str_eq(nvb_message(), "");
  }
}
START_TEST(a_plan_that_cannot_be_kept_is_no_failure) { in_arena(short_of_memory, NULL, NULL); }
END_TEST

SUITE("kept plans", EACH(a_plan_that_is_read_back_is_the_plan, made),
      EACH(damaged_bytes_are_no_plan_or_stay_within_memory, made), the_plan_of_another_graph_or_for_a_gpu_is_none,
      a_plan_that_cannot_be_kept_is_no_failure)
