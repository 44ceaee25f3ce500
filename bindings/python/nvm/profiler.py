"""nvm.profiler: which kernels ran, for how long, and how far from what the machine can do."""

from . import _nvm

METRICS = {"memory_throughput": 1, "compute_utilization": 2, "timeline": 4}  # bits of nvm_profile_metric
_TEXT, _JSON, _HTML, _TRACE = range(4)  # nvm_profile_format
_last = None


def _bits(metrics):
    if metrics is None:
        return sum(METRICS.values())
    if isinstance(metrics, str):
        raise TypeError(f"[profile] metrics is a list of names, such as [{metrics!r}], not a str")
    if callable(metrics):
        raise TypeError("[profile] decorates with parentheses: @nvm.profiler.profile()")
    metrics = list(metrics)
    if not metrics:
        raise ValueError(f"[profile] metrics names none of {', '.join(METRICS)}; None means all")
    for name in metrics:
        if name not in METRICS:
            from ._names import nearest

            near = nearest(name, METRICS) if isinstance(name, str) else None
            raise ValueError(
                f"[profile] there is no metric {name!r}; "
                + (f"{near!r} is spelled like it; " if near else "")
                + f"metrics are {', '.join(METRICS)}"
            )
    return sum(METRICS[name] for name in set(metrics))


class Kernel:
    """A kernel of a report: device, kind, by (native, interpreter, direct, cuda or a library's name), what (its
    operations), calls, seconds, fastest (seconds of the fastest call), bytes, operations, memory and compute (shares of
    the ceilings, which data in caches may exceed; None: not among the metrics), advice.

    >>> import nvm
    >>> with nvm.profiler.profile() as p:
    ...     y = nvm.exp(nvm.ones(1000)).eval()
    >>> [(k.device, k.calls) for k in p.report().kernels]
    [('cpu', 1)]
    """

    def __init__(self, row):
        self.__dict__.update(row)

    def __repr__(self):
        return f"Kernel({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"


class Report:
    """What a profile has seen: seconds between begin and end, kernel_seconds within kernels, calls, kernels (a list of
    Kernel, the longest time first), ceilings (a list of dicts: device, of, type, per_second, measured), and
    memory_efficiency and compute_efficiency, from 0 to 1: the share of its ceiling that each kernel reached, weighted
    by its time. A kernel that finds its data in caches can be faster than memory and counts as 1.

    str() of it is a table, with a line of advice below each kernel that is far from both ceilings.

    >>> import nvm
    >>> with nvm.profiler.profile() as p:
    ...     y = nvm.exp(nvm.ones(1000)).eval()
    >>> p.report().calls
    1
    """

    def __init__(self, handle, bits):
        import json

        self._text = _nvm.profile_print(handle, _TEXT)
        self._html = _nvm.profile_print(handle, _HTML)
        self._json = _nvm.profile_print(handle, _JSON)
        self._trace = _nvm.profile_print(handle, _TRACE) if bits & METRICS["timeline"] else None
        data = json.loads(self._json)
        self.calls, self.seconds, self.kernel_seconds = data["calls"], data["seconds"], data["kernel_seconds"]
        self.ceilings, self.kernels = data["ceilings"], [Kernel(row) for row in data["kernels"]]
        self._efficiency = {"memory_throughput": data["memory_efficiency"]}
        self._efficiency["compute_utilization"] = data["compute_efficiency"]

    def _share(self, metric):
        if self._efficiency[metric] is None:
            raise AttributeError(f"[profile] {metric} is not among the metrics of this profile")
        return self._efficiency[metric]

    @property
    def memory_efficiency(self):
        return self._share("memory_throughput")

    @property
    def compute_efficiency(self):
        return self._share("compute_utilization")

    def __str__(self):
        return self._text

    def __repr__(self):
        return f"<nvm.profiler.Report of {self.calls} calls of {len(self.kernels)} kernels>"

    def _repr_html_(self):
        return self._html

    def to_json(self):
        """The report as a JSON object: a str."""
        return self._json

    def to_html(self):
        """The report as a page without references to others: a str."""
        return self._html

    def to_trace(self):
        """The timeline in the trace event format, for chrome://tracing and ui.perfetto.dev: a str. RuntimeError if the
        metrics have no "timeline"."""
        if self._trace is None:
            raise RuntimeError("[profile] timeline is not among the metrics of this profile")
        return self._trace

    def save(self, path):
        """Writes the report to a file, as its name ends: .html, .trace.json (the timeline), .json, .txt."""
        writers = {".html": self.to_html, ".trace.json": self.to_trace, ".json": self.to_json, ".txt": self.__str__}
        end = next((end for end in writers if str(path).endswith(end)), None)
        if end is None:
            raise ValueError(f"[profile] {str(path)!r} ends in none of {', '.join(writers)}")
        text = writers[end]()
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


class profile:
    """with nvm.profiler.profile(): or @nvm.profiler.profile(): the kernels that any thread runs inside are timed.

    metrics: names among "memory_throughput" (bytes, GB/s and the share of the memory's bandwidth),
    "compute_utilization" (operations and the share of the arithmetic's rate) and "timeline" (when each call began);
    None: all. ValueError for another name, and for none. ceilings: "measured" (once for each device, when a report is
    first made; kept in the disk cache) or "rated" (what the planner knows of the device).

    Profiles nest; each sees all kernels. One that is used several times, as by a decorated function, sums up. While
    none is active, nothing is measured. A decorated coroutine function is profiled until it returns.

    >>> import nvm
    >>> with nvm.profiler.profile() as p:
    ...     _ = (nvm.ones(1000) + 1).eval()
    >>> len(p.report().kernels) > 0
    True
    """

    def __init__(self, metrics=None, *, ceilings="measured"):
        if ceilings not in ("measured", "rated"):
            raise ValueError(f"[profile] ceilings are 'measured' or 'rated', not {ceilings!r}")
        self._bits = _bits(metrics)
        self._handle = _nvm.profile_new(self._bits, ceilings == "rated")

    def __enter__(self):
        _nvm.profile_begin(self._handle)
        return self

    def __exit__(self, *error):
        global _last
        _nvm.profile_end(self._handle)
        _last = self

    def __call__(self, fn):
        from functools import wraps
        from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

        if not callable(fn):
            raise TypeError(f"[profile] decorates a function, not {type(fn).__name__}")
        if isgeneratorfunction(fn) or isasyncgenfunction(fn):
            raise TypeError(
                f"[profile] cannot decorate the generator function {fn.__name__}, whose body runs after the call has "
                "returned; use a with statement around the loop that reads it"
            )

        @wraps(fn)
        def call(*args, **kwargs):
            with self:
                return fn(*args, **kwargs)

        @wraps(fn)
        async def call_coroutine(*args, **kwargs):
            with self:
                return await fn(*args, **kwargs)

        return call_coroutine if iscoroutinefunction(fn) else call

    def report(self):
        """What it has seen so far: a Report."""
        return Report(self._handle, self._bits)


def generate_report():
    """The Report of the profile that ended last, in any thread. RuntimeError if none has.

    >>> import nvm
    >>> with nvm.profiler.profile():
    ...     _ = (nvm.ones(1000) + 1).eval()
    >>> type(nvm.profiler.generate_report()).__name__
    'Report'
    """
    if _last is None:
        raise RuntimeError("[generate_report] no profile has ended; use one: with nvm.profiler.profile(): ...")
    return _last.report()
