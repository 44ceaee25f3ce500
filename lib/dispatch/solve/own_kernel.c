/* Compiles and loads kernels of the project's own. */
#include "dispatch/solve/own_kernel.h"
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/store.h"
#include "codegen/cuda/cuda.h"

void nvd_rows_of(nvd_rows *r, const nvf_operand *x) {
  int64_t packed = x->rank > 1 ? x->stride[x->rank - 2] : 0;
  r->step = x->stride[x->rank - 1];
  r->rank = x->rank - 1;
  memcpy(r->shape, x->shape, sizeof *r->shape * (size_t)r->rank);
  memcpy(r->stride, x->stride, sizeof *r->stride * (size_t)r->rank);
  for (int d = x->rank - 2; d >= 0; packed *= x->shape[d--])
    if (x->stride[d] != packed) return;
  if (r->rank) r->rank = 1, r->stride[0] = x->stride[x->rank - 2]; /* rows at one distance are one dimension */
}

typedef struct loaded { struct loaded *next; nvd_device *device; nvb_hash key; void *function; } loaded;
static nvb_lock lock = NVB_LOCK(OWN_KERNELS);
static loaded *all;

static loaded *find_loaded(const nvd_device *d, nvb_hash key) {
  loaded *l = all;
  while (l && (l->device != d || !nvb_hash_eq(l->key, key))) l = l->next;
  return l;
}

static int load_function(void **function, nvd_device *d, const void *cubin, const char *title) {
  void *module = NULL;
  int entered = nvd_enter(d), error = nvd_cu.cuModuleLoadData(&module, cubin);
  error = error ? error : nvd_cu.cuModuleGetFunction(function, module, "nvm_kernel");
  nvd_leave(entered);
  return nvd_device_status(d, error, title);
}

/* A stored cubin that the driver does not take is compiled again. */
static int make_function(void **function, nvd_device *d, nvb_hash key, const char *source, const char *title) {
  nvc_cubin c = { 0 };
  if (nvb_store_get("cubin", key, &c.bytes, &c.n)) {
    int status = load_function(function, d, c.bytes, title);
    nvb_free(c.bytes);
    if (!status) return NVM_OK;
    nvb_store_drop("cubin", key);
  }
  int status = nvc_nvrtc_compile(&c, source, title, d->arch);
  if (!status) nvb_store_put("cubin", key, c.bytes, c.n);
  status = status ? status : load_function(function, d, c.bytes, title);
  nvb_free(c.bytes);
  return status;
}

int nvd_own_kernel_get(void **function, nvd_device *d, const char *source, const char *title) {
  nvc_cuda_target target = { d->arch, 0, 0 };
  nvb_hash key = nvc_cubin_key(nvb_hash_bytes(source, strlen(source)), &target);
  int status = NVM_OK;
  nvb_lock_take(&lock);
  loaded *l = find_loaded(d, key);
  if (!l) {
    l = nvb_alloc(sizeof *l);
    status = l ? make_function(&l->function, d, key, source, title) : nvb_fail_memory();
    if (status) nvb_free(l);
    else l->next = all, l->device = d, l->key = key, all = l;
  }
  if (!status) *function = l->function;
  nvb_lock_give(&lock);
  return status;
}
