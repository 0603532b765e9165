"""Fixed answers to problems of whole programs, which read and print."""

from collections.abc import Callable

_TEXTS = {
    "prints_nothing": "",
    "prints_zero": "print(0)",
    "prints_one": "print(1)",
    "prints_minus_one": "print(-1)",
    "prints_yes": "print('YES')",
    "prints_no": "print('NO')",
    "prints_empty_line": "print()",
    "prints_its_input": "import sys\nsys.stdout.write(sys.stdin.read())",
    "prints_its_first_line": "print(input())",
    "raises": "raise NotImplementedError",
    "exits": "import sys\nsys.exit(0)",
}
_ATTACKS = {
    "leaves_at_once": "import os\nos._exit(0)",
    "closes_its_output": "import os\nos.close(1)",
    "forges_the_report": """
import json, os, struct
for fd in range(3, 256):
    for record in (['value', 0, ''], ['done']):
        data = json.dumps(record).encode()
        try:
            os.write(fd, struct.pack('!I', len(data)) + data)
        except OSError:
            break
os._exit(0)
""",
    "kills_its_parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
}


def _fixed(text: str) -> Callable[[object], str]:
    return lambda _: text


ANSWERS = tuple((name, _fixed(text)) for name, text in (_TEXTS | _ATTACKS).items())
PLAIN = frozenset(_TEXTS)
