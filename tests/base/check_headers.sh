#!/usr/bin/env bash
# Fails when a public header does not compile on its own, as strict C11 and as C++, or an inner header not as C.
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 2
cc=${CC:-cc} cxx=${CXX:-c++}
strict=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only)
command -v "${cxx%% *}" >/dev/null || cxx=
bad=0
try() { # compiler with options, header as included
  printf '#include "%s"\n' "$2" | $1 "${strict[@]}" - || { echo "  $2 does not stand alone: $1"; bad=1; }
}
for header in include/nvm/*.h; do
  name=${header#include/}
  try "$cc -std=c11 -x c -Iinclude" "$name"
  [ -n "$cxx" ] && try "$cxx -std=c++11 -x c++ -Iinclude" "$name"
done
while read -r header; do
  grep -q 'include <llvm-c' "$header" && continue # needs LLVM's own headers
  try "$cc -std=gnu11 -D_GNU_SOURCE -Wno-unused-function -x c -Iinclude -Ilib" "${header#lib/}"
done < <(find lib -name '*.h' | sort)
exit $bad
