/* Makes arrays from data: host or device memory, copied or borrowed, and numbers. Decides whether host memory is
   borrowed or copied. Never writes to the memory that it is given. */
#include <stdio.h>
#include <string.h>
#include "api/api.h"

/* Makes an array over a value. Takes v, NULL passes through; av is borrowed. */
nvm_array *nva_leaf_over(nvm_ctx *ctx, const nvg_aval *av, nvg_value *v, int dev) {
  nvg_node *n = v ? nvg_leaf_new(nvg_aval_ref(av), v) : NULL;
  if (n) n->device = (uint8_t)dev;
  return nva_array_new(ctx, n);
}
static nvm_array *leaf_of(nvm_ctx *ctx, const nvg_aval *av, nvd_buf *b, char *data, const int64_t *strides, int dev) {
  int64_t st[NVM_MAX_RANK];
  nvg_packed(st, av->rank, av->shape);
  for (int d = 0; d < av->rank && strides; d++) /* strides of dimensions with extent 1 are set as if packed */
    if (av->shape[d] > 1 && av->size) st[d] = strides[d] / nvg_size(av->dtype);
  return nva_leaf_over(ctx, av, nva_value_new(b, data, av->rank, st), dev);
}
static int whole_strides(const int64_t *strides, const nvg_aval *av) {
  for (int d = 0; strides && d < av->rank; d++)
    if (strides[d] % nvg_size(av->dtype)) return 0;
  return 1;
}
/* Computes the range of the elements in bytes relative to `data`. Fails if it exceeds the address space. */
static int span_of(const char *who, int64_t *low, int64_t *high, const nvg_aval *av, const int64_t *strides,
                   const void *data) {
  /* half of the address, so that every address fits into int64 */
  int64_t reach, end = (int64_t)((uintptr_t)data >> 1);
  *low = 0;
  *high = strides ? nvg_size(av->dtype) : av->size * nvg_size(av->dtype);
  for (int i = 0; i < av->rank && strides && av->size; i++) {
    int64_t *to = strides[i] < 0 ? low : high;
    if (__builtin_mul_overflow(strides[i], av->shape[i] - 1, &reach) || __builtin_add_overflow(*to, reach, to) ||
        *high > INT64_MAX / 2 || *low < -(INT64_MAX / 2))
      return nvb_fail(NVM_ERR_VALUE, "[%s] the strides exceed the address space", who);
  }
  if (end + *low / 2 < 0 || *high / 2 > INT64_MAX - end)
    return nvb_fail(NVM_ERR_VALUE, "[%s] the strides exceed the address space", who);
  return NVM_OK;
}
/* Releases `owner` after a failure; otherwise it is released at the end of the array's life. Returns NULL. */
static nvm_array *release_owner(void (*release)(void *owner), void *owner) {
  if (release) release(owner);
  return NULL;
}
static nvm_array *over_host(nvm_ctx *ctx, const nvg_aval *av, const int64_t *strides, const void *data,
                            void (*release)(void *owner), void *owner) {
  if (!ctx || (!data && av->size)) {
    nva_missing("from_host", ctx ? "data" : "context");
    return release_owner(release, owner);
  }
  int64_t low, high;
  if (span_of("from_host", &low, &high, av, strides, data)) return release_owner(release, owner);
  size_t each = (size_t)nvg_size(av->dtype), bytes = (size_t)av->size * each;
  uintptr_t unit = (uintptr_t)(each > 8 ? 8 : each);
  int borrow = release && whole_strides(strides, av) && (uintptr_t)data % unit == 0;
  if (borrow) {
    nvd_buf *b = nvd_buf_wrap((void *)(uintptr_t)data, bytes, release, owner);
    nvm_array *lent = b ? leaf_of(ctx, av, b, b->data, strides, nva_default_device()) : release_owner(release, owner);
    if (lent) nva_note_borrowed(atomic_load(&lent->node->value), av);
    return lent;
  }
  nvd_buf *b = nvd_buf_new(bytes);
  if (!b) return release_owner(release, owner);
  nva_copy_strided(b->data, data, av, strides);
  if (release) release(owner);
  return leaf_of(ctx, av, b, b->data, NULL, nva_default_device());
}
nvm_array *nvm_array_new_host(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const int64_t *strides,
                              const void *data, void (*release)(void *owner), void *owner) {
  const nvg_aval *av = nvg_aval_get(t, rank, shape);
  nvm_array *a = av ? over_host(ctx, av, strides, data, release, owner) : release_owner(release, owner);
  nvg_aval_unref(av);
  return a;
}
nvm_array *nvm_from_host(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const void *data) {
  return nva_scope_keep(nvm_array_new_host(ctx, t, rank, shape, NULL, data, NULL, NULL));
}
nvm_array *nvm_from_host_borrow(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const int64_t *strides,
                                const void *data, void (*release)(void *owner), void *owner) {
  return nva_scope_keep(nvm_array_new_host(ctx, t, rank, shape, strides, data, release, owner));
}

/* ---- arrays over device memory */
static void release_nothing(void *owner) { (void)owner; }
static int foreign_fault(const nvg_aval *av, const int64_t *strides, nvm_device d, const void *data) {
  int64_t size = nvg_size(av->dtype), unit = size > 8 ? 8 : size;
  if (d == NVM_DEVICE_CPU)
    return nvb_fail(NVM_ERR_VALUE, "[from_device] the CPU's memory is borrowed by from_host_borrow");
  if (!data && av->size) return nvb_fail(NVM_ERR_VALUE, "[from_device] the data is NULL");
  if ((uintptr_t)data % (uintptr_t)unit)
    return nvb_fail(NVM_ERR_VALUE, "[from_device] the address %p is no multiple of %lld, as %s needs", data,
                    (long long)unit, nvg_dtype_name(av->dtype));
  return whole_strides(strides, av)
             ? NVM_OK
             : nvb_fail(NVM_ERR_VALUE, "[from_device] strides must be multiples of the %lld bytes of %s",
                        (long long)size, nvg_dtype_name(av->dtype));
}
/* Finds the GPU that owns `data`; for NULL it is the context's GPU, or the first one. Returns a status. */
static int foreign_device(nvm_device *d, nvm_ctx *ctx, const void *data) {
  int ordinal, status = NVM_OK;
  *d = nva_ctx_device(ctx);
  if (!data && *d > NVM_DEVICE_CPU) return NVM_OK;
  if (data && !nvd_device_count() && nvb_status() == NVM_ERR_UNSUPPORTED) {
    char why[512];
    snprintf(why, sizeof why, "%s", nvb_message());
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[from_device] memory of a GPU, and there is none: %s", why);
  }
  if (data) status = nvd_memory_ordinal(&ordinal, data);
  else if ((ordinal = nvd_device_first()) < 0) status = nvb_status();
  if (!status) *d = NVM_DEVICE_CUDA + ordinal;
  return status;
}
static nvm_array *over_device(nvm_ctx *ctx, const nvg_aval *av, const int64_t *strides, nvm_device d, const void *data,
                              void *stream, void (*release)(void *owner), void *owner) {
  if (!ctx) return nvb_fail(NVM_ERR_VALUE, "[from_device] the context is NULL"), release_owner(release, owner);
  int status = d == NVM_DEVICE_AUTO ? foreign_device(&d, ctx, av->size ? data : NULL) : NVM_OK;
  nvd_device *gpu = status || foreign_fault(av, strides, d, data) ? NULL : nva_gpu("from_device", d);
  if (!gpu) return release_owner(release, owner);
  if (!av->size) { /* an empty array owns no memory */
    release_owner(release, owner);
    nvd_buf *none = nvd_buf_new_on(gpu, 0);
    return none ? leaf_of(ctx, av, none, none->data, NULL, d) : NULL;
  }
  int64_t low, high;
  char *first = (char *)(uintptr_t)data;
  if (span_of("from_device", &low, &high, av, strides, data)) return release_owner(release, owner);
  nvd_buf *b =
      nvd_buf_wrap_on(gpu, first + low, (size_t)(high - low), stream, release ? release : release_nothing, owner);
  return b ? leaf_of(ctx, av, b, first, strides, d) : release_owner(release, owner);
}
nvm_array *nvm_array_new_device(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const int64_t *strides,
                                nvm_device d, const void *data, void *stream, void (*release)(void *owner),
                                void *owner) {
  const nvg_aval *av = nvg_aval_get(t, rank, shape);
  nvm_array *a = av ? over_device(ctx, av, strides, d, data, stream, release, owner) : release_owner(release, owner);
  nvg_aval_unref(av);
  return a;
}
nvm_array *nvm_from_device(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const int64_t *strides,
                           nvm_device d, const void *data, void *stream, void (*release)(void *owner), void *owner) {
  return nva_scope_keep(nvm_array_new_device(ctx, t, rank, shape, strides, d, data, stream, release, owner));
}

int nva_check_kind(const char *who, char kind) {
  if (kind && strchr("biufch", kind)) return NVM_OK;
  return nvb_fail(NVM_ERR_VALUE, "[%s] the kind is character %d; kinds are 'b', 'i', 'u', 'f', 'c' and 'h'", who, kind);
}
nvm_array *nvm_apply_scalar(nvm_ctx *ctx, char kind, int64_t i, double re, double im) {
  if (!ctx) return nva_missing("apply_scalar", "context"), NULL;
  if (nva_check_kind("apply_scalar", kind)) return NULL;
  return nva_array_new(ctx, nvg_weak(kind, re, im, i));
}
static nvm_array *scalar_leaf(char kind, int64_t i, double re, double im) {
  nvm_ctx *c = nva_scope_ctx();
  return c ? nva_scope_keep(nvm_apply_scalar(c, kind, i, re, im)) : NULL;
}
nvm_array *nvm_float(double x) { return scalar_leaf('f', 0, x, 0); }
nvm_array *nvm_int(int64_t x) { return scalar_leaf('i', x, 0, 0); }
nvm_array *nvm_bool(int x) { return scalar_leaf('b', x != 0, 0, 0); }
nvm_array *nvm_complex(double re, double im) { return scalar_leaf('c', 0, re, im); }
