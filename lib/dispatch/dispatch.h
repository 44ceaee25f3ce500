/* Who runs it, where: a plan becomes a program (code, buffers), a program runs on pointers. */
#ifndef NVM_DISPATCH_DISPATCH_H
#define NVM_DISPATCH_DISPATCH_H
#include "codegen/codegen.h"
#include "fusion/plan.h"

/* ---- buffers: 64-byte aligned (2 MiB with huge pages from 4 MiB up), from a caching allocator, counted */
typedef struct nvd_buf {
  _Atomic int refs;
  size_t bytes, cap; /* asked for; there, and what the counters count */
  char *data;
  void (*release)(void *owner); /* foreign memory: called when the last reference goes */
  void *owner;
  struct nvd_device *device; /* NULL: host memory; else `data` is an address of the device (cuda/device.h) */
} nvd_buf;
nvd_buf *nvd_buf_new(size_t bytes); /* NULL with a message: memory, or over NVM_MEM_LIMIT */
nvd_buf *nvd_buf_wrap(void *data, size_t bytes, void (*release)(void *owner), void *owner); /* foreign memory */
nvd_buf *nvd_buf_ref(nvd_buf *b);
void nvd_buf_unref(nvd_buf *b);
int64_t nvd_mem_used(void);
int64_t nvd_mem_peak(void);
void nvd_mem_reset_peak(void);
void nvd_mem_trim(void);
int64_t nvd_mem_kept(void); /* bytes of freed blocks that are kept for reuse */

/* ---- programs */
typedef struct nvd_program nvd_program;
/* Who runs a step that holds a product: a solver by its name ("" is the first one that takes it, "kernel" the step's
   own kernel), and the solver's own words, which mean something to it on such a device and with such versions alone.
   All 0: as it thinks best. */
typedef struct nvd_solver_choice { char solver[16]; unsigned char config[64]; } nvd_solver_choice;
/* What one planning says to its calls of nvd_prepare, and hears from them; all 0 before the first. */
typedef struct nvd_terms {
  int optimized; /* kernels of a device are at once what they will be, as what is timed has to be */
  int any;       /* kernels that are long or spill are taken: nothing better is to come */
  int step;      /* the one that NVM_ERR_UNSUPPORTED is about: a veto */
  int nrejected; /* kernels that were refused; one that comes back is taken: the planner has no other */
  nvb_hash rejected[NVF_VETOES];
} nvd_terms;
/* A status; obtains code and memory sizes; keeps no arena. device NULL: the CPU; the plan was made for its facts.
   choice: one a step, or NULL; one that nobody can follow any more is as if it were not there. terms NULL: this is the
   planning's only call. */
int nvd_prepare(nvd_program **out, const nvf_plan *p, struct nvd_device *device, const nvd_solver_choice *choice,
                nvd_terms *terms);
/* Would solvers refuse a step, or the checker its kernel? As nvd_prepare says it, but nothing is made. */
int nvd_prepare_dry(const nvf_plan *p, struct nvd_device *device, const nvd_solver_choice *choice, nvd_terms *terms);
/* Programs of the CPU. leaf[i]: address of leaf slot i; out[i]: address of output i (packed, row-major). A status.
   Thread-safe. */
int nvd_run(nvd_program *p, char *const *leaf, char *const *out);
/* Programs of a device, on the thread's current stream there: launched, not waited for. A value: its buffer on the
   device and the address of its first element; a scalar that the plan takes by value has buf NULL and lies in host
   memory. A status. */
typedef struct nvd_operand { nvd_buf *buf; char *data; } nvd_operand;
int nvd_run_on(nvd_program *p, const nvd_operand *leaf, const nvd_operand *out);
/* The device's own time, in ns, of so many runs one after the other; flush (NULL: none): a buffer that is written
   before each, so that caches are empty, and not counted. Waits, at most `limit` ns for all of them: then *hung is
   set, and the device is lost. A status. */
int nvd_time_on(double *ns, nvd_program *p, const nvd_operand *leaf, const nvd_operand *out, int runs, nvd_buf *flush,
                double limit, int *hung);
/* 0: not on the thread's stream, which is being captured, or on a device that is lost. */
int nvd_may_time(struct nvd_device *d);
/* The element where they differ first, both NaN counting as equal; -1 if nowhere. */
int64_t nvd_first_difference(const char *a, const char *b, int64_t bytes, nvm_dtype type);
/* 1: code of it that has come since it was prepared is such that another plan may do better. */
int nvd_outdated(nvd_program *p);
void nvd_program_free(nvd_program *p);
/* What it takes of the heap, with those kernels that it was the first to want, as they are interpreted. */
int64_t nvd_program_bytes(const nvd_program *p);

/* ---- solvers (solve/solve.h): what the steps that hold a product may be run by */
typedef struct nvd_candidate {
  nvd_solver_choice choice;
  int64_t workspace; /* bytes of device memory that it needs */
  char what[64];     /* for people */
} nvd_candidate;
/* Those that step i can go by, each solver's in the order of what it expects of them, its own kernel last; their
   number. */
int nvd_solver_candidates(nvd_candidate *out, int most, const nvf_plan *p, int i, struct nvd_device *device);
/* Whether the one that a choice names is there for step i, which need not hold a product, and takes it. */
int nvd_solver_follows(const nvf_plan *p, int i, struct nvd_device *device, const nvd_solver_choice *choice);
/* For people, a line for each step that holds a product: who runs it, and where nothing was chosen why others do
   not. */
void nvd_explain(nvb_text *t, const nvf_plan *p, struct nvd_device *device, const nvd_solver_choice *choice);
int nvd_capabilities(nvb_devkind device); /* for nvf_options: of all libraries there, NVM_SOLVERS permitting */
const char *nvd_openblas_line(void);      /* for info: its version, or what is lost without it */
const char *nvd_cublaslt_line(void);

int64_t nvd_kernels_run(void);          /* kernels run by this process, interpreted or native */
int64_t nvd_gpu_kernels_compiled(void); /* for devices, each counted once, though it may have code of two kinds */
int64_t nvd_kernels_loaded(void);       /* kernels whose code came from the disk store */
int nvd_native_missed(void);            /* a kernel was to be compiled for the CPU, and nothing here can */
void nvd_code_trim(void);               /* forgets the kernels that no program holds */
#endif
