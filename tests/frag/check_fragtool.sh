#!/usr/bin/env bash
# The bench for fragments does what docs/how-it-works/fragments.md says of it.  check_fragtool.sh FRAGTOOL SOURCE
set -uo pipefail
tool=$(realpath "$1")
cd "$2/lib/frag/functions" || exit 2
bad=0
gives() { # pattern, command...
  local out
  out=$("$tool" ./*.frag -- "${@:2}" 2>&1) && grep -qE "$1" <<<"$out" && return
  printf '%s: no %s in\n%s\n' "${*:2}" "$1" "$out"
  bad=1
}
gives '^0\.5 .*-> 1\.6487212' eval exp f32 0.5
gives '# [0-9]+ instructions, cost [0-9]+, rare' print exp f32
gives '^0\.25 .*-> 1\.2840254' range exp f32 0 1 5
gives '^16777216 values, .* 0 differ where not rare$' compare exp f64
if "$tool" ./*.frag -- eval no_such_function f32 0.5 >/dev/null 2>&1; then
  echo 'a function that there is not is evaluated'
  bad=1
fi
exit $bad
