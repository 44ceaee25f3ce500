/* Values: elements in host or device memory, copies of them on other devices, and the replicas that a value keeps.
   Never decides where anything runs. Device numbers are those of nvg_node.device: 1 the CPU, 2 + ordinal a GPU. */
#include <stddef.h>
#include <string.h>
#include "api/api.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/settings.h"

/* ---- values over buffers */
static void drop_buf(void *b) { nvd_buf_unref(b); }

static nvg_value *fill_value(nvg_value *v, nvd_buf *b, char *data, int rank, const int64_t *stride) {
  v->buffer = b;
  v->unref = drop_buf;
  v->within = 0;
  v->data = data;
  v->device = b->device ? 1 + nvd_device_ordinal(b->device) : 0;
  v->sum = 0;
  atomic_init(&v->replica, NULL);
  for (int d = 0; d < rank; d++) v->stride[d] = stride[d];
  return v;
}
static size_t value_bytes(int rank) { return offsetof(nvg_value, stride) + sizeof(int64_t) * (size_t)rank; }
nvg_value *nva_value_new(nvd_buf *b, char *data, int rank, const int64_t *stride) {
  nvg_value *v = b ? nvb_alloc(value_bytes(rank)) : NULL;
  if (v) return fill_value(v, b, data, rank, stride);
  if (b) nvd_buf_unref(b), nvb_fail_memory();
  return NULL;
}

/* The range of bytes that the elements span, from data + low on. dense: the elements fill it (a repeated element counts
   once). */
typedef struct extent { int64_t low, bytes; int dense; } extent;
static extent extent_of(const nvg_aval *av, const int64_t *stride) {
  int64_t size = nvg_size(av->dtype), low = 0, high = 0, distinct = 1;
  if (!av->size) return (extent){ 0, 0, 1 };
  for (int d = 0; d < av->rank; d++) {
    if (av->shape[d] == 1 || !stride[d]) continue;
    int64_t reach = stride[d] * (av->shape[d] - 1);
    *(reach < 0 ? &low : &high) += reach;
    distinct *= av->shape[d];
  }
  return (extent){ low * size, (high - low + 1) * size, high - low + 1 <= distinct };
}
/* The same shape without repetitions: extent 1 where the stride is 0. */
static nvg_aval once_of(const nvg_aval *av, const int64_t *stride, int64_t *shape) {
  nvg_aval once = { av->dtype, av->rank, 1, shape };
  for (int d = 0; d < av->rank; d++) once.size *= shape[d] = stride[d] || !av->shape[d] ? av->shape[d] : 1;
  return once;
}
static size_t bytes_of(const nvg_aval *av) { return (size_t)av->size * (size_t)nvg_size(av->dtype); }
static int is_packed(const nvg_aval *av, const int64_t *stride) {
  int64_t packed[NVM_MAX_RANK];
  int d = av->rank;
  nvg_packed(packed, av->rank, av->shape);
  while (d && (av->shape[d - 1] == 1 || stride[d - 1] == packed[d - 1])) d--;
  return !d;
}
static void pack_elements(void *to, const char *from, const nvg_aval *av, const int64_t *stride) {
  int64_t bytes[NVM_MAX_RANK], size = nvg_size(av->dtype);
  for (int d = 0; d < av->rank; d++) bytes[d] = stride[d] * size;
  nva_copy_strided(to, from, av, bytes);
}

static nvg_value *few_packed(const nvg_aval *av, const int64_t *stride) {
  void *v;
  nvd_buf *b = nvd_buf_few(bytes_of(av), &v, value_bytes(av->rank));
  if (!b) return NULL;
  fill_value(v, b, b->data, av->rank, stride)->within = 1;
  return v;
}
nvg_value *nva_value_packed(const nvg_aval *av) {
  int64_t stride[NVM_MAX_RANK];
  nvg_packed(stride, av->rank, av->shape);
  if (bytes_of(av) <= NVD_FEW) return few_packed(av, stride);
  nvd_buf *b = nvd_buf_new(bytes_of(av));
  return nva_value_new(b, b ? b->data : NULL, av->rank, stride);
}

/* ---- copies: each makes a new value */
static nvg_value *drop_failed(nvd_buf *b) { return nvd_buf_unref(b), NULL; }

/* Copies to a device with the same layout, if the elements fill their range; else packs them first, each repeated
   element once. */
static nvg_value *upload_value(const nvg_value *v, const nvg_aval *av, nvd_device *d) {
  int64_t shape[NVM_MAX_RANK], stride[NVM_MAX_RANK];
  extent e = extent_of(av, v->stride);
  nvg_aval once = once_of(av, v->stride, shape);
  nvd_buf *b = nvd_buf_new_on(d, e.dense ? (size_t)e.bytes : bytes_of(&once));
  if (!b) return NULL;
  if (e.dense) {
    if (e.bytes && nvd_upload(b, 0, v->data + e.low, (size_t)e.bytes)) return drop_failed(b);
    return nva_value_new(b, b->data - e.low, av->rank, v->stride);
  }
  nvd_buf *host = nvd_buf_new(b->bytes);
  if (!host) return drop_failed(b);
  nvg_packed(stride, av->rank, shape);
  for (int i = 0; i < av->rank; i++) stride[i] *= v->stride[i] != 0;
  pack_elements(host->data, v->data, &once, v->stride);
  int status = nvd_upload(b, 0, host->data, b->bytes);
  nvd_buf_unref(host);
  return status ? drop_failed(b) : nva_value_new(b, b->data, av->rank, stride);
}
nvg_value *nva_value_copy(const nvg_value *v, const nvg_aval *av, int dev) {
  nvd_device *d = NULL;
  if (dev > 1 && !(d = nva_gpu("to_device", dev))) return NULL;
  if (d) return v->device ? nva_copy_across(v, av, d) : upload_value(v, av, d);
  if (v->device) return nva_download(v, av);
  nvg_value *made = nva_value_packed(av);
  if (made) pack_elements(made->data, v->data, av, v->stride);
  return made;
}
nvg_value *nva_value_alias(nvg_value *v, int rank) {
  return nva_value_new(nvd_buf_ref(v->buffer), v->data, rank, v->stride);
}

/* ---- ownership of memory */
int nva_is_borrowed(const nvg_value *v) {
  const nvd_buf *b = v->buffer;
  return !b || b->release;
}
int nva_is_alone(const nvg_value *v) {
  nvd_buf *b = v->buffer;
  return b && !b->release && atomic_load_explicit(&b->refs, memory_order_acquire) == 1;
}
int nva_is_plain(const nvg_value *v, const nvg_aval *av) {
  return !v->device && v->buffer && !v->sum && is_packed(av, v->stride);
}

/* ---- NVM_CHECK=borrow: checks that borrowed memory does not change while the array lives */
static uint64_t sum_of(const nvg_value *v, const nvg_aval *av) { /* 0: out of memory */
  extent e = extent_of(av, v->stride);
  if (e.dense) return nvb_hash_bytes(v->data + e.low, (size_t)e.bytes).lo | 1;
  int64_t shape[NVM_MAX_RANK];
  nvg_aval once = once_of(av, v->stride, shape);
  void *copy = nvb_alloc(bytes_of(&once));
  if (copy) pack_elements(copy, v->data, &once, v->stride);
  uint64_t sum = copy ? nvb_hash_bytes(copy, bytes_of(&once)).lo | 1 : 0;
  nvb_free(copy);
  return sum;
}
void nva_note_borrowed(nvg_value *v, const nvg_aval *av) {
  if (!v->device && nvb_has(NVB_CHECK, "borrow")) v->sum = sum_of(v, av);
}
int nva_borrowed_unchanged(const nvg_value *v, const nvg_aval *av) {
  uint64_t sum = sum_of(v, av);
  if (v->sum == sum) return NVM_OK;
  if (!sum) return nvb_fail_memory();
  return nvb_fail(NVM_ERR_STATE,
                  "[borrow] the memory that was lent to an array of %lld %s has changed while the array "
                  "lives; copy it, or lend what nobody writes to",
                  (long long)av->size, nvg_dtype_name(av->dtype));
}

/* ---- replicas */
static nvg_value *replica_find(nvg_value *v, int dev) {
  while (v && v->device + 1 != dev) v = atomic_load_explicit(&v->replica, memory_order_acquire);
  return v;
}
/* Adds replica m, which is taken. Returns the replica that is kept, which is another thread's if that was faster. */
static nvg_value *replica_keep(nvg_value *v, nvg_value *m) {
  for (nvg_value *next = NULL; !atomic_compare_exchange_strong(&v->replica, &next, m); v = next, next = NULL)
    if (next->device == m->device) return nvg_value_free(m), next;
  return m;
}
nvg_value *nva_value_kept(nvg_value *v, const nvg_aval *av, int dev) {
  nvg_value *m = replica_find(v, dev);
  if (!m && (m = nva_value_copy(v, av, dev))) m = replica_keep(v, m);
  return m;
}
int nva_transfer(nvg_value **v, const nvg_aval *av, int dev, nvg_value **temporary) {
  nvg_value *there = replica_find(*v, dev);
  *temporary = NULL;
  if (!there && !nva_is_borrowed(*v)) there = nva_value_kept(*v, av, dev);
  else if (!there) there = *temporary = nva_value_copy(*v, av, dev);
  if (!there) return nvb_status();
  *v = there;
  return NVM_OK;
}

int nva_copy_out(void *to, const nvg_value *v, const nvg_aval *av) {
  nvd_buf *from = v->buffer;
  size_t bytes = bytes_of(av);
  if (!v->device) return pack_elements(to, v->data, av, v->stride), NVM_OK;
  if (is_packed(av, v->stride)) return bytes ? nvd_download(to, from, (size_t)(v->data - from->data), bytes) : NVM_OK;
  nvg_value *host = nva_download(v, av);
  if (!host) return nvb_status();
  pack_elements(to, host->data, av, host->stride);
  nvg_value_free(host);
  return NVM_OK;
}
