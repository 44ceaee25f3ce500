#!/usr/bin/env bash
# The bench for kernel texts does what docs/contributing/plans-and-texts.md says.  check_texttool.sh TEXTTOOL SOURCE
set -uo pipefail
tool=$(realpath "$1")
cd "$2/tests/kernel/texts" || exit 2
bad=0
gives() { # status, pattern, arguments...
  local out status
  out=$("$tool" "${@:3}" 2>&1)
  status=$?
  [ $status = "$1" ] && grep -qE "$2" <<<"$out" && return
  printf '%s: status %s, no %s in\n%.600s\n' "${*:3}" $status "$2" "$out"
  bad=1
}
broken=$(mktemp)
trap 'rm -f "$broken"' EXIT
sed 's/order(64, 1)/order(63, 1)/' layernorm.kir >"$broken"
gives 0 '^cpu512: legal$' layernorm.kir
gives 0 '^ *schedule gpu1' layernorm.kir print gpu1
gives 0 '^// schedule gpu1$' layernorm.kir cuda gpu1
gives 1 'two powers of two' "$broken" check
gives 1 'no such schedule' layernorm.kir check nothing
gives 2 '^texttool FILE.kir' no_such_file.kir
exit $bad
