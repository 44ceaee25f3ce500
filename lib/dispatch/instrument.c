/* Instrumented runs on the CPU: NVM_DUMP=run reports each step as it runs, and NVM_CHECK=bits runs each native step
   again in the interpreter and fails where the results differ. Never changes what a program computes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/profile.h"
#include "dispatch/program.h"
#include "frag/dtype.h"

/* ---- comparing: two values are equal if their bits are, or if both are NaN */
static int both_nan(const char *a, const char *b, nvm_dtype part) {
  static const struct {
    nvm_dtype type;
    uint64_t most;
  } floats[] = { /* the bits of the greatest non-NaN value (infinity where there is one) */
                 { NVM_F8E4, 0x7e },   { NVM_F8E5, 0x7c },      { NVM_F16, 0x7c00 },
                 { NVM_BF16, 0x7f80 }, { NVM_F32, 0x7f800000 }, { NVM_F64, 0x7ff0000000000000 }
  };
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
    if (floats[i].type == part) {
      size_t size = (size_t)nvg_size(part);
      uint64_t x = 0, y = 0, magnitude = (UINT64_C(1) << (8 * size - 1)) - 1;
      memcpy(&x, a, size);
      memcpy(&y, b, size);
      return (x & magnitude) > floats[i].most && (y & magnitude) > floats[i].most;
    }
  return 0;
}

int64_t nvd_first_difference(const char *a, const char *b, int64_t bytes, nvm_dtype type) {
  nvm_dtype part = nvg_real_of(type);
  int64_t size = nvg_size(part);
  if (!memcmp(a, b, (size_t)bytes)) return -1;
  for (int64_t i = 0; i + size <= bytes; i += size)
    if (memcmp(a + i, b + i, (size_t)size) && !both_nan(a + i, b + i, part)) return i / nvg_size(type);
  return -1;
}

/* Bytes of all buffers that step i may write, as they are copied one after the other. */
static int64_t written_bytes(const nvd_program *p, int i) {
  int64_t sum = 0;
  int end = i + 1 < p->nstep ? p->step[i + 1].first : p->narg;
  for (int k = 0; k < p->naddress; k++)
    if (p->address[k].arg >= p->step[i].first && p->address[k].arg < end) sum += p->address[k].written;
  return sum;
}

typedef enum copying { SAVE, RESTORE, COMPARE } copying;
/* Saves, restores or compares everything that step i may write. COMPARE returns the first difference as "element 7 of
   argument 2", or NULL. */
static const char *each_written(const nvd_program *p, const nvd_context *c, int i, char *copy, copying what, char *text,
                                size_t n) {
  int end = i + 1 < p->nstep ? p->step[i + 1].first : p->narg;
  for (int k = 0; k < p->naddress; k++) {
    const nvd_address *b = &p->address[k];
    if (b->arg < p->step[i].first || b->arg >= end || !b->written) continue;
    char *at = (char *)(uintptr_t)c->arg[b->arg];
    int64_t where = -1;
    if (what == COMPARE) where = nvd_first_difference(at, copy, b->written, b->type);
    else memcpy(what == SAVE ? copy : at, what == SAVE ? at : copy, (size_t)b->written);
    if (where >= 0) {
      snprintf(text, n, "element %" PRId64 " of argument %d", where, b->arg - p->step[i].first);
      return text;
    }
    copy += b->written;
  }
  return NULL;
}

/* Runs the step natively, then again in the interpreter from the same state, and compares. The interpreter's results
   stay. */
static int run_twice(const nvd_program *p, const nvd_context *c, int i) {
  size_t bytes = (size_t)written_bytes(p, i);
  char *before = nvb_alloc(bytes), *after = nvb_alloc(bytes), level[64];
  const char *differs = NULL;
  int status = before && after ? NVM_OK : nvb_fail_memory();
  if (!status) {
    each_written(p, c, i, before, SAVE, NULL, 0);
    status = nvd_step_run(p, c, i, c->entry[i]);
  }
  if (!status) {
    each_written(p, c, i, after, SAVE, NULL, 0);
    each_written(p, c, i, before, RESTORE, NULL, 0);
    status = nvd_step_run(p, c, i, NULL);
  }
  if (!status && (differs = each_written(p, c, i, after, COMPARE, level, sizeof level)))
    status = nvb_fail(NVM_ERR_INTERNAL, "[bits] native and interpreted code differ in step %d of %d, %s: %s", i + 1,
                      p->nstep, differs, p->step[i].what);
  nvb_free(before);
  nvb_free(after);
  return status;
}

/* ---- reporting */
static void report_step(const nvd_program *p, const nvd_context *c, int i, int64_t ns, int status) {
  const nvd_step *s = &p->step[i];
  char line[512];
  const char *by = s->solution ? s->solution->by->name : c->entry[i] ? "native" : "interpreted";
  snprintf(line, sizeof line, "%d/%d %s, %s: %" PRId64 " blocks by %" PRId64 ", %.1f us, %.2f GB/s%s: %s\n", i + 1,
           p->nstep, s->hero, by, s->blocks, s->grain, (double)ns * 1e-3, (double)s->bytes / (double)(ns ? ns : 1),
           status ? ", failed" : "", s->what);
  char name[32];
  snprintf(name, sizeof name, "step%d", i + 1);
  nvb_dump("run", name, line);
}

int nvd_run_instrumented(const nvd_program *p, const nvd_context *c) {
  int bits = nvb_has(NVB_CHECK, "bits"), status = NVM_OK;
  for (int i = 0; i < p->nstep && !status; i++) {
    int64_t start = nvb_clock_ns();
    status = bits && c->entry[i] ? run_twice(p, c, i) : nvd_step_run(p, c, i, c->entry[i]);
    if (nvd_is_profiling()) nvd_profile_step(p, c, i, start);
    report_step(p, c, i, nvb_clock_ns() - start, status);
  }
  return status;
}
