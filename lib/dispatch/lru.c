/* Counted things by hash, with the idle ones in a list by age. Decides nothing else. */
#include "dispatch/lru.h"

static nvd_item **place_of(nvd_shelf *s, nvb_hash key) {
  nvd_item **at = &s->slot[key.lo % NVD_SHELF_SLOTS];
  while (*at && !nvb_hash_eq((*at)->key, key))
    at = &(*at)->next;
  return at;
}

static void wake(nvd_shelf *s, nvd_item *c) {
  *(c->older ? &c->older->younger : &s->oldest) = c->younger;
  *(c->younger ? &c->younger->older : &s->youngest) = c->older;
  s->idle--;
  s->idle_bytes -= c->bytes;
}

static void rest(nvd_shelf *s, nvd_item *c) {
  c->younger = NULL;
  c->older = s->youngest;
  *(c->older ? &c->older->younger : &s->oldest) = c;
  s->youngest = c;
  s->idle++;
  s->idle_bytes += c->bytes;
}

static nvd_item *hold(nvd_shelf *s, nvd_item *c) {
  if (c && c->refs++ == 0)
    wake(s, c);
  return c;
}

static nvd_item *oldest_out(nvd_shelf *s) {
  nvd_item *c = s->oldest;
  if (c) {
    wake(s, c);
    *place_of(s, c->key) = c->next;
  }
  return c;
}

nvd_item *nvd_shelf_take(nvd_shelf *s, nvb_hash key) {
  pthread_mutex_lock(&s->lock);
  nvd_item *c = hold(s, *place_of(s, key));
  pthread_mutex_unlock(&s->lock);
  return c;
}

nvd_item *nvd_shelf_enter(nvd_shelf *s, nvd_item *item) {
  pthread_mutex_lock(&s->lock);
  nvd_item **at = place_of(s, item->key), *there = hold(s, *at);
  if (!there) {
    item->refs = 1;
    item->next = NULL;
    *at = item;
  }
  pthread_mutex_unlock(&s->lock);
  if (there)
    s->destroy(item);
  return there ? there : item;
}

static nvd_item *one_too_many(nvd_shelf *s) {
  pthread_mutex_lock(&s->lock);
  nvd_item *gone = s->idle > s->keep || s->idle_bytes > s->keep_bytes ? oldest_out(s) : NULL;
  pthread_mutex_unlock(&s->lock);
  return gone;
}

void nvd_shelf_give(nvd_shelf *s, nvd_item *item) {
  if (!item)
    return;
  pthread_mutex_lock(&s->lock);
  int idle = --item->refs == 0;
  if (idle)
    rest(s, item);
  pthread_mutex_unlock(&s->lock);
  for (nvd_item *gone; idle && (gone = one_too_many(s));)
    s->destroy(gone);
}

void nvd_shelf_trim(nvd_shelf *s) {
  for (;;) {
    pthread_mutex_lock(&s->lock);
    nvd_item *gone = oldest_out(s);
    pthread_mutex_unlock(&s->lock);
    if (!gone)
      return;
    s->destroy(gone);
  }
}
