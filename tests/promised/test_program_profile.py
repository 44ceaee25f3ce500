"""A profile by a decorator, and its report."""

import nvm


@nvm.profiler.profile(metrics=["memory_throughput", "compute_utilization"])
def benchmark_function():
    x = nvm.random.normal(0, 1, (1 << 18,)).eval()
    for i in range(3):
        nvm.eval(nvm.exp(x * i))


def test_benchmark_function():
    benchmark_function()
    report = nvm.profiler.generate_report()
    line = f"{report.memory_efficiency:.2%} {report.compute_efficiency:.2%}"
    assert 0 < report.memory_efficiency <= 1 and 0 < report.compute_efficiency <= 1 and line.count("%") == 2
    assert any("exp" in k.what for k in report.kernels)
