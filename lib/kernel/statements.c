/* The table of statements as data: words, the tiles that each takes and makes, traits. */
#include "kernel/kernel.h"

enum {
  ELEMENTWISE = NVF_ELEMENTWISE,
  WRITES = NVF_WRITES,
  WHOLE = NVF_WHOLE_TILE,
  EXCHANGES = NVF_WHOLE_TILE | NVF_EXCHANGES
};
static const nvf_op_row table[] = {
#define STATEMENT(id, word, operands, results, traits, ...) { #word, operands, results, traits },
#include "kernel/statements.def"
};

const nvf_op_row *nvf_op_get(nvf_op op) { return &table[op]; }
const char *nvf_op_name(nvf_op op) { return table[op].word; }
int nvf_stmt_is(const nvf_stmt *s, nvf_trait trait) { return (table[s->op].traits & trait) != 0; }
