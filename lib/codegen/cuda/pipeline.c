/* Multistage cp.async pipeline: a loop with the hint `stages` copies its tiles to shared memory stages - 1 iterations
   ahead of their use. One barrier per iteration says that the oldest stage has arrived for all threads and that the
   stage before it is free again. Decides which loads run ahead: a tile that is computed before it is put to shared
   memory stays in the body. Never decides where elements lie within a stage (swizzle.c). */
#include "codegen/cuda/tensor_core.h"

typedef struct ahead { const nvf_stmt *load, *put; } ahead;

typedef NVB_VEC(ahead) aheads;

static void find_loads(nvcu_em *e, const nvc_seq *q, aheads *a) {
  for (int i = 0; i < q->n; i++)
    for (int j = 0; j < q->nest[i]->s.n; j++) {
      const nvf_stmt *put = q->nest[i]->s.at[j];
      if (put->op != NVF_PUT || !nvcu_tensor_user(e, put->out[0])) continue;
      const nvf_stmt *load = e->r.tile[put->in[0]].def;
      ahead x = { load, put };
      if (nvcu_copies(e, load, put)) NVB_PUSH(e->a, *a, x);
    }
}

static void copy_all(nvcu_em *e, const nvf_stmt *s, const ahead *a, int n, const char *stage, const char *hi) {
  const char *var = e->var[s->var];
  e->var[s->var] = "ahead";
  nvcu_open(e, "if (ahead < %s)", hi);
  for (int i = 0; i < n; i++) {
    const nvcu_rows *r = e->tile[a[i].put->out[0]].rows;
    const char *to = nvcu_fresh(e, "to");
    nvcu_line(e, "char *const %s = %s + %s * %lld;", to, nvcu_smem_at(e, e->tile[a[i].put->out[0]].smem, 0, "char"),
              stage, (long long)r->bytes);
    nvcu_rows_copy(e, a[i].load, a[i].put, to);
  }
  nvcu_close(e);
  nvcu_line(e, "nv_cp_async_commit();");
  e->var[s->var] = var;
}

int nvcu_staged_loop(nvcu_em *e, nvc_nest *r, const char *lo, const char *hi, const char *step) {
  const nvf_stmt *s = r->s.at[0];
  int stages = (int)nvc_hint(&e->r, s, NVF_HINT_STAGES, 1);
  aheads all = { 0 };
  if (stages < 2) return 0;
  find_loads(e, r->body, &all);
  const ahead *a = all.at;
  int n = all.n;
  for (int i = 0; i < n; i++) {
    nvcu_rows_new(e, a[i].put, stages);
    nvcu_may_write(e, e->tile[a[i].put->out[0]].smem);
    e->done[a[i].load->id] = e->done[a[i].put->id] = 1;
  }
  if (!n) return 0;
  nvcu_open(e, "%s", "");
  nvcu_line(e, "ix ahead = %s;", lo);
  const char *stage = nvcu_for(e, "0", nvcu_text(e, "%d", stages - 1), "1", 1);
  copy_all(e, s, a, n, stage, hi);
  nvcu_line(e, "ahead += %s;", step);
  nvcu_close(e);
  for (int i = 0; i < n; i++) nvcu_wrote(e, e->tile[a[i].put->out[0]].smem);
  nvcu_line(e, "int here = 0, there = %d;", stages - 1);
  e->var[s->var] = nvcu_for(e, lo, hi, step, 1);
  nvcu_loop_opened(e, 1);
  nvcu_line(e, "nv_cp_async_wait<%d>();", stages - 2);
  nvcu_barrier(e);
  copy_all(e, s, a, n, "there", hi);
  nvcu_line(e, "ahead += %s;", step);
  nvcu_line(e, "there = there + 1 == %d ? 0 : there + 1;", stages);
  for (int i = 0; i < n; i++) {
    nvcu_rows *rows = e->tile[a[i].put->out[0]].rows;
    const char *first = nvcu_smem_at(e, e->tile[a[i].put->out[0]].smem, 0, "char");
    rows->at = nvcu_let(e, "char *", nvcu_text(e, "%s + here * %lld", first, (long long)rows->bytes));
  }
  nvcu_seq(e, r->body);
  nvcu_line(e, "here = here + 1 == %d ? 0 : here + 1;", stages);
  nvcu_close(e);
  nvcu_line(e, "nv_cp_async_wait<0>();");
  nvcu_close(e);
  return 1;
}
