/* Measures what a device can do at best: it evaluates graphs that only move memory, or only compute, in a profile of
   its own. A rate is measured once and kept in the disk cache; the units are those in which plans count. */
#include "api/ceiling.h"
#include <string.h>
#include "api/api.h"
#include "autotune/tune.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/store.h"
#include "nvm/ops.h"

enum { VERSION = 1 };

/* ---- what the planner knows */
static nvb_caps caps_of(int dev) {
  nvd_device *d = dev > 1 ? nva_gpu("profile", dev) : NULL;
  return d ? *nvd_device_caps(d) : nvb_caps_cpu();
}
static double rated(int dev, int unit) {
  nvb_caps c = caps_of(dev);
  if (unit == NVA_BANDWIDTH) return c.bandwidth;
  if (unit == NVD_UNIT_F32) return c.rate;
  if (unit == NVD_UNIT_F64) return c.kind == NVB_CPU ? c.rate : c.rate / 2; /* a CPU's plans count f64 twice */
  const nvb_gemm_rate *r = &c.gemm[unit - NVD_UNIT_GEMM];
  return r->library > 0 ? r->library : r->generated > 0 ? r->generated : c.rate;
}

/* ---- graphs that reach a ceiling */
static nvm_dtype type_of(int unit) {
  return unit == NVD_UNIT_F64 || unit == NVD_UNIT_GEMM + NVB_GEMM_F64 ? NVM_F64
         : unit == NVD_UNIT_GEMM + NVB_GEMM_F16                       ? NVM_BF16
                                                                      : NVM_F32;
}
static int is_square(int unit) { return unit >= NVD_UNIT_GEMM; }
/* Products of 8-bit operands have layouts of their own, and their rates are the planner's. */
static int is_measurable(int unit) {
  return unit != NVD_UNIT_GEMM + NVB_GEMM_F8 && unit != NVD_UNIT_GEMM + NVB_GEMM_I8;
}
static nvm_array *work_of(nvm_array *x, int unit) {
  enum { CHAIN = 24 };
  nvm_matmul_options o = NVM_MATMUL_OPTIONS_INIT;
  if (unit == NVA_BANDWIDTH) return nvm_add(x, x);
  if (is_square(unit)) {
    o.precision = unit == NVD_UNIT_GEMM + NVB_GEMM_TF32 ? NVM_PRECISION_TF32 : NVM_PRECISION_IEEE;
    return nvm_matmul_opt(x, x, &o);
  }
  nvm_array *y = x;
  for (int i = 0; i < CHAIN; i++) y = nvm_fma(y, x, x);
  return y;
}

/* ---- measuring. The fastest call counts, since others share the machine. */
typedef struct probe { nvm_ctx *ctx; int dev, unit; nvm_array *x; double ns, rate; } probe;

static nvm_array *operand_new(const probe *p, int64_t n) {
  int64_t shape[2] = { n, n };
  nvm_array *x = nvm_full(p->ctx, type_of(p->unit), is_square(p->unit) ? 2 : 1, shape, 0.5);
  x = nvm_array_ref(nvm_to_device(x, p->dev));
  return nvm_eval(&x, 1) ? nvm_array_unref(x), NULL : x;
}
static int run_once(probe *p) {
  nvm_scope *s = nvm_scope_open(p->ctx);
  nvm_array *y = s ? work_of(p->x, p->unit) : NULL;
  int status = y ? nvm_eval(&y, 1) : nvb_status(), settled = nvd_profile_settle();
  if (s) nvm_scope_close(s);
  nvd_warm_wait();
  return status ? status : settled;
}
static void read_rows(probe *p, const nvd_profile *q) {
  p->rate = p->ns = 0;
  for (int i = 0; i < q->nrow; i++) {
    const nvd_profile_row *r = &q->row[i];
    double work = (double)(p->unit == NVA_BANDWIDTH ? r->work.bytes : r->work.operations) / (double)r->calls;
    double rate = r->best > 0 ? work / (double)r->best : 0;
    if (rate > p->rate) p->rate = rate, p->ns = (double)r->best;
  }
}
/* Runs it for that long with operands of n elements, or n x n, and at least twice: code may come in the background. */
static int run_for(probe *p, int64_t n, double ms) {
  nvd_profile q = { .own = 1 };
  int status = (p->x = operand_new(p, n)) ? nvd_profile_begin(&q) : nvb_status(), runs = 0;
  int64_t start = nvb_clock_ns();
  for (; !status && (runs < 2 || nvb_ms_since(start) < ms); runs++) status = run_once(p);
  read_rows(p, &q);
  nvd_profile_drop(&q);
  nvm_array_unref(p->x);
  return status;
}
/* Doubles the size until a call takes so long that nothing but the work counts, or until memory is far larger than the
   caches. */
static int measure(probe *p) {
  enum { SHORT = 400000, LONG = 20000000, FIRST = 1 << 17, MOST = 1 << 28 }; /* ns; elements */
  const double ms = p->dev > 1 ? 400 : 150;                                  /* a GPU's code takes as long to compile */
  nvb_caps c = caps_of(p->dev);
  int64_t n = is_square(p->unit) ? 256 : FIRST;
  int64_t most = is_square(p->unit) ? 8192 : p->unit != NVA_BANDWIDTH ? 1 << 24 : c.l2 < MOST / 2 ? c.l2 : MOST / 2;
  int64_t least = p->unit == NVA_BANDWIDTH ? LONG : SHORT;
  int status = run_for(p, n, 0);
  while (!status && n < most && p->ns < (double)least) status = run_for(p, n *= 2, 0);
  return status ? status : run_for(p, n, ms);
}
static int measure_all(double *rate, int dev, int unit) {
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  o.device = dev;
  probe p = { .dev = dev, .unit = unit };
  int status = nvm_ctx_new(&p.ctx, &o);
  nvm_scope *s = status ? NULL : nvm_scope_open(p.ctx);
  if (s) status = measure(&p);
  if (s) nvm_scope_close(s);
  if (p.ctx) nvm_ctx_free(p.ctx);
  *rate = status ? 0 : p.rate;
  return status;
}

/* ---- what was measured before, in this process or another one */
static struct known {
  nvb_hash key;
  double rate;
} known[128];
static int nknown;
static nvb_lock lock = NVB_LOCK(CEILINGS);

typedef struct naming { int dev, unit; nvb_hash key; } naming;
static void name_ceiling(nvb_arena *a, void *arg) {
  naming *w = arg;
  nvb_caps c = caps_of(w->dev);
  nvd_device *d = w->dev > 1 ? nva_gpu("profile", w->dev) : NULL;
  nvb_text t = { .arena = a };
  nvb_print(&t, "ceiling %d of %d: %s", VERSION, w->unit, nvt_device_in_words(a, &c, d, is_square(w->unit)));
  w->key = nvb_hash_bytes(nvb_text_get(&t), t.n);
}
static int key_of(nvb_hash *key, int dev, int unit) {
  naming w = { .dev = dev, .unit = unit };
  nvb_arena *a = nvb_arena_new();
  int status = a ? nvb_protect(a, name_ceiling, &w) : nvb_fail_memory();
  nvb_arena_free(a);
  *key = w.key;
  return status;
}
static double find_known(nvb_hash key) {
  double rate = 0;
  void *blob = NULL;
  size_t n = 0;
  nvb_lock_take(&lock);
  for (int i = 0; i < nknown; i++)
    if (nvb_hash_eq(known[i].key, key)) rate = known[i].rate;
  nvb_lock_give(&lock);
  if (rate > 0 || !nvb_store_get("ceiling", key, &blob, &n)) return rate;
  if (n == sizeof rate) memcpy(&rate, blob, n);
  nvb_free(blob);
  return rate;
}
static void keep_known(nvb_hash key, double rate) {
  nvb_lock_take(&lock);
  int i = 0;
  while (i < nknown && !nvb_hash_eq(known[i].key, key)) i++;
  if (i == nknown && nknown < (int)(sizeof known / sizeof *known)) nknown++;
  if (i < nknown) known[i] = (struct known){ key, rate };
  nvb_lock_give(&lock);
  nvb_store_put("ceiling", key, &rate, sizeof rate);
}

static int find_or_measure(double *rate, int dev, int unit) {
  nvb_hash key;
  int status = key_of(&key, dev, unit);
  if (status || (*rate = find_known(key)) > 0) return status;
  status = measure_all(rate, dev, unit);
  if (*rate > 0) keep_known(key, *rate);
  return status;
}
void nva_ceiling_seen(int dev, int unit, double rate) {
  nvb_hash key;
  if (is_measurable(unit) && !key_of(&key, dev, unit) && find_known(key) < rate) keep_known(key, rate);
}
int nva_ceiling_get(nva_ceiling *out, int dev, int unit, int by_planner) {
  double rate = 0;
  nvb_failure before;
  nvb_failure_keep(&before);
  int status = by_planner || !is_measurable(unit) || nva_tracing() ? NVM_OK : find_or_measure(&rate, dev, unit);
  *out = rate > 0 ? (nva_ceiling){ rate, 1 } : (nva_ceiling){ rated(dev, unit), 0 };
  if (status == NVM_ERR_INTERRUPTED) return status;
  nvb_failure_put_back(&before);
  return NVM_OK;
}
