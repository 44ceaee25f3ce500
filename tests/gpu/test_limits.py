"""Sizes, limits and failures: more than 2^31 elements, out of memory, late errors, lost devices, bad requests."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import families
import nvm


def run_alone(text, **env):
    """A program of its own, for what a process does not survive whole."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=200,
    )


def test_more_than_2_to_31_elements(device, torch):
    n = (1 << 31) + 12345
    if torch.cuda.mem_get_info()[0] < 8 * n:
        pytest.skip("less than 17 GB of device memory are free")
    x = torch.zeros(n, dtype=torch.uint8, device="cuda")
    x[-3:] = torch.tensor([7, 8, 9], dtype=torch.uint8)
    x[1 << 31] = 5
    a = nvm.from_dlpack(x)
    y = torch.from_dlpack(a * 2 + 1)
    assert y[-3:].tolist() == [15, 17, 19] and int(y[1 << 31]) == 11 and int(y[12345]) == 1
    assert int(nvm.sum(a)) == 7 + 8 + 9 + 5
    assert int(nvm.argmax(a)) == n - 1
    rows = a[: 1 << 31].reshape((1 << 16, 1 << 15))
    assert np.asarray(nvm.sum(rows, axis=1))[-1] == 0
    column = nvm.max(a[12345:].reshape((1 << 16, 1 << 15)), axis=0)
    assert np.asarray(column)[-3:].tolist() == [7, 8, 9]
    del y
    t = torch.from_dlpack(nvm.permute_dims(rows, (1, 0)) + 1)
    assert int(t[-1, -1]) == 1 and t.shape == (1 << 15, 1 << 16)


def large(torch, gigabytes):
    """More than 2^31, if so much memory is free."""
    if torch.cuda.mem_get_info()[0] < gigabytes << 30:
        pytest.skip(f"less than {gigabytes} GiB of device memory are free")
    return (1 << 31) + 12345


def test_a_scan_of_more_than_2_to_31_elements(device, torch):
    n = large(torch, 10)  # of a byte: read and written
    x = torch.ones(n, dtype=torch.uint8, device="cuda")
    x[1 << 31] = 3
    y = torch.from_dlpack(nvm.cumulative_sum(nvm.from_dlpack(x), dtype=nvm.uint8))
    for at in (0, 255, (1 << 31) - 1, 1 << 31, n - 1):
        assert int(y[at]) == (at + 1 + 2 * (at >= 1 << 31)) % 256, at


def test_a_gather_among_and_to_more_than_2_to_31_elements(device, torch):
    n = large(torch, 10)
    x = torch.zeros(n, dtype=torch.uint8, device="cuda")
    x[1 << 31], x[-1] = 5, 9
    i = nvm.asarray(np.array([0, 1 << 31, n - 1, -1, -n]), device=device)
    a = nvm.from_dlpack(x)
    assert nvm.take(a, i, axis=0).tolist() == [0, 5, 9, 9, 0]
    with pytest.raises(IndexError, match="take"):
        nvm.take(a, nvm.asarray(np.array([n]), device=device), axis=0).tolist()
    del a, x
    column = torch.arange(1 << 16, device="cuda").to(torch.uint8).reshape(1 << 16, 1)
    rows = column.expand(1 << 16, 1 << 15).contiguous()
    back = nvm.asarray(np.arange(1 << 16)[::-1].copy(), device=device)
    y = torch.from_dlpack(nvm.take(nvm.from_dlpack(rows), back, axis=0))
    assert y.numel() == 1 << 31 and torch.equal(y[:, -1], rows[:, 0].flip(0)) and torch.equal(y[:, 0], y[:, -1])


def test_a_broadcast_to_more_than_2_to_31_elements(device, torch):
    large(torch, 10)
    x = nvm.asarray(np.arange(1 << 16).astype(np.uint8), device=device)
    y = torch.from_dlpack(x.reshape((1 << 16, 1)) + x[: (1 << 15) + 3])
    assert y.shape == (1 << 16, (1 << 15) + 3)
    for i, j in ((0, 0), (65535, 32770), (65535, 0), (32768, 1), (40000, 32768)):
        assert int(y[i, j]) == (i + j) % 256, (i, j)


def test_a_strided_view_of_more_than_2_to_31_elements(device, torch):
    n = large(torch, 10) // 2 * 2
    x = torch.zeros(n, dtype=torch.uint8, device="cuda")
    x[-2:] = torch.tensor([7, 8], dtype=torch.uint8)
    x[1 << 31] = 5
    a = nvm.from_dlpack(x)
    y = torch.from_dlpack(a[::2] + 1)
    assert y.numel() == n // 2 and y[-1] == 8 and y[1 << 30] == 6 and y[123] == 1
    z = torch.from_dlpack(a[::-1] * 2)
    assert z[:2].tolist() == [16, 14] and int(z[n - 1 - (1 << 31)]) == 10 and int(z[-1]) == 0
    assert nvm.from_dlpack(x[(1 << 31) - 1 :: 2])[:1].tolist() == [0] and int(nvm.sum(nvm.from_dlpack(x[::2]))) == 7 + 5


def test_out_of_memory_recovers(device):
    before = nvm.memory_info(device)
    x = nvm.ones((1 << 20,), dtype=nvm.float32, device=device)
    nvm.eval(x)
    with pytest.raises(MemoryError, match=r"\d"):
        nvm.eval(nvm.ones((1 << 40,), dtype=nvm.float32, device=device) + 1)
    assert float(nvm.sum(x)) == 1 << 20
    del x
    nvm.synchronize()
    assert nvm.memory_info(device)["used"] <= before["used"] + (1 << 20)


@pytest.mark.emulated
def test_memory_limit(device):
    nvm.synchronize()
    used = nvm.memory_info(device)["used"]
    nvm.set_memory_limit(used + (8 << 20), device)
    try:
        with pytest.raises(MemoryError):
            nvm.eval(nvm.ones((4 << 20,), dtype=nvm.float32, device=device) + 1)
        small = nvm.ones((1 << 18,), dtype=nvm.float32, device=device) + 1
        assert float(nvm.max(small)) == 2
        nvm.set_memory_limit(1, device)
        with pytest.raises(MemoryError, match=r"0 bytes \(\d\d+ as a block\)"):
            nvm.eval(nvm.ones(0, device=device) + 1)
    finally:
        nvm.set_memory_limit(0, device)
    nvm.eval(nvm.ones((4 << 20,), dtype=nvm.float32, device=device) + 1)


def test_freed_memory_is_used_again(device):
    f = nvm.jit(lambda v: v * 2 + 1)
    x = nvm.ones((1 << 22,), dtype=nvm.float32, device=device)
    nvm.eval(x)
    peak = 0
    for i in range(200):
        y = f(x)
        if i == 10:
            peak = nvm.memory_info(device)["peak"]
    del y
    assert nvm.memory_info(device)["peak"] == peak


@pytest.mark.emulated
@pytest.mark.parametrize("n", [1000, 5000, 30000])
def test_an_index_out_of_range_among_lanes_that_meet(n, device):
    """The thread that finds it goes on to the exchanges and barriers of its block, and of a cluster's."""
    x = nvm.asarray(np.ones((6, n), np.float32), device=device).eval()
    for at, wrong in ((7, n), (n - 1, -n - 1)):
        i = np.arange(n)
        i[at] = wrong
        with pytest.raises(IndexError, match="take"):
            np.asarray(nvm.softmax(nvm.take(x, nvm.asarray(i, device=device), axis=1), axis=1))
    assert np.asarray(x + 1).sum() == 12 * n


@pytest.mark.emulated
def test_index_out_of_range_is_raised_at_the_next_read(device):
    x = nvm.asarray(np.arange(100, dtype=np.float32), device=device)
    y = nvm.take(x, nvm.asarray(np.array([1, 2, 100]), device=device), axis=0) * 2
    with pytest.raises(IndexError, match=r"^\[(take|getitem)\] an index is out of range for axis 0 of extent \d+$"):
        np.asarray(y)
    good = nvm.take(x, nvm.asarray(np.array([1, 2, 99, -1]), device=device), axis=0)
    assert np.asarray(good).tolist() == [1, 2, 99, 99]  # the device goes on
    # two in one kernel
    z = x[:4] + nvm.take_along_axis(good, nvm.asarray(np.array([0, 3, 4, 0]), device=device), axis=0)
    with pytest.raises(IndexError, match=r"^\[take_along_axis\] an index"):
        np.asarray(z)


@pytest.mark.emulated
def test_foreign_memory_that_is_not_there_is_refused(device):
    class Wrong:
        __cuda_array_interface__ = dict(
            shape=(1 << 20,), typestr="<f4", data=(0x7F0000000000, False), version=3, strides=None
        )

    for copy in (False, None):
        with pytest.raises(ValueError, match="0x7f0000000000 is no memory of a GPU"):
            nvm.asarray(Wrong(), copy=copy)


@pytest.mark.emulated
def test_memory_that_goes_loses_the_device_and_not_the_process(device):
    """Every use of the device says the same from then on, with the name of the kernel."""
    p = run_alone(f"""
        import ctypes, numpy as np, nvm
        x = nvm.asarray(np.ones(10, np.float32), device="{device}") + 1
        f = nvm.jit(lambda v: v - 1)
        assert float(f(x)[0]) == 1
        cuda = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line))
        at = ctypes.c_void_p()
        assert not cuda.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1 << 26))
        class Foreign:
            __cuda_array_interface__ = dict(shape=(1 << 24,), typestr="<f4", data=(at.value, False), version=3)
        gone = nvm.asarray(Foreign(), copy=False)
        nvm.synchronize()
        assert not cuda.cudaFree(at)
        if hasattr(cuda, "emu_fail_kernel"):
            cuda.emu_fail_kernel(0, 700)
        y = (gone * 2 + 1).eval()
        there = nvm.ones(3, device="{device}")
        calls = [lambda: nvm.synchronize(), lambda: y.tolist(), lambda: x.tolist(), lambda: f(x).tolist(),
                 lambda: (there + 1).eval(), lambda: f(np.ones(3)), lambda: (nvm.ones(3) * 2).tolist(),
                 lambda: nvm.memory_info("{device}"), lambda: nvm.trim_memory("{device}"),
                 lambda: nvm.stream(1, "{device}").__enter__(), lambda: x.__dlpack__(), lambda: nvm.synchronize()]
        for call in calls:
            try:
                call()
                print("no error")
            except nvm.Error as e:
                print(e)
        print("info", [line for line in nvm.info().splitlines() if line.startswith("{device}")][0])
        print("devices", "{device}" in nvm.devices())
        print("cpu", float(nvm.sum(nvm.asarray(np.ones(1000, np.float32), device="cpu") + 1)))
        nvm.set_default_device("cpu")
        print("then", f(np.ones(3)).tolist())
    """)
    lines = p.stdout.splitlines()
    assert len(lines) == 16, (p.stdout, p.stderr)
    assert lines[0].startswith(f"[{device}] the device is lost: "), lines
    assert "in kernel map; the CPU goes on" in lines[0], lines
    assert lines[1:12] == lines[:1] * 11 and lines[0] in lines[12]
    assert lines[13:] == ["devices False", "cpu 2000.0", "then [0.0, 0.0, 0.0]"]


only_emulated = pytest.mark.skipif("NVM_EMU_DIR" not in os.environ, reason="only the emulator has GPUs of any kind")


@pytest.mark.emulated
@only_emulated
@pytest.mark.parametrize(
    "archs,default,usable", [("75,90", "cuda:1", [1]), ("90,75", "cuda:0", [0]), ("70,75", "cpu", [])]
)
def test_the_default_is_the_first_gpu_that_can_be_used(archs, default, usable):
    p = run_alone(
        """
        import nvm
        y = (nvm.ones(3) + 1).eval()
        print(y.device, nvm.get_default_device(), y.tolist(), [str(d) for d in nvm.devices()])
        print([line for line in nvm.info().splitlines() if line.startswith("cuda:")])
        for i in range(2):
            try:
                print((nvm.ones(3, device=f"cuda:{i}") + 1).tolist())
            except NotImplementedError as e:
                print(e)
    """,
        NVM_EMU_DEVICES="2",
        NVM_EMU_ARCH=archs,
    )
    lines = p.stdout.splitlines()
    found = ["cpu"] + [f"cuda:{i}" for i in usable]
    assert lines[0] == f"{default} {default} [2.0, 2.0, 2.0] {found}", (lines, p.stderr)
    for i, arch in enumerate(archs.split(",")):
        why = f"[cuda:{i}] compute capability {arch[0]}.{arch[1]}; 8.0 is needed"
        assert (
            lines[2 + i] == "[2.0, 2.0, 2.0]" and why not in lines[1]
            if i in usable
            else lines[2 + i] == why and why in lines[1]
        ), lines


@pytest.mark.parametrize(
    "dictionary,error",
    [
        (dict(data=(0, False)), ValueError),
        (dict(data=(4097, False)), ValueError),
        (dict(typestr="<f12"), TypeError),
        (dict(stream=0), ValueError),
        (dict(shape=(2,) * 40), ValueError),
    ],
)
def test_bad_foreign_arrays(dictionary, error, device):
    class Wrong:
        __cuda_array_interface__ = dict(
            dict(shape=(100,), typestr="<f4", data=(4096, False), version=3, strides=None), **dictionary
        )

    with pytest.raises(error):
        nvm.eval(nvm.asarray(Wrong(), copy=False) + 1)


@pytest.mark.emulated
def test_bad_requests(device):
    with pytest.raises(Exception, match="99"):
        nvm.eval(nvm.ones(3, device="cuda:99"))
    with pytest.raises(ValueError):
        nvm.asarray([1.0], device="gpu")
    with pytest.raises(ValueError, match="add"):
        nvm.asarray([1.0], device="cpu") + nvm.asarray([1.0], device=device)


def test_a_child_after_fork_is_told(device):
    p = run_alone(f"""
        import os, numpy as np, nvm
        x = nvm.asarray(np.ones(10, np.float32), device="{device}")
        assert float(nvm.sum(x)) == 10
        child = os.fork()
        if child == 0:
            try:
                float(nvm.sum(x + 1))
            except Exception as e:
                os._exit(7 if "fork" in str(e) else 8)
            os._exit(9)
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print("parent", float(nvm.sum(x + 1)))
    """)
    assert "child 7" in p.stdout and "parent 20.0" in p.stdout, (p.stdout, p.stderr)


@pytest.mark.emulated
def test_a_child_whose_default_was_not_decided_is_told(device):
    """It does not compute on the CPU what would have been computed on a GPU."""
    p = run_alone(f"""
        import os, numpy as np, nvm
        x = nvm.asarray(np.ones(10, np.float32), device="{device}").eval()
        if os.fork() == 0:
            for call in (lambda: (nvm.ones(3) + 1).tolist(), lambda: nvm.jit(lambda v: v + 1)(np.ones(3)),
                         lambda: x.tolist(), lambda: nvm.ones(3, device="{device}").eval(), nvm.synchronize):
                try:
                    call()
                    print("no error", flush=True)
                except nvm.Error as e:
                    print(e, flush=True)
            print("cpu", (nvm.ones(3, device="cpu") + 1).tolist(), flush=True)
            os._exit(0)
        os.wait()
        print("parent", x.tolist()[0], (nvm.ones(3) + 1).eval().device)
    """)
    lines = p.stdout.splitlines()
    assert len(set(lines[:5])) == 1 and "forked after a GPU had been used" in lines[0], (lines, p.stderr)
    assert lines[5:] == ["cpu [2.0, 2.0, 2.0]", f"parent 1.0 {device}"]


@pytest.mark.emulated
def test_devices_and_with(device):
    assert nvm.devices()[:2] == ["cpu", device]
    with nvm.device(device):
        x = nvm.ones(5, dtype=nvm.float32) + 1
    with nvm.device("cpu"):
        y = nvm.ones(5, dtype=nvm.float32) + 1
    nvm.eval(x, y)
    assert x.device == device and y.device == "cpu" and families.same(np.asarray(x), np.asarray(y))


@pytest.mark.emulated
def test_item_assignment_and_views(device):
    x = nvm.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), device=device)
    want = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = x[1]
    x[1, 2] = 50.0
    want[1, 2] = 50.0
    np.testing.assert_array_equal(np.asarray(view), want[1])
    np.testing.assert_array_equal(np.asarray(x[:, ::-1]), want[:, ::-1])
    assert x[2].tolist() == want[2].tolist() and int(nvm.argmax(x)) == 6


@pytest.mark.emulated
def test_a_traced_function_finds_no_eigenvalues_on_a_gpu(device):
    x = nvm.asarray(np.diag([3.0, 1.0]), device=device)
    y = nvm.linalg.eigvals(x)
    assert y.device == device and sorted(v.real for v in y.tolist()) == [1, 3]
    with pytest.raises(RuntimeError, match=r"\[linalg.eigvals\].*GPU"):
        nvm.jit(lambda x: nvm.linalg.eigvals(x) + 1)(x).tolist()
