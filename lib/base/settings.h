/* Settings: one table (settings.def), read from the environment at first use, changed by nvm_set. getenv lives here. */
#ifndef NVM_BASE_SETTINGS_H
#define NVM_BASE_SETTINGS_H
#include <stddef.h>
#include <stdint.h>

typedef enum nvb_setting {
#define SETTING(id, type, env, def, words, asked, doc) NVB_##id,
#include "base/settings.def"
#undef SETTING
  NVB_NSETTINGS
} nvb_setting;

int64_t nvb_int(nvb_setting s);               /* INT and SIZE (suffixes K, M, G, T) */
const char *nvb_str(nvb_setting s);           /* STR and LIST; stays valid until it changes, and a while longer */
int nvb_has(nvb_setting s, const char *word); /* is the word in the comma list of a LIST (or is it "all")? */
/* By environment name or without NVM_, any case; value NULL: the default. A status: what the setting does not take is
   refused. From the environment it counts as absent. */
int nvb_set(const char *name, const char *value);
/* Row i of the table; 0 past the end. */
int nvb_setting_info(int i, const char **name, const char **value, const char **def, const char **doc);
/* Did the environment say of row i what it does not take? Then a line that says so. */
int nvb_setting_unread(int i, char *line, size_t size);
void nvb_settings_touch(void); /* what plans depend on has changed otherwise (tuning records) */
/* Part of program keys: of the values that plans depend on, the same for the same values, and of the touches. */
uint64_t nvb_settings_version(void);
const char *nvb_env(const char *name); /* other environment variables: HOME, OMP_NUM_THREADS, CUDA_PATH ... */
void nvb_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* only if NVM_VERBOSE >= level */
void nvb_dump(const char *stage, const char *name, const char *text); /* writes if NVM_DUMP names the stage */
#endif
