"""nvm.numpy's dtypes, polynomials, texts and assertions, against NumPy's."""

import pytest

from numpy_cases import check_all

TABLES = {
    "dtypes": """
        np.dtype({type})
        np.promote_types({type}, {type})
        np.result_type(m, {type})
        np.result_type({type}, {weak})
        np.result_type({weak}, {weak})
        np.result_type()
        np.can_cast({type}, {type})
        np.can_cast({type}, {type}, {casting})
        np.can_cast(m, 'float32', 'same_kind')
        np.can_cast(1, 'int8')
        np.can_cast('int8', 'int16', 'other')
        np.can_cast('int8', 'int8', 'other')
        np.signbit({any})
        np.issubdtype({type}, np.{kind})
        np.issubdtype({type}, {python})
        np.issubdtype(np.integer, np.{kind})
        np.issubdtype(m.dtype, np.floating)
        np.issubdtype('nonsense', np.floating)
        np.isdtype(m.dtype, 'real floating')
        np.isdtype(m.dtype, ('integral', 'bool'))
        np.isdtype(m.dtype, 'nonsense')
        np.min_scalar_type({scalar})
        np.min_scalar_type({any})
        np.dtype(np.common_type(m, i))
        np.dtype(np.common_type(s, c))
        np.common_type(b)
        np.mintypecode(['d', 'f', 'S'])
        np.mintypecode('fF')
        np.mintypecode(['x'])
        np.mintypecode('Fd')
        np.typename('d')
        np.typename('?')
        np.dtype(np.{other})
        np.zeros(2, np.{other})
        float(np.float32(2.5))
        np.float32([1, 2])
        [float(getattr(np.finfo({floating}), k)) for k in ('eps', 'max', 'min', 'tiny', 'smallest_subnormal', 'epsneg')]
        [getattr(np.finfo({floating}), k) for k in ('bits', 'nmant', 'minexp', 'maxexp', 'machep', 'negep', 'iexp')]
        np.finfo({floating}).precision
        np.finfo('int8')
        [getattr(np.iinfo({integer}), k) for k in ('bits', 'min', 'max', 'kind')]
        np.iinfo(5).max
        np.iinfo(float)
        isinstance(np.float64(1), np.floating)
        isinstance(np.float64(1), np.integer)
        isinstance(np.int8(1), np.integer)
        isinstance(1, np.integer)
        sorted(np.typecodes['AllFloat'].replace('g', '').replace('G', ''))
        np.sctypeDict['float32'] is np.float32
    """,
    "polynomials": """
        np.polyval({poly}, {at})
        np.polyadd({poly}, {poly})
        np.polysub({poly}, {poly})
        np.polymul({poly}, {poly})
        np.polydiv({poly}, {divisor})
        np.polyder({poly}, {n})
        np.polyint({poly}, {n})
        np.polyint({poly}, 2, [3, 4])
        np.polyint([1, 2], 2, [1, 2, 3])
        np.polyint([1, 2], 3, [1, 2])
        np.sort(np.roots({poly}))
        np.sort(np.roots([1, 0, 1, 0, 0]))
        np.roots([[1, 2]])
        np.poly([1, 2, 3])
        np.poly([1j, -1j])
        np.poly([1j, 2])
        np.poly([[2, 1], [1, 3]])
        np.poly([])
        np.poly(t)
        np.polyfit({points}, {degree})
        np.polyfit({points}, 2, w=[1, 2, 1, 3, 1])
        np.polyfit({points}, 1, cov=True)
        np.polyfit({points}, 1, cov='unscaled')
        np.polyfit([0, 1, 2, 3, 4], [[1, 2], [3, 4], [0, 1], [2, 2], [5, 5]], 2)
        np.polyfit([0, 1, 2, 3, 4], [1, 3, 2, 5, 7], 2, full=True)[0]
        int(np.polyfit([0, 1, 2, 3, 4], [1, 3, 2, 5, 7], 2, full=True)[2])
        np.polyfit([], [], 1)
        np.polyfit([[1]], [1], 1)
        np.polyfit([1, 2], [1], 1)
        np.poly1d([0, 1, 2]).coeffs
        np.poly1d([1, 2, 3])(2.0)
        np.poly1d([1, 2], True).c
        (np.poly1d([1, 2]) * np.poly1d([1, -1]) + 2).c
        (np.poly1d([1, 2]) ** 3 - [1]).c
        (2 - np.poly1d([1, 2])).c
        np.poly1d([1, 2, 3]).deriv().c
        np.poly1d([1, 2, 3]).integ(k=5).c
        [(p.order, p[0], p[1]) for p in [np.poly1d([1, 2, 3])]]
        np.poly1d([1, 2]) == np.poly1d([0, 1, 2])
        np.poly1d([1, 2])(np.poly1d([1, 1])).c
    """,
    "texts": """
        np.array_repr({few})
        np.array_str({few})
        np.array2string({few}, separator=', ')
        np.array2string(m, precision=1)
        np.array2string(np.arange(2000), threshold=5)
        np.array2string(np.arange(30), max_line_width=40)
        np.binary_repr({whole})
        np.binary_repr({whole}, {width})
        np.base_repr({whole}, {base})
        np.base_repr(5, 2, 3)
    """,
    "assertions": """
        np.testing.assert_array_equal({few}, {few})
        np.testing.assert_array_equal([1, nan, inf], [1, nan, inf])
        np.testing.assert_array_equal([1, nan], [1, 2])
        np.testing.assert_array_equal([inf], [-inf])
        np.testing.assert_array_equal(m, 1)
        np.testing.assert_array_equal([1, 1], 1)
        np.testing.assert_array_equal([1, 1], 1, strict=True)
        np.testing.assert_allclose(m, m + {small})
        np.testing.assert_allclose(m, m + {small}, rtol=1e-2)
        np.testing.assert_allclose(m, m + {small}, atol=1e-2)
        np.testing.assert_allclose([nan], [nan], equal_nan={keep})
        np.testing.assert_equal({thing}, {thing})
        np.testing.assert_almost_equal(1.0, 1.0 + {small})
        np.testing.assert_almost_equal(m, m + {small}, decimal=2)
        np.testing.assert_array_almost_equal(m, m + {small})
        np.testing.assert_array_almost_equal(np.array([0, 1], 'uint8'), np.array([{byte}, 1], 'uint8'), decimal=0)
        np.testing.assert_equal({zero}, {zero})
        np.testing.assert_equal([1, {zero}], [1, {zero}])
        np.testing.assert_equal(np.array([-0.0]), np.array([0.0]))
        np.testing.assert_approx_equal(1.0, 1.0 + {small})
        np.testing.assert_approx_equal(123456.0, 123457.0, 5)
        np.testing.assert_array_less([1, 2], [2, 3])
        np.testing.assert_array_less([1, 2], [2, 2])
        np.testing.assert_array_less([1, inf], [2, inf])
        np.testing.assert_string_equal('a', 'a')
        np.testing.assert_string_equal('a', 'b')
        np.testing.assert_array_almost_equal_nulp(np.array([1.0]), np.array([1.0 + 2.0**-52]))
        np.testing.assert_array_almost_equal_nulp(np.array([1.0]), np.array([1.0 + 2.0**-48]))
        np.testing.assert_raises(ValueError, int, 'a')
        np.testing.assert_raises(ValueError, int, '1')
        np.testing.assert_raises_regex(ValueError, 'invalid', int, 'a')
        np.testing.assert_no_warnings(int, '1')
        np.testing.assert_warns(UserWarning, int, '1')
        np.testing.assert_warns(UserWarning, __import__('warnings').warn, 'x')
        np.testing.assert_(False)
    """,
    "errors": """
        sorted(np.geterr())
        np.errstate(all='ignore').__enter__() is None
        np.seterr(divide='nonsense')
    """,
}
SETS = {
    "weak": "1 1.5 1j True",
    "casting": "'no' 'safe' 'same_kind' 'unsafe'",
    "kind": "generic number integer signedinteger unsignedinteger inexact floating complexfloating float64 bool_",
    "python": "int float complex bool",
    "scalar": "0 200 -1 70000 2**40 -2**40 1.5 1e10 1e300 True 1j",
    "other": "bool_ byte ubyte short ushort intc uintc int_ uint long ulong longlong ulonglong intp uintp half single"
    " double csingle cdouble",
    "floating": "'float16' 'float32' 'float64' 'complex64'",
    "integer": "'int8' 'uint8' 'int32' 'uint64' 'int64'",
    "poly": "[1,2,3] [0,1.5,-2] [2] [1,0,-1,4] j",
    "at": "2 m [1,2] 1j",
    "divisor": "[1,1] [2] [1,2,1] [1.0,0,0,0,0,1]",
    "n": "0 1 2 -1",
    "points": "[0,1,2,3,4],[1,3,2,5,7] [0.5,1,2,3,4.5],[1j,2,3,4,5]",
    "degree": "0 1 3 -1",
    "whole": "0 5 -5 255",
    "width": "0 4 12",
    "base": "2 7 36 37 1",
    "small": "0 1e-12 1e-6 1e-3",
    "byte": "0 1 255",
    "zero": "0 0.0 -0.0 0j complex(0,-0.0) complex(-0.0,0)",
    "thing": "1 [1,2] (1,[2,3]) 'a' {'x':1} None nan",
}


@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_numpy(name):
    check_all(TABLES[name], **SETS)
