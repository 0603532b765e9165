"""Arrays of numpy, torch and pandas as plain parts, and back. Imports a package only where a value of it crosses."""

import sys
from importlib import import_module
from typing import Any


def parts_of(value: Any) -> list[Any] | None:
    """Plain parts; None where it is no array."""
    package = type(value).__module__.partition(".")[0]
    if package == "numpy":
        return _of_numpy(value, sys.modules["numpy"])
    if package == "torch" and (torch := sys.modules.get("torch")) is not None:
        return _of_torch(value, torch)
    if package == "pandas" and (pandas := sys.modules.get("pandas")) is not None:
        return _of_pandas(value, pandas)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray") and isinstance(value, numpy.ndarray):
        return _of_numpy(value, numpy)
    return None


def built(parts: list[Any]) -> Any:
    """The reverse. Raises ValueError, TypeError, ImportError."""
    kind, *rest = parts
    numpy = import_module("numpy")
    if kind == "array":
        dtype, shape, data = rest
        if type(data) is list:
            rebuilt = numpy.empty(len(data), object)
            rebuilt[:] = data
            return rebuilt.reshape(shape)
        return numpy.frombuffer(bytearray(data), _dtype(numpy, dtype)).reshape(shape)
    if kind == "scalar":
        return numpy.frombuffer(rest[1], _dtype(numpy, rest[0]))[0]
    if kind == "dtype":
        return _dtype(numpy, rest[0])
    return _built_others(kind, rest)


def _built_others(kind: str, rest: list[Any]) -> Any:
    if kind == "tensor":
        torch = import_module("torch")
        dtype = _torch_dtype(torch, rest[1])
        return torch.from_numpy(rest[0]).to(dtype).requires_grad_(rest[2])
    if kind == "torch.dtype":
        return _torch_dtype(import_module("torch"), rest[0])
    pandas = import_module("pandas")
    if kind == "timestamp":
        return pandas.Timestamp(rest[0])
    if kind == "index":
        values, names, dtype = rest
        if len(names) > 1:
            return pandas.MultiIndex.from_tuples(values, names=names)
        return pandas.Index(values, name=names[0], dtype=dtype)
    if kind == "series":
        return pandas.Series(rest[0], index=rest[1], name=rest[2], dtype=rest[3])
    if kind == "frame":
        columns = [pandas.Series(values, index=rest[1], dtype=dtype) for values, dtype in rest[0]]
        rebuilt = pandas.DataFrame(dict(enumerate(columns)), index=rest[1])
        rebuilt.columns = rest[2]
        return rebuilt
    raise ValueError(f"no array of kind {kind}")


def _of_numpy(value: Any, numpy: Any) -> list[Any] | None:
    if isinstance(value, numpy.dtype):
        return ["dtype", value.str if value.names is None else value.descr]
    if not isinstance(value, (numpy.ndarray, numpy.generic)) or isinstance(value, numpy.ma.MaskedArray):
        return None
    plain = numpy.asarray(value)
    if plain.dtype.hasobject:
        return ["array", None, list(plain.shape), list(plain.ravel())]
    dtype = plain.dtype.str if plain.dtype.names is None else plain.dtype.descr
    if isinstance(value, numpy.generic):
        return ["scalar", dtype, plain.tobytes()]
    return ["array", dtype, list(plain.shape), plain.tobytes()]


def _dtype(numpy: Any, named: Any) -> Any:
    rebuilt = numpy.dtype(named)
    if rebuilt.hasobject:
        raise ValueError("an array of objects as bytes")
    return rebuilt


def _of_torch(value: Any, torch: Any) -> list[Any] | None:
    if isinstance(value, torch.dtype):
        return ["torch.dtype", str(value).removeprefix("torch.")]
    if type(value) is not torch.Tensor:
        return None
    plain = value.detach().cpu()
    wide = plain.float() if plain.dtype in (torch.bfloat16, torch.float16) else plain
    return ["tensor", wide.contiguous().numpy(), str(value.dtype).removeprefix("torch."), value.requires_grad]


def _torch_dtype(torch: Any, name: str) -> Any:
    dtype = getattr(torch, name)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"torch.{name} is no dtype")
    return dtype


def _of_pandas(value: Any, pandas: Any) -> list[Any] | None:
    if isinstance(value, pandas.Timestamp):
        return ["timestamp", value.isoformat()]
    if isinstance(value, pandas.Index):
        return ["index", list(value), list(value.names), str(value.dtype)]
    if type(value) is pandas.Series:
        return ["series", list(value), value.index, value.name, str(value.dtype)]
    if type(value) is pandas.DataFrame:
        columns = [(list(value.iloc[:, at]), str(value.dtypes.iloc[at])) for at in range(value.shape[1])]
        return ["frame", columns, value.index, value.columns]
    return None
