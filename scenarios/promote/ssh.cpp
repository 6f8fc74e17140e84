#include "scenarios/promote/deployment.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {

namespace {

constexpr std::string_view launcher = R"~(#!/usr/bin/env bash
# Runs the swarm '@NAME@' on the hosts at the end of this file, over ssh. Written by 'shoal promote', to be read and changed.
#   ./launch keys MODERATOR  each host makes its own key, which stays there, and the moderator of that folder admits it
#   ./launch up [NODE...]    copies scenario.yaml and starts the nodes
#   ./launch status          asks the swarm; KEYS=DIR are the keys to ask with (operator)
#   ./launch logs NODE       what a node says
#   ./launch restart [NODE...]  one after another, each ended in good order and awaited: a rolling upgrade loses no epoch
#   ./launch down [NODE...]  ends the nodes in good order, and waits for that
#   ./launch fetch           copies the run directories into out/; then: shoal compare prediction out
# Environment: SSH and SCP, what to use instead of ssh and scp, options included.
set -u
cd "$(dirname "$0")" || exit 1
program=@PROGRAM@            # on the hosts
shoal=${SHOAL:-@PROGRAM@}    # here
folder=@FOLDER@              # on the hosts, with one folder inside for each node
keys=${KEYS:-operator}
SSH=${SSH:-ssh -o BatchMode=yes -o ConnectTimeout=10}
SCP=${SCP:-scp -q -o BatchMode=yes -o ConnectTimeout=10}

say() { printf '%s\n' "$*" >&2; }
# Of a node's line in `nodes`: its fields, or who there is.
field() { awk -v node="$1" -v nr="$2" '$1 == node { print $nr; found = 1 } END { exit !found }' <<<"$nodes"; }
options() { awk -v node="$1" '$1 == node { $1 = $2 = $3 = ""; print }' <<<"$nodes"; }
all() { awk '{ print $1 }' <<<"$nodes"; }
chosen() {
  local node
  [ $# -gt 0 ] || { all; return; }
  for node; do field "$node" 1 || { say "there is no node '$node'; there are: $(all | tr '\n' ' ')"; return 1; }; done
}
# on NODE COMMAND: in its folder.
on() { $SSH -n -p "$(field "$1" 3)" "$(field "$1" 2)" "mkdir -p $folder/$1 && cd $folder/$1 && $2"; }
put() { $SCP -P "$(field "$1" 3)" "${@:2:$#-2}" "$(field "$1" 2):$folder/$1/${!#}"; }
get() { $SCP -r -P "$(field "$1" 3)" "$(field "$1" 2):$folder/$1/$2" "$3"; }
running() { on "$1" '[ -f pid ] && kill -0 "$(cat pid)" 2>/dev/null'; }

admit() {
  local node=$1 moderator=$2 work
  if on "$node" '[ -f keys/node.crt ]'; then say "$node: has keys"; return; fi
  work=$(mktemp -d) || return 1
  on "$node" "[ -d keys ] || $program keys request $node -o keys >/dev/null" &&
    get "$node" "keys/$node.csr" "$work/" &&
    "$shoal" keys admit "$work/$node.csr" --moderator "$moderator" -o "$work/answer" &&
    put "$node" "$work/answer/swarm.crt" "$work/answer/revoked.crl" "$work/answer/node.crt" keys/
  local failed=$?
  rm -rf "$work"
  return $failed
}

up() {
  local node=$1
  if running "$node"; then say "$node: is running"; return; fi
  on "$node" : && put "$node" scenario.yaml . &&
    on "$node" "{ nohup setsid $program node --scenario scenario.yaml @KEYS@ $(options "$node") --quiet --out out/$node-\$(date -u +%Y%m%dT%H%M%SZ) \
      >>log 2>&1 </dev/null & echo \$! >pid; sleep 1; kill -0 \$(cat pid) || { tail -n 5 log; exit 1; }; }" && say "$node: started"
}

down() {
  local node=$1
  on "$node" 'if [ -f pid ] && kill -TERM "$(cat pid)" 2>/dev/null; then
    for i in $(seq 120); do kill -0 "$(cat pid)" 2>/dev/null || { rm pid; exit 0; }; sleep 0.5; done; echo "it does not end" >&2; exit 1
  fi; rm -f pid' && say "$node: ended"
}

# Waits until a node that was started again trains, or serves data.
await() {
  local i
  for i in $(seq 120); do
    "$shoal" status --join "@FIRST@" @STATUS_KEYS@ 2>/dev/null | awk -v node="$1" '$1 == node && $3 ~ /computing|averaging|serving|following/ { found = 1 } END { exit !found }' && return
    sleep 1
  done
  say "$1: not back after 2 min; ./launch logs $1"
  return 1
}

nodes=$(sed '1,/^# NAME/d' "$(basename "$0")" | sed 's/^# //')
command=${1-}
[ $# -gt 0 ] && shift
failed=0
case $command in
  keys)
    [ $# = 1 ] || { say 'usage: ./launch keys MODERATOR'; exit 2; }
    for node in $(all); do admit "$node" "$1" || { say "$node: no keys"; failed=1; }; done ;;
  up | down)
    list=$(chosen "$@") || exit 2
    for node in $list; do $command "$node" & done
    for job in $(jobs -p); do wait "$job" || failed=1; done ;;
  restart)
    list=$(chosen "$@") || exit 2
    for node in $list; do down "$node" && up "$node" && await "$node" || exit 1; done ;;
  status) exec "$shoal" status --join "@FIRST@" @STATUS_KEYS@ ;;
  logs)
    list=$(chosen "$@") || exit 2
    for node in $list; do on "$node" 'cat log' || failed=1; done ;;
  fetch)
    mkdir -p out
    for node in $(all); do get "$node" 'out/*' out/ || { say "$node: nothing fetched"; failed=1; }; done ;;
  *) sed -n '2,/^# Env/s/^# \{0,1\}//p' "$(basename "$0")"; exit 2 ;;
esac
exit $failed

# NAME  SSH  PORT  OPTIONS OF THE NODE
)~";

} // namespace

std::vector<deployed_file> ssh_files(const deployment& what) {
  auto text = filled(launcher, {{"NAME", what.name},
                                {"PROGRAM", shell_word(what.program)},
                                {"FOLDER", "shoal-" + what.name},
                                {"KEYS", what.insecure ? "--insecure" : "--keys keys"},
                                {"STATUS_KEYS", what.insecure ? "--insecure" : "--keys \"$keys\""},
                                {"FIRST", meeting_points(what).front()}});
  for (const auto& host : what.hosts)
    text += fmt::format("# {} {} {} {}\n", host.name, host.ssh, host.ssh_port,
                        node_options_of(what, host));
  return {{"launch", std::move(text), true}};
}

} // namespace shoal::scenarios
