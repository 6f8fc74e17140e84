// The options of the program 'pipeline', which are the section `pipeline` of a scenario file. In
// such a run the hosts of a swarm hold the stages of one model, and trainers learn through them.
// scenarios/schema/describe.hpp explains describe().
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/pipeline/option_meanings.hpp"
#include "scenarios/schema/rule.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct pipeline_options {
  std::vector<std::string> files; ///< required unless `timing`
  double holdout = 0.1;
  std::uint64_t layers = 4, heads = 2, dim = 32, context = 32;
  bool timing = false;
  std::uint64_t timing_width = 1024;
  std::uint64_t timing_parameters = 1'000'000;
  std::uint64_t stages = 4;
  std::uint64_t hosts = 16;
  std::uint64_t trainers = 2;
  std::uint64_t batch = 32, micro_batch = 4, in_flight = 8;
  std::uint64_t steps = 100;
  std::uint64_t evaluate_every = 20;
  bool baseline = true;
  double learning_rate = 3e-3;
  std::uint64_t warmup_steps = 5;
  std::string activations = "none"; ///< a codec of activation_codec()
  duration rebalance_every{};
  duration sample_time = std::chrono::milliseconds(10);
  double slowest = 1;
  duration step_time = std::chrono::milliseconds(20);
  duration matchmaking_time = std::chrono::seconds(5);
  duration refresh = std::chrono::milliseconds(500);
  duration delay = std::chrono::milliseconds(25);
  data_rate rate{100e6};
  duration lifetime{};
  duration downtime = std::chrono::seconds(30);
  duration stop_time = std::chrono::hours(2);
  bool operator==(const pipeline_options&) const = default;
};

template <class V>
void describe(V& v, pipeline_options& o) {
  v.field("files", o.files,
          "the text to learn: files, or globs such as `/usr/share/common-licenses/*`. A relative "
          "path begins where the program runs. `timing` needs none");
  v.field("holdout", o.holdout, "the last part of each file, which measures the loss",
          {.above = 0, .at_most = 0.9, .fraction = true});
  v.field("layers", o.layers, "layers of the byte transformer", {.at_least = 1, .at_most = 256});
  v.field("heads", o.heads, "heads of attention; divides `dim`", {.at_least = 1, .at_most = 256});
  v.field("dim", o.dim, "the width of the model; `dim / heads` is even",
          {.at_least = 2, .at_most = 4096});
  v.field("context", o.context, "bytes of text in a sample", {.at_least = 1, .at_most = 4096});
  v.field("timing", o.timing,
          "hosts compute nothing, and activations and states travel as sizes: the run predicts "
          "times. It needs no `layers`, `heads` and `dim`");
  v.field("timing_width", o.timing_width, "with `timing`: values of a byte between two stages",
          {.at_least = 1, .at_most = 1 << 20});
  v.field("timing_parameters", o.timing_parameters, "with `timing`: parameters of a stage",
          {.at_least = 1, .at_most = 1e10});
  v.field("stages", o.stages, pipeline_meaning::stages, {.at_least = 1, .at_most = 256});
  v.field("hosts", o.hosts, "hosts of stages, dealt to the stages in turn",
          {.at_least = 1, .at_most = 16384});
  v.field("trainers", o.trainers,
          "hosts that send samples through the stages. They share each batch, and live for ever",
          {.at_least = 1, .at_most = 4096});
  v.field("batch", o.batch, "samples of a step, of all trainers",
          {.at_least = 1, .at_most = 1 << 20});
  v.field("micro_batch", o.micro_batch, "samples that a trainer sends together",
          {.at_least = 1, .at_most = 65536});
  v.field("in_flight", o.in_flight, pipeline_meaning::in_flight, {.at_least = 1, .at_most = 65536});
  v.field("steps", o.steps, "steps of the model; 0: until `stop_time`", {.at_most = 1e9});
  v.field("evaluate_every", o.evaluate_every,
          "steps between two measurements with the held-out text; 0: only at the end",
          {.at_most = 1e9});
  v.field("baseline", o.baseline,
          "the same steps are made on one machine, without a swarm, and the summary has its loss "
          "beside the swarm's");
  v.field("learning_rate", o.learning_rate, "the rate of AdamW", {.above = 0, .at_most = 10});
  v.field("warmup_steps", o.warmup_steps, "steps in which the rate rises", {.at_most = 1e9});
  v.field("activations", o.activations, pipeline_meaning::activations,
          {.one_of = pipeline_meaning::activation_codecs});
  v.field("rebalance_every", o.rebalance_every, pipeline_meaning::rebalance_every);
  v.field("sample_time", o.sample_time,
          "the time of one sample forward through one stage; a backward pass takes three times as "
          "long",
          {.above = 0});
  v.field("slowest", o.slowest,
          "each host needs `sample_time` times a factor that is drawn between 1 and this",
          {.at_least = 1, .at_most = 1000});
  v.field("step_time", o.step_time, "the time of a step of the optimizer in a stage");
  v.field("matchmaking_time", o.matchmaking_time,
          "how long the hosts of a stage wait for each other to average", {.above = 0});
  v.field("refresh", o.refresh,
          "how often hosts renew their records and look at those of others. A large pipeline needs "
          "fewer messages with 10 s",
          {.above = 0});
  v.field("delay", o.delay, "between two hosts, one way");
  v.field("rate", o.rate, "the rate of each line, both ways", {.above = 0});
  v.field("lifetime", o.lifetime, "the mean life of a host of a stage, exponential; 0: for ever");
  v.field("downtime", o.downtime, "the mean time after which a dead host is back, exponential");
  v.field("stop_time", o.stop_time, "the run ends then, in virtual time after its beginning");
}

} // namespace shoal::scenarios
