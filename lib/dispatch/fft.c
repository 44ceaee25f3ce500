/* Transforms a group of rows: brings their elements into planes, runs the passes there, and writes the result. Decides
   whether one row or a vector of rows is transformed at a time, which changes no bit. */
#include "dispatch/fft.h"
#include <string.h>
#include "dispatch/fft_code.h"

/* Whether one row fills vectors: the butterflies of each pass do. */
static int fills_vectors(const nvd_fft *f, int lanes) {
  for (int i = 0; i < f->direct.npass; i++)
    if (f->direct.n / f->direct.pass[i].radix < lanes) return 0;
  return f->direct.npass > 0;
}

/* Whether a pass over one row stores single numbers, since neighbouring ones come from different vectors. */
static int scatters(const nvd_fft *f, int lanes) {
  for (int i = 0; i < f->direct.npass; i++) {
    const nvd_pass *p = &f->direct.pass[i];
    int halves = (p->radix & (p->radix - 1)) == 0 && (p->s == 1 || p->s == 8);
    if (p->s < lanes && !halves) return 1;
  }
  return 0;
}

/* Whether the lanes of a pass can only be rows. */
static int needs_rows(const nvd_fft *f) {
  for (int i = 0; i < f->direct.npass; i++)
    if (f->direct.pass[i].radix > NVD_UNROLLED) return 1;
  return 0;
}

int nvd_fft_lanes(const nvd_fft *f, int64_t rows) {
  enum { SHORT = 8, MOST = 64 << 10 }; /* vectors of a short row; bytes of a plane of rows that take turns */
  int lanes = nvd_fft_code_of(f->wide)->lanes;
  int64_t vectors = f->direct.n / lanes, bytes = f->direct.n * lanes * (f->wide ? 8 : 4);
  if (!fills_vectors(f, lanes) || needs_rows(f)) return lanes;
  int faster = vectors <= SHORT || (scatters(f, lanes) && bytes <= MOST);
  return faster && 2 * rows >= lanes ? lanes : 1;
}

/* Elements of a plane: of the convolution, or of all that a real transform has. */
static int64_t plane_of(const nvd_fft *f, int lanes) {
  int64_t most = f->direct.n > f->points + 1 ? f->direct.n : f->points + 1;
  return (most * lanes * (f->wide ? 8 : 4) + 63) / 64 * 64;
}
int64_t nvd_fft_workspace(const nvd_fft *f, int lanes) { return 4 * plane_of(f, lanes); }

/* ---- rows and planes. Elements of an operand: real and imaginary parts `step` numbers apart. */
typedef struct parts { const char *re, *im; int64_t step; } parts;

#define READ(T, suffix) \
  static void read_##suffix(nvd_planes x, parts p, int64_t n, int64_t at, int64_t lanes) { \
    T *restrict re = (T *)x.re + at, *restrict im = (T *)x.im + at; \
    const T *a = (const T *)(const void *)p.re, *b = (const T *)(const void *)p.im; \
    for (int64_t j = 0; j < n; j++) { \
      re[j * lanes] = a[j * p.step]; \
      im[j * lanes] = b ? b[j * p.step] : 0; \
    } \
  }
READ(float, 32)
READ(double, 64)
#undef READ

/* Writes n elements; real: only the real parts. */
#define WRITE(T, suffix) \
  static void write_##suffix(nvd_planes x, char *to, int real, int64_t n, int64_t at, int64_t lanes) { \
    const T *restrict re = (const T *)x.re + at, *restrict im = (const T *)x.im + at; \
    T *out = (T *)(void *)to; \
    for (int64_t j = 0; real && j < n; j++) out[j] = re[j * lanes]; \
    for (int64_t j = 0; !real && j < n; j++) out[2 * j] = re[j * lanes], out[2 * j + 1] = im[j * lanes]; \
  }
WRITE(float, 32)
WRITE(double, 64)
#undef WRITE

static void read_row(const nvd_fft *f, const nvd_fft_rows *r, nvd_planes x, parts p, int64_t n, int64_t at) {
  if (f->wide) read_64(x, p, n, at, r->lanes);
  else read_32(x, p, n, at, r->lanes);
}

static void write_row(const nvd_fft *f, const nvd_fft_rows *r, nvd_planes x, char *to, int real, int64_t n,
                      int64_t at) {
  if (f->wide) write_64(x, to, real, n, at, r->lanes);
  else write_32(x, to, real, n, at, r->lanes);
}

/* Reads the rows; lanes beyond the last one repeat it. A real row of even length is read as pairs. */
static void read_rows(const nvd_fft_team *team, const nvd_fft *f, const nvd_fft_rows *r, nvd_planes x) {
  int64_t size = f->wide ? 8 : 4, apart = r->stride * size;
  int64_t n = r->kind == NVG_DFT_TO_REAL ? f->n / 2 + 1 : f->points;
  int packed = r->stride == 1, real = r->kind == NVG_DFT_REAL && !f->split;
  const char *from[NVD_FFT_LANES];
  for (int b = 0; b < r->lanes; b++) from[b] = r->from[b < r->count ? b : r->count - 1];
  if (packed) nvd_fft_read(team, x, from, n, real);
  for (int b = 0; b < r->lanes && !packed; b++) {
    parts p = { from[b], from[b] + size, 2 * r->stride };
    if (real) p = (parts){ from[b], 0, r->stride };
    else if (r->kind == NVG_DFT_REAL) p.im = from[b] + apart;
    read_row(f, r, x, p, n, b);
  }
}

/* A real result of even length is written as pairs. */
static void write_rows(const nvd_fft_team *team, const nvd_fft *f, const nvd_fft_rows *r, nvd_planes x) {
  int real = r->kind == NVG_DFT_TO_REAL && !f->split, packed = r->count == r->lanes;
  int64_t n = r->kind == NVG_DFT_REAL ? f->n / 2 + 1 : f->points;
  if (packed) nvd_fft_write(team, x, r->to, n, real);
  for (int b = 0; b < r->count && !packed; b++) write_row(f, r, x, r->to[b], real, n, b);
}

/* ---- transforms of planes */
/* The other half of a spectrum of odd length: element n - k is the conjugate of element k, and element 0 is real. */
#define MIRROR(T, suffix) \
  static void mirror_##suffix(nvd_planes x, int64_t n, int64_t lanes) { \
    T *re = x.re, *im = x.im; \
    for (int64_t b = 0; b < lanes; b++) im[b] = 0; \
    for (int64_t k = 1; 2 * k < n; k++) \
      for (int64_t b = 0; b < lanes; b++) { \
        re[(n - k) * lanes + b] = re[k * lanes + b]; \
        im[(n - k) * lanes + b] = -im[k * lanes + b]; \
      } \
  }
MIRROR(float, 32)
MIRROR(double, 64)
#undef MIRROR

/* The transform as a convolution with a chirp. */
static nvd_planes convolve(const nvd_fft_team *team, const nvd_fft *f, nvd_planes x, nvd_planes y) {
  int64_t n = f->points, m = f->direct.n, lanes = team->lanes, size = f->wide ? 8 : 4;
  nvd_fft_scale(team, x, f->chirp, n);
  memset((char *)x.re + n * lanes * size, 0, (size_t)((m - n) * lanes * size));
  memset((char *)x.im + n * lanes * size, 0, (size_t)((m - n) * lanes * size));
  nvd_planes spectrum = nvd_fft_transform(team, &f->direct, x, y);
  nvd_planes spare = spectrum.re == x.re ? y : x;
  nvd_fft_scale(team, spectrum, f->filter, m);
  nvd_planes r = nvd_fft_inverse(team, &f->direct, spectrum, spare);
  nvd_fft_scale(team, r, f->chirp, n);
  return r;
}

static nvd_planes transform(const nvd_fft_team *team, const nvd_fft *f, nvd_planes x, nvd_planes y, int backwards) {
  nvd_planes a = backwards ? (nvd_planes){ x.im, x.re } : x, b = backwards ? (nvd_planes){ y.im, y.re } : y;
  nvd_planes r = f->chirp ? convolve(team, f, a, b) : nvd_fft_transform(team, &f->direct, a, b);
  return backwards ? (nvd_planes){ r.im, r.re } : r;
}

/* Fetches what the next row has, whose first pass reads it in several places at once (8192 x 1024 float32 from memory:
   1.31 times as long as by a pass of its own, 0.90 with this). */
static void prefetch_next(const nvd_fft *f, const nvd_fft_rows *r) {
  enum { LINE = 64, MOST = 16 << 10 };
  int64_t bytes = f->points * (f->wide ? 16 : 8);
  for (int64_t i = 0; r->next && bytes <= MOST && i < bytes; i += LINE) __builtin_prefetch(r->next + i);
}

/* ---- one row, which is read and written by the passes themselves */
static int is_one_row(const nvd_fft *f, const nvd_fft_rows *r) {
  int complex = r->kind == NVG_DFT_FORWARD || r->kind == NVG_DFT_INVERSE;
  return r->lanes == 1 && r->stride == 1 && f->direct.npass > 1 && !f->chirp && (complex || f->split);
}

static void run_row(const nvd_fft_team *team, const nvd_fft *f, const nvd_fft_rows *r, nvd_planes x, nvd_planes y) {
  const nvd_passes *p = &f->direct;
  int real = r->kind == NVG_DFT_REAL, backwards = r->kind == NVG_DFT_TO_REAL || r->kind == NVG_DFT_INVERSE;
  nvd_planes a = backwards ? (nvd_planes){ x.im, x.re } : x, b = backwards ? (nvd_planes){ y.im, y.re } : y;
  if (r->kind == NVG_DFT_TO_REAL) nvd_fft_join_row(team, *r->from, x, f->split, f->n);
  else if (backwards) nvd_fft_read(team, x, r->from, f->points, 0);
  else nvd_fft_first(team, p->pass, *r->from, x);
  prefetch_next(f, r);
  nvd_planes z = nvd_fft_some(team, p, !backwards, p->npass - !real, a, b);
  if (real) nvd_fft_split_row(team, z, *r->to, f->split, f->n);
  else nvd_fft_last(team, &p->pass[p->npass - 1], z, *r->to, backwards);
}

int nvd_fft_is_shared(const nvd_fft *f, int lanes) {
  enum { LONG = 1 << 15 };
  return lanes == 1 && f->direct.n >= LONG;
}

void nvd_fft_run(const nvd_fft *f, const nvd_fft_rows *r, void *scratch) {
  int64_t bytes = plane_of(f, r->lanes), lanes = r->lanes;
  char *at = scratch;
  nvd_planes x = { at, at + bytes }, y = { at + 2 * bytes, at + 3 * bytes };
  const nvd_fft_team team = { nvd_fft_code_of(f->wide), lanes, r->threads };
  int to_real = r->kind == NVG_DFT_TO_REAL, backwards = to_real || r->kind == NVG_DFT_INVERSE;
  if (is_one_row(f, r)) {
    run_row(&team, f, r, x, y);
    return;
  }
  read_rows(&team, f, r, x);
  if (to_real && f->split) {
    nvd_fft_join(&team, x, y, f->split, f->n);
    nvd_planes spare = x;
    x = y, y = spare;
  } else if (to_real) f->wide ? mirror_64(x, f->n, lanes) : mirror_32(x, f->n, lanes);
  nvd_planes result = transform(&team, f, x, y, backwards);
  if (r->kind == NVG_DFT_REAL && f->split) {
    nvd_planes spare = result.re == x.re ? y : x;
    nvd_fft_split(&team, result, spare, f->split, f->n);
    result = spare;
  }
  write_rows(&team, f, r, result);
}
