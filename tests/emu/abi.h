/* What compiled kernel sources and the executor say to each other. Read by C and by C++ without any other header. */
#ifndef NVM_EMU_ABI_H
#define NVM_EMU_ABI_H

typedef struct emu_dim { unsigned x, y, z; } emu_dim;
/* What the threads of a warp or block do together. All of the group must arrive at the same line. */
typedef enum emu_kind {
  EMU_BLOCK,   /* a barrier of the block; result: how many threads gave a value other than 0 */
  EMU_WARP,    /* a barrier of the warp */
  EMU_SHUFFLE, /* result: the value of lane `from` */
  EMU_BALLOT,  /* result: a bit for each lane whose value is not 0 */
  EMU_CLUSTER, /* a barrier of the blocks of a cluster */
  EMU_TURN     /* no meeting: the thread waits for what others do, and looks again when all have had their turn */
} emu_kind;

enum { EMU_RANKS = 16 }; /* blocks of a cluster, at most */
/* Every loaded source has one of these, the executor writes it: whose turn it is, and the way back. */
typedef struct emu_world {
  emu_dim thread, block, threads, blocks;
  unsigned rank, apart; /* of the block in its cluster; bytes between the shared memory of two of its blocks */
  int registers;        /* of a thread, as many as launch bounds leave */
  int spare[EMU_RANKS], said[EMU_RANKS]; /* of a block: registers that were given back; threads that gave or took */
  void (*follow)(void);                  /* what was launched before this kernel has ended */
  void (*reach)(int rank, int line);     /* another block of the cluster, which must be there */
  unsigned long long (*meet)(emu_kind kind, unsigned mask, unsigned long long value, unsigned from, int line);
} emu_world;

typedef struct emu_kernel {
  const char *name;
  void (*call)(void **params); /* one thread */
  int nparam;
  const int *size;        /* bytes of each parameter */
  int max_threads, least; /* of __launch_bounds__; 0: not said; blocks of a multiprocessor, 1: not said */
  int cluster;            /* blocks of __cluster_dims__; 1: not said */
  char *shared;           /* dynamic shared memory: EMU_SHARED_ALL bytes; NULL: none */
  emu_world *world;
} emu_kernel;

/* What the emulated CUtensorMap holds; extents in elements, strides in bytes. */
typedef struct emu_map {
  void *address;
  int rank, size, span; /* bytes of an element, of what a swizzle turns */
  int tf32;             /* rounded to it on the way into shared memory */
  int box[5];
  long long extent[5], stride[5];
} emu_map;

/* The largest a block may ask for, and what shows writes behind it; of the blocks of a cluster */
enum { EMU_SHARED = 232448 + 4096, EMU_SHARED_ALL = EMU_RANKS * EMU_SHARED };
#endif
