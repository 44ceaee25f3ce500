/* What lies in a folder that no search path names: tests/base/test_library.c. */
int nvm_beside(void) { return 7; }
