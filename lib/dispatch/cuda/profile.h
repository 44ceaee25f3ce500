/* The timed launches of a GPU's steps while a profile is active. Private to dispatch. */
#ifndef NVM_DISPATCH_CUDA_PROFILE_H
#define NVM_DISPATCH_CUDA_PROFILE_H

struct nvd_gpu_run;
/* Launches step i between two events, which nvd_gpu_profile_settle reads. Returns a CUDA error code. Under the lock. */
int nvd_gpu_step_profiled(struct nvd_gpu_run *x, int i);
/* Waits for all steps that were launched so, and adds their times to the active profiles; a status. */
int nvd_gpu_profile_settle(void);
int nvd_gpu_profile_is_full(void); /* so many steps are timed that they should be settled before the next run */
#endif
