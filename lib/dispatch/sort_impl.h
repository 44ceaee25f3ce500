/* A stable sort of items by the bytes of their keys, for sort.c, which defines ITEM (a type), NAME(x) (a name of this
   instance) and KEY(item) (an unsigned integer).

   The most significant bytes that differ come first to a radix sort from the least of them up (Knuth, volume 3,
   section 5.2.5): as many as tell most of n items apart. An insertion sort then mends what lies close together; where
   that is more than a few places away, the radix sort starts again with all bytes. */

static void NAME(insert)(ITEM *a, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    ITEM x = a[i];
    int64_t j = i;
    for (; j > 0 && KEY(a[j - 1]) > KEY(x); j--) a[j] = a[j - 1];
    a[j] = x;
  }
}

/* 0 where more than `most` moves would be needed: the items are then somewhere on their way, still stable. */
static int NAME(mend)(ITEM *a, int64_t n, int64_t most) {
  for (int64_t i = 1; i < n; i++) {
    ITEM x = a[i];
    int64_t j = i;
    for (; j > 0 && KEY(a[j - 1]) > KEY(x); j--) a[j] = a[j - 1];
    a[j] = x;
    most -= i - j;
    if (most < 0) return 0;
  }
  return 1;
}

/* Distributes by these bytes of the key, the first one first; returns where the items are then. */
static ITEM *NAME(distribute)(ITEM *a, ITEM *b, int64_t n, const int *byte, int bytes) {
  int64_t count[8][256];
  memset(count, 0, sizeof count[0] * (size_t)bytes);
  for (int64_t i = 0; i < n; i++)
    for (int d = 0; d < bytes; d++) count[d][KEY(a[i]) >> byte[d] & 255]++;
  for (int d = 0; d < bytes; d++) {
    int64_t sum = 0, *at = count[d];
    for (int c = 0; c < 256; c++) {
      int64_t here = at[c];
      at[c] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < n; i++) b[at[KEY(a[i]) >> byte[d] & 255]++] = a[i];
    ITEM *t = a;
    a = b;
    b = t;
  }
  return a;
}

/* Sorts a with as much memory in b; returns where the result lies. */
static ITEM *NAME(sort)(ITEM *a, ITEM *b, int64_t n) {
  enum { FEW = 48, AWAY = 6 };
  if (n <= FEW) {
    NAME(insert)(a, n);
    return a;
  }
  uint64_t all = ~(uint64_t)0, any = 0;
  for (int64_t i = 0; i < n; i++) all &= KEY(a[i]), any |= KEY(a[i]);
  int byte[8], bytes = 0, from = 0;
  for (int d = 0; d < 64; d += 8)
    if ((all ^ any) >> d & 255) byte[bytes++] = d;
  /* a byte beyond those that number the items: the first byte of a float tells little */
  int wanted = n < 1 << 12 ? 3 : n < 1 << 20 ? 4 : 5;
  if (bytes > wanted) from = bytes - wanted;
  ITEM *r = NAME(distribute)(a, b, n, byte + from, bytes - from);
  if (from && !NAME(mend)(r, n, AWAY * n)) r = NAME(distribute)(r, r == a ? b : a, n, byte, bytes);
  return r;
}
#undef ITEM
#undef NAME
#undef KEY
