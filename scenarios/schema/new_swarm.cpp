#include "scenarios/schema/new_swarm.hpp"

#include "scenarios/schema/values.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

namespace {

const workload_definition& workload_of(const new_swarm& what) {
  return what.workload != nullptr ? *what.workload : workloads().standard();
}

std::string at(const new_swarm& what, unsigned beyond) {
  const bool bare = what.host.find(':') == std::string::npos;
  return fmt::format("{}:{}", bare ? what.host : "[" + what.host + "]", what.port + beyond);
}

/// The options with which this computer listens at a port. A name or an outer address may belong to
/// a router, so the host listens on all sides.
std::string listens(const new_swarm& what, unsigned beyond) {
  if (is_loopback(what.host)) return "--listen " + at(what, beyond);
  return fmt::format("--listen 0.0.0.0:{} --advertise {}", what.port + beyond, at(what, beyond));
}

/// Steps of small problems take milliseconds, and a newcomer would never catch up with them. So
/// hosts compute such problems as slowly as the scenario's device.
std::string pace(const new_swarm& what) {
  return workload_of(what).learns_text ? "" : " --pace";
}

/// The line of the scenario with which each computer keeps checkpoints. A workload of sizes alone
/// has nothing to keep.
std::string keeping(const new_swarm& what) {
  if (!workload_of(what).has_numbers) return "";
  return fmt::format("  checkpoint_every: {}       # steps; ./start goes on from the last one\n",
                     std::max<std::uint64_t>(10, what.steps / 50));
}

/// In single quotes for a shell.
std::string for_shell(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

} // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string to_yaml(const new_swarm& what) {
  const workload_definition& work = workload_of(what);
  std::string out = fmt::format(
      "# A swarm of real computers: docs/cluster.md. Every computer has this same file.\n"
      "#   ./start                starts this computer's part\n"
      "#   shoal run {0}.yaml     simulates the same swarm\n\n"
      "name: {1}\n"
      "seed: 1\n"
      "stop_time: 8760h\n\n"
      "network: {{default_delay: 20ms, detection_time: 10s}}\n\n"
      "devices:\n"
      "  laptop: {{samples_per_second: 20, jitter: 10%, step_time: 20ms}}\n\n"
      "peers:                       # home-0 is this computer; friends join as more of them\n"
      "  home: {{count: {2}, down: 50Mbit, up: 10Mbit, device: laptop}}\n\n",
      what.name, quoted(what.name), what.friends + 1);
  if (work.learns_text)
    out += fmt::format("data:\n"
                       "  files: [{}]   # only the host with the data reads them\n"
                       "  holdout: 10%\n\n",
                       quoted(what.text));
  out += fmt::format("workload:\n  kind: {}\n{}\n"
                     "training:\n"
                     "  target_batch: {}           # samples that all gather for one step\n"
                     "  micro_batch: 4\n"
                     "  epochs: {}\n"
                     "{}"
                     "  optimizer: {}\n\n"
                     "averaging:\n"
                     "  group_size: {}\n"
                     "  matchmaking_time: 3s\n"
                     "  round_timeout: 1min\n"
                     "  sender_timeout: 10s\n\n"
                     "record: {{events: rounds, metrics_interval: 2s}}\n",
                     work.name, work.starter.options, 64 * (what.friends + 1), what.steps,
                     keeping(what), work.starter.optimizer,
                     std::max<std::uint64_t>(256, what.friends + 1));
  return out;
}

std::string start_script(const new_swarm& what, const std::string& program) {
  return fmt::format(
      R"bash(#!/usr/bin/env bash
# Starts this computer's part of the swarm '{0}': the host with the data, one that trains, and the
# page. Ctrl-C ends them in good order. The next start goes on with what other computers have, or from
# the last checkpoint if no other computer is there.
set -u
cd "$(dirname "$0")" || exit 1
shoal=${{SHOAL:-{1}}}
mkdir -p out log
# Each life of a host has a directory of its own.
life() {{
  local n=1 d=out/$1
  while [ -e "$d" ]; do n=$((n + 1)) d=out/$1.$n; done
  echo "$d"
}}
pids=()
end() {{
  trap - INT TERM EXIT
  [ ${{#pids[@]}} -gt 0 ] && kill "${{pids[@]}}" 2>/dev/null
  wait
  exit "${{1:-0}}"
}}
trap 'end 130' INT TERM
trap 'end $?' EXIT
host() {{ # name, options
  local name=$1 d
  shift
  d=$(life "$name")
  "$shoal" node {0}.yaml{7} --name "$name" --keys "keys/$name" --join {2} --join {3} "$@" --out "$d" --quiet >>"log/$name.txt" 2>&1 &
  pids+=($!)
  for _ in $(seq 300); do
    [ -e "$d/run.yaml" ] && return
    kill -0 "${{pids[-1]}}" 2>/dev/null || break
    sleep 0.2
  done
  echo "$name did not start; the last lines of log/$name.txt:" >&2
  tail -n 5 "log/$name.txt" >&2
  exit 1
}}
shard() {{ host shard-0 {4} --relay 100GiB; }}
# The checkpoint with the most steps that this computer has: sets last and steps.
find_last() {{
  local file n
  last= steps=0
  for file in out/home-0*/final.ckpt out/home-0*/checkpoints/epoch-*.ckpt; do
    [ -e "$file" ] || continue
    n=${{file##*/epoch-}} n=${{n%.ckpt}}
    [ "${{file##*/}}" = final.ckpt ] && n=$(sed -n 's/^ *"epochs": *\([0-9]*\).*/\1/p' "${{file%/*}}/summary.json")
    [ "${{n:-0}}" -gt "$steps" ] && last=$file steps=$n
  done
}}
others() {{
  "$shoal" status --join {2} --keys keys/shard-0 --json 2>>log/status.txt | grep -E '^  "' | grep -qvE '"(shard-0|home-0)"'
}}
find_last
shard
if [ -n "$last" ]; then
  echo "looking ten seconds for other computers of the swarm"
  alone=yes
  for _ in $(seq 10); do
    sleep 1
    others && alone= && break
  done
  if [ -z "$alone" ]; then
    echo "other computers are there: going on with their model"
  else
    kill "${{pids[0]}}"
    wait "${{pids[0]}}"
    pids=()
    cp "$last" "start-$steps.ckpt" || exit 1
    sed -i -e '/^  start_from:/d' -e "s/^training:\$/training:\n  start_from: start-$steps.ckpt   # every computer needs this file/" {0}.yaml || exit 1
    n=1
    while [ -e "earlier.$n" ]; do n=$((n + 1)); done
    mv out "earlier.$n" && mkdir out || exit 1
    echo "no other computer is there: going on from $last, step $steps"
    echo "friends need the new {0}.yaml and start-$steps.ckpt, in place of their {0}.yaml"
    shard
  fi
fi
host home-0 {5}
"$shoal" serve out --listen {6} --join {2} --keys keys/home-0 >log/page.txt 2>log/page-errors.txt &
page=$!
pids+=("$page")
for _ in $(seq 50); do
  grep -q http log/page.txt && break
  kill -0 "$page" 2>/dev/null || {{ tail -n 3 log/page-errors.txt >&2; exit 1; }}
  sleep 0.2
done
echo "the swarm runs; its page: $(cat log/page.txt)"
echo "friends: send them invite.md and {0}.yaml. Ctrl-C ends this computer's part"
wait "${{pids[0]}}" "${{pids[1]}}"
echo "all steps are done, or both hosts have ended: log/ says why. The page stays until Ctrl-C"
wait "$page"
)bash",
      what.name, for_shell(program), at(what, 0), at(what, 1), listens(what, 0), listens(what, 1),
      what.page, pace(what));
}

std::string invitation(const new_swarm& what) {
  return fmt::format(
      R"md(# Train {0} with us

Your computer can help to train a model together with ours. It computes while you let it, and you may
stop and come back at any time. The file `{0}.yaml` comes with this text.

1. Install Shoal (docs/install.md of its sources). This prints its version:

   ```sh
   shoal version
   ```

2. Put `{0}.yaml` into an empty folder, and open a terminal there. Choose a name for your computer, of
   letters, digits and '-', and write it in place of NAME in all lines below.

3. Make a key, which stays on your computer:

   ```sh
   shoal keys request NAME -o keys/NAME
   ```

   Send us the file `keys/NAME/NAME.csr`. It is no secret.

4. We send three files back in a folder `answer-NAME`. Put them beside your key:

   ```sh
   cp answer-NAME/* keys/NAME/
   ```

5. Take part. Ctrl-C leaves in good order, and the same line comes back:

   ```sh
   shoal node {0}.yaml{4} --name NAME --group home --outbound-only --join {1} --join {2} --keys keys/NAME --out out/NAME
   ```

   `--dashboard :8081` at its end shows what your computer sees, in a browser at 127.0.0.1:8081.

When we begin again from a checkpoint, we send a new `{0}.yaml` with a file `start-N.ckpt`. Put both into
the folder.
{3})md",
      what.name, at(what, 0), at(what, 1),
      is_loopback(what.host)
          ? "\nThis swarm listens on one computer alone, so only its users can take part.\n"
          : "",
      pace(what));
}

std::string owner_notes(const new_swarm& what) {
  return fmt::format(
      R"md(# The swarm {0}

| file | contents |
|---|---|
| `{0}.yaml` | the scenario, the same on every computer |
| `start` | starts this computer's part and the page; Ctrl-C ends it |
| `invite.md` | the text for friends; send `{0}.yaml` with it |
| `moderator/` | the key that admits computers: keep a copy, and give it to nobody |
| `keys/` | the keys of this computer's hosts |
| `out/`, `log/` | run directories and messages of the hosts |

A friend sends a request, here `NAME.csr`. Make sure that it came from the friend, and answer it:

```sh
shoal keys admit NAME.csr --moderator moderator -o answer-NAME
```

Send the folder `answer-NAME` back. The page is at http://{1}/, and its part 'How to join' has the same
steps. The page reads what the hosts in `out/` wrote, and asks the swarm who else is there. A friend that cannot
be dialled has a row without figures, and counts in the rounds.
`shoal status --join {3} --keys keys/home-0` prints the same.

`./start` goes on with the model of the computers that train meanwhile. When none is there, it goes on
from the last checkpoint, and says which two files the friends then need. {2}
)md",
      what.name, what.page,
      is_loopback(what.host)
          ? fmt::format("Friends on other computers cannot reach {}: begin again with --address "
                        "HOST:PORT.",
                        at(what, 0))
          : fmt::format("Friends reach this computer at {} and {}: a router has to pass both "
                        "ports on.",
                        at(what, 0), at(what, 1)),
      at(what, 0));
}

} // namespace shoal::scenarios
