#!/usr/bin/env bash
# A C user's first steps with an installed library: meson install into a folder of its own; then every example, by the
# line in its head and by a strict compiler, where only this library's pkg-config file is to be found; and run.
#   check_install.sh BUILD SOURCE
set -euo pipefail
build=$1 source=$2 stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
DESTDIR="$stage" meson install -C "$build" --no-rebuild --tags runtime,devel >/dev/null
pc=$(dirname "$(find "$stage" -name nvm.pc)") prefix=$(sed -n 's/^prefix=//p' "$pc/nvm.pc")
sed -i "s|^prefix=.*|prefix=$stage$prefix|" "$pc/nvm.pc"
export PKG_CONFIG_LIBDIR="$pc" PKG_CONFIG_PATH=  # not where sqlite3's or xxhash's may be
lib=$(dirname "$(find "$stage" -name libnvm.so)")
export LD_LIBRARY_PATH="$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" NVM_CACHE_DIR=off
for example in "$source"/examples/c/*.c; do
  name=$(basename "$example" .c)
  line=$(grep -o "cc $name\.c .*" "$example" | sed 's| *\*/$||')
  cp "$example" "$stage"
  (cd "$stage" && eval "$line" && ./a.out >/dev/null) || { echo "$name: '$line' fails"; exit 1; }
  # shellcheck disable=SC2046
  cc -std=c11 -Wall -Wextra -Werror "$example" -o "$stage/$name" $(pkg-config --cflags --libs nvm) -lm
  "$stage/$name" >/dev/null
done
[ ! -e "$lib/libnvm_llvm.so" ] || NVM_TIER=1 NVM_VERBOSE=2 "$stage/pipeline" 2>&1 | grep compiled >/dev/null
