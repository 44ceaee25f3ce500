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

int nvd_fft_lanes(const nvd_fft *f, int64_t rows) {
  enum { SHORT = 8, MOST = 64 << 10 }; /* vectors of a short row; bytes of a plane of rows that take turns */
  int lanes = nvd_fft_code_of(f->wide)->lanes;
  int64_t vectors = f->direct.n / lanes, bytes = f->direct.n * lanes * (f->wide ? 8 : 4);
  if (!fills_vectors(f, lanes)) return lanes;
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

#define READ(T, S, suffix) \
  static void read_##suffix(nvd_planes x, parts p, int64_t n, int64_t at, int64_t lanes) { \
    T *restrict re = (T *)x.re + at, *restrict im = (T *)x.im + at; \
    const S *a = (const S *)(const void *)p.re, *b = (const S *)(const void *)p.im; \
    for (int64_t j = 0; j < n; j++) { \
      re[j * lanes] = (T)a[j * p.step]; \
      im[j * lanes] = b ? (T)b[j * p.step] : 0; \
    } \
  }
READ(float, float, 32)
READ(double, float, widened)
READ(double, double, 64)
#undef READ

/* Writes n elements; real: only the real parts. */
#define WRITE(T, S, suffix) \
  static void write_##suffix(nvd_planes x, char *to, int real, int64_t n, int64_t at, int64_t lanes) { \
    const T *restrict re = (const T *)x.re + at, *restrict im = (const T *)x.im + at; \
    S *out = (S *)(void *)to; \
    for (int64_t j = 0; real && j < n; j++) out[j] = (S)re[j * lanes]; \
    for (int64_t j = 0; !real && j < n; j++) out[2 * j] = (S)re[j * lanes], out[2 * j + 1] = (S)im[j * lanes]; \
  }
WRITE(float, float, 32)
WRITE(double, float, narrowed)
WRITE(double, double, 64)
#undef WRITE

static void read_row(const nvd_fft *f, const nvd_fft_rows *r, nvd_planes x, parts p, int64_t n, int64_t at) {
  if (r->f64) read_64(x, p, n, at, r->lanes);
  else if (f->wide) read_widened(x, p, n, at, r->lanes);
  else read_32(x, p, n, at, r->lanes);
}

static void write_row(const nvd_fft *f, const nvd_fft_rows *r, nvd_planes x, char *to, int real, int64_t n,
                      int64_t at) {
  if (r->f64) write_64(x, to, real, n, at, r->lanes);
  else if (f->wide) write_narrowed(x, to, real, n, at, r->lanes);
  else write_32(x, to, real, n, at, r->lanes);
}

/* Reads the rows; lanes beyond the last one repeat it. A real row of even length is read as pairs. */
static void read_rows(const nvd_fft_code *code, const nvd_fft *f, const nvd_fft_rows *r, nvd_planes x) {
  int64_t size = r->f64 ? 8 : 4, apart = r->stride * size;
  int64_t n = r->kind == NVG_DFT_TO_REAL ? f->n / 2 + 1 : f->points;
  int packed = r->stride == 1 && f->wide == r->f64, real = r->kind == NVG_DFT_REAL && !f->split;
  const char *from[NVD_FFT_LANES];
  for (int b = 0; b < r->lanes; b++) from[b] = r->from[b < r->count ? b : r->count - 1];
  if (packed) (real ? code->read_real : code->read)(x, from, n, r->lanes);
  for (int b = 0; b < r->lanes && !packed; b++) {
    parts p = { from[b], from[b] + size, 2 * r->stride };
    if (real) p = (parts){ from[b], 0, r->stride };
    else if (r->kind == NVG_DFT_REAL) p.im = from[b] + apart;
    read_row(f, r, x, p, n, b);
  }
}

/* A real result of even length is written as pairs. */
static void write_rows(const nvd_fft_code *code, const nvd_fft *f, const nvd_fft_rows *r, nvd_planes x) {
  int real = r->kind == NVG_DFT_TO_REAL && !f->split, packed = f->wide == r->f64 && r->count == r->lanes;
  int64_t n = r->kind == NVG_DFT_REAL ? f->n / 2 + 1 : f->points;
  if (packed) (real ? code->write_real : code->write)(x, r->to, n, r->lanes);
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

/* The transform as a convolution with a chirp; inside it all numbers are doubles. */
static nvd_planes convolve(const nvd_fft_code *code, const nvd_fft *f, nvd_planes x, nvd_planes y, int64_t lanes) {
  int64_t n = f->points, m = f->direct.n;
  code->scale(x, f->chirp, n, lanes);
  memset((double *)x.re + n * lanes, 0, sizeof(double) * (size_t)((m - n) * lanes));
  memset((double *)x.im + n * lanes, 0, sizeof(double) * (size_t)((m - n) * lanes));
  nvd_planes spectrum = nvd_fft_transform(code, &f->direct, x, y, lanes);
  nvd_planes spare = spectrum.re == x.re ? y : x;
  code->scale(spectrum, f->filter, m, lanes);
  nvd_planes r = nvd_fft_inverse(code, &f->direct, spectrum, spare, lanes);
  code->scale(r, f->chirp, n, lanes);
  return r;
}

static nvd_planes transform(const nvd_fft_code *code, const nvd_fft *f, nvd_planes x, nvd_planes y, int backwards,
                            int64_t lanes) {
  nvd_planes a = backwards ? (nvd_planes){ x.im, x.re } : x, b = backwards ? (nvd_planes){ y.im, y.re } : y;
  nvd_planes r = f->chirp ? convolve(code, f, a, b, lanes) : nvd_fft_transform(code, &f->direct, a, b, lanes);
  return backwards ? (nvd_planes){ r.im, r.re } : r;
}

void nvd_fft_run(const nvd_fft *f, const nvd_fft_rows *r, void *scratch) {
  int64_t bytes = plane_of(f, r->lanes), lanes = r->lanes;
  char *at = scratch;
  nvd_planes x = { at, at + bytes }, y = { at + 2 * bytes, at + 3 * bytes };
  const nvd_fft_code *code = nvd_fft_code_of(f->wide);
  int to_real = r->kind == NVG_DFT_TO_REAL, backwards = to_real || r->kind == NVG_DFT_INVERSE;
  read_rows(code, f, r, x);
  if (to_real && f->split) {
    code->join(x, y, f->split, f->n, lanes);
    nvd_planes spare = x;
    x = y, y = spare;
  } else if (to_real) f->wide ? mirror_64(x, f->n, lanes) : mirror_32(x, f->n, lanes);
  nvd_planes result = transform(code, f, x, y, backwards, lanes);
  if (r->kind == NVG_DFT_REAL && f->split) {
    nvd_planes spare = result.re == x.re ? y : x;
    code->split(result, spare, f->split, f->n, lanes);
    result = spare;
  }
  write_rows(code, f, r, result);
}
