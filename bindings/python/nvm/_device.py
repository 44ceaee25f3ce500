"""Devices and streams as Python meets them: nvm.device("cuda:0"), which is a string and a context manager, and
nvm.stream."""

from _thread import _local

from . import _nvm

_within = _local()


def _outer():
    """What the `with` blocks that this thread is inside of put back, the innermost last."""
    if not hasattr(_within, "before"):
        _within.before = []
    return _within.before


class device(str):
    """A device by name: "cpu", "cuda" (the first GPU), "cuda:1"; "auto" and None: the default device.

    It equals its name. Inside `with nvm.device("cuda:1"):` what this thread makes is put there.

    >>> import nvm
    >>> nvm.device("cpu")
    nvm.device('cpu')
    """

    def __new__(cls, name=None):
        number = name if type(name) is int else _nvm.device_number(name)
        number = number or _nvm.default_device()
        if number not in _known:
            _known[number] = self = str.__new__(cls, f"cuda:{number - 2}" if number > 1 else "cpu")
            self.number = number
        return _known[number]

    @property
    def type(self):
        """'cpu' or 'cuda'."""
        return "cuda" if self.number > 1 else "cpu"

    @property
    def index(self):
        """The GPU's ordinal; 0 for the CPU."""
        return max(self.number - 2, 0)

    def __repr__(self):
        return f"nvm.device({str(self)!r})"

    def __reduce__(self):
        return device, (str(self),)

    def __enter__(self):
        _outer().append(_nvm.thread_device(self.number))
        return self

    def __exit__(self, *error):
        _nvm.thread_device(_outer().pop())


_known = {}


def devices():
    """The devices that can be used: a list, the CPU first.

    >>> import nvm
    >>> nvm.devices()[0]
    nvm.device('cpu')
    """
    gpus = range(2, 2 + _nvm.device_count())
    return [device("cpu")] + [device(number) for number in gpus if _nvm.device_usable(number)]


def get_default_device():
    """Where arrays that were put on no device are computed.

    >>> import nvm
    >>> nvm.get_default_device()
    nvm.device('cpu')
    """
    return device()


def _device_of(s):
    """The GPU that a stream object of PyTorch (device.index), CuPy (device_id) or another says it is of, or None."""
    at = getattr(s, "device", s)
    for attribute in ("device_id", "index"):
        number = getattr(at, attribute, None)
        if type(number) is int and number >= 0:
            return device(2 + number)
    return None


class stream:
    """Inside `with nvm.stream(s):` this thread's work on the GPU that s is of goes to the stream s: an address
    (cudaStream_t; 1 is the legacy default stream, 2 the thread's: of `device`, else of the thread's device or the
    default one), or a stream object of PyTorch, CuPy, or with __cuda_stream__. It must outlive its use.

    >>> import nvm
    >>> s = nvm.stream(2, device="cuda:0")
    >>> s.handle
    2
    """

    def __init__(self, handle, device=None):
        device = _device_of(handle) if device is None else device
        for attribute in ("cuda_stream", "ptr"):
            handle = getattr(handle, attribute, handle)
        if hasattr(handle, "__cuda_stream__"):
            handle = handle.__cuda_stream__
            handle = (handle() if callable(handle) else handle)[1]
        self.handle, self.device = int(handle) or 1, device

    def __enter__(self):
        on = self.device
        if on is None:
            on = device(_nvm.stream_device(self.handle))
        before = _nvm.stream_get(on)
        _nvm.stream_set(on, self.handle)
        _outer().append((on, before))
        return self

    def __exit__(self, *error):
        _nvm.stream_set(*_outer().pop())


_nvm.hooks["device"] = device
