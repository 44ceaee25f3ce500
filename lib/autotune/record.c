/* Tuning records: a table in this process over the disk store, and their JSON form. Decides which records are valid;
   never which candidate is best. */
#include "autotune/record.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/store.h"
#include "fusion/plan.h"

/* ---- JSON: flat objects of strings and numbers, whose fields are this table */
typedef enum ftype { KEY, TEXT, NUMBER, COUNT, FLAG, DATE, VERSION } ftype;
static const struct field {
  const char *name;
  ftype type;
  size_t at, size;
} fields[] = {
#define FIELD(name, type) { #name, type, offsetof(nvt_record, name), sizeof ((nvt_record *)0)->name }
  { "version", VERSION, 0, 0 },
  FIELD(key, KEY),
  FIELD(device, TEXT),
  FIELD(what, TEXT),
  FIELD(size, TEXT),
  FIELD(config, TEXT),
  FIELD(description, TEXT),
  FIELD(ns, NUMBER),
  FIELD(model_ns, NUMBER),
  FIELD(tried, COUNT),
  FIELD(complete, FLAG),
  FIELD(date, DATE),
#undef FIELD
};
enum { NFIELDS = sizeof fields / sizeof *fields };

static void put_text(nvb_text *t, const char *s) {
  nvb_puts(t, "\"");
  for (; *s; s++) nvb_print(t, (unsigned char)*s < 32 ? "\\u%04x" : *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  nvb_puts(t, "\"");
}

void nvt_record_print(nvb_text *t, const nvt_record *r) {
  for (int i = 0; i < NFIELDS; i++) {
    const char *p = (const char *)r + fields[i].at;
    nvb_print(t, "%s\"%s\": ", i ? ", " : "{", fields[i].name);
    switch (fields[i].type) {
    case VERSION: nvb_print(t, "%d", NVT_VERSION); break;
    case KEY: nvb_print(t, "\"%016" PRIx64 "%016" PRIx64 "\"", r->key.hi, r->key.lo); break;
    case TEXT: put_text(t, p); break;
    case NUMBER: nvb_put_double(t, *(const double *)(const void *)p); break;
    case COUNT: case FLAG: nvb_print(t, "%d", *(const int *)(const void *)p); break;
    case DATE: nvb_print(t, "%" PRId64, *(const int64_t *)(const void *)p); break;
    }
  }
  nvb_puts(t, "}");
}

static void skip_space(const char **at, const char *end) {
  while (*at < end && (**at == ' ' || **at == '\n' || **at == '\r' || **at == '\t')) ++*at;
}

static int take_char(const char **at, const char *end, char c) {
  skip_space(at, end);
  return *at < end && **at == c ? ++*at, 1 : 0;
}

/* Reads a string of at most size - 1 bytes. Only escapes of one-byte characters are accepted, which are all that
   records contain. */
static int get_text(const char **at, const char *end, char *out, size_t size) {
  size_t n = 0;
  if (!take_char(at, end, '"')) return 0;
  for (; *at < end && **at != '"'; ++*at) {
    char c = **at;
    if (c == '\\' && end - *at > 6 && (*at)[1] == 'u') {
      char hex[5] = { (*at)[2], (*at)[3], (*at)[4], (*at)[5] }, *stop;
      long code = strtol(hex, &stop, 16);
      if (stop != hex + 4 || code < 1 || code > 127) return 0;
      c = (char)code;
      *at += 5;
    } else if (c == '\\') {
      if (++*at == end || !strchr("\"\\/", **at)) return 0;
      c = **at;
    }
    if (!c || n + 1 >= size) return 0;
    out[n++] = c;
  }
  out[n] = 0;
  return take_char(at, end, '"');
}

static int get_number(const char **at, const char *end, double *x) {
  char word[40], *stop;
  size_t n = 0;
  skip_space(at, end);
  while (*at < end && n + 1 < sizeof word && strchr("+-.0123456789eE", **at) && **at) word[n++] = *(*at)++;
  word[n] = 0;
  *x = nvb_read_double(word, &stop);
  return n && !*stop && *x - *x == 0; /* neither inf nor nan */
}

static int get_key(const char *s, nvb_hash *key) {
  if (strlen(s) != 32 || strspn(s, "0123456789abcdef") != 32) return 0;
  char half[17] = { 0 };
  memcpy(half, s, 16);
  *key = (nvb_hash){ strtoull(s + 16, NULL, 16), strtoull(half, NULL, 16) };
  return 1;
}

static int get_field(const struct field *f, nvt_record *r, const char **at, const char *end) {
  char *p = (char *)r + f->at, key[40];
  double x = 0;
  if (f->type == TEXT) return get_text(at, end, p, f->size);
  if (f->type == KEY) return get_text(at, end, key, sizeof key) && get_key(key, &r->key);
  static const double most[] = {
    [NUMBER] = 1e18, [COUNT] = 1e6, [FLAG] = 1, [DATE] = 253402300799 /* the year 9999 */, [VERSION] = NVT_VERSION
  };
  if (!get_number(at, end, &x) || !(x >= 0 && x <= most[f->type]) || (f->type == VERSION && x != NVT_VERSION)) return 0;
  if (f->type == NUMBER) memcpy(p, &x, sizeof x);
  else if (f->type == COUNT || f->type == FLAG) memcpy(p, &(int){ (int)x }, sizeof(int));
  else if (f->type == DATE) memcpy(p, &(int64_t){ (int64_t)x }, sizeof(int64_t));
  return 1;
}

int nvt_record_read(nvt_record *out, const char **at, const char *end) {
  unsigned seen = 0;
  *out = (nvt_record){ 0 };
  if (!take_char(at, end, '{')) return 0;
  do {
    char name[24];
    int i = 0;
    if (!get_text(at, end, name, sizeof name) || !take_char(at, end, ':')) return 0;
    while (i < NFIELDS && strcmp(fields[i].name, name)) i++;
    if (i == NFIELDS || (seen >> i & 1) || !get_field(&fields[i], out, at, end)) return 0;
    seen |= 1u << i;
  } while (take_char(at, end, ','));
  return take_char(at, end, '}') && seen == (1u << NFIELDS) - 1;
}

/* ---- the table of this process. there: the entry has a record, else the store had none. again: the store may have a
   newer one. */
enum { SLOTS = 1 << 10, MISSES = 1 << 12 }; /* MISSES: the most entries without a record */
typedef struct record_entry { struct record_entry *next; nvb_hash key; int there, again; nvt_record r; } record_entry;
static record_entry *table[SLOTS];
static int misses;
static nvb_lock lock = NVB_LOCK(RECORDS);
NVB_HOLD_AT_FORK(lock);
static _Atomic int64_t found;
int64_t nvt_records_found(void) { return atomic_load(&found); }

static record_entry *entry_of(nvb_hash key) { /* finds or makes it; NULL: out of memory */
  record_entry **at = &table[key.lo % SLOTS];
  while (*at && !nvb_hash_eq((*at)->key, key)) at = &(*at)->next;
  if (!*at && (*at = nvb_calloc(1, sizeof **at))) (*at)->key = key;
  return *at;
}

/* Removes the entries without a record, or all. */
static void forget_entries(int all) {
  for (int i = 0; i < SLOTS; i++)
    for (record_entry **at = &table[i], *e; (e = *at);) {
      if (!all && e->there) {
        at = &e->next;
        continue;
      }
      *at = e->next;
      nvb_free(e);
    }
  misses = 0;
}

static int records_here(void) {
  int n = 0;
  nvb_lock_take(&lock);
  for (int i = 0; i < SLOTS; i++)
    for (const record_entry *e = table[i]; e; e = e->next) n += e->there;
  nvb_lock_give(&lock);
  return n;
}

void nvt_record_again(void) {
  nvb_lock_take(&lock);
  forget_entries(0);
  for (int i = 0; i < SLOTS; i++)
    for (record_entry *e = table[i]; e; e = e->next) e->again = !e->r.complete;
  nvb_lock_give(&lock);
}

/* Reads a record from the store; a row is valid only if the record names its own key. */
static int from_store(nvt_record *r, nvb_hash key) {
  void *row;
  size_t n;
  if (!nvb_store_get("tune", key, &row, &n)) return 0;
  const char *at = row, *end = at + n;
  int good = nvt_record_read(r, &at, end) && nvb_hash_eq(r->key, key);
  nvb_free(row);
  return good;
}

static record_entry *find_entry(nvb_hash key) { /* under the lock */
  record_entry *e = table[key.lo % SLOTS];
  while (e && !nvb_hash_eq(e->key, key)) e = e->next;
  return e;
}

int nvt_record_find(nvt_record *out, nvb_hash key) {
  nvt_record r = { 0 };
  nvb_lock_take(&lock);
  record_entry *e = find_entry(key);
  int there = e ? e->there : 0, ask = !e || e->again;
  if (there) *out = e->r;
  nvb_lock_give(&lock);
  if (ask) {
    int newer = from_store(&r, key);
    if (newer) *out = r;
    there |= newer;
    nvb_lock_take(&lock);
    if (!there && ++misses > MISSES) forget_entries(0);
    if ((e = entry_of(key)) && newer && !(e->there && e->r.complete)) {
      e->there = 1;
      e->r = r;
    }
    if (e) e->again = 0;
    nvb_lock_give(&lock);
  }
  atomic_fetch_add(&found, there);
  return there;
}

typedef struct writing { const nvt_record *r; int kept; } writing;
static void write_record(nvb_arena *a, void *arg) {
  writing *w = arg;
  nvb_text t = { .arena = a };
  nvt_record_print(&t, w->r);
  w->kept = nvb_store_put("tune", w->r->key, nvb_text_get(&t), t.n);
  nvf_plans_drop(); /* they were made without this record */
}

int nvt_record_keep(const nvt_record *r) {
  nvt_record other;
  int more = !r->complete && from_store(&other, r->key) && (other.complete || other.tried > r->tried);
  nvb_lock_take(&lock);
  record_entry *e = entry_of(r->key);
  if (e) {
    e->there = 1;
    e->again = 0;
    e->r = more ? other : *r;
  }
  nvb_lock_give(&lock);
  if (more) return 1;
  nvb_arena *a = nvb_arena_new();
  writing w = { .r = r };
  if (a) nvb_protect(a, write_record, &w);
  nvb_arena_free(a);
  return w.kept;
}

/* ---- all records */
typedef struct listing { int n; nvb_blob *row; nvb_map *seen; NVB_VEC(nvt_record) all; } listing;

static void read_rows(nvb_arena *a, void *arg) {
  listing *l = arg;
  int fresh;
  for (int i = 0; i < l->n; i++) {
    nvt_record r;
    const char *at = l->row[i].p, *end = at + l->row[i].bytes;
    if (nvt_record_read(&r, &at, end) && from_store(&r, r.key)) {
      nvb_map_put(l->seen, &r.key, sizeof r.key, &fresh);
      NVB_PUSH(a, l->all, r);
    }
  }
}

int nvt_record_all(nvb_arena *a, nvt_record **out) {
  listing l = { .seen = nvb_map_new(a) };
  l.n = nvb_store_all("tune", &l.row);
  if (l.n < 0) nvb_throw(a, NVM_ERR_IO, "[tune] the disk cache cannot be read now: another process has it locked");
  int status = nvb_protect(a, read_rows, &l);
  nvb_free(l.row);
  if (status) nvb_throw(a, status, "%s", nvb_message());
  int here = 0, most = records_here();
  nvt_record *mine = NVB_NEWN(a, nvt_record, most + 1);
  nvb_lock_take(&lock); /* the lock is held: nothing below may throw */
  for (int i = 0; i < SLOTS; i++)
    for (const record_entry *e = table[i]; e; e = e->next)
      if (e->there && here < most) mine[here++] = e->r;
  nvb_lock_give(&lock);
  for (int i = 0; i < here; i++)
    if (!nvb_map_find(l.seen, &mine[i].key, sizeof mine[i].key)) NVB_PUSH(a, l.all, mine[i]);
  *out = l.all.at;
  return l.all.n;
}

/* Reads all records of a text and (keep) stores each. Returns their number, or -1 with a message; *lost: how many the
   store did not accept. */
static int read_all(const char *json, const char *end, int keep, int *lost) {
  const char *at = json;
  int count = 0, list = take_char(&at, end, '[');
  nvt_record r;
  *lost = 0;
  if (!list || !take_char(&at, end, ']')) {
    do {
      const char *from = at;
      if (!nvt_record_read(&r, &at, end))
        return nvb_fail(NVM_ERR_VALUE, "[tune_import] no tuning record (of version %d) at byte %d of the text",
                        NVT_VERSION, (int)(from - json)),
               -1;
      *lost += keep && !nvt_record_keep(&r);
      count++;
    } while (list && take_char(&at, end, ','));
    if (list && !take_char(&at, end, ']'))
      return nvb_fail(NVM_ERR_VALUE, "[tune_import] the list of records does not end"), -1;
  }
  skip_space(&at, end);
  if (at < end)
    return nvb_fail(NVM_ERR_VALUE, "[tune_import] text behind the records, at byte %d", (int)(at - json)), -1;
  return count;
}

int nvt_record_import(const char *json, size_t n) {
  char where[64];
  int lost, count = read_all(json, json + n, 0, &lost);
  if (count < 0) return -1;
  read_all(json, json + n, 1, &lost); /* all records are read and valid before any is stored */
  if (lost && nvb_store_where(where, sizeof where))
    return nvb_fail(NVM_ERR_IO,
                    "[tune_import] %d of %d records could not be written to the disk cache, which another "
                    "process may have locked: this process alone has them",
                    lost, count),
           -1;
  return count;
}

int nvt_record_clear(void) {
  int here = records_here(), n = nvb_store_clear("trial") < 0 ? -1 : nvb_store_clear("tune");
  if (n < 0)
    return nvb_fail(NVM_ERR_IO, "[tune_clear] the disk cache cannot be written now: another process has it locked; no "
                                "record was dropped"),
           -1;
  nvf_plans_drop();
  nvb_lock_take(&lock);
  forget_entries(1);
  nvb_lock_give(&lock);
  return n > here ? n : here;
}
