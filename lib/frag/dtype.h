/* Describes dtypes: sizes, classes, names, bit patterns, and NumPy's promotion (NEP 50; f16 with bf16 gives f32). */
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
/* Promotes dtype t with a weak scalar (a Python bool, int, float or complex) of class `weak`. */
nvm_dtype nvg_promote_weak(nvm_dtype t, nvg_class weak, nvm_dtype default_float);
nvm_dtype nvg_real_of(nvm_dtype t);    /* c64 -> f32, c128 -> f64, else t */
nvm_dtype nvg_complex_of(nvm_dtype t); /* f64, c128 -> c128; else c64 */
/* dtype in which its arithmetic is done: f32 for floats of 16 bits and less, else t */
nvm_dtype nvg_compute_of(nvm_dtype t);
int nvg_is_narrow(nvm_dtype t); /* 1 for a float of 16 or 8 bits */
int nvg_is_f8(nvm_dtype t);     /* 1 for a float of 8 bits */
int nvg_parts(nvm_dtype t);     /* 2 if complex, else 1 */
/* bits of the significand of an integer or float, without its sign; 1 for bool */
int nvg_precision(nvm_dtype t);
int nvg_embeds(nvm_dtype from, nvm_dtype to); /* 1 if every value of `from` converts to `to` unchanged */

/* Convert one real value to its bits and back; constants hold the bits zero-extended. Floats round once, to nearest
   even. */
uint64_t nvg_float_bits(nvm_dtype t, double v);
double nvg_bits_float(nvm_dtype t, uint64_t bits);
uint64_t nvg_int_bits(nvm_dtype t, int64_t v); /* for bool too; truncates to the width */
int64_t nvg_bits_int(nvm_dtype t, uint64_t bits);
/* Returns 1 if some float dtype of 16 bits or more would round this real number to 0 or to infinity. at: its bytes in
   memory. */
int nvg_is_extreme(nvm_dtype t, const void *at);
#endif
