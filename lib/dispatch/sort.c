/* Sorts a row by keys in the order of its elements, by quicksort where the processor has vectors and the keys differ
   in more than two bytes, else by a radix sort; or the row's positions, by a radix sort, which is stable. Elements that
   share a key but differ in bits (zeros, NaN) are written back in the order in which they came. Never allocates and
   starts no threads. */
#include "dispatch/sort.h"
#include <string.h>
#include "dispatch/quicksort.h"
#include "frag/dtype.h"

/* Four instances of the sort: values of up to 32 bits; values of 64 bits, both as signed keys; a key of up to 32 bits
   above a position in one word; a key and a position side by side. */
#define SIGN_32 ((uint32_t)1 << 31)
#define SIGN_64 ((uint64_t)1 << 63)
#define ITEM int32_t
#define NAME(x) x##_32
#define KEY(item) ((uint32_t)(item) ^ SIGN_32)
#define QUICK nvd_quicksort_32
#include "dispatch/sort.inc"
#define ITEM int64_t
#define NAME(x) x##_64
#define KEY(item) ((uint64_t)(item) ^ SIGN_64)
#define QUICK nvd_quicksort_64
#include "dispatch/sort.inc"
#define ITEM uint64_t
#define NAME(x) x##_packed
#define KEY(item) ((item) >> 32)
#include "dispatch/sort.inc"
typedef struct beside { uint64_t key; int64_t at; } beside;
#define ITEM beside
#define NAME(x) x##_beside
#define KEY(item) ((item).key)
#include "dispatch/sort.inc"

enum { PACKED_MOST = INT32_MAX };

static int is_wide(nvm_dtype t) { return t == NVM_F64 || t == NVM_I64 || t == NVM_U64; }

int64_t nvd_sort_workspace(nvm_dtype t, int64_t n) {
  int64_t each = is_wide(t) || n > PACKED_MOST ? (int64_t)sizeof(beside) : (int64_t)sizeof(uint64_t);
  return 2 * n * each + 64;
}

/* ---- keys */
/* Bit patterns of a float dtype: the sign bit, and the greatest non-NaN magnitude (infinity, if there is one). Greater
   magnitudes are NaN. */
typedef struct format { uint64_t sign, most; } format;
static const format formats[NVM_NDTYPES] = { [NVM_F8E4] = { 0x80, 0x7e },
                                             [NVM_F8E5] = { 0x80, 0x7c },
                                             [NVM_F16] = { 0x8000, 0x7c00 },
                                             [NVM_BF16] = { 0x8000, 0x7f80 },
                                             [NVM_F32] = { 0x80000000, 0x7f800000 },
                                             [NVM_F64] = { SIGN_64, 0x7ff0000000000000 } };

/* key_: the key of a float from its bits: negative numbers are inverted, positive numbers lie above them, both
   zeros have one key, and NaN have the key `nan`. plain_key_: the same of what is neither -0 nor NaN. of_key_: a float
   from its key. T is the type of the bits, whose highest bit is the sign. */
#define FLOATS(T, suffix) \
  static inline T plain_key_##suffix(T x) { \
    return (T)(x ^ ((T)(0 - (x >> (8 * sizeof x - 1))) | (T)((T)1 << (8 * sizeof x - 1)))); \
  } \
  static inline T key_##suffix(T x, T most, T nan) { \
    const T sign = (T)((T)1 << (8 * sizeof x - 1)), size = (T)(x & (T)~sign); \
    return (T)(size > most ? nan : !size ? sign : x & sign ? ~x : x | sign); \
  } \
  static inline T of_key_##suffix(T key) { \
    const int top = 8 * sizeof key - 1; \
    return (T)(key ^ ((T)((key >> top) - 1) | (T)((T)1 << top))); \
  }
FLOATS(uint8_t, 8)
FLOATS(uint16_t, 16)
FLOATS(uint32_t, 32)
FLOATS(uint64_t, 64)
#undef FLOATS

/* Whether no element is -0 or NaN. The top bit of a sum says what a comparison would, and needs no vector
   instruction that the oldest processors lack: of size + (sign - 1 - most) that size is greater than most, of (y - 1)
   & ~y that y is 0. */
#define PLAIN(T, suffix) \
  static T bits_##suffix(const nvd_row *r, int64_t i, int64_t stride) { \
    T x; \
    memcpy(&x, r->data + i * stride * (int64_t)sizeof x, sizeof x); \
    return x; \
  } \
  static inline int plain_##suffix(const nvd_row *r, int64_t stride, T sign, T most) { \
    T odd = 0; \
    for (int64_t i = 0; i < r->n; i++) { \
      T x = bits_##suffix(r, i, stride), y = x ^ sign; \
      odd |= (T)((T)((x & (T)~sign) + (T)(sign - 1 - most)) | ((T)(y - 1) & (T)~y)); \
    } \
    return !(odd & sign); \
  } \
  static int is_plain_##suffix(const nvd_row *r, format f) { \
    T sign = (T)f.sign, most = (T)f.most; \
    return r->stride == 1 ? plain_##suffix(r, 1, sign, most) : plain_##suffix(r, r->stride, sign, most); \
  }
PLAIN(uint8_t, 8)
PLAIN(uint16_t, 16)
PLAIN(uint32_t, 32)
PLAIN(uint64_t, 64)
#undef PLAIN
static int is_plain(const nvd_row *r) {
  format f = formats[r->type];
  switch (f.sign ? nvg_size(r->type) : 0) {
  case 1: return is_plain_8(r, f);
  case 2: return is_plain_16(r, f);
  case 4: return is_plain_32(r, f);
  case 8: return is_plain_64(r, f);
  default: return 1;
  }
}

/* The bits of keys that are inverted for this order. */
static uint32_t turn_32(const nvd_row *r) { return r->descending ? UINT32_MAX : 0; }
static uint64_t turn_64(const nvd_row *r) { return r->descending ? UINT64_MAX : 0; }

/* out[i] = the key of element i, whose bits are x, with the bits of turn inverted */
#define STEP(T, step, key) \
  for (int64_t i = 0; i < r->n; i++) { \
    T x; \
    memcpy(&x, r->data + i * (step) * (int64_t)sizeof x, sizeof x); \
    out[i] = (key) ^ turn; \
  }
#define EACH(T, key) \
  if (r->stride == 1) \
    STEP(T, 1, key) \
  else \
    STEP(T, r->stride, key) \
  break
static void keys_32(const nvd_row *r, int plain, uint32_t turn, uint32_t *out) {
  uint64_t most = formats[r->type].most;
  uint32_t nan = ~turn_32(r); /* the greatest key when it is turned */
  switch (r->type) {
  case NVM_I8: EACH(uint8_t, x ^ 0x80u);
  case NVM_I16: EACH(uint16_t, x ^ 0x8000u);
  case NVM_I32: EACH(uint32_t, x ^ 0x80000000u);
  case NVM_U16: EACH(uint16_t, x);
  case NVM_U32: EACH(uint32_t, x);
  case NVM_F8E4: case NVM_F8E5: EACH(uint8_t, key_8(x, (uint8_t)most, (uint8_t)nan));
  case NVM_F16: case NVM_BF16: EACH(uint16_t, key_16(x, (uint16_t)most, (uint16_t)nan));
  case NVM_F32: EACH(uint32_t, plain ? plain_key_32(x) : key_32(x, (uint32_t)most, nan));
  default: EACH(uint8_t, x);
  }
}
static void keys_64(const nvd_row *r, int plain, uint64_t turn, uint64_t *out) {
  uint64_t nan = ~turn_64(r);
  switch (r->type) {
  case NVM_I64: EACH(uint64_t, x ^ UINT64_C(1) << 63);
  case NVM_U64: EACH(uint64_t, x);
  default: EACH(uint64_t, plain ? plain_key_64(x) : key_64(x, formats[NVM_F64].most, nan));
  }
}
#undef EACH
#undef STEP

/* Turns sorted keys back into elements. */
#define EACH(T, value) \
  for (int64_t i = 0; i < r->n; i++) { \
    T x = (T)(value); \
    memcpy((char *)out + i * (int64_t)sizeof x, &x, sizeof x); \
  } \
  break
static void values_32(const nvd_row *r, const uint32_t *key, uint32_t turn, void *out) {
  switch (r->type) {
  case NVM_I8: EACH(uint8_t, key[i] ^ turn ^ 0x80u);
  case NVM_I16: EACH(uint16_t, key[i] ^ turn ^ 0x8000u);
  case NVM_I32: EACH(uint32_t, key[i] ^ turn ^ 0x80000000u);
  case NVM_U16: EACH(uint16_t, key[i] ^ turn);
  case NVM_U32: EACH(uint32_t, key[i] ^ turn);
  case NVM_F8E4: case NVM_F8E5: EACH(uint8_t, of_key_8((uint8_t)(key[i] ^ turn)));
  case NVM_F16: case NVM_BF16: EACH(uint16_t, of_key_16((uint16_t)(key[i] ^ turn)));
  case NVM_F32: EACH(uint32_t, of_key_32(key[i] ^ turn));
  default: EACH(uint8_t, key[i] ^ turn);
  }
}
static void values_64(const nvd_row *r, const uint64_t *key, uint64_t turn, void *out) {
  switch (r->type) {
  case NVM_I64: EACH(uint64_t, key[i] ^ turn ^ UINT64_C(1) << 63);
  case NVM_U64: EACH(uint64_t, key[i] ^ turn);
  default: EACH(uint64_t, of_key_64(key[i] ^ turn));
  }
}
#undef EACH

/* ---- elements that share a key but differ in bits */
/* Numbers of zeros, of NaN, and of negative numbers in a row. kept: the bits of the zeros from the front and those of
   the NaN from the back, in the order in which they come. */
typedef struct twins { int64_t zeros, nans, below; uint64_t *kept; } twins;
#define TWINS(T, suffix) \
  static void find_##suffix(twins *t, const nvd_row *r, T sign, T most) { \
    for (int64_t i = 0; i < r->n; i++) { \
      T x = bits_##suffix(r, i, r->stride), size = x & (T)~sign; \
      if (size > most) t->kept[r->n - ++t->nans] = x; \
      else if (!size) t->kept[t->zeros++] = x; \
      else t->below += (x & sign) != 0; \
    } \
  }
TWINS(uint8_t, 8)
TWINS(uint16_t, 16)
TWINS(uint32_t, 32)
TWINS(uint64_t, 64)
#undef TWINS
static twins twins_of(const nvd_row *r, int plain, uint64_t *kept) {
  twins t = { .kept = kept };
  format f = formats[r->type];
  switch (!plain ? nvg_size(r->type) : 0) {
  case 1: find_8(&t, r, (uint8_t)f.sign, (uint8_t)f.most); break;
  case 2: find_16(&t, r, (uint16_t)f.sign, (uint16_t)f.most); break;
  case 4: find_32(&t, r, (uint32_t)f.sign, (uint32_t)f.most); break;
  case 8: find_64(&t, r, f.sign, f.most); break;
  default: break;
  }
  return t;
}
/* Writes the zeros and NaN to the positions of their keys. */
static void put_twins(const nvd_row *r, const twins *t, char *out) {
  size_t size = (size_t)nvg_size(r->type);
  int64_t positive = r->n - t->nans - t->zeros - t->below;
  int64_t zero = r->descending ? positive : t->below, nan = r->n - t->nans;
  for (int64_t i = 0; i < t->zeros; i++) memcpy(out + (size_t)(zero + i) * size, &t->kept[i], size);
  for (int64_t i = 0; i < t->nans; i++) memcpy(out + (size_t)(nan + i) * size, &t->kept[r->n - 1 - i], size);
}

/* ---- rows */
/* Keys lie in `out` where they are as large as elements and the row is needed no more, else in the scratch. */
static void sort_wide(const nvd_row *r, int plain, void *out, uint64_t *scratch) {
  uint64_t *a = plain ? out : scratch, *b = scratch + r->n, turn = turn_64(r) ^ SIGN_64;
  keys_64(r, plain, turn, a);
  a = (uint64_t *)sort_64((int64_t *)a, (int64_t *)b, r->n);
  twins t = twins_of(r, plain, b + r->n);
  values_64(r, a, turn, out);
  put_twins(r, &t, out);
}

void nvd_sort(const nvd_row *r, void *out, void *scratch) {
  int plain = is_plain(r), in_place = plain && nvg_size(r->type) == 4;
  if (is_wide(r->type)) {
    sort_wide(r, plain, out, scratch);
    return;
  }
  uint32_t *a = in_place ? out : scratch, *b = (uint32_t *)scratch + r->n, turn = turn_32(r) ^ SIGN_32;
  keys_32(r, plain, turn, a);
  a = (uint32_t *)sort_32((int32_t *)a, (int32_t *)b, r->n);
  twins t = twins_of(r, plain, (uint64_t *)scratch + r->n);
  values_32(r, a, turn, out);
  put_twins(r, &t, out);
}

static void order_wide(const nvd_row *r, int plain, int64_t *out, void *scratch) {
  beside *a = scratch, *b = a + r->n;
  uint64_t *key = (uint64_t *)b;
  if (is_wide(r->type)) keys_64(r, plain, turn_64(r), key);
  else keys_32(r, plain, turn_32(r), (uint32_t *)key);
  for (int64_t i = 0; i < r->n; i++) a[i] = (beside){ is_wide(r->type) ? key[i] : ((uint32_t *)key)[i], i };
  a = sort_beside(a, b, r->n);
  for (int64_t i = 0; i < r->n; i++) out[i] = a[i].at;
}

/* Orders keys of two bytes at most: by the lower byte, if there are two, and what that gives by the upper one. */
static void order_narrow(const uint32_t *key, int two, int64_t n, int64_t *out, uint64_t *between) {
  int64_t low[256] = { 0 }, high[256] = { 0 }, below_low = 0, below_high = 0;
  for (int64_t i = 0; i < n; i++) low[key[i] & 255]++, high[key[i] >> 8 & 255]++;
  for (int c = 0; c < 256; c++) {
    int64_t lows = low[c], highs = high[c];
    low[c] = below_low, high[c] = below_high;
    below_low += lows, below_high += highs;
  }
  for (int64_t i = 0; i < n; i++)
    if (two) between[low[key[i] & 255]++] = (uint64_t)key[i] << 32 | (uint64_t)i;
    else out[low[key[i] & 255]++] = i;
  for (int64_t i = 0; two && i < n; i++) out[high[between[i] >> 40 & 255]++] = (int64_t)(uint32_t)between[i];
}

void nvd_order(const nvd_row *r, int64_t *out, void *scratch) {
  int plain = is_plain(r);
  if (is_wide(r->type) || r->n > PACKED_MOST) {
    order_wide(r, plain, out, scratch);
    return;
  }
  uint64_t *a = scratch, *b = a + r->n;
  uint32_t *key = (uint32_t *)b;
  keys_32(r, plain, turn_32(r), key);
  if (nvg_size(r->type) < 4) {
    order_narrow(key, nvg_size(r->type) == 2, r->n, out, a);
    return;
  }
  for (int64_t i = 0; i < r->n; i++) a[i] = (uint64_t)key[i] << 32 | (uint64_t)i;
  a = sort_packed(a, b, r->n);
  for (int64_t i = 0; i < r->n; i++) out[i] = (int64_t)(uint32_t)a[i];
}
