/* dtypes: sizes, classes, names and NumPy's promotion (NEP 50; f16 with bf16 gives f32). */
#ifndef NVM_FRAG_DTYPE_H
#define NVM_FRAG_DTYPE_H
#include "nvm/types.h"

typedef enum nvg_class { NVG_BOOLEAN, NVG_SIGNED, NVG_UNSIGNED, NVG_FLOAT, NVG_COMPLEX } nvg_class;

int nvg_size(nvm_dtype t); /* bytes of an element: 1, 2, 4, 8, 16 */
nvg_class nvg_class_of(nvm_dtype t);
const char *nvg_dtype_name(nvm_dtype t);  /* "float32": the array API's names */
const char *nvg_dtype_short(nvm_dtype t); /* "f32": fragment and kernel text */
int nvg_dtype_find(const char *name);     /* either name; -1 if unknown */
nvm_dtype nvg_promote(nvm_dtype a, nvm_dtype b);
/* weak: a Python-like scalar of that class (bool, int, float, complex) meets a typed operand */
nvm_dtype nvg_promote_weak(nvm_dtype t, nvg_class weak, nvm_dtype default_float);
nvm_dtype nvg_real_of(nvm_dtype t);    /* c64 -> f32, c128 -> f64, else t */
nvm_dtype nvg_complex_of(nvm_dtype t); /* f64, c128 -> c128; else c64 */
nvm_dtype nvg_compute_of(nvm_dtype t); /* type of the arithmetic: narrow floats -> f32; else t */
int nvg_is_narrow(nvm_dtype t);        /* a float of 16 bits or 8 */
int nvg_is_f8(nvm_dtype t);            /* a float of 8 bits */
int nvg_parts(nvm_dtype t);            /* 2 if complex, else 1 */
int nvg_precision(nvm_dtype t);        /* bits of the significand of an integer or float, without its sign; bool 1 */
int nvg_embeds(nvm_dtype from, nvm_dtype to); /* every value of `from` converts to `to` unchanged */

/* Bits of one real value, zero extended, as constants keep them. Floats round once, to nearest even. */
uint64_t nvg_float_bits(nvm_dtype t, double v);
double nvg_bits_float(nvm_dtype t, uint64_t bits);
uint64_t nvg_int_bits(nvm_dtype t, int64_t v); /* bool too; cut to the width */
int64_t nvg_bits_int(nvm_dtype t, uint64_t bits);
/* Does some float type of 16 bits or more take this real number for 0, or for infinite? at: as it lies in memory */
int nvg_is_extreme(nvm_dtype t, const void *at);
#endif
