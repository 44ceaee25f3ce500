// Lists where rows of bool are true, in one pass over them. A block takes a tile of a row, and learns how many ones
// lie in the tiles before its own from what those have published (Merrill and Garland, Single-pass Parallel Prefix
// Scan with Decoupled Look-back, 2016). Blocks take tiles in the order in which they start, so that none waits for one
// that has not started. Behind rows.cu.
enum { THREADS = 256, WARPS = THREADS / LANES, ITEMS = LANES, TILE = THREADS * ITEMS, SOME = 1, WHOLE = 2 };
enum { LIST, FILL };
// As positions_task of gpu_search.c. n: elements of a row; each: positions that are wanted; tiles: of a row. said: of
// each tile four times a number of ones plus SOME (of this tile) or WHOLE (of those before it as well), 0 at first.
struct Task {
  i64 what, rows, n, each, tiles;
  const unsigned char *from;
  i64 *to;
  unsigned *ticket;
  volatile u64 *said;
  Rows at;
};

// The ones among 4 bytes of 0 and 1, as bits.
static __device__ unsigned bits_of(unsigned four) { return (four * 0x01020408u >> 24) & 15u; }

// The ones among a thread's elements, as bits; `first` is the first of them.
static __device__ unsigned load_bits(const Task &j, const unsigned char *row, i64 first) {
  unsigned bits = 0;
  const unsigned char *p = row + first * j.at.step;
  if (j.at.step == 1 && first + ITEMS <= j.n && !((u64)p & 15)) {
#pragma unroll
    for (int k = 0; k < ITEMS / 16; k++) {
      uint4 x = ((const uint4 *)p)[k];
      bits |= (bits_of(x.x) | bits_of(x.y) << 4 | bits_of(x.z) << 8 | bits_of(x.w) << 12) << 16 * k;
    }
    return bits;
  }
  for (int k = 0; k < ITEMS && first + k < j.n; k++) bits |= (unsigned)p[k * j.at.step] << k;
  return bits;
}

// How many ones lie in the tiles before this one, of which it has `own`. One warp calls it.
static __device__ u64 find_before(volatile u64 *said, i64 tile, u64 own) {
  int lane = threadIdx.x % LANES;
  u64 before = 0;
  if (!lane) said[tile] = own << 2 | (tile ? SOME : WHOLE);
  for (i64 at = tile - 1 - lane; tile; at -= LANES) {
    u64 s = at < 0 ? WHOLE : 0;
    while (!(s & (SOME | WHOLE))) s = said[at];
    unsigned whole = __ballot_sync(ALL, s & WHOLE);
    int nearest = whole ? __ffs(whole) - 1 : LANES;
    u64 part = lane <= nearest ? s >> 2 : 0;
#pragma unroll
    for (int by = LANES / 2; by; by /= 2) part += __shfl_xor_sync(ALL, part, by);
    before += part;
    if (whole) break;
  }
  if (!lane && tile) said[tile] = (before + own) << 2 | WHOLE;
  return before;
}

// Fills what is behind the last position of a row: every `step` elements from `from`.
static __device__ void fill(const Task &j, i64 row, i64 from, i64 step) {
  for (i64 i = from; i < j.each; i += step) j.to[row * j.each + i] = j.n;
}

static __device__ void list_tile(const Task &j) {
  __shared__ unsigned short list[TILE];
  __shared__ unsigned sums[WARPS], ticket;
  __shared__ u64 begin;
  int t = threadIdx.x, warp = t / LANES, lane = t % LANES;
  if (!t) ticket = j.tiles > 1 ? atomicAdd(j.ticket, 1u) : blockIdx.x;
  __syncthreads();
  i64 row = ticket / j.tiles, tile = ticket % j.tiles, low = tile * TILE;
  unsigned bits = load_bits(j, j.from + place_of(j.at, row), low + t * ITEMS), own = __popc(bits), up = own, total = 0;
#pragma unroll
  for (int by = 1; by < LANES; by *= 2) {
    unsigned other = __shfl_up_sync(ALL, up, by);
    if (lane >= by) up += other;
  }
  if (lane == LANES - 1) sums[warp] = up;
  __syncthreads();
  up -= own;
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    if (w < warp) up += sums[w];
    total += sums[w];
  }
  if (!warp) {
    u64 before = j.tiles > 1 ? find_before(j.said + row * j.tiles, tile, total) : 0;
    if (!lane) begin = before;
  }
  for (; bits; bits &= bits - 1) list[up++] = (unsigned short)(t * ITEMS + __ffs(bits) - 1);
  __syncthreads();
  i64 *to = j.to + row * j.each + begin, room = j.each - (i64)begin;
  for (int i = t; i < total && i < room; i += THREADS) to[i] = low + list[i];
  if (j.tiles == 1) fill(j, row, total + t, THREADS);
}

static __device__ void run_block(const Task &j) {
  if (j.what == LIST) {
    list_tile(j);
    return;
  }
  i64 blocks = gridDim.x / j.rows, row = blockIdx.x / blocks;
  u64 ones = j.said[(row + 1) * j.tiles - 1] >> 2;
  fill(j, row, (i64)ones + blockIdx.x % blocks * THREADS + threadIdx.x, blocks * THREADS);
}
