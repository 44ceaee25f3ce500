"""What nvm.explain returns draws itself; what notebooks show of arrays evaluates nothing."""

import xml.etree.ElementTree as ET

import numpy as np

import nvm


def softmax_of_product(x, w):
    return nvm.softmax(nvm.relu(x @ w + 1), axis=1).sum(0)


def test_a_plan_is_its_text_and_a_picture():
    x, w = nvm.asarray(np.ones((200, 300))), nvm.asarray(np.ones((300, 400)))
    f = nvm.jit(softmax_of_product)
    plan = f.explain(x, w)
    assert isinstance(plan, str) and plan == nvm.explain(f, x, w) == nvm.explain(softmax_of_product, x, w)
    assert repr(plan) == str(plan) and plan.startswith(f"{len(plan.kernels())} kernel")
    for k in plan.kernels():
        assert f"{k['number']}. {k['kind']}: {k['operations']}; reads {k['reads']}" in plan
        assert float(k["time"].split()[0]) > 0 and k["time"].split()[1] in ("ns", "us", "ms", "s")
    texts = [t.text for t in ET.fromstring(plan.svg()).iter() if t.tag.endswith("text")]
    for k in plan.kernels():
        assert f"kernel {k['number']}: {k['kind']}" in texts and f"writes {k['writes']}" in texts
    ET.fromstring(plan._repr_html_())  # well formed


def test_the_plan_of_pending_arrays_leaves_them_pending():
    x = nvm.asarray(np.arange(90_000.0).reshape(300, 300))
    y = nvm.sin(x).sum(1)
    plan = nvm.explain(y)
    assert not y.ready() and plan.kernels()[0]["writes"] == "2.4 KB"
    assert (
        "less_equal" in nvm.explain(nvm.where(x <= y, x, y))
        and "<" not in nvm.explain(x < y).svg().split(">", 1)[0][1:]
    )


def test_an_array_in_a_notebook():
    x = nvm.asarray([[1.5, 2.5]])
    assert "[[1.5 2.5]]" in x._repr_html_() and "1 x 2" in x._repr_html_() and "float64" in x._repr_html_()
    y = nvm.sin(nvm.asarray(np.ones((300, 300))))
    html = y._repr_html_()
    assert "pending" in html and not y.ready()
    ET.fromstring(html)
    y.eval()
    assert "0.84147098" in y._repr_html_()
    seen = []
    nvm.jit(lambda x: seen.append(x._repr_html_()) or x + 1)(x)
    assert "pending" in seen[0]
    assert "()" in nvm.asarray(3)._repr_html_() and "<pre>[]</pre>" in nvm.zeros(0).eval()._repr_html_()
