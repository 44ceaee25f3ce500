/* Settings, counters, and information about the machine and the library. Never changes anything but settings and the
   peak counter. */
#include <limits.h>
#include <string.h>
#include "api/api.h"
#include "base/caps.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "base/store.h"
#include "codegen/cuda/cuda.h"
#include "dispatch/compiling.h"

int nvm_set(const char *name, const char *value) { return name ? nvb_set(name, value) : nva_missing("set", "name"); }
int nvm_setting(int i, const char **name, const char **value, const char **def, const char **doc) {
  const char *unread;
  return nvb_setting_info(i, name ? name : &unread, value ? value : &unread, def ? def : &unread, doc ? doc : &unread);
}
int nvm_counters_get(nvm_counters *out, unsigned version) {
  if (!out) return nva_missing("counters_get", "pointer for counters");
  if (version != NVM_COUNTERS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[counters_get] version %u is unknown; this library has %d", version,
                    NVM_COUNTERS_VERSION);
  *out = (nvm_counters){ .version = version,
                         .kernels_compiled = nvc_compiled() + nvd_gpu_kernels_compiled(),
                         .kernels_loaded = nvd_kernels_loaded(),
                         .programs_planned = nva_planned(),
                         .evaluations = nva_evaluations(),
                         .kernels_run = nvd_kernels_run(),
                         .bytes_used = nvd_mem_used(),
                         .bytes_peak = nvd_mem_peak(),
                         .bytes_copied = nvd_bytes_copied() };
  return NVM_OK;
}
int nvm_counters_reset_peak(void) {
  nvd_mem_reset_peak();
  return NVM_OK;
}
static void write_invalid(nvb_text *t, const char *before) {
  char line[320];
  for (int i = 0; i < NVB_NSETTINGS; i++)
    if (nvb_setting_invalid(i, line, sizeof line)) nvb_print(t, "%s%s\n", before, line);
}
static char *text_copy(nvb_text *t) { /* what the caller of the library frees; NULL when out of memory */
  char *text = nvb_alloc(t->n + 1);
  if (text) memcpy(text, nvb_text_get(t), t->n + 1);
  return text;
}
static void list_invalid(nvb_arena *a, void *arg) {
  nvb_text t = { .arena = a };
  write_invalid(&t, "");
  *(char **)arg = text_copy(&t);
}
static void write_info(nvb_arena *a, void *arg) {
  nvb_text t = { .arena = a };
  char where[PATH_MAX];
  nvb_caps c = nvb_caps_cpu();
  const nvc_target *host = nvc_target_host();
  nvb_print(&t, "nvm %s\n", NVM_VERSION);
  nvb_print(&t, "cpu      %s, vectors of %d bytes, %d threads\n", c.name, host->width, nvb_pool_threads());
  nvb_print(&t, "llvm     %s\n", nvc_llvm_available() ? nvc_llvm_version() : nvb_message());
  nvb_print(&t, "openblas %s\n", nvd_openblas_line());
  nvb_store_where(where, sizeof where);
  nvb_print(&t, "cache    %s\n", where);
  nvb_print(&t, "memory   %lld bytes used, %lld at peak\n", (long long)nvd_mem_used(), (long long)nvd_mem_peak());
  nvb_print(&t, "nvrtc    %s\n", nvc_nvrtc_version());
  int n = nvd_device_count();
  if (n)
    nvb_print(&t, "cublaslt %s\ncufft    %s\ncusolver %s\n", nvd_cublaslt_line(), nvd_cufft_line(),
              nvd_cusolver_line());
  else nvb_print(&t, "cuda     %s\n", nvb_message());
  for (int i = 0; i < n; i++) nvb_print(&t, "cuda:%d   %s\n", i, nvd_device_line(i));
  write_invalid(&t, "invalid  ");
  *(char **)arg = text_copy(&t);
}
int nvm_llvm_usable(void) { return nvc_llvm_available() ? NVM_OK : NVM_ERR_UNSUPPORTED; }
int nvm_llvm_missed(void) { return nvd_native_missed(); }
int nvm_compiling(double *seconds) {
  int64_t ns;
  int n = nvd_compiling(&ns);
  if (seconds) *seconds = 1e-9 * (double)ns;
  return n;
}
/* Gives the caller the text that `write` makes. */
static int give_text(const char *who, char **text, void (*write)(nvb_arena *a, void *text)) {
  if (!text) return nva_missing(who, "pointer for the text");
  *text = NULL;
  nvb_arena *a = nvb_arena_new();
  if (!a) return nvb_fail_memory();
  nvb_failure before;
  nvb_failure_keep(&before);
  int status = nvb_protect(a, write, text);
  nvb_arena_free(a);
  if (!status && !*text) status = nvb_fail_memory();
  if (!status) nvb_failure_put_back(&before); /* what is missing is said in the text */
  return status;
}
int nvm_info(char **text) { return give_text("info", text, write_info); }
int nvm_settings_invalid(char **text) { return give_text("settings_invalid", text, list_invalid); }
