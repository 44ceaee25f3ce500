#!/bin/sh
# The interpreter's arithmetic is its own on every CPU: no object of lib/frag may ask for a function of libm.
# check_libm.sh BUILD: the objects that a build has made.
set -eu
bad=0
objects=0
names='fma|sqrt|rint|nearbyint|round|roundeven|floor|ceil|trunc|fabs|copysign|ldexp|frexp|scalbn|fmod'
names="($names|exp|log|sin|cos|pow)[fl]?"
names="$names|ll?rint[fl]?|__(extend|trunc|fix|fixuns|float|floatun)[a-z]+[0-9]?"
for obj in "$1"/lib/*.p/frag_*.o; do
  [ -e "$obj" ] || continue
  objects=$((objects + 1))
  found=$(nm -u "$obj" | awk '{print $2}' | grep -xE "$names" || true)
  [ -z "$found" ] || { echo "$(basename "$obj") needs: $(echo "$found" | tr "\n" " ")"; bad=1; }
done
sources=$(find "$(dirname "$0")/../../lib/frag" -maxdepth 1 -name '*.c' | wc -l)
[ "$objects" = "$sources" ] || { echo "$1 has $objects objects of lib/frag, which has $sources sources"; bad=1; }
exit $bad
