/* Inside of the emulator's runtime: devices, their memory, streams and what is queued. One lock for all. */
#ifndef NVM_EMU_WORLD_H
#define NVM_EMU_WORLD_H
#include <stddef.h>
#include <stdint.h>
#include "exec.h"
#include "emu.h"

enum { /* CUDA's errors */
       OK = 0,
       INVALID_VALUE = 1,
       NO_MEMORY = 2,
       INVALID_CONFIGURATION = 9,
       INVALID_DIRECTION = 21,
       NO_DEVICE = 100,
       INVALID_DEVICE = 101,
       INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201,
       INVALID_HANDLE = 400,
       NOT_FOUND = 500,
       NOT_READY = 600,
       CAPTURE_UNSUPPORTED = 900,
       CAPTURE_INVALIDATED = 901,
       CAPTURE_UNMATCHED = 903,
       CAPTURE_UNJOINED = 904,
       CAPTURE_ISOLATION = 905,
       CAPTURE_IMPLICIT = 906,
       CAPTURED_EVENT = 907
};
enum { MAX_DEVICES = 16 };

/* ---- memory.c: device memory, closed to the host but while a kernel or a copy runs; full of 0xff at first; what is
   freed cannot be reached, nor what lies beside */
typedef struct pool { int device; size_t most, used; uint64_t threshold; } pool;
int memory_new(void **out, int device, size_t bytes, pool *p); /* INVALID_VALUE, NO_MEMORY */
int memory_free(void *at);                                     /* INVALID_VALUE: not an allocation's start */
int memory_device(const void *at, size_t bytes);               /* whose it is, all of it; -1: nobody's */
void memory_open(int device, int open); /* others are closed; what nothing holds open may stay so until memory_close */
int memory_admit(const void *at); /* opens the allocation of an open device at its first access; 0: it may not be had */
void memory_close(void);
int64_t memory_used(int device);
int64_t memory_total(void);
void memory_limit(int64_t bytes);
int pinned_new(void **out, size_t bytes);
int pinned_free(void *at);
int pinned(const void *at);

/* ---- queue.c: what is asked for waits in its stream until somebody needs it */
typedef struct function {
  const emu_kernel *k;
  int device, shared_most, gone, large_cluster;
  struct function *next;
} function;
typedef struct launch {
  const function *f;
  emu_dim grid, block;
  unsigned shared;
  int overlaps; /* it may start before what was launched before it ends */
  char *param;  /* own copies */
} launch;
typedef struct graph graph;
typedef struct op {
  enum { LAUNCH, COPY, FREE, MARK, GRAPH, HOST } kind; /* MARK: an event, or nothing */
  launch l;
  char *to;
  const char *from;
  size_t n;
  void *staged; /* COPY; FREE: to. staged: own copy of the source */
  graph *g;     /* GRAPH: own copy */
  int (*call)(const void *data);
  int device; /* HOST: a library's work; its data is `staged` */
} op;
typedef struct node { op o; graph *g; int index, ndep, *dep; } node;
typedef struct object { void (*destroy)(void *owned); void *owned; int refs; } object;
struct graph {
  node **node;
  int n;
  object **object;
  int nobject;
  uint64_t id;
  int device;
}; /* and executable */
typedef struct set { int *at, n; } set;                 /* of nodes */

typedef struct stream stream;
enum { MARKS = 1024 };
typedef struct point { stream *s; uint64_t seq; } point; /* in the work of a stream; s NULL: nowhere */
typedef struct item { op o; struct item *next; point *wait; int nwait; } item;
struct stream {
  int device, blocking, dead; /* blocking: 1, ordered with the legacy stream, which has 2 */
  stream *next;
  item *head, **tail;
  uint64_t asked, done; /* items */
  double marked[MARKS]; /* ms: when the latest ones were over, by their number */
  point *wait;
  int nwait; /* of the next item */
  graph *capture;
  int origin, mode, invalid;
  set front; /* being recorded: the next node comes behind `front` */
};
typedef struct event { point at; graph *capture; set front; int device; } event;

extern stream *streams;
stream *stream_new(int device, int blocking);
stream *stream_find(void *handle, int device); /* 1, 2 and NULL as CUDA means them; NULL: no stream */
int enqueue(stream *s, op o);                  /* or recorded; takes what o owns */
void wait_for(stream *s, point p);             /* the next item of s */
int is_done(point p);
int run_until(point p);  /* and what that waits for */
int run_all(int device); /* -1: everything */
int run_some(stream *s); /* at most one item: what a query sees */
int sticky(void);        /* the error that stays */
void make_sticky(int error);
int launch_make(launch *out, const function *f, const unsigned *grid, const unsigned *block, unsigned shared,
                void **param);
void op_free(op *o);
op op_copy(const op *o);
graph *graph_new(int device);
graph *graph_copy(const graph *g);
node *graph_add(graph *g, op o, set after);
void graph_free(graph *g);
set set_join(set a, set b); /* takes a */
extern int eager;
#endif
