// The options of the program 'experts', which are the section `experts` of a scenario file. In such
// a run the hosts of a swarm hold experts, and trainers learn with them.
// scenarios/schema/describe.hpp explains describe().
#pragma once

#include "kernels/base/units.hpp"
#include "kernels/mixing.hpp"
#include "scenarios/experts/gate_option.hpp"
#include "scenarios/schema/rule.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct experts_options {
  std::string images, labels;    ///< empty: made-up images
  std::vector<std::string> text; ///< files of a text to learn instead of images
  std::uint64_t context = 32;
  std::uint64_t trunk_layers = 1;
  std::uint64_t heads = 4;
  double holdout = 0.1;
  std::uint64_t size = 64;
  std::uint64_t classes = 10;
  bool timing = false;
  std::uint64_t timing_width = 1024;
  std::uint64_t layers = 2;
  kernels::grid grid{4, 2};
  std::uint64_t width = 16;
  std::uint64_t chosen = 4;
  std::uint64_t look_ups = 64;
  double balance = 0.01;
  std::string gate = "softmax";
  std::uint64_t hosts = 8;
  std::uint64_t trainers = 4;
  std::uint64_t batch = 8;
  std::uint64_t steps = 200;
  std::uint64_t evaluate_every = 50;
  double learning_rate = 1e-3;
  std::uint64_t copies = 2;
  duration copy_every = std::chrono::seconds(30);
  duration record_lifetime = std::chrono::minutes(1);
  duration share_every = std::chrono::seconds(10);
  std::uint64_t most_staleness = 0;
  duration timeout = std::chrono::seconds(5);
  duration delay = std::chrono::milliseconds(25);
  data_rate rate{100e6};
  duration batch_time = std::chrono::milliseconds(1);
  duration row_time = std::chrono::microseconds(100);
  duration step_time = std::chrono::milliseconds(10);
  duration lifetime{};
  duration downtime = std::chrono::seconds(30);
  double lose_share = 0;
  duration lose_at = std::chrono::minutes(10);
  duration stop_time = std::chrono::hours(1);
  bool operator==(const experts_options&) const = default;
};

template <class V>
void describe(V& v, experts_options& o) {
  v.field(
      "images", o.images,
      "IDX file of images to learn, such as MNIST's `t10k-images-idx3-ubyte`, plain or with the "
      "ending `.gz`. A relative path begins where the program runs, and a tenth is held out. "
      "Without it the run makes up images");
  v.field("labels", o.labels, "IDX file of the labels");
  v.field(
      "text", o.text,
      "files or globs of a text whose bytes the network learns to predict, instead of images. A "
      "row is then a token, and attention is in the trunk");
  v.field("context", o.context, "with `text`: bytes of a sample that a prediction may use",
          {.at_least = 1, .at_most = 4096});
  v.field("trunk_layers", o.trunk_layers,
          "with `text`: layers of the transformer that each trainer has before the experts",
          {.at_least = 0, .at_most = 64});
  v.field("heads", o.heads,
          "with `text`: heads of the attention; `width` is a multiple of twice "
          "as many",
          {.at_least = 1, .at_most = 256});
  v.field("holdout", o.holdout, "with `text`: the share at the end of each file that is held out",
          {.above = 0, .at_most = 0.9, .fraction = true});
  v.field("size", o.size, "bytes of an image", {.at_least = 1, .at_most = 1 << 20});
  v.field("classes", o.classes, "number of labels", {.at_least = 2, .at_most = 256});
  v.field("timing", o.timing,
          "experts compute nothing, and rows and copies travel as sizes: the run predicts times");
  v.field(
      "timing_width", o.timing_width,
      "with `timing`: values of a row on the wire. A copy has the size of a feed-forward expert "
      "of this width and its optimizer",
      {.at_least = 1, .at_most = 16384});
  v.field("layers", o.layers, "layers of experts", {.at_least = 1, .at_most = 64});
  v.field("grid", o.grid, "the grid on which each layer's experts stand, like 32x32 or 8x8x8");
  v.field("width", o.width, "values of a sample between two layers",
          {.at_least = 1, .at_most = 4096});
  v.field("chosen", o.chosen, "experts that a sample gets in each layer",
          {.at_least = 1, .at_most = 256});
  v.field("look_ups", o.look_ups, "the most prefixes that a search for experts expands",
          {.at_least = 1, .at_most = 1e6});
  v.field("balance", o.balance, "factor of the gates' balance loss",
          {.at_least = 0, .at_most = 1000});
  describe_gate(v, o.gate);
  v.field("hosts", o.hosts, "hosts of experts, to which the experts are dealt at random",
          {.at_least = 1, .at_most = 16384});
  v.field("trainers", o.trainers, "how many train, without waiting for each other",
          {.at_least = 1, .at_most = 4096});
  v.field("batch", o.batch, "samples of a step", {.at_least = 1, .at_most = 4096});
  v.field("steps", o.steps, "steps of each trainer; 0: until `stop_time`", {.at_most = 1e9});
  v.field("evaluate_every", o.evaluate_every,
          "steps of the first trainer between two measurements with held-out samples; 0: none",
          {.at_most = 1e9});
  v.field("learning_rate", o.learning_rate, "the rate of Adam (AMSGrad), of experts and trunks",
          {.above = 0, .at_most = 10});
  v.field("copies", o.copies, "other hosts that keep a copy of an expert",
          {.at_least = 0, .at_most = 64});
  v.field("copy_every", o.copy_every, "the time between two copies of an expert that has changed");
  v.field("record_lifetime", o.record_lifetime,
          "how long an expert counts as alive after its host announced it; renewed three times as "
          "often");
  v.field("share_every", o.share_every,
          "the time after which a trainer sends its trunk to another");
  v.field("most_staleness", o.most_staleness,
          "an expert refuses a gradient after more steps since the forward pass; 0: never");
  v.field("timeout", o.timeout,
          "an expert that has not answered by then is left out. It is left out sooner if earlier "
          "answers of its host came sooner, but not within a tenth of this time");
  v.field("delay", o.delay, "between two hosts, one way");
  v.field("rate", o.rate, "the rate of each line, both ways", {.above = 0});
  v.field("batch_time", o.batch_time, "the time of a batch, whatever its rows");
  v.field("row_time", o.row_time,
          "the time of a row in an expert; a backward pass takes three times as long");
  v.field("step_time", o.step_time, "the time of a step in the trainer's own trunk");
  v.field("lifetime", o.lifetime, "the mean life of a host of experts, exponential; 0: for ever");
  v.field("downtime", o.downtime, "the mean time after which a dead host is back, exponential");
  v.field("lose_share", o.lose_share, "the share of the hosts of experts that dies at once",
          {.at_least = 0, .at_most = 1, .fraction = true});
  v.field("lose_at", o.lose_at, "when they die, after the trainers began");
  v.field("stop_time", o.stop_time, "the run ends then, in virtual time after its beginning");
}

} // namespace shoal::scenarios
