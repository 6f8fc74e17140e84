// The methods 'moshpit' and 'local_updates'. Each peer makes optimizer steps of its own, and peers
// average their parameters. With Moshpit SGD they meet in small groups, another group each time.
// With local updates (hivemind's use_local_updates) they meet in one group after each target batch.
// Source: Ryabinin et al., arXiv:2103.03239.
#include "actors/training/moshpit_peer.hpp"
#include "scenarios/chaos/dice.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/roles/role.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace shoal::scenarios {

// A method may name its parts as other methods name theirs.
namespace moshpit_method_parts {
namespace {

/// The options that both methods have.
struct averaged_parameters_options {
  std::uint64_t max_staleness = 4; ///< a peer whose last average is more rounds old downloads
  bool average_optimizer = false;  ///< the optimizer's state, too
  bool operator==(const averaged_parameters_options&) const = default;
};

struct small_groups_options : averaged_parameters_options {
  std::uint64_t local_steps = 8; ///< optimizer steps of each peer between two rounds, on average
  bool operator==(const small_groups_options&) const = default;
};

struct local_updates_options : averaged_parameters_options {
  std::uint64_t target_batch = 256;
  bool operator==(const local_updates_options&) const = default;
};

template <class V>
void describe_common(V& v, averaged_parameters_options& o) {
  v.field("max_staleness", o.max_staleness,
          "a peer whose last average is more rounds old than this downloads",
          {.at_least = 1, .at_most = 1e6, .hide_default = true});
  v.field("average_optimizer", o.average_optimizer, "the optimizer's state is averaged, too",
          {.hide_default = true});
}

template <class V>
void describe(V& v, small_groups_options& o) {
  v.field("local_steps", o.local_steps,
          "optimizer steps between two rounds, on average over the peers; a round is an epoch",
          {.at_least = 1, .at_most = 1e9, .hide_default = true});
  describe_common(v, o);
}

template <class V>
void describe(V& v, local_updates_options& o) {
  v.field("target_batch", o.target_batch, "samples of the whole swarm between two rounds",
          {.at_least = 1, .at_most = 1e12});
  describe_common(v, o);
}

/// Builds the part that both definitions have in common.
template <class Options>
method_definition averaged_parameters(const char* name) {
  method_definition out;
  out.name = name;
  out.options = options_box::of(Options{});
  return out;
}

method_traits common_traits(const averaged_parameters_options& o) {
  method_traits traits;
  traits.averages_parameters = true;
  traits.weights_are_samples = false;
  traits.computes_meanwhile = true;
  traits.max_epoch_difference = o.max_staleness;
  return traits;
}

caf::actor spawn_peer(const role_site& site, const averaged_parameters_options& o,
                      actors::moshpit_options how) {
  how.max_staleness = o.max_staleness;
  how.average_optimizer = o.average_optimizer;
  return caf::actor_cast<caf::actor>(site.system.spawn<actors::moshpit_peer>(
      std::ref(site.on), site.config, how, site.pool, site.dht));
}

const small_groups_options& moshpit_of(const scenario& what) {
  return what.training.method.as<small_groups_options>();
}
const local_updates_options& local_updates_of(const scenario& what) {
  return what.training.method.as<local_updates_options>();
}

} // namespace
} // namespace moshpit_method_parts

method_definition moshpit_method() {
  using namespace moshpit_method_parts;
  auto out = averaged_parameters<small_groups_options>("moshpit");
  out.meaning = "local steps, and parameters averaged in small groups (Moshpit SGD)";
  out.traits = [](const scenario& what) {
    auto traits = common_traits(moshpit_of(what));
    // The whole swarm's samples in one local step of each peer.
    traits.baseline_batch = count_of(what) * what.training.micro_batch;
    traits.whole_swarm = false;
    traits.uses_grid = true;
    return traits;
  };
  out.steps_of_machine = [](const scenario& what, std::uint64_t epoch) {
    return epoch * moshpit_of(what).local_steps;
  };
  out.check = [](const scenario& what, checking& report) {
    check_optimizer_average(what, moshpit_of(what).average_optimizer, report);
  };
  out.drawn_share = 1;
  out.draw = [](dice& d, drawn_method& into) {
    const auto local_steps = d.between(2, 12);
    into.batch = local_steps * into.micro_batch * into.peers;
    into.may_average_optimizer = true;
    add_option(into.training, fmt::format("method: moshpit, local_steps: {}", local_steps));
    // A larger grid leaves most peers alone in their rows.
    const auto side = static_cast<unsigned>(std::max(2.0, std::floor(std::sqrt(into.peers))));
    add_option(into.averaging, fmt::format("grid: {}x{}", side, side));
  };
  out.speed = [](const scenario& what) {
    const auto& o = moshpit_of(what);
    return speed_of_local_steps(what, samples_between_rounds(what), grid_of(what).side,
                                o.max_staleness);
  };
  out.variants = [](const scenario& like) {
    const auto hosts = static_cast<double>(count_of(like));
    const auto local_steps =
        std::max(1.0, std::round(samples_between_rounds(like) / hosts /
                                 static_cast<double>(like.training.micro_batch)));
    std::vector<method_variant> out;
    // Grids of two and of three dimensions that hold all hosts.
    for (const auto& [dimensions, form] :
         {std::pair{2.0, "{0}x{0}"}, std::pair{3.0, "{0}x{0}x{0}"}}) {
      const auto side = std::ceil(std::pow(hosts, 1 / dimensions) - 1e-9);
      if (side < 2 || (dimensions > 2 && hosts < 27)) continue;
      out.push_back({fmt::format("groups of {:.0f}", side),
                     {{"local_steps", fmt::format("{:.0f}", local_steps)}},
                     {{"grid", fmt::format(fmt::runtime(form), static_cast<int>(side))}}});
    }
    return out;
  };
  out.spawn = [](const role_site& site) {
    const auto& options = moshpit_of(site.what);
    return spawn_peer(site, options,
                      {.local_steps = options.local_steps, .grid = grid_of(site.what)});
  };
  return out;
}

method_definition local_updates_method() {
  using namespace moshpit_method_parts;
  auto out = averaged_parameters<local_updates_options>("local_updates");
  out.meaning =
      "steps of each peer's own, and everybody's parameters averaged after each `target_batch`";
  out.traits = [](const scenario& what) {
    auto traits = common_traits(local_updates_of(what));
    traits.target_batch = traits.baseline_batch = local_updates_of(what).target_batch;
    return traits;
  };
  out.steps_of_machine = [](const scenario&, std::uint64_t epoch) { return epoch; };
  out.check = [](const scenario& what, checking& report) {
    check_micro_batch(what, local_updates_of(what).target_batch, report);
    check_optimizer_average(what, local_updates_of(what).average_optimizer, report);
  };
  out.drawn_share = 1;
  out.draw = [](dice&, drawn_method& into) {
    into.may_average_optimizer = true;
    add_option(into.training, fmt::format("target_batch: {}, method: local_updates", into.batch));
  };
  out.configure = [](const scenario& what, actors::peer_config& into) {
    into.target_batch = local_updates_of(what).target_batch;
  };
  out.spawn = [](const role_site& site) {
    return spawn_peer(site, local_updates_of(site.what),
                      {.local_batch = true,
                       .grid = {static_cast<std::uint32_t>(site.what.averaging.group_size), 1}});
  };
  return out;
}

} // namespace shoal::scenarios
