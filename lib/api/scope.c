/* Scopes: a stack for each thread, whose top owns the arrays that are made and remembers the first failure. Never
   evaluates anything. */
#include <string.h>
#include "api/api.h"
#include "base/mem.h"

struct nvm_scope {
  nvm_scope *below;
  nvm_ctx *ctx;
  nvm_array **at;
  int n, cap;
  int status;  /* status of the first failure inside */
  char *first; /* its message; NULL if memory ran out */
};
static _Thread_local nvm_scope *top;

nvm_scope *nvm_scope_open(nvm_ctx *ctx) {
  if (!ctx) return nvb_fail(NVM_ERR_STATE, "[scope_open] the context is NULL"), NULL;
  nvm_scope *s = nvb_calloc(1, sizeof *s);
  if (!s) return nvb_fail_memory(), NULL;
  s->below = top;
  s->ctx = nva_ctx_ref(ctx);
  atomic_fetch_add(&ctx->scopes, 1);
  if (!top) nvb_clear();
  return top = s;
}
int nvm_scope_close(nvm_scope *s) {
  if (!s || s != top)
    return nvb_fail(NVM_ERR_STATE, "[scope_close] this is not the thread's innermost open scope; scopes close in "
                                   "order");
  int status = s->status;
  top = s->below;
  if (top && status && !top->status) {
    top->status = status;
    top->first = s->first;
    s->first = NULL;
  }
  while (s->n) nvm_array_unref(s->at[--s->n]);
  if (status && s->first) nvb_fail(status, "%s", s->first);
  nvb_free(s->first);
  nvb_free(s->at);
  atomic_fetch_sub(&s->ctx->scopes, 1);
  nva_ctx_unref(s->ctx);
  nvb_free(s);
  return status;
}
nvm_ctx *nva_scope_ctx(void) {
  if (!top) nvb_fail(NVM_ERR_STATE, "no scope is open in this thread; open one with nvm_scope_open");
  return top ? top->ctx : NULL;
}
static void note_failure(int status) {
  if (top->status || !status) return;
  size_t n = strlen(nvb_message()) + 1;
  top->status = status;
  top->first = nvb_alloc(n);
  if (top->first) memcpy(top->first, nvb_message(), n);
}
int nva_null(const char *who, const char *what) {
  if (top && top->status) return top->first ? nvb_fail(top->status, "%s", top->first) : top->status;
  return nvb_status() ? nvb_status() : nvb_fail(NVM_ERR_VALUE, "[%s] the %s is NULL", who, what);
}
int nva_missing(const char *who, const char *what) { return nvb_fail(NVM_ERR_VALUE, "[%s] the %s is NULL", who, what); }
int nva_two_contexts(const char *who) {
  return nvb_fail(NVM_ERR_VALUE, "[%s] the arrays belong to different contexts", who);
}
nvm_array *nva_scope_keep(nvm_array *a) {
  if (!a) {
    if (top) note_failure(nvb_status());
    return NULL;
  }
  if (!top) {
    nvb_fail(NVM_ERR_STATE, "no scope is open in this thread; open one with nvm_scope_open");
    return nvm_array_unref(a), NULL;
  }
  if (top->n == top->cap) {
    int cap = top->cap ? 2 * top->cap : 32;
    nvm_array **at = nvb_realloc(top->at, sizeof *at * (size_t)cap);
    if (!at) {
      note_failure(nvb_fail_memory());
      return nvm_array_unref(a), NULL;
    }
    top->at = at;
    top->cap = cap;
  }
  return top->at[top->n++] = a;
}
