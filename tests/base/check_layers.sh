#!/usr/bin/env bash
# Fails, with the offending lines, when an include points against the order of the layers, a vendor's header or getenv
# is outside its layer, a binding looks inside lib, a file of lib has 900 lines or more, or a line has more than 120
# columns (kernel texts excepted: a schedule is one line of them).
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 2
bad=0
report() { # title, lines
  [ -z "$2" ] && return
  printf '%s\n%s\n' "$1" "$2" | sed '2,$s/^/  /'
  bad=1
}

# What the files of a folder see beside their own folder.
sees() {
  local planned='base frag graph kernel fusion'
  local run="$planned codegen codegen/interp codegen/llvm codegen/cuda dispatch dispatch/cuda dispatch/solve"
  case $1 in
    base) ;;
    frag) echo base ;;
    graph | kernel) echo base frag ;;
    fusion) echo base frag graph kernel ;;
    codegen) echo base frag kernel ;;
    codegen/*) echo base frag kernel codegen ;; # and no other back end
    dispatch | dispatch/*) echo "$run" ;;
    autotune) echo "$run" ;;
    api) echo "$run autotune" ;;
    *) return 1 ;;
  esac
}
layers='base|frag|graph|kernel|fusion|codegen|dispatch|autotune|api'
quoted='^[[:space:]]*#[[:space:]]*include[[:space:]]*"'
while read -r folder; do
  if ! seen=$(sees "$folder"); then
    report 'a folder that has no place in the order of the layers:' "lib/$folder"
    continue
  fi
  may="(nvm|$folder${seen:+|}${seen// /|})/[^/\"]+\""
  report "lib/$folder includes something that it does not see:" \
    "$(grep -nHE "$quoted" "lib/$folder"/*.[ch] | grep -vE "include[[:space:]]*\"$may")"
done < <(find lib -name '*.[ch]' -printf '%P\n' | sed 's|/[^/]*$||' | sort -u)
report 'include/nvm includes a layer:' "$(grep -rnE "#[[:space:]]*include[[:space:]]*[\"<]($layers)/" include)"
inner="#[[:space:]]*include[[:space:]]*[\"<](\.\./lib|lib|$layers)/"
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
only "${inc}llvm-c" 'lib/codegen/llvm' 'LLVM outside lib/codegen/llvm:'
only "${inc}nvrtc" 'lib/codegen/cuda' 'NVRTC outside lib/codegen/cuda:'
only "${inc}(cuda|cublas|cufft|cusolver|nccl|cblas|lapacke)" 'lib/dispatch' 'a device library outside lib/dispatch:'
only "${inc}Python\.h" 'bindings' 'Python outside bindings:'

report 'files of 900 lines or more:' \
  "$(find lib \( -name '*.[ch]' -o -name '*.def' -o -name '*.frag' \) -exec wc -l {} + |
  awk '$2 != "total" && $1 >= 900')"
report 'lines of more than 120 columns:' "$(grep -rnE '.{121}' lib include bindings tests examples \
  --include='*.'{c,h,cu,def,frag,py,sh} --include=meson.build | cut -c1-120)"
exit $bad
