/* Compiles and launches the kernel of matrix_moves.cu. Decides how many blocks a move has; the code of a dtype is
   compiled once, stays loaded, and is kept in the disk cache. */
#include "dispatch/solve/matrix_moves.h"
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/store.h"
#include "codegen/cuda/cuda.h"
#include "frag/dtype.h"

extern const char nvd_matrix_moves_text[];
enum { THREADS = 256, TILE = 32, MOST = 1 << 20 };
static const char title[] = "matrix moves";

static const char *source_of(nvb_arena *a, nvm_dtype type) {
  nvb_text t = { .arena = a };
  nvb_print(&t, "typedef %s real;\n#define PARTS %d\n%s", nvg_real_of(type) == NVM_F32 ? "float" : "double",
            nvg_parts(type), nvd_matrix_moves_text);
  return nvb_text_get(&t);
}

static int load_function(void **function, nvd_device *d, const void *cubin) {
  void *module = NULL;
  int entered = nvd_enter(d), error = nvd_cu.cuModuleLoadData(&module, cubin);
  error = error ? error : nvd_cu.cuModuleGetFunction(function, module, "nvm_kernel");
  nvd_leave(entered);
  return nvd_device_status(d, error, title);
}

typedef struct request { void **function; nvd_device *device; nvm_dtype type; } request;
static void compile_moves(nvb_arena *a, void *arg) {
  request *r = arg;
  const char *source = source_of(a, r->type);
  nvc_cuda_target target = { r->device->arch, 0, 0 };
  nvb_hash key = nvc_cubin_key(nvb_hash_bytes(source, strlen(source)), &target);
  nvc_cubin c = { 0 };
  int stored = nvb_store_get("cubin", key, &c.bytes, &c.n);
  int status = stored ? NVM_OK : nvc_nvrtc_compile(&c, source, title, r->device->arch);
  if (!status && !stored) nvb_store_put("cubin", key, c.bytes, c.n);
  status = status ? status : load_function(r->function, r->device, c.bytes);
  nvb_free(c.bytes);
  if (status) nvb_throw(a, status, "%s", nvb_message());
}

int nvd_moves_get(void **function, nvd_device *d, nvm_dtype type) {
  static nvb_lock lock = NVB_LOCK(MOVES);
  static void *made[NVD_MAX_DEVICES][4];
  void **at = &made[nvd_device_ordinal(d)][2 * (nvg_parts(type) - 1) + (nvg_real_of(type) == NVM_F64)];
  nvb_lock_take(&lock);
  nvb_arena *a = *at ? NULL : nvb_arena_new();
  int status = *at ? NVM_OK : a ? nvb_protect(a, compile_moves, &(request){ at, d, type }) : nvb_fail_memory();
  nvb_arena_free(a);
  *function = *at;
  nvb_lock_give(&lock);
  return status;
}

static int64_t count_blocks(const nvd_move *j) {
  int64_t tiles = (j->rows + TILE - 1) / TILE * ((j->cols + TILE - 1) / TILE) * j->count, n = j->count;
  switch (j->what) {
  case NVD_TURN:
  case NVD_ADJOIN: return tiles;
  case NVD_TAIL: return n;
  case NVD_COPY: n *= j->rows * j->cols; break;
  case NVD_SCALE: n *= j->rows * j->rows; break;
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
