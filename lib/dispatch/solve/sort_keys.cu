// Keys in the order of elements, and the ranks of a tile's elements by one digit, in front of the kernels that sort.
// Elements keep their bits all the time, so that those which share a key (zeros, NaN) keep their order and their signs.
// Before this text stands rows.cu, and before that
// U, Key              unsigned types: as wide as an element; at least 32 bits, for shuffles
// SIGNED              whether the elements are integers with a sign
// MOST                of floats the greatest magnitude that is not NaN; 0 of integers
// TURN                whether the greatest element comes first (NaN is last in any case)
// ORDER               whether positions are wanted in place of elements
// WARPS, ITEMS        warps that sort a tile together, and elements of each lane
enum { DIGITS = 256, BITS = 8 * sizeof(U), SHARE = LANES * ITEMS, TILE = WARPS * SHARE };

static __device__ U key_of(U x) {
  const U sign = (U)((U)1 << (BITS - 1));
  U size = (U)(x & (U)~sign);
  if (MOST) x = (U)(size > (U)MOST ? (U)(TURN ? 0 : ~(U)0) : !size ? sign : x & sign ? (U)~x : (U)(x | sign));
  else if (SIGNED) x = (U)(x ^ sign);
  return TURN ? (U)~x : x;
}
static __device__ unsigned digit_of(U x, int shift) { return (unsigned)(key_of(x) >> shift) & (DIGITS - 1); }

// The lanes with the same digit.
static __device__ unsigned same_as(unsigned digit) {
  unsigned same = ALL;
#pragma unroll
  for (int b = 0; b < 8; b++) {
    bool one = digit >> b & 1;
    unsigned ones = __ballot_sync(ALL, one);
    same &= one ? ones : ~ones;
  }
  return same;
}

// Counts the digits of one warp, whose elements lie at `first` + 32 k + lane of a tile of n, and ranks each among those
// of its digit: rank << 8 | digit. What lies behind n has the last digit, and stays behind the rest.
static __device__ void rank_share(unsigned short *count, const U (&x)[ITEMS], int first, int n, int shift,
                                  unsigned (&place)[ITEMS]) {
  int lane = threadIdx.x % LANES;
#pragma unroll
  for (int i = 0; i < DIGITS / 2 / LANES; i++) ((unsigned *)count)[i * LANES + lane] = 0;
  __syncwarp();
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    if (first + k * LANES >= n) break; // the same for all lanes
    unsigned digit = first + k * LANES + lane < n ? digit_of(x[k], shift) : DIGITS - 1;
    unsigned same = same_as(digit), before = __popc(same & ((1u << lane) - 1)), old = count[digit];
    __syncwarp();
    if (!before) count[digit] = (unsigned short)(old + __popc(same));
    __syncwarp();
    place[k] = (old + before) << 8 | digit;
  }
}

// Numbers below 2^16 of each item, two in a register.
enum { PAIRS = (ITEMS + 1) / 2 };
static __device__ void put_half(unsigned (&pair)[PAIRS], int k, unsigned x) {
  pair[k / 2] = k % 2 ? pair[k / 2] | x << 16 : x;
}
static __device__ unsigned get_half(const unsigned (&pair)[PAIRS], int k) { return pair[k / 2] >> k % 2 * 16 & 0xffff; }

// All threads of a tile meet.
static __device__ void meet() {
  if (WARPS == 1) __syncwarp();
  else __syncthreads();
}

// Turns the counts of a tile's warps into the places where their digits begin, for its thread number t. total: of the
// digits of this thread, how many there are; start: where they begin.
enum { THREADS = WARPS * LANES, EACH = THREADS < DIGITS ? DIGITS / THREADS : 1, READERS = DIGITS / EACH };
static __device__ void spread_counts(unsigned short (*count)[DIGITS], unsigned *sums, int t, unsigned (&total)[EACH],
                                     unsigned (&start)[EACH]) {
  int lane = t % LANES;
  unsigned all = 0, up;
  if (t < READERS) {
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      total[e] = 0;
      for (int w = 0; w < WARPS; w++) {
        unsigned c = count[w][t * EACH + e];
        count[w][t * EACH + e] = (unsigned short)total[e];
        total[e] += c;
      }
      all += total[e];
    }
  }
  up = all;
#pragma unroll
  for (int by = 1; by < LANES; by *= 2) {
    unsigned other = __shfl_up_sync(ALL, up, by);
    if (lane >= by) up += other;
  }
  if (WARPS > 1) {
    if (lane == LANES - 1) sums[t / LANES] = up;
    __syncthreads();
  }
  if (t < READERS) {
    unsigned before = up - all;
    for (int w = 0; w < t / LANES; w++) before += sums[w];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      start[e] = before;
      for (int w = 0; w < WARPS; w++) count[w][t * EACH + e] += (unsigned short)before;
      before += total[e];
    }
  }
  meet();
}
