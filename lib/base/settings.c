/* Implements the settings table and holds the only getenv. All settings are read from the environment once, at the
   first use of any of them; an invalid value there is ignored. A text that no setting uses any more is freed
   only after WORDS newer texts, so readers need no lock. */
#include "base/settings.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/mem.h"

typedef enum stype { INT, STR, SIZE, LIST } stype;
typedef enum scope { IN_KEY, REPLAN, AT_USE } scope;
typedef struct row { stype type; const char *env, *def, *words; scope scope; const char *doc; } row;
static const row rows[NVB_NSETTINGS] = {
#define SETTING(id, type, env, def, words, scope, doc) { type, env, def, words, scope, doc },
#include "base/settings.def"
#undef SETTING
};

static struct {
  _Atomic(const char *) text;
  _Atomic int64_t number;
} now[NVB_NSETTINGS];
static const char *invalid[NVB_NSETTINGS]; /* the environment's value if it is invalid; else NULL */
static _Atomic uint64_t version, epoch;
static nvb_lock lock = NVB_LOCK(SETTINGS);
NVB_HOLD_AT_FORK(lock);
static pthread_once_t once = PTHREAD_ONCE_INIT;

enum { WORDS = 256 };
typedef struct word { struct word *next; char s[]; } word;
static word *words; /* interned texts, the newest first */
static int nword;

static int is_used(const char *s) {
  int used = 0;
  for (int i = 0; i < NVB_NSETTINGS && !used; i++) used = atomic_load(&now[i].text) == s || invalid[i] == s;
  return used;
}
static void forget_oldest(void) {
  word **oldest = NULL;
  for (word **at = &words; *at; at = &(*at)->next)
    if (!is_used((*at)->s)) oldest = at;
  word *w = oldest ? *oldest : NULL;
  if (!w) return;
  *oldest = w->next;
  nword--;
  nvb_free(w);
}
static const char *intern_text(const char *s) { /* under the lock; NULL when out of memory */
  word **at = &words;
  while (*at && strcmp((*at)->s, s)) at = &(*at)->next;
  size_t n = strlen(s) + 1;
  word *w = *at ? *at : nvb_alloc(sizeof *w + n);
  if (!w) return NULL;
  if (*at) *at = w->next;
  else memcpy(w->s, s, n), nword++;
  w->next = words;
  words = w;
  if (nword > WORDS) forget_oldest();
  return w->s;
}

/* Parses a count: digits, followed for a SIZE by an optional K, M, G or T. Returns -1 if it is invalid. */
static int64_t parse_count(stype type, const char *s) {
  char *end;
  if (!isdigit((unsigned char)*s)) return -1;
  long long n = strtoll(s, &end, 10);
  const char *units = "KMGT", *u = type == SIZE && *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
  int shift = u ? 10 * (int)(u - units + 1) : 0;
  end += u != NULL;
  return *end || n == LLONG_MAX || n > (LLONG_MAX >> shift) ? -1 : (int64_t)n << shift;
}

static int is_numeric(stype type) { return type == INT || type == SIZE; }

/* Returns 1 if the comma list contains the word of n bytes; an N at the end of an entry matches any number. */
static int is_listed(const char *list, const char *word, size_t n) {
  for (; *list; list += strcspn(list, ","), list += *list == ',') {
    size_t m = strcspn(list, ","), counted = m && list[m - 1] == 'N', fixed = m - counted;
    if (n < fixed || strncmp(list, word, fixed)) continue;
    if (counted ? n > fixed && strspn(word + fixed, "0123456789") == n - fixed : n == fixed) return 1;
  }
  return 0;
}

static int is_valid(const row *r, const char *s) {
  if (is_numeric(r->type) && parse_count(r->type, s) < 0) return 0;
  if (!*r->words) return 1;
  if (r->type != LIST) return is_listed(r->words, s, strlen(s));
  for (; *s; s += strcspn(s, ","), s += *s == ',')
    if (!is_listed(r->words, s, strcspn(s, ","))) return 0;
  return 1;
}

/* Describes the valid values: "on or off", "a count of bytes such as 512M". */
static const char *describe_valid(const row *r, char *to, size_t size) {
  if (!*r->words) return r->type == SIZE ? "a count of bytes such as 512M" : "a count";
  size_t n = (size_t)snprintf(to, size, "%s", r->type == LIST ? "a list of " : "");
  for (const char *at = r->words, *end; n < size; at = end + 1) {
    end = at + strcspn(at, ",");
    int last = !*end || !strchr(end + 1, ',');
    n += (size_t)snprintf(to + n, size - n, "%.*s%s", (int)(end - at), at, !*end ? "" : last ? " or " : ", ");
    if (!*end) break;
  }
  return to;
}

static void renew_version(void) {
  nvb_hash h = { atomic_load(&epoch), 0 };
  for (int i = 0; i < NVB_NSETTINGS; i++) {
    const char *text = atomic_load(&now[i].text);
    if (rows[i].scope != AT_USE) h = nvb_hash_mix(h, text, strlen(text) + 1);
  }
  atomic_store(&version, h.lo);
}

static int list_has(nvb_setting s, const char *word) {
  const char *list = atomic_load_explicit(&now[s].text, memory_order_acquire);
  return is_listed(list, word, strlen(word)) || is_listed(list, "all", 3);
}

static void apply_values(void) { /* values have changed */
  renew_version();
  nvb_lock_check(list_has(NVB_CHECK, "locks"));
}

static void load_settings(void) {
  for (int i = 0; i < NVB_NSETTINGS; i++) {
    const char *env = getenv(rows[i].env), *text = env ? intern_text(env) : NULL;
    if (text && !is_valid(&rows[i], text)) {
      invalid[i] = *text ? text : NULL; /* an empty value is ignored without a warning */
      text = NULL;
    }
    text = text ? text : rows[i].def;
    atomic_store(&now[i].text, text);
    atomic_store(&now[i].number, is_numeric(rows[i].type) ? parse_count(rows[i].type, text) : 0);
  }
  apply_values();
}

int64_t nvb_int(nvb_setting s) {
  pthread_once(&once, load_settings);
  return atomic_load_explicit(&now[s].number, memory_order_relaxed);
}

const char *nvb_str(nvb_setting s) {
  pthread_once(&once, load_settings);
  return atomic_load_explicit(&now[s].text, memory_order_acquire);
}

int nvb_has(nvb_setting s, const char *word) {
  pthread_once(&once, load_settings);
  return list_has(s, word);
}

/* Upper case of ASCII letters, in every locale. */
static int to_upper(char c) { return c >= 'a' && c <= 'z' ? c - ('a' - 'A') : c; }
static int same_name(const char *a, const char *b) {
  while (*a && to_upper(*a) == to_upper(*b)) a++, b++;
  return !*a && !*b;
}

static int find_row(const char *name) {
  for (int i = 0; i < NVB_NSETTINGS; i++)
    if (same_name(name, rows[i].env) || same_name(name, rows[i].env + strlen("NVM_"))) return i;
  return -1;
}

int nvb_set(const char *name, const char *value) {
  pthread_once(&once, load_settings);
  int i = find_row(name);
  if (i < 0) return nvb_fail(NVM_ERR_VALUE, "[set] there is no setting \"%s\"", name);
  const char *want = value ? value : rows[i].def;
  char words[128];
  if (!is_valid(&rows[i], want))
    return nvb_fail(NVM_ERR_VALUE, "[set] %s takes %s, not \"%s\"", rows[i].env,
                    describe_valid(&rows[i], words, sizeof words), want);
  int64_t n = is_numeric(rows[i].type) ? parse_count(rows[i].type, want) : 0;
  nvb_lock_take(&lock);
  const char *text = intern_text(want);
  if (text && strcmp(text, atomic_load(&now[i].text))) { /* the same value again changes nothing */
    atomic_store(&now[i].text, text);
    atomic_store(&now[i].number, n);
    atomic_fetch_add(&epoch, rows[i].scope == REPLAN);
    apply_values();
  }
  nvb_lock_give(&lock);
  return text ? NVM_OK : nvb_fail_memory();
}

int nvb_setting_info(int i, const char **name, const char **value, const char **def, const char **doc) {
  if (i < 0 || i >= NVB_NSETTINGS) return 0;
  *name = rows[i].env;
  *value = nvb_str((nvb_setting)i);
  *def = rows[i].def;
  *doc = rows[i].doc;
  return 1;
}

int nvb_setting_invalid(int i, char *line, size_t size) {
  char words[128];
  pthread_once(&once, load_settings);
  if (invalid[i])
    snprintf(line, size, "%s=%.80s in the environment is invalid and ignored; it must be %s", rows[i].env, invalid[i],
             describe_valid(&rows[i], words, sizeof words));
  return invalid[i] != NULL;
}

void nvb_settings_touch(void) {
  pthread_once(&once, load_settings);
  nvb_lock_take(&lock);
  atomic_fetch_add(&epoch, 1);
  renew_version();
  nvb_lock_give(&lock);
}

uint64_t nvb_settings_version(void) {
  pthread_once(&once, load_settings);
  return atomic_load_explicit(&version, memory_order_relaxed);
}

const char *nvb_env(const char *name) {
  const char *s = getenv(name);
  return s && *s ? s : NULL;
}

void nvb_log(int level, const char *fmt, ...) {
  if (nvb_int(NVB_VERBOSE) < level) return;
  char line[2048]; /* a line is written by one call, so that lines of several threads stay whole */
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  fprintf(stderr, "nvm: %s\n", line);
}

/* Creates DIR/NAME.STAGE; if the file exists, a number is added: DIR/NAME.2.STAGE. */
static FILE *new_file(const char *dir, const char *name, const char *stage) {
  static _Atomic int count = 1;
  char path[PATH_MAX], number[16] = "";
  for (;;) {
    int n = snprintf(path, sizeof path, "%s/%s%s.%s", dir, name, number, stage);
    if (n < 0 || (size_t)n >= sizeof path) return NULL;
    for (char *c = path + strlen(dir) + 1; *c; c++)
      if (!isalnum((unsigned char)*c) && !strchr("._-", *c)) *c = '_';
    FILE *f = fopen(path, "wx");
    if (f || errno != EEXIST) return f;
    snprintf(number, sizeof number, ".%d", atomic_fetch_add(&count, 1) + 1);
  }
}
void nvb_dump(const char *stage, const char *name, const char *text) {
  if (!nvb_has(NVB_DUMP, stage)) return;
  const char *dir = nvb_str(NVB_DUMP_DIR);
  if (!*dir) {
    fprintf(stderr, "---- %s %s\n%s%s", stage, name, text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
    return;
  }
  FILE *f = new_file(dir, name, stage);
  if (!f) {
    nvb_log(1, "cannot write the dump %s of %s", stage, name);
    return;
  }
  fputs(text, f);
  fclose(f);
}
