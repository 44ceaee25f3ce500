/* Turns a plan into a program (code, buffers, who runs each GEMM) and runs programs on the CPU or a GPU. Dispatch never
   decides what a step computes: the plan does. */
#ifndef NVM_DISPATCH_DISPATCH_H
#define NVM_DISPATCH_DISPATCH_H
#include "codegen/codegen.h"
#include "fusion/plan.h"

/* ---- buffers: memory from a caching allocator, counted, aligned to 64 bytes (to 2 MiB, with huge pages, from 4 MiB
   up) */
typedef struct nvd_buf {
  _Atomic int refs;
  size_t bytes, cap; /* bytes: requested; cap: allocated, which is what the memory counters count; 0: a few bytes */
  char *data;
  void (*release)(void *owner); /* for foreign memory: called when the last reference is released */
  void *owner;
  struct nvd_device *device; /* NULL: host memory; else `data` is an address on this device (cuda/device.h) */
} nvd_buf;
nvd_buf *nvd_buf_new(size_t bytes); /* NULL with a message if memory runs out or NVM_MEM_LIMIT would be exceeded */
/* Memory for a few bytes, at most NVD_FEW, from the C heap: aligned to 16 bytes, counted by no counter and never
   cached. At `beside` the caller has so many bytes more, which live as long as the buffer. */
enum { NVD_FEW = 64 };
nvd_buf *nvd_buf_few(size_t bytes, void **beside, size_t more);
nvd_buf *nvd_buf_wrap(void *data, size_t bytes, void (*release)(void *owner), void *owner); /* foreign memory */
nvd_buf *nvd_buf_ref(nvd_buf *b);
void nvd_buf_unref(nvd_buf *b);
int64_t nvd_mem_used(void);
int64_t nvd_mem_peak(void);
void nvd_mem_reset_peak(void);
void nvd_mem_trim(void);
int64_t nvd_mem_kept(void); /* bytes of freed blocks that are cached for reuse */

/* ---- programs */
typedef struct nvd_program nvd_program;
/* Which solver runs a GEMM step. solver: its name; "" means the first solver that supports the step, "kernel" the
   step's generated kernel. config: the solver's own configuration, which is valid only on such a device and with such
   library versions. All zeros let the solver decide. */
typedef struct nvd_solver_choice { char solver[16]; unsigned char config[64]; } nvd_solver_choice;
/* State that one planning passes through its calls of nvd_prepare; all zeros before the first call. */
typedef struct nvd_terms {
  int optimized; /* GPU kernels get their optimised code at once, as timing requires */
  /* GPU kernels that neither this process nor the store has are compiled in the background, and the program cannot run
     before nvd_is_ready says so */
  int later;
  int stored;  /* GPU kernels that neither this process nor the store has are not compiled: NVM_ERR_UNSUPPORTED */
  int missing; /* out: that was the reason */
  int any;     /* accept kernels that are long or that spill registers: no better plan follows */
  int step;    /* out: the step that NVM_ERR_UNSUPPORTED is about, for the planner's veto */
  /* number of rejected kernels; if a kernel comes back it is accepted, since the planner has no other */
  int nrejected;
  nvb_hash rejected[NVF_VETOES];
} nvd_terms;
/* Makes a program: obtains code and memory sizes, and keeps none of the plan's arenas. device NULL: the CPU; the plan
   was made for that device's capabilities. choice: one for each step, or NULL; a choice that no solver can follow any
   more is ignored. terms NULL: this is the planning's only call. Returns a status. */
int nvd_prepare(nvd_program **out, const nvf_plan *p, struct nvd_device *device, const nvd_solver_choice *choice,
                nvd_terms *terms);
/* Makes a CPU program for other sizes: of a plan that was bound, with the kernels of the program that the plan it was
   bound from has. Returns a status. */
int nvd_prepare_bound(nvd_program **out, const nvf_plan *p, const nvd_program *from);
/* Tells whether the solvers would veto a step or the checker its kernel. Returns the status that nvd_prepare would, but
   makes nothing. */
int nvd_prepare_dry(const nvf_plan *p, struct nvd_device *device, const nvd_solver_choice *choice, nvd_terms *terms);
/* Runs a CPU program. leaf[i]: address of leaf slot i; out[i]: address of output i (packed, row-major). Returns a
   status. Thread-safe. */
int nvd_run(nvd_program *p, char *const *leaf, char *const *out);
/* Runs a GPU program on the thread's current stream: launches it and does not wait. An operand has its device buffer
   and the address of its first element; a scalar that the plan takes by value has buf NULL and data in host memory.
   Returns a status. */
typedef struct nvd_operand { nvd_buf *buf; char *data; } nvd_operand;
int nvd_run_on(nvd_program *p, const nvd_operand *leaf, const nvd_operand *out);
/* Measures `runs` consecutive runs by CUDA events, in ns. flush (NULL: none): a buffer that is written before each run
   to empty the caches; its time is not counted. Waits at most `limit` ns for all runs; after that *hung is set and the
   device is lost. Returns a status. */
int nvd_time_on(double *ns, nvd_program *p, const nvd_operand *leaf, const nvd_operand *out, int runs, nvd_buf *flush,
                double limit, int *hung);
/* Can programs be timed now? 0 if the thread's stream is being captured or the device is lost. */
int nvd_may_time(struct nvd_device *d);
/* Returns the index of the first element that differs, where two NaN count as equal; -1 if there is none. */
int64_t nvd_first_difference(const char *a, const char *b, int64_t bytes, nvm_dtype type);
/* Has every kernel its code? Not at once if it was prepared with nvd_terms.later. While the caller captures the
   stream, the call waits for what is being compiled. */
int nvd_is_ready(nvd_program *p);
/* Queues what nvd_prepare left out because many kernels were waiting to be compiled: the program has come again. */
void nvd_compile(nvd_program *p);
void nvd_warm_wait(void); /* waits for the CPU kernels that are compiled in the background */
/* 1 if code that arrived after preparing spills registers, so that another plan may be faster, or will not arrive. */
int nvd_outdated(nvd_program *p);
void nvd_program_free(nvd_program *p);
/* Heap bytes of the program, including the interpreted form of those kernels that it was the first to request. */
int64_t nvd_program_bytes(const nvd_program *p);

/* ---- solvers (solve/solve.h): who can run the GEMM steps */
typedef struct nvd_solver_option {
  nvd_solver_choice choice;
  int64_t workspace; /* bytes of device memory */
  char what[64];     /* readable name */
} nvd_solver_option;
/* Lists the ways to run step i, each solver's best first, the generated kernel last. Returns their number. */
int nvd_solver_options(nvd_solver_option *out, int most, const nvf_plan *p, int i, struct nvd_device *device);
/* Is the chosen solver available for step i, which may be no GEMM, and does it support the step? */
int nvd_solver_follows(const nvf_plan *p, int i, struct nvd_device *device, const nvd_solver_choice *choice);
/* Prints a line for each GEMM step: who runs it, and, if nothing was chosen, why the other solvers do not. */
void nvd_explain(nvb_text *t, const nvf_plan *p, struct nvd_device *device, const nvd_solver_choice *choice);
/* for nvf_options: the union over the libraries found that NVM_SOLVERS allows */
int nvd_capabilities(nvb_devkind device);
const char *nvd_openblas_line(void); /* for info: its version, or what is missing without it */
const char *nvd_cublaslt_line(void);
const char *nvd_cufft_line(void);
const char *nvd_cusolver_line(void);
int nvd_cusolver_usable(void);    /* 0 with a message: it is missing, or NVM_SOLVERS leaves it out */
int nvd_does_matrices(nvg_op op); /* is it a routine of matrices that a GPU does? */

int64_t nvd_kernels_run(void); /* kernels that this process has run, interpreted or native */
/* GPU kernels compiled; baseline and optimised code of one kernel count once */
int64_t nvd_gpu_kernels_compiled(void);
int64_t nvd_bytes_copied(void);   /* between the host and GPUs, or two GPUs */
int64_t nvd_kernels_loaded(void); /* kernels whose code came from the disk store */
int nvd_native_missed(void);      /* 1 if a CPU kernel should have been compiled but LLVM was not available */
void nvd_code_trim(void);         /* frees the kernels that no program holds */
#endif
