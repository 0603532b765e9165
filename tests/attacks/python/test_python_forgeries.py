"""Attacks on the channel and the harness: claims that are no answers, broken frames, patched modules, early ends."""

import pytest
from python_arena import HONEST, PROGRAM, double, gains, judge

pytestmark = pytest.mark.usefixtures("honest_after")


def forge(*records: str, after: str = "os._exit(0)") -> str:
    head = "import os\ndef send(b): os.write(90, len(b).to_bytes(4, 'big') + b)"
    return double("\n".join([*(f"send({record})" for record in records), after]), head)


DONE = "b'[\"done\"]'"
FORGED = {
    "wrong_values": forge("b'[\"value\",0,true]'", "b'[\"value\",1,null]'", DONE),
    "done_alone": forge(DONE),
    "done_alone_then_go_on": forge(DONE, after="return None"),
    "done_many_times": forge(*[DONE] * 5),
    "right_case_repeated": forge(*["b'[\"value\",0,4]'"] * 2, DONE),
    "second_case_first": forge("b'[\"value\",1,6]'", "b'[\"value\",0,4]'", DONE),
    "right_values_then_crash": forge("b'[\"value\",0,4]'", "b'[\"value\",1,6]'", DONE, after="os.abort()"),
    "right_values_then_exit_code": forge("b'[\"value\",0,4]'", "b'[\"value\",1,6]'", DONE, after="os._exit(3)"),
    "right_values_without_the_end": forge("b'[\"value\",0,4]'", "b'[\"value\",1,6]'"),
    "before_and_then_the_harness_too": forge("b'[\"value\",0,4]'", after="return 2 * x"),
    "records_after_the_end": forge("b'[\"value\",0,4]'", DONE, "b'[\"value\",1,6]'"),
    "case_beyond_the_last": forge("b'[\"value\",0,4]'", "b'[\"value\",1,6]'", "b'[\"value\",2,8]'", DONE),
    "negative_case": forge("b'[\"value\",-1,4]'"),
    "case_as_a_bool": forge("b'[\"value\",false,4]'", "b'[\"value\",true,6]'", DONE),
    "case_as_a_float": forge("b'[\"value\",0.0,4]'", "b'[\"value\",1.0,6]'", DONE),
    "verdict_in_place_of_a_record": forge('b\'{"outcome":"passed"}\'', "b'\"passed\"'", "b'[\"passed\",2,2]'"),
    "expected_in_the_record": forge("b'[\"value\",0,5,5]'", "b'[\"value\",1,5,5]'", DONE),
    "more_words_in_done": forge("b'[\"value\",0,4]'", "b'[\"value\",1,6]'", "b'[\"done\",0]'"),
    "unknown_kind_of_error": forge('b\'["error",0,"passed",""]\''),
    "error_of_a_case_that_is_none": forge('b\'["error",-1,[],""]\'', 'b\'["error",-1.0,"parse",""]\''),
    "loading_fails_after_a_case": forge("b'[\"value\",0,4]'", 'b\'["error",-1,"parse",""]\'', DONE),
}
DAMAGED = {
    "empty_frame": forge("b''"),
    "unclosed": forge("b'['"),
    "not_utf8": forge("b'\\xff'"),
    "utf16": forge("'[\"done\"]'.encode('utf-16')"),
    "deep_nesting": forge("b'[' * 100000"),
    "deep_nesting_closed": forge("b'[\"value\",0,' + b'[' * 90000 + b']' * 90000 + b']'"),
    "tag_without_its_list": forge("b'{\"d\":3}'", 'b\'["value",0,{"t":4}]\''),
    "two_tags": forge('b\'["value",0,{"t":[],"b":""}]\''),
    "bare_nan": forge("b'[\"value\",0,NaN]'"),
    "bare_infinity": forge("b'[\"value\",0,-Infinity]'"),
    "hex_without_digits": forge('b\'["value",0,{"i":"0x"}]\''),
    "integer_of_a_million_digits": forge("b'[\"value\",0,' + b'9' * 1000000 + b']'"),
    "odd_hex_bytes": forge('b\'["value",0,{"b":"abc"}]\''),
    "dict_with_triples": forge('b\'["value",0,{"d":[[1,2,3]]}]\''),
    "complex_of_texts": forge('b\'["value",0,{"c":["1","2"]}]\''),
    "half_a_length": double("os.write(90, b'\\0\\0'); os._exit(0)", "import os"),
    "half_a_frame": double("os.write(90, b'\\0\\0\\0\\x20[\"val'); os._exit(0)", "import os"),
    "giant_length": double("os.write(90, b'\\xff' * 4 + b'[\"done\"]'); os._exit(0)", "import os"),
    "noise_then_the_harness": double("os.write(90, b'noise'); return 2 * x", "import os"),
    "a_byte_between_frames": double("os.write(90, b'\\0'); return 2 * x", "import os"),
    "noise_from_a_thread": double(
        """
        threading.Thread(target=lambda: [os.write(90, b'zz') for _ in range(50)]).start()
        return 2 * x
        """,
        "import os, threading",
    ),
}
DESCRIPTORS = {
    "close_the_results": double("os.close(90); return 2 * x", "import os"),
    "close_everything": double("os.closerange(0, 1000); return 2 * x", "import os"),
    "results_into_the_log": double("os.dup2(1, 90); return 2 * x", "import os"),
    "results_into_a_file": double("os.dup2(os.open('f', 66), 90); return 2 * x", "import os"),
    "log_into_the_results": double("os.dup2(90, 1); os.dup2(90, 2); print('4', flush=True); return 2 * x", "import os"),
    "full_pipe_that_does_not_block": double(
        "os.set_blocking(90, False)\nwhile True: os.write(90, bytes(1 << 16))", "import os"
    ),
}
PATCHES = {
    "builtins": double(
        "return 5", "import builtins\nbuiltins.len = builtins.isinstance = builtins.type = lambda *a: True"
    ),
    "json_encoder": double(
        "return 5", "import json\njson.dumps = json.JSONEncoder.encode = lambda *a, **k: '[\"value\",0,4]'"
    ),
    "wire_by_gc": double(
        """
        for m in gc.get_objects():
            if isinstance(m, dict) and 'NotPlain' in m and 'encode' in m: m['encode'] = lambda *a: b'["done"]'
        return 5
        """,
        "import gc",
    ),
    "reporter_by_frames": double(
        """
        frame = sys._getframe()
        while frame:
            for value in list(frame.f_locals.values()):
                if hasattr(value, 'value') and hasattr(value, 'done'):
                    value.done(); value.error = value.fault = value.value = lambda *a: None
            frame = frame.f_back
        return 5
        """,
        "import sys",
    ),
    "cases_by_frames": double(
        """
        frame = sys._getframe()
        while frame:
            for value in list(frame.f_locals.values()):
                if isinstance(value, list): value.clear()
            frame = frame.f_back
        return 5
        """,
        "import sys",
    ),
    "code_of_the_harness": double(
        """
        for f in gc.get_objects():
            if type(f) is type(double) and f.__module__ and f.__module__.startswith('rlvr_exp'):
                f.__code__ = (lambda *a, **k: True).__code__
        return 5
        """,
        "import gc",
    ),
    "module_table": double("sys.modules.clear(); return 5", "import sys"),
    "module_table_is_a_lie": double(
        "sys.modules = {name: types.ModuleType(name) for name in sys.modules}; return 5", "import sys, types"
    ),
    "every_exit": double("sys.exit(0)", "import sys, os\nsys.exit = os._exit = os.abort = lambda *a: None"),
    "excepthook": double("raise ValueError", "import sys\nsys.excepthook = lambda *a: None"),
    "tracer_changes_what_is_returned": double(
        """
        def tracer(frame, event, arg):
            if 'returned' in frame.f_locals: frame.f_locals['returned'] = 4
            return tracer
        sys.settrace(tracer)
        frame = sys._getframe()
        while frame: frame.f_trace = tracer; frame = frame.f_back
        return 5
        """,
        "import sys",
    ),
    "exit_handler_repairs": double(
        "return 5", "import atexit, os\natexit.register(lambda: os.write(90, b'\\0\\0\\0\\x0d[\"value\",0,4]'))"
    ),
    "thread_goes_on_after_the_last_case": double(
        """
        def work():
            while True: os.write(90, len(d).to_bytes(4, 'big') + d)
        threading.Thread(target=work).start()
        return 5
        """,
        "import os, threading\nd = b'[\"value\",0,4]'",
    ),
    "bytecode_of_the_caller": double(
        """
        code = sys._getframe(1).f_code
        address = id(code) + code.__sizeof__() - 64
        ctypes.memset(address, 83, 64)
        return 5
        """,
        "import ctypes, sys",
    ),
    "small_integers": double(
        "ctypes.c_long.from_address(id(5) + 24).value = 4\nif 2 + 3 == 4: return 5", "import ctypes"
    ),
    "import_the_project": double("return 5", "import rlvr_exp.verifiers.python_io"),
}
ENDINGS = {
    "exit_0": double("os._exit(0)", "import os"),
    "sys_exit": double("sys.exit(0)", "import sys"),
    "exit_builtin": double("exit()"),
    "system_exit_subclass": double("raise Quiet", "class Quiet(SystemExit): code = 0"),
    "keyboard_interrupt": double("raise KeyboardInterrupt"),
    "generator_exit": double("raise GeneratorExit"),
    "base_exception_group": double("raise BaseExceptionGroup('x', [SystemExit(0)])"),
    "abort": double("os.abort()", "import os"),
    "while_loading": "import os\nos._exit(0)",
    "while_loading_by_exception": "raise SystemExit(0)",
    "in_the_second_case": double("return 4 if x == 2 else os._exit(0)", "import os"),
    "from_a_thread": double(
        "threading.Thread(target=os._exit, args=(0,)).start(); time.sleep(1)", "import os, threading, time"
    ),
    "in_a_finalizer": double("return Last()", "import os\nclass Last:\n    def __del__(self): os._exit(0)"),
    "after_the_last_answer": double(
        "if x == 3: os.write(90, b'\\0\\0\\0\\x0d[\"value\",1,6]'); os._exit(1)\nreturn 2 * x", "import os"
    ),
    "stop_iteration": double("raise StopIteration(4)"),
    "async_exception_in_the_main_thread": double(
        """
        main = threading.main_thread().ident
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(SystemExit))
        while True: pass
        """,
        "import ctypes, threading",
    ),
    "replace_itself": double("os.execv('/bin/true', ['true'])", "import os"),
    "signal_handler_raises_in_the_harness": double(
        "signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4); return 5",
        "import signal\ndef leave(*a): raise SystemExit(0)\nsignal.signal(signal.SIGALRM, leave)",
    ),
}
PROGRAM_ENDINGS = {
    "exit_code": "print(2 * int(input())); import sys; sys.exit(3)",
    "message_as_an_exit_code": "print(2 * int(input())); import sys; sys.exit('bad')",
    "exception_after_the_answer": "print(2 * int(input())); 1 / 0",
    "abort_after_the_answer": "import os; print(2 * int(input()), flush=True); os.abort()",
    "os_exit_before_the_text_is_flushed": "import os; print(2 * int(input())); os._exit(0)",
    "nothing_at_all": "",
    "answer_on_standard_error": "import sys; print(2 * int(input()), file=sys.stderr)",
    "answer_and_more": "print(2 * int(input())); print('and more')",
    "answer_as_a_forged_record": 'import os; os.write(90, b\'\\0\\0\\0\\x10["value",0,"4"]\')',
    "guess_in_every_line": "print('\\n'.join(map(str, range(20))))",
}
GROUPS = {
    "forged": FORGED,
    "damaged": DAMAGED,
    "descriptors": DESCRIPTORS,
    "patches": PATCHES,
    "endings": ENDINGS,
}
ALL = [pytest.param(code, id=f"{group}-{name}") for group, table in GROUPS.items() for name, code in table.items()]


@pytest.mark.parametrize("code", ALL)
def test_it_does_not_pass(verifier, code):
    assert judge(verifier, code).outcome == "failed"


@pytest.mark.parametrize("code", PROGRAM_ENDINGS.values(), ids=PROGRAM_ENDINGS)
def test_a_program_does_not_pass(verifier, code):
    assert judge(verifier, code, PROGRAM).outcome == "failed"


def test_a_gain_would_be_seen(verifier):
    assert judge(verifier, gains("won = True")).outcome == "passed"
    assert judge(verifier, gains("pass")).outcome == "failed"
    assert judge(verifier, HONEST).outcome == "passed"
