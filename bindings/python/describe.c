/* What help() shows of an operation: its row's description, a line for each parameter (parameters.def), the dtypes, the
   errors, and an example (examples.def). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "nvp.h"
typedef struct row { const char *name, *text; } row;
static int compare_name(const void *name, const void *r) { return strcmp(name, ((const row *)r)->name); }
#define FIND(name, rows) find_text(name, rows, sizeof rows / sizeof *rows)
static const char *find_text(const char *name, const row *rows, size_t n) {
  const row *r = bsearch(name, rows, n, sizeof *rows, compare_name);
  return r ? r->text : NULL;
}
/* Rows are sorted. */
static const row parameters[] = {
#define PARAMETER(name, text) { name, text },
#include "parameters.def"
#undef PARAMETER
};
static const row examples[] = {
#define EXAMPLE(name, call, shown) { name, "\n>>> import nvm\n>>> " call "\n" shown "\n" },
#include "examples.def"
#undef EXAMPLE
};
/* What a parameter means: in this operation, or everywhere; NULL: there is no text. */
static const char *meaning(const char *op, const char *parameter) {
  char name[96];
  PyOS_snprintf(name, sizeof name, "%s.%s", op, parameter);
  const char *own = FIND(name, parameters);
  return own ? own : FIND(parameter, parameters);
}
/* The next parameter of a signature that begins with a parenthesis; NULL: there is none. */
static const char *next_name(char *name, size_t size, const char *s) {
  s += strcspn(s, "abcdefghijklmnopqrstuvwxyz");
  size_t n = strcspn(s, "=,) ");
  if (!n || n >= size) return NULL;
  memcpy(name, s, n);
  name[n] = 0;
  s += n;
  return s + strcspn(s, ",)");
}
static int has_parameter(const char *signature, const char *name) {
  char each[64];
  for (const char *s = signature; (s = next_name(each, sizeof each, s));)
    if (!strcmp(each, name)) return 1;
  return 0;
}
static void print_parameters(FILE *f, const char *op, const char *signature) {
  char name[64];
  const char *last = NULL;
  for (const char *s = signature; (s = next_name(name, sizeof name, s));) {
    const char *text = meaning(op, name);
    if (!text) continue;
    if (last && !strcmp(last, text)) {
      fprintf(f, ", %s", name);
    } else {
      if (last) fprintf(f, ": %s.\n", last);
      fputs(name, f);
    }
    last = text;
  }
  if (last) fprintf(f, ": %s.\n", last);
}
static void print_errors(FILE *f, const nvm_op_info *info, const char *signature, int some_dtypes) {
  const char *errors[] = { info->nin > 1 || info->nin < 0 ? "ValueError if shapes do not fit" : NULL,
                           has_parameter(signature, "axis") || has_parameter(signature, "axes") ||
                                   has_parameter(signature, "source")
                               ? "IndexError for an axis that is not there"
                               : NULL,
                           some_dtypes ? "TypeError for dtypes that are not among these" : NULL };
  int said = 0;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i]) fprintf(f, said++ ? ", %s" : "Raises %s", errors[i]);
  if (said) fputs(".\n", f);
}
char *nvp_describe(const char *name, const nvm_op_info *info, const char *signature) {
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  if (!f) return NULL;
  const char *example = FIND(info->name, examples), *dtypes = strchr(info->doc, '\n');
  fprintf(f, "%s%s\n--\n\n%.*s\n", name, signature, (int)strcspn(info->doc, "\n"), info->doc);
  if (example) {
    fputc('\n', f);
    print_parameters(f, info->name, signature);
    if (dtypes) fprintf(f, "%s\n", dtypes + 1);
    print_errors(f, info, signature, dtypes && strncmp(dtypes + 1, "Dtypes: any", 11));
    fputs(example, f);
  }
  return fclose(f) ? free(text), NULL : text;
}
