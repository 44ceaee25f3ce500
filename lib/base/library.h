/* Opens shared libraries at run time, by exact soname. CUDA libraries are searched in NVM_CUDA_DIR ("off": nowhere),
   the process, the folders given to nvb_library_dir (the `nvidia` wheels of a Python), the system's path, CUDA_PATH
   and CUDA_HOME, in this order. Others are searched in the process, those folders and the system's path; the driver in
   the system's path alone. */
#ifndef NVM_BASE_LIBRARY_H
#define NVM_BASE_LIBRARY_H

typedef struct nvb_symbol { const char *name; void (**to)(void); int optional; } nvb_symbol;

/* Adds a folder to the search; two levels of its subfolders are searched too (site-packages/nvidia). `dir` is
   copied. */
void nvb_library_dir(const char *dir);
/* Opens a CUDA library: the first of these sonames (a NULL-terminated list) that loads. It stays open. On failure it
   returns NULL with a message that lists the names and places tried. */
void *nvb_library_open(const char *const *soname);
/* Opens a library that is not CUDA's, in the same way. */
void *nvb_library_open_other(const char *const *soname);
/* opens a library of the system; NULL with the loader's message on failure */
void *nvb_library_open_system(const char *soname);
/* Loads `soname` from the folder of the library that defines `symbol`, so that this library can later find it by its
   name: the folder of a wheel is in no search path. Does nothing if the file is not there. */
void nvb_library_beside(const void *symbol, const char *soname);
/* Resolves each symbol into *to; absent optional ones become NULL. Returns a status: NVM_ERR_UNSUPPORTED with a
   message that names the missing symbol. */
int nvb_library_symbols(void *handle, const char *what, const nvb_symbol *s, int n);
/* The same in a library whose names begin with `prefix`. */
int nvb_library_prefixed(void *handle, const char *prefix, const char *what, const nvb_symbol *s, int n);
#endif
