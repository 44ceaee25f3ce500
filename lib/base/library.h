/* Libraries that are opened while the program runs, by exact soname. Those of CUDA: NVM_CUDA_DIR first ("off":
   nowhere), then those already in the process, the folders that were named (the `nvidia` wheels of a Python), the
   system's, CUDA_PATH and CUDA_HOME. Others: those in the process, then the system's. */
#ifndef NVM_BASE_LIBRARY_H
#define NVM_BASE_LIBRARY_H

typedef struct nvb_symbol { const char *name; void (**to)(void); int optional; } nvb_symbol;

/* A folder to look in from now on, and two levels of folders below it (site-packages/nvidia). Copied. */
void nvb_library_dir(const char *dir);
/* CUDA's: the first of these sonames (NULL ends them) that opens; it stays open. NULL with a message that names what
   was tried. */
void *nvb_library_open(const char *const *soname);
void *nvb_library_open_system(const char *soname); /* another's: NULL with the system's message */
/* Opens what lies in the folder of the library that has the symbol, so that this library finds it by its name later: a
   wheel's folder is in nobody's search path. Nothing happens where it does not lie there. */
void nvb_library_beside(const void *symbol, const char *soname);
/* Fills in *to for each; a status: NVM_ERR_UNSUPPORTED with a message that names the symbol. Absent optional ones
   are NULL. */
int nvb_library_symbols(void *handle, const char *what, const nvb_symbol *s, int n);
#endif
