/* Names a process by the boot id of its machine, its PID namespace, its PID and its start time, because PIDs are
   reused. */
#include "base/process.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_text(char *text, int size, const char *path) { /* reads the first line; returns 0 if there is none */
  FILE *f = fopen(path, "re");
  char *got = f ? fgets(text, size, f) : NULL;
  if (f) fclose(f);
  if (got) text[strcspn(text, "\n")] = 0;
  return got && *text;
}

/* Start time in clock ticks since the boot; 0 if the process has ended (a zombie too) or cannot be seen. */
static unsigned long long start_of(long pid) {
  char path[64], text[1024];
  unsigned long long ticks = 0;
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  const char *at = read_text(text, sizeof text, path) ? strrchr(text, ')') : NULL; /* the command's name ends here */
  if (!at || at[1] != ' ' || strchr("ZX", at[2])) return 0;
  for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  return at && sscanf(at, "%llu", &ticks) == 1 ? ticks : 0;
}

/* Writes "boot.namespace.", the scope in which a PID is unique; returns 0 if it is not known. */
static int pid_scope(char *text, size_t size) {
  char boot[64];
  struct stat s;
  if (!read_text(boot, sizeof boot, "/proc/sys/kernel/random/boot_id") || stat("/proc/self/ns/pid", &s)) return 0;
  snprintf(text, size, "%s.%llu.", boot, (unsigned long long)s.st_ino);
  return 1;
}

void nvb_process_name(char name[NVB_PROCESS_NAME]) {
  char level[NVB_PROCESS_NAME - 48];
  unsigned long long start = start_of((long)getpid());
  if (start && pid_scope(level, sizeof level))
    snprintf(name, NVB_PROCESS_NAME, "%s%ld.%llu", level, (long)getpid(), start);
  else snprintf(name, NVB_PROCESS_NAME, "unknown.%ld", (long)getpid());
}

nvb_life nvb_process_look(const char *name) {
  char level[NVB_PROCESS_NAME - 48];
  unsigned long long start;
  long pid;
  if (!pid_scope(level, sizeof level) || strncmp(name, level, strlen(level)) ||
      sscanf(name + strlen(level), "%ld.%llu", &pid, &start) != 2)
    return NVB_ELSEWHERE;
  return start && start_of(pid) == start ? NVB_LIVES : NVB_ENDED;
}
