/* The builder of kernels: the planner, the parser and tests make kernels through these functions only. It decides names
   (each is unique; axes begin lower-case, schedule constants upper-case) and folds constants in index expressions. It
   never looks at what a kernel means. */
#include <string.h>
#include "base/int.h"
#include "kernel/kernel.h"

/* An array with space for one more element after n. Arrays double in size, so their length tells their capacity. */
static void *grow_array(nvb_arena *a, void *old, int n, size_t size) {
  if (n != 0 && (n < 8 || (n & (n - 1)) != 0)) return old;
  void *at = nvb_get(a, size * (size_t)(n ? 2 * n : 8));
  if (n) memcpy(at, old, size * (size_t)n);
  return at;
}
#define MORE(k, at, n) ((at) = grow_array((k)->arena, (void *)(at), (n), sizeof *(at)))

static int is_upper(char c) { return c >= 'A' && c <= 'Z'; }

/* The name itself if it is unused, else name_1, name_2 ... With `axis` it begins lower-case. */
static const char *fresh_name(nvf_kernel *k, const char *name, int axis) {
  char *base = nvb_strdup(k->arena, name && *name ? name : "t");
  if (axis && is_upper(base[0])) base[0] = (char)(base[0] - 'A' + 'a');
  int fresh;
  int *count = nvb_map_put(k->known, base, strlen(base), &fresh);
  if (fresh) return base;
  for (;;) {
    nvb_text t = { .arena = k->arena };
    nvb_print(&t, "%s_%d", base, ++*count);
    nvb_map_put(k->known, t.s, t.n, &fresh);
    if (fresh) return t.s;
    count = nvb_map_find(k->known, base, strlen(base));
  }
}

nvf_kernel *nvf_kernel_new(nvb_arena *a, const char *name) {
  nvf_kernel *k = NVB_NEW(a, nvf_kernel);
  k->arena = a;
  k->title = nvb_strdup(a, name);
  k->frags = nvg_fragset_new(a);
  k->known = nvb_map_new(a);
  k->part = NVB_NEWN(a, nvf_part, NVF_MAX_PARTS);
  return k;
}

int nvf_add_param(nvf_kernel *k, nvf_pkind kind, nvm_dtype type, const char *name) {
  MORE(k, k->param, k->nparam);
  k->param[k->nparam] =
      (nvf_param){ .name = fresh_name(k, name, 0), .kind = kind, .type = kind == NVF_SIZE ? NVM_I64 : type };
  return k->nparam++;
}

int nvf_add_axis(nvf_kernel *k, const char *name) {
  MORE(k, k->axis, k->naxis);
  k->axis[k->naxis] = fresh_name(k, name, 1);
  return k->naxis++;
}

int nvf_add_var(nvf_kernel *k, const char *name) {
  MORE(k, k->var, k->nvar);
  k->var[k->nvar] = fresh_name(k, name, 1);
  return k->nvar++;
}

/* All uses of a schedule name share one number. Its key is the name after a character that no identifier contains. */
int nvf_add_name(nvf_kernel *k, const char *name) {
  nvb_text key = { .arena = k->arena };
  nvb_print(&key, "$%s", name);
  int is_new, *at = nvb_map_put(k->known, key.s, key.n, &is_new);
  if (!is_new) return *at;
  *at = k->nname;
  MORE(k, k->name, k->nname);
  k->name[k->nname] = nvb_strdup(k->arena, name);
  return k->nname++;
}

int nvf_add_tile(nvf_kernel *k, nvm_dtype type, const char *name) {
  MORE(k, k->tile, k->ntile);
  k->tile[k->ntile] = (nvf_tile){ .name = fresh_name(k, name, 0), .type = type };
  return k->ntile++;
}

nvf_part *nvf_add_part(nvf_kernel *k) {
  if (k->npart == NVF_MAX_PARTS) nvb_throw(k->arena, NVM_ERR_UNSUPPORTED, "[kernel] more than %d parts", NVF_MAX_PARTS);
  return &k->part[k->npart++];
}

int nvf_add_grid(nvf_kernel *k, nvf_part *p, const char *name, const nvf_expr *extent) {
  if (p->ngrid == NVF_MAX_GRID)
    nvb_throw(k->arena, NVM_ERR_UNSUPPORTED, "[kernel] more than %d grid axes", NVF_MAX_GRID);
  MORE(k, p->grid, p->ngrid);
  p->grid[p->ngrid] = (nvf_grid){ .name = fresh_name(k, name, 1), .extent = extent };
  return p->ngrid++;
}

nvf_block *nvf_new_block(nvf_kernel *k) { return NVB_NEW(k->arena, nvf_block); }

nvf_stmt *nvf_add_stmt(nvf_kernel *k, nvf_block *b, nvf_op op) {
  nvf_stmt *s = NVB_NEW(k->arena, nvf_stmt);
  s->op = op;
  MORE(k, k->stmt, k->nstmt);
  k->stmt[s->id = k->nstmt++] = s;
  s->layout = s->red_order = s->nonly = -1;
  MORE(k, b->s, b->n);
  b->s[b->n++] = s;
  return s;
}

void nvf_set(nvf_kernel *k, nvf_stmt *s, int nout, const int *out, int nin, const int *in) {
  s->nout = nout;
  s->nin = nin;
  s->out = nout ? nvb_dup(k->arena, out, sizeof(int) * (size_t)nout) : NULL;
  s->in = nin ? nvb_dup(k->arena, in, sizeof(int) * (size_t)nin) : NULL;
}

/* ---- index expressions */
const nvf_expr *nvf_x(nvf_kernel *k, nvf_xkind kind, int id, int64_t value) {
  if (kind == NVF_NAME && !is_upper(k->name[id][0]))
    nvb_throw(k->arena, NVM_ERR_VALUE, "[kernel] the constant '%s' must begin upper-case", k->name[id]);
  nvf_expr *x = NVB_NEW(k->arena, nvf_expr);
  *x = (nvf_expr){ .kind = kind, .id = id, .value = value };
  return x;
}

static int fold_constants(nvf_xkind kind, int64_t a, int64_t b, int64_t *v) {
  switch (kind) {
  case NVF_ADD: return !__builtin_add_overflow(a, b, v);
  case NVF_SUB: return !__builtin_sub_overflow(a, b, v);
  case NVF_MUL: return !__builtin_mul_overflow(a, b, v);
  case NVF_DIV: return b > 0 ? (*v = nvb_floor_div(a, b), 1) : 0;
  case NVF_MOD: return b > 0 ? (*v = a - b * nvb_floor_div(a, b), 1) : 0;
  default: return 0;
  }
}

static int is_const(const nvf_expr *x, int64_t v) { return x->kind == NVF_CONST && x->value == v; }

const nvf_expr *nvf_x2(nvf_kernel *k, nvf_xkind kind, const nvf_expr *a, const nvf_expr *b) {
  int64_t v;
  if (a->kind == NVF_CONST && b->kind == NVF_CONST && fold_constants(kind, a->value, b->value, &v))
    return nvf_x(k, NVF_CONST, 0, v);
  if (is_const(b, 0) && (kind == NVF_ADD || kind == NVF_SUB)) return a;
  if (is_const(a, 0) && kind == NVF_ADD) return b;
  if (is_const(b, 1) && (kind == NVF_MUL || kind == NVF_DIV)) return a;
  if (is_const(a, 1) && kind == NVF_MUL) return b;
  if (kind == NVF_MUL && (is_const(a, 0) || is_const(b, 0))) return nvf_x(k, NVF_CONST, 0, 0);
  if (kind == NVF_MOD && is_const(b, 1)) return nvf_x(k, NVF_CONST, 0, 0);
  nvf_expr *x = NVB_NEW(k->arena, nvf_expr);
  *x = (nvf_expr){ .kind = kind, .a = a, .b = b };
  return x;
}

static nvf_cond *copy_cond(nvf_kernel *k, const nvf_cond *c, int rel, int tile) {
  nvf_cond *n = NVB_NEW(k->arena, nvf_cond), none = { 0 };
  if (!c) c = &none;
  *n = (nvf_cond){ .nrel = c->nrel, .ntile = c->ntile };
  n->rel = NVB_NEWN(k->arena, struct nvf_rel, c->nrel + rel);
  n->tile = NVB_NEWN(k->arena, int, c->ntile + tile);
  if (c->nrel) memcpy(n->rel, c->rel, sizeof *c->rel * (size_t)c->nrel);
  if (c->ntile) memcpy(n->tile, c->tile, sizeof *c->tile * (size_t)c->ntile);
  return n;
}

const nvf_cond *nvf_and_rel(nvf_kernel *k, const nvf_cond *c, nvf_cmp cmp, const nvf_expr *a, const nvf_expr *b) {
  nvf_cond *n = copy_cond(k, c, 1, 0);
  n->rel[n->nrel++] = (struct nvf_rel){ cmp, a, b };
  return n;
}

const nvf_cond *nvf_and_tile(nvf_kernel *k, const nvf_cond *c, int tile) {
  nvf_cond *n = copy_cond(k, c, 0, 1);
  n->tile[n->ntile++] = tile;
  return n;
}

/* ---- schedules */
nvf_schedule *nvf_schedule_new(nvf_kernel *k) { return NVB_NEW(k->arena, nvf_schedule); }

nvf_binding *nvf_bind_name(nvf_kernel *k, nvf_schedule *s, int name) {
  if (name >= s->nbind) {
    nvf_binding *at = NVB_NEWN(k->arena, nvf_binding, k->nname);
    if (s->nbind) memcpy(at, s->bind, sizeof *at * (size_t)s->nbind);
    s->bind = at;
    s->nbind = k->nname;
  }
  return &s->bind[name];
}

void nvf_add_hint(nvf_kernel *k, nvf_schedule *s, int stmt, nvf_hint hint, int64_t value) {
  MORE(k, s->hint, s->nhint);
  s->hint[s->nhint++] = (nvf_note){ stmt, hint, value };
}

/* ---- sizes of a grid */
static int64_t value_of(const nvf_schedule *s, int name) {
  return name < s->nbind && s->bind[name].kind == NVF_BINT ? s->bind[name].value : 0;
}

int64_t nvf_eval(const nvf_kernel *k, const nvf_schedule *s, const nvf_expr *x, const uint64_t *args,
                 const int64_t *grid) {
  switch (x->kind) {
  case NVF_CONST: return x->value;
  case NVF_PARAM: return (int64_t)args[x->id];
  case NVF_NAME: return value_of(s, x->id);
  case NVF_GRID: return grid ? grid[x->id] : 0;
  case NVF_AXIS:
  case NVF_VAR:
  case NVF_TILE: return 0;
  default: break;
  }
  int64_t a = nvf_eval(k, s, x->a, args, grid), b = nvf_eval(k, s, x->b, args, grid), v = 0;
  if (!fold_constants(x->kind, a, b, &v) && x->kind != NVF_DIV && x->kind != NVF_MOD) v = 0;
  return v;
}

int64_t nvf_blocks(const nvf_kernel *k, const nvf_schedule *s, const uint64_t *args) {
  int64_t sum = 0;
  for (int p = 0; p < k->npart; p++) {
    int64_t n = 1;
    for (int g = 0; g < k->part[p].ngrid; g++) {
      int64_t e = nvf_eval(k, s, k->part[p].grid[g].extent, args, NULL);
      n *= e > 0 ? e : 0;
    }
    sum += n;
  }
  return sum;
}
