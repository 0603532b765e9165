"""Honest programs by what they use, each with a suite and files: the guard accepts all of them."""

from control_tables import Control

HONEST: list[Control] = [
    (
        "getsource",
        (
            "import inspect\n"
            "def g():\n"
            "    return 1\n"
            "assert 'return 1' in inspect.getsource(g)\n"
            "assert inspect.getsourcelines(g)\n"
            "inspect.getfile(g)\n"
            "inspect.getdoc(g)\n"
            "inspect.getmodule(g)\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "getsource class",
        (
            "import inspect\n"
            "class K:\n"
            "    def m(self): return 1\n"
            "assert 'return 1' in inspect.getsource(K.m)\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "own frame",
        (
            "import sys, inspect\n"
            "def g(): return sys._getframe().f_code.co_name\n"
            "assert g()=='g'\n"
            "def h(): return inspect.currentframe().f_code.co_name\n"
            "assert h()=='h'\n"
            "def c(): return inspect.stack()[1].function\n"
            "def d(): return c()\n"
            "assert d()=='d'\n"
            "def caller(): return inspect.currentframe().f_back.f_code.co_name\n"
            "def dd(): return caller()\n"
            "assert dd()=='dd'\n"
            "inspect.currentframe().f_lineno\n"
            "def loc():\n"
            "    zz=1\n"
            "    return inspect.currentframe().f_locals['zz']\n"
            "loc()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "fmt_exc",
        (
            "import traceback,sys\n"
            "try: 1/0\n"
            "except Exception as e:\n"
            "    traceback.format_exc(); traceback.print_exc(); traceback.format_tb(e.__traceback__); traceback.extract_tb(e.__traceback__); traceback.format_exception(e); e.__traceback__.tb_frame.f_code.co_name; e.__traceback__.tb_lineno; sys.exc_info()[2].tb_next\n"
            "    traceback.TracebackException.from_exception(e, capture_locals=True)\n"
            "traceback.print_stack(); traceback.extract_stack(); traceback.format_stack()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "traceback.walk",
        (
            "import traceback\n"
            "try: 1/0\n"
            "except Exception as e:\n"
            "    for fr,ln in traceback.walk_tb(e.__traceback__): fr.f_code.co_filename\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "logging",
        (
            "import logging\n"
            "logging.basicConfig(level=10,format='%(funcName)s %(lineno)d %(filename)s %(message)s')\n"
            "L=logging.getLogger('a')\n"
            "L.info('x')\n"
            "L.exception('y')\n"
            "L.info('s',stack_info=True,stacklevel=2)\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "warn",
        (
            "import warnings\n"
            "def w(): warnings.warn('x',DeprecationWarning,stacklevel=2)\n"
            "w()\n"
            "@__import__('functools').wraps(w)\n"
            "def z(): pass\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "hints",
        (
            "import typing\n"
            "class A:\n"
            "    x:'int'\n"
            "    def m(self,b:'A')->'typing.List[A]': ...\n"
            "typing.get_type_hints(A); typing.get_type_hints(A.m)\n"
            "import inspect\n"
            "inspect.signature(A.m,eval_str=True); inspect.get_annotations(A)\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "executors",
        (
            "import concurrent.futures as c, multiprocessing.dummy as d, threading, queue\n"
            "with c.ThreadPoolExecutor(3) as p: assert list(p.map(lambda x:x+1,range(4)))==[1,2,3,4]\n"
            "with d.Pool(2) as p: p.map(abs,[1,-2])\n"
            "t=threading.Thread(target=print,args=(1,)); t.start(); t.join()\n"
            "threading.Timer(0.01,print).start()\n"
            "q=queue.Queue(); q.put(1); q.get()\n"
            "lock=threading.RLock()\n"
            "loc=threading.local(); loc.x=1\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "asyncio",
        (
            "import asyncio\n"
            "async def g():\n"
            "    await asyncio.gather(asyncio.sleep(0.01),asyncio.sleep(0))\n"
            "    q=asyncio.Queue(); await q.put(1); await q.get()\n"
            "    t=asyncio.create_task(asyncio.sleep(0)); await t\n"
            "    async with asyncio.timeout(1): pass\n"
            "    return await asyncio.to_thread(abs,-1)\n"
            "assert asyncio.run(g())==1\n"
            "l=asyncio.new_event_loop(); l.run_until_complete(g()); l.close()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "sizeof",
        (
            "import sys,gc,weakref,copy,pickle\n"
            "sys.getsizeof([]); gc.collect(); gc.isenabled(); sys.setrecursionlimit(20000); sys.getrefcount(sys); sys.getrecursionlimit(); sys.intern('x')\n"
            "class K:\n"
            "    def __init__(s): s.me=s\n"
            "k=K(); copy.deepcopy(k); weakref.finalize(k,print); pickle.loads(pickle.dumps(k))\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "meta",
        (
            "class D:\n"
            "    def __set_name__(s,o,n): s.n=n\n"
            "    def __get__(s,i,o): return 3\n"
            "    def __set__(s,i,v): pass\n"
            "class M(type):\n"
            "    def __new__(m,n,b,d): return super().__new__(m,n,b,d)\n"
            "    def __call__(c,*a): return super().__call__(*a)\n"
            "    def __instancecheck__(c,i): return True\n"
            "class A(metaclass=M):\n"
            "    x=D()\n"
            "    __slots__=('y',)\n"
            "    def __getattr__(s,n): return 1\n"
            "A().z; A().x\n"
            "class B: pass\n"
            "class C: pass\n"
            "b=B(); b.__class__=C\n"
            "B.__bases__; B.__name__='Q'; B.__module__='zz'; B.f=lambda s:1\n"
            "C.__bases__\n"
            "T=type('T',(),{'a':1}); T.a=2\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "fn attrs",
        (
            "def g(a,b=2,*,c=3): 'doc'\n"
            "g.__name__='x'; g.__doc__='y'; g.__defaults__=(3,); g.__wrapped__=1; g.calls=0; g.__module__='k'; g.__qualname__='z'; g.__annotations__={}; g.__kwdefaults__; g.__code__.co_varnames; g.__closure__; g.__dict__\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "os",
        (
            "import os,sys,platform,time,random,tempfile,pathlib,shutil,glob\n"
            "os.environ.get('HOME'); os.environ['X']='1'; os.getcwd(); os.listdir('.'); os.getpid(); os.cpu_count(); time.sleep(0.01); random.seed(3); platform.platform(); platform.node(); sys.platform; sys.argv; sys.stdin.read(); os.urandom(3)\n"
            "with open('a.txt','w') as h: h.write('x')\n"
            "open('a.txt').read(); os.makedirs('d/e',exist_ok=True); shutil.copy('a.txt','d/b.txt'); os.rename('a.txt','c.txt'); os.remove('c.txt'); shutil.rmtree('d'); glob.glob('*'); pathlib.Path('p').write_text('q'); pathlib.Path.home; os.path.expanduser('~')\n"
            "with tempfile.NamedTemporaryFile('w') as h: h.write('x')\n"
            "tempfile.mkdtemp()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "main",
        (
            "import unittest\n"
            "class MyTest(unittest.TestCase):\n"
            "    def test_f(self): self.assertEqual(f(1), 3)\n"
            "def test_f(): assert f(1)==3\n"
            "if __name__=='__main__': unittest.main()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "main2",
        (
            "def main():\n"
            "    print(f(3)); return 0\n"
            "if __name__=='__main__':\n"
            "    import sys\n"
            "    sys.exit(main())\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "sub builtins",
        (
            "import collections,enum\n"
            "class Mx(list):\n"
            "    def __add__(s,o): return Mx(a+b for a,b in zip(s,o))\n"
            "class DD(dict):\n"
            "    def __missing__(s,k): return 0\n"
            "    def __getattr__(s,k): return s[k]\n"
            "class F(enum.IntFlag):\n"
            "    A=1; B=2\n"
            "class S(str): pass\n"
            "assert F.A|F.B==3\n"
            "collections.Counter('aab'); collections.OrderedDict(a=1); collections.defaultdict(list); collections.ChainMap(); collections.UserDict()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "singledispatch",
        (
            "import functools,operator,itertools\n"
            "@functools.singledispatch\n"
            "def g(x): return 1\n"
            "@g.register(int)\n"
            "def _(x): return 2\n"
            "@g.register\n"
            "def _(x:str)->int: return 3\n"
            "class K:\n"
            "    @functools.singledispatchmethod\n"
            "    def m(s,x): return 1\n"
            "    @functools.cached_property\n"
            "    def p(s): return 1\n"
            "    @functools.cache\n"
            "    def q(s): return 1\n"
            "K().m(1); K().p; K().q(); functools.partial(g,1)(); functools.reduce(operator.add,[1]); functools.total_ordering(type('Z',(),{'__lt__':lambda s,o:True}))\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "ctxlib",
        (
            "import contextlib\n"
            "@contextlib.contextmanager\n"
            "def c():\n"
            "    try: yield\n"
            "    finally: pass\n"
            "with c(): pass\n"
            "@contextlib.asynccontextmanager\n"
            "async def ac(): yield\n"
            "with contextlib.suppress(KeyError): {}['a']\n"
            "with contextlib.ExitStack() as s: s.enter_context(c()); s.callback(print)\n"
            "try:\n"
            "    with c(): raise ValueError\n"
            "except ValueError: pass\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "dataclasses",
        (
            "import dataclasses as d, typing as t\n"
            "@d.dataclass(order=True,frozen=True,slots=True)\n"
            "class P:\n"
            "    x:int\n"
            "    y:list=d.field(default_factory=list,compare=False)\n"
            "P(1)<P(2); d.asdict(P(1)); d.replace(P(1),x=2); d.fields(P); d.make_dataclass('Q',['a'])\n"
            "class TD(t.TypedDict):\n"
            "    a:int\n"
            "class NT(t.NamedTuple):\n"
            "    a:int=1\n"
            "class Pr(t.Protocol):\n"
            "    def f(self): ...\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "networkx",
        (
            "import networkx as nx\n"
            "G=nx.path_graph(4); nx.shortest_path(G,0,3); nx.is_connected(G); list(nx.topological_sort(nx.DiGraph([(1,2)]))); nx.to_numpy_array(G)\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "sympy",
        (
            "import sympy as s\n"
            "x=s.symbols('x'); s.solve(x**2-1,x); s.lambdify(x,x**2)(3); s.simplify(x+x); s.integrate(x,x)\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "pandas",
        (
            "import pandas as pd\n"
            "d=pd.DataFrame({'a':[1,2],'b':[3,4]}); d.groupby('a').sum(); d.query('a>1'); d.eval('a+b'); d['a'].apply(lambda v:v+1); d.merge(d,on='a'); pd.to_datetime('2020-01-01'); d.to_csv(); d.describe(); d.loc[0,'a']=5\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "numpy",
        (
            "import numpy as np\n"
            "np.vectorize(lambda v:v)([1]); np.array([1.])/0; np.errstate; np.fromiter(range(3),int); np.testing.assert_allclose([1],[1]); np.save('a.npy',np.arange(3)); np.load('a.npy'); np.random.seed(0); np.fft.fft([1,2]); np.linalg.svd(np.eye(2)); np.einsum('ii',np.eye(2)); np.info; np.ctypeslib\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "scipy",
        (
            "import scipy.optimize as o, scipy.stats as st, scipy.integrate as i, scipy.sparse as sp, scipy.linalg\n"
            "o.minimize(lambda v:(v**2).sum(),[1.]); st.norm.cdf(0); i.quad(abs,0,1); sp.csr_matrix([[1]]); st.ttest_ind([1,2],[2,3]); o.linprog([1],bounds=[(0,1)])\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "jinja2",
        (
            "import jinja2\n"
            "assert jinja2.Template('{{a}}').render(a=1)=='1'\n"
            "try: jinja2.Template('{{ a.b.c }}').render()\n"
            "except jinja2.UndefinedError: pass\n"
            "jinja2.Environment().from_string('{% for i in x %}{{i}}{% endfor %}').render(x=[1])\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "pydantic",
        (
            "import pydantic\n"
            "class A(pydantic.BaseModel):\n"
            "    x:int\n"
            "    y:list['A']=[]\n"
            "    @pydantic.field_validator('x')\n"
            "    @classmethod\n"
            "    def v(cls,v): return v\n"
            "A(x='1').model_dump()\n"
            "try: A(x='q')\n"
            "except pydantic.ValidationError: pass\n"
            "pydantic.create_model('B',a=(int,1)); pydantic.TypeAdapter(list[int]).validate_python(['1'])\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "PIL",
        (
            "from PIL import Image, ImageDraw, ImageFont\n"
            "i=Image.new('RGB',(4,4)); ImageDraw.Draw(i).line((0,0,3,3)); i.save('a.png'); Image.open('a.png').load(); ImageFont.load_default()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "yaml etc",
        (
            "import yaml,requests,dateutil.parser,regex,tqdm\n"
            "yaml.safe_load('a: 1'); yaml.dump({}); dateutil.parser.parse('2020-01-01'); regex.sub('a','b','a'); requests.Session(); requests.Request('GET','http://x').prepare(); list(tqdm.tqdm(range(3)))\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "hypothesis",
        (
            "from hypothesis import given, strategies as st, settings\n"
            "@given(st.integers())\n"
            "@settings(max_examples=5)\n"
            "def prop(x): assert f(x)==2*x\n"
            "if __name__=='__main__': prop()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "hypothesis2",
        (
            "from hypothesis import given, strategies as st, settings\n"
            "@given(st.integers())\n"
            "@settings(max_examples=5,database=None)\n"
            "def prop(x): assert f(x)==2*x\n"
            "_orig=lambda x:0\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "signal",
        (
            "import signal,time\n"
            "class TO(Exception): pass\n"
            "def h(n,fr): raise TO\n"
            "old=signal.signal(signal.SIGALRM,h)\n"
            "signal.setitimer(signal.ITIMER_REAL,0.01)\n"
            "try:\n"
            "    time.sleep(1)\n"
            "except TO: pass\n"
            "finally: signal.alarm(0); signal.signal(signal.SIGALRM,old)\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "atexit",
        (
            "import atexit,sys,builtins,resource,faulthandler,tracemalloc,timeit,cProfile,pstats,io\n"
            "atexit.register(print,'bye'); resource.getrusage(resource.RUSAGE_SELF); timeit.timeit('1',number=2); tracemalloc.start(); tracemalloc.stop(); sys.excepthook; builtins.print('x')\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "stdout",
        (
            "import sys,io\n"
            "sys.stdout.write('x'); sys.stdout.flush(); sys.stderr.write('e'); sys.stdout.reconfigure(encoding='utf-8'); sys.stdin=io.StringIO('1'); input(); sys.stdout=io.TextIOWrapper(io.BytesIO()); sys.stdout=sys.__stdout__\n"
            "sys.set_int_max_str_digits(0)\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "subprocess",
        (
            "import subprocess,shlex\n"
            "try: subprocess.run(['echo','x'],capture_output=True)\n"
            "except Exception: pass\n"
            "try: subprocess.check_output('ls',shell=True)\n"
            "except Exception: pass\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "socket",
        (
            "import socket,urllib.request\n"
            "try: urllib.request.urlopen('http://localhost:1',timeout=1)\n"
            "except Exception: pass\n"
            "s=socket.socketpair() if 0 else None\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "pickle etc",
        (
            "import shelve,sqlite3,csv,json,zipfile,gzip,struct,array,mmap,dbm\n"
            "sqlite3.connect('t.db').execute('create table a(b)'); json.dumps({}); gzip.compress(b'a')\n"
            "with shelve.open('sh') as s: s['a']=1\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "ast compile",
        (
            "import ast,dis,tokenize,io,symtable,types,code,codeop\n"
            "t=ast.parse('x=1'); exec(compile(t,'<s>','exec'),{}); ast.unparse(t); ast.literal_eval('1'); list(tokenize.generate_tokens(io.StringIO('a').readline)); dis.dis(compile('1','','eval'),file=io.StringIO()); types.SimpleNamespace(a=1); m=types.ModuleType('zz'); m.x=1; types.MethodType(lambda s:1,3)()\n"
            "def g(): pass\n"
            "dis.dis(g,file=io.StringIO())\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "importlib",
        (
            "import importlib,sys\n"
            "importlib.import_module('json'); importlib.util.find_spec('numpy'); importlib.reload(importlib.import_module('colorsys')); importlib.metadata.version('numpy') if hasattr(importlib,'metadata') else 0; sys.modules['mymod']=type(sys)('mymod'); import mymod; sys.path.append('.')\n"
            "import importlib.metadata as md; md.version('numpy'); import importlib.resources\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "decimal ctx",
        (
            "import decimal,locale,datetime,zoneinfo,calendar\n"
            "decimal.getcontext().prec=10; decimal.setcontext(decimal.Context()); decimal.DefaultContext.prec=9; datetime.datetime.now().astimezone(); locale.setlocale(locale.LC_ALL,''); calendar.setfirstweekday(6); time=__import__('time'); time.tzset(); time.localtime()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "mod state",
        (
            "import random,string,re,json,csv,socket,threading\n"
            "random.seed(1); threading.stack_size(67108864); socket.setdefaulttimeout(3); csv.field_size_limit(10**7); csv.register_dialect('q',delimiter=';'); re.purge(); json.encoder.FLOAT_REPR=str; threading.setprofile; random.Random(3)\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "big rec thread",
        (
            "import threading,sys\n"
            "sys.setrecursionlimit(10**5); threading.stack_size(2**26)\n"
            "def r(n): return n and r(n-1)\n"
            "t=threading.Thread(target=r,args=(20000,)); t.start(); t.join()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "warnings filter",
        (
            "import warnings\n"
            "warnings.filterwarnings('ignore'); warnings.simplefilter('always'); warnings.showwarning=lambda *a,**k:None; warnings.formatwarning=lambda *a,**k:''\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "excepthook",
        (
            "import sys,threading\n"
            "sys.excepthook=lambda *a:None; threading.excepthook=lambda a:None; sys.displayhook=print; sys.dont_write_bytecode=True\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "gen frame",
        (
            "def g():\n"
            "    x=yield 1\n"
            "i=g(); next(i); i.gi_running; import inspect; inspect.getgeneratorstate(i); inspect.isgenerator(i); i.close()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
        {},
    ),
    (
        "helper",
        "from util import twice\nimport util\ndef f(x): return util.twice(x)",
        "from solution import f\nimport util\ndef test_a(): assert f(2)==util.twice(2)",
        {"util.py": "K=1\ndef twice(x): return 2*x\n"},
    ),
    (
        "helper pkg",
        "from pk.sub import twice\nfrom pk import K\ndef f(x): return twice(x)",
        "from solution import f\ndef test_a(): assert f(2)==4",
        {"pk/__init__.py": "K=1\n", "pk/sub.py": "from . import K\ndef twice(x): return 2*x\n"},
    ),
    (
        "helper set_state",
        "import util\ndef f(): util.bump(); return util.count",
        "from solution import f\ndef test_a(): assert f()==1",
        {"util.py": "count=0\ndef bump():\n    global count\n    count+=1\n"},
    ),
    (
        "sysexit",
        "import sys\ndef f(): sys.exit(3)\ndef g(): raise SystemExit('x')",
        (
            "import pytest\n"
            "from solution import f,g\n"
            "def test_a():\n"
            "    with pytest.raises(SystemExit) as e: f()\n"
            "    assert e.value.code==3\n"
            "    with pytest.raises(SystemExit): g()"
        ),
        {},
    ),
    (
        "monkey",
        (
            "import json\n"
            "K=3\n"
            "def load(p): return json.load(open(p))\n"
            "def f(): return helper()+K\n"
            "def helper(): return 1"
        ),
        (
            "import solution\n"
            "from unittest import mock\n"
            "def test_a(monkeypatch):\n"
            "    monkeypatch.setattr(solution,'helper',lambda: 5)\n"
            "    monkeypatch.setattr('solution.K',1)\n"
            "    assert solution.f()==6\n"
            "def test_b():\n"
            "    with mock.patch('solution.helper',return_value=9): assert solution.f()==12\n"
            "    with mock.patch.object(solution,'K',0), mock.patch.dict('os.environ',{'A':'1'}): assert solution.f()==1\n"
            "@mock.patch('solution.json.load',return_value={'a':1})\n"
            "@mock.patch('builtins.open')\n"
            "def test_c(o,l): assert solution.load('x')=={'a':1}; o.assert_called_once_with('x')"
        ),
        {},
    ),
    (
        "matrix",
        (
            "class Matrix(list):\n"
            "    def __eq__(s,o): return list(s)==list(o)\n"
            "    __hash__=None\n"
            "class Money(int):\n"
            "    def __eq__(s,o): return int(s)==int(o)\n"
            "    def __hash__(s): return int.__hash__(s)\n"
            "class Ci(str):\n"
            "    def __eq__(s,o): return s.lower()==o.lower()\n"
            "    def __hash__(s): return hash(s.lower())\n"
            "class Mod:\n"
            "    def __init__(s,v,m): s.v=v%m; s.m=m\n"
            "    def __eq__(s,o): return s.v==(o.v if isinstance(o,Mod) else o)%s.m\n"
            "    def __add__(s,o): return Mod(s.v+(o.v if isinstance(o,Mod) else o),s.m)\n"
            "class Iv:\n"
            "    def __contains__(s,x): return 0<=x<100\n"
            "class Poly:\n"
            "    def __init__(s,c): s.c=list(c)\n"
            "    def __eq__(s,o): return s.c==(o.c if isinstance(o,Poly) else o)"
        ),
        (
            "from solution import *\n"
            "import pytest\n"
            "def test_a():\n"
            "    assert Matrix([[1,2],[3,4]])==[[1,2],[3,4]]\n"
            "    assert [Matrix([1])]==[[1]]\n"
            "    assert Money(5)==5 and Money(5)!=6 and 5==Money(5)\n"
            "    assert Money(5)+0==5\n"
            "    assert Ci('Abc')=='aBC'\n"
            "    assert Ci('a') in ['x','A']\n"
            "    assert 'ABC' == Ci('abc')\n"
            "    assert Mod(3,7)==10 and Mod(3,7)+5==1\n"
            "    assert Mod(2,3)==2\n"
            "    assert 5 in Iv() and 99 in Iv() and 100 not in Iv() and -1 not in Iv()\n"
            "    assert Poly([1,2])==[1,2] and Poly([1,2])==Poly([1,2])\n"
            "    assert {'a':Money(3)}=={'a':3} and (Money(1),2)==(1,2) and {Money(1),Money(2)}=={1,2}\n"
            "    assert Money(3) in {3:1} and Money(3) in {3}\n"
            "    assert [Money(3),Money(1)]!=[3]\n"
            "    assert pytest.approx(5)==Money(5)\n"
            "    assert float(Money(5))==pytest.approx(5)\n"
            "    xs=[Money(i) for i in range(5)]\n"
            "    assert xs==list(range(5)) and max(xs)==4 and sorted(xs)==[0,1,2,3,4]\n"
            "    assert xs.count(3)==1 and xs.index(2)==2"
        ),
        {},
    ),
    (
        "num types",
        (
            "from fractions import Fraction\n"
            "from decimal import Decimal\n"
            "import collections,dataclasses,enum,datetime\n"
            "@dataclasses.dataclass\n"
            "class P:\n"
            "    x:int\n"
            "N=collections.namedtuple('N','a b')\n"
            "class C(enum.IntEnum):\n"
            "    A=1\n"
            "class SE(str,enum.Enum):\n"
            "    A='a'\n"
            "fr=lambda: Fraction(1,2)\n"
            "de=lambda: Decimal('0.5')"
        ),
        (
            "from solution import *\n"
            "import pytest, numpy as np\n"
            "def test_a():\n"
            "    assert fr()==0.5==de() and fr()==Fraction(1,2) and P(1)==P(1) and P(1)!=1 and N(1,2)==(1,2) and C.A==1 and SE.A=='a'\n"
            "    assert N(1,2)==N(1,2) and [P(1)]==[P(1)] and {'a':N(1,2)}=={'a':(1,2)}\n"
            "    assert fr()==pytest.approx(0.5) and de()==pytest.approx(Decimal('0.5'))\n"
            "    assert C.A in (1,2) and 'a' in SE.A"
        ),
        {},
    ),
    (
        "vector",
        (
            "import math\n"
            "class V:\n"
            "    def __init__(s,x,y): s.x,s.y=x,y\n"
            "    def __eq__(s,o):\n"
            "        if isinstance(o,tuple): return (s.x,s.y)==o\n"
            "        if not isinstance(o,V): return NotImplemented\n"
            "        return math.isclose(s.x,o.x) and math.isclose(s.y,o.y)\n"
            "    def __sub__(s,o): return V(s.x-o.x,s.y-o.y)\n"
            "    def __abs__(s): return math.hypot(s.x,s.y)\n"
            "    def __iter__(s): return iter((s.x,s.y))\n"
            "    def __hash__(s): return hash((s.x,s.y))\n"
            "class T:\n"
            "    def __init__(s,c): s.c=c\n"
            "    def __sub__(s,o): return T(s.c-(o.c if isinstance(o,T) else o))\n"
            "    def __lt__(s,o): return s.c<(o.c if isinstance(o,T) else o)\n"
            "    def __abs__(s): return abs(s.c)\n"
            "    def __gt__(s,o): return s.c>(o.c if isinstance(o,T) else o)\n"
            "    def __float__(s): return float(s.c)"
        ),
        (
            "from solution import *\n"
            "def test_a():\n"
            "    assert V(1,2)==V(1,2) and V(1,2)==(1,2) and V(1,2)!=V(2,1) and V(1,2)!=5 and not V(1,2)==None\n"
            "    assert abs(V(3,4)-V(0,0))==5 and list(V(1,2))==[1,2] and V(1,2) in [V(1,2)] and V(1,2) in {V(1,2)}\n"
            "    assert abs(T(3.0)-3)<1e-9 and T(3)<4 and T(3)>2 and float(T(3))==3"
        ),
        {},
    ),
    (
        "linkedlist",
        (
            "class L:\n"
            "    def __init__(s,*v): s.v=list(v)\n"
            "    def __len__(s): return len(s.v)\n"
            "    def __contains__(s,x): return x in s.v\n"
            "    def __getitem__(s,i): return s.v[i]\n"
            "    def __eq__(s,o): return list(s)==list(o)\n"
            "    def __iter__(s): return iter(s.v)\n"
            "    def __bool__(s): return bool(s.v)\n"
            "class Trie:\n"
            "    def __init__(s): s.w=set()\n"
            "    def insert(s,w): s.w.add(w)\n"
            "    def __contains__(s,w): return any(x.startswith(w) for x in s.w)\n"
            "class Bloom:\n"
            "    def __contains__(s,x): return hash(x)%7==0 or x=='abc'\n"
            "class SortedL(list):\n"
            "    def append(s,x): super().append(x); s.sort()"
        ),
        (
            "from solution import *\n"
            "def test_a():\n"
            "    l=L(1,2,3)\n"
            "    assert l==[1,2,3] and 2 in l and 5 not in l and len(l)==3 and l[0]==1 and list(l)==[1,2,3] and l==L(1,2,3) and l!=[1]\n"
            "    assert L()==[]\n"
            "    assert not L()\n"
            "    t=Trie(); t.insert('hello')\n"
            "    assert 'he' in t and 'x' not in t\n"
            "    assert 'abc' in Bloom()\n"
            "    s=SortedL(); s.append(3); s.append(1)\n"
            "    assert s==[1,3] and s[0]==1"
        ),
        {},
    ),
    (
        "bool-ish",
        (
            "class B:\n"
            "    def __init__(s,b): s.b=b\n"
            "    def __eq__(s,o): return s.b==bool(o)\n"
            "    def __bool__(s): return s.b\n"
            "class Par:\n"
            "    def __init__(s,n): s.n=n\n"
            "    def __eq__(s,o): return self_n(s)==self_n(o)\n"
            "def self_n(o): return o.n if isinstance(o,Par) else o\n"
            "class Temp(float):\n"
            "    def __eq__(s,o): return abs(float(s)-float(o))<1e-6\n"
            "    __hash__=float.__hash__\n"
            "class Ver(tuple):\n"
            "    def __new__(c,s): return super().__new__(c,map(int,s.split('.')))\n"
            "    def __eq__(s,o): return tuple.__eq__(s,Ver(o) if isinstance(o,str) else o)\n"
            "    def __lt__(s,o): return tuple.__lt__(s,Ver(o) if isinstance(o,str) else o)\n"
            "    __hash__=tuple.__hash__"
        ),
        (
            "from solution import *\n"
            "def test_a():\n"
            "    assert B(True)==True and B(False)==False\n"
            "    assert Par(3)==3\n"
            "    assert Temp(36.6)==36.6 and abs(Temp(1.5)-1.5)<1e-9\n"
            "    assert Ver('1.2')=='1.2' and Ver('1.2')<'1.10' and Ver('1.2')==(1,2)"
        ),
        {},
    ),
    (
        "string proxies",
        (
            "import re\n"
            "class Url(str):\n"
            "    @property\n"
            "    def host(s): return s.split('/')[2]\n"
            "class Tok:\n"
            "    def __init__(s,t): s.t=t\n"
            "    def __eq__(s,o): return s.t==o if isinstance(o,str) else isinstance(o,Tok) and s.t==o.t\n"
            "    def __hash__(s): return hash(s.t)\n"
            "    def __repr__(s): return s.t\n"
            "def toks(s): return [Tok(x) for x in s.split()]"
        ),
        (
            "from solution import *\n"
            "def test_a():\n"
            "    assert Url('http://a/b')=='http://a/b' and Url('http://a/b').host=='a'\n"
            "    assert toks('a b')==['a','b'] and 'a' in toks('a b') and {t:1 for t in toks('a')}=={'a':1} and set(toks('a b'))=={'a','b'} and toks('a').count('a')==1"
        ),
        {},
    ),
]

PACKAGES = (
    (
        "torch",
        (
            "import torch\n"
            "import torch.nn as nn\n"
            "m=nn.Linear(2,1); m(torch.ones(1,2)).sum().backward(); torch.optim.SGD(m.parameters(),0.1).step(); torch.jit; torch.tensor([1]).numpy(); torch.manual_seed(0)\n"
            "class N(nn.Module):\n"
            "    def __init__(s): super().__init__(); s.l=nn.Sequential(nn.Linear(2,2),nn.ReLU())\n"
            "    def forward(s,x): return s.l(x)\n"
            "N()(torch.ones(1,2)); m.state_dict(); torch.utils.data.DataLoader([1,2]); str(N())\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
    ),
    (
        "transformers",
        (
            "import transformers\n"
            "from transformers import AutoConfig, GPT2Config, PretrainedConfig\n"
            "GPT2Config().to_dict()\n"
            "def f(x): return x * 2\n"
        ),
        "from solution import f\ndef test_a(): assert f(2) == 4\n",
    ),
)
"""Programs whose packages may be missing, and that take more memory than others."""
