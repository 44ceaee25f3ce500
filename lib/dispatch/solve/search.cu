// Finds where elements belong in ascending rows, by binary search: a thread for each element. Behind rows.cu, and
// T                   the dtype, of which NaN is the greatest
// RIGHT               whether elements that are equal lie before
enum { THREADS = 256 };
// As search_task of gpu_search.c. n, each: elements of a row, and those that are looked for in it.
struct Task {
  const T *row, *x;
  i64 *to;
  i64 rows, n, each;
  Rows at, of;
};

static __device__ bool lies_before(T a, T x) { return RIGHT ? a <= x || x != x : a < x || (x != x && a == a); }

static __device__ void run_block(const Task &j) {
  i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
  if (i >= j.rows * j.each) return;
  i64 number = i / j.each, at = 0;
  const T *row = j.row + place_of(j.at, number);
  T x = j.x[place_of(j.of, number) + i % j.each * j.of.step];
  for (i64 left = j.n, half; left > 1; left -= half) {
    half = left / 2;
    if (lies_before(row[(at + half - 1) * j.at.step], x)) at += half;
  }
  j.to[i] = at + lies_before(row[at * j.at.step], x);
}
