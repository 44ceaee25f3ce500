/* Processes by name: what one writes down so that another one, later and maybe elsewhere, can say whether it lives. */
#ifndef NVM_BASE_PROCESS_H
#define NVM_BASE_PROCESS_H

enum { NVB_PROCESS_NAME = 128 };
typedef enum nvb_life {
  NVB_ENDED,
  NVB_LIVES,
  NVB_ELSEWHERE /* of another machine, boot or container, or no such name: it cannot be seen from here */
} nvb_life;
void nvb_process_name(char name[NVB_PROCESS_NAME]); /* of this one, after a fork the child's own; without blanks */
nvb_life nvb_process_look(const char *name);
#endif
