/* Implements the disk cache with SQLite, which no other file includes: one connection behind one lock. Decides where
   the file may be, when a row is trusted, what is evicted when the file grows, and when a damaged file is replaced.
   It never waits longer than BUSY_MS for another process and never modifies a file that another process has locked;
   no failure here is an error of the caller. */
#include "base/store.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/settings.h"

enum { BUSY_MS = 50, REST_MS = 250, HEALS = 4, ROW_MAX = 64 << 20, TOUCH_S = 3600 };

enum { GET, TOUCH, PUT, DROP, TOTAL, EVICT, BEGIN, COMMIT, ALL, CLEAR, NSTMT };
/* id: 64 bits of the hash of (key, kind). sum: the hash of (kind, key, blob), which every read verifies. */
static const char schema[] =
    "PRAGMA auto_vacuum = INCREMENTAL; BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS entry1(id INTEGER PRIMARY KEY, kind TEXT, used INTEGER, size INTEGER, sum BLOB, "
    "blob BLOB);"
    "CREATE INDEX IF NOT EXISTS use1 ON entry1(used, size); COMMIT";
static const char *const sql[NSTMT] = {
  [GET] = "SELECT used, sum, blob FROM entry1 WHERE id = ?1",
  [TOUCH] = "UPDATE entry1 SET used = ?2 WHERE id = ?1",
  [PUT] = "INSERT OR REPLACE INTO entry1(id, kind, used, size, sum, blob) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
  [DROP] = "DELETE FROM entry1 WHERE id = ?1",
  [TOTAL] = "SELECT sum(size) FROM entry1",
  [EVICT] = "DELETE FROM entry1 WHERE id IN (SELECT id FROM (SELECT id, "
            "sum(size) OVER (ORDER BY used DESC, id DESC ROWS UNBOUNDED PRECEDING) AS upto FROM entry1) "
            "WHERE upto > ?1)",
  [BEGIN] = "BEGIN IMMEDIATE",
  [COMMIT] = "COMMIT",
  [ALL] = "SELECT blob FROM entry1 WHERE kind = ?1 ORDER BY used DESC, id",
  [CLEAR] = "DELETE FROM entry1 WHERE kind = ?1",
};

static nvb_lock lock = NVB_LOCK(STORE);
NVB_HOLD_AT_FORK(lock);
static struct {
  sqlite3 *db;
  sqlite3_stmt *stmt[NSTMT];
  nvb_hash setting;     /* hash of the NVM_CACHE_DIR that `where` was made from; 0: none */
  char where[PATH_MAX]; /* the path, or the reason why there is no store */
  int refused;          /* 1: `where` holds a reason, which stays until the setting changes */
  int inspected;        /* 1: the open file was searched for damage */
  int heals;            /* files replaced by this process */
  dev_t dev;
  ino_t ino;          /* identity of the open file */
  int64_t rest_until; /* time in ns until which a locked file is not tried again */
  int64_t unchecked;  /* bytes written since the size was checked; -1: it never was */
} store = { .unchecked = -1 };

static void leave_alone(void) { store.rest_until = nvb_clock_ns() + (int64_t)REST_MS * 1000000; }
static int is_left_alone(void) { return nvb_clock_ns() < store.rest_until; }

/* ---- where the file may be */
static int refuse_file(const char *why, const char *what) {
  snprintf(store.where, sizeof store.where, "%s%s%.3000s", why, *what ? ": " : "", what);
  store.refused = 1;
  nvb_log(1, "no disk cache: %s", store.where);
  return 0;
}

static int private_to_us(const struct stat *s) { return s->st_uid == geteuid() && !(s->st_mode & (S_IWGRP | S_IWOTH)); }

static int under_tmp(const char *dir) {
  return !strncmp(dir, "/tmp/", 5) || !strncmp(dir, "/var/tmp/", 9) || !strncmp(dir, "/dev/shm/", 9);
}

static int folder_name(char *dir, size_t size) {
  const char *given = nvb_str(NVB_CACHE_DIR), *xdg = nvb_env("XDG_CACHE_HOME"), *home = nvb_env("HOME");
  int n;
  if (!strcmp(given, "off")) return refuse_file("off", "");
  if (*given) n = snprintf(dir, size, "%s", given);
  else if (xdg && *xdg == '/') n = snprintf(dir, size, "%s/nvm", xdg);
  else if (home && *home == '/') n = snprintf(dir, size, "%s/.cache/nvm", home);
  else return refuse_file("refused: neither NVM_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder", "");
  if (n < 0 || n > PATH_MAX - 64) return refuse_file("refused: the path is too long", "");
  while (n > 1 && dir[n - 1] == '/') /* lstat of a name that ends in / would follow a symlink */
    dir[--n] = 0;
  if (!*given && under_tmp(dir)) return refuse_file("refused: a folder for everyone's temporary files", dir);
  return 1;
}

static int folder_make(char *dir) {
  for (char *at = dir + 1; (at = strchr(at, '/')); at++) {
    *at = 0;
    mkdir(dir, 0700);
    *at = '/';
  }
  mkdir(dir, 0700);
  struct stat s;
  if (lstat(dir, &s)) return refuse_file("refused: cannot be made", dir);
  if (!S_ISDIR(s.st_mode)) return refuse_file(S_ISLNK(s.st_mode) ? "refused: a symlink" : "refused: not a folder", dir);
  return private_to_us(&s) ? 1 : refuse_file("refused: owned or writable by others", dir);
}

/* Finds or creates the file and stores its path and identity. It never opens and closes a descriptor of an existing
   file: closing one would drop this process's POSIX locks on that file. */
static int find_file(void) {
  char dir[PATH_MAX];
  if (!folder_name(dir, sizeof dir) || !folder_make(dir)) return 0;
  snprintf(store.where, sizeof store.where, "%.*s/cache.db", PATH_MAX - 64, dir);
  struct stat s;
  if (lstat(store.where, &s)) {
    int fd = open(store.where, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    if (lstat(store.where, &s)) return refuse_file("refused: no file can be made in", dir);
  }
  if (!S_ISREG(s.st_mode) || !private_to_us(&s) || s.st_nlink > 1)
    return refuse_file("refused: cache.db is a link, or owned or writable by others, in", dir);
  store.dev = s.st_dev;
  store.ino = s.st_ino;
  return 1;
}

/* ---- the connection */
static void close_db(void) {
  for (int i = 0; i < NSTMT; i++) sqlite3_finalize(store.stmt[i]);
  memset(store.stmt, 0, sizeof store.stmt);
  sqlite3_close_v2(store.db);
  store.db = NULL;
}

/* Moves a damaged file out of the way, if it is still the file that was open and no other process uses it: the lock
   covers the whole range of SQLite's own locks. Other connections keep the old file and find the new one later. */
static void replace_damaged(void) {
  close_db();
  if (store.heals >= HEALS) {
    refuse_file("refused: damaged again and again", "");
    return;
  }
  int fd = open(store.where, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  struct stat mine, now;
  struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512 };
  if (fd >= 0 && !fstat(fd, &mine) && !fcntl(fd, F_SETLK, &all) && !lstat(store.where, &now) &&
      now.st_ino == mine.st_ino && now.st_ino == store.ino && now.st_dev == store.dev) {
    char other[PATH_MAX + 16];
    const char *const side[] = { "-journal", "-wal", "-shm" };
    for (int i = 0; i < 3; i++) { /* SQLite would apply these files of the damaged database to the new one */
      snprintf(other, sizeof other, "%s%s", store.where, side[i]);
      unlink(other);
    }
    snprintf(other, sizeof other, "%s.bad", store.where);
    rename(store.where, other);
    store.heals++;
    nvb_log(1, "the disk cache was damaged; a new one is begun, the old one is %s", other);
  } else {
    leave_alone();
  }
  if (fd >= 0) close(fd);
}

/* Searches the file for damage. This reads all of it, so it happens at most once each time the file is opened. */
static int looks_damaged(void) {
  sqlite3_stmt *q = NULL;
  if (!store.db || store.inspected) return 0;
  store.inspected = 1;
  int rc = sqlite3_prepare_v2(store.db, "PRAGMA quick_check(1)", -1, &q, NULL);
  rc = rc == SQLITE_OK ? sqlite3_step(q) : rc;
  const char *says = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
  int damaged = says ? strcmp(says, "ok") != 0 : rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB;
  sqlite3_finalize(q);
  return damaged;
}

/* Reacts to a failed call: leaves a busy file alone for a while and replaces a damaged one; anything else is a miss. */
static void note_failure(int rc) {
  struct stat s;
  switch (rc & 0xff) {
  case SQLITE_BUSY: case SQLITE_LOCKED: case SQLITE_PROTOCOL:
    leave_alone();
    break;
  case SQLITE_READONLY: /* the file was replaced, or it is writable and only its damaged header says that it is not */
    if (access(store.where, W_OK)) break;
    if (lstat(store.where, &s) || s.st_ino != store.ino || s.st_dev != store.dev) {
      close_db();
      break;
    }
    replace_damaged();
    break;
  case SQLITE_CORRUPT: case SQLITE_NOTADB: case SQLITE_FORMAT: case SQLITE_ERROR: case SQLITE_MISMATCH:
  case SQLITE_SCHEMA: case SQLITE_TOOBIG:
    replace_damaged();
    break;
  default: /* a full disk and impossible page numbers of a damaged tree give the same error */
    nvb_log(1, "disk cache: %s", sqlite3_errstr(rc));
    if (looks_damaged()) replace_damaged();
    else leave_alone();
  }
}

static int prepare_statements(void) {
  int rc = SQLITE_OK;
  for (int i = 0; i < NSTMT && rc == SQLITE_OK; i++)
    if (!store.stmt[i]) rc = sqlite3_prepare_v3(store.db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &store.stmt[i], NULL);
  return rc;
}

static int open_db(void) {
  store.inspected = 0;
  int rc = sqlite3_open_v2(store.where, &store.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  if (rc == SQLITE_OK) {
    sqlite3_busy_timeout(store.db, BUSY_MS);
    sqlite3_limit(store.db, SQLITE_LIMIT_LENGTH, ROW_MAX + 4096);
    /* A power loss may damage the file, which is then replaced; a killed process does not damage it. */
    rc = sqlite3_exec(store.db,
                      "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = OFF; PRAGMA trusted_schema = OFF;"
                      "PRAGMA cell_size_check = ON",
                      NULL, NULL, NULL);
  }
  if (rc == SQLITE_OK && (rc = prepare_statements()) == SQLITE_ERROR) /* a new file has no table yet */
    if ((rc = sqlite3_exec(store.db, schema, NULL, NULL, NULL)) == SQLITE_OK) rc = prepare_statements();
  if (rc == SQLITE_OK) return 1;
  note_failure(rc);
  close_db();
  return 0;
}

/* SQLite forbids a child to use its parent's connection: the connection is closed before a fork, and parent and
   child each open their own when they need one. */
NVB_AT_FORK(.before = close_db);

/* Takes the lock; returns 1 if there is a store to use. The caller unlocks in either case. */
static int lock_store(void) {
  const char *text = nvb_str(NVB_CACHE_DIR);
  nvb_hash setting = nvb_hash_bytes(text, strlen(text));
  nvb_lock_take(&lock);
  if (!nvb_hash_eq(setting, store.setting)) {
    close_db();
    store.setting = setting;
    store.refused = store.heals = 0;
    store.rest_until = 0;
    store.unchecked = -1;
  }
  return !store.refused && !is_left_alone() && (store.db || (find_file() && open_db()));
}

/* ---- rows */
static nvb_hash row_name(const char *kind, nvb_hash key) { return nvb_hash_mix(key, kind, strlen(kind)); }

/* Runs a statement to its first row or its end and resets it. Returns SQLITE_ROW, SQLITE_DONE, or 0 on failure. */
static int run_statement(int which) {
  int rc = sqlite3_step(store.stmt[which]);
  sqlite3_reset(store.stmt[which]);
  sqlite3_clear_bindings(store.stmt[which]);
  if (rc == SQLITE_DONE || rc == SQLITE_ROW) return rc;
  note_failure(rc);
  return 0;
}

static void one_row(int which, int64_t id) {
  sqlite3_bind_int64(store.stmt[which], 1, id);
  if (which == TOUCH) sqlite3_bind_int64(store.stmt[which], 2, time(NULL));
  run_statement(which);
}

/* Returns 1 for a row whose hash matches, 0 if there is none, -1 for a damaged one. */
static int read_row(nvb_hash name, void **blob, size_t *bytes, int64_t *used) {
  sqlite3_stmt *q = store.stmt[GET];
  sqlite3_bind_int64(q, 1, (int64_t)name.lo);
  int rc = sqlite3_step(q), found = 0;
  if (rc == SQLITE_ROW) {
    *used = sqlite3_column_int64(q, 0);
    const void *sum = sqlite3_column_blob(q, 1), *p = sqlite3_column_blob(q, 2);
    size_t n = (size_t)sqlite3_column_bytes(q, 2);
    int whole = sqlite3_column_bytes(q, 1) == (int)sizeof name && sqlite3_column_type(q, 2) == SQLITE_BLOB && (p || !n);
    nvb_hash h = nvb_hash_mix(name, p, n);
    found = whole && sum && !memcmp(sum, &h, sizeof h) ? 1 : -1;
    if (found == 1 && (*blob = nvb_alloc(n))) {
      if (n) memcpy(*blob, p, n);
      *bytes = n;
    } else if (found == 1) {
      found = 0; /* out of memory: a miss */
    }
  }
  sqlite3_reset(q);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) note_failure(rc);
  return found;
}

int nvb_store_get(const char *kind, nvb_hash key, void **blob, size_t *bytes) {
  int found = 0;
  int64_t used = 0;
  if (lock_store()) {
    nvb_hash name = row_name(kind, key);
    found = read_row(name, blob, bytes, &used);
    if (found < 0) one_row(DROP, (int64_t)name.lo);
    else if (found && time(NULL) - used > TOUCH_S) one_row(TOUCH, (int64_t)name.lo);
  }
  nvb_lock_give(&lock);
  return found > 0;
}

void nvb_store_drop(const char *kind, nvb_hash key) {
  if (lock_store()) one_row(DROP, (int64_t)row_name(kind, key).lo);
  nvb_lock_give(&lock);
}

/* If the rows are larger than the limit, evicts the least recently used ones, down to 7/8 of the limit. Checks at
   the first put and after each 1/16 of the limit. */
static void keep_small(int64_t more) {
  int64_t limit = nvb_int(NVB_CACHE_SIZE), total = 0;
  if (store.unchecked >= 0 && (store.unchecked += more) < limit / 16) return;
  sqlite3_stmt *q = store.stmt[TOTAL];
  int rc = sqlite3_step(q);
  if (rc == SQLITE_ROW) total = sqlite3_column_int64(q, 0);
  sqlite3_reset(q);
  if (rc != SQLITE_ROW) {
    note_failure(rc);
    return;
  }
  store.unchecked = 0;
  if (total <= limit) return;
  sqlite3_bind_int64(store.stmt[EVICT], 1, limit - limit / 8);
  if (run_statement(EVICT)) sqlite3_exec(store.db, "PRAGMA incremental_vacuum", NULL, NULL, NULL);
}

/* Ends the transaction: commits if `good`, else, or if the commit fails, rolls back. Returns 1 if it was committed. */
static int end_transaction(int good) {
  good = good && run_statement(COMMIT);
  if (store.db && !sqlite3_get_autocommit(store.db)) sqlite3_exec(store.db, "ROLLBACK", NULL, NULL, NULL);
  return good;
}

/* Writes a row and reads it back: if the row is missing, the tree is damaged. The caller's transaction contains
   both, so no other process can have deleted the row. */
static int put_row(const char *kind, nvb_hash name, const void *blob, size_t bytes) {
  nvb_hash sum = nvb_hash_mix(name, blob, bytes);
  sqlite3_stmt *q = store.stmt[PUT];
  sqlite3_bind_int64(q, 1, (int64_t)name.lo);
  sqlite3_bind_text(q, 2, kind, -1, SQLITE_STATIC);
  sqlite3_bind_int64(q, 3, time(NULL));
  sqlite3_bind_int64(q, 4, (int64_t)bytes);
  sqlite3_bind_blob(q, 5, &sum, sizeof sum, SQLITE_STATIC);
  sqlite3_bind_blob(q, 6, bytes ? blob : "", (int)bytes, SQLITE_STATIC);
  if (!run_statement(PUT)) return 0;
  sqlite3_bind_int64(store.stmt[GET], 1, (int64_t)name.lo);
  int found = run_statement(GET);
  if (found == SQLITE_DONE) note_failure(SQLITE_CORRUPT);
  return found == SQLITE_ROW;
}

static int write_row(const char *kind, nvb_hash name, const void *blob, size_t bytes) {
  return run_statement(BEGIN) && end_transaction(put_row(kind, name, blob, bytes));
}

int nvb_store_put(const char *kind, nvb_hash key, const void *blob, size_t bytes) {
  int again = lock_store() && bytes <= ROW_MAX && (int64_t)bytes <= nvb_int(NVB_CACHE_SIZE) / 4, done = 0;
  while (again) { /* tries again if the file had to be replaced */
    int heals = store.heals;
    if ((done = write_row(kind, row_name(kind, key), blob, bytes))) keep_small((int64_t)bytes);
    again = store.heals != heals && find_file() && open_db();
  }
  nvb_lock_give(&lock);
  return done;
}

static int change_row(const char *kind, nvb_hash name, nvb_store_changer *change, void *arg) {
  void *blob = NULL;
  char out[NVB_STORE_SMALL];
  size_t bytes = 0;
  int64_t used;
  if (!run_statement(BEGIN)) return 0;
  int found = read_row(name, &blob, &bytes, &used), good = store.db != NULL;
  if (good) {
    size_t n = change(arg, found > 0 ? blob : NULL, found > 0 ? bytes : 0, out);
    sqlite3_bind_int64(store.stmt[DROP], 1, (int64_t)name.lo);
    good = n ? put_row(kind, name, out, n) : run_statement(DROP);
  }
  nvb_free(blob);
  return end_transaction(good);
}

int nvb_store_change(const char *kind, nvb_hash key, nvb_store_changer *change, void *arg) {
  int again = lock_store(), done = 0;
  while (again) { /* tries again as nvb_store_put does */
    int heals = store.heals;
    done = change_row(kind, row_name(kind, key), change, arg);
    again = !done && store.heals != heals && find_file() && open_db();
  }
  nvb_lock_give(&lock);
  return done;
}

/* ---- all of a kind */
typedef struct heap { char *bytes; size_t n, cap; int rows; } heap; /* each row is its size, then its bytes */

static int heap_add(heap *h, const void *p, size_t n) {
  size_t need = h->n + sizeof n + n;
  if (need > h->cap) {
    char *more = nvb_realloc(h->bytes, 2 * need);
    if (!more) return 0;
    h->bytes = more;
    h->cap = 2 * need;
  }
  memcpy(h->bytes + h->n, &n, sizeof n);
  if (n) memcpy(h->bytes + h->n + sizeof n, p, n);
  h->n = need;
  h->rows++;
  return 1;
}

static nvb_blob *heap_blobs(const heap *h) {
  nvb_blob *at = h->rows ? nvb_alloc((size_t)h->rows * sizeof *at + h->n) : NULL;
  if (!at) return NULL;
  const char *p = memcpy((char *)(at + h->rows), h->bytes, h->n);
  for (int i = 0; i < h->rows; i++) {
    memcpy(&at[i].bytes, p, sizeof at[i].bytes);
    at[i].p = p + sizeof at[i].bytes;
    p += sizeof at[i].bytes + at[i].bytes;
  }
  return at;
}

int nvb_store_all(const char *kind, nvb_blob **at) {
  heap h = { 0 };
  int asked = lock_store() || store.refused;
  if (asked && !store.refused) {
    sqlite3_stmt *q = store.stmt[ALL];
    int rc;
    sqlite3_bind_text(q, 1, kind, -1, SQLITE_STATIC);
    while ((rc = sqlite3_step(q)) == SQLITE_ROW &&
           heap_add(&h, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0)));
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) note_failure(rc);
    asked = !is_left_alone();
  }
  nvb_lock_give(&lock);
  *at = asked ? heap_blobs(&h) : NULL;
  nvb_free(h.bytes);
  return *at ? h.rows : asked ? 0 : -1;
}

int nvb_store_clear(const char *kind) {
  int there = lock_store(), n = store.refused ? 0 : -1;
  if (there) {
    sqlite3_bind_text(store.stmt[CLEAR], 1, kind, -1, SQLITE_STATIC);
    if (run_statement(CLEAR)) n = sqlite3_changes(store.db);
  }
  nvb_lock_give(&lock);
  return n;
}

int nvb_store_where(char *text, size_t size) {
  lock_store();
  int there = !store.refused;
  snprintf(text, size, "%s", store.where);
  nvb_lock_give(&lock);
  return there;
}

void nvb_store_close(void) {
  nvb_lock_take(&lock);
  close_db();
  store.setting = (nvb_hash){ 0, 0 };
  nvb_lock_give(&lock);
}
