"""Operations that a CUDA device refuses or delays, by name. `python device_rules.py`: print as JSON the faults that the rules found.

Run with pretended devices by test_pretended_devices.py. With a GPU it runs as it is.
"""

import json
from collections.abc import Callable

import torch
from torch.nn.functional import embedding

DEVICE = torch.device("cuda:0")


def mixed_devices() -> None:
    torch.ones(2, device=DEVICE) + torch.ones(2)


def ids_of_the_host() -> None:
    embedding(torch.tensor([1]), torch.ones(4, 2, device=DEVICE))


def numpy() -> None:
    torch.ones(2, device=DEVICE).numpy()


def generator_of_the_host() -> None:
    torch.rand(2, device=DEVICE, generator=torch.Generator())


def beyond_memory() -> None:
    held = [torch.empty(2**30, dtype=torch.uint8, device=DEVICE) for _ in range(200)]
    del held


def absent_device() -> None:
    torch.ones(1, device="cuda:7")


def pinned_device_memory() -> None:
    torch.ones(2, device=DEVICE).pin_memory()


def scalar_of_the_host() -> None:
    """Allowed."""
    assert (torch.ones(2, device=DEVICE) * torch.tensor(2.0)).tolist() == [2.0, 2.0]


def own_generator() -> None:
    """Allowed, and repeatable."""
    drawn = [torch.rand(3, device=DEVICE, generator=torch.Generator(DEVICE).manual_seed(5)).tolist() for _ in range(2)]
    assert drawn[0] == drawn[1]


def gradients() -> None:
    """Allowed: the backward pass runs on the device."""
    weight = torch.ones(3, 3, device=DEVICE, requires_grad=True)
    (weight @ weight).sum().backward()
    assert weight.grad.device == DEVICE and weight.grad.tolist() == [[6.0] * 3] * 3


RULES: tuple[Callable[[], None], ...] = (
    # First: the thread of a backward pass still drops its tensors when the pass has ended, and aborts the process if Python ends meanwhile.
    gradients,
    mixed_devices,
    ids_of_the_host,
    numpy,
    generator_of_the_host,
    beyond_memory,
    absent_device,
    pinned_device_memory,
    scalar_of_the_host,
    own_generator,
)


def main() -> None:
    found = {}
    for rule in RULES:
        try:
            rule()
        except Exception as fault:
            found[rule.__name__] = f"{type(fault).__name__}: {fault}"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
