"""Where the YAML of the config groups lies: in the checkout, or inside the installed package."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def conf_directory() -> Path:
    """The absolute folder of the config groups.

    Raises:
        FileNotFoundError: neither place exists; the installation is broken.
    """
    installed, checkout = PACKAGE / "conf", PACKAGE.parent / "conf"
    for folder in (installed, checkout):
        if (folder / "config.yaml").is_file():
            return folder
    raise FileNotFoundError(f"no config.yaml in {installed} or {checkout}; reinstall rlvr_exp")
