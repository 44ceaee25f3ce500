#!/usr/bin/env bash
# Every mutex of the library is a lock with a rank: none is written out beside lib/base/lock.[ch], each row of
# lock_order.def has a lock, and nothing else registers a handler of forks.
set -euo pipefail
cd "$1"
bad=0
complain() { echo "$*"; bad=1; }
others=$(grep -rnE 'pthread_(mutex|rwlock|spin)|PTHREAD_(MUTEX|RWLOCK)|pthread_atfork' lib --include='*.[ch]' |
  grep -v '^lib/base/lock\.[ch]:' || true)
[ -z "$others" ] || complain "a lock beside base/lock.h:"$'\n'"$others"
rows=$(sed -n 's/^LOCK(\([A-Z_]*\),.*/\1/p' lib/base/lock_order.def)
[ "$(wc -w <<<"$rows")" -ge 10 ] || complain "the rows of lock_order.def cannot be read"
for row in $rows; do
  grep -rqE "(NVB_LOCK|NVD_LRU)\($row\b" lib --include='*.c' || complain "lock_order.def: no lock has the rank $row"
done
exit "$bad"
