#!/usr/bin/env bash
# A C user's first steps with an installed library: meson install into a folder of its own, pkg-config, compile, run.
#   check_install.sh BUILD SOURCE
set -euo pipefail
build=$1 source=$2 stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
DESTDIR="$stage" meson install -C "$build" --no-rebuild --tags runtime,devel >/dev/null
pc=$(dirname "$(find "$stage" -name nvm.pc)") prefix=$(sed -n 's/^prefix=//p' "$pc/nvm.pc")
flags=$(PKG_CONFIG_PATH="$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" \
  pkg-config --define-variable=prefix="$stage$prefix" --cflags --libs nvm)
lib=$(dirname "$(find "$stage" -name libnvm.so)")
export LD_LIBRARY_PATH="$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" NVM_CACHE_DIR=off
# shellcheck disable=SC2086
cc -std=c11 -Wall -Wextra -Werror "$source/examples/c/pipeline.c" -o "$stage/pipeline" $flags -lm
"$stage/pipeline"
[ ! -e "$lib/libnvm_llvm.so" ] || NVM_TIER=1 NVM_VERBOSE=2 "$stage/pipeline" 2>&1 | grep compiled >/dev/null
