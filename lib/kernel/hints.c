/* The table of hints: what each is called, which statements may have it, which values it takes. It says whether a
   statement may have a hint; what a hint does is the emitters' business. */
#include <string.h>
#include "base/text.h"
#include "kernel/kernel.h"

_Static_assert(NVF_NHINTS <= 32, "nvf_typed.hints has a bit for each hint");

enum { ANY = 0x7fffffff, CPU = NVF_CPU, GPU = NVF_GPU, SAME = 0, OTHER = 1 };
static const int64_t unbounded = 1 << 30;
#define FIRST NVF_FIRST
#define ON(id) (1u << NVF_##id)
#define FLAG 1, 1, 0
#define RANGE(least, most) least, most, 0
#define FROM(least) least, 1 << 30, 0
#define POWERS(least, most) least, most, 1
static const nvf_hint_row table[] = {
#define HINT(id, word, of, targets, bits, values, meaning) { #word, of, targets, bits, values },
#include "kernel/hints.def"
#undef HINT
};

const nvf_hint_row *nvf_hint_get(nvf_hint hint) { return &table[hint]; }

int nvf_hint_find(const char *word) {
  for (int i = 0; i < NVF_NHINTS; i++)
    if (!strcmp(table[i].word, word)) return i;
  return -1;
}

static int may_have(const nvf_stmt *s, const nvf_hint_row *h) {
  return h->of & NVF_FIRST ? s->id == 0 : (int)(h->of >> s->op & 1);
}

/* The edit distance of two words (Levenshtein), of which b has fewer than 32 characters. */
static int distance(const char *a, const char *b) {
  int row[32], n = (int)strlen(b);
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int corner = row[0];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      int edit = corner + (a[i - 1] != b[j - 1]), skip = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
      corner = row[j];
      row[j] = edit < skip ? edit : skip;
    }
  }
  return row[n];
}

const char *nvf_hint_nearest(const char *word, const nvf_stmt *s) {
  const char *best = NULL;
  int least = (int)strlen(word) + 2; /* words that are farther away have nothing in common with it */
  for (int i = 0; i < NVF_NHINTS; i++) {
    int d = 2 * distance(word, table[i].word) + !may_have(s, &table[i]);
    if (d < least) least = d, best = table[i].word;
  }
  return best;
}

static void list_statements(nvb_text *t, const nvf_hint_row *h) {
  const char *before = "";
  if (h->of & NVF_FIRST) nvb_puts(t, "the whole kernel, at statement 0");
  for (int op = 0; op < 31 && !(h->of & NVF_FIRST); op++)
    if (h->of >> op & 1) {
      nvb_print(t, "%s%s", before, nvf_op_name((nvf_op)op));
      before = " and ";
    }
}

static void list_hints(nvb_text *t, const nvf_stmt *s) {
  const char *before = "";
  for (int i = 0; i < NVF_NHINTS; i++)
    if (may_have(s, &table[i])) {
      nvb_print(t, "%s%s", before, table[i].word);
      before = ", ";
    }
}

static int is_value(const nvf_hint_row *h, int64_t v) {
  return v >= h->least && v <= h->most && !(h->powers && v & (v - 1));
}

static void print_values(nvb_text *t, const nvf_hint_row *h) {
  nvb_print(t, h->powers ? "a power of two from %lld" : "%lld", (long long)h->least);
  if (h->most == unbounded) nvb_puts(t, " or more");
  else if (h->most > h->least) nvb_print(t, " to %lld", (long long)h->most);
}

const char *nvf_hint_fault(nvb_arena *a, const nvf_stmt *s, nvf_hint hint, int64_t value) {
  nvb_text t = { .arena = a };
  const nvf_hint_row *h = &table[hint];
  if (!may_have(s, h)) {
    nvb_print(&t, "hint %s is one of ", h->word);
    list_statements(&t, h);
    nvb_puts(&t, "; this statement may have ");
    list_hints(&t, s);
  } else if (!is_value(h, value)) {
    nvb_print(&t, "hint %s is ", h->word);
    print_values(&t, h);
    nvb_print(&t, ", not %lld", (long long)value);
  }
  return t.n ? nvb_text_get(&t) : NULL;
}

int64_t nvf_hint_value(const nvf_schedule *s, int stmt, nvf_hint hint, int64_t absent) {
  for (int i = 0; i < s->nhint; i++)
    if (s->hint[i].stmt == stmt && s->hint[i].hint == hint) return s->hint[i].value;
  return absent;
}
