// Every option of a scenario, named once: key, meaning, range. describe(visitor, struct) calls
//   v.field(key, member, meaning, rule)     for values, lists, structs and maps of structs
//   v.keyed(key, groups, meaning)           for a mapping kept as a vector in the file's order, key
//   = name v.kind(key, choice, kinds, meaning)     for the key that picks a registered kind; the
//   options of the kind stand beside this key v.action(fault)                         for the first
//   key of a fault, 'kill: machine'
// The reader, the YAML printer and the reference page are such visitors. Defaults are the members'
// initializers in scenario.hpp.
#pragma once

#include "actors/averaging/aggregator.hpp"
#include "actors/conduct/conducts.hpp"
#include "scenarios/schema/describe_churn.hpp"
#include "scenarios/schema/describe_study.hpp"
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
constexpr auto names_of(event_detail) {
  return std::array{enum_name<event_detail>{event_detail::all, "all"},
                    enum_name<event_detail>{event_detail::rounds, "rounds"},
                    enum_name<event_detail>{event_detail::none, "none"}};
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
          "samples that go forward and backward in a second",
          {.required = true, .above = 0, .at_most = 1e9});
  v.field("jitter", o.jitter, "standard deviation of a job's duration as a fraction of it",
          {.at_least = 0, .below = 1, .fraction = true});
  v.field("step_time", o.step_time, "duration of one optimizer step");
  v.field("offload", o.offload,
          "the optimizer's state is in the host's memory, and its processor makes the step: beside "
          "what the device "
          "computes, where `training.overlap` lets it",
          {.hide_default = true});
}

template <class V>
void describe(V& v, burst_options& o) {
  v.field("p", o.p, "probability that a packet finds the good state turned bad",
          {.at_least = 0, .at_most = 1, .fraction = true});
  v.field("r", o.r,
          "probability that a packet finds the bad state turned good; `1/r` packets is a burst's "
          "mean length",
          {.above = 0, .at_most = 1, .fraction = true});
  v.field("in_bad", o.in_bad, "packets lost in the bad state",
          {.at_least = 0, .at_most = 1, .fraction = true});
  v.field("in_good", o.in_good, "packets lost in the good state",
          {.at_least = 0, .below = 1, .fraction = true});
}

/// What follows `delay` of a line or a link.
template <class V>
void describe_impairments(V& v, path_options& o) {
  v.field("jitter", o.jitter, "`uniform`: ± this, at most `delay`; others: its standard deviation",
          {.hide_default = true});
  v.field("distribution", o.distribution, "of the jitter, as in tc netem", {.hide_default = true});
  v.field("correlation", o.correlation, "of a message's jitter with the one before it",
          {.at_least = 0, .below = 1, .fraction = true, .hide_default = true});
  v.field("loss", o.loss, "packets lost, independently; slows bulk down, delays small messages",
          {.at_least = 0, .below = 1, .fraction = true, .hide_default = true});
  v.field("bursts", o.bursts,
          "packets lost in bursts instead (Gilbert-Elliott, tc netem's `loss gemodel`)",
          {.hide_default = true});
  v.field("duplicate", o.duplicate, "packets sent twice; costs bytes",
          {.at_least = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("reorder", o.reorder,
          "messages that skip the delay, but nothing before them on their connection",
          {.at_least = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("flow_rate", o.flow_rate, "the most that one connection gets; 0: no limit",
          {.hide_default = true});
}

template <class V>
void describe(V& v, netem::line_change& o) {
  v.field("at", o.at, "from then on", {.required = true});
  v.field("up", o.up, "of groups and shared links", {.above = 0});
  v.field("down", o.down, "of groups and shared links", {.above = 0});
  v.field("delay", o.delay, "one way, of groups and ways between regions");
  v.field("loss", o.loss, "of groups and ways between regions",
          {.at_least = 0, .below = 1, .fraction = true});
}

template <class V>
void describe(V& v, over_time_options& o) {
  v.field("steps", o.steps, "changes in the order of their times; what a step does not name stays");
  v.field("trace", o.trace,
          "instead: CSV file `time,up,down,delay,loss`, relative to the scenario's folder");
  v.field("repeat", o.repeat, "all over again after this; 0: never", {.hide_default = true});
}

template <class V>
void describe(V& v, region_link& o) {
  v.field("from", o.from, "a region", {.required = true});
  v.field("to", o.to, "a region; the same one describes its inside", {.required = true});
  v.field("delay", o.path.delay, "one way", {.required = true});
  describe_impairments(v, o.path);
  v.field("over_time", o.over_time, "how `delay` and `loss` change", {.hide_default = true});
}

template <class V>
void describe(V& v, shared_link& o) {
  v.field("region", o.region, "whose hosts share it", {.otherwise = "the first region"});
  v.field("up", o.up, "capacity out of the region", {.required = true, .above = 0});
  v.field("down", o.down, "capacity into the region", {.required = true, .above = 0});
  v.field("over_time", o.over_time, "how `up` and `down` change", {.hide_default = true});
}

template <class V>
void describe(V& v, tcp_options& o) {
  v.field("congestion", o.congestion, "how windows grow and shrink");
  v.field("initial_window", o.initial_window, "packets of a new or idle connection",
          {.at_least = 1, .at_most = 1000});
  v.field("max_window", o.max_window,
          "bytes under way on one connection at most; Linux takes 4 to 6 MiB", {.at_least = 1448});
  v.field("queue", o.queue, "packets that wait in front of each link before one is dropped",
          {.at_least = 1, .at_most = 1e6});
}

template <class V>
void describe(V& v, relay_options& o) {
  v.field("region", o.region, "where it is", {.otherwise = "the first region"});
  v.field("up", o.up, "capacity of its uplink", {.above = 0});
  v.field("down", o.down, "capacity of its downlink", {.above = 0});
  v.field("budget", o.budget, "what it relays in a run; then it refuses",
          {.required = true, .at_least = 1});
}

template <class V>
void describe(V& v, network_options& o) {
  v.field("model", o.model,
          "of bulk transfers. `max_min`: fair shares, no TCP; `lv08`: SimGrid's default; "
          "`tcp`: connection set-up, slow start, window, loss");
  v.field("tcp", o.tcp, "of the model `tcp`");
  v.field("regions", o.regions,
          "names of the regions; the first one is the default of every `region`");
  v.field("default_delay", o.default_delay,
          "one way, between and inside regions that no link names");
  v.field("default_jitter", o.default_jitter,
          "uniform in ± this, one way; at most `default_delay`");
  v.field("links", o.links, "the way between two regions, both ways");
  v.field("shared_links", o.shared_links,
          "what all hosts of a region share on their way out and in, by name");
  v.field(
      "relays", o.relays,
      "hosts that pass on what peers behind address translation cannot send each other, by name",
      {.hide_default = true});
  v.field("hole_punching", o.hole_punching,
          "probability that two peers behind address translation that could connect directly do",
          {.at_least = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("detection_time", o.detection_time,
          "how long a lost machine is silent before others know", {.above = 0});
}

template <class V>
void describe(V& v, coordinate_options& o) {
  v.field("x", o.x, "in a plane of round-trip halves");
  v.field("y", o.y, "");
  v.field("height", o.height, "of the access line");
  v.field("spread", o.spread, "standard deviation of x and of y within the group");
}

template <class V>
void describe(V& v, peer_group& o) {
  v.field("count", o.count, "hosts in the group, named `<group>-0`, `<group>-1`, …",
          {.at_most = 4'000'000});
  v.field("names", o.names, "of these hosts, where they have names of their own",
          {.hide_default = true});
  v.field("region", o.region, "where they are", {.otherwise = "the first region"});
  v.field("line", o.line, "a typical access line, for whatever of the following is not given",
          {.hide_default = true, .one_of = line_names});
  v.field("up", o.up, "capacity of each host's uplink",
          {.above = 0, .otherwise = "required without `line`"});
  v.field("down", o.down, "capacity of each host's downlink",
          {.above = 0, .otherwise = "required without `line`"});
  v.field("delay", o.access.delay,
          "one way, of the host's line; comes on top of the delay between the regions",
          {.hide_default = true});
  describe_impairments(v, o.access);
  v.field("over_time", o.over_time, "how `up`, `down`, `delay` and `loss` change",
          {.hide_default = true});
  v.field("nat", o.nat,
          "whom the host lets in: everybody; those that it has sent to (`cone`, `symmetric`); "
          "nobody, and it sends "
          "no datagrams (`outbound_only`)",
          {.hide_default = true});
  v.field("hosts_per_line", o.hosts_per_line,
          "so many consecutive hosts share one line, as in one home",
          {.at_least = 1, .at_most = 4'000'000, .hide_default = true});
  v.field("coordinates", o.coordinates,
          "of the hosts (Vivaldi): where both ends have some, their distance is the delay between "
          "the regions",
          {.hide_default = true});
  v.kind("role", o.role, role_kinds(), "what the hosts do", {.hide_default = true});
  v.field(
      "conduct", o.conduct,
      "to test Shoal itself: how these hosts behave; all but `honest` are injected bugs or attacks",
      {.hide_default = true, .one_of = actors::conducts().names()});
  v.field("device", o.device, "a key of `devices`", {.required = true});
  v.field("start", o.start, "when the first one starts");
  v.field("start_spacing", o.start_spacing, "each further one starts this much later");
  v.field("absent", o.absent, "they start only by a `join` fault");
  v.field("churn", o.churn, "how they come and go of their own accord", {.hide_default = true});
}

template <class V>
void describe(V& v, data_options& o) {
  v.field("files", o.files,
          "paths or globs, relative to the scenario's folder; `~` at the start is your home "
          "folder. Plain text, or JSON lines "
          "(`.jsonl`), of either also compressed (`.zst`, `.br`)");
  v.field("field", o.field, "which field of each object in a file of JSON lines is the text",
          {.hide_default = true});
  v.field("shuffle_buffer", o.shuffle_buffer,
          "training windows are shuffled among so many that follow each other, so that a shard "
          "reads its files "
          "nearly in order; 0: among all",
          {.at_most = 1 << 24, .hide_default = true});
  v.field("holdout", o.holdout, "the last part of each file is held out to measure the loss",
          {.above = 0, .at_most = 0.5, .fraction = true});
  v.field("region", o.region, "where the data shard's host is", {.otherwise = "the first region"});
  v.field("up", o.up, "capacity of its uplink", {.above = 0});
  v.field("down", o.down, "capacity of its downlink", {.above = 0});
  v.field("prefetch_samples", o.prefetch_samples,
          "credit: leased, unused samples that one peer may hold",
          {.at_least = 1, .at_most = 65536});
  v.field("lease_time", o.lease_time,
          "a lease neither renewed nor committed for this long is returned", {.above = 0});
  v.field("replicas", o.replicas,
          "hosts of the data shard, `shard-0`, `shard-1`, …, each with that line: one serves, the "
          "others know what it knows "
          "and take over",
          {.at_least = 1, .at_most = 16, .hide_default = true});
  v.field("names", o.names,
          "of these hosts, where they have names of their own; faults do not select such",
          {.hide_default = true});
  v.field("replica_regions", o.replica_regions, "where `shard-1`, `shard-2`, … are",
          {.hide_default = true, .otherwise = "`region`"});
}

template <class V>
void describe(V& v, workload_choice& o) {
  v.kind("kind", o, workload_kinds(), "which one");
}

template <class V>
void describe(V& v, kernels::optimizer_config& o) {
  v.field("kind", o.kind,
          "what applies the averaged gradient; `adamw8` and `lamb8` keep their moments in 8 bits, "
          "a quarter of the bytes");
  v.field("learning_rate", o.learning_rate, "its highest value", {.above = 0, .at_most = 1e6});
  v.field("momentum", o.momentum, "sgd", {.at_least = 0, .below = 1});
  v.field("beta1", o.beta1, "all but sgd", {.at_least = 0, .below = 1});
  v.field("beta2", o.beta2, "all but sgd", {.at_least = 0, .below = 1});
  v.field("epsilon", o.epsilon, "all but sgd", {.above = 0, .at_most = 1});
  v.field("weight_decay", o.weight_decay, "decoupled, times the learning rate",
          {.at_least = 0, .at_most = 1e6});
  v.field("clip_norm", o.clip_norm,
          "a longer averaged gradient is scaled down to this L2 norm; 0: never", {.at_least = 0});
  v.field("warmup_steps", o.warmup_steps, "the learning rate rises linearly over so many steps");
  v.field("total_steps", o.decay_steps, "and falls linearly to 0 at this step; 0: it stays");
}

template <class V>
void describe(V& v, training_options& o) {
  v.kind("method", o.method, method_kinds(), "how the swarm trains");
  v.field("micro_batch", o.micro_batch,
          "samples in one compute job, or in one local step of a method that has such",
          {.at_least = 1, .at_most = 1e6});
  v.field("epochs", o.epochs, "the run ends after so many; 0: only `stop_time` ends it");
  v.field("min_refresh", o.min_refresh, "a peer publishes and reads progress at most this often",
          {.above = 0});
  v.field("max_refresh", o.max_refresh, "and at least this often", {.above = 0});
  v.field("record_lifetime", o.record_lifetime,
          "a peer whose progress record is older counts as gone", {.above = 0});
  v.field("max_uploads", o.max_uploads,
          "joiners that a peer sends its state to at once; it sends further ones elsewhere",
          {.at_least = 1, .at_most = 64, .hide_default = true});
  v.field("start_from", o.start_from,
          "a checkpoint that every peer begins with instead of a fresh model, relative to the "
          "scenario's folder; "
          "the data goes on behind what it has used",
          {.hide_default = true});
  v.field("checkpoint_every", o.checkpoint_every,
          "epochs between two files in `checkpoints/`, written by whoever is there first; 0: only "
          "`final.ckpt`",
          {.hide_default = true});
  v.field("optimizer", o.optimizer, "the step at the end of an epoch");
}

template <class V>
void describe(V& v, averaging_options& o) {
  v.field("group_size", o.group_size, "most members of a group",
          {.at_least = 1, .at_most = 4'000'000});
  v.field("grid", o.grid,
          "of methods with small groups: where peers live, like `8x8` or `4x4x4`; in a round those "
          "that share a row average",
          {.hide_default = true, .otherwise = "the smallest square that holds all hosts"});
  v.field("min_group_size", o.min_group_size,
          "a smaller group fails with `group_too_small` and tries again",
          {.at_least = 1, .at_most = 4'000'000});
  v.field("matchmaking_time", o.matchmaking_time,
          "the leader waits at most this long for known peers; who misses groups again and again, "
          "up to four times as long",
          {.above = 0});
  v.field("round_timeout", o.round_timeout, "a round that lasts longer fails", {.above = 0});
  v.field("sender_timeout", o.sender_timeout,
          "a reducer that hears nothing of a sender for this long goes on without it",
          {.above = 0});
  v.field("chunk_size", o.chunk_size, "parts travel in pieces of at most this size",
          {.at_least = 1});
  v.field("split", o.split,
          "how the vector is split among its reducers: `adaptive` gives each a part that suits its "
          "line (DeDLOC); `equal` gives all that can be reached the same (all-reduce); "
          "`parameter_server` gives everything to the member with the best line",
          {.hide_default = true});
  v.field("aggregator", o.aggregator,
          "what a reducer makes of the members' contributions: the `mean` weighted by samples",
          {.hide_default = true, .one_of = actors::aggregators().names()});
  v.field("compression", o.compression,
          "how what is averaged is written on its way: `float16` and `bfloat16` in 2 bytes a "
          "value, `uniform8` and "
          "`blockwise8` in 1; `size_adaptive`: tensors of 2^16 values and more in 1, others in 2. "
          "`top_k`: members "
          "send their largest values, in 8 bytes each, and keep what they did not send for the "
          "next round "
          "(synchronous)",
          {.hide_default = true});
  v.field(
      "means_compression", o.means_compression,
      "how the means are written on their way back, if not as `compression` says; with `top_k`: "
      "`none`. Any but `top_k`",
      {.hide_default = true});
  v.field("top_k_fraction", o.top_k_fraction, "of the values that `top_k` sends, in each piece",
          {.at_least = 1e-6, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("power_sgd_rank", o.power_sgd_rank,
          "synchronous: gradients are averaged as matrices of this rank (PowerSGD), in two rounds "
          "of one group; "
          "4 is usual; 0: as they are. Other codecs than `top_k` may apply to both",
          {.at_most = 4096, .hide_default = true});
}

template <class V>
void describe(V& v, fault& o) {
  v.action(o);
  v.field("select", o.select,
          "glob over host names (`*`, `?`, `[a-c]`); those of the data shard only if it begins so "
          "(`shard-0`, `shard-*`)",
          {.otherwise = "required, but for `swizzle-clog` and shapes of `partition`: all peers"});
  v.field("regions", o.regions, "only hosts in these regions", {.hide_default = true});
  v.field("mode", o.mode, "how many of the selected hosts that run, drawn each time",
          {.hide_default = true});
  v.field("value", o.value,
          "of `fixed`: hosts; of `fixed-percent` and `random-max-percent`: of the selected, `20%`",
          {.at_least = 0, .fraction = true, .hide_default = true});
  v.field("at", o.at, "when; of `every`: the first time");
  v.field("every", o.every, "again and again", {.above = 0});
  v.field("until", o.until, "of `every` and `on`: not after this");
  v.field("on", o.on, "instead: a probe; strikes the selected host that reaches it");
  v.field("nth", o.nth, "with `on`: at the n-th time that a selected host reaches it",
          {.at_least = 1, .hide_default = true});
  v.field("probability", o.probability,
          "that it strikes, drawn each time; with `on`: from the n-th time on",
          {.above = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("duration", o.lasts, "how long it lasts; 0: until the run ends", {.hide_default = true});
  v.field("downtime", o.downtime, "of `restart`: how long it is away",
          {.hide_default = true, .otherwise = "required there"});
  v.field("direction", o.cut,
          "of `partition`: what is lost. `from`: what the selected send to others; `to`: what they "
          "are sent",
          {.hide_default = true});
  v.field("rate", o.rate, "of `throttle` and `netem`: the line has at most this",
          {.above = 0, .hide_default = true});
  v.field("factor", o.factor, "of `throttle`: the line has this share of its rate",
          {.above = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("delay", o.path.delay, "of `netem`: this much more, one way", {.hide_default = true});
  describe_impairments(v, o.path);
  v.field("ahead", o.ahead, "of `clock: bump`: the clock is set forward", {.hide_default = true});
  v.field("behind", o.behind, "of `clock: bump`: the clock is set back", {.hide_default = true});
  v.field("drift", o.drift, "of `clock: skew`: how much faster it runs, `-5%`: slower",
          {.above = -1, .at_most = 10, .fraction = true, .hide_default = true});
}

template <class V>
void describe(V& v, record_options& o) {
  v.field("events", o.events, "what `events.jsonl.zst` holds");
  v.field("peers", o.peers,
          "with `events: all`: only events of a sample of so many peers; 0: of all");
  v.field("transfers", o.transfers,
          "`transfers.jsonl.zst` holds the first so many transfers of bulk, for `shoal explain`; "
          "0: none");
  v.field("metrics_interval", o.metrics_interval, "virtual time between two rows of `metrics.csv`",
          {.above = 0});
  v.field("held_out_every", o.held_out_every,
          "epochs between two measurements of the held-out loss; 0: only at the start and the end");
}

template <class V>
void describe(V& v, expectation& o) {
  v.field("min", o.min, "the metric is at least this");
  v.field("max", o.max, "the metric is at most this");
}

/// What a training run and a study have in common; all that is printed of a study.
template <class V>
void describe_head(V& v, scenario& o) {
  v.field("name", o.name, "shown in reports", {.otherwise = "the file's name without its ending"});
  v.field("description", o.description, "for people");
  v.field("seed", o.seed, "the same seed gives the same history");
  v.field("averaging_study", o.study,
          "instead of a training run: peers that only average, by several strategies. Nothing "
          "else but `name`, `description` and `seed` stands beside it");
}

template <class V>
void describe(V& v, scenario& o) {
  describe_head(v, o);
  v.field("world", o.world,
          "`sim`: virtual time; `emulate`: real time on one machine; `loopback`: the same with "
          "real connections between its hosts, and nothing "
          "emulated but the devices; `cluster`: one process for each host, `shoal node`",
          {.one_of = "sim, emulate, loopback, cluster"});
  v.field("stop_time", o.stop_time, "virtual time at which the run ends at the latest",
          {.required = !o.study, .above = 0});
  v.field("network", o.network, "regions and the delays between them");
  v.field("devices", o.devices, "what peers compute with, by name");
  v.keyed("peers", o.peers, "groups of hosts alike, by name");
  v.field("data", o.data, "the text and the host that streams it");
  v.field("workload", o.workload, "what is trained");
  v.field("training", o.training, "epochs and progress");
  v.field("averaging", o.averaging, "rounds in which gradients are averaged");
  v.field("faults", o.faults, "what goes wrong, and when");
  v.field("failpoints", o.failpoints,
          "a test of Shoal itself: the seed picks half of the failpoints of its protocols (a full "
          "group, a busy donor, an answer that does not come), and each of them is taken with this "
          "probability",
          {.at_least = 0,
           .at_most = 0.5,
           .fraction = true,
           .hide_default = true,
           .formerly = "rare_branches"});
  v.field("record", o.record, "what the run directory holds");
  v.field("expect", o.expect,
          "what has to be true of `summary.json`, by metric: a run that misses it fails");
}

} // namespace shoal::scenarios
