/* Selects the definitions of the common source texts (prelude.cu, tensor_core.cu) that a kernel uses, since NVRTC takes
   longer the more text there is. Never changes a definition. */
#include <string.h>
#include "codegen/cuda/emit.h"

/* A definition with the comment before it. */
typedef struct definition { const char *at, *name; size_t size, length; int wanted; } definition;

static const char *next_line(const char *at) {
  const char *end = strchr(at, '\n');
  return end ? end + 1 : at + strlen(at);
}

static int begins_with(const char *at, const char *word) { return !strncmp(at, word, strlen(word)); }
static size_t name_length(const char *at) { return strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_"); }

/* The definition that begins at this line; one without a name is always included. */
static definition definition_at(const char *at) {
  definition p = { .at = at };
  while (begins_with(at, "//")) at = next_line(at);
  if (begins_with(at, "NV ") || begins_with(at, "template <")) {
    p.name = strstr(at, "nv_");
    p.length = name_length(p.name);
  }
  int depth = 0;
  for (; *at && (*at != '\n' || depth); at++) depth += (*at == '{') - (*at == '}');
  p.size = (size_t)(next_line(at) - p.at);
  return p;
}

/* Marks the definitions that the text calls, and those that they call. */
static void mark_wanted(definition *p, int n, const char *text, size_t size) {
  for (const char *at = text; (at = strstr(at, "nv_")) && at < text + size;) {
    size_t length = name_length(at);
    for (int i = 0; i < n; i++)
      if (!p[i].wanted && p[i].length == length && !memcmp(p[i].name, at, length)) {
        p[i].wanted = 1;
        mark_wanted(p, n, p[i].at, p[i].size);
      }
    at += length;
  }
}

void nvcu_prelude(nvb_arena *a, nvb_text *t, const char *const *text, int ntext, const char *body) {
  int n = 0, most = 0;
  for (int i = 0; i < ntext; i++)
    for (const char *at = text[i]; *at; at = next_line(at)) most++;
  definition *p = NVB_NEWN(a, definition, most);
  for (int i = 0; i < ntext; i++)
    for (const char *at = text[i]; *at; at += p[n++].size) p[n] = definition_at(at);
  mark_wanted(p, n, body, strlen(body));
  for (int i = 0; i < n; i++)
    if (!p[i].name) mark_wanted(p, n, p[i].at, p[i].size);
  for (int i = 0; i < n; i++)
    if (!p[i].name || p[i].wanted) nvb_print(t, "%.*s", (int)p[i].size, p[i].at);
}
