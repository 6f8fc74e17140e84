// The method 'diloco': local steps of each peer, and an outer optimizer's step with the mean of how
// far they led. Sources: Douillard et al., arXiv:2311.08105 and arXiv:2501.18512.
#include "actors/training/diloco_peer.hpp"
#include "actors/training/diloco_rule.hpp"
#include "actors/training/moshpit_peer.hpp"
#include "kernels/fragments.hpp"
#include "kernels/outer_optimizer.hpp"
#include "scenarios/chaos/dice.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/roles/role.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace shoal::scenarios {

// A method may name its parts as other methods name theirs.
namespace diloco_method_parts {
namespace {

enum class diloco_groups : std::uint8_t { everyone, grid };
constexpr auto names_of(diloco_groups) {
  return std::array{std::pair{diloco_groups::everyone, "everyone"},
                    std::pair{diloco_groups::grid, "grid"}};
}

struct diloco_choices {
  std::uint64_t local_steps = 50;
  double outer_learning_rate = 0.7;
  double outer_momentum = 0.9;
  bool nesterov = true;
  diloco_groups groups = diloco_groups::everyone;
  std::uint64_t quorum = 0;
  duration grace{};
  std::uint64_t fragments = 1;
  kernels::fragment_pattern fragment_pattern = kernels::fragment_pattern::strided;
  std::uint64_t fragment_delay = 0;
  double fragment_blend = 0;
  bool operator==(const diloco_choices&) const = default;
};

const diloco_choices& options_of(const scenario& what) {
  return what.training.method.as<diloco_choices>();
}
bool uses_grid(const scenario& what) {
  return options_of(what).groups == diloco_groups::grid;
}

template <class V>
void describe(V& v, diloco_choices& o) {
  v.field("local_steps", o.local_steps,
          "optimizer steps of each peer from one round of a fragment to its next one",
          {.at_least = 1, .at_most = 1e9});
  v.field("outer_learning_rate", o.outer_learning_rate,
          "the learning rate of the outer optimizer: SGD on the mean of the pseudo-gradients",
          {.at_least = 0, .at_most = 1e6});
  v.field("outer_momentum", o.outer_momentum, "the momentum of the outer optimizer",
          {.at_least = 0, .below = 1});
  v.field("nesterov", o.nesterov, "the outer momentum is Nesterov's", {.hide_default = true});
  v.field(
      "groups", o.groups,
      "the peers that average together; `grid`: the rows of `averaging.grid`, as in Moshpit SGD",
      {.hide_default = true});
  v.field("quorum", o.quorum,
          "a round closes `grace` after so many peers have come; 0: when all of its peers have. "
          "The others keep their local steps for the next round; 1: asynchronous",
          {.at_most = 1e6, .hide_default = true});
  v.field("grace", o.grace,
          "how long a round with a quorum waits for those that, by their records, come meanwhile",
          {.at_least = 0, .at_most = 86400, .hide_default = true});
  v.field("fragments", o.fragments,
          "parts of the model that have rounds of their own in turn (Streaming DiLoCo)",
          {.at_least = 1, .at_most = 1e6, .hide_default = true});
  v.field("fragment_pattern", o.fragment_pattern,
          "which layers a fragment has: neighbours, or one of every so many",
          {.hide_default = true});
  v.field("fragment_delay", o.fragment_delay,
          "local steps that a peer takes while a fragment is averaged",
          {.at_most = 1e9, .hide_default = true});
  v.field("fragment_blend", o.fragment_blend,
          "the share of the local parameters that stays in a fragment after averaging",
          {.at_least = 0, .at_most = 1, .fraction = true, .hide_default = true});
}

actors::diloco_workload::settings settings_of(const diloco_choices& o) {
  actors::diloco_workload::settings out;
  out.outer = {
      .learning_rate = o.outer_learning_rate, .momentum = o.outer_momentum, .nesterov = o.nesterov};
  out.schedule = {.period = static_cast<std::int64_t>(o.local_steps),
                  .fragments = static_cast<std::int64_t>(o.fragments),
                  .delay = static_cast<std::int64_t>(o.fragment_delay),
                  .alpha = o.fragment_blend,
                  .align = kernels::fragment_align::applying};
  out.pattern = o.fragment_pattern;
  out.outer_steps = o.groups == diloco_groups::everyone;
  return out;
}

/// The codecs of each fragment's vector.
std::vector<actors::round_codecs> codecs_by_fragment(const scenario& what,
                                                     const actors::diloco_workload& work) {
  const auto layout = work.layout();
  std::vector<actors::round_codecs> out;
  for (const auto& which : work.fragments()) {
    std::vector<std::uint64_t> tensors;
    if (layout.size() < 2) tensors.push_back(kernels::size_of(which));
    for (const auto& range : which)
      for (const auto& slot : layout)
        if (layout.size() >= 2 && slot.offset >= range.begin && slot.offset < range.end)
          tensors.push_back(slot.size());
    out.push_back(round_codecs_of(what.averaging, tensors));
  }
  return out;
}

void check_fragments(const scenario& what, checking& report) {
  const auto& o = options_of(what);
  if (!report.sound({"training.local_steps", "training.fragments", "training.fragment_delay"}))
    return;
  if (o.fragments > o.local_steps)
    return report.error("training.fragments",
                        fmt::format("{} fragments: at most one for each of the {} local steps",
                                    o.fragments, o.local_steps));
  const auto gap = o.local_steps / o.fragments;
  if (o.fragment_delay >= gap)
    report.error("training.fragment_delay",
                 fmt::format("fragment_delay {} must be below the {} local steps between two "
                             "rounds",
                             o.fragment_delay, gap));
  const auto& of = what.workload.definition();
  if (o.fragments == 1 || !report.sound({"workload.kind"}) || !of.possible(what.workload).ok())
    return;
  const auto tensors = of.tensors(what.workload);
  const auto made =
      tensors.size() < 2
          ? kernels::make_fragments(tensors.empty() ? 0 : tensors.front().size(), o.fragments)
          : kernels::make_fragments(tensors, o.fragments, o.fragment_pattern);
  if (!made) report.error("training.fragments", made.error());
}

void check_grid(const scenario& what, checking& report) {
  const auto& o = options_of(what);
  if (report.sound({"training.fragments"}) && o.fragments > 1)
    report.error("training.fragments", "fragments are for one group of everyone");
  if (report.sound({"training.quorum"}) && o.quorum > 0)
    report.error("training.quorum", "a quorum is for one group of everyone");
}

void check_rounds(const scenario& what, checking& report) {
  const auto& o = options_of(what);
  if (report.sound({"training.quorum", "peers"})) {
    const auto hosts = count_of(what);
    if (hosts > 0 && o.quorum > hosts)
      report.error(
          "training.quorum",
          fmt::format("quorum {} can never come: the whole swarm has {} hosts", o.quorum, hosts));
    else if (report.sound({"averaging.group_size"}) && o.quorum > what.averaging.group_size)
      report.error("training.quorum", fmt::format("quorum {} is above averaging.group_size {}",
                                                  o.quorum, what.averaging.group_size));
  }
  if (report.sound({"training.quorum", "peers"}) && o.quorum > 0 && 2 * o.quorum <= count_of(what))
    report.warn(
        "training.quorum",
        fmt::format("quorum {} is no majority of {} hosts: two groups may form in one epoch, "
                    "and the work of one of them is lost",
                    o.quorum, count_of(what)));
  if (report.sound({"training.quorum", "training.grace"}) && o.quorum == 0 && o.grace > duration{})
    report.error("training.grace", "grace is for a quorum, and training.quorum is 0");
  if (report.sound({"averaging.compression"}) &&
      what.averaging.compression == kernels::codec::top_k)
    report.error("averaging.compression",
                 "top_k drops values, and 'diloco' keeps no residual of pseudo-gradients");
  if (report.sound({"averaging.power_sgd_rank"}) && what.averaging.power_sgd_rank > 0)
    report.error("averaging.power_sgd_rank",
                 "PowerSGD is for gradients: 'diloco' averages pseudo-gradients");
}

} // namespace
} // namespace diloco_method_parts

method_definition diloco_method() {
  using namespace diloco_method_parts;
  method_definition out;
  out.name = "diloco";
  out.meaning = "local steps, and an outer step with the mean of how far they led (DiLoCo)";
  out.options = options_box::of(diloco_choices{});
  out.traits = [](const scenario& what) {
    method_traits traits;
    traits.weights_are_samples = false;
    traits.computes_meanwhile = options_of(what).fragment_delay > 0;
    traits.baseline_batch = count_of(what) * what.training.micro_batch;
    if (uses_grid(what)) {
      traits.averages_parameters = traits.computes_meanwhile = traits.uses_grid = true;
      traits.whole_swarm = false;
      traits.max_epoch_difference = actors::moshpit_options{}.max_staleness;
    }
    return traits;
  };
  out.steps_of_machine = [](const scenario& what, std::uint64_t epoch) {
    const auto& o = options_of(what);
    return std::max<std::uint64_t>(1, epoch * o.local_steps / o.fragments);
  };
  out.check = [](const scenario& what, checking& report) {
    check_fragments(what, report);
    if (report.sound({"training.groups"}) && uses_grid(what)) return check_grid(what, report);
    check_rounds(what, report);
  };
  out.draw = [](dice& d, drawn_method& into) {
    const auto local_steps = d.between(2, 12);
    into.batch = local_steps * into.micro_batch * into.peers;
    add_option(into.training, fmt::format("method: diloco, local_steps: {}", local_steps));
    if (d.chance(0.5))
      add_option(into.training, "outer_learning_rate: 1, outer_momentum: 0");
    else
      add_option(into.training, "outer_learning_rate: 0.3, outer_momentum: 0.8");
    if (d.chance(0.5) && into.peers > 1) {
      const auto quorum = d.between(into.peers / 2, into.peers);
      add_option(into.training, fmt::format("quorum: {}, grace: {}", quorum, d.seconds(0.1, 5)));
    }
    if (d.chance(0.5)) {
      const auto fragments = d.between(1, std::min<std::uint64_t>(local_steps, 4));
      into.batch = std::max<std::uint64_t>(into.batch / fragments, 1);
      const auto delay = d.between(0, local_steps / fragments - 1);
      add_option(into.training,
                 fmt::format("fragments: {}, fragment_delay: {}, fragment_blend: {}%", fragments,
                             delay, d.one_of({0, 50, 100})));
    }
  };
  out.wrap = [](const scenario& what, std::shared_ptr<const actors::workload> work)
      -> result<std::shared_ptr<const actors::workload>> {
    auto wrapped = actors::diloco_workload::make(std::move(work), settings_of(options_of(what)));
    if (!wrapped) return failure{wrapped.error()};
    return std::shared_ptr<const actors::workload>(std::move(*wrapped));
  };
  out.spawn = [](const role_site& site) {
    const auto& o = options_of(site.what);
    const auto& work = dynamic_cast<const actors::diloco_workload&>(site.pool->work());
    if (uses_grid(site.what))
      return caf::actor_cast<caf::actor>(site.system.spawn<actors::moshpit_peer>(
          std::ref(site.on), site.config,
          actors::moshpit_options{.local_steps = o.local_steps, .grid = grid_of(site.what)},
          std::make_shared<actors::diloco_rule>(settings_of(o).outer), work.method_state_bytes(),
          site.pool, site.dht));
    return caf::actor_cast<caf::actor>(site.system.spawn<actors::diloco_peer>(
        std::ref(site.on), site.config,
        actors::diloco_options{o.quorum, o.grace, codecs_by_fragment(site.what, work)}, site.pool,
        site.dht));
  };
  return out;
}

} // namespace shoal::scenarios
