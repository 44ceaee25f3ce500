/* Prints a plan: for dumps (every kernel with its schedule) and for people (steps, bytes against the minimum, why each
   edge between steps was not fused). nvf_plan_check tests the invariants of a plan. */
#include "fusion/planner.h"
#include <string.h>

static void print_bytes(nvb_text *t, double b) {
  static const char *const unit[] = { "B", "KB", "MB", "GB", "TB" };
  int u = 0;
  for (; b >= 1000 && u < 4; u++) b /= 1000;
  nvb_print(t, u ? "%.4g %s" : "%.0f %s", b, unit[u]);
}

static void print_time(nvb_text *t, double ns) {
  static const char *const unit[] = { "ns", "us", "ms", "s" };
  int u = 0;
  for (; ns >= 1000 && u < 3; u++) ns /= 1000;
  nvb_print(t, "%.3g %s", ns, unit[u]);
}

const char *nvf_schedule_of(nvb_devkind device) { return device == NVB_CPU ? "cpu" : "cuda"; }

const char *nvf_step_k_partition(const nvf_step *s) {
  for (int i = 0; s->s && i < s->s->nhint; i++) /* a step made only to describe a GEMM has none */
    if (s->s->hint[i].hint == NVF_HINT_STREAM_K) return ", stream-K: the blocks divide the k-tiles of the last tiles";
  return "";
}

void nvf_plan_print(nvb_text *t, const nvf_plan *p) {
  static const char *const kind[] = { [NVF_BLEAF] = "leaf", [NVF_BOUT] = "out", [NVF_BTEMP] = "temp" };
  nvb_print(t, "plan: %d steps, %lld bytes of temporaries\n", p->nstep, (long long)p->temp_bytes);
  for (int i = 0; i < p->nbuf; i++) {
    const nvf_buf *b = &p->buf[i];
    nvb_print(t, "buffer %d: %s", i, kind[b->kind]);
    if (b->kind == NVF_BTEMP) nvb_print(t, " at %lld, steps %d-%d", (long long)b->offset, b->first, b->last);
    else nvb_print(t, " %d", b->id);
    if (b->donor >= 0) nvb_print(t, " in the memory of leaf %d", b->donor);
    nvb_print(t, ", %lld bytes%s\n", (long long)b->bytes, b->local ? ", local to strips" : "");
  }
  for (int i = 0; i < p->nstep; i++) {
    const nvf_step *s = &p->step[i];
    nvb_print(t, "step %d: %s, %lld blocks, grain %lld, reads %lld, writes %lld, %lld operations\n", i, s->hero,
              (long long)s->blocks, (long long)s->grain, (long long)s->bytes_read, (long long)s->bytes_written,
              (long long)s->flops);
    for (int j = 0; j < s->k->nparam; j++) {
      nvb_print(t, "  %s = ", s->k->param[j].name);
      if (s->bind[j].kind == NVF_BUFFER) nvb_print(t, "buffer %d\n", s->bind[j].buf);
      else nvb_print(t, s->bind[j].kind == NVF_SIZE ? "%lld\n" : "0x%llx\n", (long long)s->bind[j].bits);
    }
    nvf_kernel_print(t, s->k);
    nvf_schedule_print(t, s->k, s->s, nvf_schedule_of(p->device));
  }
}

/* What is known of the matrix that a routine factorises, and so how it goes about it. */
static void print_structure(nvb_text *t, const nvf_routine *r, nvb_devkind device) {
  const char *const text[] = {
    [NVG_UNKNOWN] = device == NVB_CPU
                        ? "examined when it runs: nothing if it is triangular, Cholesky if it is Hermitian, else LU"
                        : "LU with partial pivoting",
    [NVG_HERMITIAN] = "Hermitian, as its expression says: Cholesky, LU if it is not positive definite",
    [NVG_LOWER] = "lower triangular: no factorization",
    [NVG_UPPER] = "upper triangular: no factorization",
    [NVG_PLAIN] = "LU with partial pivoting"
  };
  if (r->op == NVG_OP_FACTORS || r->op == NVG_OP_SOLVED) nvb_print(t, "     %s\n", text[r->attr[0]]);
}

/* Bytes that steps of strips hand to each other in the caches */
static int64_t bytes_in_strips(const nvf_strips *s) {
  int64_t sum = 0;
  for (int i = 0; i < s->nwindow; i++) sum += s->elements[s->window[i].local] * s->window[i].size;
  return sum;
}

static void print_strips(nvb_text *t, const nvf_strips *s) {
  int64_t bytes = 0;
  for (int i = 0; i < s->nlocal; i++) bytes += s->bytes[i];
  nvb_puts(t, "  steps ");
  for (int i = 0; i < s->n; i++) nvb_print(t, "%s%d", !i ? "" : i + 1 < s->n ? ", " : " and ", s->step[i] + 1);
  nvb_print(t, " run together in %lld strips: what lies between them, ", (long long)s->count);
  print_bytes(t, (double)bytes);
  nvb_puts(t, " of a strip, stays in the cache\n");
}

void nvf_plan_explain(nvb_text *t, const nvf_plan *p) {
  int64_t moved = 0, flops = 0, temporary = p->nstrips ? p->kept_bytes : p->temp_bytes;
  for (int i = 0; i < p->nstep; i++) {
    moved += p->step[i].bytes_read + p->step[i].bytes_written;
    flops += p->step[i].flops;
  }
  for (int i = 0; i < p->nstrips; i++) moved -= bytes_in_strips(p->strips[i]);
  nvb_print(t, "%d kernel%s, ", p->nstep, p->nstep == 1 ? "" : "s");
  print_bytes(t, (double)moved);
  nvb_puts(t, " moved (at least ");
  print_bytes(t, (double)p->bytes_min);
  nvb_print(t, "), %.4g operations", (double)flops);
  if (temporary) {
    nvb_puts(t, ", ");
    print_bytes(t, (double)temporary);
    nvb_puts(t, " of temporaries");
  }
  nvb_puts(t, "\n");
  nvf_transforms_print(t, p);
  if (p->bf16_note) nvb_print(t, "  %s\n", p->bf16_note);
  if (p->chosen) nvb_print(t, "  %s\n", p->chosen);
  for (int i = 0; i < p->nstep; i++) {
    const nvf_step *s = &p->step[i];
    nvb_print(t, "  %d. %s: %s; reads ", i + 1, s->hero, s->what);
    print_bytes(t, (double)s->bytes_read);
    nvb_puts(t, ", writes ");
    print_bytes(t, (double)s->bytes_written);
    nvb_puts(t, "; about ");
    print_time(t, s->time);
    nvb_print(t, ", %lld %s%s\n", (long long)s->blocks, s->routine ? "row" : "block", s->blocks == 1 ? "" : "s");
    if (s->gemm) {
      nvb_puts(t, "     ");
      nvf_gemm_print(t, s->gemm);
      nvb_puts(t, "\n");
    }
    if (s->routine) print_structure(t, s->routine, p->device);
    if (s->chosen) nvb_print(t, "     %s\n", s->chosen);
  }
  for (int i = 0; i < p->nstrips; i++) print_strips(t, p->strips[i]);
  for (int i = 0; i < p->ncut; i++)
    nvb_print(t, "  not fused: %d and %d: %s\n", p->cut[i].from + 1, p->cut[i].to + 1, p->cut[i].why);
  for (int i = 0; i < p->nveto; i++)
    if (p->veto[i].step < 0)
      nvb_print(t, "  refused: plan %d, as it was chosen by measuring: %s\n", i + 1, p->veto[i].why);
    else nvb_print(t, "  refused: step %d of plan %d: %s\n", p->veto[i].step + 1, i + 1, p->veto[i].why);
}

void nvf_plan_check(nvb_arena *a, const nvf_plan *p) {
  for (int i = 0; i < p->nstep; i++) {
    const nvf_step *s = &p->step[i];
    if (!s->routine) nvf_kernel_check(a, s->k, s->s);
    for (int j = 0; j < s->k->nparam; j++) {
      const nvf_param *q = &s->k->param[j];
      if (q->kind != s->bind[j].kind)
        nvb_throw(a, NVM_ERR_INTERNAL, "[plan] step %d: parameter %s is bound to another kind", i, q->name);
      if (q->kind != NVF_BUFFER) continue;
      if (s->bind[j].buf < 0 || s->bind[j].buf >= p->nbuf)
        nvb_throw(a, NVM_ERR_INTERNAL, "[plan] step %d: parameter %s has no buffer", i, q->name);
      const nvf_buf *b = &p->buf[s->bind[j].buf];
      if (b->kind == NVF_BTEMP && (i < b->first || i > b->last))
        nvb_throw(a, NVM_ERR_INTERNAL, "[plan] step %d: parameter %s is not alive", i, q->name);
      if (b->kind == NVF_BLEAF && q->written)
        nvb_throw(a, NVM_ERR_INTERNAL, "[plan] step %d: parameter %s writes to a leaf", i, q->name);
    }
  }
  for (int i = 0; i < p->nbuf; i++)
    for (int j = 0; j < i; j++) {
      const nvf_buf *x = &p->buf[i], *y = &p->buf[j];
      if (x->kind == NVF_BTEMP && y->kind == NVF_BTEMP && x->first <= y->last && y->first <= x->last &&
          x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes)
        nvb_throw(a, NVM_ERR_INTERNAL, "[plan] temporaries %d and %d share bytes", i, j);
    }
}
