#!/usr/bin/env bash
# Fails, with the offending lines, when an include points against the direction of the rooms, a vendor's header or
# getenv is outside its room, a binding looks inside lib, a file of lib has 900 lines or more, or a line has more than
# 120 columns (kernel texts excepted: a schedule is one line of them).
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 2
rooms='base frag graph kernel fusion codegen dispatch autotune api'
bad=0
report() { # title, lines
  [ -z "$2" ] && return
  printf '%s\n%s\n' "$1" "$2" | sed '2,$s/^/  /'
  bad=1
}

# Rooms to the right of each one are out of its sight.
seen=
for room in $rooms; do
  seen="$seen $room"
  right=
  for other in $rooms; do case " $seen " in *" $other "*) ;; *) right="$right|$other" ;; esac; done
  [ -d lib/$room ] || continue
  [ -n "$right" ] && report "lib/$room includes a room to its right:" \
    "$(grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<](${right#|})/" lib/$room)"
  report "lib/$room includes something that is neither \"room/file\" nor a system header:" \
    "$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' lib/$room | grep -vE "\"(${rooms// /|}|nvm)/")"
done
report 'include/nvm includes a room:' "$(grep -rnE "#[[:space:]]*include[[:space:]]*[\"<](${rooms// /|})/" include)"
inner="#[[:space:]]*include[[:space:]]*[\"<](\.\./lib|lib|${rooms// /|})/"
report 'bindings, examples or benchmarks look inside lib:' \
  "$(grep -rnE --include='*.[ch]' "$inner" bindings examples benchmarks 2>/dev/null)"

only() { # pattern, the folders where it may stand, title
  local where
  where=$(grep -rnE --include='*.[ch]' "$1" lib bindings include | grep -vE "^($2)/")
  report "$3" "$where"
}
inc='#[[:space:]]*include[[:space:]]*[<"]'
only '(^|[^a-zA-Z0-9_])(secure_)?getenv[[:space:]]*\(' 'lib/base' 'getenv outside lib/base:'
only "${inc}sqlite3" 'lib/base' 'sqlite outside lib/base:'
only "${inc}(llvm-c|nvrtc)" 'lib/codegen' 'a compiler outside lib/codegen:'
only "${inc}(cuda|cublas|cufft|cusolver|nccl|cblas|lapacke)" 'lib/dispatch' 'a device library outside lib/dispatch:'
only "${inc}Python\.h" 'bindings' 'Python outside bindings:'

report 'files of 900 lines or more:' "$(find lib -name '*.[ch]' -o -name '*.def' -o -name '*.frag' | xargs wc -l |
  awk '$2 != "total" && $1 >= 900')"
report 'lines of more than 120 columns:' "$(grep -rnE '.{121}' lib include bindings tests examples \
  --include='*.'{c,h,cu,def,frag,py,sh} --include=meson.build | cut -c1-120)"
exit $bad
