#!/usr/bin/env bash
# Fails, with the lines, where a word that docs/glossary.md has replaced comes back: retired.txt, one pattern a line,
# each matched as a whole word. Records of past runs (benchmarks/results, docs/notes) keep the words of their time.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/../..}" || exit 2
found=$(grep -rnwEf "$here/retired.txt" lib include bindings tests examples benchmarks docs scripts README.md \
  meson.build \
  --include='*.'{c,h,def,cu,inc,frag,kir,graph,py,sh,md} --include=meson.build \
  --exclude=retired.txt --exclude-dir={results,notes,__pycache__} | cut -c1-160)
[ -z "$found" ] && exit 0
printf 'words that docs/glossary.md has replaced:\n%s\n' "$found"
exit 1
