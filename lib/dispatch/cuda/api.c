/* Opens the CUDA runtime and driver and fills in the table of their functions. Decides which versions are too old;
   never calls anything that creates a context. */
#include "dispatch/cuda/api.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "base/err.h"
#include "base/library.h"
#include "base/lock.h"
#include "base/settings.h"

enum { OLDEST = 12000 };

nvd_cuda nvd_cu;
volatile int nvd_cuda_forked;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int opened, ready; /* the status of opening; 1 once it has succeeded */
static int ndevice;
static char why[1024];

static void note_fork(void) { nvd_cuda_forked |= ready; }
NVB_AT_FORK(.in_child = note_fork);

/* Looks up the driver's entry points of version 12.0. Runtimes before 12.5 cannot look up by version and return those
   of their own version, which are the same functions. */
static int open_driver(void) {
  static const struct {
    const char *name;
    void (**to)(void);
  } row[] = {
#define ROW(name, args) { #name, (void (**)(void))&nvd_cu.name },
    NVD_DRIVER(ROW)
#undef ROW
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    void *p = NULL;
    int found = 0, error = nvd_cu.cudaGetDriverEntryPointByVersion
                               ? nvd_cu.cudaGetDriverEntryPointByVersion(row[i].name, &p, OLDEST, 0, &found)
                               : nvd_cu.cudaGetDriverEntryPoint(row[i].name, &p, 0, &found);
    if (error || !p) return nvb_fail(NVM_ERR_UNSUPPORTED, "[cuda] the NVIDIA driver has no %s", row[i].name);
    memcpy(row[i].to, &p, sizeof p);
  }
  return NVM_OK;
}

static int open_runtime(void) {
  static const char *const soname[] = { "libcudart.so.13", "libcudart.so.12", NULL };
  static const nvb_symbol symbol[] = {
#define ROW(name, args) { #name, (void (**)(void))&nvd_cu.name, 0 },
    NVD_RUNTIME(ROW)
#undef ROW
        { "cudaGetErrorString", (void (**)(void))&nvd_cu.cudaGetErrorString, 0 },
    { "cudaGetDriverEntryPoint", (void (**)(void))&nvd_cu.cudaGetDriverEntryPoint, 1 },
    { "cudaGetDriverEntryPointByVersion", (void (**)(void))&nvd_cu.cudaGetDriverEntryPointByVersion, 1 },
  };
  void *handle = nvb_library_open(soname);
  if (!handle) return nvb_status();
  int status = nvb_library_symbols(handle, "the CUDA runtime", symbol, (int)(sizeof symbol / sizeof *symbol));
  if (!status && !nvd_cu.cudaGetDriverEntryPointByVersion && !nvd_cu.cudaGetDriverEntryPoint)
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[cuda] the CUDA runtime has no cudaGetDriverEntryPoint");
  return status;
}

/* Has the kernel, or could it load, a driver of NVIDIA's? To look for its library through some 20 folders takes longer
   than a small program runs. The files are those of a driver that is loaded, of one that the library loads when it
   starts, of WSL, and of Tegra. */
static int may_have_driver(void) {
  static const char *const file[] = { "/dev/nvidiactl",     "/proc/driver/nvidia",
                                      "/sys/module/nvidia", "/usr/bin/nvidia-modprobe",
                                      "/dev/dxg",           "/dev/nvmap" };
  for (size_t i = 0; i < sizeof file / sizeof *file; i++)
    if (!access(file[i], F_OK)) return 1;
  return 0;
}
/* Is there a driver? Without one the runtime, whose search and start take milliseconds, is of no use. A folder that the
   user names is searched in any case. */
static int find_driver(void) {
  if (*nvb_str(NVB_CUDA_DIR) || (may_have_driver() && nvb_library_open_system("libcuda.so.1"))) return NVM_OK;
  return nvb_fail(NVM_ERR_UNSUPPORTED, "[cuda] there is no NVIDIA driver (libcuda.so.1)");
}

static int open_all(void) {
  int runtime = 0, driver = 0, status = find_driver();
  if (!status) status = open_runtime();
  if (status) return status;
  if (nvd_cu.cudaDriverGetVersion(&driver) || !driver)
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[cuda] the CUDA runtime is here, but no NVIDIA driver (libcuda.so.1)");
  nvd_cu.cudaRuntimeGetVersion(&runtime);
  if (driver < OLDEST)
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[cuda] the NVIDIA driver is for CUDA %d.%d; 12.0 is needed", driver / 1000,
                    driver % 1000 / 10);
  int error = nvd_cu.cudaGetDeviceCount(&ndevice);
  if (error)
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[cuda] no GPU can be used: %s (runtime %d.%d, driver %d.%d)",
                    nvd_cu.cudaGetErrorString(error), runtime / 1000, runtime % 1000 / 10, driver / 1000,
                    driver % 1000 / 10);
  return ndevice ? open_driver() : nvb_fail(NVM_ERR_UNSUPPORTED, "[cuda] there is no GPU");
}

static void open_once(void) {
  opened = open_all();
  if (!opened && !nvb_fork_seen()) opened = nvb_fail_memory();
  if (opened) strcpy(why, nvb_message());
  ready = !opened;
}

int nvd_cuda_open(void) {
  pthread_once(&once, open_once);
  if (nvd_cuda_forked)
    return nvb_fail(NVM_ERR_DEVICE, "[cuda] this process was forked after a GPU had been used, and CUDA cannot go on "
                                    "in a child");
  return opened ? nvb_fail(opened, "%s", why) : NVM_OK;
}

int nvd_cuda_devices(void) { return ndevice; }

int nvd_cuda_status(int error, const char *what) {
  if (!error) return NVM_OK;
  nvd_cu.cudaGetLastError(); /* clears the error, so that other users of CUDA in the process do not see it */
  return nvb_fail(error == CUDA_OUT_OF_MEMORY ? NVM_ERR_MEMORY : NVM_ERR_DEVICE, "[%s] %s (%d)", what,
                  nvd_cu.cudaGetErrorString(error), error);
}
