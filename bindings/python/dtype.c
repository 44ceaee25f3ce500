/* dtype objects: nvm.float32 and the others. They compare equal to NumPy's dtypes and to names, and NumPy accepts them
   through __numpy_dtype__ and dtype. Decides what counts as a dtype argument, and the codes of the buffer protocol. */
#include <string.h>
#include "nvp.h"

/* One row for each dtype: its kind, its code in the buffer protocol (NULL: none), and the code and number that NumPy
   gives it (0: NumPy has no such dtype). DLPack's codes and finfo are defined elsewhere. */
enum { LONG = sizeof(long) == 8 };
static const struct {
  char kind;
  const char *format;
  char code, number;
} rows[NVM_NDTYPES] = {
  [NVM_BOOL] = { 'b', "?", '?', 0 },
  [NVM_I8] = { 'i', "b", 'b', 1 },
  [NVM_I16] = { 'i', "h", 'h', 3 },
  [NVM_I32] = { 'i', "i", 'i', 5 },
  [NVM_I64] = { 'i', LONG ? "l" : "q", LONG ? 'l' : 'q', LONG ? 7 : 9 },
  [NVM_U8] = { 'u', "B", 'B', 2 },
  [NVM_U16] = { 'u', "H", 'H', 4 },
  [NVM_U32] = { 'u', "I", 'I', 6 },
  [NVM_U64] = { 'u', LONG ? "L" : "Q", LONG ? 'L' : 'Q', LONG ? 8 : 10 },
  [NVM_F16] = { 'f', "e", 'e', 23 },
  [NVM_BF16] = { 'f', NULL, 0, 0 },
  [NVM_F32] = { 'f', "f", 'f', 11 },
  [NVM_F64] = { 'f', "d", 'd', 12 },
  [NVM_C64] = { 'c', "Zf", 'F', 14 },
  [NVM_C128] = { 'c', "Zd", 'D', 15 },
  [NVM_F8E4] = { 'f', NULL, 0, 0 },
  [NVM_F8E5] = { 'f', NULL, 0, 0 },
};
char nvp_kind(nvm_dtype t) { return rows[t].kind; }
const char *nvp_format(nvm_dtype t) { return rows[t].format; }

static int integer_dtype(char code, nvm_dtype *out) { /* maps C integer types by size */
  static const char codes[] = "bhilqnBHILQN";
  const size_t sizes[] = { 1, sizeof(short), sizeof(int), sizeof(long), sizeof(long long), sizeof(Py_ssize_t) };
  const char *at = strchr(codes, code);
  if (!at || !code) return 0;
  size_t i = (size_t)(at - codes), size = sizes[i % 6];
  *out = (nvm_dtype)((i < 6 ? NVM_I8 : NVM_U8) + (size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0));
  return 1;
}
int nvp_dtype_of_format(const char *f, nvm_dtype *out) {
  int swapped = 0, standard = 0;
  if (!f) return *out = NVM_U8, 1;
  if (*f && strchr("@=<>!", *f)) {
    standard = *f != '@';
    swapped = *f == '>' || *f == '!'; /* nvm supports only little-endian machines */
    f++;
  }
  size_t n = strlen(f);
  int known = 1;
  if (n == 1 && standard && strchr("lL", *f)) *out = *f == 'l' ? NVM_I32 : NVM_U32;
  else if (n == 1 && *f == '?') *out = NVM_BOOL;
  else if (n == 1 && *f == 'e') *out = NVM_F16;
  else if (n == 1 && *f == 'f') *out = NVM_F32;
  else if (n == 1 && *f == 'd') *out = NVM_F64;
  else if (!strcmp(f, "Zf")) *out = NVM_C64;
  else if (!strcmp(f, "Zd")) *out = NVM_C128;
  else known = n == 1 && integer_dtype(*f, out);
  return !known ? 0 : swapped && nvm_dtype_size(*out) > 1 ? -1 : 1;
}

PyObject *nvp_dtype_object(nvp_state *st, nvm_dtype t) {
  return Py_NewRef(st->dtypes[t == NVM_DTYPE_DEFAULT ? nvm_ctx_default_float(st->ctx) : t]);
}

/* ---- what counts as a dtype */
static int dtype_by_name(PyObject *name, nvm_dtype *out) { /* 1 found, 0 not a dtype, -1 exception */
  if (!PyUnicode_Check(name)) return 0;
  const char *s = PyUnicode_AsUTF8AndSize(name, NULL);
  if (!s && !PyErr_ExceptionMatches(PyExc_UnicodeError)) return -1;
  if (!s) return PyErr_Clear(), 0; /* an unpaired surrogate is not in any name */
  static const struct {
    const char *name;
    nvm_dtype t;
  } python[] = {
    { "bool", NVM_BOOL },
    { "bool_", NVM_BOOL },
    { "int", NVM_I64 },
    { "float", NVM_F64 },
    { "complex", NVM_C128 },
    { "b1", NVM_BOOL },
    { "F", NVM_C64 },
    { "D", NVM_C128 }, /* NumPy's codes */
    { "i1", NVM_I8 },
    { "i2", NVM_I16 },
    { "i4", NVM_I32 },
    { "i8", NVM_I64 },
    { "u1", NVM_U8 },
    { "u2", NVM_U16 },
    { "u4", NVM_U32 },
    { "u8", NVM_U64 },
    { "f2", NVM_F16 },
    { "f4", NVM_F32 },
    { "f8", NVM_F64 },
    { "c8", NVM_C64 },
    { "c16", NVM_C128 },
    { "byte", NVM_I8 },
    { "ubyte", NVM_U8 },
    { "short", NVM_I16 },
    { "ushort", NVM_U16 },
    { "intc", NVM_I32 },
    { "uintc", NVM_U32 },
    { "longlong", NVM_I64 },
    { "ulonglong", NVM_U64 },
    { "intp", NVM_I64 },
    { "int_", NVM_I64 },
    { "uintp", NVM_U64 },
    { "uint", NVM_U64 },
    { "half", NVM_F16 },
    { "single", NVM_F32 },
    { "double", NVM_F64 },
    { "csingle", NVM_C64 },
    { "cdouble", NVM_C128 },
    { "long", LONG ? NVM_I64 : NVM_I32 },
    { "ulong", LONG ? NVM_U64 : NVM_U32 },
  };
  if (*s && strchr("<=|", *s)) s++; /* native byte order */
  for (size_t i = 0; i < sizeof python / sizeof *python; i++)
    if (!strcmp(s, python[i].name)) return *out = python[i].t, 1;
  if (*s == 'p' || *s == 'P') return *out = *s == 'p' ? NVM_I64 : NVM_U64, !s[1];
  if (*s && !s[1]) return nvp_dtype_of_format(s, out) > 0;
  /* the library's short names are not accepted: "f16" is not float16 in NumPy */
  return !nvm_dtype_find(out, s) && !strcmp(s, nvm_dtype_name(*out));
}
/* Is x a dtype of NumPy whose bytes are swapped? Its name is that of the native one. 1, 0, -1 exception */
static int is_swapped(PyObject *x) {
  PyObject *order = PyObject_GetAttrString(x, "byteorder");
  if (!order) return PyErr_ExceptionMatches(PyExc_AttributeError) ? (PyErr_Clear(), 0) : -1;
  int swapped = PyUnicode_Check(order) && !PyUnicode_CompareWithASCIIString(order, ">");
  Py_DECREF(order);
  return swapped;
}
static int find_dtype(nvp_state *st, PyObject *x, nvm_dtype *out) {
  if (Py_IS_TYPE(x, st->dtype)) return *out = ((nvp_dtype *)x)->t, 1;
  if (PyUnicode_Check(x)) return dtype_by_name(x, out);
  PyObject *const keys[2] = { st->s_name, st->s_dunder_name };
  /* np.dtype('f4').name, np.float32.__name__, float.__name__ */
  for (int i = 0; i < 2; i++) {
    PyObject *name = PyObject_GetAttr(x, keys[i]);
    if (!name && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    if (!name) PyErr_Clear();
    int found = name ? dtype_by_name(name, out) : 0;
    Py_XDECREF(name);
    if (found) return found < 0 ? -1 : (found = is_swapped(x)) < 0 ? -1 : !found;
  }
  return 0;
}
/* What was found before for a name, for a type such as np.float32, or for a dtype of NumPy, which is slow to tell its
   name: classes of dtypes have a class of their own. */
static int find_known(nvp_state *st, PyObject *x, nvm_dtype *out) {
  enum { KNOWN = 64 };
  if (Py_IS_TYPE(x, st->dtype)) return find_dtype(st, x, out);
  int kept = PyUnicode_CheckExact(x) || PyType_Check(x) || !Py_IS_TYPE((PyObject *)Py_TYPE(x), &PyType_Type), found;
  PyObject *known = kept ? PyDict_GetItemWithError(st->known_dtypes, x) : NULL;
  if (known) return *out = ((nvp_dtype *)known)->t, 1;
  if (kept && PyErr_Occurred()) PyErr_Clear(), kept = 0; /* it has no hash */
  if ((found = find_dtype(st, x, out)) <= 0 || !kept || PyDict_Size(st->known_dtypes) >= KNOWN) return found;
  return PyDict_SetItem(st->known_dtypes, x, st->dtypes[*out]) ? -1 : 1;
}
int nvp_dtype_from(nvp_state *st, PyObject *x, nvm_dtype *out) {
  *out = NVM_DTYPE_DEFAULT;
  int found = x == Py_None ? 1 : find_known(st, x, out);
  if (!found)
    PyErr_Format(
        PyExc_TypeError,
        "%R is not a dtype of nvm; it has bool, int8 to int64, uint8 to uint64, float16, "
        "bfloat16, float32, float64, complex64 and complex128; texts, objects, dates and records stay in lists "
        "or NumPy's arrays",
        x);
  return found > 0 ? 0 : -1;
}

/* ---- the type */
static PyObject *dtype_repr(PyObject *self) {
  return PyUnicode_FromFormat("nvm.%s", nvm_dtype_name(((nvp_dtype *)self)->t));
}
static PyObject *dtype_str(PyObject *self) { return PyUnicode_FromString(nvm_dtype_name(((nvp_dtype *)self)->t)); }
static PyObject *dtype_compare(PyObject *self, PyObject *other, int op) {
  nvp_dtype *d = (nvp_dtype *)self;
  nvm_dtype t;
  if (op != Py_EQ && op != Py_NE) return Py_NewRef(Py_NotImplemented);
  int found = other == Py_None ? 0 : find_known(d->st, other, &t);
  return found < 0 ? NULL : PyBool_FromLong((found && t == d->t) == (op == Py_EQ));
}
/* The hash of its name, so that in a dict a dtype and its name find each other. NumPy's dtypes and Python's types are
   equal too, but have other hashes, so they do not find it. */
static Py_hash_t dtype_hash(PyObject *self) {
  PyObject *name = dtype_str(self);
  Py_hash_t h = name ? PyObject_Hash(name) : -1;
  Py_XDECREF(name);
  return h;
}
static PyObject *dtype_reduce(PyObject *self, PyObject *unused) { /* pickles as an attribute of the module */
  (void)unused;
  return dtype_str(self);
}
static PyObject *get_itemsize(PyObject *self, void *u) {
  (void)u;
  return PyLong_FromSize_t(nvm_dtype_size(((nvp_dtype *)self)->t));
}
static PyObject *get_name(PyObject *self, void *u) {
  (void)u;
  return dtype_str(self);
}
static PyObject *get_kind(PyObject *self, void *u) {
  (void)u;
  const char k[2] = { nvp_kind(((nvp_dtype *)self)->t), 0 };
  return PyUnicode_FromString(k);
}
/* What only NumPy's own dtypes have. */
static int has_code(PyObject *self, const char *what) {
  nvm_dtype t = ((nvp_dtype *)self)->t;
  if (!rows[t].code)
    PyErr_Format(PyExc_AttributeError, "%s has no .%s, because NumPy has no such dtype; it has a .name and a .kind",
                 nvm_dtype_name(t), what);
  return rows[t].code;
}
static PyObject *get_char(PyObject *self, void *u) {
  (void)u;
  const char c[2] = { (char)has_code(self, "char"), 0 };
  return *c ? PyUnicode_FromString(c) : NULL;
}
static PyObject *get_num(PyObject *self, void *u) {
  (void)u;
  return has_code(self, "num") ? PyLong_FromLong(rows[((nvp_dtype *)self)->t].number) : NULL;
}
static PyObject *get_byteorder(PyObject *self, void *u) {
  (void)u;
  return PyUnicode_FromString(nvm_dtype_size(((nvp_dtype *)self)->t) > 1 ? "=" : "|");
}
static PyObject *get_str(PyObject *self, void *u) {
  (void)u;
  nvm_dtype t = ((nvp_dtype *)self)->t;
  size_t n = nvm_dtype_size(t);
  return has_code(self, "str") ? PyUnicode_FromFormat("%c%c%zu", n > 1 ? '<' : '|', nvp_kind(t), n) : NULL;
}
static PyObject *get_alignment(PyObject *self, void *u) {
  (void)u;
  nvm_dtype t = ((nvp_dtype *)self)->t;
  return PyLong_FromSize_t(nvm_dtype_size(t) / (nvp_kind(t) == 'c' ? 2 : 1));
}
static PyObject *get_constant(PyObject *self, void *value) { /* the same for all dtypes: no fields, no objects */
  (void)self;
  return Py_NewRef((PyObject *)value);
}
static PyObject *get_numpy(PyObject *self, void *u) {
  (void)u;
  PyObject *f = nvp_hook(((nvp_dtype *)self)->st, "numpy_dtype");
  return f ? PyObject_CallFunctionObjArgs(f, self, NULL) : NULL;
}
static PyObject *get_type(PyObject *self, void *u) {
  PyObject *t = get_numpy(self, u), *r = t ? PyObject_GetAttrString(t, "type") : NULL;
  Py_XDECREF(t);
  return r;
}
static PyObject *get_module(PyObject *self, void *u) {
  (void)self, (void)u;
  return PyUnicode_FromString("nvm");
}
/* The number that a text spells, of the kind of a dtype, as int(text), float(text) and complex(text) read it. */
static PyObject *number_of_text(nvm_dtype t, PyObject *text) {
  char kind = nvp_kind(t);
  return kind == 'c'   ? PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, text, NULL)
         : kind == 'f' ? PyNumber_Float(text)
         : kind == 'b' ? PyBool_FromLong(PyObject_IsTrue(text))
                       : PyNumber_Long(text);
}
/* nvm.float32(x) converts x to an array of that dtype: an array, a number, or a text that spells one; nothing is 0. */
static PyObject *dtype_call(PyObject *self, PyObject *args, PyObject *kw) {
  nvp_dtype *d = (nvp_dtype *)self;
  Py_ssize_t n = PyTuple_Size(args);
  if (n > 1 || (kw && PyDict_Size(kw))) return PyErr_Format(PyExc_TypeError, "%S takes one number or array", self);
  PyObject *given = n ? PyTuple_GetItem(args, 0) : Py_False;
  PyObject *x = PyUnicode_Check(given) ? number_of_text(d->t, given) : Py_NewRef(given);
  PyObject *r = x ? nvp_asarray(d->st, x, d->t, NVP_COPY_IF_NEEDED) : NULL;
  Py_XDECREF(x);
  return r;
}
/* nvm.DType('float32') finds the one object of that dtype. */
static PyObject *dtype_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  static char *names[] = { "dtype", "align", "copy", NULL };
  nvp_state *st = PyType_GetModuleState(type);
  PyObject *x;
  int align = 0, copy = 0;
  nvm_dtype t;
  if (!st || !PyArg_ParseTupleAndKeywords(args, kw, "O|pp:dtype", names, &x, &align, &copy)) return NULL;
  return nvp_dtype_from(st, x, &t) ? NULL : nvp_dtype_object(st, t);
}
static PyGetSetDef getset[] = { { "name", get_name, NULL, "'float32'", NULL },
                                { "itemsize", get_itemsize, NULL, "bytes of an element", NULL },
                                { "kind", get_kind, NULL, "'b' bool, 'i' signed, 'u' unsigned, 'f' float, 'c' complex",
                                  NULL },
                                { "char", get_char, NULL, "NumPy's code of one letter", NULL },
                                { "num", get_num, NULL, "NumPy's number of the dtype", NULL },
                                { "str", get_str, NULL, "'<f4': byte order, kind and size", NULL },
                                { "byteorder", get_byteorder, NULL, "'=', or '|' where an element is one byte", NULL },
                                { "alignment", get_alignment, NULL, "bytes that addresses are a multiple of", NULL },
                                { "type", get_type, NULL, "NumPy's class of scalars of this dtype", NULL },
                                { "isnative", get_constant, NULL, "always true", Py_True },
                                { "hasobject", get_constant, NULL, "always false", Py_False },
                                { "names", get_constant, NULL, "None: there are no fields", Py_None },
                                { "fields", get_constant, NULL, "None: there are no fields", Py_None },
                                { "__numpy_dtype__", get_numpy, NULL, "NumPy's dtype of this name", NULL },
                                { "dtype", get_numpy, NULL, "the same, where NumPy before 2.4 looks for it", NULL },
                                { "__module__", get_module, NULL, NULL, NULL },
                                { NULL, NULL, NULL, NULL, NULL } };
static PyMethodDef dtype_methods[] = { { "__reduce__", dtype_reduce, METH_NOARGS, NULL }, { NULL, NULL, 0, NULL } };
static void dtype_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}
static PyType_Slot slots[] = {
  { Py_tp_repr, dtype_repr },
  { Py_tp_new, dtype_new },
  { Py_tp_call, dtype_call },
  { Py_tp_str, dtype_str },
  { Py_tp_hash, dtype_hash },
  { Py_tp_richcompare, dtype_compare },
  { Py_tp_getset, getset },
  { Py_tp_methods, dtype_methods },
  { Py_tp_dealloc, dtype_dealloc },
  { Py_tp_doc, "A data type: nvm.float32, nvm.int64, ... Equal to its name and to NumPy's dtype of that name; it "
               "hashes as its name does, so\nas a key of a dict write nvm.dtype(x) where x is a dtype of NumPy. "
               "Called, it makes an array of no dimensions.\n\n"
               ">>> import nvm\n>>> nvm.float32.itemsize, nvm.float32.kind, nvm.float32 == 'float32'\n"
               "(4, 'f', True)\n>>> nvm.int8(3)\narray(3, dtype=int8)\n" },
  { 0, NULL }
};
PyType_Spec nvp_dtype_spec = { .name = "nvm.DType",
                               .basicsize = sizeof(nvp_dtype),
                               .slots = slots,
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE };

int nvp_add_dtypes(PyObject *m, nvp_state *st) {
  for (int t = 0; t < NVM_NDTYPES; t++) {
    nvp_dtype *d = PyObject_New(nvp_dtype, st->dtype);
    if (!d) return -1;
    d->t = (nvm_dtype)t;
    d->st = st;
    st->dtypes[t] = (PyObject *)d;
    if (PyModule_AddObjectRef(m, nvm_dtype_name(d->t), (PyObject *)d)) return -1;
  }
  return 0;
}
