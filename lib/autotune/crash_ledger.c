/* The crash ledger's rows. A row says "hung", or how many processes ended while measuring the candidate, with one mark
   for each process that is measuring it. Decides which candidates are still tried; never which is best. */
#include "autotune/crash_ledger.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/process.h"
#include "base/store.h"

/* Seconds that measuring takes at most, compiling included: a process that cannot be observed from here, and whose mark
   is older, is taken to have ended. */
enum { LONGEST = 600 };
enum { MOST = 8 }; /* marks of one candidate; a process that finds this many adds none */
typedef struct mark { char who[NVB_PROCESS_NAME]; int64_t since; } mark; /* since: seconds since 1970 */
typedef struct ledger_entry { int hung, died, n; mark at[MOST]; } ledger_entry;

/* Parses a row; any other text reads as an empty row. */
static void read_entry(ledger_entry *t, const char *blob, size_t bytes) {
  char text[NVB_STORE_SMALL + 1] = "", *at = text;
  mark m;
  int n = 0;
  *t = (ledger_entry){ .n = 0 };
  if (blob && bytes < sizeof text) memcpy(text, blob, bytes);
  t->hung = !strcmp(text, "hung\n");
  if (sscanf(at, "died %3d\n%n", &t->died, &n) != 1) return;
  for (at += n; t->n < MOST && sscanf(at, "%127s %" SCNd64 "\n%n", m.who, &m.since, &n) == 2; at += n)
    t->at[t->n++] = m;
}

static size_t write_entry(const ledger_entry *t, char *out) {
  int n = snprintf(out, NVB_STORE_SMALL, t->hung ? "hung\n" : "died %d\n", t->died);
  for (int i = 0; i < t->n && !t->hung; i++)
    n += snprintf(out + n, NVB_STORE_SMALL - (size_t)n, "%s %" PRId64 "\n", t->at[i].who, t->at[i].since);
  return t->hung || t->died || t->n ? (size_t)n : 0;
}

static int is_dead(const mark *m, int64_t now) {
  nvb_life life = nvb_process_look(m->who);
  return life == NVB_ENDED || (life == NVB_ELSEWHERE && (now < m->since - LONGEST || now > m->since + LONGEST));
}

static void drop_attempt(ledger_entry *t, int i) { t->at[i] = t->at[--t->n]; }

/* Replaces the marks of processes that have ended by a count. */
static void count_dead(ledger_entry *t, int64_t now) {
  for (int i = t->n - 1; i >= 0; i--)
    if (is_dead(&t->at[i], now)) {
      t->died += t->died < 999;
      drop_attempt(t, i);
    }
}

static void drop_own(ledger_entry *t, const char *who) {
  for (int i = t->n - 1; i >= 0; i--)
    if (!strcmp(t->at[i].who, who)) drop_attempt(t, i);
}

typedef struct ledger_change { char who[NVB_PROCESS_NAME]; int64_t now; int allowed, hung; } ledger_change;

static size_t begin_attempt(void *arg, const char *blob, size_t bytes, char *out) {
  ledger_change *q = arg;
  ledger_entry t;
  read_entry(&t, blob, bytes);
  drop_own(&t, q->who);
  count_dead(&t, q->now);
  q->allowed = !t.hung && t.died < NVT_DEATHS;
  if (q->allowed && t.n < MOST) {
    t.at[t.n].since = q->now;
    memcpy(t.at[t.n++].who, q->who, sizeof q->who);
  }
  return write_entry(&t, out);
}

static size_t end_attempt(void *arg, const char *blob, size_t bytes, char *out) {
  ledger_change *q = arg;
  ledger_entry t;
  read_entry(&t, blob, bytes);
  drop_own(&t, q->who);
  t.died = 0;
  t.hung |= q->hung;
  return write_entry(&t, out);
}

static int change_entry(nvb_hash key, const char *choice, nvb_store_changer *f, int hung) {
  ledger_change q = { .now = (int64_t)time(NULL), .allowed = 1, .hung = hung };
  nvb_process_name(q.who);
  nvb_store_change("trial", nvb_hash_mix(key, choice, strlen(choice)), f, &q);
  return q.allowed;
}

int nvt_ledger_begin(nvb_hash key, const char *choice) { return change_entry(key, choice, begin_attempt, 0); }
void nvt_ledger_end(nvb_hash key, const char *choice, int hung) { change_entry(key, choice, end_attempt, hung); }
