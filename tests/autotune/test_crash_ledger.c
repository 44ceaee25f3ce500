/* Candidates on trial: several processes at one, those that end in it, what hung, marks that come from elsewhere. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../folder.h"
#include "../suite.h"
#include "autotune/crash_ledger.h"
#include "autotune/record.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/settings.h"
#include "base/store.h"

static const char choice[] = "warps=8";
static char dir[200];
static nvb_hash key;
static void fresh(const char *sub) {
  snprintf(dir, sizeof dir, "/tmp/nvm-trial-%d-%s", (int)getpid(), sub);
  ck_assert_int_eq(nvb_set("cache_dir", dir), NVM_OK);
  nvt_record_clear();
  key = nvb_hash_bytes("k", 1);
}
static void sweep(void) { sweep_folder(dir); }

/* What the store says of the candidate; "" for nothing. */
static const char *row(void) {
  static char text[NVB_STORE_SMALL];
  void *blob;
  size_t n = 0;
  if (nvb_store_get("trial", nvb_hash_mix(key, choice, strlen(choice)), &blob, &n)) {
    memcpy(text, blob, n);
    nvb_free(blob);
  }
  text[n] = 0;
  return text;
}

/* A process that has the candidate on trial until it is killed; *allowed: whether it was let try. */
static pid_t trying(int *allowed) {
  int up[2];
  char c = 0;
  ck_assert(!pipe(up));
  pid_t pid = fork();
  if (!pid) {
    c = nvt_ledger_begin(key, choice) ? 'y' : 'n';
    if (write(up[1], &c, 1) == 1) pause();
    _exit(0);
  }
  ck_assert_int_eq(read(up[0], &c, 1), 1);
  close(up[0]), close(up[1]);
  *allowed = c == 'y';
  return pid;
}
static void end_it(pid_t pid, int reap) {
  siginfo_t info;
  kill(pid, SIGKILL);
  waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
  if (reap) waitpid(pid, NULL, 0);
}
static void die_in_it(void) {
  int allowed;
  end_it(trying(&allowed), 1);
  ck_assert(allowed);
}

START_TEST(test_alone) { /* nothing stays of what ended */
  fresh("alone");
  ck_assert(nvt_ledger_begin(key, choice) && nvt_ledger_begin(key, "warps=4"));
  char name[NVB_PROCESS_NAME];
  nvb_process_name(name);
  ck_assert(strstr(row(), name));
  ck_assert(nvt_ledger_begin(key, choice)); /* one's own is none of another's */
  nvt_ledger_end(key, choice, 0);
  ck_assert_str_eq(row(), "");
  nvt_ledger_end(key, choice, 0);
  ck_assert_str_eq(row(), "");
  sweep();
}
END_TEST

START_TEST(test_several_at_once) { /* who lives keeps nobody from trying, and ends nobody's trial but its own */
  enum { OTHERS = 12 };            /* more than there is space for */
  fresh("several");
  pid_t pid[OTHERS];
  int allowed;
  for (int i = 0; i < OTHERS; i++) {
    pid[i] = trying(&allowed);
    ck_assert(allowed);
  }
  ck_assert(nvt_ledger_begin(key, choice));
  nvt_ledger_end(key, choice, 0);
  ck_assert_int_eq(strncmp(row(), "died 0\n", 7), 0);
  for (int i = 0; i < OTHERS; i++) end_it(pid[i], 1);
  ck_assert(!nvt_ledger_begin(key, choice));
  sweep();
}
END_TEST

START_TEST(test_deaths) { /* the second one is one too many; who comes through it forgives the first */
  fresh("deaths");
  die_in_it();
  ck_assert(nvt_ledger_begin(key, choice));
  ck_assert_int_eq(strncmp(row(), "died 1\n", 7), 0);
  nvt_ledger_end(key, choice, 0);
  ck_assert_str_eq(row(), "");
  die_in_it();
  die_in_it();
  ck_assert(!nvt_ledger_begin(key, choice) && !nvt_ledger_begin(key, choice));
  ck_assert(nvt_ledger_begin(key, "warps=4"));
  ck_assert_str_eq(row(), "died 2\n");
  nvt_record_clear();
  ck_assert(nvt_ledger_begin(key, choice));
  sweep();
}
END_TEST

START_TEST(test_dead_at_the_same_time) { /* nobody has waited for them yet */
  fresh("together");
  int allowed;
  pid_t one = trying(&allowed), two = trying(&allowed);
  end_it(one, 0);
  ck_assert(nvt_ledger_begin(key, choice));
  end_it(two, 0);
  ck_assert(!nvt_ledger_begin(key, choice));
  waitpid(one, NULL, 0), waitpid(two, NULL, 0);
  sweep();
}
END_TEST

START_TEST(test_hung) { /* once is enough, whoever else comes through it */
  fresh("hung");
  ck_assert(nvt_ledger_begin(key, choice));
  nvt_ledger_end(key, choice, 1);
  ck_assert_str_eq(row(), "hung\n");
  ck_assert(!nvt_ledger_begin(key, choice));
  nvt_ledger_end(key, choice, 0);
  ck_assert(!nvt_ledger_begin(key, choice));
  nvt_record_clear();
  ck_assert(nvt_ledger_begin(key, choice));
  sweep();
}
END_TEST

static void put(const char *text) {
  nvb_store_put("trial", nvb_hash_mix(key, choice, strlen(choice)), text, strlen(text));
}
START_TEST(test_elsewhere) { /* a process that cannot be seen from here has ended when its mark is old */
  fresh("elsewhere");
  char text[200];
  static const struct {
    long age;
    int died;
  } marks[] = { { 0, 0 }, { 500, 0 }, { 700, 1 }, { -700, 1 } };
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    snprintf(text, sizeof text, "died 0\nother-boot.1.17.99 %ld\n", (long)time(NULL) - marks[i].age);
    put(text);
    ck_assert(nvt_ledger_begin(key, choice));
    ck_assert_int_eq(row()[5] - '0', marks[i].died);
    ck_assert_int_eq(strstr(row(), "other") != NULL, !marks[i].died);
  }
  sweep();
}
END_TEST

START_TEST(test_a_number_given_again) { /* another process with the number of one that ended */
  fresh("again");
  char name[NVB_PROCESS_NAME], text[300];
  nvb_process_name(name);
  snprintf(text, sizeof text, "died 0\n%.*s1 %ld\n", (int)strlen(name) - 1, name, (long)time(NULL));
  if (name[strlen(name) - 1] == '1') strstr(text, "1 ")[0] = '2';
  put(text);
  ck_assert(nvt_ledger_begin(key, choice));
  ck_assert_int_eq(strncmp(row(), "died 1\n", 7), 0);
  sweep();
}
END_TEST

START_TEST(test_other_texts) { /* what nobody here writes reads as nothing */
  static const char *const texts[] = { "", "died", "died x\n", "hung", "died 0", "died 0\nx\n", "died 0\n\n\n x y z" };
  fresh("texts");
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    put(texts[i]);
    ck_assert_msg(nvt_ledger_begin(key, choice), "%s", texts[i]);
    nvt_ledger_end(key, choice, 0);
    ck_assert_str_eq(row(), "");
  }
  char large[2 * NVB_STORE_SMALL];
  memset(large, '7', sizeof large - 1);
  large[sizeof large - 1] = 0;
  put(large);
  ck_assert(nvt_ledger_begin(key, choice));
  sweep();
}
END_TEST

START_TEST(test_without_store) {
  ck_assert_int_eq(nvb_set("cache_dir", "off"), NVM_OK);
  ck_assert(nvt_ledger_begin(key, choice));
  nvt_ledger_end(key, choice, 0);
}
END_TEST

SUITE("trial", test_alone, test_several_at_once, test_deaths, test_dead_at_the_same_time, test_hung, test_elsewhere,
      test_a_number_given_again, test_other_texts, test_without_store)
