/* Times the steps of a GPU's programs, for profiles: a step is launched between two CUDA events, and both are read when
   somebody waits anyway (a profile that begins or ends), or when many are open. A stream's steps do not overlap
   meanwhile, so that their times add up. Never waits under the lock. */
#include "dispatch/cuda/profile.h"
#include <string.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "dispatch/cuda/program.h"
#include "dispatch/profile.h"

enum { MOST = 4096 };
typedef struct timed { /* a step that was launched; the strings of `work` follow it */
  struct timed *next;
  nvd_device *device;
  void *from, *to;
  int stream; /* a number for timelines */
  nvd_work work;
  char text[];
} timed;

/* Under nvd_gpu_lock: the steps whose events were not read, and events that are free, by device. */
static timed *open_steps;
static int nopen;
static struct spare_events {
  void *at[2 * MOST];
  int n;
} *spare[NVD_MAX_DEVICES];

static int event_get(nvd_device *d, void **event) {
  struct spare_events *s = spare[d->ordinal];
  if (s && s->n) return *event = s->at[--s->n], 0;
  return nvd_cu.cudaEventCreateWithFlags(event, 0);
}
static void event_put(nvd_device *d, void *event) {
  struct spare_events **s = &spare[d->ordinal];
  if (event && !*s) *s = nvb_calloc(1, sizeof **s);
  if (event && *s && (*s)->n < 2 * MOST) (*s)->at[(*s)->n++] = event;
  else if (event) nvd_cu.cudaEventDestroy(event);
}

static timed *timed_new(const nvd_gpu_run *x, int i) {
  const nvd_step *s = &x->p->step[i];
  const char *by = s->solution ? s->solution->by->name : "cuda";
  size_t n[3] = { strlen(by) + 1, strlen(s->hero) + 1, strlen(s->what) + 1 };
  timed *t = nvb_calloc(1, sizeof *t + n[0] + n[1] + n[2]);
  if (!t) return NULL;
  t->device = x->p->device;
  t->work = (nvd_work){ .dev = 2 + x->p->device->ordinal,
                        .unit = s->unit,
                        .by = memcpy(t->text, by, n[0]),
                        .hero = memcpy(t->text + n[0], s->hero, n[1]),
                        .what = memcpy(t->text + n[0] + n[1], s->what, n[2]),
                        .bytes = s->bytes,
                        .operations = s->operations,
                        .blocks = s->solution ? 0 : s->blocks };
  for (nvd_gpu_stream *q = x->p->device->streams; q && q != x->q; q = q->next) t->stream++;
  return t;
}

int nvd_gpu_step_profiled(nvd_gpu_run *x, int i) {
  timed *t = timed_new(x, i);
  int entered = nvd_enter(x->p->device), untimed = !t || event_get(t->device, &t->from) ||
                                                   event_get(t->device, &t->to) ||
                                                   nvd_cu.cuEventRecord(t->from, x->stream);
  int error = nvd_gpu_launch(x, i);
  untimed = untimed || error || x->status || nvd_cu.cuEventRecord(t->to, x->stream);
  if (!untimed) {
    t->next = open_steps;
    open_steps = t;
    nopen++;
  } else if (t) {
    event_put(t->device, t->from);
    event_put(t->device, t->to);
    nvb_free(t);
  }
  nvd_leave(entered);
  return error;
}

int nvd_gpu_profile_is_full(void) {
  nvd_lock();
  int full = nopen >= MOST;
  nvd_unlock();
  return full;
}

/* ---- reading the events. The clock of a device is compared with the host's by an event that the host waits for. */
static timed *take_all(void) { /* the oldest comes first */
  timed *first = NULL;
  nvd_lock();
  for (timed *t = open_steps, *next; t; t = next) {
    next = t->next;
    t->next = first;
    first = t;
  }
  open_steps = NULL;
  nopen = 0;
  nvd_unlock();
  return first;
}

typedef struct anchor { void *event; int64_t host; } anchor;
static int drop_anchor(nvd_device *d, anchor *a) {
  nvd_lock();
  int error = event_get(d, &a->event);
  error = error ? error : nvd_cu.cuEventRecord(a->event, d->own->stream);
  nvd_unlock();
  error = error ? error : nvd_cu.cudaEventSynchronize(a->event);
  a->host = nvb_clock_ns();
  return error;
}

static int read_step(const timed *t, anchor *a) {
  float took = 0, ago = 0;
  int entered = nvd_enter(t->device), error = nvd_cu.cudaEventSynchronize(t->to);
  error = error || a->event ? error : drop_anchor(t->device, a);
  error = error ? error : nvd_cu.cudaEventElapsedTime(&took, t->from, t->to);
  error = error ? error : nvd_cu.cudaEventElapsedTime(&ago, t->from, a->event);
  nvd_leave(entered);
  if (!error)
    nvd_profile_note(&t->work, a->host - (int64_t)(1e6 * (double)ago), (int64_t)(1e6 * (double)took), 1 + t->stream);
  return nvd_device_status(t->device, error, "profile");
}

int nvd_gpu_profile_settle(void) {
  anchor a[NVD_MAX_DEVICES] = { { NULL, 0 } };
  int status = NVM_OK;
  if (nvd_cuda_forked) return NVM_OK; /* the events are the parent's */
  for (timed *t = take_all(), *next; t; t = next) {
    next = t->next;
    int ordinal = t->device->ordinal, failed = read_step(t, &a[ordinal]);
    status = status ? status : failed;
    nvd_lock();
    event_put(t->device, t->from);
    event_put(t->device, t->to);
    if (!next || next->device != t->device) event_put(t->device, a[ordinal].event), a[ordinal].event = NULL;
    nvd_unlock();
    nvb_free(t);
  }
  return status;
}
