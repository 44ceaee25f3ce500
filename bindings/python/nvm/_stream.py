"""nvm.Stream and nvm.Event, with the names of CUDA Core. Where everything is in order anyway, on the CPU, they are
accepted, so that a program runs on either device."""

from _thread import _local
from time import perf_counter_ns

from . import _nvm
from ._device import device as _device
from ._device import stream

_entered = _local()  # .streams: those whose `with` blocks a thread is in


def entered():
    """The Streams whose `with` blocks this thread is in, as a tuple."""
    return getattr(_entered, "streams", ())


def _refuse_closed(what, handle):
    if handle is None:
        raise RuntimeError(f"[{what}] it was closed")
    return handle


class Stream:
    """A stream of a GPU: work that is ordered among itself alone. device: the GPU, or the CPU; None: the default
    device.

    Inside `with nvm.Stream() as s:` this thread's work on s.device goes to s; `with` nests. What another stream made
    is waited for on the device where it is read. Only what runs inside goes there: jitted functions, nvm.eval, reads;
    a lazy array that is evaluated later is not.

    On the CPU an evaluation is complete when it returns, so everything is in order: record, wait and sync are accepted
    and wait for nothing; there is no handle.

    >>> import nvm
    >>> with nvm.Stream("cpu") as s:
    ...     y = (nvm.ones(2) + 1).eval()
    >>> y
    array([2., 2.])
    """

    def __init__(self, device=None):
        self.device = _device(device)
        self._handle = _nvm.stream_new(self.device) if self.device.type == "cuda" else 0
        self._owned, self._within, self._awaited = True, [], set()

    @classmethod
    def from_handle(cls, handle, device=None):
        """A stream that somebody else made and keeps: an address (cudaStream_t) or an object of PyTorch, CuPy, or with
        __cuda_stream__."""
        foreign = stream(handle, device)
        self = cls.__new__(cls)
        on = foreign.device if foreign.device is not None else _nvm.stream_device(foreign.handle)
        self.device, self._handle, self._owned = _device(on), foreign.handle, False
        self._within, self._awaited = [], set()
        return self

    @property
    def handle(self):
        """The address (cudaStream_t): an int. AttributeError on the CPU."""
        if self.device.type == "cpu":
            raise AttributeError("[Stream] a stream of the CPU has no handle")
        return _refuse_closed("Stream", self._handle)

    def __cuda_stream__(self):
        """CUDA's protocol: (0, the address). RuntimeError on the CPU."""
        if self.device.type == "cpu":
            raise RuntimeError("[Stream] a stream of the CPU is none of CUDA")
        return 0, self.handle

    def __enter__(self):
        _refuse_closed("Stream", self._handle)
        if self.device.type == "cuda":
            inner = stream(self.handle, self.device)
            inner.__enter__()
            self._within.append(inner)
            _entered.streams = (*entered(), self)
        return self

    def __exit__(self, *error):
        if self._within:
            _entered.streams = entered()[:-1]
            self._within.pop().__exit__(*error)

    def record(self, event=None):
        """Records an event, a new one if none is given, behind the work launched so far; returns it."""
        _refuse_closed("Stream", self._handle)
        return (Event(self.device) if event is None else event).record(self)

    def wait(self, other):
        """Orders later work of this stream behind an event, or behind the work that was launched on another stream so
        far. TypeError for something else."""
        if isinstance(other, Stream):
            other = other.record()
        if not isinstance(other, Event):
            raise TypeError(f"[Stream.wait] waits for an Event or a Stream, not {type(other).__name__}")
        _refuse_closed("Stream", self._handle)
        if "cpu" in (other.device, self.device):
            other.sync()
        else:
            _nvm.stream_wait(self.device, self.handle, other.handle)

    def sync(self):
        """Waits in this thread until all work launched on it is complete."""
        _refuse_closed("Stream", self._handle)
        if self.device.type == "cuda":
            _nvm.stream_sync(self.device, self.handle)

    def close(self):
        """Gives it back; what was launched runs on. RuntimeError inside its own `with`, and while an evaluation that
        nvm.async_eval started there has not ended."""
        if self._within or self._awaited:
            user = "a with block" if self._within else "an evaluation of async_eval"
            raise RuntimeError(f"[Stream.close] {user} still uses it")
        if self._handle and self._owned:
            _nvm.stream_free(self.device, self._handle)
        self._handle = None

    def __del__(self):
        if getattr(self, "_handle", None) and self._owned and not self._within:
            try:
                self.close()
            except Exception:  # the device is lost, or the interpreter ends
                pass

    def __repr__(self):
        at = "" if self.device.type == "cpu" else " closed" if self._handle is None else f" {self._handle:#x}"
        return f"<nvm.Stream{at} on {self.device}>"


class Event:
    """A point in the work of a stream. device: as of Stream, whose current stream it is recorded in by default.

    `with nvm.Event() as e:` records its begin and its end; e.elapsed_ms() is the time between the two. On the CPU it is
    the monotonic clock at that time.

    >>> import nvm
    >>> e = nvm.Event("cpu").record()
    >>> e.is_done
    True
    """

    def __init__(self, device=None):
        self.device = _device(device)
        self._handle = _nvm.event_new(self.device) if self.device.type == "cuda" else 0
        self._at = self._begin = None  # at: on the CPU ns, on a GPU whether it was recorded

    @property
    def handle(self):
        """The address (cudaEvent_t): an int. AttributeError on the CPU."""
        if self.device.type == "cpu":
            raise AttributeError("[Event] an event of the CPU has no handle")
        return _refuse_closed("Event", self._handle)

    def record(self, stream=None):
        """Stands for the work launched on a Stream so far (None: the thread's current one); returns the event.
        ValueError for a stream of another device."""
        if stream is not None and stream.device != self.device:
            raise ValueError(f"[Event.record] the stream is of {stream.device}, the event of {self.device}")
        _refuse_closed("Event", self._handle)
        if self.device.type == "cuda":
            _nvm.event_record(self.device, self.handle, 0 if stream is None else stream.handle)
        self._at = perf_counter_ns()
        return self

    def wait(self, stream=None):
        """Orders later work of a Stream (None: the thread's current one) behind it."""
        if stream is not None:
            stream.wait(self)
        elif self.device.type == "cuda":
            _nvm.stream_wait(self.device, 0, self.handle)

    def sync(self):
        """Waits in this thread for the work that it stands for."""
        _refuse_closed("Event", self._handle)
        if self.device.type == "cuda":
            _nvm.event_sync(self.device, self.handle)

    @property
    def is_done(self):
        """True if the work that it stands for is complete."""
        _refuse_closed("Event", self._handle)
        return self.device.type == "cpu" or _nvm.event_done(self.device, self.handle)

    def elapsed_ms(self, end=None):
        """Milliseconds from this event to `end`, for which it waits; of a `with` block, from its begin to its end.
        RuntimeError if one of them was not recorded, ValueError if they are of two devices."""
        begin, end = (self._begin, self) if end is None else (self, end)
        if begin is None or begin._at is None or end._at is None:
            raise RuntimeError("[Event.elapsed_ms] an event was not recorded")
        if begin.device != end.device:
            raise ValueError(f"[Event.elapsed_ms] the events are of {begin.device} and {end.device}")
        if self.device.type == "cpu":
            return (end._at - begin._at) / 1e6
        return _nvm.event_elapsed(self.device, begin.handle, end.handle)

    def __sub__(self, begin):
        """end - begin: the milliseconds between two events."""
        return begin.elapsed_ms(self) if isinstance(begin, Event) else NotImplemented

    def __enter__(self):
        self._begin = Event(self.device).record()
        return self

    def __exit__(self, *error):
        self.record()

    def close(self):
        """Gives it back."""
        if self._handle:
            _nvm.event_free(self.device, self._handle)
        self._handle = None

    def __del__(self):
        if getattr(self, "_handle", None):
            try:
                self.close()
            except Exception:  # the device is lost, or the interpreter ends
                pass

    def __repr__(self):
        return f"<nvm.Event on {self.device}>"
