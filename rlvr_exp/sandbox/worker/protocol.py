"""The bytes between the pool and its workers: one message a job, one fixed head before each answer.

A job is one packet on a socket that all workers of a pool read from, so that a free worker takes the next job; long
payloads travel in a memory file with their packet. Answers leave on a pipe per worker. Standard library only.
"""

import struct

REQUEST = struct.Struct("!QddIIIII")
"""Number, CPU and wall seconds, MB of memory, KB of output and of results, bytes of the payload and of the peer's."""
EVENT = struct.Struct("!BQBi?ddIII")
"""Kind, the job's number, end, status, whether it idled, CPU and wall seconds, peak KB, bytes of records and of log,
which follow."""
GREETING, TAKEN, ANSWER = range(3)
"""Kinds of event: the worker has greeted (records: its facts, JSON); it began a job; the job has ended."""
ENDS = ("exit", "cpu", "wall", "memory", "output", "unavailable")
INLINE = 1 << 15
"""Bytes of payload up to which a job is one packet."""
REFUSED_EXIT = 71
"""Exit code of a worker whose level this machine refuses."""
