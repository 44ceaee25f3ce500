#!/bin/sh
# The interpreter's arithmetic is its own on every CPU: no object of lib/frag may ask for a function of libm.
# check_libm.sh [source root]; CC and CFLAGS as usual.
set -eu
root=${1:-$(dirname "$0")/../..}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
names='fma|sqrt|rint|nearbyint|round|roundeven|floor|ceil|trunc|fabs|copysign|ldexp|frexp|scalbn|fmod'
names="($names|exp|log|sin|cos|pow)[fl]?"
names="$names|ll?rint[fl]?|__(extend|trunc|fix|fixuns|float|floatun)[a-z]+[0-9]?"
for src in "$root"/lib/frag/*.c; do
  obj=$dir/$(basename "$src" .c).o
  # shellcheck disable=SC2086 # options
  ${CC:-cc} -std=gnu11 -O2 -ffp-contract=off -D_GNU_SOURCE ${CFLAGS:-} \
    -I"$root/lib" -I"$root/include" -c "$src" -o "$obj"
  found=$(nm -u "$obj" | awk '{print $2}' | grep -xE "$names" || true)
  [ -z "$found" ] || { echo "$(basename "$src") needs: $(echo "$found" | tr "\n" " ")"; bad=1; }
done
exit $bad
