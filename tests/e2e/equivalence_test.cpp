// A synchronous step of the swarm is numerically a step with one large batch on one machine. For
// each epoch one process replays the exact sample indices of the round. It starts from the swarm's
// own parameters, so that differences do not add up over epochs.
//   gradient: |a - b| / |b| <= 1e-6     update: |a - b| / |b| <= 1e-4     (Euclidean norms)
#include "actors/averaging/observations.hpp"
#include "kernels/learn/text.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/optimizer.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <span>
#include <vector>

using namespace shoal;
using namespace shoal::e2e;

namespace {

constexpr std::uint64_t epochs = 6;
constexpr const char* text = "/usr/share/common-licenses/GPL-3";

/// `more` peers, and lines at the end.
std::string scenario(const std::string& optimizer, const std::string& more_peers = {},
                     const std::string& at_end = {}) {
  return fmt::format("seed: 3\n"
                     "stop_time: 10min\n"
                     "network: {{default_delay: 20ms, default_jitter: 5ms}}\n"
                     "devices:\n"
                     "  a: {{samples_per_second: 5, jitter: 10%}}\n"
                     "  b: {{samples_per_second: 11, jitter: 10%}}\n"
                     "  c: {{samples_per_second: 23, jitter: 10%}}\n"
                     "  d: {{samples_per_second: 37, jitter: 10%}}\n"
                     "peers:\n"
                     "  a: {{up: 5Mbit, down: 20Mbit, device: a}}\n"
                     "  b: {{up: 10Mbit, down: 20Mbit, device: b}}\n"
                     "  c: {{up: 20Mbit, down: 20Mbit, device: c}}\n"
                     "  d: {{up: 20Mbit, down: 50Mbit, device: d}}\n"
                     "{}"
                     "data: {{files: [{}]}}\n"
                     "workload: {{kind: transformer, layers: 2, heads: 2, dim: 32, context: 32}}\n"
                     "training: {{target_batch: 48, micro_batch: 4, epochs: {}, optimizer: {}}}\n"
                     "record: {{events: none}}\n{}",
                     more_peers, text, epochs, optimizer, at_end);
}

/// The swarm's work in one epoch.
struct epoch_record {
  std::map<std::uint32_t, std::uint64_t> weights; // by member
  std::vector<std::uint64_t> indices;
  std::vector<float> gradient;
  bool ok = false;
  bool auxiliary = false;
};

struct errors {
  double gradient = 0, update = 0; // the largest of all epochs
  std::size_t epochs = 0;
  std::size_t different_weights = 0; // epochs whose members did unequal work
  std::size_t most_members = 0, fewest_members = SIZE_MAX;
  bool auxiliaries = false; // some were in the rounds
};

double distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{b[i]} * b[i];
  }
  return std::sqrt(difference / size);
}

std::vector<float> minus(std::span<const float> a, std::span<const float> b) {
  std::vector<float> out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] - b[i];
  return out;
}

/// `old` steps: how much older the state is at which gradients are computed than the one that is
/// stepped from.
errors compare(const std::string& yaml, const kernels::optimizer_config& optimizer,
               const std::string& conduct, std::uint64_t old = 0) {
  std::map<std::uint64_t, epoch_record> seen;
  std::map<actors::group_id, std::map<std::uint32_t, actors::contributed>> rounds;
  scenarios::runner_options options;
  options.share_states = false;
  options.conduct = conduct;
  options.on_observation = [&](const actors::host&, const actors::observation& what) {
    if (auto* contribution = actors::get_if<actors::contributed>(&what))
      rounds[contribution->group][contribution->member] = *contribution;
    auto* ended = actors::get_if<actors::round_ended>(&what);
    // A member that only reduces ends without values.
    if (ended == nullptr || ended->outcome != actors::outcome::ok || seen.contains(ended->epoch) ||
        ended->values.empty())
      return;
    auto& record = seen[ended->epoch];
    record.ok = true;
    for (const auto& [member, contribution] : rounds.at(ended->group)) {
      record.auxiliary = record.auxiliary || !contribution.takes;
      if (contribution.weight == 0) continue;
      record.weights[member] = contribution.weight;
      for (const auto& range : contribution.samples)
        for (auto index = range.first; index < range.end(); ++index)
          record.indices.push_back(index);
    }
    std::sort(record.indices.begin(), record.indices.end());
    record.gradient.assign(ended->values.floats().begin(), ended->values.floats().end());
  };
  auto run = run_yaml(yaml, epochs, std::move(options));
  if (conduct == "honest") CHECK(run.errors.empty());

  learn::transformer model({.layers = 2, .heads = 2, .dim = 32, .context = 32});
  auto corpus =
      learn::text_corpus::load(std::vector<std::string>{text}, {.context = 32, .seed = 3});
  REQUIRE(corpus);
  auto parameters = model.initial_parameters(3);
  std::vector<float> state(kernels::state_size(optimizer, parameters.size()));
  errors out;
  std::deque<std::vector<float>> before(
      old + 1, parameters); // the newest last; the first epochs have no step
  const auto first = seen.begin()->first;
  for (std::uint64_t epoch = first; epoch < epochs; ++epoch) {
    const auto& record = seen.at(epoch);
    std::vector<std::byte> batch(record.indices.size() * model.sample_bytes());
    for (std::size_t i = 0; i < record.indices.size(); ++i)
      corpus->sample(record.indices[i],
                     std::span(batch).subspan(i * model.sample_bytes(), model.sample_bytes()));
    std::vector<float> gradient(parameters.size());
    model.accumulate_gradient(before.front(), batch, record.indices.size(), gradient);
    for (auto& g : gradient) g /= static_cast<float>(record.indices.size());

    auto ours = parameters, theirs = parameters;
    auto our_state = state, their_state = state;
    auto number = static_cast<std::int64_t>(epoch - first) + 1;
    kernels::step(optimizer, number, gradient, ours, our_state, model.layout());
    kernels::step(optimizer, number, record.gradient, theirs, their_state, model.layout());
    out.gradient = std::max(out.gradient, distance(record.gradient, gradient));
    out.update = std::max(out.update, distance(minus(theirs, parameters), minus(ours, parameters)));
    out.most_members = std::max(out.most_members, record.weights.size());
    out.fewest_members = std::min(out.fewest_members, record.weights.size());
    out.auxiliaries = out.auxiliaries || record.auxiliary;
    std::vector<std::uint64_t> weights;
    for (const auto& [member, weight] : record.weights) weights.push_back(weight);
    if (std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to<>{}) != weights.end())
      ++out.different_weights;
    ++out.epochs;
    parameters = std::move(theirs);
    before.push_back(parameters);
    before.pop_front();
    state = std::move(their_state);
  }
  // The steps above are those of the swarm, to the last bit.
  if (conduct == "honest")
    CHECK(run.summary().state_hash.value() == hash_of(std::as_bytes(std::span(parameters))).hex());
  return out;
}

struct optimizer_case {
  const char* yaml;
  kernels::optimizer_config config;
};

const optimizer_case sgd{
    "{kind: sgd, learning_rate: 0.2, momentum: 0.9}",
    {.kind = kernels::optimizer_kind::sgd, .learning_rate = 0.2, .momentum = 0.9}};
const optimizer_case adamw{"{kind: adamw, learning_rate: 0.003, beta1: 0.9, beta2: 0.95, epsilon: "
                           "1e-8, weight_decay: 0.01}",
                           {.kind = kernels::optimizer_kind::adamw,
                            .learning_rate = 0.003,
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .epsilon = 1e-8,
                            .weight_decay = 0.01}};

const optimizer_case lamb{
    "{kind: lamb, learning_rate: 0.01, beta1: 0.9, beta2: 0.95, epsilon: 1e-6, weight_decay: 0.01}",
    {.kind = kernels::optimizer_kind::lamb,
     .learning_rate = 0.01,
     .beta1 = 0.9,
     .beta2 = 0.95,
     .epsilon = 1e-6,
     .weight_decay = 0.01}};

void check_equivalent(const optimizer_case& with) {
  auto result = compare(scenario(with.yaml), with.config, "honest");
  MESSAGE("gradient " << result.gradient << ", update " << result.update
                      << ", epochs of unequal work " << result.different_weights << " of "
                      << result.epochs);
  CHECK(result.epochs == epochs);
  CHECK(result.different_weights == epochs);
  CHECK(result.gradient <= 1e-6);
  CHECK(result.update <= 1e-4);
}

void check_not_equivalent(const optimizer_case& with, const std::string& conduct) {
  auto result = compare(scenario(with.yaml), with.config, conduct);
  MESSAGE("gradient " << result.gradient << ", update " << result.update);
  CHECK(result.gradient > 1e-3);
  CHECK(result.update > 1e-3);
}

} // namespace

TEST_CASE("four peers of unequal speed step as one machine with one large batch, with SGD") {
  check_equivalent(sgd);
}
TEST_CASE("four peers of unequal speed step as one machine with one large batch, with AdamW") {
  check_equivalent(adamw);
}
TEST_CASE("four peers of unequal speed step as one machine with one large batch, with LAMB") {
  check_equivalent(lamb);
}
TEST_CASE("equal weights for unequal work are not equivalent to one machine") {
  check_not_equivalent(sgd, "equal_weights");
  check_not_equivalent(adamw, "equal_weights");
  check_not_equivalent(lamb, "equal_weights");
}
TEST_CASE("dividing by peers instead of samples is not equivalent to one machine") {
  check_not_equivalent(sgd, "divide_by_peers");
}

TEST_CASE("client-only and auxiliary peers, and departures before a group has begun, change "
          "nothing of that") {
  // `gone` leaves while its leader gathers: its samples are in no round of that epoch, and the rest
  // step without it.
  const std::string peers = "  client: {up: 5Mbit, down: 20Mbit, device: b, nat: outbound_only}\n"
                            "  gone: {count: 2, up: 5Mbit, down: 20Mbit, device: c}\n"
                            "  helper: {up: 100Mbit, down: 100Mbit, device: a, role: auxiliary}\n";
  const std::string faults = "faults:\n"
                             "  - {kill: process, select: gone-0, on: matchmaking.joined, nth: 2}\n"
                             "  - {kill: machine, select: gone-1, on: matchmaking.begun, nth: 4}\n";
  for (const auto& with : {sgd, lamb}) {
    auto result = compare(scenario(with.yaml, peers, faults), with.config, "honest");
    MESSAGE("gradient " << result.gradient << ", update " << result.update << ", members "
                        << result.fewest_members << " to " << result.most_members);
    CHECK(result.epochs == epochs);
    CHECK(result.most_members == 7);
    CHECK(result.fewest_members == 5);
    CHECK(result.auxiliaries);
    CHECK(result.gradient <= 1e-6);
    CHECK(result.update <= 1e-4);
  }
}

TEST_CASE("with overlap each step is that of one machine with one large batch whose gradients are "
          "one step old") {
  const std::string peers = "  client: {up: 5Mbit, down: 20Mbit, device: b, nat: outbound_only}\n"
                            "  helper: {up: 100Mbit, down: 100Mbit, device: a, role: auxiliary}\n";
  for (const std::string overlap : {"averaging", "update"})
    for (const auto& with : {sgd, adamw, lamb}) {
      const auto yaml = scenario(fmt::format("{}, overlap: {}", with.yaml, overlap), peers);
      const auto result = compare(yaml, with.config, "honest", 1);
      MESSAGE(overlap << ": gradient " << result.gradient << ", update " << result.update
                      << ", members " << result.fewest_members << " to " << result.most_members);
      CHECK(result.epochs == epochs - 1);
      CHECK(result.different_weights == epochs - 1);
      CHECK(result.most_members == 5);
      CHECK(result.fewest_members >=
            3); // a peer that hears late of a round's end finds the next small batch computed
      CHECK(result.auxiliaries);
      CHECK(result.gradient <= 1e-6);
      CHECK(result.update <= 1e-4);
      // This gradient differs from the gradients of the state itself.
      CHECK(compare(yaml, with.config, "honest", 0).gradient > 1e-3);
    }
}
