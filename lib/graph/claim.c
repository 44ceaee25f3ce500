/* Claims of pending nodes, for evaluations that run side by side and share some. An evaluation reads every node of its
   graph: until it has let go, the operands of these nodes stay. It computes some of them: until it has let go, no other
   evaluation starts to. Decides who may; never what is evaluated. */
#include "base/interrupt.h"
#include "base/lock.h"
#include "graph/graph.h"

/* The word of a node: the forks up to the process that wrote it, two flags, and how many evaluations read the node.
   What a process left in it means nothing in its children, where the threads of those evaluations do not exist. */
#define COMPUTED (1ull << 30) /* an evaluation computes the value */
#define VALUED (1ull << 31)   /* the value is there: the last evaluation that reads the node drops the operands */
#define READERS (COMPUTED - 1)
enum { FORKS = 32 };

static uint64_t word_now(uint64_t seen) {
  uint64_t forks = (uint64_t)atomic_load_explicit(&nvb_forks, memory_order_relaxed) << FORKS;
  return seen >> FORKS << FORKS == forks ? seen : forks | (seen & VALUED);
}
/* Replaces the word by (word & ~clear) + add. Returns the word before. */
static uint64_t change_word(nvg_node *n, uint64_t clear, uint64_t add) {
  uint64_t seen = atomic_load(&n->claim), now;
  do now = word_now(seen);
  while (!atomic_compare_exchange_weak(&n->claim, &seen, (now & ~clear) + add));
  return now;
}

int nvg_claim_read(nvg_claims *c, nvg_node *n) {
  NVB_PUSH(c->arena, c->read, n); /* first, since it may throw */
  uint64_t seen = atomic_load(&n->claim), now;
  do {
    now = word_now(seen);
    if (!(now & (VALUED | COMPUTED))) continue;
    c->read.n--;
    if (!(now & VALUED) && !c->busy) c->busy = nvg_node_ref(n);
    return 0;
  } while (!atomic_compare_exchange_weak(&n->claim, &seen, now + 1));
  return 1;
}

int nvg_claim_compute(nvg_claims *c, nvg_node *n) {
  NVB_PUSH(c->arena, c->computed, n);
  uint64_t seen = atomic_load(&n->claim), now;
  do {
    now = word_now(seen);
    if (!(now & (VALUED | COMPUTED))) continue;
    c->computed.n--;
    return 0;
  } while (!atomic_compare_exchange_weak(&n->claim, &seen, now | COMPUTED));
  return nvg_node_ref(n) != NULL;
}

int nvg_claim_valued(nvg_node *n) { return !(change_word(n, VALUED, VALUED) & READERS); }

static nvb_event let_go;

/* Backwards: a node comes behind the one through which it was found, so that one still holds it. */
void nvg_claims_drop(nvg_claims *c) {
  for (int i = 0; i < c->computed.n; i++) change_word(c->computed.at[i], COMPUTED, 0);
  while (c->read.n) {
    nvg_node *n = c->read.at[--c->read.n];
    uint64_t before = word_now(atomic_load(&n->claim));
    if (before & READERS) before = change_word(n, 0, -1ull);
    if ((before & READERS) == 1 && (before & VALUED)) nvg_node_drop_operands(n);
  }
  if (c->computed.n) nvb_event_tell(&let_go);
  while (c->computed.n) nvg_node_unref(c->computed.at[--c->computed.n]);
  nvg_node_unref(c->busy);
  c->busy = NULL;
}

static int is_free(void *n) { return !(word_now(atomic_load(&((nvg_node *)n)->claim)) & COMPUTED); }
int nvg_claims_wait(nvg_claims *c) {
  nvg_node *busy = c->busy;
  c->busy = NULL;
  nvg_claims_drop(c);
  int status = nvb_event_await(&let_go, is_free, busy);
  nvg_node_unref(busy);
  return status;
}
