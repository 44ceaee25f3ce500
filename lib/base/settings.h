/* Settings: one table (settings.def) that is read from the environment at first use and changed by nvm_set. No other
   module calls getenv. */
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

int64_t nvb_int(nvb_setting s); /* INT and SIZE (suffixes K, M, G, T) */
/* STR and LIST; valid until the setting changes, and for some 256 changes of settings after that */
const char *nvb_str(nvb_setting s);
int nvb_has(nvb_setting s, const char *word); /* 1 if a LIST contains the word, or "all" */
/* Sets a setting by its environment name, with or without NVM_, in any case; value NULL: the default. Returns a
   status: an invalid value is refused here, while in the environment it is ignored. */
int nvb_set(const char *name, const char *value);
/* Reads row i of the table; returns 0 past the end. */
int nvb_setting_info(int i, const char **name, const char **value, const char **def, const char **doc);
/* If the environment's value of row i was invalid, writes a line that says so and returns 1. */
int nvb_setting_invalid(int i, char *line, size_t size);
void nvb_settings_touch(void); /* changes the version below, since tuning records have changed what plans depend on */
/* A hash for program keys: equal for equal values of the settings that plans depend on, and changed by
   nvb_settings_touch. */
uint64_t nvb_settings_version(void);
/* reads another environment variable (HOME, OMP_NUM_THREADS, CUDA_PATH ...); NULL if absent or empty */
const char *nvb_env(const char *name);
void nvb_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* only if NVM_VERBOSE >= level */
void nvb_dump(const char *stage, const char *name, const char *text); /* writes if NVM_DUMP names the stage */
#endif
