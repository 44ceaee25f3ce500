/* The public functions of streams and events that the library makes. Which stream a thread's work goes to is
   device.c's. */
#include "api/api.h"

/* The GPU of a call that is given `what` at p; NULL with a message. */
static nvd_device *gpu_of(const char *who, nvm_ctx *ctx, nvm_device d, const void *p, const char *what) {
  if (!p || !ctx) return nva_missing(who, p ? "context" : what), NULL;
  int dev = d == NVM_DEVICE_AUTO ? nva_ctx_device(ctx) : d;
  if (dev != NVM_DEVICE_CPU) return nva_gpu(who, dev);
  return nvb_fail(NVM_ERR_VALUE, "[%s] the CPU has no streams and no events", who), NULL;
}

int nvm_stream_new(void **stream, nvm_ctx *ctx, nvm_device d) {
  nvd_device *gpu = gpu_of("stream_new", ctx, d, stream, "pointer for the stream");
  return gpu ? nvd_stream_new(stream, gpu) : nvb_status();
}
int nvm_stream_free(nvm_ctx *ctx, nvm_device d, void *stream) {
  if (!stream) return NVM_OK;
  nvd_device *gpu = gpu_of("stream_free", ctx, d, stream, "stream");
  return gpu ? nvd_stream_free(gpu, stream) : nvb_status();
}
int nvm_stream_wait(nvm_ctx *ctx, nvm_device d, void *stream, void *event) {
  nvd_device *gpu = gpu_of("stream_wait", ctx, d, event, "event");
  return gpu ? nvd_stream_wait_event(gpu, stream, event) : nvb_status();
}
int nvm_stream_sync(nvm_ctx *ctx, nvm_device d, void *stream) {
  nvd_device *gpu = gpu_of("stream_sync", ctx, d, "", "");
  return gpu ? nvd_stream_sync(gpu, stream) : nvb_status();
}
int nvm_event_new(void **event, nvm_ctx *ctx, nvm_device d) {
  nvd_device *gpu = gpu_of("event_new", ctx, d, event, "pointer for the event");
  return gpu ? nvd_event_new(event, gpu) : nvb_status();
}
int nvm_event_free(nvm_ctx *ctx, nvm_device d, void *event) {
  if (!event) return NVM_OK;
  nvd_device *gpu = gpu_of("event_free", ctx, d, event, "event");
  return gpu ? nvd_event_free(gpu, event) : nvb_status();
}
int nvm_event_record(nvm_ctx *ctx, nvm_device d, void *event, void *stream) {
  nvd_device *gpu = gpu_of("event_record", ctx, d, event, "event");
  return gpu ? nvd_event_record(gpu, event, stream) : nvb_status();
}
int nvm_event_done(int *done, nvm_ctx *ctx, nvm_device d, void *event) {
  if (!done) return nva_missing("event_done", "pointer for the answer");
  nvd_device *gpu = gpu_of("event_done", ctx, d, event, "event");
  return gpu ? nvd_event_done(done, gpu, event) : nvb_status();
}
int nvm_event_sync(nvm_ctx *ctx, nvm_device d, void *event) {
  nvd_device *gpu = gpu_of("event_sync", ctx, d, event, "event");
  return gpu ? nvd_event_sync(gpu, event) : nvb_status();
}
int nvm_event_elapsed(double *ms, nvm_ctx *ctx, nvm_device d, void *from, void *to) {
  if (!ms) return nva_missing("event_elapsed", "pointer for the time");
  nvd_device *gpu = gpu_of("event_elapsed", ctx, d, from && to ? from : NULL, from ? "second event" : "first event");
  return gpu ? nvd_event_elapsed(ms, gpu, from, to) : nvb_status();
}
