/* Where libraries are looked for: each place alone, their order, and what is said when there is none. */
#include <dlfcn.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../suite.h"
#include "base/err.h"
#include "base/library.h"
#include "base/settings.h"

static char root[] = "/tmp/nvm_library_XXXXXX";

/* root/below/name: another name of a real library; an empty one if `real` is NULL. */
static void plant(const char *below, const char *name, const char *real) {
  char path[PATH_MAX];
  for (const char *at = below; (at = strchr(at, '/')); at++) {
    snprintf(path, sizeof path, "%s/%.*s", root, (int)(at - below), below);
    mkdir(path, 0700);
  }
  snprintf(path, sizeof path, "%s/%s%s", root, below, name);
  if (real) {
    ck_assert(!symlink(real, path));
    return;
  }
  FILE *f = fopen(path, "w");
  ck_assert(f && !fclose(f));
}
static const char *under(const char *below) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", root, below);
  return path;
}
static const char *real_library(void) { /* the one that this test's suite came from */
  static char path[PATH_MAX];
  Dl_info at;
  ck_assert(dladdr((void *)(size_t)nvb_library_open, &at) && realpath(at.dli_fname, path));
  return path;
}
static void *find(const char *soname) {
  return nvb_library_open((const char *[]){ "libnvm_absent.so.8", soname, NULL });
}
static int drop(const char *path, const struct stat *s, int type, struct FTW *at) {
  (void)s, (void)type, (void)at;
  return remove(path);
}
static void uproot(void) { ck_assert(!nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS)); }

START_TEST(places) {
  ck_assert(mkdtemp(root));
  static const char *const name[] = { "libnvm_t0.so.7", "libnvm_t1.so.7", "libnvm_t2.so.7", "libnvm_t3.so.7",
                                      "libnvm_t4.so.7" };
  static const char *const where[] = { "first/", "wheels/cuda_runtime/lib/", "path/lib64/", "home/lib/",
                                       "wheels/one/two/three/" };
  for (int i = 0; i < 5; i++) {
    plant(where[i], name[i], real_library());
    ck_assert(!find(name[i]));
    ck_assert_int_eq(nvb_status(), NVM_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(nvb_message(), name[i]) && strstr(nvb_message(), "libnvm_absent.so.8"), "%s", nvb_message());
  }
  ck_assert_int_eq(nvb_set("cuda_dir", under("first")), NVM_OK);
  setenv("CUDA_PATH", under("path"), 1);
  setenv("CUDA_HOME", under("home"), 1);
  nvb_library_dir(under("wheels"));
  nvb_library_dir(under("wheels"));
  for (int i = 0; i < 4; i++) ck_assert_msg(find(name[i]), "%s: %s", where[i], nvb_message());
  ck_assert(!find(name[4])); /* two levels, no more */
  ck_assert_int_eq(nvb_set("cuda_dir", "off"), NVM_OK);
  ck_assert(!find(name[1]));
  ck_assert_msg(strstr(nvb_message(), "off"), "%s", nvb_message());
  uproot();
}
END_TEST

START_TEST(in_the_process) { ck_assert(nvb_library_open((const char *[]){ "libc.so.6", NULL })); }
END_TEST

START_TEST(others) { /* not CUDA's: NVM_CUDA_DIR says nothing about them */
  ck_assert_int_eq(nvb_set("cuda_dir", "off"), NVM_OK);
  ck_assert(nvb_library_open_system("libc.so.6"));
  ck_assert(!nvb_library_open_system("libnvm_absent.so.8"));
  ck_assert_int_eq(nvb_status(), NVM_ERR_UNSUPPORTED);
  ck_assert_msg(strstr(nvb_message(), "libnvm_absent.so.8"), "%s", nvb_message());

  static const char *const packaged[] = { "libnvm_absent.so.8", "libnvm_t6.so.7", NULL };
  ck_assert(mkdtemp(root));
  plant("wheels/blas/lib/", packaged[1], real_library());
  ck_assert(!nvb_library_open_other(packaged));
  ck_assert_msg(strstr(nvb_message(), packaged[0]) && strstr(nvb_message(), packaged[1]), "%s", nvb_message());
  nvb_library_dir(under("wheels"));
  void *handle = nvb_library_open_other(packaged);
  ck_assert_msg(handle, "%s", nvb_message());

  void (*found)(void);
  const nvb_symbol symbol[] = { { "library_dir", &found, 0 } };
  ck_assert_int_eq(nvb_library_prefixed(handle, "nvb_", "the library", symbol, 1), NVM_OK);
  ck_assert_ptr_nonnull(found);
  ck_assert_int_eq(nvb_library_prefixed(handle, "no_", "the library", symbol, 1), NVM_ERR_UNSUPPORTED);
  ck_assert_msg(strstr(nvb_message(), "no_library_dir"), "%s", nvb_message());
  uproot();
}
END_TEST

START_TEST(damaged) { /* a file that does not open is no end, and its reason is told */
  ck_assert(mkdtemp(root));
  plant("bad/", "libnvm_t5.so.7", NULL);
  plant("good/lib/", "libnvm_t5.so.7", real_library());
  ck_assert_int_eq(nvb_set("cuda_dir", under("bad")), NVM_OK);
  ck_assert(!find("libnvm_t5.so.7"));
  ck_assert_msg(strstr(nvb_message(), "too short"), "%s", nvb_message());
  setenv("CUDA_HOME", under("good"), 1);
  ck_assert(find("libnvm_t5.so.7"));
  uproot();
}
END_TEST

START_TEST(damaged_in_the_system) { /* "libc.so" is a script for linkers, where compilers are installed */
  dlerror();
  const char *why = dlopen("libc.so", RTLD_NOW) ? NULL : dlerror();
  if (!why || !strstr(why, "ELF")) return;
  nvb_set("cuda_dir", "");
  ck_assert(!find("libc.so"));
  ck_assert_msg(strstr(nvb_message(), "ELF"), "%s", nvb_message());
  ck_assert(!find("libnvm_absent.so.8")); /* that it is not there has been said already */
  ck_assert_msg(!strstr(nvb_message(), "No such file"), "%s", nvb_message());
}
END_TEST

START_TEST(beside) { /* as NVRTC opens its built-ins: by their name, which no search path finds */
  char dir[PATH_MAX], path[PATH_MAX + 32];
  ck_assert(realpath("/proc/self/exe", dir));
  *strrchr(dir, '/') = 0;
  snprintf(path, sizeof path, "%s/base/libnvm_front.so", dir);
  void *front = dlopen(path, RTLD_NOW), *symbol = front ? dlsym(front, "nvm_beside") : NULL;
  ck_assert_msg(symbol, "%s", dlerror());
  ck_assert(!dlopen("libnvm_beside.so", RTLD_NOW));
  nvb_library_beside(symbol, "libnvm_absent.so.8");
  nvb_library_beside(symbol, "libnvm_beside.so");
  ck_assert(dlopen("libnvm_beside.so", RTLD_NOW));
}
END_TEST

START_TEST(symbols) {
  void *c = nvb_library_open((const char *[]){ "libc.so.6", NULL });
  void (*have)(void) = NULL, (*no)(void) = (void (*)(void))abort;
  nvb_symbol s[] = { { "malloc", &have, 0 }, { "nvm_absent", &no, 1 } };
  ck_assert_int_eq(nvb_library_symbols(c, "libc", s, 2), NVM_OK);
  ck_assert(have && !no);
  s[1].optional = 0;
  ck_assert_int_eq(nvb_library_symbols(c, "libc", s, 2), NVM_ERR_UNSUPPORTED);
  ck_assert_msg(strstr(nvb_message(), "nvm_absent") && strstr(nvb_message(), "libc"), "%s", nvb_message());
}
END_TEST

SUITE("library", places, in_the_process, others, damaged, damaged_in_the_system, beside, symbols)
