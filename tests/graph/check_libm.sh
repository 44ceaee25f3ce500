#!/bin/sh
# The interpreter's arithmetic is its own on every CPU: no object of lib/graph/frag*.c may ask for a function of libm.
# check_libm.sh [source root]; CC and CFLAGS as usual.
set -eu
root=${1:-$(dirname "$0")/../..}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
for level in -O2 -O3; do
  for src in "$root"/lib/graph/frag*.c; do
    obj=$dir/$(basename "$src" .c).o
    ${CC:-cc} -std=gnu11 $level -ffp-contract=off -D_GNU_SOURCE ${CFLAGS:-} -I"$root/lib" -I"$root/include" -c "$src" -o "$obj"
    found=$(nm -u "$obj" | awk '{print $2}' | grep -xE '(fma|sqrt|rint|nearbyint|round|roundeven|floor|ceil|trunc|fabs|copysign|ldexp|frexp|scalbn|fmod|exp|log|sin|cos|pow)[fl]?|l?lrint[fl]?|__(add|sub|mul|div)[sdt]f3|__(extend|trunc|fix|float).*[fi]2?|sqrtf' || true)
    [ -z "$found" ] || { echo "$(basename "$src") $level needs:" $found; bad=1; }
  done
done
exit $bad
