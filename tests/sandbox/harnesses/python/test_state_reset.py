"""What stays imported between two cases, and in which state. In this process, whose import state is restored."""

import sys
import weakref
from importlib import _bootstrap, import_module, invalidate_caches

import pytest

from rlvr_exp.sandbox.harnesses.python.state_reset import Imports

LAZY = """
import sys
from importlib.machinery import ModuleSpec
class Finder:
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self) if name == "lazy.made" else None
    def create_module(self, spec): return None
    def exec_module(self, module): module.here = True
sys.meta_path.append(Finder())
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The candidate's folder; next to it `packages`, with a package that creates its submodules itself."""
    for folder in ("home", "packages/lazy", "packages/space/inner"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "packages/lazy/__init__.py").write_text(LAZY)
    (tmp_path / "packages/space/inner/__init__.py").touch()
    (tmp_path / "home/helper.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "home"), str(tmp_path / "packages"), *sys.path])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(_bootstrap, "_load_unlocked", _bootstrap._load_unlocked)
    monkeypatch.setattr(weakref.finalize, "_shutdown", weakref.finalize._shutdown)
    monkeypatch.setattr(weakref.finalize, "_registered_with_atexit", weakref.finalize._registered_with_atexit)
    before = dict(sys.modules)
    invalidate_caches()
    yield str(tmp_path / "home")
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]


def test_submodules_that_a_package_makes_itself_stay_and_so_does_its_finder(home):
    imports = Imports(home)
    made = import_module("lazy.made")
    imports.restore()
    assert sys.modules["lazy.made"] is made and type(sys.meta_path[-1]).__module__ == "lazy"


def test_packages_without_a_file_stay(home):
    imports = Imports(home)
    inner = import_module("space.inner")
    imports.restore()
    assert sys.modules["space.inner"] is inner and sys.modules["space"].inner is inner


def test_what_a_candidate_wrote_or_put_there_goes(home):
    imports = Imports(home)
    import_module("helper")
    sys.modules["mine"] = sys
    sys.meta_path.insert(0, type("Finder", (), {"__module__": "candidate", "find_spec": lambda *_: None})())
    imports.restore()
    assert not {"helper", "mine"} & sys.modules.keys()
    assert type(sys.meta_path[0]).__module__ != "candidate"


def test_a_module_of_the_library_is_as_it_was_imported(home, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    imports = Imports(home)
    module = import_module("colorsys")
    module.mine, right = 1, module.rgb_to_hsv
    module.rgb_to_hsv = None
    imports.restore()
    assert sys.modules["colorsys"] is module and module.rgb_to_hsv is right and not hasattr(module, "mine")
