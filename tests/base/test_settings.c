/* The settings table: environment, nvm_set, units, lists, dumps. Each test runs in a process of its own. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../comma.h"
#include "../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"

START_TEST(environment_is_read_at_first_use) {
  setenv("NVM_NUM_THREADS", "7", 1);
  setenv("NVM_CACHE_SIZE", "3k", 1);
  setenv("NVM_MEM_LIMIT", "much", 1); /* cannot be read: as if absent */
  setenv("NVM_TIER", "0", 1);
  ck_assert_int_eq(nvb_int(NVB_THREADS), 7);
  ck_assert_int_eq(nvb_int(NVB_CACHE_SIZE), 3 << 10);
  ck_assert_int_eq(nvb_int(NVB_MEM_LIMIT), 0);
  ck_assert_int_eq(nvb_int(NVB_MEM_CACHE), 1 << 30);
  ck_assert_str_eq(nvb_str(NVB_TIER), "0");
  setenv("NVM_TIER", "1", 1);
  ck_assert_str_eq(nvb_str(NVB_TIER), "0");
}
END_TEST

START_TEST(values_are_set_by_either_name) {
  uint64_t v = nvb_settings_version();
  ck_assert_int_eq(nvb_set("fuse", "off"), NVM_OK);
  ck_assert_str_eq(nvb_str(NVB_FUSE), "off");
  ck_assert_uint_ne(nvb_settings_version(), v);
  ck_assert_int_eq(nvb_set("NVM_Fuse", "on"), NVM_OK);
  ck_assert_str_eq(nvb_str(NVB_FUSE), "on");
  ck_assert_uint_eq(nvb_settings_version(), v); /* what was planned under these values is found again */
  ck_assert_int_eq(nvb_set("fuse", "off"), NVM_OK);
  ck_assert_int_eq(nvb_set("fuse", NULL), NVM_OK); /* the default */
  ck_assert_str_eq(nvb_str(NVB_FUSE), "on");
  static const struct {
    const char *s;
    int64_t n;
  } sizes[] = { { "0", 0 }, { "12", 12 }, { "2K", 2048 }, { "5m", 5 << 20 }, { "3G", 3ll << 30 }, { "1T", 1ll << 40 } };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    ck_assert_int_eq(nvb_set("mem_limit", sizes[i].s), NVM_OK);
    ck_assert_int_eq(nvb_int(NVB_MEM_LIMIT), sizes[i].n);
  }
}
END_TEST

START_TEST(names_are_the_same_in_every_locale) {
  if (use_locale("tr_TR")) /* where an I is no great i */
    ck_assert_int_eq(nvb_set("tier", "0"), NVM_OK);
}
END_TEST

START_TEST(what_cannot_be_is_refused) {
  uint64_t v = nvb_settings_version();
  static const char *const bad[] = { "", "x", "-1", "2X", "2KB", "1.5G", " 3", "99999999999G", "99999999999999999999" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ck_assert_msg(nvb_set("mem_limit", bad[i]) == NVM_ERR_VALUE, "\"%s\" was taken", bad[i]);
  ck_assert_int_eq(nvb_set("num_threads", "2K"), NVM_ERR_VALUE); /* a count has no unit */
  ck_assert_int_eq(nvb_set("no_such", "1"), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvb_message(), "no_such"));
  ck_assert_uint_eq(nvb_settings_version(), v);
  ck_assert_int_eq(nvb_int(NVB_MEM_LIMIT), 0);
}
END_TEST

START_TEST(words_that_a_setting_does_not_take_are_refused) {
  static const struct {
    const char *name, *value, *message;
  } bad[] = { { "fuse", "maybe", "[set] NVM_FUSE takes on or off, not \"maybe\"" },
              { "fuse", "", "[set] NVM_FUSE takes on or off, not \"\"" },
              { "fuse", "on,off", "[set] NVM_FUSE takes on or off, not \"on,off\"" },
              { "tier", "2", "[set] NVM_TIER takes auto, 0, 1, direct or planned, not \"2\"" },
              { "tune", "frozen ", "[set] NVM_TUNE takes off, estimate, measure or frozen, not \"frozen \"" },
              { "isa", "avx2", "[set] NVM_ISA takes native, 128, 256 or 512, not \"avx2\"" },
              { "reproducible", "2", "[set] NVM_REPRODUCIBLE takes 0 or 1, not \"2\"" },
              { "check", "graph,plans",
                "[set] NVM_CHECK takes a list of graph, plan, bits, borrow, locks or all, not \"graph,plans\"" },
              { "dump", "ptx",
                "[set] NVM_DUMP takes a list of collect, graph, plan, tune, kernel, llvm, asm, cuda, run or all, "
                "not \"ptx\"" },
              { "solvers", "mkl",
                "[set] NVM_SOLVERS takes a list of openblas, cublaslt, cufft, cusolver, kernel or all, "
                "not \"mkl\"" },
              { "device", "foo", "[set] NVM_DEVICE takes auto, cpu, cuda or cuda:N, not \"foo\"" },
              { "device", "cuda:", "[set] NVM_DEVICE takes auto, cpu, cuda or cuda:N, not \"cuda:\"" },
              { "device", "cuda:1x", "[set] NVM_DEVICE takes auto, cpu, cuda or cuda:N, not \"cuda:1x\"" },
              { "device", "cuda:N", "[set] NVM_DEVICE takes auto, cpu, cuda or cuda:N, not \"cuda:N\"" },
              { "num_threads", "two", "[set] NVM_NUM_THREADS takes a count, not \"two\"" },
              { "mem_cache", "1.5G", "[set] NVM_MEM_CACHE takes a count of bytes such as 512M, not \"1.5G\"" } };
  uint64_t v = nvb_settings_version();
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ck_assert_int_eq(nvb_set(bad[i].name, bad[i].value), NVM_ERR_VALUE);
    ck_assert_str_eq(nvb_message(), bad[i].message);
  }
  ck_assert_uint_eq(nvb_settings_version(), v);
  ck_assert_int_eq(nvb_set("check", "plan,bits"), NVM_OK);
  ck_assert_int_eq(nvb_set("check", ""), NVM_OK); /* an empty list */
  ck_assert_int_eq(nvb_set("solvers", "kernel,openblas"), NVM_OK);
  ck_assert_int_eq(nvb_set("device", "cuda:12"), NVM_OK);
}
END_TEST

START_TEST(what_the_environment_says_in_vain_is_told) {
  char line[320] = "";
  setenv("NVM_FUSE", "maybe", 1);
  setenv("NVM_NUM_THREADS", "few", 1);
  setenv("NVM_DUMP", "graph,pla", 1);
  setenv("NVM_TIER", "", 1); /* as if absent */
  setenv("NVM_TUNE", "off", 1);
  ck_assert_str_eq(nvb_str(NVB_FUSE), "on");
  ck_assert_int_eq(nvb_int(NVB_THREADS), 0);
  ck_assert_str_eq(nvb_str(NVB_TIER), "auto");
  ck_assert(!nvb_has(NVB_DUMP, "graph"));
  for (int i = 0; i < NVB_NSETTINGS; i++)
    ck_assert_int_eq(nvb_setting_invalid(i, line, sizeof line), i == NVB_FUSE || i == NVB_THREADS || i == NVB_DUMP);
  nvb_setting_invalid(NVB_FUSE, line, sizeof line);
  ck_assert_str_eq(line, "NVM_FUSE=maybe in the environment is invalid and ignored; it must be on or off");
}
END_TEST

START_TEST(lists_have_words) {
  nvb_set("dump", "graph,plan");
  ck_assert(nvb_has(NVB_DUMP, "graph") && nvb_has(NVB_DUMP, "plan"));
  ck_assert(!nvb_has(NVB_DUMP, "pla") && !nvb_has(NVB_DUMP, "plans") && !nvb_has(NVB_DUMP, "kernel"));
  nvb_set("check", "all");
  ck_assert(nvb_has(NVB_CHECK, "bits"));
  nvb_set("check", "");
  ck_assert(!nvb_has(NVB_CHECK, "bits"));
}
END_TEST

START_TEST(table_lists_itself) {
  const char *name, *value, *def, *doc;
  int n = 0;
  for (; nvb_setting_info(n, &name, &value, &def, &doc); n++) {
    ck_assert_int_eq(strncmp(name, "NVM_", 4), 0);
    ck_assert(*doc);
    ck_assert_msg(nvb_set(name, def) == NVM_OK, "the default of %s is refused", name);
  }
  ck_assert_int_eq(n, NVB_NSETTINGS);
  ck_assert_int_eq(nvb_setting_info(-1, &name, &value, &def, &doc), 0);
}
END_TEST

START_TEST(toggling_costs_no_memory) {
  nvb_set("fuse", "off"), nvb_set("fuse", "on");
  int64_t before = nvb_live_blocks();
  for (int i = 0; i < 1000; i++) nvb_set("fuse", i & 1 ? "off" : "on");
  ck_assert_int_eq(nvb_live_blocks(), before);
  nvb_fail_alloc(1, 1);
  ck_assert_int_eq(nvb_set("dump_dir", "a new text"), NVM_ERR_MEMORY);
  nvb_fail_alloc(0, 0);
  ck_assert_str_eq(nvb_str(NVB_DUMP_DIR), "");
}
END_TEST

START_TEST(dumps_go_to_files) {
  char dir[] = "/tmp/nvm-dump-XXXXXX", path[64], text[32] = "";
  ck_assert_ptr_nonnull(mkdtemp(dir));
  nvb_set("dump", "plan"), nvb_set("dump_dir", dir);
  nvb_dump("plan", "a/../b", "the plan\n");
  nvb_dump("graph", "c", "not asked for\n");
  snprintf(path, sizeof path, "%s/a_.._b.plan", dir);
  FILE *f = fopen(path, "r");
  ck_assert_ptr_nonnull(f);
  ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
  ck_assert_str_eq(text, "the plan\n");
  fclose(f);
  unlink(path);
  ck_assert_int_eq(rmdir(dir), 0); /* nothing else was written */
  mkdir(dir, 0700);
  for (int i = 0; i < 3; i++) nvb_dump("plan", "again", i ? "later\n" : "first\n");
  snprintf(path, sizeof path, "%s/again.plan", dir);
  ck_assert_ptr_nonnull(f = fopen(path, "r"));
  ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
  ck_assert_str_eq(text, "first\n"); /* none overwrites another */
  fclose(f);
  unlink(path);
  DIR *d = opendir(dir);
  int n = 0;
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.') snprintf(path, sizeof path, "%s/%.40s", dir, e->d_name), unlink(path), n++;
  closedir(d);
  ck_assert_int_eq(n, 2);
  rmdir(dir);
}
END_TEST

SUITE("settings", environment_is_read_at_first_use, values_are_set_by_either_name, names_are_the_same_in_every_locale,
      what_cannot_be_is_refused, words_that_a_setting_does_not_take_are_refused,
      what_the_environment_says_in_vain_is_told, lists_have_words, table_lists_itself, toggling_costs_no_memory,
      dumps_go_to_files)
