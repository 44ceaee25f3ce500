// Sorts rows that a block holds: those of up to 32 elements by counting what lies before each, as many at a time as a
// warp has room for; longer ones by radix sort in shared memory, eight bits in a pass. Behind sort_keys.cu, and
// GROUPS              tiles of a block: rows that it sorts at a time
// As rows_task of gpu_sort.c. lanes: of a row of up to 32 elements, a power of two; 0 of others.
struct Task {
  const U *from;
  void *to;
  i64 rows, n, lanes;
  Rows at;
};

static __device__ void sort_short(const Task &j) {
  int lanes = (int)j.lanes, lane = threadIdx.x % LANES, base = lane & ~(lanes - 1), own = lane - base;
  i64 row = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / lanes;
  int n = (int)j.n, there = row < j.rows && own < n, rank = 0;
  U x = there ? j.from[place_of(j.at, row) + own * j.at.step] : 0;
  Key key = key_of(x);
  for (int i = 0; i < n; i++) {
    Key other = __shfl_sync(ALL, key, base + i);
    rank += other < key || (other == key && i < own);
  }
  if (!there) return;
  if (ORDER) ((i64 *)j.to)[row * n + rank] = own;
  else ((U *)j.to)[row * n + rank] = x;
}

enum { ROOM = TILE * (ORDER && sizeof(U) < 2 ? 2 : sizeof(U)) };
struct __align__(16) Pool {
  char room[GROUPS][ROOM];
  unsigned short count[GROUPS * WARPS][DIGITS];
  unsigned sums[GROUPS][WARPS];
};

static __device__ void run_block(const Task &j) {
  __shared__ Pool pool;
  if (j.lanes) {
    sort_short(j);
    return;
  }
  int group = threadIdx.x / THREADS, t = threadIdx.x % THREADS, warp = t / LANES, lane = t % LANES;
  int first = warp * SHARE + lane;
  i64 row = (i64)blockIdx.x * GROUPS + group;
  int n = row < j.rows ? (int)j.n : 0;
  U x[ITEMS], *elements = (U *)pool.room[group];
  unsigned short *positions = (unsigned short *)pool.room[group];
  unsigned place[ITEMS], to[PAIRS] = { 0 }, at[PAIRS], total[EACH], start[EACH];
  const U *from = j.from + (n ? place_of(j.at, row) : 0);
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    x[k] = first + k * LANES < n ? from[(first + k * LANES) * j.at.step] : 0;
    put_half(at, k, first + k * LANES);
  }
  for (int shift = 0; shift < BITS; shift += 8) {
    unsigned short(*count)[DIGITS] = pool.count + group * WARPS;
    rank_share(count[warp], x, first - lane, n, shift, place);
    meet();
    spread_counts(count, pool.sums[group], t, total, start);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
      if (first - lane + k * LANES >= n) break;
      unsigned i = count[warp][place[k] & (DIGITS - 1)] + (place[k] >> 8);
      put_half(to, k, i);
      elements[i] = x[k];
    }
    meet();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
      if (first - lane + k * LANES < n) x[k] = elements[first + k * LANES];
    if (!ORDER) continue;
    meet();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
      if (first - lane + k * LANES < n) positions[get_half(to, k)] = (unsigned short)get_half(at, k);
    meet();
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
      if (first - lane + k * LANES < n) put_half(at, k, positions[first + k * LANES]);
  }
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    if (first + k * LANES >= n) break;
    if (ORDER) ((i64 *)j.to)[row * n + first + k * LANES] = get_half(at, k);
    else ((U *)j.to)[row * n + first + k * LANES] = x[k];
  }
}
