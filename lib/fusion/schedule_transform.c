/* Schedules kernels with transforms. In the layout of a pass its own digit is items of a thread; the others are
   lanes, warps and loops. A block of a GPU has several transforms if they are short. The lanes of a CPU's vector run
   along a digit of the points where two digits are long enough, so that a transform stays in the nearest cache; of
   columns, and else, each lane has a transform of its own. It changes no bit. */
#include <string.h>
#include "fusion/schedule.h"

/* The digit along which memory is contiguous in the layout of a pass: the last one where the points are read, the
   first one where they are stored. rank 0: the nearest to that end. */
static int digit_at(const nvf_passes *p, int pass, int rank) {
  return pass == p->n - 1 && pass ? rank : p->n - 1 - rank;
}

static int64_t divisor_of(int64_t n, int64_t most) { /* the largest one up to `most` */
  int of = (int)n, d = (int)most;
  while (of % d) d--;
  return d;
}

static int widest_of(const nvf_fusion *k) { /* bytes of a real number of the transforms */
  return nvg_size(nvg_real_of(k->graph->node[k->expr.at[*k->transforms->expr].node].dtype));
}

/* ---- GPU */
/* `lanes` lanes of a warp and `warps` warps of a block share one transform: each of them has `items` points at most,
   and a warp has `rows` transforms. cost: instructions of a warp for each transform, by estimate; 0: there is no such
   division. whole: a digit has the lanes of its greatest divisor that is not more, else those that divide it, which
   leaves the others to the next digit. SHARED: points of transforms that share warps, at most. */
enum { MANY = 16 }; /* points of a thread: its registers decide how many blocks fit into an SM */
enum { WARP = 32, WARPS = 32, FEW_WARPS = 4, REGISTERS = 65536, SHARED = 4096, LINE = 128 };
typedef struct division { int64_t lanes, warps, rows, items; int whole; double cost; } division;
typedef struct split { int64_t lanes, warps, items; } split;

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

static int64_t lanes_of(int64_t n, int64_t lanes, int whole) {
  return whole ? divisor_of(n, least(lanes, n)) : common_divisor(n, lanes);
}

/* Gives a digit of n values lanes, then warps, then items. */
static split split_digit(int64_t n, int64_t *lanes, int64_t *warps, int whole) {
  split d = { .lanes = lanes_of(n, *lanes, whole) };
  d.warps = divisor_of(n / d.lanes, least(*warps, n / d.lanes));
  d.items = n / d.lanes / d.warps;
  *lanes /= d.lanes, *warps /= d.warps;
  return d;
}

/* Instructions for each point of a pass: those of the exchange before it, and those of its butterflies. */
static double pass_work(int radix) {
  enum { EXCHANGE = 8 };
  double sum = EXCHANGE;
  for (int p = 2; radix > 1; p++)
    for (; radix % p == 0; radix /= p) sum += p == 2 ? 3 : p + 3;
  return sum;
}

/* Lanes with neighbouring points in an access to memory, where they are fewer than share a sector, cost its other
   part. */
static double sector_waste(const nvf_passes *p, int64_t lanes, int whole) {
  enum { SECTOR = 4 };
  int64_t read = lanes_of(p->radix[digit_at(p, 0, 0)], lanes, whole),
          stored = lanes_of(p->radix[digit_at(p, p->n - 1, 0)], lanes, whole);
  return p->n == 1 ? 1 : (double)SECTOR / (double)least(SECTOR, least(read, stored));
}

/* Sets rows, items and the cost of a division with these lanes and warps. Lanes and warps that a pass has no points
   for compute copies. columns: transforms that a warp has side by side in memory; 0: they lie one after the other. */
static division divide_points(const nvf_passes *p, int64_t points, int64_t lanes, int64_t warps, int whole,
                              int64_t columns) {
  division v = { .lanes = lanes, .warps = 1, .rows = columns ? columns : WARP / lanes, .whole = whole };
  while (!columns && v.rows > 1 && v.rows * points > SHARED) v.rows--;
  for (int pass = 0; pass < p->n; pass++) {
    int64_t l = lanes, w = warps, items = p->radix[pass], used = 1;
    for (int rank = 0; rank < p->n; rank++) {
      if (digit_at(p, pass, rank) == pass) continue;
      split d = split_digit(p->radix[digit_at(p, pass, rank)], &l, &w, whole);
      items *= d.items, used *= d.warps;
    }
    v.items = most(v.items, items), v.warps = most(v.warps, used);
    v.cost += pass_work(p->radix[pass]) * (double)items;
  }
  v.cost *= (double)v.warps / (double)v.rows * (columns ? 1 : sector_waste(p, lanes, whole));
  return v;
}

/* The registers of so many warps, with so many for each point of 32 bits. TIGHT: without these, points are spilled.
   ROOMY: half of a butterfly's results live beside its points; ptxas, unbounded, takes 87 registers for 16 points, 125
   for 28, 149 for 32. */
enum { TIGHT = 2, ROOMY = 3 };
static int64_t registers_of(division v, int64_t warps, int each) {
  enum { OTHERS = 24, GRAIN = 8 }; /* OTHERS: for anything but the points */
  return warps * WARP * ((each * v.items + OTHERS + GRAIN - 1) / GRAIN * GRAIN);
}

/* The cheapest division; of several, one that keeps the fewest points in a thread, and the most lanes. Where threads
   would have more points than registers, each instruction waits for memory. */
static division best_division(const nvf_passes *p, int64_t points, int64_t columns) {
  enum { ITEMS = 32, SLOW = 8 };
  division best = { 0 };
  int least_radix = p->radix[0];
  for (int i = 1; i < p->n; i++) least_radix = (int)least(least_radix, p->radix[i]);
  for (int64_t lanes = columns ? WARP / columns : WARP; lanes >= 1; lanes--)
    for (int64_t i = 2; i / 2 <= WARPS && lanes * (i / 2 - 1) * least_radix < points; i++) {
      if (points % lanes || points % (i / 2)) continue; /* digits have no such lanes or warps */
      if (best.cost && best.items <= ITEMS && lanes * (i / 2) * ITEMS < points) continue;
      division v = divide_points(p, points, lanes, i / 2, (int)i % 2, columns);
      if (v.items > ITEMS || registers_of(v, v.warps, TIGHT) > REGISTERS) v.cost *= SLOW * (double)v.items;
      if (!best.cost || v.cost < best.cost || (v.cost <= best.cost && v.items < best.items)) best = v;
    }
  return best;
}

double nvf_passes_cost(const nvf_passes *p, int64_t points, int *items) {
  division v = best_division(p, points, 0);
  *items = (int)v.items;
  return v.cost;
}

/* The blocks of so many warps that fit into an SM, at least one: as many as have roomy registers, but three if tight
   ones suffice, since with two a barrier leaves half of the SM idle (5120 points: 1.610 times a copy with three and
   64 registers, 1.724 with two and 93). Where the points of a thread are few, all that have tight ones.
   masked: tight ones do not suffice. */
static int64_t blocks_per_sm(const nvf_fusion *k, division v, int64_t warps, int64_t rows, int masked) {
  int64_t enough = masked ? 0 : v.items < MANY && v.warps > 1 ? REGISTERS : 3;
  int words = widest_of(k) / 4;
  int64_t bytes = 2 * widest_of(k) * k->transforms->points * rows;
  int64_t roomy = REGISTERS / registers_of(v, warps, ROOMY * words);
  int64_t tight = REGISTERS / registers_of(v, warps, TIGHT * words);
  return most(1, least(most(roomy, least(tight, enough)), k->graph->caps->onchip / bytes));
}

/* The blocks per SM that a kernel is compiled for; 0: ptxas decides. Threads with many points are, since it would take
   more registers, and so are those of warps that wait for each other, since it takes fewer than the points need to move
   in one go (ratios to a copy: 1024 points with 96 registers 1.056, with 127 1.018; 4096 with 64 1.281, with 80 1.230;
   256 with 54 1.064, with 72 1.049; 1000, with ten points in a thread, with 54 1.91, with 48 1.68). */
static int bound_of(const nvf_fusion *k, division v, int64_t blocks) {
  int bound = v.items >= MANY || v.warps > 1;
  return bound && widest_of(k) == 4 ? (int)blocks : 0;
}

/* How many blocks ahead the operand is prefetched into L2: for each SM one fewer than fit, two at most, so that what
   one of them waits for comes while another computes. Where one fills the SM and has two transforms, a prefetch only
   takes from its own loads (16384 points: 1.736 times a copy without, 1.851 with). Ratios without and with: 256 points
   1.005 and 0.984, 1024 1.018 and 1.007; 2048 with one and two 1.105 and 1.089. */
static int blocks_ahead(const nvf_fusion *k, int64_t blocks, int64_t rows) {
  enum { LONG = 16 << 10, LONGEST = 64 << 10 };
  const nvf_transforms *t = k->transforms;
  int64_t bytes = t->points * 2 * widest_of(k), each = least(2, most(blocks - 1, t->stages == 1));
  int waits = bytes >= LONGEST || (t->stages > 1 && rows * bytes >= LONG);
  return (int)nvf_knob_value(k, NVF_KPREFETCH, waits ? each * k->graph->caps->cores : 0);
}

/* Whether one instruction prefetches a block's transform, rather than each thread some of its points: that takes none
   of the slots of their loads and stores (ratios to a copy: 4096 points 1.230 with threads, 1.164 with one
   instruction; 5120 1.645, 1.584; 7168 1.650, 1.586; worse for 2048, and for four transforms of 1024 1.007, 1.073). */
static int prefetches_whole(const nvf_fusion *k, int64_t rows) {
  enum { LARGE = 32 << 10 };
  return rows == 1 && k->transforms->stages > 1 && k->transforms->points * 2 * widest_of(k) >= LARGE;
}

/* How many columns a block of a GPU has side by side: as many as a line of memory holds, if their points fit. Times
   over the floor of fft(x, axis=0) with 4, 8 and 16: 256 points 1.65, 1.45, 1.18; 1024 1.74, 1.36, 1.30; 2048 with 4
   and 8: 1.69, 1.56. Columns that do not fill their blocks have masks, for which tight registers do not suffice where
   a block transforms them twice: 2049 columns of a filter of 4096 points spill with four (6.3 for 2.5). Transformed
   once, 4097 columns of 4096 points took 2.84 with four and 4.17 with two, 8193 of 2048 2.22 with eight, 2.71 with
   four. */
static int64_t columns_of_block(const nvf_fusion *k, int columns) {
  enum { MOST = 128 << 10 }; /* bytes of a block's points */
  int64_t each = 2 * widest_of(k), n = LINE / each, all = k->axis.at[columns].n;
  for (; n > 1; n /= 2) {
    division v = best_division(&k->transforms->passes, k->transforms->points, n);
    int masked = all % n && k->transforms->stages > 1 && registers_of(v, v.warps, ROOMY * widest_of(k) / 4) > REGISTERS;
    if (n <= all && n * each * k->transforms->points <= MOST && !masked) break;
  }
  return n;
}

/* SIDE: rows of a block whose results are stored side by side, at most: a sector of numbers of 4 bytes. */
enum { SIDE = 8 };
/* Whether the one transform of rows stores its results side by side along the axis of the rows, as that of frames does
   whose spectra are columns. Lanes of the last pass run along these: power spectra of frames of 256 points took 5.79
   times a copy where each lane stored at a row of its own, 4.13 with 4 side by side, 2.91 with 8, 2.98 with 16; of 1024
   points 9.75, 4.37, 4.39, 4.65. */
static int is_turned(const nvf_fusion *k, int batch) {
  int along = batch >= 0 && k->transforms->passes.n > 1 && k->transforms->stages == 1 && k->put.n;
  for (int i = 0; i < k->put.n && along; i++) along = nvf_is_one(k, k->put.at[i].at, batch);
  return along;
}

/* Groups of warps with transforms of their own. `side` of rows, if it is not 0, are stored side by side. */
static int64_t groups_of(const nvf_fusion *k, division v, int64_t rows, int64_t batch, int64_t side) {
  int64_t groups = 1, warps = side ? 4 * FEW_WARPS : FEW_WARPS, points = side ? 8 * SHARED : 2 * SHARED;
  while (2 * groups * v.warps <= warps && 2 * groups * rows <= power2(batch) &&
         2 * groups * rows * k->transforms->points <= points && !(side && groups * rows >= side))
    groups *= 2;
  return groups;
}

/* Places the passes. The lanes and warps of transforms that share a block follow those of the points, but for those of
   `columns` columns, which are side by side in memory, lanes before those of the points; so are rows in the last pass
   if they are stored side by side. Returns the number of transforms. */
static int64_t place_gpu(const nvf_fusion *k, nvf_tiling *s, int64_t columns) {
  const nvf_passes *p = &k->transforms->passes;
  int64_t batch = s->batch < 0 ? 1 : k->axis.at[s->batch].n;
  division v = best_division(p, k->transforms->points, columns);
  int64_t rows = columns ? columns : least(v.rows, batch), groups = columns ? 1 : groups_of(k, v, rows, batch, SIDE);
  int turned = !columns && is_turned(k, s->batch) && v.lanes * rows == WARP && rows * groups >= SIDE / 2;
  if (!columns && !turned) groups = groups_of(k, v, rows, batch, 0);
  int64_t blocks = blocks_per_sm(k, v, groups * v.warps, groups * rows, columns && batch % columns);
  s->blocks = bound_of(k, v, blocks);
  s->prefetch = columns ? 0 : blocks_ahead(k, blocks, groups * rows);
  s->bulk = prefetches_whole(k, groups * rows);
  s->pairs = 0;
  int64_t beside = columns ? columns : turned ? rows * groups : 0;
  s->part_of_line = beside * 2 * widest_of(k) < LINE ? (int)beside : 0;
  for (int pass = 0; pass < p->n; pass++) {
    int turn = turned && pass == (k->transforms->reversed ? 0 : p->n - 1), along = columns || turn;
    int64_t lanes = turn ? WARP / beside : v.lanes, warps = turn ? groups * v.warps : v.warps,
            used_lanes = along ? beside : 1, used_warps = 1;
    nvf_digit_add(&s->point[pass][pass], 'i', p->radix[pass], 0);
    for (int rank = 0; rank < p->n; rank++) {
      int q = digit_at(p, pass, rank);
      if (q == pass) continue;
      split d = split_digit(p->radix[q], &lanes, &warps, v.whole);
      int outer = !rank && (!pass || pass == p->n - 1); /* its lowest digit is that of memory */
      int64_t pair = outer && !along && widest_of(k) == 4 && d.items % 2 == 0 ? 2 : 1;
      if (pair == 2) s->pairs |= 1u << pass;
      nvf_digit_add(&s->point[pass][q], 'i', pair, 0);
      nvf_digit_add(&s->point[pass][q], 'l', d.lanes, (int)used_lanes);
      nvf_digit_add(&s->point[pass][q], 'w', d.warps, (int)used_warps);
      nvf_digit_add(&s->point[pass][q], 'i', d.items / pair, 0);
      used_lanes *= d.lanes, used_warps *= d.warps;
    }
    nvf_digit_add(&s->several[pass], 'l', along ? beside : rows, along ? 1 : (int)used_lanes);
    nvf_digit_add(&s->several[pass], 'w', turn ? 1 : groups, (int)used_warps);
  }
  return rows * groups;
}

/* ---- CPU */
/* Lanes of vectors along digits of the points: a power of two that divides two digits; 0: there are none. */
static int64_t lanes_along(const nvf_passes *p, int64_t width) {
  enum { FEW = 4 };
  for (int64_t w = width; w >= FEW || w == width; w /= 2) {
    int n = 0;
    for (int i = 0; i < p->n; i++) n += p->radix[i] % w == 0;
    if (n > 1) return w;
  }
  return 0;
}

/* Places a pass as number `as`: lanes run along the digit nearest to the end from which rank counts. */
static void place_pass_cpu(nvf_tiling *s, const nvf_passes *p, int pass, int as, int64_t lanes) {
  int lane = -1;
  for (int rank = 0; rank < p->n && lanes && lane < 0; rank++) {
    int q = digit_at(p, as == NVF_BACKWARDS ? p->n - 1 : pass, rank);
    lane = q != pass && p->radix[q] % lanes == 0 ? q : -1;
  }
  for (int q = 0; q < p->n; q++) {
    nvf_digits *d = &s->point[as][q];
    if (q == lane) nvf_digit_add(d, 'l', lanes, 0);
    nvf_digit_add(d, q == pass ? 'i' : 'I', q == lane ? p->radix[q] / lanes : p->radix[q], 0);
  }
}

/* Bytes of the accesses to memory that are contiguous along an axis */
static double contiguous_bytes(const nvf_fusion *k, int axis) {
  double sum = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (v->kind == NVF_ILOAD && v->axes >> axis & 1 && nvf_is_one(k, v->at, axis))
      sum += nvf_elements(k, v->axes) * nvg_size(k->graph->node[v->node].dtype);
  }
  for (int i = 0; i < k->put.n; i++) {
    const nvf_put *q = &k->put.at[i];
    if (q->axes >> axis & 1 && nvf_is_one(k, q->at, axis))
      sum += nvf_elements(k, q->axes) * nvg_size(k->graph->node[q->node].dtype);
  }
  return sum;
}

/* The batch axis along which more bytes are contiguous than along the points, as in transforms of columns: lanes of a
   vector, or of a warp, have columns of their own. On a GPU half as many bytes suffice: its lanes run along the points
   as well. -1: there is none of `width`. */
static int columns_of(const nvf_fusion *k, int64_t width) {
  const nvf_transforms *t = k->transforms;
  double most_bytes = contiguous_bytes(k, t->axis) + (t->from != t->axis ? contiguous_bytes(k, t->from) : 0);
  if (k->graph->caps->kind != NVB_CPU) most_bytes /= 2;
  int best = -1;
  for (int a = 0; a < k->axis.n; a++) {
    if (!nvf_live(k, a) || !(k->grid >> a & 1) || a == t->axis || a == t->from || k->axis.at[a].n < width) continue;
    double bytes = contiguous_bytes(k, a);
    if (bytes > most_bytes) most_bytes = bytes, best = a;
  }
  return best;
}

/* How many vectors of columns a block has, side by side: the pieces of rows that it reads are longer than a line of the
   cache (64 columns of 16384 numbers of 8 bytes took 6.9 ms with four vectors, 15.7 with one), but each thread has
   blocks of its own. */
static int64_t vectors_of_columns(const nvf_fusion *k, int columns, int64_t width) {
  enum { VECTORS = 4, MOST = 2 << 20 }; /* MOST: bytes of a block's points */
  int64_t n = k->axis.at[columns].n, bytes = 2 * widest_of(k) * k->transforms->points * width, vectors = VECTORS;
  while (vectors > 1 && (n < 2 * vectors * width * k->graph->caps->cores || vectors * bytes > MOST)) vectors /= 2;
  return vectors;
}

/* ---- the tiling */
nvf_tiling *nvf_tiling_transform(nvf_fusion *k) {
  nvb_arena *a = k->graph->arena;
  const nvf_transforms *t = k->transforms;
  const nvf_passes *p = &t->passes;
  nvf_tiling *s = NVB_NEW(a, nvf_tiling);
  int cpu = k->graph->caps->kind == NVB_CPU;
  s->at = NVB_NEWN(a, nvf_placement, k->axis.n + 1);
  s->lane = s->transposed = s->tma_store = -1;
  s->width = k->graph->caps->width * 4 / widest_of(k);
  s->at[t->axis].tile = s->at[t->from].tile = t->points;
  int columns = columns_of(k, cpu ? s->width : 2);
  int64_t along = cpu && columns < 0 ? lanes_along(p, s->width) : 0, rows = 1;
  int64_t vectors = !cpu || columns < 0 ? 1 : vectors_of_columns(k, columns, s->width);
  s->batch = columns >= 0 ? columns : nvf_longest_grid(k, s);
  /* The pass in the middle keeps the lanes of the one before it, so that the exchange after it, not both, moves lanes:
     from lanes to the items of the next pass, which registers can do. */
  s->turns = along && p->n == 3;
  if (s->turns) place_pass_cpu(s, p, 1, NVF_BACKWARDS, along);
  for (int pass = 0; pass < p->n && cpu; pass++) {
    place_pass_cpu(s, p, pass, pass, along);
    if (s->batch < 0 || along) continue;
    nvf_digit_add(&s->several[pass], 'l', s->width, 0);
    nvf_digit_add(&s->several[pass], 'I', vectors, 0);
    rows = vectors * s->width;
  }
  if (!cpu) rows = place_gpu(k, s, columns < 0 ? 0 : columns_of_block(k, columns));
  if (rows > 1) {
    s->at[s->batch] = (nvf_placement){ .tile = rows, .tiled = 1 };
    if (columns < 0) s->order[s->norder++] = s->batch;
  }
  s->order[s->norder++] = t->axis;
  if (t->from != t->axis) s->order[s->norder++] = t->from;
  if (columns >= 0) s->order[s->norder++] = s->batch;
  return s;
}
