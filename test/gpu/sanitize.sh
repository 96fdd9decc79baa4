#!/usr/bin/env bash
# sanitize.sh FOLDER [JOBS]: NVIDIA's compute-sanitizer over kernels of every schedule (schedules.lf), in both modes. FOLDER holds
# bin/lfuser-run. Needs an NVIDIA GPU. Prints what is found and closes with "N passed, N failed"; 77 without compute-sanitizer.
set -euo pipefail
root=$1 jobs=${2:-4}
cd "$(dirname "${BASH_SOURCE[0]}")"
command -v compute-sanitizer > /dev/null || exit 77
export LFUSER_CACHE=off root
logs=$(mktemp -d)
export logs
trap 'rm -rf "$logs"' EXIT

# fusion, then its arguments: of extents that fill a row's threads and not, that one block takes and several.
runs=(
  'scans x=rand(3,9001) y=rand(3,9001)' 'scans x=rand(600,70) y=rand(600,70)'
  'sorts x=rand(3,9001) y=rand(3,9001)' 'sorts x=rand(70,40) y=rand(70,40)'
  'products x=rand(130,70) y=rand(70,140) h=rand(2,130,70) w=rand(2,70,140)'
  'products x=rand(128,64) y=rand(64,128) h=rand(2,128,64) w=rand(2,64,128)'
  'rows x=rand(5,70001) h=rand(5,70001) w=rand(70001)' 'rows x=rand(300,8192) h=rand(300,8192) w=rand(8192)'
  'rows x=rand(140,32768) h=rand(140,32768) w=rand(32768)' 'rows x=rand(70,33) h=rand(70,33) w=rand(33)'
  'columns x=rand(9001,130) h=rand(9001,130)' 'columns x=rand(70,4096) h=rand(70,4096)'
  'norm_backward x=rand(4200,256) w=rand(256) g=rand(4200,256)' 'norm_backward x=rand(300,8192) w=rand(8192) g=rand(300,8192)'
  'elements x=rand(256,512) y=rand(512,256) h=rand(256,512) k=rand(512)'
  'elements x=rand(33,71) y=rand(71,33) h=rand(33,71) k=rand(71)'
  'indexed x=rand(300,70) i=rand(300)' 'indexed x=rand(40,1024) i=rand(40)'
)

# one TOOL MODE RUN
one() {
  local tool=$1 mode=$2 words=() args=() a log
  read -ra words <<< "$3"
  for a in "${words[@]:1}"; do args+=(--arg "$a"); done
  log=$(mktemp -p "$logs")
  if compute-sanitizer --tool "$tool" --error-exitcode 9 "$root/bin/lfuser-run" schedules.lf --device=cuda --math="$mode" \
    --fusion="${words[0]}" "${args[@]}" --stats > "$log" 2>&1; then
    echo ok
  else
    echo "$tool $mode: $3"
    grep -a '^=========\|^lfuser-run' "$log" | head -n 20
    echo bad
  fi
}
export -f one

out=$(for tool in memcheck racecheck synccheck; do
  for mode in exact fast; do
    for run in "${runs[@]}"; do printf '%s\0%s\0%s\0' "$tool" "$mode" "$run"; done
  done
done | xargs -0 -n 3 -P "$jobs" bash -c 'one "$@"' _)
grep -v '^ok$\|^bad$' <<< "$out" || true
passed=$(grep -c '^ok$' <<< "$out" || true) failed=$(grep -c '^bad$' <<< "$out" || true)
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
