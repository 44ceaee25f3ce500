/* The library of fragments: its texts are compiled in, indexed at first use, and compiled one definition at a time on
   demand; results are kept for the process. Every entry takes one lock; a failure leaves the library unchanged. */
#include "frag/impl.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/mem.h"
#include <string.h>

/* a child finds the library consistent */
static nvb_lock lock = NVB_LOCK(FRAGMENTS);
NVB_HOLD_AT_FORK(lock);
static nvb_arena *arena;     /* never freed */
static nvg_fragset *library; /* NULL until the index is complete */


typedef struct library_query { nvg_frag_query *q; int compile, defined; const nvg_frag *found; } library_query;

static void index_texts(nvb_arena *a, void *arg) {
  nvg_fragset *s = nvg_library_set(a);
  nvg_fragset_add_library(s);
  *(nvg_fragset **)arg = s;
}

static int make_ready(void) {
  if (library) return NVM_OK;
  nvg_fragset *s = NULL;
  nvb_arena *a = nvb_arena_new();
  if (!a) return nvb_fail_memory();
  int status = nvb_protect(a, index_texts, &s);
  if (status) {
    nvb_arena_free(a);
    return status;
  }
  arena = a;
  library = s;
  return NVM_OK;
}

static void answer_query(nvb_arena *a, void *arg) {
  library_query *r = arg;
  (void)a;
  if (r->compile) r->found = nvg_fragset_query(library, r->q);
  else r->defined = nvg_fragset_defines(library, r->q);
}

static int ask_library(library_query *r) { /* returns a status */
  nvb_lock_take(&lock);
  int status = make_ready();
  if (!status) {
    status = nvb_protect(arena, answer_query, r);
    nvg_fragset_forget_calls(library);
  }
  nvb_lock_give(&lock);
  return status;
}
const nvg_frag *nvg_library_query(nvg_frag_query *q, int *status) {
  library_query r = { .q = q, .compile = 1 };
  *status = ask_library(&r);
  return *status ? NULL : r.found;
}

/* Asks for a function by operand types; r: what is asked. Fails if there is none. */
static int ask_function(library_query *r, const char *name, const int *targ, int ntarg, const nvm_dtype *param,
                        int nparam) {
  int types[16], *p = types;
  if (nparam > 16 && !(p = nvb_alloc(sizeof *p * (size_t)nparam))) return nvb_fail_memory();
  for (int i = 0; i < nparam; i++) p[i] = param[i];
  nvg_frag_query q = {
    .name = name, .len = (int)strlen(name), .targ = targ, .ntarg = ntarg, .param = p, .nparam = nparam
  };
  r->q = &q;
  int status = ask_library(r);
  if (!status && !r->found && !r->defined) status = nvg_query_fail(&q);
  if (p != types) nvb_free(p);
  return status;
}
static const nvg_frag *find_function(const char *name, const int *targ, int ntarg, const nvm_dtype *param, int nparam) {
  library_query r = { .compile = 1 };
  return ask_function(&r, name, targ, ntarg, param, nparam) ? NULL : r.found;
}

int nvg_frag_defined(const char *name, const nvm_dtype *param, int nparam) {
  library_query r = { .compile = 0 };
  return !ask_function(&r, name, NULL, 0, param, nparam);
}
const nvg_frag *nvg_frag_find(const char *name, const nvm_dtype *param, int nparam) {
  return find_function(name, NULL, 0, param, nparam);
}

const nvg_frag *nvg_frag_cast(nvm_dtype from, nvm_dtype to) {
  int targ = to;
  return find_function("cast", &targ, 1, &from, 1);
}
