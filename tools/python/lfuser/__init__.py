"""lfuser from Python, over the C ABI (ctypes; no dependency).

    import lfuser
    ctx = lfuser.Context(); cpu = ctx.device("cpu"); stream = cpu.stream()
    exe = ctx.parse(text).compile(cpu)
    y, n = exe.run(stream, [lfuser.Tensor.of("f32", [2, 2], data), 3])

Host scalars come back as Python numbers at once, pending scalars as Pending, tensors as Output. Errors raise lfuser.Error, which
carries `code` ("failed-check", …) and the message of the library.
"""
import ctypes as c
import itertools
import os
import struct

_here = os.path.dirname(os.path.abspath(__file__))


def _find():
    given = os.environ.get("LFUSER_LIBRARY")
    places = [given] if given else [os.path.join(_here, *up, "lib", "liblfuser.so") for up in (["..", "..", "..", "build"], ["..", ".."], ["..", "..", ".."])]
    return next((p for p in places if os.path.exists(p)), given or "liblfuser.so.0")


_lib = c.CDLL(_find())

DTYPES = ["none", "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "c64", "c128"]
CODE = {name: i for i, name in enumerate(DTYPES)}
BYTES = dict(bool=1, i8=1, i16=2, i32=4, i64=8, u8=1, u16=2, u32=4, u64=8, f16=2, bf16=2, f32=4, f64=8, c64=8, c128=16)
_FORMAT = dict(bool="?", i8="b", i16="h", i32="i", i64="q", u8="B", u16="H", u32="I", u64="Q", f16="e", f32="f", f64="d", c64="ff", c128="dd")
KINDS = ["scalar", "pending", "host tensor", "tensor"]
STAGES = dict(fusion=0, graph=1, partition=2, program=3, kernels=4, host_ir=5, host_asm=6, device_ir=7, device_asm=8)


class _Device(c.Structure):
    _fields_ = [("type", c.c_int32), ("ordinal", c.c_int32)]


class _DType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class _Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", _Device), ("rank", c.c_int32), ("dtype", _DType), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class _Managed(c.Structure):
    pass


_Deleter = c.CFUNCTYPE(None, c.POINTER(_Managed))
_Managed._fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("manager", c.c_void_p), ("deleter", _Deleter), ("flags", c.c_uint64), ("tensor", _Tensor)]


class _Argument(c.Structure):
    _fields_ = [("kind", c.c_int), ("dtype", c.c_int), ("value", c.c_uint64 * 2), ("tensor", c.POINTER(_Tensor))]


class _Output(c.Structure):
    _fields_ = [("tensor", c.POINTER(_Tensor)), ("kind", c.c_int), ("dtype", c.c_int), ("value", c.c_uint64 * 2), ("pending", c.c_void_p),
                ("allocated", c.POINTER(_Managed))]


class _Info(c.Structure):
    _fields_ = [("name", c.c_char_p), ("kind", c.c_int), ("dtype", c.c_int), ("rank", c.c_uint32), ("into", c.c_int32)]


class _Stats(c.Structure):
    _fields_ = [("size", c.c_size_t)] + [(n, c.c_uint64) for n in ("launches", "syncs", "compiles", "kernels_loaded", "allocations", "bytes_copied",
                                                          "general_launches", "background_compiles")]


class _ContextOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p * 4), ("log_self", c.c_void_p), ("log", c.c_void_p), ("log_least", c.c_int),
                ("threads", c.c_uint32), ("codegen_path", c.c_char_p), ("cache_directory", c.c_char_p), ("cache_bytes", c.c_uint64)]


class _CacheStats(c.Structure):
    _fields_ = [("size", c.c_size_t), ("directory", c.c_char_p)] + [(n, c.c_uint64) for n in (
        "entries", "bytes", "limit_bytes", "compiles", "shared", "memory_hits", "disk_hits", "misses", "stores", "evictions", "faults")]


class _CompileOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("math", c.c_int), ("sync", c.c_int), ("replay_from", c.c_uint32), ("check_pointers", c.c_bool),
                ("wait", c.c_int)]


def _declare():
    p, s, z, u64 = c.c_void_p, c.c_char_p, c.c_size_t, c.c_uint64
    for name, result, arguments in [
        ("status_code", c.c_int, [p]), ("status_message", s, [p]), ("status_destroy", None, [p]), ("code_name", s, [c.c_int]),
        ("context_create", p, [p, p]), ("context_destroy", None, [p]), ("free", None, [p, p]),
        ("device_open", p, [p, s, p]), ("device_close", None, [p]), ("device_description", s, [p]), ("device_stats", p, [p, p]),
        ("dl_dtype_of", _DType, [c.c_int]),
        ("fusion_parse", p, [p, s, s, z, s, p]), ("fusion_destroy", None, [p]), ("fusion_name", s, [p]),
        ("fusion_print", p, [p, c.c_int, s, c.c_int, c.c_uint32, p]), ("fusion_compile", p, [p, p, p, p]),
        ("context_cache_stats", p, [p, p]), ("context_cache_clear", None, [p]), ("executable_prepare", p, [p]),
        ("executable_prepare_shapes", p, [p, p, z, z]), ("executable_would_compile", p, [p, p, z, p, p]),
        ("executable_destroy", None, [p]), ("executable_n_params", z, [p]), ("executable_n_outputs", z, [p]),
        ("executable_param", p, [p, z, p]), ("executable_output", p, [p, z, p]),
        ("run", p, [p, p, p, z, p, z, p]), ("infer", p, [p, p, z, p, z, p, p]),
        ("stream_create", p, [p, p]), ("stream_destroy", None, [p]), ("stream_synchronize", p, [p]), ("stream_query", p, [p]),
        ("stream_wrap", p, [p, p, p]), ("stream_callback", p, [p, p, p]),
        ("memory_alloc", p, [p, z, p]), ("memory_free", None, [p, p]), ("memory_upload", p, [p, p, p, z]), ("memory_download", p, [p, p, p, z]),
        ("pending_ready", c.c_bool, [p]), ("pending_get", p, [p, u64, p]), ("pending_release", None, [p]),
        ("pending_callback", p, [p, p, p]), ("pending_rearm", None, [p]), ("completion_callback", p, [p, p, p]),
        ("completion_query", p, [p]), ("completion_wait", p, [p, u64]), ("completion_release", None, [p]),
    ]:
        f = getattr(_lib, "lfuser_" + name)
        f.restype, f.argtypes = result, arguments


_declare()


class Error(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


def _check(status):
    if status:
        code, message = _lib.lfuser_status_code(status), _lib.lfuser_status_message(status).decode(errors="replace")
        _lib.lfuser_status_destroy(status)
        raise Error(_lib.lfuser_code_name(code).decode(), message)


def _made(function, *arguments):
    out = c.c_void_p()
    _check(function(*arguments, c.byref(out)))
    return out


def pack(dtype, value):
    """One element as bytes. bf16 is rounded to nearest even; ints wrap is not done: they must fit."""
    if dtype == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        if value != value: return struct.pack("<H", 0x7FC0)
        return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF)
    if dtype in ("c64", "c128"):
        value = complex(value)
        return struct.pack("<" + _FORMAT[dtype], value.real, value.imag)
    return struct.pack("<" + _FORMAT[dtype], value)


def unpack(dtype, data):
    """All elements of little-endian bytes."""
    if dtype == "bf16": return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    flat = [v[0] if len(v) == 1 else complex(*v) for v in struct.iter_unpack("<" + _FORMAT[dtype], data)]
    return flat


def row_major(shape):
    strides, n = [], 1
    for extent in reversed(shape):
        strides.insert(0, n)
        n *= extent
    return strides


class Context:
    def __init__(self, cache=None, cache_bytes=0):
        """cache: the folder where compiled code is kept ("": nowhere; None: $LFUSER_CACHE or ~/.cache/lfuser)."""
        options = _ContextOptions(size=c.sizeof(_ContextOptions), cache_directory=None if cache is None else cache.encode(), cache_bytes=cache_bytes)
        self.handle = _made(_lib.lfuser_context_create, c.byref(options))

    def cache_stats(self):
        raw = _CacheStats(size=c.sizeof(_CacheStats))
        _check(_lib.lfuser_context_cache_stats(self.handle, c.byref(raw)))
        return {n: getattr(raw, n) for n, _ in raw._fields_[1:]}

    def cache_clear(self): _lib.lfuser_context_cache_clear(self.handle)

    def device(self, name="cpu"): return Device(self, name)

    def parse(self, text, file=None, name=None):
        data = text.encode()
        return Fusion(self, _made(_lib.lfuser_fusion_parse, self.handle, file.encode() if file else None, data, len(data), name.encode() if name else None))

    def __del__(self): _lib.lfuser_context_destroy(getattr(self, "handle", None))


class Device:
    def __init__(self, context, name):
        self.context, self.name = context, name
        self.handle = _made(_lib.lfuser_device_open, context.handle, name.encode())

    @property
    def description(self): return _lib.lfuser_device_description(self.handle).decode()

    @property
    def stats(self):
        s = _Stats(c.sizeof(_Stats))
        _check(_lib.lfuser_device_stats(self.handle, c.byref(s)))
        return {name: getattr(s, name) for name, _ in _Stats._fields_[1:]}

    def stream(self): return Stream(self)

    def __del__(self): _lib.lfuser_device_close(getattr(self, "handle", None))


class Stream:
    def __init__(self, device): self.device, self.handle = device, _made(_lib.lfuser_stream_create, device.handle)

    def synchronize(self): _check(_lib.lfuser_stream_synchronize(self.handle))

    def __del__(self): _lib.lfuser_stream_destroy(getattr(self, "handle", None))


class Fusion:
    def __init__(self, context, handle): self.context, self.handle = context, handle

    @property
    def name(self): return _lib.lfuser_fusion_name(self.handle).decode()

    def text(self, stage="fusion", target="cpu", math="exact", n_class=0):
        out = _made(_lib.lfuser_fusion_print, self.handle, STAGES[stage], target.encode(), int(math == "fast"), n_class)
        text = c.string_at(out).decode()
        _lib.lfuser_free(self.context.handle, out)
        return text

    def compile(self, device=None, math="exact", allow_sync=False, replay_from=0, check_pointers=False, never_wait=False):
        options = _CompileOptions(c.sizeof(_CompileOptions), int(math == "fast"), int(allow_sync), replay_from, check_pointers, int(never_wait))
        return Executable(self, device, _made(_lib.lfuser_fusion_compile, self.handle, device.handle if device else None, c.byref(options)))

    def __del__(self): _lib.lfuser_fusion_destroy(getattr(self, "handle", None))


class Tensor:
    """A strided tensor over host bytes (CPU), or over a copy of them on a device (see `on`)."""

    def __init__(self, dtype, shape, storage, strides=None, offset=0):
        self.dtype, self.shape, self.strides, self.offset = dtype, list(shape), list(strides) if strides is not None else row_major(shape), offset
        self.size = len(storage)
        self.storage = c.create_string_buffer(bytes(storage) or b"\0", max(len(storage), 1) + 16)
        at = c.addressof(self.storage)
        self.base = at + (-at) % 16  # aligned to any dtype
        c.memmove(self.base, bytes(storage), len(storage))
        self.device_memory = None

    @staticmethod
    def of(dtype, shape, values): return Tensor(dtype, shape, b"".join(pack(dtype, v) for v in values))

    def struct(self, device_type=1, ordinal=0, base=None):
        rank = len(self.shape)
        self._shape, self._strides = (c.c_int64 * max(rank, 1))(*self.shape), (c.c_int64 * max(rank, 1))(*self.strides)
        base = self.base if base is None else base
        return _Tensor(base, _Device(device_type, ordinal), rank, _lib.lfuser_dl_dtype_of(CODE[self.dtype]), self._shape, self._strides,
                       self.offset * BYTES[self.dtype])

    def on(self, stream):
        """The structure for this tensor on the stream's device; for CUDA and SIM its storage is copied there."""
        if stream is None or stream.device.name == "cpu": return self.struct()
        if self.device_memory is None:
            self.device_memory = _Memory(stream, self.size)
            _check(_lib.lfuser_memory_upload(stream.handle, self.device_memory.pointer, self.base, self.size))
        ordinal = int(stream.device.name.partition(":")[2] or 0)
        return self.struct(12 if stream.device.name == "sim" else 2, ordinal, self.device_memory.pointer.value)

    def read_back(self, stream):
        """The storage after a run (for `into`)."""
        if self.device_memory:
            _check(_lib.lfuser_memory_download(stream.handle, self.base, self.device_memory.pointer, self.size))
            stream.synchronize()
        return c.string_at(self.base, self.size)

    def gather(self, storage):
        """Row-major bytes of the elements of a storage laid out like this tensor's."""
        size, out = BYTES[self.dtype], []
        index = [0] * len(self.shape)
        if any(e == 0 for e in self.shape): return b""
        while True:
            at = (self.offset + sum(i * s for i, s in zip(index, self.strides))) * size
            out.append(storage[at:at + size])
            for axis in reversed(range(len(index))):
                index[axis] += 1
                if index[axis] < self.shape[axis]: break
                index[axis] = 0
            else:
                return b"".join(out)


class _Memory:
    def __init__(self, stream, size):
        self.stream, self.pointer = stream, _made(_lib.lfuser_memory_alloc, stream.handle, max(size, 1))

    def __del__(self):
        if getattr(self, "pointer", None): _lib.lfuser_memory_free(self.stream.handle, self.pointer)


_waiting = {}  # functions that have not been called yet, by number
_numbers = itertools.count(1)
_call_waiting = c.CFUNCTYPE(None, c.c_void_p)(lambda number: _waiting.pop(number)())


def _call_back(register, handle, function):
    """Calls function() once, on a thread of the library."""
    number = next(_numbers)
    _waiting[number] = function
    try: _check(register(handle, c.cast(_call_waiting, c.c_void_p), number))
    except Error:
        del _waiting[number]
        raise


class Completion:
    """How a run ended. An error is raised by whoever asks first."""

    def __init__(self, executable, handle): self.executable, self.handle = executable, handle

    @property
    def done(self):
        """Without waiting; raises the run's error."""
        try: _check(_lib.lfuser_completion_query(self.handle))
        except Error as e:
            if e.code != "not-ready": raise
            return False
        return True

    def wait(self, timeout_ns=60_000_000_000): _check(_lib.lfuser_completion_wait(self.handle, timeout_ns))
    def on_done(self, function): _call_back(_lib.lfuser_completion_callback, self.handle, function)
    def __del__(self): _lib.lfuser_completion_release(getattr(self, "handle", None))


class Pending:
    """A scalar that the device delivers."""

    def __init__(self, device, handle, dtype): self.device, self.handle, self.dtype = device, handle, dtype

    @property
    def ready(self): return _lib.lfuser_pending_ready(self.handle)

    def bytes(self, timeout_ns=60_000_000_000):
        out = (c.c_uint64 * 2)()
        _check(_lib.lfuser_pending_get(self.handle, timeout_ns, c.byref(out)))
        return bytes(out)[:BYTES[self.dtype]]

    def get(self, timeout_ns=60_000_000_000): return unpack(self.dtype, self.bytes(timeout_ns))[0]
    def on_ready(self, function): _call_back(_lib.lfuser_pending_callback, self.handle, function)
    def rearm(self): _lib.lfuser_pending_rearm(self.handle)

    def __del__(self): _lib.lfuser_pending_release(getattr(self, "handle", None))


class Output:
    """A device tensor that the library allocated. `__dlpack__` hands it to any framework."""

    def __init__(self, stream, managed):
        self.stream, self.managed = stream, managed
        t = managed.contents.tensor
        self.shape = [t.shape[i] for i in range(t.rank)]
        self.strides = [t.strides[i] for i in range(t.rank)]

    @property
    def dtype(self):
        _lib.lfuser_dtype_of.argtypes, _lib.lfuser_dtype_of.restype = [_DType], c.c_int
        return DTYPES[_lib.lfuser_dtype_of(self.managed.contents.tensor.dtype)]

    def bytes(self):
        n = BYTES[self.dtype]
        for extent in self.shape: n *= extent
        out = c.create_string_buffer(max(n, 1))
        if n: _check(_lib.lfuser_memory_download(self.stream.handle, out, self.managed.contents.tensor.data, n))
        self.stream.synchronize()
        return out.raw[:n]

    def tolist(self): return unpack(self.dtype, self.bytes())

    def __dlpack_device__(self):
        d = self.managed.contents.tensor.device
        return (d.type, d.ordinal)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()): raise BufferError("lfuser hands out its own memory and makes no copy")
        if max_version is None or max_version[0] < 1: raise BufferError("DLPack 1.0 or later is needed (max_version)")
        self.stream.synchronize()
        new = c.pythonapi.PyCapsule_New
        new.restype, new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
        managed, self.managed = self.managed, None
        # A capsule that nobody takes must free its tensor: its destructor is the object below, kept alive by the module.
        return new(c.cast(managed, c.c_void_p), b"dltensor_versioned", c.cast(_capsule_end, c.c_void_p))

    def __del__(self):
        managed = getattr(self, "managed", None)
        if managed: managed.contents.deleter(managed)


@c.CFUNCTYPE(None, c.c_void_p)
def _capsule_end(capsule):
    valid, get = c.pythonapi.PyCapsule_IsValid, c.pythonapi.PyCapsule_GetPointer
    valid.argtypes, valid.restype = [c.c_void_p, c.c_char_p], c.c_int
    get.argtypes, get.restype = [c.c_void_p, c.c_char_p], c.c_void_p
    if valid(capsule, b"dltensor_versioned"):
        managed = c.cast(get(capsule, b"dltensor_versioned"), c.POINTER(_Managed))
        managed.contents.deleter(managed)


class Info:
    def __init__(self, raw):
        self.name, self.kind = raw.name.decode() if raw.name else None, KINDS[raw.kind]
        self.dtype, self.rank, self.into = DTYPES[raw.dtype], raw.rank, raw.into


class Executable:
    def __init__(self, fusion, device, handle):
        self.fusion, self.device, self.handle = fusion, device, handle
        self.params = [self._info(_lib.lfuser_executable_param, i) for i in range(_lib.lfuser_executable_n_params(handle))]
        self.outputs = [self._info(_lib.lfuser_executable_output, i) for i in range(_lib.lfuser_executable_n_outputs(handle))]

    def _info(self, function, i):
        raw = _Info()
        _check(function(self.handle, i, c.byref(raw)))
        return Info(raw)

    def _arguments(self, arguments, stream):
        raw, keep = (_Argument * max(len(arguments), 1))(), []
        for i, value in enumerate(arguments):
            if isinstance(value, Tensor):
                host = i < len(self.params) and self.params[i].kind == "host tensor"
                struct_ = value.struct() if host else value.on(stream)
                keep.append(struct_)
                raw[i].kind, raw[i].tensor = (2 if host else 3), c.pointer(struct_)
                continue
            dtype, data = value if isinstance(value, tuple) else (self.params[i].dtype, None)
            raw[i].dtype = CODE[dtype]
            data = (data if data is not None else pack(dtype, value)).ljust(16, b"\0")
            raw[i].value[0], raw[i].value[1] = struct.unpack("<QQ", data)
        return raw, keep

    def prepare(self, stream=None, *sets):
        """Compiles ahead: for the given lists of arguments, or, without any, what contiguous and general tensors need."""
        if not sets: return _check(_lib.lfuser_executable_prepare(self.handle))
        each = [self._arguments(arguments, stream) for arguments in sets]
        pointers = (c.c_void_p * len(each))(*[c.addressof(raw) for raw, _ in each])
        _check(_lib.lfuser_executable_prepare_shapes(self.handle, pointers, len(each), len(self.params)))

    def would_compile(self, stream, arguments):
        """(kernels that a run would have to load, those of them that the code generator would have to make)"""
        raw, keep = self._arguments(arguments, stream)
        load, make = c.c_uint32(), c.c_uint32()
        _check(_lib.lfuser_executable_would_compile(self.handle, raw, len(arguments), c.byref(load), c.byref(make)))
        return load.value, make.value

    def run_raw(self, stream, arguments, want_completion=False):
        """Outputs as given by the library; (outputs, completion handle)."""
        raw, keep = self._arguments(arguments, stream)
        out = (_Output * max(len(self.outputs), 1))()
        completion = c.c_void_p()
        _check(_lib.lfuser_run(self.handle, stream.handle if stream else None, raw, len(arguments), out, len(self.outputs),
                               c.byref(completion) if want_completion else None))
        return out, completion

    def run(self, stream, arguments, completion=False):
        """With completion=True: (results, Completion). Results: numbers for host scalars, Pending for pending ones, Output for tensors, the argument's Tensor for `into`. A scalar
        argument is a Python number, or (dtype, bytes)."""
        out, handle = self.run_raw(stream, arguments, completion)
        results = []
        for info, o in zip(self.outputs, out):
            if info.kind == "pending": results.append(Pending(self.device, o.pending, info.dtype))
            elif info.kind == "tensor": results.append(Output(stream, o.allocated) if info.into < 0 else arguments[info.into])
            else: results.append(unpack(info.dtype, bytes(o.value)[:BYTES[info.dtype]])[0])
        return (results, Completion(self, handle)) if completion else results

    def __del__(self): _lib.lfuser_executable_destroy(getattr(self, "handle", None))
