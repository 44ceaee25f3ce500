from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypeVar

_Metric = Literal["memory_throughput", "compute_utilization", "timeline"]
_F = TypeVar("_F", bound=Callable[..., Any])

METRICS: dict[str, int]

class Kernel:
    device: str
    kind: str
    by: str
    what: str
    calls: int
    seconds: float
    fastest: float
    bytes: int
    operations: int
    memory: float | None
    compute: float | None
    advice: str
    def __init__(self, row: dict[str, Any]) -> None: ...

class Report:
    calls: int
    seconds: float
    kernel_seconds: float
    kernels: list[Kernel]
    ceilings: list[dict[str, Any]]
    def __init__(self, handle: Any, bits: int) -> None: ...
    @property
    def memory_efficiency(self) -> float: ...
    @property
    def compute_efficiency(self) -> float: ...
    def to_json(self) -> str: ...
    def to_html(self) -> str: ...
    def to_trace(self) -> str: ...
    def save(self, path: str | PathLike[str]) -> None: ...

class profile:
    def __init__(
        self, metrics: Sequence[_Metric] | None = None, *, ceilings: Literal["measured", "rated"] = "measured"
    ) -> None: ...
    def __enter__(self) -> profile: ...
    def __exit__(self, *error: object) -> None: ...
    def __call__(self, fn: _F) -> _F: ...
    def report(self) -> Report: ...

def generate_report() -> Report: ...
