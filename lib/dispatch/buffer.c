/* Allocates host memory for arrays and for temporaries of programs. All but the first small blocks lie side by side in
   huge pages, which the system hands out in the time of some forty small ones. Freed blocks are cached by size class
   and reused. When the cache exceeds NVM_MEM_CACHE, the least recently freed blocks are released, and the whole cache
   is released before an allocation fails. Never evaluates anything to free memory. */
#include <sys/mman.h>
#include "base/err.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/refs.h"
#include "base/settings.h"
#include "dispatch/cuda/device.h"
#include "dispatch/size_class.h"

enum { LINE = 64, HUGE_PAGE = 2 << 20, MAPPED_FROM = 4 << 20, NCLASS = 54 * NVD_CLASS_STEPS };
#ifdef __SANITIZE_ADDRESS__ /* AddressSanitizer can only detect a write beyond a block if no other lies there */
enum { SHARES = 0 };
#else
enum { SHARES = 1 };
#endif
enum { SHARED_AFTER = 64 << 10 }; /* bytes of small blocks that come from the C heap: small programs need no more */

/* The head of some huge pages that small blocks share: how many are there, and where the rest begins. */
enum { REGION = 4 * HUGE_PAGE };
typedef struct region { int64_t blocks; size_t used; } region;

/* A block of this allocator. A small block's data follows this header; a large block is mapped separately. A cached
   block is in two lists. */
typedef enum { OF_HEAP, OF_REGION, MAPPED } origin;
typedef struct mem_block {
  nvd_buf b;
  struct mem_block *next, *prev;     /* in its size class, most recently freed first */
  struct mem_block *younger, *older; /* among all cached blocks, by the time of freeing */
  origin origin;
} mem_block;
enum { HEAD = (sizeof(mem_block) + LINE - 1) / LINE * LINE };

static struct {
  nvb_lock lock;
  mem_block *of_class[NCLASS], *youngest, *oldest;
  int64_t cached, used, peak;
  region *region; /* from which small blocks are taken; NULL: none yet */
  size_t small;   /* bytes of small blocks that have come from the C heap */
} heap = { .lock = NVB_LOCK(HEAP) };
NVB_HOLD_AT_FORK(heap.lock);

/* Mapped blocks are whole huge pages. All blocks of a class have the same capacity. */
static int class_of(size_t bytes, size_t *cap) {
  return nvd_class_of(bytes > MAPPED_FROM ? (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1) : bytes, LINE, cap);
}

/* ---- the lists, under the lock */
static void unlist_block(mem_block *c) {
  size_t cap;
  int k = class_of(c->b.cap, &cap);
  *(c->prev ? &c->prev->next : &heap.of_class[k]) = c->next;
  if (c->next) c->next->prev = c->prev;
  *(c->older ? &c->older->younger : &heap.oldest) = c->younger;
  *(c->younger ? &c->younger->older : &heap.youngest) = c->older;
  heap.cached -= (int64_t)c->b.cap;
}

static void enlist_block(mem_block *c) {
  size_t cap;
  int k = class_of(c->b.cap, &cap);
  c->prev = c->younger = NULL;
  c->next = heap.of_class[k];
  c->older = heap.youngest;
  if (c->next) c->next->prev = c;
  *(c->older ? &c->older->younger : &heap.oldest) = c;
  heap.of_class[k] = heap.youngest = c;
  heap.cached += (int64_t)c->b.cap;
}

/* ---- huge pages, under the lock */
static char *map_huge(size_t bytes, size_t align) {
  if (nvb_alloc_fails()) return NULL;
  char *p = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  size_t before = (size_t)(-(uintptr_t)p & (align - 1));
  if (before) munmap(p, before);
  munmap(p + before + bytes, align - before);
#ifdef MADV_HUGEPAGE
  madvise(p + before, bytes, MADV_HUGEPAGE);
#endif
  return p + before;
}
/* Takes bytes of the region that is being filled, or of a new one. NULL: they come from the C heap. */
static void *take_of_region(size_t bytes) {
  if (!SHARES || (heap.small < SHARED_AFTER && (heap.small += bytes) < SHARED_AFTER)) return NULL;
  if (!heap.region || heap.region->used + bytes > REGION) {
    region *r = (void *)map_huge(REGION, REGION);
    if (!r) return NULL;
    *r = (region){ .used = LINE };
    heap.region = r;
  }
  char *at = (char *)heap.region + heap.region->used;
  heap.region->used += bytes;
  heap.region->blocks++;
  return at;
}
/* The bytes of the block that was taken last are taken again. */
static void give_to_region(char *at, size_t bytes) {
  region *r = (void *)((uintptr_t)at & ~(uintptr_t)(REGION - 1));
  if (at + bytes == (char *)r + r->used) r->used -= bytes;
  if (--r->blocks) return;
  if (r == heap.region) heap.region = NULL;
  munmap(r, REGION);
}

/* ---- blocks */
static mem_block *make_block(size_t cap) {
  int mapped = cap >= MAPPED_FROM;
  size_t bytes = HEAD + (mapped ? 0 : cap);
  mem_block *c = mapped ? NULL : take_of_region(bytes);
  origin from = mapped ? MAPPED : c ? OF_REGION : OF_HEAP;
  if (!c && !(c = nvb_alloc_aligned(LINE, bytes))) return NULL;
  c->origin = from;
  c->b.cap = cap;
  c->b.data = mapped ? map_huge(cap, HUGE_PAGE) : (char *)c + HEAD;
  if (c->b.data) return c;
  nvb_free(c);
  return NULL;
}
static void destroy_block(mem_block *c) {
  if (c->origin == OF_REGION) {
    give_to_region((char *)c, HEAD + c->b.cap);
    return;
  }
  if (c->origin == MAPPED) munmap(c->b.data, c->b.cap);
  nvb_free(c);
}

/* Releases cached blocks, the least recently freed first, until at most `keep` bytes are left. */
static void drop_to(int64_t keep) {
  while (heap.oldest && heap.cached > keep) {
    mem_block *c = heap.oldest;
    unlist_block(c);
    destroy_block(c);
  }
}

/* ---- allocating */
/* Takes a cached block of class k, or one that is at most half as large again, since touching new memory takes longer
   than most of what is done with it. NULL: there is none of at most `most` bytes. */
static mem_block *take_cached(int k, int64_t most) {
  enum { LARGER = NVD_CLASS_STEPS / 2 };
  mem_block *c = NULL;
  for (int i = k; i <= k + LARGER && i < NCLASS && !c; i++) c = heap.of_class[i];
  if (!c || (int64_t)c->b.cap > most) return NULL;
  unlist_block(c);
  return c;
}
nvd_buf *nvd_buf_new(size_t bytes) {
  if (bytes > (size_t)PTRDIFF_MAX / 2) return nvb_fail(NVM_ERR_MEMORY, "[memory] %zu bytes for one array", bytes), NULL;
  size_t cap;
  int k = class_of(bytes, &cap);
  int64_t size = (int64_t)cap, limit = nvb_int(NVB_MEM_LIMIT);
  nvb_lock_take(&heap.lock);
  int64_t used = heap.used;
  mem_block *c = NULL;
  if (!limit || size <= limit - used) {
    if (!(c = take_cached(k, limit ? limit - used : INT64_MAX))) {
      if (limit) drop_to(limit - used - size);
      if (!(c = make_block(cap)) && heap.oldest) {
        drop_to(0);
        c = make_block(cap);
      }
    }
  }
  if (c && (heap.used += (int64_t)c->b.cap) > heap.peak) heap.peak = heap.used;
  nvb_lock_give(&heap.lock);
  if (!c && limit && size > limit - used)
    nvb_fail(NVM_ERR_MEMORY, "[memory] %zu bytes more than the %lld in use would exceed NVM_MEM_LIMIT, %lld", bytes,
             (long long)used, (long long)limit);
  else if (!c)
    nvb_fail(NVM_ERR_MEMORY, "[memory] out of memory: %zu bytes more than the %lld in use", bytes, (long long)used);
  if (!c) return NULL;
  c->b = (nvd_buf){ .refs = 1, .bytes = bytes, .cap = c->b.cap, .data = c->b.data };
  return &c->b;
}

nvd_buf *nvd_buf_few(size_t bytes, void **beside, size_t more) {
  enum { UNIT = 16, FIRST = (sizeof(nvd_buf) + UNIT - 1) / UNIT * UNIT };
  more = (more + UNIT - 1) / UNIT * UNIT;
  char *at = nvb_alloc(FIRST + more + bytes);
  if (!at) return nvb_fail_memory(), NULL;
  nvd_buf *b = (void *)at;
  *b = (nvd_buf){ .refs = 1, .bytes = bytes, .data = at + FIRST + more };
  *beside = at + FIRST;
  return b;
}

static void release_nothing(void *owner) { (void)owner; }

nvd_buf *nvd_buf_wrap(void *data, size_t bytes, void (*release)(void *owner), void *owner) {
  mem_block *c = nvb_alloc_aligned(LINE, HEAD);
  if (!c) return nvb_fail_memory(), NULL;
  c->b = (nvd_buf){ .refs = 1,
                    .bytes = bytes,
                    .cap = bytes,
                    .data = data,
                    .release = release ? release : release_nothing,
                    .owner = owner };
  return &c->b;
}

nvd_buf *nvd_buf_ref(nvd_buf *b) {
  atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
  return b;
}

void nvd_buf_unref(nvd_buf *b) {
  if (!b || !nvb_let_go(&b->refs)) return;
  if (b->device) {
    nvd_buf_give_on(b);
    return;
  }
  if (!b->cap && !b->release) {
    nvb_free(b);
    return;
  }
  mem_block *c = (mem_block *)b;
  if (b->release) {
    b->release(b->owner);
    nvb_free(c);
    return;
  }
  int64_t keep = nvb_int(NVB_MEM_CACHE);
  nvb_lock_take(&heap.lock);
  heap.used -= (int64_t)b->cap;
  enlist_block(c);
  drop_to(keep);
  nvb_lock_give(&heap.lock);
}

/* ---- counters */
static int64_t read_locked(const int64_t *p) {
  nvb_lock_take(&heap.lock);
  int64_t x = *p;
  nvb_lock_give(&heap.lock);
  return x;
}
int64_t nvd_mem_used(void) { return read_locked(&heap.used); }
int64_t nvd_mem_kept(void) { return read_locked(&heap.cached); }
int64_t nvd_mem_peak(void) { return read_locked(&heap.peak); }

void nvd_mem_reset_peak(void) {
  nvb_lock_take(&heap.lock);
  heap.peak = heap.used;
  nvb_lock_give(&heap.lock);
}

void nvd_mem_trim(void) {
  nvb_lock_take(&heap.lock);
  drop_to(0);
  nvb_lock_give(&heap.lock);
}
