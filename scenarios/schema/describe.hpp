// Every option of a scenario, named once: key, meaning, range. describe(visitor, struct) calls
//   v.field(key, member, meaning, rule)     for values, lists, structs and maps of structs
//   v.keyed(key, groups, meaning)           for a mapping kept as a vector in the file's order, key
//   = name v.kind(key, choice, kinds, meaning)     for the key that picks a registered kind; the
//   options of the kind stand beside this key v.action(fault)                         for the first
//   key of a fault, 'kill: machine'
// The reader, the YAML printer and the reference page are such visitors. Defaults are the members'
// initializers in scenario.hpp.
#pragma once

#include "actors/conduct/conducts.hpp"
#include "scenarios/schema/describe_churn.hpp"
#include "scenarios/schema/describe_security.hpp"
#include "scenarios/schema/lines.hpp"
#include "scenarios/schema/rule.hpp"
#include "scenarios/schema/scenario.hpp"

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace shoal::scenarios {

constexpr auto names_of(kernels::optimizer_kind) {
  using kernels::optimizer_kind;
  return std::array{enum_name<optimizer_kind>{optimizer_kind::sgd, "sgd"},
                    enum_name<optimizer_kind>{optimizer_kind::adamw, "adamw"},
                    enum_name<optimizer_kind>{optimizer_kind::lamb, "lamb"},
                    enum_name<optimizer_kind>{optimizer_kind::adamw8, "adamw8"},
                    enum_name<optimizer_kind>{optimizer_kind::lamb8, "lamb8"}};
}
constexpr auto names_of(kernels::codec) {
  using kernels::codec;
  return std::array{enum_name<codec>{codec::none, "none"},
                    enum_name<codec>{codec::float16, "float16"},
                    enum_name<codec>{codec::bfloat16, "bfloat16"},
                    enum_name<codec>{codec::uniform8, "uniform8"},
                    enum_name<codec>{codec::blockwise8, "blockwise8"},
                    enum_name<codec>{codec::size_adaptive, "size_adaptive"},
                    enum_name<codec>{codec::top_k, "top_k"}};
}
constexpr auto names_of(actors::attacker_knowledge) {
  using actors::attacker_knowledge;
  return std::array{enum_name<attacker_knowledge>{attacker_knowledge::colluders, "colluders"},
                    enum_name<attacker_knowledge>{attacker_knowledge::everybody, "everybody"}};
}
constexpr auto names_of(event_detail) {
  return std::array{enum_name<event_detail>{event_detail::all, "all"},
                    enum_name<event_detail>{event_detail::rounds, "rounds"},
                    enum_name<event_detail>{event_detail::none, "none"}};
}
constexpr auto names_of(export_kind) {
  return std::array{enum_name<export_kind>{export_kind::perfetto, "perfetto"},
                    enum_name<export_kind>{export_kind::tensorboard, "tensorboard"},
                    enum_name<export_kind>{export_kind::csv, "csv"},
                    enum_name<export_kind>{export_kind::openmetrics, "openmetrics"},
                    enum_name<export_kind>{export_kind::pcapng, "pcapng"}};
}

constexpr auto names_of(netem::jitter_shape) {
  using netem::jitter_shape;
  return std::array{enum_name<jitter_shape>{jitter_shape::uniform, "uniform"},
                    enum_name<jitter_shape>{jitter_shape::normal, "normal"},
                    enum_name<jitter_shape>{jitter_shape::pareto, "pareto"},
                    enum_name<jitter_shape>{jitter_shape::paretonormal, "paretonormal"}};
}
constexpr auto names_of(netem::transfer_model) {
  using netem::transfer_model;
  return std::array{enum_name<transfer_model>{transfer_model::max_min, "max_min"},
                    enum_name<transfer_model>{transfer_model::lv08, "lv08"},
                    enum_name<transfer_model>{transfer_model::tcp, "tcp"}};
}
constexpr auto names_of(netem::nat_class) {
  using netem::nat_class;
  return std::array{enum_name<nat_class>{nat_class::open, "open"},
                    enum_name<nat_class>{nat_class::cone, "cone"},
                    enum_name<nat_class>{nat_class::symmetric, "symmetric"},
                    enum_name<nat_class>{nat_class::outbound_only, "outbound_only"}};
}
constexpr auto names_of(netem::congestion_control) {
  using netem::congestion_control;
  return std::array{enum_name<congestion_control>{congestion_control::reno, "reno"},
                    enum_name<congestion_control>{congestion_control::cubic, "cubic"}};
}

/// The word for an enumerator in scenario files.
template <class E>
requires std::is_enum_v<E>
constexpr const char* name_of(E value) {
  for (const auto& [candidate, name] : names_of(E{}))
    if (candidate == value) return name;
  return "";
}

template <class V>
void describe(V& v, device_class& o) {
  v.field("samples_per_second", o.samples_per_second,
          "samples that the device takes forward and backward in a second",
          {.required = true, .above = 0, .at_most = 1e9});
  v.field("jitter", o.jitter, "standard deviation of a job's duration as a fraction of it",
          {.at_least = 0, .below = 1, .fraction = true});
  v.field("step_time", o.step_time, "duration of one optimizer step");
  v.field("offload", o.offload,
          "the optimizer's state stays in the host's memory, and the host's processor makes the "
          "step; with `training.overlap` the step runs while the device computes",
          {.hide_default = true});
  v.field("serialize", o.serialize,
          "rate at which the host serializes, encrypts and copies what it sends and receives, both "
          "together; `shoal probe` measures it. Small messages take no time. 0: nothing does",
          {.at_least = 0, .hide_default = true});
  v.field("memory", o.memory,
          "memory that training may take. `shoal plan` leaves out methods that need more; a run "
          "does not look at it. 0: not known",
          {.hide_default = true});
}

template <class V>
void describe(V& v, burst_options& o) {
  v.field("p", o.p,
          "probability, for each packet, that the path goes from the good to the bad state",
          {.at_least = 0, .at_most = 1, .fraction = true});
  v.field("r", o.r,
          "probability, for each packet, that the path goes from the bad to the good state; the "
          "mean length of a burst is `1/r` packets",
          {.above = 0, .at_most = 1, .fraction = true});
  v.field("in_bad", o.in_bad, "share of the packets that are lost in the bad state",
          {.at_least = 0, .at_most = 1, .fraction = true});
  v.field("in_good", o.in_good, "share of the packets that are lost in the good state",
          {.at_least = 0, .below = 1, .fraction = true});
}

/// Describes the options that stand beside `delay` in a line or a link.
template <class V>
void describe_impairments(V& v, path_options& o) {
  v.field("jitter", o.jitter,
          "variation of the delay; `uniform`: ± this value, at most `delay`; other distributions: "
          "the standard deviation",
          {.hide_default = true});
  v.field("distribution", o.distribution, "distribution of the jitter, as in tc netem",
          {.hide_default = true});
  v.field("correlation", o.correlation,
          "correlation between the jitter of one message and the next",
          {.at_least = 0, .below = 1, .fraction = true, .hide_default = true});
  v.field("loss", o.loss,
          "share of the packets that are lost, each independently; loss slows bulk transfers and "
          "delays small messages",
          {.at_least = 0, .below = 1, .fraction = true, .hide_default = true});
  v.field("bursts", o.bursts,
          "packets are lost in bursts (Gilbert-Elliott, tc netem's `loss gemodel`)",
          {.hide_default = true});
  v.field("duplicate", o.duplicate, "share of the packets that are sent twice, which costs bytes",
          {.at_least = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("reorder", o.reorder,
          "share of the messages that skip the delay; they stay behind earlier messages of their "
          "connection",
          {.at_least = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("flow_rate", o.flow_rate, "largest rate of one connection; 0: no limit",
          {.hide_default = true});
}

template <class V>
void describe(V& v, netem::line_change& o) {
  v.field("at", o.at, "time from which the change holds", {.required = true});
  v.field("up", o.up, "uplink capacity of groups and shared links", {.above = 0});
  v.field("down", o.down, "downlink capacity of groups and shared links", {.above = 0});
  v.field("delay", o.delay, "one-way delay of groups and region links");
  v.field("loss", o.loss, "packet loss of groups and region links",
          {.at_least = 0, .below = 1, .fraction = true});
}

template <class V>
void describe(V& v, over_time_options& o) {
  v.field("steps", o.steps,
          "changes in the order of their times; a value that a step does not name stays as it is");
  v.field("trace", o.trace,
          "a CSV file `time,up,down,delay,loss` in place of `steps`, relative to the scenario's "
          "folder");
  v.field("repeat", o.repeat, "period after which the changes begin again; 0: never",
          {.hide_default = true});
}

template <class V>
void describe(V& v, region_link& o) {
  v.field("from", o.from, "name of a region", {.required = true});
  v.field("to", o.to, "name of a region; the same region describes the paths inside it",
          {.required = true});
  v.field("delay", o.path.delay, "one-way delay", {.required = true});
  describe_impairments(v, o.path);
  v.field("over_time", o.over_time, "how `delay` and `loss` change", {.hide_default = true});
}

template <class V>
void describe(V& v, shared_link& o) {
  v.field("region", o.region, "region whose hosts share the link",
          {.otherwise = "the first region"});
  v.field("up", o.up, "capacity out of the region", {.required = true, .above = 0});
  v.field("down", o.down, "capacity into the region", {.required = true, .above = 0});
  v.field("buffer", o.buffer, "length of the queue in front of each direction, in time at its rate",
          {.hide_default = true, .otherwise = "that of `network.tcp`"});
  v.field("over_time", o.over_time, "how `up` and `down` change", {.hide_default = true});
}

template <class V>
void describe(V& v, network_tcp_options& o) {
  v.field("congestion", o.congestion, "rule by which congestion windows grow and shrink");
  v.field("initial_window", o.initial_window, "packets in the window of a new or idle connection",
          {.at_least = 1, .at_most = 1000});
  v.field("slow_start_after_idle", o.slow_start_after_idle,
          "a connection that was idle for a retransmission timeout begins with the initial window "
          "again. `false`: it keeps its window, as on hosts with "
          "`net.ipv4.tcp_slow_start_after_idle=0`");
  v.field("max_window", o.max_window,
          "largest number of bytes in flight on one connection; Linux takes 4 to 6 MiB",
          {.at_least = 1448});
  v.field("connections", o.connections,
          "TCP connections that carry bulk from one host to another. More than one is faster where "
          "loss or `max_window` limits a connection. Real hosts open as many",
          {.at_least = 1, .at_most = netem::most_connections, .hide_default = true});
  v.field("queue", o.queue,
          "packets that wait at each link before one is dropped, whatever its rate",
          {.at_least = 1, .at_most = 1e6});
  v.field("buffer", o.buffer,
          "further length of that queue, in time at the link's rate; some lines have more "
          "(bufferbloat)",
          {.at_least = 0});
  v.field("push_back", o.push_back,
          "a host's own uplink delays what the host sends and drops nothing, as in Linux. "
          "`false`: a drop-tail queue, as behind `tc tbf` or a modem");
}

template <class V>
void describe(V& v, relay_options& o) {
  v.field("region", o.region, "region of the relay", {.otherwise = "the first region"});
  v.field("up", o.up, "capacity of the relay's uplink", {.above = 0});
  v.field("down", o.down, "capacity of the relay's downlink", {.above = 0});
  v.field("budget", o.budget, "bytes that the relay forwards in a run; then it refuses",
          {.required = true, .at_least = 1});
}

template <class V>
void describe(V& v, network_options& o) {
  v.field("model", o.model,
          "model of bulk transfers; `max_min`: fair shares without TCP; `lv08`: SimGrid's default; "
          "`tcp`: connection set-up, slow start, window and loss");
  v.field("tcp", o.tcp, "options of the model `tcp`");
  v.field("regions", o.regions,
          "names of the regions; the first one is the default of every `region`");
  v.field("default_delay", o.default_delay,
          "one-way delay between and inside regions that no link names");
  v.field("default_jitter", o.default_jitter,
          "uniform jitter, ± this value in each direction, at most `default_delay`");
  v.field("links", o.links, "paths between two regions, in both directions");
  v.field("shared_links", o.shared_links, "links that all hosts of a region share, by name");
  v.field("relays", o.relays,
          "hosts that forward messages between peers behind address translation, by name",
          {.hide_default = true});
  v.field("hole_punching", o.hole_punching,
          "probability that two peers behind address translation connect directly, where their "
          "kinds of translation permit a direct connection",
          {.at_least = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("detection_time", o.detection_time,
          "silence after which other hosts take a machine for lost", {.above = 0});
}

template <class V>
void describe(V& v, coordinate_options& o) {
  v.field("x", o.x, "coordinate in a plane whose unit is half a round trip");
  v.field("y", o.y, "the other coordinate");
  v.field("height", o.height, "delay of the access line");
  v.field("spread", o.spread, "standard deviation of x and of y within the group");
}

template <class V>
void describe(V& v, peer_group& o) {
  v.field("count", o.count, "number of hosts, which are named `<group>-0`, `<group>-1`, …",
          {.at_most = 4'000'000});
  v.field("names", o.names, "names of the hosts, in place of the numbered ones",
          {.hide_default = true});
  v.field("region", o.region, "region of the hosts", {.otherwise = "the first region"});
  v.field("line", o.line,
          "a typical access line, which fills in the options below that are not given",
          {.hide_default = true, .one_of = line_names});
  v.field("up", o.up, "capacity of each host's uplink",
          {.above = 0, .otherwise = "required without `line`"});
  v.field("down", o.down, "capacity of each host's downlink",
          {.above = 0, .otherwise = "required without `line`"});
  v.field("buffer", o.buffer, "length of the queue in front of each host's downlink, in time",
          {.hide_default = true, .otherwise = "that of `line`, or of `network.tcp`"});
  v.field("delay", o.access.delay,
          "one-way delay of the host's line, added to the delay between the regions",
          {.hide_default = true});
  describe_impairments(v, o.access);
  v.field("over_time", o.over_time, "how `up`, `down`, `delay` and `loss` change",
          {.hide_default = true});
  v.field("nat", o.nat,
          "hosts that can open a connection to this one. `open`: all; `cone` and `symmetric`: "
          "hosts that this one has sent to; `outbound_only`: none. An `outbound_only` host sends "
          "no datagrams",
          {.hide_default = true});
  v.field("hosts_per_line", o.hosts_per_line,
          "consecutive hosts that share one access line, as in one home",
          {.at_least = 1, .at_most = 4'000'000, .hide_default = true});
  v.field("coordinates", o.coordinates,
          "Vivaldi coordinates; the distance between two hosts with coordinates replaces the delay "
          "between their regions",
          {.hide_default = true});
  v.kind("role", o.role, role_kinds(), "work of the hosts", {.hide_default = true});
  v.field("conduct", o.conduct,
          "how the hosts behave, as a test of Shoal itself. A word, such as `lone_vote`, is short "
          "for `{kind: lone_vote}`",
          {.hide_default = true});
  v.field("device", o.device,
          "name of an entry of `devices`. Other names stand for typical devices, "
          "whose speed follows from `workload`: `laptop`, `desktop`, `colab`, `t4`, "
          "`p100`, `v100`, `a10`, `a100`, `h100`, `gtx1080ti`, `rtx3090`, `rtx4090`",
          {.required = true});
  v.field("start", o.start, "start time of the first host");
  v.field("start_spacing", o.start_spacing, "time between the starts of two hosts");
  v.field("boot_time", o.boot_time,
          "time from each start of a host until its actors start. The host of a cluster needs its "
          "own time, which `shoal probe` measures",
          {.hide_default = true});
  v.field("absent", o.absent, "the hosts start only by a `join` fault");
  v.field("churn", o.churn, "how the hosts leave and come back", {.hide_default = true});
}

/// The field that a conduct in one word stands for.
inline std::pair<std::string*, rule> short_form(actors::conduct_options& o) {
  return {&o.kind, {.one_of = actors::conducts().names()}};
}

template <class V>
void describe(V& v, actors::conduct_options& o) {
  static const std::string meaning = [] {
    std::string out = "the conduct; every one but `honest` is an injected bug or an attack of a "
                      "member with a valid key";
    for (const auto& one : actors::conducts().all())
      if (one.kind == actors::conduct_kind::attack) out += ". `" + one.name + "`: " + one.meaning;
    return out;
  }();
  v.field("kind", o.kind, meaning.c_str(), {.one_of = actors::conducts().names()});
  v.field("from", o.from, "the hosts are honest for this time after their start",
          {.hide_default = true});
  v.field("every", o.every, "the least time between two strikes; 0: always",
          {.hide_default = true});
  v.field("from_epoch", o.from_epoch, "attacks on values: the hosts are honest in earlier epochs",
          {.hide_default = true});
  v.field("every_epochs", o.every_epochs,
          "attacks on values: the hosts strike in every so many epochs from `from_epoch` on",
          {.at_least = 1, .hide_default = true});
  v.field("knows", o.knows,
          "the contributions that attackers of the kinds `inner_product_manipulation` and "
          "`little_is_enough` know. `colluders`: their own, without the attack. `everybody`: "
          "those of all honest hosts, in simulations",
          {.hide_default = true});
  v.field("strength", o.strength, "how hard an attack strikes; its meaning depends on the kind",
          {.hide_default = true});
  v.field("messages", o.messages,
          "names of the types of messages that an attack on messages changes, such as "
          "`member_ready`. Default: all",
          {.hide_default = true});
}

template <class V>
void describe(V& v, data_options& o) {
  v.field(
      "files", o.files,
      "paths or globs, relative to the scenario's folder. A leading `~` is your home folder. Each "
      "file is plain text or JSON lines (`.jsonl`), and may be compressed (`.zst`, `.br`)");
  v.field("field", o.field, "field that holds the text, in each object of a file of JSON lines",
          {.hide_default = true});
  v.field("shuffle_buffer", o.shuffle_buffer,
          "consecutive training windows that are shuffled together, so that a shard reads its "
          "files nearly in order; 0: all windows",
          {.at_most = 1 << 24, .hide_default = true});
  v.field("holdout", o.holdout,
          "share at the end of each file that is held out to measure the loss",
          {.above = 0, .at_most = 0.5, .fraction = true});
  v.field("region", o.region, "region of the data shard's host", {.otherwise = "the first region"});
  v.field("up", o.up, "capacity of the shard's uplink", {.above = 0});
  v.field("down", o.down, "capacity of the shard's downlink", {.above = 0});
  v.field("prefetch_samples", o.prefetch_samples,
          "credit: leased and unused samples that one peer may hold",
          {.at_least = 1, .at_most = 65536});
  v.field("lease_time", o.lease_time,
          "time after which a lease returns when it is neither renewed nor committed",
          {.above = 0});
  v.field("replicas", o.replicas,
          "hosts of the data shard, named `shard-0`, `shard-1`, …; one of them serves, and the "
          "others copy its ledger and take over",
          {.at_least = 1, .at_most = 16, .hide_default = true});
  v.field("names", o.names,
          "names of these hosts, in place of the numbered ones; faults cannot select hosts with "
          "such names",
          {.hide_default = true});
  v.field("replica_regions", o.replica_regions, "regions of `shard-1`, `shard-2`, …",
          {.hide_default = true, .otherwise = "`region`"});
  v.field(
      "corpus_samples", o.corpus_samples,
      "samples of a fixed corpus, which are used again and again. Each message then proves that "
      "its samples are of the corpus, so a shard cannot change them. 0: no limit and no proof",
      {.at_most = 1 << 24, .hide_default = true});
  v.field("corpus_root", o.corpus_root,
          "hash of a tree over the corpus, which `shoal check` prints. Hosts of a cluster without "
          "the files need it",
          {.hide_default = true, .otherwise = "computed from the files"});
  v.field("conduct", o.conduct, "how the first `attackers` replicas behave, as in `peers.GROUP`",
          {.hide_default = true});
  v.field("attackers", o.attackers, "replicas with that conduct, from the first one on",
          {.at_least = 1, .at_most = 16, .hide_default = true});
}

template <class V>
void describe(V& v, workload_choice& o) {
  v.kind("kind", o, workload_kinds(), "kind of the workload");
}

template <class V>
void describe(V& v, kernels::optimizer_config& o) {
  v.field("kind", o.kind,
          "rule that applies the averaged gradient; `adamw8` and `lamb8` keep their moments in 8 "
          "bits, a quarter of the bytes");
  v.field("learning_rate", o.learning_rate, "highest learning rate", {.above = 0, .at_most = 1e6});
  v.field("momentum", o.momentum, "momentum of sgd", {.at_least = 0, .below = 1});
  v.field("beta1", o.beta1, "decay of the first moment, of all kinds but sgd",
          {.at_least = 0, .below = 1});
  v.field("beta2", o.beta2, "decay of the second moment, of all kinds but sgd",
          {.at_least = 0, .below = 1});
  v.field("epsilon", o.epsilon, "term that keeps the denominator above zero, of all kinds but sgd",
          {.above = 0, .at_most = 1});
  v.field("weight_decay", o.weight_decay,
          "decoupled weight decay, which is multiplied by the learning rate",
          {.at_least = 0, .at_most = 1e6});
  v.field(
      "adapt_undecayed", o.adapt_undecayed,
      "lamb moves tensors without weight decay by their own norm, too. `false`: they make steps "
      "of adamw; `albert` and `dalle` have such biases and gains",
      {.hide_default = true});
  v.field(
      "clip_norm", o.clip_norm,
      "largest L2 norm of the averaged gradient, which is scaled down to this norm; 0: no limit",
      {.at_least = 0});
  v.field("warmup_steps", o.warmup_steps, "steps in which the learning rate rises linearly");
  v.field("total_steps", o.decay_steps,
          "step at which the learning rate has fallen linearly to 0; 0: it does not fall");
}

template <class V>
void describe(V& v, training_options& o) {
  v.kind("method", o.method, method_kinds(), "training method of the swarm");
  v.field("micro_batch", o.micro_batch,
          "samples in one compute job, or in one local step where the method has local steps",
          {.at_least = 1, .at_most = 1e6});
  v.field("epochs", o.epochs,
          "number of epochs, after which the run ends; 0: `stop_time` ends the run");
  v.field("min_refresh", o.min_refresh,
          "shortest time between two reads and publications of progress by one peer", {.above = 0});
  v.field("max_refresh", o.max_refresh,
          "longest time between two reads and publications of progress by one peer", {.above = 0});
  v.field("record_lifetime", o.record_lifetime,
          "age of a progress record at which its peer counts as gone", {.above = 0});
  v.field(
      "max_uploads", o.max_uploads,
      "downloads of its state that a peer serves at once; it refers further joiners to other peers",
      {.at_least = 1, .at_most = 64, .hide_default = true});
  v.field("start_from", o.start_from,
          "checkpoint that every peer begins with, relative to the scenario's folder; the data "
          "continues after the samples that the checkpoint has used. A folder of Hugging Face or a "
          "`.safetensors` file gives only the parameters",
          {.hide_default = true});
  v.field("checkpoint_every", o.checkpoint_every,
          "epochs between two files in `checkpoints/`, which the first peer at that epoch writes; "
          "0: only `final.ckpt`",
          {.hide_default = true});
  v.field("optimizer", o.optimizer, "optimizer step at the end of an epoch");
}

template <class V>
void describe(V& v, aggregator_choice& o) {
  v.kind("kind", o, aggregator_kinds(), "the aggregator");
}

template <class V>
void describe(V& v, averaging_options& o) {
  v.field("group_size", o.group_size, "largest number of members of a group",
          {.at_least = 1, .at_most = 4'000'000});
  v.field("grid", o.grid,
          "grid of the peers, like `8x8` or `4x4x4`, for methods with small groups; the peers of "
          "one row average in a round",
          {.hide_default = true, .otherwise = "the smallest square that holds all hosts"});
  v.field(
      "min_group_size", o.min_group_size,
      "smallest group that averages; a smaller one fails with `group_too_small` and tries again",
      {.at_least = 1, .at_most = 4'000'000});
  v.field("matchmaking_time", o.matchmaking_time,
          "longest wait of a leader for known peers; a leader that misses group after group waits "
          "up to four times as long",
          {.above = 0});
  v.field("round_timeout", o.round_timeout, "longest duration of a round; a longer round fails",
          {.above = 0});
  v.field("sender_timeout", o.sender_timeout,
          "silence after which a reducer goes on without a sender", {.above = 0});
  v.field("max_norm_ratio", o.max_norm_ratio,
          "a reducer refuses values whose norm is above so many times the median of the members' "
          "norms; 0: no limit. Two members have no median",
          {.at_least = 0, .hide_default = true});
  v.field(
      "chunk_size", o.chunk_size,
      "largest piece in which a part travels. The default is a 64th of the vector, of 16 to 256 "
      "KiB. Aggregators that "
      "judge pieces, and rounds with `security`, have 256 KiB",
      {.at_least = 1});
  v.field("split", o.split,
          "split of the vector among its reducers. `adaptive` gives each a part that suits its "
          "line (DeDLOC). `equal` gives all that can be reached the same part (all-reduce). "
          "`parameter_server` gives everything to the member with the best line",
          {.hide_default = true});
  v.field("aggregator", o.aggregator,
          "how a reducer combines the members' contributions. A word, such as `median`, is short "
          "for `{kind: median}`",
          {.hide_default = true});
  v.field("compression", o.compression,
          "codec of averaged values. `float16` and `bfloat16` take 2 bytes a value, `uniform8` and "
          "`blockwise8` take 1. `size_adaptive` takes 1 byte in tensors of at least 2^16 values "
          "and 2 in others. `top_k` (synchronous) sends the largest values in 8 bytes each and "
          "keeps the rest for the next round",
          {.hide_default = true});
  v.field("means_compression", o.means_compression,
          "codec of the means that a reducer sends back, where it differs from `compression`; any "
          "but `top_k`, and `none` with `top_k`",
          {.hide_default = true});
  v.field("top_k_fraction", o.top_k_fraction,
          "share of the values in each chunk that `top_k` sends",
          {.at_least = 1e-6, .at_most = 1, .fraction = true, .hide_default = true});
  v.field(
      "power_sgd_rank", o.power_sgd_rank,
      "rank of the matrices in which gradients are averaged, in two rounds of one group (PowerSGD, "
      "synchronous). 4 is usual; 0: full gradients. Both rounds take any codec but `top_k`",
      {.at_most = 4096, .hide_default = true});
}

template <class V>
void describe(V& v, fault& o) {
  v.action(o);
  v.field("select", o.select,
          "glob over host names (`*`, `?`, `[a-c]`); a glob selects hosts of the data shard only "
          "when it begins with their name (`shard-0`, `shard-*`)",
          {.otherwise = "required, but for `swizzle-clog` and shapes of `partition`: all peers"});
  v.field("regions", o.regions, "regions to which the selection is limited",
          {.hide_default = true});
  v.field("mode", o.mode, "how many of the selected live hosts are struck, drawn each time",
          {.hide_default = true});
  v.field("value", o.value,
          "number of hosts for `fixed`. For `fixed-percent` and `random-max-percent`: share of the "
          "selected hosts, as in `20%`",
          {.at_least = 0, .fraction = true, .hide_default = true});
  v.field("at", o.at, "time of the fault; with `every`: time of the first one");
  v.field("every", o.every, "period of a fault that repeats", {.above = 0});
  v.field("until", o.until, "time after which `every` and `on` strike no more");
  v.field("on", o.on,
          "probe, in place of a time; the fault strikes the selected host that reaches the probe");
  v.field("nth", o.nth, "with `on`: count of the hit at which the fault strikes",
          {.at_least = 1, .hide_default = true});
  v.field("probability", o.probability,
          "probability that the fault strikes, drawn each time; with `on`: from the n-th hit on",
          {.above = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("duration", o.lasts, "duration of the fault; 0: until the run ends",
          {.hide_default = true});
  v.field("downtime", o.downtime, "with `restart`: time until the host is back",
          {.hide_default = true, .otherwise = "required there"});
  v.field("direction", o.cut,
          "with `partition`: which messages are lost; `from`: those that the selected hosts send "
          "to others; `to`: those that others send to them",
          {.hide_default = true});
  v.field("rate", o.rate, "with `throttle` and `netem`: largest rate of the line",
          {.above = 0, .hide_default = true});
  v.field("factor", o.factor, "with `throttle`: remaining share of the rate of the line",
          {.above = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("delay", o.path.delay, "with `netem`: additional one-way delay", {.hide_default = true});
  describe_impairments(v, o.path);
  v.field("ahead", o.ahead, "with `clock: bump`: time by which the clock is set forward",
          {.hide_default = true});
  v.field("behind", o.behind, "with `clock: bump`: time by which the clock is set back",
          {.hide_default = true});
  v.field("drift", o.drift,
          "with `clock: skew`: relative speed of the clock; `5%` is faster, `-5%` is slower",
          {.above = -1, .at_most = 10, .fraction = true, .hide_default = true});
}

template <class V>
void describe(V& v, record_options& o) {
  v.field("events", o.events, "events that `events.jsonl.zst` holds");
  v.field("peers", o.peers,
          "with `events: all`: number of sampled peers whose events are kept; 0: all peers");
  v.field("transfers", o.transfers,
          "number of bulk transfers, from the first on, that `transfers.jsonl.zst` keeps for "
          "`shoal explain`; 0: none");
  v.field("metrics_interval", o.metrics_interval, "virtual time between two rows of `metrics.csv`",
          {.above = 0});
  v.field("held_out_every", o.held_out_every,
          "epochs between two measurements of the held-out loss; 0: only at the start and the end");
  v.field("export", o.exports,
          "formats of other programs that the run writes into the folder `export` of its directory "
          "([export.md](export.md))",
          {.hide_default = true});
  v.field("export_every", o.export_every,
          "with `export`: time of the run between two exports while it goes on; 0: only at the end",
          {.hide_default = true});
}

template <class V>
void describe(V& v, expectation& o) {
  v.field("min", o.min, "least value of the metric");
  v.field("max", o.max, "largest value of the metric");
}

template <class V>
void describe(V& v, scenario& o) {
  v.field("name", o.name, "name in reports", {.otherwise = "the file's name without its ending"});
  v.field("description", o.description, "free text");
  v.field("seed", o.seed, "seed of all random streams; the same seed gives the same history");
  v.program(o.program, program_kinds());
  v.field("world", o.world,
          "`sim`: virtual time. `emulate`: real time on one machine. `loopback`: real time and "
          "real connections on one machine, where only devices are emulated. `cluster`: one "
          "process `shoal node` for each host",
          {.one_of = "sim, emulate, loopback, cluster"});
  v.field("stop_time", o.stop_time, "virtual time at which the run ends at the latest",
          {.required = o.program.reads("stop_time"), .above = 0});
  v.field("network", o.network, "regions and the paths between them");
  v.field("devices", o.devices, "compute devices of the peers, by name");
  v.keyed("peers", o.peers, "groups of equal hosts, by name");
  v.field("data", o.data, "the text and the host that streams it");
  v.field("workload", o.workload, "model that is trained");
  v.field("training", o.training, "epochs, progress and the method");
  v.field("averaging", o.averaging, "rounds of averaging");
  v.field("security", o.security, "protection of rounds against members that send false values",
          {.hide_default = true});
  v.field("faults", o.faults, "faults and their times");
  v.field("failpoints", o.failpoints,
          "a test of Shoal itself. The seed picks half of the failpoints of its protocols (a full "
          "group, a busy donor, an answer that does not come). Each of them is taken with this "
          "probability",
          {.at_least = 0,
           .at_most = 0.5,
           .fraction = true,
           .hide_default = true,
           .formerly = "rare_branches"});
  v.field("record", o.record, "contents of the run directory");
  v.field("expect", o.expect, "bounds for metrics of `summary.json`; a run outside of them fails");
}

} // namespace shoal::scenarios
