// Sorts rows that no block holds, by a radix sort of eight bits in a pass. All digits of a row are counted first; then
// each pass reads and writes a row once. A block learns how many elements of each digit lie in the tiles before its own
// from what those have published (Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016;
// Adinets and Merrill, Onesweep, 2022). Blocks take tiles in the order in which they start, so that none waits for one
// that has not started. Behind sort_keys.cu, and
// Count               the unsigned type of counts and of places in a row; counts are below a quarter of its range
// PARTS               tables of counts of a block, a power of two
enum { COUNT, SUM, PASS, PASSES = BITS / 8, BYTES = (ITEMS + 3) / 4, SOME = 1, WHOLE = 2 };
// As passes_task of gpu_sort.c. pass: from 0; tiles: of a row; blocks: of a row, of COUNT.
// counts: of each row, PASSES times DIGITS. said: of each tile, DIGITS of four times a number of elements plus SOME
// (of this tile) or WHOLE (of the tiles before it as well), 0 at first; clear: those of the next pass.
struct Task {
  i64 what, pass, last, rows, n, tiles, blocks;
  const U *from;
  void *to;
  const unsigned *from_order;
  unsigned *to_order, *ticket;
  Count *counts;
  volatile Count *said;
  Count *clear;
  Rows at;
};

struct __align__(16) Tables { unsigned of[PASSES][DIGITS][PARTS]; };
enum { ROOM = TILE * (ORDER && sizeof(U) < 4 ? 4 : sizeof(U)) };
struct __align__(16) Tile {
  char room[ROOM];
  unsigned short count[WARPS][DIGITS];
  unsigned sums[WARPS];
  Count begin[DIGITS];
  unsigned ticket;
};

static __device__ void count_digits(const Task &j, Tables *table) {
  i64 row = blockIdx.x / j.blocks, step = j.blocks * THREADS;
  unsigned *all = &table->of[0][0][0];
  for (int i = threadIdx.x; i < PASSES * DIGITS * PARTS; i += THREADS) all[i] = 0;
  __syncthreads();
  const U *from = j.from + place_of(j.at, row);
  for (i64 i = blockIdx.x % j.blocks * THREADS + threadIdx.x; i < j.n; i += step) {
    U key = key_of(from[i * j.at.step]);
#pragma unroll
    for (int p = 0; p < PASSES; p++)
      atomicAdd(&table->of[p][(unsigned)(key >> 8 * p) & (DIGITS - 1)][threadIdx.x % PARTS], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < PASSES * DIGITS; i += THREADS) {
    Count sum = 0;
    for (int p = 0; p < PARTS; p++) sum += all[i * PARTS + p];
    if (sum) atomicAdd(&j.counts[row * PASSES * DIGITS + i], sum);
  }
}

// Turns the counts of one pass of one row into the places where digits begin.
static __device__ void sum_counts(const Task &j, Count *sums) {
  int t = threadIdx.x, lane = t % LANES;
  Count *at = j.counts + (i64)blockIdx.x * DIGITS + t, own = t < DIGITS ? *at : 0, up = own;
  for (int by = 1; by < LANES; by *= 2) {
    Count other = __shfl_up_sync(ALL, up, by);
    if (lane >= by) up += other;
  }
  if (lane == LANES - 1) sums[t / LANES] = up;
  __syncthreads();
  for (int w = 0; w < t / LANES; w++) up += sums[w];
  if (t < DIGITS) *at = up - own;
}

// How many elements of digit t lie in the tiles before this one, of which it has `own`.
static __device__ Count find_before(const Task &j, i64 row, i64 tile, int t, Count own) {
  volatile Count *said = j.said + (row * j.tiles + tile) * DIGITS + t;
  Count before = 0, s = SOME;
  if (tile) *said = 4 * own + SOME;
  for (volatile Count *p = said; tile && !(s & WHOLE); before += s >> 2) {
    p -= DIGITS;
    do s = *p;
    while (!(s & (SOME | WHOLE)));
    tile--;
  }
  *said = 4 * (before + own) + WHOLE;
  return before;
}

static __device__ void load_tile(const Task &j, i64 row, i64 low, int first, int n, U (&x)[ITEMS]) {
  const U *from = j.from + (j.pass ? row * j.n + low : place_of(j.at, row) + low * j.at.step);
  i64 step = j.pass ? 1 : j.at.step;
#pragma unroll
  for (int k = 0; k < ITEMS; k++) x[k] = first + k * LANES < n ? from[(first + k * LANES) * step] : 0;
}

// Writes the positions of a tile behind those of its elements. digits: byte k is that of the element which went to the
// place t + THREADS k of the tile.
static __device__ void move_order(const Task &j, Tile *s, i64 row, i64 low, int first, int n,
                                  const unsigned (&spot)[PAIRS], const unsigned (&digits)[BYTES]) {
  unsigned at[ITEMS], *positions = (unsigned *)s->room;
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    at[k] = (unsigned)low + first + k * LANES;
    if (j.pass && first + k * LANES < n) at[k] = j.from_order[row * j.n + low + first + k * LANES];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ITEMS; k++)
    if (first + k * LANES < n) positions[get_half(spot, k)] = at[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    int i = k * THREADS + threadIdx.x;
    if (i >= n) break;
    i64 to = row * j.n + (Count)(s->begin[digits[k / 4] >> k % 4 * 8 & (DIGITS - 1)] + i);
    if (j.last) ((i64 *)j.to)[to] = positions[i];
    else j.to_order[to] = positions[i];
  }
}

static __device__ void move_tile(const Task &j, Tile *s) {
  int t = threadIdx.x, warp = t / LANES, lane = t % LANES, first = warp * SHARE + lane, shift = 8 * (int)j.pass;
  if (!t) s->ticket = atomicAdd(&j.ticket[j.pass], 1u);
  __syncthreads();
  i64 row = s->ticket / j.tiles, tile = s->ticket % j.tiles, low = tile * TILE;
  int n = j.n - low < TILE ? (int)(j.n - low) : TILE;
  U x[ITEMS], *elements = (U *)s->room;
  unsigned place[ITEMS], spot[PAIRS] = { 0 }, total[EACH], start[EACH], digits[BYTES] = { 0 };
  load_tile(j, row, low, first, n, x);
  rank_share(s->count[warp], x, first - lane, n, shift, place);
  __syncthreads();
  spread_counts(s->count, s->sums, t, total, start);
  if (t < DIGITS) {
    // the last digit was also counted for the lanes behind the end
    Count own = t == DIGITS - 1 ? n - start[0] : total[0];
    Count before = find_before(j, row, tile, t, own);
    s->begin[t] = j.counts[(row * PASSES + j.pass) * DIGITS + t] + before - start[0];
    if (!j.last) j.clear[(row * j.tiles + tile) * DIGITS + t] = 0;
  }
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    if (first - lane + k * LANES >= n) break;
    unsigned i = s->count[warp][place[k] & (DIGITS - 1)] + (place[k] >> 8);
    put_half(spot, k, i);
    if (first + k * LANES < n) elements[i] = x[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    int i = k * THREADS + t;
    if (i >= n) break;
    U y = elements[i];
    unsigned digit = digit_of(y, shift);
    digits[k / 4] |= digit << k % 4 * 8;
    if (!ORDER || !j.last) ((U *)j.to)[row * j.n + (Count)(s->begin[digit] + i)] = y;
  }
  if (ORDER) move_order(j, s, row, low, first, n, spot, digits);
}

static __device__ void run_block(const Task &j) {
  __shared__ union { Tables table; Tile tile; Count sums[WARPS]; } pool;
  if (j.what == COUNT) count_digits(j, &pool.table);
  else if (j.what == SUM) sum_counts(j, pool.sums);
  else move_tile(j, &pool.tile);
}
