#!/usr/bin/env bash
# Set-up shared by the scripts: Debian packages, a virtual environment, the build. Sourced, from the top of the checkout.
# Each step says what it does and is skipped in a moment when it has been done.

say() { printf '\033[1m== %s\033[0m\n' "$*"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 1; fi
}

# need PACKAGE 'what is lost without it' ... : installs what is missing, and says what could not be. After that folders are
# configured again.
need() {
  local missing=() lost=()
  while [ $# -gt 0 ]; do
    if ! dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; then missing+=("$1"); lost+=("$2"); fi
    shift 2
  done
  [ ${#missing[@]} = 0 ] && return 0
  if ! command -v apt-get >/dev/null; then
    say "not a Debian system; please install: ${missing[*]}"; return 0
  fi
  say "installing ${missing[*]}"
  new_packages=1
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -q >/dev/null 2>&1 || say "the package lists could not be refreshed (no root, no sudo or no network)"
  if ! as_root apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null 2>&1; then
    local i
    for i in "${!missing[@]}"; do
      as_root apt-get install -y -q --no-install-recommends "${missing[$i]}" >/dev/null 2>&1 ||
        say "could not install ${missing[$i]}: ${lost[$i]}"
    done
  fi
}

need_packages() {
  need gcc "nothing can be built" libc6-dev "nothing can be built" pkg-config "nothing can be built" \
    libsqlite3-dev "nothing can be built (the disk cache)" libxxhash-dev "nothing can be built (hashes)" \
    python3-dev "the Python package" python3-venv "the virtual environment, so everything" \
    llvm-19-dev "native code: the interpreter runs everything, several times slower" \
    libopenblas0-pthread "OpenBLAS: matrix products on the CPU run in kernels of their own, several times slower" \
    "$@"
}

# The interpreter whose headers are installed, so that a python3 found first in PATH without them does no harm.
python_for_venv() {
  local p
  for p in python3 /usr/bin/python3; do
    "$p" -c 'import sys, sysconfig, os, venv, ensurepip
sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))))' \
      2>/dev/null && { echo "$p"; return; }
  done
  echo python3
}

# need_venv PACKAGE... : .venv with these from PyPI
need_venv() {
  if [ ! -x .venv/bin/python ]; then say "making .venv"; "$(python_for_venv)" -m venv .venv; fi
  local p missing=()
  for p in "$@"; do grep -qxF -- "$p" .venv/nvm-packages 2>/dev/null || missing+=("$p"); done
  if [ ${#missing[@]} != 0 ]; then
    say "installing from PyPI: ${missing[*]}"
    .venv/bin/python -m pip install -q --disable-pip-version-check "${missing[@]}"
    printf '%s\n' "${missing[@]}" >>.venv/nvm-packages
  fi
  PATH="$PWD/.venv/bin:$PATH"
}

build() { # build FOLDER [meson options]; targets='a b': these instead of all
  local dir=$1; shift
  if [ ! -e "$dir/build.ninja" ]; then
    say "configuring $dir"
    meson setup "$dir" --wrap-mode=nodownload "$@" >"$dir.log" 2>&1 || { cat "$dir.log"; return 1; }
    mv "$dir.log" "$dir/setup.log"
  elif [ -n "${new_packages:-}" ]; then # what was not there when the folder was configured is found now
    say "configuring $dir again"
    meson setup --reconfigure "$dir" "$@" >"$dir/setup.log" 2>&1 || { cat "$dir/setup.log"; return 1; }
  fi
  say "building"
  # shellcheck disable=SC2086
  ninja -C "$dir" -j "$(nproc)" ${targets:-} >"$dir/build.log" 2>&1 || { tail -n 60 "$dir/build.log"; return 1; }
}
