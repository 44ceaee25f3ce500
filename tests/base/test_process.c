/* Processes by name: this one, a child, one that ended, those of elsewhere. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../suite.h"
#include "base/process.h"

START_TEST(test_this_one) {
  char name[NVB_PROCESS_NAME], again[NVB_PROCESS_NAME];
  nvb_process_name(name);
  nvb_process_name(again);
  ck_assert_str_eq(name, again);
  ck_assert_int_eq(strcspn(name, " \t\n"), strlen(name));
  ck_assert_int_eq(nvb_process_look(name), NVB_LIVES);
}
END_TEST

START_TEST(test_child) { /* alive, ended but not waited for, and gone */
  char mine[NVB_PROCESS_NAME], name[NVB_PROCESS_NAME] = "";
  int up[2];
  siginfo_t info;
  ck_assert(!pipe(up));
  pid_t pid = fork();
  if (!pid) {
    nvb_process_name(name);
    if (write(up[1], name, sizeof name) == sizeof name) pause();
    _exit(0);
  }
  nvb_process_name(mine);
  ck_assert_int_eq(read(up[0], name, sizeof name), sizeof name);
  ck_assert_str_ne(name, mine);
  ck_assert_int_eq(nvb_process_look(name), NVB_LIVES);
  kill(pid, SIGKILL);
  waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
  ck_assert_int_eq(nvb_process_look(name), NVB_ENDED);
  waitpid(pid, NULL, 0);
  ck_assert_int_eq(nvb_process_look(name), NVB_ENDED);
}
END_TEST

START_TEST(test_others) { /* names of no process that could be seen */
  char name[NVB_PROCESS_NAME];
  nvb_process_name(name);
  name[0] = name[0] == 'a' ? 'b' : 'a'; /* another boot */
  ck_assert_int_eq(nvb_process_look(name), NVB_ELSEWHERE);
  ck_assert_int_eq(nvb_process_look(""), NVB_ELSEWHERE);
  ck_assert_int_eq(nvb_process_look("unknown.17"), NVB_ELSEWHERE);
  nvb_process_name(name);
  *strrchr(name, '.') = 0; /* without its start */
  ck_assert_int_eq(nvb_process_look(name), NVB_ELSEWHERE);
}
END_TEST

SUITE("process", test_this_one, test_child, test_others)
