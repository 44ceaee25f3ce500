/* A hash table of reference-counted items; items without references form a list in the order of their release. Decides
   only which idle item is evicted; knows nothing of what the items are. */
#include "dispatch/lru.h"

static nvd_lru_item **find_slot(nvd_lru *s, nvb_hash key) {
  nvd_lru_item **at = &s->slot[key.lo % NVD_LRU_SLOTS];
  while (*at && !nvb_hash_eq((*at)->key, key)) at = &(*at)->next;
  return at;
}

/* Takes an item that gets a reference, or is evicted, out of the list of idle items. */
static void take_from_idle(nvd_lru *s, nvd_lru_item *c) {
  *(c->older ? &c->older->younger : &s->oldest) = c->younger;
  *(c->younger ? &c->younger->older : &s->youngest) = c->older;
  s->idle--;
  s->idle_bytes -= c->bytes;
}

/* Puts an item that lost its last reference into the list of idle items, as the youngest. */
static void put_to_idle(nvd_lru *s, nvd_lru_item *c) {
  c->younger = NULL;
  c->older = s->youngest;
  *(c->older ? &c->older->younger : &s->oldest) = c;
  s->youngest = c;
  s->idle++;
  s->idle_bytes += c->bytes;
}

static nvd_lru_item *take_reference(nvd_lru *s, nvd_lru_item *c) {
  if (c && c->refs++ == 0) take_from_idle(s, c);
  return c;
}

static nvd_lru_item *oldest_out(nvd_lru *s) {
  nvd_lru_item *c = s->oldest;
  if (c) {
    take_from_idle(s, c);
    *find_slot(s, c->key) = c->next;
  }
  return c;
}

nvd_lru_item *nvd_lru_get(nvd_lru *s, nvb_hash key) {
  nvb_lock_take(&s->lock);
  nvd_lru_item *c = take_reference(s, *find_slot(s, key));
  nvb_lock_give(&s->lock);
  return c;
}

nvd_lru_item *nvd_lru_insert(nvd_lru *s, nvd_lru_item *item) {
  nvb_lock_take(&s->lock);
  nvd_lru_item **at = find_slot(s, item->key), *there = take_reference(s, *at);
  if (!there) {
    item->refs = 1;
    item->next = NULL;
    *at = item;
  }
  nvb_lock_give(&s->lock);
  if (there) s->destroy(item);
  return there ? there : item;
}

static nvd_lru_item *one_too_many(nvd_lru *s) {
  nvb_lock_take(&s->lock);
  nvd_lru_item *gone = s->idle > s->keep || s->idle_bytes > s->keep_bytes ? oldest_out(s) : NULL;
  nvb_lock_give(&s->lock);
  return gone;
}

void nvd_lru_release(nvd_lru *s, nvd_lru_item *item) {
  if (!item) return;
  nvb_lock_take(&s->lock);
  int idle = --item->refs == 0;
  if (idle) put_to_idle(s, item);
  nvb_lock_give(&s->lock);
  for (nvd_lru_item *gone; idle && (gone = one_too_many(s));) s->destroy(gone);
}

void nvd_lru_trim(nvd_lru *s) {
  for (;;) {
    nvb_lock_take(&s->lock);
    nvd_lru_item *gone = oldest_out(s);
    nvb_lock_give(&s->lock);
    if (!gone) return;
    s->destroy(gone);
  }
}
