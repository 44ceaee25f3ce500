/* Streams and events that the library makes for its callers, in whose terms these are cudaStream_t and cudaEvent_t.
   Bookkeeping of what runs on a stream is stream.c's; nothing here launches kernels. */
#include "base/err.h"
#include "base/interrupt.h"
#include "dispatch/cuda/device_impl.h"

/* NULL stands for the thread's current stream. */
static void *stream_or_current(nvd_device *d, void *stream) { return stream ? stream : nvd_stream(d); }

/* ---- streams */
int nvd_stream_new(void **stream, nvd_device *d) {
  int status = nvd_device_ready(d);
  if (status) return status;
  int entered = nvd_enter(d), error = nvd_cu.cudaStreamCreateWithFlags(stream, CUDA_STREAM_NON_BLOCKING);
  nvd_leave(entered);
  return nvd_device_status(d, error, "stream_new");
}

int nvd_stream_free(nvd_device *d, void *stream) {
  int status = nvd_stream_check(d, stream);
  if (status) return status;
  nvd_lock();
  int entered = nvd_enter(d), error = nvd_gpu_stream_end(d, stream);
  nvd_unlock();
  int also = nvd_cu.cudaStreamDestroy(stream);
  nvd_leave(entered);
  return nvd_device_status(d, error ? error : also, "stream_free");
}

int nvd_stream_wait_event(nvd_device *d, void *stream, void *event) {
  int status = nvd_stream_check(d, stream);
  if (status) return status;
  int entered = nvd_enter(d), error = nvd_cu.cudaStreamWaitEvent(stream_or_current(d, stream), event, 0);
  nvd_leave(entered);
  return nvd_device_status(d, error, "stream_wait");
}

/* ---- events */
int nvd_event_new(void **event, nvd_device *d) {
  int status = nvd_device_ready(d);
  if (status) return status;
  int entered = nvd_enter(d), error = nvd_cu.cudaEventCreateWithFlags(event, 0);
  nvd_leave(entered);
  return nvd_device_status(d, error, "event_new");
}

int nvd_event_free(nvd_device *d, void *event) {
  int status = nvd_device_ready(d);
  if (status) return status;
  int entered = nvd_enter(d), error = nvd_cu.cudaEventDestroy(event);
  nvd_leave(entered);
  return nvd_device_status(d, error, "event_free");
}

int nvd_event_record(nvd_device *d, void *event, void *stream) {
  int status = nvd_stream_check(d, stream);
  if (status) return status;
  int entered = nvd_enter(d), error = nvd_cu.cuEventRecord(event, stream_or_current(d, stream));
  nvd_leave(entered);
  return nvd_device_status(d, error, "event_record");
}

int nvd_event_done(int *done, nvd_device *d, void *event) {
  int status = nvd_device_ready(d);
  if (status) return status;
  int entered = nvd_enter(d), error = nvd_cu.cudaEventQuery(event);
  *done = !error;
  if (error == CUDA_NOT_READY) error = 0, nvd_cu.cudaGetLastError();
  nvd_leave(entered);
  return nvd_device_status(d, error, "event_done");
}

int nvd_event_sync(nvd_device *d, void *event) {
  int status = nvd_device_ready(d);
  if (status) return status;
  int entered = nvd_enter(d);
  nvb_interrupt_enter();
  int error = nvd_event_wait(event);
  nvb_interrupt_leave();
  nvd_leave(entered);
  return nvd_device_status(d, error, "event_sync");
}

int nvd_event_elapsed(double *ms, nvd_device *d, void *from, void *to) {
  float t = 0;
  int status = nvd_event_sync(d, to);
  if (status) return status;
  int entered = nvd_enter(d), error = nvd_cu.cudaEventElapsedTime(&t, from, to);
  nvd_leave(entered);
  *ms = t;
  return nvd_device_status(d, error, "event_elapsed");
}

int nvd_stream_sync(nvd_device *d, void *stream) { /* by an event, since waiting for one can be interrupted */
  void *event;
  int status = nvd_stream_check(d, stream);
  if (status || (status = nvd_event_new(&event, d))) return status;
  status = nvd_event_record(d, event, stream);
  status = status ? status : nvd_event_sync(d, event);
  nvd_event_free(d, event);
  return status;
}
