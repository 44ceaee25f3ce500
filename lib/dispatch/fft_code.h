/* The arithmetic of Fourier transforms, on planes: arrays of real and of imaginary parts, where element j of `lanes`
   transforms lies at j lanes. One instance for each dtype and vector width; all give the same bits. Private to
   dispatch. */
#ifndef NVM_DISPATCH_FFT_CODE_H
#define NVM_DISPATCH_FFT_CODE_H
#include "dispatch/fft.h"

typedef struct nvd_planes { void *re, *im; } nvd_planes;

/* Part number `at` of `of`, which threads do at once; of rows that are transformed together there is one part. Each
   has a vector or more. */
typedef struct nvd_part { int64_t at, of; } nvd_part;

typedef struct nvd_fft_code {
  int lanes; /* of a vector */
  void (*pass)(const nvd_pass *p, nvd_planes x, nvd_planes y, int64_t lanes, nvd_part part);
  /* x times f, elementwise, for n elements: f are planes of n factors without lanes */
  void (*scale)(nvd_planes x, const void *f, int64_t n, int64_t lanes, nvd_part part);
  /* from the complex transform of n / 2 points to elements 0 ... n / 2 of the real one, and back (not an inverse: both
     are unscaled) */
  void (*split)(nvd_planes z, nvd_planes x, const void *factors, int64_t n, int64_t lanes, nvd_part part);
  void (*join)(nvd_planes x, nvd_planes z, const void *factors, int64_t n, int64_t lanes, nvd_part part);
  /* from rows of n packed complex numbers of this dtype, one for each lane, and to them; the same of real numbers,
     whose imaginary parts are zeros */
  void (*read)(nvd_planes x, const char *const *from, int64_t n, int64_t lanes, nvd_part part);
  void (*write)(nvd_planes x, char *const *to, int64_t n, int64_t lanes, nvd_part part);
  void (*read_real)(nvd_planes x, const char *const *from, int64_t n, int64_t lanes, nvd_part part);
  void (*write_real)(nvd_planes x, char *const *to, int64_t n, int64_t lanes, nvd_part part);
  /* of one transform of two passes or more, each with the butterflies of a vector: what reads or writes the packed
     complex numbers of a row is done in one go with the first pass, the last one (backwards: with real and imaginary
     parts exchanged), `split` or `join` */
  void (*first)(const nvd_pass *p, const char *from, nvd_planes y, nvd_part part);
  void (*last)(const nvd_pass *p, nvd_planes x, char *to, int backwards, nvd_part part);
  void (*split_row)(nvd_planes z, char *to, const void *factors, int64_t n, nvd_part part);
  void (*join_row)(const char *from, nvd_planes z, const void *factors, int64_t n, nvd_part part);
} nvd_fft_code;
const nvd_fft_code *nvd_fft_code_of(int wide);
const nvd_fft_code *nvd_fft_code_f32(void), *nvd_fft_code_f64(void);
/* The instance for doubles that has the shortest vectors: for one transform whose passes may have fewer butterflies
   than a vector of nvd_fft_code_of has lanes. */
const nvd_fft_code *nvd_fft_code_of_few(void);
/* Who computes: how many transforms at once, or, of one, how many threads share its passes. */
typedef struct nvd_fft_team { const nvd_fft_code *code; int64_t lanes; int threads; } nvd_fft_team;
/* Runs all passes from x, alternating between it and y. Returns the one that has the result. */
nvd_planes nvd_fft_transform(const nvd_fft_team *t, const nvd_passes *p, nvd_planes x, nvd_planes y);
/* The same of passes [lo, hi) */
nvd_planes nvd_fft_some(const nvd_fft_team *t, const nvd_passes *p, int lo, int hi, nvd_planes x, nvd_planes y);
/* The inverse: the transform with real and imaginary parts exchanged. */
nvd_planes nvd_fft_inverse(const nvd_fft_team *t, const nvd_passes *p, nvd_planes x, nvd_planes y);
/* The other functions of the code, done by the team */
void nvd_fft_scale(const nvd_fft_team *t, nvd_planes x, const void *f, int64_t n);
void nvd_fft_split(const nvd_fft_team *t, nvd_planes z, nvd_planes x, const void *factors, int64_t n);
void nvd_fft_join(const nvd_fft_team *t, nvd_planes x, nvd_planes z, const void *factors, int64_t n);
void nvd_fft_read(const nvd_fft_team *t, nvd_planes x, const char *const *from, int64_t n, int real);
void nvd_fft_write(const nvd_fft_team *t, nvd_planes x, char *const *to, int64_t n, int real);
void nvd_fft_first(const nvd_fft_team *t, const nvd_pass *p, const char *from, nvd_planes y);
void nvd_fft_last(const nvd_fft_team *t, const nvd_pass *p, nvd_planes x, char *to, int backwards);
void nvd_fft_split_row(const nvd_fft_team *t, nvd_planes z, char *to, const void *factors, int64_t n);
void nvd_fft_join_row(const nvd_fft_team *t, const char *from, nvd_planes z, const void *factors, int64_t n);
#endif
