/* Contexts and messages, and other calls that concern no array. Never evaluates anything. */
#include <stddef.h>
#include <string.h>
#include "api/api.h"
#include "base/background.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/dispatch.h"

const char *nvm_version(void) { return NVM_VERSION; }
const char *nvm_last_error(void) { return nvb_message(); }
int nvm_last_status(void) { return nvb_status(); }
void nvm_free(void *p) { nvb_free(p); }
void nvm_interrupt_set(int (*asked)(void *user), void *user) { nvb_interrupt_set(asked, user); }

/* ---- contexts */
static size_t options_size(unsigned version) { /* size of the fields of that version */
  return version == 1 ? offsetof(nvm_ctx_options, device) : sizeof(nvm_ctx_options);
}
int nvm_ctx_options_init(nvm_ctx_options *o, unsigned version) {
  if (!o) return nva_missing("ctx_options_init", "pointer for options");
  if (version < 1 || version > NVM_CTX_OPTIONS_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[ctx_options_init] version %u is unknown; this library has %d", version,
                    NVM_CTX_OPTIONS_VERSION);
  memcpy(o, &(nvm_ctx_options)NVM_CTX_OPTIONS_INIT, options_size(version));
  o->version = version;
  return NVM_OK;
}
int nvm_ctx_new(nvm_ctx **out, const nvm_ctx_options *given) {
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  if (!out) return nva_missing("ctx_new", "pointer for the context");
  *out = NULL;
  if (given && (given->version < 1 || given->version > NVM_CTX_OPTIONS_VERSION))
    return nvb_fail(NVM_ERR_VALUE, "[ctx_new] options version %u is unknown; this library has %d", given->version,
                    NVM_CTX_OPTIONS_VERSION);
  if (given) memcpy(&o, given, options_size(given->version));
  if (!o.default_float) o.default_float = NVM_F64;
  nvm_ctx *c = nvb_calloc(1, sizeof *c);
  if (!c) return nvb_fail_memory();
  c->refs = 1;
  int status = nvm_ctx_default_float_set(c, o.default_float);
  if (!status && o.device == NVM_DEVICE_AUTO) status = nvm_device_find(&o.device, nvb_str(NVB_DEVICE));
  if (!status) status = nvm_ctx_device_set(c, o.device);
  if (status) nvb_free(c);
  else *out = c;
  return status;
}
int nvm_ctx_default_float_set(nvm_ctx *c, nvm_dtype t) {
  if (!c) return nva_missing("ctx", "context");
  if (t != NVM_F32 && t != NVM_F64) return nvb_fail(NVM_ERR_TYPE, "[ctx] default_float must be float32 or float64");
  c->default_float = t;
  return NVM_OK;
}
nvm_dtype nvm_ctx_default_float(const nvm_ctx *c) { return c ? c->default_float : NVM_DTYPE_DEFAULT; }
nvm_ctx *nva_ctx_ref(nvm_ctx *c) {
  atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
  return c;
}
void nva_ctx_unref(nvm_ctx *c) {
  if (c && atomic_fetch_sub(&c->refs, 1) == 1) nvb_free(c);
}
int nvm_ctx_free(nvm_ctx *ctx) {
  int open = ctx ? atomic_load(&ctx->scopes) : 0;
  if (open)
    return nvb_fail(NVM_ERR_STATE, "[ctx_free] %d of its scopes are open; close them with nvm_scope_close first", open);
  if (ctx) nvb_crews_settle(); /* the process may end next: LLVM and NVRTC make tables when they compile first */
  nva_ctx_unref(ctx);
  return NVM_OK;
}
