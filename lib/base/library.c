/* Opens shared libraries at run time. Decides where a library is searched for and in which order; it never closes
   one, and never prefers a newer version to one that the process has already loaded. */
#include "base/library.h"
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"

enum { LEVELS = 2 }; /* levels of subfolders that are searched: nvidia/cuda_runtime/lib */

/* A list that grows at its end and never shrinks, so that readers need no lock. */
typedef struct folder { _Atomic(struct folder *) next; char path[]; } folder;
static _Atomic(folder *) folders;

void nvb_library_dir(const char *dir) {
  _Atomic(folder *) *at = &folders;
  for (folder *f; (f = atomic_load(at)); at = &f->next)
    if (!strcmp(f->path, dir)) return;
  size_t n = strlen(dir) + 1;
  folder *made = nvb_calloc(1, sizeof *made + n);
  if (!made) /* out of memory: the folder is not searched, which is not an error */
    return;
  memcpy(made->path, dir, n);
  for (folder *none = NULL; !atomic_compare_exchange_strong(at, &none, made); none = NULL) at = &atomic_load(at)->next;
}

/* A search: the sonames, and why the first file that was found did not open. */
typedef struct hunt { const char *const *soname; char why[512]; } hunt;

static void note_reason(hunt *h, const char *why) { /* keeps the first reason */
  if (why && !*h->why) snprintf(h->why, sizeof h->why, "%s", why);
}

static void *open_at(hunt *h, const char *dir, const char *soname) {
  char path[PATH_MAX];
  int n = snprintf(path, sizeof path, "%s/%s", dir, soname);
  if (n < 0 || (size_t)n >= sizeof path || access(path, R_OK)) return NULL;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) note_reason(h, dlerror());
  return handle;
}

/* Searches the folder, then its subfolders. */
static void *open_below(hunt *h, const char *dir, int levels) {
  void *handle = NULL;
  for (int i = 0; h->soname[i] && !handle; i++) handle = open_at(h, dir, h->soname[i]);
  DIR *d = levels && !handle ? opendir(dir) : NULL;
  if (!d) return handle;
  for (struct dirent *e; !handle && (e = readdir(d));) {
    char path[PATH_MAX];
    if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)) continue;
    int n = snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    if (n > 0 && (size_t)n < sizeof path) handle = open_below(h, path, levels - 1);
  }
  closedir(d);
  return handle;
}

static void *open_named(hunt *h, int mode) {
  for (int i = 0; h->soname[i]; i++) {
    void *handle = dlopen(h->soname[i], RTLD_NOW | RTLD_LOCAL | mode);
    if (handle) return handle;
    const char *why = dlerror();
    size_t n = strlen(h->soname[i]);
    /* the file exists but does not load */
    if (why && !mode && (strncmp(why, h->soname[i], n) || strncmp(why + n, ": cannot open", 13))) note_reason(h, why);
  }
  return NULL;
}

static void *open_toolkit(hunt *h, const char *variable) {
  static const char *const below[] = { "lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib" };
  const char *root = nvb_env(variable);
  char dir[PATH_MAX];
  void *handle = NULL;
  for (size_t i = 0; root && i < sizeof below / sizeof *below && !handle; i++)
    if (snprintf(dir, sizeof dir, "%s/%s", root, below[i]) < PATH_MAX) handle = open_below(h, dir, 0);
  return handle;
}

static void *open_usual(hunt *h) { /* the places of every library */
  void *handle = open_named(h, RTLD_NOLOAD);
  for (folder *f = atomic_load(&folders); f && !handle; f = atomic_load(&f->next))
    handle = open_below(h, f->path, LEVELS);
  return handle ? handle : open_named(h, 0);
}

static void *fail_to_open(const hunt *h, const char *component, const char *places) {
  char names[256] = "";
  for (int i = 0, n = 0; h->soname[i] && n < (int)sizeof names; i++)
    n += snprintf(names + n, sizeof names - (size_t)n, "%s%s", i ? ", " : "", h->soname[i]);
  nvb_fail(NVM_ERR_UNSUPPORTED, "[%s] %s: not found in %s%s%s", component, names, places, *h->why ? "; " : "", h->why);
  return NULL;
}

void *nvb_library_open(const char *const *soname) {
  const char *first = nvb_str(NVB_CUDA_DIR);
  if (!strcmp(first, "off"))
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[cuda] NVM_CUDA_DIR is off: %s is not looked for", soname[0]), NULL;
  hunt h = { .soname = soname };
  void *handle = *first ? open_below(&h, first, 0) : NULL;
  if (!handle) handle = open_usual(&h);
  if (!handle) handle = open_toolkit(&h, "CUDA_PATH");
  if (!handle) handle = open_toolkit(&h, "CUDA_HOME");
  static const char places[] = "NVM_CUDA_DIR, the process, the Python packages, the system, CUDA_PATH and CUDA_HOME";
  return handle ? handle : fail_to_open(&h, "cuda", places);
}

void *nvb_library_open_other(const char *const *soname) {
  hunt h = { .soname = soname };
  void *handle = open_usual(&h);
  return handle ? handle : fail_to_open(&h, "library", "the process, the Python packages and the system");
}

void *nvb_library_open_system(const char *soname) {
  void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (!handle) nvb_fail(NVM_ERR_UNSUPPORTED, "[library] %s", dlerror());
  return handle;
}

void nvb_library_beside(const void *symbol, const char *soname) {
  Dl_info info;
  char path[PATH_MAX];
  const char *end = dladdr(symbol, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
  int n = end ? snprintf(path, sizeof path, "%.*s/%s", (int)(end - info.dli_fname), info.dli_fname, soname) : -1;
  if (n > 0 && (size_t)n < sizeof path && !access(path, R_OK)) dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

int nvb_library_prefixed(void *handle, const char *prefix, const char *what, const nvb_symbol *s, int n) {
  for (int i = 0; i < n; i++) {
    char name[128];
    snprintf(name, sizeof name, "%s%s", prefix, s[i].name);
    void *found = dlsym(handle, name);
    if (!found && !s[i].optional)
      return nvb_fail(NVM_ERR_UNSUPPORTED, "[library] %s is too old: it has no %s", what, name);
    memcpy(s[i].to, &found, sizeof found);
  }
  return NVM_OK;
}

int nvb_library_symbols(void *handle, const char *what, const nvb_symbol *s, int n) {
  return nvb_library_prefixed(handle, "", what, s, n);
}
