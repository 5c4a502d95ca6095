#!/bin/sh
# Instructions that parts of a fit execute, where wall time is too noisy: benchmarks/callgrind.sh [NAME…]. Needs valgrind.
# Valgrind knows no AVX-512: code that chooses its instructions at run time takes the AVX2 road here.
set -e
bench="${CARGO_TARGET_DIR:-target}/release/examples/bench_micro"
[ $# -gt 0 ] || set -- exp gram bank combine combine_low forms forms_low smo bound nearest
echo "| part | instructions |"
echo "|---|---|"
for part in "$@"; do
  count=$(valgrind --tool=callgrind --toggle-collect='*measured*' --callgrind-out-file=/dev/null \
    "$bench" "$part" once 2>&1 | sed -n 's/.*Collected : //p')
  echo "| $part | $count |"
done
