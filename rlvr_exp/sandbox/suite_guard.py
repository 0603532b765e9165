"""The guard of a suite: an audit hook, guarded attributes and modules, and watched dicts, set up before any solution.

In the zygote `Guard` takes in all code that is there, puts guards before attributes that lead from any function,
traceback or module to the suite's, freezes the classes that tests are judged with, and gives every module a class
which says who writes to it. In a fork `arm` begins to judge: what the solution may not do ends the process at once
with an authenticated report of the rule. Objects of this module are held by closures and the hook alone.
Standard library and pytest only.
"""

import _imp
import builtins
import copy
import dis
import json
import re
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

import pytest

from rlvr_exp.sandbox import suite_equal
from rlvr_exp.sandbox import suite_native as native
from rlvr_exp.sandbox import suite_rules as rules
from rlvr_exp.sandbox.suite_asker import Asker, Registry
from rlvr_exp.sandbox.suite_given import Given

Refuse = Callable[[str, str], None]
"""(rule, detail): reports and ends the process; never returns."""
_GUARDS = tuple(f"rlvr_exp.sandbox.suite_{name}" for name in ("guard", "rules", "equal", "cells", "star", "given"))
_CODE_PARTS = frozenset(("__code__", "__defaults__", "__kwdefaults__"))
_FREE_IN_SYS = frozenset(
    "stdin stdout stderr argv excepthook displayhook tracebacklimit dont_write_bytecode last_type last_value "
    "last_traceback ps1 ps2 unraisablehook".split()
)
_STACKS = ("inspect", "traceback")
"""Who shows stacks: to a solution, up to where it was called."""
_TABLES: dict[str, dict[Any, Any]] = {
    "pytest.mark": vars(pytest.mark),
    "copy's table": copy._deepcopy_dispatch,
    "copy's own table": copy._copy_dispatch,
    "json's decoder": vars(json._default_decoder),
    "json's encoder": vars(json._default_encoder),
}
"""Objects of libraries that suites judge with, their content open to all."""
_FREE = {
    "sys": _FREE_IN_SYS,
    "warnings": ("showwarning", "formatwarning"),
    "threading": ("excepthook",),
    "logging": ("raiseExceptions", "lastResort"),
    "ssl": ("_create_default_https_context",),
}
"""Attributes of modules that are there to be set."""
_FROZEN = rules.FAMILY | {"contextlib", "rlvr_exp"}
_module_dict = ModuleType.__dict__["__dict__"]
_write, _delete = ModuleType.__setattr__, ModuleType.__delattr__


class Guard:
    """One per zygote. Everything passes until `arm`."""

    def __init__(self) -> None:
        self.registry = Registry(_GUARDS)
        self._refuse: Refuse | None = None
        self._events: dict[str, Callable[[tuple[Any, ...]], str | None]] = {}
        self._watches: dict[int, tuple[str, native.Watch, ModuleType | None]] = {}
        self._modules: dict[int, ModuleType] = {}
        self._kept: Iterable[type] = ()
        self._classes: dict[int, tuple[str, native.Watch, None]] = {}
        self._suite: frozenset[str] = frozenset()
        self._class, self._stand_in = _guarded_class(self), _stand_in_class(self)
        self._named: dict[str, ModuleType] = {}
        self.builtins = _private_builtins()
        self.comparer = suite_equal.Comparer(self._is_the_solutions, self.refuse)
        suite_equal.watch_unittest(self.comparer.look, self.comparer.settled)
        suite_equal.watch_approx(self._approx_made)
        self._guard_attributes()
        self._guard_extensions()
        self.guard_modules()
        self.freeze()
        self._watch_writes()

    # In the zygote, and for modules that the suite needs beyond it

    def guard_modules(self) -> None:
        """Every module that is loaded says from now on who writes to it."""
        for name, module in list(sys.modules.items()):
            new = type(module) in (ModuleType, self._class) and id(module) not in self._modules
            if new and name != "__main__" and not name.startswith("rlvr_exp"):
                module.__class__ = self._class  # first: a module that is known is nobody's to change
                self._modules[id(module)] = module

    def freeze(self) -> None:
        """Classes that tests are judged with; those of settings write to themselves."""
        native.freeze(
            cls
            for cls in _classes()
            if cls.__module__.partition(".")[0] in _FROZEN and not cls.__module__.startswith("hypothesis._settings")
        )

    def _watch_writes(self) -> None:
        for name, table in _TABLES.items():
            self._watches[id(table)] = (name, native.Watch(table), None)
        for module in self._modules.values():
            if module.__name__ != "time" and not _writes_itself(module):  # time.tzset writes to its module
                self._watches[id(module)] = (module.__name__, native.Watch(module.__dict__), module)
        self._watches[id(builtins)] = ("builtins", native.Watch(builtins.__dict__), None)
        self._kept = _classes()  # alive, since known by where they lie
        for cls in self._kept:
            if cls.__module__.partition(".")[0] in sys.stdlib_module_names:
                self._classes[id(cls)] = (cls.__qualname__, native.Watch(native.class_table(cls), keep=True), None)

    # Armed

    def arm(
        self, refuse: Refuse, files: rules.Files, suite: frozenset[str], imports: Iterable[str], patches: bool
    ) -> None:
        """From here on whatever is not the suite's, the grader's or a library's is the solution's.

        Args:
            suite: the names of its files.
            imports: the modules that it names: they are still themselves when it asks for them.
            patches: the suite patches things itself; otherwise no class of a library may change under it.
        """
        self._refuse, self._suite = (refuse, frozenset(name.removesuffix(".py") for name in suite))
        if not patches:
            self._watches |= self._classes
        self.comparer.mocks = patches
        family = [name for name in sys.modules if name.partition(".")[0] in rules.FAMILY]
        asked = [name for name in (*family, *imports) if name in sys.modules and name != "builtins"]
        self._named = {name: sys.modules[name] for name in asked}
        self._events = _events(files, suite)
        for _, watch, _ in self._watches.values():
            watch.accept()
        events, judge = self._events, self._judge

        def hook(event: str, args: tuple[Any, ...]) -> None:
            rule = events.get(event)
            if rule is not None:
                judge(event, args, rule)

        sys.addaudithook(hook)

    def loaded(self) -> None:
        """The solution is there: a library that it loaded may have added names to classes of others, no more."""
        for cls in self._kept:
            watch = self._watches.get(id(cls), ("", None, None))[1]
            if watch is not None and watch.written() and watch.only_more(cls):
                watch.accept()

    def check(self, solution: ModuleType | None, given: Given) -> None:
        """Nothing was written behind the guards' backs; refuses where it was."""
        for name, watch, module in self._watches.values():
            if watch.written() or (module is not None and type(module) is not self._class):
                self._refuse(rules.PATCHED, f"{name} was changed")
        if any(type(key[1]) is not type(found.pattern) or found.pattern != key[1] for key, found in _patterns()):
            self._refuse(rules.PATCHED, "re's cache was changed")
        if solution is not None and sys.modules.get("solution") is not solution:
            self._refuse(rules.REPLACED, "the module solution was replaced")

        replaced = next((name for name, module in self._named.items() if sys.modules.get(name) is not module), None)
        if name := replaced or given.replaced():
            self._refuse(rules.REPLACED, f"the module {name} was replaced")

    def stand_in(self, name: str, path: str) -> ModuleType:
        """What lies in `sys.modules` for a file of the suite: nothing to be read there."""
        module = self._stand_in(name)
        module.__dict__["__file__"] = path
        return module

    def suite_read(self, module: str, name: str) -> None:
        """Somebody asks the stand-in for what the suite may hold."""
        if self._refuse is not None and not name.startswith("__") and self.registry.asker().hostile:
            self._refuse(rules.READS_TESTS, f"{module}.{name}")

    def refuse(self, rule: str, detail: str) -> None:
        """End the run, once armed."""
        if self._refuse is not None:
            self._refuse(rule, detail)

    def _approx_made(self) -> None:
        if self._refuse is not None and self.registry.asker().hostile:
            self._refuse(suite_equal.LYING, "the solution makes an approximate value")

    def _judge(self, event: str, args: tuple[Any, ...], rule: Callable[[tuple[Any, ...]], str | None]) -> None:
        broken = rule(args)
        if broken is None:
            return
        asker = self.registry.asker()
        if asker.hostile:
            harmless = self._harmless(event, args, broken, asker)
        else:
            harmless = broken not in (rules.FRAME_WALK, rules.GC_WALK) or _says(asker, event, args)
        if not harmless:
            self._refuse(broken, _told(event, args, asker))

    def _harmless(self, event: str, args: tuple[Any, ...], rule: str, asker: Asker) -> bool:
        nearest = _nearest(asker)
        if "hypothesis" in asker.through:  # between it and a test lies code that it writes as it runs
            return True
        if rule == rules.NATIVE_CODE:
            beyond = [
                top
                for top in asker.through
                if top not in ("ctypes", "importlib", "_frozen_importlib", "_frozen_importlib_external", "cffi")
            ]
            return bool(beyond)  # a library that needs it: numpy, torch
        if event == "object.__getattr__":
            return self._harmless_attribute(args[0], args[1], asker)
        if event.startswith("object.__"):
            return self._own(args[0]) or self._of_library(args[0]) == nearest != ""
        if rule == rules.FRAME_WALK:
            return self._looks(event, args, asker, nearest)
        if event.startswith("marshal."):
            return nearest in ("importlib", "_frozen_importlib", "_frozen_importlib_external", "zipimport")
        if rule == rules.READS_MEMORY:
            return bool(asker.through) and args[0] in _words(asker.nearest)  # a library that looks at its own mappings
        if rule == rules.FORGED_CODE:
            return nearest in rules.MAKERS
        return False

    def _harmless_attribute(self, owner: Any, name: str, asker: Asker) -> bool:
        nearest = _nearest(asker)
        code = _code_at(owner, name)
        if code is not None and self._shown(code):
            return True
        if name in ("tb_frame", "f_code"):
            return (nearest in rules.TRACERS or _foreign(nearest)) and name in _words(asker.nearest)
        if name in _CODE_PARTS:
            if not isinstance(owner, FunctionType) or self._is_the_solutions(owner):
                return True
            return self._of_library(owner) is not None or (
                nearest == "inspect" and asker.nearest.co_name in rules.SIGNATURES
            )
        if name in ("gi_code", "gi_frame", "cr_code", "cr_frame", "ag_code", "ag_frame"):
            return nearest in rules.TRACERS | {"inspect"}
        return True

    def _looks(self, event: str, args: tuple[Any, ...], asker: Asker, nearest: str) -> bool:
        """Whether a frame may be had: what it holds is guarded again. A solution may look at its own."""
        if "_getframe" not in _words(asker.nearest):
            return False
        if nearest in rules.READERS or _foreign(nearest):
            return True
        frame = args[0] if event == "sys._getframe" and args else None
        own = nearest if nearest in _STACKS else ""
        return isinstance(frame, FrameType) and self._shown(native.code_in(frame), own)

    def _shown(self, code: CodeType, nearest: str = "") -> bool:
        """Whether a frame is the solution's, or of the library that asks: others between may hold what is expected."""
        if self.registry.trusts(code):
            return False
        library = self.registry.library_of(code)
        reader = nearest in rules.READERS or _foreign(nearest)
        return library in (None, nearest or None) or (
            reader and library not in rules.FAMILY and "testing" not in code.co_filename
        )

    def _of_library(self, owner: Any) -> str | None:
        return self.registry.library_of(native.code_of(owner)) if isinstance(owner, FunctionType) else None

    def _own(self, owner: Any) -> bool:
        """Whether setting an attribute of it is nobody else's matter."""
        if isinstance(owner, FunctionType):
            return self._is_the_solutions(owner)
        if isinstance(owner, type):
            return id(owner) not in self._classes and _module_of(owner).partition(".")[0] not in _FROZEN | self._suite
        return id(owner) not in self._modules

    def _is_the_solutions(self, function: FunctionType) -> bool:
        code = native.code_of(function)
        return not self.registry.trusts(code) and self.registry.library_of(code) is None

    # Guarded attributes

    def _guard_attributes(self) -> None:
        for name in rules.FRAME_ATTRIBUTES:
            self._guard(FrameType, name, self._frame_read)
        for name in ("__globals__", "__builtins__", "__closure__"):
            self._guard(FunctionType, name, self._function_read)
        self._guard(ModuleType, "__dict__", self._module_read)
        plain = native.replace_attribute(type, "__subclasses__", None)
        visible = self._visible

        def __subclasses__(self: type) -> list[type]:
            """Return a list of immediate subclasses."""
            return visible(plain(self))

        native.replace_attribute(type, "__subclasses__", __subclasses__)

    def _guard_extensions(self) -> None:
        """One that is loaded already comes again without any event."""
        plain = _imp.create_dynamic

        def create_dynamic(spec: Any, *args: Any) -> Any:
            if "import" in self._events:
                self._judge("import", (str(spec.name),), self._events["import"])
            return plain(spec, *args)

        _imp.create_dynamic = create_dynamic

    def _guard(self, owner: type, name: str, read: Callable[[Any, str, Any], Any]) -> None:
        plain = native.replace_attribute(owner, name, None).__get__
        native.replace_attribute(owner, name, property(lambda self: read(self, name, plain(self))))

    def _frame_read(self, frame: FrameType, name: str, value: Any) -> Any:
        if self._refuse is None:
            return value
        asker = self.registry.asker()
        if not asker.hostile:
            harmless = name in _words(asker.nearest)
        elif "hypothesis" in asker.through:
            return value
        elif name == "f_back":
            if value is not None and _nearest(asker) in _STACKS and not self._shown(native.code_in(value)):
                return None  # the stack of the solution ends where others' begins
            harmless = value is None or self._shown(native.code_in(value)) or self._follows(asker)
        else:
            code = native.code_in(frame)
            harmless = self._shown(code, _nearest(asker)) or (name == "f_globals" and self._public(code, asker))
        if not harmless:
            self._refuse(rules.FRAME_WALK, f"frame.{name}")
        return value

    def _public(self, code: CodeType, asker: Asker) -> bool:
        """Whether a frame's globals are a library's, or wanted for lines of text alone."""
        library = self.registry.library_of(code)
        return asker.through[:1] == ("traceback",) or library is not None and library not in rules.FAMILY

    def _follows(self, asker: Asker) -> bool:
        """Whether a library may go up from frame to frame; what they hold is guarded again."""
        nearest = _nearest(asker)
        known = nearest in rules.READERS or _foreign(nearest)
        known = known or (nearest in rules.TRACERS and "logging" in asker.through)  # a stack as text, its lines unknown
        return known and "f_back" in _words(asker.nearest)

    def _function_read(self, function: FunctionType, name: str, value: Any) -> Any:
        if self._refuse is None or self._is_the_solutions(function):
            return value
        asker = self.registry.asker()
        if not asker.hostile:
            return value
        if name == "__globals__" and asker.through[:1] in (("inspect",), ("typing",)):
            return {}  # to look annotations up in: a solution's decorator at a function of the suite
        if self.registry.library_of(native.code_of(function)) is None or _family(function):
            self._refuse(rules.READS_TESTS, f"{function.__name__}.{name}")
        return dict(value) if type(value) is dict else value

    def _module_read(self, module: ModuleType, name: str, value: dict[str, Any]) -> Any:
        if self._refuse is None or id(module) not in self._modules or not self.registry.asker().hostile:
            return value
        return dict(value)

    def _visible(self, classes: list[type]) -> list[type]:
        if self._refuse is None or not classes or not self.registry.asker().hostile:
            return classes
        hidden = self._suite | rules.FAMILY | {"rlvr_exp"}
        return [cls for cls in classes if _module_of(cls).partition(".")[0] not in hidden]

    # Guarded modules

    def write(self, module: ModuleType, name: str) -> None:
        """Somebody sets or deletes an attribute of a module; refuses the solution, but for what honest code sets."""
        if self._refuse is None or id(module) not in self._modules:
            return
        known = self._watches.get(id(module))
        if known is not None and known[1].written():
            self._refuse(rules.PATCHED, f"{known[0]} was changed")
        asker = self.registry.asker()
        if not asker.hostile:
            return
        if asker.through and name in _words(asker.nearest):
            return  # a library's own doing: its code names what it sets
        new = name not in _module_dict.__get__(module) and not name.startswith("__")
        if not new and name not in _FREE.get(module.__name__, ()):
            self._refuse(rules.PATCHED, f"{module.__name__}.{name}")

    def written(self, module: ModuleType) -> None:
        """What was written is accounted for."""
        known = self._watches.get(id(module))
        if known is not None:
            known[1].accept()


def _guarded_class(guard: Guard) -> type:
    before, after = guard.write, guard.written

    class module(ModuleType):  # named as it looks from outside
        def __setattr__(self, name: str, value: Any) -> None:
            before(self, name)
            _write(self, name, value)
            after(self)

        def __delattr__(self, name: str) -> None:
            before(self, name)
            _delete(self, name)
            after(self)

    module.__module__ = "builtins"
    return module


def _stand_in_class(guard: Guard) -> type:
    read = guard.suite_read

    class module(ModuleType):
        def __getattr__(self, name: str) -> Any:
            read(self.__name__, name)
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    module.__module__ = "builtins"
    return module


def _private_builtins() -> ModuleType:
    """The builtins that the solution sees and may be patched for it; the suite's and the libraries' stay apart."""
    own = ModuleType("builtins", builtins.__doc__)
    own.__dict__.update(builtins.__dict__)
    return own


def _events(files: rules.Files, suite: frozenset[str]) -> dict[str, Callable[[tuple[Any, ...]], str | None]]:
    attributes = {"tb_frame", "f_code", "gi_code", "gi_frame", "cr_code", "cr_frame", "ag_code", "ag_frame"}
    walks = {name: rules.FRAME_WALK for name in attributes} | {name: rules.READS_TESTS for name in _CODE_PARTS}
    sets = {name: rules.PATCHED for name in (*_CODE_PARTS, "__bases__", "__class__", "__module__")}
    table = {
        "open": files.opened,
        "os.rename": files.moved,
        "os.link": files.moved,
        "os.symlink": files.moved,
        "import": rules.imported(suite),
        "object.__getattr__": lambda args: walks.get(args[1]),
        "object.__setattr__": lambda args: sets.get(args[1]),
        "object.__delattr__": lambda args: sets.get(args[1]),
    }
    single = {
        rules.FRAME_WALK: "sys._getframe sys._current_frames sys._current_exceptions",
        rules.GC_WALK: "gc.get_objects gc.get_referrers gc.get_referents",
        rules.TRACING: "sys.settrace sys.setprofile sys.monitoring.register_callback sys.set_asyncgen_hooks_firstiter",
        rules.AUDIT_HOOK: "sys.addaudithook",
        rules.FORGED_CODE: "code.__new__ function.__new__ marshal.loads marshal.load setopencodehook",
        rules.NATIVE_CODE: "ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle ctypes.call_function ctypes.cdata "
        "ctypes.cdata/buffer ctypes.PyObj_FromPtr ctypes.string_at ctypes.wstring_at ctypes.addressof "
        "sqlite3.load_extension sqlite3.enable_load_extension",
    }
    for rule, events in single.items():
        table |= dict.fromkeys(events.split(), rules.always(rule))
    return table


def _told(event: str, args: tuple[Any, ...], asker: Asker) -> str:
    shown = [arg for arg in args[:2] if type(arg) is str]
    by = f" in {asker.nearest.co_name} of {asker.through[0]}" if asker.nearest and asker.through else ""
    return " ".join((event, *shown))[:160] + by


def _nearest(asker: Asker) -> str:
    """The library that asks; through `inspect`, who asks it, where that is a package that hands no frames on."""
    first = asker.through[0] if asker.through else ""
    beyond = next((top for top in asker.through if top not in _STACKS), "")
    return beyond if first in _STACKS and (beyond in rules.READERS or _foreign(beyond)) else first


def _patterns() -> list[tuple[Any, re.Pattern[Any]]]:
    """What `re` keeps compiled, under the text that it is of; what is no pattern stands for another's."""
    empty = re.compile("")
    kept = [*re._cache.items(), *getattr(re, "_cache2", {}).items()]
    return [(key, found if type(found) is re.Pattern else empty) for key, found in kept if key[1] or found is not empty]


def _foreign(library: str) -> bool:
    """An installed package, neither the standard library nor what runs the tests."""
    return library != "" and library not in sys.stdlib_module_names and library not in rules.FAMILY


def _code_at(owner: Any, name: str) -> CodeType | None:
    """The code of a frame, or of a traceback's frame, that somebody asks for."""
    if name == "tb_frame" and type(owner) is TracebackType:
        return native.code_in(native.frame_of(owner))
    return native.code_in(owner) if name == "f_code" and type(owner) is FrameType else None


def _says(asker: Asker, event: str, args: tuple[Any, ...]) -> bool:
    """Whether the asking code itself names what it asks for; a call by C code alone may be anybody's."""
    what = args[1] if event == "object.__getattr__" else event.rpartition(".")[2]
    return asker.nearest is None or what in _words(asker.nearest)


def _words(code: CodeType | None) -> tuple[str, ...]:
    return () if code is None else code.co_names + tuple(part for part in code.co_consts if type(part) is str)


def _module_of(cls: type) -> str:
    """As the class keeps it, its metaclass not asked; empty where it has none."""
    try:
        return str(_type_module(cls))
    except AttributeError:
        return ""


_type_module = type.__dict__["__module__"].__get__


def _family(function: FunctionType) -> bool:
    return str(function.__module__).partition(".")[0] in rules.FAMILY


def _classes() -> Iterable[type]:
    seen, ahead = set(), [object]
    while ahead:
        for cls in type.__subclasses__(ahead.pop()):
            if cls not in seen:
                seen.add(cls)
                ahead.append(cls)
    return [cls for cls in seen if type(cls.__module__) is str]


def _writes_itself(module: ModuleType) -> bool:
    """Whether a function of the module assigns to its globals: then a change says nothing."""
    functions = [value for value in vars(module).values() if type(value) is FunctionType]
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    functions += [part for cls in classes for part in vars(cls).values() if type(part) is FunctionType]
    opcodes = {dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]}
    return any(set(function.__code__.co_code[::2]) & opcodes for function in functions) or "__getattr__" in vars(module)
