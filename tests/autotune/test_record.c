/* Tuning records: their JSON there and back, damage, other processes, a locked store. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../comma.h"
#include "../folder.h"
#include "../suite.h"
#include "autotune/record.h"
#include "base/err.h"
#include "base/settings.h"
#include "base/store.h"

static char dir[200];
static void fresh(const char *sub) {
  snprintf(dir, sizeof dir, "/tmp/nvm-tune-%d-%s", (int)getpid(), sub);
  ck_assert_int_eq(nvb_set("cache_dir", dir), NVM_OK);
  nvt_record_clear();
}
static void sweep(void) { sweep_folder(dir); }
static nvt_record some(int i) {
  nvt_record r = { .key = nvb_hash_bytes(&i, sizeof i),
                   .ns = 1000.5 + i,
                   .model_ns = 2000,
                   .tried = 7,
                   .complete = 1,
                   .date = 1700000000 + i };
  snprintf(r.device, sizeof r.device, "a \"device\" \\ of\tnumber %d", i);
  snprintf(r.what, sizeof r.what, "map: add, exp");
  snprintf(r.size, sizeof r.size, "2^20 2^3");
  snprintf(r.config, sizeof r.config, "block=%d", i);
  return r;
}
static int same(const nvt_record *a, const nvt_record *b) {
  return nvb_hash_eq(a->key, b->key) && !strcmp(a->device, b->device) && !strcmp(a->what, b->what) &&
         !strcmp(a->size, b->size) && !strcmp(a->config, b->config) && a->ns == b->ns && a->model_ns == b->model_ns &&
         a->tried == b->tried && a->complete == b->complete && a->date == b->date;
}
static void print(nvb_arena *a, void *arg) {
  nvb_text t = { .arena = a };
  nvt_record_print(&t, ((void **)arg)[0]);
  *(const char **)((void **)arg)[1] = nvb_text_get(&t);
}
static const char *text_of(nvb_arena *a, const nvt_record *r) {
  const char *s = NULL;
  void *arg[2] = { (void *)r, &s };
  ck_assert_int_eq(nvb_protect(a, print, arg), NVM_OK);
  return s;
}
typedef struct list { int n; nvt_record *at; } list;
static void get_all(nvb_arena *a, void *arg) { ((list *)arg)->n = nvt_record_all(a, &((list *)arg)->at); }

START_TEST(test_json) {
  nvb_arena *a = nvb_arena_new();
  nvt_record r = some(3), back;
  const char *s = text_of(a, &r), *at = s;
  ck_assert(nvt_record_read(&back, &at, s + strlen(s)) && at == s + strlen(s));
  ck_assert(same(&r, &back));
  for (size_t n = 0; n < strlen(s); n++) { /* no beginning of it is one */
    at = s;
    ck_assert(!nvt_record_read(&back, &at, s + n));
  }
  char bad[1000];
  for (size_t i = 0; s[i]; i++) { /* no byte may lead it astray */
    snprintf(bad, sizeof bad, "%s", s);
    bad[i] = (char)(bad[i] == '0' ? '}' : bad[i] ^ 0x15);
    at = bad;
    nvt_record_read(&back, &at, bad + strlen(bad));
    ck_assert(at <= bad + strlen(bad));
  }
  nvb_arena_free(a);
}
END_TEST

START_TEST(test_import) {
  fresh("import");
  nvb_arena *a = nvb_arena_new();
  nvt_record r = some(1), q = some(2), out;
  char text[3000];
  int n = snprintf(text, sizeof text, "[\n%s,\n", text_of(a, &r));
  n += snprintf(text + n, sizeof text - (size_t)n, "%s\n]\n", text_of(a, &q));
  ck_assert_int_eq(nvt_record_import(text, (size_t)n), 2);
  ck_assert(nvt_record_find(&out, q.key) && same(&out, &q));
  ck_assert_int_eq(nvt_record_import("[]", 2), 0);
  ck_assert_int_eq(nvt_record_clear(), 2);
  ck_assert(!nvt_record_find(&out, q.key));
  ck_assert_int_eq(nvt_record_import(text, (size_t)n - 20), -1); /* the second one is cut: nothing is taken */
  ck_assert(strstr(nvb_message(), "[tune_import]"));
  ck_assert(!nvt_record_find(&out, r.key));
  static const char *const behind[] = { "x", "]", ",", "[]", "{}", "\n0" };
  for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) { /* neither behind a list nor behind a record */
    char more[3100];
    int m = snprintf(more, sizeof more, "%s%s", text, behind[i]);
    ck_assert_int_eq(nvt_record_import(more, (size_t)m), -1);
    m = snprintf(more, sizeof more, "%s%s", text_of(a, &r), behind[i]);
    ck_assert_int_eq(nvt_record_import(more, (size_t)m), -1);
    ck_assert(!nvt_record_find(&out, r.key));
  }
  char *version = strstr(text, "\"version\": 3");
  version[11] = '9';
  ck_assert_int_eq(nvt_record_import(text, (size_t)n), -1);
  ck_assert_int_eq(nvt_record_import("nothing", 7), -1);
  nvb_arena_free(a);
  sweep();
}
END_TEST

START_TEST(test_other_process) { /* what one process keeps another one finds; both at once keep all of theirs */
  enum { EACH = 20, PROCESSES = 3 };
  fresh("process");
  for (int p = 0; p < PROCESSES; p++)
    if (!fork()) {
      for (int i = 0; i < EACH; i++) {
        nvt_record r = some(100 * p + i);
        nvt_record_keep(&r);
        nvt_record mine;
        if (!nvt_record_find(&mine, r.key) || !same(&mine, &r)) _exit(1);
      }
      _exit(0);
    }
  for (int p = 0, status; p < PROCESSES; p++) {
    wait(&status);
    ck_assert_int_eq(status, 0);
  }
  int64_t before = nvt_records_found();
  int there = 0;
  for (int p = 0; p < PROCESSES; p++)
    for (int i = 0; i < EACH; i++) {
      nvt_record want = some(100 * p + i), out;
      if (!nvt_record_find(&out, want.key)) continue; /* a locked store is a miss, never a wrong record */
      ck_assert(same(&out, &want));
      there++;
    }
  ck_assert_int_ge(there, PROCESSES * EACH / 2);
  ck_assert_int_eq(nvt_records_found() - before, there);
  nvb_arena *a = nvb_arena_new();
  list all = { 0 };
  ck_assert_int_eq(nvb_protect(a, get_all, &all), NVM_OK);
  ck_assert_int_eq(all.n, there);
  nvb_arena_free(a);
  sweep();
}
END_TEST

START_TEST(test_damage) { /* a row whose content is no record, or another key's, is a miss */
  fresh("damage");
  nvt_record r = some(5), other = some(6), out;
  nvb_arena *a = nvb_arena_new();
  const char *s = text_of(a, &other);
  nvb_store_put("tune", r.key, s, strlen(s));
  ck_assert(!nvt_record_find(&out, r.key));
  nvb_store_put("tune", other.key, "{\"version\": 3}", 14);
  ck_assert(!nvt_record_find(&out, other.key));
  nvt_record_keep(&other); /* measured again, it is there */
  ck_assert(nvt_record_find(&out, other.key) && same(&out, &other));
  nvb_arena_free(a);
  sweep();
}
END_TEST

START_TEST(test_without_store) { /* this process remembers */
  ck_assert_int_eq(nvb_set("cache_dir", "off"), NVM_OK);
  nvt_record_clear();
  nvt_record r = some(9), out;
  nvt_record_keep(&r);
  ck_assert(nvt_record_find(&out, r.key) && same(&out, &r));
  nvb_arena *a = nvb_arena_new();
  list all = { 0 };
  ck_assert_int_eq(nvb_protect(a, get_all, &all), NVM_OK);
  ck_assert_int_eq(all.n, 1);
  nvb_arena_free(a);
  ck_assert_int_eq(nvt_record_clear(), 1);
}
END_TEST

START_TEST(test_asked_again) { /* what was missing is not asked for at each plan; after _again it is */
  fresh("again");
  nvt_record r = some(11), out;
  ck_assert(!nvt_record_find(&out, r.key));
  if (!fork()) {
    nvt_record_keep(&r);
    _exit(0);
  }
  wait(NULL);
  ck_assert(!nvt_record_find(&out, r.key));
  nvt_record_again();
  ck_assert(nvt_record_find(&out, r.key) && same(&out, &r));
  sweep();
}
END_TEST

START_TEST(test_more_found) { /* of what was cut short the most stays, whoever found it; a session looks for it again */
  fresh("more");
  nvt_record r = some(13), out;
  r.complete = 0;
  ck_assert(nvt_record_keep(&r));
  for (int tried = 3; tried < 12; tried += 5) {
    nvt_record other = r;
    other.tried = tried;
    if (!fork()) {
      nvt_record_again();
      _exit(!nvt_record_keep(&other));
    }
    int status;
    wait(&status);
    ck_assert_int_eq(status, 0);
    nvt_record_again();
    ck_assert(nvt_record_find(&out, r.key));
    ck_assert_int_eq(out.tried, tried < r.tried ? r.tried : tried);
    ck_assert(!out.complete);
  }
  nvt_record whole = r;
  whole.tried = 4;
  whole.complete = 1;
  if (!fork()) {
    nvt_record_keep(&whole);
    _exit(0);
  }
  wait(NULL);
  ck_assert(nvt_record_find(&out, r.key) && !out.complete); /* not before it is asked for */
  r.tried = 30;
  nvt_record_keep(&r);
  ck_assert(nvt_record_find(&out, r.key) && same(&out, &whole));
  sweep();
}
END_TEST

/* Another process has the file locked while f runs, as SQLite's own lock bytes say it. */
static void while_locked(void (*f)(void)) {
  struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512 };
  char file[300], c = 0;
  int up[2], down[2];
  snprintf(file, sizeof file, "%s/cache.db", dir);
  ck_assert(!pipe(up) && !pipe(down));
  pid_t pid = fork();
  if (!pid) {
    c = fcntl(open(file, O_RDWR), F_SETLK, &all) ? 'x' : 'k';
    _exit(write(up[1], &c, 1) != 1 || read(down[0], &c, 1) != 1);
  }
  ck_assert(read(up[0], &c, 1) == 1 && c == 'k');
  f();
  ck_assert_int_eq(write(down[1], "q", 1), 1);
  waitpid(pid, NULL, 0);
  usleep(400000); /* a locked file is left alone for a quarter of a second */
}
static void ask_all(void) {
  nvt_record r = some(20);
  char text[1200];
  nvb_arena *a = nvb_arena_new();
  list all = { 0 };
  ck_assert_int_eq(nvt_record_clear(), -1);
  ck_assert(strstr(nvb_message(), "[tune_clear]") && strstr(nvb_message(), "locked"));
  ck_assert_int_eq(nvb_protect(a, get_all, &all), NVM_ERR_IO);
  int n = snprintf(text, sizeof text, "%s", text_of(a, &r));
  ck_assert_int_eq(nvt_record_import(text, (size_t)n), -1);
  ck_assert(strstr(nvb_message(), "1 of 1 records"));
  ck_assert(nvt_record_find(&r, r.key));
  nvb_arena_free(a);
}
START_TEST(test_locked) { /* what cannot be done is not said to be done */
  fresh("locked");
  nvt_record r = some(19), out;
  nvt_record_keep(&r);
  while_locked(ask_all);
  ck_assert(nvt_record_find(&out, r.key) && same(&out, &r));
  ck_assert_int_eq(nvt_record_clear(), 2);
  ck_assert_int_eq(nvt_record_clear(), 0);
  sweep();
}
END_TEST

START_TEST(test_comma) { /* files are the same wherever they were written */
  if (comma_locale()) test_json_fn(0);
}
END_TEST

SUITE("record", test_json, test_comma, test_import, test_other_process, test_damage, test_without_store,
      test_asked_again, test_more_found, test_locked)
