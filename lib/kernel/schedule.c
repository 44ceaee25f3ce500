/* The parser of a schedule's body: bindings of names (layouts, integers, reduction orders) and hints. It checks the
   form of each binding; it never checks that a kernel can use it (check.c does). */
#include <string.h>
#include "base/err.h"
#include "kernel/kernel.h"
#include "kernel/lex.h"

typedef struct layout_job {
  nvf_kernel *k;
  nvf_layout *out;
  const char *text;
} layout_job;
static void layout_text(nvb_arena *a, void *arg) {
  layout_job *j = arg;
  (void)a;
  nvf_layout_parse(j->k, j->out, j->text);
}

static void parse_binding(nvf_lex *l, nvf_kernel *k, nvf_schedule *s) {
  nvf_binding *b = nvf_bind_name(k, s, nvf_add_name(k, nvf_lex_name(l, "a name")));
  nvf_lex_expect(l, "=");
  const char *at = l->s;
  if (l->kind == NVF_T_STRING) {
    char *text = nvb_get(l->arena, (size_t)l->n + 1);
    memcpy(text, l->s, (size_t)l->n);
    b->kind = NVF_BLAYOUT;
    int status = nvb_protect(l->arena, layout_text, &(layout_job){ k, &b->layout, text });
    if (status == NVM_ERR_MEMORY) nvb_throw(l->arena, status, "%s", nvb_message());
    if (status) nvf_lex_fail(l, "%s", nvb_strdup(l->arena, nvb_message()));
    nvf_lex_next(l);
  } else if (nvf_lex_accept(l, "order")) {
    int64_t v[2];
    nvf_lex_expect(l, "(");
    v[0] = nvf_lex_int(l);
    nvf_lex_expect(l, ",");
    v[1] = nvf_lex_int(l);
    nvf_lex_expect(l, ")");
    if (v[0] < 1 || v[1] < 1 || v[0] > 1 << 30 || v[1] > v[0] || (v[0] & (v[0] - 1)) || (v[1] & (v[1] - 1)))
      nvf_lex_fail_at(l, at, "an order is two powers of two, chunk >= lanes");
    b->kind = NVF_BRED_ORDER;
    b->order = (nvf_red_order){ (int)v[0], (int)v[1] };
  } else {
    int minus = nvf_lex_accept(l, "-");
    b->kind = NVF_BINT;
    b->value = minus ? -nvf_lex_int(l) : nvf_lex_int(l);
  }
}

/* A hint that no statement may have is refused here, where its word stands; the checker refuses those that the table
   gives to other statements, and values. */
static nvf_hint parse_hint_name(nvf_lex *l, const nvf_stmt *s) {
  const char *at = l->s, *word = nvf_lex_name(l, "a hint");
  int hint = nvf_hint_find(word);
  if (hint >= 0) return (nvf_hint)hint;
  const char *near = nvf_hint_nearest(word, s);
  nvf_lex_fail_at(l, at, "statement %d (%s): there is no hint '%.40s'%s%s%s", s->id, nvf_op_name(s->op), word,
                  near ? "; the nearest is '" : "", near ? near : "", near ? "'" : "");
}

static void parse_hint(nvf_lex *l, nvf_kernel *k, nvf_schedule *s) {
  const char *at = l->s;
  int64_t stmt = nvf_lex_int(l);
  if (stmt >= k->nstmt) nvf_lex_fail_at(l, at, "there is no statement %lld", (long long)stmt);
  nvf_hint name = parse_hint_name(l, k->stmt[stmt]);
  nvf_lex_expect(l, "=");
  int minus = nvf_lex_accept(l, "-");
  int64_t value = nvf_lex_int(l);
  nvf_add_hint(k, s, (int)stmt, name, minus ? -value : value);
}

void nvf_schedule_read(nvf_lex *l, nvf_kernel *k, nvf_schedule *s) {
  while (l->kind != NVF_T_END && !nvf_lex_is(l, "}")) {
    if (nvf_lex_accept(l, ";")) continue;
    (nvf_lex_accept(l, "hint") ? parse_hint : parse_binding)(l, k, s);
  }
}

nvf_schedule *nvf_schedule_find(nvf_kernel *k, const char *name) {
  for (int i = 0; i < k->nsched; i++)
    if (strcmp(k->sched_name[i], name) == 0) return k->sched[i];
  return NULL;
}
