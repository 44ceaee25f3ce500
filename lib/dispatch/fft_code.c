/* Transforms by the instances of fft_code.inc: runs all their passes, and inverse ones by exchanging the planes. */
#include "dispatch/fft_code.h"

const nvd_fft_code *nvd_fft_code_of(int wide) { return wide ? nvd_fft_code_f64() : nvd_fft_code_f32(); }

nvd_planes nvd_fft_transform(const nvd_fft_code *code, const nvd_passes *p, nvd_planes x, nvd_planes y, int64_t lanes) {
  for (int i = 0; i < p->npass; i++) {
    nvd_planes from = x;
    code->pass(&p->pass[i], from, y, lanes);
    x = y, y = from;
  }
  return x;
}

nvd_planes nvd_fft_inverse(const nvd_fft_code *code, const nvd_passes *p, nvd_planes x, nvd_planes y, int64_t lanes) {
  nvd_planes swapped = { x.im, x.re }, spare = { y.im, y.re };
  nvd_planes r = nvd_fft_transform(code, p, swapped, spare, lanes);
  return (nvd_planes){ r.im, r.re };
}
