/* Divides a large graph into sections, each of which is searched on its own, so that the time to plan it is linear and
   the steps of a loop end in the same kernels. As in content-defined chunking, what lies around a place alone decides
   whether a section ends there: it ends where the fewest bytes pass that are not in memory already. So equal steps are
   divided alike. What passes the end of a section is stored. It never decides what is fused within a section. */
#include "fusion/planner.h"

/* CHEAP: operations from memory up to which a value is computed again where it is read. SHORT, LONG:
   the largest kernel has so many times the operations of the shortest section: on a CPU, where a launch is cheap, and
   small kernels of few texts are compiled sooner; on a GPU. */
enum { CHEAP = 1, SHORT = 8, LONG = 3 };

typedef struct division {
  const nvf_graph *graph;
  int shortest;          /* operations of a section, but of the last one; the longest has twice as many */
  int *last;             /* by node: the last node that reads it, perhaps through views and padding */
  uint8_t *kept, *store; /* by node: it is in memory; only because a section ends */
  uint8_t *work;         /* by node: operations from what is in memory, at most CHEAP + 1 */
  uint8_t *plain;        /* by node: no leaf is below it, so that it is computed where it is read */
  int *open, nopen;      /* nodes of the section that would have to be stored if it ended */
} division;

/* Whether it is a view, or padding by one value: its operand is stored, which is no larger. */
static int is_smaller_below(const nvf_graph *graph, const nvf_node *n) {
  return nvf_is_view(n->kind) || (n->kind == NVG_VPAD && !graph->node[n->in[1]].rank);
}
static int is_operation(const nvf_graph *graph, const nvf_node *n) {
  return !is_smaller_below(graph, n) && (nvf_is_made(n) || n->kind == NVG_VRED || n->kind == NVG_VSCAN);
}

static void find_last_readers(division *d) {
  for (int i = d->graph->n - 1; i >= 0; i--) {
    const nvf_node *n = &d->graph->node[i];
    for (int j = 0; j < n->nuser; j++) {
      int to = n->user[j], at = is_smaller_below(d->graph, &d->graph->node[to]) && d->last[to] > to ? d->last[to] : to;
      d->last[i] = at > d->last[i] ? at : d->last[i];
    }
  }
}

static void describe_node(division *d, int i) {
  const nvf_node *n = &d->graph->node[i];
  int work = is_operation(d->graph, n), plain = n->kind != NVG_VLEAF;
  for (int j = 0; j < n->nin; j++) {
    plain &= d->plain[n->in[j]];
    work += d->work[n->in[j]];
  }
  int kept = n->kind == NVG_VLEAF || n->kind == NVG_VRED || n->kind == NVG_VPICK || n->out || n->must;
  d->plain[i] = (uint8_t)plain;
  d->kept[i] = (uint8_t)kept;
  d->work[i] = (uint8_t)(kept || plain ? 0 : work <= CHEAP ? work : CHEAP + 1);
  if (!kept && !plain && is_operation(d->graph, n) && work > CHEAP) d->open[d->nopen++] = i;
}

static int passes(const division *d, int i, int place) { return d->open[i] < place && d->last[d->open[i]] >= place; }

static double bytes_passing(const division *d, int place) {
  double bytes = 0;
  for (int i = 0; i < d->nopen; i++) {
    const nvf_node *x = &d->graph->node[d->open[i]];
    if (passes(d, i, place)) bytes += (double)x->size * nvg_size(x->dtype);
  }
  return bytes;
}

/* The end of the section that begins with node `from`: the node after its last one. */
static int find_end(division *d, int from) {
  double least = 0;
  int end = d->graph->n, operations = 0;
  d->nopen = 0;
  for (int i = from; i < d->graph->n; i++) {
    int longer = is_operation(d->graph, &d->graph->node[i]);
    if (longer && operations >= d->shortest) {
      double bytes = bytes_passing(d, i);
      if (end == d->graph->n || bytes < least) least = bytes, end = i;
    }
    describe_node(d, i);
    operations += longer;
    if (operations > 2 * d->shortest) return end;
  }
  return d->graph->n;
}

/* What is open where the section ends is in memory from there on. */
static void store_passing(division *d, int end) {
  for (int i = 0; i < d->nopen; i++) {
    if (!passes(d, i, end)) continue;
    d->kept[d->open[i]] = d->store[d->open[i]] = 1;
    d->work[d->open[i]] = 0;
  }
}

int *nvf_sections_of(const nvf_graph *graph, uint8_t *store) {
  nvb_arena *a = graph->arena;
  int *section = NVB_NEWN(a, int, graph->n + 1), n = 0;
  int most = nvf_most_code(graph); /* more than its operations, by loads and constants */
  if (graph->n <= 2 * most || graph->ngemm) return section;
  division d = { .graph = graph,
                 .shortest = most / (graph->caps->kind == NVB_CPU ? SHORT : LONG),
                 .last = NVB_NEWN(a, int, graph->n + 1),
                 .open = NVB_NEWN(a, int, graph->n + 1),
                 .store = store,
                 .kept = nvb_get(a, (size_t)graph->n + 1),
                 .work = nvb_get(a, (size_t)graph->n + 1),
                 .plain = nvb_get(a, (size_t)graph->n + 1) };
  find_last_readers(&d);
  for (int from = 0, end; from < graph->n; from = end, n++) {
    end = find_end(&d, from);
    store_passing(&d, end);
    for (int i = from; i < end; i++) section[i] = n;
  }
  return section;
}
