/* Counted things by hash, with the idle ones in a list by age. Decides nothing else. */
#include "dispatch/shelf.h"

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
}

static void rest(nvd_shelf *s, nvd_item *c) {
  c->younger = NULL;
  c->older = s->youngest;
  *(c->older ? &c->older->younger : &s->oldest) = c;
  s->youngest = c;
  s->idle++;
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

void nvd_shelf_give(nvd_shelf *s, nvd_item *item) {
  nvd_item *gone = NULL;
  if (!item)
    return;
  pthread_mutex_lock(&s->lock);
  if (--item->refs == 0) {
    rest(s, item);
    if (s->idle > s->keep)
      gone = oldest_out(s);
  }
  pthread_mutex_unlock(&s->lock);
  if (gone)
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
