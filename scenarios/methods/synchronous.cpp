// The method 'synchronous': the swarm fills one large batch, averages its gradients, and takes one
// step (DeDLOC). Source: Diskin et al., arXiv:2106.10207.
#include "actors/training/delayed_peer.hpp"
#include "actors/training/overlap_options.hpp"
#include "actors/training/peer.hpp"
#include "scenarios/chaos/dice.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/roles/role.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>

namespace shoal::scenarios {

// A method may name its parts as other methods name theirs.
namespace synchronous_method_parts {
namespace {

struct synchronous_options {
  actors::overlap overlap = actors::overlap::none;
  std::uint64_t target_batch = 256;
  bool operator==(const synchronous_options&) const = default;
};

const synchronous_options& options_of(const scenario& what) {
  return what.training.method.as<synchronous_options>();
}
bool overlaps(const scenario& what) {
  return options_of(what).overlap != actors::overlap::none;
}

template <class V>
void describe(V& v, synchronous_options& o) {
  v.field("overlap", o.overlap,
          "work that runs while the next batch is computed. `update`: the optimizer's step; "
          "`averaging`: the round and the step. Gradients are then one step old. The first epoch "
          "fills the pipeline, without a step",
          {.hide_default = true});
  v.field("target_batch", o.target_batch,
          "samples in an epoch (one optimizer step) over the whole swarm",
          {.at_least = 1, .at_most = 1e12});
}

} // namespace
} // namespace synchronous_method_parts

method_definition synchronous_method() {
  using namespace synchronous_method_parts;
  method_definition out;
  out.name = "synchronous";
  out.meaning = "gradients of the whole swarm, one step (DeDLOC)";
  out.options = options_box::of(synchronous_options{});
  out.traits = [](const scenario& what) {
    method_traits traits;
    traits.computes_meanwhile = overlaps(what);
    traits.target_batch = traits.baseline_batch = options_of(what).target_batch;
    traits.proves_steps = !overlaps(what);
    traits.takes_auxiliaries = true;
    traits.recomputable = !overlaps(what);
    return traits;
  };
  // With overlap the first epoch only fills the pipeline.
  out.steps_of_machine = [](const scenario& what, std::uint64_t epoch) {
    return overlaps(what) ? epoch - 1 : epoch;
  };
  out.check = [](const scenario& what, checking& report) {
    check_micro_batch(what, options_of(what).target_batch, report);
  };
  out.drawn_share = 3;
  out.draw = [](dice& d, drawn_method& into) {
    add_option(into.training, fmt::format("target_batch: {}", into.batch));
    add_option(into.training,
               std::string("overlap: ") + d.one_of({"none", "none", "update", "averaging"}));
    if (d.chance(0.2)) add_option(into.averaging, "power_sgd_rank: 2");
    if (d.chance(0.3))
      add_option(into.averaging, fmt::format("min_group_size: {}", d.between(1, 2)));
  };
  out.configure = [](const scenario& what, actors::peer_config& into) {
    into.target_batch = options_of(what).target_batch;
  };
  out.speed = [](const scenario& what) {
    return speed_of_common_steps(what, options_of(what).target_batch, overlaps(what));
  };
  out.variants = [](const scenario& like) {
    const auto batch = fmt::format("{:.0f}", samples_between_rounds(like));
    return std::vector<method_variant>{
        {"", {{"target_batch", batch}, {"overlap", "none"}}, {}},
        {"overlap", {{"target_batch", batch}, {"overlap", "averaging"}}, {}}};
  };
  out.spawn = [](const role_site& site) {
    if (overlaps(site.what))
      return caf::actor_cast<caf::actor>(site.system.spawn<actors::delayed_peer>(
          std::ref(site.on), site.config, actors::overlap_options{options_of(site.what).overlap},
          site.pool, site.dht));
    return caf::actor_cast<caf::actor>(
        site.system.spawn<actors::peer>(std::ref(site.on), site.config, site.pool, site.dht));
  };
  return out;
}

} // namespace shoal::scenarios
