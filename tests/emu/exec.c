/* The executor. A thread runs until it meets others (a barrier, a shuffle) or ends; nothing else interrupts it, so a
   missing barrier shows as a wrong result. What a GPU would hang on or leave undefined is an error that names the
   line. */
#include "cubin.h"
#include "exec.h"
#include "world.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum {
  WARP = 32,
  MAX_BLOCK = 1024,
  MAX_THREADS = 8192,
  STACK = 256 << 10,
  PAGE = 4096,
  POISON = 0xff,
  PATIENCE = 10000
};

/* ---- fibers: only the stack pointer changes hands */
#if defined __x86_64__
__asm__(".text\n.globl emu_switch\n.hidden emu_switch\n.type emu_switch,@function\nemu_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n.size emu_switch,.-emu_switch\n");
enum { RETURN = 6, FRAME = 8 };
#elif defined __aarch64__
__asm__(
    ".text\n.globl emu_switch\n.hidden emu_switch\n.type emu_switch,%function\nemu_switch:\n"
    "sub sp,sp,#160\nstp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp x25,x26,[sp,#48]\n"
    "stp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\nstp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\nstp d12,d13,[sp,#128]\n"
    "stp d14,d15,[sp,#144]\nmov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
    "ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\nldp x27,x28,[sp,#64]\n"
    "ldp x29,x30,[sp,#80]\nldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\nldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\n"
    "add sp,sp,#160\nret\n.size emu_switch,.-emu_switch\n");
enum { RETURN = 11, FRAME = 20 };
#else
#error "the emulator needs a switch of stacks for this CPU"
#endif
void emu_switch(void **from, void *to);

typedef enum state { FRESH, READY, IN_WARP, IN_BLOCK, IN_CLUSTER, DONE } state;
typedef struct lane {
  state state;
  void *sp; /* where it waits */
  int fiber;
  emu_kind kind;
  unsigned mask, from;
  int line;
  unsigned long long value, result;
} lane;

/* The one cluster of blocks that runs, most often of one block; a process runs one kernel at a time. */
static struct {
  pthread_mutex_t lock;
  const emu_kernel *k;
  void **params;
  emu_dim threads, block; /* block: the first of the cluster */
  int n, all;             /* threads of a block, of the cluster */
  lane lane[MAX_THREADS]; /* block by block */
  int current;            /* thread that runs */
  int turns;              /* threads that gave theirs away in this round */
  void *main;             /* the scheduler's stack */
  char *stacks;
  int idle[MAX_THREADS], nidle;
  uint64_t seed;
  int seeded, running, code;
  sigjmp_buf out;
} w = { .lock = PTHREAD_MUTEX_INITIALIZER };
static char message[512];

const char *emu_error(void) { return message; }
void emu_seed(uint64_t seed) {
  w.seed = seed;
  w.seeded = 1;
}

__attribute__((format(printf, 2, 3))) static int say(int code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(message, sizeof message, fmt, ap);
  va_end(ap);
  fprintf(stderr, "emulator: %s\n", message);
  return code;
}
static int complain(int thread, const char *what) {
  return say(EMU_LAUNCH_FAILURE, "%s, block (%u, %u, %u), warp %d, lane %d: %s", w.k->name, w.block.x, w.block.y,
             w.block.z, thread / WARP, thread % WARP, what);
}

/* A fiber runs one thread after the other; which one is told by `current` when it is switched to. */
static void fiber_main(void) {
  for (;;) {
    w.k->call(w.params);
    lane *l = &w.lane[w.current];
    l->state = DONE;
    w.idle[w.nidle++] = l->fiber;
    emu_switch(&l->sp, w.main);
  }
}

static void *fiber_start(int fiber) {
  void **top = (void **)(w.stacks + (size_t)(fiber + 1) * STACK) - 2; /* 16-byte aligned */
  void **sp = top - FRAME;
  memset(sp, 0, FRAME * sizeof *sp);
  sp[RETURN] = (void *)(uintptr_t)fiber_main;
  return sp;
}

static void resume(int thread) {
  lane *l = &w.lane[thread];
  emu_dim t = w.threads;
  if (l->state == FRESH) {
    l->fiber = w.idle[--w.nidle];
    l->sp = fiber_start(l->fiber);
  }
  w.current = thread;
  w.k->world->rank = (unsigned)(thread / w.n);
  w.k->world->block = w.block;
  w.k->world->block.x += w.k->world->rank;
  thread %= w.n;
  w.k->world->thread = (emu_dim){ (unsigned)thread % t.x, (unsigned)thread / t.x % t.y, (unsigned)thread / t.x / t.y };
  emu_switch(&w.main, l->sp);
}

static unsigned long long meet(emu_kind kind, unsigned mask, unsigned long long value, unsigned from, int line) {
  lane *l = &w.lane[w.current];
  l->state = kind == EMU_TURN ? READY : kind == EMU_BLOCK ? IN_BLOCK : kind == EMU_CLUSTER ? IN_CLUSTER : IN_WARP;
  l->kind = kind;
  l->mask = mask;
  l->value = value;
  l->from = from;
  l->line = line;
  w.turns += kind == EMU_TURN;
  emu_switch(&l->sp, w.main);
  return l->result;
}

__attribute__((noreturn)) static void leave(int code) {
  w.code = code;
  siglongjmp(w.out, 1);
}

static void reach(int rank, int line) {
  char text[96];
  int some = 0;
  for (int i = 0; rank >= 0 && rank < w.k->cluster && i < w.n && !some; i++)
    some = w.lane[rank * w.n + i].state != DONE;
  if (some) return;
  snprintf(text, sizeof text, "reads or writes in block %d of its cluster, which is not there, line %d", rank, line);
  complain(w.current, text);
  leave(EMU_LAUNCH_FAILURE);
}

/* ---- meetings */
static const char *const kind_name[] = { "a block barrier", "a warp barrier",    "a shuffle",
                                         "a ballot",        "a cluster barrier", "a loop" };
static int mismatch(int a, int b) {
  char text[256];
  const lane *p = &w.lane[a], *q = &w.lane[b];
  if (q->state == DONE)
    snprintf(text, sizeof text, "waits in %s of line %d, but thread %d has ended", kind_name[p->kind], p->line, b);
  else
    snprintf(text, sizeof text, "waits in %s of line %d (mask %08x), thread %d in %s of line %d (mask %08x)",
             kind_name[p->kind], p->line, p->mask, b, kind_name[q->kind], q->line, q->mask);
  return complain(a, text);
}

/* Blocks of a cluster wait for each other; threads that have ended are not waited for, but a block whose memory others
   may read has not ended as a whole. */
static int is_missed(int i, state in) {
  int waits = 0;
  if (w.lane[i].state != DONE || in != IN_CLUSTER) return 1;
  for (int j = i - i % w.n; j < i - i % w.n + w.n && !waits; j++) waits = w.lane[j].state == in;
  return !waits;
}

/* The threads [lo, hi) have all come to a stop: 0, and they may go on, if all wait for the same. */
static int release(int lo, int hi, state in) {
  int first = lo;
  while (w.lane[first].state != in) first++;
  const lane *l = &w.lane[first];
  unsigned long long count = 0, ballot = 0;
  for (int i = lo; i < hi; i++) {
    const lane *q = &w.lane[i];
    if (!is_missed(i, in)) continue;
    if (q->state != in || q->kind != l->kind || q->line != l->line || q->mask != l->mask) return mismatch(first, i);
    count += q->value != 0;
    if (in == IN_WARP) ballot |= (unsigned long long)(q->value != 0) << (i - lo);
  }
  unsigned all = hi - lo >= WARP ? ~0u : (1u << (hi - lo)) - 1;
  if (in == IN_WARP && (l->mask & all) != all) return complain(lo, "a mask that leaves out lanes which take part");
  for (int i = lo; i < hi; i++) {
    lane *q = &w.lane[i];
    if (q->state != in) continue;
    if (q->kind == EMU_SHUFFLE && (int)q->from >= hi - lo)
      return complain(i, "a shuffle from a lane that is not there");
    q->result = q->kind == EMU_SHUFFLE ? w.lane[lo + (int)q->from].value : q->kind == EMU_BALLOT ? ballot : count;
    q->state = READY;
  }
  return 0;
}

/* Runs a warp until all of it has ended, or waits for the block or for what another warp does. */
static int run_warp(int lo, int hi) {
  for (;;) {
    int in_warp = 0, ready = 0, turn = w.seed ? (int)((w.seed * 0x9e3779b97f4a7c15u >> 40) & (WARP - 1)) : 0;
    for (int j = 0; j < WARP; j++) {
      int i = lo + (j ^ turn);
      if (i < hi && (w.lane[i].state == FRESH || w.lane[i].state == READY)) resume(i);
    }
    for (int i = lo; i < hi; i++) {
      in_warp += w.lane[i].state == IN_WARP;
      ready += w.lane[i].state == READY;
    }
    if (!in_warp || ready) return 0; /* whether the rest agrees is seen when the block stands still */
    int code = release(lo, hi, IN_WARP);
    if (code) return code;
  }
}

/* i -> (a i + b) mod n: each number once */
typedef struct order { uint64_t a, b, n; } order;
static order shuffled(uint64_t n, uint64_t seed) {
  order o = { 1, 0, n };
  if (!seed || n < 2) return o;
  o.a = seed * 0xd1342543de82ef95u % n | 1;
  o.b = seed * 0x2545f4914f6cdd1du % n;
  for (uint64_t x, y, t;; o.a += 2) {
    for (x = o.a, y = n; y; t = x % y, x = y, y = t) {}
    if (x == 1) return o;
  }
}
__extension__ typedef unsigned __int128 u128;
static uint64_t at(const order *o, uint64_t i) { return (uint64_t)(((u128)o->a * i + o->b) % o->n); }

/* Blocks whose threads wait at a barrier go on; where there are none, the cluster does. */
static int release_blocks(void) {
  int some = 0;
  for (int from = 0; from < w.all; from += w.n) {
    int waits = 0;
    for (int i = from; i < from + w.n; i++) waits |= w.lane[i].state == IN_BLOCK;
    int code = waits ? release(from, from + w.n, IN_BLOCK) : 0;
    if (code) return code;
    some |= waits;
  }
  return some ? 0 : release(0, w.all, IN_CLUSTER);
}

static int run_cluster(size_t shared) {
  int warps = (w.n + WARP - 1) / WARP, blocks = w.all / w.n;
  unsigned apart = w.k->world->apart;
  order o = shuffled((uint64_t)(warps * blocks), w.seed);
  if (w.k->shared) memset(w.k->shared, POISON, apart * (size_t)(blocks - 1) + shared + 256);
  for (int i = 0; i < w.all; i++) w.lane[i].state = FRESH;
  w.nidle = 0;
  for (int i = w.all; i-- > 0;) w.idle[w.nidle++] = i;
  for (int idle = 0;;) {
    w.turns = 0;
    for (int i = 0; i < warps * blocks; i++) {
      int j = (int)at(&o, (uint64_t)i), from = j / warps * w.n, lo = from + j % warps * WARP;
      int code = run_warp(lo, lo + WARP < from + w.n ? lo + WARP : from + w.n);
      if (code) return code;
    }
    int done = 0, ready = 0;
    for (int i = 0; i < w.all; i++) {
      done += w.lane[i].state == DONE;
      ready += w.lane[i].state == READY;
    }
    if (done == w.all) break;
    idle = ready && w.turns == ready ? idle + 1 : 0; /* nobody who ran did more than look */
    if (idle > PATIENCE) return complain(0, "threads wait for what never comes");
    if (ready) continue;
    int code = release_blocks();
    if (code) return code;
  }
  for (size_t i = 0; w.k->shared && i < 256 * (size_t)blocks; i++)
    if ((unsigned char)w.k->shared[i / 256 * apart + shared + i % 256] != POISON)
      return complain((int)(i / 256) * w.n, "wrote behind its shared memory");
  return 0;
}

/* ---- what the hardware would report */
static void *counter(void *context) {
#if defined __x86_64__
  return (void *)(uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
  return (void *)(uintptr_t)((ucontext_t *)context)->uc_mcontext.pc;
#endif
}

/* ", line 12" of the source; empty where it cannot be found out. */
static void find_line(char *out, size_t n, void *pc) {
  Dl_info info;
  char command[256], line[256] = "";
  *out = 0;
  if (!dladdr(pc, &info) || !info.dli_fname || !strstr(info.dli_fname, "/fd/")) return;
  snprintf(command, sizeof command, "addr2line -e /proc/%d%s 0x%llx 2>/dev/null", (int)getpid(),
           strstr(info.dli_fname, "/fd/"), (unsigned long long)((char *)pc - (char *)info.dli_fbase));
  FILE *f = popen(command, "r");
  if (f && fgets(line, sizeof line, f) && strrchr(line, ':') && atoi(strrchr(line, ':') + 1) > 0)
    snprintf(out, n, ", line %d", atoi(strrchr(line, ':') + 1));
  if (f) pclose(f);
}

static void trap(int sig, siginfo_t *info, void *context) {
  if (sig == SIGSEGV && memory_admit(info->si_addr)) return;
  if (!w.running) {
    signal(sig, SIG_DFL);
    raise(sig);
    return;
  }
  int address = sig == SIGSEGV || sig == SIGBUS, division = sig == SIGFPE;
  char text[160], line[32], at[32] = "";
  find_line(line, sizeof line, counter(context));
  if (address) snprintf(at, sizeof at, " %p", info->si_addr);
  snprintf(text, sizeof text, "%s%s%s",
           address    ? "an illegal address"
           : division ? "an integer division by 0"
                      : "undefined: an access that is not aligned, or beside an array",
           at, line);
  complain(w.current, text);
  leave(address ? EMU_ILLEGAL_ADDRESS : division ? EMU_ILLEGAL_INSTRUCTION : EMU_MISALIGNED);
}

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
enum { SIGNALS = sizeof signals / sizeof *signals };

static int make_stacks(void) {
  if (w.stacks) return 0;
  char *p = mmap(NULL, (size_t)MAX_THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
  if (p == MAP_FAILED) return say(EMU_LAUNCH_FAILURE, "no memory for stacks");
  for (int i = 0; i < MAX_THREADS; i++) mprotect(p + (size_t)i * STACK, PAGE, PROT_NONE);
  w.stacks = p;
  return 0;
}

static int run_grid(emu_dim n, size_t shared) {
  uint64_t together = (uint64_t)w.k->cluster, all = (uint64_t)n.x * n.y * n.z / together;
  order o = shuffled(all, w.seed);
  for (uint64_t i = 0; i < all; i++) {
    uint64_t b = at(&o, i) * together;
    w.block = (emu_dim){ (unsigned)(b % n.x), (unsigned)(b / n.x % n.y), (unsigned)(b / n.x / n.y) };
    int code = run_cluster(shared);
    if (code) return code;
  }
  return 0;
}

static int registers(int threads) { /* of each of so many on a multiprocessor */
  enum { ALL = 65536, MOST = 255, GRAIN = 8 };
  return ALL / threads < MOST ? ALL / threads / GRAIN * GRAIN : MOST;
}

static void nothing(void) {}
int emu_execute(const emu_kernel *k, emu_dim blocks, emu_dim threads, size_t shared, void **params,
                void (*follow)(void)) {
  static char alternate[64 << 10];
  uint64_t n = (uint64_t)threads.x * threads.y * threads.z;
  pthread_mutex_lock(&w.lock);
  if (!w.seeded) emu_seed(getenv("NVM_EMU_SEED") ? strtoull(getenv("NVM_EMU_SEED"), NULL, 10) : 1);
  int code = make_stacks();
  size_t apart = (shared + 256 + 1023) / 1024 * 1024, ranks = (size_t)k->cluster;
  w.k = k;
  w.params = params;
  w.threads = threads;
  w.n = (int)n;
  w.all = (int)(n * ranks);
  if (!code && (blocks.x % ranks || n * ranks > MAX_THREADS || (ranks - 1) * apart + shared + 4096 > EMU_SHARED_ALL))
    code = say(EMU_LAUNCH_FAILURE, "%s: %u blocks in clusters of %d, of %llu threads and %zu bytes each", k->name,
               blocks.x, k->cluster, (unsigned long long)n, shared);
  if (!code &&
      (n == 0 || n > MAX_BLOCK || (k->max_threads && n > (uint64_t)k->max_threads) || shared + 4096 > EMU_SHARED))
    code = say(EMU_LAUNCH_FAILURE, "%s: %llu threads (bound %d), %zu bytes of shared memory", k->name,
               (unsigned long long)n, k->max_threads, shared);
  if (!code && shared && !k->shared)
    code = say(EMU_LAUNCH_FAILURE, "%s: %zu bytes of shared memory, but it has none", k->name, shared);
  if (!code) {
    struct sigaction old[SIGNALS], act = { .sa_sigaction = trap, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate }, before;
    sigaltstack(&stack, &before);
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &act, &old[i]);
    *k->world = (emu_world){ .threads = threads,
                             .blocks = blocks,
                             .apart = (unsigned)apart,
                             .meet = meet,
                             .reach = reach,
                             .follow = follow ? follow : nothing,
                             .registers = registers((int)n * k->least) };
    w.running = 1;
    code = sigsetjmp(w.out, 1) ? w.code : run_grid(blocks, shared);
    w.running = 0;
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &old[i], NULL);
    sigaltstack(&before, NULL);
  }
  pthread_mutex_unlock(&w.lock);
  return code;
}

/* ---- modules */
struct emu_module {
  void *handle;
  int fd;
};

emu_module *emu_module_load(const void *bytes) {
  const emu_cubin *c = bytes;
  if (memcmp(c->h.e_ident, ELFMAG, SELFMAG) != 0 || c->h.e_machine != EM_CUDA || c->h.e_shnum != CUBIN_SECTIONS) {
    say(0, "an image that the emulator's NVRTC did not make");
    return NULL;
  }
  const Elf64_Shdr *host = &c->section[CUBIN_HOST];
  size_t n = host->sh_size;
  const char *object = (const char *)bytes + host->sh_offset;
  emu_module *m = calloc(1, sizeof *m);
  char path[64];
  m->fd = memfd_create("kernel", MFD_CLOEXEC);
  snprintf(path, sizeof path, "/proc/self/fd/%d", m->fd);
  if (m->fd < 0 || write(m->fd, object, n) != (ssize_t)n || !(m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL))) {
    say(0, "an image that does not load: %s", m->fd < 0 ? "no memory" : dlerror());
    emu_module_unload(m);
    return NULL;
  }
  return m;
}

void emu_module_unload(emu_module *m) {
  if (m->handle) dlclose(m->handle);
  if (m->fd >= 0) close(m->fd);
  free(m);
}

const emu_kernel *emu_module_kernel(emu_module *m, const char *name) {
  char symbol[256];
  snprintf(symbol, sizeof symbol, "emu_kernel_%s", name);
  return dlsym(m->handle, symbol);
}
