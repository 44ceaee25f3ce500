/* Names processes, so that another process can tell later, perhaps on another machine, whether a named one still
   runs. */
#ifndef NVM_BASE_PROCESS_H
#define NVM_BASE_PROCESS_H

enum { NVB_PROCESS_NAME = 128 };
typedef enum nvb_life {
  NVB_ENDED,
  NVB_LIVES,
  NVB_ELSEWHERE /* unknown: the name is of another machine, boot or container, or is not valid */
} nvb_life;
/* the calling process; a forked child has its own name. Contains no blanks. */
void nvb_process_name(char name[NVB_PROCESS_NAME]);
nvb_life nvb_process_look(const char *name);
#endif
