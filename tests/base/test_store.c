/* The disk cache under attack: races on a cold file, flipped bytes, truncation, locks held by others, folders that
   must be refused, kill -9, forks. Whatever happens, a blob that is handed out is the blob that was put. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../folder.h"
#include "../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "base/store.h"

static const char *where(void) {
  static char text[4096];
  nvb_store_where(text, sizeof text);
  return text;
}

enum { BYTES = 3000 };
static char dir[256], file[300];

/* A new folder of this process, used as the cache's; in memory where there is such a place, because thousands of files
   are written; removed by `sweep`. */
static void fresh(const char *sub) {
  const char *top = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
  snprintf(dir, sizeof dir, "%s/nvm-store-%d-%s", top, (int)getpid(), sub);
  snprintf(file, sizeof file, "%s/cache.db", dir);
  ck_assert_int_eq(nvb_set("cache_dir", dir), NVM_OK);
}
static void sweep(void) { sweep_folder(dir); }

/* The blob that belongs to a key: its bytes say which, so that a wrong answer is seen. */
static nvb_hash key_of(int i) { return nvb_hash_bytes(&i, sizeof i); }
static size_t blob_of(int i, unsigned char *p) {
  size_t n = (size_t)(i * 977 % BYTES);
  for (size_t k = 0; k < n; k++) p[k] = (unsigned char)(i * 31 + (int)k * 7);
  return n;
}
static void put(int i) {
  unsigned char p[BYTES];
  nvb_store_put("code", key_of(i), p, blob_of(i, p));
}
/* 1 the right blob, 0 a miss, -1 a wrong one */
static int get(int i) {
  unsigned char p[BYTES];
  void *blob;
  size_t n, want = blob_of(i, p);
  if (!nvb_store_get("code", key_of(i), &blob, &n)) return 0;
  int right = n == want && !memcmp(blob, p, n);
  nvb_free(blob);
  return right ? 1 : -1;
}

START_TEST(puts_and_gets) {
  fresh("plain");
  ck_assert_int_eq(get(1), 0);
  for (int i = 0; i < 50; i++) put(i);
  for (int i = 0; i < 50; i++) ck_assert_int_eq(get(i), 1);
  void *blob;
  size_t n;
  ck_assert_int_eq(nvb_store_get("tune", key_of(3), &blob, &n), 0); /* another kind is another row */
  nvb_store_put("code", key_of(3), "new", 3);
  ck_assert_int_eq(nvb_store_get("code", key_of(3), &blob, &n), 1);
  ck_assert(n == 3 && !memcmp(blob, "new", 3));
  nvb_free(blob);
  nvb_store_close();
  ck_assert_int_eq(get(7), 1); /* opens again */
  ck_assert_str_eq(where(), file);
  struct stat s;
  ck_assert_int_eq(stat(file, &s), 0);
  ck_assert_int_eq(s.st_mode & 0777, 0600);
  ck_assert_int_eq(stat(dir, &s), 0);
  ck_assert_int_eq(s.st_mode & 0777, 0700);
  sweep();
}
END_TEST

START_TEST(off_and_homeless) {
  nvb_set("cache_dir", "off");
  put(1);
  ck_assert_int_eq(get(1), 0);
  ck_assert_str_eq(where(), "off");
  nvb_set("cache_dir", "");
  setenv("XDG_CACHE_HOME", "/tmp/nvm-cache-of-everyone", 1);
  put(1);
  ck_assert_int_eq(get(1), 0);
  ck_assert_int_eq(strncmp(where(), "refused", 7), 0);
  ck_assert_int_ne(access("/tmp/nvm-cache-of-everyone", F_OK), 0);
}
END_TEST

static void check_refused(void) {
  put(1);
  ck_assert_int_eq(get(1), 0);
  ck_assert_msg(!strncmp(where(), "refused", 7), "%s is used", where());
}
START_TEST(writable_folder_is_refused) {
  fresh("open");
  mkdir(dir, 0700);
  chmod(dir, 0777);
  check_refused();
  ck_assert_int_ne(access(file, F_OK), 0);
  chmod(dir, 0770);
  nvb_store_close();
  check_refused();
  chmod(dir, 0700);
  nvb_store_close();
  put(1);
  ck_assert_int_eq(get(1), 1);
  sweep();
}
END_TEST

START_TEST(a_name_beyond_all_paths_is_refused) {
  enum { LONG = 4 << 20 }; /* past the end of the stack */
  char *name = malloc(LONG + 1);
  memset(name, '/', LONG);
  name[LONG] = 0;
  ck_assert_int_eq(nvb_set("cache_dir", name), NVM_OK);
  free(name);
  put(1);
  ck_assert_int_eq(get(1), 0);
  ck_assert_str_eq(where(), "refused: the path is too long");
}
END_TEST

START_TEST(symlinks_are_refused) {
  char link_name[300], target[300];
  fresh("real");
  put(1);
  nvb_store_close();
  snprintf(target, sizeof target, "%s", dir);
  snprintf(link_name, sizeof link_name, "%s-link", dir);
  ck_assert_int_eq(symlink(target, link_name), 0);
  nvb_set("cache_dir", link_name);
  check_refused();
  char with_slash[310];
  snprintf(with_slash, sizeof with_slash, "%s//", link_name);
  nvb_set("cache_dir", with_slash);
  check_refused();
  unlink(link_name);

  nvb_set("cache_dir", target); /* the file itself */
  char other[320];
  snprintf(other, sizeof other, "%s/elsewhere", target);
  rename(file, other);
  ck_assert_int_eq(symlink(other, file), 0);
  nvb_store_close();
  check_refused();
  unlink(file);
  ck_assert_int_eq(link(other, file), 0); /* a second name */
  nvb_store_close();
  check_refused();
  unlink(other);
  chmod(file, 0666);
  nvb_store_close();
  check_refused();
  sweep();
}
END_TEST

START_TEST(foreign_folder_is_refused) {
  if (geteuid() != 0) return; /* only root can give a folder away */
  fresh("foreign");
  mkdir(dir, 0700);
  ck_assert_int_eq(chown(dir, 12345, 12345), 0);
  check_refused();
  sweep();
}
END_TEST

/* ---- many processes */
static int in_children(int n, int (*work)(int)) {
  pid_t pid[16];
  for (int i = 0; i < n; i++)
    if (!(pid[i] = fork())) {
      alarm(60);
      _exit(work(i));
    }
  int bad = 0, status;
  for (int i = 0; i < n; i++) {
    waitpid(pid[i], &status, 0);
    bad += !WIFEXITED(status) || WEXITSTATUS(status);
  }
  return bad;
}

static int race(int child) {
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 60; i++) {
      int k = (i + child * 7) % 60;
      if (get(k) < 0) return 1;
      put(k);
    }
  return 0;
}
START_TEST(eight_processes_on_a_cold_store) {
  fresh("race");
  ck_assert_int_eq(in_children(8, race), 0);
  char bad[320];
  snprintf(bad, sizeof bad, "%s.bad", file);
  ck_assert_int_ne(access(bad, F_OK), 0); /* nobody took the others' work for damage */
  int hits = 0;
  for (int i = 0; i < 60; i++) hits += get(i) == 1;
  ck_assert_int_ge(hits, 50); /* a put that met a lock may be lost */
  sweep();
}
END_TEST

static int child_goes_on(int child) {
  for (int i = 0; i < 20; i++)
    if (get(i) != 1) return 1;
  put(100 + child);
  return get(100 + child) != 1;
}
START_TEST(fork_with_an_open_store) {
  fresh("fork");
  for (int i = 0; i < 20; i++) put(i);
  ck_assert_int_eq(in_children(1, child_goes_on), 0);
  for (int i = 0; i < 20; i++) ck_assert_int_eq(get(i), 1);
  ck_assert_int_eq(get(100), 1);
  sweep();
}
END_TEST

START_TEST(killed_writers_leave_no_harm) {
  fresh("kill");
  for (int i = 0; i < 10; i++) put(i);
  for (int round = 0; round < 60; round++) {
    pid_t pid = fork();
    if (!pid)
      for (int i = 0;; i++) put(i % 200);
    usleep(1000 + round * 397 % 9000);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 200; i += 17) ck_assert_int_ge(get(i), 0);
    put(round);
    ck_assert_int_eq(get(round), 1);
  }
  sweep();
}
END_TEST

static void *threaded(void *arg) {
  for (int i = 0; i < 150; i++) {
    put(i % 40);
    if (get((i * 7) % 40) < 0) *(int *)arg = 1;
    if (i % 50 == 49) nvb_store_close();
  }
  return NULL;
}
START_TEST(threads_share_it) {
#ifdef __SANITIZE_ADDRESS__
  return; /* the sanitizer's own locks do not survive a fork with threads */
#endif
  fresh("threads");
  pthread_t t[4];
  int bad[4] = { 0 };
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, threaded, &bad[i]);
  ck_assert_int_eq(in_children(2, race), 0); /* forked in the middle of it */
  for (int i = 0; i < 4; i++) {
    pthread_join(t[i], NULL);
    ck_assert_int_eq(bad[i], 0);
  }
  for (int i = 0; i < 40; i++) ck_assert_int_eq(get(i), 1);
  sweep();
}
END_TEST

/* Another process in the middle of a transaction, as SQLite's own lock bytes say it. */
static void hold_lock(int ready, int done) {
  int fd = open(file, O_RDWR);
  struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512 };
  char c = fcntl(fd, F_SETLK, &all) ? 'x' : 'k';
  if (write(ready, &c, 1) == 1 && read(done, &c, 1) == 1) _exit(0);
  _exit(1);
}
START_TEST(held_lock_is_a_miss) {
  fresh("lock");
  put(1);
  ck_assert_int_eq(get(1), 1);
  struct stat before, after;
  ck_assert_int_eq(stat(file, &before), 0);
  int up[2], down[2];
  ck_assert(!pipe(up) && !pipe(down));
  pid_t pid = fork();
  if (!pid) hold_lock(up[1], down[0]);
  char c = 0;
  ck_assert_int_eq(read(up[0], &c, 1), 1);
  ck_assert_int_eq(c, 'k');
  struct timespec t0, t1;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  for (int i = 0; i < 100; i++) {
    nvb_blob *at;
    ck_assert_int_eq(get(1), 0);
    put(2);
    ck_assert_int_eq(nvb_store_all("code", &at), -1);
    ck_assert_int_eq(nvb_store_clear("code"), -1);
  }
  clock_gettime(CLOCK_MONOTONIC, &t1);
  ck_assert_int_lt((t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_nsec - t0.tv_nsec) / 1000000, 2000);
  ck_assert_int_eq(stat(file, &after), 0);
  ck_assert_uint_eq(before.st_ino, after.st_ino);
  ck_assert_int_eq(before.st_size, after.st_size);
  ck_assert_int_eq(write(down[1], "q", 1), 1);
  waitpid(pid, NULL, 0);
  usleep(400000); /* a locked file is left alone for a quarter of a second */
  ck_assert_int_eq(get(1), 1);
  put(2);
  ck_assert_int_eq(get(2), 1);
  sweep();
}
END_TEST

/* ---- damage */
static unsigned char *image;
static long image_size;
static void save_image(void) {
  FILE *f = fopen(file, "rb");
  ck_assert_ptr_nonnull(f);
  fseek(f, 0, SEEK_END);
  image_size = ftell(f);
  image = malloc((size_t)image_size);
  rewind(f);
  ck_assert_uint_eq(fread(image, 1, (size_t)image_size, f), (size_t)image_size);
  fclose(f);
}
static void write_image(long n) {
  int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ck_assert(fd >= 0 && write(fd, image, (size_t)n) == n);
  close(fd);
}

enum { ROWS = 6 };
/* Uses a damaged file as a program would; afterwards every row must be there again. */
static void use_and_heal(const char *what, long at) {
  for (int i = 0; i < ROWS; i++) ck_assert_msg(get(i) >= 0, "%s at %ld: a wrong blob for row %d", what, at, i);
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < ROWS; i++)
      if (get(i) != 1) put(i);
  for (int i = 0; i < ROWS; i++)
    ck_assert_msg(get(i) == 1, "%s at %ld: row %d does not heal: %s", what, at, i, where());
  nvb_store_close();
}
static void small_file(const char *name) {
  fresh(name);
  for (int i = 0; i < ROWS; i++) put(i);
  nvb_store_close();
  save_image();
}

START_TEST(every_flipped_byte_heals) { /* all of the header, schema and each page's head; every 61st byte elsewhere */
  small_file("flip");
  static const unsigned char masks[] = { 0x01, 0x80, 0xff };
  int tried = 0;
  for (long at = 0; at < image_size; at += at < 600 || at % 4096 < 40 || at % 4096 > 3900 ? 1 : 61)
    for (int m = 0; m < 3; m++, tried++) {
      image[at] ^= masks[m];
      write_image(image_size);
      image[at] ^= masks[m];
      use_and_heal("a flip", at);
      if (tried % 256 == 0) /* the count of repairs is per process */
        nvb_set("cache_dir", "off"), where(), nvb_set("cache_dir", dir);
    }
  ck_assert_int_gt(tried, 3000);
  free(image);
  sweep();
}
END_TEST

START_TEST(every_truncation_heals) {
  small_file("cut");
  for (long n = 0; n < image_size; n += n < 200 ? 1 : 97) {
    write_image(n);
    use_and_heal("a cut", n);
  }
  free(image);
  sweep();
}
END_TEST

START_TEST(damage_under_a_lock_waits) { /* never replaced while someone else is in it */
  fresh("held");
  put(1);
  nvb_store_close();
  save_image();
  memset(image, 'x', 100);
  write_image(image_size);
  int up[2], down[2];
  ck_assert(!pipe(up) && !pipe(down));
  pid_t pid = fork();
  if (!pid) hold_lock(up[1], down[0]);
  char c;
  ck_assert_int_eq(read(up[0], &c, 1), 1);
  struct stat before, after;
  stat(file, &before);
  put(1);
  ck_assert_int_eq(get(1), 0);
  ck_assert_int_eq(stat(file, &after), 0);
  ck_assert_uint_eq(before.st_ino, after.st_ino);
  ck_assert_int_eq(write(down[1], "q", 1), 1);
  waitpid(pid, NULL, 0);
  usleep(400000);
  get(1), put(1);
  ck_assert_int_eq(get(1), 1);
  free(image);
  sweep();
}
END_TEST

START_TEST(size_is_capped) {
  fresh("cap");
  nvb_set("cache_size", "256K");
  unsigned char big[8000];
  for (int i = 0; i < 300; i++) {
    memset(big, i, sizeof big);
    nvb_store_put("code", key_of(i), big, sizeof big);
  }
  int kept = 0;
  void *blob;
  size_t n;
  for (int i = 0; i < 300; i++)
    if (nvb_store_get("code", key_of(i), &blob, &n)) {
      kept++;
      nvb_free(blob);
    }
  ck_assert_int_le(kept, (256 << 10) / 8000 + 3);
  ck_assert_int_ge(kept, 20);
  ck_assert_int_eq(nvb_store_get("code", key_of(299), &blob, &n), 1); /* what was used last stays */
  nvb_free(blob);
  struct stat s;
  stat(file, &s);
  ck_assert_int_lt(s.st_size, 400 << 10);
  char *huge = calloc(1, 200 << 10); /* more than a quarter of the limit is not kept */
  nvb_store_put("code", key_of(1000), huge, 200 << 10);
  ck_assert_int_eq(nvb_store_get("code", key_of(1000), &blob, &n), 0);
  free(huge);
  sweep();
}
END_TEST

START_TEST(no_memory_is_a_miss) {
  fresh("memory");
  put(1);
  nvb_fail_alloc(1, 1);
  ck_assert_int_eq(get(1), 0);
  nvb_fail_alloc(0, 0);
  ck_assert_int_eq(get(1), 1);
  int64_t before = nvb_live_blocks();
  ck_assert_int_eq(get(1), 1);
  ck_assert_int_eq(nvb_live_blocks(), before);
  sweep();
}
END_TEST

START_TEST(test_kinds) { /* all of a kind, none of another; dropped one by one, or together */
  fresh("kinds");
  nvb_blob *at;
  ck_assert_int_eq(nvb_store_all("tune", &at), 0);
  ck_assert_ptr_null(at);
  for (int i = 0; i < 5; i++) {
    put(i);
    nvb_store_put("tune", key_of(i), &i, i ? sizeof i : 0);
  }
  ck_assert_int_eq(nvb_store_all("tune", &at), 5);
  int seen = 0;
  for (int i = 0, x; i < 5; i++)
    if (at[i].bytes) memcpy(&x, at[i].p, sizeof x), seen |= 1 << x;
  nvb_free(at);
  ck_assert_int_eq(seen, 30); /* and one of no bytes */
  nvb_store_drop("tune", key_of(3));
  void *blob;
  size_t n;
  ck_assert(!nvb_store_get("tune", key_of(3), &blob, &n));
  ck_assert_int_eq(get(3), 1);
  ck_assert_int_eq(nvb_store_clear("tune"), 4);
  ck_assert_int_eq(nvb_store_all("tune", &at), 0);
  for (int i = 0; i < 5; i++) ck_assert_int_eq(get(i), 1);
  sweep();
  ck_assert_int_eq(nvb_set("cache_dir", "off"), NVM_OK);
  ck_assert_int_eq(nvb_store_all("code", &at), 0);
  ck_assert_int_eq(nvb_store_clear("code"), 0);
}
END_TEST

/* ---- rows that are changed */
static size_t count_up(void *arg, const char *blob, size_t bytes, char *out) {
  int n = 0;
  ck_assert(!blob || bytes == sizeof n);
  if (blob) memcpy(&n, blob, bytes);
  *(int *)arg = ++n;
  memcpy(out, &n, sizeof n);
  return sizeof n;
}
static size_t take_away(void *arg, const char *blob, size_t bytes, char *out) {
  (void)bytes, (void)out;
  *(int *)arg = blob != NULL;
  return 0;
}
static int count_many(int child) { /* those that were counted, of 40 */
  int done = 0, n;
  (void)child;
  for (int i = 0; i < 40; i++)
    for (int again = 0; again < 40 && done == i; again++)
      if (nvb_store_change("trial", key_of(5), count_up, &n)) done++;
      else usleep(20000);
  return 40 - done;
}
START_TEST(changes_of_several_processes) { /* each sees the one before */
  enum { CHILDREN = 4 };
  fresh("change");
  int n = 0;
  ck_assert(nvb_store_change("trial", key_of(6), take_away, &n) && !n);
  ck_assert_int_eq(in_children(CHILDREN, count_many), 0);
  ck_assert(nvb_store_change("trial", key_of(5), count_up, &n));
  ck_assert_int_eq(n, 40 * CHILDREN + 1);
  ck_assert(nvb_store_change("trial", key_of(5), take_away, &n) && n);
  ck_assert(nvb_store_change("trial", key_of(5), count_up, &n));
  ck_assert_int_eq(n, 1);
  sweep();
  ck_assert_int_eq(nvb_set("cache_dir", "off"), NVM_OK);
  ck_assert_int_eq(nvb_store_change("trial", key_of(5), count_up, &n), 0);
}
END_TEST

SUITE("store", puts_and_gets, off_and_homeless, writable_folder_is_refused, a_name_beyond_all_paths_is_refused,
      symlinks_are_refused, foreign_folder_is_refused, eight_processes_on_a_cold_store, fork_with_an_open_store,
      killed_writers_leave_no_harm, threads_share_it, held_lock_is_a_miss, every_flipped_byte_heals,
      every_truncation_heals, damage_under_a_lock_waits, size_is_capped, no_memory_is_a_miss, test_kinds,
      changes_of_several_processes)
