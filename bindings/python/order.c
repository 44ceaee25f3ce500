/* Stable order of the elements along the last dimension: argsort for every real dtype, by a radix sort on keys. An
   element's key is an integer of its width that orders as the element does; NaN comes last, -0 equals +0. */
#include <string.h>
#include "nvp.h"

typedef struct item { uint64_t key; int64_t at; } item;

static uint64_t of_float(uint64_t bits, int width, uint64_t most) {
  uint64_t sign = (uint64_t)1 << (width - 1), all = sign | (sign - 1), size = bits & ~sign;
  if (size > most) return all;        /* NaN */
  if (!size) return sign;            /* both zeros */
  return bits & sign ? ~bits & all : bits | sign;
}
static uint64_t key_of(nvm_dtype t, const char *p) {
  uint64_t v = 0;
  int width = (int)nvm_dtype_size(t) * 8;
  memcpy(&v, p, nvm_dtype_size(t));  /* little endian */
  if (nvp_kind(t) == 'i') return v ^ (uint64_t)1 << (width - 1);
  if (nvp_kind(t) != 'f') return v;
  static const uint64_t most[NVM_NDTYPES] = { [NVM_F64] = 0x7ff0000000000000, [NVM_F32] = 0x7f800000,
    [NVM_F16] = 0x7c00, [NVM_BF16] = 0x7f80, [NVM_F8E4] = 0x7e, [NVM_F8E5] = 0x7c }; /* the greatest number */
  return of_float(v, width, most[t]);
}
/* Sorts n items by the low `bytes` bytes of their keys; the result lies in *a (and *b is scratch). */
static void radix(item **a, item **b, int64_t n, int bytes) {
  for (int d = 0; d < bytes; d++) {
    int64_t count[257] = { 0 };
    for (int64_t i = 0; i < n; i++) count[((*a)[i].key >> 8 * d & 255) + 1]++;
    int same = 0;
    for (int c = 1; c < 257; c++) same |= count[c] == n;
    if (same) continue;              /* all have this byte in common */
    for (int c = 1; c < 257; c++) count[c] += count[c - 1];
    for (int64_t i = 0; i < n; i++) (*b)[count[(*a)[i].key >> 8 * d & 255]++] = (*a)[i];
    item *t = *a;
    *a = *b;
    *b = t;
  }
}
static void order_rows(nvm_dtype t, const char *data, int64_t rows, int64_t n, int descending, item *a, item *b,
    int64_t *out) {
  size_t size = nvm_dtype_size(t);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t i = 0; i < n; i++) {
      uint64_t k = key_of(t, data + (size_t)(r * n + i) * size);
      a[i] = (item){ descending ? ~k : k, i };
    }
    radix(&a, &b, n, (int)size);
    for (int64_t i = 0; i < n; i++) out[r * n + i] = a[i].at;
  }
}
/* order(x, descending): int64 positions that sort x along its last dimension */
PyObject *nvp_order(PyObject *module, PyObject *args) {
  nvp_state *st = PyModule_GetState(module);
  nvp_array *x;
  int descending;
  if (!PyArg_ParseTuple(args, "O!p", st->array, &x, &descending)) return NULL;
  nvm_dtype t = nvm_dtype_of(x->h);
  int rank = nvm_rank(x->h);
  if (!rank || nvp_kind(t) == 'c') return PyErr_SetString(PyExc_TypeError,
      "sorting needs real numbers and at least one dimension"), NULL;
  int64_t size = nvm_size(x->h), n = nvm_shape(x->h)[rank - 1];
  size_t bytes = (size_t)size * nvm_dtype_size(t);
  char *data = PyMem_Malloc(bytes + 1);
  item *work = PyMem_Malloc(sizeof *work * (size_t)(2 * n + 1));
  int64_t *out = PyMem_Malloc(sizeof *out * (size_t)(size + 1));
  PyObject *r = NULL;
  if (!data || !work || !out) PyErr_Format(PyExc_MemoryError, "[sort] out of memory: the order of %lld elements of %s",
                                           (long long)size, nvm_dtype_name(t));
  else if (!nvp_copy_out(x, data, bytes)) {
    Py_BEGIN_ALLOW_THREADS
    order_rows(t, data, n ? size / n : 0, n, descending, work, work + n, out);
    Py_END_ALLOW_THREADS
    r = nvp_wrap(st, nvm_array_new_host(st->ctx, NVM_I64, rank, nvm_shape(x->h), NULL, out, NULL, NULL));
  }
  PyMem_Free(data);
  PyMem_Free(work);
  PyMem_Free(out);
  return r;
}
