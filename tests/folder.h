/* For suites that let the library write to a folder of their own. */
#ifndef NVM_TESTS_FOLDER_H
#define NVM_TESTS_FOLDER_H
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/store.h"

/* Removes the folder and the files in it, the store's too. */
static inline void sweep_folder(const char *dir) {
  char path[600];
  nvb_store_close();
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    unlink(path);
  }
  if (d) closedir(d);
  rmdir(dir);
}

/* The first line of what NVM_DUMP=run says of a step. */
static inline const char *run_line(const char *dir, int step) {
  static char line[512];
  snprintf(line, sizeof line, "%s/step%d.run", dir, step);
  FILE *f = fopen(line, "r");
  ck_assert_msg(f && fgets(line, sizeof line, f), "nothing is said of step %d", step);
  fclose(f);
  return line;
}
#endif
