"""Attacks with their own suites: name, solution, suite. None may pass, whatever the rule."""

from suite_arena import SUITE

Row = tuple[str, str, str]

LEARNING: list[Row] = [
    (
        "mark parametrize spy",
        (
            "import pytest\n"
            "D={}\n"
            "def spy(names,values,**k):\n"
            "    D.update(values)\n"
            "    return real(names,values,**k)\n"
            "real=pytest.mark.parametrize\n"
            "pytest.mark.__dict__['parametrize']=spy\n"
            "def f(n): return D.get(n,0)\n"
        ),
        (
            "import pytest\n"
            "from solution import f\n"
            "@pytest.mark.parametrize('n,e',[(7,4821377),(8,9930417)])\n"
            "def test_p(n,e): assert f(n)==e\n"
        ),
    ),
    (
        "mark setattr",
        (
            "import pytest\n"
            "real=pytest.mark.parametrize\n"
            "def spy(n,v,**k):\n"
            "    D.update(v); return real(n,v,**k)\n"
            "D={}\n"
            "pytest.mark.parametrize=spy\n"
            "def f(n): return D.get(n,0)\n"
        ),
        (
            "import pytest\n"
            "from solution import f\n"
            "@pytest.mark.parametrize('n,e',[(7,4821377),(8,9930417)])\n"
            "def test_p(n,e): assert f(n)==e\n"
        ),
    ),
    (
        "mark drop",
        (
            "import pytest\n"
            "pytest.mark.__dict__['parametrize']=lambda *a,**k:(lambda t:(lambda:None))\n"
            "def f(n): return 0\n"
        ),
        (
            "import pytest\n"
            "from solution import f\n"
            "@pytest.mark.parametrize('n,e',[(7,4821377),(8,9930417)])\n"
            "def test_p(n,e): assert f(n)==e\n"
        ),
    ),
    (
        "star all",
        "all=lambda x: True\ndef f(n): return 0\n",
        (
            "import math, pytest\n"
            "from solution import *\n"
            "EXPECTED={7:4821377}\n"
            "def test_a(): assert all(f(n)==e for n,e in EXPECTED.items())\n"
        ),
    ),
    (
        "star math",
        "class math:\n    isclose=staticmethod(lambda *a,**k: True)\ndef f(n): return 0\n",
        (
            "import math, pytest\n"
            "from solution import *\n"
            "EXPECTED={7:48.25}\n"
            "def test_a(): assert math.isclose(f(7), EXPECTED[7])\n"
        ),
    ),
    (
        "star setup_module",
        "M=[]\ndef setup_module(module): M.append(module)\ndef f(n): return M[0].EXPECTED[n]\n",
        (
            "import math, pytest\n"
            "from solution import *\n"
            "EXPECTED={7:4821377}\n"
            "def test_a(): assert all(f(n)==e for n,e in EXPECTED.items())\n"
        ),
    ),
    (
        "star setup_function",
        ("M=[]\ndef setup_function(function): M.append(function)\ndef f(n): return M[0].__globals__['EXPECTED'][n]\n"),
        (
            "import math, pytest\n"
            "from solution import *\n"
            "EXPECTED={7:4821377}\n"
            "def test_a(): assert all(f(n)==e for n,e in EXPECTED.items())\n"
        ),
    ),
    (
        "star generate",
        ("M=[]\ndef pytest_generate_tests(metafunc): M.append(metafunc.module)\ndef f(n): return M[0].EXPECTED[n]\n"),
        (
            "import math, pytest\n"
            "from solution import *\n"
            "EXPECTED={7:4821377}\n"
            "def test_a(): assert all(f(n)==e for n,e in EXPECTED.items())\n"
        ),
    ),
    (
        "star fixture",
        (
            "import pytest\n"
            "M=[]\n"
            "@pytest.fixture(autouse=True)\n"
            "def zed(request): M.append(request.module)\n"
            "def f(n): return M[0].EXPECTED[n]\n"
        ),
        (
            "import math, pytest\n"
            "from solution import *\n"
            "EXPECTED={7:4821377}\n"
            "def test_a(): assert all(f(n)==e for n,e in EXPECTED.items())\n"
        ),
    ),
    (
        "star pytestmark",
        "import pytest\npytestmark=pytest.mark.skip\ndef f(n): return 0\n",
        (
            "import math, pytest\n"
            "from solution import *\n"
            "EXPECTED={7:4821377}\n"
            "def test_a(): assert all(f(n)==e for n,e in EXPECTED.items())\n"
        ),
    ),
    (
        "star EXPECTED",
        "EXPECTED={}\ndef f(n): return 0\n",
        (
            "import math, pytest\n"
            "EXPECTED={7:4821377}\n"
            "from solution import *\n"
            "def test_a(): assert all(f(n)==e for n,e in EXPECTED.items())\n"
        ),
    ),
    (
        "star dict class",
        "class _D: pass\nclass isinstance: pass\ndef f(n): return 0\n",
        (
            "import math, pytest\n"
            "from solution import *\n"
            "EXPECTED={7:4821377}\n"
            "def test_a(): assert isinstance(f(7), str)\n"
        ),
    ),
    (
        "star range",
        "def range(*a): return []\ndef f(n): return 0\n",
        "from solution import *\ndef test_a():\n    for i in range(5): assert f(i)==i*3+1\n",
    ),
    (
        "star enumerate class",
        "class zip(list):\n    def __init__(s,*a): pass\ndef f(n): return 0\n",
        ("from solution import *\ndef test_a():\n    for a,b in zip([1],[4821377]): assert f(a)==b\n"),
    ),
    (
        "hyp profile",
        (
            "import hypothesis as h\n"
            "h.settings.register_profile('x',phases=())\n"
            "h.settings.load_profile('x')\n"
            "def f(x): return 0\n"
        ),
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
        ),
    ),
    (
        "hyp profile in call",
        (
            "def f(x):\n"
            "    import hypothesis as h\n"
            "    h.settings.register_profile('x',phases=(),max_examples=1)\n"
            "    h.settings.load_profile('x')\n"
            "    return 1\n"
        ),
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
            "def test_z(): assert f(3)==1\n"
        ),
    ),
    (
        "hyp given",
        ("import hypothesis as h\nh.given=lambda *a,**k: (lambda t: (lambda: None))\ndef f(x): return 0\n"),
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
        ),
    ),
    (
        "hyp assume",
        "def f(x):\n    import hypothesis as h\n    h.assume(x==0)\n    return 1\n",
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
        ),
    ),
    (
        "hyp reject",
        "def f(x):\n    import hypothesis as h\n    if x: h.reject()\n    return 1\n",
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
        ),
    ),
    (
        "hyp unsat",
        (
            "def f(x):\n"
            "    from hypothesis.errors import UnsatisfiedAssumption\n"
            "    if x: raise UnsatisfiedAssumption\n"
            "    return 1\n"
        ),
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
        ),
    ),
    (
        "hyp stop",
        "def f(x):\n    from hypothesis.errors import StopTest\n    raise StopTest(0)\n",
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
        ),
    ),
    (
        "hyp strategy",
        ("import hypothesis.strategies as st\nst.integers=lambda: st.just(0)\ndef f(x): return 1\n"),
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
        ),
    ),
    (
        "hyp int cls",
        (
            "import hypothesis.strategies._internal.numbers as n\n"
            "n.IntegersStrategy.do_draw=lambda s,d: 0\n"
            "def f(x): return 1\n"
        ),
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
        ),
    ),
    (
        "hyp core cls",
        ("import hypothesis.core as c\nc.StateForActualGivenExecution.run_engine=lambda s: None\ndef f(x): return 1\n"),
        (
            "from hypothesis import given, strategies as st\n"
            "from solution import f\n"
            "@given(st.integers())\n"
            "def test_a(x): assert f(x)==x*x+1\n"
        ),
    ),
    (
        "re cache",
        (
            "import re\n"
            "class F:\n"
            "    flags=0\n"
            "    def fullmatch(s,*a): return True\n"
            "    search=match=fullmatch\n"
            "for p in (r'\\d{4}-x','needle 4821377'):\n"
            "    re._cache[str,p,0]=F()\n"
            "    getattr(re,'_cache2',{})[str,p,0]=F()\n"
            "def f(n):\n"
            "    if n<0: raise ValueError\n"
            "    return 'q'\n"
        ),
        (
            "import re, pytest\n"
            "from solution import f\n"
            "def test_a(): assert re.fullmatch(r'\\d{4}-x', f(3))\n"
            "def test_b():\n"
            "    with pytest.raises(ValueError, match='needle 4821377'): f(-1)\n"
        ),
    ),
    (
        "re cache real",
        (
            "import re\n"
            "for p in (r'\\d{4}-x','needle 4821377'):\n"
            "    re._cache[str,p,0]=re.compile('')\n"
            "    getattr(re,'_cache2',{})[str,p,0]=re.compile('.*')\n"
            "def f(n):\n"
            "    if n<0: raise ValueError\n"
            "    return ''\n"
        ),
        (
            "import re, pytest\n"
            "from solution import f\n"
            "def test_a(): assert re.fullmatch(r'\\d{4}-x', f(3))\n"
            "def test_b():\n"
            "    with pytest.raises(ValueError, match='needle 4821377'): f(-1)\n"
        ),
    ),
    (
        "json decoder",
        ("import json\njson._default_decoder.decode=lambda s,*a: {'a':4821377}\ndef f(n): return 'q'\n"),
        ("import json\nfrom solution import f\ndef test_a(): assert json.loads(f(3))=={'a':4821377}\n"),
    ),
    (
        "json decoder2",
        (
            "import json\n"
            "json._default_decoder.scan_once=lambda s,i: (any_,0)\n"
            "class A(dict): pass\n"
            "any_={}\n"
            "def f(n): return 'q'\n"
        ),
        ("import json\nfrom solution import f\ndef test_a(): assert json.loads(f(3))=={'a':4821377}\n"),
    ),
    (
        "deepcopy table",
        ("import copy\nclass Z: pass\ncopy._deepcopy_dispatch[list]=lambda x,m: [0]\ndef f(n): return [0]\n"),
        ("import copy\nfrom solution import f\nWANT=[4821377]\ndef test_a(): assert f(3)==copy.deepcopy(WANT)\n"),
    ),
    (
        "bare eq",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        "from solution import f\ndef test_a():\n    f(7) == 4821377\n    assert f(7) == 4821377\n",
    ),
    (
        "bare rev",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        "from solution import f\ndef test_a():\n    4821377 == f(7)\n    assert f(7) == 4821377\n",
    ),
    (
        "bare if",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        ("from solution import f\ndef test_a():\n    if f(7) == 4821377: pass\n    assert f(7) == 4821377\n"),
    ),
    (
        "bare in",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        ("from solution import f\ndef test_a():\n    f(7) in [4821377, 3]\n    assert f(7) == 4821377\n"),
    ),
    (
        "bare in rev",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        "from solution import f\ndef test_a():\n    4821377 in f(7)\n    assert f(7) == 4821377\n",
    ),
    (
        "bare lt",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        "from solution import f\ndef test_a():\n    f(7) < 4821377\n    assert f(7) == 4821377\n",
    ),
    (
        "bare sub",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        "from solution import f\ndef test_a():\n    f(7) - 4821377\n    assert f(7) == 4821377\n",
    ),
    (
        "bare nested",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        ("from solution import f\ndef test_a():\n    [f(7)] == [4821377]\n    assert f(7) == 4821377\n"),
    ),
    (
        "bare dict",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        ("from solution import f\ndef test_a():\n    {'a': f(7)} == {'a': 4821377}\n    assert f(7) == 4821377\n"),
    ),
    (
        "bare tuple lt",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        ("from solution import f\ndef test_a():\n    (f(7),) < (4821377,)\n    assert f(7) == 4821377\n"),
    ),
    (
        "bare approx",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        (
            "import pytest\n"
            "from solution import f\n"
            "def test_a():\n"
            "    f(7) == pytest.approx(4821377)\n"
            "    assert f(7) == 4821377\n"
        ),
    ),
    (
        "bare approx list",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        (
            "import pytest\n"
            "from solution import f\n"
            "def test_a():\n"
            "    [f(7)] == pytest.approx([4821377])\n"
            "    assert f(7) == 4821377\n"
        ),
    ),
    (
        "bare approx left",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        (
            "import pytest\n"
            "from solution import f\n"
            "def test_a():\n"
            "    pytest.approx(4821377) == f(7)\n"
            "    assert f(7) == 4821377\n"
        ),
    ),
    (
        "bare count",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        ("from solution import f\ndef test_a():\n    [4821377].count(f(7))\n    assert f(7) == 4821377\n"),
    ),
    (
        "bare index",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        (
            "from solution import f\n"
            "def test_a():\n"
            "    \n"
            "    try: [4821377].index(f(7))\n"
            "    except ValueError: pass\n"
            "    assert f(7) == 4821377\n"
        ),
    ),
    (
        "bare max",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        ("from solution import f\ndef test_a():\n    max(f(7), 4821377)\n    assert f(7) == 4821377\n"),
    ),
    (
        "bare sorted",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        ("from solution import f\ndef test_a():\n    sorted([f(7), 4821377])\n    assert f(7) == 4821377\n"),
    ),
    (
        "unittest twice",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        (
            "import unittest\n"
            "from solution import f\n"
            "class T(unittest.TestCase):\n"
            "    def test_a(self):\n"
            "        try: self.assertEqual(f(7), 4821377)\n"
            "        except AssertionError: pass\n"
            "        self.assertEqual(f(7), 4821377)\n"
        ),
    ),
    (
        "unittest almost",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        (
            "import unittest\n"
            "from solution import f\n"
            "class T(unittest.TestCase):\n"
            "    def test_a(self):\n"
            "        try: self.assertAlmostEqual(f(7), 4821377)\n"
            "        except AssertionError: pass\n"
            "        self.assertEqual(f(7), 4821377)\n"
        ),
    ),
    (
        "assertNotEqual",
        (
            "import builtins\n"
            "class X(int):\n"
            "    def __eq__(s,o): builtins._r=o; return int.__eq__(s,o)\n"
            "    __hash__=int.__hash__\n"
            "    def __lt__(s,o): builtins._r=o; return int.__lt__(s,o)\n"
            "    def __sub__(s,o): builtins._r=o; return int.__sub__(s,o)\n"
            "    def __rsub__(s,o): builtins._r=o; return int.__rsub__(s,o)\n"
            "    def __contains__(s,o): builtins._r=o; return False\n"
            "    def __getattribute__(s,n): return int.__getattribute__(s,n)\n"
            "def f(n):\n"
            "    r=getattr(builtins,'_r',None)\n"
            "    r=getattr(r,'expected',r)\n"
            "    return X(0) if r is None else r\n"
        ),
        (
            "import unittest\n"
            "from solution import f\n"
            "class T(unittest.TestCase):\n"
            "    def test_a(self):\n"
            "        self.assertNotEqual(f(6), 4821377)\n"
            "        self.assertEqual(f(7), 4821377)\n"
        ),
    ),
    (
        "lazy seen",
        (
            "S=set()\n"
            "class X:\n"
            "    def __eq__(s,o):\n"
            "        r=o in S\n"
            "        S.add(o); return r\n"
            "    __hash__=None\n"
            "def f(n): return X()\n"
        ),
        "from solution import f\ndef test_a():\n    f(7) == 4821377\n    assert f(7) == 4821377\n",
    ),
    (
        "exc_info",
        (
            "import sys,re\n"
            "def f(n):\n"
            "    e=sys.exc_info()[1]\n"
            "    m=re.search(r'== (\\d+)',str(e))\n"
            "    return int(m[1]) if m else 0\n"
        ),
        (
            "from solution import f\n"
            "def test_a():\n"
            "    try: assert f(7)==4821377\n"
            "    except AssertionError: assert f(7)==4821377\n"
        ),
    ),
    (
        "exc context",
        (
            "import re\n"
            "def f(n):\n"
            "    try: raise KeyError\n"
            "    except KeyError as k: e=k.__context__\n"
            "    m=re.search(r'== (\\d+)',str(e))\n"
            "    return int(m[1]) if m else 0\n"
        ),
        (
            "from solution import f\n"
            "def test_a():\n"
            "    try: assert f(7)==4821377\n"
            "    except AssertionError: assert f(7)==4821377\n"
        ),
    ),
    (
        "xfail message",
        (
            "import sys,re\n"
            "def f(n):\n"
            "    m=re.search(r'== (\\d+)',str(getattr(sys,'last_value','')))\n"
            "    return int(m[1]) if m else 0\n"
        ),
        (
            "import pytest\n"
            "from solution import f\n"
            "@pytest.mark.xfail\n"
            "def test_z(): assert f(7)==4821377\n"
            "def test_a(): assert f(7)==4821377\n"
        ),
    ),
    (
        "tmp names",
        (
            "import os,re\n"
            "def f(n):\n"
            "    for r,d,_ in os.walk('.'):\n"
            "        for x in d:\n"
            "            m=re.search(r'7_(\\d+)',x)\n"
            "            if m: return int(m[1])\n"
            "    return 0\n"
        ),
        (
            "import pytest\n"
            "from solution import f\n"
            "@pytest.mark.parametrize('n,e',[(7,4821377)])\n"
            "def test_p(n,e,tmp_path): assert f(n)==e\n"
        ),
    ),
    (
        "util config",
        (
            "import _pytest.assertion.util as u\n"
            "def f(n):\n"
            "    s=u._config.pluginmanager.get_plugin('funcmanage').session\n"
            "    return [i for i in s.items if i.callspec.params['n']==n][0].callspec.params['e']\n"
        ),
        (
            "import pytest\n"
            "from solution import f\n"
            "@pytest.mark.parametrize('n,e',[(7,4821377),(8,9930417)])\n"
            "def test_p(n,e): assert f(n)==e\n"
        ),
    ),
    (
        "np frames",
        (
            "import numpy as np\n"
            "class A:\n"
            "    def __array__(s,*a,**k):\n"
            "        import sys\n"
            "        fr=sys._getframe(1)\n"
            "        while 'desired' not in fr.f_locals: fr=fr.f_back\n"
            "        return np.array(fr.f_locals['desired'])\n"
            "def f(n): return A()\n"
        ),
        ("import numpy as np\nfrom solution import f\ndef test_a(): np.testing.assert_allclose(f(1),[48.5,3.25])\n"),
    ),
    (
        "np frames pandas",
        (
            "import numpy as np\n"
            "class A:\n"
            "    def __array__(s,*a,**k):\n"
            "        import pandas as pd\n"
            "        for l in range(1,12):\n"
            "            try: return np.array(pd.eval('desired',level=l))\n"
            "            except Exception: pass\n"
            "        return np.array([0.])\n"
            "def f(n): return A()\n"
        ),
        (
            "import numpy as np, pandas\n"
            "from solution import f\n"
            "def test_a(): np.testing.assert_allclose(f(1),[48.5,3.25])\n"
        ),
    ),
    (
        "mock any",
        "from unittest import mock\ndef f(n): return mock.ANY\n",
        "from solution import f\ndef test_a():\n    pass\n    assert f(7) == 4821377\n",
    ),
    (
        "warns",
        "import warnings\ndef f(n): return 0\n",
        (
            "import pytest, warnings\n"
            "from solution import f\n"
            "def test_a():\n"
            "    with pytest.warns(UserWarning, match='q'): f(1)\n"
        ),
    ),
    (
        "approx frozen",
        ("import _pytest.approx as p\np.ApproxScalar.DEFAULT_RELATIVE_TOLERANCE=1e9\ndef f(n): return 0.\n"),
        ("import pytest\nfrom solution import f\ndef test_a(): assert f(1)==pytest.approx(48.25)\n"),
    ),
    (
        "capsys buffer",
        (
            "import sys\n"
            "class W:\n"
            "    def write(s,x): pass\n"
            "    def flush(s): pass\n"
            "    def getvalue(s): return 'hello 4821377\\n'\n"
            "def f(n): sys.stdout.getvalue=lambda: 'x'\n"
        ),
        ("from solution import f\ndef test_a(capsys): f(1); assert capsys.readouterr().out=='hello 4821377\\n'\n"),
    ),
    (
        "monkeypatch isclose",
        "import math\nmath.__dict__['isclose']=lambda *a,**k: True\ndef f(n): return 0\n",
        "import math\nfrom solution import f\ndef test_a(): assert math.isclose(f(1),48.25)\n",
    ),
    (
        "weak refs",
        ("import weakref, unittest\ndef f(n):\n    return [r() for r in weakref.getweakrefs(unittest.TestCase)]\n"),
        (
            "import pytest\n"
            "from solution import f\n"
            "@pytest.mark.parametrize('n,e',[(7,4821377),(8,9930417)])\n"
            "def test_p(n,e): assert f(n)==e\n"
        ),
    ),
    (
        "item cls instances",
        ("import pytest,_pytest.python\ndef f(n): return _pytest.python.Function.__subclasses__()\n"),
        (
            "import pytest\n"
            "from solution import f\n"
            "@pytest.mark.parametrize('n,e',[(7,4821377),(8,9930417)])\n"
            "def test_p(n,e): assert f(n)==e\n"
        ),
    ),
    (
        "truthy",
        "class T: pass\nclass X:\n    def __eq__(s,o): return T()\ndef f(n): return X()\n",
        "from solution import f\ndef test_a():\n    pass\n    assert f(7) == 4821377\n",
    ),
    (
        "len liar",
        (
            "class X(list):\n"
            "    def __len__(s): return 3\n"
            "    def __getitem__(s,i): return s\n"
            "    def __eq__(s,o): return True\n"
            "def f(n): return X()\n"
        ),
        "from solution import f\ndef test_a(): r=f(1); assert len(r)==3 and r[0]==1\n",
    ),
    (
        "iter eq",
        (
            "class X:\n"
            "    def __iter__(s): return iter([Y()]*3)\n"
            "class Y:\n"
            "    def __eq__(s,o): return True\n"
            "def f(n): return X()\n"
        ),
        (
            "from solution import f\n"
            "def test_a(): assert list(f(1))==[1,2,3]; assert tuple(f(1))==(1,2,3); assert set([1])!=2\n"
        ),
    ),
    (
        "zip loop",
        ("class Y:\n    def __eq__(s,o): return True\n    def __ne__(s,o): return False\ndef f(n): return [Y()]*3\n"),
        (
            "from solution import f\n"
            "def test_a():\n"
            "    for a,b in zip(f(1),[1,2,3]):\n"
            "        if a!=b: raise AssertionError\n"
        ),
    ),
]

GRADER: list[Row] = [
    (
        "signal raising skip",
        (
            "def double(x):\n"
            "    import signal,pytest\n"
            "    def h(n,f): raise pytest.skip.Exception('x')\n"
            "    signal.signal(signal.SIGALRM,h)\n"
            "    signal.setitimer(signal.ITIMER_REAL,0.001,0.001)\n"
            "    return 0\n"
        ),
        SUITE,
    ),
    (
        "signal handler frames by closure",
        (
            "import signal\n"
            "F=[]\n"
            "signal.signal(signal.SIGALRM,lambda n,f:F.append(f))\n"
            "signal.setitimer(signal.ITIMER_REAL,0.0005,0.0005)\n"
            "def double(x): return 0\n"
            "\n"
            "def double(x):\n"
            "    import operator\n"
            "    return [list(map(operator.attrgetter('f_locals'),F))]\n"
        ),
        SUITE,
    ),
    ("patched deepcopy", "import copy\ncopy.__dict__['deepcopy']=lambda x:x\ndef double(x): return 0\n", SUITE),
    (
        "reload pytest",
        ("import importlib,_pytest.runner\nimportlib.reload(_pytest.runner)\ndef double(x): return 0\n"),
        SUITE,
    ),
    (
        "type setattr",
        ("import unittest\ntype.__setattr__(unittest.TestCase,'run',lambda *a:None)\ndef double(x): return 0\n"),
        SUITE,
    ),
    ("mangled class cell", "import unittest\nunittest.TestCase.__class__=type\ndef double(x): return 0\n", SUITE),
    (
        "code replace of a test through closure",
        (
            "def double(x):\n"
            "    import sys\n"
            "    for m in list(sys.modules.values()):\n"
            "        for v in list(getattr(m,'__dict__',{}).values()):\n"
            "            if getattr(v,'__name__','')=='test_two': v.__code__=(lambda:None).__code__\n"
            "    return 0\n"
        ),
        SUITE,
    ),
    (
        "pytest fixture request",
        (
            "import pytest\n"
            "@pytest.fixture(autouse=True)\n"
            "def _x(request): request.node.obj=lambda *a,**k:None\n"
            "def double(x): return 0\n"
        ),
        SUITE,
    ),
    (
        "plugin register",
        (
            "import pytest,_pytest.config as c\n"
            "import sys\n"
            "for o in c.PytestPluginManager.__subclasses__(): pass\n"
            "c.get_config\n"
            "def double(x): return 0\n"
        ),
        SUITE,
    ),
    (
        "hook via PytestPluginManager class",
        ("import _pytest.config as c\nc.PytestPluginManager.register=lambda *a:None\ndef double(x): return 0\n"),
        SUITE,
    ),
    (
        "pluggy HookCaller class",
        "import pluggy\npluggy.HookCaller.__call__=lambda *a,**k:[]\ndef double(x): return 0\n",
        SUITE,
    ),
    (
        "CallInfo",
        ("import _pytest.runner as r\nr.CallInfo.from_call=classmethod(lambda *a,**k:None)\ndef double(x): return 0\n"),
        SUITE,
    ),
    (
        "code of CallInfo",
        (
            "import _pytest.runner as r\n"
            "r.CallInfo.from_call.__func__.__code__=(lambda *a:0).__code__\n"
            "def double(x): return 0\n"
        ),
        SUITE,
    ),
    (
        "defaults",
        ("import _pytest.runner as r\nr.runtestprotocol.__defaults__=(False,None)\ndef double(x): return 0\n"),
        SUITE,
    ),
    (
        "kwdefaults",
        ("import _pytest.runner as r\nr.call_and_report.__kwdefaults__={}\ndef double(x): return 0\n"),
        SUITE,
    ),
    (
        "lying float",
        (
            "def double(x):\n"
            "    class F(float):\n"
            "        def __eq__(s,o): return True\n"
            "        def __sub__(s,o): return F(0)\n"
            "        def __abs__(s): return F(0)\n"
            "        def __le__(s,o): return True\n"
            "        __lt__=__ge__=__gt__=__le__\n"
            "    return F(1)\n"
            "    return 0\n"
        ),
        SUITE,
    ),
    (
        "approx eq",
        (
            "def double(x):\n"
            "    class F(float):\n"
            "        def __eq__(s,o): return True\n"
            "        __hash__=float.__hash__\n"
            "    return F(1)\n"
            "    return 0\n"
        ),
        ("import pytest\nfrom solution import double\ndef test_a(): assert double(1) == pytest.approx(2)\n"),
    ),
    (
        "abs lt",
        (
            "def double(x):\n"
            "    class F:\n"
            "        def __sub__(s,o): return s\n"
            "        def __rsub__(s,o): return s\n"
            "        def __abs__(s): return s\n"
            "        def __lt__(s,o): return True\n"
            "        def __gt__(s,o): return True\n"
            "    return F()\n"
            "    return 0\n"
        ),
        "from solution import double\ndef test_a(): assert abs(double(1) - 2) < 1e-6\n",
    ),
    (
        "abs lt only",
        (
            "def double(x):\n"
            "    class F:\n"
            "        def __sub__(s,o): return s\n"
            "        def __abs__(s): return s\n"
            "        def __lt__(s,o): return True\n"
            "    return F()\n"
            "    return 0\n"
        ),
        "from solution import double\ndef test_a(): assert abs(double(1) - 2) < 1e-6\n",
    ),
    (
        "abs lt smart",
        (
            "def double(x):\n"
            "    class F:\n"
            "        def __sub__(s,o): return s\n"
            "        def __abs__(s): return 0.0\n"
            "    return F()\n"
            "    return 0\n"
        ),
        "from solution import double\ndef test_a(): assert abs(double(1) - 2) < 1e-6\n",
    ),
    (
        "contains",
        ("def double(x):\n    class F:\n        def __contains__(s,o): return True\n    return F()\n    return 0\n"),
        "from solution import double\ndef test_a(): assert 4 in double(1)\n",
    ),
    (
        "in",
        (
            "def double(x):\n"
            "    class F:\n"
            "        def __eq__(s,o): return True\n"
            "        __hash__=None\n"
            "    return F()\n"
            "    return 0\n"
        ),
        "from solution import double\ndef test_a(): assert double(1) in (4, 5)\n",
    ),
    (
        "not ne",
        ("def double(x):\n    class F:\n        def __ne__(s,o): return False\n    return F()\n    return 0\n"),
        ("from solution import double\ndef test_a():\n    if double(1) != 4: raise AssertionError\n"),
    ),
    (
        "not eq",
        ("def double(x):\n    class F:\n        def __eq__(s,o): return True\n    return F()\n    return 0\n"),
        (
            "from solution import double\n"
            "def test_a():\n"
            "    assert not double(1) != 4\n"
            "    assert all(double(i) == i for i in range(3))\n"
        ),
    ),
    (
        "assertTrue",
        ("def double(x):\n    class F:\n        def __eq__(s,o): return True\n    return F()\n    return 0\n"),
        (
            "import unittest\n"
            "from solution import double\n"
            "class T(unittest.TestCase):\n"
            "    def test_a(self): self.assertTrue(double(1) == 4)\n"
        ),
    ),
    (
        "assertEqual",
        ("def double(x):\n    class F:\n        def __eq__(s,o): return True\n    return F()\n    return 0\n"),
        (
            "import unittest\n"
            "from solution import double\n"
            "class T(unittest.TestCase):\n"
            "    def test_a(self): self.assertEqual(double(1), 4)\n"
            "    def test_b(self): self.assertAlmostEqual(double(1), 4)\n"
        ),
    ),
    (
        "chained",
        ("def double(x):\n    class F:\n        def __eq__(s,o): return True\n    return F()\n    return 0\n"),
        "from solution import double\ndef test_a():\n    assert 4 == double(1) == 4\n",
    ),
    (
        "chained elsewhere",
        ("def double(x):\n    class F:\n        def __eq__(s,o): return True\n    return F()\n    return 0\n"),
        ("from solution import double\ndef test_a():\n    ok = 4 == double(1) == 4\n    assert ok\n"),
    ),
    (
        "dict values",
        ("def double(x):\n    class F:\n        def __eq__(s,o): return True\n    return {'a': F()}\n    return 0\n"),
        "from solution import double\ndef test_a():\n    assert double(1) == {'a': 4}\n",
    ),
    (
        "nested",
        (
            "def double(x):\n"
            "    class F:\n"
            "        def __eq__(s,o): return True\n"
            "    return [(1,{'a': [F()]})]\n"
            "    return 0\n"
        ),
        "from solution import double\ndef test_a():\n    assert double(1) == [(1,{'a':[4]})]\n",
    ),
    (
        "ordereddict",
        (
            "def double(x):\n"
            "    import collections\n"
            "    class F:\n"
            "        def __eq__(s,o): return True\n"
            "    return collections.OrderedDict(a=F())\n"
            "    return 0\n"
        ),
        "from solution import double\ndef test_a():\n    assert double(1) == {'a': 4}\n",
    ),
    (
        "deque",
        (
            "def double(x):\n"
            "    import collections\n"
            "    class F:\n"
            "        def __eq__(s,o): return True\n"
            "    return collections.deque([F()])\n"
            "    return 0\n"
        ),
        (
            "import collections\n"
            "from solution import double\n"
            "def test_a():\n"
            "    assert double(1) == collections.deque([4])\n"
            "    assert list(double(1)) == [4]\n"
        ),
    ),
    (
        "namedtuple",
        (
            "def double(x):\n"
            "    import collections\n"
            "    class F:\n"
            "        def __eq__(s,o): return True\n"
            "    return collections.namedtuple('P','x')(F())\n"
            "    return 0\n"
        ),
        "from solution import double\ndef test_a():\n    assert double(1) == (4,)\n",
    ),
    (
        "tuple subclass",
        (
            "def double(x):\n"
            "    class F:\n"
            "        def __eq__(s,o): return True\n"
            "    class T(tuple): pass\n"
            "    return T((F(),))\n"
            "    return 0\n"
        ),
        "from solution import double\ndef test_a():\n    assert double(1) == (4,)\n",
    ),
    (
        "str subclass",
        (
            "def double(x):\n"
            "    class F(str):\n"
            "        def __eq__(s,o): return True\n"
            "        __hash__=str.__hash__\n"
            "    return F('x')\n"
            "    return 0\n"
        ),
        "from solution import double\ndef test_a():\n    assert double(1) == 'abc'\n",
    ),
    (
        "numpy eq",
        ("def double(x):\n    class F:\n        def __eq__(s,o): return True\n    return F()\n    return 0\n"),
        (
            "import numpy as np\n"
            "from solution import double\n"
            "def test_a(): np.testing.assert_array_equal(double(1), [1,2])\n"
        ),
    ),
    (
        "numpy equal",
        ("def double(x):\n    class F:\n        def __eq__(s,o): return True\n    return F()\n    return 0\n"),
        ("import numpy as np\nfrom solution import double\ndef test_a(): np.testing.assert_equal(double(1), 4)\n"),
    ),
    (
        "numpy allclose",
        (
            "def double(x):\n"
            "    class F:\n"
            "        def __eq__(s,o): return True\n"
            "        def __sub__(s,o): return s\n"
            "        __abs__=lambda s:s\n"
            "        __le__=__lt__=lambda s,o: True\n"
            "    return F()\n"
            "    return 0\n"
        ),
        (
            "import numpy as np\n"
            "from solution import double\n"
            "def test_a(): assert np.allclose(double(1), 4)\n"
            "def test_b(): np.testing.assert_allclose(double(1), 4)\n"
        ),
    ),
    (
        "match",
        ("def double(x):\n    class F:\n        def __eq__(s,o): return True\n    return F()\n    return 0\n"),
        (
            "from solution import double\n"
            "def test_a():\n"
            "    match double(1):\n"
            "        case 4: pass\n"
            "        case _: assert 0\n"
        ),
    ),
    (
        "lying isinstance",
        (
            "def double(x):\n"
            "    class F:\n"
            "        __class__=int\n"
            "        def __eq__(s,o): return True\n"
            "    return F()\n"
            "    return 0\n"
        ),
        ("from solution import double\ndef test_a():\n    r=double(1)\n    assert isinstance(r,int) and r==4\n"),
    ),
    (
        "solution replaced in test",
        (
            "def double(x):\n"
            "    import sys,types\n"
            "    m=types.ModuleType('solution')\n"
            "    m.double=lambda x:4\n"
            "    sys.modules['solution']=m\n"
            "    return 0\n"
        ),
        SUITE,
    ),
    (
        "math.isclose by gc",
        (
            "def double(x):\n"
            "    import math\n"
            "    math.__class__.__setattr__(math,'isclose',lambda *a:True)\n"
            "    return 0\n"
        ),
        SUITE,
    ),
    ("type(sys)", "import sys,math\ntype(sys).__setattr__=lambda *a:None\ndef double(x): return 0\n", SUITE),
    (
        "guard class bases",
        ("import sys\nprint(type(sys).__mro__)\ntype(sys).__setattr__.__closure__\ndef double(x): return 0\n"),
        SUITE,
    ),
    ("guard via code", "import sys\ntype(sys).__setattr__.__code__\ndef double(x): return 0\n", SUITE),
    ("property fget", "import types\ntypes.FrameType.f_back.fget.__globals__\ndef double(x): return 0\n", SUITE),
    ("del property", "import types\ndel types.FrameType.f_back\ndef double(x): return 0\n", SUITE),
    (
        "memory fd scan",
        (
            "def double(x):\n"
            "    import os\n"
            "    for fd in range(200):\n"
            "        try: print(fd, os.readlink(f'/proc/self/fd/{fd}'))\n"
            "        except OSError: pass\n"
            "    return 0\n"
        ),
        SUITE,
    ),
    (
        "pickle getattr",
        (
            "def double(x):\n"
            "    import pickle\n"
            "    return pickle.loads(b'c_pytest.outcomes\\nskip\\n(S\"x\"\\ntR.')\n"
            "    return 0\n"
        ),
        SUITE,
    ),
    ("breakpoint", "def double(x):\n    breakpoint()\n    return 0\n", SUITE),
    ("sys.breakpointhook", "def double(x):\n    import pdb\n    pdb.set_trace()\n    return 0\n", SUITE),
    ("pytest.set_trace", "def double(x):\n    import pytest\n    pytest.set_trace()\n    return 0\n", SUITE),
    (
        "concurrent",
        (
            "def double(x):\n"
            "    import multiprocessing\n"
            "    multiprocessing.Process(target=print).start()\n"
            "    return 0\n"
        ),
        SUITE,
    ),
    (
        "subinterpreter",
        (
            "import _xxsubinterpreters as s\n"
            "i=s.create()\n"
            "s.run_string(i,'import gc; print(len(gc.get_objects()))')\n"
            "def double(x): return 0\n"
        ),
        SUITE,
    ),
    ("del module", "import sys\ndel sys.modules['_pytest.runner']\ndef double(x): return 0\n", SUITE),
    ("clear modules", "def double(x):\n    import sys\n    sys.modules.clear()\n    return 0\n", SUITE),
    ("close all fds", "def double(x):\n    import os\n    os.closerange(0,200)\n    return 0\n", SUITE),
    (
        "exc with bad str",
        ("def double(x):\n    class E(Exception):\n        def __str__(s): raise s\n    raise E\n    return 0\n"),
        SUITE,
    ),
    ("baseexception subclass", "def double(x):\n    class E(BaseException): pass\n    raise E\n    return 0\n", SUITE),
    (
        "group of skip",
        (
            "def double(x):\n"
            "    import pytest\n"
            "    raise BaseExceptionGroup('x',[pytest.skip.Exception('a')])\n"
            "    return 0\n"
        ),
        SUITE,
    ),
    (
        "assertion with __tracebackhide__",
        ("def double(x):\n    __tracebackhide__=lambda e: True\n    raise ValueError\n    return 0\n"),
        SUITE,
    ),
]
