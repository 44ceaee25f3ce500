/* Launches the kernel of matrix_moves.cu, which is compiled once for each dtype. Decides how many blocks a move has. */
#include "dispatch/solve/matrix_moves.h"
#include "base/text.h"
#include "dispatch/solve/own_kernel.h"
#include "frag/dtype.h"

extern const char nvd_matrix_moves_text[];
enum { THREADS = 256, TILE = 32, MOST = 1 << 20 };

static const char *source_of(nvb_arena *a, nvm_dtype type) {
  nvb_text t = { .arena = a };
  nvb_print(&t, "typedef %s real;\n#define PARTS %d\n%s", nvg_real_of(type) == NVM_F32 ? "float" : "double",
            nvg_parts(type), nvd_matrix_moves_text);
  return nvb_text_get(&t);
}

int nvd_moves_get(nvb_arena *a, void **function, nvd_device *d, nvm_dtype type) {
  return nvd_own_kernel_get(function, d, source_of(a, type), "matrix moves");
}

static int64_t count_blocks(const nvd_move *j) {
  int64_t tiles = (j->rows + TILE - 1) / TILE * ((j->cols + TILE - 1) / TILE) * j->count, n = j->count;
  switch (j->what) {
  case NVD_TURN:
  case NVD_UNIT: return tiles;
  case NVD_TAIL: return n;
  case NVD_COPY: n *= j->rows * j->cols; break;
  case NVD_NOTE:
  case NVD_ADDRESSES: break;
  default: n *= j->rows;
  }
  return (n + THREADS - 1) / THREADS;
}

int nvd_move_run(void *function, const nvd_move *j, void *stream) {
  int64_t blocks = count_blocks(j);
  nvd_move copy = *j;
  void *param[1] = { &copy };
  nvd_launch at = { .grid = { (unsigned)(blocks < MOST ? blocks : MOST), 1, 1 },
                    .block = { THREADS, 1, 1 },
                    .stream = stream };
  return blocks ? nvd_cu.cuLaunchKernelEx(&at, function, param, NULL) : 0;
}
